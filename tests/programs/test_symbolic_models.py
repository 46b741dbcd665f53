"""Parts of models, and their gradients, with all sizes symbolic: the program of one batch serves another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from agreement import assert_close

import relay as R
from relay import relay
from relay.compilation.stages import to_core
from relay.eval import interpreter
from relay.ir.sizes.extents import symbolic_dims
from relay.ir.validation.check import check


def normal(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def convolution(x, w):
    return (R.conv2d(x, w, padding=1) ** 2.0).sum()


def pooled(x):
    return R.max_pool2d(x, 2).mean()


def embedded(table, indices):
    return R.take(table, indices, axis=0).sum()


def log_likelihood(x):
    return R.log_softmax(x)[:, 0].mean()


def variance(x):
    return ((x - x.mean(axis=0)) ** 2.0).mean(axis=0).sum()


def attention(q, k, v):
    return (R.softmax(q @ k.T / (k.shape[1] ** 0.5)) @ v).sum()


def cumulative(x):
    sums, total = R.zeros(x.shape), 0.0
    for i in range(x.shape[0]):
        total = total + x[i]
        sums[i] = total
    return sums.sum()


def next_tokens(table, tokens):
    rows = R.take(table, tokens[:, :-1], axis=0)
    logits = rows @ table.T
    return R.cross_entropy(logits.reshape((-1, logits.shape[-1])), tokens[:, 1:].reshape(-1)).mean()


def masked(x):
    return R.where(R.arange(x.shape[0]) < 2, x, 0.0).sum()


@pytest.mark.parametrize(
    ("function", "arguments", "symbolic"),
    [
        (convolution, (normal(4, 3, 6, 6), normal(5, 3, 3, 3)), 5),
        (pooled, (normal(4, 3, 8, 8),), 4),
        (embedded, (normal(10, 4), np.array([1, 2, 9], np.int32)), 3),
        (log_likelihood, (normal(4, 5),), 2),
        (variance, (normal(4, 5),), 2),
        (attention, (normal(4, 6), normal(5, 6), normal(5, 7)), 4),
        (cumulative, (normal(4),), 1),
        (masked, (normal(4),), 1),
        (next_tokens, (normal(8, 6), np.array([[1, 5, 2, 7], [0, 3, 4, 6]], np.int32)), 4),
    ],
    ids=lambda part: getattr(part, "__name__", ""),
)
def test_one_program_serves_other_batches(
    function: Callable[..., Any], arguments: tuple[np.ndarray, ...], symbolic: int
) -> None:
    longer = (np.concatenate([arguments[0], arguments[0][:2]]), *arguments[1:])
    for make in (lambda f: f, lambda f: R.grad(f, 0)):
        dynamic, concrete = make(relay(dynamic=True)(function)), make(relay(function))
        lowered = dynamic.lower(*arguments)
        assert len(symbolic_dims(lowered.typed)) == symbolic
        again = dynamic.lower(*longer)
        assert again.typed is lowered.typed
        core = to_core(lowered.typed, 2)
        check(core, "structured")
        expected = concrete.interpret(*longer)
        assert_close(interpreter.run(core, again.values), expected, rtol=1e-4, atol=1e-5)
        assert_close(interpreter.run(lowered.typed, again.values), expected, rtol=1e-4, atol=1e-5)
