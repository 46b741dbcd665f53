"""The batched workloads in Relay."""

from __future__ import annotations

from typing import Any

import numpy as np
from inputs import grown

import relay
from relay import Any as AnySize
from relay import Float32, Tensor


@relay.relay
def mlp_loss(w1, w2, x, y):
    return ((np.tanh(x @ w1) @ w2 - y) ** 2).sum()


@relay.relay
def cnn_loss(kernel, weight, image):
    h = relay.relu(relay.conv2d(image[None], kernel))
    return (np.tanh(h.reshape(-1) @ weight) ** 2).sum()


@relay.relay
def newton(a):
    x = a
    while abs(x * x - a) > 1e-4 * a:
        x = 0.5 * (x + a / x)
    return x


@relay.relay
def mandelbrot(x, y):
    u, v, n = 0.0, 0.0, 0
    while u * u + v * v < 4.0 and n < 50:
        u, v = u * u - v * v + x, 2.0 * u * v + y
        n += 1
    return n


@relay.relay
def particle_filter(places, noise, seen):
    mean = 0.0
    for t in range(50):
        places = relay.vmap(lambda p, e: 0.9 * p + np.sin(p) + 0.5 * e)(places, noise[t])
        weights = relay.softmax(-((places - seen[t]) ** 2))
        mean = mean + (weights * places).sum()
    return mean


@relay.data
class Tree:
    class Leaf:
        row: Tensor[Float32, (128,)]

    class Node:
        left: Tree
        right: Tree


@relay.relay
def state(tree, w, u, v, b, d):
    match tree:
        case Tree.Leaf(row):
            gates = row @ w + b
            memory = relay.sigmoid(gates[:128]) * np.tanh(gates[256:])
            return relay.sigmoid(gates[128:256]) * np.tanh(memory), memory
        case Tree.Node(left, right):
            (h, m), (g, n) = state(left, w, u, v, b, d), state(right, w, u, v, b, d)
            gates = (h + g) @ u + b
            memory = relay.sigmoid(gates[:128]) * np.tanh(gates[256:])
            memory = memory + relay.sigmoid(h @ v + d) * m + relay.sigmoid(g @ v + d) * n
            return relay.sigmoid(gates[128:256]) * np.tanh(memory), memory


@relay.relay
def trees(forest: list[Tree], w, u, v, b, d):
    return np.stack([state(tree, w, u, v, b, d)[0] for tree in forest]).sum()


@relay.relay
def tree_of(tree: Tree, w, u, v, b, d):
    return state(tree, w, u, v, b, d)[0].sum()


@relay.relay
def ragged_attention(sentences: list[Tensor[Float32, (AnySize, 64)]], q, k, v):
    def attend(x):
        return (relay.softmax((x @ q) @ (x @ k).T) @ (x @ v)).mean(axis=0)

    return relay.vmap(attend, in_axes="each")(sentences)


def _on_forest(function: Any) -> Any:
    """A call on trees that are made before."""
    made: list[Any] = []

    def call(forms, rows, *weights):
        if not made:
            made.extend(grown(forms, rows, Tree.Leaf, Tree.Node))
        return function(made, *weights)

    return call


def _one_by_one(function: Any) -> Any:
    def call(forest, *weights):
        results = [function(tree, *weights) for tree in forest]
        if isinstance(results[0], tuple):
            return tuple(sum(np.asarray(r[i]) for r in results) for i in range(len(results[0])))
        return sum(map(float, results))

    return call


@relay.relay
def settling(w, x, rounds):
    n = 0
    while n < rounds:
        x = np.tanh(w @ x)
        n += 1
    return x


@relay.relay
def experts(w1, w2, x):
    return np.tanh(x @ w1) @ w2 if x[0] > 0.0 else np.exp(-abs(x @ w1)) @ w2


def programs() -> dict[str, Any]:
    """The workloads: functions of their inputs."""
    return {
        "mlp": relay.vmap(relay.grad(mlp_loss, wrt=(0, 1)), in_axes=(None, None, 0, 0)),
        "cnn": relay.vmap(relay.grad(cnn_loss, wrt=(0, 1)), in_axes=(None, None, 0)),
        "newton": relay.vmap(newton),
        "mandelbrot": relay.vmap(mandelbrot),
        "particle_filter": particle_filter,
        "trees": _on_forest(trees),
        "trees_gradient": _on_forest(relay.grad(trees, wrt=(1, 2, 3, 4, 5))),
        "trees_one_by_one": _on_forest(_one_by_one(tree_of)),
        "trees_gradient_one_by_one": _on_forest(_one_by_one(relay.grad(tree_of, wrt=(1, 2, 3, 4, 5)))),
        "ragged_attention": ragged_attention,
        "settling": relay.vmap(settling, in_axes=(None, 0, 0)),
        "experts": relay.vmap(experts, in_axes=(None, None, 0)),
    }


def wait(result: Any) -> Any:
    """The result, when it is there."""
    return result
