"""Operators over axes without elements: `softmax` gives nothing, and `logsumexp` the logarithm of a sum of nothing."""

from __future__ import annotations

import math

import numpy as np
import pytest
from agreement import modes

import relay as R

SHAPES = ((0,), (2, 0), (0, 3), (2, 0, 3), (0, 0))


@pytest.mark.usefixtures("low_effort")
@pytest.mark.parametrize("axis", [0, -1])
@pytest.mark.parametrize("name", ["softmax", "log_softmax", "logsumexp"])
def test_values_and_derivatives(name: str, axis: int) -> None:
    text = f"def f(x):\n    return relay.{name}(x, axis={axis})\n"
    f = R.from_source(text, {"relay": R})
    g = R.from_source(text.replace(f"axis={axis})", f"axis={axis}).sum()"), {"relay": R})
    for shape in SHAPES:
        x = np.zeros(shape)
        expected = x if name != "logsumexp" else x.sum(axis=axis) - math.inf
        for run in modes(f):
            found = np.asarray(run(x))
            assert found.shape == expected.shape and np.array_equal(found, expected), shape
        for run in modes(R.grad(g)):
            assert np.asarray(run(x)).shape == shape
    assert np.asarray(R.vmap(f)(np.zeros((3, 0)))).shape == ((3, 0) if name != "logsumexp" else (3,))


def test_a_selection_may_be_empty() -> None:
    @R.relay
    def f(x):
        chosen = x[x > 1.0]
        return R.logsumexp(chosen), R.softmax(chosen).sum()

    @R.relay
    def total(x):
        return R.softmax(x[x > 1.0]).sum() + x.sum()

    for run in modes(f):
        assert [float(part) for part in run(np.zeros(3))] == [-math.inf, 0.0]
        np.testing.assert_allclose([float(part) for part in run(np.full(4, 2.0))], [2.0 + math.log(4.0), 1.0])
    for run in modes(R.grad(total)):
        np.testing.assert_array_equal(run(np.zeros(3)), np.ones(3))


def test_one_program_serves_sizes_above_one_and_another_nothing() -> None:
    @R.relay(dynamic=True)
    def f(x):
        return R.logsumexp(x, axis=1)

    for shape in ((2, 3), (4, 5), (2, 0), (0, 3), (3, 1)):
        for run in modes(f):
            expected = np.log(np.sum(np.ones(shape), axis=1)) if shape[1] else np.full(shape[0], -math.inf)
            np.testing.assert_allclose(run(np.zeros(shape)), expected)
