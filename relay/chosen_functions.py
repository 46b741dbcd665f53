"""Results of calls that hold functions of which only the run knows which they are."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import attrs

from relay.errors import CompileError
from relay.ir.definition import Definition, DerivedDefinition
from relay.ir.expr import Parameter
from relay.ir.structure import build
from relay.ir.types import FunctionType, TupleType, Type, show
from relay.lowering import Lowered
from relay.returned import identifier, written
from relay.typecheck.elaboration.returned_functions import holds_functions

Run = Callable[[str, int | None], Any]
"""Runs `r = f(a); return <expression of r>` for the arguments a of a call; with a number of parameters, what it returns
is a function of so many that calls the expression's value."""


def chosen(
    of: Definition | DerivedDefinition,
    name: str,
    given: Sequence[tuple[str, Parameter]],
    result: str,
    parameters: int | None,
) -> Definition:
    """What `Run` runs, for a function of which some parameters are given."""
    listed = ", ".join(parameter for parameter, _ in given)
    passed = ", ".join(f"{p}={p}" if s.kind == "keyword_only" else p for p, s in given)
    if parameters is None:
        body = f"    r__ = f__({passed})\n    return {result}\n"
    else:
        more = ", ".join(f"x{i}__" for i in range(parameters))
        inner = f"        r__ = f__({passed})\n        return {result}({more})\n"
        body = f"    def {identifier(name)}({more}):\n{inner}    return {identifier(name)}\n"
    made = written(f"{identifier(name)}_", listed, body, {"f__": of})
    signature = tuple(Parameter(static=s.static) for _, s in given)
    return attrs.evolve(made, function=attrs.evolve(made.function, signature=signature))  # type: ignore[misc]


def chosen_result(lowered: Lowered, run: Run) -> Any:
    """The result of a call, which holds functions that only the run chooses.

    Each of them keeps the arguments, and a call of it chooses anew: `lambda x: f(a)(x)`. That is the same as long as
    there are no effects but failing. Raises CompileError for others, and for functions in data and in lists.
    """
    entry = lowered.typed.main
    if not lowered.effects <= {"assert"}:
        what = "prints" if "io" in lowered.effects else "uses references"
        raise CompileError(
            f"{entry.name} returns a function that only the run chooses, and it or that function {what}",
            entry.span,
            help="return both functions and what decides between them, and choose where it is called",
        )
    leaves = list(_leaves(lowered.result, ""))
    for path, part in leaves:
        if not isinstance(part, FunctionType) and holds_functions(part):
            raise CompileError(
                f"{entry.name} returns functions in a value of type {show(part)}{f', {path}' if path else ''}",
                entry.span,
                help="return them alone, or in tuples, lists of a known length, dicts and records",
            )
    plain = [path for path, part in leaves if not isinstance(part, FunctionType)]
    values = iter(run(f"({''.join(f'r__{path}, ' for path in plain)})", None) or ())

    def made(part: Type, path: str) -> Any:
        match part:
            case TupleType(items, form) if items:
                parts = tuple(made(item, path + key) for item, key in zip(items, _keys(part), strict=True))
                return parts if form is None else build(form, parts)
            case FunctionType(parameters):
                return run(f"r__{path}", len(parameters))
            case _:
                return next(values)

    return made(lowered.result, "")


def _leaves(type_: Type, path: str) -> Iterator[tuple[str, Type]]:
    """The parts of a structure, with how they are read."""
    if isinstance(type_, TupleType) and type_.items:
        for item, key in zip(type_.items, _keys(type_), strict=True):
            yield from _leaves(item, path + key)
    else:
        yield path, type_


def _keys(type_: TupleType) -> list[str]:
    form = type_.form
    if form is None or not form.names:
        return [f"[{index}]" for index in range(len(type_.items))]
    return [f"[{name!r}]" if form.cls is dict else f".{name}" for name in form.names]
