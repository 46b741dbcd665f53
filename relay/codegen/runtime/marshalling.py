"""Marshalling of data types, references and lists between Python and compiled code.

Compiled code sees the leaves of a layout: the tensors of a value, a tag for data, a row for recursive data and for
references, offset and length of a stack. What is passed in becomes rows of the pools before the call; what comes out is
read from the pools after it. Values may be of any depth, and what they share is passed once.

In Python a value is an object with `constructor` and `fields`, as `make(definition, constructor, fields)` makes it. A
reference is a `Reference`, the same one on both ways; a stack that is passed is a `Stack`, and one that is returned a
list: of the contents, if it is a stack of cells.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, TypeAlias, assert_never

import attrs
import numpy as np

from relay.codegen.lowering.layout import (
    DataLayout,
    Layout,
    Pool,
    RowLayout,
    SizedLayout,
    StackLayout,
    TensorLayout,
    TupleLayout,
    has_cells,
    has_fixed_rows,
    leaves,
)
from relay.errors import ExecutionError
from relay.ir.dims import ANY, Dim
from relay.ir.types import DataDefinition

Make: TypeAlias = Callable[[DataDefinition, str, tuple[Any, ...]], Any]

_ALIGNMENT = 64


def storage(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype that arrays of a dtype are exchanged as: DLPack has no NumPy name for bfloat16."""
    return dtype if dtype.isbuiltin == 1 else np.dtype(f"u{dtype.itemsize}")


def input_pools(layouts: Sequence[Layout]) -> dict[Pool, None]:
    """The pools that values of these layouts have rows in, in the same order in every process."""
    found: dict[Pool, None] = {}
    pending = list(layouts)
    while pending:
        match pending.pop():
            case TupleLayout(items):
                pending += items
            case DataLayout(_, fields):
                pending += (field for constructor in fields for field in constructor)
            case (RowLayout() | StackLayout()) as rows if rows.pool not in found:
                found[rows.pool] = None
                pending.append(rows.pool.element)
            case _:
                pass
    return found


@attrs.define(eq=False)
class Reference:
    """A reference outside of compiled code, unless the caller has a class of its own with a `content`."""

    content: Any


@attrs.frozen
class Cell:
    """A row of a pool of references."""

    pool: Pool
    number: int


# ---- in


class ArgumentMarshaller:
    """The arguments of one call: their leaves, and the rows that they need."""

    def __init__(self, number: Callable[[Dim], int]) -> None:
        """`number`: what a dim is in this call."""
        self.leaves: list[Any] = []
        self.references: dict[Cell, Any] = {}
        self._number = number
        self._rows: dict[Pool, list[list[Any]]] = {}
        self._numbers: dict[tuple[int, Pool], int] = {}
        self._kept: list[np.ndarray] = []  # memory whose address stands in a row

    def add(self, value: Any, layout: Layout) -> None:
        """Append an argument's leaves."""
        for part, pool in _rows_in(value, layout):
            self._add_rows(part, pool)
        self._flatten(value, layout, self.leaves)

    def _add_rows(self, value: Any, pool: Pool) -> None:
        """Parts before wholes, but a reference has its number before its content: it may lead back to itself."""
        pending = [(value, pool)]
        opened: list[tuple[Any, list[Any], Pool]] = []  # references whose rows are still empty
        while pending:
            current, home = pending[-1]
            if (id(current), home) in self._numbers:
                pending.pop()
                continue
            rows = self._rows.setdefault(home, [])
            if home.cells:
                pending.pop()
                number = self._numbers[id(current), home] = len(rows)
                rows.append([])
                self.references[Cell(home, number)] = current
                opened.append((current, rows[-1], home))
                pending += _rows_in(current.content, home.element)
                continue
            missing = [(v, p) for v, p in _rows_in(current, home.element) if (id(v), p) not in self._numbers]
            if missing:
                pending += missing
                continue
            pending.pop()
            row: list[Any] = []
            self._flatten(current, home.element, row)
            self._numbers[id(current), home] = len(rows)
            rows.append(row)
        for reference, row, home in opened:
            self._flatten(reference.content, home.element, row)

    def _flatten(self, value: Any, layout: Layout, found: list[Any]) -> None:
        match layout:
            case TensorLayout():
                found.append(value)
            case SizedLayout(_, base, dims):
                array = _arena_copy(np.asarray(value, base.dtype))
                self._kept.append(array)
                extents = [size for dim, size in zip(dims, array.shape, strict=True) if dim is ANY]
                found += (np.asarray(word, np.int64) for word in (array.ctypes.data, *extents))
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
                made: list[list[Any]] = [[] for _ in range(value.length)]
                for item, row in zip(_elements(value, layout.pool), made, strict=True):
                    self._flatten(item, layout.pool.element, row)
                rows = self._rows.setdefault(layout.pool, [])
                found += (np.asarray(len(rows), np.int64), np.asarray(len(made), np.int64))
                rows += made
            case _:
                assert_never(layout)

    def _zeros(self, layout: TensorLayout) -> np.ndarray:
        return np.zeros(tuple(map(self._number, layout.dims)), layout.base.dtype)

    def fill(self, table: np.ndarray, pools: Collection[Pool]) -> None:
        """Write the rows into their pools, which have nothing else."""
        for pool in pools:
            rows = self._rows.get(pool, [])
            slot = pool.slot
            assert slot is not None
            parts = pool.leaves()
            if len(rows) > table[slot + 1] or not has_fixed_rows(pool):  # which may be of another size than before
                for position, layout in enumerate(parts):
                    base = reallocate(int(table[slot + 2 + position]), len(rows) * max(self._number(layout.bytes), 1))
                    if not base:
                        raise ExecutionError("there is not enough memory for the data of the program")
                    table[slot + 2 + position] = base
                table[slot + 1] = len(rows)
            for position, layout in enumerate(leaves(pool.element)):
                dims = tuple(map(self._number, layout.dims))
                column = array_at(int(table[slot + 2 + position]), (len(rows), *dims), layout.base.dtype)
                for number, row in enumerate(rows):
                    column[number] = row[position]
            table[slot] = len(rows)

    def is_unchanged(self, table: np.ndarray, cell: Cell) -> bool:
        """True if a reference still has the content that it was passed with, bit by bit; unknown for stacks. Of
        stacks nobody knows."""
        if _holds_stack(cell.pool.element):
            return False
        slot = cell.pool.slot
        assert slot is not None
        row = self._rows[cell.pool][cell.number]
        for position, layout in enumerate(leaves(cell.pool.element)):
            size = self._number(layout.bytes)
            shape = tuple(map(self._number, layout.dims))
            before = np.ascontiguousarray(np.broadcast_to(np.asarray(row[position], layout.base.dtype), shape))
            address = int(table[slot + 2 + position]) + cell.number * size
            if size and _memcmp(address, before.ctypes.data, size):
                return False
        return True


