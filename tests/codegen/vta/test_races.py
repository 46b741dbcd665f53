"""Races of random streams: the simulator tells of one exactly if some pair of instructions has one.

Who comes before whom is followed edge by edge here, and what is accessed is what the literal simulator touches.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

import attrs
from accelerator.reference import Reference
from accelerator.streams import weakened
from hypothesis import given, settings
from hypothesis import strategies as st

from relay.codegen.vta.isa import AnyInstruction, Queue
from relay.codegen.vta.program import Program
from relay.codegen.vta.simulator.findings import ALL
from relay.codegen.vta.simulator.run import examine

COUNTERS = {
    (Queue.LOAD, "pop_next"): "g2l",
    (Queue.LOAD, "push_next"): "l2g",
    (Queue.COMPUTE, "pop_prev"): "l2g",
    (Queue.COMPUTE, "pop_next"): "s2g",
    (Queue.COMPUTE, "push_prev"): "g2l",
    (Queue.COMPUTE, "push_next"): "g2s",
    (Queue.STORE, "pop_prev"): "g2s",
    (Queue.STORE, "push_prev"): "s2g",
}


class Recorded(dict[int, object]):
    """A memory that notes which of its places are read and written."""

    def __init__(self, contents: object = ()) -> None:
        super().__init__(contents)  # type: ignore[call-overload]
        self.read: set[int] = set()
        self.written: set[int] = set()

    def __getitem__(self, place: int) -> object:
        self.read.add(place)
        return super().__getitem__(place)

    def get(self, place: int, default: object = None) -> object:  # type: ignore[override]
        """A place, which is noted."""
        self.read.add(place)
        return super().get(place, default)

    def __setitem__(self, place: int, value: object) -> None:
        self.written.add(place)
        super().__setitem__(place, value)


def accesses(program: Program) -> list[dict[str, tuple[set[int], set[int]]]]:
    """For each instruction the places that it reads and writes, by memory. They do not depend on the order."""
    reference = Reference(program, {})
    names = ("dram", "inp", "wgt", "acc", "uop")
    for name in names:
        setattr(reference, name, Recorded(getattr(reference, name)))
    found = []
    for instruction in program.instructions:
        memories = {name: getattr(reference, name) for name in names}
        for memory in memories.values():
            memory.read, memory.written = set(), set()
        reference.execute(instruction)
        found.append({name: (memory.read, memory.written) for name, memory in memories.items()})
    return found


def before(instructions: Sequence[AnyInstruction]) -> list[set[int]]:
    """For each instruction all that happen before it: those before it in its queue, and behind tokens."""
    edges: dict[int, set[int]] = defaultdict(set)
    last: dict[Queue, int] = {}
    posted: dict[str, list[int]] = defaultdict(list)
    taken: dict[str, list[int]] = defaultdict(list)
    for position, instruction in enumerate(instructions):
        if instruction.queue in last:
            edges[position].add(last[instruction.queue])
        last[instruction.queue] = position
        for (queue, flag), counter in COUNTERS.items():
            if queue is instruction.queue and getattr(instruction, flag):
                (taken if flag.startswith("pop") else posted)[counter].append(position)
    for counter, takers in taken.items():
        for taker, poster in zip(takers, posted[counter], strict=False):
            edges[taker].add(poster)
    return [set(reachable(position, edges)) for position in range(len(instructions))]


def reachable(start: int, edges: dict[int, set[int]]) -> Iterator[int]:
    """All that edges lead to."""
    seen: set[int] = set()
    rest = [*edges[start]]
    while rest:
        position = rest.pop()
        if position not in seen:
            seen.add(position)
            yield position
            rest += edges[position]


def racing_pairs(program: Program) -> set[tuple[int, int]]:
    """All pairs of instructions that race."""
    touched, earlier = accesses(program), before(program.instructions)
    found = set()
    for second in range(len(touched)):
        for first in range(second):
            if first in earlier[second] or second in earlier[first]:
                continue
            for (read, written), (also_read, also_written) in zip(
                touched[first].values(), touched[second].values(), strict=True
            ):
                if written & (also_read | also_written) or read & also_written:
                    found.add((first, second))
    return found


@settings(max_examples=60)
@given(st.integers(0, 2**32 - 1))
def test_races_are_those_of_all_pairs(seed: int) -> None:
    program = weakened(seed)
    result = examine(program, checks=attrs.evolve(ALL, lints=False, limit=10**6))
    told = {tuple(sorted(finding.positions)) for finding in result.findings if finding.rule == "race"}
    racing = racing_pairs(program)
    assert told <= racing
    assert bool(told) == bool(racing)


def test_half_of_these_streams_race() -> None:
    """So the test above says something."""
    racing = [bool(racing_pairs(weakened(seed))) for seed in range(20)]
    assert 4 <= sum(racing) <= 16
