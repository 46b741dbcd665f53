"""Reductions composed of sums, means and extrema: variance, norms, the logarithm of a sum of exponentials."""

from __future__ import annotations

import math

from relay.ir.dims import product
from relay.ir.types import Shape
from relay.operator import composite
from relay.operator.axes import carries
from relay.ops import batching
from relay.ops.elementwise.arithmetic import absolute, maximum, square
from relay.ops.elementwise.comparison import equal, isfinite, not_equal, stop_gradient, where
from relay.ops.elementwise.elementary import exp, log, log1p, sqrt
from relay.ops.notation import Batching, Indexing, Relation, Tensor, Value, expansion
from relay.ops.reduction.reductions import Axes, max_, min_, restore_axes, sum_
from relay.ops.samples import case, cases
from relay.ops.shape.reshaping import squeeze
from relay.typecheck import axes as names
from relay.typecheck import relations
from relay.typecheck.dims import normalize_axes

_SHAPES = (
    case(()),
    case((5,)),
    case((2, 3), axis=0),
    case((2, 3), axis=-1, keepdims=True),
    case((2, 3, 4), axis=(0, 2)),
    case((2, 1, 3), axis=1),
    case((0, 3), axis=1),
)


@carries(names.reduced_names)
def _reduction_shape(shape: Shape, *, axis: Axes, keepdims: bool, **attributes: object) -> Shape:
    return relations.reduce(shape, axis=axis, keepdims=keepdims)


_REDUCTION = Relation("T:float -> T", _reduction_shape)


@expansion(
    relation=_REDUCTION,
    indexing=Indexing(reduction_axes="axis"),
    sampler=cases(*_SHAPES, case((0, 3), axis=0), case((3, 4), axis=1, ddof=1)),
)
def var(x: Value, axis: Axes = None, keepdims: bool = False, ddof: int = 0) -> Value:
    """The mean square distance to the mean, where the number n of elements is taken as n - ddof, or as 0.
    x: (T float, s) -> (T, s without the axes).

    >>> relay.var(np.float32([[1, 3], [2, 6]]), axis=1)
    Array([1., 4.], dtype=float32)
    """
    squares = (x - x.op("mean", axis=axis, keepdims=True)).op("square")
    if ddof == 0:
        return squares.op("mean", axis=axis, keepdims=keepdims)
    count = product(x.shape[a] for a in normalize_axes(axis, x.ndim))
    if isinstance(count, int):
        number: Value | float = max(count - ddof, 0)
    else:
        number = (x.emitter.number(count, x.base) - ddof).op("maximum", 0)
    return squares.op("sum", axis=axis, keepdims=keepdims) / number


@expansion(
    relation=_REDUCTION,
    indexing=Indexing(reduction_axes="axis"),
    sampler=cases(
        case((5,)), case((2, 3), axis=-1, keepdims=True), case((2, 3, 4), axis=(0, 2)), case((3, 4), axis=1, ddof=1)
    ),
)
def std(x: Value, axis: Axes = None, keepdims: bool = False, ddof: int = 0) -> Value:
    """The square root of `var`, whose gradient where it is 0 is 0. x: (T float, s) -> (T, s without the axes).

    >>> relay.std(np.float32([[1, 3], [2, 6]]), axis=1)
    Array([1., 2.], dtype=float32)
    """
    variance = x.op("var", axis=axis, keepdims=keepdims, ddof=ddof)
    positive = variance != 0
    return positive.op("where", positive.op("where", variance, 1.0).op("sqrt"), 0.0)


def _logsumexp_gradient(x: Value, out: Value, dout: Value, axis: Axes, keepdims: bool) -> Value:
    total = restore_axes(out, x, axis)
    finite = total.op("isfinite")
    return restore_axes(dout, x, axis) * (x - where(finite, total, total.op("zeros_like"))).op("exp")


@composite(
    relation=_REDUCTION,
    gradient=_logsumexp_gradient,
    indexing=Indexing(reduction_axes="axis"),
    sampler=cases(*_SHAPES, case((0, 3), axis=0)),
)
def logsumexp(x: Tensor, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """log(sum(exp(x))) along axes, without overflow; -inf of no elements. x: (T float, s) -> (T, s
    without the axes).

    >>> relay.logsumexp(np.float32([1000, 1000]))
    Array(1000.6932, dtype=float32)
    """
    if x.size == 0:
        return sum_(x, axis, keepdims) - math.inf
    highest = stop_gradient(max_(x, axis, keepdims=True))
    highest = where(isfinite(highest), highest, 0.0)
    total = log(sum_(exp(x - highest), axis, keepdims=True)) + highest
    return total if keepdims else squeeze(total, axis)


def _logaddexp_gradient(x: Value, y: Value, out: Value, dout: Value) -> tuple[Value, Value]:
    finite = out.op("isfinite")
    total = where(finite, out, out.op("zeros_like"))
    return dout * (x - total).op("exp"), dout * (y - total).op("exp")


@composite(
    relation=Relation("T:float, T -> T", relations.broadcast),
    gradient=_logaddexp_gradient,
    batching=Batching(rule=batching.broadcast),
    sampler=cases(case((2, 3), (2, 3)), case((2, 3), (3,)), case((), (2,)), case((0, 3), (3,))),
)
def logaddexp(x: Tensor, y: Tensor) -> Tensor:
    """log(exp(x) + exp(y)), without overflow. x: (T float, s1), y: (T, s2) -> (T, broadcast(s1, s2)).

    >>> relay.logaddexp(np.float32([0, -np.inf]), np.float32(0))
    Array([0.6931472, 0.       ], dtype=float32)
    """
    distance = where(equal(x, y), 0.0, x - y)
    return maximum(x, y) + log1p(exp(-absolute(distance)))


@composite(
    relation=_REDUCTION,
    indexing=Indexing(reduction_axes="axis"),
    sampler=cases(*_SHAPES, *(case((2, 3), ord=p, axis=1) for p in (1, 2, 3, 0, float("inf"), float("-inf")))),
)
def norm(x: Tensor, ord: float = 2, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """The vector norm (sum |x|**ord)**(1 / ord) along axes, of all elements without any; the largest |x| for inf, the
    smallest for -inf, the number of nonzero elements for 0. The gradient of the 2-norm at 0 is 0. x: (T float, s) ->
    (T, s without the axes).

    >>> relay.norm(np.float32([3, 4]))
    Array(5., dtype=float32)
    """
    if ord == float("inf"):
        return max_(absolute(x), axis, keepdims)
    if ord == float("-inf"):
        return min_(absolute(x), axis, keepdims)
    if ord == 0:
        return sum_(where(not_equal(x, 0.0), 1.0 + x * 0.0, x * 0.0), axis, keepdims)
    if ord == 1:
        return sum_(absolute(x), axis, keepdims)
    if ord == 2:
        squares = sum_(square(x), axis, keepdims)
        positive = not_equal(squares, 0.0)
        return where(positive, sqrt(where(positive, squares, 1.0)), 0.0)
    return sum_(absolute(x) ** float(ord), axis, keepdims) ** (1.0 / ord)
