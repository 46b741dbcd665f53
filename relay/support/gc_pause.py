"""A pause of Python's cyclic garbage collector during compilation.

Modules are many objects that live long and have no cycles. Looking through all of them again and again takes up to a
fifth of the time.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager

from relay.support.locks import Lock

_lock = Lock()
_inside = 0  # the blocks that are running, in all threads
_enabled = False  # whether the collector ran before the first of them


@contextmanager
def without_collection() -> Iterator[None]:
    """Let the collector wait until the last such block of all threads ends; reference counts work as always."""
    global _inside, _enabled
    is_inside = False
    try:
        with _lock:
            if _inside == 0:
                _enabled = gc.isenabled()
                gc.disable()
            _inside += 1
            is_inside = True
        yield
    finally:
        with _lock:
            _inside = max(_inside - is_inside, 0)
            if _inside == 0 and _enabled:
                gc.enable()


def _in_copy() -> None:
    """In the copy of a process there are no other threads whose blocks might end."""
    global _inside
    if _inside and _enabled:
        gc.enable()
    _inside = 0


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_copy)
