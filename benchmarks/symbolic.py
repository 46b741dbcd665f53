"""Time programs for symbolic sizes against the same programs for static sizes, at the same sizes.

    python benchmarks/symbolic.py [part of a name ..]

Prints for each program the time of the static one, the ratio of the symbolic one to it, and the seconds that compiling
each took. Times are the least of several runs, of the processor.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs
import numpy as np

import relay

random = np.random.default_rng(0)

LSTM = """def f(x, w, u, b):
    units = u.shape[0]
    h = relay.zeros((x.shape[1], units))
    c = h
    for row in x:
        gates = row @ w + h @ u + b
        i, f = relay.sigmoid(gates[:, :units]), relay.sigmoid(gates[:, units : 2 * units])
        g, o = relay.tanh(gates[:, 2 * units : 3 * units]), relay.sigmoid(gates[:, 3 * units :])
        c = f * c + i * g
        h = o * relay.tanh(c)
    return h.sum()
"""
PERCEPTRON = """def f(w1, b1, w2, b2, x, y):
    return relay.cross_entropy(relay.relu(x @ w1 + b1) @ w2 + b2, y).mean()
"""
ATTENTION = """def f(q, k, v):
    return (relay.softmax(q @ relay.transpose(k, (0, 2, 1)) / 8.0) @ v).sum()
"""
CONVOLUTION = """def f(x, w):
    return relay.tanh(relay.conv2d(x, w, padding=1)).sum()
"""
LAYER_NORM = """def f(x):
    center = x - x.mean(axis=1, keepdims=True)
    return center / relay.sqrt((center ** 2.0).mean(axis=1, keepdims=True) + 0.00001)
"""


def normal(*shape: int) -> np.ndarray:
    """Small normal numbers."""
    return (random.standard_normal(shape) * 0.1).astype(np.float32)


@attrs.frozen(eq=False)
class Case:
    """A program, its arguments, and for each of these by how much its axes are longer in another call. `wrt`: time its
    gradient with respect to these arguments."""

    text: str
    arguments: tuple[np.ndarray, ...]
    longer: Sequence[Mapping[int, int]]
    wrt: tuple[int, ...] | None = None

    def function(self) -> Any:
        """A new function, of which nothing is compiled."""
        made = relay.from_source(self.text, {"relay": relay})
        return made if self.wrt is None else relay.grad(made, wrt=self.wrt)

    def others(self) -> list[np.ndarray]:
        """Arguments of other sizes."""
        return [
            np.pad(array, [(0, by.get(axis, 0)) for axis in range(array.ndim)])
            for array, by in zip(self.arguments, self.longer, strict=True)
        ]


def expression(value: str) -> str:
    """The text of a function of x."""
    return f"def f(x):\n    return {value}\n"


def cases() -> dict[str, Case]:
    """All programs by name."""
    found: dict[str, Case] = {}
    lstm = normal(20, 12, 256), normal(256, 1024), normal(256, 1024), normal(1024)
    longer: dict[str, Sequence[Mapping[int, int]]] = {
        "batch": ({1: 3}, {}, {}, {}),
        "any": ({0: 3, 1: 3, 2: 3}, {0: 3, 1: 12}, {0: 3, 1: 12}, {0: 12}),
    }
    for kind, axes in longer.items():
        found[f"lstm, {kind}"] = Case(LSTM, lstm, axes)
        found[f"lstm gradient, {kind}"] = Case(LSTM, lstm, axes, (1, 2, 3))
    for rows in (12, 64):
        inputs = normal(rows, 256), random.integers(0, 10, rows).astype(np.int32)
        layers = normal(256, 128), normal(128), normal(128, 10), normal(10), *inputs
        steps = ({}, {}, {}, {}, {0: 3}, {0: 3})
        found[f"perceptron gradient of {rows} rows, batch"] = Case(PERCEPTRON, layers, steps, (0, 1, 2, 3))
    for kind, by in {"batch": {0: 3}, "length": {1: 3}, "any": {0: 3, 1: 3, 2: 3}}.items():
        heads = normal(8, 50, 64), normal(8, 50, 64), normal(8, 50, 64)
        found[f"attention gradient, {kind}"] = Case(ATTENTION, heads, (by, by, by), (0, 1, 2))
    for kind, by in {"batch": {0: 3}, "image": {0: 3, 2: 4, 3: 4}}.items():
        images = normal(4, 16, 32, 32), normal(32, 16, 3, 3)
        found[f"convolution, {kind}"] = Case(CONVOLUTION, images, (by, {}))
        found[f"convolution gradient, {kind}"] = Case(CONVOLUTION, images, (by, {}), (0, 1))
    for kind, by in {"rows": {0: 3}, "any": {0: 3, 1: 3}}.items():
        matrix = (normal(256, 500),)
        found[f"layer norm, {kind}"] = Case(LAYER_NORM, matrix, (by,))
        for value in (
            "relay.softmax(x)",
            "x.sum(axis=0)",
            "x.max(axis=1)",
            "relay.pad(x, 1)",
            "relay.roll(x, 2, axis=1)",
        ):
            found[f"{value}, {kind}"] = Case(expression(value), matrix, (by,))
        for rows in (2, 5, 12, 33, 70):
            by_columns: Mapping[int, int] = {1: 3} if kind == "any" else {}
            product = Case(
                "def f(x, y):\n    return x @ y\n", (normal(rows, 256), normal(256, 1000)), ({0: 3}, by_columns)
            )
            found[f"product of {rows} rows, {kind}"] = product
    return found


def seconds(call: Callable[[], object], count: int = 1) -> float:
    """The time of one call, of the processor."""
    start = time.process_time()
    for _ in range(count):
        call()
    return (time.process_time() - start) / count


def measure(case: Case) -> tuple[float, float, float, float]:
    """The seconds that the static and the symbolic program take, and those to compile each."""
    static, symbolic = case.function(), case.function()
    calls = [lambda: static(*case.arguments), lambda: symbolic(*case.arguments)]
    first = [seconds(calls[0])]
    symbolic(*case.others())
    first.append(seconds(calls[1]))
    best, count = [math.inf, math.inf], 1
    for _ in range(8):
        best = [min(known, seconds(call, count)) for known, call in zip(best, calls, strict=True)]
        count = max(1, int(0.01 / max(best[0], 1e-7)))
    return best[0], best[1], first[0], first[1]


def main() -> None:
    """Measure and print, the worst last."""
    parser = argparse.ArgumentParser(description="Time programs for symbolic sizes against those for static sizes.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="parts of the names of programs")
    names = parser.parse_args().names
    relay.from_source(expression("x + 1.0"))(normal(2))  # loads the compiler
    ratios: dict[str, float] = {}
    for name, case in cases().items():
        if names and not any(part in name for part in names):
            continue
        static, symbolic, *compiling = measure(case)
        ratios[name] = symbolic / static
        took = f"{static * 1e6:9.1f} µs {ratios[name]:6.2f}   compiled in {compiling[0]:.2f}, {compiling[1]:.2f} s"
        print(f"{name:40} {took}")
        sys.stdout.flush()
    mean = math.exp(sum(map(math.log, ratios.values())) / max(len(ratios), 1))
    print(f"geometric mean {mean:.2f}; worst:")
    for name in sorted(ratios, key=lambda known: -ratios[known])[:10]:
        print(f"  {ratios[name]:.2f}  {name}")


if __name__ == "__main__":
    main()
