"""Dynamic slices of static length: `x[i:i + 3]`, `x[b * k:(b + 1) * k]`.

The length is the difference of the bounds, as linear forms of run-time integers: each sum, difference and product by a
known number is noted when it is elaborated. Reading gathers, assigning selects.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from relay.errors import Span
from relay.ir import dims
from relay.ir.dims import Dim
from relay.ir.expr import Assert, Binding, Constant, Var
from relay.ir.sizes.facts import mentions_made
from relay.ir.types import INT64, BaseClass, BaseType, TensorType, prune
from relay.operator import lookup
from relay.typecheck.elaboration.abstract_values import (
    AbstractValue,
    DynamicValue,
    Number,
    PythonNumber,
    PythonObject,
    SliceItem,
    TypedBlockBuilder,
    dim_of,
    size,
)
from relay.typecheck.elaboration.checker import Checker
from relay.typecheck.elaboration.expressions import operators

Linear: TypeAlias = "tuple[dict[Var, Dim], Dim]"
"""Coefficients of variables, and a constant."""


def note(checker: Checker, name: str, operands: Sequence[AbstractValue], result: AbstractValue) -> None:
    """Remember what an operator gives, if that is linear."""
    if (
        name not in ("add", "subtract", "multiply")
        or not isinstance(result, DynamicValue)
        or not isinstance(result.atom, Var)
    ):
        return
    one, two = (_linear(checker, operand) for operand in operands)
    if one is None or two is None:
        return
    (left, constant), (right, other) = one, two
    if name == "multiply":
        if left and right:
            return
        factor, (terms, rest) = (other, (left, constant)) if left else (constant, (right, other))
        found: Linear = ({v: dims.multiply(c, factor) for v, c in terms.items()}, dims.multiply(rest, factor))
    else:
        sign = 1 if name == "add" else -1
        combined = dict(left)
        for variable, coefficient in right.items():
            combined[variable] = dims.add(combined.get(variable, 0), dims.multiply(coefficient, sign))
        found = ({v: c for v, c in combined.items() if c != 0}, dims.add(constant, dims.multiply(other, sign)))
    checker.sizes.linear[result.atom] = found


def _linear(checker: Checker, entity: AbstractValue) -> Linear | None:
    match entity:
        case Number():
            dim = None if entity.is_float else dim_of(entity)
            return None if dim is None else ({}, dim)
        case DynamicValue(Var() as var, type_):
            found = prune(type_)
            base = prune(found.base) if isinstance(found, TensorType) and found.shape == () else None
            if base is None or (isinstance(base, BaseType) and base.base_class is not BaseClass.INTEGER):
                return None
            return checker.sizes.linear.get(var, ({var: 1}, 0))
        case _:
            return None


def length(checker: Checker, item: SliceItem, span: Span | None) -> int | None:
    """The length of a slice whose bounds are computed at run time, if the length is static."""
    if not any(isinstance(bound, DynamicValue) for bound in (item.start, item.stop)):
        return None
    if not _is_missing(item.step) and not (isinstance(item.step, Number) and item.step.specialize() == 1):
        return None
    start = _linear(checker, PythonNumber(0) if _is_missing(item.start) or item.start is None else item.start)
    stop = None if item.stop is None else _linear(checker, item.stop)
    if start is None or stop is None or start[0] != stop[0]:
        return None
    difference = dims.subtract(stop[1], start[1])
    if mentions_made(difference):
        return None
    return max(int(size(difference).specialize()), 0)


def _is_missing(bound: AbstractValue | None) -> bool:
    return bound is None or (isinstance(bound, PythonObject) and bound.value is None)


def read(
    checker: Checker,
    out: TypedBlockBuilder,
    value: DynamicValue,
    axis: int,
    item: SliceItem,
    count: int,
    span: Span | None,
) -> DynamicValue:
    """`value[.., start:start + count, ..]` on one axis."""
    start = _start(checker, out, item, span)
    numbers = Constant(np.arange(count, dtype=np.int64), span)
    positions = _apply(checker, out, "add", [start, DynamicValue(numbers, numbers.type)], span)
    return operators.apply(checker, out, lookup("take"), [value, positions], {"axis": axis}, span, [])


def write(
    checker: Checker,
    out: TypedBlockBuilder,
    value: DynamicValue,
    axis: int,
    item: SliceItem,
    count: int,
    new: DynamicValue,
    span: Span | None,
) -> DynamicValue:
    """The value after `value[.., start:start + count, ..] = new`, where new has the slice's shape."""
    type_ = prune(value.type)
    assert isinstance(type_, TensorType)
    rows = int(size(type_.shape[axis]).specialize())
    start = _start(checker, out, item, span)
    room = _apply(checker, out, "less_equal", [start, PythonNumber(rows - count)], span)
    out.items.append(Binding((), Assert(room.atom, "index out of range", span)))
    if count == 0:
        return value
    numbers = Constant(np.arange(rows, dtype=np.int64), span)
    position = _apply(checker, out, "subtract", [DynamicValue(numbers, numbers.type), start], span)
    inside = _apply(checker, out, "greater_equal", [position, PythonNumber(0)], span)
    inside = _apply(
        checker, out, "logical_and", [inside, _apply(checker, out, "less", [position, PythonNumber(count)], span)], span
    )
    nearest = _apply(checker, out, "maximum", [position, PythonNumber(0)], span)
    nearest = _apply(checker, out, "minimum", [nearest, PythonNumber(count - 1)], span)
    spread = operators.apply(checker, out, lookup("take"), [new, nearest], {"axis": axis}, span, [])
    shape = tuple(rows if a == axis else 1 for a in range(len(type_.shape)))
    inside = operators.apply(checker, out, lookup("reshape"), [inside], {"shape": shape}, span, [])
    return _apply(checker, out, "where", [inside, spread, value], span)


def _start(checker: Checker, out: TypedBlockBuilder, item: SliceItem, span: Span | None) -> DynamicValue:
    """The start, int64, which may not be negative: the slice would be another one."""
    start = PythonNumber(0, span) if item.start is None or _is_missing(item.start) else item.start
    typed = operators.apply(
        checker, out, lookup("cast"), [checker.materialize(out, start, span)], {"dtype": INT64}, span, []
    )
    positive = _apply(checker, out, "greater_equal", [typed, PythonNumber(0)], span)
    out.items.append(Binding((), Assert(positive.atom, "the start of this slice is negative", span)))
    return typed


def _apply(
    checker: Checker, out: TypedBlockBuilder, name: str, operands: Sequence[AbstractValue], span: Span | None
) -> DynamicValue:
    return operators.apply(checker, out, lookup(name), operands, {}, span, [])
