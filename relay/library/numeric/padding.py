"""`np.pad` in the modes that the operator does not have: along one axis after the other, as NumPy does."""

from __future__ import annotations

import numpy as np

from relay.typecheck.elaboration.library.overloads import library_function


@library_function(np.pad)
def pad(
    array,
    pad_width,  # relay: static
    mode="constant",  # relay: static
    *,
    constant_values=0,
    end_values=None,
    reflect_type=None,  # relay: static
    stat_length=None,  # relay: static
):
    """array with elements put in front and behind along each axis, as the mode says."""
    x = np.asarray(array)
    is_statistic = mode in ("maximum", "minimum", "mean", "median")
    assert end_values is None or mode == "linear_ramp", "end_values are of the mode 'linear_ramp'"
    assert stat_length is None or is_statistic, "stat_length is of the modes 'maximum', 'minimum', 'mean', 'median'"
    assert reflect_type is None or mode in ("reflect", "symmetric"), "reflect_type is of 'reflect' and 'symmetric'"
    assert reflect_type in (None, "even", "odd"), "the reflect_type of np.pad is 'even' or 'odd'"
    for axis in range(x.ndim):
        before, after = _pair(pad_width, axis, x.ndim)
        rows = np.moveaxis(x, axis, -1)
        if mode == "constant":
            first, last = _pair(constant_values, axis, x.ndim)
            rows = _joined(np.full(before, first), rows, np.full(after, last))
        elif mode == "linear_ramp":
            first, last = _pair(0 if end_values is None else end_values, axis, x.ndim)
            rows = np.concatenate(
                [_ramp(first, rows[..., 0], before), rows, _ramp(last, rows[..., -1], after)[..., ::-1]], axis=-1
            )
        elif is_statistic:
            lengths = (None, None) if stat_length is None else _pair(stat_length, axis, x.ndim)
            first = _statistic(rows if lengths[0] is None else rows[..., : lengths[0]], mode)
            last = _statistic(rows if lengths[1] is None else rows[..., -lengths[1] :], mode)
            rows = _joined(np.zeros(before) + first, rows, np.zeros(after) + last)
        elif mode in ("reflect", "symmetric") and reflect_type == "odd":
            rows = _odd_reflection(rows, before, after, 1 if mode == "reflect" else 0)
        else:
            rows = np.take(rows, _sources(mode, rows.shape[-1], before, after), axis=-1)
        x = np.moveaxis(rows, -1, axis)
    return x


@library_function()
def _pair(
    given,  # relay: static
    axis,  # relay: static
    rank,  # relay: static
):
    """The values for the two ends of an axis, of one for all, (both,) or (before, after) for all, or one of these for
    each axis."""
    if not isinstance(given, (tuple, list)):
        return given, given
    own = given
    if isinstance(given[0], (tuple, list)):
        assert len(given) in (1, rank), f"np.pad takes one pair for each of the {rank} axes, or one for all"
        own = given[0 if len(given) == 1 else axis]
    return (own[0], own[0]) if len(own) == 1 else own


@library_function()
def _joined(first, rows, last):
    """Rows between elements, in the dtype of the rows."""
    shape = rows.shape[:-1]
    front = np.broadcast_to(first.astype(rows.dtype), (*shape, first.shape[-1]))
    return np.concatenate([front, rows, np.broadcast_to(last.astype(rows.dtype), (*shape, last.shape[-1]))], axis=-1)


@library_function()
def _ramp(
    end,
    edge,
    count,  # relay: static
):
    """Elements from an end, at equal distances, up to the one before an edge."""
    ramp = end + (edge[..., None] - end) * (np.arange(count) / max(count, 1))
    return (ramp if np.issubdtype(edge.dtype, np.floating) else np.floor(ramp)).astype(edge.dtype)


@library_function()
def _statistic(
    rows,
    mode,  # relay: static
):
    """The largest or smallest element, the mean or the median of each row; those of integers are rounded."""
    if mode == "maximum":
        return np.max(rows, axis=-1, keepdims=True)
    if mode == "minimum":
        return np.min(rows, axis=-1, keepdims=True)
    found = np.mean(rows, axis=-1, keepdims=True) if mode == "mean" else np.median(rows, axis=-1, keepdims=True)
    return found if np.issubdtype(rows.dtype, np.floating) else np.round(found)


@library_function()
def _sources(
    mode,  # relay: static
    extent,
    before,  # relay: static
    after,  # relay: static
):
    """The place that each element of a padded row comes from."""
    assert mode in ("edge", "reflect", "symmetric", "wrap"), f"np.pad has no mode {mode!r} here"
    places = np.arange(before + extent + after) - before
    if mode == "wrap":
        return np.mod(places, extent)
    if mode == "edge":
        return np.clip(places, 0, extent - 1)
    if mode == "symmetric":
        turned = np.mod(places, 2 * extent)
        return np.minimum(turned, 2 * extent - 1 - turned)
    turned = np.mod(places, max(2 * extent - 2, 1))
    return np.minimum(turned, max(2 * extent - 2, 1) - turned)


@library_function()
def _odd_reflection(
    rows,
    before,  # relay: static
    after,  # relay: static
    skipped,  # relay: static
):
    """Rows reflected about the point of their first and last element, which stand there once if `skipped` is 1."""
    extent = rows.shape[-1]
    assert before <= extent - skipped and after <= extent - skipped, "an odd reflection needs as many elements"
    front = 2 * rows[..., :1] - rows[..., skipped : before + skipped][..., ::-1]
    behind = 2 * rows[..., -1:] - rows[..., extent - after - skipped : extent - skipped][..., ::-1]
    return np.concatenate([front, rows, behind], axis=-1)
