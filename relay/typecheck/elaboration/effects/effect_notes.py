"""Effect bookkeeping of one elaboration: effects of the current function, and purity demands."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import TypeAlias

import attrs

from relay.errors import Label, Span, TypeCheckError
from relay.ir.definition import complete_definition
from relay.ir.effects import Effect, Effects, Purity
from relay.ir.expr import Atom, Var
from relay.ir.types import DataDefinition, FunctionType, Type, Unknown, mentioned_definitions
from relay.typecheck.elaboration.frame import Frame
from relay.typecheck.mapping import map_type

IMPURE = "write Fn[[A], B] for a function that may have effects"

READS = "reads a reference"

WRITES = "writes a reference"

DRAWS = "draws random numbers"

HAS_PARAMETERS = "has parameters"


Field: TypeAlias = tuple[DataDefinition, str, int]
"""A field of a data type: the name of its constructor, and its position there."""


class EffectNotes:
    """The effects of the functions of one elaboration."""

    def __init__(self) -> None:
        self.frame = Frame()  # where elaboration stands
        self.pure: list[tuple[Effects, Purity]] = []  # what must have none
        self._stored: dict[tuple[Field, int], Effects] = {}  # of functions in the fields of data types
        # what uses values whose types are not known yet, by calling a function in them, or a method of this name
        self.uses_of_values: list[tuple[Effects, Type, str | None]] = []
        self.effects_of_any: dict[Unknown, Effects] = {}  # of the functions in whatever a variable of types stands for

    def effect(self, kind: str, what: str, span: Span | None, reference: Atom | None = None) -> None:
        """Note an effect of the function that is being elaborated. `reference`: what it reads or writes."""
        self.effects.found.append(Effect(kind, what, span, reference if isinstance(reference, Var) else None))

    def uses_value(self, type_: Type, method: str | None = None) -> None:
        """Note that the function that is being elaborated calls what is in a value of this type, or a method of it, or
        reads references in it."""
        self.uses_of_values.append((self.effects, type_, method))

    def made_reference(self, reference: Atom) -> None:
        """Note a reference that the function at hand makes."""
        self.effects.own.add(reference)

    @property
    def effects(self) -> Effects:
        """Those of the function that is being elaborated."""
        return self.frame.effects

    @contextlib.contextmanager
    def at_frame(self, frame: Frame) -> Iterator[None]:
        """A context in which elaboration is at another place."""
        outer, self.frame = self.frame, frame
        try:
            yield
        finally:
            self.frame = outer

    def effects_of(self, effects: Effects) -> contextlib.AbstractContextManager[None]:
        """While the body of a function with these effects is elaborated."""
        return self.at_frame(attrs.evolve(self.frame, effects=effects))

    def with_effects(
        self,
        type_: Type,
        owner: Field | None = None,
        what: str = "this function",
        span: Span | None = None,
        call: Span | None = None,
    ) -> Type:
        """A written type whose functions may have effects, unless the annotation excludes them. Those of one `owner`
        are the same ones."""
        count = 0

        def with_fresh_effects(function: FunctionType) -> FunctionType:
            nonlocal count
            count += 1
            effects = Effects() if owner is None else self._stored.setdefault((owner, count), Effects())
            if function.effects == ():
                effects.pure = True
                self.pure.append((effects, Purity(what, span, IMPURE, call=call)))
            return attrs.evolve(function, effects=effects)

        return map_type(type_, function=with_fresh_effects)

    def stored_effects(self, definitions: Sequence[DataDefinition]) -> list[Effects]:
        """The effects of the functions in fields of data types, also of those in their fields."""
        found = dict.fromkeys(definitions)
        pending = list(definitions)
        while pending:
            for constructor in complete_definition(pending.pop()).constructors:
                new = [d for d in mentioned_definitions(constructor.fields) if d not in found]
                found.update(dict.fromkeys(new))
                pending += new
        return [e for (owner, _), e in self._stored.items() if owner[0] in found]

    def impurities(self) -> Iterator[TypeCheckError]:
        """The effects of what must have none."""
        told: set[tuple[Purity, Effect]] = set()
        for effects, demand in self.pure:
            found = demand.first_violation(effects)
            if found is not None and (demand, found) not in told:
                told.add((demand, found))
                said = "declared pure" if demand.only is None else "here"
                labels = (Label(demand.span, said),) if demand.span is not None else ()
                if demand.call not in (None, found.span):
                    labels = (Label(demand.call, "it is passed here"), *labels)
                message = f"{demand.what} must be pure, but it {found.what}"
                yield TypeCheckError(message, found.span, labels=labels, help=demand.help)
