"""The runs of kernels one by one."""

from __future__ import annotations

import attrs

from relay.debug.profiling.builds import ProbedBuild, RunRecord


@attrs.frozen
class Event:
    """One run of a kernel: the number of the place that called it, when it began, in seconds since the first one, and
    how long it took."""

    number: int
    name: str
    begin: float
    seconds: float


def events_of(build: ProbedBuild, record: RunRecord) -> tuple[Event, ...]:
    """The kernels' events of a run."""
    names = {site.number: site.kernel for site in build.sites}
    kept = [event for event in record.events.tolist() if event[0] in names]
    first = min((event[1] for event in kept), default=0)
    return tuple(
        Event(number, names[number], (begin - first) / build.rate, max(ticks - build.empty_ticks, 0.0) / build.rate)
        for number, begin, ticks, _ in kept
    )
