"""The accelerator as a target: what runs there, that it gives the interpreter's bits, and what is refused."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import relay
from relay.codegen.vta.layers.layer import AddBias, AddResidual, MaxPool, ShiftRight
from relay.codegen.vta.offloading.offload import OffloadedModule, offload
from relay.codegen.vta.program import Role
from relay.codegen.vta.simulator.run import simulate
from relay.eval import interpreter
from relay.ir.expr import Call, OpCall
from relay.ir.traverse import walk
from relay.ir.validation.check import check
from relay.transform.pipeline import optimize

RANDOM = np.random.default_rng(0)


def weights(*shape: int) -> np.ndarray:
    """Random 8-bit weights."""
    return RANDOM.integers(-20, 20, shape).astype(np.int8)


KERNEL, WIDE, SMALL = weights(16, 16, 3, 3), weights(40, 16, 1, 1), weights(16, 2, 3, 3)
FIRST, DENSE = weights(16, 3, 3, 3), weights(24, 16)
BIAS = RANDOM.integers(-2000, 2000, (16, 1, 1)).astype(np.int32)
IMAGES = RANDOM.integers(-100, 100, (3, 1, 16, 6, 6)).astype(np.int8)


@relay
def requantize(sums: Any) -> Any:
    return relay.cast(relay.minimum(relay.maximum((sums + 64) >> 7, 0), 127), "int8")


@relay(target="vta")
def early_exit(xs: Any, limit: Any) -> Any:
    """A loop over images, and in it one that ends when the data say so."""
    total = 0
    for i in range(xs.shape[0]):
        h = requantize(relay.quantized_conv2d(xs[i], KERNEL, padding=1) + BIAS)
        for _ in range(3):
            h = requantize(relay.quantized_conv2d(h, KERNEL, padding=1))
            if relay.sum(relay.cast(h, "int32")) > limit:
                break
        total += relay.sum(relay.cast(h, "int32") * 3)
    return total


def test_control_flow_around_layers() -> None:
    results = set()
    for limit in (100, 20_000):
        found = early_exit(IMAGES, np.int32(limit))
        assert found == early_exit.interpret(IMAGES, np.int32(limit))
        results.add(int(found))
    assert len(results) == 2  # the exits are taken
    executable = early_exit.compile(IMAGES, np.int32(0))
    assert sections(executable) == [["vta_quantized_conv2d_1"], ["vta_quantized_conv2d_2"]]


def sections(executable: Any) -> list[list[str]]:
    """The layers in each of a program's streams."""
    return [[section.name for section in program.sections] for program in executable.vta_program().values()]


def test_exported_programs_have_their_streams(tmp_path: Path) -> None:
    executable = early_exit.compile(IMAGES, np.int32(0))
    executable.export(tmp_path / "network.so")
    loaded = relay.load(tmp_path / "network.so")
    for limit in (100, 20_000):
        assert loaded(IMAGES, np.int32(limit)) == executable(IMAGES, np.int32(limit))
    programs = executable.vta_program()
    assert {n: p.instructions for n, p in loaded.vta_program().items()} == {
        n: p.instructions for n, p in programs.items()
    }
    del executable, programs  # what was compiled goes, what was loaded stays
    early_exit.forget_programs()
    gc.collect()
    assert loaded(IMAGES, np.int32(100)) == early_exit.interpret(IMAGES, np.int32(100))


@relay
def layers(x: Any) -> Any:
    """Each kind of layer, in NCHW: a first convolution for the host, residuals, pooling, groups, and dense."""
    h = requantize(relay.quantized_conv2d(x, FIRST, padding=1))
    h = relay.max_pool2d(h, 3, stride=2, padding=1)
    r = requantize(relay.quantized_conv2d(h, KERNEL, padding=1) + BIAS + (relay.cast(h, "int32") << 9))
    g = relay.max_pool2d(requantize(relay.quantized_conv2d(r, SMALL, padding=1, groups=8)), 2)
    wide = requantize(relay.quantized_conv2d(g, WIDE))
    both = relay.cast((relay.cast(wide, "int32") + (relay.cast(wide, "int32") << 1)) >> 2, "int8")
    rows = requantize(relay.quantized_dense(relay.reshape(g[:, :, 0, 0], (1, 16)), DENSE))
    return both, rows


def offloaded(function: relay.RelayFunction, *arguments: Any) -> OffloadedModule:
    """The optimized program with its layers as functions, which is checked."""
    made = offload(function.core(*arguments))
    check(made.module, "structured")
    return made


