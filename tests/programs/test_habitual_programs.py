"""Programs as they are written by habit, whose arguments configure them: plain classes, computed keys, loops of JAX."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any

import numpy as np
from agreement import assert_modes_agree

import relay
from relay import relay as program

RNG = np.random.default_rng(11)


class Attention:
    """Self-attention, as a module of PyTorch is written."""

    def __init__(self, width: int) -> None:
        self.query, self.key, self.value = (RNG.normal(size=(width, width)) * 0.3 for _ in range(3))

    def __call__(self, x, heads):
        length, width = x.shape

        def split(y):
            return y.view(length, heads, width // heads).permute(1, 0, 2)

        scores = split(x @ self.query) @ split(x @ self.key).transpose(0, 2, 1)
        weights = relay.softmax(scores / np.sqrt(width // heads), dim=-1)
        return relay.cat([head for head in weights @ split(x @ self.value)], dim=-1)  # noqa: C416


class Norm(enum.Enum):
    NONE = 0
    LAYER = 1


@dataclass
class Config:
    heads: int = 2
    layers: int = 2
    norm: Norm = Norm.LAYER


def normalized(x, config):
    if config.norm is Norm.LAYER:
        return (x - x.mean(dim=-1, keepdim=True)) / np.sqrt(x.var(axis=-1, keepdims=True) + 1e-5)
    return x


@program
def configured_transformer(layers, x, config):
    for i in range(config.layers):
        x = x + layers[i](normalized(x, config), config.heads)
    return (x * x).mean()


@program
def keyed_layers(params, x, depth, **options):
    activations = {}
    for i in range(depth):
        x = np.tanh(x @ params[f"w{i}"] + params["b" + str(i)])
        activations[i] = x
        last = x
    return last.sum() * options.get("scale", 1.0) + sum(a.mean() for a in activations.values())


@program
def scanned(weights, xs):
    def step(state, x):
        state = np.tanh(x @ weights["input"] + state @ weights["state"])
        return state, state.sum()

    last, sums = relay.lax.scan(step, np.zeros(weights["state"].shape[0]), xs)
    return last.sum() + relay.lax.fori_loop(0, 3, lambda i, total: total * 0.5 + sums[i], 0.0)


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
    params = {"w0": RNG.normal(size=(3, 2)), "b0": np.ones(2), "w1": RNG.normal(size=(2, 4)), "b1": np.ones(4)}
    x = np.ones(3)
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
