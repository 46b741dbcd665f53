"""The schedule of a layer as a stream: the order in which tiles are loaded, computed and stored, and the waits between
units.

    for each tile of the result:
        for each chunk of its sum:     load unit: activations and weights;  compute unit: GEMM
        compute unit: the epilogue     store unit: the result

Each unit runs ahead of the others as far as there is room. Activations, weights, residuals and sums have a slot for
each virtual thread; the content of a slot is not loaded again. A unit that fills a slot waits until its reader has read
the old content; these waits come in the order of the steps, so counting tokens suffice, and each token is taken by the
unit that it was posted for.

With two threads, nothing overlaps the first load and the last store but what they are cut into: the first chunk comes
and the last tile goes by blocks of output channels, one while the next is loaded or computed.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Hashable, Iterator, Mapping

import attrs
import numpy as np

from relay.codegen.vta.config import DEFAULT, Config
from relay.codegen.vta.isa import Alu, Gemm, Load, Queue
from relay.codegen.vta.layers.folding import MOST_UOPS, Axis, Limits, Nest, fold
from relay.codegen.vta.layers.layer import (
    BYTES,
    AddBias,
    AddNumber,
    AddResidual,
    Layer,
    Maximum,
    MaxPool,
    Minimum,
    ShiftRight,
    Step,
)
from relay.codegen.vta.layers.products import product_nests
from relay.codegen.vta.layers.streams import NO_BORDER, Border, Stream, StreamBuilder, load, rectangles, store
from relay.codegen.vta.layers.tiles import (
    IDENTITY_SHIFT,
    RESIDENT_BIASES,
    Region,
    Room,
    Span,
    Tile,
    Window,
    product_span,
    regions,
    room,
    window,
)
from relay.codegen.vta.layout import AluOp, Memory

IDENTITIES = "one"
"""The name of the buffer with identities times powers of two."""
BIAS_ROW = "row"
"""The name of the buffer with the activations that weights make biases of."""


REPEATED_SHIFT = 10
"""The shift of a residual that is added several times: larger than the shift of a product can be, after steps that
are not sums."""


@attrs.frozen
class ScheduledLayer:
    """A layer's stream, its tiling, and the constants that it reads besides its operands."""

    layer: Layer
    tile: Tile
    threads: int
    stream: Stream

    @property
    def identities(self) -> np.ndarray:
        """The blocks of the buffer `one`: identities times powers of two."""
        return identities(self.layer)


def identities(layer: Layer) -> np.ndarray:
    """Identities times each power of two by which products add residuals. -> (int8, (count, block, block))."""
    return np.stack([np.eye(layer.block, dtype=np.int8) << shift for shift in identity_shifts(layer)] or [
        np.zeros((0, 0), np.int8)
    ])  # fmt: skip


def identity_shifts(layer: Layer) -> list[int]:
    """The powers of two by which products add residuals."""
    return sorted({min(s.shift, IDENTITY_SHIFT) for s in layer.epilogue if isinstance(s, AddResidual)})


def schedule(layer: Layer, tile: Tile, threads: int = 2, config: Config = DEFAULT) -> ScheduledLayer:
    """The stream of a layer that is cut into such tiles. Raises ValueError for tiles that do not fit, and for an
    epilogue that the accelerator does not have."""
    out = StreamBuilder(config)
    schedule_into(out, layer, tile, threads)
    return ScheduledLayer(layer, tile, threads, out.finish())


def schedule_into(
    out: StreamBuilder, layer: Layer, tile: Tile, threads: int = 2, names: Mapping[str, str] | None = None
) -> None:
    """Append a layer to a stream, its buffers with other names. Raises ValueError as `schedule`."""
    needed = room(layer, tile)
    if needed is None or not needed.fits(out.config, threads):
        raise ValueError(f"the scratchpads have no room for {tile} of {layer.name}")
    _Scheduler(layer, tile, needed, threads, out).write(names)


# ---- the epilogue in order


@attrs.frozen
class Epilogue:
    """The steps before the product, which shift residuals by more than a product can, and those after it."""

    before: tuple[tuple[int, AddResidual], ...]  # with the residual's number
    behind: tuple[tuple[int, Step], ...]  # the number is that of a residual


