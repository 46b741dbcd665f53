"""Gradients with respect to all parameters are a tuple: used as if it were one gradient, it says what to write."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from agreement import modes

import relay
from relay.support.gradients import Gradients

W, X = np.array([1.0, 2.0]), np.array([3.0, 4.0])


@relay.relay
def loss(w, x):
    return ((w * x) ** 2).sum()


@relay.relay
def descend(w, x, gradients):
    dw, dx = gradients
    return w - dw, x - dx


USES: tuple[Callable[[Any], Any], ...] = (
    *(lambda g: g * 2.0, lambda g: W - 0.1 * g, lambda g: W - g, lambda g: g + g, lambda g: -g, lambda g: g / 2.0),
    *(lambda g: g @ W, lambda g: g**2, lambda g: np.float64(2.0) * g, lambda g: np.tanh(g), lambda g: np.sum(g)),
    *(lambda g: g.shape, lambda g: g.sum(), lambda g: g["w"], lambda g: np.linalg.norm(g), lambda g: relay.sum(g)),
)


@pytest.mark.parametrize("use", USES)
def test_a_tuple_of_gradients_is_not_one_gradient(use: Callable[[Any], Any]) -> None:
    for found in (relay.grad(loss)(W, X), relay.grad(loss).interpret(W, X), relay.value_and_grad(loss)(W, X)[1]):
        with pytest.raises((TypeError, AttributeError), match=r"one for each parameter: take one, g\[0\], .* wrt=0"):
            use(found)


TEXTS = (
    *("g * 2.0", "w - 0.1 * g", "w - g", "g + g", "-g", "g / 2.0", "g @ w", "np.tanh(g)", "np.sum(g)", "relay.sum(g)"),
    *("g.shape", "g.sum()", "np.linalg.norm(g)", "g['w']"),
)


@pytest.mark.parametrize("text", TEXTS)
def test_a_tuple_of_gradients_in_a_program(text: str) -> None:
    lines = f"def f(w, x):\n    g = relay.grad(loss)(w, x)\n    return {text}\n"
    f = relay.from_source(lines, {"relay": relay, "np": np, "loss": loss})
    with pytest.raises(relay.TypeCheckError, match="tuple of 2, one for each parameter") as caught:
        f.interpret(W, X)
    assert "did you mean `wrt=0`, or `g[0]`?" in str(caught.value)


def test_what_tuples_of_gradients_are_for() -> None:
    for run in modes(relay.grad(loss)):
        found = run(W, X)
        dw, dx = found
        assert isinstance(found, tuple) and found[0] is dw and len(found) == 2 and type(found[:1]) is tuple
        assert dw.tolist() == [18.0, 64.0] and dx.tolist() == [6.0, 32.0]
        assert repr(found) == repr((dw, dx)) and found.__add__((1,)) == (dw, dx, 1) and not hasattr(found, "shape")
        assert np.stack(found).shape == (2, 2)
        for other in (copy.deepcopy(found), pickle.loads(pickle.dumps(found))):
            assert type(other) is Gradients and other[0].tolist() == dw.tolist()
        for _ in range(3):  # the last calls take the fast path
            assert [v.tolist() for v in descend(W, X, found)] == [(W - dw).tolist(), (X - dx).tolist()]
        moved = relay.tree.map(lambda p, g: p - g, (W, X), found)
        assert moved[0].tolist() == (W - dw).tolist()


def test_gradients_of_one_parameter_are_themselves() -> None:
    assert relay.grad(loss, wrt=0)(W, X).shape == relay.grad(lambda w: loss(w, X))(W).shape == (2,)
    pair = relay.grad(lambda p: loss(*p))((W, X))  # one parameter, which is a tuple
    assert type(pair) is tuple and type(relay.grad(loss, wrt=(0, 1))(W, X)) is tuple
    gradients, aux = relay.grad(lambda w, x: (loss(w, x), w), has_aux=True)(W, X)
    assert type(gradients) is Gradients and aux.tolist() == W.tolist()
