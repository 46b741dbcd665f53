"""Tiles of a product with rows or columns of symbolic size.

    for panels of `width` columns:
        packed[inner, width] = right[inner, columns]          if many rows use it, or columns end within the panel
        panel, stride = packed, width  or  right + column, the length of its rows
        for tiles of `height` rows, then for what is left one tile of the fewest rows that hold it:
            sums[height][width] += left[row r, inner] * panel[inner * stride + column]
            tile[height, width] = sums
            out[rows, columns] = epilogue(tile)               of the rows and columns that are there

So that the code is no longer than that for static sizes, a tile is the same whether its panel is packed or not, and its
epilogue is a loop.
"""

from __future__ import annotations

from typing import Any

from tvm.sym import Analyzer

from relay.codegen.kernels.emission import Emission, Place
from relay.codegen.kernels.gemm.panels import Panel, axis_indices, right_element
from relay.codegen.kernels.gemm.recognition import PACKED_ROWS, Product, registers, size, tile_height
from relay.codegen.kernels.gemm.tiles import ProductGenerator
from relay.codegen.kernels.loops import cast, loop, number, vectors
from relay.codegen.kernels.reduction.reductions import Finish
from relay.codegen.kernels.stage import substitute_variables
from relay.codegen.tvm import tir
from relay.codegen.tvm.tir import Expression, Statement, sequence, tirx
from relay.ir.types import BaseType


def few_rows(product: Product) -> int:
    """Rows up to which tiles are half as high as others, and wider, where there may be as few."""
    rows = size(product.rows)
    return tile_height(rows, registers(product.dtype)[1]) // 2 if _may_be_few(product) else 0


def _may_be_few(product: Product) -> bool:
    """True if there may be few rows. The rows of a convolution are places, which are many."""
    return not isinstance(size(product.rows), int) and len(product.inner) == 1


