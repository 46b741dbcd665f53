"""Items of structures: `t[i]` of tuples, lists and dicts."""

from __future__ import annotations

import ast
import enum
from collections.abc import Sequence

from relay.errors import Span, TypeCheckError, TypeMismatch
from relay.ir.expr import Assert, Binding
from relay.ir.types import Form, Unknown, prune
from relay.operator import lookup
from relay.typecheck.dims import constant_dim as number_of
from relay.typecheck.elaboration.abstract_values import (
    AbstractValue,
    DynamicValue,
    Number,
    PythonNumber,
    PythonObject,
    SliceItem,
    Tuple,
    TypedBlockBuilder,
    integer_of,
)
from relay.typecheck.elaboration.checker import Checker
from relay.typecheck.elaboration.diagnostics.descriptions import index_error, structure_of
from relay.typecheck.elaboration.dynamic_lists import dynamic_lists, list_items
from relay.typecheck.elaboration.dynamic_shapes import data_dependent
from relay.typecheck.elaboration.expressions import known_strings, operators
from relay.typecheck.elaboration.library.overloads import Call, implements
from relay.typecheck.elaboration.values import records, texts
from relay.typecheck.elaboration.values.data import is_string_of_run
from relay.typecheck.elaboration.values.expansion import expand
from relay.typecheck.elaboration.values.labels import members_of_run
from relay.typecheck.elaboration.values.sizes import slice_number
from relay.typecheck.elaboration.values.tensors import tensor_type


def chosen_item(
    checker: Checker, out: TypedBlockBuilder, entity: Tuple, index_: DynamicValue, span: Span | None
) -> AbstractValue:
    """An item of a tuple or list that is selected at run time; all have one type then."""
    if entity.form is not None and entity.form.cls is dict and not entity.items:
        records.key_in(checker, entity, index_, span)
    if (
        entity.form is not None
        and entity.form.cls is dict
        and (place := _place_of_key(checker, out, entity.form, index_, span))
    ):
        return chosen_item(checker, out, Tuple(entity.items), place, span)
    if entity.form is not None and entity.form.names:
        message = "the key of a dict and the field of a record must be known at compile time"
        raise TypeCheckError(message, span).needing_value(index_.atom)
    stackable = all(
        isinstance(i, Number) or (isinstance(i, DynamicValue) and tensor_type(i) is not None) for i in entity.items
    )
    try:
        if stackable:
            whole = operators.apply(checker, out, lookup("stack"), entity.items, {"axis": 0}, span, [])
        else:
            whole = dynamic_lists.as_growing(checker, out, entity, span)
    except TypeMismatch as error:
        kinds = list(dict.fromkeys(map(structure_of, entity.items)))
        if len(kinds) == 1:
            raise error.needing_value(index_.atom) from None
        raise TypeMismatch(
            f"a run-time index needs elements of one type, found {kinds[0]} and {kinds[-1]}",
            span,
            help="an index that is known at compile time may select elements of different types",
        ).needing_value(index_.atom) from None
    if stackable:
        return checker.engine.index(checker, out, whole, [index_], span)
    return list_items.item(checker, out, whole, index_, span)


def _place_of_key(
    checker: Checker, out: TypedBlockBuilder, form: Form, key: DynamicValue, span: Span | None
) -> DynamicValue | None:
    """The place in a dict of a run-time string or integer, which is one of its keys: otherwise the program stops. None
    for keys of another kind."""
    if isinstance(prune(key.type), Unknown) and form.names and all(isinstance(k, str) for k in form.names):
        texts.take_as_string(checker, key, span)  # an element of a list of which nothing else is known yet
    of_text = is_string_of_run(key)
    if not form.names or not all(type(k) is (str if of_text else int) for k in form.names):
        return None
    place: AbstractValue = PythonNumber(len(form.names), span)
    for position, name in enumerate(form.names):
        known = PythonObject(name) if of_text else PythonNumber(int(name), span)
        same = checker.engine.apply_operator(checker, out, "equal", [key, known], {}, span, [])
        place = operators.apply(
            checker, out, lookup("where"), [same, PythonNumber(position, span), place], {}, span, []
        )
    checker.effect("assert", "may not find a key", span)
    count = PythonNumber(len(form.names), span)
    found = checker.engine.apply_operator(checker, out, "less", [place, count], {}, span, [])
    typed = checker.materialize(out, found, span)
    listed = ", ".join(map(repr, form.names[:8])) + (", .." if len(form.names) > 8 else "")
    out.items.append(Binding((), Assert(typed.atom, f"the dict has no such key; its keys are {listed}", span)))
    assert isinstance(place, DynamicValue)
    return place


def _item_of_member(
    checker: Checker,
    out: TypedBlockBuilder,
    entity: Tuple,
    members: type[enum.Enum],
    key: AbstractValue,
    span: Span | None,
) -> AbstractValue:
    """The item of a dict whose keys are all members of an enumeration, by one that is known at run time only."""
    names = () if entity.form is None else entity.form.names
    missing = [member for member in members if member not in names]
    if missing:
        raise TypeCheckError(f"the dict has no key {missing[0]}", span, help="give it all members, or test for them")
    ordered = Tuple(tuple(entity.items[names.index(member)] for member in members), Form(list))
    assert isinstance(key, Tuple)
    return checker.engine.index(checker, out, ordered, [key.items[0]], span)


