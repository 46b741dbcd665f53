"""The profile of a call: builds, runs in turns with the ordinary program, and what they show."""

from __future__ import annotations

import copy
import statistics
import time
from collections.abc import Mapping, Sequence
from typing import Any

from relay.ad.print_erasure import without_prints
from relay.api.function import RelayFunction
from relay.calling.results import holds_references
from relay.codegen.runtime.cpu import default_threads
from relay.debug.profiling.attribution import kernels, lines, times
from relay.debug.profiling.builds import ProbedBuild, RunRecord
from relay.debug.profiling.events import events_of
from relay.debug.profiling.gpu import GpuProfile, gpu_profile
from relay.debug.profiling.machine import machine_peak
from relay.debug.profiling.memory import memory_use
from relay.debug.profiling.report import Phase, Profile
from relay.errors import FrontendError
from relay.ir.expr import Function, Module, Print
from relay.ir.traverse import walk
from relay.support.phases import PhaseTimes, recorded_phases

ALLOWED = 0.03
"""The fraction of the time that probes may take. Where they would take more, short kernels have none."""

_SECONDS, _FEWEST, _MOST = 0.5, 5, 200
"""The seconds of the ordinary calls together, and the bounds of their number."""

_TOGETHER, _ROUNDS = 0.0005, 100
"""Seconds of short calls that are timed together to compare measured ones with ordinary ones, and how often."""

_GPU_RUNS = 10
"""Calls of a program for a GPU, unless it says how many."""

_WARM = 3
"""Calls before those that count."""


def profile(function: RelayFunction, *arguments: Any, runs: int | None = None, **keywords: Any) -> Profile | GpuProfile:
    """Measure where the time of a call goes: kernels, lines, memory, and how long compiling took.

    The program that the call would run is compiled again with probes: the clock is read around kernels, inside of the
    native program. It is called in turns with the ordinary one, so that the cost of measuring is known. Where probes
    would cost more than 3 %, a second build has none around short kernels; these share what they take together.

    Of a program for a GPU the driver's events tell how long each kernel takes, and what the host adds (`GpuProfile`).

    References keep their contents, donated arrays stay as they are, and nothing is printed.

    Args:
        function: what `@relay` or `relay.grad` returned.
        arguments, keywords: as a call of it gets them.
        runs: how many calls; as many as take half a second unless it says otherwise.

    Raises FrontendError for what is not a decorated function, CompileError for one that returns functions that are
    selected at run time, and whatever the call raises.
    """
    if not isinstance(function, RelayFunction):
        found = type(function).__name__
        raise FrontendError(f"profile takes a decorated function, found {found}", help="debug.profile(f, x)")
    if runs is not None and (not isinstance(runs, int) or isinstance(runs, bool) or runs < 1):
        raise FrontendError(f"runs is a number from 1 on, found {runs!r}")
    signature, _ = function.prepare_compiled(arguments, keywords)
    if signature.is_for_gpu:
        return gpu_profile(function, signature, arguments, keywords, runs or _GPU_RUNS)
    return Profiler(function, arguments, keywords).profile(runs)


