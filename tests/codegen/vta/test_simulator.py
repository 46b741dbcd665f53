"""A program that is run many times: what is looked at again, and what is not."""

from __future__ import annotations

import attrs
import numpy as np
import pytest
from accelerator.streams import Stream, random_stream

from relay.codegen.vta.isa import Alu, Store
from relay.codegen.vta.layout import AluOp, Memory
from relay.codegen.vta.program import Program, Role
from relay.codegen.vta.simulator.findings import Checks, StreamError
from relay.codegen.vta.simulator.run import Simulator, simulate

STREAM = Stream(micro_ops=[(0, 0, 0), (0, 8, 0)])
OUT = STREAM.place("out", Memory.OUT)


def shifting() -> Program:
    """Row 0 shifted by row 8."""
    shift = Alu(op=AluOp.SHR, uop_begin=1, uop_end=2)
    return STREAM.program([STREAM.load("uop"), STREAM.load("acc"), shift, Store(dram=OUT, x_size=1, x_stride=1)])


def accumulators(amount: int) -> dict[str, np.ndarray]:
    found = np.arange(32 * 16, dtype=np.int32).reshape(32, 1, 16) * 100
    found[8] = amount
    return {"acc": found}


def test_each_run_has_its_own_memories() -> None:
    simulator = Simulator(shifting())
    for amount in (0, 3, 15, 3):
        inputs = accumulators(amount)
        assert (simulator.run(inputs)["out"][0] == (inputs["acc"][0] >> amount).astype(np.int8)).all()


def test_what_depends_on_numbers_is_looked_at_again() -> None:
    simulator = Simulator(shifting())
    simulator.run(accumulators(3))
    with pytest.raises(StreamError, match="shift-range: instruction 2 shifts by a tensor with 16 in it"):
        simulator.run(accumulators(16))
    with pytest.raises(StreamError, match="shift-range"):
        simulator.run(accumulators(-1))


def test_other_inputs_are_checked_anew() -> None:
    """One of them is not given the second time, so it has not been written."""
    program = shifting()
    bare = attrs.evolve(
        program, buffers=[attrs.evolve(b, data=None) if b.name == "acc" else b for b in program.buffers]
    )
    simulator = Simulator(bare)
    simulator.run(accumulators(1))
    with pytest.raises(StreamError, match="unwritten"):
        simulator.run()
    simulator.run(accumulators(2))


def test_micro_ops_that_are_an_input_are_checked_each_time() -> None:
    program = shifting()
    buffers = [attrs.evolve(b, role=Role.INPUT, data=None) if b.name == "uop" else b for b in program.buffers]
    simulator = Simulator(attrs.evolve(program, buffers=buffers))
    words = program["uop"].data
    assert words is not None
    simulator.run({**accumulators(1), "uop": words})
    with pytest.raises(StreamError, match=r"unwritten: instruction 2 reads ACC\[40\]"):
        simulator.run({**accumulators(1), "uop": np.array([0, 40 << 11], np.uint32)})


def test_later_runs_give_what_the_first_one_gives() -> None:
    stream, found = random_stream(11)
    program = stream.program(found)
    checks = Checks(lints=False)
    simulator = Simulator(program, checks)
    once = simulate(program, checks=checks)
    for _ in range(2):
        again = simulator.run()
        assert all((once[b.name] == again[b.name]).all() for b in program.buffers)
