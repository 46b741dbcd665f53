"""Relay's notation, by whole texts."""

from __future__ import annotations

import itertools
import textwrap

import ml_dtypes
import numpy as np
import pytest

import relay
from relay.ir.expr import (
    Arm,
    Assert,
    Binding,
    Block,
    Call,
    Constant,
    Construct,
    Counter,
    Dead,
    Derivative,
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
    Parameter,
    Project,
    RefNew,
    RefRead,
    RefWrite,
    StackGet,
    StackLength,
    StackNew,
    StackPush,
    Static,
    Var,
    Yield,
)
from relay.ir.surface import Annotated, Apply, Attribute, ForEach, Index, IndexUpdate, SetAttribute, Slice, Unpack
from relay.ir.types import (
    BOOL,
    FLOAT32,
    INT32,
    Constructor,
    DataDefinition,
    DataType,
    FunctionType,
    TensorType,
    scalar,
)
from relay.text.printer import to_text

F, N, B = scalar(FLOAT32), scalar(INT32), scalar(BOOL)


def number(value: float, dtype: str = "float32") -> Constant:
    return Constant(np.asarray(value, dtype))


def same(found: str, expected: str) -> None:
    assert found == textwrap.dedent(expected).strip()


def test_a_function() -> None:
    matrix = TensorType(FLOAT32, (1, 1))
    a, x, product, label = Var("a", matrix), Var("x", matrix), Var("product", matrix), LoopLabel("loss")
    total = Var("product", matrix)
    bindings = (
        Binding((product,), OpCall("multiply", (a, x))),
        Binding((total,), OpCall("sum", (product,), {"axis": (0,), "keepdims": True})),
    )
    same(
        to_text(Function("loss", (a, x), Block(bindings, Exit(label, (total,))), label, matrix)),
        """
        fn loss(%a: Tensor[float32, (1, 1)], %x: Tensor[float32, (1, 1)]) -> Tensor[float32, (1, 1)] {
          let %product: Tensor[float32, (1, 1)] = multiply(%a, %x);
          let %product1: Tensor[float32, (1, 1)] = sum(%product, axis=(0,), keepdims=true);
          %product1
        }
        """,
    )


def test_a_module_is_shown_as_its_text() -> None:
    lowered = relay.relay(lambda x: x * 2.0).lower(np.ones(3))
    assert str(lowered.typed) == to_text(lowered.typed) and "multiply(%x, 2.0f64)" in str(lowered)


def test_a_module_with_data_a_loop_and_a_match() -> None:
    data = DataDefinition("List")
    data.constructors = (Constructor("Nil", ()), Constructor("Cons", (F, DataType(data))))
    list_type = DataType(data)
    xs, rest, tail = Var("xs", list_type), Var("xs", list_type), Var("tail", list_type)
    partial, head, grown = Var("sum", F), Var("head", F), Var("sum", F)
    result, loop, label = Var("sum", F), LoopLabel("rest"), LoopLabel("total")
    cons = Block((Binding((grown,), OpCall("add", (partial, head))),), Next(loop, (tail, grown)))
    arms = (MatchArm("Nil", (), Block((), Exit(loop, (partial,)))), MatchArm("Cons", (head, tail), cons))
    inner = Block((Binding((), Match(rest, arms)),), Dead())
    outer = Block((Binding((result,), Loop(loop, (rest, partial), (xs, number(0)), inner)),), Exit(label, (result,)))
    total = Function("total", (xs,), outer, label, F)
    pending = Derivative(
        "slope", "total", FunctionType((list_type,), F), Grad(Global("total"), wrt=(0,), seedable=True)
    )
    same(
        to_text(Module({"total": total, "slope": pending}, "total", (data,))),
        """
        data List { Nil, Cons(Tensor[float32, ()], List) }

        entry fn total(%xs: List) -> Tensor[float32, ()] {
          let %sum: Tensor[float32, ()] = loop 'rest (%xs1: List = %xs, %sum1: Tensor[float32, ()] = 0.0f32) {
            match %xs1 {
              Nil -> { exit 'rest(%sum1) }
              Cons(%head: Tensor[float32, ()], %tail: List) -> {
                let %sum2: Tensor[float32, ()] = add(%sum1, %head);
                next 'rest(%tail, %sum2)
              }
            };
            dead
          };
          %sum
        }

        derivative slope: fn(List) -> Tensor[float32, ()] = grad{wrt=(0,), seedable} @total
        """,
    )


