"""Text as a run-time value: strings that branches and loops choose, and those that hold run-time numbers.

A string that the checker knows, or an f-string of which it knows the pieces, becomes a value (`relay/library/texts.py`)
where it is needed as one: where paths with different strings meet, in the variables of loops, in lists and data, as a
result.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from relay.errors import Span, TypeMismatch
from relay.ir.definition import complete_definition, data_class
from relay.ir.expr import Assert, Binding, Constant
from relay.ir.program_output import TEXT
from relay.ir.types import DataDefinition, TensorType, show
from relay.operator import lookup
from relay.typecheck.elaboration.abstract_values import (
    AbstractValue,
    DynamicValue,
    GlobalFunction,
    Number,
    PythonNumber,
    PythonObject,
    SliceItem,
    Text,
    Tuple,
    TypedBlockBuilder,
    empty_context,
)
from relay.typecheck.elaboration.checker import Checker
from relay.typecheck.elaboration.library.overloads import LibraryFunction
from relay.typecheck.elaboration.values.data import data_type, fresh_type, is_text, read_fields
from relay.typecheck.elaboration.values.data_construction import build
from relay.typecheck.unification import resolve

MOST_CHARACTERS = 10_000
"""The most characters of a string at run time."""

_definition: DataDefinition
_functions: Mapping[str, LibraryFunction] = {}


def use_language(cls: type, functions: Mapping[str, LibraryFunction]) -> None:
    """Say which data type strings are, and which functions of the language compute with their code points."""
    global _definition, _functions
    owner = data_class(cls)
    assert owner is not None
    _definition, _functions = owner.definition, functions


def string(checker: Checker, out: TypedBlockBuilder, entity: AbstractValue, span: Span | None) -> DynamicValue:
    """A string as a value."""
    if isinstance(entity, DynamicValue):
        return entity
    if isinstance(entity, PythonObject):
        return _new_string(checker, out, _constant(str(entity.value), span), span)
    assert isinstance(entity, Text)
    parts: list[AbstractValue] = []
    for piece, value, form in zip(entity.pieces, (*entity.values, None), (*entity.formats, ""), strict=True):
        if piece:
            parts.append(_constant(piece, span))
        if value is not None:
            parts.append(value if form == TEXT else _number_codes(checker, out, value, form, span))
    if len(parts) == 1:
        return _new_string(checker, out, parts[0], span)
    whole = _call(checker, out, "joined", parts, span)
    if TEXT in entity.formats:
        return _bounded(checker, out, whole, span)
    assert isinstance(whole, DynamicValue)
    return whole


def of_run(checker: Checker, out: TypedBlockBuilder, entity: AbstractValue, span: Span | None) -> AbstractValue:
    """A value, or structure, with run-time values in place of the strings that are known."""
    if isinstance(entity, Tuple):
        return Tuple(tuple(of_run(checker, out, item, span) for item in entity.items), entity.form)
    return string(checker, out, entity, span) if is_text(entity) else entity


def holds_text(entity: AbstractValue) -> bool:
    """True if a value is a string, or holds one."""
    return any(map(holds_text, entity.items)) if isinstance(entity, Tuple) else is_text(entity)


def codes(checker: Checker, out: TypedBlockBuilder, entity: AbstractValue, span: Span | None) -> DynamicValue:
    """The code points of a string."""
    if isinstance(entity, PythonObject):
        return _constant(str(entity.value), span)
    typed = string(checker, out, entity, span)
    type_ = data_type(typed)
    assert type_ is not None
    complete_definition(type_.definition)
    (found,) = read_fields(checker, out, typed, type_, [0], span)
    assert isinstance(found, DynamicValue)
    return found


def operate(
    checker: Checker, out: TypedBlockBuilder, name: str, operands: Sequence[AbstractValue], span: Span | None
) -> AbstractValue | None:
    """An operator of strings, at least one of which is a run-time string; None where an operand is no string."""
    if name == "multiply" and len(operands) == 2:
        whole, times = operands if is_text(operands[0]) else reversed(operands)
        if not isinstance(times, Number | DynamicValue):
            return None
        given: list[AbstractValue] = [codes(checker, out, whole, span), times]
        return _bounded(checker, out, _call(checker, out, "repeated", given, span), span)
    if len(operands) != 2 or not all(map(is_text, operands)):
        return None
    match name:
        case "equal" | "not_equal":
            found = _compare(checker, out, "same", operands, span)
        case "less" | "greater_equal":
            found = _compare(checker, out, "precedes", operands, span)
        case "greater" | "less_equal":
            found = _compare(checker, out, "precedes", operands[::-1], span)
        case _:
            return None
    return _negated(checker, out, found, span) if name in ("not_equal", "greater_equal", "less_equal") else found


def length(checker: Checker, out: TypedBlockBuilder, entity: AbstractValue, span: Span | None) -> AbstractValue:
    """The number of characters."""
    return _call(checker, out, "length", [codes(checker, out, entity, span)], span)


def item(
    checker: Checker,
    out: TypedBlockBuilder,
    entity: AbstractValue,
    items: Sequence[AbstractValue | SliceItem],
    span: Span | None,
) -> AbstractValue:
    """`text[i]`, `text[a:b]`."""
    part = checker.engine.index(checker, out, codes(checker, out, entity, span), items, span)
    if not any(isinstance(i, SliceItem) for i in items):
        one = Tuple((PythonNumber(1, span),))
        part = checker.engine.call_operator(checker, out, lookup("reshape"), [part, one], (), span, [])
    return _new_string(checker, out, part, span)


def characters(checker: Checker, out: TypedBlockBuilder, entity: AbstractValue, span: Span | None) -> AbstractValue:
    """The characters, each a string, as a list."""
    return _call(checker, out, "characters", [codes(checker, out, entity, span)], span)


def contains(
    checker: Checker, out: TypedBlockBuilder, entity: AbstractValue, part: AbstractValue, span: Span | None
) -> AbstractValue:
    """`part in text`."""
    return _compare(checker, out, "contains", [entity, part], span)


def method(
    checker: Checker, out: TypedBlockBuilder, name: str, operands: Sequence[AbstractValue], span: Span | None
) -> AbstractValue | None:
    """A method of a string, if run-time strings have it."""
    if name in ("startswith", "endswith", "find") and len(operands) == 2 and is_text(operands[1]):
        return _compare(checker, out, name, operands, span)
    if name == "join" and len(operands) == 2:
        listed = checker.engine.call(checker, empty_context(), out, PythonObject(list), [operands[1]], (), span, [])
        separator = codes(checker, out, operands[0], span)
        return _bounded(checker, out, _call(checker, out, "all_joined", [separator, listed], span), span)
    return None


# ---- parts


def _constant(text: str, span: Span | None) -> DynamicValue:
    constant = Constant(np.array([*map(ord, text)], np.int32), span)
    return DynamicValue(constant, constant.type)


def _new_string(checker: Checker, out: TypedBlockBuilder, codes: AbstractValue, span: Span | None) -> DynamicValue:
    (constructor,) = complete_definition(_definition).constructors
    return build(checker, out, fresh_type(checker, _definition), constructor, [codes], span)


def _number_codes(
    checker: Checker, out: TypedBlockBuilder, value: DynamicValue, form: str, span: Span | None
) -> AbstractValue:
    type_ = resolve(value.type)
    if not isinstance(type_, TensorType) or type_.shape != ():
        raise TypeMismatch(
            f"a run-time string may hold numbers and strings, found {show(type_)}",
            span,
            help="print arrays, or write their elements in a loop",
        )
    return _call(checker, out, "number_text", [value, _constant(form, span)], span)


def _compare(
    checker: Checker, out: TypedBlockBuilder, name: str, operands: Sequence[AbstractValue], span: Span | None
) -> AbstractValue:
    return _call(checker, out, name, [codes(checker, out, o, span) for o in operands], span)


def _negated(checker: Checker, out: TypedBlockBuilder, found: AbstractValue, span: Span | None) -> AbstractValue:
    return checker.engine.apply_operator(checker, out, "logical_not", [found], {}, span, [])


def _call(
    checker: Checker, out: TypedBlockBuilder, name: str, operands: Sequence[AbstractValue], span: Span | None
) -> AbstractValue:
    return checker.engine.call_function(checker, out, GlobalFunction(_functions[name].__relay__), operands, (), span)


def _bounded(checker: Checker, out: TypedBlockBuilder, whole: AbstractValue, span: Span | None) -> DynamicValue:
    """A string that is not too long; the program stops where it is."""
    count = length(checker, out, whole, span)
    limit = PythonNumber(MOST_CHARACTERS, span)
    fits = checker.engine.apply_operator(checker, out, "less_equal", [count, limit], {}, span, [])
    assert isinstance(whole, DynamicValue)
    if isinstance(fits, DynamicValue) and fits.known is None:
        checker.effect("assert", "makes a string longer", span)
        message = f"a string has more than {MOST_CHARACTERS} characters"
        out.items.append(Binding((), Assert(fits.atom, message, checker.visible_span(span))))
    return whole
