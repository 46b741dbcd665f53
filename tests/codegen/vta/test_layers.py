"""Layers as streams: what they compute, on the simulator with all of its rules, against NumPy."""

from __future__ import annotations

import random
from typing import Any

import attrs
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relay.codegen.vta.config import DEFAULT
from relay.codegen.vta.isa import Finish
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
    apply,
    identity_weights,
    requantization,
)
from relay.codegen.vta.layers.packing import unpack_activations
from relay.codegen.vta.layers.programs import layer_program, packed_inputs, packed_weights
from relay.codegen.vta.layers.resnet import resnet_layers
from relay.codegen.vta.layers.scheduling import ScheduledLayer, schedule
from relay.codegen.vta.layers.search import best_schedule
from relay.codegen.vta.layers.tiles import Tile, candidates
from relay.codegen.vta.simulator.run import simulate

POOL = MaxPool((2, 2), (2, 2))
EPILOGUES: dict[str, tuple[Step, ...]] = {
    "requantized": (AddBias(), *requantization(9)),
    "bias by product": (ShiftRight(8), AddBias(by_product=True), Maximum(0), Minimum(127)),
    "residual": (AddResidual(3), *requantization(9)),
    "large residuals": (AddBias(True), AddResidual(9), AddResidual(12), AddResidual(1), *requantization(17)),
    "residuals behind a shift": (ShiftRight(5), AddResidual(8), AddNumber(-3), AddResidual(0), Minimum(100)),
    "shifted far": (ShiftRight(20), Maximum(-127)),
    "pooled": (AddBias(True), *requantization(8, 0), POOL),
    "pooled with a border": (*requantization(8), MaxPool((3, 3), (2, 2), (1, 1, 1, 1))),
}


