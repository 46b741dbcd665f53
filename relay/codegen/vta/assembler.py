"""Instructions as text, and back.

    LOAD inp sram=0 dram=0x40 y=14 x=14 stride=56 pad=1,1,1,1 pop_next push_next
    GEMM uop=0..9 out=14 in=14 dst=14,1 src=16,1 wgt=0,0 pop_prev
    GEMM reset uop=0..1 in=196 dst=0,1
    ALU shr uop=0..1 in=196 dst=0,1 src=0,1 imm=8
    STORE out sram=0 dram=0x80 y=14 x=14 stride=56 pop_prev push_prev
    FINISH                             # the end

A line is an instruction; `#` begins a comment. Padding is top, bottom, left, right; factors are for the outer and the
inner loop. What is left out is 0; `y`, `out` and `in` are 1, `uop` is 0..1, and `stride` is `x`. Numbers are decimal or
hexadecimal.

A program has directives, too, each on its own line, and data in the lines after a buffer:

    .config log_block=4
    .buffer x input int8[4,1,16] 0x1000
    .buffer u micro-ops uint32[2] 0x2000
    .micro_ops 0,0,0 1,1,0
    .buffer w constant int8[2,2] 0x3000
    .values 1 -2 3 4
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

import attrs
import numpy as np

from relay.codegen.vta.config import DEFAULT, Config
from relay.codegen.vta.encoding import decode_micro_ops, encode, encode_micro_ops
from relay.codegen.vta.errors import EncodingError, ProgramError
from relay.codegen.vta.isa import Alu, AnyInstruction, Finish, Gemm, Load, Store
from relay.codegen.vta.layout import AluOp, Memory
from relay.codegen.vta.program import Buffer, Program, Role
from relay.errors import CompileError, FrontendError, Source, Span

_FLAGS = ("pop_prev", "pop_next", "push_prev", "push_next")


# ---- printing


def text(instruction: AnyInstruction) -> str:
    """An instruction as a line, without what is as usual."""
    match instruction:
        case Load() | Store():
            words = _transfer_words(instruction)
        case Gemm() | Alu():
            words = _loop_words(instruction)
        case Finish():
            words = ["FINISH"]
    return " ".join([*words, *(flag for flag in _FLAGS if getattr(instruction, flag))])


def _transfer_words(transfer: Load | Store) -> list[str]:
    words = [type(transfer).__name__.upper(), transfer.memory.name.lower()]
    words += [f"sram={transfer.sram}", f"dram={transfer.dram:#x}", f"y={transfer.y_size}", f"x={transfer.x_size}"]
    if transfer.x_stride != transfer.x_size:
        words.append(f"stride={transfer.x_stride}")
    if transfer.is_padded:
        pads = (transfer.y_pad_top, transfer.y_pad_bottom, transfer.x_pad_left, transfer.x_pad_right)
        words.append(f"pad={','.join(map(str, pads))}")
    return words


def _loop_words(loop: Gemm | Alu) -> list[str]:
    words = ["GEMM"] if isinstance(loop, Gemm) else ["ALU", loop.op.name.lower()]
    if loop.reset:
        words.append("reset")
    words.append(f"uop={loop.uop_begin}..{loop.uop_end}")
    words += [f"{name}={count}" for name, count in (("out", loop.iter_out), ("in", loop.iter_in)) if count != 1]
    factors = [("dst", loop.dst_out, loop.dst_in), ("src", loop.src_out, loop.src_in)]
    if isinstance(loop, Gemm):
        factors.append(("wgt", loop.wgt_out, loop.wgt_in))
    words += [f"{name}={outer},{inner}" for name, outer, inner in factors if outer or inner]
    if isinstance(loop, Alu) and loop.use_imm:
        words.append(f"imm={loop.imm}")
    elif isinstance(loop, Alu) and loop.imm:
        words.append(f"unused_imm={loop.imm}")
    return words


def listing(program: Program, *, data: bool = False) -> str:
    """A program as text. The contents of buffers are in it with `data` only; micro-ops are always."""
    sizes = [f"{field.name}={getattr(program.config, field.name)}" for field in attrs.fields(Config)]
    lines = [f".config {' '.join(sizes)}"]
    for buffer in program.buffers:
        shape = ",".join(map(str, buffer.shape))
        lines.append(f".buffer {buffer.name} {buffer.role.value} {buffer.dtype.name}[{shape}] {buffer.address:#x}")
        if buffer.data is not None and buffer.role is Role.MICRO_OPS and buffer.dtype == np.uint32:
            rows = decode_micro_ops(buffer.data.reshape(-1), program.config).tolist()
            lines += [f".micro_ops {' '.join(words)}" for words in _lines(",".join(map(str, row)) for row in rows)]
        elif buffer.data is not None and data:
            lines += [f".values {' '.join(words)}" for words in _lines(map(str, buffer.data.reshape(-1).tolist()))]
    return "\n".join([*lines, *(text(instruction) for instruction in program.instructions)]) + "\n"


def _lines(words: Iterable[str]) -> Iterator[list[str]]:
    row: list[str] = []
    for word in words:
        row.append(word)
        if len(row) == 16:
            yield row
            row = []
    if row:
        yield row


# ---- parsing


class AssemblyError(FrontendError):
    """A text that is not a program, with the line and the column."""


class _Word(NamedTuple):
    text: str
    column: int  # from 0


_WORD = re.compile(r"[^\s#]+")
_NUMBER = re.compile(r"[+-]?(?:0[xX][0-9a-fA-F]{1,16}|[0-9]{1,20})")


@attrs.frozen
class _Line:
    """A line that is being read, and where."""

    source: Source
    number: int
    words: tuple[_Word, ...]

    def error(self, message: str, word: _Word | None = None, help: str | None = None) -> AssemblyError:
        """An error at a word, or at the whole line."""
        first = word or self.words[0]
        last = word or self.words[-1]
        end = last.column + len(last.text) + 1
        return AssemblyError(message, Span(self.source, self.number, first.column + 1, self.number, end), help=help)

    def part(self, word: _Word, start: int, length: int) -> _Word:
        """A piece of a word."""
        return _Word(word.text[start : start + length], word.column + start)

    def integer(self, word: _Word) -> int:
        """The number that a word is."""
        if not _NUMBER.fullmatch(word.text):
            raise self.error(f"expected a number, found {word.text!r}", word)
        return int(word.text, 16 if "x" in word.text.lower() else 10)

    def integers(self, word: _Word, separator: str, count: int) -> list[int]:
        """The numbers that a word is, with separators in between."""
        pieces = word.text.split(separator)
        if len(pieces) != count:
            form = separator.join(["n"] * count)
            raise self.error(f"expected {count} numbers, {form}, found {word.text!r}", word)
        numbers, start = [], 0
        for piece in pieces:
            numbers.append(self.integer(self.part(word, start, len(piece))))
            start += len(piece) + len(separator)
        return numbers

    def pairs(self, words: Iterable[_Word], allowed: Iterable[str]) -> Iterator[tuple[_Word, _Word]]:
        """The names and values of words like `name=value`."""
        names, seen = tuple(allowed), set()
        for word in words:
            name, equals, value = word.text.partition("=")
            if not equals or name not in names:
                raise self.error(f"{word.text!r} is none of {', '.join(f'{n}=' for n in names)}", word)
            if name in seen:
                raise self.error(f"{name} is given twice", word)
            seen.add(name)
            yield self.part(word, 0, len(name)), self.part(word, len(name) + 1, len(value))


_TRANSFER: Mapping[str, tuple[str, ...]] = {
    "sram": ("sram",),
    "dram": ("dram",),
    "y": ("y_size",),
    "x": ("x_size",),
    "stride": ("x_stride",),
    "pad": ("y_pad_top", "y_pad_bottom", "x_pad_left", "x_pad_right"),
}
_LOOP: Mapping[str, tuple[str, ...]] = {
    "uop": ("uop_begin", "uop_end"),
    "out": ("iter_out",),
    "in": ("iter_in",),
    "dst": ("dst_out", "dst_in"),
    "src": ("src_out", "src_in"),
}
_GEMM: Mapping[str, tuple[str, ...]] = {**_LOOP, "wgt": ("wgt_out", "wgt_in")}
_ALU: Mapping[str, tuple[str, ...]] = {**_LOOP, "imm": ("imm",), "unused_imm": ("imm",)}


def _parse_instruction(line: _Line, config: Config) -> AnyInstruction:
    first, *rest = line.words
    flags: dict[str, bool] = {}
    words: list[_Word] = []
    for word in rest:
        if word.text in _FLAGS:
            if word.text in flags:
                raise line.error(f"{word.text} is given twice", word)
            flags[word.text] = True
        else:
            words.append(word)
    found: AnyInstruction
    match first.text:
        case "LOAD" | "STORE":
            found = _parse_transfer(line, first, words, flags)
        case "GEMM":
            found = Gemm(reset=_take_reset(words), **_values(line, words, _GEMM), **flags)  # type: ignore[arg-type]
        case "ALU":
            found = _parse_alu(line, words, flags)
        case "FINISH":
            if words:
                raise line.error(f"FINISH has nothing like {words[0].text!r}", words[0])
            found = Finish(**flags)
        case _:
            raise line.error(f"{first.text!r} is none of LOAD, STORE, GEMM, ALU, FINISH", first)
    try:
        encode(found, config)
    except EncodingError as error:
        raise line.error(error.message) from None
    return found


def _values(line: _Line, words: Iterable[_Word], names: Mapping[str, tuple[str, ...]]) -> dict[str, int]:
    values: dict[str, int] = {}
    for name, value in line.pairs(words, names):
        fields = names[name.text]
        numbers = line.integers(value, ".." if name.text == "uop" else ",", len(fields))
        values.update(zip(fields, numbers, strict=True))
    return values


def _take_reset(words: list[_Word]) -> bool:
    for word in words:
        if word.text == "reset":
            words.remove(word)
            return True
    return False


def _parse_transfer(line: _Line, first: _Word, words: list[_Word], flags: Mapping[str, bool]) -> Load | Store:
    memories = {memory.name.lower(): memory for memory in Memory}
    if not words or words[0].text not in memories:
        word = words[0] if words else first
        raise line.error(f"expected a memory, {', '.join(memories)}, found {word.text!r}", word)
    values = _values(line, words[1:], _TRANSFER)
    values.setdefault("x_stride", values.get("x_size", 0))
    cls = Load if first.text == "LOAD" else Store
    return cls(memory=memories[words[0].text], **values, **flags)  # type: ignore[arg-type]


def _parse_alu(line: _Line, words: list[_Word], flags: Mapping[str, bool]) -> Alu:
    operations = {op.name.lower(): op for op in AluOp}
    if not words or words[0].text not in operations:
        word = words[0] if words else line.words[0]
        raise line.error(f"expected an operation, {', '.join(operations)}, found {word.text!r}", word)
    rest = words[1:]
    reset = _take_reset(rest)
    names = {word.text.partition("=")[0] for word in rest}
    values = _values(line, rest, _ALU)
    use_imm = "imm" in names
    if use_imm and "unused_imm" in names:
        raise line.error("there is one immediate: it is used, or it is not")
    return Alu(op=operations[words[0].text], reset=reset, use_imm=use_imm, **values, **flags)  # type: ignore[arg-type]


def _lines_of(source: Source) -> Iterator[_Line]:
    for number, content in enumerate(source.text.split("\n"), 1):
        code = content.partition("#")[0]
        words = tuple(_Word(found.group(), found.start()) for found in _WORD.finditer(code))
        if words:
            yield _Line(source, number, words)


def parse_instructions(text: str, config: Config = DEFAULT, filename: str = "<text>") -> tuple[AnyInstruction, ...]:
    """The instructions of a text. Raises AssemblyError."""
    return tuple(_parse_instruction(line, config) for line in _lines_of(Source(filename, text)))


def parse_program(text: str, filename: str = "<text>") -> Program:
    """The program that a text is: directives and instructions. Raises AssemblyError."""
    config: Config | None = None
    buffers: list[_BufferText] = []
    instructions: list[AnyInstruction] = []
    line = None
    for line in _lines_of(Source(filename, text)):
        match line.words[0].text:
            case ".config":
                if config is not None or buffers or instructions:
                    raise line.error(".config comes once, before everything else")
                config = _parse_config(line)
            case ".buffer":
                buffers.append(_parse_buffer(line))
            case ".micro_ops" | ".values" as directive:
                if not buffers:
                    raise line.error(f"{directive} belongs to a .buffer before it")
                buffers[-1].add(line, config or DEFAULT)
            case directive if directive.startswith("."):
                raise line.error(f"{directive!r} is none of .config, .buffer, .micro_ops, .values", line.words[0])
            case _:
                instructions.append(_parse_instruction(line, config or DEFAULT))
    try:
        return Program(config or DEFAULT, instructions, [found.buffer() for found in buffers])
    except ProgramError as error:
        where = buffers[-1].line if buffers else line
        assert where is not None
        raise where.error(error.message) from None


def _parse_config(line: _Line) -> Config:
    names = [field.name for field in attrs.fields(Config)]
    values = {name.text: line.integer(value) for name, value in line.pairs(line.words[1:], names)}
    try:
        return Config(**values)
    except CompileError as error:
        raise line.error(error.message, help=error.help) from None


_TYPE = re.compile(r"(u?int(?:8|16|32))\[([0-9]{1,10}(?:,[0-9]{1,10})*)?\]")


@attrs.define
class _BufferText:
    """A buffer while its lines are read."""

    line: _Line
    empty: Buffer
    values: list[int] = attrs.Factory(list)

    def add(self, line: _Line, config: Config) -> None:
        """Values of a line."""
        words = line.words[1:]
        if line.words[0].text == ".micro_ops":
            rows = [line.integers(word, ",", 3) for word in words]
            try:
                found = encode_micro_ops(np.array(rows, np.int64).reshape(-1, 3), config).tolist()
            except EncodingError as error:
                raise line.error(error.message) from None
        else:
            found = [line.integer(word) for word in words]
            limits = np.iinfo(self.empty.dtype)
            for word, value in zip(words, found, strict=True):
                if not limits.min <= value <= limits.max:
                    raise line.error(f"{value} is no {self.empty.dtype}, {limits.min} to {limits.max}", word)
        self.values += found

    def buffer(self) -> Buffer:
        """The buffer with its values, if there are some."""
        if not self.values:
            return self.empty
        count = int(np.prod(self.empty.shape, dtype=np.int64))
        if len(self.values) != count:
            raise self.line.error(f"the buffer {self.empty.name} has {count} values, found {len(self.values)}")
        data = np.array(self.values, self.empty.dtype).reshape(self.empty.shape)
        return attrs.evolve(self.empty, data=data)


def _parse_buffer(line: _Line) -> _BufferText:
    if len(line.words) != 5:
        raise line.error("expected `.buffer NAME ROLE DTYPE[SHAPE] ADDRESS`")
    _, name, role, type_, address = line.words
    roles = {found.value: found for found in Role}
    if role.text not in roles:
        raise line.error(f"expected a role, {', '.join(roles)}, found {role.text!r}", role)
    found = _TYPE.fullmatch(type_.text)
    if found is None:
        raise line.error(f"expected a type like int8[4,16], found {type_.text!r}", type_)
    shape = tuple(int(extent) for extent in found[2].split(",")) if found[2] else ()
    return _BufferText(line, Buffer(name.text, roles[role.text], line.integer(address), shape, np.dtype(found[1])))
