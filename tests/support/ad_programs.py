"""Structured core programs in float64 for the tests of differentiation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import attrs
import numpy as np
from transform_programs import Build, Writer, block, function, give, leave, module

import relay.ops  # noqa: F401
from relay.ir.expr import (
    Atom,
    Binding,
    Constant,
    Construct,
    Dead,
    Exit,
    Global,
    LoopLabel,
    Match,
    MatchArm,
    Module,
    Next,
    OpCall,
    RefNew,
    RefRead,
    RefWrite,
    Terminator,
    Var,
    Yield,
)
from relay.ir.types import (
    FLOAT64,
    INT32,
    Constructor,
    DataDefinition,
    DataType,
    FunctionType,
    RefType,
    TensorType,
    TupleType,
    Type,
    scalar,
)
from relay.operator import lookup

R, Z = scalar(FLOAT64), scalar(INT32)


def vector(*shape: int) -> TensorType:
    return TensorType(FLOAT64, shape)


def real(number: float) -> Constant:
    return Constant(np.asarray(number, np.float64))


def whole(number: int) -> Constant:
    return Constant(np.asarray(number, np.int32))


def op(b: Build, name: str, *operands: Atom, **attributes: Any) -> Var:
    """An operator call with attributes."""
    operator = lookup(name)
    values = {**operator.attributes, **attributes}
    return b.bind(OpCall(name, operands, values), operator.infer([a.type for a in operands], values))  # type: ignore


def ends(b: Build, condition: Atom, then: Writer, orelse: Writer) -> Dead:
    """End a block with an If whose arms leave."""
    b.branch([], (condition, then), orelse=orelse)
    return Dead()


def match(b: Build, value: Var, types: Sequence[Type], **arms: Callable[..., Terminator]) -> tuple[Var, ...]:
    """A Match: one writer(build, *fields) for each constructor."""
    assert isinstance(value.type, DataType)
    made = []
    for constructor in value.type.definition.constructors:
        fields = tuple(Var(f"f{i}", t) for i, t in enumerate(constructor.fields))
        write = arms[constructor.name]
        made.append(MatchArm(constructor.name, fields, block(lambda c, w=write, f=fields: w(c, *f))))  # type: ignore
    targets = tuple(Var("t", t) for t in types)
    b.bindings.append(Binding(targets, Match(value, tuple(made))))
    return targets


def make(b: Build, definition: DataDefinition, constructor: str, *arguments: Atom) -> Var:
    return b.bind(Construct(definition, constructor, arguments), DataType(definition))


# ---- programs


@attrs.frozen
class Program:
    make: Callable[[], Module]
    arguments: tuple[Any, ...]
    orders: int = 3

    @property
    def name(self) -> str:
        return self.make.__name__


def chain() -> Module:
    def f(b: Build, x: Var, y: Var) -> Atom:
        p = b.op("multiply", x, y)
        q = b.op("add", b.op("sin", p), b.op("exp", x))
        return b.op("divide", b.op("multiply", q, q), b.op("add", y, real(3)))

    return module(function("f", [R, R], R, f))


def broadcasting() -> Module:
    def f(b: Build, x: Var, y: Var, z: Var) -> Atom:
        product = b.op("multiply", b.op("add", x, y), z)
        return op(b, "sum", b.op("multiply", product, b.op("tanh", x)))

    return module(function("f", [vector(3, 1), vector(2), R], R, f))


def choice() -> Module:
    def f(b: Build, x: Var, y: Var) -> Atom:
        (r,) = b.branch(
            [R],
            (b.op("less", x, real(0)), lambda c: Yield((c.op("multiply", c.op("sin", x), y),))),
            (lambda c: Yield((c.op("less", c.op("multiply", x, x), y),)), lambda c: Yield((c.op("exp", x),))),
            orelse=lambda c: Yield((c.op("multiply", y, y),)),
        )
        return b.op("multiply", r, x)

    return module(function("f", [R, R], R, f))


def untaken() -> Module:
    """The other arm would give infinities."""

    def f(b: Build, x: Var) -> Atom:
        (r,) = b.branch(
            [R],
            (b.op("greater", x, real(1)), lambda c: Yield((c.op("log", c.op("subtract", x, real(1))),))),
            orelse=lambda c: Yield((c.op("multiply", x, x),)),
        )
        return b.op("multiply", r, r)

    return module(function("f", [R], R, f))


def squares() -> Module:
    """while y < 100: y = y * y"""

    def f(b: Build, x: Var) -> Atom:
        def body(c: Build, label: LoopLabel, y: Var) -> Terminator:
            def again(d: Build) -> Terminator:
                return Next(label, (d.op("multiply", y, y),))

            return ends(c, c.op("less", y, real(100)), again, leave(label, y))

        (r,) = b.loop([x], [R], body)
        return r

    return module(function("f", [R], R, f))


def newton() -> Module:
    """A loop with a captured variable, a conditional inside, and two loop variables."""

    def f(b: Build, a: Var) -> Atom:
        def body(c: Build, label: LoopLabel, x: Var, steps: Var) -> Terminator:
            def again(d: Build) -> Terminator:
                quotient = d.op("divide", a, x)
                (better,) = d.branch(
                    [R],
                    (
                        d.op("less", steps, whole(2)),
                        lambda e: Yield((e.op("multiply", real(0.5), e.op("add", x, quotient)),)),
                    ),
                    orelse=lambda e: Yield((e.op("multiply", real(0.25), e.op("add", e.op("add", x, x), quotient)),)),
                )
                return Next(label, (better, d.op("add", steps, whole(1))))

            return ends(c, c.op("less", steps, whole(5)), again, leave(label, x))

        (r,) = b.loop([a, whole(0)], [R], body)
        return r

    return module(function("f", [R], R, f))


def nested() -> Module:
    """for i < n: (for j < i: t = sin(t * y) + float(j)); s = s * t"""

    def f(b: Build, n: Var, y: Var, x: Var) -> Atom:
        def outer(c: Build, label: LoopLabel, i: Var, s: Var, t: Var) -> Terminator:
            def inner(d: Build, inner_label: LoopLabel, j: Var, u: Var) -> Terminator:
                moved = d.op("add", d.op("sin", d.op("multiply", u, y)), op(d, "cast", j, dtype=FLOAT64))
                return Next(inner_label, (moved,))

            (r,) = c.loop([t], [R], inner, count=i)
            return Next(label, (c.op("add", c.op("multiply", s, real(0.5)), c.op("multiply", r, s)), r))

        s, _ = b.loop([x, y], [R, R], outer, count=n)
        return s

    return module(function("f", [Z, R, R], R, f))


def nested_while() -> Module:
    """A while in a while, both with several exits."""

    def f(b: Build, x: Var, y: Var) -> Atom:
        def outer(c: Build, label: LoopLabel, s: Var, i: Var) -> Terminator:
            def inner(d: Build, inner_label: LoopLabel, t: Var, j: Var) -> Terminator:
                grown = d.op("multiply", t, d.op("add", y, real(1)))

                def rest(e: Build) -> Terminator:
                    def again(g: Build) -> Terminator:
                        return Next(inner_label, (g.op("add", grown, x), g.op("add", j, whole(1))))

                    return ends(e, e.op("greater", grown, real(20)), leave(inner_label, e.op("sin", grown)), again)

                return ends(d, d.op("greater_equal", j, i), leave(inner_label, t), rest)

            (r,) = c.loop([s, whole(0)], [R], inner)
            following = c.op("add", i, whole(1))

            def go_on(d: Build) -> Terminator:
                return Next(label, (d.op("add", r, d.op("multiply", s, real(0.1))), following))

            def stop(d: Build) -> Terminator:
                return Exit(label, (d.op("multiply", r, s),))

            return ends(c, c.op("less", following, whole(5)), go_on, stop)

        (r,) = b.loop([x, whole(1)], [R], outer)
        return r

    return module(function("f", [R, R], R, f))


def reads() -> Module:
    """for i < 4: s = s * w[i] + x[i - 2]"""

    def f(b: Build, w: Var, x: Var) -> Atom:
        def body(c: Build, label: LoopLabel, i: Var, s: Var) -> Terminator:
            left = c.op("multiply", s, c.op("index", w, i))
            return Next(label, (c.op("add", left, c.op("index", x, c.op("subtract", i, whole(2)))),))

        (r,) = b.loop([real(1)], [R], body, count=whole(4))
        return b.op("multiply", r, b.op("index", x, whole(0)))

    return module(function("f", [vector(4), vector(4)], R, f))


def writes() -> Module:
    """for i < 3: v[i] = v[i + 1] * x; a vector carried through a loop."""

    def f(b: Build, v: Var, x: Var) -> Atom:
        def body(c: Build, label: LoopLabel, i: Var, u: Var) -> Terminator:
            new = c.op("multiply", c.op("index", u, c.op("add", i, whole(1))), x)
            return Next(label, (c.op("index_update", u, i, new),))

        (r,) = b.loop([v], [vector(4)], body, count=whole(3))
        return op(b, "sum", b.op("multiply", r, b.op("multiply", r, r)))

    return module(function("f", [vector(4), R], R, f))


def breaking() -> Module:
    """for i < n: if s > limit: break; s = s * x + 1"""

    def f(b: Build, n: Var, x: Var) -> Atom:
        def body(c: Build, label: LoopLabel, i: Var, s: Var) -> Terminator:
            def again(d: Build) -> Terminator:
                return Next(label, (d.op("add", d.op("multiply", s, x), real(1)),))

            def stop(d: Build) -> Terminator:
                return Exit(label, (d.op("multiply", s, s),))

            return ends(c, c.op("greater", s, real(6)), stop, again)

        (r,) = b.loop([x], [R], body, count=n)
        return b.op("sin", r)

    return module(function("f", [Z, R], R, f))


def early_exit() -> Module:
    """A loop that ends in two ways, told apart by a data type after it."""

    way = DataDefinition("Way")
    way.constructors = (Constructor("returned", (R, Z)), Constructor("went_on", (R,)))

    def f(b: Build, x: Var, limit: Var) -> Atom:
        def body(c: Build, label: LoopLabel, i: Var, s: Var) -> Terminator:
            squared = c.op("multiply", s, x)

            def found(d: Build) -> Terminator:
                return Exit(label, (make(d, way, "returned", d.op("multiply", squared, x), i),))

            def rest(d: Build) -> Terminator:
                def again(e: Build) -> Terminator:
                    return Next(label, (e.op("add", i, whole(1)), e.op("add", squared, real(0.5))))

                def finished(e: Build) -> Terminator:
                    return Exit(label, (make(e, way, "went_on", s),))

                return ends(d, d.op("less", i, whole(4)), again, finished)

            return ends(c, c.op("greater", squared, limit), found, rest)

        (r,) = b.loop([whole(0), x], [DataType(way)], body)
        (t,) = match(
            b,
            r,
            [R],
            returned=lambda c, value, i: Yield((c.op("multiply", value, x),)),
            went_on=lambda c, value: Yield((c.op("exp", c.op("negative", value)),)),
        )
        return b.op("multiply", t, b.op("add", t, limit))

    made = module(function("f", [R, R], R, f))
    return Module(made.functions, made.entry, (way,))


def power() -> Module:
    """pow(x, n) = 1 if n == 0 else x * pow(x, n - 1), in tail form"""

    def f(b: Build, label: LoopLabel, x: Var, n: Var) -> Terminator:
        def step(c: Build) -> Terminator:
            inner = c.call(Global("power", type_), x, c.op("subtract", n, whole(1)))
            return Exit(label, (c.op("multiply", x, inner),))

        return ends(b, b.op("equal", n, whole(0)), leave(label, real(1)), step)

    type_ = function("power", [R, Z], R, lambda b, x, n: x).type
    return module(function("power", [R, Z], R, f))


def fibonacci() -> Module:
    """A recursion with two calls, one of them with the same variable twice."""

    def f(b: Build, label: LoopLabel, x: Var, y: Var, n: Var) -> Terminator:
        def step(c: Build) -> Terminator:
            m = c.op("subtract", n, whole(1))
            first = c.call(Global("fib", type_), y, x, m)
            second = c.call(Global("fib", type_), x, x, c.op("subtract", m, whole(1)))
            return Exit(label, (c.op("add", c.op("multiply", first, y), c.op("sin", second)),))

        return ends(b, b.op("less_equal", n, whole(0)), leave(label, b.op("multiply", x, y)), step)

    type_ = function("fib", [R, R, Z], R, lambda b, x, y, n: x).type
    return module(function("fib", [R, R, Z], R, f))


def calls() -> Module:
    """A function called twice, in a loop and outside of it, with tuples in and out."""

    pair = TupleType((R, Z))

    def g(b: Build, p: Var, w: Var) -> Atom:
        x = b.project(p, 0)
        return b.tuple(b.op("multiply", b.op("sin", x), op(b, "sum", w)), b.op("add", b.project(p, 1), whole(1)), x)

    result = TupleType((R, Z, R))
    called = function("g", [pair, vector(2)], result, g)
    name = Global("g", called.type)

    def f(b: Build, x: Var, w: Var) -> Atom:
        first = b.call(name, b.tuple(x, whole(0)), w)

        def body(c: Build, label: LoopLabel, i: Var, t: Var) -> Terminator:
            r = c.call(name, t, w)
            return Next(label, (c.tuple(c.op("add", c.project(r, 0), c.project(r, 2)), c.project(r, 1)),))

        (r,) = b.loop([b.tuple(b.project(first, 0), b.project(first, 1))], [pair], body, count=whole(3))
        return b.op("multiply", b.project(r, 0), x)

    return module(function("f", [R, vector(2)], R, f), called)


def tuples() -> Module:
    """Tuples as parameters and results."""

    pair = TupleType((R, TupleType((vector(2), Z))))

    def f(b: Build, p: Var, y: Var) -> Atom:
        inner = b.project(p, 1)
        v = b.project(inner, 0)
        (q,) = b.branch(
            [TupleType((R, vector(2)))],
            (b.op("greater", y, real(0)), lambda c: Yield((c.tuple(y, v),))),
            orelse=lambda c: Yield((c.tuple(c.project(p, 0), c.op("multiply", v, y)),)),
        )
        return b.tuple(b.op("multiply", b.project(q, 0), op(b, "sum", b.project(q, 1))), b.project(p, 0), v)

    return module(function("f", [pair, R], TupleType((R, R, vector(2))), f))


def tree_fold() -> Module:
    """fold(t) over a recursive data type, whose leaves are made from the parameters."""

    tree = DataDefinition("Tree")
    tree.constructors = (Constructor("leaf", (R,)), Constructor("node", (DataType(tree), DataType(tree))))

    def fold(b: Build, label: LoopLabel, t: Var) -> Terminator:
        def node(c: Build, left: Var, right: Var) -> Terminator:
            a, d = c.call(name, left), c.call(name, right)
            return Exit(label, (c.op("add", c.op("multiply", a, d), c.op("sin", a)),))

        match(b, t, [], leaf=lambda c, v: Exit(label, (c.op("multiply", v, v),)), node=node)
        return Dead()

    name = Global("fold", FunctionType((DataType(tree),), R))
    folded = function("fold", [DataType(tree)], R, fold)

    def f(b: Build, x: Var, y: Var) -> Atom:
        first, second = make(b, tree, "leaf", x), make(b, tree, "leaf", b.op("multiply", x, y))
        both = make(b, tree, "node", first, second)
        whole_tree = make(b, tree, "node", both, first)
        return b.op("add", b.call(name, whole_tree), b.op("multiply", x, b.call(name, both)))

    made = module(function("f", [R, R], R, f), folded)
    return Module(made.functions, made.entry, (tree,))


# ---- programs with references


def cell(content: Type) -> RefType:
    return RefType(content)


def overwritten() -> Module:
    """Written, read, aliased, written again; one write that nobody reads."""

    def f(b: Build, x: Var, y: Var) -> Atom:
        r = b.bind(RefNew(x), cell(R), "r")
        first = b.bind(RefRead(r), R)
        b.do(RefWrite(r, b.op("multiply", first, y)))
        pair = b.tuple(r, y)
        alias = b.project(pair, 0)
        second = b.bind(RefRead(alias), R)
        b.do(RefWrite(alias, b.op("sin", second)))
        third = b.bind(RefRead(r), R)
        b.do(RefWrite(r, real(2)))
        total = b.op("add", b.op("multiply", third, first), b.bind(RefRead(r), R))
        b.do(RefWrite(r, b.op("exp", x)))
        return b.op("multiply", total, second)

    return module(function("f", [R, R], R, f))


def cell_in_loops() -> Module:
    """A cell that a nested loop and an arm change, and a new cell in each round; early exits."""

    def f(b: Build, x: Var, n: Var) -> Atom:
        r = b.bind(RefNew(x), cell(R), "r")

        def outer(c: Build, label: LoopLabel, i: Var, s: Var) -> Terminator:
            fresh = c.bind(RefNew(s), cell(R), "fresh")

            def inner(d: Build, inner_label: LoopLabel, j: Var) -> Terminator:
                value = d.bind(RefRead(r), R)
                d.do(RefWrite(r, d.op("sin", d.op("multiply", value, x))))
                d.do(RefWrite(fresh, d.op("add", d.bind(RefRead(fresh), R), value)))

                def on(e: Build) -> Terminator:
                    e.do(RefWrite(fresh, e.op("multiply", value, value)))
                    return Next(inner_label, (e.op("add", j, whole(1)),))

                def off(e: Build) -> Terminator:
                    e.do(RefWrite(r, e.op("add", value, x)))
                    return Exit(inner_label, ())

                return ends(d, d.op("less", j, i), on, off)

            c.loop([whole(0)], [], inner)

            def change(d: Build) -> Terminator:
                d.do(RefWrite(r, d.op("multiply", d.bind(RefRead(r), R), s)))
                return Yield(())

            c.branch([], (c.op("greater", s, x), change))
            return Next(label, (c.op("add", s, c.bind(RefRead(fresh), R)),))

        (s,) = b.loop([x], [R], outer, count=n)
        return b.op("multiply", s, b.bind(RefRead(r), R))

    return module(function("f", [R, Z], R, f))


def chosen_cell() -> Module:
    """One of two cells, chosen by a branch; cells of vectors."""

    def f(b: Build, x: Var, v: Var) -> Atom:
        first = b.bind(RefNew(v), cell(vector(2)), "first")
        second = b.bind(RefNew(b.op("multiply", v, x)), cell(vector(2)), "second")
        (r,) = b.branch([cell(vector(2))], (b.op("greater", x, real(0.5)), give(first)), orelse=give(second))
        b.do(RefWrite(r, b.op("sin", b.bind(RefRead(second), vector(2)))))
        both = b.op("multiply", b.bind(RefRead(first), vector(2)), b.bind(RefRead(second), vector(2)))
        return op(b, "sum", both)

    return module(function("f", [R, vector(2)], R, f))


def cell_in_calls() -> Module:
    """A recursive function that changes a cell, one that makes a cell, and data that hold cells."""

    box = DataDefinition("Box")
    box.constructors = (Constructor("empty", ()), Constructor("full", (cell(R), R)))
    type_ = FunctionType((cell(R), R, Z), R)

    def change(b: Build, label: LoopLabel, r: Var, x: Var, n: Var) -> Terminator:
        def step(c: Build) -> Terminator:
            before = c.bind(RefRead(r), R)
            c.do(RefWrite(r, c.op("multiply", before, x)))
            deeper = c.call(Global("change", type_), r, c.op("add", x, before), c.op("subtract", n, whole(1)))
            return Exit(label, (c.op("multiply", deeper, c.bind(RefRead(r), R)),))

        return ends(b, b.op("less", n, whole(1)), leave(label, x), step)

    def fill(b: Build, label: LoopLabel, x: Var, n: Var) -> Terminator:
        def full(c: Build) -> Terminator:
            return Exit(label, (make(c, box, "full", c.bind(RefNew(x), cell(R), "r"), x),))

        def empty(c: Build) -> Terminator:
            return Exit(label, (make(c, box, "empty"),))

        return ends(b, b.op("less", n, whole(3)), full, empty)

    changed = function("change", [cell(R), R, Z], R, change)
    filled = function("fill", [R, Z], DataType(box), fill)

    def f(b: Build, x: Var, n: Var) -> Atom:
        held = b.call(Global("fill", filled.type), x, n)

        def with_cell(c: Build, r: Var, y: Var) -> Terminator:
            result = c.call(Global("change", type_), r, y, n)
            return Yield((c.op("add", result, c.bind(RefRead(r), R)),))

        (t,) = match(b, held, [R], empty=lambda c: Yield((x,)), full=with_cell)
        (u,) = match(b, held, [R], empty=lambda c: Yield((x,)), full=lambda c, r, y: Yield((c.bind(RefRead(r), R),)))
        return b.op("multiply", b.op("sin", t), u)

    made = module(function("f", [R, Z], R, f), changed, filled)
    return Module(made.functions, made.entry, (box,))


PROGRAMS = [
    Program(chain, (0.7, 1.3)),
    Program(broadcasting, (np.array([[0.3], [-0.4], [1.1]]), np.array([0.5, -0.2]), 0.8), 2),
    *(Program(choice, arguments) for arguments in ((-0.7, 0.4), (0.5, 0.6), (0.9, 0.6))),
    *(Program(untaken, (x,)) for x in (0.6, 1.7)),
    *(Program(squares, (x,)) for x in (3.0, 120.0)),
    Program(newton, (2.3,)),
    *(Program(nested, (n, 0.6, 0.9)) for n in (0, 1, 4)),
    *(Program(nested_while, arguments) for arguments in ((0.4, 0.3), (1.7, 1.2))),
    Program(reads, (np.array([0.5, 1.2, -0.7, 0.9]), np.array([0.3, -0.8, 0.6, 1.1])), 2),
    Program(writes, (np.array([0.5, 1.2, -0.7, 0.9]), 0.7), 2),
    *(Program(breaking, arguments) for arguments in ((0, 1.2), (3, 1.2), (9, 1.2), (9, 7.0))),
    *(Program(early_exit, arguments) for arguments in ((1.2, 2.0), (0.7, 5.0), (3.0, 2.0))),
    Program(power, (1.3, 4)),
    Program(fibonacci, (0.4, 0.7, 3)),
    Program(calls, (0.6, np.array([0.4, 0.5])), 2),
    *(Program(tuples, ((np.array(0.6), (np.array([0.4, 0.5]), np.array(3, np.int32))), y), 2) for y in (0.7, -0.7)),
    Program(tree_fold, (0.6, 0.8)),
    Program(overwritten, (0.6, 0.8)),
    Program(cell_in_loops, (0.6, 3)),
    *(Program(chosen_cell, (x, np.array([0.4, 0.5])), 2) for x in (0.3, 0.7)),
    *(Program(cell_in_calls, (0.6, n)) for n in (0, 2, 3)),
]
