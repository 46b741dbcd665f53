"""The exception of a shape rule that needs more information."""

from __future__ import annotations

from relay.ir.sizes.facts import DimConstraint
from relay.ir.types import Unknown


class Undetermined(Exception):
    """A shape rule cannot decide yet: it met dims or shapes that the checker does not know. Raise it to be asked again.

    `unknowns` are the solver variables to wait for; empty where only a call can decide. `question` is what was asked
    of dims, if that is known.
    """

    def __init__(self, *unknowns: Unknown, question: DimConstraint | None = None) -> None:
        super().__init__("not determined yet" if question is None else f"it is not known whether {question}")
        self.unknowns = unknowns
        self.question = question
