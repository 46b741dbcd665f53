"""Products of matrices."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from relay.ir.dims import Dim, multiply, product
from relay.ir.types import Shape
from relay.operator import Columns
from relay.ops import batching
from relay.ops.notation import (
    Algebra,
    Batch,
    Batching,
    Element,
    Numerics,
    Pattern,
    Relation,
    Stage,
    Tensor,
    Value,
    broadcast_dims,
    dims,
    register_op,
)
from relay.ops.samples import case, cases
from relay.ops.tir import scalar, stages
from relay.ops.tir.tvm_modules import te, tirx
from relay.typecheck import relations


def _inner_product(
    shape: Sequence[int], extent: int, dtype: str, terms: Callable[..., tuple[Element, Element]]
) -> Stage:
    """The sum over k < extent of the product of `terms(k, *index)`, in float32 for smaller floats."""
    if extent == 0:
        return stages.full(shape, 0, dtype)
    wide = "float32" if dtype in ("float16", "bfloat16") else dtype
    k = te.reduce_axis((0, extent), name="k")
    reducer = te.comm_reducer(scalar.add, lambda of: tirx.const(0, of))

    def element(*index: Element) -> Element:
        left, right = terms(k.var, *index)
        return reducer(scalar.multiply(scalar.cast(left, wide), scalar.cast(right, wide)), axis=k)

    stage = te.compute(tuple(shape), element)
    return stage if wide == dtype else te.compute(tuple(shape), lambda *index: scalar.cast(stage(*index), dtype))


def _matmul(x: Stage, y: Stage) -> Stage:
    left, right = dims(x), dims(y)
    has_row, has_column = len(left) > 1, len(right) > 1
    shape = (*broadcast_dims(left[:-2], right[:-2]), *left[-2:-1], *(right[-1:] if has_column else ()))
    batch = len(shape) - has_row - has_column

    def leading_indices(shape: tuple[int, ...], index: Sequence[Element]) -> list[Element]:
        own = shape[:-2]
        return [0 if dim == 1 else i for dim, i in zip(own, index[batch - len(own) : batch], strict=True)]

    def terms(k: Element, *index: Element) -> tuple[Element, Element]:
        row = [index[batch]] if has_row else []
        column = [index[-1]] if has_column else []
        return x(*leading_indices(left, index), *row, k), y(*leading_indices(right, index), k, *column)

    return _inner_product(shape, left[-1], str(x.dtype), terms)


def multiplications_and_additions(shapes: Sequence[Shape], result: Shape) -> Dim:
    """One of each for each term of each element's sum, whose length is the left operand's last dim."""
    return product((2, *result, shapes[0][-1]))


def _swap(matrix: Value) -> Value:
    """The last two axes exchanged."""
    rank = matrix.ndim
    return matrix.op("transpose", axes=(*range(rank - 2), rank - 1, rank - 2))


def _rows(x: Value) -> Value:
    """All axes but the last as one."""
    return x if x.ndim == 2 else x.op("reshape", shape=(product(x.shape[:-1]), x.shape[-1]))


def _matmul_gradient(x: Value, y: Value, out: Value, dout: Value) -> tuple[Value, Value]:
    """D y^T and x^T D, with vectors as matrices and broadcast leading axes summed."""
    left = x.op("expand_dims", axis=0) if x.ndim == 1 else x
    right = y.op("expand_dims", axis=1) if y.ndim == 1 else y
    cotangent = dout.op("expand_dims", axis=-1) if y.ndim == 1 else dout
    cotangent = cotangent.op("expand_dims", axis=-2) if x.ndim == 1 else cotangent
    dx = cotangent.op("dense", right) if right.ndim == 2 else cotangent @ _swap(right)
    if right.ndim == 2 and left.ndim == cotangent.ndim:
        dy = _rows(left).op("transpose") @ _rows(cotangent)  # the sum over leading axes is part of the product
    else:
        dy = _swap(left) @ cotangent
    return _reshape_like(_sum_like(dx, left), x), _reshape_like(_sum_like(dy, right), y)


def _sum_like(cotangent: Value, like: Value) -> Value:
    return cotangent if cotangent.shape == like.shape else cotangent.op("sum_to", shape=like.shape)


def _reshape_like(cotangent: Value, like: Value) -> Value:
    return cotangent if cotangent.shape == like.shape else cotangent.op("reshape", shape=like.shape)


def _product_of_rows(x: Value, product: Callable[[Value], Value]) -> Value:
    """A product of each row of all examples, x: (examples, .., k), as one of a matrix."""
    rows = product(_rows(x))
    return rows if x.ndim == 2 else rows.op("reshape", shape=(*x.shape[:-1], rows.shape[-1]))


def _batched_matmul(batch: Batch, x: Value, y: Value) -> Value:
    """As a product of all rows where the right side is one matrix or vector for all examples, or the left one and the
    right ones are vectors; as sums of products of two vectors; otherwise a product of matrices for each example."""
    ranks = batch.rank(0), batch.rank(1)
    if batch.batched == (True, False) and ranks[1] == 1:
        return x @ y
    if batch.batched == (False, True) and ranks == (1, 1):
        return y @ x
    if ranks == (1, 1) and x.base.is_float:
        return (x * y).op("sum", axis=-1)
    if batch.batched == (True, False) and ranks[1] == 2:
        return _product_of_rows(x, lambda rows: rows @ y)
    if batch.batched == (False, True) and ranks == (2, 1):
        return y.op("dense", x)
    left = x.op("expand_dims", axis=-2) if ranks[0] == 1 else x
    right = y.op("expand_dims", axis=-1) if ranks[1] == 1 else y
    left, right = batching.align(batch, (left, right))
    return _with_shape(left @ right, (batch.size, *batch.tensor.shape))


def _with_shape(value: Value, shape: Shape) -> Value:
    return value if value.shape == shape else value.op("reshape", shape=shape)


def _summed_matmul(x: Value, y: Value) -> Value | None:
    """The sum over t of x_t y_t: one product, in which t belongs to the axis that is summed over."""
    if x.ndim != 3 or y.ndim != 3:
        return None
    rounds, rows, inner = x.shape
    left = x.op("transpose", axes=(1, 0, 2)).op("reshape", shape=(rows, rounds * inner))
    return left @ y.op("reshape", shape=(rounds * inner, y.shape[2]))


def _matmul_columns(x: Shape, y: Shape) -> Columns | None:
    if len(y) < 2:
        return None
    rank = max(len(x), len(y)) - (len(x) == 1)
    return Columns(len(y) - 1, rank - 1, batch=len(y) - 2, rows=(len(x) - 1, len(y) - 2))


@register_op(
    relation=Relation("T:number, T -> T", relations.matmul),
    pattern=Pattern.OUTPUT_FUSABLE,
    compute=_matmul,
    gradient=_matmul_gradient,
    # associative: products of matrices; a vector stands first or last
    algebra=Algebra(associative=True, columns=_matmul_columns, linear=(0, 1), of_booleans="booleans"),
    batching=Batching(rule=_batched_matmul, summed=_summed_matmul),
    numerics=Numerics(
        quantized=lambda x, y: x.op("quantized_dense", y.op("transpose")) if y.ndim == 2 else None,
        work=multiplications_and_additions,
    ),
    sampler=cases(
        case((3,), (3,)),
        case((2, 3), (3,)),
        case((3,), (3, 2)),
        case((2, 3), (3, 4)),
        case((1, 1), (1, 1)),
        case((5, 2, 3), (3, 4)),
        case((5, 2, 3), (5, 3, 4)),
        case((2, 3), (5, 3, 4)),
        case((3,), (5, 3, 4)),
        case((5, 2, 3), (3,)),
        case((5, 1, 2, 3), (4, 3, 2)),
        case((2, 0), (0, 3)),
        case((0, 2), (2, 3)),
        case((0,), (0,)),
    ),
)
def matmul(x: Tensor, y: Tensor) -> Tensor:
    """Matrix product; leading axes are broadcast, and a vector on either side loses its axis.
    x: (T, (*b1, m, k)), y: (T, (*b2, k, n)) -> (T, (*broadcast(b1, b2), m, n)).

    >>> relay.matmul(np.float32([[1, 2], [3, 4]]), np.float32([1, 10]))
    Array([21., 43.], dtype=float32)
    """
    return np.asarray(np.matmul(x, y))


def _dense(x: Stage, weight: Stage) -> Stage:
    shape = (*dims(x)[:-1], dims(weight)[0])
    return _inner_product(
        shape, dims(weight)[1], str(x.dtype), lambda k, *index: (x(*index[:-1], k), weight(index[-1], k))
    )


def _dense_gradient(x: Value, weight: Value, out: Value, dout: Value) -> tuple[Value, Value]:
    cotangent, rows = dout, x
    if x.ndim == 1:
        cotangent, rows = dout.op("expand_dims", axis=0), x.op("expand_dims", axis=0)
    return dout @ weight, _rows(cotangent).op("transpose") @ _rows(rows)


def batched_dense(batch: Batch, x: Value, weight: Value) -> Value:
    """The rule of a product with a transposed weight: one product of all rows, or of all weights where the other side
    is one for all examples; otherwise a product of matrices for each example, in the result's dtype."""
    if not batch.batched[1]:
        return _product_of_rows(x, lambda rows: batch.call(rows, weight))
    shape, columns = (batch.size, *batch.tensor.shape), weight.shape[1]
    if not batch.batched[0]:
        made = batch.call(_rows(x), weight.op("reshape", shape=(multiply(batch.size, columns), weight.shape[2])))
        return _with_shape(batching.split(made, 1, batch, columns), shape)
    rows = _with_shape(x, (batch.size, product(x.shape[1:-1]), x.shape[-1]))
    if rows.base != batch.tensor.base:
        rows, weight = (v.op("cast", dtype=batch.tensor.base) for v in (rows, weight))
    return _with_shape(rows @ _swap(weight), shape)


