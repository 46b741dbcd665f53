"""Standalone executables: the results of `f.compile(..)` and `relay.load(..)`.

An executable has no source and no program, only machine code and the types of its arguments and result, so a process
that loads one needs NumPy and TVM's runtime, not its compiler.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from relay.calling.array import Array
from relay.calling.devices.device_array import array_content, from_dlpack
from relay.calling.donation import DonatedArguments
from relay.calling.fast_path import GUARD_FAILURE, NotCacheable, Repeat, flatten, repeat, repeat_with_references
from relay.calling.results import Values, holds_references, run_time_value, wrap
from relay.codegen.cuda.program import CudaProgram
from relay.codegen.runtime.header import header as c_header
from relay.compilation.entries import EntryError, with_entry
from relay.compilation.stages import CPU, DEFAULT_LEVEL, CompiledSignature
from relay.errors import CompileError, TypeMismatch
from relay.eval.values import Data, Reference
from relay.ir.definition import data_class
from relay.ir.dims import TypeId, evaluate
from relay.ir.expr import Module
from relay.ir.structure import split
from relay.ir.types import DataDefinition, DataType, TensorType, TupleType, Type, show
from relay.ir.validation.check_surface import is_untyped

if TYPE_CHECKING:
    from relay.codegen.runtime.cpu import Program
    from relay.codegen.vta.program import Program as VtaProgram


class Executable:
    """A compiled function for arguments of certain types. Call it as the function.

    `parameters` are the names and types of its arguments, `result` is its result's type.
    """

    def __init__(
        self,
        name: str,
        program: Program,
        parameters: Sequence[tuple[str, Type]],
        result: Type,
        donated: frozenset[str] = frozenset(),
        structures: Sequence[Type] | None = None,
    ) -> None:
        """`structures` are the parameters' types with the structures of Python that tuples stand for."""
        self.name = name
        self.parameters = tuple(parameters)
        self.result = result
        self._program = program
        self._donated = donated
        self._structures = [type_ for _, type_ in parameters] if structures is None else structures
        self._known: dict[tuple[object, ...], Repeat] = {}  # by the arguments' structure and Python types

    @property
    def workspace(self) -> int | None:
        """The bytes that a call takes beside its arguments and results, as planned at compile time; None where it
        depends on the call: with symbolic sizes, recursion, and dynamic data."""
        native = self._program.native
        return None if native.dims or native.recursive or native.pools else native.workspace

    def __call__(self, *arguments: Any) -> Any:
        """Run it. Raises TypeMismatch for arguments of other types, ExecutionError for what is found at run time."""
        __tracebackhide__ = True
        if self._donated:
            with DonatedArguments(self.name, [name for name, _ in self.parameters], arguments, self._donated):
                return self._run(arguments)
        return self._run(arguments)

    def _run(self, arguments: tuple[Any, ...]) -> Any:
        __tracebackhide__ = True
        leaves: list[Any] = []
        kinds: list[Any] = []
        try:
            plain = flatten(arguments, leaves, kinds)
        except RecursionError:  # of an argument that contains itself, which is of another type than is wanted
            plain = False
        signature = tuple(kinds)
        known = self._known.get(signature) if plain else None
        if known is not None:
            result = known(leaves)
            if result is not GUARD_FAILURE:
                return result
        if len(arguments) != len(self.parameters):
            raise TypeMismatch(f"{self.name} takes {len(self.parameters)} arguments, found {len(arguments)}")
        sizes: dict[TypeId, tuple[int, str]] = {}
        device = isinstance(self._program, CudaProgram)
        values = Values(device=device)
        for argument, (name, type_) in zip(arguments, self.parameters, strict=True):
            if holds_references(type_):
                values.add(argument, type_, name)
            else:
                values.pass_on(argument, _value(argument, type_, name, sizes, device))
        try:
            found = self._program(values)
        finally:
            values.give_back(self._structures)
        result = wrap(found, self.result)
        if plain and signature not in self._known and not device:
            try:
                make = repeat_with_references if any(map(holds_references, self._structures)) else repeat
                self._known[signature] = make(self._program, kinds, self._structures, self.result)
            except NotCacheable:
                pass
        return result

    def vta_program(self) -> dict[str, VtaProgram]:
        """The streams that the accelerator runs, in their order in the program, by name: instructions, micro-ops, and
        the DRAM image with weights and addresses. `relay.codegen.vta.program_files.write_program` writes one as files.

        Raises CompileError for a program for another target.
        """
        externals = self._program.native.externals
        devices = externals.devices if externals is not None else []
        if not devices:
            raise CompileError(
                f"{self.name} has no streams: it was compiled for the processor", help='compile(.., target="vta")'
            )
        return {d.function.name: d.function.program for d in devices}  # type: ignore[attr-defined]

    def export(self, path: str | Path, header: str | Path | None = None) -> str:
        """Write a shared library that `load` reads; also a C header with which C and C++ call it.

        The library holds the captured arrays, and runs on processors that have all vector instructions of this one. A
        program for a GPU becomes a file of Relay's own, for GPUs of its architecture; its header has all of it, and
        needs nothing but NVIDIA's driver.
        Returns the SHA-256 of the file, which `load` checks before it loads anything.

        Raises CompileError for what cannot be written: programs that call Python, data types, and where there is no
        linker; also a header for a program for a GPU in which the host decides by values on the GPU.
        """
        from relay.codegen.cuda import program_file
        from relay.codegen.cuda.c_header import gpu_header
        from relay.codegen.runtime import library

        about = self.name, self.parameters, self.result, self._donated
        try:
            for _, type_ in (*self.parameters, ("result", self.result)):
                _check_exported(type_)
            if isinstance(self._program, CudaProgram):
                text = None if header is None else gpu_header(self._program, self.name)
                digest = program_file.export(self._program, about, Path(path))
            else:
                native = self._program.native
                text = None if header is None else c_header(native, self.name)
                digest = library.export(native, self.name, about, Path(path))
        except library.ExportError as reason:
            raise CompileError(f"{self.name} cannot be exported: {reason}") from None
        if header is not None and text is not None:
            Path(header).write_text(text)
        return digest

    def __repr__(self) -> str:
        types = ", ".join(f"{name}: {show(type_)}" for name, type_ in self.parameters)
        return f"<relay executable {self.name}({types}) -> {show(self.result)}>"


