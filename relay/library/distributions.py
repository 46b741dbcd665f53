"""Functions of NumPy about how data is distributed: histograms, covariances, orders."""

from __future__ import annotations

import numpy as np

import relay
from relay.typecheck.elaboration.library.overloads import library_function
from relay.typecheck.elaboration.library.requirements import require_shape


@library_function(np.histogram_bin_edges)
def histogram_bin_edges(
    a,
    bins=10,
    range=None,
    weights=None,
):
    """The bounds of bins: of equal width between the smallest and the largest element, or those that are given."""
    assert not isinstance(bins, str), "the number of bins is given, or their bounds: bins=10"
    _require_weights(weights, a)
    if np.ndim(bins) > 0:
        return np.asarray(bins) + 0.0
    assert bins > 0, "the number of bins is positive"
    x = np.ravel(np.asarray(a)) + 0.0
    low, high = _span_of(x) if range is None else range
    if not (np.isfinite(low) and np.isfinite(high)):
        raise ValueError("the range of the bins is not finite: give them one, as range=(0.0, 1.0)")
    if high < low:
        raise ValueError("the range of the bins ends before it begins")
    low, high = np.where(low == high, low - 0.5, low), np.where(low == high, high + 0.5, high)
    places = np.arange(bins + 1)
    return np.where(places == bins, high, low + places * ((high - low) / bins))


@library_function()
def _span_of(x):
    """The smallest and the largest element; from 0 to 1 of nothing."""
    if x.shape[0] == 0:
        return np.zeros((), dtype=x.dtype), np.ones((), dtype=x.dtype)
    return np.min(x), np.max(x)


@library_function()
def _require_weights(weights, a):
    """Demand a weight for each element, if there are any."""
    if weights is not None:
        found, expected = np.shape(weights), np.shape(a)
        require_shape(found == expected, f"the weights of the shape {found} must have the shape {expected}")


@library_function()
def _bins_of(x, edges):
    """The bin that each element is in, the last of which has its upper bound; -1 for elements in none."""
    count = edges.shape[0] - 1
    place = np.searchsorted(edges, x, side="right") - 1
    place = np.where(x == edges[-1], count - 1, place)
    return np.where((place >= 0) & (place < count), place, -1)


@library_function()
def _counts(place, count, weights):
    """The counts of the numbers below a bound, or the sums of their weights; -1 does not count."""
    is_inside, bin_ = place >= 0, np.maximum(place, 0)
    if weights is None:
        return relay.scatter_add(np.zeros(count, dtype=np.int32), bin_, is_inside.astype(np.int32))
    given = np.ravel(np.asarray(weights)) + 0.0
    return relay.scatter_add(np.zeros(count, dtype=given.dtype), bin_, np.where(is_inside, given, 0.0))


@library_function(np.histogram)
def histogram(
    a,
    bins=10,
    range=None,
    density=None,  # relay: static
    weights=None,
):
    """The number of elements in each bin, or the sums of their weights, and the bounds of the bins; the last bin has
    its upper bound. With `density`, the integral is 1."""
    edges = np.histogram_bin_edges(a, bins, range, weights)
    found = _counts(_bins_of(np.ravel(np.asarray(a)) + 0.0, edges), edges.shape[0] - 1, weights)
    if density is None or density is False:
        return found, edges
    return found / (np.sum(found) * np.diff(edges)), edges


@library_function(np.histogram2d)
def histogram2d(
    x,
    y,
    bins=10,
    range=None,
    density=None,  # relay: static
    weights=None,
):
    """The number of points in each bin of a grid, or the sums of their weights, and the bounds of both axes; `bins` and
    `range` are for both, or in a pair."""
    pair = bins if isinstance(bins, (tuple, list)) else (bins, bins)
    assert len(pair) == 2, "np.histogram2d takes bins for both axes, or in a pair"
    spans = (None, None) if range is None else range
    rows = np.histogram_bin_edges(x, pair[0], spans[0], weights)
    columns = np.histogram_bin_edges(y, pair[1], spans[1])
    width, height = columns.shape[0] - 1, rows.shape[0] - 1
    row, column = _bins_of(np.asarray(x) + 0.0, rows), _bins_of(np.asarray(y) + 0.0, columns)
    place = np.where((row >= 0) & (column >= 0), row * width + column, -1)
    found = np.reshape(_counts(place, height * width, weights) + 0.0, (height, width))
    if density is not None and density is not False:
        found = found / (np.sum(found) * np.diff(rows)[:, None] * np.diff(columns))
    return found, rows, columns


@library_function(np.cov)
def cov(
    m,
    y=None,
    rowvar=True,  # relay: static
    bias=False,  # relay: static
    ddof=None,  # relay: static
    fweights=None,
    aweights=None,
    *,
    dtype=None,  # relay: static
):
    """The covariances of variables, which are rows, or columns without `rowvar`; a number for a single one. Samples may
    have weights: how often each is there, and how much it counts."""
    assert bias is not None, "the bias of np.cov is True or False"
    data = _variables(m, rowvar)
    if y is not None:
        data = np.concatenate([data, _variables(y, rowvar)], axis=0)
    if dtype is not None:
        assert np.issubdtype(dtype, np.floating), "covariances are floats: dtype is one of floats"
        data = data.astype(dtype)
    less = (0 if bias else 1) if ddof is None else ddof
    if fweights is None and aweights is None:
        distance = data - np.mean(data, axis=1, keepdims=True)
        found = distance @ distance.T / (data.shape[1] - less)
    else:
        often = np.ones_like(data[0]) if fweights is None else np.asarray(fweights).astype(data.dtype)
        much = np.ones_like(data[0]) if aweights is None else np.asarray(aweights).astype(data.dtype)
        weights = often * much
        total = np.sum(weights)
        distance = data - np.sum(data * weights, axis=1, keepdims=True) / total
        divisor = total - less * np.sum(weights * much) / total
        found = (distance * weights) @ distance.T / divisor
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
    *,
    dtype=None,  # relay: static
):
    """The correlations of variables: their covariances divided by the standard deviations of both."""
    covariance = np.cov(x, y, rowvar, dtype=dtype)
    if covariance.ndim == 0:
        return covariance / covariance
    deviation = np.sqrt(np.diag(covariance))
    return np.clip(covariance / deviation[:, None] / deviation[None, :], -1.0, 1.0)


@library_function(np.lexsort)
def lexsort(
    keys,
    axis=-1,  # relay: static
):
    """The order along an axis by several keys, the last of which decides first."""
    assert isinstance(axis, int), "np.lexsort goes along one axis"
    order = np.argsort(keys[0], axis=axis, kind="stable")
    for key in keys[1:]:
        again = np.argsort(np.take_along_axis(key, order, axis=axis), axis=axis, kind="stable")
        order = np.take_along_axis(order, again, axis=axis)
    return order
