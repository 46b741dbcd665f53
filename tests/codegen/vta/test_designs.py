"""What the rules of portability are for: the designs of a second simulator, which knows nothing of the rules, differ
where a stream breaks one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from accelerator.machine import CHISEL, DESIGNS, HLS, SIMULATOR, Failure, Machine
from accelerator.streams import Stream

from relay.codegen.vta.assembler import parse_instructions
from relay.codegen.vta.layout import Memory
from relay.codegen.vta.program import Program
from relay.codegen.vta.program_files import write_program
from relay.codegen.vta.simulator.findings import ALL, LINTS
from relay.codegen.vta.simulator.run import examine

STREAM = Stream(micro_ops=[(0, 0, 0), (1, 1, 1), (1, 0, 0), (0, 0, 1), (2, 2, 0)])
PLACES = {name: f"dram={STREAM.place(name, Memory[name.upper()]):#x}" for name in ("uop", "inp", "wgt", "acc", "out")}
STORE = "ALU add uop=0..1 in=8 dst=0,1 src=0,1 imm=0\nSTORE out {out} x=8"

# a stream behind loads that fill the scratchpads, the rule that it breaks, and a design that is not the simulator
BROKEN = [
    ("ALU max uop=2..3 imm=0\n" + STORE, "immediate-source", CHISEL),
    ("ALU max uop=0..1 in=4 dst=0,1 imm=0\n" + STORE, "immediate-source", CHISEL),
    ("ALU shr uop=0..1 in=8 dst=0,1 src=0,1 imm=20\n" + STORE, "shift-range", HLS),
    ("ALU shr uop=0..1 in=8 dst=0,1 src=0,1 imm=-18\n" + STORE, "shift-range", HLS),
    ("ALU mul uop=0..1\n" + STORE, "multiply", HLS),
    ("LOAD acc8 {inp} x=1\n" + STORE, "acc8-load", HLS),
    ("LOAD uop sram=2047 {uop} x=2\n" + STORE, "micro-op-depth", CHISEL),
    ("ALU max uop=3..4 imm=0\n" + STORE, "micro-op-weight", CHISEL),
    ("GEMM uop=0..0\n" + STORE, "empty-loop", CHISEL),
    ("LOAD inp {inp} y=0 x=3 pad=1,0,0,0\n" + STORE, "empty-rows", CHISEL),
    ("GEMM uop=0..1 in=2 src=0,1\n" + STORE, "repeated-destination", HLS),
    ("GEMM uop=0..2 in=2 src=0,2\n" + STORE, "repeated-destination", CHISEL),
    ("ALU add uop=0..1 in=3 dst=0,2 src=0,1\n" + STORE, "repeated-destination", CHISEL),
    ("STORE out {out} x=8", "stale-output", HLS),
    ("GEMM uop=0..1 in=8 dst=0,1\nGEMM reset uop=1..2\nSTORE out {out} x=8", "stale-output", HLS),
    ("GEMM uop=0..1 in=8 dst=0,1\nGEMM reset uop=1..2\nSTORE out {out} x=8", "stale-output", CHISEL),
    ("LOAD uop {uop} y=2 x=1\n" + STORE, "micro-op-load", HLS),
    ("LOAD uop sram=2 dram=0x403 x=2\nGEMM uop=1..2\n" + STORE, "micro-op-load", CHISEL),
    ("LOAD wgt {wgt} x=1 pad=0,1,0,0\n" + STORE, "padded-load", HLS),
    ("LOAD inp x=0 y=0 pad=1,0,1,0\n" + STORE, "padded-load", HLS),
]


def program(text: str) -> Program:
    fill = [STREAM.load(name) for name in ("uop", "acc", "inp", "wgt")]
    return STREAM.program([*fill, *parse_instructions(text.format(**PLACES))])


def outcomes(folder: Path, text: str) -> dict[str, bytes | None]:
    """What each design leaves in the buffer of results; None if it does not do that."""
    write_program(program(text), folder)
    found: dict[str, bytes | None] = {}
    for design in DESIGNS:
        machine = Machine(folder, {}, design, seed=1)
        try:
            machine.run()
            found[design] = machine["out"][:8].tobytes()
        except Failure:
            found[design] = None
    return found


@pytest.mark.parametrize(("text", "rule", "design"), BROKEN)
def test_designs_differ_where_a_rule_is_broken(tmp_path: Path, text: str, rule: str, design: str) -> None:
    assert {finding.rule for finding in examine(program(text), checks=ALL).findings} == {rule}
    found = outcomes(tmp_path, text)
    assert found[SIMULATOR] is not None
    assert found[design] != found[SIMULATOR]


def test_designs_agree_where_none_is_broken(tmp_path: Path) -> None:
    text = (
        "GEMM uop=0..2 in=4 dst=0,2 src=0,2\nALU shr uop=0..1 in=8 dst=0,1 src=0,1 imm=5\n"
        "ALU add uop=4..5 in=3 dst=0,1 src=0,4\nALU shr uop=0..1 in=8 dst=0,1 src=0,1 imm=-16\n" + STORE
    )
    simulation = examine(program(text))
    assert simulation.findings == ()
    assert set(outcomes(tmp_path, text).values()) == {np.asarray(simulation["out"])[:8].tobytes()}


def test_every_rule_on_single_instructions_is_tried() -> None:
    """The others are about counters, queues and the end of streams, which `test_rules` has."""
    assert {rule for _, rule, _ in BROKEN} == set(LINTS) - {"token-capacity", "instruction-queue", "finish-tokens"}
