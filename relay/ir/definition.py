"""A function of the surface IR together with the Python names that it can see: what the front end hands on."""

from __future__ import annotations

from typing import Protocol

import attrs

from relay.ir.expr import Function, Grad

MISSING = object()
"""What `Scope.resolve` returns for a name that is not defined."""


class Scope(Protocol):
    """The Python names around a function, looked up when they are needed, so that later definitions count."""

    def resolve(self, name: str) -> object:
        """The object that the name means now (closure, then globals, then builtins), or MISSING."""
        ...

    def names(self) -> list[str]:
        """All visible names, for suggestions."""
        ...


@attrs.frozen(eq=False)
class Definition:
    """A decorated function: its surface IR, and its names. Objects that stand for one carry it as `__relay__`."""

    function: Function
    scope: Scope


@attrs.frozen(eq=False)
class DerivedDefinition:
    """`relay.grad(f, ..)` applied outside of a decorated function: the derivative of another definition."""

    of: Definition | DerivedDefinition
    grad: Grad  # its `function` is not used; wrt may hold names
    wrt: tuple[int | str, ...] | None
