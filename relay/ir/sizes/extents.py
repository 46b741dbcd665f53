"""Extents of arguments from which the symbolic dims of a module are read.

Every symbolic dim of a finished module is the bare extent of some axis of a tensor among the entry's parameters, also
of one inside tuples and inside data with one constructor (so that finding it takes no case distinction).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import attrs

from relay.ir.dims import Dim, TypeId
from relay.ir.expr import Module
from relay.ir.types import DataDefinition, DataType, TensorType, TupleType, Type


@attrs.frozen
class Place:
    """An axis of a tensor: that of parameter number `parameter`, or inside it at components (of tuples) and fields (of
    data) with the numbers in `path`."""

    parameter: int
    path: tuple[int, ...]
    axis: int


def places(parameters: Sequence[Type], *, numbers: bool = False) -> Iterator[tuple[Place, Dim]]:
    """The axes that are not numbers, with what they are, in order; with `numbers`, all axes."""
    for position, type_ in enumerate(parameters):
        for place, dim in _places(type_, position, (), ()):
            if numbers or not isinstance(dim, int):
                yield place, dim


def _places(
    type_: Type, parameter: int, path: tuple[int, ...], inside: tuple[DataDefinition, ...]
) -> Iterator[tuple[Place, Dim]]:
    match type_:
        case TensorType(_, shape):
            for axis, dim in enumerate(shape):
                yield Place(parameter, path, axis), dim
        case TupleType(items):
            for index, item in enumerate(items):
                yield from _places(item, parameter, (*path, index), inside)
        case DataType(definition) if len(definition.constructors) == 1 and definition not in inside:
            for index, item in enumerate(definition.constructors[0].fields):
                yield from _places(item, parameter, (*path, index), (*inside, definition))
        case _:
            pass


def extents(parameters: Sequence[Type]) -> dict[TypeId, Place]:
    """The symbolic dims that are bare extents, each with the first axis that shows it."""
    found: dict[TypeId, Place] = {}
    for place, dim in places(parameters):
        if isinstance(dim, TypeId):
            found.setdefault(dim, place)
    return found


def symbolic_dims(module: Module) -> dict[TypeId, Place]:
    """The symbolic dims of a module, in the order of its entry's parameters, each with the axis that shows it."""
    return extents(module.functions[module.entry].type.parameters)
