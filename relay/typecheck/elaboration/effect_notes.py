"""What an elaboration notes of effects: those of the function at hand, and which functions must have none."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import attrs

from relay.errors import Label, Span, TypeCheckError
from relay.ir.effects import Effect, Effects, Purity
from relay.ir.types import FunctionType, Type
from relay.typecheck.mapping import map_type

IMPURE = "write Fn[[A], B] for a function that may have effects"

WRITES = "writes a reference"


class EffectNotes:
    """The effects of the functions of one elaboration."""

    def __init__(self) -> None:
        self.effects = Effects()  # of the function that is being elaborated
        self.pure: list[tuple[Effects, Purity]] = []  # what must have none
        self._stored: dict[object, Effects] = {}  # of functions in the fields of data types

    def effect(self, kind: str, what: str, span: Span | None) -> None:
        """Note an effect of the function that is being elaborated."""
        self.effects.found.append(Effect(kind, what, span))

    @contextlib.contextmanager
    def effects_of(self, effects: Effects) -> Iterator[None]:
        """While the body of a function with these effects is elaborated."""
        outer, self.effects = self.effects, effects
        try:
            yield
        finally:
            self.effects = outer

    def with_effects(
        self, type_: Type, owner: object = None, what: str = "this function", span: Span | None = None
    ) -> Type:
        """A written type whose functions may have effects, unless it says that they have none. Those of one `owner` are
        the same ones."""
        count = 0

        def opened(function: FunctionType) -> FunctionType:
            nonlocal count
            count += 1
            effects = Effects() if owner is None else self._stored.setdefault((owner, count), Effects())
            if function.effects == ():
                effects.pure = True
                self.pure.append((effects, Purity(what, span, IMPURE)))
            return attrs.evolve(function, effects=effects)

        return map_type(type_, function=opened)

    def impurities(self) -> Iterator[TypeCheckError]:
        """The effects of what must have none."""
        told: set[tuple[Purity, Effect]] = set()
        for effects, demand in self.pure:
            found = demand.broken(effects)
            if found is not None and (demand, found) not in told:
                told.add((demand, found))
                said = "declared pure" if demand.only is None else "here"
                labels = (Label(demand.span, said),) if demand.span is not None else ()
                message = f"{demand.what} must be pure, but it {found.what}"
                yield TypeCheckError(message, found.span, labels=labels, help=demand.help)
