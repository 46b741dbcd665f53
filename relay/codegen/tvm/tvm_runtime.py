"""TVM's runtime, without its compiler and without PyTorch.

`tvm_ffi` imports PyTorch where that is installed, to know its dtypes and to pass its tensors faster, which takes a
second and builds a C++ extension for some versions. Relay passes addresses only. This module imports `tvm_ffi` without
that, unless the program has imported PyTorch before.
"""

from __future__ import annotations

import ctypes
import functools
import importlib.util
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any


class _AbsentPackage(MetaPathFinder):
    """Makes a package absent for the imports of this thread; what others import meanwhile is found as always."""

    def __init__(self, package: str) -> None:
        self._package = package
        self._thread = threading.get_ident()

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name == self._package and threading.get_ident() == self._thread:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return None


@contextmanager
def package_absent(package: str) -> Iterator[None]:
    """Let imports of a package fail, unless it is imported already."""
    if package in sys.modules:
        yield
        return
    finder = _AbsentPackage(package)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)


with package_absent("torch"):
    import tvm_ffi  # loads the library that the runtime is linked with


def load(path: Path) -> Any:
    """The functions of a library."""
    load_runtime()
    return tvm_ffi.load_module(str(path.resolve()))  # a name alone would be looked for elsewhere


@functools.cache
def load_runtime() -> None:
    """Load the library with TVM's thread pool and allocator, without importing TVM, for all code of this process."""
    found = importlib.util.find_spec("tvm")
    if found is not None and found.origin is not None:
        ctypes.CDLL(str(Path(found.origin).parent / "lib" / "libtvm_runtime.so"), mode=ctypes.RTLD_GLOBAL)
