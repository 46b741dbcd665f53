"""The workloads in Relay."""

import importlib
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
from models.relay import FIRST, FUNCTIONS, ON_TREES, PREPARED

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
def matmul(x, y):
    return x @ y


@relay
def softmax(x):
    return relay.softmax(x)


@relay
def layer_norm(x):
    centerd = x - relay.mean(x, axis=1, keepdims=True)
    return centerd / relay.sqrt(relay.mean(centerd * centerd, axis=1, keepdims=True) + 1e-5)


@relay
def lstm(x, w, u, b):
    h = relay.zeros_like(x[0])
    c = h
    for row in x:
        gates = row @ w + h @ u + b
        i, f = relay.sigmoid(gates[:, :64]), relay.sigmoid(gates[:, 64:128])
        g, o = relay.tanh(gates[:, 128:192]), relay.sigmoid(gates[:, 192:])
        c = f * c + i * g
        h = o * relay.tanh(c)
    return h


@relay
def lstm_sum(x, w, u, b):
    return relay.sum(lstm(x, w, u, b))


@relay
def newton(x):
    guess = x
    while relay.abs(guess * guess - x) > 0.00001 * x:
        guess = (guess + x / guess) / 2.0
    return guess


def import_compiler() -> None:
    """Load what compiles, which Relay does when it first needs it."""
    importlib.import_module("relay.codegen.lowering.module_builder")


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
        case "matmul" | "matmul_odd":
            function = matmul
        case "softmax":
            function = softmax
        case "layer_norm":
            function = layer_norm
        case "lstm":
            function = lstm
        case "lstm_gradient":
            function = relay.grad(lstm_sum, wrt=(1, 2, 3))
        case "newton":
            function = newton
        case "newton_gradient":
            function = relay.grad(newton)
        case _ if workload in FIRST:
            function = FIRST[workload]()
        case _ if workload in ON_TREES:
            return ON_TREES[workload](inputs)
        case _ if workload in PREPARED:
            return PREPARED[workload](inputs)
        case _ if workload in FUNCTIONS:
            function = FUNCTIONS[workload]
        case _:
            raise NotImplementedError(workload)
    return lambda: function(*inputs)
