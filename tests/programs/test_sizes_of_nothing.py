"""Reductions of no elements at data-dependent sizes; lists of arrays of different sizes; contractions on threads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from agreement import assert_modes_agree, assert_modes_raise

import relay
from relay import Any as AnySize
from relay import ExecutionError, Float, Tensor
from relay import relay as decorated


@pytest.mark.parametrize("reduction", ["max", "min", "argmax", "argmin"])
@pytest.mark.parametrize("dtype", [np.float64, np.int32])
def test_nothing_has_no_extremum(reduction: str, dtype: Any) -> None:
    function = relay.from_source(f"def f(x):\n    return x[x > 1].{reduction}()\n", {})
    assert_modes_agree(function, np.array([3, 0, 2], dtype))
    assert_modes_raise(function, np.array([1, 0], dtype), error=ExecutionError, match="at least one element")


@pytest.mark.parametrize(
    "reduction", ["x[x > 1].sum()", "x[x > 1].prod()", "(x[x > 1] > 2).any()", "(x[x > 1] > 2).all()"]
)
def test_nothing_has_a_sum(reduction: str) -> None:
    function = relay.from_source(f"def f(x):\n    return {reduction}\n", {})
    for x in (np.array([1.0, 0.0]), np.array([3.0, 2.0])):
        assert_modes_agree(function, x)
        np.testing.assert_array_equal(function(x), eval(reduction, {"x": x}))


@decorated
def weighted(xs: list[Tensor[Float, (AnySize,)]], w):
    total = 0.0
    for x in xs:
        total = total + (x * w).sum()
    return total


XS = [np.ones(3, np.float32), np.full(5, 2.0, np.float32)]


@pytest.mark.parametrize(
    ("derivative", "expected"), [(relay.grad, 13.0), (relay.value_and_grad, (26.0, 13.0)), (relay.jacobian, 13.0)]
)
def test_derivatives_keep_annotations_of_lists(derivative: Callable[..., Any], expected: Any) -> None:
    function = derivative(weighted, wrt="w")
    np.testing.assert_allclose(assert_modes_agree(function, XS, np.float32(2)), expected)


@decorated
def mixed(m, image):
    return relay.einsum("oihw,ihw->ohw", m[:, :3], image)


@decorated
def mixed_of_rows(m, image):
    rows = (m * 2.0).reshape(3, 4, m.shape[1], m.shape[2])
    return relay.einsum("oihw,ihw->ohw", rows[:, :3], image)


def test_contractions_of_parts_run_on_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RELAY_NUM_THREADS", "2")
    rng = np.random.default_rng(0)
    image = rng.random((3, 16, 16), np.float32)
    for function, shape in ((mixed, (3, 4, 16, 16)), (mixed_of_rows, (12, 16, 16))):
        m = rng.random(shape, np.float32)
        np.testing.assert_allclose(function(m, image), function.interpret(m, image), rtol=1e-5)
