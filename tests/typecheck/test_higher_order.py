"""Functions as values: which programs need data types for them, derivatives of higher order, and what is refused."""

# ruff: noqa: B023, E731  (functions as values are what is tested)
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from agreement import assert_close, assert_modes_agree
from zoo import Program
from zoo.control_flow import control_flow, straight_line
from zoo.functions import functions, higher_order

import relay as relay_package
from relay import DifferentiationError, Float64, Int32, Tensor, TypeCheckError, relay
from relay.ir.expr import Call, Global, Grad, Lambda, Module
from relay.ir.traverse import walk
from relay.ir.types import DataType
from relay.ir.validation.check import check
from relay.transform.core.specialization import specialize

X, Y = np.float64(0.7), np.float64(1.3)
KNOWN = [*straight_line.PROGRAMS, *control_flow.PROGRAMS, *functions.PROGRAMS]
# Known all the time, although they look as if they were not.
STATIC = {"at_several_types", "tuple_kept_in_loop", "defaults_in_unrolled_loop", "polymorphic_arguments"}


def specialized(program: Program) -> Module:
    core = specialize(program.function.typed(*program.arguments))
    check(core, "core")
    return core


@pytest.mark.parametrize("program", KNOWN, ids=lambda p: p.name)
def test_known_functions_need_no_data_type(program: Program) -> None:
    assert not specialized(program).data


@pytest.mark.parametrize("program", higher_order.PROGRAMS, ids=lambda p: p.name)
def test_no_function_values_are_left(program: Program) -> None:
    core = specialized(program)
    assert bool(core.data) == (program.name not in STATIC)
    for function in core.functions.values():
        for binding in walk(function.body) if hasattr(function, "body") else ():
            assert not isinstance(binding.value, Lambda | Grad)
            if isinstance(binding.value, Call):
                assert isinstance(binding.value.function, Global)


def test_growing_function_is_one_recursive_data_type() -> None:
    program = next(p for p in higher_order.PROGRAMS if p.name == "growing_in_loop")
    core = specialized(program)
    assert any(DataType(d) in c.fields for d in core.data for c in d.constructors)
    assert sum(name.startswith("apply") for name in core.functions) == len(core.data)


@pytest.mark.parametrize("name", ["chosen", "changed_by_loop", "growing_in_loop", "iterated", "gradient_of_chosen"])
def test_second_derivatives_agree(name: str) -> None:
    program = next(p for p in higher_order.PROGRAMS if p.name == name)

    second = relay_package.grad(relay_package.grad(program.function, wrt=0))
    found = second(*program.arguments)
    assert_close(found, second.interpret(*program.arguments), rtol=1e-9, atol=1e-11)
    step = 1e-6
    first = relay_package.grad(program.function, wrt=0)
    x, *others = program.arguments
    high, low = (np.asarray(first.interpret(x + h, *others)) for h in (step, -step))
    slope = (high - low) / (2 * step)
    np.testing.assert_allclose(np.asarray(found[0] if isinstance(found, tuple) else found), slope, rtol=1e-5)


@pytest.mark.parametrize("depth", [1, 2, 5, 40])
def test_depth_is_known_at_run_time_only(depth: int) -> None:
    program = next(p for p in higher_order.PROGRAMS if p.name == "growing_in_loop")
    expected = 0.7
    for _ in range(depth):
        expected = np.sin(expected) + 0.7
    np.testing.assert_allclose(program.function(X, depth), expected * 0.7, rtol=1e-12)


@relay
def nth(f, n, x):
    return f(x) if n == 0 else nth(relay.grad(f), n - 1, x)


@relay
def order_of_recursion(x, n):
    return nth(lambda v: v * v * v, n, x)


@relay
def order_of_loop(x, n):
    f = lambda v: v * v * v
    for _ in range(n):
        f = relay.grad(f)
    return f(x)


@relay
def order_of_itself(x, n):
    return x if n == 0 else relay.grad(lambda v: v * order_of_itself(v, n - 1))(x)


@relay
def order_of_its_own(x: Tensor[Float64, ()], n: Tensor[Int32, ()]) -> Tensor[Float64, ()]:
    if n == 0:
        return x * x * x
    return relay.grad(order_of_its_own, wrt=0)(x, n - 1)


ORDERS = [order_of_recursion, order_of_loop, order_of_itself, order_of_its_own]


