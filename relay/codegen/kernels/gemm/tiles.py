"""Tiles of a product whose sizes are static: rows and columns of the result that stay in registers."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import attrs
import numpy as np

from relay.codegen.kernels.emission import ConstantOperand, Emission, Place
from relay.codegen.kernels.gemm.packing import NonArithmeticIndex, packing
from relay.codegen.kernels.gemm.panels import Panel, axis_indices, inner_loops, operand_at, right_element
from relay.codegen.kernels.gemm.recognition import Product, constant_right, pieces, registers, size, tile_height
from relay.codegen.kernels.loops import cast, loop, number, unravel_index
from relay.codegen.kernels.reduction.reductions import Finish
from relay.codegen.kernels.stage import Extent, substitute_variables, volume
from relay.codegen.tvm.tir import Expression, Statement, sequence, tirx

REPEATED = 2  # how many times as large as it is a constant may become where it is packed ahead


class ProductGenerator:
    """Generates the statements of one product for a number of threads. `height`: the rows of a tile, if not by rule."""

    def __init__(
        self, e: Emission, product: Product, done: Finish, threads: int, packed: bool, height: int | None = None
    ) -> None:
        self.e = e
        self.product = product
        self.done = done
        self.rows, self.columns = size(product.rows), size(product.columns)
        self.lanes, accumulators = registers(product.dtype)
        self.height = height or e.choice.height or tile_height(self.rows, accumulators)
        self.vectors = e.choice.vectors or max(1, accumulators // self.height)
        constant = constant_right(e, product)
        if isinstance(self.columns, int):
            self.vectors = max(1, min(self.vectors, int(pieces(self.columns, self.lanes))))
            if constant is not None:  # panels are whole, so they have as much to do as possible
                panels = pieces(self.columns, self.vectors * self.lanes)
                self.vectors = int(pieces(pieces(self.columns, int(panels)), self.lanes))
        self.width = self.vectors * self.lanes
        self.ragged = not isinstance(self.columns, int) or self.columns % self.width != 0
        tiles, panels = pieces(self.rows, self.height), pieces(self.columns, self.width)
        if isinstance(tiles, int) and isinstance(panels, int):
            threads = min(threads, max(panels, tiles))
        self.parts = threads
        by_panel = not isinstance(panels, int) or panels >= self.parts
        self.panels = _ThreadShare(e, panels, self.parts if by_panel else 1)
        self.tiles = _ThreadShare(e, tiles, 1 if by_panel else self.parts)
        self.packs = packed
        self.packed: Place | None = None
        self.start: Any = tirx.const(0, e.index)  # of a panel, where several are packed
        self.ahead = constant is not None and self._pack_ahead(constant)

    def statements(self) -> list[Statement]:
        """The whole product."""
        zero = tirx.const(0, self.e.index)
        batch = [axis.extent for axis in self.product.batch]

        def part(number_: Any) -> list[Statement]:
            statements = self._memory(number_)

            def tile_statements(at: Any) -> list[Statement]:
                indices = unravel_index(at, batch, self.e.index) if batch else []
                found = {axis.variable: i for axis, i in zip(self.product.batch, indices, strict=True)}
                return self._part(cast(number_, self.e.index), at, found)

            return [
                *statements,
                *(loop(volume(batch), self.e.index, tile_statements) if batch else tile_statements(zero)),
            ]

        return part(zero) if self.parts == 1 else loop(self.parts, self.e.index, part, "PARALLEL")

    def _memory(self, part: Any) -> list[Statement]:
        """The statements that declare the memory for a panel."""
        if not self.packs or self.ahead:
            return []
        dims = (size(self.product.inner), self.width)
        name = (self.product.stage.op, "packed")
        self.packed, statements = self.e.scratch(name, str(self.product.right.ty), dims, part, 0)
        return statements

    def _part(self, part: Any, number_: Any, batch: dict[Any, Expression]) -> list[Statement]:
        """The work of one thread, for one place of the batch."""

        def panel(own: Any) -> list[Statement]:
            column, place = tirx.Var("column", self.e.index), self.panels.first_piece(part) + own
            statements = [tirx.Bind(column, place * self.width)]
            if self.ahead:
                self.start = tirx.Var("start", self.e.index)
                panels = number(self.panels.total, self.e.index)
                size_ = number(size(self.product.inner), self.e.index) * self.width
                statements.append(tirx.Bind(self.start, (number_ * panels + place) * size_))
            else:
                statements += self._right_panel(column, batch)
            return [*statements, *self._tiles(part, column, batch)]

        return loop(self.panels.count(part), self.e.index, panel)

    def _right_panel(self, column: Any, batch: dict[Any, Expression]) -> list[Statement]:
        """The copy of a panel of the right operand, if there is one."""
        if self.packed is None:
            return []
        form = self.vectors, self.lanes, self.ragged
        return Panel(self.e, self.product, self.packed.buffer, batch, column, *form).statements()

    def _tiles(self, part: Any, column: Any, batch: dict[Any, Expression]) -> list[Statement]:
        """The tiles of a panel."""
        return loop(self.tiles.count(part), self.e.index, partial(self._tile, part, column, batch))

    # ---- the operands

    def _has_columns(self, end: Expression) -> Expression:
        """True if there are columns up to here."""
        return tirx.LE(end, number(self.columns, self.e.index))

    def _pack_ahead(self, constant: ConstantOperand) -> bool:
        """Let the right operand, a constant, be packed at compile time; False if that is not possible."""
        product, columns, panels = self.product, self.columns, self.panels.total
        assert isinstance(columns, int) and isinstance(panels, int)
        outer, inner = ([(axis.variable, axis.extent) for axis in part] for part in (product.batch, product.inner))
        sizes = [extent for _, extent in (*outer, *inner)]
        if not all(isinstance(extent, int) for extent in sizes):
            return False
        total = int(volume(sizes)) * panels * self.width
        column = tirx.Var("column", self.e.index)
        same = {axis.variable: axis.variable for axis in (*product.batch, *product.inner)}
        element = right_element(self.e, self.product, same, {}, column)
        if constant in self.e.packings:  # with threads and without
            self.packed = self.e.pack(constant, self.e.packings[constant], total)
            return True
        if total > REPEATED * constant.elements + self.width * int(volume(sizes)):
            return False
        try:
            found = packing(element.indices[0], outer, inner, column, columns, self.width)
        except NonArithmeticIndex:
            return False
        self.packed = self.e.pack(constant, found, total)
        return True

    # ---- a tile

    def _tile(self, part: Any, column: Any, batch: dict[Any, Expression], number_: Any) -> list[Statement]:
        """`height` rows and `width` columns. Without packing, the columns beyond the last panel are done by
        themselves."""
        row = (self.tiles.first_piece(part) + number_) * self.height
        if self.packed is not None or not self.ragged:
            return self._whole_tile(row, column, batch, self.vectors, self.lanes)
        assert isinstance(self.columns, int)
        rest = self._narrow(row, column, batch, self.columns % self.width)
        if self.columns < self.width:
            return rest
        whole = self._whole_tile(row, column, batch, self.vectors, self.lanes)
        return [tirx.IfThenElse(self._has_columns(column + self.width), sequence(whole), sequence(rest))]

    def _narrow(self, row: Any, column: Any, batch: dict[Any, Expression], left: int) -> list[Statement]:
        """The last columns, less than a panel: whole vectors, then smaller ones."""
        statements: list[Statement] = []
        lanes = self.lanes
        while left:
            if vectors := left // lanes:
                statements += self._whole_tile(row, column, batch, vectors, lanes)
                column, left = column + vectors * lanes, left - vectors * lanes
            lanes //= 2
        return statements

    def _whole_tile(
        self, row: Any, column: Any, batch: dict[Any, Expression], vectors: int, lanes: int
    ) -> list[Statement]:
        """Compute and store a tile of this many vectors."""
        last = None if self._rows_fill_tiles else number(self.rows, self.e.index) - 1
        sums, statements = self._sums(row, column, batch, self.height, vectors, lanes)
        for r, accumulator in enumerate(sums):
            stores = self._stores(accumulator, row + r, column, batch, vectors, lanes)
            statements += stores if last is None else [tirx.IfThenElse(row + r <= last, sequence(stores), None)]
        return statements

    @property
    def _rows_fill_tiles(self) -> bool:
        return isinstance(self.rows, int) and self.rows % self.height == 0

    def _sums(
        self, row: Any, column: Any, batch: dict[Any, Expression], height: int, vectors: int, lanes: int
    ) -> tuple[list[Any], list[Statement]]:
        """The sums of a tile, a buffer for each row, and the statements that compute them. Rows beyond the last one
        repeat it."""
        dtype = self.product.dtype
        alignment = np.dtype(dtype).itemsize * lanes
        sums = [
            tirx.decl_buffer((vectors * lanes,), dtype, f"sums{r}", data_alignment=alignment) for r in range(height)
        ]
        last = None if self._rows_fill_tiles else number(self.rows, self.e.index) - 1
        rows = [
            axis_indices(self.product.rows, row + r if last is None else tirx.Min(row + r, last), self.e.index)
            for r in range(height)
        ]

        def vector_statements(body: Callable[[Any], list[Statement]]) -> list[Statement]:
            return [s for v in range(vectors) for s in _vector(self.e.index, v * lanes, lanes, body)]

        def step(place: Any, inner: dict[Any, Expression]) -> list[Statement]:
            statements: list[Statement] = []
            for r, accumulator in enumerate(sums):
                factor = tirx.Var("left", str(self.product.left.ty))
                statements.append(tirx.Bind(factor, operand_at(self.e, self.product.left, batch, inner, rows[r])))

                def add(at: Any, accumulator: Any = accumulator, factor: Any = factor) -> list[Statement]:
                    element = self._right_element(place, inner, batch, column, at)
                    update, old = self.product.update, tirx.BufferLoad(accumulator, [at])
                    value = substitute_variables(
                        update.value, {update.old: old, update.left: factor, update.right: element}
                    )
                    return [tirx.BufferStore(accumulator, value, [at])]

                statements += vector_statements(add)
            return statements

        def clear(accumulator: Any) -> list[Statement]:
            return vector_statements(lambda at: [tirx.BufferStore(accumulator, tirx.const(0, dtype), [at])])

        statements: list[Statement] = [tirx.AllocBuffer(accumulator) for accumulator in sums]
        statements += [statement for accumulator in sums for statement in clear(accumulator)]
        return sums, [*statements, *inner_loops(self.e, self.product, step)]

    def _right_element(
        self, place: Any, inner: dict[Any, Expression], batch: dict[Any, Expression], column: Any, at: Any
    ) -> Expression:
        """An element of the right operand: of the column `at` of a tile."""
        if self.packed is not None:
            return tirx.BufferLoad(self.packed.buffer, [self.start + place * self.width + at])
        return right_element(self.e, self.product, batch, inner, column + at)

    # ---- the result

    def _stores(
        self, sums: Any, row: Any, column: Any, batch: dict[Any, Expression], vectors: int, lanes: int
    ) -> list[Statement]:
        """Store the results of the epilogue for the sums of a row."""

        def element(at: Any) -> list[Statement]:
            place = {
                **batch,
                **axis_indices(self.product.rows, row, self.e.index),
                **axis_indices(self.product.columns, column + at, self.e.index),
            }
            return self.done([place[v] for v in self.product.stage.axes], [tirx.BufferLoad(sums, [at])])

        statements: list[Statement] = []
        for v in range(vectors):
            start = v * lanes
            stores = _vector(self.e.index, start, lanes, element)
            if self.ragged and self.packed is not None:
                left = tirx.Max(number(self.columns, self.e.index) - (column + start), tirx.const(0, self.e.index))
                rest = loop(left, self.e.index, lambda lane, start=start: element(lane + start))  # type: ignore[misc]
                inside = self._has_columns(column + (start + lanes))
                stores = [tirx.IfThenElse(inside, sequence(stores), sequence(rest))]
            statements += stores
        return statements


@attrs.frozen
class _ThreadShare:
    """Pieces that threads share: each gets as many, the last ones fewer."""

    e: Emission
    total: Extent
    threads: int

    @property
    def _share_size(self) -> Extent:
        return pieces(self.total, self.threads)

    def first_piece(self, thread: Any) -> Any:
        """The first piece of a thread."""
        return tirx.const(0, self.e.index) if self.threads == 1 else thread * number(self._share_size, self.e.index)

    def count(self, thread: Any) -> Extent:
        """The number of them."""
        if self.threads == 1 or (isinstance(self.total, int) and self.total % self.threads == 0):
            return self._share_size
        left = number(self.total, self.e.index) - self.first_piece(thread)
        return tirx.Max(tirx.Min(number(self._share_size, self.e.index), left), tirx.const(0, self.e.index))


def _vector(index: str, start: int, lanes: int, body: Callable[[Any], list[Statement]]) -> list[Statement]:
    """Statements for each lane of one vector."""
    return loop(lanes, index, lambda lane: body(lane + start), "VECTORIZED")


__all__ = ["ProductGenerator"]
