"""Maxima and means over windows: pooling of one, two and three spatial axes."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import attrs
import numpy as np

from relay.ir import dims as arithmetic
from relay.ir.types import BaseType, Dim, Shape
from relay.ops import batching
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
    expansion,
    index_base,
    integer_range,
    number_like,
    register_op,
    result_dims,
    widened_value,
)
from relay.ops.samples import Case, case, cases
from relay.ops.shape.reshaping import accumulator
from relay.ops.shape.windows import WindowAxes, add_overlaps, numpy_slid, slid_stage, sliding_view
from relay.ops.tir import scalar, stages
from relay.ops.tir.tvm_modules import te, tirx
from relay.typecheck import windows as rules
from relay.typecheck.dims import numbers, resolve
from relay.typecheck.windows import Numbers, Padding, Windows


@attrs.frozen
class _PoolingWindows:
    """The windows of a pooling operator; `counted` is the padding along each axis that counts for a mean."""

    along: WindowAxes
    counted: tuple[tuple[Dim, Dim], ...]

    @property
    def is_whole(self) -> bool:
        """True if all elements of all windows count."""
        return self.counted == self.along.windows.padding


def spatial_axes(layout: str, rank: int) -> tuple[int, ...]:
    if rules.in_blocks(layout, rank):
        return tuple(range(2, 2 + rank))
    return tuple(range(1, 1 + rank)) if rules.channels_last(layout, rank) else tuple(range(2, 2 + rank))


def _pool(
    shape: Sequence[Dim], kernel: Numbers, stride: Numbers | None, padding: Padding, dilation: Numbers, ceil_mode: bool,
    layout: str, count_include_pad: bool = False, extents: Sequence[Any] | None = None,
) -> _PoolingWindows:  # fmt: skip
    """`extents`: the result's shape, in a compute function."""
    axes = spatial_axes(layout, len(shape) - (3 if layout.endswith("c") else 2))
    step = kernel if stride is None else stride
    sizes = tuple(shape[axis] for axis in axes)
    plain = rules.windows(sizes, rules.per_axis(kernel, len(axes), "kernel", 1), step, padding, dilation)
    counted = plain.padding if count_include_pad else ((0, 0),) * len(axes)
    pairs = _ceil_padding(sizes, plain) if ceil_mode else plain.padding
    return _PoolingWindows(WindowAxes.from_attributes(shape, axes, kernel, step, pairs, dilation, extents), counted)


def _ceil_padding(sizes: Sequence[Any], over: Windows) -> tuple[tuple[Any, Any], ...]:
    """The padding of the axes with which a last window counts that is not full: as much behind as it may need, since
    none starts behind the end."""

    def axis_padding(size: Any, padding: tuple[Any, Any], reach: int, stride: int) -> tuple[Any, Any]:
        low, high = padding
        if not isinstance(high, int):  # "same", with which all windows are full
            return padding
        most = min(high + stride - 1, max(reach - 1, high))
        if not isinstance(size, int) or not isinstance(low, int):
            return low, most
        last = (size + low + most - reach) // stride * stride  # where the last window starts
        return low, max(high, last + reach - size - low)

    return tuple(map(axis_padding, sizes, over.padding, over.reach, over.stride))


def _stage_pool(x: Stage, **attributes: Any) -> _PoolingWindows:
    """In a compute function."""
    shape = dims(x)
    return _pool(shape, **attributes, extents=result_dims(lambda: _pool(shape, **attributes).along.outer_shape(shape)))


def _pool_shape(
    rank: int, shape: Shape, *, kernel: Numbers, stride: Numbers | None, padding: Padding, dilation: Numbers,
    ceil_mode: bool, layout: str, **others: object,
) -> Shape:  # fmt: skip
    rules.check_activation(f"pooling over {rank} axes", rank, shape, layout)
    axes = spatial_axes(layout, rank)
    step = kernel if stride is None else stride
    if ceil_mode:
        sizes = tuple(resolve(shape[axis]) for axis in axes)
        padding = _ceil_padding(
            sizes, rules.windows(sizes, rules.per_axis(kernel, rank, "kernel", 1), step, padding, dilation)
        )
    return rules.sliding_shape(shape, kernel=kernel, axes=axes, stride=step, padding=padding, dilation=dilation)[
        : len(shape)
    ]


def _lowest_value(base: BaseType) -> float:
    return -math.inf if base.is_float else int(np.iinfo(base.name).min)


