"""Tiles of a layer: which part of it is computed at once, and what room that takes in the scratchpads.

A layer's result is cut into tiles of images, groups, blocks of output channels, rows and columns; the sum behind each
into chunks of blocks of input channels. With two virtual threads the scratchpads hold two of each: while one is
computed with, the other is loaded or stored.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Literal, TypeAlias

import attrs

from relay.codegen.vta.config import Config
from relay.codegen.vta.layers.layer import AddResidual, Layer
from relay.codegen.vta.layout import Memory

Order: TypeAlias = Literal["weights", "pixels"]


@attrs.frozen
class Tile:
    """The sizes of tiles, in blocks and pixels of the result. `order`: what stays while the other goes on."""

    images: int  # batches of these
    groups: int
    outs: int
    ins: int
    height: int
    width: int
    order: Order = "weights"


@attrs.frozen
class Span:
    """A range of indices."""

    start: int
    stop: int

    @property
    def size(self) -> int:
        """The number of them."""
        return self.stop - self.start


@attrs.frozen
class Region:
    """One tile of the result."""

    images: Span
    groups: Span
    outs: Span
    rows: Span
    columns: Span


def _spans(whole: int, part: int) -> list[Span]:
    return [Span(start, min(start + part, whole)) for start in range(0, whole, part)]


def regions(layer: Layer, tile: Tile) -> Iterator[Region]:
    """The tiles of a layer, in order."""
    groups, outs, _ = layer.block_groups
    height, width = layer.extents
    images, rows = _spans(layer.image_blocks, tile.images), _spans(height, tile.height)
    pixels = list(itertools.product(images, rows, _spans(width, tile.width)))
    channels = list(itertools.product(_spans(groups, tile.groups), _spans(outs, tile.outs)))
    if tile.order == "weights":
        for (g, o), (n, y, x) in itertools.product(channels, pixels):
            yield Region(n, g, o, y, x)
    else:
        for (n, y, x), (g, o) in itertools.product(pixels, channels):
            yield Region(n, g, o, y, x)


# ---- what tiles read


def product_span(layer: Layer, span: Span, axis: int) -> Span:
    """The rows (axis 0) or columns (axis 1) of the product that those of the result are made from."""
    pool = layer.pool
    if pool is None:
        return span
    stride, kernel, low = pool.stride[axis], pool.kernel[axis], pool.padding[axis]
    return Span(
        max(0, span.start * stride - low),
        min(layer.product_extents[axis], (span.stop - 1) * stride - low + kernel),
    )


@attrs.frozen
class Window:
    """Rows or columns of the operand behind some of the product: from which one of the padded operand on, which may be
    negative; and `count` that are loaded from `start` on, every `step`th one, with `low` and `high` zeros around."""

    first: int
    start: int
    count: int
    low: int = 0
    high: int = 0
    step: int = 1

    @property
    def size(self) -> int:
        """The number of them in the scratchpad."""
        return self.low + self.count + self.high


def window(layer: Layer, span: Span, axis: int) -> Window:
    """The rows or columns of the operand that a range of the product needs."""
    size, low = (layer.height, layer.width)[axis], layer.padding[axis]
    stride, kernel = layer.stride[axis], layer.kernel[axis]
    if layer.transposed:
        first = -((kernel - 1 - span.start - low) // stride)
        last = (span.stop - 1 + low) // stride
    else:
        first = span.start * stride - low
        last = (span.stop - 1) * stride - low + layer.reach[axis] - 1
        if axis == 0 and kernel == 1 and stride > 1 and first >= 0 and last < size:
            return Window(first, first, span.size, step=stride)
    start, stop = max(first, 0), min(last + 1, size)
    return Window(first, start, stop - start, start - first, last + 1 - stop)


# ---- room

_PADS = 15  # at most


@attrs.frozen
class Room:
    """The elements that one tile takes: of the operand and of weights for a chunk, of a residual, of sums, and of what
    is pooled from these; and that all tiles share: identities for residuals, and biases, of sums or of weights."""

    inp: int
    wgt: int
    residual: int
    product: int
    pooled: int
    identities: int
    biases: int
    bias_weights: int
    is_only_weight: bool  # there are no other weights

    def fits(self, config: Config, threads: int) -> bool:
        """True if the scratchpads hold it, for that many virtual threads."""
        wgt_threads = 1 if self.is_only_weight else threads
        return (
            threads * (self.inp + self.residual) + (self.bias_weights > 0) <= config.depth(Memory.INP)
            and wgt_threads * self.wgt + self.identities + self.bias_weights <= config.depth(Memory.WGT)
            and threads * (self.product + self.pooled) + self.biases <= config.depth(Memory.ACC)
        )


def room(layer: Layer, tile: Tile) -> Room | None:
    """The room that a tile takes; None if it cannot be loaded."""
    groups, outs, ins = layer.block_groups
    height, width = layer.extents
    kh, kw = layer.kernel
    rows = [product_span(layer, s, 0) for s in _spans(height, tile.height)]
    columns = [product_span(layer, s, 1) for s in _spans(width, tile.width)]
    tall, wide = [window(layer, s, 0) for s in rows], [window(layer, s, 1) for s in columns]
    if any(w.count < 1 or max(w.low, w.high) > _PADS for w in (*tall, *wide)):
        return None
    blocks = tile.groups * tile.outs
    pixels = tile.images * max(s.size for s in rows) * max(s.size for s in columns)
    shifts = {min(step.shift, IDENTITY_SHIFT) for step in layer.epilogue if isinstance(step, AddResidual)}
    return Room(
        inp=tile.images * tile.groups * tile.ins * max(w.size for w in tall) * max(w.size for w in wide),
        wgt=blocks * tile.ins * kh * kw,
        residual=pixels * blocks if layer.residuals else 0,
        product=pixels * blocks,
        pooled=tile.images * blocks * tile.height * tile.width if layer.pool is not None else 0,
        identities=len(shifts),
        biases=0 if layer.bias is None or layer.bias.by_product else bias_room(layer, tile),
        bias_weights=layer.blocks_out if layer.bias is not None and layer.bias.by_product else 0,
        is_only_weight=tile.groups == groups and tile.outs == outs and tile.ins == ins,
    )


def why_none_fits(layer: Layer, config: Config) -> str:
    """The reason why a single pixel of a layer's result does not fit, with one virtual thread: what it needs and
    what there is."""
    height, width = layer.extents
    for axis, name in enumerate(("rows", "columns")):
        spans = [product_span(layer, s, axis) for s in _spans((height, width)[axis], 1)]
        windows = [window(layer, span, axis) for span in spans]
        zeros = max(max(w.low, w.high) for w in windows)
        if zeros > _PADS:
            return f"a load puts at most {_PADS} {name} of zeros on a side, and it needs {zeros}"
        if any(w.count < 1 for w in windows):
            return f"some {name} of its result are sums of padding only, which a load cannot bring"
    needed = room(layer, Tile(1, 1, 1, 1, 1, 1))
    assert needed is not None
    found = {
        Memory.INP: needed.inp + needed.residual + (needed.bias_weights > 0),
        Memory.WGT: needed.wgt + needed.identities + needed.bias_weights,
        Memory.ACC: needed.product + needed.pooled + needed.biases,
    }
    memory = next(m for m in found if found[m] > config.depth(m))
    return f"it takes {found[memory]} elements of {memory.name.lower()}, which has {config.depth(memory)}"


RESIDENT_BIASES = 128
IDENTITY_SHIFT = 6
"""A residual times 64 is a product by 8-bit weights; what is shifted further takes the ALU."""


def bias_room(layer: Layer, tile: Tile) -> int:
    """The rows that biases take: of all channels if these are few, else of a tile's."""
    return layer.blocks_out if layer.blocks_out <= RESIDENT_BIASES else tile.groups * tile.outs


