"""Positions in lists whose length only the run knows: the length, and what indices and bounds mean (all int64)."""

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
from relay.typecheck.elaboration.abstract_values import Entity, Number, Object, Output, Size, Typed, size
from relay.typecheck.elaboration.checker import Session
from relay.typecheck.elaboration.dynamic_shapes import data_dependent
from relay.typecheck.elaboration.expressions import operators
from relay.typecheck.elaboration.expressions.python_operators import apply_named
from relay.typecheck.elaboration.values import range_numbers


def length64(session: Session, out: Output, xs: Typed, span: Span | None) -> Typed:
    """The number of elements, int64."""
    if xs.length is not None and xs.length.absolute is not None:
        return data_dependent.number(session, out, xs.length.absolute, span)
    return session.bind(out, StackLength(xs.atom, span), scalar(INT64), "length", span)


def length(session: Session, out: Output, xs: Typed, span: Span | None) -> Entity:
    """`len(xs)`: int32, as all sizes that are computed."""
    if xs.length is not None and xs.length.absolute is not None:
        return size(xs.length.absolute, span)
    count = length64(session, out, xs, span)
    found = session.bind(out, OpCall("cast", (count.atom,), {"dtype": INT32}, span), scalar(INT32), "length", span)
    return range_numbers.of_range(found)


def is_not_empty(session: Session, out: Output, xs: Typed, span: Span | None) -> Entity:
    """What a list means as a condition."""
    return apply_named(session, out, "greater", [length(session, out, xs, span), Number(0, span)], {}, span, [])


def place(session: Session, out: Output, xs: Typed, index: Entity, span: Span | None, *, end: bool = False) -> Typed:
    """The position (int64) that an index means; a check that there is one. `end`: just after the last is one, too."""
    known = xs.length.absolute if xs.length is not None else None
    if isinstance(index, Size):
        index = session.materialise(out, index, span)
    elif isinstance(known, int) and isinstance(index, Number) and -known <= index.value < known:
        return number(int(index.value) % known)
    whole = length64(session, out, xs, span)
    match index:
        case Number(int(value)):
            position = number(value) if value >= 0 else compute(session, out, "add", whole, number(value), span)
        case Typed(_, type_):
            base = session.solver.fresh(Kind.BaseType)
            session.unify_at(type_, TensorType(base, ()), span, "the index of a list")
            position = _from_end(session, out, index, whole, span)
        case _:
            raise TypeCheckError("the index of a list must be an integer or a slice", span)
    upper = compare(session, out, "less_equal" if end else "less", position, whole, span)
    lower = compare(session, out, "greater_equal", position, number(0), span)
    inside = operators.apply(session, out, lookup("logical_and"), [lower, upper], {}, span, [])
    out.items.append(Binding((), Assert(inside.atom, "list index out of range", span)))
    return position


def bound(
    session: Session,
    out: Output,
    bound: Entity | None,
    size: Typed,
    low: Typed,
    high: Typed,
    missing: Typed,
    span: Span | None,
) -> Typed:
    """A slice's bound as a position between `low` and `high`."""
    match bound:
        case None | Object(None):
            return missing
        case Number(int(value)):
            position = number(value) if value >= 0 else compute(session, out, "add", size, number(value), span)
        case Typed(_, type_):
            session.unify_at(type_, TensorType(session.solver.fresh(Kind.BaseType), ()), span, "the bound of a slice")
            position = _from_end(session, out, bound, size, span)
        case _:
            raise TypeCheckError("the bounds of a slice must be integers", span)
    position = compute(session, out, "maximum", position, low, span)
    return compute(session, out, "minimum", position, high, span)


def _from_end(session: Session, out: Output, index: Typed, size: Typed, span: Span | None) -> Typed:
    """An index of the run, to which the length is added if it is negative."""
    position = operators.apply(session, out, lookup("cast"), [index], {"dtype": INT64}, span, [])
    negative = compare(session, out, "less", position, number(0), span)
    flag = operators.apply(session, out, lookup("cast"), [negative], {"dtype": INT64}, span, [])
    return compute(session, out, "add", position, compute(session, out, "multiply", flag, size, span), span)


def number(value: int) -> Typed:
    constant = Constant(np.asarray(value, np.int64))
    return Typed(constant, constant.type)


def compute(session: Session, out: Output, name: str, left: Typed, right: Typed, span: Span | None) -> Typed:
    """An int64 operation that cannot fail, without the run-time requirements of its operator."""
    atoms: tuple[Atom, ...] = (left.atom, right.atom)
    if isinstance(left.atom, Constant) and isinstance(right.atom, Constant):
        value = lookup(name).reference(left.atom.value, right.atom.value)
        return number(int(value))
    return session.bind(out, OpCall(lookup(name).name, atoms, {}, span), scalar(INT64), "position", span)


def compare(session: Session, out: Output, name: str, left: Typed, right: Typed, span: Span | None) -> Typed:
    return operators.apply(session, out, lookup(name), [left, right], {}, span, [])
