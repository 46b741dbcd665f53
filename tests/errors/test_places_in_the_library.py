"""Errors in functions of the library are at the user's calls of them, compiled and interpreted."""

from __future__ import annotations

import numpy as np
import pytest
from agreement import assert_modes_raise

import relay as rl

A, B = np.array([7, -7, 3]), np.array([2, 0, 1])

TEXTS = {
    "np.divmod(a, b)": "ZeroDivisionError",
    "np.fmod(a, b)": "ZeroDivisionError",
    "np.divmod(a, abs(b) + 1)[0] + np.divmod(a, b)[1]": "ZeroDivisionError",
    "np.delete(a, b[0] + 70)": "IndexError",
    "np.histogram(a / (b - b))": "ValueError",
    "np.take_along_axis(a, b * 100, 0)": "IndexError",
    "sum(map(lambda q: np.fmod(q, b[1]), a))": "ZeroDivisionError",
    "divided(a, b + 1) + divided(a, b)": "ZeroDivisionError",
}
LINE = {"divided(a, b + 1) + divided(a, b)": 3}
"""The line of the error, if it is not the last one."""


@pytest.mark.parametrize("level", [0, 3])
@pytest.mark.parametrize("expression", TEXTS)
def test_errors_are_at_the_users_calls(expression: str, level: int) -> None:
    text = f"""@relay(opt_level={level})
def divided(a, b):
    return np.fmod(a, b)

@relay(opt_level={level})
def f(a, b):
    return {expression}
"""
    f = rl.from_source(text, {"np": np, "relay": rl})["f"]
    for caught in assert_modes_raise(f, A, B, error=rl.ExecutionError):
        error = caught.value
        assert isinstance(error, rl.ExecutionError) and type(error).__name__ == TEXTS[expression]
        assert error.span is not None and not error.span.is_internal
        assert error.span.line == LINE.get(expression, 7)
        assert all(label.span != error.span for label in error.labels)


def test_a_place_of_several_is_told() -> None:
    text = "def f(a, b):\n    c = np.fmod(a, b + 1)\n    return np.fmod(c, b + 2) + np.fmod(a, b)\n"
    f = rl.from_source(text, {"np": np})
    for caught in assert_modes_raise(f, A, B, error=rl.ExecutionError):
        assert "np.fmod(a, b)\n" in str(caught.value) and " ^^^^^^^^^^^^^" in str(caught.value)
        assert str(caught.value.span).endswith(":3:32")
