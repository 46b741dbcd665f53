"""The memories: scratchpads and DRAM, with what has been written of them."""

from __future__ import annotations

import enum
from collections.abc import Mapping

import attrs
import numpy as np

from relay.codegen.vta.config import Config
from relay.codegen.vta.errors import ProgramError
from relay.codegen.vta.layout import Memory
from relay.codegen.vta.program import Buffer, Program

Array = np.ndarray


class Writer(enum.IntEnum):
    """The last writer of a row of accumulators."""

    NOTHING = 0
    LOAD = 1
    RESET = 2
    RESULT = 3  # the ALU, or GEMM without reset: these write the output buffer of the hardware, too

    @property
    def words(self) -> str:
        """As messages say it."""
        return {Writer.NOTHING: "nothing", Writer.LOAD: "a load", Writer.RESET: "a reset"}.get(self, "a result")


class Scratchpads:
    """The scratchpads. Activations and weights are kept as floats in which their products are exact."""

    def __init__(self, config: Config) -> None:
        bits = (1 << config.log_inp_width) + (1 << config.log_wgt_width) - 2 + config.log_block
        exact = np.float32 if bits <= 24 else np.float64
        depth = config.depth
        self.inp = np.zeros((depth(Memory.INP), *config.element_shape(Memory.INP)), exact)
        self.wgt = np.zeros((depth(Memory.WGT), *config.element_shape(Memory.WGT)), exact)  # [in][out]
        self.acc = np.zeros((depth(Memory.ACC), *config.element_shape(Memory.ACC)), config.dtype(Memory.ACC))
        self.uop = np.zeros(depth(Memory.UOP), np.uint32)
        self.written = {m: np.zeros(depth(m), bool) for m in (Memory.UOP, Memory.WGT, Memory.INP)}
        self.writer = np.zeros(depth(Memory.ACC), np.int8)

    def fill(self, memory: Memory, start: int, values: Array) -> None:
        """Write consecutive elements, which come as they are in DRAM."""
        where = slice(start, start + len(values))
        match memory:
            case Memory.UOP:
                self.uop[where] = values
            case Memory.WGT:
                self.wgt[where] = values.transpose(0, 2, 1)
            case Memory.INP:
                self.inp[where] = values
            case _:
                self.acc[where] = values
                self.writer[where] = Writer.LOAD
                return
        self.written[memory][where] = True


@attrs.frozen(eq=False)
class Region:
    """A buffer while the stream runs: its bytes, and which granules of them have been written."""

    buffer: Buffer
    data: Array
    written: Array
    number: int

    def elements(self, offset: int, size: int) -> Array:
        """The bytes from an offset on as elements, (n, size) uint8."""
        whole = (len(self.data) - offset) // size
        return self.data[offset : offset + whole * size].reshape(whole, size)


class Dram:
    """The buffers of a program, with their contents."""

    def __init__(self, program: Program, inputs: Mapping[str, Array]) -> None:
        self.program = program
        self.granule = min(program.config.element_bytes(memory) for memory in Memory)
        for name in inputs:
            if name not in {buffer.name for buffer in program.buffers}:
                raise ProgramError(f"there is no buffer {name}")
        self.regions = tuple(
            self._region(number, buffer, inputs.get(buffer.name, buffer.data))
            for number, buffer in enumerate(program.buffers)
        )
        self._by_name = {region.buffer.name: region for region in self.regions}
        self._numbers = {id(region.buffer): region for region in self.regions}

    def _region(self, number: int, buffer: Buffer, values: Array | None) -> Region:
        data = np.zeros(buffer.size, np.uint8)
        if values is not None:
            data[:] = buffer.raw(np.asarray(values))
        granules = -(-buffer.size // self.granule)
        written = np.zeros(granules, bool) if values is None else np.ones(granules, bool)
        return Region(buffer, data, written, number)

    def at(self, address: int) -> Region | None:
        """The buffer that an address lies in."""
        buffer = self.program.buffer_at(address)
        return None if buffer is None else self._numbers[id(buffer)]

    def array(self, name: str) -> Array:
        """The content of a buffer."""
        region = self._by_name[name]
        little = region.buffer.dtype.newbyteorder("<")
        return region.data.view(little).reshape(region.buffer.shape).astype(region.buffer.dtype)
