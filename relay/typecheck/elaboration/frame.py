"""The frame: the current functions, branches, loops and blocks of elaboration, and the owner of effects.

A frame is immutable. Entering a function, an arm or a loop replaces the checker's frame, and leaving it restores the
previous one (`Checker.within`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from relay.errors import Label, Span
from relay.ir.dims import DataDependentDim, Dim
from relay.ir.effects import Effects
from relay.ir.expr import LoopLabel
from relay.typecheck.elaboration.abstract_values import LocalFunction, TypedBlockBuilder

if TYPE_CHECKING:
    from relay.typecheck.elaboration.checker import Instance
    from relay.typecheck.elaboration.effects.evidence import Evidence

_SHOWN_CALLS = 8


@attrs.frozen(eq=False)
class Frame:
    """The current place of elaboration."""

    effects: Effects = attrs.field(factory=Effects)  # of the function that is being elaborated
    active: tuple[Instance, ...] = ()  # the functions that are being elaborated, the innermost last
    calls: tuple[tuple[str, Span | None], ...] = ()  # of them, with their names
    scopes: tuple[tuple[TypedBlockBuilder, list[DataDependentDim]], ...] = ()
    """The blocks around, and the data-dependent sizes that each has made so far."""

    maybe: int = 0  # in how many branches and loops that may not run
    chosen_by_sizes: int = 0  # in how many arms that a condition on sizes chooses
    chosen_by_call: int = 0  # in how many arms that a call chooses, in a scheme
    filling: tuple[LoopLabel, ...] = ()  # loops around that fill lists, and might be copied for each round
    copies: int = 1  # of how many copies of loops' bodies this is one
    axes: tuple[tuple[str, Dim], ...] = ()  # of examples, around: their names and sizes, the innermost last
    evidence: tuple[Evidence, ...] = ()  # of handlers that the function at hand sees

    def labels(self) -> tuple[Label, ...]:
        """The places from which the function under elaboration was called, innermost first."""
        innermost = reversed(self.calls[-_SHOWN_CALLS:])
        written = [(name, span) for name, span in innermost if span is not None and not span.is_internal]
        return tuple(Label(span, f"in this call of {name}") for name, span in written)

    def of_function(self, instance: Instance, name: str, span: Span | None) -> Frame:
        """In the body of a function that is called here."""
        calls = (*self.calls, (name, span))
        seen = instance.code.evidence if isinstance(instance.code, LocalFunction) else ()
        return attrs.evolve(self, effects=instance.effects, active=(*self.active, instance), calls=calls, evidence=seen)

    def in_block(self, out: TypedBlockBuilder) -> Frame:
        """In a block that is being written. (Written out, for there are many blocks.)"""
        scopes = (*self.scopes, (out, list[DataDependentDim]()))
        return Frame(
            self.effects, self.active, self.calls, scopes, self.maybe,
            self.chosen_by_sizes, self.chosen_by_call, self.filling, self.copies, self.axes, self.evidence,
        )  # fmt: skip

    def outermost_frame(self) -> Frame:
        """As if nothing was around."""
        return attrs.evolve(self, active=(), maybe=0, chosen_by_sizes=0)
