"""Functions of `numpy.linalg`, and products of arrays."""

from __future__ import annotations

import numpy as np

import relay
from relay.typecheck.elaboration.library.overloads import library_function
from relay.typecheck.elaboration.library.requirements import require_shape


@library_function()
def require_square(a, name):
    """Demand a square matrix."""
    found = f"{name} needs a square matrix, found the shape {a.shape}"
    require_shape(a.ndim == 2, found, "loop over a batch: relay.stack([np.linalg.inv(m) for m in a])")
    require_shape(a.shape[0] == a.shape[1], found)


@library_function()
def eliminate(a, b):
    """Gauss: the upper triangle and the right sides, and the sign of the exchange of rows."""
    rows, sign = relay.arange(a.shape[0]), 1.0
    for k in range(a.shape[0]):
        sizes = np.where(rows < k, -1.0, np.abs(a[:, k]))
        place = relay.argmax(sizes)
        row, right = a[place], b[place]
        a[place], b[place] = a[k], b[k]
        a[k], b[k] = row, right
        sign = sign if place == k else -sign
        factors = np.where(rows > k, a[:, k] / row[k], 0.0)
        a = a - factors[:, None] * row
        b = b - factors[:, None] * right
    return a, b, sign


@library_function()
def triangle(a):
    """The diagonal of the triangle that elimination leaves of a square matrix, and the sign of the exchange of rows."""
    upper, _, sign = eliminate(a, np.zeros_like(a[:, :1]))
    return relay.diagonal(upper), sign


@library_function(np.linalg.solve)
def solve(a, b, /):
    """The x with a x = b, for a vector b, or for each column of a matrix."""
    require_square(a, "np.linalg.solve")
    sides = f"np.linalg.solve of the shapes {a.shape} and {b.shape}: the second must be"
    fits = 1 <= b.ndim <= 2 and b.shape[0] == a.shape[0]
    require_shape(fits, f"{sides} ({a.shape[0]},) or ({a.shape[0]}, k)")
    upper, right, _ = eliminate(a, b[:, None] if b.ndim == 1 else b)
    return np.reshape(relay.triangular_solve(upper, right, lower=False), b.shape)


@library_function(np.linalg.inv)
def inv(a, /):
    """The matrix x with a x = 1."""
    require_square(a, "np.linalg.inv")
    return solve(a, np.eye(a.shape[0], dtype=a.dtype))


@library_function(np.linalg.det)
def det(a, /):
    """The determinant of a square matrix."""
    require_square(a, "np.linalg.det")
    pivots, sign = triangle(a)
    return sign * np.prod(pivots)


@library_function(np.linalg.slogdet)
def slogdet(a, /):
    """The sign of the determinant, and the logarithm of its absolute value."""
    require_square(a, "np.linalg.slogdet")
    pivots, sign = triangle(a)
    return sign * np.prod(np.sign(pivots)), np.sum(np.log(np.abs(pivots)))


@library_function(np.inner)
def inner(a, b, /):
    """The sums of products along the last axis of both: out[i.., j..] = sum_k a[i.., k] b[j.., k]; a b of a number."""
    if a.ndim == 0 or b.ndim == 0:
        return a * b
    fits = a.shape[-1] == b.shape[-1]
    require_shape(fits, f"np.inner of the shapes {a.shape} and {b.shape}: their last axes differ")
    return np.tensordot(a, b, axes=([a.ndim - 1], [b.ndim - 1]))


@library_function(np.vdot)
def vdot(a, b, /):
    """The sum of products of all elements."""
    x, y = np.ravel(np.asarray(a)), np.ravel(np.asarray(b))
    require_shape(x.shape[0] == y.shape[0], f"np.vdot needs as many elements, found {x.shape[0]} and {y.shape[0]}")
    return np.dot(x, y)


@library_function(np.kron)
def kron(a, b):
    """The Kronecker product: every element of a times the whole of b, as blocks."""
    x, y = np.asarray(a), np.asarray(b)
    if x.ndim == 0 or y.ndim == 0:
        return x * y
    if x.ndim < y.ndim:
        return np.kron(x[None], y)
    if y.ndim < x.ndim:
        return np.kron(x, y[None])
    assert x.ndim < 4, "np.kron takes up to three axes"
    if x.ndim == 1:
        return np.ravel(x[:, None] * y)
    if x.ndim == 2:
        blocks = x[:, None, :, None] * y[None, :, None, :]
    else:
        blocks = x[:, None, :, None, :, None] * y[None, :, None, :, None, :]
    return np.reshape(blocks, [m * n for m, n in zip(x.shape, y.shape, strict=True)])
