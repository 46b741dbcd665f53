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
    PythonObject,
    Tuple,
    TypedBlockBuilder,
    integer_of,
    is_constant_bool,
)
from relay.typecheck.elaboration.checker import Checker
from relay.typecheck.elaboration.diagnostics.descriptions import index_error
from relay.typecheck.elaboration.diagnostics.mistakes import SchemeOnly
from relay.typecheck.elaboration.dynamic_lists import dynamic_lists, hash_tables, list_items, tables
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
    if tables.is_dict(xs):
        name = "without_key" if len(given) == 1 else "without_key_or"
        return hash_tables.call_function(checker, out, name, [xs, *given], span)
    if tables.is_set(xs):
        help = "write `x = min(s)`, then `s.remove(x)`"
        raise TypeCheckError("a set has no order: which element `pop` takes is not defined", span, help=help)
    if isinstance(xs, Tuple) and xs.form is not None and xs.form.cls is dict:
        return _pop_key(checker, xs, given, span)
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


def next_element(
    checker: Checker, out: TypedBlockBuilder, arguments: Sequence[AbstractValue], span: Span | None
) -> AbstractValue:
    """`next(it)` as the pair of the first element and the rest."""
    (xs,) = arguments
    xs = _expand_list(checker, out, xs, span)
    if not dynamic_lists.is_list(xs):
        help = "take the elements of a list or a generator, or define `__next__` in the class"
        raise TypeCheckError("`next` needs an iterator", span, help=help)
    return pop(checker, out, [xs, PythonNumber(0, span)], span)


def _pop_key(checker: Checker, record: Tuple, given: Sequence[AbstractValue], span: Span | None) -> AbstractValue:
    assert record.form is not None
    if not 1 <= len(given) <= 2:
        raise TypeCheckError("pop of a dict takes a key, and a value for where it is missing", span)
    key = records.key_in(checker, record, given[0], span)
    if key not in record.form.names and len(given) == 2:
        return Tuple((given[1], record))
    found = records.item(record, key, span)
    kept = [(n, v) for n, v in zip(record.form.names, record.items, strict=True) if n != key]
    return Tuple(
        (found, Tuple(tuple(v for _, v in kept), Form(dict, tuple(n for n, _ in kept), origin=record.form.origin)))
    )


def setdefault(
    checker: Checker, out: TypedBlockBuilder, arguments: Sequence[AbstractValue], span: Span | None
) -> AbstractValue:
    """`v = d.setdefault(key, default)` as the pair of v and the new d; a method of that name."""
    record, *given = arguments
    if isinstance(record, DynamicValue):
        record = _expand_list(checker, out, record, span)
    if data.data_type(record) is not None:
        return Tuple((data.call_method(checker, out, Method(record, "setdefault"), given, (), span), record))
    if not 1 <= len(given) <= 2:
        raise TypeCheckError("setdefault takes a key, and a value for where it is missing", span)
    key, default = given if len(given) == 2 else (given[0], PythonObject(None))
    if tables.is_dict(record) and isinstance(record, Tuple):
        return hash_tables.with_default(checker, out, record, key, default, span)
    if not isinstance(record, Tuple) or record.form is None or record.form.cls is not dict:
        raise TypeCheckError("only a dict has `setdefault`", span, help="start with `d = {}`")
    known = records.key_in(checker, record, key, span)
    found = record.field(known)
    return Tuple((found, record) if found is not None else (default, records.with_item(record, known, default)))


def popitem(
    checker: Checker, out: TypedBlockBuilder, arguments: Sequence[AbstractValue], span: Span | None
) -> AbstractValue:
    """`key, v = d.popitem()`: the last item, or, of an OrderedDict, the first one, as asked for, and the new d."""
    record, *given = arguments
    if isinstance(record, DynamicValue):
        record = _expand_list(checker, out, record, span)
    if data.data_type(record) is not None:
        return Tuple((data.call_method(checker, out, Method(record, "popitem"), given, (), span), record))
    is_last = is_constant_bool(given[0]) if len(given) == 1 else True
    if tables.is_dict(record) and len(given) <= 1 and is_last is not None:
        name = "without_last" if is_last else "without_first"
        return hash_tables.call_function(checker, out, name, [record], span)
    if (
        len(given) > 1
        or is_last is None
        or not isinstance(record, Tuple)
        or record.form is None
        or record.form.cls is not dict
    ):
        raise TypeCheckError("only a dict has `popitem`, with no argument but `last=`", span)
    if not record.items:
        raise TypeCheckError("popitem of an empty dict", span, help="test before: `if d:`")
    name = record.form.names[-1 if is_last else 0]
    popped = _pop_key(checker, record, [records.key_entity(name, span)], span)
    assert isinstance(popped, Tuple)
    return Tuple((Tuple((records.key_entity(name, span), popped.items[0])), popped.items[1]))


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
    if tables.is_dict(xs) or tables.is_set(xs):
        return hash_tables.emptied(checker, out, xs, span)
    if isinstance(xs, Tuple) and xs.form is not None and xs.form.cls is dict:
        return Tuple((), Form(dict, origin=xs.form.origin))
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
