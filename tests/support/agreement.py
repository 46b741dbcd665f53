"""Whether the modes agree: interpreted, compiled, at each level of optimization, differentiated.

assert_modes_agree(f, x, y)                        compiled gives what the interpreter gives
assert_modes_agree(f, x, y, expected=np.sin(x))    and both are this
assert_modes_agree(f, x, y, levels=(0, 3), gradient=True, calls=2)

assert_modes_raise(f, x, y, error=ExecutionError, match="out of range")

assert_agree(found, expected)    two answers of Relay: the same structures, dtypes and shapes, and nearly the same
                                 numbers
assert_close(found, expected)    an answer and what NumPy, or Python, says: nearly the same numbers
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from relay.testing.agreement import (
    RELATIVE,
    ROUNDING,
    Tolerances,
    assert_agree,
    assert_close,
    assert_modes_agree,
    at_level,
    leaves,
    parts_of,
)

__all__ = [
    "RELATIVE",
    "ROUNDING",
    "Tolerances",
    "assert_agree",
    "assert_close",
    "assert_modes_agree",
    "assert_modes_raise",
    "at_level",
    "leaves",
    "modes",
    "parts_of",
]


def modes(function: Any) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """What calls a decorated function compiled, and what has the interpreter run it: `for run in modes(f): run(x)`."""
    return function, function.interpret


def assert_modes_raise(
    function: Any, *arguments: Any, error: type[Exception], match: str | None = None
) -> list[pytest.ExceptionInfo[Exception]]:
    """A decorated function raises the same, compiled and interpreted. Returns what was caught."""
    caught = []
    for run in modes(function):
        with pytest.raises(error, match=match) as info:
            run(*arguments)
        caught.append(info)
    return caught
