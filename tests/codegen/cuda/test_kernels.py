"""Kernels for GPUs, without one: CUDA C on the processor, and machine code by NVRTC."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from agreement import assert_agree
from gpu.emulation import COMPILER, DeadlockError, emulation, run_emulated
from matrix import everything, sample
from zoo import Program, programs

import relay
from relay import Relation, Tensor
from relay.codegen.cuda.compiler import Resources, exceeded_resource, machine_code
from relay.codegen.cuda.driver import use_toolchain
from relay.codegen.cuda.host_program import HostProgram
from relay.codegen.cuda.program import kernels_of
from relay.codegen.cuda.target import ARCHITECTURES, DEFAULT, parse_target
from relay.errors import CompileError, ExecutionError
from relay.ir.types import BaseType

needs_compiler = pytest.mark.skipif(COMPILER is None, reason="there is no g++")

RANDOM = np.random.default_rng(0)


def normal(*shape: int) -> np.ndarray:
    """Random numbers in float32."""
    return RANDOM.standard_normal(shape).astype(np.float32)


def rules(program: HostProgram) -> set[str]:
    """The schedule rules of a program's kernels."""
    return {launch.rule for launch in program.launches}


@relay
def network(x: Any, w: Any, b: Any) -> Any:
    h = relay.tanh(x @ w + b)
    row = h[1]
    return relay.softmax(h), relay.argmax(relay.floor(x), axis=1), relay.sort(row), relay.cumsum(row), h.sum(axis=0)


SQUARE = normal(37, 70), normal(70, 75) * np.float32(0.1), normal(75)


@pytest.mark.usefixtures("separate_kernels")
@needs_compiler
def test_each_rule_on_the_processor() -> None:
    found, program = run_emulated(network, SQUARE)
    assert rules(program.host) == {"statement", "tiled_product", "block_reduction", "thread_reduction", "elements"}
    # Sums of at most 70 terms in another order: a few units in the last place of terms of about 1.
    assert_agree(found, network.interpret(*SQUARE), rtol=1e-5, atol=5e-6)


@pytest.mark.usefixtures("separate_kernels")
@needs_compiler
@pytest.mark.parametrize("barrier", range(2))
def test_missing_barriers_are_noticed(barrier: int) -> None:
    def without(source: str) -> str:
        parts = source.split("__syncthreads();")
        return "__syncthreads();".join(parts[: barrier + 1]) + "__syncthreads();".join(parts[barrier + 1 :])

    @relay
    def product(x, w):
        return x @ w

    with pytest.raises((AssertionError, DeadlockError), match="depends on the order"):
        run_emulated(product, SQUARE[:2], without)


@needs_compiler
def test_random_numbers_are_those_of_the_interpreter() -> None:
    @relay
    def drawn(key):
        uniform = relay.random.uniform(key, (50,))
        return uniform, relay.random.bits(key, (9,)), relay.random.normal(key, (20,), "float64")

    key = relay.random.key(3)
    found, _ = run_emulated(drawn, (key,))
    for one, other in zip(found, drawn.interpret(key), strict=True):
        np.testing.assert_array_equal(np.asarray(one), np.asarray(other))


@relay
def steps(x: Any, limit: Any) -> Any:
    count = 0
    while (x * x).sum() > limit:
        x = x * 0.5
        count += 1
        if count > 20:
            break
    assert count > 0, "nothing to do"
    return x, count


@needs_compiler
def test_control_flow_on_the_host() -> None:
    for limit in (0.1, 4.0):
        arguments = normal(40), np.float32(limit)
        found, _ = run_emulated(steps, arguments)
        assert_agree(found, steps.interpret(*arguments), rtol=1e-6)
    with pytest.raises(ExecutionError, match="nothing to do"):
        run_emulated(steps, (normal(4), np.float32(1e9)))


@needs_compiler
def test_gradients() -> None:
    def loss(x: Any, w: Any) -> Any:
        for _ in range(3):
            x = relay.tanh(x @ w)
        return (x * x).mean()

    gradient = relay.grad(relay(loss))
    arguments = normal(9, 12), normal(12, 12)
    found, _ = run_emulated(gradient, arguments)
    assert_agree(found, gradient.interpret(*arguments), rtol=1e-4, atol=1e-6)


