"""Abstract values as values of the typed IR."""

from __future__ import annotations

from relay.errors import Span
from relay.ir.expr import MakeTuple
from relay.ir.types import NONE, TupleType
from relay.typecheck.elaboration.abstract_values import (
    AbstractValue,
    DependsOnPoison,
    DynamicValue,
    Number,
    Poison,
    PythonObject,
    Text,
    Tuple,
    TypedBlockBuilder,
)
from relay.typecheck.elaboration.checker import Checker
from relay.typecheck.elaboration.expressions import weak_types
from relay.typecheck.elaboration.values import texts
from relay.typecheck.elaboration.values.function_values import function_value
from relay.typecheck.elaboration.values.labels import as_number, is_member


def materialize(checker: Checker, out: TypedBlockBuilder, entity: AbstractValue, span: Span | None) -> DynamicValue:
    """The entity as a value of the typed IR. Raises TypeCheckError for what has no value."""
    match entity:
        case DynamicValue():
            return weak_types.loosen_base(checker, out, entity)
        case Number():
            return checker.constant(out, entity)
        case Tuple(items, form):
            parts = [materialize(checker, out, weak_types.free_count(checker, out, item), span) for item in items]
            type_ = TupleType(tuple(p.type for p in parts), form)
            return checker.bind(out, MakeTuple(tuple(p.atom for p in parts), span), type_, "tuple", span)
        case PythonObject(None):
            return checker.bind(out, MakeTuple((), span), NONE, "none", span)
        case PythonObject(str()) | Text():
            return texts.string(checker, out, entity, span)
        case PythonObject() if is_member(entity):
            return materialize(checker, out, as_number(entity, span), span)
        case Poison():
            raise DependsOnPoison
        case _:
            return function_value(checker, out, entity, span)
