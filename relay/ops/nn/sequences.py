"""Sequences of different lengths in one tensor: masking and reversal."""

from __future__ import annotations

from typing import Any

import numpy as np

from relay.errors import ShapeError
from relay.ir.dims import multiply
from relay.ir.types import INT32, INT64, BaseType, Shape, show_shape
from relay.operator.axes import carries
from relay.ops import batching
from relay.ops.notation import (
    Algebra,
    Batch,
    Batching,
    Element,
    Pattern,
    Relation,
    Requirement,
    Stage,
    Tensor,
    Value,
    dims,
    register_op,
)
from relay.ops.samples import case, cases
from relay.ops.tir import scalar
from relay.ops.tir.tvm_modules import te, tirx
from relay.typecheck import axes as names
from relay.typecheck.dims import equal, normalize_axis


@carries(names.first_operand)
def _lengths_shape(shape: Shape, lengths: Shape, *, axis: int, batch_axis: int, **attributes: object) -> Shape:
    position, batch = normalize_axis(axis, len(shape)), normalize_axis(batch_axis, len(shape))
    if position == batch:
        raise ShapeError(f"the axes of time and batch must differ, found {axis} and {batch_axis}")
    if len(lengths) != 1 or not equal(lengths[0], shape[batch]):
        raise ShapeError(
            f"the lengths must have the shape {show_shape((shape[batch],))}, one for each sequence in axis {batch_axis}"
            f" of {show_shape(shape)}, found {show_shape(lengths)}"
        )
    return shape


_LENGTHS = cases(
    case((4, 3), np.array([2, 0, 4], np.int32)),
    case((3, 4), np.array([2, 0, 7], np.int64), axis=1, batch_axis=0),
    case((2, 3, 4, 2), np.array([1, 2], np.int32), axis=1, batch_axis=0),
    case((0, 3), np.array([2, 0, 4], np.int32)),
)


def _mask(x: Stage, lengths: Stage, axis: int, batch_axis: int, value: float) -> Stage:
    shape = dims(x)
    position, batch = normalize_axis(axis, len(shape)), normalize_axis(batch_axis, len(shape))

    def element(*index: Element) -> Element:
        inside = tirx.LT(tirx.Cast("int64", index[position]), scalar.cast(lengths(index[batch]), INT64))
        return scalar.guarded_select(inside, x(*index), scalar.number(value, str(x.dtype)))

    return te.compute(shape, element)


def _mask_gradient(
    x: Value, lengths: Value, out: Value, dout: Value, axis: int, batch_axis: int, value: float
) -> tuple[Value, None]:
    return dout.op("sequence_mask", lengths, axis=axis, batch_axis=batch_axis, value=0), None


def _batched_sequences(batch: Batch, x: Value, lengths: Value, axis: int, batch_axis: int, **attributes: Any) -> Value:
    """The sequences of all examples as those of one."""
    place = normalize_axis(batch_axis, batch.rank())
    ends = batch.stretch(lengths, 1)
    made = batch.call(
        batching.merge(batch.stretch(x, 0), place), ends.op("reshape", shape=(multiply(*ends.shape),)),
        axis=normalize_axis(axis, batch.rank()), batch_axis=place, **attributes,
    )  # fmt: skip
    return batching.split(made, place, batch, batch.tensor.shape[place])


@register_op(
    relation=Relation("T:number, I:int -> T", _lengths_shape),
    pattern=Pattern.INJECTIVE,
    compute=_mask,
    gradient=_mask_gradient,
    batching=Batching(rule=_batched_sequences),
    sampler=_LENGTHS,
)
def sequence_mask(x: Tensor, lengths: Tensor, axis: int = 0, batch_axis: int = 1, value: float = 0) -> Tensor:
    """x with what lies beyond the length of each sequence replaced by a number. x: (T, s), lengths: (int, (batch,)) ->
    (T, s).

    >>> relay.sequence_mask(np.float32([[1, 2], [3, 4]]), np.int32([1, 2]))
    Array([[1., 2.],
           [0., 4.]], dtype=float32)
    """
    time, batch = axis % x.ndim, batch_axis % x.ndim
    steps = np.arange(x.shape[time]).reshape([-1 if a == time else 1 for a in range(x.ndim)])
    ends = lengths.reshape([-1 if a == batch else 1 for a in range(x.ndim)])
    return np.where(steps < ends, x, np.asarray(value, x.dtype))


def _lengths_fit(x: Value, lengths: Value, axis: int, batch_axis: int) -> Value | None:
    wide = lengths if lengths.base in (INT32, INT64) else lengths.op("cast", dtype=INT32)
    return ((wide >= 0) & (wide <= x.shape[normalize_axis(axis, x.ndim)])).op("all")


def _reverse(x: Stage, lengths: Stage, axis: int, batch_axis: int) -> Stage:
    shape = dims(x)
    position, batch = normalize_axis(axis, len(shape)), normalize_axis(batch_axis, len(shape))

    def element(*index: Element) -> Element:
        time = index[position]
        length = scalar.cast(lengths(index[batch]), BaseType(str(time.ty)))
        source = scalar.select(tirx.LT(time, length), length - 1 - time, time)
        return x(*index[:position], source, *index[position + 1 :])

    return te.compute(shape, element)


@register_op(
    relation=Relation("T, I:int -> T", _lengths_shape),
    pattern=Pattern.INJECTIVE,
    compute=_reverse,
    gradient=lambda x, lengths, out, dout, axis, batch_axis: (
        dout.op("reverse_sequence", lengths, axis=axis, batch_axis=batch_axis),
        None,
    ),
    requirements=(Requirement(_lengths_fit, "a length is negative or longer than the axis"),),
    algebra=Algebra(linear=(0,)),
    batching=Batching(rule=_batched_sequences),
    sampler=cases(
        case((4, 3), np.array([2, 0, 4], np.int32)),
        case((3, 4), np.array([2, 0, 3], np.int64), axis=1, batch_axis=0),
        case((2, 3, 2), np.array([1, 2], np.int32), axis=1, batch_axis=0),
    ),
)
def reverse_sequence(x: Tensor, lengths: Tensor, axis: int = 0, batch_axis: int = 1) -> Tensor:
    """x with the first elements of each sequence, as many as its length, in reverse. x: (T, s), lengths: (int,
    (batch,)) -> (T, s).

    >>> relay.reverse_sequence(np.float32([[1, 2], [3, 4]]), np.int32([1, 2]))
    Array([[1., 4.],
           [3., 2.]], dtype=float32)
    """
    moved = np.moveaxis(x, (batch_axis, axis), (0, 1))
    result = moved.copy()
    for row, length in enumerate(lengths):
        result[row, :length] = moved[row, :length][::-1]
    return np.moveaxis(result, (0, 1), (batch_axis, axis)).copy()
