"""Positions in the user's source, and the layout of messages about them.

    model.py:7:12: error: the shapes (3, 4) and (5,) cannot be broadcast together
      |
    7 |     return x + y
      |            ^^^^^
      = note: x: Tensor[float32, (3, 4)]
      = help: transpose or reshape one of them

Carets are aligned on a terminal: tabs are expanded, wide characters count two cells and combining ones none, long lines
are shown around the place.
"""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TextIO

import attrs

TAB = 4
WIDTH = 120
"""The number of cells of a source line that are shown."""

MANY_LINES = 5
"""A stretch of more lines than this is shown by its first two and its last one."""

_STYLES = {"error": "1;31", "warning": "1;33", "note": "1;36", "help": "1;32", "label": "1;34", "frame": "34", "": "1"}


@attrs.frozen(eq=False)
class Source:
    """A text that a span points into: a file, a notebook cell or a string."""

    filename: str
    text: str = attrs.field(repr=False)
    first_line: int = 1  # the number of the text's first line in the file

    @cached_property
    def _lines(self) -> list[str]:
        return self.text.split("\n")

    def line(self, number: int) -> str:
        """The line with this number in the file, without its newline; empty where there is none."""
        index = number - self.first_line
        return self._lines[index] if 0 <= index < len(self._lines) else ""


@attrs.frozen
class Span:
    """A stretch of source. Lines and columns count from 1, columns in characters; the end column is exclusive.
    `in_backward`: the code here belongs to the backward part of a derivative; it does not make another place."""

    source: Source
    line: int
    column: int
    end_line: int
    end_column: int
    in_backward: bool = attrs.field(default=False, eq=False, repr=False, kw_only=True)

    def backward(self) -> Span:
        """The same place, for what a derivative computes backward."""
        return self if self.in_backward else attrs.evolve(self, in_backward=True)

    def __str__(self) -> str:
        return f"{self.source.filename}:{self.line}:{self.column}"

    @property
    def is_internal(self) -> bool:
        """True if it is in a text of Relay's own, which users have not written: a template, a library function."""
        return self.source.filename.startswith("<relay.")


@attrs.frozen
class Label:
    """A secondary place of an error: where, and what is there."""

    span: Span
    text: str


@attrs.frozen
class Diagnostic:
    """One message to the user: an error, a warning or a note."""

    severity: str  # "error", "warning" or "note"
    message: str
    span: Span | None = None
    labels: tuple[Label, ...] = ()
    notes: tuple[str, ...] = ()
    help: str | None = None
    code: str = ""  # the class of the error, or the kind of warning

    def __str__(self) -> str:
        return self.render()

    def render(self, *, color: bool = False, width: int = WIDTH) -> str:
        """The message laid out, `width` cells of source wide; with terminal colors if wanted."""
        return _Layout(color, width).render(self)


def wants_color(stream: TextIO, environment: Mapping[str, str] = os.environ) -> bool:
    """True if a stream shows colors: it is a terminal, unless NO_COLOR or FORCE_COLOR say otherwise."""
    if environment.get("NO_COLOR"):
        return False
    if environment.get("FORCE_COLOR"):
        return True
    try:
        return stream.isatty() and environment.get("TERM") != "dumb"
    except (AttributeError, ValueError):  # a replaced or closed stream
        return False


def cells(text: str) -> int:
    """The number of cells of a terminal that a text without tabs takes."""
    return len(text) if text.isascii() else sum(map(_width, text))


def _width(character: str) -> int:
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _printed_line(text: str) -> tuple[str, list[int]]:
    """A source line as it is printed, and the cell at which each of its characters starts, and the end."""
    shown: list[str] = []
    starts: list[int] = []
    cell = 0
    for character in text:
        starts.append(cell)
        if character == "\t":
            character = " " * (TAB - cell % TAB)
        elif ord(character) < 32:
            character = chr(0x2400 + ord(character))  # control characters must not reach the terminal
        elif 127 <= ord(character) < 160:
            character = "\N{REPLACEMENT CHARACTER}"
        shown.append(character)
        cell += cells(character)
    return "".join(shown), [*starts, cell]


