"""Losses. `reduction` is "mean", "sum" or "none" (one number for each element or example)."""

from __future__ import annotations

from typing import Any

import numpy as np

from relay.errors import ShapeError
from relay.ir.types import INT32, INT64, Shape, show_shape
from relay.ops import batching
from relay.ops.elementwise.comparison import where
from relay.ops.notation import Batch, Batching, Relation, Requirement, Value, expansion
from relay.ops.samples import case, cases
from relay.typecheck.dims import equal_shapes, normalize_axis


def _check_reduction(reduction: object) -> None:
    if reduction not in ("mean", "sum", "none"):
        raise ShapeError(f"reduction must be 'mean', 'sum' or 'none', found {reduction!r}")


def _elementwise_shape(x: Shape, y: Shape, *, reduction: str, **attributes: object) -> Shape:
    _check_reduction(reduction)
    if not equal_shapes(x, y):
        raise ShapeError(f"predictions of shape {show_shape(x)} need targets of the same shape, found {show_shape(y)}")
    return x if reduction == "none" else ()


_PAIRS = cases(
    case((2, 3), (2, 3)), case((4,), (4,), reduction="sum"), case((2, 2), (2, 2), reduction="none"), case((), ())
)
_UNIT_PAIRS = cases(
    case((2, 3), (2, 3)), case((4,), (4,), reduction="sum"), case((2, 2), (2, 2), reduction="none"), low=0.1, high=0.9
)
_RELATION = Relation("T:float, T -> T", _elementwise_shape)


def _reduce_loss(loss: Value, reduction: str) -> Value:
    return loss if reduction == "none" else loss.op(reduction)


@expansion(relation=_RELATION, sampler=_PAIRS)
def mse_loss(prediction: Value, target: Value, reduction: str = "mean") -> Value:
    """(prediction - target) squared. prediction: (T float, s), target: (T, s) -> (T, ()), or (T, s) unreduced.

    >>> relay.mse_loss(np.float32([1, 2]), np.float32([1, 4]))
    Array(2., dtype=float32)
    """
    difference = prediction - target
    return _reduce_loss(difference * difference, reduction)


@expansion(relation=_RELATION, sampler=_PAIRS)
def l1_loss(prediction: Value, target: Value, reduction: str = "mean") -> Value:
    """|prediction - target|. prediction: (T float, s), target: (T, s) -> (T, ()), or (T, s) unreduced.

    >>> relay.l1_loss(np.float32([1, 2]), np.float32([1, 4]))
    Array(1., dtype=float32)
    """
    return _reduce_loss((prediction - target).op("abs"), reduction)


@expansion(
    relation=_RELATION,
    sampler=cases(
        case((2, 3), (2, 3), delta=0.3),
        case((4,), (4,), delta=1.5, reduction="sum"),
        case((2,), (2,), reduction="none"),
    ),
)
def huber_loss(prediction: Value, target: Value, delta: float = 1.0, reduction: str = "mean") -> Value:
    """d**2 / 2 where |d| <= delta, otherwise delta (|d| - delta / 2), for d = prediction - target (Huber, 1964).
    prediction: (T float, s), target: (T, s) -> (T, ()), or (T, s) unreduced.

    >>> relay.huber_loss(np.float32([1, 2]), np.float32([1, 4]))
    Array(0.75, dtype=float32)
    """
    difference = prediction - target
    size = difference.op("abs")
    squared, linear = difference * difference * 0.5, (size - delta / 2) * delta
    return _reduce_loss(where(size <= delta, squared, linear), reduction)


@expansion(relation=_RELATION, sampler=_PAIRS)
def hinge_loss(prediction: Value, target: Value, reduction: str = "mean") -> Value:
    """max(0, 1 - prediction target), of targets 1 and -1. prediction: (T float, s), target: (T, s) -> (T, ()), or
    (T, s) unreduced.

    >>> relay.hinge_loss(np.float32([0.5, 2]), np.float32([1, -1]))
    Array(1.75, dtype=float32)
    """
    return _reduce_loss((1 - prediction * target).op("relu"), reduction)


def _log_where_positive(x: Value) -> Value:
    """log x where x > 0, otherwise 0: what 0 log 0 needs, also in its derivative."""
    return where(x > 0, x, x.op("ones_like")).op("log")


