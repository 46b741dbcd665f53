"""Each rule of the simulator: a stream that keeps it, and one that breaks it, with what is told."""

from __future__ import annotations

import re

import attrs
import numpy as np
import pytest
from accelerator.streams import Stream

from relay.codegen.vta.assembler import parse_instructions
from relay.codegen.vta.config import Config
from relay.codegen.vta.errors import ProgramError
from relay.codegen.vta.isa import Alu, AnyInstruction, Load
from relay.codegen.vta.layout import AluOp, Memory
from relay.codegen.vta.simulator.findings import ALL, ERRORS, FATAL, LINTS, RULES, Checks, StreamError
from relay.codegen.vta.simulator.run import examine, simulate

MICRO_OPS = [(0, 0, 0), (1, 1, 1), (2, 2, 0), (1, 0, 0), (0, 0, 1), (2040, 2040, 0), (3, 3, 0), (4, 4, 0)]
STREAM = Stream(micro_ops=MICRO_OPS)
FILL = [STREAM.load("uop"), STREAM.load("acc"), STREAM.load("inp"), STREAM.load("wgt")]
OUT = f"dram={STREAM.place('out', Memory.OUT):#x}"
INP = f"dram={STREAM.place('inp', Memory.INP):#x}"
UOP = f"dram={STREAM.place('uop', Memory.UOP):#x}"
ACC = f"dram={STREAM.place('acc', Memory.ACC):#x}"
WGT = f"dram={STREAM.place('wgt', Memory.WGT):#x}"


def told(instructions: list[AnyInstruction], *, ordered: bool = True, checks: Checks = ALL) -> list[tuple[str, str]]:
    """What is found, by rule and message."""
    findings = examine(STREAM.program(instructions, ordered=ordered), checks=checks).findings
    return [(finding.rule, finding.message) for finding in findings]


def after_fill(text: str, *, checks: Checks = ALL) -> list[tuple[str, str]]:
    """What is found in instructions that run one after the other when the scratchpads are full."""
    return told([*FILL, *parse_instructions(text.format(OUT=OUT, INP=INP, UOP=UOP, ACC=ACC, WGT=WGT))], checks=checks)


KEPT = [
    "GEMM uop=0..2 in=3 dst=0,4 src=0,4",
    "GEMM reset uop=0..1 in=9 dst=0,0",
    "ALU add uop=0..1\nALU add uop=2..3",
    "ALU shr uop=0..1 in=8 dst=0,1 src=0,1 imm=-16\nSTORE out sram=0 {OUT} x=8",
    "ALU shr uop=0..1 in=8 dst=0,1 src=0,1 imm=15",
    "GEMM uop=0..1 in=8 dst=0,1\nSTORE out sram=0 {OUT} x=2 y=4 stride=5",
    "LOAD inp sram=2040 {INP} x=8",
    "LOAD inp sram=0 {INP} y=4 x=4 stride=7 pad=1,2,3,4",
    "STORE out x=0 dram=0xffffffff sram=65535",  # nothing is moved, so nothing is out of bounds
    "LOAD acc x=0 pad=1,1,1,1",
    "LOAD uop y=0 x=0 pad=1,1,1,1",
]


@pytest.mark.parametrize("text", KEPT)
def test_streams_that_keep_all_rules(text: str) -> None:
    assert after_fill(text) == []


