"""Descriptions of what names mean, for hovering, completion and the signatures of calls."""

from __future__ import annotations

import inspect
from types import ModuleType

import attrs
import numpy as np

from relay.api.place_types import type_text
from relay.api.static_check import decorated_definition
from relay.errors import RelayError, Span
from relay.ir.definition import Definition, DerivedDefinition, data_class, primal
from relay.ir.types import BaseType, FunctionType, QuantifiedType, show
from relay.operator import Operator
from relay.operator.relation import Relation
from relay.operator.signature_text import signature
from relay.typecheck.elaboration import scheme
from relay.typecheck.elaboration.abstract_values import DependsOnPoison, DynamicValue, PythonObject
from relay.typecheck.elaboration.values.objects import object_entity

_MODULES = ("numpy", "math", "relay", "functools", "dataclasses", "collections", "typing")


@attrs.frozen
class Description:
    """The description of a name: its signature or type, and documentation, if there is any."""

    head: str
    text: str = ""
    kind: str = "value"

    @property
    def markdown(self) -> str:
        """As an editor shows it."""
        shown = f"```python\n{self.head}\n```"
        return f"{shown}\n\n{self.text}" if self.text else shown


def describe(value: object, name: str) -> Description | None:
    """The description of an object that a name means; None for objects that a program cannot mention."""
    match value:
        case Operator():
            return Description(f"relay.{signature(value)}", _of_operator(value), "function")
        case ModuleType():
            return Description(f"module {value.__name__}", first_paragraph(value.__doc__), "module")
        case BaseType():
            return Description(f"{name}: dtype {value}", "", "class")
    definition = decorated_definition(value)
    if definition is not None:
        found = function_type(definition)
        told = first_paragraph(getattr(value, "__doc__", None))
        return Description(f"{name}: {found}" if found else f"function {name}", told, "function")
    if isinstance(value, type) and (owner := data_class(value)) is not None:
        return Description(f"data {owner.definition.name}", first_paragraph(value.__doc__), "class")
    if isinstance(value, type):
        return Description(f"class {value.__name__}", first_paragraph(value.__doc__), "class")
    if callable(value) and _is_of_library(value):
        return Description(f"{name}{call_signature(value)}", first_paragraph(value.__doc__), "function")
    return _of_value(value, name)


def _is_of_library(value: object) -> bool:
    module = "numpy" if isinstance(value, np.ufunc) else str(getattr(value, "__module__", None) or "")
    return module.split(".")[0] in (*_MODULES, "builtins")


def _of_value(value: object, name: str) -> Description | None:
    if isinstance(value, bool | int | float | str) or value is None:
        return Description(f"{name}: {type(value).__name__} = {value!r}")
    try:
        entity = object_entity(value, None)
    except (RelayError, DependsOnPoison):
        return None
    if isinstance(entity, PythonObject):
        return None
    text = type_text(entity)
    return None if text is None else Description(f"{name}: {text}" + (" (constant)" * isinstance(entity, DynamicValue)))


def function_type(definition: Definition | DerivedDefinition) -> str | None:
    """The type of a function; None if it has mistakes."""
    try:
        return show(scheme(definition).type)
    except (RelayError, DependsOnPoison):
        return None


def _of_operator(operator: Operator) -> str:
    return f"Type `{operator_type(operator)}`\n\n{first_paragraph(operator.documentation)}"


def operator_type(operator: Operator) -> str:
    """The type of an operator, in its notation."""
    match operator.relation:
        case Relation() as relation:
            return relation.base.text
        case QuantifiedType() | FunctionType():
            return str(operator.relation)
        case _:
            return "by its own rule"


def call_signature(value: object) -> str:
    """The parameters of a Python function, `(x, axis=None)`; `(...)` if it does not tell."""
    try:
        return str(inspect.signature(value))  # type: ignore[arg-type]
    except (ValueError, TypeError):
        line = (getattr(value, "__doc__", None) or "").strip().split("\n")[0]
        return line[line.index("(") :].partition(" -> ")[0] if "(" in line and line.endswith(")") else "(...)"


def first_paragraph(documentation: str | None) -> str:
    """The first paragraph of a documentation, on one line."""
    text = inspect.cleandoc(documentation or "")
    parts = [" ".join(part.split()) for part in text.split("\n\n") if part.strip()]
    parts = [part for part in parts if not part.endswith(("====", "----"))]  # headings
    if len(parts) > 1 and "(" in parts[0] and len(parts[0]) < 200 and not parts[0].endswith("."):
        parts = parts[1:]  # the signature, as NumPy writes it
    return parts[0] if parts else ""


def function_span(value: object) -> Span | None:
    """The place of a function of the language: `def name`; None for other values."""
    definition = decorated_definition(value)
    return None if definition is None else primal(definition).function.span
