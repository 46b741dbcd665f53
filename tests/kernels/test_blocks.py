"""Intricate operators that are computed from each other: one kernel, with a loop for each, block by block."""

from __future__ import annotations

import numpy as np
import pytest
from agreement import assert_agree
from guarded import guarded

import relay as R
from relay import relay
from relay.codegen.kernels.elementwise.blocks import VECTORS
from relay.compilation.stages import lowering
from relay.transform.fusion.outlining import fuse


@relay
def nested(x):  # type: ignore[no-untyped-def]
    return R.tanh(R.exp(x))


@relay
def between(x):  # type: ignore[no-untyped-def]
    return R.squeeze(R.log(R.tanh(R.exp(0.5 * x) - 1.0) + 2.0) * x + 1.0)


@relay
def several_results(x):  # type: ignore[no-untyped-def]
    e = R.exp(x)
    return R.tanh(e + x), e * 2.0, e > 1.0, R.log(e + 1.0)


@relay(donate_argnames="x")
def donated(x):  # type: ignore[no-untyped-def]
    return R.tanh(R.exp(x)) + x


@relay
def in_a_loop(x):  # type: ignore[no-untyped-def]
    for _ in range(3):
        x = R.tanh(R.exp(x)) - 0.5 * x
    return x


FUNCTIONS = nested, between, several_results, donated, in_a_loop
BLOCK = 16 * VECTORS  # elements of float32


def assert_right(function: R.RelayFunction, x: np.ndarray) -> None:
    tolerance = {2: 2e-3, 4: 4e-6, 8: 1e-12}[x.dtype.itemsize]
    assert_agree(function(x.copy()), function.interpret(x.copy()), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("shape", [(1, 300), (2 * BLOCK,), (2 * BLOCK + 1,), (3, 1, BLOCK - 1), (7, 100)], ids=str)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_one_kernel_gives_the_interpreters_answer(
    function: R.RelayFunction, shape: tuple[int, ...], dtype: type
) -> None:
    x = np.random.default_rng(0).normal(size=shape).astype(dtype)
    module = fuse(lowering(2)(function.typed(x)))
    assert [name.startswith("fused") for name in module.functions].count(True) == 1
    assert_right(function, x)


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("size", [(1 << 18) + 13, 300_000])
def test_threads_share_blocks(function: R.RelayFunction, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RELAY_NUM_THREADS", "2")
    assert_right(function, np.random.default_rng(0).normal(size=size).astype(np.float32))


n, m = R.dims("n m")


@relay
def at_any_size(x: R.Tensor[R.Float, (n, m)]):  # type: ignore[no-untyped-def, valid-type]
    e = R.exp(x)
    return R.tanh(e), R.log(e + 1.0)


def test_symbolic_sizes_small_ones_and_none() -> None:
    for shape in ((3, 5), (4, 70), (130, 19), (0, 4), (1, 1)):
        assert_right(at_any_size, np.random.default_rng(0).normal(size=shape).astype(np.float32))
        for function in FUNCTIONS:
            assert_right(function, np.random.default_rng(0).normal(size=shape))
    assert_right(nested, np.random.default_rng(0).normal(size=300).astype(np.float16))


def test_rows_that_are_added_have_kernels_of_their_own() -> None:
    """Neither is a loop over neighboring elements with the same of everything."""

    @relay
    def biased(x, b):  # type: ignore[no-untyped-def]
        return R.tanh(R.exp(x) + b)

    x, b = np.random.default_rng(0).normal(size=(30, 40)), np.arange(40.0)
    assert sum(name.startswith("fused") for name in fuse(lowering(2)(biased.typed(x, b))).functions) == 2
    np.testing.assert_allclose(biased(x, b), biased.interpret(x, b), rtol=1e-12)


# ---- added up


@relay
def added(x):  # type: ignore[no-untyped-def]
    return R.sum(R.tanh(R.exp(x)) * x, keepdims=True)


@relay
def largest(x):  # type: ignore[no-untyped-def]
    e = R.exp(x)
    return R.max(R.sin(e)), e


@relay
def product(x):  # type: ignore[no-untyped-def]
    return R.prod(1.0 + 1e-5 * R.tanh(R.log(R.exp(0.5 * x) + 1.0)))


SUMS = added, largest, product


def alone(function: R.RelayFunction) -> R.RelayFunction:
    """The function without programs that were compiled with other limits."""
    function.reload()
    return function


@pytest.mark.parametrize("threads", ["1", "2"])
@pytest.mark.parametrize("function", SUMS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("shape", [(300,), (2 * BLOCK + 1,), (3, BLOCK - 1), (7, 101), ((1 << 18) + 13,)], ids=str)
def test_a_sum_of_all_elements_is_a_part_of_the_kernel(
    function: R.RelayFunction, shape: tuple[int, ...], threads: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("relay.transform.fusion.multi_output.FAR", 300)
    monkeypatch.setattr("relay.transform.fusion.multi_output.LARGE", 1)
    monkeypatch.setenv("RELAY_NUM_THREADS", threads)
    x = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    module = fuse(lowering(2)(alone(function).typed(x)))
    assert [name.startswith("fused") for name in module.functions].count(True) == 1
    expected = function.interpret(x.astype(np.float64))
    for end in (False, True):
        found = function(guarded(x, end=end))
        for one, other in zip(*(r if isinstance(r, tuple) else (r,) for r in (found, expected)), strict=True):
            np.testing.assert_allclose(one, other, rtol=2e-5, atol=2e-5 * x.size**0.5)
    alone(function)


def test_what_no_sum_takes_in() -> None:
    """Smaller tensors, float64, and what is not all of the elements."""

    def kernels(body, shape: tuple[int, ...], dtype: type = np.float32) -> int:  # type: ignore[no-untyped-def]
        module = fuse(lowering(2)(alone(relay(body)).typed(np.zeros(shape, dtype))))
        return [name.startswith("fused") for name in module.functions].count(True)

    large = (1 << 22,)
    assert kernels(lambda x: R.sum(R.tanh(R.exp(x))), large) == 1
    assert kernels(lambda x: R.sum(R.tanh(R.exp(x))), (1 << 21,)) == 2
    assert kernels(lambda x: R.sum(R.tanh(R.exp(x))), large, np.float64) == 2
    assert kernels(lambda x: R.sum(R.tanh(R.exp(x)), axis=0), (1 << 11, 1 << 11)) == 2
