"""Loop-invariant parameters of a surface loop, found from names alone, before inference.

A function that a loop does not change stays known to the checker, with all its uses; one that it changes is a value.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from relay.ir.expr import (
    Atom,
    Binding,
    Exit,
    Expr,
    If,
    Loop,
    LoopLabel,
    MakeTuple,
    Next,
    Project,
    Static,
    Terminator,
    Var,
)
from relay.ir.surface import Annotated, ForEach, Index, Unpack
from relay.ir.traverse import all_blocks, walk, yields

Place: TypeAlias = tuple[int, ...]
"""The path to a component of a tuple."""

_Known: TypeAlias = "tuple[Var, Place] | None"


class LoopInvariants:
    """The parameters of a loop that its rounds do not change."""

    def __init__(self, loop: Loop | ForEach) -> None:
        self._loop = loop
        self._defined: dict[Var, tuple[Binding, int]] = {}
        self._parameters: dict[Var, tuple[Loop | ForEach, int]] = {}
        self._ends: dict[LoopLabel, list[Terminator]] = {}
        self._seen: set[tuple[Var, Place]] = set()
        for binding in walk(loop.body):
            self._defined.update((target, (binding, i)) for i, target in enumerate(binding.targets))
            if isinstance(binding.value, Loop | ForEach):
                inner = binding.value
                self._parameters.update((p, (inner, i)) for i, p in enumerate(inner.parameters))
        for block in all_blocks(loop.body):
            if isinstance(block.terminator, Next | Exit):
                self._ends.setdefault(block.terminator.label, []).append(block.terminator)

    def keeps(self, position: int, place: Place) -> bool:
        """True if a component of a parameter is in each round the same as before the loop."""
        return self._keeps(self._loop, position, place)

    def _keeps(self, loop: Loop | ForEach, position: int, place: Place) -> bool:
        own = (loop.parameters[position], place)
        handed = [
            end.values[position]
            for end in self._ends.get(loop.label, ())
            if isinstance(end, Next) or (isinstance(end, Exit) and isinstance(loop, ForEach))
        ]
        return all(self._origin(atom, place, loop.parameters[position]) == own for atom in handed)

    def _origin(self, atom: Atom, place: Place, root: Var) -> _Known:
        """The origin of a component of a value: a component of a variable of which no more is known."""
        if not isinstance(atom, Var) or atom is root:
            return (atom, place) if isinstance(atom, Var) else None
        if (atom, place) in self._seen:
            return None
        self._seen.add((atom, place))
        found: _Known = (atom, place)
        if atom in self._parameters:
            loop, position = self._parameters[atom]
            if self._keeps(loop, position, place):
                found = self._origin(loop.initial[position], place, root)
        elif atom in self._defined:
            binding, target = self._defined[atom]
            found = self._value_origin(binding.value, target, place, root)
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
                left = [e.values[target] for e in self._ends.get(label, ()) if isinstance(e, Exit)]
                return self._common_origin(left, place, root)
            case _:
                return None

    def _common_origin(self, atoms: Sequence[Atom], place: Place, root: Var) -> _Known:
        found = {self._origin(atom, place, root) for atom in atoms}
        return found.pop() if len(found) == 1 else None
