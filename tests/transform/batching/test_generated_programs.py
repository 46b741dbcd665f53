"""Random programs under `relay.vmap`: batched they give what each example gives, and so do their derivatives.

The passes are run, and what they make is interpreted, so that many programs take little time.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from agreement import assert_agree
from example_programs import example_program
from hypothesis import given, settings
from hypothesis import strategies as st
from matrix import everything

import relay
from relay.eval.interpreter import run
from relay.transform.pipeline import PHASES, Pipeline

EXAMPLES = 400 if everything() else 6
AXES = st.sampled_from([0, 1, -1])


def _optimized(f: relay.RelayFunction, *arguments: Any) -> Any:
    """What the optimized program gives, on the interpreter."""
    module = Pipeline.for_level(2, PHASES, checked=True)(f.typed(*arguments))
    return run(module, [np.asarray(a) for a in arguments])


def _arguments(seed: int, *sizes: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(3, 3)), rng.normal(size=(*sizes, 3)), rng.integers(0, 6, sizes).astype(np.int32)


def _assert_same(found: Any, expected: Any, text: str) -> None:
    for left, right in zip(relay.tree.leaves(found), relay.tree.leaves(expected), strict=True):
        assert_agree(np.asarray(left), np.asarray(right), rtol=1e-8, atol=1e-9, what=text)


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.integers(0, 10**6), AXES, AXES, st.booleans())
def test_values(seed: int, in_axis: int, out_axis: int, twice: bool) -> None:
    text = example_program(seed)
    f = relay.from_source(text, {"np": np})
    batch = relay.vmap(f, (None, in_axis, 0), (out_axis, 0))
    if twice:
        batch = relay.vmap(batch, (None, 0, 0))
    w, x, k = _arguments(seed, *((2, 5) if twice else (5,)))
    x = np.moveaxis(x, -2, in_axis if in_axis < 0 else in_axis + twice)
    _assert_same(_optimized(batch, w, x, k), batch.interpret(w, x, k), text)


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.integers(0, 10**6), st.booleans())
def test_derivatives(seed: int, inside: bool) -> None:
    text = example_program(seed)
    f = relay.from_source(text, {"np": np})
    batch = relay.vmap(f, (None, 0, 0))

    def single(w, x, k):  # type: ignore[no-untyped-def]
        y, s = f(w, x, k)
        return (y**2).sum() + s

    def whole(w, x, k):  # type: ignore[no-untyped-def]
        y, s = batch(w, x, k)
        return (y**2).sum() + s.sum()

    gradient = (
        relay.vmap(relay.grad(relay.relay(single), wrt=1), (None, 0, 0))
        if inside
        else relay.grad(relay.relay(whole), wrt=(0, 1))
    )
    w, x, k = _arguments(seed, 4)
    _assert_same(_optimized(gradient, w, x, k), gradient.interpret(w, x, k), text)
