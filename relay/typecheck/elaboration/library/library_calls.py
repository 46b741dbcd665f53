"""Calls of functions that are written in the language (`relay/frontend/library.py`), like the user's own."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import attrs

from relay.errors import Span
from relay.ir.definition import Definition
from relay.typecheck.elaboration.abstract_values import (
    AbstractValue,
    Context,
    DependsOnPoison,
    DynamicValue,
    GlobalFunction,
    Handler,
    Progression,
    Range,
    TypedBlockBuilder,
    Zip,
)
from relay.typecheck.elaboration.checker import Checker
from relay.typecheck.elaboration.members.iterated import iterated
from relay.typecheck.elaboration.values import texts
from relay.typecheck.elaboration.values.data import is_string_of_run
from relay.typecheck.elaboration.values.expansion import expand

_library: Callable[[str], Definition]


def use_library(found: Callable[[str], Definition]) -> None:
    """Say where the functions that are written in the language come from."""
    global _library
    _library = found


def library_function(name: str) -> Definition:
    """One of them."""
    return _library(name)


def call_library(
    checker: Checker, out: TypedBlockBuilder, name: str, arguments: Sequence[AbstractValue], span: Span | None
) -> AbstractValue:
    """Call one of them."""
    return checker.engine.call_function(checker, out, GlobalFunction(library_function(name)), arguments, (), span)


def written_in_place(
    checker: Checker,
    out: TypedBlockBuilder,
    definition: Definition,
    arguments: Sequence[AbstractValue],
    span: Span | None,
) -> AbstractValue:
    """The result of one of them, elaborated where it is called: arguments may be static values, as a range
    is. It returns at its end only."""
    function = definition.function
    context = Context(dict(zip(function.parameters, arguments, strict=True)), {}, definition.scope)
    returned: list[AbstractValue] = []

    def on_exit(place: TypedBlockBuilder, entities: tuple[AbstractValue, ...], at: Span | None) -> None:
        returned.extend(entities)

    context.handlers[function.label] = Handler(function.label, None, on_exit, len(checker.frame.scopes))
    frame = attrs.evolve(checker.frame, calls=(*checker.frame.calls, (function.name, span)))
    with checker.at_frame(frame):
        checker.engine.elaborate_block(checker, context, function.body, out, None)
    if not returned:  # which has been reported
        raise DependsOnPoison
    (result,) = returned
    return result


def list_elements(checker: Checker, out: TypedBlockBuilder, xs: AbstractValue, span: Span | None) -> AbstractValue:
    """`list(xs)` of what a `for` goes through: `[x for x in xs]`."""
    return written_in_place(checker, out, library_function("listed__"), [xs], span)


def as_sequence(
    checker: Checker, out: TypedBlockBuilder, entity: AbstractValue, span: Span | None, in_any_order: bool = False
) -> AbstractValue:
    """The argument of a function of all elements: a tensor, a tuple or a list. `in_any_order`: the result does not
    depend on it, so that it may be a set."""
    entity = iterated(checker, out, entity, span, in_any_order)
    if isinstance(entity, Range | Zip | Progression):
        return list_elements(checker, out, entity, span)
    if is_string_of_run(entity):
        return texts.characters(checker, out, entity, span)
    return expand(checker, out, entity, span) if isinstance(entity, DynamicValue) else entity
