"""Skinny GEMM: products of a matrix and a few columns, as sums along the rows.

    packed[column, inner] = right[inner, column]
    for tiles of `height` rows:                                         shared among threads
        for vectors of inner: sums[row][column][lane] += left[row, inner] * packed[column, inner]
        out[row, column] = epilogue(the lanes of sums[row][column] added up)

A vector of so few columns would be half empty.
"""

from __future__ import annotations

from typing import Any

from tvm_ffi import structural_walk

from relay.codegen.kernels.clusters import LoneCluster
from relay.codegen.kernels.elementwise.transposition import halves, run
from relay.codegen.kernels.emission import Emission
from relay.codegen.kernels.gemm.panels import axis_indices, operand_at, right_element
from relay.codegen.kernels.gemm.recognition import Product, is_contiguous, registers, size
from relay.codegen.kernels.loops import loop, shared_loop, unravel_index
from relay.codegen.kernels.reduction.reductions import Finish, finish
from relay.codegen.kernels.rules import Plan, Rule
from relay.codegen.kernels.stage import Extent, volume
from relay.codegen.tvm.tir import Expression, Statement, tirx, vector_registers

LEAST_ROWS = 32  # below, packing the columns takes too long
LEAST_VECTORS = 4  # of a row, such that adding lanes up takes a small part of the time


def match(e: Emission, subject: LoneCluster) -> Plan | None:
    """Products of many rows, which lie in memory, and at most half a vector of columns."""
    product = subject.product
    if product is None:
        return None
    rows, columns = size(product.rows), size(product.columns)
    lanes, _ = registers(product.dtype)
    dtypes = {product.dtype, str(product.left.ty), str(product.right.ty)}
    if len(product.inner) != 1 or dtypes not in ({"float32"}, {"float64"}) or not _is_plain(product):
        return None
    (last,) = product.inner
    if not isinstance(columns, int) or not isinstance(last.extent, int):
        return None
    few = isinstance(rows, int) and rows < LEAST_ROWS  # if it is symbolic, other loops would pack the columns, too
    if 2 * columns > lanes or few or last.extent < LEAST_VECTORS * lanes:
        return None
    if not is_contiguous(e, product.left, last.variable):
        return None
    loops = _SkinnyLoops(e, product, finish(e, subject.cluster, ()), int(columns), int(last.extent), lanes)
    reason = f"{columns} columns would not fill half a vector of {lanes}: sums run along the rows"
    return Plan(reason, lambda: _statements(loops, rows))