def test_kinds_of_layers() -> None:
    x = RANDOM.integers(-100, 100, (1, 3, 12, 12)).astype(np.int8)
    made = offloaded(layers, x)
    exact = layers.interpret(x)
    for found in (interpreter.run(made.module, [x]), layers.compile(x, target="vta")(x)):
        for one, other in zip(found, exact, strict=True):
            np.testing.assert_array_equal(one, other)
    calls = [b.value for b in walk(made.module.main.body)]
    assert [name.removeprefix("vta_").rsplit("_", 1)[0] for name in made.layers] == [
        *("max_pool2d", "quantized_conv2d", "quantized_conv2d", "quantized_conv2d", "cast", "quantized_dense")
    ]
    assert sum(isinstance(call, Call) for call in calls) == len(made.streams) == 2  # the host takes a slice between
    products = [c for c in calls if isinstance(c, OpCall) and c.operator == "quantized_conv2d"]
    assert len(products) == 1  # of three channels: the host computes it


def test_packed_tensors_flow_between_layers() -> None:
    @relay
    def chain(x: Any) -> Any:
        for _ in range(3):
            x = requantize(relay.quantized_conv2d(x, KERNEL, padding=1))
        return x

    made = offloaded(chain, IMAGES[0])
    straight = [b.value.operator for b in made.module.main.body.bindings if isinstance(b.value, OpCall)]
    assert straight.count("quantized_conv2d") == 0

    @relay
    def in_a_row(x: Any) -> Any:
        y = requantize(relay.quantized_conv2d(x, KERNEL, padding=1))
        return requantize(relay.quantized_conv2d(y, KERNEL, padding=1) + (relay.cast(x, "int32") << 2))

    made = offloaded(in_a_row, IMAGES[0])
    bindings = [b.value for b in made.module.main.body.bindings]
    names = [c.operator if isinstance(c, OpCall) else "stream" for c in bindings]
    assert names == ["layout_transform", "stream", "layout_transform"]  # of the layout pass, in and out
    (program,) = (call.program for call in made.streams.values())
    assert [s.name for s in program.sections] == ["vta_quantized_conv2d_1", "vta_quantized_conv2d_2"]
    assert [b.name for b in program.buffers if b.role is Role.SCRATCH] == ["t0"]  # it stays in DRAM
    assert np.array_equal(in_a_row.compile(IMAGES[0], target="vta")(IMAGES[0]), in_a_row.interpret(IMAGES[0]))


def test_a_quantized_network() -> None:
    """From floats to streams."""
    first, kernel, wide = (
        (RANDOM.normal(size=shape) * 0.15).astype(np.float32)
        for shape in ((16, 3, 3, 3), (16, 16, 3, 3), (32, 16, 1, 1))
    )
    bias, last = (RANDOM.normal(size=shape).astype(np.float32) for shape in ((16, 1, 1), (32, 4)))

    @relay
    def network(x: Any) -> Any:
        h = relay.max_pool2d(relay.relu(relay.conv2d(x, first, padding=1) + bias), 2)
        h = relay.relu(relay.conv2d(relay.relu(relay.conv2d(h, kernel, padding=1) + bias), kernel, padding=1) + h)
        return relay.mean(relay.relu(relay.conv2d(h, wide, stride=2)), axis=(2, 3)) @ last

    samples = [[RANDOM.normal(size=(1, 3, 12, 12)).astype(np.float32)] for _ in range(2)]
    quantized = relay.to_int8(network, samples, "max", integer=True)
    executable = quantized.compile(target="vta")
    for (x,) in samples:
        found = executable(x)
        np.testing.assert_array_equal(found, interpreter.run(quantized.module, [x]))
        np.testing.assert_allclose(found, network.interpret(x), atol=0.5)
    convolutions = [f"vta_quantized_conv2d_{n}" for n in (1, 2, 3)]
    assert sections(executable) == [["vta_max_pool2d_1", *convolutions], ["vta_quantized_dense_1"]]
    programs = executable.vta_program()
    assert list(offload(optimize(quantized.module)).streams) == list(programs)
    for program in programs.values():
        inputs = {
            b.name: RANDOM.integers(0, 127, b.shape).astype(np.int8) for b in program.buffers if b.role is Role.INPUT
        }
        simulate(program, inputs)  # with all rules: races, tokens, lints
    with pytest.raises(relay.CompileError, match="was compiled for the processor"):
        quantized.compile().vta_program()


SCALED = (RANDOM.normal(size=(16, 16, 3, 3)) * 0.1).astype(np.float32)


