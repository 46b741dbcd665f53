"""Functions that call themselves at other sizes; NumPy gives the expected values."""

import numpy as np

import relay as rl
from relay import Any, Float64, Tensor, relay
from zoo import Program

(n,) = rl.dims("n")
FIVE = np.array([1.5, -2.0, 3.25, 5.0, -0.5])


@relay
def pairwise_sum(x: Tensor[Float64, (n,)]) -> Tensor[Float64, ()]:
    if n <= 1:
        return x.sum() ** 2
    return pairwise_sum(x[: n // 2]) + pairwise_sum(x[n // 2 :])


@relay
def dropped(x: Tensor[Float64, (Any,)], k: int) -> Tensor[Float64, (Any,)]:
    if k == 0:
        return x
    return dropped(x[1:] * 2.0, k - 1)


@relay
def dropped_sum(x: Tensor[Float64, (n,)], k: int):
    return (dropped(x, k) ** 2).sum()


@relay
def doubled(x: Tensor[Float64, (Any,)], k: int) -> Tensor[Float64, ()]:
    if k == 0:
        return (x * x).sum()
    return doubled(rl.concatenate((x, x * 0.5)), k - 1)


@relay
def doubled_or_halved(x: Tensor[Float64, (Any,)], k: int) -> Tensor[Float64, ()]:
    if k == 0:
        return (x * x).sum()
    return halved(rl.concatenate((x, x * 0.5)), k - 1)


@relay
def halved(x: Tensor[Float64, (Any,)], k: int) -> Tensor[Float64, ()]:
    if k == 0:
        return x.sum()
    return doubled_or_halved(x[1:], k - 1)


PROGRAMS = [
    Program(pairwise_sum, (FIVE,), expected=(FIVE**2).sum(), expected_gradient=2 * FIVE),
    Program(dropped, (FIVE, np.int32(3)), differentiable=False, expected=FIVE[3:] * 8.0),
    Program(dropped_sum, (FIVE, np.int32(2)), expected=((FIVE[2:] * 4.0) ** 2).sum()),
    Program(doubled, (FIVE, np.int32(3)), expected=(FIVE**2).sum() * 1.25**3),
    Program(doubled_or_halved, (FIVE, np.int32(1)), expected=FIVE.sum() * 1.5),
]
