"""Races: two accesses to one place, one of them a write, of which none happens before the other.

For each place and unit the last read and the last write are kept, as the number of the unit's instruction. Instructions
come in an order that their tokens allow, and a unit's are ordered among themselves. So an access races with an earlier
one of another unit exactly if its clock does not count it, and only the last ones need to be compared.
"""

from __future__ import annotations

import numpy as np

from relay.codegen.vta.isa import Queue
from relay.codegen.vta.simulator.tokens import Clock

Array = np.ndarray
Places = slice | Array
"""Some of the places of a memory."""


class Accesses:
    """The accesses to one memory."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._reads: list[Array | None] = [None] * len(Queue)
        self._writes: list[Array | None] = [None] * len(Queue)

    def read(self, queue: Queue, clock: Clock, places: Places) -> tuple[Queue, int, bool] | None:
        """Note a read; what it races with: the unit, the number of its instruction, and that it writes."""
        found = self._conflict(self._writes, queue, clock, places)
        self._note(self._reads, queue, clock, places)
        return None if found is None else (*found, True)

    def write(self, queue: Queue, clock: Clock, places: Places) -> tuple[Queue, int, bool] | None:
        """Note a write; what it races with: the unit, the number of its instruction, and whether it writes."""
        found = self._conflict(self._writes, queue, clock, places)
        other = self._conflict(self._reads, queue, clock, places)
        self._note(self._writes, queue, clock, places)
        if found is not None:
            return (*found, True)
        return None if other is None else (*other, False)

    def _conflict(
        self, tables: list[Array | None], queue: Queue, clock: Clock, places: Places
    ) -> tuple[Queue, int] | None:
        for other in Queue:
            table = tables[other]
            if other is not queue and table is not None:
                latest = int(table[places].max(initial=0))
                if latest > clock[other]:
                    return other, latest - 1
        return None

    def _note(self, tables: list[Array | None], queue: Queue, clock: Clock, places: Places) -> None:
        table = tables[queue]
        if table is None:
            table = tables[queue] = np.zeros(self._size, np.int32)
        table[places] = clock[queue]
