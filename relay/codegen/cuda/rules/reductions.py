"""Reductions on GPUs: the numbers that a thread has combined so far, and reductions that threads may share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from relay.codegen.cuda.rules.blocks import thread_buffer
from relay.codegen.kernels.emission import Emission
from relay.codegen.kernels.reduction.reductions import combine_elements, sources
from relay.codegen.kernels.stage import Stage, is_choice
from relay.codegen.tvm.tir import Expression, Statement, tirx


class Accumulators:
    """The places where a thread keeps the numbers that a reduction has combined so far."""

    def __init__(self, e: Emission, stage: Stage) -> None:
        self.e, self.stage = e, stage
        self.buffers = [thread_buffer("sum", 1, dtype, "local") for dtype in stage.dtypes]
        self.declared: list[Statement] = [tirx.AllocBuffer(buffer) for buffer in self.buffers]

    @property
    def values(self) -> list[Expression]:
        return [tirx.BufferLoad(buffer, [0]) for buffer in self.buffers]

    def clear(self) -> list[Statement]:
        identities = self.stage.op.body[0].combiner.identity_element
        return [tirx.BufferStore(buffer, i, [0]) for buffer, i in zip(self.buffers, identities, strict=True)]

    def add(self, right: Sequence[Expression]) -> list[Statement]:
        """Combine them with numbers that come later."""
        return assign(self.buffers, [0], combine_elements(self.e, self.stage, self.values, right))

    def step(self, indices: Sequence[Expression], steps: Sequence[Expression]) -> list[Statement]:
        """Combine them with the element at these indices."""
        return self.add(sources(self.e, self.stage, indices, steps))


def assign(buffers: Sequence[Any], at: Sequence[Any], values: Sequence[Expression]) -> list[Statement]:
    """All buffers := all values at once."""
    names = [tirx.Var("combined", value.ty) for value in values]
    return [
        *(tirx.Bind(name, value) for name, value in zip(names, values, strict=True)),
        *(tirx.BufferStore(buffer, name, at) for buffer, name in zip(buffers, names, strict=True)),
    ]


def is_associative(combiner: Any) -> bool:
    """True if a reduction may surely be computed in parts: each result is a sum, a product and the like of the two
    elements, or a choice among them. Others, as the squares and products of a power by the bits of its exponent, are
    computed in their order."""
    pairs = list(zip(combiner.lhs, combiner.rhs, strict=True))
    return all(_is_plain(result, *pair) for result, pair in zip(combiner.result, pairs, strict=True))


_ASSOCIATIVE = (tirx.Add, tirx.Mul, tirx.Min, tirx.Max, tirx.And, tirx.Or)


def _is_plain(result: Expression, left: Any, right: Any) -> bool:
    if isinstance(result, _ASSOCIATIVE):
        return bool(
            (result.a.same_as(left) and result.b.same_as(right)) or (result.a.same_as(right) and result.b.same_as(left))
        )
    return _is_choice(result, left, right)


def _is_choice(result: Expression, left: Any, right: Any) -> bool:
    if isinstance(result, tirx.Select):
        return _is_choice(result.true_value, left, right) and _is_choice(result.false_value, left, right)
    if hasattr(result, "op") and is_choice(result):
        return all(_is_choice(part, left, right) for part in result.args[1:])
    return bool(result.same_as(left) or result.same_as(right))


__all__ = ["Accumulators", "assign", "is_associative"]