def _statements(loops: _SkinnyLoops, rows: Extent) -> list[Statement]:
    """All rows."""
    e, product, columns = loops.e, loops.product, loops.columns
    height = max(1, vector_registers()[1] * 3 // 4 // columns)
    packed, made = e.scratch((product.stage.op, "columns"), product.dtype, (columns, loops.padded), None, 0)
    batch = [axis.extent for axis in product.batch]

    def thread_statements(number_: Expression) -> list[Statement]:
        indices = unravel_index(number_, batch, e.index) if batch else []
        found = {axis.variable: i for axis, i in zip(product.batch, indices, strict=True)}

        def row_statements(begin: Any, count: Any) -> list[Statement]:
            tiles = count // height if isinstance(count, int) else tirx.indexdiv(count, tirx.const(height, e.index))
            whole = loop(tiles, e.index, lambda n: loops.tile(packed.buffer, begin + n * height, height, found))
            start = begin + tiles * height
            return [
                *whole,
                *loop(count - tiles * height, e.index, lambda n: loops.tile(packed.buffer, start + n, 1, found)),
            ]

        def part(_: Expression, begin: Expression, end: Expression) -> list[Statement]:
            return row_statements(begin, end - begin)

        shares = shared_loop(
            rows, rows * columns * loops.inner, e.threads, e.index, part,
            lambda: row_statements(tirx.const(0, e.index), rows), height,
        )  # fmt: skip
        return [*loops.pack(packed.buffer, found), *shares]

    return [
        *made,
        *(loop(volume(batch), e.index, thread_statements) if batch else thread_statements(tirx.const(0, e.index))),
    ]


def _is_plain(product: Product) -> bool:
    """True if the factors are only multiplied and added to the sum."""
    casts: list[Any] = []
    structural_walk(product.update.value, ((tirx.Cast, casts.append),))
    return not casts


class _SkinnyLoops:
    def __init__(self, e: Emission, product: Product, done: Finish, columns: int, inner: int, lanes: int) -> None:
        self.e = e
        self.product = product
        self.done = done
        self.columns = columns
        self.inner = inner
        self.lanes = lanes
        self.whole = inner // lanes
        self.left_over = inner % lanes
        self.padded = (self.whole + bool(self.left_over)) * lanes

    def pack(self, buffer: Any, batch: dict[Any, Expression]) -> list[Statement]:
        """Consecutive columns. The last vector of each ends with the last element, and has zeros instead of
        what is in the one before, too."""
        e, (last,) = self.e, self.product.inner

        def element(k: Expression, column: Expression) -> Expression:
            return right_element(e, self.product, batch, {last.variable: k}, column)

        def row(k: Expression) -> list[Statement]:
            def store(column: Expression) -> list[Statement]:
                return [tirx.BufferStore(buffer, element(k, column), [column * self.padded + k])]

            return loop(self.columns, e.index, store)

        def rest(column: Expression) -> list[Statement]:
            def store(lane: Expression) -> list[Statement]:
                at = column * self.padded + self.whole * self.lanes + lane
                found = element(lane + (self.inner - self.lanes), column)
                counts = lane >= self.lanes - self.left_over
                return [tirx.BufferStore(buffer, tirx.Select(counts, found, tirx.const(0, self.product.dtype)), [at])]

            return loop(self.lanes, e.index, store)

        statements = loop(self.whole * self.lanes, e.index, row)
        return statements + (loop(self.columns, e.index, rest) if self.left_over else [])

    def tile(self, packed: Any, first: Expression, height: int, batch: dict[Any, Expression]) -> list[Statement]:
        """This many rows."""
        e, dtype, lanes, (last,) = self.e, self.product.dtype, self.lanes, self.product.inner
        zero = tirx.const(0, e.index)
        statements: list[Statement] = []
        sums: list[list[Any]] = []
        for _ in range(height):
            sums.append([])
            for _ in range(self.columns):
                buffer, made = e.local_elements(dtype, lanes)
                clear = tirx.BufferStore(buffer, tirx.Broadcast(tirx.const(0, dtype), lanes), [run(zero, lanes)])
                statements += [*made, clear]
                sums[-1].append(buffer)
        rows = [axis_indices(self.product.rows, first + r, e.index) for r in range(height)]

        def add(start: Expression, at: Expression, counts: Any = None) -> list[Statement]:
            made: list[Statement] = []
            factors = []
            for row in rows:
                load = operand_at(e, self.product.left, batch, row, {last.variable: start})
                vector: Any = tirx.BufferLoad(load.source, [run(load.indices[0], lanes)])
                if counts is not None:
                    vector = tirx.Select(counts, vector, tirx.Broadcast(tirx.const(0, dtype), lanes))
                factors.append(tirx.Var("left", f"{dtype}x{lanes}"))
                made.append(tirx.Bind(factors[-1], vector))
            for column in range(self.columns):
                right_ = tirx.Var("right", f"{dtype}x{lanes}")
                made.append(tirx.Bind(right_, tirx.BufferLoad(packed, [run(at + column * self.padded, lanes)])))
                for row_sums, factor in zip(sums, factors, strict=True):
                    old = tirx.BufferLoad(row_sums[column], [run(zero, lanes)])
                    made.append(tirx.BufferStore(row_sums[column], old + factor * right_, [run(zero, lanes)]))
            return made

        statements += loop(self.whole, e.index, lambda n: add(n * lanes, n * lanes))
        if self.left_over:
            each = tirx.Ramp(tirx.const(0, "int32"), tirx.const(1, "int32"), lanes)
            counts = tirx.GE(each, tirx.Broadcast(tirx.const(lanes - self.left_over, "int32"), lanes))
            statements += add(tirx.const(self.inner - lanes, e.index), tirx.const(self.whole * lanes, e.index), counts)
        for row, row_sums in zip(rows, sums, strict=True):
            for column, buffer in enumerate(row_sums):
                total, folded = self._sum_lanes(buffer)
                statements += folded
                columns = axis_indices(self.product.columns, tirx.const(column, e.index), e.index)
                place = {**batch, **row, **columns}
                result = tirx.Var("result", dtype)
                statements.append(tirx.Bind(result, total))
                statements += self.done([place[v] for v in self.product.stage.axes], [result])
        return statements

    def _sum_lanes(self, buffer: Any) -> tuple[Expression, list[Statement]]:
        """The sum of all lanes, as in `reduction.folded`."""
        dtype, lanes = self.product.dtype, self.lanes
        total: Expression = tirx.BufferLoad(buffer, [run(tirx.const(0, self.e.index), lanes)])
        statements: list[Statement] = []
        while lanes > 1:
            vector = tirx.Var("lanes", f"{dtype}x{lanes}")
            statements.append(tirx.Bind(vector, total))
            lower, upper = halves(vector, lanes)
            total, lanes = lower + upper, lanes // 2
        return total, statements


RULE = Rule("skinny_gemm", 80, match)
