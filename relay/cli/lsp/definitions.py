"""Definitions: where a name gets its value, in the file or in others, and the pages and files of operators."""

from __future__ import annotations

import ast
import functools
import inspect
import tempfile
from pathlib import Path

from lsprotocol import types
from pygls.uris import from_fs_path

from relay.cli.lsp import scope
from relay.cli.lsp.analysis import Analysis
from relay.cli.lsp.descriptions import function_span
from relay.cli.lsp.documents import Text
from relay.errors import Span
from relay.operator import Operator
from relay.operator.page import page


class OperatorPages:
    """The page of operators, written to a folder that lives as long as the server."""

    def __init__(self) -> None:
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    def place(self, operator: Operator) -> types.Location | None:
        """The place of an operator on the page; None for operators that are not Relay's own."""
        line = _headings().get(operator.name)
        if line is None:
            return None
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="relay-")
            self._path.write_text(page(), encoding="utf-8")
        return _location(str(self._path), line)

    @property
    def _path(self) -> Path:
        assert self._folder is not None
        return Path(self._folder.name) / "operators.md"

    def close(self) -> None:
        """Remove the folder."""
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None


@functools.cache
def _headings() -> dict[str, int]:
    """The lines of the page, from 1, where operators are documented."""
    lines = page().split("\n")
    return {line[4:]: number for number, line in enumerate(lines, start=1) if line.startswith("### ")}


def definition(
    analysis: Analysis, pages: OperatorPages, position: types.Position, *, implementation: bool = False
) -> types.Location | None:
    """The place where the name at a position is defined. For operators that is their page, or else their
    implementation."""
    line, column = analysis.text.place(position)
    node = scope.node_at(analysis, line, column)
    name: str | None = None
    match node:
        case ast.Name(id=local) if scope.is_local(analysis, local, line):
            return _of_node(analysis, scope.definition_of(analysis, local, line))
        case ast.Name() | ast.Attribute():
            name = scope.dotted_name(node)
            if name is not None and scope.is_local(analysis, name.split(".")[0], line):
                name = None
        case ast.alias():
            name = node.asname or node.name.split(".")[0]
        case ast.FunctionDef() | ast.ClassDef() | ast.arg():
            return _of_node(analysis, node)
        case _:
            pass
    return None if name is None else _of_name_at_top(analysis, pages, name, line, implementation)


def _of_name_at_top(
    analysis: Analysis, pages: OperatorPages, name: str, line: int, implementation: bool
) -> types.Location | None:
    value = analysis.value(name)
    local = scope.definition_of(analysis, name, line)
    if local is not None and not isinstance(local, ast.alias):
        return _of_node(analysis, local)
    if isinstance(value, Operator):
        found = None if implementation else pages.place(value)
        return found or _of_python(getattr(value.composition, "function", value.reference))
    span = function_span(value)
    found = _of_span(analysis, span) if span is not None else _of_python(value)
    return found or _of_node(analysis, local)


def _of_node(analysis: Analysis, node: ast.AST | None) -> types.Location | None:
    return None if node is None else _of_span(analysis, scope.span_of(analysis, node))


def _of_span(analysis: Analysis, span: Span) -> types.Location | None:
    if span.source.filename == analysis.filename:
        return types.Location(_uri(analysis.filename), analysis.text.range(span))
    path = Path(span.source.filename)
    if not path.exists():
        return None
    text = Text(span.source.text, analysis.text.encoding)
    return types.Location(_uri(str(path.resolve())), text.range(span))


def _of_python(value: object) -> types.Location | None:
    """The place where a Python function, class or module is written."""
    try:
        path = inspect.getsourcefile(value)  # type: ignore[arg-type]
        line = 1 if inspect.ismodule(value) else inspect.getsourcelines(value)[1]  # type: ignore[arg-type]
    except (TypeError, OSError):
        return None
    return None if path is None else _location(path, line)


def _location(path: str, line: int) -> types.Location:
    place = types.Position(line - 1, 0)
    return types.Location(_uri(path), types.Range(place, place))


def _uri(path: str) -> str:
    return from_fs_path(path) or path
