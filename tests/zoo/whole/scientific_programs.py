"""Scientific programs: filters, Gaussian processes, options, control, as users of NumPy write them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from relay import relay
from zoo import Program

random = np.random.default_rng(11)


# ---- finance: a binomial tree with early exercise


@relay
def american_put(
    spot,
    strike,
    time,
    rate,
    volatility,
    n=5,  # relay: static
):
    dt = time / n
    up = np.exp(volatility * np.sqrt(dt))
    p = (np.exp(rate * dt) - 1 / up) / (up - 1 / up)
    values = np.maximum(strike - spot * up ** (2 * np.arange(n + 1) - n), 0)
    for i in reversed(range(n)):
        continuation = np.exp(-rate * dt) * (p * values[1:] + (1 - p) * values[:-1])
        values = np.maximum(continuation, strike - spot * up ** (2 * np.arange(i + 1) - i))
    return values[0]


def _american_put(spot, strike, time, rate, volatility, n=5):
    dt = time / n
    up = np.exp(volatility * np.sqrt(dt))
    p = (np.exp(rate * dt) - 1 / up) / (up - 1 / up)
    values = np.maximum(strike - spot * up ** (2.0 * np.arange(n + 1) - n), 0)
    for i in reversed(range(n)):
        continuation = np.exp(-rate * dt) * (p * values[1:] + (1 - p) * values[:-1])
        values = np.maximum(continuation, strike - spot * up ** (2.0 * np.arange(i + 1) - i))
    return values[0]


# ---- speech: the loss of connectionist temporal classification


@relay
def connectionist_loss(log_probabilities, labels, blank=0):
    states = 2 * labels.shape[0] + 1
    symbols = np.full(states, blank)
    for i in range(labels.shape[0]):
        symbols[2 * i + 1] = labels[i]
    alpha = np.full(states, -1e30)
    alpha[0] = log_probabilities[0, blank]
    alpha[1] = log_probabilities[0, symbols[1]]
    for t in range(1, log_probabilities.shape[0]):
        new = np.full(states, -1e30)
        for s in range(states):
            a = alpha[s]
            if s > 0:
                a = np.logaddexp(a, alpha[s - 1])
            if s > 1 and symbols[s] != blank and symbols[s] != symbols[s - 2]:
                a = np.logaddexp(a, alpha[s - 2])
            new[s] = a + log_probabilities[t, symbols[s]]
        alpha = new
    return -np.logaddexp(alpha[-1], alpha[-2])


# ---- control: a pendulum under a linear policy


class Pendulum(NamedTuple):
    angle: Any
    speed: Any


@relay
def pendulum_cost(policy, start, steps, dt=0.05):
    state, cost = Pendulum(start, 0.0), 0.0
    for k in range(steps):
        force = np.clip(policy @ np.array([np.sin(state.angle), np.cos(state.angle), state.speed]), -2, 2)
        speed = state.speed + dt * (9.81 * np.sin(state.angle) + force)
        state = state._replace(angle=state.angle + dt * speed, speed=speed)
        turned = np.mod(state.angle + np.pi, 2 * np.pi) - np.pi
        cost += (turned**2 + 0.1 * speed**2) * (k + 1) / steps
    return cost / steps


# ---- statistics: averages over rounds and over lists


@relay
def averaged_gradient_descent(x, target, rounds):
    """Steps that shrink with the round, and the mean of the places they lead to."""
    mean, places = np.zeros(3), []
    for i in range(rounds):
        x -= 0.5 / np.sqrt(i + 1) * (x - target)
        mean += (x - mean) / (i + 1)
        if x.sum() < i:
            places.append(x[0] * i)
    return (mean**2).sum() + sum(places) / (len(places) + 1)


def _averaged_gradient_descent(x, target, rounds):
    mean, places = np.zeros(3), []
    for i in range(rounds):
        x = x - 0.5 / np.sqrt(i + 1) * (x - target)
        mean += (x - mean) / (i + 1)
        if x.sum() < i:
            places.append(x[0] * i)
    return (mean**2).sum() + sum(places) / (len(places) + 1)


# ---- operations research: a knapsack whose size the call says


@relay
def knapsack(values, weights, capacity):
    best = np.zeros(capacity + 1)
    for i in range(len(values)):
        for c in range(capacity, weights[i] - 1, -1):
            best[c] = max(best[c], best[c - weights[i]] + values[i])
    return best[capacity]


# ---- tracking: the likelihood of a Kalman filter


@relay
def kalman_filter(dynamics, observation, noise, error, seen):
    n = dynamics.shape[0]
    x, p, total = np.zeros(n), np.eye(n), 0.0
    for z in seen:
        x = dynamics @ x
        p = dynamics @ p @ dynamics.T + noise
        s = observation @ p @ observation.T + error
        gain = np.linalg.solve(s, observation @ p).T
        surprise = z - observation @ x
        _, log_determinant = np.linalg.slogdet(s)
        total -= 0.5 * (surprise @ np.linalg.solve(s, surprise) + log_determinant + len(z) * np.log(2 * np.pi))
        x = x + gain @ surprise
        p = (np.eye(n) - gain @ observation) @ p
    return total


def _kalman_filter(dynamics, observation, noise, error, seen):
    n = len(dynamics)
    x, p, total = np.zeros(n), np.eye(n), 0.0
    for z in seen:
        x = dynamics @ x
        p = dynamics @ p @ dynamics.T + noise
        s = observation @ p @ observation.T + error
        gain = np.linalg.solve(s, observation @ p).T
        surprise = z - observation @ x
        total -= 0.5 * (surprise @ np.linalg.solve(s, surprise) + np.linalg.slogdet(s)[1] + len(z) * np.log(2 * np.pi))
        x = x + gain @ surprise
        p = (np.eye(n) - gain @ observation) @ p
    return total


# ---- regression: the likelihood of a Gaussian process


@relay
def gaussian_process(logarithms, x, y):
    length, height, noise = np.exp(logarithms)
    squares = ((x[:, None, :] - x[None, :, :]) ** 2).sum(axis=-1)
    covariance = height * np.exp(-0.5 * squares / length**2) + noise * np.eye(len(x))
    return 0.5 * y @ np.linalg.solve(covariance, y) + 0.5 * np.log(np.linalg.det(covariance))


# ---- memory: one reading of a neural Turing machine


@relay
def addressed_memory(memory, head, x, weights):
    h = np.tanh(head["hidden"] @ np.hstack([x, weights]))
    key, strength, gate = head["key"] @ h, np.exp(head["strength"] @ h), relay.sigmoid(head["gate"] @ h)
    alike = memory @ key / (np.linalg.norm(memory, axis=1) * np.linalg.norm(key) + 1e-8)
    found = gate * relay.softmax(strength * alike) + (1 - gate) * weights
    shift = relay.softmax(head["shift"] @ h)
    moved = shift[0] * np.roll(found, 1) + shift[1] * found + shift[2] * np.roll(found, -1)
    sharp = moved**2 / (moved**2).sum()
    return ((sharp @ memory) ** 2).sum()


# ---- signals: a spectrum by the fast transform, recursively


@relay
def transformed(re, im):
    n = re.shape[0]
    if n == 1:
        return re, im
    (a, b), (c, d) = transformed(re[::2], im[::2]), transformed(re[1::2], im[1::2])
    angle = -2 * np.pi * np.arange(n // 2) / n
    p, q = np.cos(angle) * c - np.sin(angle) * d, np.sin(angle) * c + np.cos(angle) * d
    return np.concatenate([a + p, a - p]), np.concatenate([b + q, b - q])


@relay
def spectrum(x):
    re, im = transformed(x, np.zeros_like(x))
    return ((re**2 + im**2) * np.arange(len(x))).sum()


# ---- optimization: conjugate gradients until they converge


@relay
def conjugate_gradients(a, b, tolerance=1e-12):
    x, rest = np.zeros_like(b), b
    direction, size, history = rest, rest @ rest, []
    while np.sqrt(size) > tolerance and len(history) < 10 * len(b):
        along = a @ direction
        step = size / (direction @ along)
        x, rest = x + step * direction, rest - step * along
        new = rest @ rest
        direction, size = rest + new / size * direction, new
        history.append(size)
    assert np.allclose(a @ x, b)
    return np.column_stack([x, b]).sum(axis=0), np.array(history).shape[0]


# ---- sparse matrices and vectors as classes with operators


@dataclass
class Sparse:
    data: Any
    columns: Any
    starts: Any

    @relay
    def __matmul__(self, x):
        y = np.zeros(len(self.starts) - 1)
        for i in range(len(y)):
            for k in range(self.starts[i], self.starts[i + 1]):
                y[i] += self.data[k] * x[self.columns[k]]
        return y


@relay
def sparse_energy(data, x):
    matrix = Sparse(data, np.array([0, 2, 1, 0]), np.array([0, 2, 3, 4]))
    return x @ (matrix @ (matrix @ x))


class Point(NamedTuple):
    x: Any
    y: Any

    @relay
    def __add__(self, other):
        return Point(self.x + other.x, self.y + other.y)

    @relay
    def __rmul__(self, factor):
        return Point(factor * self.x, factor * self.y)

    @relay
    def __neg__(self):
        return -1.0 * self

    @relay
    def __lt__(self, other):
        return self.x < other.x


class Weighted(NamedTuple):
    w: Any

    @relay
    def apply(self, x):
        return self.w @ x


class Shifted(NamedTuple):
    w: Any
    b: Any

    @relay
    def apply(self, x):
        return Weighted.apply(Weighted(self.w), x) + self.b


@relay
def sum_of_points(a, b):
    p, q = Point(a, b), Point(b, a * a)
    r = 2.0 * p + q + -Point(b, b)
    moved = Shifted(np.array([[a, b], [b, a]]), b).apply(np.array([r.x, r.y]))
    return r.x * r.y + moved.sum() if p < r else r.x


def _sum_of_points(a, b):
    x, y = 2 * a + b - b, 2 * b + a * a - b
    return x * y + (a * x + b * y + b * x + a * y + 2 * b) if a < x else x


_logits = random.normal(size=(4, 3))
_option = tuple(map(np.float64, (100.0, 105.0, 0.5, 0.02, 0.3)))
_descent = (random.normal(size=3), random.normal(size=3), 5)

_track = (
    np.array([[1.0, 0.1], [0.0, 1.0]]),
    np.array([[1.0, 0.5], [0.0, 1.0]]),
    0.1 * np.eye(2),
    np.array([[0.5, 0.1], [0.1, 0.4]]),
    random.normal(size=(3, 2)),
)
_head = {
    "hidden": random.normal(size=(4, 5)),
    "key": random.normal(size=(3, 4)),
    "strength": random.normal(size=4),
    "gate": random.normal(size=4),
    "shift": random.normal(size=(3, 4)),
}
_signal = random.normal(size=4)

PROGRAMS = [
    Program(sparse_energy, (random.normal(size=4), random.normal(size=3))),
    Program(sum_of_points, (np.float64(1.5), np.float64(0.7)), expected=_sum_of_points(1.5, 0.7)),
    Program(kalman_filter, _track, expected=_kalman_filter(*_track)),
    Program(gaussian_process, (np.array([0.1, 0.2, -1.0]), random.normal(size=(4, 2)), random.normal(size=4))),
    Program(addressed_memory, (random.normal(size=(3, 3)), _head, random.normal(size=2), np.ones(3) / 3)),
    Program(spectrum, (_signal,), expected=(np.abs(np.fft.fft(_signal)) ** 2 * np.arange(4)).sum()),
    Program(conjugate_gradients, (np.array([[4.0, 1.0], [1.0, 3.0]]), np.array([1.0, 2.0])), differentiable=False),
    Program(american_put, _option, expected=_american_put(*_option)),
    Program(connectionist_loss, (_logits - np.log(np.exp(_logits).sum(axis=1, keepdims=True)), np.array([1, 2]))),
    Program(pendulum_cost, (random.normal(size=3), np.float64(0.3), 6)),
    Program(averaged_gradient_descent, _descent, expected=_averaged_gradient_descent(*_descent)),
    Program(knapsack, (np.array([60.0, 100.0, 120.0]), np.array([1, 2, 3]), 5), expected=220.0),
]
