"""Ranges, zips and enumerates as arguments of the program's functions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from agreement import assert_modes_agree

import relay as R
from relay import TypeCheckError

FUNCTIONS = """
def total(xs):
    s = 0.0
    for y in xs:
        s = s + y
    return s

def pairs(xs):
    s = 0.0
    for i, y in xs:
        s = s + y * i
    return s

def nested(xs):
    s = 0.0
    for i, (a, b) in xs:
        s = s + i * a - b
    return s

def both(xs):
    return total(xs) + len(xs) + total(xs)

def down(xs, k):
    s = 0.0
    for i in xs:
        s = s + i
    return s if k == 0 else s + down(xs, k - 1)

def starred(*parts):
    rows = [list(part) for part in parts]
    return total(rows[0]) * 3.0 + len(rows[-1])

def first_of(pair):
    return total(pair[0]) + pair[1]

"""

CALLS = (
    "total(range(x.shape[0])) * x[0]",
    "total(range(2, 9, 3)) * x[0]",
    "total(range(n)) * x[0] + total(range(n, 0, -2))",
    "total(range(0, 10, n)) * x[0]",
    "total(reversed(range(n))) * x[0]",
    "total(range(x[x > 1.5].shape[0])) * x[0]",
    "pairs(zip(x, x[::-1])) + pairs(zip(range(n), x))",
    "pairs(enumerate(x)) + pairs(enumerate(x, start=n))",
    "pairs(zip((1.0, 2.0), x)) + pairs(zip(x, [x[0] * i for i in range(n)]))",
    "nested(enumerate(zip(x, x * n)))",
    "both(range(n)) * x[0]",
    "down(range(n), n) * x[0]",
    "(lambda it: sum([i * 2 for i in it]))(range(n)) * x[0]",
    "total(xs=range(n)) * x[0]",
    "starred(range(n), range(2)) * x[0] + starred(range(n)) * x[0]",
    "starred(x, range(n), zip(x, x)) + starred(*(x, enumerate(x)))",
    "first_of((range(n), n)) * x[0] + first_of((reversed(range(n)), 2)) * x[0]",
)


def test_functions_go_through_what_calls_pass() -> None:
    text = f"{FUNCTIONS}def f(x, n):\n    return {', '.join(CALLS)}\n"
    scope: dict[str, Any] = {"np": np}
    exec(text, scope)
    function = R.from_source(text, {"np": np})["f"]
    for arguments in ((np.arange(1.0, 5.0), 3), (np.arange(1.0, 7.0), 5)):
        found, interpreted, wanted = function(*arguments), function.interpret(*arguments), scope["f"](*arguments)
        for call, one, other, value in zip(CALLS, found, interpreted, wanted, strict=True):
            np.testing.assert_allclose(one, value, rtol=1e-12, err_msg=call)
            np.testing.assert_allclose(other, value, rtol=1e-12, err_msg=call)


def test_derivatives_go_through_zips() -> None:
    gradient = R.grad(R.from_source(f"{FUNCTIONS}def f(x):\n    return pairs(zip(x, x[1:]))\n")["f"])
    x = np.arange(1.0, 5.0)
    wanted = np.append(x[1:], 0.0) + np.append(0.0, x[:-1])
    assert_modes_agree(gradient, x, expected=wanted)


def test_a_static_range_keeps_its_length() -> None:
    text = "def squares(xs):\n    return np.array([i * i for i in xs])\n\ndef f(x):\n    return squares(range(3)) @ x\n"
    function = R.from_source(text, {"np": np})["f"]
    np.testing.assert_allclose(function(np.arange(3, dtype=np.int32)), 9)


def test_results_are_refused_at_their_line() -> None:
    text = "def p(a):\n    return zip(a, a)\n\ndef f(x):\n    return p(x)\n"
    with pytest.raises(TypeCheckError, match="<relay>:2:12: error: a Python zip is not a value of a Relay program"):
        R.from_source(text)["f"](np.ones(3))
