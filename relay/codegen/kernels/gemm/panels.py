"""Panels: the right operand of a product in panels of columns, packed at run time.

    packed[inner, lane] = right[inner, column + lane], and numbers beyond the last column that no result depends on

Where columns lie next to each other in memory, a row of a panel is copied after the other. Where inner elements do, as
in products with a transposed matrix, squares of them are transposed in registers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs
from tvm.ir import TensorLoad
from tvm.sym import Analyzer

from relay.codegen.kernels.elementwise.transposition import run, transpose_square
from relay.codegen.kernels.emission import Emission
from relay.codegen.kernels.gemm.recognition import Axis, Product, size
from relay.codegen.kernels.loops import loop, nested_loops, number, unravel_index, vectors
from relay.codegen.kernels.stage import Extent, substitute_variables
from relay.codegen.tvm.tir import Expression, Statement, sequence, tirx

Inside = Callable[[Any, dict[Any, Expression]], list[Statement]]
"""The statements at a place of the inner axes, from its number in their order, and the variables."""


def inner_loops(e: Emission, product: Product, body: Inside) -> list[Statement]:
    """Loops over the inner axes."""
    *outer, last = product.inner
    return _outer_loops(e, outer, lambda place, found: _last_axis_loop(e, last, 0, last.extent, place, found, body))


def _outer_loops(e: Emission, axes: Sequence[Axis], body: Inside) -> list[Statement]:
    def loop_body(indices: Sequence[Expression]) -> list[Statement]:
        place: Any = tirx.const(0, e.index)
        for axis, index in zip(axes, indices, strict=True):
            place = index if axis is axes[0] else place * number(axis.extent, e.index) + index
        return body(place, {axis.variable: index for axis, index in zip(axes, indices, strict=True)})

    return nested_loops([axis.extent for axis in axes], e.index, loop_body)


def _last_axis_loop(
    e: Emission, last: Axis, first: Any, count: Extent, place: Any, found: dict[Any, Expression], body: Inside
) -> list[Statement]:
    """A loop over a part of the last inner axis."""
    whole = place * number(last.extent, e.index)
    return loop(count, e.index, lambda index: body(whole + (index + first), {**found, last.variable: index + first}))


def operand_at(e: Emission, operand: Expression, *variables: Mapping[Any, Expression]) -> Expression:
    """An operand's element where its variables have these values."""
    axes = {axis: value for part in variables for axis, value in part.items()}
    return e.element(operand, e.axis_values(list(axes), list(axes.values())))


def right_element(
    e: Emission, product: Product, batch: Mapping[Any, Expression], inner: Mapping[Any, Expression], column: Any
) -> Expression:
    """An element of the right operand."""
    return operand_at(e, product.right, batch, inner, axis_indices(product.columns, column, e.index))


def axis_indices(axes: Sequence[Axis], place: Any, index: str) -> dict[Any, Expression]:
    """The variables of axes that are counted through as one."""
    if not axes:
        return {}
    indices = unravel_index(place, [axis.extent for axis in axes], index)
    return {axis.variable: i for axis, i in zip(axes, indices, strict=True)}


@attrs.frozen(eq=False)
class Panel:
    """A panel of `vectors` vectors, of `lanes` elements each, from `column` on."""

    e: Emission
    product: Product
    buffer: Any
    batch: Mapping[Any, Expression]
    column: Expression
    vectors: int
    lanes: int
    ragged: bool  # whether columns may lie beyond the last one

    @property
    def _width(self) -> int:
        return self.vectors * self.lanes

    @property
    def _last(self) -> Expression:
        return number(size(self.product.columns), self.e.index) - 1

    def statements(self) -> list[Statement]:
        """The copy."""
        if not self._is_transposed():
            return inner_loops(self.e, self.product, self._row)
        *outer, last = self.product.inner
        blocks = tirx.indexdiv(number(last.extent, self.e.index), tirx.const(self.lanes, self.e.index))
        first = blocks * self.lanes
        left = number(last.extent, self.e.index) - first
        if isinstance(last.extent, int):
            blocks, left = divmod(last.extent, self.lanes)

        def last_axis_blocks(place: Any, found: dict[Any, Expression]) -> list[Statement]:
            start = place * number(last.extent, self.e.index)

            def block(n: Expression) -> list[Statement]:
                at = n * self.lanes
                return self._squares(start + at, {**found, last.variable: at})

            rest = _last_axis_loop(self.e, last, first, left, place, found, self._row)
            return [*loop(blocks, self.e.index, block), *rest]

        return _outer_loops(self.e, outer, last_axis_blocks)

    def _is_transposed(self) -> bool:
        """True if neighbors along the last inner axis are adjacent in memory, enough of them for a vector."""
        last = self.product.inner[-1]
        if self.product.contiguous or str(self.product.right.ty) in ("bool", "bfloat16"):
            return False
        if self.lanes < 2 or (isinstance(last.extent, int) and last.extent < self.lanes):
            return False
        inner = {axis.variable: axis.variable for axis in self.product.inner}
        found = right_element(self.e, self.product, self.batch, inner, self.column)
        if not isinstance(found, TensorLoad):
            return False
        (position,) = found.indices
        step = Analyzer().simplify(substitute_variables(position, {last.variable: last.variable + 1}) - position)
        return isinstance(step, tirx.IntImm) and int(step.value) == 1

    def _squares(self, place: Expression, inner: dict[Any, Expression]) -> list[Statement]:
        """As many rows of the panel as a vector has elements."""
        statements: list[Statement] = []
        for vector in range(self.vectors):
            start = vector * self.lanes

            def load(lane: int, start: int = start) -> Expression:
                column = self.column + (start + lane)
                column = tirx.Min(column, self._last) if self.ragged else column
                found = right_element(self.e, self.product, self.batch, inner, column)
                return tirx.BufferLoad(found.source, [run(found.indices[0], self.lanes)])

            def store(row: int, columns: Expression, start: int = start) -> Statement:
                return tirx.BufferStore(self.buffer, columns, [run((place + row) * self._width + start, self.lanes)])

            statements += transpose_square(str(self.product.right.ty), self.lanes, load, store)
        return statements

    def _row(self, place: Any, inner: dict[Any, Expression]) -> list[Statement]:
        """One row of the panel."""

        def store(lane: Any) -> list[Statement]:
            found = right_element(self.e, self.product, self.batch, inner, self.column + lane)
            return [tirx.BufferStore(self.buffer, found, [place * self._width + lane])]

        whole = loop(self._width, self.e.index, store, "VECTORIZED")
        if not self.ragged:
            return whole
        columns = size(self.product.columns)
        left = columns % self._width if isinstance(columns, int) else self._last + 1 - self.column
        zero = tirx.const(0, str(self.product.right.ty))  # what lies there may be denormal, which is slow to multiply

        def clear(lane: Any) -> list[Statement]:
            return [tirx.BufferStore(self.buffer, zero, [place * self._width + lane])]

        cleared = loop(self._width, self.e.index, clear, "VECTORIZED")
        rest = [*cleared, *vectors(left, self.lanes, self.e.index, store, often=True)]
        return [tirx.IfThenElse(self.column + self._width <= self._last + 1, sequence(whole), sequence(rest))]


__all__ = ["Panel", "axis_indices", "inner_loops", "operand_at", "right_element"]
