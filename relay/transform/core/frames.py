"""Frames: the state of following one function body, and the protocol by which its calls are resolved."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import attrs

from relay.errors import Span
from relay.ir.builder import BlockBuilder
from relay.ir.expr import Call, Function, LoopLabel, Var
from relay.ir.types import Type
from relay.transform.core.incoming_paths import Join
from relay.transform.core.joins import LoopExits
from relay.transform.core.static_values import StaticValue


class CallResolver(Protocol):
    """A maker of the functions that a body calls."""

    def call(
        self, callee: StaticValue, arguments: list[StaticValue], span: Span | None, out: BlockBuilder
    ) -> tuple[Call, Type]:
        """The call of a function value, and the type of its result."""
        ...

    def inlined_body(self, callee: StaticValue, arguments: list[StaticValue]) -> InlinedBody | None:
        """The body to put in place of a call whose result holds functions, or None if it must be called."""
        ...


@attrs.frozen(eq=False)
class InlinedBody:
    """A body in place of its call."""

    function: Function
    values: dict[Var, StaticValue]
    returns_once: bool
    leave: Callable[[], None]


@attrs.define(eq=False)
class ReturnTarget:
    """The target of an `Exit` from a function: its label and the type of its result."""

    label: LoopLabel
    result: Type


@attrs.define(eq=False)
class Frame:
    """One function body being followed: what its variables are, and what meets where."""

    values: dict[Var, StaticValue]
    memory: dict[object, dict[object, object]]
    labels: dict[LoopLabel, ReturnTarget | LoopExits] = attrs.field(factory=dict)
    yields: list[Join] = attrs.field(factory=list)
