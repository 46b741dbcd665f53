"""Values of data types between Python and compiled code.

Compiled code sees the leaves of a layout: the tensors of a value, a tag for data, a row for recursive data. Recursive
values that are passed in become rows of their pools before the call, parts before wholes; those that come out are read
from the pools after it. Values may be of any depth, and what they share is passed once.

In Python a value is an object with `constructor` and `fields`, as `make(definition, constructor, fields)` makes it.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias, assert_never

import attrs
import numpy as np

from relay.codegen.layout import (
    DataLayout,
    Layout,
    Pool,
    RowLayout,
    SizedLayout,
    StackLayout,
    TensorLayout,
    TupleLayout,
    has_fixed_rows,
    leaves,
)
from relay.errors import ExecutionError, InternalError
from relay.ir.dims import ANY, Dim
from relay.ir.types import DataDefinition

Make: TypeAlias = Callable[[DataDefinition, str, tuple[Any, ...]], Any]


def storage(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype that arrays of a dtype are exchanged as: DLPack has no NumPy name for bfloat16."""
    return dtype if dtype.isbuiltin == 1 else np.dtype(f"u{dtype.itemsize}")


def input_pools(layouts: Sequence[Layout]) -> set[Pool]:
    """The pools that values of these layouts have rows in."""
    found: set[Pool] = set()
    pending = list(layouts)
    while pending:
        match pending.pop():
            case TupleLayout(items):
                pending += items
            case DataLayout(_, fields):
                pending += (field for constructor in fields for field in constructor)
            case RowLayout(pool) if pool not in found:
                found.add(pool)
                pending.append(pool.element)
            case _:
                pass
    return found


# ---- in


class Passing:
    """The arguments of one call: their leaves, and the rows that they need."""

    def __init__(self, number: Callable[[Dim], int]) -> None:
        """`number`: what a dim is in this call."""
        self.leaves: list[Any] = []
        self._number = number
        self._rows: dict[Pool, list[list[Any]]] = {}
        self._numbers: dict[tuple[int, Pool], int] = {}

    def add(self, value: Any, layout: Layout) -> None:
        """Append an argument's leaves."""
        for part, pool in _rows_in(value, layout):
            self._add_rows(part, pool)
        self._flatten(value, layout, self.leaves)

    def _add_rows(self, value: Any, pool: Pool) -> None:
        pending = [(value, pool)]
        while pending:
            current, home = pending[-1]
            if (id(current), home) in self._numbers:
                pending.pop()
                continue
            missing = [(v, p) for v, p in _rows_in(current, home.element) if (id(v), p) not in self._numbers]
            if missing:
                pending += missing
                continue
            pending.pop()
            row: list[Any] = []
            self._flatten(current, home.element, row)
            rows = self._rows.setdefault(home, [])
            self._numbers[id(current), home] = len(rows)
            rows.append(row)

    def _flatten(self, value: Any, layout: Layout, found: list[Any]) -> None:
        match layout:
            case TensorLayout():
                found.append(value)
            case TupleLayout(items):
                for part, item in zip(value, items, strict=True):
                    self._flatten(part, item, found)
            case DataLayout(definition, fields):
                tag = definition.index(value.constructor)
                found.append(np.asarray(tag, np.int32))
                for position, layouts in enumerate(fields):
                    if position == tag:
                        for part, item in zip(value.fields, layouts, strict=True):
                            self._flatten(part, item, found)
                    else:
                        found += (self._zeros(t) for item in layouts for t in leaves(item))
            case RowLayout(pool):
                found.append(np.asarray(self._numbers[id(value), pool], np.int64))
            case StackLayout():
                raise InternalError("a stack as an argument")
            case _:
                assert_never(layout)

    def _zeros(self, layout: TensorLayout) -> np.ndarray:
        return np.zeros(tuple(map(self._number, layout.dims)), layout.base.dtype)

    def fill(self, table: np.ndarray, pools: set[Pool]) -> None:
        """Write the rows into their pools, which have nothing else."""
        for pool in pools:
            rows = self._rows.get(pool, [])
            slot = pool.slot
            assert slot is not None
            parts = list(leaves(pool.element))
            if len(rows) > table[slot + 1] or not has_fixed_rows(pool):  # which may be of another size than before
                for position, layout in enumerate(parts):
                    base = reallocate(int(table[slot + 2 + position]), len(rows) * max(self._number(layout.bytes), 1))
                    if not base:
                        raise ExecutionError("there is not enough memory for the data of the program")
                    table[slot + 2 + position] = base
                table[slot + 1] = len(rows)
            for position, layout in enumerate(parts):
                column = np.empty((len(rows), *map(self._number, layout.dims)), layout.base.dtype)
                for number, row in enumerate(rows):
                    column[number] = row[position]
                ctypes.memmove(int(table[slot + 2 + position]), column.ctypes.data, column.nbytes)
            table[slot] = len(rows)


