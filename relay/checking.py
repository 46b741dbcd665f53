"""The check of a file's text: the front end and the type checker over its decorated functions, without importing it."""

from __future__ import annotations

from collections.abc import Sequence

from relay.compiler import Options, RelayFunction
from relay.diagnostic import Diagnostic, Span
from relay.errors import RelayError, together
from relay.frontend.files import OutsideName, read_file
from relay.frontend.unused import unused
from relay.typecheck.elaboration import scheme


def check_text(text: str, filename: str) -> list[Diagnostic]:
    """The diagnostics of a file's text, in the order of its lines. The file is not imported."""
    try:
        read = read_file(text, filename, lambda definition: RelayFunction(definition, Options()))
    except RelayError as error:
        return list(error.diagnostics)
    errors = list(read.errors)
    found = [_not_checked(name, unknown, span) for name, span, unknown in read.outside]
    for definition in read.definitions:
        found += unused(definition)
        try:
            scheme(definition)
        except OutsideName as outside:
            if not outside.mistaken:
                found.append(_not_checked(definition.function.name, outside.name, definition.function.span))
        except RelayError as error:
            errors.append(error)
    if errors:
        found += together(errors).diagnostics
    return in_order(found)


def in_order(diagnostics: Sequence[Diagnostic]) -> list[Diagnostic]:
    """Diagnostics in the order of the text; those without a place first."""
    return sorted(diagnostics, key=place_of)


def place_of(diagnostic: Diagnostic) -> tuple[int, int]:
    """Line and column, to sort and compare by."""
    return (diagnostic.span.line, diagnostic.span.column) if diagnostic.span is not None else (0, 0)


def _not_checked(function: str, name: str, span: Span | None) -> Diagnostic:
    message = f"{function} was not checked: only importing the file can tell what {name!r} is; use --import"
    return Diagnostic("note", message, span, code="not-checked")
