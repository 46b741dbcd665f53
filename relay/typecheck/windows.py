"""Shape rules of windowed operators: convolution, its two adjoints, and sliding windows.

Along each spatial axis a window of k elements, `dilation` apart, starts every `stride` elements of the padded axis:

    reach  = dilation (k - 1) + 1
    extent = floor((size + low + high - reach) / stride) + 1
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TypeAlias

import attrs

from relay.errors import ShapeError
from relay.ir.dims import add, floor_divide, maximum, modulo, multiply
from relay.ir.types import Dim, Shape, show_shape
from relay.operator.axes import carries
from relay.typecheck import axes as names
from relay.typecheck.dims import constant_dim, equal, is_dim, needs_at_least, normalize_axis, quotient, resolve

Numbers: TypeAlias = int | tuple[int, ...]
Padding: TypeAlias = int | str | tuple[Dim | tuple[Dim, Dim], ...]


def per_axis(value: object, rank: int, name: str, smallest: int) -> tuple[int, ...]:
    """An attribute for each of `rank` axes, given as one number or as one for each. Raises ShapeError."""
    numbers = (value,) * rank if isinstance(value, int) else value
    if not isinstance(numbers, tuple | list) or len(numbers) != rank:
        raise ShapeError(f"{name} must be one integer or {rank}, one for each axis, found {value!r}")
    for number in numbers:
        if isinstance(number, bool) or not isinstance(number, int) or number < smallest:
            raise ShapeError(f"{name} must hold integers that are at least {smallest}, found {value!r}")
    return tuple(numbers)


@attrs.frozen
class Windows:
    """Windows along some axes: one number for each axis, and for the padding (low, high), which "same" computes from
    the sizes, so that it is symbolic where they are."""

    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    dilation: tuple[int, ...]
    padding: tuple[tuple[Dim, Dim], ...]

    @property
    def reach(self) -> tuple[int, ...]:
        return tuple(d * (k - 1) + 1 for k, d in zip(self.kernel, self.dilation, strict=True))

    @property
    def widths(self) -> tuple[tuple[int, int], ...]:
        """The padding in numbers. Raises Undetermined."""
        return tuple((constant_dim(low), constant_dim(high)) for low, high in self.padding)

    def extents(self, sizes: Sequence[Dim]) -> Shape:
        """The number of windows along each axis. Raises ShapeError for one that does not fit, Undetermined."""
        return tuple(self._extent(axis, size, sizes) for axis, size in enumerate(sizes))

    def _extent(self, axis: int, size: Dim, sizes: Sequence[Dim]) -> Dim:
        low, high = self.padding[axis]
        size = resolve(size)
        reach, stride = self.reach[axis], self.stride[axis]
        if stride == 1 and low + high == reach - 1:
            return size
        if isinstance(size, int) and isinstance(low, int) and isinstance(high, int):
            number = size
        elif needs_at_least(add(size, add(low, high)), reach):
            return add(floor_divide(add(size, add(low, high) - reach), stride), 1)
        else:
            number, low, high = constant_dim(size), constant_dim(low), constant_dim(high)
        room = number + low + high - reach
        if room >= 0:
            return room // stride + 1
        if number == 0:
            return 0
        raise ShapeError(
            f"a window of {_window_text(self.kernel[axis], self.dilation[axis])} does not fit into spatial "
            f"axis {axis} of"
            f" extent {number + low + high}{' with its padding' if low or high else ''}; the spatial shape is"
            f" {show_shape(tuple(sizes))}"
        )

    def remainders(self, sizes: Sequence[Dim]) -> Shape:
        """The elements at the end of each padded axis that no window reaches, where one fits."""

        def remainder(size: Dim, stride: int, reach: int, low: Dim, high: Dim) -> Dim:
            room = add(resolve(size), add(low, high) - reach)
            return 0 if stride == 1 or (isinstance(room, int) and room < 0) else modulo(room, stride)

        return tuple(
            remainder(size, stride, reach, low, high)
            for size, stride, reach, (low, high) in zip(sizes, self.stride, self.reach, self.padding, strict=True)
        )


def _window_text(kernel: int, dilation: int) -> str:
    return f"{kernel}" if dilation == 1 else f"{kernel} elements, {dilation} apart,"


def windows(sizes: Sequence[Dim], kernel: Sequence[Dim], stride: object, padding: object, dilation: object) -> Windows:
    """The windows that attributes describe.

    padding: "valid" (none), "same" (ceil(size / stride) windows; an odd element is added at the end), "same_lower" (at
    the start), a number for both ends of all axes, or for each axis a number or a pair (low, high).
    Raises ShapeError for attributes that describe none, Undetermined.
    """
    rank = len(sizes)
    numbers = tuple(constant_dim(k) for k in kernel)
    if min(numbers, default=1) < 1:
        raise ShapeError(f"a window needs at least one element along each axis, found {show_shape(numbers)}")
    strides = per_axis(stride, rank, "stride", 1)
    dilations = per_axis(dilation, rank, "dilation", 1)
    unpadded = Windows(numbers, strides, dilations, ((0, 0),) * rank)
    if isinstance(padding, str):
        return attrs.evolve(unpadded, padding=_named_padding(padding, sizes, unpadded))
    items = tuple(padding) if isinstance(padding, tuple | list) else (padding,) * rank
    if len(items) != rank:
        raise ShapeError(f"padding must be one integer, or for each of {rank} axes an integer or a pair: {padding!r}")
    pairs = [sizes_of(item, 2, "the padding of an axis") for item in items]
    return attrs.evolve(unpadded, padding=tuple((resolve(low), resolve(high)) for low, high in pairs))


def _named_padding(name: str, sizes: Sequence[Dim], windows: Windows) -> tuple[tuple[Dim, Dim], ...]:
    if name == "valid":
        return windows.padding
    if name not in ("same", "same_lower"):
        raise ShapeError(f'padding must be "same", "same_lower", "valid" or integers, found {name!r}')
    pairs: list[tuple[Dim, Dim]] = []
    for size, stride, reach in zip(sizes, windows.stride, windows.reach, strict=True):
        total = _padding_for_all(resolve(size), stride, reach)
        less, more = total // 2, total - total // 2
        pairs.append((less, more) if name == "same" else (more, less))
    return tuple(pairs)


def _padding_for_all(size: Dim, stride: int, reach: int) -> Dim:
    """The padding that the last window needs beyond an axis of which every `stride`-th element starts one. `size`: a
    dim, or an expression of one in a compute function."""
    if stride == 1 or reach == 1:
        return reach - 1
    missing = reach - 1 - (size - 1) % stride
    if reach >= stride:  # it is not negative
        return missing
    return maximum(missing, 0) if is_dim(missing) else missing * ((missing + stride) // stride)


# ---- convolutions: x (n, c, *sizes), weight (o, c / groups, *kernel), y (n, o, *extents); or the channels last


def channels_last(layout: str, rank: int) -> bool:
    """True if the layout is NHWC (of two spatial axes) rather than NCHW. Raises ShapeError for others."""
    spatial = "DHW"[-rank:]
    if re.fullmatch(rf"NC{spatial}\d*c", str(layout)):
        raise ShapeError(
            f"the layout {layout!r} is none of this operator",
            help=f"convolutions and pooling have channels in blocks, whose sizes the shapes say: layout='NC{spatial}c'",
        )
    if layout not in (f"NC{spatial}", f"N{spatial}C"):
        raise ShapeError(f"layout must be 'NC{spatial}' or 'N{spatial}C', found {layout!r}")
    return layout[-1] == "C"


def in_blocks(layout: object, rank: int) -> bool:
    """True if the layout is NCHWc: the channels in blocks, within which they are the last axis."""
    return layout == f"NC{'DHW'[-rank:]}c"


def layouts(
    rank: int, words: str, *, layout: str, groups: int = 1, blocks: bool = False, **attributes: object
) -> tuple[str, ...]:
    """The layouts of operands and result: `words` has x for activations and w for weights, in the order "xwx".
    `blocks`: whether there is one with channels in blocks. Raises ShapeError."""
    spatial = "DHW"[-rank:]
    if blocks and in_blocks(layout, rank):
        check_ungrouped(groups, layout)
        return tuple(layout if word == "x" else f"OI{spatial}io" for word in words)
    last = channels_last(layout, rank)
    weight = f"{spatial}IO" if last else f"OI{spatial}"
    return tuple(layout if word == "x" else weight for word in words)


def check_ungrouped(groups: object, layout: str) -> None:
    """Raises ShapeError for groups of channels, which blocks would cut."""
    if groups != 1:
        raise ShapeError(f"the layout {layout!r} is for convolutions in one group, found groups={groups!r}")


def split(shape: Shape, last: bool) -> tuple[Dim, Dim, Shape]:
    """Batch, channels and spatial extents of an activation."""
    return (shape[0], shape[-1], shape[1:-1]) if last else (shape[0], shape[1], shape[2:])


def activation_shape(batch: Dim, channels: Dim, sizes: Sequence[Dim], last: bool) -> Shape:
    """An activation's shape."""
    return (batch, *sizes, channels) if last else (batch, channels, *sizes)


