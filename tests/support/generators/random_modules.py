"""Random typed programs of the intermediate representation, for properties of passes and of the text.

`modules()` is a Hypothesis strategy; `random_module(seed)` is the same program in every process. A program takes a
float64 scalar, vector (3,) and matrix (3, 3) and an int32, and returns a tuple of tensors. It has operators of all
patterns, tuples, branches, counted loops and loops that end by themselves (all of them do), calls, recursion, cells,
stacks, data types with match, and prints, whose order the interpreter's output shows.
"""

from __future__ import annotations

import contextlib
import io
import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st
from transform_programs import Build, block, function, module, type_of

import relay.ops  # noqa: F401
from relay.errors import ExecutionError
from relay.eval import interpreter
from relay.ir.expr import (
    Assert,
    Atom,
    Binding,
    Call,
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
    Print,
    RefNew,
    RefRead,
    RefWrite,
    StackGet,
    StackLength,
    StackNew,
    StackPush,
    Terminator,
    Var,
    Yield,
)
from relay.ir.types import (
    BOOL,
    FLOAT64,
    INT32,
    INT64,
    Constructor,
    DataDefinition,
    DataType,
    FunctionType,
    RefType,
    StackType,
    TensorType,
    TupleType,
    Type,
)
from relay.operator import lookup

REAL, WHOLE, TRUTH = TensorType(FLOAT64, ()), TensorType(INT32, ()), TensorType(BOOL, ())
LENGTH = TensorType(INT64, ())
VECTOR, MATRIX = TensorType(FLOAT64, (3,)), TensorType(FLOAT64, (3, 3))
TENSORS = (REAL, VECTOR, MATRIX)
RESULT = TupleType((REAL, VECTOR, MATRIX, WHOLE))

CHOICE = DataDefinition("Choice")
CHOICE.constructors = (Constructor("None_", ()), Constructor("One", (VECTOR,)), Constructor("Two", (REAL, MATRIX)))

_UNARY = ("negative", "tanh", "sin", "abs", "relu", "sigmoid", "exp", "cos")
_BINARY = ("add", "subtract", "multiply", "maximum", "minimum")
_WHOLE = ("add", "subtract", "multiply", "maximum")


def modules() -> st.SearchStrategy[Module]:
    """Random modules. Smaller seeds are no simpler programs, so a failing one is reported by its seed."""
    return st.integers(0, 2**32).map(random_module)


def random_module(seed: int, budget: int = 40) -> Module:
    """The program of a seed, with about `budget` statements."""
    return _Writer(seed, budget).program()


def arguments(seed: int) -> list[np.ndarray]:
    """Values for the parameters of a random program."""
    rng = np.random.default_rng(seed)
    return [
        np.asarray(rng.normal()),
        rng.normal(size=3),
        rng.normal(size=(3, 3)),
        np.asarray(rng.integers(-3, 4), np.int32),
    ]


