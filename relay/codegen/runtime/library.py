"""The library file: machine code as a shared library, followed by the description that calls need.

    the library | machine code that a linker takes, and description (codec.py) | length of both, digest of both | magic

A file is code: its reader must have checked its owner (private_files.py). Damage is detected, and harmless. A
loader of libraries ignores bytes after their end. The machine code is there a second time so that the program can be
exported with other data; captured arrays of an export are in the library alone. Spans and data types of the description
are numbers: places among those of the program that the code was compiled from, which the reader has, too. Nothing here
imports TVM's compiler.
"""

from __future__ import annotations

import ctypes
import hashlib
import math
import os
import platform
import shutil
import struct
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from relay.codegen.runtime import codec
from relay.codegen.runtime.header import ExportError, identifier, symbol
from relay.codegen.runtime.native import ALIGNMENT, NativeModule
from relay.errors.diagnostic import Source, Span
from relay.ir.analysis.alpha import data_in_order
from relay.ir.expr import Function, Module
from relay.ir.traverse import walk
from relay.ir.types import BaseType, DataDefinition, TensorType, mentioned_definitions
from relay.support import private_files
from relay.support.private_files import UNFINISHED, Untrusted

if TYPE_CHECKING:
    from relay.codegen.runtime.devices import Callbacks

_MAGIC = b"relay library %d\n" % (2 + codec.VERSION)
_FOOTER = struct.Struct("<QQ32s")

LINKERS = ("ld", "ld.lld", "lld")


def write(native: NativeModule, program: Module, path: Path) -> None:
    """Write a program's machine code, in one step: a reader sees all of the file or nothing. Raises Unwritable."""
    if native.externals is not None and native.externals.calls_python:
        raise ExportError("it calls Python: it prints, has numbers as text, or an operator with a native function")
    object_code = native.object_code
    parts = (path.name, object_code, native.description, _devices(native))
    description = codec.encode(parts, _ObjectNumbers(program).number)
    with tempfile.TemporaryDirectory(prefix=UNFINISHED) as folder:
        library = Path(folder, "library.so")
        _link(object_code, library)
        code = library.read_bytes()
    private_files.write(path, pack_library(code, description, _MAGIC))


def read(path: Path, program: Module) -> NativeModule | None:
    """The module that `write` wrote for this program under this name; None if there is no such file, or it is not
    whole. Raises Untrusted for a file of someone else."""
    try:
        content = private_files.read(path)
    except OSError:
        return None
    try:
        _, described = read_description(content, _MAGIC)
        name, object_code, description, devices = codec.decode(described, _ObjectNumbers(program).object)
    except codec.DamagedDataError:
        return None
    if name != path.name:
        return None
    return NativeModule.from_library(_load(path), object_code, description, _with_devices(devices))


def pack_library(code: bytes, description: bytes, magic: bytes) -> bytes:
    """The content of a file with machine code, and what describes it."""
    digest = hashlib.sha256(code + description).digest()
    return b"".join((code, description, _FOOTER.pack(len(code), len(description), digest), magic))


def read_description(content: bytes, magic: bytes) -> tuple[bytes, bytes]:
    """The machine code in a file, and the description after it. Raises DamagedDataError."""
    tail = _FOOTER.size + len(magic)
    if not content.endswith(magic) or len(content) < tail:
        raise codec.DamagedDataError("it does not end as a library does")
    size, described, digest = _FOOTER.unpack(content[-tail : -len(magic)])
    if size + described + tail != len(content) or hashlib.sha256(content[:-tail]).digest() != digest:
        raise codec.DamagedDataError("its digest differs")
    return content[:size], content[size : size + described]


# ---- libraries that stand by themselves


class UnreadableLibraryError(Exception):
    """The reason why a file is not a library for this process."""


_PARTS = 6  # of the description
_EXPORTED = b"relay export %d\n " % (6 + codec.VERSION)


def export(native: NativeModule, name: str, about: Any, path: Path) -> str:
    """Write a program's machine code, what is needed to call it, and `about`, in one step. Returns the SHA-256 of the
    file, in hexadecimal digits. Raises Unwritable."""
    if native.externals is not None and native.externals.calls_python:
        raise ExportError("it calls Python: it prints, has numbers as text, or an operator with a native function")
    failures = [(message, _place(span)) for message, span in native.failures]
    object_code = native.object_code
    outline = [(place, array.dtype, array.shape) for place, array in native.constants.items()]
    described = {**native.description, "failures": failures, "constants": outline}
    description = codec.encode((_requirements(), object_code, described, name, about, _devices(native)))
    with tempfile.TemporaryDirectory(prefix=UNFINISHED, dir=path.resolve().parent) as folder:
        library = Path(folder, "library.so")
        _link(object_code, library, constants_file(native, name, Path(folder)))
        content = pack_library(library.read_bytes(), description, _EXPORTED)
        library.write_bytes(content)
        os.replace(library, path)
    return hashlib.sha256(content).hexdigest()


