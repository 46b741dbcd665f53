"""Diagnostics and fixes as the protocol has them."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

from lsprotocol import types
from pygls.uris import from_fs_path

from relay.cli.lsp.analysis import Analysis
from relay.cli.lsp.documents import Text
from relay.errors.diagnostic import Diagnostic, Label, Span

_SEVERITIES = {
    "error": types.DiagnosticSeverity.Error,
    "warning": types.DiagnosticSeverity.Warning,
    "note": types.DiagnosticSeverity.Information,
}
_OTHER_NAME = re.compile(r"did you mean '?([^\W\d][\w.]*)'?\?")
_WORD = re.compile(r"[^\W\d]\w*")


def diagnostics(analysis: Analysis) -> list[types.Diagnostic]:
    """The mistakes in a document, as diagnostics. A mistake in another file has the place of the call here that led
    to it."""
    return [_diagnostic(analysis, found) for found in analysis.diagnostics]


def _diagnostic(analysis: Analysis, found: Diagnostic) -> types.Diagnostic:
    labels = [Label(found.span, found.message), *found.labels] if found.span is not None else list(found.labels)
    own = next((label.span for label in labels if _is_own(analysis, label.span)), None)
    shown = types.Range(types.Position(0, 0), types.Position(0, 0)) if own is None else analysis.text.range(own)
    related = [
        types.DiagnosticRelatedInformation(location, label.text)
        for label in labels
        if label.span is not own and (location := _location(analysis, label.span)) is not None
    ]
    return types.Diagnostic(
        shown,
        "\n".join([found.message, *found.notes, *([f"help: {found.help}"] if found.help else [])]),
        _SEVERITIES.get(found.severity, types.DiagnosticSeverity.Error),
        code=found.code or None,
        source="relay",
        tags=[types.DiagnosticTag.Unnecessary] if found.code == "unused" else None,
        related_information=related or None,
    )


def _is_own(analysis: Analysis, span: Span) -> bool:
    name = span.source.filename
    return name == analysis.filename or os.path.realpath(name) == os.path.realpath(analysis.filename)


def _location(analysis: Analysis, span: Span) -> types.Location | None:
    if _is_own(analysis, span):
        uri = from_fs_path(analysis.filename) or analysis.filename
        return types.Location(uri, analysis.text.range(span))
    path = Path(span.source.filename)
    uri = from_fs_path(str(path.resolve())) if path.exists() else None
    return None if uri is None else types.Location(uri, Text(span.source.text, analysis.text.encoding).range(span))


def fixes(analysis: Analysis, uri: str, asked: Sequence[types.Diagnostic]) -> list[types.CodeAction]:
    """The fixes that the help of diagnostics proposes, where it is another name."""
    found: list[types.CodeAction] = []
    for diagnostic in asked:
        proposed = _OTHER_NAME.search(diagnostic.message)
        if diagnostic.source != "relay" or proposed is None:
            continue
        place = _name_range(analysis.text, diagnostic, proposed[1])
        if place is not None:
            edit = types.WorkspaceEdit({uri: [types.TextEdit(place, proposed[1])]})
            title = f"Change to {proposed[1]}"
            found.append(types.CodeAction(title, types.CodeActionKind.QuickFix, [diagnostic], edit=edit))
    return found


def _name_range(text: Text, diagnostic: types.Diagnostic, proposed: str) -> types.Range | None:
    """The place of the quoted name within a diagnostic's range."""
    start, end = text.offset(diagnostic.range.start), text.offset(diagnostic.range.end)
    quoted = re.findall(r"'([^']+)'", diagnostic.message.split("\n")[0])
    for word in _WORD.finditer(text.text, start, end):
        if word[0] in quoted and word[0] != proposed:
            line = diagnostic.range.start.line + text.text.count("\n", start, word.start())
            column = word.start() - text.offset(types.Position(line, 0))
            return types.Range(text.position(line + 1, column + 1), text.position(line + 1, column + 1 + len(word[0])))
    return None