def split_epilogue(layer: Layer) -> Epilogue:
    """The parts of an epilogue before and after the product. Raises ValueError for a residual that is shifted too
    far to be added after steps that are not sums."""
    before: list[tuple[int, AddResidual]] = []
    behind: list[tuple[int, Step]] = []
    number = 0
    sums_only = True
    for step in layer.epilogue:
        sums_only = sums_only and isinstance(step, AddBias | AddNumber | AddResidual)
        if not isinstance(step, AddResidual):
            behind.append((0, step))
            continue
        if step.shift <= IDENTITY_SHIFT:
            behind.append((number, step))
        elif sums_only:
            before.append((number, step))
        elif step.shift <= REPEATED_SHIFT:
            behind.append((number, step))
        else:
            raise ValueError(f"a residual shifted by {step.shift} bits is added after a shift or bound")
        number += 1
    before.sort(key=lambda pair: -pair[1].shift)
    return Epilogue(tuple(before), tuple(behind))


# ---- slots


class _Slots:
    """Parts of a scratchpad for loaded data; the one used longest ago is filled again."""

    def __init__(self, count: int, size: int, base: int) -> None:
        self.bases = [base + n * size for n in range(count)]
        self.keys: list[Hashable] = [None] * count
        self.used = [-1] * count  # by which step last

    def take(self, key: Hashable, step: int) -> tuple[int, bool, int]:
        """The place of something, True if it has to be loaded, and the step that has to be over before."""
        if key in self.keys:
            at, is_new, before = self.keys.index(key), False, -1
        else:
            at = min(range(len(self.keys)), key=self.used.__getitem__)
            is_new, before = True, self.used[at]
            self.keys[at] = key
        self.used[at] = step
        return self.bases[at], is_new, before


@attrs.define
class _Step:
    """The work of the compute unit on one chunk: `loads` before, which overwrite what step `after` reads."""

    loads: list[tuple[Load, str]]
    after: int
    compute: Callable[[], None]
    tile: int


@attrs.frozen
class _Place:
    """The place of a tile's sums among the accumulators, and of what is pooled from them."""

    sums: int
    pooled: int


