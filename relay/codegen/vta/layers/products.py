"""The loops of a tile's product: which rows of the scratchpads are multiplied and added up.

In the scratchpads activations are [image][block][row][column], weights [group][out][in][row][column] of the kernel, and
sums [image][group][out][row][column].
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from relay.codegen.vta.layers.folding import Axis, Nest
from relay.codegen.vta.layers.layer import Layer
from relay.codegen.vta.layers.tiles import Region, Span, Window, product_span


def product_nests(layer: Layer, region: Region, ins: Span, rows: Window, columns: Window) -> Iterator[Nest]:
    """The loops for one chunk of blocks of input channels, from the beginning of each slot."""
    height = product_span(layer, region.rows, 0)
    width = product_span(layer, region.columns, 1)
    kh, kw = layer.kernel
    pixels, inner = height.size * width.size, rows.size * columns.size
    groups, outs = region.groups.size, region.outs.size
    channels = (
        Axis(region.images.size, groups * outs * pixels, groups * ins.size * inner, 0),
        Axis(groups, outs * pixels, ins.size * inner, outs * ins.size * kh * kw),
        Axis(outs, pixels, 0, ins.size * kh * kw),
        Axis(ins.size, 0, inner, kh * kw),
    )
    if not layer.transposed:
        (sh, sw), (dh, dw) = layer.stride, layer.dilation
        yield Nest(
            (
                *channels,
                Axis(kh, 0, dh * columns.size, kw),
                Axis(kw, 0, dw, 1),
                Axis(height.size, width.size, columns.size * (1 if rows.step > 1 else sh)),
                Axis(width.size, 1, sw),
            )
        )
        return
    for phase in np.ndindex(*layer.stride):
        one = _phase(layer, phase[0], 0, height, rows)
        other = _phase(layer, phase[1], 1, width, columns)
        if one is None or other is None:
            continue
        yield Nest(
            (
                *channels,
                Axis(one.taps, 0, -columns.size, layer.stride[0] * kw),
                Axis(other.taps, 0, -1, layer.stride[1]),
                Axis(one.count, layer.stride[0] * width.size, columns.size),
                Axis(other.count, layer.stride[1], 1),
            ),
            one.dst * width.size + other.dst,
            one.src * columns.size + other.src,
            one.tap * kw + other.tap,
        )


class _Phase:
    """Along one axis those results of a transposed convolution that the same elements of the kernel go into: each
    `stride`th one, `count` from `dst` on, from `src` on; these elements are each `stride`th one, from `tap` on, and
    each further one meets the one before of the operand."""

    def __init__(self, count: int, dst: int, src: int, tap: int, taps: int) -> None:
        self.count, self.dst, self.src, self.tap, self.taps = count, dst, src, tap, taps


def _phase(layer: Layer, phase: int, axis: int, span: Span, window: Window) -> _Phase | None:
    stride, kernel, low = layer.stride[axis], layer.kernel[axis], layer.padding[axis]
    dst = (phase - span.start - low) % stride
    count, taps = -(-(span.size - dst) // stride), -(-(kernel - phase) // stride)
    if count < 1 or taps < 1:
        return None
    src = (span.start + dst + low - phase) // stride - window.first
    return _Phase(count, dst, src, phase, taps)
