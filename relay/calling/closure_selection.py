"""Results with functions that are selected at run time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import attrs
import numpy as np

from relay.calling.arguments import ArgumentDescription
from relay.calling.closures import ClosureOwner, closure_class, identifier, text_definition
from relay.compilation.stages import CompiledSignature
from relay.ir.definition import Definition, DerivedDefinition
from relay.ir.expr import Function, Module, Parameter
from relay.ir.structure import build, part_names
from relay.ir.types import FunctionType, TensorType, TupleType, Type
from relay.transform.core.specialization import export_closures
from relay.typecheck.elaboration import Elaborated, ScalarArg, StaticArg
from relay.typecheck.elaboration.closures.returned_functions import holds_functions

Run = Callable[[str, int | None], Any]
"""Runs `r = f(a); return <expression of r>` for the arguments a of a call; with a number of parameters, what it returns
is a function of as many that calls the expression's value."""


def selection_definition(
    of: Definition | DerivedDefinition,
    name: str,
    given: Sequence[tuple[str, Parameter]],
    result: str,
    parameters: int | None,
) -> Definition:
    """The definition that `Run` runs, for a function of which some parameters are given."""
    listed = ", ".join(parameter for parameter, _ in given)
    forms = {"keyword_only": "{0}={0}", "var_positional": "*{0}", "var_keyword": "**{0}"}
    passed = ", ".join(forms.get(s.kind, "{0}").format(p) for p, s in given)
    if parameters is None:
        body = f"    r__ = f__({passed})\n    return {result}\n"
    else:
        more = ", ".join(f"x{i}__" for i in range(parameters))
        inner = f"        r__ = f__({passed})\n        return {result}({more})\n"
        body = f"    def {identifier(name)}({more}):\n{inner}    return {identifier(name)}\n"
    made = text_definition(f"{identifier(name)}_", listed, body, {"f__": of})
    signature = tuple(Parameter(static=s.static) for _, s in given)
    return attrs.evolve(made, function=attrs.evolve(made.function, signature=signature))  # type: ignore[misc]


def with_dtypes(values: Sequence[Any], described: Sequence[ArgumentDescription], main: Function) -> list[Any]:
    """The arguments of a call, Python's numbers as scalars of the dtypes that they have in its program."""
    parameters, found = iter(main.parameters), list(values)
    for position, description in enumerate(described):
        type_ = None if isinstance(description.argument, StaticArg) else next(parameters).type
        if isinstance(description.argument, ScalarArg) and isinstance(type_, TensorType):
            found[position] = np.asarray(found[position], type_.dtype)
    return found


def needs_defunctionalization(made: Elaborated) -> bool:
    """True if a program returns functions that are selected at run time, and which it cannot select again: it or one
    of them has other effects than failing, or they are in data, references and lists, which are not searched."""
    if made.returned is not None or not holds_functions(made.result):
        return False
    effects = {effect.kind for effect in made.effects} | made.effects_of_functions
    inside = (part for _, part in _leaves(made.result, "") if not isinstance(part, FunctionType))
    return not effects <= {"assert"} or any(map(holds_functions, inside))


def defunctionalized_module(made: Elaborated, maker: ClosureOwner, effects: frozenset[str]) -> Module:
    """The program with values of data types in place of the functions in its result, which Python calls by programs of
    their own (`ReturnedFunction`). Raises CompileError for functions that take functions."""
    found = export_closures(made.module)
    for definition in found.module.data:
        if definition.origin is None:
            applied = found.applied.get(definition)
            definition.origin = closure_class(definition, found.module, applied, effects, maker)
    return found.module


def chosen_result(lowered: CompiledSignature, run: Run) -> Any:
    """The result of a call, which holds functions that are selected at run time.

    Each of them keeps the arguments, and a call of it chooses again: `lambda x: f(a)(x)`. That is the same as long as
    there are no effects but failing.
    """
    leaves = list(_leaves(lowered.result, ""))
    plain = [path for path, part in leaves if not isinstance(part, FunctionType)]
    values = iter(run(f"({''.join(f'r__{path}, ' for path in plain)})", None) or ())

    def build_part(part: Type, path: str) -> Any:
        match part:
            case TupleType(items, form) if items:
                names = part_names(form, len(items))
                return build(form, [build_part(item, path + key) for item, key in zip(items, names, strict=True)])
            case FunctionType(parameters):
                return run(f"r__{path}", len(parameters))
            case _:
                return next(values)

    return build_part(lowered.result, "")


def _leaves(type_: Type, path: str) -> Iterator[tuple[str, Type]]:
    """The parts of a structure, with how they are read."""
    if isinstance(type_, TupleType) and type_.items:
        for item, key in zip(type_.items, part_names(type_.form, len(type_.items)), strict=True):
            yield from _leaves(item, path + key)
    else:
        yield path, type_
