"""Dicts and sets whose keys are known at run time only. They are records of dynamic lists (`relay/library`).

A dict that the program makes is a record of its keys, which are static, until it gets, or is asked for, a key that is
not; then elaboration starts again, and where the dict is made there is a hash table.
"""

from __future__ import annotations

import collections
from collections.abc import Mapping, Sequence

from relay.errors import Span, TypeCheckError
from relay.ir.structure import ordered_keys
from relay.ir.types import INT64, BaseClass, Form, show
from relay.operator import lookup
from relay.typecheck.elaboration.abstract_values import (
    AbstractValue,
    DynamicValue,
    GlobalFunction,
    PythonNumber,
    PythonObject,
    SliceItem,
    Tuple,
    TypedBlockBuilder,
    Zip,
)
from relay.typecheck.elaboration.checker import Checker
from relay.typecheck.elaboration.control_flow import optionals
from relay.typecheck.elaboration.diagnostics.mistakes import SchemeOnly
from relay.typecheck.elaboration.dynamic_lists import dynamic_lists, tables
from relay.typecheck.elaboration.expressions import operators
from relay.typecheck.elaboration.library import overload_calls
from relay.typecheck.elaboration.library.library_calls import list_elements, written_in_place
from relay.typecheck.elaboration.library.overloads import Call, LibraryFunction, Rule, implements
from relay.typecheck.elaboration.members.iterated import iterated
from relay.typecheck.elaboration.values import records, texts
from relay.typecheck.elaboration.values.data import is_text
from relay.typecheck.elaboration.values.expansion import expand, settle
from relay.typecheck.elaboration.values.tensors import tensor_type
from relay.typecheck.unification import resolve

FEWEST = 8
"""The slots of an empty table."""

_functions: Mapping[str, LibraryFunction] = {}


def use_language(dictionary: type, key_set: type, functions: Mapping[str, LibraryFunction]) -> None:
    """Say which classes hash tables have, and which functions of the language change them."""
    global _functions
    _functions = functions
    tables.register(dictionary, key_set)
    rules: dict[str, Rule] = {
        "items": _items,
        "get": _get,
        "counted__": _counted,
        "__getitem__": _item,
        "__contains__": _contains,
    }
    for cls in (dictionary, key_set):
        for name, rule in rules.items():
            if name in vars(cls):
                implements(getattr(cls, name), name=name)(rule)


def hash_code(key: object) -> int:
    """In the language: where to look for a key first."""
    raise NotImplementedError


def slot_of(slots: list[int], keys: list[object], key: object) -> int:
    """In the language: the slot of a key."""
    raise NotImplementedError


def place_of(table: object, key: object) -> int:
    """In the language: the place of a key; -1 where it is missing."""
    raise NotImplementedError


def as_element(elements: list[object], value: object) -> object:
    """In the language: the value as an element of a list."""
    raise NotImplementedError


def as_dict(other: object) -> object:
    """In the language: a hash table with the items of a dict."""
    raise NotImplementedError


def as_set(elements: object) -> object:
    """In the language: a set of these elements, of a set that is known among others."""
    raise NotImplementedError


def empty(checker: Checker, out: TypedBlockBuilder, name: str, span: Span | None) -> Tuple:
    """A `dict` or `set` without keys."""
    slots = Tuple((PythonNumber(-1, span),) * FEWEST, Form(list))
    names = tables.FIELDS if name == "dict" else tables.FIELDS[:2]
    parts = [slots, *(Tuple((), Form(list), None, span) for _ in names[1:])]
    lists = (dynamic_lists.as_growing(checker, out, part, span) for part in parts)
    return Tuple(tuple(lists), Form(tables.class_named(name), names))


def emptied(checker: Checker, out: TypedBlockBuilder, table: AbstractValue, span: Span | None) -> Tuple:
    """A dict or set of the same types without keys."""
    assert isinstance(table, Tuple) and table.form is not None
    slots = empty(checker, out, "set", span).items[0]
    lists = [part for part in table.items[1:] if isinstance(part, DynamicValue)]
    fresh = (dynamic_lists.empty(checker, out, dynamic_lists.element_type(part), span) for part in lists)
    return Tuple((slots, *fresh), table.form)


def call_function(
    checker: Checker, out: TypedBlockBuilder, name: str, operands: Sequence[AbstractValue], span: Span | None
) -> AbstractValue:
    """Call a function of hash tables. A string that is known is a run-time value there, as a table's keys are: each
    would make a function of its own."""
    function = GlobalFunction(_functions[name].__relay__)
    given = [texts.of_run(checker, out, o, span) for o in operands]
    return checker.engine.call_function(checker, out, function, given, (), span)


def with_item(
    checker: Checker,
    out: TypedBlockBuilder,
    table: AbstractValue,
    key: AbstractValue,
    value: AbstractValue,
    span: Span | None,
) -> AbstractValue:
    """The dict after `d[key] = value`."""
    assert isinstance(table, Tuple)
    values = table.items[2]
    assert isinstance(values, DynamicValue)
    value = dynamic_lists.element(checker, out, values, value, span, "a value of the dict")
    return call_function(checker, out, "with_item", [table, key, value], span)


