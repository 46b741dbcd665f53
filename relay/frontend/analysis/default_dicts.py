"""Dicts with a default, `collections.defaultdict` and `Counter`, as dicts: what reads and changes their items gives the
default where a key is missing.

    counts = defaultdict(int)        counts = {}
    counts[k] += 1                   counts[k] = counts.get(k, 0) + 1
    graph[a].append(b)               graph.setdefault(a, []); graph[a].append(b)
    d.setdefault(a, {})[b] = v       d.setdefault(a, {}); d[a][b] = v
    graph[a]                         graph.setdefault(a, [])
    counter[k]                       counter.get(k, 0)
    counter.update(xs)               counter = counter.counted__(xs)

They are known by the variables to which they are assigned.
"""

from __future__ import annotations

import ast
import copy
from collections import Counter
from collections.abc import Iterator

from relay.frontend.analysis.names import assigned_values
from relay.frontend.analysis.rewriting import NameMeanings, statement_lists

_OF_CLASSES = {"int": "0", "float": "0.0", "bool": "False", "str": "''", "list": "[]", "dict": "{}", "set": "set()"}
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


def as_dicts(tree: ast.AST) -> None:
    """Rewrite the dicts with a default of a text."""
    names = NameMeanings(tree)
    _Defaults(names, None).rewrite(tree)
    for node in list(ast.walk(tree)):
        if isinstance(node, _FUNCTIONS) and any(_meaning(names, n) is not None for n in _own_nodes(node)):
            _Defaults(names, node).rewrite(node)


