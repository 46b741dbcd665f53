"""Whole programs (beam search, Newton, TreeLSTM, operators of one's own, dynamic programming) and their parts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

import relay as rl
from relay import relay
from zoo import Program

A = rl.type_var("A")
random = np.random.default_rng(7)


# ---- an RNN


@dataclass
class Cell:
    wx: Any
    wh: Any
    b: Any


@relay
def recurrent_network(cell, out, inputs, targets):
    h = np.zeros(3)
    outputs = []
    for x in inputs:
        h = np.tanh(cell.wx @ x + cell.wh @ h + cell.b)
        outputs.append(out @ h)
    errors = relay.stack(outputs) - targets
    return (errors**2).mean()


def _recurrent_network(cell, out, inputs, targets):
    h, outputs = np.zeros(3), []
    for x in inputs:
        h = np.tanh(cell.wx @ x + cell.wh @ h + cell.b)
        outputs.append(out @ h)
    return ((np.stack(outputs) - targets) ** 2).mean()


# ---- a beam search with early exit


@relay
def beam_search(scores, width=2, stop=0, longest=6):
    beams = [(0.0, [1])]
    for step in range(longest):
        candidates = []
        for total, tokens in beams:
            row = scores[step % 4, tokens[-1]]
            for token in range(3):
                candidates.append((total + row[token], tokens + [token]))
        beams = []
        while candidates and len(beams) < width:
            place = 0
            for i, (total, _) in enumerate(candidates):
                if total > candidates[place][0]:
                    place = i
            beams.append(candidates.pop(place))
        if beams[0][1][-1] == stop:
            best = beams[0][0]
            break
    else:
        best = max([total for total, _ in beams])
    return best + float(len(beams[0][1]))


def _beam_search(scores, width=2, stop=0, longest=6):
    beams, best = [(0.0, [1])], -1e9
    for step in range(longest):
        row = scores[step % 4]
        candidates = [(total + row[tokens[-1], k], [*tokens, k]) for total, tokens in beams for k in range(3)]
        candidates.sort(key=lambda c: -c[0])
        beams = candidates[:width]
        if beams[0][1][-1] == stop:
            best = beams[0][0]
            break
    else:
        best = max(total for total, _ in beams)
    return best + len(beams[0][1])


# ---- Newton's iteration


@relay
def newton_iteration(a, guess, tolerance=1e-12):
    def f(x):
        return x**3 + x - a

    slope = relay.grad(f)
    x, steps = guess, 0
    while abs(f(x)) > tolerance and (step := f(x) / slope(x)) != 0.0:
        x -= step
        steps += 1
        assert steps < 50, "no convergence"
    return x


# ---- a TreeLSTM


@rl.data
class Words:
    class Word:
        vector: rl.Tensor[rl.Float64, (2,)]

    class Phrase:
        left: Words
        right: Words


class State(NamedTuple):
    h: Any
    c: Any


@relay
def encode(tree, w, u):
    match tree:
        case Words.Word(vector):
            c = np.tanh(w @ vector)
            return State(np.tanh(c), c)
        case Words.Phrase(left, right):
            a, b = encode(left, w, u), encode(right, w, u)
            h = a.h + b.h
            gate = relay.sigmoid(u @ h)
            keep_a, keep_b = relay.sigmoid(u @ a.h), relay.sigmoid(u @ b.h)
            c = gate * np.tanh(w @ h) + keep_a * a.c + keep_b * b.c
            return State(gate * np.tanh(c), c)


@relay
def tree_lstm(w, u, words):
    a, b, c, d = [Words.Word(v) for v in words]
    tree = Words.Phrase(Words.Phrase(a, b), Words.Phrase(c, Words.Phrase(d, a)))
    return encode(tree, w, u).h.sum()


# ---- what else they write


@rl.data
class Vector:
    x: A
    y: A

    def __add__(self, other):
        return Vector(self.x + other.x, self.y + other.y)

    def __sub__(self, other):
        return self + -1.0 * other

    def __rmul__(self, factor):
        return Vector(factor * self.x, factor * self.y)

    def __matmul__(self, other):
        return self.x * other.x + self.y * other.y

    def __getitem__(self, i):
        return self.x if i == 0 else self.y

    def __call__(self, t):
        return self.x + self.y * t

    def __lt__(self, other):
        return self @ self < other @ other

    @property
    def squared(self):
        return self @ self


@relay
def own_operators(a, b):
    u, v = Vector(a, b), Vector(b, a * a)
    w = 2.0 * u - v
    return w @ u + w[0] * w(b) + w.squared if u < w + v else w[1]


class Circle(NamedTuple):
    radius: Any


@dataclass
class Box:
    width: Any
    height: Any


@relay
def area(shape):
    match shape:
        case Circle(r):
            return r * r * np.pi
        case Box(width=w, height=h) if isinstance(h, tuple):
            return w * (h[0] + h[1])
        case Box(w, h):
            return w * h


@relay
def areas(x):
    return area(Circle(x)) + area(Box(x, 2.0)) * area(Box(x, (x, 3.0)))


@relay
def batches(w, data, size=4):
    total = 0.0
    for b in range(len(data) // size):
        batch = data[b * size : (b + 1) * size]
        total += ((batch * w - 1.0) ** 2).sum() / float(b + 1)
    return total


@relay
def convolved(x, kernel):
    out = np.zeros(8)
    for i in range(8):
        out[i] = (x[i : i + 3] * kernel).sum()
    out[2:4] *= 2.0
    for i in range(2):
        out[3 * i : 3 * i + 2] += x[i + 1 : i + 3]
    return (out * out).sum()


@relay
def patches(image):
    total = 0.0
    for i in range(3):
        for j in range(2):
            total += image[i : i + 2, j : j + 2].max() * image[i, j : j + 3].sum()
    return total


@relay
def edit_distance(a, b):
    m, n = len(a), len(b)
    d = np.zeros((m + 1, n + 1))
    d[:, 0], d[0, :] = np.arange(m + 1), np.arange(n + 1)
    for i in range(1, m + 1):
        for j in range(1, n + 1):
            cost = 0.0 if a[i - 1] == b[j - 1] else 1.0
            d[i, j] = min(d[i - 1, j] + 1.0, d[i, j - 1] + 1.0, d[i - 1, j - 1] + cost)
    return d[m, n]


@relay
def viterbi(transitions, emissions, observations):
    score, back = emissions[:, observations[0]], []
    for t in range(1, len(observations)):
        candidates = score[:, None] + transitions
        back.append(candidates.argmax(axis=0))
        score = candidates.max(axis=0) + emissions[:, observations[t]]
    path = [score.argmax()]
    for pointers in reversed(back):
        path.append(pointers[path[-1]])
    return score.max() + float(sum(path[::-1][:2]))


@relay
def bubble_sort(x):
    x = x.copy()
    for i in range(len(x)):
        for j in range(len(x) - 1 - i):
            if x[j] > x[j + 1]:
                x[j], x[j + 1] = x[j + 1], x[j]
    return (x * np.arange(5)).sum()


@relay
def clusters(points, centers):
    for _ in range(3):
        nearest = ((points[:, None, :] - centers[None, :, :]) ** 2).sum(axis=2).argmin(axis=1)
        for k in range(len(centers)):
            inside = (nearest == k).astype(relay.Float64)
            centers[k] = (inside[:, None] * points).sum(axis=0) / np.maximum(inside.sum(), 1.0)
    return (centers**2).sum()


CELL = Cell(random.normal(size=(3, 2)), random.normal(size=(3, 3)), random.normal(size=3))
OUT, INPUTS, TARGETS = random.normal(size=(2, 3)), random.normal(size=(5, 2)), random.normal(size=(5, 2))
SCORES = random.normal(size=(4, 3, 3))
DATA, IMAGE = np.arange(10.0) / 10.0, random.normal(size=(4, 4))
POINTS = np.array([[0.0, 0.1], [0.2, 1.0], [5.0, 5.0], [6.0, 5.5]])
EMISSIONS, TRANSITIONS = np.log([[0.5, 0.5], [0.9, 0.1]]), np.log([[0.7, 0.3], [0.4, 0.6]])


@relay
def weighted_by_index(x):
    """NumPy's integers are of 64 bits, and those of `range` of 32."""
    total = 0
    for i in range(len(x)):
        total = total + x[i] * i
    for i, v in enumerate(x):
        if v > i:
            total += 2 * i + 1
    return total + sum([x[j] * j for j in range(2)])


