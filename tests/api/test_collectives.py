"""Collectives along an axis of examples: `relay.psum` and the like, compiled as on the interpreter."""

from __future__ import annotations

import threading
from collections.abc import Callable

import numpy as np
import pytest
from agreement import assert_modes_agree, assert_modes_raise

import relay
from relay import CompileError, ExecutionError, RelayError, TypeCheckError, TypeMismatch

pytestmark = pytest.mark.usefixtures("low_effort")

X = np.array([1.0, 2.0, 5.0])
ROWS = np.random.default_rng(0).normal(size=(3, 2))


def test_what_each_gives() -> None:
    @relay.relay
    def all_of_them(x):
        return (
            relay.psum(x, "i"), relay.pmean({"a": x}, axis_name="i"), relay.pmax(x, "i"), relay.pmin(x, "i"),
            relay.all_gather(x, "i"), relay.all_gather(x, "i", axis=0, tiled=True), relay.axis_index("i"),
            relay.psum(1, "i"), relay.psum(x > 0.0, "i"), relay.psum(2.0, "i"),
        )  # fmt: skip

    total = np.broadcast_to(ROWS.sum(0), (3, 2))
    expected = (
        total, {"a": total / 3}, np.broadcast_to(ROWS.max(0), (3, 2)), np.broadcast_to(ROWS.min(0), (3, 2)),
        np.broadcast_to(ROWS, (3, 3, 2)), np.broadcast_to(ROWS.ravel(), (3, 6)), np.arange(3, dtype=np.int32),
        np.full(3, 3, np.int32), np.broadcast_to((ROWS > 0).sum(0, dtype=np.int32), (3, 2)), np.full(3, 6, np.float32),
    )  # fmt: skip
    assert_modes_agree(relay.vmap(all_of_them, axis_name="i"), ROWS, expected=expected)


def test_of_several_axes() -> None:
    @relay.relay
    def nested(x):
        def inner(a):
            both = relay.psum(a, ("i", "j"))
            return a / both + relay.psum(a, "i"), relay.axis_index(("i", "j")), relay.psum(relay.pmax(a, "j"), "i")

        return relay.vmap(lambda row: relay.vmap(inner, axis_name="j")(row), axis_name="i")(x)

    largest = np.broadcast_to(ROWS.max(1).sum(), (3, 2))
    expected = ROWS / ROWS.sum() + ROWS.sum(0), np.arange(6, dtype=np.int32).reshape(3, 2), largest
    assert_modes_agree(nested, ROWS, expected=expected)


def test_the_inner_one_of_two_axes_with_one_name() -> None:
    of_rows = relay.relay(lambda row: relay.vmap(lambda a: relay.psum(a, "i"), axis_name="i")(row))
    expected = np.broadcast_to(ROWS.sum(1)[:, None], (3, 2))
    np.testing.assert_allclose(relay.vmap(of_rows, axis_name="i").interpret(ROWS), expected)


@relay.relay
def loops(x):
    y = x
    for k in range(3):
        y = y * 0.5 + relay.pmean(y, "i") * np.sin(x)
        if k > 1:
            y = y + relay.pmax(y, "i")
    n = 0
    while relay.psum(y, "i") < 50.0:
        y = y * 1.5
        n += 1
    return y, n


def test_in_loops_and_branches_that_all_examples_take_alike() -> None:
    y = X
    for k in range(3):
        y = y * 0.5 + y.mean() * np.sin(X)
        y = y + y.max() if k > 1 else y
    n = 0
    while y.sum() < 50:
        y, n = y * 1.5, n + 1
    assert_modes_agree(relay.vmap(loops, axis_name="i"), X, expected=(y, np.full(3, n, np.int32)))


def test_derivatives() -> None:
    """The derivative of an example is that of the sum of all of them, as in JAX: the transpose of a sum is a sum."""

    @relay.relay
    def weighted(x):
        return relay.psum(x, "i") ** 2 * x

    total = relay.relay(lambda x: relay.vmap(weighted, axis_name="i")(x).sum())
    expected = X.sum() ** 2 + 2 * X.sum() * X.sum()
    np.testing.assert_allclose(relay.grad(total).interpret(X), expected)
    each = relay.vmap(relay.grad(weighted), axis_name="i")
    assert_modes_agree(each, X, expected=np.full(3, expected))
    squares = relay.relay(lambda x: (relay.vmap(relay.grad(weighted), axis_name="i")(x) ** 2).sum())
    np.testing.assert_allclose(relay.grad(squares)(X), 3 * 2 * expected * 6 * X.sum())
    first = relay.relay(lambda x: loops(x)[0])
    of_loops = relay.vmap(relay.grad(first), axis_name="i")
    outside = relay.grad(relay.relay(lambda x: relay.vmap(first, axis_name="i")(x).sum()))
    np.testing.assert_allclose(of_loops(X), outside.interpret(X), rtol=1e-12)
    np.testing.assert_allclose(of_loops.interpret(X), outside.interpret(X), rtol=1e-12)


