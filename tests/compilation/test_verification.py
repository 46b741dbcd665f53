"""RELAY_VERIFY=1: machine code that gives other numbers than the references is not used."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np
import pytest

import relay
from relay import RelayFunction, Tensor
from relay.codegen.kernels import kernels
from relay.codegen.lowering import module_builder
from relay.compilation import verification
from relay.errors import InternalError, MachineCodeError
from relay.ir.expr import Module, OpCall
from relay.operator import Operator, lookup
from relay.typecheck.relations import same_shape

STRAIGHT = """
def f(x, w):
    h = relay.exp(x) @ w
    return relay.tanh(h) + 1.0, relay.argmax(x), h.sum()
"""
LOOP = """
def f(x, w):
    total = relay.zeros((3,), dtype=relay.Float64)
    for row in x:
        total += relay.tanh(relay.exp(row) @ w) * 0.37
    return total
"""


@pytest.fixture(autouse=True)
def verifying(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RELAY_VERIFY", "1")
    monkeypatch.setattr(verification, "_tried", set())


@pytest.fixture
def wrong_tanh(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compiled, tanh is the sine."""
    monkeypatch.setattr(kernels, "lookup", lambda name: lookup("sin" if name == "tanh" else name))
    monkeypatch.setattr(kernels, "_made", {})


def function_of(text: str, **options: Any) -> RelayFunction:
    made = relay.from_source(text, {"relay": relay}, "model.py")
    made = made["f"] if isinstance(made, dict) else made
    assert isinstance(made, RelayFunction)
    return RelayFunction(made.__relay__, attrs.evolve(made._options, **options))


@pytest.mark.parametrize(("text", "line"), [(STRAIGHT, "model.py:4"), (LOOP, "model.py:5")])
def test_a_wrong_kernel_is_an_error(text: str, line: str, wrong_tanh: None) -> None:
    with pytest.raises(MachineCodeError) as caught:
        function_of(text)(np.ones((4, 5)), np.ones((5, 3)))
    assert isinstance(caught.value, InternalError)
    message = str(caught.value)
    assert "tanh" in message and line in message and "found [" in message and "expected [" in message
    assert "float64" in message and "please report it" in message and "help" in message


def test_sizes_are_named(wrong_tanh: None) -> None:
    symbolic = function_of("def f(x):\n    return relay.tanh(x) * 2.0\n", dynamic=True)
    with pytest.raises(MachineCodeError, match=r"for x_0 = \d+: found"):
        symbolic(np.ones(4))