def split_weight(shape: Shape, last: bool) -> tuple[Dim, Dim, Shape]:
    """Output channels, input channels of a group, and kernel extents of a weight: OIHW, or HWIO."""
    return (shape[-1], shape[-2], shape[:-2]) if last else (shape[0], shape[1], shape[2:])


def joined_weight(out: Dim, inner: Dim, kernel: Sequence[Dim], last: bool) -> Shape:
    """A weight's shape."""
    return (*kernel, inner, out) if last else (out, inner, *kernel)


def check_activation(name: str, rank: int, x: Shape, layout: str) -> None:
    """Raises ShapeError unless x has `rank` spatial axes, batch and channels, which may be in blocks."""
    if in_blocks(layout, rank):
        if len(x) != rank + 3:
            raise ShapeError(f"{name} in blocks of channels needs x of rank {rank + 3}, found {show_shape(x)}")
    else:
        _ranks(name, rank, x=x)


def _ranks(name: str, rank: int, **shapes: Shape) -> None:
    for what, shape in shapes.items():
        if len(shape) != rank + 2:
            raise ShapeError(f"{name} needs {what} of rank {rank + 2}, found the shape {show_shape(shape)}")


def check_rank(name: str, rank: int, x: Shape) -> None:
    """Raises ShapeError unless x has `rank` spatial axes, batch and channels."""
    _ranks(name, rank, x=x)


