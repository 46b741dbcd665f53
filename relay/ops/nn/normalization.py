"""Normalization over batches, layers, groups and instances.

float16 and bfloat16 are computed in float32.
"""

from __future__ import annotations

from collections.abc import Sequence

from relay.errors import ShapeError
from relay.ir.dims import floor_divide
from relay.ir.types import Dim, Shape, show_shape
from relay.operator.axes import carries
from relay.ops.notation import Relation, Value, cast_like, expansion, widened_value
from relay.ops.samples import case, cases
from relay.typecheck import axes as names
from relay.typecheck.dims import equal, equal_shapes, normalize_axis, quotient


def _standardize(x: Value, axes: tuple[int, ...], epsilon: float) -> Value:
    """(x - mean) / sqrt(variance + epsilon) over axes."""
    centerd = x - x.op("mean", axis=axes, keepdims=True)
    variance = (centerd * centerd).op("mean", axis=axes, keepdims=True)
    return centerd * (variance + epsilon).op("rsqrt")


def _broadcast_along(vector: Value, axis: int, rank: int) -> Value:
    """A vector along one axis of a tensor of this rank."""
    shape: list[Dim] = [1] * rank
    shape[axis] = vector.shape[0]
    return widened_value(vector).op("reshape", shape=tuple(shape))


def _check_vectors(name: str, x: Shape, axis: int, vectors: Sequence[Shape]) -> Shape:
    """Raises ShapeError unless each vector has as many elements as the axis."""
    position = normalize_axis(axis, len(x))
    for vector in vectors:
        if len(vector) != 1 or not equal(vector[0], x[position]):
            raise ShapeError(
                f"{name} of the shape {show_shape(x)} needs vectors with an element for each channel, of which there"
                f" are {x[position]}; found the shape {show_shape(vector)}"
            )
    return x


# ---- over the last axes


@carries(names.first_operand)
def _layer_shape(x: Shape, weight: Shape, *more: Shape, epsilon: float) -> Shape:
    for vector in (weight, *more):
        if len(vector) > len(x) or not vector or not equal_shapes(x[len(x) - len(vector) :], vector):
            raise ShapeError(
                f"the shape {show_shape(vector)} must be that of the axes to normalize, the last ones of"
                f" {show_shape(x)}"
            )
    return x


@expansion(
    relation=Relation("T:float, T, T -> T", _layer_shape),
    sampler=cases(
        case((2, 5), (5,), (5,)),
        case((2, 3, 4), (3, 4), (3, 4), epsilon=0.1),
        case((0, 3), (3,), (3,)),
        case((4,), (4,), (4,)),
    ),
)
def layer_norm(x: Value, weight: Value, bias: Value, epsilon: float = 1e-5) -> Value:
    """(x - mean) / sqrt(variance + epsilon) * weight + bias, with mean and variance over the last axes, as many as the
    weight has. x: (T float, (*b, *s)), weight: (T, s), bias: (T, s) -> (T, (*b, *s)).

    >>> relay.layer_norm(np.float32([1, 3]), np.float32([1, 1]), np.float32([0, 0]), epsilon=0.0)
    Array([-1.,  1.], dtype=float32)
    """
    axes = tuple(range(x.ndim - weight.ndim, x.ndim))
    return cast_like(_standardize(widened_value(x), axes, epsilon) * widened_value(weight) + widened_value(bias), x)


@expansion(
    relation=Relation("T:float, T -> T", _layer_shape),
    sampler=cases(case((2, 5), (5,)), case((2, 3, 4), (3, 4), epsilon=0.1), case((0, 3), (3,))),
)
def rms_norm(x: Value, weight: Value, epsilon: float = 1e-6) -> Value:
    """x / sqrt(mean of squares + epsilon) * weight, over the last axes, as many as the weight has (Zhang, Sennrich,
    2019). x: (T float, (*b, *s)), weight: (T, s) -> (T, (*b, *s)).

    >>> relay.rms_norm(np.float32([1, 7]), np.float32([5, 5]), epsilon=0.0)
    Array([1., 7.], dtype=float32)
    """
    axes = tuple(range(x.ndim - weight.ndim, x.ndim))
    value = widened_value(x)
    mean = (value * value).op("mean", axis=axes, keepdims=True)
    return cast_like(value * (mean + epsilon).op("rsqrt") * widened_value(weight), x)


# ---- over the batch


@carries(names.first_operand)
def _batch_shape(x: Shape, *vectors: Shape, axis: int, epsilon: float) -> Shape:
    return _check_vectors("batch_norm", x, axis, vectors)


