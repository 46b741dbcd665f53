"""Results of a program's operators, in the order of execution."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import attrs
import numpy as np

from relay.debug.programs import Program
from relay.errors.diagnostic import Span
from relay.eval.frames import Frame
from relay.eval.interpreter import Machine
from relay.eval.tape import Differentiation
from relay.eval.values import Box, Closure, primal
from relay.ir.expr import Constant, OpCall, Var
from relay.typecheck.elaboration.abstract_values import is_of_template


@attrs.frozen(eq=False)
class Computation:
    """An operator that was applied: in which function, to what, and what it gave. The arrays are the program's own."""

    function: str
    call: OpCall
    target: Var
    operands: Sequence[np.ndarray]
    results: Sequence[np.ndarray]
    span: Span | None
    frame: Frame

    @property
    def names(self) -> list[str]:
        """The names of the operands: a variable's name, or the number."""
        return [a.name if isinstance(a, Var) else "a constant" for a in self.call.arguments]


def watch(program: Program, notice: Callable[[Computation], None]) -> object:
    """Run a program on the interpreter and tell of every operator; gives what it returns. Raises what it raises."""
    machine = Machine(sizes=program.sizes, names=program.names)
    machine.enter(Closure(program.module.main, {}, program.module), program.arguments)
    with np.errstate(all="ignore"):
        while machine.frames:
            frame = machine.frames[-1]
            assert isinstance(frame, Frame)
            activation = frame.activations[-1]
            bindings, position = activation.block.bindings, activation.position
            binding = bindings[position] if position < len(bindings) else None
            if binding is None or not isinstance(binding.value, OpCall):
                machine.step()
                continue
            call = binding.value
            operands = [a.value if isinstance(a, Constant) else machine.atom(frame, a) for a in call.arguments]
            machine.step()
            (target,) = binding.targets
            result = frame.environment[target]
            parts = result if isinstance(result, tuple) else (result,)
            function, span = _place(machine.frames, frame, call)
            notice(
                Computation(
                    function,
                    call,
                    target,
                    list(map(_array, operands)),
                    list(map(_array, parts)),
                    span,
                    frame,
                )
            )
    return machine.result


def _array(value: object) -> np.ndarray:
    assert isinstance(value, Box | np.ndarray)
    return primal(value)


def _place(frames: Sequence[Frame | Differentiation], frame: Frame, call: OpCall) -> tuple[str, Span | None]:
    """The user's function that a call is in, and where; of a function of the library's that which called it."""
    span = call.span if call.span is not None else frame.closure.function.span
    if not is_of_template(span):
        return frame.name, span
    for caller in reversed(frames[:-1]):
        if isinstance(caller, Frame) and not is_of_template(caller.span):
            return caller.name, caller.span
    return frame.name, None
