"""Printer of types, in the notation that `relay.text.type_parser` reads.

    Tensor[float32, (n, 2*m + 1)]   (T, U)   fn(T) -> U ! {io}   Ref[T]   list[T]   D[T]
    forall (bt: BaseType) (s1: Shape). fn(Tensor[bt, s1]) -> Tensor[bt, reduce(s1, axis=0)] where bt is float

An application of a type-level function that stands for one part of a type is shown in its place; if it stands for
several, or for a part of a parameter, it is written as an equation after `where`: `broadcast(s1, s2) == s1`.
"""

from __future__ import annotations

import enum
import json
from collections.abc import Mapping
from typing import TypeAlias, assert_never

from relay.ir.axes import show_named
from relay.ir.dims import AnyDim, Dim, DimExpr, Kind, TypeId, Unknown
from relay.ir.effects import show_effects
from relay.ir.sizes.facts import DimConstraint
from relay.ir.types import (
    Application,
    AttributeValue,
    Base,
    BaseClass,
    BaseType,
    ClassConstraint,
    Constraint,
    DataType,
    Equation,
    Form,
    FunctionType,
    QuantifiedType,
    RefType,
    Shape,
    StackType,
    TensorType,
    TupleType,
    Type,
    axis_names,
    prune,
    type_variables,
)

Inlined: TypeAlias = Mapping[TypeId, Application]
"""Variables that are shown as the applications that they stand for."""

_NONE: Inlined = {}
INLINED_DEPTH = 6
"""The depth of nested applications of type-level functions beyond which they are named."""


def show_shape(shape: Shape, inlined: Inlined = _NONE) -> str:
    """A shape as the user writes it: `()`, `(3,)`, `(n, 4)`, `(*s, 4)`."""
    parts = _shown_dims(shape, inlined)
    return f"({parts[0]},)" if len(parts) == 1 else f"({', '.join(parts)})"


def _shown_dims(shape: Shape, inlined: Inlined) -> list[str]:
    parts: list[str] = []
    for dim in shape:
        dim = prune(dim)  # type: ignore[assignment]
        if isinstance(dim, tuple):
            parts += [str(d) for d in dim]
        elif isinstance(dim, TypeId | Unknown) and dim.kind is Kind.Shape:
            parts.append(f"*{_variable(dim, inlined)}")
        else:
            parts.append(str(dim))
    return parts


def _lone_shape(shape: Shape, inlined: Inlined) -> str:
    """A shape without brackets where it is one variable."""
    lone = prune(shape[0]) if len(shape) == 1 else None
    if isinstance(lone, TypeId | Unknown) and lone.kind is Kind.Shape:
        return _variable(lone, inlined)
    return show_shape(shape, inlined)


def _variable(variable: TypeId | Unknown, inlined: Inlined) -> str:
    application = inlined.get(variable) if isinstance(variable, TypeId) else None
    return variable.name if application is None else show_application(application, inlined)


def show_argument(argument: Type | Base | Shape | Dim, inlined: Inlined = _NONE) -> str:
    """The argument of a data type or type-level function: a type, an element type, a shape or a dim."""
    argument = prune(argument)  # type: ignore[arg-type]
    if isinstance(argument, tuple):
        return _lone_shape(argument, inlined)
    return str(argument) if isinstance(argument, int | BaseType | AnyDim | DimExpr) else show(argument, inlined)


def show_application(application: Application, inlined: Inlined = _NONE) -> str:
    """`reduce(s, axis=0)`."""
    parts = [show_argument(a, inlined) for a in application.arguments]
    parts += [f"{name}={show_attribute(value)}" for name, value in application.attributes]
    return f"{application.function}({', '.join(parts)})"


def show_attribute(value: AttributeValue) -> str:
    """The value of an operator's attribute: `none`, `true`, `2`, `"same"`, `(0, 1)`, `float32`, `2*n`."""
    match value:
        case None:
            return "none"
        case bool():
            return "true" if value else "false"
        case int():
            return repr(int(value))
        case float():
            return repr(float(value))
        case str():
            return json.dumps(value, ensure_ascii=False)
        case tuple():
            inside = ", ".join(map(show_attribute, value))
            return f"({inside},)" if len(value) == 1 else f"({inside})"
        case _:
            return str(value)


def show_constraint(constraint: Constraint, inlined: Inlined = _NONE) -> str:
    """`n >= 1`, `broadcast(s1, s2) == s3`, `bt is float or int`."""
    match constraint:
        case Equation(application, None):
            return show_application(application, inlined)
        case Equation(application, value):
            assert value is not None
            return f"{show_application(application, inlined)} == {show_argument(value, inlined)}"
        case ClassConstraint(base, classes):
            return f"{prune(base)} is {' or '.join(c.value for c in BaseClass if c in classes)}"
        case _:
            return str(constraint)


