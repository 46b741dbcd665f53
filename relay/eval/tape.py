"""The interpreter's own reverse-mode differentiation: a dynamic tape with nesting levels.

Each application of `grad(f)` opens a tape. Its float arguments become boxes on the tape; an operator applied to boxes
is applied to what is inside, one level further out, and recorded:

    z = op(x, y)     records (op, x, y, z)
    backward:        x' += dop/dx . z'      y' += dop/dy . z'      from the last entry to the first

The tape opened last is the innermost: an operator that meets boxes of several tapes is recorded on that one first, and
computes with the boxes of the others, so these record it in turn. The backward sweep computes with values of the levels
further out in the same way; that makes derivatives of derivatives, and keeps the levels' perturbations apart. When its
sweep is done a tape is closed, and boxes that it left behind (in a reference, say) count as what is inside them.

This file shares nothing with `relay.ad`, whose oracle it is, except the operators' gradients.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, TypeVar

import attrs
import numpy as np

from relay.errors import DifferentiationError, ExecutionError
from relay.eval.operation import Operations, type_of
from relay.eval.pullbacks import Pullback, Update, pullback
from relay.eval.values import Box, Data, Reference, Stack, describe, is_float, map_leaves, map_tree, primal, same_data
from relay.ir.derivative import gradient_definition
from relay.ir.expr import AttributeValue, Grad, Module, OpCall
from relay.ir.types import TensorType, Type
from relay.operator import Operator

Tensor: TypeAlias = np.ndarray | Box
_T = TypeVar("_T")

_levels = itertools.count()


def next_level() -> int:
    """The level of what begins now: tapes that are opened later are further in."""
    return next(_levels)


@attrs.define(slots=True, eq=False)  # not frozen: made for each operator, in a third of the time
class Entry:
    """One operator application: what went in and came out, one level further out, and which entries it came from (None
    for an operand that does not depend on the tape's inputs). An input of the tape has no call."""

    call: OpCall | None
    operands: tuple[Tensor, ...]
    sources: tuple[int | None, ...]
    output: Tensor


@attrs.frozen(slots=True, eq=False)
class Application:
    """A call of a function with a custom gradient: the entries that the float tensors of its arguments came from,
    its result, and its gradient, from the cotangent of the result to the cotangents of the arguments."""

    sources: tuple[int | None, ...]
    arguments: tuple[object, ...]
    result: object
    pull: Callable[[object], object]


@attrs.frozen(slots=True, eq=False)
class Part:
    """A float tensor of the result of an application, by its number among them."""

    application: int
    number: int
    output: Tensor


class Tape:
    """The tape of one differentiated call: what it has computed so far."""

    def __init__(self) -> None:
        self.level = next_level()
        self.entries: list[Entry | Application | Part] = []
        self.closed = False

    def record(self, entry: Entry | Part) -> Box:
        """Append an entry, and box its output."""
        self.entries.append(entry)
        return Box(entry.output, self, len(self.entries) - 1)

    def box(self, value: object) -> object:
        """An argument with every float tensor in it, through tuples and data, made an input of the tape."""

        def input_(tensor: Tensor) -> Box:
            return self.record(Entry(None, (), (), settle(tensor)))

        return map_floats(value, input_, lambda leaf: leaf)

    def close(self) -> None:
        """Forget everything. Boxes of the tape are constants from now on."""
        self.closed = True
        self.entries = []


def is_float_tensor(value: object) -> bool:
    """True if a value is a float tensor, boxed or not."""
    return isinstance(value, Box) or (isinstance(value, np.ndarray) and is_float(value))


def float_leaves(value: object) -> list[Tensor]:
    """The float tensors in tuples and data, in order."""
    found: list[Tensor] = []
    map_floats(value, found.append, lambda leaf: leaf)
    return found


def map_floats(value: object, change: Callable[[Tensor], object], rest: Callable[[object], object]) -> object:
    """Tuples and data with other float tensors, in order, and other leaves of other kinds."""

    def leaf(part: object) -> object:
        return change(part) if is_float_tensor(part) else rest(part)  # type: ignore[arg-type]

    return map_tree(value, leaf, same_data)


def map_gradients(value: object, change: Callable[[Tensor], object]) -> object:
    """The gradient of a value: its float tensors changed, in order, and what has no gradient unit."""

    def leaf(part: object) -> object:
        return change(part) if is_float_tensor(part) else ()  # type: ignore[arg-type]

    def data(part: Data, fields: tuple[object, ...]) -> object:
        made = gradient_definition(part.definition)
        return () if made is None else Data(made, part.constructor, fields)

    return map_tree(value, leaf, data)


def settle(value: _T) -> _T:
    """The value without boxes of closed tapes around it."""
    while isinstance(value, Box) and value.tape.closed:
        value = value.value  # type: ignore[assignment]
    return value


def unbox(value: object) -> object:
    """A result without boxes, sharing no memory with anything else. References in it stay what they are, and their
    contents become so."""
    references: dict[Reference, None] = {}
    pending: list[Reference] = []

    def leaf(part: object) -> object:
        match part:
            case Box() | np.ndarray():
                return primal(part).copy()
            case Stack(buffer, length):  # a list, of cells
                return Stack([leaf(cell) for cell in buffer[:length]], length)
            case Reference():
                if part not in references:
                    references[part] = None
                    pending.append(part)
                return part
            case _:
                return part

    result = map_leaves(value, leaf)
    while pending:
        reference = pending.pop()
        reference.content = map_leaves(reference.content, leaf)
    return result


def tapes_of(arguments: object) -> set[Tape]:
    """The tapes that float tensors in a value are on, or in what references there hold."""
    found: set[Tape] = set()
    seen: set[Reference] = set()
    pending = [arguments]

    def leaf(part: object) -> object:
        match part:
            case Box():
                if isinstance(box := settle(part), Box):
                    found.add(box.tape)
            case Reference() if part not in seen:
                seen.add(part)
                pending.append(part.content)
            case Stack(buffer, length):
                pending.extend(buffer[:length])
            case _:
                pass
        return part

    while pending:
        map_leaves(pending.pop(), leaf)
    return found


class Differentiator:
    """Applies operators to boxes, and sweeps tapes backward. `call` runs a program on values that may be boxes."""

    def __init__(
        self,
        operations: Operations,
        call: Callable[[Module, Sequence[object]], object],
        ask: Callable[[OpCall, Sequence[Tensor], Tape | None], object] | None = None,
    ) -> None:
        self.operations = operations
        self._ask = ask  # what all examples along an axis have; None where there are none
        self._call = call
        self._pullbacks: dict[tuple[object, ...], Pullback] = {}
        self._sums: dict[tuple[object, ...], tuple[OpCall, TensorType]] = {}

    def apply(self, call: OpCall, operands: Sequence[Tensor], type_: Type | None) -> Any:
        """The operator's value, or values, recorded on the innermost tape among the operands', and on the others."""
        tape: Tape | None = None
        for operand in operands:
            if type(operand) is Box:
                if operand.tape.closed:
                    return self.apply(call, [settle(o) for o in operands], type_)
                if tape is None or operand.tape.level > tape.level:
                    tape = operand.tape
        if self._ask is not None and (answer := self._ask(call, operands, tape)) is not None:
            return answer
        if tape is None:
            return self.operations.prepared_call(call, type_)(*operands)
        operator = self.operations.operator(call)
        if operator.composition is not None and operator.gradient is None and operator.no_gradient is None:
            return self._compose(operator, call, operands)
        outer: list[Tensor] = []
        sources: list[int | None] = []
        for operand in operands:
            if type(operand) is Box and operand.tape is tape:
                outer.append(operand.value)
                sources.append(operand.position)
            else:
                outer.append(operand)
                sources.append(None)
        output = self.apply(call, outer, type_)
        if not is_float(primal(output)):
            return output
        return tape.record(Entry(call, tuple(outer), tuple(sources), output))

    def _compose(self, operator: Operator, call: OpCall, operands: Sequence[Tensor]) -> Any:
        """The value of a composite operator without a gradient of its own: what its body records."""
        assert operator.composition is not None
        body = operator.composition.body([type_of(primal(o)) for o in operands], call.attributes)
        arguments: list[object] = [tuple(operands)] if operator.variadic else list(operands)
        try:
            result = self._call(body.typed, arguments)
        except ExecutionError as error:
            raise ExecutionError(error.message, call.span) from error
        assert isinstance(result, Box | np.ndarray | tuple)
        return result

    def backward(self, result: Box, seed: Tensor) -> list[Tensor | None]:
        """The cotangent of every entry of the result's tape, where the result's is `seed`."""
        entries = result.tape.entries
        cotangents = Cotangents(self, len(entries))
        cotangents.found[result.position] = seed
        applied: dict[int, dict[int, Tensor]] = {}  # the cotangents of the parts of applications
        for position in range(result.position, -1, -1):
            entry = entries[position]
            if type(entry) is Entry:
                if entry.call is None:
                    continue
                cotangent = cotangents.take(position)
                if cotangent is None and self._ask is not None and self.operations.is_collective(entry.call):
                    cotangent = np.zeros_like(primal(entry.output))  # other examples wait for this one
                if cotangent is not None:
                    self._pull(entry.call, entry, cotangent, cotangents)
            elif isinstance(entry, Application):
                if position in applied:
                    self._pull_application(entry, applied.pop(position), cotangents)
            elif isinstance(entry, Part) and (cotangent := cotangents.take(position)) is not None:
                applied.setdefault(entry.application, {})[entry.number] = cotangent
        return cotangents.found

    def _pull(self, call: OpCall, entry: Entry, cotangent: Tensor, cotangents: Cotangents) -> None:
        """Add the cotangents of an entry's operands, by the operator's gradient.

        Raises DifferentiationError if it has none and the cotangent is not zero.
        """
        operator = self.operations.operator(call)
        if operator.gradient is None:
            if not np.any(primal(cotangent)):
                return
            raise DifferentiationError(
                f"{operator.name} has no gradient: {operator.no_gradient}",
                call.span,
                help=f"give it a gradient, or make it a constant: `relay.stop_gradient({operator.name}(..))`",
            )
        wanted = [source is not None for source in entry.sources]
        key = (call, *wanted, *[primal(o).shape for o in entry.operands])
        found = self._pullbacks.get(key)
        if found is None:
            arrays = [primal(o) for o in entry.operands]
            found = self._pullbacks[key] = pullback(operator, call, arrays, primal(entry.output), wanted)
        results = found.code.evaluate((*entry.operands, entry.output, cotangent), self.apply)
        for source, operand, part in zip(entry.sources, entry.operands, found.parts, strict=True):
            if source is None or part is None:
                continue
            array = primal(operand)
            if isinstance(part, Update):
                cotangents.update(source, part, [results[number] for number in part.others], array)
                continue
            new = results[part]
            if primal(new).shape != array.shape:  # the operator broadcast this operand
                total, type_ = self.sum("sum_to", array, shape=array.shape)
                new = self.apply(total, (new,), type_)
            cotangents.add(source, new)

    # ---- functions with a gradient of their own

    def custom(
        self,
        arguments: tuple[object, ...],
        tape: Tape,
        forward: Callable[[tuple[object, ...]], tuple[object, object]],
        backward: Callable[[object, object], object],
    ) -> object:
        """The result of a function with such a gradient, recorded on the innermost tape of the arguments and of what
        references in them hold.

        `forward` gives the result and what is saved, on the levels further out; `backward` the arguments' cotangents.
        The result depends on the arguments, and not on what references hold, whatever the function computes it of.
        """

        def outer_leaf(leaf: Tensor) -> Tensor:
            leaf = settle(leaf)
            return leaf.value if isinstance(leaf, Box) and leaf.tape is tape else leaf

        leaves = [settle(leaf) for leaf in float_leaves(arguments)]
        sources = tuple(x.position if isinstance(x, Box) and x.tape is tape else None for x in leaves)
        outer = tuple(map_floats(a, outer_leaf, lambda leaf: leaf) for a in arguments)
        result, saved = forward(outer)
        result = map_floats(result, outer_leaf, lambda leaf: leaf)
        if all(source is None for source in sources):
            return result
        position = len(tape.entries)
        tape.entries.append(Application(sources, outer, result, lambda seed: backward(saved, seed)))
        numbers = itertools.count()

        def box(leaf: Tensor) -> object:
            return tape.record(Part(position, next(numbers), leaf))

        return map_floats(result, box, lambda leaf: leaf)

    def _pull_application(self, entry: Application, given: dict[int, Tensor], cotangents: Cotangents) -> None:
        numbers = itertools.count()

        def seed(leaf: Tensor) -> object:
            found = given.get(next(numbers))
            return np.zeros_like(primal(leaf)) if found is None else found

        parts = float_leaves(entry.pull(map_gradients(entry.result, seed)))
        for source, part in zip(entry.sources, parts, strict=True):
            if source is not None:
                cotangents.add(source, part)

    def sum(self, operator: str, like: np.ndarray, **attributes: AttributeValue) -> tuple[OpCall, TensorType]:
        """A call that gives a cotangent of an array's type, always the same object, so that caches find it; and the
        type."""
        key = (operator, like.dtype, like.shape)
        found = self._sums.get(key)
        if found is None:
            found = self._sums[key] = OpCall(operator, (), attributes), type_of(like)
        return found


class Cotangents:
    """The cotangents of a tape's entries so far, by position.

    `_own` are those that were made here, which nothing else refers to; updates write into them.
    """

    def __init__(self, differentiator: Differentiator, count: int) -> None:
        self.found: list[Tensor | None] = [None] * count
        self._own: set[int] = set()
        self._differentiator = differentiator

    def take(self, position: int) -> Tensor | None:
        """The cotangent of an entry, which is not needed again."""
        found, self.found[position] = self.found[position], None
        self._own.discard(position)
        return found

    def add(self, position: int, part: Tensor) -> None:
        present = self.found[position]
        if present is not None:
            call, type_ = self._differentiator.sum("add", primal(part))
            part = self._differentiator.apply(call, (present, part), type_)
        self._own.discard(position)
        self.found[position] = part

    def update(self, position: int, update: Update, others: Sequence[Tensor], like: np.ndarray) -> None:
        present = self.found[position]
        if present is None:
            present = np.zeros_like(like)
            self._own.add(position)
        operands = [*others[: update.position], present, *others[update.position :]]
        operations = self._differentiator.operations
        in_place = operations.operator(update.call).memory.in_place
        writes = in_place is not None and in_place.write is not None and in_place.operand == update.position
        if writes and position in self._own and not any(isinstance(o, Box) for o in operands):
            self.found[position] = operations.update(update.call, operands)  # type: ignore[arg-type]
            return
        self.found[position] = new = self._differentiator.apply(update.call, operands, type_of(like))
        if not isinstance(new, Box):
            self._own.add(position)


@attrs.frozen(slots=True, eq=False)
class Differentiation:
    """A call of `grad(f)` that waits for f's result. It is on the interpreter's stack below f's frame."""

    grad: Grad
    tape: Tape
    inputs: tuple[object, ...]  # f's arguments, boxed where they are differentiated
    seed: Tensor | None
    differentiator: Differentiator

    @staticmethod
    def begin(grad: Grad, arguments: Sequence[object], differentiator: Differentiator) -> Differentiation:
        """Open a tape, and box the arguments for which a gradient is wanted."""
        seed: Tensor | None = None
        if grad.seedable:
            last = arguments[-1]
            assert isinstance(last, Box | np.ndarray)
            arguments, seed = arguments[:-1], last
        tape = Tape()
        wrt = range(len(arguments)) if grad.wrt is None else grad.wrt
        inputs = tuple(tape.box(a) if i in wrt else a for i, a in enumerate(arguments))
        return Differentiation(grad, tape, inputs, seed, differentiator)

    def finish(self, result: object) -> object:
        """The result of `grad(f)` when f has returned `result`; see `relay.ir.derivative`."""
        grad = self.grad
        components = result if isinstance(result, tuple) else (result,)
        output = settle(components[grad.output or 0])
        if not isinstance(output, Box | np.ndarray) or not is_float(primal(output)):
            raise DifferentiationError(
                f"only a float tensor can be differentiated; the function returned {describe(output)}", grad.span
            )
        like = primal(output)
        if self.seed is not None and primal(self.seed).shape != like.shape:
            raise ExecutionError(
                f"the seed is {describe(self.seed)}, but the function returned {describe(output)}", grad.span
            )
        if self.seed is None and like.size != 1:
            raise DifferentiationError(
                f"the gradient needs a result with one element, not {describe(output)}", grad.span
            )
        seed = self.seed if self.seed is not None else np.ones_like(like)
        cotangents: list[Tensor | None] = []
        if isinstance(output, Box) and output.tape is self.tape:
            cotangents = self.differentiator.backward(output, seed)

        def gradient(leaf: Tensor) -> object:
            assert isinstance(leaf, Box) and leaf.tape is self.tape
            found = cotangents[leaf.position] if cotangents else None
            return np.zeros_like(primal(leaf)) if found is None else found

        wrt = range(len(self.inputs)) if grad.wrt is None else grad.wrt
        gradients = tuple(map_gradients(self.inputs[i], gradient) for i in wrt)
        self.tape.close()
        kept = tuple(components[k] for k in grad.keeping)
        if grad.has_aux and len(gradients) > 1:
            gradients = (gradients,)
        answer = gradients[0] if len(gradients) == 1 and not kept else (*gradients, *kept)
        return (result, answer) if grad.with_value else answer
