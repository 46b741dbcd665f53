"""The assembler: what instructions look like, round trips, and errors at their line and column."""

from __future__ import annotations

import pytest
from accelerator.streams import configs, instructions, random_stream
from hypothesis import given
from hypothesis import strategies as st

from relay.codegen.vta.assembler import AssemblyError, listing, parse_instructions, parse_program, text
from relay.codegen.vta.isa import Alu, AnyInstruction, Finish, Gemm, Load, Queue, Store, no_op
from relay.codegen.vta.layout import AluOp, Memory

LINES = [
    (
        Load(memory=Memory.INP, dram=0x40, x_size=16, x_stride=16, push_next=True),
        "LOAD inp sram=0 dram=0x40 y=1 x=16 push_next",
    ),
    (
        Load(memory=Memory.ACC8, sram=3, y_size=2, x_size=4, x_stride=9, y_pad_top=1, x_pad_right=2),
        "LOAD acc8 sram=3 dram=0x0 y=2 x=4 stride=9 pad=1,0,0,2",
    ),
    (Store(x_size=4, x_stride=4, pop_prev=True), "STORE out sram=0 dram=0x0 y=1 x=4 pop_prev"),
    (Gemm(), "GEMM uop=0..1"),
    (
        Gemm(reset=True, uop_end=9, iter_out=2, iter_in=3, dst_out=4, src_in=5, wgt_in=6, pop_next=True),
        "GEMM reset uop=0..9 out=2 in=3 dst=4,0 src=0,5 wgt=0,6 pop_next",
    ),
    (Alu(op=AluOp.SHR, use_imm=True, imm=-8, dst_in=1), "ALU shr uop=0..1 dst=0,1 imm=-8"),
    (Alu(op=AluOp.MAX, imm=3, reset=True), "ALU max reset uop=0..1 unused_imm=3"),
    (no_op(Queue.COMPUTE, push_prev=True), "LOAD uop sram=0 dram=0x0 y=0 x=0 push_prev"),
    (Finish(), "FINISH"),
]


@pytest.mark.parametrize(("instruction", "line"), LINES)
def test_what_instructions_look_like(instruction: AnyInstruction, line: str) -> None:
    assert text(instruction) == line
    assert parse_instructions(line) == (instruction,)


@given(st.data())
def test_instructions_come_back_from_their_text(data: st.DataObject) -> None:
    config = data.draw(configs())
    stream = tuple(data.draw(st.lists(instructions(config), max_size=5)))
    assert parse_instructions("\n".join(map(text, stream)), config) == stream


def test_what_is_left_out_and_comments() -> None:
    found = parse_instructions("\n# nothing\n  LOAD wgt x=4 dram=0X10 # four\n\tGEMM pop_prev uop=1..3\r\n")
    assert found == (
        Load(memory=Memory.WGT, dram=16, x_size=4, x_stride=4),
        Gemm(uop_begin=1, uop_end=3, pop_prev=True),
    )


WRONG = [
    ("FINISH\nLAOD inp x=1", 2, 1, "'LAOD' is none of LOAD, STORE, GEMM, ALU, FINISH"),
    ("LOAD", 1, 1, "expected a memory, uop, wgt, inp, acc, out, acc8, found 'LOAD'"),
    ("LOAD inq x=1", 1, 6, "expected a memory, .* found 'inq'"),
    ("LOAD inp y=1 x=a", 1, 16, "expected a number, found 'a'"),
    ("LOAD inp pad=1,2,3", 1, 14, "expected 4 numbers, n,n,n,n, found '1,2,3'"),
    ("LOAD inp pad=1,2,3,x", 1, 20, "expected a number, found 'x'"),
    ("LOAD inp size=3", 1, 10, "'size=3' is none of sram=, dram=, y=, x=, stride=, pad="),
    ("LOAD inp x=1 x=2", 1, 14, "x is given twice"),
    ("GEMM pop_prev pop_prev", 1, 15, "pop_prev is given twice"),
    ("  GEMM uop=3", 1, 12, "expected 2 numbers, n..n, found '3'"),
    ("GEMM in=16384", 1, 1, "iter_in is 16384, which does not fit its 14 bits"),
    ("ALU div imm=2", 1, 5, "expected an operation, min, max, add, shr, mul, found 'div'"),
    ("ALU add imm=1 unused_imm=2", 1, 1, "there is one immediate"),
    ("FINISH now", 1, 8, "FINISH has nothing like 'now'"),
    ("LOAD inp x=" + "9" * 5000, 1, 12, "expected a number"),
]


