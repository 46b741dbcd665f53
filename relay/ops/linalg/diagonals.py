"""Diagonals of matrices: reading them, and making matrices of them."""

from __future__ import annotations

import numpy as np

from relay.errors import ShapeError
from relay.ir import dims as arithmetic
from relay.ir.types import Dim, Shape, show_shape
from relay.operator.axes import carries
from relay.ops import batching
from relay.ops.notation import (
    Algebra,
    Batching,
    Element,
    Pattern,
    Relation,
    Stage,
    Tensor,
    Value,
    dims,
    expansion,
    register_op,
    result_dims,
)
from relay.ops.samples import case, cases
from relay.ops.tir import scalar
from relay.ops.tir.tvm_modules import te, tirx
from relay.typecheck import axes as names
from relay.typecheck.dims import equal, numbers


@carries(names.diagonal)
def _diagonal_shape(shape: Shape, *, offset: int) -> Shape:
    if len(shape) < 2:
        raise ShapeError(f"a diagonal needs a matrix, found the shape {show_shape(shape)}")
    rows, columns = shape[-2:]
    length = arithmetic.minimum(arithmetic.add(rows, min(offset, 0)), arithmetic.subtract(columns, max(offset, 0)))
    return (*shape[:-2], arithmetic.maximum(length, 0) if offset else length)


def _diagonal(x: Stage, offset: int) -> Stage:
    down, right = max(-offset, 0), max(offset, 0)
    result = result_dims(lambda: _diagonal_shape(dims(x), offset=offset))
    return te.compute(result, lambda *index: x(*index[:-1], index[-1] + down, index[-1] + right))


@carries(names.embedding_names)
def _embed_shape(shape: Shape, *, offset: int, shape_of: tuple[Dim, Dim] | None) -> Shape:
    if not shape:
        raise ShapeError("a matrix needs a diagonal with an axis")
    if shape_of is None:
        extent = arithmetic.add(shape[-1], abs(offset))
        return (*shape[:-1], extent, extent)
    wanted = _diagonal_shape((*shape[:-1], *shape_of), offset=offset)
    if not equal(wanted[-1], shape[-1]):
        raise ShapeError(f"diagonal {offset} of a matrix of shape {show_shape(shape_of)} has no {shape[-1]} elements")
    return (*shape[:-1], *shape_of)


def _embed(x: Stage, offset: int, shape_of: tuple[int, int] | None) -> Stage:
    down, right = max(-offset, 0), max(offset, 0)
    result = result_dims(lambda: _embed_shape(dims(x), offset=offset, shape_of=shape_of))
    length = dims(x)[-1]

    def element(*index: Element) -> Element:
        row, column = index[-2] - down, index[-1] - right
        there = tirx.all(scalar.is_zero(row - column), row >= 0, row < length)
        return scalar.guarded_select(there, x(*index[:-2], row), scalar.number(0, str(x.dtype)))

    return te.compute(result, element)


def _diagonal_gradient(x: Value, out: Value, dout: Value, offset: int) -> Value:
    square = x.shape[-1] == x.shape[-2] and offset == 0
    return dout.op("diag_embed", offset=offset, shape_of=None if square else x.shape[-2:])


@register_op(
    relation=Relation("T -> T", _diagonal_shape),
    pattern=Pattern.INJECTIVE,
    compute=_diagonal,
    gradient=_diagonal_gradient,
    algebra=Algebra(linear=(0,)),
    batching=Batching(rule=batching.same_call), sampler=cases(
        case((3, 3)), case((2, 3), offset=1), case((4, 2), offset=-1), case((2, 3, 4)), case((2, 2), offset=5),
        case((0, 3)),
    ),
)  # fmt: skip
def diagonal(x: Tensor, offset: int = 0) -> Tensor:
    """A diagonal of the matrices of the last two axes; `offset` 1 is the one above the main diagonal.
    x: (T, (*b, m, n)) -> (T, (*b, k)).

    >>> relay.diagonal(np.float32([[1, 2], [3, 4]]))
    Array([1., 4.], dtype=float32)
    """
    return np.array(np.diagonal(x, offset, -2, -1))


@register_op(
    sizes=frozenset({"shape_of"}),
    relation=Relation("T:number -> T", _embed_shape),
    pattern=Pattern.INJECTIVE,
    compute=_embed,
    gradient=lambda x, out, dout, offset, shape_of: dout.op("diagonal", offset=offset),
    algebra=Algebra(linear=(0,)),
    batching=Batching(rule=batching.same_call),
    sampler=cases(
        case((3,)), case((2, 3), offset=1), case((2,), offset=-1, shape_of=(3, 5)), case((0,)), case((2, 0), offset=2)
    ),
)
def diag_embed(x: Tensor, offset: int = 0, shape_of: tuple[int, int] | None = None) -> Tensor:
    """Matrices with a diagonal of x, and 0 elsewhere; square unless their shape is given.
    x: (T, (*b, k)) -> (T, (*b, m, n)).

    >>> relay.diag_embed(np.float32([1, 4]))
    Array([[1., 0.],
           [0., 4.]], dtype=float32)
    """
    result = np.zeros(numbers(_embed_shape(x.shape, offset=offset, shape_of=shape_of)), x.dtype)
    places = np.arange(x.shape[-1])
    result[..., places + max(-offset, 0), places + max(offset, 0)] = x
    return result


def _diag_shape(shape: Shape, *, k: int) -> Shape:
    if len(shape) == 1:
        return _embed_shape(shape, offset=k, shape_of=None)
    if len(shape) == 2:
        return _diagonal_shape(shape, offset=k)
    raise ShapeError(f"diag needs a vector or a matrix, found the shape {show_shape(shape)}; relay.diagonal takes more")


@expansion(
    relation=Relation("T:number -> T", _diag_shape),
    algebra=Algebra(of_booleans="booleans"),
    sampler=cases(case((3,)), case((2,), k=-1), case((2, 3)), case((3, 3), k=1), case((0,))),
)
def diag(x: Value, k: int = 0) -> Value:
    """The diagonal of a matrix, or the matrix of a diagonal. x: (T, (m, n)) or (T, (n,)) -> (T, (k,)) or (T, (m, m)).

    >>> relay.diag(np.float32([[1, 2], [3, 4]]))
    Array([1., 4.], dtype=float32)
    """
    return x.op("diag_embed", offset=k) if x.ndim == 1 else x.op("diagonal", offset=k)


@expansion(
    relation=Relation("T:number -> T", lambda shape, *, offset: _diagonal_shape(shape, offset=offset)[:-1]),
    sampler=cases(case((3, 3)), case((2, 3, 4), offset=1), case((0, 0))),
)
def trace(x: Value, offset: int = 0) -> Value:
    """The sum of a diagonal of the matrices of the last two axes. x: (T, (*b, m, n)) -> (T, b).

    >>> relay.trace(np.float32([[1, 2], [3, 4]]))
    Array(5., dtype=float32)
    """
    return x.op("diagonal", offset=offset).op("sum", axis=-1)
