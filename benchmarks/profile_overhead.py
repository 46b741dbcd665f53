"""The overhead of profiling: how much longer a program with probes takes than the ordinary one.

    python benchmarks/profile_overhead.py [--rounds N]

Calls of the program that `relay.debug.profile` measures and of the ordinary one are made in turns, many short calls
together. The time is that of the processor, so that other programs on the machine matter little; of all rounds the
median of the ratios counts. The programs: a training loop over mini-batches (digits, 64-128-10), one step of it, a
block of a transformer with its gradient, a loop of very short kernels, and single elementwise operations.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import relay as rl
from relay import relay
from relay.debug.profiling.profile import Profiler

SECONDS = 0.02
"""The processor time of the calls that are measured together."""


@relay
def loss(params, x, y):
    w1, b1, w2, b2 = params
    log_probabilities = rl.log_softmax(rl.relu(x @ w1 + b1) @ w2 + b2)
    return -rl.mean(rl.sum(rl.one_hot(y, 10) * log_probabilities, axis=1))


@relay
def step(params, x, y):
    gradients = rl.grad(loss, wrt=0)(params, x, y)
    return tuple(p - 0.05 * g for p, g in zip(params, gradients))  # noqa: B905


@relay
def epoch(params, xs, ys):
    for i in range(xs.shape[0]):
        params = step(params, xs[i], ys[i])
    return params


@relay
def attention(params, x):
    w, u, v = params
    h = rl.layer_norm(x, w[0], w[1])
    scores = rl.softmax((h @ u[0]) @ (h @ u[1]).T / 8.0, axis=1)
    h = x + scores @ (h @ u[2])
    return ((h + rl.gelu(h @ v) @ v.T) ** 2).mean()


@relay
def descend(params, x):
    value, gradients = rl.value_and_grad(attention, wrt=0)(params, x)
    return value, tuple(p - 0.01 * g for p, g in zip(params, gradients))  # noqa: B905


@relay
def short(x, rounds):
    total = x
    for i in range(rounds):
        total = rl.sort(total * 0.5 + x[i % 4])
    return total


@relay
def single(x):
    return rl.tanh(x) * 2.0


def programs() -> list[tuple[str, Any, tuple[Any, ...]]]:
    """Names, functions and arguments."""
    random = np.random.default_rng(0)

    def normal(*shape: int) -> Any:
        return (random.normal(size=shape) * 0.1).astype(np.float32)

    params = normal(64, 128), normal(128), normal(128, 10), normal(10)
    xs, ys = normal(22, 64, 64), random.integers(0, 10, (22, 64)).astype(np.int32)
    block = normal(2, 64), normal(3, 64, 64), normal(64, 256)
    return [
        ("training loop: 22 batches", epoch, (params, xs, ys)),
        ("training step", step, (params, xs[0], ys[0])),
        ("transformer block, with gradient", descend, (block, normal(128, 64))),
        ("1000 short kernels in a loop", short, (normal(8), 500)),
        ("one operation on 16 numbers", single, (normal(16),)),
        ("one operation on a million numbers", single, (normal(1_000_000),)),
    ]


def cost(call: Callable[[], object], number: int) -> float:
    """The processor's seconds for one of this many calls."""
    start = time.process_time()
    for _ in range(number):
        call()
    return (time.process_time() - start) / number


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=15)
    rounds = parser.parse_args().rounds
    for name, function, arguments in programs():
        profiler = Profiler(function, arguments, {})
        found = profiler.profile(None)
        ordinary = lambda: function(*arguments)  # noqa: B023, E731
        probed = lambda: profiler.build.function(*arguments)  # noqa: B023, E731
        number = max(1, int(SECONDS / max(cost(ordinary, 3), 1e-7)))
        ratios = []
        for turn in range(rounds):
            first, second = (ordinary, probed) if turn % 2 else (probed, ordinary)
            a, b = cost(first, number), cost(second, number)
            ratios.append(b / a if turn % 2 else a / b)
        middle = statistics.median(ratios) - 1
        print(f"{name:36} {100 * middle:+5.1f} %   reported {100 * found.overhead:+5.1f} %", flush=True)


if __name__ == "__main__":
    main()
