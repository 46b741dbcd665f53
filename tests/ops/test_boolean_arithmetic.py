"""What NumPy's functions of numbers give of booleans alone, and of booleans beside integer literals."""

from __future__ import annotations

import numpy as np
import pytest

import relay
from relay import TypeMismatch

MASKS = {"b": np.array([[True, False, True], [False, False, True]]), "c": np.array([True, True, False])}
FORMS = (
    *("b.max(axis=0)", "b.min()", "b.argmax(axis=1)", "np.argmin(b, axis=0)", "b.max(axis=1, keepdims=True)"),
    *("b * c", "b + c", "np.maximum(b, c)", "np.minimum(b, c)", "np.multiply(b, True)"),
    *("b == 0", "b != 0", "b > 0", "b <= 1", "b == 1", "b & 1", "b ^ 1", "np.where(b, c, 0)", "np.maximum(b, 0)"),
    *("np.full_like(b, 3)", "np.full((2,), 2, dtype=bool)", "np.full_like(b, 0)"),
)


def program(texts: tuple[str, ...]) -> relay.RelayFunction:
    found = relay.from_source(f"def f(b, c):\n    return {', '.join(texts)},\n", {"np": np})
    assert isinstance(found, relay.RelayFunction)
    return found


@pytest.mark.parametrize("compiled", [False, True])
def test_as_in_numpy(compiled: bool) -> None:
    f = program(FORMS)
    for text, found in zip(FORMS, (f if compiled else f.interpret)(*MASKS.values()), strict=True):
        expected = eval(text, {"np": np, **MASKS})
        assert (found.dtype == np.bool_) == (expected.dtype == np.bool_), text
        np.testing.assert_array_equal(found, expected, err_msg=text)


@pytest.mark.parametrize("text", ["b.any() + c.all()", "b[0, 0] * c[0]", "True + True"])
def test_single_booleans_are_no_numbers(text: str) -> None:
    """Python's sum of two is an integer, and NumPy's a boolean."""
    with pytest.raises(TypeMismatch, match="found bool"):
        program((text,)).interpret(*MASKS.values())


@pytest.mark.parametrize("text", ["-b", "b - c", "b << 40"])
def test_what_numpy_refuses(text: str) -> None:
    with pytest.raises(TypeMismatch, match="found bool"):
        program((text,)).interpret(*MASKS.values())
