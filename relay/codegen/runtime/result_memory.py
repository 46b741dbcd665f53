"""The arrays that programs write their results into. Each begins at a line of the cache, so that vectors lie in one
line, and libraries that want this (JAX) take the memory as it is.

Small arrays are made many at a time, in one piece of memory. Others are given again once nobody holds them: the system
would give new memory page by page, each cleared, which takes longer than to fill it.
"""

from __future__ import annotations

import ctypes
import math
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

LINE = 64
"""The bytes of a line of the cache."""

_SMALL = 1 << 11
"""The most bytes of a small array."""

_TOGETHER = 1 << 13
"""The most bytes of small arrays that are made together, and stay as long as one of them is held."""

_AT_ONCE = 32
_KEPT = 2
"""The number of the others that each leaf has: in `x = f(x)` one is read while the other is written."""

_HAS_LOCK = getattr(sys, "_is_gil_enabled", lambda: True)()
"""True if reference counts tell who refers to an array."""

_HEAD = object.__basicsize__
_word_at = ctypes.c_size_t.from_address


class _Memory(np.ndarray):
    """The bytes behind an array. Of another class than the array: otherwise NumPy would have what is made of the array
    refer to these bytes in its place, and nobody could tell that it is in use."""


def new_array(dims: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray:
    """An array at a line of the cache. Raises MemoryError, and ValueError for sizes below 0."""
    if dims and min(dims) < 0:
        raise ValueError("a size is negative")
    try:
        memory = _Memory(math.prod(dims) * dtype.itemsize + LINE - 1, np.uint8)
        return np.ndarray(dims, dtype, memory, -_word_at(id(memory) + _HEAD).value % LINE)
    except ValueError as error:  # the product of the sizes is one that NumPy does not count to
        raise MemoryError(str(error)) from None


def aligned(array: np.ndarray) -> np.ndarray:
    """The array, or a copy of it at a line of the cache, row by row."""
    if not array.size or (array.flags.c_contiguous and array.ctypes.data % LINE == 0):
        return array
    made = new_array(array.shape, array.dtype)
    made[...] = array
    return made


def _block(dims: tuple[int, ...], dtype: np.dtype[Any]) -> list[np.ndarray]:
    """Small arrays in one piece of memory, each at a line of the cache."""
    size = math.prod(dims) * dtype.itemsize
    lines = -(-max(size, 1) // LINE) * LINE
    count = max(1, min(_AT_ONCE, _TOGETHER // lines))
    memory = np.empty(count * lines + LINE - 1, np.uint8)
    start = -_word_at(id(memory) + _HEAD).value % LINE
    if not dims:
        return [np.ndarray((), dtype, memory, start + i * lines) for i in range(count)]
    strides = np.empty(dims, dtype).strides if size else (0,) * len(dims)
    return [*np.ndarray((count, *dims), dtype, memory, start, (lines, *strides))]


class Maker:
    """Makes arrays of one dtype, whose sizes calls decide."""

    __slots__ = ("_dtype", "_kept", "_next", "_ready")

    def __init__(self, dtype: np.dtype[Any]) -> None:
        self._dtype = dtype
        self._kept: list[np.ndarray] = []
        self._next = 0
        self._ready: tuple[tuple[int, ...], list[np.ndarray]] = ((-1,), [])

    def __call__(self, dims: tuple[int, ...]) -> np.ndarray:
        sizes, ready = self._ready
        if sizes == dims:
            try:
                return ready.pop()
            except IndexError:
                pass
        for array in self._kept:
            # The list, `array`, and the argument. A thread that is here, too, has one more.
            if sys.getrefcount(array) == 3 and array.shape == dims:
                return array
        size = math.prod(dims) * self._dtype.itemsize
        if 0 < size <= _SMALL and min(dims, default=0) >= 0:
            ready = _block(dims, self._dtype)
            made = ready.pop()
            self._ready = dims, ready
            return made
        made = new_array(dims, self._dtype)
        if size > _SMALL and _HAS_LOCK:
            self._keep(made)
        return made

    def _keep(self, made: np.ndarray) -> None:
        kept = self._kept
        if len(kept) < _KEPT:
            kept.append(made)
        else:
            self._next = (self._next + 1) % _KEPT
            kept[self._next] = made


class SmallMaker:
    """Makes small arrays of one shape. Those that are `ready` may be taken from there."""

    __slots__ = ("_dims", "_dtype", "ready")

    def __init__(self, dims: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        self._dims, self._dtype = dims, dtype
        self.ready: list[np.ndarray] = []

    def __call__(self) -> np.ndarray:
        try:
            return self.ready.pop()
        except IndexError:
            made = _block(self._dims, self._dtype)
            self.ready.extend(made[1:])
            return made[0]


def maker(dims: tuple[int, ...], dtype: np.dtype[Any]) -> Callable[[], np.ndarray]:
    """A function that makes arrays of one shape."""
    size = math.prod(dims) * dtype.itemsize
    if size > _SMALL:
        make = Maker(dtype)
        return lambda: make(dims)
    return SmallMaker(dims, dtype)
