"""A slow, literal simulator of the accelerator: straight loops in plain integers, on dictionaries of memory.

It takes the units in any order that their tokens allow, as `choose` says, and checks nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from relay.codegen.vta.encoding import decode_micro_ops
from relay.codegen.vta.isa import Alu, AnyInstruction, Finish, Gemm, Load, Queue, Store
from relay.codegen.vta.layout import AluOp, Memory
from relay.codegen.vta.program import Program


def wrap(value: int, bits: int) -> int:
    """The low bits of a number, as a two's complement."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


class Reference:
    """The machine. `dram` has a byte for each address."""

    def __init__(self, program: Program, inputs: Mapping[str, np.ndarray]) -> None:
        self.config = program.config
        self.program = program
        self.dram: dict[int, int] = {}
        for buffer in program.buffers:
            values = inputs.get(buffer.name, buffer.data)
            raw = bytes(buffer.size) if values is None else values.astype(buffer.dtype.newbyteorder("<")).tobytes()
            self.dram.update(zip(range(buffer.address, buffer.end), raw, strict=True))
        self.inp: dict[int, list[int]] = {}
        self.wgt: dict[int, list[int]] = {}
        self.acc: dict[int, list[int]] = {}
        self.uop: dict[int, int] = {}

    def run(self, choose: Callable[[Sequence[Queue]], Queue]) -> bool:
        """Run the stream; whether it comes to its end."""
        queues = {q: [i for i in self.program.instructions if i.queue is q] for q in Queue}
        tokens = {"l2g": 0, "g2l": 0, "g2s": 0, "s2g": 0}
        names = {
            Queue.LOAD: {"pop_next": "g2l", "push_next": "l2g"},
            Queue.COMPUTE: {"pop_prev": "l2g", "pop_next": "s2g", "push_prev": "g2l", "push_next": "g2s"},
            Queue.STORE: {"pop_prev": "g2s", "push_prev": "s2g"},
        }
        while any(queues.values()):
            ready = []
            for queue, waiting in queues.items():
                flags = names[queue].items()
                if waiting and all(
                    tokens[t] > 0 for flag, t in flags if flag.startswith("pop") and getattr(waiting[0], flag)
                ):
                    ready.append(queue)
            if not ready:
                return False
            queue = choose(ready)
            instruction = queues[queue].pop(0)
            for flag, token in names[queue].items():
                if flag.startswith("pop") and getattr(instruction, flag):
                    tokens[token] -= 1
            self.execute(instruction)
            for flag, token in names[queue].items():
                if flag.startswith("push") and getattr(instruction, flag):
                    tokens[token] += 1
        return True

    def execute(self, instruction: AnyInstruction) -> None:
        """Run one instruction."""
        match instruction:
            case Load():
                self.load(instruction)
            case Store():
                self.store(instruction)
            case Gemm() | Alu():
                self.loop(instruction)
            case Finish():
                pass

    def numbers(self, address: int, count: int, dtype: np.dtype) -> list[int]:
        """Numbers in DRAM."""
        raw = bytes(self.dram[a] for a in range(address, address + count * dtype.itemsize))
        return [int(v) for v in np.frombuffer(raw, dtype)]

    def load(self, load: Load) -> None:
        """DRAM to scratchpad, zeros around."""
        if load.x_size == 0:
            return
        config = self.config
        lanes = int(np.prod(config.element_shape(load.memory), dtype=int))
        size = config.element_bytes(load.memory)
        pads = {Memory.INP: self.inp, Memory.WGT: self.wgt, Memory.ACC: self.acc, Memory.ACC8: self.acc}
        row = load.sram
        for y in range(load.y_pad_top + load.y_size + load.y_pad_bottom):
            for x in range(load.x_pad_left + load.x_size + load.x_pad_right):
                r, c = y - load.y_pad_top, x - load.x_pad_left
                inside = 0 <= r < load.y_size and 0 <= c < load.x_size
                values = [0] * lanes
                if inside:
                    address = (load.dram + r * load.x_stride + c) * size
                    values = self.numbers(address, lanes, config.dtype(load.memory))
                if load.memory is Memory.UOP:
                    self.uop[row] = values[0]
                else:
                    pads[load.memory][row] = values
                row += 1

    def store(self, store: Store) -> None:
        """The low bits of accumulators to DRAM."""
        dtype = self.config.dtype(Memory.OUT)
        lanes = self.config.batch * self.config.block
        for y in range(store.y_size):
            for x in range(store.x_size):
                address = (store.dram + y * store.x_stride + x) * self.config.element_bytes(Memory.OUT)
                row = self.acc.get(store.sram + y * store.x_size + x, [0] * lanes)
                for lane, value in enumerate(row):
                    raw = (value & (1 << 8 * dtype.itemsize) - 1).to_bytes(dtype.itemsize, "little")
                    for offset, byte in enumerate(raw):
                        self.dram[address + lane * dtype.itemsize + offset] = byte

    def loop(self, loop: Gemm | Alu) -> None:
        """GEMM and ALU, step by step."""
        for o in range(loop.iter_out):
            for i in range(loop.iter_in):
                for u in range(loop.uop_begin, loop.uop_end):
                    word = np.array([self.uop.get(u, 0)], np.uint32)
                    dst, src, wgt = (int(v) for v in decode_micro_ops(word, self.config)[0])
                    dst += o * loop.dst_out + i * loop.dst_in
                    src += o * loop.src_out + i * loop.src_in
                    if isinstance(loop, Gemm):
                        self.gemm(loop, dst, src, wgt + o * loop.wgt_out + i * loop.wgt_in)
                    else:
                        self.alu(loop, dst, src)

    def gemm(self, gemm: Gemm, dst: int, src: int, wgt: int) -> None:
        """One matrix product."""
        batch, block = self.config.batch, self.config.block
        zeros = [0] * (batch * block)
        acc = list(self.acc.get(dst, zeros))
        if gemm.reset:
            self.acc[dst] = zeros
            return
        inp, weights = self.inp.get(src, zeros), self.wgt.get(wgt, [0] * (block * block))
        for b in range(batch):
            for n in range(block):
                total = acc[b * block + n]
                for k in range(block):
                    total += inp[b * block + k] * weights[n * block + k]
                acc[b * block + n] = wrap(total, 1 << self.config.log_acc_width)
        self.acc[dst] = acc

    def alu(self, alu: Alu, dst: int, src: int) -> None:
        """One row of the ALU."""
        zeros = [0] * (self.config.batch * self.config.block)
        left = self.acc.get(dst, zeros)
        right = [alu.imm] * len(left) if alu.use_imm else self.acc.get(src, zeros)
        result = [operate(alu.op, x, y) for x, y in zip(left, right, strict=True)]
        self.acc[dst] = [wrap(value, 1 << self.config.log_acc_width) for value in result]

    def contents(self) -> dict[str, bytes]:
        """The buffers."""
        return {b.name: bytes(self.dram[a] for a in range(b.address, b.end)) for b in self.program.buffers}


def operate(op: AluOp, x: int, y: int) -> int:
    """What the ALU computes."""
    match op:
        case AluOp.MIN:
            return min(x, y)
        case AluOp.MAX:
            return max(x, y)
        case AluOp.ADD:
            return x + y
        case AluOp.MUL:
            return x * y
        case AluOp.SHR:
            return x >> y if y >= 0 else x << -y
