"""Errors of a user's own classes, and a function that raises them, for programs that catch errors."""

import numpy as np

NUMBERS = np.array([1.0, -3.0, 4.0, 12.0])


class AppError(Exception):
    pass


class TooBig(AppError):
    pass


class TooSmall(AppError, ValueError):
    pass


def parse(x, n):
    if n < 0:
        raise TooSmall(f"negative {n}")
    if n > 100:
        raise TooBig("too big")
    return x * n
