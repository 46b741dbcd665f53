"""Function types as te placeholders."""

from __future__ import annotations

from typing import Any

from relay.errors import TypeMismatch
from relay.ir.types import FunctionType, QuantifiedType, TensorType, Type


def func_ty_to_placeholders(func_ty: FunctionType | QuantifiedType) -> tuple[list[Any], Type]:
    """One te placeholder for each input of a function type without variables, and the result type.

    Raises TypeMismatch for inputs that are not tensors of known shape.
    """
    from tvm import te

    if isinstance(func_ty, QuantifiedType):
        raise TypeMismatch(f"{func_ty} has variables; an operator's compiler gets the type at the call's shapes")
    placeholders = []
    for position, type_ in enumerate(func_ty.parameters):
        if not isinstance(type_, TensorType):
            raise TypeMismatch(f"input {position} of {func_ty} is not a tensor")
        placeholders.append(te.placeholder(type_.dims, str(type_.base), name=f"x{position + 1}"))
    return placeholders, func_ty.result
