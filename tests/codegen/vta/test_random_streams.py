"""Random streams: the simulator against the literal one, whatever order the units run in."""

from __future__ import annotations

import random

import attrs
from accelerator.reference import Reference
from accelerator.streams import in_order, random_stream, weakened
from hypothesis import given, settings
from hypothesis import strategies as st

from relay.codegen.vta.isa import AnyInstruction
from relay.codegen.vta.program import Program
from relay.codegen.vta.simulator.findings import ALL, FATAL, NONE
from relay.codegen.vta.simulator.run import examine

SEEDS = st.integers(0, 2**32 - 1)
FLAGS = ("pop_prev", "pop_next", "push_prev", "push_next")


def outcome(program: Program, seed: int) -> dict[str, bytes] | None:
    """What the literal simulator leaves in DRAM, in some order; None if it does not come to the end."""
    reference = Reference(program, {})
    return reference.contents() if reference.run(random.Random(seed).choice) else None


def contents(program: Program) -> dict[str, bytes]:
    """What the simulator leaves in DRAM."""
    result = examine(program, checks=attrs.evolve(NONE, allow={"finish"}))
    assert result.findings == ()
    return {buffer.name: result[buffer.name].tobytes() for buffer in program.buffers}


@settings(max_examples=60)
@given(SEEDS)
def test_ordered_streams_give_the_reference_s_bytes(seed: int) -> None:
    stream, instructions = random_stream(seed)
    program = stream.program(instructions)
    assert contents(program) == outcome(program, seed)
    rules = {finding.rule for finding in examine(program).findings}
    assert rules & {"race", "deadlock", "leftover-token", "finish", "tokens", "unwritten", *FATAL} == set()


@settings(max_examples=40)
@given(SEEDS)
def test_streams_without_races_do_not_depend_on_the_order(seed: int) -> None:
    """Results that differ are told as a race."""
    program = weakened(seed)
    rules = {finding.rule for finding in examine(program, checks=attrs.evolve(ALL, lints=False, limit=10**6)).findings}
    assert "deadlock" not in rules
    outcomes = [outcome(program, seed + i) for i in range(4)]
    if "race" not in rules:
        assert outcomes == [contents(program)] * 4


def test_some_of_these_streams_do_depend_on_it() -> None:
    """So the test above says something."""
    found = [
        seed for seed in range(30) if len({tuple((outcome(weakened(seed), i) or {}).items()) for i in range(4)}) > 1
    ]
    assert found


@settings(max_examples=60)
@given(SEEDS)
def test_streams_that_deadlock_are_those_that_the_reference_does_not_end(seed: int) -> None:
    rng = random.Random(seed)
    stream, instructions = random_stream(seed, 4)
    ordered: list[AnyInstruction] = in_order(instructions)
    for _ in range(rng.randrange(3)):
        position, flag = rng.randrange(len(ordered)), rng.choice(FLAGS)
        ordered[position] = attrs.evolve(ordered[position], **{flag: not getattr(ordered[position], flag)})
    program = stream.program(ordered, ordered=False)
    rules = {finding.rule for finding in examine(program).findings}
    assert ("deadlock" in rules) == (outcome(program, seed) is None)
