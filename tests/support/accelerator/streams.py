"""Streams for the accelerator's tests: programs in a few words, random ones for tiny configurations, strategies."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence

import attrs
import numpy as np
from hypothesis import strategies as st

from relay.codegen.vta.config import DEFAULT, Config
from relay.codegen.vta.encoding import CLASSES, encode_micro_ops
from relay.codegen.vta.errors import ConfigurationError
from relay.codegen.vta.isa import Alu, AnyInstruction, Finish, Gemm, Load, Queue, Store, no_op
from relay.codegen.vta.layout import AluOp, Memory, Opcode
from relay.codegen.vta.program import PAGE, Allocator, Program, Role

SMALL = Config(log_block=1, log_uop_buffer=5, log_inp_buffer=4, log_wgt_buffer=4, log_acc_buffer=6)
"""8 micro-ops, 8 activations, 4 weights and 8 accumulators, of two channels."""


def in_order(instructions: Iterable[AnyInstruction]) -> list[AnyInstruction]:
    """The instructions with tokens by which each one waits for the one before it, and FINISH."""
    result: list[AnyInstruction] = []
    for instruction in (*instructions, Finish()):
        if result and {result[-1].queue, instruction.queue} == {Queue.LOAD, Queue.STORE}:
            _link(result, no_op(Queue.COMPUTE))
        if isinstance(instruction, Finish) and result and result[-1].queue is not Queue.COMPUTE:
            _link(result, no_op(Queue.COMPUTE))
        _link(result, instruction)
    return result


def _link(result: list[AnyInstruction], instruction: AnyInstruction) -> None:
    if result and result[-1].queue is not instruction.queue:
        down = result[-1].queue < instruction.queue
        result[-1] = attrs.evolve(result[-1], **{"push_next" if down else "push_prev": True})
        instruction = attrs.evolve(instruction, **{"pop_prev" if down else "pop_next": True})
    result.append(instruction)


class Stream:
    """Buffers `uop`, `inp`, `wgt`, `acc` with contents and `out` without any, and instructions that move whole ones."""

    def __init__(
        self, config: Config = DEFAULT, seed: int = 0, micro_ops: Sequence[tuple[int, ...]] = ((0, 0, 0),)
    ) -> None:
        self.config = config
        rng = np.random.default_rng(seed)
        words = encode_micro_ops(np.array(micro_ops, np.int64), config)
        allocator = Allocator(alignment=max(PAGE, *(config.element_bytes(memory) for memory in Memory)))
        allocator.add("uop", Role.MICRO_OPS, data=words)
        for memory, role in ((Memory.INP, Role.INPUT), (Memory.WGT, Role.CONSTANT), (Memory.ACC, Role.CONSTANT)):
            dtype = config.dtype(memory)
            shape = (min(32, config.depth(memory)), *config.element_shape(memory))
            low, high = (-128, 128) if dtype.itemsize == 1 else (-(2**20), 2**20)
            allocator.add(memory.name.lower(), role, data=rng.integers(low, high, shape).astype(dtype))
        out = (32, *config.element_shape(Memory.OUT))
        allocator.add("out", Role.OUTPUT, out, config.dtype(Memory.OUT))
        self.buffers = {buffer.name: buffer for buffer in allocator.buffers}

    def load(self, name: str, count: int | None = None, **fields: object) -> Load:
        """A load of the first elements of a buffer, all of them by default, to row 0."""
        memory = Memory[name.upper()]
        size = self.buffers[name].shape[0] if count is None else count
        fields = {"x_size": size, "x_stride": size, "dram": self.place(name, memory), **fields}
        return Load(memory=memory, **fields)  # type: ignore[arg-type]

    def store(self, count: int, **fields: object) -> Store:
        """A store of the first rows to `out`."""
        return Store(**{"x_size": count, "x_stride": count, "dram": self.place("out", Memory.OUT), **fields})  # type: ignore[arg-type]

    def place(self, name: str, memory: Memory) -> int:
        """The address of a buffer in elements."""
        return self.buffers[name].address // self.config.element_bytes(memory)

    def program(self, instructions: Iterable[AnyInstruction], *, ordered: bool = True) -> Program:
        """These instructions as a program, one after the other unless they bring their own tokens."""
        stream = in_order(instructions) if ordered else list(instructions)
        return Program(self.config, stream, self.buffers.values())


def random_stream(seed: int, length: int = 12) -> tuple[Stream, list[AnyInstruction]]:
    """Instructions within all bounds that fill the scratchpads first; without tokens."""
    rng = random.Random(seed)
    micro_ops = [(rng.randrange(4), rng.randrange(4), rng.randrange(2)) for _ in range(8)]
    stream = Stream(SMALL, seed, micro_ops)
    instructions: list[AnyInstruction] = [stream.load(name) for name in ("uop", "acc", "inp", "wgt")]
    instructions.append(stream.store(8))
    makers = (_load, _load, _store, _gemm, _gemm, _alu, _alu)
    instructions += [rng.choice(makers)(rng, stream) for _ in range(length)]
    return stream, instructions


def weakened(seed: int) -> Program:
    """A random stream with some of its tokens removed, both ends of each."""
    rng = random.Random(seed)
    stream, instructions = random_stream(seed, 8)
    ordered = in_order(instructions)
    for position in range(len(ordered) - 1):
        first, second = ordered[position : position + 2]
        if first.queue is not second.queue and rng.random() < 0.2:
            down = first.queue < second.queue
            ordered[position] = attrs.evolve(first, **{"push_next" if down else "push_prev": False})
            ordered[position + 1] = attrs.evolve(second, **{"pop_prev" if down else "pop_next": False})
    return stream.program(ordered, ordered=False)


def _rectangle(rng: random.Random, depth: int, pads: bool) -> dict[str, int]:
    while True:
        found = {"y_size": rng.randint(1, 3), "x_size": rng.randint(0, 3), "x_stride": rng.randint(0, 5)}
        if pads:
            found |= {
                f"{side}": rng.randrange(3) for side in ("y_pad_top", "y_pad_bottom", "x_pad_left", "x_pad_right")
            }
        rows = found["y_size"] + found.get("y_pad_top", 0) + found.get("y_pad_bottom", 0)
        columns = found["x_size"] + found.get("x_pad_left", 0) + found.get("x_pad_right", 0)
        if rows * columns <= depth:
            return {**found, "sram": rng.randint(0, depth - rows * columns)}


def _load(rng: random.Random, stream: Stream) -> AnyInstruction:
    memory = rng.choice((Memory.INP, Memory.INP, Memory.ACC, Memory.ACC8, Memory.WGT))
    name = {Memory.ACC8: "inp"}.get(memory, memory.name.lower())
    if memory in (Memory.INP, Memory.ACC8) and rng.random() < 0.3:
        name = "out"  # what has been stored
    fields = _rectangle(rng, SMALL.depth(memory), True)
    while (fields["y_size"] - 1) * fields["x_stride"] + fields["x_size"] > min(8, stream.buffers[name].shape[0]):
        fields = _rectangle(rng, SMALL.depth(memory), True)
    return Load(memory=memory, dram=stream.place(name, memory), **fields)


def _store(rng: random.Random, stream: Stream) -> AnyInstruction:
    return Store(dram=stream.place("out", Memory.OUT) + rng.randrange(16), **_rectangle(rng, 8, False))


def _loop(rng: random.Random) -> dict[str, int]:
    begin = rng.randrange(8)
    factors = {name: rng.randint(0, 2) for name in ("dst_out", "dst_in", "src_out", "src_in")}
    iterations = {"iter_out": rng.randint(1, 2), "iter_in": rng.randint(1, 2)}
    return {"uop_begin": begin, "uop_end": rng.randint(begin, 8), **iterations, **factors}


def _gemm(rng: random.Random, stream: Stream) -> AnyInstruction:
    weights = {"wgt_out": rng.randint(0, 1), "wgt_in": rng.randint(0, 1)}
    return Gemm(reset=rng.random() < 0.2, **_loop(rng), **weights)


def _alu(rng: random.Random, stream: Stream) -> AnyInstruction:
    op = rng.choice(list(AluOp))
    use_imm = op is AluOp.SHR or rng.random() < 0.5
    imm = rng.randint(-31, 31) if op is AluOp.SHR else rng.choice([-32768, -1, 0, 3, 32767])
    return Alu(op=op, use_imm=use_imm, imm=imm if use_imm else 0, **_loop(rng))


# ---- anything that can be encoded


def configs() -> st.SearchStrategy[Config]:
    """Random configurations that can be encoded."""
    sizes = st.fixed_dictionaries(
        {
            "log_inp_width": st.sampled_from([3, 4]),
            "log_wgt_width": st.sampled_from([3, 4]),
            "log_acc_width": st.sampled_from([4, 5]),
            "log_batch": st.integers(0, 3),
            "log_block": st.integers(0, 6),
            "log_uop_buffer": st.integers(4, 15),
            "log_inp_buffer": st.integers(6, 16),
            "log_wgt_buffer": st.integers(8, 18),
            "log_acc_buffer": st.integers(7, 17),
        }
    )
    return sizes.map(config_or_none).filter(lambda config: config is not None)  # type: ignore[return-value]


def config_or_none(sizes: dict[str, int]) -> Config | None:
    try:
        return Config(**sizes)
    except ConfigurationError:
        return None


@st.composite
def instructions(draw: st.DrawFn, config: Config) -> AnyInstruction:
    """Any instruction, each field anywhere in its range."""
    opcode = draw(st.sampled_from(list(Opcode)))
    values: dict[str, object] = {}
    for field in config.layouts.instructions[opcode][1:]:
        if field.name == "memory":
            values[field.name] = draw(st.sampled_from(list(Memory)))
        elif field.name == "op":
            values[field.name] = draw(st.sampled_from(list(AluOp)))
        elif field.width == 1 and isinstance(getattr(attrs.fields(CLASSES[opcode]), field.name).default, bool):
            values[field.name] = draw(st.booleans())
        else:
            edges = st.sampled_from([field.minimum, field.maximum])
            values[field.name] = draw(edges | st.integers(field.minimum, field.maximum))
    return CLASSES[opcode](**values)  # type: ignore[arg-type]
