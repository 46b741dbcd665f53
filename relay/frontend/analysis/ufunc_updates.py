"""NumPy's updates in place, as updates of variables: `np.add.at(x, i, v)` is `x = x.at[i].add(v)`."""

from __future__ import annotations

import ast

_METHODS = {"add": "add", "multiply": "multiply", "maximum": "max", "minimum": "min"}


def as_assignments(tree: ast.AST) -> None:
    """Rewrite the statements of a text that call `np.add.at` and the like."""
    for node in ast.walk(tree):
        for name in ("body", "orelse", "finalbody"):
            body = getattr(node, name, None)
            if isinstance(body, list):
                body[:] = [_assignment(statement) or statement for statement in body]


def is_update(statement: ast.Assign) -> bool:
    """True if an assignment stands for an update in place."""
    return getattr(statement, "is_update", False)


def _assignment(statement: ast.stmt) -> ast.stmt | None:
    match statement:
        case ast.Expr(
            value=ast.Call(
                func=ast.Attribute(value=ast.Attribute(value=ast.Name(id="np" | "numpy"), attr=ufunc), attr="at"),
                args=[ast.Name(id=name) as changed, place, value],
                keywords=[],
            )
        ) if ufunc in _METHODS:
            places = ast.Subscript(ast.Attribute(changed, "at", ast.Load()), place, ast.Load())
            call = ast.Call(ast.Attribute(places, _METHODS[ufunc], ast.Load()), [value], [])
            made = ast.Assign([ast.Name(name, ast.Store())], call)
            made.is_update = True  # type: ignore[attr-defined]
        case _:
            return None
    for node in ast.walk(made):
        if isinstance(node, ast.expr | ast.stmt) and not hasattr(node, "lineno"):
            ast.copy_location(node, statement)
    return made
