"""Row places: the rows that the rounds of a loop read or write, where they go up or down with the counter.

index(x, i + 1)         the rows of x from 1 on
index(x, n - 1 - i)     the rows of x from the last one to the first
index(x, 2 * i)         every second row of x
"""

from __future__ import annotations

from collections.abc import Callable

import attrs

from relay.ir.dims import ANY, Dim, add, multiply, subtract
from relay.ir.expr import Atom, OpCall
from relay.ir.types import BOOL
from relay.operator import Value
from relay.transform.analysis.value_ranges import ValueRanges


@attrs.frozen
class Place:
    """The counter of the loop times `step`, which is not 0, plus `offset`, both the same in all rounds."""

    offset: Dim = 0
    step: int = 1

    @property
    def is_counter(self) -> bool:
        """True if the place is the counter itself."""
        return self == Place()

    def ends(self, count: Dim) -> tuple[Dim, Dim]:
        """The lowest place of all rounds, and the one after the highest."""
        last = add(self.offset, multiply(self.step, subtract(count, 1)))
        return (self.offset, add(last, 1)) if self.step > 0 else (last, add(self.offset, 1))

    def are_within(self, count: Dim, extent: Dim, integers: ValueRanges) -> bool:
        """True if the places of all rounds are there along an axis."""
        low, end = self.ends(count)
        return integers.at_least(low, 0) is True and integers.at_least(extent, end) is True


def affine_place(
    call: OpCall, place_of: Callable[[Atom], Place | None], number_of: Callable[[Atom], Dim | None]
) -> Place | None:
    """The place that a sum, difference or product of a place and a number is; None for other calls. `place_of` and
    `number_of` tell what an operand is."""
    if call.operator not in ("add", "subtract", "multiply") or len(call.arguments) != 2:
        return None
    left, right = call.arguments
    first, second = place_of(left), place_of(right)
    if (first is None) == (second is None):
        return None
    number = number_of(right if second is None else left)
    place = first or second
    if number is None or place is None:
        return None
    match call.operator:
        case "add":
            return Place(add(place.offset, number), place.step)
        case "subtract" if second is None:
            return Place(subtract(place.offset, number), place.step)
        case "subtract":
            return Place(subtract(number, place.offset), -place.step)
        case _ if isinstance(number, int) and number != 0:
            return Place(multiply(place.offset, number), place.step * number)
        case _:
            return None


def rows_at(array: Value, place: Place, count: Dim) -> Value:
    """The rows of an array at the places of all rounds, which are there."""
    low, end = place.ends(count)
    rest = array.shape[1:]
    value = array
    if low != 0 or end != array.shape[0] or abs(place.step) != 1:
        begins, ends = (low, *(0 for _ in rest)), (end, *rest)
        strides = (abs(place.step), *(1 for _ in rest))
        value = array.op("strided_slice", begin=begins, end=ends, strides=strides)
    return value if place.step > 0 else value.op("flip", axis=0)


def padded_rows(array: Value, place: Place, count: Dim, integers: ValueRanges) -> Value | None:
    """The rows of an array at the places of all rounds, with rows of zeros for a known number of them that are not
    there; None where the number is not known."""
    low, end = place.ends(count)
    before, after = (0 if low == 0 else subtract(0, low)), subtract(end, array.shape[0])
    if not (isinstance(before, int) and isinstance(after, int)) or array.base == BOOL or abs(place.step) != 1:
        return None
    before, after = max(before, 0), max(after, 0)
    inside = subtract(subtract(count, before), after)
    if integers.at_least(inside, 1) is not True or ANY in array.shape:
        return None
    first = add(low, before)
    value = rows_at(array, Place(first), inside)
    widths = ((before, after), *((0, 0) for _ in array.shape[1:]))
    value = value.op("pad", widths=widths)
    return value if place.step > 0 else value.op("flip", axis=0)


def moved_axis(value: Value, axis: object) -> Value | None:
    """An array with one of its axes as the first; None without one."""
    if not isinstance(axis, int):
        return None
    axis %= value.ndim
    order = (axis, *(n for n in range(value.ndim) if n != axis))
    return value.op("transpose", axes=order) if axis else value
