"""Conditions of breakpoints, and what is wrong with them; functions of the user's that fail in the debugger."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from agreement import assert_agree

import relay
from relay import debug
from relay.errors import ExecutionError, FrontendError


@relay
def weighted(x, n):
    total = 0.0
    for i in range(n):
        total = total + x[i] * 2.0
    return total


X = np.arange(5.0)


def stopped(when: Any, **place: Any) -> tuple[debug.Session, debug.Stop]:
    session = debug.step(weighted, X, 5)
    session.breakpoint(when=when, **place)
    return session, session.resume()


@pytest.mark.parametrize("when", ["total > 5.0", lambda v: v["total"] > 5.0, "(lambda k: total > k)(5.0)"])
def test_names_without_a_value_yet_are_waited_for(when: Any) -> None:
    session, stop = stopped(when)
    assert stop.reason == "breakpoint" and stop.error is None
    assert session.variables["total"] == 6.0
    assert session.resume().reason == "end"
    assert_agree(session.result, 20.0)


@pytest.mark.parametrize("when", ["i == 3", lambda v: v.get("i") == 3])
def test_a_condition_is_true_once_for_a_value(when: Any) -> None:
    session, _ = stopped(when)
    assert session.variables["i"] == 3 and session.resume().reason == "end"
    assert session.resume_back().reason == "breakpoint" and session.variables["i"] == 3


@pytest.mark.parametrize(
    ("when", "message"),
    [
        ("totl > 1.0", "no variable 'totl'"),
        ("total >", "not an expression"),
        (3, "found int"),
    ],
)
def test_what_is_no_condition_is_refused(when: Any, message: str) -> None:
    with pytest.raises(FrontendError, match=message):
        stopped(when)


@pytest.mark.parametrize(
    ("when", "message"),
    [
        ("x > 1.0", r"not a single boolean but an array of shape \(5,\)"),
        ("x[i + n] > 1.0", "index out of range"),
        ("x @ total > 1.0", "cannot be computed"),
        (lambda v: v["totl"] > 1.0, "no variable 'totl'; did you mean 'total'"),
        (lambda v: 1 // 0, "raised ZeroDivisionError"),
    ],
)
def test_a_condition_that_fails_stops_and_says_why(when: Any, message: str) -> None:
    session, stop = stopped(when)
    assert stop.reason == "breakpoint" and session.error is None
    with pytest.raises(ExecutionError, match=message):
        raise stop.error  # type: ignore[misc]
    assert session.resume().reason == "end"  # and not again before every line
    assert_agree(session.result, 20.0)
    session, stop = stopped(when, operator="multiply")
    assert stop.error is not None
    while (stop := session.resume()).reason == "breakpoint":
        assert stop.error is not None
    assert_agree(session.result, 20.0)


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ({"line": "8"}, "number of a line"),
        ({"line": 0}, "number of a line"),
        ({"operator": "multipy"}, "no operator 'multipy'"),
        ({"function": "weigthed"}, "no function 'weigthed'"),
    ],
)
def test_places_that_there_are_not(place: Any, message: str) -> None:
    with pytest.raises(FrontendError, match=message):
        debug.step(weighted, X, 5).breakpoint(**place)


@relay
def square(x):
    return x * x


@relay
def both(x, y):
    return square(x).sum() + square(y)


def test_a_function_is_stopped_at_for_all_types() -> None:
    session = debug.step(both, X, 2.0)
    session.breakpoint(function="square")
    shapes = []
    while session.resume().reason == "breakpoint":
        assert session.stop.function == session.backtrace[-1].function == "square"
        shapes.append(session.variables["x"].shape)
    assert shapes == [(5,), ()]
    rows = debug.trace(both, X, 2.0, of="square")
    assert {row.function for row in rows} == {"square"}


def test_a_function_is_stopped_at_in_its_derivative() -> None:
    session = debug.step(relay.grad(both), X, 2.0)
    session.breakpoint(function="square")
    seen = set()
    while session.resume().reason == "breakpoint":
        seen.add(session.stop.function)
    assert {"square_forward", "square_backward"} <= seen


@relay
def parts(pair, c):
    z = (pair[0], {"b": pair[1]})
    y = z[0] + c
    return z, y


def test_a_changed_structure_counts_on_the_line_at_hand() -> None:
    one, two = np.float64(1.0), np.float64(2.0)
    session = debug.step(parts, (one, two), np.float64(3.0))
    session.set("pair", (10.0, 20.0))
    session.resume()
    assert_agree(session.result, ((10.0, {"b": 20.0}), 13.0))
    session.back()
    session.set("z", (5.0, {"b": 6.0}))
    session.resume()
    assert_agree(session.result, ((5.0, {"b": 6.0}), 13.0))


def test_numbers_in_a_list_fit_an_array() -> None:
    session = debug.step(weighted, X, 5)
    session.set("x", [1, 2, 3, 4, 5])
    session.resume()
    assert_agree(session.result, 30.0)
    session.resume_back()
    for wrong in ([1.0], [[1.0] * 5], ["a"] * 5, [None] * 5):
        with pytest.raises(relay.TypeMismatch):
            session.set("x", wrong)
    array = np.ones(5)
    session.set("x", array)
    array[:] = np.nan
    session.resume()
    assert_agree(session.result, 10.0)


def test_predicates_that_fail() -> None:
    with pytest.raises(ExecutionError, match="`where` raised ZeroDivisionError for a Tensor") as caught:
        debug.find_nan(weighted, X, 5, where=lambda array: 1 // 0)
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    for wrong in (lambda array: None, lambda array: [True, False, True], lambda array: "no"):
        with pytest.raises(ExecutionError, match="`where` raised"):
            debug.find_nan(weighted, X, 5, where=wrong)
    with pytest.raises(FrontendError, match="chooses rows raised ZeroDivisionError for x"):
        debug.trace(weighted, X, 5, of=lambda row: 1 // 0)
    with pytest.raises(FrontendError, match="no variable, function or operator 'totl'") as refused:
        debug.trace(weighted, X, 5, of=["totl"])
    assert refused.value.help == "did you mean 'total'?"
    assert_agree(weighted(X, 5), 20.0)


def test_the_calls_of_a_deep_recursion_are_shown_in_part() -> None:
    @relay
    def depth(n: int) -> int:
        if n == 0:
            return 0
        return 1 + depth(n - 1)

    session = debug.step(depth, 1000)
    session.breakpoint(when="n == 0")
    session.resume()
    session.select(500)
    lines = session.where().split("\n")
    assert len(lines) <= 63 and sum(line.startswith("->") for line in lines) == 1
    assert [line for line in lines if " more .." in line] == ["   .. 470 more ..", "   .. 470 more .."]
    assert "500" in session._repr_html_() and session.show() == "n: Tensor[int32, ()] = 500"


def test_a_breakpoint_with_a_message_does_not_stop() -> None:
    @relay
    def total(x):
        found = 0.0
        for v in x:
            found = found + v
        return found

    session = debug.step(total, np.array([1.0, 2.0]))
    said: list[str] = []
    session.write = said.append
    line = total.__relay__.function.span.line + 3
    made = session.breakpoint(line, log="{{{v}}} and {found + x[0:1]}, {x[7]}")
    session.breakpoint(line, when="v > 1.5", log="large")
    assert session.resume().reason == "end" and made.hits == 2
    assert said[0].startswith("{1.0} and [1.], <index 7 is out of range") and len(said) == 3 and said[2] == "large"
    session.resume_back()
    assert len(said) == 3
    for wrong, message in [
        ("{", "braces"),
        ("{}", "without an expression"),
        ("{y}", "no variable"),
        ("{v +}", "is not"),
    ]:
        with pytest.raises(relay.FrontendError, match=message):
            session.breakpoint(line, log=wrong)
