"""Sources of numbers: which numbers of Python, among the arguments of a call, a value is computed from.

Where a value must be known at compile time (an axis, a stride, an extent in `reshape`) and comes from such arguments,
the program is elaborated again with these as static arguments, as `torch.compile` specializes to integers.
"""

from __future__ import annotations

from typing import TypeAlias

import attrs

from relay.errors import TypeCheckError
from relay.ir.expr import Expr, MakeTuple, Project, Var
from relay.ir.traverse import NESTING, operands
from relay.ir.types import TensorType, Type, prune
from relay.typecheck.elaboration.abstract_values import AbstractValue, DynamicValue, Tuple
from relay.typecheck.elaboration.restarts import ArgumentPlace, Assumptions, Restart

Places = frozenset[ArgumentPlace]


class ArgumentsSpecialize(Restart):
    """Numbers and booleans of Python among the arguments are needed at compile time. The caller gives them as static
    arguments; `error` says where they are needed."""

    def __init__(self, places: Places, error: TypeCheckError | None) -> None:
        super().__init__()
        self.places, self.error = places, error

    def note(self, decisions: Assumptions) -> None:
        raise self


Part: TypeAlias = tuple[ArgumentPlace, tuple[int, ...]]
"""An argument that a value comes from, and where in the value it stands: the path that is still to be read."""


@attrs.frozen(eq=False)
class ArgumentSources:
    """The candidates, and what is computed from them."""

    candidates: Places
    _parts: dict[object, frozenset[Part]] = attrs.field(factory=dict)

    def begin(self, parameter: Var, position: int) -> None:
        """Note a parameter of the program."""
        self._note(parameter, frozenset((place, place[1]) for place in self.candidates if place[0] == position))

    def sources_of(self, value: object) -> Places:
        """The arguments that a value, or a size, comes from."""
        return frozenset(place for place, _ in self._parts.get(value, ()))

    def pass_on(self, target: object, source: object) -> None:
        """Note that a variable, or a size, is another value."""
        self._note(target, self._parts.get(source, frozenset()))

    def enter(self, target: object, entity: AbstractValue) -> None:
        """Note that what a parameter gets comes from this value."""
        if self._parts:
            self._note(target, self._parts_of(entity))

    def _parts_of(self, entity: AbstractValue) -> frozenset[Part]:
        match entity:
            case DynamicValue(atom):
                return self._parts.get(atom, frozenset())
            case Tuple(items):
                found = ((place, (i, *rest)) for i, item in enumerate(items) for place, rest in self._parts_of(item))
                return frozenset(found)
            case _:
                return frozenset()

    def bind(self, target: Var, expression: Expr, type_: Type) -> None:
        """Note what a variable is bound to. Tensors with axes are no numbers."""
        if not self._parts or expression.__class__ in NESTING:
            return
        shown = prune(type_)
        if isinstance(shown, TensorType) and shown.shape != ():
            return
        if isinstance(expression, Project):
            parts = self._parts.get(expression.value, frozenset())
            inside = {(place, path[1:]) for place, path in parts if path[:1] == (expression.index,)}
            self._note(target, frozenset(inside | {part for part in parts if not part[1]}))
            return
        if isinstance(expression, MakeTuple):
            items = ((i, self._parts.get(item, ())) for i, item in enumerate(expression.items))
            self._note(target, frozenset((place, (i, *rest)) for i, parts in items for place, rest in parts))
            return
        self._note(target, frozenset((place, ()) for atom in operands(expression) for place in self.sources_of(atom)))

    def _note(self, target: object, parts: frozenset[Part]) -> None:
        if parts:
            self._parts[target] = self._parts.get(target, frozenset()) | parts
