"""Effect variables in function types: `e` of a function parameter, `effects(A)` of an abstract type."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from relay.ir.effects import Effects
from relay.ir.types import (
    Application,
    Constraint,
    Equation,
    FunctionType,
    Kind,
    Type,
    TypeId,
    Unknown,
    mentioned_definitions,
    prune,
)
from relay.typecheck.elaboration.checker import Checker
from relay.typecheck.elaboration.schemes.effect_inference import effects_in
from relay.typecheck.mapping import map_type
from relay.typecheck.unification import resolve


def name_effects(
    checker: Checker,
    type_: FunctionType,
    constraints: Sequence[Constraint],
    named: Iterable[Unknown],
    origins: Mapping[Unknown, Application],
) -> list[TypeId]:
    """Name the effects of function parameters, also of those that constraints make functions, and of called functions
    in fields of data parameters. Returns the variables.

    `named`: the variables of types that have names; `origins`: the origins of others.
    """
    _name_those_of_types(checker, set(named), origins)
    variables: list[TypeId] = []

    def name(effects: object) -> None:
        if isinstance(effects, Effects) and not effects.is_decided:
            effects.variable = f"e{len(variables) + 1}" if variables else "e"
            variables.append(TypeId(effects.variable, Kind.Effect))

    def named_function(function: FunctionType) -> FunctionType:
        name(function.effects)
        return function

    parameters = [resolve(p) for p in type_.parameters]
    values = [c.value for c in constraints if isinstance(c, Equation) and isinstance(c.value, FunctionType)]
    for part in (*parameters, *values):
        map_type(part, function=named_function)
    called = set(type_.effects.reachable_effects()) if isinstance(type_.effects, Effects) else set()
    for effects in checker.stored_effects(mentioned_definitions(parameters)):
        if effects in called:
            name(effects)
    return variables


def _name_those_of_types(checker: Checker, named: set[Unknown], origins: Mapping[Unknown, Application]) -> None:
    """The functions in a value of an unknown type have `effects(A)`. One that the function's type does not mention has
    those of what the value was made of."""
    done: set[Unknown] = set()
    while new := [u for u in checker.effects_of_any if u not in done]:
        for unknown in new:
            done.add(unknown)
            effects = checker.effects_of_any[unknown]
            origin = origins.get(unknown)
            if unknown in named and origin is None:
                effects.variable = f"effects({unknown.name})"
            for argument in () if origin is None else origin.arguments:
                known = prune(argument) if not isinstance(argument, tuple) else argument
                for part in effects_in(checker, resolve(known)) if isinstance(known, Type | Unknown) else ():
                    effects.include(part)
