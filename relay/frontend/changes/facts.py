"""Facts of one function's text: which variables it changes in place, and which it passes on to functions that may."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

import attrs

from relay.frontend.analysis.names import (
    changed_place,
    function_nodes,
    is_part,
    local_names,
    nonlocal_names,
    parameters_in_order,
    target_names,
)
from relay.frontend.analysis.ufunc_updates import is_update
from relay.frontend.source import FunctionNode

Position = int | str
"""An argument of a call: its position, or its keyword; RECEIVER for the value of a method."""

RECEIVER = -1


@attrs.frozen(eq=False)
class PassedPlaces:
    """A call, with the arguments that are variables or parts of them."""

    call: ast.Call
    places: dict[Position, ast.expr]
    is_statement: bool


@attrs.frozen(eq=False)
class Facts:
    """The facts of a function.

    `changed` are the variables whose items, fields or lengths it changes, `parts` those that may be a part of others,
    and `rebound` those that it gives another object. The functions in it are `inner`, of which `named` have a name of
    their own. `values` are read for anything but a call, and `returned` are what every return gives as it is, with its
    way from the value of the return.
    """

    parameters: tuple[str, ...]
    local: frozenset[str]
    changed: frozenset[str]
    parts: dict[str, set[str]]
    rebound: frozenset[str]
    calls: tuple[PassedPlaces, ...]
    inner: tuple[FunctionNode, ...]
    named: dict[str, FunctionNode]
    values: frozenset[str]
    returned: dict[str, tuple[int, ...]]

    def wholes(self, name: str) -> set[str]:
        """A variable and all that it may be a part of."""
        found, waiting = {name}, [name]
        while waiting:
            for whole in self.parts.get(waiting.pop(), ()):
                if whole not in found:
                    found.add(whole)
                    waiting.append(whole)
        return found


def facts(function: FunctionNode) -> Facts:
    """The facts of a function."""
    body = function.body if isinstance(function, ast.FunctionDef) else [function.body]
    nodes = list(function_nodes(body))
    statements = {id(n.value) for n in nodes if isinstance(n, ast.Expr)}
    changed = {name for n in nodes if (name := _changed_name(n)) is not None}
    parts: dict[str, set[str]] = {}
    for node in nodes:
        for part, whole in _parts(node):
            parts.setdefault(part, set()).add(whole)
    inner = tuple(n for n in nodes if isinstance(n, ast.FunctionDef | ast.Lambda))
    named: dict[str, list[FunctionNode]] = {}
    for node in inner:
        if isinstance(node, ast.FunctionDef):
            named.setdefault(node.name, []).append(node)
    several = (function.args.vararg, function.args.kwarg)  # tuples and dicts of the function's own
    rebound = _rebound(nodes) | {a.arg for a in several if a is not None}
    return Facts(
        tuple(a.arg for a in parameters_in_order(function.args)),
        frozenset(local_names(function)),
        frozenset(changed),
        parts,
        frozenset(rebound),
        tuple(_passed(n, id(n) in statements, function) for n in nodes if isinstance(n, ast.Call)),
        inner,
        {name: found[0] for name, found in named.items() if len(found) == 1 and name not in rebound},
        frozenset(_values(function)),
        _returned(function, nodes),
    )


def _changed_name(node: ast.AST) -> str | None:
    """The variable that a node changes in place."""
    match node:
        case ast.Subscript() | ast.Attribute() if isinstance(node.ctx, ast.Store | ast.Del):
            return root(node)
        case ast.AugAssign(target=ast.Name(id=name), op=ast.Add(), value=ast.List() | ast.ListComp()):
            return name
        case ast.Assign(targets=[ast.Name(id=name)]) if is_update(node):
            return name
        case _:
            place = changed_place(node)
            return None if place is None else root(place)


def root(place: ast.expr) -> str | None:
    """The variable that a place is, or is a part of; None for another expression."""
    while is_part(place):
        place = place.value
    return place.id if isinstance(place, ast.Name) else None


def _rebound(nodes: Iterable[ast.AST]) -> set[str]:
    """The names that get another object."""
    kept: set[int] = set()
    found: set[str] = set()
    for node in nodes:
        match node:
            case ast.AugAssign(target=ast.Name() as target):
                kept.add(id(target))
            case ast.Assign(targets=[ast.Name() as target]) if is_update(node):
                kept.add(id(target))
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()) if id(node) not in kept:
                found.add(name)
            case ast.FunctionDef() | ast.Lambda():
                names = nonlocal_names(node)
                found |= names & {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and _is_store(n)}
            case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)) | ast.MatchMapping(rest=str(name)):
                found.add(name)
            case ast.ExceptHandler(name=str(name)):
                found.add(name)
            case _:
                pass
    return found


def _is_store(name: ast.Name) -> bool:
    return isinstance(name.ctx, ast.Store | ast.Del)


def _parts(node: ast.AST) -> Iterator[tuple[str, str]]:
    """The variables that a node makes a part of others, with these."""
    match node:
        case ast.Assign(targets=targets, value=value):
            for target in targets:
                yield from _pairs(target, value)
        case ast.AnnAssign(target=target, value=ast.expr() as value):
            yield from _pairs(target, value)
        case ast.NamedExpr(target=target, value=value):
            yield from _pairs(target, value)
        case ast.For(target=target, iter=iterable):
            yield from ((name, whole) for whole in wholes(iterable) for name in target_names(target))
        case _:
            pass


def _pairs(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, str]]:
    match target, value:
        case ((ast.Tuple(elts=targets) | ast.List(elts=targets)), (ast.Tuple(elts=values) | ast.List(elts=values))):
            for one, other in zip(targets, values, strict=False):
                yield from _pairs(one, other)
        case _:
            yield from ((name, whole) for whole in wholes(value) for name in target_names(target))


def wholes(value: ast.expr) -> Iterator[str]:
    """The variables of which a value, or an element of it, may be a part."""
    match value:
        case ast.Name() | ast.Subscript() | ast.Attribute():
            if (name := root(value)) is not None:
                yield name
        case ast.IfExp(body=one, orelse=other):
            yield from wholes(one)
            yield from wholes(other)
        case ast.BoolOp(values=values):
            for each in values:
                yield from wholes(each)
        case ast.Call(func=ast.Name(id="enumerate" | "zip" | "reversed"), args=given):
            for each in given:
                yield from wholes(each)
        case ast.Call(func=ast.Attribute(value=held, attr="items" | "values"), args=[]):
            yield from wholes(held)
        case _:
            pass


def _returned(function: FunctionNode, nodes: Iterable[ast.AST]) -> dict[str, tuple[int, ...]]:
    """The variables that are the value of every return, or at the same place in it."""
    values = [function.body] if isinstance(function, ast.Lambda) else []
    for node in nodes:
        if isinstance(node, ast.Return):
            values.append(node.value or ast.Constant(None))
        elif isinstance(node, ast.Try) and node.finalbody:  # which may change what is returned
            return {}
    ways = [dict(_ways(value)) for value in values]
    first = ways[0] if ways else {}
    return {name: way for name, way in first.items() if all(w.get(name) == way for w in ways)}


def _ways(value: ast.expr) -> Iterator[tuple[str, tuple[int, ...]]]:
    match value:
        case ast.Name(id=name):
            yield name, ()
        case ast.Tuple(elts=items) if not any(
            isinstance(n, ast.Call | ast.NamedExpr | ast.Starred) for n in ast.walk(value)
        ):
            yield from ((item.id, (i,)) for i, item in enumerate(items) if isinstance(item, ast.Name))
        case _:
            pass


def object_of_super(held: ast.expr, function: FunctionNode) -> ast.expr | None:
    """The object of `super()`, which is a function's first parameter, or of `super(C, x)`; None for all else."""
    match held:
        case ast.Call(func=ast.Name(id="super"), args=[], keywords=[]):
            own = parameters_in_order(function.args)[:1]
            return ast.copy_location(ast.Name(own[0].arg, ast.Load()), held) if own else None
        case ast.Call(func=ast.Name(id="super"), args=[_, whole], keywords=[]):
            return whole
        case _:
            return None


