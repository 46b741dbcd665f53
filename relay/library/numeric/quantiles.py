"""Functions of NumPy that look for elements by their rank: medians, quantiles, and those without NaN."""

from __future__ import annotations

import math

import numpy as np

from relay.typecheck.elaboration.library.overloads import library_function


@library_function()
def rows_along(
    x,
    axis,  # relay: static
):
    """x with the elements along an axis, along several, or all of them, along its last axis."""
    if axis is None:
        return np.ravel(x)
    if isinstance(axis, int):
        return np.moveaxis(x, axis, -1)
    count = len(axis)
    assert count > 0, "there is no axis to go along"
    moved = np.moveaxis(x, axis, tuple([i - count for i in range(count)]))
    return np.reshape(moved, (*moved.shape[: x.ndim - count], math.prod(moved.shape[x.ndim - count :])))


@library_function()
def with_kept_axes(
    found,
    x,
    axis,  # relay: static
):
    """The result `found` along axes of x, with these axes of extent 1; it may have more axes in front."""
    gone = tuple(range(x.ndim)) if axis is None else (axis,) if isinstance(axis, int) else axis
    more = found.ndim + len(gone) - x.ndim
    return np.expand_dims(found, tuple([a % x.ndim + more for a in gone]))


@library_function()
def _places(
    part,
    count,
    method,  # relay: static
):
    """The places of the fractions of `count` sorted elements: of two elements each, and how far it is from the first
    to the second one. The methods are those of Hyndman and Fan (1996), and five more."""
    last = np.maximum(count - 1, 0)
    if method == "inverted_cdf":
        place = np.ceil(part * count - 1)
    elif method == "closest_observation":
        middle = part * count - 1.5
        place = np.where((np.floor(middle) == middle) & (np.mod(middle, 2.0) == 1.0), middle, np.floor(middle) + 1.0)
    elif method == "averaged_inverted_cdf":
        place = part * count - 1
        place = np.where(place == np.floor(place), place + 0.5, np.ceil(place))
    elif method == "interpolated_inverted_cdf":
        place = part * count - 1
    elif method == "hazen":
        place = part * count - 0.5
    elif method == "weibull":
        place = part * (count + 1) - 1
    elif method == "median_unbiased":
        place = part * count + (part + 1) / 3.0 - 1
    elif method == "normal_unbiased":
        place = part * count + part / 4.0 + 3.0 / 8.0 - 1
    else:
        place = part * last
        if method == "lower":
            place = np.floor(place)
        elif method == "higher":
            place = np.ceil(place)
        elif method == "nearest":
            place = np.round(place)
        elif method == "midpoint":
            place = np.floor(place) / 2.0 + np.ceil(place) / 2.0
        else:
            assert method == "linear", f"np.quantile has no method {method!r}"
    inside = np.clip(place + 0.0, 0, last + 0.0)
    low = np.floor(inside)
    high = np.where(place < 0, low, np.minimum(low + 1, last + 0.0))
    return low.astype(np.int32), high.astype(np.int32), inside - low


@library_function()
def _is_of_elements(
    method,  # relay: static
):
    """True if quantiles by a method are elements, and none between them."""
    return method in ("inverted_cdf", "closest_observation", "lower", "higher", "nearest")


@library_function()
def _point_between(below, above, way):
    """The value that is so far on the way from one to the other, computed from the nearer one, as NumPy does: NaN where
    one of them is infinite, unless the other one is, too, and the way is between them."""
    step = above - below
    return np.where(way < 0.5, below + step * way, above - step * (1.0 - way))


@library_function()
def _without_nan(found, end):
    """NaN where the last one of the sorted elements is."""
    return np.where(end == end, found, math.nan)


@library_function(np.quantile)
def quantile(
    a,
    q,
    axis=None,  # relay: static
    out=None,
    overwrite_input=False,
    method="linear",  # relay: static
    keepdims=False,  # relay: static
    *,
    weights=None,
):
    """The values below which the fractions q of the elements are, with the axes of q first. Between two elements it is
    on the straight line, or where another method says; by the sums of weights for the method inverted_cdf."""
    assert out is None, "values never change: assign the result"
    x, part = np.asarray(a), np.asarray(q)
    x = x if _is_of_elements(method) else x + 0.0
    unsorted = rows_along(x, axis)
    assert unsorted.shape[-1] > 0, "a quantile needs elements"
    fractions = np.ravel(part)
    if weights is None:
        rows = np.sort(unsorted, axis=-1)
        low, high, way = _places(fractions, rows.shape[-1], method)
        found = np.take(rows, low, axis=-1)
        found = found if _is_of_elements(method) else _point_between(found, np.take(rows, high, axis=-1), way)
    else:
        assert method == "inverted_cdf", "quantiles with weights have the method 'inverted_cdf'"
        w = np.asarray(weights) + 0.0
        if w.ndim < x.ndim:
            assert isinstance(axis, int) and w.ndim == 1, "weights of another shape are a vector along one axis"
            w = np.broadcast_to(w, unsorted.shape)
        else:
            w = rows_along(w, axis)
        order = np.argsort(unsorted, axis=-1)
        rows = np.take_along_axis(unsorted, order, axis=-1)
        sums = np.cumsum(np.take_along_axis(w, order, axis=-1), axis=-1)
        shares = (sums / sums[..., -1:])[..., None]
        place = np.sum((shares < fractions) | (shares == 0.0), axis=-2)
        found = np.take_along_axis(rows, np.minimum(place, rows.shape[-1] - 1), axis=-1)
    if not _is_of_elements(method) or np.issubdtype(x.dtype, np.floating):
        found = _without_nan(found, rows[..., -1:])
    return _in_shape(found, x, part, axis, keepdims)


