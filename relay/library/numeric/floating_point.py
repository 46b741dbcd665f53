"""Functions of NumPy and `math` on the parts of floats: mantissa, exponent, and neighbors. Every step is a product with
a power of 2, which is exact."""

from __future__ import annotations

import math

import numpy as np

from relay.typecheck.elaboration.library.overloads import library_function


@library_function()
def _halvings(x):
    """The exponents that those of a dtype are found by, the largest first."""
    return (512, 512, 256, 128, 64, 32, 16, 8, 4, 2, 1) if x.dtype == np.float64 else (64, 64, 32, 16, 8, 4, 2, 1)


@library_function()
def as_floats(x):
    """x as an array of floats; a sum with 0.0 would lose the sign of -0.0."""
    value = np.asarray(x)
    return value if np.issubdtype(value.dtype, np.floating) else value + 0.0


@library_function(np.frexp, math.frexp)
def frexp(x, /):
    """m and n with x = m 2^n and 0.5 <= |m| < 1; 0, infinities and NaN are their own m."""
    value = as_floats(x)
    is_number = np.isfinite(value) & (value != 0.0)
    rest = np.where(is_number, np.abs(value), 1.0)
    n = np.zeros_like(value, dtype=np.int32)
    for step in _halvings(value):
        is_large, is_small = rest >= 2.0**step, rest < 2.0 ** (1 - step)
        rest = np.where(is_large, rest * 2.0**-step, np.where(is_small, rest * 2.0**step, rest))
        n = n + np.where(is_large, step, 0) - np.where(is_small, step, 0)
    return np.where(is_number, np.copysign(rest / 2.0, value), value), np.where(is_number, n + 1, 0)


@library_function(np.ldexp, math.ldexp)
def ldexp(x1, x2, /):
    """x1 2^n for integers n."""
    value, n = as_floats(x1), np.asarray(x2)
    assert np.issubdtype(n.dtype, np.integer), "the exponents of np.ldexp are integers"
    steps = _halvings(value)
    for step in (*steps[:1] * 3, *steps):
        is_up, is_down = n >= step, n <= -step
        value = np.where(is_up, value * 2.0**step, np.where(is_down, value * 2.0**-step, value))
        n = n - np.where(is_up, step, 0) + np.where(is_down, step, 0)
    return value


@library_function(np.spacing)
def spacing(x, /):
    """The distance to the next float of larger size, with the sign of x."""
    assert np.issubdtype(np.asarray(x).dtype, np.floating), "np.spacing needs floats"
    value = as_floats(x)
    _, n = np.frexp(value)
    digits, least = (53, -1074) if value.dtype == np.float64 else (24, -149)
    size = np.ldexp(np.ones_like(value), np.maximum(np.where(value == 0.0, least, n - digits), least))
    return np.where(np.isfinite(value), np.copysign(size, value), math.nan)


@library_function(np.nextafter, math.nextafter)
def nextafter(x1, x2, /):
    """The next float from x1 toward x2."""
    x, y = as_floats(np.where(True, x1, x2)), as_floats(np.where(True, x2, x1))  # in the dtype of both
    m, n = np.frexp(x)
    digits, least, most = (53, -1074, 1024) if x.dtype == np.float64 else (24, -149, 128)
    is_inward = (x > 0.0) == (y < x)
    n = np.where((np.abs(m) == 0.5) & is_inward, n - 1, n) - digits  # the floats below a power of 2 are closer
    step = np.ldexp(np.ones_like(x), np.maximum(np.where(x == 0.0, least, n), least))
    largest = np.ldexp(np.ones_like(x) - np.ldexp(np.ones_like(x), -digits * np.ones_like(n)), most * np.ones_like(n))
    moved = np.where(np.isinf(x), np.copysign(largest, x), x + np.where(y > x, step, -step))
    found = np.where((x == y) | np.isnan(y), y, np.where(moved == 0.0, np.copysign(moved, x), moved))
    return np.where(np.isnan(x), x, found)
