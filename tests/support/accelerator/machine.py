"""A second simulator of the accelerator, which shares nothing with Relay's: it reads a program's folder by itself, and
takes the fields of instructions out of their bits by the numbers of the hardware's documents.

It runs the units one after the other as far as their tokens allow, and checks nothing.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Mapping
from pathlib import Path

import numpy as np

LOAD, STORE, GEMM, FINISH, ALU = range(5)
UOP, WGT, INP, ACC, OUT, ACC8 = range(6)
Places = dict[str, tuple[int, int]]


def places(*widths: tuple[str, int]) -> Places:
    """The highest and the lowest bit of each field: one after the other, none across bit 64."""
    found, low = {}, 0
    for name, width in widths:
        if low < 64 < low + width:
            low = 64
        found[name] = (low + width - 1, low)
        low += width
    assert low <= 128
    return found


def bits(word: int, high: int, low: int) -> int:
    """A field."""
    return word >> low & ((1 << (high - low + 1)) - 1)


class Machine:
    """The memories, and what is left of the stream."""

    def __init__(self, folder: Path, inputs: Mapping[str, np.ndarray]) -> None:
        self.manifest = json.loads((folder / "manifest.json").read_text())
        self.configure(self.manifest["config"])
        self.dram = np.zeros(max(b["address"] + b["size"] for b in self.manifest["buffers"]) + 4096, np.uint8)
        self.buffers = {b["name"]: b for b in self.manifest["buffers"]}
        for name, b in self.buffers.items():
            if b["file"] is not None:
                raw = (folder / b["file"]).read_bytes()[b["offset"] : b["offset"] + b["size"]]
            else:
                raw = inputs[name].tobytes() if name in inputs else bytes(b["size"])
            self.dram[b["address"] : b["address"] + b["size"]] = np.frombuffer(raw, np.uint8)
        stream = (folder / "instructions.bin").read_bytes()
        words = [int.from_bytes(stream[n : n + 16], "little") for n in range(0, len(stream), 16)]
        assert len(words) == self.manifest["instructions"]
        self.queues: tuple[deque[int], ...] = (deque(), deque(), deque())
        for word in words:
            self.queues[self.queue(word)].append(word)
        self.uop = np.zeros(1 << self.depths[UOP], np.uint32)
        self.wgt = np.zeros((1 << self.depths[WGT], self.block, self.block), np.int64)
        self.inp = np.zeros((1 << self.depths[INP], self.batch, self.block), np.int64)
        self.acc = np.zeros((1 << self.depths[ACC], self.batch, self.block), np.int32)
        self.done = False

    def configure(self, c: Mapping[str, int]) -> None:
        """The sizes of elements, the depths of memories, and the bits of fields."""
        assert (c["log_inp_width"], c["log_wgt_width"], c["log_acc_width"]) == (3, 3, 5)
        self.block, self.batch = 1 << c["log_block"], 1 << c["log_batch"]
        row = self.batch * self.block
        self.bytes = {UOP: 4, WGT: self.block**2, INP: row, ACC: 4 * row, OUT: row, ACC8: row}
        names = {UOP: "uop", WGT: "wgt", INP: "inp", ACC: "acc"}
        self.depths = {
            memory: c[f"log_{name}_buffer"] - (self.bytes[memory].bit_length() - 1) for memory, name in names.items()
        }
        uop, wgt, inp, acc = (self.depths[memory] for memory in (UOP, WGT, INP, ACC))
        tokens = (("opcode", 3), ("tokens", 4))
        loop = (
            ("reset", 1),
            ("bgn", uop),
            ("end", uop + 1),
            ("out", 14),
            ("in", 14),
            ("dst_out", acc),
            ("dst_in", acc),
        )
        pads = (("top", 4), ("bottom", 4), ("left", 4), ("right", 4))
        self.fields = {
            "memory": places(
                *tokens, ("memory", 3), ("sram", 16), ("dram", 32), ("y", 16), ("x", 16), ("stride", 16), *pads
            ),
            "gemm": places(*tokens, *loop, ("src_out", inp), ("src_in", inp), ("wgt_out", wgt), ("wgt_in", wgt)),
            "alu": places(*tokens, *loop, ("src_out", acc), ("src_in", acc), ("op", 3), ("use_imm", 1), ("imm", 16)),
        }
        self.micro_op = places(("dst", acc), ("src", max(inp, acc)), ("wgt", wgt))

    @staticmethod
    def queue(word: int) -> int:
        """Load, compute or store."""
        opcode = bits(word, 2, 0)
        if opcode == STORE:
            return 2
        return 0 if opcode == LOAD and bits(word, 9, 7) in (INP, WGT) else 1

    def run(self) -> None:
        """All units, each as far as it gets, again and again."""
        tokens = {"l2g": 0, "g2l": 0, "g2s": 0, "s2g": 0}
        pops = ((None, "g2l"), ("l2g", "s2g"), ("g2s", None))
        pushes = ((None, "l2g"), ("g2l", "g2s"), ("s2g", None))
        moved = True
        while moved:
            moved = False
            for number, queue in enumerate(self.queues):
                while queue:
                    taken = [t for bit, t in zip((3, 4), pops[number], strict=True) if t and bits(queue[0], bit, bit)]
                    if any(not tokens[t] for t in taken):
                        break
                    word = queue.popleft()
                    for t in taken:
                        tokens[t] -= 1
                    self.execute(word)
                    for bit, token in zip((5, 6), pushes[number], strict=True):
                        if token and bits(word, bit, bit):
                            tokens[token] += 1
                    moved = True
        assert self.done and not any(self.queues) and not any(tokens.values())

    def execute(self, word: int) -> None:
        """One instruction."""
        opcode = bits(word, 2, 0)
        kind = {LOAD: "memory", STORE: "memory", GEMM: "gemm", ALU: "alu"}.get(opcode)
        if kind is None:
            self.done = True
            return
        f = {name: bits(word, *place) for name, place in self.fields[kind].items()}
        {LOAD: self.load, STORE: self.store, GEMM: self.gemm, ALU: self.alu}[opcode](f)

    def element(self, memory: int, index: int) -> np.ndarray:
        """The bytes of an element in DRAM."""
        return self.dram[index * self.bytes[memory] : (index + 1) * self.bytes[memory]]

    def load(self, f: Mapping[str, int]) -> None:
        """Rows with zeros around them, dense in the scratchpad."""
        if not f["x"]:
            return
        pads = {UOP: self.uop, WGT: self.wgt, INP: self.inp, ACC: self.acc, ACC8: self.acc}
        types = {UOP: "<u4", WGT: "i1", INP: "i1", ACC: "<i4", ACC8: "i1"}
        at, memory = f["sram"], f["memory"]
        for y in range(-f["top"], f["y"] + f["bottom"]):
            for x in range(-f["left"], f["x"] + f["right"]):
                pad = pads[memory]
                if 0 <= y < f["y"] and 0 <= x < f["x"]:
                    values = self.element(memory, f["dram"] + y * f["stride"] + x).view(types[memory])
                    pad[at] = values.reshape(pad[at].shape)
                else:
                    pad[at] = 0
                at += 1

    def store(self, f: Mapping[str, int]) -> None:
        """The low bytes of accumulators."""
        at = f["sram"]
        for y in range(f["y"]):
            for x in range(f["x"]):
                self.element(OUT, f["dram"] + y * f["stride"] + x)[:] = (self.acc[at] & 255).astype(np.uint8).ravel()
                at += 1

    def steps(self, f: Mapping[str, int]) -> list[tuple[int, int, int]]:
        """The indices of a loop."""
        found = []
        for o in range(f["out"]):
            for i in range(f["in"]):
                for u in range(f["bgn"], f["end"]):
                    uop = int(self.uop[u])
                    dst, src, wgt = (bits(uop, *self.micro_op[name]) for name in ("dst", "src", "wgt"))
                    dst, src = dst + o * f["dst_out"] + i * f["dst_in"], src + o * f["src_out"] + i * f["src_in"]
                    found.append((dst, src, wgt + o * f.get("wgt_out", 0) + i * f.get("wgt_in", 0)))
        return found

    def gemm(self, f: Mapping[str, int]) -> None:
        """Products, or zeros."""
        for dst, src, wgt in self.steps(f):
            if f["reset"]:
                self.acc[dst] = 0
            else:
                self.acc[dst] = (self.acc[dst] + self.inp[src] @ self.wgt[wgt].T).astype(np.int32)

    def alu(self, f: Mapping[str, int]) -> None:
        """An operation on rows."""
        number = f["imm"] - (f["imm"] >> 15 << 16)
        for dst, src, _ in self.steps(f):
            x = self.acc[dst].astype(np.int64)
            y = np.full(x.shape, number, np.int64) if f["use_imm"] else self.acc[src].astype(np.int64)
            shifted = np.where(y >= 0, x >> np.maximum(y, 0), x << np.maximum(-y, 0))
            self.acc[dst] = (np.minimum(x, y), np.maximum(x, y), x + y, shifted, x * y)[f["op"]].astype(np.int32)

    def __getitem__(self, name: str) -> np.ndarray:
        """What a buffer holds."""
        b = self.buffers[name]
        raw = self.dram[b["address"] : b["address"] + b["size"]].tobytes()
        return np.frombuffer(raw, np.dtype(b["dtype"]).newbyteorder("<")).reshape(b["shape"])
