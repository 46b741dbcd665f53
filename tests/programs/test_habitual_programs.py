"""Programs of the zoo whose arguments configure them, at other values of these, and against other means."""

from __future__ import annotations

from typing import Any

import numpy as np
from agreement import assert_modes_agree
from zoo.whole.habitual_programs import (
    PARAMETERS,
    Attention,
    Config,
    Norm,
    configured_transformer,
    keyed_layers,
    scanned,
)

import relay

RNG = np.random.default_rng(11)


def differences(f: Any, x: np.ndarray) -> np.ndarray:
    """The gradient of a function of an array by central differences."""
    found = np.zeros_like(x)
    for place in np.ndindex(x.shape):
        step = np.zeros_like(x)
        step[place] = 1e-5
        found[place] = (float(f(x + step)) - float(f(x - step))) / 2e-5
    return found


def test_a_transformer_of_plain_classes() -> None:
    layers, x, config = [Attention(4), Attention(4)], RNG.normal(size=(3, 4)), Config()
    assert_modes_agree(configured_transformer, layers, x, config)
    gradient = relay.grad(configured_transformer, wrt="x")(layers, x, config)
    expected = differences(lambda y: configured_transformer.interpret(layers, y, config), x)
    np.testing.assert_allclose(gradient, expected, rtol=1e-6, atol=1e-8)
    wide = RNG.normal(size=(5, 4))  # another size, and another configuration
    assert_modes_agree(configured_transformer, layers, wide, Config(heads=1, layers=1, norm=Norm.NONE))


def test_keys_that_are_computed_from_an_argument() -> None:
    params, x = PARAMETERS, np.ones(3)
    first = np.tanh(x @ params["w0"] + 1)
    second = np.tanh(first @ params["w1"] + 1)
    assert_modes_agree(keyed_layers, params, x, 2, expected=second.sum() + first.mean() + second.mean())
    assert_modes_agree(keyed_layers, params, x, 1, expected=first.sum() + first.mean())
    gradient = relay.grad(keyed_layers, wrt="x")(params, x, 2)
    np.testing.assert_allclose(gradient, differences(lambda y: keyed_layers.interpret(params, y, 2), x), rtol=1e-6)


def test_loops_of_jax() -> None:
    weights, xs = {"input": RNG.normal(size=(2, 3)), "state": RNG.normal(size=(3, 3))}, RNG.normal(size=(4, 2))
    state, sums = np.zeros(3), []
    for x in xs:
        state = np.tanh(x @ weights["input"] + state @ weights["state"])
        sums.append(state.sum())
    total = 0.0
    for i in range(3):
        total = total * 0.5 + sums[i]
    assert_modes_agree(scanned, weights, xs, expected=state.sum() + total)
    gradient = relay.grad(scanned, wrt="xs")(weights, xs)
    np.testing.assert_allclose(gradient, differences(lambda y: scanned.interpret(weights, y), xs), rtol=1e-6, atol=1e-9)
