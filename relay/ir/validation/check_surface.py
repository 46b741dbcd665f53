"""The validator of untyped modules: terminators of blocks, and arity of bindings.

What types would show is elaboration's to find.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import assert_never

import attrs

from relay.errors import Span
from relay.ir.expr import (
    Block,
    Dead,
    Exit,
    Expr,
    Function,
    If,
    Lambda,
    Loop,
    LoopLabel,
    Module,
    Next,
    Static,
    Yield,
)
from relay.ir.node import target_count
from relay.ir.surface import ForEach, PatternMatch, Unpack
from relay.ir.traverse import blocks, terminator_operands
from relay.ir.validation.check_scopes import Violation


@attrs.frozen
class _TerminatorArities:
    """The number of values of a Yield (None: not allowed here), and of a Next (None: of a function) and an Exit of
    each label around it."""

    yields: int | None
    labels: Mapping[LoopLabel, tuple[int | None, int]]


def is_untyped(module: Module) -> bool:
    """True if a module is of the surface IR, where no variable that is bound in a block has a type."""
    functions = [f for f in module.functions.values() if isinstance(f, Function)]
    return any(
        f.signature
        or f.result is None
        or any(isinstance(a, Static) for a in terminator_operands(f.body.terminator))
        or any(t.type is None for b in f.body.bindings for t in b.targets)
        for f in functions
    )


def check_surface(module: Module) -> None:
    """Raise Violation, an InternalError, where a function of an untyped module is not well formed."""
    for function in module.functions.values():
        if isinstance(function, Function):
            _function(function)


def _function(function: Function) -> None:
    _block(function.body, _TerminatorArities(None, {function.label: (None, 1)}), function.span)


def _block(block: Block, around: _TerminatorArities, span: Span | None) -> None:
    for binding in block.bindings:
        value, count = binding.value, len(binding.targets)
        wanted = value.count if isinstance(value, Unpack) else target_count(value.__class__)
        if wanted is not None and count != wanted:
            raise Violation(f"{_name(value)} binds {wanted} variables, found {count}", value.span)
        match value:
            case If(arms, orelse):
                for arm in arms:
                    _block(arm.condition, attrs.evolve(around, yields=1), value.span)
                    _block(arm.body, attrs.evolve(around, yields=count), value.span)
                _block(orelse, attrs.evolve(around, yields=count), value.span)
            case PatternMatch(_, cases):
                for case in cases:
                    if case.guard is not None:
                        _block(case.guard, attrs.evolve(around, yields=1), case.span)
                    _block(case.body, attrs.evolve(around, yields=count), case.span)
            case Loop(label, parameters, _, body) | ForEach(label, _, _, parameters, _, body):
                labels = {**around.labels, label: (len(parameters), count)}
                _block(body, _TerminatorArities(None, labels), value.span)
            case Lambda(function):
                _function(function)
            case _:
                for inner in blocks(value):
                    _block(inner, around, value.span)
    _terminator(block, around, span)


def _terminator(block: Block, around: _TerminatorArities, span: Span | None) -> None:
    match block.terminator:
        case Yield(values, place):
            wanted: int | None = around.yields
            if wanted is None:
                raise Violation("`yield` outside of an arm", place or span)
            found = "Yield"
        case Next(label, values, place) | Exit(label, values, place):
            if label not in around.labels:
                raise Violation(f"there is no '{label.name} around this", place or span)
            rounds, results = around.labels[label]
            found = type(block.terminator).__name__
            wanted = results if isinstance(block.terminator, Exit) else rounds
            if wanted is None:
                raise Violation(f"'{label.name} is a function, which has no next round", place or span)
        case Dead():
            return
        case other:
            assert_never(other)
    if len(values) != wanted:
        raise Violation(f"this {found} has {wanted} values, found {len(values)}", place or span)


def _name(value: Expr) -> str:
    return type(value).__name__
