"""Types and names of attributes of tensors."""

from __future__ import annotations

import numpy as np

from relay.ir.dims import ANY, Dim
from relay.ir.types import TensorType, axis_names, prune
from relay.operator import get_env, resolve_name
from relay.typecheck.elaboration.abstract_values import (
    DynamicValue,
)
from relay.typecheck.elaboration.library import overloads
from relay.typecheck.unification import flat_shape, is_known, shape_variable


def tensor_type(typed: DynamicValue) -> TensorType | None:
    """The type of a tensor whose rank is known, or None."""
    type_ = prune(typed.type)
    if not isinstance(type_, TensorType):
        return None
    shape = flat_shape(type_.shape)
    return None if shape_variable(shape) is not None else TensorType(prune(type_.base), shape, axis_names(type_))  # type: ignore[arg-type]


def is_attribute(name: str) -> bool:
    """True if tensors have an attribute or a method of this name."""
    return bool(overloads.method(np.ndarray, name)) or resolve_name(name) is not None


def attribute_names() -> list[str]:
    """The names of attributes and methods that tensors have."""
    return [*overloads.members(np.ndarray), *get_env().names()]


def is_sized(dim: Dim) -> bool:
    """True if a dim has arithmetic: it is a number or symbolic, and not open."""
    return dim is not ANY and is_known((dim,))


LIST_METHODS = {
    "append": "as an expression, make a new list: `[*xs, v]`",
    "extend": "as an expression, make a new list: `[*xs, *ys]`",
    "insert": "as an expression, make a new list: `[*xs[:i], v, *xs[i:]]`",
    "clear": "as an expression, make a new list: `[]`",
    "reverse": "as an expression, make a new list: `xs[::-1]`",
    "remove": "write it as a statement",
    "sort": "as an expression, make a new list: `sorted(xs)`",
}
"""The replacements for methods of Python's lists."""
