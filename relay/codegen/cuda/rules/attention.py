"""Attention in one pass: products of queries and keys, their softmax, and its product with values, in one kernel.

    y[i] = sum over j of w(exp(s[i, j])) v[j] / sum over j of exp(s[i, j])          s[i, j] = f(q[i] . k[j])

A block of threads has some queries, and takes the keys and values in parts, so that the scores s are never in memory as
a whole. The sums are kept for the highest score so far, and scaled down where a part has a higher one (Milakov and
Gimelshein, 2018). f and w are elementwise, as masks are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from relay.codegen.cuda.rules.epilogues import matching_axes
from relay.codegen.cuda.rules.products import Factors, factors
from relay.codegen.kernels.emission import Emission, Place, key
from relay.codegen.kernels.stage import (
    LOAD,
    Extent,
    extent,
    has_equal_extents,
    is_choice,
    is_compute,
    loads,
    stage_of,
    volume,
)
from relay.codegen.tvm.tir import tirx
from relay.ir.types import BaseType
from relay.ops.tir.stages import ROW_SOFTMAX

NAME = "attention"
"""The rule's."""

QUERIES, SHARE = 32, 8
"""The queries of a block, and the threads that share one."""

THREADS = QUERIES * SHARE

PARTS = 32, 16, 8
"""Keys that are in shared memory at once, as many as fit."""

SHARED_BYTES = 48 * 1024

WIDEST = 128
"""The most elements of a query, and of a value."""

EXPONENTIALS = {"float32": "expf", "float64": "exp"}


@attrs.frozen(eq=False)
class Attention:
    """The operations of attention: the product that scores are made of, the scores, their softmax, and the product of
    weights, its left factor, with values. `inside` are those that only the kernel computes, as far as it has to."""

    product: Factors
    scores: Any
    softmax: Any
    output: Factors
    inside: frozenset[Any]

    @property
    def dtype(self) -> str:
        return self.output.stage.dtypes[0]

    @property
    def depth(self) -> Extent:
        """The elements of a query."""
        return volume([d for _, d in self.product.inner])

    @property
    def width(self) -> Extent:
        """The elements of a value."""
        return volume([d for _, d in self.output.columns])

    def part(self) -> int | None:
        """The keys that are in shared memory at once; None if not even few fit."""
        size = BaseType(self.dtype).dtype.itemsize
        for keys in PARTS:
            elements = QUERIES * (self.depth + 1) + keys * (self.depth + 1 + self.width) + 2 * QUERIES * (keys + 1)
            if elements * size <= SHARED_BYTES:
                return keys
        return None


def attention(e: Emission, ops: Sequence[Any], results: Mapping[Any, None], zeros: Sequence[Any]) -> Attention | None:
    """The attention among operations, those first that others read, of which some are results; None if there is none,
    or if something else reads what is inside of it. `zeros` are tensors that are 0 everywhere."""
    softmax = [op for op in ops if is_compute(op) and op.tag == ROW_SOFTMAX]
    products = [op for op in ops if is_compute(op) and op.reduce_axis and op.num_outputs == 1]
    if len(softmax) != 1:
        return None
    in_memory = [*softmax, *products, *(op for op in ops if not is_compute(op))]
    outputs = [op.output(n) for op in in_memory for n in range(op.num_outputs) if (op, n) not in e.places]
    assumed = {key(tensor): Place(None, tuple(map(extent, tensor.shape))) for tensor in outputs}
    e.places.update(assumed)
    try:
        first = [op for op in products if _matches(e, op, _operand_of(softmax[0]))]
        last = [op for op in products if _reads(e, op, softmax[0])]
        product, output = (_product(e, found[0]) if len(found) == 1 else None for found in (first, last))
    finally:
        for name in assumed:
            del e.places[name]
    if product is None or output is None or not _is_kept(output, softmax[0], zeros):
        return None
    inside = _operations_between(ops, first[0], last[0])
    found = Attention(product, _operand_of(softmax[0]), softmax[0], output, inside)
    if any(op in results for op in inside) or not _has_shapes_of_attention(found):
        return None
    return found if found.part() is not None else None


