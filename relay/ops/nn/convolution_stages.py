"""TIR of convolutions, whatever the layout: activations are read by (batch, channel, *place), weights by (output
channel, input channel, *place)."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from relay.ir.types import Shape
from relay.ops.nn import polyphase
from relay.ops.notation import Element, Stage, dims, result_dims
from relay.ops.tir import scalar, stages
from relay.ops.tir.tvm_modules import te, tirx
from relay.typecheck import windows as rules
from relay.typecheck.dims import numbers
from relay.typecheck.windows import Numbers, Padding, Windows

LARGE_GROUP = 8
"""Output channels of a group from which each group is a product of its own."""


def _activation_reader(x: Stage, last: bool) -> Callable[..., Element]:
    """Read an activation by (batch, channel, *place)."""
    return (lambda n, c, *place: x(n, *place, c)) if last else x


def _weight_first(weight: Stage, last: bool) -> Callable[..., Element]:
    """Read a weight by (output channel, input channel, *place)."""
    return (lambda o, i, *place: weight(*place, i, o)) if last else weight


def _activation_index(index: Sequence[Element], last: bool) -> tuple[Element, Element, Sequence[Element]]:
    return (index[0], index[-1], index[1:-1]) if last else (index[0], index[1], index[2:])


def _spatial_numbers(numbers: Sequence[Any], last: bool) -> tuple[Any, ...]:
    """Numbers for the spatial axes among zeros for batch and channels."""
    return (0, *numbers, 0) if last else (0, 0, *numbers)


def _pad_spatial(x: Stage, over: Windows, last: bool) -> Stage:
    low, high = zip(*over.padding, strict=True)
    return stages.pad_axes(x, _spatial_numbers(low, last), _spatial_numbers(high, last))


def _places(outer: Sequence[Element], inner: Sequence[Element], over: Windows) -> list[Element]:
    """stride o + dilation k along each axis."""
    return [o * s + k * d for o, k, s, d in zip(outer, inner, over.stride, over.dilation, strict=True)]


def convolution_stage(
    x: Stage, weight: Stage, stride: Numbers, padding: Padding, dilation: Numbers, groups: int, layout: str,
    dtype: str | None = None,
) -> Stage:  # fmt: skip
    if layout.endswith("c"):
        return _in_blocks(x, weight, stride, padding, dilation, dtype or str(x.dtype))
    rank = len(dims(x)) - 2
    last = rules.channels_last(layout, rank)
    out, inner, kernel = rules.split_weight(dims(weight), last)
    batch, _, sizes = rules.split(dims(x), last)
    over = rules.windows(sizes, kernel, stride, padding, dilation)
    shape = result_dims(lambda: rules.activation_shape(batch, out, over.extents(sizes), last))
    source, filters = _activation_reader(_pad_spatial(x, over, last), last), _weight_first(weight, last)
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


def _in_blocks(x: Stage, weight: Stage, stride: Numbers, padding: Padding, dilation: Numbers, dtype: str) -> Stage:
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
    return stages.contraction(shape, (blocks, *kernel, inner), dtype, terms)


def _insert_zeros(y: Stage, over: Windows, sizes: Sequence[Any], last: bool) -> Stage:
    """y with stride - 1 zeros between its places, such that the result reads it at i + dilation (kernel - 1 - k)."""
    batch, channels, extents = rules.split(dims(y), last)
    offsets = [reach - 1 - low for reach, (low, _) in zip(over.reach, over.padding, strict=True)]
    room = [size + reach - 1 for size, reach in zip(sizes, over.reach, strict=True)]
    source = _activation_reader(y, last)

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


def transposed_convolution_stage(
    y: Stage, weight: Stage, stride: Numbers, padding: Padding, output_padding: Numbers, dilation: Numbers, groups: int,
    layout: str, dtype: str | None = None,
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
    dtype = dtype or str(y.dtype)
    if 0 in dims(y) or 0 in shape or 0 in dims(weight):
        return stages.full(shape, 0, dtype)
    if groups == 1 and polyphase.has_phases(sizes, extents, over):
        channels = batch, out, inner
        return polyphase.in_phases(
            _activation_reader(y, last),
            _weight_first(weight, last),
            channels,
            numbers(extents),
            numbers(sizes),
            over,
            dtype,
            last,
        )
    share = out if groups == 1 else out // groups
    source, filters = _activation_reader(_insert_zeros(y, over, sizes, last), last), _weight_first(weight, last)

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


def weight_gradient_stage(
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
    source, cotangent = _activation_reader(_pad_spatial(x, over, last), last), _activation_reader(y, last)
    share = out if groups == 1 else out // groups

    def terms(index: Sequence[Element], reduced: Sequence[Element]) -> tuple[Element, Element]:
        o, i, k = (index[-1], index[-2], index[:-2]) if last else (index[0], index[1], index[2:])
        n, *place = reduced
        channel = i if groups == 1 else tirx.floordiv(o, share) * inner + i
        return source(n, channel, *_places(place, k, over)), cotangent(n, o, *place)

    return stages.contraction(shape, (batch, *places), str(x.dtype), terms)