def show(type_: Type, inlined: Inlined = _NONE) -> str:
    """A type in Relay's notation. `inlined` are variables that are shown as applications. `inlined` stand for
    applications."""
    type_ = prune(type_)  # type: ignore[assignment]
    match type_:
        case TensorType(base, shape) if (names := axis_names(type_)) is not None:
            return show_named(str(prune(base)), _shown_dims(shape, inlined), names)
        case TensorType(base, shape):
            return f"Tensor[{prune(base)}, {_lone_shape(shape, inlined)}]"
        case TupleType(_, Form(cls)) if issubclass(cls, enum.Enum):
            return cls.__name__
        case TupleType(items, Form(cls, names)) if names:
            fields = ", ".join(f"{n}: {show(t, inlined)}" for n, t in zip(names, items, strict=True))
            return f"{{{fields}}}" if cls is dict else f"{cls.__name__}({fields})"
        case TupleType(_, Form(cls)) if cls is type(None):
            return "None"
        case TupleType(items):
            inside = ", ".join(show(t, inlined) for t in items)
            return f"({inside},)" if len(items) == 1 else f"({inside})"
        case FunctionType(parameters, result, where, effects):
            clause = show_effects(effects)
            told = [show_constraint(c, inlined) for c in where if not _is_inlined(c, inlined)]
            clause += f" where {', '.join(told)}" if told else ""
            return f"fn({', '.join(show(t, inlined) for t in parameters)}) -> {show(result, inlined)}{clause}"
        case QuantifiedType(identifiers, body):
            inlined = {**inlined, **_inlined_variables(type_)}
            binders = " ".join(f"({i.name}: {i.kind.value})" for i in identifiers if i not in inlined)
            return f"forall {binders}. {show(body, inlined)}" if binders else show(body, inlined)
        case RefType(content):
            return f"Ref[{show(content, inlined)}]"
        case StackType(element):
            cell = prune(element)
            if isinstance(cell, RefType):
                return f"list[{show(cell.content, inlined)}]"
            return f"Stack[{show(element, inlined)}]"
        case DataType(definition, arguments):
            inside = ", ".join(show_argument(a, inlined) for a in arguments)
            return f"{definition.name}[{inside}]" if inside else definition.name
        case TypeId() | Unknown():
            return _variable(type_, inlined)
        case _:
            assert_never(type_)


def _is_inlined(constraint: Constraint, inlined: Inlined) -> bool:
    if not inlined or not isinstance(constraint, Equation) or constraint.value is None:
        return False
    variable = _lone_variable(constraint.value)
    return variable is not None and inlined.get(variable) is constraint.application


def _lone_variable(value: Type | Shape) -> TypeId | None:
    if isinstance(value, tuple):
        return value[0] if len(value) == 1 and isinstance(value[0], TypeId) else None
    return value if isinstance(value, TypeId) else None


def _inlined_variables(type_: QuantifiedType) -> dict[TypeId, Application]:
    """The variables of a type that are shown as the applications they stand for: those that occur once, and not in a
    parameter."""
    body = type_.body
    if not isinstance(body, FunctionType) or not any(isinstance(c, Equation) for c in body.where):
        return {}
    uses: dict[TypeId, int] = {}

    def count(*parts: object) -> None:
        for variable in type_variables(parts):
            uses[variable] = uses.get(variable, 0) + 1

    count(body.result, *(c.base for c in body.where if isinstance(c, ClassConstraint)))
    count(*body.parameters, *body.parameters)  # counted twice, so that they keep their names
    defined: dict[TypeId, Application] = {}
    for constraint in body.where:
        if isinstance(constraint, DimConstraint):
            count(constraint.left, constraint.right)
        elif isinstance(constraint, Equation):
            count(*constraint.application.arguments)
            variable = None if constraint.value is None else _lone_variable(constraint.value)
            if variable is None:
                count(constraint.value)
            elif variable in defined or variable not in type_.identifiers:
                count(variable, variable)
            else:
                defined[variable] = constraint.application
    found: dict[TypeId, Application] = {}
    depth: dict[TypeId, int] = {}
    for variable, application in defined.items():  # an equation stands behind those that its arguments come from
        arguments = type_variables(application.arguments)
        inside = 1 + max((depth.get(v, 0) for v in arguments), default=0)
        if uses.get(variable) == 1 and inside <= INLINED_DEPTH and variable not in arguments:
            found[variable], depth[variable] = application, inside
    return found
