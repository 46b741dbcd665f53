"""`relay vta`: what it prints and writes, and its exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from relay.cli import main
from relay.codegen.vta.program_files import program_files, read_program

PROGRAM = """
.config log_block=1 log_uop_buffer=5 log_inp_buffer=4 log_wgt_buffer=4 log_acc_buffer=6
.buffer uops micro-ops uint32[1] 0x1000
.micro_ops 0,0,0
.buffer x input int8[4,1,2] 0x2000
.buffer w constant int8[1,2,2] 0x3000
.values 2 0 0 2
.buffer y output int8[4,1,2] 0x4000
LOAD uop dram=0x400 x=1
LOAD inp dram=0x1000 x=4
LOAD wgt dram=0xc00 x=1 push_next
GEMM reset in=4 dst=0,1 pop_prev
GEMM in=4 dst=0,1 src=0,1
ALU min in=4 dst=0,1 src=0,1 imm=127 push_next
STORE out dram=0x2000 x=4 pop_prev push_prev
LOAD uop y=0 pop_next
FINISH
"""
X = np.array([1, 2, 3, 4, 5, 6, 100, -10], np.int8).reshape(4, 1, 2)


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "program.vta"
    path.write_text(PROGRAM)
    return path


@pytest.fixture
def arguments(tmp_path: Path) -> str:
    np.savez(tmp_path / "args.npz", x=X)
    return str(tmp_path / "args.npz")


def test_a_program_goes_to_files_and_back(program: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["vta", "assemble", str(program), "-o", str(tmp_path / "files")]) == 0
    assert capsys.readouterr().out == f"9 instructions and 4 buffers in {tmp_path / 'files'}\n"
    again = tmp_path / "again.vta"
    assert main(["vta", "disassemble", str(tmp_path / "files"), "--data", "-o", str(again)]) == 0
    assert main(["vta", "assemble", str(again), "-o", str(tmp_path / "more")]) == 0
    files, more = (program_files(read_program(tmp_path / name)) for name in ("files", "more"))
    assert files == more
    capsys.readouterr()
    assert main(["vta", "disassemble", str(tmp_path / "files")]) == 0
    printed = capsys.readouterr().out
    assert "GEMM uop=0..1 in=4 dst=0,1 src=0,1\n" in printed and ".values" not in printed


def test_a_program_is_simulated(program: Path, arguments: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["vta", "simulate", str(program), "--args", arguments]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith(f"y: int8 (4, 1, 2)\n{np.minimum(2 * X.astype(int), 127)}\n")
    assert "GEMM: 4 steps" in printed and "compute waits for tokens load to compute" in printed


def test_results_and_timelines_are_written(program: Path, arguments: str, tmp_path: Path) -> None:
    for name in ("t.json", "t.svg"):
        call = ["vta", "simulate", str(program), "--args", arguments, "--output", str(tmp_path / "out.npz")]
        assert main([*call, "--timeline", str(tmp_path / name)]) == 0
    with np.load(tmp_path / "out.npz") as found:
        assert (found["y"] == np.minimum(2 * X.astype(int), 127)).all()
    assert json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    assert (tmp_path / "t.svg").read_text().startswith("<svg")


def test_the_cycle_model_is_chosen(program: Path, arguments: str, capsys: pytest.CaptureFixture[str]) -> None:
    cycles = []
    for model in ("chisel", "hls", "hls, latency=100, shared_port=0"):
        assert main(["vta", "simulate", str(program), "--args", arguments, "--cycles", model]) == 0
        printed = capsys.readouterr().out
        cycles.append(int(printed.partition(" cycles")[0].rpartition("\n")[2]))
    assert cycles[1] == cycles[0] + 4  # the steps of the ALU
    assert cycles[2] > cycles[1]


def test_mistakes_in_a_stream(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The input was not given, so what is loaded has not been written."""
    assert main(["vta", "simulate", str(program)]) == 1
    printed = capsys.readouterr().out
    assert "error: unwritten: instruction 1 reads bytes of the buffer x that nothing has written" in printed
    assert "LOAD inp sram=0 dram=0x1000 y=1 x=4" in printed
    assert main(["vta", "simulate", str(program), "--allow", "unwritten"]) == 0
    assert main(["vta", "simulate", str(program), "--no-checks"]) == 0


