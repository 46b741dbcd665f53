"""Conditions: what `if`, `while`, `not` and `assert` take as a boolean."""

from __future__ import annotations

import numpy as np

from relay.errors import Span
from relay.ir.expr import (
    Constant,
)
from relay.ir.types import BOOL, TensorType, TupleType, Unknown, prune
from relay.typecheck.elaboration.abstract_values import (
    AbstractValue,
    DynamicValue,
    Number,
    PythonNumber,
    PythonObject,
    Tuple,
    TypedBlockBuilder,
)
from relay.typecheck.elaboration.checker import Checker
from relay.typecheck.elaboration.control_flow import optionals
from relay.typecheck.elaboration.dynamic_lists import dynamic_lists, list_positions
from relay.typecheck.elaboration.expressions import operators
from relay.typecheck.elaboration.values import data, records, special_methods, texts
from relay.typecheck.elaboration.values.expansion import expand
from relay.typecheck.unification import resolve


def require_bool(
    checker: Checker, out: TypedBlockBuilder, entity: AbstractValue, span: Span | None, what: str
) -> DynamicValue:
    """The entity as a rank-0 bool. Raises TypeMismatch."""
    if isinstance(entity, PythonObject) and isinstance(entity.value, bool):
        constant = Constant(np.asarray(entity.value), span)
        return DynamicValue(constant, constant.type, entity.value)
    if isinstance(entity, PythonObject) and isinstance(entity.value, str | frozenset):
        return operators.bool_value(bool(entity.value), span)
    if optionals.is_none(entity):
        return operators.bool_value(False, span)
    entity = optionals.content(checker, out, entity, what, span)
    if isinstance(entity, DynamicValue) and isinstance(prune(entity.type), TupleType):
        entity = expand(checker, out, entity, span)
    operands: list[AbstractValue]
    if isinstance(entity, Tuple) or data.data_type(entity) is not None:
        if (own := special_methods.call(checker, out, "__bool__", entity, (), span)) is not None:
            return require_bool(checker, out, own, span, what)
        if (length := special_methods.call(checker, out, "__len__", entity, (), span)) is not None:
            operands = [length, PythonNumber(0, span)]
            entity = checker.engine.apply_operator(checker, out, "not_equal", operands, {}, span, [])
        elif isinstance(entity, Tuple):  # Python's objects are true
            return operators.bool_value(len(entity.items) > 0 or not records.is_sequence(entity), span)
    if data.is_string_of_run(entity):
        operands = [texts.length(checker, out, entity, span), PythonNumber(0, span)]
        entity = checker.engine.apply_operator(checker, out, "not_equal", operands, {}, span, [])
    if isinstance(entity, DynamicValue) and dynamic_lists.is_growing(entity):
        entity = list_positions.is_not_empty(checker, out, entity, span)
    if isinstance(entity, PythonNumber):
        return operators.bool_value(bool(entity.value), span)
    if is_number(entity):
        operands = [entity, PythonNumber(0, span)]
        entity = checker.engine.apply_operator(checker, out, "not_equal", operands, {}, span, [])
    typed = checker.materialize(out, entity, span)
    found = resolve(typed.type)
    is_mask = isinstance(found, TensorType) and found.base == BOOL
    help = "compare with something: `x > 0`; or reduce: relay.any(x)"
    if is_mask:
        help = "reduce: relay.any(x), relay.all(x); elementwise, `and` and `or` are `(x > 0) & (y > 0)` and `|`"
    checker.unify_at(typed.type, TensorType(BOOL, ()), span, what, help=help)
    return typed


def is_number(entity: AbstractValue) -> bool:
    """True if a value is a number, and no bool."""
    if isinstance(entity, Number):
        return True
    type_ = prune(entity.type) if isinstance(entity, DynamicValue) else None
    if not isinstance(type_, TensorType) or type_.shape != ():
        return False
    base = prune(type_.base)
    return bool(base.literals) if isinstance(base, Unknown) else base != BOOL
