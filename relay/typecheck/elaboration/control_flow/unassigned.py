"""Variables without a value: what one is before a loop that assigns it first, and where only some paths do.

A `for` whose rounds are known to be at least one assigns it. Reading it where there may have been none is an error.
"""

from __future__ import annotations

from typing import Any

import attrs

from relay.errors import Label, Span, TypeCheckError
from relay.typecheck.elaboration.abstract_values import AbstractValue, PythonObject


@attrs.frozen(eq=False)
class NoValue:
    """The lack of a value, with what to say where it is read."""

    name: str
    span: Span | None
    why: str

    def error(self, span: Span | None) -> TypeCheckError:
        """The error of reading it."""
        labels = () if self.span is None else (Label(self.span, "this loop"),)
        message = f"`{self.name}` may have no value here: {self.why}"
        return TypeCheckError(message, span, labels=labels, help=f"give `{self.name}` a value before the loop")


def no_value(entity: Any) -> NoValue | None:
    """The lack of a value that an entity is."""
    return entity.value if isinstance(entity, PythonObject) and isinstance(entity.value, NoValue) else None


def before_loop(name: str, span: Span | None) -> PythonObject:
    """A variable that a loop is the first to assign."""
    return PythonObject(NoValue(name, span, "only the loop assigns it, and the loop may end before that"))


def on_some_paths(lack: NoValue) -> AbstractValue:
    """A variable that some of the paths that meet have assigned."""
    return PythonObject(attrs.evolve(lack, why="one path assigns it and another one does not"))
