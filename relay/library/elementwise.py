"""Elementwise functions of NumPy and `math`."""

from __future__ import annotations

import math

import numpy as np

from relay.library.numeric.floating_point import as_floats
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
    size = np.abs(np.where(True, x1, x2) + 0.0)  # in the dtype of both
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


@library_function(np.fmod, math.fmod)
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
def hypot_of_all(*coordinates):
    """The root of the sum of squares."""
    length = 0.0
    for i, x in enumerate(coordinates):
        length = np.abs(x + 0.0) if i == 0 else np.hypot(length, x)
    return length


@library_function(math.dist)
def dist(p, q, /):
    """The distance of two points."""
    total = 0.0
    for a, b in zip(p, q, strict=False):
        total += (a - b) * (a - b)
    return np.sqrt(total)


@library_function(math.fsum)
def fsum(seq, /):
    """The sum, in Kahan's and Neumaier's way, which keeps what is lost when numbers of different sizes are added."""
    total, lost = 0.0, 0.0
    for x in seq:
        following = total + x
        lost += (total - following) + x if abs(total) >= abs(x) else (x - following) + total
        total = following
    return total + lost


@library_function(math.exp2)
def exp2(x, /):
    """2 to the x."""
    return np.exp2(x + 0.0)


@library_function(math.modf)
def modf_of_one(x, /):
    """The part behind the point, and the one before it, both with the sign of x."""
    return np.modf(x)


@library_function(math.isclose)
def isclose(a, b, *, rel_tol=1e-09, abs_tol=0.0):
    """True if two numbers differ by little, by the larger one's measure."""
    return a == b or abs(a - b) <= max(rel_tol * max(abs(a), abs(b)), abs_tol)


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


@library_function(np.logical_and)
def logical_and(x1, x2, /):
    """True where both are not 0."""
    return np.asarray(x1).astype(bool) & np.asarray(x2).astype(bool)


@library_function(np.logical_or)
def logical_or(x1, x2, /):
    """True where one is not 0."""
    return np.asarray(x1).astype(bool) | np.asarray(x2).astype(bool)


@library_function(np.logical_xor)
def logical_xor(x1, x2, /):
    """True where exactly one is not 0."""
    return np.asarray(x1).astype(bool) ^ np.asarray(x2).astype(bool)


@library_function(np.logical_not)
def logical_not(x, /):
    """True where an element is 0."""
    return ~np.asarray(x).astype(bool)


@library_function()
def _real_numbers(x):
    """x as an array, of which the parts of complex numbers are asked: booleans have none."""
    value = np.asarray(x)
    assert value.dtype != np.bool_, "booleans have no real part: convert them, x.astype(int)"
    return value


@library_function(np.conjugate, np.ndarray.conj, np.ndarray.conjugate)
def conjugate(val, /):
    """x itself: numbers are real."""
    return _real_numbers(val)


@library_function(np.real, np.ndarray.real)
def real(val, /):
    """x itself, in NumPy a view of it: numbers are real."""
    return _real_numbers(val)


@library_function(np.imag, np.ndarray.imag)
def imag(val):
    """0 for each element: numbers are real."""
    return np.zeros_like(_real_numbers(val))


@library_function(np.angle)
def angle(
    z,
    deg=False,  # relay: static
):
    """The angle of real numbers on the complex plane: 0, or pi below 0."""
    x = as_floats(z)
    return np.where(np.isnan(x), x, np.where(np.signbit(x), 180.0 if deg else math.pi, 0.0))


@library_function(np.isreal)
def isreal(x):
    """True for each element: numbers are real."""
    return np.ones_like(np.asarray(x), dtype=bool)


@library_function(np.iscomplex)
def iscomplex(x):
    """False for each element: numbers are real."""
    return np.zeros_like(np.asarray(x), dtype=bool)


@library_function(getattr(np, "bitwise_count", None))
def bitwise_count(x, /):
    """The number of bits of |n| that are 1."""
    assert np.issubdtype(x.dtype, np.integer), "np.bitwise_count needs integers"
    rest, count = np.abs(x), np.zeros_like(x)
    while np.any(rest != 0):
        rest, count = rest >> 1, count + (rest & 1)
    return count.astype(np.uint8)


@library_function(np.i0)
def i0(x):
    """The modified Bessel function I0(x) = mean(exp(x cos(t))) over a circle, by the rule of trapezoids, which is exact
    to the last digits for periodic functions."""
    places = np.cos(2.0 * math.pi * np.arange(256) / 256.0)
    return np.mean(np.exp((np.asarray(x) + 0.0)[..., None] * places), axis=-1)


@library_function(np.choose, np.ndarray.choose)
def choose(
    a,
    choices,
    out=None,
    mode="raise",  # relay: static
):
    """For each element of a, the element of the array with that number. Numbers that there are none of are errors, or
    the nearest ones, or counted on from the other end."""
    assert out is None, "values never change: assign the result"
    assert mode in ("raise", "clip", "wrap"), "the mode is 'raise', 'clip' or 'wrap'"
    place, count = np.asarray(a), len(choices)
    if mode == "raise":
        assert np.all((place >= 0) & (place < count)), "np.choose: there are not so many choices"
    place = np.clip(place, 0, count - 1) if mode == "clip" else np.mod(place, count)
    found = np.asarray(choices[0])
    for i in range(1, count):
        found = np.where(place == i, choices[i], found)
    return np.broadcast_to(found, (found + place).shape)
