"""The work of the front end, elaboration, specialization and defunctionalization grows as the program does.

Work is counted in calls of Python functions, which is the same in every run. Of each family, programs of sizes n, 2 n
and 4 n are compared: twice the program may take 2.3 times the work.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import relay as rl
from relay import relay
from relay.transform.pipeline import Pipeline

MOST = 2.3
"""How much more work twice the program may take: n log n, and what is there once weighs less."""


def work(run: Callable[[], object]) -> int:
    """How many Python functions are called."""
    count = 0

    def note(frame: object, event: str, argument: object) -> None:
        nonlocal count
        count += event == "call"

    before = sys.getprofile()
    gc.disable()  # a collection calls what waits for the death of other tests' objects
    sys.setprofile(note)
    try:
        run()
    finally:
        sys.setprofile(before)
        gc.enable()
    return count


def lines(*parts: str) -> str:
    return "\n".join(parts) + "\n"


def repeated(text: str, n: int, start: int = 0) -> str:
    return "\n".join(text.replace("#", str(k)).replace("@", str(k + 1)) for k in range(start, start + n))


FAMILIES: dict[str, Callable[[int], str]] = {
    "bindings": lambda n: lines("def f(x):", repeated("    x = relay.sin(x * 2.0) + x", n), "    return x"),
    "nested expressions": lambda n: f"def f(x):\n    return {'relay.sin(' * n}x{')' * n}\n",
    "sums": lambda n: f"def f(x):\n    return {' + '.join(['x'] * n)}\n",
    "calls of one function": lambda n: lines(
        "def g(a, b): return a * b + relay.sin(a)", "def f(x):", repeated("    x = g(x, x)", n), "    return x"
    ),
    "calls at other types": lambda n: lines(
        "def g(a): return a * 2.0 + relay.sum(a)",
        "def f(x):",
        "    y = x",
        repeated("    y = y + relay.sum(g(relay.ones((#, 2), dtype=relay.Float64)))", n, start=2),
        "    return y",
    ),
    "functions": lambda n: lines(
        "def g0(x): return x * 2.0", repeated("def g@(x): return g#(x) + 1.0", n), f"def f(x): return g{n}(x)"
    ),
    "functions with several calls": lambda n: lines(
        "def g0(x): return x * 2.0", repeated("def g@(x): return g#(x) + g#(x)", n), f"def f(x): return g{n}(x)"
    ),
    "functions that call each other": lambda n: lines(
        repeated("def g#(x, k): return x if k == 0 else g@(x * 2.0, k - 1)", n),
        f"def g{n}(x, k): return g0(x, k)",
        "def f(x): return g0(x, 3)",
    ),
    "local functions": lambda n: lines(
        "def f(x):",
        "    def g0(v): return v * x",
        repeated("    def g@(v): return g#(v) + x", n),
        f"    return g{n}(x)",
    ),
    "closures": lambda n: lines(
        "def f(x):", "    g0 = lambda v: v * x", repeated("    g@ = lambda v: g#(v) * 2.0", n), f"    return g{n}(x)"
    ),
    "composed closures": lambda n: lines(
        "def compose(a, b): return lambda v: a(b(v))",
        "def f(x):",
        "    g = lambda v: v * 2.0",
        repeated("    g = compose(lambda v: v + #.0, g)", n),
        "    return g(x)",
    ),
    "numerals": lambda n: lines(
        "def f(x):",
        "    zero = lambda s: lambda z: z",
        "    succ = lambda m: lambda s: lambda z: s(m(s)(z))",
        f"    return {'succ(' * n}zero{')' * n}(lambda v: v * 2.0)(x)",
    ),
    "functions as arguments": lambda n: lines(
        "def twice(a, v): return a(a(v))",
        "def f(x):",
        repeated("    x = twice(lambda v: v * #.0, x)", n),
        "    return x",
    ),
    "chosen functions": lambda n: lines(
        "def f(x):",
        "    g = lambda v: v",
        repeated("    if x > #.0:\n        g = lambda v: v * #.0", n),
        "    return g(x)",
    ),
    "branches": lambda n: lines(
        "def f(x):", repeated("    if x > #.0:\n        x = x * 2.0\n    else:\n        x = x + 1.0", n), "    return x"
    ),
    "a chain of branches": lambda n: lines(
        "def f(x):", "    if x < 0.0: x = 1.0", repeated("    elif x < #.5: x = x + #.0", n), "    return x"
    ),
    "early returns": lambda n: lines("def f(x):", repeated("    if x > #.0: return x * #.0", n), "    return x"),
    "conditions": lambda n: f"def f(x):\n    return 1.0 if {' and '.join(f'x > {k}.0' for k in range(n))} else x\n",
    "loops": lambda n: lines("def f(x):", repeated("    for i in range(3): x = x * 2.0", n), "    return x"),
    "while loops": lambda n: lines("def f(x):", repeated("    while x < #.0: x = x * 2.0 + 1.0", n), "    return x"),
    "items of a tuple": lambda n: lines(
        "def f(x):",
        f"    t = ({', '.join(f'x + {k}.0' for k in range(n))},)",
        "    s = x",
        "    for v in t: s = s + v",
        "    return s",
    ),
    "a tuple through a branch": lambda n: lines(
        "def f(x):",
        f"    t = ({', '.join(f'x + {k}.0' for k in range(n))},)",
        f"    if x > 0.0: t = ({', '.join(f'x * {k}.0' for k in range(n))},)",
        f"    return {' + '.join(f't[{k}]' for k in range(n))}",
    ),
    "a list that grows": lambda n: lines(
        "def f(x):", "    xs = []", repeated("    xs.append(x * #.0)", n), "    return sum(xs)"
    ),
    "keys of a dict": lambda n: lines(
        "def f(x):",
        "    d = {" + ", ".join(f"'k{k}': x + {k}.0" for k in range(n)) + "}",
        repeated("    d['k#'] = d['k#'] * 2.0", n),
        f"    return {' + '.join(f'''d['k{k}']''' for k in range(n))}",
    ),
    "parameters": lambda n: lines(
        f"def g({', '.join(f'a{k}' for k in range(n))}): return {' + '.join(f'a{k}' for k in range(n))}",
        f"def f(x): return g({', '.join(['x'] * n)})",
    ),
    "numbers": lambda n: lines("def f(x):", repeated("    n# = # * 2 + 1", n), f"    return x * n{n - 1}"),
    "derivatives": lambda n: lines(
        "def f(x):", repeated("    x = x + relay.grad(lambda v: relay.sin(v) * #.0)(x)", n), "    return x"
    ),
    "cells": lambda n: lines(
        "def f(x):", "    r = relay.ref(x)", repeated("    r.value = r.value * 2.0 + x", n), "    return r.value"
    ),
}

RECURSION = {
    "halves": "def f(x):\n    return x.sum() if x.shape[0] <= 1 else f(x[::2]) * 2.0\n",
    "both halves": "def f(x):\n    return x.sum() if x.shape[0] <= 1 else f(x[::2]) + f(x[1::2])\n",
}


def program(text: str) -> Any:
    found = rl.from_source(text, {"relay": relay})
    return found["f"] if isinstance(found, dict) else found


def to_core(typed: Any) -> object:
    """What comes before the optimizer: functions that are known become calls, the others data."""
    return Pipeline("specialize, structure", stage="typed")(typed)


QUADRATIC = {("local functions", "specialization"), ("closures", "specialization")}
"""A closure gets what it has captured as arguments, and what closures in that have captured: as many as there are. The
program that is made is as large."""

SQUARED = 4.4

PHASES = ("front end", "elaboration", "specialization")


def works(text: str) -> list[int]:
    x = np.float64(0.5)
    program(text).typed(x)  # what is loaded and kept at first use
    front = work(lambda: program(text))
    function = program(text)
    elaboration = work(lambda: function.typed(x))
    typed = function.typed(x)
    return [front, elaboration, work(lambda: to_core(typed))]


@pytest.mark.parametrize("family", FAMILIES)
def test_work_grows_as_the_program(family: str) -> None:
    small, middle, large = (works(FAMILIES[family](n)) for n in (12, 24, 48))
    for phase, first, second, third in zip(PHASES, small, middle, large, strict=True):
        most = SQUARED if (family, phase) in QUADRATIC else MOST
        assert third - second <= most * max(second - first, 200), f"{phase}: {first}, {second}, {third} calls"


@pytest.mark.parametrize("family", RECURSION)
def test_work_grows_as_the_depth_of_a_recursion_at_other_sizes(family: str) -> None:
    """At symbolic sizes that of a depth is an expression as long as the depth, and each rule for shapes asks of it."""
    first, symbolic = [], []
    function = program(RECURSION[family])
    function.typed(np.ones(4)), function.typed(np.ones(3))  # what the first program imports is no work of these
    for depth in (2, 4, 8):
        function = program(RECURSION[family])
        x, y = np.ones(2**depth), np.ones(2**depth - 1)
        first.append(work(lambda function=function, x=x: function.typed(x)))  # type: ignore[misc]
        symbolic.append(work(lambda function=function, y=y: function.typed(y)))  # type: ignore[misc]
    assert first[2] - first[1] <= MOST * (first[1] - first[0]), first
    assert symbolic[2] <= 8 * symbolic[1], symbolic


def test_work_grows_as_a_chain_of_parts_at_other_sizes() -> None:
    """The sizes are quotients of one size, which are compared with each other."""
    texts = ["def f(x):", "    s = 0.0", "", "    return s\n"]
    found = []
    for n in (6, 12, 24):
        step = "    x, y = np.split(x, [x.shape[0] // 2])\n    s = s + y.sum()"
        function = rl.from_source("\n".join([*texts[:2], *[step] * n, texts[3]]), {"np": np})
        assert isinstance(function, rl.RelayFunction)
        function.typed(np.ones(2**25))
        found.append(work(lambda function=function: function.typed(np.ones(2**25 + 1))))  # type: ignore[misc]
        assert [str(c) for c in function.typed(np.ones(2**25 + 2)).where] == ["x_0 >= 2"]
    assert found[2] - found[1] <= MOST * (found[1] - found[0]), found
