"""Attention in one pass, and what only looks like it."""

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
from relay.codegen.cuda.target import DEFAULT
from relay.ir.types import BaseType

needs_compiler = pytest.mark.skipif(COMPILER is None, reason="there is no g++")

RANDOM = np.random.default_rng(0)


def normal(*shape: int, dtype: str = "float32") -> np.ndarray:
    return RANDOM.standard_normal(shape).astype(np.float32).astype(BaseType(dtype).dtype)


def rules(program: Any) -> list[str]:
    return [launch.rule for launch in program.host.launches]


def plain(q: Any, k: Any, v: Any, mask: Any, bias: Any) -> Any:
    return relay.scaled_dot_product_attention(q, k, v)


def causal(q: Any, k: Any, v: Any, mask: Any, bias: Any) -> Any:
    return relay.scaled_dot_product_attention(q, k, v, causal=True, scale=0.3)


def masked(q: Any, k: Any, v: Any, mask: Any, bias: Any) -> Any:
    return relay.masked_attention(q, k, v, mask)


def biased(q: Any, k: Any, v: Any, mask: Any, bias: Any) -> Any:
    return relay.masked_attention(q, k, v, bias)


def by_hand(q: Any, k: Any, v: Any, mask: Any, bias: Any) -> Any:
    scores = relay.tanh(q @ relay.transpose(k, (0, 2, 1))) * 3.0
    return relay.relu(relay.softmax(scores) @ v + 1.0)


@needs_compiler
@pytest.mark.parametrize(
    ("form", "symbolic"),
    [
        (plain, False),
        (plain, True),
        (causal, False),
        (masked, False),
        (masked, True),
        (biased, False),
        (by_hand, False),
    ],
)
def test_forms_of_attention(form: Any, symbolic: bool) -> None:
    """Several parts of keys, and rests of queries, keys and values."""
    q, k, v = normal(2, 37, 9), normal(2, 75, 9), normal(2, 75, 13)
    mask = RANDOM.random((37, 75)) < 0.3
    mask[:, :40] &= RANDOM.random(37)[:, None] < 0.5  # for some queries, no key of the first part
    mask[5] = False  # a query that sees none
    bias = np.where(mask, normal(37, 75), np.float32(-np.inf)).astype(np.float32)
    bias[5, 70] = 0.0
    function = relay.relay(form)
    if symbolic:  # as after a call with other numbers of examples, queries and keys
        function._lower((q[:1, :8], k[:1, :16], v[:1, :16], mask[:8, :16], bias[:8, :16]), {}, symbolic=True)
    found, program = run_emulated(function, (q, k, v, mask, bias), symbolic=symbolic)
    # Sums of 75 terms in another order.
    assert_agree(found, function.interpret(q, k, v, mask, bias), rtol=2e-5, atol=2e-5)
    assert "attention" in rules(program) and not {"block_reduction", "tiled_product"} & set(rules(program))
    assert bool(program.host.launches[-1].sizes) == symbolic
    if not symbolic:
        taken = sum(n for b in program.host.blocks.values() for g in b.groups.values() for n in g.temporaries)
        assert taken < 4 * 2 * 37 * 75  # there is no place for the scores


@needs_compiler
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
def test_dtypes_and_heads(dtype: str) -> None:
    @relay.relay
    def heads(q, k, v):
        return relay.scaled_dot_product_attention(q, k, v, causal=True)

    arguments = tuple(normal(2, 3, 33, 16, dtype=dtype) for _ in range(3))
    found, program = run_emulated(heads, arguments)
    assert "attention" in rules(program)
    step = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float64": 1e-12}[dtype]
    assert_agree(found, heads.interpret(*arguments), rtol=2 * step, atol=2 * step)


@needs_compiler
def test_rows_without_numbers_are_as_in_the_interpreter() -> None:
    """Where all scores are -inf the softmax is NaN; NaN and infinity in one query stay in its row."""

    @relay.relay
    def biased(q, k, v, bias):
        return relay.masked_attention(q, k, v, bias)

    bias = np.zeros((16, 40), np.float32)
    bias[2], bias[3, :35], bias[4, 7], bias[5, 36] = -np.inf, -np.inf, np.nan, np.inf
    arguments = normal(16, 8), normal(40, 8), normal(40, 8), bias
    found, program = run_emulated(biased, arguments)
    assert "attention" in rules(program)
    expected = np.asarray(biased.interpret(*arguments))
    assert list(np.isnan(expected).all(axis=1).nonzero()[0]) == [2, 4, 5]
    assert_agree(found, expected, rtol=2e-5, atol=2e-5)


@needs_compiler
def test_what_is_no_attention() -> None:
    @relay.relay
    def others(q, k, v, mask):
        weights = relay.softmax(q @ k.T)
        normed = q @ k.T
        normed = (normed - relay.mean(normed, axis=1, keepdims=True)) @ v
        columns = relay.softmax(q @ k.T, axis=0) @ v
        ones = relay.where(mask, relay.softmax(q @ k.T), 1.0) @ v
        large = relay.softmax(q @ k.T) * relay.softmax(k @ q.T).T @ v
        turned = relay.softmax(q @ k.T).T @ q
        return weights @ v, weights, normed, columns, ones, large, turned, relay.argmax(relay.softmax(q @ v))

    arguments = normal(12, 12), normal(12, 12), normal(12, 12), RANDOM.random((12, 12)) < 0.5
    found, program = run_emulated(others, arguments)
    assert "attention" not in rules(program)
    assert_agree(found, others.interpret(*arguments), rtol=2e-5, atol=2e-5)


@needs_compiler
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_weights_that_are_rounded_to_half_precision_are_kept(dtype: str) -> None:
    """The operators compute in float32 throughout; by hand, scores and weights are rounded."""
    by_hand = relay.relay(lambda x: relay.softmax(x @ x.T) @ x)
    x = normal(20, 16, dtype=dtype)
    found, program = run_emulated(by_hand, (x,))
    assert "attention" not in rules(program)
    step = 2.0**-10 if dtype == "float16" else 2.0**-7
    assert_agree(found, by_hand.interpret(x), rtol=4 * step, atol=4 * step)


@needs_compiler
def test_missing_barriers_are_noticed() -> None:
    attend = relay.relay(lambda q, k, v: relay.scaled_dot_product_attention(q, k, v))
    arguments = normal(9, 8), normal(40, 8), normal(40, 8)
    _, program = run_emulated(attend, arguments)
    source = program.code.code.decode()
    places = [match.span() for match in re.finditer(r"__syncthreads\(\);", source)]
    assert len(places) == 5
    for start, end in places:
        changed = source[:start] + source[end:]
        with pytest.raises((AssertionError, DeadlockError), match="depends on the order"):
            run_emulated(attend, arguments, lambda _, text=changed: text)


def test_machine_code() -> None:
    pytest.importorskip("cuda.bindings.nvrtc", reason="NVRTC is not installed")
    attend = relay.relay(lambda q, k, v: relay.scaled_dot_product_attention(q, k, v, causal=True))
    program, source = kernels_of(attend.core(*(normal(2, 64, 64) for _ in range(3))), DEFAULT)
    made = machine_code(source, DEFAULT)
    for launch in program.launches:
        assert exceeded_resource(made.resources[launch.name], launch.threads, DEFAULT) is None
    (whole,) = (launch for launch in program.launches if launch.rule == "attention")
    assert made.resources[whole.name].shared_bytes == 4 * (32 * 65 + 32 * (65 + 64) + 2 * 32 * 33)
    assert made.resources[whole.name].registers <= 128  # so that two blocks fit a multiprocessor
