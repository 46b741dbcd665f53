"""Derivatives of attention, which compute the scores again, and what keeps them in memory."""

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

needs_compiler = pytest.mark.skipif(COMPILER is None, reason="there is no g++")

RANDOM = np.random.default_rng(0)


def normal(*shape: int, dtype: str = "float32") -> np.ndarray:
    return RANDOM.standard_normal(shape).astype(np.float32).astype(BaseType(dtype).dtype)


def plain(q: Any, k: Any, v: Any, mask: Any, bias: Any) -> Any:
    return (relay.scaled_dot_product_attention(q, k, v) ** 2).sum()


def causal(q: Any, k: Any, v: Any, mask: Any, bias: Any) -> Any:
    return (relay.scaled_dot_product_attention(q, k, v, causal=True, scale=0.3) ** 2).sum()


def masked(q: Any, k: Any, v: Any, mask: Any, bias: Any) -> Any:
    return (relay.masked_attention(q, k, v, mask) ** 2).sum()


def biased(q: Any, k: Any, v: Any, mask: Any, bias: Any) -> Any:
    return (relay.masked_attention(q, k, v, bias) ** 2).sum()


def by_hand(q: Any, k: Any, v: Any, mask: Any, bias: Any) -> Any:
    scores = relay.tanh(q @ relay.transpose(k, (0, 2, 1))) * 3.0
    return (relay.relu(relay.softmax(scores) @ v + 1.0) ** 2).sum()


def rules(program: Any) -> list[str]:
    return [launch.rule for launch in program.host.launches]


def memory_taken(program: Any) -> int:
    """Bytes of what kernels leave for others, without the arguments."""
    groups = [g for b in program.host.blocks.values() for g in b.groups.values()]
    results = sum(int(np.prod(t.shape)) * t.dtype.itemsize for g in groups for t in g.results)
    return results + sum(n for g in groups for n in g.temporaries)


@needs_compiler
@pytest.mark.parametrize(
    ("form", "symbolic"),
    [(plain, True), (causal, False), (masked, False), (biased, True), (by_hand, False)],
)
def test_forms_of_attention(form: Any, symbolic: bool) -> None:
    """Several parts of queries and keys, and rests of both."""
    q, k, v = normal(2, 37, 9), normal(2, 75, 9), normal(2, 75, 13)
    mask = RANDOM.random((37, 75)) < 0.3
    mask[:, :40] &= RANDOM.random(37)[:, None] < 0.5  # for some queries, no key of the first part
    mask[5], mask[:, 7] = False, False  # a query that sees none, and a key that none sees
    bias = np.where(mask, normal(37, 75), np.float32(-np.inf)).astype(np.float32)
    bias[5, 70] = 0.0
    function = relay.value_and_grad(relay.relay(form), wrt=(0, 1, 2))
    if symbolic:  # as after a call with other numbers of examples, queries and keys
        function._lower((q[:1, :8], k[:1, :16], v[:1, :16], mask[:8, :16], bias[:8, :16]), {}, symbolic=True)
    found, program = run_emulated(function, (q, k, v, mask, bias), symbolic=symbolic)
    # Sums of 75 terms in another order, twice.
    assert_agree(found, function.interpret(q, k, v, mask, bias), rtol=1e-4, atol=1e-4)
    assert rules(program).count("attention") == 1 and rules(program).count("recomputation") == 6
    assert not {"tiled_product", "thread_reduction"} & set(rules(program))
    if not symbolic and form is not causal:  # whose mask is a constant
        # Two arrays like the queries, two like the keys and values, the sums of each query, and no scores.
        assert memory_taken(program) < 4 * (2 * 37 * (2 * 9 + 3 * 13 + 8) + 2 * 75 * (2 * 9 + 2 * 13)) < 4 * 6 * 37 * 75


@needs_compiler
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
def test_dtypes_and_heads(dtype: str) -> None:
    @relay.relay
    def heads(x, weights):
        q, k, v = relay.transpose((x @ weights).reshape(2, 20, 3, 3, 8), (2, 0, 3, 1, 4))
        return relay.scaled_dot_product_attention(q, k, v, causal=True).sum(axis=3).astype(relay.Float32).max()

    arguments = normal(2, 20, 12, dtype=dtype), normal(12, 72, dtype=dtype)
    gradient = relay.grad(heads, wrt=(0, 1))
    found, program = run_emulated(gradient, arguments)
    assert rules(program).count("recomputation") == 6
    step = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float64": 1e-12}[dtype]
    assert_agree(found, gradient.interpret(*arguments), rtol=4 * step, atol=4 * step)


