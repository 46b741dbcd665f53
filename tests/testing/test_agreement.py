"""Assertions for users' tests tell what differs."""

from __future__ import annotations

import numpy as np
import pytest

import relay
from relay.testing import assert_agree, assert_modes_agree, check_gradient


@relay
def energy(x):
    return (x * relay.sin(x)).sum()


def test_modes_agree_with_gradients_and_with_what_is_expected() -> None:
    x = np.linspace(-1.0, 1.0, 4)
    assert_modes_agree(energy, x, expected=(x * np.sin(x)).sum(), gradient=True)
    with pytest.raises(AssertionError, match="Not equal to tolerance"):
        assert_modes_agree(energy, x, expected=1.0)


@pytest.mark.parametrize(
    ("found", "expected", "message"),
    [
        ((1.0,), [1.0], "a tuple instead of a list"),
        ((1.0, 2.0), (1.0,), "2 parts instead of 1"),
        (np.float32(1.0), np.float64(1.0), r"float32 \(\) instead of float64 \(\)"),
        (None, 1.0, "None instead of 1.0"),
        (np.array([1, 2]), np.array([1, 3]), "Mismatched elements"),
    ],
)
def test_what_differs_is_said(found: object, expected: object, message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        assert_agree(found, expected)


def test_gradients_are_checked_by_the_same_function() -> None:
    assert check_gradient is relay.check_gradient
