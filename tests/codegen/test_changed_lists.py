"""Lists that functions inside, methods and references change: in Python's order, and in constant time."""

# ruff: noqa: B023

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from agreement import assert_modes_agree, modes

import relay as rl
from relay import relay
from relay.codegen.lowering.context import BUDGET, COPIED
from relay.errors import ExecutionError


def operands_first(n):
    """What is given is computed before the list is read, which it may change."""
    xs, t = [0.0, 1.0], 0.0

    def more():
        xs.append(5.0)
        return 1

    def put(i, v):
        xs[i] = v

    for i in range(n):
        xs.append(float(more()))
        xs.insert(more(), 2.0)
        xs.extend([float(more())])
        xs += [float(more())]
        xs[0] = xs.pop() + float(len(xs))
        xs.append(xs.pop(0))
        xs += [xs.pop(1)]
        xs[0] += xs.pop() * 0.5
        put(i % 3, float(i))
        t += xs[0] + float(more()) + xs[0]
    return [t, *xs]


def test_lists_change_in_the_order_of_python() -> None:
    function = relay(operands_first)
    for n in (1, 4):
        assert_modes_agree(function, n, expected=operands_first(n), rtol=1e-7)


@relay
def memoised(n):
    memo = [-1] * (n + 1)

    def fib(k):
        if k < 2:
            return k
        if memo[k] >= 0:
            return memo[k]
        found = (fib(k - 1) + fib(k - 2)) % 1000007
        memo[k] = found
        return found

    return fib(n)


@relay
def through_functions(n):
    xs = [0.0]

    def put(v):
        xs.append(v)

    def change(i, v):
        xs[i] += v
        for k in range(3):
            xs[i] += xs[k % len(xs)] * 0.5

    for i in range(n):
        put(float(i % 3))
        change(i // 2, 1.0)
        if xs[-1] > 4.0:
            xs.pop()
    return xs[0] + xs[-1]


@relay
def two_references(n):
    a = rl.ref([float(i) for i in range(n)])
    b = rl.ref([1.0] * n)
    for i in range(n):
        a.value[i] = b.value[n - 1 - i] * 0.5
        b.value[i // 2] += a.value[i]
        b.value.append(a.value[0])
        t = a.value
        a.value = b.value
        b.value = t
    return a.value[0] + b.value[-1]


@pytest.mark.parametrize("function", (memoised, through_functions, two_references), ids=lambda f: f.__name__)
def test_lists_in_references_change_in_place(function: Any) -> None:
    for n in (1, 12):
        np.testing.assert_allclose(float(function(n)), float(function.interpret(n)), rtol=1e-6)
    program = next(iter(function._programs.exact.values())).program
    for n in (500, 1000, 2000):
        before = int(program._contexts[-1].table[COPIED])
        function(n)
        assert program._contexts[-1].table[COPIED] - before <= 8 * n


@relay
def references_that_may_be_one(n):
    r = rl.ref([float(i) for i in range(n + 3)])
    q = rl.ref([float(i) for i in range(n + 3)])
    s = r if n % 2 == 0 else q
    for i in range(n):
        r.value.append(s.value[-1] + 1.0)
        s.value[0] = r.value[-1] + q.value[0]
        xs, ys = r.value.copy(), s.value.copy()
        xs[1] = 5.0
        ys[1] = 6.0
        q.value.append(xs[1] + ys[1])
        if i == 3:
            break
        s.value = xs
        if i % 3 == 0:
            r.value = q.value.copy()
        q.value[2] = 4.0 + r.value[2]
    return r.value + q.value + s.value


def test_references_that_may_be_one() -> None:
    for n in (1, 2, 5, 6):
        found = [float(v) for v in references_that_may_be_one(n)]
        assert found == [float(v) for v in references_that_may_be_one.interpret(n)]


@relay
def fails_between(r: rl.Ref[list[float]], i):
    r.value[0] = 8.0
    xs = r.value
    xs[0] = 7.0
    xs.append(1.0)
    assert i < 3
    r.value = xs
    return i


def test_what_a_reference_holds_does_not_change_where_the_run_fails() -> None:
    for call in modes(fails_between):
        r = rl.ref([1.0, 2.0])
        with pytest.raises(ExecutionError, match="i < 3"):
            call(r, 5)
        assert [float(v) for v in r.value] == [8.0, 2.0]
        call(r, 1)
        assert [float(v) for v in r.value] == [7.0, 2.0, 1.0]


@relay
def in_each_round(n):
    t = 0
    for i in range(n):
        memo = [-1] * (i % 7 + 3)

        def fib(k):
            if k < 2:
                return k
            if memo[k] >= 0:
                return memo[k]
            memo[k] = fib(k - 1) + fib(k - 2)
            return memo[k]

        t += fib(i % 7 + 2)
    return t


@relay
def replaced_in_a_reference(n):
    r = rl.ref([float(i) for i in range(n % 5 + 1)])
    for i in range(n):
        r.value = [float(i)] * (i % 9 + 1)
        r.value.append(1.0)
        r.value.insert(0, 2.0)
    return r.value[1]


@pytest.mark.parametrize("function", (in_each_round, replaced_in_a_reference), ids=lambda f: f.__name__)
def test_memory_of_lists_in_references_is_used_again(function: Any) -> None:
    assert float(function(200)) == float(function.interpret(200))
    program = next(iter(function._programs.exact.values())).program
    left = int(program._contexts[-1].table[BUDGET])
    function(20_000)
    assert int(program._contexts[-1].table[BUDGET]) >= left - 100_000
