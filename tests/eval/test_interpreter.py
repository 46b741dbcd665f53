"""The reference interpreter: every node, the explicit frame stack, and its own differentiation.

The programs are built by hand, with operators of their own, so that nothing but the interpreter is tested.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import pytest

import relay.ops  # noqa: F401  registers the operators
from relay.errors import DifferentiationError, ExecutionError, InternalError, Source, Span
from relay.eval.interpreter import Machine, call, run
from relay.eval.values import Closure, Data, Stack
from relay.ir.derivative import gradient_type
from relay.ir.expr import (
    Arm,
    Assert,
    Atom,
    Binding,
    Block,
    Call,
    Constant,
    Construct,
    Counter,
    Dead,
    Exit,
    Expr,
    Function,
    Global,
    Grad,
    If,
    Lambda,
    Loop,
    LoopLabel,
    MakeTuple,
    Match,
    MatchArm,
    Module,
    Next,
    OpCall,
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
    BOOL,
    FLOAT32,
    FLOAT64,
    INT32,
    INT64,
    Constructor,
    DataDefinition,
    DataType,
    FunctionType,
    RefType,
    Shape,
    StackType,
    TensorType,
    TupleType,
    Type,
    scalar,
)
from relay.ir.validation.check import check
from relay.operator import Relation, Requirement, lookup, register_op, resolve_name

Tensor: TypeAlias = Any
"""Marks operands."""


def _broadcast(x: Shape, y: Shape) -> Shape:
    return np.broadcast_shapes(x, y)


def _same(x: Shape, **attributes: Any) -> Shape:
    return x


def _first(x: Any, y: Any, **attributes: Any) -> Any:
    return x


def _operators() -> None:
    """Operators under names that nothing else uses; once a process."""
    if resolve_name("toy_add") is not None:
        return

    @register_op(
        relation=Relation("T, T -> T", _broadcast), compute=_first, gradient=lambda x, y, out, dout: (dout, dout)
    )
    def toy_add(x: Tensor, y: Tensor) -> Tensor:
        """Sum."""
        return np.add(x, y)

    @register_op(
        relation=Relation("T, T -> T", _broadcast),
        compute=_first,
        gradient=lambda x, y, out, dout: (dout.op("toy_multiply", y), dout.op("toy_multiply", x)),
    )
    def toy_multiply(x: Tensor, y: Tensor) -> Tensor:
        """Product."""
        return np.multiply(x, y)

    @register_op(
        relation=Relation("T -> T", _same),
        compute=_same,
        gradient=lambda x, out, dout: dout.op("toy_multiply", x.op("toy_cos")),
    )
    def toy_sin(x: Tensor) -> Tensor:
        """Sine."""
        return np.sin(x)

    @register_op(
        relation=Relation("T -> T", _same),
        compute=_same,
        gradient=lambda x, out, dout: dout.op("toy_multiply", x.op("toy_sin").op("toy_scale", factor=-1.0)),
    )
    def toy_cos(x: Tensor) -> Tensor:
        """Cosine."""
        return np.cos(x)

    @register_op(
        relation=Relation("T -> T", _same),
        compute=_same,
        gradient=lambda x, out, dout, factor: dout.op("toy_scale", factor=factor),
    )
    def toy_scale(x: Tensor, factor: float = 2.0) -> Tensor:
        """Product with a number."""
        return x * x.dtype.type(factor)

    @register_op(relation=Relation("T, T -> bool", _broadcast), compute=_first, no_gradient="it is a step")
    def toy_less(x: Tensor, y: Tensor) -> Tensor:
        """Comparison."""
        return np.less(x, y)

    @register_op(relation=Relation("T -> T", _same), compute=_same, no_gradient="its derivative is zero or undefined")
    def toy_floor(x: Tensor) -> Tensor:
        """Floor."""
        return np.floor(x)

    @register_op(
        relation=Relation("T, T -> T", _broadcast),
        compute=_first,
        no_gradient="integers",
        requirements=(
            Requirement(
                lambda x, y: None if y.base.is_float else y.op("toy_less", 0), "the second operand must be negative"
            ),
        ),
    )
    def toy_mod(x: Tensor, y: Tensor) -> Tensor:
        """Remainder."""
        return np.mod(x, y)

    @register_op(relation=Relation("T -> T", _same), compute=_same, gradient=lambda x, out, dout: None)
    def toy_stop(x: Tensor) -> Tensor:
        """The operand, without a gradient."""
        return x


_operators()

F, N, L, B = scalar(FLOAT32), scalar(INT32), scalar(INT64), scalar(BOOL)
SPAN = Span(Source("program.py", "first\nsecond\n"), 2, 1, 2, 7)


def number(value: float | bool, type_: TensorType = F) -> Constant:
    return Constant(np.asarray(value, type_.dtype))


def f32(value: object) -> np.ndarray:
    return np.asarray(value, np.float32)


class Body:
    """Collects the bindings of a block. `%` types are inferred for operators and given otherwise."""

    def __init__(self) -> None:
        self.bindings: list[Binding] = []

    def op(self, name: str, *arguments: Atom, **attributes: Any) -> Var:
        types = [a.type for a in arguments]
        return self.let(OpCall(name, arguments, attributes, SPAN), lookup(name).infer(types, attributes))

    def let(self, expression: Expr, *types: Type) -> Any:
        targets = tuple(Var("v", t) for t in types)
        self.bindings.append(Binding(targets, expression))
        return targets[0] if len(targets) == 1 else targets

    def block(self, terminator: Terminator) -> Block:
        return Block(tuple(self.bindings), terminator)


def block(build: Callable[[Body], Terminator]) -> Block:
    body = Body()
    return body.block(build(body))


def give(*atoms: Atom) -> Block:
    return Block((), Yield(atoms))


def function(
    name: str, types: Sequence[Type], result: Type, build: Callable[..., Atom | Terminator | None]
) -> Function:
    """`build(body, *parameters)` returns the result, a terminator, or None for Dead."""
    parameters = tuple(Var(f"p{i}", t) for i, t in enumerate(types))
    label, body = LoopLabel(name), Body()
    end = build(body, *parameters) if name[0] != "^" else build(body, label, *parameters)
    if isinstance(end, Var | Constant | Global):
        end = Exit(label, (end,))
    return Function(name.lstrip("^"), parameters, body.block(end or Dead()), label, result)


def module(*functions: Function, data: tuple[DataDefinition, ...] = ()) -> Module:
    made = Module({f.name: f for f in functions}, functions[0].name, data)
    check(made)
    return made


def choose(condition: Atom, first: Block, second: Block) -> If:
    return If((Arm(give(condition), first),), second)


def gradient_of(f: Function, *arguments: object, **options: Any) -> Any:
    """grad(f) called from a function of a module."""
    grad = Grad(Global(f.name), **options)
    type_ = gradient_type(f.type, grad)

    def build(body: Body, *parameters: Var) -> Atom:
        derivative = body.let(grad, type_)
        return body.let(Call(derivative, parameters), type_.result)

    return run(module(function("main", type_.parameters, type_.result, build), f), arguments)


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


def counted(b: Body, count: Atom, initial: Sequence[Atom], round_: Callable[..., Terminator]) -> Any:
    """A loop with a counter; `round_(body, label, index, *parameters)`."""
    label, index = LoopLabel("loop"), Var("i", N)
    parameters = tuple(Var("c", a.type) for a in initial)
    inner = block(lambda body: round_(body, label, index, *parameters))
    types = [p.type for p in parameters]
    return b.let(Loop(label, parameters, tuple(initial), inner, Counter(index, count)), *types)


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


LIST = DataDefinition("List")
LIST.constructors = (Constructor("Nil", ()), Constructor("Cons", (F, DataType(LIST))))


def sum_list(name: str = "total") -> Function:
    """Recursive, not in tail position."""

    def build(b: Body, xs: Var) -> Atom:
        head, tail = Var("head", F), Var("tail", DataType(LIST))

        def cons(r: Body) -> Terminator:
            return Yield((r.op("toy_add", head, r.let(Call(Global(name), (tail,)), F)),))

        arms = (MatchArm("Nil", (), give(number(0))), MatchArm("Cons", (head, tail), block(cons)))
        return b.let(Match(xs, arms), F)

    return function(name, [DataType(LIST)], F, build)


def upto() -> Function:
    """The list of 1, .., n (as float32) times x, for an int32 n."""

    def build(b: Body, n: Var, x: Var) -> Atom:
        start = b.let(Construct(LIST, "Nil", ()), DataType(LIST))

        def round_(r: Body, label: LoopLabel, i: Var, xs: Var, k: Var) -> Terminator:
            element = r.op("toy_multiply", k, x)
            cons = r.let(Construct(LIST, "Cons", (element, xs)), DataType(LIST))
            return Next(label, (cons, r.op("toy_add", k, number(1))))

        return counted(b, n, [start, number(1)], round_)[0]

    return function("upto", [N, F], DataType(LIST), build)


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


# ---- differentiation


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