def _append_unit_axes(value: Value, axes: int) -> Value:
    """With axes of extent 1 at the end."""
    return value.op("reshape", shape=(*value.shape, *(1,) * axes))


# ---- maxima


def _max_pool(x: Stage, **attributes: Any) -> Stage:
    windows = slid_stage(x, _stage_pool(x, **attributes).along, stages.lowest_number(str(x.dtype)))
    return stages.maximum_along(windows, range(len(dims(x)), len(dims(windows))), False)


def _numpy_max_pool(x: Tensor, **attributes: Any) -> Tensor:
    least = -math.inf if x.dtype.kind not in "iu" else int(np.iinfo(x.dtype).min)
    windows = numpy_slid(x, _pool(x.shape, **attributes).along, least)
    return np.asarray(windows.max(axis=tuple(range(x.ndim, windows.ndim))))


def _max_gradient(windows: Value, out: Value, dout: Value, kernel: Sequence[int]) -> Value:
    """The cotangent of windows whose maximum is `out`: shared evenly among equal ones."""
    axes = tuple(range(out.ndim, windows.ndim))
    chosen = windows.op("equal", _append_unit_axes(out, len(axes))).op("cast", dtype=out.base)
    count = chosen.op("sum", axis=axes)
    return chosen * _append_unit_axes(dout / count, len(axes))


def _max_pool_gradient(x: Value, out: Value, dout: Value, **attributes: Any) -> Value:
    along = _pool(x.shape, **attributes).along
    windows = sliding_view(x, along, _lowest_value(x.base))
    return add_overlaps(_max_gradient(windows, out, dout, along.windows.kernel), along)


# ---- means


def _numpy_counts(pool: _PoolingWindows, rank: int) -> Tensor:
    """The number of elements of each window, to be broadcast to the result."""
    result = np.ones((1,) * rank, np.int64)
    over = pool.along.windows
    extents = zip(pool.along.axes, numbers(pool.along.sizes), numbers(pool.along.extents), strict=True)
    for number, (axis, size, extent) in enumerate(extents):
        (before, after), (low, _) = numbers(pool.counted[number]), over.widths[number]
        starts = np.arange(extent) * over.stride[number] - low
        places = starts[:, None] + np.arange(over.kernel[number]) * over.dilation[number]
        counts = np.sum((places >= -before) & (places < size + after), axis=1)
        result = result * counts.reshape([-1 if i == axis else 1 for i in range(rank)])
    return result


def _counts(pool: _PoolingWindows, value: Value) -> Value:
    """The same on symbolic values, as numbers of the dtype of one."""
    rank, over, emitter = value.ndim, pool.along.windows, value.emitter
    result = number_like(value, 1)
    for number, axis in enumerate(pool.along.axes):
        (before, after), (low, _) = pool.counted[number], over.padding[number]
        end = arithmetic.add(pool.along.sizes[number], after)
        offsets = np.arange(over.kernel[number]) * over.dilation[number]
        base = index_base(arithmetic.add(end, over.stride[number] + int(offsets.max(initial=0))))
        starts = integer_range(emitter, 0, pool.along.extents[number], base) * over.stride[number]
        starts = starts - emitter.number(low, base)
        places = starts.op("expand_dims", axis=1).op("add", offsets.astype(base.dtype))
        inside = (places >= emitter.number(arithmetic.subtract(0, before), base)) & (places < emitter.number(end, base))
        counts = inside.op("cast", dtype=value.base).op("sum", axis=1)
        result = result * counts.op("expand_dims", axis=tuple(i for i in range(rank) if i != axis))
    return result


def _avg_pool(x: Stage, **attributes: Any) -> Stage:
    pool = _stage_pool(x, **attributes)
    shape, rank, over = dims(x), len(dims(x)), pool.along.windows
    dtype = str(x.dtype)
    wide_dtype = "float32" if dtype in ("float16", "bfloat16") else dtype
    windows = slid_stage(x, pool.along, 0)
    axes = range(rank, rank + len(over.kernel))
    total = stages.total(windows, axes, False, lambda e: scalar.cast(e, wide_dtype))

    def count_along(number: int, axis: int, place: Element) -> Element:
        before, after = pool.counted[number]
        first = place * over.stride[number] - over.padding[number][0]
        inside: Element = tirx.const(0, "int32")
        for k in range(over.kernel[number]):
            at = first + k * over.dilation[number]
            inside = inside + tirx.Cast("int32", tirx.all(at >= -before, at < shape[axis] + after))
        return inside

    def element(*index: Element) -> Element:
        if pool.is_whole:
            count = tirx.const(math.prod(over.kernel), wide_dtype)
        else:
            along = [count_along(number, axis, index[axis]) for number, axis in enumerate(pool.along.axes)]
            count = scalar.cast(functools.reduce(lambda a, b: a * b, along), wide_dtype)
        return scalar.cast(total(*index) / count, dtype)

    return te.compute(dims(total), element)