def test_weights_may_be_computed_from_constants() -> None:
    """Scales of a normalization, for instance."""

    @relay
    def scaled(x: Any) -> Any:
        return relay.relu(relay.conv2d(x, SCALED * 2, padding=1))

    x = RANDOM.normal(size=(1, 16, 4, 4)).astype(np.float32)
    quantized = relay.to_int8(scaled, [[x]], "max", integer=True)
    executable = quantized.compile(target="vta")
    assert sections(executable) == [["vta_quantized_conv2d_1"]]
    np.testing.assert_array_equal(executable(x), interpreter.run(quantized.module, [x]))


def test_the_host_computes_what_has_no_elements() -> None:
    @relay(target="vta")
    def pair(x: Any, y: Any) -> Any:
        return requantize(relay.quantized_conv2d(x, KERNEL)), requantize(relay.quantized_conv2d(y, KERNEL))

    empty, found = pair(IMAGES[0][:0], IMAGES[0])
    assert empty.shape == (0, 16, 4, 4)
    np.testing.assert_array_equal(found, pair.interpret(IMAGES[0][:0], IMAGES[0])[1])


def test_epilogues_are_fused() -> None:
    from relay.codegen.vta.offloading import clusters

    @relay
    def one(x: Any) -> Any:
        sums = relay.quantized_conv2d(x, KERNEL, padding=1) + BIAS + (relay.cast(x, "int32") << 3)
        return relay.max_pool2d(requantize(sums), 2)

    block = one.core(IMAGES[0]).main.body
    uses: dict[Any, int] = {}
    for binding in block.bindings:
        assert isinstance(binding.value, OpCall)
        for atom in binding.value.arguments:
            uses[atom] = uses.get(atom, 0) + 1
    found = [c for b in block.bindings if (c := clusters.Matcher(block.bindings, uses).match(b)) is not None]
    kinds = [type(step) for step in found[-1].layer.epilogue]
    assert len(found) == 1 and kinds[-1] is MaxPool
    assert {AddBias, AddResidual, ShiftRight} <= set(kinds)
    assert found[0].bias is not None and (found[0].bias == BIAS.ravel() + 64).all()  # the rounding is in the bias


@relay
def in_floats(x: Any) -> Any:
    return relay.relu(relay.conv2d(x, WIDE_FLOATS))


WIDE_FLOATS = WIDE.astype(np.float32)


@relay
def of_arguments(x: Any, w: Any) -> Any:
    return requantize(relay.quantized_conv2d(x, w))


@relay
def unsigned(x: Any) -> Any:
    return requantize(relay.quantized_conv2d(x, KERNEL))


@relay
def far(x: Any) -> Any:
    return requantize(relay.quantized_conv2d(x, LONG, padding=((0, 0), (20, 20))))


LONG = weights(16, 16, 1, 41)


@relay
def large(x: Any) -> Any:
    return requantize(relay.quantized_conv2d(x, LARGE))


LARGE = np.ones((16, 16, 60, 50), np.int8)


@relay
def nothing(x: Any) -> Any:
    return x + 1


REFUSED = [
    (in_floats, [np.zeros((1, 16, 4, 4), np.float32)], "in_floats is not quantized: conv2d computes in float32"),
    (of_arguments, [IMAGES[0], KERNEL], "its weights are computed at run time"),
    (unsigned, [IMAGES[0].view(np.uint8)], "it multiplies uint8 and int8"),
    (far, [IMAGES[0][..., :2].copy()], "a load puts at most 15 columns of zeros on a side, and it needs 20"),
    (large, [np.zeros((1, 16, 60, 50), np.int8)], "it takes 3000 elements of inp, which has 2048"),
    (nothing, [IMAGES[0]], "nothing has no layer for the target 'vta'"),
]


@pytest.mark.parametrize(("function", "arguments", "message"), REFUSED, ids=lambda v: getattr(v, "__name__", ""))
def test_what_is_refused(function: relay.RelayFunction, arguments: list[Any], message: str) -> None:
    """At the user's line, before anything runs."""
    with pytest.raises(relay.CompileError, match=message) as error:
        function.compile(*arguments, target="vta")
    assert error.value.span is not None and "test_target.py" in str(error.value.span)


def test_options() -> None:
    with pytest.raises(relay.CompileError, match="no symbolic sizes: leave dynamic=True out"):
        relay(lambda x: x, target="vta", dynamic=True)
    with pytest.raises(relay.CompileError, match="there is no target 'fpga'; programs run on 'cpu', 'cuda' and 'vta'"):
        early_exit.compile(IMAGES, np.int32(0), target="fpga")
