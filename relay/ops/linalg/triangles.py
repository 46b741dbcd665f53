"""Diagonals and triangles of matrices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from relay.errors import ShapeError
from relay.ir.types import BOOL, FLOAT32, FLOAT64, INT32, BaseType, Shape, show_shape
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
    register_op,
    result_dims,
)
from relay.ops.samples import case, cases
from relay.ops.tir import scalar
from relay.ops.tir.tvm_modules import index_dtype, te, tirx
from relay.typecheck import axes as names
from relay.typecheck import relations

_CONSTANT = "the result depends on no tensor"
_SIZES = cases(
    case(n=3),
    case(n=2, m=4, k=1, dtype=INT32),
    case(n=4, m=2, k=-1, dtype=FLOAT64),
    case(n=2, m=2, dtype=BOOL),
    case(n=0),
)


def _matrix_shape(*, n: int, m: int | None, k: int, dtype: BaseType) -> Shape:
    return relations.literal_shape((n, n if m is None else m))


def _diagonal_condition(holds: Callable[[Element, Element], Element]) -> Callable[..., Stage]:
    def compute(n: int, m: int | None, k: int, dtype: BaseType) -> Stage:
        shape = result_dims(lambda: (n, n if m is None else m))
        wide = index_dtype() if all(isinstance(dim, int) for dim in shape) else "int64"

        def element(i: Element, j: Element) -> Element:
            here = holds(tirx.Cast(wide, j) - tirx.Cast(wide, i), tirx.const(k, wide))
            return here if dtype == BOOL else scalar.cast(here, dtype)

        return te.compute(shape, element)

    return compute


@register_op(
    sizes=frozenset({"n", "m"}),
    relation=Relation("-> @dtype", _matrix_shape),
    pattern=Pattern.INJECTIVE,
    compute=_diagonal_condition(lambda distance, k: tirx.EQ(distance, k)),
    no_gradient=_CONSTANT,
    sampler=_SIZES,
)
def eye(n: int, m: int | None = None, k: int = 0, dtype: BaseType = FLOAT32) -> Tensor:
    """1 on the k-th diagonal (above the main one for k > 0), otherwise 0. () -> (dtype, (n, m)), m = n by default.

    >>> relay.eye(2)
    Array([[1., 0.],
           [0., 1.]], dtype=float32)
    """
    return np.eye(n, m, k, dtype.dtype)


@register_op(
    sizes=frozenset({"n", "m"}),
    relation=Relation("-> @dtype", _matrix_shape),
    pattern=Pattern.INJECTIVE,
    compute=_diagonal_condition(lambda distance, k: tirx.LE(distance, k)),
    no_gradient=_CONSTANT,
    sampler=_SIZES,
)
def tri(n: int, m: int | None = None, k: int = 0, dtype: BaseType = FLOAT32) -> Tensor:
    """1 on and below the k-th diagonal, otherwise 0. () -> (dtype, (n, m)), m = n by default.

    >>> relay.tri(2)
    Array([[1., 0.],
           [1., 1.]], dtype=float32)
    """
    return np.tri(n, m, k, dtype.dtype)


@carries(names.first_operand)
def _matrices(shape: Shape, *, k: int) -> Shape:
    if len(shape) < 2:
        raise ShapeError(f"a triangle needs a matrix, found the shape {show_shape(shape)}")
    return shape


def _triangle(holds: Callable[[Element, Element], Element]) -> Callable[..., Stage]:
    def compute(x: Stage, k: int) -> Stage:
        def element(*index: Element) -> Element:
            row, column = (tirx.Cast("int64", i) for i in index[-2:])
            inside = holds(column - row, tirx.const(k, "int64"))
            return scalar.guarded_select(inside, x(*index), scalar.number(0, str(x.dtype)))

        return te.compute(dims(x), element)

    return compute


_MATRICES = cases(
    case((3, 3)), case((2, 4), k=1), case((4, 2), k=-1), case((2, 3, 3), k=-2), case((0, 3)), case((2, 2), k=9)
)


def _same_triangle(name: str) -> Callable[..., Value]:
    def gradient(x: Value, out: Value, dout: Value, **attributes: Any) -> Value:
        return dout.op(name, **attributes)

    return gradient


@register_op(
    relation=Relation("T -> T", _matrices),
    pattern=Pattern.INJECTIVE,
    compute=_triangle(lambda distance, k: tirx.LE(distance, k)),
    gradient=_same_triangle("tril"),
    algebra=Algebra(linear=(0,)),
    batching=Batching(rule=batching.same_call),
    sampler=_MATRICES,
)
def tril(x: Tensor, k: int = 0) -> Tensor:
    """x on and below the k-th diagonal, otherwise 0. x: (T, (*b, n, m)) -> (T, (*b, n, m)).

    >>> relay.tril(np.int32([[1, 2], [3, 4]]))
    Array([[1, 0],
           [3, 4]], dtype=int32)
    """
    return np.tril(x, k)


@register_op(
    relation=Relation("T -> T", _matrices),
    pattern=Pattern.INJECTIVE,
    compute=_triangle(lambda distance, k: tirx.GE(distance, k)),
    gradient=_same_triangle("triu"),
    algebra=Algebra(linear=(0,)),
    batching=Batching(rule=batching.same_call),
    sampler=_MATRICES,
)
def triu(x: Tensor, k: int = 0) -> Tensor:
    """x on and above the k-th diagonal, otherwise 0. x: (T, (*b, n, m)) -> (T, (*b, n, m)).

    >>> relay.triu(np.int32([[1, 2], [3, 4]]))
    Array([[1, 2],
           [0, 4]], dtype=int32)
    """
    return np.triu(x, k)
