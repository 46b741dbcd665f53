"""Gradients of loops that the optimizer knows to run no round, or one, before they are differentiated."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

import relay as rl
from relay import relay

CONDITIONS = {
    "s != s": 0,
    "s < s + 0.0": 0,
    "s - s > 0.5": 0,
    "min(s, 1.0) > max(s, 1.0)": 0,
    "STEPS > 0 and s > 0.1": 0,
    "k < STEPS": 0,
    "k > 0 and s > 0.1": 0,
    "k < 1 and (s if STEPS == 0 else 1.0) > s": 0,
    "k < 1": 1,
    "s == s and k < 1": 1,
}

ROUNDS: dict[str, Callable[[float], tuple[float, float]]] = {
    "s = s * 0.5": lambda s: (s * 0.5, 0.5),
    "s = relay.sin(s) * relay.ones(()) if k < 5 else s": lambda s: (math.sin(s), math.cos(s)),
    "s = relay.diagonal(s * relay.ones((3, 3))) @ relay.ones(3)": lambda s: (3 * s, 3.0),
}

TEXT = """
def f(s):
    k = 0
    while {condition}:
        {round}
        k += 1
        {leaving}
    return s * s
"""


@pytest.mark.parametrize("leaving", ["", "if True: break", "if s != s: break"])
@pytest.mark.parametrize("condition", CONDITIONS)
def test_gradients_of_loops_that_end_at_once(condition: str, leaving: str) -> None:
    for text, of_round in ROUNDS.items():
        written = TEXT.format(condition=condition, round=text, leaving=leaving)
        function = rl.from_source(written, {"relay": relay, "STEPS": 0})
        value, slope = 0.7, 1.0
        if CONDITIONS[condition]:
            value, slope = of_round(value)
        gradient = rl.grad(function, wrt="s")
        np.testing.assert_allclose(float(gradient.interpret(np.float64(0.7))), 2 * value * slope, rtol=1e-12)


def test_compiled_gradients_of_loops_that_end_at_once() -> None:
    @relay
    def several(s, n):
        while n != n:
            s = s * 0.5
        for _ in range(3):
            while s < s:
                s = relay.sin(s)
        if s > 0.0:
            while s - s > 0.5:
                s = s * 3.0
        return s * s

    gradient = rl.grad(several, wrt="s")
    assert float(gradient(np.float64(0.7), 3)) == float(gradient.interpret(np.float64(0.7), 3)) == 1.4
