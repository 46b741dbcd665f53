"""Number formats: rounding as in other implementations, and precisions that keep a bound."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest

import relay
from relay.api.numbers import E4M3, E5M2, NumberFormat, choose_precision, fixed_point, with_products_in
from relay.errors import TypeMismatch

RANDOM = np.random.default_rng(0)
WEIGHTS = RANDOM.normal(size=(8, 8)).astype(np.float32)
X = RANDOM.normal(size=(4, 8)).astype(np.float32)


@relay.relay
def network(x):  # type: ignore[no-untyped-def]
    return relay.tanh(x @ WEIGHTS) @ WEIGHTS


@pytest.mark.parametrize(("format_", "dtype"), [(E4M3, ml_dtypes.float8_e4m3fn), (E5M2, ml_dtypes.float8_e5m2)])
def test_float8_rounds_as_elsewhere(format_: NumberFormat, dtype: type) -> None:
    """Numbers of all magnitudes, those in the middle between two values, and what is too large."""
    middles = (format_.values[:-1] + format_.values[1:]) / 2
    x = np.concatenate([RANDOM.normal(size=500) * 10.0 ** RANDOM.uniform(-6, 5, 500), middles, [np.inf]])
    x = x.astype(np.float32)
    limit = np.float32(format_.largest)
    expected = np.clip(x, -limit, limit).astype(dtype).astype(np.float32)
    np.testing.assert_array_equal(format_.round.interpret(x), expected)
    np.testing.assert_array_equal(format_.decode(format_.encode(x)), expected)
    assert np.isnan(format_.round.interpret(np.float32([np.nan]))).all()


def test_formats_of_ones_own() -> None:
    fixed = fixed_point(8, 4)
    assert fixed.largest == 127 / 16 and list(fixed.encode([1.0, -0.5, 100])) == [16, 248, 127]

    def encode(value: float) -> int:
        return int(value * 16) % 256

    again = NumberFormat("fixed", 8, lambda code: (code - 256 if code > 127 else code) / 16, encode)
    np.testing.assert_array_equal(again.values, fixed.values)
    assert again.encode([2.0]).dtype == np.uint8
    slope = relay.grad(relay.relay(lambda x: (fixed(x) * x).sum())).interpret(np.array([0.3, 2.0]))
    np.testing.assert_allclose(slope, [0.3125 + 0.3, 4.0])
    for bits, decode, message in (
        (17, float, "1 to 16 bits"),
        (1, lambda code: math.nan, "0 finite values"),
    ):
        with pytest.raises(ValueError, match=message):
            NumberFormat("wrong", bits, decode)
    with pytest.raises(ValueError, match=r"decode\(1\) is 1.0, and encode\(1.0\) is 0"):
        NumberFormat("wrong", 2, float, lambda value: 0)
    with pytest.raises(ValueError, match="no code for NaN"):
        fixed.encode([math.nan])


def test_products_in_a_format() -> None:
    exact = np.asarray(network.interpret(X))
    found = with_products_in(E4M3, network, X)
    value = np.asarray(found.interpret(X))
    assert 0 < np.abs(value - exact).max() < 0.1 * np.abs(exact).max()
    np.testing.assert_allclose(found(X), value, rtol=1e-5, atol=1e-5)
    slope = relay.grad(relay.relay(lambda x: found(x).sum())).interpret(X)
    wanted = relay.grad(relay.relay(lambda x: network(x).sum())).interpret(X)
    assert np.abs(np.asarray(slope) - np.asarray(wanted)).max() < 0.2 * np.abs(np.asarray(wanted)).max()
    with pytest.raises(TypeMismatch, match="in a number format"):
        with_products_in("float16", network, X)


def test_precisions_keep_the_bound() -> None:
    loose, tight = (choose_precision(network, [[X]], error=error) for error in (0.05, 1e-4))
    assert loose.error <= 0.05 and tight.error <= 1e-4 and loose.bits < tight.bits <= 32
    assert [b.operator for b in loose.bindings] == ["matmul", "tanh", "matmul"]
    assert "bits on average" in str(loose)
    exact = np.asarray(network.interpret(X))
    difference = np.asarray(loose.function.interpret(X)) - exact
    assert np.sqrt(np.mean(difference**2) / np.mean(exact**2)) == pytest.approx(loose.error, rel=1e-3)
    for samples, error in (([], 0.1), ([[X]], 0.0)):
        with pytest.raises(ValueError, match="on samples of the arguments, and for an error above 0"):
            choose_precision(network, samples, error=error)


@relay.relay
def average(x, w):  # type: ignore[no-untyped-def]
    weighted = x * w
    shifted = weighted + 1.0
    total = shifted.sum(axis=1)
    return total / 2000.0


ROWS = RANDOM.uniform(50, 100, size=(4, 2000)).astype(np.float32)
FACTORS = RANDOM.uniform(0.5, 1, size=2000).astype(np.float32)


def test_a_sum_that_needs_float32() -> None:
    """It is beyond what float16 holds; what it adds up is computed there."""
    found = relay.transform.choose_precision(average, [[ROWS, FACTORS]], error=1e-3, formats=["float16", "float32"])
    assert [b.precision for b in found.bindings] == ["float16", "float16", "float32", "float32"]
    assert (found.bits_before, round(found.bits)) == (32, 16)
    core = found.function.core(ROWS, FACTORS)
    computed = {b.value.operator: str(b.targets[0].type) for b in core.main.body.bindings if b.value.operator != "cast"}
    assert computed["multiply"].startswith("Tensor[float32") and computed["add"].startswith("Tensor[float16")
    exact = average(ROWS.astype(np.float64), FACTORS.astype(np.float64))
    np.testing.assert_allclose(found.function(ROWS, FACTORS), exact, rtol=1e-3)
    np.testing.assert_allclose(found.function.interpret(ROWS, FACTORS), exact, rtol=1e-3)


def test_more_precision_than_the_program_has() -> None:
    """A bound below the error of float32 needs float64; without it, nothing keeps the bound."""
    found = choose_precision(average, [[ROWS, FACTORS]], error=1e-9)
    assert found.error <= 1e-9 and "float64" in {b.precision for b in found.bindings}
    with pytest.raises(
        ValueError, match=r"no precision of float16 keeps an error of 1.0e-09: as it is written, .* has"
    ):
        choose_precision(average, [[ROWS, FACTORS]], error=1e-9, formats=["float16"])


@relay.relay
def repeated(x):  # type: ignore[no-untyped-def]
    state = x * 0.0
    for _ in range(10):
        step = relay.tanh(x) * state
        state = (state + step if step.sum() > 1.0 else state + x * 0.1).T.T
    return state


@pytest.mark.parametrize(("dtype", "error"), [(np.float32, 1e-2), (np.float64, 1e-5)])
def test_in_loops_and_branches(dtype: type, error: float) -> None:
    x = ROWS[:, :5].astype(dtype) / 100
    found = choose_precision(repeated, [[x]], error=error, formats=["bfloat16", "float16", "float32"])
    assert found.bits < found.bits_before == np.dtype(dtype).itemsize * 8
    for value in (found.function(x), found.function.interpret(x)):
        assert np.asarray(value).dtype == dtype
        np.testing.assert_allclose(value, repeated(x), rtol=4 * error)