def test_only_where_it_is_asked_for(wrong_tanh: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RELAY_VERIFY", "0")
    found = function_of("def f(x):\n    return relay.tanh(x)\n")(np.full(3, 0.5))
    np.testing.assert_allclose(found, np.sin(np.full(3, 0.5)))


def test_kernels_are_tried_once(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[object] = []
    original = module_builder.assemble
    monkeypatch.setattr(module_builder, "assemble", lambda *given: tried.append(given) or original(*given))
    arguments = np.ones((4, 5)), np.ones((5, 3))
    function_of(LOOP)(*arguments)
    first = len(tried)
    function_of(LOOP.replace("total = relay", "unused = 1\n    total = relay"))(*arguments)
    assert (first, len(tried)) == (3, 4)  # the program, its kernels, and those that demand something of indices


@pytest.mark.parametrize(
    "result",
    [
        "relay.floor(relay.sum(relay.full((1000,), 0.1)) * x)",  # 100, or a little less
        "relay.argmax(relay.softmax(x * 0.0))",
        "relay.sum(x) - relay.sum(relay.flip(x)) > 0",
        "relay.exp(relay.exp(relay.exp(x * 9.0)))",  # infinite
        "relay.sin(relay.sum(x * 1e4))",
        "x[relay.argmin(x)] / relay.maximum(relay.abs(relay.sum(x)), 1e-3)",
        "relay.sort(x)[relay.cast(relay.sum(x) * 0.0, relay.Int32)]",
    ],
)
@pytest.mark.parametrize("dtype", ["float64", "float32", "float16"])
def test_roundings_are_no_mistakes(result: str, dtype: str) -> None:
    function_of(f"def f(x):\n    return {result}\n")(np.linspace(-1, 1, 1000).astype(dtype))


class _OneAfterAnother:
    """An operator whose reference adds the elements of a vector one after another."""

    def __init__(self, operator: Operator) -> None:
        self._operator = operator

    def __getattr__(self, name: str) -> Any:
        return getattr(self._operator, name)

    def evaluate(self, operands: Any, attributes: Any) -> Any:
        return np.cumsum(operands[0], dtype=operands[0].dtype)[-1]


@pytest.mark.parametrize("terms", ["relay.where(x > 0.0, 0.1, 0.3)", "relay.where(x > 0.0, 1.3, -0.7)", "x * 0.1"])
def test_the_order_in_which_many_numbers_are_added_is_no_mistake(terms: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where all of them are the same few numbers, each addition may be rounded the same way."""
    changed = lambda name: _OneAfterAnother(lookup(name)) if name == "sum" else lookup(name)  # noqa: E731
    monkeypatch.setattr(verification, "lookup", changed)
    function_of(f"def f(x):\n    return relay.sum({terms})\n").compile(Tensor[relay.Float32, (60_000,)])


def test_a_sum_that_leaves_out_a_part_is_a_mistake(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_OneAfterAnother, "evaluate", lambda self, operands, _: np.sum(operands[0][:58_000]))
    monkeypatch.setattr(verification, "lookup", lambda n: _OneAfterAnother(lookup(n)) if n == "sum" else lookup(n))
    for terms in ("relay.where(x > 0.0, 0.1, 0.3)", "x * 0.1"):
        with pytest.raises(MachineCodeError):
            function_of(f"def f(x):\n    return relay.sum({terms})\n").compile(Tensor[relay.Float32, (60_000,)])


READING = {
    "a row": "for i in range(n):\n        total += x[i].sum()",
    "several rows": "for i in range(n):\n        total += relay.take(x, np.array([i, 1]) % 3, axis=0).sum()",
    "an update": "for i in range(n):\n        x[i] = x[i] * 2.0\n    total += x.sum()",
    "a quotient": "k = 1\n    for i in range(n):\n        k += (i * 7) // (i + k)\n    total += k",
}


@pytest.mark.parametrize("name", READING)
def test_kernels_that_demand_something_of_integers_are_tried(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """At indices of short axes, and with divisors that are not 0."""
    tried: list[set[int] | None] = []
    attempt = verification._attempt

    def noted(module: Module, *rest: Any) -> set[int] | None:
        found = attempt(module, *rest)
        calls = [b.value for b in module.main.body.bindings if isinstance(b.value, OpCall)]
        if any(lookup(call.operator).requirements for call in calls):
            tried.append(found)
        return found

    monkeypatch.setattr(verification, "_attempt", noted)
    text = f"def f(x, n):\n    total = 0.0\n    {READING[name]}\n    return total\n"
    function = relay.from_source(text, {"relay": relay, "np": np})
    x, n = np.arange(6.0).reshape(3, 2), np.int32(3)
    np.testing.assert_allclose(function(x, n), function.interpret(x, n))
    assert set() in tried


def test_a_kernel_that_reads_another_row_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    first = attrs.evolve(lookup("index"), compute=lambda x, index: lookup("index").compute(x, index * 0))
    monkeypatch.setattr(kernels, "lookup", lambda name: first if name == "index" else lookup(name))
    monkeypatch.setattr(kernels, "_made", {})
    text = f"def f(x, n):\n    total = 0.0\n    {READING['a row']}\n    return total\n"
    with pytest.raises(MachineCodeError, match="index"):
        relay.from_source(text, {"relay": relay, "np": np})(np.arange(6.0).reshape(3, 2), np.int32(3))


def test_programs_that_refuse_most_arguments() -> None:
    text = "def f(x, i):\n    assert relay.sum(x) > 1e5\n    return x[i] + relay.take(x, i + 1)\n"
    assert float(function_of(text)(np.full(9, 1e5), np.int32(3))) == 2e5


def test_kernels_for_data_dependent_sizes() -> None:
    """They are parts of functions that take these sizes from others."""
    text = """
def total(values):
    result = 0.0
    while result < 3.0:
        result += relay.sum(values * values) + 1.0
    return result

def f(x, n):
    return total(relay.tanh(x[:n])) + total(relay.arange(n) * 0.5)
"""
    function = function_of(text, opt_level=0)
    x = np.linspace(-1, 1, 7)
    for n in (0, 1, 5):
        np.testing.assert_allclose(function(x, np.int32(n)), function.interpret(x, np.int32(n)))


@pytest.mark.parametrize("rounds", [1, 3])
def test_python_functions_are_called_by_the_run_alone(rounds: int) -> None:
    seen: list[float] = []

    @relay.pure_callback(relation=relay.Relation("T:float -> T", same_shape), name=f"test_verification_seen{rounds}")
    def noticed(x: Tensor) -> Tensor:
        """x, and it is seen. x: (T float, s) -> (T, s)."""
        seen.append(float(x))
        return x

    @relay.relay
    def repeated(x):  # type: ignore[no-untyped-def]
        for _ in range(rounds):
            x = relay.exp(noticed(x * 0.5)) * 0.1
        return x

    repeated(np.float64(0.5))
    assert len(seen) == rounds and seen[0] == 0.25
