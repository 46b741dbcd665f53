"""Loops along an axis of examples, whose rounds may ask what all of them have: `relay.psum` and the like.

Each example is a round that runs until it asks, in a thread of its own, and waits there. When all have asked, the
answer is computed of what they gave, and they go on, one after the other; only one thread runs at a time. An example
that asks for an axis further out asks as the example around it.

What is asked in a differentiated function is recorded on its tape, as other operators are; the question that goes out
has the values that lie under the tapes of the loop's own rounds.
"""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable, Sequence
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, TypeAlias

import attrs
import numpy as np

from relay.errors import ExecutionError, InternalError
from relay.eval.frames import Frame
from relay.eval.tape import Tape, Tensor, next_level
from relay.eval.values import primal
from relay.ir.expr import Binding, Loop, OpCall
from relay.ir.types import TensorType

if TYPE_CHECKING:
    from relay.eval.interpreter import Machine

_REDUCTIONS = {"collective_sum": "sum", "collective_max": "max", "collective_min": "min"}


class _Abandoned(BaseException):
    """The other examples do not go on."""


@attrs.frozen(eq=False)
class _Question:
    """The request of an example: a call of a collective operator, and its operand."""

    call: OpCall
    operands: tuple[Tensor, ...]


@attrs.frozen(eq=False)
class _End:
    """The values that an example passes on to the next round."""

    values: tuple[object, ...]


_Report: TypeAlias = "_Question | _End | BaseException"


class Example:
    """One round of a loop along an axis, in a thread."""

    def __init__(self, axis: str, number: int, level: int, run: Callable[[Example], tuple[object, ...]]) -> None:
        self.axis, self.number, self.level = axis, number, level
        self._run = run
        self._answers: SimpleQueue[Any] = SimpleQueue()
        self._reports: SimpleQueue[_Report] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._waits = False

    def proceed(self, answer: object) -> _Report:
        """Let the example go on with the answer to what it asked, until it asks again or ends."""
        if self._thread is None:
            context = contextvars.copy_context()
            self._thread = threading.Thread(target=lambda: context.run(self._main), daemon=True)
            self._thread.start()
        else:
            self._answers.put(answer)
        report = self._reports.get()
        self._waits = isinstance(report, _Question)
        return report

    def abandon(self) -> None:
        """End the example, if it waits for an answer."""
        if self._waits:
            self._answers.put(_Abandoned())

    def _main(self) -> None:
        try:
            self._reports.put(_End(self._run(self)))
        except _Abandoned:
            pass
        except BaseException as error:
            self._reports.put(error)

    def ask(self, call: OpCall, operands: Sequence[Tensor]) -> Any:
        """The answer to a question, when all examples have asked it. Runs in the example's thread, or in that of an
        example inside it."""
        self._reports.put(_Question(call, tuple(operands)))
        answer = self._answers.get()
        if isinstance(answer, BaseException):
            raise answer
        return answer


def asking_example(examples: Sequence[Example], call: OpCall, tape: Tape | None) -> Example | None:
    """The example that asks for the answer of a collective call; None if the call is one on `tape` first, or there is
    no such axis."""
    axis = call.attributes["axis_name"]
    found = next((e for e in reversed(examples) if e.axis == axis), None)
    return None if found is None or (tape is not None and tape.level > found.level) else found


def run_examples(
    machine: Machine, frame: Frame, binding: Binding, count: int, initial: tuple[object, ...]
) -> tuple[object, ...]:
    """The results of a loop along an axis. Raises ExecutionError where the examples do not ask the same."""
    loop = binding.value
    assert isinstance(loop, Loop) and loop.counter is not None
    level, carried = next_level(), initial
    frames: list[Frame] = []

    def run(example: Example) -> tuple[object, ...]:
        return machine.with_examples((*machine.examples, example)).run_round(
            frames[example.number], binding, machine.frames[:-1]
        )

    examples = [Example(loop.counter.axis, number, level, run) for number in range(count)]
    for number in range(count):
        frames.append(_frame(frame, loop, number, initial))
    answers: list[object] = [None] * count
    reports: list[_Report] = []
    try:
        while True:
            reports = []
            for number, example in enumerate(examples):
                frames[number].environment.update(zip(loop.parameters, carried, strict=True))
                reports.append(example.proceed(answers[number]))
                match reports[-1]:
                    case _End(values):
                        carried = values
                    case BaseException() as error:
                        raise error
            if all(isinstance(report, _End) for report in reports):
                return carried
            answers = _answers(machine, reports)
    except BaseException:
        for example in examples:
            example.abandon()
        raise


def _frame(around: Frame, loop: Loop, number: int, initial: tuple[object, ...]) -> Frame:
    """The variables of one round."""
    assert loop.counter is not None
    index = loop.counter.index
    dtype = index.type.dtype if isinstance(index.type, TensorType) else np.int32
    environment = {**around.environment, index: np.array(number, dtype)}
    environment.update(zip(loop.parameters, initial, strict=True))
    return Frame(around.closure, environment, [], around.sizes, around.quiet)


def _answers(machine: Machine, reports: Sequence[_Report]) -> list[object]:
    """The answers to the questions of all examples."""
    questions = [report for report in reports if isinstance(report, _Question)]
    call = questions[0].call
    forms = {(q.call.operator, *(primal(o).shape for o in q.operands)) for q in questions}
    if len(questions) < len(reports) or len(forms) > 1:
        raise ExecutionError(
            "the examples do not all come here, and wait for each other",
            call.span,
            help="a collective stands in no branch or loop that differs between examples",
        )
    if call.operator == "collective_index":
        return [np.array(number, np.int32) for number in range(len(questions))]

    def apply(operator: str, operands: Sequence[Any], **attributes: Any) -> Any:
        return machine.differentiator.apply(OpCall(operator, (), attributes, call.span), operands, None)

    whole = apply("stack", [q.operands[0] for q in questions], axis=0)
    if call.operator != "collective_gather":
        if call.operator not in _REDUCTIONS:
            raise InternalError(f"{call.operator} is not a collective operator")
        whole = apply(_REDUCTIONS[call.operator], [whole], axis=(0,), keepdims=False)
    return [whole] * len(questions)
