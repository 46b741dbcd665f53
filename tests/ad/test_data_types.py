"""Gradients with respect to data types: a value of the same form, with None where there is no gradient."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from agreement import assert_modes_agree, leaves

import relay
from relay import Float64, Int32, List, Tensor, Tree
from relay.errors import DifferentiationError
from relay.ir.validation.check import check

A = relay.type_var("A")
Scalar = Tensor[Float64, ()]


@relay.data
class Layer:
    weight: Tensor[Float64, (3, 2)]
    bias: Tensor[Float64, (3,)]
    repeat: Tensor[Int32, ()]


@relay.data
class Network:
    layers: List[Layer]
    scale: Scalar


@relay.data
class Expression:
    class Number:
        value: Scalar

    class Sum:
        left: Expression
        right: Expression

    class Power:
        base: Expression
        exponent: Tensor[Int32, ()]


@relay
def evaluate(e: Expression) -> Scalar:
    match e:
        case Expression.Number(value):
            return value
        case Expression.Sum(left, right):
            return evaluate(left) + evaluate(right)
        case Expression.Power(base, exponent):
            b = evaluate(base)
            y = 1.0
            for _ in range(exponent):
                y = y * b
            return y


@relay
def apply(layer: Layer, x):
    for _ in range(layer.repeat):
        x = relay.tanh(layer.weight @ x + layer.bias)[:2]
    return relay.sum(x)


@relay
def network(net: Network, x):
    total = 0.0
    for layer in net.layers:
        total = total + apply(layer, x)
    return total * net.scale


@relay
def norm(xs):
    total = 0.0
    for x in xs:
        total = total + relay.sum(x * x)
    return total


@relay
def tree_product(t):
    return t.fold(lambda v: v * v, lambda a, b: a * b)


def layer(repeat: int, seed: int = 0) -> Layer:
    rng = np.random.default_rng(seed)
    return Layer(rng.standard_normal((3, 2)), rng.standard_normal(3), np.int32(repeat))


X = np.array([0.5, -1.0])


def well_formed(function: Any, *arguments: Any) -> Any:
    """What both modes give, where the core program is well formed."""
    check(function.core(*arguments), "structured")
    return assert_modes_agree(function, *arguments, rtol=1e-10)


def test_a_record_of_gradients() -> None:
    found = well_formed(relay.grad(apply, wrt="layer"), layer(2), X)
    assert isinstance(found, Layer)
    assert found.weight.shape == (3, 2)
    assert found.bias.shape == (3,)
    assert found.repeat is None
    assert relay.check_gradient(apply, layer(2), X) < 1e-7


def test_data_in_data_and_lists() -> None:
    net = Network(relay.List.Cons(layer(1), relay.List.Cons(layer(2, 1), relay.List.Nil())), np.float64(2.0))
    gradient, dx = well_formed(relay.grad(network), net, X)
    assert isinstance(gradient, Network)
    assert isinstance(gradient.layers, List.Cons)
    assert gradient.layers.tail.head.repeat is None
    assert dx.shape == (2,)
    assert relay.check_gradient(network, net, X) < 1e-7


def test_a_recursive_sum_type() -> None:
    e = Expression.Sum(
        Expression.Power(Expression.Number(np.float64(2.0)), np.int32(3)), Expression.Number(np.float64(5.0))
    )
    found = well_formed(relay.grad(evaluate), e)
    assert isinstance(found, Expression.Sum)
    assert found.left.exponent is None
    assert float(found.left.base.value) == 12.0
    assert float(found.right.value) == 1.0


def test_polymorphic_lists_and_trees() -> None:
    xs = List.Nil()
    for k in range(3):
        xs = List.Cons(np.array([1.0 * k, 2.0]), xs)
    found = well_formed(relay.grad(norm), xs)
    assert [x.tolist() for x in map(np.asarray, (found.head, found.tail.head))] == [[4.0, 4.0], [2.0, 4.0]]
    tree = Tree.Node(Tree.Leaf(np.float64(2.0)), Tree.Node(Tree.Leaf(np.float64(3.0)), Tree.Leaf(np.float64(1.0))))
    found = well_formed(relay.grad(tree_product), tree)
    assert [float(v) for v in leaves(found)] == [36.0, 24.0, 72.0]


def test_what_the_result_does_not_depend_on_has_gradient_zero() -> None:
    @relay
    def first(t: Tree[Scalar]) -> Scalar:
        match t:
            case Tree.Leaf(v):
                return v * v
            case Tree.Node(left, _):
                return first(left)

    tree = Tree.Node(Tree.Leaf(np.float64(3.0)), Tree.Node(Tree.Leaf(np.float64(4.0)), Tree.Leaf(np.float64(5.0))))
    assert [float(v) for v in leaves(well_formed(relay.grad(first), tree))] == [6.0, 0.0, 0.0]


def test_gradients_of_the_same_type_can_be_used_as_parameters() -> None:
    @relay
    def step(t):
        return tree_product(relay.grad(tree_product)(t))

    tree = Tree.Node(Tree.Leaf(np.float64(0.5)), Tree.Node(Tree.Leaf(np.float64(0.75)), Tree.Leaf(np.float64(1.5))))
    well_formed(step, tree)
    assert relay.check_gradient(step, tree) < 1e-6  # the second derivative of a function of data
    well_formed(relay.grad(step), tree)


def test_fields_are_read_from_a_gradient() -> None:
    @relay
    def size(p, x):
        g = relay.grad(apply)(p, x)[0]
        return relay.sum(g.weight * g.weight) + relay.sum(g.bias)

    well_formed(size, layer(2), X)
    assert relay.check_gradient(size, layer(2), X) < 1e-6


def test_a_shared_part_has_a_gradient_at_each_place() -> None:
    shared = Tree.Leaf(np.float64(2.0))
    found = well_formed(relay.grad(tree_product), Tree.Node(shared, shared))
    assert [float(v) for v in leaves(found)] == [16.0, 16.0]


def test_data_without_floats_has_none() -> None:
    @relay
    def counted(t, x):
        return x * float(t.fold(lambda v: v, lambda a, b: a + b))

    nothing, dx = well_formed(relay.grad(counted), Tree.Node(Tree.Leaf(2), Tree.Leaf(3)), np.float64(7.0))
    assert nothing is None
    assert float(dx) == 5.0
    with pytest.raises(DifferentiationError, match="no gradient with respect to t, which is"):
        relay.grad(counted, wrt="t")(Tree.Leaf(2), np.float64(7.0))


def test_a_custom_gradient_takes_and_returns_data() -> None:
    @relay
    def energy(p, x):
        return relay.sum(p.weight @ x) + relay.sum(p.bias)

    @energy.def_gradient
    def energy_gradient(saved, seed):
        p, x = saved
        return relay.grad(plain, wrt=0)(p, x), 100.0 * seed * x

    @relay
    def plain(p, x):
        return 10.0 * (relay.sum(p.weight @ x) + relay.sum(p.bias))

    @relay
    def loss(p, x):
        return 2.0 * energy(p, x)

    dp, dx = well_formed(relay.grad(loss), layer(1), X)
    np.testing.assert_allclose(dp.bias, [10.0] * 3)
    np.testing.assert_allclose(dx, 200.0 * X)


def test_a_long_list() -> None:
    xs = List.Nil()
    for k in range(2000):
        xs = List.Cons(np.array([float(k)]), xs)
    found = relay.grad(norm)(xs)
    assert float(found.head[0]) == 2 * 1999.0


def test_static_and_default_parameters_keep_their_places() -> None:
    @relay(static_argnames="k")
    def f(k, x, y=2.0):
        return relay.sum(x * y) * k

    assert_modes_agree(relay.grad(f), 3, X, expected=(None, np.array([6.0, 6.0]), None))
    value, _ = relay.value_and_grad(f)(3, X)
    np.testing.assert_allclose(value, 6.0 * np.sum(X))
    *gradients, kept = relay.grad(f, keeping=(0,))(3, X)
    assert [g is None for g in gradients] == [True, False, True]
    np.testing.assert_allclose(kept, 6.0 * np.sum(X))

    @relay
    def inside(x):
        return relay.sum(relay.grad(f)(3, x)[1] * x)

    np.testing.assert_allclose(inside(X), 6.0 * np.sum(X))


@relay.data
class Reading:
    class Single:
        value: Tensor[Float64, ()]
        count: Tensor[Int32, ()]

    class Several:
        first: Reading
        second: Reading


@relay
def weighed(reading):
    match reading:
        case Reading.Single(value, count):
            return value * value * float(count)
        case Reading.Several(first, second):
            return weighed(first) + weighed(second)


@relay
def with_a_constant_structure(x):
    tree = Reading.Several(Reading.Single(x, 1), Reading.Single(x * x, 2))
    held = relay.stop_gradient({"a": x, "b": [x * x, 3], "c": None, "tree": tree})
    return held["a"] * x + held["b"][0] + weighed(held["tree"]) * x


def test_a_whole_structure_is_a_constant() -> None:
    x = np.float64(3.0)
    assert_modes_agree(relay.grad(with_a_constant_structure), x, expected=3.0 + 9.0 + 2.0 * 81.0)
    np.testing.assert_allclose(with_a_constant_structure(x), 9.0 + 9.0 + 171.0 * 3.0)
