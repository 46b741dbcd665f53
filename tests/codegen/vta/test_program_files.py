"""Programs as files: the bytes that another simulator reads, round trips, and refusals. And programs that move."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import attrs
import numpy as np
import pytest
from accelerator.streams import Stream, random_stream
from hypothesis import given
from hypothesis import strategies as st

from relay.codegen.vta.assembler import parse_instructions
from relay.codegen.vta.config import Config
from relay.codegen.vta.encoding import encode_stream
from relay.codegen.vta.errors import ProgramError
from relay.codegen.vta.isa import Load, Store
from relay.codegen.vta.layout import Memory
from relay.codegen.vta.program import PAGE, Allocator, Buffer, Program, Role
from relay.codegen.vta.program_files import program_files, program_of_files, read_program, write_program
from relay.codegen.vta.simulator.findings import Checks
from relay.codegen.vta.simulator.run import examine, simulate
from relay.errors import CompileError

STREAM = Stream(micro_ops=[(0, 0, 0), (1, 1, 1)])


def small() -> Program:
    return STREAM.program([STREAM.load("uop"), *parse_instructions("GEMM reset uop=0..2")])


def test_the_files_of_a_program() -> None:
    program = small()
    files = program_files(program)
    manifest = json.loads(files["manifest.json"])
    assert (manifest["format"], manifest["version"], manifest["hardware_version"]) == ("relay-vta-program", 1, "0.0.2")
    assert files["instructions.bin"] == encode_stream(program.instructions, program.config)
    assert struct.unpack("<2I", files["micro_ops.bin"]) == (0, 1 | 1 << 11 | 1 << 22)
    entries = {entry["name"]: entry for entry in manifest["buffers"]}
    assert entries["uop"] == {
        "name": "uop",
        "role": "micro-ops",
        "address": 4096,
        "dtype": "uint32",
        "shape": [2],
        "size": 8,
        "file": "micro_ops.bin",
        "offset": 0,
    }
    assert entries["out"]["file"] is None and entries["out"]["offset"] is None
    for name in ("inp", "wgt", "acc"):
        entry, data = entries[name], program[name].data
        assert data is not None
        start = entry["offset"]
        assert files["dram.bin"][start : start + entry["size"]] == data.astype(data.dtype.newbyteorder("<")).tobytes()


@given(st.integers(0, 2**32))
def test_programs_come_back_from_their_files(seed: int) -> None:
    stream, found = random_stream(seed)
    program = stream.program(found)
    again = program_of_files(program_files(program))
    assert again.config == program.config and again.instructions == program.instructions
    assert [attrs.astuple(b)[:5] for b in again.buffers] == [attrs.astuple(b)[:5] for b in program.buffers]
    everything = Checks(lints=False)
    ours, other = examine(program, checks=everything), examine(again, checks=everything)
    assert all((ours[b.name] == other[b.name]).all() for b in program.buffers)


def test_a_folder_holds_the_files(tmp_path: Path) -> None:
    program = small()
    write_program(program, tmp_path / "new" / "program")
    assert read_program(tmp_path / "new" / "program").instructions == program.instructions
    with pytest.raises(FileNotFoundError):
        read_program(tmp_path)


def changed(**values: object) -> dict[str, bytes]:
    """The files of a program with another manifest."""
    files = program_files(small())
    return {**files, "manifest.json": json.dumps({**json.loads(files["manifest.json"]), **values}).encode()}


def changed_buffer(**values: object) -> dict[str, bytes]:
    """The same, with another first buffer."""
    buffers = json.loads(program_files(small())["manifest.json"])["buffers"]
    return changed(buffers=[{**buffers[0], **values}, *buffers[1:]])


BAD = [
    ({**program_files(small()), "manifest.json": b"{"}, "manifest.json is no JSON"),
    ({**program_files(small()), "manifest.json": b"\xff"}, "manifest.json is no JSON"),
    ({**program_files(small()), "manifest.json": b"[]"}, "is an object, found list"),
    (changed(format="x"), "is of the format 'relay-vta-program', found 'x'"),
    (changed(version=2), "is of version 1, found 2"),
    ({**program_files(small()), "dram.bin": b""}, "dram.bin is not the file that manifest.json has a checksum of"),
    (changed(sha256=None), "instructions.bin is not the file"),
    (changed(config={}), "config in manifest.json has log_acc_buffer, "),
    (changed(config={**json.loads(program_files(small())["manifest.json"])["config"], "log_block": 99}), "log_block"),
    (changed(instructions=7), "says 7 instructions, instructions.bin has 3"),
    (changed(buffers={}), "buffers in manifest.json is a list"),
    (changed(buffers=[1]), "a buffer in manifest.json is an object, found 1"),
    (changed_buffer(role="x"), "has a name, a role and a dtype, found 'uop', 'x' and 'uint32'"),
    (changed_buffer(name="a b"), "a buffer's name has no spaces and no `#`, found 'a b'"),
    (changed_buffer(role=["input"]), "has a name, a role and a dtype"),
    (changed_buffer(file=["dram.bin"]), "which is none of micro_ops.bin, dram.bin"),
    (changed_buffer(dtype="float32"), "found 'uop', 'micro-ops' and 'float32'"),
    (changed_buffer(shape=[-1]), "shape in manifest.json is a number from 0 on, found -1"),
    (changed_buffer(shape=2), "shape in manifest.json is a list, found 2"),
    (changed_buffer(size=4), "the buffer uop has 8 bytes by its shape, 4 by its size"),
    (changed_buffer(file="/etc/passwd"), "the buffer uop is in '/etc/passwd', which is none of"),
    (changed_buffer(offset=4), "the buffer uop goes beyond the end of micro_ops.bin"),
    (changed_buffer(address=4097), "not a multiple of 0x1000"),
]


@pytest.mark.parametrize(("files", "message"), BAD, ids=[message for _, message in BAD])
def test_files_that_are_no_program(files: dict[str, bytes], message: str) -> None:
    with pytest.raises(CompileError, match=message):
        program_of_files(files)


# ---- buffers


def test_buffers_begin_at_pages_of_their_own() -> None:
    allocator = Allocator()
    sizes = (1, 4096, 4097, 0, 16)
    addresses = [allocator.add(f"b{i}", Role.SCRATCH, (size,)).address // PAGE for i, size in enumerate(sizes)]
    assert addresses == [1, 2, 3, 5, 6]


@pytest.mark.parametrize(
    ("buffers", "message"),
    [
        ([(0, 4)], "the buffer b0 lies at 0x0 to 0x4, which is not in DRAM from 0x1000"),
        ([(0xFFFFF000, 4097)], "lies at 0xfffff000 to 0x100000001"),
        ([(0x1000, 4097), (0x2000, 1)], "the buffers b0 .* and b1 .* overlap"),
        ([(0x1010, 4)], "0x1010, which is not a multiple of 0x1000"),
    ],
)
def test_buffers_that_there_cannot_be(buffers: list[tuple[int, int]], message: str) -> None:
    made = [Buffer(f"b{i}", Role.SCRATCH, address, (size,), np.int8) for i, (address, size) in enumerate(buffers)]
    with pytest.raises(ProgramError, match=message):
        Program(STREAM.config, (), made)


def test_two_buffers_of_one_name_and_data_of_another_shape() -> None:
    buffer = Buffer("b", Role.SCRATCH, PAGE, (4,), np.int8)
    with pytest.raises(ProgramError, match="there are two buffers b"):
        Program(STREAM.config, (), [buffer, attrs.evolve(buffer, address=2 * PAGE)])
    with pytest.raises(ProgramError, match=r"the buffer b has int8 \(4,\), found int8 \(3,\)"):
        Program(STREAM.config, (), [attrs.evolve(buffer, data=np.zeros(3, np.int8))])


def test_a_moved_program_does_the_same() -> None:
    """Only addresses in DRAM change, and transfers of nothing keep theirs."""
    stream, found = random_stream(5)
    program = stream.program(found)
    ends = max(buffer.end for buffer in program.buffers) // PAGE + 1
    moved = program.relocate({"inp": (ends + 7) * PAGE, "out": ends * PAGE})
    assert moved["inp"].address == (ends + 7) * PAGE and moved["wgt"].address == program["wgt"].address
    for before, after in zip(program.instructions, moved.instructions, strict=True):
        if before != after:
            assert isinstance(before, Load | Store) and before.memory is not Memory.WGT and before.x_size
            assert attrs.evolve(after, dram=before.dram) == before  # type: ignore[call-arg]
    checks = Checks(lints=False)
    assert (simulate(program, checks=checks)["out"] == simulate(moved, checks=checks)["out"]).all()


def test_elements_larger_than_a_page_stay_at_multiples_of_their_size() -> None:
    config = Config(log_block=7)
    stream = Stream(config)
    program = stream.program([stream.load("wgt", 1)])
    assert config.element_bytes(Memory.WGT) == 16384
    start = program["wgt"].address
    with pytest.raises(ProgramError, match="elements of 16384 bytes must stay at multiples of their size"):
        program.relocate({"wgt": start + (1 << 24) + PAGE})


def test_programs_that_cannot_move() -> None:
    program = small()
    with pytest.raises(ProgramError, match="there is no buffer x"):
        program.relocate({"x": PAGE})
    with pytest.raises(ProgramError, match="overlap"):
        program.relocate({"inp": program["wgt"].address})
