"""The workloads in NumPy, with derivatives written by hand."""

from collections.abc import Callable

import numpy as np


def loss_gradient(a, b, x, y):
    difference = y - (a * x + b)
    return -2 * difference * x, -2 * difference


def mlp_step(w1, b1, w2, b2, v1, u1, v2, u2, x, y):
    hidden = np.maximum(x @ w1 + b1, 0)
    scores = hidden @ w2 + b2
    shifted = scores - scores.max(axis=1, keepdims=True)
    log_probabilities = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    rows = np.arange(len(y))
    value = -log_probabilities[rows, y].mean()
    d_scores = np.exp(log_probabilities)
    d_scores[rows, y] -= 1
    d_scores /= len(y)
    d_hidden = (d_scores @ w2.T) * (hidden > 0)
    gradients = (x.T @ d_hidden, d_hidden.sum(axis=0), hidden.T @ d_scores, d_scores.sum(axis=0))
    velocities = tuple(0.9 * v - 0.05 * g for v, g in zip((v1, u1, v2, u2), gradients, strict=True))
    return value, tuple(p + v for p, v in zip((w1, b1, w2, b2), velocities, strict=True)), velocities


def newton(x):
    guess = x
    while abs(guess * guess - x) > np.float32(0.00001) * x:
        guess = (guess + x / guess) / 2
    return guess


def newton_gradient(x):
    guess, slope = x, np.float32(1)
    while abs(guess * guess - x) > np.float32(0.00001) * x:
        guess, slope = (guess + x / guess) / 2, (slope + (guess - x * slope) / (guess * guess)) / 2
    return slope


FUNCTIONS: dict[str, Callable[..., object]] = {
    "call": lambda x: x + 1,
    "loss_gradient": loss_gradient,
    "chain": lambda x, y, z: np.maximum(x * y + z, 0) * x - y,
    "chain_tanh": lambda x, y, z: np.tanh(x * y + z) * x - y,
    "mlp_step": mlp_step,
    "newton": newton,
    "newton_gradient": newton_gradient,
}


def prepare(workload: str, inputs: tuple[np.ndarray, ...]) -> Callable[[], object]:
    """A call without arguments that runs the workload once."""
    function = FUNCTIONS[workload]
    inputs = tuple(value[()] for value in inputs)  # rank 0 becomes a NumPy scalar, which is faster
    return lambda: function(*inputs)
