"""NumPy references of convolutions: on channels first, group by group."""

from __future__ import annotations

from typing import Any

import numpy as np

from relay.ops.notation import Tensor
from relay.typecheck import windows as rules
from relay.typecheck.dims import numbers
from relay.typecheck.windows import Numbers, Padding, Windows


def _to_first(x: Tensor, last: bool) -> Tensor:
    return np.moveaxis(x, -1, 1) if last else x


def _from_first(x: Tensor, last: bool) -> Tensor:
    return np.ascontiguousarray(np.moveaxis(x, 1, -1) if last else x)


def _weight_to_first(weight: Tensor, last: bool) -> Tensor:
    return np.moveaxis(weight, (-1, -2), (0, 1)) if last else weight


def _weight_from_first(weight: Tensor, last: bool) -> Tensor:
    return np.ascontiguousarray(np.moveaxis(weight, (0, 1), (-1, -2)) if last else weight)


def sum_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype in which products are summed."""
    return np.dtype(np.float32) if dtype.kind not in "iub" and dtype.itemsize < 4 else dtype


def _numpy_windows(x: Tensor, over: Windows) -> Tensor:
    """x (n, c, *sizes) -> (n, c, *extents, *kernel)"""
    padded = np.pad(x, ((0, 0), (0, 0), *over.widths))
    rank = len(over.kernel)
    extents = numbers(over.extents(x.shape[2:]))
    if 0 in extents:
        return np.zeros((*x.shape[:2], *extents, *over.kernel), x.dtype)
    slid = np.lib.stride_tricks.sliding_window_view(padded, over.reach, axis=tuple(range(2, 2 + rank)))
    starts = tuple(slice(0, (e - 1) * s + 1, s) for e, s in zip(extents, over.stride, strict=True))
    return np.asarray(slid[(slice(None), slice(None), *starts, *(slice(None, None, d) for d in over.dilation))])


def numpy_convolution(
    x: Tensor, weight: Tensor, stride: Numbers, padding: Padding, dilation: Numbers, groups: int, layout: str,
    wide: np.dtype[Any],
) -> Tensor:  # fmt: skip
    """The convolution, with its products and sums in the dtype `wide`."""
    rank = x.ndim - 2
    last = rules.channels_last(layout, rank)
    x, weight = _to_first(x, last), _weight_to_first(weight, last)
    over = rules.windows(x.shape[2:], weight.shape[2:], stride, padding, dilation)
    slid = _numpy_windows(x, over).astype(wide)
    inner, kernel = weight.shape[1], tuple(range(2 + rank, 2 + 2 * rank))
    parts = [
        np.tensordot(
            slid[:, g * inner : (g + 1) * inner], filters.astype(wide), ((1, *kernel), (1, *range(2, 2 + rank)))
        )
        for g, filters in enumerate(np.split(weight, groups))
    ]
    return _from_first(np.moveaxis(np.concatenate(parts, axis=-1), -1, 1), last)


def _numpy_unblocked(x: Tensor) -> Tensor:
    """(n, c / b, *sizes, b) -> (n, c, *sizes)"""
    n, blocks, *sizes, inner = x.shape
    return np.moveaxis(x, -1, 2).reshape(n, blocks * inner, *sizes)


def numpy_convolution_in_blocks(
    x: Tensor, weight: Tensor, stride: Numbers, padding: Padding, dilation: Numbers, wide: np.dtype[Any]
) -> Tensor:
    out, blocks, *kernel, inner, last = weight.shape
    plain = np.moveaxis(weight, (-1, -2), (1, 3)).reshape(out * last, blocks * inner, *kernel)
    result = numpy_convolution(
        _numpy_unblocked(x), plain, stride, padding, dilation, 1, f"NC{'DHW'[-len(kernel) :]}", wide
    )
    n, _, *extents = result.shape
    return np.ascontiguousarray(np.moveaxis(result.reshape(n, out, last, *extents), 2, -1))


def numpy_transposed_convolution(
    y: Tensor, weight: Tensor, stride: Numbers, padding: Padding, output_padding: Numbers, dilation: Numbers,
    groups: int, layout: str,
) -> Tensor:  # fmt: skip
    """The convolution of y, with zeros between and around its elements, with the kernel turned round."""
    rank = y.ndim - 2
    last = rules.channels_last(layout, rank)
    y, weight = _to_first(y, last), _weight_to_first(weight, last)
    over, extra = rules.transposed_over(weight.shape[2:], stride, padding, output_padding, dilation)
    sizes = numbers(rules.transposed_sizes(y.shape[2:], over, extra))
    out, inner, *_ = weight.shape
    if 0 in y.shape or 0 in sizes:
        return np.zeros(numbers(rules.activation_shape(len(y), inner * groups, sizes, last)), y.dtype)
    room = [size + reach - 1 for size, reach in zip(sizes, over.reach, strict=True)]
    spread = np.zeros((*y.shape[:2], *room), y.dtype)
    source: list[slice] = []
    target: list[slice] = []
    for extent, space, step, reach, (low, _) in zip(
        y.shape[2:], room, over.stride, over.reach, over.widths, strict=True
    ):
        offset = reach - 1 - low
        first = -(offset // step) if offset < 0 else 0
        end = min(extent, (space - 1 - offset) // step + 1)
        source.append(slice(first, end))
        target.append(slice(offset + first * step, offset + (end - 1) * step + 1 if end > first else 0, step))
    spread[(slice(None), slice(None), *target)] = y[(slice(None), slice(None), *source)]
    turned = np.flip(weight, tuple(range(2, 2 + rank)))
    grouped = turned.reshape(groups, out // groups, inner, *over.kernel)
    filters = np.moveaxis(grouped, 2, 1).reshape(groups * inner, out // groups, *over.kernel)
    plain = f"NC{'DHW'[-rank:]}"
    result = numpy_convolution(spread, filters, 1, 0, dilation, groups, plain, sum_dtype(y.dtype))
    return _from_first(result.astype(y.dtype), last)


def numpy_weight_gradient(
    x: Tensor,
    y: Tensor,
    kernel: Numbers,
    stride: Numbers,
    padding: Padding,
    dilation: Numbers,
    groups: int,
    layout: str,
) -> Tensor:
    rank = x.ndim - 2
    last = rules.channels_last(layout, rank)
    x, y = _to_first(x, last), _to_first(y, last)
    over = rules.windows(x.shape[2:], rules.per_axis(kernel, rank, "kernel", 1), stride, padding, dilation)
    slid, wide = _numpy_windows(x, over), sum_dtype(x.dtype)
    summed = (0, *range(2, 2 + rank))
    parts = [
        np.tensordot(cotangent.astype(wide), source.astype(wide), (summed, summed))
        for cotangent, source in zip(np.split(y, groups, axis=1), np.split(slid, groups, axis=1), strict=True)
    ]
    return _weight_from_first(np.concatenate(parts).astype(x.dtype), last)
