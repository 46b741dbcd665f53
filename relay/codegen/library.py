"""Machine code as a file: a shared library, followed by what is needed to call it.

    the library | machine code that a linker takes, and description, pickled | length of both, digest of both | magic

A loader of libraries does not look behind their end. The machine code is there a second time so that the program can be
exported with other data; captured arrays of an export are in the library alone. Spans and data types of the description
are numbers: places among those of the program that the code was compiled from, which the reader has, too. Nothing here
imports TVM's compiler.
"""

from __future__ import annotations

import ctypes
import hashlib
import io
import math
import os
import pickle
import platform
import shutil
import struct
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from relay.codegen.header import Unwritable, identifier, symbol
from relay.codegen.native import ALIGNMENT, Native
from relay.diagnostic import Span
from relay.ir.alpha import data_in_order
from relay.ir.expr import Function, Module
from relay.ir.traverse import walk
from relay.ir.types import DataDefinition, mentioned_definitions

_MAGIC = b"relay library 1\n"
_FOOTER = struct.Struct("<QQ32s")
UNFINISHED = "unfinished-"
"""What the names of folders begin with in which libraries are made."""

_LINKERS = ("ld", "ld.lld", "lld")


def write(native: Native, program: Module, path: Path) -> None:
    """Write a program's machine code, in one step: a reader sees all of the file or nothing. Raises Unwritable."""
    if native.externals is not None:
        raise Unwritable("it calls Python: it prints, or has an operator with a native function of its own")
    stream, object_code = io.BytesIO(), native.object_code
    _Pickler(stream, program).dump((object_code, native.description))
    description = stream.getvalue()
    with tempfile.TemporaryDirectory(prefix=UNFINISHED, dir=path.parent) as folder:
        library = Path(folder, "library.so")
        _link(object_code, library)
        code = library.read_bytes()
        digest = hashlib.sha256(code + description).digest()
        footer = _FOOTER.pack(len(code), len(description), digest) + _MAGIC
        library.write_bytes(code + description + footer)
        os.replace(library, path)


def read(path: Path, program: Module) -> Native | None:
    """What `write` wrote for this program; None if there is no such file, or it is not whole."""
    try:
        content = path.read_bytes()
    except OSError:
        return None
    tail = _FOOTER.size + len(_MAGIC)
    if not content.endswith(_MAGIC) or len(content) < tail:
        return None
    size, described, digest = _FOOTER.unpack(content[-tail : -len(_MAGIC)])
    if size + described + tail != len(content) or hashlib.sha256(content[:-tail]).digest() != digest:
        return None
    object_code, description = _Unpickler(io.BytesIO(content[size : size + described]), program).load()
    return Native.loaded(_load(path), object_code, description)


# ---- libraries that stand by themselves


class Unreadable(Exception):
    """Why a file is no library for this process."""


_EXPORTED = b"relay export 3\n "


def export(native: Native, name: str, about: Any, path: Path) -> None:
    """Write a program's machine code, what is needed to call it, and `about`, in one step. Raises Unwritable."""
    if native.externals is not None:
        raise Unwritable("it calls Python: it prints, or has an operator with a native function of its own")
    failures = [(message if span is None else f"{span}: {message}", None) for message, span in native.failures]
    object_code = native.object_code
    outline = [(place, array.dtype, array.shape) for place, array in native.constants.items()]
    described = {**native.description, "failures": failures, "constants": outline}
    description = pickle.dumps((_requirements(), object_code, described, name, about))
    with tempfile.TemporaryDirectory(prefix=UNFINISHED, dir=path.resolve().parent) as folder:
        library = Path(folder, "library.so")
        _link(object_code, library, _constants(native, name, Path(folder)))
        code = library.read_bytes()
        digest = hashlib.sha256(code + description).digest()
        library.write_bytes(code + description + _FOOTER.pack(len(code), len(description), digest) + _EXPORTED)
        os.replace(library, path)


