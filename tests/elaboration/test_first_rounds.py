"""`total = 0.0` before a loop that adds arrays: the first round makes an array of the number, as in NumPy. And a value
of what was None."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import pytest
from agreement import assert_modes_agree

import relay as R
from relay import TypeMismatch, relay

PROGRAMS = {
    "rows": ("total = 0.0\n    for x in xs:\n        total += x", "total"),
    "integers": ("total = 0\n    for x in xs:\n        total = total + x", "total"),
    "numbers": ("total = 0.0\n    for i in range(1, 100, 3):\n        total = total + xs[i % 3] * i", "total"),
    "maxima": ("best = -np.inf\n    for x in xs:\n        best = np.maximum(best, x)", "best"),
    "a choice": ("n, t = 0, 0.0\n    for i, x in enumerate(xs):\n        t = t + x\n        if x[0] > 2:\n"
                 "            continue\n        n += i + 1", "t, n"),
    "leaving": ("t = 0.0\n    for a, b in zip(xs, xs[1:]):\n        t = t + a * b\n        if t[0] > 2:\n"
                "            break", "t"),
    "nested": ("t = 0.0\n    for x in xs:\n        for j in reversed(range(3)):\n            t = t * 0.5 + x * j", "t"),
    "lists": ("t, ts = 0.0, []\n    for i in range(40):\n        t = t + xs[i % 3]\n        ts.append(t)",
              "np.stack(ts), ts[1], len(ts)"),
    "outer products": ("t = 0.0\n    for x in xs:\n        t = t + x[:, None] * x", "t"),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_number_becomes_an_array_in_the_first_round(name: str) -> None:
    body, result = PROGRAMS[name]
    text = f"def f(xs):\n    {body}\n    return {result}\n"
    scope: dict[str, Any] = {"np": np}
    exec(text, scope)
    function = R.from_source(text, {"np": np})
    xs = np.arange(1, 7, dtype=np.float32).reshape(3, 2)
    found, interpreted, wanted = function(xs), function.interpret(xs), scope["f"](xs)
    several = isinstance(wanted, tuple)
    for one, other, number in zip(*((v if several else (v,)) for v in (found, interpreted, wanted)), strict=True):
        np.testing.assert_allclose(one, number, rtol=1e-6)
        np.testing.assert_allclose(other, number, rtol=1e-6)
        assert np.shape(one) == np.shape(number)
        assert one.dtype == other.dtype == (np.float32 if np.ndim(number) else np.int32)


@relay(dynamic=True)
def weighted(xs, w):
    total = 0.0
    for x in xs:
        total = total * w + x
    return total


def test_sizes_decide_whether_there_is_a_round(caplog: pytest.LogCaptureFixture) -> None:
    """One program for several sizes; of no rows the result is the number."""
    with caplog.at_level(logging.INFO, "relay.compile"):
        for rows in (3, 7, 4):
            xs = np.random.default_rng(rows).standard_normal((rows, 2))
            wanted = sum(x * 0.5 ** (rows - 1 - n) for n, x in enumerate(xs))
            np.testing.assert_allclose(weighted(xs, 0.5), wanted, rtol=1e-12)
    assert sum("with sizes" in record.getMessage() for record in caplog.records) == 1
    assert weighted(np.zeros((0, 2)), 0.5).shape == weighted.interpret(np.zeros((0, 2)), 0.5).shape == ()


def test_derivatives_go_through_the_first_round() -> None:
    loss = relay(lambda xs, w: R.sum(weighted(xs, w) ** 2))
    xs = np.random.default_rng(0).standard_normal((4, 2))
    for found, wanted in zip(R.grad(loss)(xs, 0.5), R.grad(loss).interpret(xs, 0.5), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-12)
    assert R.check_gradient(loss, xs, 0.5)


COUNTED_IN_THE_RUN = {
    "a number of the run": "for i in range(n):\n        total = total + xs[i]",
    "a condition": "while n > 0:\n        total, n = total + xs[0], n - 1",
    "a list of the run": "for x in [x for x in xs if x[0] > 0.0]:\n        total = total + x",
}


@pytest.mark.parametrize("name", COUNTED_IN_THE_RUN)
def test_a_run_time_number_of_rounds_is_refused(name: str) -> None:
    text = f"def f(xs, n):\n    total = 0.0\n    {COUNTED_IN_THE_RUN[name]}\n    return total\n"
    with pytest.raises(
        TypeMismatch, match=r"total from .*, \(\)\] to .*, \(2,\)\](.|\n)*start with an array"
    ) as caught:
        R.from_source(text)(np.ones((3, 2)), np.int32(2))
    assert "np.zeros(..) or relay.zeros_like(..)" in str(caught.value)


def test_an_array_that_grows_further_is_refused() -> None:
    text = "def f(xs):\n    t = 0.0\n    for x in xs:\n        t = R.expand_dims(t + x[0], 0)\n    return t\n"
    with pytest.raises(TypeMismatch, match="a loop's variables keep their types"):
        R.from_source(text, {"R": R})(np.ones((3, 2)))


# ---- None before the loop

OF_NONE = """
def best(xs):
    found = None
    for i, x in enumerate(xs):
        if found is None or x > xs[found]:
            found = i
    return found

