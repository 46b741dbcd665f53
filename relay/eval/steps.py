"""Steps of a block, prepared once for all of its executions.

The most frequent steps, operators, branches, loops and the ends of blocks, have their own functions here, which keep
what is the same in each execution of the block; all others go to `Machine.execute`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, assert_never

import numpy as np

from relay.errors import InternalError
from relay.eval.examples import run_examples
from relay.eval.frames import Activation, Frame, Step, unwind
from relay.eval.reuse import last_uses
from relay.eval.sizes import mentions_dims
from relay.eval.values import Box, describe, fits
from relay.ir.expr import (
    Atom,
    Binding,
    Block,
    Constant,
    Dead,
    Exit,
    Function,
    If,
    Loop,
    LoopLabel,
    Next,
    OpCall,
    StackPrefix,
    StackPush,
    StackSet,
    Terminator,
    Var,
    Yield,
)
from relay.ir.traverse import operands
from relay.ir.types import TensorType, Type, show

if TYPE_CHECKING:
    from relay.eval.interpreter import Machine

Values: TypeAlias = tuple[object, ...]


class Steps:
    """The steps of the blocks that a machine has come to."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._blocks: dict[Block, tuple[Step, ...]] = {}
        self._results: dict[Binding, Callable[[Frame, Values], None]] = {}
        self._rounds: dict[Loop, Callable[[Frame, Activation, Values], None]] = {}
        self.dropped: dict[Block, list[tuple[Var, ...]]] = {}  # see `relay.eval.reuse.last_uses`
        self._prepared: set[Block] = set()

    def prepare(self, function: Function) -> None:
        """Find out which variables with stacks are of no more use, before a function is run."""
        if function.body not in self._prepared:
            self._prepared.add(function.body)
            self.dropped.update(last_uses(function))

    def activation(
        self, block: Block, owner: Binding | None = None, arm: int | None = None, label: LoopLabel | None = None
    ) -> Activation:
        """A block, before its first step."""
        steps = self._blocks.get(block)
        if steps is None:
            steps = (*map(self._binding, block.bindings), self._terminator(block.terminator))
            if block in self.dropped:
                steps = tuple(map(self._dropping_step, (*block.bindings, None), steps, self.dropped[block]))
            self._blocks[block] = steps
        return Activation(block, steps, owner, 0, arm, label)

    # ---- bindings

    def _binding(self, binding: Binding) -> Step:
        match binding.value:
            case OpCall() as call:
                return self._operator(binding, call)
            case Var() | Constant() as atom:
                value, bind = self._values((atom,)), self.results(binding)
                return lambda frame, _: bind(frame, value(frame))
            case If():
                return lambda frame, _: self._choose(frame, binding, 0)
            case Loop() as loop:
                return self._loop(binding, loop)
            case _:
                execute = self._machine.execute
                return lambda frame, activation: execute(frame, activation, binding)

    def _dropping_step(self, binding: Binding | None, step: Step, variables: tuple[Var, ...]) -> Step:
        """A step that drops variables: one that changes a stack before it does so."""
        value = binding.value if binding is not None else None
        if binding is not None and isinstance(value, StackPush | StackSet | StackPrefix):
            alone = value.stack in variables and sum(a is value.stack for a in operands(value)) == 1
            return self._stack_step(binding, value, variables if alone else (), () if alone else variables)
        if not variables:
            return step

        def run_and_drop(frame: Frame, activation: Activation) -> None:
            environment = frame.environment
            step(frame, activation)
            for variable in variables:
                environment.pop(variable, None)

        return run_and_drop

    def _stack_step(
        self, binding: Binding, value: StackPush | StackSet | StackPrefix, before: Sequence[Var], after: Sequence[Var]
    ) -> Step:
        change = self._machine.change_stack

        def step(frame: Frame, _: Activation) -> None:
            change(frame, binding, value, before)
            for variable in after:
                frame.environment.pop(variable, None)

        return step

    def _operator(self, binding: Binding, call: OpCall) -> Step:
        """Operands that are arrays go to the operator's function, boxes to the differentiator."""
        machine, (target,) = self._machine, binding.targets
        operator, type_ = machine.operations.operator(call), target.type
        writes = operator.memory.in_place is not None and operator.memory.in_place.write is not None
        if operator.batching.collective:
            return lambda frame, _: machine.collective(frame, binding, call)
        if writes or _depends_on_sizes(type_) or mentions_dims(call.attributes.values()):
            return lambda frame, _: machine.operator(frame, binding, call)
        function, apply = machine.operations.prepared_call(call, type_), machine.differentiator.apply
        match call.arguments:
            case (Var() as x,):

                def step(frame: Frame, _: Activation) -> None:
                    environment = frame.environment
                    try:
                        a: Any = environment[x]
                    except KeyError:
                        raise _unbound_error(x, frame) from None
                    environment[target] = apply(call, (a,), type_) if type(a) is Box else function(a)

            case (Var() as x, Var() as y):

                def step(frame: Frame, _: Activation) -> None:
                    environment = frame.environment
                    try:
                        a: Any = environment[x]
                        b: Any = environment[y]
                    except KeyError:
                        raise _unbound_error(x if x not in environment else y, frame) from None
                    boxed = type(a) is Box or type(b) is Box
                    environment[target] = apply(call, (a, b), type_) if boxed else function(a, b)

            case (Var() as x, Constant(b)):

                def step(frame: Frame, _: Activation) -> None:
                    environment = frame.environment
                    try:
                        a: Any = environment[x]
                    except KeyError:
                        raise _unbound_error(x, frame) from None
                    environment[target] = apply(call, (a, b), type_) if type(a) is Box else function(a, b)

            case arguments:
                values = self._values(arguments)

                def step(frame: Frame, _: Activation) -> None:
                    operands: Any = values(frame)
                    for operand in operands:
                        if type(operand) is Box:
                            frame.environment[target] = apply(call, operands, type_)
                            return
                    frame.environment[target] = function(*operands)

        return step

    def _choose(self, frame: Frame, binding: Binding, position: int) -> None:
        """Go on with the arm of an If at this position: its condition, or what is chosen."""
        conditional = binding.value
        assert isinstance(conditional, If)
        for arm in conditional.arms[position:]:
            if arm.condition.bindings or not isinstance(arm.condition.terminator, Yield):
                frame.activations.append(self.activation(arm.condition, binding, arm=position))
                return
            (condition,) = arm.condition.terminator.values
            if self._machine.atom(frame, condition):
                frame.activations.append(self.activation(arm.body, binding))
                return
            position += 1
        frame.activations.append(self.activation(conditional.orelse, binding))

    def _loop(self, binding: Binding, loop: Loop) -> Step:
        machine, counter = self._machine, loop.counter
        initial, results = self._values(loop.initial), self.results(binding)
        parameters, forgotten = self._binder(loop.parameters), machine.reuse.names(loop)
        index = counter.index if counter is not None else None
        dtype = index.type.dtype if index is not None and isinstance(index.type, TensorType) else np.int32

        def begin(frame: Frame, activation: Activation, values: Values) -> None:
            """The next round with these parameters, or the end of the loop with them if its count is reached."""
            if index is not None and activation.round >= activation.count:
                frame.activations.pop()
                results(frame, values)
                return
            for variable in forgotten:
                frame.environment.pop(variable, None)
            parameters(frame, values)
            if index is not None:
                frame.environment[index] = np.array(activation.round, dtype)
            activation.position = 0

        def step(frame: Frame, _: Activation) -> None:
            inner = self.activation(loop.body, binding, label=loop.label)
            values = initial(frame)
            if counter is not None:
                inner.count = int(machine.atom(frame, counter.count))  # type: ignore[call-overload]
                if counter.axis:
                    results(frame, run_examples(machine, frame, binding, inner.count, values))
                    return
            machine.reuse.enter(frame, loop)
            frame.activations.append(inner)
            begin(frame, inner, values)

        self._rounds[loop] = begin
        return step

    def ending_round(self, binding: Binding, end: Callable[[Values], None]) -> Activation:
        """The body of a loop as the only block of a machine, which calls `end` with what the next round would have."""
        loop = binding.value
        assert isinstance(loop, Loop)
        inner = self.activation(loop.body, binding, label=loop.label)
        self._rounds[loop] = lambda frame, activation, values: end(values)
        return inner

    # ---- the ends of blocks

    def _terminator(self, terminator: Terminator) -> Step:
        match terminator:
            case Yield(atoms):
                yielded, leave = self._values(atoms), self._machine.reuse.leave

                def step(frame: Frame, activation: Activation) -> None:
                    values, owner = yielded(frame), activation.owner
                    frame.activations.pop()
                    assert owner is not None
                    if activation.arm is None:
                        if values:
                            leave(frame, activation.block)
                        self.results(owner)(frame, values)
                    elif values[0]:
                        assert isinstance(owner.value, If)
                        frame.activations.append(self.activation(owner.value.arms[activation.arm].body, owner))
                    else:
                        self._choose(frame, owner, activation.arm + 1)

            case Next(label, atoms):
                passed = self._values(atoms)

                def step(frame: Frame, activation: Activation) -> None:
                    values, around = passed(frame), unwind(frame, label)
                    around.round += 1
                    assert around.owner is not None and isinstance(around.owner.value, Loop)
                    self._rounds[around.owner.value](frame, around, values)

            case Exit(label, atoms):
                left = self._values(atoms)

                def step(frame: Frame, activation: Activation) -> None:
                    values = left(frame)
                    if label is frame.closure.function.label:
                        (result,) = values
                        self._machine.return_from(frame, result)
                        return
                    owner = unwind(frame, label).owner
                    assert owner is not None
                    frame.activations.pop()
                    self.results(owner)(frame, values)

            case Dead():

                def step(frame: Frame, activation: Activation) -> None:
                    raise InternalError("the end of a block that should never be reached")

            case other:
                assert_never(other)
        return step

    # ---- variables

    def results(self, binding: Binding) -> Callable[[Frame, Values], None]:
        """Binds the targets of a binding."""
        found = self._results.get(binding)
        if found is None:
            found = self._results[binding] = self._binder(binding.targets)
        return found

    def _binder(self, targets: Sequence[Var]) -> Callable[[Frame, Values], None]:
        expected = [(target, *_form(target.type)) for target in targets]
        checked, array = self._machine.checked, np.ndarray

        def bind(frame: Frame, values: Values) -> None:
            if len(values) != len(expected):
                raise InternalError(f"{len(values)} values for {len(expected)} variables in {frame.name}")
            environment = frame.environment
            for (target, dtype, shape), value in zip(expected, values, strict=True):
                if checked and not (type(value) is array and value.dtype is dtype and value.shape == shape):
                    check(frame, target, value)
                environment[target] = value

        return bind

    def _values(self, atoms: Sequence[Atom]) -> Callable[[Frame], Values]:
        """The values of atoms in a frame."""
        machine = self._machine
        if len(atoms) == 1 and type(atoms[0]) is Constant:
            constant = (atoms[0].value,)
            return lambda frame: constant
        if not all(type(a) is Var for a in atoms):
            return lambda frame: tuple([machine.atom(frame, a) for a in atoms])
        variables: Any = tuple(atoms)

        def values(frame: Frame) -> Values:
            environment = frame.environment
            try:
                return tuple([environment[v] for v in variables])
            except KeyError:
                missing = next(v for v in variables if v not in environment)
                raise _unbound_error(missing, frame) from None

        return values


def check(frame: Frame, target: Var, value: object) -> None:
    """Raises InternalError if a value is not of the type of its variable."""
    if target.type is not None and not fits(value, target.type, frame.sizes):
        raise InternalError(f"{target!r}: {show(target.type)} got {describe(value)} in {frame.name}")


def _unbound_error(variable: Var, frame: Frame) -> InternalError:
    return InternalError(f"{variable!r} has no value in {frame.name}")


def _form(type_: Type | None) -> tuple[object, object]:
    """The dtype and shape of most values of a type: of tensors whose sizes are numbers; otherwise of none."""
    if not isinstance(type_, TensorType) or _depends_on_sizes(type_):
        return None, None
    return type_.dtype, type_.shape


def _depends_on_sizes(type_: Type | None) -> bool:
    """True if a type may mention data-dependent sizes."""
    return type(type_) is not TensorType or not all(type(d) is int for d in type_.shape)
