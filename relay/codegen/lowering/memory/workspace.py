"""The workspace of one native function: a plan of the buffers that share memory.

Buffers are used at times, which count the emitted statements. A buffer is alive from its first to its last use; if it
is older than a loop that uses it, until the loop's end. Buffers that are never alive together may overlap.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from relay.ir.dims import Dim, add, floor_divide, multiply, total

ALIGNMENT = 64

_MOST_COMPARED = 1000
"""Of more slots only one plan is made."""


@attrs.define(eq=False)
class Slot:
    """A buffer of the workspace: its bytes, the TIR variable that holds its address, whether code names that variable,
    and its life."""

    bytes: Dim
    address: object
    named: bool = False
    first: int | None = None
    last: int = -1
    offset: Dim = 0


class Workspace:
    """Makes slots, records their uses, and in the end places them."""

    def __init__(self) -> None:
        self.slots: list[Slot] = []
        self._time = 0
        self._loops: list[tuple[int, set[Slot]]] = []  # the start of each open loop, and the older slots used in it

    def slot(self, size: Dim, address: object) -> Slot:
        made = Slot(max(size, 1) if isinstance(size, int) else size, address)
        self.slots.append(made)
        return made

    def use(self, slot: Slot) -> None:
        """The slot is read or written now."""
        self._time += 1
        slot.first = self._time if slot.first is None else slot.first
        slot.last = self._time
        for start, older in self._loops:
            if slot.first <= start:
                older.add(slot)

    @property
    def time(self) -> int:
        """Now: how often buffers were used so far."""
        return self._time

    def live_bytes(self, begin: int, end: int) -> Dim:
        """The bytes of the buffers that are alive after one time, to another one, once all have been used."""
        alive = [s.bytes for s in self.slots if s.first is not None and s.first <= end and s.last > begin]
        return total(alive)

    def enter_loop(self) -> None:
        self._time += 1
        self._loops.append((self._time, set()))

    def leave_loop(self) -> None:
        self._time += 1
        _, older = self._loops.pop()
        for slot in older:
            slot.last = self._time

    def place(self) -> Dim:
        """Give every used slot an offset; returns the workspace's bytes. First those whose size is a number, then those
        of each symbolic size."""
        end: Dim = self._place_static()
        sizes = dict.fromkeys(s.bytes for s in self.slots if s.first is not None and not isinstance(s.bytes, int))
        for size in sizes:
            rounded = multiply(floor_divide(add(size, ALIGNMENT - 1), ALIGNMENT), ALIGNMENT)
            ends: list[int] = []  # when the last slot in each place of this size dies
            for slot in sorted((s for s in self.slots if s.bytes == size and s.first is not None), key=_birth_time):
                position = next((i for i, end in enumerate(ends) if end < _birth_time(slot)), len(ends))
                ends[position : position + 1] = [slot.last]
                slot.offset = add(end, multiply(rounded, position))
            end = add(end, multiply(rounded, len(ends)))
        return end

    def _place_static(self) -> int:
        """In the order of first use; if that takes more than the slots that are alive together, the largest first,
        where that takes less."""
        slots = [s for s in self.slots if s.first is not None and isinstance(s.bytes, int)]
        top = _place_in_order(slots)
        if top > live_bytes(slots) and len(slots) <= _MOST_COMPARED:
            offsets = [s.offset for s in slots]
            largest_first = _place_largest_first(slots)
            if largest_first < top:
                return largest_first
            for slot, offset in zip(slots, offsets, strict=True):
                slot.offset = offset
        return top


def live_bytes(slots: Sequence[Slot]) -> int:
    """The most bytes of slots of known size that are alive together: no plan needs less."""
    events = [(time, size) for s in slots for time, size in ((_birth_time(s), _size(s)), (s.last + 0.5, -_size(s)))]
    live = most = 0
    for _, size in sorted(events):
        live += size
        most = max(most, live)
    return most


def _size(slot: Slot) -> int:
    """The bytes that a slot takes of the workspace."""
    assert isinstance(slot.bytes, int)
    return -(-slot.bytes // ALIGNMENT) * ALIGNMENT


def _place_in_order(slots: Sequence[Slot]) -> int:
    """First fit, in the order of first use. Returns the end of the last one."""
    free: list[tuple[int, int]] = []  # (offset, bytes), by offset
    top = 0
    events = sorted(event for i, s in enumerate(slots) for event in ((_birth_time(s), 1, i), (s.last, 2, i)))
    for _, kind, i in events:
        slot, size = slots[i], _size(slots[i])
        if kind == 2:
            assert isinstance(slot.offset, int)
            free = _insert_free_block(free, slot.offset, size)
            continue
        for position, (offset, available) in enumerate(free):
            if available >= size:
                slot.offset = offset
                free[position : position + 1] = [(offset + size, available - size)] if available > size else []
                break
        else:
            slot.offset = top
            top += size
    return top


def _place_largest_first(slots: Sequence[Slot]) -> int:
    """Each at the lowest offset where it overlaps none that is alive with it and was placed before. Quadratic."""
    placed: list[Slot] = []
    top = 0
    for slot in sorted(slots, key=lambda s: (-_size(s), _birth_time(s))):
        taken = sorted(
            (other.offset, _size(other))
            for other in placed
            if isinstance(other.offset, int) and _birth_time(other) <= slot.last and _birth_time(slot) <= other.last
        )
        offset = 0
        for start, size in taken:
            if offset + _size(slot) <= start:
                break
            offset = max(offset, start + size)
        slot.offset = offset
        placed.append(slot)
        top = max(top, offset + _size(slot))
    return top


def _birth_time(slot: Slot) -> int:
    return slot.first or 0


def _insert_free_block(free: list[tuple[int, int]], offset: int, size: int) -> list[tuple[int, int]]:
    """The free list with one more piece, merged with its neighbors."""
    merged: list[tuple[int, int]] = []
    for start, length in sorted([*free, (offset, size)]):
        if merged and sum(merged[-1]) == start:
            merged[-1] = (merged[-1][0], merged[-1][1] + length)
        else:
            merged.append((start, length))
    return merged
