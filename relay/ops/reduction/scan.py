"""Running sums and products along an axis."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from relay.ir.types import BFLOAT16, FLOAT16, FLOAT32, Shape
from relay.operator import composite
from relay.operator.axes import carries
from relay.ops.elementwise.comparison import cast
from relay.ops.notation import (
    Algebra,
    Element,
    Indexing,
    Pattern,
    Relation,
    Stage,
    Tensor,
    Value,
    dims,
    loops,
    register_op,
)
from relay.ops.samples import case, cases
from relay.ops.shape.creation import ones, zeros_like
from relay.ops.shape.rearrangement import flip, moveaxis
from relay.ops.shape.reshaping import accumulator
from relay.ops.tir import scalar, stages
from relay.ops.tir.tvm_modules import te, tirx
from relay.typecheck import axes as names
from relay.typecheck import relations
from relay.typecheck.dims import normalize_axis

_CASES = cases(
    case((5,)),
    case((1,)),
    case((2, 3)),
    case((2, 3), axis=1),
    case((2, 3, 4), axis=-2, reverse=True),
    case((0, 3)),
    case((3, 0)),
)


@carries(names.first_operand)
def _scan_shape(shape: Shape, *, axis: int, reverse: bool) -> Shape:
    return relations.along_axis(shape, axis=axis)


def _running_stage(combine: Callable[[Element, Element], Element]) -> Callable[..., Stage]:
    """Each element combined with the result before it. float16 and bfloat16 are combined in float32, and each result is
    rounded once."""

    def compute(x: Stage, axis: int, reverse: bool) -> Stage:
        shape = dims(x)
        position = normalize_axis(axis, len(shape))
        if 0 in shape:
            return stages.full(shape, 0, str(x.dtype))
        extent, dtype = shape[position], str(x.dtype)
        wide = "float32" if dtype in ("float16", "bfloat16") else dtype

        def statement(result: Any, x: Any) -> Any:
            def step(index: list[Any]) -> Any:
                at = extent - 1 - index[position] if reverse else index[position]
                before = at + 1 if reverse else at - 1
                place = [*index[:position], at, *index[position + 1 :]]
                previous = tirx.BufferLoad(result, [*index[:position], before, *index[position + 1 :]])
                given = scalar.cast(tirx.BufferLoad(x, place), wide)
                first = tirx.BufferStore(result, given, place)
                following = tirx.BufferStore(result, combine(previous, given), place)
                return tirx.IfThenElse(
                    tirx.EQ(index[position], tirx.const(0, str(index[position].ty))), first, following
                )

            return loops(shape, step)

        stage = stages.extern_stage(shape, [x], wide, statement)
        return stage if wide == dtype else te.compute(shape, lambda *index: scalar.cast(stage(*index), dtype))

    return compute


def _numpy_running(function: Callable[..., Any], x: Tensor, axis: int, reverse: bool) -> Tensor:
    source = np.flip(x, axis) if reverse else x
    result = np.asarray(function(source, axis=axis, dtype=accumulator(x.dtype)), x.dtype)
    return np.flip(result, axis).copy() if reverse else result


def _cumsum_gradient(x: Value, out: Value, dout: Value, axis: int, reverse: bool) -> Value:
    return dout.op("cumsum", axis=axis, reverse=not reverse)


@register_op(
    relation=Relation("T:number -> T", _scan_shape),
    pattern=Pattern.OPAQUE,
    compute=_running_stage(scalar.add),
    gradient=_cumsum_gradient,
    algebra=Algebra(linear=(0,)),
    indexing=Indexing(axis="axis"),
    sampler=_CASES,
)
def cumsum(x: Tensor, axis: int = 0, reverse: bool = False) -> Tensor:
    """The sums of the elements so far along an axis, from its end with `reverse`. x: (T, s) -> (T, s).

    >>> relay.cumsum(np.int32([1, 2, 3]))
    Array([1, 3, 6], dtype=int32)
    """
    return _numpy_running(np.cumsum, x, axis, reverse)


@composite(
    relation=Relation("T:number -> T", _scan_shape),
    pattern=Pattern.OPAQUE,
    compute=_running_stage(scalar.multiply),
    reference=lambda x, axis, reverse: _numpy_running(np.cumprod, x, axis, reverse),
    indexing=Indexing(axis="axis"),
    sampler=_CASES,
)
def cumprod(x: Tensor, axis: int = 0, reverse: bool = False) -> Tensor:
    """The products of the elements so far along an axis, from its end with `reverse`. The gradient is right where
    elements are 0. x: (T, s) -> (T, s).

    >>> relay.cumprod(np.int32([1, 2, 3]))
    Array([1, 2, 6], dtype=int32)
    """
    rows = moveaxis(x, axis, 0)
    if reverse:
        rows = flip(rows, 0)
    if x.dtype == FLOAT16 or x.dtype == BFLOAT16:
        rows = cast(rows, FLOAT32)
    product = ones(rows.shape[1:], rows.dtype)
    result = zeros_like(rows)
    for i in range(rows.shape[0]):
        product = product * rows[i]
        result[i] = product
    result = cast(result, x.dtype)
    if reverse:
        result = flip(result, 0)
    return moveaxis(result, 0, axis)
