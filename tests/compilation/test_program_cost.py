"""Cost of programs: formulas against counts by hand, for values and derivatives, in loops, branches and recursion."""

from __future__ import annotations

import numpy as np
import pytest

import relay
from relay import Float32, Tensor
from relay import relay as decorated
from relay.operator.cost import POLYNOMIAL


@decorated
def layer(x, w):
    return relay.tanh(x @ w)


def test_a_layer_costs_what_its_operators_do() -> None:
    n, k, m = 7, 5, 3
    cost = layer.cost(np.zeros((n, k)), np.zeros((k, m)))
    assert cost.exact and not cost.reasons
    assert cost.flops == 2 * n * k * m + POLYNOMIAL * n * m
    assert cost.bytes == 8 * (n * k + k * m + n * m)
    assert str(cost.formula.flops) == f"2*w_1*x_0*x_1 + {POLYNOMIAL}*w_1*x_0"
    assert cost.at(x_0=70).flops == 10 * cost.flops
    assert [row.operator for row in cost.operators] == ["matmul", "tanh"]


def test_products_of_integers_cost_what_those_of_floats_do() -> None:
    @decorated
    def products(x, w):
        return x @ w

    @decorated
    def images(x, w):
        return relay.conv2d(x, w, padding=1)

    n, k, m = 7, 5, 3
    x, w = np.ones((n, k), np.float32), np.ones((k, m), np.float32)
    image, kernel = np.ones((2, 4, 6, 6), np.float32), np.ones((3, 4, 3, 3), np.float32)
    cases = [
        (products, (x, w), "quantized_dense", 2 * n * k * m),
        (images, (image, kernel), "quantized_conv2d", 2 * 2 * 3 * 36 * 4 * 9),
    ]
    for function, arguments, operator, expected in cases:
        assert function.cost(*arguments).flops == expected
        integral = relay.to_int8(function, [arguments]).function.cost(*arguments)
        assert [row.flops for row in integral.operators if row.operator == operator] == [expected]
    assert products.cost(x.astype(np.int32), w.astype(np.int32)).flops == 2 * n * k * m


def test_types_are_arguments_enough() -> None:
    cost = layer.cost(Tensor[Float32, (7, 5)], Tensor[Float32, (5, 3)])
    assert cost.bytes == 4 * (7 * 5 + 5 * 3 + 7 * 3)


def test_memory_is_arguments_results_and_workspace() -> None:
    @decorated
    def twice(x, w):
        return (x @ w) @ w

    n, k = 64, 32
    cost = twice.cost(np.zeros((n, k)), np.zeros((k, k)))
    arrays = 8 * (n * k + k * k + n * k)
    between = 8 * n * k
    assert arrays + between <= cost.memory <= arrays + between + 8 * (n * k + k * k)  # and the products' panels
    assert cost.at(x_0=10 * n).memory > 5 * cost.memory


def test_a_gradient_is_counted_forward_and_backward() -> None:
    @decorated
    def loss(x, w):
        return relay.sum(x @ w * 1.5)

    n, k, m = 7, 5, 3
    forward, both = (
        loss.cost(np.zeros((n, k)), np.zeros((k, m))),
        relay.grad(loss).cost(np.zeros((n, k)), np.zeros((k, m))),
    )
    assert forward.flops >= 2 * n * k * m
    products = [row for row in both.operators if row.operator == "matmul"]
    assert products and all(row.is_backward for row in products)
    assert both.flops >= 2 * 2 * n * k * m


def test_a_loop_counts_its_rounds() -> None:
    @decorated
    def rows(xs):
        total = 0.0
        for row in xs:
            total = total + relay.sum(relay.exp(row)) * total
        return total

    cost = rows.cost(np.zeros((6, 4)))
    assert cost.exact
    exponentials = next(row for row in cost.operators if row.operator == "exp")
    assert str(exponentials.flops) == f"{POLYNOMIAL}*xs_0*xs_1"
    assert cost.at(xs_0=60).flops == 10 * cost.flops


def test_what_depends_on_values_is_an_estimate_that_says_so() -> None:
    @decorated
    def halved(x, flag):
        while relay.sum(x) > 1.0:
            x = x * 0.5
        if flag:
            x = relay.exp(x)
        return x[x > 0.5]

    cost = halved.cost(np.zeros(40), True)
    assert not cost.exact
    text = "\n".join(cost.reasons)
    assert "the rounds of a loop are known when the program runs" in text
    assert "of a branch the most expensive arm counts" in text
    assert "is known when the program runs" in text
    assert cost.flops >= 40 * (1 + 1 + POLYNOMIAL)


def test_recursion_counts_once() -> None:
    @decorated
    def power(x, n: int):
        return x if n == 0 else x * power(x, n - 1) + relay.sum(power(x, n - 1))

    cost = power.cost(np.zeros(9), np.int32(3))
    assert any("calls itself: its body counts once" in reason for reason in cost.reasons)


def test_sums_by_line_and_operator() -> None:
    @decorated
    def lines(x):
        y = relay.sin(x) + relay.cos(x)
        return relay.sum(relay.sin(y))

    cost = lines.cost(np.zeros(10))
    by_line, by_operator = cost.by_line(), cost.by_operator()
    assert sum(cost._number(row.flops) for row in by_line) == cost.flops
    assert sum(cost._number(row.flops) for row in by_operator) == cost.flops
    assert by_operator[0].operator == "sin" and str(by_operator[0].flops) == f"{2 * POLYNOMIAL}*x_0"
    assert {row.text for row in by_line} == {"y = relay.sin(x) + relay.cos(x)", "return relay.sum(relay.sin(y))"}
    assert "sin" in str(cost) and "for x_0 = 10" in str(cost)


@pytest.mark.parametrize("groups", [1, 2])
def test_a_convolution(groups: int) -> None:
    n, c, h, out = 2, 4, 8, 6
    x, w = Tensor[Float32, (n, c, h, h)], Tensor[Float32, (out, c // groups, 3, 3)]

    @decorated
    def conv(x, w):
        return relay.conv2d(x, w, padding=1, groups=groups)

    assert conv.cost(x, w).flops == 2 * n * out * h * h * (c // groups) * 9


def test_a_size_that_there_is_not() -> None:
    with pytest.raises(KeyError, match="layer has no size 'n'; it has x_0, x_1, w_1"):
        layer.cost(np.zeros((7, 5)), np.zeros((5, 3))).at(n=3)


def test_mistakes_are_told_as_by_a_call() -> None:
    with pytest.raises(relay.ShapeError):
        layer.cost(np.zeros((7, 5)), np.zeros((4, 3)))
