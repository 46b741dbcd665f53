"""Draws with implicit keys, and parameters: their handlers, in both modes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from agreement import assert_modes_agree

import relay
from relay import relay as program

KEY = relay.random.key(0)
X = np.float32([1, 2, 3])


@program
def noisy(x):
    return x + relay.rng.normal(x.shape)


@program
def total_noise(x):
    return (x * relay.rng.normal((3,))).sum()


@program
def chosen(x, rounds):
    for _ in range(rounds):
        x = noisy(x) if x[0] > 0 else x - relay.rng.uniform(x.shape)
    return x


@program
def recursive(x, rounds):
    return x if rounds == 0 else recursive(noisy(x), rounds - 1)


@program
def linear(x, name, size):
    w = relay.param(f"{name}.w", (x.shape[1], size), lambda shape: relay.rng.normal(shape) / shape[0] ** 0.5)
    return x @ w + relay.param(f"{name}.b", (size,), relay.ones)


@program
def network(x):
    h = linear(x, "first", 4)
    for _ in range(2):
        h = relay.tanh(linear(h, "shared", 4))
    return linear(relay.dropout(h, relay.rng.key(), 0.5), "last", 2)


def draws(count: int, chosen: Any = None) -> list[Any]:
    """What so many draws of three numbers give, by keys that are passed on."""
    key, found = KEY, []
    for i in range(count):
        mine, key = relay.random.split(key)
        found.append((relay.random.uniform if chosen and chosen[i] else relay.random.normal)(mine, (3,)))
    return found


@pytest.mark.usefixtures("low_effort")
def test_draws_in_loops_and_branches_split_the_key_in_their_order() -> None:
    positive, negative = draws(4), draws(4, [True] * 4)
    assert positive[0][0] > 0
    handled = relay.rng.handle(chosen)
    assert_modes_agree(handled, KEY, X, 3, expected=X + positive[0] + positive[1] + positive[2])
    assert_modes_agree(handled, KEY, -9 * X, 3, expected=-9 * X - negative[0] - negative[1] - negative[2])


@pytest.mark.usefixtures("low_effort")
def test_draws_of_a_recursion() -> None:
    assert_modes_agree(relay.rng.handle(recursive), KEY, X, 3, expected=X + sum(draws(3)))


@pytest.mark.usefixtures("low_effort")
def test_a_block_has_its_key_and_gives_back_the_one_around() -> None:
    @program
    def blocks(key, x):
        def later():
            return relay.rng.normal((3,))

        with relay.rng.use(key):
            if x[0] > 100:
                return x, x, x
            a = later()
            with relay.rng.use(key):
                b = later()
            c = noisy(x)
        return a, b, c

    one, two = draws(2)
    for run in (blocks, blocks.interpret):
        a, b, c = run(KEY, X)
        np.testing.assert_array_equal(a, one)
        np.testing.assert_array_equal(b, one)
        np.testing.assert_allclose(c, X + two, rtol=1e-6)
        np.testing.assert_array_equal(run(KEY, 200 * X)[0], 200 * X)


@pytest.mark.usefixtures("low_effort")
def test_derivatives_see_the_draws() -> None:
    @program
    def product(x):
        return (noisy(x) * relay.rng.uniform((3,))).sum()

    _, second = draws(2, [False, True])
    slope = relay.grad(relay.rng.handle(product), wrt="x")
    assert_modes_agree(slope, KEY, X, expected=second)
    inside = program(lambda key, x: relay.rng.handle(relay.grad(product))(key, x))
    assert_modes_agree(inside, KEY, X, expected=second)


@pytest.mark.usefixtures("low_effort")
def test_examples_draw_one_after_the_other() -> None:
    rows = np.zeros((2, 3), np.float32)
    batched = program(lambda key, x: relay.rng.handle(relay.vmap(noisy))(key, x))
    assert_modes_agree(batched, KEY, rows, expected=np.stack(draws(2)))


@pytest.mark.usefixtures("low_effort")
def test_parameters_of_a_network() -> None:
    x = np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32)
    params = relay.params.init(network)(KEY, x)
    shapes = {name: value.shape for name, value in params.items()}
    assert shapes == {
        "first.w": (3, 4),
        "first.b": (4,),
        "shared.w": (4, 4),
        "shared.b": (4,),
        "last.w": (4, 2),
        "last.b": (2,),
    }
    mine, _ = relay.random.split(KEY)
    np.testing.assert_allclose(params["first.w"], relay.random.normal(mine, (3, 4)) / 3**0.5, rtol=1e-6)
    assert (params["last.b"] == 1).all()
    applied = relay.rng.handle(relay.params.apply(network))
    p = {name: np.asarray(value) for name, value in params.items()}
    h = x @ p["first.w"] + p["first.b"]
    for _ in range(2):
        h = np.tanh(h @ p["shared.w"] + p["shared.b"])
    h = relay.dropout(h, relay.random.split(KEY)[0], 0.5)
    expected = h @ p["last.w"] + p["last.b"]
    np.testing.assert_allclose(applied(KEY, params, x), expected, rtol=1e-5)
    np.testing.assert_allclose(applied.interpret(KEY, params, x), expected, rtol=1e-5)
    loss = program(lambda params, key, x: (applied(key, params, x) ** 2).sum())
    relay.check_gradient(loss, params, KEY, x, wrt="params")


def test_parameters_have_the_dtype_of_what_they_meet() -> None:
    params = relay.params.init(network).interpret(KEY, np.ones((2, 3)))
    assert {value.dtype for value in params.values()} == {np.dtype("float64")}


def test_types_tell_the_effects() -> None:
    assert str(noisy.type).split(" where")[0].endswith("! {rng}")
    assert "! {param, rng}" in str(network.type)
    assert "!" not in str(relay.rng.handle(noisy).type)
    assert str(relay.params.apply(network).type).count("! {rng}") == 1


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: noisy(X), r"relay.rng.normal draws with an implicit key.*call relay.rng.handle\(noisy\)\(key"),
        (lambda: linear(np.ones((2, 3)), "a", 2), "linear has the parameter 'a.w'.*relay.params.init\\(linear\\)"),
        (lambda: relay.rng.handle(noisy)(X, X), r"a key of random numbers is Tensor\[uint32, \(2,\)\], found"),
        (lambda: relay.rng.handle(relay.params.apply(network))(KEY, {"w": X}, np.ones((2, 3))), "no value for the par"),
        (
            lambda: relay.params.apply(program(lambda: relay.param("w", (2,), relay.ones)))({"w": X}),
            r"the parameter 'w' must be Tensor\[float32, \(2,\)\], found Tensor\[float32, \(3,\)\]",
        ),
        (
            lambda: relay.params.init(program(lambda x: relay.param("w", (2,), lambda s: x[0] * relay.ones(s))))(
                KEY, X
            ),
            "the initializer of the parameter 'w' uses a value that is computed",
        ),
        (lambda: relay.rng.normal((3,)), "relay.rng.normal works inside decorated functions only"),
        (lambda: relay.rng.handle(lambda key: key)(KEY, X), "has a parameter key, and rng.handle adds one"),
    ],
)
def test_mistakes(call: Any, message: str) -> None:
    with pytest.raises(relay.RelayError, match="(?s)" + message):
        call()


def test_a_derivative_without_a_handler_says_what_to_call() -> None:
    for call, argument, written in (
        (relay.grad(total_noise), X[0], "relay.grad(total_noise)"),
        (relay.grad(relay.grad(total_noise)), X[0], "relay.grad(relay.grad(total_noise))"),
        (relay.vmap(total_noise), X, "total_noise"),
    ):
        with pytest.raises(relay.TypeCheckError, match="no handler around it") as caught:
            call(argument)
        assert caught.value.help == f"call relay.rng.handle({written})(key, ..)"


def test_what_is_evaluated_often_must_not_draw() -> None:
    @program
    def jacobian(key, x):
        with relay.rng.use(key):
            return relay.jacobian(noisy)(x)

    with pytest.raises(relay.TypeCheckError, match="must be pure, but it draws random numbers"):
        jacobian(KEY, X)