def _summed_dense(x: Value, weight: Value) -> Value | None:
    """The sum over t of x_t w_t^T: one product, in which t belongs to the axis that is summed over."""
    if x.ndim != 3:
        return None
    left, right = (
        v.op("transpose", axes=(1, 0, 2)).op("reshape", shape=(v.shape[1], multiply(v.shape[0], v.shape[2])))
        for v in (x, weight)
    )
    return left.op("dense", right)


@register_op(
    relation=Relation("T:number, T -> T", relations.dense),
    pattern=Pattern.OUTPUT_FUSABLE,
    compute=_dense,
    gradient=_dense_gradient,
    batching=Batching(rule=batched_dense, summed=_summed_dense),
    algebra=Algebra(columns=lambda x, weight: Columns(0, len(x) - 1, rows=(len(x) - 1, 1)), linear=(0, 1)),
    numerics=Numerics(quantized=lambda x, weight: x.op("quantized_dense", weight), work=multiplications_and_additions),
    sampler=cases(
        case((2, 3), (4, 3)),
        case((3,), (4, 3)),
        case((5, 2, 3), (1, 3)),
        case((2, 0), (3, 0)),
        case((0, 3), (2, 3)),
        case((2, 3), (0, 3)),
    ),
)
def dense(x: Tensor, weight: Tensor) -> Tensor:
    """x times the transposed weight. x: (T, (*b, k)), weight: (T, (n, k)) -> (T, (*b, n)).

    >>> relay.dense(np.float32([[1, 2]]), np.float32([[1, 0], [0, 1], [1, 1]]))
    Array([[1., 2., 3.]], dtype=float32)
    """
    return np.asarray(np.matmul(x, weight.T))
