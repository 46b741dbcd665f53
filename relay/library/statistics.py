"""Functions of NumPy that sum up data, and read tables of it."""

from __future__ import annotations

import numpy as np

import relay
from relay.typecheck.elaboration.library.overloads import library_function


@library_function(np.ptp)
def ptp(
    a,
    axis=None,  # relay: static
    out=None,
    keepdims=False,  # relay: static
):
    """The largest minus the smallest element."""
    assert out is None, "values never change: assign the result"
    return np.max(a, axis=axis, keepdims=keepdims) - np.min(a, axis=axis, keepdims=keepdims)


@library_function(np.average)
def average(
    a,
    axis=None,  # relay: static
    weights=None,
    returned=False,  # relay: static
    *,
    keepdims=False,  # relay: static
):
    """sum(a w) / sum(w); with `returned` also the sum of the weights."""
    a = np.asarray(a)
    if weights is None:
        mean = np.mean(a, axis=axis, keepdims=keepdims)
        if returned:
            return mean, np.ones_like(mean) * (np.sum(np.ones_like(a)) / np.sum(np.ones_like(mean)))
        return mean
    w = np.array(weights)
    if w.ndim != a.ndim:
        assert axis is not None, "the axis of weights of another shape must be given"
        assert w.ndim == 1, "weights of another shape are a vector"
        assert w.shape[0] == a.shape[axis], "there is one weight for each element along the axis"
        w = np.moveaxis(np.moveaxis(np.ones_like(a), axis, -1) * w, -1, axis)
    total = np.sum(w, axis=axis, keepdims=keepdims)
    mean = np.sum(a * w, axis=axis, keepdims=keepdims) / total
    return (mean, total) if returned else mean


@library_function(getattr(np, "trapezoid", None))
def trapezoid(
    y,
    x=None,
    dx=1.0,
    axis=-1,  # relay: static
):
    """The integral along an axis by trapezoids: sum((y[i] + y[i + 1]) (x[i + 1] - x[i]) / 2)."""
    assert isinstance(axis, int), "np.trapezoid goes along one axis"
    rows = np.moveaxis(np.asarray(y), axis, -1)
    heights = (rows[..., 1:] + rows[..., :-1]) / 2.0
    if x is None:
        return np.sum(heights * dx, axis=-1)
    places = np.array(x)
    widths = places[1:] - places[:-1] if places.ndim == 1 else np.moveaxis(np.diff(places, axis=axis), axis, -1)
    return np.sum(heights * widths, axis=-1)


@library_function(np.interp)
def interp(x, xp, fp, left=None, right=None, period=None):
    """The values at x of the function that is straight between the points (xp, fp); xp increases. With a period, the
    points may be in any order, and those at the ends are neighbors."""
    xp, fp = np.asarray(xp), np.asarray(fp)
    assert xp.ndim == 1 and fp.ndim == 1, "interp takes its points as two vectors"
    assert xp.shape[0] == fp.shape[0], "interp needs as many values as places"
    if period is not None:
        length = np.abs(period)
        order = np.argsort(np.mod(xp, length))
        places, values = np.mod(xp, length)[order], fp[order]
        places = np.concatenate([places[-1:] - length, places, places[:1] + length])
        return np.interp(np.mod(np.asarray(x), length), places, np.concatenate([values[-1:], values, values[:1]]))
    at, last = np.array(x), xp.shape[0] - 1
    if last == 0:
        inside = fp[0] + 0.0 * at
    else:
        found = np.clip(np.searchsorted(xp, at, side="right") - 1, 0, last - 1)
        start, height = np.take(xp, found), np.take(fp, found)
        slope = (np.take(fp, found + 1) - height) / (np.take(xp, found + 1) - start)
        inside = np.where(at == xp[last], fp[last], slope * (at - start) + height)
    below, above = fp[0] if left is None else left, fp[last] if right is None else right
    return np.where(at < xp[0], below, np.where(at > xp[last], above, inside))


@library_function(np.digitize)
def digitize(
    x,
    bins,
    right=False,  # relay: static
):
    """The numbers of the bins that elements are in; the bounds of bins rise, or fall."""
    bins, side = np.asarray(bins), "left" if right else "right"
    rising = np.searchsorted(bins, x, side=side)
    falling = bins.shape[0] - np.searchsorted(bins[::-1], x, side=side)
    return np.where(bins[0] > bins[-1], falling, rising)


@library_function(np.count_nonzero)
def count_nonzero(
    a,
    axis=None,  # relay: static
    *,
    keepdims=False,  # relay: static
):
    """The number of elements that are not 0."""
    return np.sum(np.asarray(a).astype(bool), axis=axis, keepdims=keepdims)


@library_function(np.bincount)
def bincount(
    x,
    /,
    weights=None,
    minlength=0,  # relay: static
):
    """The count of each number in x, which has none below 0; with weights, the sums of the weights. The result has an
    element for each number up to the largest one, and `minlength` at least."""
    length = minlength
    if x.shape[0] > 0:
        length = max(minlength, int(np.max(x)) + 1)
    if weights is None:
        return relay.scatter_add(np.zeros(length, dtype=np.int32), x, np.ones(x.shape, dtype=np.int32))
    given = np.asarray(weights) + 0.0
    return relay.scatter_add(np.zeros(length, dtype=given.dtype), x, given)
