"""A second simulator of the accelerator, which shares nothing with Relay's: it reads a program's folder by itself, and
takes the fields of instructions out of their bits by the numbers of the hardware's documents.

It is one of three designs, which differ where a stream may tell them apart:

    simulator   a step sees the results of all steps before it, and a store the accumulators
    hls         a step does not see those of the two before it; a store sees what GEMM and ALU wrote last, and a reset
                writes the sum there that it does not keep; shifts are by five bits with a sign
    chisel      likewise, but GEMM sees the step before, a reset writes nothing there, and the ALU with an immediate
                reads the source; a micro-op's weight counts for the ALU; there are 2048 micro-ops, and loads of these
                from odd places to even ones write the place before, too (the first design)

Of the units that can go on one is chosen by chance, and at most 512 instructions wait for each. With a seed memories
begin with random numbers. What hardware does not do is a Failure.
"""

from __future__ import annotations

import json
import random
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

LOAD, STORE, GEMM, FINISH, ALU = range(5)
UOP, WGT, INP, ACC, OUT, ACC8 = range(6)
Places = dict[str, tuple[int, int]]
SIMULATOR, HLS, CHISEL = "simulator", "hls", "chisel"
DESIGNS = (SIMULATOR, HLS, CHISEL)
Waiting = deque[tuple[int, np.ndarray]]
"""The rows that are written, and what with, oldest first, while steps do not see it."""


class Failure(Exception):
    """What a design does not do."""


