"""Where a NaN comes from: forward, backward, the usual causes by name."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import relay
from relay import debug
from relay.debug import causes
from relay.errors import CompileError, ExecutionError, FrontendError
from relay.operator import lookup


@relay
def masked_root(x):
    y = relay.sqrt(x)
    z = relay.where(x > 0.0, y, 0.0)
    return z.sum()


@relay
def norm(x):
    return relay.sqrt((x * x).sum())


@relay
def masked_exponential(x):
    e = relay.exp(x)
    return relay.where(x < 10.0, e, 0.0).sum()


@relay
def entropy(p):
    logs = relay.log(p)
    return -(p * logs).sum()


@relay
def descend(w, x, y, rounds):
    def objective(w):
        p = (x * w).sum(axis=1)
        d = relay.sqrt((p - y) ** 2)
        return d.mean()

    for _ in range(rounds):
        w = w - 0.1 * relay.grad(objective)(w)
    return w


def line_of(function, text):
    source = function.__relay__.function.span.source
    start = function.__relay__.function.span.line
    return next(n for n in range(start, start + 30) if text in source.line(n))


def test_forward_the_first_operation_and_the_way_to_the_result() -> None:
    found = debug.find_nan(entropy, np.array([0.5, 0.0, 0.5]))
    assert found is not None and found.in_result
    assert (found.origin.operator, found.kind, found.position) == ("log", "infinity", (1,))
    assert found.line == line_of(entropy, "relay.log")
    assert [step.name for step in found.chain] == ["logs", "product", "sum_result", "negative"]
    (given,) = found.inputs
    assert (given.name, given.type, given.element) == ("p", "Tensor[float64, (3,)]", 0.0)
    assert found.cause == "log of 0" and "relay.log(x + 1e-12)" in str(found.help)
    text = str(found)
    assert "log in entropy makes the first infinity, at [1] of Tensor[float64, (3,)]" in text
    assert "then product" in text and "there it is 0" in text


@pytest.mark.parametrize(
    ("function", "x", "operator", "backward"),
    [(masked_root, [0.0, 1.0, 4.0], "sqrt", True), (masked_exponential, [1.0, 900.0], "exp", False)],
)
def test_where_over_an_arm_without_a_derivative(function, x, operator, backward) -> None:
    found = debug.find_nan(function, np.array(x))
    assert found is not None and found.in_result and found.origin.is_backward == backward
    assert found.chain[-1].is_backward
    assert found.line == line_of(function, f"relay.{operator}")
    assert "`where`, or a mask, drops its result, but its cotangent of 0 times infinity is NaN" in str(found)
    assert f"relay.where(c, relay.{operator}(relay.where(c, x, 1.0)), y)" in str(found.help)


def test_the_fix_that_is_named_works() -> None:
    @relay
    def fixed(x):
        c = x > 0.0
        return relay.where(c, relay.sqrt(relay.where(c, x, 1.0)), 0.0).sum()

    assert debug.find_nan(fixed, np.array([0.0, 1.0, 4.0])) is None


def test_a_derivative_that_is_infinite() -> None:
    found = debug.find_nan(relay.grad(norm), np.zeros(3))
    assert found is not None and found.cause == "the derivative of sqrt is infinite at 0"
    assert found.help == "relay.sqrt(x + 1e-12)" and found.kind == "infinity"
    assert "in the backward part of norm" in str(found)


def test_in_a_training_loop() -> None:
    found = debug.find_nan(descend, np.zeros(2), np.ones((3, 2)), np.array([1.0, 0.0, 2.0]), 3)
    assert found is not None and found.line == line_of(descend, "relay.sqrt")
    assert found.cause == "the derivative of sqrt is infinite at 0"
    assert found.chain[-1].line == line_of(descend, "w = w -")


def test_arguments_constants_and_what_does_not_reach_the_result() -> None:
    found = debug.find_nan(norm, np.array([np.nan, 1.0]))
    assert found is not None and found.origin.operator == "" and "the argument x has a NaN, at [0]" in str(found)
    found = debug.find_nan(masked_exponential, np.array([1, 900], np.float32))
    assert found is not None

    @relay
    def masked(x):
        return relay.where(x > 0.0, relay.log(x), 0.0) > 1.0

    found = debug.find_nan(masked, np.array([0.0, 1.0]))
    assert found is not None and not found.in_result and "it does not reach the result" in str(found)
    assert debug.find_nan(masked_root, np.ones(3)) is None


def test_another_predicate() -> None:
    found = debug.find_nan(masked_root, np.array([1.0, 100.0]), where=lambda array: array > 5.0)
    assert found is not None and found.origin.operator == "" and found.cause is None
    found = debug.find_nan(masked_root, np.array([1.0, 9.0]), where=lambda array: array == 3.0)
    assert found is not None and found.origin.operator == "sqrt" and found.position == (1,)
    with pytest.raises(FrontendError, match="`where` is a function"):
        debug.find_nan(norm, np.ones(2), where=1.0)  # type: ignore[arg-type]


@relay(check="nan", opt_level=0)
def checked(x, cell):
    cell.value = cell.value + 1.0
    return relay.log(x * cell.value).sum()


def test_compiled_calls_can_be_checked(low_effort: None) -> None:
    cell = relay.ref(np.float64(-1.0))
    with pytest.raises(ExecutionError, match="log in checked makes the first infinity, at \\[0\\]") as caught:
        checked(np.ones(2), cell)
    assert caught.value.span is not None and caught.value.span.line == line_of(checked, "relay.log")
    assert caught.value.help is not None and "note: log of 0" in str(caught.value)
    assert float(checked(np.ones(2), cell)) == 0.0  # the reference goes on
    with pytest.raises(ExecutionError, match="the argument x has a NaN"):
        relay.grad(checked, wrt="x")(np.full(2, np.nan), relay.ref(np.float64(1.0)))
    assert checked.interpret(np.zeros(2), relay.ref(np.float64(1.0))) == -np.inf
    with pytest.raises(CompileError, match="there is no check 'inf'"):
        relay.relay(check="inf")
    with pytest.raises(CompileError, match="cannot donate them"):
        relay.relay(check="nan", donate_argnums=0)


def test_causes_are_of_operators_that_there_are() -> None:
    names = {cause.operator for cause in causes._FORWARD} | causes._SINGULAR.keys() | causes._GROWING
    assert {name for name in names if lookup(name).name != name} == set()


@pytest.mark.parametrize(
    ("function", "x", "cause"),
    [
        (lambda x: relay.arccos(x).sum(), [1.0, 0.0], "the derivative of arccos is infinite at -1 and 1"),
        (lambda x: relay.arccos(x).sum(), [2.0, 0.0], "arccos outside of -1 .. 1"),
        (lambda x: relay.arctan2(x, x).sum(), [1.0, 0.0], "arctan2 has no derivative at 0, 0"),
        (lambda x: (1.0 % x).sum(), [1.0, 0.0], "a remainder of a division by 0"),
        (lambda x: x[x > 5.0].mean(), [1.0, 0.0], "the mean of no elements"),
        (lambda x: (x * x).sum(), [1e200, 0.0], "the result is larger than a float64 can be, 1.8e+308"),
        (lambda x: x.astype("float32").sum(), [1e200, 0.0], "the result is larger than a float32 can be, 3.4e+38"),
        (lambda x: relay.maximum(x, np.nan).sum(), [1.0, 0.0], "a constant of the program is not a finite number: nan"),
        (lambda x: np.linalg.cholesky(-relay.diag(x)).sum(), [1.0, 0.0], "a matrix that is not positive definite"),
    ],
)
def test_further_causes(function: Any, x: list[float], cause: str) -> None:
    found = debug.find_nan(relay(function), np.array(x))
    assert found is not None and found.cause == cause and found.help


def test_a_place_in_the_library_is_where_it_is_called() -> None:
    @relay
    def inverted(x):
        return np.linalg.inv(x).sum()

    found = debug.find_nan(inverted, np.zeros((2, 2)))
    assert found is not None and found.origin.function == "inverted"
    assert found.line == inverted.__relay__.function.span.line + 1  # type: ignore[union-attr]
