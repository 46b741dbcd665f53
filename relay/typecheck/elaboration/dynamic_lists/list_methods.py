"""List methods as pure functions: the front end assigns their results to the variable."""

from __future__ import annotations

from collections.abc import Sequence

from relay.errors import Span, TypeCheckError
from relay.ir.types import Form
from relay.typecheck.elaboration.abstract_values import (
    AbstractValue,
    DynamicValue,
    Method,
    Number,
    PythonNumber,
    Tuple,
    TypedBlockBuilder,
    integer_of,
)
from relay.typecheck.elaboration.checker import Checker
from relay.typecheck.elaboration.diagnostics.descriptions import index_error
from relay.typecheck.elaboration.diagnostics.mistakes import SchemeOnly
from relay.typecheck.elaboration.dynamic_lists import dynamic_lists, list_items
from relay.typecheck.elaboration.values import data, records
from relay.typecheck.elaboration.values.expansion import expand


def pop(
    checker: Checker, out: TypedBlockBuilder, arguments: Sequence[AbstractValue], span: Span | None
) -> AbstractValue:
    """`v = xs.pop(i)` as the pair of v and the new xs; `d.pop(key)`; a method of that name."""
    xs, *given = arguments
    xs = _expand_list(checker, out, xs, span)
    if data.data_type(xs) is not None:
        return Tuple((data.call_method(checker, out, Method(xs, "pop"), given, (), span), xs))
    if isinstance(xs, Tuple) and xs.form is not None and xs.form.cls is dict:
        return _pop_key(xs, given, span)
    index: AbstractValue = given[0] if given else PythonNumber(-1, span)
    if len(given) > 1:
        raise TypeCheckError(f"pop takes at most one argument, found {len(given)}", span)
    if dynamic_lists.is_literal(xs) and isinstance(xs, Tuple) and (position := integer_of(index)) is not None:
        items = list(xs.items)
        if not -len(items) <= position < len(items):
            if checker.frame.maybe:  # it may have more items when this runs
                grown = dynamic_lists.as_growing(checker, out, xs, span)
                return Tuple(list_items.pop_item(checker, out, grown, index, span))
            raise index_error("list", position, len(items), span)
        found = items.pop(position)
        return Tuple((found, Tuple(tuple(items), xs.form)))
    if not dynamic_lists.is_list(xs):
        raise TypeCheckError("only a list or a dict has `pop`", span)
    found, rest = list_items.pop_item(checker, out, dynamic_lists.as_growing(checker, out, xs, span), index, span)
    return Tuple((found, rest))


def _pop_key(record: Tuple, given: Sequence[AbstractValue], span: Span | None) -> AbstractValue:
    assert record.form is not None
    if not 1 <= len(given) <= 2:
        raise TypeCheckError("pop of a dict takes a key, and a value for where it is missing", span)
    key = records.key_of(given[0], span)
    if key not in record.form.names and len(given) == 2:
        return Tuple((given[1], record))
    found = records.item(record, key, span)
    kept = [(n, v) for n, v in zip(record.form.names, record.items, strict=True) if n != key]
    return Tuple((found, Tuple(tuple(v for _, v in kept), Form(dict, tuple(n for n, _ in kept)))))


def insert(
    checker: Checker, out: TypedBlockBuilder, arguments: Sequence[AbstractValue], span: Span | None
) -> AbstractValue:
    """The list after `xs.insert(i, v)`."""
    xs, index, value = arguments
    xs = _expand_list(checker, out, xs, span)
    if isinstance(xs, Tuple) and dynamic_lists.is_literal(xs) and isinstance(index, Number):
        items = list(xs.items)
        items.insert(int(index.specialize()), value)
        return Tuple(tuple(items), xs.form)
    _require_list(xs, "insert", span)
    return list_items.insert_item(checker, out, dynamic_lists.as_growing(checker, out, xs, span), index, value, span)


def clear(
    checker: Checker, out: TypedBlockBuilder, arguments: Sequence[AbstractValue], span: Span | None
) -> AbstractValue:
    """The list after `xs.clear()`."""
    xs = _expand_list(checker, out, arguments[0], span)
    _require_list(xs, "clear", span)
    if isinstance(xs, Tuple):
        return Tuple((), xs.form)
    assert isinstance(xs, DynamicValue)
    return dynamic_lists.empty(checker, out, dynamic_lists.element_type(xs), span)


def reverse(
    checker: Checker, out: TypedBlockBuilder, arguments: Sequence[AbstractValue], span: Span | None
) -> AbstractValue:
    """The list after `xs.reverse()`."""
    xs = _expand_list(checker, out, arguments[0], span)
    _require_list(xs, "reverse", span)
    if isinstance(xs, Tuple):
        return Tuple(xs.items[::-1], xs.form)
    assert isinstance(xs, DynamicValue)
    return list_items.slice_list(checker, out, xs, None, None, PythonNumber(-1, span), span)


def _expand_list(checker: Checker, out: TypedBlockBuilder, xs: AbstractValue, span: Span | None) -> AbstractValue:
    """The abstract value of a list. Raises SchemeOnly where only a call tells whether it is one."""
    if checker.is_open(xs):
        raise SchemeOnly(span, "whether this is a list")
    return expand(checker, out, xs, span) if isinstance(xs, DynamicValue) else xs


def _require_list(xs: AbstractValue, method: str, span: Span | None) -> None:
    if not dynamic_lists.is_list(xs):
        raise TypeCheckError(f"only a list has `{method}`", span, help="start with `xs = []`")
