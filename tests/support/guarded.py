"""Arrays beside which nothing can be read or written: what compiled code does beyond their bounds ends the process."""

from __future__ import annotations

import ctypes
import mmap
from typing import Any

import numpy as np

_PROTECT = getattr(ctypes.CDLL(None, use_errno=True), "mprotect", None)


def guarded(value: Any, *, end: bool) -> Any:
    """A copy of a value. Its arrays begin at a page before which there is none, or, with `end`, end at one behind which
    there is none. Where the system protects no pages, it is the value itself."""
    if isinstance(value, tuple):
        parts = [guarded(part, end=end) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    if not isinstance(value, np.ndarray) or not value.size or _PROTECT is None:
        return value
    page = mmap.PAGESIZE
    inside = -(-value.nbytes // page) * page
    memory = mmap.mmap(-1, inside + 2 * page)
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    for address in (start, start + page + inside):
        assert _PROTECT(ctypes.c_void_p(address), ctypes.c_size_t(page), 0) == 0
    first = page + (inside - value.nbytes if end else 0)
    made: np.ndarray = np.ndarray(value.shape, value.dtype, memory, first)
    made[...] = value
    return made
