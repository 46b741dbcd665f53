"""Functions of NumPy that make arrays of numbers at regular distances, and grids of them."""

from __future__ import annotations

import math

import numpy as np

from relay.typecheck.elaboration.library.overloads import library_function


@library_function(np.linspace)
def linspace(
    start,
    stop,
    num=50,  # relay: static
    endpoint=True,  # relay: static
    retstep=False,  # relay: static
    dtype=None,  # relay: static
    axis=0,  # relay: static
    *,
    device=None,
):
    """Numbers at equal distances between numbers, or arrays, which the result has a new axis for; on demand with the
    distance. Of a dtype of integers they are rounded down."""
    low, high = np.asarray(start) + 0.0, np.asarray(stop) + 0.0
    parts = num - 1 if endpoint else num
    step = (high - low) / parts if parts > 0 else (high - low) * math.nan
    rank = (low + high).ndim
    places = np.reshape(np.arange(num), (num, *((1,) * rank)))
    values = low + places * (step if parts > 0 else high - low)
    if endpoint and num > 1:
        values = np.where(places == num - 1, high, values)
    if dtype is not None:
        values = (np.floor(values) if np.issubdtype(dtype, np.integer) else values).astype(dtype)
    values = np.moveaxis(values, 0, axis)
    return (values, step) if retstep else values


@library_function(np.logspace)
def logspace(
    start,
    stop,
    num=50,  # relay: static
    endpoint=True,  # relay: static
    base=10.0,
    dtype=None,  # relay: static
    axis=0,  # relay: static
):
    """base^y for numbers y at equal distances."""
    low, high = np.asarray(start) + 0.0 * base, np.asarray(stop) + 0.0 * base
    if dtype is not None:
        wide = dtype if np.issubdtype(dtype, np.floating) else np.float64
        low, high, base = low.astype(wide), high.astype(wide), np.asarray(base).astype(wide)
    found = np.power(base, np.moveaxis(linspace(low, high, num, endpoint), 0, -1))
    found = np.moveaxis(found, -1, axis)
    return found if dtype is None else found.astype(dtype)


@library_function(np.geomspace)
def geomspace(
    start,
    stop,
    num=50,  # relay: static
    endpoint=True,  # relay: static
    dtype=None,  # relay: static
    axis=0,  # relay: static
):
    """Numbers whose quotients are equal, from one number to another of the same sign, or from the elements of an array
    to those of another one."""
    low, high = np.asarray(start) + 0.0, np.asarray(stop) + 0.0
    if dtype is not None:
        assert np.issubdtype(dtype, np.floating), "np.geomspace gives floats: round them, np.round(x).astype(int)"
        low, high = low.astype(dtype), high.astype(dtype)
    assert np.all(low * high > 0.0), "np.geomspace goes from one number to another of the same sign"
    shares = np.reshape(np.linspace(0.0, 1.0, num, endpoint=endpoint), (num, *((1,) * (low + high).ndim)))
    found = low * np.exp(np.log(high / low) * shares)
    if endpoint and num > 1:
        found = np.where(shares == 1.0, high, found)
    return np.moveaxis(found, 0, axis)


@library_function(np.meshgrid)
def sparse_grid(
    *xi,
    copy=True,
    sparse=False,  # relay: static
    indexing="xy",  # relay: static
):
    """The coordinates of a grid, along one axis each, with extent 1 along the others."""
    assert indexing in ("xy", "ij"), "the indexing of np.meshgrid is 'xy' or 'ij'"
    rank = len(xi)
    found = []
    for i in range(rank):
        place = 1 - i if indexing == "xy" and i < 2 and rank > 1 else i
        row = np.ravel(np.asarray(xi[i]))
        found.append(np.reshape(row, (*((1,) * place), row.shape[0], *((1,) * (rank - place - 1)))))
    return found if sparse else [np.broadcast_to(x, sum(found).shape) for x in found]


@library_function(np.zeros_like, np.empty_like)
def zeros_in_shape(
    a,
    dtype=None,  # relay: static
    order="K",  # relay: static
    subok=True,
    shape=None,  # relay: static
    *,
    device=None,
):
    """Zeros in the dtype of an array, and in another shape."""
    return np.zeros(shape, dtype=a.dtype if dtype is None else dtype)


@library_function(np.ones_like)
def ones_in_shape(
    a,
    dtype=None,  # relay: static
    order="K",  # relay: static
    subok=True,
    shape=None,  # relay: static
    *,
    device=None,
):
    """Ones in the dtype of an array, and in another shape."""
    return np.ones(shape, dtype=a.dtype if dtype is None else dtype)


@library_function(np.full_like)
def filled_in_shape(
    a,
    fill_value,
    dtype=None,  # relay: static
    order="K",  # relay: static
    subok=True,
    shape=None,  # relay: static
    *,
    device=None,
):
    """A value in the dtype of an array, and in another shape."""
    value = np.asarray(fill_value).astype(a.dtype if dtype is None else dtype)
    return np.broadcast_to(value, a.shape if shape is None else shape)


@library_function(np.reshape)
def column_major(
    a,
    /,
    shape,  # relay: static
    order="C",  # relay: static
    *,
    copy=None,
):
    """The elements in another shape, which they are read from and put into with the first index changing fastest."""
    assert order == "F", "the order is 'C' or 'F'"
    whole = (shape,) if isinstance(shape, int) else tuple(shape)
    return np.transpose(np.reshape(np.transpose(np.asarray(a)), whole[::-1]))


@library_function(np.ravel)
def column_major_row(
    a,
    order="C",  # relay: static
):
    """The elements in one row, with the first index changing fastest."""
    assert order == "F", "the order is 'C' or 'F'"
    return np.ravel(np.transpose(np.asarray(a)))


@library_function(np.fromfunction)
def fromfunction(
    function,
    shape,  # relay: static
    *,
    dtype=float,  # relay: static
):
    """A function of the positions along each axis, in an array of a shape."""
    return function(*[np.broadcast_to(place, shape) for place in np.indices(shape, dtype=dtype, sparse=True)])


@library_function(np.diag_indices)
def diag_indices(
    n,  # relay: static
    ndim=2,  # relay: static
):
    """The positions on the diagonal of an array of n elements along each axis."""
    return (np.arange(n),) * ndim


@library_function(np.diag_indices_from)
def diag_indices_from(arr):
    """The positions on the diagonal of an array that has the same extent along each axis."""
    return (np.arange(arr.shape[0]),) * arr.ndim


@library_function(np.tril_indices_from)
def tril_indices_from(
    arr,
    k=0,  # relay: static
):
    """The positions on and below a diagonal of a matrix."""
    return np.nonzero(np.tril(np.ones(arr.shape), k))


@library_function(np.triu_indices_from)
def triu_indices_from(
    arr,
    k=0,  # relay: static
):
    """The positions on and above a diagonal of a matrix."""
    return np.nonzero(np.triu(np.ones(arr.shape), k))
