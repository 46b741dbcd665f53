"""Python structures that programs take and return, level by level: dicts with string keys, lists, dataclasses, classes
of attrs, named tuples, and classes that are registered, here or with JAX or optree.

A structure has a form, which tells it from others, and parts. `relay.ir.tree` goes through all levels.
"""

from __future__ import annotations

import abc
import dataclasses
import enum
import functools
import sys
import types
import typing
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from types import FunctionType
from typing import Any

import attrs
import numpy as np

from relay.errors import FrontendError, RegistrationError, TypeMismatch
from relay.ir.types import BaseType, Form, Type
from relay.support.user_code import is_readable_module, is_user_file


@attrs.frozen(eq=False)
class SourceRecord:
    """The fields of a dataclass or named tuple that is only read, and what reads their types: the class's
    `__relay_record__`. These raise FrontendError for an annotation that is not a type."""

    names: tuple[str, ...]
    types: Mapping[str, Callable[[], Type]]


@attrs.frozen(eq=False)
class Registration:
    """The registration of a class: how its values are taken apart, and made of their parts."""

    flatten: Callable[[Any], tuple[Iterable[Any], Hashable]]
    unflatten: Callable[[Any, Sequence[Any]], Any]
    fields: tuple[str, ...] = ()


_REGISTERED: dict[type, Registration] = {}

_PLAIN_MODULES = ("builtins", "numpy", "relay.support.gradients")
"""Modules whose classes no library has registered for us to ask."""

_LIBRARIES = {"jax": "tree_util", "optree": ""}
"""Libraries that have a registry of such classes, and their module with `tree_structure`."""


def register_tree(
    cls: type,
    flatten: Callable[[Any], tuple[Iterable[Any], Hashable]],
    unflatten: Callable[[Any, Sequence[Any]], Any],
    *,
    fields: Sequence[str] = (),
) -> None:
    """Make the values of a class structures, as tuples are: arguments and results of programs, and nodes of trees.

    `flatten(value) -> (parts, auxiliary)`; the auxiliary data is hashable, and another one is another structure.
    `unflatten(auxiliary, parts) -> value` gets any parts, those of a program's types among them. `fields`: the names by
    which programs read the parts, `value.name`.

    Raises RegistrationError for what is not a class, is a structure already, or is registered.
    """
    if not isinstance(cls, type):
        raise RegistrationError(f"register_tree takes a class, found {cls!r}")
    if cls in _REGISTERED:
        raise RegistrationError(f"{cls.__name__} is registered already")
    if cls in (tuple, list, dict, type(None)) or hasattr(cls, "__relay_data__"):
        raise RegistrationError(f"{cls.__name__} is a structure already", help="register another class")
    _REGISTERED[cls] = Registration(flatten, unflatten, tuple(fields))


def registration(value: object) -> Registration | None:
    """The registration of a value's class, with Relay or with a library that is loaded; None if it has none."""
    cls = type(value)
    found = _REGISTERED.get(cls)
    if found is None and (cls.__module__ not in _PLAIN_MODULES):
        for name, inside in _LIBRARIES.items():
            if name in sys.modules and (found := _foreign_registration(sys.modules[name], inside, value)) is not None:
                _REGISTERED[cls] = found
                break
    return found


def _foreign_registration(library: Any, inside: str, value: object) -> Registration | None:
    """The registration of a value's class with a library; its structure of one level is the auxiliary data."""
    module = getattr(library, inside, None) if inside else library
    tree_structure = getattr(module, "tree_structure", None)
    if tree_structure is None:
        return None

    def structure(of: object) -> Any:
        return tree_structure(of, is_leaf=lambda part: part is not of)

    if structure(value) == structure(object()):
        return None
    return Registration(
        lambda of: ((found := structure(of)).flatten_up_to(of), found), lambda found, parts: found.unflatten(parts)
    )


def is_record_class(value: object) -> bool:
    """True if a Python object is a dataclass, a class of attrs or one of named tuples."""
    if not isinstance(value, type) or hasattr(value, "__relay__") or hasattr(value, "__relay_data__"):
        return False
    if value in _REGISTERED:
        return False
    return (
        dataclasses.is_dataclass(value)
        or written_record(value) is not None
        or is_named_tuple(value)
        or (hasattr(value, "__attrs_attrs__") and value.__module__.partition(".")[0] != "relay")
    )


