"""Recursion that passes parameters on: unchanged, sometimes, exchanged, through other functions, in structures."""

from __future__ import annotations

import numpy as np

import relay as rl
from relay import relay
from zoo import Program


@rl.data
class Branching:
    class Tip:
        x: rl.Tensor[rl.Float64, (3,)]

    class Fork:
        left: Branching
        right: Branching


@relay
def encode(tree, weights):
    """Weights in a record, unchanged in each call."""
    match tree:
        case Branching.Tip(x):
            return rl.tanh(x @ weights["tip"])
        case Branching.Fork(left, right):
            both = encode(left, weights) @ weights["left"] + encode(right, weights) @ weights["right"]
            return rl.tanh(both + weights["bias"])


@relay
def encoded_tree(tree, weights):
    return rl.sum(encode(tree, weights) ** 2)


@relay
def conditional_recursion(x, w, n):
    """One more call only where a number is positive; the weights are used after the calls, too."""
    if n <= 0:
        return rl.sum(x)
    y = rl.tanh(x @ w)
    if rl.sum(y) > 0.0:
        return conditional_recursion(y, w, n - 1) + 0.5 * conditional_recursion(-y, w, n - 2)
    return rl.sum(y * w[0]) + conditional_recursion(y * 0.5, w, n - 1) * 2.0


@relay
def even_layer(x, w, v, n):
    """Mutual recursion whose weights change places."""
    if n == 0:
        return rl.sum(x * v[0])
    return odd_layer(rl.sin(x @ w), v, w, n - 1) + rl.sum(x)


@relay
def odd_layer(x, w, v, n):
    if n == 0:
        return rl.sum(x * x)
    return even_layer(rl.cos(x @ w), v, w, n - 1) * 0.5 + even_layer(x, w, v, n - 1) * 0.25


@relay
def mutual_layers(x, w, v, n):
    return even_layer(x, w, v, n)


@relay
def sometimes_changed(x, w, n):
    """One call passes the weights on, the other scales them."""
    if n <= 0:
        return rl.sum(rl.tanh(x @ w))
    return sometimes_changed(rl.tanh(x), w, n - 1) + sometimes_changed(x @ w, w * 0.5, n - 2)


@relay
def carried(x, settings, n):
    """Unchanged: a tuple of an array, None, an integer and a nested tuple."""
    w, _, power, (scale, shift) = settings
    if n <= 0:
        return rl.sum(x) * scale
    inner = carried(rl.sin(x @ w) ** power + shift, settings, n - 1)
    return inner + carried(x * scale, settings, n - 2)


@relay
def carried_structures(x, w, scale, shift, n):
    return carried(x, (w, None, 2, (scale, shift)), n)


@relay
def tipped(tree, table, position):
    """Reads and an array that only the reads use: its cotangent is a sum of rows."""
    match tree:
        case Branching.Tip(x):
            return rl.sum(x * table[position])
        case Branching.Fork(left, right):
            return tipped(left, table, position + 1) + tipped(right, table, position + 2) * rl.sum(table[position])


@relay
def rows_of_a_table(tree, table):
    return tipped(tree, table, 0)


@relay
def folded(tree, w):
    """A loop with calls, in a recursive function."""
    match tree:
        case Branching.Tip(x):
            return rl.tanh(x @ w)
        case Branching.Fork(left, right):
            total = folded(right, w)
            for k in range(3):
                total = total * 0.5 + folded(left, w) @ w * float(k + 1)
            return rl.tanh(total)


@relay
def loops_of_calls(tree, w):
    return rl.sum(folded(tree, w))


@relay
def unused_results(tree, w):
    """The weights' contribution comes from one of two results only; other calls start anew."""
    a, _ = halves(tree, w)
    _, d = halves(tree, w * 2.0)
    return rl.sum(a) + rl.sum(d)


@relay
def halves(tree, w):
    match tree:
        case Branching.Tip(x):
            return x @ w, x
        case Branching.Fork(left, right):
            (a, b), (c, d) = halves(left, w), halves(right, w)
            return rl.tanh(a @ w) + c, b * d


@relay
def crossed_halves(tree):
    """The result of the calls is sliced, and what it is only the other arm says."""
    match tree:
        case Branching.Tip(x):
            found, sums = rl.concatenate((x, x * x)), x.sum()
        case Branching.Fork(left, right):
            one, first = crossed_halves(left)
            other, second = crossed_halves(right)
            found, sums = rl.concatenate((one[3:], other[:3])), first * other[0] + second
    return found, sums


@relay
def crossed(x):
    tree = Branching.Fork(Branching.Tip(x), Branching.Fork(Branching.Tip(x * 2.0), Branching.Tip(x + 1.0)))
    found, sums = crossed_halves(tree)
    return (found * found).sum() + sums


def _tree(depth: int, seed: int = 0) -> Branching:
    rng = np.random.default_rng(seed)

    def grow(left: int) -> Branching:
        if left == 0 or (left < depth and rng.random() < 0.2):
            return Branching.Tip(rng.standard_normal(3))
        return Branching.Fork(grow(left - 1), grow(left - 1))

    return grow(depth)


_RNG = np.random.default_rng(7)
X, W, V = _RNG.standard_normal(3), 0.5 * _RNG.standard_normal((3, 3)), 0.5 * _RNG.standard_normal((3, 3))
WEIGHTS = {
    "tip": W,
    "left": V,
    "right": 0.5 * _RNG.standard_normal((3, 3)),
    "bias": _RNG.standard_normal(3),
}

PROGRAMS = [
    Program(encoded_tree, (_tree(3), WEIGHTS)),
    Program(conditional_recursion, (X, W, np.int32(4))),
    Program(mutual_layers, (X, W, V, np.int32(4))),
    Program(sometimes_changed, (X, W, np.int32(4))),
    Program(carried_structures, (X, W, np.float64(0.7), np.float64(-0.2), np.int32(4))),
    Program(rows_of_a_table, (_tree(3, 1), _RNG.standard_normal((7, 3)))),
    Program(loops_of_calls, (_tree(2, 2), W)),
    Program(unused_results, (_tree(3, 3), W)),
    Program(crossed, (X,)),
]
