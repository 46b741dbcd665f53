"""The passes by name, and the notation for choosing them: `inline, cse, fold-constants{max_size=1MiB}, fuse`.

A name may be written with `-` for `_`; `cse` and `dce` are short for the two longest. Options are those keyword
parameters of a pass that are numbers or booleans; a number may have a unit of bytes (KiB, MiB, GiB).
"""

from __future__ import annotations

import difflib
import functools
import inspect
import re
from collections.abc import Callable
from typing import Literal, TypeAlias, get_args, get_origin, get_type_hints

import attrs

from relay.ad import reverse
from relay.ir.expr import Module
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
from relay.transform.deployment.removal import remove_assertions, remove_identities, remove_prints, switch_to_inference
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
from relay.transform.module_pass import module_pass
from relay.transform.precision.accuracy import improve_accuracy
from relay.transform.precision.mixed_precision import to_mixed_precision
from relay.transform.properties import CONTRACTS, UNKNOWN, Contract
from relay.transform.recursion.deferred_sums import sink_accumulators
from relay.transform.recursion.level_batching import batch_recursion
from relay.transform.recursion.partial_evaluation import evaluate_partially

Pass: TypeAlias = Callable[[Module], Module]
Option: TypeAlias = bool | int | float | str


@module_pass
def differentiate(module: Module) -> Module:
    """The module with functions in place of its pending derivatives. Composite operators without a gradient of their
    own are differentiated through their bodies."""
    return reverse.differentiate(expand_composites(module), expand_composites)


PASSES: dict[str, Pass] = {
    "specialize": specialize,
    "structure": structure,
    "lower_collectives": lower_collectives,
    "differentiate": differentiate,
    "expand_composites": expand_composites,
    "loop_tail_calls": loop_tail_calls,
    "inline": inline,
    "evaluate_partially": evaluate_partially,
    "flatten_records": flatten_records,
    "flatten_parameters": flatten_parameters,
    "flatten_sums": flatten_sums,
    "flatten_tuples": flatten_tuples,
    "allocate_tapes": allocate_tapes,
    "eliminate_references": eliminate_references,
    "eliminate_cells": eliminate_cells,
    "compose_indices": compose_indices,
    "sink_reads": sink_reads,
    "simplify": simplify,
    "reduce_strength": reduce_strength,
    "fold_constants": fold_constants,
    "eliminate_common_subexpressions": eliminate_common_subexpressions,
    "eliminate_dead_code": eliminate_dead_code,
    "eliminate_dead_arguments": eliminate_dead_arguments,
    "eliminate_dead_fields": eliminate_dead_fields,
    "reorder_products": reorder_products,
    "join_products": join_products,
    "fold_scales": fold_scales,
    "fold_induction_variables": fold_induction_variables,
    "hoist_invariants": hoist_invariants,
    "batch_products": batch_products,
    "recompute_rounds": recompute_rounds,
    "vectorize_loops": vectorize_loops,
    "distribute_loops": distribute_loops,
    "sink_accumulators": sink_accumulators,
    "batch_recursion": batch_recursion,
    "unroll_loops": unroll_loops,
    "choose_layouts": choose_layouts,
    "convert_layout": convert_layout,
    "improve_accuracy": improve_accuracy,
    "to_mixed_precision": to_mixed_precision,
    "switch_to_inference": switch_to_inference,
    "remove_assertions": remove_assertions,
    "remove_prints": remove_prints,
    "remove_identities": remove_identities,
    "round_weights": round_weights,
    "quantize_weights": quantize_weights,
    "quantize_nodes": quantize_nodes,
    "merge_constants": merge_constants,
    "fuse": fuse,
}
"""The passes by their names."""

LOSSY = frozenset(
    {
        *("to_mixed_precision", "improve_accuracy", "switch_to_inference", "remove_assertions", "remove_prints"),
        *("round_weights", "quantize_weights", "quantize_nodes"),
    }
)
"""Passes that give up digits, or give more of them, or effects, where they are asked for."""

EXACT = (
    frozenset(PASSES)
    - LOSSY
    - {
        *("reduce_strength", "reorder_products", "join_products", "fold_scales", "batch_products", "vectorize_loops"),
        *("distribute_loops", "sink_accumulators", "batch_recursion"),
        *("choose_layouts", "convert_layout"),
    }
)
"""Passes after which a program gives the same answer to the last bit; the others differ by rounding."""

ALIASES = {"cse": "eliminate_common_subexpressions", "dce": "eliminate_dead_code"}
"""Short names."""