def updated(
    checker: Checker, out: TypedBlockBuilder, table: AbstractValue, others: Sequence[AbstractValue], span: Span | None
) -> AbstractValue:
    """The dict after `d.update(other)`, of dicts of either kind, and of pairs of keys and values."""
    for other in others:
        if isinstance(other, DynamicValue):
            other = expand(checker, out, other, span)
        if tables.is_dict(other):
            table = call_function(checker, out, "updated", [table, other], span)
        elif isinstance(other, Tuple) and other.form is not None and other.form.cls is dict:
            for key, value in zip(other.form.names, other.items, strict=True):
                table = with_item(checker, out, table, records.key_entity(key, span), value, span)
        elif isinstance(other, Tuple) and other.form is not None and other.form.names:
            raise TypeCheckError("only a dict can be merged into a dict", span)
        else:
            pairs = _listed(checker, out, other, span)
            table = call_function(checker, out, "updated_by_pairs", [table, pairs], span)
    return table


def keyword_items(keywords: Sequence[tuple[str, AbstractValue]]) -> list[AbstractValue]:
    """The keywords of a call as a dict, if there are any."""
    names, values = tuple(name for name, _ in keywords), tuple(value for _, value in keywords)
    return [Tuple(values, Form(dict, names))] if names else []


def _items(call: Call, table: AbstractValue, /) -> AbstractValue:
    checker, out, span = call.site
    whole = expand(checker, out, table, span) if isinstance(table, DynamicValue) else table
    assert isinstance(whole, Tuple)
    return Zip(whole.items[1:])


def set_of(checker: Checker, out: TypedBlockBuilder, elements: AbstractValue, span: Span | None) -> AbstractValue:
    """`set(elements)`"""
    if tables.is_set(elements):
        return elements
    made: AbstractValue = empty(checker, out, "set", span)
    if isinstance(elements, PythonObject) and isinstance(elements.value, frozenset):
        elements = Tuple(tuple(records.key_entity(key, span) for key in ordered_keys(elements.value)))
    if isinstance(elements, Tuple) and elements.form is None:
        for item in elements.items:
            made = call_function(checker, out, "with_element", [made, item], span)
        return made
    xs = _listed(checker, out, iterated(checker, out, elements, span), span)
    return call_function(checker, out, "with_elements", [made, xs], span)


def _listed(checker: Checker, out: TypedBlockBuilder, elements: AbstractValue, span: Span | None) -> AbstractValue:
    """The elements as a dynamic list: the function that goes through them is then one for all of them."""
    xs = list_elements(checker, out, elements, span)
    return dynamic_lists.as_growing(checker, out, texts.of_run(checker, out, xs, span), span)


@implements(as_set)
def _as_set(call: Call, elements: AbstractValue, /) -> AbstractValue:
    return set_of(*call.site[:2], elements, call.span)


def change_set(
    checker: Checker,
    out: TypedBlockBuilder,
    name: str,
    whole: AbstractValue,
    given: Sequence[AbstractValue],
    span: Span | None,
) -> AbstractValue:
    """The set after `s.add(x)` and the like."""
    if isinstance(whole, PythonObject) and isinstance(whole.value, frozenset):
        whole = set_of(checker, out, whole, span)
    return call_function(checker, out, _CHANGES[name], [whole, *given], span)


_CHANGES = {
    "add": "with_element",
    "discard": "without_element",
    "remove": "without_known_element",
    "update": "union_of",
    "intersection_update": "intersection_of",
    "difference_update": "difference_of",
    "symmetric_difference_update": "symmetric_difference_of",
}
"""The functions for the methods that change a set."""


def is_changed_set(whole: AbstractValue) -> bool:
    """True if a value is a set of either kind, which a method changes."""
    return tables.is_set(whole) or (isinstance(whole, PythonObject) and isinstance(whole.value, frozenset))


def with_default(
    checker: Checker,
    out: TypedBlockBuilder,
    table: Tuple,
    key: AbstractValue,
    default: AbstractValue,
    span: Span | None,
) -> AbstractValue:
    """The value of a key, and the dict, which gets a value where the key is missing."""
    values = table.items[2]
    assert isinstance(values, DynamicValue)
    default = dynamic_lists.element(checker, out, values, default, span, "a value of the dict")
    return call_function(checker, out, "with_default", [table, key, default], span)


def _in_place(call: Call, name: str, *operands: AbstractValue) -> AbstractValue:
    """The result of a function that looks into a table, elaborated where it is called: a call would share the lists,
    which are changed in place as long as they are not."""
    checker, out, span = call.site
    whole = [expand(checker, out, o, span) if isinstance(o, DynamicValue) else o for o in operands]
    return written_in_place(checker, out, _functions[name].__relay__, whole, span)


