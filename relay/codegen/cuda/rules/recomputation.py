"""Recomputation: products and reductions of a matrix that is never in memory as a whole, but computed again in parts.

    y[b, r, c] = sum over t of F(p[b, r, t], ..) g[b, t, c]
    y[b, r]    = sum or maximum over t of F(p[b, r, t], ..)        p[b, r, t] = sum over d of f[b, r, d] h[b, t, d]

F is elementwise in inner products p, and in whatever else is in memory. The derivative of attention is such: its scores
and weights are p and F, also where t are the queries, which the derivatives for keys and values are sums over.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from relay.codegen.cuda.rules.attention import PARTS, SHARED_BYTES, WIDEST
from relay.codegen.cuda.rules.epilogues import Epilogue
from relay.codegen.cuda.rules.products import Axes, factors
from relay.codegen.cuda.rules.reductions import is_associative
from relay.codegen.kernels.emission import Emission, Place, key
from relay.codegen.kernels.stage import (
    Stage,
    equal_expressions,
    extent,
    is_compute,
    mentions,
    stage_of,
    substitute_variables,
    volume,
)
from relay.codegen.tvm.tir import Expression
from relay.ir.types import BaseType

NAME = "recomputation"
"""The rule's."""

ROWS, SHARE = 32, 8
"""The rows of a block, and the threads that share one."""

THREADS = ROWS * SHARE


@attrs.frozen(eq=False)
class InnerProduct:
    """A product of which a stage computes the elements that it reads: the factor that goes along the rows of the stage,
    the other one, which goes along its terms, both by the stage's axes and the product's own, and these."""

    op: Any
    dtype: str
    of_row: Expression
    of_term: Expression
    axes: Axes

    @property
    def depth(self) -> int:
        """The terms of the product itself."""
        return int(volume([d for _, d in self.axes]))


@attrs.frozen(eq=False)
class Recomputation:
    """A stage that reads inner products: those, its rows and terms, and the axes that both factors have. Of a product,
    `computed` is the factor that reads them, `other` the other one, and `columns` the axes that only that one has."""

    stage: Stage
    inner: tuple[InnerProduct, ...]
    rows: Axes
    terms: Axes
    outer: Axes
    computed: Expression | None = None
    other: Expression | None = None
    columns: Axes = ()

    @property
    def width(self) -> int:
        """The columns; 0 in a reduction."""
        return int(volume([d for _, d in self.columns])) if self.computed is not None else 0

    def part(self) -> int | None:
        """The terms that are in shared memory at once; None if not even few fit."""
        for terms in PARTS:
            taken = sum((ROWS + terms) * (p.depth + 1) * _bytes(p.dtype) for p in self.inner)
            if self.computed is None:
                taken += sum(THREADS * _bytes(dtype) for dtype in self.stage.dtypes)
            else:
                taken += (terms * self.width + ROWS * (terms + 1)) * _bytes(self.stage.dtypes[0])
            if taken <= SHARED_BYTES:
                return terms
        return None


def _bytes(dtype: str) -> int:
    return BaseType(dtype).dtype.itemsize


def inside_of(steps: Sequence[Any], results: Mapping[Any, None], products: Sequence[Any]) -> frozenset[Any]:
    """The operations among steps that need no memory: the inner products, and what is elementwise in them."""
    found = set(products)
    for op in steps:
        if (
            op not in results
            and is_compute(op)
            and not op.reduce_axis
            and not found.isdisjoint(_operations_behind(op, steps))
        ):
            found.add(op)
    return frozenset(found)


def _operations_behind(op: Any, steps: Sequence[Any]) -> set[Any]:
    """The operations that one reads, directly or by way of others that are not among the steps."""
    found: set[Any] = set()
    pending = [op]
    while pending:
        new = {tensor.op for tensor in pending.pop().input_tensors} - found
        found |= new
        pending += new.difference(steps)
    return found


def recomputations(
    e: Emission, steps: Sequence[Any], ends: Mapping[Any, Epilogue], products: Sequence[Any]
) -> dict[Any, Recomputation] | None:
    """The stages among steps that read inner products, by their operations; None if one is not as described above."""
    marks = {key(op.output(0)): Place(None, tuple(map(extent, op.output(0).shape))) for op in products}
    others = [op.output(n) for op in steps for n in range(op.num_outputs) if (op, n) not in e.places]
    marks |= {key(tensor): Place(None, tuple(map(extent, tensor.shape))) for tensor in others}
    e.places.update(marks)
    found: dict[Any, Recomputation] = {}
    try:
        for step in steps:
            op = ends[step].product if step in ends else step
            reads = _products_read(e, op, products)
            if step in ends and len(_products_read(e, step, products)):
                return None
            if not reads:
                continue
            made = _product(e, stage_of(op), products) or _reduction(e, stage_of(op), products)
            if made is None or made.part() is None:
                return None
            found[op] = made
    finally:
        for name in marks:
            del e.places[name]
    return found


