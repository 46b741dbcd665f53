"""Convolutions of one, two and three spatial axes, as neural networks have them: without turning the kernel round.

    T(x, w, y) = sum of x[n, g I + i, stride o + dilation k - low] w[g O + c, i, k] y[n, g O + c, o]

over batch n, group g, its I input and O output channels, kernel places k and output places o; x is 0 outside. The three
operators are the derivatives of this form by y, by x and by w, so that each one's gradient is the other two:

    convNd(x, w)                     x (n, c, *sizes), w (o, c / groups, *kernel) -> (n, o, *extents)
    convNd_transpose(y, w)           the input's cotangent; as a layer, a learned upsampling
    convNd_weight_gradient(x, y)     the weight's cotangent

Layouts: channels first (NCHW, with weights OIHW), or last (NHWC, with weights HWIO). convNd also takes channels in
blocks: NCHWc, x (n, c / b, *sizes, b), with weights OIHWio, w (o / p, c / b, *kernel, b, p), in one group.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from relay.ir.dims import Dim, multiply
from relay.ir.types import Shape
from relay.operator import Columns
from relay.ops.nn import polyphase
from relay.ops.nn.batched_convolutions import batched_convolution, batched_weight_gradient
from relay.ops.notation import (
    Algebra,
    Batching,
    Element,
    Numerics,
    Pattern,
    Relation,
    Stage,
    Tensor,
    Value,
    dims,
    register_op,
    result_dims,
)
from relay.ops.samples import Case, case, cases
from relay.ops.tir import scalar, stages
from relay.ops.tir.tvm_modules import te, tirx
from relay.typecheck import windows as rules
from relay.typecheck.dims import numbers
from relay.typecheck.windows import Numbers, Padding, Windows

LARGE_GROUP = 8
"""Output channels of a group from which each group is a product of its own."""


def _columns(x: Shape, weight: Shape, groups: int = 1, layout: str = "", **attributes: object) -> Columns | None:
    """The output channels, and the input channels as rows."""
    if layout.endswith("c"):  # two axes
        return None
    axis, outputs, inputs = (len(x) - 1, len(weight) - 1, len(weight) - 2) if layout.endswith("C") else (1, 0, 1)
    return Columns(outputs, axis, joins=groups == 1, rows=(axis, inputs) if groups == 1 else None)


def _work(activation: tuple[int, ...], weight: tuple[int, ...]) -> int:
    """The operations of each of the three: a multiplication and an addition for each element of the activation with
    the output channels, each place of the kernel and each input channel. Channels are the second axis of an activation
    and the first of a weight, or the last of both; or both, in blocks."""
    if len(weight) > len(activation):
        return 2 * math.prod(activation) * math.prod(weight) // max(weight[0] * weight[-1], 1)
    out = weight[0] if weight[0] == activation[1] else weight[-1]
    return 2 * math.prod(activation) * math.prod(weight) // max(out, 1)


# ---- te stages: on channels first, whatever the layout


def _first(x: Stage, last: bool) -> Callable[..., Element]:
    """Read an activation by (batch, channel, *place)."""
    return (lambda n, c, *place: x(n, *place, c)) if last else x


def _weight_first(weight: Stage, last: bool) -> Callable[..., Element]:
    """Read a weight by (output channel, input channel, *place)."""
    return (lambda o, i, *place: weight(*place, i, o)) if last else weight


def _activation_index(index: Sequence[Element], last: bool) -> tuple[Element, Element, Sequence[Element]]:
    return (index[0], index[-1], index[1:-1]) if last else (index[0], index[1], index[2:])


def _spatial(numbers: Sequence[Any], last: bool) -> tuple[Any, ...]:
    """Numbers for the spatial axes among zeros for batch and channels."""
    return (0, *numbers, 0) if last else (0, 0, *numbers)


def _pad_spatial(x: Stage, over: Windows, last: bool) -> Stage:
    low, high = zip(*over.padding, strict=True)
    return stages.pad_axes(x, _spatial(low, last), _spatial(high, last))


def _places(outer: Sequence[Element], inner: Sequence[Element], over: Windows) -> list[Element]:
    """stride o + dilation k along each axis."""
    return [o * s + k * d for o, k, s, d in zip(outer, inner, over.stride, over.dilation, strict=True)]


def convolution_stage(
    x: Stage, weight: Stage, stride: Numbers, padding: Padding, dilation: Numbers, groups: int, layout: str,
    dtype: str | None = None,
) -> Stage:  # fmt: skip
    if layout.endswith("c"):
        return _in_blocks(x, weight, stride, padding, dilation)
    rank = len(dims(x)) - 2
    last = rules.channels_last(layout, rank)
    out, inner, kernel = rules.split_weight(dims(weight), last)
    batch, _, sizes = rules.split(dims(x), last)
    over = rules.windows(sizes, kernel, stride, padding, dilation)
    shape = result_dims(lambda: rules.activation_shape(batch, out, over.extents(sizes), last))
    source, filters = _first(_pad_spatial(x, over, last), last), _weight_first(weight, last)
    share = out if groups == 1 else out // groups
    if groups > 1 and (not isinstance(share, int) or not isinstance(inner, int) or share >= LARGE_GROUP):
        return _in_groups(source, filters, shape, (groups, share, inner), over, last, dtype or str(x.dtype))

    def terms(index: Sequence[Element], reduced: Sequence[Element]) -> tuple[Element, Element]:
        n, o, place = _activation_index(index, last)
        i, *k = (reduced[-1], *reduced[:-1]) if last else reduced
        channel = i if groups == 1 else tirx.floordiv(o, share) * inner + i
        return source(n, channel, *_places(place, k, over)), filters(o, i, *k)

    extents = (*kernel, inner) if last else (inner, *kernel)
    return stages.contraction(shape, extents, dtype or str(x.dtype), terms)


def _in_groups(
    source: Callable[..., Element], filters: Callable[..., Element], shape: Sequence[Any], groups: tuple[int, Any, Any],
    over: Windows, last: bool, dtype: str,
) -> Stage:  # fmt: skip
    """The convolution with the groups as an axis of the result, so that each is a product of its own. `groups`: their
    number, and the output and input channels of each."""
    count, share, inner = groups
    axis = len(shape) - 1 if last else 1

    def terms(index: Sequence[Element], reduced: Sequence[Element]) -> tuple[Element, Element]:
        g, o = index[axis : axis + 2]
        n, *place = (*index[:axis], *index[axis + 2 :])
        i, *k = (reduced[-1], *reduced[:-1]) if last else reduced
        return source(n, g * inner + i, *_places(place, k, over)), filters(g * share + o, i, *k)

    extents = (*over.kernel, inner) if last else (inner, *over.kernel)
    split = stages.contraction((*shape[:axis], count, share, *shape[axis + 1 :]), extents, dtype, terms)
    return _merge_channels(split, shape, axis, share)


def _merge_channels(split: Stage, shape: Sequence[Any], axis: int, share: Any) -> Stage:
    """The channels of all groups, `share` of each, along one axis."""

    def element(*index: Element) -> Element:
        place = tirx.floordiv(index[axis], share), tirx.floormod(index[axis], share)
        return split(*index[:axis], *place, *index[axis + 1 :])

    return te.compute(tuple(shape), element, name="joined")


def _in_blocks(x: Stage, weight: Stage, stride: Numbers, padding: Padding, dilation: Numbers) -> Stage:
    """The convolution of channels in blocks."""
    batch, blocks, *sizes, inner = dims(x)
    out, _, *kernel, _, last = dims(weight)
    over = rules.windows(sizes, kernel, stride, padding, dilation)
    low, high = zip(*over.padding, strict=True)
    source = stages.pad_axes(x, (0, 0, *low, 0), (0, 0, *high, 0))

    def terms(index: Sequence[Element], reduced: Sequence[Element]) -> tuple[Element, Element]:
        n, o, *place, p = index
        c, *k, b = reduced
        return source(n, c, *_places(place, k, over), b), weight(o, c, *k, b, p)

    shape = result_dims(lambda: (batch, out, *over.extents(sizes), last))
    return stages.contraction(shape, (blocks, *kernel, inner), str(x.dtype), terms)


def _insert_zeros(y: Stage, over: Windows, sizes: Sequence[Any], last: bool) -> Stage:
    """y with stride - 1 zeros between its places, such that the result reads it at i + dilation (kernel - 1 - k)."""
    batch, channels, extents = rules.split(dims(y), last)
    offsets = [reach - 1 - low for reach, (low, _) in zip(over.reach, over.padding, strict=True)]
    room = [size + reach - 1 for size, reach in zip(sizes, over.reach, strict=True)]
    source = _first(y, last)

    def element(*index: Element) -> Element:
        n, c, place = _activation_index(index, last)
        conditions, origin = [], []
        for i, offset, stride, extent in zip(place, offsets, over.stride, extents, strict=True):
            at = i - offset
            conditions += [at >= 0, at < (extent - 1) * stride + 1]
            if stride > 1:
                conditions.append(scalar.is_zero(tirx.floormod(at, stride)))
            origin.append(tirx.floordiv(at, stride) if stride > 1 else at)
        value = source(n, c, *origin)
        return scalar.guarded_select(functools.reduce(tirx.And, conditions), value, scalar.number(0, str(y.dtype)))

    return te.compute(rules.activation_shape(batch, channels, room, last), element, name="spread")


def _transposed_convolution(
    y: Stage, weight: Stage, stride: Numbers, padding: Padding, output_padding: Numbers, dilation: Numbers, groups: int,
    layout: str,
) -> Stage:  # fmt: skip
    rank = len(dims(y)) - 2
    last = rules.channels_last(layout, rank)
    out, inner, kernel = rules.split_weight(dims(weight), last)
    batch, _, extents = rules.split(dims(y), last)
    over, extra = rules.transposed_over(kernel, stride, padding, output_padding, dilation)

    def by_rule() -> Shape:
        return rules.activation_shape(batch, inner * groups, rules.transposed_sizes(extents, over, extra), last)

    shape = result_dims(by_rule)
    _, _, sizes = rules.split(shape, last)
    dtype = str(y.dtype)
    if 0 in dims(y) or 0 in shape or 0 in dims(weight):
        return stages.full(shape, 0, dtype)
    if groups == 1 and polyphase.has_phases(sizes, extents, over):
        channels = batch, out, inner
        return polyphase.in_phases(
            _first(y, last), _weight_first(weight, last), channels, numbers(extents), numbers(sizes), over, dtype, last
        )
    share = out if groups == 1 else out // groups
    source, filters = _first(_insert_zeros(y, over, sizes, last), last), _weight_first(weight, last)

    def convolution_factors(
        n: Element, group: Element, own: Element, place: Any, reduced: Any
    ) -> tuple[Element, Element]:
        o, *k = (reduced[-1], *reduced[:-1]) if last else reduced
        channel = o if groups == 1 else group * share + o
        turned = [extent - 1 - i for extent, i in zip(over.kernel, k, strict=True)]
        read = [i + step * d for i, step, d in zip(place, k, over.dilation, strict=True)]
        return source(n, channel, *read), filters(channel, own, *turned)

    def terms(index: Sequence[Element], reduced: Sequence[Element]) -> tuple[Element, Element]:
        n, c, place = _activation_index(index, last)
        if groups == 1:
            return convolution_factors(n, c, c, place, reduced)
        return convolution_factors(n, tirx.floordiv(c, inner), tirx.floormod(c, inner), place, reduced)

    reduced = (*over.kernel, share) if last else (share, *over.kernel)
    if groups == 1 or isinstance(inner, int):
        return stages.contraction(shape, reduced, dtype, terms)
    axis = len(shape) - 1 if last else 1  # the loops divide by no data-dependent extent

    def grouped_factors(index: Sequence[Element], reduced: Sequence[Element]) -> tuple[Element, Element]:
        group, own = index[axis : axis + 2]
        n, *place = (*index[:axis], *index[axis + 2 :])
        return convolution_factors(n, group, own, place, reduced)

    split = stages.contraction((*shape[:axis], groups, inner, *shape[axis + 1 :]), reduced, dtype, grouped_factors)
    return _merge_channels(split, shape, axis, inner)


def _weight_gradient(
    x: Stage, y: Stage, kernel: Numbers, stride: Numbers, padding: Padding, dilation: Numbers, groups: int, layout: str
) -> Stage:
    rank = len(dims(x)) - 2
    last = rules.channels_last(layout, rank)
    attributes = {"kernel": kernel, "stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    shape = result_dims(
        lambda: rules.weight_gradient(rank, dims(x), dims(y), **attributes, layout=layout)  # type: ignore[arg-type]
    )
    out, inner, extent = rules.split_weight(shape, last)
    batch, _, sizes = rules.split(dims(x), last)
    over = rules.windows(sizes, extent, stride, padding, dilation)
    _, _, places = rules.split(dims(y), last)
    source, cotangent = _first(_pad_spatial(x, over, last), last), _first(y, last)
    share = out if groups == 1 else out // groups

    def terms(index: Sequence[Element], reduced: Sequence[Element]) -> tuple[Element, Element]:
        o, i, k = (index[-1], index[-2], index[:-2]) if last else (index[0], index[1], index[2:])
        n, *place = reduced
        channel = i if groups == 1 else tirx.floordiv(o, share) * inner + i
        return source(n, channel, *_places(place, k, over)), cotangent(n, o, *place)

    return stages.contraction(shape, (batch, *places), str(x.dtype), terms)


# ---- NumPy: on channels first, group by group


def _to_first(x: Tensor, last: bool) -> Tensor:
    return np.moveaxis(x, -1, 1) if last else x


def _from_first(x: Tensor, last: bool) -> Tensor:
    return np.ascontiguousarray(np.moveaxis(x, 1, -1) if last else x)


def _weight_to_first(weight: Tensor, last: bool) -> Tensor:
    return np.moveaxis(weight, (-1, -2), (0, 1)) if last else weight


def _weight_from_first(weight: Tensor, last: bool) -> Tensor:
    return np.ascontiguousarray(np.moveaxis(weight, (0, 1), (-1, -2)) if last else weight)


def _wide(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """What sums of products are made in."""
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


def _numpy_convolution_in_blocks(
    x: Tensor, weight: Tensor, stride: Numbers, padding: Padding, dilation: Numbers, wide: np.dtype[Any]
) -> Tensor:
    out, blocks, *kernel, inner, last = weight.shape
    plain = np.moveaxis(weight, (-1, -2), (1, 3)).reshape(out * last, blocks * inner, *kernel)
    result = numpy_convolution(
        _numpy_unblocked(x), plain, stride, padding, dilation, 1, f"NC{'DHW'[-len(kernel) :]}", wide
    )
    n, _, *extents = result.shape
    return np.ascontiguousarray(np.moveaxis(result.reshape(n, out, last, *extents), 2, -1))


def _numpy_transposed(
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
    result = numpy_convolution(spread, filters, 1, 0, dilation, groups, plain, _wide(y.dtype))
    return _from_first(result.astype(y.dtype), last)


def _numpy_weight_gradient(
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
    slid, wide = _numpy_windows(x, over), _wide(x.dtype)
    summed = (0, *range(2, 2 + rank))
    parts = [
        np.tensordot(cotangent.astype(wide), source.astype(wide), (summed, summed))
        for cotangent, source in zip(np.split(y, groups, axis=1), np.split(slid, groups, axis=1), strict=True)
    ]
    return _weight_from_first(np.concatenate(parts).astype(x.dtype), last)


# ---- gradients


def _places_in_blocks(axes: Sequence[int], rank: int) -> list[int]:
    """Where the axes of a tensor in blocks are once each block stands behind its axis. The blocks of the first axis
    are last."""
    blocks = {axis: rank - 1 - number for number, axis in enumerate(axes)}
    return [
        place for axis in range(rank - len(axes)) for place in ((axis, blocks[axis]) if axis in blocks else (axis,))
    ]


def _unblock_axes(value: Value, axes: Sequence[int]) -> Value:
    """A tensor with these axes in blocks, as it is without."""
    shape = list(value.shape[: value.ndim - len(axes)])
    for number, axis in enumerate(axes):
        shape[axis] = multiply(shape[axis], value.shape[-1 - number])
    turned = value.op("transpose", axes=tuple(_places_in_blocks(axes, value.ndim)))
    return turned.op("reshape", shape=tuple(shape))


def _block_axes(value: Value, axes: Sequence[int], shape: Shape) -> Value:
    """A tensor with these axes in blocks, which is of this shape then."""
    order = _places_in_blocks(axes, len(shape))
    split = value.op("reshape", shape=tuple(shape[place] for place in order))
    return split.op("transpose", axes=tuple(order.index(place) for place in range(len(shape))))


def _gradients(rank: int) -> tuple[Callable[..., Any], Callable[..., Any], Callable[..., Any]]:
    """Of the three operators: each is linear in two of x, w and y, and its cotangent stands for the third."""
    names = f"conv{rank}d", f"conv{rank}d_transpose", f"conv{rank}d_weight_gradient"

    def resolve_padding(
        x: Sequence[Dim], kernel: Sequence[int], attributes: dict[str, Any]
    ) -> tuple[Windows, dict[str, Any]]:
        """The windows over x, and the attributes with their padding as dims."""
        _, _, sizes = rules.split(tuple(x), rules.channels_last(attributes["layout"], rank))
        over = rules.windows(sizes, kernel, attributes["stride"], attributes["padding"], attributes["dilation"])
        return over, {**attributes, "padding": over.padding}

    def kernel_of(weight: Value, layout: str) -> tuple[int, ...]:
        return numbers(rules.split_weight(weight.shape, rules.channels_last(layout, rank))[2])

    def by_x(cotangent: Value, weight: Value, x: Sequence[Dim], attributes: dict[str, Any]) -> Value:
        over, numbers = resolve_padding(x, kernel_of(weight, attributes["layout"]), attributes)
        _, _, sizes = rules.split(tuple(x), rules.channels_last(attributes["layout"], rank))
        return cotangent.op(names[1], weight, output_padding=over.remainders(sizes), **numbers)

    def by_weight(x: Value, cotangent: Value, kernel: tuple[int, ...], attributes: dict[str, Any]) -> Value:
        _, numbers = resolve_padding(x.shape, kernel, attributes)
        return x.op(names[2], cotangent, kernel=kernel, **numbers)

    def convolution(x: Value, weight: Value, out: Value, dout: Value, **attributes: Any) -> tuple[Value, Value]:
        if rules.in_blocks(attributes["layout"], rank):
            plain = _unblock_axes(x, (1,)), _unblock_axes(weight, (0, 1)), out, _unblock_axes(dout, (1,))
            by_plain = convolution(*plain, **{**attributes, "layout": f"NC{'DHW'[-rank:]}"})
            return _block_axes(by_plain[0], (1,), x.shape), _block_axes(by_plain[1], (0, 1), weight.shape)
        kernel = kernel_of(weight, attributes["layout"])
        return by_x(dout, weight, x.shape, attributes), by_weight(x, dout, kernel, attributes)

    def transposed_gradients(
        x: Value, weight: Value, out: Value, dout: Value, output_padding: Numbers, **attributes: Any
    ) -> tuple[Value, Value]:
        kernel = kernel_of(weight, attributes["layout"])
        over, _ = rules.transposed_over(
            kernel, attributes["stride"], attributes["padding"], output_padding, attributes["dilation"]
        )
        numbers = {**attributes, "padding": over.padding}
        return dout.op(names[0], weight, **numbers), by_weight(dout, x, kernel, numbers)

    def weight_gradient(
        x: Value, y: Value, out: Value, dout: Value, kernel: Numbers, **attributes: Any
    ) -> tuple[Value, Value]:
        return by_x(y, dout, x.shape, attributes), x.op(names[0], dout, **attributes)

    return convolution, transposed_gradients, weight_gradient


# ---- the operators


def _samples(rank: int, *calls: Case) -> Any:
    """The calls, which are written for two spatial axes with the layouts NCHW and NHWC, for another number."""
    if rank == 2:
        return cases(*calls)
    spatial = "DHW"[-rank:]

    def attribute(name: str, value: Any) -> Any:
        if name == "layout":
            return value.replace("HW", spatial)
        return (value * 2)[:rank] if isinstance(value, tuple) else value

    def shape(dims: tuple[int, ...], places: slice) -> tuple[int, ...]:
        spatial = (dims[places] * 2)[:rank]
        return (*dims[: places.start], *spatial, *dims[places.stop :])

    found = []
    for call in calls:
        last = str(call.attributes.get("layout", "NCHW")).endswith("C")
        places = [slice(1, 3) if last else slice(2, 4), slice(0, 2) if last else slice(2, 4)]
        if "kernel" in call.attributes:
            places[1] = places[0]
        shapes = [shape(dims, place) for dims, place in zip(call.operands, places, strict=True)]
        found.append(case(*shapes, **{name: attribute(name, value) for name, value in call.attributes.items()}))
    return cases(*found)


_CALLS = (
    case((2, 3, 5, 4), (4, 3, 3, 2)),
    case((1, 4, 4, 5), (6, 2, 3, 3), stride=2, padding=1, groups=2),
    case((1, 2, 6, 6), (2, 1, 2, 3), padding="same", dilation=2, groups=2),
    case((1, 1, 5, 4), (1, 1, 2, 2), stride=(2, 3), padding="same"),
    case((2, 5, 4, 3), (3, 2, 3, 2), padding=((1, 0), (2, 1)), layout="NHWC"),
    case((1, 3, 3, 4), (2, 2, 2, 6), groups=2, padding=1, stride=2, layout="NHWC"),
    case((0, 3, 4, 4), (2, 3, 2, 2)),
    case((2, 0, 3, 3), (2, 0, 2, 2)),
    case((1, 2, 5, 4, 3), (2, 2, 3, 2, 3, 4), padding=1, stride=2, layout="NCHWc"),
)
_TRANSPOSED_CALLS = (
    case((2, 3, 3, 4), (3, 2, 3, 2)),
    case((1, 4, 3, 3), (4, 3, 3, 3), stride=2, padding=1, output_padding=1, groups=2),
    case((1, 2, 3, 2), (2, 1, 2, 3), stride=3, padding="same"),
    case((1, 3, 2, 2), (2, 3, 1, 2), stride=2, dilation=2, layout="NHWC"),
    case((1, 1, 4, 4), (1, 1, 2, 2), padding=((2, 0), (0, 2))),
    case((0, 2, 3, 3), (2, 1, 2, 2)),
)
_WEIGHT_CALLS = (
    case((2, 3, 5, 4), (2, 4, 3, 3), kernel=(3, 2)),
    case((1, 4, 4, 5), (1, 6, 2, 3), kernel=3, stride=2, padding=1, groups=2),
    case((1, 4, 3, 2), (1, 4, 3, 3), kernel=(3, 2), padding="same", dilation=2, layout="NHWC"),
    case((0, 3, 4, 4), (0, 2, 3, 3), kernel=2),
)
_CALLS_3D = _CALLS[:3] + _CALLS[4:5] + _CALLS[-1:]


def _quantized_convolution(x: Value, weight: Value, layout: str, **attributes: Any) -> Value | None:
    """The convolution of int8; None for channels in blocks."""
    return None if layout.endswith("c") else x.op("quantized_conv2d", weight, layout=layout, **attributes)


def _define(rank: int) -> None:
    layout_default = f"NC{'DHW'[-rank:]}"
    last_layout = f"N{'DHW'[-rank:]}C"
    small = f"np.ones({(1, 1) + (2,) * rank}, np.float32)"
    total = f"array({'[' * (rank + 2)}{2**rank}.{']' * (rank + 2)}, dtype=float32)"
    convolution_gradient, transposed_gradient, weight_gradient_gradient = _gradients(rank)

    def convolution(
        x: Tensor, weight: Tensor, stride: Numbers = 1, padding: Padding = 0, dilation: Numbers = 1, groups: int = 1,
        layout: str = layout_default,
    ) -> Tensor:  # fmt: skip
        wide = _wide(x.dtype)
        if layout.endswith("c"):
            made = _numpy_convolution_in_blocks(x, weight, stride, padding, dilation, wide)
            return made.astype(x.dtype)
        return numpy_convolution(x, weight, stride, padding, dilation, groups, layout, wide).astype(x.dtype)

    convolution.__doc__ = f"""Convolution over {rank} spatial {"axis" if rank == 1 else "axes"}, without turning the
    kernel round (a cross-correlation). x: (T, (n, c, *sizes)), weight: (T, (o, c / groups, *kernel)) ->
    (T, (n, o, *extents)), with extent = floor((size + low + high - dilation (kernel - 1) - 1) / stride) + 1.

    `stride` and `dilation` are one number or one for each axis; `padding` is "valid", "same" (extents are
    ceil(size / stride)), "same_lower", a number, or for each axis a number or a pair (low, high). With `groups` the
    channels are divided into groups that do not mix; as many groups as channels make it depthwise. In the layout
    {last_layout} x is (n, *sizes, c) and weight (*kernel, c / groups, o). In the layout {layout_default}c the channels
    are in blocks of b, those of the result of p, in one group: x is (n, c / b, *sizes, b), weight
    (o / p, c / b, *kernel, b, p). float16 and bfloat16 are summed in float32.

    >>> relay.conv{rank}d({small}, {small})
    {total}
    """
    register_op(
        name=f"conv{rank}d",
        sizes=frozenset({"padding"}),
        relation=Relation("T:number, T -> T", functools.partial(rules.convolution, rank)),
        layouts=functools.partial(rules.layouts, rank, "xwx", blocks=True),
        batching=Batching(rule=batched_convolution("O")),
        pattern=Pattern.OUTPUT_FUSABLE,
        compute=convolution_stage,
        gradient=convolution_gradient,
        algebra=Algebra(linear=(0, 1), columns=_columns),
        numerics=Numerics(
            quantized=_quantized_convolution if rank == 2 else None,
            work=lambda shapes, result: _work(result, shapes[1]),
        ),
        sampler=_samples(rank, *(_CALLS_3D if rank == 3 else _CALLS)),
    )(convolution)

    def transposed_convolution(
        x: Tensor, weight: Tensor, stride: Numbers = 1, padding: Padding = 0, output_padding: Numbers = 0,
        dilation: Numbers = 1, groups: int = 1, layout: str = layout_default,
    ) -> Tensor:  # fmt: skip
        return _numpy_transposed(x, weight, stride, padding, output_padding, dilation, groups, layout)

    axes = "axis" if rank == 1 else "axes"
    transposed_convolution.__doc__ = f"""Transposed convolution over {rank} spatial {axes}: the linear
    map that carries the cotangent of `conv{rank}d` back to its input. x: (T, (n, o, *extents)),
    weight: (T, (o, c / groups, *kernel)) -> (T, (n, c, *sizes)), with
    size = (extent - 1) stride + dilation (kernel - 1) + 1 - low - high + output_padding.

    Attributes are those of `conv{rank}d`; with padding="same" the sizes are the extents times the stride, and
    `output_padding`, less than the stride, is not given. In the layout {last_layout} weight is
    (*kernel, c / groups, o).

    >>> relay.conv{rank}d_transpose({small}, {small}, stride=2).shape
    {(1, 1) + (4,) * rank}
    """
    register_op(
        name=f"conv{rank}d_transpose",
        sizes=frozenset({"padding", "output_padding"}),
        relation=Relation("T:number, T -> T", functools.partial(rules.transposed_convolution, rank)),
        layouts=functools.partial(rules.layouts, rank, "xwx"),
        batching=Batching(rule=batched_convolution("I")),
        pattern=Pattern.OUTPUT_FUSABLE,
        compute=_transposed_convolution,
        gradient=transposed_gradient,
        algebra=Algebra(linear=(0, 1)),
        numerics=Numerics(work=lambda shapes, result: _work(*shapes)),
        sampler=_samples(rank, *_TRANSPOSED_CALLS[: 3 if rank == 3 else None]),
    )(transposed_convolution)

    def weight_gradient(
        x: Tensor, y: Tensor, kernel: Numbers, stride: Numbers = 1, padding: Padding = 0, dilation: Numbers = 1,
        groups: int = 1, layout: str = layout_default,
    ) -> Tensor:  # fmt: skip
        return _numpy_weight_gradient(x, y, kernel, stride, padding, dilation, groups, layout)

    weight_gradient.__doc__ = f"""The cotangent of the weight of `conv{rank}d`, whose input is x and whose result has
    the cotangent y. x: (T, (n, c, *sizes)), y: (T, (n, o, *extents)) -> (T, (o, c / groups, *kernel)).

    >>> relay.conv{rank}d_weight_gradient({small}, {small}, kernel=1)
    {total}
    """
    register_op(
        name=f"conv{rank}d_weight_gradient",
        sizes=frozenset({"padding"}),
        relation=Relation("T:number, T -> T", functools.partial(rules.weight_gradient, rank)),
        layouts=functools.partial(rules.layouts, rank, "xxw"),
        batching=Batching(rule=batched_weight_gradient),
        pattern=Pattern.OUTPUT_FUSABLE,
        compute=_weight_gradient,
        gradient=weight_gradient_gradient,
        algebra=Algebra(linear=(0, 1)),
        numerics=Numerics(work=lambda shapes, result: _work(shapes[1], result)),
        sampler=_samples(rank, *_WEIGHT_CALLS[: 2 if rank == 3 else None]),
    )(weight_gradient)


for _rank in (1, 2, 3):
    _define(_rank)
