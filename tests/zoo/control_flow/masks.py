"""Masks whose result has a known size, cases for None and known values, and `round`."""

import numpy as np

from relay import relay
from zoo import Program

KEPT = np.array([True, False, True, True])


@relay
def known_masks(x):
    return (x[KEPT] ** 2).sum() + x[[False, True, False, True]].sum()


@relay
def mask_of_an_axis(x):
    return (x[:, KEPT] * np.array([1.0, 2.0, 3.0])).sum() + x[1, KEPT].sum()


@relay
def assignment_by_a_mask(x, ceiling):
    y = x * 2.0
    y[y > ceiling] = ceiling
    y[KEPT] = y[0]
    return (x * y).sum()


@relay
def shifted(x, by):
    match by:
        case None:
            return x
        case v:
            return x + v


@relay
def transformed(x, by):
    match by:
        case (a, b):
            return x * a + b
        case None:
            return x


@relay
def cases_of_none(x):
    y = shifted(x, None) + 10.0 * shifted(x, 2.0)
    return y + 100.0 * transformed(x, (x, 1.0)) + transformed(x, None)


@relay
def normed(x, kind):
    match kind:
        case "square":
            return x * x
        case _:
            return abs(x)


@relay
def letters(word):
    return float(len(word))


@relay
def cases_of_strings(x):
    return normed(x, "square") + normed(x, "absolute") + letters("square")


@relay
def rounded(x, table):
    return table[round(x)] * float(round(x * 3.0)) + relay.round(x)


X = np.array([0.5, -1.5, 2.0, 3.0])
PROGRAMS = [
    Program(known_masks, (X,), expected=13.25 + 1.5, expected_gradient=np.array([1.0, 1.0, 4.0, 7.0])),
    Program(mask_of_an_axis, (np.arange(8.0).reshape(2, 4),), expected=(0 + 4 + 9) + (4 + 12 + 21) + 17.0),
    Program(assignment_by_a_mask, (X, np.float64(1.5)), expected=0.5 + 4.5 + 2.0 + 3.0),
    Program(cases_of_none, (np.float64(3.0),), expected=1056.0, expected_gradient=612.0),
    Program(cases_of_strings, (np.float64(-3.0),), expected=18.0),
    Program(rounded, (np.float64(2.4), np.array([1.0, 2.0, 4.0, 8.0])), expected=4.0 * 7.0 + 2.0),
]
