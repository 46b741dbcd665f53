"""Functions of NumPy that build arrays of others: differences, joins, splits and turns."""

from __future__ import annotations

import math

import numpy as np

from relay.typecheck.elaboration.library.overloads import library_function


@library_function(np.diff)
def diff(
    a,
    n=1,  # relay: static
    axis=-1,  # relay: static
    *,
    prepend=None,
    append=None,
):
    """a[i + 1] - a[i] along an axis, n times over; whether they differ, of booleans. Elements can be put before and
    behind: a number, or an array."""
    assert isinstance(n, int) and n >= 0, "the order of np.diff is an integer that is not negative"
    assert isinstance(axis, int), "np.diff goes along one axis"
    x = np.asarray(a)
    assert x.ndim > 0, "np.diff needs an axis to go along"
    if n == 0:
        return x
    rows = np.moveaxis(x, axis, -1)
    rows = rows if prepend is None else np.concatenate([_end_of_rows(prepend, rows, axis), rows], axis=-1)
    rows = rows if append is None else np.concatenate([rows, _end_of_rows(append, rows, axis)], axis=-1)
    steps = rows[..., 1:] != rows[..., :-1] if x.dtype == np.bool_ else rows[..., 1:] - rows[..., :-1]
    return np.diff(np.moveaxis(steps, -1, axis), n - 1, axis)


@library_function()
def _end_of_rows(
    values,
    rows,
    axis,  # relay: static
):
    """A number, or an array with its axis in another place, as elements to be joined to rows."""
    more = np.asarray(values)
    return np.full((*rows.shape[:-1], 1), more) if more.ndim == 0 else np.moveaxis(more, axis, -1)


@library_function(np.ediff1d)
def ediff1d(ary, to_end=None, to_begin=None):
    """The differences of neighbors among all elements, between others that are given."""
    row = np.ravel(np.asarray(ary))
    steps = row[1:] - row[:-1]
    steps = steps if to_begin is None else np.append(_same_kind(to_begin, row), steps)
    return steps if to_end is None else np.append(steps, _same_kind(to_end, row))


@library_function()
def _same_kind(values, row):
    """Values in the dtype of a row; floats do not become integers."""
    more = np.asarray(values)
    is_kept = np.issubdtype(row.dtype, np.floating) or not np.issubdtype(more.dtype, np.floating)
    assert is_kept, "floats cannot stand beside differences of integers: convert the array, x.astype(float)"
    return more.astype(row.dtype)


@library_function(np.append)
def append(
    arr,
    values,
    axis=None,  # relay: static
):
    """arr with values appended; all elements in one row without an axis."""
    assert not isinstance(axis, tuple), "np.append goes along one axis"
    if axis is None:
        return np.concatenate([np.ravel(np.array(arr)), np.ravel(np.array(values))])
    return np.concatenate([np.array(arr), np.array(values)], axis=axis)


@library_function(np.fliplr)
def fliplr(m):
    """m with its columns in the other order."""
    return np.asarray(m)[:, ::-1]


@library_function(np.flipud)
def flipud(m):
    """m with its rows in the other order."""
    return np.asarray(m)[::-1]


@library_function(np.rot90)
def rot90(
    m,
    k=1,  # relay: static
    axes=(0, 1),  # relay: static
):
    """m turned by k right angles in the plane of two axes, from the first toward the second."""
    first, second = axes
    assert isinstance(first, int) and isinstance(second, int), "np.rot90 turns a plane of two axes"
    assert first % m.ndim != second % m.ndim, "np.rot90 turns a plane of two axes"
    turns = k % 4
    if turns == 0:
        return m
    if turns == 2:
        return np.flip(np.flip(m, axis=first), axis=second)
    if turns == 1:
        return np.swapaxes(np.flip(m, axis=second), first, second)
    return np.flip(np.swapaxes(m, first, second), axis=second)


@library_function(np.vander)
def vander(
    x,
    N=None,  # relay: static
    increasing=False,  # relay: static
):
    """The powers of a vector's elements as rows, x^(N - 1) first, or x^0 where they are increasing."""
    assert x.ndim == 1, "np.vander takes a vector"
    count = x.shape[0] if N is None else N
    if count == 0:
        return np.zeros((x.shape[0], 0), dtype=x.dtype)
    x = x.astype(np.int32) if x.dtype == np.bool_ else x
    columns = [np.ones_like(x)]
    for _ in range(count - 1):
        columns.append(columns[-1] * x)
    return np.stack(columns if increasing else columns[::-1], axis=1)


