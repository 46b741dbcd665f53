"""Attributes of operators: Python values that are known before the program runs."""

from __future__ import annotations

import numpy as np

from relay.errors import Span, TypeMismatch
from relay.ir.expr import Constant
from relay.ir.types import (
    BaseType,
    DimExpr,
    Shape,
    TensorType,
    TypeId,
    Unknown,
    base_of_dtype,
    prune,
    show,
)
from relay.typecheck.dims import is_dim
from relay.typecheck.elaboration.entities import (
    Entity,
    Number,
    Object,
    Size,
    Text,
    Tuple,
    Typed,
    is_constant_bool,
)
from relay.typecheck.elaboration.mistakes import SchemeOnly
from relay.typecheck.unification import flat_shape, resolve, shape_variable


def open_shape(shape: Shape) -> bool:
    """Whether nobody knows yet how many dims a shape has."""
    return shape_variable(flat_shape(shape)) is not None


_ATTRIBUTES = (bool, int, float, str, tuple, np.generic, BaseType, Unknown, TypeId, DimExpr)


def static_value(entity: Entity, name: str, span: Span | None, *, symbolic: bool = False) -> object:
    """The Python value of an attribute. `symbolic`: sizes in it may stay dims. Raises TypeMismatch if it is only known
    at run time."""
    match entity:
        case Size(dim) if symbolic:
            return prune(dim)
        case Number(value):
            return value
        case Object(value):
            found = dtype_of(value)
            if found is not None and not isinstance(found, _ATTRIBUTES):
                raise TypeMismatch(f"{name} cannot be {_described(value)}", span)
            return found
        case Tuple(items):
            return tuple(static_value(i, name, span, symbolic=symbolic) for i in items)
        case Typed():
            known = is_constant_bool(entity)
            if known is not None:
                return known
            if isinstance(entity.atom, Constant) and entity.atom.value.ndim == 0:
                return entity.atom.value.item()
            type_ = prune(entity.type)
            if isinstance(type_, Unknown) or (isinstance(type_, TensorType) and open_shape(type_.shape)):
                raise SchemeOnly(span, name)
            raise TypeMismatch(
                f"{name} must be known before the program runs, found a value of type {show(resolve(entity.type))}",
                span,
                help="an argument is known if its parameter is static: @relay(static_argnames=(..,)),"
                " or `# relay: static` on the parameter's line",
            ).needing_value()
        case Text():
            message = f"{name} must be known before the program runs, found a text with values of the run"
            raise TypeMismatch(message, span)
        case _:
            raise TypeMismatch(f"{name} cannot be a function", span)


def _described(value: object) -> str:
    """A Python object that is no attribute, for messages."""
    name = getattr(value, "__name__", None)
    kind = type(value).__name__
    return f"the {kind} {name}" if isinstance(name, str) else f"of the class {kind}"


def dtype_of(value: object) -> object:
    if isinstance(value, BaseType):
        return value
    if isinstance(value, np.dtype) or (isinstance(value, type) and issubclass(value, np.generic | bool)):
        return base_of_dtype(value)
    if value is float:
        return BaseType("float32")
    if value is int:
        return BaseType("int32")
    return value


def normalise_attribute(name: str, value: object) -> object:
    """Attributes in the one form that operators expect: shapes are tuples, dtypes base types. Raises TypeMismatch."""
    if isinstance(value, BaseType) and "dtype" not in name:
        raise TypeMismatch(f"{name} cannot be a dtype, {value}")
    if name == "shape" and is_dim(value):
        return (value,)
    if name == "dtype" and isinstance(value, str):
        try:
            return base_of_dtype(value)
        except TypeError:
            help = "write relay.Float32, relay.Int32, relay.Bool, or one of their kind"
            raise TypeMismatch(f"{value!r} is no dtype", help=help) from None
    return value
