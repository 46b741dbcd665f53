"""Recursive functions that are defined in loops which are written out: each round has its own."""

import numpy as np

from relay import relay
from zoo import Program


@relay
def power_in_rounds(x, y):
    total = 0.0
    for p in (x, y):

        def power(a, n):
            if n <= 0:
                return a
            return power(a * a, n - 1)

        total += power(p, 2)
    return total


@relay
def mutual_in_rounds(x, y):
    """The second function is defined after the first one, which calls it."""
    total = 0.0
    for p in (x, y):

        def even(n):
            return p if n <= 0 else odd(n - 1)  # noqa: B023 - called in this round

        def odd(n):
            return -p * x if n <= 0 else even(n - 1)  # noqa: B023

        total += even(3)
    return total


@relay
def leaving_rounds(x, y):
    total = 0.0
    for p in (x, y, 1000.0):

        def power(a, n):
            if n <= 0:
                return a * p  # noqa: B023
            return power(a * a, n - 1)

        if p > 100.0:
            break
        total += power(p, 2)
    return total


@relay
def kept_from_rounds(x, y):
    """The functions of all rounds are called after the loop."""
    functions = []
    for _ in (x, y):

        def power(a, n):
            if n <= 0:
                return a
            return power(a * a, n - 1)

        functions.append(power)
    return functions[0](x, 2) + functions[1](y, 1)


@relay
def rounds_of_ranks(x, y):
    """A loop that is written out since the rank changes."""
    while x.ndim < 3:
        x = np.stack([x, x])

        def power(a, n):
            if n <= 0:
                return a
            return power(a * 2.0, n - 1)

        x = power(x, 2)
    return x.sum() * y


X, Y = np.float64(1.5), np.float64(2.0)

PROGRAMS = [
    Program(power_in_rounds, (X, Y), expected=1.5**4 + 16),
    Program(mutual_in_rounds, (X, Y), expected=-1.5 * 1.5 - 2 * 1.5),
    Program(leaving_rounds, (X, Y), expected=1.5**5 + 32),
    Program(kept_from_rounds, (X, Y), expected=1.5**4 + 4),
    Program(rounds_of_ranks, (X, Y), expected=1.5 * 8 * 4**3 * 2),
]
