"""Arrays that are updated in place: the results are the interpreter's, and loops of updates copy no array."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from core_builder import Builder, agree, exit_, f32, function, i32, module, next_, tensor

import relay
from relay.codegen.lowering.function_builder import Code
from relay.codegen.lowering.values import Leaf, Memory
from relay.ir.expr import (
    Call,
    Construct,
    Dead,
    Global,
    LoopLabel,
    Match,
    MatchArm,
    Module,
    RefNew,
    RefRead,
    RefWrite,
    StackGet,
    StackNew,
    StackPush,
    Terminator,
    Var,
)
from relay.ir.types import (
    FLOAT32,
    INT32,
    BaseType,
    Constructor,
    DataDefinition,
    DataType,
    RefType,
    StackType,
    TupleType,
    scalar,
)
from relay.ir.validation.check import check
from relay.operator import Value, lookup
from relay.transform.pipeline import optimize

SHAPE = (4, 2)
ARRAY, NUMBER = tensor(*SHAPE), scalar(INT32)


@pytest.fixture
def copies(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """The copies of arrays that are generated from now on: the bytes, and the number of loops around."""
    found: list[tuple[int, int]] = []
    original = Code.copy

    def copy(code: Code, target: Leaf, source: Leaf) -> None:
        if target.place is not source.place and isinstance(target.place, Memory):
            found.append((target.layout.bytes, len(code.workspace._loops)))
        original(code, target, source)

    monkeypatch.setattr(Code, "copy", copy)
    return found


# ---- random programs


class Writer:
    """Writes a random program that updates some arrays, of which any version may stay in use."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.budget = 30

    def program(self) -> Module:
        def body(b: Builder, *parameters: Value) -> Value:
            *arrays, number = parameters
            constant = Value(b, b._array(np.arange(8, dtype=np.float32).reshape(SHAPE)).atom, ARRAY)
            arrays = [*arrays, constant, b.call(lookup("zeros"), (), {"shape": SHAPE, "dtype": FLOAT32})]
            return b.pack(*self.block(b, arrays[-3:], arrays[:1], number, 3))

        def helper(b: Builder, x: Value, y: Value) -> Value:
            return b.pack(x.op("index_update", 1, y.op("index", 2)), y * 0.5 + x)

        return module(function([ARRAY, ARRAY, NUMBER], body), function([ARRAY, ARRAY], helper, "helper"))

    def block(self, b: Builder, arrays: list[Value], others: list[Value], number: Value, depth: int) -> list[Value]:
        """The arrays after some statements. `others` can be read, too."""
        arrays = list(arrays)
        for _ in range(self.random.randint(1, 5)):
            self.budget -= 1
            if self.budget > 0:
                self.statement(b, arrays, others, number, depth)
                if self.random.random() < 0.3:
                    others = [*others, self.random.choice(arrays)][-4:]
        return arrays

    def position(self, b: Builder, number: Value) -> Value:
        return self.random.choice([b.int(self.random.randint(-4, 3)), number.op("remainder", 4)])

    def statement(self, b: Builder, arrays: list[Value], others: list[Value], number: Value, depth: int) -> None:
        choose = self.random.choice
        k = self.random.randrange(len(arrays))
        x, y = arrays[k], choose([*arrays, *others])
        kind = choose(["update"] * 6 + ["swap", "alias", "compute", "pack", "call"] + ["if", "for", "while"] * 2)
        match kind:
            case "update":
                arrays[k] = self.update(b, x, y, number)
            case "swap":
                j = self.random.randrange(len(arrays))
                arrays[k], arrays[j] = arrays[j], arrays[k]
            case "alias":
                arrays[k] = y
            case "compute":
                arrays[k] = choose([lambda: y * 0.5 + x, lambda: x.op("tanh"), lambda: y.op("minimum", x)])()
            case "pack":
                arrays[k] = b.item(b.pack(x, b.pack(y, x)), 0)
            case "call":
                type_ = TupleType((ARRAY, ARRAY))
                both = b.bind(Call(Global("helper"), (x.atom, y.atom)), type_)
                arrays[k] = b.item(both, self.random.randrange(2))
            case "if" if depth:
                flag = choose([number.op("less", 2), x.op("sum").op("greater", 0.0)])
                types = [ARRAY] * len(arrays)
                state = list(arrays)
                arrays[:] = b.branch(
                    lambda b: flag,
                    lambda b: tuple(self.block(b, state, others, number, depth - 1)),
                    lambda b: tuple(self.shuffled(state)),
                    types=types,
                )
            case "for" if depth:

                def body(b: Builder, label: LoopLabel, index: Value, *state: Value) -> Terminator:
                    return next_(label, *self.shuffled(self.block(b, list(state), others, index, depth - 1)))

                arrays[:] = b.loop(arrays, body, b.int(self.random.randint(0, 3)))
            case "while" if depth:
                count = len(arrays)

                def round_(b: Builder, label: LoopLabel, *state: Value) -> Terminator:
                    *inner, i = state
                    going = i.op("less", 3)

                    def on(b: Builder) -> Terminator:
                        made = self.shuffled(self.block(b, inner, others, i, depth - 1))
                        return next_(label, *made, i + 1)

                    b.branch(lambda b: going, on, lambda b: exit_(label, *self.shuffled(inner)))
                    return Dead()

                arrays[:] = b.loop([*arrays, b.int(0)], round_, types=[ARRAY] * count)
            case _:
                pass

    def shuffled(self, arrays: list[Value]) -> list[Value]:
        arrays = list(arrays)
        if self.random.random() < 0.3:
            self.random.shuffle(arrays)
        return arrays

    def update(self, b: Builder, x: Value, y: Value, number: Value) -> Value:
        at, row = self.position(b, number), y.op("index", self.position(b, number))
        bounds = {"begin": (3, 0), "end": (-1, 2), "strides": (-2, 1)}
        choice = self.random.randrange(6)
        match choice:
            case 0 | 1:
                return x.op("index_update", at, row * 0.5)
            case 2:
                return x.op("index_add", at, row)
            case 3:
                return x.op("update_slice", y.op("strided_slice", begin=(0, 0), end=(2, 2), strides=(1, 1)), **bounds)
            case 4:
                # All rows in the reverse order: what is written overwrites what is still to be read.
                whole = {"begin": (3, 0), "end": (-1, 2), "strides": (-1, 1)}
                return x.op("update_slice", y * 0.5 if self.random.random() < 0.5 else y, **whole)
            case _:
                indices = b._array(np.array([2, 0, 2, -1], np.int32))
                return x.op("scatter_add", indices, y, axis=0) * 0.5


