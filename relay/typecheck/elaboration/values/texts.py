"""Text as a run-time value: strings that branches and loops choose, and those that hold run-time numbers.

A string that the checker knows, or an f-string of which it knows the pieces, becomes a value (`relay/library/texts.py`)
where it is needed as one: where paths with different strings meet, in the variables of loops, in lists and data, as a
result.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from relay.errors import Span, TypeMismatch
from relay.ir.definition import complete_definition, data_class
from relay.ir.expr import Assert, Binding, Constant
from relay.ir.program_output import QUOTED, TEXT
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
from relay.typecheck.elaboration.dynamic_shapes.data_dependent import packed_value
from relay.typecheck.elaboration.library.overloads import LibraryFunction
from relay.typecheck.elaboration.values.data import data_type, fresh_type, is_text, read_fields
from relay.typecheck.elaboration.values.data_construction import build
from relay.typecheck.unification import resolve

MOST_CHARACTERS = 10_000
"""The most characters of a string at run time."""

_definition: DataDefinition
_functions: Mapping[str, LibraryFunction] = {}
_methods: Callable[[], Mapping[str, LibraryFunction]] = dict


def use_language(
    cls: type, functions: Mapping[str, LibraryFunction], methods: Callable[[], Mapping[str, LibraryFunction]]
) -> None:
    """Say which data type strings are, and which functions of the language compute with their code points; `methods`
    gives those that are seldom needed."""
    global _definition, _functions, _methods
    owner = data_class(cls)
    assert owner is not None
    _definition, _functions, _methods = owner.definition, functions, methods


def _function(name: str) -> LibraryFunction:
    return _functions[name] if name in _functions else _methods()[name]


def string(checker: Checker, out: TypedBlockBuilder, entity: AbstractValue, span: Span | None) -> DynamicValue:
    """A string as a value."""
    if isinstance(entity, DynamicValue):
        return entity
    if isinstance(entity, PythonObject):
        return of_codes(checker, out, _constant(str(entity.value), span), span)
    assert isinstance(entity, Text)
    parts: list[AbstractValue] = []
    for piece, value, form in zip(entity.pieces, (*entity.values, None), (*entity.formats, ""), strict=True):
        if piece:
            parts.append(_constant(piece, span))
        if value is not None:
            if form == QUOTED:
                value = codes(checker, out, _call(checker, out, "quote", [value], span), span)
            parts.append(value if form in (TEXT, QUOTED) else _number_codes(checker, out, value, form, span))
    if len(parts) == 1:
        return of_codes(checker, out, parts[0], span)
    whole = _call(checker, out, "joined", parts, span)
    if TEXT in entity.formats or QUOTED in entity.formats:
        return _bounded(checker, out, whole, span)
    assert isinstance(whole, DynamicValue)
    return whole


def take_as_string(checker: Checker, value: DynamicValue, span: Span | None, what: str = "the key of a dict") -> None:
    """Demand that a value, whose type is open, is a string."""
    checker.unify_at(value.type, fresh_type(checker, _definition), span, what)


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


def hash_code(checker: Checker, out: TypedBlockBuilder, entity: AbstractValue, span: Span | None) -> AbstractValue:
    """An int64 that follows from all characters."""
    return _call(checker, out, "hash_code", [codes(checker, out, entity, span)], span)


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
    return of_codes(checker, out, part, span)


def characters(checker: Checker, out: TypedBlockBuilder, entity: AbstractValue, span: Span | None) -> AbstractValue:
    """The characters, each a string, as a list."""
    return _call(checker, out, "characters", [codes(checker, out, entity, span)], span)


def contains(
    checker: Checker, out: TypedBlockBuilder, entity: AbstractValue, part: AbstractValue, span: Span | None
) -> AbstractValue:
    """`part in text`."""
    return _compare(checker, out, "contains", [entity, part], span)


METHODS = (
    *("capitalize", "center", "count", "endswith", "find", "index", "isalnum", "isalpha", "isascii", "isdecimal"),
    *("isdigit", "islower", "isnumeric", "isspace", "isupper", "join", "ljust", "lower", "lstrip", "partition"),
    *("removeprefix", "removesuffix", "replace", "rfind", "rindex", "rjust", "rstrip", "split", "splitlines"),
    *("startswith", "strip", "upper", "zfill"),
)
"""The methods of run-time strings."""

_LENGTHENING = ("center", "ljust", "replace", "rjust", "upper", "zfill")


def method(
    checker: Checker,
    out: TypedBlockBuilder,
    name: str,
    operands: Sequence[AbstractValue],
    keywords: Sequence[tuple[str, AbstractValue]],
    span: Span | None,
) -> AbstractValue | None:
    """A method of a string, if run-time strings have it."""
    if name not in METHODS:
        return None
    if name == "join":
        listed = checker.engine.call(checker, empty_context(), out, PythonObject(list), [operands[1]], (), span, [])
        separator = codes(checker, out, operands[0], span)
        return _bounded(checker, out, _call(checker, out, "all_joined", [separator, listed], span), span)
    if name in ("startswith", "endswith") and len(operands) == 2 and isinstance(operands[1], Tuple):
        return _any_of(checker, out, name, operands[0], operands[1].items, span)
    given = [codes(checker, out, o, span) if is_text(o) else o for o in operands]
    named = [(key, codes(checker, out, value, span) if is_text(value) else value) for key, value in keywords]
    found = _call(checker, out, name, given, span, named)
    return _bounded(checker, out, found, span) if name in _LENGTHENING else found


def _any_of(
    checker: Checker,
    out: TypedBlockBuilder,
    name: str,
    text: AbstractValue,
    parts: Sequence[AbstractValue],
    span: Span | None,
) -> AbstractValue:
    """`text.startswith(("a", "b"))`"""
    found = _compare(checker, out, "contains", [PythonObject(""), PythonObject("-")], span)
    for part in parts:
        holds = _compare(checker, out, name, [text, part], span)
        found = checker.engine.apply_operator(checker, out, "logical_or", [found, holds], {}, span, [])
    return found


_FORMAT = re.compile(r"(?:(.)?([<>^]))?(0)?(\d+)?(?:\.(\d+))?s?", re.DOTALL)


def formatted(
    checker: Checker, out: TypedBlockBuilder, entity: AbstractValue, specification: str, span: Span | None
) -> DynamicValue | None:
    """The code points of a string as an f-string with a format writes it; None for a format that is not for strings."""
    parts = _FORMAT.fullmatch(specification)
    if parts is None:
        return None
    fill, align, zero, width, precision = parts.groups()
    place = {"<": 0, ">": 1, "^": 2, None: 0}[align]
    given: list[AbstractValue] = [
        codes(checker, out, entity, span),
        PythonNumber(int(width or 0), span),
        PythonObject(None) if precision is None else PythonNumber(int(precision), span),
        _constant(fill or ("0" if zero else " "), span),
        PythonNumber(place, span),
    ]
    return codes(checker, out, _bounded(checker, out, _call(checker, out, "formatted", given, span), span), span)


def convert(
    checker: Checker, out: TypedBlockBuilder, name: str, operand: AbstractValue, span: Span | None
) -> AbstractValue:
    """`int(text)` as "integer", `float(text)` as "real", `ord(text)` as "code_point" and `chr(i)` as "character"."""
    given = codes(checker, out, operand, span) if is_text(operand) else operand
    return _call(checker, out, name, [given], span)


# ---- parts


def _constant(text: str, span: Span | None) -> DynamicValue:
    constant = Constant(np.array([*map(ord, text)], np.int32), span)
    return DynamicValue(constant, constant.type)


def of_codes(checker: Checker, out: TypedBlockBuilder, codes: AbstractValue, span: Span | None) -> DynamicValue:
    """The string of these code points."""
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
    checker: Checker,
    out: TypedBlockBuilder,
    name: str,
    operands: Sequence[AbstractValue],
    span: Span | None,
    keywords: Sequence[tuple[str, AbstractValue]] = (),
) -> AbstractValue:
    function = GlobalFunction(_function(name).__relay__)
    given = [_of_any_size(checker, out, o, span) for o in operands]
    named = [(key, _of_any_size(checker, out, value, span)) for key, value in keywords]
    return checker.engine.call_function(checker, out, function, given, named, span)


def _of_any_size(checker: Checker, out: TypedBlockBuilder, entity: AbstractValue, span: Span | None) -> AbstractValue:
    """An argument without the name of its size, which is another one for each string: one instance serves all calls."""
    return packed_value(checker, out, entity, None, None, span) if isinstance(entity, DynamicValue) else entity


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