class SymbolicProductGenerator(ProductGenerator):
    """Generates the statements of one product for a number of threads."""

    def __init__(
        self, e: Emission, product: Product, done: Finish, threads: int, packed: bool, height: int | None = None
    ) -> None:
        super().__init__(e, product, done, threads, packed, height)
        self.tile: Any = None
        self.panel: Any = None  # where the right operand is read, and
        self.stride: Any = None  # how far its rows are apart there
        self.source = None if self.ahead or packed else _rows_in_memory(e, product)
        self.may_pack = packed or self.source is None or self.ragged or not isinstance(self.rows, int)
        leaves_over = _may_be_few(product) and self.tiles.threads == 1 and height is None
        rests = (-(-self.height * 3 // 4), -(-self.height // 2)) if leaves_over else ()
        self.rests = tuple(dict.fromkeys(rest for rest in rests if rest < self.height))

    def _memory(self, part: Any) -> list[Statement]:
        """Memory for a panel and a tile."""
        statements: list[Statement] = []
        if not self.ahead and self.may_pack:
            dims = (size(self.product.inner), self.width)
            name = (self.product.stage.op, "packed", self.width)
            self.packed, statements = self.e.scratch(name, str(self.product.right.ty), dims, part, 0, on_stack=False)
        name = (self.product.stage.op, "tile", self.height * self.width)
        self.tile, made = self.e.scratch(name, self.product.dtype, (self.height, self.width), part, 0, on_stack=False)
        return [*statements, *made]

    # ---- the right operand

    def _right_panel(self, column: Any, batch: dict[Any, Expression]) -> list[Statement]:
        if self.source is None:
            return self._copy(column, batch)
        place, step = self.source
        dtype = str(self.product.right.ty)
        zeros = {axis.variable: tirx.const(0, self.e.index) for axis in self.product.inner}
        (start,) = right_element(self.e, self.product, batch, zeros, column).indices
        address, stride = tirx.Var("panel", "int64"), tirx.Var("stride", self.e.index)
        there = place.address + cast(start, "int64") * BaseType(dtype).dtype.itemsize
        length = substitute_variables(step, batch)
        packs = self._packs_panel(column)
        statements: list[Statement] = []
        if self.packed is not None and packs is not None:
            statements.append(tirx.IfThenElse(packs, sequence(self._copy(column, batch)), None))
            there = tirx.Select(packs, self.packed.address, there)
            length = tirx.Select(packs, tirx.const(self.width, self.e.index), length)
        bound = [tirx.Bind(address, there), tirx.Bind(stride, length)]
        elements = number(size(self.product.inner), self.e.index) * stride
        self.panel, declared = tir.view("panel", (elements,), dtype, address)
        self.stride = stride
        return [*statements, *bound, *declared]

    def _packs_panel(self, column: Any) -> Expression | None:
        """The condition under which a panel is copied: None if it never is."""
        conditions: list[Expression] = []
        if self.ragged:
            conditions.append(tirx.Not(self._has_columns(column + self.width)))
        if not isinstance(self.rows, int):
            conditions.append(tirx.GE(number(self.rows, self.e.index), tirx.const(PACKED_ROWS, self.e.index)))
        return tirx.Or(*conditions) if len(conditions) == 2 else conditions[0] if conditions else None

    def _copy(self, column: Any, batch: dict[Any, Expression]) -> list[Statement]:
        assert self.packed is not None
        form = self.vectors, self.lanes, self.ragged
        return Panel(self.e, self.product, self.packed.buffer, batch, column, *form).statements()

    def _right_element(
        self, place: Any, inner: dict[Any, Expression], batch: dict[Any, Expression], column: Any, at: Any
    ) -> Expression:
        if self.source is None:
            return super()._right_element(place, inner, batch, column, at)
        return tirx.BufferLoad(self.panel, [place * self.stride + at])

    # ---- tiles

    def _tiles(self, part: Any, column: Any, batch: dict[Any, Expression]) -> list[Statement]:
        if not self.rests:
            return super()._tiles(part, column, batch)
        rows = number(self.rows, self.e.index)
        whole, start = tirx.Var("whole", self.e.index), tirx.Var("row", self.e.index)
        tiles = tirx.indexdiv(rows + (self.height - 1 - self.rests[0]), tirx.const(self.height, self.e.index))
        rest: list[Statement] = []
        at_least = (*self.rests[1:], 0)
        for height, least in zip(reversed(self.rests), reversed(at_least), strict=True):
            rest = [
                tirx.IfThenElse(
                    rows - start > least,
                    sequence(self._some_rows(start, column, batch, height)),
                    sequence(rest) if rest else None,
                )
            ]
        return [
            tirx.Bind(whole, tiles),
            *loop(whole, self.e.index, lambda n: self._some_rows(n * self.height, column, batch, self.height)),
            tirx.Bind(start, whole * self.height),
            *rest,
        ]

    def _tile(self, part: Any, column: Any, batch: dict[Any, Expression], number_: Any) -> list[Statement]:
        row = (self.tiles.first_piece(part) + number_) * self.height
        return self._some_rows(row, column, batch, self.height)

    def _some_rows(self, row: Any, column: Any, batch: dict[Any, Expression], height: int) -> list[Statement]:
        """Compute and store a tile of this many rows, of which the first is there."""
        e, width = self.e, self.width
        sums, statements = self._sums(row, column, batch, height, self.vectors, self.lanes)
        for r, accumulator in enumerate(sums):
            for v in range(self.vectors):
                start = r * width + v * self.lanes

                def keep(lane: Any, start: int = start, v: int = v, accumulator: Any = accumulator) -> list[Statement]:
                    element = tirx.BufferLoad(accumulator, [lane + v * self.lanes])
                    return [tirx.BufferStore(self.tile.buffer, element, [lane + start])]

                statements += loop(self.lanes, e.index, keep, "VECTORIZED")
        count: Any = height
        if not self._rows_fill_tiles:
            count = tirx.Min(number(self.rows, e.index) - row, tirx.const(height, e.index))
        columns: Any = width
        if self.ragged:
            columns = tirx.Min(number(self.columns, e.index) - column, tirx.const(width, e.index))

        def finish(r: Any) -> list[Statement]:
            found = {**batch, **axis_indices(self.product.rows, row + r, e.index)}

            def element(at: Any) -> list[Statement]:
                place = {**found, **axis_indices(self.product.columns, column + at, e.index)}
                sum_ = tirx.BufferLoad(self.tile.buffer, [r * width + at])
                return self.done([place[v] for v in self.product.stage.axes], [sum_])

            return vectors(columns, self.lanes, e.index, element, often=True)

        return [*statements, *loop(count, e.index, finish)]


def _rows_in_memory(e: Emission, product: Product) -> tuple[Place, Expression] | None:
    """The place of the right operand in memory, and the distance of its rows, if its columns are adjacent and its
    rows equally far apart; None if it has to be copied."""
    if not product.contiguous or len(product.inner) != 1:
        return None
    ((tensor, _),) = e.memory_reads(product.right)
    place = e.places[tensor.op, int(tensor.value_index)]
    batch = {axis.variable: axis.variable for axis in product.batch}
    column, inner = tirx.Var("column", e.index), tirx.Var("inner", e.index)
    variable = product.inner[0].variable
    if place.address is None or place.lanes != 1:
        return None
    (position,) = right_element(e, product, batch, {variable: inner}, column).indices
    step = Analyzer().simplify(substitute_variables(position, {inner: inner + 1}) - position)
    used = tirx.analysis.undefined_vars(tirx.Evaluate(step), [])
    if any(v.same_as(inner) or v.same_as(column) for v in used):
        return None
    return place, step


__all__ = ["SymbolicProductGenerator", "few_rows"]
