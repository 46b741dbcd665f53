"""Derivatives of results of data-dependent size, given a cotangent; nested loops that change sizes and are left."""

import numpy as np

import relay as rl
from relay import Any, Float64, Tensor, relay
from zoo import Program

FIVE = np.linspace(0.2, 1.1, 5)


@relay
def of_chosen_elements(x):
    pullback = rl.grad(lambda v: v[v > 0.3] ** 2, seedable=True)
    return rl.sum(pullback(x, x[x > 0.3]) * x)


@relay
def of_a_grown_tensor(x, n):
    def grown(v):
        y: Tensor[Float64, (Any,)] = v
        for _ in range(n):
            y = rl.concatenate([y, v[:1] * y[0]])
        return y

    pullback = rl.grad(grown, seedable=True)
    return rl.sum(pullback(x, grown(x)) * x)


@relay
def of_one_of_several(x, k):
    def several(v, k):
        return v[:2] * v[-2:], v[v > 0.3] * v[k], rl.sum(v)

    pullback = rl.value_and_grad(several, wrt=0, output=1, seedable=True)
    (_, value, _), slope = pullback(x, k, several(x * 1.0, k)[1])
    return rl.sum(slope * x) * rl.sum(value)


@relay
def shrinking_in_nested_loops(x, n):
    s = 0.0
    y: Tensor[Float64, (Any,)] = x
    for i in range(n):
        for j in range(5):
            if j == 3:
                break
            if (i + j) % 2 == 0:
                continue
            if y.shape[0] > 2:
                y = y[1:]
            s = s + rl.sum(y * y) * x[j]
            if s > 100.0:
                return s * x[0]
        y = rl.concatenate([y, y[:1] * 1.5])
    return s + rl.sum(y)


@relay
def returned_from_the_inner_loop(x):
    y: Tensor[Float64, (Any,)] = x
    while True:
        for v in y:
            if v > 3.0:
                return v * rl.sum(y)
        y = rl.concatenate([y[1:], y * 1.5])


PROGRAMS = [
    Program(of_chosen_elements, (FIVE,), expected=2.0 * (FIVE[1:] ** 3).sum()),
    *(Program(of_a_grown_tensor, (FIVE, np.int32(n))) for n in (0, 2)),
    Program(of_one_of_several, (FIVE, np.int32(1))),
    Program(shrinking_in_nested_loops, (FIVE, np.int32(3))),
    Program(returned_from_the_inner_loop, (FIVE,)),
]
