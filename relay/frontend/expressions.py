"""Expressions: one case for each that Relay has."""

from __future__ import annotations

import ast

from relay.errors import FrontendError, Span
from relay.frontend.conditions import lower_boolean, lower_comparison, lower_conditional, truth
from relay.frontend.context import TEMPORARY_NAMES, Context
from relay.frontend.functions import lower_lambda
from relay.frontend.unsupported import refuse_expression
from relay.ir.expr import Apply, Atom, Attribute, Expr, Index, MakeTuple, OpCall, Slice, Static

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

UNARY: dict[type[ast.unaryop], str] = {
    ast.USub: "negative",
    ast.Not: "logical_not",
    ast.Invert: "bitwise_not",
}

LIST_METHODS = ("append", "extend", "insert", "remove", "clear", "pop")


def lower_expression(context: Context, node: ast.expr) -> Expr:
    """The value of an expression. What it needs is bound in the current block, from left to right."""
    match node:
        case ast.Name(id=name):
            return context.read(name, context.span(node))
        case ast.Constant(value=value):
            return lower_constant(context, node, value)
        case ast.BinOp():
            return _binary(context, node)
        case ast.Call():
            return _call(context, node)
        case ast.Attribute(value=value, attr=name):
            return Attribute(context.atom(value), name, context.span(node))
        case ast.Subscript(value=value, slice=items):
            base = context.atom(value)
            return Index(base, lower_items(context, items), context.span(node))
        case ast.Compare():
            return lower_comparison(context, node)
        case ast.UnaryOp():
            return _unary(context, node)
        case ast.BoolOp():
            return lower_boolean(context, node)
        case ast.IfExp():
            return lower_conditional(context, node)
        case ast.Tuple(elts=items) | ast.List(elts=items):
            return MakeTuple(tuple(context.atom(item) for item in items), context.span(node))
        case ast.Lambda():
            return lower_lambda(context, node, "lambda")
        case ast.NamedExpr(target=ast.Name() as target, value=value):
            return context.assign(target.id, context.expression(value), context.span(target))
        case _:
            raise refuse_expression(context.file, node)


def lower_constant(context: Context, node: ast.Constant, value: object) -> Atom:
    """A literal."""
    span = context.span(node)
    if isinstance(value, bool):
        return truth(value, span)
    if value is None or value is Ellipsis or isinstance(value, int | float | str):
        return Static(value, span)
    kind = "complex numbers are" if isinstance(value, complex) else "bytes are"
    raise FrontendError(f"{kind} not part of Relay", span, help="use real numbers" if "complex" in kind else None)


def _binary(context: Context, node: ast.BinOp) -> Expr:
    """Arithmetic. `a + b + c + ..` leans to the left without end, so that side is a loop."""
    spine = [node]
    while isinstance(spine[-1].left, ast.BinOp):
        spine.append(spine[-1].left)
    left = context.atom(spine[-1].left)
    while True:
        operation = spine.pop()
        right = context.atom(operation.right)
        value = OpCall(BINARY[type(operation.op)], (left, right), {}, context.span(operation))
        if not spine:
            return value
        left = context.bind(value, TEMPORARY_NAMES.get(type(operation.op), "bits"), value.span)


def _unary(context: Context, node: ast.UnaryOp) -> Expr:
    operand, span = node.operand, context.span(node)
    if isinstance(node.op, ast.USub) and isinstance(operand, ast.Constant) and type(operand.value) in (int, float):
        return Static(-operand.value, span)  # type: ignore[operator]
    value = context.atom(operand)
    if isinstance(node.op, ast.UAdd):
        return value
    return OpCall(UNARY[type(node.op)], (value,), {}, span)


def _call(context: Context, node: ast.Call) -> Expr:
    span = context.span(node)
    match node.func:
        case ast.Name(id="print") if not context.defines("print") and context.scope.resolve("print") is print:
            raise FrontendError(
                "`print` is not part of Relay yet", span, help="return the value, or look at it with the interpreter"
            )
        case ast.Attribute(value=ast.Name(id=name), attr=method) if method in LIST_METHODS and context.defines(name):
            raise FrontendError(
                f"`{name}.{method}` is not supported yet: a list cannot change its length",
                span,
                help="write into a tensor of the right size by `x[i] = v`, or use relay.concatenate",
            )
    function = context.atom(node.func)
    arguments: list[Atom] = []
    for argument in node.args:
        if isinstance(argument, ast.Starred):
            raise FrontendError(
                "`*` in a call is not part of Relay", context.span(argument), help="write the arguments one by one"
            )
        arguments.append(context.atom(argument))
    keywords: list[tuple[str, Atom]] = []
    for keyword in node.keywords:
        if keyword.arg is None:
            raise FrontendError(
                "`**` in a call is not part of Relay", context.span(keyword), help="write the arguments one by one"
            )
        keywords.append((keyword.arg, context.atom(keyword.value)))
    return Apply(function, tuple(arguments), tuple(keywords), span)


def lower_items(context: Context, node: ast.expr) -> tuple[Atom | Slice, ...]:
    """What stands between the brackets of `x[..]`."""
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


def joined_span(start: Span, end: Span) -> Span:
    """From the start of one span to the end of another one."""
    return Span(start.source, start.line, start.column, end.end_line, end.end_column)
