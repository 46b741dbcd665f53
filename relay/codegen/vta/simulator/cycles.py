"""The cycles of a stream: three units in order, four counters of tokens with times, one port to DRAM.

An instruction starts when its unit is free and its tokens are there. Its cycles:

    GEMM                     overhead + steps * gemm_step + gemm_drain
    ALU, immediate           overhead + steps * alu_immediate_step + alu_drain
    ALU, two tensors         overhead + steps * alu_tensor_step + alu_drain
    LOAD                     overhead + latency + beats + bursts * row
    STORE                    overhead + latency + beats + bursts * (row + acknowledge) + elements * store_element
    a transfer of nothing    no_op
    FINISH                   finish

A row is `ceil(bytes / bus)` beats, in bursts of at most `burst`. The port serves one request at a time, whole, in the
order in which they come. Zeros of padding are written while the bus brings nothing; those that are left take a cycle
each. The numbers follow from the hardware's descriptions and are not calibrated on hardware; fetching instructions is
not counted.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import attrs

from relay.codegen.vta.config import Config
from relay.codegen.vta.isa import Alu, AnyInstruction, Finish, Gemm, Load, Queue, Store
from relay.codegen.vta.layout import Memory
from relay.codegen.vta.program import Program, Section
from relay.codegen.vta.simulator.tokens import Channel, pops, pushes


@attrs.frozen
class CycleModel:
    """The cycles of operations. The defaults are those of the current Chisel design, at 100 MHz on a 64-bit bus."""

    bus: int = attrs.field(default=8, validator=attrs.validators.ge(1))  # bytes a cycle
    latency: int = 32  # of a request to DRAM
    row: int = 2  # for each burst
    acknowledge: int = 16  # of each burst that is written
    burst: int = attrs.field(default=256, validator=attrs.validators.ge(1))  # beats
    store_element: int = 0
    overhead: int = 3  # of the state machine
    no_op: int = 2
    finish: int = 1
    gemm_step: int = 1
    gemm_drain: int = 6
    alu_immediate_step: int = 1
    alu_tensor_step: int = 2
    alu_drain: int = 5
    shared_port: bool = True  # the units share one port to DRAM; else each has its own
    latency_holds_port: bool = True  # the next request waits for the latency, too
    megahertz: float = 100.0


CHISEL = CycleModel()
HLS = CycleModel(alu_immediate_step=2)
WIDE = CycleModel(bus=16, megahertz=333.0)
"""A 128-bit bus at 333 MHz."""


DONE = "the end"
"""The reason for waiting of a unit that has run all of its instructions."""


class Event(NamedTuple):
    """An instruction in time. It waits for tokens from `free` to `start`, for the port from `issue` to `service`."""

    position: int
    queue: Queue
    kind: str
    free: int
    start: int
    issue: int
    service: int
    end: int
    waited_for: Channel | None  # the counter whose token came last


@attrs.frozen(eq=False)
class Timing:
    """The times of all events, in cycles."""

    config: Config
    model: CycleModel
    events: tuple[Event, ...] = attrs.field(repr=False)
    cycles: int
    gemm_steps: int  # without resets
    alu_steps: int
    loaded: Mapping[Memory, int]  # bytes
    stored: int  # bytes

    @property
    def busy_cycles(self) -> Mapping[str, int]:
        """The cycles of each kind of work, without waiting, and those in which the port to DRAM is busy."""
        found = dict.fromkeys(("gemm", "reset", "alu", "load inp", "load wgt", "load uop", "load acc", "store"), 0)
        found["dram"] = 0
        for event in self.events:
            if event.kind in found:
                found[event.kind] += event.end - event.service + event.issue - event.start
            if event.kind.startswith(("load", "store")):
                found["dram"] += event.end - event.service
        return found

    def unit_busy(self, queue: Queue) -> int:
        """The cycles in which a unit works."""
        return sum(e.end - e.service + e.issue - e.start for e in self.events if e.queue is queue)

    def stalls(self, queue: Queue) -> Mapping[str, int]:
        """The cycles in which a unit waits, by reason: tokens, the port to DRAM, and the end of the stream (`DONE`)."""
        found: dict[str, int] = {}
        last = 0
        for event in self.events:
            if event.queue is not queue:
                continue
            last = event.end
            if event.start > event.free and event.waited_for is not None:
                words = f"tokens {event.waited_for.words}"
                found[words] = found.get(words, 0) + event.start - event.free
            if event.service > event.issue:
                found["the port to DRAM"] = found.get("the port to DRAM", 0) + event.service - event.issue
        if last < self.cycles:
            found[DONE] = self.cycles - last
        return found

    @property
    def utilization(self) -> float:
        """The part of all cycles in which a matrix product begins."""
        return self.gemm_steps / self.cycles if self.cycles else 0.0

    @property
    def operations(self) -> int:
        """Multiplications and additions of GEMM."""
        return 2 * self.gemm_steps * self.config.batch * self.config.block**2

    @property
    def intensity(self) -> float:
        """Operations of GEMM for each byte between DRAM and the scratchpads."""
        moved = sum(self.loaded.values()) + self.stored
        return self.operations / moved if moved else 0.0

    @property
    def gops(self) -> float:
        """Billions of operations of GEMM in a second."""
        return self.operations / self.cycles * self.model.megahertz / 1000 if self.cycles else 0.0

    @property
    def shares(self) -> Mapping[str, float]:
        """The part of all cycles in which the port to DRAM works, and GEMM and ALU, the compute unit's turns."""
        busy, whole = self.busy_cycles, max(1, self.cycles)
        parts = {"DMA": busy["dram"], "GEMM": busy["gemm"] + busy["reset"], "ALU": busy["alu"]}
        return {part: cycles / whole for part, cycles in parts.items()}

    @property
    def bound(self) -> str:
        """The limiting resource: "DMA" where the port is busier than the compute unit, else what that unit does most of
        the time, "GEMM" or "ALU"."""
        shares = self.shares
        if shares["DMA"] > shares["GEMM"] + shares["ALU"]:
            return "DMA"
        return "GEMM" if shares["GEMM"] >= shares["ALU"] else "ALU"

    def report(self) -> str:
        """A table for people."""
        lines = [
            f"{self.cycles} cycles, {self.cycles / self.model.megahertz / 1000:.3f} ms at {self.model.megahertz:g} MHz",
            f"GEMM: {self.gemm_steps} steps, utilization {self.utilization:.3f}, {self.gops:.1f} GOPS",
            f"{self.intensity:.1f} operations a byte; {self.bound} bounds it",
        ]
        for name, cycles in self.busy_cycles.items():
            if cycles:
                lines.append(f"  {name:<10} {cycles:>12} cycles  {cycles / self.cycles:6.1%}")
        for queue in Queue:
            for reason, cycles in self.stalls(queue).items():
                lines.append(f"  {queue.name.lower()} waits for {reason}: {cycles} cycles, {cycles / self.cycles:.1%}")
        return "\n".join(lines)


