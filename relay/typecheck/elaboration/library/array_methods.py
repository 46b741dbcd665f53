"""Methods of arrays that are called otherwise than the operator of their name; making and changing structures."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from relay.errors import TypeCheckError
from relay.ir.types import Form, TupleType, Unknown, prune
from relay.operator import lookup
from relay.typecheck.elaboration.abstract_values import AbstractValue, DynamicValue, Number, PythonObject, Tuple
from relay.typecheck.elaboration.dynamic_lists import hash_tables, tables
from relay.typecheck.elaboration.library.ordering import list_method
from relay.typecheck.elaboration.library.overloads import Call, Member, implements
from relay.typecheck.elaboration.library.python_builtins import clip
from relay.typecheck.elaboration.members.elements import elements
from relay.typecheck.elaboration.values import records
from relay.typecheck.elaboration.values.records import key_entity, key_of
from relay.typecheck.elaboration.values.tensors import tensor_type


@implements(np.ndarray.clip)
def _clip(call: Call, x: AbstractValue, /, *bounds: AbstractValue, **named: AbstractValue) -> AbstractValue:
    return clip(call.checker, call.out, x, bounds, call.keywords, call.span)


@implements(
    np.ndarray.copy, Member(np.ndarray, "clone", is_called=True), Member(np.ndarray, "contiguous", is_called=True)
)
def _copy(call: Call, x: AbstractValue, /) -> AbstractValue:
    """The value itself: values never change, so a copy is as good as the original."""
    return x


@implements(np.ndarray.astype)
def _astype(call: Call, x: AbstractValue, /, *arguments: AbstractValue, **named: AbstractValue) -> AbstractValue:
    return _call_operator(call, "cast")


@implements(np.ndarray.reshape)
def _reshape(call: Call, x: AbstractValue, /, *shape: AbstractValue, **named: AbstractValue) -> AbstractValue:
    """`x.reshape(2, 3)`, or with a tuple."""
    return _call_operator(call, "reshape", shape and not named and all(map(_may_be_size, shape)))


@implements(np.ndarray.view)
def _view(call: Call, x: AbstractValue, /, *shape: AbstractValue, **named: AbstractValue) -> AbstractValue:
    """PyTorch's `x.view(2, 3)`, or with a tuple."""
    return _call_operator(call, "view", shape and not named and all(map(_may_be_size, shape)))


@implements(Member(np.ndarray, "permute", is_called=True))
def _permute(call: Call, x: AbstractValue, /, *axes: AbstractValue, **named: AbstractValue) -> AbstractValue:
    """PyTorch's `x.permute(1, 0)`, or with a tuple."""
    return _call_operator(call, "permute", axes and not named and all(map(_may_be_size, axes)))


@implements(np.ndarray.item)
def _only_element(call: Call, x: AbstractValue, /, *arguments: AbstractValue) -> AbstractValue:
    """The one element of an array, as a scalar."""
    if arguments:
        raise TypeCheckError("`item` takes no arguments here", call.span, help="write x[i]")
    engine = call.checker.engine
    return engine.call_operator(call.checker, call.out, lookup("reshape"), [x, Tuple(())], (), call.span, [])


@implements(np.ndarray.transpose)
def _transpose(call: Call, x: AbstractValue, /, *axes: AbstractValue, **named: AbstractValue) -> AbstractValue:
    """`x.transpose(1, 0)`, or with a tuple."""
    return _call_operator(call, "transpose", len(axes) > 1 and not named and all(map(_may_be_size, axes)))


def _call_operator(call: Call, name: str, in_tuple: object = False) -> AbstractValue:
    """An operator; its operand, and the rest `in_tuple`."""
    x, *rest = call.arguments
    given = [x, Tuple(tuple(rest))] if in_tuple else call.arguments
    engine = call.checker.engine
    return engine.call_operator(call.checker, call.out, lookup(name), given, call.keywords, call.span, call.described)


def _may_be_size(entity: AbstractValue) -> bool:
    if not isinstance(entity, DynamicValue):
        return isinstance(entity, Number)
    type_ = tensor_type(entity)
    return type_.rank == 0 if type_ is not None else isinstance(prune(entity.type), Unknown)


