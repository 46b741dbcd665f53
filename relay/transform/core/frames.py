"""What following a function body keeps, and what it asks of those around it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import attrs

from relay.errors import Span
from relay.ir.expr import Call, Function, LoopLabel, Var
from relay.ir.types import Type
from relay.transform.core.block_builder import Draft, Join
from relay.transform.core.joins import Ways
from relay.transform.core.static_values import StaticValue


class Caller(Protocol):
    """What makes the functions that a body calls."""

    def call(
        self, callee: StaticValue, arguments: list[StaticValue], span: Span | None, out: Draft
    ) -> tuple[Call, Type]:
        """The call of a function value, and the type of its result."""
        ...

    def inlined(self, callee: StaticValue, arguments: list[StaticValue]) -> Inlined | None:
        """The body to put in place of a call whose result holds functions, or None if it must be called."""
        ...


@attrs.frozen(eq=False)
class Inlined:
    """A body that stands in place of its call."""

    function: Function
    values: dict[Var, StaticValue]
    returns_once: bool
    leave: Callable[[], None]


@attrs.define(eq=False)
class Returns:
    """Where an `Exit` from a function leads: its label and the type of its result."""

    label: LoopLabel
    result: Type


@attrs.define(eq=False)
class Frame:
    """One function body being followed: what its variables are, and what meets where."""

    values: dict[Var, StaticValue]
    memory: dict[object, dict[object, object]]
    labels: dict[LoopLabel, Returns | Ways] = attrs.field(factory=dict)
    yields: list[Join] = attrs.field(factory=list)
