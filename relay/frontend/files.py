"""The decorated functions of a Python file, read without importing it.

Statements at the top of the file that have no effect are evaluated: imports of Relay, NumPy and a few modules of the
standard library, assignments of what `is_pure` accepts, data classes. What else a function mentions is `Outside`: only
importing the file can tell what it is.
"""

from __future__ import annotations
import __future__

import ast
import builtins
import contextlib
import dataclasses
import functools
import importlib
import linecache
import math
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import attrs
import numpy as np

from relay.errors import RelayError, Span
from relay.frontend import lower
from relay.frontend.scope import ParameterScope, TextScope
from relay.frontend.source import FunctionNode, SourceFile, parse_text
from relay.ir.definition import MISSING, Definition, Scope
from relay.typecheck.elaboration.entities import Consequence

KNOWN_MODULES = ("relay", "numpy", "math", "dataclasses", "typing", "collections", "functools", "__future__")
"""Modules whose import has no effect that a check should avoid."""

_RELAY = (
    "dims",
    "type_var",
    "shape_var",
    "base_type_var",
    "grad",
    "value_and_grad",
    "vjp",
    "jvp",
    "jacobian",
    "hessian",
)
_NUMPY = (
    *("array", "asarray", "zeros", "ones", "full", "arange", "linspace", "eye", "identity", "dtype", "prod", "reshape"),
    *("zeros_like", "ones_like", "stack", "concatenate", "transpose", "finfo", "iinfo"),
)
_BUILTINS = (
    "range",
    "tuple",
    "list",
    "dict",
    "len",
    "min",
    "max",
    "float",
    "int",
    "bool",
    "abs",
    "round",
    "sum",
    "zip",
)


LARGE = 10**8
"""Expressions whose numbers have a larger product are not evaluated: they may be the size of an array."""


class OutsideName(Consequence):
    """A function mentions a name that only importing the file can resolve, or one whose own mistake is reported."""

    def __init__(self, name: str, mistaken: bool) -> None:
        super().__init__(name)
        self.name = name
        self.mistaken = mistaken


@attrs.frozen(eq=False)
class Outside:
    """Stands for what a name means that reading alone does not tell. Whoever asks what it is gets OutsideName."""

    name: str
    mistaken: bool = False

    @property
    def __relay__(self) -> object:
        raise OutsideName(self.name, self.mistaken)

    __relay_type__ = __relay_data__ = __relay__


@attrs.frozen(eq=False)
class Read:
    """What reading a file found: the decorated functions, by number since names may repeat, and mistakes."""

    definitions: tuple[Definition, ...]
    errors: tuple[RelayError, ...]
    outside: tuple[tuple[str, Span | None, str], ...]  # functions that could not be read: name, place, the unknown name


def read_file(text: str, filename: str, wrap: Callable[[Definition], object]) -> Read:
    """Read a file's decorated functions; `wrap` makes a callable of each, for what the file derives from them.

    Raises FrontendError if the text is no Python.
    """
    file = parse_text(text, filename)
    known = linecache.cache.get(filename)
    linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)  # data classes read it
    try:
        reader = _Reader(file, wrap)
        reader.statements(file.tree.body)
        return reader.finished()
    finally:
        linecache.cache.pop(filename, None)
        if known is not None:
            linecache.cache[filename] = known


