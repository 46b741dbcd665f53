"""`relay.tree`: functions of nested structures."""

from dataclasses import dataclass
from typing import Any

import attrs
import numpy as np

import relay as module
from relay import Float64, Tensor, relay
from zoo import Program


@dataclass
class Layer:
    weight: Any
    bias: Any


@attrs.frozen
class Scaled:
    layers: Any
    _factor: Any = 1.0


class Registered:
    def __init__(self, left: Any, right: Any, name: str) -> None:
        self.left, self.right, self.name = left, right, name


module.register_tree(
    Registered,
    lambda value: ((value.left, value.right), value.name),
    lambda name, parts: Registered(*parts, name),
    fields=("left", "right"),
)


@relay.data
class Rose:
    value: Tensor[Float64, ()]
    children: "list[Rose]"


@relay.data
class Path:
    class End:
        pass

    class Step:
        turn: tuple[Tensor[Float64, ()], Tensor[Float64, (2,)]]
        rest: "Path"


@relay
def squares(tree):
    return relay.tree.reduce(lambda total, x: total + (x * x).sum(), tree, 0.0)


@relay
def updated(params, x):
    def loss(p):
        h = relay.tanh(x @ p.layers[0].weight + p.layers[0].bias)
        return (h * p._factor).sum()

    moved = relay.tree.map(lambda p, g: p - 0.5 * g, params, relay.grad(loss)(params))
    return squares(moved) + loss(moved)


@relay
def rebuilt(tree):
    leaves, structure = relay.tree.flatten(tree)
    other = relay.tree.unflatten(structure, [x * x for x in leaves[::-1]])
    same = 2.0 if relay.tree.structure(other) == structure else 0.0
    return squares(other) * same + other["a"][1].sum()


@relay
def through_list(x, n):
    xs = []
    for i in range(n):
        xs.append((x * float(i), [x]))
    ys = relay.tree.map(lambda a, b: a * b + 1.0, xs, relay.tree.map(lambda v: v + 2.0, xs))
    return squares(ys)


@relay
def along(path):
    return squares(relay.tree.map(lambda a, b: a * b, path, relay.tree.map(relay.sin, path)))


@relay
def reference_steps(x):
    state = {"a": relay.ref(x), "b": (relay.ref(2.0 * x), x)}
    moved = relay.tree.map(lambda v: v * x, state)
    moved["a"].value = moved["a"].value + state["b"][0].value
    return moved["a"].value + squares(state)


@relay
def registered(value, x):
    moved = relay.tree.map(lambda a, b: a - x * b, value, value)
    return moved.left.sum() * moved.right + squares(moved)


@relay
def roses(rose):
    doubled = relay.tree.map(lambda v: 2.0 * v, rose)
    return squares(doubled) + doubled.value


_ROSE = Rose(np.float64(0.5), [Rose(np.float64(1.5), []), Rose(np.float64(2.0), [Rose(np.float64(-1.0), [])])])
_PAIR = (np.float64(0.3), np.array([0.5, -1.0]))

PROGRAMS = [
    Program(updated, (Scaled([Layer(np.eye(2), np.array([0.1, 0.2]))], np.float64(0.7)), np.array([[1.0, 2.0]]))),
    Program(rebuilt, ({"b": np.array([1.0, 2.0]), "a": (np.float64(3.0), np.array([0.5, 1.5]))},)),
    Program(through_list, (np.float64(0.5), 3)),
    Program(along, (Path.Step(_PAIR, Path.Step(_PAIR, Path.End())),)),
    Program(reference_steps, (np.float64(1.5),), expected=1.5**2 + 3.0 + 1.5**2 + 9.0 + 1.5**2),
    Program(registered, (Registered(np.array([1.0, 2.0]), np.float64(3.0), "r"), np.float64(0.1))),
    Program(roses, (_ROSE,), differentiable=False, expected=4.0 * (0.25 + 2.25 + 4.0 + 1.0) + 1.0),
]
