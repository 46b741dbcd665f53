"""The profile of a call, and its text."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import attrs

from relay.codegen.runtime.machine_peak import MachinePeak
from relay.debug.profiling import pictures
from relay.debug.profiling.attribution import Kernel, Line
from relay.debug.profiling.events import Event
from relay.debug.profiling.memory import MemoryUse
from relay.debug.profiling.units import count, duration
from relay.errors import FrontendError
from relay.support.tables import aligned_rows

SHOWN = 20
"""The number of kernels and lines that the text shows."""

PARTS = 4
"""The number of a phase's parts that it shows."""


@attrs.frozen(eq=False)
class Phase:
    """A phase of the compilation: its seconds, and those of its parts, passes or kernels, in the order in which they
    first ran."""

    name: str
    seconds: float
    parts: dict[str, float]


@attrs.frozen(eq=False)
class Profile:
    """A profile: where the time of a call goes, in seconds.

    Attributes:
        name: the function's.
        seconds: of the call that is shown, of median length among `runs`, less what the probes took.
        kernels: the places that call kernels, those that took longest first.
        lines: the lines of the program, those that took longest first.
        between: of native code between kernels: loops, branches, calls, copies, and short kernels' calls.
        calling: of Python before and after the native program: arguments, dispatch and results.
        overhead: how much more of the processor's time measured calls took than ordinary ones, as a fraction of it: of
            the medians of calls that were made in turns;
        probe_overhead: the same, computed of the number of probes and what one takes.
        phases: how long it took to compile the program.
        memory: what the call holds of memory over time.
        peak: what the machine does at most.
        events: the runs of kernels one by one, the last 32768 of them; `dropped` are older.
    """

    name: str
    runs: int
    threads: int
    seconds: float
    ordinary: float
    overhead: float
    probe_overhead: float
    kernels: tuple[Kernel, ...]
    between: float
    calling: float
    lines: tuple[Line, ...]
    phases: tuple[Phase, ...]
    memory: MemoryUse
    peak: MachinePeak
    events: tuple[Event, ...] = attrs.field(repr=False)
    dropped: int = 0

    @property
    def flops(self) -> int:
        """The floating-point operations of the call."""
        return sum(kernel.flops for kernel in self.kernels)

    @property
    def bytes(self) -> int:
        """The bytes that its kernels read and write."""
        return sum(kernel.bytes for kernel in self.kernels)

    def __str__(self) -> str:
        return "\n".join([*self._head(), "", *self._kernel_rows(), "", *self._line_rows(), "", *self._rest()])

    def _repr_html_(self) -> str:
        return pictures.flame_html(self)

    def save_flame_graph(self, path: str | os.PathLike[str]) -> None:
        """Write a flame graph of lines and kernels: an .svg picture, or an .html page that enlarges what is clicked and
        has the tables. Raises FrontendError for another name, or no access."""
        makers = {".svg": pictures.flame_svg, ".html": pictures.flame_html}
        _save(path, makers[_suffix(path, makers)](self))

    def save_trace(self, path: str | os.PathLike[str]) -> None:
        """Write the runs of kernels over time, memory, and the phases of the compilation, as .json for ui.perfetto.dev.
        Raises FrontendError for another name, or no access."""
        _suffix(path, [".json"])
        _save(path, pictures.trace(self))

    def save_memory_plot(self, path: str | os.PathLike[str]) -> None:
        """Write memory over time as an .svg picture. Raises FrontendError for another name, or no access."""
        _suffix(path, [".svg"])
        _save(path, pictures.memory_svg(self))

    # ---- text

    def _head(self) -> list[str]:
        share = f"{100 * self.probe_overhead:.1f} %"
        more = f"{100 * self.overhead:+.1f} %"
        return [
            f"{self.name}: {duration(self.seconds)} a call, the median of {self.runs}; "
            f"{count(self.flops)}FLOP, {count(self.bytes)}B moved; {self.threads} thread{'s' * (self.threads != 1)}",
            f"measuring takes {share} of it; by the clock of the processor, in turns with ordinary calls: {more}",
            f"peak of this machine: {self.peak}",
        ]

    def _kernel_rows(self) -> list[str]:
        rows: list[tuple[str, ...]] = [("time", "", "calls", "FLOP/s", "B/s", "of peak", "kernel", "lines")]
        for kernel in self.kernels[:SHOWN]:
            fraction = kernel.fraction
            peak = "" if fraction is None else f"{100 * fraction:.0f} % {kernel.bound}"
            rates = _rate(kernel.flops, kernel.seconds), _rate(kernel.bytes, kernel.seconds), peak
            rows.append(
                (
                    f"{'about ' * kernel.is_divided}{duration(kernel.seconds)}",
                    self._share(kernel.seconds),
                    str(kernel.calls),
                    *(("", "", "") if kernel.is_divided else rates),
                    kernel.name + {"kernel": "", "Python": " (Python)", "device": " (device)"}[kernel.kind],
                    _numbers(kernel.lines) + " backward" * kernel.is_backward,
                )
            )
        rows += self._other_rows(self.kernels[SHOWN:], "kernel")
        rows.append(("" + duration(self.between), self._share(self.between), "", "", "", "", "between kernels", ""))
        rows.append(
            (duration(self.calling), self._share(self.calling), "", "", "", "", "the call: arguments and results", "")
        )
        table = aligned_rows(rows, ">>>>>><<")
        if any(kernel.is_divided for kernel in self.kernels):
            table.append("about: too short to be measured one by one; divided as in a slower run in which they were")
        return table

    def _other_rows(self, kernels: Sequence[Kernel], what: str) -> list[tuple[str, ...]]:
        if not kernels:
            return []
        seconds = sum(kernel.seconds for kernel in kernels)
        name = f"{len(kernels)} other {what}s"
        return [(duration(seconds), self._share(seconds), "", "", "", "", name, "")]

    def _line_rows(self) -> list[str]:
        rows: list[tuple[str, ...]] = [("time", "", "backward", "FLOP", "line", "")]
        for line in self.lines[:SHOWN]:
            place = "no line" if line.file is None else f"{Path(line.file).name}:{line.line}"
            backward = f"{100 * line.backward / line.seconds:.0f} %" if line.backward and line.seconds else ""
            flops = count(line.flops).rstrip()
            rows.append((duration(line.seconds), self._share(line.seconds), backward, flops, place, line.text))
        rest = self.lines[SHOWN:]
        if rest:
            seconds = sum(line.seconds for line in rest)
            rows.append((duration(seconds), self._share(seconds), "", "", f"{len(rest)} other lines", ""))
        return aligned_rows(rows, ">>>><<")

    def _rest(self) -> list[str]:
        found = [f"compiled in {duration(sum(phase.seconds for phase in self.phases))}:"]
        for phase in self.phases:
            longest = sorted(phase.parts.items(), key=lambda part: -part[1])[:PARTS]
            parts = ", ".join(f"{name} {duration(seconds)}" for name, seconds in longest if name)
            found.append(f"  {phase.name} {duration(phase.seconds)}{f' ({parts})' if parts else ''}")
        memory = self.memory
        where = f" in {memory.peak_kernel}" if memory.peak_kernel else ""
        found.append(
            f"memory: at most {count(memory.peak)}B{where}: arguments {count(memory.arguments)}B, results "
            f"{count(memory.results)}B, constants {count(memory.constants)}B, workspace {count(memory.workspace)}B"
        )
        return found

    def _share(self, seconds: float) -> str:
        return f"{100 * seconds / self.seconds:.1f} %" if self.seconds > 0 else ""


def _rate(amount: int, seconds: float) -> str:
    return count(amount / seconds).rstrip() if amount and seconds > 0 else ""


def _numbers(lines: Sequence[int]) -> str:
    return ", ".join(map(str, lines[:6])) + ", .." * (len(lines) > 6)


def _suffix(path: str | os.PathLike[str], known: object) -> str:
    suffix = Path(path).suffix
    names = list(known)  # type: ignore[call-overload]
    if suffix not in names:
        raise FrontendError(f"the name ends in {' or '.join(names)}, found {os.fspath(path)!r}")
    return suffix


def _save(path: str | os.PathLike[str], content: str) -> None:
    try:
        Path(path).write_text(content, encoding="utf-8")
    except OSError as error:
        raise FrontendError(f"{os.fspath(path)} cannot be written: {error.strerror}") from None
