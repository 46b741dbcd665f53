"""Literals in patterns: what they compare with, and the rows that fit each of them."""

from __future__ import annotations

import enum
from collections.abc import Sequence

from relay.errors import Span, TypeCheckError
from relay.ir.expr import Constant
from relay.ir.surface import (
    ValuePattern,
)
from relay.ir.types import NONE, Kind, Unknown, prune, scalar, show
from relay.typecheck.elaboration.abstract_values import (
    AbstractValue,
    Context,
    DynamicValue,
    Number,
    PythonNumber,
    PythonObject,
    Tuple,
    TypedBlockBuilder,
)
from relay.typecheck.elaboration.checker import Checker
from relay.typecheck.elaboration.expressions.atoms import atom_entity
from relay.typecheck.elaboration.expressions.conditions import require_bool
from relay.typecheck.elaboration.patterns.pattern_rows import (
    Occurrence,
    Row,
)
from relay.typecheck.elaboration.values import data
from relay.typecheck.unification import resolve


def describe_value(entity: AbstractValue) -> str:
    """The name of a matched value in messages."""
    match entity:
        case DynamicValue(_, type_):
            return show(resolve(type_))
        case Number():
            return repr(entity.specialize())
        case PythonObject(value):
            return repr(value)
        case Tuple():
            return "a tuple"
        case _:
            return "a function"


def is_something(entity: AbstractValue) -> bool:
    """True if a value is known not to be None, as `is None` decides it."""
    if isinstance(entity, Tuple):
        return True
    type_ = prune(entity.type) if isinstance(entity, DynamicValue) else None
    return type_ is not None and not isinstance(type_, Unknown) and type_ != NONE


def literal_of(context: Context, pattern: ValuePattern) -> bool | int | float | str | enum.Enum | None:
    """The literal that a pattern compares with. Raises TypeCheckError for anything else."""
    entity = atom_entity(context, pattern.value)
    match entity:
        case Number():
            return entity.specialize()
        case PythonObject(None):
            return None
        case PythonObject(str() as text):
            return text
        case PythonObject(enum.Enum() as member):
            return int(member) if isinstance(member, int) else member
        case DynamicValue(Constant(value)) if value.ndim == 0:
            return value.item()  # type: ignore[no-any-return]
        case PythonObject(value) if data.is_data_class(value):
            raise TypeCheckError(
                f"the pattern names the class {getattr(value, '__name__', value)}",
                pattern.span,
                help="write it with `()`",
            )
        case _:
            raise TypeCheckError(
                "a pattern compares with a literal or a global number", pattern.span, help="use a guard"
            )


def rows_by_literal(
    literals: Sequence[tuple[Row, object]], occurrence: Occurrence
) -> tuple[list[tuple[tuple[bool, object], list[Row]]], list[Row]]:
    """For each literal, whether it is a bool, its value and the rows that fit it; and the rows that fit all others.
    `literals`: each row with what it compares with, None for any value."""
    groups: dict[tuple[bool, object], list[Row]] = {}
    equal: dict[object, list[list[Row]]] = {}  # the groups of a literal: True is 1, too
    for _, literal in literals:
        key = isinstance(literal, bool), literal
        if literal is not None and key not in groups:
            groups[key] = []
            equal.setdefault(literal, []).append(groups[key])
    others: list[Row] = []
    for row, literal in literals:
        if literal is None:
            for group in (others, *groups.values()):
                group.append(row)
        else:
            for group in equal[literal]:
                group.append(row.replace_pattern(occurrence, ()))
    return list(groups.items()), others


def equals_literal(
    checker: Checker, typed: DynamicValue, is_bool: bool, literal: object, out: TypedBlockBuilder, span: Span | None
) -> DynamicValue:
    """A bool: a value equals a literal; an `is_bool` value is compared as a boolean."""
    if is_bool:
        condition = require_bool(checker, out, typed, span, "the matched value")
        if literal:
            return condition
        entity = checker.engine.apply_operator(checker, out, "logical_not", [condition], {}, span, [])
    elif isinstance(literal, str):
        known = PythonObject(literal)
        entity = checker.engine.apply_operator(checker, out, "equal", [typed, known], {}, span, [])
    else:
        assert isinstance(literal, int | float)
        checker.unify_at(
            typed.type,
            scalar(checker.solver.fresh_variable(Kind.BaseType)),
            span,
            "the matched value",
            help="use a guard",
        )
        entity = checker.engine.apply_operator(
            checker, out, "equal", [typed, PythonNumber(literal, span)], {}, span, []
        )
    assert isinstance(entity, DynamicValue)
    return entity
