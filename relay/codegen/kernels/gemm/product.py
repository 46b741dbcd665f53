"""Matrix products and convolutions as loops: tiles of the result stay in registers over the inner axes.

    for each batch, for panels of `width` columns:            shared among threads, or the rows are
        packed[inner, width] = right[inner, columns]          if many rows use it; zeros beyond the last column
        for tiles of `height` rows:
            sums[height][width] = 0                           in registers
            for inner: sums[r] += left[row r, inner] * right[inner, columns]
            out[rows, columns] = epilogue(sums)               what lies beyond the last row or column is not stored

This is the outer half of Goto and van de Geijn's algorithm (Anatomy of High-Performance Matrix Multiplication, 2008):
a packed panel fits the second-level cache for thousands of inner elements, so the inner axes are not cut, and rows are
read in place. With few rows the right operand is read where it lies, in panels as wide as the registers hold.
Packing the windows of a convolution makes it such a product. A right operand that is a constant is packed before the
program runs (`packing`).

Extents may be symbolic; then it is decided at run time whether to pack and whether to use threads.
"""

from __future__ import annotations

from collections.abc import Callable

from relay.codegen.kernels.clusters import LoneCluster
from relay.codegen.kernels.emission import Emission
from relay.codegen.kernels.gemm.recognition import (
    PACKED_ROWS,
    PARALLEL_PRODUCTS,
    Product,
    pieces,
    registers,
    size,
)
from relay.codegen.kernels.gemm.symbolic_tiles import SymbolicProductGenerator, few_rows
from relay.codegen.kernels.gemm.tiles import ProductGenerator
from relay.codegen.kernels.loops import choose_by_work
from relay.codegen.kernels.reduction.reductions import Finish, finish
from relay.codegen.kernels.rules import Plan, Rule
from relay.codegen.tiling import Tilings
from relay.codegen.tvm.tir import Statement, vector_registers


def match(e: Emission, subject: LoneCluster) -> Plan | None:
    """Products of all other kinds whose rows and columns are of static size."""
    product = subject.product
    if product is None or not _is_static(product):
        return None
    return Plan(
        "a sum of products: tiles of the result stay in registers",
        lambda: _statements(e, product, finish(e, subject.cluster, ())),
        lambda: _tilings(e, product),
    )


def match_symbolic(e: Emission, subject: LoneCluster) -> Plan | None:
    """The same where rows or columns are of symbolic size."""
    product = subject.product
    if product is None or _is_static(product):
        return None
    return Plan(
        "a sum of products of symbolic size: as gemm, where panels and the last tiles are chosen at run time",
        lambda: _symbolic_statements(e, product, finish(e, subject.cluster, ())),
    )


def _is_static(product: Product) -> bool:
    return isinstance(size(product.rows), int) and isinstance(size(product.columns), int)


def _statements(e: Emission, product: Product, done: Finish) -> list[Statement]:
    """The product, with what is computed from each of its elements."""

    def product_statements(threads: int, packed: bool) -> list[Statement]:
        return ProductGenerator(e, product, done, threads, packed).statements()

    many = not product.contiguous or size(product.rows) >= PACKED_ROWS
    if e.choice.packed is not None:
        many = e.choice.packed or not product.contiguous
    if e.choice.parallel is not None:
        return product_statements(e.threads if e.choice.parallel else 1, many)
    return _where_threads_pay(e, product, lambda threads: product_statements(threads, many))


def _symbolic_statements(e: Emission, product: Product, done: Finish) -> list[Statement]:
    """As `_statements`, for rows or columns of symbolic size."""
    rows, few = size(product.rows), few_rows(product)
    many = not product.contiguous or (isinstance(rows, int) and rows >= PACKED_ROWS)

    def statements(threads: int, height: int | None = None) -> list[Statement]:
        return SymbolicProductGenerator(e, product, done, threads, many, height).statements()

    def tiles() -> list[Statement]:
        return _where_threads_pay(e, product, statements)

    if not few:
        return tiles()
    return choose_by_work(rows, few + 1, tiles, lambda: _where_threads_pay(e, product, lambda t: statements(t, few)))


def _where_threads_pay(e: Emission, product: Product, statements: Callable[[int], list[Statement]]) -> list[Statement]:
    """The statements for all threads or for one."""
    if e.threads == 1:
        return statements(1)
    return choose_by_work(product.stage.work, PARALLEL_PRODUCTS, lambda: statements(e.threads), lambda: statements(1))


def _tilings(e: Emission, product: Product) -> Tilings:
    """Other ways to cut the loops of a product."""
    rows, columns = size(product.rows), size(product.columns)
    lanes, _ = registers(product.dtype)
    most = vector_registers()[1] - 3  # for an element of the left operand and a vector of the right one, too
    tiles = [
        (height, vectors)
        for vectors in range(1, min(4, int(pieces(columns, lanes))) + 1)
        for height in dict.fromkeys(min(h, rows) for h in (1, 2, 3, 4, 6, 8, 10, 12, 14))
        if most // 3 <= height * vectors <= most or (height == rows and height * vectors <= most)
    ]
    packed = (True, False) if product.contiguous else (True,)
    return Tilings(tuple(tiles), packed, (True, False) if e.threads > 1 else (False,))


RULE = Rule("gemm", 60, match)
SYMBOLIC_RULE = Rule("symbolic_gemm", 55, match_symbolic)
