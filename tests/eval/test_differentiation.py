"""Differentiation on the reference interpreter: a dynamic tape, nested, through every construct."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from interpreted_modules import (
    LIST,
    SPAN,
    Body,
    F,
    N,
    counted,
    f32,
    function,
    module,
    number,
    sum_list,
    upto,
)

import relay.ops  # noqa: F401  registers the operators
from relay.errors import DifferentiationError
from relay.eval.interpreter import run
from relay.ir.derivative import gradient_type
from relay.ir.expr import (
    Atom,
    Call,
    Function,
    Global,
    Grad,
    Lambda,
    MakeTuple,
    Next,
    Project,
    RefNew,
    RefRead,
    RefWrite,
    StackGet,
    StackNew,
    StackPush,
    Var,
)
from relay.ir.types import (
    FLOAT32,
    FLOAT64,
    DataType,
    FunctionType,
    RefType,
    StackType,
    TensorType,
    TupleType,
    scalar,
)


def gradient_of(f: Function, *arguments: object, **options: Any) -> Any:
    """grad(f) called from a function of a module."""
    grad = Grad(Global(f.name), **options)
    type_ = gradient_type(f.type, grad)

    def build(body: Body, *parameters: Var) -> Atom:
        derivative = body.let(grad, type_)
        return body.let(Call(derivative, parameters), type_.result)

    return run(module(function("main", type_.parameters, type_.result, build), f), arguments)


def cube() -> Function:
    return function("cube", [F], F, lambda b, x: b.op("toy_multiply", x, b.op("toy_multiply", x, x)))


def test_a_gradient() -> None:
    assert gradient_of(cube(), 2.0) == 12
    assert gradient_of(cube(), 2.0, with_value=True) == (8, 12)
    assert gradient_of(cube(), 2.0, 0.5, seedable=True) == 6
    assert gradient_of(cube(), 2.0, keeping=(0,)) == (12, 8)


@pytest.mark.parametrize(("order", "expected"), [(1, 12), (2, 12), (3, 6), (4, 0)])
def test_gradients_of_gradients(order: int, expected: float) -> None:
    arrow = FunctionType((F,), F)

    def build(b: Body, x: Var) -> Atom:
        derivative: Atom = Global("cube")
        for _ in range(order):
            derivative = b.let(Grad(derivative), arrow)
        return b.let(Call(derivative, (x,)), F)

    assert run(module(function("main", [F], F, build), cube()), [2.0]) == expected


def test_perturbations_are_not_confused() -> None:
    """d/dx (x * d/dy (x + y)) = 1, and d/dx (x * d/dy (x * y)) = 2x."""
    arrow = FunctionType((F,), F)
    for operator, expected in (("toy_add", 1), ("toy_multiply", 6)):

        def outer(b: Body, x: Var, operator: str = operator) -> Atom:
            inner = b.let(Lambda(function("inner", [F], F, lambda i, y: i.op(operator, x, y))), arrow)
            slope = b.let(Call(b.let(Grad(inner), arrow), (number(1),)), F)
            return b.op("toy_multiply", x, slope)

        assert gradient_of(function("outer", [F], F, outer), 3.0) == expected


def test_broadcast_operands_are_summed_back() -> None:
    row, column, full = (TensorType(FLOAT64, s) for s in ((1, 3), (2, 1), (2, 3)))
    f = function("f", [row, column], full, lambda b, x, y: b.op("toy_multiply", x, y))
    x, y, seed = np.array([[1.0, 2, 3]]), np.array([[4.0], [5]]), np.ones((2, 3))
    dx, dy = gradient_of(f, x, y, seed, seedable=True)
    np.testing.assert_array_equal(dx, [[9, 9, 9]])
    np.testing.assert_array_equal(dy, [[6], [6]])


def test_the_seed_is_needed_for_more_than_one_element() -> None:
    pair = TensorType(FLOAT32, (2,))
    f = function("f", [pair], pair, lambda b, x: b.op("toy_sin", x))
    with pytest.raises(DifferentiationError, match="one element"):
        gradient_type(f.type, Grad(Global("f")))
    np.testing.assert_allclose(gradient_of(f, f32([0, 1]), f32([1, 2]), seedable=True), [1, 2 * np.cos(1)], rtol=1e-6)


def test_integers_and_tuples_have_gradients_of_their_structure() -> None:
    pair = TupleType((F, N))

    def build(b: Body, p: Var, n: Var, unused: Var) -> Atom:
        x = b.let(Project(p, 0), F)
        return b.op("toy_multiply", x, x)

    dp, dn, dunused = gradient_of(function("f", [pair, N, F], F, build), (f32(3), np.array(1, np.int32)), 1, 5.0)
    assert dp == (6, ()) and dn == () and dunused == 0


def test_wrt_and_output() -> None:
    def build(b: Body, x: Var, y: Var) -> Atom:
        parts = (b.op("toy_add", x, y), b.op("toy_multiply", x, y))
        return b.let(MakeTuple(parts), TupleType((F, F)))

    f = function("f", [F, F], TupleType((F, F)), build)
    assert gradient_of(f, 2.0, 5.0, output=0) == (1, 1)
    assert gradient_of(f, 2.0, 5.0, output=1) == (5, 2)
    assert gradient_of(f, 2.0, 5.0, output=1, wrt=(1,)) == 2
    assert gradient_of(f, 2.0, 5.0, output=-1, wrt=(1, 0), keeping=(0, 1)) == (2, 5, 7, 10)


def test_gradients_through_loops_lists_references_and_stacks() -> None:
    def build(b: Body, x: Var, n: Var) -> Atom:
        cell = b.let(RefNew(number(0)), RefType(F))
        stack = b.let(StackPush(b.let(StackNew(F), StackType(F)), x), StackType(F))
        xs = b.let(Call(Global("upto"), (n, x)), DataType(LIST))
        b.let(RefWrite(cell, b.let(Call(Global("total"), (xs,)), F)))  # x n (n + 1) / 2
        power = counted(b, n, [number(1)], lambda r, label, i, p: Next(label, (r.op("toy_multiply", p, x),)))
        kept = b.let(StackGet(stack, number(0, N)), F)
        return b.op("toy_add", b.op("toy_multiply", kept, b.let(RefRead(cell), F)), power)

    f = function("f", [F, N], F, build)
    grad = Grad(Global("f"), wrt=(0,))

    def main(b: Body, x: Var, n: Var) -> Atom:
        return b.let(Call(b.let(grad, FunctionType((F, N), F)), (x, n)), F)

    program = module(function("main", [F, N], F, main), f, upto(), sum_list(), data=(LIST,))
    assert run(program, [2.0, 3]) == 2 * 2 * 6 + 3 * 4


def test_a_deep_recursion_has_a_gradient() -> None:
    def main(b: Body, x: Var, n: Var) -> Atom:
        xs = b.let(Call(Global("upto"), (n, x)), DataType(LIST))
        return b.let(Call(Global("total"), (xs,)), F)

    f = function("f", [F, N], F, main)

    def derived(b: Body, x: Var, n: Var) -> Atom:
        grad = b.let(Grad(Global("f"), wrt=(0,)), FunctionType((F, N), F))
        return b.let(Call(grad, (x, n)), F)

    program = module(function("main", [F, N], F, derived), f, upto(), sum_list(), data=(LIST,))
    assert run(program, [1.0, 3000]) == 3000 * 3001 / 2


def test_a_value_that_outlives_its_tape_is_a_constant() -> None:
    """The inner function writes its argument times x to a reference outside; the outer derivative sees only x in it."""
    arrow = FunctionType((F,), F)

    def build(b: Body, x: Var) -> Atom:
        cell = b.let(RefNew(x), RefType(F))

        def inner(i: Body, y: Var) -> Atom:
            product = i.op("toy_multiply", x, y)
            i.let(RefWrite(cell, product))
            return product

        made = b.let(Lambda(function("inner", [F], F, inner)), arrow)
        b.let(Call(b.let(Grad(made), arrow), (number(5),)), F)
        return b.let(RefRead(cell), F)

    f = function("f", [F], F, build)
    assert run(module(f), [3.0]) == 15
    assert gradient_of(f, 3.0) == 5


def test_an_operator_without_a_gradient_matters_only_where_a_cotangent_arrives() -> None:
    def used(b: Body, x: Var) -> Atom:
        return b.op("toy_multiply", x, b.op("toy_floor", x))

    def unused(b: Body, x: Var) -> Atom:
        b.op("toy_floor", x)
        return b.op("toy_multiply", x, b.op("toy_scale", b.op("toy_floor", x), factor=0.0))

    with pytest.raises(DifferentiationError, match="toy_floor has no gradient: its derivative is zero") as caught:
        gradient_of(function("f", [F], F, used), 1.5)
    assert caught.value.span is SPAN
    assert gradient_of(function("f", [F], F, unused), 1.5) == 0


def test_stopped_gradients() -> None:
    f = function("f", [F], F, lambda b, x: b.op("toy_multiply", x, b.op("toy_stop", x)))
    assert gradient_of(f, 3.0) == 3


def test_a_result_that_does_not_depend_on_the_argument() -> None:
    assert gradient_of(function("f", [F], F, lambda b, x: number(1)), 3.0) == 0


def test_sines_against_finite_differences() -> None:
    wide = scalar(FLOAT64)
    f = function("f", [wide], wide, lambda b, x: b.op("toy_sin", b.op("toy_multiply", x, b.op("toy_sin", x))))
    step = 1e-6
    program = module(f)
    for x in (0.3, 1.7):
        above, below = (run(program, [np.array(x + d)]) for d in (step, -step))
        slope = (above - below) / (2 * step)
        np.testing.assert_allclose(gradient_of(f, np.array(x)), slope, rtol=1e-8)
