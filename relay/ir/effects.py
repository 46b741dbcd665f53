"""What a call of a function does beside giving its result: `io` (it prints), `ref` (it reads or writes references),
`assert` (it may fail in an assertion).

A function's type holds the names of its effects; while a program is checked it holds `Effects`, which are known when
all that is called has been looked at. Types that differ in them only are equal.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeAlias

import attrs

from relay.errors import Span


@attrs.frozen
class Effect:
    """One thing that a program does: `what` says it of the function, "prints"."""

    kind: str
    what: str
    span: Span | None


@attrs.define(eq=False)
class Effects:
    """The effects of a function: its own, and those of the functions that it calls, in the order of the text.

    A function that is a parameter has whatever effects it is given with: a `variable` has a name, which stands for
    them in the types of functions. One that is `pure` must have none.
    """

    found: list[Effect | Effects] = attrs.field(factory=list)
    variable: str | None = None
    pure: bool = False

    def include(self, other: Effects) -> None:
        """Add all effects of another function, also those that are found later."""
        self.found.append(other)

    def all(self) -> list[Effect]:
        """Every effect once for each place."""
        return list(dict.fromkeys(part for part in self._parts() if isinstance(part, Effect)))

    def __iter__(self) -> Iterator[str]:
        """The names of the effects, and of variables that stand for others."""
        parts = list(self._parts())
        yield from sorted({part.kind for part in parts if isinstance(part, Effect)})
        yield from sorted({p.variable for p in parts if isinstance(p, Effects) and p.variable is not None})

    def names(self) -> EffectNames:
        """The effects as a finished type has them."""
        found = tuple(self)
        must_be_pure = any(isinstance(part, Effects) and part.pure for part in self._parts())
        return found if found or must_be_pure else None

    def _parts(self) -> Iterator[Effect | Effects]:
        seen: set[int] = set()
        pending: list[Effect | Effects] = [self]
        while pending:
            part = pending.pop()
            if isinstance(part, Effects):
                if id(part) in seen:
                    continue
                seen.add(id(part))
                pending += reversed(part.found)
            yield part


@attrs.frozen
class Purity:
    """A demand on a function, `what`, to have no effects: where that is said, and what may be done. `only`: the one
    thing that it must not do."""

    what: str
    span: Span | None
    help: str
    only: str | None = None

    def broken(self, effects: Effects) -> Effect | None:
        """The first effect that there must not be."""
        return next((e for e in effects.all() if self.only in (None, e.what)), None)


EffectNames: TypeAlias = Iterable[str] | None
"""The effects in a type: None where nothing is said, `()` where there must be none."""


def show_effects(effects: EffectNames) -> str:
    """` ! {io, ref}`; nothing where there are none, but ` ! {}` where there must be none."""
    names = effects.names() if isinstance(effects, Effects) else effects
    return "" if names is None else f" ! {{{', '.join(names)}}}"
