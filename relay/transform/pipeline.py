"""Sequences of passes, and the ones that the compiler uses at each level."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TypeAlias

import attrs

from relay.ir.check import Stage, check
from relay.ir.expr import Function, Module
from relay.ir.traverse import count_bindings
from relay.transform.common_subexpressions import eliminate_common_subexpressions
from relay.transform.constant_folding import fold_constants
from relay.transform.dead_code import eliminate_dead_code
from relay.transform.inlining import inline
from relay.transform.simplification import simplify
from relay.transform.specialisation import specialise
from relay.transform.structuring import structure
from relay.transform.tail_calls import loop_tail_calls
from relay.transform.tuple_flattening import flatten_tuples

Pass: TypeAlias = Callable[[Module], Module]

PASSES: dict[str, Pass] = {
    "specialise": specialise,
    "structure": structure,
    "loop_tail_calls": loop_tail_calls,
    "inline": inline,
    "flatten_tuples": flatten_tuples,
    "simplify": simplify,
    "fold_constants": fold_constants,
    "eliminate_common_subexpressions": eliminate_common_subexpressions,
    "eliminate_dead_code": eliminate_dead_code,
}
"""The passes by their names."""

_STAGES: dict[str, Stage] = {"specialise": "core", "structure": "structured"}
"""The stage that a pass brings a module to. The others leave it where it is."""

_CLEAN = ("simplify", "fold_constants", "eliminate_common_subexpressions", "simplify", "eliminate_dead_code")

PREPARATION: tuple[tuple[str, ...], ...] = (
    ("loop_tail_calls",),
    ("loop_tail_calls", "simplify", "eliminate_dead_code"),
    ("inline", "simplify", "loop_tail_calls", "flatten_tuples", *_CLEAN),
    ("inline", "simplify", "loop_tail_calls", "flatten_tuples", *_CLEAN),
)
"""What `prepare` does with a structured core module at the levels 0 to 3."""

LEVELS: tuple[tuple[str, ...], ...] = (
    (),
    ("simplify", "eliminate_dead_code"),
    ("inline", "flatten_tuples", *_CLEAN),
    ("inline", "flatten_tuples", *_CLEAN, "inline", *_CLEAN),
)
"""What `optimize` does with a structured core module at the levels 0 to 3."""


@attrs.frozen
class Record:
    """One pass that was run: its name, how long it took in seconds, and the module's bindings before and after."""

    name: str
    seconds: float
    before: int
    after: int


class Pipeline:
    """Passes in order, as one pass, from a module at `stage`.

    With `checked` each pass's result is checked; a wrong one is an InternalError. `records` tells what each pass did in
    the last call. Raises ValueError for a name that is no pass.
    """

    def __init__(self, passes: Sequence[str | Pass], *, checked: bool = False, stage: Stage = "structured") -> None:
        unknown = [p for p in passes if isinstance(p, str) and p not in PASSES]
        if unknown:
            raise ValueError(f"there is no pass {unknown[0]!r}; there are {', '.join(PASSES)}")
        self.passes: tuple[tuple[str, Pass], ...] = tuple(
            (p, PASSES[p]) if isinstance(p, str) else (getattr(p, "__name__", repr(p)), p) for p in passes
        )
        self.checked = checked
        self.stage = stage
        self.records: tuple[Record, ...] = ()

    def __call__(self, module: Module) -> Module:
        records: list[Record] = []
        size, stage = count(module), self.stage
        for name, change in self.passes:
            start = time.perf_counter()
            module = change(module)
            seconds = time.perf_counter() - start
            before, size = size, count(module)
            records.append(Record(name, seconds, before, size))
            stage = _STAGES.get(name, stage)
            if self.checked:
                check(module, stage)
        self.records = tuple(records)
        return module


def count(module: Module) -> int:
    """The number of bindings in a module."""
    return sum(count_bindings(f.body) for f in module.functions.values() if isinstance(f, Function))


def prepare(module: Module, level: int = 2, *, checked: bool = False) -> Module:
    """A structured core module made smaller before it is differentiated, which pays for each order of derivatives.

    Tail calls become loops at every level. Raises ValueError for another level than 0 to 3.
    """
    return Pipeline(_passes(PREPARATION, level), checked=checked)(module)


def optimize(module: Module, level: int = 2, *, checked: bool = False) -> Module:
    """A structured core module made smaller and faster. Raises ValueError for another level than 0 (nothing) to 3."""
    return Pipeline(_passes(LEVELS, level), checked=checked)(module)


def _passes(levels: Sequence[tuple[str, ...]], level: int) -> tuple[str, ...]:
    if not 0 <= level < len(levels):
        raise ValueError(f"the optimisation level must be 0 to {len(levels) - 1}, found {level}")
    return levels[level]
