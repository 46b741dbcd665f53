"""Adaptive pooling: maxima and means over bins, of which there are as many as asked for.

Bin i of m over an axis of extent n is [floor(i n / m), ceil((i + 1) n / m)).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from relay.errors import ShapeError
from relay.ir import dims as arithmetic
from relay.ir.types import INT64, Dim, Shape
from relay.operator import Emitter
from relay.ops import batching
from relay.ops.nn.pooling import samples, spatial_axes
from relay.ops.notation import (
    Algebra,
    Batching,
    Element,
    Pattern,
    Relation,
    Stage,
    Tensor,
    Value,
    cast_like,
    dims,
    index_base,
    integer_range,
    register_op,
    table,
    widened_value,
)
from relay.ops.samples import case
from relay.ops.shape.reshaping import accumulator
from relay.ops.tir import scalar, stages
from relay.ops.tir.tvm_modules import index_dtype, te, tirx
from relay.typecheck import windows as rules
from relay.typecheck.dims import needs_at_least
from relay.typecheck.windows import Numbers

Sizes: TypeAlias = Dim | tuple[Dim, ...]


def _bins(place: Any, size: Any, count: Any) -> tuple[Any, Any]:
    """The start and end of a place's bin: of numbers, arrays, symbolic values or expressions."""
    return place * size // count, ((place + 1) * size + (count - 1)) // count


def _longest_bin(size: Any, count: Any) -> Any:
    """As many elements as no bin has more of: of numbers those of the longest, otherwise 1 more at most."""
    if isinstance(size, int) and isinstance(count, int):
        begin, end = _bins(np.arange(count), size, count)
        return int((end - begin).max())
    return (size - 1) // count + 2


def _adaptive_shape(rank: int, shape: Shape, *, output_size: Sizes, layout: str) -> Shape:
    rules.check_rank(f"adaptive pooling over {rank} axes", rank, shape)
    extents = rules.sizes_of(output_size, rank, "output_size")
    result: list[Dim] = list(shape)
    for axis, extent in zip(spatial_axes(layout, rank), extents, strict=True):
        rules.check_nonempty(shape, axis, "adaptive pooling")
        if not needs_at_least(extent, 1):
            raise ShapeError(f"output_size must hold integers that are at least 1, found {output_size!r}")
        result[axis] = extent
    return tuple(result)


def _adaptive(x: Stage, output_size: Sizes, layout: str, mean: bool) -> Stage:
    """The means of bins, or their maxima."""
    shape, rank = dims(x), len(dims(x))
    axes = spatial_axes(layout, rank - 2)
    counts = rules.sizes_of(output_size, rank - 2, "output_size")
    result = list(shape)
    for axis, count in zip(axes, counts, strict=True):
        result[axis] = count
    outside = 0 if mean else stages.lowest_number(str(x.dtype))
    if 0 in shape:
        return stages.full(result, 0, str(x.dtype))
    longest = [_longest_bin(shape[axis], count) for axis, count in zip(axes, counts, strict=True)]

    def bounds(number: int, place: Element) -> tuple[Element, Element]:
        size = shape[axes[number]]
        begin, end = _bins(tirx.Cast("int64", place), size, counts[number])
        dtype = index_dtype() if isinstance(size, int) else "int64"
        return tirx.Cast(dtype, begin), tirx.Cast(dtype, end)

    def element(*index: Element) -> Element:
        place, inside = list(index[:rank]), []
        for number, axis in enumerate(axes):
            begin, end = bounds(number, index[axis])
            place[axis] = begin + index[rank + number]
            inside.append(place[axis] < end)
        return scalar.guarded_select(
            functools.reduce(tirx.And, inside), x(*place), scalar.number(outside, str(x.dtype))
        )

    binned = te.compute((*result, *longest), element, name="bins")
    axes_of_bins = range(rank, rank + len(longest))
    if not mean:
        return stages.maximum_along(binned, axes_of_bins, False)

    wide_dtype = "float32" if str(x.dtype) in ("float16", "bfloat16") else str(x.dtype)
    total = stages.total(binned, axes_of_bins, False, lambda e: scalar.cast(e, wide_dtype))

    def share(*index: Element) -> Element:
        extents = [bounds(number, index[axis]) for number, axis in enumerate(axes)]
        count = functools.reduce(lambda a, b: a * b, [end - begin for begin, end in extents])
        return scalar.cast(total(*index) / scalar.cast(count, wide_dtype), str(x.dtype))

    return te.compute(tuple(result), share)


def _numpy_adaptive(x: Tensor, output_size: Numbers, layout: str, combine: Callable[..., Tensor]) -> Tensor:
    axes = spatial_axes(layout, x.ndim - 2)
    counts = rules.per_axis(output_size, x.ndim - 2, "output_size", 1)
    shape = list(x.shape)
    for axis, count in zip(axes, counts, strict=True):
        shape[axis] = count
    result = np.zeros(shape, x.dtype)
    bins = [_bins(np.arange(count), x.shape[axis], count) for axis, count in zip(axes, counts, strict=True)]
    for bin_ in np.ndindex(*counts):
        source: list[slice | int] = [slice(None)] * x.ndim
        target: list[slice | int] = [slice(None)] * x.ndim
        for axis, (begin, end), place in zip(axes, bins, bin_, strict=True):
            source[axis], target[axis] = slice(begin[place], end[place]), place
        result[tuple(target)] = combine(x[tuple(source)], axis=axes)
    return result