@library_function()
def _in_shape(
    found,
    x,
    part,
    axis,  # relay: static
    keepdims,  # relay: static
):
    """Quantiles along the last axis with the axes of the fractions first."""
    found = np.moveaxis(found, -1, 0)
    found = np.reshape(found, (*part.shape, *found.shape[1:]))
    return with_kept_axes(found, x, axis) if keepdims else found


@library_function(np.percentile)
def percentile(
    a,
    q,
    axis=None,  # relay: static
    out=None,
    overwrite_input=False,
    method="linear",  # relay: static
    keepdims=False,  # relay: static
    *,
    weights=None,
):
    """The values below which q percent of the elements are: see `np.quantile`."""
    assert out is None, "values never change: assign the result"
    return np.quantile(a, np.asarray(q) / 100.0, axis=axis, method=method, keepdims=keepdims, weights=weights)


@library_function(np.nanquantile)
def nanquantile(
    a,
    q,
    axis=None,  # relay: static
    out=None,
    overwrite_input=False,
    method="linear",  # relay: static
    keepdims=False,  # relay: static
):
    """The quantiles of the elements that are numbers, as by `np.quantile`; NaN where none is."""
    assert out is None, "values never change: assign the result"
    x, part = np.asarray(a), np.asarray(q)
    if not np.issubdtype(x.dtype, np.floating):
        return np.quantile(x, q, axis=axis, method=method, keepdims=keepdims)
    rows = np.sort(rows_along(x, axis), axis=-1)
    if rows.shape[-1] == 0:
        return _in_shape(np.full((*rows.shape[:-1], part.size), math.nan, dtype=x.dtype), x, part, axis, keepdims)
    count = np.sum(np.where(np.isnan(rows), 0, 1), axis=-1, keepdims=True)
    low, high, way = _places(np.ravel(part), count, method)
    found = _point_between(np.take_along_axis(rows, low, axis=-1), np.take_along_axis(rows, high, axis=-1), way)
    return _in_shape(np.where(count > 0, found, math.nan), x, part, axis, keepdims)


@library_function(np.nanpercentile)
def nanpercentile(
    a,
    q,
    axis=None,  # relay: static
    out=None,
    overwrite_input=False,
    method="linear",  # relay: static
    keepdims=False,  # relay: static
):
    """The percentiles of the elements that are numbers, as by `np.percentile`; NaN where none is."""
    assert out is None, "values never change: assign the result"
    return np.nanquantile(a, np.asarray(q) / 100.0, axis=axis, method=method, keepdims=keepdims)


@library_function(np.nanmedian)
def nanmedian(
    a,
    axis=None,  # relay: static
    out=None,
    overwrite_input=False,
    keepdims=False,  # relay: static
):
    """The median of the elements that are numbers; NaN where none is."""
    assert out is None, "values never change: assign the result"
    x = np.asarray(a) + 0.0
    rows = np.sort(rows_along(x, axis), axis=-1)
    if rows.shape[-1] == 0:
        return np.nanquantile(x, 0.5, axis=axis, keepdims=keepdims)
    count = np.sum(np.where(np.isnan(rows), 0, 1), axis=-1, keepdims=True)
    low = np.take_along_axis(rows, np.maximum(count - 1, 0) // 2, axis=-1)
    middle = low / 2 + np.take_along_axis(rows, np.minimum(count // 2, rows.shape[-1] - 1), axis=-1) / 2
    found = np.where(count > 0, middle, math.nan)[..., 0]
    return with_kept_axes(found, x, axis) if keepdims else found


@library_function(np.median)
def median(
    a,
    axis=None,  # relay: static
    out=None,
    overwrite_input=False,
    keepdims=False,  # relay: static
):
    """The element in the middle of the sorted ones; of an even number of them the mean of the two in the middle. That
    of nothing is NaN, as its mean is."""
    assert out is None, "values never change: assign the result"
    x = np.asarray(a)
    rows = np.sort(rows_along(x, axis), axis=-1)
    count = rows.shape[-1]
    if count == 0:
        middle = np.mean(rows / 2, axis=-1)
    else:
        middle = rows[..., (count - 1) // 2] / 2 + rows[..., count // 2] / 2  # the sum of short integers could overflow
        middle = _without_nan(middle, rows[..., -1])
    return with_kept_axes(middle, x, axis) if keepdims else middle
