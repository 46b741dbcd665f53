"""Textbook algorithms, as users of NumPy and PyTorch write them, with values from NumPy where these are easy."""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from relay import relay
from zoo import Program


@relay
def rnn(params, xs, h):
    outputs = []
    for x in xs:
        h = relay.tanh(params["wx"] @ x + params["wh"] @ h + params["b"])
        outputs.append(h.sum())
    return relay.stack(outputs).mean() + h @ h


@relay
def lstm_step(params, state, x):
    h, c = state
    gates = [relay.sigmoid(w @ x + u @ h + b) for w, u, b in params[:3]]
    i, f, o = gates
    w, u, b = params[3]
    c = f * c + i * relay.tanh(w @ x + u @ h + b)
    return o * relay.tanh(c), c


@relay
def lstm(params, xs):
    state = (relay.zeros((2,), dtype=xs.dtype), relay.zeros((2,), dtype=xs.dtype))
    for x in xs:
        state = lstm_step(params, state, x)
    return (state[0] * state[1]).sum()


@relay
def newton_root(f_scale, guess, *, tolerance=1e-10, max_steps=50):
    def f(x):
        return f_scale * x**3 - 2.0

    df = relay.grad(f)
    x = guess
    for _ in range(max_steps):
        step = f(x) / df(x)
        x = x - step
        if abs(step) < tolerance:
            break
    return x


@relay
def greedy_search(scores, stop):
    """A beam of width one that ends at the stop token."""
    token, total = 0, 0.0
    length = 0
    while length < 10:
        row = relay.log_softmax(scores[token])
        token = row.argmax()
        total += row[token]
        length += 1
        if token == stop:
            break
    return total / float(length)


@dataclass
class Dense:
    weight: Any
    bias: Any


def init(sizes: list[int]) -> list[Dense]:
    generator = np.random.default_rng(0)
    return [Dense(generator.normal(size=(n, m)), np.zeros(m)) for n, m in pairwise(sizes)]


@relay
def perceptron(layers, x, y):
    *hidden, last = layers
    for layer in hidden:
        x = relay.relu(x @ layer.weight + layer.bias)
    logits = x @ last.weight + last.bias
    return -relay.mean((relay.log_softmax(logits) * y).sum(axis=-1))


@relay
def training(layers, x, y):
    for _ in range(3):
        gradient = relay.grad(perceptron, wrt=0)(layers, x, y)
        layers = [Dense(p.weight - 0.1 * g.weight, p.bias - 0.1 * g.bias) for p, g in zip(layers, gradient)]
    return perceptron(layers, x, y)


@relay
def k_means_step(points, centers):
    distances = ((points[:, None, :] - centers[None]) ** 2).sum(axis=-1)
    nearest = distances.argmin(axis=1)
    members = relay.one_hot(nearest, centers.shape[0], dtype=points.dtype)
    counts = relay.maximum(members.sum(axis=0), 1.0)
    return ((members.T @ points) / counts[:, None]).sum()


@relay
def logistic_regression(data, labels, steps=10, rate=0.5):
    w = relay.zeros((data.shape[1],), dtype=data.dtype)
    b = 0.0

    def cost(w, b):
        p = relay.sigmoid(data @ w + b)
        return -relay.mean(labels * relay.log(p) + (1.0 - labels) * relay.log(1.0 - p))

    for _ in range(steps):
        dw, db = relay.grad(cost)(w, b)
        w -= rate * dw
        b -= rate * db
    return cost(w, b)


@relay
def attention(q, k, v, causal=True):
    scores = q @ k.T / q.shape[1] ** 0.5
    if causal:
        n = q.shape[0]
        mask = relay.arange(0, n)[:, None] >= relay.arange(0, n)[None, :]
        scores = relay.where(mask, scores, -1e9)
    return (relay.softmax(scores, axis=-1) @ v).sum(axis=0).max()


@relay
def running_statistics(xs):
    count, mean, m2 = 0, 0.0, 0.0
    for x in xs:
        count += 1
        delta = x - mean
        mean += delta / float(count)
        m2 += delta * (x - mean)
    return mean + m2 / float(count - 1)


@relay
def power_iteration(a, steps=20):
    v = relay.ones((a.shape[0],), dtype=a.dtype)
    for _ in range(steps):
        v = a @ v
        v /= relay.sqrt((v * v).sum())
    return v @ a @ v


@relay
def euler(y, t=0.0, dt=0.01):
    path = relay.zeros((20,), dtype=y.dtype)
    for i in range(20):
        path[i] = y
        y += dt * (-2.0 * y + t)
        t += dt
    return path.mean()


@relay
def conjugate_gradient(a, b):
    x = relay.zeros_like(b)
    r = b - a @ x
    p, rs = r, r @ r
    for _ in range(len(b)):
        if rs < 1e-20:
            break
        ap = a @ p
        alpha = rs / (p @ ap)
        x, r = x + alpha * p, r - alpha * ap
        new = r @ r
        p, rs = r + (new / rs) * p, new
    return x @ x


