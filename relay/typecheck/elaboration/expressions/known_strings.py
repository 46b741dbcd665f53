"""Strings and sets that are known at compile time: operators on them and their parts, which Python itself computes."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence

from relay.errors import Span, TypeCheckError
from relay.typecheck.elaboration.abstract_values import (
    AbstractValue,
    DynamicValue,
    PythonNumber,
    PythonObject,
    Size,
    SizeExpression,
    SliceItem,
    Tuple,
    is_constant_bool,
)
from relay.typecheck.elaboration.values.objects import object_entity

_OPERATORS: dict[str, Callable[..., object]] = {
    "add": operator.add,
    "multiply": operator.mul,
    "less": operator.lt,
    "less_equal": operator.le,
    "greater": operator.gt,
    "greater_equal": operator.ge,
    "bitwise_or": operator.or_,
    "bitwise_and": operator.and_,
    "bitwise_xor": operator.xor,
    "subtract": operator.sub,
}


class RunTimeValue(Exception):
    """A value that is known only at run time."""


def known_value(entity: AbstractValue) -> object:
    """The Python value that an entity is. Raises RunTimeValue for a run-time value."""
    known = is_constant_bool(entity)
    if known is not None and not isinstance(entity, PythonObject):
        return known
    match entity:
        case Size() | SizeExpression():
            raise RunTimeValue
        case PythonNumber(value):
            return value
        case PythonObject(value):
            return value
        case Tuple(items, form) if form is None or form.cls is list:
            values = map(known_value, items)
            return tuple(values) if form is None else list(values)
        case Tuple(_, form) if form is not None and form.cls is dict:
            return dict.fromkeys(form.names)
        case _:
            raise RunTimeValue


def operate(name: str, operands: Sequence[AbstractValue], span: Span | None) -> AbstractValue | None:
    """`a + b` and the like of known strings and sets; None for anything else."""
    if name not in _OPERATORS:
        return None
    if not any(isinstance(o, PythonObject) and isinstance(o.value, str | frozenset) for o in operands):
        return None
    try:
        return object_entity(_OPERATORS[name](*map(known_value, operands)), span)
    except (RunTimeValue, TypeError):
        return None


def item(text: str, items: Sequence[AbstractValue | SliceItem], span: Span | None) -> AbstractValue:
    """`text[items]`. Raises TypeCheckError."""
    try:
        if len(items) != 1:
            raise TypeError("a string has one axis")
        found = items[0]
        if isinstance(found, SliceItem):
            bounds = [None if b is None else known_value(b) for b in (found.start, found.stop, found.step)]
            return PythonObject(text[slice(*bounds)])  # type: ignore[arg-type]
        return PythonObject(text[known_value(found)])  # type: ignore[index]
    except RunTimeValue:
        needed = [i.atom for i in items if isinstance(i, DynamicValue)]
        message = "the index into a string must be known at compile time"
        raise TypeCheckError(message, span).needing_value(*needed) from None
    except (IndexError, TypeError) as error:
        raise TypeCheckError(f"{error}, in {text!r}", span) from None
