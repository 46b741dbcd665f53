"""Functions of NumPy, as people write them who have not read a page about the language.

`PYTHON` are functions of NumPy: running one gives the expected value of the decorated one.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

import relay as rl
from relay import Float64, Tensor, relay
from zoo import Program

random = np.random.default_rng(5)
(rows, columns) = rl.dims("rows columns")


class Network(NamedTuple):
    wx: Any
    wh: Any
    b: Any


def gated_network(params, xs):
    def sigmoid(v):
        return 1 / (1 + np.exp(-v))

    def step(h, x):
        z = sigmoid(params["Wz"] @ x + params["Uz"] @ h)
        r = sigmoid(params["Wr"] @ x + params["Ur"] @ h)
        n = np.tanh(params["Wn"] @ x + r * (params["Un"] @ h))
        return (1 - z) * n + z * h

    h = np.zeros(2)
    for x in xs:
        h = step(h, x)
    return h.sum()


def network_of_a_named_tuple(p, xs):
    h = np.zeros(3)
    states = []
    for t in range(xs.shape[0]):
        h = np.tanh(xs[t] @ p.wx + h @ p.wh + p.b)
        states.append(h)
    return (np.stack(states) ** 2).sum()


def square_root(a, tol=1e-10, max_iter=100):
    x = a / 2
    n = 0
    while abs(x * x - a) > tol and n < max_iter:
        x = (x + a / x) / 2
        n += 1
    return x


def most_likely_states(initial, transitions, emissions, seen):
    n, k = len(seen), len(initial)
    score = np.log(initial) + np.log(emissions[:, seen[0]])
    back = np.zeros((n, k), dtype=np.int32)
    for t in range(1, n):
        candidates = score[:, None] + np.log(transitions)
        back[t] = np.argmax(candidates, axis=0)
        score = candidates.max(axis=0) + np.log(emissions[:, seen[t]])
    path = np.zeros(n, dtype=np.int32)
    path[n - 1] = score.argmax()
    for t in range(n - 2, -1, -1):
        path[t] = back[t + 1, path[t + 1]]
    assert path[0] >= 0
    return score.max()


def adaptive_steps(y0, t1):
    def slope(t, y):
        return -y + np.sin(t)

    t, y, h = 0.0, y0, 0.1
    while t < t1:
        if t + h > t1:
            h = t1 - t
        k1 = slope(t, y)
        k2 = slope(t + h / 2, y + h / 2 * k1)
        k3 = slope(t + h / 2, y + h / 2 * k2)
        k4 = slope(t + h, y + h * k3)
        full = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        if abs(full - (y + h * k1)) < 1e-2:
            y = full
            t += h
            h *= 1.5
        else:
            h *= 0.5
    return y


def power_iteration(a, n=20):
    v = np.ones(a.shape[0])
    for _ in range(n):
        w = a @ v
        v = w / np.linalg.norm(w)
    return v @ a @ v


def centers_of_clusters(x, centers, iterations=5):
    for _ in range(iterations):
        distances = ((x[:, None, :] - centers[None, :, :]) ** 2).sum(axis=-1)
        labels = distances.argmin(axis=1)
        new = np.zeros_like(centers)
        for j in range(centers.shape[0]):
            mine = labels == j
            count = mine.sum()
            if count > 0:
                new[j] = np.where(mine[:, None], x, 0.0).sum(axis=0) / float(count)
            else:
                new[j] = centers[j]
        if np.abs(new - centers).max() < 1e-6:
            break
        centers = new
    return (centers**2).sum()


def attention_with_heads(p, x, heads=2):
    def normalized(v, g, b):
        mean = v.mean(axis=-1, keepdims=True)
        variance = ((v - mean) ** 2).mean(axis=-1, keepdims=True)
        return g * (v - mean) / np.sqrt(variance + 1e-5) + b

    length, width = x.shape
    mask = np.tril(np.ones((length, length))) > 0
    h = normalized(x, p["g1"], p["b1"])
    qkv = h @ p["Wqkv"]
    q, k, v = qkv[:, :width], qkv[:, width : 2 * width], qkv[:, 2 * width :]
    size = width // heads
    outs = []
    for i in range(heads):
        part = q[:, i * size : (i + 1) * size] @ k[:, i * size : (i + 1) * size].T / np.sqrt(size)
        part = np.where(mask, part, -1e9)
        weights = np.exp(part - part.max(axis=-1, keepdims=True))
        weights = weights / weights.sum(axis=-1, keepdims=True)
        outs.append(weights @ v[:, i * size : (i + 1) * size])
    x = x + np.concatenate(outs, axis=-1) @ p["Wo"]
    return ((x + np.maximum(normalized(x, p["g1"], p["b1"]) @ p["W1"], 0) @ p["W2"]) ** 2).sum()


def alignment_probability(logp, labels, blank=0):
    steps, count = logp.shape[0], len(labels)
    states = 2 * count + 1
    extended = np.zeros(states, dtype=np.int32)
    for i in range(count):
        extended[2 * i + 1] = labels[i]
    alpha = np.full(states, -1e30)
    alpha[0] = logp[0, blank]
    alpha[1] = logp[0, extended[1]]
    for t in range(1, steps):
        new = np.full(states, -1e30)
        for s in range(states):
            a = alpha[s]
            if s > 0:
                a = np.logaddexp(a, alpha[s - 1])
            if s > 1 and extended[s] != blank and extended[s] != extended[s - 2]:
                a = np.logaddexp(a, alpha[s - 2])
            new[s] = a + logp[t, extended[s]]
        alpha = new
    return np.logaddexp(alpha[states - 1], alpha[states - 2])


def edit_distance(x, a, b):
    n, m = len(a), len(b)
    d = np.zeros((n + 1, m + 1), dtype=np.int32)
    for i in range(n + 1):
        d[i, 0] = i
    for j in range(m + 1):
        d[0][j] = j
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            cost = 0 if a[i - 1] == b[j - 1] else 1
            d[i, j] = min(d[i - 1, j] + 1, d[i, j - 1] + 1, d[i - 1, j - 1] + cost)
    return x * float(d[-1, -1])


def best_outcome(x, board):
    def winner(b):
        for i in range(3):
            if b[3 * i] != 0 and b[3 * i] == b[3 * i + 1] == b[3 * i + 2]:
                return b[3 * i]
            if b[i] != 0 and b[i] == b[i + 3] == b[i + 6]:
                return b[i]
        if b[4] != 0 and (b[0] == b[4] == b[8] or b[2] == b[4] == b[6]):
            return b[4]
        return 0

    def value(b, player):
        w = winner(b)
        if w != 0:
            return w * player
        if (b != 0).all():
            return 0
        best = -2
        for i in range(9):
            if b[i] == 0:
                after = b.copy()
                after[i] = player
                best = max(best, -value(after, -player))
        return best

    return x * float(value(board, 1))


def sorted_by_bubbles(x):
    n = len(x)
    for i in range(n):
        swapped = False
        for j in range(n - 1 - i):
            if x[j] > x[j + 1]:
                x[j], x[j + 1] = x[j + 1], x[j]
                swapped = True
        if not swapped:
            break
    return (x * (np.arange(n) + 1.0)).sum()


def sizes_of_other_functions(x):
    def halves(v):
        return len(v) // 2, len(v)

    def shape_of(v):
        n, d = v.shape
        return n, d

    half, whole = halves(x)
    n, d = shape_of(x.reshape(whole // 2, 2))
    return (x[:half] + np.zeros(half)).sum() * d + x[half:].sum() * float(n) + (np.linspace(0, 1, n) * x[0]).sum()


@relay
def variables_of_shapes(x: Tensor[Float64, (rows, columns)]):
    def scaled(v):
        return v * rows

    total = 0.0
    for i in range(rows):
        for j in range(columns):
            total += x[rows - 1 - i, j] * float(i + columns)
    return scaled(total) / columns + x[: rows // 2].sum() + np.zeros(columns).sum()


def _normal(*shape):
    return random.normal(size=shape) * 0.5


X = np.arange(6.0).reshape(2, 3) - 2.25
PYTHON = [
    (gated_network, ({k + g: _normal(2, 3 if k == "W" else 2) for k in "WU" for g in "zrn"}, _normal(3, 3))),
    (network_of_a_named_tuple, (Network(_normal(2, 3), _normal(3, 3), _normal(3)), _normal(4, 2))),
    (square_root, (np.float64(2.0),)),
    (
        most_likely_states,
        (
            np.array([0.6, 0.4]),
            np.array([[0.7, 0.3], [0.4, 0.6]]),
            np.array([[0.5, 0.4, 0.1], [0.1, 0.3, 0.6]]),
            np.array([0, 1, 2, 1], np.int32),
        ),
    ),
    (adaptive_steps, (np.float64(1.0), np.float64(1.3))),
    (power_iteration, (np.array([[2.0, 1.0], [1.0, 3.0]]),)),
    (centers_of_clusters, (_normal(8, 2), np.array([[0.0, 0.0], [1.0, 1.0]]))),
    (
        attention_with_heads,
        (
            {
                "g1": np.ones(4),
                "b1": np.zeros(4),
                "Wqkv": _normal(4, 12),
                "Wo": _normal(4, 4),
                "W1": _normal(4, 6),
                "W2": _normal(6, 4),
            },
            _normal(3, 4),
        ),
    ),
    (alignment_probability, (np.log(random.dirichlet(np.ones(4), size=5)), np.array([1, 2, 2], np.int32))),
    (edit_distance, (np.float64(0.5), np.array([1, 2, 3, 4], np.int32), np.array([1, 3, 4, 5], np.int32))),
    (best_outcome, (np.float64(0.5), np.array([1, -1, 1, 0, -1, 0, 0, 0, 0], np.int32))),
    (sorted_by_bubbles, (np.array([3.0, 1.0, 2.0, 5.0, 4.0]),)),
    (sizes_of_other_functions, (np.arange(6.0) - 1.25,)),
]


def _copied(arguments):
    return tuple(a.copy() if isinstance(a, np.ndarray) else a for a in arguments)


EXPECTED = 2 * sum(X[1 - i, j] * float(i + 3) for i in range(2) for j in range(3)) / 3 + X[:1].sum()
PROGRAMS = [
    *(Program(relay(f), arguments, expected=f(*_copied(arguments))) for f, arguments in PYTHON),
    Program(variables_of_shapes, (X,), expected=EXPECTED),
]
