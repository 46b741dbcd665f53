"""The workloads in Relay."""

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

from relay import relay

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "examples"))
import digits


@relay
def increment(x):
    return x + 1.0


@relay
def loss(a, b, x, y):
    difference = y - (a * x + b)
    return difference * difference


@relay
def chain(x, y, z):
    return relay.relu(x * y + z) * x - y


@relay
def chain_tanh(x, y, z):
    return relay.tanh(x * y + z) * x - y


@relay
def newton(x):
    guess = x
    while relay.abs(guess * guess - x) > 0.00001 * x:
        guess = (guess + x / guess) / 2.0
    return guess


def prepare(workload: str, inputs: tuple[np.ndarray, ...]) -> Callable[[], object]:
    """A call without arguments that runs the workload once."""
    match workload:
        case "call":
            function = increment
        case "loss_gradient":
            function = relay.grad(loss, wrt=(0, 1))
        case "chain":
            function = chain
        case "chain_tanh":
            function = chain_tanh
        case "mlp_step":
            return lambda: digits.step(inputs[:4], inputs[4:8], *inputs[8:])
        case "newton":
            function = newton
        case "newton_gradient":
            function = relay.grad(newton)
        case _:
            raise NotImplementedError(workload)
    return lambda: function(*inputs)
