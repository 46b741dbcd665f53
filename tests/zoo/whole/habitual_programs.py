"""Programs as they are written by habit: fields that change, plain classes, computed keys, loops of JAX."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import relay
from relay import relay as program
from zoo import Program

RNG = np.random.default_rng(11)


@dataclass
class Statistics:
    total: Any = 0.0
    largest: Any = 0.0
    values: list = field(default_factory=list)


def observe(statistics, value):
    statistics.total += value
    statistics.largest = max(statistics.largest, value)
    statistics.values.append(value * value)
    return statistics


@program
def observed(xs):
    statistics = Statistics()
    for x in xs:
        if x < -100.0:
            raise ValueError(f"{x} is too small")
        statistics = observe(statistics, x)
    return statistics.total * statistics.largest + np.stack(statistics.values).sum()


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
        return relay.cat([head for head in weights @ split(x @ self.value)], dim=-1)


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


PARAMETERS = {"w0": RNG.normal(size=(3, 2)), "b0": np.ones(2), "w1": RNG.normal(size=(2, 4)), "b1": np.ones(4)}

PROGRAMS = [
    Program(observed, (np.array([0.5, 2.0, -1.0, 1.5]),)),
    Program(configured_transformer, ([Attention(4), Attention(4)], RNG.normal(size=(3, 4)), Config())),
    Program(keyed_layers, (PARAMETERS, np.ones(3), 2)),
    Program(scanned, ({"input": RNG.normal(size=(2, 3)), "state": RNG.normal(size=(3, 3))}, RNG.normal(size=(4, 2)))),
]
