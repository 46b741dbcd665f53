"""Plain Python functions of the user's are read where programs call them."""

from __future__ import annotations

import importlib.util
import math
import statistics
import sys
from pathlib import Path

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


UNREGISTERED = """
from relay import relay

class Line:
    def __init__(self, slope):
        self.slope = slope

    def at(self, x):
        return self.slope * x

def shifted(x):
    return x + 1.0

def captured():
    line = Line(3.0)

    @relay
    def f(x):
        return line.at(shifted(x)) + line.slope

    return f

@relay
def passed(line, x):
    return line.at(x)
"""


def test_modules_that_are_loaded_without_being_registered(tmp_path: Path) -> None:
    """As plugins are: importlib.util.module_from_spec, without sys.modules."""
    path = tmp_path / "unregistered.py"
    path.write_text(UNREGISTERED)
    spec = importlib.util.spec_from_file_location("an_unregistered_module", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert "an_unregistered_module" not in sys.modules
    assert float(module.captured().interpret(2.0)) == 12.0
    assert float(module.passed.interpret(module.Line(3.0), 2.0)) == 6.0
