"""Hovering: the type of the expression at a place, and what operators and functions are."""

from __future__ import annotations

import ast

from lsprotocol import types

from relay.cli.lsp import scope
from relay.cli.lsp.analysis import Analysis
from relay.cli.lsp.descriptions import describe, function_span
from relay.operator import resolve_name

_MOST_TYPES = 4
_LONGEST_TEXT = 60


def hover(analysis: Analysis, position: types.Position) -> types.Hover | None:
    """The hover text for the expression at a position."""
    line, column = analysis.text.place(position)
    node = scope.node_at(analysis, line, column)
    text = None if node is None else _text(analysis, node, line)
    if node is None or text is None:
        return None
    markdown = types.MarkupContent(types.MarkupKind.Markdown, text)
    return types.Hover(markdown, analysis.text.range(scope.span_of(analysis, node)))


def _text(analysis: Analysis, node: ast.AST, line: int) -> str | None:
    match node:
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
            return _of_definition(analysis, node, name)
        case ast.arg(arg=name):
            return _of_types(name, analysis.types_of(node))
        case ast.alias(name=name, asname=other):
            return _of_meaning(analysis, other or name.split(".")[0])
        case ast.Constant(value=bool() | int() | float() as number):
            return _code(f"{number!r}: {type(number).__name__}, which takes the dtype of what it is combined with")
        case ast.expr():
            return _of_expression(analysis, node, line)
        case _:
            return None


def _of_definition(analysis: Analysis, node: ast.AST, name: str) -> str | None:
    function = analysis.functions.get(node.lineno) if isinstance(node, ast.FunctionDef) else None
    if function is not None and function.type is not None:
        return _code(f"{name}: {function.type}")
    return _of_meaning(analysis, name) if function is None else _code(f"function {name}")


def _of_expression(analysis: Analysis, node: ast.expr, line: int) -> str | None:
    name = scope.dotted_name(node)
    if name is not None and not scope.is_local(analysis, name.split(".")[0], line):
        found = _of_meaning(analysis, name)
        if found is not None:
            return found
    try:
        written = " ".join(ast.unparse(node).split())
    except (ValueError, RecursionError):
        return None
    if isinstance(node, ast.Attribute) and list(analysis.types_of(node)) == [f"method {node.attr}"]:
        operator = resolve_name(node.attr)
        description = None if operator is None else describe(operator, node.attr)
        if description is not None:
            return description.markdown
    short = written if len(written) <= _LONGEST_TEXT else f"{written[:_LONGEST_TEXT]}.."
    return _of_types(short, analysis.types_of(node))


def _of_meaning(analysis: Analysis, name: str) -> str | None:
    """The hover text of a name at the top of the file. The type of a checked function is known."""
    value = analysis.value(name)
    span = function_span(value)
    if span is not None and span.source.filename == analysis.filename and span.line in analysis.functions:
        found = analysis.functions[span.line].type
        if found is not None:
            return _code(f"{name}: {found}")
    description = describe(value, name) if value is not None else None
    return None if description is None else description.markdown


def _of_types(name: str, found: object) -> str | None:
    texts = list(found)  # type: ignore[call-overload]
    if not texts:
        return None
    shown = _code(f"{name}: {texts[0]}")
    if len(texts) > 1:
        others = [f"- `{text}`" for text in texts[1:_MOST_TYPES]]
        shown += "\n\nIn calls:\n\n" + "\n".join(others) + ("\n- .." if len(texts) > _MOST_TYPES else "")
    return shown


def _code(text: str) -> str:
    return f"```python\n{text}\n```"
