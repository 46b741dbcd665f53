"""Functions of NumPy about shapes and dtypes, and those that give arrays another shape."""

from __future__ import annotations

import numpy as np

from relay.typecheck.elaboration.library.overloads import library_function


@library_function(np.ndim)
def ndim(a):
    """The number of axes."""
    return np.asarray(a).ndim


@library_function(np.shape)
def shape(a):
    """The extents along all axes."""
    return np.asarray(a).shape


@library_function(np.size)
def size(
    a,
    axis=None,  # relay: static
):
    """The number of elements, or the extent along an axis, or the product of several."""
    x = np.asarray(a)
    if axis is None:
        return x.size
    if isinstance(axis, int):
        return x.shape[axis]
    count = 1
    for place in axis:
        count = count * x.shape[place]
    return count


@library_function(np.ascontiguousarray, np.asfortranarray)
def ascontiguousarray(
    a,
    dtype=None,  # relay: static
):
    """The array, with one axis at least; values have one form in memory."""
    return np.atleast_1d(np.asanyarray(a, dtype))


@library_function(np.asanyarray)
def asanyarray(
    a,
    dtype=None,  # relay: static
):
    """The array; values have one form in memory."""
    return np.asarray(a) if dtype is None else np.asarray(a, dtype=dtype)


@library_function(np.asarray_chkfinite)
def asarray_chkfinite(
    a,
    dtype=None,  # relay: static
):
    """The array, all of whose elements have to be finite."""
    x = np.asanyarray(a, dtype)
    assert np.all(np.isfinite(x)), "the array must not contain infinities or NaN"
    return x


@library_function(getattr(np, "astype", None))
def astype(
    x,
    dtype,  # relay: static
    /,
    *,
    copy=True,
    device=None,
):
    """x in another dtype."""
    return x.astype(dtype)


@library_function(np.atleast_3d)
def atleast_3d(ary, /):
    """The array, with three axes at least: a vector is the middle one, a matrix the first two."""
    x = np.atleast_1d(ary)
    if x.ndim == 1:
        return x[None, :, None]
    return x[:, :, None] if x.ndim == 2 else x


@library_function(np.dsplit)
def dsplit(
    ary,
    indices_or_sections,  # relay: static
):
    """The parts of an array along its third axis."""
    assert ary.ndim > 2, "np.dsplit takes an array of three axes or more"
    return np.split(ary, indices_or_sections, axis=2)


@library_function(getattr(np, "unstack", None))
def unstack(
    x,
    /,
    *,
    axis=0,  # relay: static
):
    """The parts of an array along an axis, one for each index."""
    rows = np.moveaxis(np.asarray(x), axis, 0)
    return tuple([rows[i] for i in range(rows.shape[0])])


@library_function(
    getattr(np, "matrix_transpose", None), getattr(np.linalg, "matrix_transpose", None), getattr(np.ndarray, "mT", None)
)
def matrix_transpose(x, /):
    """x with its last two axes exchanged."""
    return np.swapaxes(x, -1, -2)


@library_function(np.broadcast_shapes)
def broadcast_shapes(*args):
    """The shape that arrays of several shapes are broadcast to."""
    shapes = [(s,) if isinstance(s, int) else s for s in args]
    whole = np.zeros(())
    for s in shapes:
        whole = whole + np.zeros(s)
    return whole.shape


@library_function(np.broadcast_arrays)
def broadcast_arrays(*args, subok=False):
    """The arrays in the shape that they are broadcast to together."""
    arrays = [np.asarray(x) for x in args]
    whole = np.zeros((), dtype=bool)
    for x in arrays:
        whole = whole | np.zeros(x.shape, dtype=bool)
    return tuple([np.broadcast_to(x, whole.shape) for x in arrays])


@library_function(np.resize)
def resize(
    a,
    new_shape,  # relay: static
):
    """An array of a shape, filled with the elements of a, over and over."""
    row = np.ravel(np.asarray(a))
    assert row.shape[0] > 0, "np.resize repeats elements: the array has none"
    whole = (new_shape,) if isinstance(new_shape, int) else new_shape
    count = 1
    for extent in whole:
        count = count * extent
    return np.reshape(np.take(row, np.mod(np.arange(count), row.shape[0])), whole)


@library_function(np.trim_zeros)
def trim_zeros(
    filt,
    trim="fb",  # relay: static
):
    """A vector without the zeros at its front and its back, or at one of them."""
    x = np.asarray(filt)
    assert x.ndim == 1, "np.trim_zeros takes a vector"
    assert trim in ("f", "b", "fb", "bf"), "trim is 'f', 'b' or 'fb'"
    is_other = x != 0
    behind = np.cumsum(is_other) > 0
    before = np.cumsum(is_other[::-1])[::-1] > 0
    return x[behind] if trim == "f" else x[before] if trim == "b" else x[behind & before]


@library_function(np.block)
def block(arrays):
    """A matrix of blocks: lists are joined along the last axis, lists of lists along the one before it, and so on."""
    return _block(arrays, _depth(arrays))


@library_function()
def _depth(arrays):
    """The number of lists that are inside of each other."""
    return 1 + _depth(arrays[0]) if isinstance(arrays, list) else 0


@library_function()
def _block(
    arrays,
    depth,  # relay: static
):
    """The blocks of this depth, which are joined along the axis that is so far from the last one."""
    if depth == 0:
        return np.asarray(arrays)
    parts = [_block(part, depth - 1) for part in arrays]
    rank = max(depth, max([part.ndim for part in parts]))
    whole = [np.reshape(part, (*((1,) * (rank - part.ndim)), *part.shape)) for part in parts]
    return np.concatenate(whole, axis=-depth)


@library_function(np.ndindex)
def ndindex(*shape):
    """The positions of the elements of an array of up to four axes, in order."""
    sizes = shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
    rank = len(sizes)
    assert 1 <= rank <= 4, "np.ndindex takes one to four axes"
    if rank == 1:
        return [(i,) for i in range(sizes[0])]
    if rank == 2:
        return [(i, j) for i in range(sizes[0]) for j in range(sizes[1])]
    if rank == 3:
        return [(i, j, k) for i in range(sizes[0]) for j in range(sizes[1]) for k in range(sizes[2])]
    return [(*ij, *kl) for ij in np.ndindex(sizes[0], sizes[1]) for kl in np.ndindex(sizes[2], sizes[3])]


@library_function(np.ndenumerate)
def ndenumerate(arr):
    """The positions of the elements of an array of up to four axes, in order, each with the element."""
    x = np.asarray(arr)
    places, row = np.ndindex(x.shape), np.ravel(x)
    return [(places[i], row[i]) for i in range(len(places))]
