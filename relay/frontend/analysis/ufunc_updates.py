"""NumPy's updates in place, as updates of variables: `np.add.at(x, i, v)` is `x = x.at[i].add(v)`.

A variable of a function around, or a part of another object, gets the elements: `x[...] = x.at[i].add(v)`.
"""

from __future__ import annotations

import ast
import copy

from relay.frontend.analysis.names import is_part, local_names

_METHODS = {"add": "add", "multiply": "multiply", "maximum": "max", "minimum": "min"}


def as_assignments(tree: ast.AST) -> None:
    """Rewrite the statements of a text that call `np.add.at` and the like."""
    waiting: list[tuple[ast.AST, frozenset[str]]] = [(tree, frozenset())]  # with the names that are local there
    while waiting:
        node, local = waiting.pop()
        if isinstance(node, ast.FunctionDef):
            local = frozenset(local_names(node))
        for name in ("body", "orelse", "finalbody"):
            body = getattr(node, name, None)
            if isinstance(body, list):
                body[:] = [_assignment(statement, local) or statement for statement in body]
        waiting += [(child, local) for child in ast.iter_child_nodes(node) if not isinstance(child, ast.expr)]


def is_update(statement: ast.Assign) -> bool:
    """True if an assignment stands for an update in place."""
    return getattr(statement, "is_update", False)


def _assignment(statement: ast.stmt, local: frozenset[str]) -> ast.stmt | None:
    match statement:
        case ast.Expr(
            value=ast.Call(
                func=ast.Attribute(value=ast.Attribute(value=ast.Name(id="np" | "numpy"), attr=ufunc), attr="at"),
                args=[changed, index, value],
                keywords=[],
            )
        ) if ufunc in _METHODS and _is_place(changed):
            places = ast.Subscript(ast.Attribute(changed, "at", ast.Load()), index, ast.Load())
            call = ast.Call(ast.Attribute(places, _METHODS[ufunc], ast.Load()), [value], [])
        case _:
            return None
    if isinstance(changed, ast.Name) and changed.id in local:
        made = ast.Assign([ast.Name(changed.id, ast.Store())], call)
        made.is_update = True  # type: ignore[attr-defined]
    else:
        made = ast.Assign([ast.Subscript(copy.deepcopy(changed), ast.Constant(...), ast.Store())], call)
    for node in ast.walk(made):
        if isinstance(node, ast.expr | ast.stmt) and not hasattr(node, "lineno"):
            ast.copy_location(node, statement)
    return made


def _is_place(node: ast.expr) -> bool:
    """True for a variable or a part of one, which may be read twice."""
    while is_part(node):
        if isinstance(node, ast.Subscript) and any(
            isinstance(n, ast.Call | ast.NamedExpr) for n in ast.walk(node.slice)
        ):
            return False
        node = node.value
    return isinstance(node, ast.Name)
