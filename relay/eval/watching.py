"""Traced execution: the operands and results of operator calls, in order."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from relay.eval.frames import Frame
from relay.eval.interpreter import Machine, accept
from relay.eval.sizes import sizes_of
from relay.eval.values import Closure
from relay.ir.expr import Binding, Constant, Module, OpCall

Notice = Callable[[Binding, Sequence[np.ndarray], np.ndarray], None]
"""Is told a binding of an operator call, the operands, and the result; copies of them."""


def watch(module: Module, arguments: Sequence[object], notice: Notice, wanted: Callable[[Binding], bool]) -> None:
    """Run a core module, and tell of the operator calls among its bindings that are wanted. Raises as `run` does."""
    given = accept(module.main, arguments)
    machine = Machine(sizes=sizes_of(module, module.main, given))
    machine.enter(Closure(module.main, {}, module), given)
    with np.errstate(all="ignore"):
        while machine.frames:
            frame = machine.frames[-1]
            assert isinstance(frame, Frame)
            activation = frame.activations[-1]
            bindings, position = activation.block.bindings, activation.position
            machine.step()
            if position < len(bindings) and wanted(bindings[position]):
                binding = bindings[position]
                assert isinstance(binding.value, OpCall)
                operands = [a.value if isinstance(a, Constant) else _copy(frame, a) for a in binding.value.arguments]
                notice(binding, operands, _copy(frame, binding.targets[0]))


def _copy(frame: Frame, variable: object) -> np.ndarray:
    return np.array(frame.environment[variable])  # type: ignore[index]
