"""The passes, as functions from module to module, and pipelines of them: `relay.transform.simplify(module)`."""

from relay.transform.accuracy import Improvement, improve_accuracy, improvements
from relay.transform.cell_elimination import eliminate_cells
from relay.transform.common_subexpressions import eliminate_common_subexpressions
from relay.transform.composites import expand_composites
from relay.transform.constant_folding import fold_constants
from relay.transform.counter_folding import fold_counters
from relay.transform.data_narrowing import narrow_data
from relay.transform.dead_code import eliminate_dead_code
from relay.transform.deferred_sums import defer_sums
from relay.transform.function_narrowing import narrow_functions
from relay.transform.index_joining import join_indices
from relay.transform.inlining import inline
from relay.transform.layouts import choose_layouts, convert_layout
from relay.transform.loop_batching import batch_products
from relay.transform.loop_fission import split_loops
from relay.transform.loop_invariants import hoist_invariants
from relay.transform.loop_unrolling import unroll_loops
from relay.transform.mixed_precision import to_mixed_precision
from relay.transform.outlining import fuse
from relay.transform.parameter_flattening import flatten_parameters
from relay.transform.partial_evaluation import evaluate_partially
from relay.transform.passes import PASSES
from relay.transform.pipeline import BETWEEN, LEVELS, PREPARATION, Pipeline, Record, optimize, prepare
from relay.transform.product_joining import join_products
from relay.transform.product_ordering import reorder_products
from relay.transform.record_flattening import flatten_records
from relay.transform.reference_elimination import eliminate_references
from relay.transform.repeated_choices import repeat_choices
from relay.transform.scale_folding import fold_scales
from relay.transform.simplification import reduce_strength, simplify
from relay.transform.specialisation import specialise
from relay.transform.structuring import structure
from relay.transform.sum_flattening import flatten_sums
from relay.transform.tail_calls import loop_tail_calls
from relay.transform.tape_allocation import allocate_tapes
from relay.transform.tuple_flattening import flatten_tuples

cse = eliminate_common_subexpressions
dce = eliminate_dead_code

__all__ = [
    "BETWEEN",
    "LEVELS",
    "PASSES",
    "PREPARATION",
    "Improvement",
    "Pipeline",
    "Record",
    "allocate_tapes",
    "batch_products",
    "choose_layouts",
    "convert_layout",
    "cse",
    "dce",
    "defer_sums",
    "eliminate_cells",
    "eliminate_common_subexpressions",
    "eliminate_dead_code",
    "eliminate_references",
    "evaluate_partially",
    "expand_composites",
    "flatten_parameters",
    "flatten_records",
    "flatten_sums",
    "flatten_tuples",
    "fold_constants",
    "fold_counters",
    "fold_scales",
    "fuse",
    "hoist_invariants",
    "improve_accuracy",
    "improvements",
    "inline",
    "join_indices",
    "join_products",
    "loop_tail_calls",
    "narrow_data",
    "narrow_functions",
    "optimize",
    "prepare",
    "reduce_strength",
    "reorder_products",
    "repeat_choices",
    "simplify",
    "specialise",
    "split_loops",
    "structure",
    "to_mixed_precision",
    "unroll_loops",
]
