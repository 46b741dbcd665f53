"""Kinds of hash tables: dicts and sets whose keys are known at run time only, as records of dynamic lists."""

from __future__ import annotations

from relay.errors import Label, Span, TypeCheckError, TypeMismatch
from relay.ir.types import Form, TupleType, prune
from relay.typecheck.elaboration.abstract_values import AbstractValue, DynamicValue, Tuple, TypedBlockBuilder
from relay.typecheck.elaboration.checker import Checker
from relay.typecheck.elaboration.values.expansion import expand

FIELDS = ("slots__", "keys__", "values__")
"""The fields of a dict; those of a set are the first two."""

_classes: dict[type, str] = {}


def register(dictionary: type, key_set: type) -> None:
    """Say which classes hash tables have."""
    _classes.update({dictionary: "dict", key_set: "set"})


def class_named(name: str) -> type:
    """The class of the hash tables that are a `dict`, or a `set`."""
    return next(cls for cls, known in _classes.items() if known == name)


def is_dict(entity: AbstractValue) -> bool:
    """True if a value is a dict whose keys are known at run time only."""
    return _kind(entity) == "dict"


def is_set(entity: AbstractValue) -> bool:
    """The same of a set."""
    return _kind(entity) == "set"


def _kind(entity: AbstractValue) -> str | None:
    form = entity.form if isinstance(entity, Tuple) else None
    if isinstance(entity, DynamicValue) and isinstance(type_ := prune(entity.type), TupleType):
        form = type_.form
    return None if form is None else _classes.get(form.cls)


def kind(cls: type) -> str | None:
    """The name that Python has for a class of hash tables; None for other classes."""
    return _classes.get(cls)


def differing(name: str, form: Form | None, error: TypeMismatch) -> TypeMismatch:
    """The error for a value whose parts differ where paths meet: of a hash table, whose parts nobody has written, one
    that speaks of its keys and values; of others the error itself."""
    if form is None or (found := _classes.get(form.cls)) is None:
        return error
    what, help = "elements", None
    if found == "dict":
        what = "keys or values"
        help = "a dict whose keys differ between paths, or are known at run time only, has keys and values of one type"
    labels = tuple(Label(label.span, "the other one") for label in error.labels)
    message = f"the {what} of the {found} {name} have other types on another path"
    return TypeMismatch(message, error.span, labels=labels, help=help)


def iterated(
    checker: Checker, out: TypedBlockBuilder, entity: AbstractValue, span: Span | None, in_any_order: bool = False
) -> AbstractValue:
    """The value that a loop goes through: the keys of a hash table, as a list. Raises TypeCheckError for a set, of
    which Python knows an order of its own, unless the elements may come in any order."""
    found = _kind(entity)
    if found is None:
        return entity
    if found == "set" and not in_any_order:
        raise TypeCheckError("a set has no order to go through it", span, help="write `sorted(s)`")
    if isinstance(entity, DynamicValue):
        entity = expand(checker, out, entity, span)
    assert isinstance(entity, Tuple)
    return entity.items[1]
