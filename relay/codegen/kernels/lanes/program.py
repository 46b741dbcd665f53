"""The body of a loop for a vector of its rounds: blocks, branches, loops and tapes, with masks.

if c {a} else {b}     both are computed, and a choice is made; what counts in a is the mask and c
loop {..}             runs as long as there is a lane in it; `run` is the mask of these lanes
stack                 one for all lanes: entry k is a vector, pushed in round k of the loop that fills it
backward loop         the lanes end together, so that all read the same entry
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from relay.codegen.kernels.kernels import is_inlined
from relay.codegen.kernels.lanes.tapes import Tapes
from relay.codegen.kernels.lanes.values import KernelContext, LaneArray, LaneStack, LaneValue, StackMemory, leaves
from relay.codegen.kernels.lanes.vectors import (
    LANES,
    NoLaneCode,
    Operand,
    Uniform,
    Vector,
    VectorCode,
    storage,
)
from relay.codegen.tvm import tir
from relay.codegen.tvm.tir import Expression, Statement, integer, tirx
from relay.ir.expr import (
    Assert,
    Atom,
    Binding,
    Block,
    Constant,
    Exit,
    Extent,
    If,
    Loop,
    MakeTuple,
    Next,
    OpCall,
    Project,
    StackGet,
    StackLength,
    StackNew,
    StackPush,
    Var,
    Yield,
)
from relay.ir.traverse import bound_variables, operands, walk
from relay.ir.types import INT64, BaseType, StackType, TensorType, TupleType, Type, scalar
from relay.operator import ADDITION, lookup
from relay.operator.facets import IndexKind
from relay.transform.analysis.lanes import LaneLoop


@attrs.frozen(eq=False)
class _Countdown:
    """A loop each lane of which has its own number of rounds: that, the round, the largest number, and whether the
    lanes end together, or start together."""

    count: Atom
    round: Expression
    most: Expression
    late: bool


@attrs.frozen(eq=False)
class _OpenLoop:
    """A loop that is being generated: the lanes in it, and what ends its rounds."""

    loop: Loop
    ends: list[tuple[Vector | None, Next | Exit]] = attrs.field(factory=list)


class LaneProgram:
    """One vector of rounds."""

    def __init__(self, plan: LaneLoop, code: VectorCode, around: KernelContext) -> None:
        self.plan, self.loop, self.code, self.around = plan, plan.loop, code, around
        self.inside = {t for b in walk(self.loop.body) for t in (*b.targets, *bound_variables(b.value))}
        self.values: dict[Var, LaneValue] = {}
        self.rows: dict[Var, tuple[int, Vector | None]] = {}  # the loop's arrays: which, and the row if it is written
        self.added: dict[int, Operand] = {}
        self.tapes = Tapes(code, around)
        self.running: list[_OpenLoop] = []
        self.nested = any(
            isinstance(b.value, StackPush) and _has_stacks(b.targets[0].type) for b in walk(self.loop.body)
        )  # whether stacks are parts of entries
        self.countdowns: dict[Var, _Countdown] = {}  # by the counters of loops whose lanes have rounds of their own
        self.offsets: dict[Var, tuple[Var, int]] = {}

    def emit(self, base: Expression, rest: Expression, count: Expression, arrays: Mapping[int, Any]) -> None:
        """Emit the rounds from `base` on, `rest` of which are meant if that is less than the width. `arrays`: the
        buffers of the loop's arrays."""
        self.base, self.rest, self.count, self.arrays = base, rest, count, arrays
        loop = self.loop
        assert loop.counter is not None
        for number, (parameter, initial) in enumerate(zip(loop.parameters, loop.initial, strict=True)):
            if number in arrays:
                self.rows[parameter] = number, None
            elif number in self.plan.sums:
                type_ = parameter.type
                assert isinstance(type_, TensorType)
                self.values[parameter] = Uniform(type_, tirx.const(0, storage(type_)))
            else:
                self.values[parameter] = self._find(initial)
        index = loop.counter.index
        if any(index in operands(b.value) for b in walk(loop.body)) or index in loop.body.terminator.values:  # type: ignore[union-attr]
            type_ = index.type
            assert isinstance(type_, TensorType)
            numbers = self.values[index] = self.code.vector(type_)
            dtype = storage(type_)

            def number_(lane: Expression) -> list[Statement]:
                row = base + tirx.min(lane, rest - integer(1))
                row = count - integer(1) - row if self.plan.descending else row
                return [self.code.write(numbers, 0, lane, row if dtype == "int64" else tirx.Cast(dtype, row))]

            self.code.each_lane(number_)
        self._bindings(loop.body, None)
        for number in self.plan.sums:
            self.added[number] = self._operand(loop.body.terminator.values[number])  # type: ignore[union-attr]

    def store(self) -> None:
        """Write the rows, after `emit`."""
        code, end = self.code, self.loop.body.terminator
        assert isinstance(end, Next)
        full = tirx.EQ(self.rest, integer(code.width))
        for number in self.plan.arrays:
            value = end.values[number]
            assert isinstance(value, Var)
            _, row = self.rows[value]
            if row is None:
                continue
            array = self.arrays[number]
            staged = code.vector(row.type)
            dtype = str(array.dtype)

            def write(source: Vector, lane: Expression, array: Any = array, dtype: str = dtype) -> list[Statement]:
                made = []
                for n in range(source.elements):
                    value = code.stored_element(source, n, lane)
                    made.append(
                        tirx.BufferStore(
                            array,
                            value if str(value.ty) == dtype else tirx.Cast(dtype, value),
                            [(self.base + lane) * integer(source.elements) + integer(n)],
                        )
                    )
                return made

            with code.collect() as whole:
                for n in range(row.elements):
                    code.each_lane(lambda lane, n=n, row=row: [write(row, lane)[n]])  # type: ignore[misc]
            with code.collect() as part:
                code.copy(staged, row)
                lane = tirx.Var("lane", LANES)
                code.emit(tirx.For(lane, integer(0), self.rest, tirx.ForKind.SERIAL, tir.sequence(write(staged, lane))))
            with code.collect() as written:
                code.emit_if(full, whole, part)
            code.emit_if(tirx.LE(self.base + self.rest, self._extent(number)), written)

    # ---- values

    def _find(self, atom: Atom) -> LaneValue:
        if isinstance(atom, Var) and atom in self.inside:
            return self.values[atom]
        if isinstance(atom, Constant) and is_inlined(atom):
            type_ = atom.type
            assert isinstance(type_.base, BaseType)
            return Uniform(type_, tir.literal(atom.value.item(), type_.base))
        if isinstance(atom, Var) and atom in self.values:
            return self.values[atom]
        return self.around.operand(atom)

    def _operand(self, atom: Atom) -> Operand:
        found = self._find(atom)
        if not isinstance(found, Vector | Uniform):
            raise NoLaneCode
        return found

    def _new_value(self, type_: Type | None) -> LaneValue:
        """Places for a value."""
        if isinstance(type_, TensorType):
            return self.code.vector(type_)
        if isinstance(type_, TupleType):
            return tuple(map(self._new_value, type_.items))
        raise NoLaneCode

    def _assign(self, target: LaneValue, value: LaneValue, mask: Vector | None) -> None:
        """target := value, in the lanes of a mask."""
        if isinstance(target, tuple):
            assert isinstance(value, tuple)
            for left, right in zip(target, value, strict=True):
                self._assign(left, right, mask)
            return
        if isinstance(target, LaneArray):
            assert isinstance(value, LaneArray)
            if value.memory is not target.memory:
                raise NoLaneCode
            return
        if isinstance(target, LaneStack):
            assert isinstance(value, LaneStack)
            if value.memory is not target.memory:
                raise NoLaneCode
            target, value = target.length, value.length
        assert isinstance(target, Vector)
        assert isinstance(value, Vector | Uniform)
        if mask is None:
            self.code.copy(target, value)
        elif value is not target:
            self.code.choose(target, mask, value, target)

    def _copy(self, value: LaneValue) -> LaneValue:
        """A value in places of its own."""
        if isinstance(value, tuple):
            return tuple(map(self._copy, value))
        if isinstance(value, LaneStack):
            return LaneStack(value.memory, value.start, self._vector(value.length), value.late, value.end)
        return value if isinstance(value, LaneArray) else self._vector(value)

    def _vector(self, value: Operand) -> Vector:
        made = self.code.vector(value.type)
        self.code.copy(made, value)
        return made

    # ---- blocks

    def _block(self, block: Block, mask: Vector | None) -> list[LaneValue] | None:
        """The values that a block yields; None if it ends a round."""
        mask = self._bindings(block, mask)
        match block.terminator:
            case Yield(values):
                return [self._find(v) for v in values]
            case Next() | Exit() as end:
                self.running[-1].ends.append((mask, end))
            case _:
                pass
        return None

    def _bindings(self, block: Block, mask: Vector | None) -> Vector | None:
        for binding in block.bindings:
            if isinstance(binding.value, Assert):
                mask = self._assertion(binding.value, mask)
            else:
                self._binding(binding, mask)
        return mask

    def _binding(self, binding: Binding, mask: Vector | None) -> None:
        value, targets = binding.value, binding.targets
        match value:
            case OpCall():
                self._call(value, targets[0], mask)
            case Var() | Constant():
                if isinstance(value, Var) and value in self.rows:
                    self.rows[targets[0]] = self.rows[value]
                else:
                    self.values[targets[0]] = self._find(value)
            case MakeTuple(items):
                self.values[targets[0]] = tuple(self._find(item) for item in items)
            case Project(whole, index):
                found = self._find(whole)
                if not isinstance(found, tuple):
                    raise NoLaneCode
                self.values[targets[0]] = found[index]
            case Extent(dim, base):
                number = self.around.size(dim)
                number = number if base.name == "int64" else tirx.Cast(base.name, number)
                self.values[targets[0]] = Uniform(scalar(base), number)
            case StackNew(element):
                self.values[targets[0]] = self._stack(element)
            case StackPush(stack, pushed):
                self.values[targets[0]] = self._push(stack, pushed, mask)
            case StackLength(stack):
                found = self._find(stack)
                assert isinstance(found, LaneStack)
                self.values[targets[0]] = found.length
            case StackGet(stack, index):
                self.values[targets[0]] = self._get(stack, index, targets[0])
            case If():
                self._branch(value, targets, mask)
            case Loop():
                self._inner_loop(value, targets, mask)
            case _:
                raise NoLaneCode

    def _assertion(self, assertion: Assert, mask: Vector | None) -> Vector:
        """End the program if an assertion does not hold in a lane that counts. Returns the lanes that go on."""
        code, around = self.code, self.around
        condition = self._operand(assertion.condition)
        failed = code.masked_condition(mask, condition, holds=False)
        with code.collect() as fail:
            code.store(around.status, integer(around.failure(assertion.message, assertion.span)))
            code.store(around.alive, integer(0))
        code.emit_if(tirx.And(tirx.NE(code.reduce("or", failed), integer(0, "int32")), self._goes_on()), fail)
        return code.masked_condition(mask, condition)

    def _goes_on(self) -> Expression:
        return tirx.NE(self.code.load(self.around.alive), integer(0))

    # ---- calls

    def _call(self, call: OpCall, target: Var, mask: Vector | None) -> None:
        operator = lookup(call.operator)
        first = call.arguments[0] if call.arguments else None
        if (
            operator.indexing.kind is IndexKind.ROW
            and first is not None
            and (first not in self.inside or first in self.plan.tapes)
        ):
            self.values[target] = self._read(call, target)
            return
        if isinstance(first, Var) and first in self.rows:
            number, row = self.rows[first]
            new = self._operand(call.arguments[2])
            if call.operator == "index_add":
                row = self._own_row(number, _row_type(first), row)
                emitted = OpCall(ADDITION, (), {}, call.span)
                new = self.code.call(emitted, (row, new), row.type, None)
            self.rows[target] = number, self._vector(new)
            return
        if target in self.plan.tapes:
            self.values[target] = self._tape(call, target, first)
            return
        type_ = target.type
        assert isinstance(type_, TensorType)
        self._note_offset(call, target)
        guard = mask if operator.requirements else None
        operands_ = [self._operand(a) for a in call.arguments]
        if not operator.requirements and type_.shape == () and all(map(_is_number, operands_)):
            self.values[target] = self.code.scalar_call(call, operands_, type_)
        else:
            self.values[target] = self.code.call(call, operands_, type_, guard)

    def _read(self, call: OpCall, target: Var) -> Vector:
        array, place = call.arguments
        type_ = target.type
        assert isinstance(type_, TensorType)
        if isinstance(array, Var) and array in self.rows:
            number, row = self.rows[array]
            return self._own_row(number, type_, row)
        found = self._find(array)
        if isinstance(found, LaneArray):
            return self.tapes.read_row(found, self._operand(place), type_)
        source = self._operand(array)
        if source.buffer is None:
            raise NoLaneCode
        if target in self.plan.reads:
            return self._row(source.buffer, type_, self.around.size(source.type.shape[0]))
        index, code = self._operand(place), self.code
        rows = self.around.size(source.type.shape[0])
        made = code.vector(type_)

        def gather_lane(lane: Expression, n: int) -> list[Statement]:
            at = code.element(index, 0, lane)
            at = at if str(at.ty) == "int64" else tirx.Cast("int64", at)
            at = tirx.Select(tirx.LT(at, integer(0)), at + rows, at)
            at = tirx.max(tirx.min(at, rows - integer(1)), integer(0))
            value = tirx.BufferLoad(source.buffer, [at * integer(made.elements) + integer(n)])
            return [code.write(made, n, lane, _vector_element(value, type_))]

        for n in range(made.elements):
            code.each_lane(lambda lane, n=n: gather_lane(lane, n))  # type: ignore[misc]
        return made

    def _own_row(self, number: int, type_: TensorType, row: Vector | None) -> Vector:
        return self._row(self.arrays[number], type_, self._extent(number)) if row is None else row

    def _extent(self, number: int) -> Expression:
        type_ = self.loop.parameters[number].type
        assert isinstance(type_, TensorType)
        return self.around.size(type_.shape[0])

    def _row(self, array: Any, type_: TensorType, extent: Expression) -> Vector:
        """The rows of the rounds, of the last one where there is none; the array has `extent` rows."""
        code = self.code
        made, staged = code.vector(type_), code.vector(type_)

        def load(target: Vector, n: int, lane: Expression, row: Expression) -> list[Statement]:
            value = tirx.BufferLoad(array, [row * integer(target.elements) + integer(n)])
            return [code.write(target, n, lane, _vector_element(value, type_))]

        with code.collect() as whole:
            for n in range(made.elements):
                code.each_lane(lambda lane, n=n: load(made, n, lane, self.base + lane))  # type: ignore[misc]
        with code.collect() as part:
            last = tirx.min(self.base + self.rest, extent) - integer(1)
            for n in range(made.elements):
                code.each_lane(lambda lane, n=n: load(staged, n, lane, tirx.min(self.base + lane, last)), "SERIAL")  # type: ignore[misc]
            code.copy(made, staged)
        there = tirx.LE(self.base + integer(code.width), extent)
        code.emit_if(tirx.And(tirx.EQ(self.rest, integer(code.width)), there), whole, part)
        return made

    # ---- branches

    def _branch(self, branch: If, targets: Sequence[Var], mask: Vector | None) -> None:
        code = self.code
        found: list[tuple[Operand | None, list[LaneValue] | None]] = []
        for arm in branch.arms:
            (condition,) = self._block(arm.condition, mask) or (None,)
            if not isinstance(condition, Vector | Uniform):
                raise NoLaneCode
            condition = self._vector(condition)
            found.append((condition, self._block(arm.body, code.masked_condition(mask, condition))))
            mask = code.masked_condition(mask, condition, holds=False)
        found.append((None, self._block(branch.orelse, mask)))
        for number, target in enumerate(targets):
            values = [(condition, values[number]) for condition, values in found if values is not None]
            _, made = values.pop()
            if values:
                made = self._copy(made)
                for condition, value in reversed(values):
                    assert isinstance(condition, Vector)
                    self._assign(made, value, condition)
            self.values[target] = made

    # ---- loops

    def _inner_loop(self, loop: Loop, targets: Sequence[Var], mask: Vector | None) -> None:
        code = self.code
        own = loop.counter is not None and isinstance(self._find(loop.counter.count), Vector)
        late = own and self._ends_together(loop)
        parameters = [self._parameter(self._find(initial), late) for initial in loop.initial]
        self.values.update(zip(loop.parameters, parameters, strict=True))
        running = _OpenLoop(loop)
        run = self._vector(mask) if mask is not None else code.mask(lambda _: tirx.const(True, "bool"))
        going = code.cell(0, "int32")
        count, stop = self._counter(loop, run)
        code.store(going, code.reduce("or", run))
        exits: list[LaneValue] = []
        with code.collect() as body:
            within: Vector = run
            if count is not None:
                within = self._begin_round(loop, run, count, stop, late) if own else self._count_round(loop, run, count)
            self.running.append(running)
            self._block(loop.body, within)
            self.running.pop()
            exits = self._end_round(running, parameters, run, targets, masked=own)
            if count is not None:
                code.store(count, code.load(count) + integer(1))
            if exits or count is None:
                code.store(going, code.reduce("or", run))
            code.store(self.around.left, code.load(self.around.left) - integer(1))
        more = tirx.NE(code.load(going), integer(0, "int32"))
        if count is not None:
            more = tirx.And(more, tirx.LT(code.load(count), code.load(stop)))
        with code.collect() as some:
            code.emit(tirx.While(tirx.And(more, tirx.GT(code.load(self.around.left), integer(0))), tir.sequence(body)))
            with code.collect() as refill:
                self.around.refill(code)
            code.emit_if(tirx.LE(code.load(self.around.left), integer(0)), refill)
        code.emit(tirx.While(tirx.And(more, self._goes_on()), tir.sequence(some)))
        self._finish_loop(loop, targets, parameters, exits, run)

    def _parameter(self, value: LaneValue, late: bool) -> LaneValue:
        """The place of a loop's parameter that is a value at its start. A stack, which is empty then, begins where
        others end, or at the start of its memory."""
        made = self._copy(value)
        if not isinstance(made, LaneStack):
            return made
        code = self.code
        if not self.nested:
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
            self.values.update(zip(targets, map(self._value_after_loop, parameters), strict=False))
            return
        if loop.counter is not None:
            for result, parameter in zip(exits, parameters, strict=True):
                self._assign(result, parameter, run)
        self.values.update(zip(targets, exits, strict=True))

    def _value_after_loop(self, value: LaneValue) -> LaneValue:
        """A parameter of a loop after it."""
        if not isinstance(value, LaneStack) or not value.late:
            return value
        code, end = self.code, self.code.cell()
        code.store(end, code.load(value.memory.top) - value.start)
        return LaneStack(value.memory, value.start, value.length, True, code.load(end))

    def _counter(self, loop: Loop, run: Vector) -> tuple[Any, Any]:
        """Cells for the number of the round and of rounds, of a loop with a counter."""
        if loop.counter is None:
            return None, None
        code = self.code
        count, stop = code.cell(), code.cell()
        code.store(count, integer(0))
        rounds = self._operand(loop.counter.count)
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
        code, counter = self.code, loop.counter
        assert counter is not None
        type_ = counter.index.type
        assert isinstance(type_, TensorType)
        dtype = storage(type_)

        def convert(value: Expression) -> Expression:
            return value if dtype == "int64" else tirx.Cast(dtype, value)

        index: Operand
        rounds = self._operand(counter.count)
        now, most = code.load(count), code.load(stop)
        self.countdowns[counter.index] = _Countdown(counter.count, now, most, late)
        if not late:
            self.values[counter.index] = Uniform(type_, convert(now))
            started = code.mask(lambda lane: tirx.LT(convert(now), code.element(rounds, 0, lane)))
            return code.masked_condition(run, started)
        index = self.values[counter.index] = code.vector(type_)
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
        number = self.code.load(count)
        dtype = storage(type_)
        self.values[counter.index] = Uniform(type_, number if dtype == "int64" else tirx.Cast(dtype, number))
        return run

    def _ends_together(self, loop: Loop) -> bool:
        """True if the lanes of a loop end together: it reads stacks, from the last entry to the first."""
        assert loop.counter is not None
        stacks = [
            self.values.get(b.value.stack)  # type: ignore[arg-type]
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
        self, running: _OpenLoop, parameters: Sequence[LaneValue], run: Vector, targets: Sequence[Var], masked: bool
    ) -> list[LaneValue]:
        """Give parameters and results their values; returns the places of results, if there are exits."""
        code = self.code
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
                self._assign(result, self._find(atom), mask)
        if steps:
            alone = len(steps) == 1 and not masked
            moved = [
                [
                    self._next_value(self._find(atom), parameter, parameters)
                    for atom, parameter in zip(end.values, parameters, strict=True)
                ]
                for _, end in steps
            ]
            for (mask, _), values in zip(steps, moved, strict=True):
                for parameter, value in zip(parameters, values, strict=True):
                    if value is not None:
                        is_stack = isinstance(parameter, LaneStack)
                        self._assign(parameter, value, None if alone and not is_stack else mask)
        for memory in self._pushed_stacks(running.loop):
            code.store(memory.top, code.load(memory.top) + integer(1))
        for mask, _ in exits:
            if mask is None:
                raise NoLaneCode
            code.choose(run, mask, Uniform(run.type, tirx.const(False, "bool")), run)
        return results

    def _result_places(self, loop: Loop, type_: Type | None, atoms: Sequence[Atom]) -> LaneValue:
        found = self._find(atoms[0])
        if isinstance(found, LaneStack):
            if found.late:
                raise NoLaneCode
            own = [value.memory for p in loop.parameters if isinstance(value := self.values[p], LaneStack)]
            if found.memory not in own or any(value.memory is not found.memory for value in map(self._find, atoms)):  # type: ignore[union-attr]
                raise NoLaneCode
            return LaneStack(found.memory, found.start, self.code.vector(scalar(INT64)))
        return self._new_value(type_)

    def _next_value(self, value: LaneValue, own: LaneValue, parameters: Sequence[LaneValue]) -> LaneValue | None:
        """The next value of a parameter, in other places than those of parameters; None if it stays."""
        if value is own:
            return None
        taken = {id(leaf) for parameter in parameters for leaf in leaves(parameter)}
        return self._copy(value) if any(id(leaf) in taken for leaf in leaves(value)) else value

    # ---- stacks

    def _stack(self, element: Type) -> LaneStack:
        code = self.code
        types = element.items if isinstance(element, TupleType) else (element,)
        memory = self.tapes.memory(types)
        if not self.running:
            code.store(memory.top, integer(0))
        return LaneStack(memory, integer(0), Uniform(scalar(INT64), integer(0)))

    def _pushed_stacks(self, loop: Loop) -> list[StackMemory]:
        """The stacks that a round of a loop pushes to."""
        found: dict[int, StackMemory] = {}
        for parameter in loop.parameters:
            value = self.values.get(parameter)
            if isinstance(value, LaneStack):
                pushes = [b for b in walk(loop.body) if isinstance(b.value, StackPush) and b.value.stack is parameter]
                if pushes:
                    found[id(value.memory)] = value.memory
        return list(found.values())

    def _push(self, stack: Atom, pushed: Atom, mask: Vector | None) -> LaneStack:
        found, value = self._find(stack), self._find(pushed)
        assert isinstance(found, LaneStack)
        items = value if isinstance(value, tuple) else (value,)
        several = sum(isinstance(b.value, StackPush) and b.value.stack is stack for b in walk(self.loop.body)) > 1
        return self.tapes.push(found, items, mask if several else None)

    def _get(self, stack: Atom, index: Atom, target: Var) -> LaneValue:
        found = self._find(stack)
        assert isinstance(found, LaneStack)
        position = self._common_position(found, index)
        if position is None:
            raise NoLaneCode
        made = self.tapes.get(found, position)
        return tuple(made) if isinstance(target.type, TupleType) else made[0]

    def _tape(self, call: OpCall, target: Var, array: Atom | None) -> LaneArray:
        """An array of a round at its start, or after a row has been written."""
        type_ = target.type
        assert isinstance(type_, TensorType)
        if array is None:
            return self.tapes.array(_row_type(target), self.around.size(type_.shape[0]))
        found = self._find(array)
        assert isinstance(found, LaneArray)
        self.tapes.write_row(found, self._operand(call.arguments[1]), self._operand(call.arguments[2]))
        return found

    def _note_offset(self, call: OpCall, target: Var) -> None:
        """Note integers that are one less than the number of rounds of a loop, and that less the loop's counter."""
        if call.operator != "subtract":
            return
        left, right = call.arguments
        if isinstance(left, Var) and isinstance(right, Constant) and right.value.ndim == 0:
            self.offsets[target] = left, int(right.value) if right.value.dtype.kind in "iu" else 0

    def _common_position(self, stack: LaneStack, index: Atom) -> Expression | None:
        """The entry that all lanes read, if an index counts down to 0 in a loop that suits the stack."""
        counter = self._counts_down(index)
        loop = self.countdowns.get(counter) if counter is not None else None
        if loop is None or loop.late is stack.late:
            return None
        end = stack.end if stack.late else loop.most
        return None if end is None else end - integer(1) - loop.round

    def _counts_down(self, index: Atom) -> Var | None:
        """The counter of a loop, if an index is the number of its rounds less one less the counter."""
        call = self._definition(index)
        if call is None or call.operator != "subtract":
            return None
        last, counter = call.arguments
        count = self._counts().get(counter) if isinstance(counter, Var) else None
        if count is None or not isinstance(last, Var) or self.offsets.get(last) != (count, 1):
            return None
        assert isinstance(counter, Var)
        return counter

    def _counts(self) -> dict[Var, Atom]:
        """The numbers of rounds of loops by their counters."""
        if not hasattr(self, "_known_counts"):
            loops = [b.value for b in walk(self.loop.body) if isinstance(b.value, Loop)]
            self._known_counts = {n.counter.index: n.counter.count for n in loops if n.counter is not None}
        return self._known_counts

    def _definition(self, atom: Atom) -> OpCall | None:
        if not hasattr(self, "_calls"):
            self._calls = {b.targets[0]: b.value for b in walk(self.loop.body) if isinstance(b.value, OpCall)}
        return self._calls.get(atom) if isinstance(atom, Var) else None


def _row_type(array: Var) -> TensorType:
    assert isinstance(array.type, TensorType)
    return TensorType(array.type.base, array.type.shape[1:])


def _vector_element(value: Expression, type_: TensorType) -> Expression:
    """An element of memory as vectors keep it."""
    dtype = storage(type_)
    return value if str(value.ty) == dtype else tirx.Cast(dtype, value)


def _has_stacks(type_: Type | None) -> bool:
    assert isinstance(type_, StackType)
    items = type_.element.items if isinstance(type_.element, TupleType) else (type_.element,)
    return any(isinstance(item, StackType) for item in items)


def _is_number(operand: Operand) -> bool:
    return isinstance(operand, Uniform) and operand.number is not None and operand.type.shape == ()
