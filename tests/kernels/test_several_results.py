"""Kernels with several results: their answers are the interpreter's, and they are as few as they should be."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import relay as R
from relay import relay
from relay.compilation.stages import lowering
from relay.eval.interpreter import run
from relay.ir.expr import Module
from relay.ir.validation.check import check
from relay.transform.fusion.outlining import fuse


@relay
def stored_and_summed(x):  # type: ignore[no-untyped-def]
    e = R.exp(x)
    return e, 2 * e, R.sum(e)


@relay
def of_rows(x):  # type: ignore[no-untyped-def]
    e = R.abs(x)
    return e, R.sum(e, axis=1), R.max(e, axis=1)


@relay
def of_columns(x):  # type: ignore[no-untyped-def]
    e = R.sqrt(R.abs(x))
    return e, R.sum(e, axis=0), e > 0.5


@relay
def of_planes(x):  # type: ignore[no-untyped-def]
    e = x * x
    return R.sum(e, axis=(0, 2)), R.min(e, axis=(0, 2)), e + 1.0


@relay
def moments(x):  # type: ignore[no-untyped-def]
    return R.sum(x, axis=0), R.sum(x * x, axis=0), R.max(x, axis=0)


@relay
def chain(x):  # type: ignore[no-untyped-def]
    a = x + 1.0
    b = a * x
    c = b - a
    return a, b, c, c > 0.0


@relay
def normalized(x):  # type: ignore[no-untyped-def]
    mean = R.mean(x, axis=-1, keepdims=True)
    centerd = x - mean
    variance = R.mean(centerd * centerd, axis=-1, keepdims=True)
    return centerd / R.sqrt(variance + 1e-5), mean, variance


@relay
def activated(x):  # type: ignore[no-untyped-def]
    p = x @ R.transpose(x) + 0.5
    return p, R.relu(p), p > 0.0, R.tanh(p)


@relay
def long_chain(x):  # type: ignore[no-untyped-def]
    y = x
    stored = x
    for i in (1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0):
        y = y * 0.5 + R.abs(y) * i
        if i == 5.0:
            stored = y
    return stored, y


def program(function: R.RelayFunction, *arguments: Any) -> Module:
    """The program with a function for each kernel."""
    return fuse(lowering(2)(function.typed(*arguments)))


def kernels(function: R.RelayFunction, *arguments: Any) -> int:
    """How many kernels a function has that are not equal."""
    return sum(name.startswith("fused") for name in program(function, *arguments).functions)


FLAT = (stored_and_summed, of_rows, of_columns, moments, chain, normalized, activated, long_chain)


@pytest.mark.parametrize("function", FLAT, ids=lambda f: f.__name__)
@pytest.mark.parametrize("shape", [(4, 8), (1, 1), (3, 1), (1, 7), (33, 70), (65, 40)], ids=str)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_answers(function: R.RelayFunction, shape: tuple[int, ...], dtype: type) -> None:
    x = np.random.default_rng(0).normal(size=shape).astype(dtype)
    for found, expected in zip(function(x), function.interpret(x), strict=True):
        tolerance = 4e-6 if dtype is np.float32 else 1e-12
        np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("function", FLAT, ids=lambda f: f.__name__)
def test_they_are_one_kernel(function: R.RelayFunction) -> None:
    x = np.random.default_rng(0).normal(size=(33, 70))
    before = lowering(2)(function.typed(x))
    module = fuse(before)
    assert sum(name.startswith("fused") for name in module.functions) == 1
    assert R.ir.alpha_equal(fuse(module), module)
    check(module, "structured")
    after, expected = run(module, [x]), run(before, [x])
    assert isinstance(after, tuple) and isinstance(expected, tuple)
    for one, other in zip(after, expected, strict=True):
        np.testing.assert_array_equal(one, other)


def test_reductions_of_several_axes() -> None:
    x = np.random.default_rng(0).normal(size=(5, 20, 37))
    for found, expected in zip(of_planes(x), of_planes.interpret(x), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-12)
    assert kernels(of_planes, x) == 1


@pytest.mark.parametrize("threads", ["2", "3"])
@pytest.mark.parametrize("shape", [((1 << 18) + 13,), (300, 501), (3, 211, 300)], ids=str)
def test_threads_share_what_becomes_one_number(
    threads: str, shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RELAY_NUM_THREADS", threads)

    @relay
    def totals(x):  # type: ignore[no-untyped-def]
        e = x * x
        return e, R.sum(e), R.max(x) + 1.0, R.mean(x, keepdims=True)

    x = np.random.default_rng(0).normal(size=shape)
    assert kernels(totals, x) <= 2
    for found, expected in zip(totals(x), totals.interpret(x), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)


def test_nothing_to_go_over() -> None:
    for shape in ((0, 3), (3, 0)):
        x = np.zeros(shape)
        for found, expected in zip(stored_and_summed(x), stored_and_summed.interpret(x), strict=True):
            np.testing.assert_array_equal(found, expected)


n, m = R.dims("n m")


@relay
def at_any_size(x: R.Tensor[R.Float, (n, m)]):  # type: ignore[no-untyped-def, valid-type]
    e = R.exp(x)
    return e, R.sum(e, axis=1), R.sum(e)


def test_symbolic_sizes() -> None:
    for shape in ((3, 5), (4, 70), (130, 19)):
        x = np.random.default_rng(0).normal(size=shape).astype(np.float32)
        for found, expected in zip(at_any_size(x), at_any_size.interpret(x), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-5)


@relay
def in_a_loop(x, n):  # type: ignore[no-untyped-def]
    total = R.sum(x) * 0.0
    for _ in range(n):
        x = R.tanh(x) * 1.1
        total = total + R.sum(x)
    return x, total


@relay
def in_a_branch(x, positive):  # type: ignore[no-untyped-def]
    if positive:
        e = x * x
        result = e, e + 1.0, R.sum(e)
    else:
        result = x, x - 1.0, R.sum(x)
    return result


@relay
def in_recursion(x, n):  # type: ignore[no-untyped-def]
    half = x * 0.5
    total = R.sum(half)
    if n == 0:
        return total
    return total * 0.5 + in_recursion(half, n - 1)


def test_in_loops_branches_and_recursion() -> None:
    x = np.random.default_rng(0).normal(size=(40,))
    cases = (
        (in_a_loop, (x, 4), 2),
        (in_a_branch, (x, True), 2),
        (in_recursion, (x, 3), 2),
    )  # one of them before the loop
    for function, arguments, most in cases:
        found, expected = function(*arguments), function.interpret(*arguments)
        for one, other in zip(found, expected, strict=True) if isinstance(found, tuple) else [(found, expected)]:
            np.testing.assert_allclose(one, other, rtol=1e-12)
        module = program(function, *arguments)
        large = [
            name for name, made in module.functions.items()
            if name.startswith("fused") and made.parameters and made.parameters[0].type.shape  # type: ignore[union-attr]
        ]  # fmt: skip
        assert len(large) <= most, large


@relay
def loss(w, x, y):  # type: ignore[no-untyped-def]
    h = R.relu(x @ w)
    return R.sum((h - y) * (h - y))


def test_derivatives_store_what_they_need_beside_the_value() -> None:
    """The product, its relu and the mask of it are one kernel."""
    rng = np.random.default_rng(0)
    w, x, y = rng.normal(size=(20, 30)), rng.normal(size=(16, 20)), rng.normal(size=(16, 30))
    step = R.value_and_grad(loss, wrt=0)
    for found, expected in zip(step(w, x, y), step.interpret(w, x, y), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-10)
    names = [name for name in program(step, w, x, y).functions if name.startswith("fused")]
    assert len(names) <= 3, names


@relay(donate_argnames=("w", "m"))
def momentum(w, m, g):  # type: ignore[no-untyped-def]
    moved = 0.9 * m + g
    return w - 0.1 * moved, moved, R.sum(w)


def test_results_in_the_memory_of_their_operands() -> None:
    """One kernel makes both new values where the old ones are, which a sum reads, too."""
    rng = np.random.default_rng(0)
    w, m, g = (rng.normal(size=(300,)) for _ in range(3))
    expected = momentum.interpret(w.copy(), m.copy(), g)
    for found, wanted in zip(momentum(w.copy(), m.copy(), g), expected, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-12)


def test_equal_kernels_of_several_results_are_shared() -> None:
    @relay
    def twice(x, y):  # type: ignore[no-untyped-def]
        a, b = R.exp(x), R.exp(y)
        return a, R.sum(a), b, R.sum(b)

    assert kernels(twice, np.ones((4, 3)), np.ones((4, 3))) == 1
