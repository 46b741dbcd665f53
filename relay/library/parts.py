"""Functions of NumPy that take arrays apart, leave elements out, or put some in."""

from __future__ import annotations

import numpy as np

from relay.typecheck.elaboration.library.overloads import library_function


@library_function(np.delete)
def delete(
    arr,
    obj,
    axis=None,  # relay: static
):
    """arr without what is at an index, at several, or where a mask holds, along an axis; all elements in one row
    without an axis."""
    assert not isinstance(axis, tuple), "np.delete goes along one axis"
    x, left_out = np.asarray(arr), np.asarray(obj)
    rows = np.ravel(x) if axis is None else np.moveaxis(x, axis, 0)
    assert left_out.ndim < 2, "np.delete takes one index, or a vector"
    count = rows.shape[0]
    if left_out.dtype == np.bool_:
        assert left_out.ndim == 1, "a mask has an element for each row"
        found = rows[~left_out]
    elif left_out.ndim == 0:
        assert -count <= left_out < count, "the index of np.delete is out of range"
        places = np.arange(max(count - 1, 0))
        found = np.take(rows, places + (places >= np.mod(left_out, max(count, 1))), axis=0)
    else:
        wrapped = np.where(left_out < 0, left_out + count, left_out)
        found = rows[~np.isin(np.arange(count), wrapped)]
    return found if axis is None else np.moveaxis(found, 0, axis)


@library_function(np.insert)
def insert(
    arr,
    obj,
    values,
    axis=None,  # relay: static
):
    """arr with values put in before an index along an axis; all elements in one row without an axis."""
    assert not isinstance(axis, tuple), "np.insert goes along one axis"
    x, place = np.asarray(arr), np.asarray(obj)
    assert place.ndim == 0, "np.insert takes one index: join parts by np.concatenate for several"
    rows = np.ravel(x) if axis is None else np.moveaxis(x, axis, 0)
    new = np.asarray(values).astype(x.dtype)
    if axis is None or (rows.ndim == 1 and new.ndim == 1):
        new = np.ravel(new)
    else:
        assert new.ndim < x.ndim, "np.insert puts in one row: join parts by np.concatenate for several"
        new = np.broadcast_to(new, rows.shape[1:])[None]
    count, more = rows.shape[0], new.shape[0]
    assert -count <= place <= count, "the index of np.insert is out of range"
    begin = np.where(place < 0, place + count, place)
    places = np.arange(count + more)
    inside = np.where(places < begin + more, count + places - begin, places - more)
    found = np.take(np.concatenate([rows, new], axis=0), np.where(places < begin, places, inside), axis=0)
    return found if axis is None else np.moveaxis(found, 0, axis)


@library_function(np.ndarray.compress)
def compressed(
    a,
    condition,
    axis=None,  # relay: static
):
    """The method of arrays that `np.compress` is."""
    return np.compress(condition, a, axis)


@library_function(np.compress)
def compress(
    condition,
    a,
    axis=None,  # relay: static
):
    """The rows along an axis for which a vector of booleans holds; elements of one row without an axis."""
    assert not isinstance(axis, tuple), "np.compress goes along one axis"
    x, mask = np.asarray(a), np.asarray(condition).astype(bool)
    rows = np.ravel(x) if axis is None else np.moveaxis(x, axis, 0)
    found = rows[: mask.shape[0]][mask]
    return found if axis is None else np.moveaxis(found, 0, axis)


@library_function(np.extract)
def extract(condition, arr):
    """The elements where a condition of the same shape holds, in one row."""
    return np.ravel(np.asarray(arr))[np.ravel(np.asarray(condition)).astype(bool)]


@library_function(np.array_split)
def array_split(
    ary,
    indices_or_sections,  # relay: static
    axis=0,  # relay: static
):
    """The parts of an array along an axis, the first of which have one more where they cannot be of equal extent; or
    those between indices."""
    if not isinstance(indices_or_sections, int):
        return np.split(ary, indices_or_sections, axis=axis)
    size, more = ary.shape[axis] // indices_or_sections, ary.shape[axis] % indices_or_sections
    return np.split(ary, [size * i + min(i, more) for i in range(1, indices_or_sections)], axis=axis)


@library_function(np.hsplit)
def hsplit(
    ary,
    indices_or_sections,  # relay: static
):
    """The parts of an array along its second axis, or the only one."""
    return np.split(ary, indices_or_sections, axis=0 if ary.ndim == 1 else 1)


@library_function(np.vsplit)
def vsplit(
    ary,
    indices_or_sections,  # relay: static
):
    """The parts of an array along its first axis."""
    assert ary.ndim > 1, "np.vsplit takes an array of two axes or more"
    return np.split(ary, indices_or_sections, axis=0)


@library_function(np.dstack)
def dstack(tup):
    """Arrays one after the other along their third axis."""
    parts = [np.atleast_2d(x) for x in tup]
    return np.concatenate([x[:, :, None] if x.ndim == 2 else x for x in parts], axis=2)


@library_function(np.diagflat)
def diagflat(
    v,
    k=0,  # relay: static
):
    """The matrix with all elements of an array on a diagonal."""
    return np.diag(np.ravel(np.asarray(v)), k)


@library_function(np.identity)
def identity(
    n,  # relay: static
    dtype=None,  # relay: static
    *,
    like=None,
):
    """The n x n matrix with 1 on its diagonal."""
    return np.eye(n) if dtype is None else np.eye(n, dtype=dtype)


@library_function(np.apply_along_axis)
def apply_along_axis(
    func1d,
    axis,  # relay: static
    arr,
    *args,
):
    """A function of each vector along an axis; what it gives, a number or a vector, takes their place."""
    rows = np.moveaxis(np.asarray(arr), axis, -1)
    found = np.stack([func1d(row, *args) for row in np.reshape(rows, (-1, rows.shape[-1]))])
    whole = np.reshape(found, (*rows.shape[:-1], *found.shape[1:]))
    return np.moveaxis(whole, -1, axis) if found.ndim == 2 else whole