def array_at(address: int, shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray:
    """The memory at an address as an array."""
    size = math.prod(shape) * dtype.itemsize
    memory = (ctypes.c_char * size).from_address(address) if size else bytearray()  # not bytes, which cannot be written
    flat = np.frombuffer(memory, storage(dtype)).view(dtype)  # type: ignore[arg-type]
    return flat.reshape(shape)


def same_bytes(a: np.ndarray, b: np.ndarray) -> bool:
    """True if two arrays of one dtype and shape are equal, bit by bit."""
    if a.nbytes < _SMALL or not (a.flags.c_contiguous and b.flags.c_contiguous):
        return a.tobytes() == b.tobytes()
    return bool(_memcmp(a.ctypes.data, b.ctypes.data, a.nbytes) == 0)


_SMALL = 4096  # bytes that are compared faster where they are copied than where they are
_memcmp = ctypes.CDLL(None).memcmp
_memcmp.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t]


def _holds_stack(layout: Layout) -> bool:
    match layout:
        case StackLayout():
            return True
        case TupleLayout(items):
            return any(map(_holds_stack, items))
        case DataLayout(_, fields):
            return any(_holds_stack(field) for constructor in fields for field in constructor)
        case _:
            return False


def _rows_in(value: Any, layout: Layout) -> Iterator[tuple[Any, Pool]]:
    """The recursive parts and references of a value, which are rows themselves."""
    match layout:
        case SizedLayout() | TensorLayout():
            return
        case TupleLayout(items):
            for part, item in zip(value, items, strict=True):
                yield from _rows_in(part, item)
        case DataLayout(definition, fields):
            for part, item in zip(value.fields, fields[definition.index(value.constructor)], strict=True):
                yield from _rows_in(part, item)
        case RowLayout(pool):
            yield value, pool
        case StackLayout():
            for item in _elements(value, layout.pool):
                yield from _rows_in(item, layout.pool.element)
        case _:
            assert_never(layout)


def _elements(stack: Any, pool: Pool) -> Iterator[Any]:
    """The contents of a stack's rows. Those of a list are cells if the compiled program needs them, otherwise their
    contents."""
    cells = has_cells(pool)
    for item in stack.buffer[: stack.length]:
        yield item if cells else getattr(item, "content", item)