@expansion(relation=_RELATION, sampler=_UNIT_PAIRS)
def binary_cross_entropy(prediction: Value, target: Value, reduction: str = "mean") -> Value:
    """-target log p - (1 - target) log(1 - p) of probabilities p, with logarithms of at least -100.
    prediction: (T float, s), target: (T, s) -> (T, ()), or (T, s) unreduced.

    >>> relay.binary_cross_entropy(np.float32([0.5]), np.float32([1]))
    Array(0.6931472, dtype=float32)
    """
    positive = prediction.op("log").op("maximum", -100.0)
    negative = (-prediction).op("log1p").op("maximum", -100.0)
    return _reduce_loss(-(target * positive + (1 - target) * negative), reduction)


def _logits_gradient(prediction: Value, target: Value, out: Value, dout: Value, reduction: str) -> tuple[Value, Value]:
    """sigmoid(x) - target, which is smooth where the formula for the loss has corners."""
    share = dout
    if reduction == "mean":
        share = dout / prediction.emitter.number(prediction.size, prediction.base)
    return (prediction.op("sigmoid") - target) * share, -prediction * share


def _batched_loss(batch: Batch, prediction: Value, target: Value, reduction: str) -> Value:
    """The losses of all elements, reduced for each example."""
    losses = batch.call(*batch.stretch_all((prediction, target)), reduction="none")
    return losses if reduction == "none" else losses.op(reduction, axis=batching.shift_axes(None, batch.rank()))


@expansion(relation=_RELATION, gradient=_logits_gradient, batching=Batching(rule=_batched_loss), sampler=_PAIRS)
def binary_cross_entropy_with_logits(prediction: Value, target: Value, reduction: str = "mean") -> Value:
    """The binary cross-entropy of p = sigmoid(prediction), without overflow or cancellation:
    max(x, 0) - x target + log(1 + exp(-|x|)). prediction: (T float, s), target: (T, s) -> (T, ()), or (T, s) unreduced.

    >>> relay.binary_cross_entropy_with_logits(np.float32([0, 1000]), np.float32([1, 1]))
    Array(0.3465736, dtype=float32)
    """
    small = (-prediction.op("abs")).op("exp").op("log1p")
    return _reduce_loss(prediction.op("relu") - prediction * target + small, reduction)


def _kl_shape(x: Shape, y: Shape, *, reduction: str) -> Shape:
    return _elementwise_shape(x, y, reduction="sum" if reduction == "batchmean" else reduction)


@expansion(
    relation=Relation("T:float, T -> T", _kl_shape),
    sampler=cases(
        case((2, 3), (2, 3), reduction="batchmean"), case((4,), (4,)), case((2, 2), (2, 2), reduction="none"), low=0.1
    ),
)
def kl_div(prediction: Value, target: Value, reduction: str = "mean") -> Value:
    """The terms target (log target - prediction) of the Kullback-Leibler divergence, where the prediction is a
    logarithm of probabilities; 0 where the target is. "batchmean" divides the sum by the first extent.
    prediction: (T float, s), target: (T, s) -> (T, ()), or (T, s) unreduced.

    >>> relay.kl_div(np.log(np.float32([[0.5, 0.5]])), np.float32([[1, 0]]), reduction="batchmean")
    Array(0.6931472, dtype=float32)
    """
    loss = target * (_log_where_positive(target) - prediction)
    if reduction == "batchmean":
        return loss.op("sum") / target.emitter.number(target.shape[0], target.base)
    return _reduce_loss(loss, reduction)


# ---- classes


def _class_shape(x: Shape, target: Shape, *, axis: int, reduction: str, **attributes: object) -> Shape:
    _check_reduction(reduction)
    position = normalize_axis(axis, len(x))
    wanted = (*x[:position], *x[position + 1 :])
    if not equal_shapes(wanted, target):
        raise ShapeError(
            f"predictions of shape {show_shape(x)}, with classes along axis {axis}, need targets of shape"
            f" {show_shape(wanted)}, found {show_shape(target)}"
        )
    return wanted if reduction == "none" else ()


def _is_class(x: Value, target: Value, axis: int, ignore_index: int | None, **attributes: Any) -> Value:
    wide = target if target.base in (INT32, INT64) else target.op("cast", dtype=INT64)
    valid = (wide >= 0) & (wide < x.shape[normalize_axis(axis, x.ndim)])
    if ignore_index is not None:
        valid = valid.op("logical_or", wide == ignore_index)
    return valid.op("all") if valid.ndim else valid


_VALID = (Requirement(_is_class, "a target is not a class"),)