class _Reader:
    def __init__(self, file: SourceFile, wrap: Callable[[Definition], object]) -> None:
        self.file = file
        self.wrap = wrap
        self.names: dict[str, Any] = {"__name__": f"<check {file.source.filename}>", "__builtins__": builtins}
        self.flags = 0  # of the file's `from __future__ import ..`
        self.star = False  # some names come from `from module import *`
        self.scope = _FileScope(TextScope({}, self.names), self)
        self.found: list[tuple[FunctionNode, Definition]] = []
        self.waiting: list[tuple[FunctionNode, str, Scope]] = []
        self.errors: list[RelayError] = []
        self.outside: list[tuple[str, Span | None, str]] = []

    def statements(self, body: list[ast.stmt]) -> None:
        for node in body:
            self._statement(node)

    def finished(self) -> Read:
        """Everything found. The functions inside of others come last, when all names at the top are known."""
        for node, name, scope in self.waiting:
            self._define(node, name, scope)
        return Read(tuple(d for _, d in self.found), tuple(self.errors), tuple(self.outside))

    # ---- statements at the top

    def _statement(self, node: ast.stmt) -> None:
        match node:
            case ast.Import(names=aliases):
                for alias in aliases:
                    name = alias.asname or alias.name.split(".")[0]
                    target = alias.name if alias.asname else name
                    self.names[name] = importlib.import_module(target) if _is_known(alias.name) else Outside(name)
            case ast.ImportFrom(module=module, names=aliases, level=level):
                for alias in aliases:
                    if module == "__future__" and hasattr(__future__, alias.name):
                        self.flags |= getattr(__future__, alias.name).compiler_flag
                    self._import(alias.asname or alias.name, module if level == 0 else None, alias.name)
            case ast.Assign(targets=targets, value=value):
                for part in targets:
                    self._assign(part, value)
            case ast.AnnAssign(target=part, value=value) if value is not None:
                self._assign(part, value)
            case ast.FunctionDef(name=name) if self.is_decorated(node):
                self._define(node, name, self.scope, at_top=True)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                self.names[name] = Outside(name)
                self._inside(node.body, self.scope, [node])
            case ast.ClassDef():
                self._class(node)
            case ast.If(test=ast.Compare(left=ast.Name(id="__name__"))):
                pass  # what is done when the file is run as a program
            case _ if type(node).__name__ == "TypeAlias":
                self._execute(node, node.name.id)  # type: ignore[attr-defined]
            case _:
                for inner in ast.walk(node):
                    for name in _bound(inner):
                        self.names[name] = Outside(name)
                self._inside([node], self.scope, [])

    def _import(self, name: str, module: str | None, original: str) -> None:
        if original == "*":
            if module is not None and _is_known(module):
                found = vars(importlib.import_module(module))
                public = found.get("__all__", [name for name in found if not name.startswith("_")])
                self.names.update({name: getattr(importlib.import_module(module), name) for name in public})
            else:
                self.star = True
            return
        self.names[name] = Outside(name)
        if module is not None and _is_known(module):
            with contextlib.suppress(AttributeError):
                self.names[name] = getattr(importlib.import_module(module), original)

    def _assign(self, target: ast.expr, value: ast.expr) -> None:
        names = [n.id for n in ast.walk(target) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
        match target, value:
            case ast.Name(id=name), ast.Call(func=function, args=[ast.Lambda() as node]) if self.is_relay(function):
                self._define(node, name, self.scope, at_top=True)
                return
        if self.is_pure(value) and self._is_small(value):
            statement = ast.Assign([target], value)
            self._execute(ast.copy_location(statement, value), *names)
            return
        for name in names:
            self.names[name] = Outside(name)

    def _class(self, node: ast.ClassDef) -> None:
        data = any(self._value(d) is importlib.import_module("relay").data for d in node.decorator_list)
        if all(map(self.is_pure, (*node.decorator_list, *node.bases))) and self._is_plain(node):
            # the types of a data class are read from the text, which finds the places of mistakes
            self._execute(node, node.name, flags=__future__.annotations.compiler_flag if data else 0)
        else:
            self.names[node.name] = Outside(node.name)
        if not data:
            self._inside(node.body, self.scope, [])

    def _execute(self, node: ast.stmt, *names: str, flags: int = 0) -> None:
        """Run a statement without effects; what it names is Outside if that fails."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                filename = self.file.source.filename
                module = ast.Module([node], [])
                exec(compile(module, filename, "exec", self.flags | flags, dont_inherit=True), self.names)
        except RelayError as error:
            self.errors.append(error.at(self.file.span(node)))
            self.names.update({name: Outside(name, mistaken=True) for name in names})
        except Exception:  # of the user's expression: importing the file shows it
            self.names.update({name: Outside(name) for name in names})

    # ---- decorated functions

    def _define(self, node: FunctionNode, name: str, scope: Scope, at_top: bool = False) -> None:
        if at_top:
            self.names[name] = Outside(name)
        try:
            definition = lower.lower_definition(self.file, scope, node)
            definition = attrs.evolve(definition, pure=self._is_declared_pure(node))
        except OutsideName as unknown:
            if not unknown.mistaken:
                self.outside.append((name, self.file.function_span(node), unknown.name))
        except RelayError as error:
            self.errors.append(error)
            if at_top:
                self.names[name] = Outside(name, mistaken=True)
        else:
            self.found.append((node, definition))
            if at_top:
                self.names[name] = self.wrap(definition)

    def _inside(self, body: list[ast.stmt], scope: Scope, around: list[ast.FunctionDef | ast.AsyncFunctionDef]) -> None:
        """Decorated functions in functions, classes and branches. Local names around them are known to a run only."""
        local = {name: Outside(name) for f in around for inner in ast.walk(f) for name in _bound(inner)}
        local |= {a.arg: Outside(a.arg) for f in around for a in ast.walk(f.args) if isinstance(a, ast.arg)}
        around_scope: Scope = ParameterScope(local, scope) if local else scope
        for node in body:
            for inner in ast.walk(node):
                if isinstance(inner, ast.FunctionDef) and self.is_decorated(inner):
                    self.waiting.append((inner, inner.name, around_scope))

    def is_decorated(self, node: ast.FunctionDef) -> bool:
        """Whether Relay decorates a function."""
        return any(self.is_relay(d.func if isinstance(d, ast.Call) else d) for d in node.decorator_list)

    def _is_declared_pure(self, node: FunctionNode) -> bool:
        """Whether a function is decorated with `@relay(pure=True)`."""
        decorators = node.decorator_list if isinstance(node, ast.FunctionDef) else []
        options = [k for d in decorators if isinstance(d, ast.Call) and self.is_relay(d.func) for k in d.keywords]
        return any(k.arg == "pure" and isinstance(k.value, ast.Constant) and k.value.value is True for k in options)

    def is_relay(self, node: ast.expr) -> bool:
        """Whether an expression is the decorator."""
        return self._value(node) is importlib.import_module("relay")

    # ---- expressions

    def _value(self, node: ast.expr) -> object:
        """What a dotted name means; None for anything else."""
        if isinstance(node, ast.Name):
            return self.names.get(node.id)
        if isinstance(node, ast.Attribute):
            around = self._value(node.value)
            return None if around is None or isinstance(around, Outside) else getattr(around, node.attr, None)
        return None

    def is_pure(self, node: ast.AST) -> bool:
        """Whether an expression can be evaluated without an effect: literals, known names, types, arrays of literals,
        type variables and derivatives."""
        match node:
            case ast.Name(id=name):
                return not isinstance(self.names.get(name, getattr(builtins, name, Outside(name))), Outside)
            case ast.Attribute():
                return self._value(node) is not None
            case ast.Call(func=function, args=arguments, keywords=keywords):
                return self._is_pure_function(function) and all(
                    map(self.is_pure, (*arguments, *(k.value for k in keywords)))
                )
            case ast.Constant() | ast.expr_context() | ast.operator() | ast.unaryop() | ast.cmpop() | ast.boolop():
                return True
            case (
                ast.Tuple() | ast.List() | ast.Dict() | ast.Subscript() | ast.Slice() | ast.Starred()
                | ast.BinOp() | ast.UnaryOp() | ast.Compare() | ast.BoolOp() | ast.IfExp()
            ):  # fmt: skip
                return all(map(self.is_pure, ast.iter_child_nodes(node)))
            case _:
                return False

    def _is_pure_function(self, node: ast.expr) -> bool:
        if isinstance(node, ast.Name) and node.id not in self.names:
            return node.id in _BUILTINS
        value = self._value(node)
        if isinstance(value, np.ufunc) or (isinstance(value, type) and issubclass(value, np.generic)):
            return True
        return any(value is function for function in _pure_functions())

    def _is_small(self, node: ast.expr) -> bool:
        """Whether an expression makes no large value: the numbers in it have a small product, and powers are small."""
        size = 1
        for inner in ast.walk(node):
            number = inner.value if isinstance(inner, ast.Constant) else None
            if isinstance(inner, ast.Name):
                number = self.names.get(inner.id)
            if isinstance(number, int):
                size *= max(abs(number), 1)
            if isinstance(inner, ast.BinOp) and isinstance(inner.op, ast.Pow | ast.LShift):
                right = inner.right
                if not (isinstance(right, ast.Constant) and isinstance(right.value, int | float) and right.value <= 64):
                    return False
                size = 1  # of the operands, which the power bounds
        return size <= LARGE or not any(isinstance(n, ast.Call | ast.Mult) for n in ast.walk(node))

    def _is_plain(self, node: ast.ClassDef) -> bool:
        """Whether the body of a class only declares fields, methods and such classes."""
        for statement in node.body:
            match statement:
                case ast.AnnAssign(value=value, annotation=annotation):
                    annotated = isinstance(annotation, ast.Constant) or self.is_pure(annotation)
                    if not annotated and not isinstance(annotation, ast.Name | ast.Subscript):
                        return False
                    if value is not None and not self.is_pure(value):
                        return False
                case ast.Assign(value=value) if self.is_pure(value):
                    pass
                case ast.FunctionDef(decorator_list=decorators) if all(map(self._is_plain_decorator, decorators)):
                    pass
                case ast.ClassDef(decorator_list=[], bases=[]) if self._is_plain(statement):
                    pass
                case ast.Expr(value=ast.Constant()) | ast.Pass():
                    pass
                case _:
                    return False
        return True

    def _is_plain_decorator(self, node: ast.expr) -> bool:
        return isinstance(node, ast.Name) and node.id in ("staticmethod", "classmethod", "property")


@attrs.frozen(eq=False)
class _FileScope:
    """The names at the top of the file."""

    inner: TextScope
    reader: _Reader

    def resolve(self, name: str) -> object:
        found = self.inner.resolve(name)
        return Outside(name) if found is MISSING and self.reader.star else found

    def names(self) -> list[str]:
        return [name for name in self.inner.names() if not name.startswith("__")]


@functools.cache
def _pure_functions() -> tuple[object, ...]:
    relay = importlib.import_module("relay")
    found = [getattr(relay, name) for name in _RELAY if hasattr(relay, name)]
    found += [*(getattr(np, name) for name in _NUMPY), dataclasses.dataclass]
    return (*found, *(f for f in vars(math).values() if callable(f)))


def _bound(node: ast.AST) -> Iterator[str]:
    """The names that a node binds itself."""
    match node:
        case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
            yield name
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
            for alias in aliases:
                yield alias.asname or alias.name.split(".")[0]
        case ast.ExceptHandler(name=str(name)):
            yield name
        case _:
            pass


def _is_known(module: str) -> bool:
    return module.split(".")[0] in KNOWN_MODULES
