"""Decompositions of matrices of `numpy.linalg`, by methods whose derivatives are right at every order: reflections, and
the rotations of Jacobi. Where the gradient of a decomposition is infinite, as where two eigenvalues are equal, it is
NaN or infinite."""

from __future__ import annotations

import numpy as np

import relay
from relay.library.linear_algebra import require_square
from relay.typecheck.elaboration.library.overloads import library_function
from relay.typecheck.elaboration.library.requirements import require_shape


@library_function(np.linalg.qr)
def qr(
    a,
    mode="reduced",  # relay: static
):
    """An orthogonal matrix q and an upper triangle r with q r = a, by Householder's reflections."""
    assert mode in ("reduced", "complete", "r"), "the mode of np.linalg.qr is 'reduced', 'complete' or 'r'"
    if a.ndim > 2:
        return relay.vmap(lambda m: np.linalg.qr(m, mode))(a)
    require_shape(a.ndim == 2, f"np.linalg.qr needs a matrix, found the shape {a.shape}")
    count, width = a.shape
    r, q = a + 0.0, np.eye(count, dtype=a.dtype)
    rows = np.arange(count)
    for k in range(min(count - 1, width)):
        below = np.where(rows > k, r[:, k], 0.0)
        rest, first = np.sum(below * below), r[k, k]
        if rest > 0.0:
            length = np.sqrt(rest + first * first)
            v = np.where(rows == k, first + (length if first >= 0.0 else -length), below)
            v = v / np.sqrt(np.sum(v * v))
            r = r - 2.0 * v[:, None] * (v @ r)
            q = q - 2.0 * (q @ v)[:, None] * v
    r = np.triu(r)
    small = min(count, width)
    if mode == "complete":
        return q, r
    return r[:small] if mode == "r" else (q[:, :small], r[:small])


@library_function()
def _rotation(apart, across):
    """The cosine and the sine of the rotation that makes the element across two axes 0: `apart` is the difference of
    the two on the diagonal."""
    ratio = apart / (2.0 * across)
    tangent = np.where(ratio >= 0.0, 1.0, -1.0) / (np.abs(ratio) + np.sqrt(1.0 + ratio * ratio))
    cosine = 1.0 / np.sqrt(1.0 + tangent * tangent)
    return cosine, tangent * cosine


@library_function(np.linalg.eigh)
def eigh(
    a,
    UPLO="L",  # relay: static
):
    """The eigenvalues of a symmetric matrix in ascending order, and its eigenvectors as columns, by Jacobi's rotations
    of two axes at a time. One triangle of the matrix is read. The signs of eigenvectors are not NumPy's."""
    assert UPLO in ("L", "U"), "UPLO is 'L' or 'U'"
    if a.ndim > 2:
        return relay.vmap(lambda m: np.linalg.eigh(m, UPLO))(a)
    require_square(a, "np.linalg.eigh")
    half = np.tril(a) if UPLO == "L" else np.triu(a).T
    m = half + np.tril(half, -1).T
    count = a.shape[0]
    vectors = np.eye(count, dtype=a.dtype)
    least = np.finfo(a.dtype).eps ** 2 * np.sum(m * m)
    sweeps = 0
    while sweeps < 60 and np.sum(np.square(np.triu(m, 1))) > least:
        sweeps += 1
        for p in range(count - 1):
            for q in range(p + 1, count):
                if m[p, q] != 0.0:
                    c, s = _rotation(m[q, q] - m[p, p], m[p, q])
                    one, other = m[p], m[q]
                    m[p], m[q] = c * one - s * other, s * one + c * other
                    one, other = m[:, p], m[:, q]
                    m[:, p], m[:, q] = c * one - s * other, s * one + c * other
                    one, other = vectors[p], vectors[q]
                    vectors[p], vectors[q] = c * one - s * other, s * one + c * other
    values = relay.diagonal(m)
    order = np.argsort(values)
    return values[order], vectors[order].T


@library_function(np.linalg.eigvalsh)
def eigvalsh(
    a,
    UPLO="L",  # relay: static
):
    """The eigenvalues of a symmetric matrix in ascending order."""
    values, _ = np.linalg.eigh(a, UPLO)
    return values


@library_function()
def _orthogonal_columns(a):
    """The columns of a, which has as many rows at least, rotated so that they are orthogonal, as rows; and what rotated
    them, by Jacobi's one-sided method."""
    columns, turned = a.T + 0.0, np.eye(a.shape[1], dtype=a.dtype)
    least = np.finfo(a.dtype).eps
    sweeps, is_done = 0, False
    while sweeps < 60 and not is_done:
        sweeps, is_done = sweeps + 1, True
        for p in range(a.shape[1] - 1):
            for q in range(p + 1, a.shape[1]):
                one, other = columns[p], columns[q]
                first, second, across = np.sum(one * one), np.sum(other * other), np.sum(one * other)
                if np.abs(across) > least * np.sqrt(first * second):
                    is_done = False
                    c, s = _rotation(second - first, across)
                    columns[p], columns[q] = c * one - s * other, s * one + c * other
                    one, other = turned[p], turned[q]
                    turned[p], turned[q] = c * one - s * other, s * one + c * other
    return columns, turned


