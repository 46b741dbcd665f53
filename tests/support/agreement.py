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

import numpy as np
import pytest

import relay as rl
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
    "assert_as_python",
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


def _flat(value: Any) -> list[Any]:
    """The leaves of a result."""
    if isinstance(value, tuple | list):
        return [leaf for item in value for leaf in _flat(item)]
    return [value if isinstance(value, str) else np.asarray(value).tolist()]


def assert_as_python(function: Any, program: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    """A decorated function gives, interpreted and compiled, what Python gives for the plain one."""
    expected = _flat(program(*arguments))
    for run in (function.interpret, function):
        found = _flat(run(*arguments))
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            assert one == (other if isinstance(other, str) else pytest.approx(other)), (program.__name__, arguments)


def same(f, *arguments, **keywords):
    """The result, which is the same interpreted, compiled, and as Python computes it."""
    compiled, interpreted = f(*arguments, **keywords), f.interpret(*arguments, **keywords)
    with rl.as_python():
        expected = f(*arguments, **keywords)
    for found in (compiled, interpreted):
        leaves, wanted = rl.tree.leaves(found), rl.tree.leaves(expected)
        assert len(leaves) == len(wanted)
        for a, b in zip(leaves, wanted, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-6)
    return compiled