class _Scheduler:
    """One layer."""

    def __init__(self, layer: Layer, tile: Tile, needed: Room, threads: int, out: StreamBuilder) -> None:
        self.layer, self.tile, self.room, self.threads, self.out = layer, tile, needed, threads, out
        config = out.config
        self.epilogue = split_epilogue(layer)
        uops = min(MOST_UOPS, out.room)
        self.gemm_limits = Limits(config.depth(Memory.ACC), config.depth(Memory.INP), config.depth(Memory.WGT), uops)
        self.alu_limits = Limits(config.depth(Memory.ACC), config.depth(Memory.ACC), 1, uops)
        wgt_slots = 1 if needed.is_only_weight else threads
        weights = needed.identities + wgt_slots * needed.wgt + needed.bias_weights
        first, self.is_apart = out.place_weights(weights)
        self.inp = _Slots(threads, needed.inp, 0)
        self.residual = _Slots(threads, needed.residual, threads * needed.inp)
        self.wgt = _Slots(wgt_slots, needed.wgt, first + needed.identities)
        self.one = _Slots(1, needed.identities, first)
        self.biases = threads * (needed.product + needed.pooled)
        self.known_bias: Hashable = None
        self.bias_row = threads * (needed.inp + needed.residual)
        self.bias_weights = first + needed.identities + wgt_slots * needed.wgt

    # ---- order

    def write(self, names: Mapping[str, str] | None) -> None:
        """Write everything. The weights of the first step come while the layer before is computed, if there is room."""
        tiles = list(regions(self.layer, self.tile))
        steps = list(self._steps(tiles))
        early = [one for one in steps[0].loads if one[0].memory is Memory.WGT]
        if not self.is_apart or self.threads == 1:
            early = []
        steps[0].loads = [one for one in steps[0].loads if one not in early]
        self.out.begin(names, early)
        after = [step.after for step in steps]
        if self.threads == 1:
            after = [number - 1 for number in range(len(steps))]
        awaited = -1
        waits: dict[int, bool] = {}  # the steps that post a token for the load unit
        for number, step in enumerate(steps):
            if step.loads and after[number] > awaited:
                awaited = after[number]
                waits[awaited] = True
        awaited = -1
        for number, step in enumerate(steps):
            if step.loads:
                if after[number] > awaited:
                    awaited = after[number]
                    self.out.wait(Queue.LOAD, Queue.COMPUTE)
                for instruction, buffer in step.loads:
                    self.out.emit(instruction, buffer)
                self.out.signal(Queue.LOAD, Queue.COMPUTE)
            is_first = number == 0 or steps[number - 1].tile != step.tile
            is_last = number == len(steps) - 1 or steps[number + 1].tile != step.tile
            if is_first:
                self._begin(tiles[step.tile], step.tile)
            if step.loads:
                self.out.wait(Queue.COMPUTE, Queue.LOAD)
            step.compute()
            if number in waits:
                self.out.signal(Queue.COMPUTE, Queue.LOAD)
            if is_last:
                self._end(tiles[step.tile], step.tile, len(tiles))

    def _steps(self, tiles: list[Region]) -> Iterator[_Step]:
        """All steps, with the slots that they use."""
        count = itertools.count()
        for position, region in enumerate(tiles):
            for number, step in self.epilogue.before:
                yield self._residual_step(next(count), position, region, number, step)
            _, _, ins = self.layer.block_groups
            for start in range(0, ins, self.tile.ins):
                chunk = Span(start, min(start + self.tile.ins, ins))
                for part in self._parts(region, position == 0 and start == 0):
                    yield self._product_step(next(count), position, region, part, chunk)
            behind = self.epilogue.behind
            for at, (number, later) in enumerate(behind):
                if isinstance(later, AddResidual):
                    yield self._residual_step(next(count), position, region, number, later, at)

    def _parts(self, region: Region, is_cut: bool) -> list[Region]:
        """The blocks of output channels of a tile at either end of the layer, each by itself; else all of them."""
        if not is_cut or self.threads == 1 or self.layer.wide or region.images.size > 1 or region.groups.size > 1:
            return [region]
        return [attrs.evolve(region, outs=Span(at, at + 1)) for at in range(region.outs.start, region.outs.stop)]

    # ---- steps

    def _product_step(self, step: int, position: int, region: Region, part: Region, ins: Span) -> _Step:
        """Multiply a chunk for a part of a tile."""
        layer = self.layer
        rows = window(layer, product_span(layer, region.rows, 0), 0)
        columns = window(layer, product_span(layer, region.columns, 1), 1)
        inp_key = ("inp", region.images, region.groups, ins, region.rows, region.columns)
        wgt_key = ("wgt", region.groups, region.outs, ins)
        inp, is_new_inp, after_inp = self.inp.take(inp_key, step)
        wgt, is_new_wgt, after_wgt = self.wgt.take(wgt_key, step)
        wgt += (part.outs.start - region.outs.start) * ins.size * layer.kernel[0] * layer.kernel[1]
        loads: list[tuple[Load, str]] = []
        if is_new_wgt or part != region:
            loads += self._weight_loads(part, ins, wgt)
        if is_new_inp:
            loads += self._activation_loads(region, ins, rows, columns, inp)
        is_end = ins.stop == layer.block_groups[2] and part.outs.stop == region.outs.stop
        if position == 0 and is_end and layer.bias is not None and layer.bias.by_product:
            loads += [
                (load(Memory.INP, rectangles([], 0, self.bias_row)[0]), BIAS_ROW),
                (load(Memory.WGT, rectangles([(1, layer.blocks_out)], 0, self.bias_weights)[0]), "bia"),
            ]
        acc = self._place(position, region, part).sums

        def compute() -> None:
            for nest in product_nests(layer, part, ins, rows, columns):
                self._gemm(attrs.evolve(nest, dst=nest.dst + acc, src=nest.src + inp, wgt=nest.wgt + wgt))

        return _Step(loads, max(after_inp, after_wgt), compute, position)

    def _weight_loads(self, region: Region, ins: Span, at: int) -> list[tuple[Load, str]]:
        layer = self.layer
        _, all_outs, all_ins = layer.block_groups
        window_size = layer.kernel[0] * layer.kernel[1]
        parts = rectangles(
            [
                (all_outs * all_ins * window_size, region.groups.size),
                (all_ins * window_size, region.outs.size),
                (1, ins.size * window_size),
            ],
            ((region.groups.start * all_outs + region.outs.start) * all_ins + ins.start) * window_size,
            at,
        )
        return [(load(Memory.WGT, part), "wgt") for part in parts]

    def _activation_loads(
        self, region: Region, ins: Span, rows: Window, columns: Window, at: int
    ) -> list[tuple[Load, str]]:
        layer = self.layer
        _, _, all_ins = layer.block_groups
        blocks = region.groups.size * ins.size
        pixels = layer.height * layer.width
        first = region.groups.start * all_ins + ins.start
        image = layer.blocks_in * pixels
        start = (region.images.start * layer.blocks_in + first) * pixels + rows.start * layer.width + columns.start
        inside = [(layer.width * rows.step, rows.count), (1, columns.count)]
        border = Border(rows.low, rows.high, columns.low, columns.high)
        if border == NO_BORDER:
            parts = rectangles([(image, region.images.size), (pixels, blocks), *inside], start, at)
            return [(load(Memory.INP, part), "inp") for part in parts]
        found: list[tuple[Load, str]] = []
        for n, c in np.ndindex(region.images.size, blocks):
            r = rectangles([], start + n * image + c * pixels, at + len(found) * rows.size * columns.size)[0]
            r = attrs.evolve(r, y_size=rows.count, x_size=columns.count, x_stride=layer.width * rows.step)
            found.append((load(Memory.INP, r, border), "inp"))
        return found

    def _residual_step(
        self, step: int, position: int, region: Region, number: int, residual: AddResidual, at: int | None = None
    ) -> _Step:
        """Add a residual. `at`: its place among the steps after the product, None for one before it."""
        shifts = identity_shifts(self.layer)
        slot, is_new, after = self.residual.take(("residual", position, number), step)
        one, is_new_one, _ = self.one.take("one", step)
        loads: list[tuple[Load, str]] = []
        if is_new_one:
            loads += [(load(Memory.WGT, r), IDENTITIES) for r in rectangles([(1, len(shifts))], 0, one)]
        if is_new:
            axes, start = self._part(region, self.layer.product_extents, self._product_region(region))
            loads += [(load(Memory.INP, r), f"res{number}") for r in rectangles(axes, start, slot)]
        place, size = self._place(position, region), self._product_size(region)
        acc = place.sums
        identity = one + shifts.index(min(residual.shift, IDENTITY_SHIFT))

        def compute() -> None:
            if at is not None:
                self._steps_behind(region, place, at)
            repeats = 1 if at is None else 1 << max(0, residual.shift - IDENTITY_SHIFT)
            for _ in range(repeats):
                self._gemm(Nest((Axis(size, 1, 1),), acc, slot, identity))
            if at is None:
                following = [s.shift for n, s in self.epilogue.before]
                behind = [n for n, _ in self.epilogue.before].index(number) + 1
                next_shift = following[behind] if behind < len(following) else IDENTITY_SHIFT
                if residual.shift > next_shift:
                    self._immediate(AluOp.SHR, next_shift - residual.shift, acc, size)

        return _Step(loads, after, compute, position)

    # ---- the compute unit

    def _begin(self, region: Region, position: int) -> None:
        """Set the sums of a tile to zero, when what was there before is stored."""
        if position >= self.threads and not self.layer.wide:
            self.out.wait(Queue.COMPUTE, Queue.STORE)
        self._done = 0
        self._gemm(Nest((Axis(self._product_size(region), 1),), self._place(position, region).sums), reset=True)

    def _gemm(self, nest: Nest, reset: bool = False) -> None:
        for folded in fold(nest, self.gemm_limits):
            outer, inner = folded.outer, folded.inner
            instruction = Gemm(
                iter_out=outer.extent, iter_in=inner.extent, dst_out=outer.dst, dst_in=inner.dst, src_out=outer.src,
                src_in=inner.src, wgt_out=outer.wgt, wgt_in=inner.wgt, reset=reset,
            )  # fmt: skip
            self.out.loop(instruction, folded.uops)

    def _alu(self, op: AluOp, nest: Nest) -> None:
        for folded in fold(nest, self.alu_limits):
            outer, inner = folded.outer, folded.inner
            instruction = Alu(
                op=op, iter_out=outer.extent, iter_in=inner.extent, dst_out=outer.dst, dst_in=inner.dst,
                src_out=outer.src, src_in=inner.src,
            )  # fmt: skip
            self.out.loop(instruction, folded.uops)

    def _immediate(self, op: AluOp, number: int, acc: int, size: int) -> None:
        """dst = op(dst, number) on rows in a row. The source is the destination, which designs read instead of it."""
        for part in _shifts(number) if op is AluOp.SHR else [number]:
            instruction = Alu(op=op, use_imm=True, imm=part, iter_in=size, dst_in=1, src_in=1)
            self.out.loop(instruction, ((acc, acc, 0),))

    def _steps_behind(self, region: Region, place: _Place, end: int) -> None:
        """The steps after the product up to one of them, without those that are done."""
        acc, size = place.sums, self._product_size(region)
        for number in range(self._done, end):
            _, step = self.epilogue.behind[number]
            match step:
                case AddBias():
                    self._add_bias(region, acc)
                case ShiftRight(bits):
                    self._immediate(AluOp.SHR, bits, acc, size)
                case AddNumber(amount):
                    self._immediate(AluOp.ADD, amount, acc, size)
                case Maximum(amount):
                    self._immediate(AluOp.MAX, amount, acc, size)
                case Minimum(amount):
                    self._immediate(AluOp.MIN, amount, acc, size)
                case MaxPool():
                    self._pool(step, region, place)
                case AddResidual():
                    pass  # a step of its own
        self._done = max(end, self._done)

    def _add_bias(self, region: Region, acc: int) -> None:
        layer = self.layer
        _, all_outs, _ = layer.block_groups
        first, count = region.groups.start * all_outs + region.outs.start, region.groups.size * region.outs.size
        product = self._product_region(region)
        pixels = product.rows.size * product.columns.size
        axes = (Axis(region.images.size, count * pixels), Axis(count, pixels, 1), Axis(pixels, 1))
        assert layer.bias is not None
        if layer.bias.by_product:
            weighted = tuple(attrs.evolve(axis, src=0, wgt=axis.src) for axis in axes)
            self._gemm(Nest(weighted, acc, self.bias_row, self.bias_weights + first))
            return
        if layer.blocks_out <= RESIDENT_BIASES:
            start, key, rows = first, "all", rectangles([(1, layer.blocks_out)], 0, self.biases)
        else:
            start, key, rows = 0, (first, count), rectangles([(1, count)], first, self.biases)  # type: ignore[assignment]
        if self.known_bias != key:
            self.known_bias = key
            for r in rows:
                self.out.emit(load(Memory.ACC, r), "acc")
        self._alu(AluOp.ADD, Nest(axes, acc, self.biases + start))

    def _pool(self, step: MaxPool, region: Region, place: _Place) -> None:
        """The largest numbers of windows: first one in each window, then the others."""
        acc, pooled = place.sums, place.pooled
        product = self._product_region(region)
        height, width = product.rows.size, product.columns.size
        tall, wide = region.rows.size, region.columns.size
        planes = region.images.size * region.groups.size * region.outs.size
        self._gemm(Nest((Axis(planes * tall * wide, 1),), pooled), reset=True)
        (kh, kw), (sh, sw), (top, left, _, _) = step.kernel, step.stride, step.padding
        taps = sorted(np.ndindex(kh, kw), key=lambda tap: tap != (top, left))  # the first one is in all windows
        for tap in taps:
            ranges = []
            for axis, (low, stride, out, inner) in enumerate(
                ((top, sh, region.rows, product.rows), (left, sw, region.columns, product.columns))
            ):
                offset = tap[axis] - low
                first = max(out.start, -((offset - inner.start) // stride))
                last = min(out.stop - 1, (inner.stop - 1 - offset) // stride)
                ranges.append((first - out.start, last - first + 1, first * stride + offset - inner.start))
            (y, rows, from_y), (x, columns, from_x) = ranges
            if rows < 1 or columns < 1:
                continue
            axes = (
                Axis(planes, tall * wide, height * width), Axis(rows, wide, sh * width), Axis(columns, 1, sw)
            )  # fmt: skip
            nest = Nest(axes, pooled + y * wide + x, acc + from_y * width + from_x)
            self._alu(AluOp.ADD if tap == taps[0] else AluOp.MAX, nest)

    # ---- the store unit

    def _end(self, region: Region, position: int, count: int) -> None:
        """The steps after the product that are left, and the store."""
        done = self._done
        for part in self._parts(region, position == count - 1):
            place, self._done = self._place(position, region, part), done
            self._steps_behind(part, place, len(self.epilogue.behind))
            if self.layer.has_gaps and not self.layer.epilogue:  # a reset does not write what is stored
                self._immediate(AluOp.SHR, 0, place.sums, self._product_size(part))
            if self.layer.wide:
                self._store_bytes(part, place.sums)
            else:
                self._store(part, place.sums if self.layer.pool is None else place.pooled)
        if position + self.threads < count and not self.layer.wide:
            self.out.signal(Queue.STORE, Queue.COMPUTE)

    def _store(self, region: Region, at: int) -> None:
        self.out.signal(Queue.COMPUTE, Queue.STORE)
        self.out.wait(Queue.STORE, Queue.COMPUTE)
        axes, start = self._part(region, self.layer.extents, region)
        for r in rectangles(axes, start, at):
            self.out.emit(store(r), "out")

    def _store_bytes(self, region: Region, at: int) -> None:
        """Store the lowest bytes of sums, and shift, as often as they have bytes. Each of the two waits for the
        other."""
        axes, start = self._part(region, self.layer.extents, region)
        size = self._product_size(region)
        part = math.prod(self.layer.result_shape[1:-2])
        for byte in range(BYTES):
            if byte:
                self._immediate(AluOp.SHR, 8, at, size)
            self.out.signal(Queue.COMPUTE, Queue.STORE)
            self.out.wait(Queue.STORE, Queue.COMPUTE)
            for r in rectangles(axes, start + byte * part, at):
                self.out.emit(store(r), "out")
            self.out.signal(Queue.STORE, Queue.COMPUTE)
            self.out.wait(Queue.COMPUTE, Queue.STORE)

    # ---- places

    def _place(self, position: int, region: Region, part: Region | None = None) -> _Place:
        """The place of the sums of a tile, or of a part of it."""
        start = (position % self.threads) * (self.room.product + self.room.pooled)
        before = 0 if part is None else part.outs.start - region.outs.start
        blocks = region.images.size * region.groups.size * region.outs.size
        sums = start + before * (self._product_size(region) // blocks)
        return _Place(sums, start + self.room.product + before * region.rows.size * region.columns.size)

    def _product_region(self, region: Region) -> Region:
        return attrs.evolve(
            region,
            rows=product_span(self.layer, region.rows, 0),
            columns=product_span(self.layer, region.columns, 1),
        )

    def _product_size(self, region: Region) -> int:
        r = self._product_region(region)
        return r.images.size * r.groups.size * r.outs.size * r.rows.size * r.columns.size

    def _part(self, region: Region, extents: tuple[int, int], part: Region) -> tuple[list[tuple[int, int]], int]:
        """The axes and the beginning of a part of a tensor with all output channels."""
        height, width = extents
        pixels = height * width
        _, all_outs, _ = self.layer.block_groups
        image = self.layer.blocks_out * pixels
        first = region.groups.start * all_outs + region.outs.start
        axes = [
            (image, region.images.size), (pixels, region.groups.size * region.outs.size), (width, part.rows.size),
            (1, part.columns.size),
        ]  # fmt: skip
        start = region.images.start * image + first * pixels + part.rows.start * width + part.columns.start
        return axes, start


def _shifts(bits: int) -> list[int]:
    """Shifts that all designs have, -16 to 15, which together are this one."""
    found = []
    while bits > 15 or bits < -16:
        part = max(-16, min(15, bits))
        found.append(part)
        bits -= part
    return [*found, bits] if bits or not found else found
