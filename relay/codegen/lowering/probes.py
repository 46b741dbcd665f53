"""Probes of a profiling build: the clock is read around kernels, and times are added up in a table.

The build has the kernels and the memory plan of the ordinary one. Its context table has the address of the probe table,
words of 64 bits that the caller provides:

    events so far; two words for a time
    WORDS for each site: calls, ticks of all of them, the shortest and the longest; the sums of data-dependent sizes
    EVENT words for each of the last 2^n events: site, begin, ticks, and the bytes left of the program's memory limit

Site 0 is the whole native program, site 1 nothing at all, so that it shows what a probe costs. The clock is the
processor's cycle counter where it runs at a constant rate, and the system's monotonic clock elsewhere.
"""

from __future__ import annotations

import functools
import platform
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import attrs

from relay.codegen.lowering.context import BUDGET
from relay.codegen.lowering.function_builder import CallWrapper, Code, ContextTable
from relay.codegen.lowering.memory.workspace import Workspace
from relay.codegen.tvm import tir
from relay.codegen.tvm.tir import Expression, GlobalVar, Statement, integer, tirx
from relay.errors.diagnostic import Span
from relay.ir.dims import DataDependentDim, Dim
from relay.ir.expr import Binding, Var

WORDS, EVENT, TIME, FIRST = 4, 4, 1, 3
CALLS, TICKS, SHORTEST, LONGEST = range(WORDS)
PROGRAM, NOTHING = 0, 1
"""The sites of the program, and of the probe itself."""

EVENTS = 1 << 15
"""The number of events that are kept, the last ones."""

_TABLE = 1 << 30  # of the view
_MONOTONIC = 1  # CLOCK_MONOTONIC of Linux


@attrs.define(eq=False)
class Site:
    """A place of the host program that calls a kernel, Python or a device: its `kind`. It is in a core function,
    from one time of its workspace to another; `live` are the bytes of this workspace that are in use then."""

    number: int
    kind: str
    kernel: str
    function: str
    bindings: tuple[Binding, ...]
    outputs: tuple[Var, ...]
    dims: tuple[DataDependentDim, ...] = ()
    span: Span | None = None  # where there are no bindings
    place: int = 0  # of its words in the probe table
    is_measured: bool = True
    begin: int = 0
    end: int = 0
    live: Dim = 0


@attrs.define(eq=False)
class FunctionCall:
    """A call of one core function by another, as `Site`."""

    caller: str
    callee: str
    begin: int
    end: int
    live: Dim = 0


