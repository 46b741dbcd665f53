"""Meta-learning: the gradient of a training loop (MAML, after Finn, Abbeel and Levine, 2017).

    python examples/meta_learning.py [ROUNDS [PICTURE]]

A small network shall learn a sine wave of unknown height and phase from ten points in five steps of gradient descent.
`adapt` is that training, a loop around `relay.grad`. The outer training differentiates through it, to find parameters
from which five steps are enough.
"""

import sys

import numpy as np
from matplotlib import pyplot

from relay import relay


@relay
def error(params, x, y):
    """The mean squared error of a network with hidden layers of tanh. x, y: (n, 1)."""
    for w, b in params[:-1]:
        x = np.tanh(x @ w + b)
    w, b = params[-1]
    return ((x @ w + b - y) ** 2).mean()


@relay
def descend(params, gradients, rate):
    return [(w - rate * dw, b - rate * db) for (w, b), (dw, db) in zip(params, gradients)]


@relay
def adapt(params, x, y, steps):
    """Gradient descent on a few points."""
    for _ in range(steps):
        params = descend(params, relay.grad(error, wrt="params")(params, x, y), 0.05)
    return params


@relay
def meta_loss(params, tasks):
    """The mean error on new points after training on the given ones. tasks: arrays (tasks, n, 1)."""
    total = 0.0
    for x, y, new_x, new_y in zip(*tasks):
        total += error(adapt(params, x, y, 5), new_x, new_y)
    return total / len(tasks[0])


def sines(random, count):
    """Points of `count` random sine waves to train on, and others to be tested on: four arrays (count, 10, 1)."""
    height, phase = random.uniform(0.5, 2.0, (count, 1, 1)), random.uniform(0, np.pi, (count, 1, 1))
    x, new_x = random.uniform(-4, 4, (2, count, 10, 1))
    return tuple(np.float32([x, height * np.sin(x + phase), new_x, height * np.sin(new_x + phase)]))


def main(rounds=3000, picture="meta_learning.png"):
    rounds, random, sizes = int(rounds), np.random.default_rng(0), [1, 40, 40, 1]
    weights = [np.float32(random.normal(0, m**-0.5, (m, n))) for m, n in zip(sizes, sizes[1:])]
    params = first = [(w, np.zeros(w.shape[1], np.float32)) for w in weights]
    values = []
    for i in range(rounds + 1):
        value, gradient = relay.value_and_grad(meta_loss, wrt="params")(params, sines(random, 10))
        params = descend(params, gradient, 0.02)
        values.append(float(value))
        if i % max(1, rounds // 5) == 0:
            print(f"round {i:5}  error after adapting {np.mean(values[-200:]):.4f}")

    steps, tests = range(11), list(zip(*sines(random, 20)))
    for start, label in ((first, "random parameters"), (params, "meta-learned parameters")):
        errors = [[float(error(adapt(start, x, y, n), u, v)) for x, y, u, v in tests] for n in steps]
        pyplot.semilogy(steps, np.mean(errors, axis=1), "o-", label=label)
    pyplot.gca().set(xlabel="steps of gradient descent", ylabel="error on new points")
    pyplot.legend()
    pyplot.savefig(picture, dpi=120)
    print("wrote", picture)


if __name__ == "__main__":
    main(*sys.argv[1:])
