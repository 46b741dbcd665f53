"""The object loader: linking and loading the object code of one program in memory.

LLVM's own way to run what it has generated keeps its representation of the program and a generator of code, about a
megabyte for each program. Here only the machine code stays. The files are of the ELF format for x86-64 (System V
Application Binary Interface, AMD64 supplement, section 4.4); `UnloadableCodeError` is raised for all others.

    code | jumps to functions of others || addresses of others' symbols | constants and data

The first part is executable and not writable; the second one is never executable.
"""

from __future__ import annotations

import ctypes
import functools
import mmap
import platform
import struct
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs

from relay.codegen.tvm import tvm_runtime

# isort: split
from tvm_ffi import Function

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_RELOCATION = struct.Struct("<QIIq")  # offset, kind, symbol, addend
_ELF, _X86_64 = b"\x7fELF\2\1", 62
_SYMBOLS, _RELOCATIONS, _ZEROS, _RUN_AT_START = 2, 4, 8, (14, 15, 16)
_WRITABLE, _NEEDED, _EXECUTABLE, _OF_THREADS = 1, 2, 4, 0x400
_UNDEFINED, _ABSOLUTE, _SPECIAL = 0, 0xFFF1, 0xFF00
_ADDRESS, _RELATIVE, _CALL, _RELATIVE_LONG, _BY_TABLE = 1, 2, 4, 24, (9, 41, 42)
_WEAK_VARIABLE = 0x21
_NOTHING_TO_START = "__tvm_module_startup"  # runs at the start of TVM's system libraries; empty in other code
_FUNCTION_OF_TVM = "__TVM"  # the names of variables that hold the addresses of functions, whose names are without __
_UNWINDING = ".eh_frame"  # nobody unwinds generated code
_JUMP = struct.Struct("<HiH")  # jmp *relative(%rip), and two bytes that nobody executes
_PAGE = mmap.PAGESIZE


class UnloadableCodeError(Exception):
    """The reason why object code cannot be loaded here."""


@attrs.frozen(eq=False)
class LoadedCode:
    """Object code in memory. Its functions keep it there."""

    _memory: mmap.mmap
    _symbols: dict[str, int]  # the addresses of those that others may use

    def __getitem__(self, name: str) -> Any:
        """A function that is called as TVM's functions are. Raises KeyError."""
        return Function.__from_extern_c__(self._symbols[f"__tvm_ffi_{name}"], keep_alive_object=self._memory)


def loads_here() -> bool:
    """True if `load` takes the output of this machine's compiler."""
    return sys.platform.startswith("linux") and platform.machine() == "x86_64"


