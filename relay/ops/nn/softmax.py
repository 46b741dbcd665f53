"""Softmax and log-softmax: normalizing functions composed of others, with kernels of their own."""

from __future__ import annotations

import numpy as np

from relay.operator import composite
from relay.ops.elementwise.elementary import exp, log
from relay.ops.notation import Element, Indexing, Numerics, Pattern, Relation, Stage, Tensor, Value, dims
from relay.ops.reduction.reductions import max_, sum_
from relay.ops.samples import case, cases
from relay.ops.tir import scalar, stages, transcendental
from relay.ops.tir.tvm_modules import te
from relay.typecheck import relations
from relay.typecheck.dims import normalize_axis

_CASES = cases(
    case((1,)),
    case((5,)),
    case((2, 3)),
    case((2, 3), axis=0),
    case((2, 1, 3), axis=1),
    case((0, 3)),
    case((3, 0)),
    case(np.array([1000.0, 999.0, -1000.0], np.float32)),
    case(np.array([1.0, np.nan], np.float32)),
    case(np.array([-np.inf, 0.0], np.float32)),
)


def _shifted_exponentials(x: Stage, axis: int) -> tuple[Stage, Stage, Stage, int]:
    """x minus its maximum along the axis, the exponentials of that, and their sum; float16 goes through float32."""
    position = normalize_axis(axis, len(dims(x)))
    wide = str(x.dtype) if str(x.dtype) in ("float32", "float64") else "float32"
    highest = stages.maximum_along(x, (position,), True)

    def difference(*index: Element) -> Element:
        at = (*index[:position], 0, *index[position + 1 :])
        return scalar.cast(x(*index), wide) - scalar.cast(highest(*at), wide)

    shifted = te.compute(dims(x), difference)
    exponentials = te.compute(dims(x), lambda *index: transcendental.exp(shifted(*index)))
    return shifted, exponentials, stages.total(exponentials, (position,), True), position


def _softmax(x: Stage, axis: int) -> Stage:
    if 0 in dims(x):
        return stages.full(dims(x), 0, str(x.dtype))
    _, exponentials, total, position = _shifted_exponentials(x, axis)
    # One division for each sum, which is at least 1, in place of one for each element: it differs by half a unit in
    # the last place, and takes a tenth of the time of a division.
    factor = te.compute(dims(total), lambda *index: 1 / total(*index))

    def element(*index: Element) -> Element:
        scale = factor(*index[:position], 0, *index[position + 1 :])
        return scalar.cast(exponentials(*index) * scale, str(x.dtype))

    return te.compute(dims(x), element, tag=stages.ROW_SOFTMAX if position == len(dims(x)) - 1 else "")


@composite(
    relation=Relation("T:float -> T", relations.along_axis),
    pattern=Pattern.OPAQUE,
    compute=_softmax,
    indexing=Indexing(axis="axis"),
    gradient=lambda x, out, dout, axis: (dout - (dout * out).op("sum", axis=axis, keepdims=True)) * out,
    sampler=_CASES,
    numerics=Numerics(keep_fp32=True),
)
def softmax(x: Tensor, axis: int = -1) -> Tensor:
    """exp(x) divided by its sum along an axis, without overflow. x: (T float, s) -> (T, s).

    >>> relay.softmax(np.float32([1000, 1000]))
    Array([0.5, 0.5], dtype=float32)
    """
    if x.size == 0:
        return x
    exponentials = exp(x - max_(x, axis=axis, keepdims=True))
    return exponentials / sum_(exponentials, axis=axis, keepdims=True)


def _log_softmax(x: Stage, axis: int) -> Stage:
    if 0 in dims(x):
        return stages.full(dims(x), 0, str(x.dtype))
    shifted, _, total, position = _shifted_exponentials(x, axis)
    logarithm = te.compute(dims(total), lambda *index: transcendental.log(total(*index)))

    def element(*index: Element) -> Element:
        difference = shifted(*index) - logarithm(*index[:position], 0, *index[position + 1 :])
        return scalar.cast(difference, str(x.dtype))

    return te.compute(dims(x), element)


def _log_softmax_gradient(x: Value, out: Value, dout: Value, axis: int) -> Value:
    return dout - out.op("exp") * dout.op("sum", axis=axis, keepdims=True)


@composite(
    relation=Relation("T:float -> T", relations.along_axis),
    pattern=Pattern.OPAQUE,
    compute=_log_softmax,
    indexing=Indexing(axis="axis"),
    gradient=_log_softmax_gradient,
    sampler=_CASES,
    numerics=Numerics(keep_fp32=True),
)
def log_softmax(x: Tensor, axis: int = -1) -> Tensor:
    """The logarithm of `softmax`, computed without its underflow. x: (T float, s) -> (T, s).

    >>> relay.log_softmax(np.float32([1000, 1000]))
    Array([-0.6931472, -0.6931472], dtype=float32)
    """
    if x.size == 0:
        return x
    shifted = x - max_(x, axis=axis, keepdims=True)
    return shifted - log(sum_(exp(shifted), axis=axis, keepdims=True))
