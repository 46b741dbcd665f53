"""Derivatives of each example, where an example has loops: they are those of a function of all examples."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from agreement import assert_agree, leaves
from example_programs import loops_over_examples

import relay
from relay import Any as AnySize
from relay import Float64, Int32, Tensor
from relay.eval.interpreter import run
from relay.transform.loops.vectorization import choices_of
from relay.transform.pipeline import PHASES, Pipeline

pytestmark = pytest.mark.usefixtures("low_effort")

RNG = np.random.default_rng(0)
W, X, K = RNG.normal(size=(4, 4)), RNG.normal(size=(6, 4)), np.array([0, 1, 6, 3, 2, 5], np.int32)


@relay
def recurrent(w, x, k):  # type: ignore[no-untyped-def]
    for _ in range(7):
        x = np.tanh(x @ w) + k
    return (x**2).sum()


@relay
def diverging(w, x, k):  # type: ignore[no-untyped-def]
    n = 0
    while n < k:
        x = np.tanh(x @ w)
        if x[0] > 0.3:
            return (x @ w).sum()
        n += 1
    return (x**2).sum()


@relay
def of_two(w, x, k):  # type: ignore[no-untyped-def]
    y = 2.0 * x
    while abs(x).sum() > 1.0:
        x = 0.6 * np.tanh(x @ w)
    return (x * y).sum()


def _assert_batched(f: relay.RelayFunction, *arguments: Any, compiled: bool = False) -> None:
    assert loops_over_examples(f, *arguments) == 0
    _assert_same(f, *arguments, compiled=compiled)


def _assert_same(f: relay.RelayFunction, *arguments: Any, compiled: bool = False) -> None:
    optimized = run(Pipeline.for_level(2, PHASES, checked=True)(f.typed(*arguments)), list(arguments))
    for result in (optimized, f(*arguments)) if compiled else (optimized,):
        for found, expected in zip(leaves(result), leaves(f.interpret(*arguments)), strict=True):
            assert_agree(found, expected, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("f", [recurrent, diverging, of_two], ids=lambda f: f.__name__)
def test_gradients(f: relay.RelayFunction) -> None:
    gradient = relay.vmap(relay.grad(f, wrt=1), (None, 0, 0))
    _assert_batched(gradient, W, X, K, compiled=f is diverging)


def test_results_of_all_forms() -> None:
    _assert_batched(relay.vmap(relay.value_and_grad(recurrent, wrt=1), (None, 0, 0)), W, X, K)
    both = relay.vmap(relay.value_and_grad(recurrent, wrt=(0, 1)))
    _assert_batched(both, np.stack([W] * 6), X, K)
    seeded = relay.vmap(relay.grad(recurrent, wrt=1, seedable=True), (None, 0, 0, 0))
    _assert_batched(seeded, W, X, K, np.arange(6.0))
    one_seed = relay.vmap(relay.grad(recurrent, wrt=1, seedable=True), (None, 0, 0, None))
    _assert_batched(one_seed, W, X, K, np.array(2.0))


def test_of_two_axes_and_of_the_derivative() -> None:
    inner = relay.vmap(relay.grad(recurrent, wrt=1), (None, 0, 0))
    _assert_batched(relay.vmap(inner, (None, 0, None)), W, np.stack([X, -X, 2 * X]), K)

    @relay
    def penalty(w, x, k):  # type: ignore[no-untyped-def]
        return (relay.vmap(relay.grad(diverging, wrt=1), (None, 0, 0))(w, x, k) ** 2).sum()

    _assert_same(relay.grad(penalty, wrt=(0, 1)), W, X, K)


def test_of_any_number_of_examples() -> None:
    @relay
    def each(
        w: Tensor[Float64, (4, 4)], x: Tensor[Float64, (AnySize, 4)], k: Tensor[Int32, (AnySize,)]
    ) -> Tensor[Float64, (AnySize, 4)]:
        return relay.vmap(relay.grad(recurrent, wrt=1), (None, 0, 0))(w, x, k)

    for count in (0, 1, 5):
        _assert_same(each, W, X[:count], K[:count])


def test_derivatives_that_stay_one_by_one(capsys: pytest.CaptureFixture[str]) -> None:
    shared = relay.vmap(relay.grad(recurrent, wrt=0), (None, 0, 0))
    pipeline = Pipeline.for_level(2, ("lower", "prepare"))
    pipeline(shared.typed(W, X, K))
    given = next(record.given for record in pipeline.records if record.name.startswith("vectorize_loops"))
    (text,) = [c.text for c in choices_of(given, will_be_differentiated=True) if "for_index__" in c.text]
    assert text.endswith("a round has a derivative of its own in a value that all rounds share")
    _assert_same(shared, W, X, K)

    @relay
    def printed(w, x, k):  # type: ignore[no-untyped-def]
        for _ in range(k):
            print(k)
            x = x @ w
        return x.sum()

    each = relay.vmap(relay.grad(printed, wrt=1), (None, 0, 0))
    each(W, X[:3], K[:3])
    shown = capsys.readouterr().out
    each.interpret(W, X[:3], K[:3])
    assert shown == capsys.readouterr().out


def test_small_programs_stay_in_lanes() -> None:
    @relay
    def root(a):  # type: ignore[no-untyped-def]
        x = a
        while abs(x * x - a) > 1e-6:
            x = 0.5 * (x + a / x)
        return x

    _assert_same(relay.vmap(relay.grad(root)), RNG.uniform(0.5, 9.0, 70))
    assert loops_over_examples(relay.vmap(relay.grad(root)), RNG.uniform(0.5, 9.0, 70)) == 1
