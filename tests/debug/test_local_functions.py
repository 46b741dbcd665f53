"""Expressions in a frame that call the program's local functions."""

from __future__ import annotations

import numpy as np
import pytest

import relay
from relay.debug import Session, step


@relay
def program(x, k):
    def scaled(v):
        return v * k

    square = lambda v: v * v  # noqa: E731

    def twice(g, v):
        return g(g(v))

    def factorial(n):
        return 1 if n < 2 else n * factorial(n - 1)

    def adder(c):
        def add(v):
            return square(v) + c

        return add

    add5 = adder(k + 3.0)
    functions = [scaled, square]
    c = 100.0
    total = c
    for i in range(2):
        total = total + functions[0](x[i]) + twice(square, x[i])
    return total + add5(x[0]) + factorial(3)


@pytest.fixture(scope="module")
def session() -> Session:
    session = step(program, np.array([1.0, 2.0, 3.0]), 2.0)
    session.run_to(37)
    return session


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("scaled(x)", [2.0, 4.0, 6.0]),
        ("square(3)", 9),
        ("twice(scaled, x[1]) + twice(square, 2.0)", 24.0),
        ("twice(lambda v: scaled(v) + 1.0, x[0])", 7.0),
        ("factorial(5)", 120),
        ("add5(x[1])", 9.0),
        ("add5(x)", [6.0, 9.0, 14.0]),
        ("adder(1.0)(2.0)", 5.0),
        ("functions[1](x[2])", 9.0),
        ("relay.grad(lambda v: square(v).sum())(x)", [2.0, 4.0, 6.0]),
        ("relay.vmap(add5)(x)", [6.0, 9.0, 14.0]),
        ("np.array([scaled(v) for v in x if v > 1.0])", [4.0, 6.0]),
        ("scaled(x[0]) if total > 0.0 else square(x[0])", 2.0),
        ("list(map(square, x))", [1.0, 4.0, 9.0]),
        ("(y := square(x[1])) + y", 8.0),
        ("sum(square(v) for v in x)", 14.0),
    ],
)
def test_a_local_function_can_be_called(session: Session, expression: str, expected: object) -> None:
    found = session.evaluate(expression)
    np.testing.assert_allclose(np.asarray(found, np.float64), expected)


def test_types_and_conditions_know_local_functions(session: Session) -> None:
    assert session.type("scaled") == "fn scaled: fn(Tensor[float64, ()]) -> Tensor[float64, ()]"
    assert session.type("add5(x)") == "Tensor[float64, (3,)]"
    other = step(program, np.array([1.0, 2.0, 3.0]), 2.0)
    other.breakpoint(line=36, when="scaled(x[i]) > 3.0")
    other.resume()
    assert other.variables["i"] == 1


def test_a_closure_has_the_values_that_it_has_captured() -> None:
    session = step(program, np.array([1.0, 2.0, 3.0]), 2.0)
    session.breakpoint(function="add")
    session.resume()
    assert session.evaluate("square(v) + c") == 6.0  # c of adder, not the variable of the program
    session.up()
    assert session.evaluate("add5(x[0]) + c") == 106.0
    assert "c" in session.variables and session.variables["c"] == 100.0
    with pytest.raises(relay.FrontendError, match="the name 'squared' is not defined here"):
        session.evaluate("squared(x)")


@relay
def differentiated(x, k):
    def scaled(v):
        return v * v * k

    slope = relay.grad(scaled)
    y = slope(x) + 1.0
    return y * y


def test_in_a_program_with_derivatives_too() -> None:
    session = step(differentiated, 2.0, 3.0)
    session.breakpoint(line=101)
    session.resume()
    assert session.evaluate("scaled(y) + slope(x)") == 13.0 * 13.0 * 3.0 + 12.0
    assert session.type("scaled") == "a function"
    with pytest.raises(relay.FrontendError, match="the name 'z' is not defined here"):
        session.evaluate("z")
