"""Items of dynamic-length lists: reads, slices and updates."""

from __future__ import annotations

import attrs

from relay.errors import Span, TypeCheckError
from relay.ir.dims import Dim, add, subtract
from relay.ir.expr import (
    Assert,
    Binding,
    RefRead,
    StackGet,
    StackPrefix,
    StackSet,
)
from relay.ir.types import RefType
from relay.operator import lookup
from relay.operator.relation import Undetermined
from relay.typecheck.dims import at_least
from relay.typecheck.elaboration import constant_results
from relay.typecheck.elaboration.abstract_values import (
    AbstractValue,
    DynamicValue,
    ListLength,
    Number,
    PythonNumber,
    PythonObject,
    Tuple,
    TypedBlockBuilder,
    dim_of,
    integer_of,
)
from relay.typecheck.elaboration.checker import Checker
from relay.typecheck.elaboration.dynamic_lists import dynamic_lists, list_positions
from relay.typecheck.elaboration.dynamic_shapes import data_dependent
from relay.typecheck.elaboration.expressions import operators
from relay.typecheck.elaboration.library.library_calls import as_sequence
from relay.typecheck.elaboration.values.expansion import expand


def read(
    checker: Checker, out: TypedBlockBuilder, xs: DynamicValue, position: DynamicValue, span: Span | None
) -> AbstractValue:
    """The element at a position (int64) that is known to be right."""
    element = dynamic_lists.element_type(xs)
    cell = checker.bind(out, StackGet(xs.atom, position.atom, span), RefType(element), "cell", span)
    found = expand(checker, out, checker.bind(out, RefRead(cell.atom, span), element, "element", span), span)
    inside = xs.length.elements if xs.length is not None and xs.length.origin is None else None
    return constant_results.with_lengths(found, inside)


def item(
    checker: Checker, out: TypedBlockBuilder, xs: DynamicValue, index: AbstractValue, span: Span | None
) -> AbstractValue:
    """`xs[i]`"""
    return read(checker, out, xs, list_positions.place(checker, out, xs, index, span), span)


def slice_list(
    checker: Checker,
    out: TypedBlockBuilder,
    xs: DynamicValue,
    start: AbstractValue | None,
    stop: AbstractValue | None,
    step: AbstractValue | None,
    span: Span | None,
) -> DynamicValue:
    """`xs[start:stop:step]`, clipped as in Python. The step is known."""
    stride = 1 if step is None or (isinstance(step, PythonObject) and step.value is None) else integer_of(step)
    if not stride:
        raise TypeCheckError("the step of a slice of a list must be an integer known at compile time", span)
    known = _length_of_slice(xs.length, start, stop, stride)
    size = list_positions.length64(checker, out, xs, span)
    low, high = (
        (list_positions.number(0), size)
        if stride > 0
        else (
            list_positions.number(-1),
            list_positions.compute(checker, out, "subtract", size, list_positions.number(1), span),
        )
    )
    first = list_positions.slice_bound(checker, out, start, size, low, high, low if stride > 0 else high, span)
    last = list_positions.slice_bound(checker, out, stop, size, low, high, high if stride > 0 else low, span)
    distance = list_positions.compute(checker, out, "subtract", last, first, span)
    shifted = list_positions.compute(
        checker, out, "add", distance, list_positions.number(stride - (1 if stride > 0 else -1)), span
    )
    count = list_positions.compute(checker, out, "floor_divide", shifted, list_positions.number(stride), span)
    count = list_positions.compute(checker, out, "maximum", count, list_positions.number(0), span)
    if known is not None:
        count = data_dependent.number(checker, out, known.more, span)
    start_ = dynamic_lists.empty(checker, out, dynamic_lists.element_type(xs), span)
    result = dynamic_lists.extend_list(checker, out, start_, xs, span, first, count, stride)
    return DynamicValue(result.atom, result.type, length=known)


def _length_of_slice(
    length: ListLength | None, start: AbstractValue | None, stop: AbstractValue | None, stride: int
) -> ListLength | None:
    """The length of `xs[start:stop:stride]`, if it is known."""
    whole = length.absolute if length is not None else None
    if length is None or whole is None:
        return None
    ends = [None if e is None or (isinstance(e, PythonObject) and e.value is None) else e for e in (start, stop)]
    numbers = [dim_of(e) if isinstance(e, Number) else None for e in ends]
    if any(e is not None and n is None for e, n in zip(ends, numbers, strict=True)):
        return None
    first, last = numbers
    if isinstance(whole, int) and isinstance(first, int | None) and isinstance(last, int | None):
        return attrs.evolve(length, more=len(range(whole)[first:last:stride]))
    if ends == [None, None] and abs(stride) == 1:
        return length
    low, high = _place(first, 0, whole), _place(last, whole, whole)
    try:
        inside = stride == 1 and at_least(low, 0) and at_least(high, low) and at_least(whole, high)
    except Undetermined:
        return None
    return None if not inside else attrs.evolve(length, more=subtract(high, low))


def _place(end: Dim | None, missing: Dim, whole: Dim) -> Dim:
    if end is None:
        return missing
    return add(whole, end) if isinstance(end, int) and end < 0 else end


