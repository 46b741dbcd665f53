"""Locks that are free in the copy of a process.

Only the thread that calls `fork` lives on in the copy. A lock that another one held there would never be given back.
"""

from __future__ import annotations

import os
import threading
from typing import Any
from weakref import WeakSet


class Lock:
    """A lock for a `with` block; `reentrant`: the thread that holds it may take it again. It is for what is consistent
    whenever another thread may look at it, as a dict that entries are added to."""

    __slots__ = ("__weakref__", "_lock", "_make")

    def __init__(self, reentrant: bool = False) -> None:
        self._make: Any = threading.RLock if reentrant else threading.Lock
        self.renew()
        _locks.add(self)

    def renew(self) -> None:
        """Make it free."""
        self._lock = self._make()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()


_locks: WeakSet[Lock] = WeakSet()

compiling = threading.RLock()
"""Held by the thread that uses TVM's compiler, which is not safe to use from several threads, or that imports parts of
Relay. `fork` waits for it: a copy has no compiler and no module that another thread was in the middle of."""


def _in_copy() -> None:
    for lock in list(_locks):
        lock.renew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_copy)
    os.register_at_fork(before=compiling.acquire, after_in_parent=compiling.release, after_in_child=compiling.release)
