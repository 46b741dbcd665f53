"""Functions of `numpy.linalg`, and products of arrays."""

from __future__ import annotations

import numpy as np

import relay
from relay.library.numeric.quantiles import rows_along, with_kept_axes
from relay.typecheck.elaboration.library.overloads import library_function
from relay.typecheck.elaboration.library.requirements import require_shape


@library_function()
def require_square(a, name):
    """Demand a square matrix."""
    found = f"{name} needs a square matrix, found the shape {a.shape}"
    require_shape(a.ndim == 2, found)
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
    """The x with a x = b, for a vector b, or for each column of a matrix; for a batch of matrices a, and of b."""
    if a.ndim > 2 and b.ndim > 2:
        require_shape(a.shape[0] == b.shape[0], f"np.linalg.solve of the shapes {a.shape} and {b.shape}")
        return relay.vmap(np.linalg.solve)(a, b)
    if a.ndim > 2:
        return relay.vmap(lambda m: np.linalg.solve(m, b))(a)
    require_square(a, "np.linalg.solve")
    sides = f"np.linalg.solve of the shapes {a.shape} and {b.shape}: the second must be"
    fits = 1 <= b.ndim <= 2 and b.shape[0] == a.shape[0]
    require_shape(fits, f"{sides} ({a.shape[0]},) or ({a.shape[0]}, k)")
    upper, right, _ = eliminate(a, b[:, None] if b.ndim == 1 else b)
    return np.reshape(relay.triangular_solve(upper, right, lower=False), b.shape)


@library_function(np.linalg.inv)
def inv(a, /):
    """The matrix x with a x = 1."""
    if a.ndim > 2:
        return relay.vmap(np.linalg.inv)(a)
    require_square(a, "np.linalg.inv")
    return solve(a, np.eye(a.shape[0], dtype=a.dtype))


@library_function(np.linalg.det)
def det(a, /):
    """The determinant of a square matrix."""
    if a.ndim > 2:
        return relay.vmap(np.linalg.det)(a)
    require_square(a, "np.linalg.det")
    pivots, sign = triangle(a)
    return sign * np.prod(pivots)


@library_function(np.linalg.slogdet)
def slogdet(a, /):
    """The sign of the determinant, and the logarithm of its absolute value."""
    if a.ndim > 2:
        return relay.vmap(np.linalg.slogdet)(a)
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


@library_function(np.linalg.matrix_power)
def matrix_power(
    a,
    n,  # relay: static
):
    """The product of n factors a; for a negative n, of as many inverses."""
    require_shape(a.shape[-1] == a.shape[-2], f"np.linalg.matrix_power needs square matrices, found {a.shape}")
    if n < 0:
        return np.linalg.matrix_power(np.linalg.inv(a), -n)
    if n == 0:
        return np.broadcast_to(np.eye(a.shape[-1], dtype=a.dtype), a.shape)
    half = a if n == 1 else np.linalg.matrix_power(a @ a, n // 2)
    return half if n % 2 == 0 or n == 1 else half @ a


@library_function(np.linalg.multi_dot)
def multi_dot(arrays):
    """The product of several matrices; the first and the last one may be vectors."""
    assert len(arrays) > 1, "np.linalg.multi_dot needs two arrays at least"
    product = arrays[0]
    for factor in arrays[1:]:
        product = product @ factor
    return product


@library_function(getattr(np, "vecdot", None), getattr(np.linalg, "vecdot", None))
def vecdot(
    x1,
    x2,
    /,
    *,
    axis=-1,  # relay: static
):
    """The sums of products along an axis."""
    assert isinstance(axis, int), "np.vecdot goes along one axis"
    rows, others = np.moveaxis(x1, axis, -1), np.moveaxis(x2, axis, -1)
    require_shape(rows.shape[-1] == others.shape[-1], f"np.vecdot of the shapes {x1.shape} and {x2.shape}")
    return np.sum(rows * others, axis=-1)


@library_function(getattr(np, "matvec", None))
def matvec(x1, x2, /):
    """The products of matrices and vectors."""
    return (x1 @ x2[..., None])[..., 0]


@library_function(getattr(np, "vecmat", None))
def vecmat(x1, x2, /):
    """The products of vectors and matrices."""
    return (x1[..., None, :] @ x2)[..., 0, :]


@library_function(getattr(np.linalg, "vector_norm", None))
def vector_norm(
    x,
    /,
    *,
    axis=None,  # relay: static
    keepdims=False,  # relay: static
    ord=2,  # relay: static
):
    """The norm of vectors along an axis, along several, or of all elements."""
    if axis is None or isinstance(axis, int):
        found = np.linalg.norm(np.ravel(x) if axis is None else x, ord, axis=0 if axis is None else axis)
    else:
        found = np.linalg.norm(rows_along(x, axis), ord, axis=-1)
    return with_kept_axes(found, x, axis) if keepdims else found


@library_function(getattr(np.linalg, "matrix_norm", None))
def matrix_norm(
    x,
    /,
    *,
    keepdims=False,  # relay: static
    ord="fro",  # relay: static
):
    """The norm of matrices along the last two axes."""
    return np.linalg.norm(x, ord, axis=(-2, -1), keepdims=keepdims)


@library_function(np.linalg.norm)
def spectral_norm(
    x,
    ord=None,  # relay: static
    axis=None,  # relay: static
    keepdims=False,  # relay: static
):
    """The largest, the smallest or the sum of the singular values of matrices along two axes."""
    places = (0, 1) if axis is None else axis
    values = np.linalg.svd(np.moveaxis(x, places, (-2, -1)), compute_uv=False)
    found = np.sum(values, axis=-1) if ord == "nuc" else values[..., 0] if ord == 2 else values[..., -1]
    return with_kept_axes(found, x, places) if keepdims else found


@library_function(getattr(np.linalg, "cross", None))
def cross(
    x1,
    x2,
    /,
    *,
    axis=-1,  # relay: static
):
    """The cross product of vectors of three elements."""
    assert isinstance(axis, int), "np.linalg.cross goes along one axis"
    return np.cross(x1, x2, axis=axis)


@library_function(np.linalg.tensorsolve)
def tensorsolve(
    a,
    b,
    axes=None,  # relay: static
):
    """The x for which the sum over all axes of x of a x is b."""
    assert axes is None or min(axes) >= 0, "the axes of np.linalg.tensorsolve are counted from the first one"
    whole = a if axes is None else np.moveaxis(a, axes, tuple([i - len(axes) for i in range(len(axes))]))
    extents = whole.shape[b.ndim :]
    return np.reshape(np.linalg.solve(np.reshape(whole, (b.size, b.size)), np.ravel(b)), extents)


@library_function(np.linalg.tensorinv)
def tensorinv(
    a,
    ind=2,  # relay: static
):
    """The inverse of a as a linear map from its last axes to its first ones."""
    first, last = a.shape[:ind], a.shape[ind:]
    count = 1
    for extent in last:
        count = count * extent
    return np.reshape(np.linalg.inv(np.reshape(a, (-1, count))), (*last, *first))
