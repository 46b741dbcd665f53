"""Specialization of derivatives: the pending `Derivative`s, and their results once the AD pass has made them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from transform_programs import FF, Build, F, Z, arguments_of, assert_first_order, function, leave, module, real, whole

from relay.ad.reverse import differentiate
from relay.errors import DifferentiationError
from relay.eval.interpreter import run
from relay.ir.derivative import gradient_type
from relay.ir.expr import Atom, Derivative, Exit, Global, Grad, LoopLabel, Module, Terminator, Var
from relay.ir.types import FunctionType, TupleType
from relay.ir.validation.check import check
from relay.transform.core.specialization import specialize
from relay.transform.core.structuring import structure
from relay.transform.pipeline import optimize, prepare


def grad(b: Build, function_value: Var | Global, **options: object) -> Var:
    made = Grad(function_value, **options)  # type: ignore[arg-type]
    assert isinstance(function_value.type, FunctionType)
    return b.bind(made, gradient_type(function_value.type, made), "d")


def captured() -> Module:
    """d/dv (v * v * x) at v = 3"""

    def f(b: Build, x: Var) -> Atom:
        g = b.lam("g", [F], F, lambda c, v: c.op("multiply", c.op("multiply", v, v), x))
        return b.call(grad(b, g), real(3))

    return module(function("f", [F], F, f))


def second() -> Module:
    """The second derivative of v^3 * x, and the one of a seedable derivative, of a closure."""

    def f(b: Build, x: Var) -> Atom:
        def cubed(c: Build, v: Var) -> Atom:
            return c.op("multiply", c.op("multiply", c.op("multiply", v, v), v), x)

        g = b.lam("g", [F], F, cubed)
        twice = b.call(grad(b, grad(b, g)), x)
        seeded = b.call(grad(b, grad(b, g, seedable=True), wrt=(0,)), x, real(2))
        both = b.call(grad(b, grad(b, g, seedable=True)), x, real(2))
        return b.tuple(twice, seeded, both)

    return module(function("f", [F], TupleType((F, F, TupleType((F, F)))), f))


def function_argument() -> Module:
    """grad with respect to the second parameter of a function that takes a function and a count."""
    type_ = FunctionType((FF, F, Z), F)

    def repeat(b: Build, label: LoopLabel, g: Var, x: Var, n: Var) -> Terminator:
        b.branch([], (b.op("less_equal", n, whole(0)), leave(label, x)))
        rest = b.call(Global("repeat", type_), g, x, b.op("subtract", n, whole(1)))
        return Exit(label, (b.call(g, rest),))

    def f(b: Build, x: Var) -> Atom:
        g = b.lam("g", [F], F, lambda c, v: c.op("multiply", c.op("add", v, x), v))
        d = grad(b, Global("repeat", type_), wrt=(1,), with_value=True)
        return b.call(d, g, x, whole(3))

    return module(function("f", [F], TupleType((F, F)), f), function("repeat", [FF, F, Z], F, repeat))


def no_gradients() -> Module:
    """All parameters, one of which is an integer; a kept result."""

    def g(b: Build, x: Var, n: Var, y: Var) -> Atom:
        return b.tuple(b.op("multiply", b.op("multiply", x, y), y), n)

    made = function("g", [F, Z, F], TupleType((F, Z)), g)

    def f(b: Build, x: Var) -> Atom:
        return b.call(grad(b, Global("g", made.type), output=0, keeping=(1,)), x, whole(7), real(3))

    return module(function("f", [F], TupleType((F, TupleType(()), F, Z)), f), made)


@pytest.mark.parametrize("make", [captured, second, function_argument, no_gradients])
@pytest.mark.parametrize("level", [0, 2])
def test_derivative_agrees_with_the_interpreter(make: Callable[[], Module], level: int) -> None:
    before = make()
    core = specialize(before)
    check(core, "core")
    again = specialize(core)
    check(again, "core")
    for lowered in (core, again):
        after = optimize(differentiate(prepare(structure(lowered), level, checked=True)), level, checked=True)
        check(after, "core")
        for x in (0.5, -2.0):
            expected = run(before, arguments_of(before, (x,)))
            _equal(run(after, arguments_of(after, (x,))), expected)


def _equal(found: object, expected: object) -> None:
    if isinstance(expected, tuple):
        assert isinstance(found, tuple)
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            _equal(one, other)
    else:
        np.testing.assert_allclose(np.asarray(found), np.asarray(expected), rtol=1e-6)


def test_parameters_come_before_captured_variables_and_the_seed() -> None:
    core = specialize(second())
    pending = [f for f in core.functions.values() if isinstance(f, Derivative)]
    seeded = next(d for d in pending if d.grad.seedable)
    of = core.functions[seeded.of]
    assert seeded.type.parameters == (*of.type.parameters, F)
    assert seeded.grad.wrt == (0,)
    outer = next(d for d in pending if d.of == seeded.name and len(d.grad.wrt or ()) == 2)
    assert outer.grad.wrt == (0, 2)


def test_same_derivative_is_asked_for_once() -> None:
    def f(b: Build, x: Var) -> Atom:
        g = b.lam("g", [F], F, lambda c, v: c.op("multiply", v, x))
        return b.op("add", b.call(grad(b, g), x), b.call(grad(b, g), real(1)))

    core = specialize(module(function("f", [F], F, f)))
    assert sum(isinstance(made, Derivative) for made in core.functions.values()) == 1


def test_derivative_of_a_function_that_also_returns_a_function() -> None:
    def f(b: Build, x: Var) -> Atom:
        g = b.lam("g", [F], TupleType((F, FF)), lambda c, v: c.tuple(v, c.lam("h", [F], F, lambda d, w: w)))
        return b.call(grad(b, g, output=0), x)

    before = module(function("f", [F], F, f))
    after = differentiate(prepare(structure(specialize(before))), optimize)
    assert_first_order(after)
    for program in (before, after):
        np.testing.assert_allclose(run(program, [np.asarray(2, np.float32)]), 1)


def test_order_of_differentiation_that_depends_on_the_run_is_refused() -> None:
    type_ = FunctionType((FF, Z, F), F)

    def nth(b: Build, label: LoopLabel, g: Var, n: Var, x: Var) -> Terminator:
        b.branch([], (b.op("equal", n, whole(0)), lambda c: Exit(label, (c.call(g, x),))))
        less = b.op("subtract", n, whole(1))
        return Exit(label, (b.call(Global("nth", type_), grad(b, g), less, x),))

    def f(b: Build, n: Var, x: Var) -> Atom:
        g = b.lam("g", [F], F, lambda c, v: c.op("multiply", v, v))
        return b.call(Global("nth", type_), g, n, x)

    with pytest.raises(DifferentiationError, match="the order of differentiation depends on a run-time value"):
        specialize(module(function("f", [Z, F], F, f), function("nth", [FF, Z, F], F, nth)))
