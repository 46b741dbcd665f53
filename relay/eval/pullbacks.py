"""Operators' gradients as code over arrays, for the interpreter's tapes.

The code of a call computes the cotangents of those operands that depend on the tape. A cotangent that differs from zero
in a part only, as that of `x[i]` does, is an `Update`: what there is of x's cotangent changes in that part, and T reads
of x take time in proportion to T and not to T times the size of x.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import attrs
import numpy as np

from relay.errors import RelayError
from relay.eval.operation import Code, trace, type_of
from relay.ir.expr import Atom, Constant, Expr, OpCall, Var
from relay.operator import Operator, Value, lookup


@attrs.frozen(slots=True, eq=False)
class Update:
    """A cotangent that is added to another one: `call` with that one as its operand at `position`, and the others by
    their numbers among the code's results."""

    call: OpCall
    position: int
    others: tuple[int, ...]


Part: TypeAlias = "int | Update | None"
"""The cotangent of an operand: a result of the code by its number, or an update; None: zero."""


@attrs.frozen(slots=True, eq=False)
class Pullback:
    """The cotangents of a call's operands, one after the other, over the operands, the output and its cotangent."""

    code: Code
    parts: tuple[Part, ...]


def pullback(
    operator: Operator, call: OpCall, operands: Sequence[np.ndarray], output: np.ndarray, wanted: Sequence[bool]
) -> Pullback:
    """The pullback of a call with operands and output of these types, for the wanted operands."""
    count = len(operands)

    def gradient(*values: Value) -> list[Value | None]:
        out, dout = values[count:]
        try:
            parts = operator.cotangents(values[:count], out, dout, call.attributes)
        except RelayError as error:
            raise error.with_span(call.span) from None
        return [part if want else None for part, want in zip(parts, wanted, strict=True)]

    types, result = [type_of(o) for o in operands], type_of(output)
    whole = trace(gradient, call, [*types, result, result], [*(f"x{i}" for i in range(count)), "out", "dout"])
    made: dict[Var, Expr] = {b.targets[0]: b.value for b in whole.bindings}
    results: list[Atom] = []
    parts: list[Part] = []
    for type_, atom in zip(types, whole.results, strict=True):
        expression = made.get(atom) if isinstance(atom, Var) else None
        update = None
        if isinstance(expression, OpCall) and isinstance(atom, Var) and atom.type == type_:
            update = _update(expression, made)
        if atom is None:
            parts.append(None)
        elif update is None:
            parts.append(len(results))
            results.append(atom)
        else:
            new, position, others = update
            parts.append(Update(new, position, tuple(range(len(results), len(results) + len(others)))))
            results += others
    return Pullback(Code(whole.parameters, whole.bindings, tuple(results)).eliminate_dead_code(), tuple(parts))


def _update(call: OpCall, made: Mapping[Var, Expr]) -> tuple[OpCall, int, tuple[Atom, ...]] | None:
    """y + call as one call that changes a part of y, if the operator has one: its call, the position of y in it, and
    the other operands."""
    operator = lookup(call.operator)
    position = operator.algebra.accumulates
    if isinstance(position, str):
        accumulator = lookup(position)
        attributes = {name: value for name, value in call.attributes.items() if name in accumulator.attributes}
        return OpCall(accumulator.name, (), attributes, call.span), 0, call.arguments
    if position is None or not _is_zero(call.arguments[position], made):
        return None
    others = (*call.arguments[:position], *call.arguments[position + 1 :])
    return OpCall(call.operator, (), call.attributes, call.span), position, others


def _is_zero(atom: Atom, made: Mapping[Var, Expr]) -> bool:
    if isinstance(atom, Constant):
        return not np.any(atom.value)
    expression = made.get(atom) if isinstance(atom, Var) else None
    return isinstance(expression, OpCall) and lookup(expression.operator).memory.constant == 0
