"""Values as an editor shows them: in one line each, and open on demand, part by part.

A value with parts gets a number, by which the client requests them while the program is stopped. The parts of an array
are its rows, so that large data is sent only on request; more than a hundred come in groups.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

import attrs
import numpy as np

from relay.calling.array import Array
from relay.debug.expressions import OpaqueValue
from relay.debug.statistics import statistics_of
from relay.eval.values import Box, Closure, Data, Reference, Stack, primal
from relay.eval.variables import Structure, Variable, short_text, type_text
from relay.ir.annotations.annotation import Ref
from relay.ir.protocols import is_value
from relay.ir.structure import build, part_names, split

GROUP = 100
"""So many parts are shown at once."""

Named: TypeAlias = tuple[str, object, int | None]
"""A part: how it is read from the whole, its value, and its index there (None: it is only shown)."""


@attrs.frozen
class Place:
    """The place of a value in a variable of a frame, to be changed there."""

    frame: int
    variable: str
    path: tuple[int, ...] = ()
    expression: str = ""  # that reads it


@attrs.frozen(eq=False)
class OpenValue:
    """The value to open: its parts from `start` to `stop`."""

    value: object
    place: Place | None
    start: int = 0
    stop: int | None = None


@attrs.frozen
class Scope:
    """The variables of a frame; `everything`: those without a name in the source, too."""

    frame: int
    everything: bool = False


class Values:
    """The values that the client may open, by their numbers. They are valid until the program continues."""

    def __init__(self) -> None:
        self._opened: dict[int, OpenValue | Scope] = {}

    def clear(self) -> None:
        """Forget all: the program goes on."""
        self._opened.clear()

    def number(self, opened: OpenValue | Scope) -> int:
        """A number for what can be opened."""
        self._opened[len(self._opened) + 1] = opened
        return len(self._opened)

    def find(self, number: object) -> OpenValue | Scope | None:
        """The value with this number."""
        return self._opened.get(number) if isinstance(number, int) else None

    def protocol_variable(self, name: str, value: object, place: Place | None = None) -> dict[str, Any]:
        """A `Variable` of the protocol."""
        value = _plain_value(value)
        found: dict[str, Any] = {"name": name, "value": short_text(value), "type": _type(value)}
        found["variablesReference"] = 0
        if place is not None and place.expression:
            found["evaluateName"] = place.expression
        count = _count(value)
        if count is not None or _facts(value):
            found["variablesReference"] = self.number(OpenValue(value, place))
            if isinstance(value, np.ndarray | Stack | list):
                found["indexedVariables"], found["namedVariables"] = count or 0, len(_facts(value))
        return found

    def variables(self, found: Mapping[str, Variable], scope: Scope) -> list[dict[str, Any]]:
        """Those of a frame."""
        return [self.protocol_variable(v.name, v.value, place_of(scope, v.name)) for v in found.values()]

    def parts(self, opened: OpenValue, kind: str | None, start: int, count: int) -> list[dict[str, Any]]:
        """The parts of a value: "named" ones, "indexed" ones (`count` from `start` on; 0: all), or all."""
        shown = (
            []
            if kind == "indexed" or opened.stop is not None
            else [
                {"name": name, "value": text, "variablesReference": 0, "presentationHint": {"attributes": ["readOnly"]}}
                for name, text in _facts(opened.value)
            ]
        )
        if kind == "named" and isinstance(opened.value, np.ndarray | Stack | list):
            return shown
        last = opened.stop if opened.stop is not None else _count(opened.value) or 0
        first = opened.start + start
        last = min(last, first + count) if count else last
        if last - first > GROUP:
            size = GROUP
            while (last - first) / size > GROUP:
                size *= GROUP
            for begin in range(first, last, size):
                end = min(begin + size, last)
                inside = self.number(attrs.evolve(opened, start=begin, stop=end))
                shown.append({"name": f"[{begin}..{end - 1}]", "value": "..", "variablesReference": inside})
            return shown
        for name, value, step in _parts(opened.value, first, last):
            place = None if opened.place is None or step is None else _inner_place(opened.place, name, step)
            shown.append(self.protocol_variable(name.lstrip("."), value, place))
        return shown


def place_of(whole: OpenValue | Scope, name: str) -> Place | None:
    """The place of the part with this name; None for parts that cannot be changed."""
    if isinstance(whole, Scope):
        return None if whole.everything else Place(whole.frame, name, (), name)
    if whole.place is None:
        return None
    last = whole.stop if whole.stop is not None else _count(whole.value) or 0
    for label, _, step in _parts(whole.value, whole.start, last):
        if label.lstrip(".") == name and step is not None:
            return _inner_place(whole.place, label, step)
    return None


def _inner_place(place: Place, label: str, step: int) -> Place:
    return attrs.evolve(place, path=(*place.path, step), expression=f"{place.expression}{label}")


def _plain_value(value: object) -> object:
    """A value in one of the forms of run-time values; Python's own ones as these."""
    if isinstance(value, Array):
        return value.numpy()
    if isinstance(value, Box):
        return primal(value)
    if isinstance(value, np.generic):
        return np.asarray(value)
    if isinstance(value, OpaqueValue | Ref) or is_value(value):
        return value
    if not isinstance(value, Structure | Reference | Stack | Closure | Data) and (found := split(value)) is not None:
        return Structure(tuple(found[1]), found[0])
    return value


