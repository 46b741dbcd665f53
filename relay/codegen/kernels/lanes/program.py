"""The body of a loop for a vector of its rounds: blocks, branches, loops and tapes, with masks.

if c {a} else {b}     both are computed, and a choice is made; what counts in a is the mask and c
loop {..}             runs as long as there is a lane in it; `run` is the mask of these lanes
stack                 one for all lanes: entry k is a vector, pushed in round k of the loop that fills it
backward loop         the lanes end together, so that all read the same entry
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from relay.codegen.kernels.kernels import is_inlined
from relay.codegen.kernels.lanes import rows
from relay.codegen.kernels.lanes.loops import LaneLoops, OpenLoop
from relay.codegen.kernels.lanes.tapes import Tapes
from relay.codegen.kernels.lanes.values import KernelContext, LaneArray, LaneStack, LaneValue
from relay.codegen.kernels.lanes.vectors import (
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


class LaneProgram:
    """One vector of rounds."""

    def __init__(self, plan: LaneLoop, code: VectorCode, around: KernelContext) -> None:
        self.plan, self.loop, self.code, self.around = plan, plan.loop, code, around
        self.inside = {t for b in walk(self.loop.body) for t in (*b.targets, *bound_variables(b.value))}
        self.values: dict[Var, LaneValue] = {}
        self.rows: dict[Var, tuple[int, Vector | None]] = {}  # the loop's arrays: which, and the row if it is written
        self.added: dict[int, Operand] = {}
        self.tapes = Tapes(code, around)
        self.running: list[OpenLoop] = []
        self.nested = any(
            isinstance(b.value, StackPush) and _has_stacks(b.targets[0].type) for b in walk(self.loop.body)
        )  # whether stacks are parts of entries
        self.loops = LaneLoops(self)

    def emit(self, base: Expression, rest: Expression, count: Expression, arrays: Mapping[int, Any]) -> None:
        """Emit the rounds from `base` on, `rest` of which are meant if that is less than the width. `arrays`: the
        buffers of the loop's arrays."""
        self.rounds, self.arrays = rows.Rounds(base, rest), arrays
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
                self.values[parameter] = self.find(initial)
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
            self.added[number] = self.operand(loop.body.terminator.values[number])  # type: ignore[union-attr]

    def store(self) -> None:
        """Write the rows, after `emit`."""
        end = self.loop.body.terminator
        assert isinstance(end, Next)
        for number in self.plan.arrays:
            value = end.values[number]
            assert isinstance(value, Var)
            _, row = self.rows[value]
            if row is not None:
                rows.store(self.code, self.rounds, self.arrays[number], row, self._extent(number))

    # ---- values

    def find(self, atom: Atom) -> LaneValue:
        if isinstance(atom, Var) and atom in self.inside:
            return self.values[atom]
        if isinstance(atom, Constant) and is_inlined(atom):
            type_ = atom.type
            assert isinstance(type_.base, BaseType)
            return Uniform(type_, tir.literal(atom.value.item(), type_.base))
        if isinstance(atom, Var) and atom in self.values:
            return self.values[atom]
        return self.around.operand(atom)

    def operand(self, atom: Atom) -> Operand:
        found = self.find(atom)
        if not isinstance(found, Vector | Uniform):
            raise NoLaneCode
        return found

    def new_value(self, type_: Type | None) -> LaneValue:
        """Places for a value."""
        if isinstance(type_, TensorType):
            return self.code.vector(type_)
        if isinstance(type_, TupleType):
            return tuple(map(self.new_value, type_.items))
        raise NoLaneCode

    def assign(self, target: LaneValue, value: LaneValue, mask: Vector | None) -> None:
        """target := value, in the lanes of a mask."""
        if isinstance(target, tuple):
            assert isinstance(value, tuple)
            for left, right in zip(target, value, strict=True):
                self.assign(left, right, mask)
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

    def copy(self, value: LaneValue) -> LaneValue:
        """A value in places of its own."""
        if isinstance(value, tuple):
            return tuple(map(self.copy, value))
        if isinstance(value, LaneStack):
            return LaneStack(value.memory, value.start, self.vector(value.length), value.late, value.end)
        return value if isinstance(value, LaneArray) else self.vector(value)

    def vector(self, value: Operand) -> Vector:
        made = self.code.vector(value.type)
        self.code.copy(made, value)
        return made

    # ---- blocks

    def block(self, block: Block, mask: Vector | None) -> list[LaneValue] | None:
        """The values that a block yields; None if it ends a round."""
        mask = self._bindings(block, mask)
        match block.terminator:
            case Yield(values):
                return [self.find(v) for v in values]
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
                    self.values[targets[0]] = self.find(value)
            case MakeTuple(items):
                self.values[targets[0]] = tuple(self.find(item) for item in items)
            case Project(whole, index):
                found = self.find(whole)
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
                found = self.find(stack)
                assert isinstance(found, LaneStack)
                self.values[targets[0]] = found.length
            case StackGet(stack, index):
                self.values[targets[0]] = self._get(stack, index, targets[0])
            case If():
                self._branch(value, targets, mask)
            case Loop():
                self.loops.emit(value, targets, mask)
            case _:
                raise NoLaneCode

    def _assertion(self, assertion: Assert, mask: Vector | None) -> Vector:
        """End the program if an assertion does not hold in a lane that counts. Returns the lanes that go on."""
        code, around = self.code, self.around
        condition = self.operand(assertion.condition)
        failed = code.masked_condition(mask, condition, holds=False)
        with code.collect() as fail:
            code.store(around.status, integer(around.failure(assertion.message, assertion.span)))
            code.store(around.alive, integer(0))
        code.emit_if(tirx.And(tirx.NE(code.reduce("or", failed), integer(0, "int32")), self.goes_on()), fail)
        return code.masked_condition(mask, condition)

    def goes_on(self) -> Expression:
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
            new = self.operand(call.arguments[2])
            if call.operator == "index_add":
                row = self._own_row(number, _row_type(first), row)
                emitted = OpCall(ADDITION, (), {}, call.span)
                new = self.code.call(emitted, (row, new), row.type, None)
            self.rows[target] = number, self.vector(new)
            return
        if target in self.plan.tapes:
            self.values[target] = self._tape(call, target, first)
            return
        type_ = target.type
        assert isinstance(type_, TensorType)
        self.loops.note_offset(call, target)
        guard = mask if operator.requirements else None
        operands_ = [self.operand(a) for a in call.arguments]
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
        found = self.find(array)
        if isinstance(found, LaneArray):
            return self.tapes.read_row(found, self.operand(place), type_)
        source = self.operand(array)
        if source.buffer is None:
            raise NoLaneCode
        if target in self.plan.reads:
            return rows.load(self.code, self.rounds, source.buffer, type_, self.around.size(source.type.shape[0]))
        extent = self.around.size(source.type.shape[0])
        return rows.gather(self.code, source.buffer, self.operand(place), type_, extent)

    def _own_row(self, number: int, type_: TensorType, row: Vector | None) -> Vector:
        if row is not None:
            return row
        return rows.load(self.code, self.rounds, self.arrays[number], type_, self._extent(number))

    def _extent(self, number: int) -> Expression:
        type_ = self.loop.parameters[number].type
        assert isinstance(type_, TensorType)
        return self.around.size(type_.shape[0])

    # ---- branches

    def _branch(self, branch: If, targets: Sequence[Var], mask: Vector | None) -> None:
        code = self.code
        found: list[tuple[Operand | None, list[LaneValue] | None]] = []
        for arm in branch.arms:
            (condition,) = self.block(arm.condition, mask) or (None,)
            if not isinstance(condition, Vector | Uniform):
                raise NoLaneCode
            condition = self.vector(condition)
            found.append((condition, self.block(arm.body, code.masked_condition(mask, condition))))
            mask = code.masked_condition(mask, condition, holds=False)
        found.append((None, self.block(branch.orelse, mask)))
        for number, target in enumerate(targets):
            values = [(condition, values[number]) for condition, values in found if values is not None]
            _, made = values.pop()
            if values:
                made = self.copy(made)
                for condition, value in reversed(values):
                    assert isinstance(condition, Vector)
                    self.assign(made, value, condition)
            self.values[target] = made

    # ---- stacks

    def _stack(self, element: Type) -> LaneStack:
        code = self.code
        types = element.items if isinstance(element, TupleType) else (element,)
        memory = self.tapes.memory(types)
        if not self.running:
            code.store(memory.top, integer(0))
        return LaneStack(memory, integer(0), Uniform(scalar(INT64), integer(0)))

    def _push(self, stack: Atom, pushed: Atom, mask: Vector | None) -> LaneStack:
        found, value = self.find(stack), self.find(pushed)
        assert isinstance(found, LaneStack)
        items = value if isinstance(value, tuple) else (value,)
        several = sum(isinstance(b.value, StackPush) and b.value.stack is stack for b in walk(self.loop.body)) > 1
        return self.tapes.push(found, items, mask if several else None)

    def _get(self, stack: Atom, index: Atom, target: Var) -> LaneValue:
        found = self.find(stack)
        assert isinstance(found, LaneStack)
        position = self.loops.common_position(found, index)
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
        found = self.find(array)
        assert isinstance(found, LaneArray)
        self.tapes.write_row(found, self.operand(call.arguments[1]), self.operand(call.arguments[2]))
        return found


def _row_type(array: Var) -> TensorType:
    assert isinstance(array.type, TensorType)
    return TensorType(array.type.base, array.type.shape[1:])


def _has_stacks(type_: Type | None) -> bool:
    assert isinstance(type_, StackType)
    items = type_.element.items if isinstance(type_.element, TupleType) else (type_.element,)
    return any(isinstance(item, StackType) for item in items)


def _is_number(operand: Operand) -> bool:
    return isinstance(operand, Uniform) and operand.number is not None and operand.type.shape == ()
