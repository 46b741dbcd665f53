"""Calls of programs with values of data types that are like earlier calls: what is passed goes straight into pools."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from relay.calling.data_marshalling import PoolFiller, Unpackable, is_list_of_rows
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
from relay.ir.types import INT64, BaseType, DataDefinition

if TYPE_CHECKING:
    from relay.codegen.runtime.cpu import Program

ROWS = "rows"
"""The mark of a recursive value in the kinds of arguments, followed by its data type."""

LIST_OF_ROWS = "list of rows"
"""The mark of a list of recursive values whose length does not matter, followed by their data type. Its leaf is the
list."""


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
        native = program.native  # which only changes the lists of values that it returns
        self._packing = PoolFiller(list(native.inputs), classes, changes_lists=_holds_data(native.result))
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
                if kind != LIST_OF_ROWS or not is_list_of_rows(pool):
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


def _holds_data(layout: Layout) -> bool:
    """True if there are values of data types, or lists, in a structure."""
    if isinstance(layout, TupleLayout):
        return any(map(_holds_data, layout.items))
    return isinstance(layout, DataLayout | RowLayout | StackLayout)