def test_branches_counted_loops_and_lambdas() -> None:
    n, i, x, c, y, z = Var("n", N), Var("i", N), Var("x", F), Var("c", B), Var("y", F), Var("y", F)
    label, loop, inner = LoopLabel("f"), LoopLabel("loop"), LoopLabel("g")
    condition = Block((Binding((c,), OpCall("less", (i, n))),), Yield((c,)))
    flag = Constant(np.asarray(True))
    chain = If(
        (Arm(condition, Block((), Exit(label, (x,)))), Arm(Block((), Yield((flag,))), Block((), Yield((x, y)))),),
        Block((), Yield((y, x))),
    )  # fmt: skip
    first, second = Var("first", F), Var("second", F)
    body = Block((Binding((first, second), chain),), Next(loop, (first, second)))
    w, g = Var("w", F), Var("g", FunctionType((F,), F))
    made = Function("g", (w,), Block((Binding((z,), OpCall("add", (w, x))),), Exit(inner, (z,))), inner, F)
    out = (Var("out", F), Var("out", F))
    start = Var("x", F)
    bindings = (
        Binding(out, Loop(loop, (x, y), (start, number(1)), body, Counter(i, n))),
        Binding((g,), Lambda(made)),
    )
    same(
        to_text(Function("f", (start, n), Block(bindings, Exit(label, (out[0],))), label, F)),
        """
        fn f(%x: Tensor[float32, ()], %n: Tensor[int32, ()]) -> Tensor[float32, ()] {
          let %out: Tensor[float32, ()], %out1: Tensor[float32, ()] = loop 'loop for %i: Tensor[int32, ()] < %n (%x1: Tensor[float32, ()] = %x, %y: Tensor[float32, ()] = 1.0f32) {
            let %first: Tensor[float32, ()], %second: Tensor[float32, ()] = if {
              let %c: Tensor[bool, ()] = less(%i, %n);
              yield %c
            } then { return %x1 } elif true then { yield %x1, %y } else { yield %y, %x1 };
            next 'loop(%first, %second)
          };
          let %g: fn(Tensor[float32, ()]) -> Tensor[float32, ()] = fn g(%w: Tensor[float32, ()]) -> Tensor[float32, ()] {
            let %y1: Tensor[float32, ()] = add(%w, %x1);
            %y1
          };
          %out
        }
        """,  # noqa: E501
    )


