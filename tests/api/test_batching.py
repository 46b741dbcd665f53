"""`relay.vmap`: what it means, in Python and inside programs, and what it refuses."""

from __future__ import annotations

from collections.abc import Callable

import attrs
import numpy as np
import pytest
from agreement import assert_modes_agree, assert_modes_raise

import relay
from relay import ExecutionError, Int32, RelayError, Tensor, TypeCheckError, TypeMismatch

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(5, 3)), RNG.normal(size=(5, 3))
W, LABELS = RNG.normal(size=(3, 4)), RNG.normal(size=(5, 4))


@relay
def dot(a, b):
    return (a * b).sum()


@relay
def loss(w, x, y):
    return ((np.tanh(x @ w) - y) ** 2).sum()


@pytest.mark.parametrize("count", [0, 1, 2, 7, 33])
def test_a_call_for_each_example(count: int) -> None:
    x, y = RNG.normal(size=(2, count, 3))
    assert_modes_agree(relay.vmap(dot), x, y, expected=(x * y).sum(1))


def test_axes() -> None:
    assert_modes_agree(relay.vmap(dot, 1), X, Y, expected=(X * Y).sum(0))
    assert_modes_agree(relay.vmap(dot, (0, -1)), X, Y.T, expected=(X * Y).sum(1))
    assert_modes_agree(relay.vmap(dot, {"b": None}), X, Y[0], expected=X @ Y[0])
    scaled = relay(lambda a, b, scale=2.0: (a * b).sum() * scale)
    np.testing.assert_allclose(relay.vmap(scaled, (0, None)).interpret(X, Y[0]), 2 * (X @ Y[0]))
    outer = relay(lambda a, b: (a[:, None] * b[None, :], a))
    rows = np.einsum("ni,nj->nij", X, Y)
    assert_modes_agree(relay.vmap(outer, out_axes=(2, 1)), X, Y, expected=(np.moveaxis(rows, 0, 2), X.T))
    assert_modes_agree(relay.vmap(outer, out_axes=-1), X, Y, expected=(np.moveaxis(rows, 0, 2), X.T))
    twice = relay(lambda a: 2.0 * a)
    assert_modes_agree(relay.vmap(twice, None, axis_size=3), X, expected=np.stack([2 * X] * 3))


def test_of_vmap() -> None:
    products = relay.vmap(relay.vmap(dot, (None, 0)), (0, None))
    assert_modes_agree(products, X, Y, expected=X @ Y.T)


@relay
def inside(x, y):
    scale = x.sum()
    return relay.vmap(lambda a: relay.vmap(lambda b: (a * b).sum() * scale)(y))(x)


def test_inside_of_programs() -> None:
    assert_modes_agree(inside, X, Y, expected=X @ Y.T * X.sum())
    assert relay.check_gradient(relay(lambda x, y: inside(x, y).sum()), X, Y) < 1e-6


@relay
def layer(p, x):
    return {"h": np.tanh(p["w"] @ x + p["b"]), "n": 3}


def test_each_example_has_a_key_of_those_that_one_is_split_into() -> None:
    @relay
    def noisy(key, x):
        return x + relay.random.uniform(key, (3,), dtype=relay.Float64)

    key = relay.random.key(7)
    expected = np.stack([noisy.interpret(k, x) for k, x in zip(relay.random.split(key, 5), X, strict=True)])
    assert_modes_agree(relay.vmap(noisy, ("split", 0)), key, X, expected=expected)
    np.testing.assert_array_equal(relay.vmap(noisy, {"key": "split"}).interpret(key, X), expected)
    gradients = relay.vmap(relay.grad(relay(lambda key, x: (noisy(key, x) ** 2).sum()), wrt=1), ("split", 0))
    np.testing.assert_allclose(gradients.interpret(key, X), 2 * expected)


@relay
def drawn(key):
    first, second = relay.random.split(key, 2)
    chosen = relay.random.bernoulli(first, 0.5, (3,))
    return relay.random.normal(second, (2, 2)) * 2.0, chosen, relay.random.randint(first, 0, 9, (2,))


def test_keys_along_an_axis_draw_what_each_draws() -> None:
    keys = relay.random.split(relay.random.key(3), 6)
    for batch, given in ((relay.vmap(drawn), keys), (relay.vmap(relay.vmap(drawn)), np.stack([keys, keys[::-1]]))):
        for found, expected in zip(batch(given), batch.interpret(given), strict=True):
            np.testing.assert_array_equal(found, expected)


@attrs.frozen
class State:
    place: relay.Tensor[relay.Float64, (relay.Any,)]
    speed: relay.Tensor[relay.Float64, (relay.Any,)]


def test_structures() -> None:
    p = {"w": RNG.normal(size=(5, 2, 3)), "b": RNG.normal(size=2)}
    h = np.tanh(np.einsum("nij,nj->ni", p["w"], X) + p["b"])
    f = relay.vmap(layer, ({"w": 0, "b": None}, 0))
    assert_modes_agree(f, p, X, expected={"h": h, "n": np.full(5, 3, np.int32)})
    f = relay.vmap(layer, ({"w": 0, "b": None}, 0), {"h": 1, "n": 0})
    assert_modes_agree(f, p, X, expected={"h": h.T, "n": np.full(5, 3, np.int32)})
    pairs = relay.vmap(relay(lambda t: (t[0] - t[1][0], [t[0], None])))
    difference, (left, nothing) = pairs((X, [Y]))
    np.testing.assert_allclose(difference, X - Y)
    assert nothing is None
    np.testing.assert_array_equal(left, X)


@relay
def root(a):
    s = 0.0
    while s * s < a:
        s = s + 0.25
    if a > 2.0:
        return s, a * 2.0
    return -s, a