def _arena_copy(array: np.ndarray) -> np.ndarray:
    """A copy in memory as an arena's."""
    memory = np.empty(array.nbytes + _ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % _ALIGNMENT
    made = memory[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    made[...] = array
    return made


def reallocate(address: int, size: int) -> int:
    realloc = ctypes.CDLL(None).realloc
    realloc.argtypes, realloc.restype = [ctypes.c_void_p, ctypes.c_size_t], ctypes.c_void_p
    return int(realloc(address, size) or 0)


# ---- out


@attrs.frozen
class _PendingRow:
    """A recursive part, or an element of a stack, that is still to be read."""

    pool: Pool
    number: int


@attrs.frozen(eq=False)
class _PendingValue:
    """A value whose parts may still be rows."""

    definition: DataDefinition
    constructor: int
    fields: tuple[Any, ...]


class ResultUnmarshaller:
    """The result of one call, read from its leaves and the pools."""

    def __init__(
        self,
        table: np.ndarray,
        make: Make,
        number: Callable[[Dim], int],
        known: Mapping[Cell, Any] | None = None,
        reference: Callable[[Any], Any] = Reference,
    ) -> None:
        """`known`: the references that were passed in. `reference`: what makes others, with their content."""
        self._table = table
        self._number = number
        self._make = make
        self._columns: dict[Pool, list[np.ndarray]] = {}
        self._done: dict[_PendingRow, Any] = {}
        self._references: dict[Cell, Any] = dict(known or {})
        self._reference = reference
        self._opened: list[Cell] = []  # references whose contents are still to be read

    def read(self, layout: Layout, arrays: Iterator[Any]) -> Any:
        """The value of a layout with these leaves."""
        result = self._complete_value(self._parse(layout, arrays))
        self._read_contents()
        return result

    def give_back(self, passing: ArgumentMarshaller) -> None:
        """Let the references that were passed in hold what the call has left in them."""
        self._opened += (cell for cell in passing.references if not passing.is_unchanged(self._table, cell))
        self._read_contents()

    def _read_contents(self) -> None:
        while self._opened:
            cell = self._opened.pop()
            self._references[cell].content = self._complete_value(self._row(cell.pool, cell.number))

    def _complete_value(self, parsed: Any) -> Any:
        for row in _rows_of(parsed):
            self._read_rows(row)
        return self._finish(parsed)

    def _row(self, pool: Pool, number: int) -> Any:
        return self._parse(pool.element, (np.array(column[number]) for column in self._pool_columns(pool)))

    def _read_rows(self, row: _PendingRow) -> None:
        parsed: dict[_PendingRow, Any] = {}
        pending = [row]
        while pending:
            current = pending[-1]
            if current in self._done:
                pending.pop()
                continue
            if current not in parsed:
                parsed[current] = self._row(current.pool, current.number)
            missing = [r for r in _rows_of(parsed[current]) if r not in self._done]
            if missing:
                pending += missing
                continue
            pending.pop()
            self._done[current] = self._finish(parsed.pop(current))

    def _pool_columns(self, pool: Pool) -> list[np.ndarray]:
        """The columns of a pool, in place."""
        if pool not in self._columns:
            slot = pool.slot
            assert slot is not None
            count = int(self._table[slot])
            columns = []
            for position, layout in enumerate(leaves(pool.element)):
                dims = tuple(map(self._number, layout.dims))
                columns.append(array_at(int(self._table[slot + 2 + position]), (count, *dims), layout.base.dtype))
            self._columns[pool] = columns
        return self._columns[pool]

    def _parse(self, layout: Layout, arrays: Iterator[Any]) -> Any:
        match layout:
            case TensorLayout():
                return next(arrays)
            case SizedLayout(_, base, dims):
                return self._copy_arena_tensor(base.dtype, dims, int(next(arrays)), arrays)
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
                return _PendingValue(definition, tag, found)
            case RowLayout(pool):
                number = int(next(arrays))
                return Cell(pool, number) if pool.cells else _PendingRow(pool, number)
            case StackLayout():
                offset, length = int(next(arrays)), int(next(arrays))
                pool = layout.pool
                if isinstance(pool.element, RowLayout) and has_cells(pool):  # a list, which has no cells
                    numbers = self._pool_columns(pool)[0][offset : offset + length].tolist() if length else ()
                    return [_PendingRow(pool.element.pool, number) for number in numbers]
                if isinstance(pool.element, TensorLayout) and length:
                    return [np.array(row) for row in self._pool_columns(pool)[0][offset : offset + length]]
                return [_PendingRow(pool, offset + i) for i in range(length)]
            case _:
                assert_never(layout)

    def _copy_arena_tensor(
        self, dtype: np.dtype[Any], dims: Sequence[Dim], address: int, arrays: Iterator[Any]
    ) -> np.ndarray:
        """A copy of a tensor of the arena."""
        shape = tuple(int(next(arrays)) if dim is ANY else self._number(dim) for dim in dims)
        return array_at(address, shape, dtype).copy()

    def _finish(self, part: Any) -> Any:
        match part:
            case tuple():
                return tuple(map(self._finish, part))
            case list():
                return list(map(self._finish, part))
            case _PendingValue(definition, constructor, fields):
                return self._make(
                    definition, definition.constructors[constructor].name, tuple(map(self._finish, fields))
                )
            case _PendingRow():
                return self._done[part]
            case Cell():
                if part not in self._references:
                    self._references[part] = self._reference(None)
                    self._opened.append(part)
                return self._references[part]
            case _:
                return part


def _rows_of(part: Any) -> Iterator[_PendingRow]:
    match part:
        case tuple() | list():
            for item in part:
                yield from _rows_of(item)
        case _PendingValue(_, _, fields):
            for item in fields:
                yield from _rows_of(item)
        case _PendingRow():
            yield part
        case _:
            pass
