"""Collectives along an axis of examples: `relay.psum`, `pmean`, `pmax`, `pmin`, `all_gather`, `axis_index`.

They are calls of the operators of `relay/ops/collectives.py` on each tensor of a structure.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence

from relay.errors import Span, TypeCheckError, TypeMismatch
from relay.ir.definition import complete_definition, data_class
from relay.ir.dims import Dim, multiply
from relay.ir.types import BOOL, INT32, DataType, TensorType, Unknown, show
from relay.operator import lookup
from relay.typecheck.elaboration.abstract_values import (
    FUNCTIONS,
    AbstractValue,
    DynamicValue,
    Number,
    PythonObject,
    Tuple,
    TypedBlockBuilder,
    is_constant_bool,
    size,
)
from relay.typecheck.elaboration.checker import Checker
from relay.typecheck.elaboration.diagnostics.mistakes import SchemeOnly
from relay.typecheck.elaboration.expressions import operators
from relay.typecheck.elaboration.values import data
from relay.typecheck.elaboration.values.data_construction import construct
from relay.typecheck.elaboration.values.expansion import settle
from relay.typecheck.unification import resolve

Change = Callable[[AbstractValue], AbstractValue]


def reduce(
    checker: Checker,
    out: TypedBlockBuilder,
    operator: str,
    value: AbstractValue,
    axis_name: AbstractValue,
    span: Span | None,
) -> AbstractValue:
    """A structure with a reduction of each tensor over all examples along an axis, or several."""
    for name, _ in _axes(checker, axis_name, span):

        def change(leaf: AbstractValue, name: str = name) -> AbstractValue:
            leaf = _number(checker, out, leaf, span)
            return operators.apply(checker, out, lookup(operator), [leaf], {"axis_name": name}, span, [])

        value = _map(checker, out, value, change, span)
    return value


def mean(
    checker: Checker, out: TypedBlockBuilder, value: AbstractValue, axis_name: AbstractValue, span: Span | None
) -> AbstractValue:
    """A structure with the mean of each tensor over all examples along an axis, or several."""
    for name, extent in _axes(checker, axis_name, span):

        def change(leaf: AbstractValue, name: str = name, extent: Dim = extent) -> AbstractValue:
            total = operators.apply(checker, out, lookup("collective_sum"), [leaf], {"axis_name": name}, span, [])
            count = size(extent, span)
            return checker.engine.call_operator(checker, out, lookup("divide"), [total, count], (), span, [])

        value = _map(checker, out, value, change, span)
    return value


def gather(
    checker: Checker,
    out: TypedBlockBuilder,
    value: AbstractValue,
    axis_name: AbstractValue,
    options: tuple[AbstractValue, AbstractValue],
    span: Span | None,
) -> AbstractValue:
    """A structure with each tensor of all examples in place of that of one: along a new axis, or, if they are `tiled`,
    one after the other along one of its own. `options`: the axis, and `tiled`."""
    tiled = is_constant_bool(options[1])
    if not isinstance(options[0], Number) or tiled is None:
        raise TypeCheckError("axis and tiled must be known at compile time", span)
    ((name, extent), *others) = _axes(checker, axis_name, span)
    if others:
        raise TypeCheckError("all_gather takes one axis", span, help="gather along one after the other")
    place = int(options[0].specialize())

    def change(leaf: AbstractValue) -> AbstractValue:
        attributes: dict[str, object] = {"axis_name": name, "size": extent}
        whole = operators.apply(checker, out, lookup("collective_gather"), [leaf], attributes, span, [])
        type_ = resolve(whole.type)
        if not isinstance(type_, TensorType):
            raise SchemeOnly(span, "the shape of what is gathered")
        rank = type_.rank - bool(tiled)
        if not -rank <= place < rank:
            raise TypeMismatch(f"axis is {place}, and what is gathered has {rank} axes", span)
        order = list(range(1, type_.rank))
        order.insert(place % rank, 0)
        if order[0]:
            whole = operators.apply(checker, out, lookup("transpose"), [whole], {"axes": tuple(order)}, span, [])
        if not tiled:
            return whole
        shape = [type_.shape[i] for i in order]
        at = place % rank
        shape[at : at + 2] = [multiply(shape[at], shape[at + 1])]
        return operators.apply(checker, out, lookup("reshape"), [whole], {"shape": tuple(shape)}, span, [])

    return _map(checker, out, value, change, span)


def index(checker: Checker, out: TypedBlockBuilder, axis_name: AbstractValue, span: Span | None) -> AbstractValue:
    """The number of the example along an axis; along several, that of the example among all of theirs."""
    total: AbstractValue | None = None
    for name, extent in _axes(checker, axis_name, span):
        number: AbstractValue = operators.apply(
            checker, out, lookup("collective_index"), [], {"axis_name": name}, span, []
        )
        if total is not None:
            scaled = checker.engine.call_operator(
                checker, out, lookup("multiply"), [total, size(extent, span)], (), span, []
            )
            number = checker.engine.call_operator(checker, out, lookup("add"), [scaled, number], (), span, [])
        total = number
    assert total is not None
    return total


def _axes(checker: Checker, given: AbstractValue, span: Span | None) -> list[tuple[str, Dim]]:
    """The names and sizes of axes. Raises TypeCheckError for a name that no `vmap` around has."""
    items: Sequence[AbstractValue] = given.items if isinstance(given, Tuple) else (given,)
    known = dict(checker.frame.axes)  # of two with one name the inner one
    found = []
    for item in items:
        name = item.value if isinstance(item, PythonObject) else None
        if not isinstance(name, str):
            message = "the name of an axis is a text that is known at compile time"
            raise TypeCheckError(message, span, help='relay.psum(x, "batch")')
        if name not in known:
            if checker.generic:
                raise SchemeOnly(span, f"the axis {name!r}")
            close = difflib.get_close_matches(name, known, n=1)
            there = f"; there {'is' if len(known) == 1 else 'are'} {', '.join(map(repr, known))}" if known else ""
            help = f"did you mean {close[0]!r}?" if close else f"relay.vmap(f, axis_name={name!r}) around it"
            raise TypeCheckError(f"there is no axis of examples {name!r} here{there}", span, help=help)
        found.append((name, known[name]))
    if not found:
        raise TypeCheckError("there is no axis in ()", span, help='relay.psum(x, "batch")')
    return found


def _number(checker: Checker, out: TypedBlockBuilder, leaf: AbstractValue, span: Span | None) -> AbstractValue:
    """A tensor of bools as one of int32, which counts them."""
    type_ = resolve(leaf.type) if isinstance(leaf, DynamicValue) else None
    if not isinstance(type_, TensorType) or type_.base != BOOL:
        return leaf
    return operators.apply(checker, out, lookup("cast"), [leaf], {"dtype": INT32}, span, [])


def _map(
    checker: Checker, out: TypedBlockBuilder, entity: AbstractValue, change: Change, span: Span | None
) -> AbstractValue:
    """A structure with other tensors."""

    def visit(part: AbstractValue) -> AbstractValue:
        if isinstance(part, Number):
            part = checker.materialize(out, part, span)
        elif isinstance(part, DynamicValue):
            part = settle(checker, out, part, span)
        if isinstance(part, Tuple):
            return Tuple(tuple(map(visit, part.items)), part.form)
        if isinstance(part, FUNCTIONS):
            raise TypeMismatch("collectives take tensors and structures of them, found a function", span)
        return tensors(part) if isinstance(part, DynamicValue) else part

    def tensors(value: DynamicValue) -> AbstractValue:
        type_ = resolve(value.type)
        if isinstance(type_, Unknown):
            raise SchemeOnly(span, "the type of what all examples have")
        owner = data_class(complete_definition(type_.definition)) if isinstance(type_, DataType) else None
        if owner is not None and len(owner.constructors) == 1:
            assert isinstance(type_, DataType)
            (constructor,) = owner.constructors.values()
            places = range(len(complete_definition(type_.definition).constructors[0].names))
            parts = data.read_fields(checker, out, value, type_, places, span) if places else ()
            return construct(checker, out, constructor, list(map(visit, parts)), (), span)
        if not isinstance(type_, TensorType):
            raise TypeMismatch(f"collectives take tensors and structures of them, found {show(type_)}", span)
        return change(value)

    return visit(entity)
