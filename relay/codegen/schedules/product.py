"""Sums of products, such as matrix products and convolutions, written out as loops: tiles of the result stay in
registers while the inner axes are run through.

    for each batch, for panels of `width` columns:            shared among threads, or the rows are
        packed[inner, width] = right[inner, columns]          if many rows use it; zeros beyond the last column
        for tiles of `height` rows:
            sums[height][width] = 0                           in registers
            for inner: sums[r] += left[row r, inner] * right[inner, columns]
            out[rows, columns] = epilogue(sums)               what lies beyond the last row or column is not stored

This is the outer half of Goto and van de Geijn's algorithm (Anatomy of High-Performance Matrix Multiplication, 2008):
a packed panel fits the second-level cache for thousands of inner elements, so the inner axes are not cut, and rows are
read in place. With few rows the right operand is read where it lies, in panels as wide as the registers hold.
Packing the windows of a convolution makes it such a product.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import attrs
import numpy as np
from tvm.ir.expr import TensorLoad
from tvm.sym import Analyzer
from tvm_ffi import structural_map, structural_walk

from relay.codegen import tir
from relay.codegen.schedules.stage import REDUCE, Stage, registers
from relay.codegen.tir import Expression, Statement, tirx

PARALLEL_PRODUCTS = 1 << 20  # multiplications from which a second thread pays
PACKED_ROWS = 64  # rows from which the right operand is packed also where its columns lie next to each other
FEW_ROWS = 4  # rows below which packing the right operand costs more than it saves
NARROW = 24  # columns up to which it pays to pack those of several axes as one

_SERIAL, _PARALLEL, _VECTORIZED = tirx.ForKind.SERIAL, tirx.ForKind.PARALLEL, tirx.ForKind.VECTORIZED


@attrs.frozen(eq=False)
class Axis:
    """An axis of the product: its variable in the stage, and its extent."""

    variable: Any
    extent: int


@attrs.frozen(eq=False)
class Update:
    """What a sum becomes: an expression of three variables, the sum so far and two factors."""

    value: Expression
    old: Any
    left: Any
    right: Any


@attrs.frozen(eq=False)
class Product:
    """out[batch, rows, columns] = epilogue(sum over inner of left[batch, rows, inner] * right[batch, inner, columns]).

    Several axes of one kind are counted through as one, row major.
    """

    batch: tuple[Axis, ...]
    rows: tuple[Axis, ...]
    columns: tuple[Axis, ...]
    inner: tuple[Axis, ...]
    left: Expression
    right: Expression
    update: Update
    sums: Any  # the buffer of the sums, which the epilogue reads
    epilogue: Statement  # stores one element
    contiguous: bool  # whether columns of the right operand lie next to each other

    @property
    def dtype(self) -> str:
        return str(self.sums.dtype)


def size(axes: Sequence[Axis]) -> int:
    """The product of the extents."""
    return math.prod(axis.extent for axis in axes)


def recognise(s: Any, stage: Stage, epilogue: Stage | None) -> Product | None:
    """The product that a stage of a schedule is, with what is computed from each of its elements; None if it is none,
    or one that other schedules suit better."""
    if not stage.reduced or not stage.spatial or stage.outputs != 1 or 0 in (*stage.spatial, *stage.reduced):
        return None
    block = s.get(s.get_sblock(stage.name))
    product = _multiplication(block.body)
    if product is None or str(stage.output.dtype) in ("int64", "uint64"):
        return None
    factors = tuple(_uncast(factor) for factor in (product.a, product.b))
    spatial = [Axis(axis.var, int(axis.dom.extent)) for axis in block.iter_vars if axis.iter_type != REDUCE]
    inner = tuple(Axis(axis.var, int(axis.dom.extent)) for axis in block.iter_vars if axis.iter_type == REDUCE)
    used = [_variables(factor) for factor in factors]
    last = spatial[-1].variable
    if (last in used[0]) == (last in used[1]):
        return None
    right_at = 0 if last in used[0] else 1
    left, right = factors[1 - right_at], factors[right_at]
    if any(axis.variable not in used[0] or axis.variable not in used[1] for axis in inner):
        return None
    rows = tuple(axis for axis in spatial if axis.variable not in used[right_at])
    outer = [axis for axis in spatial if axis.variable in used[right_at]]
    columns = [outer.pop()]
    contiguous = _contiguous(right, columns[0].variable)
    last_axis = len(spatial) - 1
    while (
        outer
        and columns[0].extent <= NARROW
        and size(rows) >= PACKED_ROWS
        and outer[-1] is spatial[last_axis - len(columns)]
        and outer[-1].variable not in used[1 - right_at]
    ):
        columns.insert(0, outer.pop())
        contiguous = False
    if size(columns) < 4 or (not contiguous and size(rows) < FEW_ROWS):
        return None
    store = block.body
    finish = tirx.BufferStore(store.buffer, tirx.BufferLoad(store.buffer, list(store.indices)), store.indices)
    if epilogue is not None:
        after = s.get(s.get_sblock(epilogue.name))
        finish = replaced(after.body, {a.var: b.variable for a, b in zip(after.iter_vars, spatial, strict=True)})
    return Product(
        tuple(outer),
        rows,
        tuple(columns),
        inner,
        left,
        right,
        _update(store, right_at),
        stage.output,
        finish,
        contiguous,
    )


def _multiplication(body: Statement) -> Any:
    """What a statement adds to an element, if that is a product."""
    total = _uncast(body.value) if isinstance(body, tirx.BufferStore) else None
    if not isinstance(total, tirx.Add):
        return None
    old, added = _uncast(total.a), _uncast(total.b)
    is_sum = isinstance(old, TensorLoad) and old.source.same_as(body.buffer)
    return added if is_sum and isinstance(added, tirx.Mul) else None


def _uncast(expression: Expression) -> Expression:
    while isinstance(expression, tirx.Cast):
        expression = expression.value
    return expression


def _cast_as(expression: Expression, inner: Expression) -> Expression:
    """An expression with the casts of another one."""
    return tirx.Cast(expression.ty, _cast_as(expression.value, inner)) if isinstance(expression, tirx.Cast) else inner


def _update(body: Statement, right_at: int) -> Update:
    """What a statement that adds a product does with the sum and the factors."""
    total, product = _uncast(body.value), _multiplication(body)
    old = tirx.Var("old", str(body.buffer.dtype))
    factors = [tirx.Var("factor", str(_uncast(factor).ty)) for factor in (product.a, product.b)]
    multiplied = tirx.Mul(_cast_as(product.a, factors[0]), _cast_as(product.b, factors[1]))
    added = tirx.Add(_cast_as(total.a, old), _cast_as(total.b, multiplied))
    return Update(_cast_as(body.value, added), old, factors[1 - right_at], factors[right_at])


def _variables(expression: Expression) -> set[Any]:
    found: set[Any] = set()
    structural_walk(expression, ((tirx.Var, found.add),))
    return found


def _contiguous(operand: Expression, variable: Any) -> bool:
    """Whether an operand is an array that a variable runs through element by element."""
    if not isinstance(operand, TensorLoad):
        return False
    *others, last = operand.indices
    step = Analyzer().simplify(replaced(last, {variable: variable + 1}) - last)
    return getattr(step, "value", None) == 1 and not any(variable in _variables(index) for index in others)


def replaced(node: Any, mapping: Mapping[Any, Expression]) -> Any:
    """An expression or statement with expressions for variables."""
    return structural_map(node, (tirx.Var, lambda variable: mapping.get(variable, variable)))


def _index(number: int) -> Expression:
    return tir.integer(number, "int32")


def _loop(name: str, extent: Any, body: Callable[[Any], Sequence[Statement]], kind: Any = _SERIAL) -> Statement:
    variable = tirx.Var(name, "int32")
    count = _index(extent) if isinstance(extent, int) else extent
    return tirx.For(variable, _index(0), count, kind, tir.sequence(list(body(variable))))


def _pieces(total: int, size: int) -> int:
    return -(-total // size)


class Generator:
    """Generates the statements of one product."""

    def __init__(self, product: Product, threads: int) -> None:
        self.product = product
        self.rows, self.columns = size(product.rows), size(product.columns)
        self.lanes, accumulators = registers(product.dtype)
        self.height = _height(self.rows, accumulators)
        self.vectors = max(1, min(accumulators // self.height, _pieces(self.columns, self.lanes)))
        self.width = self.vectors * self.lanes
        self.ragged = self.columns % self.width != 0
        tiles, panels = _pieces(self.rows, self.height), _pieces(self.columns, self.width)
        if self.rows * self.columns * size(product.inner) < PARALLEL_PRODUCTS:
            threads = 1
        self.parts = min(threads, max(panels, tiles))
        by_panel = panels >= self.parts
        self.panels = _Share(panels, self.parts if by_panel else 1)
        self.tiles = _Share(tiles, 1 if by_panel else self.parts)
        self.packed: Any = None
        if not product.contiguous or self.rows >= PACKED_ROWS:
            self.packed = tir.buffer("packed", (self.parts, size(product.inner), self.width), str(product.right.ty))

    def statements(self) -> list[Statement]:
        """The whole product."""
        body = self._part(_index(0)) if self.parts == 1 else [_loop("part", self.parts, self._part, _PARALLEL)]
        for axis in reversed(self.product.batch):
            body = [_loop("batch", axis.extent, partial(_at, tir.sequence(body), axis.variable))]
        return [tirx.AllocBuffer(self.packed), *body] if self.packed is not None else body

    def _part(self, part: Any) -> list[Statement]:
        """What one thread does."""

        def panel(number: Any) -> list[Statement]:
            column = (self.panels.first(part) + number) * self.width
            tiles = _loop("tile", self.tiles.count(part), partial(self._tile, part, column))
            return [tiles] if self.packed is None else [self._pack(part, column), tiles]

        return [_loop("panel", self.panels.count(part), panel)]

    # ---- the operands

    def _inner(self, body: Callable[[Any, dict[Any, Expression]], list[Statement]]) -> Statement:
        """Loops over the inner axes; `body` gets the place in their order, and the variables."""
        axes = self.product.inner

        def level(depth: int, place: Any, found: dict[Any, Expression]) -> list[Statement]:
            if depth == len(axes):
                return body(place, found)

            def inside(index: Any) -> list[Statement]:
                here = index if depth == 0 else place * axes[depth].extent + index
                return level(depth + 1, here, {**found, axes[depth].variable: index})

            return [_loop("inner", axes[depth].extent, inside)]

        return level(0, _index(0), {})[0]

    def _right(self, inner: Mapping[Any, Expression], column: Any) -> Expression:
        return replaced(self.product.right, {**inner, **_unravelled(self.product.columns, column)})

    def _pack(self, part: Any, column: Any) -> Statement:
        """Copy a panel of the right operand."""
        last, zero = _index(self.columns - 1), tirx.const(0, str(self.product.right.ty))

        def row(place: Any, inner: dict[Any, Expression]) -> list[Statement]:
            def whole(lane: Any) -> list[Statement]:
                return [tirx.BufferStore(self.packed, self._right(inner, column + lane), [part, place, lane])]

            def guarded(lane: Any) -> list[Statement]:
                element = self._right(inner, tirx.Min(column + lane, last))
                value = tirx.Select(column + lane <= last, element, zero)
                return [tirx.BufferStore(self.packed, value, [part, place, lane])]

            vectors = _loop("lane", self.width, whole, _VECTORIZED)
            if not self.ragged:
                return [vectors]
            inside = column + self.width <= self.columns
            return [tirx.IfThenElse(inside, vectors, _loop("lane", self.width, guarded))]

        return self._inner(row)

    # ---- a tile

    def _tile(self, part: Any, column: Any, number: Any) -> list[Statement]:
        """`height` rows and `width` columns. Without packing, the columns beyond the last panel are done by
        themselves."""
        row = (self.tiles.first(part) + number) * self.height
        whole = tir.sequence(self._sums(part, row, column, self.vectors, self.lanes))
        if self.packed is not None or not self.ragged:
            return [whole]
        rest = tir.sequence(self._narrow(part, row, column))
        return [
            rest if self.columns < self.width else tirx.IfThenElse(column + self.width <= self.columns, whole, rest)
        ]

    def _narrow(self, part: Any, row: Any, column: Any) -> list[Statement]:
        """The last columns, less than a panel: whole vectors, then smaller ones."""
        statements: list[Statement] = []
        left, lanes = self.columns % self.width, self.lanes
        while left:
            if vectors := left // lanes:
                statements += self._sums(part, row, column, vectors, lanes)
                column, left = column + vectors * lanes, left - vectors * lanes
            lanes //= 2
        return statements

    def _sums(self, part: Any, row: Any, column: Any, vectors: int, lanes: int) -> list[Statement]:
        """Compute and store a tile of so many vectors."""
        dtype = self.product.dtype
        alignment = np.dtype(dtype).itemsize * lanes
        sums = [
            tirx.decl_buffer((vectors * lanes,), dtype, f"sums{r}", data_alignment=alignment)
            for r in range(self.height)
        ]
        last = None if self.rows % self.height == 0 else _index(self.rows - 1)
        rows = [
            _unravelled(self.product.rows, row + r if last is None else tirx.Min(row + r, last))
            for r in range(self.height)
        ]

        def each(body: Callable[[Any], Statement]) -> list[Statement]:
            return [_vector(v * lanes, lanes, body) for v in range(vectors)]

        def step(place: Any, inner: dict[Any, Expression]) -> list[Statement]:
            statements: list[Statement] = []
            for r, accumulator in enumerate(sums):
                factor = tirx.Var("left", str(self.product.left.ty))
                statements.append(tirx.Bind(factor, replaced(self.product.left, {**inner, **rows[r]})))

                def add(at: Any, accumulator: Any = accumulator, factor: Any = factor) -> Statement:
                    if self.packed is None:
                        element = self._right(inner, column + at)
                    else:
                        element = tirx.BufferLoad(self.packed, [part, place, at])
                    update, old = self.product.update, tirx.BufferLoad(accumulator, [at])
                    value = replaced(update.value, {update.old: old, update.left: factor, update.right: element})
                    return tirx.BufferStore(accumulator, value, [at])

                statements += each(add)
            return statements

        def clear(accumulator: Any) -> list[Statement]:
            return each(lambda at: tirx.BufferStore(accumulator, tirx.const(0, dtype), [at]))

        statements: list[Statement] = [tirx.AllocBuffer(accumulator) for accumulator in sums]
        statements += [statement for accumulator in sums for statement in clear(accumulator)]
        statements.append(self._inner(step))
        for r, accumulator in enumerate(sums):
            stores = tir.sequence(self._stores(accumulator, row + r, column, vectors, lanes))
            statements.append(stores if last is None else tirx.IfThenElse(row + r <= last, stores, None))
        return statements

    # ---- the result

    def _stores(self, sums: Any, row: Any, column: Any, vectors: int, lanes: int) -> list[Statement]:
        """Store what the epilogue makes of the sums of a row."""

        def element(at: Any) -> Statement:
            place = {**_unravelled(self.product.rows, row), **_unravelled(self.product.columns, column + at)}
            store = replaced(self.product.epilogue, place)

            def summed(load: Any) -> Any:
                return tirx.BufferLoad(sums, [at]) if load.source.same_as(self.product.sums) else load

            return tirx.BufferStore(store.buffer, structural_map(store.value, (TensorLoad, summed)), store.indices)

        statements: list[Statement] = []
        for v in range(vectors):
            start = v * lanes
            stores = _vector(start, lanes, element)
            if self.packed is not None and self.ragged:
                left = tirx.Max(_index(self.columns) - (column + start), _index(0))
                rest = _loop("lane", left, partial(_one, element, start))
                stores = tirx.IfThenElse(column + (start + lanes) <= self.columns, stores, rest)
            statements.append(stores)
        return statements


@attrs.frozen
class _Share:
    """Pieces that threads share: each gets as many, the last ones fewer."""

    total: int
    threads: int

    @property
    def _each(self) -> int:
        return _pieces(self.total, self.threads)

    def first(self, thread: Any) -> Any:
        """The first piece of a thread."""
        return _index(0) if self.threads == 1 else thread * self._each

    def count(self, thread: Any) -> Any:
        """How many it has."""
        if self.total % self.threads == 0:
            return _index(self._each)
        return tirx.Max(tirx.Min(_index(self._each), _index(self.total) - thread * self._each), _index(0))


def _at(body: Statement, variable: Any, index: Any) -> list[Statement]:
    return [replaced(body, {variable: index})]


def _one(body: Callable[[Any], Statement], start: int, lane: Any) -> list[Statement]:
    return [body(start + lane)]


def _vector(start: int, lanes: int, body: Callable[[Any], Statement]) -> Statement:
    """A statement for each lane of one vector."""
    return _loop("lane", lanes, partial(_one, body, start), _VECTORIZED if lanes > 1 else _SERIAL)


def _unravelled(axes: Sequence[Axis], place: Any) -> dict[Any, Expression]:
    """The variables of axes that are counted through as one."""
    found: dict[Any, Expression] = {}
    for axis in reversed(axes[1:]):
        found[axis.variable] = tirx.floormod(place, axis.extent)
        place = tirx.floordiv(place, axis.extent)
    if axes:
        found[axes[0].variable] = place
    return found


def _height(rows: int, accumulators: int) -> int:
    """Rows of a tile: as many as leave at least two vectors for each, such that few rows are computed in vain."""
    most = accumulators // 2
    if rows <= most:
        return rows
    return min(range(max(1, most // 2), most + 1), key=lambda height: (_pieces(rows, height) * height, -height))
