"""Products on tensor cores, and epilogues of products."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from agreement import assert_agree
from gpu.emulation import COMPILER, DeadlockError, run_emulated

import relay
from relay.codegen.cuda.compiler import exceeded_resource, machine_code
from relay.codegen.cuda.program import kernels_of
from relay.codegen.cuda.target import ARCHITECTURES
from relay.ir.types import BaseType

pytestmark = pytest.mark.usefixtures("separate_kernels")

needs_compiler = pytest.mark.skipif(COMPILER is None, reason="there is no g++")

RANDOM = np.random.default_rng(0)


def normal(dtype: str, *shape: int) -> np.ndarray:
    return RANDOM.standard_normal(shape).astype(np.float32).astype(BaseType(dtype).dtype)


def assert_close(found: Any, expected: Any, dtype: str) -> None:
    """Sums of products that are exact in float32, in another order: then both are rounded once to half precision, and
    elementwise operators once more."""
    step = 2.0**-10 if dtype == "float16" else 2.0**-7
    assert_agree(found, expected, rtol=4 * step, atol=4 * step)


@relay.relay
def all_ways(x: Any, y: Any, xt: Any, yt: Any) -> Any:
    return x @ y, x @ yt.T, xt.T @ y, xt.T @ yt.T


@needs_compiler
@pytest.mark.parametrize(
    ("shape", "size", "copies"), [((40, 24, 48), 64, 4), ((21, 40, 19), 32, 3), ((136, 67, 130), 128, 2)]
)
def test_transpositions(shape: Any, size: int, copies: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each size of tile, with edges, and factors along the terms and along the lines: copied in groups of eight where
    the last axis of a factor is a multiple of it, and element by element."""
    monkeypatch.setattr("relay.codegen.cuda.rules.blocks.MANY_TILES", 1)
    rows, terms, columns = shape
    x, y = normal("float16", rows, terms), normal("float16", terms, columns)
    arguments = x, y, x.T.copy(), y.T.copy()
    found, program = run_emulated(all_ways, arguments)
    assert [launch.rule for launch in program.host.launches] == ["tensor_product"] * 4
    assert {launch.reason.split()[-1] for launch in program.host.launches} == {str(size)}
    kernels = program.code.code.decode().split("__global__")[5:]
    assert sum("relay_copy_later(" in kernel for kernel in kernels) == copies
    assert_close(found, all_ways.interpret(*arguments), "float16")


@needs_compiler
@pytest.mark.parametrize("symbolic", [False, True])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_a_layer(dtype: str, symbolic: bool) -> None:
    @relay.relay(dynamic=symbolic)
    def layer(x, w, b):
        return relay.relu(x @ w + b)

    arguments = normal(dtype, 37, 24), normal(dtype, 24, 48), normal(dtype, 48)
    found, program = run_emulated(layer, arguments, symbolic=symbolic)
    assert "tensor_product" in [launch.rule for launch in program.host.launches]
    assert ("relay_copy_later((" in program.code.code.decode()) == (not symbolic)
    assert_close(found, layer.interpret(*arguments), dtype)


@needs_compiler
def test_batches_and_contractions() -> None:
    @relay.relay
    def products(q, k, weights):
        scores = relay.einsum("bqhd,bkhd->bhqk", q, k)
        return scores, relay.einsum("bhqk,ckd->bqhcd", scores, weights)

    arguments = (normal("float16", 2, 17, 9, 16), normal("float16", 2, 33, 9, 16), normal("float16", 3, 33, 8))
    found, program = run_emulated(products, arguments)
    assert sum(launch.rule == "tensor_product" for launch in program.host.launches) >= 2
    # The second sum is of some 30 terms of about 4.
    assert_agree(found, products.interpret(*arguments), rtol=1e-2, atol=5e-2)


@needs_compiler
def test_gradients_of_half_precision() -> None:
    def loss(w, x):
        return ((relay.tanh(x @ w).astype("float32")) ** 2).sum()

    gradient = relay.value_and_grad(relay.relay(loss))
    arguments = normal("float16", 24, 32), normal("float16", 40, 24)
    found, program = run_emulated(gradient, arguments)
    assert sum(launch.rule == "tensor_product" for launch in program.host.launches) == 3
    # Cotangents are rounded to float16, too: sums of 40 terms, of which each has an error of 2**-11 of about 1.
    assert_agree(found, gradient.interpret(*arguments), rtol=1e-2, atol=2e-2)


@needs_compiler
@pytest.mark.parametrize("shape", [(16, 64, 24), (16, 67, 19)])
def test_missing_barriers_and_waits_are_noticed(shape: Any) -> None:
    rows, terms, columns = shape
    product = relay.relay(lambda x, y: x @ y)
    arguments = normal("float16", rows, terms), normal("float16", terms, columns)
    _, program = run_emulated(product, arguments)
    source = program.code.code.decode()
    for call in ("__syncthreads();", "relay_wait_for_copies();"):
        for place in [match.start() for match in re.finditer(re.escape(call), source)]:
            changed = source[:place] + source[place + len(call) :]
            with pytest.raises((AssertionError, DeadlockError)):
                assert_close(
                    run_emulated(product, arguments, lambda _, text=changed: text)[0], product(*arguments), "float16"
                )


@relay.relay
def epilogues(x: Any, w: Any, b: Any, r: Any) -> Any:
    h = x @ w
    return relay.relu(h + b) * 2.0 + r


@needs_compiler
@pytest.mark.parametrize("dtype", ["float32", "float16", "float64"])
def test_epilogues_are_in_the_kernel_of_their_product(dtype: str) -> None:
    arguments = normal(dtype, 40, 24), normal(dtype, 24, 33), normal(dtype, 33), normal(dtype, 40, 33)
    found, program = run_emulated(epilogues, arguments)
    assert len(program.host.launches) == 1
    if dtype == "float16":
        assert_close(found, epilogues.interpret(*arguments), dtype)
    else:
        assert_agree(found, epilogues.interpret(*arguments), rtol=1e-5, atol=1e-5)


@needs_compiler
def test_what_is_no_epilogue() -> None:
    """Results that others read, too, or at other places; and the last of two products has the epilogue."""

    @relay.relay
    def shapes(x, w, v):
        h = x @ w
        twice = x @ v
        return (
            h,
            relay.tanh(h),
            relay.flip(twice * 1.5, axis=0) + 1.0,
            (x @ (w + 1.0)) * (x @ (v * 2.0)),
            (x @ w).T + 1.0,
        )

    arguments = normal("float32", 20, 12), normal("float32", 12, 33), normal("float32", 12, 33)
    found, _ = run_emulated(shapes, arguments)
    assert_agree(found, shapes.interpret(*arguments), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("architecture", "dtype"), [("sm_80", "bfloat16"), ("sm_90", "float16")])
def test_machine_code(architecture: str, dtype: str) -> None:
    pytest.importorskip("cuda.bindings.nvrtc", reason="NVRTC is not installed")
    arguments = normal(dtype, 1024, 1024), normal(dtype, 1024, 1024), normal(dtype, 1024)
    program, source = kernels_of(relay.relay(lambda x, w, b: x @ w + b).core(*arguments), ARCHITECTURES[architecture])
    made = machine_code(source, ARCHITECTURES[architecture])
    (launch,) = program.launches
    found = made.resources[launch.name]
    assert launch.threads == 256 and exceeded_resource(found, launch.threads, ARCHITECTURES[architecture]) is None
    assert found.shared_bytes == 2 * 2 * (128 * (32 + 8) + 32 * (128 + 8))  # both halves, of two bytes an element
    assert found.registers <= 128  # so that two blocks fit a multiprocessor