@relay
def factorial(n: Tensor[Int32, ()]):
    return 1 if n <= 1 else n * factorial(n - 1)


def test_control_flow_that_differs() -> None:
    a = np.array([0.5, 1.0, 3.0, 7.0, -1.0])
    rounds = np.ceil(np.sqrt(np.maximum(a, 0)) * 4) / 4
    expected = np.where(a > 2, rounds, -rounds), np.where(a > 2, 2 * a, a)
    assert_modes_agree(relay.vmap(root), a, expected=expected)
    assert_modes_agree(relay.vmap(factorial), np.arange(6, dtype=np.int32), expected=np.int32([1, 1, 2, 6, 24, 120]))


@relay
def mean_loss(w, x, y):
    return relay.vmap(loss, (None, 0, 0))(w, x, y).mean()


def test_derivatives_inside_and_outside() -> None:
    single = [np.asarray(relay.grad(loss, wrt=0)(W, x, y)) for x, y in zip(X, LABELS, strict=True)]
    gradients = relay.vmap(relay.grad(loss, wrt=0), (None, 0, 0))
    assert_modes_agree(gradients, W, X, LABELS, expected=np.stack(single))
    assert_modes_agree(relay.grad(mean_loss, wrt=0), W, X, LABELS, expected=np.mean(single, axis=0))
    assert relay.check_gradient(mean_loss, W, X, LABELS) < 1e-6
    cubes = relay(lambda a: (a**3).sum())
    assert_modes_agree(relay.vmap(relay.hessian(cubes)), X, expected=np.stack([np.diag(6 * x) for x in X]))
    squares = relay.vmap(relay.jacobian(relay(lambda a: a**2)))
    assert_modes_agree(squares, X, expected=np.stack([np.diag(2 * x) for x in X]))


@relay
def counted(x):
    seen = relay.ref(0.0)

    def visit(a):
        relay.write(seen, relay.read(seen) + a.sum())
        print("at", relay.read(seen))
        return relay.read(seen)

    return relay.vmap(visit)(x)


def test_effects_come_in_the_order_of_examples(capsys: pytest.CaptureFixture[str]) -> None:
    x = np.arange(6.0).reshape(3, 2)
    for run in (counted, counted.interpret):
        np.testing.assert_array_equal(run(x), [1.0, 6.0, 15.0])
        assert capsys.readouterr().out == "at 1.0\nat 6.0\nat 15.0\n"


MISTAKES: list[tuple[Callable[[], object], type[RelayError], str]] = [
    (lambda: relay.vmap(dot)(X, 1.0), TypeMismatch, "the examples are along axis 0 of b, which is a scalar"),
    (lambda: relay.vmap(dot, 2)(X, Y), TypeMismatch, r"along axis 2 of a, which is Tensor\[float64, \(5, 3\)\]"),
    (lambda: relay.vmap(dot, (0,))(X, Y), TypeCheckError, "in_axes has 1 entries for 2 parameters: a, b"),
    (lambda: relay.vmap(dot, {"c": 0})(X, Y), TypeCheckError, "there is no parameter 'c'; there are a, b"),
    (lambda: relay.vmap(dot, "a")(X, Y), TypeCheckError, "in_axes is a number, None, a tuple .* found 'a'"),
    (lambda: relay.vmap(dot, None)(X, Y), TypeCheckError, "no argument has an axis of examples"),
    (lambda: relay.vmap(dot, None, axis_size=-1)(X, Y), TypeCheckError, "axis_size is the number of examples"),
    (lambda: relay.vmap(dot, out_axes=1)(X, Y), TypeMismatch, "out_axes is 1; with the axis of the examples"),
    (lambda: relay.vmap(dot, axis=0)(X, Y), TypeCheckError, "vmap has no option 'axis'"),  # type: ignore[call-arg]
    (lambda: relay.vmap(np.sin)(X), TypeMismatch, "vmap needs a function decorated with @relay, found ufunc"),
    (lambda: relay.vmap(relay(lambda a: a[a > 0.0]))(X), TypeCheckError, "whose shape may differ between examples"),
    (lambda: relay.vmap(relay(lambda a: lambda b: a * b))(X), TypeCheckError, "results of examples are stacked"),
]


@pytest.mark.parametrize("number", range(len(MISTAKES)))
def test_mistakes(number: int) -> None:
    call, error, message = MISTAKES[number]
    with pytest.raises(error, match=message) as raised:
        call()
    assert "<relay" not in str(raised.value)


@relay
def uneven(x, y):
    return relay.vmap(dot)(x, y[:3])


def test_numbers_of_examples_that_differ() -> None:
    for caught in assert_modes_raise(uneven, X, Y, error=TypeMismatch, match="a has 5 examples, b has 3"):
        assert "return relay.vmap(dot)(x, y[:3])" in str(caught.value)
    found = assert_modes_raise(relay.vmap(dot), X, Y[:4], error=RelayError, match="examples")
    assert all("<relay" not in str(caught.value) for caught in found)


def test_an_error_of_one_example() -> None:
    @relay
    def picked(x, k):
        return relay.vmap(lambda a: a[k])(x)

    for caught in assert_modes_raise(picked, X, np.int32(5), error=ExecutionError, match="index out of range"):
        assert "a[k]" in str(caught.value) and "<relay" not in str(caught.value)


def test_a_function_with_vmap_has_a_text_before_any_call() -> None:
    """What the examples are is not known then: the shape of the argument, and of the result."""

    @relay.relay
    def squares(x, y):  # type: ignore[no-untyped-def]
        return relay.vmap(lambda a: a * y)(x)

    assert "@relay.vmap" in str(squares)
    assert squares(np.ones((3, 2)), 2.0).shape == (3, 2)
