"""The bits of instructions and micro-ops: the measured positions, round trips over configurations, refusals."""

from __future__ import annotations

import attrs
import numpy as np
import pytest
from accelerator.streams import configs, instructions
from hypothesis import given
from hypothesis import strategies as st

from relay.codegen.vta.config import DEFAULT, Config, Memory
from relay.codegen.vta.encoding import (
    decode,
    decode_micro_ops,
    decode_stream,
    encode,
    encode_micro_ops,
    encode_stream,
)
from relay.codegen.vta.errors import ConfigurationError, EncodingError
from relay.codegen.vta.isa import Alu, AnyInstruction, Finish, Gemm, Load, MicroOp, Queue, Store, no_op
from relay.codegen.vta.layout import AluOp, Field, Opcode

TOKENS = "opcode 2:0  pop_prev 3:3  pop_next 4:4  push_prev 5:5  push_next 6:6  "
TRANSFER = TOKENS + (
    "memory 9:7  sram 25:10  dram 57:26  y_size 79:64  x_size 95:80  x_stride 111:96  "
    "y_pad_top 115:112  y_pad_bottom 119:116  x_pad_left 123:120  x_pad_right 127:124"
)
LOOP = TOKENS + (
    "reset 7:7  uop_begin 20:8  uop_end 34:21  iter_out 48:35  iter_in 62:49  "
    "dst_out 74:64  dst_in 85:75  src_out 96:86  src_in 107:97  "
)
MEASURED = {
    Opcode.LOAD: TRANSFER,
    Opcode.STORE: TRANSFER,
    Opcode.GEMM: LOOP + "wgt_out 117:108  wgt_in 127:118",
    Opcode.ALU: LOOP + "op 110:108  use_imm 111:111  imm 127:112",
    Opcode.FINISH: TOKENS.strip(),
}


def positions(fields: tuple[Field, ...]) -> str:
    return "  ".join(f"{f.name} {f.highest_bit}:{f.low}" for f in fields)


@pytest.mark.parametrize("opcode", Opcode)
def test_fields_stand_where_they_were_measured(opcode: Opcode) -> None:
    assert positions(DEFAULT.layouts.instructions[opcode]) == MEASURED[opcode]


def test_fields_of_micro_ops_stand_where_they_were_measured() -> None:
    assert positions(DEFAULT.layouts.micro_op) == "dst 10:0  src 21:11  wgt 31:22"


def test_fields_of_larger_blocks_stand_where_they_were_measured() -> None:
    config = Config(log_block=5)
    gemm, alu = (positions(config.layouts.instructions[o]) for o in (Opcode.GEMM, Opcode.ALU))
    assert "dst_out 73:64" in gemm and "wgt_out 111:104" in gemm
    assert "op 106:104" in alu and "imm 123:108" in alu
    assert [field.width for field in config.layouts.micro_op] == [10, 10, 8]


def test_codes_are_the_hardware_s() -> None:
    assert [(o.name, o.value) for o in Opcode] == [("LOAD", 0), ("STORE", 1), ("GEMM", 2), ("FINISH", 3), ("ALU", 4)]
    assert [o.name for o in sorted(AluOp)] == ["MIN", "MAX", "ADD", "SHR", "MUL"]
    assert [m.name for m in sorted(Memory)] == ["UOP", "WGT", "INP", "ACC", "OUT", "ACC8"]


BYTES = [
    (Finish(), "03" + 15 * "00"),
    (Finish(pop_prev=True), "0b" + 15 * "00"),
    # memory 2 in [9:7]; sram 1 from bit 10; dram 0x40 from bit 26; y 2, x 16, stride 32; pads 1 2 3 4
    (
        Load(
            memory=Memory.INP,
            sram=1,
            dram=0x40,
            y_size=2,
            x_size=16,
            x_stride=32,
            y_pad_top=1,
            y_pad_bottom=2,
            x_pad_left=3,
            x_pad_right=4,
            push_next=True,
        ),
        "40" + "05" + "00" + "00" + "01000000" + "0200" + "1000" + "2000" + "21" + "43",
    ),
    (Alu(op=AluOp.SHR, use_imm=True, imm=-1, uop_end=1), "0400200008000200" + 5 * "00" + "b0ffff"),
]


@pytest.mark.parametrize(("instruction", "expected"), BYTES, ids=lambda value: type(value).__name__)
def test_bytes_of_instructions(instruction: AnyInstruction, expected: str) -> None:
    assert encode_stream([instruction], DEFAULT).hex() == expected


@given(st.data())
def test_instructions_come_back_from_their_bits(data: st.DataObject) -> None:
    config = data.draw(configs())
    stream = data.draw(st.lists(instructions(config), max_size=8))
    assert list(decode_stream(encode_stream(stream, config), config)) == stream


@given(st.data())
def test_a_field_changes_its_own_bits_only(data: st.DataObject) -> None:
    config = data.draw(configs())
    first = data.draw(instructions(config))
    second = data.draw(instructions(config).filter(lambda i: type(i) is type(first)))
    opcode = Opcode(encode(first, config) & 7)
    field = data.draw(st.sampled_from(config.layouts.instructions[opcode][1:]))
    changed = attrs.evolve(first, **{field.name: getattr(second, field.name)})
    mask = (1 << field.width) - 1 << field.low
    assert (encode(first, config) ^ encode(changed, config)) & ~mask == 0


