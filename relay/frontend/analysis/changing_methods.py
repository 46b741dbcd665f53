"""Methods that change their object, by the texts of a file's classes.

    self.items.append(v)    ->   the method changes `self`
    self.push(v)            ->   it does so by another method

Which class a variable's object has is not known before elaboration, so names decide where a change is possible.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

import attrs

from relay.frontend.analysis.names import assigned_names, parameters_in_order, subscripted_name
from relay.ir.intrinsic import IN_PLACE


@attrs.frozen
class _Method:
    """A method: whether its own text changes its object, and the methods that it calls on it or on parts of it."""

    name: str
    changes: bool
    calls: frozenset[str]


def read_classes(tree: ast.Module) -> frozenset[str]:
    """The names of the methods that change their objects, of the classes of a file, in which private names and fields
    are marked."""
    methods = []
    for owner in ast.walk(tree):
        if isinstance(owner, ast.ClassDef):
            _mangle_private_names(owner)
            methods += [n for n in owner.body if isinstance(n, ast.FunctionDef) and _takes_object(n)]
    for node in methods:
        _mark_fields(node)
    return _closure([_method(node) for node in methods]) if methods else frozenset()


def _mark_fields(method: ast.FunctionDef) -> None:
    """Mark `self.value`, which is a field of the object, and not what a reference holds."""
    own = parameters_in_order(method.args)[0].arg
    for node in ast.walk(method):
        match node:
            case ast.Attribute(value=ast.Name(id=name), attr="value") if name == own:
                node.is_field = True  # type: ignore[attr-defined]


def _mangle_private_names(owner: ast.ClassDef) -> None:
    """Give `self.__x` in a class the name that Python gives it, `_Class__x`."""
    prefix = owner.name.lstrip("_")
    for node in ast.walk(owner) if prefix else ():
        if isinstance(node, ast.Attribute) and node.attr.startswith("__") and not node.attr.endswith("__"):
            node.attr = f"_{prefix}{node.attr}"


def _takes_object(node: ast.FunctionDef) -> bool:
    decorators = {d.id for d in node.decorator_list if isinstance(d, ast.Name)}
    return bool(parameters_in_order(node.args)) and not decorators & {"staticmethod", "classmethod"}


def _method(node: ast.FunctionDef) -> _Method:
    own = parameters_in_order(node.args)[0].arg
    bodies = [inner.body for inner in ast.walk(node) if isinstance(inner, ast.FunctionDef)]
    return _Method(node.name, any(own in assigned_names(b) for b in bodies), frozenset(_calls_on(node, own)))


def _calls_on(node: ast.FunctionDef, own: str) -> Iterator[str]:
    """The names of the methods that are called on a variable, or on parts of it."""
    for call in ast.walk(node):
        match call:
            case ast.Call(func=ast.Attribute(value=ast.Call(func=ast.Name(id="super")), attr=name)):
                yield name
            case ast.Call(func=ast.Attribute(value=held, attr=name)) if subscripted_name(held) == own:
                yield name


def _closure(methods: list[_Method]) -> frozenset[str]:
    """The names of methods that change their object, themselves or by others that they call."""
    names = {m.name for m in methods if m.changes or m.name in IN_PLACE.values()}
    count = -1
    while count < len(names):
        count = len(names)
        names |= {m.name for m in methods if m.calls & names}
    return frozenset(names)


def changed_objects(statement: ast.stmt, names: frozenset[str]) -> Iterator[str]:
    """The variables on which a statement calls methods of these names, or on parts of which."""
    for node in ast.walk(statement):
        match node:
            case ast.Call(func=ast.Attribute(value=held, attr=name)) if name in names:
                if (changed := subscripted_name(held)) is not None:
                    yield changed
