"""The workloads in NumPy, with derivatives written by hand."""

from collections.abc import Callable

import numpy as np
from models.inputs import grown, on_trees


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


def softmax(x):
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def layer_norm(x):
    centerd = x - x.mean(axis=1, keepdims=True)
    return centerd / np.sqrt((centerd * centerd).mean(axis=1, keepdims=True) + 1e-5)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def lstm_steps(x, w, u, b):
    """The states before and after each step, and the gates."""
    h = c = np.zeros((1, 64), np.float32)
    steps = []
    for row in x:
        i, f, g, o = np.split(row @ w + h @ u + b, 4, axis=1)
        i, f, g, o = sigmoid(i), sigmoid(f), np.tanh(g), sigmoid(o)
        new = f * c + i * g
        steps.append((row, h, c, new, i, f, g, o))
        h, c = o * np.tanh(new), new
    return h, steps


def lstm(x, w, u, b):
    return lstm_steps(x, w, u, b)[0]


def lstm_gradient(x, w, u, b):
    h, steps = lstm_steps(x, w, u, b)
    dw, du, db = np.zeros_like(w), np.zeros_like(u), np.zeros_like(b)
    dh, dc = np.ones_like(h), np.zeros_like(h)
    for row, before, c, new, i, f, g, o in reversed(steps):
        t = np.tanh(new)
        dc = dc + dh * o * (1 - t * t)
        parts = (dc * g * i * (1 - i), dc * c * f * (1 - f), dc * i * (1 - g * g), dh * t * o * (1 - o))
        gates = np.concatenate(parts, axis=1)
        dw, du, db = dw + row.T @ gates, du + before.T @ gates, db + gates[0]
        dh, dc = gates @ u.T, dc * f
    return dw, du, db


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


def treelstm_state(tree, w, u, v, b, d):
    """A tree is a row or a pair of trees."""
    if not isinstance(tree, tuple):
        gates = tree @ w + b
        memory = sigmoid(gates[:128]) * np.tanh(gates[256:])
    else:
        left_state, left_memory = treelstm_state(tree[0], w, u, v, b, d)
        right_state, right_memory = treelstm_state(tree[1], w, u, v, b, d)
        gates = (left_state + right_state) @ u + b
        memory = sigmoid(gates[:128]) * np.tanh(gates[256:])
        memory = memory + sigmoid(left_state @ v + d) * left_memory
        memory = memory + sigmoid(right_state @ v + d) * right_memory
    return sigmoid(gates[128:256]) * np.tanh(memory), memory


def treelstm(tree, w, u, v, b, d):
    return treelstm_state(tree, w, u, v, b, d)[0].sum()


FUNCTIONS: dict[str, Callable[..., object]] = {
    "call": lambda x: x + 1,
    "loss_gradient": loss_gradient,
    "chain": lambda x, y, z: np.maximum(x * y + z, 0) * x - y,
    "chain_tanh": lambda x, y, z: np.tanh(x * y + z) * x - y,
    "mlp_step": mlp_step,
    "matmul": np.matmul,
    "matmul_odd": np.matmul,
    "softmax": softmax,
    "layer_norm": layer_norm,
    "lstm": lstm,
    "lstm_gradient": lstm_gradient,
    "newton": newton,
    "newton_gradient": newton_gradient,
    "matmul_256": np.matmul,
    "matmul_1024": np.matmul,
    "matmul_2048": np.matmul,
    "matmul_batch": np.matmul,
    "matvec": np.matmul,
}


def prepare(workload: str, inputs: tuple[np.ndarray, ...]) -> Callable[[], object]:
    """A call without arguments that runs the workload once."""
    if workload == "treelstm":
        return on_trees(treelstm, inputs, lambda splits, rows: grown(splits, rows, lambda row: row, lambda *two: two))
    if workload not in FUNCTIONS:
        raise NotImplementedError(workload)
    function = FUNCTIONS[workload]
    inputs = tuple(value[()] for value in inputs)  # rank 0 becomes a NumPy scalar, which is faster
    return lambda: function(*inputs)
