"""Programs with recursion over data: calls on few objects and on many, with one program or two forms of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import relay as rl
from relay import Float64, Tensor, relay
from relay.compilation.recursion_forms import MOST_OBJECTS
from relay.compilation.stages import CompiledSignature
from relay.transform.recursion.level_batching import recursions_by_levels


@rl.data
class Tree:
    class Leaf:
        x: Tensor[Float64, ()]

    class Node:
        left: Tree
        right: Tree


@relay
def state(tree, w):
    match tree:
        case Tree.Leaf(x):
            return np.full((32,), x)
        case Tree.Node(left, right):
            return np.tanh(state(left, w) @ w + state(right, w))


@relay
def whole(tree, w):
    return state(tree, w).sum()


@relay
def of_list(trees: list[Tree], w):
    return np.stack([state(tree, w) for tree in trees]).sum()


@relay
def sum_of(tree):
    match tree:
        case Tree.Leaf(x):
            return x
        case Tree.Node(left, right):
            return sum_of(left) + sum_of(right)


pytestmark = pytest.mark.usefixtures("low_effort")

RANDOM = np.random.default_rng(0)
W = RANDOM.normal(size=(32, 32)) / 8


def balanced(levels: int) -> Any:
    if levels == 0:
        return Tree.Leaf(float(RANDOM.normal()))
    return Tree.Node(balanced(levels - 1), balanced(levels - 1))


SMALL, LARGE = balanced(2), balanced(7)  # 7 and 255 objects


def new(function: Any) -> Any:
    """The function without programs."""
    function.reload()
    return function


def form(function: Any, *arguments: Any) -> CompiledSignature:
    """What a call of these arguments runs."""
    signature: CompiledSignature = function.prepare_compiled(arguments, {})[0]
    return signature


def has_levels(signature: CompiledSignature) -> bool:
    return "'group" in rl.to_text(signature.core)


@pytest.mark.parametrize("repeats", [1, 2])
@pytest.mark.parametrize("function", [whole, rl.grad(whole, wrt=1)], ids=["value", "gradient"])
def test_levels_are_compiled_when_a_call_has_many_objects(function: Any, repeats: int) -> None:
    new(function)
    for tree, by_levels in ((SMALL, False), (LARGE, True), (SMALL, True)):
        for _ in range(repeats):  # from the second on in short
            found = np.asarray(function(tree, W))
            np.testing.assert_allclose(found, np.asarray(function.interpret(tree, W)), rtol=1e-9)
        assert has_levels(form(function, tree, W)) is by_levels
    assert len(function.programs()) == 1
    assert function.programs()[0].uses == 3 * repeats


def test_few_objects_need_no_levels() -> None:
    new(whole)
    whole(SMALL, W)
    assert not has_levels(form(whole, SMALL, W))
    assert has_levels(whole.lower(SMALL, W))  # the program for all trees
    assert form(whole, SMALL, W).most_objects == MOST_OBJECTS


def test_the_objects_of_lists_are_counted_together() -> None:
    new(of_list)
    few, many = [balanced(2) for _ in range(3)], [balanced(2) for _ in range(20)]
    for trees, by_levels in ((few, False), (few[:2], False), (many, True), (few, True)):
        for _ in range(2):
            np.testing.assert_allclose(of_list(trees, W), of_list.interpret(trees, W), rtol=1e-9)
        assert has_levels(form(of_list, trees, W)) is by_levels


def test_a_recursion_without_levels_has_one_program() -> None:
    new(sum_of)
    for tree in (SMALL, LARGE, SMALL, LARGE):
        np.testing.assert_allclose(sum_of(tree), sum_of.interpret(tree), rtol=1e-9)
    assert form(sum_of, SMALL).program is form(sum_of, LARGE).program
    assert form(sum_of, LARGE).most_objects is None


def test_a_compiled_program_is_for_all_numbers_of_objects() -> None:
    new(whole)
    executable = whole.compile(SMALL, W)
    for tree in (SMALL, LARGE):
        np.testing.assert_allclose(executable(tree, W), whole.interpret(tree, W), rtol=1e-9)
    assert has_levels(form(whole, SMALL, W))


def test_levels_by_the_functions_that_are_called() -> None:
    from relay.transform.pipeline import Pipeline

    prepare = Pipeline.for_level(2, ("lower", "prepare"))
    without = Pipeline.for_level(2, ("lower", "prepare"), without=("batch_recursion",))
    assert recursions_by_levels(prepare(whole.typed(SMALL, W)))
    assert not recursions_by_levels(without(whole.typed(SMALL, W)))
