"""Kernels large enough for every schedule, against the interpreter."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from core_builder import Builder, agree, equal, f32, function, module, tensor

from relay import relay
from relay.codegen.lowering.module_builder import listing
from relay.codegen.runtime.cpu import compile_module
from relay.errors import ExecutionError
from relay.eval.interpreter import run
from relay.ir.expr import (
    Assert,
)
from relay.ir.types import (
    FLOAT32,
    INT32,
    BaseType,
)
from relay.operator import Value

KERNELS: dict[str, tuple[tuple[tuple[int, ...], ...], Callable[..., Value]]] = {
    "product": (((256, 128), (128, 96)), lambda x, y: x @ y),
    "product, epilogue": (((128, 128), (128, 128), (128,)), lambda x, y, c: (x @ y + c).op("tanh")),
    "product, odd": (((61, 37), (37, 101)), lambda x, y: x @ y),
    "product, narrow": (((64, 128), (128, 10), (10,)), lambda x, y, c: x @ y + c),
    "product, batches": (((5, 12, 16), (5, 16, 32)), lambda x, y: x @ y),
    "product, vector": (((64,), (64, 64)), lambda x, y: x @ y),
    "dense": (((64, 48), (96, 48)), lambda x, y: x.op("dense", y)),
    "dense, one row": (((1, 128), (64, 128)), lambda x, y: x.op("dense", y)),
    "gradient of a product": (((64, 128), (64, 10)), lambda x, d: x.op("transpose") @ d),
    "elementwise, two threads": (((512, 512), (512, 512)), lambda x, y: (x * y + 1.0).op("tanh")),
    "elementwise, odd": (((333, 1001), (1001,)), lambda x, y: x * y),
    "sum of columns": (((600, 300),), lambda x: x.op("sum", axis=0)),
    "sum of rows": (((300, 600),), lambda x: x.op("sum", axis=1, keepdims=True)),
    "sum of all": (((64, 2000),), lambda x: (x * x).op("sum")),
    "mean with epilogue": (((64, 128),), lambda x: x.op("mean", axis=0).op("exp")),
    "largest": (((64, 128),), lambda x: x.op("max", axis=1, keepdims=True)),
    "softmax": (((64, 100),), lambda x: x.op("softmax")),
    "argmax": (((20, 40),), lambda x: x.op("argmax", axis=1)),
    "transposition": (((64, 100),), lambda x: x.op("transpose")),
    "condition": (
        ((64, 100), (64, 100)),
        lambda x, y: (x < y).op("cast", dtype=FLOAT32) + (x == y).op("cast", dtype=FLOAT32),
    ),
}


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("base", ["float32", "float64"])
def test_kernels(name: str, base: str) -> None:
    shapes, body = KERNELS[name]
    types = [tensor(*shape, base=BaseType(base)) for shape in shapes]
    if name == "condition" and base == "float64":
        pytest.skip("written for float32")
    arguments = [f32(*shape, seed=i).astype(base) for i, shape in enumerate(shapes)]
    agree(
        module(function(types, lambda b, *values: body(*values))),
        *arguments,
        tolerance=1e-3 if base == "float32" else 1e-10,
    )


def test_long_chains_are_cut() -> None:
    def body(b: Builder, x: Value) -> Value:
        for _ in range(40):
            x = x * x - x * 0.5  # as a tree it would have 3**40 nodes
        return x

    agree(module(function([tensor(16)], body)), f32(16) / 4)


def test_many_calls_of_a_kernel_are_no_copies_of_it() -> None:
    """LLVM takes time to the square of a function's length."""

    def body(b: Builder, x: Value, y: Value) -> Value:
        for _ in range(300):
            x = x.op("tanh") * y
        return x

    assembly = listing(module(function([tensor(64), tensor(64)], body)), threads=1)
    instructions = [line for line in assembly.splitlines() if line.startswith("\t") and not line.startswith("\t.")]
    assert len(instructions) < 300 * 15


def test_a_guarded_division_stays_behind_its_guard() -> None:
    """The division is fused into the sum, which stands behind the assertion."""

    def body(b: Builder, x: Value, y: Value) -> Value:
        doubled = x + x
        b.perform(Assert((y != 0).op("all").atom, "division by zero"))
        return (doubled // y).op("sum")

    ints = tensor(40, base=INT32)
    made = module(function([ints, ints], body))
    program = compile_module(made)
    arguments = [np.arange(40, dtype=np.int32), np.arange(1, 41, dtype=np.int32)]
    equal(program(arguments), run(made, arguments))
    with pytest.raises(ExecutionError, match="division by zero"):
        program([arguments[0], arguments[0]])


def test_floats_are_not_taken_for_real_numbers() -> None:
    @relay
    def questions(x):
        return x == x, (x + 1e8) - 1e8, x - x, (x * 3.0) / 3.0, 0.1 + x - 0.1

    x = np.array([1.5, np.nan, np.inf, 3.0, 1e30], np.float32)
    for compiled, interpreted in zip(questions(x), questions.interpret(x), strict=True):
        np.testing.assert_array_equal(compiled, interpreted)
