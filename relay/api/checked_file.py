"""Checked functions of a file, kept from one check to the next for as long as nothing that they depend on changes.

What is kept of a function are texts and places, no objects of the program: the places move with the statements that
they are in.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence

import attrs

from relay.errors.diagnostic import Diagnostic, Label, Source, Span
from relay.frontend.source import SourceFile
from relay.frontend.static.dependencies import Dependencies, Unit

MOST_FUNCTIONS = 2_000
"""So many functions are kept."""


@attrs.frozen
class PlaceType:
    """The type of an expression or a variable at a place. `is_own`: as the function has it by itself, not as it is in a
    call."""

    span: Span
    text: str
    is_own: bool = True


@attrs.frozen
class CheckedFunction:
    """The result of checking one function. `span` is `def name`; `type` None where it has mistakes. `parameters`:
    the types of those, and `result` that of the result, as texts. `places`: the types of the expressions that were
    checked, also in functions that it calls. `effects`: those of a call, by name."""

    name: str
    span: Span | None
    diagnostics: tuple[Diagnostic, ...]
    type: str | None = None
    parameters: tuple[str, ...] = ()
    result: str | None = None
    places: tuple[PlaceType, ...] = ()
    effects: frozenset[str] = frozenset()


@attrs.frozen(eq=False)
class CheckedFile:
    """The result of checking one file: its diagnostics, its functions, and how many of these were checked again."""

    diagnostics: tuple[Diagnostic, ...]
    functions: tuple[CheckedFunction, ...] = ()
    renewed: int = 0


class CheckMemory:
    """Memory of checked functions, by what their results depend on."""

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[str, int], tuple[CheckedFunction, tuple[Unit, ...], str]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._known)

    def __contains__(self, key: tuple[str, int]) -> bool:
        return key in self._known

    def look_up(self, key: tuple[str, int], source: Source, units: Sequence[Unit]) -> CheckedFunction | None:
        """The stored check of a function, with its places as they are in the text now; None if there is none."""
        found = self._known.get(key)
        if found is None:
            return None
        self._known.move_to_end(key)
        function, before, filename = found
        return _Move(filename, source, list(zip(before, units, strict=True))).function(function)

    def keep(self, key: tuple[str, int], function: CheckedFunction, units: Sequence[Unit], filename: str) -> None:
        """Keep what was found of a function. What has places elsewhere in its file is not kept: they could not move."""
        spans = (s for s in _spans(function) if _is_same(s.source.filename, filename))
        if any(not any(u.first_line <= s.line and s.end_line <= u.last_line for u in units) for s in spans):
            return
        self._known[key] = function, tuple(units), filename
        while len(self._known) > MOST_FUNCTIONS:
            self._known.popitem(last=False)


class FileMemory:
    """The memory of one file's functions: `memory`, asked by the units of the file."""

    def __init__(self, memory: CheckMemory, file: SourceFile, surroundings: str) -> None:
        self._memory = memory
        self._file = file
        self._dependencies = Dependencies.of_file(file, surroundings + file.source.filename)
        self._numbers: dict[int, int] = {}

    def is_known(self, span: Span) -> bool:
        """True if the check of the only function of a unit is stored, and its names are bound once: then it means the
        same whenever it is read."""
        position = self._dependencies.unit_at(span.line)
        if position is None or (self._dependencies.digest(position), 0) not in self._memory:
            return False
        return self._dependencies.is_bound_once(position)

    def key(self, span: Span | None) -> tuple[tuple[str, int], list[Unit]] | None:
        """The key of a function of the file, and all units that it depends on; None for functions without a place in
        the file. Functions of one unit are distinguished by their order."""
        if span is None or not _is_same(span.source.filename, self._file.source.filename):
            return None
        position = self._dependencies.unit_at(span.line)
        if position is None:
            return None
        number = self._numbers[position] = self._numbers.get(position, -1) + 1
        return (self._dependencies.digest(position), number), self._dependencies.needed_units(position)

    def look_up(self, key: tuple[str, int], units: Sequence[Unit]) -> CheckedFunction | None:
        """The stored check of a function, or None."""
        return self._memory.look_up(key, self._file.source, units)

    def keep(self, key: tuple[str, int], function: CheckedFunction, units: Sequence[Unit]) -> None:
        """Keep what was found."""
        self._memory.keep(key, function, units, self._file.source.filename)