class Probes:
    """The probes of one program. `measured`: the sites with a probe, all of them if None."""

    def __init__(self, measured: Collection[int] | None = None) -> None:
        self.sites: list[Site] = []
        self.calls: list[FunctionCall] = []
        self.frames: dict[str, Dim] = {}  # the bytes of workspace that callers provide, by function
        self.place = 0  # in the context table, of the address of the probe table
        self._size = FIRST
        self._measured = measured
        self._record, self._calibrate = GlobalVar("probe_record"), GlobalVar("probe_calibrate")
        self.add("program", "", "", (), ())
        self.add("nothing", "", "", (), ())

    def begin(self, table: ContextTable) -> None:
        """Take the place in the context table."""
        self.place = table.reserve(1)

    @property
    def size(self) -> int:
        """The words of the sites; events come after them."""
        return self._size

    def add(
        self,
        kind: str,
        kernel: str,
        function: str,
        bindings: Sequence[Binding],
        outputs: Sequence[Var],
        dims: Sequence[DataDependentDim] = (),
        span: Span | None = None,
    ) -> Site:
        """A new site."""
        number = len(self.sites)
        is_measured = self._measured is None or number in self._measured or number <= NOTHING
        made = tuple(bindings), tuple(outputs), tuple(dims)
        site = Site(number, kind, kernel, function, *made, span, self._size, is_measured)
        self._size += WORDS + len(site.dims)
        self.sites.append(site)
        return site

    def close(self, function: str, workspace: Workspace, frame: Dim) -> None:
        """Note the memory plan of a function that is complete."""
        self.frames[function] = frame
        for site in self.sites:
            if site.function == function:
                site.live = workspace.live_bytes(site.begin, site.end)
        for call in self.calls:
            if call.caller == function:
                call.live = workspace.live_bytes(call.begin, call.end)

    def start(self, code: Code) -> Expression:
        """Read the clock."""
        if counts_cycles():
            return code.bind(tirx.call_llvm_intrin("int64", "llvm.readcyclecounter"), name="now")
        there = code.bind(code.table(self.place) + integer(8 * TIME), name="there")
        code.emit(tirx.Evaluate(tirx.call_extern("int32", "clock_gettime", integer(_MONOTONIC, "int32"), there)))
        return code.bind(code.load_word(there) * integer(10**9) + code.load_word(there + integer(8)), name="now")

    def stop(self, code: Code, site: Site, start: Expression) -> None:
        """Add what has passed since `start` to a site."""
        for position, dim in enumerate(site.dims):
            at = code.bind(code.table(self.place) + integer(8 * (site.place + WORDS + position)), name="at")
            code.store_word(at, code.load_word(at) + code.size(dim))
        given = [code.context, integer(site.number), integer(site.place), start]
        code.emit(tirx.Evaluate(tir.call(self._record, given)))

    def timing_wrapper(self, site: Site) -> CallWrapper | None:
        """The statements that put a call between two readings of the clock; None where it is not measured."""
        if not site.is_measured:
            return None

        def measured_call(code: Code, call: Statement) -> list[Statement]:
            with code.collect() as statements:
                start = self.start(code)
                code.emit(call)
                self.stop(code, site, start)
            return statements

        return measured_call

    @property
    def functions(self) -> dict[Any, Any]:
        """The functions that record, and those that Python calls to learn about the clock and the probes' cost:
        clock(context) leaves the time in the word for it, calibrate(context, n) has n probes around nothing."""
        return {
            self._record: self._record_function(),
            self._calibrate: self._calibrate_function(),
            GlobalVar("clock"): self._clock_function(),
        }

    def _record_function(self) -> Any:
        """record(context, site, place, start)"""
        code = Code()
        number, place, start = (tirx.Var(name, "int64") for name in ("site", "place", "start"))
        ticks = code.bind(self.start(code) - start, name="ticks")
        table, statements = tir.view("probes", (_TABLE,), "int64", code.table(self.place))
        code.emit(*statements)

        def change(position: Expression, value: Expression) -> None:
            code.emit(tirx.BufferStore(table, value, [position]))

        def word(position: int) -> Expression:
            return tirx.BufferLoad(table, [place + integer(position)])

        change(place + integer(CALLS), word(CALLS) + integer(1))
        change(place + integer(TICKS), word(TICKS) + ticks)
        change(place + integer(SHORTEST), tirx.min(word(SHORTEST), ticks))
        change(place + integer(LONGEST), tirx.max(word(LONGEST), ticks))
        count = code.bind(tirx.BufferLoad(table, [integer(0)]), name="count")
        at = code.bind(integer(self._size) + (count & integer(EVENTS - 1)) * integer(EVENT), name="at")
        for position, value in enumerate((number, start, ticks, code.table(BUDGET))):
            change(at + integer(position), value)
        change(integer(0), count + integer(1))
        body, _ = code.finish()
        return tir.function([code.context, number, place, start], body)

    def _calibrate_function(self) -> Any:
        code, count = Code(), tirx.Var("count", "int64")
        left = code.leaf_at(None)
        code.store(left, count)
        with code.collect() as body:
            code.store(left, code.load(left) - integer(1))
            start = self.start(code)
            self.stop(code, self.sites[NOTHING], start)
        code.emit(tirx.While(tirx.GT(code.load(left), integer(0)), tir.sequence(body)))
        statements, _ = code.finish()
        return tir.public_function("calibrate", [code.context, count], statements)

    def _clock_function(self) -> Any:
        code = Code()
        now = self.start(code)
        code.store_word(code.table(self.place) + integer(8 * TIME), now)
        statements, _ = code.finish()
        return tir.public_function("clock", [code.context], statements)


@functools.cache
def counts_cycles() -> bool:
    """True if the processor's cycle counter is a clock: it runs at one rate, whatever the processor does."""
    if platform.machine() != "x86_64":
        return False
    try:
        return "constant_tsc" in Path("/proc/cpuinfo").read_text()
    except OSError:
        return False
