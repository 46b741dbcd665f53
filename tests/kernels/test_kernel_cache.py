"""What one program has made of a group of operators is used again by the next one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import relay
from relay.codegen.kernels import kernels

X = np.linspace(-1.0, 1.0, 12, dtype=np.float32).reshape(3, 4)


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """What is built anew, where nothing has been built before."""
    found: list[object] = []
    build = kernels._build

    def counting(group: Any, *rest: Any) -> Any:
        found.append(group)
        return build(group, *rest)

    monkeypatch.setenv("RELAY_VERIFY", "0")  # which builds kernels
    monkeypatch.setattr(kernels, "_build", counting)
    monkeypatch.setattr(kernels, "_made", {})
    return found


def function(text: str) -> Any:
    return relay.from_source(f"def f(x): return {text}", {"relay": relay})


def test_equal_kernels_are_built_once(built: list[object]) -> None:
    first = function("relay.tanh(x) * 2.0")(X)
    assert len(built) == 1
    np.testing.assert_array_equal(first, function("relay.tanh(x) * 2.0")(X))
    assert len(built) == 1


@pytest.mark.parametrize("other", ["relay.tanh(x) * 3.0", "relay.tanh(x) + 2.0", "relay.tanh(2.0) * x"])
def test_others_are_not_taken_for_them(built: list[object], other: str) -> None:
    function("relay.tanh(x) * 2.0")(X)
    made = function(other)
    np.testing.assert_allclose(made(X), made.interpret(X), rtol=2e-6)
    assert len(built) == 2


def test_sizes_and_dtypes_tell_them_apart(built: list[object]) -> None:
    made = function("relay.tanh(x) * 2.0")
    for x in (X, X.astype(np.float64), X[:2].copy()):
        found = made(x)
        assert found.dtype == x.dtype
        np.testing.assert_allclose(found, made.interpret(x), rtol=2e-6)


def test_only_so_many_are_kept(built: list[object], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "_KEPT", 2)
    for number in (1, 2, 1, 3, 1, 2):
        function(f"relay.tanh(x) + {number}.0")(X)
    assert len(kernels._made) == 2
    assert len(built) == 4  # the second one is the oldest when the third comes