@attrs.frozen(eq=False)
class _Move:
    """The places of a file in its next version."""

    filename: str
    source: Source
    units: Sequence[tuple[Unit, Unit]]

    def function(self, found: CheckedFunction) -> CheckedFunction:
        places = found.places
        if any(before.first_line != now.first_line for before, now in self.units):
            places = tuple(PlaceType(self._moved_span(p.span), p.text, p.is_own) for p in places)
        return attrs.evolve(
            found,
            span=self.span(found.span),
            diagnostics=tuple(map(self.diagnostic, found.diagnostics)),
            places=places,
        )

    def diagnostic(self, found: Diagnostic) -> Diagnostic:
        labels = tuple(Label(self._moved_span(label.span), label.text) for label in found.labels)
        return attrs.evolve(found, span=self.span(found.span), labels=labels)

    def span(self, found: Span | None) -> Span | None:
        return None if found is None else self._moved_span(found)

    def _moved_span(self, found: Span) -> Span:
        if not _is_same(found.source.filename, self.filename):
            return found
        for before, now in self.units:
            if before.first_line <= found.line <= before.last_line:
                shift = now.first_line - before.first_line
                return Span(self.source, found.line + shift, found.column, found.end_line + shift, found.end_column)
        return found


def _spans(function: CheckedFunction) -> Iterator[Span]:
    if function.span is not None:
        yield function.span
    for diagnostic in function.diagnostics:
        if diagnostic.span is not None:
            yield diagnostic.span
        yield from (label.span for label in diagnostic.labels)
    yield from (place.span for place in function.places)


_paths: dict[str, str] = {}


def _is_same(one: str, other: str) -> bool:
    return one == other or _real_path(one) == _real_path(other)


def _real_path(path: str) -> str:
    found = _paths.get(path)
    if found is None:
        if len(_paths) > MOST_FUNCTIONS:
            _paths.clear()
        found = _paths[path] = os.path.realpath(path)
    return found


Place = tuple[int, int, int, int]
"""Line and column, and those of the end."""


def types_by_place(functions: Sequence[CheckedFunction], filename: str) -> Mapping[Place, list[str]]:
    """The types at the places of a file, each once: those from checking its function by itself come first."""
    found: dict[Place, dict[str, None]] = {}
    places = [place for function in functions for place in function.places]
    for own in (True, False):
        for place in places:
            span = place.span
            if place.is_own is own and _is_same(span.source.filename, filename):
                key = (span.line, span.column, span.end_line, span.end_column)
                found.setdefault(key, {})[place.text] = None
    return {key: list(texts) for key, texts in found.items()}


def without_duplicates(diagnostics: Iterable[Diagnostic]) -> list[Diagnostic]:
    """Diagnostics without duplicates at the same place."""
    told: dict[object, Diagnostic] = {}
    for diagnostic in diagnostics:
        told.setdefault(
            (_file(diagnostic), place_of(diagnostic)) if diagnostic.span else diagnostic.message, diagnostic
        )
    return list(told.values())


def in_order(diagnostics: Iterable[Diagnostic], first: str = "") -> list[Diagnostic]:
    """Diagnostics in the order of the text; those without a place first, then those of the first file."""
    return sorted(diagnostics, key=lambda d: (_file(d) not in ("", first), _file(d), place_of(d)))


def _file(diagnostic: Diagnostic) -> str:
    return diagnostic.span.source.filename if diagnostic.span is not None else ""


def place_of(diagnostic: Diagnostic) -> tuple[int, int]:
    """Line and column, to sort and compare by."""
    return (diagnostic.span.line, diagnostic.span.column) if diagnostic.span is not None else (0, 0)