def is_plain_class(cls: type) -> bool:
    """True if a class is the user's, written in Python alone, whose objects programs read by their attributes, or
    `types.SimpleNamespace`."""
    if cls is types.SimpleNamespace:
        return True
    if hasattr(cls, "__relay_data__") or hasattr(cls, "__relay__"):
        return False
    if not cls.__dictoffset__ and not any("__slots__" in vars(base) for base in cls.__mro__):
        return False
    return all(_is_written_by_user(base) for base in cls.__mro__ if base not in _EMPTY_BASES)


_EMPTY_BASES = (object, abc.ABC, typing.Generic, typing.Protocol)
"""Classes of Python's that bring nothing to an object."""


def class_obstacle(cls: type) -> str | None:
    """The part of a plain class by which Python makes, reads or changes its objects in another way, by its name."""
    if type(cls) not in (type, abc.ABCMeta, type(typing.Protocol)):
        return f"the metaclass {type(cls).__name__}"
    if getattr(cls, "__abstractmethods__", ()):
        return f"the abstract method {min(cls.__abstractmethods__)}"  # type: ignore[attr-defined]
    special = ("__new__", "__getattr__", "__getattribute__", "__setattr__", "__delattr__")
    own = [name for base in cls.__mro__ if base not in _EMPTY_BASES for name in vars(base)]
    return next((name for name in special if name in own), None)


def _attributes(value: object) -> dict[str, object]:
    """The attributes of an object, those in slots among them."""
    slots = [name for base in type(value).__mro__[::-1] for name in _slots(base) if hasattr(value, name)]
    return {**{name: getattr(value, name) for name in slots}, **getattr(value, "__dict__", {})}


def _slots(cls: type) -> tuple[str, ...]:
    found = vars(cls).get("__slots__", ())
    return (found,) if isinstance(found, str) else tuple(found)


@functools.cache
def _is_written_by_user(cls: type) -> bool:
    if any(hasattr(cls, name) for name in ("__array__", "__dlpack__", "__relay_array__")):
        return False
    if isinstance(vars(cls).get("__new__"), types.BuiltinFunctionType):  # written in C, as itertools.count
        return False
    if issubclass(cls, type | BaseException | enum.Enum) or not is_readable_module(cls.__module__):
        return False
    return is_user_file(_file_of(cls) or "<main>")


def _file_of(cls: type) -> str | None:
    """The file that a class is written in, as its module or its methods know it."""
    module = sys.modules.get(cls.__module__)
    if module is not None:
        return getattr(module, "__file__", None)
    methods = (f for f in vars(cls).values() if isinstance(f, FunctionType))
    return next((f.__code__.co_filename for f in methods), None)


def _is_part(value: object) -> bool:
    """True if an attribute of such an object is one that programs can read."""
    if value is None or isinstance(value, int | float | str | enum.Enum | np.ndarray | np.generic | BaseType | type):
        return True
    if isinstance(value, dict):
        return all(isinstance(key, str) for key in value) and all(map(_is_part, value.values()))
    if isinstance(value, list | tuple):
        return all(map(_is_part, value))
    markers = ("__relay__", "__relay_array__", "__relay_data__", "__dlpack__", "__relay_returned__")
    if callable(value) or type(value).__module__.startswith("relay.") or any(hasattr(value, name) for name in markers):
        return True
    return is_record_class(type(value)) or registration(value) is not None or is_plain_class(type(value))


def written_record(cls: type) -> SourceRecord | None:
    """The declaration of a dataclass or named tuple that is read from a file without running it."""
    found = getattr(cls, "__relay_record__", None)
    return found if isinstance(found, SourceRecord) else None


def is_named_tuple(cls: type) -> bool:
    """True if a class is one of `typing.NamedTuple` or `collections.namedtuple`."""
    return issubclass(cls, tuple) and isinstance(getattr(cls, "_fields", None), tuple)


def field_names(cls: type) -> tuple[str, ...]:
    """The fields of a dataclass, class of attrs or named tuple, in order."""
    written = written_record(cls)
    if written is not None:
        return written.names
    if is_named_tuple(cls):
        return tuple(cls._fields)  # type: ignore[attr-defined]
    if dataclasses.is_dataclass(cls):
        return tuple(field.name for field in dataclasses.fields(cls))
    return tuple(field.name for field in attrs.fields(cls))


def parameter_names(cls: type) -> tuple[str, ...]:
    """The names of the constructor's parameters for the fields: attrs omits a leading `_`."""
    if written_record(cls) is None and not is_named_tuple(cls) and not dataclasses.is_dataclass(cls):
        return tuple(field.alias for field in attrs.fields(cls))
    return field_names(cls)


