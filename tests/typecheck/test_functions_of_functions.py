"""Functions in loops and of each other: local recursion in rounds, continuations, numerals, gradients."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from agreement import assert_modes_agree

import relay as R
from relay import relay

LOCAL_RECURSION = """
def f(s, k):
    total = 0.0
    for p in {items}:
        def rec(a, j):
            if j <= 0:
                return a
            return rec({body})
        t = rec({arguments})
        {use}
    return total
"""


@pytest.mark.usefixtures("low_effort")
@pytest.mark.parametrize("items", ["(4, k, s)", "range(3)", "[s, s * 2]"])
@pytest.mark.parametrize(
    ("body", "arguments"),
    [("1, 0", "3, 1"), ("a + 1, j - 1", "3, 2"), ("a * 0.5, j - 1", "s, 2"), ("a * p, j - 1", "s, 2")],
)
def test_local_recursion_in_a_round(items: str, body: str, arguments: str) -> None:
    """Whether its result is used or not."""
    for use in ("total += float(t)", "pass"):
        text = LOCAL_RECURSION.format(items=items, body=body, arguments=arguments, use=use)
        scope: dict[str, Any] = {}
        exec(text, scope)
        assert_modes_agree(R.from_source(text), 1.5, np.int32(2), expected=scope["f"](1.5, 2))


CONTINUATIONS = """
def sums(n, k):
    if n == 0:
        return k(0)
    return sums(n - 1, lambda r: k(n + r))

def f(n):
    return sums(n, lambda r: r)
"""


def test_continuations() -> None:
    function = R.from_source(CONTINUATIONS)["f"]
    for n in (0, 1, 7, 33, 1000):
        assert assert_modes_agree(function, np.int32(n)) == n * (n + 1) // 2


NUMERALS = """
def f(n):
    zero = lambda g: lambda v: v
    succ = lambda m: lambda g: lambda v: g(m(g)(v))
    add = lambda a, b: lambda g: lambda v: a(g)(b(g)(v))
    one = succ(zero)
    two = succ(one)
    three = succ(two)
    five = add(two, three)
    nine = add(add(two, two), five)
    return (two(lambda k: k + 1)(n), five(lambda k: k * 2)(n), nine(lambda k: k + 1)(one(lambda k: k + 1)(n)))
"""


def test_numerals() -> None:
    function = R.from_source(NUMERALS)
    assert [int(v) for v in assert_modes_agree(function, np.int32(7))] == [9, 224, 17]


@dataclass
class Parameters:
    a: Any


@relay
def grown(p, n):
    if n == 0:
        return p.a
    return grown(p, n - 1) * 2.0


@relay
def item_of_recursion(p, n):
    return grown(p, n)[0]


@relay
def gradient_of_an_item(p, n):
    return R.grad(item_of_recursion, wrt="p")(p, n).a


@relay
def grown_dict(p, n):
    if n == 0:
        return p["a"]
    return grown_dict(p, n - 1) * 2.0


@relay
def item_of_a_dict(p, n):
    return grown_dict(p, n)[0]


@relay
def step_of_a_dict(p, n):
    return p["a"] - R.grad(item_of_a_dict, wrt="p")(p, n)["a"]


def test_a_gradient_of_an_item_whose_index_waits_for_a_type() -> None:
    """The gradient by a record is one, though what is differentiated is indexed before its type is known."""
    assert_modes_agree(gradient_of_an_item, Parameters(np.ones(3)), np.int32(2), expected=np.array([4.0, 0.0, 0.0]))
    assert_modes_agree(step_of_a_dict, {"a": np.ones(3)}, np.int32(2), expected=np.array([-3.0, 1.0, 1.0]))
