"""Errors that are raised in a function, and caught in a loop."""

import numpy as np

from relay import relay
from zoo import Program


@relay
def logarithm(x):
    if x <= 0.0:
        raise ValueError(f"no logarithm of {x}")
    return relay.log(x)


@relay
def sum_of_logarithms(xs):
    total = 0.0
    failed = 0
    for x in xs:
        try:
            total += logarithm(x)
        except ValueError:
            failed += 1
            total -= x * x
    return total * float(failed)


PROGRAMS = [
    Program(sum_of_logarithms, (np.array([1.0, -2.0, 3.0, -0.5]),)),
]
