"""Functions of NumPy that leave NaN out."""

from __future__ import annotations

import math

import numpy as np

from relay.typecheck.elaboration.library.overloads import library_function


@library_function()
def _masked_by_nan(a, where):
    """a with NaN where a mask does not hold."""
    x = np.asarray(a)
    if where is None:
        return x
    return np.where(np.broadcast_to(np.asarray(where), x.shape), x + 0.0, math.nan)


@library_function(np.nansum)
def nansum(
    a,
    axis=None,  # relay: static
    dtype=None,  # relay: static
    out=None,
    keepdims=False,  # relay: static
    initial=None,
    where=None,
):
    """The sum of the elements that are numbers."""
    assert out is None, "values never change: assign the result"
    x = np.where(np.isnan(a), 0, a)
    if initial is None and where is None:
        return np.sum(x, axis=axis, dtype=dtype, keepdims=keepdims)
    start, mask = 0 if initial is None else initial, True if where is None else where
    return np.sum(x, axis=axis, dtype=dtype, keepdims=keepdims, initial=start, where=mask)


@library_function(np.nanprod)
def nanprod(
    a,
    axis=None,  # relay: static
    dtype=None,  # relay: static
    out=None,
    keepdims=False,  # relay: static
    initial=None,
    where=None,
):
    """The product of the elements that are numbers."""
    assert out is None, "values never change: assign the result"
    x = np.where(np.isnan(a), 1, a)
    if initial is None and where is None:
        return np.prod(x, axis=axis, dtype=dtype, keepdims=keepdims)
    start, mask = 1 if initial is None else initial, True if where is None else where
    return np.prod(x, axis=axis, dtype=dtype, keepdims=keepdims, initial=start, where=mask)


@library_function(np.nancumsum)
def nancumsum(
    a,
    axis=None,  # relay: static
    dtype=None,  # relay: static
    out=None,
):
    """The sums of the elements so far that are numbers."""
    assert out is None, "values never change: assign the result"
    return np.cumsum(np.where(np.isnan(a), 0, a), axis=axis, dtype=dtype)


@library_function(np.nancumprod)
def nancumprod(
    a,
    axis=None,  # relay: static
    dtype=None,  # relay: static
    out=None,
):
    """The products of the elements so far that are numbers."""
    assert out is None, "values never change: assign the result"
    return np.cumprod(np.where(np.isnan(a), 1, a), axis=axis, dtype=dtype)


@library_function(np.nanmean)
def nanmean(
    a,
    axis=None,  # relay: static
    dtype=None,  # relay: static
    out=None,
    keepdims=False,  # relay: static
    *,
    where=None,
):
    """The mean of the elements that are numbers."""
    assert out is None, "values never change: assign the result"
    assert dtype is None or np.issubdtype(dtype, np.floating), "means are floats: dtype is one of floats"
    x = _masked_by_nan(a, where) if dtype is None else _masked_by_nan(a, where).astype(dtype)
    is_number = np.where(np.isnan(x), np.zeros_like(x), np.ones_like(x))
    return np.nansum(x, axis=axis, keepdims=keepdims) / np.sum(is_number, axis=axis, keepdims=keepdims)


@library_function(np.nanvar)
def nanvar(
    a,
    axis=None,  # relay: static
    dtype=None,  # relay: static
    out=None,
    ddof=0,
    keepdims=False,  # relay: static
    *,
    where=None,
    mean=None,
    correction=None,
):
    """The mean square distance to the mean of the elements that are numbers, or to a given one; their number n is taken
    as n - ddof, and it is NaN where that is not positive."""
    assert out is None, "values never change: assign the result"
    assert dtype is None or np.issubdtype(dtype, np.floating), "variances are floats: dtype is one of floats"
    x = _masked_by_nan(a, where) + 0.0 if dtype is None else _masked_by_nan(a, where).astype(dtype)
    is_number = np.isnan(x) == False  # noqa: E712  (of each element)
    middle = np.nanmean(x, axis=axis, keepdims=True) if mean is None else mean
    distance = np.where(is_number, x - middle, 0.0)
    count = np.sum(is_number, axis=axis, keepdims=keepdims) - (ddof if correction is None else correction)
    total = np.sum(distance * distance, axis=axis, keepdims=keepdims)
    return np.where(count > 0, total / np.maximum(count, 1), math.nan)


