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
def gcd_of_all(*integers):
    """The greatest common divisor of integers; 0 of none."""
    found = 0
    for n in integers:
        found = np.gcd(found, n)
    return found


@library_function(math.lcm)
def lcm_of_all(*integers):
    """The least common multiple of integers; 1 of none."""
    found = 1
    for n in integers:
        found = np.lcm(found, n)
    return found


@library_function(math.factorial)
def factorial(n, /):
    """n * (n - 1) * .. * 1."""
    assert n >= 0, "math.factorial needs a number that is not negative"
    product = 1
    for i in range(2, n + 1):
        product *= i
    return product


@library_function(math.perm)
def perm(n, k=None, /):
    """The number of ways to arrange k of n things, n!/(n - k)!."""
    assert n >= 0, "math.perm needs numbers that are not negative"
    count = n if k is None else k
    assert count >= 0, "math.perm needs numbers that are not negative"
    product = 1
    for i in range(count):
        product *= n - i
    return product


@library_function(math.comb)
def comb(n, k, /):
    """The number of ways to choose k of n things, n!/(k! (n - k)!)."""
    assert n >= 0 and k >= 0, "math.comb needs numbers that are not negative"
    count = min(k, n - k)
    found = 1 if k <= n else 0
    for i in range(max(count, 0)):
        found = found * (n - i) // (i + 1)
    return found


@library_function(math.isqrt)
def isqrt(n, /):
    """The root, rounded down, by Newton's method from above."""
    assert np.issubdtype((n + 0).dtype, np.integer), "math.isqrt needs an integer"
    assert n >= 0, "math.isqrt needs a number that is not negative"
    if n < 2:
        return n
    root = n // 2 + 1
    following = (root + n // root) // 2
    while following < root:
        root = following
        following = (root + n // root) // 2
    return root
