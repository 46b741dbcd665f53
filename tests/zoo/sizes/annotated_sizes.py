"""Tensors whose sizes annotations leave open, or say more of than is known before the run: `Any` in parameters that
loops and branches change, and numbers where a size is data-dependent."""

import numpy as np

from relay import Any, Float64, Tensor, dims, relay
from zoo import Program

(n,) = dims("n")
ROWS = np.arange(14.0).reshape(7, 2) / 10.0
SIX = np.array([1.5, -2.0, 3.25, 5.0, -0.5, 2.0])
Scaled = tuple[Tensor[Float64, (Any,)], Tensor[Float64, ()]]


@relay
def shrinking_in_loops(x: Tensor[Float64, (Any, 2)], rounds: int):
    for _ in range(rounds):
        for _ in range(2):
            x = x[1:]
    return (x * x).sum() * float(len(x))


@relay
def shrinking_local(x: Tensor[Float64, (n, 2)], rounds: int):
    y: Tensor[Float64, (Any, 2)] = x
    for k in range(rounds):
        for _ in range(2):
            if k > 0:
                y = y[1:] * 2.0
    return (y * y).sum()


@relay
def shrinking_on_a_path(x: Tensor[Float64, (Any,)], shorter: bool):
    if shorter:
        x = x[1:]
    while x.sum() > 4.0:
        if x[0] > 1.0:
            x = x[1:] * x[0]
        else:
            x = x * 0.5
    return (x * x).sum()


@relay
def declared_result(x: Tensor[Float64, (n,)]) -> tuple[Tensor[Float64, (4,)], float]:
    return x[x > 0.0] * x[:4], 1.0


@relay
def declared_local(x: Tensor[Float64, (n,)]):
    y: Tensor[Float64, (4,)] = x[x > 0.0]
    pair, _ = declared_result(y * x[:4] + 30.0)
    return (y.reshape(2, 2) @ y.reshape(2, 2)).sum() + pair.sum()


@relay
def shrinking_in_a_tuple(xs: tuple[Scaled, Tensor[Float64, (Any,)]], rounds: int):
    for _ in range(rounds):
        xs = ((xs[0][0][1:] * xs[1][0], xs[0][1] + 1.0), relay.concatenate((xs[1], xs[0][0])))
    (a, count), b = xs
    return a.sum() * count + (b * b).sum()


@relay
def unpacked_and_growing(xs: tuple[Tensor[Float64, (Any,)], Tensor[Float64, (Any,)]], rounds: int):
    a, b = xs
    for _ in range(rounds):
        a, b = relay.concatenate((a, b)), a * 0.5
    if a[0] > 0.0:
        b = b[1:]
    return a.sum() * b.sum()


@relay
def last_ones(xs: Scaled, count: int) -> Scaled:
    if count == 0:
        return xs
    return last_ones((xs[0][1:], xs[1] * 2.0), count - 1)


@relay
def of_last_ones(xs: Scaled, count: int):
    x, scale = last_ones(xs, count)
    return (x * x).sum() * scale


@relay
def sum_of_list(xs: list[Tensor[Float64, (n,)]], y: Tensor[Float64, (n,)]) -> Tensor[Float64, (n,)]:
    for x in xs:
        y = y + x * n
    return y


@relay
def sums_of_lists(y: Tensor[Float64, (n,)], count: int):
    xs = []
    for i in range(count):
        xs.append(y * float(i))
    return (sum_of_list(xs, y) * sum_of_list(xs[:1], y)).sum()


@relay
def sums_of_given(xs: list[tuple[Tensor[Float64, (n,)], Tensor[Float64, ()]]], ys: list[Tensor[Float64, (n,)]]):
    total = 0.0
    for x, weight in xs:
        total = total + (x * x).sum() * weight
    for y in ys:
        total = total + y.sum()
    return total


PROGRAMS = [
    Program(shrinking_in_a_tuple, (((SIX, np.float64(1.0)), SIX[1:3]), 3)),
    Program(unpacked_and_growing, ((SIX, SIX[2:]), 2)),
    Program(of_last_ones, ((SIX, np.float64(0.5)), 2), expected=float((SIX[2:] ** 2).sum() * 2.0)),
    Program(sums_of_lists, (SIX, 3)),
    Program(sums_of_given, ([(SIX, np.float64(2.0)), (SIX, np.float64(1.0))], []), differentiable=False),
    Program(sums_of_given, ([], [SIX]), differentiable=False, expected=float(SIX.sum())),
    Program(sums_of_given, ([], []), differentiable=False, expected=0.0),
    Program(shrinking_in_loops, (ROWS, 2), expected=float((ROWS[4:] ** 2).sum() * 3.0)),
    Program(shrinking_local, (ROWS, 2), expected=float(((ROWS[2:] * 4.0) ** 2).sum())),
    Program(shrinking_on_a_path, (SIX, True)),
    Program(declared_local, (SIX,)),
]
