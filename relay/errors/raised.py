"""Errors that programs raise: `raise ValueError(f"..")` ends a program with an error of that class.

The message of such an assertion begins with the name of the class, and it stands at the `raise`. What Python catches is
an ExecutionError and a ValueError. So are the errors that Python's own operations raise, such as a division by zero,
which is a ZeroDivisionError. `except` in a program asks the same classes.
"""

from __future__ import annotations

import builtins
import functools
import sys
from collections.abc import Iterable
from typing import TypeGuard

from relay.errors import ExecutionError, RelayError, Span

SEPARATOR = ": "

CLASSES: tuple[tuple[str, type[Exception]], ...] = (
    ("division by zero", ZeroDivisionError),
    ("modulo by zero", ZeroDivisionError),
    ("index out of range", IndexError),
    ("out of bounds", IndexError),
    ("out of range", IndexError),
    ("has no key", KeyError),
    ("is not in the dict", KeyError),
    ("is not in the set", KeyError),
    ("of an empty dict", KeyError),
    ("All-NaN slice", ValueError),
    ("invalid literal", ValueError),
    ("could not convert", ValueError),
    ("is not a number", ValueError),
    ("values to unpack", ValueError),
    ("of an empty list", ValueError),
    ("is not in the list", ValueError),
    ("has no such part", ValueError),
    ("empty separator", ValueError),
    ("chr needs a code point", ValueError),
    ("ord needs one character", TypeError),
    ("is None here", TypeError),
)
"""The classes of the errors of operations, by words of their messages."""

_named: dict[str, type[Exception]] = {}


def is_raisable(value: object) -> bool:
    """True if a program may raise this: a class of exceptions of Python's or of the user's, which its name finds."""
    return isinstance(value, type) and issubclass(value, Exception) and not issubclass(value, RelayError)


def is_catchable(value: object, everything: bool = False) -> TypeGuard[type[Exception]]:
    """True if an `except` may name this; with `everything` if it catches whatever programs can catch."""
    if not isinstance(value, type) or not issubclass(value, BaseException):
        return False
    return not everything or value in (BaseException, Exception) or issubclass(value, RelayError)


def name_of(cls: type[Exception]) -> str:
    """The name by which the class of an error is found again, with its module if it is the user's."""
    name = str(cls.__name__)
    if getattr(builtins, name, None) is cls:
        return name
    name = f"{cls.__module__}.{cls.__qualname__}"
    _named[name] = cls
    return name


def _class_named(name: str) -> type[Exception] | None:
    if name in _named:
        return _named[name]
    module, _, own = name.rpartition(".")
    found: object = builtins if not module else sys.modules.get(module)
    cls = getattr(found, own, None)
    return cls if isinstance(cls, type) and issubclass(cls, Exception) else None


@functools.lru_cache(4096)
def raised_class(message: str, span: Span | None) -> tuple[type[Exception], str]:
    """The class of the error of a failing assertion, or of a `raise`, and its text."""
    name, separator, text = message.partition(SEPARATOR)
    if separator and name.replace(".", "").isidentifier() and _stands_at_raise(span):
        cls = _class_named(name)
        return (cls, text) if cls is not None else (Exception, f"{name.rpartition('.')[2]}{separator}{text}")
    if not _is_asserted(span):
        for words, kind in CLASSES:
            if words in message:
                return kind, message
    return AssertionError, message


def catches(cls: type[Exception], names: Iterable[str]) -> bool:
    """True if an `except` of classes with these names catches errors of a class."""
    return any(wanted is not None and issubclass(cls, wanted) for wanted in map(_class_named, names))


def failure(message: str, span: Span | None, help: str | None = None) -> ExecutionError:
    """The error of an assertion that does not hold, or of a `raise`."""
    cls, text = raised_class(message, span)
    error = _class_of(cls)(text, span, help=help)  # type: ignore[arg-type]  # classes have hashes
    error.raised = cls
    return error


def _stands_at_raise(span: Span | None) -> bool:
    return span is not None and _line(span, span.line)[span.column - 1 :].startswith("raise")


def _is_asserted(span: Span | None) -> bool:
    """True if this is the condition of an `assert`."""
    if span is None or not _line(span, span.line)[: span.column - 1].rstrip(" (").endswith("assert"):
        return False
    return _line(span, span.end_line)[span.end_column - 1 :].lstrip(" )")[:1] in ("", ",", "#")


def _line(span: Span, number: int) -> str:
    lines = span.source.text.splitlines()
    return lines[number - 1] if number <= len(lines) else ""


@functools.cache
def _class_of(cls: type[Exception]) -> type[ExecutionError]:
    """An ExecutionError that is an error of this class, too."""
    if cls in (AssertionError, Exception):
        return ExecutionError
    try:
        return type(cls.__name__, (ExecutionError, cls), {"__doc__": cls.__doc__, "__module__": __name__})
    except TypeError:  # their objects have other fields in memory
        return ExecutionError