@pytest.mark.parametrize(("program", "line", "column", "message"), WRONG)
def test_errors_have_line_and_column(program: str, line: int, column: int, message: str) -> None:
    with pytest.raises(AssemblyError, match=message) as raised:
        parse_instructions(program, filename="a.vta")
    span = raised.value.span
    assert span is not None and (span.line, span.column) == (line, column)
    assert f"a.vta:{line}:{column}: error: " in str(raised.value)


@given(st.integers(0, 2**32))
def test_programs_come_back_from_their_listing(seed: int) -> None:
    stream, found = random_stream(seed)
    program = stream.program(found)
    again = parse_program(listing(program, data=True))
    assert again.config == program.config and again.instructions == program.instructions
    for ours, other in zip(program.buffers, again.buffers, strict=True):
        assert (ours.name, ours.role, ours.address, ours.shape, ours.dtype) == (
            *(other.name, other.role, other.address, other.shape, other.dtype),
        )
        assert (ours.data is None) == (other.data is None)
        assert ours.data is None or (ours.data == other.data).all()


def test_listings_leave_data_out_unless_asked() -> None:
    program = random_stream(1)[0].program([])
    assert ".values" in listing(program, data=True)
    assert ".values" not in listing(program) and ".micro_ops" in listing(program)


WRONG_PROGRAMS = [
    ("FINISH\n.config log_block=4", 2, 1, ".config comes once, before everything else"),
    (".config log_blok=4", 1, 9, "'log_blok=4' is none of log_inp_width="),
    (".config log_inp_buffer=16", 1, 1, "do not fit 128 bits"),
    (".values 1", 1, 1, ".values belongs to a .buffer before it"),
    (".data 1", 1, 1, "'.data' is none of .config, .buffer, .micro_ops, .values"),
    (".buffer x input int8[4]", 1, 1, "expected `.buffer NAME ROLE DTYPE"),
    (".buffer x in int8[4] 0x1000", 1, 11, "expected a role, input, output, constant, micro-ops, scratch, found 'in'"),
    (".buffer x input int4[4] 0x1000", 1, 17, "expected a type like int8.4,16., found 'int4.4.'"),
    (".buffer x input int8[4] 0x1000\n.values 1 200", 2, 11, "200 is no int8, -128 to 127"),
    (".buffer x input int8[4] 0x1000\n.values 1 2", 1, 1, "the buffer x has 4 values, found 2"),
    (".buffer u micro-ops uint32[1] 0x1000\n.micro_ops 0,0", 2, 12, "expected 3 numbers"),
    (".buffer u micro-ops uint32[1] 0x1000\n.micro_ops 2048,0,0", 2, 1, "dst is 2048"),
    (".buffer x input int8[4] 0", 1, 1, "lies at 0x0 to 0x4, which is not in DRAM"),
    (".buffer x input int8[4] 0x1001", 1, 1, "not a multiple of 0x1000"),
]


@pytest.mark.parametrize(("program", "line", "column", "message"), WRONG_PROGRAMS)
def test_errors_of_directives_have_line_and_column(program: str, line: int, column: int, message: str) -> None:
    with pytest.raises(AssemblyError, match=message) as raised:
        parse_program(program)
    span = raised.value.span
    assert span is not None and (span.line, span.column) == (line, column)
