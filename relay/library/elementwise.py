"""Elementwise functions of NumPy and `math`."""

from __future__ import annotations

import math

import numpy as np

from relay.typecheck.elaboration.library.overloads import library_function


@library_function(np.hypot)
def hypot(x1, x2, /):
    """sqrt(x1^2 + x2^2), without overflow of the squares."""
    a, b = np.abs(x1 + 0.0), np.abs(x2 + 0.0)
    large, small = np.maximum(a, b), np.minimum(a, b)
    scale = np.where((large > 0) & np.isfinite(large), large, 1.0)
    ratio = small / scale
    length = np.where(large == 0, large, scale * np.sqrt(1.0 + ratio * ratio))
    return np.where(np.isinf(a) | np.isinf(b), math.inf, length)


@library_function(np.cbrt, getattr(math, "cbrt", None))
def cbrt(x, /):
    """The root y of y^3 = x."""
    root = np.power(np.abs(x + 0.0), 1.0 / 3.0)
    return np.where(x < 0.0, -root, root)


@library_function(np.copysign, math.copysign)
def copysign(x1, x2, /):
    """|x1| with the sign of x2."""
    size = np.abs(x1 + 0.0)
    return np.where(np.signbit(x2), -size, size)


@library_function(np.signbit)
def signbit(x, /):
    """True where a float has a minus sign, as -0.0 has. That of NaN counts as plus."""
    return (x < 0.0) | ((x == 0.0) & (1.0 / x < 0.0))


@library_function(np.fmax)
def fmax(x1, x2, /):
    """The larger one; of a number and NaN, the number."""
    return np.where(np.isnan(x1), x2, np.where(np.isnan(x2), x1, np.maximum(x1, x2)))


@library_function(np.fmin)
def fmin(x1, x2, /):
    """The smaller one; of a number and NaN, the number."""
    return np.where(np.isnan(x1), x2, np.where(np.isnan(x2), x1, np.minimum(x1, x2)))


@library_function(np.fabs, math.fabs)
def fabs(x, /):
    """|x| of floats."""
    return np.abs(x + 0.0)


@library_function(np.positive)
def positive(x, /):
    """x itself."""
    return np.negative(np.negative(x))


@library_function(np.invert)
def invert(x, /):
    """The bits of integers the other way round, and `not` of booleans."""
    return ~x


@library_function(np.fmod)
def fmod(x1, x2, /):
    """The remainder of x1 / x2, rounded toward 0: it has the sign of x1."""
    if not np.issubdtype((x1 + x2).dtype, np.floating):
        rest = np.mod(x1, x2)
        return np.where((rest != 0) & ((x1 < 0) != (x2 < 0)), rest - x2, rest)
    return np.copysign(np.mod(np.abs(x1), np.abs(x2)), x1)


@library_function(np.heaviside)
def heaviside(x1, x2, /):
    """0 below 0, 1 above, and x2 at 0."""
    step = np.where(x1 < 0.0, 0.0, np.where(x1 == 0.0, x2, 1.0))
    return np.where(np.isnan(x1), x1, step)


@library_function(np.logaddexp2)
def logaddexp2(x1, x2, /):
    """log2(2^x1 + 2^x2), without overflow."""
    unit = math.log(2.0)
    return np.logaddexp(x1 * unit, x2 * unit) / unit


@library_function(np.sinc)
def sinc(x):
    """sin(pi x) / (pi x), and 1 at 0."""
    angle = math.pi * np.where(x == 0.0, 1.0, x)
    return np.where(x == 0.0, 1.0, np.sin(angle) / angle)


@library_function(np.isposinf)
def isposinf(x):
    """True where a float is infinite and positive."""
    return np.asarray(x) == math.inf


@library_function(np.isneginf)
def isneginf(x):
    """True where a float is infinite and negative."""
    return np.asarray(x) == -math.inf


@library_function(np.nan_to_num)
def nan_to_num(x, copy=True, nan=0.0, posinf=None, neginf=None):
    """x with numbers in place of NaN and infinities: by default 0 and the largest and smallest floats."""
    if not np.issubdtype(x.dtype, np.floating):
        return x
    most = np.finfo(x.dtype).max
    high = most if posinf is None else posinf
    low = -most if neginf is None else neginf
    return np.where(np.isnan(x), nan, np.where(x == math.inf, high, np.where(x == -math.inf, low, x)))


@library_function(math.hypot)
def hypot_of_two(x, y, /):
    """sqrt(x^2 + y^2)."""
    return np.hypot(x, y)


@library_function(np.divmod)
def divmod_(x1, x2, /):
    """The quotient rounded down, and the remainder."""
    return np.floor_divide(x1, x2), np.mod(x1, x2)


@library_function(np.modf)
def modf(x, /):
    """The part behind the point, and the one before it, both with the sign of x."""
    whole = np.trunc(x + 0.0)
    return np.copysign(np.where(np.isinf(x), 0.0, x - whole), x), whole


@library_function(np.float_power)
def float_power(x1, x2, /):
    """x1 to the x2, of floats."""
    return np.power(np.asarray(x1).astype(np.float64), np.asarray(x2).astype(np.float64))


@library_function(np.logspace)
def logspace(
    start,
    stop,
    num=50,  # relay: static
    endpoint=True,  # relay: static
    base=10.0,
):
    """base^y for numbers y at equal distances."""
    return np.power(base, start + (stop - start) * np.linspace(0.0, 1.0, num, endpoint=endpoint))


@library_function(np.geomspace)
def geomspace(
    start,
    stop,
    num=50,  # relay: static
    endpoint=True,  # relay: static
):
    """Numbers whose quotients are equal, from one number to another of the same sign."""
    low, high = start + 0.0, stop + 0.0
    assert low * high > 0.0, "np.geomspace goes from one number to another of the same sign"
    return low * np.exp(np.log(high / low) * np.linspace(0.0, 1.0, num, endpoint=endpoint))
