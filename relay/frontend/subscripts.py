"""Shared parts of expressions and assignments: names of binary operators, and subscripts."""

from __future__ import annotations

import ast

from relay.errors import FrontendError
from relay.frontend.context import Context
from relay.ir.expr import Atom
from relay.ir.surface import Slice

BINARY: dict[type[ast.operator], str] = {
    ast.Add: "add",
    ast.Sub: "subtract",
    ast.Mult: "multiply",
    ast.Div: "divide",
    ast.FloorDiv: "floor_divide",
    ast.Mod: "mod",
    ast.Pow: "power",
    ast.MatMult: "matmul",
    ast.LShift: "left_shift",
    ast.RShift: "right_shift",
    ast.BitAnd: "bitwise_and",
    ast.BitOr: "bitwise_or",
    ast.BitXor: "bitwise_xor",
}


def lower_items(context: Context, node: ast.expr) -> tuple[Atom | Slice, ...]:
    """The items between the brackets of `x[..]`."""
    parts = node.elts if isinstance(node, ast.Tuple) else [node]
    items: list[Atom | Slice] = []
    for part in parts:
        if isinstance(part, ast.Slice):
            start, stop, step = (None if p is None else context.atom(p) for p in (part.lower, part.upper, part.step))
            items.append(Slice(start, stop, step))
        elif isinstance(part, ast.Starred):
            raise FrontendError(
                "`*` in an index is not part of Relay", context.span(part), help="write the indices one by one"
            )
        else:
            items.append(context.atom(part))
    return tuple(items)
