"""Code that may not run reads elements of axes that have none: an error only where it runs, as in NumPy."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from agreement import assert_modes_agree

import relay
from relay import ExecutionError, ShapeError
from relay import relay as decorated

READS: dict[str, Callable[..., object]] = {
    "first": lambda x: x[0],
    "last": lambda x: x[-1],
    "listed": lambda x: x[[0, -1]].sum(),
    "remainder": lambda x: x[7 % len(x)],
    "quotient": lambda x: x[7 // len(x)],
    "max": lambda x: x.max(),
    "argmin": lambda x: x.argmin() * 1.0,
    "ptp": lambda x: np.ptp(x),
    "median": lambda x: np.median(x),
}


@decorated
def after_rounds(x, n, read):
    total = 0.0
    for _ in range(n):
        total += read(x)
        x[0] = total
        x[[0, -1]] *= 2.0
    if n > 3:
        return x.max(), x
    return total, x


@pytest.mark.parametrize("name", READS)
def test_a_loop_without_rounds(name: str) -> None:
    value, array = after_rounds.interpret(np.zeros(0), 0, READS[name])
    assert value == 0.0 and array.shape == (0,)
    with pytest.raises(ExecutionError, match=r"out of range|an axis is empty|division by zero|modulo by zero"):
        after_rounds.interpret(np.zeros(0), 1, READS[name])


@decorated
def of_some_axes(x, n):
    if n == 0:
        return x.sum(axis=1), x.sum(axis=0)
    return x.max(axis=1) + x[:, -1], x[0] + x[[0, -1], 0].sum()


def test_all_of_it() -> None:
    def every(x, n):
        total = 0.0
        for _ in range(n):
            total += x[0] + x[-1] + x[[0, -1]].sum() + x[7 % len(x)] + x.max() + x.argmin() + np.ptp(x)
            x[-1] = total
        return total, of_some_axes(x[:, None], n)

    assert_modes_agree(decorated(every), np.zeros(0), 0)
    assert_modes_agree(relay.grad(decorated(every), output=0), np.zeros(0), 0)


def test_what_runs_in_any_case_is_refused() -> None:
    with pytest.raises(ShapeError, match="index 0 is out of range"):
        decorated(lambda x, n: x[0] * n).interpret(np.zeros(0), 0)
    with pytest.raises(ShapeError, match="there is no largest or smallest element") as caught:
        decorated(lambda x, n: x.max() * n).interpret(np.zeros(0), 0)
    assert caught.type is ShapeError


def test_an_array_of_nothing() -> None:
    @decorated
    def doubled(x):
        return np.array([2.0 * v for v in x]) + x, np.array([])

    for size in (0, 2):
        both, none = doubled.interpret(np.ones(size))
        assert both.dtype == np.float64 and both.tolist() == [3.0] * size and none.shape == (0,)


def test_remainders_of_numbers_are_of_any_float_dtype() -> None:
    assert decorated(lambda x: np.fmod(1.75, 0.5) * x).interpret(np.ones(1))[0] == 0.25
