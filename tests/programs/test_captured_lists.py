"""Functions that shorten lists which they capture, compared with Python, with gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from agreement import assert_agree, assert_close, assert_modes_agree

import relay as R

PROGRAM = """
def popped(x, n):
    xs = [x[0], x[1], x[2]]
    def take():
        return xs.pop()
    total = 0.0
    for i in range(n):
        total = total * 2 + take()
    return total, len(xs)

def deleted(x, n):
    xs = [v for v in x]
    def drop(k):
        del xs[k]
    drop(0)
    drop(n - 1)
    return xs

def sliced(x, n):
    xs = [v for v in x]
    def cut():
        nonlocal xs
        xs = xs[1:]
    cut()
    return xs, len(xs)

def sliced_in_a_loop(x, n):
    xs = [v for v in x]
    def cut():
        nonlocal xs
        xs = xs[:-1]
    for i in range(n):
        cut()
    return xs

def cleared(x, n):
    xs = [v for v in x]
    def clear():
        xs.clear()
    if n > 1:
        clear()
    return len(xs)

def from_the_front(x, n):
    xs = [v for v in x]
    f = lambda: xs.pop(0)
    return f() + f() * 2

def queue(x, n):
    queue = [x[0]]
    def visit():
        v = queue.pop(0)
        if v < 20.0:
            queue.append(v * 3)
            queue.append(v * 4)
        return v
    total = 0.0
    while queue:
        total += visit()
    return total

def inside_of_a_list(x, n):
    xs = [[x[0]], [x[1], x[2]]]
    def take(i):
        return xs[i].pop()
    return take(1) + take(0), len(xs[0]), len(xs[1])

def two_functions(x, n):
    xs = [x[0], x[1], x[2]]
    def outer():
        def inner():
            return xs.pop()
        return inner() + inner()
    return outer() * 2 + xs[0]

def on_one_path(x, n):
    xs = [v for v in x]
    def take():
        if len(xs) > 1:
            return xs.pop() * xs.pop()
        return xs.pop()
    return take() + take()

def recursion(x, n):
    xs = [v * v for v in x]
    def rec():
        if not xs:
            return 0.0
        v = xs.pop()
        return v + rec() * 0.5
    return rec()

def pairs(x, n):
    xs = [(v, v * 2) for v in x]
    def take():
        a, b = xs.pop()
        return a * b
    t = 0.0
    while len(xs) > 0:
        t += take()
    return t

def replaced(x, n):
    xs = [v for v in x]
    def halve():
        xs[:] = xs[:len(xs) // 2]
    halve()
    return xs

def two_closures(x, n):
    xs = [v for v in x]
    g = [lambda: xs.pop(), lambda: xs.pop(0)]
    return g[0]() * g[1]()
"""

FUNCTIONS = [line[4 : line.index("(")] for line in PROGRAM.splitlines() if line.startswith("def ")]
OF_FLOATS = {
    "popped",
    "from_the_front",
    "queue",
    "inside_of_a_list",
    "two_functions",
    "on_one_path",
    "recursion",
    "pairs",
    "two_closures",
}


@pytest.mark.usefixtures("low_effort")
@pytest.mark.parametrize("name", FUNCTIONS)
def test_captured_lists_are_shortened(name: str) -> None:
    scope: dict[str, Any] = {}
    exec(PROGRAM, scope)
    function = R.from_source(PROGRAM)[name]
    x, n = np.array([1.0, 3.0, 2.0]), np.int32(2)
    wanted = scope[name](x, 2)
    found = assert_modes_agree(function, x, n)
    if isinstance(wanted, tuple | list):
        assert len(found) == len(wanted)
    for one, other in zip(_parts(found), _parts(wanted), strict=True):
        assert_close(one, other)
    if name in OF_FLOATS:
        gradient = R.grad(function, wrt=0, output=0)
        assert_agree(gradient(x, n), gradient.interpret(x, n))


def _parts(value: Any) -> list[Any]:
    return [p for v in value for p in _parts(v)] if isinstance(value, tuple | list) else [value]
