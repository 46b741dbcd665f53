"""Errors that programs raise: `raise ValueError(f"..")` ends a program with an error of that class.

The message of such an assertion begins with the name of the class, and it stands at the `raise`. What Python catches is
an ExecutionError and a ValueError.
"""

from __future__ import annotations

import builtins
import functools

from relay.errors import ExecutionError, Span

SEPARATOR = ": "


def is_raisable(value: object) -> bool:
    """True if a program may raise this: one of Python's own classes of exceptions, of which the name tells."""
    name = getattr(value, "__name__", "")
    return isinstance(value, type) and issubclass(value, Exception) and getattr(builtins, name, None) is value


def failure(message: str, span: Span | None, help: str | None = None) -> ExecutionError:
    """The error of an assertion that does not hold, or of a `raise`."""
    name, separator, text = message.partition(SEPARATOR)
    cls = getattr(builtins, name, None) if name.isidentifier() else None
    if separator and is_raisable(cls) and _stands_at_raise(span):
        return _class_of(cls)(text, span, help=help)
    return ExecutionError(message, span, help=help)


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
    return type(cls.__name__, (ExecutionError, cls), {"__doc__": cls.__doc__, "__module__": __name__})
