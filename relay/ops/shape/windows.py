"""Sliding windows over axes, and their adjoint, which adds windows up where they overlap.

With them, other operators over windows have derivatives: a maximum over windows, say, is one over new axes.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from typing import Any

import attrs
import numpy as np

from relay.ir.types import Dim, Shape
from relay.ops import batching
from relay.ops.notation import (
    Algebra,
    Batch,
    Batching,
    Element,
    Pattern,
    Relation,
    Stage,
    Tensor,
    Value,
    dims,
    register_op,
    result_dims,
)
from relay.ops.samples import case, cases
from relay.ops.tir import scalar, stages
from relay.ops.tir.tvm_modules import te, tirx
from relay.typecheck import windows as rules
from relay.typecheck.dims import numbers
from relay.typecheck.windows import Numbers, Padding, Windows


@attrs.frozen
class WindowAxes:
    """Windows along certain axes of a shape."""

    axes: tuple[int, ...]
    windows: Windows
    sizes: Shape
    extents: Shape

    @classmethod
    def from_attributes(
        cls, shape: Sequence[Dim], axes: object, kernel: object, stride: object, padding: object, dilation: object,
        extents: Sequence[Any] | None = None,
    ) -> WindowAxes:  # fmt: skip
        """`extents`: a shape that has the number of windows along the axes, where sizes are expressions."""
        places = rules.sliding_axes(axes, len(shape))
        sizes = tuple(shape[axis] for axis in places)
        found = rules.windows(sizes, rules.per_axis(kernel, len(places), "kernel", 1), stride, padding, dilation)
        counted = found.extents(sizes) if extents is None else tuple(extents[axis] for axis in places)
        return cls(places, found, sizes, counted)

    @classmethod
    def of_stage(
        cls, x: Stage, axes: object, kernel: object, stride: object, padding: object, dilation: object
    ) -> WindowAxes:
        """In a compute function whose result has the number of windows along the axes."""
        shape = dims(x)

        def by_rule() -> Shape:
            return cls.from_attributes(shape, axes, kernel, stride, padding, dilation).outer_shape(shape)

        return cls.from_attributes(shape, axes, kernel, stride, padding, dilation, result_dims(by_rule))

    def outer_shape(self, shape: Sequence[Dim]) -> Shape:
        """The shape with the number of windows along the axes."""
        result: list[Dim] = list(shape)
        for axis, extent in zip(self.axes, self.extents, strict=True):
            result[axis] = extent
        return tuple(result)


def slid_stage(x: Stage, along: WindowAxes, fill: float) -> Stage:
    """x's windows, with a number outside of x."""
    shape, over = dims(x), along.windows
    rank = len(shape)
    result = (*along.outer_shape(shape), *over.kernel)
    if 0 in shape:
        return stages.full(result, fill, str(x.dtype))

    def element(*index: Element) -> Element:
        place, inside = list(index[:rank]), []
        for number, axis in enumerate(along.axes):
            (low, high), reach, step = over.padding[number], over.reach[number], over.stride[number]
            extent = along.extents[number]
            at = index[axis] * step + index[rank + number] * over.dilation[number] - low
            place[axis] = at
            if not isinstance(low, int) or low:
                inside.append(at >= 0)
            fits = isinstance(extent, int) and isinstance(low, int) and (extent - 1) * step + reach - low <= shape[axis]
            if not fits and (not isinstance(high, int) or high):
                inside.append(at < shape[axis])
        if not inside:
            return x(*place)
        return scalar.guarded_select(functools.reduce(tirx.And, inside), x(*place), scalar.number(fill, str(x.dtype)))

    return te.compute(result, element, name="windows")


