"""Memory of a GPU: an arena from which tensors take parts, and to which they return them in the order of the stream.

All kernels run in one stream, so memory may be given to another tensor as soon as the host has no use for the old one:
what is started later runs later. Parts are cut from chunks, best fit first, and joined with free neighbors again, as
in the allocators of PyTorch and XLA. The driver is asked for a chunk only if no part fits; once a program has run, its
calls take nothing from the driver.
"""

from __future__ import annotations

import weakref
from bisect import bisect_left, insort
from collections import deque
from collections.abc import Callable

import attrs

ALIGNMENT = 256
"""Bytes to which sizes are rounded up, and addresses aligned: as the driver's own."""

CHUNK = 32 << 20
"""The least bytes that are taken from the driver at once."""


@attrs.define(eq=False)
class Part:
    """Memory between two addresses, with its neighbors in the chunk."""

    address: int
    size: int
    free: bool = True
    before: Part | None = None
    after: Part | None = None

    def __lt__(self, other: Part) -> bool:
        return (self.size, self.address) < (other.size, other.address)


class Memory:
    """Memory that a tensor has. It goes back to the arena when nothing refers to this any more."""

    __slots__ = ("__weakref__", "address", "exported", "size")

    def __init__(self, address: int, size: int) -> None:
        self.address, self.size = address, size
        self.exported = [False]
        """True if others than the stream may use it: then the whole GPU is waited for before others get it."""


class Arena:
    """The memory of one GPU. `take(bytes)` is the driver's own allocation, which raises MemoryError; `wait()` waits
    for all that runs on the GPU. Memory may be dropped by any thread, at any time; the caller of `allocate` holds a
    lock."""

    def __init__(self, take: Callable[[int], int], wait: Callable[[], None], chunk: int = CHUNK) -> None:
        self._take, self._wait, self._chunk = take, wait, chunk
        self._free: list[Part] = []  # by size
        self._dropped: deque[tuple[Part, list[bool]]] = deque()  # appended by finalizers, which take no lock
        self.taken = 0
        """Bytes that the driver has given."""
        self.used = 0
        """Bytes that tensors have, as far as `allocate` has seen."""
        self.peak = 0
        """The most bytes that tensors have had."""
        self.may_wait = True
        """False while the GPU may not be waited for: then nothing that was dropped is taken back."""
        self.requests = 0
        """The number of times that the driver was asked."""

    def allocate(self, count: int) -> Memory:
        """Memory of this many bytes, perhaps none. Raises MemoryError."""
        self._collect()
        size = max(-(-count // ALIGNMENT), 1) * ALIGNMENT
        part = self._cut(self._fitting_part(size) or self._new_part(size), size)
        part.free = False
        self.used += part.size
        self.peak = max(self.peak, self.used)
        memory = Memory(part.address, count)
        weakref.finalize(memory, self._dropped.append, (part, memory.exported)).atexit = False
        return memory

    def start_peak(self) -> int:
        """Restart the measurement of the peak; the bytes that are in use now."""
        self._collect()
        self.peak = self.used
        return self.used

    def _fitting_part(self, size: int) -> Part | None:
        place = bisect_left(self._free, Part(0, size))
        return self._free.pop(place) if place < len(self._free) else None

    def _new_part(self, size: int) -> Part:
        chunk = max(size, self._chunk)
        self.requests += 1
        try:
            address = self._take(chunk)
        except MemoryError:
            if chunk == size:
                raise
            chunk, address = size, self._take(size)
        self.taken += chunk
        return Part(address, chunk)

    def _cut(self, part: Part, size: int) -> Part:
        """The first bytes of a part; what is left becomes one of its own."""
        if part.size > size:
            rest = Part(part.address + size, part.size - size, True, part, part.after)
            if part.after is not None:
                part.after.before = rest
            part.after, part.size = rest, size
            insort(self._free, rest)
        return part

    def _collect(self) -> None:
        """Take back what was dropped."""
        waited = False
        while self._dropped and self.may_wait:
            part, exported = self._dropped.popleft()
            if exported[0] and not waited:
                self._wait()
                waited = True
            self.used -= part.size
            self._join(part)

    def _join(self, part: Part) -> None:
        for neighbor in (part.before, part.after):
            if neighbor is not None and neighbor.free:
                del self._free[bisect_left(self._free, neighbor)]
                first, second = (neighbor, part) if neighbor is part.before else (part, neighbor)
                first.size += second.size
                first.after = second.after
                if first.after is not None:
                    first.after.before = first
                part = first
        part.free = True
        insort(self._free, part)


__all__ = ["ALIGNMENT", "CHUNK", "Arena", "Memory", "Part"]