def outcome(module_: Module, values: Sequence[Any]) -> tuple[object, str]:
    """The result of a run (the message, if it fails) and what it printed."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        try:
            result = interpreter.run(module_, values)
        except ExecutionError as error:
            return error.message, out.getvalue()
    return result, out.getvalue()


class _Writer:
    def __init__(self, seed: int, budget: int) -> None:
        self.random = random.Random(seed)
        self.budget = budget
        self.callable: list[tuple[str, FunctionType]] = []

    # ---- values

    def number(self, type_: TensorType) -> Constant:
        if type_ == WHOLE:
            return Constant(np.asarray(self.random.randint(-2, 3), np.int32))
        value = self.random.choice((0.0, -0.0, 1.0, -1.0, 2.0, 0.5, self.random.uniform(-2, 2)))
        return Constant(np.full(type_.dims, value))

    def pick(self, known: Sequence[Atom], type_: Type) -> Atom:
        fitting = [a for a in known if type_of(a) == type_]
        assert isinstance(type_, TensorType)
        return self.random.choice(fitting) if fitting and self.random.random() < 0.85 else self.number(type_)

    def operation(self, b: Build, known: Sequence[Atom]) -> Atom:
        kind = self.random.randrange(9)
        type_ = self.random.choice(TENSORS)
        if kind < 2:
            return b.op(self.random.choice(_UNARY), self.pick(known, type_))
        if kind < 5:
            return b.op(
                self.random.choice(_BINARY), self.pick(known, type_), self.pick(known, self.random.choice(TENSORS))
            )
        if kind == 5:
            return b.op(self.random.choice(_WHOLE), self.pick(known, WHOLE), self.pick(known, WHOLE))
        if kind == 6:
            return b.op("matmul", self.pick(known, MATRIX), self.pick(known, self.random.choice((VECTOR, MATRIX))))
        if kind == 7:
            return self.attributed(b, "transpose", self.pick(known, MATRIX), axes=(1, 0))
        return self.attributed(
            b, "sum", self.pick(known, MATRIX), axis=self.random.choice((0, 1, (0, 1))), keepdims=False
        )

    def attributed(self, b: Build, name: str, operand: Atom, **attributes: Any) -> Var:
        return b.bind(OpCall(name, (operand,), attributes), lookup(name).infer([type_of(operand)], attributes))

    def condition(self, b: Build, known: Sequence[Atom]) -> Atom:
        if self.random.random() < 0.15:
            return Constant(np.asarray(self.random.random() < 0.5))
        type_ = self.random.choice((REAL, WHOLE))
        name = self.random.choice(("less", "equal", "greater_equal"))
        return b.op(name, self.pick(known, type_), self.pick(known, type_))

    # ---- statements

    def statements(self, b: Build, known: list[Atom], depth: int) -> list[Atom]:
        for _ in range(self.random.randint(2, 6)):
            self.budget -= 1
            write = self.operation if depth == 0 or self.budget < 0 else self.random.choice(self.writers())
            made = write(b, known) if write == self.operation else write(b, known, depth - 1)  # type: ignore[call-arg]
            known += (made,) if isinstance(made, Var | Constant) else made  # type: ignore[arg-type]
        return known

    def writers(self) -> list[Callable[..., Any]]:
        plain: list[Callable[..., Any]] = [self.operation] * 6
        return [
            *plain, self.branch, self.loop, self.loop, self.search, self.pair, self.cell, self.stack, self.match,
            self.call, self.show, self.demand,
        ]  # fmt: skip

    def arm(self, known: Sequence[Atom], depth: int, types: Sequence[Type]) -> Callable[[Build], Terminator]:
        def write(b: Build) -> Terminator:
            inner = self.statements(b, list(known), depth)
            return Yield(tuple(self.pick(inner, t) for t in types))

        return write

    def branch(self, b: Build, known: list[Atom], depth: int) -> Sequence[Atom]:
        types = [self.random.choice((*TENSORS, WHOLE)) for _ in range(self.random.randint(0, 2))]
        arms = [(self.condition(b, known), self.arm(known, depth, types)) for _ in range(self.random.randint(1, 2))]
        return b.branch(types, *arms, orelse=self.arm(known, depth, types))

    def loop(self, b: Build, known: list[Atom], depth: int) -> Sequence[Atom]:
        """A counted loop; one parameter may be invariant, one may be unused."""
        types = [self.random.choice((*TENSORS, WHOLE)) for _ in range(self.random.randint(1, 3))]
        initial = [self.pick(known, t) for t in types]

        count = self.random.randint(0, 4)

        def body(c: Build, label: LoopLabel, i: Var, *variables: Var) -> Terminator:
            inner = [*known, i, *variables]
            if count <= 3 and self.random.random() < 0.7:
                index: Atom = i
                if self.random.random() < 0.3:
                    index = c.op("subtract", Constant(np.asarray(2, np.int32)), i)
                inner.append(c.op("index", self.pick(known, MATRIX), index))
                if self.random.random() < 0.5:
                    inner.append(c.op("matmul", inner[-1], self.pick(known, MATRIX)))
            inner = self.statements(c, inner, depth)
            keep = self.random.random() < 0.3
            values = [v if keep and n == 0 else self.next_value(c, inner, v) for n, v in enumerate(variables)]
            return Next(label, tuple(values))

        return b.loop(initial, types, body, count=Constant(np.asarray(count, np.int32)))

    def next_value(self, b: Build, known: Sequence[Atom], variable: Var) -> Atom:
        """What a parameter is in the next round: for a matrix sometimes itself with a product of vectors added."""
        if type_of(variable) != MATRIX or self.random.random() < 0.5:
            return self.pick(known, type_of(variable))
        column = self.attributed(b, "expand_dims", self.pick(known, VECTOR), axis=1)
        row = self.attributed(b, "expand_dims", self.pick(known, VECTOR), axis=0)
        return b.op("add", variable, b.op("matmul", column, row))

    def search(self, b: Build, known: list[Atom], depth: int) -> Sequence[Atom]:
        """A loop that counts down to its exit, or leaves early."""
        type_ = self.random.choice(TENSORS)
        start = Constant(np.asarray(self.random.randint(0, 3), np.int32))

        def body(c: Build, label: LoopLabel, fuel: Var, p: Var) -> Terminator:
            inner = self.statements(c, [*known, p], depth)
            value = self.pick(inner, type_)
            rest = c.op("subtract", fuel, Constant(np.asarray(1, np.int32)))
            done = c.op("less_equal", fuel, Constant(np.asarray(0, np.int32)))

            def leave(d: Build) -> Terminator:
                return Exit(label, (value,))

            def again(d: Build) -> Terminator:
                return Next(label, (rest, value))

            c.branch([], (done, leave), (self.condition(c, inner), leave), orelse=again)
            return Dead()

        return b.loop([start, self.pick(known, type_)], [type_], body)

    def pair(self, b: Build, known: list[Atom], depth: int) -> Sequence[Atom]:
        made = b.tuple(self.pick(known, VECTOR), self.pick(known, WHOLE))
        if self.random.random() < 0.5:
            other = b.tuple(self.pick(known, VECTOR), self.pick(known, WHOLE))
            (made,) = b.branch(
                [type_of(made)],
                (self.condition(b, known), lambda c: Yield((made,))),
                orelse=lambda c: Yield((other,)),
            )
        return [b.project(made, 0), b.project(made, 1)]

    def cell(self, b: Build, known: list[Atom], depth: int) -> Sequence[Atom]:
        type_ = self.random.choice(TENSORS)
        made = b.bind(RefNew(self.pick(known, type_)), RefType(type_))
        first = b.bind(RefRead(made), type_)

        def write(c: Build) -> Terminator:
            inner = self.statements(c, [*known, first], depth)
            c.do(RefWrite(made, self.pick(inner, type_)))
            return Yield(())

        if self.random.random() < 0.5:
            b.branch([], (self.condition(b, known), write), orelse=lambda c: Yield(()))
        else:
            b.do(RefWrite(made, self.pick(known, type_)))
        return [first, b.bind(RefRead(made), type_)]

    def stack(self, b: Build, known: list[Atom], depth: int) -> Sequence[Atom]:
        made: Atom = b.bind(StackNew(VECTOR), StackType(VECTOR))
        count = self.random.randint(1, 3)
        for _ in range(count):
            made = b.bind(StackPush(made, self.pick(known, VECTOR)), StackType(VECTOR))
        index = Constant(np.asarray(self.random.randrange(count), np.int64))
        length = b.bind(StackLength(made), LENGTH)
        last = b.op("subtract", length, Constant(np.asarray(1, np.int64)))
        return [b.bind(StackGet(made, index), VECTOR), b.bind(StackGet(made, last), VECTOR)]

    def match(self, b: Build, known: list[Atom], depth: int) -> Sequence[Atom]:
        type_ = DataType(CHOICE)

        def construct(c: Build) -> Var:
            which = self.random.choice(CHOICE.constructors)
            fields = tuple(self.pick(known, t) for t in which.fields)
            return c.bind(Construct(CHOICE, which.name, fields), type_)

        (value,) = b.branch(
            [type_],
            (self.condition(b, known), lambda c: Yield((construct(c),))),
            orelse=lambda c: Yield((construct(c),)),
        )
        result = self.random.choice(TENSORS)
        arms = []
        for constructor in CHOICE.constructors:
            fields = tuple(Var("field", t) for t in constructor.fields)
            arms.append(MatchArm(constructor.name, fields, block(self.arm([*known, *fields], depth, [result]))))
        target = Var("matched", result)
        b.bindings.append(Binding((target,), Match(value, tuple(arms))))
        return [target]

    def call(self, b: Build, known: list[Atom], depth: int) -> Sequence[Atom]:
        if not self.callable:
            return []
        name, type_ = self.random.choice(self.callable)
        arguments_ = tuple(self.fuel() if t == WHOLE else self.pick(known, t) for t in type_.parameters)
        return [b.bind(Call(Global(name, type_), arguments_), type_.result)]

    def fuel(self) -> Constant:
        return Constant(np.asarray(self.random.randint(0, 3), np.int32))

    def show(self, b: Build, known: list[Atom], depth: int) -> Sequence[Atom]:
        b.do(Print((f"{self.random.randint(0, 99)} ", "\n"), (self.pick(known, WHOLE),), ("",)))
        return []

    def demand(self, b: Build, known: list[Atom], depth: int) -> Sequence[Atom]:
        small = b.op("less", self.pick(known, WHOLE), Constant(np.asarray(6, np.int32)))
        b.do(Assert(small, "small"))
        return []

    # ---- functions

    def plain(self, name: str) -> Any:
        def write(b: Build, x: Var, v: Var) -> Atom:
            return self.pick(self.statements(b, [x, v], 1), VECTOR)

        return function(name, [REAL, VECTOR], VECTOR, write)

    def recursive(self, name: str) -> Any:
        type_ = FunctionType((WHOLE, VECTOR), VECTOR)
        tail = self.random.random() < 0.5

        def write(b: Build, label: LoopLabel, n: Var, v: Var) -> Terminator:
            done = b.op("less_equal", n, Constant(np.asarray(0, np.int32)))
            b.branch([], (done, lambda c: Exit(label, (v,))))
            inner = self.statements(b, [v], 1)
            rest = b.op("subtract", n, Constant(np.asarray(1, np.int32)))
            result = b.bind(Call(Global(name, type_), (rest, self.pick(inner, VECTOR))), VECTOR)
            return Exit(label, (result if tail else b.op("tanh", b.op("add", result, v)),))

        return function(name, [WHOLE, VECTOR], VECTOR, write)

    def program(self) -> Module:
        functions = []
        if self.random.random() < 0.5:
            functions.append(self.plain("g"))
            self.callable.append(("g", functions[-1].type))
        if self.random.random() < 0.5:
            functions.append(self.recursive("h"))
            self.callable.append(("h", functions[-1].type))

        def main(b: Build, x: Var, v: Var, m: Var, n: Var) -> Atom:
            known = self.statements(b, [x, v, m, n], 3)
            return b.tuple(*(self.pick(known, t) for t in (REAL, VECTOR, MATRIX, WHOLE)))

        entry = function("f", [REAL, VECTOR, MATRIX, WHOLE], RESULT, main)
        made = module(entry, *functions)
        return Module(made.functions, made.entry, (CHOICE,))