# ---- candidates


def _parts(whole: int) -> list[int]:
    """Sizes of parts of a whole, with as few parts as each size allows: 1, 2, 3, .. of them."""
    return sorted({-(-whole // count) for count in range(1, whole + 1)})


def candidates(layer: Layer, config: Config, threads: int) -> list[Tile]:
    """The tiles that the scratchpads have room for: in at most four parts along rows, in more only if these are too
    long."""
    width = layer.extents[1]
    columns = [w for w in _parts(width) if w * 4 >= width]
    while True:
        found = _candidates_of_widths(layer, columns, config, threads)
        if found or columns[0] == 1:
            return found
        columns = [-(-columns[0] // 2)]


def _candidates_of_widths(layer: Layer, columns: list[int], config: Config, threads: int) -> list[Tile]:
    groups, outs, ins = layer.block_groups
    height, width = layer.extents
    found = []
    for g, o, i in itertools.product(_parts(groups), _parts(outs), _parts(ins)):
        if g > 1 and (o != outs or i != ins):
            continue
        for n, h, w in itertools.product(_parts(layer.image_blocks), _parts(height), columns):
            if (w < width and h == height > 8) or (n > 1 and (h != height or w != width)):
                continue
            tile = Tile(n, g, o, i, h, w)
            needed = room(layer, tile)
            if needed is not None and needed.fits(config, threads):
                found += [tile, attrs.evolve(tile, order="pixels")]
    return found
