"""The order of instructions: the tokens that they wait for, and their happens-before relation.

Each unit runs its instructions in order. There are four counters of tokens between them, each filled by one unit and
emptied by one. So the k-th token taken from a counter is the k-th one posted, whatever the speed of the units: who
waits for whom does not depend on time, and a stream deadlocks always or never.

`clock[i][q]` counts the instructions of unit q that happen before instruction i, or are it: a vector clock.
"""

from __future__ import annotations

import enum
from collections import deque
from collections.abc import Iterator, Mapping, Sequence

import attrs

from relay.codegen.vta.isa import AnyInstruction, Queue
from relay.codegen.vta.simulator.findings import Report


class Channel(enum.IntEnum):
    """The counters of tokens, by who posts and who takes."""

    LOAD_TO_COMPUTE = 0
    COMPUTE_TO_LOAD = 1
    COMPUTE_TO_STORE = 2
    STORE_TO_COMPUTE = 3

    @property
    def words(self) -> str:
        """As messages say it."""
        return self.name.lower().replace("_", " ")


_UP, _DOWN = "prev", "next"
_POPS = {
    (Queue.LOAD, _DOWN): Channel.COMPUTE_TO_LOAD,
    (Queue.COMPUTE, _UP): Channel.LOAD_TO_COMPUTE,
    (Queue.COMPUTE, _DOWN): Channel.STORE_TO_COMPUTE,
    (Queue.STORE, _UP): Channel.COMPUTE_TO_STORE,
}
_PUSHES = {
    (Queue.LOAD, _DOWN): Channel.LOAD_TO_COMPUTE,
    (Queue.COMPUTE, _UP): Channel.COMPUTE_TO_LOAD,
    (Queue.COMPUTE, _DOWN): Channel.COMPUTE_TO_STORE,
    (Queue.STORE, _UP): Channel.STORE_TO_COMPUTE,
}
TOKEN_CAPACITY = 255
QUEUE_CAPACITY = 512

Clock = tuple[int, int, int]


_Table = Mapping[tuple[Queue, bool, bool], tuple[Channel, ...]]


def _by_flags(table: Mapping[tuple[Queue, str], Channel]) -> _Table:
    """The counters for the flags to the previous and to the next unit."""
    return {
        (queue, up, down): tuple(
            table[queue, name] for name, is_set in ((_UP, up), (_DOWN, down)) if is_set and (queue, name) in table
        )
        for queue in Queue
        for up in (False, True)
        for down in (False, True)
    }


_POPS_BY_FLAGS, _PUSHES_BY_FLAGS = _by_flags(_POPS), _by_flags(_PUSHES)


def pops(instruction: AnyInstruction) -> tuple[Channel, ...]:
    """The counters that an instruction takes a token from. Those that there are not are left out."""
    return _POPS_BY_FLAGS[instruction.queue, instruction.pop_prev, instruction.pop_next]


def pushes(instruction: AnyInstruction) -> tuple[Channel, ...]:
    """The counters that an instruction posts a token to. Those that there are not are left out."""
    return _PUSHES_BY_FLAGS[instruction.queue, instruction.push_prev, instruction.push_next]


def illegal_tokens(instruction: AnyInstruction) -> Iterator[str]:
    """The token flags of an instruction that lead nowhere."""
    queue = instruction.queue
    for name, is_set, table in (
        ("pop_prev", instruction.pop_prev, _POPS),
        ("pop_next", instruction.pop_next, _POPS),
        ("push_prev", instruction.push_prev, _PUSHES),
        ("push_next", instruction.push_next, _PUSHES),
    ):
        if is_set and (queue, name.partition("_")[2]) not in table:
            yield name


@attrs.frozen
class Schedule:
    """An order in which a stream runs, by positions; incomplete if it deadlocks."""

    order: tuple[int, ...]
    clocks: dict[int, Clock]
    index: tuple[int, ...]  # of each instruction among those of its unit
    queues: tuple[tuple[int, ...], ...]  # the positions of each unit's instructions


