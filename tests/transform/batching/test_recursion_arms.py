"""Recursions over data whose calls are in branches, against the recursions as they are written."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from generators.by_levels import assert_same

import relay as rl
from relay import Float64, Tensor, relay
from relay.transform import Pipeline
from relay.transform.recursion.recursion_arms import MOST_ARMS
from relay.transform.recursion.structural_recursion import find_obstacles


@rl.data
class Tree:
    class Empty:
        pass

    class Node:
        kind: int
        x: Tensor[Float64, (3,)]
        left: Tree
        right: Tree


@rl.data
class Sign:
    class Plus:
        pass

    class Times:
        factor: Tensor[Float64, ()]


@rl.data
class Term:
    class Leaf:
        x: Tensor[Float64, (3,)]

    class Pair:
        sign: Sign
        left: Term
        right: Term


@relay
def by_kind(tree, w):
    """Each kind of node has calls of its own."""
    match tree:
        case Tree.Empty():
            return np.zeros(3)
        case Tree.Node(kind, x, left, right):
            if kind == 0:
                return np.tanh(x @ w)
            if kind == 1:
                return by_kind(left, w) @ w
            return np.tanh((by_kind(left, w) - by_kind(right, w)) @ w)


@relay
def by_parts(tree, w, table):
    """Two branches one after the other, by what a table holds; after them the same for all."""
    match tree:
        case Tree.Empty():
            return np.zeros(3), 0.0
        case Tree.Node(kind, x, left, right):
            h, n = x @ w, table[kind]
            if n > 0.5:
                g, m = by_parts(left, w, table)
                h, n = h + g, n + m
            if table[kind] * x.sum() > 0.0 or kind == 2:
                g, m = by_parts(right, w, table)
                h, n = h * np.tanh(g), n - m
            return np.tanh(h), n


@relay
def by_depth(tree, w, depth):
    """Where the way ends is said by an argument that calls change."""
    match tree:
        case Tree.Empty():
            return np.zeros(3)
        case Tree.Node(kind, x, left, right):
            if depth > 3.0:
                return x * depth
            h = by_depth(left, w, depth + 1.0)
            if kind > 0:
                h = h + by_depth(right, w, depth + x.sum())
            return np.tanh(h @ w)


@relay
def by_sign(term, w):
    """A field that is data is taken apart after the calls, and before them."""
    match term:
        case Term.Leaf(x):
            return x @ w
        case Term.Pair(sign, left, right):
            a, b = by_sign(left, w), by_sign(right, w)
            match sign:
                case Sign.Plus():
                    return np.tanh(a + b)
                case Sign.Times(factor):
                    return a * b * factor


@relay
def by_inner(term, w):
    match term:
        case Term.Leaf(x):
            return x @ w
        case Term.Pair(Sign.Times(factor), left, Term.Leaf(x)):
            return by_inner(left, w) * x * factor
        case Term.Pair(_, Term.Pair(_, left, right), rest):
            return by_inner(left, w) + by_inner(right, w) - np.tanh(by_inner(rest, w))
        case Term.Pair(_, left, right):
            return np.tanh((by_inner(left, w) + by_inner(right, w)) @ w)


@relay
def alike(trees: list[Tree], w):
    return np.stack([by_kind(t, w) for t in trees]).sum()


@relay
def parts(trees: list[Tree], w, table):
    return sum([(h * n).sum() for h, n in [by_parts(t, w, table) for t in trees]])


@relay
def depths(trees: list[Tree], w):
    return np.stack([by_depth(t, w, 0.5) for t in trees]).sum()


@relay
def signs(terms: list[Term], w):
    return np.stack([by_sign(t, w) for t in terms]).sum()


@relay
def inner(terms: list[Term], w):
    return np.stack([by_inner(t, w) for t in terms]).sum()


pytestmark = pytest.mark.usefixtures("low_effort")

RANDOM = np.random.default_rng(0)
W, TABLE = RANDOM.normal(size=(3, 3)), np.array([0.2, 0.7, 1.0])


def tree(size: int) -> Any:
    if size == 0:
        return Tree.Empty()
    left = int(RANDOM.integers(0, size))
    return Tree.Node(int(RANDOM.integers(3)), RANDOM.normal(size=3), tree(left), tree(size - 1 - left))


def term(leaves: int) -> Any:
    if leaves == 1:
        return Term.Leaf(RANDOM.normal(size=3))
    left = int(RANDOM.integers(1, leaves))
    sign = Sign.Plus() if RANDOM.random() < 0.5 else Sign.Times(np.asarray(RANDOM.normal()))
    return Term.Pair(sign, term(left), term(leaves - left))


TREES, TERMS = [tree(n) for n in (3, 0, 9, 1, 6, 8)], [term(n) for n in (4, 1, 7, 2, 6)]

PROGRAMS: list[tuple[Any, tuple[Any, ...]]] = [
    (alike, (TREES, W)),
    (parts, (TREES, W, TABLE)),
    (depths, (TREES, W)),
    (signs, (TERMS, W)),
    (inner, (TERMS, W)),
]


@pytest.mark.parametrize(("function", "arguments"), PROGRAMS, ids=[p[0].__name__ for p in PROGRAMS])
def test_calls_in_branches(function: Any, arguments: tuple[Any, ...]) -> None:
    """Values and derivatives in all that is differentiable, the trees among it."""
    assert_same(function, *arguments, compiled=function in (parts, inner))
    wrt = tuple(range(len(arguments)))
    assert_same(rl.grad(function, wrt=wrt), *arguments, compiled=function is parts)


@relay
def out_of_range(tree, w, table):
    match tree:
        case Tree.Empty():
            return np.zeros(3)
        case Tree.Node(kind, x, left, right):
            if table[kind] > 0.5:
                return out_of_range(left, w, table) @ w
            return out_of_range(right, w, table) + x


def test_an_assertion_before_a_condition_holds_in_the_schedule() -> None:
    bad = Tree.Node(1_000_000_000, np.ones(3), Tree.Empty(), Tree.Empty())
    with pytest.raises(rl.ExecutionError, match="out of range"):
        assert_same(out_of_range, bad, W, TABLE, compiled=True)


@relay
def many_ways(tree, w):
    match tree:
        case Tree.Empty():
            return np.zeros(3)
        case Tree.Node(kind, x, left, _):
            h = x @ w
            for bit in (1, 2, 4, 8, 16):
                if kind % (2 * bit) >= bit:
                    h = np.tanh(h + many_ways(left, w) * float(bit))
            return h


def test_arms_are_not_made_for_too_many_branches() -> None:
    assert MOST_ARMS < 2**5
    (obstacle,) = find_obstacles(
        Pipeline("specialize, structure", stage="typed")(many_ways.typed(TREES[2], W))
    ).values()
    assert str(obstacle) == "its calls are in too many branches"
