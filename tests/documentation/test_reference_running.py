"""Sentences of the page of running programs that no block of the page runs."""

from __future__ import annotations

import logging

import numpy as np
import pytest
from reference import says

import relay

X = np.arange(3.0)
PAGE = "running.md"


def test_one_more_program_serves_all_sizes(caplog: pytest.LogCaptureFixture) -> None:
    says(PAGE, "one more program is compiled in which these are symbolic, and it serves all sizes that satisfy its")
    says("types.md", "Axes of size 0 and 1 stay numbers")
    says("types.md", "call whose sizes satisfy the types and guards of a program reuses it; any other call recompiles")

    @relay.relay
    def doubled(x):
        return x * 2.0 if x.shape[0] < 100 else x

    def compiled(size: int) -> int:
        before = len(caplog.records)
        assert np.asarray(doubled(np.ones(size))).tolist() == [2.0 if size < 100 else 1.0] * size
        return len(caplog.records) > before

    with caplog.at_level(logging.INFO, "relay.compile"):
        assert [compiled(size) for size in (3, 5, 7, 60)] == [True, True, False, False]
        assert [compiled(size) for size in (1, 100, 9)] == [True, True, False]


def test_workspace_and_types_of_a_compiled_program() -> None:
    says(PAGE, "`executable.workspace` is the number of bytes that a call allocates beside its arguments and results")

    @relay.relay
    def chained(x, y):
        return relay.softmax(x @ y) @ x

    made = chained.compile(relay.Tensor[relay.Float64, (8, 8)], relay.Tensor[relay.Float64, (8, 8)])
    assert made.workspace is not None and made.workspace >= 8 * 8 * 8


def test_donated_arrays() -> None:
    says(PAGE, "An argument that shares memory with another one is refused")
    says(
        PAGE,
        "the interpreter, derivatives of the function and calls from other decorated functions leave arguments alone",
    )

    @relay.relay(donate_argnames="x")
    def step(x, y):
        return x + y

    x = np.ones(4)
    step.interpret(x, np.ones(4))
    assert x.tolist() == [1.0] * 4
    with pytest.raises(relay.RelayError, match="memory"):
        step(x, x)


def test_fallback() -> None:
    says(PAGE, "Mistakes in the program raise the same errors with and without fallback")

    @relay.relay(fallback="interpret")
    def wrong(x):
        return x + "text"

    with pytest.raises(relay.RelayError):
        wrong(X)