def _products_read(e: Emission, op: Any, products: Sequence[Any]) -> list[Any]:
    """The inner products that an operation reads."""
    tensors = [tensor for tensor, _ in e.reads(stage_of(op))] if is_compute(op) else list(op.input_tensors)
    return [product for product in products if any(tensor.op.same_as(product) for tensor in tensors)]


def _product(e: Emission, stage: Stage, products: Sequence[Any]) -> Recomputation | None:
    """A stage that is a product of which one factor reads inner products."""
    found = factors(e, stage)
    if found is None or len(found.inner) != 1:
        return None
    left, right = (_reads_of(e, factor, products) for factor in (found.left, found.right))
    if left is None or right is None or bool(left) == bool(right):
        return None
    computed, other, rows, columns, reads = (
        (found.left, found.right, found.rows, found.columns, left)
        if left
        else (found.right, found.left, found.columns, found.rows, right)
    )
    width = volume([d for _, d in columns])
    if len(rows) != 1 or not isinstance(width, int) or width > WIDEST:
        return None
    inner = _inner_products(e, reads, rows, found.inner)
    if inner is None:
        return None
    return Recomputation(stage, inner, rows, found.inner, found.outer, computed, other, columns)


def _reduction(e: Emission, stage: Stage, products: Sequence[Any]) -> Recomputation | None:
    """A stage that combines what is computed of inner products, row by row."""
    if len(stage.reduced_axes) != 1 or not is_associative(stage.op.body[0].combiner) or stage.op.num_outputs != 1:
        return None
    terms = tuple(zip(stage.reduced_axes, stage.reduced, strict=True))
    reads = _reads_of(e, stage.op.body[0].source[0], products)
    if not reads:
        return None
    first, indices = next(iter(reads.items()))
    found = factors(e, stage_of(first))
    if found is None:
        return None
    places = dict(zip(stage_of(first).axes, indices, strict=True))
    left, right = (substitute_variables(factor, places) for factor in (found.left, found.right))
    space = tuple(zip(stage.axes, stage.extents, strict=True))
    rows = tuple((axis, d) for axis, d in space if mentions(left, axis) != mentions(right, axis))
    inner = _inner_products(e, reads, rows, terms) if len(rows) == 1 else None
    if inner is None:
        return None
    return Recomputation(stage, inner, rows, terms, tuple(pair for pair in space if pair not in rows))


def _reads_of(e: Emission, expression: Expression, products: Sequence[Any]) -> dict[Any, tuple[Any, ...]] | None:
    """The inner products that an expression reads, and at which indices; None if it reads one at several."""
    found: dict[Any, tuple[Any, ...]] = {}
    for tensor, indices in e.memory_reads(expression):
        for product in products:
            if tensor.op.same_as(product):
                before = found.setdefault(product, indices)
                if not all(equal_expressions(i, j) for i, j in zip(before, indices, strict=True)):
                    return None
    return found


def _inner_products(
    e: Emission, reads: Mapping[Any, tuple[Any, ...]], rows: Axes, terms: Axes
) -> tuple[InnerProduct, ...] | None:
    """The products that a stage reads; None unless each has a factor that goes along the rows, and one along the
    terms."""
    ((row, _),), ((term, _),) = rows, terms
    made = []
    for op, indices in reads.items():
        found = factors(e, stage_of(op))
        if found is None:
            return None
        places = dict(zip(found.stage.axes, indices, strict=True))
        left, right = (substitute_variables(factor, places) for factor in (found.left, found.right))
        if mentions(right, row):
            left, right = right, left
        depth = volume([d for _, d in found.inner])
        if not mentions(left, row) or mentions(left, term) or not mentions(right, term) or mentions(right, row):
            return None
        if not isinstance(depth, int) or depth > WIDEST:
            return None
        made.append(InnerProduct(op, found.stage.dtypes[0], left, right, found.inner))
    return tuple(made)


__all__ = [
    "NAME",
    "ROWS",
    "SHARE",
    "THREADS",
    "InnerProduct",
    "Recomputation",
    "inside_of",
    "recomputations",
]
