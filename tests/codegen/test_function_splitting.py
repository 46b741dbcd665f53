"""Long functions are cut into parts, which changes nothing but the time that compiling takes."""

from __future__ import annotations

import numpy as np
import pytest
from agreement import assert_modes_agree
from matrix import sample
from zoo import programs

import relay
from relay.api.function import RelayFunction
from relay.codegen.lowering import function_splitting
from relay.codegen.lowering.module_builder import text

ALL = {p.name: p for p in programs()}


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(function_splitting, "LONGEST", 3)
    monkeypatch.setattr(function_splitting, "SHORTEST", 2)
    monkeypatch.setenv("RELAY_CACHE_SIZE", "0")


def chain(count: int) -> RelayFunction:
    weights = np.linspace(0.5, 1.5, 12, dtype=np.float32).reshape(3, 4)
    lines = [("h = relay.cumsum(h * weights, axis=1)", "h = relay.softmax(h) + b")[n % 2] for n in range(count)]
    body = "\n".join(f"    {line}" for line in lines)
    source = f"def chain(x, b):\n    h = x\n{body}\n    return h, relay.sum(h)\n"
    made = relay.from_source(source, {"relay": relay, "weights": weights})
    assert isinstance(made, RelayFunction)
    return made


def test_a_chain_in_parts() -> None:
    """With constants, a number that is passed by value, results and temporary buffers."""
    f, x = chain(20), np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)
    assert "_part5" in text(f.core(x, 0.5), 1)
    for found, expected in zip(f(x, 0.5), f.interpret(x, 0.5), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_a_chain_in_parts_for_all_sizes() -> None:
    @relay.relay(dynamic=True)
    def f(x):
        return relay.tanh(relay.cumsum(relay.tanh(relay.cumsum(relay.softmax(x))) * 2.0))

    for size in (3, 5, 100):
        x = np.linspace(-1, 1, size, dtype=np.float32)
        np.testing.assert_allclose(f(x), f.interpret(x), rtol=1e-5)


@pytest.mark.parametrize("name", sample(ALL, 6))
def test_the_zoo_in_parts(name: str) -> None:
    program = ALL[name]
    program.function.reload()  # what was compiled before has no parts
    assert_modes_agree(program.function, *program.arguments, rtol=1e-10, atol=1e-12)
