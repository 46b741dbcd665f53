"""What the tests compare the modes with finds what differs."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from agreement import assert_agree, assert_close, assert_modes_agree

from relay import relay

X = np.array([1.0, -2.0])


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (X, X + 1e-9),
        (X, X.astype(np.float32)),
        (X, X[None]),
        (X, np.array([1.0, np.nan])),
        (np.int32(3), np.int32(4)),
        (np.int32(3), np.int64(3)),
        (np.float32(1), np.float32(1.00001)),
        (ml_dtypes.bfloat16(1), ml_dtypes.bfloat16(1.05)),
        ((X, X), (X,)),
        ((X, X), [X, X]),
        ({"a": X}, {"a": X + 1.0}),
        (None, X),
        (X, None),
    ],
    ids=str,
)
def test_answers_that_differ(found: Any, expected: Any) -> None:
    with pytest.raises(AssertionError):
        assert_agree(found, expected)


def test_answers_that_agree() -> None:
    assert_agree({"a": (X, None), "b": [np.int32(3)]}, {"a": (X + 1e-13, None), "b": [np.int32(3)]})
    assert_agree(np.float16(1), np.float16(1.001))
    assert_close(X, [1.0, -2.0])
    for found, expected in (((X,), (X, X)), ((None, X), (X, X)), (X, [1.0, -2.1])):
        with pytest.raises(AssertionError):
            assert_close(found, expected)


class Modes:
    """A function with an error in one mode."""

    def __init__(self, compiled: list[float], interpreted: float) -> None:
        self.compiled, self.interpreted = compiled, interpreted

    def __call__(self, x: Any) -> Any:
        return x * self.compiled.pop(0)

    def interpret(self, x: Any) -> Any:
        return x * self.interpreted


def test_modes_that_differ() -> None:
    assert_modes_agree(Modes([2.0, 2.0], 2.0), X, calls=2, expected=2.0 * X)
    for function, how in (
        (Modes([2.1], 2.0), {}),
        (Modes([2.0, 2.1], 2.0), {"calls": 2}),
        (Modes([2.0], 2.0), {"expected": 2.1 * X}),
        (Modes([2.0 + 1e-12], 2.0), {"rtol": 0.0}),
    ):
        with pytest.raises(AssertionError):
            assert_modes_agree(function, X, **how)


def test_levels_and_gradients() -> None:
    @relay
    def energy(x):
        return (x * x).sum()

    found = assert_modes_agree(energy, X, expected=5.0, levels=(0,), gradient=True)
    assert float(found) == 5.0
