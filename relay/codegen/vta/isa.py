"""The instructions and micro-ops of the accelerator as values. `layout` has the bits of their fields."""

from __future__ import annotations

import enum
from typing import TypeAlias

import attrs

from relay.codegen.vta.layout import AluOp, Memory


class Queue(enum.IntEnum):
    """The three units. Each has a queue of instructions and runs them in order."""

    LOAD = 0
    COMPUTE = 1
    STORE = 2


@attrs.frozen(kw_only=True)
class Instruction:
    """The common part of all instructions: the tokens that they take before they run and post after it.

    `prev` is the unit upstream (load for compute, compute for store), `next` the one downstream.
    """

    pop_prev: bool = False
    pop_next: bool = False
    push_prev: bool = False
    push_next: bool = False

    @property
    def queue(self) -> Queue:
        """The unit that runs it."""
        return Queue.COMPUTE


@attrs.frozen(kw_only=True)
class Transfer(Instruction):
    """A rectangle of elements between DRAM and a scratchpad, where it is dense.

    `sram` and `dram` are addresses, `x_stride` the distance of rows in DRAM, all in elements of the memory. With
    `x_size` 0 nothing is moved, and only tokens are.
    """

    memory: Memory
    sram: int = 0
    dram: int = 0
    y_size: int = 1
    x_size: int = 0
    x_stride: int = 0
    y_pad_top: int = 0
    y_pad_bottom: int = 0
    x_pad_left: int = 0
    x_pad_right: int = 0

    @property
    def rows(self) -> int:
        """The height in the scratchpad, the padding included."""
        return self.y_pad_top + self.y_size + self.y_pad_bottom

    @property
    def columns(self) -> int:
        """The width in the scratchpad, the padding included."""
        return self.x_pad_left + self.x_size + self.x_pad_right

    @property
    def is_padded(self) -> bool:
        """True if there is a border of zeros."""
        return bool(self.y_pad_top or self.y_pad_bottom or self.x_pad_left or self.x_pad_right)


@attrs.frozen(kw_only=True)
class Load(Transfer):
    """DRAM to scratchpad, with a border of zeros."""

    @property
    def queue(self) -> Queue:
        """Activations and weights are loaded by the load unit, the rest by the compute unit."""
        return Queue.LOAD if self.memory in (Memory.INP, Memory.WGT) else Queue.COMPUTE


@attrs.frozen(kw_only=True)
class Store(Transfer):
    """Scratchpad to DRAM. There is no padding: the fields are there because the bits are."""

    memory: Memory = Memory.OUT

    @property
    def queue(self) -> Queue:
        """The store unit."""
        return Queue.STORE


@attrs.frozen(kw_only=True)
class Loop(Instruction):
    """Two affine loops around the micro-ops from `uop_begin` to before `uop_end`, the innermost ones.

    An index is that of the micro-op, plus the `_out` factor times the outer counter, plus the `_in` factor times the
    inner one.
    """

    uop_begin: int = 0
    uop_end: int = 1
    iter_out: int = 1
    iter_in: int = 1
    dst_out: int = 0
    dst_in: int = 0
    src_out: int = 0
    src_in: int = 0

    @property
    def steps(self) -> int:
        """The number of micro-ops that run."""
        return self.iter_out * self.iter_in * max(0, self.uop_end - self.uop_begin)


@attrs.frozen(kw_only=True)
class Gemm(Loop):
    """acc[dst] += inp[src] @ wgt[wgt].T, or acc[dst] = 0 with `reset`."""

    reset: bool = False
    wgt_out: int = 0
    wgt_in: int = 0


@attrs.frozen(kw_only=True)
class Alu(Loop):
    """acc[dst] = op(acc[dst], acc[src]), or op(acc[dst], imm) with `use_imm`."""

    op: AluOp
    use_imm: bool = False
    imm: int = 0
    reset: bool = False  # a bit that all implementations ignore


@attrs.frozen(kw_only=True)
class Finish(Instruction):
    """The end of the stream: sets the bit that the host waits for."""


AnyInstruction: TypeAlias = Load | Store | Gemm | Alu | Finish


@attrs.frozen
class MicroOp:
    """Rows of the scratchpads: `dst` of ACC; `src` of INP for GEMM, of ACC for ALU; `wgt` of WGT, 0 for ALU."""

    dst: int
    src: int = 0
    wgt: int = 0


def no_op(
    queue: Queue, *, pop_prev: bool = False, pop_next: bool = False, push_prev: bool = False, push_next: bool = False
) -> AnyInstruction:
    """An instruction that only takes and posts tokens: a transfer of nothing."""
    memory = {Queue.LOAD: Memory.INP, Queue.COMPUTE: Memory.UOP, Queue.STORE: Memory.OUT}[queue]
    transfer = Store if queue is Queue.STORE else Load
    return transfer(
        memory=memory, y_size=0, pop_prev=pop_prev, pop_next=pop_next, push_prev=push_prev, push_next=push_next
    )
