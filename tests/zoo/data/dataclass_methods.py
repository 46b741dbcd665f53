"""Dataclasses and named tuples whose decorated methods are part of programs, and paths that end in `assert False`."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from relay import relay
from zoo import Program

_RANDOM = np.random.default_rng(0)


@dataclass
class Linear:
    weight: Any
    bias: Any = None

    @relay
    def __call__(self, x):
        y = x @ self.weight
        return y if self.bias is None else y + self.bias

    @relay
    def norm(self, scale=1.0):
        return scale * (self.weight**2).sum()


class Interval(NamedTuple):
    low: Any
    high: Any

    @relay
    def inside(self, x):
        return self.low + (self.high - self.low) * relay.sigmoid(x)


@relay
def network(layers, x):
    penalty = 0.0
    for layer in layers[:-1]:
        x = relay.tanh(layer(x))
        penalty += layer.norm(scale=0.1)
    return layers[-1](x).sum() + penalty


@relay
def squeezed(interval, x):
    return interval.inside(x).mean()


@relay
def activated(x, kind):
    if kind == "tanh":
        return relay.tanh(x)
    elif kind == "sine":
        return relay.sin(x)
    raise AssertionError(f"there is no {kind}")


@relay
def chosen(x, which: int):
    match which:
        case 0:
            y = activated(x, "tanh")
        case 1:
            y = activated(x, "sine") * 2.0
        case _:
            assert False, f"there is no activation {which}"  # noqa: B011
    return y.sum()


def _layer(inputs: int, outputs: int, *, bias: bool = True) -> Linear:
    return Linear(_RANDOM.standard_normal((inputs, outputs)), _RANDOM.standard_normal(outputs) if bias else None)


PROGRAMS = [
    Program(network, ((_layer(3, 4), _layer(4, 4, bias=False), _layer(4, 2)), _RANDOM.standard_normal((2, 3)))),
    Program(squeezed, (Interval(-1.0, 2.0), _RANDOM.standard_normal(4))),
    Program(chosen, (_RANDOM.standard_normal(3), 1)),
]