@library_function(np.nanstd)
def nanstd(
    a,
    axis=None,  # relay: static
    dtype=None,  # relay: static
    out=None,
    ddof=0,
    keepdims=False,  # relay: static
    *,
    where=None,
    mean=None,
    correction=None,
):
    """The square root of `nanvar`, whose gradient where it is 0 is 0."""
    less = ddof if correction is None else correction
    variance = np.nanvar(a, axis=axis, dtype=dtype, out=out, ddof=less, keepdims=keepdims, where=where, mean=mean)
    return np.where(variance == 0.0, 0.0, np.sqrt(np.where(variance == 0.0, 1.0, variance)))


@library_function(np.nanmax)
def nanmax(
    a,
    axis=None,  # relay: static
    out=None,
    keepdims=False,  # relay: static
    initial=None,
    where=None,
):
    """The largest of the elements that are numbers; NaN where none is."""
    assert out is None, "values never change: assign the result"
    assert where is None or initial is not None, "np.nanmax with where needs an initial value: initial=-np.inf"
    x = _masked_by_nan(a, where)
    if not np.issubdtype(x.dtype, np.floating):
        found = np.max(x, axis=axis, keepdims=keepdims)
        return found if initial is None else np.maximum(found, np.asarray(initial).astype(x.dtype))
    largest = np.max(np.where(np.isnan(x), -math.inf, x), axis=axis, keepdims=keepdims)
    found = np.where(np.all(np.isnan(x), axis=axis, keepdims=keepdims), math.nan, largest)
    return found if initial is None else np.fmax(found, np.asarray(initial).astype(x.dtype))


@library_function(np.nanmin)
def nanmin(
    a,
    axis=None,  # relay: static
    out=None,
    keepdims=False,  # relay: static
    initial=None,
    where=None,
):
    """The smallest of the elements that are numbers; NaN where none is."""
    assert out is None, "values never change: assign the result"
    assert where is None or initial is not None, "np.nanmin with where needs an initial value: initial=np.inf"
    x = _masked_by_nan(a, where)
    if not np.issubdtype(x.dtype, np.floating):
        found = np.min(x, axis=axis, keepdims=keepdims)
        return found if initial is None else np.minimum(found, np.asarray(initial).astype(x.dtype))
    smallest = np.min(np.where(np.isnan(x), math.inf, x), axis=axis, keepdims=keepdims)
    found = np.where(np.all(np.isnan(x), axis=axis, keepdims=keepdims), math.nan, smallest)
    return found if initial is None else np.fmin(found, np.asarray(initial).astype(x.dtype))


@library_function()
def require_numbers(
    a,
    axis,  # relay: static
):
    """Stop the program where all elements along an axis are NaN."""
    assert not np.any(np.all(np.isnan(a), axis=axis)), "All-NaN slice encountered"


@library_function(np.nanargmax)
def nanargmax(
    a,
    axis=None,  # relay: static
    out=None,
    *,
    keepdims=False,  # relay: static
):
    """The position of the largest of the elements that are numbers; one of them has to be."""
    assert out is None, "values never change: assign the result"
    require_numbers(a, axis)
    return np.argmax(np.where(np.isnan(a), -math.inf, a), axis=axis, keepdims=keepdims)


@library_function(np.nanargmin)
def nanargmin(
    a,
    axis=None,  # relay: static
    out=None,
    *,
    keepdims=False,  # relay: static
):
    """The position of the smallest of the elements that are numbers; one of them has to be."""
    assert out is None, "values never change: assign the result"
    require_numbers(a, axis)
    return np.argmin(np.where(np.isnan(a), math.inf, a), axis=axis, keepdims=keepdims)
