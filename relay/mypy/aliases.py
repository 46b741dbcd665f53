"""`type Row = Tensor[Float, (3,)]`: removal of Tensor subscripts that mypy cannot analyze."""

from __future__ import annotations

from mypy.nodes import Expression, IndexExpr, MemberExpr, MypyFile, NameExpr, ReturnStmt, TupleExpr, TypeAliasStmt

from relay.mypy.checked import TYPES


def plain_aliases(file: MypyFile) -> None:
    """Drop the brackets after Relay's types in the `type` statements of a file."""
    for statement in file.defs:
        if isinstance(statement, TypeAliasStmt):
            for inner in statement.value.body.body:
                if isinstance(inner, ReturnStmt) and inner.expr is not None:
                    inner.expr = _strip_subscripts(inner.expr)


def _strip_subscripts(node: Expression) -> Expression:
    match node:
        case IndexExpr(base=NameExpr(name=name) | MemberExpr(name=name)) if name in TYPES:
            return node.base
        case IndexExpr():
            node.index = _strip_subscripts(node.index)
        case TupleExpr():
            node.items = [_strip_subscripts(item) for item in node.items]
        case _:
            pass
    return node
