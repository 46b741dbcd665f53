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
from collections.abc import Callable, Sequence
from typing import Any

from relay.ir.dims import Dim, multiply, product
from relay.ir.types import Shape
from relay.operator import Columns
from relay.ops.nn.batched_convolutions import batched_convolution, batched_weight_gradient
from relay.ops.nn.convolution_references import (
    numpy_convolution,
    numpy_convolution_in_blocks,
    numpy_transposed_convolution,
    numpy_weight_gradient,
    sum_dtype,
)
from relay.ops.nn.convolution_stages import convolution_stage, transposed_convolution_stage, weight_gradient_stage
from relay.ops.notation import (
    Algebra,
    Batching,
    Numerics,
    Pattern,
    Relation,
    Tensor,
    Value,
    register_op,
)
from relay.ops.samples import Case, case, cases
from relay.typecheck import windows as rules
from relay.typecheck.dims import numbers
from relay.typecheck.windows import Numbers, Padding, Windows


def _columns(x: Shape, weight: Shape, groups: int = 1, layout: str = "", **attributes: object) -> Columns | None:
    """The output channels, and the input channels as rows."""
    if layout.endswith("c"):  # two axes
        return None
    axis, outputs, inputs = (len(x) - 1, len(weight) - 1, len(weight) - 2) if layout.endswith("C") else (1, 0, 1)
    return Columns(outputs, axis, joins=groups == 1, rows=(axis, inputs) if groups == 1 else None)


def convolution_work(activation: Shape, weight: Shape) -> Dim:
    """The operations of each of the three: a multiplication and an addition for each element of the activation with
    the output channels, each place of the kernel and each input channel. Channels are the second axis of an activation
    and the first of a weight, or the last of both; or both, in blocks."""
    first = len(weight) > len(activation) or weight[0] == activation[1]
    last = len(weight) > len(activation) or not first
    return product((2, *activation, *weight[int(first) : len(weight) - int(last)]))


# ---- gradients


def _places_in_blocks(axes: Sequence[int], rank: int) -> list[int]:
    """The positions of the axes of a tensor in blocks once each block comes after its axis. The blocks of the first
    axis are last."""
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
    """The gradients of the three operators: each is linear in two of x, w and y, and its cotangent takes the place
    of the third."""
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


def _quantized_transposed_convolution(x: Value, weight: Value, **attributes: Any) -> Value:
    """The transposed convolution of int8."""
    return x.op("quantized_conv2d_transpose", weight, **attributes)


def _example_operand(rank: int) -> str:
    """The operand of examples."""
    return f"np.ones({(1, 1) + (2,) * rank}, np.float32)"


def _total(rank: int) -> str:
    """The sum of its elements, as examples print it."""
    return f"Array({'[' * (rank + 2)}{2**rank}.{']' * (rank + 2)}, dtype=float32)"


def _attributes(rank: int) -> str:
    """The part of a convolution's documentation about its attributes, which is whole in that of `conv2d`."""
    if rank != 2:
        axes = "DHW"[-rank:]
        return f"Attributes are those of `conv2d`, with the layouts NC{axes}, N{axes}C and NC{axes}c."
    return """`stride` and `dilation` are one number or one for each axis; `padding` is "valid", "same" (extents are
    ceil(size / stride)), "same_lower", a number, or for each axis a number or a pair (low, high). With `groups` the
    channels are divided into groups that do not mix; as many groups as channels make it depthwise. In the layout
    NHWC x is (n, *sizes, c) and weight (*kernel, c / groups, o). In the layout NCHWc the channels are in blocks of b,
    those of the result of p, in one group: x is (n, c / b, *sizes, b), weight (o / p, c / b, *kernel, b, p).
    float16 and bfloat16 are summed in float32."""


def _define_convolution(rank: int, gradient: Callable[..., Any]) -> None:
    layout_default = f"NC{'DHW'[-rank:]}"

    def convolution(
        x: Tensor, weight: Tensor, stride: Numbers = 1, padding: Padding = 0, dilation: Numbers = 1, groups: int = 1,
        layout: str = layout_default,
    ) -> Tensor:  # fmt: skip
        wide = sum_dtype(x.dtype)
        if layout.endswith("c"):
            made = numpy_convolution_in_blocks(x, weight, stride, padding, dilation, wide)
            return made.astype(x.dtype)
        return numpy_convolution(x, weight, stride, padding, dilation, groups, layout, wide).astype(x.dtype)

    convolution.__doc__ = f"""Convolution over {rank} spatial {"axis" if rank == 1 else "axes"}, without turning the
    kernel round (a cross-correlation). x: (T, (n, c, *sizes)), weight: (T, (o, c / groups, *kernel)) ->
    (T, (n, o, *extents)), with extent = floor((size + low + high - dilation (kernel - 1) - 1) / stride) + 1.

    {_attributes(rank)}

    >>> relay.conv{rank}d({_example_operand(rank)}, {_example_operand(rank)})
    {_total(rank)}
    """
    register_op(
        name=f"conv{rank}d",
        sizes=frozenset({"padding"}),
        relation=Relation("T:number, T -> T", functools.partial(rules.convolution, rank)),
        layouts=functools.partial(rules.layouts, rank, "xwx", blocks=True),
        batching=Batching(rule=batched_convolution("O")),
        pattern=Pattern.OUTPUT_FUSABLE,
        compute=convolution_stage,
        gradient=gradient,
        algebra=Algebra(linear=(0, 1), columns=_columns),
        numerics=Numerics(
            quantized=_quantized_convolution if rank == 2 else None,
            work=lambda shapes, result: convolution_work(result, shapes[1]),
        ),
        sampler=_samples(rank, *(_CALLS_3D if rank == 3 else _CALLS)),
    )(convolution)


