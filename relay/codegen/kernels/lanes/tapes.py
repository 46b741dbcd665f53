"""Memory of lane programs that grows: stacks, and arrays that are filled row by row.

Entry k of a stack is a vector, pushed in round k of the loop that fills it, by all lanes that are in it then. So the
entries of each lane are the first ones, as many as the lane has rounds. A loop that reads them from the last to the
first lets the lanes end together, so that all read the same entry. What such a loop pushes itself are the last entries
of each lane; who reads those lets the lanes start together.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from relay.codegen.kernels.lanes.values import KernelContext, LaneArray, LaneStack, LaneValue, StackMemory
from relay.codegen.kernels.lanes.vectors import (
    NoLaneCode,
    Operand,
    Uniform,
    Vector,
    VectorCode,
    elements_of,
    storage,
    stored_element,
)
from relay.codegen.tvm import tir
from relay.codegen.tvm.tir import Expression, Statement, integer, tirx
from relay.ir.types import INT64, TensorType, Type, scalar


class Tapes:
    """The stacks and arrays of one lane program."""

    def __init__(self, code: VectorCode, around: KernelContext) -> None:
        self.code, self.around = code, around
        self.memories: list[StackMemory] = []

    def memory(self, types: Sequence[Type]) -> StackMemory:
        code = self.code
        self.memories.append(StackMemory(code.cell(), code.cell(), code.cell(), tuple(types), code.width))
        return self.memories[-1]

    # ---- stacks

    def push(self, stack: LaneStack, items: Sequence[LaneValue], mask: Vector | None) -> LaneStack:
        """The stack with one more entry, which is written in the lanes of a mask."""
        code, memory = self.code, stack.memory
        assert isinstance(stack.length, Vector)
        end = (code.load(memory.top) + integer(1)) * integer(memory.offsets[-1])
        with code.collect() as grow:
            self._grow(memory, end)
        code.emit_if(tirx.GT(end, code.load(memory.capacity)), grow)
        with code.collect() as write:
            for number, (item, buffers) in enumerate(
                zip(items, self._entry(memory, code.load(memory.top)), strict=True)
            ):
                if isinstance(item, LaneStack):
                    if mask is not None or item.late or memory.inner.setdefault(number, item.memory) is not item.memory:
                        raise NoLaneCode
                    code.emit(tirx.BufferStore(buffers[1], item.start, [0]))
                    item = item.length
                assert isinstance(item, Vector | Uniform)
                self._write_part(buffers[0], item, mask)
        code.emit_if(tirx.LE(end, code.load(memory.capacity)), write)
        length = code.vector(scalar(INT64))
        code.each_lane(lambda lane: [code.write(length, 0, lane, code.element(stack.length, 0, lane) + integer(1))])
        return LaneStack(memory, stack.start, length, stack.late)

    def get(self, stack: LaneStack, position: Expression) -> list[LaneValue]:
        """The parts of an entry."""
        code, memory = self.code, stack.memory
        made: list[LaneValue] = []
        for number, (type_, buffers) in enumerate(
            zip(memory.types, self._entry(memory, stack.start + position), strict=True)
        ):
            vector = self._load_part(buffers[0], type_ if isinstance(type_, TensorType) else scalar(INT64))
            if isinstance(type_, TensorType):
                made.append(vector)
                continue
            if number not in memory.inner:
                raise NoLaneCode
            start = code.cell()
            code.store(start, tirx.BufferLoad(buffers[1], [0]))
            made.append(LaneStack(memory.inner[number], code.load(start), vector))
        return made

    # ---- arrays of a round

    def array(self, row: TensorType, rows: Expression) -> LaneArray:
        """An array with this many rows, which hold anything."""
        code, memory = self.code, self.memory([row])
        size = rows * integer(memory.offsets[-1])
        with code.collect() as grow:
            self._grow(memory, size)
        code.emit_if(tirx.GT(size, code.load(memory.capacity)), grow)
        return LaneArray(memory, rows)

    def write_row(self, array: LaneArray, place: Operand, row: Operand) -> None:
        code = self.code
        with code.collect() as write:
            ((buffer,),) = self._entry(array.memory, _place(array, place))
            self._write_part(buffer, row, None)
        code.emit_if(self._goes_on(), write)

    def read_row(self, array: LaneArray, place: Operand, type_: TensorType) -> Vector:
        code, made = self.code, self.code.vector(type_)
        with code.collect() as read:
            ((buffer,),) = self._entry(array.memory, _place(array, place))
            code.copy(made, self._load_part(buffer, type_))
        code.emit_if(self._goes_on(), read)
        return made

    def _goes_on(self) -> Expression:
        return tirx.NE(self.code.load(self.around.alive), integer(0))

    # ---- memory

    def _write_part(self, buffer: Any, item: Operand, mask: Vector | None) -> None:
        """Write a vector to memory, in the lanes of a mask."""
        code = self.code
        for n in range(elements_of(item.type)):

            def part(lane: Expression, n: int = n) -> list[Statement]:
                at = [code.place(n, lane)]
                new = stored_element(code.element(item, n, lane))
                if mask is not None:
                    new = tirx.Select(code.element(mask, 0, lane), new, tirx.BufferLoad(buffer, at))
                return [tirx.BufferStore(buffer, new, at)]

            code.each_lane(part)

    def _grow(self, memory: StackMemory, wanted: Expression) -> None:
        """Emit that memory gets so large, and at least twice as large as it is, or the program ends."""
        code, around = self.code, self.around
        least = tirx.max(integer(1 << 14), wanted)
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

    def _entry(self, memory: StackMemory, position: Expression) -> list[list[Any]]:
        """Emit buffers for the parts of an entry; of a stack, its lengths and its start."""
        found = []
        for type_, offset in zip(memory.types, memory.offsets, strict=False):
            address = self.code.load(memory.address) + position * integer(memory.offsets[-1]) + integer(offset)
            tensor = type_ if isinstance(type_, TensorType) else scalar(INT64)
            size = elements_of(tensor) * self.code.width
            parts = [(size, address)] if tensor is type_ else [(size, address), (1, address + integer(8 * size))]
            buffers = []
            for elements, at in parts:
                buffer, statements = tir.view("entry", (elements,), storage(tensor), at)
                self.code.emit(*statements)
                buffers.append(buffer)
            found.append(buffers)
        return found

    def _load_part(self, buffer: Any, type_: TensorType) -> Vector:
        """A vector of memory."""
        code, vector = self.code, self.code.vector(type_)
        for n in range(vector.elements):
            code.each_lane(
                lambda lane, n=n: [  # type: ignore[misc]
                    tirx.BufferStore(
                        vector.buffer, tirx.BufferLoad(buffer, [code.place(n, lane)]), [code.place(n, lane)]
                    )
                ]
            )
        return vector


def _place(array: LaneArray, place: Operand) -> Expression:
    """A row that is there."""
    if not isinstance(place, Uniform) or place.number is None:
        raise NoLaneCode
    number = place.number if str(place.number.ty) == "int64" else tirx.Cast("int64", place.number)
    return tirx.max(tirx.min(number, array.extent - integer(1)), integer(0))
