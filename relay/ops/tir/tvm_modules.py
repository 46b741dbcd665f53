"""Lazy imports of TVM's modules: registering operators and interpreting programs do not load TVM.

Use `te` and `tirx` inside the functions that are given as `compute`, never while a module is imported.
"""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from typing import Any


class LazyModule:
    """Stands for a module; the first attribute that is asked for imports it."""

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        return getattr(importlib.import_module(self._name), attribute)

    def __repr__(self) -> str:
        return f"<{self._name}, imported at first use>"


_wide: ContextVar[bool] = ContextVar("wide", default=False)


@contextlib.contextmanager
def wide_indices(wide: bool) -> Iterator[None]:
    """While compute functions run: whether axes of known extents have indices of 64 bits.

    TVM multiplies the factors of an index with what it is divided by, and fails with an error, after which the process
    may crash, where that is not a number of the index's dtype.
    """
    token = _wide.set(wide)
    try:
        yield
    finally:
        _wide.reset(token)


_vectors: ContextVar[bool] = ContextVar("vectors", default=True)


@contextlib.contextmanager
def without_vectors() -> Iterator[None]:
    """While compute functions run: their statements are for a device whose threads compute with numbers alone."""
    token = _vectors.set(False)
    try:
        yield
    finally:
        _vectors.reset(token)


def has_vectors() -> bool:
    """True if statements may compute with vectors."""
    return _vectors.get()


def index_dtype() -> str:
    """The dtype of the indices of axes of known extents."""
    return "int64" if _wide.get() else "int32"


def axis_extent(extent: Any) -> Any:
    """An extent in the form that te takes."""
    return tirx.const(extent, "int64") if _wide.get() and isinstance(extent, int) else extent


class _Stages(LazyModule):
    """tvm.te, with axes whose indices have the dtype that they need."""

    __slots__ = ()

    def compute(self, shape: Sequence[Any], element: Callable[..., Any], **options: Any) -> Any:
        """te.compute"""
        return importlib.import_module(self._name).compute(tuple(map(axis_extent, shape)), element, **options)

    def reduce_axis(self, bounds: tuple[Any, Any], **options: Any) -> Any:
        """te.reduce_axis"""
        return importlib.import_module(self._name).reduce_axis(tuple(map(axis_extent, bounds)), **options)


te = _Stages("tvm.te")
tirx = LazyModule("tvm.tirx")
topi = LazyModule("tvm.topi")
