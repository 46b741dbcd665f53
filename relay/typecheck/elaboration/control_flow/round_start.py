"""The start of a round of a loop: what is known of its parameters, and of the variables of the code around it."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TypeAlias

from relay.ir.definition import Definition
from relay.ir.dims import Dim
from relay.ir.expr import Function, Loop, Var
from relay.ir.surface import ForEach
from relay.ir.types import ANY, StackType, TensorType, TupleType, prune
from relay.typecheck.elaboration.abstract_values import (
    AbstractValue,
    Context,
    DynamicValue,
    GlobalFunction,
    LocalFunction,
    Number,
    Tuple,
)
from relay.typecheck.elaboration.control_flow.value_flow import Path, ValueFlow
from relay.typecheck.unification import is_known

LENGTH = -1
"""The axis of lists."""

Root: TypeAlias = "tuple[Var, Path]"
"""A component of a variable."""


class RoundStart:
    """The values with which a loop begins that is not unrolled, and those around it."""

    def __init__(self, context: Context, loop: Loop | ForEach, entities: Sequence[AbstractValue]) -> None:
        self.context, self.loop, self.entities = context, loop, entities
        self._positions = {parameter: i for i, parameter in enumerate(loop.parameters)}

    @functools.cached_property
    def flow(self) -> ValueFlow:
        """The value flow in the loop's body."""
        return ValueFlow(self.loop.body, self.context.scope, self.function)

    def position(self, variable: Var) -> int | None:
        """The position of a parameter of the loop; None of another variable."""
        return self._positions.get(variable)

    def value(self, variable: Var) -> AbstractValue | None:
        """The value of a variable, if it is known here."""
        position = self.position(variable)
        return self.context.find(variable) if position is None else self.entities[position]

    def component(self, root: Root) -> object:
        """A component that is a tuple, or its type."""
        found: object = self.value(root[0])
        for step in root[1]:
            whole = prune(found.type) if isinstance(found, DynamicValue) else found
            if not isinstance(whole, Tuple | TupleType):
                return None
            names = whole.form.names if whole.form is not None and whole.form.names else range(len(whole.items))
            found = next((item for n, item in zip(names, whole.items, strict=True) if n == step), None)
        return prune(found.type) if isinstance(found, DynamicValue) else found

    def dim(self, root: Root, axis: int) -> Dim | None:
        """The size of a component; `Any` if it is data-dependent, or a list dynamic. None if there is no such axis."""
        found = self.component(root)
        if axis == LENGTH:
            if isinstance(found, Tuple | TupleType):
                return len(found.items)
            return ANY if isinstance(found, StackType) else None
        if not isinstance(found, TensorType) or not is_known(found.shape) or axis >= len(found.shape):
            return None
        return found.shape[axis]

    def path(self, place: tuple[int, ...]) -> Path:
        """The names on the way to a component."""
        entity, path = self.entities[place[0]], list[object]()
        for step in place[1:]:
            form = entity.form if isinstance(entity, Tuple) else None
            path.append(form.names[step] if form is not None and form.names else step)
            entity = entity.items[step] if isinstance(entity, Tuple) else entity
        return tuple(path)

    def is_dynamic(self, variable: Var) -> bool:
        """True if a variable is a value of the run."""
        return _is_of_run(self.value(variable), variable in self._positions)

    def function(self, variable: Var) -> Definition | Function | None:
        """The function that a variable of the code around is."""
        match self.context.find(variable):
            case GlobalFunction(definition):
                return definition
            case LocalFunction(function):
                return function
            case _:
                return None


def _is_of_run(entity: AbstractValue | None, numbers: bool) -> bool:
    """True if a value is of the run, with all of its parts; `numbers`: those count, too."""
    match entity:
        case Tuple(items):
            return len(items) > 0 and all(_is_of_run(item, numbers) for item in items)
        case DynamicValue():
            return entity.known is None
        case _:
            return numbers and isinstance(entity, Number)
