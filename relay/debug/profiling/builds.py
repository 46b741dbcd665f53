"""Profiling builds: a compiled program with probes, what its runs leave in the probe table, and what a probe costs."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import attrs
import numpy as np

from relay.api.function import RelayFunction
from relay.codegen.lowering.context import BUDGET
from relay.codegen.lowering.probes import (
    CALLS,
    EVENT,
    EVENTS,
    LONGEST,
    NOTHING,
    PROGRAM,
    SHORTEST,
    TICKS,
    TIME,
    WORDS,
    Probes,
    Site,
)
from relay.compilation.stages import CompiledSignature
from relay.ir.expr import Module

_CALIBRATION_SECONDS, _CALIBRATION_PROBES = 0.02, 20_000


@attrs.frozen(eq=False)
class RunRecord:
    """One run: the seconds of the call, the probe table's words of the sites, and the events, with the number of the
    oldest ones that were dropped."""

    seconds: float
    words: np.ndarray
    events: np.ndarray
    dropped: int

    def calls(self, site: Site) -> int:
        return int(self.words[site.place + CALLS])

    def ticks(self, site: Site) -> int:
        """Of all calls of a site together."""
        return int(self.words[site.place + TICKS])

    def shortest_time(self, site: Site) -> int:
        return int(self.words[site.place + SHORTEST])

    def longest_time(self, site: Site) -> int:
        return int(self.words[site.place + LONGEST])

    def sizes(self, site: Site) -> list[int]:
        """The means of a site's data-dependent sizes."""
        first, calls = site.place + WORDS, max(self.calls(site), 1)
        return [round(int(total) / calls) for total in self.words[first : first + len(site.dims)]]


class ProbedBuild:
    """A program with probes. `rate`: the clock's ticks per second; `probe_ticks`: what a probe takes, and
    `empty_ticks` what it shows of nothing."""

    def __init__(
        self,
        function: RelayFunction,
        signature: CompiledSignature,
        core: Module,
        arguments: Sequence[Any],
        keywords: Mapping[str, Any],
        measured: Collection[int] | None = None,
    ) -> None:
        self.probes = Probes(measured)
        self.program = signature.probed_program(core, self.probes)
        self._table = np.zeros(self.probes.size + EVENTS * EVENT, np.int64)
        self.program.native.constants[self.probes.place] = self._table
        self.function = function.with_program(signature, self.program, arguments, keywords)
        self._calibrate()

    @property
    def sites(self) -> list[Site]:
        """The sites that are measured besides the program."""
        return self.probes.sites[NOTHING + 1 :]

    @property
    def whole_program(self) -> Site:
        """The native program."""
        return self.probes.sites[PROGRAM]

    def clear(self) -> None:
        """Forget earlier runs."""
        self._table[: self.probes.size] = 0
        for site in self.probes.sites:
            self._table[site.place + SHORTEST] = np.iinfo(np.int64).max

    def record(self, seconds: float) -> RunRecord:
        """The run since `clear`, which took so long."""
        table, probes = self._table, self.probes
        count = int(table[0])
        kept = min(count, EVENTS)
        events = table[probes.size :].reshape(EVENTS, EVENT)
        order = np.arange(count - kept, count) % EVENTS
        return RunRecord(seconds, table[: probes.size].copy(), events[order], count - kept)

    def _calibrate(self) -> None:
        context = self.program.take()
        self.limit = int(context.table[BUDGET])  # of the memory
        clock, probe = self.program.native.module["clock"], self.program.native.module["calibrate"]

        def clock_reading() -> tuple[float, int]:
            """The time, and the clock, read as closely together as in the best of some tries."""
            found = []
            for _ in range(20):
                before = time.perf_counter()
                clock(context.address)
                after = time.perf_counter()
                found.append((after - before, (before + after) / 2, int(self._table[TIME])))
            return min(found)[1:]

        begin, first = clock_reading()
        costs: list[tuple[float, float]] = []
        nothing = self.probes.sites[NOTHING]
        while time.perf_counter() - begin < _CALIBRATION_SECONDS or len(costs) < 3:
            self._table[nothing.place : nothing.place + WORDS] = 0
            start = time.perf_counter()
            probe(context.address, _CALIBRATION_PROBES // 20)
            seconds = (time.perf_counter() - start) / (_CALIBRATION_PROBES // 20)
            costs.append((seconds, int(self._table[nothing.place + TICKS]) / (_CALIBRATION_PROBES // 20)))
        end, last = clock_reading()
        self.rate = (last - first) / (end - begin)
        seconds, self.empty_ticks = min(costs)
        self.probe_ticks = seconds * self.rate
        self.program.give(context)