class _Run:
    """The units while the stream is put in order. At most `capacity` instructions wait for each unit."""

    def __init__(self, instructions: Sequence[AnyInstruction], capacity: int | None) -> None:
        self.instructions = instructions
        self.capacity = len(instructions) if capacity is None else capacity
        self.waiting: tuple[deque[int], ...] = tuple(deque() for _ in Queue)
        self.fetched = 0
        self.tokens: tuple[deque[Clock], ...] = tuple(deque() for _ in Channel)
        self.now: list[Clock] = [(0, 0, 0)] * len(Queue)
        self.order: list[int] = []
        self.clocks: dict[int, Clock] = {}

    def run(self) -> None:
        """Go as far as the stream goes. The order is that of the stream where it can be."""
        progress = True
        while progress:
            progress = self._fetch()
            for queue in Queue:
                while self._step(queue):
                    progress = True
                    if self._can_fetch():
                        break

    def _can_fetch(self) -> bool:
        if self.fetched == len(self.instructions):
            return False
        return len(self.waiting[self.instructions[self.fetched].queue]) < self.capacity

    def _fetch(self) -> bool:
        before = self.fetched
        while self._can_fetch():
            position = self.fetched
            self.fetched += 1
            queue = self.instructions[position].queue
            self.waiting[queue].append(position)
            while self._step(queue):  # in the order of the stream where that can be
                pass
        return self.fetched > before

    def _step(self, queue: Queue) -> bool:
        """Run the first instruction that waits for a unit, if it gets its tokens."""
        if not self.waiting[queue]:
            return False
        position = self.waiting[queue][0]
        instruction = self.instructions[position]
        taken = pops(instruction)
        if not all(self.tokens[channel] for channel in taken):
            return False
        self.waiting[queue].popleft()
        clock = list(self.now[queue])
        for channel in taken:
            clock = [max(pair) for pair in zip(clock, self.tokens[channel].popleft(), strict=True)]
        clock[queue] += 1
        self.now[queue] = after = (clock[0], clock[1], clock[2])
        self.order.append(position)
        self.clocks[position] = after
        for channel in pushes(instruction):
            self.tokens[channel].append(after)
        return True


def schedule(instructions: Sequence[AnyInstruction], report: Report) -> Schedule:
    """The order of a stream. Tells of deadlocks, tokens that are left over or lost, and queues that fill up."""
    run = _Run(instructions, None)
    run.run()
    queues: tuple[list[int], ...] = ([], [], [])
    index = []
    for position, instruction in enumerate(instructions):
        index.append(len(queues[instruction.queue]))
        queues[instruction.queue].append(position)
    found = Schedule(tuple(run.order), run.clocks, tuple(index), tuple(tuple(q) for q in queues))
    if len(run.order) < len(instructions):
        _report_deadlock(instructions, run, report)
        return found
    _report_leftovers(instructions, run, report)
    _report_capacities(instructions, found, report)
    if max(len(q) for q in queues) > QUEUE_CAPACITY and report.checks.wants("instruction-queue"):
        bounded = _Run(instructions, QUEUE_CAPACITY)
        bounded.run()
        if len(bounded.order) < len(instructions):
            blocked = bounded.fetched
            queue = instructions[blocked].queue
            report.add(
                "instruction-queue",
                f"instruction {blocked} is not fetched, as {QUEUE_CAPACITY} instructions wait for the "
                f"{queue.name.lower()} unit, the first of them for a token that comes later in the stream",
                blocked,
                bounded.waiting[queue][0],
            )
    return found


def _report_deadlock(instructions: Sequence[AnyInstruction], run: _Run, report: Report) -> None:
    for queue in Queue:
        if not run.waiting[queue]:
            continue
        position = run.waiting[queue][0]
        for channel in pops(instructions[position]):
            if run.tokens[channel]:
                continue
            poster = next((p for q in Queue for p in run.waiting[q] if channel in pushes(instructions[p])), None)
            rest = len(run.waiting[queue]) - 1
            behind = f"; {rest} more {'waits' if rest == 1 else 'wait'} behind it" if rest else ""
            message = f"instruction {position} waits for a token {channel.words}, which"
            if poster is None:
                report.add("deadlock", f"{message} no instruction that is left posts{behind}", position)
            else:
                report.add("deadlock", f"{message} instruction {poster} would post{behind}", position, poster)


def _report_leftovers(instructions: Sequence[AnyInstruction], run: _Run, report: Report) -> None:
    for channel in Channel:
        left = len(run.tokens[channel])
        if left:
            posters = [p for p, i in enumerate(instructions) if channel in pushes(i)]
            tokens = "a token" if left == 1 else f"{left} tokens"
            report.add(
                "leftover-token",
                f"{tokens} {channel.words} {'is' if left == 1 else 'are'} left over: "
                f"{len(posters)} are posted, {len(posters) - left} taken",
                *posters[-left:][:3],
            )


def _report_capacities(instructions: Sequence[AnyInstruction], found: Schedule, report: Report) -> None:
    """The largest number of tokens that may wait: those posted, without those that are certainly taken before."""
    for channel in Channel:
        posters = [p for p, i in enumerate(instructions) if channel in pushes(i)]
        if len(posters) <= TOKEN_CAPACITY:
            continue
        takers = [p for p, i in enumerate(instructions) if channel in pops(i)]
        taken, queue = 0, instructions[takers[0]].queue if takers else Queue.COMPUTE
        for count, position in enumerate(posters, 1):
            while taken < len(takers) and found.index[takers[taken]] < found.clocks[position][queue]:
                taken += 1
            if count - taken > TOKEN_CAPACITY:
                report.add(
                    "token-capacity",
                    f"up to {count - taken} tokens {channel.words} wait when instruction {position} posts one",
                    position,
                )
                break
