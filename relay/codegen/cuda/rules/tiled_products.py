"""Products in tiles: a block of threads for each tile of the result, whose factors lie in shared memory."""

from __future__ import annotations

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
from relay.codegen.cuda.rules.products import Factors, factors, runs_along
from relay.codegen.kernels.emission import Emission
from relay.codegen.kernels.loops import cast, loop, number, unravel_index
from relay.codegen.kernels.rules import Plan
from relay.codegen.kernels.stage import Extent, volume
from relay.codegen.tvm.tir import Expression, Statement, tirx


@attrs.frozen
class Tile:
    """The part of a product that a block computes: `size` rows and columns, of which each thread has `each` by `each`,
    with `depth` terms of the sums in shared memory at once."""

    size: int
    each: int
    depth: int = 16

    @property
    def height(self) -> int:
        """Rows of the result."""
        return self.size

    @property
    def width(self) -> int:
        """Columns of the result."""
        return self.size

    @property
    def pitch(self) -> int:
        """The elements between two terms in shared memory: one more than there are, so that neighboring threads find
        neighboring rows, and also neighboring terms, in different banks."""
        return self.size + 1


TILES = Tile(32, 2), Tile(64, 4), Tile(128, 8)


def match_tiled_product(e: Emission, subject: StageSubject) -> Plan | None:
    """Sums of products whose factors go along rows and columns, each used several times."""
    found = None if subject.stage is None else factors(e, subject.stage)
    if found is None:
        return None
    rows, columns, _, outer = (volume([d for _, d in part]) for part in found.parts)
    chosen = fitting_tile(TILES, rows, columns, outer)
    reason = f"tiles of {chosen.size} x {chosen.size}, of which {chosen.depth} terms are in shared memory"
    return plan_of(reason, subject, lambda: _product(e, subject, found, chosen))


def _product(e: Emission, subject: StageSubject, product: Factors, tile: Tile) -> Blocks:
    """A block for each tile. Its threads fetch the factors of some terms together, neighbors in memory by neighboring
    threads, then each has `each` by `each` sums."""
    stage, across = product.stage, tile.size // tile.each
    threads = across * across
    thread, block = indices_of_thread()
    rows, columns, terms, outer = (volume([d for _, d in part]) for part in product.parts)
    row_tiles, column_tiles = parts(rows, tile.size), parts(columns, tile.size)
    batch, row_tile, column_tile = unravel_index(cast(block, e.index), (outer, row_tiles, column_tiles), e.index)
    t = cast(thread, e.index)
    own_row, own_column = unravel_index(t, (across, across), e.index)
    dtype = stage.dtypes[0]
    left, right = (thread_buffer(name, tile.pitch * tile.depth, dtype, "shared") for name in ("left", "right"))
    sums = thread_buffer("sum", tile.each * tile.each, dtype, "local")
    own = [thread_buffer(name, tile.each, dtype, "local") for name in ("row", "column")]
    batch_values = product.values(product.outer, batch, e)

    def fetch(into: Any, factor: Expression, axes: Any, size: Extent, first: Expression, chunk: Expression) -> Any:
        by_line = runs_along(e, factor, axes) and not runs_along(e, factor, product.inner)

        def fetch_element(i: Expression) -> list[Statement]:
            if by_line:
                depth, line = unravel_index(i * threads + t, (tile.depth, tile.size), e.index)
            else:
                line, depth = unravel_index(i * threads + t, (tile.size, tile.depth), e.index)
            place = depth * tile.pitch + line
            at, term = first * tile.size + line, chunk * tile.depth + depth
            values = {**batch_values, **product.values(axes, at, e), **product.values(product.inner, term, e)}
            there = tirx.And(at < number(size, e.index), term < number(terms, e.index))
            element = cast(e.element(factor, values), dtype)
            return [
                tirx.BufferStore(into, tirx.const(0, dtype), [place]),
                guarded_statement(there, [tirx.BufferStore(into, element, [place])]),
            ]

        return loop(tile.size * tile.depth // threads, e.index, fetch_element)

    def accumulate(depth: Expression) -> list[Statement]:
        made = []
        for part, buffer, mine in zip(own, (left, right), (own_row, own_column), strict=True):
            for n in range(tile.each):
                value = tirx.BufferLoad(buffer, [depth * tile.pitch + mine + n * across])
                made.append(tirx.BufferStore(part, value, [n]))
        for r in range(tile.each):
            for c in range(tile.each):
                old = tirx.BufferLoad(sums, [r * tile.each + c])
                added = product.add(old, tirx.BufferLoad(own[0], [r]), tirx.BufferLoad(own[1], [c]))
                made.append(tirx.BufferStore(sums, added, [r * tile.each + c]))
        return made

    def chunk(number_: Expression) -> list[Statement]:
        return [
            *fetch(left, product.left, product.rows, rows, row_tile, number_),
            *fetch(right, product.right, product.columns, columns, column_tile, number_),
            barrier(),
            *loop(tile.depth, e.index, accumulate),
            barrier(),
        ]

    statements: list[Statement] = [tirx.AllocBuffer(buffer) for buffer in (left, right, sums, *own)]
    statements += [tirx.BufferStore(sums, tirx.const(0, dtype), [n]) for n in range(tile.each * tile.each)]
    statements += loop(parts(terms, tile.depth), e.index, chunk)
    for r in range(tile.each):
        for c in range(tile.each):
            row, column = row_tile * tile.size + own_row + r * across, column_tile * tile.size + own_column + c * across
            values = {**batch_values, **product.values(product.rows, row, e)}
            values |= product.values(product.columns, column, e)
            result = tirx.BufferLoad(sums, [r * tile.each + c])
            stored = finished(e, subject, [values[axis] for axis in stage.axes], result)
            there = tirx.And(row < number(rows, e.index), column < number(columns, e.index))
            statements.append(guarded_statement(there, stored))
    return Blocks(statements, thread, block, threads, outer * row_tiles * column_tiles)
