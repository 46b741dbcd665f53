"""Recursions over data whose parts are in lists, against the recursions as they are written."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from generators.by_levels import assert_same

import relay as rl
from relay import Float64, Tensor, relay


@rl.data
class Nary:
    kind: int
    x: Tensor[Float64, (3,)]
    children: list[Nary]


@rl.data
class Group:
    class One:
        member: Member

    class Many:
        members: list[Member]
        first: Group


@rl.data
class Member:
    x: Tensor[Float64, (3,)]
    groups: list[Group]


@relay
def child_sum(tree, w, u):
    """A child-sum LSTM in small: sums, and a product for each child."""
    match tree:
        case Nary(_, x, children):
            s, c = x, np.zeros(3)
            for child in children:
                h, m = child_sum(child, w, u)
                s = s + h
                c = c + np.tanh(h @ u) * m
            c = c + np.tanh(s @ w)
            return np.tanh(c) * s, c


@relay
def attributes(tree: Nary, w):
    """The parts by attributes, after a branch on their number."""
    if len(tree.children) == 0:
        return np.tanh(tree.x @ w)
    h = tree.x
    for i, child in enumerate(tree.children):
        h = np.tanh(h + attributes(child, w) * float(i + 1))
    return h @ w / float(len(tree.children))


@relay
def made_list(tree, w):
    """A list of results, which two loops read."""
    match tree:
        case Nary(kind, x, children):
            states = [np.tanh(made_list(c, w)) * float(kind) for c in children]
            s = x
            for h in states:
                s = s + h
            n = 0.0
            for i in range(len(states)):
                n = n + (states[i] * s).sum() * float(i)
            return np.tanh(s @ w) * n + x


@relay
def twice(tree, w, depth):
    """Two loops over the same parts, with arguments that calls change."""
    match tree:
        case Nary(kind, x, children):
            h = x * depth
            for child in children:
                h = h + twice(child, w, depth + 1.0)
            if kind == 1:
                for child in children:
                    h = h * np.tanh(twice(child, w, depth * 0.5))
            return np.tanh(h @ w)


@relay
def group(g, w):
    match g:
        case Group.One(m):
            return member(m, w) * 2.0
        case Group.Many(members, first):
            h = group(first, w)
            for m in members:
                h = h + member(m, w)
            return np.tanh(h @ w)


@relay
def member(m, w):
    match m:
        case Member(x, groups):
            h = x
            for g in groups:
                h = np.tanh(h - group(g, w))
            return h


@relay
def sums(trees: list[Nary], w, u):
    return sum([(child_sum(t, w, u)[0] * child_sum(t, w, u)[1]).sum() for t in trees])


@relay
def by_attributes(trees: list[Nary], w):
    return np.stack([attributes(t, w) for t in trees]).sum()


@relay
def made_lists(trees: list[Nary], w):
    return np.stack([made_list(t, w) for t in trees]).sum()


@relay
def twices(trees: list[Nary], w):
    return np.stack([twice(t, w, 0.5) for t in trees]).sum()


@relay
def groups(all_: list[Group], w):
    return np.stack([group(g, w) for g in all_]).sum()


pytestmark = pytest.mark.usefixtures("low_effort")

RANDOM = np.random.default_rng(0)
W, U = RANDOM.normal(size=(3, 3)), RANDOM.normal(size=(3, 3))


def nary(size: int) -> Any:
    children, left = [], size - 1
    while left > 0:
        part = int(RANDOM.integers(1, left + 1))
        children.append(nary(part))
        left -= part
    return Nary(int(RANDOM.integers(3)), RANDOM.normal(size=3), children)


def one_group(depth: int) -> Any:
    if depth == 0 or RANDOM.random() < 0.3:
        return Group.One(one_member(depth - 1))
    return Group.Many([one_member(depth - 1) for _ in range(RANDOM.integers(3))], one_group(depth - 1))


def one_member(depth: int) -> Any:
    return Member(RANDOM.normal(size=3), [one_group(depth - 1) for _ in range(RANDOM.integers(3) if depth > 0 else 0)])


NARY, GROUPS = [nary(n) for n in (4, 1, 9, 6, 1, 7)], [one_group(4) for _ in range(4)]

PROGRAMS: list[tuple[Any, tuple[Any, ...]]] = [
    (sums, (NARY, W, U)),
    (by_attributes, (NARY, W)),
    (made_lists, (NARY, W)),
    (twices, (NARY, W)),
    (groups, (GROUPS, W)),
]


@pytest.mark.parametrize(("function", "arguments"), PROGRAMS, ids=[p[0].__name__ for p in PROGRAMS])
def test_parts_in_lists(function: Any, arguments: tuple[Any, ...]) -> None:
    """Values, and derivatives in the weights."""
    assert_same(function, *arguments, compiled=function in (sums, groups))
    wrt = tuple(range(1, len(arguments)))
    assert_same(rl.grad(function, wrt=wrt), *arguments, compiled=function is sums)


def test_a_list_of_very_many_parts_runs_as_the_recursion() -> None:
    """There is no schedule by the number of parts, nor an array for it."""
    deep = nary(1)
    for _ in range(60):
        deep = Nary(0, RANDOM.normal(size=3) * 0.1, [deep])
    wide = Nary(1, np.ones(3), [nary(1) for _ in range(70)])
    assert_same(by_attributes, [deep, wide], W * 0.1)