def compile_module(
    module: Module, entry: str | None = None, *, opt_level: int = DEFAULT_LEVEL, target: str = CPU
) -> Executable:
    """The compiled program of a module, as `relay.parse` and `f.lower(..).typed` give one. `entry`: another function
    than the module's own, or a derivative. `target`: "cuda" for a GPU.

    Raises TypeMismatch for anything but a typed module, CompileError for a function that does not exist or cannot be
    compiled.
    """
    if not isinstance(module, Module) or is_untyped(module):
        found = "an untyped module" if isinstance(module, Module) else type(module).__name__
        raise TypeMismatch(
            f"relay.compile takes a typed module, found {found}",
            help="decorated functions have a method: f.compile(..), of arguments or their types",
        )
    try:
        entered = with_entry(module, module.entry if entry is None else entry)
    except EntryError as reason:
        raise CompileError(str(reason)) from None
    signature = CompiledSignature(entered, entered.main.type.result, opt_level, target=target)
    signature.refuse_functions()
    parameters = [(p.name, p.type) for p in entered.main.parameters if p.type is not None]
    name = module.entry if entry is None else entry
    return Executable(name, signature.program, parameters, signature.result)


def load(path: str | Path, *, sha256: str | None = None, trusted: bool = False) -> Executable:
    """The program that `Executable.export` wrote. A library is a program: loading one runs it, with all rights of this
    process.

    So the file has to be of this user (or of root), in a folder where nobody else can write. A file from elsewhere is
    loaded if it has the SHA-256 that `export` returned, given as `sha256`, or if it is declared `trusted`. A digest
    that is given is checked in any case, before anything is loaded.

    Raises CompileError for a file that is not an exported program, that others could have written, that has another
    digest, or that was made for other processors or versions, OSError if it cannot be read.
    """
    from relay.codegen.cuda import program_file
    from relay.codegen.runtime import library
    from relay.codegen.runtime.cpu import Program

    try:
        content, own = library.checked_content(Path(path), sha256, trusted)
        if program_file.is_program(content):
            program: Any
            program, (name, parameters, result, donated) = program_file.load(content, Data, Reference)
        else:
            native, (name, parameters, result, donated) = library.load(content, own)
            program = Program(native, Data, Reference)
    except library.UnreadableLibraryError as reason:
        raise CompileError(f"{path}: {reason}") from None
    except library.Untrusted as reason:
        raise CompileError(
            f"{path} is not loaded: {reason}",
            help="a library is a program: pass sha256=.., which export returned, or trusted=True for one that you know",
        ) from None
    return Executable(name, program, parameters, result, donated)


