"""Recursions over data that are evaluated level by level, against the recursions as they are written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from agreement import assert_close, assert_modes_agree
from generators.by_levels import assert_same, by_levels, groups

import relay as rl
from relay import Float64, Int32, Tensor, relay
from relay.eval.interpreter import run as interpret
from relay.transform import Pipeline
from relay.transform.recursion.structural_recursion import find_obstacles, find_recursions


@rl.data
class Formula:
    class Leaf:
        x: Tensor[Float64, (3,)]

    class Twice:
        inner: Formula
        scale: Tensor[Float64, ()]

    class Both:
        left: Formula
        right: Formula


@rl.data
class Chain:
    class End:
        pass

    class Link:
        x: Tensor[Float64, (3,)]
        rest: Chain


@rl.data
class Even:
    class Stop:
        x: Tensor[Float64, (3,)]

    class Pair:
        left: Odd
        right: Odd


@rl.data
class Odd:
    class Word:
        number: Tensor[Int32, ()]

    class Single:
        inner: Even


@relay
def state(formula, w, b):
    """Two results, arms that differ in their parts and in their tensors, and a branch on what a node holds."""
    match formula:
        case Formula.Leaf(x):
            return np.tanh(x @ w + b), x.sum()
        case Formula.Twice(inner, scale):
            h, s = state(inner, w, b)
            return np.tanh(h @ w) * scale, s * 2.0
        case Formula.Both(left, right):
            h, s = state(left, w, b)
            g, r = state(right, w, b)
            return np.tanh(h @ w + g * s), s + r * 0.5


@relay
def total(formulas: list[Formula], w, b):
    return np.stack([state(f, w, b)[0] * state(f, w, b)[1] for f in formulas]).sum()


@relay
def each(formulas: list[Formula], w, b):
    return [state(f, w, b)[0] for f in formulas]


@relay
def one(formula, w, b):
    return state(formula, w, b)[0]


@relay
def last(chain, w):
    match chain:
        case Chain.End():
            return np.zeros(3)
        case Chain.Link(x, rest):
            return np.tanh(x + last(rest, w) @ w)


@relay
def lasts(chains: list[Chain], w):
    return np.stack([last(c, w) for c in chains])


@relay
def even(tree, w, table):
    match tree:
        case Even.Stop(x):
            return x @ w
        case Even.Pair(left, right):
            a, s = odd(left, table, w)
            b, t = odd(right, table, w)
            return np.tanh(a @ w * s + b * t)


@relay
def odd(tree, table, w):
    match tree:
        case Odd.Word(number):
            return table[number], 2.0
        case Odd.Single(inner):
            h = even(inner, w, table)
            if h.sum() > 0.0:
                h = h * 0.5
            return h, h[0]


@relay
def evens(trees: list[Even], w, table):
    return np.stack([even(t, w, table) for t in trees]).sum(axis=0)


@relay
def doubtful(formula, w):
    """A call in a branch on what another one gives."""
    match formula:
        case Formula.Leaf(x):
            return x @ w
        case Formula.Twice(inner, _):
            return doubtful(inner, w)
        case Formula.Both(left, right):
            h = doubtful(left, w)
            return doubtful(right, w) if h.sum() > 0.0 else h


@relay
def deeper(formula, w, depth, context):
    """Arguments that calls change: by operators, by what a node holds, and as they are."""
    match formula:
        case Formula.Leaf(x):
            return (x @ w + context) * depth
        case Formula.Twice(inner, scale):
            return np.tanh(deeper(inner, w, depth + 1.0, context * scale)) * depth
        case Formula.Both(left, right):
            below = np.tanh(context * 0.5 + depth)
            a = deeper(left, w, depth + 1.0, below)
            b = deeper(right, w, depth * 0.5, context)
            return np.tanh((a + b) @ w)


@relay
def deepest(formulas: list[Formula], w, b):
    return np.stack([deeper(f, w, 1.0, b) for f in formulas]).sum()


@relay
def exchanging(formula, w, v):
    match formula:
        case Formula.Leaf(x):
            return x @ w
        case Formula.Twice(inner, _):
            return np.tanh(exchanging(inner, v, w))
        case Formula.Both(left, right):
            return exchanging(left, w, v) + exchanging(right, v, w)


@relay
def exchanges(formulas: list[Formula], w, v):
    return np.stack([exchanging(f, w, v) for f in formulas]).sum()


@relay
def above(tree, w, n):
    """As `even` and `below` as `odd`, with a number that each counts in its own way."""
    match tree:
        case Even.Stop(x):
            return x @ w * n
        case Even.Pair(left, right):
            return np.tanh(below(left, n + 1.0, w) - below(right, n + 2.0, w))


@relay
def below(tree, n, w):
    match tree:
        case Odd.Word(number):
            return w[number % 3] * n
        case Odd.Single(inner):
            return above(inner, w, n * 0.5) * 2.0


@relay
def counted(trees: list[Even], w, n):
    return np.stack([above(t, w, n) for t in trees]).sum()


@relay
def by_product(formula, w, context):
    match formula:
        case Formula.Leaf(x):
            return x @ w + context
        case Formula.Twice(inner, scale):
            return by_product(inner, w, context @ w) * scale
        case Formula.Both(left, right):
            return by_product(left, w, context) + by_product(right, w, context)


@relay
def in_turn(formula, w, context):
    """The second call is passed what the first one gives."""
    match formula:
        case Formula.Leaf(x):
            return x @ w + context
        case Formula.Twice(inner, scale):
            return in_turn(inner, w, context) * scale
        case Formula.Both(left, right):
            return in_turn(right, w, in_turn(left, w, context))


@relay
def printing(formula, w):
    match formula:
        case Formula.Leaf(x):
            print(x.sum())
            return x @ w
        case Formula.Twice(inner, _):
            return printing(inner, w)
        case Formula.Both(left, right):
            return printing(left, w) + printing(right, w)


pytestmark = pytest.mark.usefixtures("low_effort")

RANDOM = np.random.default_rng(0)
W, B, TABLE = RANDOM.normal(size=(3, 3)), RANDOM.normal(size=3), RANDOM.normal(size=(5, 3))


def formula(leaves: int) -> Any:
    if leaves == 1:
        return Formula.Leaf(RANDOM.normal(size=3))
    if leaves % 3 == 0 and RANDOM.random() < 0.5:
        return Formula.Twice(formula(leaves), np.asarray(RANDOM.normal()))
    left = int(RANDOM.integers(1, leaves))
    return Formula.Both(formula(left), formula(leaves - left))


def even_tree(depth: int) -> Any:
    if depth == 0 or RANDOM.random() < 0.2:
        return Even.Stop(RANDOM.normal(size=3))

    def half() -> Any:
        if RANDOM.random() < 0.4:
            return Odd.Word(np.int32(RANDOM.integers(5)))
        return Odd.Single(even_tree(depth - 1))

    return Even.Pair(half(), half())


def chain(length: int) -> Any:
    made = Chain.End()
    for _ in range(length):
        made = Chain.Link(RANDOM.normal(size=3), made)
    return made


FORMULAS = [formula(n) for n in (1, 5, 3, 8, 2, 6, 1)]


@pytest.mark.parametrize("width", [1, 3])
def test_a_list_of_trees_is_evaluated_by_levels(width: int) -> None:
    assert_same(total, FORMULAS, W, B, width=width, compiled=width == 3)


def test_derivatives_in_weights_and_in_what_trees_hold() -> None:
    assert_same(rl.grad(total, wrt=(0, 1, 2)), FORMULAS, W, B, compiled=True)


def test_one_tree() -> None:
    assert_same(one, formula(9), W, B)


def test_no_trees() -> None:
    module, values = by_levels(total, [], W, B), total.lower([], W, B).values
    assert_close(interpret(module, values), 0.0)


def test_lists_are_batched_along_their_links() -> None:
    assert_same(lasts, [chain(n) for n in (0, 4, 2, 7, 7)], W)
    assert_same(rl.grad(lambda chains, w: (lasts(chains, w) ** 2).sum(), wrt=1), [chain(n) for n in (3, 1, 4)], W)


@pytest.mark.parametrize("wrt", [None, (1, 2)], ids=["value", "gradient"])
def test_functions_of_several_data_types_that_call_each_other(wrt: Any) -> None:
    trees = [even_tree(4) for _ in range(5)]
    function = evens if wrt is None else rl.grad(lambda t, w, table: evens(t, w, table).sum(), wrt=wrt)
    assert_same(function, trees, W, TABLE)


@pytest.mark.parametrize("function", [deepest, exchanges])
def test_arguments_that_calls_change(function: Any) -> None:
    other = B if function is deepest else TABLE[:3]
    assert_same(function, FORMULAS, W, other)
    assert_same(rl.grad(function, wrt=(0, 1, 2)), FORMULAS, W, other, compiled=function is deepest)
    assert_same(function, [], W, other)


def test_arguments_that_functions_of_several_data_types_change() -> None:
    trees = [even_tree(4) for _ in range(4)]
    assert_same(counted, trees, W, np.asarray(0.5))
    assert_same(rl.grad(counted, wrt=(1, 2)), trees, W, np.asarray(0.5))


def test_a_large_argument_that_calls_change_is_no_part_of_levels() -> None:
    wide = np.zeros((40, 40))
    prepared = Pipeline("specialize, structure", stage="typed")(exchanging.typed(FORMULAS[1], W, W))
    assert find_recursions(prepared)
    prepared = Pipeline("specialize, structure", stage="typed")(large_state.typed(FORMULAS[1], W, wide))
    assert not find_recursions(prepared)


@relay
def large_state(formula, w, state):
    match formula:
        case Formula.Leaf(x):
            return x @ w + state.sum()
        case Formula.Twice(inner, scale):
            return large_state(inner, w, state + scale) * 2.0
        case Formula.Both(left, right):
            return large_state(left, w, state) + large_state(right, w, state)


def test_a_tree_that_is_in_the_list_twice_and_twice_in_another() -> None:
    shared = formula(4)
    trees = [shared, Formula.Both(shared, shared), shared]
    assert_same(total, trees, W, B)


def test_thin_levels_run_as_the_recursion() -> None:
    assert_same(lasts, [chain(50)], W, width=16, fewest=8)
    assert_same(total, FORMULAS, W, B, width=16, fewest=16)


def test_a_program_is_batched_at_the_level_of_calls() -> None:
    """With products of some size nothing is to be asked for; a deep chain runs, too."""
    deep, wide = chain(10_000), [chain(int(n)) for n in RANDOM.integers(1, 6, 40)]
    assert_modes_agree(long_lasts, wide, np.eye(3), np.full((3, 400), 0.1))
    assert groups(long_lasts.core(wide, np.eye(3), np.full((3, 400), 0.1)))
    found = long_lasts([deep], np.eye(3) * 0.5, np.full((3, 400), 0.1))
    assert np.isfinite(np.asarray(found)).all()


@relay
def long_last(chain, w, v):
    match chain:
        case Chain.End():
            return np.zeros(3)
        case Chain.Link(x, rest):
            return np.tanh(x + long_last(rest, w, v) @ w) + (x @ v).mean()


@relay
def long_lasts(chains: list[Chain], w, v):
    return np.stack([long_last(c, w, v) for c in chains])


@rl.data
class Nary:
    class Inner:
        x: Tensor[Float64, (3,)]
        children: list[Nary]


@relay
def reversed_parts(tree, w):
    """A list of parts, whose elements are read in another order than theirs."""
    match tree:
        case Nary.Inner(x, children):
            h = x
            for i in range(len(children)):
                h = np.tanh(h + reversed_parts(children[-1 - i], w))
            return h @ w


@relay
def wandering(formula, w):
    match formula:
        case Formula.Leaf(x):
            return x @ w
        case Formula.Twice(inner, scale):
            return wandering(Formula.Leaf(np.full(3, scale)), w) + wandering(inner, w)
        case Formula.Both(left, right):
            return wandering(left, w) + wandering(right, w)


CHILDREN = Nary.Inner(RANDOM.normal(size=3), [Nary.Inner(RANDOM.normal(size=3), []) for _ in range(3)])

OBSTACLES: list[tuple[Any, tuple[Any, ...], str, str]] = [
    (doubtful, (FORMULAS[1], W), "a branch that depends on what another call gives", "right, w) if h.sum()"),
    (by_product, (FORMULAS[1], W, B), "a call changes a parameter by a product", "by_product(inner, w, context @ w)"),
    (in_turn, (FORMULAS[1], W, B), "what a call passes on depends on the result", "in_turn(right, w, in_turn("),
    (printing, (FORMULAS[1], W), "it does more than computing arrays", "print(x.sum())"),
    (reversed_parts, (CHILDREN, W), "otherwise than by a call on each element", "children[-1 - i]"),
    (wandering, (FORMULAS[1], W), "a call is not on a field of the value", "wandering(Formula.Leaf("),
]


@pytest.mark.parametrize(("function", "arguments", "text", "line"), OBSTACLES, ids=[o[0].__name__ for o in OBSTACLES])
def test_recursions_that_stay(function: Any, arguments: Any, text: str, line: str) -> None:
    """What is in the way is said, with its line; the results are those of the recursion."""
    prepared = Pipeline("specialize, structure", stage="typed")(function.typed(*arguments))
    assert not find_recursions(prepared)
    ((name, obstacle),) = find_obstacles(prepared).items()
    assert name.startswith(function.__name__) and text in str(obstacle)
    assert obstacle.span is not None
    assert line in Path(__file__).read_text(encoding="utf-8").splitlines()[obstacle.span.line - 1]
    if function is not printing:
        assert_modes_agree(function, *arguments)


@relay
def some(formulas, w, b):
    return [state(f, w, b)[0] for f in formulas]


def test_calls_on_the_items_of_a_list_of_known_length_are_one_forest() -> None:
    assert_same(some, FORMULAS[:3], W, B)
    assert groups(by_levels(some, FORMULAS[:3], W, B)) == 1


@relay
def replaced(formulas: list[Formula], w, b):
    """The elements are replaced while the loop runs."""
    sum_ = np.zeros(3)
    for i in range(len(formulas)):
        sum_ += state(formulas[i], w, b)[0]
        if i + 1 < len(formulas):
            formulas[i + 1] = formulas[0]
    return sum_


def test_a_list_that_changes_while_it_is_read() -> None:
    assert_same(replaced, FORMULAS, W, B)


def test_a_program_for_all_shapes_of_trees() -> None:
    """No tree, and no number of trees, makes another program."""
    leaf = Formula.Leaf(np.ones(3))
    pair = Formula.Both(leaf, leaf)
    for trees in ([leaf, pair], [Formula.Both(pair, leaf)], [leaf] * 5):
        each(trees, W, B)
    assert len(each.programs()) == 1


def test_a_recursion_that_is_called_itself() -> None:
    """The function that a call enters, or that is differentiated, is a recursion."""
    assert_same(last, chain(6), W)
    assert_same(deeper, FORMULAS[3], W, np.asarray(1.5), B)
    assert_same(rl.grad(norm, wrt=(0, 1)), FORMULAS[3], W)


@relay
def norm(formula, w):
    match formula:
        case Formula.Leaf(x):
            return ((x @ w) ** 2).sum()
        case Formula.Twice(inner, scale):
            return norm(inner, w) * scale
        case Formula.Both(left, right):
            return np.sqrt(norm(left, w) + norm(right, w) ** 2)
