"""The Python classes whose methods values have: those of tensors are methods of `np.ndarray`."""

from __future__ import annotations

import numpy as np

from relay.ir.annotations.annotation import Ref
from relay.ir.types import DataType, RefType, StackType, TensorType, TupleType, prune
from relay.typecheck.elaboration.abstract_values import AbstractValue, DynamicValue, PythonObject, Range, Text, Tuple
from relay.typecheck.elaboration.library import overloads
from relay.typecheck.elaboration.library.overloads import Overload
from relay.typecheck.elaboration.values.data import is_string


def python_class(value: AbstractValue) -> type | None:
    """The Python class of a value, as far as it is known; None for functions and data types."""
    match value:
        case PythonObject(content):
            return next((cls for cls in (str, frozenset) if isinstance(content, cls)), None)
        case DynamicValue():
            match prune(value.type):
                case TensorType():
                    return np.ndarray
                case DataType() if is_string(value):
                    return str
                case StackType():
                    return list
                case TupleType(_, form):
                    return tuple if form is None else form.cls
                case RefType():
                    return Ref
                case _:
                    return None
        case Tuple(_, form):
            return tuple if form is None else form.cls
        case Range():
            return range
        case Text():
            return str
        case _:
            return None


def method_overloads(value: AbstractValue, name: str) -> tuple[Overload, ...]:
    """The overloads in the table for a method of a value."""
    cls = python_class(value)
    return () if cls is None else overloads.method(cls, name)
