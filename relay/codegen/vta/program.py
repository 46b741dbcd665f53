"""A program of the accelerator: a stream of instructions, and the buffers in DRAM that it reads and writes.

Addresses are physical, in bytes. The first page is never given away, as the original simulator keeps it.
"""

from __future__ import annotations

import bisect
import enum
import math
import re
from collections.abc import Iterable, Mapping, Sequence

import attrs
import numpy as np

from relay.codegen.vta.config import Config
from relay.codegen.vta.errors import ProgramError
from relay.codegen.vta.isa import AnyInstruction, Load, Store

PAGE = 4096
DRAM_BYTES = 1 << 32
_NAME = re.compile(r"[^\s#]+")


class Role(enum.Enum):
    """The role of a buffer."""

    INPUT = "input"  # filled by the host before the stream runs
    OUTPUT = "output"  # read by the host afterwards
    CONSTANT = "constant"  # weights: part of the program
    MICRO_OPS = "micro-ops"  # part of the program
    SCRATCH = "scratch"  # between two parts of the stream


@attrs.frozen(eq=False)
class Buffer:
    """An array in DRAM. `data` is what it has before the stream runs; None: nothing yet."""

    name: str
    role: Role
    address: int
    shape: tuple[int, ...]
    dtype: np.dtype = attrs.field(converter=np.dtype)
    data: np.ndarray | None = attrs.field(default=None, repr=False)

    @property
    def size(self) -> int:
        """The number of bytes."""
        return math.prod(self.shape) * self.dtype.itemsize

    @property
    def end(self) -> int:
        """The first address after it."""
        return self.address + self.size

    def raw(self, array: np.ndarray) -> np.ndarray:
        """The bytes of an array, (size,) uint8. Raises ProgramError if it is not one for this buffer."""
        if array.shape != self.shape or array.dtype != self.dtype:
            raise ProgramError(
                f"the buffer {self.name} has {self.dtype} {self.shape}, found {array.dtype} {array.shape}"
            )
        little = np.ascontiguousarray(array, self.dtype.newbyteorder("<"))
        return little.reshape(-1).view(np.uint8)


def element_bytes(instruction: Load | Store, config: Config) -> int:
    """By which an instruction's address in DRAM counts."""
    return config.element_bytes(instruction.memory)


def _by_address(buffers: Iterable[Buffer]) -> tuple[Buffer, ...]:
    return tuple(sorted(buffers, key=lambda buffer: buffer.address))


@attrs.frozen
class Section:
    """A part of a stream, as a layer of a network: the instructions from `begin` to before `end`."""

    name: str
    begin: int
    end: int


def _sections(sections: Iterable[Section]) -> tuple[Section, ...]:
    return tuple(sections)


def _stream(instructions: Iterable[AnyInstruction]) -> tuple[AnyInstruction, ...]:
    return tuple(instructions)