def numpy_slid(x: Tensor, along: WindowAxes, fill: float) -> Tensor:
    """The same on arrays."""
    widths: list[tuple[int, int]] = [(0, 0)] * x.ndim
    for axis, pair in zip(along.axes, along.windows.widths, strict=True):
        widths[axis] = pair
    extents = numbers(along.extents)
    if 0 in extents:
        return np.full(numbers((*along.outer_shape(x.shape), *along.windows.kernel)), fill, x.dtype)
    padded = np.pad(x, widths, constant_values=np.asarray(fill, x.dtype))
    slid = np.lib.stride_tricks.sliding_window_view(padded, along.windows.reach, axis=along.axes)
    places: list[slice] = [slice(None)] * x.ndim
    for axis, extent, step in zip(along.axes, extents, along.windows.stride, strict=True):
        places[axis] = slice(0, (extent - 1) * step + 1, step)
    within = [slice(None, None, dilation) for dilation in along.windows.dilation]
    return np.ascontiguousarray(slid[(*places, *within)])


def _sliding_gradient(
    x: Value, out: Value, dout: Value, kernel: Numbers, axes: Numbers, stride: Numbers, padding: Padding,
    dilation: Numbers, fill: float,
) -> Value:  # fmt: skip
    along = WindowAxes.from_attributes(x.shape, axes, kernel, stride, padding, dilation)
    return add_overlaps(dout, along)


def add_overlaps(windows: Value, along: WindowAxes) -> Value:
    """The sum of the windows' overlaps."""
    over = along.windows
    return windows.op(
        "overlap_add", sizes=along.sizes, axes=along.axes, stride=over.stride, padding=over.padding,
        dilation=over.dilation,
    )  # fmt: skip


def sliding_view(x: Value, along: WindowAxes, fill: float) -> Value:
    """The windows of a symbolic value."""
    over = along.windows
    return x.op(
        "sliding_windows", kernel=over.kernel, axes=along.axes, stride=over.stride, padding=over.padding,
        dilation=over.dilation, fill=fill,
    )  # fmt: skip


@register_op(
    sizes=frozenset({"padding"}),
    relation=Relation("T:number -> T", rules.sliding_shape),
    pattern=Pattern.INJECTIVE,
    compute=lambda x, kernel, axes, stride, padding, dilation, fill: slid_stage(
        x, WindowAxes.of_stage(x, axes, kernel, stride, padding, dilation), fill
    ),
    gradient=_sliding_gradient,
    batching=Batching(rule=batching.by_axes("axes")),
    sampler=cases(
        case((5,), kernel=2),
        case((2, 5, 4), kernel=(3, 2), axes=(1, 2), stride=(2, 1), padding=((1, 2), 0), dilation=(1, 2), fill=1),
        case((6, 2), kernel=3, axes=0, padding="same"),
        case((0, 4), kernel=2, axes=1),
        case((2, 0), kernel=2, axes=1, padding=1),
    ),
)
def sliding_windows(
    x: Tensor,
    kernel: int | tuple[int, ...],
    axes: int | tuple[int, ...] = -1,
    stride: int | tuple[int, ...] = 1,
    padding: Padding = 0,
    dilation: int | tuple[int, ...] = 1,
    fill: float = 0,
) -> Tensor:
    """Windows of x along axes, each as new axes at the end; outside of x is the number `fill`. Stride, padding and
    dilation are as in `conv2d`. x: (T, s) -> (T, (*(s with the number of windows along the axes), *kernel)).

    >>> relay.sliding_windows(np.float32([1, 2, 3]), 2)
    Array([[1., 2.],
           [2., 3.]], dtype=float32)
    """
    return numpy_slid(x, WindowAxes.from_attributes(x.shape, axes, kernel, stride, padding, dilation), fill)


def _overlapping_windows(
    shape: Sequence[Dim], sizes: Numbers, axes: Numbers, stride: Numbers, padding: Padding, dilation: Numbers
) -> tuple[WindowAxes, Shape]:
    """The windows, and the result's shape."""
    count = 1 if isinstance(axes, int) else len(axes)
    outer, kernel = shape[: len(shape) - count], shape[len(shape) - count :]
    result: list[Dim] = list(outer)
    for axis, size in zip(rules.sliding_axes(axes, len(outer)), rules.sizes_of(sizes, count), strict=True):
        result[axis] = size
    return WindowAxes.from_attributes(result, axes, numbers(kernel), stride, padding, dilation, outer), tuple(result)


