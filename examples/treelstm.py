"""A TreeLSTM that learns logic (after Tai, Socher and Manning, 2015).

    python examples/treelstm.py [STEPS]

The data are formulas of true, false and nand ("not both"), as trees: values of a recursive data type. A recursive
function computes the state of a node from those of its children. The training step is compiled once for all trees.
"""

import sys
from dataclasses import dataclass
from typing import Any

import numpy as np

from relay import Float, Tensor, relay


@relay.data
class Formula:
    class Value:
        truth: Tensor[Float, ()]  # 1 or -1

    class Nand:
        left: "Formula"
        right: "Formula"


@dataclass
class Model:
    value: Any  # (w,)
    weight: Any  # (2 w + 1, 5 w)
    answer: Any  # (w,)


@relay
def state(model, formula):
    """The output and the memory of a node, (w,) each."""
    match formula:
        case Formula.Value(truth):
            return np.tanh(truth * model.value), truth * model.value
        case Formula.Nand(left, right):
            (h1, c1), (h2, c2) = state(model, left), state(model, right)
            i, f1, f2, o, u = np.split(np.concatenate([h1, h2, np.ones(1)]) @ model.weight, 5)
            c = relay.sigmoid(i) * np.tanh(u) + relay.sigmoid(f1) * c1 + relay.sigmoid(f2) * c2
            return relay.sigmoid(o) * np.tanh(c), c


@relay
def error(model, formulas: list[Formula], truths):
    """The mean squared error of the answers, between -1 (false) and 1 (true)."""
    answers = np.stack([state(model, formula)[0] @ model.answer for formula in formulas])
    return ((np.tanh(answers) - truths) ** 2).mean()


def random_formula(random, levels):
    """A formula of at most this many levels, and whether it is true: 1.0 or -1.0."""
    if levels == 1:
        truth = float(random.choice([1, -1]))
        return Formula.Value(truth), truth
    (left, a), (right, b) = random_formula(random, random.integers(1, levels)), random_formula(random, levels - 1)
    return Formula.Nand(left, right), -min(a, b)


def main(steps=1000):
    random = np.random.default_rng(0)
    model = Model(*(np.float32(random.normal(0, 0.3, shape)) for shape in [(16,), (33, 80), (16,)]))
    for i in range(int(steps) + 1):
        formulas, truths = zip(*(random_formula(random, 5) for _ in range(32)))
        value, gradient = relay.value_and_grad(error, wrt="model")(model, list(formulas), np.float32(truths))
        model = Model(*(w - 0.2 * dw.numpy() for w, dw in zip(vars(model).values(), vars(gradient).values())))
        if i % max(1, int(steps) // 5) == 0:
            print(f"step {i:4}  error {float(value):.4f}")
    for levels in (4, 6, 8, 10):
        tests = [random_formula(random, levels) for _ in range(500)]
        right = [error(model, [formula], np.float32([truth])) < 1 for formula, truth in tests]
        print(f"formulas of {levels} levels: {np.mean(right):.1%} right")


if __name__ == "__main__":
    main(*sys.argv[1:])