def _own_nodes(function: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a function without the functions in it, of which there is the node itself."""
    pending = list(ast.iter_child_nodes(function))
    while pending:
        node = pending.pop()
        yield node
        if not isinstance(node, _FUNCTIONS):
            pending.extend(ast.iter_child_nodes(node))


def _meaning(names: NameMeanings, node: ast.AST) -> str | None:
    """`defaultdict` or `Counter`, for a call of that."""
    if not isinstance(node, ast.Call):
        return None
    match names.meaning(node.func), node.args, node.keywords:
        case "collections.defaultdict", [_] | [_, _], []:
            return "defaultdict"
        case "collections.Counter", [] | [_], []:
            return "Counter"
        case _:
            return None


class _Defaults:
    """The dicts with a default that a function makes, and their uses; without a function only what needs none of
    them."""

    def __init__(self, names: NameMeanings, tree: ast.AST | None) -> None:
        self._names = names
        self._variables: dict[str, ast.Call] = {}
        if tree is None:
            return
        others = Counter(n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))
        others.update(n.arg for n in ast.walk(tree) if isinstance(n, ast.arg))
        own = {id(node) for node in _own_nodes(tree)}
        for name, value in assigned_values(tree):
            if id(value) in own and isinstance(value, ast.Call) and self._meaning(value) is not None:
                before = self._variables.setdefault(name, value)
                others[name] -= self._text(before) == self._text(value)
        for name in [name for name in self._variables if others[name]]:
            del self._variables[name]  # it may hold something else

    def rewrite(self, tree: ast.AST) -> None:
        """Rewrite statements, then what reads items, then what makes the dicts."""
        for body in statement_lists(tree):
            body[:] = [made for statement in body for made in self._statement(statement)]
        if not self._variables:
            return
        inner = {id(part) for node in ast.walk(tree) if _is_of_rounds(node) for part in ast.walk(node)}
        for node in reversed(list(ast.walk(tree))):
            for field, value in ast.iter_fields(node):
                if isinstance(value, ast.expr):
                    setattr(node, field, self._expression(value, id(value) in inner))
                elif isinstance(value, list):
                    value[:] = [self._expression(v, id(v) in inner) if isinstance(v, ast.expr) else v for v in value]

    # ---- what they are

    def _meaning(self, node: ast.expr) -> str | None:
        return _meaning(self._names, node)

    def _text(self, call: ast.Call) -> str:
        return ast.dump(call.args[0]) if self._meaning(call) == "defaultdict" else "Counter"

    def _maker(self, node: ast.expr) -> ast.Call | None:
        """The call that has made a dict with a default; None for other values."""
        match node:
            case ast.Name(name):
                return self._variables.get(name)
            case ast.Subscript(value=outer) if (found := self._maker(outer)) is not None:
                match found.args:
                    case [ast.Lambda(body=ast.Call() as inner), *_] if self._meaning(inner) is not None:
                        return inner
                    case [ast.Name() as cls, *_] if self._names.meaning(cls) == "collections.Counter":
                        return ast.Call(cls, [], [])
        return None

    def _default(self, maker: ast.Call) -> ast.expr:
        if self._meaning(maker) == "Counter":
            return ast.Constant(0)
        match maker.args[0]:
            case ast.Name(name) if name in _OF_CLASSES:
                return ast.parse(_OF_CLASSES[name], mode="eval").body
            case ast.Lambda(body=body):
                return self._new_dict(copy.deepcopy(body))
            case function:
                return self._new_dict(ast.Call(copy.deepcopy(function), [], []))

    def _new_dict(self, node: ast.expr) -> ast.expr:
        """A new dict for the call of its class, anything else as it is."""
        meaning = self._meaning(node)
        if meaning != "defaultdict" or not isinstance(node, ast.Call):
            return node
        given = node.args[1:]
        return ast.Call(ast.Name("dict", ast.Load()), given, []) if given else ast.Dict([], [])

    # ---- statements

    def _statement(self, statement: ast.stmt) -> list[ast.stmt]:
        """A statement with what its changes of items need before it."""
        before: list[ast.stmt] = []
        match statement:
            case (
                ast.Expr(ast.Call(ast.Attribute(ast.Call() as made) as whole))
                | ast.Assign([ast.Subscript(ast.Call() as made) as whole])
                | ast.AugAssign(ast.Subscript(ast.Call() as made) as whole)
            ) if (parts := _setdefault(made)) is not None:
                held, key, new = parts
                place = self._place(held, key, before)
                before.append(ast.Expr(_method(held, "setdefault", [copy.deepcopy(place.slice), new])))
                whole.value = place
            case ast.AugAssign(ast.Subscript(held, key) as target, operator, value) if (
                maker := self._maker(held)
            ) is not None:
                self._prepare(held, before)
                place = self._place(held, key, before)
                old = _method(held, "get", [copy.deepcopy(place.slice), self._default(maker)])
                place.ctx = ast.Store()
                return _at(target, statement, [*before, ast.Assign([place], ast.BinOp(old, operator, value))])
            case ast.Expr(ast.Call(ast.Attribute(held, "update"), args=[_, *_]) as call) if (
                maker := self._maker(held)
            ) is not None and self._meaning(maker) == "Counter":
                changed = copy.deepcopy(held)
                changed.ctx = ast.Store()  # type: ignore[attr-defined]
                return _at(call, statement, [ast.Assign([changed], _method(held, "counted__", call.args))])
            case ast.Expr(ast.Call(ast.Attribute(held))) | ast.AugAssign(ast.Subscript(held)):
                self._prepare(held, before)
            case ast.Assign(targets=targets):
                for part in targets:
                    if isinstance(part, ast.Subscript):
                        self._prepare(part.value, before)
            case _:
                pass
        return _at(statement, statement, [*before, statement]) if before else [statement]

    def _prepare(self, held: ast.expr, before: list[ast.stmt]) -> None:
        """See to it that an item is there which a statement changes, and those around it."""
        if not isinstance(held, ast.Subscript):
            return
        self._prepare(held.value, before)
        if (maker := self._maker(held.value)) is None:
            return
        held.slice = self._place(held.value, held.slice, before).slice
        key = copy.deepcopy(held.slice)
        before.append(ast.Expr(_method(held.value, "setdefault", [key, self._default(maker)])))
        held.is_there = True  # type: ignore[attr-defined]

    def _place(self, held: ast.expr, key: ast.expr, before: list[ast.stmt]) -> ast.Subscript:
        """`held[key]`, whose key is computed once."""
        if not isinstance(key, ast.Name | ast.Constant):
            name = f"key{len(before)}__"
            before.append(ast.Assign([ast.Name(name, ast.Store())], key))
            key = ast.Name(name, ast.Load())
        place = ast.Subscript(copy.deepcopy(held), copy.deepcopy(key), ast.Load())
        place.is_there = True  # type: ignore[attr-defined]
        return place

    # ---- expressions

    def _expression(self, node: ast.expr, in_rounds: bool) -> ast.expr:
        match node:
            case ast.Subscript(held, key, ast.Load()) if (
                not hasattr(node, "is_there")
                and not isinstance(key, ast.Slice)
                and (maker := self._maker(held)) is not None
            ):
                counts = self._meaning(maker) == "Counter"
                if not counts and (in_rounds or not isinstance(held, ast.Name)):
                    return node  # which changes nothing: a key has to be there
                made: ast.expr = _method(held, "get" if counts else "setdefault", [key, self._default(maker)])
            case ast.Call() if (made := self._new_dict(node)) is not node:
                pass
            case _:
                return node
        return _with_places(made, node)


def _is_of_rounds(node: ast.AST) -> bool:
    """True for expressions that may be computed several times, and cannot change variables."""
    return isinstance(node, ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp | ast.Lambda)


def _setdefault(call: ast.Call) -> tuple[ast.expr, ast.expr, ast.expr] | None:
    """The dict, the key and the default of a call of `setdefault`."""
    match call:
        case ast.Call(ast.Attribute(held, "setdefault"), [key, new], []):
            return held, key, new
        case _:
            return None


def _method(held: ast.expr, name: str, arguments: list[ast.expr]) -> ast.Call:
    return ast.Call(ast.Attribute(copy.deepcopy(held), name, ast.Load()), arguments, [])


def _with_places(made: ast.expr, of: ast.expr) -> ast.expr:
    for node in _without_place(made):
        ast.copy_location(node, of)
    return made


def _at(of: ast.AST, statement: ast.stmt, statements: list[ast.stmt]) -> list[ast.stmt]:
    """Statements at the place of the one that they stand for."""
    for made in statements:
        for node in _without_place(made):
            ast.copy_location(node, statement if isinstance(node, ast.stmt) else of)
    return statements


def _without_place(made: ast.AST) -> Iterator[ast.AST]:
    return (n for n in ast.walk(made) if isinstance(n, ast.expr | ast.stmt) and not hasattr(n, "lineno"))
