"""Annotations at an instance: written types, with this instance's types for their variables."""

from __future__ import annotations

from relay.errors import Span
from relay.ir.types import (
    ANY,
    PYTHON_FLOAT,
    BaseClass,
    FunctionType,
    Kind,
    QuantifiedType,
    TensorType,
    Type,
    Unknown,
    map_dims,
    map_type_parts,
    type_variables,
    unknown_of,
)
from relay.operator.relation import substitute
from relay.typecheck.elaboration.abstract_values import Context
from relay.typecheck.elaboration.checker import Checker
from relay.typecheck.elaboration.values import axis_names, data


def annotation_type(
    checker: Checker,
    context: Context,
    type_: Type,
    *,
    any_stays: bool = False,
    what: str = "this function",
    span: Span | None = None,
    call: Span | None = None,
) -> Type:
    """A written type with its variables replaced by this instance's. Each `Any` is whatever it is here, unless it
    stays, and `float` is a float of the dtype that it has here."""
    if not checker.generic:
        type_ = _with_any_float(type_)
    for variable in type_variables(type_):
        if variable not in context.annotated:
            context.annotated[variable] = unknown_of(variable)
    written = type_ if any_stays else map_dims(type_, lambda d: _any_type(checker) if d is ANY else d)
    filled = data.fill(checker, substitute(written, context.annotated))
    return checker.with_effects(axis_names.open_axis_names(filled, checker.solver), None, what, span, call)


def _with_any_float(type_: Type) -> Type:
    """The type with each `float` a scalar of some float dtype. In a function's type it says at which one to make it."""
    if type_ is PYTHON_FLOAT:
        return TensorType(Unknown(Kind.BaseType, "float", classes=frozenset({BaseClass.FLOAT})), ())
    is_whole = isinstance(type_, FunctionType | QuantifiedType)
    return type_ if is_whole else map_type_parts(type_, _with_any_float)


def _any_type(checker: Checker) -> Unknown:
    return checker.solver.fresh_variable(Kind.Dim, "_" if checker.generic else "Any")
