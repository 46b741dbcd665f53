"""The configuration of the accelerator: sizes as powers of two, and what follows from them.

A scratchpad holds `depth(memory)` elements, each the row that one address names:

    UOP   one micro-op
    WGT   (block, block) weights, [output channel][input channel]
    INP   (batch, block) activations
    ACC   (batch, block) accumulators
    OUT   (batch, block) results, the low bits of accumulators
    ACC8  (batch, block) activations in DRAM that are accumulators in the scratchpad
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

import attrs
import numpy as np

from relay.codegen.vta.errors import ConfigurationError
from relay.codegen.vta.layout import INSTRUCTION_BITS, MICRO_OP_BITS, Depths, Layouts, Memory, layouts

HARDWARE_VERSION = "0.0.2"
MICRO_OP_BYTES = MICRO_OP_BITS // 8
INSTRUCTION_BYTES = INSTRUCTION_BITS // 8

_FIELDS: Mapping[str, range] = {
    "log_inp_width": range(3, 5),
    "log_wgt_width": range(3, 5),
    "log_acc_width": range(4, 6),
    "log_batch": range(17),
    "log_block": range(17),
    "log_uop_buffer": range(33),
    "log_inp_buffer": range(33),
    "log_wgt_buffer": range(33),
    "log_acc_buffer": range(33),
}
"""The allowed values of each logarithm. Elements narrower than a byte are packed differently by each implementation."""


@attrs.frozen(slots=False)
class Config:
    """Logarithms to base 2: widths in bits, buffers in bytes. The defaults are those of all sample configurations.

    Raises ConfigurationError for what is not a configuration, and for one whose instructions do not fit 128 bits or
    whose micro-ops do not fit 32.
    """

    log_inp_width: int = 3
    log_wgt_width: int = 3
    log_acc_width: int = 5
    log_batch: int = 0
    log_block: int = 4
    log_uop_buffer: int = 15
    log_inp_buffer: int = 15
    log_wgt_buffer: int = 18
    log_acc_buffer: int = 17

    def __attrs_post_init__(self) -> None:
        for name, values in _FIELDS.items():
            value = getattr(self, name)
            if type(value) is not int or value not in values:
                raise ConfigurationError(f"{name} is {values.start} to {values.stop - 1}, found {value!r}")
        if self.log_acc_width < self.log_inp_width:
            raise ConfigurationError(
                f"accumulators of {1 << self.log_acc_width} bits are narrower than the results of "
                f"{1 << self.log_inp_width} bits that are taken from them"
            )
        for memory in (Memory.UOP, Memory.WGT, Memory.INP, Memory.ACC):
            if self.log_depth(memory) < 1:
                raise ConfigurationError(
                    f"the {memory.name} buffer of {1 << getattr(self, f'log_{memory.name.lower()}_buffer')} bytes has "
                    f"no two elements of {self.element_bytes(memory)} bytes"
                )
        _ = self.layouts  # which refuses what cannot be encoded

    @cached_property
    def layouts(self) -> Layouts:
        """The bits of the fields of its instructions and micro-ops."""
        uop, wgt, inp, acc = (self.log_depth(m) for m in (Memory.UOP, Memory.WGT, Memory.INP, Memory.ACC))
        return layouts(Depths(uop, wgt, inp, acc))

    @property
    def batch(self) -> int:
        """The number of rows of a tensor."""
        return 1 << self.log_batch

    @property
    def block(self) -> int:
        """The number of input channels, and of output channels, of a matrix product."""
        return 1 << self.log_block

    @property
    def log_out_buffer(self) -> int:
        """The size of the output buffer, which has as many elements as there are accumulators."""
        return self.log_acc_buffer + self.log_inp_width - self.log_acc_width

    def _log_bits(self, memory: Memory) -> int:
        """The size of an element."""
        tensor = self.log_batch + self.log_block
        match memory:
            case Memory.UOP:
                return MICRO_OP_BYTES.bit_length() - 1 + 3
            case Memory.WGT:
                return self.log_wgt_width + 2 * self.log_block
            case Memory.INP | Memory.OUT | Memory.ACC8:
                return self.log_inp_width + tensor
            case Memory.ACC:
                return self.log_acc_width + tensor

    def log_depth(self, memory: Memory) -> int:
        """The width of an index into a scratchpad, in bits."""
        match memory:
            case Memory.OUT | Memory.ACC8:
                return self.log_depth(Memory.ACC)
            case _:
                size: int = getattr(self, f"log_{memory.name.lower()}_buffer")
                return size + 3 - self._log_bits(memory)

    def depth(self, memory: Memory) -> int:
        """The number of elements of a scratchpad."""
        return 1 << self.log_depth(memory)

    def element_bytes(self, memory: Memory) -> int:
        """The size of an element in DRAM, by which the addresses in instructions count."""
        return max(1, 1 << (self._log_bits(memory) - 3))

    def element_shape(self, memory: Memory) -> tuple[int, ...]:
        """The shape of an element."""
        match memory:
            case Memory.UOP:
                return ()
            case Memory.WGT:
                return (self.block, self.block)
            case _:
                return (self.batch, self.block)

    def dtype(self, memory: Memory) -> np.dtype:
        """The dtype of an element's numbers in DRAM."""
        match memory:
            case Memory.UOP:
                return np.dtype("<u4")
            case Memory.WGT:
                return np.dtype(f"<i{1 << (self.log_wgt_width - 3)}")
            case Memory.INP | Memory.OUT | Memory.ACC8:
                return np.dtype(f"<i{1 << (self.log_inp_width - 3)}")
            case Memory.ACC:
                return np.dtype(f"<i{1 << (self.log_acc_width - 3)}")


DEFAULT = Config()