def _type(value: object) -> str:
    if is_value(value):
        return type(value).__qualname__
    return "" if isinstance(value, OpaqueValue) else type_text(value)


def _count(value: object) -> int | None:
    """The number of parts of a value; None if it has none."""
    match value:
        case np.ndarray():
            return len(value) if value.ndim else None
        case Structure(items):
            return len(items) or None
        case Stack(_, length):
            return length or None
        case Reference() | Ref():
            return 1
        case Closure(_, environment):
            return len(environment) or None
        case Data(_, _, fields):
            return len(fields) or None
        case _ if is_value(value):
            return len(vars(value)) or None
        case _:
            return None


def _facts(value: object) -> list[tuple[str, str]]:
    """The facts that are shown of an array besides its elements."""
    if not isinstance(value, np.ndarray) or not value.ndim:
        return []
    return [("shape", str(value.shape)), ("dtype", str(value.dtype)), ("statistics", str(statistics_of(value)))]


def _parts(value: object, first: int, last: int) -> Iterator[Named]:
    match value:
        case np.ndarray():
            yield from ((f"[{i}]", value[i], i) for i in range(first, last))
        case Structure(items, form):
            names = part_names(form, len(items))
            yield from ((names[i], items[i], i) for i in range(first, last))
        case Stack(buffer):
            cells = buffer[first:last]
            held = [cell.content if isinstance(cell, Reference) else cell for cell in cells]
            yield from ((f"[{first + i}]", cell, None) for i, cell in enumerate(held))
        case Reference(content):
            yield "value", content, None
        case Ref():
            yield "value", value.value, None
        case Data(definition, constructor, fields):
            made = next(c for c in definition.constructors if c.name == constructor)
            labels = made.names or [f"[{i}]" for i in range(len(fields))]
            yield from ((labels[i], fields[i], None) for i in range(first, last))
        case Closure(_, environment):
            yield from ((v.name, held, None) for v, held in list(environment.items())[first:last])
        case _ if is_value(value):
            yield from ((name, part, None) for name, part in list(vars(value).items())[first:last])


def part_at(whole: Any, path: tuple[int, ...]) -> Any:
    """The part of a Python value at a place in it."""
    for step in path:
        found = split(whole)
        whole = whole[step] if found is None else found[1][step]
    return whole


def replace_part(whole: Any, path: tuple[int, ...], new: Any) -> Any:
    """A Python value with another one at a place in it."""
    if not path:
        return new
    step = path[0]
    if isinstance(whole, np.ndarray):
        changed = whole.copy()
        changed[step] = replace_part(whole[step], path[1:], new)
        return changed
    found = split(whole)
    assert found is not None
    parts = list(found[1])
    parts[step] = replace_part(parts[step], path[1:], new)
    return build(found[0], parts)
