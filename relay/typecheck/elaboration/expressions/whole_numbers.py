"""Scalars as integers, as `int(x)`, `round(x)` and `math.floor(x)` make them."""

from __future__ import annotations

from relay.errors import Span
from relay.ir.types import (
    BOOL,
    INT8,
    INT16,
    INT32,
    INT64,
    UINT8,
    UINT16,
    UINT32,
    UINT64,
    Base,
    BaseClass,
    BaseType,
    Kind,
    TensorType,
    Unknown,
    prune,
)
from relay.operator import lookup
from relay.typecheck.elaboration.abstract_values import AbstractValue, DynamicValue, TypedBlockBuilder
from relay.typecheck.elaboration.checker import Checker
from relay.typecheck.elaboration.expressions import operators
from relay.typecheck.elaboration.values import range_numbers


def is_integer(base: Base) -> bool:
    """True if a base type is, or will become, one of integers: that of a Python integer."""
    known = prune(base)
    return (
        known.weak
        if isinstance(known, Unknown)
        else (isinstance(known, BaseType) and known.base_class is BaseClass.INTEGER)
    )


def whole_number(
    checker: Checker, out: TypedBlockBuilder, entity: AbstractValue, span: Span | None, name: str
) -> AbstractValue:
    """A scalar without its fraction as an integer: int32, or int64 of an integer that may need it. A float that int32
    does not have fails at run time. `name` is the function's, for the error."""
    typed = checker.materialize(out, entity, span)
    checker.unify_at(
        typed.type, TensorType(checker.solver.fresh_variable(Kind.BaseType), ()), span, f"the argument of {name}"
    )
    type_ = prune(typed.type)
    assert isinstance(type_, TensorType)
    base = prune(type_.base)
    if base in (INT32, INT64) or (isinstance(base, Unknown) and base.weak):
        return range_numbers.of_range(typed)
    is_wide = base in (UINT32, UINT64)
    operator = "cast" if base in (BOOL, INT8, INT16, UINT8, UINT16, UINT32) else "to_integer"
    found = INT64 if is_wide else INT32
    made = operators.apply(checker, out, lookup(operator), [typed], {"dtype": found}, span, [])
    return range_numbers.of_range(made) if isinstance(made, DynamicValue) else made