def _is_string(definition: DataDefinition) -> bool:
    """True for the data type of strings."""
    owner = data_class(definition)
    return owner is not None and hasattr(owner.cls, "__relay_result__")


def _check_exported(type_: Type) -> None:
    from relay.codegen.runtime.library import ExportError

    match type_:
        case TupleType(items, form):
            if form is not None and form.cls not in (dict, list, tuple):
                raise ExportError(f"{form.cls.__name__} is a class of this program; pass tuples, lists or dicts")
            for item in items:
                _check_exported(item)
        case DataType(definition) if _is_string(definition):
            raise ExportError(
                "a string is an argument or result of it; return its characters as numbers,"
                " `np.array([ord(c) for c in text])`"
            )
        case DataType(definition):
            raise ExportError(f"{definition.name} is a data type of this program; pass tensors and tuples")
        case _:
            pass


def _array(argument: Any, device: bool) -> Any:
    """An argument as an array, or as a tensor on the GPU where it is there and the program is for that `device`."""
    if isinstance(argument, Array):
        return array_content(argument) if device else argument.numpy()
    if isinstance(argument, np.ndarray | np.generic) or not hasattr(argument, "__dlpack__"):
        return np.asarray(argument)
    found = from_dlpack(argument)
    return found if device or isinstance(found, np.ndarray) else found.numpy()


def _value(argument: Any, type_: Type, name: str, sizes: dict[TypeId, tuple[int, str]], device: bool = False) -> Any:
    """An argument as the run-time value of its type. Raises TypeMismatch. `sizes` are those of symbolic dims so far,
    and which axis shows them."""
    if isinstance(type_, TupleType):
        form, parts = (None, ()) if argument is None else split(argument) or (None, None)
        if parts is None:
            raise TypeMismatch(f"argument {name} must be {show(type_)}, found {type(argument).__name__}")
        names = form.names if form is not None and form.names else range(len(parts))
        if len(parts) != len(type_.items):
            raise TypeMismatch(f"argument {name} must be {show(type_)}, found {type(argument).__name__}")
        pairs = zip(parts, type_.items, names, strict=True)
        return tuple(_value(part, item, f"{name}[{where!r}]", sizes, device) for part, item, where in pairs)
    if not isinstance(type_, TensorType):
        return run_time_value(argument, type_, name)
    if isinstance(argument, int | float) and not isinstance(argument, bool | np.generic) and not type_.rank:
        return run_time_value(argument, type_, name)
    array = _array(argument, device)
    fits = array.dtype.newbyteorder("=") == type_.dtype and array.ndim == type_.rank
    for axis, (dim, size) in enumerate(zip(type_.shape, array.shape, strict=False)):
        if isinstance(dim, TypeId):
            known, where = sizes.setdefault(dim, (size, f"axis {axis} of {name}"))
            if fits and known != size:
                raise TypeMismatch(f"axis {axis} of {name} must be {known}, as {where}; found {size}")
        elif isinstance(dim, int):
            fits = fits and dim == size
        elif fits:
            wanted = evaluate(dim, {variable: number for variable, (number, _) in sizes.items()})
            fits = wanted == size
    if not fits:
        raise TypeMismatch(f"argument {name} must be {show(type_)}, found {array.dtype} {array.shape}")
    return array


__all__ = ["Executable", "compile_module", "load"]
