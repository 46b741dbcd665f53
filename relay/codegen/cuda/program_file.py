"""The file of a program for a GPU: its machine code, and the host program with the arrays that it captures.

    machine code | description (relay.codegen.runtime.codec) | length of both, digest of both | magic

The host program is written as it is, blocks from the inside out, so that how deeply they are nested does not matter. Of
the source it keeps the lines' numbers alone, and of data types their names: values of them do not leave the program.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import attrs

from relay.codegen.cuda.compiler import MachineCode
from relay.codegen.cuda.host_program import HostProgram
from relay.codegen.cuda.launches import GENERAL, GroupKernels, HostBlock, Launch, Region, Rest
from relay.codegen.cuda.libraries.convolutions import LibraryConvolution
from relay.codegen.cuda.libraries.products import LibraryProduct
from relay.codegen.cuda.program import CudaProgram
from relay.codegen.cuda.target import ARCHITECTURES
from relay.codegen.runtime import codec
from relay.codegen.runtime.header import ExportError
from relay.codegen.runtime.library import (
    UnreadableLibraryError,
    definitions_of,
    pack_library,
    read_description,
    spans_of,
)
from relay.errors import Span
from relay.errors.diagnostic import Source
from relay.ir.dims import TypeId
from relay.ir.expr import LoopLabel, Module, Var
from relay.ir.node import nodes
from relay.ir.types import DataDefinition, DataType
from relay.operator import lookup
from relay.support import private_files
from relay.support.private_files import UNFINISHED

_MAGIC = b"relay program for a GPU 4\n"

_KEPT = b"relay cached program for a GPU 3\n"

_CLASSES: tuple[type[Any], ...] = (
    HostBlock,
    Region,
    GroupKernels,
    Rest,
    LibraryProduct,
    LibraryConvolution,
    Launch,
    Var,
    LoopLabel,
    DataType,
    *nodes(),
)

_NOTATION = hashlib.sha256(
    repr([codec.VERSION, *((c.__name__, [field.name for field in attrs.fields(c)]) for c in _CLASSES)]).encode()
).hexdigest()
"""Another one as soon as a class has other fields."""


def export(program: CudaProgram, about: object, path: Path) -> str:
    """Write a program, and `about`, in one step. Returns the SHA-256 of the file, in hexadecimal digits. Raises
    ExportError."""
    content = _content(program.host, program.code, (program.architecture.name, about), _PlaceNumbers(), _MAGIC)
    with tempfile.TemporaryDirectory(prefix=UNFINISHED, dir=path.resolve().parent) as folder:
        made = Path(folder, "program")
        made.write_bytes(content)
        os.replace(made, path)
    return hashlib.sha256(content).hexdigest()


def is_program(content: bytes) -> bool:
    """True for the content of a file that `export` wrote."""
    return content.endswith(_MAGIC)


def load(
    content: bytes, make: Callable[[Any, str, tuple[Any, ...]], Any], reference: Callable[[Any], Any]
) -> tuple[CudaProgram, Any]:
    """The program that `export` wrote, and its `about`. Nothing of TVM is needed. Raises UnreadableLibraryError."""
    try:
        host, code, (architecture, about) = _parts(content, _MAGIC)
        return CudaProgram(host, code, ARCHITECTURES[architecture], make, reference), about
    except (codec.DamagedDataError, ValueError, TypeError, KeyError) as reason:
        raise UnreadableLibraryError(f"the file is damaged: {reason}") from None


def write(made: tuple[HostProgram, MachineCode], program: Module, path: Path) -> None:
    """Write the parts of a typed program, for the cache on disk. Raises ExportError, OSError."""
    content = _content(*made, path.name, _PlaceNumbers(program), _KEPT)
    private_files.write(path, content)


def read(path: Path, program: Module) -> tuple[HostProgram, MachineCode] | None:
    """The parts that `write` wrote for this program under this name; None if there is no such file, or it is not whole.
    Raises Untrusted for a file of someone else."""
    try:
        host, code, name = _parts(private_files.read(path), _KEPT, program)
    except (OSError, codec.DamagedDataError, UnreadableLibraryError, ValueError, TypeError, KeyError):
        return None
    return (host, code) if name == path.name else None


def _content(host: HostProgram, code: MachineCode, about: object, numbers: _PlaceNumbers, magic: bytes) -> bytes:
    written = codec.encode(_written_parts(host), numbers.number, _CLASSES)
    parts = _NOTATION, numbers.places, numbers.data, codec.encode(about), written
    return pack_library(code.code, codec.encode(parts), magic)


def _parts(content: bytes, magic: bytes, program: Module | None = None) -> tuple[HostProgram, MachineCode, Any]:
    """A program, its machine code, and `about`. Raises DamagedDataError, UnreadableLibraryError, and what comes of
    content that is damaged on purpose."""
    code, description = read_description(content, magic)
    notation, places, data, about, written = codec.decode(description)
    if notation != _NOTATION:
        raise UnreadableLibraryError("it was written by another version of Relay")
    blocks, module, launches = codec.decode(written, _NumberedObjects(places, data, program).object, _CLASSES)
    return HostProgram(module, dict(blocks), launches), MachineCode(code, {}), codec.decode(about)


def _written_parts(program: HostProgram) -> tuple[object, Module, tuple[Launch, ...]]:
    """The parts of a program that a run reads: blocks first, so that none is written inside of another one."""
    blocks = [(b, _block_without_code(known)) for b, known in program.blocks.items()]
    module = Module(program.module.functions, program.module.entry)
    return tuple(reversed(blocks)), module, tuple(map(_launch_without_code, program.launches))


def _block_without_code(block: HostBlock) -> HostBlock:
    regions = {at: Region(region.end, _group_without_code(region.kernels)) for at, region in block.regions.items()}
    return attrs.evolve(
        block, groups={at: _group_without_code(group) for at, group in block.groups.items()}, regions=regions
    )


def _group_without_code(group: GroupKernels) -> GroupKernels:
    """A group without its kernels' TIR. The host computes none of operators that only this process has."""
    own = any(not lookup(call.operator).is_builtin for _, call in group.calls or ())
    launches = tuple(map(_launch_without_code, group.launches))
    copies = tuple(None if copy is None else _group_without_code(copy) for copy in group.copies)
    rest = None if group.rest is None else Rest(group.rest.result, _group_without_code(group.rest.kernels))
    return attrs.evolve(group, launches=launches, copies=copies, rest=rest, calls=None if own else group.calls)