@pytest.mark.parametrize("seed", range(60))
def test_random_programs(seed: int) -> None:
    made = Writer(seed).program()
    check(made, "structured")
    x, y = f32(*SHAPE, seed=seed), f32(*SHAPE, seed=seed + 1000)
    before = x.copy(), y.copy()
    for program in (made, optimize(made, 2)):
        agree(program, x, y, i32(seed % 5), tolerance=1e-4)
        np.testing.assert_array_equal(x, before[0])
        np.testing.assert_array_equal(y, before[1])


# ---- what is not to be overwritten


def test_an_argument_is_not_overwritten() -> None:
    def body(b: Builder, x: Value, i: Value) -> Value:
        return b.pack(x.op("index_update", i, 7.0), x.op("index_add", i, 1.0).op("index_add", i, 1.0))

    x = f32(5)
    before = x.copy()
    agree(module(function([tensor(5), NUMBER], body)), x, i32(2))
    np.testing.assert_array_equal(x, before)


def test_a_constant_is_not_overwritten() -> None:
    table = np.arange(5, dtype=np.float32)

    def body(b: Builder, i: Value) -> Value:
        first = b._array(table).op("index_update", i, 7.0)
        return b.pack(
            b.loop([b._array(table)], lambda b, label, k, x: next_(label, x.op("index_add", k, 1.0)), i)[0], first
        )

    agree(module(function([NUMBER], body)), i32(2))
    np.testing.assert_array_equal(table, np.arange(5))


def test_the_caller_of_a_function_keeps_its_array() -> None:
    def body(b: Builder, x: Value) -> Value:
        made = x * 2.0
        changed = b.bind(Call(Global("change"), (made.atom,)), tensor(5))
        return b.pack(made, changed)

    def change(b: Builder, x: Value) -> Value:
        return x.op("index_update", 1, 7.0)

    agree(module(function([tensor(5)], body), function([tensor(5)], change, "change")), f32(5))


@pytest.mark.parametrize("base", ["bool", "int8", "int64", "float16", "bfloat16", "float64"])
@pytest.mark.parametrize("shape", [(1,), (3,), (2, 700)])
def test_dtypes_and_large_rows(base: str, shape: tuple[int, ...]) -> None:
    """Rows of 700 are computed in memory that the caller of the kernel provides."""
    type_ = tensor(*shape, base=BaseType(base))

    def body(b: Builder, x: Value, i: Value) -> Value:
        def round_(b: Builder, label: LoopLabel, k: Value, a: Value) -> Terminator:
            row = a.op("index", -1)
            changed = a.op("index_update", k, row | row if base == "bool" else row * row + row)
            return next_(label, changed if base == "bool" else changed.op("index_add", 0, a.op("index", k)))

        return b.loop([x], round_, i)[0]

    x = (np.arange(np.prod(shape)).reshape(shape) % 3).astype(BaseType(base).dtype)
    agree(module(function([type_, NUMBER], body)), x, i32(shape[0]))


