"""Functions of NumPy that leave NaN out."""

from __future__ import annotations

import math

import numpy as np

from relay.typecheck.elaboration.library.overloads import library_function


@library_function(np.nansum)
def nansum(
    a,
    axis=None,  # relay: static
    *,
    keepdims=False,  # relay: static
):
    """The sum of the elements that are numbers."""
    return np.sum(np.where(np.isnan(a), 0, a), axis=axis, keepdims=keepdims)


@library_function(np.nanprod)
def nanprod(
    a,
    axis=None,  # relay: static
    *,
    keepdims=False,  # relay: static
):
    """The product of the elements that are numbers."""
    return np.prod(np.where(np.isnan(a), 1, a), axis=axis, keepdims=keepdims)


@library_function(np.nancumsum)
def nancumsum(
    a,
    axis=None,  # relay: static
):
    """The sums of the elements so far that are numbers."""
    return np.cumsum(np.where(np.isnan(a), 0, a), axis=axis)


@library_function(np.nancumprod)
def nancumprod(
    a,
    axis=None,  # relay: static
):
    """The products of the elements so far that are numbers."""
    return np.cumprod(np.where(np.isnan(a), 1, a), axis=axis)


@library_function(np.nanmean)
def nanmean(
    a,
    axis=None,  # relay: static
    *,
    keepdims=False,  # relay: static
):
    """The mean of the elements that are numbers."""
    is_number = np.where(np.isnan(a), np.zeros_like(a), np.ones_like(a))
    return np.nansum(a, axis=axis, keepdims=keepdims) / np.sum(is_number, axis=axis, keepdims=keepdims)


@library_function(np.nanvar)
def nanvar(
    a,
    axis=None,  # relay: static
    *,
    ddof=0,
    keepdims=False,  # relay: static
):
    """The mean square distance to the mean of the elements that are numbers, whose number n is taken as n - ddof; NaN
    where that is not positive."""
    x = np.asarray(a) + 0.0
    is_number = np.isnan(x) == False  # noqa: E712  (of each element)
    middle = np.nanmean(x, axis=axis, keepdims=True)
    distance = np.where(is_number, x - middle, 0.0)
    count = np.sum(is_number, axis=axis, keepdims=keepdims) - ddof
    total = np.sum(distance * distance, axis=axis, keepdims=keepdims)
    return np.where(count > 0, total / np.maximum(count, 1), math.nan)


@library_function(np.nanstd)
def nanstd(
    a,
    axis=None,  # relay: static
    *,
    ddof=0,
    keepdims=False,  # relay: static
):
    """The square root of `nanvar`, whose gradient where it is 0 is 0."""
    variance = np.nanvar(a, axis=axis, ddof=ddof, keepdims=keepdims)
    return np.where(variance == 0.0, 0.0, np.sqrt(np.where(variance == 0.0, 1.0, variance)))


@library_function(np.nanmax)
def nanmax(
    a,
    axis=None,  # relay: static
    *,
    keepdims=False,  # relay: static
):
    """The largest of the elements that are numbers; NaN where none is."""
    if not np.issubdtype(a.dtype, np.floating):
        return np.max(a, axis=axis, keepdims=keepdims)
    largest = np.max(np.where(np.isnan(a), -math.inf, a), axis=axis, keepdims=keepdims)
    return np.where(np.all(np.isnan(a), axis=axis, keepdims=keepdims), math.nan, largest)


@library_function(np.nanmin)
def nanmin(
    a,
    axis=None,  # relay: static
    *,
    keepdims=False,  # relay: static
):
    """The smallest of the elements that are numbers; NaN where none is."""
    if not np.issubdtype(a.dtype, np.floating):
        return np.min(a, axis=axis, keepdims=keepdims)
    smallest = np.min(np.where(np.isnan(a), math.inf, a), axis=axis, keepdims=keepdims)
    return np.where(np.all(np.isnan(a), axis=axis, keepdims=keepdims), math.nan, smallest)


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
):
    """The position of the largest of the elements that are numbers; one of them has to be."""
    require_numbers(a, axis)
    return np.argmax(np.where(np.isnan(a), -math.inf, a), axis=axis)


@library_function(np.nanargmin)
def nanargmin(
    a,
    axis=None,  # relay: static
):
    """The position of the smallest of the elements that are numbers; one of them has to be."""
    require_numbers(a, axis)
    return np.argmin(np.where(np.isnan(a), math.inf, a), axis=axis)
