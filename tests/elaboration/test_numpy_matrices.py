"""NumPy's functions of square matrices, of joining and comparing arrays, in programs."""

from __future__ import annotations

import numpy as np
import pytest
from agreement import assert_modes_agree

import relay as rl
from relay import ShapeError, relay

random = np.random.default_rng(5)


@relay
def solved(a, b):
    return np.linalg.solve(a, b)


@relay
def inverse(a):
    return np.linalg.inv(a)


@relay
def determinant(a):
    return np.linalg.det(a)


@relay
def logarithm(a):
    return np.linalg.slogdet(a)


EXCHANGED = np.array([[0.0, 2.0, 1.0], [3.0, 0.0, 0.0], [0.0, 0.0, -1.0]])


@pytest.mark.parametrize("a", [random.normal(size=(n, n)) for n in (1, 2, 5)] + [EXCHANGED])
def test_equations_and_determinants(a: np.ndarray) -> None:
    for b in (random.normal(size=len(a)), random.normal(size=(len(a), 2))):
        assert_modes_agree(solved, a, b, expected=np.linalg.solve(a, b), rtol=1e-9)
    for function, expected in ((inverse, np.linalg.inv), (determinant, np.linalg.det), (logarithm, np.linalg.slogdet)):
        assert_modes_agree(function, a, expected=expected(a), rtol=1e-9, atol=1e-12)


def test_gradients_of_equations() -> None:
    for size in (3, 4):  # the second size is compiled for all sizes
        a = random.normal(size=(size, size))
        assert rl.check_gradient(solved, a, random.normal(size=size)) < 1e-6
        assert rl.check_gradient(determinant, a) < 1e-6
        np.testing.assert_allclose(
            rl.grad(determinant)(a), np.linalg.det(a) * np.linalg.inv(a).T, rtol=1e-9, atol=1e-12
        )


def test_matrices_that_are_not_square() -> None:
    with pytest.raises(ShapeError, match="det needs a square matrix"):
        determinant(np.ones((2, 3)))
    with pytest.raises(ShapeError, match="inv needs a square matrix"):
        inverse(np.ones((2, 3, 2)))
    with pytest.raises(ShapeError, match=r"the second must be \(3,\) or \(3, k\)"):
        solved(np.eye(3), np.ones(2))


@relay
def eliminated(a):
    rows = np.arange(a.shape[0])
    for k in range(a.shape[0]):
        factors = np.where(rows > k, a[:, k] / a[k, k], 0.0)
        a = a - factors[:, None] * a[k]
    return a[1, 1]


def test_sums_over_rows_that_are_selected_at_run_time() -> None:
    """Of symbolic sizes, where a row begins is not known, nor which one it is."""
    gradient = rl.grad(eliminated)
    for size in (3, 70):
        a = random.normal(size=(size, size)) + size * np.eye(size)
        np.testing.assert_allclose(gradient(a), gradient.interpret(a), rtol=1e-9, atol=1e-12)


@relay
def joined(x, y, m):
    return np.hstack([x, y]), np.vstack((x, y, m)), np.column_stack([x, m.T]), np.hstack([m, m]), np.hstack([x[0], y])


def test_joining() -> None:
    x, y, m = random.normal(size=3), random.normal(size=3), random.normal(size=(2, 3))
    wanted = (
        np.hstack([x, y]), np.vstack((x, y, m)), np.column_stack([x, m.T]), np.hstack([m, m]), np.hstack([x[0], y])
    )  # fmt: skip
    assert_modes_agree(joined, x, y, m, expected=wanted, rtol=0.0, atol=0.0)


@relay
def compared(x, y):
    close = np.isclose(x, y, 1e-5, 1e-8)
    return np.array_equal(x, y), np.array_equal(x, y[1:]), np.allclose(x, y), np.allclose(x, y, atol=0.5), close


@pytest.mark.parametrize("change", [0.0, 1e-9, 0.1, 1.0])
def test_comparing(change: float) -> None:
    x = np.array([1.0, np.inf, -2.0])
    y = x + np.array([change, 0.0, 0.0])
    wanted = np.array_equal(x, y), False, np.allclose(x, y), np.allclose(x, y, atol=0.5), np.isclose(x, y)
    assert_modes_agree(compared, x, y, expected=wanted)


@relay
def halvings(n):
    found = []
    while n > 1:
        found.append(n)
        n = n // 2
    return np.array(found)


def test_an_array_of_a_list_that_grows() -> None:
    assert halvings(np.int32(9)).tolist() == halvings.interpret(np.int32(9)).tolist() == [9, 4, 2]


@relay
def weighted(x, data):
    return (x * data).sum() + rl.stop_gradient(data).sum()


def test_checking_some_gradients() -> None:
    assert rl.check_gradient(weighted, np.ones(2), np.ones(2), wrt="x") < 1e-6
    assert rl.check_gradient(weighted, np.ones(2), np.ones(2), wrt=[0]) < 1e-6
    with pytest.raises(rl.DifferentiationError, match="with respect to data"):
        rl.check_gradient(weighted, np.ones(2), np.ones(2))
    with pytest.raises(rl.TypeCheckError, match="there is no parameter 'y'"):
        rl.check_gradient(weighted, np.ones(2), np.ones(2), wrt="y")


def test_matrices_whose_dtype_their_uses_decide() -> None:
    """Made in the program: what is computed of them, as the place of a pivot, has no dtype yet where it is used."""

    @relay
    def solved(y):
        a = np.array([[0.0, 2.0], [4.0, 0.0]])
        moved = np.eye(3)
        moved[relay.argmax(moved[1]), 0] = 3.0
        return np.linalg.solve(a, y), np.linalg.inv(a) @ y, np.linalg.det(np.eye(3)), moved

    for dtype in (np.float32, np.float64):
        first, second, determinant, moved = solved.interpret(np.array([2.0, 4.0], dtype))
        assert first.dtype == second.dtype == dtype
        assert first.tolist() == second.tolist() == [1.0, 1.0] and determinant == 1.0
        assert moved.tolist() == [[1.0, 0.0, 0.0], [3.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
