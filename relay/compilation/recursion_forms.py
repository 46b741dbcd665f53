"""Forms of a program with recursion over data: as it is written, for few objects, and also level by level, for many.

Evaluation by levels (`relay.transform.recursion.level_batching`) needs a schedule and code for groups of nodes, whose
compilation takes longer than that of the recursion itself, and gains nothing on few objects. So calls on few objects
get a program without it; the first call on many makes the one with both, which serves all calls from then on.
"""

from __future__ import annotations

from collections.abc import Iterable

from relay.eval.values import Data, Reference, Stack
from relay.ir.analysis.data_types import contains_itself, definition_graph
from relay.ir.expr import Module
from relay.ir.types import Type, mentioned_definitions
from relay.transform.pipeline import Pipeline
from relay.transform.recursion.level_batching import recursions_by_levels

MOST_OBJECTS = 127
"""The largest number of objects among the arguments of a call for which the recursion runs as it is written."""

STEP = "batch_recursion"
"""The pass that makes the difference."""


def takes_recursive_data(types: Iterable[Type | None]) -> bool:
    """True if values of these types may contain values of a data type within others of the same type."""
    graph = definition_graph(mentioned_definitions(t for t in types if t is not None))
    return any(contains_itself(definition, graph) for definition in graph)


def are_many(values: Iterable[object]) -> bool:
    """True if run-time values contain more than `MOST_OBJECTS` objects, or if some are unknown (None)."""
    seen: set[int] = set()
    pending = [*values]
    while pending:
        match pending.pop():
            case None:
                return True
            case Data(_, _, fields) as data:
                if id(data) not in seen:
                    seen.add(id(data))
                    pending += fields
            case Stack(buffer, length):
                if length > MOST_OBJECTS and isinstance(buffer[0], Data | Reference):
                    pending += buffer[: MOST_OBJECTS + 1]
                else:
                    pending += buffer[:length]
            case Reference(content) as reference:
                if id(reference) not in seen:
                    seen.add(id(reference))
                    pending.append(content)
            case tuple() as items:
                pending += items
            case _:
                pass
        if len(seen) > MOST_OBJECTS:
            return True
    return False


def has_levels(typed: Module, level: int) -> bool:
    """True if some recursion of a typed program is evaluated level by level at an optimization level."""
    passes = Pipeline.for_level(level, ("lower", "prepare")).passes
    steps = [number for number, step in enumerate(passes) if step.name == STEP]
    return bool(steps) and bool(recursions_by_levels(Pipeline(passes[: steps[0] + 1], stage="typed")(typed)))
