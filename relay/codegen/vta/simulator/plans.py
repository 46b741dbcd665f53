"""The steps of GEMM and ALU instructions as arrays of indices, and how to run many of them at once.

Step (o, i, u) uses micro-op u, with `o * factor_out + i * factor_in` added to each of its indices; u is the innermost.
Streams repeat instructions, so plans are kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import attrs
import numpy as np

from relay.codegen.vta.isa import Alu, Gemm

MOST_STEPS = 1 << 18
"""More steps than this are run one part after the other."""

_KEPT_STEPS = 1 << 22

Array = np.ndarray


@attrs.frozen(eq=False, slots=False)
class Plan:
    """Some consecutive steps of an instruction: for each one its rows, (n,) int64."""

    dst: Array
    src: Array
    wgt: Array

    @cached_property
    def dst_rows(self) -> Array:
        """The different destinations, in order."""
        return np.unique(self.dst)

    @cached_property
    def src_rows(self) -> Array:
        """The different sources, in order."""
        return np.unique(self.src)

    @cached_property
    def wgt_rows(self) -> Array:
        """The different weights, in order."""
        return np.unique(self.wgt)

    @cached_property
    def products(self) -> Products:
        """The way in which GEMM runs."""
        return Products(self)

    @cached_property
    def batches(self) -> tuple[slice, ...]:
        """The steps in parts of which none reads or writes what another step of the part has written before it."""
        steps = len(self.dst)
        before = np.maximum(_last_write(self.dst, self.dst), _last_write(self.dst, self.src))
        found, start = [], 0
        while start < steps:
            conflicts = before[start:] >= start
            length = int(conflicts.argmax()) if conflicts.any() else steps - start
            found.append(slice(start, start + length))
            start += length
        return tuple(found)


def _last_write(dst: Array, rows: Array) -> Array:
    """For each step the last one before it whose destination is the row of this step; -1 if there is none."""
    steps = len(dst)
    order = np.argsort(dst, kind="stable")
    keys = dst[order] * (steps + 1) + order  # by row, then by time
    wanted = rows * (steps + 1) + np.arange(steps)
    position = np.searchsorted(keys, wanted) - 1
    found = order[np.maximum(position, 0)]
    return np.where((position >= 0) & (dst[found] == rows), found, -1)


class Products:
    """The steps of GEMM by weights: one matrix product for each; and the sums of products by destination."""

    def __init__(self, plan: Plan) -> None:
        order = np.argsort(plan.wgt, kind="stable")
        starts = np.flatnonzero(np.diff(plan.wgt[order], prepend=-1))
        counts = np.diff(starts, append=len(order))
        self.src = plan.src[order]
        self.weights = plan.wgt[order][starts]
        self.same_count = int(counts[0]) if (counts == counts[0]).all() else 0
        self.ends = np.cumsum(counts)
        dst = plan.dst[order]
        self.by_dst = np.argsort(dst, kind="stable")
        self.dst_starts = np.flatnonzero(np.diff(dst[self.by_dst], prepend=-1))
        self.is_injective = len(self.dst_starts) == len(dst)
        self.rows = plan.dst_rows

    def run(self, inp: Array, wgt: Array, acc: Array) -> None:
        """acc[dst] += inp[src] @ wgt[wgt] for all steps.

        Args:
            inp: (depth, batch, block) float, wide enough for a product to be exact.
            wgt: (depth, block in, block out) float.
            acc: (depth, batch, block) integer, which wraps.
        """
        steps, (_, batch, block) = len(self.src), inp.shape
        values = inp[self.src]
        if self.same_count:
            rows = values.reshape(len(self.weights), self.same_count * batch, block)
            result = rows @ wgt[self.weights]
        else:
            rows = values.reshape(steps * batch, block)
            result = np.empty_like(rows)
            start = 0
            for weight, end in zip(self.weights.tolist(), (self.ends * batch).tolist(), strict=True):
                np.matmul(rows[start:end], wgt[weight], out=result[start:end])
                start = end
        whole = np.int64 if inp.dtype == np.float64 else np.int32
        products = result.reshape(steps, batch, block)[self.by_dst].astype(whole)
        if not self.is_injective:
            products = np.add.reduceat(products, self.dst_starts, axis=0)
        acc[self.rows] += products.astype(acc.dtype, copy=False)


class Plans:
    """Makes plans, and keeps those of small instructions."""

    def __init__(self) -> None:
        self._kept: dict[object, Plan] = {}
        self._steps = 0

    def instruction_plans(self, instruction: Gemm | Alu, table: Array, words: bytes) -> Iterator[Plan]:
        """The plans of an instruction, part after part. `table` is its micro-ops, (n, 3); `words` their bits."""
        steps = instruction.steps
        for start in range(0, steps, MOST_STEPS):
            stop = min(steps, start + MOST_STEPS)
            key = (_key(instruction), words, start)
            plan = self._kept.get(key)
            if plan is None:
                plan = _plan(instruction, table, start, stop)
                if self._steps + stop - start > _KEPT_STEPS:
                    self._kept.clear()
                    self._steps = 0
                self._kept[key] = plan
                self._steps += stop - start
            yield plan


def _key(loop: Gemm | Alu) -> tuple[object, ...]:
    weights = (loop.wgt_out, loop.wgt_in) if isinstance(loop, Gemm) else None
    return (loop.iter_out, loop.iter_in, loop.dst_out, loop.dst_in, loop.src_out, loop.src_in, weights)


def _plan(loop: Gemm | Alu, table: Array, start: int, stop: int) -> Plan:
    flat = np.arange(start, stop)
    outer, uop = np.divmod(flat, len(table))
    outer, inner = np.divmod(outer, loop.iter_in)
    dst, src, wgt = (table[uop, column] for column in range(3))
    dst += outer * loop.dst_out + inner * loop.dst_in
    src += outer * loop.src_out + inner * loop.src_in
    if isinstance(loop, Gemm):
        wgt += outer * loop.wgt_out + inner * loop.wgt_in
    return Plan(dst, src, wgt)


def repeats(rows: Array, dst: Array, before: Array) -> int | None:
    """The first step that reads, in `rows`, what one of the two steps before it writes; `before` has the destinations
    of the last two steps of the part before, at most. None if there is none."""
    history = np.concatenate([before, dst])
    offset = len(before)
    hits: Array = np.zeros(len(rows), bool)
    for distance in (1, 2):
        first = max(0, distance - offset)
        hits[first:] |= rows[first:] == history[offset + first - distance : offset + len(rows) - distance]
    return int(hits.argmax()) if hits.any() else None
