"""Tuples, lists, dicts, dataclasses and named tuples: fixed structures that fall apart before the program runs."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from relay import relay
from zoo import Program


@dataclass
class Layer:
    weight: Any
    bias: Any


class State(NamedTuple):
    position: Any
    velocity: Any = 0.0


@relay
def starred(items):
    first, *middle, last = items
    return first * last + sum(m * m for m in middle)


@relay
def spread(x, pair):
    a = (x, *pair, x)
    b, *_ = (*a[1:3], *pair[::-1])
    return relay.stack(a).sum() * b


@relay
def comprehensions(xs, pair):
    products = [a * x for a in pair for x in xs[:2]]
    evens = [float(i) * pair[0] for i in range(5) if i % 2 == 0]
    return sum(products) + max(evens) + sum(x * y for x, y in zip(xs, [pair[0], pair[1], 1.0]))


@relay
def nested_comprehension(pair):
    table = [[a * b for a in pair] for b in pair]
    return table[0][1] + sum(sum(row) for row in table)


@relay
def appended(x):
    states = []
    h = x
    for i in range(4):
        h = relay.tanh(h + float(i))
        states.append(h)
    return relay.stack(states).sum() * len(states) + states[-1].sum()


@relay
def mlp(layers, x):
    for w, b in layers[:-1]:
        x = relay.tanh(x @ w + b)
    w, b = layers[-1]
    return ((x @ w + b) ** 2).sum()


@relay
def dictionary(params, x):
    h = relay.tanh(x @ params["w"] + params["b"])
    params["b"] = params["b"] * 2.0
    return (h * params["b"]).sum()


@relay
def loss(params, x):
    return ((params["w"] * x + params["b"]) ** 2).sum()


@relay
def gradient_descent(params, x):
    for _ in range(4):
        gradient = relay.grad(loss, wrt="params")(params, x)
        params = {k: v - 0.1 * gradient[k] for k, v in params.items()}
    return loss(params, x)


@relay
def dataclasses_in_lists(layers, x):
    for layer in layers:
        x = relay.tanh(x @ layer.weight + layer.bias)
    return x.sum()


@relay
def step(state, force, dt):
    velocity = state.velocity + dt * force
    return State(state.position + dt * velocity, velocity=velocity)


@relay
def leapfrog(state):
    for _ in range(5):
        state = step(state, -state.position, dt=0.1)
    moved = state._replace(velocity=0.0 * state.velocity)
    return (state.position * state.velocity).sum() + moved.position.sum()


@relay
def star_arguments(pair, options):
    def affine(x, y, *, scale, shift):
        return x * y * scale + shift

    return affine(*pair, **options) + affine(*pair, **{**options, "scale": 2.0})


@relay
def records_by_branch(x):
    point = {"x": x, "y": x * x} if x > 0.0 else {"x": -x, "y": x}
    return point["x"] * point["y"]


@relay
def optional(x, scale=None, offset=None):
    y = x if scale is None else x * scale
    return y if offset is None else y + offset


@relay
def by_structure(t):
    match t:
        case (a, b):
            return by_structure(a) * by_structure(b)
        case {"x": a, **rest}:
            return by_structure(a) + float(len(rest))
        case [first, *rest]:
            return by_structure(first) + (by_structure(rest) if len(rest) > 0 else 0.0)
        case 0:
            return 1.0
        case _:
            return t * t


@relay
def folded(t):
    if isinstance(t, tuple):
        return 0.0 if len(t) == 0 else folded(t[0]) + 2.0 * folded(t[1:])
    return t.sum() if t.ndim > 0 else t


def _random(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape) + len(shape)).standard_normal(shape)


_SCALARS = tuple(np.float64(v) for v in (0.5, -1.5, 2.0, 0.25))
_PAIR = (np.float64(0.7), np.float64(1.3))

PROGRAMS = [
    Program(starred, (_SCALARS,), expected=0.5 * 0.25 + 1.5**2 + 4.0),
    Program(spread, (np.float64(0.5), _PAIR), expected=(0.5 + 0.7 + 1.3 + 0.5) * 0.7),
    Program(comprehensions, (_random(3), _PAIR)),
    Program(nested_comprehension, (_PAIR,), expected=0.91 + 4.0),
    Program(appended, (_random(3),)),
    Program(mlp, ([(_random(n, m), _random(m)) for n, m in ((3, 4), (4, 4), (4, 1))], _random(5, 3))),
    Program(dictionary, ({"w": _random(3, 2), "b": _random(2)}, _random(4, 3))),
    Program(gradient_descent, ({"w": _random(3), "b": np.float64(0.1)}, _random(3))),
    Program(dataclasses_in_lists, ([Layer(_random(3, 2), _random(2)), Layer(_random(2, 2), _random(2))], _random(3))),
    Program(leapfrog, (State(_random(2), _random(2)),)),
    Program(star_arguments, (_PAIR, {"scale": np.float64(3.0), "shift": np.float64(0.5)})),
    Program(records_by_branch, (np.float64(1.5),), expected=1.5**3),
    Program(by_structure, (({"x": np.float64(1.5), "y": np.float64(0.5)}, _SCALARS),)),
    Program(folded, ((np.float64(1.5), _random(3), (_random(2, 2), np.float64(0.5))),)),
    Program(optional, (np.float64(1.5), np.float64(2.0)), expected=3.0),
]
