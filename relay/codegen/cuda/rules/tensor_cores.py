"""Products of half precision on tensor cores: float16 and bfloat16 factors, sums in float32.

A block of threads has a tile of the result, each of its warps a part of the tile, which consists of fragments:

    mma.sync.m16n8k16      sums[16, 8] += left[16, 16] * right[16, 8]

The factors of 32 terms of the sums are in shared memory twice: while the warps multiply one, the next is fetched. Eight
neighbors in memory are copied at once, past the registers (`cp.async`), where they are sure to be neighbors; otherwise
elements are computed one by one. In shared memory a factor lies as in the GPU's memory, along the terms or along the
lines (rows of the left one, columns of the right one), and `ldmatrix` turns it over where the terms are not neighbors.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs

from relay.codegen.cuda.rules.blocks import (
    Blocks,
    StageSubject,
    barrier,
    finished,
    fitting_tile,
    guarded_statement,
    indices_of_thread,
    parts,
    plan_of,
    thread_buffer,
)
from relay.codegen.cuda.rules.products import Axes, Factors, factors, runs_along
from relay.codegen.kernels.emission import Emission
from relay.codegen.kernels.loops import cast, loop, number, unravel_index
from relay.codegen.kernels.rules import Plan
from relay.codegen.kernels.stage import LOAD, extent, mentions, volume
from relay.codegen.tvm.tir import Expression, Statement, tirx

HALVES = ("float16", "bfloat16")

DEPTH = 32
"""The terms of the sums that are in shared memory at once."""

GROUP = 8
"""The elements that are copied at once: 16 bytes."""

PADDING = 8
"""Elements between lines in shared memory, so that the eight rows that `ldmatrix` reads are in different banks."""


@attrs.frozen
class WarpTiles:
    """The tile of a block: `across` by `across_columns` warps, each of `rows` by `columns` fragments of 16 x 16."""

    across: int
    across_columns: int
    rows: int
    columns: int

    @property
    def threads(self) -> int:
        return 32 * self.across * self.across_columns

    @property
    def height(self) -> int:
        """Rows of the result."""
        return 16 * self.across * self.rows

    @property
    def width(self) -> int:
        """Columns of the result."""
        return 16 * self.across_columns * self.columns


TILES = WarpTiles(2, 2, 1, 1), WarpTiles(2, 2, 2, 2), WarpTiles(2, 4, 4, 2)


def match_tensor_product(e: Emission, subject: StageSubject) -> Plan | None:
    """Products of float16 or bfloat16 factors that are summed in float32."""
    found = None if subject.stage is None else factors(e, subject.stage)
    if found is None or found.stage.dtypes != ["float32"]:
        return None
    halves = [_narrow(found.left), _narrow(found.right)]
    dtype = str(halves[0].ty)
    if dtype not in HALVES or str(halves[1].ty) != dtype:
        return None
    rows, columns, _, outer = (volume([d for _, d in part]) for part in found.parts)
    tiles = fitting_tile(TILES, rows, columns, outer)
    reason = f"{dtype} on tensor cores, in tiles of {tiles.height} x {tiles.width}"
    halved = attrs.evolve(found, left=halves[0], right=halves[1])
    return plan_of(reason, subject, lambda: _TensorProduct(e, subject, halved, tiles, dtype).blocks())


def _narrow(factor: Any) -> Expression:
    """The number of half precision that a factor in float32 is; the factor itself if it is none. A bfloat16 becomes
    float32 by its bits (`relay.ops.tir.scalar.cast`)."""
    if isinstance(factor, tirx.Cast):
        return factor.value
    shifted = _reinterpreted(factor)
    widened = getattr(shifted, "a", None)
    narrow = _reinterpreted(getattr(widened, "value", None))
    return factor if narrow is None else narrow


def _reinterpreted(expression: Any) -> Any:
    """The expression whose bits one is; None if it is not made so."""
    name = getattr(getattr(expression, "op", None), "name", "")
    return expression.args[0] if name == "tirx.reinterpret" else None


def _call(function: str, *arguments: Any) -> Statement:
    return tirx.Evaluate(tirx.call_extern("int32", function, *arguments))


def _address(buffer: Any, position: Any) -> Expression:
    return tirx.address_of(tirx.BufferLoad(buffer, [position]))


class _Fetch:
    """The way of one factor to shared memory: `size` lines for each block, of which a thread fetches some groups."""

    def __init__(self, e: Emission, product: Factors, factor: Expression, axes: Axes, size: int, threads: int) -> None:
        self.e, self.product, self.factor, self.axes, self.size = e, product, factor, axes, size
        self.threads, self.dtype = threads, str(factor.ty)
        self.by_line = runs_along(e, factor, axes) and not runs_along(e, factor, product.inner)
        self.pitch = PADDING + (size if self.by_line else DEPTH)
        self.stage_elements = self.pitch * (DEPTH if self.by_line else size)
        self.shared = thread_buffer("factor", 2 * self.stage_elements, self.dtype, "shared")
        self.is_copied = _has_groups(e, factor, axes if self.by_line else product.inner)
        self.rounds = size * DEPTH // (GROUP if self.is_copied else 1) // threads
        self.own = thread_buffer("fetched", 1 if self.is_copied else self.rounds, self.dtype, "local")

    @property
    def declared(self) -> list[Statement]:
        return [tirx.AllocBuffer(buffer) for buffer in ((self.shared,) if self.is_copied else (self.shared, self.own))]

    def _line_and_depth(self, position: Expression) -> tuple[Expression, Expression]:
        """The place in a chunk of an element, or a group of them; neighbors in memory are neighboring threads."""
        group = GROUP if self.is_copied else 1
        if self.by_line:
            depth, line = unravel_index(position, (DEPTH, self.size // group), self.e.index)
            return line * group, depth
        line, depth = unravel_index(position, (self.size, DEPTH // group), self.e.index)
        return line, depth * group

    def place(self, line: Expression, depth: Expression) -> Expression:
        """The place of an element in one half of the shared memory."""
        return depth * self.pitch + line if self.by_line else line * self.pitch + depth

    def begin(
        self, first: Expression, chunk: Expression, half: Expression, batch: dict[Any, Expression], thread: Expression
    ) -> list[Statement]:
        """Start the way of a chunk of terms of the lines from `first` on."""
        lines, terms = (volume([d for _, d in part]) for part in (self.axes, self.product.inner))
        e = self.e

        def fetch(i: Expression) -> list[Statement]:
            line, depth = self._line_and_depth(i * self.threads + thread)
            at, term = first + line, chunk * DEPTH + depth
            values = {**batch, **self.product.values(self.axes, at, e)}
            values |= self.product.values(self.product.inner, term, e)
            element = e.element(self.factor, values)
            there = tirx.And(at < number(lines, e.index), term < number(terms, e.index))
            if self.is_copied:
                to = _address(self.shared, half * self.stage_elements + self.place(line, depth))
                return [_call("relay_copy_later", to, tirx.address_of(element), cast(there, "int32"))]
            return [
                tirx.BufferStore(self.own, tirx.const(0, self.dtype), [i]),
                guarded_statement(there, [tirx.BufferStore(self.own, element, [i])]),
            ]

        return loop(self.rounds, e.index, fetch, "UNROLLED")

    def finish(self, half: Expression, thread: Expression) -> list[Statement]:
        """End it: what was computed is in shared memory once this thread and all others are through. For copies the
        thread has to wait."""
        if self.is_copied:
            return []

        def keep(i: Expression) -> list[Statement]:
            line, depth = self._line_and_depth(i * self.threads + thread)
            at = half * self.stage_elements + self.place(line, depth)
            return [tirx.BufferStore(self.shared, tirx.BufferLoad(self.own, [i]), [at])]

        return loop(self.rounds, self.e.index, keep, "UNROLLED")

    def load(self, into: Any, at: int, half: Expression, line: Expression, depth: int, lane: Expression) -> Statement:
        """Read the fragment of 16 lines and 16 terms from `line` and `depth` on."""
        high = lane // 16 * GROUP
        turned = (lane % 8 + high) * self.pitch + lane // 8 % 2 * GROUP
        within = turned if self.by_line else lane % 16 * self.pitch + high
        source = half * self.stage_elements + self.place(line, number(depth, self.e.index)) + within
        name = "relay_fragment_turned" if self.by_line else "relay_fragment"
        return _call(name, _address(into, at), _address(self.shared, source))


def _has_groups(e: Emission, factor: Expression, axes: Axes) -> bool:
    """True if each GROUP of neighbors along the last axis is sure to be 16 bytes of memory, at a multiple of that."""
    if not axes or getattr(getattr(factor, "op", None), "name", "") != LOAD:
        return False
    (tensor, *indices), (variable, size) = factor.args, axes[-1]
    place = e.places.get((tensor.op, int(tensor.value_index)))
    if place is None or not indices:
        return False
    last = indices[-1]
    while isinstance(last, tirx.Cast):
        last = last.value
    return (
        bool(last.same_as(variable))
        and not any(mentions(index, variable) for index in indices[:-1])
        and all(isinstance(n, int) and n % GROUP == 0 for n in (size, extent(place.dims[-1])))
    )


class _TensorProduct:
    """The kernel of a product whose factors are of a `dtype` of half precision."""

    def __init__(self, e: Emission, subject: StageSubject, product: Factors, tiles: WarpTiles, dtype: str) -> None:
        self.e, self.subject, self.product, self.tiles, self.dtype = e, subject, product, tiles, dtype
        self.left = _Fetch(e, product, product.left, product.rows, tiles.height, tiles.threads)
        self.right = _Fetch(e, product, product.right, product.columns, tiles.width, tiles.threads)
        self.sums = thread_buffer("sum", 8 * tiles.rows * tiles.columns, "float32", "local")
        self.of_left = thread_buffer("left", 4 * tiles.rows, "uint32", "local")
        self.of_right = thread_buffer("right", 4 * tiles.columns, "uint32", "local")

    def blocks(self) -> Blocks:
        e, product, tiles = self.e, self.product, self.tiles
        thread, block = indices_of_thread()
        t = cast(thread, e.index)
        rows, columns, terms, outer = (volume([d for _, d in part]) for part in product.parts)
        row_tiles, column_tiles = parts(rows, tiles.height), parts(columns, tiles.width)
        batch, row_tile, column_tile = unravel_index(cast(block, e.index), (outer, row_tiles, column_tiles), e.index)
        batch_values = product.values(product.outer, batch, e)
        first = row_tile * tiles.height, column_tile * tiles.width
        fetches = self.left, self.right

        def begin(chunk: Expression, half: Expression) -> list[Statement]:
            pairs = zip(fetches, first, strict=True)
            return [s for fetch, start in pairs for s in fetch.begin(start, chunk, half, batch_values, t)]

        def finish(half: Expression) -> list[Statement]:
            waits = [_call("relay_wait_for_copies")] if any(fetch.is_copied for fetch in fetches) else []
            return [*(s for fetch in fetches for s in fetch.finish(half, t)), *waits, barrier()]

        def chunk(number_: Expression) -> list[Statement]:
            half, other = number_ % 2, (number_ + 1) % 2
            return [*begin(number_ + 1, other), *self._multiply(half, t), *finish(other)]

        zero = tirx.const(0, e.index)
        statements = [tirx.AllocBuffer(b) for b in (self.sums, self.of_left, self.of_right)]
        statements += [s for fetch in fetches for s in fetch.declared]
        count = 8 * tiles.rows * tiles.columns
        statements += [tirx.BufferStore(self.sums, tirx.const(0, "float32"), [n]) for n in range(count)]
        statements += [*begin(zero, zero), *finish(zero)]
        statements += loop(parts(terms, DEPTH), e.index, chunk)
        statements += self._results(first, batch_values, t)
        return Blocks(statements, thread, block, tiles.threads, outer * row_tiles * column_tiles)

    def _warp_origin(self, t: Expression) -> tuple[Expression, Expression]:
        """The first row and column of a thread's warp in its block's tile."""
        tiles = self.tiles
        row, column = unravel_index(t // 32, (tiles.across, tiles.across_columns), self.e.index)
        return row * (16 * tiles.rows), column * (16 * tiles.columns)

    def _multiply(self, half: Expression, t: Expression) -> list[Statement]:
        """Add the terms of a chunk to the sums."""
        tiles, lane = self.tiles, t % 32
        row, column = self._warp_origin(t)
        made: list[Statement] = []
        for depth in range(0, DEPTH, 16):
            for r in range(tiles.rows):
                made.append(self.left.load(self.of_left, 4 * r, half, row + 16 * r, depth, lane))
            for c in range(tiles.columns):
                made.append(self.right.load(self.of_right, 4 * c, half, column + 16 * c, depth, lane))
            for r in range(tiles.rows):
                for c in range(2 * tiles.columns):
                    at = 4 * (c // 2) + c % 2  # a fragment has 8 columns twice, each with 8 terms twice
                    right = [tirx.BufferLoad(self.of_right, [n]) for n in (at, at + 2)]
                    sums = _address(self.sums, 4 * (2 * tiles.columns * r + c))
                    made.append(_call(f"relay_mma_{self.dtype}", sums, _address(self.of_left, 4 * r), *right))
        return made

    def _results(self, first: Sequence[Expression], batch: dict[Any, Expression], t: Expression) -> list[Statement]:
        """Store the sums: a thread has two neighbors in a row, and two that are eight rows below."""
        e, product, tiles, lane = self.e, self.product, self.tiles, t % 32
        rows, columns = (volume([d for _, d in part]) for part in (product.rows, product.columns))
        row0, column0 = self._warp_origin(t)
        made: list[Statement] = []
        for n in range(8 * tiles.rows * tiles.columns):
            fragment, (below, beside) = n // 4, divmod(n % 4, 2)
            r, c = divmod(fragment, 2 * tiles.columns)
            row = first[0] + row0 + lane // 4 + (16 * r + 8 * below)
            column = first[1] + column0 + lane % 4 * 2 + (8 * c + beside)
            values = {**batch, **product.values(product.rows, row, e), **product.values(product.columns, column, e)}
            indices = [values[axis] for axis in product.stage.axes]
            stored = finished(e, self.subject, indices, tirx.BufferLoad(self.sums, [n]))
            there = tirx.And(row < number(rows, e.index), column < number(columns, e.index))
            made.append(guarded_statement(there, stored))
        return made


__all__ = ["WarpTiles", "match_tensor_product"]
