"""Type mapping: a type rebuilt with its tensor and function parts replaced."""

from __future__ import annotations

from collections.abc import Callable

import attrs

from relay.ir.types import FunctionType, TensorType, Type, map_type_parts


def _same_function(type_: FunctionType) -> FunctionType:
    return type_


def _same_tensor(type_: TensorType) -> TensorType:
    return type_


def erase_names_and_effects(type_: Type) -> Type:
    """The type as finished modules have it: without names of axes and effects."""
    return map_type(type_, lambda t: attrs.evolve(t, axes=None), lambda f: attrs.evolve(f, effects=None))


def map_type(
    type_: Type,
    tensor: Callable[[TensorType], TensorType] = _same_tensor,
    function: Callable[[FunctionType], FunctionType] = _same_function,
) -> Type:
    """The type with other tensor types and, after their parts, other function types in it."""

    def map_part(part: Type) -> Type:
        return map_type(part, tensor, function)

    match type_:
        case TensorType():
            return tensor(type_)
        case FunctionType(parameters, result):
            return function(attrs.evolve(type_, parameters=tuple(map(map_part, parameters)), result=map_part(result)))
        case _:
            return map_type_parts(type_, map_part)
