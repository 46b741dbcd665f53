"""The check of files' texts: the front end and the type checker over their decorated functions, without importing
them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from relay.compiler import Options, RelayFunction
from relay.diagnostic import Diagnostic, Label, Span
from relay.errors import RelayError, together
from relay.frontend.files import Files
from relay.frontend.outside import Outside, OutsideName
from relay.frontend.unused import unused
from relay.typecheck.elaboration import scheme


class Check:
    """A check of several files, which may import each other. Each is read once; what is told of one may be told again.

    `folders`: where modules are searched besides the folders around a file, the working directory and Python's path.
    """

    def __init__(self, folders: Sequence[str] = ()) -> None:
        self._files = Files(lambda definition: RelayFunction(definition, Options()), folders)

    def text(self, text: str, filename: str) -> list[Diagnostic]:
        """The diagnostics of a file's text, in the order of files and lines; its own come first. Mistakes that keep
        other modules from being read are among them."""
        with self._files as files:
            try:
                read = files.read(text, filename)
            except RelayError as error:
                return list(error.diagnostics)
            errors: list[RelayError] = []
            found = [_not_checked(u.function, u.outside, u.span) for u in read.unread]
            for definition in read.definitions:
                found += unused(definition)
                try:
                    scheme(definition)
                except OutsideName as unknown:
                    if not unknown.outside.mistaken:
                        function = definition.function
                        found.append(_not_checked(function.name, unknown.outside, function.span))
                except RelayError as error:
                    errors.append(error)
            errors = [*files.errors, *errors]
            if errors:
                found += together(errors).diagnostics
            return in_order(found, filename)


def check_text(text: str, filename: str) -> list[Diagnostic]:
    """The diagnostics of one file's text; see `Check.text`."""
    return Check().text(text, filename)


def in_order(diagnostics: Iterable[Diagnostic], first: str = "") -> list[Diagnostic]:
    """Diagnostics in the order of the text; those without a place first, then those of the first file."""
    return sorted(diagnostics, key=lambda d: (_file(d) not in ("", first), _file(d), place_of(d)))


def _file(diagnostic: Diagnostic) -> str:
    return diagnostic.span.source.filename if diagnostic.span is not None else ""


def place_of(diagnostic: Diagnostic) -> tuple[int, int]:
    """Line and column, to sort and compare by."""
    return (diagnostic.span.line, diagnostic.span.column) if diagnostic.span is not None else (0, 0)


def _not_checked(function: str, outside: Outside, span: Span | None) -> Diagnostic:
    message = f"{function} was not checked: only importing the file can tell what {outside.name!r} is; use --import"
    labels = () if outside.span is None else (Label(outside.span, f"{outside.name!r} comes from here"),)
    notes = () if outside.reason is None else (outside.reason,)
    return Diagnostic("note", message, span, labels, notes, code="not-checked")