@implements(tuple.__getitem__, list.__getitem__, dict.__getitem__)
def _item(call: Call, entity: AbstractValue, /, *items: AbstractValue | SliceItem) -> AbstractValue:
    checker, out, span = call.site
    if isinstance(entity, DynamicValue):
        return list_item(checker, out, entity, items, span)
    assert isinstance(entity, Tuple)
    if entity.items and len(items) == 1 and not isinstance(items[0], SliceItem):
        key = expand(checker, out, items[0], span) if isinstance(items[0], DynamicValue) else items[0]
        if (members := members_of_run(key)) is not None:
            return _item_of_member(checker, out, entity, members, key, span)
        position = data_dependent.number_at_run_time(checker, out, items[0], span)
        if isinstance(position, DynamicValue):
            return chosen_item(checker, out, entity, position, span)
    return tuple_item(checker, out, entity, items, span)


def _is_of_run(item: AbstractValue | SliceItem) -> bool:
    """True for a run-time index, and for a slice with run-time bounds."""
    bounds = (item.start, item.stop, item.step) if isinstance(item, SliceItem) else (item,)
    return any(isinstance(bound, DynamicValue) for bound in bounds)


@implements(str.__getitem__)
def _character(call: Call, text: AbstractValue, /, *items: AbstractValue | SliceItem) -> AbstractValue:
    if is_string_of_run(text) or any(map(_is_of_run, items)):
        return texts.item(call.checker, call.out, text, items, call.span)
    if not isinstance(text, PythonObject):
        raise TypeCheckError("text with run-time values cannot be indexed", call.span)
    return known_strings.item(text.value, items, call.span)  # type: ignore[arg-type]


def list_item(
    checker: Checker,
    out: TypedBlockBuilder,
    xs: DynamicValue,
    items: Sequence[AbstractValue | SliceItem],
    span: Span | None,
) -> AbstractValue:
    if len(items) != 1:
        raise TypeCheckError("a list has one index", span, help="index its element: xs[i][j]")
    item = items[0]
    if isinstance(item, SliceItem):
        return list_items.slice_list(checker, out, xs, item.start, item.stop, item.step, span)
    return list_items.item(checker, out, xs, item, span)


def tuple_item(
    checker: Checker,
    out: TypedBlockBuilder,
    entity: Tuple,
    items: Sequence[AbstractValue | SliceItem],
    span: Span | None,
) -> AbstractValue:
    """`t[i]`, `t[i:j]` and `d["k"]`. A list whose slice is decided at run time becomes one of dynamic length."""
    is_dict = entity.form is not None and entity.form.cls is dict
    if is_dict and len(items) > 1:
        items = [Tuple(tuple(i for i in items if not isinstance(i, SliceItem)))]  # the key is a tuple
    if len(items) == 1:
        item = items[0]
        if is_dict and isinstance(item, SliceItem):
            raise TypeCheckError("a dict has no slices", span, help="index it by a key")
        if is_dict or (isinstance(item, PythonObject) and isinstance(item.value, str)):
            assert not isinstance(item, SliceItem)
            key = records.key_in(checker, entity, item, span)
            if entity.form is None or not (is_dict or entity.form.names):
                raise without_fields(checker, entity, key, f"has no key {key!r}", _container_text(span), span)
            return records.item(entity, key, span)
        if (index := integer_of(item)) is not None:
            count = len(entity.items)
            if not -count <= index < count:
                raise index_error("list" if dynamic_lists.is_literal(entity) else "tuple", index, count, span)
            return entity.items[index]
        if isinstance(item, SliceItem):
            if dynamic_lists.is_literal(entity) and any(isinstance(b, DynamicValue) for b in (item.start, item.stop)):
                xs = dynamic_lists.as_growing(checker, out, entity, span)
                return list_items.slice_list(checker, out, xs, item.start, item.stop, item.step, span)
            bounds = [slice_number(b, span) for b in (item.start, item.stop, item.step)]
            chosen = entity.items[slice(*(b if b is None else number_of(b) for b in bounds))]
            return Tuple(chosen, entity.form if dynamic_lists.is_literal(entity) else None)
    raise TypeCheckError("the index of a tuple must be an integer known at compile time", span)


def _container_text(span: Span | None) -> str:
    """The text of the indexed container in `g["w"]`."""
    if span is None or span.line != span.end_line:
        return "it"
    text = span.source.line(span.line)[span.column - 1 : span.end_column - 1]
    try:
        node = ast.parse(text, mode="eval").body
    except SyntaxError:
        return "it"
    return (isinstance(node, ast.Subscript) and ast.get_source_segment(text, node.value)) or "it"


def without_fields(
    checker: Checker, entity: Tuple, name: str, lacks: str, written: str, span: Span | None
) -> TypeCheckError:
    """The error for a field of a tuple or list that has none. One of the gradients in it may have the field: a
    derivative with respect to several parameters is a tuple."""
    count = len(entity.items)
    what = "list" if dynamic_lists.is_literal(entity) else "tuple"
    having = (i for i, item in enumerate(entity.items) if isinstance(item, Tuple) and item.field(name) is not None)
    position = next(having, 0)
    places = checker.gradients.get(entity)
    if places is not None:
        found = f"{written} {lacks}: it is a tuple of {count}, one for each parameter"
        hint = f"did you mean `wrt={places[position]}`, or `{written}[{position}]`?"
        return TypeCheckError(found, span, help=hint)
    rest = f"its items are {written}[0] to {written}[{count - 1}]" if count > 1 else None
    return TypeCheckError(f"{written} {lacks}: it is a {what} of {count}", span, help=rest)