class _Work(NamedTuple):
    """The cycles of an instruction: those of its unit, then of the port, then the latency after the port is free."""

    kind: str
    unit: int
    port: int
    rest: int


def _transfer(transfer: Load | Store, config: Config, model: CycleModel) -> _Work:
    if not transfer.x_size:
        return _Work("no-op", model.no_op, 0, 0)
    row_beats = -(-transfer.x_size * config.element_bytes(transfer.memory) // model.bus)
    beats, bursts = transfer.y_size * row_beats, transfer.y_size * -(-row_beats // model.burst)
    if isinstance(transfer, Store):
        kind = "store"
        port = beats + bursts * (model.row + model.acknowledge)
        port += transfer.x_size * transfer.y_size * model.store_element
    else:
        kind = f"load {'acc' if transfer.memory is Memory.ACC8 else transfer.memory.name.lower()}"
        port = beats + bursts * model.row
        moved = transfer.x_size * transfer.y_size
        zeros = transfer.rows * transfer.columns - moved
        port += max(0, zeros - max(0, port - moved))
    if model.latency_holds_port:
        return _Work(kind, model.overhead, port + model.latency, 0)
    return _Work(kind, model.overhead, port, model.latency)


def _work(instruction: AnyInstruction, config: Config, model: CycleModel) -> _Work:
    match instruction:
        case Gemm():
            cycles = model.overhead + instruction.steps * model.gemm_step + model.gemm_drain
            return _Work("reset" if instruction.reset else "gemm", cycles, 0, 0)
        case Alu():
            step = model.alu_immediate_step if instruction.use_imm else model.alu_tensor_step
            return _Work("alu", model.overhead + instruction.steps * step + model.alu_drain, 0, 0)
        case Load() | Store():
            return _transfer(instruction, config, model)
        case Finish():
            return _Work("finish", model.finish, 0, 0)


class _Item(NamedTuple):
    """An instruction in its queue."""

    position: int
    taken: tuple[Channel, ...]
    posted: tuple[Channel, ...]
    work: _Work


def estimate(instructions: Sequence[AnyInstruction], config: Config, model: CycleModel = CHISEL) -> Timing:
    """The times at which each instruction of a stream runs. A stream that deadlocks ends there; `examine` tells why."""
    queues: tuple[list[_Item], ...] = ([], [], [])
    for position, instruction in enumerate(instructions):
        work = _work(instruction, config, model)
        queues[instruction.queue].append(_Item(position, pops(instruction), pushes(instruction), work))
    for queue in queues:
        queue.reverse()  # the next one is the last one
    free, ports = [0, 0, 0], [0, 0, 0]
    tokens: tuple[deque[int], ...] = tuple(deque() for _ in Channel)
    events: list[Event] = []
    while True:
        # The earliest first: whatever cannot start yet waits for one that ends later than this.
        earliest, unit = -1, -1
        for number, queue in enumerate(queues):
            start = _start(queue[-1], free[number], tokens) if queue else -1
            if start >= 0 and (unit < 0 or start < earliest):
                earliest, unit = start, number
        if unit < 0:
            break
        item = queues[unit].pop()
        last = max([(tokens[channel].popleft(), channel) for channel in item.taken], default=None)
        work = item.work
        issue = service = earliest + work.unit
        if work.port:
            port = 0 if model.shared_port else unit
            service = max(issue, ports[port])
            ports[port] = service + work.port
        end = service + work.port + work.rest
        waited = last[1] if last is not None and last[0] == earliest > free[unit] else None
        events.append(Event(item.position, _QUEUES[unit], work.kind, free[unit], earliest, issue, service, end, waited))
        free[unit] = end
        for channel in item.posted:
            tokens[channel].append(end)
    return _timing(instructions, config, model, events)


def section_timings(program: Program, model: CycleModel = CHISEL) -> dict[str, Timing]:
    """The timing of each section of a program, by its name: from the end of the one before to its own end, so that all
    cycles belong to one of them; what a section does before that has negative times. A program without sections is one,
    called "program"."""
    whole = estimate(program.instructions, program.config, model)
    found: dict[str, Timing] = {}
    start = 0
    for section in program.sections or (Section("program", 0, len(program.instructions)),):
        events = [e for e in whole.events if section.begin <= e.position < section.end]
        moved = [
            e._replace(
                free=e.free - start, start=e.start - start, issue=e.issue - start, service=e.service - start,
                end=e.end - start,
            )
            for e in events
        ]  # fmt: skip
        found[section.name] = _timing(program.instructions, program.config, model, moved)
        start = max([start, *(e.end for e in events)])
    return found


_QUEUES = tuple(Queue)


def _start(item: _Item, free: int, tokens: Sequence[deque[int]]) -> int:
    """The earliest start of an instruction, apart from the port; -1: one of its tokens has not been posted."""
    start = free
    for channel in item.taken:
        waiting = tokens[channel]
        if not waiting:
            return -1
        if waiting[0] > start:
            start = waiting[0]
    return start


def _timing(
    instructions: Sequence[AnyInstruction], config: Config, model: CycleModel, events: Sequence[Event]
) -> Timing:
    gemm = alu = stored = 0
    loaded = dict.fromkeys((Memory.INP, Memory.WGT, Memory.UOP, Memory.ACC), 0)
    for event in events:
        instruction = instructions[event.position]
        match instruction:
            case Gemm() if not instruction.reset:
                gemm += instruction.steps
            case Alu():
                alu += instruction.steps
            case Load() | Store():
                size = instruction.x_size * instruction.y_size * config.element_bytes(instruction.memory)
                if isinstance(instruction, Store):
                    stored += size
                else:
                    memory = Memory.ACC if instruction.memory is Memory.ACC8 else instruction.memory
                    loaded[memory] = loaded.get(memory, 0) + size
            case _:
                pass
    return Timing(config, model, tuple(events), max((e.end for e in events), default=0), gemm, alu, loaded, stored)
