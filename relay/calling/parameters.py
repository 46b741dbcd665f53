"""Parameters of a decorated function: the values that a call gives them, as Python binds arguments, and their
annotations."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from relay.errors import InternalError, RelayError, TypeCheckError
from relay.ir.definition import Definition, DerivedDefinition, primal
from relay.ir.expr import Atom, Constant, Function, Global, Parameter, Static
from relay.ir.types import Kind, StackType, Type, type_variables
from relay.typecheck.elaboration import StaticArg
from relay.typecheck.elaboration.expressions.arguments import wrong_count
from relay.typecheck.elaboration.values.function_values import LAST_IS_SEED
from relay.typecheck.elaboration.values.objects import derived_entity
from relay.typecheck.unification import is_known

POSITIONAL = ("positional_only", "positional_or_keyword")
"""The kinds of parameters that take one argument by its place."""


def bind_arguments(
    definition: Definition | DerivedDefinition,
    name: str,
    seeds: int,
    arguments: Sequence[Any],
    keywords: Mapping[str, Any],
) -> list[Any]:
    """One value for each parameter (and the seeds), as Python binds arguments. Raises TypeCheckError."""
    base = primal(definition)
    function = base.function

    def error(message: str) -> RelayError:
        return TypeCheckError(message, function.span, help=LAST_IS_SEED if seeds else None)

    plain = not any(p.kind not in POSITIONAL for p in function.signature)
    if plain and not keywords and len(arguments) == len(function.parameters) + seeds:
        return list(arguments)
    cotangents: list[Any] = []
    if seeds:
        if len(arguments) < seeds:
            raise error(f"{name} needs {seeds} cotangent(s) after its arguments")
        arguments, cotangents = arguments[:-seeds], list(arguments[-seeds:])
    signature = function.signature or tuple(Parameter() for _ in function.parameters)
    both = list(zip(function.parameters, signature, strict=True))
    kinds = {s.kind: p.name for p, s in both if s.kind in ("var_positional", "var_keyword")}
    positional = [p.name for p, s in both if s.kind in POSITIONAL]
    least = sum(p.kind in POSITIONAL and p.default is None for p in signature)
    if len(arguments) > len(positional) and "var_positional" not in kinds:
        raise error(wrong_count(name, least, len(positional), len(arguments)))
    found: dict[str, Any] = dict(zip(positional, arguments, strict=False))
    if "var_positional" in kinds:
        found[kinds["var_positional"]] = tuple(arguments[len(positional) :])
    if "var_keyword" in kinds:
        found[kinds["var_keyword"]] = {}
    names = {p.name for p, s in both if s.kind in ("positional_or_keyword", "keyword_only")}
    for keyword, value in keywords.items():
        if keyword not in names and "var_keyword" in kinds:
            found[kinds["var_keyword"]][keyword] = value
            continue
        if keyword not in names:
            raise error(f"{name} has no parameter {keyword!r}")
        if keyword in found:
            raise error(f"{name} got two values for {keyword!r}")
        found[keyword] = value
    result = []
    for parameter, description in zip(function.parameters, signature, strict=True):
        if parameter.name in found:
            result.append(found[parameter.name])
        elif description.default is None:
            raise error(f"{name} needs a value for {parameter.name!r}")
        else:
            result.append(StaticArg(_default(base, description.default), default=True))
    return [*result, *cotangents]


def _default(definition: Definition, default: Atom) -> object:
    """The Python object that a parameter's default is."""
    match default:
        case Static(value):
            return value
        case Constant(value):
            return value.item()
        case Global(name):
            return definition.scope.resolve(name)
        case _:
            raise InternalError("the default of a decorated function is not an object")


def annotation(definition: Definition | DerivedDefinition, position: int) -> Type | None:
    """The written type of a parameter, or None. A list to differentiate by keeps its length: its gradient is a list
    of the same length."""
    parameters = primal(definition).function.parameters
    found = parameters[position].type if position < len(parameters) else None
    if not isinstance(found, StackType):
        return found
    return None if position in differentiated_positions(definition) else found


def annotated_types(function: Function) -> tuple[Type, ...]:
    """The types of all arguments, if annotations give them; else none."""
    parameters = function.parameters
    types = tuple(p.type for p in parameters if p.type is not None and is_known(p.type))
    return types if len(types) == len(parameters) else ()


def has_annotated_sizes(function: Function) -> bool:
    """True if annotations name sizes."""
    types = [p.type for p in function.parameters if p.type is not None]
    return any(v.kind is Kind.Dim for t in types for v in type_variables(t))


def differentiated_positions(definition: Definition | DerivedDefinition) -> Collection[int]:
    """The positions of the parameters by which a function is differentiated, at any order."""
    found: set[int] = set()
    while isinstance(definition, DerivedDefinition):
        wrt = derived_entity(definition).grad.wrt
        found.update(range(len(primal(definition).function.parameters)) if wrt is None else wrt)
        definition = definition.of
    return found
