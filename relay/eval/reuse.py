"""In-place updates in the interpreter: arrays and stacks without further uses.

An operator whose result differs from an operand in a part only (`Operator.in_place`) writes that part into the operand
if nothing else can see it: the call is the last to use the variable, and no other variable, value or caller has the
array. Without this, a loop that changes one element of a large tensor in each round would copy it each time. It is the
same with stacks, whose variables are dropped wherever they are used last (`dropped`).
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence

import numpy as np

from relay.eval.frames import Activation, Frame, attempt_of
from relay.eval.operation import Operations
from relay.eval.values import Stack
from relay.ir.analysis.liveness import Liveness, holds_stack, variables_of
from relay.ir.expr import Attempt, Binding, Block, Function, If, Loop, Next, OpCall, Var, Yield
from relay.ir.traverse import all_blocks, blocks, bound_variables, free_variables, operands, terminator_operands, walk
from relay.ir.types import TensorType


def _count(values: Sequence[object], position: int) -> int:
    return sys.getrefcount(values[position])


_ALONE = _count([np.zeros(1)], 0)
"""The references to an array that only a list of operands has."""


def _holders(values: Sequence[Stack], position: int) -> tuple[int, int]:
    """The references to a stack and to its buffer."""
    return sys.getrefcount(values[position]), sys.getrefcount(values[position].buffer)


_ALONE_STACK = _holders([Stack([], 0)], 0)


def is_alone(held: list[Stack]) -> bool:
    """True if only this list refers to the stack, and nothing else to its buffer."""
    return _holders(held, 0) == _ALONE_STACK


def last_uses(function: Function) -> dict[Block, list[tuple[Var, ...]]]:
    """For the bindings and the end of each block of a function the variables with stacks that are read there for the
    last time, or bound and never read; empty if there are no stacks."""
    if not any(holds_stack(v.type) for v in variables_of(function)):
        return {}
    liveness = Liveness(function, lambda v: (v,) if holds_stack(v.type) else ())
    loops = (b.value for b in walk(function.body) if isinstance(b.value, Loop))
    carried = {loop.label: frozenset(loop.parameters) for loop in loops}
    found: dict[Block, list[tuple[Var, ...]]] = {}
    protected = _protected(function)
    for block, after in liveness.after.items():
        places: list[tuple[Var, ...]] = []
        for binding, live in zip(block.bindings, after, strict=True):
            later = live.union(*(liveness.before[b] for b in blocks(binding.value) if b in liveness.before))
            places.append(tuple(liveness.keys_of((*operands(binding.value), *binding.targets)) - later))
        ending = liveness.keys_of(terminator_operands(block.terminator)) - liveness.leading[block]
        if isinstance(block.terminator, Next):  # what a loop carries has its new values then
            ending -= carried[block.terminator.label]
        places.append(tuple(ending))
        if block in protected:
            places = [tuple(v for v in variables if v not in protected[block]) for variables in places]
        if any(places):
            found[block] = places
    return found


def _protected(function: Function) -> dict[Block, set[Var]]:
    """The blocks of a function in which errors are caught, with the variables that the handlers read."""
    failed = {b.targets[0] for b in walk(function.body) if isinstance(b.value, Attempt)}
    found: dict[Block, set[Var]] = {}
    for binding in walk(function.body) if failed else ():
        branch = binding.value
        if not isinstance(branch, If) or not branch.arms:
            continue
        if failed.intersection(terminator_operands(branch.arms[0].condition.terminator)):
            for block in all_blocks(branch.orelse):
                found.setdefault(block, set()).update(free_variables(branch.arms[0].body))
    return found


def _handler_reads(activation: Activation, variable: Var) -> bool:
    """True if a variable is read where an error in a block leads to."""
    assert activation.owner is not None and isinstance(activation.owner.value, If)
    return variable in free_variables(activation.owner.value.arms[0].body)


class Reuse:
    """The uses of variables, by the calls and loops of a program."""

    def __init__(self, operations: Operations) -> None:
        self._operations = operations
        self._last: dict[OpCall, Var | None] = {}
        self._started: dict[Loop, tuple[Var, ...]] = {}
        self._yielded: dict[Block, tuple[Var, ...]] = {}
        self._bound: dict[Loop, tuple[Var, ...]] = {}

    def operand(self, frame: Frame, binding: Binding, operands: Sequence[object]) -> bool:
        """True if the call of this binding, the running one, may change its operand. The variable is then gone."""
        call = binding.value
        assert isinstance(call, OpCall)
        in_place = self._operations.operator(call).memory.in_place
        if in_place is None or in_place.write is None:
            return False
        if call not in self._last:
            argument = call.arguments[in_place.operand]
            ends = isinstance(argument, Var) and self._ends(frame, argument)
            self._last[call] = argument if ends and isinstance(argument, Var) else None
        variable = self._last[call]
        if variable is None or any(type(o) is not np.ndarray for o in operands):
            return False
        frame.environment.pop(variable, None)
        array = operands[in_place.operand]
        assert isinstance(array, np.ndarray)
        own = array.flags.owndata and array.flags.writeable
        del array
        return own and _count(operands, in_place.operand) == _ALONE

    def enter(self, frame: Frame, loop: Loop) -> None:
        """Drop the variables that a loop begins with, if they are of no more use, where an array could be changed."""
        if loop not in self._started:
            free = free_variables(loop.body) if self.names(loop) else ()
            starts = [a for a in loop.initial if isinstance(a, Var) and a not in free]
            self._started[loop] = tuple(v for v in starts if self._ends(frame, v)) if self.names(loop) else ()
        for variable in self._started[loop]:
            frame.environment.pop(variable, None)

    def leave(self, frame: Frame, arm: Block) -> None:
        """Drop the variables whose arrays an arm of a branch has yielded, if they are of no more use."""
        if arm not in self._yielded:
            assert isinstance(arm.terminator, Yield)
            tensors = [
                v
                for v in arm.terminator.values
                if isinstance(v, Var) and isinstance(v.type, TensorType) and v.type.rank
            ]
            own = {t for b in arm.bindings for t in b.targets} if tensors else ()
            self._yielded[arm] = tuple(v for v in tensors if v in own or self._ends(frame, v))
        for variable in self._yielded[arm]:
            frame.environment.pop(variable, None)

    def names(self, loop: Loop) -> tuple[Var, ...]:
        """The variables of a loop's round, which are dropped before the next; empty if no array could be changed."""
        found = self._bound.get(loop)
        if found is None:
            inside = list(walk(loop.body))
            calls = (b.value for b in inside if isinstance(b.value, OpCall))
            changes = any(self._operations.operator(call).memory.in_place for call in calls)
            names = (v for b in inside for v in (*b.targets, *bound_variables(b.value))) if changes else ()
            found = self._bound[loop] = (*loop.parameters, *names) if changes else ()
        return found

    def _ends(self, frame: Frame, variable: Var) -> bool:
        """True if a variable is not read after the running binding."""
        for position in range(len(frame.activations) - 1, -1, -1):
            activation = frame.activations[position]
            if position and attempt_of(frame, position) is not None and _handler_reads(activation, variable):
                return False
            rest = Block(activation.block.bindings[activation.position :], activation.block.terminator)
            if variable in free_variables(rest):
                return False
            if variable in self._targets_in(activation.block):
                return True
            owner = activation.owner.value if activation.owner is not None else None
            if activation.label is not None:  # the next round may use it, unless it is the loop's own
                return isinstance(owner, Loop) and variable in owner.parameters
        return True

    def _targets_in(self, block: Block) -> Iterator[Var]:
        return (t for b in block.bindings for t in b.targets)
