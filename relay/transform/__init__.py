"""The passes, as functions from module to module, and pipelines of them: `relay.transform.simplify(module)`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from relay.transform.aggregates.parameters import flatten_parameters
from relay.transform.aggregates.records import flatten_records
from relay.transform.aggregates.sums import flatten_sums
from relay.transform.aggregates.tuples import flatten_tuples
from relay.transform.cleanup.common_subexpressions import eliminate_common_subexpressions
from relay.transform.cleanup.constant_folding import fold_constants
from relay.transform.cleanup.dead_arguments import eliminate_dead_arguments
from relay.transform.cleanup.dead_code import eliminate_dead_code
from relay.transform.cleanup.dead_fields import eliminate_dead_fields
from relay.transform.cleanup.index_composition import compose_indices
from relay.transform.cleanup.inlining import inline
from relay.transform.cleanup.select_sinking import sink_reads
from relay.transform.cleanup.simplification import reduce_strength, simplify
from relay.transform.core.composites import expand_composites
from relay.transform.core.specialization import specialize
from relay.transform.core.structuring import structure
from relay.transform.deployment.nodes import quantize_nodes
from relay.transform.deployment.outputs import select_outputs
from relay.transform.deployment.removal import remove_assertions, remove_identities, remove_prints, switch_to_inference
from relay.transform.deployment.sizes import ModuleSizes, module_sizes
from relay.transform.deployment.weights import merge_constants, quantize_weights, round_weights
from relay.transform.fusion.outlining import fuse
from relay.transform.layout.layouts import choose_layouts, convert_layout
from relay.transform.linear_algebra.product_joining import join_products
from relay.transform.linear_algebra.product_ordering import reorder_products
from relay.transform.linear_algebra.scale_folding import fold_scales
from relay.transform.loops.batching import batch_products
from relay.transform.loops.collectives import lower_collectives
from relay.transform.loops.distribution import distribute_loops
from relay.transform.loops.induction_variables import fold_induction_variables
from relay.transform.loops.invariants import hoist_invariants
from relay.transform.loops.recomputation import recompute_rounds
from relay.transform.loops.tail_calls import loop_tail_calls
from relay.transform.loops.unrolling import unroll_loops
from relay.transform.loops.vectorization import vectorize_loops
from relay.transform.memory.cell_elimination import eliminate_cells
from relay.transform.memory.reference_elimination import eliminate_references
from relay.transform.memory.tape_allocation import allocate_tapes
from relay.transform.passes import PASSES
from relay.transform.pipeline import BETWEEN, LEVELS, PREPARATION, PassRecord, Pipeline, optimize, prepare
from relay.transform.precision.accuracy import Improvement, improve_accuracy, improvements
from relay.transform.precision.mixed_precision import to_mixed_precision
from relay.transform.recursion.deferred_sums import sink_accumulators
from relay.transform.recursion.level_batching import batch_recursion
from relay.transform.recursion.partial_evaluation import evaluate_partially

cse = eliminate_common_subexpressions
dce = eliminate_dead_code

SEARCHES: dict[str, Callable[[], Any]] = {}
"""Transformations that run programs, and are defined above the passes: `relay/__init__.py` has them here."""


def __getattr__(name: str) -> Any:
    if name not in SEARCHES:
        raise AttributeError(f"module 'relay.transform' has no attribute {name!r}")
    return SEARCHES[name]()


__all__ = [
    "BETWEEN",
    "LEVELS",
    "PASSES",
    "PREPARATION",
    "SEARCHES",
    "Improvement",
    "ModuleSizes",
    "PassRecord",
    "Pipeline",
    "allocate_tapes",
    "batch_products",
    "batch_recursion",
    "choose_layouts",
    "compose_indices",
    "convert_layout",
    "cse",
    "dce",
    "distribute_loops",
    "eliminate_cells",
    "eliminate_common_subexpressions",
    "eliminate_dead_arguments",
    "eliminate_dead_code",
    "eliminate_dead_fields",
    "eliminate_references",
    "evaluate_partially",
    "expand_composites",
    "flatten_parameters",
    "flatten_records",
    "flatten_sums",
    "flatten_tuples",
    "fold_constants",
    "fold_induction_variables",
    "fold_scales",
    "fuse",
    "hoist_invariants",
    "improve_accuracy",
    "improvements",
    "inline",
    "join_products",
    "loop_tail_calls",
    "lower_collectives",
    "merge_constants",
    "module_sizes",
    "optimize",
    "prepare",
    "quantize_nodes",
    "quantize_weights",
    "recompute_rounds",
    "reduce_strength",
    "remove_assertions",
    "remove_identities",
    "remove_prints",
    "reorder_products",
    "round_weights",
    "select_outputs",
    "simplify",
    "sink_accumulators",
    "sink_reads",
    "specialize",
    "structure",
    "switch_to_inference",
    "to_mixed_precision",
    "unroll_loops",
    "vectorize_loops",
]
