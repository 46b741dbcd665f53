"""The outline of a document: its functions, classes and names at the top."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from lsprotocol import types

from relay.cli.lsp import scope
from relay.cli.lsp.analysis import Analysis


def symbols(analysis: Analysis) -> list[types.DocumentSymbol]:
    """The symbols of a document, those of classes and functions inside of them."""
    return _of_body(analysis, analysis.tree.body, False)


def _of_body(analysis: Analysis, body: Sequence[ast.stmt], in_class: bool) -> list[types.DocumentSymbol]:
    found: list[types.DocumentSymbol] = []
    for node in body:
        match node:
            case ast.FunctionDef(name=name, body=inner) | ast.AsyncFunctionDef(name=name, body=inner):
                function = analysis.functions.get(node.lineno)
                kind = types.SymbolKind.Method if in_class else types.SymbolKind.Function
                defined = [s for s in inner if isinstance(s, ast.FunctionDef | ast.ClassDef)]
                children = _of_body(analysis, defined, False)
                found.append(_symbol(analysis, node, name, kind, None if function is None else function.type, children))
            case ast.ClassDef(name=name, body=inner):
                children = _of_body(analysis, inner, True)
                found.append(_symbol(analysis, node, name, types.SymbolKind.Class, None, children))
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                kind = types.SymbolKind.Field if in_class else types.SymbolKind.Variable
                found.append(_symbol(analysis, node, name, kind, None, []))
            case _:
                pass
    return found


def _symbol(
    analysis: Analysis,
    node: ast.stmt,
    name: str,
    kind: types.SymbolKind,
    detail: str | None,
    children: list[types.DocumentSymbol],
) -> types.DocumentSymbol:
    whole = analysis.text.range(analysis.file.span(node))
    is_named = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
    chosen = analysis.text.range(scope.span_of(analysis, node)) if is_named else whole
    return types.DocumentSymbol(name, kind, whole, chosen, detail=detail, children=children)