@needs_compiler
@pytest.mark.parametrize("kind", ["value", "gradient"])
@pytest.mark.parametrize("program", programs() if everything() else sample(programs(), 3), ids=lambda p: p.name)
def test_zoo_on_the_processor(program: Program, kind: str, tmp_path: Path) -> None:
    """Programs and their gradients, written to a file and read again."""
    if kind == "gradient" and not program.differentiable:
        pytest.skip("it has no gradient")
    function = program.function if kind == "value" else relay.value_and_grad(program.function)
    found, _ = run_emulated(function, program.arguments, file=tmp_path / "program")
    # The C library's functions for float32 are right to a few units in the last place.
    assert_agree(found, function.interpret(*program.arguments), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("architecture", ARCHITECTURES.values(), ids=lambda a: a.name)
def test_machine_code(architecture: Any) -> None:
    pytest.importorskip("cuda.bindings.nvrtc", reason="NVRTC is not installed")
    program, source = kernels_of(network.core(*SQUARE), architecture)
    made = machine_code(source, architecture)
    assert made.code.startswith(b"\x7fELF")
    assert set(made.resources) == {launch.name for launch in program.launches}
    for launch in program.launches:
        assert exceeded_resource(made.resources[launch.name], launch.threads, architecture) is None
    (tiled,) = (launch for launch in program.launches if launch.rule == "tiled_product")
    assert made.resources[tiled.name].shared_bytes == 2 * 16 * (64 + 1) * 4  # 16 terms of two tiles, in float32


def test_limits() -> None:
    assert exceeded_resource(Resources(128, 0), 1024, DEFAULT) == "131072 registers of a block of 65536"
    assert exceeded_resource(Resources(8, 49153), 32, DEFAULT) == "49153 bytes of shared memory of 49152"
    assert exceeded_resource(Resources(64, 49152), 1024, DEFAULT) is None


def test_targets() -> None:
    assert parse_target("cuda") == parse_target("cuda, arch=sm_90")
    assert parse_target("cuda, arch=sm_80").name == "sm_80"
    with pytest.raises(CompileError, match=r"option 'arch=sm_70'(.|\n)*sm_80, sm_90"):
        relay(target="cuda, arch=sm_70")(lambda x: x)


@needs_compiler
def test_operators_that_run_in_python_are_refused() -> None:
    @relay.pure_callback(relation=Relation("float32 -> float32", lambda shape: shape))
    def sine_in_python_for_gpus(x: Tensor) -> Tensor:
        """The sine. x: (float32, s) -> (float32, s)."""
        return np.sin(x)

    @relay(target="cuda")
    def called_back(x):
        return relay.sine_in_python_for_gpus(x)

    with (
        use_toolchain(emulation()),
        pytest.raises(CompileError, match="runs in Python, not on the target 'cuda'") as caught,
    ):
        called_back.compile(normal(3))
    assert caught.value.span is not None and "docs/gpu.md" in str(caught.value)


def test_missing_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = pytest.importorskip("cuda.bindings.driver", reason="cuda-bindings is not installed")

    @relay(target="cuda")
    def doubled(x):
        return 2 * x

    def missing(_: int) -> Any:
        raise RuntimeError("libcuda.so.1")

    monkeypatch.setattr(driver, "cuInit", missing)
    with pytest.raises(CompileError, match="needs NVIDIA's driver"):
        doubled(normal(3))
    monkeypatch.setattr(driver, "cuInit", lambda _: (driver.CUresult.CUDA_ERROR_NO_DEVICE,))
    with pytest.raises(CompileError, match="finds no GPU: the driver says CUDA_ERROR_NO_DEVICE"):
        doubled(normal(3))


@relay
def halves(x: Any, w: Any) -> Any:
    h = relay.tanh(x @ w) * 2.0 + 1.0
    row = h[1]
    return h, relay.softmax(h), relay.sort(row), relay.cumsum(row), relay.log(x * x + 1.0), x.astype("int32"), h.sum()


@needs_compiler
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision(dtype: str) -> None:
    arguments = tuple(a.astype(BaseType(dtype).dtype) for a in (normal(9, 12), normal(12, 10)))
    found, program = run_emulated(halves, arguments)
    # Sums are accumulated in float32 in both; elementwise code is one rounding apart where the order of sums differs.
    step = 2.0**-10 if dtype == "float16" else 2.0**-7
    assert_agree(found, halves.interpret(*arguments), rtol=4 * step, atol=step)
    pytest.importorskip("cuda.bindings.nvrtc", reason="NVRTC is not installed")
    machine_code(program.code.code.decode(), DEFAULT)


@relay
def scattered(table: Any, rows: Any, key: Any) -> Any:
    return (relay.take(table, rows, axis=0) ** 2).sum() + relay.random.normal(key, (70,)).sum()


@pytest.mark.usefixtures("separate_kernels")
@needs_compiler
def test_independent_rounds_of_loops_are_threads() -> None:
    """Scatters add in the order of the processor, bit by bit: rows one after another, columns side by side."""
    arguments = normal(6, 40), np.array([1, 2, 2, 1, 0], np.int32), relay.random.key(1)
    gradient = relay.grad(scattered, wrt=(0,))
    found, program = run_emulated(gradient, arguments)
    np.testing.assert_array_equal(np.asarray(found), np.asarray(gradient.interpret(*arguments)))
    statements = [(launch.blocks, launch.threads) for launch in program.host.launches if launch.rule == "statement"]
    assert statements == [(1, 64)]  # sums of columns, in a tensor of zeros
    sums = relay.relay(lambda x: (relay.cumsum(x, axis=0), relay.cumsum(x, axis=1)))
    _, program = run_emulated(sums, (normal(7, 50),))
    assert {launch.threads for launch in program.host.launches} == {64, 32}


@pytest.mark.usefixtures("separate_kernels")
@needs_compiler
@pytest.mark.parametrize(
    ("shapes", "size"), [(((130, 20), (20, 129)), 128), (((70, 9), (9, 65)), 64), (((9, 33), (33, 12)), 32)]
)
def test_tiles_of_products(shapes: Any, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each size of tile, with edges, and factors whose neighbors lie along the terms, and along rows and columns."""
    monkeypatch.setattr("relay.codegen.cuda.rules.blocks.MANY_TILES", 1)
    left, right = (normal(*shape) for shape in shapes)
    products = relay.relay(lambda x, y, xt, yt: (x @ y, xt.T @ yt.T))
    arguments = left, right, left.T.copy(), right.T.copy()
    found, program = run_emulated(products, arguments)
    assert [launch.reason.split()[2] for launch in program.host.launches] == [str(size)] * 2
    assert_agree(found, products.interpret(*arguments), rtol=1e-5, atol=1e-5)
    if size == 128:
        pytest.importorskip("cuda.bindings.nvrtc", reason="NVRTC is not installed")
        made = machine_code(program.code.code.decode(), DEFAULT)
        assert all(exceeded_resource(r, 256, DEFAULT) is None and r.registers <= 128 for r in made.resources.values())


@pytest.mark.usefixtures("separate_kernels")
@needs_compiler
def test_reductions_whose_order_matters_stay_in_order() -> None:
    """Integer powers go through the bits of the exponent; `all`, maxima and sums are computed in parts."""
    reductions = relay.relay(
        lambda x, n, y: (x**n, y.max(axis=1), y.sum(axis=1), (y > 0).all(axis=1), y.argmax(axis=1))
    )
    arguments = np.array([1, 2, 3, -5]), np.array([4, 10, 7, 3]), normal(3, 300)
    found, program = run_emulated(reductions, arguments)
    assert_agree(found, reductions.interpret(*arguments), rtol=1e-5, atol=1e-5)
    rules_ = {launch.name.partition("_")[2]: launch.rule for launch in program.host.launches}
    assert next(rule for name, rule in rules_.items() if "power" in name) == "thread_reduction"
    assert sum(rule == "block_reduction" for rule in rules_.values()) == 4


@pytest.mark.usefixtures("separate_kernels")
@needs_compiler
def test_operands_are_kept_for_groups_behind_branches() -> None:
    """A group runs with its last member, perhaps behind a branch that is the last to read an operand by itself."""
    program = next(p for p in programs() if p.name == "of_a_grown_tensor")
    gradient = relay.value_and_grad(program.function)
    found, _ = run_emulated(gradient, program.arguments)
    assert_agree(found, gradient.interpret(*program.arguments), rtol=1e-9)