def computes(cls: type) -> str | None:
    """The part of making such a value that programs cannot run, by its name; None if its fields are the arguments."""
    if not hasattr(cls, "__attrs_attrs__"):
        own = vars(cls).get("__dataclass_fields__", {})
        is_init_var = (f._field_type is dataclasses._FIELD_INITVAR for f in own.values())  # type: ignore[attr-defined]
        return "InitVar" if any(is_init_var) else None
    found = next((name for name in ("__attrs_post_init__", "__attrs_pre_init__") if hasattr(cls, name)), None)
    if found is not None:
        return found
    fields = attrs.fields(cls)
    for what, has in (("converter", "converter"), ("validator", "validator")):
        if any(getattr(field, has) is not None for field in fields):
            return what
    return None


def build(form: Form | None, values: Sequence[object]) -> object:
    """The Python object of a form, None for a tuple, with these values."""
    if form is None:
        return tuple(values)
    if form.cls is type(None):
        return None
    if form.cls is dict:
        return dict(zip(form.names, values, strict=True))
    if form.cls is list:
        return list(values)
    if (registered := _REGISTERED.get(form.cls)) is not None:
        return registered.unflatten(form.auxiliary, tuple(values))
    if is_named_tuple(form.cls):
        return form.cls(*values)
    if (to_python := getattr(form.cls, "__relay_result__", None)) is not None:
        return to_python(*values)
    if form.cls is types.SimpleNamespace:
        return types.SimpleNamespace(**dict(zip(form.names, values, strict=True)))
    if issubclass(form.cls, enum.Enum):
        return list(form.cls)[int(values[0])]  # type: ignore[call-overload]
    made: object = object.__new__(form.cls)  # as a copy of an instance: without __init__, which may compute
    for name, value in zip(form.names, values, strict=True):
        object.__setattr__(made, name, value)
    return made


def is_key(value: object) -> bool:
    """True if a dict in a program may have this key."""
    if isinstance(value, tuple):
        return all(map(is_key, value))
    return isinstance(value, str | int | enum.Enum)


def ordered_keys(keys: Iterable[Any]) -> tuple[Any, ...]:
    """The keys of a dict in the order of its leaves: sorted, of several kinds by kind."""
    given = tuple(keys)
    try:
        return tuple(sorted(given))
    except TypeError:
        return tuple(sorted(given, key=lambda key: (type(key).__name__, repr(key))))


def split(value: object) -> tuple[Form | None, Sequence[Any]] | None:
    """The form of a Python structure, None for a tuple, with its parts, in order; None for a value that is not one.

    Raises FrontendError for keys that are not strings, integers and the like, TypeMismatch for a class that is
    registered wrongly.
    """
    if isinstance(value, dict):
        for key in value:
            if not is_key(key):
                keys = "strings, integers, members of enumerations and tuples of these"
                raise FrontendError(f"the keys of a dict in a program are {keys}, found {key!r}")
        return Form(dict, tuple(value)), list(value.values())
    if isinstance(value, list):
        return Form(list), value
    cls = type(value)
    if is_record_class(cls):
        names = field_names(cls)
        return Form(cls, names), [getattr(value, name) for name in names]
    registered = registration(value)
    if registered is not None:
        return _registered_parts(value, cls, registered)
    if is_plain_class(cls):
        fields = {name: part for name, part in _attributes(value).items() if _is_part(part)}
        return Form(cls, tuple(fields)), list(fields.values())
    return (None, value) if isinstance(value, tuple) else None


def _registered_parts(value: object, cls: type, registered: Registration) -> tuple[Form, Sequence[Any]]:
    found = registered.flatten(value)
    if not isinstance(found, tuple) or len(found) != 2:
        raise TypeMismatch(f"the registered flatten of {cls.__name__} must return (parts, auxiliary), found {found!r}")
    parts, auxiliary = tuple(found[0]), found[1]
    if registered.fields and len(registered.fields) != len(parts):
        count = f"{len(registered.fields)} field{'s' * (len(registered.fields) != 1)}"
        raise TypeMismatch(f"{cls.__name__} is registered with {count}, and its flatten gives {len(parts)} parts")
    try:
        hash(auxiliary)
    except TypeError:
        raise TypeMismatch(
            f"the auxiliary data from the registered flatten of {cls.__name__} must be hashable,"
            f" found {type(auxiliary).__name__}",
            help="make arrays and numbers parts, and a list there a tuple",
        ) from None
    return Form(cls, registered.fields, auxiliary), parts


def part_names(form: Form | None, count: int) -> list[str]:
    """The text by which a program reads each part of a structure."""
    if form is None or not form.names:
        return [f"[{index}]" for index in range(count)]
    return [f"[{name!r}]" if form.cls is dict else f".{name}" for name in form.names]
