"""Circular and hyperbolic functions, and the error function, of each element."""

from __future__ import annotations

import math

import numpy as np

from relay.operator import composite
from relay.ops import batching
from relay.ops.elementwise.elementary import elementary
from relay.ops.notation import Batching, Numerics, Pattern, Relation, Tensor, Value, alias, elementwise, register_op
from relay.ops.samples import uniform
from relay.ops.tir import circular, transcendental
from relay.typecheck.relations import broadcast, same_shape


@elementary(
    circular.tan,
    half=transcendental.library("tan"),
    gradient=lambda x, out, dout: dout * (1 + out * out),
    sampler=uniform(-1.2, 1.2),
)
def tan(x: Tensor) -> Tensor:
    """Tangent of radians. x: (T float, s) -> (T, s).

    >>> relay.tan(np.float32([0, 1]))
    Array([0.       , 1.5574077], dtype=float32)
    """
    return np.tan(x)


@elementary(
    circular.asin,
    half=transcendental.library("asin"),
    gradient=lambda x, out, dout: dout * (1 - x * x).op("rsqrt"),
    sampler=uniform(-0.9, 0.9),
)
def asin(x: Tensor) -> Tensor:
    """The angle in [-pi/2, pi/2] whose sine is x; NaN outside [-1, 1]. x: (T float, s) -> (T, s).

    >>> relay.asin(np.float32([0, 1]))
    Array([0.       , 1.5707964], dtype=float32)
    """
    return np.arcsin(x)


@elementary(
    circular.acos,
    half=transcendental.library("acos"),
    gradient=lambda x, out, dout: -(dout * (1 - x * x).op("rsqrt")),
    sampler=uniform(-0.9, 0.9),
)
def acos(x: Tensor) -> Tensor:
    """The angle in [0, pi] whose cosine is x; NaN outside [-1, 1]. x: (T float, s) -> (T, s).

    >>> relay.acos(np.float32([1, 0]))
    Array([0.       , 1.5707964], dtype=float32)
    """
    return np.arccos(x)


@elementary(
    circular.atan,
    half=transcendental.library("atan"),
    gradient=lambda x, out, dout: dout / (x * x + 1),
)
def atan(x: Tensor) -> Tensor:
    """The angle in [-pi/2, pi/2] whose tangent is x. x: (T float, s) -> (T, s).

    >>> relay.atan(np.float32([0, np.inf]))
    Array([0.       , 1.5707964], dtype=float32)
    """
    return np.arctan(x)


def _atan2_gradient(y: Value, x: Value, out: Value, dout: Value) -> tuple[Value, Value]:
    share = dout / (x * x + y * y)
    return share * x, -(share * y)


@register_op(
    relation=Relation("T:float, T -> T", broadcast),
    pattern=Pattern.BROADCAST,
    compute=elementwise(circular.atan2, half=circular.atan2_library),
    numerics=Numerics(expensive_to_recompute=True),
    gradient=_atan2_gradient,
    sampler=uniform(0.3, 2.0, operands=2),
)
def atan2(y: Tensor, x: Tensor) -> Tensor:
    """The angle in [-pi, pi] of the point (x, y). y: (T float, s1), x: (T, s2) -> (T, broadcast(s1, s2)).

    >>> relay.atan2(np.float32([0, 1]), np.float32([-1, 0]))
    Array([3.1415927, 1.5707964], dtype=float32)
    """
    return np.arctan2(y, x)


@elementary(
    circular.sinh,
    half=transcendental.library("sinh"),
    gradient=lambda x, out, dout: dout * x.op("cosh"),
)
def sinh(x: Tensor) -> Tensor:
    """Hyperbolic sine. x: (T float, s) -> (T, s).

    >>> relay.sinh(np.float32([0, 1]))
    Array([0.       , 1.1752012], dtype=float32)
    """
    return np.sinh(x)


@elementary(
    circular.cosh,
    half=transcendental.library("cosh"),
    gradient=lambda x, out, dout: dout * x.op("sinh"),
)
def cosh(x: Tensor) -> Tensor:
    """Hyperbolic cosine. x: (T float, s) -> (T, s).

    >>> relay.cosh(np.array([0.0, 1.0]))
    Array([1.        , 1.54308063], dtype=float64)
    """
    return np.cosh(x)


@elementary(
    circular.asinh,
    half=transcendental.library("asinh"),
    gradient=lambda x, out, dout: dout * (x * x + 1).op("rsqrt"),
)
def asinh(x: Tensor) -> Tensor:
    """The number whose hyperbolic sine is x. x: (T float, s) -> (T, s).

    >>> relay.asinh(np.float32([0, 1]))
    Array([0.       , 0.8813736], dtype=float32)
    """
    return np.arcsinh(x)


