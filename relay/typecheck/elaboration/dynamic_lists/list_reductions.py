"""Reductions of dynamic-length lists: sums, extrema, stacked tensors."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from relay.errors import Span, TypeCheckError
from relay.ir.dims import ANY, Dim
from relay.ir.expr import (
    Assert,
    Binding,
    Constant,
    Counter,
    Loop,
    LoopLabel,
    Next,
    OpCall,
)
from relay.ir.sizes.facts import mentions_made
from relay.ir.types import (
    BOOL,
    INT32,
    INT64,
    Kind,
    TensorType,
    Unknown,
    prune,
    scalar,
    show,
)
from relay.operator import lookup
from relay.typecheck.elaboration.abstract_values import (
    AbstractValue,
    DeferredBinding,
    DynamicValue,
    Tuple,
    TypedBlockBuilder,
)
from relay.typecheck.elaboration.checker import Checker
from relay.typecheck.elaboration.diagnostics.mistakes import SchemeOnly
from relay.typecheck.elaboration.dynamic_lists import dynamic_lists, list_items, list_positions
from relay.typecheck.elaboration.dynamic_shapes import data_dependent
from relay.typecheck.elaboration.expressions import dtype_promotion, operators
from relay.typecheck.unification import is_known, resolve


def fold(
    checker: Checker,
    out: TypedBlockBuilder,
    xs: DynamicValue,
    initial: DynamicValue,
    step: Callable[[TypedBlockBuilder, DynamicValue, AbstractValue], DynamicValue],
    span: Span | None,
) -> DynamicValue:
    """`for x in xs: value = step(value, x)`"""
    value, index = checker.variable("value", initial.type, span), checker.variable("i", scalar(INT64), span)
    label, body = LoopLabel("fold"), TypedBlockBuilder()
    element = list_items.read(checker, body, xs, DynamicValue(index, scalar(INT64)), span)
    new = step(body, DynamicValue(value, initial.type), element)
    checker.unify_at(new.type, initial.type, span, "the sum so far")
    body.terminator = Next(label, (new.atom,), span)
    result = checker.variable("value", initial.type, span)
    trip = Counter(index, list_positions.length64(checker, out, xs, span).atom)
    out.items.append(
        DeferredBinding((result,), lambda: Loop(label, (value,), (initial.atom,), body.block(), trip, span))
    )
    return DynamicValue(result, initial.type)


def total(checker: Checker, out: TypedBlockBuilder, xs: DynamicValue, span: Span | None) -> DynamicValue:
    """`sum(xs)`: of nothing it is 0."""
    element = resolve(dynamic_lists.element_type(xs))
    if not is_known(element) and not checker.generic:
        checker.solver.run()
        element = resolve(element)
    if isinstance(element, Unknown) and checker.generic:
        raise SchemeOnly(span, "the elements of the list")
    is_open = isinstance(element, Unknown) or (isinstance(element, TensorType) and not is_known(element.shape))
    if is_open and not checker.generic:  # numbers, unless something has said otherwise before
        element = TensorType(checker.solver.fresh_variable(Kind.BaseType), ())
        checker.unify_at(dynamic_lists.element_type(xs), element, span, "an element of the list")
    if not isinstance(element, TensorType):
        raise TypeCheckError(f"sum needs a list of tensors, found {show(resolve(xs.type))}", span)
    attributes: dict[str, object] = {
        "shape": element.shape,
        "dtype": INT32 if prune(element.base) == BOOL else element.base,
    }
    zero = operators.apply(checker, out, lookup("zeros"), [], attributes, span, [])

    def step(body: TypedBlockBuilder, value: DynamicValue, x: AbstractValue) -> DynamicValue:
        x = dtype_promotion.truth_as_integer(checker, body, x, span)
        return operators.apply(checker, body, lookup("add"), [value, x], {}, span, [])

    return fold(checker, out, xs, zero, step, span)


def list_extremum(
    checker: Checker, out: TypedBlockBuilder, xs: DynamicValue, operator: str, span: Span | None
) -> DynamicValue:
    """`max(xs)`, `min(xs)` by the operator of two."""
    some = list_positions.is_not_empty(checker, out, xs, span)
    out.items.append(
        Binding((), Assert(checker.materialize(out, some, span).atom, f"{operator} of an empty list", span))
    )
    first = checker.materialize(out, list_items.read(checker, out, xs, list_positions.number(0), span), span)
    return fold(
        checker,
        out,
        xs,
        first,
        lambda body, value, x: operators.apply(checker, body, lookup(operator), [value, x], {}, span, []),
        span,
    )


def any_or_all(
    checker: Checker,
    out: TypedBlockBuilder,
    xs: DynamicValue,
    condition: Callable[[TypedBlockBuilder, AbstractValue], AbstractValue],
    decides: bool,
    span: Span | None,
) -> DynamicValue:
    """`any(c(x) for x in xs)` (decides: True) or `all` (decides: False); the conditions have no effects."""
    start = Constant(np.asarray(not decides), span)
    name = "logical_or" if decides else "logical_and"

    def step(body: TypedBlockBuilder, value: DynamicValue, x: AbstractValue) -> DynamicValue:
        return operators.apply(checker, body, lookup(name), [value, condition(body, x)], {}, span, [])

    return fold(checker, out, xs, DynamicValue(start, start.type), step, span)


MANY = 8
"""From this length on, a tensor is filled from a list in a loop."""


def element_tuple(checker: Checker, out: TypedBlockBuilder, xs: DynamicValue, span: Span | None) -> Tuple:
    """The elements one by one, as the operators that join tensors want them. Their number must be known."""
    count = dynamic_lists.count(checker, xs)
    if count is None:
        element = resolve(dynamic_lists.element_type(xs))
        if isinstance(element, TensorType) and ANY in element.shape:
            raise TypeCheckError(
                f"the elements of this list may have different sizes, they are {show(element)}",
                span,
                help="join them one by one: `out = relay.concatenate([out, x])`",
            )
        if checker.generic and not is_known(element):
            raise SchemeOnly(span, "the elements of the list")
        raise TypeCheckError(
            "the number of elements of this list is only known at run time",
            span,
            help="relay.stack(xs) and relay.concatenate(xs) take such lists of tensors; others take known lengths",
        )
    return Tuple(tuple(list_items.read(checker, out, xs, list_positions.number(i), span) for i in range(count)))


def as_tensor(
    checker: Checker,
    out: TypedBlockBuilder,
    xs: DynamicValue,
    span: Span | None,
    row_of: Callable[[TypedBlockBuilder, AbstractValue], AbstractValue] | None = None,
) -> DynamicValue | None:
    """`relay.stack(xs)` by a loop. None if the list is short and its length known, or its elements are not tensors of
    known types. `row_of`: what makes a tensor of an element that is a structure."""
    count = xs.length.absolute if xs.length is not None else None
    if isinstance(count, int) and count < MANY:
        return None
    body, index = TypedBlockBuilder(), checker.variable("i", scalar(INT64), span)
    with checker.scope(body):
        entity = list_items.read(checker, body, xs, DynamicValue(index, scalar(INT64)), span)
        if row_of is not None and (isinstance(entity, Tuple) or dynamic_lists.is_growing(entity)):
            entity = row_of(body, entity)
        element = resolve(entity.type) if isinstance(entity, DynamicValue) else None
    if not isinstance(element, TensorType) or not is_known(element.shape):
        return None
    if ANY in element.shape or any(map(mentions_made, element.shape)):
        return None
    row = checker.materialize(body, entity, span)
    rounds = list_positions.length64(checker, out, xs, span)
    name = f"{getattr(xs.atom, 'name', 'list')}_length"
    length: Dim = count if count is not None else data_dependent.make(checker, out, rounds, name, span)
    type_ = TensorType(element.base, (length, *element.shape))
    attributes: dict[str, object] = {"shape": type_.shape, "dtype": type_.base}
    zeros = operators.apply(checker, out, lookup("zeros"), [], attributes, span, [])
    whole, label = checker.variable("stack", type_, span), LoopLabel("stack")
    call = OpCall("index_update", (whole, index, row.atom), {}, span)
    body.terminator = Next(label, (checker.bind(body, call, type_, "stack", span).atom,), span)
    result = checker.variable("stack", type_, span)
    trip = Counter(index, rounds.atom)
    out.items.append(DeferredBinding((result,), lambda: Loop(label, (whole,), (zeros.atom,), body.block(), trip, span)))
    return DynamicValue(result, type_)
