"""The origin of a NaN or an infinity: the first operation that makes one, and the way to the result.

Every operator's result is checked. A result with such an element whose operands have none is an origin; one whose
operands have some passes it on. From the result the way leads back to its origin.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import attrs
import numpy as np

from relay.api.differentiation import value_and_grad
from relay.api.function import RelayFunction
from relay.debug import causes
from relay.debug.programs import Program, program_of
from relay.debug.watching import Computation, watch
from relay.errors import ExecutionError, FrontendError, RelayError
from relay.errors.diagnostic import Diagnostic, Label, Span
from relay.eval.values import Box, Data, Reference, Stack, primal
from relay.eval.variables import COTANGENT, short_text, type_text
from relay.ir.expr import Function, OpCall
from relay.ir.traverse import walk
from relay.ir.types import TensorType

Predicate: TypeAlias = Callable[[np.ndarray], Any]
"""Tells of an array which elements are looked for: an array of bools, or a bool."""

SHOWN_STEPS = 6
"""The number of operations on the way to the result that a message shows."""


@attrs.frozen
class Input:
    """An operand of an operation: its name in the program, its type and value as text, and its array. `element` is the
    one that the first wrong element of the result was made of, where that can be told."""

    name: str
    type: str
    value: str
    array: np.ndarray = attrs.field(repr=False, eq=False)
    element: float | None = None

    def __str__(self) -> str:
        element = "" if self.element is None or self.array.ndim == 0 else f"; there it is {self.element:.6g}"
        return f"{self.name}: {self.type} = {self.value}{element}"


@attrs.frozen(eq=False)
class Operation:
    """An operation on the way: `operator` applied in `function`, at `span`, bound to `name`. An argument of the program
    has the operator ""."""

    operator: str
    function: str
    name: str
    span: Span | None
    inputs: tuple[Input, ...]
    array: np.ndarray = attrs.field(repr=False)
    is_backward: bool = False
    sources: tuple[Operation, ...] = attrs.field(default=(), repr=False)

    @property
    def line(self) -> int | None:
        """The line of the user's file."""
        return None if self.span is None else self.span.line

    def __str__(self) -> str:
        place = f"{self.span.source.filename}:{self.span.line}: " if self.span is not None else ""
        what = f"{self.name} = {self.operator}(..)" if self.operator else f"the argument {self.name}"
        return f"{place}{what}{', in the backward part' if self.is_backward else ''}"


@attrs.frozen(eq=False)
class Finding:
    """The origin of a wrong element. `origin` is the first operation that made one; `chain` leads from it to the
    result, or, if it does not get there (`in_result` is False), is the origin alone.

    `position` is the first such element of the origin's array, `kind` is "NaN", "infinity" or "wrong". `cause` and
    `help` have the usual cause and fix, where they are known.
    """

    origin: Operation
    chain: tuple[Operation, ...]
    position: tuple[int, ...]
    kind: str
    in_result: bool
    cause: str | None = None
    help: str | None = None

    @property
    def line(self) -> int | None:
        """The line of the origin."""
        return self.origin.line

    @property
    def inputs(self) -> tuple[Input, ...]:
        """The operands of the origin."""
        return self.origin.inputs

    def diagnostic(self) -> Diagnostic:
        """The finding as a message with the lines of the program."""
        origin = self.origin
        part = "the backward part of " * origin.is_backward
        if origin.operator:
            message = f"{origin.operator} in {part}{_plain_name(origin.function)} makes the first {self.kind}"
        else:
            message = f"the argument {origin.name} has a {self.kind}"
        if origin.array.ndim:
            message += f", at {list(self.position)} of {type_text(origin.array)}"
        notes = [str(one) for one in origin.inputs]
        rest = self.chain[1:]
        steps = [(s.span, f"then {s.name}{' (backward)' if s.is_backward else ''}") for s in rest]
        counts = Counter(step for step in steps if step[0] is not None)  # a loop passes a line in each round
        labels = [
            Label(span, text if count == 1 else f"{text}, {count} times")
            for (span, text), count in list(counts.items())[:SHOWN_STEPS]
            if span is not None
        ]
        if len(counts) > SHOWN_STEPS:
            notes.append(f"it passes through {len(counts) - SHOWN_STEPS} more operations (`.chain`)")
        if not self.in_result:
            notes.append("it does not reach the result")
        if self.cause is not None:
            notes.append(self.cause)
        return Diagnostic("note", message, origin.span, tuple(labels), tuple(notes), self.help)

    def __str__(self) -> str:
        return self.diagnostic().render()


