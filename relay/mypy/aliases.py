"""`type Row = Tensor[Float, (3,)]`: what stands in brackets after Tensor is no Python expression of a type."""

from __future__ import annotations

from mypy.nodes import Expression, IndexExpr, MemberExpr, MypyFile, NameExpr, ReturnStmt, TupleExpr, TypeAliasStmt

from relay.mypy.checked import TYPES


def plain_aliases(file: MypyFile) -> None:
    """Leave out what stands in brackets after Relay's types in the `type` statements of a file."""
    for statement in file.defs:
        if isinstance(statement, TypeAliasStmt):
            for inner in statement.value.body.body:
                if isinstance(inner, ReturnStmt) and inner.expr is not None:
                    inner.expr = _plain(inner.expr)


def _plain(node: Expression) -> Expression:
    match node:
        case IndexExpr(base=NameExpr(name=name) | MemberExpr(name=name)) if name in TYPES:
            return node.base
        case IndexExpr():
            node.index = _plain(node.index)
        case TupleExpr():
            node.items = [_plain(item) for item in node.items]
        case _:
            pass
    return node
