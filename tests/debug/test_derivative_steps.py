"""Steps in derivatives: each belongs to a line of the program, forward in its order and backward in the reverse one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import relay
from relay import Float64, Tensor, debug


@relay
def recursive(x, k):
    if k == 0:
        return x * x
    return recursive(x * 1.5, k - 1) + x


@relay
def looped(x):
    r = relay.ref(x)
    t = 0.0
    for _ in range(3):
        r.value = r.value * x
        t = t + r.value
    return t


@relay
def chosen(x):
    def scaled(v):
        return v * x

    g = scaled if x > 0.0 else (lambda v: v + x)
    return g(g(x))


@relay.data
class Shape:
    class Circle:
        r: Tensor[Float64, ()]

    class Rectangle:
        a: Tensor[Float64, ()]
        b: Tensor[Float64, ()]


@relay
def area(x):
    s = Shape.Rectangle(x, x * 2.0) if x > 1.0 else Shape.Circle(x)
    match s:
        case Shape.Circle(r):
            return r * r * 3.0
        case Shape.Rectangle(a, b):
            return a * b


@relay
def clipped(x):
    return relay.maximum(x, 0.0)


@clipped.def_gradient
def clipped_rule(saved, seed):
    (x,) = saved
    k = x * 0.0 + 2.0
    return k * seed


@relay
def ruled(x):
    y = clipped(x * 3.0)
    return y * y


def steps(function: Any, *arguments: Any) -> list[tuple[str, int]]:
    """The functions and lines at which the gradient can be stopped, in the order of a run; lines from the file's."""
    session = debug.step(relay.grad(function, wrt=0), *arguments)
    found = []
    while not session.finished:
        assert session.stop.line is not None
        found.append((session.stop.function, session.stop.line - function.python.__code__.co_firstlineno))
        session.step()
    return found


TWO = np.float64(2.0)


@pytest.mark.parametrize(
    ("function", "arguments", "forward", "backward"),
    [
        (recursive, (TWO, 1), [("recursive_forward", 2), ("recursive_forward", 4)], [("recursive_backward", 4)]),
        (looped, (TWO,), [("looped_gradient", 5), ("looped_gradient", 6)], [("looped_gradient", 5)]),
        (chosen, (TWO,), [("chosen_gradient", 5), ("scaled_forward", 3)], [("scaled_backward", 3)]),
        (area, (TWO,), [("area_gradient", 2), ("area_gradient", 7)], [("area_gradient", 3), ("area_gradient", 2)]),
        (ruled, (TWO,), [("ruled_gradient", 2), ("ruled_gradient", 3)], [("ruled_gradient", 2), ("clipped_rule", -3)]),
    ],
    ids=lambda x: getattr(x, "__name__", None),
)
def test_lines_of_the_program(function: Any, arguments: Any, forward: Any, backward: Any) -> None:
    found = iter(steps(function, *arguments))
    for wanted in (*forward, *backward):
        assert wanted in found, f"{wanted} does not come"  # and what is wanted next comes later
