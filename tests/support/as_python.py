"""What Python gives for a function, against what Relay gives for the same one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest


def flat(value: Any) -> list[Any]:
    """The leaves of a result."""
    if isinstance(value, tuple | list):
        return [leaf for item in value for leaf in flat(item)]
    return [value if isinstance(value, str) else np.asarray(value).tolist()]


def assert_as_python(function: Any, program: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    """A decorated function gives, interpreted and compiled, what Python gives for the plain one."""
    expected = flat(program(*arguments))
    for run in (function.interpret, function):
        found = flat(run(*arguments))
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            assert one == (other if isinstance(other, str) else pytest.approx(other)), (program.__name__, arguments)