def check_nonempty(shape: Shape, axis: int, name: str) -> None:
    """Raises ShapeError for an axis of extent 0, Undetermined."""
    if not needs_at_least(shape[axis], 1):
        raise ShapeError(f"{name} needs elements along axis {axis}, found the shape {show_shape(shape)}")


def _in_groups(name: str, groups: object, channels: Dim, what: str) -> Dim:
    """The channels of a group. Raises ShapeError for groups that do not divide them."""
    if isinstance(groups, bool) or not isinstance(groups, int) or groups < 1:
        raise ShapeError(f"groups must be a positive integer, found {groups!r}")
    share = quotient(resolve(channels), groups)
    if share is None:
        raise ShapeError(f"{name} in {groups} groups needs {what} in a multiple of that, found {resolve(channels)}")
    return share


def _check_channels(name: str, found: Dim, inner: Dim, groups: int, shapes: tuple[Shape, Shape]) -> None:
    wanted = multiply(resolve(inner), groups)
    if not equal(found, wanted):
        raise ShapeError(
            f"{name} of the shapes {show_shape(shapes[0])} and {show_shape(shapes[1])}: the input has {resolve(found)}"
            f" channels, the weight is for {resolve(wanted)}"
        )


def convolution(
    rank: int, x: Shape, weight: Shape, *, stride: object, padding: object, dilation: object, groups: int, layout: str
) -> Shape:
    """x (n, c, *sizes), weight (o, c / groups, *kernel) -> (n, o, *extents)"""
    name = f"conv{rank}d"
    if in_blocks(layout, rank):
        return _convolution_in_blocks(rank, x, weight, stride, padding, dilation, groups)
    last = channels_last(layout, rank)
    _ranks(name, rank, x=x, weight=weight)
    batch, channels, sizes = split(x, last)
    out, inner, kernel = split_weight(weight, last)
    _in_groups(name, groups, out, "output channels")
    _check_channels(name, channels, inner, groups, (x, weight))
    return activation_shape(batch, out, windows(sizes, kernel, stride, padding, dilation).extents(sizes), last)


