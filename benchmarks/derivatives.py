"""How the cost of derivatives grows: `python benchmarks/derivatives.py`. The last columns should be flat.

The first table has the time to produce the gradient of a chain of bindings (elaborate, differentiate, optimize), for
each binding. The second has the bytes of the tapes of a loop, and those with `memory="recompute"`, which grow with the
square root of the number of rounds. The third has the time to run compiled gradients of loops over n elements, for each
element, and how much it grows when n does.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from relay.ad.checkpoints import tape_bytes

import relay
from relay import List


@relay
def indexed(x):
    s = 0.0
    for i in range(x.shape[0]):
        s = s * 0.5 + x[i] * x[3]
    return s


@relay
def record(x):
    w = {"table": x, "scale": x[0]}
    s = 0.0
    for i in range(x.shape[0]):
        s = s * w["scale"] + w["table"][i]
    return s


@relay
def folded(xs):
    return xs.fold(lambda total, v: total * 0.5 + v * v, 0.0)


def chain(length: int) -> Any:
    """A function of this many bindings."""
    lines = [f"    x{i + 1} = relay.sin(x{i}) * 1.01" for i in range(length // 2)]
    text = "\n".join(["def chain(x0):", *lines, f"    return x{length // 2}"])
    return relay.from_source(text, {"relay": relay})


def a_list(length: int) -> Any:
    xs = List.Nil()
    for k in range(length):
        xs = List.Cons(np.float64(k / length), xs)
    return xs


def fastest(run: Any, repeats: int = 5) -> float:
    """The shortest of some runs, in seconds."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        run()
        times.append(time.process_time() - start)
    return min(times)


def production() -> None:
    print("producing the gradient of a chain\n  bindings   seconds   us a binding")
    for length in (1_000, 3_000, 10_000):
        function = chain(length)
        start = time.process_time()
        relay.grad(function).core(np.float64(0.5))
        seconds = time.process_time() - start
        print(f"  {length:8} {seconds:9.2f} {seconds / length * 1e6:14.0f}")


def loop(rounds: int) -> Any:
    """A loop of this many rounds."""
    text = f"def loop(x, w):\n    for _ in range({rounds}):\n        x = relay.sin(x * w)\n    return x"
    return relay.from_source(text, {"relay": relay})


def taping() -> None:
    print("\nthe tapes of a loop in bytes\n    rounds     store   recompute   times a root of the rounds")
    for rounds in (100, 1_000, 10_000, 100_000):
        sizes = []
        for memory in ("store", "recompute"):
            core = relay.grad(loop(rounds), memory=memory).core(np.float64(0.5), np.float64(0.9))
            sizes.append(tape_bytes(core.functions.values()))
        print(f"  {rounds:8} {sizes[0]:9.0f} {sizes[1]:11.0f} {sizes[1] / rounds**0.5:12.1f}")


def running() -> None:
    print("\nrunning a gradient\n             n        ms   ns an element   times the time for times the elements")
    for function, argument, lengths in (
        (indexed, lambda n: np.linspace(0.1, 1.0, n), (10_000, 30_000, 100_000)),
        (record, lambda n: np.linspace(0.1, 1.0, n), (10_000, 30_000, 100_000)),
        (folded, a_list, (1_000, 3_000, 10_000)),
    ):
        before: tuple[int, float] | None = None
        for length in lengths:
            derivative, given = relay.grad(function), argument(length)
            derivative(given)
            seconds = fastest(lambda d=derivative, g=given: d(g))
            ratio = "" if before is None else f"{seconds / before[1]:8.1f} for {length / before[0]:.1f}"
            line = f"  {function.__name__:8} {length:8} {seconds * 1e3:9.2f} {seconds / length * 1e9:15.0f}"
            print(f"{line}   {ratio}".rstrip())
            before = length, seconds


if __name__ == "__main__":
    production()
    taping()
    running()
