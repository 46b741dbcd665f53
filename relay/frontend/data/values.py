"""Values of data types as Python objects: immutable, compared by their parts, of any depth.

`Tree.Leaf(1.0)` makes an object of the class `Tree.Leaf`, which derives from `Tree`. Fields hold what they are given:
arrays, numbers, tuples, other values.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Mapping

import numpy as np

from relay.ir.definition import DataClass
from relay.ir.protocols import is_value


def install(owner: DataClass, constructors: dict[str, type], nested: Mapping[str, type]) -> None:
    """Give a data type's classes what makes their objects values. Nested ones are replaced by classes that derive."""
    cls = owner.cls
    for name, special in _SPECIAL.items():
        if name not in vars(cls) or name in ("__eq__", "__hash__"):
            setattr(cls, name, special)
    if not nested:
        _make_constructor(owner, cls.__name__, cls)
        return
    names = ", ".join(f"{cls.__name__}.{name}" for name in nested)

    def refuse(self: object, *arguments: object, **keywords: object) -> None:
        raise TypeError(f"{cls.__name__} is made by one of its constructors: {names}")

    cls.__init__ = refuse  # type: ignore[misc]
    for name, part in nested.items():
        inside = {"__module__": cls.__module__, "__qualname__": f"{cls.__qualname__}.{name}", "__doc__": part.__doc__}
        made = type(name, (cls,), {**inside, "__annotations__": inspect.get_annotations(part)})
        _make_constructor(owner, name, made)
        setattr(cls, name, made)
        constructors[name] = made


def _make_constructor(owner: DataClass, name: str, cls: type) -> None:
    defaults = owner.defaults[name]
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    signature = inspect.Signature(
        [
            inspect.Parameter(field, kind, default=defaults.get(field, inspect.Parameter.empty))
            for field in owner.fields[name]
        ]
    )
    for field in owner.fields[name]:
        if field in vars(cls):
            delattr(cls, field)

    def init(self: object, *arguments: object, **keywords: object) -> None:
        bound = signature.bind(*arguments, **keywords)
        bound.apply_defaults()
        vars(self).update(bound.arguments)

    cls.__init__ = init  # type: ignore[misc]
    cls.__signature__ = signature  # type: ignore[attr-defined]
    cls.__match_args__ = owner.fields[name]  # type: ignore[attr-defined, misc]
    cls.__relay_constructor__ = name  # type: ignore[attr-defined]


def make(owner: DataClass, constructor: str, fields: Mapping[str, object]) -> object:
    """A value of a constructor."""
    cls = owner.constructors[constructor]
    value: object = object.__new__(cls)
    vars(value).update(fields)
    return value


def replace(value: object, **changes: object) -> object:
    """The value with other fields. Raises TypeError for what is not a value or has no such field."""
    if not is_value(value):
        raise TypeError(f"replace needs a value of a data type, found {type(value).__name__}")
    fields = type(value).__match_args__  # type: ignore[attr-defined]
    for name in changes:
        if name not in fields:
            raise TypeError(f"{type(value).__qualname__} has no field {name!r}")
    new = object.__new__(type(value))
    vars(new).update({**vars(value), **changes})
    return new


# ---- methods, without recursion


def _refuse_change(self: object, name: str, *value: object) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}; use relay.replace")


def _equal(self: object, other: object) -> object:
    if not is_value(other):
        return NotImplemented
    pending = [(self, other)]
    while pending:
        a, b = pending.pop()
        if a is b:
            continue
        if is_value(a) or is_value(b):
            if type(a) is not type(b):
                return False
            pending += zip(vars(a).values(), vars(b).values(), strict=True)
        elif isinstance(a, tuple | list) and isinstance(b, tuple | list):
            if len(a) != len(b):
                return False
            pending += zip(a, b, strict=True)
        elif hasattr(a, "__array__") or hasattr(b, "__array__"):
            if not np.array_equal(np.asarray(a), np.asarray(b)):
                return False
        elif a != b:
            return False
    return True


def _hash(self: object) -> int:
    return hash((type(self), *vars(self).values()))


def _show(self: object) -> str:
    parts: list[str] = []
    pending: list[tuple[bool, object]] = [(False, self)]
    while pending:
        is_text, item = pending.pop()
        if is_text:
            parts.append(str(item))
        elif is_value(item):
            owner: DataClass = type(item).__relay_data__  # type: ignore[attr-defined]
            name = type(item).__name__
            parts.append(
                f"{name}("
                if len(owner.constructors) == 1 and owner.cls is type(item)
                else f"{owner.cls.__name__}.{name}("
            )
            pending.append((True, ")"))
            fields = list(vars(item).items())
            for position, (field, value) in reversed(list(enumerate(fields))):
                pending += [(False, value), (True, f"{', ' if position else ''}{field}=")]
        else:
            parts.append(repr(item))
    return "".join(parts)


_SPECIAL = {
    "__eq__": _equal,
    "__hash__": _hash,
    "__repr__": _show,
    "__setattr__": _refuse_change,
    "__delattr__": _refuse_change,
}
