"""Scheduled layers as programs: their streams, with buffers at addresses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs
import numpy as np

from relay.codegen.vta.config import DEFAULT, Config
from relay.codegen.vta.encoding import encode_micro_ops
from relay.codegen.vta.layers.layer import Layer
from relay.codegen.vta.layers.packing import bias_row, pack_activations, pack_bias, pack_bias_weights, pack_weights
from relay.codegen.vta.layers.scheduling import BIAS_ROW, IDENTITIES, ScheduledLayer, schedule_into
from relay.codegen.vta.layers.streams import UOPS, StreamBuilder
from relay.codegen.vta.layout import Memory
from relay.codegen.vta.program import PAGE, Allocator, Program, Role, Section

_CONSTANTS = ("wgt", "acc", "bia")


def packed_weights(layer: Layer, weights: np.ndarray, bias: np.ndarray | None = None) -> dict[str, np.ndarray]:
    """The constant operands of a layer, packed, by the names of their buffers.
    weights: (int8, (o, c / groups, kh, kw)), bias: (int32, (o,))."""
    found = {"wgt": pack_weights(np.asarray(weights, np.int8), layer.groups, layer.block)}
    if layer.bias is not None:
        assert bias is not None
        if layer.bias.by_product:
            found["bia"] = pack_bias_weights(bias, layer.block)
        else:
            found["acc"] = pack_bias(bias, layer.batch, layer.block)
    return found


def alignment(config: Config) -> int:
    """The alignment of the addresses of buffers: pages, and elements of all memories."""
    return max(PAGE, *(config.element_bytes(memory) for memory in Memory))


def layer_program(scheduled: ScheduledLayer, constants: Mapping[str, np.ndarray], config: Config = DEFAULT) -> Program:
    """The program of a layer, which reads the buffers inp and res0, res1 .., and writes out. `constants` are those of
    `packed_weights`."""
    layer, stream = scheduled.layer, scheduled.stream
    buffers = Allocator(alignment=alignment(config))
    buffers.add(UOPS, Role.MICRO_OPS, data=encode_micro_ops(stream.uops, config))
    used = set(stream.buffers)
    fixed = {**constants, IDENTITIES: scheduled.identities, BIAS_ROW: bias_row(layer.block, layer.batch)}
    for name, array in fixed.items():
        if name in used:
            buffers.add(name, Role.CONSTANT, data=np.ascontiguousarray(array))
    for name, shape in layer.operand_shapes.items():
        if name not in _CONSTANTS:
            buffers.add(name, Role.INPUT, shape, np.int8)
    buffers.add("out", Role.OUTPUT, layer.result_shape, np.int8)
    return Program(config, stream.at({b.name: b.address for b in buffers.buffers}, config), buffers.buffers)


@attrs.frozen(eq=False)
class StreamPart:
    """A layer in a stream: its constants, and the names of the buffers that it reads (inp, res0 ..) and writes."""

    name: str
    scheduled: ScheduledLayer
    constants: Mapping[str, np.ndarray]
    operands: tuple[str, ...]
    result: str


def stream_program(
    parts: Sequence[StreamPart], inputs: Sequence[str], outputs: Sequence[str], config: Config = DEFAULT
) -> Program:
    """The program of several layers, one after the other. What is neither input nor output stays in DRAM between them.
    The constants of the layer n are the buffers wgt{n}, acc{n}, bia{n} and one{n}."""
    out = StreamBuilder(config)
    arrays: dict[str, np.ndarray] = {}
    shapes: dict[str, tuple[int, ...]] = {}
    for number, part in enumerate(parts):
        layer = part.scheduled.layer
        fixed = {**part.constants, IDENTITIES: part.scheduled.identities}
        names = {name: f"{name}{number}" for name in fixed} | {"inp": part.operands[0], "out": part.result}
        names |= {f"res{n}": name for n, name in enumerate(part.operands[1:])}
        schedule_into(out, layer, part.scheduled.tile, part.scheduled.threads, names)
        arrays |= {names[name]: array for name, array in fixed.items()}
        arrays[BIAS_ROW] = bias_row(layer.block, layer.batch)
        shapes |= {names[name]: shape for name, shape in layer.operand_shapes.items() if name not in _CONSTANTS}
        shapes[part.result] = layer.result_shape
    stream = out.finish()
    buffers = Allocator(alignment=alignment(config))
    buffers.add(UOPS, Role.MICRO_OPS, data=encode_micro_ops(stream.uops, config))
    used = set(stream.buffers)
    for name, array in arrays.items():
        if name in used:
            buffers.add(name, Role.CONSTANT, data=np.ascontiguousarray(array))
    roles = dict.fromkeys(inputs, Role.INPUT) | dict.fromkeys(outputs, Role.OUTPUT)
    for name, shape in shapes.items():
        buffers.add(name, roles.get(name, Role.SCRATCH), shape, np.int8)
    instructions = stream.at({b.name: b.address for b in buffers.buffers}, config)
    ends = [*stream.sections[1:], len(instructions)]
    sections = [
        Section(p.name, *ends_) for p, ends_ in zip(parts, zip(stream.sections, ends, strict=True), strict=True)
    ]
    return Program(config, instructions, buffers.buffers, sections)


def packed_inputs(layer: Layer, x: np.ndarray, residuals: tuple[np.ndarray, ...] = ()) -> dict[str, np.ndarray]:
    """The operands that are not constant, packed. x: (int8, (n, c, h, w)), residuals: (int8, (n, o, h', w'))."""
    found = {"inp": pack_activations(x, layer.batch, layer.block)}
    for number, residual in enumerate(residuals):
        found[f"res{number}"] = pack_activations(residual, layer.batch, layer.block)
    return found
