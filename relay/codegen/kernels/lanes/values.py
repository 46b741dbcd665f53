"""Values of lane programs: vectors, numbers for all lanes, tuples of these, stacks, and arrays that are filled row by
row. What a program needs of the kernel that it stands in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, assert_never

import attrs

from relay.codegen.kernels.lanes.vectors import Operand, Uniform, Vector, VectorCode, elements_of, itemsize
from relay.codegen.tvm.tir import Expression
from relay.errors import Span
from relay.ir.dims import Dim
from relay.ir.expr import Atom
from relay.ir.types import StackType, TensorType, Type


@attrs.frozen(eq=False)
class LaneStack:
    """A stack of each lane: its memory, where it begins there, and how many entries a lane has. Those of a lane are the
    first ones; or, if it is `late`, since the lanes have ended together in the loop that filled it, the last ones of as
    many as there are in all, `end`."""

    memory: StackMemory
    start: Expression
    length: Operand
    late: bool = False
    end: Expression | None = None


@attrs.frozen(eq=False)
class LaneArray:
    """An array of each lane that is written row by row."""

    memory: StackMemory
    extent: Expression


@attrs.frozen(eq=False)
class StackMemory:
    """Memory that grows: cells of its address, its bytes, and the number of entries in it. `inner`: the memory of the
    stacks that are parts of entries, by their position."""

    address: Any
    capacity: Any
    top: Any
    types: tuple[Type, ...]
    width: int
    inner: dict[int, StackMemory] = attrs.field(factory=dict)

    @property
    def offsets(self) -> list[int]:
        """The offsets of an entry's parts, and the bytes of an entry."""
        found = [0]
        for type_ in self.types:
            found.append(found[-1] + -(-_entry_bytes(type_, self.width) // 64) * 64)
        return found


LaneValue: TypeAlias = "Operand | LaneStack | LaneArray | tuple[LaneValue, ...]"


@attrs.frozen(eq=False)
class KernelContext:
    """The parts of a kernel that a lane program needs: the operand for an atom of outside, the number for a size,
    the status of an assertion that fails, and cells: `left`, how many rounds of loops may still be run before
    signals are checked, `alive`, 0 where the program ends, and `status`. `refill` emits the code for the case that
    no rounds are left."""

    operand: Callable[[Atom], Operand]
    size: Callable[[Dim], Expression]
    failure: Callable[[str, Span | None], int]
    refill: Callable[[VectorCode], None]
    left: Any
    alive: Any
    status: Any
    memory_limit: Expression
    out_of_memory: int


def leaves(value: LaneValue) -> list[Operand]:
    match value:
        case tuple():
            return [leaf for item in value for leaf in leaves(item)]
        case LaneStack(length=length):
            return [length]
        case LaneArray():
            return []
        case Vector() | Uniform():
            return [value]
        case _:
            assert_never(value)


def _entry_bytes(type_: Type, width: int) -> int:
    """The bytes of a part of an entry: of a stack, the lengths of all lanes and its start."""
    if isinstance(type_, StackType):
        return 8 * width + 8
    assert isinstance(type_, TensorType)
    return elements_of(type_) * width * itemsize(type_)