def checked_content(path: Path, sha256: str | None = None, trusted: bool = False) -> tuple[bytes, Path | None]:
    """The content of a file that may be loaded, and the file, unless others may change it at any time. Raises
    UnreadableLibraryError, Untrusted, OSError."""
    own: Path | None = path
    try:
        if not trusted:
            private_files.check_folder(path.parent, whole=False)
        content = path.read_bytes() if trusted else private_files.read(path.resolve())
    except private_files.Untrusted:
        if sha256 is None:
            raise
        content, own = path.read_bytes(), None
    if sha256 is not None and hashlib.sha256(content).hexdigest() != sha256.strip().lower():
        raise UnreadableLibraryError("its SHA-256 differs from the given one; nothing of it was loaded")
    return content, own


def load(content: bytes, path: Path | None) -> tuple[NativeModule, Any]:
    """The module that `export` wrote, and its `about`, by `checked_content`. Everything is checked before anything is
    loaded; without a path a copy is. Raises UnreadableLibraryError."""
    try:
        parts = codec.decode(read_description(content, _EXPORTED)[1])
        if not (isinstance(parts, tuple) and len(parts) == _PARTS and isinstance(parts[0], frozenset)):
            raise codec.DamagedDataError("it describes something else")
    except codec.DamagedDataError as reason:
        whole = content.endswith(_EXPORTED)
        text = f"the file is damaged: {reason}" if whole else "this is not a library that relay exported"
        raise UnreadableLibraryError(text) from None
    required, object_code, description, name, about, devices = parts
    missing = required - _requirements()
    if missing:
        raise UnreadableLibraryError(f"it was compiled for a processor or version with {', '.join(sorted(missing))}")
    with tempfile.TemporaryDirectory(prefix=UNFINISHED) as folder:
        if path is None:
            path = Path(folder, "library.so")
            path.write_bytes(content)
        module = _load(path)
        description["constants"] = _captured_arrays(path, name, description["constants"])
    description["failures"] = [(message, _span(place)) for message, place in description["failures"]]
    return NativeModule.from_library(module, object_code, description, _with_devices(devices)), about


_Place = tuple[str, int, int, int, int]


def _place(span: Span | None) -> _Place | None:
    """A place without the text of its file, which the library does not contain."""
    return None if span is None else (span.source.filename, span.line, span.column, span.end_line, span.end_column)


def _span(place: _Place | None) -> Span | None:
    return None if place is None else Span(Source(place[0], ""), *place[1:])


def _devices(native: NativeModule) -> list[tuple[str, Any, list[tuple[str, tuple[int, ...]]], int]]:
    """The functions of devices: registered names, the functions, the types of their tensors, and the numbers of
    results."""
    if native.externals is None:
        return []
    return [
        (d.name, d.function.export_arguments, [(str(t.base), t.dims) for t in d.types], d.results)  # type: ignore[attr-defined]
        for d in native.externals.devices
    ]


def _with_devices(devices: Sequence[tuple[str, Any, Sequence[tuple[str, tuple[int, ...]]], int]]) -> Callbacks | None:
    """Callbacks by which loaded code finds the functions of devices."""
    if not devices:
        return None
    from relay.codegen.runtime.devices import Callbacks, Device
    from relay.codegen.vta.offloading.stream_calls import StreamCall

    externals = Callbacks()
    for name, exported, types, results in devices:
        tensors = tuple(TensorType(BaseType(base), tuple(dims)) for base, dims in types)
        externals.add_device(Device(name, StreamCall.of_exported(exported), tensors, results))
    return externals


def _requirements() -> frozenset[str]:
    """The requirements of machine code on a process: the version of TVM's runtime, and the processor's vector
    instructions."""
    found = {f"apache-tvm {metadata.version('apache-tvm')}", platform.machine()}
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    flags = next((line for line in lines if line.startswith(("flags", "Features"))), "")
    return frozenset(found | {f for f in flags.split() if f.startswith(_VECTORS)})


_VECTORS = ("avx", "fma", "f16c", "sse", "asimd", "sve", "bmi")


def _load(path: Path) -> Any:
    """A library's functions, through TVM's runtime alone."""
    from relay.codegen.tvm import tvm_runtime

    return tvm_runtime.load(path)


def constants_file(native: NativeModule, name: str, folder: Path) -> Path | None:
    """A file with the captured arrays, under the name that becomes their symbol."""
    if not native.constants:
        return None
    path = folder / f"{identifier(name)}_constants"
    with path.open("wb") as file:
        for array in native.constants.values():
            file.write(array.tobytes() + b"\0" * (-array.nbytes % ALIGNMENT))
    return path


