"""Programs for accelerators of several configurations: the interpreter's bits, and what another simulator, which reads
the files of the streams, makes of them."""

from __future__ import annotations

import ast
import itertools
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from accelerator.machine import CHISEL, DESIGNS, SIMULATOR, Machine
from accelerator.streams import random_stream
from hypothesis import given, settings
from hypothesis import strategies as st

import relay
from relay.codegen.runtime import cpu
from relay.codegen.vta.program import Role
from relay.codegen.vta.program_files import write_program
from relay.codegen.vta.simulator.findings import NONE
from relay.codegen.vta.simulator.run import Simulator, examine

RANDOM = np.random.default_rng(3)


def eight_bits(*shape: int) -> np.ndarray:
    """Random 8-bit numbers."""
    return RANDOM.integers(-128, 128, shape).astype(np.int8)


UP, KERNEL, DENSE = eight_bits(32, 16, 4, 4), eight_bits(32, 16, 3, 3), eight_bits(10, 16)
SMALL, DEPTHWISE, ODD = eight_bits(32, 4, 3, 3), eight_bits(32, 1, 3, 3), eight_bits(24, 10, 3, 3)
BIAS = RANDOM.integers(-90_000, 90_000, (32, 1, 1)).astype(np.int32)


@relay
def requantize(sums: Any) -> Any:
    return relay.cast(relay.minimum(relay.maximum((sums + 512) >> 10, -127), 127), "int8")


@relay
def transposed(x: Any) -> Any:
    return requantize(relay.quantized_conv2d_transpose(x, UP, stride=2, padding=1))


@relay
def sums_of_32_bits(x: Any) -> Any:
    return relay.quantized_conv2d(x, KERNEL, padding=1) * 3


@relay
def dense(x: Any) -> Any:
    return relay.cast(relay.quantized_dense(x, DENSE), "float32") * 0.01


@relay
def small_groups(x: Any) -> Any:
    return relay.max_pool2d(requantize(relay.quantized_conv2d(x, SMALL, groups=8, padding=1)), 2)


@relay
def depthwise(x: Any) -> Any:
    return requantize(relay.quantized_conv2d(x, DEPTHWISE, groups=32, padding=1, stride=2))


@relay
def odd_channels(x: Any) -> Any:
    h = requantize(relay.quantized_conv2d(x, ODD, padding=(1, 0), stride=(2, 1)))
    return requantize(relay.cast(h, "int32") + (relay.cast(h, "int32") << 5))


@relay
def residual(x: Any) -> Any:
    y = requantize(relay.quantized_conv2d(x, KERNEL, padding=1) + BIAS)
    z = requantize(relay.quantized_conv2d(y, DEPTHWISE, padding=1, groups=32) + (relay.cast(y, "int32") << 2))
    return relay.max_pool2d(z, 3, stride=2, padding=1)


PROGRAMS = [
    (transposed, eight_bits(2, 32, 5, 6)), (sums_of_32_bits, eight_bits(1, 16, 6, 5)), (dense, eight_bits(4, 16)),
    (small_groups, eight_bits(1, 32, 6, 6)), (depthwise, eight_bits(3, 32, 7, 8)),
    (odd_channels, eight_bits(1, 10, 9, 9)), (residual, eight_bits(1, 16, 6, 6)),
]  # fmt: skip
SMALL_BLOCKS = "vta, log_block=3, log_wgt_buffer=16, log_inp_buffer=14, log_acc_buffer=16, threads=1"
TARGETS = itertools.cycle(["vta, log_batch=1", "vta, log_block=5", SMALL_BLOCKS])


@pytest.mark.parametrize(("function", "x"), PROGRAMS, ids=lambda v: getattr(v, "__name__", ""))
def test_programs_in_several_configurations(function: relay.RelayFunction, x: np.ndarray, tmp_path: Path) -> None:
    exact = function.interpret(x)
    for target in ("vta", next(TARGETS)):
        executable = function.compile(x, target=target)
        np.testing.assert_array_equal(executable(x), exact)
        for program in executable.vta_program().values():
            inputs = {b.name: eight_bits(*b.shape) for b in program.buffers if b.role is Role.INPUT}
            found = Simulator(program).run(inputs)  # with all rules
            write_program(program, tmp_path)
            for seed, design in enumerate(DESIGNS):
                if design != CHISEL or target == "vta":  # its decoder is for the default
                    assert_same_as_the_machine(tmp_path, inputs, found, design, seed)


def assert_same_as_the_machine(
    folder: Path, inputs: dict[str, np.ndarray], found: Any, design: str = SIMULATOR, seed: int | None = None
) -> None:
    """The other simulator leaves the same bytes in all buffers; with a seed, whatever was in memory before."""
    machine = Machine(folder, inputs, design, seed)
    machine.run()
    for name in machine.buffers:
        np.testing.assert_array_equal(machine[name].view(np.uint8), found[name].view(np.uint8), name)


@settings(max_examples=25)
@given(st.integers(0, 2**32 - 1))
def test_random_streams_on_another_simulator(tmp_path_factory: pytest.TempPathFactory, seed: int) -> None:
    stream, instructions = random_stream(seed)
    program = stream.program(instructions)
    found = examine(program, checks=NONE)
    if found.findings:
        return
    folder = tmp_path_factory.mktemp("stream")
    write_program(program, folder)
    assert_same_as_the_machine(folder, {}, found)


REFUSED = {
    "vta, log_inp_buffer=16": "the fields of a GEMM of this configuration do not fit 128 bits",
    "vta, log_inp_width=4": "has numbers of other widths",
    "vta, blocks=5": "has the option 'blocks=5'",
    "vta, log_block=-1": "has the option 'log_block=-1'",
    "vta, log_block=5, log_block=4": "has log_block twice",
    "vta, threads=3": "there are 1 or 2 virtual threads, found 3",
    "vta5": "there is no target 'vta5'; programs run on 'cpu', 'cuda' and 'vta'",
}


@pytest.mark.parametrize("target", REFUSED)
def test_targets_that_there_are_not(target: str) -> None:
    with pytest.raises(relay.CompileError, match=REFUSED[target]):
        dense.compile(eight_bits(4, 16), target=target)


IN_ANOTHER_PROCESS = """
import sys
import numpy as np
import relay
executable = relay.load(sys.argv[1])
print(np.asarray(executable(np.load(sys.argv[2]))).tolist())
assert not {"tvm", "torch"} & set(sys.modules)
"""


def test_streams_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The cache keeps programs with their streams, apart by targets; an exported one needs no compiler."""
    monkeypatch.setenv("RELAY_CACHE_DIR", str(tmp_path / "kept"))
    monkeypatch.setenv("RELAY_CACHE_SIZE", str(1 << 22))
    compiled = []
    original = cpu.compile_native
    monkeypatch.setattr(cpu, "compile_native", lambda *given: compiled.append(given) or original(*given))
    x = eight_bits(2, 16)
    for target in ("vta", "vta", "vta, threads=1", "cpu", "vta"):
        dense.reload()
        executable = dense.compile(x, target=target)
        np.testing.assert_array_equal(executable(x), dense.interpret(x))
        assert target == "cpu" or list(executable.vta_program()) == ["vta_1"]
    assert len(compiled) == 3
    executable.export(tmp_path / "dense.so")
    np.save(tmp_path / "x.npy", x)
    command = [sys.executable, "-c", IN_ANOTHER_PROCESS, tmp_path / "dense.so", tmp_path / "x.npy"]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    np.testing.assert_array_equal(np.float32(ast.literal_eval(printed)), dense.interpret(x))
