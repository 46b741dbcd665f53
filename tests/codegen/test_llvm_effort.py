"""How much LLVM does for a program: more where code between kernels runs often."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import relay
from relay.codegen.tvm import tir

X = np.ones((3, 4), np.float32)

TEXTS = {
    "def f(x): return relay.tanh(x) @ relay.transpose(x)": False,
    "def g(x):\n    return x * 2.0\n\ndef f(x):\n    return g(g(x))": False,
    "def f(x):\n    for row in x:\n        x = x + relay.sum(row)\n    return x": True,
    "def f(x):\n    return x if relay.sum(x) > 100.0 else f(x * 2.0)": True,
    "def f(x):\n    return x if relay.sum(x) > 100.0 else f(x * 2.0) + 1.0": True,
}


@pytest.mark.parametrize("text", TEXTS)
def test_programs_with_loops_or_recursion_get_more(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[bool] = []
    target = tir.target

    def noted(threads: int, calls: int = 0, repeats: bool = True) -> Any:
        asked.append(repeats)
        return target(threads, calls, repeats)

    monkeypatch.setattr(tir, "target", noted)
    monkeypatch.setenv("RELAY_VERIFY", "0")  # which compiles kernels
    made = relay.from_source(text, {"relay": relay})
    function = made["f"] if isinstance(made, dict) else made
    np.testing.assert_allclose(function(X), function.interpret(X), rtol=1e-5)
    assert asked == [TEXTS[text]]
