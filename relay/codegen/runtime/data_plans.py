"""Plans of values that were passed before: how the objects of a recursive value lie in pools, without a walk.

Objects of data types do not change: assignment to their fields is refused. So what a value consists of, and the numbers
in its fields, are known after one walk. Arrays in fields may be written to, and are read in each call. So may lists:
a plan is for the elements that they had, and is made again where a list has others.

A value gets a plan when it is passed for the second time, and keeps it as long as it lives. Of parts that several
values of a call share, each plan has its own copy.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from operator import is_, ne
from typing import Any, TypeAlias

import attrs
import numpy as np

LARGEST = 1 << 20
"""The largest number of rows that plans make in one call; more, which may be copies of shared parts, are walked
over."""

SMALLEST = 128
"""Fewer rows are walked over sooner than put together."""

Values: TypeAlias = "np.ndarray | list[Any]"


@attrs.frozen(eq=False)
class PlannedLists:
    """The lists in a field of all objects of a constructor, with the elements that they had, and what these are, as
    positions of constructors and numbers among their objects, one list after the other."""

    lists: Sequence[list[Any]]
    elements: Sequence[tuple[Any, ...]]
    kinds: np.ndarray
    numbers: np.ndarray

    def are_current(self) -> bool:
        """True if the lists still have these elements, as objects."""
        now = chain.from_iterable(self.lists)
        if any(map(ne, map(len, self.lists), map(len, self.elements))):
            return False
        return all(map(is_, now, chain.from_iterable(self.elements)))


@attrs.frozen(eq=False)
class Plan:
    """The plan of one value in pools, by the position of each constructor: how many objects there are; what each
    field with rows holds, as positions of constructors and numbers among their objects; what each field with lists
    holds; and what each field with tensors holds, as elements, or the arrays themselves, with their Python types.
    `root` is the value's own position and number, `size` the number of all objects."""

    counts: np.ndarray
    rows: Sequence[Sequence[tuple[np.ndarray, np.ndarray]]]
    lists: Sequence[Sequence[PlannedLists]]
    tensors: Sequence[Sequence[tuple[Values, frozenset[type]]]]
    root: tuple[int, int]
    size: int

    def is_current(self) -> bool:
        """True if no list in the value has other elements than when the plan was made."""
        return all(held.are_current() for fields in self.lists for held in fields)


class Plans:
    """The plans of values by their identity. `make` makes one; it is None for values that have none."""

    def __init__(self, make: Callable[[Any], Plan | None]) -> None:
        self._make = make
        self._known: dict[int, tuple[weakref.ref[Any], Plan | bool | None]] = {}  # False: passed once

    def find(self, values: Sequence[Any]) -> list[Plan] | None:
        """The plans of the values of a call, if all have been passed before."""
        distinct = {id(value): value for value in values}
        found: list[Plan] = []
        complete = bool(values)
        for number, value in distinct.items():
            entry = self._known.get(number)
            if entry is None or entry[0]() is not value:
                self._note(number, value, False)
                complete = False
            elif complete:
                plan = entry[1]
                if plan is False or (isinstance(plan, Plan) and not plan.is_current()):
                    plan = self._make(value)
                    self._note(number, value, plan)
                if not isinstance(plan, Plan):
                    complete = False
                else:
                    found.append(plan)
        if not complete or not SMALLEST <= sum(plan.size for plan in found) <= LARGEST:
            return None
        return found

    def _note(self, number: int, value: Any, plan: Plan | bool | None) -> None:
        known = self._known

        def forget(reference: weakref.ref[Any]) -> None:
            entry = known.get(number)
            if entry is not None and entry[0] is reference:
                del known[number]

        known[number] = weakref.ref(value, forget), plan


@attrs.frozen(eq=False)
class Assembly:
    """Plans one after the other: `base[p, c]` is the row where the objects of constructor c in plan p begin."""

    plans: Sequence[Plan]
    counts: np.ndarray
    base: np.ndarray

    @staticmethod
    def of_plans(plans: Sequence[Plan], pools: Sequence[Sequence[int]]) -> Assembly:
        """`pools`: the positions of the constructors with rows in each pool, which begin one after the other."""
        counts = np.array([plan.counts for plan in plans])
        base = np.cumsum(counts, axis=0) - counts
        totals = counts.sum(axis=0)
        for positions in pools:
            start = 0
            for position in positions:
                base[:, position] += start
                start += int(totals[position])
        return Assembly(plans, counts, base)

    def rows(self, constructor: int, field: int) -> np.ndarray:
        """The rows that a field holds."""
        parts = [plan.rows[constructor][field] for plan in self.plans]
        kinds, numbers = (np.concatenate(part) for part in zip(*parts, strict=True))
        owner = np.repeat(np.arange(len(parts)), self.counts[:, constructor])
        rows: np.ndarray = self.base[owner, kinds] + numbers
        return rows

    def lists(self, constructor: int, field: int) -> tuple[np.ndarray, np.ndarray]:
        """The lengths of the lists that a field holds, and the rows of their elements, one list after the other."""
        parts = [plan.lists[constructor][field] for plan in self.plans]
        owner = np.repeat(np.arange(len(parts)), [len(part.kinds) for part in parts])
        kinds, numbers = (np.concatenate(of) for of in zip(*((p.kinds, p.numbers) for p in parts), strict=True))
        lengths = np.fromiter((len(each) for part in parts for each in part.elements), np.int64)
        return lengths, self.base[owner, kinds] + numbers

    def tensors(self, constructor: int, field: int) -> tuple[Values, frozenset[type]]:
        """The content of a field, and its Python types."""
        parts = [plan.tensors[constructor][field] for plan in self.plans]
        kinds = frozenset[type]().union(*(kind for _, kind in parts))
        if all(isinstance(values, np.ndarray) for values, _ in parts):
            return np.concatenate([values for values, _ in parts]), kinds
        return [value for values, _ in parts for value in _elements(values)], kinds

    def root(self, number: int) -> int:
        """The row of the value that a plan is for."""
        constructor, own = self.plans[number].root
        return int(self.base[number, constructor]) + own


def _elements(values: Values) -> Iterator[Any]:
    return iter(values)


def is_fixed(kinds: frozenset[type]) -> bool:
    """True if values of these types never change: numbers."""
    return all(kind in (float, int, bool) or issubclass(kind, np.generic) for kind in kinds)
