"""Arguments of calls: which parameter each one belongs to, defaults, and which of them specialize the function."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from relay.errors import Label, Span, TypeCheckError, TypeMismatch
from relay.ir.expr import Atom, Constant, Function, Parameter, Static
from relay.ir.types import NONE, BaseType, Form, FunctionType, QuantifiedType, TensorType, TypeId, show
from relay.support.foreign_names import argument_help
from relay.typecheck.elaboration.abstract_values import (
    AbstractValue,
    Context,
    DerivativeFunction,
    DynamicValue,
    GlobalFunction,
    LocalFunction,
    Number,
    PythonObject,
    Tuple,
    surface_function,
)
from relay.typecheck.elaboration.diagnostics.descriptions import kind_of
from relay.typecheck.elaboration.expressions.atoms import atom_entity


def static_positions(callee: GlobalFunction | LocalFunction) -> frozenset[int]:
    """The parameters whose arguments specialize the function."""
    return frozenset(i for i, p in enumerate(surface_function(callee).signature) if p.static)


def require_static(entity: AbstractValue, function: Function, position: int, span: Span | None) -> None:
    """Raise TypeCheckError if the argument of a static parameter is only known at run time."""
    stack = [entity]
    while stack:
        part = stack.pop()
        if isinstance(part, Tuple):
            stack += part.items
        elif isinstance(part, DynamicValue) and not isinstance(part.atom, Constant):
            parameter = function.parameters[position]
            labels = (Label(parameter.span, "static"),) if parameter.span is not None else ()
            raise TypeCheckError(
                f"argument {parameter.name} of {function.name} is static: it must be known at compile time",
                span,
                labels=labels,
            ).needing_value(part.atom)


def require_fitting(entity: AbstractValue, function: Function, position: int, span: Span | None) -> None:
    """Raise TypeMismatch if an argument that specializes a function does not fit its annotation: None or text for a
    tensor, another function than the written one. None also stands for a missing argument."""
    parameter = function.parameters[position]
    written = parameter.type
    default = function.signature[position].default if position < len(function.signature) else None
    if written is None or isinstance(written, TypeId | QuantifiedType):
        return
    match entity:
        case PythonObject(None):
            fits = written == NONE or (isinstance(default, Static) and default.value is None)
        case GlobalFunction() | LocalFunction() | DerivativeFunction():
            fits = isinstance(written, FunctionType)
        case PythonObject(value):
            fits = isinstance(written, FunctionType) and callable(value)
        case Tuple():
            fits = not isinstance(written, TensorType | FunctionType)
        case Number() if isinstance(written, TensorType):
            is_whole = isinstance(written.base, BaseType) and not written.base.is_float
            fits = written.shape == () and not (entity.is_float and is_whole)
        case Number():
            fits = False
        case _:
            fits = True
    if not fits:
        declared = (Label(parameter.span, "declared here"),) if parameter.span is not None and span is not None else ()
        message = f"argument {parameter.name} of {function.name} must be {show(written)}, found {kind_of(entity)}"
        raise TypeMismatch(message, span or parameter.span, labels=declared)


def specializes(entity: AbstractValue) -> bool:
    """True if an argument is not a value at run time."""
    while isinstance(entity, DerivativeFunction):
        entity = entity.of
    return isinstance(entity, PythonObject | GlobalFunction)


def wrong_count(name: str, least: int, most: int, found: int) -> str:
    """The error text for a call with a wrong number of arguments."""
    expected = f"{most}" if least == most else f"{least} to {most}"
    return f"wrong number of arguments to {name}: expected {expected}, found {found}"


def _is_of_library(function: Function) -> bool:
    """True if a function is one of Relay's own, whose text users do not see."""
    return function.span is not None and function.span.source.filename.startswith("<relay.")


def bind_arguments(
    callee: GlobalFunction | LocalFunction,
    arguments: Sequence[AbstractValue],
    keywords: Sequence[tuple[str, AbstractValue]],
    span: Span | None,
    bound: int = 0,
) -> list[AbstractValue]:
    """One entity for each parameter, as Python binds arguments; the first ones, `bound`, are not written in the call,
    as the value of a method is not. Raises TypeCheckError."""
    function = surface_function(callee)
    signature = function.signature or tuple(Parameter() for _ in function.parameters)
    defined = (Label(function.span, "defined here"),) if function.span is not None else ()
    positional = [i for i, p in enumerate(signature) if p.kind in ("positional_only", "positional_or_keyword")]
    several = {p.kind: i for i, p in enumerate(signature) if p.kind in ("var_positional", "var_keyword")}
    if len(arguments) > len(positional) and "var_positional" not in several:
        least = sum(signature[i].default is None for i in positional)
        counts = (n - bound for n in (least, len(positional), len(arguments)))
        raise TypeCheckError(wrong_count(function.name, *counts), span, labels=defined)
    found: dict[int, AbstractValue] = dict(zip(positional, arguments, strict=False))
    if "var_positional" in several:
        found[several["var_positional"]] = Tuple(tuple(arguments[len(positional) :]))
    named = ("positional_or_keyword", "keyword_only")
    names = {p.name: i for i, p in enumerate(function.parameters) if signature[i].kind in named}
    if "var_keyword" in several:
        rest = {name: entity for name, entity in keywords if name not in names}
        found[several["var_keyword"]] = Tuple(tuple(rest.values()), Form(dict, tuple(rest)))
        keywords = [(name, entity) for name, entity in keywords if name in names]
    for name, entity in keywords:
        if name not in names:
            close = difflib.get_close_matches(name, names, n=1)
            by_place = any(p.name == name for p in function.parameters)
            help = f"did you mean {close[0]!r}?" if close else f"it has {', '.join(names)}" if names else None
            help = "it is given by its place, without a name" if by_place else help
            if not close and not by_place and _is_of_library(function):
                help = argument_help(name, names) or help
            raise TypeCheckError(f"{function.name} has no parameter {name!r}", span, labels=defined, help=help)
        if names[name] in found:
            raise TypeCheckError(f"{function.name} got two values for {name!r}", span, labels=defined)
        found[names[name]] = entity
    result = []
    for position, parameter in enumerate(function.parameters):
        if position in found:
            result.append(found[position])
            continue
        default = signature[position].default
        if default is None:
            needed = sum(p.default is None for p in signature)
            given = len(arguments) + len(keywords)
            text = f"{function.name} needs a value for {parameter.name!r}"
            if given < needed:
                counts = (n - bound for n in (needed, len(signature), given))
                text = f"{wrong_count(function.name, *counts)}; {parameter.name!r} is missing"
            raise TypeCheckError(text, span, labels=defined)
        result.append(_default(callee, default))
    return result


def _default(callee: GlobalFunction | LocalFunction, default: Atom) -> AbstractValue:
    return atom_entity(definition_context(callee), default)


def defaults(entity: AbstractValue) -> dict[int, AbstractValue]:
    """The defaults of a function, or of the one that is differentiated, by position."""
    while isinstance(entity, DerivativeFunction):
        entity = entity.of
    if not isinstance(entity, GlobalFunction | LocalFunction):
        return {}
    signature = surface_function(entity).signature
    return {i: _default(entity, p.default) for i, p in enumerate(signature) if p.default is not None}


def definition_context(callee: GlobalFunction | LocalFunction) -> Context:
    if isinstance(callee, GlobalFunction):
        return Context({}, {}, callee.definition.scope)
    return Context(dict(callee.environment), {}, callee.context.scope, callee.context.annotated, callee.context)
