"""Calls of functions that change their arguments: the variable, field or item that was passed gets what comes back.

swap(xs, i, j)        result, xs = swap(xs, i, j)
total(xs, taken(xs))  result, xs = taken(xs); total(xs, result)
push(self.heap, v)    result, heap = push(self.heap, v); self.heap = heap
stack.push(v)         result, stack = stack.push(v)
super().push(v)       result, self = (the method push of the classes above)(self, v)
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from relay.errors import FrontendError
from relay.frontend import displays
from relay.frontend.analysis.names import assigned_names, changed_arguments, changed_place
from relay.frontend.assignments import Place
from relay.frontend.changes.facts import RECEIVER, Position, object_of_super, root
from relay.frontend.changes.parameters import Mark
from relay.frontend.context import Context, temporary_name
from relay.frontend.displays import argument
from relay.ir.expr import Atom, Expr, Global, Static, Var
from relay.ir.intrinsic import Intrinsic
from relay.ir.surface import Apply, Attribute, Index, Unpack


def lower_changing_call(context: Context, node: ast.Call, mark: Mark) -> Atom:
    """The result of a call; its arguments are computed from left to right, variables that others of them change last,
    and assigned after it in this order."""
    span = context.span(node)
    wanted = dict(mark.places)
    _require_same(context, node, wanted)
    places: dict[Position, Place] = {}

    def passed_atom(position: Position, expression: ast.expr) -> Atom:
        if wanted.get(position) is None:
            return argument(context, expression)
        places[position] = Place(context, expression, changes=position != RECEIVER)  # which its class decides
        return places[position].read()

    def called_function() -> Atom:
        if RECEIVER not in wanted or not isinstance(node.func, ast.Attribute):
            return context.atom(node.func)
        held, name, place = node.func.value, node.func.attr, context.span(node.func)
        of_super = object_of_super(held, context.node)
        receiver = passed_atom(RECEIVER, of_super or held)
        method = Attribute(receiver, name, place) if of_super is None else _inherited(context, node.func, receiver)
        return context.bind(method, name, place)

    late = _changed_by_others(context, node)
    is_late = isinstance(node.func, ast.Attribute) and _is_name(node.func.value, late)
    function = None if is_late else called_function()
    given: dict[Position, ast.expr] = dict(enumerate(node.args))
    given |= {k.arg: k.value for k in node.keywords if k.arg is not None}
    atoms = {p: passed_atom(p, e) for p, e in given.items() if not _is_name(e, late)}
    atoms |= {p: passed_atom(p, e) for p, e in given.items() if _is_name(e, late)}
    function = called_function() if function is None else function
    arguments = tuple(atoms[i] for i in range(len(node.args)))
    keywords = tuple((k.arg, atoms[k.arg]) for k in node.keywords if k.arg is not None)
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


def lower_arguments(context: Context, node: ast.Call) -> tuple[list[Atom], list[tuple[str, Atom]]]:
    """The arguments of any other call: the positional ones, and those by name."""
    arguments, keywords = displays.lower_arguments(context, node)
    late = _changed_by_others(context, node)
    if late:
        arguments = [context.atom(e) if _is_name(e, late) else a for a, e in zip(arguments, node.args, strict=True)]
        pairs = zip(keywords, node.keywords, strict=True)
        keywords = [(name, context.atom(k.value) if _is_name(k.value, late) else a) for (name, a), k in pairs]
    return arguments, keywords


def _changed_by_others(context: Context, node: ast.Call) -> set[str]:
    """The variables that a call is given whose objects its other arguments change: it gets them as they are then."""
    given = [*node.args, *(k.value for k in node.keywords)]
    read = [*given, node.func.value] if isinstance(node.func, ast.Attribute) else given
    if not any(isinstance(a, ast.Name) for a in read) or not _changes_in_calls(context) or not _has_calls(given):
        return set()
    changed = set(assigned_names(a for a in given if not isinstance(a, ast.Name)))
    if not changed:
        return changed
    return {name for name in changed - _rebound(context, node) if name in context.locals and name not in context.cells}


def _changes_in_calls(context: Context) -> bool:
    """True if a function, or one around it, has an expression that changes a variable. Asked once for each function, as
    looking into all arguments of calls takes quadratic time where these are nested."""
    while context.parent is not None:
        context = context.parent
    found: bool | None = getattr(context.node, "changes_in_calls", None)
    if found is None:
        calls = [n for n in ast.walk(context.node) if isinstance(n, ast.Call | ast.NamedExpr)]
        found = any(isinstance(n, ast.NamedExpr) or changed_arguments(n) or changed_place(n) for n in calls)
        context.node.changes_in_calls = found  # type: ignore[union-attr]
    return found


def _rebound(context: Context, node: ast.Call) -> set[str]:
    """The variables that a call's arguments assign, or functions that they may call."""
    found = {n.target.id for n in ast.walk(node) if isinstance(n, ast.NamedExpr)}
    if _has_calls([*node.args, *(k.value for k in node.keywords)]):
        while context.parent is not None:
            context = context.parent
        found |= {name for n in ast.walk(context.node) if isinstance(n, ast.Nonlocal) for name in n.names}
    return found


def _require_same(context: Context, node: ast.Call, wanted: dict[Position, ast.expr | None]) -> None:
    """Raise FrontendError for a call that changes the object which a variable was before the call assigned it."""
    for place in wanted.values():
        name = None if place is None else root(place)
        if name in _rebound(context, node):
            raise FrontendError(
                f"this call changes `{name}`, which its arguments assign",
                context.span(node),
                help="assign it before, in a statement of its own",
            )


def _has_calls(given: Iterable[ast.expr]) -> bool:
    return any(
        isinstance(n, ast.Call) for a in given if not isinstance(a, ast.Name | ast.Constant) for n in ast.walk(a)
    )


def _is_name(node: ast.expr, names: set[str]) -> bool:
    return isinstance(node, ast.Name) and node.id in names


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