@library_function(np.linalg.svd)
def svd(
    a,
    full_matrices=True,  # relay: static
    compute_uv=True,  # relay: static
    hermitian=False,  # relay: static
):
    """u, s and vt with u diag(s) vt = a: singular values in descending order, between orthogonal matrices. The signs of
    their columns are not NumPy's."""
    assert hermitian is False, "leave hermitian out: np.linalg.eigh is for symmetric matrices"
    if a.ndim > 2:
        return relay.vmap(lambda m: np.linalg.svd(m, full_matrices, compute_uv))(a)
    require_shape(a.ndim == 2, f"np.linalg.svd needs a matrix, found the shape {a.shape}")
    if a.shape[0] < a.shape[1]:
        found = np.linalg.svd(a.T, full_matrices, compute_uv)
        return (found[2].T, found[1], found[0].T) if compute_uv else found
    columns, turned = _orthogonal_columns(a)
    squares = np.sum(columns * columns, axis=1)
    order = np.argsort(-squares)
    squares = squares[order]
    values = np.where(squares > 0.0, np.sqrt(np.where(squares > 0.0, squares, 1.0)), 0.0)
    if not compute_uv:
        return values
    unit = (columns[order] / np.where(values > 0.0, values, 1.0)[:, None]).T
    q, r = np.linalg.qr(unit, mode="complete")  # which adds what no column spans
    signs = np.where(relay.diagonal(r) < 0.0, -1.0, 1.0)
    u = q[:, : a.shape[1]] * signs
    u = np.concatenate([u, q[:, a.shape[1] :]], axis=1) if full_matrices else u
    return u, values, turned[order]


@library_function(getattr(np.linalg, "svdvals", None))
def svdvals(x, /):
    """The singular values in descending order."""
    return np.linalg.svd(x, compute_uv=False)


@library_function(np.linalg.matrix_rank)
def matrix_rank(
    A,
    tol=None,
    hermitian=False,  # relay: static
    *,
    rtol=None,
):
    """The number of singular values that are not 0 but for rounding, or above a bound."""
    assert hermitian is False, "leave hermitian out: the singular values are those of any matrix"
    if A.ndim < 2:
        return np.any(A != 0).astype(int)
    values = np.linalg.svd(A + 0.0, compute_uv=False)
    share = max(A.shape[-1], A.shape[-2]) * np.finfo(values.dtype).eps if rtol is None else rtol
    least = values[..., :1] * share if tol is None else np.asarray(tol)[..., None]
    return np.sum(values > least, axis=-1)


@library_function(np.linalg.cond)
def cond(
    x,
    p=None,  # relay: static
):
    """The condition number: how much larger a relative error of the right side can be in the solution."""
    if p is None or p == 2 or p == -2:
        values = np.linalg.svd(x, compute_uv=False)
        most, least = values[..., 0], values[..., -1]
        return least / most if p == -2 else most / least
    return np.linalg.norm(x, p, axis=(-2, -1)) * np.linalg.norm(np.linalg.inv(x), p, axis=(-2, -1))


@library_function(np.linalg.pinv)
def pinv(
    a,
    rcond=None,
    hermitian=False,  # relay: static
    *,
    rtol=None,
):
    """The inverse of Moore and Penrose; singular values up to `rcond` times the largest one count as 0."""
    assert hermitian is False, "leave hermitian out: the singular values are those of any matrix"
    u, s, vt = np.linalg.svd(a, full_matrices=False)
    given = rcond if rtol is None else rtol
    share = 1e-15 if given is None else given
    is_large = s > share * s[..., :1]
    inverse = np.where(is_large, 1.0 / np.where(is_large, s, 1.0), 0.0)
    return np.swapaxes(vt, -1, -2) @ (inverse[..., None] * np.swapaxes(u, -1, -2))


@library_function(np.linalg.lstsq)
def lstsq(a, b, rcond=None):
    """The x for which a x - b is smallest, the shortest one of several; the sums of its squares, which are left out
    where there are several x; the rank of a and its singular values."""
    require_shape(a.ndim == 2 and 1 <= b.ndim <= 2, "np.linalg.lstsq needs a matrix and a vector, or two matrices")
    require_shape(a.shape[0] == b.shape[0], f"np.linalg.lstsq needs as many rows, found {a.shape} and {b.shape}")
    u, s, vt = np.linalg.svd(a, full_matrices=False)
    if rcond is None:
        share = np.finfo(a.dtype).eps * max(a.shape[0], a.shape[1])
    else:  # what is no share is the smallest one, as in LAPACK
        share = np.where((rcond > 0.0) & (rcond < 1.0), rcond, np.finfo(a.dtype).eps)
    is_large = s > share * s[0]
    rank = np.sum(is_large)
    inverse = np.where(is_large, 1.0 / np.where(is_large, s, 1.0), 0.0)
    columns = b[:, None] if b.ndim == 1 else b
    x = vt.T @ (inverse[:, None] * (u.T @ columns))
    squares = np.sum(np.square(columns - a @ x), axis=0)
    is_unique = (rank == a.shape[1]) & (a.shape[0] > a.shape[1])
    squares = squares[np.broadcast_to(is_unique, squares.shape)]
    return (x[:, 0] if b.ndim == 1 else x), squares, rank, s
