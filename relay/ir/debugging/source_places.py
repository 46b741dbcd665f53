"""Source places: the expressions and variables of a text with their values in the elaborated programs.

Editors ask for the type at a place. A variable that is read has no place in the surface IR, and what an expression
means is known while its function is elaborated, so both are collected:

    with collecting_places() as places:
        definition = ..            # the front end tells which variable is where
        with places.of_program() as values:
            scheme(definition)     # elaboration tells what variables and expressions mean
    places.found(values)           # [(span, meaning), ..]
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from contextvars import ContextVar

from relay.errors import Span
from relay.ir.expr import Var


class SourceValues:
    """The values of the variables and expressions of one program, in the order of elaboration."""

    def __init__(self) -> None:
        self.variables: list[tuple[Var, object]] = []
        self.expressions: list[tuple[Span, object]] = []

    def mark(self) -> tuple[int, int]:
        """The state to return to by `forget`."""
        return len(self.variables), len(self.expressions)

    def forget(self, mark: tuple[int, int]) -> None:
        """Forget what was recorded later, since elaboration starts again."""
        del self.variables[mark[0] :], self.expressions[mark[1] :]

    def note(self, targets: Iterable[tuple[Var, object]], span: Span | None) -> None:
        """Record a binding: the values of its variables, and the place of its expression, if it has one value."""
        bound = list(targets)
        self.variables += bound
        if span is not None and len(bound) == 1:
            self.expressions.append((span, bound[0][1]))


class SourcePlaces:
    """The places of variables in texts."""

    def __init__(self) -> None:
        self._reads: dict[Var, dict[Span, None]] = {}
        self.values: SourceValues | None = None

    def read(self, span: Span, variable: Var) -> None:
        """A variable is read here."""
        self._reads.setdefault(variable, {})[span] = None

    @contextlib.contextmanager
    def of_program(self) -> Iterator[SourceValues]:
        """While a program is elaborated: what its variables and expressions mean."""
        around, self.values = self.values, SourceValues()
        try:
            yield self.values
        finally:
            self.values = around

    def meanings(self, values: SourceValues) -> list[tuple[Span, object]]:
        """The places of variables and expressions with their meanings. A place may have several: that of an expression
        in a function that is called with values of several types."""
        found = list(values.expressions)
        for variable, value in values.variables:
            if variable.span is not None and variable.span.end_column - variable.span.column == len(variable.name):
                found.append((variable.span, value))
            found += [(span, value) for span in self._reads.get(variable, ())]
        return found


_collected: ContextVar[SourcePlaces | None] = ContextVar("source places", default=None)


@contextlib.contextmanager
def collecting_places() -> Iterator[SourcePlaces]:
    """A context that collects the places of variables and expressions while functions are translated and elaborated."""
    places = SourcePlaces()
    token = _collected.set(places)
    try:
        yield places
    finally:
        _collected.reset(token)


def collected_places() -> SourcePlaces | None:
    """The collector of places; None if nobody wants them."""
    return _collected.get()


def collected_values() -> SourceValues | None:
    """The collector of values; None if nobody wants them."""
    places = _collected.get()
    return None if places is None else places.values
