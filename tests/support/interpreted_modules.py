"""Modules for the reference interpreter, built node by node, with operators of their own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

import relay.ops  # noqa: F401  registers the operators
from relay.errors import Source, Span
from relay.ir.expr import (
    Arm,
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
    If,
    Loop,
    LoopLabel,
    Match,
    MatchArm,
    Module,
    Next,
    OpCall,
    Terminator,
    Var,
    Yield,
)
from relay.ir.types import (
    BOOL,
    FLOAT32,
    INT32,
    INT64,
    Constructor,
    DataDefinition,
    DataType,
    Shape,
    TensorType,
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


def counted(b: Body, count: Atom, initial: Sequence[Atom], round_: Callable[..., Terminator]) -> Any:
    """A loop with a counter; `round_(body, label, index, *parameters)`."""
    label, index = LoopLabel("loop"), Var("i", N)
    parameters = tuple(Var("c", a.type) for a in initial)
    inner = block(lambda body: round_(body, label, index, *parameters))
    types = [p.type for p in parameters]
    return b.let(Loop(label, parameters, tuple(initial), inner, Counter(index, count)), *types)


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
