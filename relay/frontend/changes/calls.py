"""Calls of functions that change their arguments: the variable, field or item that was passed gets what comes back.

swap(xs, i, j)        result, xs = swap(xs, i, j)
push(self.heap, v)    result, heap = push(self.heap, v); self.heap = heap
stack.push(v)         result, stack = stack.push(v)
super().push(v)       result, self = (the method push of the classes above)(self, v)
"""

from __future__ import annotations

import ast

from relay.frontend.assignments import Place
from relay.frontend.changes.facts import RECEIVER, Position, object_of_super
from relay.frontend.changes.parameters import Mark
from relay.frontend.context import Context, temporary_name
from relay.frontend.displays import argument
from relay.ir.expr import Atom, Expr, Global, Static, Var
from relay.ir.intrinsic import Intrinsic
from relay.ir.surface import Apply, Attribute, Index, Unpack


def lower_changing_call(context: Context, node: ast.Call, mark: Mark) -> Atom:
    """The result of a call; its arguments are computed from left to right, and assigned after it in this order."""
    span = context.span(node)
    wanted = dict(mark.places)
    places: dict[Position, Place] = {}

    def passed_atom(position: Position, expression: ast.expr) -> Atom:
        if wanted.get(position) is None:
            return argument(context, expression)
        places[position] = Place(context, expression, changes=position != RECEIVER)  # which its class decides
        return places[position].read()

    if RECEIVER in wanted and isinstance(node.func, ast.Attribute):
        held, name, place = node.func.value, node.func.attr, context.span(node.func)
        of_super = object_of_super(held, context.node)
        receiver = passed_atom(RECEIVER, of_super or held)
        method = Attribute(receiver, name, place) if of_super is None else _inherited(context, node.func, receiver)
        function: Atom = context.bind(method, name, place)
    else:
        function = context.atom(node.func)
    arguments = tuple(passed_atom(i, a) for i, a in enumerate(node.args))
    keywords = tuple((k.arg, passed_atom(k.arg, k.value)) for k in node.keywords if k.arg is not None)
    numbers = {k.arg: len(arguments) + i for i, k in enumerate(node.keywords) if k.arg is not None}
    order: list[Position] = [p for p, _ in mark.places] if mark.is_local else list(places)
    back = [p for p in order if p not in mark.returned]
    changed = () if mark.is_local else tuple(p if isinstance(p, int) else numbers[p] for p in order)
    result = Var(temporary_name(node), None, span)
    call = Apply(function, arguments, keywords, span, changed)
    parts: dict[Position, Atom] = {p: Var("changed", None, span) for p in back}
    if back:
        whole = context.bind(call, "changed", span)
        context.emit((result, *parts.values()), Unpack(whole, 1 + len(parts), span))  # type: ignore[arg-type]
    else:
        context.emit((result,), call)
    for position in order:
        if position in places:
            part = parts.get(position)
            way = mark.returned.get(position, ())
            places[position].store(part or _in_result(context, result, way), inside=True)
    return result


def lower_inherited(context: Context, node: ast.Attribute) -> Expr | None:
    """`super().name`; None for all else."""
    whole = None if context.defines("super") else object_of_super(node.value, context.node)
    return None if whole is None else _inherited(context, node, context.atom(whole))


def _inherited(context: Context, node: ast.Attribute, whole: Atom) -> Expr:
    """The attribute that an object has from the classes above the one in which `super()` is written."""
    assert isinstance(node.value, ast.Call)
    span, given = context.span(node), node.value.args
    above = context.atom(given[0]) if given else Global("__class__", None, span)
    return Apply(Static(Intrinsic("inherited"), span), (whole, above, Static(node.attr, span)), (), span)


def _in_result(context: Context, result: Var, way: tuple[int, ...]) -> Atom:
    """The value at a place in the result of a function."""
    found: Atom = result
    for step in way:
        found = context.bind(Index(found, (Static(step, result.span),), result.span), "changed", result.span)
    return found