def not_finite(array: np.ndarray) -> np.ndarray:
    """The elements that are NaN or infinite."""
    if array.dtype.kind == "V":
        array = array.astype(np.float32)
    return ~np.isfinite(array) if array.dtype.kind == "f" else np.zeros(array.shape, bool)


def find_nan(
    function: RelayFunction, *arguments: Any, where: Predicate = not_finite, **keywords: Any
) -> Finding | None:
    """Find the origin of a NaN or infinity in a result, or in the gradient, if the result has none.

    The gradient is checked for functions of float arguments whose result is one float. If both are finite, the first
    operation is found that makes such a number on the way, as one whose result `relay.where` has dropped. Returns None
    if there is none at all.

    Args:
        function: what `@relay` or `relay.grad` returned; the interpreter runs it.
        arguments, keywords: as a call of it gets them.
        where: other elements to look for: `lambda array: array > 1e6`.

    Raises whatever the call raises, and ExecutionError if `where` fails for an array.
    """
    if not callable(where):
        raise FrontendError(f"`where` is a function from an array to bools, found {type(where).__name__}")
    program = program_of(function, arguments, keywords)
    found = _Search(program, where).run()
    if found is not None and found.in_result:
        return found
    backward = None if program.stage == "derived" else _gradient_program(function, program, arguments, keywords)
    if backward is not None:
        in_gradient = _Search(backward, where).run()
        if in_gradient is not None and in_gradient.in_result:
            return in_gradient
    return found


def error_of_call(
    function: RelayFunction, arguments: Sequence[Any], keywords: Mapping[str, Any]
) -> ExecutionError | None:
    """The error of a call that returned a NaN or infinity; None if the interpreter finds none in the result."""
    found = _Search(program_of(function, arguments, keywords), not_finite).run()
    if found is None or not found.in_result:
        return None
    said = found.diagnostic()
    return ExecutionError(said.message, said.span, labels=said.labels, notes=said.notes, help=said.help)


def _gradient_program(
    function: RelayFunction, program: Program, arguments: Sequence[Any], keywords: Any
) -> Program | None:
    """The program with its derivative; None where there is none."""
    result = program.module.main.result
    if not isinstance(result, TensorType) or result.shape != () or result.dtype.kind not in "fV":
        return None
    try:
        return program_of(value_and_grad(function), arguments, keywords)
    except RelayError:  # it cannot be differentiated, which nobody has asked for
        return None