def _define_transposed_convolution(rank: int, gradient: Callable[..., Any]) -> None:
    layout_default = f"NC{'DHW'[-rank:]}"

    def transposed_convolution(
        x: Tensor, weight: Tensor, stride: Numbers = 1, padding: Padding = 0, output_padding: Numbers = 0,
        dilation: Numbers = 1, groups: int = 1, layout: str = layout_default,
    ) -> Tensor:  # fmt: skip
        return numpy_transposed_convolution(x, weight, stride, padding, output_padding, dilation, groups, layout)

    axes = "axis" if rank == 1 else "axes"
    transposed_convolution.__doc__ = f"""Transposed convolution over {rank} spatial {axes}: the linear
    map that carries the cotangent of `conv{rank}d` back to its input. x: (T, (n, o, *extents)),
    weight: (T, (o, c / groups, *kernel)) -> (T, (n, c, *sizes)), with
    size = (extent - 1) stride + dilation (kernel - 1) + 1 - low - high + output_padding.

    Attributes are those of `conv{rank}d`; with padding="same" the sizes are the extents times the stride, and
    `output_padding`, less than the stride, is not given. In the layout N{"DHW"[-rank:]}C weight is
    (*kernel, c / groups, o).

    >>> relay.conv{rank}d_transpose({_example_operand(rank)}, {_example_operand(rank)}, stride=2).shape
    {(1, 1) + (4,) * rank}
    """
    register_op(
        name=f"conv{rank}d_transpose",
        sizes=frozenset({"padding", "output_padding"}),
        relation=Relation("T:number, T -> T", functools.partial(rules.transposed_convolution, rank)),
        layouts=functools.partial(rules.layouts, rank, "xwx"),
        batching=Batching(rule=batched_convolution("I")),
        pattern=Pattern.OUTPUT_FUSABLE,
        compute=transposed_convolution_stage,
        gradient=gradient,
        algebra=Algebra(linear=(0, 1)),
        numerics=Numerics(
            quantized=_quantized_transposed_convolution if rank == 2 else None,
            work=lambda shapes, result: convolution_work(*shapes),
        ),
        sampler=_samples(rank, *_TRANSPOSED_CALLS[: 3 if rank == 3 else None]),
    )(transposed_convolution)


def _define_weight_gradient(rank: int, gradient: Callable[..., Any]) -> None:
    layout_default = f"NC{'DHW'[-rank:]}"

    def weight_gradient(
        x: Tensor, y: Tensor, kernel: Numbers, stride: Numbers = 1, padding: Padding = 0, dilation: Numbers = 1,
        groups: int = 1, layout: str = layout_default,
    ) -> Tensor:  # fmt: skip
        return numpy_weight_gradient(x, y, kernel, stride, padding, dilation, groups, layout)

    weight_gradient.__doc__ = f"""The cotangent of the weight of `conv{rank}d`, whose input is x and whose result has
    the cotangent y. x: (T, (n, c, *sizes)), y: (T, (n, o, *extents)) -> (T, (o, c / groups, *kernel)).

    >>> relay.conv{rank}d_weight_gradient({_example_operand(rank)}, {_example_operand(rank)}, kernel=1)
    {_total(rank)}
    """
    register_op(
        name=f"conv{rank}d_weight_gradient",
        sizes=frozenset({"padding"}),
        relation=Relation("T:number, T -> T", functools.partial(rules.weight_gradient, rank)),
        layouts=functools.partial(rules.layouts, rank, "xxw"),
        batching=Batching(rule=batched_weight_gradient),
        pattern=Pattern.OUTPUT_FUSABLE,
        compute=weight_gradient_stage,
        gradient=gradient,
        algebra=Algebra(linear=(0, 1)),
        numerics=Numerics(work=lambda shapes, result: convolution_work(shapes[1], result)),
        sampler=_samples(rank, *_WEIGHT_CALLS[: 2 if rank == 3 else None]),
    )(weight_gradient)


for _rank in (1, 2, 3):
    _of_x_and_weight, _of_cotangent_and_weight, _of_x_and_cotangent = _gradients(_rank)
    _define_convolution(_rank, _of_x_and_weight)
    _define_transposed_convolution(_rank, _of_cotangent_and_weight)
    _define_weight_gradient(_rank, _of_x_and_cotangent)
