"""Loop-invariant parameters of a surface loop, found from names alone, before inference.

A function that a loop does not change stays known to the checker, with all its uses; one that it changes is a value.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from relay.ir.expr import (
    Atom,
    Expr,
    If,
    Loop,
    MakeTuple,
    Project,
    Static,
    Var,
)
from relay.ir.surface import Annotated, ForEach, Index, Unpack
from relay.ir.traverse import yields
from relay.typecheck.elaboration.control_flow.round_start import RoundStart

Place: TypeAlias = tuple[int, ...]
"""The path to a component of a tuple."""

_Known: TypeAlias = "tuple[Var, Place] | None"


class LoopInvariants:
    """The parameters of a loop that its rounds do not change."""

    def __init__(self, start: RoundStart) -> None:
        self._start = start
        self._seen: set[tuple[Var, Place]] = set()

    def keeps(self, position: int, place: Place) -> bool:
        """True if a component of a parameter is in each round the same as before the loop."""
        return self._keeps(self._start.loop, position, place)

    def _keeps(self, loop: Loop | ForEach, position: int, place: Place) -> bool:
        own = (loop.parameters[position], place)
        handed = self._start.flow.round_ends(loop, position)
        return all(self._origin(atom, place, loop.parameters[position]) == own for atom in handed)

    def _origin(self, atom: Atom, place: Place, root: Var) -> _Known:
        """The origin of a component of a value: a component of a variable of which no more is known."""
        if not isinstance(atom, Var) or atom is root:
            return (atom, place) if isinstance(atom, Var) else None
        if (atom, place) in self._seen:
            return None
        self._seen.add((atom, place))
        found: _Known = (atom, place)
        flow = self._start.flow
        if atom in flow.carried:
            loop, position = flow.carried[atom]
            if self._keeps(loop, position, place):
                found = self._origin(loop.initial[position], place, root)
        elif atom in flow.origins:
            value, target = flow.origins[atom]
            found = self._value_origin(value, target, place, root)
        self._seen.discard((atom, place))
        return found

    def _value_origin(self, value: Expr, target: int, place: Place, root: Var) -> _Known:
        match value:
            case Var() | Annotated(Var()):
                return self._origin(value.value if isinstance(value, Annotated) else value, place, root)
            case MakeTuple(items) if place and place[0] < len(items):
                return self._origin(items[place[0]], place[1:], root)
            case Project(whole, index) | Index(whole, (Static(int() as index),)) if index >= 0:
                return self._origin(whole, (index, *place), root)
            case Unpack(whole, _):
                return self._origin(whole, (target, *place), root)
            case If():
                return self._common_origin([values[target] for values in yields(value)], place, root)
            case ForEach(parameters=parameters, initial=initial) if target < len(parameters):
                kept = self._keeps(value, target, place)
                return self._origin(initial[target], place, root) if kept else None
            case Loop(label):
                return self._common_origin(self._start.flow.results(label, target), place, root)
            case _:
                return None

    def _common_origin(self, atoms: Sequence[Atom], place: Place, root: Var) -> _Known:
        found = {self._origin(atom, place, root) for atom in atoms}
        return found.pop() if len(found) == 1 else None
