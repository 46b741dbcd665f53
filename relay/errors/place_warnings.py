"""Warnings of places in programs: Python's warnings, or diagnostics while a file is checked."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from relay.errors import RelayWarning
from relay.errors.diagnostic import Diagnostic, Span

_collected: ContextVar[list[Diagnostic] | None] = ContextVar("collected", default=None)


def is_collecting() -> bool:
    """True while warnings become diagnostics."""
    return _collected.get() is not None


def warn_at(span: Span, message: str) -> None:
    """Warn of a place in a program."""
    collected = _collected.get()
    if collected is None:
        warnings.warn_explicit(message, RelayWarning, span.source.filename, span.line)
    else:
        collected.append(Diagnostic("warning", message, span, code="RelayWarning"))


@contextmanager
def collecting_warnings() -> Iterator[list[Diagnostic]]:
    """Within this context, warnings of places are put into the list that it gives."""
    found: list[Diagnostic] = []
    token = _collected.set(found)
    try:
        yield found
    finally:
        _collected.reset(token)