@expansion(
    relation=Relation("T:float, T, T, T, T -> T", _batch_shape),
    sampler=cases(
        case((2, 3, 4), (3,), (3,), (3,), (3,)),
        case((2, 3), (3,), (3,), (3,), (3,), axis=-1, epsilon=0.01),
        case((0, 2), (2,), (2,), (2,), (2,)),
        low=0.1,
    ),
)
def batch_norm(
    x: Value, weight: Value, bias: Value, mean: Value, variance: Value, epsilon: float = 1e-5, axis: int = 1
) -> Value:
    """(x - mean) / sqrt(variance + epsilon) * weight + bias in each channel, with statistics that are given, as for
    inference. x: (T float, s); weight, bias, mean, variance: (T, (c,)), c the extent of the axis -> (T, s).

    >>> relay.batch_norm(np.float32([[5]]), np.float32([2]), np.float32([1]), np.float32([3]), np.float32([4]),
    ...     epsilon=0.0)
    Array([[3.]], dtype=float32)
    """
    position = normalize_axis(axis, x.ndim)
    scale = widened_value(weight) * (widened_value(variance) + epsilon).op("rsqrt")
    centerd = widened_value(x) - _broadcast_along(mean, position, x.ndim)
    return cast_like(centerd * _broadcast_along(scale, position, x.ndim) + _broadcast_along(bias, position, x.ndim), x)


@expansion(
    sampler=cases(
        case((4, 3, 2), (3,), (3,)), case((4, 3), (3,), (3,), axis=-1, epsilon=0.01), case((2, 1, 2, 2), (1,), (1,))
    ),
)
def batch_norm_training(
    x: Value, weight: Value, bias: Value, epsilon: float = 1e-5, axis: int = 1
) -> tuple[Value, Value, Value]:
    """As `batch_norm`, with the mean and the variance of the batch itself, over all axes but the channels'; both are
    returned behind the result. x: (T float, s), weight: (T, (c,)), bias: (T, (c,)) -> ((T, s), (T, (c,)), (T, (c,))).

    For inference keep running means of them, `m * running + (1 - m) * mean`. The variance is the mean of squares,
    without Bessel's correction.

    >>> relay.batch_norm_training(np.float32([[1], [3]]), np.float32([2]), np.float32([1]), epsilon=0.0)
    (Array([[-1.],
           [ 3.]], dtype=float32), Array([2.], dtype=float32), Array([1.], dtype=float32))
    """
    _check_vectors("batch_norm_training", x.shape, axis, [weight.shape, bias.shape])
    position = normalize_axis(axis, x.ndim)
    axes = tuple(i for i in range(x.ndim) if i != position)
    mean = widened_value(x).op("mean", axis=axes, keepdims=True)
    centered = widened_value(x) - mean
    variance = (centered * centered).op("mean", axis=axes, keepdims=True)
    normalized = centered * (variance + epsilon).op("rsqrt")
    result = normalized * _broadcast_along(weight, position, x.ndim) + _broadcast_along(bias, position, x.ndim)
    channels = (x.shape[position],)
    mean, variance = (cast_like(value.op("reshape", shape=channels), x) for value in (mean, variance))
    return cast_like(result, x), mean, variance


# ---- over instances and groups of channels


@carries(names.first_operand)
def _instance_shape(x: Shape, *vectors: Shape, epsilon: float) -> Shape:
    if len(x) < 3:
        raise ShapeError(f"instance_norm needs x: (n, c, *sizes), found the shape {show_shape(x)}")
    return _check_vectors("instance_norm", x, 1, vectors)


@expansion(
    relation=Relation("T:float, T, T -> T", _instance_shape),
    sampler=cases(
        case((2, 3, 4), (3,), (3,)), case((1, 2, 3, 2), (2,), (2,), epsilon=0.01), case((0, 2, 3), (2,), (2,))
    ),
)
def instance_norm(x: Value, weight: Value, bias: Value, epsilon: float = 1e-5) -> Value:
    """Each channel of each example normalized over its places, then scaled.
    x: (T float, (n, c, *sizes)), weight: (T, (c,)), bias: (T, (c,)) -> (T, (n, c, *sizes)).

    >>> relay.instance_norm(np.float32([[[1, 3]]]), np.float32([1]), np.float32([0]), epsilon=0.0)
    Array([[[-1.,  1.]]], dtype=float32)
    """
    normalized = _standardize(widened_value(x), tuple(range(2, x.ndim)), epsilon)
    return cast_like(normalized * _broadcast_along(weight, 1, x.ndim) + _broadcast_along(bias, 1, x.ndim), x)


