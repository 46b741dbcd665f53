"""Random programs: the gradient compiled, transformed and interpreted, on the tape, and by differences."""

from __future__ import annotations

from typing import Any

import numpy as np
from generators.random_programs import function_of, random_program
from hypothesis import given, settings
from hypothesis import strategies as st

import relay
from relay.calling.results import wrap
from relay.eval import interpreter

POINT = (np.float64(0.6), np.float64(-0.9))
SMOOTH = ("relay.sin({})", "relay.tanh({})", "0.5 * {} * {}", "{} + {}", "{} - 0.3 * {}", "relay.exp(-{} * {})")


@st.composite
def expression(draw: st.DrawFn, names: list[str]) -> str:
    """A smooth function of some variables, of about the size of its operands."""
    pattern = draw(st.sampled_from(SMOOTH))
    return pattern.format(*(draw(st.sampled_from(names)) for _ in range(pattern.count("{}"))))


@st.composite
def block(draw: st.DrawFn, depth: int, functions: tuple[str, ...]) -> list[str]:
    """Statements that change x, y and the reference r, and end with one that does."""
    lines: list[str] = []
    for _ in range(draw(st.integers(1, 3))):
        kinds = ["assign", "write", *(["call"] if functions else [])]
        kinds += ["branch", "loop", "closure", "chosen", "break"] if depth else []
        match draw(st.sampled_from(kinds)):
            case "assign":
                lines.append(f"{draw(st.sampled_from(['x', 'y']))} = {draw(expression(['x', 'y', 'r.value']))}")
            case "write":
                lines.append(f"r.value = {draw(expression(['x', 'y', 'r.value']))}")
            case "call":
                lines.append(f"{draw(st.sampled_from(['x', 'y']))} = {draw(st.sampled_from(functions))}(y) * 0.7")
            case "branch":
                lines.append(f"if {draw(st.sampled_from(['x > y', 'r.value < 0.2', 'y * x > 0.1']))}:")
                lines += indented(draw(block(depth - 1, functions)))
                lines.append("else:")
                lines += indented(draw(block(depth - 1, functions)))
            case "loop":
                lines.append(f"for i{depth} in range({draw(st.integers(0, 3))}):")
                lines += indented(draw(block(depth - 1, functions)))
            case "break":
                lines.append(f"for i{depth} in range(4):")
                lines += indented(draw(block(depth - 1, functions)))
                lines += indented([f"if x * y > {draw(st.sampled_from(['0.05', '-0.2']))}:", "    break"])
            case "closure":
                name = f"f{depth}{len(functions)}"
                lines.append(f"{name} = lambda v: {draw(expression(['v', 'x', 'y', 'r.value']))}")
                functions = (*functions, name)
            case "chosen":
                name = f"g{depth}{len(functions)}"
                one, other = draw(expression(["v", "x"])), draw(expression(["v", "y"]))
                lines.append(f"{name} = (lambda v: {one}) if x > y else (lambda v: {other})")
                lines.append(f"y = {name}(y) * 0.7")  # which gives it a type
                functions = (*functions, name)
    lines.append(f"x = {draw(expression(['x', 'y', 'r.value']))}")
    return lines


def indented(lines: list[str]) -> list[str]:
    return ["    " + line for line in lines]


@st.composite
def programs(draw: st.DrawFn) -> str:
    body = ["r = relay.ref(x * y)", *draw(block(2, ())), "return x + 0.5 * y * r.value"]
    return "\n".join(["def program(x, y):", *indented(body)])


def differences(function: Any) -> list[float]:
    found = []
    for position in range(2):
        ends = []
        for step in (1e-6, -1e-6):
            moved = list(POINT)
            moved[position] = moved[position] + step
            ends.append(float(function.interpret(*moved)))
        found.append((ends[0] - ends[1]) / 2e-6)
    return found


@given(programs())
@settings(max_examples=25)
def test_the_transform_the_tape_and_differences_agree(text: str) -> None:
    function: Any = relay.from_source(text, {"relay": relay})
    derivative = relay.grad(function)
    by_tape = [float(g) for g in derivative.interpret(*POINT)]
    expected = differences(function)
    np.testing.assert_allclose(by_tape, expected, rtol=1e-5, atol=1e-6, err_msg=text)
    lowered = derivative.lower(*POINT)
    transformed = wrap(interpreter.run(lowered.core, lowered.values), lowered.result)
    np.testing.assert_allclose([float(g) for g in transformed], by_tape, rtol=1e-9, atol=1e-12, err_msg=text)


@given(programs())
@settings(max_examples=6)
def test_the_compiled_gradient_is_the_interpreted_one(text: str) -> None:
    derivative = relay.grad(relay.from_source(text, {"relay": relay}))
    expected = [float(g) for g in derivative.interpret(*POINT)]
    np.testing.assert_allclose([float(g) for g in derivative(*POINT)], expected, rtol=1e-9, atol=1e-12, err_msg=text)


@given(programs())
@settings(max_examples=8)
def test_the_second_derivative_by_transform_and_by_tapes(text: str) -> None:
    second = relay.grad(relay.grad(relay.from_source(text, {"relay": relay}), wrt=0))
    by_tape = [float(g) for g in second.interpret(*POINT)]
    lowered = second.lower(*POINT)
    transformed = wrap(interpreter.run(lowered.core, lowered.values), lowered.result)
    np.testing.assert_allclose([float(g) for g in transformed], by_tape, rtol=1e-8, atol=1e-10, err_msg=text)


# ---- programs with everything in them

ROUNDS = np.int32(2)


def agreeing(seed: int, compiled: bool, second: bool) -> None:
    """Raise if the derivatives of the program of a seed differ."""
    text = random_program(seed)
    program = function_of(text)

    def value(x: float, y: float) -> float:
        return float(program.interpret(np.float64(x), np.float64(y), ROUNDS))

    (x, y), step = map(float, POINT), 1e-6
    expected = [
        (value(x + step, y) - value(x - step, y)) / (2 * step),
        (value(x, y + step) - value(x, y - step)) / (2 * step),
    ]
    first = relay.grad(program, wrt=(0, 1))
    orders = [first, relay.grad(relay.grad(program, wrt=0), wrt=(0, 1))] if second else [first]
    for derivative in orders:
        by_tape = [float(g) for g in derivative.interpret(*POINT, ROUNDS)]
        if derivative is first:
            np.testing.assert_allclose(by_tape, expected, rtol=1e-4, atol=1e-5, err_msg=text)
        lowered = derivative.lower(*POINT, ROUNDS)
        transformed = wrap(interpreter.run(lowered.core, lowered.values), lowered.result)
        np.testing.assert_allclose([float(g) for g in transformed], by_tape, rtol=1e-7, atol=1e-9, err_msg=text)
        if compiled:
            found = [float(g) for g in derivative(*POINT, ROUNDS)]
            np.testing.assert_allclose(found, by_tape, rtol=1e-7, atol=1e-9, err_msg=text)


@given(st.integers(0, 2**32))
@settings(max_examples=8)
def test_programs_with_everything_in_them(seed: int) -> None:
    agreeing(seed, compiled=False, second=False)


@given(st.integers(0, 2**32))
@settings(max_examples=3)
def test_programs_with_everything_in_them_compiled_and_twice(seed: int) -> None:
    agreeing(seed, compiled=True, second=True)
