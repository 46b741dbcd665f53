"""Functions of NumPy about how data is distributed: quantiles, histograms, covariances."""

from __future__ import annotations

import math

import numpy as np

import relay
from relay.typecheck.elaboration.library.overloads import library_function


@library_function(np.quantile)
def quantile(
    a,
    q,
    axis=None,  # relay: static
    *,
    method="linear",  # relay: static
    keepdims=False,  # relay: static
):
    """The values below which the fractions q of the elements are, with a new first axis for several q. Between two
    elements it is on the straight line, or the lower, the higher, or their mean."""
    assert method in ("linear", "lower", "higher", "midpoint"), "the method is linear, lower, higher or midpoint"
    x, part = np.asarray(a) + 0.0, np.asarray(q)
    assert part.ndim < 2, "np.quantile takes one fraction or a vector"
    rows = np.sort(np.ravel(x) if axis is None else np.moveaxis(x, axis, -1), axis=-1)
    last = rows.shape[-1] - 1
    assert last >= 0, "a quantile needs elements"
    place = part * last
    low = np.clip(np.floor(place), 0, last).astype(np.int32)
    high = np.clip(np.ceil(place), 0, last).astype(np.int32)
    below, above = np.take(rows, low, axis=-1), np.take(rows, high, axis=-1)
    if method == "linear":
        found = below + (above - below) * (place - np.floor(place))
    elif method == "midpoint":
        found = below / 2 + above / 2
    else:
        found = below if method == "lower" else above
    end = rows[..., -1:] if part.ndim == 1 else rows[..., -1]
    found = np.where(end == end, found, math.nan)  # NaN comes last
    if part.ndim == 1:
        found = np.moveaxis(found, -1, 0)
    if not keepdims:
        return found
    if axis is None:
        return np.reshape(found, (*part.shape, *((1,) * x.ndim)))
    return np.expand_dims(found, axis % x.ndim + part.ndim)


@library_function(np.percentile)
def percentile(
    a,
    q,
    axis=None,  # relay: static
    *,
    method="linear",  # relay: static
    keepdims=False,  # relay: static
):
    """The values below which q percent of the elements are: see `np.quantile`."""
    return np.quantile(a, np.asarray(q) / 100.0, axis=axis, method=method, keepdims=keepdims)


@library_function(np.histogram)
def histogram(
    a,
    bins=10,  # relay: static
    range=None,
    density=None,  # relay: static
    weights=None,
):
    """The number of elements in each bin, or the sums of their weights, and the bounds of the bins; the last bin has
    its upper bound. With `density`, the integral is 1."""
    x = np.ravel(np.asarray(a)) + 0.0
    if isinstance(bins, int):
        low, high = (np.min(x), np.max(x)) if range is None else range
        low, high = np.where(low == high, low - 0.5, low), np.where(low == high, high + 0.5, high)
        places = np.arange(bins + 1)
        edges = np.where(places == bins, high, low + places * ((high - low) / bins))
    else:
        edges = np.asarray(bins) + 0.0
    count = edges.shape[0] - 1
    place = np.searchsorted(edges, x, side="right") - 1
    place = np.where(x == edges[-1], count - 1, place)
    inside = (place >= 0) & (place < count)
    bin_ = np.clip(place, 0, count - 1)
    if weights is None:
        found = relay.scatter_add(np.zeros(count, dtype=np.int32), bin_, inside.astype(np.int32))
    else:
        given = np.ravel(np.asarray(weights)) + 0.0
        found = relay.scatter_add(np.zeros(count, dtype=given.dtype), bin_, np.where(inside, given, 0.0))
    if density is None or density is False:
        return found, edges
    return found / (np.sum(found) * np.diff(edges)), edges


@library_function(np.cov)
def cov(
    m,
    y=None,
    rowvar=True,  # relay: static
    bias=False,  # relay: static
    ddof=None,  # relay: static
):
    """The covariances of variables, which are rows, or columns without `rowvar`; a number for a single one."""
    assert bias is not None, "the bias of np.cov is True or False"
    data = _variables(m, rowvar)
    if y is not None:
        data = np.concatenate([data, _variables(y, rowvar)], axis=0)
    less = (0 if bias else 1) if ddof is None else ddof
    distance = data - np.mean(data, axis=1, keepdims=True)
    found = distance @ distance.T / (data.shape[1] - less)
    return found[0, 0] if data.shape[0] == 1 else found


@library_function()
def _variables(
    m,
    rowvar,  # relay: static
):
    """A matrix with a row for each variable."""
    x = np.atleast_2d(np.asarray(m) + 0.0)
    return x if rowvar or x.shape[0] == 1 else x.T


@library_function(np.corrcoef)
def corrcoef(
    x,
    y=None,
    rowvar=True,  # relay: static
):
    """The correlations of variables: their covariances divided by the standard deviations of both."""
    covariance = np.cov(x, y, rowvar)
    if covariance.ndim == 0:
        return covariance / covariance
    deviation = np.sqrt(np.diag(covariance))
    return np.clip(covariance / deviation[:, None] / deviation[None, :], -1.0, 1.0)


@library_function(np.lexsort)
def lexsort(
    keys,
    axis=-1,  # relay: static
):
    """The order by several keys, the last of which decides first. Each is a vector."""
    assert axis == -1, "np.lexsort takes vectors"
    order = np.argsort(keys[0], kind="stable")
    for key in keys[1:]:
        order = order[np.argsort(key[order], kind="stable")]
    return order