def operands(layer: Layer, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray, tuple[np.ndarray, ...]]:
    """Random operands of a layer, not packed."""
    random = np.random.default_rng(seed)

    def eight_bits(*shape: int) -> np.ndarray:
        return random.integers(-128, 128, shape).astype(np.int8)

    x = eight_bits(layer.images, layer.channels_in, layer.height, layer.width)
    weights = eight_bits(layer.channels_out, layer.channels_in // layer.groups, *layer.kernel)
    bias = random.integers(-100_000, 100_000, layer.channels_out).astype(np.int32)
    like = (layer.images, layer.channels_out, *layer.product_extents)
    return x, weights, bias, tuple(eight_bits(*like) for _ in range(layer.residuals))


def assert_computes(scheduled: ScheduledLayer, seed: int = 0) -> None:
    """The stream breaks no rule, ends in FINISH, and gives what the layer is in NumPy."""
    layer = scheduled.layer
    x, weights, bias, residuals = operands(layer, seed)
    program = layer_program(scheduled, packed_weights(layer, weights, bias if layer.bias else None))
    assert isinstance(program.instructions[-1], Finish)
    found = simulate(program, packed_inputs(layer, x, residuals))["out"]
    np.testing.assert_array_equal(
        unpack_activations(found, layer.images, layer.channels_out), apply(layer, x, weights, bias, residuals)
    )


CONVOLUTION = Layer(32, 32, 6, 5, (3, 3), padding=(1, 1, 1, 1))


@pytest.mark.parametrize("epilogue", EPILOGUES.values(), ids=EPILOGUES)
@pytest.mark.parametrize("threads", [1, 2])
def test_epilogues(epilogue: tuple[Step, ...], threads: int) -> None:
    layer = attrs.evolve(CONVOLUTION, epilogue=epilogue)
    tiles = candidates(layer, DEFAULT, threads)
    for tile in (tiles[len(tiles) // 2], tiles[-1]):
        assert_computes(schedule(layer, tile, threads))


KINDS: dict[str, Layer] = {
    "strides and borders": Layer(16, 48, 9, 8, (3, 2), (2, 3), (2, 1, 0, 3)),
    "dilated": Layer(16, 16, 9, 9, (3, 3), (1, 2), (2, 2, 2, 2), (2, 2)),
    "every second row": Layer(32, 32, 8, 7, (1, 1), (2, 2)),
    "channels that do not fill blocks": Layer(3, 10, 7, 7, (3, 3), padding=(1, 1, 1, 1)),
    "in groups": Layer(64, 32, 5, 5, (3, 3), padding=(1, 1, 1, 1), groups=2),
    "in small groups": Layer(32, 32, 5, 5, (3, 3), padding=(1, 1, 1, 1), groups=8),
    "in odd groups": Layer(15, 21, 5, 5, (3, 3), groups=3),
    "in groups of other sizes": Layer(32, 64, 5, 4, (3, 3), padding=(1, 1, 1, 1), groups=8),
    "several results for a channel": Layer(16, 32, 6, 6, (3, 3), groups=16),
    "depthwise": Layer(48, 48, 6, 6, (3, 3), (2, 2), (1, 1, 1, 1), groups=48, images=2),
    "transposed": Layer(32, 16, 4, 5, (4, 4), (2, 2), (1, 1, 1, 1), transposed=True),
    "transposed with gaps": Layer(16, 16, 3, 3, (2, 2), (3, 3), transposed=True, extra=(1, 2)),
    "dense": Layer(64, 80, images=1),
    "dense with one block of results": Layer(64, 10, images=2),
    "dense of many rows": Layer(48, 32, images=9),
    "few pixels": Layer(32, 16, 2, 1, (2, 1), padding=(1, 0, 1, 0)),
}


@pytest.mark.parametrize("layer", KINDS.values(), ids=KINDS)
def test_kinds_of_layers(layer: Layer) -> None:
    layer = attrs.evolve(layer, epilogue=(AddBias(), *requantization(7)))
    tiles = candidates(layer, DEFAULT, 2)
    for tile, threads in ((tiles[len(tiles) // 3], 2), (tiles[-1], 1)):
        assert_computes(schedule(layer, tile, threads))


def test_layers_without_weights() -> None:
    """Residual addition and max pooling by themselves are products by the identity."""
    addition = Layer(32, 32, 5, 6, groups=32, epilogue=(AddResidual(1), *requantization(2)))
    pooling = Layer(32, 32, 9, 9, groups=32, epilogue=(MaxPool((3, 3), (2, 2), (1, 1, 1, 1)),))
    for layer in (addition, pooling):
        x, _, _, residuals = operands(layer)
        weights = identity_weights(32)
        program = layer_program(best_schedule(layer), packed_weights(layer, weights))
        found = unpack_activations(simulate(program, packed_inputs(layer, x, residuals))["out"], 1, 32)
        np.testing.assert_array_equal(found, apply(layer, x, weights, None, residuals))
    windows = np.lib.stride_tricks.sliding_window_view(
        np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)), constant_values=-128), (3, 3), (2, 3)
    )
    np.testing.assert_array_equal(found, windows[:, :, ::2, ::2].max((4, 5)))


@pytest.mark.parametrize("layer", resnet_layers(4), ids=lambda layer: layer.name)
def test_convolutions_of_resnet(layer: Layer) -> None:
    """A quarter of the channels and the height; the full ones are a sample of the matrix."""
    small = attrs.evolve(layer, height=max(7, layer.height // 4), width=max(7, layer.width // 2))
    assert_computes(best_schedule(small, tried=2))


def test_what_hardly_fits() -> None:
    """Rows are cut into more parts than elsewhere, and where two threads have no room there is one."""
    rows = best_schedule(Layer(16, 16, 3, 3000, (3, 3), padding=(1, 1, 1, 1), epilogue=requantization(7)), tried=1)
    assert rows.tile.width < 3000 / 4 and rows.threads == 2
    window = best_schedule(Layer(16, 32, 28, 29, (28, 28), epilogue=requantization(9)), tried=1)
    assert window.threads == 1
    for scheduled in (rows, window):
        assert_computes(scheduled)


@settings(max_examples=12)
@given(st.integers(0, 2**32 - 1))
def test_random_layers(seed: int) -> None:
    rng = random.Random(seed)
    layer, tiles = random_layer(rng)
    if tiles:
        assert_computes(schedule(layer, rng.choice(tiles), rng.choice([1, 2])), seed)


def random_layer(rng: random.Random) -> tuple[Layer, list[Tile]]:
    """A layer and the tiles that fit; mostly there are some."""
    choose: Any = rng.choice
    transposed = rng.random() < 0.3
    groups, ins, outs = choose(
        [(1, choose([3, 16, 48]), choose([10, 16, 80])), (1, 32, 32), (2, 64, 32), (32, 32, 32), (8, 32, 32)]
    )
    try:
        layer = Layer(
            *(ins, outs, choose([1, 4, 7, 9]), choose([1, 5, 8])),
            kernel=(choose([1, 1, 2, 3, 5]), choose([1, 2, 3])),
            stride=(choose([1, 2]), choose([1, 2, 3])),
            padding=(choose([0, 1]), choose([0, 1, 2]), choose([0, 1]), choose([0, 1])),
            dilation=(1, 1) if transposed else (choose([1, 1, 2]), 1),
            groups=groups,
            images=choose([1, 1, 3]),
            epilogue=choose(list(EPILOGUES.values())),
            transposed=transposed,
            extra=(0, choose([0, 1])) if transposed else (0, 0),
        )
    except ValueError:  # a window that does not fit
        return random_layer(rng)
    return layer, candidates(layer, DEFAULT, 2)


def test_what_is_no_layer() -> None:
    with pytest.raises(ValueError, match="windows of layer do not fit 2 x 2 pixels"):
        Layer(16, 16, 2, 2, (3, 3))
    with pytest.raises(ValueError, match="48 and 96 channels are not in 5 equal groups"):
        Layer(48, 96, groups=5)
    with pytest.raises(ValueError, match="max pooling is the last step"):
        Layer(16, 16, 8, 8, epilogue=(POOL, POOL))
    with pytest.raises(ValueError, match="an epilogue adds one bias"):
        Layer(16, 16, epilogue=(AddBias(), AddBias()))
    with pytest.raises(ValueError, match="a residual shifted by 11 bits is added after a shift or bound"):
        best_schedule(Layer(16, 16, epilogue=(ShiftRight(1), AddResidual(11))))
    with pytest.raises(ValueError, match="no room for"):
        schedule(Layer(1024, 512), Tile(1, 1, 32, 64, 1, 1))
    with pytest.raises(ValueError, match="it takes 20000 elements of inp, which has 2048"):
        best_schedule(Layer(16, 16, 1, 40_000, (1, 20_000), name="wide"))


def test_sums_between_the_windows_of_a_transposed_convolution() -> None:
    """No product goes there: they are zeros, and hardware stores what the ALU wrote, not what a reset did."""
    layer = Layer(16, 16, 3, 4, (1, 2), (2, 3), transposed=True, extra=(1, 0))
    assert_computes(best_schedule(layer, tried=1))
    wide = best_schedule(attrs.evolve(layer, wide=True), tried=1)
    x, weights, _, _ = operands(layer)
    found = simulate(layer_program(wide, packed_weights(layer, weights)), packed_inputs(layer, x))["out"]
    planes = [unpack_activations(plane, 1, 16) for plane in found]
    np.testing.assert_array_equal(np.stack(planes, -1).view(np.int32)[..., 0], apply(wide.layer, x, weights))