def _numpy_avg_pool(x: Tensor, **attributes: Any) -> Tensor:
    pool = _pool(x.shape, **attributes)
    windows = numpy_slid(x, pool.along, 0).astype(accumulator(x.dtype))
    total = windows.sum(axis=tuple(range(x.ndim, windows.ndim)))
    return np.asarray(total / _numpy_counts(pool, x.ndim).astype(total.dtype)).astype(x.dtype)


def _avg_pool_gradient(x: Value, out: Value, dout: Value, **attributes: Any) -> Value:
    pool = _pool(x.shape, **attributes)
    kernel, whole = pool.along.windows.kernel, widened_value(dout)
    share = whole / (number_like(whole, math.prod(kernel)) if pool.is_whole else _counts(pool, whole))
    spread = _append_unit_axes(cast_like(share, dout), len(kernel)).op("broadcast_to", shape=(*out.shape, *kernel))
    return add_overlaps(spread, pool.along)


# ---- the operators of each rank


def samples(rank: int, *calls: Case) -> Any:
    """The calls, which are written for two spatial axes, for another number."""

    def attribute(name: str, value: Any) -> Any:
        if name == "layout":
            return value.replace("HW", "DHW"[-rank:])
        return (value * 2)[:rank] if isinstance(value, tuple) else value

    found = []
    for call in calls:
        (shape,) = call.operands
        last = str(call.attributes.get("layout", "")).endswith("C")
        places = slice(1, 3) if last else slice(2, 4)
        extents = (*shape[: places.start], *(shape[places] * 2)[:rank], *shape[places.stop :])
        found.append(case(extents, **{name: attribute(name, value) for name, value in call.attributes.items()}))
    return cases(*found)


_CALLS = (
    case((1, 2, 5, 4), kernel=2),
    case((1, 1, 5, 5), kernel=(3, 2), stride=(2, 1), padding=1),
    case((2, 4, 5, 2), kernel=2, stride=2, padding="same", layout="NHWC"),
    case((1, 1, 6, 5), kernel=2, stride=2, dilation=2, padding=((0, 1), 0), ceil_mode=True),
    case((0, 2, 4, 4), kernel=2),
    case((1, 2, 5, 4, 3), kernel=2, stride=1, layout="NCHWc"),
)


def _attributes(name: str, rank: int) -> str:
    """The part of a pooling operator's documentation about its attributes, which is whole in that for two axes."""
    if rank != 2:
        axes = "DHW"[-rank:]
        return f"Attributes are those of `{name}2d`, with the layouts NC{axes}, N{axes}C and NC{axes}c."
    return """The stride is the kernel's size unless given. `padding` is as in `conv2d`; with `ceil_mode` a last window
    that is not full counts, too. In the layout NCHWc x is (n, c / b, *sizes, b)."""


def _example_operand(rank: int) -> str:
    """The operand of examples."""
    return f"np.arange({2**rank}, dtype=np.float32).reshape({(1, 1) + (2,) * rank})"


def _printed_array(rank: int, number: object) -> str:
    """An array of one number, as examples print it."""
    return f"Array({'[' * (rank + 2)}{number}{']' * (rank + 2)}, dtype=float32)"


def _define_max_pool(rank: int) -> None:
    layout_default = f"NC{'DHW'[-rank:]}"
    axes = "axis" if rank == 1 else "axes"

    def max_pool(
        x: Tensor, kernel: Numbers, stride: Numbers | None = None, padding: Padding = 0, dilation: Numbers = 1,
        ceil_mode: bool = False, layout: str = layout_default,
    ) -> Tensor:  # fmt: skip
        return _numpy_max_pool(
            x, kernel=kernel, stride=stride, padding=padding, dilation=dilation, ceil_mode=ceil_mode, layout=layout
        )

    max_pool.__doc__ = f"""The largest element of each window over {rank} spatial {axes}; what is outside does not
    count. Equal ones share a cotangent. x: (T, (n, c, *sizes)) -> (T, (n, c, *extents)).

    {_attributes("max_pool", rank)}

    >>> relay.max_pool{rank}d({_example_operand(rank)}, 2)
    {_printed_array(rank, f"{2**rank - 1}.")}
    """
    register_op(
        name=f"max_pool{rank}d",
        sizes=frozenset({"padding"}),
        relation=Relation("T:number -> T", functools.partial(_pool_shape, rank)),
        layouts=functools.partial(rules.layouts, rank, "xx", blocks=True),
        batching=Batching(rule=batching.into_axis("N")),
        pattern=Pattern.REDUCTION,
        compute=_max_pool,
        gradient=_max_pool_gradient,
        sampler=samples(rank, *_CALLS),
    )(max_pool)


