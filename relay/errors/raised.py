"""Errors that programs raise: `raise ValueError(f"..")` ends a program with an error of that class.

The message of such an assertion begins with the name of the class, and it stands at the `raise`. What Python catches is
an ExecutionError and a ValueError.
"""

from __future__ import annotations

import builtins
import functools
import sys

from relay.errors import ExecutionError, RelayError, Span

SEPARATOR = ": "


def is_raisable(value: object) -> bool:
    """True if a program may raise this: a class of exceptions of Python's or of the user's, which its name finds."""
    return isinstance(value, type) and issubclass(value, Exception) and not issubclass(value, RelayError)


def name_of(cls: type[Exception]) -> str:
    """The name by which the class of an error is found again, with its module if it is the user's."""
    return cls.__name__ if getattr(builtins, cls.__name__, None) is cls else f"{cls.__module__}.{cls.__qualname__}"


def _class_named(name: str) -> object:
    module, _, own = name.rpartition(".")
    found: object = builtins if not module else sys.modules.get(module)
    return getattr(found, own, None)


def failure(message: str, span: Span | None, help: str | None = None) -> ExecutionError:
    """The error of an assertion that does not hold, or of a `raise`."""
    name, separator, text = message.partition(SEPARATOR)
    if not separator or not name.replace(".", "").isidentifier() or not _stands_at_raise(span):
        return ExecutionError(message, span, help=help)
    cls = _class_named(name)
    if isinstance(cls, type) and issubclass(cls, Exception):
        return _class_of(cls)(text, span, help=help)  # type: ignore[arg-type]  # classes have hashes
    return ExecutionError(f"{name.rpartition('.')[2]}{separator}{text}", span, help=help)


def _stands_at_raise(span: Span | None) -> bool:
    if span is None:
        return False
    lines = span.source.text.splitlines()
    line = lines[span.line - 1] if span.line <= len(lines) else ""
    return line[span.column - 1 :].startswith("raise")


@functools.cache
def _class_of(cls: type[Exception]) -> type[ExecutionError]:
    """An ExecutionError that is an error of this class, too."""
    if cls is AssertionError:
        return ExecutionError
    try:
        return type(cls.__name__, (ExecutionError, cls), {"__doc__": cls.__doc__, "__module__": __name__})
    except TypeError:  # their objects have other fields in memory
        return ExecutionError
