"""Examples that leave loops in different ways: by `break`, `continue` and `return`, in branches and loops inside."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from agreement import assert_agree, leaves
from example_programs import loops_over_examples

import relay
from relay.eval.interpreter import run
from relay.transform.pipeline import PHASES, Pipeline

pytestmark = pytest.mark.usefixtures("low_effort")

RNG = np.random.default_rng(0)
W, X, K = RNG.normal(size=(4, 4)), RNG.normal(size=(9, 4)), np.array([0, 1, 6, 3, 2, 5, 6, 4, 3], np.int32)


@relay
def returned(w, x, k):  # type: ignore[no-untyped-def]
    n = 0
    while n < k:
        x = np.tanh(x @ w)
        if x[0] > 0.3:
            return x @ w, n
        n += 1
    return x, -n


@relay
def returned_from_two_loops(w, x, k):  # type: ignore[no-untyped-def]
    for i in range(k):
        m = 0
        while m < 4:
            x = np.tanh(x @ w)
            if x[0] > 0.5:
                return x @ w, i
            if x[1] > 0.7:
                break
            m += 1
        if x[2] > 0.6:
            continue
        x = x + 0.1
    return x, k


@relay
def left_in_both_arms(w, x, k):  # type: ignore[no-untyped-def]
    n = 0
    while True:
        x = np.tanh(x @ w)
        if x[0] > 0.3:
            if x[1] > 0.2:
                break
            x = x * 0.5
        else:
            if n > k:
                break
            n += 1
        n += 1
        if n > 8:
            break
    return x, n


@relay
def next_in_both_arms(w, x, k):  # type: ignore[no-untyped-def]
    n = 0
    while n < k:
        n += 1
        if x[0] > 0.0:
            if x[1] > 0.0:
                continue
            x = x @ w
        elif x[2] > 0.0:
            x = -x
            continue
        x = np.tanh(x @ w)
    return x


@relay
def last_in_an_arm(w, x, k):  # type: ignore[no-untyped-def]
    for _ in range(k):
        x = np.tanh(x @ w)
        if x[0] > 0.0:
            x = x * 0.5
            if x.sum() > 0.4:
                break
    else:
        x = x @ w
    return x


@relay
def perhaps(w, x, k):  # type: ignore[no-untyped-def]
    best = None
    n = 0
    while n < k:
        x = np.tanh(x @ w)
        if x[0] > 0.2:
            best = x
        n += 1
    return x if best is None else best @ w


@relay
def two_loops_and_a_branch(w, x, k):  # type: ignore[no-untyped-def]
    n = 0
    while n < k:
        m, y = 0, x @ w
        while abs(y).sum() > 1.0 and m < 6:
            y = 0.5 * np.tanh(y @ w) if y[0] > 0.0 else 0.4 * y
            m += 1
        x = x + 0.1 * y
        n += 1 + m % 2
    return x


PROGRAMS = [
    returned,
    returned_from_two_loops,
    left_in_both_arms,
    next_in_both_arms,
    last_in_an_arm,
    perhaps,
    two_loops_and_a_branch,
]


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_values_and_gradients(f: relay.RelayFunction) -> None:
    batch = relay.vmap(f, (None, 0, 0))
    assert loops_over_examples(batch, W, X, K) == 0

    @relay
    def loss(w, x, k):  # type: ignore[no-untyped-def]
        results = batch(w, x, k)
        return sum([(np.asarray(leaf) ** 2).sum() for leaf in relay.tree.leaves(results)]), results

    gradient = relay.grad(loss, wrt=("w", "x"), has_aux=True)
    optimized = run(Pipeline.for_level(2, PHASES, checked=True)(gradient.typed(W, X, K)), [W, X, K])
    results = [optimized, gradient(W, X, K)] if f is returned else [optimized]
    for result in results:
        for found, expected in zip(leaves(result), leaves(gradient.interpret(W, X, K)), strict=True):
            assert_agree(found, expected, rtol=1e-7, atol=1e-9)


def test_failures_of_an_arm() -> None:
    @relay
    def checked(w, x, k):  # type: ignore[no-untyped-def]
        n = 0
        while n < k:
            x = np.tanh(x @ w)
            if n == 5:
                raise ValueError("too many")
            n += 1
        return x

    batch = relay.vmap(checked, (None, 0, 0))
    few = K < 6
    assert loops_over_examples(batch, W, X[few], K[few]) == 0
    assert_agree(batch(W, X[few], K[few]), batch.interpret(W, X[few], K[few]), rtol=1e-9)
    for mode in (batch, batch.interpret):
        with pytest.raises(ValueError, match="too many"):
            mode(W, X, K)


def test_small_programs_stay_in_lanes() -> None:
    """A `return` in a loop of scalars does not take it from there."""

    @relay
    def first_large(a, b):  # type: ignore[no-untyped-def]
        n = 0
        while n < 30:
            a = a * b
            if a > 9.0:
                return n
            n += 1
        return -1

    batch = relay.vmap(first_large)
    a, b = RNG.uniform(0.5, 1.0, 70), RNG.uniform(0.9, 1.5, 70)
    assert loops_over_examples(batch, a, b) == 1
    expected: Any = batch.interpret(a, b)
    assert_agree(batch(a, b), expected)
