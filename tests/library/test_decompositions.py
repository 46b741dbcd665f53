"""Decompositions of matrices: what their parts multiply to, orthogonality, and gradients; signs are not defined."""

from __future__ import annotations

import numpy as np
import pytest
from agreement import assert_modes_agree

import relay as R

_RANDOM = np.random.default_rng(3)
SYMMETRIC = np.array([[4.0, 1.0, 0.5], [1.0, 3.0, 0.2], [0.5, 0.2, 2.0]])
SQUARE = _RANDOM.normal(size=(3, 3))
TALL = _RANDOM.normal(size=(4, 2))
LOW_RANK = np.outer([1.0, 2.0, 3.0, 0.0], [1.0, -1.0])


@R.relay
def eigen(a):
    values, vectors = np.linalg.eigh(a)
    return (vectors * values) @ vectors.T, values, vectors.T @ vectors


@R.relay
def singular(a):
    u, s, vt = np.linalg.svd(a, full_matrices=False)
    return (u * s) @ vt, s, u.T @ u, vt @ vt.T


@R.relay
def whole_singular(a):
    u, _, vt = np.linalg.svd(a)
    return u.T @ u, vt @ vt.T


@R.relay
def triangular(a):
    q, r = np.linalg.qr(a, mode="complete")
    return q @ r, q.T @ q


@pytest.mark.parametrize("a", [SYMMETRIC, np.diag([2.0, 2.0, 1.0]), np.zeros((2, 2)), np.float32(SYMMETRIC)])
def test_eigenvectors(a: np.ndarray) -> None:
    product, values, unit = assert_modes_agree(eigen, a)
    tolerance = 1e-5 if a.dtype == np.float32 else 1e-12
    np.testing.assert_allclose(product, a, atol=tolerance)
    np.testing.assert_allclose(values, np.linalg.eigvalsh(a), atol=tolerance)
    np.testing.assert_allclose(unit, np.eye(len(a)), atol=tolerance)


@pytest.mark.parametrize("a", [SQUARE, TALL, TALL.T, LOW_RANK, np.zeros((3, 2))])
def test_singular_vectors(a: np.ndarray) -> None:
    product, values, *units = assert_modes_agree(singular, a)
    np.testing.assert_allclose(product, a, atol=1e-12)
    np.testing.assert_allclose(values, np.linalg.svd(a)[1], atol=1e-12)
    for unit in (*units, *whole_singular.interpret(a)):
        np.testing.assert_allclose(unit, np.eye(len(unit)), atol=1e-12)


@pytest.mark.parametrize("a", [SQUARE, TALL, TALL.T, LOW_RANK])
def test_reflections(a: np.ndarray) -> None:
    product, unit = assert_modes_agree(triangular, a)
    np.testing.assert_allclose(product, a, atol=1e-12)
    np.testing.assert_allclose(unit, np.eye(len(a)), atol=1e-12)


def test_gradients_of_decompositions() -> None:
    @R.relay
    def f(a, b):
        values, vectors = np.linalg.eigh(a)
        u, s, vt = np.linalg.svd(b, full_matrices=False)
        q, _ = np.linalg.qr(b)
        parts = (values**3).sum() + (vectors[:, 0] ** 3).sum() ** 2 + np.log(s).sum() + (u[:, 0] * vt[0, 0]).sum()
        return parts + (np.abs(q) * np.arange(2.0)).sum() + np.linalg.pinv(b).sum()

    R.check_gradient(f, SYMMETRIC, TALL)


def test_batches_are_single_matrices() -> None:
    batch = np.stack([SYMMETRIC, SYMMETRIC * 2.0, np.eye(3)])

    @R.relay
    def f(a):
        values, vectors = np.linalg.eigh(a)
        return values, np.abs(vectors), np.linalg.inv(a), np.linalg.slogdet(a)[1], np.linalg.solve(a, a[:, :, :1])

    @R.relay
    def one(a):
        values, vectors = np.linalg.eigh(a)
        return values, np.abs(vectors), np.linalg.inv(a), np.linalg.slogdet(a)[1], np.linalg.solve(a, a[:, :1])

    for found, single in zip(
        assert_modes_agree(f, batch), zip(*[one.interpret(m) for m in batch], strict=True), strict=True
    ):
        np.testing.assert_allclose(found, np.stack(single), atol=1e-12)
