"""The methods of `collections.OrderedDict` that other dicts do not have, as what dicts do.

d.move_to_end(k)          d[k] = d.pop(k)
d.popitem(last=False)     d.popitem(False)
"""

from __future__ import annotations

import ast
import copy

from relay.frontend.analysis.rewriting import statement_lists


def as_dicts(tree: ast.AST) -> None:
    """Rewrite the calls of these methods in a text."""
    for body in statement_lists(tree):
        body[:] = [_statement(statement) for statement in body]
    for node in ast.walk(tree):
        match node:
            case ast.Call(ast.Attribute(attr="popitem"), [], [ast.keyword("last", last)]):
                node.args, node.keywords = [last], []


def _statement(statement: ast.stmt) -> ast.stmt:
    """`d[k] = d.pop(k)` for `d.move_to_end(k)`, where k is a name or a constant; another statement as it is."""
    match statement:
        case ast.Expr(ast.Call(ast.Attribute(held, "move_to_end"), [ast.Name() | ast.Constant() as key], [])):
            place = ast.Subscript(copy.deepcopy(held), copy.deepcopy(key), ast.Store())
            made = ast.Assign([place], ast.Call(ast.Attribute(held, "pop", ast.Load()), [key], []))
            return ast.fix_missing_locations(ast.copy_location(made, statement))
        case _:
            return statement
