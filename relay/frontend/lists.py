"""Methods that change a list: as values do not change, the variable or place that held the list gets the new one."""

from __future__ import annotations

import ast

from relay.frontend.assignments import update_item
from relay.frontend.context import Context
from relay.frontend.displays import argument
from relay.frontend.names import changes_list
from relay.ir.expr import Apply, Atom, Attribute, Expr, SetAttribute, Static, Unpack, Var
from relay.ir.intrinsic import Intrinsic


def lower_list_statement(context: Context, node: ast.expr) -> bool:
    """`xs.append(v)`, `d["k"].append(v)`, `r.value.append(v)` and their kin, as statements. False for anything else."""
    match node:
        case ast.Call(func=ast.Attribute(value=held, attr=method), args=arguments, keywords=keywords):
            if not changes_list(method, node):
                return False
        case _:
            return False
    span = context.span(node)
    intrinsic = Intrinsic("spread" if method == "extend" else method)

    def changed(old: Atom) -> Expr:
        given = tuple(argument(context, a) for a in arguments)
        named = tuple((k.arg, context.atom(k.value)) for k in keywords if k.arg is not None)
        return Apply(Static(intrinsic, span), (old, *given), named, span)

    match held:
        case ast.Name(id=name) if context.defines(name):
            context.change_list(name)
            context.change_parameter(name, span)
            context.assign(name, changed(context.read(name, context.span(held))), span)
        case ast.Subscript():
            update_item(context, held, lambda old: context.bind(changed(old), "list", span))
        case ast.Attribute(value=reference, attr="value"):
            cell = context.atom(reference)
            old = context.bind(Attribute(cell, "value", context.span(held)), "value", context.span(held))
            context.emit((), SetAttribute(cell, "value", context.bind(changed(old), "list", span), span))
        case _:
            return False
    return True


def lower_pop(context: Context, xs: ast.Name, node: ast.Call) -> Atom:
    """`xs.pop(..)`, anywhere: the element, while the variable gets the rest."""
    span = context.span(node)
    context.change_list(xs.id)
    pair = Apply(Static(Intrinsic("pop"), span), (context.atom(xs), *map(context.atom, node.args)), (), span)
    item, rest = Var("item", None, span), Var(xs.id, None, span)
    context.emit((item, rest), Unpack(context.bind(pair, "popped", span), 2, span))
    context.rename(xs.id, rest, span)
    return item