def _convolution_in_blocks(
    rank: int, x: Shape, weight: Shape, stride: object, padding: object, dilation: object, groups: int
) -> Shape:
    """x (n, c / b, *sizes, b), weight (o / p, c / b, *kernel, b, p) -> (n, o / p, *extents, p)"""
    name, layout = f"conv{rank}d in blocks of channels", f"NC{'DHW'[-rank:]}"
    check_ungrouped(groups, f"{layout}c")
    if len(x) != rank + 3 or len(weight) != rank + 4:
        raise ShapeError(
            f"{name} needs x of rank {rank + 3} and weight of rank {rank + 4}, found the shapes {show_shape(x)} and"
            f" {show_shape(weight)}"
        )
    if not equal(x[1], weight[1]) or not equal(x[-1], weight[-2]):
        raise ShapeError(
            f"{name} of the shapes {show_shape(x)} and {show_shape(weight)}: the input has {resolve(x[1])} blocks of"
            f" {resolve(x[-1])} channels, the weight is for {resolve(weight[1])} of {resolve(weight[-2])}"
        )
    sizes = x[2:-1]
    return (x[0], weight[0], *windows(sizes, weight[2:-2], stride, padding, dilation).extents(sizes), weight[-1])


def transposed_over(
    kernel: Sequence[Dim], stride: object, padding: object, output_padding: object, dilation: object
) -> tuple[Windows, Shape]:
    """The windows of a transposed convolution over its result, and the elements that no window reaches.

    With padding="same" the result's extents are the input's times the stride. Raises ShapeError, Undetermined.
    """
    rank = len(kernel)
    over = windows((0,) * rank, kernel, stride, 0 if isinstance(padding, str) else padding, dilation)
    extra = sizes_of(output_padding, rank, "output_padding")
    if isinstance(padding, str) and padding != "valid":
        if extra != (0,) * rank:
            raise ShapeError(f"padding {padding!r} leaves no choice of output_padding, found {output_padding!r}")
        over = attrs.evolve(over, padding=_named_padding(padding, over.stride, over))
        extra = tuple(max(s - r, 0) for s, r in zip(over.stride, over.reach, strict=True))
    for stride_, more in zip(over.stride, extra, strict=True):
        if isinstance(more, int) and more >= stride_:
            raise ShapeError(f"output_padding must be less than the stride, found {extra} and {over.stride}")
    return over, extra


def transposed_sizes(extents: Sequence[Dim], over: Windows, extra: Shape) -> Shape:
    """The spatial extents of a transposed convolution. Raises ShapeError, Undetermined.

    size = (extent - 1) stride + reach - low - high + output_padding
    """
    result: list[Dim] = []
    for axis, extent in enumerate(map(resolve, extents)):
        (low, high), stride = over.padding[axis], over.stride[axis]
        added = add(over.reach[axis] - stride - add(low, high), extra[axis])
        size = 0 if extent == 0 else add(multiply(extent, stride), added)
        if size != extent and not needs_at_least(size, 0):
            raise ShapeError(f"the padding {(low, high)} of spatial axis {axis} removes more than there is")
        result.append(size)
    return tuple(result)


def transposed_convolution(
    rank: int,
    y: Shape,
    weight: Shape,
    *,
    stride: object,
    padding: object,
    output_padding: object,
    dilation: object,
    groups: int,
    layout: str,
) -> Shape:
    """y (n, o, *extents), weight (o, c / groups, *kernel) -> (n, c, *sizes)"""
    name = f"conv{rank}d_transpose"
    last = channels_last(layout, rank)
    _ranks(name, rank, x=y, weight=weight)
    batch, channels, sizes = split(y, last)
    out, inner, kernel = split_weight(weight, last)
    _in_groups(name, groups, out, "input channels")
    _check_channels(name, channels, out, 1, (y, weight))
    over, extra = transposed_over(kernel, stride, padding, output_padding, dilation)
    extents = transposed_sizes(sizes, over, extra)
    return activation_shape(batch, multiply(resolve(inner), groups), extents, last)


