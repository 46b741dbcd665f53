"""Lists of recursive values as arguments: they are passed quickly, and those that were passed before quicker still."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest

import relay
from relay import Float, Tensor
from relay.calling import data_marshalling
from relay.codegen.runtime import data_plans
from relay.codegen.runtime.marshalling import ArgumentMarshaller


@relay.data
class Tree:
    class Leaf:
        x: Tensor[Float, (2,)]
        weight: Tensor[Float, ()]

    class Node:
        left: Tree
        right: Tree


@relay
def total(tree):  # type: ignore[no-untyped-def]
    match tree:
        case Tree.Leaf(x, weight):
            return x.sum() * weight
        case Tree.Node(left, right):
            return total(left) * 0.5 + total(right)


@relay
def all_of(trees: list[Tree], one: Tree, more: list[Tree], scale):  # type: ignore[no-untyped-def]
    result = 0.0
    for tree in trees:
        result += total(tree)
    for tree in more:
        result += 2.0 * total(tree)
    return result * scale + total(one)


def leaf(value: float) -> Any:
    return Tree.Leaf(np.array([value, 2.0], np.float32), np.float32(0.5))


def grown(random: np.random.Generator, leaves: int) -> Any:
    if leaves == 1:
        return leaf(random.normal())
    left = int(random.integers(1, leaves))
    return Tree.Node(grown(random, left), grown(random, leaves - left))


@pytest.fixture(autouse=True)
def small_plans(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also a few objects are put together by plans."""
    monkeypatch.setattr(data_plans, "SMALLEST", 1)


def check(*arguments: Any) -> None:
    expected = np.asarray(all_of.interpret(*arguments))
    for _ in range(4):
        np.testing.assert_allclose(np.asarray(all_of(*arguments)), expected, rtol=1e-5)


def test_lists_of_any_length(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(1)
    trees = [grown(random, 1 + n % 5) for n in range(12)]
    check(trees[:2], trees[2], trees[3:6], np.float32(2))
    check(trees[:3], trees[2], trees[:1], np.float32(2))

    def slow(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr(ArgumentMarshaller, "add", slow)
    before = len(all_of.programs())
    for count in (1, 4, 9):
        for _ in range(3):
            found = float(all_of(trees[:count], trees[3], trees[count:], np.float32(1)))
        assert found == pytest.approx(float(all_of.interpret(trees[:count], trees[3], trees[count:], np.float32(1))))
    assert len(all_of.programs()) == before


def test_values_that_share_parts() -> None:
    a = leaf(1.0)
    b = Tree.Node(a, a)
    c = Tree.Node(b, leaf(3.0))
    d = Tree.Node(c, b)
    check([a, b, c, d], d, [b, b, a], np.float32(1))
    check([a] * 6, a, [d, d], np.float32(1))
    check([], a, [], np.float32(1))


def test_arrays_that_are_written_to() -> None:
    """What an array in a field holds now is what is passed."""
    random = np.random.default_rng(2)
    trees = [grown(random, 4) for _ in range(5)]
    check(trees, trees[0], trees[:2], np.float32(1))
    below = trees[3]
    while isinstance(below, Tree.Node):
        below = below.right
    below.x[0] += 5.0
    check(trees, trees[0], trees[:2], np.float32(1))


def test_a_value_is_not_walked_over_again(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(3)
    trees = [grown(random, 6) for _ in range(4)]
    check(trees, trees[1], trees[:2], np.float32(1))
    walks: list[int] = []
    visit = data_marshalling.PoolFiller._visit

    def counted(self: Any, pending: list[Any], *rest: Any) -> bool:
        walks.append(len(pending))
        return visit(self, pending, *rest)

    monkeypatch.setattr(data_marshalling.PoolFiller, "_visit", counted)
    all_of(trees[::-1], trees[2], trees[:1], np.float32(1))
    assert walks == []
    all_of([*trees, leaf(2.0)], trees[2], trees[:1], np.float32(1))
    assert walks == [7]


def test_plans_end_with_their_values() -> None:
    plans = data_plans.Plans(lambda value: None)
    values = [leaf(float(n)) for n in range(5)]
    plans.find(values)
    assert len(plans._known) == 5
    del values[1:]
    gc.collect()
    assert len(plans._known) == 1


@relay.data
class Rose:
    class Rose:
        x: Tensor[Float, (2,)]
        children: list[Rose]


@relay
def weighed(rose: Rose):  # type: ignore[no-untyped-def]
    result = rose.x.sum()
    for place, child in enumerate(rose.children):
        result += weighed(child) * (place + 1.0)
    return result


@relay
def all_weighed(roses: list[Rose], one: Rose):  # type: ignore[no-untyped-def]
    return np.stack([weighed(rose) for rose in roses]).sum() - weighed(one)


def rose(value: float, *children: Any) -> Any:
    return Rose.Rose(np.array([value, 2.0], np.float32), list(children))


def check_roses(roses: list[Any], one: Any) -> None:
    expected = np.asarray(all_weighed.interpret(roses, one))
    for _ in range(4):
        np.testing.assert_allclose(np.asarray(all_weighed(roses, one)), expected, rtol=1e-5)


def test_values_that_hold_lists_of_values(monkeypatch: pytest.MonkeyPatch) -> None:
    """They go straight into pools, with what they share, and with lists of no elements."""
    a = rose(1.0)
    b = rose(2.0, a, rose(3.0), a)
    c = rose(4.0, b, a)
    check_roses([a, b, c, b], c)
    check_roses([a], a)
    check_roses([rose(5.0, rose(6.0))], b)

    def slow(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr(ArgumentMarshaller, "add", slow)
    check_roses([c, rose(7.0, c, b), rose(8.0)], b)


def test_lists_in_values_that_get_other_elements() -> None:
    """Values are fixed, but lists in them are Python's: each call takes what they hold now."""
    below, other = rose(1.0, rose(2.0)), rose(5.0)
    whole = rose(3.0, below, rose(4.0))
    check_roses([whole, other], below)
    below.children.append(rose(6.0, other))
    check_roses([whole, other], below)
    below.children[0] = other
    check_roses([whole, other], below)
    whole.children.clear()
    check_roses([whole, other], below)


def test_values_whose_lists_make_long_chains() -> None:
    chain = rose(0.0)
    for n in range(2000):
        chain = rose(float(n % 3), chain)
    check_roses([chain, chain], rose(1.0))
