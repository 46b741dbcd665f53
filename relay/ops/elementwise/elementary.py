"""Elementary functions of each element."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from relay.operator import Operator
from relay.ops.notation import Element, Numerics, Pattern, Relation, Tensor, Value, elementwise, register_op
from relay.ops.samples import Sampler, uniform
from relay.ops.tir import circular, scalar, transcendental
from relay.typecheck.relations import same_shape

_UNARY_FLOAT = Relation("T:float -> T", same_shape)


def elementary(
    function: Callable[[Element], Element],
    *,
    gradient: Callable[..., Value],
    half: Callable[[Element], Element] | None = None,
    sampler: Sampler | None = None,
    keep_fp32: bool = False,
) -> Callable[[Callable[[Tensor], Tensor]], Operator]:
    """Register a function of each float by its TIR expression; `half` is another one for floats of 16 bits."""
    return register_op(
        relation=_UNARY_FLOAT,
        pattern=Pattern.ELEMENTWISE,
        compute=elementwise(function, half=half),
        numerics=Numerics(expensive_to_recompute=True, keep_fp32=keep_fp32),
        gradient=gradient,
        sampler=sampler,
    )


@elementary(transcendental.exp, gradient=lambda x, out, dout: dout * out, keep_fp32=True)
def exp(x: Tensor) -> Tensor:
    """e to the x. x: (T float, s) -> (T, s).

    >>> relay.exp(np.float32([0, 1]))
    Array([1.      , 2.718282], dtype=float32)
    """
    return np.exp(x)


@elementary(
    transcendental.exp2,
    half=transcendental.library("exp2"),
    gradient=lambda x, out, dout: dout * out * math.log(2),
)
def exp2(x: Tensor) -> Tensor:
    """2 to the x. x: (T float, s) -> (T, s).

    >>> relay.exp2(np.float32([0, 3]))
    Array([1., 8.], dtype=float32)
    """
    return np.exp2(x)


@elementary(transcendental.expm1, gradient=lambda x, out, dout: dout * (out + 1), keep_fp32=True)
def expm1(x: Tensor) -> Tensor:
    """e to the x, minus 1, accurate for small x. x: (T float, s) -> (T, s).

    >>> relay.expm1(np.float64([0, 1e-10]))
    Array([0.e+00, 1.e-10], dtype=float64)
    """
    return np.expm1(x)


@elementary(
    transcendental.log,
    gradient=lambda x, out, dout: dout / x,
    sampler=uniform(0.2, 3.0),
    keep_fp32=True,
)
def log(x: Tensor) -> Tensor:
    """Natural logarithm: -inf at 0, NaN below. x: (T float, s) -> (T, s).

    >>> relay.log(np.float32([1, 0]))
    Array([  0., -inf], dtype=float32)
    """
    return np.log(x)


@elementary(
    transcendental.log2,
    gradient=lambda x, out, dout: dout / (x * math.log(2)),
    sampler=uniform(0.2, 3.0),
)
def log2(x: Tensor) -> Tensor:
    """Logarithm to base 2: -inf at 0, NaN below. x: (T float, s) -> (T, s).

    >>> relay.log2(np.float32([8, 0]))
    Array([  3., -inf], dtype=float32)
    """
    return np.log2(x)


@elementary(
    transcendental.log10,
    gradient=lambda x, out, dout: dout / (x * math.log(10)),
    sampler=uniform(0.2, 3.0),
)
def log10(x: Tensor) -> Tensor:
    """Logarithm to base 10: -inf at 0, NaN below. x: (T float, s) -> (T, s).

    >>> relay.log10(np.array([100.0, 0.0]))
    Array([  2., -inf], dtype=float64)
    """
    return np.log10(x)


@elementary(
    transcendental.log1p,
    gradient=lambda x, out, dout: dout / (x + 1),
    sampler=uniform(-0.8, 3.0),
    keep_fp32=True,
)
def log1p(x: Tensor) -> Tensor:
    """log(1 + x), accurate for small x. x: (T float, s) -> (T, s).

    >>> relay.log1p(np.float64([0, 1e-10]))
    Array([0.e+00, 1.e-10], dtype=float64)
    """
    return np.log1p(x)


@register_op(
    relation=_UNARY_FLOAT,
    pattern=Pattern.ELEMENTWISE,
    compute=elementwise(transcendental.sqrt, direct=True),
    gradient=lambda x, out, dout: dout * 0.5 / out,
    sampler=uniform(0.2, 3.0),
)
def sqrt(x: Tensor) -> Tensor:
    """Square root; NaN below 0. x: (T float, s) -> (T, s).

    >>> relay.sqrt(np.float32([4, 9]))
    Array([2., 3.], dtype=float32)
    """
    return np.sqrt(x)


@register_op(
    relation=_UNARY_FLOAT,
    pattern=Pattern.ELEMENTWISE,
    compute=elementwise(transcendental.rsqrt, direct=True),
    gradient=lambda x, out, dout: dout * out / x * -0.5,
    sampler=uniform(0.2, 3.0),
    numerics=Numerics(keep_fp32=True),
)
def rsqrt(x: Tensor) -> Tensor:
    """1 / sqrt(x). x: (T float, s) -> (T, s).

    >>> relay.rsqrt(np.float32([4, 1]))
    Array([0.5, 1. ], dtype=float32)
    """
    return np.reciprocal(np.sqrt(x))


@register_op(
    relation=_UNARY_FLOAT,
    pattern=Pattern.ELEMENTWISE,
    compute=elementwise(lambda x: scalar.constant(1, x) / x, direct=True),
    gradient=lambda x, out, dout: -(dout * out * out),
    sampler=uniform(0.2, 3.0),
)
def reciprocal(x: Tensor) -> Tensor:
    """1 / x. x: (T float, s) -> (T, s).

    >>> relay.reciprocal(np.float32([4, 0]))
    Array([0.25,  inf], dtype=float32)
    """
    return np.reciprocal(x)


@elementary(
    circular.sin,
    half=transcendental.library("sin"),
    gradient=lambda x, out, dout: dout * x.op("cos"),
)
def sin(x: Tensor) -> Tensor:
    """Sine of radians. x: (T float, s) -> (T, s).

    >>> relay.sin(np.float32([0]))
    Array([0.], dtype=float32)
    """
    return np.sin(x)


@elementary(
    circular.cos,
    half=transcendental.library("cos"),
    gradient=lambda x, out, dout: -(dout * x.op("sin")),
)
def cos(x: Tensor) -> Tensor:
    """Cosine of radians. x: (T float, s) -> (T, s).

    >>> relay.cos(np.float32([0]))
    Array([1.], dtype=float32)
    """
    return np.cos(x)


@elementary(transcendental.tanh, gradient=lambda x, out, dout: dout * (1 - out * out))
def tanh(x: Tensor) -> Tensor:
    """Hyperbolic tangent. x: (T float, s) -> (T, s).

    >>> relay.tanh(np.float32([0, 100]))
    Array([0., 1.], dtype=float32)
    """
    return np.tanh(x)


@elementary(transcendental.sigmoid, gradient=lambda x, out, dout: dout * out * (1 - out))
def sigmoid(x: Tensor) -> Tensor:
    """1 / (1 + exp(-x)), without overflow. x: (T float, s) -> (T, s).

    >>> relay.sigmoid(np.float32([0, 1000]))
    Array([0.5, 1. ], dtype=float32)
    """
    e = np.exp(-np.abs(x))
    return np.asarray(np.where(x < 0, e, np.ones_like(e)) / (1 + e))
