"""Programs of the accelerator as files, which other simulators can read. `docs/vta.md` has the format.

    manifest.json       the format's version, the configuration, the buffers, and a checksum of each file
    instructions.bin    16 bytes for each instruction
    micro_ops.bin       the contents of the buffers of micro-ops, 4 bytes for each
    dram.bin            the contents of all other buffers that have some

All numbers are little-endian.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

import attrs
import numpy as np

from relay.codegen.vta.config import HARDWARE_VERSION, Config
from relay.codegen.vta.encoding import decode_stream, encode_stream
from relay.codegen.vta.errors import ProgramError
from relay.codegen.vta.program import Buffer, Program, Role, Section

FORMAT = "relay-vta-program"
VERSION = 1
MANIFEST, INSTRUCTIONS, MICRO_OPS, DRAM = "manifest.json", "instructions.bin", "micro_ops.bin", "dram.bin"
_DTYPES = frozenset({"int8", "int16", "int32", "uint8", "uint16", "uint32"})


def program_files(program: Program) -> dict[str, bytes]:
    """The files of a program by their names."""
    images: dict[str, list[bytes]] = {MICRO_OPS: [], DRAM: []}
    sizes = dict.fromkeys(images, 0)
    buffers = []
    for buffer in program.buffers:
        entry: dict[str, object] = {
            "name": buffer.name,
            "role": buffer.role.value,
            "address": buffer.address,
            "dtype": buffer.dtype.name,
            "shape": list(buffer.shape),
            "size": buffer.size,
            "file": None,
            "offset": None,
        }
        if buffer.data is not None:
            file = MICRO_OPS if buffer.role is Role.MICRO_OPS else DRAM
            entry |= {"file": file, "offset": sizes[file]}
            images[file].append(buffer.raw(buffer.data).tobytes())
            sizes[file] += buffer.size
        buffers.append(entry)
    files = {INSTRUCTIONS: encode_stream(program.instructions, program.config)}
    files |= {name: b"".join(parts) for name, parts in images.items()}
    manifest = {
        "format": FORMAT,
        "version": VERSION,
        "hardware_version": HARDWARE_VERSION,
        "config": attrs.asdict(program.config),
        "instructions": len(program.instructions),
        "sections": [attrs.asdict(section) for section in program.sections],
        "buffers": buffers,
        "sha256": {name: hashlib.sha256(content).hexdigest() for name, content in files.items()},
    }
    return {MANIFEST: (json.dumps(manifest, indent=1) + "\n").encode(), **files}


def write_program(program: Program, folder: str | Path) -> None:
    """Write the files of a program into a folder, which is created. Raises OSError."""
    path = Path(folder)
    path.mkdir(parents=True, exist_ok=True)
    for name, content in program_files(program).items():
        (path / name).write_bytes(content)


def read_program(folder: str | Path) -> Program:
    """The program whose files are in a folder. Raises OSError, and CompileError for files that are none."""
    path = Path(folder)
    files = {name: (path / name).read_bytes() for name in (MANIFEST, INSTRUCTIONS, MICRO_OPS, DRAM)}
    return program_of_files(files)


def program_of_files(files: Mapping[str, bytes]) -> Program:
    """The program that files make. Raises CompileError for files that are none."""
    try:
        manifest = json.loads(files[MANIFEST])
    except (ValueError, RecursionError) as error:
        raise ProgramError(f"{MANIFEST} is no JSON: {error}") from None
    reader = _Manifest(manifest, files)
    reader.check_version()
    config = reader.config()
    instructions = decode_stream(files[INSTRUCTIONS], config)
    if reader.integer(reader.top, "instructions") != len(instructions):
        raise ProgramError(
            f"{MANIFEST} says {reader.top['instructions']} instructions, {INSTRUCTIONS} has {len(instructions)}"
        )
    buffers = [reader.buffer(entry) for entry in reader.list_of(reader.top, "buffers")]
    sections = reader.list_of(reader.top, "sections") if "sections" in reader.top else []
    return Program(config, instructions, buffers, [reader.section(entry) for entry in sections])


class _Manifest:
    """The manifest while it is read: every entry is checked, and a wrong one is a ProgramError."""

    def __init__(self, manifest: object, files: Mapping[str, bytes]) -> None:
        if not isinstance(manifest, dict):
            raise ProgramError(f"{MANIFEST} is an object, found {type(manifest).__name__}")
        self.top: dict[str, object] = manifest
        self.files = files

    def check_version(self) -> None:
        """Check that this can be read, and is whole."""
        if self.top.get("format") != FORMAT:
            raise ProgramError(f"{MANIFEST} is of the format {FORMAT!r}, found {self.top.get('format')!r}")
        if self.top.get("version") != VERSION:
            raise ProgramError(f"{MANIFEST} is of version {VERSION}, found {self.top.get('version')!r}")
        sums = self.top.get("sha256")
        for name in (INSTRUCTIONS, MICRO_OPS, DRAM):
            found = hashlib.sha256(self.files[name]).hexdigest()
            if not isinstance(sums, dict) or sums.get(name) != found:
                raise ProgramError(f"{name} is not the file that {MANIFEST} has a checksum of")

    def config(self) -> Config:
        """The configuration."""
        sizes = self.top.get("config")
        names = {field.name for field in attrs.fields(Config)}
        if not isinstance(sizes, dict) or set(sizes) != names:
            raise ProgramError(f"config in {MANIFEST} has {', '.join(sorted(names))}, found {sizes!r}")
        return Config(**sizes)

    def section(self, entry: object) -> Section:
        """A part of the stream."""
        if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
            raise ProgramError(f"a section in {MANIFEST} is an object with a name, found {entry!r}")
        return Section(entry["name"], self.integer(entry, "begin"), self.integer(entry, "end"))

    def buffer(self, entry: object) -> Buffer:
        """A buffer, with its contents."""
        if not isinstance(entry, dict):
            raise ProgramError(f"a buffer in {MANIFEST} is an object, found {entry!r}")
        name, role, dtype = entry.get("name"), entry.get("role"), entry.get("dtype")
        shape = self.list_of(entry, "shape")
        texts = all(isinstance(value, str) for value in (name, role, dtype))
        if not texts or role not in {r.value for r in Role} or dtype not in _DTYPES:
            raise ProgramError(
                f"a buffer in {MANIFEST} has a name, a role and a dtype, found {name!r}, {role!r} and {dtype!r}"
            )
        extents = [self.integer({"shape": extent}, "shape") for extent in shape]
        empty = Buffer(str(name), Role(role), self.integer(entry, "address"), tuple(extents), np.dtype(str(dtype)))
        if self.integer(entry, "size") != empty.size:
            raise ProgramError(f"the buffer {name} has {empty.size} bytes by its shape, {entry['size']} by its size")
        file = entry.get("file")
        if file is None:
            return empty
        if not isinstance(file, str) or file not in (MICRO_OPS, DRAM):
            raise ProgramError(f"the buffer {name} is in {file!r}, which is none of {MICRO_OPS}, {DRAM}")
        offset = self.integer(entry, "offset")
        raw = self.files[file][offset : offset + empty.size]
        if len(raw) != empty.size:
            raise ProgramError(f"the buffer {name} goes beyond the end of {file}")
        data = np.frombuffer(raw, empty.dtype.newbyteorder("<")).reshape(empty.shape).astype(empty.dtype)
        return attrs.evolve(empty, data=data)

    def integer(self, entry: Mapping[str, object], key: str) -> int:
        """A number that is not negative."""
        value = entry.get(key)
        if type(value) is not int or value < 0:
            raise ProgramError(f"{key} in {MANIFEST} is a number from 0 on, found {value!r}")
        return value

    def list_of(self, entry: Mapping[str, object], key: str) -> list[object]:
        """A list."""
        value = entry.get(key)
        if not isinstance(value, list):
            raise ProgramError(f"{key} in {MANIFEST} is a list, found {value!r}")
        return value