@library_function(np.select)
def select(condlist, choicelist, default=0):
    """The elements of the first choice whose condition holds."""
    assert len(condlist) == len(choicelist), "np.select needs one choice for each condition"
    result = default
    for condition, choice in zip(reversed(condlist), reversed(choicelist), strict=True):
        result = np.where(condition, choice, result)
    return result


@library_function(np.atleast_1d)
def atleast_1d(ary, /):
    """The array, with one axis at least."""
    x = np.array(ary)
    return np.reshape(x, (1,)) if x.ndim == 0 else x


@library_function(np.atleast_2d)
def atleast_2d(ary, /):
    """The array, with two axes at least, new ones in front."""
    x = np.array(ary)
    if x.ndim == 0:
        return np.reshape(x, (1, 1))
    return x[None, :] if x.ndim == 1 else x


@library_function(np.hstack)
def hstack(
    tup,
    *,
    dtype=None,  # relay: static
    casting="same_kind",  # relay: static
):
    """Arrays one after the other along their second axis, or the only one."""
    assert len(tup) > 0, "np.hstack needs at least one array"
    parts = [np.atleast_1d(x) for x in tup]
    return np.concatenate(parts, axis=0 if parts[0].ndim == 1 else 1, dtype=dtype, casting=casting)


@library_function(np.vstack)
def vstack(
    tup,
    *,
    dtype=None,  # relay: static
    casting="same_kind",  # relay: static
):
    """Arrays one after the other along their first axis, vectors as rows."""
    assert len(tup) > 0, "np.vstack needs at least one array"
    return np.concatenate([np.atleast_2d(x) for x in tup], axis=0, dtype=dtype, casting=casting)


@library_function(np.column_stack)
def column_stack(tup):
    """Arrays one after the other along their second axis, vectors as columns."""
    assert len(tup) > 0, "np.column_stack needs at least one array"
    arrays = [np.array(x) for x in tup]
    return np.concatenate([np.reshape(x, (-1, 1)) if x.ndim < 2 else x for x in arrays], axis=1)


@library_function(np.array_equal)
def array_equal(
    a1,
    a2,
    equal_nan=False,  # relay: static
):
    """True if two arrays have one shape and equal elements; NaN is equal to NaN on demand."""
    x, y = np.asarray(a1), np.asarray(a2)
    if x.ndim != y.ndim or x.shape != y.shape:
        return False
    return np.all((x == y) | ((x != x) & (y != y)) if equal_nan else x == y)


@library_function(getattr(np, "array_equiv", None))
def array_equiv(a1, a2):
    """True if two arrays are equal once they are broadcast to one shape."""
    return np.all(np.asarray(a1) == np.asarray(a2))


@library_function(np.isclose)
def isclose(
    a,
    b,
    rtol=1e-5,
    atol=1e-8,
    equal_nan=False,  # relay: static
):
    """True where elements are close: |a - b| <= atol + rtol |b| for a finite b, or equal; NaN to NaN on demand."""
    x, y = np.asarray(a), np.asarray(b)
    if x.dtype == np.bool_ and y.dtype == np.bool_:
        x, y = x.astype(np.int32), y.astype(np.int32)
    near = np.abs(x - y) <= np.abs(y) * rtol + atol
    close = (near & np.isfinite(y)) | (x == y)
    return close | ((x != x) & (y != y)) if equal_nan else close


@library_function(np.allclose)
def allclose(
    a,
    b,
    rtol=1e-5,
    atol=1e-8,
    equal_nan=False,  # relay: static
):
    """True if all elements are close, as by `isclose`."""
    return np.all(np.isclose(a, b, rtol, atol, equal_nan))


@library_function(np.ix_)
def ix_(first, second, third=None):
    """The index arrays of a part of a matrix: some rows and some columns."""
    rows, columns = np.array(first), np.array(second)
    if third is None:
        return rows[:, None], columns[None, :]
    return rows[:, None, None], columns[None, :, None], np.array(third)[None, None, :]


@library_function(np.flatnonzero)
def flatnonzero(a):
    """The positions of the elements that are not 0, in one row."""
    row = np.ravel(a)
    return np.arange(row.shape[0])[row.astype(bool)]