@attrs.frozen
class _Layout:
    color: bool
    width: int

    def render(self, diagnostic: Diagnostic) -> str:
        where = self._paint("", f"{diagnostic.span}:") + " " if diagnostic.span is not None else ""
        severity = self._paint(diagnostic.severity, f"{diagnostic.severity}:")
        lines = [f"{where}{severity} {self._paint('', diagnostic.message)}"]
        marks = [(label, "label") for label in diagnostic.labels]
        if diagnostic.span is not None and diagnostic.span.source.text:  # that of a program in a file is elsewhere
            marks.insert(0, (Label(diagnostic.span, ""), diagnostic.severity))
        gutter = max((len(str(label.span.end_line)) for label, _ in marks), default=1)
        lines += self._excerpts(marks, gutter)
        facts = [("note", note) for note in diagnostic.notes]
        if diagnostic.help is not None:
            facts.append(("help", diagnostic.help))
        for kind, text in facts:
            first, *rest = text.split("\n")
            lines.append(f"{' ' * gutter} {self._paint('frame', '=')} {self._paint(kind, kind + ':')} {first}")
            lines += [f"{' ' * (gutter + 3 + len(kind) + 2)}{line}" for line in rest]
        return "\n".join(lines)

    def _excerpts(self, marks: Sequence[tuple[Label, str]], gutter: int) -> list[str]:
        """The source lines of all marks. Those on the line of the mark before them share its excerpt."""
        lines: list[str] = []
        previous: Span | None = None
        for label, style in marks:
            span = label.span
            one_line = span.line == span.end_line
            shared = (
                previous is not None
                and one_line
                and (previous.source.filename, previous.line, previous.end_line)
                == (span.source.filename, span.line, span.line)
            )
            if not shared:
                if previous is not None and span.source.filename != previous.source.filename:
                    lines.append(f"{' ' * gutter}{self._paint('frame', '-->')} {span}")
                else:
                    lines.append(f"{' ' * gutter} {self._paint('frame', '|')}")
            lines += self._excerpt(label, style, gutter, with_source=not shared)
            previous = span
        return lines

    def _excerpt(self, label: Label, style: str, gutter: int, with_source: bool) -> list[str]:
        span = label.span
        numbers = list(range(span.line, max(span.line, span.end_line) + 1))
        skipped = len(numbers) > MANY_LINES
        if skipped:
            numbers = [*numbers[:2], numbers[-1]]
        lines: list[str] = []
        for number in numbers:
            text = span.source.line(number)
            if number not in (span.line, span.end_line) and not text.strip():
                continue
            if skipped and number == numbers[-1]:
                lines.append(self._paint("frame", "..."))
            start = span.column - 1 if number == span.line else len(text) - len(text.lstrip())
            end = span.end_column - 1 if number == span.end_line else len(text.rstrip())
            shown, before, length = self._window(text, start, end)
            mark = ("-" if style == "label" else "^") * length
            note = f" {label.text}" if label.text and number == numbers[-1] else ""
            if with_source:
                lines.append(f"{self._paint('frame', f'{number:>{gutter}} |')} {shown}".rstrip())
            under = f"{' ' * before}{self._paint(style, mark + note)}"
            lines.append(f"{' ' * gutter} {self._paint('frame', '|')} {under}")
        return lines

    def _window(self, text: str, start: int, end: int) -> tuple[str, int, int]:
        """The visible part of a line, the cells before the mark, and the length of the mark in cells."""
        shown, starts = _printed_line(text)
        last = len(text)
        past = max(0, start - last)  # the end of the line, where Python expected more
        first_cell, end_cell = starts[min(start, last)] + past, starts[min(max(end, start), last)] + past
        length = max(1, end_cell - first_cell)
        if starts[-1] <= self.width:
            return shown, first_cell, length
        length = min(length, self.width - 2)
        margin = max(0, (self.width - length) // 2)
        left = max(0, min(first_cell - margin, starts[-1] - self.width))
        cut, at = [], 0
        head = None
        for character in shown:
            size = cells(character)
            if left <= at and at + size <= left + self.width:
                head = at if head is None else head
                cut.append(character)
            at += size
        before = first_cell - (head or 0)
        result = "".join(cut)
        if left > 0:
            result, before = "…" + result, before + 1
        if starts[-1] > left + self.width:
            result += "…"
        return result, before, length

    def _paint(self, style: str, text: str) -> str:
        return f"\x1b[{_STYLES[style]}m{text}\x1b[0m" if self.color and text else text
