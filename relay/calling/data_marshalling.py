"""Marshalling of recursive data from Python objects straight into the pools of compiled code.

The rows of a pool are ordered by their constructors, so that each field of a constructor is one block of memory, which
one call of NumPy fills. Objects are gone through once, whatever their depth; what they share gets one row.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Sequence
from itertools import chain
from operator import attrgetter
from typing import Any

import attrs
import numpy as np

from relay.calling.array import Array
from relay.codegen.lowering.layout import (
    DataLayout,
    Layout,
    Pool,
    RowLayout,
    StackLayout,
    TensorLayout,
    has_cells,
    leaves,
)
from relay.codegen.runtime.data_plans import Assembly, Plan, PlannedLists, Plans, Values, is_fixed
from relay.codegen.runtime.marshalling import reallocate
from relay.errors import ExecutionError
from relay.ir.types import DataDefinition

_type_of_array = attrgetter("dtype", "shape")


class Unpackable(Exception):
    """A layout whose values are not packed here."""


@attrs.frozen(eq=False)
class _Field:
    """A field of a constructor: the name of the attribute, the place of its column, and what it holds."""

    name: str
    column: int
    layout: TensorLayout | RowLayout | StackLayout

    @property
    def pool(self) -> Pool:
        """The pool of the rows that it holds."""
        assert not isinstance(self.layout, TensorLayout)
        return self.layout.pool


@attrs.frozen(eq=False)
class _Column:
    """The elements of a row in a column of a pool: their shape, dtype and bytes."""

    dims: tuple[int, ...]
    dtype: np.dtype[Any]
    size: int

    @staticmethod
    def from_layout(layout: TensorLayout) -> _Column:
        """Those of a layout. Raises Unpackable if its size is symbolic."""
        dims = tuple(d for d in layout.dims if isinstance(d, int))
        if len(dims) < len(layout.dims):
            raise Unpackable
        return _Column(dims, layout.base.dtype, math.prod(dims) * layout.base.dtype.itemsize)


@attrs.frozen(eq=False)
class _Constructor:
    """A constructor: the class of its objects, their pool, the tag, and which fields are rows, which lists of rows,
    and which tensors."""

    cls: type
    pool: Pool
    tag: int
    rows: tuple[_Field, ...]
    lists: tuple[_Field, ...]
    tensors: tuple[_Field, ...]


class PoolFiller:
    """Writer of the pools of a program's arguments.

    `classes(definition)` are the Python classes of a data type's constructors, with their attributes. With
    `changes_lists` the program may change elements of lists in fields, so what values share is one. Raises Unpackable
    if a field is neither a tensor nor a row nor a list of rows, or if a class has rows in several pools.
    """

    def __init__(
        self,
        pools: Sequence[Pool],
        classes: Callable[[DataDefinition], Sequence[tuple[type, Sequence[str]]]],
        changes_lists: bool,
    ) -> None:
        self._columns = {pool: [_Column.from_layout(leaf) for leaf in pool.leaves()] for pool in pools}
        self._lists = [pool for pool in pools if is_list_of_rows(pool)]
        self._cells = [pool.element.pool for pool in self._lists if has_cells(pool)]  # type: ignore[union-attr]
        self._constructors: dict[type, _Constructor] = {}
        self._of: dict[Pool, list[_Constructor]] = {}
        for pool in pools:
            if pool in self._lists or pool in self._cells:
                continue
            if not isinstance(pool.element, DataLayout) or pool.cells:
                raise Unpackable
            found = self._of[pool] = []
            column = 1
            for tag, (cls, names) in enumerate(classes(pool.element.definition)):
                fields = []
                for name, layout in zip(names, pool.element.fields[tag], strict=True):
                    fields.append(_Field(name, column, _packable_layout(layout)))
                    column += len(list(leaves(layout)))
                rows = tuple(f for f in fields if isinstance(f.layout, RowLayout))
                lists = tuple(f for f in fields if isinstance(f.layout, StackLayout))
                tensors = tuple(f for f in fields if isinstance(f.layout, TensorLayout))
                found.append(_Constructor(cls, pool, tag, rows, lists, tensors))
                if cls in self._constructors:
                    raise Unpackable
                self._constructors[cls] = found[-1]
        self._all = list(self._constructors.values())
        self._may_plan = not (self._cells and changes_lists)
        self._positions = {each.cls: position for position, each in enumerate(self._all)}
        self._plans = Plans(self._plan)
        self._below = {
            each.cls: (tuple(f.name for f in each.rows), tuple(f.name for f in each.lists)) for each in self._all
        }

    def fill(
        self,
        table: np.ndarray,
        roots: Sequence[tuple[Any, Pool]],
        lists: Sequence[tuple[list[Any], Pool]] = (),
        most: int | None = None,
    ) -> tuple[list[int], list[int], object] | None:
        """Write all parts of the roots and of the lists into their pools, which hold nothing else.

        Returns the roots' rows, the rows where the lists begin, and the constructors and types of fields that were met;
        None if something is not of the dtype, shape or class that the program is for, or if there are more than `most`
        objects. Raises ExecutionError if memory runs out.
        """
        values = [*(value for value, _ in roots), *(value for listed, _ in lists for value in listed)]
        plans = self._plans.find(values) if self._may_plan else None
        if plans is not None and (most is None or sum(plan.size for plan in plans) <= most):
            return self._assemble(table, roots, lists, plans, values)
        groups: dict[type, list[Any]] = {cls: [] for cls in self._constructors}
        numbers: dict[int, int] = {}
        if not self._visit(list(values), groups, numbers) or (most is not None and len(numbers) > most):
            return None
        starts: dict[type, int] = {}
        for pool, constructors in self._of.items():
            count = 0
            for each in constructors:
                starts[each.cls] = count
                count += len(groups[each.cls])
            self._reserve(table, pool, count)
        seen: list[object] = []
        elements_of = _Elements(self._lists)
        for each in self._constructors.values():
            objects = groups[each.cls]
            if objects:
                kinds = self._write(table, each, objects, starts, numbers, elements_of)
                if kinds is None:
                    return None
                seen.append((each.cls, kinds))
        if any(self._constructors[type(value)].pool is not pool for value, pool in roots):
            return None
        found = {id(value): starts[type(value)] + numbers[id(value)] for value in values}
        begins = self._write_lists(table, lists, found, elements_of)
        return None if begins is None else ([found[id(value)] for value, _ in roots], begins, tuple(seen))

    def _write_lists(
        self,
        table: np.ndarray,
        lists: Sequence[tuple[list[Any], Pool]],
        found: dict[int, int],
        elements: _Elements,
    ) -> list[int] | None:
        """Write the `elements` of the lists in fields and those of the given lists, whose rows are `found` by their
        identity; gives the rows where the given lists begin, or None where they do not fit."""
        begins: list[int] = []
        for values, pool in lists:
            if any(self._constructors[cls].pool is not _pool_of_elements(pool) for cls in set(map(type, values))):
                return None
            begins.append(
                elements.add(pool, np.fromiter((found[id(value)] for value in values), np.int64, len(values)))
            )
        in_cells: dict[Pool, list[np.ndarray]] = {pool: [] for pool in self._cells}
        for pool, parts in elements.parts.items():
            if has_cells(pool):
                cells = in_cells[pool.element.pool]  # type: ignore[union-attr]
                begin, count = sum(map(len, cells)), elements.counts[pool]
                cells += parts
                parts = [np.arange(begin, begin + count)]
            self._write_rows(table, pool, parts)
        for pool, parts in in_cells.items():
            self._write_rows(table, pool, parts)
        return begins

    def _write_rows(self, table: np.ndarray, pool: Pool, parts: Sequence[np.ndarray]) -> None:
        """Write all rows of a pool whose rows are those of another."""
        count = sum(map(len, parts))
        self._reserve(table, pool, count)
        if count:
            np.concatenate(parts, out=self._rows(table, pool, 0, 0, count))

    # ---- values that were passed before

    def _plan(self, value: Any) -> Plan | None:
        """The plan of a value in pools; None if it does not fit."""
        groups: dict[type, list[Any]] = {cls: [] for cls in self._constructors}
        numbers: dict[int, int] = {}
        if not self._visit([value], groups, numbers):
            return None
        rows, lists, tensors = [], [], []
        for each in self._all:
            objects = groups[each.cls]
            fields = []
            for field in each.rows:
                parts = [o.__dict__[field.name] for o in objects]
                if not self._are_rows_of(parts, field):
                    return None
                fields.append(self._numbered(parts, numbers))
            rows.append(fields)
            listed = []
            for field in each.lists:
                held_lists = [o.__dict__[field.name] for o in objects]
                parts = list(chain.from_iterable(held_lists))
                if not self._are_rows_of(parts, field):
                    return None
                listed.append(PlannedLists(held_lists, list(map(tuple, held_lists)), *self._numbered(parts, numbers)))
            lists.append(listed)
            held: list[tuple[Values, frozenset[type]]] = []
            for field in each.tensors:
                values: Values = [o.__dict__[field.name] for o in objects]
                types = frozenset(map(type, values))
                if values and is_fixed(types):
                    column = self._columns[each.pool][field.column]
                    elements = np.empty((len(values), *column.dims), column.dtype)
                    if not write_tensors(elements, list(values), types):
                        return None
                    values = elements
                held.append((values, types))
            tensors.append(held)
        counts = np.array([len(groups[each.cls]) for each in self._all], np.int64)
        root = self._positions[type(value)], numbers[id(value)]
        return Plan(counts, rows, lists, tensors, root, len(numbers))

    def _numbered(self, values: Sequence[Any], numbers: dict[int, int]) -> tuple[np.ndarray, np.ndarray]:
        """The positions of values' constructors, and their numbers among the objects of these."""
        kinds = np.fromiter((self._positions[type(value)] for value in values), np.int64, len(values))
        return kinds, np.fromiter((numbers[id(value)] for value in values), np.int64, len(values))

    def _are_rows_of(self, values: Sequence[Any], field: _Field) -> bool:
        """True if values have rows in the pool of a field, or of the elements of the lists in it."""
        pool = _pool_of_elements(field.pool) if isinstance(field.layout, StackLayout) else field.pool
        return all(self._constructors[cls].pool is pool for cls in set(map(type, values)))

    def _assemble(
        self,
        table: np.ndarray,
        roots: Sequence[tuple[Any, Pool]],
        lists: Sequence[tuple[list[Any], Pool]],
        plans: Sequence[Plan],
        values: Sequence[Any],
    ) -> tuple[list[int], list[int], object] | None:
        """As `fill`, for values with plans."""
        pools = [[self._positions[each.cls] for each in constructors] for constructors in self._of.values()]
        whole = Assembly.of_plans(plans, pools)
        totals = whole.counts.sum(axis=0)
        for pool, positions in zip(self._of, pools, strict=True):
            self._reserve(table, pool, int(totals[positions].sum()))
        seen: list[object] = []
        elements = _Elements(self._lists)
        for position, each in enumerate(self._all):
            start, count = int(whole.base[0, position]), int(totals[position])
            if not count:
                continue
            self._rows(table, each.pool, 0, start, count)[...] = each.tag
            for number, field in enumerate(each.rows):
                self._rows(table, each.pool, field.column, start, count)[...] = whole.rows(position, number)
            kinds: list[object] = []
            for number, field in enumerate(each.lists):
                lengths, parts = whole.lists(position, number)
                self._write_list_field(table, each, field, start, lengths, elements.add(field.pool, parts))
                kinds.append(_lengths_kind(lengths))
            for number, field in enumerate(each.tensors):
                given, types = whole.tensors(position, number)
                kinds.append(types)
                column = self._rows(table, each.pool, field.column, start, count)
                if isinstance(given, np.ndarray):
                    column[...] = given
                elif not write_tensors(column, given, types):
                    return None
            seen.append((each.cls, tuple(kinds)))
        if any(self._constructors[type(value)].pool is not pool for value, pool in roots):
            return None
        distinct = dict.fromkeys(map(id, values))
        found = {identity: whole.root(number) for number, identity in enumerate(distinct)}
        begins = self._write_lists(table, lists, found, elements)
        return None if begins is None else ([found[id(value)] for value, _ in roots], begins, tuple(seen))

    # ---- memory

    def _reserve(self, table: np.ndarray, pool: Pool, count: int) -> None:
        """Make room for this many rows of a pool, which has no others."""
        slot = pool.slot
        assert slot is not None
        if count > table[slot + 1]:
            for position, column in enumerate(self._columns[pool]):
                base = reallocate(int(table[slot + 2 + position]), count * max(column.size, 1))
                if not base:
                    raise ExecutionError("there is not enough memory for the data of the program")
                table[slot + 2 + position] = base
            table[slot + 1] = count
        table[slot] = count

    def _rows(self, table: np.ndarray, pool: Pool, position: int, start: int, count: int) -> np.ndarray:
        """This many rows of a column of a pool, in place."""
        assert pool.slot is not None
        column = self._columns[pool][position]
        if not column.size:
            return np.empty((count, *column.dims), column.dtype)
        address = int(table[pool.slot + 2 + position]) + start * column.size
        memory = (ctypes.c_char * (count * column.size)).from_address(address)
        return np.ndarray((count, *column.dims), column.dtype, memory)  # type: ignore[arg-type]  # any buffer will do

    def _visit(self, pending: list[Any], groups: dict[type, list[Any]], numbers: dict[int, int]) -> bool:
        """Collect the objects by their classes, each once, and number those of each class."""
        below = self._below
        while pending:
            current = pending.pop()
            if id(current) in numbers:
                continue
            names = below.get(type(current))
            if names is None:
                return False
            group = groups[type(current)]
            numbers[id(current)] = len(group)
            group.append(current)
            rows, lists = names
            if rows or lists:
                held = current.__dict__
                for name in rows:
                    pending.append(held[name])
                for name in lists:
                    if type(held[name]) is not list:
                        return False
                    pending += held[name]
        return True

    def _write(
        self,
        table: np.ndarray,
        each: _Constructor,
        objects: list[Any],
        starts: dict[type, int],
        numbers: dict[int, int],
        elements: _Elements,
    ) -> tuple[object, ...] | None:
        """Write the rows of a constructor; the types of what its fields hold, or None where that does not fit."""
        start, count = starts[each.cls], len(objects)
        kinds: list[object] = []
        self._rows(table, each.pool, 0, start, count)[...] = each.tag
        for field in each.rows:
            parts = [o.__dict__[field.name] for o in objects]
            if not self._are_rows_of(parts, field):
                return None
            rows = [starts[type(p)] + numbers[id(p)] for p in parts]
            self._rows(table, each.pool, field.column, start, count)[...] = rows
        for field in each.lists:
            lists = [o.__dict__[field.name] for o in objects]
            parts = list(chain.from_iterable(lists))
            if not self._are_rows_of(parts, field):
                return None
            lengths = np.fromiter(map(len, lists), np.int64, count)
            given = np.fromiter((starts[type(p)] + numbers[id(p)] for p in parts), np.int64, len(parts))
            self._write_list_field(table, each, field, start, lengths, elements.add(field.pool, given))
            kinds.append(_lengths_kind(lengths))
        for field in each.tensors:
            values = [o.__dict__[field.name] for o in objects]
            kind = frozenset(map(type, values))
            kinds.append(kind)
            if not write_tensors(self._rows(table, each.pool, field.column, start, count), values, kind):
                return None
        return tuple(kinds)

    def _write_list_field(
        self, table: np.ndarray, each: _Constructor, field: _Field, start: int, lengths: np.ndarray, begin: int
    ) -> None:
        """Write a field with lists of these lengths, whose elements begin at a row, one list after the other."""
        count = len(lengths)
        self._rows(table, each.pool, field.column, start, count)[...] = np.cumsum(lengths) - lengths + begin
        self._rows(table, each.pool, field.column + 1, start, count)[...] = lengths


