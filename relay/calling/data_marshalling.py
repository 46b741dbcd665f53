"""Marshalling of recursive data from Python objects straight into the pools of compiled code.

The rows of a pool are ordered by their constructors, so that each field of a constructor is one block of memory, which
one call of NumPy fills. Objects are gone through once, whatever their depth; what they share gets one row.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any

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
    TupleLayout,
    leaves,
)
from relay.codegen.runtime.data_plans import Assembly, Plan, Plans, Values, is_fixed
from relay.codegen.runtime.marshalling import reallocate
from relay.errors import ExecutionError
from relay.ir.types import INT64, BaseType, DataDefinition

if TYPE_CHECKING:
    from relay.codegen.runtime.cpu import Program

_type_of_array = attrgetter("dtype", "shape")


ROWS = "rows"
"""The mark of a recursive value in the kinds of arguments, followed by its data type."""

LIST_OF_ROWS = "list of rows"
"""The mark of a list of recursive values whose length does not matter, followed by their data type. Its leaf is the
list."""


class Unpackable(Exception):
    """A layout whose values are not packed here."""


@attrs.frozen(eq=False)
class _Field:
    """A field of a constructor: the name of the attribute, the place of its column, and what it holds."""

    name: str
    column: int
    layout: TensorLayout | RowLayout


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
    """A constructor: the class of its objects, their pool, the tag, and which fields are rows, and which tensors."""

    cls: type
    pool: Pool
    tag: int
    rows: tuple[_Field, ...]
    tensors: tuple[_Field, ...]


class PoolFiller:
    """Writer of the pools of a program's arguments.

    `classes(definition)` are the Python classes of a data type's constructors, with their attributes. Raises Unpackable
    if a field is neither a tensor nor a row, or if a class has rows in several pools.
    """

    def __init__(
        self, pools: Sequence[Pool], classes: Callable[[DataDefinition], Sequence[tuple[type, Sequence[str]]]]
    ) -> None:
        self._columns = {pool: [_Column.from_layout(leaf) for leaf in pool.leaves()] for pool in pools}
        self._lists = [pool for pool in pools if _is_list_of_rows(pool)]
        self._constructors: dict[type, _Constructor] = {}
        self._of: dict[Pool, list[_Constructor]] = {}
        for pool in pools:
            if pool in self._lists:
                continue
            if not isinstance(pool.element, DataLayout) or pool.cells:
                raise Unpackable
            found = self._of[pool] = []
            column = 1
            for tag, (cls, names) in enumerate(classes(pool.element.definition)):
                fields = []
                for name, layout in zip(names, pool.element.fields[tag], strict=True):
                    fields.append(_Field(name, column, _packable_layout(layout)))
                    column += 1
                rows = tuple(f for f in fields if isinstance(f.layout, RowLayout))
                tensors = tuple(f for f in fields if isinstance(f.layout, TensorLayout))
                found.append(_Constructor(cls, pool, tag, rows, tensors))
                if cls in self._constructors:
                    raise Unpackable
                self._constructors[cls] = found[-1]
        self._all = list(self._constructors.values())
        self._positions = {each.cls: position for position, each in enumerate(self._all)}
        self._plans = Plans(self._plan)
        self._below = {cls: tuple(f.name for f in each.rows) for cls, each in self._constructors.items()}

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
        elements = [value for values, _ in lists for value in values]
        values = [*(value for value, _ in roots), *elements]
        plans = self._plans.find(values)
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
        for each in self._constructors.values():
            objects = groups[each.cls]
            if objects:
                kinds = self._write(table, each, objects, starts, numbers)
                if kinds is None:
                    return None
                seen.append((each.cls, kinds))
        if any(self._constructors[type(value)].pool is not pool for value, pool in roots):
            return None
        found = {id(value): starts[type(value)] + numbers[id(value)] for value in values}
        begins = self._write_lists(table, lists, found)
        return None if begins is None else ([found[id(value)] for value, _ in roots], begins, tuple(seen))

    def _write_lists(
        self, table: np.ndarray, lists: Sequence[tuple[list[Any], Pool]], found: dict[int, int]
    ) -> list[int] | None:
        """Write the rows of the lists' elements, which are `found` by their identity; gives the rows where the lists
        begin, or None where they do not fit."""
        rows: dict[Pool, list[int]] = {pool: [] for pool in self._lists}
        begins: list[int] = []
        for values, pool in lists:
            assert isinstance(pool.element, RowLayout)
            if any(self._constructors[cls].pool is not pool.element.pool for cls in set(map(type, values))):
                return None
            begins.append(len(rows[pool]))
            rows[pool] += [found[id(value)] for value in values]
        for pool, given in rows.items():
            self._reserve(table, pool, len(given))
            self._rows(table, pool, 0, 0, len(given))[...] = given
        return begins

    # ---- values that were passed before

    def _plan(self, value: Any) -> Plan | None:
        """The plan of a value in pools; None if it does not fit."""
        groups: dict[type, list[Any]] = {cls: [] for cls in self._constructors}
        numbers: dict[int, int] = {}
        if not self._visit([value], groups, numbers):
            return None
        rows, tensors = [], []
        for each in self._all:
            objects = groups[each.cls]
            fields = []
            for field in each.rows:
                parts = [o.__dict__[field.name] for o in objects]
                if not self._are_rows_of(parts, field.layout):
                    return None
                kinds = np.fromiter((self._positions[type(p)] for p in parts), np.int64, len(parts))
                fields.append((kinds, np.fromiter((numbers[id(p)] for p in parts), np.int64, len(parts))))
            rows.append(fields)
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
        return Plan(counts, rows, tensors, root, len(numbers))

    def _are_rows_of(self, values: Sequence[Any], layout: TensorLayout | RowLayout) -> bool:
        """True if values have rows in the pool of a field."""
        assert isinstance(layout, RowLayout)
        return all(self._constructors[cls].pool is layout.pool for cls in set(map(type, values)))

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
        for position, each in enumerate(self._all):
            start, count = int(whole.base[0, position]), int(totals[position])
            if not count:
                continue
            self._rows(table, each.pool, 0, start, count)[...] = each.tag
            for number, field in enumerate(each.rows):
                self._rows(table, each.pool, field.column, start, count)[...] = whole.rows(position, number)
            kinds: list[object] = []
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
        begins = self._write_lists(table, lists, found)
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
            if names:
                held = current.__dict__
                for name in names:
                    pending.append(held[name])
        return True

    def _write(
        self,
        table: np.ndarray,
        each: _Constructor,
        objects: list[Any],
        starts: dict[type, int],
        numbers: dict[int, int],
    ) -> tuple[object, ...] | None:
        """Write the rows of a constructor; the types of what its fields hold, or None where that does not fit."""
        start, count = starts[each.cls], len(objects)
        self._rows(table, each.pool, 0, start, count)[...] = each.tag
        for field in each.rows:
            parts = [o.__dict__[field.name] for o in objects]
            if not self._are_rows_of(parts, field.layout):
                return None
            rows = [starts[type(p)] + numbers[id(p)] for p in parts]
            self._rows(table, each.pool, field.column, start, count)[...] = rows
        kinds: list[object] = []
        for field in each.tensors:
            assert isinstance(field.layout, TensorLayout)
            values = [o.__dict__[field.name] for o in objects]
            kind = frozenset(map(type, values))
            kinds.append(kind)
            if not write_tensors(self._rows(table, each.pool, field.column, start, count), values, kind):
                return None
        return tuple(kinds)


def _is_list_of_rows(pool: Pool) -> bool:
    """True if the rows of a pool are elements of lists that are recursive values, which the program does not change."""
    element = pool.element
    if pool.cells or not isinstance(element, RowLayout):
        return False
    return isinstance(element.pool.element, DataLayout) and not element.pool.cells


def _packable_layout(layout: Layout) -> TensorLayout | RowLayout:
    if isinstance(layout, TensorLayout) and all(isinstance(d, int) for d in layout.dims):
        return layout
    if isinstance(layout, RowLayout) and isinstance(layout.pool.element, DataLayout) and not layout.pool.cells:
        return layout
    raise Unpackable


def write_tensors(column: np.ndarray, values: list[Any], kinds: frozenset[type]) -> bool:
    """Write values into the rows of a column; False if they are not of its dtype and shape."""
    if Array in kinds:
        values = [v.numpy() if type(v) is Array else v for v in values]
        kinds = frozenset(map(type, values))
    if all(kind is np.ndarray or issubclass(kind, np.generic) for kind in kinds):
        if set(map(_type_of_array, values)) != {(column.dtype, column.shape[1:])}:
            return False
        if column.ndim > 1 and column.size:
            np.concatenate(values, out=column.reshape(-1, *column.shape[2:]))
        else:
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


# ---- calls as before


class DataCall:
    """A compiled program for arguments of certain Python types, some of which are values of data types. What a call
    runs that is like an earlier one.

    `kinds` are the arguments' types and structure, as `fast_path.flatten` lists them. Raises Unpackable for programs
    whose arguments have parts that are not packed here. Which program a value is for may depend on the constructors in
    it and on the types of its fields: calls with others than those learned are refused.
    """

    def __init__(
        self,
        program: Program,
        kinds: Sequence[object],
        classes: Callable[[DataDefinition], Sequence[tuple[type, Sequence[str]]]],
    ) -> None:
        if program.native.dims:
            raise Unpackable
        self.program = program
        self.most_objects: int | None = None  # calls with more are refused
        self._packing = PoolFiller(list(program.native.inputs), classes)
        self._constants: list[np.ndarray | None] = []
        self._given: list[tuple[int, int]] = []  # places among the program's leaves, and the arguments' leaves there
        self._roots: list[tuple[int, int, Pool]] = []  # the same for those that are rows
        self._lists: list[tuple[int, int, Pool]] = []  # the same for lists of such: the places of begin and length
        self._allowed: set[object] = set()
        self._bases: list[BaseType] = []
        rest = iter(kinds)
        for layout in program.native.parameters:
            self._place(layout, rest)
        if next(rest, self) is not self:
            raise Unpackable

    def _place(self, layout: Layout, kinds: Iterator[object]) -> None:
        """Say where the leaves of a layout come from."""
        kind = next(kinds, None)
        match layout:
            case TensorLayout():
                if type(kind) is not type:
                    raise Unpackable
                self._given.append((len(self._constants), len(self._bases)))
                self._constants.append(None)
                self._bases.append(layout.base)
            case RowLayout(pool):
                if kind != ROWS:
                    raise Unpackable
                next(kinds)
                self._roots.append((len(self._constants), len(self._bases), pool))
                self._constants.append(None)
                self._bases.append(INT64)
            case StackLayout(pool=pool):
                if kind != LIST_OF_ROWS or not _is_list_of_rows(pool):
                    raise Unpackable
                next(kinds)
                self._lists.append((len(self._constants), len(self._bases), pool))
                self._constants += None, None
                self._bases.append(INT64)
            case TupleLayout(items):
                if kind in ("tuple", "list", "dict") or kind is None:
                    next(kinds)
                for item in items:
                    self._place(item, kinds)
            case DataLayout(definition, fields):
                if not isinstance(kind, tuple) or not hasattr(kind[0], "__relay_constructor__"):
                    raise Unpackable
                tag = definition.index(kind[0].__relay_constructor__)
                self._constants.append(np.asarray(tag, np.int32))
                for position, layouts in enumerate(fields):
                    for item in layouts:
                        if position == tag:
                            self._place(item, kinds)
                            continue
                        for leaf in leaves(item):
                            dims = tuple(d for d in leaf.dims if isinstance(d, int))
                            self._constants.append(np.zeros(dims, leaf.base.dtype))
            case _:
                raise Unpackable

    def bases(self) -> list[BaseType]:
        """The base types of the arguments' leaves; of rows any."""
        return self._bases

    def learn(self, leaves: Sequence[Any]) -> None:
        """Note that the program is for values with these constructors and types of fields. Raises Unpackable if the
        values of the call do not fit."""
        context = self.program.take()
        found = self._fill(context.table, leaves)
        self.program.give(context)
        if found is None:
            raise Unpackable
        self._allowed.add(found[2])

    def _fill(self, table: np.ndarray, leaves: Sequence[Any]) -> tuple[list[int], list[int], object] | None:
        roots = [(leaves[i], pool) for _, i, pool in self._roots]
        lists = [(leaves[i], pool) for _, i, pool in self._lists]
        return self._packing.fill(table, roots, lists, self.most_objects)

    def __call__(self, leaves: Sequence[Any]) -> tuple[Any] | None:
        """The run-time value of the result; None if the program is not for these arguments."""
        program = self.program
        context = program.take()
        found = self._fill(context.table, leaves)
        if found is None or found[2] not in self._allowed:
            program.give(context)
            return None
        given: list[Any] = self._constants.copy()
        for place, position in self._given:
            given[place] = leaves[position]
        for (place, _, _), row in zip(self._roots, found[0], strict=True):
            given[place] = np.asarray(row, np.int64)
        for (place, position, _), begin in zip(self._lists, found[1], strict=True):
            given[place : place + 2] = np.asarray(begin, np.int64), np.asarray(len(leaves[position]), np.int64)
        try:
            outputs = program.run(given, context)
            return None if outputs is None else (program.read(outputs, context),)
        finally:
            program.give(context)