def _reads(e: Emission, op: Any, other: Any) -> bool:
    """True if a stage reads the result of another one, in memory."""
    return any(tensor.op.same_as(other) for tensor, _ in e.reads(stage_of(op)))


def _product(e: Emission, op: Any) -> Factors | None:
    stage = stage_of(op)
    return factors(e, stage) if stage.is_reduction and stage.dtypes[0] in EXPONENTIALS else None


def _operand_of(softmax: Any) -> Any:
    """The operation that softmax is of."""
    exponentials = next(tensor for tensor, _ in loads(softmax.body[0]))
    difference = next(tensor for tensor, _ in loads(exponentials.op.body[0]))
    return next(tensor for tensor, _ in loads(difference.op.body[0])).op


def _matches(e: Emission, source: Any, reader: Any) -> bool:
    """True if a reader is the source, or reads it at its own indices."""
    if source.same_as(reader):
        return True
    if not is_compute(reader) or reader.reduce_axis or source.num_outputs != 1:
        return False
    stage = stage_of(source)
    return matching_axes(e, stage, stage_of(reader)) == tuple(range(len(stage.axes)))


def _is_kept(output: Factors, softmax: Any, zeros: Sequence[Any]) -> bool:
    """True if the left factor is the result of softmax, or 0 instead: then it may be divided by the sum afterwards."""
    factor, axes = output.left, output.stage.axes
    if sum(bool(tensor.op.same_as(softmax)) for tensor, _ in loads(factor)) != 1 or len(output.inner) != 1:
        return False
    if isinstance(factor, tirx.Select):
        factor, other = factor.true_value, factor.false_value
    elif hasattr(factor, "op") and is_choice(factor):
        _, factor, other = factor.args
    else:
        other = None
    wanted = (*axes[:-1], output.inner[0][0])
    if other is not None and not any(_is_load(other, zero.op) for zero in zeros):
        return False
    if not _is_load(factor, softmax):
        return False
    return all(i.same_as(v) for i, v in zip(factor.args[1:], wanted, strict=True))


def _is_load(expression: Any, op: Any) -> bool:
    """True if an expression is an element of an operation's result."""
    is_load = getattr(getattr(expression, "op", None), "name", "") == LOAD
    return is_load and bool(expression.args[0].op.same_as(op))


def _operations_between(ops: Sequence[Any], first: Any, last: Any) -> frozenset[Any]:
    """The operations that depend on `first`, and not by way of `last`."""
    found = {first}
    for op in ops:
        if not op.same_as(last) and any(tensor.op in found for tensor in op.input_tensors):
            found.add(op)
    return frozenset(found)


def _has_shapes_of_attention(found: Attention) -> bool:
    """True if rows are queries in both products, and keys columns of the one and terms of the other."""
    product, output = found.product, found.output
    axes, others = product.stage.axes, output.stage.axes
    if len(axes) != len(others) or len(axes) < 2:
        return False
    extents = product.stage.extents, output.stage.extents
    as_wanted = all(
        [variable for variable, _ in part] == list(wanted)
        for part, wanted in (
            (product.outer, axes[:-2]), (product.rows, axes[-2:-1]), (product.columns, axes[-1:]),
            (output.outer, others[:-2]), (output.rows, others[-2:-1]), (output.columns, others[-1:]),
        )
    )  # fmt: skip
    return (
        as_wanted
        and all(isinstance(n, int) and n <= WIDEST for n in (found.depth, found.width))
        and has_equal_extents(extents[0][:-1], extents[1][:-1])
        and has_equal_extents(extents[0][-1:], [output.inner[0][1]])
    )


__all__ = ["EXPONENTIALS", "NAME", "QUERIES", "SHARE", "THREADS", "Attention", "attention"]
