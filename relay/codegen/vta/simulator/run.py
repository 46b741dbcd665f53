"""A stream is simulated: put in order, checked, executed."""

from __future__ import annotations

from collections.abc import Mapping

import attrs
import numpy as np

from relay.codegen.vta.assembler import text
from relay.codegen.vta.isa import Load, Store
from relay.codegen.vta.layout import Memory
from relay.codegen.vta.program import Program, element_bytes
from relay.codegen.vta.simulator.findings import ALL, FATAL, Checks, Finding, Report, StreamError
from relay.codegen.vta.simulator.machine import Machine, Stop
from relay.codegen.vta.simulator.plans import Plans
from relay.codegen.vta.simulator.state import Dram, Scratchpads
from relay.codegen.vta.simulator.tokens import Schedule, schedule
from relay.codegen.vta.simulator.validity import check_finish, check_instructions


@attrs.frozen(eq=False)
class Simulation:
    """The result of simulating a stream: the memories afterwards, and the findings."""

    program: Program
    schedule: Schedule
    findings: tuple[Finding, ...]
    pads: Scratchpads
    dram: Dram

    def __getitem__(self, name: str) -> np.ndarray:
        """The content of a buffer after the stream, with its shape and dtype."""
        return self.dram.array(name)


class Simulator:
    """Runs a program many times.

    Who waits for whom, which places are read and written, and so nearly all rules, do not depend on the numbers. So a
    run without findings vouches for later ones with inputs for the same buffers: then only bounds are checked, and what
    depends on numbers. Not so if micro-ops are an input, or are stored by the stream.

    Args:
        program: the stream and its buffers.
        checks: what is looked for.
    """

    def __init__(self, program: Program, checks: Checks = ALL) -> None:
        self.program = program
        self.checks = checks
        self._static = Report(checks)
        self._schedule = schedule(program.instructions, self._static)
        check_instructions(program.instructions, program.config, self._static)
        if len(self._schedule.order) == len(program.instructions):
            check_finish(program.instructions, self._schedule, self._static)
        self._plans = Plans()
        self._stored, self._micro_ops = _uses(program)
        self._checked: set[frozenset[str]] = set()

    def examine(self, inputs: Mapping[str, np.ndarray] | None = None) -> Simulation:
        """Run the program, as far as it goes, and tell what is wrong with it in `findings`."""
        inputs = inputs or {}
        names = frozenset(inputs)
        checked = names in self._checked
        checks = attrs.evolve(self.checks, unwritten=False, races=False) if checked else self.checks
        report = Report(checks, self._static.findings)
        machine = Machine(self.program, inputs, self._schedule, report, self._plans)
        if not any(finding.rule in FATAL for finding in report.findings):
            self._execute(machine, report)
        if not report.findings and not self._micro_ops & (names | self._stored):
            self._checked.add(names)
        return Simulation(self.program, self._schedule, tuple(report.findings), machine.pads, machine.dram)

    def run(self, inputs: Mapping[str, np.ndarray] | None = None) -> Simulation:
        """Run the program. Raises StreamError with all that is wrong with it."""
        result = self.examine(inputs)
        if result.findings:
            positions = {p for finding in result.findings for p in finding.positions}
            raise StreamError(result.findings, {p: text(self.program.instructions[p]) for p in positions})
        return result

    def _execute(self, machine: Machine, report: Report) -> None:
        try:
            for position in self._schedule.order:
                machine.execute(position, self.program.instructions[position])
                if report.is_full:
                    return
        except Stop:
            return


def _uses(program: Program) -> tuple[frozenset[str], frozenset[str]]:
    """The names of the buffers that are stored to, and of those that micro-ops are loaded from."""
    stored: set[str] = set()
    micro_ops: set[str] = set()
    for instruction in program.instructions:
        if isinstance(instruction, Store) or (isinstance(instruction, Load) and instruction.memory is Memory.UOP):
            buffer = program.buffer_at(instruction.dram * element_bytes(instruction, program.config))
            if buffer is not None and instruction.x_size:
                (stored if isinstance(instruction, Store) else micro_ops).add(buffer.name)
    return frozenset(stored), frozenset(micro_ops)


def examine(program: Program, inputs: Mapping[str, np.ndarray] | None = None, *, checks: Checks = ALL) -> Simulation:
    """Run a program, as far as it goes, and tell what is wrong with it in `findings`.

    Args:
        program: the stream and its buffers.
        inputs: what the host writes to buffers, by their names; each has the shape and dtype of its buffer.
        checks: what is looked for.
    """
    return Simulator(program, checks).examine(inputs)


def simulate(program: Program, inputs: Mapping[str, np.ndarray] | None = None, *, checks: Checks = ALL) -> Simulation:
    """Run a program. Raises StreamError with all that is wrong with it."""
    return Simulator(program, checks).run(inputs)
