"""Findings of the simulator about a stream: rules by name, findings, and the error that carries them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import attrs

from relay.errors import ExecutionError

ERRORS: Mapping[str, str] = {
    "tokens": "a load instruction has no unit before it and a store none after it to take tokens from or post them to",
    "deadlock": "each instruction gets the tokens that it waits for",
    "leftover-token": "each token that is posted is taken",
    "finish": "the last instruction is FINISH, the only one, and whatever else there is happens before it",
    "memory": "LOAD fills UOP, WGT, INP, ACC or ACC8, and STORE empties OUT",
    "padded-store": "STORE has no padding",
    "scratchpad-bounds": "each index is one of the scratchpad's elements",
    "dram-bounds": "each access to DRAM lies within one buffer",
    "unwritten": "whatever is read has been written",
    "race": "of two accesses to one place, one of them a write, one happens before the other",
}
"""Rules that hold for streams everywhere."""

LINTS: Mapping[str, str] = {
    "immediate-source": "the source of an ALU instruction with an immediate is its destination, which Chisel reads",
    "shift-range": "a shift fits five bits, -16 to 15, four for 16-bit accumulators; one by a tensor is not negative",
    "multiply": "the ALU multiplies in the simulator and the OpenCL design only",
    "acc8-load": "8-bit accumulators are loaded by the simulator and the OpenCL design only",
    "micro-op-depth": "there are 2048 micro-ops in Chisel's buffer",
    "micro-op-weight": "a micro-op of the ALU has weight index 0, which Chisel adds to the source",
    "empty-loop": "a loop has at least one step, without which Chisel's counters run away",
    "empty-rows": "a transfer of something has at least one row, without which hardware counters run away",
    "repeated-destination": "no step reads a row that one of the two steps before it writes",
    "stale-output": "the last to write a row that is stored was the ALU, or GEMM without reset",
    "micro-op-load": "micro-ops are loaded in one row without padding: HLS copies no more; and not from an odd place "
    "to an even one, where the first Chisel design writes the place before, too",
    "padded-load": "only activations are loaded with padding, and not none of them: HLS ignores that of weights and "
    "accumulators, and fills that of a load of nothing",
    "token-capacity": "at most 255 tokens wait in a queue: Chisel's counters lose the next one",
    "instruction-queue": "the stream goes on when 512 instructions wait for each unit",
    "finish-tokens": "FINISH takes and posts no tokens, as the original runtime demands",
}
"""Rules on which the original simulator, HLS and Chisel do not agree."""

FATAL = frozenset({"deadlock", "memory", "padded-store", "scratchpad-bounds", "dram-bounds"})
"""Rules whose violation ends the stream."""

RULES: Mapping[str, str] = {**ERRORS, **LINTS}


@attrs.frozen
class Finding:
    """A rule that a stream breaks: what was found, and the positions of the instructions that it is about."""

    rule: str
    message: str
    positions: tuple[int, ...] = ()

    @property
    def is_lint(self) -> bool:
        """True if the stream is right on the original simulator, but not everywhere."""
        return self.rule in LINTS


@attrs.frozen
class Checks:
    """The checks that are made. Bounds are always checked, and that the stream comes to its end."""

    unwritten: bool = True
    races: bool = True
    lints: bool = True
    allow: frozenset[str] = attrs.field(default=frozenset(), converter=frozenset)  # rules that may be broken
    limit: int = 20  # findings after which the simulation ends

    @allow.validator
    def _check_allow(self, _: object, value: Collection[str]) -> None:
        for rule in sorted(set(value)):
            if rule not in RULES:
                raise ValueError(f"there is no rule {rule!r}: {', '.join(RULES)}")
            if rule in FATAL:
                raise ValueError(f"the rule {rule!r} cannot be disabled: what happens otherwise is undefined")

    def wants(self, rule: str) -> bool:
        """True if a rule is checked."""
        if rule in self.allow or (rule in LINTS and not self.lints):
            return False
        return not (rule == "unwritten" and not self.unwritten) and not (rule == "race" and not self.races)


ALL = Checks()
NONE = Checks(unwritten=False, races=False, lints=False)


class StreamError(ExecutionError):
    """A stream breaks rules: `findings` has them."""

    def __init__(self, findings: Sequence[Finding], texts: Mapping[int, str]) -> None:
        first, *others = findings
        notes = [f"instruction {p}: {texts[p]}" for p in first.positions if p in texts]
        notes += [f"{finding.rule}: {finding.message}" for finding in others]
        super().__init__(f"{first.rule}: {first.message}", notes=tuple(notes), help=f"the rule: {RULES[first.rule]}")
        self.findings = tuple(findings)


class Report:
    """Collects findings, one for each rule and instruction; `found` are those so far."""

    def __init__(self, checks: Checks, found: Sequence[Finding] = ()) -> None:
        self.checks = checks
        self.findings = list(found)
        self._seen = {(finding.rule, finding.positions) for finding in found}

    def add(self, rule: str, message: str, *positions: int) -> None:
        """Tell of a broken rule, unless it may be, or was told of the same instructions."""
        if self.checks.wants(rule) and (rule, positions) not in self._seen:
            self._seen.add((rule, positions))
            self.findings.append(Finding(rule, message, positions))

    @property
    def is_full(self) -> bool:
        """True if enough has been found."""
        return len(self.findings) >= self.checks.limit
