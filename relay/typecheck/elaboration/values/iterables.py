"""Ranges and zips as arguments of the program's functions. They are not run-time values: a call passes the values that
they are made of, and the function iterates over the same again.

    total(range(n))        passes (n,)
    total(zip(a, b))       passes (a, b)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import attrs

from relay.errors import Span
from relay.ir.sizes.facts import mentions_made
from relay.typecheck.elaboration.abstract_values import (
    AbstractValue,
    Number,
    Progression,
    PythonObject,
    Range,
    Size,
    Tuple,
    TypedBlockBuilder,
    Zip,
)
from relay.typecheck.elaboration.checker import Checker


def is_iterable_only(entity: AbstractValue) -> bool:
    """True if an entity can only be iterated over."""
    return isinstance(entity, Range | Progression | Zip)


def are_in(entity: AbstractValue) -> bool:
    """True if there are such entities in a structure."""
    return isinstance(entity, Tuple) and any(is_iterable_only(item) or are_in(item) for item in entity.items)


def passed_values(checker: Checker, out: TypedBlockBuilder, entity: AbstractValue, span: Span | None) -> Tuple:
    """The run-time values of the iterable."""
    found = _values(entity)
    return Tuple(tuple(checker.materialize(out, value, span) if isinstance(value, Size) else value for value in found))


def _values(entity: AbstractValue) -> Iterator[AbstractValue]:
    match entity:
        case Range(start, stop):
            yield from (part for part in (start, stop) if not _is_static(part))
        case Progression(start, stop, step):
            yield from (part for part in (start, stop, step) if not _is_static(part))
        case Zip(items):
            for item in items:
                yield from _values(item)
        case _ if not _is_static(entity):
            yield entity


def _is_static(part: AbstractValue) -> bool:
    if isinstance(part, Size):
        return not mentions_made(part.dim)
    return isinstance(part, Number | PythonObject)


def static_parts(entity: AbstractValue, key: Callable[[AbstractValue], object]) -> object:
    """The static parts of the iterable: the known numbers in it, its steps and directions. `key`: the key of static
    entities. `key`: what tells static entities from each other."""
    match entity:
        case Range(start, stop, step, backward, is_reversed):
            return "range", static_parts(start, key), static_parts(stop, key), step, backward, is_reversed
        case Progression(start, stop, step, backward):
            return "progression", *(static_parts(part, key) for part in (start, stop, step)), backward
        case Zip(items):
            return "zip", *(static_parts(item, key) for item in items)
        case _:
            return key(entity) if _is_static(entity) else None


def rebuild_iterable(entity: AbstractValue, values: AbstractValue) -> AbstractValue:
    """The same of the values that a function has got."""
    assert isinstance(values, Tuple)
    return _rebuild(entity, iter(values.items))


def _rebuild(entity: AbstractValue, values: Iterator[AbstractValue]) -> AbstractValue:
    def part(inner: AbstractValue) -> AbstractValue:
        return inner if _is_static(inner) else next(values)

    match entity:
        case Range(start, stop):
            return attrs.evolve(entity, start=part(start), stop=part(stop))
        case Progression(start, stop, step):
            return attrs.evolve(entity, start=part(start), stop=part(stop), step=part(step))  # type: ignore[arg-type]
        case Zip(items):
            return Zip(tuple(_rebuild(item, values) for item in items))
        case _:
            return part(entity)
