"""Functions of NumPy that look at arrays as sets: their distinct elements, and which of them others have."""

from __future__ import annotations

import numpy as np

from relay.typecheck.elaboration.library.overloads import library_function


@library_function(np.unique)
def unique(
    ar,
    return_index=False,  # relay: static
    return_inverse=False,  # relay: static
    return_counts=False,  # relay: static
    axis=None,  # relay: static
    *,
    equal_nan=True,  # relay: static
    sorted=True,  # relay: static
):
    """The distinct elements in ascending order, whose number is data-dependent, or the distinct parts along an axis; on
    demand where each is first, which of them each element is, and how often each is there."""
    x = np.asarray(ar)
    if axis is None:
        row = np.ravel(x)
        order = np.argsort(row, kind="stable")
        ordered = row[order]
        before = np.roll(ordered, 1)
        differs = ordered != before
        if equal_nan and np.issubdtype(row.dtype, np.floating):
            differs = differs & ~(np.isnan(ordered) & np.isnan(before))
    else:
        assert isinstance(axis, int), "np.unique goes along one axis"
        row = np.moveaxis(x, axis, 0)
        columns = np.reshape(row, (row.shape[0], -1))
        order = np.arange(row.shape[0])
        for j in range(columns.shape[1] - 1, -1, -1):
            order = order[np.argsort(columns[order, j], kind="stable")]
        ordered = row[order]
        differs = np.any(columns[order] != np.roll(columns[order], 1, axis=0), axis=1)
    is_first = differs | (np.arange(row.shape[0]) == 0)
    found = [ordered[is_first] if axis is None else np.moveaxis(ordered[is_first], 0, axis)]
    if return_index:
        found.append(order[is_first])
    if return_inverse:
        inverse = (np.cumsum(is_first) - 1)[np.argsort(order)]
        found.append(np.reshape(inverse, x.shape) if axis is None else inverse)
    if return_counts:
        found.append(np.diff(np.append(np.flatnonzero(is_first), row.shape[0])))
    return found[0] if len(found) == 1 else tuple(found)


@library_function(getattr(np, "unique_counts", None))
def unique_counts(x):
    """The distinct elements in ascending order, and how often each is there."""
    return np.unique(x, return_counts=True, equal_nan=False)


@library_function(getattr(np, "unique_inverse", None))
def unique_inverse(x):
    """The distinct elements in ascending order, and which of them each element is."""
    return np.unique(x, return_inverse=True, equal_nan=False)


@library_function(getattr(np, "unique_all", None))
def unique_all(x):
    """The distinct elements in ascending order, where each is first, which of them each element is, and how often each
    is there."""
    return np.unique(x, return_index=True, return_inverse=True, return_counts=True, equal_nan=False)


@library_function(np.isin)
def isin(
    element,
    test_elements,
    assume_unique=False,
    invert=False,  # relay: static
    *,
    kind=None,  # relay: static
):
    """True for the elements that are among the others, or for those that are not with `invert`."""
    assert kind is None or kind == "sort" or kind == "table", "the kind of np.isin is 'sort' or 'table'"
    found = np.any(np.asarray(element)[..., None] == np.ravel(np.asarray(test_elements)), axis=-1)
    return ~found if invert else found


@library_function(np.intersect1d)
def intersect1d(
    ar1,
    ar2,
    assume_unique=False,  # relay: static
    return_indices=False,  # relay: static
):
    """The distinct elements that both arrays have, in ascending order; on demand where each is first in both."""
    assert not assume_unique, "np.intersect1d finds the distinct elements itself"
    distinct, places = np.unique(ar1, return_index=True)
    is_common = np.isin(distinct, ar2)
    common = distinct[is_common]
    if not return_indices:
        return common
    others, other_places = np.unique(ar2, return_index=True)
    return common, places[is_common], other_places[np.isin(others, common)]


@library_function(np.setxor1d)
def setxor1d(
    ar1,
    ar2,
    assume_unique=False,  # relay: static
):
    """The distinct elements that one of two arrays has, in ascending order."""
    assert not assume_unique, "np.setxor1d finds the distinct elements itself"
    return np.unique(np.append(np.setdiff1d(ar1, ar2), np.setdiff1d(ar2, ar1)))


@library_function(np.setdiff1d)
def setdiff1d(
    ar1,
    ar2,
    assume_unique=False,  # relay: static
):
    """The distinct elements of the first array that the second one has not, in ascending order."""
    distinct = np.ravel(np.asarray(ar1)) if assume_unique else np.unique(ar1)
    return distinct[np.isin(distinct, ar2, invert=True)]


@library_function(np.union1d)
def union1d(ar1, ar2):
    """The distinct elements of two arrays, in ascending order."""
    return np.unique(np.append(ar1, ar2))
