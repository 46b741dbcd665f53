"""Positions in the user's source, and the errors that point at them.

An error prints as::

    model.py:7:12: error: the shapes (3, 4) and (5,) cannot be broadcast together
      |
    7 |     return x + y
      |            ^^^^^
      = note: x: Tensor[float32, (3, 4)]
      = help: transpose or reshape one of them

`RelayError` and its subclasses are the user's mistakes; `InternalError` is ours.
"""

from __future__ import annotations

import attrs


@attrs.frozen(eq=False)
class Source:
    """A text that a span points into: a file, a notebook cell or a string."""

    filename: str
    text: str = attrs.field(repr=False)
    first_line: int = 1  # the number of the text's first line in the file

    def line(self, number: int) -> str:
        """The line with this number in the file, without its newline; empty where there is none."""
        lines = self.text.split("\n")
        index = number - self.first_line
        return lines[index] if 0 <= index < len(lines) else ""


@attrs.frozen
class Span:
    """A stretch of source. Lines count from 1, columns from 1; the end column is exclusive."""

    source: Source
    line: int
    column: int
    end_line: int
    end_column: int

    def __str__(self) -> str:
        return f"{self.source.filename}:{self.line}:{self.column}"


@attrs.frozen
class Label:
    """A secondary place of an error: where, and what is there."""

    span: Span
    text: str


def render(
    kind: str, message: str, span: Span | None, labels: tuple[Label, ...], notes: tuple[str, ...], help: str | None
) -> str:
    """Lay out one diagnostic as plain text."""
    where = f"{span}: " if span is not None else ""
    lines = [f"{where}{kind}: {message}"]
    marked = ([Label(span, "")] if span is not None else []) + list(labels)
    width = max((len(str(label.span.line)) for label in marked), default=1)
    gutter = " " * width + " |"
    for number, label in enumerate(marked):
        if number and label.span.source is not marked[0].span.source:
            lines.append(f"{' ' * width}--> {label.span}")
        else:
            lines.append(gutter)
        lines += _excerpt(label, width, gutter, "^" if number == 0 and span is not None else "-")
    lines += [f"{' ' * width} = note: {note}" for note in notes]
    if help is not None:
        lines.append(f"{' ' * width} = help: {help}")
    return "\n".join(lines)


def _excerpt(label: Label, width: int, gutter: str, mark: str) -> list[str]:
    text = label.span.source.line(label.span.line)
    expanded = text.expandtabs(4)
    start = len(text[: label.span.column - 1].expandtabs(4))
    if label.span.end_line == label.span.line:
        end = len(text[: label.span.end_column - 1].expandtabs(4))
    else:
        end = len(expanded)
    underline = " " * start + mark * max(1, end - start)
    note = f" {label.text}" if label.text else ""
    return [f"{label.span.line:>{width}} | {expanded}", f"{gutter} {underline}{note}"]


class RelayError(Exception):
    """A mistake in the user's program or call. `str()` is the whole diagnostic.

    Args:
        message: what was found and what was expected, in the user's vocabulary.
        span: the place, where there is one.
        labels: further places that explain it.
        notes: facts, one a line.
        help: the fix, where one is known.
    """

    def __init__(
        self,
        message: str,
        span: Span | None = None,
        *,
        labels: tuple[Label, ...] = (),
        notes: tuple[str, ...] = (),
        help: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.span = span
        self.labels = labels
        self.notes = notes
        self.help = help

    def __str__(self) -> str:
        return render("error", self.message, self.span, self.labels, self.notes, self.help)

    def at(self, span: Span | None) -> RelayError:
        """The same error placed at `span`, unless it has a place already."""
        if self.span is None:
            self.span = span
        return self


class FrontendError(RelayError):
    """A Python construct that Relay does not have, or a name that means nothing."""


class TypeCheckError(RelayError):
    """The program has no type."""


class TypeMismatch(TypeCheckError):
    """Two types, or a type and what an operator accepts, differ. Type relations raise it."""


class ShapeError(TypeMismatch):
    """Two shapes differ, or a shape is not one that an operator accepts. Shape rules raise it."""


class DifferentiationError(RelayError):
    """A derivative was asked for that does not exist."""


class CompileError(RelayError):
    """A valid program that the chosen target cannot run."""


class ExecutionError(RelayError):
    """The program failed while it ran: a division by zero, an index out of range, an assertion."""


class RegistrationError(RelayError):
    """An operator's definition is incomplete or contradicts itself; nothing was registered."""


class InternalError(Exception):
    """A bug of Relay's own. It is not the user's mistake, and says so."""

    def __init__(self, message: str) -> None:
        super().__init__(f"this is a bug in Relay, not in your program: {message}")
