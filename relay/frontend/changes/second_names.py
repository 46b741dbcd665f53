"""Second names of objects: what one of two names changes is changed under the first one.

y = x                        row = grid[i]                  (`for i in range(..)`)
y[0] = 5.0     ->            row[j] = 1.0      ->
                x[0] = 5.0                     grid[i][j] = 1.0

In Python both are one object. So a name that is assigned once, to a variable or to a part of one, stands for that
place from there to the end of its block, if the place means the same object all along: no name in it is assigned, and
nothing changes the objects that it is a part of. Names for which that cannot be seen are left to the check of aliases.
"""

from __future__ import annotations

import ast
import builtins
import copy
from collections import Counter
from collections.abc import Iterator, Sequence

import attrs
import numpy as np

from relay.frontend.analysis.names import LIST_STATEMENTS, TAKING, function_nodes

_VIEWS = ("T", "mT", "real", "imag", "flat", "at", "value", "shape", "dtype")
"""Attributes that are views, or no parts of an object."""

_HARMLESS = frozenset(vars(builtins))
"""Functions that change nothing that they get."""

_READING = {n for kind in (np.ndarray, list, dict, set) for n in dir(kind)} - {"fill", "partition", "put", "resize"}
"""Methods that change nothing, but for those that the translation knows to change their objects."""