def steps(xs):
    previous, total = None, 0.0
    for x in xs:
        if previous is not None:
            total += abs(x - previous)
        previous = x
    return total, previous

def pairs(xs):
    state = None
    for x in xs:
        if state is None:
            state = (x, 1)
        else:
            state = (state[0] + x, state[1] + 1)
    return state

def decayed(xs):
    hidden = None
    for x in xs:
        hidden = x * 0.5 if hidden is None else 0.9 * hidden + x
    return hidden * hidden
"""


@pytest.mark.usefixtures("low_effort")
def test_none_becomes_a_value_in_the_first_round() -> None:
    scope: dict[str, Any] = {}
    exec(OF_NONE, scope)
    functions = R.from_source(OF_NONE)
    for xs in (np.array([3.0, 1.0, 4.0, 1.0]), np.array([1.0]), np.array([3.0, 1.0, 4.0, 1.0, 5.0])):
        for name in ("best", "steps", "pairs", "decayed"):
            assert_modes_agree(functions[name], xs, expected=scope[name](xs))
    assert assert_modes_agree(functions["best"], np.zeros(0)) is None
    xs = np.array([3.0, 1.0, 4.0])
    np.testing.assert_allclose(R.grad(functions["decayed"])(xs), R.grad(functions["decayed"]).interpret(xs))


# ---- no rounds


def test_a_body_that_does_not_fit_empty_arrays_is_left_out_if_it_has_no_rounds() -> None:
    """As Python does not run it: its mistakes are told where there are rounds."""
    text = """
def f(rows):
    total = 0.0
    for row in rows:
        total += row.max() * rows[0, 0]
        total += np.stack([r * 2 for r in rows]).sum()
    return total
"""
    function = R.from_source(text, {"np": np})
    for shape in ((0, 4), (0, 0), (3, 4)):
        rows = np.ones(shape)
        assert_modes_agree(function, rows, expected=0.0 if shape[0] == 0 else 3 * (1.0 + 24.0))
    with pytest.raises(R.RelayError, match="is out of range for axis 0"):
        R.from_source("def f(x):\n    for i in range(2):\n        x = x + x[7]\n    return x\n")(np.ones(3))


@pytest.mark.parametrize(("shape", "axis"), [((0,), None), ((0, 4), 0), ((0, 4), 1), ((4, 0), 1)])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_the_median_of_nothing_is_nan(shape: tuple[int, ...], axis: int | None) -> None:
    function = R.from_source(f"def f(x):\n    return np.median(x, axis={axis})\n", {"np": np})
    x = np.zeros(shape)
    np.testing.assert_array_equal(assert_modes_agree(function, x), np.median(x, axis=axis))