def test_derivatives_of_extrema_and_of_what_is_gathered() -> None:
    @relay.relay
    def of_all(x):
        places = relay.all_gather(x, "i")
        return relay.pmax(x, "i") + 2.0 * relay.pmin(x, "i") + places[0] * places[2]

    each = relay.vmap(relay.grad(of_all), axis_name="i")
    assert_modes_agree(each, np.array([5.0, 1.0, 5.0]), expected=np.array([1.5 + 15, 6, 1.5 + 15]))


@relay.relay
def normalized(p, x):
    h = np.tanh(p["w"] @ x + p["b"])
    mean = relay.pmean(h, "batch")
    return (h - mean) / np.sqrt(relay.pmean((h - mean) ** 2, "batch") + 1e-3)


def test_batch_normalization_is_calls_on_all_examples() -> None:
    p = {"w": np.random.default_rng(1).normal(size=(4, 2)), "b": np.zeros(4)}
    batch = relay.vmap(normalized, in_axes=(None, 0), axis_name="batch")
    h = np.tanh(ROWS @ p["w"].T)
    assert_modes_agree(batch, p, ROWS, expected=(h - h.mean(0)) / np.sqrt(h.var(0) + 1e-3))
    assert "loop" not in relay.to_text(batch.lower(p, ROWS).core)
    total = relay.grad(relay.relay(lambda p, x: (batch(p, x) ** 3).sum()))
    np.testing.assert_allclose(total(p, ROWS)[0]["w"], total.interpret(p, ROWS)[0]["w"], rtol=1e-9)


@relay.relay
def of_some(x):
    if x > 1.5:
        return relay.psum(x, "i")
    return x


def test_examples_that_do_not_come_together() -> None:
    batch = relay.vmap(of_some, axis_name="i")
    assert_modes_agree(batch, X + 5, expected=np.full(3, 23.0))
    assert_modes_agree(batch, X[:0], expected=X[:0])
    for caught in assert_modes_raise(batch, X, error=ExecutionError, match="examples do not all come here"):
        assert 'return relay.psum(x, "i")' in str(caught.value)


def test_an_error_of_one_example() -> None:
    @relay.relay
    def positive(x):
        total = relay.psum(x, "i")
        assert x < 4.0, "too large"
        return total

    batch, threads = relay.vmap(positive, axis_name="i"), threading.active_count()
    for first in (X, X[::-1].copy()):
        for caught in assert_modes_raise(batch, first, error=ExecutionError, match="too large"):
            assert "assert x < 4.0" in str(caught.value)
    for thread in threading.enumerate()[threads:]:
        thread.join(timeout=10)
    assert threading.active_count() <= threads  # the other examples' threads have ended


@relay.relay
def recursive(x, n):
    return x if n == 0 else 1.0 + recursive(relay.psum(x, "i"), n - 1)


MISTAKES: list[tuple[Callable[[], object], type[RelayError], str]] = [
    (lambda: relay.psum(X, "i"), TypeCheckError, "relay.psum works inside decorated functions only"),
    (lambda: of_some(X[0]), TypeCheckError, "there is no axis of examples 'i' here"),
    (lambda: relay.vmap(of_some, axis_name="ij")(X), TypeCheckError, "'i' here; there is 'ij'"),
    (lambda: relay.vmap(of_some, axis_name=1)(X), TypeCheckError, "axis_name is a name"),  # type: ignore[arg-type]
    (
        lambda: relay.vmap(relay.relay(lambda x: relay.psum(lambda: x, "i")), axis_name="i")(X),
        TypeMismatch,
        "collectives take tensors",
    ),
    (
        lambda: relay.vmap(relay.relay(lambda x: relay.all_gather(x, "i", axis=2)), axis_name="i")(X),
        TypeMismatch,
        "axis is 2, and what is gathered has 1 axes",
    ),
    (
        lambda: relay.relay(lambda x, n: relay.vmap(lambda a: recursive(a, n), axis_name="i")(x))(X, np.int32(2)),
        CompileError,
        "recursive calls itself, and asks for all examples of an axis",
    ),
]


@pytest.mark.parametrize("number", range(len(MISTAKES)))
def test_mistakes(number: int) -> None:
    call, error, message = MISTAKES[number]
    with pytest.raises(error, match=message) as raised:
        call()
    assert "<relay" not in str(raised.value)


def test_the_text_of_a_loop_along_an_axis() -> None:
    typed = relay.vmap(of_some, axis_name="i").lower(X).typed
    text = relay.to_text(typed)
    assert 'along "i"' in text and relay.parse(text).alpha_hash() == typed.alpha_hash()
    assert relay.parse(text.replace('along "i" ', "")).alpha_hash() != typed.alpha_hash()
