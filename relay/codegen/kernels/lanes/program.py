"""The body of a loop for a vector of its rounds: blocks, branches, loops and tapes, with masks.

if c {a} else {b}     both are computed, and a choice is made; what counts in a is the mask and c
loop {..}             runs as long as there is a lane in it; `run` is the mask of these lanes
stack                 one for all lanes: entry k is a vector, pushed in round k of the loop that fills it
backward loop         the lanes end together, so that all read the same entry
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias, assert_never

import attrs

from relay.codegen.kernels.kernels import is_inlined
from relay.codegen.kernels.lanes.vectors import (
    LANES,
    NoLaneCode,
    Operand,
    Uniform,
    Vector,
    VectorCode,
    elements_of,
    storage,
    stored,
)
from relay.codegen.tvm import tir
from relay.codegen.tvm.tir import Expression, Statement, integer, tirx
from relay.errors import Span
from relay.ir.dims import Dim
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
class LaneStack:
    """A stack of each lane: its memory and the entries that are in it, and how many of these a lane has."""

    memory: StackMemory
    length: Operand


@attrs.frozen(eq=False)
class StackMemory:
    """Memory that grows: cells of its address, its bytes, and the number of vectors in it."""

    address: Any
    capacity: Any
    top: Any
    types: tuple[TensorType, ...]
    width: int

    @property
    def offsets(self) -> list[int]:
        """Where the parts of an entry begin, and the bytes of an entry."""
        found = [0]
        for type_ in self.types:
            found.append(found[-1] + -(-elements_of(type_) * self.width * _bytes(type_) // 64) * 64)
        return found


LaneValue: TypeAlias = "Operand | LaneStack | tuple[LaneValue, ...]"


@attrs.frozen(eq=False)
class _Running:
    """A loop that is being generated: the lanes in it, and what ends its rounds."""

    loop: Loop
    ends: list[tuple[Vector | None, Next | Exit]] = attrs.field(factory=list)


@attrs.frozen(eq=False)
class Surroundings:
    """What a lane program needs of its kernel: the operand for an atom of outside, the number for a size, the status
    of an assertion that fails, and cells: `left`, how many rounds of loops may still be run before signals are looked
    at, `alive`, 0 where the program ends, and `status`. `refill` emits what happens where no rounds are left."""

    operand: Callable[[Atom], Operand]
    size: Callable[[Dim], Expression]
    failure: Callable[[str, Span | None], int]
    refill: Callable[[VectorCode], None]
    left: Any
    alive: Any
    status: Any
    memory_limit: Expression
    out_of_memory: int


class LaneProgram:
    """One vector of rounds."""

    def __init__(self, plan: LaneLoop, code: VectorCode, around: Surroundings) -> None:
        self.plan, self.loop, self.code, self.around = plan, plan.loop, code, around
        self.inside = {t for b in walk(self.loop.body) for t in (*b.targets, *bound_variables(b.value))}
        self.values: dict[Var, LaneValue] = {}
        self.rows: dict[Var, tuple[int, Vector | None]] = {}  # the loop's arrays: which, and the row if it is written
        self.added: dict[int, Operand] = {}
        self.memories: list[StackMemory] = []
        self.running: list[_Running] = []
        self.uniform: dict[Var, Expression] = {}  # positions in stacks that are the same in all lanes
        self.countdown: dict[Var, tuple[Atom, Expression]] = {}  # counters of loops that end together: count, last
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
            elif number not in self.plan.sums:
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
                    value = code.kept(source, n, lane)
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
            code.emit_if(full, whole, part)

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

    def _new(self, type_: Type | None) -> LaneValue:
        """Places for a value."""
        if isinstance(type_, TensorType):
            return self.code.vector(type_)
        if isinstance(type_, TupleType):
            return tuple(map(self._new, type_.items))
        raise NoLaneCode

    def _assign(self, target: LaneValue, value: LaneValue, mask: Vector | None) -> None:
        """target := value, in the lanes of a mask."""
        if isinstance(target, tuple):
            assert isinstance(value, tuple)
            for left, right in zip(target, value, strict=True):
                self._assign(left, right, mask)
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
            return LaneStack(value.memory, self._vector(value.length))
        return self._vector(value)

    def _vector(self, value: Operand) -> Vector:
        made = self.code.vector(value.type)
        self.code.copy(made, value)
        return made

    # ---- blocks

    def _block(self, block: Block, mask: Vector | None) -> list[LaneValue] | None:
        """What a block yields; None if it ends a round."""
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
        failed = code.both(mask, condition, holds=False)
        with code.collect() as fail:
            code.store(around.status, integer(around.failure(assertion.message, assertion.span)))
            code.store(around.alive, integer(0))
        code.emit_if(tirx.And(tirx.NE(code.reduce("or", failed), integer(0, "int32")), self._goes_on()), fail)
        return code.both(mask, condition)

    def _goes_on(self) -> Expression:
        return tirx.NE(self.code.load(self.around.alive), integer(0))

    # ---- calls

    def _call(self, call: OpCall, target: Var, mask: Vector | None) -> None:
        operator = lookup(call.operator)
        first = call.arguments[0] if call.arguments else None
        if operator.indexing.kind is IndexKind.ROW and first is not None and first not in self.inside:
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
        if call.operator == ADDITION and target in self.loop.body.terminator.values:  # type: ignore[union-attr]
            for number in self.plan.sums:
                parameter = self.loop.parameters[number]
                if parameter in call.arguments:
                    other = call.arguments[1 if call.arguments[0] is parameter else 0]
                    self.added[number] = self._operand(other)
                    return
        type_ = target.type
        assert isinstance(type_, TensorType)
        self._note_offset(call, target)
        guard = mask if operator.requirements else None
        self.values[target] = self.code.call(call, [self._operand(a) for a in call.arguments], type_, guard)

    def _read(self, call: OpCall, target: Var) -> Vector:
        array, place = call.arguments
        type_ = target.type
        assert isinstance(type_, TensorType)
        if isinstance(array, Var) and array in self.rows:
            number, row = self.rows[array]
            return self._own_row(number, type_, row)
        source = self._operand(array)
        if source.buffer is None:
            raise NoLaneCode
        if target in self.plan.reads:
            return self._row(source.buffer, type_, self.around.size(source.type.shape[0]))
        index, code = self._operand(place), self.code
        rows = self.around.size(source.type.shape[0])
        made = code.vector(type_)

        def gathered(lane: Expression, n: int) -> list[Statement]:
            at = code.element(index, 0, lane)
            at = at if str(at.ty) == "int64" else tirx.Cast("int64", at)
            at = tirx.Select(tirx.LT(at, integer(0)), at + rows, at)
            at = tirx.max(tirx.min(at, rows - integer(1)), integer(0))
            value = tirx.BufferLoad(source.buffer, [at * integer(made.elements) + integer(n)])
            return [code.write(made, n, lane, _kept(value, type_))]

        for n in range(made.elements):
            code.each_lane(lambda lane, n=n: gathered(lane, n))  # type: ignore[misc]
        return made

    def _own_row(self, number: int, type_: TensorType, row: Vector | None) -> Vector:
        return self._row(self.arrays[number], type_, self.count) if row is None else row

    def _row(self, array: Any, type_: TensorType, extent: Expression) -> Vector:
        """The rows of the rounds, of the last one where there is none; the array has `extent` rows."""
        code = self.code
        made, staged = code.vector(type_), code.vector(type_)

        def load(target: Vector, n: int, lane: Expression, row: Expression) -> list[Statement]:
            value = tirx.BufferLoad(array, [row * integer(target.elements) + integer(n)])
            return [code.write(target, n, lane, _kept(value, type_))]

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
            found.append((condition, self._block(arm.body, code.both(mask, condition))))
            mask = code.both(mask, condition, holds=False)
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
        parameters = [self._copy(self._find(initial)) for initial in loop.initial]
        self.values.update(zip(loop.parameters, parameters, strict=True))
        running = _Running(loop)
        run = self._vector(mask) if mask is not None else code.mask(lambda _: tirx.const(True, "bool"))
        for parameter in parameters:
            if isinstance(parameter, LaneStack):
                code.store(parameter.memory.top, integer(0))
        going = code.cell(0, "int32")
        count, stop = self._counter(loop, run)
        together = count is not None and isinstance(self._find(loop.counter.count), Vector)  # type: ignore[union-attr]
        code.store(going, code.reduce("or", run))
        memories = len(self.memories)
        exits: list[LaneValue] = []
        with code.collect() as body:
            within: Vector = run
            if count is not None:
                within = self._begin_round(loop, run, count, stop, together)
            self.running.append(running)
            self._block(loop.body, within)
            self.running.pop()
            exits = self._end_round(running, parameters, run, targets, masked=together)
            if count is not None:
                code.store(count, code.load(count) + integer(1))
            if exits or count is None:
                code.store(going, code.reduce("or", run))
            code.store(self.around.left, code.load(self.around.left) - integer(1))
        assert len(self.memories) >= memories
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
            self.values.update(zip(targets, parameters, strict=False))
            return
        if loop.counter is not None:
            for result, parameter in zip(exits, parameters, strict=True):
                self._assign(result, parameter, run)
        self.values.update(zip(targets, exits, strict=True))

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

    def _begin_round(self, loop: Loop, run: Vector, count: Any, stop: Any, together: bool) -> Vector:
        """Give the index of a loop its value; returns the lanes that are in the round."""
        code, counter = self.code, loop.counter
        assert counter is not None
        type_ = counter.index.type
        assert isinstance(type_, TensorType)
        dtype = storage(type_)

        def converted(value: Expression) -> Expression:
            return value if dtype == "int64" else tirx.Cast(dtype, value)

        if not together:
            self.values[counter.index] = Uniform(type_, converted(code.load(count)))
            return run
        index = self.values[counter.index] = code.vector(type_)
        rounds = self._operand(counter.count)
        # Round k of a lane is round k + most - rounds of all.
        shift = converted(code.load(count)) - converted(code.load(stop))
        code.each_lane(lambda lane: [code.write(index, 0, lane, code.element(rounds, 0, lane) + shift)])
        self.countdown[counter.index] = counter.count, code.load(stop) - integer(1) - code.load(count)
        started = code.mask(lambda lane: tirx.GE(code.element(index, 0, lane), tirx.const(0, dtype)))
        return code.both(run, started)

    def _end_round(
        self, running: _Running, parameters: Sequence[LaneValue], run: Vector, targets: Sequence[Var], masked: bool
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
                    self._moved(self._find(atom), parameter, parameters)
                    for atom, parameter in zip(end.values, parameters, strict=True)
                ]
                for _, end in steps
            ]
            for (mask, _), values in zip(steps, moved, strict=True):
                for parameter, value in zip(parameters, values, strict=True):
                    if value is not None:
                        is_stack = isinstance(parameter, LaneStack)
                        self._assign(parameter, value, None if alone and not is_stack else mask)
        for memory in self._pushed(running.loop):
            code.store(memory.top, code.load(memory.top) + integer(1))
        for mask, _ in exits:
            if mask is None:
                raise NoLaneCode
            code.choose(run, mask, Uniform(run.type, tirx.const(False, "bool")), run)
        return results

    def _result_places(self, loop: Loop, type_: Type | None, atoms: Sequence[Atom]) -> LaneValue:
        if isinstance(type_, StackType):
            found = self._find(atoms[0])
            assert isinstance(found, LaneStack)
            own = [value.memory for p in loop.parameters if isinstance(value := self.values[p], LaneStack)]
            if found.memory not in own or any(value.memory is not found.memory for value in map(self._find, atoms)):  # type: ignore[union-attr]
                raise NoLaneCode
            return LaneStack(found.memory, self.code.vector(scalar(INT64)))
        return self._new(type_)

    def _moved(self, value: LaneValue, own: LaneValue, parameters: Sequence[LaneValue]) -> LaneValue | None:
        """What a parameter becomes, in other places than those of parameters; None if it stays."""
        if value is own:
            return None
        taken = {id(leaf) for parameter in parameters for leaf in _leaves(parameter)}
        return self._copy(value) if any(id(leaf) in taken for leaf in _leaves(value)) else value

    # ---- stacks

    def _stack(self, element: Type) -> LaneStack:
        code = self.code
        types = element.items if isinstance(element, TupleType) else (element,)
        assert all(isinstance(t, TensorType) for t in types)
        memory = StackMemory(code.cell(), code.cell(), code.cell(), types, code.width)  # type: ignore[arg-type]
        self.memories.append(memory)
        code.store(memory.top, integer(0))
        return LaneStack(memory, Uniform(scalar(INT64), integer(0)))

    def _pushed(self, loop: Loop) -> list[StackMemory]:
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
        code, found = self.code, self._find(stack)
        assert isinstance(found, LaneStack)
        assert isinstance(found.length, Vector)
        memory, value = found.memory, self._find(pushed)
        items = value if isinstance(value, tuple) else (value,)
        end = (code.load(memory.top) + integer(1)) * integer(memory.offsets[-1])
        with code.collect() as grow:
            self._grow(memory)
        code.emit_if(tirx.GT(end, code.load(memory.capacity)), grow)
        several = sum(isinstance(b.value, StackPush) and b.value.stack is stack for b in walk(self.loop.body)) > 1
        with code.collect() as write:
            for item, buffer in zip(items, self._entry(memory, code.load(memory.top)), strict=True):
                assert isinstance(item, Vector | Uniform)
                for n in range(elements_of(item.type)):

                    def part(
                        lane: Expression, item: Operand = item, n: int = n, buffer: Any = buffer
                    ) -> list[Statement]:
                        at = [code.place(n, lane)]
                        new = stored(code.element(item, n, lane))
                        if several and mask is not None:
                            new = tirx.Select(code.element(mask, 0, lane), new, tirx.BufferLoad(buffer, at))
                        return [tirx.BufferStore(buffer, new, at)]

                    code.each_lane(part)
        code.emit_if(tirx.LE(end, code.load(memory.capacity)), write)
        length = code.vector(scalar(INT64))
        code.each_lane(lambda lane: [code.write(length, 0, lane, code.element(found.length, 0, lane) + integer(1))])
        return LaneStack(memory, length)

    def _grow(self, memory: StackMemory) -> None:
        """Emit that memory gets twice as large, or the program ends."""
        code, around = self.code, self.around
        least = integer(max(memory.offsets[-1], 1 << 14))
        size, made = tirx.Var("size", "int64"), tirx.Var("made", "int64")
        code.emit(tirx.Bind(size, tirx.max(code.load(memory.capacity) * integer(2), least)))
        with code.collect() as exhausted:
            code.store(around.status, integer(around.out_of_memory))
            code.store(around.alive, integer(0))
            code.store(around.left, integer(0))
        with code.collect() as enough:
            code.emit(tirx.Bind(made, tir.extern("realloc", code.load(memory.address), size)))
            with code.collect() as kept:
                code.store(memory.address, made)
                code.store(memory.capacity, size)
            code.emit_if(tirx.NE(made, integer(0)), kept, exhausted)
        code.emit_if(tirx.LE(size, around.memory_limit), enough, exhausted)

    def _entry(self, memory: StackMemory, position: Expression) -> list[Any]:
        """Emit buffers for the parts of an entry."""
        buffers = []
        for type_, offset in zip(memory.types, memory.offsets, strict=False):
            address = self.code.load(memory.address) + position * integer(memory.offsets[-1]) + integer(offset)
            buffer, statements = tir.view("entry", (elements_of(type_) * self.code.width,), storage(type_), address)
            self.code.emit(*statements)
            buffers.append(buffer)
        return buffers

    def _get(self, stack: Atom, index: Atom, target: Var) -> LaneValue:
        code, found = self.code, self._find(stack)
        assert isinstance(found, LaneStack)
        position = self._common_position(index)
        if position is None:
            raise NoLaneCode
        made = []
        for type_, buffer in zip(found.memory.types, self._entry(found.memory, position), strict=True):
            vector = code.vector(type_)
            for n in range(vector.elements):
                code.each_lane(
                    lambda lane, n=n, vector=vector, buffer=buffer: [  # type: ignore[misc]
                        tirx.BufferStore(
                            vector.buffer, tirx.BufferLoad(buffer, [code.place(n, lane)]), [code.place(n, lane)]
                        )
                    ]
                )
            made.append(vector)
        return tuple(made) if isinstance(target.type, TupleType) else made[0]

    def _note_offset(self, call: OpCall, target: Var) -> None:
        """Note integers that are one less than the number of rounds of a loop, and that less the loop's counter."""
        if call.operator != "subtract":
            return
        left, right = call.arguments
        if isinstance(left, Var) and isinstance(right, Constant) and right.value.ndim == 0:
            self.offsets[target] = left, int(right.value) if right.value.dtype.kind in "iu" else 0

    def _common_position(self, index: Atom) -> Expression | None:
        """The entry that all lanes read, if an index counts down to 0 in a loop whose lanes end together."""
        call = self._definition(index)
        if call is None or call.operator != "subtract":
            return None
        last, counter = call.arguments
        if not isinstance(counter, Var) or counter not in self.countdown or not isinstance(last, Var):
            return None
        count, position = self.countdown[counter]
        return position if self.offsets.get(last) == (count, 1) else None

    def _definition(self, atom: Atom) -> OpCall | None:
        if not hasattr(self, "_calls"):
            self._calls = {b.targets[0]: b.value for b in walk(self.loop.body) if isinstance(b.value, OpCall)}
        return self._calls.get(atom) if isinstance(atom, Var) else None


def _leaves(value: LaneValue) -> list[Operand]:
    match value:
        case tuple():
            return [leaf for item in value for leaf in _leaves(item)]
        case LaneStack(_, length):
            return [length]
        case Vector() | Uniform():
            return [value]
        case _:
            assert_never(value)


def _row_type(array: Var) -> TensorType:
    assert isinstance(array.type, TensorType)
    return TensorType(array.type.base, array.type.shape[1:])


def _kept(value: Expression, type_: TensorType) -> Expression:
    """An element of memory as vectors keep it."""
    dtype = storage(type_)
    return value if str(value.ty) == dtype else tirx.Cast(dtype, value)


def _bytes(type_: TensorType) -> int:
    return BaseType(storage(type_)).dtype.itemsize
