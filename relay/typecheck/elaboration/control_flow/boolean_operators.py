"""`and` and `or`, which give one of their operands, as in Python, or its truth where only that matters.

Both are an If (`lower_boolean` of the front end). The operands may differ in type:

    two bools                a bool
    two numbers of a dtype   the one that Python gives
    a number and a bool      the one that Python gives, as a number: False is 0, and True is 1
    other structures         the one that Python gives, of their common type
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import numpy as np

from relay.errors import RelayError, Span, TypeMismatch
from relay.ir.expr import Block, Constant, If, Static, Var, Yield
from relay.ir.types import BOOL, INT32, BaseType, TensorType, Unknown, prune
from relay.typecheck.elaboration.abstract_values import (
    AbstractValue,
    Context,
    DynamicValue,
    PythonNumber,
    Tuple,
    TypedBlockBuilder,
    is_constant_bool,
)
from relay.typecheck.elaboration.checker import Checker
from relay.typecheck.elaboration.control_flow.optionals import is_none
from relay.typecheck.elaboration.diagnostics.mistakes import display_type
from relay.typecheck.elaboration.dynamic_lists import dynamic_lists
from relay.typecheck.elaboration.expressions import conditions, dtype_promotion
from relay.typecheck.elaboration.expressions.conditions import is_number
from relay.typecheck.elaboration.values.data import is_text


@attrs.frozen
class BooleanOperator:
    """`a and b` or `a or b`, of which `first` is a's value. `decides` tells the arm in which a is the result."""

    of_truth: bool
    first: AbstractValue | None
    decides: Block | None
    is_and: bool
    name: str = "x"

    def arrivals(self, arm: Block, entities: tuple[AbstractValue, ...], span: Span | None) -> tuple[AbstractValue, ...]:
        """The values that an arm hands on: where a bool decides, it is known."""
        if arm is not self.decides or not is_bool(entities[0]):
            return entities
        return (_constant(not self.is_and, span), *entities[1:])


def boolean_operator(context: Context, node: If) -> BooleanOperator | None:
    """The `and` or `or` that an If is, or None: in one arm the first operand decides, and is the result."""
    first = node.arms[0]
    condition = first.condition.terminator
    if not isinstance(condition, Yield):
        return None
    for arm in (first.body, node.orelse):
        end = arm.terminator
        if not isinstance(end, Yield) or not end.values or arm.bindings:
            continue
        value = end.values[0]
        if isinstance(value, Constant) and value.span is not None and value.span == condition.span:
            return BooleanOperator(True, None, None, arm is node.orelse)
        is_operand = value is condition.values[0] and isinstance(value, Var | Static | Constant)
        is_operand = is_operand and end.span == condition.span  # `x if x else y` is written by the program
        if is_operand and len(node.arms) == 1 and not first.condition.bindings:
            entity = context.lookup(value) if isinstance(value, Var) else None
            name = value.name if isinstance(value, Var) else "x"
            return BooleanOperator(False, entity, arm, arm is node.orelse, name)
    return None


def operands(
    checker: Checker,
    operator: BooleanOperator,
    entities: Sequence[AbstractValue],
    outs: Sequence[TypedBlockBuilder],
    spans: Sequence[Span | None],
) -> list[AbstractValue]:
    """The values that meet, of one type where they have one. Raises TypeMismatch where none has Python's value."""
    if operator.of_truth:
        return [_truth(checker, out, e, span) for e, out, span in zip(entities, outs, spans, strict=True)]
    if len(entities) != 2 or any(map(checker.is_open, entities)):
        return list(entities)
    numbers, bools = [is_number(e) for e in entities], [is_bool(e) for e in entities]
    if all(bools) or not any(bools):
        return list(entities)
    position = bools.index(True)
    if numbers[1 - position]:
        found = list(entities)
        found[position] = _as_number(checker, outs[position], entities[position], entities[1 - position])
        return found
    if operator.first is not None and _has_truth(operator.first):
        raise _one_of_two(operator, entities, spans)
    return list(entities)


def _truth(checker: Checker, out: TypedBlockBuilder, entity: AbstractValue, span: Span | None) -> AbstractValue:
    if is_bool(entity) or checker.is_open(entity):
        return entity
    try:
        return conditions.require_bool(checker, out, entity, span, "a condition")
    except RelayError:
        return entity  # the operands are compared with bool where they meet, and the error is about both


def _as_number(checker: Checker, out: TypedBlockBuilder, entity: AbstractValue, other: AbstractValue) -> AbstractValue:
    truth = is_constant_bool(entity)
    if truth is not None:
        return PythonNumber(int(truth), getattr(getattr(entity, "atom", None), "span", None))
    assert isinstance(entity, DynamicValue)
    base = prune(other.type).base if isinstance(other, DynamicValue) else INT32  # type: ignore[union-attr]
    number = prune(base)
    assert isinstance(number, BaseType | Unknown)
    return dtype_promotion.convert(checker, out, entity, number, entity.atom.span)


def is_bool(entity: AbstractValue) -> bool:
    """True if a value is a bool."""
    if is_none(entity):
        return False
    if is_constant_bool(entity) is not None:
        return True
    type_ = prune(entity.type) if isinstance(entity, DynamicValue) else None
    return isinstance(type_, TensorType) and type_.shape == () and prune(type_.base) == BOOL


def _has_truth(entity: AbstractValue) -> bool:
    return is_text(entity) or isinstance(entity, Tuple) or dynamic_lists.is_growing(entity)


def _constant(value: bool, span: Span | None) -> DynamicValue:
    constant = Constant(np.asarray(value), span)
    return DynamicValue(constant, constant.type, value)


def _one_of_two(
    operator: BooleanOperator, entities: Sequence[AbstractValue], spans: Sequence[Span | None]
) -> TypeMismatch:
    """The error of a list or text, of which Python gives itself or a bool."""
    first = operator.first
    assert first is not None
    kind = "a string" if is_text(first) else "a list" if dynamic_lists.is_growing(first) else "a structure"
    shown, name = ("and", "or")[not operator.is_and], operator.name
    test = f"len({name}) > 0" if kind != "a structure" else f"bool({name})"
    place = next((s for e, s in zip(entities, spans, strict=True) if not is_bool(e)), spans[0])
    return TypeMismatch(
        f"the value of this `{shown}` is {kind} or a bool, which have no common type",
        place,
        help=f"for a condition write `{test} {shown} ..`",
    )


def two_dtypes(
    operator: BooleanOperator, values: Sequence[DynamicValue], places: Sequence[Span | None]
) -> TypeMismatch:
    """The error of two numbers of different dtypes, of which the run chooses one."""
    shown = "and" if operator.is_and else "or"
    one, other = (display_type(value.type) for value in values)
    return TypeMismatch(
        f"the value of this `{shown}` is {one} or {other}: one of its operands, as the run decides",
        places[0],
        help="convert one to the dtype of the other, as float(n) does; or compare, for a condition: `n != 0`",
    )
