"""Loops over elements, in the forms in which they are written by hand, are calls on whole arrays, and so are their
derivatives; both are what the interpreter makes of the loop."""

from __future__ import annotations

import linecache
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import relay
from relay.ir.expr import Function, Loop
from relay.ir.traverse import walk
from relay.transform.pipeline import Pipeline

RANDOM = np.random.default_rng(5)
X, V = RANDOM.normal(size=(34, 36)), RANDOM.normal(size=36)

BODIES = {
    "branch": """
        y = np.zeros(m)
        for j in range(m):
            if v[j] > 0.0:
                y[j] = np.sqrt(v[j]) * x[0, j]
            elif v[j] < -1.0:
                y[j] = v[j] / x[1, j]
            else:
                y[j] = -v[j]
        return y""",
    "no finite derivative where it is not taken": """
        y = np.zeros(m)
        for j in range(m):
            u = v[j] if v[j] > 0.0 else 0.0
            y[j] = np.sqrt(u) * x[0, j] + np.log(u) if u > 0.0 else v[j]
        return y""",
    "neighbours": """
        y = np.zeros(m)
        for j in range(m):
            left = v[j - 1] if j > 0 else v[0]
            right = v[j + 1] if j < m - 1 else v[m - 1]
            if v[j] > left and v[j] > right:
                y[j] = v[j] * left
        return y""",
    "reversed writes": """
        y = np.zeros(m)
        for j in range(m):
            y[m - 1 - j] = v[j] * v[m - 1 - j]
        return y""",
    "every second": """
        y = np.zeros(m // 2)
        for j in range(m // 2):
            y[j] = v[2 * j] * v[2 * j + 1]
        return y""",
    "transposed": """
        y = np.zeros((m, n))
        for i in range(n):
            for j in range(m):
                y[j, i] = x[i, j] * v[j]
        return y""",
    "column sums": """
        y = np.zeros(m)
        for i in range(n):
            for j in range(m):
                y[j] += x[i, j] * v[j]
        return y""",
    "column sums of some": """
        y = np.zeros(m)
        for i in range(n):
            for j in range(m):
                if x[i, j] > 0.0:
                    y[j] += np.sqrt(x[i, j]) * v[j]
        return y""",
    "histogram": """
        y = np.zeros(5)
        for j in range(m):
            k = abs(int(2.0 * v[j])) % 5
            y[k] += v[j] * x[0, j]
        return y""",
    "rows of a histogram": """
        y = np.ones((3, m))
        for i in range(n):
            y[(7 * i) % 3] += np.tanh(x[i]) * v
        return y""",
    "products in place": """
        y = np.zeros((n, n))
        for i in range(n):
            for j in range(n):
                for k in range(m):
                    y[i, j] += x[i, k] * x[j, k]
        return y""",
    "products, the rows first": """
        y = np.zeros((n, n))
        for i in range(n):
            for k in range(m):
                for j in range(n):
                    y[i, j] += x[i, k] * x[j, k]
        return y""",
    "appended": """
        y = []
        for j in range(m):
            y.append(v[j] * v[j])
        return np.array(y)""",
    "comprehension of comprehensions": """
        return np.array([[np.tanh(x[i, j]) for j in range(m)] for i in range(n)])""",
    "subtracted": """
        s = 1.0
        for j in range(m):
            s -= v[j] * v[j]
        return s""",
    "multiplied": """
        s = 2.0
        for j in range(m):
            s *= v[j]
        return s""",
    "sum of some": """
        s, c = 0.0, 0
        for j in range(m):
            if v[j] > 0.0:
                s += v[j] * v[j]
                c += 1
            elif v[j] < -0.5:
                s = s - v[j]
        return s / c""",
    "sum of those that go on": """
        s = 0.0
        for j in range(m):
            if v[j] < 0.0:
                continue
            if v[j] > 1.0:
                s += 1.0
                continue
            s += np.exp(v[j])
        return s""",
    "largest, and where": """
        y = np.zeros(n)
        for i in range(n):
            best, k = x[i, 0], 0
            for j in range(1, m):
                if x[i, j] > best:
                    best, k = x[i, j], j
            y[i] = best * k
        return y""",
    "smallest": """
        best = 0.5
        for j in range(m):
            if best > v[j]:
                best = v[j]
        return best""",
    "column by column": """
        y = np.zeros((n, m))
        for j in range(m):
            for i in range(1, n - 1):
                y[i, j] = x[i + 1, j] - x[i - 1, j]
        return y""",
}