@implements(slot_of)
def _slot_of(call: Call, slots: AbstractValue, keys: AbstractValue, key: AbstractValue, /) -> AbstractValue:
    return _in_place(call, "probed", slots, keys, key)


@implements(place_of)
def _place_of(call: Call, table: AbstractValue, key: AbstractValue, /) -> AbstractValue:
    return _in_place(call, "lookup", table, key)


def _contains(call: Call, table: AbstractValue, key: AbstractValue, /) -> AbstractValue:
    return _in_place(call, "contains", table, key)


def _item(call: Call, table: AbstractValue, /, *items: AbstractValue | SliceItem) -> AbstractValue:
    key = overload_calls.key_of(items)
    if key is None:
        raise TypeCheckError("a dict has no slices", call.span, help="index it by a key")
    return _in_place(call, "item", table, key)


def _get(
    call: Call, table: AbstractValue, key: AbstractValue, default: AbstractValue | None = None, /
) -> AbstractValue:
    assert isinstance(table, Tuple)
    given = PythonObject(None) if default is None else default
    if not optionals.is_none(given):
        values = table.items[2]
        assert isinstance(values, DynamicValue)
        given = dynamic_lists.element(call.checker, call.out, values, given, call.span, "a value of the dict")
    return _in_place(call, "item_or", table, key, given)


@implements(collections.Counter)
def _counter(call: Call, elements: AbstractValue | None = None, /) -> AbstractValue:
    checker, out, span = call.site
    table = empty(checker, out, "dict", span)
    if elements is None:
        return table
    if tables.is_dict(elements) or (isinstance(elements, Tuple) and elements.form and elements.form.cls is dict):
        return updated(checker, out, table, [elements], span)
    return _counted(call, table, elements)


def _counted(call: Call, table: AbstractValue, elements: AbstractValue, /) -> AbstractValue:
    checker, out, span = call.site
    if tables.is_dict(elements) or (isinstance(elements, Tuple) and elements.form and elements.form.cls is dict):
        help = "write a loop: `for k, n in other.items(): c[k] += n`"
        raise TypeCheckError("a Counter is updated by elements, found a dict", span, help=help)
    xs = _listed(checker, out, iterated(checker, out, elements, span, in_any_order=True), span)
    return call_function(checker, out, "counted", [table, xs], span)


@implements(as_dict)
def _as_dict(call: Call, other: AbstractValue, /) -> AbstractValue:
    if tables.is_dict(other):
        return other
    checker, out, span = call.site
    return updated(checker, out, empty(checker, out, "dict", span), [other], span)


@implements(as_element)
def _as_element(call: Call, xs: AbstractValue, value: AbstractValue, /) -> AbstractValue:
    assert isinstance(xs, DynamicValue)
    try:
        return dynamic_lists.element(call.checker, call.out, xs, value, call.span, "a run-time key")
    except TypeCheckError:
        if call.checker.generic:  # a call may tell the rounds of loops, so that all keys are static
            raise SchemeOnly(call.span, "whether the keys of the dict are static") from None
        raise


@implements(hash_code)
def _hash_code(call: Call, key: AbstractValue, /) -> AbstractValue:
    return call.apply("right_shift", _mixed(call, key), PythonNumber(20, call.span))


_FACTOR = PythonNumber(0x9E3779B97F4A7C15 - (1 << 64))


def _mixed(call: Call, key: AbstractValue) -> AbstractValue:
    """An int64 that follows from all of a key."""
    checker, out, span = call.site
    if isinstance(key, DynamicValue):
        key = settle(checker, out, key, span)
    if is_text(key):
        whole = texts.hash_code(checker, out, key, span)
    elif isinstance(key, Tuple):
        whole = PythonNumber(len(key.items), span)
        for item in key.items:
            whole = call.apply(
                "bitwise_xor", call.apply("multiply", whole, PythonNumber(1000003, span)), _mixed(call, item)
            )
    else:
        whole = _integer(call, key)
    return call.apply("multiply", whole, _FACTOR)


def _integer(call: Call, key: AbstractValue) -> AbstractValue:
    checker, out, span = call.site
    type_ = tensor_type(key) if isinstance(key, DynamicValue) else None
    wanted = frozenset({BaseClass.INTEGER, BaseClass.BOOL})
    if type_ is None or type_.shape != () or not checker.solver.restrict(type_.base, wanted):
        if checker.generic and isinstance(key, DynamicValue) and checker.is_open(key):
            raise SchemeOnly(span, "the type of the key")
        found = show(resolve(key.type)) if isinstance(key, DynamicValue) else "another value"
        raise TypeCheckError(
            f"run-time keys are integers, booleans, strings and tuples of these, found {found}",
            span,
            help="make an integer of it: int(x * 1000.0)",
        )
    return operators.apply(checker, out, lookup("cast"), [key], {"dtype": INT64}, span, [])
