"""Functions of integers."""

from __future__ import annotations

import math

import numpy as np

from relay.typecheck.elaboration.library.overloads import library_function


@library_function(np.gcd)
def gcd(x1, x2, /):
    """The greatest common divisor, elementwise, by Euclid's algorithm."""
    assert np.issubdtype((x1 + x2).dtype, np.integer), "gcd needs integers"
    a, b = np.abs(x1 + 0 * x2), np.abs(x2 + 0 * x1)
    while np.any(b != 0):
        a, b = np.where(b == 0, a, b), np.where(b == 0, 0, a % np.where(b == 0, 1, b))
    return a


@library_function(np.lcm)
def lcm(x1, x2, /):
    """The least common multiple, elementwise."""
    divisor = np.gcd(x1, x2)
    return np.abs(x1 // np.where(divisor == 0, 1, divisor) * x2)


@library_function(math.gcd)
def gcd_of_two(a, b, /):
    """The greatest common divisor of two integers."""
    return np.gcd(a, b)


@library_function(math.lcm)
def lcm_of_two(a, b, /):
    """The least common multiple of two integers."""
    return np.lcm(a, b)
