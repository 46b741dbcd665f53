"""The decorated functions of a Python file, read without running it.

Names are resolved from the file alone: imports of Relay, NumPy and math, functions and data classes that the file
decorates, and assignments of literals and of Relay's type variables. What else a function mentions is `OUTSIDE`: only
importing the file can tell, and the check of such a function says so.
"""

from __future__ import annotations

import ast
import builtins
import importlib
from collections.abc import Iterator, Mapping

import attrs

from relay.errors import RelayError
from relay.frontend import lower
from relay.frontend.scope import TextScope
from relay.frontend.source import parse_text
from relay.ir.definition import Definition

KNOWN_MODULES = ("relay", "numpy", "math")
"""Modules whose import has no effect that a check should avoid."""

_TYPE_MAKERS = ("dims", "type_var", "shape_var", "base_type_var")


class OutsideName(Exception):
    """A function mentions a name that only importing the file can resolve."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


@attrs.frozen(eq=False)
class FileScope:
    """The names that a file's functions see. Raises OutsideName for those that the file alone does not tell."""

    inner: TextScope
    outside: frozenset[str]

    def resolve(self, name: str) -> object:
        """The object that the name means, or MISSING."""
        if name in self.outside and name not in self.inner.definitions:
            raise OutsideName(name)
        return self.inner.resolve(name)

    def names(self) -> list[str]:
        """All visible names, for suggestions."""
        return [*self.inner.names(), *self.outside]


@attrs.frozen(eq=False)
class Checked:
    """What reading a file found: the decorated functions, and the errors of those that could not be read."""

    definitions: Mapping[str, Definition]
    errors: tuple[RelayError, ...]
    outside: Mapping[str, str]  # functions that could not be read, and the name that only importing tells


def read_file(text: str, filename: str) -> Checked:
    """Read a file's decorated functions. Raises FrontendError if the text is no Python."""
    file = parse_text(text, filename)
    names, outside = _names(file.tree)
    definitions: dict[str, Definition] = {}
    scope = FileScope(TextScope(definitions, names), frozenset(outside))
    errors: list[RelayError] = []
    unread: dict[str, str] = {}
    for node in decorated(file.tree, names):
        try:
            definitions[node.name] = lower.lower_definition(file, scope, node)
        except OutsideName as name:
            unread[node.name] = name.name
        except RelayError as error:
            errors.append(error)
    return Checked(definitions, tuple(errors), unread)


def decorated(tree: ast.Module, names: Mapping[str, object]) -> Iterator[ast.FunctionDef]:
    """The functions at the top of a file that Relay decorates."""
    relay = importlib.import_module("relay")
    for node in tree.body:
        if not isinstance(node, ast.FunctionDef):
            continue
        for decorator in node.decorator_list:
            target = decorator.func if isinstance(decorator, ast.Call) else decorator
            if isinstance(target, ast.Attribute) and target.attr == "relay":
                target = target.value
            if isinstance(target, ast.Name) and names.get(target.id) is relay:
                yield node
                break


def _names(tree: ast.Module) -> tuple[dict[str, object], set[str]]:
    """What the top of a file defines: names with a value that reading tells, and the others."""
    names: dict[str, object] = {}
    outside: set[str] = set()
    for node in tree.body:
        match node:
            case ast.Import(names=aliases):
                for alias in aliases:
                    bound = alias.asname or alias.name.split(".")[0]
                    if alias.name.split(".")[0] in KNOWN_MODULES:
                        names[bound] = importlib.import_module(alias.name if alias.asname else bound)
                    else:
                        outside.add(bound)
            case ast.ImportFrom(module=module, names=aliases, level=0) if (
                module is not None and module.split(".")[0] in KNOWN_MODULES
            ):
                source = importlib.import_module(module)
                for alias in aliases:
                    if alias.name != "*" and hasattr(source, alias.name):
                        names[alias.asname or alias.name] = getattr(source, alias.name)
            case ast.ImportFrom(names=aliases):
                outside.update(alias.asname or alias.name for alias in aliases)
            case ast.Assign(targets=targets, value=value):
                _assign(names, outside, targets, value)
            case ast.AnnAssign(target=target, value=value) if value is not None:
                _assign(names, outside, [target], value)
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.AsyncFunctionDef(name=name):
                outside.add(name)
            case _:
                outside.update(
                    inner.id
                    for inner in ast.walk(node)
                    if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store)
                )
    return names, outside - set(names)


def _assign(names: dict[str, object], outside: set[str], targets: list[ast.expr], value: ast.expr) -> None:
    found: object = None
    known = True
    try:
        found = ast.literal_eval(value)
    except (ValueError, TypeError):
        known = _makes_types(value, names)
        if known:
            code = compile(ast.Expression(value), "<names>", "eval")
            found = eval(code, {"__builtins__": builtins, **names})  # only Relay's type variables, see _makes_types
    for target in targets:
        parts = target.elts if isinstance(target, ast.Tuple | ast.List) else [target]
        values = list(found) if known and len(parts) > 1 and isinstance(found, tuple | list) else [found] * len(parts)
        for part, item in zip(parts, values, strict=False):
            if isinstance(part, ast.Name):
                if known:
                    names[part.id] = item
                else:
                    outside.add(part.id)


def _makes_types(value: ast.expr, names: Mapping[str, object]) -> bool:
    """Whether an expression only makes type variables: `relay.dims("n m")`, or is a type such as `Tensor[Float,
    (3,)]`."""
    match value:
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=attr), args=arguments, keywords=[]):
            relay = importlib.import_module("relay")
            return (
                names.get(name) is relay
                and attr in _TYPE_MAKERS
                and all(isinstance(a, ast.Constant) for a in arguments)
            )
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]):
            return name in _TYPE_MAKERS and name in names and all(isinstance(a, ast.Constant) for a in arguments)
        case _:
            return False

