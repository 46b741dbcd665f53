"""Lists of arrays of several sizes: their annotation says `Any`."""

from __future__ import annotations

import numpy as np

import relay as rl
from relay import Any, Float, Tensor, dims, relay

(n,) = dims("n")


@relay
def ragged_loss(xs: list[Tensor[Float, (Any,)]], w):
    total = 0.0
    for x in xs:
        total = total + (x * w).sum()
    return total


@relay
def ragged_within(a, b, w):
    return ragged_loss([a, b], w)


@relay
def ragged_named(a, b, w):
    xs: list[Tensor[Float, (Any,)]] = [a, b]
    return ragged_loss(xs, w) + ragged_loss((a, b), w)


@relay
def ragged_gradient(xs, w):
    return relay.grad(ragged_loss, wrt="w")(xs, w)


def test_lists_of_arrays_of_several_sizes() -> None:
    """Their annotation holds in derivatives, and where a program makes the list."""
    a, b, w = np.ones(3, np.float32), np.ones(5, np.float32), np.float32(2)
    assert float(ragged_loss.interpret([a, b], w)) == 16
    assert float(ragged_within.interpret(a, b, w)) == 16
    assert float(ragged_named.interpret(a, b, w)) == 32
    assert float(ragged_gradient.interpret([a, b], w)) == 8
    assert float(rl.grad(ragged_loss, wrt="w")([a, b], w)) == float(rl.grad(ragged_loss, wrt=1)([a, b, a], w)) - 3 == 8
    assert [float(v) for v in rl.value_and_grad(ragged_loss, wrt="w").interpret([a, b], w)] == [16, 8]
    assert float(rl.jacobian(ragged_loss, wrt="w").interpret([a, b], w)) == 8
    assert float(rl.hessian(ragged_loss, wrt="w").interpret([a, b], w)) == 0
    by_list = rl.grad(ragged_loss)([a, a], w)  # lists by which is differentiated keep their lengths, and sizes
    np.testing.assert_array_equal(by_list[0], [[2, 2, 2], [2, 2, 2]])


@relay
def total(xs: list[Tensor[Float, (n,)]]):
    sum = 0.0
    for x in xs:
        sum = sum + x.sum()
    return sum


def test_lists_of_empty_arrays_are_passed_to_compiled_programs() -> None:
    empty = np.zeros(0, np.float32)
    for xs in ([empty], [empty, empty]):
        assert float(total(xs)) == float(total.interpret(xs)) == 0