FORWARD = {
    "any and all": """
        some, every = False, True
        for j in range(m):
            some = some or v[j] > 1.0
            every = every and v[j] < 9.0
        return some, every""",
    "maximum and minimum": """
        y = np.zeros(n)
        for i in range(n):
            high, low = x[i, 0], x[i, 0]
            for j in range(1, m):
                high, low = max(high, x[i, j]), min(low, x[i, j])
            y[i] = high - low
        return y""",
}


def program(body: str) -> Callable[..., Any]:
    text = f"def f(x, v):\n        n, m = x.shape{body}\n"
    name = f"<{hash(text)}>"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    names = {"np": np}
    exec(compile(text, name, "exec"), names)
    return names["f"]  # type: ignore[no-any-return]


def loops(f: relay.RelayFunction, *arguments: Any) -> list[str]:
    """The loops that a program has at level 2."""
    module = Pipeline.for_level(2, ("prepare", "differentiate", "optimize"))(f.lower(*arguments).core)
    functions = [f for f in module.functions.values() if isinstance(f, Function)]
    return [b.value.label.name for f in functions for b in walk(f.body) if isinstance(b.value, Loop)]


@pytest.mark.parametrize("name", [*BODIES, *FORWARD])
def test_loops_are_calls_on_whole_arrays(name: str) -> None:
    f = program({**BODIES, **FORWARD}[name])
    g = relay.relay(f)
    assert loops(g, X, V) == []
    for made, wanted in zip(np.atleast_1d(g(X, V)), np.atleast_1d(f(X, V)), strict=True):
        np.testing.assert_allclose(made, wanted, rtol=1e-12)


@pytest.mark.parametrize("name", BODIES)
def test_derivatives_are_calls_on_whole_arrays(name: str) -> None:
    f = relay.relay(program(BODIES[name]))

    @relay.relay
    def total(x, v):  # type: ignore[no-untyped-def]
        return (f(x, v) * 1.5).sum()

    derivative = relay.grad(total, argnums=(0, 1))
    x, v = (X[:6], V) if "product" in name else (X, V)  # the interpreter runs all rounds
    assert loops(derivative, x, v) == []
    for made, wanted in zip(derivative(x, v), derivative.interpret(x, v), strict=True):
        np.testing.assert_allclose(made, wanted, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", ["neighbours", "reversed writes", "sum of some", "largest, and where", "transposed"])
def test_of_any_size(name: str) -> None:
    f = program(BODIES[name])
    g = relay.relay(f, dynamic=True)
    for n, m in ((34, 36), (2, 5), (40, 3)):
        np.testing.assert_allclose(g(X[:n, :m] + 0.1, V[:m] + 1.0), f(X[:n, :m] + 0.1, V[:m] + 1.0), rtol=1e-12)


def test_ties_and_nan() -> None:
    """The largest of equal elements is the first, and NaN is never larger."""
    f = program("""
        best, k = -np.inf, -1
        for j in range(m):
            if v[j] > best:
                best, k = v[j], j
        return best, k, x.sum() * 0.0""")
    g = relay.relay(f)
    derivative = relay.grad(relay.relay(program(BODIES["smallest"])), argnums=1)
    for v in (np.floor(V), np.where(V > 1.0, np.nan, V), np.full(36, np.nan), np.full(36, -np.inf), np.full(36, 0.5)):
        assert [float(a) for a in g(X, v)] == [float(a) for a in f(X, v)]
        np.testing.assert_array_equal(derivative(X, v), derivative.interpret(X, v))


def test_what_may_not_be_exchanged() -> None:
    """Rounds that read what others wrote stay in their order."""
    f = program("""
        y = np.zeros((n, m))
        for i in range(1, n):
            for j in range(1, m):
                y[i, j] = y[i - 1, j] + y[i, j - 1] + x[i, j]
        return y""")
    g = program("""
        y = np.zeros(m)
        for i in range(n):
            for j in range(m):
                y[j] = y[j] * 0.5 + x[i, j] * v[j]
        return y""")
    for each in (f, g):
        np.testing.assert_allclose(relay.relay(each)(X, V), each(X, V), rtol=1e-12)