@attrs.frozen(eq=False)
class Program:
    """A stream and its buffers; `sections` name its parts, if it has some. Raises ProgramError for buffers that overlap
    or lie outside DRAM, and for sections outside the stream."""

    config: Config
    instructions: tuple[AnyInstruction, ...] = attrs.field(converter=_stream, repr=False)
    buffers: tuple[Buffer, ...] = attrs.field(converter=_by_address)
    sections: tuple[Section, ...] = attrs.field(converter=_sections, default=())

    def __attrs_post_init__(self) -> None:
        for section in self.sections:
            if not 0 <= section.begin <= section.end <= len(self.instructions):
                raise ProgramError(
                    f"the section {section.name} has the instructions {section.begin} to {section.end} of "
                    f"{len(self.instructions)}"
                )
        names: set[str] = set()
        before: Buffer | None = None
        for buffer in self.buffers:
            if not _NAME.fullmatch(buffer.name):
                raise ProgramError(f"a buffer's name has no spaces and no `#`, found {buffer.name!r}")
            if buffer.name in names:
                raise ProgramError(f"there are two buffers {buffer.name}")
            names.add(buffer.name)
            if buffer.address < PAGE or buffer.end > DRAM_BYTES:
                raise ProgramError(
                    f"the buffer {buffer.name} lies at {buffer.address:#x} to {buffer.end:#x}, "
                    f"which is not in DRAM from {PAGE:#x} to {DRAM_BYTES:#x}"
                )
            if buffer.address % PAGE:
                raise ProgramError(
                    f"the buffer {buffer.name} lies at {buffer.address:#x}, which is not a multiple of {PAGE:#x}"
                )
            if before is not None and before.end > buffer.address:
                raise ProgramError(
                    f"the buffers {before.name} ({before.address:#x} to {before.end:#x}) and {buffer.name} "
                    f"({buffer.address:#x} to {buffer.end:#x}) overlap"
                )
            if buffer.data is not None:
                buffer.raw(buffer.data)
            before = buffer

    def __getitem__(self, name: str) -> Buffer:
        """The buffer of a name. Raises KeyError if there is none."""
        for buffer in self.buffers:
            if buffer.name == name:
                return buffer
        raise KeyError(name)

    def buffer_at(self, address: int) -> Buffer | None:
        """The buffer that an address lies in."""
        position = bisect.bisect_right(self.buffers, address, key=lambda b: b.address) - 1
        if position < 0 or self.buffers[position].end <= address:
            return None
        return self.buffers[position]

    def relocate(self, addresses: Mapping[str, int]) -> Program:
        """The same program with these buffers elsewhere: each instruction follows the buffer that its address is in.

        Raises ProgramError if an address is not a multiple of the elements that are moved from or to there.
        """
        unknown = sorted(set(addresses) - {buffer.name for buffer in self.buffers})
        if unknown:
            raise ProgramError(f"there is no buffer {unknown[0]}")
        moved = [attrs.evolve(b, address=addresses.get(b.name, b.address)) for b in self.buffers]
        distances = {
            buffer.name: addresses.get(buffer.name, buffer.address) - buffer.address for buffer in self.buffers
        }
        return Program(
            self.config, [self._move_instruction(i, distances) for i in self.instructions], moved, self.sections
        )

    def _move_instruction(self, instruction: AnyInstruction, distances: Mapping[str, int]) -> AnyInstruction:
        if not isinstance(instruction, Load | Store) or not instruction.x_size:
            return instruction
        size = element_bytes(instruction, self.config)
        buffer = self.buffer_at(instruction.dram * size)
        distance = distances[buffer.name] if buffer is not None else 0
        if not distance:
            return instruction
        if distance % size:
            assert buffer is not None
            raise ProgramError(
                f"the buffer {buffer.name} cannot move by {distance} bytes: "
                f"its elements of {size} bytes must stay at multiples of their size"
            )
        return attrs.evolve(instruction, dram=instruction.dram + distance // size)


class Allocator:
    """Allocates addresses of buffers, each at the start of a page, as the original simulator does. Elements that are
    larger than a page need an `alignment` of their size."""

    def __init__(self, first: int = PAGE, alignment: int = PAGE) -> None:
        self.buffers: list[Buffer] = []
        self._alignment = alignment
        self._next = -(-first // alignment) * alignment

    def add(
        self,
        name: str,
        role: Role,
        shape: Sequence[int] | None = None,
        dtype: object = np.int8,
        data: np.ndarray | None = None,
    ) -> Buffer:
        """The next buffer, with the shape and dtype of `data` if that is given."""
        if data is not None:
            shape, dtype = data.shape, data.dtype
        if shape is None:
            raise TypeError("a buffer needs a shape or data")
        buffer = Buffer(name, role, self._next, tuple(shape), np.dtype(dtype), data)  # type: ignore[call-overload]
        self._next += max(1, -(-buffer.size // self._alignment)) * self._alignment
        self.buffers.append(buffer)
        return buffer