@needs_compiler
def test_rows_without_numbers_are_as_in_the_interpreter() -> None:
    gradient = relay.grad(
        relay.relay(lambda q, k, v, bias: (relay.masked_attention(q, k, v, bias) ** 2).sum()), wrt=(0, 2)
    )
    bias = np.zeros((16, 40), np.float32)
    bias[2], bias[3, :35], bias[4, 7] = -np.inf, -np.inf, np.nan
    arguments = normal(16, 8), normal(40, 8), normal(40, 8), bias
    found, program = run_emulated(gradient, arguments)
    assert "recomputation" in rules(program)
    expected = gradient.interpret(*arguments)
    assert list(np.isnan(np.asarray(expected[0])).all(axis=1).nonzero()[0]) == [2, 4]
    assert_agree(found, expected, rtol=2e-5, atol=2e-5)


@needs_compiler
def test_programs_that_keep_the_scores() -> None:
    """What returns the weights, or reads them elsewhere, has them in memory; the numbers are the same."""

    @relay.relay
    def returned(q, k, v):
        weights = relay.softmax(q @ k.T)
        return ((weights @ v) ** 2).sum(), weights

    @relay.relay
    def of_columns(q, k, v):
        weights = relay.softmax(q @ k.T)
        return ((weights @ v) ** 2).sum() + (weights.max(axis=0) ** 2).sum()

    @relay.relay
    def in_a_loop(q, k, v):
        weights = relay.softmax(q @ k.T)
        total = (weights @ v).sum()
        for _ in range(2):
            total = total + (weights * weights).sum()
        return total

    arguments = normal(12, 8), normal(20, 8), normal(20, 9)
    for function, auxiliary in ((returned, True), (of_columns, False), (in_a_loop, False)):
        gradient = relay.grad(function, wrt=(0, 1), has_aux=auxiliary)
        found, _ = run_emulated(gradient, arguments)
        assert_agree(found, gradient.interpret(*arguments), rtol=1e-4, atol=1e-4)


@needs_compiler
def test_derivatives_of_other_kinds() -> None:
    """Forward mode, a derivative of a derivative, and a batch of derivatives, however they are computed."""
    loss = relay.relay(lambda q, k, v: (relay.scaled_dot_product_attention(q, k, v) ** 2).sum())
    q, k, v = normal(9, 8), normal(12, 8), normal(12, 9)
    forward = relay.relay(lambda q, k, v: relay.jvp(loss, (q, k, v), (q, k, v)))
    twice = relay.grad(relay.relay(lambda q, k, v: (relay.grad(loss, wrt=0)(q, k, v) ** 2).sum()), wrt=0)
    batch = relay.vmap(relay.grad(loss, wrt=(0, 1, 2)), in_axes=(0, None, None))
    for function, arguments in ((forward, (q, k, v)), (twice, (q, k, v)), (batch, (normal(3, 9, 8), k, v))):
        found, _ = run_emulated(function, arguments)
        assert_agree(found, function.interpret(*arguments), rtol=1e-3, atol=1e-3)


@needs_compiler
def test_missing_barriers_are_noticed() -> None:
    loss = relay.relay(lambda q, k, v: (relay.scaled_dot_product_attention(q, k, v) ** 2).sum())
    gradient = relay.grad(loss, wrt=(0, 1, 2))
    arguments = normal(9, 8), normal(40, 8), normal(40, 8)
    _, program = run_emulated(gradient, arguments)
    source = program.code.code.decode()
    again = [launch for launch in program.host.launches if launch.rule == "recomputation"]
    for launch in (again[0], again[-1]):  # a reduction, and a product
        start = source.index(f" {launch.name}(", source.index(f" {launch.name}(") + 1)  # where its text is
        end = source.find('extern "C"', start)
        places = [m.span() for m in re.finditer(r"__syncthreads\(\);", source[:end]) if m.start() > start]
        assert len(places) == 3
        for begin, end in places:
            changed = source[:begin] + source[end:]
            with pytest.raises((AssertionError, DeadlockError), match="depends on the order"):
                run_emulated(gradient, arguments, lambda _, text=changed: text)


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_machine_code(name: str) -> None:
    pytest.importorskip("cuda.bindings.nvrtc", reason="NVRTC is not installed")
    loss = relay.relay(lambda q, k, v: (relay.scaled_dot_product_attention(q, k, v, causal=True) ** 2).sum())
    gradient = relay.grad(loss, wrt=(0, 1, 2))
    for width, dtype in ((64, "float32"), (128, "bfloat16"), (64, "float64")):
        architecture = ARCHITECTURES[name]
        core = gradient.core(*(normal(2, 64, width, dtype=dtype) for _ in range(3)))
        program, source = kernels_of(core, architecture)
        made = machine_code(source, architecture)
        assert [launch.rule for launch in program.launches].count("recomputation") == 6
        for launch in program.launches:
            assert exceeded_resource(made.resources[launch.name], launch.threads, architecture) is None
