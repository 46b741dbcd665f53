"""Errors that programs raise: `raise ValueError(f"..")` ends a program with an error of that class.

The message of such an assertion begins with the name of the class, `ValueError: ..`; what Python catches is an
ExecutionError and a ValueError. The errors of Python's own operations, as a division by zero, have their classes by the
words of their messages, so an `assert` of the user's whose text could be taken for one of these, or for the name of a
class, begins with `AssertionError: `. `except` in a program asks the same classes. All of this is in the message: a
program in a file has no other text.
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
def raised_class(message: str) -> tuple[type[Exception], str]:
    """The class of the error of a failing assertion, or of a `raise`, and its text."""
    name, separator, text = message.partition(SEPARATOR)
    if separator and name.replace(".", "").isidentifier():
        if (cls := _class_named(name)) is not None:
            return cls, text
        module, _, own = name.rpartition(".")
        if module and own[:1].isupper():  # a class of the user's whose module is not loaded
            return Exception, f"{own}{separator}{text}"
    for words, kind in CLASSES:
        if words in message:
            return kind, message
    return AssertionError, message


def asserted_message(text: str) -> str:
    """The message of an `assert` with a text of the user's."""
    return text if raised_class(text) == (AssertionError, text) else f"{AssertionError.__name__}{SEPARATOR}{text}"


def catches(cls: type[Exception], names: Iterable[str]) -> bool:
    """True if an `except` of classes with these names catches errors of a class."""
    return any(wanted is not None and issubclass(cls, wanted) for wanted in map(_class_named, names))


def failure(message: str, span: Span | None, help: str | None = None) -> ExecutionError:
    """The error of an assertion that does not hold, or of a `raise`."""
    cls, text = raised_class(message)
    error = _class_of(cls)(text, span, help=help)  # type: ignore[arg-type]  # classes have hashes
    error.raised = cls
    return error


@functools.cache
def _class_of(cls: type[Exception]) -> type[ExecutionError]:
    """An ExecutionError that is an error of this class, too."""
    if cls in (AssertionError, Exception):
        return ExecutionError
    try:
        return type(cls.__name__, (ExecutionError, cls), {"__doc__": cls.__doc__, "__module__": __name__})
    except TypeError:  # their objects have other fields in memory
        return ExecutionError
