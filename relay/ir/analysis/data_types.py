"""Data types within data types: which mention which, and which may contain values of their own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from relay.ir.types import DataDefinition, mentioned_definitions


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


def contains_itself(definition: DataDefinition, mentioned: Mapping[DataDefinition, set[DataDefinition]]) -> bool:
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
