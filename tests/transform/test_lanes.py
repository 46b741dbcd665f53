"""Loops whose rounds run in the lanes of vector registers: values, derivatives, and what may go wrong in a round."""

from __future__ import annotations

import signal
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import relay
from relay.ir.expr import Function, Loop
from relay.ir.traverse import walk
from relay.transform.analysis.lanes import lane_loops
from relay.transform.pipeline import Pipeline

random = np.random.default_rng(5)
SIZES = (64, 77)  # the second makes a program for any size, and is no multiple of the width


@relay
def escape(cx, cy):  # type: ignore[no-untyped-def]
    x, y, n = 0.0, 0.0, 0
    while x * x + y * y < 4.0 and n < 30:
        x, y = x * x - y * y + cx, 2.0 * x * y + cy
        n += 1
    return n, x


@relay
def root(a, b):  # type: ignore[no-untyped-def]
    x = a
    while abs(x * x - a) > 1e-4 * b:
        x = 0.5 * (x + a / x)
    return x


@relay
def branches(a):  # type: ignore[no-untyped-def]
    s, n = a, 0
    while n < 20 and s > 0.1:
        if s > 2.0:
            s = s * 0.5
        elif s > 1.0:
            s = relay.sqrt(s) - 0.2
        else:
            s = s - 0.1 * relay.exp(-s)
        n += 1
    return s


@relay
def nested(a):  # type: ignore[no-untyped-def]
    s = 0.0
    while s < a:
        t = 1.0
        while t < 3.0 * a:
            t = t * 1.5
            if t > 4.0:
                s += 0.25 * t / a
        s = s + 0.2 * a * t
    return s


@relay
def pendulum(x, v, k):  # type: ignore[no-untyped-def]
    for _ in range(12):
        v = v - 0.1 * (k * relay.tanh(x) + 0.1 * v)
        x = x + 0.1 * v
    return x * v


@relay
def vectors(p, v):  # type: ignore[no-untyped-def]
    """The state of a particle is an array."""
    n = 0
    while p[0] * p[0] + p[1] * p[1] < 9.0 and n < 40:
        p, v = p + 0.1 * v, v + 0.05 * p[::-1]
        n += 1
    return p, n


@relay
def longest(p):  # type: ignore[no-untyped-def]
    """Sums of a round's own array."""
    n = 0
    while (p * p).sum() < 9.0 and n < 30:
        p, n = p * 1.25, n + 1
    return p.max(), n


@relay
def lookups(a, table):  # type: ignore[no-untyped-def]
    i, s = 0, 0.0
    while s < a and i < 7:
        s += table[i] * 0.5
        i += 1
    return s, i


@relay
def quotients(a, b):  # type: ignore[no-untyped-def]
    r = 0
    while a > 0:
        r += a // b
        a -= b
    return r


def floats(n: int, least: float = 0.5) -> np.ndarray:
    return random.uniform(least, 9.0, n).astype(np.float32)


def integers(n: int) -> np.ndarray:
    return random.integers(1, 60, n).astype(np.int32)


PROGRAMS: dict[Any, tuple[Any, Callable[[int], tuple[Any, ...]]]] = {
    escape: (0, lambda n: (random.uniform(-2, 1, n), random.uniform(-1, 1, n))),
    root: ((0, None), lambda n: (floats(n), np.float32(1))),
    branches: (0, lambda n: (floats(n, 0.0),)),
    nested: (0, lambda n: (floats(n).astype(np.float64),)),
    pendulum: ((0, 0, None), lambda n: (floats(n) / 3, floats(n) / 5, np.float32(0.7))),
    vectors: (0, lambda n: (random.standard_normal((n, 2)), random.standard_normal((n, 2)))),
    longest: (0, lambda n: (random.standard_normal((n, 3)),)),
    lookups: ((0, None), lambda n: (floats(n), np.linspace(0.5, 4, 7, dtype=np.float32))),
    quotients: (0, lambda n: (integers(n), integers(n) % 9 + 1)),
}


def run_in_lanes(f: relay.RelayFunction, *arguments: Any) -> int:
    """How many loops of a program run in lanes, of those that no other loop is around."""
    module = Pipeline.for_level(2, ("prepare", "differentiate", "optimize"))(f.lower(*arguments).core)
    functions = [f for f in module.functions.values() if isinstance(f, Function)]
    assert any(isinstance(b.value, Loop) for f in functions for b in walk(f.body))
    return sum(len(lane_loops(f)) for f in functions)


