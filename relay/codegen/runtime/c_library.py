"""Libraries for programs in other languages: several functions, their constants, and a header for all of them.

The code needs nothing but the C library: neither Python nor TVM's runtime.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

from relay.codegen.lowering.module_builder import assemble_ahead
from relay.codegen.runtime.header import ExportError, constants_symbol, entry_symbol, header, identifier, symbol
from relay.codegen.runtime.library import LINKERS, constants_file, link
from relay.codegen.runtime.native import NativeModule
from relay.codegen.tvm.machine import Machine, code_for
from relay.codegen.tvm.tir import address_function
from relay.ir.expr import Module
from relay.support.private_files import UNFINISHED

_OBJECT = ".o"


def write_c_library(modules: Mapping[str, Module], path: Path, target: str | None = None) -> str:
    """Write the code of structured modules without derivatives, whose entries go by these names, in one step: an object
    file if the path ends in `.o`, else a shared library. `target`: LLVM's triple, processor and features, with commas
    between them; None is this processor. Returns the text of the header.

    Raises ExportError, CompileError for what cannot be compiled, ValueError for a target that is none.
    """
    machine = None if target is None else Machine.parse(target)
    natives: dict[str, NativeModule] = {}
    symbols: dict[str, str] = {}
    with code_for(machine):
        for name, module in modules.items():
            other = symbols.setdefault(entry_symbol(name), name)
            if other != name:
                raise ExportError(f"{other} and {name} have one name in C, {identifier(name)}")
            natives[name] = assemble_ahead(module, entry_symbol(name))
        code = [file for native in natives.values() for file in native.object_code]
        code += [address_function(constants_symbol(n), symbol(n)) for n, native in natives.items() if native.constants]
    text = "\n".join(header(native, name, linked=True) for name, native in natives.items())
    with tempfile.TemporaryDirectory(prefix=UNFINISHED, dir=path.resolve().parent) as folder:
        library = Path(folder, "library")
        shared = path.suffix != _OBJECT
        if shared or len(code) > 1:
            data = [constants_file(native, name, Path(folder)) for name, native in natives.items()]
            link(code, library, [file for file in data if file is not None], _linkers(machine), shared)
        else:
            library.write_bytes(code[0])
        os.replace(library, path)
    return text


def _linkers(machine: Machine | None) -> tuple[str, ...]:
    """The linkers that know a processor: those of the system know its own only, if they are not LLVM's."""
    if machine is None or not machine.triple:
        return LINKERS
    own = f"{machine.triple}-ld", f"{machine.architecture}-linux-gnu-ld"
    return *dict.fromkeys(own), *(LINKERS if machine.architecture == os.uname().machine else LINKERS[1:])
