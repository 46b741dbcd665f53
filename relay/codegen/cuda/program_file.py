"""The file of a program for a GPU: its machine code, and the host program with the arrays that it captures.

    machine code | description (relay.codegen.runtime.codec) | length of both, digest of both | magic

The host program is written as it is, blocks from the inside out, so that how deeply they are nested does not matter. Of
the source it keeps the lines' numbers alone, and of data types their names: values of them do not leave the program.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from relay.codegen.cuda.compiler import MachineCode
from relay.codegen.cuda.host_program import HostBlock, HostProgram
from relay.codegen.cuda.launches import GENERAL, GroupKernels, Launch
from relay.codegen.cuda.program import CudaProgram
from relay.codegen.cuda.target import ARCHITECTURES
from relay.codegen.runtime import codec
from relay.codegen.runtime.library import UnreadableLibraryError, pack_library, read_description
from relay.errors import Span
from relay.errors.diagnostic import Source
from relay.ir.dims import TypeId
from relay.ir.expr import LoopLabel, Module, Var
from relay.ir.node import nodes
from relay.ir.types import DataDefinition, DataType
from relay.operator import lookup
from relay.support.private_files import UNFINISHED

_MAGIC = b"relay program for a GPU 1\n"

_CLASSES: tuple[type[Any], ...] = (HostBlock, GroupKernels, Launch, Var, LoopLabel, DataType, *nodes())

_NOTATION = hashlib.sha256(
    repr([codec.VERSION, *((c.__name__, [field.name for field in attrs.fields(c)]) for c in _CLASSES)]).encode()
).hexdigest()
"""Another one as soon as a class has other fields."""


def export(program: CudaProgram, about: object, path: Path) -> str:
    """Write a program, and `about`, in one step. Returns the SHA-256 of the file, in hexadecimal digits. Raises
    ExportError."""
    outside = _PlaceNumbers()
    written = codec.encode(_written_parts(program.host), outside.number, _CLASSES)
    parts = _NOTATION, program.architecture.name, outside.places, outside.data, codec.encode(about), written
    content = pack_library(program.code.code, codec.encode(parts), _MAGIC)
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
        code, description = read_description(content, _MAGIC)
        notation, architecture, places, data, about, written = codec.decode(description)
        if notation != _NOTATION:
            raise UnreadableLibraryError("it was written by another version of Relay")
        inside = _NumberedObjects(places, data)
        blocks, module, launches = codec.decode(written, inside.object, _CLASSES)
        program = HostProgram(module, dict(blocks), launches)
        made = CudaProgram(program, MachineCode(code, {}), ARCHITECTURES[architecture], make, reference)
        return made, codec.decode(about)
    except (codec.DamagedDataError, ValueError, TypeError, KeyError) as reason:
        raise UnreadableLibraryError(f"the file is damaged: {reason}") from None


def _written_parts(program: HostProgram) -> tuple[object, Module, tuple[Launch, ...]]:
    """The parts of a program that a run reads: blocks first, so that none is written inside of another one."""
    blocks = [
        (b, attrs.evolve(known, groups=_groups_without_code(known.groups))) for b, known in program.blocks.items()
    ]
    module = Module(program.module.functions, program.module.entry)
    return tuple(reversed(blocks)), module, tuple(map(_launch_without_code, program.launches))


def _groups_without_code(groups: Mapping[int, GroupKernels]) -> dict[int, GroupKernels]:
    """Groups without their kernels' TIR. The host computes none of operators that only this process has."""
    return {
        at: attrs.evolve(
            group,
            launches=tuple(map(_launch_without_code, group.launches)),
            calls=None if any(not lookup(call.operator).is_builtin for _, call in group.calls or ()) else group.calls,
        )
        for at, group in groups.items()
    }


def _launch_without_code(launch: Launch) -> Launch:
    return attrs.evolve(launch, function=None)


_PLACE, _DATA, _GENERAL = range(3)


class _PlaceNumbers:
    """The places, data types and general dims of a program, which numbers represent in its file."""

    def __init__(self) -> None:
        self.places: list[tuple[str, int, int, int, int]] = []
        self.data: list[str] = []
        self._spans: dict[Span, int] = {}
        self._definitions: dict[DataDefinition, int] = {}
        self._general = {dim: number for number, dim in enumerate(GENERAL)}

    def number(self, item: object) -> tuple[int, int] | None:
        """The number of an object; None for what the file contains itself."""
        if isinstance(item, Span):
            if item not in self._spans:
                self._spans[item] = len(self.places)
                ends = item.end_line, item.end_column
                self.places.append((item.source.filename, item.line, item.column, *ends))
            return _PLACE, self._spans[item]
        if isinstance(item, DataDefinition):
            if item not in self._definitions:
                self._definitions[item] = len(self.data)
                self.data.append(item.name)
            return _DATA, self._definitions[item]
        if isinstance(item, TypeId) and item in self._general:
            return _GENERAL, self._general[item]
        return None


class _NumberedObjects:
    """The objects that numbers represent in a file."""

    def __init__(self, places: Sequence[tuple[str, int, int, int, int]], data: Sequence[str]) -> None:
        sources = {place[0]: Source(place[0], "", place[1]) for place in places}
        spans = [Span(sources[filename], *numbers) for filename, *numbers in places]
        self._known: tuple[Sequence[object], ...] = spans, list(map(DataDefinition, data)), GENERAL

    def object(self, kind: int, place: int) -> object:
        """The object with such a number. Raises IndexError."""
        if kind < 0 or place < 0:
            raise IndexError
        return self._known[kind][place]


__all__ = ["export", "is_program", "load"]
