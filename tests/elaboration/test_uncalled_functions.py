"""Functions that a branch or loop chooses and that nothing calls: they have no types, whatever their bodies need."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import relay as rl
from relay import relay

CHOICES = {
    "an operator or a function": "h = relay.sin if k > 2 else (lambda q: q * 0.5)",
    "functions of other ranks": "h = (lambda q: q * 2.0) if k > 2 else (lambda q: q[0].sum() * 0.5)",
    "several parameters": "h = relay.add if k > 2 else (lambda p, q: p @ q)",
    "a loop": "h = relay.sin\n    for i in range(k):\n        h = lambda q: q * 0.5",
    "in a tuple": "h = (relay.sin, lambda q: q[1] * 0.5) if k > 2 else (relay.cos, lambda q: q * 0.5)\n    x = h[0](x)",
    "a derivative": "h = relay.grad(relay.sin) if k > 2 else (lambda q: q * 0.5)",
    "in a reference": "h = relay.ref(relay.sin if k > 2 else (lambda q: q * 0.5))",
    "in a function": "h = relay.sin if k > 2 else (lambda q: q * 0.5)\n    g = lambda v: h(v)",
    "where no call comes": "h = relay.sin if k > 2 else (lambda q: q * 0.5)\n    if x.ndim > 3:\n        x = h(x)",
}


@pytest.mark.parametrize("choice", CHOICES)
def test_a_chosen_function_that_nothing_calls(choice: str) -> None:
    function: Any = rl.from_source(f"def f(x, k):\n    {CHOICES[choice]}\n    return x * 2.0", {"relay": relay})
    x, k = np.float64(0.5), np.int32(3)
    expected = 2 * np.sin(0.5) if choice == "in a tuple" else 1.0
    np.testing.assert_allclose(float(function.interpret(x, k)), expected, rtol=1e-15)
    function.core(x, k)
    slope = 2 * np.cos(0.5) if choice == "in a tuple" else 2.0
    np.testing.assert_allclose(float(rl.grad(function, wrt="x").interpret(x, k)), slope, rtol=1e-15)


def test_compiled_programs_with_functions_that_nothing_calls() -> None:
    lines = []
    for number, text in enumerate(CHOICES.values()):
        own = re.sub(r"\bh\b", f"h{number}", text)
        lines.append(f"    {own}".replace(f"x = h{number}[0](x)", f"x = x + 0.0 * h{number}[0](x)"))
    function: Any = rl.from_source("\n".join(["def f(x, k):", *lines, "    return x * 2.0"]), {"relay": relay})
    assert float(function(np.float64(0.5), np.int32(3))) == 1.0