@elementary(
    circular.acosh,
    half=transcendental.library("acosh"),
    gradient=lambda x, out, dout: dout * (x * x - 1).op("rsqrt"),
    sampler=uniform(1.1, 4.0),
)
def acosh(x: Tensor) -> Tensor:
    """The number, not negative, whose hyperbolic cosine is x; NaN below 1. x: (T float, s) -> (T, s).

    >>> relay.acosh(np.float32([1, 2]))
    Array([0.      , 1.316958], dtype=float32)
    """
    return np.arccosh(x)


@elementary(
    circular.atanh,
    half=transcendental.library("atanh"),
    gradient=lambda x, out, dout: dout / (1 - x * x),
    sampler=uniform(-0.9, 0.9),
)
def atanh(x: Tensor) -> Tensor:
    """The number whose hyperbolic tangent is x; NaN outside [-1, 1]. x: (T float, s) -> (T, s).

    >>> relay.atanh(np.float32([0, 0.5]))
    Array([0.        , 0.54930615], dtype=float32)
    """
    return np.arctanh(x)


_vectorized_erf = np.vectorize(math.erf, otypes=[np.float64])
_vectorized_erfc = np.vectorize(math.erfc, otypes=[np.float64])


def _in_double(function: np.vectorize, x: Tensor) -> Tensor:
    return np.asarray(function(x.astype(np.float64))).reshape(x.shape).astype(x.dtype)


def _density(x: Value) -> Value:
    """The derivative of erf: 2 / sqrt(pi) e**(-x**2), which is 0 from 40 on; so is its own derivative at infinity."""
    near = x.op("clip", low=-40.0, high=40.0)
    return (-(near * near)).op("exp") * (2 / math.sqrt(math.pi))


@elementary(
    transcendental.erf,
    half=transcendental.library("erf"),
    gradient=lambda x, out, dout: dout * _density(x),
)
def erf(x: Tensor) -> Tensor:
    """The error function, 2 / sqrt(pi) times the integral of exp(-t**2) from 0 to x. x: (T float, s) -> (T, s).

    >>> relay.erf(np.float32([0, 1]))
    Array([0.       , 0.8427008], dtype=float32)
    """
    return _in_double(_vectorized_erf, x)


@elementary(
    transcendental.erfc,
    half=transcendental.library("erfc"),
    gradient=lambda x, out, dout: -(dout * _density(x)),
)
def erfc(x: Tensor) -> Tensor:
    """1 - erf(x), accurate where that is small. x: (T float, s) -> (T, s).

    >>> relay.erfc(np.float32([0, 5]))
    Array([1.0000000e+00, 1.5374598e-12], dtype=float32)
    """
    return _in_double(_vectorized_erfc, x)


def _normal_density(x: Value) -> Value:
    """The derivative of ndtr: 1 / sqrt(2 pi) e**(-x**2 / 2), which is 0 from 40 on."""
    near = x.op("clip", low=-40.0, high=40.0)
    return (near * near * -0.5).op("exp") * (1 / math.sqrt(2 * math.pi))


_vectorized_ndtr = np.vectorize(lambda x: math.erfc(x * -math.sqrt(0.5)) * 0.5, otypes=[np.float64])


@elementary(
    transcendental.ndtr,
    half=transcendental.ndtr_of_half,
    gradient=lambda x, out, dout: dout * _normal_density(x),
)
def ndtr(x: Tensor) -> Tensor:
    """The normal distribution function: 1 / sqrt(2 pi) times the integral of exp(-t**2 / 2) from -infinity to x.
    x: (T float, s) -> (T, s).

    >>> relay.ndtr(np.float32([0, 1]))
    Array([0.5      , 0.8413448], dtype=float32)
    """
    return _in_double(_vectorized_ndtr, x)


@composite(relation=Relation("T:float -> T", same_shape), batching=Batching(rule=batching.same_call))
def radians(x: Tensor) -> Tensor:
    """An angle in degrees, in radians. x: (T float, s) -> (T, s).

    >>> relay.radians(np.float32([0, 180]))
    Array([0.       , 3.1415927], dtype=float32)
    """
    return x * (math.pi / 180)


@composite(relation=Relation("T:float -> T", same_shape), batching=Batching(rule=batching.same_call))
def degrees(x: Tensor) -> Tensor:
    """An angle in radians, in degrees. x: (T float, s) -> (T, s).

    >>> relay.degrees(np.float32([0, np.pi]))
    Array([  0., 180.], dtype=float32)
    """
    return x * (180 / math.pi)


alias("deg2rad", "radians")
alias("rad2deg", "degrees")
for _name in ("asin", "acos", "atan", "atan2", "asinh", "acosh", "atanh"):
    alias(_name.replace("a", "arc", 1), _name)
