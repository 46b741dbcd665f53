"""Descriptions of operators and operands for error messages."""

from __future__ import annotations

from collections.abc import Sequence

from relay.errors import Span, TypeCheckError
from relay.ir.dims import Dim
from relay.ir.types import BaseType
from relay.operator import Operator
from relay.typecheck.elaboration.abstract_values import (
    FUNCTIONS,
    AbstractValue,
    DynamicValue,
    Number,
    PythonNumber,
    PythonObject,
    Size,
    SizeExpression,
    Text,
    Tuple,
)
from relay.typecheck.elaboration.diagnostics.mistakes import display_type
from relay.typecheck.elaboration.library.overloads import callable_name, is_function
from relay.typecheck.type_differences import name_unknowns

# How Python spells an operator, for messages.
SYMBOLS = {
    "add": "+", "subtract": "-", "multiply": "*", "divide": "/", "floor_divide": "//", "mod": "%", "power": "**",
    "matmul": "@", "less": "<", "less_equal": "<=", "greater": ">", "greater_equal": ">=", "equal": "==", "not_equal":
    "!=", "logical_not": "not",
}  # fmt: skip


def kind_of(entity: AbstractValue) -> str:
    """The description of a value in place of a tensor, in words."""
    match entity:
        case Tuple(_, form):
            return "a tuple" if form is None else f"a {form.cls.__name__}"
        case Size() | SizeExpression():
            return "a number"
        case PythonNumber(value):
            return f"the number {value}"
        case PythonObject(None):
            return "None"
        case PythonObject(str() as text):
            return f"the string {text!r}"
        case PythonObject(BaseType() as base):
            return f"the dtype {base}"
        case PythonObject(Operator() as operator):
            return f"the operator {operator.name}, which is not called"
        case PythonObject(value) if is_function(value):
            return f"the function {callable_name(value)}, which is not called"
        case PythonObject(value):
            return f"a Python {type(value).__name__}"
        case Text():
            return "a run-time string"
        case _:
            return "a function" if isinstance(entity, FUNCTIONS) else "a method or range"


def operator_name(operator: Operator) -> str:
    return f"`{SYMBOLS[operator.name]}`" if operator.name in SYMBOLS else operator.name


def structure_of(entity: AbstractValue) -> str:
    """The type of a value for a message, also of a tuple or record that is known by its parts."""
    match entity:
        case Tuple(items, form) if form is not None and form.names:
            return "{" + ", ".join(f"{n}: {structure_of(i)}" for n, i in zip(form.names, items, strict=True)) + "}"
        case Tuple(items, form):
            inside = ", ".join(map(structure_of, items))
            return f"[{inside}]" if form is not None else f"({inside}{',' * (len(items) == 1)})"
        case DynamicValue(_, type_):
            return display_type(type_)
        case Number():
            return "a number"
        case _:
            return kind_of(entity)


def operand_texts(count: int, described: Sequence[str]) -> Sequence[str]:
    """This many operands as they are written; those of one tuple are its items."""
    if len(described) == 1 and count > 1:
        inside = described[0][1:-1].split(", ") if described[0][:1] in ("(", "[") else []
        return inside if len(inside) == count else [f"operand {i}" for i in range(1, count + 1)]
    return described


def operand_notes(found: Sequence[DynamicValue | None], described: Sequence[str]) -> tuple[str, ...]:
    described = operand_texts(len(found), described)
    told = [(value, text) for value, text in zip(found, described, strict=False) if value is not None]
    name_unknowns(*(value.type for value, _ in told))
    return tuple(dict.fromkeys(f"{text}: {display_type(value.type)}" for value, text in told))


def nearest_index(index: Dim, extent: Dim) -> str | None:
    """The hint for an index that is out of range: the last valid index on its side. None if that is not a
    number."""
    if not isinstance(extent, int) or extent == 0:
        return None
    if isinstance(index, int) and index < 0:
        return f"the first index is 0, or {-extent}"
    return f"the last index is {extent - 1}, or -1"


def index_error(kind: str, index: int, length: int, span: Span | None) -> TypeCheckError:
    """The error for an index that a list or tuple of this length does not have."""
    message = f"index {index} is out of range for a {kind} of length {length}"
    return TypeCheckError(message, span, help=nearest_index(index, length)).wherever_it_runs()
