"""Instructions and micro-ops as bits, and back. Every value that does not fit its field is refused."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import cast

import attrs
import numpy as np

from relay.codegen.vta.config import INSTRUCTION_BYTES, Config
from relay.codegen.vta.errors import EncodingError
from relay.codegen.vta.isa import Alu, AnyInstruction, Finish, Gemm, Load, MicroOp, Store
from relay.codegen.vta.layout import AluOp, Field, Memory, Opcode

CLASSES: Mapping[Opcode, type[AnyInstruction]] = {
    Opcode.LOAD: Load,
    Opcode.STORE: Store,
    Opcode.GEMM: Gemm,
    Opcode.FINISH: Finish,
    Opcode.ALU: Alu,
}
OPCODES: Mapping[type[AnyInstruction], Opcode] = {cls: opcode for opcode, cls in CLASSES.items()}

_CODES: Mapping[str, type[Memory] | type[AluOp]] = {"memory": Memory, "op": AluOp}
_FLAGS = frozenset({"pop_prev", "pop_next", "push_prev", "push_next", "reset", "use_imm"})


def encode(instruction: AnyInstruction, config: Config) -> int:
    """The 128 bits of an instruction. Raises EncodingError for a value that does not fit."""
    opcode = OPCODES[type(instruction)]
    bits = int(opcode)
    for field in config.layouts.instructions[opcode][1:]:
        bits |= _bits(field, getattr(instruction, field.name), opcode.name) << field.low
    return bits


def decode(bits: int, config: Config) -> AnyInstruction:
    """The instruction that 128 bits are. Raises EncodingError for an unknown code, and where unused bits are set."""
    code = bits & 7
    if code not in CLASSES:
        raise EncodingError(f"there is no opcode {code}, which stands in bits [2:0] of {bits:#034x}")
    opcode = Opcode(code)
    values: dict[str, object] = {}
    for field in config.layouts.instructions[opcode][1:]:
        values[field.name] = _value(field, bits >> field.low, opcode.name)
    instruction = CLASSES[opcode](**values)  # type: ignore[arg-type]
    unused = bits ^ encode(instruction, config)
    if unused:
        places = ", ".join(str(i) for i in range(unused.bit_length()) if unused >> i & 1)
        raise EncodingError(f"these bits of {opcode.name} belong to no field, but are set: {places}")
    return instruction


def encode_stream(instructions: Iterable[AnyInstruction], config: Config) -> bytes:
    """Instructions one after the other, 16 bytes each, little-endian. Raises EncodingError, with the position."""
    words: list[bytes] = []
    for position, instruction in enumerate(instructions):
        try:
            words.append(encode(instruction, config).to_bytes(INSTRUCTION_BYTES, "little"))
        except EncodingError as error:
            raise EncodingError(f"instruction {position}: {error.message}") from None
    return b"".join(words)


def decode_stream(data: bytes, config: Config) -> tuple[AnyInstruction, ...]:
    """The instructions of a stream. Raises EncodingError, with the position."""
    if len(data) % INSTRUCTION_BYTES:
        raise EncodingError(f"a stream has {INSTRUCTION_BYTES} bytes for each instruction, found {len(data)}")
    found: list[AnyInstruction] = []
    for start in range(0, len(data), INSTRUCTION_BYTES):
        try:
            found.append(decode(int.from_bytes(data[start : start + INSTRUCTION_BYTES], "little"), config))
        except EncodingError as error:
            raise EncodingError(f"instruction {start // INSTRUCTION_BYTES}: {error.message}") from None
    return tuple(found)


def encode_micro_ops(micro_ops: Sequence[MicroOp] | np.ndarray, config: Config) -> np.ndarray:
    """Micro-ops, or a (n, 3) integer array of dst, src and wgt, as (n,) uint32. Raises EncodingError."""
    if isinstance(micro_ops, np.ndarray):
        table = micro_ops.astype(np.int64)
    else:
        table = np.array([attrs.astuple(m) for m in micro_ops], np.int64).reshape(-1, 3)
    words = np.zeros(len(table), np.uint32)
    for column, field in enumerate(config.layouts.micro_op):
        values = table[:, column]
        wrong = np.flatnonzero((values < field.minimum) | (values > field.maximum))
        if wrong.size:
            raise EncodingError(f"micro-op {wrong[0]}: {_range(field, values[wrong[0]])}")
        words |= (values << field.low).astype(np.uint32)
    return words


def decode_micro_ops(words: np.ndarray, config: Config) -> np.ndarray:
    """(n,) uint32 micro-ops as a (n, 3) int64 array of dst, src and wgt."""
    wide = np.asarray(words, np.uint32).astype(np.int64)
    return np.stack([wide >> field.low & field.maximum for field in config.layouts.micro_op], axis=-1)


def _bits(field: Field, value: object, what: str) -> int:
    if field.name in _FLAGS and type(value) is not bool:
        raise EncodingError(f"{field.name} of {what} is True or False, found {value!r}")
    if not isinstance(value, int | np.integer):
        raise EncodingError(f"{field.name} of {what} is an integer, found {value!r}")
    number = int(value)
    if not field.minimum <= number <= field.maximum:
        raise EncodingError(f"{_range(field, number)} of {what}")
    return number & (1 << field.width) - 1


def _range(field: Field, value: int) -> str:
    return (
        f"{field.name} is {value}, which does not fit its {field.width} bits, "
        f"{field.minimum} to {field.maximum}, [{field.highest_bit}:{field.low}]"
    )


def _value(field: Field, bits: int, what: str) -> object:
    number = bits & (1 << field.width) - 1
    if number > field.maximum:
        number -= 1 << field.width
    if field.name in _CODES:
        codes = _CODES[field.name]
        if number not in set(codes):
            raise EncodingError(f"there is no {field.name} {number} of {what}, bits [{field.highest_bit}:{field.low}]")
        return codes(number)
    return bool(number) if field.name in _FLAGS else cast(object, number)