def _adaptive_avg_gradient(x: Value, out: Value, dout: Value, output_size: Sizes, layout: str) -> Value:
    """Along each axis the mean is a product with a matrix of shares; back, with its transpose."""
    rank = x.ndim
    for axis in spatial_axes(layout, rank - 2):
        size, count = x.shape[axis], dout.shape[axis]

        def shares_of(emitter: Emitter, size: Dim = size, count: Dim = count) -> Value:
            bins = integer_range(emitter, 0, count, INT64).op("expand_dims", axis=1)
            begin, end = _bins(bins, emitter.number(size, INT64), emitter.number(count, INT64))
            places = integer_range(emitter, 0, size, INT64)
            inside = widened_value(((places >= begin) & (places < end)).op("cast", dtype=x.base))
            return cast_like(inside / (end - begin).op("cast", dtype=inside.base), x)

        shares = table(dout.emitter, shares_of)
        order = (*(i for i in range(rank) if i != axis), axis)
        back = tuple(order.index(i) for i in range(rank))
        dout = dout.op("transpose", axes=order).op("matmul", shares).op("transpose", axes=back)
    return dout


def _adaptive_max_gradient(x: Value, out: Value, dout: Value, output_size: Sizes, layout: str) -> Value:
    """The gradient through the bins as further axes, each after its own, padded to the longest."""
    axes = spatial_axes(layout, x.ndim - 2)
    windows, tables, valid = x, [], []
    for number, axis in enumerate(axes):
        size, count = x.shape[axis], out.shape[axis]

        def places(emitter: Emitter, size: Dim = size, count: Dim = count) -> tuple[Value, Value, Value]:
            """Those of the elements of each bin, as many as it has, and their numbers in it."""
            bins = integer_range(emitter, 0, count, INT64).op("expand_dims", axis=1)
            begin, end = _bins(bins, emitter.number(size, INT64), emitter.number(count, INT64))
            within = integer_range(emitter, 0, _longest_bin(size, count), INT64)
            return begin + within, end - begin, within

        def chosen_places(emitter: Emitter, size: Dim = size, places: Any = places) -> Value:
            return places(emitter)[0].op("minimum", arithmetic.subtract(size, 1)).op("cast", dtype=index_base(size))

        def counts(emitter: Emitter, places: Any = places, axis: int = axis, number: int = number) -> Value:
            _, length, within = places(emitter)
            others = tuple(i for i in range(x.ndim + len(axes)) if i not in (axis + number, axis + number + 1))
            return (within < length).op("expand_dims", axis=others)

        tables.append(table(x.emitter, chosen_places))
        windows = windows.op("take", tables[-1], axis=axis + number)
        valid.append(table(x.emitter, counts))
    extents: list[Dim] = []
    for axis, extent in enumerate(out.shape):
        extents += [extent, 1] if axis in axes else [extent]
    kept = tuple(axis + number + 1 for number, axis in enumerate(axes))
    chosen = windows.op("equal", out.op("reshape", shape=tuple(extents)))
    for own in valid:
        chosen = chosen & own
    weights = chosen.op("cast", dtype=x.base)
    cotangent = weights * (dout.op("reshape", shape=tuple(extents)) / weights.op("sum", axis=kept, keepdims=True))
    for number, axis in reversed(list(enumerate(axes))):
        whole = list(cotangent.shape)
        whole[axis + number : axis + number + 2] = [x.shape[axis]]
        zero = cotangent.emitter.constant(0, x.base).op("broadcast_to", shape=tuple(whole))
        cotangent = zero.op("scatter_add", tables[number], cotangent, axis=axis + number)
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
    axes = "the spatial axis" if rank == 1 else f"each of {rank} spatial axes"

    def adaptive_avg_pool(x: Tensor, output_size: Numbers, layout: str = layout_default) -> Tensor:
        return _numpy_adaptive(x.astype(accumulator(x.dtype)), output_size, layout, np.mean).astype(x.dtype)

    adaptive_avg_pool.__doc__ = f"""The means of `output_size` bins along {axes}. {bins}
    x: (T float, (n, c, *sizes)) -> (T, (n, c, *output_size)).

    >>> relay.adaptive_avg_pool{rank}d({ones}, 2).shape
    {(1, 1) + (2,) * rank}
    """
    register_op(
        name=f"adaptive_avg_pool{rank}d",
        sizes=frozenset({"output_size"}),
        relation=Relation("T:float -> T", functools.partial(_adaptive_shape, rank)),
        layouts=functools.partial(rules.layouts, rank, "xx"),
        batching=Batching(rule=batching.into_axis("N")),
        pattern=Pattern.REDUCTION,
        compute=functools.partial(_adaptive, mean=True),
        gradient=_adaptive_avg_gradient,
        algebra=Algebra(linear=(0,)),
        sampler=samples(rank, *_ADAPTIVE_CALLS),
    )(adaptive_avg_pool)

    def adaptive_max_pool(x: Tensor, output_size: Numbers, layout: str = layout_default) -> Tensor:
        return _numpy_adaptive(x, output_size, layout, np.max)

    adaptive_max_pool.__doc__ = f"""The maxima of `output_size` bins along {axes}. {bins}
    x: (T, (n, c, *sizes)) -> (T, (n, c, *output_size)).

    >>> relay.adaptive_max_pool{rank}d({ones}, 2).shape
    {(1, 1) + (2,) * rank}
    """
    register_op(
        name=f"adaptive_max_pool{rank}d",
        sizes=frozenset({"output_size"}),
        relation=Relation("T:number -> T", functools.partial(_adaptive_shape, rank)),
        layouts=functools.partial(rules.layouts, rank, "xx"),
        batching=Batching(rule=batching.into_axis("N")),
        pattern=Pattern.REDUCTION,
        compute=functools.partial(_adaptive, mean=False),
        gradient=_adaptive_max_gradient,
        sampler=samples(rank, *_ADAPTIVE_CALLS),
    )(adaptive_max_pool)


for _rank in (1, 2, 3):
    _define_adaptive(_rank)
