"""Lowered functions: the results of `f.lower(..)`, before compilation and execution."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs

from relay.calling.executable import Executable
from relay.ir.expr import Module
from relay.ir.types import Type


@attrs.frozen(eq=False)
class Lowering:
    """A function at the types of given arguments: its programs of each stage, and the way to native code."""

    typed: Module
    """The typed, higher-order program."""
    result: Type
    """The type of the result, with the Python structures that its tuples stand for."""
    values: list[Any]
    """The arguments as the programs take them: arrays, references, data, tuples; None where only a type was given."""
    _core: Callable[[], Module]
    _compile: Callable[[], Executable]

    @property
    def core(self) -> Module:
        """The first-order program that runs: specialized, differentiated, optimized."""
        __tracebackhide__ = True
        return self._core()

    @property
    def text(self) -> str:
        """The first-order program as text, which `relay.parse` reads back."""
        from relay.text.printer import to_text

        return to_text(self.core)

    def __str__(self) -> str:
        return self.text

    def compile(self) -> Executable:
        """Native code for arguments of these types. Raises CompileError for a function that only Python can call."""
        __tracebackhide__ = True
        return self._compile()
