"""Activation functions, composed of others; `sigmoid` is in elementary."""

from __future__ import annotations

import math
from typing import Any

from relay.operator import composite
from relay.ops import batching
from relay.ops.elementwise.arithmetic import absolute, maximum, minimum, square
from relay.ops.elementwise.comparison import where
from relay.ops.elementwise.elementary import exp, expm1, log1p, sigmoid, tanh
from relay.ops.elementwise.trigonometric import ndtr
from relay.ops.notation import Algebra, Batching, Pattern, Relation, Tensor, Value, elementwise, number_like
from relay.ops.samples import case, cases
from relay.ops.tir import scalar
from relay.typecheck.relations import same_shape

_FLOAT = Relation("T:float -> T", same_shape)
_LINEAR = 2 * math.sqrt(2 / math.pi)  # gelu's approximate gate is sigmoid(_LINEAR x + _CUBIC x**3)
_CUBIC = _LINEAR * 0.044715


@composite(
    relation=Relation("T:number -> T", same_shape),
    pattern=Pattern.ELEMENTWISE,
    compute=elementwise(scalar.relu),
    gradient=lambda x, out, dout: where(x > 0, dout, number_like(dout, 0)),
    algebra=Algebra(idempotent=True, homogeneous=True),
)
def relu(x: Tensor) -> Tensor:
    """The larger of x and 0, NaN of NaN; its gradient at 0 is 0. x: (T, s) -> (T, s).

    >>> relay.relu(np.float32([3, -2]))
    Array([3., 0.], dtype=float32)
    """
    return maximum(x, 0)


@composite(
    relation=_FLOAT, gradient=lambda x, out, dout: dout * x.op("sigmoid"), batching=Batching(rule=batching.same_call)
)
def softplus(x: Tensor) -> Tensor:
    """log(1 + exp(x)), without overflow. x: (T float, s) -> (T, s).

    >>> relay.softplus(np.float32([0, 1000]))
    Array([6.931472e-01, 1.000000e+03], dtype=float32)
    """
    return maximum(x, 0.0) + log1p(exp(-absolute(x)))


# ---- x times a gate, which grows from 0 to 1
#
# Far to the left the gate is 0, and x is bounded there, so that 0 is the result at -infinity. -1000 is beyond all x
# where the product is not a zero in any dtype. The derivative, gate + x slope, is written out, since the slope is 0 on
# both sides.


def _gate_gradient(x: Value, dout: Value, gate: Value, slope: Value) -> Value:
    return dout * (gate + x.op("clip", low=-1000.0, high=1000.0) * slope)


def _silu_gradient(x: Value, out: Value, dout: Value) -> Value:
    gate = x.op("sigmoid")
    return _gate_gradient(x, dout, gate, gate * (1 - gate))


@composite(relation=_FLOAT, gradient=_silu_gradient, batching=Batching(rule=batching.same_call))
def silu(x: Tensor) -> Tensor:
    """x sigmoid(x). x: (T float, s) -> (T, s).

    >>> relay.silu(np.float32([0, 1, -np.inf]))
    Array([ 0.       ,  0.7310586, -0.       ], dtype=float32)
    """
    return maximum(x, -1000.0) * sigmoid(x)


def _mish_gradient(x: Value, out: Value, dout: Value) -> Value:
    gate = x.op("softplus").op("tanh")
    return _gate_gradient(x, dout, gate, (1 - gate * gate) * x.op("sigmoid"))


@composite(relation=_FLOAT, gradient=_mish_gradient, batching=Batching(rule=batching.same_call))
def mish(x: Tensor) -> Tensor:
    """x tanh(softplus(x)). x: (T float, s) -> (T, s).

    >>> relay.mish(np.float32([0, 1]))
    Array([0.       , 0.8650984], dtype=float32)
    """
    return maximum(x, -1000.0) * tanh(softplus(x))


def _gelu_gradient(x: Value, out: Value, dout: Value, approximate: str) -> Value:
    if approximate == "none":
        gate = x.op("ndtr")
        near = x.op("clip", low=-40.0, high=40.0)  # the slope is 0 from there on
        return _gate_gradient(x, dout, gate, (near * near * -0.5).op("exp") / math.sqrt(2 * math.pi))
    near = x.op("clip", low=-100.0, high=100.0)  # the gate is 0 or 1 from there on
    squared = near * near
    gate = (near * (squared * _CUBIC) + near * _LINEAR).op("sigmoid")
    return _gate_gradient(x, dout, gate, gate * (1 - gate) * (squared * (3 * _CUBIC) + _LINEAR))