_UNITS = {"": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
_STEP = re.compile(r"\s*(?P<name>[A-Za-z_][\w-]*)\s*(?:\{(?P<options>[^{}]*)\})?\s*(?P<end>,|$)")
_NUMBER = re.compile(r"(?P<number>\d+)(?P<unit>KiB|MiB|GiB|)")


@attrs.frozen
class ConfiguredPass:
    """A pass with its options, as a function on modules. `name` is how it was asked for."""

    name: str
    change: Pass
    contract: Contract  # what it needs and gives

    def __call__(self, module: Module) -> Module:
        return self.change(module)


def options_of(name: str) -> dict[str, Option]:
    """The options of a pass with their defaults."""
    found: dict[str, Option] = {}
    for parameter in inspect.signature(PASSES[name]).parameters.values():
        if isinstance(parameter.default, bool | int | float | str):
            found[parameter.name] = parameter.default
    return found


def read_steps(text: str) -> tuple[ConfiguredPass, ...]:
    """The passes that a text names. Raises ValueError, in one line, for what is not a pass, option or value."""
    steps: list[ConfiguredPass] = []
    position = 0
    while text[position:].strip():
        found = _STEP.match(text, position)
        if found is None:
            wanted = "a pass such as `cse` or `fold-constants{max_size=1MiB}`"
            raise ValueError(f"expected {wanted}, and commas between passes, at {text[position:].strip()!r}")
        steps.append(_step(found["name"], found["options"]))
        position = found.end()
    return tuple(steps)


def step_of(change: str | Pass) -> tuple[ConfiguredPass, ...]:
    """The steps of a text or function."""
    if isinstance(change, str):
        return read_steps(change)
    if isinstance(change, ConfiguredPass):
        return (change,)
    name = getattr(change, "__name__", repr(change))
    known = PASSES.get(name) is change
    return (ConfiguredPass(name, change, CONTRACTS.get(name, Contract()) if known else UNKNOWN),)


def pass_name(written: str) -> str:
    """The name in `PASSES` of a pass as it was written. Raises ValueError if there is none."""
    name = written.replace("-", "_")
    name = ALIASES.get(name, name)
    if name not in PASSES:
        raise ValueError(f"there is no pass {written!r}{_suggestion(name, [*PASSES, *ALIASES])}")
    return name


def _step(written: str, options: str | None) -> ConfiguredPass:
    name = pass_name(written)
    known = options_of(name)
    given: dict[str, Option] = {}
    for item in (options or "").split(","):
        key, equals, value = (part.strip() for part in item.partition("="))
        if not item.strip():
            continue
        if key not in known:
            raise ValueError(f"the pass {written!r} has no option {key!r}{_suggestion(key, list(known))}")
        if key in given:
            raise ValueError(f"the option {key!r} of {written!r} is given twice")
        if not equals and known[key] is not False:
            raise ValueError(f"the option {key!r} of {written!r} needs a value: {key}={known[key]}")
        given[key] = True if not equals else _value(written, key, value, known[key])
        choices = _choices(name, key)
        if choices and given[key] not in choices:
            raise ValueError(f"the option {key!r} of {written!r} is {' or '.join(choices)}, found {value!r}")
    change = functools.partial(PASSES[name], **given) if given else PASSES[name]
    shown = name + (f"{{{', '.join(f'{k}={v}' for k, v in given.items())}}}" if given else "")
    return ConfiguredPass(shown, change, CONTRACTS.get(name, Contract()))


def _value(name: str, key: str, text: str, default: Option) -> Option:
    """The value of an option, of its default's type."""
    wrong = ValueError(f"the option {key!r} of {name!r} is {_expected_option(default)}, found {text!r}")
    if isinstance(default, bool):
        if text not in ("true", "false"):
            raise wrong
        return text == "true"
    if isinstance(default, int):
        found = _NUMBER.fullmatch(text)
        if found is None:
            raise wrong
        return int(found["number"]) * _UNITS[found["unit"]]
    if isinstance(default, float):
        try:
            return float(text)
        except ValueError:
            raise wrong from None
    return text


def _choices(name: str, key: str) -> tuple[str, ...]:
    """The values of an option that is one of a few words."""
    hint = get_type_hints(PASSES[name])[key]
    words = [h for h in (hint, *get_args(hint)) if get_origin(h) is Literal]
    return get_args(words[0]) if words else ()


def _expected_option(default: Option) -> str:
    if isinstance(default, bool):
        return "true or false"
    if isinstance(default, int):
        return "a whole number, as 4096 or 1MiB"
    return "a number" if isinstance(default, float) else "a word"


def _suggestion(name: str, known: list[str]) -> str:
    if not known:
        return "; it has none"
    close = difflib.get_close_matches(name, known, n=1)
    return f"; did you mean {close[0]!r}?" if close else f"; there are {', '.join(known)}"
