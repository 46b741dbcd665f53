"""GEMV: products of a vector and a large matrix, whose rows are read as they lie in memory.

    sums[columns] = 0                                       in the first-level cache
    for blocks of `TOGETHER` rows of the matrix:            the columns are shared among threads
        for columns: sums[column] += left[row] * right[row, column], for each row of the block
    out[columns] = epilogue(sums)

Panels of columns in registers would read a short piece of each row, from another page of memory each time.
"""

from __future__ import annotations

from typing import Any

from relay.codegen.kernels.clusters import LoneCluster
from relay.codegen.kernels.emission import Emission
from relay.codegen.kernels.gemm.panels import axis_indices, operand_at, right_element
from relay.codegen.kernels.gemm.recognition import Product, constant_right, registers, size
from relay.codegen.kernels.loops import loop, shared_loop, unravel_index, vectors
from relay.codegen.kernels.reduction.reductions import Finish, finish
from relay.codegen.kernels.rules import Plan, Rule
from relay.codegen.kernels.stage import substitute_variables, volume
from relay.codegen.tvm.tir import Expression, Statement, tirx
from relay.ir.types import BaseType

TOGETHER = 8  # rows that are read at once: streams that the processor follows
LEAST_BYTES = 1 << 20  # of the matrix: smaller ones are in a near cache
LEAST_ROW = 1 << 11  # bytes of its rows


def match(e: Emission, subject: LoneCluster) -> Plan | None:
    """Products of one row and a large matrix that lies in memory."""
    product = subject.product
    if product is None:
        return None
    columns = size(product.columns)
    extents = [axis.extent for axis in (*product.batch, *product.rows, *product.inner)]
    if len(product.inner) != 1 or not all(isinstance(extent, int) for extent in (columns, *extents)):
        return None
    (inner,) = product.inner
    row = columns * BaseType(str(product.right.ty)).dtype.itemsize
    if size(product.rows) != 1 or not product.contiguous or constant_right(e, product) is not None:
        return None
    if row < LEAST_ROW or row * inner.extent < LEAST_BYTES or product.dtype not in ("float32", "float64"):
        return None
    reason = f"one row, and a matrix of {row * inner.extent} bytes: its rows are read in order"
    return Plan(reason, lambda: _statements(e, product, finish(e, subject.cluster, ()), int(columns), row))


def _statements(e: Emission, product: Product, done: Finish, columns: int, row: int) -> list[Statement]:
    """All rows; one of the matrix takes `row` bytes."""
    (inner,) = product.inner
    assert isinstance(inner.extent, int)
    lanes, _ = registers(product.dtype)
    sums, made = e.scratch((product.stage.op, "sums"), product.dtype, (columns,), None, 0)
    batch = [axis.extent for axis in product.batch]
    rows = axis_indices(product.rows, tirx.const(0, e.index), e.index)

    def thread_statements(number_: Expression) -> list[Statement]:
        indices = unravel_index(number_, batch, e.index) if batch else []
        found = {axis.variable: i for axis, i in zip(product.batch, indices, strict=True)}

        def clear(column: Expression) -> list[Statement]:
            return [tirx.BufferStore(sums.buffer, tirx.const(0, product.dtype), [column])]

        def store(column: Expression) -> list[Statement]:
            place = {**found, **rows, **axis_indices(product.columns, column, e.index)}
            return done([place[v] for v in product.stage.axes], [tirx.BufferLoad(sums.buffer, [column])])

        def row_statements(begin: Expression, count: Any) -> list[Statement]:
            def block(first: Expression, height: int) -> list[Statement]:
                places = [{inner.variable: first + r} for r in range(height)]
                factors = [tirx.Var("left", str(product.left.ty)) for _ in places]
                binds = [
                    tirx.Bind(factor, operand_at(e, product.left, found, place, rows))
                    for factor, place in zip(factors, places, strict=True)
                ]

                def add(column: Expression) -> list[Statement]:
                    total: Any = tirx.BufferLoad(sums.buffer, [begin + column])
                    update = product.update
                    for factor, place in zip(factors, places, strict=True):
                        element = right_element(e, product, found, place, begin + column)
                        total = substitute_variables(
                            update.value, {update.old: total, update.left: factor, update.right: element}
                        )
                    return [tirx.BufferStore(sums.buffer, total, [begin + column])]

                return [*binds, *vectors(count, lanes, e.index, add)]

            whole = inner.extent // TOGETHER
            return [
                *vectors(count, lanes, e.index, lambda column: clear(begin + column)),
                *loop(whole, e.index, lambda n: block(n * TOGETHER, TOGETHER)),
                *loop(inner.extent - whole * TOGETHER, e.index, lambda n: block(n + whole * TOGETHER, 1)),
                *vectors(count, lanes, e.index, lambda column: store(begin + column)),
            ]

        def part(_: Expression, begin: Expression, end: Expression) -> list[Statement]:
            return row_statements(begin, end - begin)

        def serial_loop() -> list[Statement]:
            return row_statements(tirx.const(0, e.index), columns)

        return shared_loop(columns, row * inner.extent, e.threads, e.index, part, serial_loop, step=8 * lanes)

    return [
        *made,
        *(loop(volume(batch), e.index, thread_statements) if batch else thread_statements(tirx.const(0, e.index))),
    ]


RULE = Rule("gemv", 70, match)
