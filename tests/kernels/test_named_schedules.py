"""`@relay(schedule=..)`: kernels chosen by the names of values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import relay
from relay.ir.expr import OpCall
from relay.ir.traverse import walk

X = np.linspace(-1, 1, 32 * 48, dtype=np.float32).reshape(32, 48)


def program(x, w):  # type: ignore[no-untyped-def]
    y = relay.exp(x) * 2.0
    for _ in range(2):
        z = y @ w
        y = relay.tanh(relay.stop_fusion(z @ w.T))
    return y.sum()


SCHEDULES = {"y": {"tile": (8, 16), "unroll": True}, "z": {"rows": 2, "vectors": 2}}


def test_values_are_scheduled_wherever_they_are_assigned() -> None:
    scheduled, plain = relay.relay(schedule=SCHEDULES)(program), relay.relay(program)
    w = X.T.copy()
    calls = [b.value for b in walk(scheduled.lower(X, w).typed.main.body) if isinstance(b.value, OpCall)]
    tiles = [c.attributes["tile"] for c in calls if c.operator == "schedule"]
    assert tiles == [(8, 16), (), (8, 16)]
    assert scheduled(X, w) == pytest.approx(float(plain.interpret(X, w)), rel=1e-5)
    slope = relay.grad(scheduled, wrt=0)
    np.testing.assert_allclose(slope(X, w), relay.grad(plain, wrt=0).interpret(X, w), rtol=1e-4, atol=1e-5)


def test_what_a_scheduled_kernel_reads_is_made_before_it() -> None:
    """Another group that reads the same may become one with what makes it, but not behind the scheduled kernel."""

    @relay.relay
    def both(x):  # type: ignore[no-untyped-def]
        e = relay.exp(x)
        y = relay.schedule(e * 2.0, tile=(8, 16))
        return y.sum(), (e * e).sum(), e

    for found, expected in zip(both(X), (2 * np.exp(X).sum(), np.exp(2 * X).sum(), np.exp(X)), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-5)


@pytest.mark.parametrize(
    ("schedule", "message"),
    [
        ({"yy": {}}, "computes no tensor 'yy' to schedule.*did you mean 'y'"),
        ({"y": {"tiles": (8, 16)}}, "the schedule of 'y': schedule has no argument 'tiles'"),
        ({"y": {"tile": (8,)}}, "the schedule of 'y': a tile has a length for each axis: 2"),
        ({"y": 8}, "a schedule is a dict of the options of relay.schedule by name"),
    ],
)
def test_mistakes(schedule: Any, message: str) -> None:
    with pytest.raises(relay.CompileError, match="(?s)" + message):
        relay.relay(schedule=schedule)(program)(X, X.T.copy())
