"""`relay check`: the front end and the type checker over every decorated function of files, without running them."""

from __future__ import annotations

import argparse
import json
import runpy
import sys
from collections.abc import Iterator
from pathlib import Path

from relay.cli.inputs import read_program
from relay.compiler import RelayFunction
from relay.diagnostic import Diagnostic, Span, wants_color
from relay.errors import RelayError
from relay.frontend.files import OutsideName, read_file
from relay.ir.definition import Definition, DerivedDefinition
from relay.typecheck.elaboration import scheme
from relay.typecheck.elaboration.session import SchemeOnly

NAME = "check"
HELP = "type-check the decorated functions of Python files, and .relay programs; exit code 1 if there are errors"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    parser.add_argument("files", nargs="+", metavar="FILE")
    parser.add_argument("--json", action="store_true", help="print the diagnostics as a JSON list, for editors")
    parser.add_argument(
        "--import",
        dest="importing",
        action="store_true",
        help="import the files, for functions that use names which reading alone cannot resolve",
    )


def as_json(diagnostic: Diagnostic) -> dict[str, object]:
    """The form that editors read. Lines and columns count from 1, columns in characters; the end column is exclusive.

    `severity` is "error", "warning" or "note", `code` the class of the error. Without a place, there is no `file`.
    """
    return {
        **_place(diagnostic.span),
        "severity": diagnostic.severity,
        "code": diagnostic.code,
        "message": diagnostic.message,
        "labels": [{**_place(label.span), "message": label.text} for label in diagnostic.labels],
        "notes": list(diagnostic.notes),
        "help": diagnostic.help,
    }


def _place(span: Span | None) -> dict[str, object]:
    if span is None:
        return {}
    return {
        "file": span.source.filename,
        "line": span.line,
        "column": span.column,
        "end_line": span.end_line,
        "end_column": span.end_column,
    }


def run(options: argparse.Namespace) -> int:
    """Check, print, and return 1 if there are errors, 2 if a file cannot be read."""
    found: list[Diagnostic] = []
    for name in options.files:
        path = Path(name)
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            print(f"relay check: cannot read {name}: {error}", file=sys.stderr)
            return 2
        if path.suffix == ".relay":
            found += check_program(name)
        else:
            found += check_imported(path) if options.importing else check_text(text, str(path))
    errors = sum(d.severity == "error" for d in found)
    if options.json:
        print(json.dumps([as_json(d) for d in found], indent=2))
    else:
        color = wants_color(sys.stdout)
        for diagnostic in found:
            print(diagnostic.render(color=color), end="\n\n")
        files = f"{len(options.files)} file{'s' * (len(options.files) != 1)}"
        print(f"{errors} error{'s' * (errors != 1)} in {files}" if errors else f"no errors in {files}")
    return 1 if errors else 0


def check_program(name: str) -> list[Diagnostic]:
    """The diagnostics of a program in Relay's notation: the first mistake in it."""
    try:
        read_program(name)
    except RelayError as error:
        return list(error.diagnostics)
    return []


def check_text(text: str, filename: str) -> list[Diagnostic]:
    """The diagnostics of a file's text, in the order of its lines. The file is not imported."""
    try:
        read = read_file(text, filename)
    except RelayError as error:
        return list(error.diagnostics)
    found = [diagnostic for error in read.errors for diagnostic in error.diagnostics]
    for name, outside in read.outside.items():
        found.append(_not_checked(name, outside, None))
    for name, definition in read.definitions.items():
        try:
            found += _check(definition)
        except OutsideName as error:
            found.append(_not_checked(name, error.name, definition.function.span))
    return sorted(found, key=lambda d: (d.span.line, d.span.column) if d.span is not None else (0, 0))


def check_imported(path: Path) -> list[Diagnostic]:
    """The diagnostics of a file that is imported (its top level runs, as under another name than `__main__`)."""
    try:
        names = runpy.run_path(str(path), run_name="<relay check>")
    except RelayError as error:
        return list(error.diagnostics)
    found: list[Diagnostic] = []
    for value in names.values():
        if isinstance(value, RelayFunction) and _is_of(value.__relay__, path):
            found += _check(value.__relay__)
    return found


def _is_of(definition: Definition | DerivedDefinition, path: Path) -> bool:
    if isinstance(definition, DerivedDefinition):
        return False
    span = definition.function.span
    return span is not None and Path(span.source.filename).resolve() == path.resolve()


def _check(definition: Definition | DerivedDefinition) -> Iterator[Diagnostic]:
    try:
        scheme(definition)
    except SchemeOnly:
        pass  # only a call's shapes can tell; nothing is wrong so far
    except RelayError as error:
        yield from error.diagnostics


def _not_checked(function: str, name: str, span: Span | None) -> Diagnostic:
    message = f"{function} was not checked: only importing the file can tell what {name!r} is; use --import"
    return Diagnostic("note", message, span, code="not-checked")
