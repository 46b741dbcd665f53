"""Open documents: their texts, and positions in the units of the client.

Relay counts lines and columns from 1, columns in characters; the protocol from 0, columns in units of UTF-16 unless the
client takes others. Lines end with `\\n`, `\\r\\n` or `\\r`.
"""

from __future__ import annotations

import bisect
import re
from functools import cached_property

import attrs
from lsprotocol import types

from relay.errors import Span

_UNITS = {"utf-8": ("utf-8", 1), "utf-16": ("utf-16-le", 2), "utf-32": ("utf-32-le", 4)}
_LINE_END = re.compile(r"\r\n|\r|\n")


@attrs.frozen(eq=False, slots=False)
class Text:
    """A text with its lines. `encoding`: the units in which the client counts columns."""

    text: str
    encoding: str = "utf-16"

    @cached_property
    def _starts(self) -> list[int]:
        return [0, *(match.end() for match in _LINE_END.finditer(self.text))]

    @cached_property
    def lines(self) -> list[str]:
        """The lines without their ends."""
        return _LINE_END.split(self.text)

    def _units(self, text: str) -> int:
        if text.isascii():
            return len(text)
        codec, size = _UNITS[self.encoding]
        return len(text.encode(codec, "surrogatepass")) // size

    def column(self, position: types.Position) -> int:
        """The column of a position in characters, from 0; the end of its line if that is shorter."""
        line = self.lines[position.line] if position.line < len(self.lines) else ""
        if line.isascii():
            return min(position.character, len(line))
        columns = range(len(line) + 1)
        return min(bisect.bisect_left(columns, position.character, key=lambda c: self._units(line[:c])), len(line))

    def place(self, position: types.Position) -> tuple[int, int]:
        """Line and column as Relay counts them."""
        return position.line + 1, self.column(position) + 1

    def offset(self, position: types.Position) -> int:
        """The offset of a position in the text."""
        if position.line >= len(self.lines):
            return len(self.text)
        return self._starts[position.line] + self.column(position)

    def position(self, line: int, column: int) -> types.Position:
        """The position of a place as Relay counts it."""
        if line < 1:
            return types.Position(0, 0)
        if line > len(self.lines):
            return types.Position(len(self.lines) - 1, self._units(self.lines[-1]))
        return types.Position(line - 1, self._units(self.lines[line - 1][: max(column - 1, 0)]))

    def range(self, span: Span) -> types.Range:
        """The range of a span."""
        start, end = self.position(span.line, span.column), self.position(span.end_line, span.end_column)
        return types.Range(start, end)

    def with_change(self, change: types.TextDocumentContentChangeEvent) -> Text:
        """The text after a change."""
        if not isinstance(change, types.TextDocumentContentChangePartial):
            return Text(change.text, self.encoding)
        start, end = self.offset(change.range.start), self.offset(change.range.end)
        return Text(self.text[:start] + change.text + self.text[max(start, end) :], self.encoding)
