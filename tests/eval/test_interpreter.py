"""The reference interpreter: every node, and the explicit frame stack.

The programs are built by hand, with operators of their own, so that nothing but the interpreter is tested.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np
import pytest
from interpreted_modules import (
    LIST,
    SPAN,
    B,
    Body,
    F,
    L,
    N,
    block,
    choose,
    counted,
    f32,
    function,
    give,
    module,
    number,
    sum_list,
    upto,
)

import relay.ops  # noqa: F401  registers the operators
from relay.errors import ExecutionError, InternalError
from relay.eval.interpreter import Machine, call, run
from relay.eval.values import Closure, Data, Stack
from relay.ir.expr import (
    Arm,
    Assert,
    Atom,
    Binding,
    Block,
    Call,
    Constant,
    Dead,
    Exit,
    Function,
    Global,
    If,
    Lambda,
    Loop,
    LoopLabel,
    MakeTuple,
    Module,
    Next,
    Project,
    RefNew,
    RefRead,
    RefWrite,
    StackGet,
    StackLength,
    StackNew,
    StackPush,
    Static,
    Terminator,
    Var,
    Yield,
)
from relay.ir.types import (
    FLOAT32,
    DataType,
    FunctionType,
    RefType,
    StackType,
    TensorType,
    TupleType,
)

# ---- values and plain nodes


def test_operators_take_and_give_arrays_also_at_rank_0() -> None:
    program = module(function("f", [F, F], F, lambda b, x, y: b.op("toy_add", x, y)))
    result = run(program, [1.5, f32(2)])
    assert isinstance(result, np.ndarray) and result.dtype == np.float32 and result.shape == () and result == 3.5


def test_results_do_not_alias_arguments_or_constants() -> None:
    three = TensorType(FLOAT32, (3,))
    stored = Constant(np.ones(3, np.float32))
    program = module(
        function(
            "f",
            [three],
            TupleType((three, three)),
            lambda b, x: b.let(MakeTuple((x, stored)), TupleType((three, three))),
        )
    )
    given = np.zeros(3, np.float32)
    same, constant = run(program, [given])
    same[:] = constant[:] = 7
    assert not given.any() and (stored.value == 1).all()


def test_wrong_arguments_are_refused() -> None:
    program = module(function("f", [F], F, lambda b, x: x))
    with pytest.raises(ExecutionError, match=r"p0 must be Tensor\[float32, \(\)\], found Tensor\[int32, \(2,\)\]"):
        run(program, [np.zeros(2, np.int32)])
    with pytest.raises(ExecutionError, match="takes 1 arguments, found 2"):
        run(program, [1.0, 2.0])


def test_tuples_and_projections() -> None:
    pair = TupleType((F, N))

    def build(b: Body, x: Var, y: Var) -> Atom:
        whole = b.let(MakeTuple((x, y)), pair)
        return b.let(MakeTuple((b.let(Project(whole, 1), N), b.let(Project(whole, 0), F))), TupleType((N, F)))

    assert run(module(function("f", [F, N], TupleType((N, F)), build)), [1.0, 2]) == (2, 1.0)


def test_references_share_their_cell() -> None:
    def build(b: Body, x: Var) -> Atom:
        cell = b.let(RefNew(x), RefType(F))
        again = b.let(cell, RefType(F))
        b.let(RefWrite(again, b.op("toy_add", b.let(RefRead(cell), F), number(1))))
        return b.let(RefRead(cell), F)

    assert run(module(function("f", [F], F, build)), [1.0]) == 2


def test_stacks_are_persistent() -> None:
    stack = StackType(F)

    def build(b: Body, x: Var) -> Atom:
        one = b.let(StackPush(b.let(StackNew(F), stack), x), stack)
        left = b.let(StackPush(one, number(10)), stack)
        right = b.let(StackPush(one, number(20)), stack)
        parts = [b.let(StackGet(s, number(1, N)), F) for s in (left, right)]
        result = TupleType((F, F, L, L))
        return b.let(MakeTuple((*parts, b.let(StackLength(one), L), b.let(StackLength(right), L))), result)

    assert run(module(function("f", [F], TupleType((F, F, L, L)), build)), [1.0]) == (10, 20, 1, 2)


def test_a_push_on_the_newest_stack_is_in_place() -> None:
    first = Stack([], 0).push(1)
    second = first.push(2)
    assert second.buffer is first.buffer and first.push(3).buffer is not first.buffer


def test_a_get_out_of_range_is_the_users_error() -> None:
    def build(b: Body) -> Atom:
        return b.let(StackGet(b.let(StackNew(F), StackType(F)), number(0, N), SPAN), F)

    with pytest.raises(ExecutionError, match="index 0 is out of range for a stack of 0"):
        run(module(function("f", [], F, build)), [])


def test_assert_stops_at_its_place() -> None:
    def build(b: Body, x: Var) -> Atom:
        b.let(Assert(b.op("toy_less", x, number(0)), "x must be negative", SPAN))
        return x

    program = module(function("f", [F], F, build))
    assert run(program, [-1.0]) == -1
    with pytest.raises(ExecutionError) as caught:
        run(program, [1.0])
    assert str(caught.value).startswith("program.py:2:1: error: x must be negative\n  |\n2 | second\n")


def test_an_operators_requirement_stops_at_the_call() -> None:
    program = module(function("f", [N, N], N, lambda b, x, y: b.op("toy_mod", x, y)))
    assert run(program, [7, -4]) == -1
    with pytest.raises(ExecutionError, match="the second operand must be negative") as caught:
        run(program, [7, 4])
    assert caught.value.span is SPAN
    floats = module(function("f", [F, F], F, lambda b, x, y: b.op("toy_mod", x, y)))
    assert run(floats, [7.0, 4.0]) == 3  # nothing is required of floats


# ---- control flow


@pytest.mark.parametrize(("x", "expected"), [(-5, 1), (5, 2), (15, 3)])
def test_an_if_takes_the_first_arm_that_holds(x: int, expected: int) -> None:
    def below(limit: int) -> Callable[[Var], Block]:
        return lambda v: block(lambda b: Yield((b.op("toy_less", v, number(limit, N)),)))

    def build(b: Body, v: Var) -> Atom:
        arms = (Arm(below(0)(v), give(number(1, N))), Arm(below(10)(v), give(number(2, N))))
        return b.let(If(arms, give(number(3, N))), N)

    assert run(module(function("f", [N], N, build)), [x]) == expected


def test_a_counted_loop() -> None:
    def build(b: Body, n: Var) -> Atom:
        return counted(b, n, [number(0, N)], lambda r, label, i, s: Next(label, (r.op("toy_add", s, i),)))

    program = module(function("f", [N], N, build))
    assert [int(run(program, [n])) for n in (0, 1, 5)] == [0, 0, 10]


def while_below(b: Body, start: Atom, limit: Atom, step: Atom) -> Var:
    label, x = LoopLabel("while"), Var("x", start.type)

    def round_(r: Body) -> Terminator:
        condition = block(lambda c: Yield((c.op("toy_less", x, limit),)))
        again = block(lambda a: Next(label, (a.op("toy_add", x, step),)))
        r.let(If((Arm(condition, again),), Block((), Exit(label, (x,)))))
        return Dead()

    return b.let(Loop(label, (x,), (start,), block(round_)), x.type)


def test_a_while_loop() -> None:
    program = module(function("f", [F], F, lambda b, n: while_below(b, number(0), n, number(1))))
    assert run(program, [9.5]) == 10


def test_leaving_two_loops_at_once_and_the_function_from_a_loop() -> None:
    def build(b: Body, leave: LoopLabel, n: Var) -> Atom:
        outer, total = LoopLabel("outer"), Var("total", N)

        def inner_round(r: Body, label: LoopLabel, i: Var, s: Var) -> Terminator:
            grown = r.op("toy_add", s, number(1, N))
            stop = r.op("toy_less", number(6, N), grown)
            r.let(choose(stop, Block((), Exit(outer, (grown,))), give()))
            never = r.op("toy_less", number(100, N), grown)
            r.let(choose(never, Block((), Exit(leave, (grown,))), give()))
            return Next(label, (grown,))

        def outer_round(r: Body) -> Terminator:
            return Next(outer, (counted(r, n, [total], inner_round),))

        return b.let(Loop(outer, (total,), (number(0, N),), block(outer_round)), N)

    assert run(module(function("^f", [N], N, build)), [4]) == 7


def test_data_and_match() -> None:
    def build(b: Body, n: Var, x: Var) -> Atom:
        xs = b.let(Call(Global("upto"), (n, x)), DataType(LIST))
        return b.let(Call(Global("total"), (xs,)), F)

    program = module(function("main", [N, F], F, build), upto(), sum_list(), data=(LIST,))
    assert run(program, [10, 1.0]) == 55


# ---- functions


def test_closures_capture_a_loops_variables_as_they_are() -> None:
    """Each round makes a closure; the last round calls the one of the round before."""
    arrow = FunctionType((), N)

    def build(b: Body) -> Atom:
        first = b.let(Lambda(function("zero", [], N, lambda b: number(-1, N))), arrow)

        def round_(r: Body, label: LoopLabel, i: Var, last: Var, before: Var) -> Terminator:
            made = r.let(Lambda(function("index", [], N, lambda b: i)), arrow)
            return Next(label, (made, last))

        last, before = counted(b, number(3, N), [first, first], round_)
        parts = [b.let(Call(f, ()), N) for f in (last, before)]
        return b.let(MakeTuple(tuple(parts)), TupleType((N, N)))

    assert run(module(function("f", [], TupleType((N, N)), build)), []) == (2, 1)


def test_neighboring_lambdas_see_each_other() -> None:
    arrow = FunctionType((N,), B)
    even, odd = Var("even", arrow), Var("odd", arrow)

    def parity(name: str, other: Var, at_zero: bool) -> Function:
        def build(b: Body, leave: LoopLabel, n: Var) -> None:
            rest = block(lambda r: Exit(leave, (r.let(Call(other, (r.op("toy_add", n, number(-1, N)),)), B),)))
            done = Block((), Exit(leave, (number(at_zero, B),)))
            b.let(choose(b.op("toy_less", n, number(1, N)), done, rest))

        return function("^" + name, [N], B, build)

    def build(b: Body, n: Var) -> Atom:
        b.bindings.append(Binding((even,), Lambda(parity("even", odd, True))))
        b.bindings.append(Binding((odd,), Lambda(parity("odd", even, False))))
        return b.let(Call(even, (n,)), B)

    program = module(function("f", [N], B, build))
    assert [bool(run(program, [n])) for n in (0, 1, 10, 1001)] == [True, False, True, False]


def test_functions_are_values_that_call_can_call() -> None:
    arrow = FunctionType((F,), F)

    def build(b: Body, x: Var) -> Atom:
        return b.let(Lambda(function("add", [F], F, lambda b, y: b.op("toy_add", x, y))), arrow)

    add = run(module(function("f", [F], arrow, build)), [1.0])
    assert isinstance(add, Closure)
    assert call(add, [2.0]) == 3


# ---- depth


def recursion(tail: bool) -> Module:
    """f(n, a) = a if n < 1 else f(n - 1, a + 1), or f(n - 1, a) + 1."""

    def build(b: Body, leave: LoopLabel, n: Var, a: Var) -> Atom:
        def rest(r: Body) -> Terminator:
            less = r.op("toy_add", n, number(-1, N))
            if tail:
                return Yield((r.let(Call(Global("f"), (less, r.op("toy_add", a, number(1, N)))), N),))
            deep = r.let(Call(Global("f"), (less, a)), N)
            return Exit(leave, (r.op("toy_add", deep, number(1, N)),))

        return b.let(choose(b.op("toy_less", n, number(1, N)), give(a), block(rest)), N)

    return module(function("^f", [N, N], N, build))


def test_deep_recursion_at_the_default_limit() -> None:
    assert sys.getrecursionlimit() <= 1000
    assert run(recursion(tail=False), [100_000, 0]) == 100_000


def test_tail_calls_take_constant_space() -> None:
    program = recursion(tail=True)
    machine = Machine()
    machine.enter(Closure(program.main, {}, program), [np.array(1000, np.int32), np.array(0, np.int32)])
    while machine.step():
        assert len(machine.frames) == 1
    assert machine.result == 1000


def test_many_rounds() -> None:
    program = module(function("f", [N], N, lambda b, n: while_below(b, number(0, N), n, number(1, N))))
    assert run(program, [200_000]) == 200_000


def test_deep_data_can_be_returned() -> None:
    program = module(upto(), data=(LIST,))
    value, length = run(program, [50_000, 1.0]), 0
    while isinstance(value, Data) and value.fields:
        value, length = value.fields[1], length + 1
    assert length == 50_000


def test_a_long_block() -> None:
    def build(b: Body, x: Var) -> Atom:
        for _ in range(20_000):
            x = b.op("toy_add", x, number(1, N))
        return x

    assert run(module(function("f", [N], N, build)), [0]) == 20_000


def test_the_backtrace_names_functions_and_places() -> None:
    program = module(
        function("outer", [F], F, lambda b, x: b.op("toy_add", b.let(Call(Global("inner"), (x,), SPAN), F), x)),
        function("inner", [F], F, lambda b, x: b.op("toy_add", x, x)),
    )
    machine = Machine()
    machine.enter(Closure(program.main, {}, program), [f32(1)])
    machine.step()
    assert machine.backtrace() == [("outer", SPAN), ("inner", None)]
    while machine.step():
        pass
    assert machine.result == 3


# ---- our own mistakes


def test_a_value_that_breaks_its_variables_type_is_our_bug() -> None:
    wrong = Var("y", N)
    label = LoopLabel("f")
    x = Var("x", F)
    broken = Function("f", (x,), Block((Binding((wrong,), x),), Exit(label, (wrong,))), label, N)
    with pytest.raises(InternalError, match=r"%y: Tensor\[int32, \(\)\] got Tensor\[float32, \(\)\] in f"):
        run(Module({"f": broken}, "f"), [1.0])


def test_surface_nodes_are_refused() -> None:
    label = LoopLabel("f")
    surface = Function("f", (), Block((Binding((Var("x"),), Static(1)),), Exit(label, (Var("x"),))), label)
    with pytest.raises(InternalError, match="surface"):
        run(Module({"f": surface}, "f"), [])
