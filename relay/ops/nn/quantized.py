"""Quantized numbers of 8 bits: q stands for (q - zero_point) * scale, with a scale for each tensor or channel."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from relay.errors import ShapeError, TypeMismatch
from relay.ir.types import FLOAT32, FLOAT64, INT32, BaseType, Dim, Shape, TensorType, Type, show, show_shape
from relay.operator.relation import infer_relation
from relay.ops import batching
from relay.ops.elementwise.comparison import where
from relay.ops.linalg.products import batched_dense, multiplications_and_additions
from relay.ops.nn.batched_convolutions import batched_convolution
from relay.ops.nn.convolution import convolution_work
from relay.ops.nn.convolution_references import (
    numpy_convolution,
    numpy_convolution_in_blocks,
    numpy_transposed_convolution,
)
from relay.ops.nn.convolution_stages import convolution_stage, transposed_convolution_stage
from relay.ops.notation import (
    Batch,
    Batching,
    Element,
    Numerics,
    Pattern,
    Relation,
    Stage,
    Tensor,
    Value,
    dims,
    expansion,
    register_op,
)
from relay.ops.samples import case, cases
from relay.ops.tir import stages
from relay.typecheck import relations
from relay.typecheck import windows as rules
from relay.typecheck.dims import equal, normalize_axis
from relay.typecheck.windows import Numbers, Padding

INT8 = BaseType("int8")
_ROUNDS = "rounding has no useful derivative"
_INTEGRAL = "integers have no derivative"


def _parameter(parameter: Value, axis: int, rank: int) -> Value:
    """A scale or zero point, along the axis if it is a vector."""
    if parameter.ndim == 0:
        return parameter
    shape: list[Dim] = [1] * rank
    shape[normalize_axis(axis, rank)] = parameter.shape[0]
    return parameter.op("reshape", shape=tuple(shape))


def _scaled_shape(x: Shape, *parameters: Shape, axis: int) -> Shape:
    for parameter in parameters:
        if parameter and (len(parameter) > 1 or not equal(parameter[0], x[normalize_axis(axis, len(x))])):
            raise ShapeError(
                f"scales and zero points are single numbers, or one for each place along axis {axis} of"
                f" {show_shape(x)}; found the shape {show_shape(parameter)}"
            )
    return x


def _saturate(value: Value, zero_point: Value, dtype: BaseType) -> Value:
    """Rounded to the nearest integer, moved, and kept within the dtype; NaN is the zero point."""
    limits = np.iinfo(dtype.name)
    zero = zero_point.op("cast", dtype=value.base)
    moved = value.op("round") + zero
    kept = moved.op("maximum", float(limits.min)).op("minimum", float(limits.max))
    return where(value.op("isnan"), zero, kept).op("cast", dtype=dtype)  # type: ignore[no-any-return]


def _quantized_shape(x: Shape, *parameters: Shape, axis: int, out_dtype: BaseType) -> Shape:
    if not isinstance(out_dtype, BaseType) or out_dtype.name not in ("int8", "uint8", "int16", "uint16", "int32"):
        raise TypeMismatch(f"quantized numbers are integers of at most 32 bits, found {out_dtype}")
    return _scaled_shape(x, *parameters, axis=axis)


_SCALE, _ZERO_POINT = np.array(0.05, np.float32), np.array(3, np.int32)


def _batched_by_axis(batch: Batch, x: Value, *parameters: Value, axis: int, **attributes: Any) -> Value | None:
    """The same call with the axis of channels one further, if all examples have the same scales."""
    if any(batch.batched[1:]):
        return batching.batch_body(batch, x, *parameters, axis=axis, **attributes)
    return batch.call(
        x, *parameters, axis=batching.shift_axes(axis, batch.rank()) if batch.rank() else axis, **attributes
    )


@expansion(
    relation=Relation("T:float, T, int32 -> @out_dtype", _quantized_shape),
    no_gradient=_ROUNDS,
    batching=Batching(rule=_batched_by_axis), sampler=cases(
        case(np.array([[0.1, -7, 300], [0.075, np.nan, -np.inf]], np.float32), _SCALE, _ZERO_POINT),
        case(
            np.array([[0.1, -7], [0.5, 3]], np.float32), np.array([0.1, 0.2], np.float32), np.array([0, 100], np.int32),
            axis=0, out_dtype=BaseType("uint8"),
        ),
        case(np.zeros((0, 2), np.float32), _SCALE, _ZERO_POINT),
    ),
)  # fmt: skip
def quantize(x: Value, scale: Value, zero_point: Value, axis: int = -1, out_dtype: BaseType = INT8) -> Value:
    """round(x / scale) + zero_point, to the even one of two integers, kept within the dtype.
    x: (T float, s), scale: (T, ()) or (T, (c,)), zero_point: (int32, ()) or (int32, (c,)) -> (out_dtype, s).

    >>> relay.quantize(np.float32([0.25, -1, 100]), np.float32(0.5), np.int32(1))
    Array([  1,  -1, 127], dtype=int8)
    """
    scaled = x / _parameter(scale, axis, x.ndim)
    wide = scaled.op("cast", dtype=FLOAT32) if scaled.base.dtype.itemsize < 4 else scaled
    if np.iinfo(out_dtype.name).bits == 32:
        wide = wide.op("cast", dtype=FLOAT64)  # which holds all of them
    return _saturate(wide, _parameter(zero_point, axis, x.ndim), out_dtype)


@expansion(
    relation=Relation("Q:int, T:float, int32 -> T", _scaled_shape),
    batching=Batching(rule=_batched_by_axis),
    sampler=cases(
        case(np.array([[0, -128, 127]], np.int8), _SCALE, _ZERO_POINT),
        case(
            np.array([[0, 255], [7, 1]], np.uint8),
            np.array([0.1, 0.2], np.float64),
            np.array([0, 100], np.int32),
            axis=0,
        ),
        case(np.array([2**24 + 1], np.int32), np.array(0.5), np.array(0, np.int32)),
    ),
)
def dequantize(x: Value, scale: Value, zero_point: Value, axis: int = -1) -> Value:
    """(x - zero_point) * scale. x: (int, s), scale: (T float, ()) or (T, (c,)), zero_point: (int32, ()) or
    (int32, (c,)) -> (T, s).

    >>> relay.dequantize(np.int8([1, -1]), np.float32(0.5), np.int32(1))
    Array([ 0., -1.], dtype=float32)
    """
    moved = x.op("cast", dtype=INT32) - _parameter(zero_point, axis, x.ndim)
    return moved.op("cast", dtype=scale.base) * _parameter(scale, axis, x.ndim)


@expansion(
    relation=Relation("Q:int, T:float, int32, T, int32 -> @out_dtype", _quantized_shape),
    no_gradient=_ROUNDS,
    batching=Batching(rule=_batched_by_axis), sampler=cases(
        case(
            np.array([[100, -20000], [2**30, 7]], np.int32), _SCALE, np.array(0, np.int32), np.array(2.0, np.float32),
            _ZERO_POINT,
        ),
        case(
            np.array([[100, -20000]], np.int32), np.array([0.1, 0.2], np.float32), np.array(0, np.int32),
            np.array(0.7, np.float32), _ZERO_POINT, out_dtype=BaseType("uint8"),
        ),
    ),
)  # fmt: skip
def requantize(
    x: Value, scale: Value, zero_point: Value, new_scale: Value, new_zero_point: Value, axis: int = -1,
    out_dtype: BaseType = INT8,
) -> Value:  # fmt: skip
    """The same numbers with another scale and zero point, computed in float64: for the 32-bit sums of products of 8-bit
    numbers. x: (int, s); scale, new_scale: (T float, ()) or (T, (c,)); zero_point, new_zero_point: (int32, ()) or
    (int32, (c,)) -> (out_dtype, s).

    >>> relay.requantize(np.int32([1000]), np.float32(0.5), np.int32(0), np.float32(10), np.int32(3))
    Array([53], dtype=int8)
    """
    moved = x.op("cast", dtype=FLOAT64) - _parameter(zero_point, axis, x.ndim).op("cast", dtype=FLOAT64)
    old, new = (_parameter(s, axis, x.ndim).op("cast", dtype=FLOAT64) for s in (scale, new_scale))
    return _saturate(moved * (old / new), _parameter(new_zero_point, axis, x.ndim), out_dtype)


# ---- products of 8-bit numbers, summed in 32


def _dense(x: Stage, weight: Stage) -> Stage:
    shape = (*dims(x)[:-1], dims(weight)[0])

    def terms(index: Any, reduced: Any) -> tuple[Element, Element]:
        return x(*index[:-1], reduced[0]), weight(index[-1], reduced[0])

    return stages.contraction(shape, (dims(weight)[1],), "int32", terms)


def _eight_bits(name: str, rule: Any, x: Type, weight: Type, attributes: dict[str, Any]) -> Type:
    for type_ in (x, weight):
        if not isinstance(type_, TensorType) or str(type_.base) not in ("int8", "uint8"):
            raise TypeMismatch(f"{name} takes int8 and uint8, found {show(type_)}")
    return infer_relation(name, Relation("X:int, W:int -> int32", rule), False, (x, weight), attributes)


_BYTES = np.random.default_rng(0).integers(-128, 128, (2, 3, 5, 4)).astype(np.int8)
_BLOCKED = np.random.default_rng(1).integers(-128, 128, (2, 2, 5, 4, 3)).astype(np.int8)


@register_op(
    relation=lambda x, weight: _eight_bits("quantized_dense", relations.dense, x, weight, {}),
    pattern=Pattern.OUTPUT_FUSABLE,
    compute=_dense,
    no_gradient=_INTEGRAL,
    numerics=Numerics(work=multiplications_and_additions),
    batching=Batching(rule=batched_dense), sampler=cases(
        case(_BYTES[0, 0], _BYTES[0, 1]), case(_BYTES[0, 0].view(np.uint8), _BYTES[0, 1]),
        case(_BYTES[0, 0, 0], _BYTES[1, 0]), case(np.zeros((2, 0), np.int8), np.zeros((3, 0), np.int8)),
    ),
)  # fmt: skip
def quantized_dense(x: Tensor, weight: Tensor) -> Tensor:
    """x times the transposed weight, of 8-bit numbers, summed in 32 bits. x: (int8 or uint8, (*b, k)),
    weight: (int8 or uint8, (n, k)) -> (int32, (*b, n)).

    >>> relay.quantized_dense(np.int8([[100, 100]]), np.int8([[100, 100]]))
    Array([[20000]], dtype=int32)
    """
    return np.asarray(np.matmul(x.astype(np.int32), weight.T.astype(np.int32)))


def _quantized_conv2d_type(x: Type, weight: Type, **attributes: Any) -> Type:
    return _eight_bits("quantized_conv2d", functools.partial(rules.convolution, 2), x, weight, attributes)


@register_op(
    relation=_quantized_conv2d_type,
    layouts=functools.partial(rules.layouts, 2, "xwx", blocks=True),
    pattern=Pattern.OUTPUT_FUSABLE,
    compute=functools.partial(convolution_stage, dtype="int32"),
    numerics=Numerics(work=lambda shapes, result: convolution_work(result, shapes[1])),
    no_gradient=_INTEGRAL,
    batching=Batching(rule=batched_convolution("O")),
    sampler=cases(
        case(_BYTES, _BYTES[:, :, :3, :2]),
        case(_BYTES.view(np.uint8), _BYTES[:, :, :2, :3], stride=2, padding="same"),
        case(_BYTES.transpose(0, 2, 3, 1), _BYTES[:, :, :2, :2].transpose(2, 3, 1, 0), layout="NHWC"),
        case(_BLOCKED, _BLOCKED[:, :, :3, :2, :, None].repeat(2, -1), padding=1, layout="NCHWc"),
    ),
)
def quantized_conv2d(
    x: Tensor, weight: Tensor, stride: Numbers = 1, padding: Padding = 0, dilation: Numbers = 1, groups: int = 1,
    layout: str = "NCHW",
) -> Tensor:  # fmt: skip
    """`conv2d` of 8-bit numbers, summed in 32 bits, in all of its layouts. x: (int8 or uint8, (n, c, h, w)),
    weight: (int8 or uint8, (o, c / groups, i, j)) -> (int32, (n, o, *extents)).

    >>> relay.quantized_conv2d(np.full((1, 1, 2, 2), 100, np.int8), np.full((1, 1, 2, 2), 100, np.int8))
    Array([[[[40000]]]], dtype=int32)
    """
    wide = np.dtype(np.int32)
    if layout.endswith("c"):
        return numpy_convolution_in_blocks(x, weight, stride, padding, dilation, wide)
    return numpy_convolution(x, weight, stride, padding, dilation, groups, layout, wide)


def _quantized_conv2d_transpose_type(x: Type, weight: Type, **attributes: Any) -> Type:
    rule = functools.partial(rules.transposed_convolution, 2)
    return _eight_bits("quantized_conv2d_transpose", rule, x, weight, attributes)


@register_op(
    relation=_quantized_conv2d_transpose_type,
    layouts=functools.partial(rules.layouts, 2, "xwx"),
    pattern=Pattern.OUTPUT_FUSABLE,
    compute=functools.partial(transposed_convolution_stage, dtype="int32"),
    numerics=Numerics(work=lambda shapes, result: convolution_work(*shapes)),
    no_gradient=_INTEGRAL,
    batching=Batching(rule=batched_convolution("I")),
    sampler=cases(
        case(_BYTES, _BYTES.transpose(1, 0, 2, 3)[:, :, :2, :3], stride=2, padding=1, output_padding=1),
        case(_BYTES.view(np.uint8), _BYTES.transpose(1, 0, 2, 3)[:, :, :2, :2], padding="same"),
        case(_BYTES.transpose(0, 2, 3, 1), _BYTES[:, :, :2, :3].transpose(2, 3, 0, 1), stride=2, layout="NHWC"),
    ),
)
def quantized_conv2d_transpose(
    x: Tensor, weight: Tensor, stride: Numbers = 1, padding: Padding = 0, output_padding: Numbers = 0,
    dilation: Numbers = 1, groups: int = 1, layout: str = "NCHW",
) -> Tensor:  # fmt: skip
    """`conv2d_transpose` of 8-bit numbers, summed in 32 bits. x: (int8 or uint8, (n, o, h, w)),
    weight: (int8 or uint8, (o, c / groups, i, j)) -> (int32, (n, c, *sizes)).

    >>> relay.quantized_conv2d_transpose(np.full((1, 1, 1, 1), 100, np.int8), np.full((1, 1, 1, 2), 100, np.int8))
    Array([[[[10000, 10000]]]], dtype=int32)
    """
    wide = x.astype(np.int32), weight.astype(np.int32)
    return numpy_transposed_convolution(*wide, stride, padding, output_padding, dilation, groups, layout)
