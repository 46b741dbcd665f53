"""A builder of core modules with control flow, and whether compiled and interpreted runs of them agree."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from agreement import assert_agree, leaves

from relay.codegen.runtime.cpu import Program, compile_module
from relay.eval.interpreter import run
from relay.ir.expr import (
    Arm,
    Block,
    Call,
    Counter,
    Exit,
    Expr,
    Function,
    Global,
    If,
    Loop,
    LoopLabel,
    MakeTuple,
    Module,
    Next,
    Project,
    Terminator,
    Var,
    Yield,
)
from relay.ir.types import (
    BOOL,
    FLOAT32,
    INT32,
    BaseType,
    TensorType,
    TupleType,
    Type,
    scalar,
)
from relay.operator import Emitter, Value

F, I, B = scalar(FLOAT32), scalar(INT32), scalar(BOOL)  # noqa: E741


def tensor(*dims: int, base: BaseType = FLOAT32) -> TensorType:
    return TensorType(base, dims)


class Builder(Emitter):
    """An emitter that also makes control flow. Bodies are Python functions from the builder to a terminator, or to what
    the block yields. Everything is emitted into the innermost block."""

    def many(self, expression: Expr, types: Sequence[Type]) -> list[Value]:
        targets = tuple(Var(f"r{i}", t) for i, t in enumerate(types))
        self.emit(targets, expression)
        return [self.value(t) for t in targets]

    def block(self, body: Callable[[Builder], Any]) -> Block:  # type: ignore[override]
        outer, self.items = self.items, []
        end = body(self)
        if not isinstance(end, Terminator):
            end = Yield(tuple(v.atom for v in (end if isinstance(end, tuple) else (end,))))
        written, self.items = self.all_bindings(), outer
        return Block(written, end)

    def branch(self, *arms: Callable[[Builder], Any], types: Sequence[Type] = ()) -> list[Value]:
        """branch(condition, body, .., orelse)"""
        made = tuple(Arm(self.block(c), self.block(b)) for c, b in zip(arms[:-1:2], arms[1::2], strict=True))
        return self.many(If(made, self.block(arms[-1])), types)

    def loop(
        self,
        initial: Sequence[Value],
        body: Callable[..., Terminator],
        count: Value | None = None,
        types: Sequence[Type] | None = None,
    ) -> list[Value]:
        """body(builder, label, [index,] *parameters)"""
        label = LoopLabel("loop")
        parameters = tuple(Var(f"p{i}", v.type) for i, v in enumerate(initial))
        counter = None if count is None else Counter(Var("i", count.type), count.atom)

        def run_body(b: Builder) -> Terminator:
            values = [b.value(p) for p in parameters]
            return body(b, label, *([b.value(counter.index)] if counter else []), *values)

        loop = Loop(label, parameters, tuple(v.atom for v in initial), self.block(run_body), counter)
        return self.many(loop, [v.type for v in initial] if types is None else types)

    def pack(self, *values: Value) -> Value:
        return self.bind(MakeTuple(tuple(v.atom for v in values)), TupleType(tuple(v.type for v in values)))

    def item(self, value: Value, index: int) -> Value:
        assert isinstance(value.type, TupleType)
        return self.bind(Project(value.atom, index), value.type.items[index])

    def int(self, number: int) -> Value:
        return self.constant(number, INT32)


def next_(label: LoopLabel, *values: Value) -> Next:
    return Next(label, tuple(v.atom for v in values))


def exit_(label: LoopLabel, *values: Value) -> Exit:
    return Exit(label, tuple(v.atom for v in values))


def function(
    parameters: Sequence[Type], body: Callable[..., Any], name: str = "main", result: Type | None = None
) -> Function:
    """`body(builder, *parameters)` returns the result, or (with `result`) a terminator of `builder.label`."""
    builder = Builder()
    label = LoopLabel(name)
    builder.label = label  # type: ignore[attr-defined]
    variables = tuple(Var(f"a{i}", t) for i, t in enumerate(parameters))
    end = body(builder, *(builder.value(v) for v in variables))
    if isinstance(end, Value):
        result, end = end.type, Exit(label, (end.atom,))
    return Function(name, variables, Block(builder.all_bindings(), end), label, result)


def module(*functions: Function) -> Module:
    """The first one is the entry."""
    return Module({f.name: f for f in functions}, functions[0].name)


def equal(found: object, expected: object, tolerance: float = 1e-5) -> None:
    assert all(isinstance(value, np.ndarray) for value in (*leaves(found), *leaves(expected)))
    assert_agree(found, expected, tolerance, tolerance)


def agree(made: Module, *arguments: Any, tolerance: float = 1e-5) -> Program:
    """Run compiled (twice) and interpreted, and compare."""
    program = compile_module(made, threads=2)
    expected = run(made, arguments)
    equal(program(arguments), expected, tolerance)
    equal(program(arguments), expected, tolerance)
    return program


def f32(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def i32(number: int) -> np.ndarray:
    return np.array(number, np.int32)


def call(b: Emitter, name: str, type_: Type, *arguments: Value) -> Value:
    return b.bind(Call(Global(name), tuple(a.atom for a in arguments)), type_)