def with_item(
    checker: Checker,
    out: TypedBlockBuilder,
    xs: DynamicValue,
    index: AbstractValue,
    value: AbstractValue,
    span: Span | None,
) -> DynamicValue:
    """The list after `xs[i] = value`."""
    position = list_positions.place(checker, out, xs, index, span)
    cell = dynamic_lists.new_cell(checker, out, xs, value, span)
    changed = checker.bind(out, StackSet(xs.atom, position.atom, cell.atom, span), xs.type, "list", span)
    return attrs.evolve(changed, length=None if xs.length is None else xs.length.with_elements(cell.length))


def with_slice(
    checker: Checker,
    out: TypedBlockBuilder,
    xs: DynamicValue,
    start: AbstractValue | None,
    stop: AbstractValue | None,
    new: AbstractValue,
    span: Span | None,
) -> DynamicValue:
    """The list after `xs[start:stop] = new`, clipped as in Python."""
    size, low = list_positions.length64(checker, out, xs, span), list_positions.number(0)
    first = list_positions.slice_bound(checker, out, start, size, low, size, low, span)
    last = list_positions.slice_bound(checker, out, stop, size, low, size, size, span)
    last = list_positions.compute(checker, out, "maximum", first, last, span)
    new = as_sequence(checker, out, new, span)
    if not dynamic_lists.is_growing(new) and not isinstance(new, Tuple):
        raise TypeCheckError("a slice of a list is replaced by a list", span, help="write `xs[i:j] = [v]`")
    changed = dynamic_lists.concatenate_lists(checker, out, [_first_elements(checker, out, xs, first, span), new], span)
    return DynamicValue(_rest(checker, out, changed, xs, last, span).atom, xs.type)


def unpack_items(
    checker: Checker,
    out: TypedBlockBuilder,
    xs: DynamicValue,
    before: int,
    after: int,
    has_rest: bool,
    span: Span | None,
) -> tuple[AbstractValue, ...]:
    """`a, *rest, b = xs`, and `a, b = xs` without a rest: the length is checked at run time."""
    count, size = before + after, list_positions.length64(checker, out, xs, span)
    comparison = "greater_equal" if has_rest else "equal"
    fits = operators.apply(checker, out, lookup(comparison), [size, list_positions.number(count)], {}, span, [])
    message = f"expected {'at least ' if has_rest else ''}{count} values to unpack"
    out.items.append(Binding((), Assert(checker.materialize(out, fits, span).atom, message, span)))
    first = [read(checker, out, xs, list_positions.number(i), span) for i in range(before)]
    if not has_rest:
        return tuple(first)
    stop: AbstractValue | None = PythonNumber(-after, span) if after else None
    rest = slice_list(checker, out, xs, PythonNumber(before, span), stop, None, span)
    ends = (
        list_positions.compute(checker, out, "subtract", size, list_positions.number(i), span)
        for i in range(after, 0, -1)
    )
    return (*first, rest, *(read(checker, out, xs, end, span) for end in ends))


def insert_item(
    checker: Checker,
    out: TypedBlockBuilder,
    xs: DynamicValue,
    index: AbstractValue,
    value: AbstractValue,
    span: Span | None,
) -> DynamicValue:
    """The list after `xs.insert(i, value)`, where i is clipped as in Python."""
    size = list_positions.length64(checker, out, xs, span)
    position = list_positions.slice_bound(checker, out, index, size, list_positions.number(0), size, size, span)
    changed = dynamic_lists.push(checker, out, _first_elements(checker, out, xs, position, span), value, span)
    result = _rest(checker, out, changed, xs, position, span)
    return DynamicValue(result.atom, result.type, length=None if xs.length is None else xs.length.plus(1))


def pop_item(
    checker: Checker, out: TypedBlockBuilder, xs: DynamicValue, index: AbstractValue, span: Span | None
) -> tuple[AbstractValue, DynamicValue]:
    """The element that `xs.pop(i)` gives, and the list after it."""
    position = list_positions.place(checker, out, xs, index, span)
    found = read(checker, out, xs, position, span)
    if isinstance(index, Number) and index.specialize() == -1:
        changed = checker.bind(out, StackPrefix(xs.atom, position.atom, span), xs.type, "list", span)
    else:
        after = list_positions.compute(checker, out, "add", position, list_positions.number(1), span)
        changed = _rest(checker, out, _first_elements(checker, out, xs, position, span), xs, after, span)
    return found, DynamicValue(changed.atom, changed.type, length=None if xs.length is None else xs.length.plus(-1))


def _first_elements(
    checker: Checker, out: TypedBlockBuilder, xs: DynamicValue, count: DynamicValue, span: Span | None
) -> DynamicValue:
    """A list of the first elements."""
    return dynamic_lists.extend_list(
        checker, out, dynamic_lists.empty(checker, out, dynamic_lists.element_type(xs), span), xs, span, None, count
    )


def _rest(
    checker: Checker,
    out: TypedBlockBuilder,
    xs: DynamicValue,
    source: DynamicValue,
    start: DynamicValue,
    span: Span | None,
) -> DynamicValue:
    """The list with the elements of another one from a position on."""
    count = list_positions.compute(
        checker, out, "subtract", list_positions.length64(checker, out, source, span), start, span
    )
    return dynamic_lists.extend_list(checker, out, xs, source, span, start, count)
