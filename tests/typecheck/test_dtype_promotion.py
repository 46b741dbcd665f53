"""Integers and booleans that meet floats take their dtype, and two dtypes of floats never meet."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from agreement import assert_modes_agree

import relay as rl
from relay import TypeMismatch, relay

X, N, M = np.array([-1.5, 2.0, 3.0]), np.array([1, 2, 4]), np.array([True, False, True])

PROGRAMS: dict[str, Callable[..., object]] = {
    "arithmetic": lambda x, n, m: (x * n, n / 2, n * 0.5, x - m, 1.0 - m, 1 + m, m * n, n / n.sum(), x**n, n @ x),
    "functions": lambda x, n, m: (np.sqrt(n), np.exp(n), n.mean(), m.mean(), n.std(), np.maximum(x, n)),
    "choices": lambda x, n, m: (np.where(m, x, n), np.stack([x, n]), np.concatenate([n, x]), n < x, (x == n).mean()),
    "widths": lambda x, n, m: (n + n.astype(np.int8), n == np.argmax(x), np.argmax(x) + n),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_have_numpys_values(name: str) -> None:
    program = PROGRAMS[name]
    results = assert_modes_agree(relay(program), X, N, M, rtol=1e-6)
    for found, expected in zip(results, program(X, N, M), strict=True):  # type: ignore[call-overload]
        assert np.asarray(found).dtype.kind == np.asarray(expected).dtype.kind
        np.testing.assert_allclose(found, expected, rtol=1e-6)  # alone, floats of integers are float32


def test_the_dtype_comes_from_the_floats() -> None:
    @relay
    def scaled(x, n):
        weights = n / n.sum()
        return x * weights, n / 2

    for dtype in (np.float16, np.float32, np.float64):
        weighted, alone = scaled(X.astype(dtype), N)
        assert weighted.dtype == dtype and alone.dtype == np.float32


def test_gradients_pass_through_conversions() -> None:
    @relay
    def loss(x, n, m):
        return (x * n * m).sum() / m.sum()

    assert_modes_agree(rl.grad(loss, wrt="x"), X, N, M, expected=np.array([0.5, 0, 2]))


def test_what_is_stored_takes_the_dtype_of_its_place() -> None:
    @relay
    def filled(x, n):
        x[0] = n[2]
        x[1:] += n[1:]
        return x

    np.testing.assert_array_equal(assert_modes_agree(filled, X, N), [4.0, 4.0, 7.0])

    @relay
    def cut_off(n, x):
        n[0] = x[0]
        return n

    with pytest.raises(TypeMismatch, match="cannot store a float64 value in an int64 tensor"):
        cut_off(N, X)


PATHS = """
def whole(x, n):
    a = int(n[0]) if x[0] > 0.0 else int(np.argmax(x))
    b, c = 5, int(np.argmin(x))
    if x[1] > 0.0:
        b = int(n[1])
    elif x[2] > 0.0:
        b = c
    return a, b

def loops(x, n):
    i, same = 0, 0
    a, b = int(n[2]) + 3, int(np.argmax(x)) + 1
    while b:
        a, b = b, a % b
    for k in range(3):
        same += int(n[k]) == i
        i = (i + int(np.argmax(x))) % 17
    return a, i, same

def arrays(x, n):
    order = np.argsort(x) if x[0] < x[1] else n
    kept = n
    for _ in range(2):
        kept = np.argsort(x[kept % 3])
    return order, kept, n[0] if x[0] > 9.0 else np.argmax(x)

def called(x, n):
    def lower(v):
        return v + 1 if v < 3 else int(np.argmax(x))
    return lower(int(n[0])), lower(2), max(int(n[1]), int(np.argmax(x)))
"""


@pytest.mark.parametrize("name", ["whole", "loops", "arrays", "called"])
def test_integers_of_two_dtypes_meet_where_paths_do(name: str) -> None:
    scope: dict[str, Any] = {"np": np}
    exec(PATHS, scope)
    function = rl.from_source(PATHS, {"np": np})[name]  # type: ignore[index]
    for x in (X, -X):
        assert_modes_agree(function, x, N, expected=scope[name](x, N))


def test_two_dtypes_of_floats_stay_an_error() -> None:
    with pytest.raises(TypeMismatch, match="one dtype, found float64 and float32"):
        relay(lambda x, y: x + y)(X, X.astype(np.float32))
