"""`vjp`, `jvp`, `jacobian` and `hessian` of functions that take and return records, lists and trees."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from agreement import assert_modes_agree

import relay
from relay import Float32, Float64, Int32, List, Tensor
from relay.errors import ExecutionError, TypeCheckError, TypeMismatch


@relay.data
class Pair:
    a: Tensor[Float64, ()]
    b: Tensor[Float64, ()]


@relay.data
class Layer:
    weight: Tensor[Float64, (2, 2)]
    bias: Tensor[Float64, (2,)]
    repeat: Tensor[Int32, ()]


@relay.data
class Network:
    first: Layer
    scale: Tensor[Float32, ()]


@relay.data
class Tree:
    class Leaf:
        value: Tensor[Float64, ()]
        label: Tensor[Int32, ()]

    class Node:
        left: Tree
        right: Tree


W = np.array([[0.5, -0.3], [0.2, 0.8]])
X = np.array([1.0, -2.0])
LAYER = Layer(W, np.array([0.1, 0.2]), np.int32(2))
PAIR = Pair(np.float64(2.0), np.float64(3.0))


def a_list(*values: float) -> Any:
    found = List.Nil()
    for value in reversed(values):
        found = List.Cons(np.float64(value), found)
    return found


def numbers(xs: Any) -> list[float]:
    found = []
    while not isinstance(xs, List.Nil):
        found.append(float(xs.head))
        xs = xs.tail
    return found


@relay
def swapped(p: Pair):
    return Pair(p.a * p.b, p.a + p.b)


@relay
def apply(layer: Layer, x):
    for _ in range(layer.repeat):
        x = relay.tanh(layer.weight @ x + layer.bias)
    return x


@relay
def squares(xs, c):
    return xs.map(lambda v: v * v * c)


@relay
def grown(x, n):
    found = []
    for i in range(n):
        found.append(x * x * float(i))
    return found


@relay
def scaled(tree: Tree, c: Tensor[Float64, ()]) -> Tree:
    match tree:
        case Tree.Leaf(value, label):
            return Tree.Leaf(value * value * c, label)
        case Tree.Node(left, right):
            return Tree.Node(scaled(left, c), scaled(right, c * 2.0))


def test_records_in_and_out() -> None:
    value, pullback = relay.vjp(swapped, PAIR)
    assert (float(value.a), float(value.b)) == (6.0, 5.0)
    pulled = pullback(Pair(np.float64(1.0), np.float64(10.0)))
    assert (float(pulled.a), float(pulled.b)) == (13.0, 12.0)
    value, tangent = relay.jvp(swapped, (PAIR,), (Pair(np.float64(1.0), np.float64(0.0)),))
    assert type(tangent) is Pair
    assert (float(tangent.a), float(tangent.b)) == (3.0, 1.0)


def test_fields_without_a_gradient_are_none() -> None:
    _, pullback = relay.vjp(apply, LAYER, X)
    found, _ = pullback(np.array([1.0, 2.0]))
    assert found.repeat is None
    direction = Layer(np.ones((2, 2)), np.ones(2), None)
    _, tangent = relay.jvp(apply, (LAYER, X), (direction, None))
    expected = sum(float(np.sum(np.asarray(d))) for d in (found.weight, found.bias))
    np.testing.assert_allclose(np.asarray(tangent) @ [1.0, 2.0], expected)

    @relay
    def moved(layer: Layer, gradient):
        return layer.weight - 0.5 * gradient.weight

    np.testing.assert_allclose(moved(LAYER, found), W - 0.5 * np.asarray(found.weight))  # a gradient as an argument


def test_records_of_records_and_of_two_dtypes() -> None:
    @relay
    def run(network: Network, x):
        return Network(relay.replace(network.first, bias=network.first.weight @ x), network.scale * network.scale)

    network = Network(LAYER, np.float32(3.0))
    direction = Network(Layer(np.ones((2, 2)), np.zeros(2), None), np.float32(1.0))
    _, tangent = relay.jvp(run, (network, X), (direction, None))
    np.testing.assert_allclose(tangent.first.bias, np.ones((2, 2)) @ X)
    assert tangent.first.repeat is None
    assert float(tangent.scale) == 6.0
    _, pullback = relay.vjp(run, network, X)
    pulled, dx = pullback(tangent)
    np.testing.assert_allclose(dx, W.T @ np.asarray(tangent.first.bias))
    assert float(pulled.scale) == 36.0


def test_lists_in_and_out() -> None:
    xs, ones = a_list(1.0, 2.0, 3.0), a_list(1.0, 1.0, 1.0)
    value, pullback = relay.vjp(squares, xs, np.float64(2.0))
    assert numbers(value) == [2.0, 8.0, 18.0]
    dxs, dc = pullback(ones)
    assert numbers(dxs) == [4.0, 8.0, 12.0] and float(dc) == 14.0
    _, tangent = relay.jvp(squares, (xs, np.float64(2.0)), (a_list(0.0, 0.0, 1.0), np.float64(1.0)))
    assert numbers(tangent) == [1.0, 4.0, 21.0]
    with pytest.raises(ExecutionError, match="a tangent of Cons was expected, found Nil"):
        pullback(a_list(1.0))


def test_trees_in_and_out() -> None:
    leaf = Tree.Leaf(np.float64(3.0), np.int32(1))
    tree = Tree.Node(leaf, Tree.Node(leaf, leaf))
    value, tangent = relay.jvp(scaled, (tree, np.float64(1.0)), (None, np.float64(1.0)))
    assert float(value.right.right.value) == 36.0
    assert float(tangent.right.right.value) == 36.0 and tangent.right.right.label is None
    _, pullback = relay.vjp(scaled, tree, np.float64(1.0))
    pulled, dc = pullback(tangent)
    assert float(pulled.left.value) == 6.0 * 9.0
    assert float(dc) == 9.0 * 9.0 + 18.0 * 18.0 + 36.0 * 36.0


def test_a_long_list_needs_no_stack() -> None:
    xs = a_list(*np.linspace(0.0, 1.0, 20_000))
    _, pullback = relay.vjp(squares, xs, np.float64(1.0))
    np.testing.assert_allclose(numbers(pullback(xs)[0])[-1], 2.0)


def test_lists_that_grow() -> None:
    _, pullback = relay.vjp(grown, np.float64(2.0), np.int32(4))
    assert float(pullback([np.float64(1.0)] * 4)[0]) == 24.0
    with pytest.raises(ExecutionError, match="a list of as many cotangents"):
        pullback([np.float64(1.0)] * 3)
    value, tangent = relay.jvp(grown, (np.float64(2.0), np.int32(4)), (np.float64(1.0), None))
    assert sum(map(float, tangent)) == 24.0 and len(value) == len(tangent) == 4

    @relay
    def pairs(x, n):
        found = [(x, x)]
        for _ in range(n):
            found.append((x * x, x))
        return found

    with pytest.raises(TypeCheckError, match="no derivative of all elements of a dynamic list without tensors"):
        relay.jvp(pairs, (np.float64(2.0), np.int32(4)), (np.float64(1.0), None))


def test_inside_of_programs_and_again() -> None:
    @relay
    def length(p: Pair):
        along = relay.jvp(swapped, (p,), (Pair(p.b, p.a),))[1]
        value, pull = relay.vjp(swapped, p)
        back = pull(along)
        return along.a * along.b + back.a * back.b + value.a

    assert relay.check_gradient(length, PAIR) < 1e-7
    for function in (length, relay.grad(length)):
        found, expected = function(PAIR), function.interpret(PAIR)
        np.testing.assert_allclose(float(getattr(found, "a", found)), float(getattr(expected, "a", expected)))


def test_jacobians_and_hessians_of_records_are_dicts() -> None:
    @relay
    def cubic(p: Pair):
        return p.a * p.a * p.b

    found = relay.hessian(cubic)(PAIR)
    np.testing.assert_allclose([[float(found[i][j]) for j in "ab"] for i in "ab"], [[6.0, 4.0], [4.0, 0.0]])
    found = relay.jacobian(swapped)(PAIR)
    np.testing.assert_allclose([[float(found[i][j]) for j in "ab"] for i in "ab"], [[3.0, 2.0], [1.0, 1.0]])
    by_layer = relay.jacobian(apply, wrt="layer")(LAYER, X)
    assert by_layer["weight"].shape == (2, 2, 2) and by_layer["repeat"] is None
    with pytest.raises(TypeCheckError, match="all elements are those of tensors, structures and records"):
        relay.jacobian(squares, wrt="xs")(a_list(1.0), np.float64(1.0))


def test_a_tangent_of_another_type_is_refused() -> None:
    with pytest.raises(TypeMismatch, match="a tangent of Pair was expected, found Layer"):
        relay.jvp(swapped, (PAIR,), (LAYER,))
    with pytest.raises(TypeMismatch):
        relay.jvp(swapped, (PAIR,), (np.ones(3),))


# ---- what is kept beside gradients


@relay
def with_history(x, n):
    history = []
    for i in range(n):
        x = relay.sin(x) + float(i)
        history.append((x, i))
    return history[0][0] * x, history


def test_a_list_that_grows_is_kept() -> None:
    x = np.float64(0.7)
    first, second = np.sin(0.7), np.sin(np.sin(0.7)) + 1.0
    for derivative in (
        relay.grad(with_history, wrt=0, output=0, keeping=(1,)),
        relay.grad(with_history, wrt=0, output=0, keeping=1),
    ):
        gradient, history = assert_modes_agree(derivative, x, 2)
        np.testing.assert_allclose([float(v) for v, _ in history], [first, second])
        assert [int(i) for _, i in history] == [0, 1]
        slope = np.cos(0.7) * (second + first * np.cos(first))
        np.testing.assert_allclose(float(gradient), slope)
    (value, history), gradient = relay.value_and_grad(with_history, wrt=0, output=0)(x, 2)
    np.testing.assert_allclose(float(value), float(history[0][0]) * float(history[1][0]))


def test_options_are_positions() -> None:
    with pytest.raises(TypeCheckError, match="output is the position of a component of the result, found 'loss'"):
        relay.grad(with_history, output="loss")
    with pytest.raises(TypeCheckError, match="keeping holds positions of components of the result, found 'aux'"):
        relay.grad(with_history, keeping=("aux",))

    @relay
    def inside(x):
        return relay.grad(lambda v: (v * v, v), keeping=("aux",))(x)

    with pytest.raises(TypeCheckError, match="keeping holds positions") as found:
        inside(np.float64(1.0))
    assert "lambda v" in str(found.value)


@relay.data
class Cell:
    class Empty:
        pass

    class Full:
        at: relay.Ref[Tensor[Float64, ()]]


def test_references_in_kept_data() -> None:
    @relay
    def run(x):
        r = relay.ref(x)
        cell = Cell.Full(r) if x > 0.0 else Cell.Empty()
        match cell:
            case Cell.Full(at):
                at.value = at.value * x
            case Cell.Empty():
                r.value = x
        return r.value, cell

    @relay
    def outside(x):
        gradient, cell = relay.grad(run, output=0, keeping=1)(x)
        match cell:
            case Cell.Full(at):
                return at.value * gradient
            case Cell.Empty():
                return gradient

    for x in (np.float64(2.0), np.float64(-2.0)):
        np.testing.assert_allclose(outside(x), outside.interpret(x))
        assert relay.check_gradient(outside, x) < 1e-7
    np.testing.assert_allclose(outside(np.float64(2.0)), 16.0)  # x^2 in the cell, and 2 x


# ---- gradients whose structure is known before the dtypes


@relay
def recursive_entry(p, n):
    return p["a"] if n == 0 else recursive_entry(p, n - 1) * 2.0


@relay
def first_entry(p, n):
    return recursive_entry(p, n)[0]


@relay
def step_of_one(p, n):
    g = relay.grad(first_entry, wrt="p")(p, n)
    return p["a"] - g["a"]


@relay
def step_of_all(p, n):
    g = relay.grad(first_entry)(p, n)
    return p["a"] - g[0]["a"]


@relay
def step_with_value(p, n):
    value, g = relay.value_and_grad(first_entry, wrt=0)(p, n)
    return p["a"] - g["a"] * value


@relay
def step_of_literals(n):
    value, (da, db) = relay.value_and_grad(lambda a, b: a * b * 2.0)(3.0, 1.5)
    return value + da - db


def test_parts_of_a_gradient_by_the_number_of_a_call() -> None:
    """The dtype of `n`, a number of Python, is found last."""
    p = {"a": np.ones(3)}
    np.testing.assert_array_equal(step_of_one.interpret(p, 2), [-3, 1, 1])
    np.testing.assert_array_equal(step_of_all.interpret(p, 2), [-3, 1, 1])
    np.testing.assert_array_equal(step_with_value.interpret(p, 2), [-15, 1, 1])
    assert float(step_of_literals.interpret(1)) == 9.0 + 3.0 - 6.0