@carries(names.first_operand)
def _group_shape(x: Shape, *vectors: Shape, groups: int, epsilon: float) -> Shape:
    if len(x) < 2:
        raise ShapeError(f"group_norm needs x: (n, c, *sizes), found the shape {show_shape(x)}")
    if isinstance(groups, bool) or not isinstance(groups, int) or groups < 1 or quotient(x[1], groups) is None:
        raise ShapeError(f"group_norm of {x[1]} channels in {groups!r} groups: it must divide them")
    return _check_vectors("group_norm", x, 1, vectors)


@expansion(
    relation=Relation("T:float, T, T -> T", _group_shape),
    sampler=cases(
        case((2, 4, 3), (4,), (4,), groups=2),
        case((1, 3, 2, 2), (3,), (3,), groups=1),
        case((2, 2), (2,), (2,), groups=1),
    ),
)
def group_norm(x: Value, weight: Value, bias: Value, groups: int, epsilon: float = 1e-5) -> Value:
    """Groups of channels of each example normalized together, then scaled by channel (Wu, He, 2018).
    x: (T float, (n, c, *sizes)), weight: (T, (c,)), bias: (T, (c,)) -> (T, (n, c, *sizes)).

    >>> relay.group_norm(np.float32([[1, 3, 5, 5]]), np.ones(4, np.float32), np.zeros(4, np.float32), 2, epsilon=1e-12)
    Array([[-1.,  1.,  0.,  0.]], dtype=float32)
    """
    batch, channels, *sizes = x.shape
    grouped = widened_value(x).op("reshape", shape=(batch, groups, floor_divide(channels, groups), *sizes))
    normalized = _standardize(grouped, tuple(range(2, x.ndim + 1)), epsilon).op("reshape", shape=x.shape)
    return cast_like(normalized * _broadcast_along(weight, 1, x.ndim) + _broadcast_along(bias, 1, x.ndim), x)


# ---- over neighboring channels


@carries(names.first_operand)
def _lrn_shape(x: Shape, *, size: int, alpha: float, beta: float, bias: float, axis: int) -> Shape:
    normalize_axis(axis, len(x))
    if isinstance(size, bool) or not isinstance(size, int) or size < 1:
        raise ShapeError(f"the size of lrn, a number of channels, must be a positive integer, found {size!r}")
    return x


@expansion(
    relation=Relation("T:float -> T", _lrn_shape),
    sampler=cases(
        case((2, 5, 3), size=3), case((1, 4), size=2, alpha=0.5, beta=0.5, bias=2.0), case((2, 3), size=9, axis=-1)
    ),
)
def lrn(x: Value, size: int, alpha: float = 1e-4, beta: float = 0.75, bias: float = 1.0, axis: int = 1) -> Value:
    """Local response normalization: x / (bias + alpha / size * sum of squares of `size` neighboring channels)**beta
    (Krizhevsky, Sutskever, Hinton, 2012). x: (T float, s) -> (T, s).

    >>> relay.lrn(np.float32([[3, 4]]), 1, alpha=1.0, beta=0.5, bias=0.0)
    Array([[1., 1.]], dtype=float32)
    """
    value = widened_value(x)
    padding = (((size - 1) // 2, size // 2),)
    windows = (value * value).op(
        "sliding_windows", kernel=(size,), axes=(normalize_axis(axis, x.ndim),), padding=padding
    )
    total = windows.op("sum", axis=-1) * (alpha / size) + bias
    return cast_like(value / total**beta, x)


# ---- beside: a rectifier with a slope for each channel


@carries(names.first_operand)
def _prelu_shape(x: Shape, slope: Shape, *, axis: int) -> Shape:
    if len(slope) == 1 and slope[0] == 1:
        return x
    return _check_vectors("prelu", x, axis, (slope,))


@expansion(
    relation=Relation("T:float, T -> T", _prelu_shape),
    sampler=cases(case((2, 3, 4), (3,)), case((2, 3), (1,)), case((5,), (5,), axis=0), case((0, 3), (3,))),
)
def prelu(x: Value, slope: Value, axis: int = 1) -> Value:
    """x where it is positive, elsewhere x times the slope of its channel. x: (T float, s), slope: (T, (c,)) or
    (T, (1,)) -> (T, s).

    >>> relay.prelu(np.float32([[1, -2]]), np.float32([0.5, 0.25]))
    Array([[ 1. , -0.5]], dtype=float32)
    """
    if slope.shape[0] == 1:
        slopes = slope.op("reshape", shape=(1,) * x.ndim)
    else:
        slopes = slope.op("reshape", shape=_broadcast_along(slope, normalize_axis(axis, x.ndim), x.ndim).shape)
    positive = (x > 0).op("cast", dtype=x.base)
    return x * (positive + (1 - positive) * slopes)
