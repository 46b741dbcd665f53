"""The cycle model: what instructions take, what units wait for, and what two threads gain."""

from __future__ import annotations

import pytest
from accelerator.streams import Stream

from relay.codegen.vta.config import DEFAULT
from relay.codegen.vta.isa import Alu, AnyInstruction, Finish, Gemm, Load, Queue, no_op
from relay.codegen.vta.layout import AluOp, Memory
from relay.codegen.vta.simulator.cycles import CHISEL, HLS, CycleModel, estimate

STREAM = Stream()


def cycles(*instructions: AnyInstruction, model: CycleModel = CHISEL) -> int:
    return estimate(instructions, DEFAULT, model).cycles


COSTS = [
    (Gemm(iter_out=4, iter_in=5, uop_end=2), 3 + 40 + 6),
    (Gemm(iter_out=4, iter_in=5, uop_end=2, reset=True), 3 + 40 + 6),
    (Alu(op=AluOp.MAX, use_imm=True, iter_in=10), 3 + 10 + 5),
    (Alu(op=AluOp.MAX, iter_in=10), 3 + 20 + 5),
    (STREAM.load("inp", 16), 3 + 32 + 32 + 2),  # 256 bytes are 32 beats
    (STREAM.load("inp", 4, y_size=3), 3 + 32 + 3 * (8 + 2)),
    (STREAM.load("wgt", 9), 3 + 32 + 9 * 32 + 2 * 2),  # 288 beats are two bursts
    (STREAM.load("acc", 3), 3 + 32 + 24 + 2),
    (STREAM.load("uop", 1), 3 + 32 + 1 + 2),  # half a beat counts as one
    (STREAM.store(4, y_size=2), 3 + 32 + 2 * (8 + 2 + 16)),
    (no_op(Queue.LOAD), 2),
    (Finish(), 1),
]


@pytest.mark.parametrize(("instruction", "expected"), COSTS)
def test_what_an_instruction_takes(instruction: AnyInstruction, expected: int) -> None:
    assert cycles(instruction) == expected


def test_zeros_fill_the_gaps_of_the_bus() -> None:
    """16 elements in 34 cycles leave 18 for zeros; 20 + 20 zeros are 22 more."""
    padded = STREAM.load("inp", 16, x_pad_left=10, x_pad_right=8)
    assert cycles(padded) == cycles(STREAM.load("inp", 16))
    assert cycles(STREAM.load("inp", 16, x_pad_left=15, x_pad_right=9)) == cycles(padded) + 6


def test_parameters_of_the_model() -> None:
    alu = Alu(op=AluOp.ADD, use_imm=True, iter_in=10)
    assert cycles(alu, model=HLS) == cycles(alu) + 10
    assert cycles(STREAM.load("inp", 16), model=CycleModel(bus=16, latency=100)) == 3 + 100 + 16 + 2
    assert cycles(STREAM.store(4), model=CycleModel(store_element=1)) == cycles(STREAM.store(4)) + 4


def test_one_port_serves_one_after_the_other() -> None:
    """A load of activations and one of accumulators begin together; with two ports neither waits."""
    both = (STREAM.load("inp", 16), STREAM.load("acc", 3))
    timing = estimate(both, DEFAULT)
    assert timing.cycles == 3 + (32 + 34) + (32 + 26)
    assert timing.stalls(Queue.COMPUTE) == {"the port to DRAM": 32 + 34}
    assert timing.busy_cycles["dram"] == 66 + 58
    assert cycles(*both, model=CycleModel(shared_port=False)) == 3 + 66
    assert cycles(*both, model=CycleModel(latency_holds_port=False)) == 3 + 34 + 26 + 32


def test_tokens_are_waited_for() -> None:
    """GEMM begins when the load has ended, and the load unit has nothing left to do."""
    load = STREAM.load("inp", 16, push_next=True)
    gemm = Gemm(iter_in=100, pop_prev=True)
    timing = estimate([load, gemm, Finish()], DEFAULT)
    assert timing.cycles == 69 + 109 + 1
    assert timing.stalls(Queue.COMPUTE) == {"tokens load to compute": 69}
    assert timing.stalls(Queue.LOAD) == {"the end": 110}
    assert timing.utilization == 100 / 179
    assert timing.unit_busy(Queue.COMPUTE) == 110


def tiles(count: int, threads: int) -> list[AnyInstruction]:
    """Loads and products of `count` tiles, with one half of the buffer or with two that take turns."""
    found: list[AnyInstruction] = []
    for tile in range(count):
        load = {"pop_next": tile >= threads, "push_next": True, "sram": tile % threads * 32}
        found.append(Load(memory=Memory.INP, dram=256, x_size=32, x_stride=32, **load))
        found.append(Gemm(iter_in=100, pop_prev=True, push_prev=tile < count - threads))
    return [*found, Finish()]


def test_two_threads_hide_the_loads() -> None:
    one, two = (estimate(tiles(10, threads), DEFAULT) for threads in (1, 2))
    load, gemm = 3 + 32 + 64 + 2, 109
    assert one.cycles == 10 * (load + gemm) + 1
    assert two.cycles == load + 10 * gemm + 1
    assert one.gemm_steps == two.gemm_steps == 1000
    assert two.utilization > 0.8 and two.bound == "GEMM"


def test_roofline_numbers() -> None:
    timing = estimate(tiles(1, 1), DEFAULT)
    assert timing.operations == 100 * 512
    assert timing.intensity == 51200 / 512
    assert timing.gops == pytest.approx(51200 / timing.cycles / 10)
    assert "utilization" in timing.report() and "load inp" in timing.report()


def test_a_stream_that_deadlocks_ends_there() -> None:
    assert estimate([Gemm(pop_prev=True)], DEFAULT).events == ()
