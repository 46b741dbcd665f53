"""Meta-learning: the gradient of a training loop (MAML, after Finn, Abbeel and Levine, 2017).

    python examples/meta_learning.py [ROUNDS [PICTURE]]

A small network shall learn a sine wave of unknown height and phase from ten points in five steps of gradient descent.
`adapt` is that training, a loop around `relay.grad`. The outer training differentiates through it, to find parameters
and a learning rate from which five steps are enough.
"""

import sys

import numpy as np
from matplotlib import pyplot

from relay import relay


@relay
def network(params, x):
    """x: (n, 1) -> (n, 1)."""
    for w, b in params[:-1]:
        x = np.tanh(x @ w + b)
    w, b = params[-1]
    return x @ w + b


@relay
def error(params, x, y):
    return ((network(params, x) - y) ** 2).mean()


@relay
def descend(params, gradients, rate):
    return [(w - rate * dw, b - rate * db) for (w, b), (dw, db) in zip(params, gradients)]


@relay
def adapt(params, rate, x, y):
    """Five steps of gradient descent on a few points."""
    for _ in range(5):
        params = descend(params, relay.grad(error, wrt="params")(params, x, y), rate)
    return params


@relay
def meta_loss(params, rate, xs, ys, new_xs, new_ys):
    """The mean error on new points after training on the given ones. xs, ys: (tasks, n, 1)."""
    total = 0.0
    for x, y, new_x, new_y in zip(xs, ys, new_xs, new_ys):
        total += error(adapt(params, rate, x, y), new_x, new_y)
    return total / len(xs)


@relay
def meta_step(params, rate, tasks, meta_rate):
    value, (dparams, drate) = relay.value_and_grad(meta_loss, wrt=("params", "rate"))(params, rate, *tasks)
    return value, descend(params, dparams, meta_rate), rate - 0.01 * meta_rate * drate


def sines(random, count):
    """Points of `count` random sine waves to train on, and others to be tested on: four arrays (count, 10, 1)."""
    height, phase = random.uniform(0.5, 2.0, (count, 1, 1)), random.uniform(0, np.pi, (count, 1, 1))
    x, new_x = random.uniform(-4, 4, (2, count, 10, 1))
    arrays = x, height * np.sin(x + phase), new_x, height * np.sin(new_x + phase)
    return tuple(array.astype(np.float32) for array in arrays)


def main(rounds=3000, picture="meta_learning.png"):
    random = np.random.default_rng(0)
    sizes = [1, 40, 40, 1]
    params = [
        (np.float32(random.standard_normal((m, n)) / np.sqrt(m)), np.zeros(n, np.float32))
        for m, n in zip(sizes, sizes[1:], strict=False)
    ]
    first, rate, values = params, np.float32(0.05), []
    for i in range(int(rounds) + 1):
        value, params, rate = meta_step(params, rate, sines(random, 10), 0.02)
        values.append(float(value))
        if i % max(1, int(rounds) // 5) == 0:
            print(f"round {i:5}  error after adapting {np.mean(values[-200:]):.4f}  learning rate {float(rate):.4f}")

    x, y, *_ = (array[0] for array in sines(random, 1))
    grid = np.linspace(-4, 4, 200, dtype=np.float32)[:, None]
    figure, axes = pyplot.subplots(1, 2, figsize=(9, 3.2), sharey=True)
    for axis, start, title in zip(axes, (first, params), ("random parameters", "meta-learned parameters"), strict=True):
        axis.plot(x, y, "ko", label="ten points")
        axis.plot(grid, network(start, grid), "C0:", label="before training")
        axis.plot(grid, network(adapt(start, rate, x, y), grid), "C1", label="after five steps")
        axis.set_title(title)
    axes[1].legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(picture, dpi=120)
    print("wrote", picture)


if __name__ == "__main__":
    main(*sys.argv[1:])