def _passed(call: ast.Call, is_statement: bool, function: FunctionNode) -> PassedPlaces:
    """The places among the arguments of a call, and its receiver."""
    given: dict[Position, ast.expr] = {}
    if not any(isinstance(a, ast.Starred) for a in call.args) and all(k.arg is not None for k in call.keywords):
        given |= dict(enumerate(call.args))
        given |= {k.arg: k.value for k in call.keywords if k.arg is not None}
        if isinstance(call.func, ast.Attribute) and not _is_update(call.func.value):
            held = call.func.value
            given[RECEIVER] = object_of_super(held, function) or held
    return PassedPlaces(call, {p: e for p, e in given.items() if root(e) is not None}, is_statement)


def _is_update(held: ast.expr) -> bool:
    """True for `x.at[i]`, whose methods are those of arrays."""
    return isinstance(held, ast.Subscript) and isinstance(held.value, ast.Attribute) and held.value.attr == "at"


def _values(function: ast.AST) -> Iterator[str]:
    """The names that are read for anything but a call without stars."""
    called = {
        id(n.func)
        for n in ast.walk(function)
        if isinstance(n, ast.Call)
        and not any(isinstance(a, ast.Starred) for a in n.args)
        and all(k.arg is not None for k in n.keywords)
    }
    for node in ast.walk(function):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and id(node) not in called:
            yield node.id
