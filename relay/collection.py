"""Compiling without Python's search for cycles of garbage.

Modules are many objects that live long and have no cycles. Looking through all of them again and again takes up to a
fifth of the time.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_lock = threading.Lock()
_inside = 0  # the blocks that are running, in all threads
_enabled = False  # whether the collector ran before the first of them


@contextmanager
def without_collection() -> Iterator[None]:
    """Let the collector wait until the last such block of all threads ends; reference counts work as always."""
    global _inside, _enabled
    with _lock:
        if _inside == 0:
            _enabled = gc.isenabled()
            gc.disable()
        _inside += 1
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if _inside == 0 and _enabled:
                gc.enable()
