"""Functions of NumPy on samples and polynomials: convolution, differences, windows, powers."""

from __future__ import annotations

import math

import numpy as np

import relay
from relay.typecheck.elaboration.library.overloads import library_function


@library_function(np.convolve)
def convolve(
    a,
    v,
    mode="full",  # relay: static
):
    """sum_j a[j] v[k - j] of two vectors: for all k at which they meet, for as many as the longer one has, or for those
    at which one is inside of the other."""
    x, y = np.atleast_1d(a), np.atleast_1d(v)
    assert x.ndim == 1 and y.ndim == 1, "np.convolve takes two vectors"
    return _overlaps(x, y, mode, (min(x.shape[0], y.shape[0]) - 1) // 2)


@library_function(np.correlate)
def correlate(
    a,
    v,
    mode="valid",  # relay: static
):
    """sum_j a[j + k] v[j] of two vectors, for those k that `np.convolve` describes."""
    x, y = np.asarray(a), np.asarray(v)
    assert x.ndim == 1 and y.ndim == 1, "np.correlate takes two vectors"
    n, m = x.shape[0], y.shape[0]
    return _overlaps(x, y[::-1], mode, (m - 1) // 2 if m <= n else n // 2)


@library_function()
def _overlaps(
    x,
    y,
    mode,  # relay: static
    start,
):
    """The convolution of two vectors; `start` is where that of the longer one's length begins."""
    short, long = min(x.shape[0], y.shape[0]), max(x.shape[0], y.shape[0])
    assert short > 0, "a convolution needs elements"
    full = relay.sliding_windows(np.pad(x, y.shape[0] - 1), y.shape[0]) @ y[::-1]
    if mode == "full":
        return full
    if mode == "same":
        return full[start : start + long]
    assert mode == "valid", "the mode is 'full', 'same' or 'valid'"
    return full[short - 1 : long]


@library_function(np.polyval)
def polyval(p, x):
    """p[0] x^(n - 1) + .. + p[n - 1], by Horner's rule."""
    coefficients, place = np.asarray(p), np.asarray(x)
    value = np.zeros_like(place) * coefficients[0]
    for coefficient in coefficients:
        value = value * place + coefficient
    return value


@library_function(np.unwrap)
def unwrap(
    p,
    discont=None,
    axis=-1,  # relay: static
    *,
    period=2.0 * math.pi,
):
    """p with multiples of the period added, so that neighbors differ by half of it at most; smaller steps than
    `discont` stay."""
    assert isinstance(axis, int), "np.unwrap goes along one axis"
    rows = np.moveaxis(np.asarray(p) + 0.0, axis, -1)
    steps, half = np.diff(rows), period / 2.0
    short = np.mod(steps + half, period) - half
    short = np.where((short == -half) & (steps > 0.0), half, short)
    least = half if discont is None else discont
    turns = np.where(np.abs(steps) < least, 0.0, short - steps)
    found = np.concatenate([rows[..., :1], rows[..., 1:] + np.cumsum(turns, axis=-1)], axis=-1)
    return np.moveaxis(found, -1, axis)


@library_function(np.gradient)
def gradient(
    f,
    *varargs,
    axis=None,  # relay: static
    edge_order=1,  # relay: static
):
    """Central differences along an axis, one-sided ones at its ends, for points at a distance or at the given places;
    of several axes a tuple."""
    assert edge_order == 1, "np.gradient takes first differences at the ends"
    x = np.asarray(f) + 0.0
    assert axis is None or isinstance(axis, int), "np.gradient goes along one axis, or all"
    if axis is None and x.ndim > 1:
        assert len(varargs) in (0, 1, x.ndim), "np.gradient takes one distance, or one for each axis"
        found = [
            _central(x, i, 1.0 if len(varargs) == 0 else varargs[0 if len(varargs) == 1 else i]) for i in range(x.ndim)
        ]
        return tuple(found)
    assert len(varargs) < 2, "np.gradient takes one distance along one axis"
    return _central(x, -1 if axis is None else axis, 1.0 if len(varargs) == 0 else varargs[0])


@library_function()
def _central(
    x,
    axis,  # relay: static
    spacing,
):
    """The differences along one axis, whose points are at a distance, or at places."""
    rows, places = np.moveaxis(x, axis, -1), np.asarray(spacing)
    assert rows.shape[-1] > 1, "np.gradient needs two points along an axis"
    if places.ndim == 0:
        inside = (rows[..., 2:] - rows[..., :-2]) / (2.0 * places)
        first, last = (rows[..., 1:2] - rows[..., :1]) / places, (rows[..., -1:] - rows[..., -2:-1]) / places
    else:
        steps = np.diff(places)
        left, right = steps[:-1], steps[1:]
        low, high = rows[..., 1:-1] - rows[..., :-2], rows[..., 2:] - rows[..., 1:-1]
        inside = (left * left * high + right * right * low) / (left * right * (left + right))
        first = (rows[..., 1:2] - rows[..., :1]) / steps[0]
        last = (rows[..., -1:] - rows[..., -2:-1]) / steps[-1]
    return np.moveaxis(np.concatenate([first, inside, last], axis=-1), -1, axis)


@library_function()
def _phases(M):
    """The angles of a window's points, from 0 to 2 pi."""
    return 2.0 * math.pi * np.arange(M) / max(M - 1, 1)


@library_function(np.hanning)
def hanning(
    M,  # relay: static
):
    """The window 0.5 - 0.5 cos(phi) of M points."""
    return 0.5 - 0.5 * np.cos(_phases(M)) if M > 1 else np.ones(max(M, 0))


@library_function(np.hamming)
def hamming(
    M,  # relay: static
):
    """The window 0.54 - 0.46 cos(phi) of M points."""
    return 0.54 - 0.46 * np.cos(_phases(M)) if M > 1 else np.ones(max(M, 0))


@library_function(np.blackman)
def blackman(
    M,  # relay: static
):
    """The window 0.42 - 0.5 cos(phi) + 0.08 cos(2 phi) of M points."""
    if M <= 1:
        return np.ones(max(M, 0))
    return 0.42 - 0.5 * np.cos(_phases(M)) + 0.08 * np.cos(2.0 * _phases(M))
