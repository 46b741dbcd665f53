"""What schedules ask about a stage: its loops, and how it reads its inputs."""

from __future__ import annotations

import math
from typing import Any

import attrs
from tvm import tirx
from tvm.ir import Call
from tvm_ffi import structural_walk

from relay.codegen.tir import vector_registers
from relay.ir.types import BaseType

PARALLEL_WORK = 1 << 17  # scalar operations below which starting a second thread does not pay

REDUCE = 2  # the iter_type of reduction axes


@attrs.frozen(eq=False)
class Stage:
    """One block. `accesses` are its reads: the buffer and the least index along each axis. `vectorises` is false where
    TVM would have to split a vector again, at which it fails with an error if an expression has names."""

    name: str
    spatial: tuple[int, ...]
    reduced: tuple[int, ...]
    variables: tuple[Any, ...]  # of the spatial axes, then of the reduced ones
    output: Any
    accesses: tuple[tuple[Any, tuple[Any, ...]], ...]
    outputs: int
    vectorises: bool

    @property
    def is_reduction(self) -> bool:
        return bool(self.reduced)

    @property
    def inputs(self) -> tuple[Any, ...]:
        return tuple(buffer for buffer, _ in self.accesses)

    @property
    def work(self) -> int:
        return math.prod(self.spatial) * math.prod(self.reduced)

    @property
    def itemsize(self) -> int:
        return max(1, bits(self.output) // 8)

    def reads_elementwise(self, buffer: Any) -> bool:
        """Whether every element needs just the same element of a buffer of the same shape."""
        for read, index in self.accesses:
            if read.same_as(buffer):
                own = self.variables[: len(self.spatial)]
                if len(index) != len(own) or not all(
                    _is(i, v, d) for i, v, d in zip(index, own, self.spatial, strict=True)
                ):
                    return False
        return True

    @property
    def is_elementwise(self) -> bool:
        """Whether all inputs are read so, or are single numbers."""
        shape = [int(d) for d in self.output.shape]
        return all(
            not index or ([int(d) for d in buffer.shape] == shape and self.reads_elementwise(buffer))
            for buffer, index in self.accesses
        )

    def follows(self, buffer_index: tuple[Any, ...], axis: int) -> bool:
        """Whether the last index of an access is the variable of an axis, so that it runs through memory."""
        return bool(buffer_index) and _is(buffer_index[-1], self.variables[axis], 0)


def _is(index: Any, variable: Any, extent: int) -> bool:
    if extent == 1 and hasattr(index, "value"):
        return int(index.value) == 0
    return bool(index.same_as(variable))


def bits(buffer: Any) -> int:
    """The width of a buffer's elements."""
    return int("".join(c for c in str(buffer.dtype) if c.isdigit()) or 8)


def registers(dtype: str) -> tuple[int, int]:
    """How many elements one of this processor's vectors holds, and how many vectors may serve as accumulators: half of
    the registers, since operands need some and more rows bring nothing."""
    width, count = vector_registers()
    return max(1, width // BaseType(dtype).dtype.itemsize), count // 2


def lanes(stage: Stage) -> int:
    """How many elements a 64-byte vector holds."""
    return max(4, 64 // stage.itemsize)


def stages(s: Any) -> list[Stage]:
    """The stages of a function in order."""
    return [describe(s, block) for block in s.get_child_blocks(s.get_sblock("root"))]


def describe(s: Any, handle: Any) -> Stage:
    """One stage by its block."""
    block = s.get(handle)
    axes = sorted(block.iter_vars, key=lambda axis: axis.iter_type == REDUCE)
    accesses = tuple((read.source, tuple(r.min for r in read.region)) for read in block.reads)
    return Stage(
        block.name_hint,
        tuple(int(a.dom.extent) for a in axes if a.iter_type != REDUCE),
        tuple(int(a.dom.extent) for a in axes if a.iter_type == REDUCE),
        tuple(a.var for a in axes),
        block.writes[0].source,
        accesses,
        len(block.writes),
        _vectorises(block.body),
    )


def _vectorises(body: Any) -> bool:
    called: set[str] = set()
    named: list[Any] = []
    structural_walk(body, ((Call, lambda call: called.add(getattr(call.op, "name", ""))), (tirx.Let, named.append)))
    return "tirx.call_pure_extern" not in called and ("tirx.if_then_else" not in called or not named)


def largest_divisor(number: int, limit: int) -> int:
    """The largest divisor that does not exceed the limit."""
    return next(d for d in range(min(number, limit), 0, -1) if number % d == 0)
