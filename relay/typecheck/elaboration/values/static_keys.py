"""Keys of static values, by which instances of functions are found."""

from __future__ import annotations

from relay.ir.dims import resolve_dim
from relay.ir.expr import (
    Constant,
)
from relay.typecheck.elaboration.abstract_values import (
    AbstractValue,
    DerivativeFunction,
    DynamicValue,
    GlobalFunction,
    Identity,
    PythonNumber,
    PythonObject,
    Size,
    SizeExpression,
    Tuple,
)


def static_key(entity: AbstractValue) -> object:
    """The key of a static entity."""
    match entity:
        case PythonObject(value):
            try:
                hash(value)
            except TypeError:
                return ("object", Identity(value))
            return ("object", type(value).__name__, value)
        case Size(dim):
            return ("size", resolve_dim(dim))
        case SizeExpression(operator=operator, operands=operands):
            return ("computed", operator, *(static_key(o) for o in operands))
        case PythonNumber(value):
            return ("number", type(value).__name__, value)
        case GlobalFunction(definition):
            return ("function", Identity(definition))
        case Tuple(items):
            return ("tuple", *(static_key(i) for i in items))
        case DerivativeFunction(of, grad):
            return ("grad", static_key(of), *grad.options)
        case DynamicValue(Constant(value)) if value.ndim == 0:
            return ("constant", value.dtype.name, value.item())
        case DynamicValue(atom, _):
            return ("atom", Identity(atom))
        case _:
            return ("entity", Identity(entity))
