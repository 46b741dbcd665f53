"""Reductions of NumPy with a mask or an initial value, which the operators of these names do not have."""

from __future__ import annotations

import numpy as np

from relay.library.numeric.quantiles import rows_along, with_kept_axes
from relay.typecheck.elaboration.library.overloads import library_function


@library_function()
def _masked_elements(x, where, other):
    """x where a mask holds that is broadcast to its shape, and elsewhere another number."""
    return np.where(np.broadcast_to(np.asarray(where), x.shape), x, other)


@library_function(np.sum)
def masked_sum(
    a,
    axis=None,  # relay: static
    dtype=None,  # relay: static
    out=None,
    keepdims=False,  # relay: static
    initial=0,
    where=True,
):
    """The sum of the elements where a mask holds, and of an initial value."""
    found = np.sum(_masked_elements(np.asarray(a), where, 0), axis=axis, dtype=dtype, keepdims=keepdims)
    return found + np.asarray(initial).astype(found.dtype)


@library_function(np.prod)
def masked_product(
    a,
    axis=None,  # relay: static
    dtype=None,  # relay: static
    out=None,
    keepdims=False,  # relay: static
    initial=1,
    where=True,
):
    """The product of the elements where a mask holds, and of an initial value."""
    found = np.prod(_masked_elements(np.asarray(a), where, 1), axis=axis, dtype=dtype, keepdims=keepdims)
    return found * np.asarray(initial).astype(found.dtype)


@library_function(np.max, np.amax)
def masked_maximum(
    a,
    axis=None,  # relay: static
    out=None,
    keepdims=False,  # relay: static
    initial=None,
    where=True,
):
    """The largest of the elements where a mask holds, and of an initial value."""
    assert initial is not None, "np.max with where needs an initial value: initial=-np.inf"
    x = np.asarray(a)
    start = np.asarray(initial).astype(x.dtype)
    rows = rows_along(_masked_elements(x, where, start), axis)
    found = np.full(rows.shape[:-1], start) if rows.shape[-1] == 0 else np.maximum(np.max(rows, axis=-1), start)
    return with_kept_axes(found, x, axis) if keepdims else found


@library_function(np.min, np.amin)
def masked_minimum(
    a,
    axis=None,  # relay: static
    out=None,
    keepdims=False,  # relay: static
    initial=None,
    where=True,
):
    """The smallest of the elements where a mask holds, and of an initial value."""
    assert initial is not None, "np.min with where needs an initial value: initial=np.inf"
    x = np.asarray(a)
    start = np.asarray(initial).astype(x.dtype)
    rows = rows_along(_masked_elements(x, where, start), axis)
    found = np.full(rows.shape[:-1], start) if rows.shape[-1] == 0 else np.minimum(np.min(rows, axis=-1), start)
    return with_kept_axes(found, x, axis) if keepdims else found


@library_function(np.mean)
def masked_mean(
    a,
    axis=None,  # relay: static
    dtype=None,  # relay: static
    out=None,
    keepdims=False,  # relay: static
    *,
    where=True,
):
    """The mean of the elements where a mask holds."""
    x = np.asarray(a) + 0.0 if dtype is None else np.asarray(a).astype(dtype)
    count = np.sum(_masked_elements(np.ones_like(x), where, 0), axis=axis, keepdims=keepdims)
    return np.sum(_masked_elements(x, where, 0), axis=axis, keepdims=keepdims) / count


@library_function(np.var)
def masked_variance(
    a,
    axis=None,  # relay: static
    dtype=None,  # relay: static
    out=None,
    ddof=0,
    keepdims=False,  # relay: static
    *,
    where=True,
    mean=None,
    correction=None,
):
    """The mean square distance of the elements where a mask holds to their mean, or to a given one; their number n is
    taken as n - ddof."""
    x = np.asarray(a) + 0.0 if dtype is None else np.asarray(a).astype(dtype)
    less = ddof if correction is None else correction
    middle = np.mean(x, axis=axis, keepdims=True, where=where) if mean is None else mean
    distance = _masked_elements(x - middle, where, 0.0)
    count = np.sum(_masked_elements(np.ones_like(x), where, 0), axis=axis, keepdims=keepdims)
    return np.sum(distance * distance, axis=axis, keepdims=keepdims) / np.maximum(count - less, 0.0)


@library_function(np.std)
def masked_deviation(
    a,
    axis=None,  # relay: static
    dtype=None,  # relay: static
    out=None,
    ddof=0,
    keepdims=False,  # relay: static
    *,
    where=True,
    mean=None,
    correction=None,
):
    """The square root of the variance, whose gradient where it is 0 is 0."""
    less = ddof if correction is None else correction
    variance = masked_variance(a, axis, dtype, None, less, keepdims, where=where, mean=mean)
    return np.where(variance == 0.0, 0.0, np.sqrt(np.where(variance == 0.0, 1.0, variance)))


@library_function(np.all)
def masked_all(
    a,
    axis=None,  # relay: static
    out=None,
    keepdims=False,  # relay: static
    *,
    where=True,
):
    """True if all elements are true where a mask holds."""
    return np.all(_masked_elements(np.asarray(a).astype(bool), where, True), axis=axis, keepdims=keepdims)


@library_function(np.any)
def masked_any(
    a,
    axis=None,  # relay: static
    out=None,
    keepdims=False,  # relay: static
    *,
    where=True,
):
    """True if an element is true where a mask holds."""
    return np.any(_masked_elements(np.asarray(a).astype(bool), where, False), axis=axis, keepdims=keepdims)


@library_function(np.argsort)
def flat_order(
    a,
    axis=None,  # relay: static
    kind=None,  # relay: static
    order=None,
    *,
    stable=None,  # relay: static
):
    """The order of all elements in one row."""
    assert order is None, "arrays have no fields: leave order out"
    return np.argsort(np.ravel(np.asarray(a)), axis=0, kind=kind)


@library_function(np.sort)
def flat_sort(
    a,
    axis=None,  # relay: static
    kind=None,  # relay: static
    order=None,
    *,
    stable=None,  # relay: static
):
    """All elements in one row, in ascending order."""
    assert order is None, "arrays have no fields: leave order out"
    return np.sort(np.ravel(np.asarray(a)), axis=0, kind=kind)


@library_function(np.searchsorted)
def search_in_order(
    a,
    v,
    side="left",  # relay: static
    sorter=None,
):
    """The places where values would be inserted into a vector that the order `sorter` makes ascending."""
    assert a.ndim == 1, "np.searchsorted takes a vector"
    return np.searchsorted(np.take(a, sorter), v, side=side)