def load(*files: bytes) -> LoadedCode:
    """Put the contents of object files into memory, which may call each other's functions.

    Raises UnloadableCodeError.
    """
    tvm_runtime.load_runtime()
    objects = [_ObjectFile.read(file) for file in files]
    defined = {name: (object_, symbol) for object_ in objects for name, symbol in object_.defined_symbols.items()}
    others = {
        (object_, symbol): defined.get(name, name) for object_ in objects for symbol, name in object_.external.items()
    }
    place, executable = _place_all(objects, others)
    memory = mmap.mmap(-1, max(place.end_page(), _PAGE), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    base = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    image = _Image(memory, base, place.of, others)
    for object_ in objects:
        image.copy_sections(object_)
    image.fill_tables()
    for object_ in objects:
        image.relocate(object_)
        image.set_variables(object_)
    if executable and _protect()(base, executable, mmap.PROT_READ | mmap.PROT_EXEC) != 0:
        raise UnloadableCodeError("the system does not let memory become executable")
    shown = {
        name: image.address(object_, symbol)
        for name, (object_, symbol) in defined.items()
        if object_.sections[object_.symbols[symbol][3]] in place.of
    }
    return LoadedCode(memory, shown)


def _place_all(objects: Sequence[_ObjectFile], others: _Others) -> tuple[_PagePlacement, int]:
    """The placement of sections and tables, executable ones first; and its end."""
    place = _PagePlacement()
    for object_ in objects:
        for section in object_.kept:
            if section.flags & _EXECUTABLE:
                place.put(section, section.size, section.alignment)
    outside = dict.fromkeys(name for name in others.values() if isinstance(name, str))
    for name in outside:
        place.put(("jump", name), _JUMP.size, _JUMP.size)
    executable = place.end_page()
    for name in outside:
        place.put(("address", name), 8, 8)
    for object_ in objects:
        for symbol in object_.by_table:
            if not isinstance(others.get((object_, symbol)), str):
                place.put(("address", object_, symbol), 8, 8)
    for object_ in objects:
        for section in object_.kept:
            if not section.flags & _EXECUTABLE:
                place.put(section, section.size, section.alignment)
    return place, executable


@attrs.frozen(eq=False)
class _Image:
    """The memory of object files that are being loaded."""

    memory: mmap.mmap
    base: int  # its address
    places: Mapping[object, int]  # in it, of sections and of what tables hold
    others: _Others

    def copy_sections(self, object_: _ObjectFile) -> None:
        for section in object_.kept:
            if section.kind != _ZEROS:
                at = self.places[section]
                self.memory[at : at + section.size] = object_.code[section.start : section.start + section.size]

    def address(self, object_: _ObjectFile, symbol: int) -> int:
        """The address of a symbol. Raises UnloadableCodeError if it has none."""
        other = self.others.get((object_, symbol))
        if isinstance(other, str):
            return _address(other)
        if other is not None:
            return self.address(*other)
        _, _, _, section, value, _ = object_.symbols[symbol]
        if section == _ABSOLUTE:
            return int(value)
        if section >= _SPECIAL or object_.sections[section] not in self.places:
            raise UnloadableCodeError("a symbol has no place")
        return self.base + self.places[object_.sections[section]] + int(value)

    def fill_tables(self) -> None:
        """Write the addresses of symbols, and the jumps to functions outside."""
        for key, at in self.places.items():
            match key:
                case ("address", str(name)):
                    struct.pack_into("<Q", self.memory, at, _address(name))
                case ("address", _ObjectFile() as object_, int(symbol)):
                    struct.pack_into("<Q", self.memory, at, self.address(object_, symbol))
                case ("jump", str(name)):
                    _JUMP.pack_into(self.memory, at, 0x25FF, self.places["address", name] - at - 6, 0xCCCC)

    def relocate(self, object_: _ObjectFile) -> None:
        """Write the addresses into code and data. Raises UnloadableCodeError for a relocation of another kind."""
        for section, own in object_.relocations:
            start = self.places[section]
            for offset, kind, symbol, addend in own.relocations(object_.code):
                at = start + offset
                target = self._target(object_, kind, symbol)
                relative = target + addend - (self.base + at)
                if kind == _ADDRESS:
                    struct.pack_into("<Q", self.memory, at, (target + addend) & (2**64 - 1))
                elif kind == _RELATIVE_LONG:
                    struct.pack_into("<q", self.memory, at, relative)
                elif kind in (_RELATIVE, _CALL, *_BY_TABLE) and -(2**31) <= relative < 2**31:
                    struct.pack_into("<i", self.memory, at, relative)
                else:
                    raise UnloadableCodeError(f"a relocation of kind {kind} cannot be made")

    def _target(self, object_: _ObjectFile, kind: int, symbol: int) -> int:
        """The target of a relocation: a symbol, its entry in the table, or the jump to a function outside."""
        other = self.others.get((object_, symbol))
        if kind in _BY_TABLE:
            key = ("address", other) if isinstance(other, str) else ("address", object_, symbol)
            return self.base + self.places[key]
        if kind == _CALL and isinstance(other, str):
            return self.base + self.places["jump", other]
        return self.address(object_, symbol)

    def set_variables(self, object_: _ObjectFile) -> None:
        """Write the addresses of TVM's functions into the variables for them.

        Raises UnloadableCodeError if code uses another variable.
        """
        for symbol, (_, info, _, index, _, _) in enumerate(object_.symbols):
            variable = object_.name(symbol) if info == _WEAK_VARIABLE and index != _UNDEFINED else ""
            if variable.startswith(_FUNCTION_OF_TVM):
                function = _address(variable.removeprefix("__"))
                struct.pack_into("<Q", self.memory, self.address(object_, symbol) - self.base, function)
            elif variable and symbol in object_.used_symbols:
                raise UnloadableCodeError(f"it has a variable {variable} that others set")


@attrs.frozen(eq=False)
class _ObjectFile:
    """An object file."""

    code: bytes
    sections: list[_Section]
    symbols: list[tuple[int, int, int, int, int, int]]
    _names: int  # where the symbols' names begin
    kept: list[_Section]  # that go to memory
    relocations: list[tuple[_Section, _Section]]  # what is changed, and how

    @staticmethod
    def read(code: bytes) -> _ObjectFile:
        """Parse an object file.

        Raises UnloadableCodeError for files of other machines, and for code that has to run before it is called.
        """
        sections = _sections(code)
        table = next((s for s in sections if s.kind == _SYMBOLS), None)
        if table is None:
            raise UnloadableCodeError("it has no symbols")
        symbols = list(_SYMBOL.iter_unpack(code[table.start : table.start + table.size]))
        kept = [s for s in sections if s.flags & _NEEDED and s.name != _UNWINDING]
        relocations = [(sections[s.info], s) for s in sections if s.kind == _RELOCATIONS and sections[s.info] in kept]
        found = _ObjectFile(code, sections, symbols, sections[table.link].start, kept, relocations)
        for section in [s for s in kept if s.size and (s.kind in _RUN_AT_START or s.flags & _OF_THREADS)]:
            if not found.starts_nothing(section):
                raise UnloadableCodeError("something of it has to run first, or belongs to threads")
            kept.remove(section)
            relocations[:] = [(changed, how) for changed, how in relocations if changed is not section]
        return found

    def starts_nothing(self, section: _Section) -> bool:
        """True if a section requires only TVM's empty function to run, which LLVM keeps where it optimizes nothing."""
        empty = {
            (within, value)
            for symbol, (_, _, _, within, value, _) in enumerate(self.symbols)
            if self.name(symbol) == _NOTHING_TO_START
        }
        started = [
            (self.symbols[symbol][3], self.symbols[symbol][4] + addend)
            for changed, own in self.relocations
            if changed is section
            for _, _, symbol, addend in own.relocations(self.code)
        ]
        return section.kind in _RUN_AT_START and len(started) * 8 == section.size and empty.issuperset(started)

    def name(self, symbol: int) -> str:
        return _text(self.code, self._names + self.symbols[symbol][0])

    @property
    def defined_symbols(self) -> dict[str, int]:
        """The symbols that others may use, by name."""
        return {
            self.name(symbol): symbol
            for symbol, (_, info, _, section, _, _) in enumerate(self.symbols)
            if info >> 4 and _UNDEFINED < section < _SPECIAL
        }

    @property
    def external(self) -> dict[int, str]:
        """The names of the symbols that code uses and other files define."""
        return {s: self.name(s) for s in self.used_symbols if self.symbols[s][3] == _UNDEFINED}

    @property
    def used_symbols(self) -> list[int]:
        """The symbols that code uses."""
        used = (symbol for _, s in self.relocations for _, _, symbol, _ in s.relocations(self.code))
        return list(dict.fromkeys(used))

    @property
    def by_table(self) -> list[int]:
        """The symbols whose addresses code reads in a table."""
        used = (s.relocations(self.code) for _, s in self.relocations)
        return list(dict.fromkeys(symbol for of in used for _, kind, symbol, _ in of if kind in _BY_TABLE))


@attrs.frozen(eq=False)
class _Section:
    name: str
    kind: int
    flags: int
    start: int
    size: int
    link: int
    info: int
    alignment: int

    def relocations(self, code: bytes) -> Iterator[tuple[int, int, int, int]]:
        return _RELOCATION.iter_unpack(code[self.start : self.start + self.size])


def _sections(code: bytes) -> list[_Section]:
    """Raises UnloadableCodeError for other files than object code of this machine."""
    if len(code) < _HEADER.size or not code.startswith(_ELF):
        raise UnloadableCodeError("it is not an object file for 64 bits, little end first")
    _, kind, machine, _, _, _, start, _, _, _, _, _, count, of_names = _HEADER.unpack_from(code)
    if (kind, machine) != (1, _X86_64):
        raise UnloadableCodeError("it is not for x86-64")
    found = [_SECTION.unpack_from(code, start + n * _SECTION.size) for n in range(count)]
    names = found[of_names][4]
    return [
        _Section(_text(code, names + name), kind, flags, offset, size, link, info, max(alignment, 1))
        for name, kind, flags, _, offset, size, link, info, alignment, _ in found
    ]


_Others = Mapping["tuple[_ObjectFile, int]", "str | tuple[_ObjectFile, int]"]
"""The target of a file's symbol: a symbol of another file, or a name, whose address is that of a function outside."""


class _PagePlacement:
    """The placement of things in pages, one after the other."""

    def __init__(self) -> None:
        self.of: dict[object, int] = {}
        self._end = 0

    def put(self, what: object, size: int, alignment: int) -> None:
        self._end += -self._end % alignment
        self.of[what] = self._end
        self._end += size

    def end_page(self) -> int:
        self._end += -self._end % _PAGE
        return self._end


def _text(code: bytes, start: int) -> str:
    return code[start : code.index(b"\0", start)].decode()


@functools.cache
def _address(name: str) -> int:
    """The address of a function of the C libraries or of TVM's runtime. Raises UnloadableCodeError."""
    try:
        found = ctypes.cast(ctypes.CDLL(None)[name], ctypes.c_void_p).value
    except AttributeError:
        found = None
    if found is None:
        raise UnloadableCodeError(f"there is no {name} in this process")
    return found


@functools.cache
def _protect() -> Any:
    protect = ctypes.CDLL(None).mprotect
    protect.argtypes, protect.restype = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int], ctypes.c_int
    return protect
