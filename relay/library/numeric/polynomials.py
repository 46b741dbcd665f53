"""Functions of NumPy on polynomials, which are vectors of coefficients, the highest power first."""

from __future__ import annotations

import numpy as np

from relay.typecheck.elaboration.library.overloads import library_function


@library_function(np.polyval)
def polyval(p, x):
    """p[0] x^(n - 1) + .. + p[n - 1], by Horner's rule."""
    coefficients, place = np.asarray(p), np.asarray(x)
    value = np.zeros_like(place) * coefficients[0]
    for coefficient in coefficients:
        value = value * place + coefficient
    return value


@library_function()
def _in_length(
    p,
    count,  # relay: static
):
    """A polynomial of this many coefficients."""
    return np.concatenate([np.zeros(count - p.shape[0], dtype=p.dtype), p])


@library_function(np.polyadd)
def polyadd(a1, a2):
    """The sum of two polynomials."""
    x, y = np.atleast_1d(a1), np.atleast_1d(a2)
    count = max(x.shape[0], y.shape[0])
    return _in_length(x, count) + _in_length(y, count)


@library_function(np.polysub)
def polysub(a1, a2):
    """The difference of two polynomials."""
    x, y = np.atleast_1d(a1), np.atleast_1d(a2)
    count = max(x.shape[0], y.shape[0])
    return _in_length(x, count) - _in_length(y, count)


@library_function(np.polymul)
def polymul(a1, a2):
    """The product of two polynomials."""
    return np.convolve(np.atleast_1d(a1), np.atleast_1d(a2))


@library_function(np.polyder)
def polyder(
    p,
    m=1,  # relay: static
):
    """The m-th derivative of a polynomial."""
    x = np.asarray(p)
    assert m >= 0, "the order of a derivative is not negative"
    if m == 0:
        return x
    powers = np.arange(x.shape[0])[::-1]
    return np.polyder(x[:-1] * powers[:-1], m - 1)


@library_function(np.polyint)
def polyint(
    p,
    m=1,  # relay: static
    k=None,
):
    """The polynomial whose m-th derivative p is, with constants of integration."""
    x = np.asarray(p) + 0.0
    assert m >= 0, "the order of an integral is not negative"
    if m == 0:
        return x
    constants = np.zeros(m) if k is None else np.broadcast_to(np.asarray(k), (m,))
    powers = np.arange(x.shape[0], 0, -1)
    found = np.concatenate([x / powers, constants[:1].astype(x.dtype)])
    return np.polyint(found, m - 1, constants[1:]) if m > 1 else found


@library_function(np.polydiv)
def polydiv(u, v):
    """The quotient and the remainder of two polynomials, the second of which does not begin with 0."""
    x, y = np.atleast_1d(u) + 0.0, np.atleast_1d(v) + 0.0
    n, m = x.shape[0], y.shape[0]
    count = max(n - m + 1, 1)
    quotient = np.zeros(count, dtype=x.dtype)
    for i in range(n - m + 1):
        factor = x[i] / y[0]
        quotient[i] = factor
        x[i : i + m] = x[i : i + m] - factor * y
    rest = x[max(n - m + 1, 0) :]
    rest = rest if m > 1 else np.zeros(1, dtype=x.dtype)
    is_other = np.cumsum(np.abs(rest) > 0.0) + (np.arange(rest.shape[0]) == rest.shape[0] - 1) > 0
    return quotient, rest[is_other]


@library_function(np.polyfit)
def polyfit(
    x,
    y,
    deg,  # relay: static
):
    """The polynomial of a degree with the least squares of the distances to the points (x, y)."""
    places, values = np.asarray(x) + 0.0, np.asarray(y) + 0.0
    columns = np.vander(places, deg + 1)
    scale = np.sqrt(np.sum(columns * columns, axis=0))
    q, r = np.linalg.qr(columns / scale)
    found = np.linalg.solve(r, q.T @ values)
    return found / (scale if values.ndim == 1 else scale[:, None])


@library_function(np.poly)
def poly(seq_of_zeros):
    """The polynomial with these zeros, whose highest coefficient is 1."""
    zeros = np.asarray(seq_of_zeros) + 0.0
    assert zeros.ndim == 1 and zeros.shape[0] > 0, "np.poly takes a vector of zeros"
    found = np.ones(1, dtype=zeros.dtype)
    for i in range(zeros.shape[0]):
        found = np.concatenate([found, np.zeros(1, dtype=zeros.dtype)]) - zeros[i] * np.concatenate(
            [np.zeros(1, dtype=zeros.dtype), found]
        )
    return found
