"""TVM's modules, imported at first use: registering operators and interpreting programs do not load TVM.

Use `te` and `tirx` inside the functions that are given as `compute`, never while a module is imported.
"""

from __future__ import annotations

import importlib
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


te = LazyModule("tvm.te")
tirx = LazyModule("tvm.tirx")
topi = LazyModule("tvm.topi")
