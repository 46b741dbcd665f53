"""A stream: instructions with tokens, micro-ops, and the places where addresses of buffers are added.

Each unit runs its own instructions in order. Where one has to wait for another is given where the stream is written, as
`wait` and `signal`; the builder puts the flags on the instructions next to that place.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

import attrs
import numpy as np

from relay.codegen.vta.config import DEFAULT, Config
from relay.codegen.vta.isa import Alu, AnyInstruction, Finish, Gemm, Load, MicroOp, Queue, Store, no_op
from relay.codegen.vta.layout import Memory

UOPS = "uop"
"""The name of the buffer with the micro-ops."""

UopList: TypeAlias = tuple[tuple[int, int, int], ...]
PORTABLE_UOPS = 2048
"""The micro-ops that all designs have room for."""


@attrs.frozen
class Stream:
    """The instructions that the accelerator runs. Addresses in DRAM count from the beginning of the buffer with the
    name in `buffers`, for each instruction; None for those that read and write none."""

    instructions: tuple[AnyInstruction, ...]
    buffers: tuple[str | None, ...]
    uops: tuple[MicroOp, ...]
    sections: tuple[int, ...] = (0,)
    """The starts of its layers."""

    def at(self, bases: Mapping[str, int], config: Config = DEFAULT) -> list[AnyInstruction]:
        """The instructions with buffers at these addresses, in bytes, which are multiples of the elements' sizes."""
        found: list[AnyInstruction] = []
        for instruction, name in zip(self.instructions, self.buffers, strict=True):
            if name is None:
                found.append(instruction)
                continue
            assert isinstance(instruction, Load | Store)
            base, left = divmod(bases[name], config.element_bytes(instruction.memory))
            if left:
                raise ValueError(f"the buffer {name} is not aligned to an element of {instruction.memory.name}")
            found.append(attrs.evolve(instruction, dram=instruction.dram + base))
        return found

    @property
    def multiplications(self) -> int:
        """The steps of GEMM that multiply."""
        return sum(i.steps for i in self.instructions if isinstance(i, Gemm) and not i.reset)


_PUSH = {
    (Queue.LOAD, Queue.COMPUTE): "push_next",
    (Queue.COMPUTE, Queue.LOAD): "push_prev",
    (Queue.COMPUTE, Queue.STORE): "push_next",
    (Queue.STORE, Queue.COMPUTE): "push_prev",
}
_POP = {
    (Queue.LOAD, Queue.COMPUTE): "pop_prev",
    (Queue.COMPUTE, Queue.LOAD): "pop_next",
    (Queue.COMPUTE, Queue.STORE): "pop_prev",
    (Queue.STORE, Queue.COMPUTE): "pop_next",
}


