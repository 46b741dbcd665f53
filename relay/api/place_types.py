"""Types of expressions at their places, as texts: what editors show."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

import attrs

from relay.api.checked_file import CheckedFunction, PlaceType
from relay.errors import Span
from relay.ir.expr import Function
from relay.ir.types import FunctionType, QuantifiedType, show
from relay.operator import Operator, Undetermined
from relay.typecheck.elaboration import Scheme
from relay.typecheck.elaboration.abstract_values import (
    AbstractValue,
    DependsOnPoison,
    DerivativeFunction,
    DynamicValue,
    GlobalFunction,
    LocalFunction,
    Method,
    PythonNumber,
    PythonObject,
    Size,
    SizeExpression,
    Tuple,
)
from relay.typecheck.elaboration.diagnostics.descriptions import kind_of
from relay.typecheck.elaboration.diagnostics.mistakes import display_type
from relay.typecheck.type_differences import name_unknowns


def with_types(
    function: CheckedFunction, code: Function, found: Scheme | None, meanings: Sequence[tuple[Span, object]]
) -> CheckedFunction:
    """A checked function with its type, and the types of the expressions in it."""
    lines = _lines(code)
    places = dict.fromkeys(
        PlaceType(span, text, lines(span)) for span, meaning in meanings if (text := type_text(meaning)) is not None
    )
    if found is None:
        return attrs.evolve(function, places=tuple(places))
    inner = found.type.body if isinstance(found.type, QuantifiedType) else found.type
    parameters = tuple(map(show, inner.parameters)) if isinstance(inner, FunctionType) else ()
    return attrs.evolve(
        function,
        type=show(found.type),
        parameters=parameters,
        result=show(inner.result) if isinstance(inner, FunctionType) else None,
        places=tuple(places),
    )


def of_call(meanings: Sequence[tuple[Span, object]]) -> CheckedFunction:
    """The types of the expressions in functions, as a call decides them."""
    found = (PlaceType(span, text, False) for span, meaning in meanings if (text := type_text(meaning)) is not None)
    return CheckedFunction("", None, (), places=tuple(dict.fromkeys(found)))


def _lines(code: Function) -> Callable[[Span], bool]:
    """A test for places: True if a place is in a function's text."""
    span = code.span
    if span is None:
        return lambda place: False
    last = _last_line(span)
    name = os.path.realpath(span.source.filename)

    def is_inside(place: Span) -> bool:
        return span.line <= place.line <= last and os.path.realpath(place.source.filename) == name

    return is_inside


def _last_line(span: Span) -> int:
    """The last line that is indented more than `def`."""
    source, line = span.source, span.end_line
    first = source.line(span.line)
    indent = len(first) - len(first.lstrip())
    end = source.first_line + source.text.count("\n")
    for number in range(line + 1, end + 1):
        text = source.line(number)
        if text.strip() and len(text) - len(text.lstrip()) <= indent and text.strip()[0] not in ")]}#":
            break
        line = number
    return line


def type_text(meaning: object) -> str | None:
    """The type of what a name or an expression means, in the language's notation; None for what has no type."""
    try:
        return _text(meaning)  # type: ignore[arg-type]
    except (DependsOnPoison, Undetermined):  # a size that a mistake left open
        return None


def _text(meaning: AbstractValue) -> str | None:
    match meaning:
        case DynamicValue(type=type_):
            name_unknowns(type_)
            return display_type(type_)
        case Size(dim):
            return f"int ({dim})"
        case SizeExpression():
            return "float" if meaning.is_float else "int"
        case PythonNumber(value):
            return f"{type(value).__name__} ({value})"
        case Tuple(items, form):
            inside = [_text(item) or ".." for item in items]
            if form is not None and form.names:
                pairs = ", ".join(f"{n}: {i}" for n, i in zip(form.names, inside, strict=True))
                return f"{{{pairs}}}" if form.cls is dict else f"{form.cls.__name__}({pairs})"
            return f"[{', '.join(inside)}]" if form is not None else f"({', '.join(inside)}{',' * (len(items) == 1)})"
        case GlobalFunction(definition):
            return f"function {definition.function.name}"
        case LocalFunction(function=function):
            return f"function {function.name}"
        case DerivativeFunction(of):
            return f"derivative of {_text(of)}"
        case Method(name=name):
            return f"method {name}"
        case PythonObject(Operator() as operator):
            return f"operator {operator.name}"
        case PythonObject(value) if value is None or isinstance(value, str):
            return repr(value)
        case _:
            return kind_of(meaning)
