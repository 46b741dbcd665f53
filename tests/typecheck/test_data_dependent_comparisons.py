"""Data-dependent sizes in comparisons and in new shapes: the run decides, whatever shape rules take for granted."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from agreement import assert_modes_agree

import relay
from relay import relay as decorated

TESTS = [
    "len(y) == 0",
    "len(y) == 1",
    "len(y) != 1",
    "len(y) > 1",
    "1 >= len(y)",
    "y.shape[0] < 1",
    "y.size == 1",
    "len(y) == len(x)",
    "len(y) == len(x) - 2",
    "len(y) * 2 == 2",
    "len(y) + 1 == 1",
    "len(y) % 2 == 1",
    "len(y) // 2 == 0",
    "y.shape == (1,)",
    "y.shape == x.shape",
    "len(y) in (0, 1)",
    "0 < len(y) < 2",
    "bool(len(y))",
    "min(len(y), 1) == 1",
    "max(len(y), 1) == 1",
    "len(y) == k",
]
POINTS = [np.zeros(3), np.array([0.0, 0.0, 2.0]), np.array([0.0, 3.0, 2.0]), np.array([3.0, 3.0, 2.0])]


def program(test: str) -> str:
    return f"def f(x, k):\n    y = x[x > 1.0]\n    if {test}:\n        return 1.0\n    return 2.0\n"


@pytest.mark.parametrize("test", TESTS)
def test_they_are_decided_when_the_program_runs(test: str) -> None:
    names: dict[str, Any] = {}
    exec(program(test), names)
    function: Any = relay.from_source(program(test))
    for x in POINTS:
        expected = names["f"](x, np.int64(1))
        assert float(function(x, np.int64(1))) == expected, x
        assert float(function.interpret(x, np.int64(1))) == expected, x


@decorated
def last_of_the_sorted(x):
    y = np.sort(x[x > 1.0])
    if len(y) == 0:
        return 0.5
    return y[-1] * y[-1]


def test_what_comes_after_an_early_return_needs_its_sizes_there_only() -> None:
    for x in POINTS:
        assert_modes_agree(last_of_the_sorted, x)
    assert float(last_of_the_sorted(POINTS[0])) == 0.5
    gradient = relay.grad(last_of_the_sorted)
    np.testing.assert_array_equal(gradient(POINTS[0]), np.zeros(3))
    np.testing.assert_array_equal(gradient(POINTS[2]), [0.0, 6.0, 0.0])


@decorated
def reduced(x):
    y = x[x > 1.0]
    while len(y) > 1:
        y = y[1:] + y[:-1]
    return relay.sum(y) if len(y) == 1 else -1.0


def test_loops_end_by_them() -> None:
    for x, expected in zip(POINTS, [-1.0, 2.0, 5.0, 11.0], strict=True):
        assert float(reduced(x)) == float(reduced.interpret(x)) == expected


@decorated
def in_rows(x, n):
    return x.reshape(n, -1).sum(axis=1), x.reshape(n, x.size // n).sum(axis=0)


def test_arrays_are_reshaped_to_as_many_axes_of_other_extents() -> None:
    x = np.arange(24.0).reshape(4, 6)
    for n in (1, 2, 3, 4, 24):
        rows = x.reshape(n, -1)
        for found, expected in zip(in_rows(x, np.int32(n)), (rows.sum(axis=1), rows.sum(axis=0)), strict=True):
            np.testing.assert_array_equal(found, expected)
        for found, expected in zip(
            in_rows.interpret(x, np.int32(n)), (rows.sum(axis=1), rows.sum(axis=0)), strict=True
        ):
            np.testing.assert_array_equal(found, expected)
    with pytest.raises(relay.ExecutionError, match="cannot be divided among the extents"):
        in_rows(x, np.int32(5))


@decorated
def one_element(x):
    y = x[x > 1.0]
    return y[0] * y[0] if len(y) == 1 else relay.sum(x)


@decorated
def row_of_two(x):
    y = x[x > 1.0]
    if y.shape == (2,):
        return relay.sum(y @ [[1.0, 2.0], [3.0, 4.0]])
    return relay.sum(x)


@decorated
def square_of_four(x):
    y = x[x > 1.0]
    if len(y) == 4:
        rows = y.reshape(2, 2)
        return relay.sum(rows @ rows)
    return relay.sum(x)


@pytest.mark.parametrize("function", [one_element, row_of_two, square_of_four], ids=lambda f: f.__name__)
def test_an_arm_relies_on_the_size_that_its_condition_names(function: Any) -> None:
    gradient = relay.grad(function)
    for x in [*POINTS, np.array([3.0, 2.0, 4.0, 5.0])]:
        expected = float(function.python(x))
        assert float(function(x)) == float(function.interpret(x)) == expected
        step = 1e-6
        slopes = [
            (float(function.python(x + d)) - float(function.python(x - d))) / (2 * step) for d in step * np.eye(len(x))
        ]
        found = assert_modes_agree(gradient, x)
        np.testing.assert_allclose(found, slopes, rtol=1e-6, atol=1e-6)