def weight_gradient(
    rank: int,
    x: Shape,
    y: Shape,
    *,
    kernel: object,
    stride: object,
    padding: object,
    dilation: object,
    groups: int,
    layout: str,
) -> Shape:
    """x (n, c, *sizes), y (n, o, *extents) -> (o, c / groups, *kernel)"""
    name = f"conv{rank}d_weight_gradient"
    last = channels_last(layout, rank)
    _ranks(name, rank, x=x, y=y)
    batch, channels, sizes = split(x, last)
    other, out, extents = split(y, last)
    _in_groups(name, groups, out, "output channels")
    share = _in_groups(name, groups, channels, "input channels")
    extent = per_axis(kernel, rank, "kernel", 1)
    wanted = windows(sizes, extent, stride, padding, dilation).extents(sizes)
    if not (equal(batch, other) and all(equal(a, b) for a, b in zip(wanted, extents, strict=True))):
        expected = show_shape(activation_shape(batch, out, wanted, last))
        raise ShapeError(f"{name} of x of shape {show_shape(x)} needs y of shape {expected}, found {show_shape(y)}")
    return joined_weight(out, share, extent, last)


# ---- sliding windows


def sliding_axes(axes: object, rank: int) -> tuple[int, ...]:
    """Distinct axes, counted from 0, in the order given."""
    given = (axes,) if isinstance(axes, int) else axes
    if not isinstance(given, tuple | list):
        raise ShapeError(f"axes must be integers, found {axes!r}")
    places = tuple(normalize_axis(axis, rank) for axis in given)
    if len(set(places)) != len(places):
        raise ShapeError(f"the axes {axes!r} of a tensor of rank {rank} repeat")
    return places


def sizes_of(value: object, count: int, name: str = "sizes") -> Shape:
    """An attribute that is a size for each of `count` axes, which may be symbolic. Raises ShapeError."""
    sizes = tuple(value) if isinstance(value, tuple | list) else (value,) * count
    if len(sizes) != count or any(isinstance(s, bool | float | str) or (isinstance(s, int) and s < 0) for s in sizes):
        raise ShapeError(f"{name} must be one size or {count}, one for each axis, found {value!r}")
    return sizes  # type: ignore[return-value]  # expressions of sizes in compute functions


@carries(names.window_names)
def sliding_shape(
    shape: Shape, *, kernel: object, axes: object, stride: object, padding: object, dilation: object, **others: object
) -> Shape:
    """s -> (s with the number of windows along the axes, *kernel)"""
    places = sliding_axes(axes, len(shape))
    extent = per_axis(kernel, len(places), "kernel", 1)
    sizes = [shape[axis] for axis in places]
    extents = windows(sizes, extent, stride, padding, dilation).extents(sizes)
    result = list(shape)
    for axis, found in zip(places, extents, strict=True):
        result[axis] = found
    return (*result, *extent)


def overlap_add(
    shape: Shape, *, sizes: object, axes: object, stride: object, padding: object, dilation: object
) -> Shape:
    """(s with the number of windows along the axes, *kernel) -> s with `sizes` along the axes"""
    count = 1 if isinstance(axes, int) else len(axes) if isinstance(axes, tuple | list) else 0
    if len(shape) < 2 * count:
        raise ShapeError(f"overlap_add along {count} axes needs as many axes of windows, found {show_shape(shape)}")
    outer, kernel = shape[: len(shape) - count], shape[len(shape) - count :]
    places = sliding_axes(axes, len(outer))
    extents = sizes_of(sizes, count)
    wanted = windows(extents, kernel, stride, padding, dilation).extents(extents)
    if not all(equal(outer[axis], found) for axis, found in zip(places, wanted, strict=True)):
        raise ShapeError(
            f"overlap_add to {extents} needs {show_shape(wanted)} windows along the axes {places}, found the shape"
            f" {show_shape(shape)}"
        )
    result = list(outer)
    for axis, size in zip(places, extents, strict=True):
        result[axis] = size
    return tuple(result)
