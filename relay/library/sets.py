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
    """The distinct elements in ascending order, whose number is data-dependent; on demand where each is first, which
    of them each element is, and how often each is there."""
    assert axis is None, "np.unique takes all elements of an array: np.unique(x.ravel())"
    x = np.asarray(ar)
    row = np.ravel(x)
    order = np.argsort(row, kind="stable")
    ordered = row[order]
    before = np.roll(ordered, 1)
    differs = ordered != before
    if equal_nan and np.issubdtype(row.dtype, np.floating):
        differs = differs & ~(np.isnan(ordered) & np.isnan(before))
    is_first = differs | (np.arange(row.shape[0]) == 0)
    found = [ordered[is_first]]
    if return_index:
        found.append(order[is_first])
    if return_inverse:
        found.append(np.reshape((np.cumsum(is_first) - 1)[np.argsort(order)], x.shape))
    if return_counts:
        found.append(np.diff(np.append(np.flatnonzero(is_first), row.shape[0])))
    return found[0] if len(found) == 1 else tuple(found)


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
):
    """The distinct elements that both arrays have, in ascending order."""
    assert not assume_unique, "np.intersect1d finds the distinct elements itself"
    distinct = np.unique(ar1)
    return distinct[np.isin(distinct, ar2)]


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