class StreamBuilder:
    """Writes a stream. `config` has the limits."""

    def __init__(self, config: Config = DEFAULT) -> None:
        self.config = config
        self.room = min(config.depth(Memory.UOP), PORTABLE_UOPS)
        self._out: list[AnyInstruction | _UopPlace] = []
        self._sections: list[int] = []
        self._names: Mapping[str, str] = {}
        self._buffers: list[str | None] = []
        self._last: dict[Queue, int] = {}
        self._weights = 0, 0  # the elements of the scratchpad that the section uses
        self._waits: dict[Queue, dict[str, bool]] = {queue: {} for queue in Queue}
        self._lists: dict[UopList, int] = {}  # where they begin in the buffer
        self._uops: list[MicroOp] = []

    def place_weights(self, count: int) -> tuple[int, bool]:
        """The first of this many elements of the scratchpad of weights for the next section, and True if the section
        before does not use them. Sections take the room after those of the one before, or else in front of it."""
        first, end = self._weights
        is_behind = end + count <= self.config.depth(Memory.WGT)
        start = end if is_behind else 0
        self._weights = start, start + count
        return start, is_behind or count <= first

    def begin(self, names: Mapping[str, str] | None = None, early: Iterable[tuple[Load, str]] = ()) -> None:
        """Begin a section, as a layer is: the units wait until what comes before it is done and stored, but for the
        loads `early`, which go where nothing is read any more, from buffers that nothing stores to. `names` are those
        of the buffers in the stream, by those in the section."""
        self._sections.append(len(self._out))
        self._names = names or {}
        is_first = not self._out
        for instruction, buffer in early:
            self.emit(instruction, buffer)
        if not is_first:
            self.signal(Queue.STORE, Queue.COMPUTE)
            self.wait(Queue.COMPUTE, Queue.STORE)
            self.emit(no_op(Queue.COMPUTE))
            self.signal(Queue.COMPUTE, Queue.LOAD)
            self.wait(Queue.LOAD, Queue.COMPUTE)

    def emit(self, instruction: AnyInstruction, buffer: str | None = None) -> None:
        """Append an instruction, with the tokens that its unit waits for."""
        queue = instruction.queue
        waits = self._waits[queue]
        if waits:
            instruction = _with_tokens(instruction, waits)
            self._waits[queue] = {}
        self._last[queue] = len(self._out)
        self._out.append(instruction)
        self._buffers.append(None if buffer is None else self._names.get(buffer, buffer))

    def loop(self, instruction: Gemm | Alu, uops: UopList) -> None:
        """Append a GEMM or ALU instruction that runs these micro-ops."""
        start = self._lists.get(uops)
        if start is None:
            start = self._lists[uops] = len(self._uops)
            self._uops += [MicroOp(*uop) for uop in uops]
            if len(uops) % 2:  # so that all lists begin at even places, as the first Chisel design needs them
                self._uops.append(MicroOp(0))
        self._out.append(_UopPlace(start, start + len(uops) + len(uops) % 2))
        self._buffers.append(None)
        self.emit(attrs.evolve(instruction, uop_begin=start, uop_end=start + len(uops)))

    def wait(self, queue: Queue, other: Queue) -> None:
        """The next instruction of one unit takes a token of another one."""
        flag = _POP[other, queue]
        if flag in self._waits[queue]:
            self.emit(no_op(queue))
        self._waits[queue][flag] = True

    def signal(self, queue: Queue, other: Queue) -> None:
        """Post a token for another unit when everything that a unit has been given so far has finished."""
        flag = _PUSH[queue, other]
        at = self._last.get(queue)
        if at is None or self._waits[queue] or getattr(self._out[at], flag):
            self.emit(no_op(queue))
            at = self._last[queue]
        instruction = self._out[at]
        assert not isinstance(instruction, _UopPlace)
        self._out[at] = _with_tokens(instruction, {flag: True})

    def finish(self) -> Stream:
        """The stream, with FINISH when all units are done."""
        self._join()
        self.emit(Finish())
        return self._stream_with_loads()

    def _join(self) -> None:
        """The compute unit waits for both others."""
        for queue in (Queue.LOAD, Queue.STORE):
            self.signal(queue, Queue.COMPUTE)
            self.wait(Queue.COMPUTE, queue)
        self.emit(no_op(Queue.COMPUTE))

    # ---- micro-ops

    def _stream_with_loads(self) -> Stream:
        """The stream with loads of its micro-ops: at the beginning of a section, if there is room for all of them,
        otherwise where they are needed; and only of those that are not there."""
        cache = _UopCache(self.room)
        instructions: list[AnyInstruction] = []
        buffers: list[str | None] = []
        starts: list[int] = []
        moved = 0

        def load_uops(loads: Iterable[tuple[int, int, int]]) -> None:
            for address, begin, size in loads:
                instructions.append(_uop_load(address, begin, size))
                buffers.append(UOPS)

        ends = [*self._sections[1:], len(self._out)]
        for start, end in zip(self._sections or [0], ends, strict=True):
            starts.append(len(instructions))
            lists = dict.fromkeys(item for item in self._out[start:end] if isinstance(item, _UopPlace))
            load_uops(cache.place_all(list(lists)))
            for item, buffer in zip(self._out[start:end], self._buffers[start:end], strict=True):
                if isinstance(item, _UopPlace):
                    load_uops(cache.place_all([item]))
                    moved = cache.address(item) - item.begin
                    continue
                if moved and isinstance(item, Gemm | Alu):
                    item = attrs.evolve(item, uop_begin=item.uop_begin + moved, uop_end=item.uop_end + moved)
                instructions.append(item)
                buffers.append(buffer)
        return Stream(tuple(instructions), tuple(buffers), tuple(self._uops), tuple(starts))


def _with_tokens(instruction: AnyInstruction, flags: Mapping[str, bool]) -> AnyInstruction:
    made: AnyInstruction = attrs.evolve(instruction, **flags)  # type: ignore[arg-type]
    return made


