"""Compiled programs against the interpreter, on modules built by hand."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from core_builder import Builder, F, I, agree, call, equal, exit_, f32, function, i32, module, next_, tensor

from relay.codegen.runtime.cpu import compile_module
from relay.errors import ExecutionError, InternalError, Source, Span
from relay.eval.interpreter import run
from relay.ir.expr import (
    Assert,
    Call,
    Constant,
    Dead,
    Global,
    LoopLabel,
    Module,
    StackGet,
    StackNew,
    StackPush,
    Terminator,
)
from relay.ir.types import (
    FLOAT32,
    FLOAT64,
    INT64,
    BaseType,
    FunctionType,
    StackType,
    TupleType,
    scalar,
)
from relay.operator import Value, get_env, register_op

# ---- straight lines


def test_layer() -> None:
    made = function(
        [tensor(4, 8), tensor(8, 3), tensor(3)], lambda b, x, w, c: (x @ w + c).op("tanh").op("sum", axis=1)
    )
    agree(module(made), f32(4, 8), f32(8, 3), f32(3))


def test_tuples_in_and_out() -> None:
    type_ = TupleType((tensor(3), TupleType((F, tensor(2, base=INT64)))))

    def body(b: Builder, p: Value, q: Value) -> Value:
        inner = b.item(p, 1)
        return b.pack(b.pack(b.item(p, 0) * b.item(inner, 0), b.item(inner, 1) + q), b.item(p, 0), b.pack())

    agree(module(function([type_, tensor(2, base=INT64)], body)), (f32(3), (f32(), np.arange(2))), np.arange(2) * 5)


def test_result_does_not_alias_arguments() -> None:
    program = compile_module(module(function([tensor(3)], lambda b, x: b.pack(x, x))))
    argument = f32(3)
    first, second = program([argument])
    assert not np.shares_memory(first, argument) and not np.shares_memory(first, second)
    equal(first, argument)


def test_awkward_arguments() -> None:
    program = compile_module(module(function([tensor(3, 4), F], lambda b, x, y: x * y)))
    whole = f32(6, 8)
    expected = whole[::2, ::2] * np.float32(2)
    strided, swapped = whole[::2, ::2], whole[::2, ::2].astype(">f4")
    frozen = np.ascontiguousarray(strided)
    frozen.flags.writeable = False
    odd = np.frombuffer(b"x" + frozen.tobytes(), np.uint8)[1:].view(np.float32).reshape(3, 4)
    for argument in (strided, swapped, frozen, odd, np.asfortranarray(strided)):
        equal(program([argument, np.array(2, np.float32)]), expected)
    with pytest.raises(InternalError, match="was called with"):
        program([f32(4, 3), f32()])


@pytest.mark.parametrize("base", ["bool", "int8", "uint16", "int64", "uint64", "float16", "bfloat16", "float64"])
def test_dtypes(base: str) -> None:
    dtype = BaseType(base).dtype

    def body(b: Builder, x: Value, y: Value) -> Value:
        both = (x & y) if base == "bool" else x * y + y
        return b.pack(both, b.item(b.pack(y, x), 0), b.constant(1, BaseType(base)))

    x = np.array([[1, 0], [2, 3]]).astype(dtype)
    agree(
        module(function([tensor(2, 2, base=BaseType(base)), scalar(BaseType(base))], body)),
        x,
        np.array(1).astype(dtype),
    )


def test_constants() -> None:
    table = f32(5)

    def body(b: Builder, x: Value) -> Value:
        big = b.value(Constant(table))
        return b.pack(
            x + big,
            big,
            b.constant(2**63 + 1, BaseType("uint64")),
            x * float("inf"),
            b.constant(np.ones((1, 1)), FLOAT64),
        )

    program = agree(module(function([tensor(5)], body)), np.abs(f32(5)))
    program([f32(5)])[1][:] = 0
    equal(program([f32(5)])[1], table)


def test_empty_tensors() -> None:
    made = function([tensor(0, 3), tensor(3, 0)], lambda b, x, y: b.pack(x + 1.0, x.op("sum", axis=0), y @ x))
    agree(module(made), f32(0, 3), f32(3, 0))


def test_equal_groups_share_a_kernel() -> None:
    def body(b: Builder, x: Value, y: Value) -> Value:
        return b.pack((x + y).op("tanh"), (y + x).op("tanh"), (x + 1.0).op("tanh"), (x + 2.0).op("tanh"))

    program = agree(module(function([tensor(4), tensor(4)], body)), f32(4), f32(4, seed=1))
    assert program.native.kernels == 3


# ---- branches and loops


def test_elif_chain() -> None:
    def body(b: Builder, x: Value) -> Value:
        def below(bound: float) -> tuple[Callable[[Builder], Any], Callable[[Builder], Any]]:
            return lambda b: x < bound, lambda b: (x * bound, b.constant(np.full(40, bound), FLOAT32))

        orelse: Callable[[Builder], Any] = lambda b: (x, b.constant(np.zeros(40), FLOAT32))  # noqa: E731
        return b.pack(*b.branch(*below(-1.0), *below(0.0), *below(1.0), orelse, types=(F, tensor(40))))

    made = module(function([F], body))
    program = compile_module(made)
    for number in (-2, -0.5, 0.5, 3):
        argument = np.array(number, np.float32)
        equal(program([argument]), run(made, [argument]))


def test_early_return() -> None:
    def body(b: Builder, x: Value) -> Terminator:
        label = b.label  # type: ignore[attr-defined]

        def second(b: Builder) -> Terminator:
            y = x * 2.0
            b.branch(lambda b: y < 5.0, lambda b: exit_(label, y), lambda b: exit_(label, y - 5.0))
            return Dead()

        b.branch(lambda b: x < 1.0, lambda b: exit_(label, x), second)
        return Dead()

    made = module(function([F], body, result=F))
    program = compile_module(made)
    for number in (0, 2, 4):
        equal(program([np.array(number, np.float32)]), run(made, [np.array(number, np.float32)]))


def test_parallel_assignment() -> None:
    """Fibonacci and a rotation of arrays: Next swaps."""

    def body(b: Builder, n: Value, x: Value, y: Value, z: Value) -> Value:
        return b.pack(
            *b.loop(
                [b.int(0), b.int(1), x, y, z],
                lambda b, label, i, p, q, x, y, z: next_(label, q, p + q, y, z, x),
                count=n,
            )
        )

    made = module(function([I, tensor(20), tensor(20), tensor(20)], body))
    program = compile_module(made)
    for n in (0, 1, 2, 10):
        arguments = (i32(n), f32(20), f32(20, seed=1), f32(20, seed=2))
        equal(program(arguments), run(made, arguments))


def test_while_loop_with_results_of_another_type() -> None:
    def body(b: Builder, a: Value) -> Value:
        def newton(b: Builder, label: LoopLabel, x: Value, steps: Value) -> Terminator:
            error = (x * x - a).op("abs")
            b.branch(
                lambda b: error < 1e-6,
                lambda b: exit_(label, steps, b.constant([1, 2], INT64), x),
                lambda b: next_(label, (x + a / x) * 0.5, steps + 1),
            )
            return Dead()

        return b.pack(*b.loop([a, b.int(0)], newton, types=(I, tensor(2, base=INT64), scalar(FLOAT64))))

    agree(module(function([scalar(FLOAT64)], body)), np.array(2.0))


def test_counted_loop_with_break() -> None:
    def body(b: Builder, n: Value, x: Value) -> Value:
        def step(b: Builder, label: LoopLabel, i: Value, total: Value) -> Terminator:
            total = total + x
            b.branch(
                lambda b: i == 3,
                lambda b: exit_(label, total * 100.0),
                lambda b: next_(label, total),
            )
            return Dead()

        return b.loop([x], step, count=n)[0]

    made = module(function([I, tensor(20)], body))
    program = compile_module(made)
    for n in (0, 2, 9):
        equal(program([i32(n), f32(20)]), run(made, [i32(n), f32(20)]))


def test_nested_loops() -> None:
    def body(b: Builder, n: Value, w: Value, h: Value) -> Value:
        def outer(b: Builder, label: LoopLabel, i: Value, h: Value, total: Value) -> Terminator:
            def inner(b: Builder, label: LoopLabel, j: Value, g: Value) -> Terminator:
                return next_(label, (g @ w).op("tanh") + h)

            (g,) = b.loop([h], inner, count=i)
            return next_(label, g, total + g.op("sum"))

        return b.pack(*b.loop([h, b.constant(0, FLOAT32)], outer, count=n))

    agree(
        module(function([I, tensor(16, 16), tensor(1, 16)], body)), i32(5), f32(16, 16) / 4, f32(1, 16), tolerance=1e-4
    )


# ---- assertions


def test_assertion() -> None:
    span = Span(Source("model.py", "c = a // b"), 1, 5, 1, 11)

    def body(b: Builder, x: Value, y: Value) -> Value:
        def step(b: Builder, label: LoopLabel, i: Value, x: Value) -> Terminator:
            b.perform(Assert((i != y).atom, "integer division by zero", span))
            return next_(label, x // (y - i))

        return b.loop([x], step, count=b.int(10))[0]

    made = module(function([I, I], body))
    program = compile_module(made)
    for _ in range(3):
        equal(program([i32(1000), i32(20)]), run(made, [i32(1000), i32(20)]))
        with pytest.raises(ExecutionError, match=r"model\.py:1:5: error: integer division by zero") as caught:
            program([i32(1000), i32(4)])
        assert caught.value.span is span


def test_assertion_in_a_called_function() -> None:
    def callee(b: Builder, n: Value, x: Value) -> Terminator:
        label = b.label  # type: ignore[attr-defined]

        def again(b: Builder) -> Terminator:
            b.perform(Assert((n != 5).atom, "five"))
            called = b.bind(Call(Global("f"), ((n - 1).atom, x.atom)), tensor(300))
            return exit_(label, called + x)

        b.branch(lambda b: n == 0, lambda b: exit_(label, x), again)
        return Dead()

    entry = function([I, tensor(300)], lambda b, n, x: b.bind(Call(Global("f"), (n.atom, x.atom)), tensor(300)))
    made = module(entry, function([I, tensor(300)], callee, "f", tensor(300)))
    program = compile_module(made)
    equal(program([i32(4), f32(300)]), run(made, [i32(4), f32(300)]))
    with pytest.raises(ExecutionError, match="five"):
        program([i32(8), f32(300)])


# ---- functions


def test_recursion() -> None:
    def fib(b: Builder, n: Value) -> Terminator:
        label = b.label  # type: ignore[attr-defined]

        def deeper(b: Builder) -> Terminator:
            return exit_(label, call(b, "fib", I, n - 1) + call(b, "fib", I, n - 2))

        b.branch(lambda b: n < 2, lambda b: exit_(label, n), deeper)
        return Dead()

    agree(module(function([I], fib, "fib", I)), i32(12))


def test_mutual_recursion_over_tuples() -> None:
    pair = TupleType((I, tensor(40)))

    def make(other: str, factor: float) -> Callable[..., Terminator]:
        def body(b: Builder, p: Value) -> Terminator:
            label = b.label  # type: ignore[attr-defined]
            n, x = b.item(p, 0), b.item(p, 1)

            def deeper(b: Builder) -> Terminator:
                q = call(b, other, pair, b.pack(n - 1, x * factor))
                return exit_(label, b.pack(b.item(q, 0) + n, b.item(q, 1) + x))

            b.branch(lambda b: n == 0, lambda b: exit_(label, p), deeper)
            return Dead()

        return body

    even, odd = function([pair], make("odd", 0.5), "even", pair), function([pair], make("even", -0.25), "odd", pair)
    agree(module(even, odd), (i32(7), f32(40)))


def deep(tail: bool, width: int = 1) -> Module:
    def body(b: Builder, n: Value, x: Value) -> Terminator:
        label = b.label  # type: ignore[attr-defined]

        def deeper(b: Builder) -> Terminator:
            m, y = n, x
            if tail:
                return exit_(label, call(b, "main", tensor(width), m - 1, y + 1.0))
            return exit_(label, call(b, "main", tensor(width), m - 1, y) + 1.0)

        b.branch(lambda b: n == 0, lambda b: exit_(label, x), deeper)
        return Dead()

    return module(function([I, tensor(width)], body, result=tensor(width)))


def test_tail_recursion_is_a_loop() -> None:
    program = compile_module(deep(tail=True))
    equal(program([i32(1_000_000), np.zeros(1, np.float32)]), np.full(1, 1e6, np.float32))


@pytest.mark.parametrize("width", [1, 100])
def test_deep_recursion_is_an_error(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RELAY_STACK_SIZE", str(2 << 20))
    program = compile_module(deep(tail=False, width=width))
    start = np.zeros(width, np.float32)
    equal(program([i32(1000), start]), np.full(width, 1000, np.float32))
    for _ in range(2):
        with pytest.raises(ExecutionError, match=r"recursion deeper than \d{4}"):
            program([i32(1_000_000), start])
    equal(program([i32(1000), start]), np.full(width, 1000, np.float32))
    caught: list[object] = []

    def in_thread() -> None:
        try:
            program([i32(1_000_000), start])
        except ExecutionError as error:
            caught.append(error)

    thread = threading.Thread(target=in_thread)
    thread.start()
    thread.join()
    assert len(caught) == 1


# ---- external operators


def test_external_operator() -> None:
    made_for: list[FunctionType] = []

    def compiler(type_: FunctionType) -> Callable[..., None]:
        made_for.append(type_)

        def native(x: np.ndarray, y: np.ndarray, out: np.ndarray) -> None:
            if x[0] > 100:
                raise ValueError("too large")
            np.add(x, y, out=out)

        return native

    type_ = FunctionType((tensor(4), tensor(4)), tensor(4))
    register_op(get_env(), "test_codegen_external", type_, compiler)

    def body(b: Builder, x: Value, n: Value) -> Value:
        def step(b: Builder, label: LoopLabel, i: Value, x: Value) -> Terminator:
            return next_(label, x.op("test_codegen_external", x) * 1.5)

        return b.loop([x], step, count=n)[0]

    program = agree(module(function([tensor(4), I], body)), f32(4), i32(3))
    with pytest.raises(ExecutionError, match="test_codegen_external failed: too large"):
        program([np.full(4, 90, np.float32), i32(3)])
    assert made_for[-1] == type_


# ---- threads


def test_concurrent_calls() -> None:
    stack = StackType(tensor(8))

    def body(b: Builder, n: Value, x: Value) -> Value:
        def push(b: Builder, label: LoopLabel, i: Value, x: Value, s: Value) -> Terminator:
            return next_(label, x + 1.0, b.bind(StackPush(s.atom, x.atom), stack))

        _, s = b.loop([x, b.bind(StackNew(tensor(8)), stack)], push, count=n)
        return b.bind(StackGet(s.atom, (n - 1).atom), tensor(8))

    program = compile_module(module(function([I, tensor(8)], body)))
    wrong: list[object] = []

    def work(seed: int) -> None:
        x = f32(8, seed=seed)
        for n in range(1, 300):
            found = program([i32(n), x])
            if not np.allclose(found, x + n - 1, atol=1e-3):
                wrong.append((seed, n))

    workers = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not wrong
