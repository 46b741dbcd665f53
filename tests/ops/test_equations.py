"""The table of equations: each of them is used by an example here, and gives what the left side gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import relay
from relay import RelayFunction, from_source
from relay.eval import interpreter
from relay.ir.expr import Block, Exit, Function, LoopLabel, Module, OpCall, Var
from relay.ir.types import BASE_TYPES, BOOL, FLOAT64, INT32, TensorType
from relay.ir.validation.check import check
from relay.operator import Emitter, Value, lookup
from relay.operator.rewriting import Application, Equation, Exactness, equations
from relay.transform.cleanup.constant_folding import fold_constants
from relay.transform.cleanup.dead_code import eliminate_dead_code
from relay.transform.cleanup.simplification import reduce_strength, simplify

REAL, WHOLE, TRUTH = TensorType(FLOAT64, (2, 3)), TensorType(INT32, (2, 3)), TensorType(BOOL, ())
FLOAT32 = BASE_TYPES["float32"]


def number(value: Value, constant: float) -> Value:
    return value.emitter.constant(constant, value.base)


# Left sides on x, y: float64 (2, 3), n: int32 (2, 3), i: int32, c: bool, and how many operators are left.
EXACT: list[tuple[Callable[..., Value], int]] = [
    (lambda x, y, n, i, c: x.op("transpose").op("transpose"), 0),
    (lambda x, y, n, i, c: wide(x).op("transpose", axes=(2, 0, 1)).op("transpose", axes=(1, 0, 2)), 2),
    (lambda x, y, n, i, c: x.op("transpose", axes=(0, 1)), 0),
    (lambda x, y, n, i, c: x.op("reshape", shape=(6,)).op("reshape", shape=(3, 2)), 1),
    (lambda x, y, n, i, c: x.op("reshape", shape=(6,)).op("reshape", shape=(2, 3)), 0),
    (lambda x, y, n, i, c: x.op("reshape", shape=(6,)).op("expand_dims", axis=0).op("squeeze", axis=0), 1),
    (lambda x, y, n, i, c: x.op("expand_dims", axis=0).op("squeeze", axis=0), 0),
    (lambda x, y, n, i, c: row(x).op("reshape", shape=(3,)).op("expand_dims", axis=0), 1),
    (lambda x, y, n, i, c: join(x, axis=1), 0),
    (lambda x, y, n, i, c: cut(join(x, y, axis=1), (0, 3), (2, 6)), 0),
    (lambda x, y, n, i, c: cut(x, (0, 0), (2, 3)), 0),
    (lambda x, y, n, i, c: cut(cut(x, (0, 1), (2, 3)), (1, 0), (2, 1)), 1),
    (lambda x, y, n, i, c: put(put(x, (4, 3), (1, 0), (3, 3)), (5, 6), (0, 2), (4, 5)), 1),
    (lambda x, y, n, i, c: add_part(y, put(cut(x, (0, 0), (1, 2)), (2, 3), (1, 1), (2, 3))), 2),
    (lambda x, y, n, i, c: x.op("index_update", i, y.op("index", i)).op("index", i), 1),
    (lambda x, y, n, i, c: n.op("cast", dtype=FLOAT64).op("cast", dtype=FLOAT32), 1),
    (lambda x, y, n, i, c: n.op("cast", dtype=FLOAT64).op("cast", dtype=INT32), 0),
    (lambda x, y, n, i, c: c.op("where", x, x), 0),
    (lambda x, y, n, i, c: c & number(c, False), 0),
    (lambda x, y, n, i, c: number(c, True) | c, 0),
    (lambda x, y, n, i, c: x.op("maximum", y).op("maximum", x), 1),
    (lambda x, y, n, i, c: y.op("minimum", x.op("minimum", y)), 1),
    (lambda x, y, n, i, c: x + -y, 1),
    (lambda x, y, n, i, c: x - -y, 1),
    (lambda x, y, n, i, c: -x * -y, 1),
    (lambda x, y, n, i, c: (-x).op("abs"), 1),
    (lambda x, y, n, i, c: (-x).op("square"), 1),
    (lambda x, y, n, i, c: (-x).op("cos"), 1),
    (lambda x, y, n, i, c: x * -1.0, 1),
    (lambda x, y, n, i, c: x / 8.0, 1),
    (lambda x, y, n, i, c: (n + 5) + 7, 1),
    (lambda x, y, n, i, c: 3 * (n * 5), 1),
    (lambda x, y, n, i, c: n - n, 1),
    (lambda x, y, n, i, c: n * 0, 1),
    (lambda x, y, n, i, c: n + n.op("zeros_like"), 0),
    (lambda x, y, n, i, c: (n - 5) + 7, 1),
    (lambda x, y, n, i, c: (n - 5) - 7, 1),
    (lambda x, y, n, i, c: (n + 5) - 7, 1),
    (lambda x, y, n, i, c: (n - i) + i, 0),
    (lambda x, y, n, i, c: (i + n) - i, 0),
    (lambda x, y, n, i, c: n.op("zeros_like") - n, 1),
    (lambda x, y, n, i, c: (x * 2.0) * 64.0, 1),
    (lambda x, y, n, i, c: n // 1, 0),
    (lambda x, y, n, i, c: n % 1, 1),
    (lambda x, y, n, i, c: x**0.0, 1),
    (lambda x, y, n, i, c: number(c, True).op("where", x, y), 0),
    (lambda x, y, n, i, c: spread(number(c, False), (2, 3)).op("where", x, y), 0),
    (lambda x, y, n, i, c: c.op("logical_not").op("where", x, y), 1),
    (lambda x, y, n, i, c: x.op("less", x), 0),
    (lambda x, y, n, i, c: i.op("greater", i), 0),
    (lambda x, y, n, i, c: c.op("logical_xor", c), 0),
    (lambda x, y, n, i, c: n.op("equal", n), 0),
    (lambda x, y, n, i, c: i.op("less_equal", i), 0),
    (lambda x, y, n, i, c: i.op("greater_equal", i), 0),
    (lambda x, y, n, i, c: c.op("not_equal", c), 0),
    (lambda x, y, n, i, c: spread(x, (4, 2, 3)).op("max", axis=0, keepdims=False), 0),
    (lambda x, y, n, i, c: spread(x, (4, 2, 3)).op("min", axis=(0, 2), keepdims=False), 3),
    (lambda x, y, n, i, c: spread(n, (300, 2, 3)).op("sum", axis=None, keepdims=True), 3),
    (lambda x, y, n, i, c: n.op("tile", reps=(4, 3)).op("sum", axis=None, keepdims=False), 3),
    (lambda x, y, n, i, c: x.op("tile", reps=4).op("max", axis=(1,), keepdims=False), 2),
    (lambda x, y, n, i, c: x.op("tile", reps=(5, 4, 1)).op("min", axis=(0, 1), keepdims=True), 2),
    (lambda x, y, n, i, c: wide(x).op("sum", axis=0, keepdims=False), 3),
    (lambda x, y, n, i, c: wide(x).op("mean", axis=0, keepdims=False), 3),
]  # fmt: skip
ROUNDING: list[tuple[Callable[..., Value], int]] = [
    (lambda x, y, n, i, c: x / 3.0, 1),
    (lambda x, y, n, i, c: x**2.0, 1),
    (lambda x, y, n, i, c: x**3.0, 2),
    (lambda x, y, n, i, c: x**4.0, 2),
    (lambda x, y, n, i, c: x**-1.0, 1),
    (lambda x, y, n, i, c: spread(x, (4, 2, 3)).op("sum", axis=(0, 1), keepdims=False), 4),
    (lambda x, y, n, i, c: spread(row(x), (2, 3)).op("sum", axis=0, keepdims=False), 4),
    (lambda x, y, n, i, c: spread(row(x), (2, 3)).op("sum", axis=1, keepdims=True), 3),
    (lambda x, y, n, i, c: spread(x, (4, 2, 3)).op("mean", axis=(0, 1), keepdims=False), 3),
    (lambda x, y, n, i, c: x.op("tile", reps=(2, 3)).op("sum", axis=(0, 1), keepdims=False), 3),
    (lambda x, y, n, i, c: row(x).op("tile", reps=(2, 3)).op("mean", axis=1, keepdims=True), 3),
]
FAST: list[tuple[Callable[..., Value], int]] = [
    (lambda x, y, n, i, c: x.op("abs") ** 0.5, 2),
    (lambda x, y, n, i, c: (x + 0.5) + 0.25, 1),
    (lambda x, y, n, i, c: (x * 0.5) * 0.3, 1),
    (lambda x, y, n, i, c: x - x, 1),
    (lambda x, y, n, i, c: x * 0.0, 1),
    (lambda x, y, n, i, c: x + 0.0, 0),
    (lambda x, y, n, i, c: x / x, 1),
    (lambda x, y, n, i, c: x.op("exp").op("log"), 0),
    (lambda x, y, n, i, c: x.op("abs").op("log").op("exp"), 1),
    (lambda x, y, n, i, c: x.op("abs").op("sqrt").op("square"), 1),
    (lambda x, y, n, i, c: x.op("expm1").op("log1p"), 0),
    (lambda x, y, n, i, c: x.op("abs").op("log1p").op("expm1"), 1),
    (lambda x, y, n, i, c: (x * x).op("sqrt"), 1),
    (lambda x, y, n, i, c: x.op("square").op("sqrt"), 1),
    (lambda x, y, n, i, c: x.op("exp") * y.op("exp"), 2),
    (lambda x, y, n, i, c: x + x.op("zeros_like"), 0),
    (lambda x, y, n, i, c: (x - 0.5) + 0.25, 1),
    (lambda x, y, n, i, c: (x + 0.5) - 0.25, 1),
    (lambda x, y, n, i, c: (x - y) + y, 0),
    (lambda x, y, n, i, c: (x + y) - y, 0),
    (lambda x, y, n, i, c: 0.0 - x, 1),
    (lambda x, y, n, i, c: (x * y) / y, 0),
    (lambda x, y, n, i, c: (x / y) * y, 0),
    (lambda x, y, n, i, c: twice(x.op("abs").op("sqrt")), 1),
    (lambda x, y, n, i, c: x.op("equal", x), 0),
    (lambda x, y, n, i, c: x.op("not_equal", x), 0),
    (lambda x, y, n, i, c: x.op("less_equal", x), 0),
    (lambda x, y, n, i, c: x.op("greater_equal", x), 0),
]
NEVER: list[Callable[..., Value]] = [
    lambda x, y, n, i, c: x + 0.0,
    lambda x, y, n, i, c: x - x,
    lambda x, y, n, i, c: x * 0.0,
    lambda x, y, n, i, c: x / x,
    lambda x, y, n, i, c: x / 3.0,
    lambda x, y, n, i, c: (x + 0.5) + 0.25,
    lambda x, y, n, i, c: x.op("exp").op("log"),
    lambda x, y, n, i, c: x.op("cast", dtype=FLOAT32).op("cast", dtype=FLOAT64),
    lambda x, y, n, i, c: n.op("cast", dtype=FLOAT32).op("cast", dtype=INT32),
    lambda x, y, n, i, c: cut(join(x, y, axis=1), (0, 2), (2, 5)),
    lambda x, y, n, i, c: c.op("where", x, y),
    lambda x, y, n, i, c: x + x.op("zeros_like"),
    lambda x, y, n, i, c: 0.0 - x,
    lambda x, y, n, i, c: (x - y) + y,
    lambda x, y, n, i, c: (x + y) - y,
    lambda x, y, n, i, c: (x * 2.0) * 0.5,
    lambda x, y, n, i, c: (x * 3.0) * 2.0,
    lambda x, y, n, i, c: x // 1.0,
    lambda x, y, n, i, c: x % 1.0,
    lambda x, y, n, i, c: x.op("equal", x),
    lambda x, y, n, i, c: x.op("not_equal", x),
    lambda x, y, n, i, c: n // 2,
    lambda x, y, n, i, c: n // number(n, 0),
    lambda x, y, n, i, c: spread(x, (4, 2, 3)).op("sum", axis=0, keepdims=False),
    lambda x, y, n, i, c: n.op("tile", reps=(2, 3)).op("sum", axis=0, keepdims=False),
    lambda x, y, n, i, c: number(x, 1.0) / x,
]


def wide(x: Value) -> Value:
    return x.op("expand_dims", axis=0)


def spread(x: Value, shape: tuple[int, ...]) -> Value:
    return x.op("broadcast_to", shape=shape)


def twice(x: Value) -> Value:
    return x * x


def row(x: Value) -> Value:
    return x.op("sum", axis=(0,), keepdims=True)


def join(*parts: Value, axis: int) -> Value:
    return parts[0].emitter.call(lookup("concatenate"), parts, {"axis": axis})


def cut(x: Value, begin: tuple[int, ...], end: tuple[int, ...]) -> Value:
    return x.op("strided_slice", begin=begin, end=end, strides=(1,) * len(begin))


def put(x: Value, shape: tuple[int, ...], begin: tuple[int, ...], end: tuple[int, ...]) -> Value:
    return x.op("place_slice", shape=shape, begin=begin, end=end, strides=(1,) * len(begin))


def add_part(x: Value, new: Value) -> Value:
    return x.op("add_slice", new, begin=(0, 0), end=(2, 3), strides=(1, 1))


def program(write: Callable[..., Value]) -> Module:
    emitter = Emitter()
    parameters = tuple(
        Var(n, t) for n, t in zip("xynic", (REAL, REAL, WHOLE, TensorType(INT32, ()), TRUTH), strict=True)
    )
    result = write(*map(emitter.value, parameters))
    label = LoopLabel("f")
    body = Block(tuple(emitter.bindings), Exit(label, (result.atom,)))
    return Module({"f": Function("f", parameters, body, label, result.type)}, "f")


def values() -> list[Any]:
    rng = np.random.default_rng(5)
    x, y = rng.normal(size=(2, 3)), rng.normal(size=(2, 3))
    x[0, 0], y[0, 1] = -0.0, 0.0
    return [x, y, rng.integers(-9, 9, (2, 3)).astype(np.int32), np.asarray(1, np.int32), np.asarray(True)]


def operators(module: Module) -> int:
    return sum(isinstance(b.value, OpCall) for b in module.main.body.bindings)


CASES = [
    *((simplify, e, True) for e in EXACT),
    *((reduce_strength, e, False) for e in ROUNDING),
    *((lambda m: simplify(m, fast_math=True), e, False) for e in FAST),
]


@pytest.mark.parametrize("number_", range(len(CASES)))
def test_both_sides_are_equal(number_: int) -> None:
    change, (write, left), exact = CASES[number_]
    before = program(write)
    after = eliminate_dead_code(fold_constants(change(before)))
    check(after, "structured")
    assert operators(after) == left
    given = values()
    if not exact:
        given[:2] = [np.where(a == 0, 0.25, a) for a in given[:2]]
    found, expected = interpreter.run(after, given), interpreter.run(before, given)
    if exact:
        np.testing.assert_array_equal(found, expected)
        np.testing.assert_array_equal(np.signbit(found), np.signbit(expected))
    else:
        np.testing.assert_allclose(found, expected, rtol=1e-14, atol=1e-15)


@pytest.mark.parametrize("number_", range(len(NEVER)))
def test_what_is_not_exact_stays(number_: int) -> None:
    before = program(NEVER[number_])
    assert operators(eliminate_dead_code(simplify(before))) == operators(before)


def test_constants_are_not_merged_for_ever() -> None:
    def write(x: Value, y: Value, n: Value, i: Value, c: Value) -> Value:
        one = number(i, 1)
        return (one + number(i, 2)) + number(i, 3)

    assert operators(simplify(program(write))) == 2


def test_every_equation_has_an_example(monkeypatch: pytest.MonkeyPatch) -> None:
    used: set[tuple[str, str]] = set()
    original = Application.rewrite_by

    def recording(self: Application, equation: Equation) -> Value | None:
        found = original(self, equation)
        if found is not None:
            used.add((equation.operator, equation.text))
        return found

    monkeypatch.setattr(Application, "rewrite_by", recording)
    for change, (write, _), _ in CASES:
        change(program(write))
    assert {(e.operator, e.text) for e in equations()} == used
    assert {e.exactness for e in equations()} == set(Exactness)


def test_even_functions_of_unsigned_numbers() -> None:
    """-x of these is not a number below 0."""
    function = from_source("def f(x):\n    return relay.abs(-x), relay.square(-x)\n", {"relay": relay})
    assert isinstance(function, RelayFunction)
    for dtype in ("uint8", "uint32", "int8", "float32"):
        x = np.arange(5).astype(dtype)
        for found, wanted in zip(function(x), function.interpret(x), strict=True):
            np.testing.assert_array_equal(found, wanted)