def _rows_in(value: Any, layout: Layout) -> Iterator[tuple[Any, Pool]]:
    """The recursive parts of a value that are rows themselves."""
    match layout:
        case TupleLayout(items):
            for part, item in zip(value, items, strict=True):
                yield from _rows_in(part, item)
        case DataLayout(definition, fields):
            for part, item in zip(value.fields, fields[definition.index(value.constructor)], strict=True):
                yield from _rows_in(part, item)
        case RowLayout(pool):
            yield value, pool
        case TensorLayout() | StackLayout():
            return
        case _:
            assert_never(layout)


def reallocate(address: int, size: int) -> int:
    realloc = ctypes.CDLL(None).realloc
    realloc.argtypes, realloc.restype = [ctypes.c_void_p, ctypes.c_size_t], ctypes.c_void_p
    return int(realloc(address, size) or 0)


# ---- out


@attrs.frozen
class _Row:
    """A recursive part that is still to be read."""

    pool: Pool
    number: int


@attrs.frozen(eq=False)
class _Made:
    """A value whose parts may still be rows."""

    definition: DataDefinition
    constructor: int
    fields: tuple[Any, ...]


class Reading:
    """The result of one call, read from its leaves and the pools."""

    def __init__(self, table: np.ndarray, make: Make, number: Callable[[Dim], int]) -> None:
        self._table = table
        self._number = number
        self._make = make
        self._columns: dict[Pool, list[np.ndarray]] = {}
        self._done: dict[_Row, Any] = {}

    def read(self, layout: Layout, arrays: Iterator[Any]) -> Any:
        """The value of a layout with these leaves."""
        whole = self._parse(layout, arrays)
        for row in _rows_of(whole):
            self._read_rows(row)
        return self._finish(whole)

    def _read_rows(self, row: _Row) -> None:
        parsed: dict[_Row, Any] = {}
        pending = [row]
        while pending:
            current = pending[-1]
            if current in self._done:
                pending.pop()
                continue
            if current not in parsed:
                columns = self._of(current.pool)
                parsed[current] = self._parse(current.pool.element, (np.array(c[current.number]) for c in columns))
            missing = [r for r in _rows_of(parsed[current]) if r not in self._done]
            if missing:
                pending += missing
                continue
            pending.pop()
            self._done[current] = self._finish(parsed.pop(current))

    def _of(self, pool: Pool) -> list[np.ndarray]:
        """The columns of a pool, in place."""
        if pool not in self._columns:
            slot = pool.slot
            assert slot is not None
            count = int(self._table[slot])
            columns = []
            for position, layout in enumerate(leaves(pool.element)):
                size = count * self._number(layout.bytes)
                memory = (ctypes.c_char * size).from_address(int(self._table[slot + 2 + position])) if size else b""
                dtype = layout.base.dtype
                flat = np.frombuffer(memory, storage(dtype)).view(dtype)  # type: ignore[arg-type]
                columns.append(flat.reshape((count, *map(self._number, layout.dims))))
            self._columns[pool] = columns
        return self._columns[pool]

    def _parse(self, layout: Layout, arrays: Iterator[Any]) -> Any:
        match layout:
            case TensorLayout():
                return next(arrays)
            case SizedLayout(_, base, dims):
                return self._sized(base.dtype, dims, int(next(arrays)), arrays)
            case TupleLayout(items):
                return tuple(self._parse(item, arrays) for item in items)
            case DataLayout(definition, fields):
                tag = int(next(arrays))
                found: tuple[Any, ...] = ()
                for position, layouts in enumerate(fields):
                    if position == tag:
                        found = tuple(self._parse(item, arrays) for item in layouts)
                    else:  # its leaves hold nothing
                        for item in layouts:
                            for _ in leaves(item):
                                next(arrays)
                return _Made(definition, tag, found)
            case RowLayout(pool):
                return _Row(pool, int(next(arrays)))
            case StackLayout():
                offset, length = int(next(arrays)), int(next(arrays))
                return [_Row(layout.pool, offset + i) for i in range(length)]
            case _:
                assert_never(layout)

    def _sized(self, dtype: np.dtype[Any], dims: Sequence[Dim], address: int, arrays: Iterator[Any]) -> np.ndarray:
        """A copy of a tensor of the arena."""
        shape = tuple(int(next(arrays)) if dim is ANY else self._number(dim) for dim in dims)
        size = math.prod(shape) * dtype.itemsize
        memory = (ctypes.c_char * size).from_address(address) if size else b""
        return np.frombuffer(memory, storage(dtype)).view(dtype).reshape(shape).copy()  # type: ignore[arg-type]

    def _finish(self, part: Any) -> Any:
        match part:
            case tuple():
                return tuple(map(self._finish, part))
            case list():
                return list(map(self._finish, part))
            case _Made(definition, constructor, fields):
                return self._make(
                    definition, definition.constructors[constructor].name, tuple(map(self._finish, fields))
                )
            case _Row():
                return self._done[part]
            case _:
                return part


def _rows_of(part: Any) -> Iterator[_Row]:
    match part:
        case tuple() | list():
            for item in part:
                yield from _rows_of(item)
        case _Made(_, _, fields):
            for item in fields:
                yield from _rows_of(item)
        case _Row():
            yield part
        case _:
            pass
