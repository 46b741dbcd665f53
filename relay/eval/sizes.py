"""The sizes of a module's symbolic dims in one call: read off the arguments, checked, and put in place of the dims."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from relay.errors import ExecutionError
from relay.eval.values import Box, Data, primal
from relay.ir.dims import ANY, DataDependentDim, Dim, DimExpr, TypeId, evaluate, variables
from relay.ir.expr import AttributeValue, Function, Module
from relay.ir.sizes.extents import Place, places
from relay.ir.types import TensorType, Type


def sizes_of(module: Module, function: Function, arguments: Sequence[object]) -> dict[TypeId, int]:
    """The sizes that the arguments, of the right ranks, give to the dims of the function's parameters.

    Raises ExecutionError if two axes of the same dim differ, or the sizes are not what the module assumes.
    """
    types = [p.type for p in function.parameters if p.type is not None]
    found: dict[TypeId, tuple[int, Place]] = {}
    axes = list(places(types))
    for place, dim in axes:
        if isinstance(dim, TypeId):
            found.setdefault(dim, (_extent(arguments, place), place))
    sizes = {dim: size for dim, (size, _) in found.items()}
    for place, dim in axes:
        if dim is ANY:
            continue
        size, wanted = _extent(arguments, place), evaluate(dim, sizes)
        if size != wanted:
            where = _name(function, place)
            shown = f"{dim} = {wanted}" if isinstance(dim, DimExpr) else f"{dim}"
            first = f", which is {wanted} in {_name(function, found[dim][1])}" if isinstance(dim, TypeId) else ""
            raise ExecutionError(
                f"{where} must be {shown}{first}; found {size}", function.parameters[place.parameter].span
            )
    for constraint in module.where:
        left, right = evaluate(constraint.left, sizes), evaluate(constraint.right, sizes)
        if not constraint.holds(left, right):
            because = f": {constraint.reason}" if constraint.reason else ""
            values = ", ".join(f"{dim} = {size}" for dim, size in sizes.items())
            raise ExecutionError(f"{function.name} needs {constraint}{because}; found {values}", constraint.span)
    return sizes


def _name(function: Function, place: Place) -> str:
    inside = "".join(f"[{index}]" for index in place.path)
    return f"axis {place.axis} of {function.parameters[place.parameter].name}{inside}"


def _extent(arguments: Sequence[object], place: Place) -> int:
    value = arguments[place.parameter]
    for index in place.path:
        parts = value.fields if isinstance(value, Data) else value
        assert isinstance(parts, tuple)
        value = parts[index]
    assert isinstance(value, np.ndarray | Box)
    return int(primal(value).shape[place.axis])


def with_sizes(type_: Type, sizes: Mapping[TypeId, int]) -> Type:
    """A tensor type with numbers for symbolic dims; others as they are."""
    if not isinstance(type_, TensorType) or all(isinstance(d, int) for d in type_.shape):
        return type_
    return TensorType(type_.base, tuple(_number(d, sizes) for d in type_.shape))


def _number(dim: Dim, sizes: Mapping[TypeId, int]) -> Dim:
    return dim if dim is ANY else evaluate(dim, sizes)


def attribute_with_sizes(value: AttributeValue, sizes: Mapping[TypeId, int]) -> AttributeValue:
    """The value of an attribute with numbers for symbolic dims."""
    match value:
        case TypeId() | DimExpr():
            return evaluate(value, sizes)
        case tuple():
            return tuple(attribute_with_sizes(v, sizes) for v in value)
        case _:
            return value


def made_in_attributes(values: Iterable[AttributeValue]) -> Iterator[DataDependentDim]:
    """The data-dependent sizes which attributes mention, each perhaps several times."""
    for value in values:
        match value:
            case TypeId() | DimExpr():
                yield from (v for v in variables(value) if isinstance(v, DataDependentDim))
            case tuple():
                yield from made_in_attributes(value)
            case _:
                pass


def mentions_dims(values: Iterable[AttributeValue]) -> bool:
    """True if attributes contain symbolic dims."""
    return any(
        isinstance(value, TypeId | DimExpr) or (isinstance(value, tuple) and mentions_dims(value)) for value in values
    )
