"""Marshalling of references and lists on the fast path, straight into the pools of compiled code.

The memory of a pool is a set of arrays, one for each leaf of a content, whose rows are the references. After the call,
references whose rows have changed in any bit get the new content.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import attrs
import numpy as np

from relay.calling.array import Array
from relay.calling.data_calls import LIST_OF_ROWS, ROWS
from relay.calling.data_marshalling import Unpackable, write_tensors
from relay.calling.ragged_lists import PackedList, RaggedList
from relay.calling.results import wrap
from relay.codegen.lowering.layout import (
    Layout,
    Pool,
    RowLayout,
    SizedLayout,
    StackLayout,
    TensorLayout,
    TupleLayout,
    has_cells,
)
from relay.codegen.runtime.marshalling import array_at, reallocate, same_bytes
from relay.errors import ExecutionError
from relay.ir.annotations.annotation import Ref
from relay.ir.literals import holds
from relay.ir.types import INT64, BaseType, RefType, StackType, TensorType, TupleType, Type
from relay.support.limits import too_large

if TYPE_CHECKING:
    from relay.codegen.runtime.cpu import Program, _Context

REFERENCE = "reference"
"""The mark of a reference in the kinds of arguments, followed by those of its content. Its leaf is the pair of it
and the leaves of its content."""

STRUCTURES = ("tuple", "list", "dict", "returned", None)
"""The beginnings of the kinds of structures, of which a second one has the details."""


LIST = "elements"
"""The mark of a list of any length in the kinds of arguments, followed by the type of all its elements. Its leaf is
the list of them."""


def lists_as_leaves(kinds: Sequence[object], leaves: Sequence[Any]) -> tuple[tuple[object, ...], list[Any]] | None:
    """Kinds and leaves with lists of arrays, of numbers, or of recursive values, as one leaf; None where there are
    none."""
    if "list" not in kinds or REFERENCE in kinds:
        return None
    found_kinds: list[object] = []
    found: list[Any] = []
    position = leaf = 0
    changed = False
    while position < len(kinds):
        kind = kinds[position]
        count = kinds[position + 1] if kind == "list" else 0
        made = _list_kind(kinds, position + 2, count) if isinstance(count, int) and count else None
        if made is not None:
            assert isinstance(count, int)
            found_kinds += made
            found.append(list(leaves[leaf : leaf + count]))
            position, leaf = position + 2 + count * (2 if made[0] == LIST_OF_ROWS else 1), leaf + count
            changed = True
            continue
        found_kinds.append(kind)
        position += 1
        if type(kind) is type or kind == ROWS:
            found.append(leaves[leaf])
            leaf += 1
            if kind == ROWS:  # its data type is no kind of a leaf
                found_kinds.append(kinds[position])
                position += 1
    return (tuple(found_kinds), found) if changed else None


def _list_kind(kinds: Sequence[object], start: int, count: int) -> tuple[object, object] | None:
    """The kind of a list of this many elements whose kinds begin there, if they are alike."""
    first = kinds[start]
    if type(first) is type:
        return (LIST, first) if set(kinds[start : start + count]) == {first} else None
    if first == ROWS:
        inside = kinds[start : start + 2 * count]
        if len(set(inside[::2])) == len(set(inside[1::2])) == 1:
            return LIST_OF_ROWS, inside[1]
    return None


class ReferenceCall:
    """A compiled program for arguments of certain Python types, some of which are references to arrays, numbers, and
    structures of them, or lists of arrays or numbers. What a call runs that is like an earlier one.

    `kinds` are the arguments' types and structure, as `fast_path.flatten` lists them, and `types` the parameters'.
    Raises Unpackable for programs whose arguments have parts of other kinds.
    """

    def __init__(self, program: Program, kinds: Sequence[object], types: Sequence[Type]) -> None:
        self.program = program
        self._cells: dict[Pool, _Cells] = {}
        self._given: list[tuple[int, int]] = []  # places among the program's leaves, and the arguments' leaves there
        self._references: list[tuple[int, int, _Cells]] = []  # the same for those that are references
        self._lists: list[tuple[int, int, _Cells, Pool | None, frozenset[type]]] = []  # and lists, as `_PassedList`
        self._ragged: list[tuple[int, int, RaggedList]] = []  # lists of arrays that differ in size
        self._pools: dict[Pool, tuple[int, tuple[int, ...]]] = {}  # the slots of all pools, and the bytes of a row
        self.bases: list[BaseType] = []  # of the arguments' leaves; of references any
        self.kinds: list[object] = []  # the same
        self._count = 0  # of the program's leaves
        rest = iter(kinds)
        for layout, type_ in zip(program.native.parameters, types, strict=True):
            self._place(layout, type_, rest)
        if next(rest, self) is not self or not set(program.native.inputs) <= self._pools.keys():
            raise Unpackable
        self._slots = [slot for slot, _ in self._pools.values()]
        self._is_recursive = program.native.recursive

    def _place(self, layout: Layout, type_: Type, kinds: Iterator[object]) -> None:
        """Say where the leaves of a layout come from."""
        kind = next(kinds, None)
        match layout:
            case TensorLayout():
                if type(kind) is not type:
                    raise Unpackable
                self._given.append((self._count, len(self.bases)))
                self._count += 1
                self.bases.append(layout.base)
                self.kinds.append(kind)
            case TupleLayout(items) if isinstance(type_, TupleType):
                if kind in STRUCTURES:
                    next(kinds)
                elif not isinstance(kind, tuple):
                    raise Unpackable
                for item, part in zip(items, type_.items, strict=True):
                    self._place(item, part, kinds)
            case RowLayout(pool) if kind == REFERENCE and pool.cells and isinstance(type_, RefType):
                cells = self._cells_of(pool, type_.content)
                _skip_content(pool.element, kinds)
                self._references.append((self._count, len(self.bases), cells))
                self._count += 1
                self.bases.append(INT64)
                self.kinds.append(kind)
            case StackLayout(pool=pool) if kind == LIST and isinstance(type_, StackType):
                of = type_.element
                if not isinstance(of, RefType) or pool.slot is None:
                    raise Unpackable
                if self._place_ragged(pool, kinds):
                    self.kinds.append(kind)
                    return
                if has_cells(pool):
                    assert isinstance(pool.element, RowLayout)
                    elements, numbers = self._cells_of(pool.element.pool, of.content), pool
                    self._pools[pool] = pool.slot, (INT64.dtype.itemsize,) * len(pool.leaves())
                else:
                    elements, numbers = self._cells_of(pool, of.content), None
                if len(elements.leaves) != 1 or not isinstance(of.content, TensorType):
                    raise Unpackable
                (of_elements,) = frozenset({next(kinds)})
                assert isinstance(of_elements, type)
                self._lists.append((self._count, len(self.bases), elements, numbers, frozenset({of_elements})))
                self._count += 2  # where it begins, and its length
                self.bases.append(INT64)
                self.kinds.append(kind)
            case _:
                raise Unpackable

    def _place_ragged(self, pool: Pool, kinds: Iterator[object]) -> bool:
        """Say where a list of arrays of different sizes comes from; False for other lists."""
        has_numbers = has_cells(pool)
        rows = pool.element.pool if isinstance(pool.element, RowLayout) else pool
        found = RaggedList.of_pool(rows, pool.slot if has_numbers else None)
        if found is None:
            return False
        if next(kinds) is not np.ndarray:
            raise Unpackable
        for each in (pool, rows):
            assert each.slot is not None
            self._pools[each] = each.slot, (INT64.dtype.itemsize,) * len(each.leaves())
        self._ragged.append((self._count, len(self.bases), found))
        self._count += 2  # where it begins, and its length
        self.bases.append(INT64)
        return True

    def _cells_of(self, pool: Pool, content: Type) -> _Cells:
        cells = self._cells.get(pool) or _cells(pool, content)
        if cells.content != content:
            raise Unpackable
        self._cells[pool] = cells
        self._pools[pool] = cells.slot, cells.sizes
        return cells

    def __call__(self, given: list[Any], finish: Callable[[list[np.ndarray], _Context], Any], misfit: object) -> Any:
        """The result of `finish` on the result's leaves, or `misfit` if the program is not for these arguments.
        Raises ExecutionError; the references then still get what the program has written to them."""
        inputs: list[Any] = [None] * self._count
        for place, position in self._given:
            inputs[place] = given[position]
        passed: dict[int, _Passed] = {}
        counts = dict.fromkeys(self._slots, 0)
        for place, position, cells in self._references:
            reference, content = given[position]
            known = passed.get(id(reference))
            if known is None:
                if not _fits(content, cells):
                    return misfit
                row = counts[cells.slot]
                counts[cells.slot] = row + 1
                passed[id(reference)] = cells, row, reference, content
            elif known[0] is cells:
                row = known[1]
            else:
                return misfit
            inputs[place] = _number(row)
        lists: list[_PassedList | PackedList] = []
        for place, position, ragged in self._ragged:
            items = given[position]
            row = start = counts[ragged.slot]
            counts[ragged.slot] = row + len(items)
            if ragged.numbers is not None:
                start = counts[ragged.numbers]
                counts[ragged.numbers] = start + len(items)
            packed = ragged.pack(items, row, start)
            if packed is None:
                return misfit
            inputs[place], inputs[place + 1] = _number(start), _number(len(items))
            lists.append(packed)
        for place, position, cells, pool, kinds in self._lists:
            items = given[position]
            row = start = counts[cells.slot]
            counts[cells.slot] = row + len(items)
            numbers = None if pool is None else pool.slot
            if numbers is not None:
                start = counts[numbers]
                counts[numbers] = start + len(items)
            inputs[place], inputs[place + 1] = _number(start), _number(len(items))
            lists.append((cells, row, numbers, start, items, kinds))
        context = self.program.take()
        try:
            return self._run(context, inputs, passed, lists, counts, finish, misfit)
        except MemoryError as error:
            raise too_large("references", error) from None
        finally:
            self.program.give(context)

    def _run(
        self,
        context: _Context,
        inputs: list[Any],
        passed: Mapping[int, _Passed],
        lists: Sequence[_PassedList | PackedList],
        counts: Mapping[int, int],
        finish: Callable[[list[np.ndarray], _Context], Any],
        misfit: object,
    ) -> Any:
        if not self._fill(context, passed, lists, counts):
            return misfit
        if self._is_recursive:
            context.refill = lambda: self._fill(context, passed, lists, counts)
        try:
            outputs = self.program.run(inputs, context)
            return misfit if outputs is None else finish(outputs, context)
        finally:
            context.refill = None
            _give_back(context, passed)

    def _fill(
        self,
        context: _Context,
        passed: Mapping[int, _Passed],
        lists: Sequence[_PassedList | PackedList],
        counts: Mapping[int, int],
    ) -> bool:
        """Write the contents into their rows; False if an element of a list is of another type. Raises
        ExecutionError if memory runs out."""
        words = context.words
        for slot, sizes in self._pools.values():
            count = counts[slot]
            if count > words[slot + 1]:
                for position, size in enumerate(sizes):
                    base = reallocate(words[slot + 2 + position], count * max(size, 1))
                    if not base:
                        raise ExecutionError("there is not enough memory for the data of the program")
                    words[slot + 2 + position] = base
                words[slot + 1] = count
            words[slot] = count
        for cells, row, _, content in passed.values():
            for column, value in zip(_columns(context, cells), content, strict=True):
                column[row] = value
        for each in lists:
            if isinstance(each, PackedList):
                each.write(words)
                continue
            cells, row, numbers, start, items, kinds = each
            (column,) = _columns(context, cells)
            end = row + len(items)
            if not write_tensors(column[row:end], items, kinds):
                return False
            if numbers is not None:
                array_at(words[numbers + 2], (start + len(items),), INT64.dtype)[start:] = np.arange(row, end)
        return True


# ---- contents


@attrs.frozen(eq=False)
class _Leaf:
    """A tensor of a content."""

    dims: tuple[int, ...]
    base: BaseType
    dtype: np.dtype[Any]
    size: int  # in bytes


@attrs.frozen(eq=False)
class _Cells:
    """A pool of references: its place in the context table, and what a content is."""

    slot: int
    leaves: tuple[_Leaf, ...]
    content: Type
    sizes: tuple[int, ...]  # of the leaves of a row in bytes: those of the content, and the words for shadows


_Passed: TypeAlias = "tuple[_Cells, int, Ref, Sequence[Any]]"
"""A reference among the arguments of a call: its pool, its row, itself, and the leaves of its content."""


_PassedList: TypeAlias = "tuple[_Cells, int, int | None, int, list[Any], frozenset[type]]"
"""A list among the arguments: the pool and first row of its elements, those of their numbers if the elements are cells,
and the elements with their types."""


def _cells(pool: Pool, content: Type) -> _Cells:
    """Raises Unpackable for contents that are not arrays of a known size."""
    found = []
    if pool.slot is None:
        raise Unpackable
    for layout in _tensors(pool.element):
        dims = tuple(d for d in layout.dims if isinstance(d, int))
        if len(dims) < len(layout.dims):
            raise Unpackable
        dtype = layout.base.dtype
        found.append(_Leaf(dims, layout.base, dtype, math.prod(dims) * dtype.itemsize))
    words = len(pool.leaves()) - len(found)
    return _Cells(pool.slot, tuple(found), content, (*(leaf.size for leaf in found), *(INT64.dtype.itemsize,) * words))


def _tensors(layout: Layout) -> Iterator[TensorLayout]:
    match layout:
        case TensorLayout():
            yield layout
        case TupleLayout(items) if not isinstance(layout, SizedLayout):
            for item in items:
                yield from _tensors(item)
        case _:
            raise Unpackable


def _skip_content(layout: Layout, kinds: Iterator[object]) -> None:
    """Go over the kinds of a content. Raises Unpackable for others than its layout has."""
    kind = next(kinds, None)
    match layout:
        case TensorLayout() if type(kind) is type:
            return
        case TupleLayout(items):
            if kind in STRUCTURES:
                next(kinds)
            elif not isinstance(kind, tuple):
                raise Unpackable
            for item in items:
                _skip_content(item, kinds)
        case _:
            raise Unpackable


def _fits(content: Sequence[Any], cells: _Cells) -> bool:
    """True if a content has the dtypes and shapes that the program is for."""
    if len(content) != len(cells.leaves):
        return False
    for value, leaf in zip(content, cells.leaves, strict=True):
        if type(value) is np.ndarray:
            if value.dtype != leaf.dtype or value.shape != leaf.dims:
                return False
        elif leaf.dims or not (leaf.base.name == "bool" if type(value) is bool else holds(leaf.base, value)):
            return False
    return True


def _columns(context: _Context, cells: _Cells) -> list[np.ndarray]:
    """The memory of a pool, as an array for each leaf of a content. Kept until it moves or grows."""
    slot = cells.slot
    key = context.words[slot + 1 : slot + 2 + len(cells.leaves)].tobytes()
    known = context.columns.get(slot)
    if known is None or known[0] != key:
        known = context.columns[slot] = key, _cell_columns(context, cells)
    return known[1]


def _cell_columns(context: _Context, cells: _Cells) -> list[np.ndarray]:
    words, slot = context.words, cells.slot
    places = enumerate(cells.leaves, start=slot + 2)
    return [array_at(words[place], (words[slot + 1], *leaf.dims), leaf.dtype) for place, leaf in places]


def _give_back(context: _Context, passed: Mapping[int, _Passed]) -> None:
    """Let the references whose rows have changed hold what is there."""
    for cells, row, reference, content in passed.values():
        columns = _columns(context, cells)
        for column, value, leaf in zip(columns, content, cells.leaves, strict=True):
            if not _is_same_row(column[row], value, leaf):
                break
        else:
            continue
        arrays = [np.array(column[row]) for column in columns]
        type_ = cells.content
        is_array = isinstance(type_, TensorType)
        reference.value = Array(arrays[0]) if is_array else wrap(_nest_leaves(type_, iter(arrays)), type_)


def _is_same_row(held: Any, value: Any, leaf: _Leaf) -> bool:
    """True if a row equals a value, bit by bit. `held` is an array, or one of NumPy's numbers."""
    return same_bytes(held, value if type(value) is np.ndarray else np.array(value, leaf.dtype))


def _nest_leaves(type_: Type, arrays: Iterator[np.ndarray]) -> Any:
    return tuple(_nest_leaves(t, arrays) for t in type_.items) if isinstance(type_, TupleType) else next(arrays)


def _number(number: int) -> np.ndarray:
    return _ROWS[number] if number < len(_ROWS) else np.asarray(number, np.int64)


_ROWS = [np.asarray(row, np.int64) for row in range(64)]
