"""Positions in dynamic-length lists: the length, and normalized indices and bounds (all int64)."""

from __future__ import annotations

import numpy as np

from relay.errors import Span, TypeCheckError
from relay.ir.expr import (
    Assert,
    Atom,
    Binding,
    Constant,
    OpCall,
    StackLength,
)
from relay.ir.types import (
    INT32,
    INT64,
    Kind,
    TensorType,
    scalar,
)
from relay.operator import lookup
from relay.typecheck.elaboration.abstract_values import (
    AbstractValue,
    DynamicValue,
    Number,
    PythonNumber,
    PythonObject,
    Size,
    TypedBlockBuilder,
    size,
)
from relay.typecheck.elaboration.checker import Checker
from relay.typecheck.elaboration.dynamic_shapes import data_dependent
from relay.typecheck.elaboration.expressions import operators
from relay.typecheck.elaboration.values import range_numbers

LONGEST_LIST = 2**31 - 1
"""The largest length that `len` gives."""


def length64(checker: Checker, out: TypedBlockBuilder, xs: DynamicValue, span: Span | None) -> DynamicValue:
    """The number of elements, int64."""
    if xs.length is not None and xs.length.absolute is not None:
        return data_dependent.number(checker, out, xs.length.absolute, span)
    return checker.bind(out, StackLength(xs.atom, span), scalar(INT64), "length", span)


def length(checker: Checker, out: TypedBlockBuilder, xs: DynamicValue, span: Span | None) -> AbstractValue:
    """`len(xs)`: int32, as all sizes that are computed, and a check that it is one."""
    if xs.length is not None and xs.length.absolute is not None:
        return size(xs.length.absolute, span)
    count = length64(checker, out, xs, span)
    fits = compare(checker, out, "less_equal", count, number(LONGEST_LIST), span)
    out.items.append(Binding((), Assert(fits.atom, f"len() of a list of more than {LONGEST_LIST} elements", span)))
    found = checker.bind(out, OpCall("cast", (count.atom,), {"dtype": INT32}, span), scalar(INT32), "length", span)
    return range_numbers.of_range(found)


def is_not_empty(checker: Checker, out: TypedBlockBuilder, xs: DynamicValue, span: Span | None) -> AbstractValue:
    """The value of a list as a condition."""
    if xs.length is not None and xs.length.absolute is not None:
        return checker.engine.apply_operator(
            checker, out, "greater", [length(checker, out, xs, span), PythonNumber(0, span)], {}, span, []
        )
    return compare(checker, out, "greater", length64(checker, out, xs, span), number(0), span)


def place(
    checker: Checker,
    out: TypedBlockBuilder,
    xs: DynamicValue,
    index: AbstractValue,
    span: Span | None,
    *,
    end: bool = False,
) -> DynamicValue:
    """The position (int64) that an index means; a check that there is one. `end`: just after the last is one, too."""
    known = xs.length.absolute if xs.length is not None else None
    if isinstance(index, Size):
        index = checker.materialize(out, index, span)
    elif isinstance(known, int) and isinstance(index, Number) and -known <= index.specialize() < known:
        return number(int(index.specialize()) % known)
    whole = length64(checker, out, xs, span)
    match index:
        case Number() if isinstance(value := index.specialize(), int):
            position = number(value) if value >= 0 else compute(checker, out, "add", whole, number(value), span)
        case DynamicValue(_, type_):
            base = checker.solver.fresh_variable(Kind.BaseType)
            checker.unify_at(type_, TensorType(base, ()), span, "the index of a list")
            position = _from_end(checker, out, index, whole, span)
        case _:
            raise TypeCheckError("the index of a list must be an integer or a slice", span)
    upper = compare(checker, out, "less_equal" if end else "less", position, whole, span)
    lower = compare(checker, out, "greater_equal", position, number(0), span)
    inside = operators.apply(checker, out, lookup("logical_and"), [lower, upper], {}, span, [])
    out.items.append(Binding((), Assert(inside.atom, "list index out of range", span)))
    return position


def slice_bound(
    checker: Checker,
    out: TypedBlockBuilder,
    bound: AbstractValue | None,
    size: DynamicValue,
    low: DynamicValue,
    high: DynamicValue,
    missing: DynamicValue,
    span: Span | None,
) -> DynamicValue:
    """A slice's bound as a position between `low` and `high`."""
    match bound:
        case None | PythonObject(None):
            return missing
        case Number() if isinstance(value := bound.specialize(), int):
            position = number(value) if value >= 0 else compute(checker, out, "add", size, number(value), span)
        case DynamicValue(_, type_):
            checker.unify_at(
                type_, TensorType(checker.solver.fresh_variable(Kind.BaseType), ()), span, "the bound of a slice"
            )
            position = _from_end(checker, out, bound, size, span)
        case _:
            raise TypeCheckError("the bounds of a slice must be integers", span)
    position = compute(checker, out, "maximum", position, low, span)
    return compute(checker, out, "minimum", position, high, span)


def _from_end(
    checker: Checker, out: TypedBlockBuilder, index: DynamicValue, size: DynamicValue, span: Span | None
) -> DynamicValue:
    """A run-time index, to which the length is added if it is negative."""
    position = operators.apply(checker, out, lookup("cast"), [index], {"dtype": INT64}, span, [])
    negative = compare(checker, out, "less", position, number(0), span)
    flag = operators.apply(checker, out, lookup("cast"), [negative], {"dtype": INT64}, span, [])
    return compute(checker, out, "add", position, compute(checker, out, "multiply", flag, size, span), span)


def number(value: int) -> DynamicValue:
    constant = Constant(np.asarray(value, np.int64))
    return DynamicValue(constant, constant.type)


def compute(
    checker: Checker, out: TypedBlockBuilder, name: str, left: DynamicValue, right: DynamicValue, span: Span | None
) -> DynamicValue:
    """An int64 operation that cannot fail, without the run-time requirements of its operator."""
    atoms: tuple[Atom, ...] = (left.atom, right.atom)
    if isinstance(left.atom, Constant) and isinstance(right.atom, Constant):
        value = lookup(name).reference(left.atom.value, right.atom.value)
        return number(int(value))
    return checker.bind(out, OpCall(lookup(name).name, atoms, {}, span), scalar(INT64), "position", span)


def compare(
    checker: Checker, out: TypedBlockBuilder, name: str, left: DynamicValue, right: DynamicValue, span: Span | None
) -> DynamicValue:
    return operators.apply(checker, out, lookup(name), [left, right], {}, span, [])
