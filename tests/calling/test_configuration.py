"""Numbers of Python that configure a program: static where their values are needed, run-time values elsewhere."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
import pytest

import relay as rl
from relay import relay
from relay.errors import RelayWarning, TypeMismatch

pytestmark = pytest.mark.usefixtures("low_effort")

X = np.arange(24.0).reshape(4, 6)


@relay
def parts(x, n, axis, scale):
    return x.reshape(n, -1).sum(axis=axis) * scale


def test_numbers_are_static_where_their_values_are_needed() -> None:
    for n, axis in ((3, 1), (3, 0), (4, 1)):
        for scale in (2, 3, 4):
            expected = X.reshape(n, -1).sum(axis=axis) * scale
            np.testing.assert_allclose(parts(X, n, axis, scale), expected)
            np.testing.assert_allclose(parts.interpret(X, n, axis, scale), expected)
    programs = parts.programs()
    assert [p.specialized for p in programs] == [("n=3", "axis=1"), ("n=3", "axis=0"), ("n=4", "axis=1")]
    assert "scale" in programs[0].signature  # which is a parameter of the run
    assert programs[0].uses == 3
    assert "axis is 0, not 1" in programs[1].reason


def test_numbers_in_arithmetic_stay_values_of_the_run() -> None:
    @relay
    def steps(x, n, offset):
        for i in range(n):
            x = x * 0.5 + i + offset
        return x, n + 1

    for n in range(5):
        expected = X
        for i in range(n):
            expected = expected * 0.5 + i + n
        found, count = steps(X, n, n)
        np.testing.assert_allclose(found, expected)
        assert count == n + 1
    assert len(steps.programs()) == 1


def test_a_value_by_which_the_types_differ_is_static() -> None:
    @relay
    def pooled(x, whole: bool, bias):
        if whole:
            x = x.sum(axis=0)
        return x + bias

    assert pooled(X, True, 1).shape == (6,)
    assert pooled(X, False, 2).shape == (4, 6)
    assert [p.specialized for p in pooled.programs()] == [("whole=True",), ("whole=False",)]

    @relay
    def through(layers, depth, x):
        for i in range(depth):
            x = np.tanh(x @ layers[i])
        return x

    layers = [np.ones((6, 5)), np.ones((5, 2))]
    np.testing.assert_allclose(through(layers, 2, X), np.tanh(np.tanh(X @ layers[0]) @ layers[1]))
    assert through(layers, 1, X).shape == (4, 5)


@dataclass
class Config:
    heads: int
    axis: int
    rate: float
    name: str = "mean"


@relay
def configured(config, x):
    y = x.reshape(config.heads, -1) * config.rate
    return y.mean(axis=config.axis) if config.name == "mean" else y.sum(axis=config.axis)


def test_numbers_in_structures_are_static_one_by_one() -> None:
    np.testing.assert_allclose(configured(Config(2, 0, 0.5), X), X.reshape(2, -1).mean(axis=0) * 0.5)
    np.testing.assert_allclose(configured(Config(2, 0, 0.25), X), X.reshape(2, -1).mean(axis=0) * 0.25)
    np.testing.assert_allclose(configured(Config(3, 1, 1.0, "sum"), X), X.reshape(3, -1).sum(axis=1))
    shown = [p.specialized for p in configured.programs()]
    assert shown[0][:2] == ("config.heads=2", "config.axis=0")
    assert len(shown) == 2  # a float is a value of the run

    @relay
    def shrunk(x, stride, cut):
        return x[:: stride[0], :: stride[1]] * cut

    assert shrunk(X, (2, 3), 1.0).shape == (2, 2)
    assert shrunk(X, (1, 2), 0.5).shape == (4, 3)


def test_derivatives_and_batches_take_them_too() -> None:
    gradient = rl.grad(lambda x, n: (x.reshape(n, -1).sum(axis=0) ** 2).sum(), wrt="x")
    np.testing.assert_allclose(gradient(X, 2), np.tile(2 * X.reshape(2, -1).sum(axis=0), (2, 1)).reshape(4, 6))
    dx, dn = rl.grad(lambda x, n: x.reshape(n, -1)[0].sum() * 2.0)(X, 4)
    assert dn is None and dx.sum() == 12.0
    assert rl.vmap(lambda x, n: x.reshape(n, -1).sum(axis=1), in_axes=(0, None))(X, 2).shape == (4, 2)


def test_dtypes_and_functions_as_arguments() -> None:
    @relay
    def converted(x, dtype, f):
        return f(x.astype(dtype))

    assert converted(X, np.float32, np.sin).dtype == np.float32
    assert converted(X, np.dtype("float32"), lambda v: v + 1).dtype == np.float32
    assert converted(X, rl.Float64, np.exp).dtype == np.float64


def test_many_values_are_told_once() -> None:
    @relay
    def rows(x, n):
        return x.reshape(n, -1).sum(axis=1)

    x = np.arange(24.0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for n in (1, 2, 3, 4, 6, 8, 12, 24, 1, 2):
            rows.lower(x, n)
    found = [str(w.message) for w in caught if issubclass(w.category, RelayWarning)]
    assert len(found) == 1 and "rows was compiled for 8 values of n" in found[0]


def test_numbers_of_numpy_are_never_static() -> None:
    with pytest.raises(TypeMismatch, match="axis must be known at compile time"):
        parts(X, 3, np.int64(1), 1.0)


def test_mistakes_are_told_as_ever() -> None:
    @relay
    def wrong(x, n):
        return x @ np.ones((3, 3)) * n

    with pytest.raises(TypeMismatch, match="cannot be multiplied"):
        wrong(X, 2)
