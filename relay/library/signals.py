"""Functions of NumPy on samples: convolution, differences, windows."""

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
    """Central differences along an axis, one-sided ones of first or second order at its ends, for points at a distance
    or at the given places; of several axes a tuple."""
    assert edge_order in (1, 2), "the edge_order of np.gradient is 1 or 2"
    x = np.asarray(f) + 0.0
    axes = tuple(range(x.ndim)) if axis is None else (axis,) if isinstance(axis, int) else axis
    count = len(varargs)
    assert count in (0, 1, len(axes)), "np.gradient takes one distance, or one for each axis"
    assert count == 0 or len(axes) > 0, "np.gradient takes a distance for each axis"
    found = []
    for i in range(len(axes)):
        spacing = 1.0 if count == 0 else varargs[0 if count == 1 else i]
        found.append(_central(x, axes[i], spacing, edge_order))
    return found[0] if len(axes) == 1 else tuple(found)


@library_function()
def _central(
    x,
    axis,  # relay: static
    spacing,
    edge_order,  # relay: static
):
    """The differences along one axis, whose points are at a distance, or at places."""
    rows, places = np.moveaxis(x, axis, -1), np.asarray(spacing)
    needed = edge_order + 1
    assert rows.shape[-1] >= needed, f"np.gradient needs {needed} points along an axis"
    assert places.ndim == 0 or places.shape[0] == rows.shape[-1], "np.gradient needs a place for each point"
    steps = np.broadcast_to(places, (rows.shape[-1] - 1,)) if places.ndim == 0 else places[1:] - places[:-1]
    left, right = steps[:-1], steps[1:]
    slopes = (rows[..., 1:] - rows[..., :-1]) / steps
    if places.ndim == 0:
        inside = (rows[..., 2:] - rows[..., :-2]) / (2.0 * places)
    else:
        inside = (left * slopes[..., 1:] + right * slopes[..., :-1]) / (left + right)
    first, last = slopes[..., :1], slopes[..., -1:]
    if edge_order == 2:  # the parabola through three points
        bend = steps[:1] / (steps[:1] + steps[1:2])
        first = first + (first - slopes[..., 1:2]) * bend
        bend = steps[-1:] / (steps[-1:] + steps[-2:-1])
        last = last + (last - slopes[..., -2:-1]) * bend
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


@library_function(np.bartlett)
def bartlett(
    M,  # relay: static
):
    """The triangle of M points that begins and ends with 0."""
    if M <= 1:
        return np.ones(max(M, 0))
    return 1.0 - np.abs(2.0 * np.arange(M) / (M - 1) - 1.0)


@library_function(np.kaiser)
def kaiser(
    M,  # relay: static
    beta,
):
    """The window I0(beta sqrt(1 - t^2)) / I0(beta) of M points t from -1 to 1."""
    if M <= 1:
        return np.ones(max(M, 0)) + 0.0 * beta
    place = 2.0 * np.arange(M) / (M - 1) - 1.0
    return np.i0(beta * np.sqrt(np.maximum(1.0 - place * place, 0.0))) / np.i0(beta + 0.0)


@library_function(np.fft.fftfreq)
def fftfreq(
    n,  # relay: static
    d=1.0,
):
    """The frequencies of a Fourier transform of n samples at a distance d, with the negative ones at the end."""
    places = np.arange(n)
    return np.where(places < (n + 1) // 2, places, places - n) / (n * d)


@library_function(np.fft.rfftfreq)
def rfftfreq(
    n,  # relay: static
    d=1.0,
):
    """The frequencies from 0 of a Fourier transform of n real samples at a distance d."""
    return np.arange(n // 2 + 1) / (n * d)


@library_function(np.fft.fftshift)
def fftshift(
    x,
    axes=None,  # relay: static
):
    """x with the first element in the middle of each axis."""
    x = np.asarray(x)
    assert x.ndim > 0, "there is no axis to go along"
    places = tuple(range(x.ndim)) if axes is None else (axes,) if isinstance(axes, int) else axes
    for axis in places:
        x = np.roll(x, x.shape[axis] // 2, axis=axis)
    return x


@library_function(np.fft.ifftshift)
def ifftshift(
    x,
    axes=None,  # relay: static
):
    """The array that `fftshift` makes x of."""
    x = np.asarray(x)
    assert x.ndim > 0, "there is no axis to go along"
    places = tuple(range(x.ndim)) if axes is None else (axes,) if isinstance(axes, int) else axes
    for axis in places:
        x = np.roll(x, -(x.shape[axis] // 2), axis=axis)
    return x


@library_function(getattr(np, "cumulative_sum", None))
def cumulative_sum(
    x,
    /,
    *,
    axis=None,  # relay: static
    dtype=None,  # relay: static
    out=None,
    include_initial=False,  # relay: static
):
    """The sums of the elements so far along an axis, on demand with 0 in front."""
    assert out is None, "values never change: assign the result"
    x = np.asarray(x)
    assert axis is not None or x.ndim == 1, "np.cumulative_sum of several axes goes along one: axis=0"
    along = 0 if axis is None else axis
    found = np.cumsum(x, axis=along, dtype=dtype)
    if not include_initial:
        return found
    return np.moveaxis(np.pad(np.moveaxis(found, along, 0), ((1, 0), *(((0, 0),) * (x.ndim - 1)))), 0, along)


@library_function(getattr(np, "cumulative_prod", None))
def cumulative_prod(
    x,
    /,
    *,
    axis=None,  # relay: static
    dtype=None,  # relay: static
    out=None,
    include_initial=False,  # relay: static
):
    """The products of the elements so far along an axis, on demand with 1 in front."""
    assert out is None, "values never change: assign the result"
    x = np.asarray(x)
    assert axis is not None or x.ndim == 1, "np.cumulative_prod of several axes goes along one: axis=0"
    along = 0 if axis is None else axis
    found = np.cumprod(x, axis=along, dtype=dtype)
    if not include_initial:
        return found
    rows = np.moveaxis(found, along, 0)
    return np.moveaxis(np.concatenate([np.ones_like(rows[:1]), rows]), 0, along) if x.shape[along] > 0 else found