def assert_close(found: Any, expected: Any, rtol: float = 2e-5) -> None:
    for left, right in zip(relay.tree.leaves(found), relay.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(left, right, rtol=rtol, atol=rtol)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_values(program: Any) -> None:
    axes, make = PROGRAMS[program]
    batched = relay.vmap(program, in_axes=axes)
    assert run_in_lanes(batched, *make(64)) == 1
    for n in SIZES:
        arguments = make(n)
        assert_close(batched(*arguments), batched.interpret(*arguments))


def loss_of(program: Any, axes: Any) -> relay.RelayFunction:
    text = (
        "def loss(*arguments):\n"
        "    results = relay.tree.leaves(relay.vmap(program, in_axes=axes)(*arguments))\n"
        "    return (results[0] * results[0]).sum()\n"
    )
    count = len(program.parameters) if hasattr(program, "parameters") else 0
    names = ", ".join(f"a{n}" for n in range(count or len(PROGRAMS[program][1](3))))
    return relay.from_source(text.replace("*arguments", names), {"relay": relay, "program": program, "axes": axes})


@pytest.mark.usefixtures("low_effort")
@pytest.mark.parametrize("program", [root, branches, nested, pendulum], ids=lambda f: f.__name__)
def test_derivatives(program: Any) -> None:
    """Those of the sum, and those of each example. The backward part has the tape of one vector of rounds."""
    axes, make = PROGRAMS[program]
    arguments = make(64)
    loss = loss_of(program, axes)
    gradient = relay.grad(loss, wrt=tuple(range(len(arguments))))
    assert run_in_lanes(gradient, *arguments) >= 1
    for n in SIZES:
        arguments = make(n)
        assert_close(gradient(*arguments), gradient.interpret(*arguments), 2e-4)
    each = relay.vmap(relay.grad(program), in_axes=axes)
    assert_close(each(*arguments), each.interpret(*arguments), 2e-4)


@pytest.mark.usefixtures("low_effort")
def test_a_second_derivative() -> None:
    arguments = (np.linspace(0.5, 9, 65),)
    second = relay.vmap(relay.grad(relay.grad(branches)))
    assert_close(second(*arguments), second.interpret(*arguments))


@pytest.mark.parametrize("n", [0, 1, 2, 33])
def test_few_examples(n: int) -> None:
    axes, make = PROGRAMS[branches]
    (values,) = make(n)
    batched = relay.vmap(branches, in_axes=axes)
    assert_close(batched(values), batched.interpret(values))


def test_several_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each has a part of the rounds; those that take longer than one may be away from signals are finished by one."""
    monkeypatch.setenv("RELAY_NUM_THREADS", "3")
    monkeypatch.setattr("relay.codegen.kernels.lanes.kernel.ROUNDS", 40)
    values = floats(501)
    for f in (relay.vmap(branches), relay.grad(loss_of(branches, 0))):
        assert_close(f(values), f.interpret(values))


def test_an_assertion_in_one_lane() -> None:
    @relay
    def checked(a, table):  # type: ignore[no-untyped-def]
        i = 0
        while a > 0.0:
            a = a - table[i]
            i += 1
        return i

    batched = relay.vmap(checked, in_axes=(0, None))
    table = np.ones(5, np.float32)
    values = np.full(100, 4.5, np.float32)
    assert list(batched(values, table)) == [5] * 100
    values[70] = 5.5
    with pytest.raises(relay.errors.ExecutionError, match="index out of range"):
        batched(values, table)


@pytest.mark.parametrize("threads", ["1", "2"])
def test_signals(threads: str, monkeypatch: pytest.MonkeyPatch) -> None:
    class Stop(Exception):
        pass

    def stop(*_: object) -> None:
        raise Stop

    @relay
    def endless(x):  # type: ignore[no-untyped-def]
        while x >= 0.0:
            x = x * 0.5 + 0.5
        return x

    monkeypatch.setenv("RELAY_NUM_THREADS", threads)
    batched = relay.vmap(endless)
    values = np.linspace(-1, 1, 100, dtype=np.float32)
    batched.compile(values)
    before = signal.signal(signal.SIGALRM, stop)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        with pytest.raises(Stop):
            batched(values)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert np.array_equal(batched(values[:10] - 1), values[:10] - 1)


def test_tapes_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    """A loop that runs for long in its derivative ends where memory does."""
    monkeypatch.setenv("RELAY_MEMORY_LIMIT", "100000")

    @relay
    def long(x, n):  # type: ignore[no-untyped-def]
        i = 0
        while i < n:
            x = relay.tanh(x) * 1.5
            i += 1
        return x

    gradient = relay.vmap(relay.grad(long), in_axes=(0, None))
    values = np.linspace(0.1, 1, 64, dtype=np.float32)
    assert_close(gradient(values, 10), gradient.interpret(values, 10))
    with pytest.raises(relay.errors.ExecutionError, match="memory"):
        gradient(values, 100_000)


@relay.relay
def with_long_rounds(x):
    y, s = x, 0.0
    while y < 50.0:
        z = y
        for _ in range(20):
            z = z * 0.99 + 0.3 * x
            s = s + np.sin(z) * x
        y = y * 1.3 + 0.1
    return s


@relay.relay
def with_short_rounds(x):
    y, s = x, 0.0
    while y < 50.0:
        for _ in range(4):
            s = s + np.sin(y) * x
        y = y * 1.3 + 0.1
    return s


def test_only_rounds_whose_backward_part_runs_in_lanes_are_recomputed() -> None:
    """The tape of the inner loop is an array of 20 in the tape of the outer one, which has no place in lanes."""
    prepared = Pipeline.for_level(2, ("lower", "prepare"))
    for program, is_recomputed in ((with_long_rounds, False), (with_short_rounds, True)):
        batch = relay.vmap(program)
        total = relay.grad(relay.relay(lambda xs: batch(xs).sum()))  # noqa: B023
        text = relay.to_text(prepared(total.lower(np.ones(100, np.float32)).typed))
        assert ("recompute" in text) == is_recomputed