@library_function(np.nonzero, np.ndarray.nonzero)
def nonzero(a, /):
    """The positions of the elements that are not 0: one array of indices for each axis."""
    assert a.ndim > 0, "np.nonzero takes an array with axes"
    places, found = np.flatnonzero(a), []
    for axis in range(a.ndim):
        after = 1
        for extent in a.shape[axis + 1 :]:
            after = after * max(extent, 1)
        found.append(places // after % max(a.shape[axis], 1))
    return tuple(found)


@library_function(np.argwhere)
def argwhere(a):
    """The positions of the elements that are not 0, one in each row."""
    return np.stack(np.nonzero(a), axis=1)


@library_function(np.tril_indices)
def tril_indices(
    n,  # relay: static
    k=0,  # relay: static
    m=None,  # relay: static
):
    """The positions on and below the diagonal k of an n x m matrix."""
    return np.nonzero(np.tril(np.ones((n, n if m is None else m)), k))


@library_function(np.triu_indices)
def triu_indices(
    n,  # relay: static
    k=0,  # relay: static
    m=None,  # relay: static
):
    """The positions on and above the diagonal k of an n x m matrix."""
    return np.nonzero(np.triu(np.ones((n, n if m is None else m)), k))


@library_function(np.cross)
def cross(
    a,
    b,
    axisa=-1,  # relay: static
    axisb=-1,  # relay: static
    axisc=-1,  # relay: static
    axis=None,  # relay: static
):
    """The cross product of vectors of three elements, along the last axis: orthogonal to both. The axes of the vectors
    in a, b and the result may be others, or one in all of them."""
    if axis is not None:
        return np.cross(a, b, axis, axis, axis)
    x, y = np.moveaxis(np.asarray(a), axisa, -1), np.moveaxis(np.asarray(b), axisb, -1)
    assert x.shape[-1] == 3 and y.shape[-1] == 3, "np.cross takes vectors of three elements"
    first = x[..., 1] * y[..., 2] - x[..., 2] * y[..., 1]
    second = x[..., 2] * y[..., 0] - x[..., 0] * y[..., 2]
    return np.stack([first, second, x[..., 0] * y[..., 1] - x[..., 1] * y[..., 0]], axis=axisc)


@library_function(np.rollaxis)
def rollaxis(
    a,
    axis,  # relay: static
    start=0,  # relay: static
):
    """a with an axis moved before another one."""
    x = np.asarray(a)
    first = axis + x.ndim if axis < 0 else axis
    last = start + x.ndim if start < 0 else start
    assert 0 <= first < x.ndim and 0 <= last <= x.ndim, f"np.rollaxis of an array of rank {x.ndim} has no such axis"
    return np.moveaxis(x, first, last - 1 if first < last else last)


@library_function(np.indices)
def indices(
    dimensions,  # relay: static
    dtype=int,  # relay: static
    sparse=False,  # relay: static
):
    """The positions along each axis of an array of this shape, one array for each axis; sparse ones have extent 1 along
    the others."""
    assert dtype is not bool, "positions are numbers, and no booleans"
    rank = len(dimensions)
    found = []
    for axis in range(rank):
        shape = [1] * axis + [dimensions[axis]] + [1] * (rank - axis - 1)
        places = np.arange(dimensions[axis]).reshape(shape)
        places = places.astype(np.float64 if dtype is None else dtype)
        found.append(places if sparse else np.broadcast_to(places, dimensions))
    return tuple(found) if sparse else np.stack(found)


@library_function(np.unravel_index)
def unravel_index(
    indices,
    shape,  # relay: static
    order="C",  # relay: static
):
    """The positions along each axis of elements of the flattened array."""
    if order == "F":
        return np.unravel_index(indices, (shape,) if isinstance(shape, int) else tuple(shape)[::-1])[::-1]
    assert order == "C", "the order is 'C' or 'F'"
    sizes = (shape,) if isinstance(shape, int) else shape
    rest = np.asarray(indices)
    assert np.all((rest >= 0) & (rest < math.prod(sizes))), "np.unravel_index: an index is out of bounds"
    found = []
    for size in sizes[::-1]:
        found = [rest % size, *found]
        rest = rest // size
    return tuple(found)


@library_function(np.ravel_multi_index)
def ravel_multi_index(
    multi_index,
    dims,  # relay: static
    mode="raise",  # relay: static
    order="C",  # relay: static
):
    """The position in the flattened array of elements with these positions along each axis. Those beyond it are errors,
    or the nearest ones, or counted on from the other end."""
    if order == "F":
        return np.ravel_multi_index(tuple(multi_index)[::-1], tuple(dims)[::-1], mode)
    assert order == "C", "the order is 'C' or 'F'"
    assert mode in ("raise", "clip", "wrap"), "the mode is 'raise', 'clip' or 'wrap'"
    whole = np.asarray(multi_index[0]) * 0
    for axis in range(len(dims)):
        place = np.asarray(multi_index[axis])
        if mode == "clip":
            place = np.clip(place, 0, dims[axis] - 1)
        elif mode == "wrap":
            place = np.mod(place, dims[axis])
        assert np.all((place >= 0) & (place < dims[axis])), "np.ravel_multi_index: an index is out of bounds"
        whole = whole * dims[axis] + place
    return whole
