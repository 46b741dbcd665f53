"""Breakpoints: where, and on what condition, a debugger stops."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import PurePath
from typing import Any, TypeAlias

import attrs
import numpy as np

from relay.debug.places import Point, names_of
from relay.errors import ExecutionError
from relay.eval.frames import Frame
from relay.eval.interpreter import Machine
from relay.eval.values import Box, primal
from relay.ir.expr import Constant, OpCall, Var

Condition: TypeAlias = "str | Callable[[Mapping[str, Any]], Any]"
"""An expression of the language over the variables, or a function of Python from the variables by name."""


@attrs.define(eq=False)
class Breakpoint:
    """A place to stop: all given conditions must be true. `hits` counts the stops.

    A `line` of a `file` (its name, or the end of its path; None: any), the beginning of a `function`, a call of an
    `operator`; `when` a condition holds. A breakpoint of a condition alone stops where it becomes true. With a `log`
    message the program goes on, and the message is printed.
    """

    number: int
    line: int | None = None
    file: str | None = None
    function: str | None = None
    operator: str | None = None
    when: Condition | None = None
    log: str | None = None
    hits: int = 0
    held: bool = False  # the condition, where it was looked at last

    def __str__(self) -> str:
        named = {"line": self.line, "function": self.function, "operator": self.operator, "in": self.file}
        parts = [f"{what} {which}" for what, which in named.items() if which is not None]
        if self.when is not None:
            parts.append(f"when {self.when if isinstance(self.when, str) else getattr(self.when, '__name__', '..')}")
        return f"breakpoint {self.number}: {', '.join(parts)}"

    def is_at(self, frame: Frame, point: Point, begins_line: bool, begins_call: bool) -> bool:
        """True if a frame is where it stops, whatever the condition."""
        place = point.span
        if self.file is not None and (place is None or not self.is_file(place.source.filename)):
            return False
        if self.line is not None and (not begins_line or point.line != self.line):
            return False
        if self.function is not None and self.function not in names_of(frame.closure.function):
            return False
        if self.operator is not None:
            return point.operator == self.operator
        if self.line is None and self.function is not None:
            return begins_call
        return begins_line

    @property
    def is_condition_only(self) -> bool:
        """True if it is about values only, wherever the program is."""
        return self.line is None and self.function is None and self.operator is None

    def is_file(self, name: str) -> bool:
        """True if a file is the one that is meant."""
        own, wanted = PurePath(name), PurePath(self.file or "")
        return own == wanted or own.parts[-len(wanted.parts) :] == wanted.parts


class NonFinite(ExecutionError):
    """An operation makes a NaN or infinity of finite numbers."""


@attrs.frozen(eq=False)
class AppliedOperator:
    """A call of an operator of finite numbers, which is run next."""

    operator: str
    target: Var
    frame: Frame

    def non_finite(self) -> str | None:
        """The NaN or infinity in the result, after the call: "a NaN", "an infinity"; None if it is finite."""
        arrays = _arrays(self.frame.environment.get(self.target))
        if any(np.isnan(array).any() for array in arrays):
            return "a NaN"
        return None if all(map(_is_finite, arrays)) else "an infinity"


def applied_operator(frame: Frame, machine: Machine) -> AppliedOperator | None:
    """The operator that a frame applies next, if its operands are finite."""
    activation = frame.activations[-1]
    if activation.position >= len(activation.block.bindings):
        return None
    binding = activation.block.bindings[activation.position]
    call = binding.value
    if not isinstance(call, OpCall):
        return None
    operands = [a.value if isinstance(a, Constant) else machine.atom(frame, a) for a in call.arguments]
    if not all(_is_finite(array) for operand in operands for array in _arrays(operand)):
        return None
    return AppliedOperator(call.operator, binding.targets[0], frame)


def _arrays(value: object) -> list[np.ndarray]:
    """The float arrays of an operator's operand or result."""
    if isinstance(value, tuple):
        return [array for part in value for array in _arrays(part)]
    if not isinstance(value, Box | np.ndarray):
        return []
    array = primal(value)
    if array.dtype.kind == "V":  # bfloat16
        array = array.astype(np.float32)
    return [array] if array.dtype.kind == "f" else []


def _is_finite(array: np.ndarray) -> bool:
    return bool(np.isfinite(array).all())
