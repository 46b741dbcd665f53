"""Forms that lose fewer digits: each of the table is chosen where it is better, and gives what a longer float gives."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

import relay
from relay.eval import interpreter
from relay.ir.expr import Block, Exit, Function, LoopLabel, Module, Var
from relay.ir.types import FLOAT32, TensorType
from relay.ir.validation.check import check
from relay.operator import Emitter, Value
from relay.operator.rewriting import stable_forms
from relay.transform import dce, improve_accuracy, improvements
from relay.transform.pipeline import Pipeline
from relay.transform.precision.exact_numbers import ExactReal, digits, exact_array

Write = Callable[[Value, Value], Value]
SHAPE = (200,)


def mean(x: Value) -> Value:
    return x.op("mean", axis=None, keepdims=False)


# The form, an expression of x and y, their ranges, and a reference on longer floats that loses no digits.
Case = tuple[str, Write, dict[str, tuple[float, float]], Callable[[Any, Any], Any]]
CASES: list[Case] = [
    ("log(1 + x)", lambda x, y: (x + 1).op("log"), {"x": (1e-9, 1e-3)}, lambda x, y: np.log1p(x)),
    ("log(1 - x)", lambda x, y: (1 - x).op("log"), {"x": (1e-9, 1e-3)}, lambda x, y: np.log1p(-x)),
    ("log(1 + exp(x))", lambda x, y: (1 + x.op("exp")).op("log"), {"x": (-80, 300)}, lambda x, y: np.logaddexp(0, x)),
    (
        "log(exp(x) + exp(y))", lambda x, y: (x.op("exp") + y.op("exp")).op("log"),
        {"x": (100, 300), "y": (100, 300)}, np.logaddexp,
    ),
    (
        "log(sum(exp(x)))", lambda x, y: x.op("exp").op("sum", axis=None, keepdims=False).op("log"),
        {"x": (100, 300)}, lambda x, y: np.log(np.sum(np.exp(x - x.max()))) + x.max(),
    ),
    ("exp(x) - 1", lambda x, y: x.op("exp") - 1, {"x": (1e-7, 1e-3)}, lambda x, y: np.expm1(x)),
    ("exp(x) + -1", lambda x, y: x.op("exp") + -1, {"x": (1e-7, 1e-3)}, lambda x, y: np.expm1(x)),
    ("exp(x) - exp(-x)", lambda x, y: x.op("exp") - (-x).op("exp"), {"x": (1e-5, 1e-2)}, lambda x, y: 2 * np.sinh(x)),
    (
        "log(x) - log(y)", lambda x, y: (y + x).op("log") - y.op("log"),
        {"x": (1e-3, 1e-2), "y": (1e2, 1e3)}, lambda x, y: np.log1p(x / y),
    ),
    (
        "sqrt(x x + y y)", lambda x, y: (x * x + y.op("square")).op("sqrt"),
        {"x": (1e20, 1e30), "y": (1e20, 1e30)}, np.hypot,
    ),
    (
        "x x - y y", lambda x, y: x * x - y * y, {"x": (1000, 1000.01), "y": (1000, 1000.01)},
        lambda x, y: (x - y) * (x + y),
    ),
    (
        "sqrt(x) - sqrt(y)", lambda x, y: (x + 1).op("sqrt") - x.op("sqrt"), {"x": (1e3, 1e6)},
        lambda x, y: 1 / (np.sqrt(x + 1) + np.sqrt(x)),
    ),
    (
        "sqrt(y y + c) - y", lambda x, y: (y * y - x).op("sqrt") - y, {"x": (0.1, 1), "y": (1e2, 1e3)},
        lambda x, y: -x / (np.sqrt(y * y - x) + y),
    ),
    (
        "sqrt(y y + c) + y", lambda x, y: y + (y * y - x).op("sqrt"), {"x": (0.1, 1), "y": (-1e3, -1e2)},
        lambda x, y: -x / (np.sqrt(y * y - x) - y),
    ),
    (
        "log(sigmoid(x))", lambda x, y: x.op("sigmoid").op("log"), {"x": (10, 80)},
        lambda x, y: -np.log1p(np.exp(-x)),
    ),
    (
        "exp(x) / (1 + exp(x))", lambda x, y: x.op("exp") / (1 + x.op("exp")), {"x": (-80, 300)},
        lambda x, y: 1 / (1 + np.exp(-x)),
    ),
    (
        "exp(x) / sum(exp(x))", lambda x, y: x.op("exp") / x.op("exp").op("sum", axis=None, keepdims=False),
        {"x": (100, 110)}, lambda x, y: np.exp(x - x.max()) / np.sum(np.exp(x - x.max())),
    ),
    (
        "mean(x x) - mean(x)^2", lambda x, y: mean(x * x) - mean(x).op("square"), {"x": (1e3, 1001)},
        lambda x, y: np.var(x),
    ),
    ("1 / x - 1 / y", lambda x, y: 1 / (x + 1) - 1 / x, {"x": (1e3, 1e6)}, lambda x, y: -1 / (x * (x + 1))),
    ("(x + y) - x", lambda x, y: (x + y) - x, {"x": (1e5, 1e6), "y": (0.1, 1)}, lambda x, y: y),
    ("1 - cos(x)", lambda x, y: 1 - x.op("cos"), {"x": (1e-4, 1e-2)}, lambda x, y: 2 * np.sin(x / 2) ** 2),
    (
        "sin(x) - sin(y)", lambda x, y: (y + x).op("sin") - y.op("sin"), {"x": (1e-5, 1e-4), "y": (0.5, 1)},
        lambda x, y: 2 * np.cos(y + x / 2) * np.sin(x / 2),
    ),
    (
        "cos(x) - cos(y)", lambda x, y: (y + x).op("cos") - y.op("cos"), {"x": (1e-5, 1e-4), "y": (0.5, 1)},
        lambda x, y: -2 * np.sin(y + x / 2) * np.sin(x / 2),
    ),
    (
        "atan(x) - atan(y)", lambda x, y: (x + 1).op("atan") - x.op("atan"), {"x": (1e3, 1e5)},
        lambda x, y: np.arctan2(1, 1 + x * (x + 1)),
    ),
]  # fmt: skip


def program(write: Write) -> Module:
    emitter = Emitter()
    parameters = tuple(Var(n, TensorType(FLOAT32, SHAPE)) for n in "xy")
    result = write(*map(emitter.value, parameters))
    label = LoopLabel("f")
    body = Block(tuple(emitter.bindings), Exit(label, (result.atom,)))
    return Module({"f": Function("f", parameters, body, label, result.type)}, "f")


def drawn(ranges: dict[str, tuple[float, float]]) -> list[np.ndarray]:
    rng = np.random.default_rng(7)
    found = []
    for name in "xy":
        low, high = ranges.get(name, (0.0, 1.0))
        found.append(rng.uniform(low, high, SHAPE).astype(np.float32))
    return found


@pytest.mark.parametrize("case", CASES, ids=[c[0] for c in CASES])
def test_each_form_is_better(case: Case) -> None:
    text, write, ranges, reference = case
    before = program(write)
    after, found = improvements(before, ranges=ranges)
    check(after, "structured")
    assert [i.form.partition(" = ")[0] for i in found] == [text]
    assert found[0].after + 0.5 <= found[0].before and found[0].digits == 24
    given = drawn(ranges)
    with np.errstate(all="ignore"):
        exact = reference(*(g.astype(np.longdouble) for g in given))

    def error(module: Module) -> float:
        value = np.asarray(interpreter.run(module, given), np.longdouble)
        worst = np.max(np.abs(value - exact) / np.abs(exact))
        return float(worst) if np.isfinite(worst) else np.inf

    assert error(after) < 2e-6 < error(before)


def test_every_form_has_an_example() -> None:
    assert {f.text.partition(" = ")[0] for f in stable_forms()} == {c[0] for c in CASES}


def test_what_is_lost_of_float64_is_told_exactly() -> None:
    """The widest float of the machine would be no reference: it loses digits as float64 does."""

    @relay
    def log_of_sum(x):  # type: ignore[no-untyped-def]
        return relay.log(1.0 + x)

    (found,) = improvements(log_of_sum.core(np.float64(1)), ranges={"x": (1e-15, 1e-12)})[1]
    assert found.digits == 53 and found.after < 1 and found.before > 35


def test_the_branch_of_a_root_is_taken_by_the_sign() -> None:
    """Of both signs of y, one root adds and the other cancels."""
    before = program(lambda x, y: (y * y - x).op("sqrt") - y)
    after, (found,) = improvements(before, ranges={"x": (-1, -0.1), "y": (-1e3, 1e3)})
    assert found.after < 1 < 3 < found.before
    given = [np.full(SHAPE, -0.5, np.float32), np.linspace(-900, 900, *SHAPE, dtype=np.float32)]
    x, y = (g.astype(np.float64) for g in given)
    root = np.sqrt(y * y - x)
    np.testing.assert_allclose(interpreter.run(after, given), np.where(y > 0, -x / (root + y), root - y), rtol=1e-6)


POINTS = [0.3, -2.0, 7.5, 1e4, -1e-9, 123.456, 1e-200, -0.99]


FUNCTIONS = ("sin", "cos", "tan", "arctan", "exp", "expm1", "sinh", "cosh", "tanh", "log1p", "sqrt")


@pytest.mark.parametrize("name", FUNCTIONS)
def test_exact_numbers(name: str) -> None:
    points = np.array([p for p in POINTS if p > -1 or name not in ("log1p", "sqrt")])
    points = np.abs(points) if name == "sqrt" else points
    function = getattr(np, name)
    with digits(40), np.errstate(all="ignore"):
        found = np.array([float(e) for e in function(exact_array(points))])
        np.testing.assert_allclose(found, function(points), rtol=1e-15)


def test_exact_numbers_have_the_digits_that_are_asked_for() -> None:
    with digits(60):
        (quarter,) = np.arctan(exact_array(np.array([1.0])))
        assert str(quarter.value * 4).startswith("3.14159265358979323846264338327950288419716939937510582")
        assert np.isnan(float(ExactReal(Decimal("inf")) - ExactReal(Decimal("inf"))))


def test_what_is_accurate_where_it_is_used_stays() -> None:
    for text, write, *_ in CASES:
        if text in ("log(1 + x)", "exp(x) - 1", "1 - cos(x)"):
            assert improvements(program(write), ranges={"x": (2.0, 3.0)})[1] == []


def test_a_function_of_the_language() -> None:
    @relay
    def larger_root(a, b, c):  # type: ignore[no-untyped-def]
        return (-b + relay.sqrt(b * b - 4.0 * a * c)) / (2.0 * a)

    given = [np.float32(0.5), np.float32(3000.0), np.float32(0.25)]
    after = dce(improve_accuracy(larger_root.core(*given), ranges={"a": (0.1, 1), "b": (1e2, 1e4), "c": (0.1, 1)}))
    a, b, c = (float(g) for g in given)
    exact = -2 * c / (b + np.sqrt(b * b - 4 * a * c))
    assert abs(float(interpreter.run(after, given)) - exact) < 1e-6 * abs(exact)
    assert abs(float(larger_root(*given)) - exact) > 0.1 * abs(exact)


def test_ranges_are_options_of_the_pass() -> None:
    module = program(lambda x, y: (x + 1).op("log"))
    small = Pipeline("improve-accuracy{low=1e-9, high=1e-3}")(module)
    large = Pipeline("improve-accuracy{low=10.0, high=1e3}")(module)
    assert "log1p" in relay.to_text(small) and "log1p" not in relay.to_text(large)
    with pytest.raises(ValueError, match="range of x is empty"):
        improvements(module, ranges={"x": (1.0, 0.0)})
    with pytest.raises(ValueError, match="there is a range for 'width', but no variable of this name"):
        improvements(module, ranges={"width": (0.0, 1.0)})
