"""Polymorphic data types become monomorphic ones, when a program's types are known.

Each choice of arguments makes one definition. A recursive definition meets itself at the same arguments, which are
found among those made already. Definitions in which nothing is polymorphic stay what they are.
"""

from __future__ import annotations

from typing import Any

from relay.errors import TypeCheckError
from relay.ir.definition import complete_definition
from relay.ir.types import (
    Constructor,
    DataDefinition,
    DataType,
    FunctionType,
    Kind,
    TensorType,
    TupleType,
    Type,
    map_type_parts,
    mentioned_definitions,
    show,
)
from relay.operator.relation import substitute
from relay.typecheck.unification import resolve

DEEPEST = 64
"""The largest depth of definitions inside of each other before a type counts as growing."""


class Monomorphization:
    """The monomorphic definitions of one program."""

    def __init__(self) -> None:
        self._made: dict[tuple[DataDefinition, Any], DataDefinition] = {}
        self._names: set[str] = set()
        self._plain: dict[DataDefinition, bool] = {}
        self._kept: dict[DataDefinition, None] = {}
        self._depth = 0

    @property
    def definitions(self) -> tuple[DataDefinition, ...]:
        """Those made so far, and the ones that stayed what they are."""
        return tuple(dict.fromkeys((*self._made.values(), *self._kept)))

    def type(self, type_: Type) -> Type:
        """The type without variables, arguments of data types, forms of tuples and names of axes. Its variables must be
        bound."""
        return self._type(resolve(type_))

    def _type(self, type_: Type) -> Type:
        match type_:
            case TensorType(base, shape):
                return TensorType(base, shape) if type_.axes is not None else type_
            case TupleType(items):
                return TupleType(tuple(map(self._type, items)))
            case FunctionType(parameters, result, where):
                return FunctionType(tuple(map(self._type, parameters)), self._type(result), where)
            case DataType(definition, arguments):
                monomorphic = tuple(self._type(a) if isinstance(a, Type) else a for a in arguments)
                return DataType(self._definition(definition, monomorphic))
            case _:
                return map_type_parts(type_, self._type)

    def _definition(self, definition: DataDefinition, arguments: tuple[Any, ...]) -> DataDefinition:
        key = (definition, arguments)
        found = self._made.get(key)
        if found is not None:
            return found
        if self._is_plain(definition):
            self._keep(definition)
            return definition
        if self._depth == DEEPEST:
            raise TypeCheckError(
                f"the data type {definition.name} contains itself at ever larger types: {show(DataType(*key))}"
            )
        name = f"{definition.name}{len(self._made) + 1}" if definition.name in self._names else definition.name
        self._names.add(name)
        made = self._made[key] = DataDefinition(name, origin=definition.origin)
        bound = dict(zip(definition.parameters, arguments, strict=True))
        self._depth += 1
        made.constructors = tuple(
            Constructor(c.name, tuple(self.type(substitute(t, bound)) for t in c.fields), c.names)
            for c in definition.constructors
        )
        self._depth -= 1
        return made

    def _keep(self, definition: DataDefinition) -> None:
        """Keep a definition, and those that it mentions, as they are."""
        pending = [definition]
        while pending:
            kept = pending.pop()
            if kept not in self._kept:
                self._kept[kept] = None
                self._names.add(kept.name)
                pending += mentioned_definitions(f for c in kept.constructors for f in c.fields)

    def _is_plain(self, definition: DataDefinition) -> bool:
        """True if nothing that the definition mentions is polymorphic."""
        if definition not in self._plain:
            reached: dict[DataDefinition, None] = {definition: None}
            pending = [definition]
            while pending:
                for other in mentioned_definitions(
                    f for c in complete_definition(pending.pop()).constructors for f in c.fields
                ):
                    if other not in reached:
                        reached[other] = None
                        pending.append(other)
            self._plain[definition] = not any(d.parameters for d in reached)
        return self._plain[definition]


def fresh_arguments(definition: DataDefinition, fresh: Any) -> tuple[Any, ...]:
    """One new variable for each parameter of a definition; `fresh(kind)` makes one."""
    return tuple(
        (fresh(p.kind),) if p.kind is Kind.Shape else fresh(p.kind) for p in complete_definition(definition).parameters
    )