BROKEN = [
    # the instruction is number 6, after four loads and a no-op between the load and the compute unit
    ("LOAD out {OUT} x=1", "memory", "instruction 4 loads OUT, which is only stored"),
    ("STORE acc {OUT} x=1", "memory", "stores ACC, not OUT"),
    ("STORE out {OUT} x=1 pad=1,0,0,0", "padded-store", "stores with padding"),
    ("LOAD inp sram=2041 {INP} x=8", "scratchpad-bounds", r"reaches INP\[2048\] of 2048"),
    (
        "LOAD inp sram=2030 {INP} x=8 pad=1,1,0,0",
        "scratchpad-bounds",
        r"reaches INP\[2053\] .*3 x 8 elements",
    ),
    ("LOAD acc sram=2048 {ACC} x=1", "scratchpad-bounds", r"reaches ACC\[2048\]"),
    ("STORE out sram=2047 {OUT} x=1 y=2", "scratchpad-bounds", r"reaches ACC\[2048\]"),
    ("GEMM uop=0..8200", "scratchpad-bounds", r"reaches UOP\[8199\] of 8192"),
    ("GEMM uop=5..6 in=9 dst=0,1", "scratchpad-bounds", r"reaches ACC\[2048\] of 2048 \(destination\)"),
    ("GEMM uop=5..6 in=9 src=0,1", "scratchpad-bounds", r"reaches INP\[2048\] of 2048 \(source\)"),
    ("GEMM uop=1..2 out=3 wgt=1023,0", "scratchpad-bounds", r"reaches WGT\[2047\] of 1024 \(weights\)"),
    ("ALU add uop=5..6 in=9 src=0,1", "scratchpad-bounds", r"reaches ACC\[2048\] of 2048 \(source\)"),
    ("LOAD inp dram=0 x=1", "dram-bounds", "begins at 0x0, where no buffer is"),
    ("LOAD inp {INP} x=33", "dram-bounds", "goes from 0x2000 to 0x2210, but the buffer inp ends at 0x2200"),
    ("LOAD inp {INP} x=16 y=2 stride=17", "dram-bounds", "ends at 0x2200"),
    (
        "GEMM uop=0..1 in=32 dst=0,1\nSTORE out {OUT} x=1 y=32 stride=2",
        "dram-bounds",
        "goes from 0x6000 to 0x63f0, .* ends at 0x6200",
    ),
    ("LOAD inp {OUT} x=1", "unwritten", "reads bytes of the buffer out that nothing has written"),
    ("GEMM uop=8..9", "unwritten", r"reads UOP\[8\], which nothing has written"),
    ("GEMM uop=5..6 in=2 dst=0,1", "unwritten", r"reads ACC\[2040\]"),
    ("GEMM uop=0..1 out=2 src=40,0 dst=1,0", "unwritten", r"reads INP\[40\]"),
    ("GEMM uop=0..1 out=2 wgt=40,0 dst=1,0", "unwritten", r"reads WGT\[40\]"),
    ("ALU add uop=0..1 out=2 dst=1,0 src=40,0", "unwritten", r"reads ACC\[40\]"),
    ("STORE out sram=40 {OUT} x=1", "unwritten", "stores row 40, which nothing has written"),
    ("ALU shr uop=0..1 in=4 dst=0,1 src=0,1 imm=16", "shift-range", "shifts by 16"),
    ("ALU shr uop=0..1 in=4 dst=0,1 src=0,1 imm=-17", "shift-range", "shifts by -17"),
    ("ALU shr uop=0..1 in=2 dst=0,1 src=0,3", "shift-range", "shifts by a tensor with -"),
    ("ALU shr uop=7..8 unused_imm=-1", "shift-range", "has a negative immediate that it does not use"),
    ("ALU max uop=3..4 imm=0", "immediate-source", "a micro-op with destination 1 and source 0"),
    ("ALU max uop=0..1 in=4 dst=0,1 imm=0", "immediate-source", "destination factors 0, 1 and source factors 0, 0"),
    ("ALU mul uop=0..1", "multiply", "multiplies"),
    ("LOAD acc8 {INP} x=1", "acc8-load", "loads ACC8"),
    ("LOAD uop sram=2047 {UOP} x=2", "micro-op-depth", "fills micro-ops up to 2048"),
    ("ALU max uop=4..5 imm=0", "micro-op-weight", "a micro-op with weight index 1"),
    ("GEMM uop=0..1 in=0", "empty-loop", "1 x 0 iterations over the micro-ops 0 to before 1"),
    ("ALU add uop=0..1 out=0", "empty-loop", "0 x 1 iterations"),
    ("GEMM uop=3..3", "empty-loop", "the micro-ops 3 to before 3"),
    ("GEMM uop=3..2", "empty-loop", "the micro-ops 3 to before 2"),
    ("LOAD inp {INP} y=0 x=3 pad=1,0,0,0", "empty-rows", "has rows of 3 elements, but none"),
    ("STORE out {OUT} y=0 x=3", "empty-rows", "has rows of 3 elements"),
    ("GEMM uop=0..1 in=2", "repeated-destination", "reads row 0 within two steps of writing it"),
    ("GEMM uop=0..2 in=2", "repeated-destination", "reads row 0"),
    ("ALU add uop=0..1 in=2", "repeated-destination", "reads row 0"),
    ("ALU add uop=0..1 in=3 dst=0,2 src=0,1", "repeated-destination", ""),
    ("STORE out {OUT} x=4", "stale-output", "stores row 0, which a load wrote last"),
    (
        "GEMM uop=0..3\nGEMM reset uop=1..2\nSTORE out {OUT} x=3",
        "stale-output",
        "stores row 1, which a reset wrote last",
    ),
    ("LOAD uop {UOP} y=2 x=1", "micro-op-load", "loads micro-ops in 2 rows"),
    ("LOAD uop {UOP} x=1 pad=0,0,1,0", "micro-op-load", "loads micro-ops with padding"),
    ("LOAD uop sram=2 dram=0x401 x=2", "micro-op-load", "from an odd place, 0x401, to an even one, 2"),
    ("LOAD wgt {WGT} x=1 pad=0,1,0,0", "padded-load", "loads WGT with padding"),
    ("LOAD acc {ACC} x=1 pad=0,0,1,0", "padded-load", "loads ACC with padding"),
    ("LOAD inp x=0 y=0 pad=1,0,1,0", "padded-load", "loads nothing with padding"),
    ("LOAD acc8 x=0", "acc8-load", "loads ACC8"),
]