X, Y = Var("x"), Var("y")
OPTION = DataDefinition("Option", (Constructor("Some", (F,)),))
LOOP = LoopLabel("rows")


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (Call(Global("f"), (X, Y)), "@f(%x, %y)"),
        (Call(X, ()), "%x()"),
        (MakeTuple(()), "()"),
        (MakeTuple((X,)), "(%x,)"),
        (MakeTuple((X, Y)), "(%x, %y)"),
        (Project(X, 1), "%x.1"),
        (Grad(X), "grad %x"),
        (Grad(X, wrt=(0, 1), output=1, seedable=True), "grad{wrt=(0, 1), output=1, seedable} %x"),
        (Grad(X, keeping=(0,), with_value=True), "grad{keeping=(0,), with_value} %x"),
        (RefNew(X), "ref %x"),
        (RefRead(X), "read %x"),
        (RefWrite(X, Y), "write %x %y"),
        (Assert(X, 'say "no"\n'), 'assert %x "say \\"no\\"\\n"'),
        (Construct(OPTION, "Some", (X,)), "Option.Some(%x)"),
        (StackNew(F), "stack[Tensor[float32, ()]]"),
        (StackPush(X, Y), "push %x %y"),
        (StackGet(X, Y), "get %x %y"),
        (StackLength(X), "len %x"),
        (OpCall("f", (X,), {"dtype": FLOAT32, "mode": "a", "axis": None}), 'f(%x, dtype=float32, mode="a", axis=none)'),
        (Apply(Global("sum"), (X, Static(2)), (("axis", Static(None)),)), "apply @sum(%x, 2, axis=none)"),
        (Attribute(X, "shape"), "%x.shape"),
        (SetAttribute(X, "value", Y), "%x.value = %y"),
        (Index(X, (Static(0), Slice(None, Y, Static(2)), Static(Ellipsis))), "%x[0, :%y:2, ...]"),
        (IndexUpdate(X, (Static(0),), Y), "%x[0 = %y]"),
        (Annotated(X, F), "%x : Tensor[float32, ()]"),
        (Unpack(X, 2), "unpack %x 2"),
        (ForEach(LOOP, Y, X, (), (), Block((), Next(LOOP, ()))), "loop 'rows for %y in %x () { next 'rows() }"),
        (Static("text"), '"text"'),
        (Static(np), 'python "module"'),
    ],
)  # fmt: skip
def test_expressions(expression: Expr, expected: str) -> None:
    assert to_text(expression) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (np.float32(0.1), "0.1f32"),
        (np.float64(0.1), "0.1f64"),
        (np.float16(2), "2.0f16"),
        (ml_dtypes.bfloat16(0.5), "0.5bf16"),
        (np.uint8(3), "3u8"),
        (np.int64(-3), "-3i64"),
        (np.bool_(False), "false"),
        (np.float32(np.inf), "inf.f32"),
        (np.float64(np.nan), "nan.f64"),
        (np.array([[1, 2], [3, 4]], np.int32), "[[1, 2], [3, 4]]i32"),
        (np.array([], np.float32), "[]f32"),
        (np.zeros((0, 2), np.float32), "constant#0[float32, (0, 2)]"),
        (np.zeros((64, 64), np.float32), "constant#0[float32, (64, 64)]"),
    ],
)
def test_constants(value: object, expected: str) -> None:
    assert to_text(Constant(np.asarray(value))) == expected


def test_a_large_constant_has_one_number() -> None:
    large, other = Constant(np.zeros(100)), Constant(np.zeros(100))
    text = to_text(MakeTuple((large, other, large)))
    assert text == "(constant#0[float64, (100,)], constant#1[float64, (100,)], constant#0[float64, (100,)])"


def test_a_surface_function_has_no_types() -> None:
    x, key, y, label = Var("x"), Var("key"), Var("y"), LoopLabel("f")
    signature = (Parameter(), Parameter("keyword_only", Static(1)))
    body = Block((Binding((y,), Apply(Global("add"), (x, key))),), Exit(label, (y,)))
    same(
        to_text(Function("f", (x, key), body, label, None, signature)),
        """
        fn f(%x, keyword_only %key = 1) {
          let %y = apply @add(%x, %key);
          %y
        }
        """,
    )


def test_names_never_collide() -> None:
    names = ["x", "x", "x1", "x", "a b", "a_b", ""]
    text = to_text(MakeTuple(tuple(Var(n) for n in names)))
    assert text == "(%x, %x1, %x1_1, %x2, %a_b, %a_b1, %_)"


def test_long_blocks_print_at_the_default_recursion_limit() -> None:
    variables = [Var("x") for _ in range(20_001)]
    block = Block(tuple(Binding((b,), a) for a, b in itertools.pairwise(variables)), Yield((variables[-1],)))
    lines = to_text(block).splitlines()
    assert len(lines) == 20_001 and lines[-1] == "yield %x20000"
