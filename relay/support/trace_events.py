"""Trace events: timelines as JSON for Perfetto (ui.perfetto.dev) and Chrome, in the Trace Event Format."""

from __future__ import annotations

import json
from collections.abc import Mapping


class TraceEvents:
    """A timeline that is being written. Times are microseconds."""

    def __init__(self) -> None:
        self._events: list[dict[str, object]] = []

    def process(self, pid: int, name: str) -> None:
        """Name a process, which has rows."""
        self._events.append({"ph": "M", "name": "process_name", "pid": pid, "args": {"name": name}})

    def row(self, pid: int, tid: int, name: str) -> None:
        """Name a row. Rows are in the order of their numbers."""
        self._events.append({"ph": "M", "name": "thread_name", "pid": pid, "tid": tid, "args": {"name": name}})
        self._events.append(
            {"ph": "M", "name": "thread_sort_index", "pid": pid, "tid": tid, "args": {"sort_index": tid}}
        )

    def stretch(
        self, pid: int, tid: int, name: str, begin: float, duration: float, arguments: Mapping[str, object]
    ) -> None:
        """Something that lasts."""
        self._events.append(
            {"ph": "X", "name": name, "pid": pid, "tid": tid, "ts": begin, "dur": duration, "args": dict(arguments)}
        )

    def counter(self, pid: int, name: str, time: float, values: Mapping[str, float]) -> None:
        """The values of a counter from this time on."""
        self._events.append({"ph": "C", "name": name, "pid": pid, "ts": time, "args": dict(values)})

    def text(self) -> str:
        """The file."""
        return json.dumps({"displayTimeUnit": "ns", "traceEvents": self._events})