@pytest.mark.parametrize(("text", "rule", "message"), BROKEN)
def test_streams_that_break_a_rule(text: str, rule: str, message: str) -> None:
    findings = after_fill(text)
    assert [found for found, _ in findings] == [rule]
    assert re.search(message, findings[0][1])
    if rule not in FATAL:
        allowed = {rule, "stale-output"} if rule == "unwritten" else {rule}
        assert after_fill(text, checks=Checks(allow=allowed)) == []


def test_sources_of_immediates_are_within_bounds() -> None:
    """The original simulator looks at them even so."""
    rules = [rule for rule, _ in after_fill("ALU max uop=5..6 in=9 src=0,1 imm=1")]
    assert rules == ["immediate-source", "scratchpad-bounds"]


def unordered(text: str) -> list[tuple[str, str]]:
    """What is found in a stream with tokens of its own, whose first instructions fill the scratchpads."""
    fill = [STREAM.load("uop"), STREAM.load("acc"), STREAM.load("inp"), STREAM.load("wgt", push_next=True)]
    gate = parse_instructions("LOAD uop y=0 pop_prev")
    rest = parse_instructions(text.format(OUT=OUT, INP=INP, UOP=UOP, ACC=ACC))
    return told([*fill, *gate, *rest], ordered=False)


END = "\nLOAD inp y=0 push_next\nSTORE out y=0 push_prev\nLOAD uop y=0 pop_prev pop_next\nFINISH"

RACES = [
    # two units, each access first
    ("GEMM uop=0..1\nLOAD inp sram=0 {INP} x=4" + END, "instruction 6 writes what instruction 5 reads, in INP"),
    ("LOAD inp sram=0 {INP} x=4\nGEMM uop=0..1" + END, "instruction 6 reads what instruction 5 writes, in INP"),
    ("GEMM uop=1..2\nLOAD wgt sram=1 dram=0x30 x=1" + END, "instruction 6 writes what instruction 5 reads, in WGT"),
    (
        "ALU add uop=0..1 imm=1 push_next\nSTORE out {OUT} x=1 pop_prev\nALU add uop=0..1 imm=1" + END,
        "instruction 7 writes what instruction 6 reads, in ACC",
    ),
    (
        "ALU add uop=0..1 imm=1 push_next\nSTORE out {OUT} x=1 pop_prev\nLOAD inp sram=9 {OUT} x=1" + END,
        "instruction 7 reads what instruction 6 writes, in the buffer out",
    ),
]


