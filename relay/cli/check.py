"""`relay check`: the front end and the type checker over every decorated function of files, without running them."""

from __future__ import annotations

import argparse
import json
import runpy
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import attrs

from relay.cli.inputs import read_program
from relay.compiler import RelayFunction
from relay.errors import RelayError, Span
from relay.frontend.files import OutsideName, read_file
from relay.ir.definition import Definition, DerivedDefinition
from relay.typecheck.elaboration import scheme
from relay.typecheck.elaboration.tensors import SchemeOnly

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


@attrs.frozen
class Diagnostic:
    """One line of the report: an error, or a note that a function could not be checked."""

    severity: str
    message: str
    text: str
    span: Span | None = None

    def as_json(self) -> Mapping[str, object]:
        """The form that editors read. Lines and columns count from 1; the end column is exclusive."""
        place = {}
        if self.span is not None:
            place = {
                "file": self.span.source.filename,
                "line": self.span.line,
                "column": self.span.column,
                "end_line": self.span.end_line,
                "end_column": self.span.end_column,
            }
        return {**place, "severity": self.severity, "message": self.message}


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
        print(json.dumps([d.as_json() for d in found], indent=2))
    else:
        for diagnostic in found:
            print(diagnostic.text)
            print()
        files = f"{len(options.files)} file{'s' * (len(options.files) != 1)}"
        print(f"{errors} error{'s' * (errors != 1)} in {files}" if errors else f"no errors in {files}")
    return 1 if errors else 0


def check_program(name: str) -> list[Diagnostic]:
    """The diagnostics of a program in Relay's notation: the first mistake in it."""
    try:
        read_program(name)
    except RelayError as error:
        return [_error(error)]
    return []


def check_text(text: str, filename: str) -> list[Diagnostic]:
    """The diagnostics of a file's text, in the order of its lines. The file is not imported."""
    try:
        read = read_file(text, filename)
    except RelayError as error:
        return [_error(error)]
    found = [_error(error) for error in read.errors]
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
        return [_error(error)]
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
        yield _error(error)


def _error(error: RelayError) -> Diagnostic:
    return Diagnostic("error", error.message, str(error), error.span)


def _not_checked(function: str, name: str, span: Span | None) -> Diagnostic:
    message = f"{function} was not checked: only importing the file can tell what {name!r} is; use --import"
    where = f"{span}: " if span is not None else ""
    return Diagnostic("note", message, f"{where}note: {message}", span)
