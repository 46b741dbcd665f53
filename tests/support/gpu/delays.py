"""The emulated driver with streams that run as late as they may: what is started waits until the host waits for its
stream, so that what reads a result too early, or relies on the order of two streams, gets something else."""

from __future__ import annotations

import ctypes
from collections import defaultdict
from collections.abc import Callable
from typing import Any

from gpu.emulation import EmulatedDriver


class DelayedDriver(EmulatedDriver):
    """`waits` counts how often something had to run because the host waited."""

    def __init__(self) -> None:
        super().__init__()
        self._queues: dict[int, list[Callable[[], None]]] = defaultdict(list)
        self.waits = 0

    def _do(self, stream: int, work: Callable[[], None]) -> None:
        assert stream in self._streams
        if stream in self._captured:
            self._captured[stream].append(work)
        else:
            self._queues[stream].append(work)

    def _run_stream(self, stream: int) -> None:
        self.waits += bool(self._queues[stream])
        while self._queues[stream]:
            self._queues[stream].pop(0)()

    def _cuGraphLaunch(self, graph: list[Callable[[], None]], stream: int) -> None:
        for work in graph:
            self._queues[stream].append(work)

    def _cuMemcpyHtoDAsync(self, target: int, source: int, count: int, stream: int) -> Any:
        """The host's memory is read at once, as that which is not locked is; the GPU's is written in order."""
        if stream in self._captured:
            return self._refusal_in_capture()
        given = ctypes.string_at(source, count)

        def write() -> None:
            ctypes.memmove(self._memory(int(target), count).ctypes.data, given, count)

        self._do(stream, write)
        return None

    def _cuMemcpyDtoHAsync(self, target: int, source: int, count: int, stream: int) -> Any:
        if stream in self._captured:
            return self._refusal_in_capture()
        self._do(stream, lambda: ctypes.memmove(target, self._memory(int(source), count).ctypes.data, count))
        return None

    def _cuStreamSynchronize(self, stream: int) -> Any:
        refusal = super()._cuStreamSynchronize(stream)
        if refusal is None:
            self._run_stream(stream)
        return refusal

    def _cuCtxSynchronize(self) -> Any:
        refusal = super()._cuCtxSynchronize()
        if refusal is None:
            for stream in sorted(self._queues, reverse=True):
                self._run_stream(stream)
        return refusal


__all__ = ["DelayedDriver"]
