"""Arguments that configure: numbers and booleans of Python whose values a program needs at compile time.

An axis, a stride, a number of heads or layers, an extent in `reshape`: where elaboration needs the value of an argument
it says so (`relay.typecheck.elaboration.argument_sources`), and for calls of that kind the argument is static from then
on. One that only goes into arithmetic stays a run-time value, and so does every Python float. Where a program has no
type, and some such arguments are run-time values, those that give it one are found by trying.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import attrs

from relay.calling.arguments import ArgumentDescription
from relay.errors import RelayError, RelayWarning, TypeCheckError
from relay.ir.tree import steps
from relay.ir.types import Form
from relay.typecheck.elaboration import Argument, ClosureArg, StaticArg, StructureArg
from relay.typecheck.elaboration.argument_sources import ArgumentsSpecialize, Places
from relay.typecheck.elaboration.restarts import ArgumentPlace

Signature: TypeAlias = tuple[object, ...]

MANY_VALUES = 8
"""From this many values of one argument on, each with a program of its own, a warning says so."""


@attrs.define(eq=False)
class Configuration:
    """The arguments of one function that are static, by the kinds of its calls; callers hold a lock to change it."""

    name: str
    parameters: Sequence[str]
    by_kind: dict[Signature, Places] = attrs.field(factory=dict)
    needed_at: dict[ArgumentPlace, TypeCheckError | None] = attrs.field(factory=dict)
    values: dict[ArgumentPlace, set[object]] = attrs.field(factory=dict)
    paths: Mapping[int, frozenset[tuple[int, ...]]] = attrs.field(factory=dict)
    """All of them by parameter, for the dispatch of calls."""

    def clear(self) -> None:
        """Forget all."""
        self.by_kind.clear()
        self.needed_at.clear()
        self.values.clear()
        self.paths = {}

    def static_arguments(self, kind: Signature, described: Sequence[ArgumentDescription]) -> list[ArgumentDescription]:
        """The arguments of a call of this kind, static ones as such."""
        return _with_static(described, self.by_kind.get(kind, frozenset()))

    def add(self, kind: Signature, places: Places, error: TypeCheckError | None) -> None:
        """Let these be static in calls of this kind."""
        self.by_kind[kind] = self.by_kind.get(kind, frozenset()) | places
        for place in places:
            self.needed_at.setdefault(place, error)
        everything = frozenset[ArgumentPlace]().union(*self.by_kind.values())
        self.paths = {
            position: frozenset(path for p, path in everything if p == position) for position, _ in everything
        }

    def note_compilation(self, arguments: Sequence[Argument]) -> None:
        """Count the values of static arguments, and warn where one has had many."""
        for place in self.needed_at:
            found = _at(arguments[place[0]], place[1]) if place[0] < len(arguments) else None
            if not isinstance(found, StaticArg):
                continue
            known = self.values.setdefault(place, set())
            if found.value in known or len(known) >= MANY_VALUES:
                continue
            known.add(found.value)
            if len(known) == MANY_VALUES:
                warnings.warn(self._recompilation_warning(place, arguments), RelayWarning, stacklevel=2)

    def _recompilation_warning(self, place: ArgumentPlace, arguments: Sequence[Argument]) -> str:
        shown = self._values_text(place, arguments)
        error = self.needed_at[place]
        why = "" if error is None else f": {error.message}"
        where = "" if error is None or error.span is None else f", at {error.span}"
        return (
            f"{self.name} was compiled for {MANY_VALUES} values of {shown}, whose value it needs at compile time"
            f"{why}{where}; compute it from the shape of an array, or keep it the same between calls"
        )

    def _values_text(self, place: ArgumentPlace, arguments: Sequence[Argument]) -> str:
        position, path = place
        text = self.parameters[position] if position < len(self.parameters) else "the cotangent"
        argument = arguments[position]
        for index in path:
            items, form = _items(argument)
            text += steps(form or Form(tuple), len(items))[index]
            argument = items[index]
        return text


def candidates(described: Sequence[ArgumentDescription]) -> Places:
    """The numbers and booleans of Python among the run-time arguments: integers, alone and in structures."""
    return frozenset(
        (position, path)
        for position, d in enumerate(described)
        for path, value in _leaves(d.argument, d.value)
        if type(value) in (int, bool)
    )


def search(
    described: Sequence[ArgumentDescription],
    places: Places,
    elaborate: Callable[[Sequence[ArgumentDescription]], object],
) -> Places:
    """Those of these places that have to be static for the program to have a type: booleans if these suffice, no more
    than needed. None of them if it has none anyway."""

    def has_type(static: Places) -> bool:
        try:
            elaborate(_with_static(described, static))
        except (RelayError, ArgumentsSpecialize):
            return False
        return True

    flags = frozenset(p for p in places if isinstance(_value_at(described, p), bool))
    for found in filter(None, (flags, places)):
        if not has_type(found):
            continue
        for place in sorted(found):
            if len(found) > 1 and has_type(found - {place}):
                found -= {place}
        return found
    return frozenset()


def _value_at(described: Sequence[ArgumentDescription], place: ArgumentPlace) -> object:
    value = described[place[0]].value
    for index in place[1]:
        value = value[index]
    return value


def _items(argument: Argument) -> tuple[Sequence[Argument], Form | None]:
    match argument:
        case StructureArg(form, items):
            return items, form
        case tuple():
            return argument, None
        case _:
            return (), None


def _leaves(argument: Argument, value: Any) -> Iterator[tuple[tuple[int, ...], Any]]:
    """The run-time leaves of an argument, with the paths to them."""
    if isinstance(argument, StaticArg | ClosureArg):
        return
    items, _ = _items(argument)
    if not items:
        yield (), value
    for index, item in enumerate(items):
        for path, leaf in _leaves(item, value[index]):
            yield (index, *path), leaf


def _at(argument: Argument, path: tuple[int, ...]) -> Argument:
    """The part of an argument at a path; None where there is none."""
    for index in path:
        items, _ = _items(argument)
        if index >= len(items):
            return None
        argument = items[index]
    return argument


def _with_static(described: Sequence[ArgumentDescription], places: Places) -> list[ArgumentDescription]:
    found = list(described)
    for position, path in places:
        if position < len(found):
            found[position] = _static_description(found[position], path)
    return found


def _static_description(description: ArgumentDescription, path: tuple[int, ...]) -> ArgumentDescription:
    """An argument whose part at a path is static, if it is a number or boolean of Python."""
    key, argument, value = description.key, description.argument, description.value
    if not path:
        if type(value) not in (int, bool):
            return description
        return ArgumentDescription(("static", (type(value).__name__, value)), StaticArg(value), None)
    items, form = _items(argument)
    if path[0] >= len(items) or not isinstance(key, tuple):
        return description
    index = path[0]
    part = _static_description(ArgumentDescription(key[2 + index], items[index], value[index]), path[1:])
    parts = tuple(part.argument if i == index else item for i, item in enumerate(items))
    return ArgumentDescription(
        (*key[: 2 + index], part.key, *key[3 + index :]),
        parts if form is None and not isinstance(argument, StructureArg) else StructureArg(form, parts),  # type: ignore[arg-type]
        tuple(part.value if i == index else v for i, v in enumerate(value)),
    )
