"""The search for tiles: those with the fewest cycles.

Every cut that the scratchpads have room for is estimated by what each unit has to do at least, and the most promising
ones are written and timed.
"""

from __future__ import annotations

import functools

import attrs

from relay.codegen.vta.config import DEFAULT, Config
from relay.codegen.vta.layers.layer import (
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
from relay.codegen.vta.layers.scheduling import ScheduledLayer, schedule
from relay.codegen.vta.layers.tiles import Tile, candidates, product_span, regions, room, why_none_fits, window
from relay.codegen.vta.layout import Memory
from relay.codegen.vta.simulator.cycles import CHISEL, CycleModel
from relay.codegen.vta.simulator.cycles import estimate as estimate_cycles

TRIED = 24
"""The number of tilings that are timed."""


def best_schedule(
    layer: Layer, threads: int = 2, model: CycleModel = CHISEL, config: Config = DEFAULT, tried: int = TRIED
) -> ScheduledLayer:
    """The schedule of a layer with the fewest cycles, with one virtual thread where there is no room for more. Raises
    ValueError where no tile fits."""
    tile, used = _best_tile(_without_numbers(layer), threads, model, config, tried)
    return schedule(layer, tile, used, config)


def _without_numbers(layer: Layer) -> Layer:
    """A layer that takes as long: layers of a network that differ in shifts and bounds have the same tiles."""
    steps: list[Step] = []
    for step in layer.epilogue:
        match step:
            case ShiftRight(bits) if -16 <= bits <= 15:
                step = ShiftRight(8)
            case AddNumber() | Maximum() | Minimum():
                step = Maximum(0)
        steps.append(step)
    return attrs.evolve(layer, epilogue=tuple(steps), name="")


@functools.lru_cache(maxsize=256)
def _best_tile(layer: Layer, threads: int, model: CycleModel, config: Config, tried: int) -> tuple[Tile, int]:
    """The best tile, and how many virtual threads there is room for."""
    tiles = candidates(layer, config, threads)
    if not tiles and threads > 1:
        return _best_tile(layer, 1, model, config, tried)
    if not tiles:
        raise ValueError(f"its smallest part does not fit: {why_none_fits(layer, config)}")
    tiles.sort(key=lambda tile: promise(layer, tile, threads, model, config))

    def cycles(tile: Tile) -> int:
        stream = schedule(layer, tile, threads, config).stream
        return estimate_cycles(stream.instructions, config, model).cycles

    return min(tiles[:tried], key=cycles), threads


def promise(layer: Layer, tile: Tile, threads: int, model: CycleModel, config: Config) -> float:
    """About how many cycles a layer takes in such tiles: the work of the unit that has most, and what cannot overlap at
    the beginning and the end; with one thread, all work."""
    groups, outs, ins = layer.block_groups
    height, width = layer.extents
    counts = (
        -(-layer.image_blocks // tile.images), -(-groups // tile.groups), -(-outs // tile.outs),
        -(-height // tile.height), -(-width // tile.width),
    )  # fmt: skip
    images, channel_groups, channel_parts, tall, wide = counts
    pixels, channels, chunks = images * tall * wide, channel_groups * channel_parts, -(-ins // tile.ins)
    first = next(iter(regions(layer, tile)))
    rows = window(layer, product_span(layer, first.rows, 0), 0)
    columns = window(layer, product_span(layer, first.columns, 1), 1)
    needed = room(layer, tile)
    assert needed is not None
    compute = layer.products + _epilogue(layer) * layer.image_blocks * layer.blocks_out * _area(layer)
    compute += pixels * channels * (9.0 * chunks + 50)
    row = columns.count * config.element_bytes(Memory.INP) / model.bus + model.row
    blocks = tile.images * tile.groups * tile.ins
    padded = rows.low or rows.high or columns.low or columns.high
    chunk_inp = blocks * rows.count * row + (blocks if padded else 1) * model.latency
    chunk_wgt = needed.wgt * config.element_bytes(Memory.WGT) / model.bus + model.latency
    slots = threads
    inp_loads = pixels * chunks * (1 if tile.order == "pixels" and chunks <= slots else channels)
    wgt_loads = channels * chunks * (1 if tile.order == "weights" and chunks <= slots else pixels)
    if needed.is_only_weight:
        wgt_loads = 1
    out_tile = tile.images * tile.groups * tile.outs * tile.height * tile.width
    store_rows = tile.images * tile.groups * tile.outs * (1 if tile.width == width else tile.height)
    store = out_tile * (config.element_bytes(Memory.OUT) / model.bus + model.store_element)
    store += store_rows * (model.row + model.acknowledge) + model.latency
    residual = layer.residuals * (needed.residual * 2 + store_rows * model.row + model.latency)
    port = inp_loads * chunk_inp + wgt_loads * chunk_wgt + pixels * channels * (store + residual)
    if threads == 1:
        return compute + port
    return max(compute, port) + chunk_inp + chunk_wgt + store


def _area(layer: Layer) -> int:
    height, width = layer.product_extents
    return height * width


def _epilogue(layer: Layer) -> float:
    """Cycles for each element of the result."""
    cycles = 1.0  # the reset
    for step in layer.epilogue:
        match step:
            case AddBias(by_product):
                cycles += 1 if by_product else 2
            case AddResidual(shift):
                cycles += 1 + (shift > 6)
            case ShiftRight(bits):
                cycles += 1 + (not -16 <= bits <= 15)
            case MaxPool():
                cycles += 2 * step.kernel[0] * step.kernel[1] / (step.stride[0] * step.stride[1])
            case _:
                cycles += 1
    return cycles