def _launch_without_code(launch: Launch) -> Launch:
    return attrs.evolve(launch, function=None)


_OF_PROGRAM, _PLACE, _DATA, _GENERAL = range(4)


class _PlaceNumbers:
    """The places, data types and general dims of a program, which numbers represent in its file. Those of a typed
    program that the reader has, too, are not in the file; without one, of data types there are the names."""

    def __init__(self, program: Module | None = None) -> None:
        self.places: list[tuple[str, int, int, int, int]] = []
        self.data: list[str] = []
        shared = [] if program is None else [*spans_of(program), *definitions_of(program)]
        self._shared = {item: number for number, item in enumerate(shared) if item is not None}
        self._has_program = program is not None
        self._spans: dict[Span, int] = {}
        self._definitions: dict[DataDefinition, int] = {}
        self._general = {dim: number for number, dim in enumerate(GENERAL)}

    def number(self, item: object) -> tuple[int, int] | None:
        """The number of an object; None for what the file contains itself. Raises ExportError for a data type of
        another program."""
        if isinstance(item, Span | DataDefinition) and item in self._shared:
            return _OF_PROGRAM, self._shared[item]
        if isinstance(item, Span):
            if item not in self._spans:
                self._spans[item] = len(self.places)
                ends = item.end_line, item.end_column
                self.places.append((item.source.filename, item.line, item.column, *ends))
            return _PLACE, self._spans[item]
        if isinstance(item, DataDefinition):
            if self._has_program:
                raise ExportError(f"{item.name} is not a data type of the program that it was compiled from")
            if item not in self._definitions:
                self._definitions[item] = len(self.data)
                self.data.append(item.name)
            return _DATA, self._definitions[item]
        if isinstance(item, TypeId) and item in self._general:
            return _GENERAL, self._general[item]
        return None


class _NumberedObjects:
    """The objects that numbers represent in a file."""

    def __init__(
        self, places: Sequence[tuple[str, int, int, int, int]], data: Sequence[str], program: Module | None
    ) -> None:
        sources = {place[0]: Source(place[0], "", place[1]) for place in places}
        spans = [Span(sources[filename], *numbers) for filename, *numbers in places]
        shared = [] if program is None else [*spans_of(program), *definitions_of(program)]
        self._known: tuple[Sequence[object], ...] = shared, spans, list(map(DataDefinition, data)), GENERAL

    def object(self, kind: int, place: int) -> object:
        """The object with such a number. Raises IndexError."""
        if kind < 0 or place < 0:
            raise IndexError
        return self._known[kind][place]


__all__ = ["export", "is_program", "load", "read", "write"]