@pytest.mark.parametrize("function", ORDERS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("mode", ["compiled", "interpreted"])
def test_order_that_depends_on_the_run_is_refused(function: Any, mode: str) -> None:
    with pytest.raises(DifferentiationError, match="the order of differentiation depends on a run-time value") as error:
        (function if mode == "compiled" else function.interpret)(X, 2)
    assert "relay.grad" in error.value.span.source.line(error.value.span.line)


def test_order_chosen_among_known_ones() -> None:
    @relay
    def chosen_order(x, n):
        f = lambda v: v * v * v
        g = relay.grad(f) if n == 1 else relay.grad(relay.grad(f)) if n == 2 else f
        return g(x)

    for n, expected in enumerate((0.343, 1.47, 4.2)):
        np.testing.assert_allclose(chosen_order(X, n), expected, rtol=1e-12)


# ---- functions that outlive the round of the loop in which they were made


@relay
def compose(f, g):
    return lambda v: f(g(v))


@relay
def carried_by_call(x, n):
    f = lambda v: v
    for _ in range(n):
        s = x * 2.0
        f = compose(f, lambda v: v * s)
    return f(x)


@relay
def carried_by_call_unrolled(x, n):
    f = lambda v: v * n
    for k in (1.0, 2.0):
        f = compose(f, lambda v: v * k)
    return f(x)


@relay
def carried_by_reference(x, n):
    r = relay.ref(lambda v: v)
    for _ in range(n):
        s = x * 2.0
        relay.write(r, lambda v: v * s)
    return relay.read(r)(x)


@relay
def carried_through_another(x, n):
    f = lambda v: v
    for _ in range(n):
        s = x * 2.0
        scale = lambda v: v * s
        f = compose(f, lambda v: scale(v))
    return f(x)


@pytest.mark.parametrize(
    "function",
    [carried_by_call, carried_by_call_unrolled, carried_by_reference, carried_through_another],
    ids=lambda f: f.__name__,
)
def test_function_that_would_see_later_values_is_refused(function: object) -> None:
    with pytest.raises(TypeCheckError, match="carries a function to the next round of the loop"):
        function.interpret(X, Y if function is carried_by_call_unrolled else 2)  # type: ignore[attr-defined]


def test_function_that_captures_nothing_of_the_round_may_be_carried() -> None:
    @relay
    def helper(x, n):
        f = lambda v: v
        y = x
        for _ in range(n):
            square = lambda v: v * v
            f = compose(f, lambda v: square(v) + x)
            k = y + 1.0
            y = compose(lambda v: v * k, relay.sin)(y)
        return f(x) + y

    assert_modes_agree(helper, X, 2, rtol=1e-10, atol=1e-12)


NUMERALS = """
def f(x):
    zero = lambda s: lambda z: z
    succ = lambda m: lambda s: lambda z: s(m(s)(z))
    add = lambda a, b: lambda s: lambda z: a(s)(b(s)(z))
    mul = lambda a, b: lambda s: a(b(s))
    return {}(lambda v: np.sin(v) * x + v)(x)
"""


@pytest.mark.parametrize(
    ("numeral", "times"),
    [
        ("succ(succ(succ(zero)))", 3),
        ("succ(succ(succ(succ(succ(succ(zero))))))", 6),
        ("add(succ(succ(succ(zero))), succ(succ(zero)))", 5),
        ("mul(succ(succ(succ(zero))), succ(succ(zero)))", 6),
        ("succ(succ(zero))(succ(succ(succ(zero))))", 9),
    ],
)
def test_functions_whose_types_only_their_calls_tell(numeral: str, times: int) -> None:
    """Each function waits for what another one gives it: what is called is looked at before what might not be."""
    f = relay_package.from_source(NUMERALS.format(numeral), {"np": np})
    assert isinstance(f, relay_package.RelayFunction)
    x = np.float64(0.5)
    expected = x
    for _ in range(times):
        expected = np.sin(expected) * x + expected
    np.testing.assert_allclose(f.interpret(x), expected, rtol=1e-12)
    if times in (3, 9):
        np.testing.assert_allclose(f(x), expected, rtol=1e-12)
        slope = (f.interpret(x + 1e-6) - f.interpret(x - 1e-6)) / 2e-6
        np.testing.assert_allclose(relay_package.grad(f).interpret(x), slope, rtol=1e-6)