@attrs.define(eq=False)
class _Elements:
    """The rows that the elements of the lists in each pool refer to, as far as they are known."""

    pools: Sequence[Pool]
    parts: dict[Pool, list[np.ndarray]] = attrs.field(init=False)
    counts: dict[Pool, int] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.parts, self.counts = {pool: [] for pool in self.pools}, dict.fromkeys(self.pools, 0)

    def add(self, pool: Pool, rows: np.ndarray) -> int:
        """Append elements; gives the place of the first."""
        begin = self.counts[pool]
        self.parts[pool].append(rows)
        self.counts[pool] += len(rows)
        return begin


def _lengths_kind(lengths: np.ndarray) -> object:
    """The part of lists of these lengths that the types of values may depend on: if any, and if all, have elements."""
    return bool(lengths.any()), bool(lengths.all())


def is_list_of_rows(pool: Pool) -> bool:
    """True if the rows of a pool are elements of lists that are recursive values, which the program does not change."""
    if pool.cells or not isinstance(pool.element, RowLayout):
        return False
    home = _pool_of_elements(pool)
    return home is not None and isinstance(home.element, DataLayout) and not home.cells


def _pool_of_elements(pool: Pool) -> Pool | None:
    """The pool of the values in lists, whose elements are their rows, or cells that hold these."""
    element = pool.element
    if isinstance(element, RowLayout) and element.pool.cells:
        element = element.pool.element
    return element.pool if isinstance(element, RowLayout) else None


