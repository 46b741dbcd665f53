"""Layers of one stream, which overlap: the weights of a layer come while the one before is computed."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import attrs
import numpy as np
from accelerator.machine import DESIGNS, Machine
from hypothesis import given, settings
from hypothesis import strategies as st

from relay.codegen.vta.isa import Load
from relay.codegen.vta.layers.layer import AddBias, AddResidual, Layer, MaxPool, apply, requantization
from relay.codegen.vta.layers.packing import pack_activations, unpack_activations
from relay.codegen.vta.layers.programs import StreamPart, packed_weights, stream_program
from relay.codegen.vta.layers.scheduling import schedule
from relay.codegen.vta.layers.search import best_schedule
from relay.codegen.vta.layers.streams import StreamBuilder
from relay.codegen.vta.layers.tiles import Tile
from relay.codegen.vta.layout import Memory
from relay.codegen.vta.program import Program
from relay.codegen.vta.program_files import write_program
from relay.codegen.vta.simulator.cycles import estimate, section_timings
from relay.codegen.vta.simulator.run import simulate


class Chain:
    """Layers that read each other's results, with random operands; residuals are a layer's operand."""

    def __init__(self, layers: Sequence[Layer], threads: int = 2, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        self.layers = layers
        first, last = layers[0], layers[-1]
        self.x = rng.integers(-128, 128, (1, first.channels_in, first.height, first.width)).astype(np.int8)
        value, parts = self.x, []
        for number, layer in enumerate(layers):
            weights = rng.integers(-128, 128, (layer.channels_out, layer.channels_in // layer.groups, *layer.kernel))
            bias = rng.integers(-100_000, 100_000, layer.channels_out).astype(np.int32)
            constants = packed_weights(layer, weights.astype(np.int8), bias)
            names = [f"t{number}"] * (1 + layer.residuals)
            scheduled = best_schedule(layer, threads, tried=1)
            parts.append(StreamPart(f"{number}", scheduled, constants, tuple(names), f"t{number + 1}"))
            value = apply(layer, value, weights.astype(np.int8), bias, (value,) * layer.residuals)
        self.parts, self.expected, self.result = parts, value, f"t{len(layers)}"
        self.channels = last.channels_out
        self.inputs = {"t0": pack_activations(self.x)}

    @property
    def program(self) -> Program:
        """All layers in one stream."""
        return stream_program(self.parts, ["t0"], [self.result])

    def assert_computed(self, packed: np.ndarray) -> None:
        """The result is what the layers are in NumPy."""
        np.testing.assert_array_equal(unpack_activations(packed, 1, self.channels), self.expected)


def convolution(ins: int, outs: int, kernel: int = 3, size: int = 8, **more: object) -> Layer:
    """A convolution that keeps its size."""
    epilogue = (AddBias(True), *requantization(11, 0))
    pads = (kernel // 2,) * 4
    return Layer(ins, outs, size, size, (kernel, kernel), padding=pads, **{"epilogue": epilogue, **more})  # type: ignore[arg-type]


def test_weights_come_while_the_layer_before_is_computed() -> None:
    chain = Chain([convolution(32, 32), convolution(32, 32), convolution(32, 32)])
    program = chain.program
    chain.assert_computed(simulate(program, chain.inputs)[chain.result])
    timing = estimate(program.instructions, program.config)
    events = {event.position: event for event in timing.events}
    places = set()
    for section in program.sections[1:]:
        loads = [i for i in range(section.begin, section.end) if isinstance(program.instructions[i], Load)]
        early = next(i for i in loads if program.instructions[i].memory is Memory.WGT)  # type: ignore[union-attr]
        before = max(e.end for e in timing.events if e.position < section.begin)
        assert events[early].end < before
        assert not program.instructions[early].pop_next
        places.add(program.instructions[early].sram)  # type: ignore[union-attr]
    assert len(places) == 2  # of two layers that follow each other, neither writes what the other reads
    alone = sum(estimate(part.scheduled.stream.instructions, program.config).cycles for part in chain.parts)
    assert timing.cycles < alone - 100
    sections = section_timings(program)
    assert sum(t.cycles for t in sections.values()) <= timing.cycles <= sum(t.cycles for t in sections.values()) + 10


def test_layers_whose_weights_fill_the_scratchpad_wait() -> None:
    chain = Chain([convolution(128, 128, size=3), convolution(128, 128, size=3)])
    whole = Tile(images=1, groups=1, outs=8, ins=8, height=3, width=3)
    chain.parts = [attrs.evolve(p, scheduled=schedule(p.scheduled.layer, whole)) for p in chain.parts]
    program = chain.program
    chain.assert_computed(simulate(program, chain.inputs)[chain.result])
    second = program.instructions[program.sections[1].begin :]
    (first, *_) = [i for i in second if isinstance(i, Load) and i.memory is Memory.WGT]
    assert first.pop_next


def test_where_weights_are_placed() -> None:
    """Behind those of the section before, or else in front of them, or else from the beginning."""
    builder = StreamBuilder()
    assert [builder.place_weights(count) for count in (600, 400, 600, 500, 500, 500)] == [
        *((0, True), (600, True), (0, True), (0, False), (500, True), (0, True))
    ]


def random_chain(seed: int) -> Chain:
    """Up to four layers of several kinds."""
    rng = random.Random(seed)
    layers, channels, size = [], rng.choice([10, 16, 48]), rng.choice([2, 5, 7])
    for _ in range(rng.choice([2, 3, 4])):
        outs = rng.choice([16, 24, 64])
        shift = requantization(rng.choice([9, 12]))
        kind = rng.choice(["convolution", "point", "residual", "depthwise", "pooled"])
        if kind == "convolution":
            bias = AddBias(rng.random() < 0.5)
            layer = convolution(channels, outs, rng.choice([3, 5]), size, epilogue=(bias, *shift))
        elif kind == "point":
            layer = convolution(channels, outs, 1, size, epilogue=shift)
        elif kind == "residual":
            layer = convolution(channels, channels, 3, size, epilogue=(AddResidual(rng.choice([2, 9])), *shift))
        elif kind == "depthwise":
            layer = convolution(channels, channels, 3, size, groups=channels, epilogue=shift)
        else:
            layer = convolution(channels, outs, 3, size, epilogue=(*shift, MaxPool((2, 2), (1, 1))))
        layers.append(layer)
        channels, size = layer.channels_out, layer.extents[0]
        if size < 2:
            break
    return Chain(layers, rng.choice([1, 2, 2]), seed)


@settings(max_examples=10)
@given(st.integers(0, 2**32 - 1))
def test_random_chains(seed: int) -> None:
    """They keep all rules, so no order of the units makes other numbers."""
    chain = random_chain(seed)
    chain.assert_computed(simulate(chain.program, chain.inputs)[chain.result])


def test_chains_on_another_simulator(tmp_path: Path) -> None:
    chain = Chain([convolution(16, 16, size=4), convolution(16, 32, 1, 4), convolution(32, 16, size=4)])
    write_program(chain.program, tmp_path)
    for seed, design in enumerate(DESIGNS):
        machine = Machine(tmp_path, chain.inputs, design, seed)
        machine.run()
        chain.assert_computed(machine[chain.result])