@pytest.mark.parametrize(("text", "message"), RACES)
def test_races(text: str, message: str) -> None:
    findings = unordered(text)
    assert [rule for rule, _ in findings] == ["race"]
    assert findings[0][1] == message + ": no token says which comes first"


def test_a_store_over_what_is_being_loaded_is_a_race() -> None:
    """Both ends are told, and those alone that no token orders."""
    text = "ALU add uop=0..1 imm=1 push_next\nLOAD inp sram=9 {INP} x=1\nSTORE out {INP} x=1 pop_prev" + END
    assert unordered(text) == [
        ("race", "instruction 7 writes what instruction 6 reads, in the buffer inp: no token says which comes first")
    ]


def test_places_next_to_each_other_are_no_race() -> None:
    assert unordered("GEMM uop=0..1\nLOAD inp sram=1 {INP} x=4" + END) == []
    rows = "ALU add uop=0..1 imm=1 push_next\nSTORE out {OUT} x=1 pop_prev\nALU add uop=2..3 imm=1" + END
    assert unordered(rows) == []
    strided = (
        "ALU add uop=0..1 in=4 dst=0,1 src=0,1 imm=1 push_next\nSTORE out {OUT} x=1 y=4 stride=2 pop_prev push_prev"
    )
    assert unordered(strided + END.replace("STORE out y=0 push_prev\n", "")) == []


TOKENS = [
    ("LOAD inp y=0 pop_prev" + END, "tokens", "instruction 5 has pop_prev, which leads nowhere from the load unit"),
    ("LOAD wgt y=0 push_prev" + END, "tokens", "instruction 5 has push_prev"),
    ("STORE out y=0 pop_next" + END, "tokens", "instruction 5 has pop_next, which leads nowhere from the store unit"),
    ("STORE out y=0 push_next" + END, "tokens", "instruction 5 has push_next"),
    ("LOAD inp y=0 push_next" + END, "leftover-token", "a token load to compute is left over: 3 are posted, 2"),
    (
        "GEMM uop=0..1 push_prev\nGEMM uop=0..1 push_prev" + END,
        "leftover-token",
        "2 tokens compute to load are left",
    ),
    (
        "LOAD uop y=0 pop_prev" + END,
        "deadlock",
        "posts; 1 more waits behind it",
    ),
    (
        "LOAD uop y=0 pop_next push_prev\nLOAD inp y=0 pop_next push_next\nLOAD uop y=0 pop_prev push_next\n"
        "STORE out y=0 pop_prev push_prev",
        "deadlock",
        "instruction 6 waits for a token compute to load, which instruction 5 would post",
    ),
    ("LOAD uop y=0", "finish", "the stream has no FINISH"),
    ("FINISH\nFINISH", "finish", "there are 2 FINISH"),
    ("FINISH\nGEMM uop=0..1", "finish", "instruction 6, the last one, is not FINISH"),
    ("STORE out y=0\nFINISH", "finish", "instruction 5 may run after FINISH: no token orders it before"),
    ("LOAD inp y=0\nFINISH", "finish", "instruction 5 may run after FINISH"),
    ("LOAD inp y=0 push_next\nFINISH pop_prev", "finish-tokens", "instruction 6, FINISH, has tokens"),
]


@pytest.mark.parametrize(("text", "rule", "message"), TOKENS)
def test_tokens_and_the_end(text: str, rule: str, message: str) -> None:
    findings = unordered(text)
    assert any(found == rule and message in words for found, words in findings), findings


def many(count: int, text: str) -> list[AnyInstruction]:
    return list(parse_instructions("\n".join([text] * count)))


def test_counters_hold_255_tokens() -> None:
    end = list(parse_instructions(END))
    for count, rules in ((254, []), (255, ["token-capacity"])):  # one more comes with the end
        posts, takes = many(count, "LOAD inp y=0 push_next"), many(count, "LOAD uop y=0 pop_prev")
        assert [rule for rule, _ in told([*posts, *takes, *end], ordered=False)] == rules
        pairs = [instruction for pair in zip(posts, takes, strict=True) for instruction in pair]
        assert [rule for rule, _ in told([*pairs, *end], ordered=False)] == rules, "nothing holds the load unit back"


