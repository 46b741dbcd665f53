"""Loop vectorization: rounds that write rows of their own become calls on all rows, and others do not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from agreement import assert_modes_agree
from matrix import everything
from row_programs import row_program

import relay
from relay.ir.expr import Function, Loop, Module
from relay.ir.traverse import walk
from relay.transform.loops.vectorization import remaining_loops
from relay.transform.pipeline import Pipeline

random = np.random.default_rng(3)


def loops(f: relay.RelayFunction, *arguments: Any) -> int:
    """How many loops a program has at level 2."""
    module: Module = Pipeline.for_level(2, ("prepare", "differentiate", "optimize"))(f.lower(*arguments).core)
    functions = [f for f in module.functions.values() if isinstance(f, Function)]
    return sum(isinstance(b.value, Loop) for f in functions for b in walk(f.body))


@relay
def layers(xs, w, b):  # type: ignore[no-untyped-def]
    out = np.zeros((xs.shape[0], 4))
    for i in range(xs.shape[0]):
        out[i] = relay.tanh(xs[i] @ w + b)
    return out


@relay
def added(xs, ys):  # type: ignore[no-untyped-def]
    for i in range(xs.shape[0]):
        xs[i] += ys[i].sum()
    return xs


@relay
def interior(x):  # type: ignore[no-untyped-def]
    y = x.copy()
    for i in range(1, x.shape[0] - 1):
        y[i] = x[i - 1] - 2.0 * x[i] + x[i + 1]
    return y


@relay
def image(x):  # type: ignore[no-untyped-def]
    height, width = x.shape
    out = np.zeros((height, width))
    for i in range(1, height - 1):
        for j in range(1, width - 1):
            total = 0.0
            for k in range(3):
                total += x[i + k - 1, j] * x[i, j + k - 1]
            out[i, j] = total
    return out


@relay
def channels(x):  # type: ignore[no-untyped-def]
    out = np.zeros((x.shape[0], x.shape[1], 2))
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            for c in range(2):
                out[i, j, c] = x[i, j] * (c + 1) + i - j
    return out


@relay
def padded(x):  # type: ignore[no-untyped-def]
    """Reads at places that are there in some rounds only."""
    out = np.zeros(x.shape)
    for i in range(x.shape[0]):
        if i > 0:
            out[i] = x[i - 1] + 1.0
        elif x[i].sum() > 0.0:
            out[i] = -x[i]
    return out


@relay
def scanned(xs, w):  # type: ignore[no-untyped-def]
    """Each round has a recurrence of its own, whose steps it collects."""
    out = np.zeros(xs.shape)
    for i in range(xs.shape[0]):
        h = np.zeros(xs.shape[2])
        for t in range(xs.shape[1]):
            h = relay.tanh(xs[i, t] + h @ w)
            out[i, t] = h
    return out


@relay
def uniform(xs, c):  # type: ignore[no-untyped-def]
    out = np.zeros((xs.shape[0],))
    for i in range(xs.shape[0]):
        out[i] = xs[i].sum() if c else xs[i].max()
    return out


@relay
def looked_up(table, keys):  # type: ignore[no-untyped-def]
    out = np.zeros((keys.shape[0], table.shape[1]))
    for i in range(keys.shape[0]):
        out[i] = table[keys[i]] * i
    return out


@relay
def two(xs):  # type: ignore[no-untyped-def]
    a, b = np.zeros((xs.shape[0],)), np.zeros(xs.shape)
    for i in range(xs.shape[0]):
        largest = xs[i].max()
        a[i] = largest
        b[i] = relay.exp(xs[i] - largest)
    return a, b


SQUARE, WEIGHTS = random.standard_normal((5, 3)), random.standard_normal((3, 4))
PROGRAMS = [
    (layers, (SQUARE, WEIGHTS, np.ones(4)), 0),
    (added, (SQUARE, SQUARE + 1), 0),
    (interior, (SQUARE,), 0),
    (image, (random.standard_normal((5, 6)),), 0),
    (channels, (SQUARE,), 0),
    (padded, (SQUARE,), 0),
    (scanned, (random.standard_normal((4, 3, 2)), random.standard_normal((2, 2))), 1),
    (uniform, (SQUARE, True), 0),
    (looked_up, (SQUARE, np.array([0, 4, 1, 1], np.int32)), 0),
    (two, (SQUARE,), 0),
]


@pytest.mark.parametrize(("f", "arguments", "left"), PROGRAMS, ids=lambda p: getattr(p, "__name__", ""))
def test_rounds_are_computed_at_once(f: relay.RelayFunction, arguments: tuple[Any, ...], left: int) -> None:
    assert loops(f, *arguments) == left
    assert_modes_agree(f, *arguments)


@pytest.mark.parametrize("f", [layers, interior, image, padded, scanned, two], ids=lambda f: f.__name__)
def test_derivatives(f: relay.RelayFunction) -> None:
    arguments = next(given for program, given, _ in PROGRAMS if program is f)
    relay.check_gradient(f, *arguments)


@pytest.mark.parametrize("rows", [1, 2, 3, 7])
def test_any_number_of_rows(rows: int) -> None:
    for f, arguments in ((layers, (WEIGHTS, np.ones(4))), (padded, ()), (interior, ()), (two, ())):
        xs = random.standard_normal((rows, 3))
        np.testing.assert_allclose(f(xs, *arguments)[0], f.interpret(xs, *arguments)[0], rtol=1e-12)


@pytest.mark.parametrize("seed", range(400 if everything() else 6))
def test_random_programs(seed: int) -> None:
    """At two sizes, the second of which is symbolic. Sums may be added in another order."""
    f = relay.from_source(row_program(seed), {"np": np})
    for shape in ((4, 3), (7, 5)):
        given = np.random.default_rng(seed).standard_normal(shape), np.array([0.5, -1.5, 2.0])
        for found, expected in zip(f(*given), f.interpret(*given), strict=True):
            near = 1e-9 if found.dtype == np.float64 else 1e-5  # of numbers that meet no array
            np.testing.assert_allclose(found, expected, rtol=near, atol=near, err_msg=f"seed {seed}")


# ---- what stays a loop


@relay
def running(xs):  # type: ignore[no-untyped-def]
    out = np.zeros(xs.shape)
    total = np.zeros(xs.shape[1])
    for i in range(xs.shape[0]):
        total = relay.tanh(total + xs[i])
        out[i] = total
    return out


@relay
def previous(xs):  # type: ignore[no-untyped-def]
    for i in range(1, xs.shape[0]):
        xs[i] = relay.sin(xs[i - 1])
    return xs


@relay
def printed(xs):  # type: ignore[no-untyped-def]
    for i in range(xs.shape[0]):
        print(i)
        xs[i] = relay.sin(xs[i])
    return xs


@relay
def stopping(xs):  # type: ignore[no-untyped-def]
    for i in range(xs.shape[0]):
        if xs[i].sum() > 1e9:
            break
        xs[i] = relay.sin(xs[i])
    return xs


REASONS = [
    (running, "a round uses the whole of total, which the loop changes"),
    (previous, "a round reads or writes another row than its own"),
    (printed, "a round has an effect, or calls a function"),
    (stopping, "it may end early"),
]


@pytest.mark.parametrize(("f", "reason"), REASONS, ids=lambda p: getattr(p, "__name__", ""))
def test_rounds_that_depend_on_each_other_stay(f: relay.RelayFunction, reason: str) -> None:
    assert loops(f, SQUARE) == 1
    assert_modes_agree(f, SQUARE)
    (left,) = remaining_loops(Pipeline.for_level(2, ("prepare",))(f.lower(SQUARE).core))
    assert left.reason == reason and left.span is not None


# ---- what must not change


def test_an_assertion_that_fails_in_a_round() -> None:
    @relay
    def checked(xs):  # type: ignore[no-untyped-def]
        out = np.zeros((xs.shape[0],))
        for i in range(xs.shape[0]):
            assert xs[i].sum() < 100.0, "too large"
            out[i] = xs[i].sum()
        return out

    assert loops(checked, SQUARE) == 0
    with pytest.raises(relay.ExecutionError, match="too large"):
        checked(SQUARE + np.array([0, 0, 0, 50, 0])[:, None])
    np.testing.assert_allclose(checked(SQUARE), SQUARE.sum(1))


def test_an_index_that_is_out_of_range_in_a_round() -> None:
    with pytest.raises(relay.ExecutionError, match="out of range"):
        looked_up(SQUARE, np.array([0, 5, 1, 1], np.int32))


def test_no_nan_of_arms_that_are_not_taken() -> None:
    @relay
    def roots(xs):  # type: ignore[no-untyped-def]
        out = np.zeros(xs.shape)
        for i in range(xs.shape[0]):
            out[i] = relay.sqrt(xs[i]) if xs[i] > 0.0 else -xs[i]
        return out.sum()

    xs = np.array([4.0, -1.0, 0.0])
    assert loops(roots, xs) == 0
    for f in (roots, relay.grad(roots)):
        assert_modes_agree(f, xs)
    np.testing.assert_allclose(relay.grad(roots)(xs), [0.25, -1, -1])


def test_no_rounds() -> None:
    """A loop that may have none stays, since what is computed before it could fail."""

    @relay
    def some(x, k, n):  # type: ignore[no-untyped-def]
        out = np.zeros((3,))
        for i in range(n):
            out[i] = x[k] + i
        return out

    for n in (0, 2):
        assert_modes_agree(some, np.arange(6.0), 5, n)
    with pytest.raises(relay.ExecutionError, match="out of range"):
        some(np.arange(5.0), 5, 2)
    np.testing.assert_array_equal(some(np.arange(5.0), 5, 0), np.zeros(3))


def test_large_rounds_stay() -> None:
    """A kernel for each round is as fast, and needs less memory."""

    @relay
    def each(xs):  # type: ignore[no-untyped-def]
        out = np.zeros(xs.shape)
        for i in range(xs.shape[0]):
            out[i] = relay.exp(relay.sin(xs[i]) - xs[i].max())
        return out

    assert loops(each, np.zeros((3, 5000))) == 1 and loops(each, np.zeros((3, 500))) == 0


def test_vmap_has_no_loops() -> None:
    @relay
    def network(x, w, v):  # type: ignore[no-untyped-def]
        h = relay.relu(x @ w)
        return (relay.softmax(h @ v) ** 2).sum()

    xs, w, v = random.standard_normal((6, 3)), WEIGHTS, random.standard_normal((4, 2))
    for f in (network, relay.grad(network)):
        batched = relay.vmap(f, in_axes=(0, None, None))
        assert loops(batched, xs, w, v) == 0
        assert_modes_agree(batched, xs, w, v)