@relay
def polynomial(coefficients, x):
    result = 0.0
    for c in coefficients:
        result = result * x + c
    return result


@relay
def levenshtein(a, b):
    n, m = len(a), len(b)
    row = relay.arange(0, m + 1)
    for i in range(n):
        previous = row.copy()
        row[0] = i + 1
        for j in range(m):
            cost = 0 if a[i] == b[j] else 1
            row[j + 1] = min(previous[j + 1] + 1, row[j] + 1, previous[j] + cost)
    return row[-1]


@relay
def matrix_table(xs):
    n = len(xs)
    table = relay.zeros((n, n), dtype=xs.dtype)
    for i in range(n):
        for j in range(i, n):
            table[i, j] = xs[i] * xs[j]
            table[j, i] += xs[i] - xs[j]
    return (table * table).sum()


@relay
def convolution(signal, kernel):
    n, k = len(signal), len(kernel)
    out = relay.zeros((n - k + 1,), dtype=signal.dtype)
    for i in range(n - k + 1):
        for j in range(k):
            out[i] += signal[i + j] * kernel[k - 1 - j]
    return (out**2).sum()


def _random(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape) + len(shape)).standard_normal(shape)


def _softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def _rnn(p: dict[str, np.ndarray], xs: np.ndarray, h: np.ndarray) -> float:
    sums = []
    for x in xs:
        h = np.tanh(p["wx"] @ x + p["wh"] @ h + p["b"])
        sums.append(h.sum())
    return float(np.mean(sums) + h @ h)


def _greedy(scores: np.ndarray, stop: int) -> float:
    token, total, length = 0, 0.0, 0
    while length < 10:
        row = np.log(_softmax(scores[token]))
        token = int(row.argmax())
        total, length = total + row[token], length + 1
        if token == stop:
            break
    return float(total / length)


def _k_means(points: np.ndarray, centers: np.ndarray) -> float:
    nearest = ((points[:, None] - centers[None]) ** 2).sum(-1).argmin(1)
    groups = [points[nearest == i] for i in range(len(centers))]
    return float(sum(g.sum(0) / max(len(g), 1) for g in groups).sum())


def _attention(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> float:
    scores = np.where(np.tril(np.ones((len(q), len(q)))) > 0, q @ k.T / np.sqrt(q.shape[1]), -1e9)
    return float((_softmax(scores) @ v).sum(axis=0).max())


_PARAMS = {"wx": _random(3, 2), "wh": _random(3, 3), "b": _random(3)}
_LSTM = [(_random(2, 3) * (i + 1), _random(2, 2), _random(2)) for i in range(4)]
_X, _Y = _random(4, 3), np.eye(2)[[0, 1, 1, 0]]
_SPD = _random(4, 4) @ _random(4, 4).T + 4.0 * np.eye(4)
_VALUES = _random(6)
_SCORES = _random(4, 4)

PROGRAMS = [
    Program(rnn, (_PARAMS, _random(5, 2), np.zeros(3)), expected=_rnn(_PARAMS, _random(5, 2), np.zeros(3))),
    Program(lstm, (_LSTM, _random(4, 3))),
    Program(newton_root, (np.float64(0.5), np.float64(1.0)), expected=4.0 ** (1 / 3)),
    Program(greedy_search, (_SCORES, 3), expected=_greedy(_SCORES, 3)),
    Program(perceptron, (init([3, 5, 2]), _X, _Y)),
    Program(training, (init([3, 4, 2]), _X, _Y)),
    Program(k_means_step, (_random(8, 2), _random(3, 2)), expected=_k_means(_random(8, 2), _random(3, 2))),
    Program(logistic_regression, (_X, np.array([1.0, 0.0, 0.0, 1.0]))),
    Program(attention, (_random(5, 4), _random(5, 4) * 0.5, _random(5, 3)),
            expected=_attention(_random(5, 4), _random(5, 4) * 0.5, _random(5, 3))),
    Program(running_statistics, (_VALUES,), expected=_VALUES.mean() + _VALUES.var(ddof=1)),
    Program(power_iteration, (_SPD,)),
    Program(euler, (np.float64(1.0),)),
    Program(conjugate_gradient, (_SPD, _random(4)), expected=float(np.sum(np.linalg.solve(_SPD, _random(4)) ** 2))),
    Program(polynomial, ((np.float64(2.0), np.float64(-1.0), np.float64(0.5)), np.float64(3.0)), expected=15.5),
    Program(levenshtein, (np.array([1, 2, 3, 4], np.int32), np.array([1, 3, 4, 4, 5], np.int32)), False, expected=3),
    Program(matrix_table, (_random(3),)),
    Program(convolution, (_random(7), _random(3)),
            expected=float(np.sum(np.convolve(_random(7), _random(3), "valid") ** 2))),
]  # fmt: skip