def require(condition: object, what: str) -> None:
    """Raise Failure if it is not so."""
    if not condition:
        raise Failure(what)


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
    """The memories, and the stream."""

    def __init__(
        self, folder: Path, inputs: Mapping[str, np.ndarray], design: str = SIMULATOR, seed: int | None = None
    ) -> None:
        self.design, self.random = design, random.Random(seed)
        self.manifest = json.loads((folder / "manifest.json").read_text())
        self.configure(self.manifest["config"])
        end = max(b["address"] + b["size"] for b in self.manifest["buffers"])
        contents = bytes if seed is None else np.random.default_rng(seed).bytes

        def memory(count: int, dtype: str, *shape: int) -> np.ndarray:
            raw = contents(count * int(np.prod(shape, dtype=int)) * np.dtype(dtype).itemsize)
            return np.frombuffer(raw, dtype).reshape(count, *shape).copy()

        self.dram = memory(end, "u1")
        self.buffers = {b["name"]: b for b in self.manifest["buffers"]}
        for name, b in self.buffers.items():
            if b["file"] is not None:
                raw = (folder / b["file"]).read_bytes()[b["offset"] : b["offset"] + b["size"]]
            elif name in inputs:
                raw = inputs[name].tobytes()
            else:
                continue
            self.dram[b["address"] : b["address"] + b["size"]] = np.frombuffer(raw, np.uint8)
        stream = (folder / "instructions.bin").read_bytes()
        self.words = deque(int.from_bytes(stream[n : n + 16], "little") for n in range(0, len(stream), 16))
        assert len(self.words) == self.manifest["instructions"]
        depth = {m: 1 << d for m, d in self.depths.items()}
        self.uop = memory(depth[UOP], "<u4")
        self.wgt = memory(depth[WGT], "i1", self.block, self.block)
        self.inp = memory(depth[INP], "i1", self.batch, self.block)
        self.acc = memory(depth[ACC], "<i4", self.batch, self.block)
        self.out = memory(depth[ACC], "i1", self.batch, self.block)

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
            *(("reset", 1), ("bgn", uop), ("end", uop + 1), ("out", 14), ("in", 14)),
            *(("dst_out", acc), ("dst_in", acc)),
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
        """The units, as their tokens allow. Raises Failure."""
        tokens = {"l2g": 0, "g2l": 0, "g2s": 0, "s2g": 0}
        pops = ((None, "g2l"), ("l2g", "s2g"), ("g2s", None))
        pushes = ((None, "l2g"), ("g2l", "g2s"), ("s2g", None))
        queues: tuple[deque[int], ...] = (deque(), deque(), deque())
        done = False
        while self.words or any(queues):
            while self.words and len(queues[self.queue(self.words[0])]) < 512:
                queues[self.queue(self.words[0])].append(self.words.popleft())
            taken = [self.tokens(queue[0], (3, 4), pops[n]) if queue else [] for n, queue in enumerate(queues)]
            ready = [n for n, queue in enumerate(queues) if queue and all(tokens[t] for t in taken[n])]
            require(ready, "no unit can go on")
            chosen = self.random.choice(ready)
            word = queues[chosen].popleft()
            for token in taken[chosen]:
                tokens[token] -= 1
            require(not done or self.design == SIMULATOR, "something happens after FINISH")
            done |= bits(word, 2, 0) == FINISH
            self.execute(word)
            for token in self.tokens(word, (5, 6), pushes[chosen]):
                tokens[token] += 1
                require(tokens[token] < 256, f"a token {token} is lost")
        require(done and not any(tokens.values()), "the stream ends without FINISH, or with tokens")

    def tokens(self, word: int, flags: tuple[int, int], names: tuple[str | None, str | None]) -> list[str]:
        """The tokens of an instruction."""
        found = [name for bit, name in zip(flags, names, strict=True) if bits(word, bit, bit)]
        require(None not in found, "a token leads nowhere")
        return [name for name in found if name is not None]

    def execute(self, word: int) -> None:
        """One instruction."""
        opcode = bits(word, 2, 0)
        kind = {LOAD: "memory", STORE: "memory", GEMM: "gemm", ALU: "alu"}.get(opcode)
        if kind is None:
            require(opcode == FINISH, "an opcode that there is not")
            return
        f = {name: bits(word, *place) for name, place in self.fields[kind].items()}
        if kind == "memory":
            (self.load if opcode == LOAD else self.store)(f)
        else:
            self.steps(f, self.gemm if opcode == GEMM else self.alu)

    # ---- transfers

    def element(self, memory: int, index: int) -> np.ndarray:
        """The bytes of an element in DRAM."""
        start, size = index * self.bytes[memory], self.bytes[memory]
        require(start >= 4096 and start + size <= len(self.dram), "an address where no buffer is")
        return self.dram[start : start + size]

    def check_transfer(self, f: Mapping[str, int], padded: bool) -> None:
        """What hardware does not do."""
        pads = f["top"] or f["bottom"] or f["left"] or f["right"]
        if self.design != SIMULATOR:
            require(f["x"] or not (f["y"] or pads), "HLS fills the padding of nothing")
            require(f["y"] or not f["x"], "a counter of no rows")
            require(padded or not pads, "padding in a memory that has none")

    def load(self, f: Mapping[str, int]) -> None:
        """Rows with zeros around them, dense in the scratchpad."""
        at, memory = f["sram"], f["memory"]
        self.check_transfer(f, memory == INP)
        if not f["x"]:
            return
        if self.design != SIMULATOR:
            require(memory in (UOP, WGT, INP, ACC), "a load of another memory")
            require(memory != UOP or f["y"] == 1, "micro-ops in rows")
        if self.design == CHISEL:
            require(memory != UOP or at + f["x"] <= 2048, "Chisel's buffer has 2048 micro-ops")
            if memory == UOP and at % 2 == 0 and f["dram"] % 2:  # two come at once, and both are written
                self.uop[at - 1] = self.element(UOP, f["dram"] - 1).view("<u4")[0]
        pads = {UOP: self.uop, WGT: self.wgt, INP: self.inp, ACC: self.acc, ACC8: self.acc}
        types = {UOP: "<u4", WGT: "i1", INP: "i1", ACC: "<i4", ACC8: "i1"}
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
        """The low bytes of accumulators, or what stands in the buffer of results."""
        self.check_transfer(f, False)
        results = self.acc.astype(np.int8) if self.design == SIMULATOR else self.out
        at = f["sram"]
        for y in range(f["y"]):
            for x in range(f["x"]):
                self.element(OUT, f["dram"] + y * f["stride"] + x)[:] = results[at].view(np.uint8).ravel()
                at += 1

    # ---- steps

    def steps(self, f: Mapping[str, int], step: Callable[..., np.ndarray]) -> None:
        """All steps of an instruction, and what they write."""
        if self.design != SIMULATOR:
            require(f["out"] and f["in"] and f["bgn"] < f["end"], "a loop of nothing")
        if self.design == CHISEL:
            require(f["end"] <= 2048, "Chisel's buffer has 2048 micro-ops")
        unseen = 0 if self.design == SIMULATOR else 2
        waiting: Waiting = deque()
        for o in range(f["out"]):
            for i in range(f["in"]):
                for u in range(f["bgn"], f["end"]):
                    while len(waiting) > unseen:
                        row, values = waiting.popleft()
                        self.acc[row] = values
                    uop = int(self.uop[u])
                    dst, src, wgt = (bits(uop, *self.micro_op[name]) for name in ("dst", "src", "wgt"))
                    if step == self.alu and self.design == CHISEL:
                        src |= wgt << self.depths[INP]
                    dst, src = dst + o * f["dst_out"] + i * f["dst_in"], src + o * f["src_out"] + i * f["src_in"]
                    wgt += o * f.get("wgt_out", 0) + i * f.get("wgt_in", 0)
                    waiting.append((dst, step(f, dst, src, wgt, waiting)))
        for row, values in waiting:
            self.acc[row] = values

    def gemm(self, f: Mapping[str, int], dst: int, src: int, wgt: int, waiting: Waiting) -> np.ndarray:
        """A product that is added, or zeros."""
        if f["reset"] and self.design != HLS:
            return np.zeros_like(self.acc[dst])
        before = self.acc[dst]
        if self.design == CHISEL and waiting and waiting[-1][0] == dst:
            before = waiting[-1][1]
        if f["reset"]:  # whatever is there is multiplied
            src, wgt = src % len(self.inp), wgt % len(self.wgt)
        total = before + self.inp[src].astype(np.int32) @ self.wgt[wgt].T.astype(np.int32)
        self.out[dst] = total.astype(np.int8)
        return np.zeros_like(total) if f["reset"] else total

    def alu(self, f: Mapping[str, int], dst: int, src: int, _: int, waiting: Waiting) -> np.ndarray:
        """An operation on rows."""
        require(src < len(self.acc), "a row that there is not")
        number = f["imm"] - (f["imm"] >> 15 << 16)
        if self.design != SIMULATOR:
            require(f["op"] < 4, "an operation that there is not")
            require(all(row not in (dst, src) for row, _ in waiting), "a row that is not there yet")
        x = self.acc[src if f["use_imm"] and self.design == CHISEL else dst].astype(np.int64)
        y = np.full(x.shape, number, np.int64) if f["use_imm"] else self.acc[src].astype(np.int64)
        if f["op"] == 3:
            low = y & 31
            if self.design == HLS:
                y = (low ^ 16) - 16
            elif self.design == CHISEL:
                y = -(-low & 31) if number < 0 else low
            result = np.where(y >= 0, x >> np.maximum(y, 0), x << np.maximum(-y, 0))
        else:
            result = (np.minimum(x, y), np.maximum(x, y), x + y, x, x * y)[f["op"]]
        self.out[dst] = result.astype(np.int8)
        return result.astype(np.int32)

    def __getitem__(self, name: str) -> np.ndarray:
        """What a buffer holds."""
        b = self.buffers[name]
        raw = self.dram[b["address"] : b["address"] + b["size"]].tobytes()
        return np.frombuffer(raw, np.dtype(b["dtype"]).newbyteorder("<")).reshape(b["shape"])