@attrs.frozen
class _UopPlace:
    """The next instruction needs these micro-ops of the buffer."""

    begin: int
    end: int


class _UopCache:
    """The lists of micro-ops in the scratchpad; when it is full, it starts again."""

    def __init__(self, room: int) -> None:
        self.room = room
        self._known: dict[int, int] = {}
        self._top = 0

    def address(self, uops: _UopPlace) -> int:
        """The address of a list."""
        return self._known[uops.begin]

    def place_all(self, lists: Sequence[_UopPlace]) -> list[tuple[int, int, int]]:
        """Put lists in the scratchpad at once: the necessary loads, each with source, target and length. None if
        there is no room for all of them."""
        missing = [uops for uops in lists if uops.begin not in self._known]
        if not missing or sum(uops.end - uops.begin for uops in lists) > self.room:
            return []
        if self._top + sum(uops.end - uops.begin for uops in missing) > self.room:
            self._known, self._top, missing = {}, 0, list(lists)
        loads: list[tuple[int, int, int]] = []
        for uops in missing:
            size = uops.end - uops.begin
            if loads and loads[-1][1] + loads[-1][2] == uops.begin:  # it goes on where the last one ends
                address, begin, before = loads[-1]
                loads[-1] = (address, begin, before + size)
            else:
                loads.append((self._top, uops.begin, size))
            self._known[uops.begin] = self._top
            self._top += size
        return loads


def _uop_load(address: int, begin: int, size: int) -> Load:
    return Load(memory=Memory.UOP, sram=address, dram=begin, x_size=size, x_stride=size)


# ---- transfers


@attrs.frozen
class Rectangle:
    """Rows of a tensor in DRAM that one transfer moves, and their place in the scratchpad from its beginning."""

    dram: int
    sram: int
    y_size: int
    x_size: int
    x_stride: int


_LARGEST = (1 << 16) - 1


def rectangles(axes: Sequence[tuple[int, int]], offset: int = 0, sram: int = 0) -> list[Rectangle]:
    """The transfers that move a part of a tensor: for each of its axes, outermost first, how far elements are apart and
    how many there are. The part is dense in the scratchpad."""
    rest: list[tuple[int, int]] = []
    for stride, size in axes:
        if size == 1:
            continue
        if rest and rest[-1][0] == stride * size and rest[-1][1] * size <= _LARGEST:
            rest[-1] = (stride, rest[-1][1] * size)
        else:
            rest.append((stride, size))
    if not rest or rest[-1][0] != 1:
        rest.append((1, 1))
    rows = rest[-2] if len(rest) > 1 and rest[-2][0] <= _LARGEST else (rest[-1][1], 1)
    outer = rest[:-2] if len(rest) > 1 and rows is rest[-2] else rest[:-1]
    (stride, height), (_, width) = rows, rest[-1]
    found: list[Rectangle] = []
    for point in np.ndindex(*(size for _, size in outer)):
        start = offset + sum(n * s for n, (s, _) in zip(point, outer, strict=True))
        found.append(Rectangle(start, sram + len(found) * height * width, height, width, min(stride, _LARGEST)))
    return found


@attrs.frozen
class Border:
    """Zeros around a rectangle in the scratchpad."""

    top: int = 0
    bottom: int = 0
    left: int = 0
    right: int = 0


NO_BORDER = Border()


def load(memory: Memory, r: Rectangle, border: Border = NO_BORDER) -> Load:
    """The load of a rectangle."""
    return Load(
        memory=memory, sram=r.sram, dram=r.dram, y_size=r.y_size, x_size=r.x_size, x_stride=r.x_stride,
        y_pad_top=border.top, y_pad_bottom=border.bottom, x_pad_left=border.left, x_pad_right=border.right,
    )  # fmt: skip


def store(r: Rectangle) -> Store:
    """The store of a rectangle."""
    return Store(sram=r.sram, dram=r.dram, y_size=r.y_size, x_size=r.x_size, x_stride=r.x_stride)


__all__ = [
    "NO_BORDER",
    "PORTABLE_UOPS",
    "UOPS",
    "Border",
    "Rectangle",
    "Stream",
    "StreamBuilder",
    "load",
    "rectangles",
    "store",
]