def _class_loss(scores: Value, target: Value, axis: int, ignore_index: int | None, reduction: str) -> Value:
    """Minus the score of each target's class; ignored targets count neither in the sum nor in the mean."""
    position = normalize_axis(axis, scores.ndim)
    counted = None if ignore_index is None else target != ignore_index
    index = target if counted is None else where(counted, target, target.op("zeros_like"))
    found = scores.op("take_along_axis", index.op("expand_dims", axis=position), axis=position)
    loss = -found.op("squeeze", axis=position)
    if counted is None:
        return _reduce_loss(loss, reduction)
    weights = counted.op("cast", dtype=loss.base)
    loss = where(counted, loss, loss.op("zeros_like"))
    return loss.op("sum") / weights.op("sum") if reduction == "mean" else _reduce_loss(loss, reduction)


_CLASSES = cases(
    case((3, 4), np.array([1, 3, 0], np.int32)),
    case((2, 4, 3), np.array([[1, 3, 0], [2, 2, 1]], np.int64), axis=1, reduction="none"),
    case((3, 4), np.array([1, -100, 0], np.int32), ignore_index=-100),
    case((4,), np.array(2, np.int32), reduction="sum"),
)


@expansion(relation=Relation("T:float, I:int -> T", _class_shape), requirements=_VALID, sampler=_CLASSES)
def nll_loss(
    prediction: Value, target: Value, axis: int = -1, ignore_index: int | None = None, reduction: str = "mean"
) -> Value:
    """Minus the prediction for each target's class, where predictions are logarithms of probabilities along an axis.
    prediction: (T float, (*s, c)), target: (int, s) in [0, c) -> (T, ()), or (T, s) unreduced.

    >>> relay.nll_loss(np.float32([[-1, -2], [-3, -4]]), np.int32([0, 1]))
    Array(2.5, dtype=float32)
    """
    return _class_loss(prediction, target, axis, ignore_index, reduction)


@expansion(
    relation=Relation("T:float, I:int -> T", _class_shape),
    requirements=_VALID,
    sampler=cases(
        case((3, 4), np.array([1, 3, 0], np.int32)),
        case((2, 4, 3), np.array([[1, 3, 0], [2, 2, 1]], np.int64), axis=1, reduction="none"),
        case((3, 4), np.array([1, -1, 0], np.int32), ignore_index=-1, label_smoothing=0.1),
    ),
)
def cross_entropy(
    logits: Value,
    target: Value,
    axis: int = -1,
    ignore_index: int | None = None,
    label_smoothing: float = 0.0,
    reduction: str = "mean",
) -> Value:
    """Minus the logarithm of softmax(logits) for each target's class, without overflow; with `label_smoothing` a part
    of each target's weight is spread evenly over all classes.
    logits: (T float, (*s, c)), target: (int, s) in [0, c) -> (T, ()), or (T, s) unreduced.

    >>> relay.cross_entropy(np.float32([[1000, 1000]]), np.int32([0]))
    Array(0.6931472, dtype=float32)
    """
    scores = logits.op("log_softmax", axis=axis)
    if label_smoothing:
        position = normalize_axis(axis, logits.ndim)
        even = scores.op("mean", axis=position, keepdims=True)
        scores = scores * (1 - label_smoothing) + even * label_smoothing
    return _class_loss(scores, target, axis, ignore_index, reduction)


def _soft_shape(x: Shape, target: Shape, *, axis: int, reduction: str) -> Shape:
    _elementwise_shape(x, target, reduction=reduction)
    position = normalize_axis(axis, len(x))
    return (*x[:position], *x[position + 1 :]) if reduction == "none" else ()


@expansion(
    relation=Relation("T:float, T -> T", _soft_shape),
    sampler=cases(case((3, 4), (3, 4)), case((2, 3, 2), (2, 3, 2), axis=1, reduction="none")),
)
def soft_cross_entropy(logits: Value, target: Value, axis: int = -1, reduction: str = "mean") -> Value:
    """Minus the sum of target log softmax(logits) along an axis, where targets are probabilities.
    logits: (T float, (*s, c)), target: (T, (*s, c)) -> (T, ()), or (T, s) unreduced.

    >>> relay.soft_cross_entropy(np.float32([[0, 0]]), np.float32([[0.5, 0.5]]))
    Array(0.6931472, dtype=float32)
    """
    loss = -(target * logits.op("log_softmax", axis=axis)).op("sum", axis=axis)
    return _reduce_loss(loss, reduction)
