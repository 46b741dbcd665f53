"""Layout of instructions and micro-ops: the bits of their fields, and the codes in them.

An instruction has 128 bits, little-endian: bit 0 is the lowest of byte 0. The fields follow each other as bit fields of
64-bit words do in C: one that would cross bit 64 begins there. A micro-op has 32 bits.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping

import attrs

from relay.codegen.vta.errors import ConfigurationError

INSTRUCTION_BITS = 128
MICRO_OP_BITS = 32
_WORD = 64


class Opcode(enum.IntEnum):
    """The kind of an instruction."""

    LOAD = 0
    STORE = 1
    GEMM = 2
    FINISH = 3
    ALU = 4


class Memory(enum.IntEnum):
    """The memories."""

    UOP = 0
    WGT = 1
    INP = 2
    ACC = 3
    OUT = 4
    ACC8 = 5


class AluOp(enum.IntEnum):
    """The operation of the ALU. There are no others: a copy is SHR by 0, a left shift is SHR by a negative number."""

    MIN = 0
    MAX = 1
    ADD = 2
    SHR = 3
    MUL = 4


@attrs.frozen
class Field:
    """A field: `width` bits from bit `low`, a two's complement if it is signed."""

    name: str
    low: int
    width: int
    signed: bool = False

    @property
    def highest_bit(self) -> int:
        """The highest bit."""
        return self.low + self.width - 1

    @property
    def minimum(self) -> int:
        """The lowest value that fits."""
        return -(1 << (self.width - 1)) if self.signed else 0

    @property
    def maximum(self) -> int:
        """The highest value that fits."""
        return (1 << (self.width - self.signed)) - 1


_Widths = Iterable[tuple[str, int]]

_TOKENS = (("opcode", 3), ("pop_prev", 1), ("pop_next", 1), ("push_prev", 1), ("push_next", 1))
_TRANSFER = (
    *(("memory", 3), ("sram", 16), ("dram", 32)),
    *(("y_size", 16), ("x_size", 16), ("x_stride", 16)),
    *(("y_pad_top", 4), ("y_pad_bottom", 4), ("x_pad_left", 4), ("x_pad_right", 4)),
)
_SIGNED = frozenset({"imm"})


@attrs.frozen
class Depths:
    """The widths of indices into the scratchpads, in bits."""

    uop: int
    wgt: int
    inp: int
    acc: int


@attrs.frozen
class Layouts:
    """The fields of each kind of instruction, and of a micro-op."""

    instructions: Mapping[Opcode, tuple[Field, ...]]
    micro_op: tuple[Field, ...]


def layouts(depths: Depths) -> Layouts:
    """The fields for scratchpads of these depths. Raises ConfigurationError if they do not fit."""
    loop = (("reset", 1), ("uop_begin", depths.uop), ("uop_end", depths.uop + 1), ("iter_out", 14), ("iter_in", 14))
    dst = (("dst_out", depths.acc), ("dst_in", depths.acc))
    gemm = (("src_out", depths.inp), ("src_in", depths.inp), ("wgt_out", depths.wgt), ("wgt_in", depths.wgt))
    alu = (("src_out", depths.acc), ("src_in", depths.acc), ("op", 3), ("use_imm", 1), ("imm", 16))
    widths: Mapping[Opcode, _Widths] = {
        Opcode.LOAD: _TRANSFER,
        Opcode.STORE: _TRANSFER,
        Opcode.GEMM: (*loop, *dst, *gemm),
        Opcode.FINISH: (),
        Opcode.ALU: (*loop, *dst, *alu),
    }
    micro_op = (("dst", depths.acc), ("src", max(depths.acc, depths.inp)), ("wgt", depths.wgt))
    return Layouts(
        {o: _place(o.name, (*_TOKENS, *fields), INSTRUCTION_BITS) for o, fields in widths.items()},
        _place("micro-op", micro_op, MICRO_OP_BITS),
    )


def _place(what: str, widths: _Widths, bits: int) -> tuple[Field, ...]:
    """Fields one after the other, none across bit 64."""
    fields: list[Field] = []
    low = 0
    for name, width in widths:
        if low // _WORD != (low + width - 1) // _WORD:
            low = -(-low // _WORD) * _WORD
        fields.append(Field(name, low, width, name in _SIGNED))
        low += width
    if low > bits:
        overflowing = ", ".join(f"{f.name} [{f.highest_bit}:{f.low}]" for f in fields if f.highest_bit >= bits)
        raise ConfigurationError(
            f"the fields of a {what} of this configuration do not fit {bits} bits: {overflowing}",
            help="make a buffer smaller, or a block or batch larger, so that there are fewer elements to address",
        )
    return tuple(fields)