def test_tokens_that_are_taken_for_certain_are_not_counted() -> None:
    """The load unit waits for each token to be taken, so there is one at a time."""
    turns = []
    for turn in range(300):
        turns += parse_instructions(f"LOAD inp y=0 {'pop_next ' if turn else ''}push_next")
        turns += parse_instructions(f"LOAD uop y=0 pop_prev {'push_prev' if turn < 299 else ''}")
    assert told([*turns, *parse_instructions(END)], ordered=False) == []


def test_queues_hold_512_instructions() -> None:
    """The load unit waits for a token that the compute unit posts behind more loads than fit its queue."""
    for count, rules in ((512, []), (513, ["instruction-queue"])):
        loads = [*parse_instructions("LOAD inp y=0 pop_next"), *many(count - 1, "LOAD inp y=0")]
        stream = [*loads, *parse_instructions("LOAD uop y=0 push_prev" + END)]
        assert [rule for rule, _ in told(stream, ordered=False)] == rules


def test_every_rule_has_a_test() -> None:
    tested = {rule for _, rule, _ in (*BROKEN, *TOKENS)} | {"race", "token-capacity", "instruction-queue"}
    assert tested == set(RULES) == set(ERRORS) | set(LINTS)


def test_the_error_shows_the_instructions_and_the_rule() -> None:
    program = STREAM.program([*FILL, *parse_instructions(f"STORE out sram=1 {OUT} x=1")])
    with pytest.raises(StreamError, match="stale-output: instruction") as raised:
        simulate(program)
    assert f"STORE out sram=1 {OUT} y=1 x=1" in str(raised.value)
    assert "help: the rule: the last to write a row that is stored was the ALU" in str(raised.value)
    assert [finding.is_lint for finding in raised.value.findings] == [True]
    simulate(program, checks=Checks(lints=False))


def test_rules_that_end_the_stream_cannot_be_allowed() -> None:
    with pytest.raises(ValueError, match="'deadlock' cannot be disabled"):
        Checks(allow={"deadlock"})
    with pytest.raises(ValueError, match="there is no rule 'rase'"):
        Checks(allow={"rase"})


def test_the_number_of_findings_is_limited() -> None:
    stream = [*FILL, *many(9, "GEMM uop=0..1 in=2")]
    assert len(told(stream)) == 9
    assert len(told(stream, checks=Checks(limit=4))) == 4


def test_inputs_are_written_by_the_host() -> None:
    """An input without contents has not been written; an array given for it is."""
    program = STREAM.program([STREAM.load("inp", 4)])
    bare = attrs.evolve(program, buffers=[attrs.evolve(b, data=None) for b in program.buffers])
    assert [finding.rule for finding in examine(bare).findings] == ["unwritten"]
    assert examine(bare, {"inp": np.zeros((32, 1, 16), np.int8)}).findings == ()


def test_loads_that_the_host_s_array_does_not_fit() -> None:
    program = STREAM.program([Load(memory=Memory.INP)])
    with pytest.raises(ProgramError, match=r"the buffer inp has int8 \(32, 1, 16\), found float64 \(3,\)"):
        simulate(program, {"inp": np.zeros(3)})
    with pytest.raises(ProgramError, match="there is no buffer x"):
        simulate(program, {"x": np.zeros(3)})


def test_16_bit_accumulators_shift_by_four_bits() -> None:
    """HLS takes as many bits of the number as the logarithm of the width."""
    stream = Stream(Config(log_acc_width=4, log_acc_buffer=16))
    for imm, rules in ((7, []), (-8, []), (8, ["shift-range"]), (-9, ["shift-range"])):
        shift = Alu(op=AluOp.SHR, use_imm=True, imm=imm)
        program = stream.program([stream.load("uop"), stream.load("acc"), shift])
        assert [finding.rule for finding in examine(program).findings] == rules
