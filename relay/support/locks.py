"""Fork-safe locks: free in a forked copy of the process.

Only the thread that calls `fork` lives on in the copy. A lock that another one held there would never be given back.
"""

from __future__ import annotations

import logging  # noqa: F401  (`fork` takes its lock; what is registered first is taken last, after the compiler's)
import os
import threading
from types import TracebackType
from typing import Any
from weakref import WeakSet

from relay.support.signals import deferral


def Lock(reentrant: bool = False) -> Any:
    """A lock for a `with` block; `reentrant`: the thread that holds it may take it again. It is for what is consistent
    whenever another thread may look at it, as a dict that entries are added to.

    It is Python's own, which no signal can come between taking it and the block.
    """
    lock = threading.RLock() if reentrant else threading.Lock()
    _locks.add(lock)
    return lock


_locks: WeakSet[Any] = WeakSet()


_PATIENCE = 0.05  # seconds after which a thread that waits looks for signals


class CompilerLock:
    """A reentrant lock in whose `with` block signals wait, as TVM's compiler needs it."""

    def __init__(self) -> None:
        self._lock = threading.RLock()

    def acquire(self) -> None:
        """Take it; `fork` does."""
        self._lock.acquire()

    def release(self) -> None:
        """Give it back."""
        self._lock.release()

    def __enter__(self) -> None:
        deferral.__enter__()
        try:
            while not self._lock.acquire(timeout=_PATIENCE):
                deferral.handle()
        except BaseException:
            deferral.__exit__(None, None, None)
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._lock.release()
        deferral.__exit__(kind, error, trace)


compiling = CompilerLock()
"""Held by the thread that uses TVM's compiler, which is not safe to use from several threads, or that imports parts of
Relay. `fork` waits for it: a copy has no compiler and no module that another thread was in the middle of."""


def _in_copy() -> None:
    for lock in list(_locks):
        lock._at_fork_reinit()  # makes it free


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_copy)
    os.register_at_fork(before=compiling.acquire, after_in_parent=compiling.release, after_in_child=compiling.release)
