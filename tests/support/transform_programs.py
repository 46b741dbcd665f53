"""A small builder of typed modules, the programs that the tests of the passes share, and the passes that lower them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import attrs
import numpy as np
from agreement import assert_agree

import relay.ops.elementwise.arithmetic
import relay.ops.elementwise.comparison  # noqa: F401
from relay.eval.interpreter import run
from relay.ir.analysis.tail_positions import tail_branch
from relay.ir.expr import (
    Arm,
    Atom,
    Binding,
    Block,
    Call,
    Constant,
    Counter,
    Dead,
    Exit,
    Expr,
    Function,
    Global,
    If,
    Lambda,
    Loop,
    LoopLabel,
    MakeTuple,
    Match,
    Module,
    Next,
    OpCall,
    Project,
    RefNew,
    RefRead,
    RefWrite,
    Terminator,
    Var,
    Yield,
)
from relay.ir.traverse import blocks, walk
from relay.ir.types import BOOL, FLOAT32, INT32, FunctionType, RefType, TensorType, TupleType, Type, scalar
from relay.operator import lookup
from relay.transform.core.specialization import specialize
from relay.transform.core.structuring import structure

F, Z, B = scalar(FLOAT32), scalar(INT32), scalar(BOOL)
FF = FunctionType((F,), F)
Writer = Callable[["Build"], Terminator]


def real(number: float) -> Constant:
    return Constant(np.asarray(number, np.float32))


def whole(number: int) -> Constant:
    return Constant(np.asarray(number, np.int32))


def type_of(atom: Atom) -> Type:
    assert not isinstance(atom, str) and atom.type is not None  # type: ignore[union-attr]
    return atom.type  # type: ignore[union-attr,return-value]


class Build:
    """Collects the bindings of one block."""

    def __init__(self) -> None:
        self.bindings: list[Binding] = []

    def bind(self, value: Expr, type_: Type, name: str = "t") -> Var:
        var = Var(name, type_)
        self.bindings.append(Binding((var,), value))
        return var

    def do(self, value: Expr) -> None:
        self.bindings.append(Binding((), value))

    def op(self, name: str, *operands: Atom) -> Var:
        result = lookup(name).infer([type_of(a) for a in operands], {})
        return self.bind(OpCall(name, operands), result)

    def call(self, function: Atom, *arguments: Atom) -> Var:
        type_ = type_of(function)
        assert isinstance(type_, FunctionType)
        return self.bind(Call(function, arguments), type_.result)

    def tuple(self, *items: Atom) -> Var:
        return self.bind(MakeTuple(items), TupleType(tuple(type_of(i) for i in items)))

    def project(self, value: Atom, index: int) -> Var:
        type_ = type_of(value)
        assert isinstance(type_, TupleType)
        return self.bind(Project(value, index), type_.items[index])

    def lam(self, name: str, parameters: Sequence[Type], result: Type, write: Callable[..., Atom]) -> Var:
        return self.bind(
            Lambda(function(name, parameters, result, write)), FunctionType(tuple(parameters), result), name
        )

    def branch(
        self, types: Sequence[Type], *arms: tuple[Writer | Atom, Writer], orelse: Writer | None = None
    ) -> tuple[Var, ...]:
        targets = tuple(Var("t", t) for t in types)
        made = []
        for condition, body in arms:
            test = block(condition) if callable(condition) else Block((), Yield((condition,)))
            made.append(Arm(test, block(body)))
        other = block(orelse) if orelse is not None else Block((), Yield(()))
        self.bindings.append(Binding(targets, If(tuple(made), other)))
        return targets

    def loop(
        self,
        initial: Sequence[Atom],
        results: Sequence[Type],
        write: Callable[..., Terminator],
        count: Atom | None = None,
    ) -> tuple[Var, ...]:
        """write(build, label, *parameters) or, with a count, write(build, label, index, *parameters)."""
        label = LoopLabel("loop")
        parameters = tuple(Var("p", type_of(a)) for a in initial)
        counter = None if count is None else Counter(Var("i", type_of(count)), count)
        build = Build()
        head = () if counter is None else (counter.index,)
        end = write(build, label, *head, *parameters)
        targets = tuple(Var("r", t) for t in results)
        body = Block(tuple(build.bindings), end)
        self.bindings.append(Binding(targets, Loop(label, parameters, tuple(initial), body, counter)))
        return targets


def block(write: Writer) -> Block:
    build = Build()
    end = write(build)
    return Block(tuple(build.bindings), end)


def function(name: str, parameters: Sequence[Type], result: Type, write: Callable[..., Any]) -> Function:
    """`write(build, *parameters)` returns the result, `write(build, label, *parameters)` a terminator."""
    label = LoopLabel(name)
    variables = tuple(Var(f"x{i}", t) for i, t in enumerate(parameters))
    build = Build()
    if write.__code__.co_varnames[1:2] == ("label",):
        end = write(build, label, *variables)
    else:
        end = Exit(label, (write(build, *variables),))
    return Function(name, variables, Block(tuple(build.bindings), end), label, result)


def module(*functions: Function) -> Module:
    return Module({f.name: f for f in functions}, functions[0].name)


def leave(label: LoopLabel, *values: Atom) -> Writer:
    return lambda b: Exit(label, values)


def give(*values: Atom) -> Writer:
    return lambda b: Yield(values)


# ---- programs


def straight() -> Module:
    return module(function("f", [F, F], F, lambda b, x, y: b.op("add", b.op("multiply", x, y), real(1))))


def early_return() -> Module:
    def f(b: Build, label: LoopLabel, x: Var) -> Terminator:
        b.branch([], (b.op("less", x, real(0)), leave(label, real(-1))))
        y = b.op("add", x, real(1))
        b.branch([], (b.op("greater", y, real(5)), leave(label, y)))
        return Exit(label, (b.op("multiply", y, y),))

    # an If without else yields nothing and goes on
    return module(function("f", [F], F, f))


def guard_values() -> Module:
    """Two arms yield, one leaves: a way is needed."""

    def f(b: Build, label: LoopLabel, x: Var) -> Terminator:
        def inner(c: Build) -> Terminator:
            c.branch([], (c.op("greater", x, real(10)), leave(label, real(99))))
            return Yield((c.op("multiply", x, real(2)),))

        (y,) = b.branch(
            [F], (b.op("less", x, real(0)), give(real(0))), (b.op("less", x, real(20)), inner), orelse=give(x)
        )
        z = b.op("add", y, x)
        return Exit(label, (b.op("add", z, real(1)),))

    return module(function("f", [F], F, f))


def nested_exit() -> Module:
    """for i < n: for j < m: if i * j > limit: return i + 100 * j; if j > 3: break; s += j"""

    def f(b: Build, label: LoopLabel, n: Var, m: Var, limit: Var) -> Terminator:
        def outer(c: Build, outer_label: LoopLabel, i: Var, s: Var) -> Terminator:
            def inner(d: Build, inner_label: LoopLabel, j: Var, t: Var) -> Terminator:
                product = d.op("multiply", i, j)

                def found(e: Build) -> Terminator:
                    return Exit(label, (e.op("add", i, e.op("multiply", j, whole(100))),))

                d.branch([], (d.op("greater", product, limit), found))
                d.branch([], (d.op("greater", j, whole(3)), leave(inner_label, t)))
                d.branch([], (d.op("equal", j, whole(1)), lambda e: Next(inner_label, (t,))))
                return Next(inner_label, (d.op("add", t, j),))

            (r,) = c.loop([s], [Z], inner, count=m)
            c.branch([], (c.op("greater", r, whole(1000)), leave(outer_label, r)))
            return Next(outer_label, (r,))

        (r,) = b.loop([whole(0)], [Z], outer, count=n)
        return Exit(label, (b.op("negative", r),))

    return module(function("f", [Z, Z, Z], Z, f))


def while_exit() -> Module:
    """Two nested while loops; the inner one continues or breaks the outer one, or returns."""

    def f(b: Build, label: LoopLabel, n: Var) -> Terminator:
        def outer(c: Build, outer_label: LoopLabel, i: Var, s: Var) -> Terminator:
            def done(d: Build) -> Terminator:
                return Exit(outer_label, (s,))

            c.branch([], (c.op("greater_equal", i, n), done))
            following = c.op("add", i, whole(1))

            def inner(d: Build, inner_label: LoopLabel, j: Var, t: Var) -> Terminator:
                d.branch([], (d.op("greater_equal", j, i), leave(inner_label, t, real(0.5))))
                d.branch([], (d.op("equal", j, whole(5)), lambda e: Next(outer_label, (following, t))))
                d.branch([], (d.op("equal", t, whole(77)), leave(outer_label, whole(1077))))
                d.branch([], (d.op("greater", t, whole(150)), leave(label, whole(-1))))
                return Next(inner_label, (d.op("add", j, whole(1)), d.op("add", t, d.op("multiply", j, i))))

            r, _ = c.loop([whole(0), s], [Z, F], inner)
            return Next(outer_label, (following, r))

        (r,) = b.loop([whole(0), whole(0)], [Z], outer)
        return Exit(label, (b.op("add", r, whole(1)),))

    return module(function("f", [Z], Z, f))


def unrolled() -> Module:
    """One-shot loops: for over a tuple, with break and continue."""

    def f(b: Build, label: LoopLabel, x: Var) -> Terminator:
        def outer(c: Build, broken: LoopLabel) -> Terminator:
            value: Atom = x
            for step in (1.0, 2.0, 3.0):

                def inner(d: Build, continued: LoopLabel, step: float = step, v: Atom = value) -> Terminator:
                    d.branch([], (d.op("greater", v, real(10)), leave(broken, v)))
                    d.branch([], (d.op("less", v, real(step)), leave(continued, d.op("negative", v))))
                    return Exit(continued, (d.op("add", v, real(step)),))

                (value,) = c.loop([], [F], inner)
            return Exit(broken, (c.op("multiply", value, real(100)),))

        (r,) = b.loop([], [F], outer)
        return Exit(label, (b.op("add", r, real(0.25)),))

    return module(function("f", [F], F, f))


def make_adder() -> Module:
    adder = function("make_adder", [F], FF, lambda b, n: b.lam("add_n", [F], F, lambda c, v: c.op("add", v, n)))

    def f(b: Build, x: Var) -> Atom:
        add = b.call(Global("make_adder", adder.type), real(3))
        twice = b.call(Global("make_adder", adder.type), x)
        return b.call(add, b.call(twice, x))

    return module(function("f", [F], F, f), adder)


def chosen_adder() -> Module:
    """A function that returns closures of the same code from two places."""

    def pick(b: Build, label: LoopLabel, c: Var, x: Var) -> Terminator:
        make = b.lam("make", [F], FF, lambda d, n: d.lam("add_n", [F], F, lambda e, v: e.op("add", v, n)))
        b.branch([], (c, lambda d: Exit(label, (d.call(make, x),))))
        return Exit(label, (b.call(make, b.op("multiply", x, x)),))

    picker = function("pick", [B, F], FF, pick)

    def f(b: Build, x: Var) -> Atom:
        g = b.call(Global("pick", picker.type), b.op("less", x, real(0)), x)
        return b.call(g, real(1))

    return module(function("f", [F], F, f), picker)


def compose() -> Module:
    composed = function(
        "compose",
        [FF, FF],
        FF,
        lambda b, g, h: b.lam("composed", [F], F, lambda c, v: c.call(g, c.call(h, v))),
    )

    def f(b: Build, x: Var) -> Atom:
        name = Global("compose", composed.type)
        plus = b.lam("plus", [F], F, lambda c, v: c.op("add", v, x))
        times = b.lam("times", [F], F, lambda c, v: c.op("multiply", v, real(2)))
        both = b.call(name, plus, times)
        four = b.call(name, both, b.call(name, times, both))
        return b.call(four, x)

    return module(function("f", [F], F, f), composed)


def joined() -> Module:
    """An If and a loop that carry closures of one code with different environments, also in tuples."""

    def f(b: Build, x: Var, n: Var) -> Atom:
        make = b.lam("make", [F], FF, lambda c, k: c.lam("scale", [F], F, lambda d, v: d.op("multiply", v, k)))

        def made(k: float) -> Writer:
            return lambda c: Yield((c.tuple(c.call(make, real(k)), real(k)),))

        pair_type = TupleType((FF, F))
        (pair,) = b.branch([pair_type], (b.op("less", x, real(0)), made(2)), orelse=made(3))

        def body(c: Build, label: LoopLabel, i: Var, g: Var, s: Var) -> Terminator:
            s2 = c.op("add", c.call(g, s), real(1))
            return Next(label, (c.call(make, s2), s2))

        g, s = b.loop([b.project(pair, 0), x], [FF, F], body, count=n)
        return b.op("add", b.call(g, s), b.project(pair, 1))

    return module(function("f", [F, Z], F, f))


def power() -> Module:
    """Recursion with a function argument, and a recursive local function that captures."""
    apply_type = FunctionType((FF, Z, F), F)

    def repeat(b: Build, label: LoopLabel, g: Var, n: Var, x: Var) -> Terminator:
        b.branch([], (b.op("less_equal", n, whole(0)), leave(label, x)))
        rest = b.call(Global("repeat", apply_type), g, b.op("subtract", n, whole(1)), x)
        return Exit(label, (b.call(g, rest),))

    def f(b: Build, x: Var, n: Var) -> Atom:
        this = Var("loc", FunctionType((Z,), F))

        def local(c: Build, label: LoopLabel, k: Var) -> Terminator:
            c.branch([], (c.op("less_equal", k, whole(0)), leave(label, x)))
            return Exit(label, (c.op("multiply", x, c.call(this, c.op("subtract", k, whole(1)))),))

        b.bindings.append(Binding((this,), Lambda(function("loc", [Z], F, local))))
        double = b.lam("double", [F], F, lambda c, v: c.op("add", v, c.op("multiply", v, x)))
        a = b.call(Global("repeat", apply_type), double, n, x)
        return b.op("add", a, b.call(this, n))

    return module(function("f", [F, Z], F, f), function("repeat", [FF, Z, F], F, repeat))


def mutual() -> Module:
    """even and odd, as module functions and as local ones that capture."""
    IB = FunctionType((Z,), F)

    def step(name: str, base: Atom) -> Callable[..., Terminator]:
        def write(b: Build, label: LoopLabel, n: Var) -> Terminator:
            b.branch([], (b.op("equal", n, whole(0)), leave(label, base)))
            return Exit(label, (b.call(Global(name, IB), b.op("subtract", n, whole(1))),))

        return write

    def f(b: Build, n: Var, x: Var) -> Atom:
        even, odd = Var("even", IB), Var("odd", IB)

        def local(other: Var, base: Atom) -> Callable[..., Terminator]:
            def write(c: Build, label: LoopLabel, k: Var) -> Terminator:
                c.branch([], (c.op("equal", k, whole(0)), leave(label, base)))
                return Exit(label, (c.op("add", x, c.call(other, c.op("subtract", k, whole(1)))),))

            return write

        for var, other, base in ((even, odd, real(1)), (odd, even, real(2))):
            b.bindings.append(Binding((var,), Lambda(function(var.name, [Z], F, local(other, base)))))
        return b.op("add", b.call(even, n), b.call(Global("even", IB), n))

    return module(
        function("f", [Z, F], F, f),
        function("even", [Z], F, step("odd", real(1))),
        function("odd", [Z], F, step("even", real(0))),
    )


def counting() -> Module:
    """A cell that a closure writes."""

    def f(b: Build, n: Var) -> Atom:
        cell = b.bind(RefNew(real(0)), RefType(F))

        def bump(c: Build, v: Var) -> Atom:
            c.do(RefWrite(cell, c.op("add", c.bind(RefRead(cell), F), v)))
            return v

        add = b.lam("bump", [F], F, bump)

        def body(c: Build, label: LoopLabel, i: Var) -> Terminator:
            c.branch([], (c.op("equal", i, whole(2)), lambda d: Next(label, ())))
            c.call(add, real(1.5))
            return Next(label, ())

        b.loop([], [], body, count=n)
        return b.bind(RefRead(cell), F)

    return module(function("f", [Z], F, f))


def twice() -> Module:
    """tw^6 (x + 1): each wraps the one before."""

    def f(b: Build, x: Var) -> Atom:
        tw = b.lam("tw", [FF], FF, lambda c, g: c.lam("again", [F], F, lambda d, v: d.call(g, d.call(g, v))))
        g = b.lam("inc", [F], F, lambda c, v: c.op("add", v, x))
        for _ in range(6):
            g = b.call(tw, g)
        return b.call(g, x)

    return module(function("f", [F], F, f))


@attrs.frozen
class Program:
    make: Callable[[], Module]
    arguments: tuple[tuple[float, ...], ...]


PROGRAMS = {
    p.make.__name__: p
    for p in (
        Program(straight, ((2.0, 3.0),)),
        Program(early_return, ((-2.0,), (1.0,), (7.0,))),
        Program(guard_values, ((-1.0,), (3.0,), (12.0,), (30.0,))),
        Program(nested_exit, ((3, 4, 100), (5, 5, 6), (2, 9, 100), (0, 0, 0), (3, 3, 3))),
        Program(while_exit, tuple((n,) for n in (0, 1, 3, 5, 6, 7, 8, 9, 12))),
        Program(unrolled, ((0.5,), (3.0,), (8.0,), (11.0,), (-4.0,))),
        Program(make_adder, ((2.0,),)),
        Program(chosen_adder, ((2.0,), (-2.0,))),
        Program(compose, ((2.0,),)),
        Program(joined, ((2.0, 3), (-2.0, 0), (-1.0, 4))),
        Program(power, ((2.0, 3), (0.5, 0))),
        Program(mutual, ((4, 0.5), (5, 0.5))),
        Program(counting, ((5,), (2,))),
        Program(twice, ((0.5,),)),
    )
}


def arguments_of(module_: Module, values: tuple[float, ...]) -> list[np.ndarray]:
    made = []
    for parameter, value in zip(module_.main.parameters, values, strict=True):
        assert isinstance(parameter.type, TensorType)
        made.append(np.asarray(value, parameter.type.dtype))
    return made


def assert_modules_agree(before: Module, after: Module, program: Program) -> None:
    """Both modules give the same results."""
    for values in program.arguments:
        expected = run(before, arguments_of(before, values))
        found = run(after, arguments_of(after, values))
        assert_agree(found, expected, rtol=0.0, what=str(values))


def lowered(name: str) -> Module:
    return structure(specialize(PROGRAMS[name].make()))


# ---- the form of the results


def assert_first_order(module_: Module) -> None:
    for made in module_.functions.values():
        if isinstance(made, Function):
            for binding in walk(made.body):
                assert not isinstance(binding.value, Lambda)
                if isinstance(binding.value, Call):
                    assert isinstance(binding.value.function, Global)
                    assert binding.value.function.name in module_.functions


def assert_bound_once(module_: Module) -> None:
    seen: set[Var] = set()

    def bind(variables: Sequence[Var]) -> None:
        for v in variables:
            assert v not in seen, v
            assert v.type is not None
            seen.add(v)

    for made in module_.functions.values():
        if not isinstance(made, Function):
            continue
        bind(made.parameters)
        for binding in walk(made.body):
            bind(binding.targets)
            match binding.value:
                case Loop(_, parameters, _, _, counter):
                    bind(parameters)
                    if counter is not None:
                        bind((counter.index,))
                case Match(_, arms):
                    for arm in arms:
                        bind(arm.fields)
                case _:
                    pass


def assert_structured(module_: Module) -> None:
    """The definition of the structured form, restated."""

    def inner(part: Block, label: LoopLabel | None) -> None:
        """`label`: what a tail leaf leaves; None where the block has to yield."""
        for position, binding in enumerate(part.bindings):
            value = binding.value
            tail = position == len(part.bindings) - 1 and tail_branch(part) is not None
            if isinstance(value, Loop):
                inner(value.body, value.label)
            elif isinstance(value, If | Match):
                for inside in blocks(value):
                    inner(inside, None) if not tail else None
                if isinstance(value, If):
                    for arm in value.arms:
                        if tail:
                            inner(arm.condition, None)
                            inner(arm.body, label)
                    if tail:
                        inner(value.orelse, label)
                elif tail:
                    for match_arm in value.arms:
                        inner(match_arm.body, label)
        match part.terminator:
            case Yield():
                assert label is None
            case Exit(target) | Next(target):
                assert label is target
            case Dead():
                assert tail_branch(part) is not None
                assert label is not None

    for made in module_.functions.values():
        if isinstance(made, Function):
            inner(made.body, made.label)
