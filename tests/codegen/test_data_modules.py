"""Compiled data types, stacks and references against the interpreter, on modules built by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
from core_builder import Builder, F, I, agree, call, equal, exit_, f32, function, i32, module, next_, tensor

from relay.codegen.runtime.cpu import DataResult, compile_module
from relay.eval.interpreter import run
from relay.eval.values import Reference
from relay.ir.expr import (
    Construct,
    Dead,
    LoopLabel,
    Match,
    MatchArm,
    RefNew,
    RefRead,
    RefWrite,
    StackGet,
    StackLength,
    StackNew,
    StackPush,
    Terminator,
    Var,
)
from relay.ir.types import (
    FLOAT32,
    INT64,
    Constructor,
    DataDefinition,
    DataType,
    RefType,
    StackType,
    TupleType,
    scalar,
)
from relay.operator import Value


def shape_data() -> DataDefinition:
    definition = DataDefinition("Shape")
    definition.constructors = (
        Constructor("Point", ()),
        Constructor("Circle", (F, tensor(30))),
        Constructor("Square", (tensor(30), I)),
    )
    return definition


def test_data_types() -> None:
    definition = shape_data()
    type_ = DataType(definition)

    def body(b: Builder, n: Value, x: Value) -> Value:
        total = x.op("sum")

        def build(name: str, *fields: Value) -> Value:
            return b.bind(Construct(definition, name, tuple(f.atom for f in fields)), type_)

        (value,) = b.branch(
            lambda b: n == 0,
            lambda b: build("Point"),
            lambda b: n == 1,
            lambda b: build("Circle", total, x),
            lambda b: build("Square", x * 3.0, n),
            types=(type_,),
        )
        fields = (Var("f", F), Var("c", tensor(30)), Var("s", tensor(30)), Var("k", I))
        arms = (
            MatchArm("Square", fields[2:], b.block(lambda b: (b.value(fields[2]), b.value(fields[3])))),
            MatchArm("Point", (), b.block(lambda b: (x * 0.0, b.int(7)))),
            MatchArm("Circle", fields[:2], b.block(lambda b: (b.value(fields[1]) * b.value(fields[0]), b.int(8)))),
        )
        return b.pack(*b.many(Match(value.atom, arms), (tensor(30), I)))

    made = module(function([I, tensor(30)], body))
    program = compile_module(made)
    for n in range(3):
        equal(program([i32(n), f32(30)]), run(made, [i32(n), f32(30)]))


def test_tape() -> None:
    """A loop that records, and one that reads backwards; the elements hold a stack of another loop."""
    inner_type = StackType(F)
    element = TupleType((tensor(8), inner_type))

    def body(b: Builder, n: Value, x: Value) -> Value:
        def forward(b: Builder, label: LoopLabel, i: Value, x: Value, tape: Value) -> Terminator:
            def note(b: Builder, label: LoopLabel, j: Value, s: Value) -> Terminator:
                number = (x.op("sum") + j.op("cast", dtype=FLOAT32)).op("sin")
                return next_(label, b.bind(StackPush(s.atom, number.atom), inner_type))

            (numbers,) = b.loop([b.bind(StackNew(F), inner_type)], note, count=i)
            pushed = b.bind(StackPush(tape.atom, b.pack(x, numbers).atom), StackType(element))
            return next_(label, (x * 1.5).op("tanh"), pushed)

        y, tape = b.loop([x, b.bind(StackNew(element), StackType(element))], forward, count=n)
        length = b.bind(StackLength(tape.atom), scalar(INT64))

        def backward(b: Builder, label: LoopLabel, i: Value, d: Value, total: Value) -> Terminator:
            saved = b.bind(StackGet(tape.atom, (length - i - 1).atom), element)
            numbers = b.item(saved, 1)
            count = b.bind(StackLength(numbers.atom), scalar(INT64))

            def add(b: Builder, label: LoopLabel, j: Value, t: Value) -> Terminator:
                return next_(label, t + b.bind(StackGet(numbers.atom, j.atom), F))

            (total,) = b.loop([total], add, count=count)
            return next_(label, d * b.item(saved, 0) + d, total)

        return b.pack(y, *b.loop([y, b.constant(0, FLOAT32)], backward, count=length))

    made = module(function([I, tensor(8)], body))
    program = compile_module(made)
    for n in (0, 1, 5, 40):
        equal(program([i32(n), f32(8)]), run(made, [i32(n), f32(8)]))


def test_old_stacks_stay_valid() -> None:
    stack = StackType(tensor(3))

    def body(b: Builder, x: Value) -> Value:
        empty = b.bind(StackNew(tensor(3)), stack)
        one = b.bind(StackPush(empty.atom, x.atom), stack)
        left = b.bind(StackPush(one.atom, (x + 1.0).atom), stack)
        right = b.bind(StackPush(one.atom, (x + 2.0).atom), stack)
        first = b.bind(StackPush(empty.atom, (x + 3.0).atom), stack)
        third = b.bind(StackPush(left.atom, (x + 4.0).atom), stack)
        got = [
            b.bind(StackGet(s.atom, b.int(i).atom), tensor(3))
            for s, i in ((one, 0), (left, 0), (left, 1), (right, 0), (right, 1), (first, 0), (third, 2), (third, 1))
        ]
        return b.pack(*got, b.bind(StackLength(third.atom), scalar(INT64)))

    agree(module(function([tensor(3)], body)), f32(3))


def test_a_value_read_from_a_stack_survives_its_growth() -> None:
    stack = StackType(tensor(50))

    def body(b: Builder, x: Value, n: Value) -> Value:
        one = b.bind(StackPush(b.bind(StackNew(tensor(50)), stack).atom, x.atom), stack)
        got = b.bind(StackGet(one.atom, b.int(0).atom), tensor(50))

        def grow(b: Builder, label: LoopLabel, i: Value, s: Value) -> Terminator:
            return next_(label, b.bind(StackPush(s.atom, (got * 2.0).atom), stack))

        (many,) = b.loop([one], grow, count=n)
        return b.pack(got + 1.0, b.bind(StackGet(many.atom, n.atom), tensor(50)))

    agree(module(function([tensor(50), I], body)), f32(50), i32(1000))


def test_two_stacks_pushed_by_turns_do_not_copy() -> None:
    stack = StackType(I)

    def body(b: Builder, n: Value) -> Value:
        def push(b: Builder, label: LoopLabel, i: Value, s: Value, t: Value) -> Terminator:
            return next_(
                label, b.bind(StackPush(s.atom, i.atom), stack), b.bind(StackPush(t.atom, (i * 2).atom), stack)
            )

        s, t = b.loop([b.bind(StackNew(I), stack), b.bind(StackNew(I), stack)], push, count=n)
        last = n - 1
        return b.bind(StackGet(s.atom, last.atom), I) + b.bind(StackGet(t.atom, last.atom), I)

    made = module(function([I], body))
    program = compile_module(made)
    equal(program([i32(200_000)]), i32(3 * 199_999))  # quadratic copying would take minutes


def test_references() -> None:
    """Aliases, a cell that holds a tuple, and a new cell in every round."""
    cell, pair = RefType(F), RefType(TupleType((tensor(9), I)))

    def body(b: Builder, n: Value, x: Value) -> Value:
        kept = b.bind(RefNew(x.op("sum").atom), cell)
        both = b.bind(RefNew(b.pack(x, n).atom), pair)

        def step(b: Builder, label: LoopLabel, i: Value, previous: Value) -> Terminator:
            fresh = b.bind(RefNew(b.bind(RefRead(previous.atom), F).atom), cell)
            b.perform(RefWrite(fresh.atom, (b.bind(RefRead(fresh.atom), F) * 1.1).atom))
            b.perform(RefWrite(previous.atom, b.constant(1, FLOAT32).atom))
            held = b.bind(RefRead(both.atom), pair.content)
            b.perform(RefWrite(both.atom, b.pack(b.item(held, 0) * 0.5, b.item(held, 1) + i).atom))
            return next_(label, fresh)

        (last,) = b.loop([kept], step, count=n)
        before = b.bind(RefRead(kept.atom), F)
        b.perform(RefWrite(kept.atom, b.constant(5, FLOAT32).atom))
        return b.pack(
            before,
            b.bind(RefRead(kept.atom), F),
            b.bind(RefRead(last.atom), F),
            b.bind(RefRead(both.atom), pair.content),
        )

    made = module(function([I, tensor(9)], body))
    program = compile_module(made)
    for n in (0, 1, 30):
        equal(program([i32(n), f32(9)]), run(made, [i32(n), f32(9)]))


def test_recursive_data() -> None:
    """A list is built in a loop, and summed by recursion and by a loop."""
    definition = DataDefinition("List")
    list_ = DataType(definition)
    definition.constructors = (Constructor("Nil", ()), Constructor("Cons", (tensor(5), list_)))

    def sums(b: Builder, xs: Value) -> Terminator:
        label = b.label  # type: ignore[attr-defined]
        head, tail = Var("head", tensor(5)), Var("tail", list_)

        def cons(b: Builder) -> Terminator:
            return exit_(label, call(b, "sums", tensor(5), b.value(tail)) * 0.9 + b.value(head))

        arms = (
            MatchArm("Nil", (), b.block(lambda b: exit_(label, b.constant(np.zeros(5), FLOAT32)))),
            MatchArm("Cons", (head, tail), b.block(cons)),
        )
        b.many(Match(xs.atom, arms), ())
        return Dead()

    def main(b: Builder, n: Value, x: Value) -> Value:
        def build(b: Builder, label: LoopLabel, i: Value, x: Value, xs: Value) -> Terminator:
            return next_(label, x * 1.01, b.bind(Construct(definition, "Cons", (x.atom, xs.atom)), list_))

        _, xs = b.loop([x, b.bind(Construct(definition, "Nil", ()), list_)], build, count=n)

        def walk(b: Builder, label: LoopLabel, xs: Value, total: Value) -> Terminator:
            head, tail = Var("head", tensor(5)), Var("tail", list_)
            arms = (
                MatchArm("Nil", (), b.block(lambda b: exit_(label, total))),
                MatchArm("Cons", (head, tail), b.block(lambda b: next_(label, b.value(tail), total + b.value(head)))),
            )
            b.many(Match(xs.atom, arms), ())
            return Dead()

        (total,) = b.loop([xs, x * 0.0], walk, types=(tensor(5),))
        return b.pack(call(b, "sums", tensor(5), xs), total)

    made = module(function([I, tensor(5)], main), function([list_], sums, "sums", tensor(5)))
    program = compile_module(made)
    for n in (0, 1, 50):
        equal(program([i32(n), f32(5)]), run(made, [i32(n), f32(5)]))


def test_data_at_the_border() -> None:
    """Values that are not recursive, as arguments and results; the fields of the other constructors hold nothing."""
    definition = shape_data()
    type_ = DataType(definition)
    made = module(function([type_, F], lambda b, shape, x: b.pack(x, shape)))
    program = compile_module(made)
    for constructor, fields in (("Point", ()), ("Circle", (f32(), f32(30))), ("Square", (f32(30), i32(3)))):
        x, shape = program([DataResult(definition, constructor, fields), f32()])
        equal(x, f32())
        assert shape.constructor == constructor
        equal(shape.fields, fields)


def test_data_with_very_many_parts() -> None:
    """Pairs of pairs of pairs ..: 2**16 tensors, that is, in memory as few rows as there are different parts."""
    definitions: list[DataDefinition] = []
    for depth in range(16):
        made_of = F if depth == 0 else DataType(definitions[-1])
        definitions.append(DataDefinition(f"Pair{depth}", (Constructor("Pair", (made_of, made_of)),)))

    def main(b: Builder, whole: Value, x: Value) -> Value:
        for definition in definitions:
            x = b.bind(Construct(definition, "Pair", (x.atom, x.atom)), DataType(definition))
        return b.pack(x, whole)

    program = compile_module(module(function([DataType(definitions[-1]), F], main)))
    given: Any = np.asarray(3, np.float32)
    for definition in definitions:
        given = DataResult(definition, "Pair", (given, given))
    for found, expected in zip(program([given, np.asarray(5, np.float32)]), (5, 3), strict=True):
        for _ in definitions:
            assert found.constructor == "Pair"
            found = found.fields[1]
        assert float(found) == expected


def test_lists_at_the_border() -> None:
    """Recursive values of any length go in and out, one program for all; what they share is passed once."""
    definition = DataDefinition("List")
    type_ = DataType(definition)
    definition.constructors = (Constructor("Nil", ()), Constructor("Cons", (tensor(3), type_)))

    def grow(b: Builder, xs: Value, x: Value) -> Value:
        longer = b.bind(Construct(definition, "Cons", (x.atom, xs.atom)), type_)
        return b.pack(longer, xs)

    program = compile_module(module(function([type_, tensor(3)], grow)))
    for length in (0, 1, 3000, 2):
        xs = DataResult(definition, "Nil", ())
        for i in range(length):
            xs = DataResult(definition, "Cons", (f32(3) * i, xs))
        longer, same = program([xs, f32(3)])
        assert longer.fields[1] is same
        equal(longer.fields[0], f32(3))
        count = 0
        while same.constructor == "Cons":
            count += 1
            equal(same.fields[0], f32(3) * (length - count))
            same = same.fields[1]
        assert count == length


def test_references_at_the_border() -> None:
    def body(b: Builder, r: Value) -> Value:
        b.perform(RefWrite(r.atom, (b.bind(RefRead(r.atom), F) + 1.0).atom))
        return r

    program = compile_module(module(function([RefType(F)], body)))
    cell = Reference(np.float32(2))
    assert program([cell]) is cell
    equal(cell.content, np.asarray(3, np.float32))