# ---- structures


@implements(list.index, tuple.index)
def _index(call: Call, xs: AbstractValue, value: AbstractValue, /) -> AbstractValue:
    return list_method(call.checker, call.out, "index", xs, value, call.span)


@implements(list.count, tuple.count)
def _count(call: Call, xs: AbstractValue, value: AbstractValue, /) -> AbstractValue:
    return list_method(call.checker, call.out, "count", xs, value, call.span)


@implements(list.copy, dict.copy)
def _copy_structure(call: Call, xs: AbstractValue, /) -> AbstractValue:
    return xs


def _keys_of(record: AbstractValue) -> tuple[Any, ...]:
    assert isinstance(record, Tuple) and record.form is not None
    return record.form.names


def _parts_of(record: AbstractValue) -> tuple[AbstractValue, ...]:
    assert isinstance(record, Tuple)
    return record.items


def _is_dict(other: AbstractValue) -> bool:
    form = other.form if isinstance(other, Tuple) else None
    if isinstance(other, DynamicValue) and isinstance(type_ := prune(other.type), TupleType):
        form = type_.form
    return tables.is_dict(other) or (form is not None and form.cls is dict)


def _known_pairs(call: Call, others: Sequence[AbstractValue]) -> AbstractValue | None:
    """The dict of pairs whose keys are known; None if some are not."""
    found = [elements(call.checker, call.out, other, call.span) for other in others]
    pairs = found[0] if len(found) == 1 and found[0] is not None else [None]
    if not all(isinstance(pair, Tuple) and len(pair.items) == 2 for pair in pairs):
        return None
    record: AbstractValue = Tuple((), Form(dict))
    try:
        for pair in pairs:
            assert isinstance(pair, Tuple) and isinstance(record, Tuple)
            record = records.with_item(record, key_of(pair.items[0], call.span), pair.items[1])
    except TypeCheckError:
        return None
    return record


@implements(dict)
def _dict(call: Call, /, *others: AbstractValue, **named: AbstractValue) -> AbstractValue:
    is_known = all(map(_is_dict, others))
    if not is_known and not any(map(call.checker.is_open, others)) and call.span is not None:
        if (pairs := _known_pairs(call, others)) is not None:
            return records.make_dict(call.checker, call.out, (pairs,), call.keywords, call.span)
        call.checker.decisions.tables.add(call.span)
    if call.span in call.checker.decisions.tables or any(map(tables.is_dict, others)):
        table = hash_tables.empty(call.checker, call.out, "dict", call.span)
        return hash_tables.updated(
            *call.site[:2], table, (*others, *hash_tables.keyword_items(call.keywords)), call.span
        )
    return records.make_dict(call.checker, call.out, others, call.keywords, call.span)


@implements(dataclasses.replace)
def _replace(call: Call, obj: AbstractValue, /, **changes: AbstractValue) -> AbstractValue:
    record = records.as_record(call.checker, call.out, obj, call.span)
    if record is None:
        raise TypeCheckError("replace needs a dataclass", call.span)
    return records.replace(record, call.keywords, call.span)


@implements(dict.items)
def _items(call: Call, record: AbstractValue, /) -> AbstractValue:
    pairs = zip(_keys_of(record), _parts_of(record), strict=True)
    return Tuple(tuple(Tuple((key_entity(key, call.span), value)) for key, value in pairs))


@implements(dict.keys)
def _keys(call: Call, record: AbstractValue, /) -> AbstractValue:
    return Tuple(tuple(key_entity(key, call.span) for key in _keys_of(record)))


@implements(dict.values)
def _values(call: Call, record: AbstractValue, /) -> AbstractValue:
    return Tuple(_parts_of(record))


@implements(dict.get)
def _get(
    call: Call, record: AbstractValue, key: AbstractValue, default: AbstractValue | None = None, /
) -> AbstractValue:
    assert isinstance(record, Tuple)
    found = record.field(records.key_in(call.checker, record, key, call.span))
    return found if found is not None else PythonObject(None) if default is None else default