class _Search:
    def __init__(self, program: Program, where: Predicate) -> None:
        self._program = program
        self._where = where
        self._made: dict[int, Operation] = {}  # by the array, which the operation keeps alive
        self._first: Operation | None = None
        self._written = _operators_by_place(program)

    def run(self) -> Finding | None:
        parameters = self._program.module.main.parameters
        for parameter, value in zip(parameters, self._program.arguments, strict=True):
            for array in _arrays(value):
                if self._is_wrong(array):
                    self._note(Operation("", self._program.module.main.name, parameter.name, parameter.span, (), array))
        result = watch(self._program, self._look)
        wrong = [array for array in _arrays(result) if self._is_wrong(array)]
        reached = [self._made[id(array)] for array in wrong if id(array) in self._made]
        if reached:
            return self._finding(_chain(reached[0]), True)
        return None if self._first is None else self._finding((self._first,), bool(wrong))

    def _is_wrong(self, array: np.ndarray) -> bool:
        return bool(self._mask(array).any())

    def _mask(self, array: np.ndarray) -> np.ndarray:
        """The mask of wrong elements. Raises ExecutionError if the user's predicate fails."""
        if self._where is not_finite:
            return not_finite(array)
        try:
            found = np.asarray(self._where(array))
            if found.dtype.kind not in "biuf":
                raise TypeError("it returned no bools")
            return np.broadcast_to(found.astype(bool), array.shape)
        except Exception as error:
            message = f"`where` raised {type(error).__name__} for a {type_text(array)}: {error}"
            raise ExecutionError(message) from error

    def _look(self, computation: Computation) -> None:
        for array in computation.results:
            if self._is_wrong(array):
                sources = tuple(self._made[id(a)] for a in computation.operands if id(a) in self._made)
                position = _first_position(self._mask(array), array)
                self._note(
                    Operation(
                        computation.call.operator,
                        computation.function,
                        computation.target.name,
                        computation.span,
                        _inputs(computation, position, array.shape),
                        array,
                        self._is_backward(computation),
                        sources,
                    )
                )

    def _is_backward(self, computation: Computation) -> bool:
        """True if an operation belongs to the backward part of a derivative: its line does not have it."""
        if self._program.stage == "typed" or computation.span is None:
            return False
        written = self._written.get(computation.span, ())
        return computation.call.operator not in written or computation.target.name.startswith(COTANGENT)

    def _note(self, operation: Operation) -> None:
        self._made[id(operation.array)] = operation
        if self._first is None:
            self._first = operation

    def _finding(self, chain: tuple[Operation, ...], in_result: bool) -> Finding:
        origin = chain[0]
        position = _first_position(self._mask(origin.array), origin.array)
        element = float(origin.array[position])
        kind = "NaN" if np.isnan(element) else "infinity" if np.isinf(element) else "number that is looked for"
        written = () if origin.span is None else self._written.get(origin.span, ())
        drops = any("where" in operators for operators in self._written.values())
        cause = causes.cause_of(chain, kind == "NaN", written, drops) if self._where is not_finite else None
        explanation, help = cause if cause is not None else (None, None)
        return Finding(origin, chain, position, kind, in_result, explanation, help)


def _chain(operation: Operation) -> tuple[Operation, ...]:
    """The way from an origin to an operation."""
    chain = [operation]
    while chain[-1].sources:
        chain.append(chain[-1].sources[0])
    return tuple(reversed(chain))


def _inputs(computation: Computation, position: tuple[int, ...], shape: tuple[int, ...]) -> tuple[Input, ...]:
    found = []
    for name, array in zip(computation.names, computation.operands, strict=True):
        element = None
        if array.dtype.kind in "fiubV" and (array.shape == shape or array.ndim == 0):
            element = float(array[position if array.ndim else ()])
        found.append(Input(name, type_text(array), short_text(array), array, element))
    return tuple(found)


def _first_position(mask: np.ndarray, array: np.ndarray) -> tuple[int, ...]:
    """The position of the first element that is looked for."""
    return tuple(int(i) for i in np.unravel_index(int(np.argmax(mask)), array.shape)) if array.ndim else ()


def _arrays(value: object) -> list[np.ndarray]:
    """The arrays in a run-time value, from left to right."""
    found: list[np.ndarray] = []
    pending, seen = [value], set[int]()
    while pending:
        current = pending.pop()
        match current:
            case np.ndarray() | Box():
                found.append(primal(current))
            case tuple():
                pending += reversed(current)
            case Data(fields=fields):
                pending += reversed(fields)
            case Stack(buffer, length):
                pending += reversed(buffer[:length])
            case Reference(content) if id(current) not in seen:
                seen.add(id(current))
                pending.append(content)
            case _:
                pass
    return found


def _operators_by_place(program: Program) -> dict[Span, tuple[str, ...]]:
    """The operators that the program has at each place, as it is written."""
    found: dict[Span, dict[str, None]] = {}
    for function in program.typed.functions.values():
        if isinstance(function, Function):
            for binding in walk(function.body):
                span = binding.value.span if isinstance(binding.value, OpCall) else None
                if span is not None and isinstance(binding.value, OpCall):
                    found.setdefault(span, {})[binding.value.operator] = None
    return {place: tuple(operators) for place, operators in found.items()}


def _plain_name(function: str) -> str:
    """The name of the function that a part of a derivative belongs to."""
    for suffix in ("_gradient", "_forward", "_backward"):
        function = function.removesuffix(suffix)
    return function
