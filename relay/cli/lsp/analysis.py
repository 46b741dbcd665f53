"""The analysis of one text: its check, its syntax tree, and the types at its places.

Functions of which nothing has changed are not checked again (`relay/api/checked_file.py`).
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path

import attrs

from relay.api.checked_file import CheckedFile, CheckedFunction, CheckMemory, Place, types_by_place
from relay.api.static_check import Check
from relay.cli.lsp.documents import Text
from relay.cli.lsp.recovery import Repaired, repaired_text
from relay.errors.diagnostic import Diagnostic, Source, Span
from relay.frontend.source import SourceFile
from relay.frontend.static.import_graph import ImportGraph
from relay.support.gc_pause import without_collection

LARGEST_TEXT = 2**21
"""Longer documents, in characters, are not checked."""


@attrs.frozen(eq=False, slots=False)
class Analysis:
    """The analysis of a text. `tree` is that of the text without its syntax errors."""

    filename: str
    text: Text
    repair: Repaired
    check: Check
    checked: CheckedFile
    file: SourceFile

    @cached_property
    def types(self) -> Mapping[Place, Sequence[str]]:
        """The types at the places of expressions and variables."""
        return types_by_place(self.checked.functions, self.filename)

    @cached_property
    def functions(self) -> Mapping[int, CheckedFunction]:
        """The checked functions by the line of `def`, or of the lambda."""
        return {f.span.line: f for f in self.checked.functions if f.span is not None}

    @property
    def tree(self) -> ast.Module:
        """The syntax tree."""
        return self.file.tree

    def types_of(self, node: ast.expr | ast.arg) -> Sequence[str]:
        """The types of an expression, or of a parameter: none if they are not known."""
        span = self.file.parameter_span(node) if isinstance(node, ast.arg) else self.file.span(node)
        return self.types.get((span.line, span.column, span.end_line, span.end_column), ())

    def value(self, expression: str) -> object:
        """The value of an expression of the names at the top, as far as it is known without running anything."""
        return self.check.value(self.repair.text, self.filename, expression)

    @cached_property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """The mistakes in the text. For statements at the top with syntax errors, only these are reported."""
        if self.repair.error is None:
            return self.checked.diagnostics
        damaged = self._damaged_lines()
        found = [d for d in self.checked.diagnostics if d.span is None or d.span.line not in damaged]
        return (self._syntax_error(self.repair.error), *(d for d in found if d.code != "not-checked"))

    def _damaged_lines(self) -> set[int]:
        found = set(self.repair.lines)
        for node in self.tree.body:
            decorators = getattr(node, "decorator_list", [])
            lines = range(min([node.lineno, *(d.lineno for d in decorators)]), (node.end_lineno or node.lineno) + 1)
            if not self.repair.lines.isdisjoint(lines):
                found.update(lines)
        return found

    def _syntax_error(self, error: SyntaxError) -> Diagnostic:
        source = Source(self.filename, "\n".join(self.text.lines))
        line, column = error.lineno or 1, max(error.offset or 1, 1)
        end = max(error.end_offset or 0, column + 1) if error.end_lineno == line else column + 1
        span = Span(source, line, column, line, end)
        return Diagnostic("error", f"this is not valid Python: {error.msg}", span, code="SyntaxError")


class Analyzer:
    """Analyzes texts, and remembers what was found of their functions. `texts`: those of open documents, which count
    instead of the files on disk."""

    def __init__(self, folders: Sequence[str] = (), texts: Callable[[Path], str | None] = lambda path: None) -> None:
        self._folders = folders
        self._texts = texts
        self._memory = CheckMemory()
        self._imports = ImportGraph(folders, texts)

    @without_collection()
    def analyze(self, text: Text, filename: str) -> Analysis:
        """The analysis of a text."""
        check = Check(self._folders, self._texts)
        if len(text.text) > LARGEST_TEXT:
            empty = SourceFile(Source(filename, ""), ast.Module([], []))
            told = Diagnostic("note", "this file is too large to be checked", code="not-checked")
            return Analysis(filename, text, Repaired("", empty.tree), check, CheckedFile((told,)), empty)
        repair = repaired_text("\n".join(text.lines))
        surroundings = self._imports.imports_digest(repair.tree, filename)
        checked = check.file(repair.text, filename, self._memory, surroundings)
        return Analysis(filename, text, repair, check, checked, check.source_file(repair.text, filename))
