"""`@relay(precision=..)` and loss scaling."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import relay
from relay import amp

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(6, 40)).astype(np.float32)
W = RANDOM.normal(size=(40, 5)).astype(np.float32)


def product(x, w):  # type: ignore[no-untyped-def]
    return x @ w


def network(x, w):  # type: ignore[no-untyped-def]
    h = x
    for _ in range(2):
        h = relay.relu(h @ w) @ w.T
        h = h / relay.sqrt((h * h).mean())
    return relay.softmax(h).max()


@pytest.mark.parametrize(("precision", "u"), [("float16", 2.0**-11), ("bfloat16", 2.0**-8)])
def test_products_are_within_their_bound(precision: str, u: float) -> None:
    half = relay.relay(precision=precision)(product)
    found = half.interpret(X, W)
    exact = X.astype(np.float64) @ W.astype(np.float64)
    bound = 2 * u * (np.abs(X) @ np.abs(W)) + u * np.abs(exact)
    assert found.dtype == np.float32
    error = np.abs(found - exact)
    assert (error <= bound).all()
    assert error.max() > 1e-5  # it is not computed in float32
    np.testing.assert_array_equal(half(X, W), found)


@pytest.mark.usefixtures("low_effort")
def test_native_code_and_the_interpreter_cast_at_the_same_places() -> None:
    half = relay.relay(precision="float16")(network)
    full = relay.relay(network)
    np.testing.assert_allclose(half(X, W), half.interpret(X, W), rtol=1e-6)
    np.testing.assert_allclose(half(X, W), full.interpret(X, W), rtol=0.01)
    slope = relay.grad(half, wrt="w")
    found = slope.interpret(X, W)
    assert found.dtype == np.float32
    np.testing.assert_allclose(slope(X, W), found, atol=2e-3 * np.abs(found).max())
    exact = relay.grad(full, wrt="w").interpret(X, W)
    assert np.abs(found - exact).max() < 0.02 * np.abs(exact).max()


def test_sensitive_operators_stay_in_float32() -> None:
    half = relay.relay(precision="float16")(network)
    lines = relay.to_text(half.lower(X, W).typed).splitlines()
    for operator in ("softmax(", "mean(", "max("):
        assert [line for line in lines if f"= {operator}" in line], operator
        assert all("float32" in line for line in lines if f"= {operator}" in line)
    assert all("Tensor[float16" in line for line in lines if "= matmul(" in line)


def small_loss(w, x):  # type: ignore[no-untyped-def]
    return ((x @ w) * 1e-4).mean() * 1e-4


@pytest.mark.usefixtures("low_effort")
def test_a_scale_keeps_gradients_that_float16_loses() -> None:
    half = relay.relay(precision="float16")(small_loss)
    assert not relay.grad(half, wrt=0).interpret(W, X).any()

    @relay.relay(precision="float16")
    def scaled(scale: Any, w: Any, x: Any) -> Any:
        return amp.value_and_grad(small_loss, scale, w, x)

    _, slope, is_finite, scale = scaled.interpret(amp.static_scale(2.0**15), W, X)
    exact = relay.grad(relay.relay(small_loss), wrt=0).interpret(W, X)
    assert is_finite and scale.scale == 2.0**15
    np.testing.assert_allclose(slope, exact, atol=0.05 * np.abs(exact).max())


def test_a_dynamic_scale_is_halved_by_overflows_and_doubled_by_steps_without() -> None:
    adjusted = relay.relay(lambda scale, is_finite: scale.adjusted(is_finite))
    scale, seen = amp.dynamic_scale(4.0, 2), []
    for is_finite in (False, True, True, True, False, False, False):
        scale = adjusted.interpret(scale, is_finite)
        seen.append(float(scale.scale))
    assert seen == [2, 2, 4, 4, 2, 1, 1]
    finite = amp.all_finite
    assert finite.interpret({"a": X, "b": (W,)})
    assert not finite.interpret({"a": X, "b": (np.float32([1, np.inf]),)})
    assert not finite.interpret((np.float32(np.nan),))


def test_other_precisions_are_refused() -> None:
    with pytest.raises(relay.CompileError, match="there is no precision 'int8'"):
        relay.relay(precision="int8")(product)
