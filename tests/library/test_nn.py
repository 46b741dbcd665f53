"""`relay.nn`: the functions that are no operators, beside their formulas in NumPy, and their gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import relay
from relay.testing import assert_modes_agree

X = np.array([[-800.0, -7.0, -3.0, -1.5], [-0.4, 0.2, 0.9, 2.0], [2.9, 3.5, 6.5, 900.0]])
NEAR = np.array([[-7.0, -2.5, -1.4], [-0.4, 0.2, 0.9], [2.9, 5.0, 7.0]])


def _sigmoid(x: Any) -> Any:
    return np.where(x >= 0, 1 / (1 + np.exp(-np.abs(x))), np.exp(-np.abs(x)) / (1 + np.exp(-np.abs(x))))


FORMULAS: dict[str, Any] = {
    "log_sigmoid": lambda x: np.minimum(x, 0) - np.log1p(np.exp(-np.abs(x))),
    "relu6": lambda x: np.clip(x, 0, 6),
    "hard_sigmoid": lambda x: np.clip(x + 3, 0, 6) / 6,
    "hard_silu": lambda x: x * np.clip(x + 3, 0, 6) / 6,
    "hard_tanh": lambda x: np.clip(x, -1, 1),
    "celu": lambda x: np.maximum(x, 0) + np.minimum(0, np.expm1(x)),
    "soft_sign": lambda x: x / (1 + np.abs(x)),
    "squareplus": lambda x: (x + np.sqrt(x * x + 4)) / 2,
    "tanhshrink": lambda x: x - np.tanh(x),
    "softshrink": lambda x: np.sign(x) * np.maximum(np.abs(x) - 0.5, 0),
    "hardshrink": lambda x: x * (np.abs(x) > 0.5),
    "glu": lambda x: x[:, :2] * _sigmoid(x[:, 2:]),
    "softmin": lambda x: np.exp(-x + x.min(-1, keepdims=True)) / np.exp(-x + x.min(-1, keepdims=True)).sum(-1)[:, None],
    "standardize": lambda x: (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5),
    "normalize": lambda x: x / np.sqrt((x * x).sum(1, keepdims=True)),
}


@relay
def activated(x):
    one = relay.nn.log_sigmoid(x), relay.nn.relu6(x), relay.nn.hard_sigmoid(x), relay.nn.hard_silu(x)
    two = relay.nn.hard_tanh(x), relay.nn.celu(x), relay.nn.soft_sign(x), relay.nn.squareplus(x)
    three = relay.nn.tanhshrink(x), relay.nn.softshrink(x), relay.nn.hardshrink(x), relay.nn.glu(x)
    return *one, *two, *three, relay.nn.softmin(x), relay.nn.standardize(x), relay.nn.normalize(x)


def test_functions_are_their_formulas_without_overflow() -> None:
    with np.errstate(over="ignore"):
        assert_modes_agree(activated, X, expected=tuple(formula(X) for formula in FORMULAS.values()), rtol=1e-12)


@relay
def activation_sum(x):
    smooth = relay.nn.log_sigmoid(x) + relay.nn.celu(x, alpha=0.7) + relay.nn.soft_sign(x) + relay.nn.squareplus(x)
    bent = relay.nn.relu6(x) * 0.3 + relay.nn.hard_silu(x) + relay.nn.hard_tanh(x) + relay.nn.softshrink(x)
    rows = relay.nn.softmin(x) + relay.nn.standardize(x) + relay.nn.normalize(x) + relay.nn.hardshrink(x)
    weights = np.arange(9.0).reshape(3, 3)
    return np.sum(weights * (smooth + bent + rows + relay.nn.tanhshrink(x)))


def test_gradients() -> None:
    relay.check_gradient(activation_sum, NEAR)


@relay
def lengths(x, y, p):
    similar = relay.nn.cosine_similarity(x, y), relay.nn.cosine_similarity(x, y, axis=0)
    losses = relay.nn.smooth_l1_loss(x, y), relay.nn.smooth_l1_loss(x, y, reduction="sum", beta=0.3)
    return *similar, *losses, relay.nn.normalize(x, p=p), relay.nn.linear(x, y, y[:, 0]), relay.nn.linear(x, y)


def test_distances_losses_and_layers() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(3, 4)), rng.normal(size=(3, 4))
    far = np.abs(x - y)

    def cosine(axis: int) -> Any:
        return (x * y).sum(axis) / np.linalg.norm(x, axis=axis) / np.linalg.norm(y, axis=axis)

    losses = [np.where(far < b, far**2 / b / 2, far - b / 2) for b in (1.0, 0.3)]
    normal = x / (np.abs(x) ** 3).sum(1, keepdims=True) ** (1 / 3)
    expected = cosine(1), cosine(0), losses[0].mean(), losses[1].sum(), normal, x @ y.T + y[:, 0], x @ y.T
    assert_modes_agree(lengths, x, y, 3.0, expected=expected, rtol=1e-12)


def test_the_gradients_at_zero_vectors_are_finite() -> None:
    def f(x):
        return np.sum(relay.nn.normalize(x)) + np.sum(relay.nn.cosine_similarity(x, x + 1.0))

    assert np.isfinite(relay.grad(f)(np.zeros((2, 3)))).all()


def test_operators_have_the_names_too() -> None:
    assert relay.nn.relu is relay.relu and relay.nn.swish is relay.silu
    assert all(hasattr(relay.nn, name) for name in relay.nn.__all__)


def test_an_axis_that_cannot_be_halved() -> None:
    with pytest.raises(relay.ShapeError, match="3"):
        relay.nn.glu(np.ones((2, 3)))
