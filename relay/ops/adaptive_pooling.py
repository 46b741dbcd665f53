"""Adaptive pooling: maxima and means over bins, of which there are as many as asked for.

Bin i of m over an axis of extent n is [floor(i n / m), ceil((i + 1) n / m)).
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np

from relay.ir.types import Dim, Shape
from relay.ops import scalar, stages
from relay.ops.lazy import te, tirx
from relay.ops.notation import Element, Pattern, Relation, Stage, Tensor, Value, dims, register_op
from relay.ops.pooling import samples, spatial_axes
from relay.ops.samples import case
from relay.typecheck import windows as rules
from relay.typecheck.dims import numbers
from relay.typecheck.windows import Numbers


def _bins(size: int, count: int) -> tuple[Tensor, Tensor]:
    """Where each bin starts and ends."""
    places = np.arange(count)
    return places * size // count, -(-(places + 1) * size // count)


def _adaptive_shape(rank: int, shape: Shape, *, output_size: Numbers, layout: str) -> Shape:
    rules.check_rank(f"adaptive pooling over {rank} axes", rank, shape)
    extents = rules.per_axis(output_size, rank, "output_size", 1)
    result: list[Dim] = list(shape)
    for axis, extent in zip(spatial_axes(layout, rank), extents, strict=True):
        rules.check_nonempty(shape, axis, "adaptive pooling")
        result[axis] = extent
    return tuple(result)


def _adaptive(
    x: Stage, output_size: Numbers, layout: str, outside: float, combine: Callable[..., Stage], mean: bool
) -> Stage:
    shape, rank = dims(x), len(dims(x))
    axes = spatial_axes(layout, rank - 2)
    counts = rules.per_axis(output_size, rank - 2, "output_size", 1)
    result = list(shape)
    for axis, count in zip(axes, counts, strict=True):
        result[axis] = count
    if 0 in shape:
        return stages.full(result, 0, str(x.dtype))
    longest = []
    for axis, count in zip(axes, counts, strict=True):
        begin, end = _bins(shape[axis], count)
        longest.append(int((end - begin).max()))

    def bounds(number: int, place: Element) -> tuple[Element, Element]:
        size, count = shape[axes[number]], counts[number]
        wide = tirx.Cast("int64", place)
        begin = tirx.floordiv(wide * size, count)
        end = tirx.floordiv((wide + 1) * size + (count - 1), count)
        return tirx.Cast("int32", begin), tirx.Cast("int32", end)

    def element(*index: Element) -> Element:
        place, inside = list(index[:rank]), []
        for number, axis in enumerate(axes):
            begin, end = bounds(number, index[axis])
            place[axis] = begin + index[rank + number]
            inside.append(tirx.LT(place[axis], end))
        return scalar.guarded(functools.reduce(tirx.And, inside), x(*place), scalar.number(outside, str(x.dtype)))

    binned = te.compute((*result, *longest), element, name="bins")
    combined = combine(binned, range(rank, rank + len(longest)), False)
    if not mean:
        return combined

    wide = "float32" if str(x.dtype) == "bfloat16" else str(x.dtype)  # which TVM does not compute in

    def share(*index: Element) -> Element:
        extents = [bounds(number, index[axis]) for number, axis in enumerate(axes)]
        count = functools.reduce(lambda a, b: a * b, [end - begin for begin, end in extents])
        mean_ = scalar.cast(combined(*index), wide) / scalar.cast(count, wide)
        return scalar.cast(mean_, str(x.dtype))

    return te.compute(tuple(result), share)


def _numpy_adaptive(x: Tensor, output_size: Numbers, layout: str, combine: Callable[..., Tensor]) -> Tensor:
    axes = spatial_axes(layout, x.ndim - 2)
    counts = rules.per_axis(output_size, x.ndim - 2, "output_size", 1)
    shape = list(x.shape)
    for axis, count in zip(axes, counts, strict=True):
        shape[axis] = count
    result = np.zeros(shape, x.dtype)
    bins = [_bins(x.shape[axis], count) for axis, count in zip(axes, counts, strict=True)]
    for bin_ in np.ndindex(*counts):
        source: list[slice | int] = [slice(None)] * x.ndim
        target: list[slice | int] = [slice(None)] * x.ndim
        for axis, (begin, end), place in zip(axes, bins, bin_, strict=True):
            source[axis], target[axis] = slice(begin[place], end[place]), place
        result[tuple(target)] = combine(x[tuple(source)], axis=axes)
    return result


def _adaptive_avg_gradient(x: Value, out: Value, dout: Value, output_size: Numbers, layout: str) -> Value:
    """Along each axis the mean is a product with a matrix of shares; back, with its transpose."""
    rank = x.ndim
    for axis in spatial_axes(layout, rank - 2):
        size, count = numbers((x.shape[axis], dout.shape[axis]))
        begin, end = _bins(size, count)
        places = np.arange(size)
        inside = (places >= begin[:, None]) & (places < end[:, None])
        shares = (inside / (end - begin)[:, None]).astype(x.base.dtype)
        order = (*(i for i in range(rank) if i != axis), axis)
        back = tuple(order.index(i) for i in range(rank))
        dout = dout.op("transpose", axes=order).op("matmul", shares).op("transpose", axes=back)
    return dout


def _adaptive_max_gradient(x: Value, out: Value, dout: Value, output_size: Numbers, layout: str) -> Value:
    """Through the bins as further axes, each beside its own, padded to the longest."""
    axes = spatial_axes(layout, x.ndim - 2)
    windows, tables = x, []
    valid = np.ones((1,) * x.ndim, bool)
    for number, axis in enumerate(axes):
        size, count = numbers((x.shape[axis], out.shape[axis]))
        begin, end = _bins(size, count)
        offsets = np.arange(int((end - begin).max()))
        table = np.minimum(begin[:, None] + offsets, size - 1).astype(np.int32)
        tables.append(table)
        windows = windows.op("take", table, axis=axis + number)
        shape = [1] * (x.ndim + len(axes))
        shape[axis + number], shape[axis + number + 1] = table.shape
        valid = valid.reshape((*valid.shape, *(1,) * (len(shape) - valid.ndim))) & (
            offsets < (end - begin)[:, None]
        ).reshape(shape)
    extents: list[Dim] = []
    for axis, extent in enumerate(out.shape):
        extents += [extent, 1] if axis in axes else [extent]
    kept = tuple(axis + number + 1 for number, axis in enumerate(axes))
    chosen = windows.op("equal", out.op("reshape", shape=tuple(extents))).op("logical_and", valid)
    weights = chosen.op("cast", dtype=x.base)
    cotangent = weights * (dout.op("reshape", shape=tuple(extents)) / weights.op("sum", axis=kept, keepdims=True))
    for number, axis in reversed(list(enumerate(axes))):
        table = tables[number]
        whole = list(cotangent.shape)
        whole[axis + number : axis + number + 2] = [x.shape[axis]]
        zero = cotangent.emitter.constant(0, x.base).op("broadcast_to", shape=tuple(whole))
        cotangent = zero.op("scatter_add", table, cotangent, axis=axis + number)
    return cotangent


_ADAPTIVE_CALLS = (
    case((1, 2, 5, 4), output_size=(3, 2)),
    case((2, 4, 5, 1), output_size=3, layout="NHWC"),
    case((1, 1, 2, 3), output_size=4),
    case((0, 2, 4, 4), output_size=2),
)


def _define_adaptive(rank: int) -> None:
    layout_default = f"NC{'DHW'[-rank:]}"
    bins = "Bin i of m over an axis of extent n is [floor(i n / m), ceil((i + 1) n / m))."
    ones = f"np.ones({(1, 1) + (3,) * rank}, np.float32)"

    def adaptive_avg_pool(x: Tensor, output_size: Numbers, layout: str = layout_default) -> Tensor:
        wide = x.astype(np.float32) if x.dtype.itemsize < 4 else x
        return _numpy_adaptive(wide, output_size, layout, np.mean).astype(x.dtype)

    adaptive_avg_pool.__doc__ = f"""The means of `output_size` bins along each of {rank} spatial axes. {bins}
    x: (T float, (n, c, *sizes)) -> (T, (n, c, *output_size)).

    >>> relay.adaptive_avg_pool{rank}d({ones}, 2).shape
    {(1, 1) + (2,) * rank}
    """
    register_op(
        name=f"adaptive_avg_pool{rank}d",
        relation=Relation("T:float -> T", functools.partial(_adaptive_shape, rank)),
        layouts=functools.partial(rules.layouts, rank, "xx"),
        pattern=Pattern.REDUCTION,
        compute=lambda x, output_size, layout: _adaptive(x, output_size, layout, 0, stages.total, True),
        gradient=_adaptive_avg_gradient,
        linear=(0,),
        sampler=samples(rank, *_ADAPTIVE_CALLS),
    )(adaptive_avg_pool)

    def adaptive_max_pool(x: Tensor, output_size: Numbers, layout: str = layout_default) -> Tensor:
        return _numpy_adaptive(x, output_size, layout, np.max)

    adaptive_max_pool.__doc__ = f"""The maxima of `output_size` bins along each of {rank} spatial axes. {bins}
    x: (T, (n, c, *sizes)) -> (T, (n, c, *output_size)).

    >>> relay.adaptive_max_pool{rank}d({ones}, 2).shape
    {(1, 1) + (2,) * rank}
    """
    register_op(
        name=f"adaptive_max_pool{rank}d",
        relation=Relation("T:number -> T", functools.partial(_adaptive_shape, rank)),
        layouts=functools.partial(rules.layouts, rank, "xx"),
        pattern=Pattern.REDUCTION,
        compute=lambda x, output_size, layout: _adaptive(
            x, output_size, layout, stages.lowest(str(x.dtype)), stages.largest, False
        ),
        gradient=_adaptive_max_gradient,
        sampler=samples(rank, *_ADAPTIVE_CALLS),
    )(adaptive_max_pool)


for _rank in (1, 2, 3):
    _define_adaptive(_rank)
