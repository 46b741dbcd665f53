"""Places: what is known of the variables of a function, and its mistakes."""

from __future__ import annotations

import attrs

from relay.errors import Span
from relay.ir.expr import Var
from relay.typecheck.elaboration.aliasing.objects import NONE, Change, Objects, Step


@attrs.frozen(eq=False)
class Slot:
    """The place that a value was read from: a step of a variable's objects."""

    objects: Objects
    step: Step
    holder: Var | None = None


@attrs.frozen(eq=False)
class Source:
    """The iterable of a loop: objects, or several of these side by side (`zip`), the first of which is the number
    (`is_counted`: `enumerate`), or the key."""

    objects: Objects = NONE
    several: tuple[Source | None, ...] = ()
    is_counted: bool = False


@attrs.frozen(eq=False)
class Place:
    """The knowledge of a variable: the objects that it may be, since when its value is theirs, the change that it has
    missed, and where it was read. `source`: it is the element of that, at a step."""

    objects: Objects
    time: int
    missed: Change | None = None
    slot: Slot | None = None
    source: Source | None = None
    step: Step | None = None


@attrs.frozen(eq=False)
class Mistake:
    """A read of an old value: of which variable, where, and the change that it has missed."""

    name: str
    span: Span | None
    change: Change
    what: str = "read"