def _packable_layout(layout: Layout) -> TensorLayout | RowLayout | StackLayout:
    if isinstance(layout, TensorLayout) and all(isinstance(d, int) for d in layout.dims):
        return layout
    if isinstance(layout, RowLayout) and isinstance(layout.pool.element, DataLayout) and not layout.pool.cells:
        return layout
    if isinstance(layout, StackLayout) and is_list_of_rows(layout.pool):
        return layout
    raise Unpackable


def _write_rows(column: np.ndarray, arrays: list[Any]) -> bool:
    """Write arrays, one after the other, into a column; False if they are not of the dtype and shape of its rows.
    To ask each for its length is three times as fast as for its shape."""
    try:
        if set(map(len, arrays)) != {column.shape[1]}:
            return False
        np.concatenate(arrays, out=column.reshape(-1, *column.shape[2:]), casting="no")
    except (TypeError, ValueError):
        return False
    return True


def write_tensors(column: np.ndarray, values: list[Any], kinds: frozenset[type]) -> bool:
    """Write values into the rows of a column; False if they are not of its dtype and shape."""
    if Array in kinds:
        values = [v.numpy() if type(v) is Array else v for v in values]
        kinds = frozenset(map(type, values))
    if all(kind is np.ndarray or issubclass(kind, np.generic) for kind in kinds):
        if column.ndim > 1 and column.size:
            return _write_rows(column, values)
        if set(map(_type_of_array, values)) != {(column.dtype, column.shape[1:])}:
            return False
        column[...] = values
        return True
    if column.ndim > 1 or len(kinds) > 1:
        return False
    (kind,) = kinds
    if (kind, column.dtype.kind) not in ((float, "f"), (int, "i"), (int, "u"), (bool, "b")):
        return False
    try:
        given = np.array(values, np.float64 if kind is float else None)
    except OverflowError:
        return False
    with np.errstate(over="ignore"):
        column[...] = given.astype(column.dtype)
    if kind is float:
        return bool(np.array_equal(np.isfinite(column), np.isfinite(given)))
    return bool(np.array_equal(column, given))
