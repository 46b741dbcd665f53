"""Inlay hints: the types of assigned names, and of parameters and results without annotations."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from lsprotocol import types

from relay.cli.lsp import scope
from relay.cli.lsp.analysis import Analysis

_LONGEST_LABEL = 48
_WITHOUT_SHAPE = ("function ", "method ", "operator ", "derivative ", "the ", "'", "module ")


def hints(analysis: Analysis, asked: types.Range) -> list[types.InlayHint]:
    """The hints in a range."""
    first, last = asked.start.line + 1, asked.end.line + 1
    found: list[types.InlayHint] = []
    pending: list[ast.AST] = list(analysis.tree.body)
    while pending:
        node = pending.pop()
        if getattr(node, "end_lineno", last) < first or getattr(node, "lineno", first) > last + 200:
            continue
        pending += ast.iter_child_nodes(node)
        for line, column, text in _of_node(analysis, node):
            if first <= line <= last:
                found.append(_hint(analysis, line, column, text))
    return sorted(found, key=lambda hint: (hint.position.line, hint.position.character))


def _of_node(analysis: Analysis, node: ast.AST) -> Iterator[tuple[int, int, str]]:
    match node:
        case ast.Assign(targets=targets):
            for target in targets:
                yield from _of_target(analysis, target)
        case ast.For(target=target) | ast.NamedExpr(target=target):
            yield from _of_target(analysis, target)
        case ast.FunctionDef():
            yield from _of_signature(analysis, node)
        case _:
            pass


def _of_target(analysis: Analysis, target: ast.expr) -> Iterator[tuple[int, int, str]]:
    match target:
        case ast.Name():
            found = analysis.types_of(target)
            if found and not found[0].startswith(_WITHOUT_SHAPE):
                span = analysis.file.span(target)
                yield span.end_line, span.end_column, f": {found[0]}"
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            for part in parts:
                yield from _of_target(analysis, part)
        case _:
            pass


def _of_signature(analysis: Analysis, node: ast.FunctionDef) -> Iterator[tuple[int, int, str]]:
    function = analysis.functions.get(node.lineno)
    for parameter in scope.parameters(node):
        if parameter.annotation is None:
            found = analysis.types_of(parameter)
            if found:
                span = analysis.file.parameter_span(parameter)
                yield span.end_line, span.end_column, f": {found[0]}"
    if function is not None and function.result is not None and node.returns is None:
        place = _end_of_parameters(analysis, node)
        if place is not None:
            yield (*place, f" -> {function.result}")


def _end_of_parameters(analysis: Analysis, node: ast.FunctionDef) -> tuple[int, int] | None:
    """The place after the parenthesis that closes the parameters."""
    arguments = node.args
    written = [*arguments.defaults, *arguments.kw_defaults, *(a.annotation for a in scope.parameters(node))]
    spans = [analysis.file.span(part) for part in written if part is not None]
    spans += [analysis.file.parameter_span(part) for part in scope.parameters(node)]
    spans = spans or [analysis.file.function_span(node)]
    line, column = max((s.end_line, s.end_column) for s in spans)
    for number in range(line, node.body[0].lineno + 1):
        text = analysis.file.source.line(number)
        found = text.find(")", column - 1 if number == line else 0)
        if found >= 0:
            return number, found + 2
    return None


def _hint(analysis: Analysis, line: int, column: int, text: str) -> types.InlayHint:
    short = text if len(text) <= _LONGEST_LABEL else f"{text[:_LONGEST_LABEL]}.."
    position = analysis.text.position(line, column)
    tooltip = text.strip() if short is not text else None
    return types.InlayHint(position, short, kind=types.InlayHintKind.Type, tooltip=tooltip)
