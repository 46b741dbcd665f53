"""The step debugger, through its object: moving to and fro, breakpoints, looking, changing values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from agreement import assert_agree, assert_modes_agree

import relay
from relay import debug
from relay.errors import ExecutionError, FrontendError, RelayError, RelayWarning, TypeMismatch


def first_line(function: Any) -> int:
    """The line of `def`."""
    span = function.__relay__.function.span
    assert span is not None
    return int(span.line)


@relay
def doubled(x, k):
    y = x * 2.0
    return y + k


@relay
def summed(x, n):
    total = 0.0
    scale = lambda v: v * 3.0  # noqa: E731
    for i in range(n):
        if x[i] > 0.5:
            total = total + doubled(x[i], total)
        else:
            total += scale(x[i])
    pair = (relay.sqrt(total), total)
    while total > 4.0:
        total = total / 2.0
    return pair[0] + total


X = np.array([0.25, 1.0, 0.5])


def lines(move: Any, session: debug.Session, function: Any = summed) -> list[int]:
    """The lines, from `def` on, at which a session stops until it can go no further."""
    found = []
    while (stop := move()).reason == "line":
        found.append(stop.line - first_line(function))
    return found


def test_steps_go_line_by_line_into_calls_and_back() -> None:
    session = debug.step(summed, X, 3)
    assert session.stop.line == first_line(summed) + 3
    forward = lines(session.step, session)
    g = first_line(doubled) - first_line(summed)
    rounds = [4, 7, 2, 4, 5, g + 1, g + 2, 4, 7, 2]
    assert forward == [*rounds, 8, 9, 10, 9, 11]
    assert session.finished
    assert_agree(session.result, summed.interpret(X, 3))
    assert lines(session.back, session) == [*forward[::-1], 3]
    assert session.steps == 0
    assert lines(session.step, session) == forward


def test_over_and_out_do_not_stop_in_what_is_called() -> None:
    session = debug.step(summed, X, 3)
    assert lines(session.over, session) == [4, 7, 4, 5, 4, 7, 8, 9, 10, 9, 11]
    assert lines(session.back_over, session) == [11, 9, 10, 9, 8, 7, 4, 5, 4, 7, 4, 3]
    session.breakpoint(function="doubled")
    session.resume()
    assert session.stop.function == "doubled"
    stop = session.out()
    assert (stop.reason, stop.function) == ("return", "summed")
    session.back()
    assert session.stop.function == "doubled"
    session.back_over()
    assert session.stop.function == "doubled"


def test_operations_are_less_than_lines() -> None:
    session = debug.step(doubled, X, 1.0)
    names = []
    while not session.finished:
        names.append(list(session.variables))
        session.operation()
    assert names == [["x", "k"], ["x", "k", "y"], ["x", "k", "y"]]
    session.operation_back()
    np.testing.assert_array_equal(session.variables["y"], 2 * X)


def test_breakpoints_at_lines_functions_operators_and_conditions() -> None:
    session = debug.step(summed, X, 3)
    at = first_line(summed)
    found = session.breakpoint(line=at + 5)
    assert session.resume().breakpoint is found and session.variables["i"] == 1 and found.hits == 1
    assert session.resume().reason == "end"
    session.resume_back()
    assert session.stop.breakpoint is found
    session.remove(found)
    session.resume_back()
    operator = session.breakpoint(operator="sqrt")
    assert session.resume().breakpoint is operator and session.stop.line == at + 8
    session.remove(operator.number)
    session.resume_back()
    session.breakpoint(when="total > 2.0")
    assert session.resume().line == at + 4  # where the next round begins
    assert session.variables["i"] == 2
    session.resume_back()
    session = debug.step(summed, X, 3)
    session.breakpoint(line=at + 4, when=lambda variables: variables["i"] == 2)
    session.resume()
    assert session.variables["i"] == 2
    assert session.run_to(at + 10).line == at + 10


def test_a_line_that_computes_nothing_stands_for_the_next_one() -> None:
    session = debug.step(summed, X, 3)
    assert session.breakpoint(line=first_line(summed) + 1).line == first_line(summed) + 2
    with pytest.raises(FrontendError, match="computes nothing from line 100000 on"):
        session.breakpoint(line=100000)


def test_a_loop_of_one_line_that_is_written_out_stops_once() -> None:
    """The page says so."""

    @relay
    def listed(x):
        xs = []
        for i in range(3):
            xs.append(x[i] * i)
        return xs[0] + xs[2]

    session, at = debug.step(listed, X), first_line(listed)
    assert session.stop.line == at + 3
    assert session.operation().line == at + 3
    assert lines(session.step, session, listed) == [4]


def test_variables_are_those_of_the_source() -> None:
    session = debug.step(summed, X, 3)
    assert list(session.variables) == ["x", "n", "total", "scale"]
    assert session.variables["total"] == 0.0
    session.run_to(first_line(summed) + 9)
    variables = session.variables
    assert variables["pair"][1] == variables["total"] == 5.0
    assert session.show("pair") == "pair: (Tensor[float64, ()], Tensor[float64, ()]) = (2.23607, 5)"
    assert session.show().splitlines()[0] == "x: Tensor[float64, (3,)] = [0.25, 1. , 0.5 ]"
    assert "count" in session.temporaries


def test_a_number_made_of_sizes_has_its_value() -> None:
    @relay
    def mean_of_some(x):  # type: ignore[no-untyped-def]
        chosen = x[x > 0.3]
        count, share = float(len(chosen)), 1.0 / len(x)
        return relay.sin(x) * share, count

    session = debug.step(mean_of_some, X)
    while session.stop.line < first_line(mean_of_some) + 3:
        session.step()
    assert (session.variables["count"], session.variables["share"]) == (2.0, 1.0 / 3.0)


def test_expressions_of_the_language_and_their_types() -> None:
    session = debug.step(summed, X, 3)
    session.run_to(first_line(summed) + 9)
    assert session.evaluate("x[0] * 2.0 + doubled(total, 1.0)") == 11.5
    assert session.evaluate("pair[1] * 2.0 - 2.0") == 8.0
    assert session.evaluate("scale(x[0])") == 0.75
    assert session.evaluate("[v + 1.0 for v in x][1]") == 2.0
    assert session.type("x[:2] * total") == "Tensor[float64, (2,)]"
    assert session.type("x") == "Tensor[float64, (3,)]"
    found = session.statistics("relay.log(x - 0.5)")
    assert (found.count, found.nan, found.infinite, found.shape) == (3, 1, 1, (3,))
    assert str(session.statistics("x")) == "float64 (3,): 0.25 to 1, mean 0.583333, deviation 0.311805"
    for wrong, message in [
        ("x +", "is not an expression"),
        ("unheard", "'unheard' is not defined"),
        ("x @ relay.zeros((2, 2))", "error"),
    ]:
        with pytest.raises(RelayError, match=message):
            session.evaluate(wrong)


def test_a_changed_value_goes_on_and_is_taken_back() -> None:
    session = debug.step(summed, X, 3)
    session.run_to(first_line(summed) + 9)
    before = session.variables["total"]
    session.set("total", 2.0)
    assert session.variables["total"] == 2.0 and session.variables["pair"][1] == 2.0  # the same value
    session.resume()
    assert_agree(np.asarray(session.result), np.sqrt(5.0) + 2.0)
    session.resume_back()
    session.run_to(first_line(summed) + 9)
    assert session.variables["total"] == before
    session.resume()
    assert_agree(session.result, summed.interpret(X, 3))


def test_what_cannot_be_changed_says_why() -> None:
    session = debug.step(summed, X, 3)
    with pytest.raises(ExecutionError, match=r"total cannot be changed: the program is made for 0\.0"):
        session.set("total", 1.0)
    with pytest.raises(TypeMismatch, match=r"must be Tensor\[float64, \(3,\)\], found float64 \(2,\)"):
        session.set("x", np.ones(2))
    with pytest.raises(FrontendError, match="'toal' is not defined here"):
        session.set("toal", 1.0)
    session.resume()
    with pytest.raises(ExecutionError, match="has returned"):
        session.set("x", X)


def test_callers_can_be_looked_at() -> None:
    session = debug.step(summed, X, 3)
    session.breakpoint(function="doubled")
    session.resume()
    assert "i" not in session.variables
    assert session.up().function == "summed"
    assert session.variables["i"] == 1 and session.evaluate("x[i]") == 1.0
    assert [call.function for call in session.backtrace] == ["summed", "doubled"]
    assert session.where().startswith("-> ") and "in doubled: y = x * 2.0" in session.where()
    assert f"-> {first_line(summed) + 5} " in session.source()
    with pytest.raises(FrontendError, match="no call further out"):
        session.up()
    session.down()
    assert "i" not in session.variables


@relay
def indexed(x, n):
    total = 0.0
    for i in range(n):
        total += x[i]
    return total


def test_an_error_stops_before_what_failed() -> None:
    session = debug.step(indexed, X, 4)
    stop = session.resume()
    assert stop.reason == "error" and session.variables["i"] == 3
    assert isinstance(session.error, ExecutionError) and "index out of range" in str(stop)
    assert session.resume().reason == "error"  # again
    session.back()
    assert session.error is None and session.variables["i"] == 3
    session.back()
    assert session.variables["i"] == 2
    session.resume()
    session.back()
    session.set("i", np.int32(0))
    assert session.resume().reason == "end"
    assert_agree(np.asarray(session.result), X.sum() + X[0])


@relay
def stopping(x, n):
    total = 0.0
    for i in range(n):
        y = relay.log(x - i)
        if relay.isnan(y):
            relay.breakpoint()
        total += y
    return total


def test_a_breakpoint_in_the_program() -> None:
    session = debug.step(stopping, np.float64(1.5), 3)
    assert session.resume().reason == "breakpoint" and session.variables["i"] == 2
    session.set("y", 0.0)
    assert session.resume().reason == "end" and np.isfinite(session.result)
    with pytest.warns(RelayWarning, match=r"relay\.breakpoint\(\) stops in the debugger only"):
        stopping.interpret(np.float64(1.5), 1)
    with pytest.raises(RelayError, match="works inside decorated functions only"):
        relay.breakpoint()


def test_only_the_typed_program_has_breakpoints() -> None:
    typed = stopping.typed(np.float64(1.5), 3)
    assert str(typed).count(" breakpoint;") == 1 and str(relay.parse(str(typed))) == str(typed)
    with pytest.warns(RelayWarning, match="stops in the debugger only"):
        assert_modes_agree(stopping, np.float64(9.5), 3, levels=(0, 3), gradient=True)
    assert "breakpoint" not in str(stopping.core(np.float64(1.5), 3))


@relay
def asserting(x):
    assert x > 0.0, "relay.breakpoint()"
    return x


def test_an_assertion_is_no_breakpoint_whatever_it_says() -> None:
    assert debug.step(asserting, np.float64(1.0)).resume().reason == "end"
    assert asserting.interpret(np.float64(1.0)) == 1.0  # without a warning, which would be an error


@relay.data
class Tree:
    class Leaf:
        value: float

    class Node:
        left: Tree
        right: Tree


@relay
def total_of(tree: Tree):
    match tree:
        case Tree.Leaf(value):
            return value
        case Tree.Node(left, right):
            return total_of(left) + total_of(right)


def test_recursion_over_data() -> None:
    tree = Tree.Node(Tree.Node(Tree.Leaf(1.0), Tree.Leaf(2.0)), Tree.Leaf(3.0))
    session = debug.step(total_of, tree)
    session.breakpoint(line=first_line(total_of) + 3)
    session.resume()
    assert session.depth == 3 and session.variables["value"] == 1.0
    session.up()
    assert session.variables["left"] == Tree.Leaf(1.0) and session.evaluate("total_of(right)") == 2.0
    session.down()
    session.set("value", 5.0)
    for breakpoint in list(session.breakpoints):
        session.remove(breakpoint)
    session.resume()
    assert float(session.result) == 10.0


@relay
def counted(cell, x):
    made = relay.ref(x)
    xs = []
    for i in range(3):
        cell.value = cell.value + 1.0
        made.value[i] = cell.value
        xs.append(made.value[i] * 2.0)
    return made.value, xs[2]


def test_references_lists_and_updates_in_place_are_taken_back() -> None:
    cell = relay.ref(np.float64(0.0))
    session = debug.step(counted, cell, np.zeros(3))
    cells = []
    while not session.finished:
        cells.append(float(session.variables["cell"].value))
        session.step()
    assert cells[-1] == 3.0
    first = session.result
    assert cell.value == 3.0
    back = []
    while session.back().reason == "line":
        back.append(float(session.variables["cell"].value))
    assert back == cells[::-1]
    session.resume()
    assert_agree(session.result, first)
    np.testing.assert_array_equal(first[0], [1.0, 2.0, 3.0])


@relay
def loss(x, w):
    hidden = relay.tanh(x * w)
    scaled = hidden * 2.0
    return (scaled * scaled).sum()


def test_derivatives_show_the_lines_that_they_belong_to() -> None:
    session = debug.step(relay.value_and_grad(loss, wrt=1), X, 0.5 * X)
    at, found = first_line(loss), []
    while not session.finished:
        found.append((session.stop.line - at, session.stop.function))
        session.step()
    backward = [line for line, function in found if "gradient" in function]
    assert backward == [1, 2, 3, 2, 1, 0]
    assert_agree(session.result, relay.value_and_grad(loss, wrt=1).interpret(X, 0.5 * X))
    session.back()
    assert {"hidden", "scaled", "d_hidden", "d_w"} <= set(session.variables)


def test_the_tape_of_the_interpreter_is_taken_back() -> None:
    gradient = relay.grad(loss, wrt=1)
    session = debug.step(gradient, X, X, stage="typed")
    session.resume()
    found = session.result
    session.resume_back()
    session.resume()
    assert_agree(session.result, found)
    assert_agree(found, gradient.interpret(X, X))


def test_the_optimized_program_can_be_stepped_too() -> None:
    session = debug.step(summed, X, 3, stage="optimized")
    session.breakpoint(operator="sqrt")
    assert session.resume().reason == "breakpoint"
    session.resume()
    assert_agree(session.result, summed.interpret(X, 3))


@relay
def many(n, x):
    i = 0
    while i < n:
        x = x * 0.5 + 1.0
        i += 1
    return x


def test_the_recording_keeps_to_its_memory() -> None:
    session = debug.step(many, 2000, np.zeros(1000), memory=1 << 20)
    session.resume()
    assert session.steps > 20_000 > session.recorded > 50
    while session.back().reason == "line":
        pass
    assert session.stop.reason == "beginning" and session.steps > 0
    assert session.variables["i"] > 1900
    session.resume()
    assert_agree(session.result, many.interpret(2000, np.zeros(1000)))
    with pytest.raises(FrontendError, match="number of bytes"):
        debug.step(many, 1, X, memory=-1)


@relay
def deep(n):
    if n <= 0:
        return 0
    return 1 + deep(n - 1)


def test_a_deep_recursion() -> None:
    session = debug.step(deep, 5_000)
    session.breakpoint(line=first_line(deep) + 2)
    session.resume()
    assert session.depth == 5_001 and len(session.backtrace) == 5_001
    session.resume()
    assert int(session.result) == 5_000


def test_an_interrupt_leaves_the_session_usable() -> None:
    session = debug.step(summed, X, 3)

    def interrupt(variables: Any) -> bool:
        if len(session.breakpoints) == 1 and variables.get("i") == 1:
            session.breakpoints.append(session.breakpoints[0])
            raise KeyboardInterrupt
        return False

    session.breakpoint(when=interrupt)
    assert session.resume().reason == "interrupt" and session.variables["i"] == 1
    session.resume()
    assert_agree(session.result, summed.interpret(X, 3))


def test_wrong_calls_say_what_is_wrong() -> None:
    with pytest.raises(FrontendError, match="the debugger takes a decorated function, found builtin"):
        debug.step(len, X)
    with pytest.raises(FrontendError, match="there is no stage 'core'"):
        debug.step(summed, X, 3, stage="core")
    session = debug.step(summed, X, 3)
    with pytest.raises(FrontendError, match="no function 'dubled'") as caught:
        session.breakpoint(function="dubled")
    assert caught.value.help == "did you mean 'doubled'?"
    with pytest.raises(FrontendError, match="at a line, function or operator"):
        session.breakpoint()
    with pytest.raises(FrontendError, match="is not an expression"):
        session.breakpoint(when="total >")
    with pytest.raises(ExecutionError, match="has not returned yet"):
        print(session.result)
