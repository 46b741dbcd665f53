"""Conditions: what `if`, `while`, `not` and `assert` take as a boolean."""

from __future__ import annotations

import numpy as np

from relay.errors import Span
from relay.ir.definition import data_class
from relay.ir.expr import Atom, Constant
from relay.ir.types import BOOL, BaseClass, FunctionType, TensorType, TupleType, Unknown, prune
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
from relay.typecheck.unification import flat_shape, is_known, resolve, shape_variable


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
    if isinstance(entity, DynamicValue) and optionals.may_be_none(entity):
        return _truth_of_optional(checker, out, entity, span, what)
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
    _settle_shape(checker, entity, span, what)
    if is_number(entity):
        operands = [entity, PythonNumber(0, span)]
        entity = checker.engine.apply_operator(checker, out, "not_equal", operands, {}, span, [])
    typed = checker.materialize(out, entity, span)
    if is_stuck(checker, typed):
        return checker.constant_bool(span)  # a call decides its type
    found = resolve(typed.type)
    is_mask = isinstance(found, TensorType) and found.base == BOOL
    help = "compare with something: `x > 0`; or reduce: relay.any(x)"
    if is_mask:
        help = "reduce: relay.any(x), relay.all(x); elementwise, `and` and `or` are `(x > 0) & (y > 0)` and `|`"
    checker.unify_at(typed.type, TensorType(BOOL, ()), span, what, help=help)
    return typed


def _truth_of_optional(
    checker: Checker, out: TypedBlockBuilder, entity: DynamicValue, span: Span | None, what: str
) -> DynamicValue:
    """False where an optional value is None, and otherwise the truth of its content; that of Python's objects is
    true."""
    place = TypedBlockBuilder()

    def truth(content: DynamicValue) -> Atom:
        found = expand(checker, place, content, span)
        is_open = checker.generic and not is_known(content.type)  # a call decides its type
        if is_open or _is_plain_object(found):
            return Constant(np.asarray(True), span)
        return require_bool(checker, place, found, span, what).atom

    return optionals.on_content(checker, out, place, entity, truth, span)


def _is_plain_object(entity: AbstractValue) -> bool:
    """True for functions and values of data types whose classes do not define their truth."""
    type_ = data.data_type(entity)
    if type_ is None or data.is_string_of_run(entity):
        return isinstance(entity, DynamicValue) and isinstance(prune(entity.type), FunctionType)
    owner = data_class(type_.definition)
    return owner is None or not any(method in owner.methods for method in ("__bool__", "__len__"))


def is_number(entity: AbstractValue) -> bool:
    """True if a value is a number, and no bool."""
    if isinstance(entity, Number):
        return True
    type_ = prune(entity.type) if isinstance(entity, DynamicValue) else None
    return isinstance(type_, TensorType) and flat_shape(type_.shape) == () and _is_of_numbers(type_)


def is_stuck(checker: Checker, entity: AbstractValue) -> bool:
    """True if a value of a scheme has a type that a call's types decide."""
    if not checker.generic or not isinstance(entity, DynamicValue):
        return False
    return any(prune(term.value) is prune(entity.type) for term in checker.scheme.opened)  # type: ignore[arg-type]


def _settle_shape(checker: Checker, entity: AbstractValue, span: Span | None, what: str) -> None:
    """Numbers of which uses decide how many there are, as those of a scheme's parameters, are one in a condition."""
    type_ = prune(entity.type) if isinstance(entity, DynamicValue) else None
    if isinstance(type_, TensorType) and _is_of_numbers(type_) and shape_variable(flat_shape(type_.shape)) is not None:
        checker.unify_at(type_, TensorType(type_.base, ()), span, what)


def _is_of_numbers(type_: TensorType) -> bool:
    base = prune(type_.base)
    if not isinstance(base, Unknown):
        return base != BOOL
    return bool(base.literals) or (base.classes is not None and BaseClass.BOOL not in base.classes)