@given(st.data())
def test_micro_ops_come_back_from_their_bits(data: st.DataObject) -> None:
    config = data.draw(configs())
    rows = st.tuples(*(st.integers(0, field.maximum) for field in config.layouts.micro_op))
    table = np.array(data.draw(st.lists(rows, max_size=5)), np.int64).reshape(-1, 3)
    words = encode_micro_ops(table, config)
    assert words.dtype == np.uint32
    assert (decode_micro_ops(words, config) == table).all()
    assert (encode_micro_ops([MicroOp(*map(int, row)) for row in table], config) == words).all()


REFUSED = [
    (Load(memory=Memory.INP, dram=1 << 32), "dram is 4294967296, which does not fit its 32 bits, 0 to 4294967295"),
    (Load(memory=Memory.INP, y_pad_top=16), r"y_pad_top is 16, .* 4 bits, 0 to 15, \[115:112\] of LOAD"),
    (Store(x_size=-1), "x_size is -1, .* 0 to 65535"),
    (Gemm(wgt_in=1024), "wgt_in is 1024, .* 0 to 1023"),
    (Gemm(uop_end=16384), "uop_end is 16384"),
    (Alu(op=AluOp.ADD, use_imm=True, imm=32768), "imm is 32768, .* -32768 to 32767"),
    (Alu(op=AluOp.ADD, use_imm=1), "use_imm of ALU is True or False, found 1"),
    (Gemm(iter_in=1.0), "iter_in of GEMM is an integer, found 1.0"),
]


@pytest.mark.parametrize(("instruction", "message"), REFUSED)
def test_values_out_of_range_are_refused(instruction: AnyInstruction, message: str) -> None:
    with pytest.raises(EncodingError, match=f"instruction 1: {message}"):
        encode_stream([Finish(), instruction], DEFAULT)


def test_micro_ops_out_of_range_are_refused() -> None:
    with pytest.raises(EncodingError, match="micro-op 1: wgt is 1024"):
        encode_micro_ops([MicroOp(0), MicroOp(0, 0, 1024)], DEFAULT)


UNKNOWN = [
    (5, "there is no opcode 5"),
    (6 << 7, r"there is no memory 6 of LOAD, bits \[9:7\]"),
    (4 | 5 << 108, "there is no op 5 of ALU"),
    (3 | 1 << 7, "these bits of FINISH belong to no field, but are set: 7"),
    (1 << 58, "LOAD belong to no field, but are set: 58"),
    (2 | 1 << 63, "GEMM belong to no field, but are set: 63"),
]


@pytest.mark.parametrize(("bits", "message"), UNKNOWN)
def test_bits_that_are_no_instruction_are_refused(bits: int, message: str) -> None:
    with pytest.raises(EncodingError, match=message):
        decode(bits, DEFAULT)


def test_a_stream_has_whole_instructions() -> None:
    with pytest.raises(EncodingError, match="found 17"):
        decode_stream(bytes(17), DEFAULT)


def test_instructions_that_move_tokens_only() -> None:
    for queue in Queue:
        instruction = no_op(queue, push_next=True)
        assert instruction.queue is queue and instruction.push_next and instruction.x_size == 0


# ---- configurations


def test_sizes_of_the_default() -> None:
    depths = {memory.name: DEFAULT.depth(memory) for memory in Memory}
    assert depths == dict(UOP=8192, WGT=1024, INP=2048, ACC=2048, OUT=2048, ACC8=2048)
    sizes = {memory.name: DEFAULT.element_bytes(memory) for memory in Memory}
    assert sizes == dict(UOP=4, WGT=256, INP=16, ACC=64, OUT=16, ACC8=16)
    assert DEFAULT.log_out_buffer == 15 and DEFAULT.batch == 1 and DEFAULT.block == 16


@pytest.mark.parametrize("buffer", ["log_uop_buffer", "log_inp_buffer", "log_wgt_buffer", "log_acc_buffer"])
def test_the_default_is_exactly_full(buffer: str) -> None:
    with pytest.raises(ConfigurationError, match="do not fit 128 bits") as raised:
        Config(**{buffer: getattr(DEFAULT, buffer) + 1})
    assert "make a buffer smaller" in str(raised.value)


def test_two_rows_a_tensor_fit() -> None:
    config = Config(log_batch=1)
    assert config.depth(Memory.INP) == config.depth(Memory.ACC) == 1024


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"log_inp_width": 2}, "log_inp_width is 3 to 4, found 2"),
        ({"log_block": 4.0}, "log_block is 0 to 16, found 4.0"),
        ({"log_acc_width": 3}, "log_acc_width is 4 to 5, found 3"),
        ({"log_wgt_buffer": 8}, "the WGT buffer of 256 bytes has no two elements of 256 bytes"),
        ({"log_uop_buffer": 9, "log_block": 0}, "do not fit"),
    ],
)
def test_what_is_no_configuration_is_refused(sizes: dict[str, int], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        Config(**sizes)
