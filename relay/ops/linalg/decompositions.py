"""Triangular systems and the Cholesky decomposition, for batches of matrices, with derivatives of every order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from relay.errors import ShapeError
from relay.ir.types import BaseType, Dim, Shape, show_shape
from relay.operator import Emitter
from relay.operator.axes import carries
from relay.ops import batching
from relay.ops.elementwise.comparison import where
from relay.ops.notation import (
    Algebra,
    Batching,
    Element,
    Relation,
    Stage,
    Tensor,
    Value,
    dims,
    integer_range,
    loops,
    register_op,
    table,
)
from relay.ops.tir import scalar, stages
from relay.ops.tir.tvm_modules import tirx
from relay.typecheck import axes as names
from relay.typecheck.dims import equal, equal_shapes


def _square(name: str, shape: Shape) -> None:
    if len(shape) < 2 or not equal(shape[-1], shape[-2]):
        raise ShapeError(f"{name} needs square matrices, found the shape {show_shape(shape)}")


def _wide_dtype(dtype: str) -> str:
    return dtype if dtype in ("float32", "float64") else "float32"


def _matrix_transpose(x: Value) -> Value:
    return x.op("transpose", axes=(*range(x.ndim - 2), x.ndim - 1, x.ndim - 2))


def _apply_mask(x: Value, mask: Value) -> Value:
    """x where the mask holds, otherwise 0."""
    return where(mask, x, x.emitter.constant(0, x.base))


def _index_comparison(emitter: Emitter, size: Dim, comparison: str) -> Value:
    """The matrix of comparisons of row and column."""
    rows = integer_range(emitter, 0, size).op("expand_dims", axis=1)
    return rows.op(comparison, integer_range(emitter, 0, size))


def _triangle(x: Value, comparison: str) -> Value:
    """A mask: True where row and column of the last two axes of a square x have this relation."""
    return table(x.emitter, lambda emitter: _index_comparison(emitter, x.shape[-1], comparison))


def _halved_triangle(emitter: Emitter, size: Dim, base: BaseType) -> Value:
    """1 below the diagonal and 1/2 on it."""
    on, below = (_index_comparison(emitter, size, c).op("cast", dtype=base) for c in ("equal", "greater"))
    return below + on * 0.5


def _row_loop(extent: int, forward: bool, body: Callable[[Element], Any]) -> Any:
    """A loop over 0 .. extent - 1, or back."""
    return loops((extent,), lambda index: body(index[0] if forward else extent - 1 - index[0]))


def _dot_into(
    register: Any, count: Element, left: Callable[[Element], Element], right: Callable[[Element], Element], wide: str
) -> Any:
    """Subtract the inner product over `count` terms from a register."""
    dtype = str(count.ty)
    k = tirx.Var("k", dtype)
    terms = scalar.cast(left(k), wide) * scalar.cast(right(k), wide)
    step = tirx.BufferStore(register, tirx.BufferLoad(register, [0]) - terms, [0])
    return tirx.For(k, tirx.const(0, dtype), count, tirx.ForKind.SERIAL, step)


# ---- triangular systems


@carries(names.second_operand)
def _solve_shape(a: Shape, b: Shape, *, lower: bool, transpose: bool, unit_diagonal: bool) -> Shape:
    _square("triangular_solve", a)
    if len(b) != len(a) or not equal_shapes(a[:-1], b[:-1]):
        raise ShapeError(
            f"triangular_solve of the shapes {show_shape(a)} and {show_shape(b)}: b must be (*b, n, k) where a is"
            f" (*b, n, n)"
        )
    return b


def _solve(a: Stage, b: Stage, lower: bool, transpose: bool, unit_diagonal: bool) -> Stage:
    shape, dtype = dims(b), str(b.dtype)
    if 0 in shape:
        return stages.full(shape, 0, dtype)
    size, wide, forward = shape[-2], _wide_dtype(dtype), lower is not transpose

    def statement(result: Any, a: Any, b: Any) -> Any:
        def system(outer: list[Any]) -> Any:
            *batch, column = outer

            def row(i: Element) -> Any:
                register = tirx.decl_buffer((1,), wide, "sum")

                def coefficient(k: Element) -> Element:
                    return tirx.BufferLoad(a, [*batch, k, i] if transpose else [*batch, i, k])

                def place(k: Element) -> Element:  # those that are solved for already
                    return k if forward else i + 1 + k

                value = tirx.BufferLoad(register, [0])
                if not unit_diagonal:
                    value = value / scalar.cast(coefficient(i), wide)
                return tirx.SeqStmt(
                    [
                        tirx.AllocBuffer(register),
                        tirx.BufferStore(register, scalar.cast(tirx.BufferLoad(b, [*batch, i, column]), wide), [0]),
                        _dot_into(
                            register,
                            i if forward else size - 1 - i,
                            lambda k: coefficient(place(k)),
                            lambda k: tirx.BufferLoad(result, [*batch, place(k), column]),
                            wide,
                        ),
                        tirx.BufferStore(result, scalar.cast(value, dtype), [*batch, i, column]),
                    ]
                )

            return _row_loop(size, forward, row)

        return loops((*shape[:-2], shape[-1]), system)

    return stages.extern_stage(shape, [a, b], dtype, statement)


def _solve_gradient(
    a: Value, b: Value, out: Value, dout: Value, lower: bool, transpose: bool, unit_diagonal: bool
) -> tuple[Value, Value]:
    """For op(a) x = b: db = op(a)^-T dx, and -db x^T is the cotangent of op(a), of which its triangle counts."""
    db = a.op("triangular_solve", dout, lower=lower, transpose=not transpose, unit_diagonal=unit_diagonal)
    product = out @ _matrix_transpose(db) if transpose else db @ _matrix_transpose(out)
    comparison = "greater" if lower else "less"
    return _apply_mask(-product, _triangle(a, comparison if unit_diagonal else f"{comparison}_equal")), db


def _systems(rng: np.random.Generator, dtype: np.dtype[Any]) -> Any:
    for shape, columns, attributes in (
        ((3, 3), 2, {}),
        ((4, 4), 1, {"lower": False}),
        ((2, 3, 3), 2, {"transpose": True}),
        ((3, 3), 2, {"lower": False, "transpose": True, "unit_diagonal": True}),
        ((0, 0), 2, {}),
        ((1, 1), 0, {}),
    ):
        a = rng.uniform(-1, 1, shape) + 3 * np.eye(shape[-1])
        yield [a.astype(dtype), rng.uniform(-2, 2, (*shape[:-1], columns)).astype(dtype)], attributes


@register_op(
    relation=Relation("T:float, T -> T", _solve_shape),
    compute=_solve,
    gradient=_solve_gradient,
    algebra=Algebra(linear=(1,)),
    batching=Batching(rule=batching.same_call),
    sampler=_systems,
)
def triangular_solve(
    a: Tensor, b: Tensor, lower: bool = True, transpose: bool = False, unit_diagonal: bool = False
) -> Tensor:
    """x with a x = b, or with a^T x = b if `transpose`, where only the lower (or upper) triangle of a is read. a: (T
    float, (*b, n, n)), b: (T, (*b, n, k)) -> (T, (*b, n, k)).

    >>> relay.triangular_solve(np.float32([[2, 0], [1, 1]]), np.float32([[2], [3]]))
    Array([[1.],
           [2.]], dtype=float32)
    """
    wide = np.float32 if a.dtype.itemsize < 4 else a.dtype
    matrix = (np.swapaxes(a, -1, -2) if transpose else a).astype(wide)
    x = b.astype(wide)
    size, forward = a.shape[-1], lower is not transpose
    for i in range(size) if forward else reversed(range(size)):
        solved = slice(0, i) if forward else slice(i + 1, size)
        known = np.einsum("...k,...kc->...c", matrix[..., i, solved], x[..., solved, :])
        x[..., i, :] = x[..., i, :] - known
        if not unit_diagonal:
            x[..., i, :] /= matrix[..., i, i][..., None]
    return x.astype(a.dtype)


# ---- Cholesky


@carries(names.first_operand)
def _cholesky_shape(a: Shape) -> Shape:
    _square("cholesky", a)
    return a


def _cholesky(a: Stage) -> Stage:
    shape, dtype = dims(a), str(a.dtype)
    if 0 in shape:
        return stages.full(shape, 0, dtype)
    size, wide = shape[-1], _wide_dtype(dtype)

    def statement(result: Any, a: Any) -> Any:
        def matrix(batch: list[Any]) -> Any:
            def load(source: Any, i: Element, j: Element) -> Element:
                return scalar.cast(tirx.BufferLoad(source, [*batch, i, j]), wide)

            def element(index: list[Any]) -> Any:
                i, j = index
                register = tirx.decl_buffer((1,), wide, "sum")
                value = tirx.BufferLoad(register, [0])
                below = tirx.BufferStore(result, scalar.cast(value / load(result, j, j), dtype), [*batch, i, j])
                on = tirx.BufferStore(result, scalar.cast(tirx.sqrt(value), dtype), [*batch, i, j])
                mean = (load(a, i, j) + load(a, j, i)) * tirx.const(0.5, wide)
                computed = tirx.SeqStmt(
                    [
                        tirx.AllocBuffer(register),
                        tirx.BufferStore(register, mean, [0]),
                        _dot_into(register, j, lambda k: load(result, i, k), lambda k: load(result, j, k), wide),
                        tirx.IfThenElse(tirx.EQ(i, j), on, below),
                    ]
                )
                zero = tirx.BufferStore(result, tirx.const(0, dtype), [*batch, i, j])
                return tirx.IfThenElse(tirx.LE(j, i), computed, zero)

            return loops((size, size), element)

        return loops(shape[:-2], matrix)

    return stages.extern_stage(shape, [a], dtype, statement)


def _cholesky_gradient(a: Value, out: Value, dout: Value) -> Value:
    """L^-T S L^-1 made symmetric, S the lower triangle of L^T dL with its diagonal halved.

    I. Murray, Differentiation of the Cholesky decomposition, 2016.
    """
    weights = table(out.emitter, lambda emitter: _halved_triangle(emitter, out.shape[-1], out.base))
    inner = _apply_mask(_matrix_transpose(out) @ dout, _triangle(out, "greater_equal")) * weights
    left = out.op("triangular_solve", inner, lower=True, transpose=True)
    both = _matrix_transpose(out.op("triangular_solve", _matrix_transpose(left), lower=True, transpose=True))
    return (both + _matrix_transpose(both)) * 0.5


def _positive_definite(rng: np.random.Generator, dtype: np.dtype[Any]) -> Any:
    for shape in ((3, 3), (2, 4, 4), (1, 1), (0, 0), (0, 2, 2)):
        root = rng.uniform(-1, 1, shape)
        yield [(root @ np.swapaxes(root, -1, -2) + np.eye(shape[-1])).astype(dtype)], {}


@register_op(
    relation=Relation("T:float -> T", _cholesky_shape),
    compute=_cholesky,
    gradient=_cholesky_gradient,
    batching=Batching(rule=batching.same_call),
    sampler=_positive_definite,
)
def cholesky(a: Tensor) -> Tensor:
    """The lower triangular L with L L^T = a, for symmetric positive definite matrices; of others (a + a^T) / 2 is
    taken, and where that is not positive definite the result holds NaN. a: (T float, (*b, n, n)) -> (T, (*b, n, n)).

    >>> relay.cholesky(np.float32([[4, 2], [2, 2]]))
    Array([[2., 0.],
           [1., 1.]], dtype=float32)
    """
    wide = np.float32 if a.dtype.itemsize < 4 else a.dtype
    source = a.astype(wide)
    matrix = (source + np.swapaxes(source, -1, -2)) * np.asarray(0.5, wide)
    result = np.zeros_like(matrix)
    for i in range(a.shape[-1]):
        for j in range(i + 1):
            rest = matrix[..., i, j] - np.sum(result[..., i, :j] * result[..., j, :j], axis=-1)
            result[..., i, j] = np.sqrt(rest) if i == j else rest / result[..., j, j]
    return np.asarray(result.astype(a.dtype))
