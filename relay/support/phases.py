"""Phase times: how long the phases of a compilation take, by name and by part (a pass, a kernel).

The time of a phase inside of another one is subtracted from it, so that all of them add up.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import attrs


@attrs.define
class PhaseTimes:
    """Seconds by phase and part, in the order in which they first ran; "" is the part of what has none."""

    seconds: dict[tuple[str, str], float] = attrs.field(factory=dict)
    _within: list[float] = attrs.field(factory=list)  # seconds of inner phases, for each open one

    def add(self, name: str, part: str, seconds: float) -> None:
        """Note that a phase took so long."""
        key = name, part
        self.seconds[key] = self.seconds.get(key, 0.0) + seconds

    def include(self, other: PhaseTimes) -> None:
        """Add the phases of another recording."""
        for (name, part), seconds in other.seconds.items():
            self.add(name, part, seconds)

    @contextmanager
    def measured_phase(self, name: str, part: str) -> Iterator[None]:
        """A context: its body is such a phase."""
        start = time.perf_counter()
        self._within.append(0.0)
        try:
            yield
        finally:
            seconds = time.perf_counter() - start
            inner = self._within.pop()
            if self._within:
                self._within[-1] += seconds
            self.add(name, part, seconds - inner)


_active: ContextVar[PhaseTimes | None] = ContextVar("relay_phases", default=None)


@contextmanager
def recorded_phases() -> Iterator[PhaseTimes]:
    """Record the phases of what runs inside."""
    times = PhaseTimes()
    token = _active.set(times)
    try:
        yield times
    finally:
        _active.reset(token)


def is_recorded() -> bool:
    """True if the times of phases are recorded."""
    return _active.get() is not None


@contextmanager
def phase(name: str, part: str = "") -> Iterator[None]:
    """A context: its body is a phase of the compilation."""
    times = _active.get()
    if times is None:
        yield
        return
    with times.measured_phase(name, part):
        yield