@relay
def indices_in_place(x, n):
    for i in range(n):
        x[i] = i * i - 1
    largest = x.max()
    for i in range(3, 0, -1):
        largest = largest + i
    return x, largest


PROGRAMS = [
    Program(
        recurrent_network,
        (CELL, OUT, INPUTS, TARGETS),
        expected=_recurrent_network(CELL, OUT, INPUTS, TARGETS),
    ),
    Program(beam_search, (SCORES,), expected=_beam_search(SCORES)),
    Program(newton_iteration, (np.float64(10.0), np.float64(1.5)), expected=2.0, expected_gradient=(1 / 13, 0.0, None)),
    Program(tree_lstm, (random.normal(size=(2, 2)), random.normal(size=(2, 2)), random.normal(size=(4, 2)))),
    Program(own_operators, (np.float64(0.5), np.float64(1.5)), expected=9.875),
    Program(areas, (np.float64(1.5),), expected=2.25 * np.pi + 3.0 * 1.5 * 4.5),
    Program(batches, (np.float64(0.7), DATA)),
    Program(convolved, (DATA, np.array([1.0, -2.0, 0.5]))),
    Program(patches, (IMAGE,)),
    Program(edit_distance, (np.int32([1, 2, 3, 4]), np.int32([2, 3, 5])), differentiable=False, expected=2.0),
    Program(viterbi, (TRANSITIONS, EMISSIONS, np.int32([0, 1, 1, 0]))),
    Program(bubble_sort, (np.array([5.0, 3.0, 4.0, 1.0, 2.0]),), expected=40.0),
    Program(clusters, (POINTS, np.array([[0.0, 0.0], [5.0, 5.0]]))),
]
PROGRAMS += [
    Program(weighted_by_index, (np.arange(5) * 3,), differentiable=False, expected=np.int64(90 + 24 + 3)),
    Program(weighted_by_index, (np.arange(5, dtype=np.int32) * 3,), differentiable=False, expected=np.int32(117)),
    Program(
        indices_in_place,
        (np.arange(5), np.int32(4)),
        differentiable=False,
        expected=(np.array([-1, 0, 3, 8, 4]), np.int64(14)),
    ),
]