def load(path: Path) -> tuple[Native, Any]:
    """What `export` wrote, and its `about`. Raises Unreadable, OSError."""
    content = path.read_bytes()
    tail = _FOOTER.size + len(_EXPORTED)
    if not content.endswith(_EXPORTED) or len(content) < tail:
        raise Unreadable("this is no library that relay exported")
    size, described, digest = _FOOTER.unpack(content[-tail : -len(_EXPORTED)])
    if size + described + tail != len(content) or hashlib.sha256(content[:-tail]).digest() != digest:
        raise Unreadable("the file is damaged")
    required, object_code, description, name, about = pickle.loads(content[size : size + described])
    missing = required - _requirements()
    if missing:
        raise Unreadable(f"it was compiled for a processor or version with {', '.join(sorted(missing))}")
    module = _load(path)
    description["constants"] = _captured(path, name, description["constants"])
    return Native.loaded(module, object_code, description), about


def _requirements() -> frozenset[str]:
    """What machine code needs of a process: the version of TVM's runtime, and the processor's vector instructions."""
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
    from relay.codegen import runtime

    return runtime.load(path)


def _constants(native: Native, name: str, folder: Path) -> Path | None:
    """A file with the captured arrays, under the name that becomes their symbol."""
    if not native.constants:
        return None
    path = folder / f"{identifier(name)}_constants"
    with path.open("wb") as file:
        for array in native.constants.values():
            file.write(array.tobytes() + b"\0" * (-array.nbytes % ALIGNMENT))
    return path


def _captured(
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
    linker = next(filter(None, map(shutil.which, _LINKERS)), None)
    if linker is None:
        raise Unwritable(f"there is no linker: none of {', '.join(_LINKERS)} is on the PATH")
    flavour = ["-flavor", "gnu"] if Path(linker).name == "lld" else []
    objects = [f"code{number}.o" for number in range(len(object_code))]
    for name, code in zip(objects, object_code, strict=True):
        library.with_name(name).write_bytes(code)
    steps = []
    if data is not None:  # an object first: only of these does a library show the symbols
        objects.append("data.o")
        library.with_name("aligned.ld").write_text(f"SECTIONS {{ .data : SUBALIGN({ALIGNMENT}) {{ *(.data) }} }}\n")
        steps.append(["-r", "-T", "aligned.ld", "-o", "data.o", "-b", "binary", data.name, "-b", "default"])
    # Its parts call each other, whatever else in the process has their names.
    steps.append(["-shared", "-Bsymbolic", "-z", "noexecstack", "-o", library.name, *objects])
    for step in steps:
        command = [linker, *flavour, *step]
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=library.parent)
        if done.returncode != 0:
            raise Unwritable(f"{linker} failed: {done.stderr.strip()}")


# ---- what stands in the program


def _spans(program: Module) -> Iterator[Span | None]:
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


def _definitions(program: Module) -> list[DataDefinition]:
    """All data types of a program, in an order that is the same for programs that share a file."""
    entry = program.main
    mentioned = mentioned_definitions([*entry.type.parameters, entry.type.result])
    return data_in_order(program) if program.data or mentioned else []


class _Pickler(pickle.Pickler):
    def __init__(self, file: io.BytesIO, program: Module) -> None:
        super().__init__(file, protocol=pickle.HIGHEST_PROTOCOL)
        self._spans: dict[Span, int] = {}
        for place, span in enumerate(_spans(program)):
            if span is not None:
                self._spans.setdefault(span, place)
        self._data = {definition: place for place, definition in enumerate(_definitions(program))}

    def persistent_id(self, obj: Any) -> tuple[str, int] | None:
        if isinstance(obj, Span):
            if obj not in self._spans:
                raise Unwritable(f"an error of it has a place outside of the program, {obj}")
            return "span", self._spans[obj]
        if isinstance(obj, DataDefinition):
            if obj not in self._data:
                raise Unwritable(f"{obj.name} is not a data type of the program that it was compiled from")
            return "data", self._data[obj]
        return None


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, program: Module) -> None:
        super().__init__(file)
        self._spans: Sequence[Span | None] = list(_spans(program))
        self._data = _definitions(program)

    def persistent_load(self, pid: tuple[str, int]) -> Any:
        kind, place = pid
        return self._spans[place] if kind == "span" else self._data[place]


__all__ = ["UNFINISHED", "Unreadable", "Unwritable", "export", "load", "read", "write"]
