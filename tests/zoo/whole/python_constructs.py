"""Constructs that Python programmers use without thinking, each with the value that Python itself computes.

`PYTHON` are undecorated functions of NumPy: running one gives the expected value of the decorated one.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from relay import relay
from zoo import Program

ROW = np.array([1.0, 2.0, 3.0])
SIX = np.arange(6.0)


@dataclass
class Affine:
    weight: Any
    bias: Any


def first_above_or_else(x):
    for v in x:
        if v > 3.5:
            found, place = v, 1.0
            break
    else:
        found, place = x[0] - 1.0, 0.0
    return found * 2.0 + place


def nested_else(x):
    total = 0.0
    for limit in (1.5, 9.0):
        for v in x:
            if v > limit:
                total += v
                break
        else:
            total += 100.0
            continue
        total += 1000.0
    return total


def primes_below(x, limit):
    count = 0
    for n in range(2, limit):
        for d in range(2, n):
            if n % d == 0:
                break
        else:
            count += 1
    return x * float(count)


def named_conditions(x):
    if x > 5.0 and (y := x * 2.0) > 3.0:
        result = y
    elif x > 1.0 and (z := x + 1.0) > 2.5 and (q := z * z) > 3.0:
        result = z + q
        x = 0.0
    else:
        result = -x
    return result + x


def named_loop_condition(x):
    i, total = 0, 0.0
    while i < 6 and (v := x[i]) < 3.5:
        total += v * v
        i += 1
    else:
        total += float(i)
    return total


def structure_questions(x):
    p = Affine(x, (1.0, 2.0))
    total = x.sum()
    if x.shape == (3,) and x.shape != (4,) and isinstance(p, Affine):
        total = total * 2.0
    if isinstance(p.bias, tuple) and not isinstance(p.bias, list | dict) and 2.0 in p.bias:
        total = total + 1.0
    if "weight" in {"weight": 1} and "x" not in "weight" and (1, [2]) == (1, [2]):
        total = total + 10.0
    return total if x.ndim in range(3) else -total


def membership(x, k):
    total = 0.0
    for n in range(-2, 12):
        if n in (1, k, 3):
            total += x[0]
        if n in range(1, 10, 4) or n in range(8, 0, -3):
            total += x[1] * float(n)
        if float(n) + 0.25 in x:
            total += x[2]
    return total


def joined_and_repeated(x):
    items = [x[0]] + [x[1]] * 2
    items += [x[2]]
    pair = (x[0],) + (x[1], 2.0)
    return sum(items) * sum(pair) * float(len(items) + len(pair * 2))


def dtypes_from_context(x):
    out = np.zeros(6)
    weights = np.ones((3, 3)) * np.arange(3)
    for i in range(3):
        out[2 * i] = (weights @ x)[i] * np.float64(2)
    filled = np.full((3,), x[1])
    return (out.sum() + filled @ x) * np.float64(0.5)


def deleted_and_copied(x):
    y = x.copy()
    y[0] = 10.0
    z = y * 2.0
    del y
    y = z + x
    return y.sum()


def asserted(x):
    total = 1.0
    for i, v in enumerate(x):
        total = total * (v + 2.0)
        assert total > 0.0, f"round {i}: {total:.3f} of {x[0]}"
    assert x.ndim == 1 and x.shape == (3,), f"not for {x.shape}"
    return total


def names_that_hide_others(x):
    if x[0] > 0.0:
        q = x * 2.0
        total = q[0]
    else:
        q = (x, 1.0)
        total = q[1]
    total = total + sum([q * q for q in x])
    return total + (lambda q: q * total)(x[1])


PYTHON = [
    (names_that_hide_others, (ROW,)),
    (asserted, (ROW,)),
    (first_above_or_else, (SIX,)),
    (nested_else, (SIX,)),
    (primes_below, (1.0, np.int32(20))),
    (named_conditions, (np.float64(2.0),)),
    (named_loop_condition, (SIX,)),
    (structure_questions, (ROW,)),
    (membership, (ROW, np.int32(4))),
    (joined_and_repeated, (ROW,)),
    (dtypes_from_context, (ROW,)),
    (deleted_and_copied, (ROW,)),
]

PROGRAMS = [Program(relay(function), arguments, expected=function(*arguments)) for function, arguments in PYTHON]