def test_mistakes_in_a_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "wrong.vta").write_text("FINISH\nGEMM uop=1\n")
    assert main(["vta", "simulate", str(tmp_path / "wrong.vta")]) == 1
    assert "wrong.vta:2:10: error: expected 2 numbers, n..n, found '1'" in capsys.readouterr().out


def test_wrong_calls(program: Path, arguments: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "bytes.vta").write_bytes(b"\xff\xfe")
    np.savez(tmp_path / "other.npz", z=X)
    np.savez(tmp_path / "wide.npz", x=X.astype(np.int32))
    for call, message in [
        (["simulate", "nowhere.vta"], "cannot read nowhere.vta: No such file or directory"),
        (["simulate", str(tmp_path / "bytes.vta")], "is not a text in UTF-8"),
        (["simulate", str(tmp_path)], "manifest.json: No such file or directory"),
        (["simulate", str(program), "--timeline", "t.png"], "--timeline writes .json or .svg, found t.png"),
        (["simulate", str(program), "--allow", "rase"], "--allow: there is no rule 'rase'"),
        (["simulate", str(program), "--cycles", "hsl"], "--cycles: 'hsl' is none of chisel, hls, bus=N"),
        (["simulate", str(program), "--cycles", "bus=0"], "--cycles: 'bus' must be >= 1"),
        (
            ["simulate", str(program), "--args", str(tmp_path / "other.npz")],
            "the program has no buffer 'z'; it has",
        ),
        (
            ["simulate", str(program), "--args", str(tmp_path / "wide.npz")],
            "x is int8 (4, 1, 2), found int32",
        ),
        (["assemble", str(program), "-o", str(program / "x")], "cannot write"),
        (["simulate", str(program), "--args", arguments, "--timeline", str(tmp_path / "a" / "t.svg")], "cannot write"),
    ]:
        assert main(["vta", *call]) == 2, call
        assert message in capsys.readouterr().err, call
    with pytest.raises(SystemExit) as left:
        main(["vta", "simulate", str(program), "--timelin"])
    assert left.value.code == 2


NETWORK = """
import numpy as np
from relay import relay, Int8, Tensor

KERNEL = np.arange(-128, 128, dtype=np.int8).reshape(16, 16, 1, 1)

@relay
def layer(x: Tensor[Int8, (1, 16, 2, 2)]):
    sums = relay.quantized_conv2d(x, KERNEL) >> 7
    return relay.cast(relay.minimum(relay.maximum(sums, -127), 127), "int8")
"""


def test_show_and_run_for_the_accelerator(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    where = tmp_path / "network.py"
    where.write_text(NETWORK)
    texts = {}
    for stage in ("core", "optimized", "streams"):
        assert main(["show", f"{where}:layer", "--target", "vta", "--stage", stage]) == 0
        texts[stage] = capsys.readouterr().out
    assert "@vta_1(" in texts["optimized"] and "vta" not in texts["core"]
    assert texts["streams"].startswith("# vta_1\n") and "FINISH" in texts["streams"]
    (tmp_path / "layer.relay").write_text(texts["core"])
    np.savez(tmp_path / "x.npz", x=np.arange(64, dtype=np.int8).reshape(1, 16, 2, 2))
    printed = set()
    for target in ("cpu", "vta", "vta, log_batch=1"):
        assert main(["run", str(tmp_path / "layer.relay"), "--args", str(tmp_path / "x.npz"), "--target", target]) == 0
        printed.add(capsys.readouterr().out)
    assert len(printed) == 1
    for arguments, message in (
        (["--stage", "streams"], "the stage streams is for --target vta"),
        (["--target", "vta", "--stage", "tir"], "--target vta has the stages typed, core, optimized and streams"),
        (["--target", "fpga"], "there is no target 'fpga'"),
    ):
        assert main(["show", f"{where}:layer", *arguments]) in (1, 2)
        assert message in "".join(capsys.readouterr())
