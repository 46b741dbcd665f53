"""Types with tuples in place of data types, and the variables of a function at them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from relay.ir.expr import Atom, Derivative, Global, Module, Var
from relay.ir.traverse import bound_variables, walk
from relay.ir.types import (
    DataDefinition,
    DataType,
    TupleType,
    Type,
    map_type_parts,
    mentioned_definitions,
    prune,
)


def module_types(module: Module) -> Iterator[Type]:
    """The types of all variables and functions of a module."""
    for function in module.functions.values():
        if isinstance(function, Derivative):
            yield function.type
            continue
        if function.result is not None:
            yield function.result
        yield from (p.type for p in function.parameters if p.type is not None)
        for binding in walk(function.body):
            for var in (*binding.targets, *bound_variables(binding.value)):
                if var.type is not None:
                    yield var.type


def definition_graph(definitions: Iterable[DataDefinition]) -> dict[DataDefinition, set[DataDefinition]]:
    """These data types and all in their fields, with the data types that each mentions."""
    mentioned: dict[DataDefinition, set[DataDefinition]] = {}
    pending = list(definitions)
    while pending:
        definition = pending.pop()
        if definition not in mentioned:
            inside = set(mentioned_definitions(t for c in definition.constructors for t in c.fields))
            mentioned[definition] = inside
            pending += inside
    return mentioned


def contains_itself(definition: DataDefinition, mentioned: dict[DataDefinition, set[DataDefinition]]) -> bool:
    """True if values of a data type may contain values of it."""
    seen: set[DataDefinition] = set()
    pending = list(mentioned[definition])
    while pending:
        current = pending.pop()
        if current is definition:
            return True
        if current not in seen:
            seen.add(current)
            pending += mentioned[current]
    return False


class FlatTypeMap:
    """Types with tuples in place of some data types, those in `flattened`."""

    def __init__(self, flattened: set[DataDefinition]) -> None:
        self.flattened = flattened
        self._made: dict[Type, Type] = {}

    def flat_type(self, type_: Type) -> Type:
        """The type with tuples in place of records."""
        found = self._made.get(type_)
        if found is None:
            found = self._made[type_] = self._map(prune(type_))  # type: ignore[arg-type]
        return found

    def flat(self, definition: DataDefinition) -> TupleType:
        """The tuple in place of a data type."""
        return TupleType(tuple(map(self.flat_type, definition.constructors[0].fields)))

    def _map(self, type_: Type) -> Type:
        match type_:
            case DataType(definition) if definition in self.flattened:
                return self.flat(definition)
            case _:
                return map_type_parts(type_, self.flat_type)

    def is_flattened(self, type_: Type | None) -> bool:
        """True if values of this type become tuples themselves."""
        found = None if type_ is None else prune(type_)
        return isinstance(found, DataType) and found.definition in self.flattened

    def atom(self, atom: Atom) -> Atom:
        """A function's name at its new type."""
        if isinstance(atom, Global) and atom.type is not None:
            return Global(atom.name, self.flat_type(atom.type), atom.span)
        return atom


class Flattening:
    """The variables and atoms of one function at their new types."""

    def __init__(self, types: FlatTypeMap) -> None:
        self.types = types
        self._variables: dict[Var, Var] = {}

    def var(self, var: Var) -> Var:
        """The variable at its new type."""
        if var.type is None or self.types.flat_type(var.type) == var.type:
            return var
        if var not in self._variables:
            self._variables[var] = Var(var.name, self.types.flat_type(var.type), var.span)
        return self._variables[var]

    def atom(self, atom: Atom) -> Atom:
        return self.var(atom) if isinstance(atom, Var) else self.types.atom(atom)
