"""Tensors whose sizes annotations leave open, or say more of than is known before the run: `Any` in parameters that
loops and branches change, and numbers where the run makes a size."""

import numpy as np

from programs import Program
from relay import Any, Float64, Tensor, dims, relay

(n,) = dims("n")
ROWS = np.arange(14.0).reshape(7, 2) / 10.0
SIX = np.array([1.5, -2.0, 3.25, 5.0, -0.5, 2.0])


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


PROGRAMS = [
    Program(shrinking_in_loops, (ROWS, 2), expected=float((ROWS[4:] ** 2).sum() * 3.0)),
    Program(shrinking_local, (ROWS, 2), expected=float(((ROWS[2:] * 4.0) ** 2).sum())),
    Program(shrinking_on_a_path, (SIX, True)),
    Program(declared_local, (SIX,)),
]
