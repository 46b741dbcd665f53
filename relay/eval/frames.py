"""Frames of the interpreter: the active functions, and their active blocks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

import attrs

from relay.errors import InternalError, Span
from relay.eval.values import Closure
from relay.ir.debugging.source_names import function_name
from relay.ir.dims import TypeId
from relay.ir.expr import Atom, Attempt, Binding, Block, Exit, If, LoopLabel, Var, Yield


@attrs.define(slots=True, eq=False)
class Activation:
    """A block that is being run.

    `steps` run its bindings and then its terminator, and `position` is the next one's. `owner` is the binding of the
    If, Match or Loop that the block belongs to (None: the function's body); `arm` the arm of an If whose condition the
    block is; `label` a loop's; `round` and `count` those of a loop with a counter. `unprotected`: what the block
    catches has ended, if it is the else behind an `Attempt`.
    """

    block: Block
    steps: tuple[Step, ...]
    owner: Binding | None = None
    position: int = 0
    arm: int | None = None
    label: LoopLabel | None = None
    round: int = 0
    count: int = 0
    unprotected: bool = False

    @property
    def binding(self) -> Binding | None:
        """The binding that is being run, or the last one if the terminator is; None before the first."""
        bindings = self.block.bindings
        return bindings[min(self.position, len(bindings)) - 1] if self.position and bindings else None


@attrs.define(slots=True, eq=False)
class Frame:
    """A function that is being run: its variables and, outermost first, its blocks."""

    closure: Closure
    environment: dict[Var, object]
    activations: list[Activation]
    sizes: Mapping[TypeId, int]  # of the symbolic dims, of those that callers have made, and of the function's own
    quiet: bool = False  # nothing is printed, here and in what is called

    @property
    def name(self) -> str:
        """The function's, as the user calls it."""
        return function_name(self.closure.function)

    @property
    def binding(self) -> Binding | None:
        """The binding that is being run; None before the first."""
        current = self.activations[-1]
        return current.binding or current.owner

    @property
    def span(self) -> Span | None:
        """The place that the function has reached."""
        binding = self.binding
        span = binding.value.span if binding is not None else None
        return span if span is not None else self.closure.function.span


Step: TypeAlias = Callable[[Frame, Activation], None]
"""Runs a binding or a terminator of the frame's innermost block, whose position is the one behind it already."""


def is_tail_call(frame: Frame) -> bool:
    """True if the result of the running binding is returned as it is, through any number of arms."""
    activation = frame.activations[-1]
    targets = activation.block.bindings[activation.position - 1].targets
    for activation in reversed(frame.activations):
        if activation.position != len(activation.block.bindings) or len(targets) != 1:
            return False
        match activation.block.terminator:
            case Exit(label, values):
                returned = label is frame.closure.function.label and values[0] is targets[0]
                return returned and not any(attempt_of(frame, n) for n in range(1, len(frame.activations)))
            case Yield(values) if activation.arm is None and len(values) == 1 and values[0] is targets[0]:
                assert activation.owner is not None
                targets = activation.owner.targets
            case _:
                return False
    return False


def attempt_of(frame: Frame, position: int) -> Binding | None:
    """The `Attempt` to which errors in the block at this position of a frame lead; None if they do not lead there."""
    activation, around = frame.activations[position], frame.activations[position - 1]
    condition = attempt_condition(activation)
    if activation.unprotected or condition is None:
        return None
    for binding in around.block.bindings[: around.position]:
        if isinstance(binding.value, Attempt) and binding.targets[0] is condition:
            return binding
    return None


def attempt_condition(activation: Activation) -> Atom | None:
    """The condition that is false where a block is the else of an If."""
    owner = activation.owner.value if activation.owner is not None else None
    if not isinstance(owner, If) or activation.block is not owner.orelse or not owner.arms:
        return None
    condition = owner.arms[0].condition.terminator
    return condition.values[0] if isinstance(condition, Yield) else None


def unwind(frame: Frame, label: LoopLabel) -> Activation:
    """Drop the blocks inside the loop with this label."""
    activations = frame.activations
    while activations and activations[-1].label is not label:
        activations.pop()
    if not activations:
        raise InternalError(f"no loop {label.name} around its Next or Exit in {frame.name}")
    return activations[-1]
