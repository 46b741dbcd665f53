"""Python structures that programs take and return: dicts with string keys, lists, dataclasses and named tuples."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence

import attrs

from relay.errors import FrontendError
from relay.ir.types import Form, Type


@attrs.frozen(eq=False)
class SourceRecord:
    """The fields of a dataclass or named tuple that is only read, and what reads their types: the class's
    `__relay_record__`. These raise FrontendError for an annotation that is not a type."""

    names: tuple[str, ...]
    types: Mapping[str, Callable[[], Type]]
    is_tuple: bool


def is_record_class(value: object) -> bool:
    """Whether a Python object is a dataclass or a class of named tuples."""
    if not isinstance(value, type) or hasattr(value, "__relay__") or hasattr(value, "__relay_data__"):
        return False
    return dataclasses.is_dataclass(value) or written_record(value) is not None or is_named_tuple(value)


def written_record(cls: type) -> SourceRecord | None:
    """What is known of a dataclass or named tuple that is only read."""
    found = getattr(cls, "__relay_record__", None)
    return found if isinstance(found, SourceRecord) else None


def is_named_tuple(cls: type) -> bool:
    """Whether a class is one of `typing.NamedTuple` or `collections.namedtuple`."""
    return issubclass(cls, tuple) and isinstance(getattr(cls, "_fields", None), tuple)


def field_names(cls: type) -> tuple[str, ...]:
    """The fields of a dataclass or named tuple, in order."""
    written = written_record(cls)
    if written is not None:
        return written.names
    if is_named_tuple(cls):
        return tuple(cls._fields)  # type: ignore[attr-defined]
    return tuple(field.name for field in dataclasses.fields(cls))


def build(form: Form, values: Sequence[object]) -> object:
    """The Python object of a form with these values."""
    if form.cls is dict:
        return dict(zip(form.names, values, strict=True))
    if form.cls is list:
        return list(values)
    if is_named_tuple(form.cls):
        return form.cls(*values)
    made: object = object.__new__(form.cls)  # as a copy of an instance: without __init__, which may compute
    for name, value in zip(form.names, values, strict=True):
        object.__setattr__(made, name, value)
    return made


def form_of(value: object) -> Form | None:
    """The form of a Python structure; None for tuples and for what is none. Raises FrontendError for other keys."""
    if isinstance(value, dict):
        wrong = next((key for key in value if not isinstance(key, str)), None)
        if wrong is not None:
            raise FrontendError(f"a dict in a program has strings as keys, found {wrong!r}")
        return Form(dict, tuple(value))
    if isinstance(value, list):
        return Form(list)
    cls = type(value)
    return Form(cls, field_names(cls)) if is_record_class(cls) else None


def fields_of(value: object, form: Form) -> list[object]:
    """The parts of a Python structure of this form, in order."""
    if isinstance(value, dict):
        return list(value.values())
    if isinstance(value, list | tuple):
        return list(value)
    return [getattr(value, name) for name in form.names]
