"""Calls that return what they are given, `return self` of methods and `return xs` of functions, as statements: the
result is another name of the object, and changes of it are those of the object.

    account.add(5.0).scale(3.0)      account.add(5.0); account.scale(3.0)
    y = push(push(xs, 1.0), 2.0)     push(xs, 1.0); push(xs, 2.0); y = xs

The object of a method is of a class of the same text: it is `self`, has the class as annotation, or is assigned once,
to a call of it.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Mapping

from relay.frontend.analysis.rewriting import own_nodes, own_statement_lists, place

_Methods = Mapping[str, frozenset[str]]
_Split = tuple[list[ast.stmt], ast.expr]


def as_statements(tree: ast.Module) -> None:
    """Rewrite the calls of a text that return what they are given."""
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    methods = {name: _returning_methods(node, classes) for name, node in classes.items()}
    functions = {f.name for f in tree.body if isinstance(f, ast.FunctionDef) and _changes_first(f)}
    if not functions and not any(methods.values()):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            known = _Chains(methods, functions - _bound(node), _objects(node, classes))
            for body in own_statement_lists(node):
                body[:] = [made for statement in body for made in known.statements(statement)]


def _bound(function: ast.FunctionDef) -> set[str]:
    """The names that a function gives a meaning of its own."""
    stored = {n.id for n in own_nodes(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    inner = {n.name for n in own_nodes(function) if isinstance(n, ast.FunctionDef | ast.ClassDef)}
    return stored | inner | {a.arg for a in ast.walk(function.args) if isinstance(a, ast.arg)}


def _returning_methods(cls: ast.ClassDef, classes: Mapping[str, ast.ClassDef]) -> frozenset[str]:
    """The methods of a class, and of classes of the text above it, that return their object."""
    found: set[str] = set()
    for base in cls.bases:
        if not isinstance(base, ast.Name) or base.id not in classes or base.id == cls.name:
            return frozenset()
        found |= _returning_methods(classes[base.id], classes)
    for node in cls.body:
        if isinstance(node, ast.FunctionDef):
            found -= {node.name}
            if not node.decorator_list and _returns_first(node):
                found.add(node.name)
    return frozenset(found)


def _returns_first(function: ast.FunctionDef) -> bool:
    """True if each `return` of a function returns its first parameter, which keeps its value."""
    parameters = [*function.args.posonlyargs, *function.args.args]
    if not parameters or not isinstance(function.body[-1], ast.Return):
        return False
    first = parameters[0].arg
    for node in own_nodes(function):
        match node:
            case ast.Return(ast.Name(name)) if name == first:
                pass
            case ast.Return() | ast.Yield() | ast.YieldFrom():
                return False
            case ast.Name(name, ast.Store() | ast.Del()) if name == first:
                return False
            case _:
                pass
    return True


def _changes_first(function: ast.FunctionDef) -> bool:
    """True if a function changes its first parameter, and returns it. A decorator may give it another gradient."""
    if function.decorator_list or not _returns_first(function):
        return False
    first = [*function.args.posonlyargs, *function.args.args][0].arg
    for node in own_nodes(function):
        match node:
            case ast.Expr(ast.Call(ast.Attribute(ast.Name(name)))) if name == first:
                return True
            case ast.Attribute(inner, ctx=ast.Store() | ast.Del()) | ast.Subscript(inner, ctx=ast.Store() | ast.Del()):
                while isinstance(inner, ast.Attribute | ast.Subscript):
                    inner = inner.value
                if isinstance(inner, ast.Name) and inner.id == first:
                    return True
            case _:
                pass
    return False


def _objects(function: ast.FunctionDef, classes: Mapping[str, ast.ClassDef]) -> dict[str, str]:
    """The variables of a function that hold objects of classes of the text."""
    stores: Counter[str] = Counter()
    found: dict[str, str] = {}
    for node in own_nodes(function):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            stores[node.id] += 1
        match node:
            case ast.Assign([ast.Name(name)], value) | ast.AnnAssign(ast.Name(name), _, value):
                while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
                    value = value.func.value
                if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id in classes:
                    found[name] = value.func.id
            case _:
                pass
    found = {name: cls for name, cls in found.items() if stores[name] == 1}
    for argument in (*function.args.posonlyargs, *function.args.args):
        annotation = argument.annotation
        written = annotation.value if isinstance(annotation, ast.Constant) else getattr(annotation, "id", None)
        if isinstance(written, str) and written in classes and not stores[argument.arg]:
            found[argument.arg] = written
    for name, cls in classes.items():
        own = function.args.args
        if function in cls.body and own and not stores[own[0].arg] and not function.decorator_list:
            found[own[0].arg] = name
    return found


class _Chains:
    def __init__(self, methods: _Methods, functions: set[str], objects: Mapping[str, str]) -> None:
        self._methods, self._functions, self._objects = methods, functions, objects

    def statements(self, statement: ast.stmt) -> list[ast.stmt]:
        """A statement without such calls inside of others, after those that do them."""
        match statement:
            case ast.Expr(ast.Call() as call):
                match call:
                    case ast.Call(ast.Attribute(inner) as function):
                        before, function.value = self._split(inner)
                    case ast.Call(ast.Name(name), [first, *_]) if name in self._functions:
                        before, call.args[0] = self._split(first)
                    case _:
                        return [statement]
            case ast.Assign(targets=[ast.Name()], value=value) | ast.Return(value) if value is not None:
                before, statement.value = self._split(value)
            case _:
                return [statement]
        return [*before, statement]

    def _split(self, node: ast.expr) -> _Split:
        """The statements that do the calls in an expression that return what they are given, and what is left."""
        match node:
            case ast.Call(ast.Attribute(inner, method) as function):
                before, function.value = self._split(inner)
                given = function.value
                returns = isinstance(given, ast.Name) and method in self._methods.get(
                    self._objects.get(given.id, ""), ()
                )
            case ast.Attribute(inner) | ast.Subscript(inner):
                before, node.value = self._split(inner)
                return before, node
            case ast.Call(ast.Name(name), [first, *_]) if name in self._functions:
                before, node.args[0] = self._split(first)
                given, returns = node.args[0], True
            case _:
                return [], node
        if not returns or not isinstance(given, ast.Name):
            return before, node
        return [*before, place(ast.Expr(node), node)], place(ast.Name(given.id, ast.Load()), node)