class Profiler:
    """One call that is profiled. `build` is the program that was measured, once it was."""

    def __init__(self, function: RelayFunction, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> None:
        self.function, self.arguments, self.keywords = function, arguments, keywords
        self.signature, self.values = function.prepare_compiled(arguments, keywords)
        self.core = without_prints(self.signature.core)
        self.phases = PhaseTimes()
        self.phases.include(self.signature.phases)
        self.changes = bool(self.signature.donated) or any(map(holds_references, self.signature.parameters))
        self.ordinary = function if not _prints(self.signature.core) else self._silent_function()

    def profile(self, runs: int | None) -> Profile:
        with recorded_phases() as building:
            fine = self._build(None)
        self.phases.include(building)
        self.build = fine
        count = self._calls(runs)
        first = self._measured_call(fine)  # in which lists and recursive data take their memory
        turns, records, overhead = self._in_turns(fine, count)
        build, whole = fine, _median(records)
        counted, whole_fine = whole, whole
        allowed = _worth_measuring(fine, whole, min(turns))
        if allowed is not None:
            self.build = build = self._build(allowed)
            turns, records, overhead = self._in_turns(build, count)
            whole = _median(records)
        found = times(build, whole, None if build is fine else (fine, whole_fine))
        sizes = build.program.sizes(self.values)
        compiling = {part: seconds for (name, part), seconds in building.seconds.items() if name == "kernels"}
        peak = machine_peak()
        rows = kernels(build, whole, found, sizes, peak, compiling, counted)
        ordinary = statistics.median(turns)
        probes = sum(whole.calls(site) for site in build.sites if site.is_measured)
        calling = max(whole.seconds - whole.ticks(build.whole_program) / build.rate, 0.0)
        return Profile(
            name=self.function.__name__,
            runs=count,
            threads=default_threads(),
            seconds=found.native + calling,
            ordinary=ordinary,
            overhead=self._overhead_of_short_calls(build, min(turns), overhead),
            probe_overhead=probes * build.probe_ticks / build.rate / (found.native + calling),
            kernels=tuple(rows),
            between=found.between,
            calling=calling,
            lines=tuple(lines(rows)),
            phases=_phases(self.phases),
            memory=memory_use(fine, first, self.values, sizes),
            peak=peak,
            events=events_of(build, whole),
            dropped=whole.dropped,
        )

    def _build(self, measured: frozenset[int] | None) -> ProbedBuild:
        return ProbedBuild(self.function, self.signature, self.core, self.arguments, self.keywords, measured)

    def _silent_function(self) -> RelayFunction:
        """The ordinary program without prints."""
        program = self.signature.probed_program(self.core, None)
        return self.function.with_program(self.signature, program, self.arguments, self.keywords)

    def _calls(self, runs: int | None) -> int:
        """The number of calls; some are made, so that those that count are like all later ones."""
        seconds = min(self._call(self.ordinary)[0] for _ in range(_WARM if runs is None else 1))
        return runs or max(_FEWEST, min(_MOST, int(_SECONDS / max(seconds, 1e-6))))

    def _in_turns(self, build: ProbedBuild, count: int) -> tuple[list[float], list[RunRecord], float]:
        """The seconds of ordinary calls, the measured ones, and how much more of the processor's time these take.
        Copying the record displaces what the caches hold, so each of the two comes first every other time."""
        for _ in range(_WARM):
            self._measured_call(build)
        turns, records = [], []
        spent: list[tuple[float, float]] = []
        for turn in range(count):
            build.clear()
            if turn % 2:
                measured = self._call(build.function)
                ordinary = self._call(self.ordinary)
            else:
                ordinary = self._call(self.ordinary)
                measured = self._call(build.function)
            turns.append(ordinary[0])
            records.append(build.record(measured[0]))
            spent.append((ordinary[1], measured[1]))
        return turns, records, _excess(spent)

    def _overhead_of_short_calls(self, build: ProbedBuild, shortest: float, overhead: float) -> float:
        """The overhead of measuring; of short calls, many at a time: of one alone, what it finds in the caches
        decides."""
        number = int(_TOGETHER / shortest)
        if number <= 1 or self.changes:
            return overhead
        functions = self.ordinary, build.function
        return _excess(
            [
                (self._calls_together(functions[0], number), self._calls_together(functions[1], number))
                for _ in range(_ROUNDS)
            ]
        )

    def _calls_together(self, function: RelayFunction, number: int) -> float:
        """The processor's seconds of this many calls."""
        arguments, keywords = self.arguments, self.keywords
        start = time.process_time()
        for _ in range(number):
            function(*arguments, **keywords)
        return time.process_time() - start

    def _measured_call(self, build: ProbedBuild) -> RunRecord:
        build.clear()
        return build.record(self._call(build.function)[0])

    def _call(self, function: RelayFunction) -> tuple[float, float]:
        """The seconds of a call, and those of the processor, with the arguments, or copies of them where it changes
        them."""
        arguments, keywords = self.arguments, self.keywords
        if self.changes:
            arguments, keywords = copy.deepcopy((arguments, keywords))
        start, processor = time.perf_counter(), time.process_time()
        function(*arguments, **keywords)
        return time.perf_counter() - start, time.process_time() - processor


def _excess(spent: Sequence[tuple[float, float]]) -> float:
    """The fraction by which the second of two things takes longer, which were measured in turns."""
    before, after = (statistics.median(each) for each in zip(*spent, strict=True))
    return after / before - 1 if before > 0 else 0.0


def _prints(module: Module) -> bool:
    return any(
        isinstance(binding.value, Print)
        for function in module.functions.values()
        if isinstance(function, Function)
        for binding in walk(function.body)
    )


def _median(records: Sequence[RunRecord]) -> RunRecord:
    """The run of median length."""
    return sorted(records, key=lambda record: record.seconds)[(len(records) - 1) // 2]


def _worth_measuring(build: ProbedBuild, record: RunRecord, ordinary: float) -> frozenset[int] | None:
    """The sites to be measured where measuring all of them takes too long: those with the longest kernels, as many as
    are allowed. None: all of them."""
    budget = ALLOWED * ordinary * build.rate / build.probe_ticks
    if sum(record.calls(site) for site in build.sites) <= budget:
        return None
    found, used = set(), 0
    by_length = sorted(build.sites, key=lambda site: record.ticks(site) / max(record.calls(site), 1), reverse=True)
    for site in by_length:
        calls = record.calls(site)
        if used + calls <= budget and record.ticks(site) * ALLOWED > calls * build.probe_ticks:
            found.add(site.number)
            used += calls
    return frozenset(found)


def _phases(found: PhaseTimes) -> tuple[Phase, ...]:
    names = dict.fromkeys(name for name, _ in found.seconds)
    made = []
    for name in names:
        parts = {part: seconds for (of, part), seconds in found.seconds.items() if of == name}
        made.append(Phase(name, sum(parts.values()), parts))
    return tuple(made)
