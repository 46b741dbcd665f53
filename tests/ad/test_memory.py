"""`grad(f, memory=..)`: what is taped is counted in bytes, and the gradients are the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from agreement import assert_close, assert_modes_agree

import relay
from relay import Float64, Int32, Tensor
from relay.ad.checkpointing.loops import tape_bytes
from relay.errors import DifferentiationError, TypeCheckError
from relay.ir.expr import OpCall
from relay.ir.traverse import walk
from relay.ir.validation.check import check

X = np.array([0.5, -1.0, 2.0])
STATE = X.nbytes


@relay
def steps(x, w):
    for i in range(100):
        x = relay.sin(relay.exp(relay.tanh(x * w)) + w * float(i))
    return relay.sum(x)


@relay
def uneven(x, w):
    for i in range(23):
        x = relay.sin(x * w) if i % 3 == 1 else x * x * 0.25 + w
    return relay.sum(x)


@relay
def nested(x, w):
    y = x
    for i in range(12):
        for _ in range(11):
            x = relay.tanh(x * w + y)
        y = y + x * float(i)
    return relay.sum(x * y)


@relay
def of_run_time(x, w, n):
    for i in range(n):
        x = relay.sin(x * w + float(i))
    return relay.sum(x)


@relay
def with_effects(x, w):
    r = relay.ref(x)
    for _ in range(10):
        r.value = relay.sin(r.value * w)
    for i in range(10):
        if i == 9:
            print("last")
        x = relay.sin(x * w)
    return relay.sum(r.value * x)


@relay
def two_hundred_rounds(x, w):
    for i in range(200):
        x = relay.tanh(x * w + float(i))
    return x


@relay
def recursive(x, w, n: Tensor[Int32, ()]) -> Tensor[Float64, (3,)]:
    if n == 0:
        return x
    for i in range(200):
        x = relay.tanh(x * w + float(i))
    return recursive(x, w, n - 1) * 1.1


@relay
def of_calls(x, w):
    y = two_hundred_rounds(x, w) * two_hundred_rounds(x * 0.5, w)
    return relay.sum(y * recursive(x, w, 3))


@relay
def of_closures(x, w):
    f = two_hundred_rounds if x[0] > 0.0 else (lambda v, w: recursive(v * v, w, 2))

    def step(v):
        return relay.sin(v * w)

    for _ in range(200):
        x = step(x)
    return relay.sum(f(x, w))


def taped(function: Any, *arguments: Any) -> float:
    core = function.core(*arguments)
    check(core, "structured")
    return tape_bytes(core.functions.values())


@pytest.mark.parametrize("memory", ["recompute", 10**6, 2000, 1300])
def test_the_gradient_is_the_same(memory: Any) -> None:
    derivative = relay.grad(steps, memory=memory)
    assert_modes_agree(derivative, X, X, expected=relay.grad(steps)(X, X))
    if isinstance(memory, int):
        assert taped(derivative, X, X) <= memory


def test_a_loop_of_n_rounds_tapes_about_the_square_root() -> None:
    stored = taped(relay.grad(steps), X, X)
    assert stored >= 100 * 3 * STATE
    assert taped(relay.grad(steps, memory="recompute"), X, X) <= 0.15 * stored  # 10 states and 10 rounds of 100


@pytest.mark.parametrize("function", [uneven, nested, with_effects, of_calls, of_closures], ids=lambda f: f.__name__)
def test_rests_nests_and_effects(function: Any, capsys: pytest.CaptureFixture[str]) -> None:
    expected = relay.grad(function)(X, X)
    capsys.readouterr()
    assert_close(relay.grad(function, memory="recompute")(X, X), expected)
    assert capsys.readouterr().out == ("last\n" if function is with_effects else "")


def test_nested_loops_keep_few_states_of_both() -> None:
    assert taped(relay.grad(nested, memory="recompute"), X, X) < 0.3 * taped(relay.grad(nested), X, X)


@pytest.mark.parametrize("function", [of_calls, of_closures], ids=lambda f: f.__name__)
def test_loops_of_called_functions_are_divided_too(function: Any) -> None:
    assert taped(relay.grad(function, memory="recompute"), X, X) < 0.2 * taped(relay.grad(function), X, X)
    with pytest.raises(DifferentiationError, match="need at least"):
        relay.grad(function, memory=100)(X, X)


def test_a_function_is_divided_for_one_derivative_only() -> None:
    @relay
    def both(x, w):
        few = relay.grad(of_calls, wrt=0, memory="recompute")(x, w)
        return few, relay.grad(of_calls, wrt=0)(x, w)

    few, all_ = both(X, X)
    assert_close((few,), (all_,))
    assert taped(both, X, X) >= taped(relay.grad(of_calls, wrt=0), X, X)


@pytest.mark.parametrize(("rounds", "most"), [(100, 35), (400, 70), (1600, 140)])
def test_memory_grows_with_the_square_root(rounds: int, most: int) -> None:
    run = relay.from_source(
        f"def run(x, w):\n    for _ in range({rounds}):\n        x = relay.sin(x * w)\n    return relay.sum(x)",
        {"relay": relay},
    )
    assert taped(relay.grad(run), X, X) == 2 * rounds * STATE
    assert taped(relay.grad(run, memory="recompute"), X, X) <= most * STATE


def test_compiled_code_needs_workspace_for_the_square_root_of_the_states() -> None:
    """Of n rounds: sqrt(n) states at their beginnings, and two tensors for each round of a segment."""
    x = np.full(1000, 0.5)
    found = {}
    for rounds in (100, 400, 1600):
        text = f"def run(x, w):\n    for _ in range({rounds}):\n        x = relay.sin(x * w)\n    return relay.sum(x)"
        run = relay.from_source(text, {"relay": relay})
        found[rounds] = relay.grad(run, memory="recompute").compile(x, x).workspace / x.nbytes
        assert found[rounds] <= 3 * rounds**0.5 + 12
    within = relay.grad(run, memory=int(150 * x.nbytes)).compile(x, x).workspace / x.nbytes
    assert within <= 150 + 12
    assert found[1600] <= 2.1 * found[400]


@pytest.mark.parametrize("n", [0, 1, 2, 9, 50])
def test_a_run_time_number_of_rounds(n: int) -> None:
    derivative = relay.grad(of_run_time, wrt=(0, 1), memory="recompute")
    assert_close(derivative(X, X, n), relay.grad(of_run_time, wrt=(0, 1))(X, X, n))


def test_the_second_derivative_through_divided_loops() -> None:
    second = relay.jacobian(relay.grad(uneven, wrt=0, memory="recompute"), wrt=1)
    assert_close(second(X, X), relay.jacobian(relay.grad(uneven, wrt=0), wrt=1)(X, X), 1e-8)


def test_inside_of_a_program() -> None:
    @relay
    def size(x, w):
        return relay.sum(relay.grad(uneven, wrt=0, memory="recompute")(x, w) ** 2)

    assert relay.check_gradient(size, X * 0.1, X) < 1e-5  # differences of a function with large third derivatives


def test_too_few_bytes_are_refused() -> None:
    with pytest.raises(DifferentiationError, match=r"need at least \d+ bytes, but memory=100"):
        relay.grad(steps, memory=100)(X, X)
    with pytest.raises(DifferentiationError, match="an amount that is known only at run time"):
        relay.grad(of_run_time, wrt=0, memory=10**9)(X, X, 5)


def test_other_values_are_refused() -> None:
    with pytest.raises(TypeCheckError, match="found 'less'"):
        relay.grad(steps, memory="less")


def test_the_option_is_in_the_text() -> None:
    typed = relay.grad(steps, memory=4096).typed(X, X)
    assert "memory=4096" in relay.to_text(typed)
    assert relay.to_text(relay.parse(relay.to_text(typed))) == relay.to_text(typed)


LAYERS = "".join(f"    x = x + relay.tanh(x @ ws[{i}])\n" for i in range(24))
network = relay.from_source(f"def network(x, ws):\n{LAYERS}    return (x * x).sum()\n", {"relay": relay})


def test_layers_without_loops_are_computed_again() -> None:
    """The gradients are the same to the last bit, and the memory is about what was asked for."""
    random = np.random.default_rng(0)
    x, ws = random.normal(size=(64, 32)), list(random.normal(size=(24, 32, 32)) / 8)
    whole = relay.grad(network, wrt="ws")
    bound = int(0.3 * whole.compile(x, ws).workspace)
    parts = relay.grad(network, wrt="ws", memory=bound)
    compiled = parts.compile(x, ws)
    assert compiled.workspace <= bound + 5 * x.nbytes  # of the layer that is differentiated
    for mine, other in zip(compiled(x, ws), whole(x, ws), strict=True):
        np.testing.assert_array_equal(mine, other)
    core = parts.core(x, ws)
    check(core, "structured")
    tanhs = [b for b in walk(core.main.body) if isinstance(b.value, OpCall) and b.value.operator == "tanh"]
    assert 24 < len(tanhs) < 48
    with pytest.raises(DifferentiationError, match=r"keeps need at least \d+ bytes, but memory=1000"):
        relay.grad(network, wrt="ws", memory=1000).core(x, ws)


@relay
def with_effects_between(x, w):
    r = relay.ref(x)
    for_each = []
    for_each.append(relay.sin(x * w))
    y = relay.sin(relay.exp(relay.tanh(x * w)))
    r.value = y
    assert y[0] < 2.0, "large"
    y = relay.sin(relay.exp(relay.tanh(y * w)))
    z = y * r.value if y[0] > 0.0 else y
    y = relay.sin(relay.exp(relay.tanh(z * w)))
    return relay.sum(relay.sin(relay.exp(relay.tanh(y * for_each[0]))))


@pytest.mark.parametrize("memory", [300, 200, 160])
def test_parts_around_effects(memory: int) -> None:
    derivative = relay.grad(with_effects_between, memory=memory)
    assert_close(derivative.interpret(X, X), relay.grad(with_effects_between).interpret(X, X))