def use_first_names(tree: ast.AST, changing: frozenset[str]) -> None:
    """Rewrite the functions of a file. `changing`: the methods of its classes that change their objects."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and any(_second_name(s) for s in function_nodes(node.body)):
            Names(node, changing).rewrite()


def _second_name(statement: ast.AST) -> tuple[str, ast.expr] | None:
    """The name and the place of `y = x`, `row = grid[i]` and `items = self.items`."""
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.Name() | ast.Attribute() | ast.Subscript() as place):
            return name, place
        case _:
            return None


class Names:
    """The names of one function."""

    def __init__(self, node: ast.FunctionDef, changing: frozenset[str], keys: frozenset[str] = frozenset()) -> None:
        """`changing`: the methods that change their objects; `keys`: variables that are keys of dicts."""
        self._node = node
        self._methods = {*LIST_STATEMENTS, *TAKING, *changing}
        self._nodes = list(function_nodes(node.body))
        self._stores = Counter(name for n in self._nodes for name in _stored_names(n))
        arguments = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
        self._parameters = {a.arg for a in (*arguments, node.args.vararg, node.args.kwarg) if a is not None}
        self._integers = {a.arg for a in arguments if isinstance(a.annotation, ast.Name) and a.annotation.id == "int"}
        inner = [n for n in self._nodes if isinstance(n, ast.FunctionDef | ast.Lambda | ast.ClassDef)]
        self._inner = {n.id for each in inner for n in ast.walk(each) if isinstance(n, ast.Name)}
        self._inner |= {name for n in self._nodes if isinstance(n, ast.Global | ast.Nonlocal) for name in n.names}
        targets = [n.target for n in self._nodes if isinstance(n, ast.comprehension)]
        self._inner |= {n.id for each in targets for n in ast.walk(each) if isinstance(n, ast.Name)}
        self._counters = {name for name in (*self._stores, *self._integers) if self._is_counter(name)} | keys

    def rewrite(self) -> None:
        """Use first names wherever a second one is changed."""
        for block in _blocks(self._node):
            position = 0
            while position < len(block):
                found = _second_name(block[position])
                if found is not None and self.is_second(*found, block[position + 1 :]):
                    replace_name(block[position + 1 :], *found)
                    del block[position]
                    if not block:
                        block.append(ast.copy_location(ast.Pass(), found[1]))
                else:
                    position += 1

    def is_second(self, name: str, place: ast.expr, rest: Sequence[ast.stmt]) -> bool:
        """True if a name stands for a place in the rest of its block, and is nowhere else, and one of them changes."""
        path = self._path(place)
        if path is None or self._stores[name] != 1 or name in self._parameters:
            return False
        names = {name, *path.names}
        if names & self._inner:
            return False
        nodes = list(function_nodes(rest))
        if any(n in path.names for node in nodes for n in _stored_names(node)):
            return False
        if _count(nodes, name) != _count(self._nodes, name):
            return False
        changed = [found for node in nodes for found in self.changed_objects(node)]
        if any(root == path.root and depth < path.depth for root, depth in changed):  # another object may be there
            return False
        if path.depth > 0 and self._may_change(path.root, nodes):
            return False
        return any(root in (name, path.root) for root, _ in changed)

    def _path(self, place: ast.expr) -> _Path | None:
        """A place that means the same object as long as its names do; None for views, copies and what may be one."""
        names: set[str] = set()
        depth = 0
        while not isinstance(place, ast.Name):
            depth += 1
            match place:
                case ast.Attribute(value=inner, attr=attribute) if attribute not in _VIEWS:
                    place = inner
                case ast.Subscript(value=inner, slice=index) if self._is_item(index):
                    names |= {n.id for n in ast.walk(index) if isinstance(n, ast.Name)}
                    place = inner
                case _:
                    return None
        if place.id not in self._stores and place.id not in self._parameters:
            return None
        return _Path(place.id, frozenset({place.id, *names}), depth)

    def _is_item(self, index: ast.expr) -> bool:
        """True for an index that is a number or a key, and so no list of indices, which makes a copy."""
        match index:
            case ast.Constant(value=int() | str()):
                return True
            case ast.UnaryOp(op=ast.USub(), operand=inner):
                return self._is_item(inner)
            case ast.BinOp(left=left, op=ast.Add() | ast.Sub() | ast.Mult() | ast.FloorDiv() | ast.Mod(), right=right):
                return self._is_item(left) and self._is_item(right)
            case ast.Name(id=name):
                return name in self._counters
            case _:
                return False

    def _is_counter(self, name: str) -> bool:
        """True for a variable that is only ever an integer by its text."""
        counted = 0
        for node in self._nodes:
            match node:
                case ast.For(target=ast.Name(id=found), iter=ast.Call(func=ast.Name(id="range"))) if found == name:
                    counted += 1
                case ast.For(
                    target=ast.Tuple(elts=[ast.Name(id=found), _]), iter=ast.Call(func=ast.Name(id="enumerate"))
                ) if found == name:
                    counted += 1
                case ast.Assign(targets=[ast.Name(id=found)], value=ast.Constant(value=int())) if found == name:
                    counted += 1
                case ast.AugAssign(
                    target=ast.Name(id=found), op=ast.Add() | ast.Sub(), value=ast.Constant(value=int())
                ):
                    counted += found == name
                case _:
                    pass
        return counted == self._stores[name] and (name in self._integers or name not in self._parameters)

    def changed_objects(self, node: ast.AST) -> Iterator[tuple[str, int]]:
        """The objects that an expression or a statement changes by its text: the variable, and how many attributes and
        items lead from there to the object."""
        match node:
            case ast.Subscript(value=held, ctx=ast.Store() | ast.Del()):
                pass
            case ast.Attribute(value=held, ctx=ast.Store() | ast.Del()):
                pass
            case ast.Call(func=ast.Attribute(value=held, attr=method)) if method in self._methods:
                pass
            case _:
                return
        root = _root(held)
        if root is not None:
            yield root, _depth(held)

    def _may_change(self, root: str, nodes: Sequence[ast.AST]) -> bool:
        """True if a function that gets an object might change it, or a method of it or of a part of it."""
        for node in nodes:
            if not isinstance(node, ast.Call):
                continue
            function = node.func
            if isinstance(function, ast.Attribute) and _root(function.value) == root and function.attr not in _READING:
                return True
            is_module = isinstance(function, ast.Attribute) and _root(function) not in (
                *self._stores,
                *self._parameters,
            )
            is_builtin = isinstance(function, ast.Name) and function.id in _HARMLESS
            if not (is_module or is_builtin) and any(
                isinstance(n, ast.Name) and n.id == root for a in node.args for n in ast.walk(a)
            ):
                return True
        return False


@attrs.frozen(eq=False)
class _Path:
    """A place: its variable, all names in it, and how many attributes and items lead from the variable to it."""

    root: str
    names: frozenset[str]
    depth: int


def _blocks(function: ast.FunctionDef) -> Iterator[list[ast.stmt]]:
    """The lists of statements of a function, without those of functions in it, the inner ones first."""
    found: list[list[ast.stmt]] = []
    pending: list[ast.AST] = [function]
    while pending:
        node = pending.pop()
        for field in ("body", "orelse", "finalbody"):
            block = getattr(node, field, None)
            if isinstance(block, list):
                found.append(block)
                pending += (s for s in block if not isinstance(s, ast.FunctionDef | ast.ClassDef))
        pending += (*getattr(node, "cases", ()), *getattr(node, "handlers", ()))
    return reversed(found)


def _stored_names(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
            yield name
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case (
            ast.ExceptHandler(name=str() as name) | ast.MatchAs(name=str() as name) | ast.MatchStar(name=str() as name)
        ):
            yield name
        case ast.alias(name=name, asname=other):
            yield other or name
        case _:
            pass


def _count(nodes: Sequence[ast.AST], name: str) -> int:
    return sum(isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Load) for n in nodes)


def _root(place: ast.expr) -> str | None:
    while isinstance(place, ast.Attribute | ast.Subscript):
        place = place.value
    return place.id if isinstance(place, ast.Name) else None


def _depth(place: ast.expr) -> int:
    depth = 0
    while isinstance(place, ast.Attribute | ast.Subscript):
        place, depth = place.value, depth + 1
    return depth


def replace_name(statements: Sequence[ast.stmt], name: str, place: ast.expr) -> None:
    """Put a place where a name is read."""
    for node in (n for s in statements for n in ast.walk(s)):
        for field, value in ast.iter_fields(node):
            if isinstance(value, list):
                setattr(node, field, [_for_name(v, name, place) for v in value])
            elif isinstance(value, ast.AST):
                setattr(node, field, _for_name(value, name, place))


def _for_name(node: object, name: str, place: ast.expr) -> object:
    if not isinstance(node, ast.Name) or node.id != name:
        return node
    made = copy.deepcopy(place)
    for part in ast.walk(made):
        if isinstance(part, ast.expr):
            ast.copy_location(part, node)
    return made
