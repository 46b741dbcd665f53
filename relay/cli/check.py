"""`relay check`: the front end and the type checker over every decorated function of files, without running them."""

from __future__ import annotations

import argparse
import json
import os
import runpy
import sys
import traceback
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from relay.api.checked_file import in_order, place_of
from relay.api.function import RelayFunction
from relay.api.static_check import Check, check_text
from relay.cli import inputs
from relay.cli.refusal import Refusal
from relay.errors import RelayError, combine_errors
from relay.errors.diagnostic import Diagnostic, Span, wants_color
from relay.frontend.analysis.unused import unused_warnings
from relay.frontend.static.text_files import read_source
from relay.ir.definition import Definition
from relay.typecheck.elaboration import scheme

NAME = "check"
HELP = "type-check the decorated functions of Python files, and .relay programs; exit code 1 if there are errors"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    parser.add_argument("files", nargs="+", metavar="FILE", help="files, and folders of .py and .relay files")
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
    """Check, print, and return 1 if there are errors. Raises Refusal if a file cannot be read."""
    found: list[Diagnostic] = []
    check = Check()
    paths = [path for name in options.files for path in _files(Path(name))]
    for path in paths:
        name = str(path)
        if path.suffix == ".relay":
            found += check_program(name)
            continue
        try:
            text = read_source(path)
        except OSError as error:
            raise Refusal(f"cannot read {name}: {error.strerror or error}") from None
        except (UnicodeDecodeError, SyntaxError) as error:
            raise Refusal(f"cannot read {name}: {' '.join(str(error).split())}") from None
        found += check_imported(path, text) if options.importing else check.text(text, name)
    found = _unique_diagnostics(found)
    errors = sum(d.severity == "error" for d in found)
    warnings = sum(d.severity == "warning" for d in found)
    if options.json:
        print(json.dumps([as_json(d) for d in found], indent=2))
    else:
        color = wants_color(sys.stdout)
        for diagnostic in found:
            print(diagnostic.render(color=color), end="\n\n")
        said = _count(errors, "error") if errors else "no errors"
        if warnings:
            said += f" and {_count(warnings, 'warning')}"
        print(f"{said} in {_count(len(paths), 'file')}")
    return 1 if errors else 0


def _files(path: Path) -> Iterator[Path]:
    """A file, or those in a folder and its folders, without hidden ones, caches and environments. A folder that links
    lead to several times, perhaps from inside of it, is searched once. Raises Refusal for one that cannot be read."""
    searched: set[str] = set()
    pending = [path]
    while pending:
        found = pending.pop()
        if not found.is_dir():
            yield found
            continue
        real = os.path.realpath(found)
        if real in searched:
            continue
        searched.add(real)
        try:
            inside = sorted(found.iterdir(), reverse=True)
        except OSError as error:
            raise Refusal(f"cannot read {found}: {error.strerror or error}") from None
        pending += [inner for inner in inside if _is_searched(inner)]


def _is_searched(inner: Path) -> bool:
    """True if the contents of a folder are checked."""
    if not inner.is_dir():
        return inner.suffix in (".py", ".relay")
    hidden = inner.name.startswith(".") or inner.name in ("__pycache__", "node_modules")
    return not hidden and not (inner / "pyvenv.cfg").exists()


def _unique_diagnostics(found: Iterable[Diagnostic]) -> list[Diagnostic]:
    """Diagnostics without those that the check of another file has reported."""
    told: dict[object, Diagnostic] = {}
    for diagnostic in found:
        span = diagnostic.span
        place = (diagnostic.message, None) if span is None else (span.source.filename, span.line, span.column)
        told.setdefault((diagnostic.severity, place), diagnostic)
    return list(told.values())


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'s' * (number != 1)}"


def check_program(name: str) -> list[Diagnostic]:
    """The diagnostics of a program in Relay's notation: the first mistake in it."""
    try:
        inputs.check_program(name)
    except RelayError as error:
        return list(error.diagnostics)
    return []


def check_imported(path: Path, text: str) -> list[Diagnostic]:
    """The diagnostics of a file that is imported (its top level runs, as under another name than `__main__`)."""
    try:
        names = runpy.run_path(str(path), run_name="<relay check>")
    except RelayError as error:
        found = check_text(text, str(path))  # which finds more than the first mistake
        told = {place_of(d) for d in found}
        return [*(d for d in error.diagnostics if place_of(d) not in told), *found]
    except (Exception, SystemExit) as error:
        said = traceback.format_exception_only(error)[-1].strip()
        return [*check_text(text, str(path)), Diagnostic("error", f"{path} cannot be imported: {said}", code="import")]
    errors: list[RelayError] = []
    warnings: list[Diagnostic] = []
    for definition in _definitions(names, path):
        warnings += unused_warnings(definition)
        try:
            scheme(definition)
        except RelayError as error:
            errors.append(error)
    return in_order([*warnings, *(combine_errors(errors).diagnostics if errors else ())])


def _definitions(names: Mapping[str, object], path: Path) -> Iterator[Definition]:
    """The decorated functions of an imported file, also those in its classes."""
    for value in names.values():
        definition = value.__relay__ if isinstance(value, RelayFunction) else None
        if isinstance(definition, Definition) and (span := definition.function.span) is not None:
            if Path(span.source.filename).resolve() == path.resolve():
                yield definition
        elif isinstance(value, type) and value.__module__ == names.get("__name__"):
            yield from _definitions(dict(vars(value)), path)
