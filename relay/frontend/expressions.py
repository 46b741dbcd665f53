"""Expressions: one case for each that Relay has."""

from __future__ import annotations

import ast

from relay.errors import FrontendError
from relay.frontend import displays
from relay.frontend.analysis.names import TAKING, is_part, subscripted_name
from relay.frontend.analysis.unsupported import refuse_expression
from relay.frontend.changes.calls import lower_arguments, lower_changing_call, lower_inherited
from relay.frontend.changes.parameters import Mark
from relay.frontend.comprehensions import lower_comprehension, lower_mapped, lower_quantifier
from relay.frontend.conditions import bool_constant, lower_boolean, lower_comparison, lower_condition, lower_conditional
from relay.frontend.context import TEMPORARY_NAMES, Context
from relay.frontend.functions import lower_lambda
from relay.frontend.lists import lower_pop, lower_pop_of_place
from relay.frontend.subscripts import BINARY, lower_items
from relay.frontend.texts import is_print, lower_fstring, lower_print
from relay.ir.debugging.source_places import collected_places
from relay.ir.expr import Atom, Expr, OpCall, Static, Var
from relay.ir.surface import Apply, Attribute, Index

UNARY: dict[type[ast.unaryop], str] = {
    ast.USub: "negative",
    ast.Not: "logical_not",
    ast.Invert: "bitwise_not",
}


def lower_expression(context: Context, node: ast.expr) -> Expr:
    """The value of an expression. What it needs is bound in the current block, from left to right."""
    match node:
        case ast.Name(id=name):
            found = context.read(name, context.span(node))
            if isinstance(found, Var) and (places := collected_places()) is not None:
                places.read(context.span(node), found)
            return found
        case ast.Constant(value=value):
            return lower_constant(context, node, value)
        case ast.BinOp():
            return _binary(context, node)
        case ast.Call():
            return _call(context, node)
        case ast.Attribute() if (inherited := lower_inherited(context, node)) is not None:
            return inherited
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
        case ast.List(elts=items):
            return displays.lower_list(context, items, node)
        case ast.Tuple(elts=items):
            return displays.lower_items(context, items, node)
        case ast.JoinedStr():
            return lower_fstring(context, node)
        case ast.ListComp() | ast.DictComp():
            return lower_comprehension(context, node)
        case ast.Set() | ast.SetComp():
            return displays.lower_set(context, node)
        case ast.Dict():
            return displays.lower_dict(context, node)
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
        return bool_constant(value, span)
    if value is None or value is Ellipsis or isinstance(value, int | float | str):
        return Static(value, span)
    kind, help = (
        ("complex numbers are", "use real numbers")
        if isinstance(value, complex)
        else ("bytes are", "pass a tensor of uint8 as an argument: np.frombuffer(data, np.uint8)")
    )
    raise FrontendError(f"{kind} not part of Relay", span, help=help)


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
    value = lower_condition(context, operand) if isinstance(node.op, ast.Not) else context.atom(operand)
    if isinstance(node.op, ast.UAdd):
        return value
    return OpCall(UNARY[type(node.op)], (value,), {}, span)


def _is_variable(context: Context, node: ast.expr) -> bool:
    """True if the subscripted expression is a variable, or an item of one."""
    name = subscripted_name(node)
    return name is not None and context.defines(name)


def _call(context: Context, node: ast.Call) -> Expr:
    span = context.span(node)
    if is_print(context, node):
        return lower_print(context, node)
    match node.func:
        case ast.Attribute(value=held, attr=method) if method in TAKING and not node.keywords:
            if isinstance(held, ast.Name) and context.defines(held.id):
                return lower_pop(context, held, node)
            is_place = isinstance(held, ast.Subscript | ast.Attribute) and _is_variable(context, held)
            if is_place or (isinstance(held, ast.Attribute) and not is_part(held)):
                assert isinstance(held, ast.Subscript | ast.Attribute)
                return lower_pop_of_place(context, held, node)
        case ast.Name(id="any" | "all" as name) if _is_quantifier(context, node):
            assert isinstance(node.args[0], ast.GeneratorExp)
            return lower_quantifier(context, node.args[0], name == "any")
        case ast.Name("set") if id(node) in context.changed_sets and node.args and not context.defines("set"):
            return displays.lower_set(context, node)
    mark = getattr(node, "changing", None)
    if isinstance(mark, Mark):
        return lower_changing_call(context, node, mark)
    if displays.has_stars(node):
        return displays.lower_starred_call(context, node)
    if (items := lower_mapped(context, node)) is not None:
        return items
    function = context.atom(node.func)
    arguments, keywords = lower_arguments(context, node)
    return Apply(function, tuple(arguments), tuple(keywords), span)


def _is_quantifier(context: Context, node: ast.Call) -> bool:
    """True if a call is Python's `any(c for ..)` or `all(c for ..)`, which stop at the first condition that decides."""
    assert isinstance(node.func, ast.Name)
    name = node.func.id
    is_python = not context.defines(name) and context.scope.resolve(name) in (any, all)
    return is_python and len(node.args) == 1 and isinstance(node.args[0], ast.GeneratorExp) and not node.keywords
