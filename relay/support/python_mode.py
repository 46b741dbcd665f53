"""The mode in which calls of decorated functions run: as compiled programs, unless a mode is active.

One mode runs them as the Python that they are (`relay.as_python`), another one in the debugger. The mode, which is
defined above this layer, then decides what a call, an operator or a builtin of the language does.
"""

from __future__ import annotations

import abc
import contextlib
from collections.abc import Iterator, Mapping, Sequence
from contextvars import ContextVar
from typing import Any


class Mode(abc.ABC):
    """A mode of running decorated functions without the compiler."""

    @abc.abstractmethod
    def call(self, function: Any, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
        """The result of a call of a decorated function."""

    def apply(self, operator: Any, operands: Sequence[Any], attributes: Mapping[str, Any]) -> Any:
        """The result of an operator for arrays and numbers."""
        return operator.compute_at_once(operands, attributes)

    def decorated_function(self, function: Any) -> Any:
        """A Python function as one of the language, to be differentiated; anything else as it is."""
        return function

    def checkpointed_function(self, function: Any) -> Any:
        """The function as `checkpoint` makes it; None: as usual."""
        return None

    def builtin(self, name: str, arguments: Sequence[Any]) -> Any:
        """The result of a function that works in programs only; NotImplemented for others."""
        return NotImplemented


active: ContextVar[Mode | None] = ContextVar("relay.as_python", default=None)
"""The mode of this thread and task; None where functions are compiled."""


entered: list[type[Mode]] = []
"""The kinds of modes that this process has entered. While there are none, a call need not look for the active one,
which would take a fortieth of the fastest calls' time."""


@contextlib.contextmanager
def enter(mode: Mode) -> Iterator[None]:
    """Within it, calls in this thread and task run in this mode."""
    if type(mode) not in entered:
        entered.append(type(mode))
    token = active.set(mode)
    try:
        yield
    finally:
        active.reset(token)


@contextlib.contextmanager
def no_mode() -> Iterator[None]:
    """Within it, calls are of programs."""
    token = active.set(None)
    try:
        yield
    finally:
        active.reset(token)
