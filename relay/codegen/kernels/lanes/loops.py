"""Loops in lanes: they run as long as there is a lane in them.

A loop each lane of which has its own number of rounds is left by its lanes one after the other; a backward loop, which
reads stacks from the last entry to the first, is entered so, and its lanes end together.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import attrs

from relay.codegen.kernels.lanes.values import LaneStack, LaneValue, StackMemory, leaves
from relay.codegen.kernels.lanes.vectors import NoLaneCode, Operand, Uniform, Vector, storage
from relay.codegen.tvm import tir
from relay.codegen.tvm.tir import Expression, integer, tirx
from relay.ir.expr import Atom, Constant, Exit, Loop, Next, OpCall, StackGet, StackPush, Var
from relay.ir.traverse import walk
from relay.ir.types import INT64, TensorType, Type, scalar

if TYPE_CHECKING:
    from relay.codegen.kernels.lanes.program import LaneProgram


@attrs.frozen(eq=False)
class _Countdown:
    """A loop each lane of which has its own number of rounds: that, the round, the largest number, and whether the
    lanes end together, or start together."""

    count: Atom
    round: Expression
    most: Expression
    late: bool


@attrs.frozen(eq=False)
class OpenLoop:
    """A loop that is being generated: the lanes in it, and what ends its rounds."""

    loop: Loop
    ends: list[tuple[Vector | None, Next | Exit]] = attrs.field(factory=list)


class LaneLoops:
    """The loops inside of a lane program."""

    def __init__(self, program: LaneProgram) -> None:
        self.program = program
        self.countdowns: dict[Var, _Countdown] = {}  # by the counters of loops whose lanes have rounds of their own
        self.offsets: dict[Var, tuple[Var, int]] = {}
        bindings = list(walk(program.loop.body))
        self._calls = {b.targets[0]: b.value for b in bindings if isinstance(b.value, OpCall)}
        counters = [b.value.counter for b in bindings if isinstance(b.value, Loop) and b.value.counter is not None]
        self._counts = {counter.index: counter.count for counter in counters}  # the numbers of rounds

    def emit(self, loop: Loop, targets: Sequence[Var], mask: Vector | None) -> None:
        """Emit a loop, for the lanes of a mask."""
        code = self.program.code
        own = loop.counter is not None and isinstance(self.program.find(loop.counter.count), Vector)
        late = own and self._ends_together(loop)
        parameters = [self._parameter(self.program.find(initial), late) for initial in loop.initial]
        self.program.values.update(zip(loop.parameters, parameters, strict=True))
        running = OpenLoop(loop)
        run = self.program.vector(mask) if mask is not None else code.mask(lambda _: tirx.const(True, "bool"))
        going = code.cell(0, "int32")
        count, stop = self._counter(loop, run)
        code.store(going, code.reduce("or", run))
        exits: list[LaneValue] = []
        with code.collect() as body:
            within: Vector = run
            if count is not None:
                within = self._begin_round(loop, run, count, stop, late) if own else self._count_round(loop, run, count)
            self.program.running.append(running)
            self.program.block(loop.body, within)
            self.program.running.pop()
            exits = self._end_round(running, parameters, run, targets, masked=own)
            if count is not None:
                code.store(count, code.load(count) + integer(1))
            if exits or count is None:
                code.store(going, code.reduce("or", run))
            code.store(self.program.around.left, code.load(self.program.around.left) - integer(1))
        more = tirx.NE(code.load(going), integer(0, "int32"))
        if count is not None:
            more = tirx.And(more, tirx.LT(code.load(count), code.load(stop)))
        left = self.program.around.left
        with code.collect() as some:
            code.emit(tirx.While(tirx.And(more, tirx.GT(code.load(left), integer(0))), tir.sequence(body)))
            with code.collect() as refill:
                self.program.around.refill(code)
            code.emit_if(tirx.LE(code.load(left), integer(0)), refill)
        code.emit(tirx.While(tirx.And(more, self.program.goes_on()), tir.sequence(some)))
        self._finish_loop(loop, targets, parameters, exits, run)

    def _parameter(self, value: LaneValue, late: bool) -> LaneValue:
        """The place of a loop's parameter that is a value at its start. A stack, which is empty then, begins where
        others end, or at the start of its memory."""
        made = self.program.copy(value)
        if not isinstance(made, LaneStack):
            return made
        code = self.program.code
        if not self.program.nested:
            code.store(made.memory.top, integer(0))
            return LaneStack(made.memory, made.start, made.length, late)
        start = code.cell()
        code.store(start, code.load(made.memory.top))
        return LaneStack(made.memory, code.load(start), made.length, late)

    def _finish_loop(
        self,
        loop: Loop,
        targets: Sequence[Var],
        parameters: Sequence[LaneValue],
        exits: Sequence[LaneValue],
        run: Vector,
    ) -> None:
        """The results of a loop: those of exits, or, of a loop with a counter, what its parameters are."""
        if not exits:
            self.program.values.update(zip(targets, map(self._value_after_loop, parameters), strict=False))
            return
        if loop.counter is not None:
            for result, parameter in zip(exits, parameters, strict=True):
                self.program.assign(result, parameter, run)
        self.program.values.update(zip(targets, exits, strict=True))

    def _value_after_loop(self, value: LaneValue) -> LaneValue:
        """A parameter of a loop after it."""
        if not isinstance(value, LaneStack) or not value.late:
            return value
        code, end = self.program.code, self.program.code.cell()
        code.store(end, code.load(value.memory.top) - value.start)
        return LaneStack(value.memory, value.start, value.length, True, code.load(end))

    def _counter(self, loop: Loop, run: Vector) -> tuple[Any, Any]:
        """Cells for the number of the round and of rounds, of a loop with a counter."""
        if loop.counter is None:
            return None, None
        code = self.program.code
        count, stop = code.cell(), code.cell()
        code.store(count, integer(0))
        rounds = self.program.operand(loop.counter.count)
        if isinstance(rounds, Uniform):
            assert rounds.number is not None
            number = rounds.number
            code.store(stop, number if str(number.ty) == "int64" else tirx.Cast("int64", number))
            return count, stop
        wanted = code.vector(rounds.type)
        code.choose(wanted, run, rounds, Uniform(rounds.type, tirx.const(0, storage(rounds.type))))
        most = code.reduce("smax", wanted)
        code.store(stop, most if str(most.ty) == "int64" else tirx.Cast("int64", most))
        return count, stop

    def _begin_round(self, loop: Loop, run: Vector, count: Any, stop: Any, late: bool) -> Vector:
        """Give the index of a loop its value; returns the lanes that are in the round."""
        code, counter = self.program.code, loop.counter
        assert counter is not None
        type_ = counter.index.type
        assert isinstance(type_, TensorType)
        dtype = storage(type_)

        def convert(value: Expression) -> Expression:
            return value if dtype == "int64" else tirx.Cast(dtype, value)

        index: Operand
        rounds = self.program.operand(counter.count)
        now, most = code.load(count), code.load(stop)
        self.countdowns[counter.index] = _Countdown(counter.count, now, most, late)
        if not late:
            self.program.values[counter.index] = Uniform(type_, convert(now))
            started = code.mask(lambda lane: tirx.LT(convert(now), code.element(rounds, 0, lane)))
            return code.masked_condition(run, started)
        index = self.program.values[counter.index] = code.vector(type_)
        # Round k of a lane is round k + most - rounds of all.
        shift = convert(now) - convert(most)
        code.each_lane(lambda lane: [code.write(index, 0, lane, code.element(rounds, 0, lane) + shift)])
        started = code.mask(lambda lane: tirx.GE(code.element(index, 0, lane), tirx.const(0, dtype)))
        return code.masked_condition(run, started)

    def _count_round(self, loop: Loop, run: Vector, count: Any) -> Vector:
        """Give the index of a loop with as many rounds for all lanes its value."""
        counter = loop.counter
        assert counter is not None
        type_ = counter.index.type
        assert isinstance(type_, TensorType)
        number = self.program.code.load(count)
        dtype = storage(type_)
        self.program.values[counter.index] = Uniform(type_, number if dtype == "int64" else tirx.Cast(dtype, number))
        return run

    def _ends_together(self, loop: Loop) -> bool:
        """True if the lanes of a loop end together: it reads stacks, from the last entry to the first."""
        assert loop.counter is not None
        stacks = [
            self.program.values.get(b.value.stack)  # type: ignore[arg-type]
            for b in walk(loop.body)
            if isinstance(b.value, StackGet) and self._counts_down(b.value.index) is loop.counter.index
        ]
        if not all(isinstance(stack, LaneStack) for stack in stacks):
            raise NoLaneCode
        kinds = {stack.late for stack in stacks if isinstance(stack, LaneStack)}
        if len(kinds) > 1:
            raise NoLaneCode
        return False in kinds

    def _end_round(
        self, running: OpenLoop, parameters: Sequence[LaneValue], run: Vector, targets: Sequence[Var], masked: bool
    ) -> list[LaneValue]:
        """Give parameters and results their values; returns the places of results, if there are exits."""
        code = self.program.code
        exits = [(mask, end) for mask, end in running.ends if isinstance(end, Exit)]
        steps = [(mask, end) for mask, end in running.ends if isinstance(end, Next)]
        results: list[LaneValue] = []
        if exits:
            types = [t.type for t in targets]
            results = [
                self._result_places(running.loop, type_, end)
                for type_, end in zip(types, zip(*(e.values for _, e in exits), strict=True), strict=True)
            ]
        for mask, end in exits:
            for result, atom in zip(results, end.values, strict=True):
                self.program.assign(result, self.program.find(atom), mask)
        if steps:
            alone = len(steps) == 1 and not masked
            moved = [
                [
                    self._next_value(self.program.find(atom), parameter, parameters)
                    for atom, parameter in zip(end.values, parameters, strict=True)
                ]
                for _, end in steps
            ]
            for (mask, _), values in zip(steps, moved, strict=True):
                for parameter, value in zip(parameters, values, strict=True):
                    if value is not None:
                        is_stack = isinstance(parameter, LaneStack)
                        self.program.assign(parameter, value, None if alone and not is_stack else mask)
        for memory in self._pushed_stacks(running.loop):
            code.store(memory.top, code.load(memory.top) + integer(1))
        for mask, _ in exits:
            if mask is None:
                raise NoLaneCode
            code.choose(run, mask, Uniform(run.type, tirx.const(False, "bool")), run)
        return results

    def _result_places(self, loop: Loop, type_: Type | None, atoms: Sequence[Atom]) -> LaneValue:
        found = self.program.find(atoms[0])
        if isinstance(found, LaneStack):
            if found.late:
                raise NoLaneCode
            places = self.program.values
            own = [value.memory for p in loop.parameters if isinstance(value := places[p], LaneStack)]
            others = [value.memory for a in atoms if isinstance(value := self.program.find(a), LaneStack)]
            if found.memory not in own or any(memory is not found.memory for memory in others):
                raise NoLaneCode
            return LaneStack(found.memory, found.start, self.program.code.vector(scalar(INT64)))
        return self.program.new_value(type_)

    def _next_value(self, value: LaneValue, own: LaneValue, parameters: Sequence[LaneValue]) -> LaneValue | None:
        """The next value of a parameter, in other places than those of parameters; None if it stays."""
        if value is own:
            return None
        taken = {id(leaf) for parameter in parameters for leaf in leaves(parameter)}
        return self.program.copy(value) if any(id(leaf) in taken for leaf in leaves(value)) else value

    def _pushed_stacks(self, loop: Loop) -> list[StackMemory]:
        """The stacks that a round of a loop pushes to."""
        found: dict[int, StackMemory] = {}
        for parameter in loop.parameters:
            value = self.program.values.get(parameter)
            if isinstance(value, LaneStack):
                pushes = [b for b in walk(loop.body) if isinstance(b.value, StackPush) and b.value.stack is parameter]
                if pushes:
                    found[id(value.memory)] = value.memory
        return list(found.values())

    def note_offset(self, call: OpCall, target: Var) -> None:
        """Note integers that are one less than the number of rounds of a loop, and that less the loop's counter."""
        if call.operator != "subtract":
            return
        left, right = call.arguments
        if isinstance(left, Var) and isinstance(right, Constant) and right.value.ndim == 0:
            self.offsets[target] = left, int(right.value) if right.value.dtype.kind in "iu" else 0

    def common_position(self, stack: LaneStack, index: Atom) -> Expression | None:
        """The entry that all lanes read, if an index counts down to 0 in a loop that suits the stack."""
        counter = self._counts_down(index)
        loop = self.countdowns.get(counter) if counter is not None else None
        if loop is None or loop.late is stack.late:
            return None
        end = stack.end if stack.late else loop.most
        return None if end is None else end - integer(1) - loop.round

    def _counts_down(self, index: Atom) -> Var | None:
        """The counter of a loop, if an index is the number of its rounds less one less the counter."""
        call = self._calls.get(index) if isinstance(index, Var) else None
        if call is None or call.operator != "subtract":
            return None
        last, counter = call.arguments
        count = self._counts.get(counter) if isinstance(counter, Var) else None
        if count is None or not isinstance(last, Var) or self.offsets.get(last) != (count, 1):
            return None
        assert isinstance(counter, Var)
        return counter