@composite(
    relation=_FLOAT,
    gradient=_gelu_gradient,
    batching=Batching(rule=batching.same_call),
    sampler=cases(case(()), case((2, 3)), case((0, 3)), case((2, 3), approximate="tanh")),
)
def gelu(x: Tensor, approximate: str = "none") -> Tensor:
    """x Phi(x), where Phi is the normal distribution function; approximate="tanh" takes
    (1 + tanh(sqrt(2 / pi) (x + 0.044715 x**3))) / 2 for it, which is sigmoid(1.5957691 x + 0.0713548 x**3).
    x: (T float, s) -> (T, s).

    >>> relay.gelu(np.float32([0, 1]))
    Array([0.       , 0.8413448], dtype=float32)
    """
    if approximate == "tanh":
        near = clip(x, -100.0, 100.0)
        return maximum(x, -1000.0) * sigmoid(near * (square(near) * 0.07135481627260025) + near * 1.5957691216057308)
    assert approximate == "none", "approximate is 'none' or 'tanh'"
    return maximum(x, -1000.0) * ndtr(x)


@composite(relation=Relation("T:float -> T", same_shape), batching=Batching(rule=batching.same_call))
def leaky_relu(x: Tensor, alpha: float = 0.01) -> Tensor:
    """x where it is positive, otherwise alpha x. x: (T float, s) -> (T, s).

    >>> relay.leaky_relu(np.float32([2, -2]))
    Array([ 2.  , -0.02], dtype=float32)
    """
    return where(x > 0.0, x, x * alpha)


def _elu_gradient(x: Value, out: Value, dout: Value, alpha: float) -> Value:
    return dout * where(x > 0, number_like(x, 1), out + alpha)


@composite(relation=_FLOAT, gradient=_elu_gradient, batching=Batching(rule=batching.same_call))
def elu(x: Tensor, alpha: float = 1.0) -> Tensor:
    """x where it is positive, otherwise alpha (exp(x) - 1). x: (T float, s) -> (T, s).

    >>> relay.elu(np.float32([2, -2]))
    Array([ 2.        , -0.86466473], dtype=float32)
    """
    return where(x > 0.0, x, expm1(minimum(x, 0.0)) * alpha)


@composite(relation=_FLOAT, batching=Batching(rule=batching.same_call))
def selu(x: Tensor) -> Tensor:
    """1.0507 elu(x, 1.6733): it keeps mean 0 and variance 1. x: (T float, s) -> (T, s).

    >>> relay.selu(np.float32([2, -2]))
    Array([ 2.101402 , -1.5201665], dtype=float32)
    """
    return elu(x, 1.6732632423543772) * 1.0507009873554805


def _hardswish_gradient(x: Value, out: Value, dout: Value) -> Value:
    one, zero = number_like(x, 1), number_like(x, 0)
    return dout * where(x < -3, zero, where(x > 3, one, x / 3 + 0.5))


@composite(relation=_FLOAT, gradient=_hardswish_gradient, batching=Batching(rule=batching.same_call))
def hardswish(x: Tensor) -> Tensor:
    """x times x + 3 cut to [0, 6], divided by 6. x: (T float, s) -> (T, s).

    >>> relay.hardswish(np.float32([1, -4]))
    Array([ 0.6666667, -0.       ], dtype=float32)
    """
    return maximum(x, -1000.0) * (clip(x + 3.0, 0.0, 6.0) / 6.0)


def _clip_gradient(x: Value, out: Value, dout: Value, low: float | None, high: float | None) -> Value:
    kept: Any = None
    if low is not None:
        kept = x >= low
    if high is not None:
        kept = x <= high if kept is None else kept & (x <= high)
    return dout if kept is None else where(kept, dout, number_like(dout, 0))


@composite(
    relation=Relation("T:number -> T", same_shape),
    gradient=_clip_gradient,
    batching=Batching(rule=batching.same_call),
    sampler=cases(
        case((), low=0, high=1),
        case((2, 3), low=-1),
        case((2, 3), high=1),
        case((0, 3), low=0, high=1),
        case((3, 1, 5), low=0, high=2),
    ),
)
def clip(x: Tensor, low: float | None = None, high: float | None = None) -> Tensor:
    """The larger of x and `low`, of that the smaller with `high`; NaN stays. The gradient passes where x is not outside
    the bounds. x: (T, s) -> (T, s).

    >>> relay.clip(np.float32([-2, 0.5, 3]), 0, 1)
    Array([0. , 0.5, 1. ], dtype=float32)
    """
    if low is not None:
        x = maximum(x, low)
    if high is not None:
        x = minimum(x, high)
    return x
