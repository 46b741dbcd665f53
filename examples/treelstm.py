"""A TreeLSTM that learns logic (after Tai, Socher and Manning, 2015).

    python examples/treelstm.py [STEPS]

The data are formulas such as `(not a or b) and a`, as trees: values of a recursive data type. The network computes the
state of a node from those of its children, by a recursive function over the tree, and tells whether the formula is
true. It is trained on formulas of up to four levels and tested on larger ones. Each tree has a form of its own; the
training step is compiled once, for all of them.
"""

from __future__ import annotations

import random
import sys
from dataclasses import dataclass
from typing import Any

import numpy as np

from relay import Float, Tensor, relay

WIDTH = 16


@relay.data
class Formula:
    class Value:
        truth: Tensor[Float, ()]  # 1 or -1

    class Not:
        of: Formula

    class And:
        left: Formula
        right: Formula

    class Or:
        left: Formula
        right: Formula


@dataclass
class Cell:
    """The gates of one kind of node. weight: (2 WIDTH, 5 WIDTH), bias: (5 WIDTH,)."""

    weight: Any
    bias: Any

    @relay
    def __call__(self, left, right):
        (h1, c1), (h2, c2) = left, right
        i, f1, f2, o, u = np.split(np.concatenate([h1, h2]) @ self.weight + self.bias, 5)
        c = relay.sigmoid(i) * np.tanh(u) + relay.sigmoid(f1) * c1 + relay.sigmoid(f2) * c2
        return relay.sigmoid(o) * np.tanh(c), c


@relay
def state(params, formula):
    """The output and the memory of a node, (WIDTH,) each."""
    match formula:
        case Formula.Value(truth):
            return np.tanh(truth * params["value"]), truth * params["value"]
        case Formula.Not(of):
            inner = state(params, of)
            return params["not"](inner, inner)
        case Formula.And(left, right):
            return params["and"](state(params, left), state(params, right))
        case Formula.Or(left, right):
            return params["or"](state(params, left), state(params, right))


@relay
def log_odds(params, formula):
    """How sure the network is that the formula is true: above 0 it says that it is."""
    output, _ = state(params, formula)
    return output @ params["answer"]


@relay
def loss(params, formulas: list[Formula], truths):
    total = 0.0
    for i, formula in enumerate(formulas):
        total += relay.softplus(-truths[i] * log_odds(params, formula))
    return total / len(formulas)


@relay
def descend(x, dx, rate):
    """Each weight of a structure after a step of gradient descent."""
    if isinstance(x, dict):
        return {name: descend(x[name], dx[name], rate) for name in x}
    if isinstance(x, Cell):
        return Cell(descend(x.weight, dx.weight, rate), descend(x.bias, dx.bias, rate))
    return x - rate * dx


@relay
def train(params, formulas: list[Formula], truths, rate):
    value, gradient = relay.value_and_grad(loss, wrt="params")(params, formulas, truths)
    return value, descend(params, gradient, rate)


def formula_of(depth):
    """A random formula of at most this many levels, and whether it is true: 1.0 or -1.0."""
    if depth == 1:
        truth = random.choice([1.0, -1.0])
        return Formula.Value(truth), truth
    left, a = formula_of(random.randint(1, depth - 1))
    if random.random() < 0.25:
        return Formula.Not(left), -a
    right, b = formula_of(depth - 1)
    if random.random() < 0.5:
        return Formula.And(left, right), min(a, b)
    return Formula.Or(left, right), max(a, b)


def main(steps=1000):
    random.seed(0)
    normal = np.random.default_rng(0).standard_normal
    params = {"value": np.float32(normal(WIDTH)), "answer": np.float32(normal(WIDTH))}
    for kind in ("not", "and", "or"):
        params[kind] = Cell(np.float32(0.2 * normal((2 * WIDTH, 5 * WIDTH))), np.zeros(5 * WIDTH, np.float32))
    for i in range(int(steps) + 1):
        formulas, truths = zip(*(formula_of(4) for _ in range(32)))
        value, params = train(params, list(formulas), np.float32(truths), 0.3)
        if i % max(1, int(steps) // 5) == 0:
            print(f"step {i:4}  loss {float(value):.4f}")
    for depth in (4, 6, 8, 10):
        tests = [formula_of(depth) for _ in range(500)]
        right = [float(log_odds(params, formula)) * truth > 0 for formula, truth in tests]
        print(f"formulas of {depth} levels: {np.mean(right):.1%} right")


if __name__ == "__main__":
    main(*sys.argv[1:])