def _define_avg_pool(rank: int) -> None:
    layout_default = f"NC{'DHW'[-rank:]}"
    axes = "axis" if rank == 1 else "axes"

    def avg_pool(
        x: Tensor, kernel: Numbers, stride: Numbers | None = None, padding: Padding = 0, dilation: Numbers = 1,
        ceil_mode: bool = False, layout: str = layout_default, count_include_pad: bool = True,
    ) -> Tensor:  # fmt: skip
        return _numpy_avg_pool(
            x, kernel=kernel, stride=stride, padding=padding, dilation=dilation, ceil_mode=ceil_mode, layout=layout,
            count_include_pad=count_include_pad,
        )  # fmt: skip

    avg_pool.__doc__ = f"""The mean of each window over {rank} spatial {axes}; padding counts as 0, or not at all
    without `count_include_pad`. x: (T float, (n, c, *sizes)) -> (T, (n, c, *extents)).

    {_attributes("avg_pool", rank)}

    >>> relay.avg_pool{rank}d({_example_operand(rank)}, 2)
    {_printed_array(rank, (2**rank - 1) / 2)}
    """
    register_op(
        name=f"avg_pool{rank}d",
        sizes=frozenset({"padding"}),
        relation=Relation("T:float -> T", functools.partial(_pool_shape, rank)),
        layouts=functools.partial(rules.layouts, rank, "xx", blocks=True),
        batching=Batching(rule=batching.into_axis("N")),
        pattern=Pattern.REDUCTION,
        compute=_avg_pool,
        gradient=_avg_pool_gradient,
        algebra=Algebra(linear=(0,)),
        sampler=samples(
            rank,
            *_CALLS,
            case((1, 1, 5, 4), kernel=3, padding=1, stride=2, count_include_pad=False),
            case((1, 1, 5, 5), kernel=2, padding=1, stride=2, ceil_mode=True),
        ),
    )(avg_pool)


def _global_shape(rank: int, shape: Shape, *, layout: str) -> Shape:
    rules.check_rank(f"pooling over {rank} axes", rank, shape)
    axes = spatial_axes(layout, rank)
    return tuple(1 if axis in axes else dim for axis, dim in enumerate(shape))


def _define_global(rank: int) -> None:
    layout_default = f"NC{'DHW'[-rank:]}"
    axes = "the spatial axis, which stays" if rank == 1 else f"all {rank} spatial axes, which stay"
    sampler = samples(
        rank, case((2, 3, 4, 2)), case((1, 4, 3, 2), layout="NHWC"), case((0, 2, 3, 3)), case((2, 1, 1, 1))
    )

    def define(name: str, reduction: str, what: str, classes: str, example: str) -> None:
        def pool(x: Value, layout: str = layout_default) -> Value:
            return x.op(reduction, axis=spatial_axes(layout, rank), keepdims=True)

        pool.__doc__ = f"""The {what} over {axes} with extent 1.
        x: (T, (n, c, *sizes)) -> (T, (n, c, *ones)).

        >>> relay.{name}({_example_operand(rank)})
        {_printed_array(rank, example)}
        """
        expansion(
            name=name,
            relation=Relation(f"T:{classes} -> T", functools.partial(_global_shape, rank)),
            layouts=functools.partial(rules.layouts, rank, "xx"),
            batching=Batching(rule=batching.into_axis("N")),
            sampler=sampler,
        )(pool)

    define(f"global_avg_pool{rank}d", "mean", "mean", "float", f"{(2**rank - 1) / 2}")
    define(f"global_max_pool{rank}d", "max", "largest element", "number", f"{2**rank - 1}.")


for _rank in (1, 2, 3):
    _define_max_pool(_rank)
    _define_avg_pool(_rank)
    _define_global(_rank)
