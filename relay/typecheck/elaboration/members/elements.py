"""The elements of what can be iterated over, one by one."""

from __future__ import annotations

from relay.errors import Span
from relay.ir.structure import ordered_keys
from relay.typecheck.elaboration.abstract_values import (
    AbstractValue,
    DynamicValue,
    Number,
    PythonNumber,
    PythonObject,
    Range,
    Tuple,
    TypedBlockBuilder,
    Zip,
)
from relay.typecheck.elaboration.checker import Checker
from relay.typecheck.elaboration.diagnostics.mistakes import refuse_many
from relay.typecheck.elaboration.dynamic_lists import dynamic_lists, list_reductions
from relay.typecheck.elaboration.members.subscripts import index
from relay.typecheck.elaboration.values import records
from relay.typecheck.elaboration.values.expansion import expand
from relay.typecheck.elaboration.values.objects import object_entity
from relay.typecheck.elaboration.values.tensors import tensor_type


def elements(
    checker: Checker, out: TypedBlockBuilder, entity: AbstractValue, span: Span | None
) -> list[AbstractValue] | None:
    """The elements of what can be iterated over, one by one; None where their number is not known."""
    if isinstance(entity, DynamicValue):
        entity = expand(checker, out, entity, span)
    match entity:
        case PythonObject(str() | frozenset() as whole):
            ordered = whole if isinstance(whole, str) else ordered_keys(whole)
            return [object_entity(part, span) for part in ordered]
        case Tuple():
            return list(records.iteration_items(entity, span))
        case Range(Number() as first, Number() as end, step):
            start, stop = int(first.specialize()), int(end.specialize())
            numbers = range(start, stop, step)
            refuse_many(max(0, -((start - stop) // step)), span)
            return [PythonNumber(i, span) for i in numbers]
        case DynamicValue() if dynamic_lists.is_growing(entity):
            if dynamic_lists.count(checker, entity) is None:
                return None
            return list(list_reductions.element_tuple(checker, out, entity, span).items)
        case DynamicValue():
            known = tensor_type(entity)
            count = checker.hints.number(known.shape[0]) if known is not None and known.shape else None
            if count is None:
                return None
            refuse_many(count, span)
            return [index(checker, out, entity, [PythonNumber(i, span)], span) for i in range(count)]
        case Zip(parts):
            columns = [_column(checker, out, part, span) for part in parts]
            finite = [c for c in columns if not isinstance(c, Range)]
            if not finite or any(c is None for c in finite):
                return None
            count = min(len(c) for c in finite if c is not None)
            return [Tuple(tuple(_row(c, i, span) for c in columns)) for i in range(count)]
        case _:
            return None


def _column(
    checker: Checker, out: TypedBlockBuilder, part: AbstractValue, span: Span | None
) -> list[AbstractValue] | Range | None:
    if isinstance(part, Range) and isinstance(part.stop, PythonObject) and isinstance(part.start, Number):
        return part  # the numbers of an enumerate, without end
    return elements(checker, out, part, span)


def _row(column: list[AbstractValue] | Range | None, position: int, span: Span | None) -> AbstractValue:
    if isinstance(column, Range):
        assert isinstance(column.start, Number)
        return PythonNumber(column.start.specialize() + position * column.step, span)
    assert column is not None
    return column[position]