def _overlap_add(windows: Stage, **attributes: Any) -> Stage:
    along, shape = _overlapping_windows(dims(windows), **attributes)
    over, rank = along.windows, len(shape)
    if 0 in shape or 0 in dims(windows):
        return stages.full(shape, 0, str(windows.dtype))

    def element(*index: Element) -> Element:
        place, inside = list(index), []
        for number, axis in enumerate(along.axes):
            step = over.stride[number]
            at = index[axis] + over.padding[number][0] - index[rank + number] * over.dilation[number]
            inside += [at >= 0, at < along.extents[number] * step]
            if step > 1:
                inside.append(scalar.is_zero(tirx.floormod(at, step)))
            place[axis] = tirx.floordiv(at, step) if step > 1 else at
        zero = scalar.number(0, str(windows.dtype))
        return scalar.guarded_select(functools.reduce(tirx.And, inside), windows(*place), zero)

    spread = te.compute((*shape, *over.kernel), element, name="spread")
    return stages.total(spread, range(rank, rank + len(over.kernel)), False)


def _overlap_add_gradient(windows: Value, out: Value, dout: Value, sizes: Numbers, **attributes: Any) -> Value:
    along, _ = _overlapping_windows(windows.shape, sizes, **attributes)
    return sliding_view(dout, along, 0)


def _batched_overlaps(batch: Batch, windows: Value, axes: Numbers, **attributes: Any) -> Value:
    outer = batch.rank() - (1 if isinstance(axes, int) else len(axes))
    return batch.call(windows, axes=batching.shift_axes(axes, outer), **attributes)


@register_op(
    sizes=frozenset({"sizes", "padding"}),
    relation=Relation("T:number -> T", rules.overlap_add),
    pattern=Pattern.REDUCTION,
    compute=_overlap_add,
    gradient=_overlap_add_gradient,
    algebra=Algebra(linear=(0,)),
    batching=Batching(rule=_batched_overlaps),
    sampler=cases(
        case((4, 2), sizes=5, axes=0),
        case((2, 4, 2, 3, 2), sizes=(6, 4), axes=(1, 2), stride=(2, 1), padding=((1, 2), 0), dilation=(1, 2)),
        case((6, 2, 3), sizes=6, axes=0, padding="same"),
        case((0, 3, 2), sizes=4, axes=1),
    ),
)
def overlap_add(
    windows: Tensor,
    sizes: int | tuple[int, ...],
    axes: int | tuple[int, ...] = -1,
    stride: int | tuple[int, ...] = 1,
    padding: Padding = 0,
    dilation: int | tuple[int, ...] = 1,
) -> Tensor:
    """The sum of windows, each at its place, in a tensor with `sizes` along the axes: the adjoint of
    `sliding_windows`. windows: (T, (*(s with the number of windows along the axes), *kernel)) -> (T, s).

    >>> relay.overlap_add(np.float32([[1, 2], [10, 20]]), 3, axes=0)
    Array([ 1., 12., 20.], dtype=float32)
    """
    along, found = _overlapping_windows(windows.shape, sizes, axes, stride, padding, dilation)
    shape = numbers(found)
    over, rank = along.windows, len(shape)
    room, kept = list(shape), [slice(None)] * rank
    for axis, size, (low, high) in zip(along.axes, numbers(along.sizes), over.widths, strict=True):
        room[axis], kept[axis] = low + size + high, slice(low, low + size)
    padded = np.zeros(
        room, np.float32 if windows.dtype.itemsize < 4 and windows.dtype.kind not in "iu" else windows.dtype
    )
    if 0 not in windows.shape:
        for offset in itertools.product(*map(range, over.kernel)):
            place: list[slice] = [slice(None)] * rank
            for axis, extent, step, k, d in zip(
                along.axes, numbers(along.extents), over.stride, offset, over.dilation, strict=True
            ):
                place[axis] = slice(k * d, k * d + (extent - 1) * step + 1, step)
            padded[tuple(place)] += windows[(slice(None),) * rank + offset]
    return np.ascontiguousarray(padded[tuple(kept)]).astype(windows.dtype)
