"""Branches, loops and early exits."""

import numpy as np

from relay import relay
from zoo import Program


@relay
def square_until(y):
    while y < 100.0:
        y = y * y
    return y


@relay
def absolute(x):
    if x < 0.0:
        y = -x
    elif x == 0.0:
        y = 0.0 * x
    else:
        y = x * x
    return y


@relay
def newton(a):
    x = a
    steps = 0
    while abs(x * x - a) > 1e-12 and steps < 50:
        x = 0.5 * (x + a / x)
        steps += 1
    return x


@relay
def rows(xs):
    h = relay.zeros((4,), dtype=xs.dtype)
    for x in xs:
        h = relay.tanh(h * 0.5 + x)
    return h.sum()


@relay
def counted(x):
    total = 0.0
    for i in range(1, 6):
        total = total + x**2 * float(i)
    return total


@relay
def backwards(xs):
    total = 0.0
    for i in range(4, -1, -2):
        total = total * 0.5 + xs[i]
    return total


@relay
def dynamic_range(n, x):
    for i in range(n):
        x = relay.sin(x) + float(i)
    return x


@relay
def early_return(x):
    if x > 10.0:
        return x
    y = x * 3.0
    if y > 10.0:
        return y * y
    return y - 1.0


@relay
def find_first(xs, limit):
    total = 0.0
    for x in xs:
        if x > limit:
            return total * x
        if x < 0.0:
            continue
        total += x
        if total > 100.0:
            break
    else:
        total = total * 2.0
    return total


@relay
def nested(xs):
    total = 0.0
    for row in xs:
        inner = 1.0
        for x in row:
            if x < -1.5:
                break
            inner = inner * (1.0 + x * x)
        total += inner
    return total


@relay
def return_from_nested(xs):
    for row in xs:
        for x in row:
            if x > 0.9:
                return x * x * x
    return xs.sum()


@relay
def collatz(n):
    steps = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    return steps


@relay
def unrolled(a, b, c):
    total = a.sum()
    for t in (a, b, c):
        total = total + (t * t).sum()
    return total


@relay
def zipped(xs, ys):
    total = 0.0
    for i, (x, y) in enumerate(zip(xs, ys)):
        total += x * y * float(i + 1)
    return total


@relay
def swap(n, a, b):
    for _ in range(n):
        a, b = b, a + b
    return a


@relay
def untaken(x):
    return relay.sqrt(x) if x > 0.0 else x * 0.0


@relay
def powers(xs):
    out = xs.copy()
    for i in range(3):
        out[i + 1] = out[i] * xs[i]
    return out.sum()


def _random(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape) + len(shape)).standard_normal(shape)


@relay
def summed_while_axes_are_left(x):
    rounds = 0
    while x.ndim > 1:
        x = x.sum(axis=0) * 0.5
        rounds += 1
    return (x * x).sum() * float(rounds)


@relay
def sum_of_halves(x):
    while x.shape[0] > 1:
        half = x.shape[0] // 2
        x = x[:half] + x[half : 2 * half] * 2.0
    return x[0]


@relay
def taken_apart(items, limit):
    total = 0.0
    while len(items) > 0:
        first, *items = items
        total = total + first.sum()
        if total > limit:
            return total * 2.0
    return total


@relay
def to_a_scalar(x):
    while True:
        if x.ndim == 0:
            return x
        x = relay.sin(x).sum(axis=-1)


PROGRAMS = [
    Program(summed_while_axes_are_left, (_random(2, 3, 4),)),
    Program(sum_of_halves, (np.arange(8.0),), expected=126.0),
    Program(taken_apart, ((_random(4), np.float64(2.0), _random(2, 2)), np.float64(50.0))),
    Program(taken_apart, ((np.ones(4), np.float64(2.0), _random(2, 2)), np.float64(5.0)), expected=12.0),
    Program(to_a_scalar, (_random(2, 3),)),
    Program(square_until, (np.float64(3.0),), expected=6561.0, expected_gradient=(17496.0,)),
    Program(absolute, (np.float64(-2.0),), expected=2.0, expected_gradient=(-1.0,)),
    Program(newton, (np.float64(2.0),), expected=np.sqrt(2.0), expected_gradient=(0.5 / np.sqrt(2.0),)),
    Program(rows, (_random(6, 4),)),
    Program(counted, (np.float64(1.5),), expected=33.75, expected_gradient=(45.0,)),
    Program(backwards, (_random(5),)),
    Program(dynamic_range, (5, np.float64(0.3))),
    Program(early_return, (np.float64(4.0),), expected=144.0, expected_gradient=(72.0,)),
    Program(find_first, (np.array([1.0, -2.0, 3.0, 0.5, 7.0]), np.float64(5.0))),
    Program(nested, (_random(4, 3),)),
    Program(return_from_nested, (_random(3, 3) * 0.5,)),
    Program(collatz, (27,), differentiable=False, expected=111),
    Program(unrolled, (_random(3), _random(2, 2), np.float64(0.7))),
    Program(zipped, (_random(4), _random(4))),
    Program(swap, (10, 1, 1), differentiable=False, expected=89),
    Program(untaken, (np.float64(0.0),), expected=0.0, expected_gradient=(0.0,)),
    Program(powers, (_random(5),)),
]
