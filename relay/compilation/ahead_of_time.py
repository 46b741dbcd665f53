"""Programs in Relay's notation as libraries for other languages."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from relay.compilation.entries import EntryError, with_entry
from relay.compilation.stages import DEFAULT_LEVEL, to_core
from relay.errors import CompileError
from relay.ir.analysis.reachability import public_functions
from relay.ir.expr import Module
from relay.support import progress
from relay.support.gc_pause import without_collection


def compile_library(
    module: Module,
    path: str | Path,
    *,
    entries: Sequence[str] = (),
    header: str | Path | None = None,
    target: str | None = None,
    opt_level: int = DEFAULT_LEVEL,
) -> None:
    """Write a typed program's functions as a shared library, or as an object file if the path ends in `.o`, which
    needs nothing but the C library, and the C header with which others call them.

    `entries`: the functions; by default the entry, derivatives, and functions that no other function mentions.
    `target`: another processor, as LLVM names it: `aarch64-linux-gnu`, `x86_64-linux-gnu,haswell`,
    `aarch64-linux-gnu,+sve`. The code runs on the thread that calls it.

    Raises CompileError for a function that does not exist or cannot be compiled, for programs that print, for an
    unknown target, and where there is no linker for it.
    """
    from relay.codegen.runtime.c_library import write_c_library
    from relay.codegen.runtime.header import ExportError

    cores = {}
    for name in entries or dict.fromkeys([module.entry, *public_functions(module)]):
        try:
            entered = with_entry(module, name)
        except EntryError as reason:
            raise CompileError(str(reason)) from None
        cores[name] = to_core(entered, opt_level)
    try:
        with progress.progress_bar(f"compiling {Path(path).name}"), without_collection():
            text = write_c_library(cores, Path(path), target)
    except (ExportError, ValueError) as reason:
        raise CompileError(f"{path} cannot be written: {reason}") from None
    if header is not None:
        Path(header).write_text(text)
