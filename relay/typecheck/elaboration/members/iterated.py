"""The values that loops go through where Python asks an object for its elements: of hash tables the keys, of classes of
enumerations the members, of objects what their `__iter__` gives."""

from __future__ import annotations

import enum

from relay.errors import Span, TypeCheckError
from relay.ir.types import Form, TupleType, prune
from relay.typecheck.elaboration.abstract_values import (
    AbstractValue,
    DynamicValue,
    PythonObject,
    Tuple,
    TypedBlockBuilder,
)
from relay.typecheck.elaboration.checker import Checker
from relay.typecheck.elaboration.dynamic_lists import tables
from relay.typecheck.elaboration.values import data, records, special_methods
from relay.typecheck.elaboration.values.expansion import expand
from relay.typecheck.elaboration.values.labels import all_members


def iterated(
    checker: Checker, out: TypedBlockBuilder, entity: AbstractValue, span: Span | None, in_any_order: bool = False
) -> AbstractValue:
    """The value that a loop goes through. Raises TypeCheckError for a set, unless the elements may come in any
    order."""
    if isinstance(entity, PythonObject):
        if isinstance(entity.value, enum.EnumMeta):
            return Tuple(tuple(map(PythonObject, all_members(entity.value))), Form(list))
        return entity
    if isinstance(entity, DynamicValue) and data.data_type(entity) is None:
        entity = expand(checker, out, entity, span)
    if isinstance(entity, Tuple) and (entity.form is None or tables.kind(entity.form.cls) is not None):
        return tables.iterated(checker, out, entity, span, in_any_order)
    if isinstance(entity, Tuple) or (isinstance(entity, DynamicValue) and data.data_type(entity) is not None):
        own = special_methods.call(checker, out, "__iter__", entity, (), span)
        _check_iterator(own, span)
        return entity if own is None else iterated(checker, out, own, span, in_any_order)
    return entity


def _check_iterator(own: AbstractValue | None, span: Span | None) -> None:
    """The result of `__iter__` must not be an object that is asked for its elements by `__next__`."""
    if isinstance(own, DynamicValue) and isinstance(type_ := prune(own.type), TupleType):
        own = Tuple((), type_.form)
    if isinstance(own, Tuple) and own.form is not None and records.is_of_user(own, "__next__"):
        raise TypeCheckError(
            f"a loop cannot go through {own.form.cls.__name__}, whose `__next__` changes it",
            span,
            help="let `__iter__` be a generator, with `yield`, or call `next` in a `while` that knows the end",
        )
