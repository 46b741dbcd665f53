"""`check_gradient` in the types that a program computes in: what is right passes, what is wrong fails, and where
rounding hides which, it says so."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import relay
from relay.errors import DifferentiationError

BODIES = {
    "sum": "relay.sum(x)",
    "square": "relay.sum(x * x)",
    "cube": "relay.sum(x * x * x)",
    "many": "relay.sum(x[0] * MANY + x[1])",
    "many_squares": "relay.mean((x[0] + MANY) ** 2)",
    "mean": "relay.mean(x[2] * MANY + x[1])",
    "product": "relay.prod(x)",
    "exp": "relay.sum(relay.exp(x))",
    "log": "relay.sum(relay.log(x))",
    "root": "relay.sum(relay.sqrt(x))",
    "sine": "relay.sum(relay.sin(3.0 * x))",
    "power": "relay.sum(x ** 3.5)",
    "quotient": "relay.sum(1.0 / x)",
    "tanh": "relay.sum(relay.tanh(x))",
    "norm": "relay.sqrt(relay.sum(x * x))",
    "softmax": "relay.sum(relay.softmax(x) * x)",
    "likelihood": "relay.logsumexp(x) - x[0]",
    "positive": "relay.sum(relay.relu(x - 1.05))",
    "largest": "relay.max(x) + relay.min(x)",
    "unused": "x[0] + 0.0 * x[1]",
    "constant": "relay.sum(x * 0.0) + 3.0",
    "matrix": "relay.sum(relay.matmul(relay.reshape(x, (1, 3)), relay.reshape(x, (3, 1))))",
    "several": "x * x[0] + 1.0",
}
OFFSETS = {
    "offset": "relay.sum(1e4 + x)",
    "offset_square": "relay.sum(1e3 + x * x)",
    "cancelled": "relay.sum((x + 1e3) - 1e3)",
    "scaled": "relay.sum(x * 1e-6)",
    "large": "relay.sum(x * 1e4 * x)",
}
X = np.array([0.9, 1.1, 1.3])
SIZE = 100_000


def wrong(body: str, share: float) -> str:
    """The same value with a gradient that is too small by a share."""
    return f"{1.0 - share} * ({body}) + {share} * relay.stop_gradient({body})"


def program(body: str, dtype: str) -> Any:
    """A function of three numbers of a dtype, which is a part of its type."""
    many = np.linspace(0.5, 1.5, SIZE).astype(dtype)
    source = f"def f(x: relay.Tensor[relay.{dtype.title()}, (3,)]):\n    return {body}\n"
    return relay.from_source(source, {"relay": relay, "MANY": many})


@pytest.mark.parametrize("name", [*BODIES, *OFFSETS])
def test_right_gradients_in_float32(name: str) -> None:
    f = program((BODIES | OFFSETS)[name], "float32")
    assert relay.check_gradient(f, np.float32(X)) < 5e-3


@pytest.mark.parametrize("name", [n for n in BODIES if n != "many"])
def test_right_gradients_in_float16(name: str) -> None:
    f = program(BODIES[name], "float16")
    assert relay.check_gradient(f, np.float16(X)) < 5e-2


@pytest.mark.parametrize("name", [n for n in [*BODIES, *OFFSETS] if n != "constant"])
def test_gradients_that_are_one_percent_wrong_in_float32(name: str) -> None:
    body = wrong((BODIES | OFFSETS)[name], 0.01)
    with pytest.raises(DifferentiationError, match=r"finite differences give .* a relative error of 0.01"):
        relay.check_gradient(program(body, "float32"), np.float32(X))


@pytest.mark.parametrize("name", ["square", "exp", "log", "quotient", "norm", "many_squares"])
def test_gradients_that_are_a_fifth_wrong_in_float16(name: str) -> None:
    body = wrong(BODIES[name], 0.2)
    with pytest.raises(DifferentiationError, match=r"finite differences give .* a relative error of 0.2"):
        relay.check_gradient(program(body, "float16"), np.float16(X))


@pytest.mark.parametrize(
    ("body", "dtype", "reason"),
    [
        ("relay.sum(x + 1e9)", "float32", "does not change the result"),
        ("relay.sum(x + 1e6)", "float32", " ± "),
        ("relay.sum(x + 1e4)", "float16", "change the result| ± "),
        ("relay.sum((x + 3e5) - 3e5)", "float32", " ± "),
    ],
)
def test_what_rounding_hides_is_said(body: str, dtype: str, reason: str) -> None:
    with pytest.raises(
        DifferentiationError, match=rf"cannot tell whether .* x\[0\], 1, is right to .*({reason})"
    ) as caught:
        relay.check_gradient(program(body, dtype), X.astype(dtype))
    assert f"computes in {dtype}" in str(caught.value)


def test_a_step_that_is_given_is_the_only_one() -> None:
    f = program("relay.sum(x + 1e4)", "float32")
    assert relay.check_gradient(f, np.float32(X), step=8.0) < 5e-3
    with pytest.raises(DifferentiationError, match=r"cannot tell"):
        relay.check_gradient(f, np.float32(X), step=0.01)


def test_open_dtypes_are_checked_in_float64() -> None:
    f = relay.from_source("def f(x):\n    return relay.sum(relay.exp(x) + 1e4)\n", {"relay": relay})
    assert relay.check_gradient(f, np.float32(X)) < 1e-6
    assert relay.check_gradient(f, np.float16(X)) < 1e-6


def test_what_is_computed_in_float32_inside_counts() -> None:
    right = "relay.sum(relay.exp(x.astype(relay.Float32)) + 100.0)"
    for body in (right, wrong(right, 0.01)):
        f = relay.from_source(f"def f(x):\n    return {body}\n", {"relay": relay})
        if body == right:
            assert 1e-7 < relay.check_gradient(f, X) < 5e-3
        else:
            with pytest.raises(DifferentiationError, match=r"a relative error of 0.01"):
                relay.check_gradient(f, X)


def test_gradients_that_are_no_numbers_are_wrong() -> None:
    f = relay.from_source("def f(x):\n    return relay.sum(relay.sqrt(x * 0.0) + x)\n", {"relay": relay})
    with pytest.raises(DifferentiationError, match=r"x\[0\] is nan, finite differences give 1"):
        relay.check_gradient(f, X)


def test_steps_beyond_what_a_function_is_defined_for_are_left_out() -> None:
    source = "def f(x: relay.Tensor[relay.Float32, ()]):\n    assert x > 0.99\n    return x * x\n"
    assert relay.check_gradient(relay.from_source(source, {"relay": relay}), np.float32(1.0)) < 5e-3
