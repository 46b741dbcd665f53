"""Plain Python functions of the user's are read where programs call them."""

from __future__ import annotations

import math
import statistics
import sys

import numpy as np
import pytest
from agreement import assert_modes_agree

import relay as rl
from relay import RelayError, relay

ACTIVATIONS = {"square": lambda x: x * x, "tanh": np.tanh}


def power(x, k=2):
    return x**k


def factorial(n):
    return 1 if n <= 1 else n * factorial(n - 1)


def loss(w, x):
    return ((x @ w) ** 2).mean()


def unreadable(x):
    global UNKNOWN
    UNKNOWN = x


def test_functions_lambdas_and_recursion() -> None:
    @relay
    def f(x):
        return power(x) + power(x, k=3), factorial(5), ACTIVATIONS["square"](x)

    sums, product, squares = assert_modes_agree(f, np.array([1.0, 2.0]))
    np.testing.assert_array_equal(sums, [2.0, 12.0])
    np.testing.assert_array_equal(squares, [1.0, 4.0])
    assert int(product) == math.factorial(5)


def test_gradients_of_them() -> None:
    @relay
    def slope(w, x):
        return rl.grad(loss, wrt="w")(w, x)

    found = assert_modes_agree(slope, np.ones(2), np.ones((3, 2)))
    np.testing.assert_allclose(found, [4.0, 4.0])


def test_what_is_not_read() -> None:
    with pytest.raises(RelayError, match="'mean' is a Python function that Relay does not know"):
        relay(lambda x: statistics.mean(x))((1.0, 2.0))
    with pytest.raises(RelayError, match="`global`"):
        relay(lambda x: unreadable(x))(1.0)


def test_a_module_may_opt_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def own(x):
        return x

    monkeypatch.setattr(sys.modules[__name__], "__relay_python__", True, raising=False)
    with pytest.raises(RelayError, match="decorate it with @relay"):
        relay(lambda x: own(x))(1.0)
