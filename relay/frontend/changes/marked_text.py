"""Functions with marks: copies of their syntax trees, in which calls say what they change."""

from __future__ import annotations

import ast
import copy
from collections.abc import Mapping

from relay.frontend.changes.loops import with_loops
from relay.frontend.changes.parameters import Changes, is_user_file
from relay.frontend.source import FunctionNode, SourceFile
from relay.ir.definition import Scope


def marked(
    file: SourceFile, scope: Scope, node: FunctionNode
) -> tuple[FunctionNode, dict[int, tuple[int, ...] | None]]:
    """The function with marks, and the positions of the parameters that it changes, with the ways from its result to
    those that are in it. Where there is nothing to mark it is the function as it is, as are those of Relay's library,
    which is written for values."""
    if not is_user_file(file.source.filename):
        return node, {}
    changes = Changes(file, scope, node)
    calls, functions = changes.marks()
    if calls or functions:
        node = _copy(node, calls, functions)
        with_loops(node)
    ways = changes.function.returned()
    return node, {p: ways.get(p) for p in changes.function.changed_parameters()}


def _copy(
    node: FunctionNode, calls: Mapping[ast.Call, object], functions: Mapping[FunctionNode, object]
) -> FunctionNode:
    """A copy of a syntax tree, without recursion, whose nodes have their marks."""
    made: dict[int, ast.AST] = {}
    for old in ast.walk(node):
        new = made[id(old)] = copy.copy(old)
        if isinstance(old, ast.Call) and old in calls:
            new.changing = calls[old]  # type: ignore[attr-defined]
        if isinstance(old, ast.FunctionDef | ast.Lambda) and old in functions:
            new.gives_back = functions[old]  # type: ignore[attr-defined]
    for new in made.values():
        for field, value in ast.iter_fields(new):
            if isinstance(value, list):
                setattr(new, field, [made.get(id(v), v) for v in value])
            elif isinstance(value, ast.AST):
                setattr(new, field, made[id(value)])
    found = made[id(node)]
    assert isinstance(found, ast.FunctionDef | ast.Lambda)
    return found