def test_data_and_references_keep_their_arrays() -> None:
    pair = DataDefinition("Pair", [Constructor("Pair", [ARRAY, ARRAY])])

    def body(b: Builder, x: Value, i: Value) -> Value:
        a = x * 2.0
        both = b.bind(Construct(pair, "Pair", (a.atom, x.atom)), DataType(pair))
        cell = b.bind(RefNew(a.atom), RefType(ARRAY))
        stack = b.bind(StackPush(b.bind(StackNew(ARRAY), StackType(ARRAY)).atom, a.atom), StackType(ARRAY))
        changed = a.op("index_update", i, a.op("index", 0) * 3.0)
        b.perform(RefWrite(cell.atom, changed.op("index_add", i, changed.op("index", 1)).atom))
        fields = (Var("first", ARRAY), Var("second", ARRAY))
        read = b.bind(RefRead(cell.atom), ARRAY)
        kept = b.bind(StackGet(stack.atom, b.int(0).atom), ARRAY)
        first, second = (b.value(f) for f in fields)

        def arm(b: Builder) -> tuple[Value, ...]:
            return (first.op("index_update", i, second.op("index", 0)), second.op("index_add", 0, first.op("index", i)))

        made = b.many(Match(both.atom, (MatchArm("Pair", fields, b.block(arm)),)), [ARRAY, ARRAY])
        again = kept.op("index_update", 1, kept.op("index", 0))
        return b.pack(*made, read.op("index_update", 0, read.op("index", 1)), read, kept, again, changed)

    agree(module(function([ARRAY, NUMBER], body)), f32(*SHAPE), i32(2))


def test_an_array_written_over_itself() -> None:
    def body(b: Builder, x: Value) -> Value:
        y = x * 2.0
        return y.op("update_slice", y, begin=(4,), end=(-1,), strides=(-1,))

    agree(module(function([tensor(5)], body)), f32(5))


def test_a_read_after_the_update_runs_before(copies: list[tuple[int, int]]) -> None:
    """The array is read once more after the update, which waits for that."""

    def body(b: Builder, x: Value, n: Value) -> Value:
        def round_(b: Builder, label: LoopLabel, i: Value, a: Value) -> Terminator:
            changed = a.op("index_update", i, 0.0)
            old = a.op("index", i)
            return next_(label, changed.op("index_add", i, old * 2.0))

        return b.loop([x], round_, n)[0]

    agree(module(function([tensor(5), NUMBER], body)), f32(5), i32(4))
    assert copies == [(20, 0)]


def test_an_old_version_in_use_costs_one_copy_a_round(copies: list[tuple[int, int]]) -> None:
    def body(b: Builder, x: Value, n: Value) -> Value:
        def round_(b: Builder, label: LoopLabel, i: Value, a: Value) -> Terminator:
            changed = a.op("index_update", i, 0.0)
            total = changed.op("sum")
            return next_(label, changed.op("index_update", i, total + a.op("index", i)))

        return b.loop([x], round_, n)[0]

    agree(module(function([tensor(5), NUMBER], body)), f32(5), i32(4))
    assert len([bytes_ for bytes_, loops in copies if loops]) <= 2


# ---- linear time


@relay.relay
def updates(x):
    for i in range(x.shape[0]):
        x[i] = x[i] * 2.0 + 1.0
    return x


@relay.relay
def conditional_updates(x):
    i = 0
    while i < x.shape[0]:
        if x[i] > 0.0:
            x[i] = x[i] * 2.0
        i = i + 1
    return x


@relay.relay
def nested_updates(x):
    for i in range(x.shape[0]):
        for j in range(3):
            x[i] = x[i] * 0.5 + x[j]
        x[i] = x[i] + 1.0
    return x


@relay.relay
def row_updates(x):
    y = x.reshape((-1, 2))
    for i in range(1, y.shape[0]):
        y[i] = y[i - 1] * 0.5 + y[i]
    return y


@relay.relay
def reads(x):
    total = 0.0
    for i in range(x.shape[0]):
        total = total + x[i] * x[i]
    return total


@relay.relay
def recurrence(x):
    for i in range(1, x.shape[0]):
        x[i] = x[i - 1] * x[i]
    return x[-1]


@pytest.mark.parametrize(
    "program",
    [updates, conditional_updates, nested_updates, row_updates, relay.grad(reads), relay.grad(recurrence)],
    ids=["updates", "conditional", "nested", "rows", "gradient of reads", "gradient of a recurrence"],
)
def test_loops_of_updates_copy_nothing(program: Any, copies: list[tuple[int, int]]) -> None:
    x = np.linspace(-1, 1, 12).astype(np.float32)
    before = x.copy()
    np.testing.assert_allclose(program(x), program.interpret(x), rtol=1e-4)
    np.testing.assert_array_equal(x, before)
    assert [size for size, loops in copies if loops and size >= x.nbytes] == []