def _captured_arrays(
    path: Path, name: str, outline: Sequence[tuple[int, np.dtype[Any], tuple[int, ...]]]
) -> dict[int, np.ndarray]:
    """The captured arrays, where they lie in a library that is loaded, which stays so."""
    if not outline:
        return {}
    base = ctypes.addressof(ctypes.c_char.in_dll(ctypes.CDLL(str(path.resolve())), symbol(name)))
    arrays = {}
    for place, dtype, shape in outline:
        size = math.prod(shape) * dtype.itemsize
        arrays[place] = np.frombuffer((ctypes.c_char * size).from_address(base), dtype).reshape(shape)  # type: ignore[call-overload]
        base += -(-size // ALIGNMENT) * ALIGNMENT
    return arrays


def _link(object_code: Sequence[bytes], library: Path, data: Path | None = None) -> None:
    """Make a library of machine code, and of a file that becomes part of it."""
    link(object_code, library, [] if data is None else [data], LINKERS)


def link(
    object_code: Sequence[bytes], library: Path, data: Sequence[Path], linkers: Sequence[str], shared: bool = True
) -> None:
    """Make a library of machine code and of files in its folder, which become parts of it under their names; or an
    object file, unless it is `shared`. Raises ExportError."""
    linker = next(filter(None, map(shutil.which, linkers)), None)
    if linker is None:
        raise ExportError(f"there is no linker: none of {', '.join(linkers)} is on the PATH")
    flavour = ["-flavor", "gnu"] if Path(linker).name == "lld" else []
    objects = [f"code{number}.o" for number in range(len(object_code))]
    for name, code in zip(objects, object_code, strict=True):
        library.with_name(name).write_bytes(code)
    steps = []
    if data:
        library.with_name("aligned.ld").write_text(f"SECTIONS {{ .data : SUBALIGN({ALIGNMENT}) {{ *(.data) }} }}\n")
    for number, file in enumerate(data):  # an object first: only of these does a library show the symbols
        objects.append(f"data{number}.o")
        steps.append(["-r", "-T", "aligned.ld", "-o", objects[-1], "-b", "binary", file.name, "-b", "default"])
    # Its parts call each other, whatever else in the process has their names.
    kind = ["-shared", "-Bsymbolic", "-z", "noexecstack"] if shared else ["-r"]
    steps.append([*kind, "-o", library.name, *objects])
    for step in steps:
        command = [linker, *flavour, *step]
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=library.parent)
        if done.returncode != 0:
            raise ExportError(f"{linker} failed: {done.stderr.strip()}")


# ---- what stands in the program


def spans_of(program: Module) -> Iterator[Span | None]:
    """All places of a program, in a fixed order."""
    for function in program.functions.values():
        yield function.span
        if isinstance(function, Function):
            for parameter in function.parameters:
                yield parameter.span
            for binding in walk(function.body):
                yield getattr(binding.value, "span", None)
                for target in binding.targets:
                    yield target.span


def definitions_of(program: Module) -> list[DataDefinition]:
    """All data types of a program, in an order that is the same for programs that share a file."""
    entry = program.main
    mentioned = mentioned_definitions([*entry.type.parameters, entry.type.result])
    return data_in_order(program) if program.data or mentioned else []


class _ObjectNumbers:
    """The numbers of a program's places and data types, which represent them in a file."""

    def __init__(self, program: Module) -> None:
        self._spans: Sequence[Span | None] = list(spans_of(program))
        self._data = definitions_of(program)
        self._numbers: dict[Span, int] = {}
        for place, span in enumerate(self._spans):
            if span is not None:
                self._numbers.setdefault(span, place)
        self._data_numbers = {definition: place for place, definition in enumerate(self._data)}

    def number(self, item: object) -> tuple[int, int] | None:
        """The number of an object in a file; None for objects that the file contains itself. Raises Unwritable for
        an object of another program."""
        if isinstance(item, Span):
            if item not in self._numbers:
                raise ExportError(f"an error of it has a place outside of the program, {item}")
            return 0, self._numbers[item]
        if isinstance(item, DataDefinition):
            if item not in self._data_numbers:
                raise ExportError(f"{item.name} is not a data type of the program that it was compiled from")
            return 1, self._data_numbers[item]
        return None

    def object(self, kind: int, place: int) -> object:
        """The object with such a number. Raises IndexError. Raises IndexError."""
        known: Sequence[object] = (self._spans, self._data)[kind]
        if kind < 0 or place < 0:
            raise IndexError
        return known[place]


__all__ = ["UNFINISHED", "ExportError", "UnreadableLibraryError", "Untrusted", "export", "load", "read", "write"]
