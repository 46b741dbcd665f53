"""One Python file, read without importing it: its decorated functions, and what the names at its top mean.

Statements at the top that have no effect are evaluated: imports of Relay, NumPy and a few modules of the standard
library, assignments of what `PureExpressions` accepts, data classes. Names that come from other modules are looked up
in their files when they are needed. What else a function mentions is `Outside`: only importing it tells what it is.
"""

from __future__ import annotations
import __future__

import ast
import builtins
import difflib
import importlib
import os
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from relay.errors import FrontendError, RelayError, Source, Span
from relay.frontend import data_classes, lower
from relay.frontend.file_module import FileModule
from relay.frontend.functions import with_static
from relay.frontend.outside import Outside, OutsideName
from relay.frontend.pure_expressions import PureExpressions
from relay.frontend.scope import ParameterScope, TextScope
from relay.frontend.source import FunctionNode, SourceFile, parse_text
from relay.ir.definition import MISSING, Definition, Scope

if TYPE_CHECKING:
    from relay.frontend.files import Files

KNOWN_MODULES = ("relay", "numpy", "math", "dataclasses", "typing", "collections", "functools", "__future__")
"""Modules whose import has no effect that a check should avoid."""

Wrap = Callable[[Definition], Any]


@attrs.frozen(eq=False)
class Unread:
    """A function that could not be read: its name, its place, and what is unknown in it."""

    function: str
    span: Span | None
    outside: Outside


class FileReader:
    """One file: what its names mean, and what is decorated in it."""

    def __init__(self, files: Files, filename: str) -> None:
        self.files = files
        self.filename = filename
        self.file = SourceFile(Source(filename, ""), ast.Module([], []))
        self.names: dict[str, Any] = {"__name__": f"<check {filename}>", "__builtins__": builtins}
        data_classes.forget(self.names["__name__"])
        self.expressions = PureExpressions(self.names)
        self.imports: dict[str, Callable[[], Any]] = {}  # names that are imported from files when they are needed
        self.flags = 0  # of the file's `from __future__ import ..`
        self.star = False  # some names come from `from module import *`
        self.loading: set[str] = set()  # of the imported ones
        self.stars: list[Callable[[], FileModule | str]] = []
        self.is_complete = False
        self.scope = _FileScope(TextScope({}, self.names), self)
        self.found: list[tuple[FunctionNode, Definition]] = []
        self.waiting: list[tuple[FunctionNode, str, Scope]] = []
        self.errors: list[RelayError] = []
        self.unread: list[Unread] = []
        self.needs: dict[FileReader, None] = {}
        self.invalid: FrontendError | None = None

    def read(self, text: str) -> None:
        """Read the statements at the top."""
        try:
            self.file = parse_text(text, self.filename)
        except FrontendError as error:
            self.invalid = error
            self.errors.append(error)
        self.files.reading.add(self.filename)
        for node in self.file.tree.body:
            self._statement(node)
        self.files.reading.discard(self.filename)
        self.is_complete = True

    def finish(self) -> None:
        """Read the functions inside of others, which see all names at the top."""
        waiting, self.waiting = self.waiting, []
        for node, name, scope in waiting:
            self._define(node, name, scope)

    @property
    def is_known(self) -> bool:
        """Whether all names at the top are known: one that is not among them does not exist."""
        return self.is_complete and not self.star and not self.loading and "__getattr__" not in self.names

    def meaning(self, name: str) -> object:
        """What a name at the top means, or MISSING."""
        self._load(name)
        if name in self.names:
            return self.names[name]
        for star in self.stars:
            module = star()
            if isinstance(module, FileModule) and not name.startswith("_"):
                found = getattr(module, name, MISSING)
                if found is not MISSING:
                    return found
        return MISSING

    # ---- statements at the top

    def _statement(self, node: ast.stmt) -> None:
        match node:
            case ast.Import(names=aliases):
                for alias in aliases:
                    self._import_module(alias)
            case ast.ImportFrom(module=module, names=aliases, level=level):
                for alias in aliases:
                    if module == "__future__" and hasattr(__future__, alias.name):
                        self.flags |= getattr(__future__, alias.name).compiler_flag
                    self._import_name(alias, module or "", level)
            case ast.Assign(targets=targets, value=value):
                for part in targets:
                    self._assign(part, value)
            case ast.AnnAssign(target=part, value=value) if value is not None:
                self._assign(part, value)
            case ast.FunctionDef(name=name) if self.is_decorated(node):
                self._define(node, name, self.scope, at_top=True)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                self._bind(name, Outside(name, span=self.file.function_span(node), reason="it is a Python function"))
                self._inside(node.body, self.scope, [node])
            case ast.ClassDef():
                self._class(node)
            case ast.If(test=ast.Compare(left=ast.Name(id="__name__"))):
                pass  # what is done when the file is run as a program
            case _ if type(node).__name__ == "TypeAlias":
                self._load_all(node)
                self._execute(node, node.name.id)  # type: ignore[attr-defined]
            case _:
                for inner in ast.walk(node):
                    for name in _bound(inner):
                        self._bind(name, self._outside(name, inner))
                self._inside([node], self.scope, [])

    def _bind(self, name: str, value: object) -> None:
        self.imports.pop(name, None)
        self.names[name] = value

    def _outside(self, name: str, node: ast.AST, reason: str | None = None) -> Outside:
        span = self.file.span(node) if isinstance(node, ast.expr | ast.stmt | ast.alias) else None
        return Outside(name, span=span, reason=reason)

    # ---- imports

    def _import_module(self, alias: ast.alias) -> None:
        name = alias.asname or alias.name.split(".")[0]
        target = alias.name if alias.asname else name
        if _is_known(alias.name):
            self._bind(name, importlib.import_module(target))
        else:
            self._later(name, alias, lambda: self._module(target, 0))

    def _import_name(self, alias: ast.alias, module: str, level: int) -> None:
        known = importlib.import_module(module) if level == 0 and _is_known(module) else None
        if alias.name == "*":
            if known is not None:
                public = getattr(known, "__all__", [name for name in vars(known) if not name.startswith("_")])
                for name in public:
                    self._bind(name, getattr(known, name))
            else:
                self._import_star(module, level)
            return
        name = alias.asname or alias.name
        if known is not None:
            self._bind(name, getattr(known, alias.name, self._outside(name, alias)))
        else:
            self._later(name, alias, lambda: self._attribute(self._module(module, level), alias))

    def _module(self, name: str, level: int) -> FileModule | str:
        found = self.files.module(name, level, Path(os.path.abspath(self.filename)))
        if isinstance(found, FileModule) and found.reader is not None:
            self.needs[found.reader] = None
        return found

    def _attribute(self, module: FileModule | str, alias: ast.alias) -> object:
        """A name of a module. One that it does not have is an error at the import."""
        if isinstance(module, str):
            return module
        try:
            found = getattr(module, alias.name)
        except AttributeError:
            close = difflib.get_close_matches(alias.name, dir(module), n=1)
            help = f"did you mean {close[0]!r}?" if close else None
            message = f"{module.__name__} has no {alias.name!r}"
            self.errors.append(FrontendError(message, self.file.span(alias), help=help))
            return Outside(alias.name, mistaken=True)
        if isinstance(found, FileModule) and found.reader is not None:
            self.needs[found.reader] = None
        return found

    def _import_star(self, module: str, level: int) -> None:
        found: list[FileModule | str] = []

        def once() -> FileModule | str:
            if not found:
                found.append(self._module(module, level))
                if isinstance(found[0], str) or (found[0].reader is not None and not found[0].reader.is_known):
                    self.star = True
            return found[0]

        self.stars.insert(0, once)

    def _later(self, name: str, alias: ast.alias, load: Callable[[], object]) -> None:
        """Bind a name when it is needed; what keeps it from being read is a string."""

        def loaded() -> object:
            found = load()
            return self._outside(name, alias, found) if isinstance(found, str) else found

        self.names.pop(name, None)
        self.imports[name] = loaded

    def _load(self, name: str) -> None:
        """Read what a name is imported from."""
        load = self.imports.get(name)
        if load is None or name in self.loading:
            return
        self.loading.add(name)
        found = load()
        self.loading.discard(name)
        self.names[name] = found
        if not (isinstance(found, Outside) and found.span is None and not found.mistaken and self.files.reading):
            self.imports.pop(name, None)  # otherwise the name may get a value in its file later

    def _load_all(self, node: ast.AST) -> None:
        """Read what all names in a piece of syntax are imported from, also those in texts, which may be annotations."""
        for inner in ast.walk(node):
            if isinstance(inner, ast.Name):
                self._load_name(inner.id)
            elif isinstance(inner, ast.Constant) and isinstance(inner.value, str):
                for name in re.findall(r"\w+", inner.value):
                    self._load_name(name)

    def _load_name(self, name: str) -> None:
        if name not in self.names and self.stars and not hasattr(builtins, name):
            found = self.meaning(name)
            if found is not MISSING:
                self.names[name] = found
        self._load(name)

    # ---- values and classes at the top

    def _assign(self, target: ast.expr, value: ast.expr) -> None:
        names = [n.id for n in ast.walk(target) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
        match target, value:
            case ast.Name(id=name), ast.Call(func=function, args=[ast.Lambda() as node]) if self.is_relay(function):
                self._define(node, name, self.scope, at_top=True)
                return
        self._load_all(value)
        if self.expressions.is_pure(value) and self.expressions.is_small(value):
            statement = ast.Assign([target], value)
            self._execute(ast.copy_location(statement, value), *names)
            return
        for name in names:
            self._bind(name, Outside(name, span=self.file.span(target)))

    def _class(self, node: ast.ClassDef) -> None:
        around = (*node.decorator_list, *node.bases)
        for part in around:
            self._load_all(part)
        data = any(self.expressions.value(d) is importlib.import_module("relay").data for d in node.decorator_list)
        if all(map(self.expressions.is_pure, around)):
            self._load_all(node)
        if all(map(self.expressions.is_pure, around)) and self.expressions.is_plain(node):
            # the types of a data class are read from the text, which finds the places of mistakes
            self._execute(node, node.name, flags=__future__.annotations.compiler_flag if data else 0)
        else:
            self._bind(node.name, Outside(node.name, span=self.file.function_span(node)))
        if not data:
            self._inside(node.body, self.scope, [])

    def _execute(self, node: ast.stmt, *names: str, flags: int = 0) -> None:
        """Run a statement without effects; what it names is Outside if that fails."""
        for name in names:
            self.imports.pop(name, None)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                module = ast.Module([node], [])
                exec(compile(module, self.filename, "exec", self.flags | flags, dont_inherit=True), self.names)
        except RelayError as error:
            self.errors.append(error.at(self.file.span(node)))
            self.names.update({name: Outside(name, mistaken=True) for name in names})
        except OutsideName as unknown:
            self.names.update(dict.fromkeys(names, unknown.outside))
        except Exception:  # of the user's expression: importing the file shows it
            self.names.update({name: self._outside(name, node) for name in names})

    # ---- decorated functions

    def _define(self, node: FunctionNode, name: str, scope: Scope, at_top: bool = False) -> None:
        if at_top:
            self._bind(name, Outside(name))
        try:
            definition = with_static(lower.lower_definition(self.file, scope, node), self._static_names(node))
            definition = attrs.evolve(definition, pure=self._is_declared_pure(node))
        except OutsideName as unknown:
            if not unknown.outside.mistaken:
                self.unread.append(Unread(name, self.file.function_span(node), unknown.outside))
            if at_top:
                self.names[name] = unknown.outside
        except RelayError as error:
            self.errors.append(error)
            if at_top:
                self.names[name] = Outside(name, mistaken=True)
        else:
            self.found.append((node, definition))
            if at_top:
                self.names[name] = self.files.wrap(definition)

    def _inside(self, body: list[ast.stmt], scope: Scope, around: list[ast.FunctionDef | ast.AsyncFunctionDef]) -> None:
        """Decorated functions in functions, classes and branches. Local names around them are known to a run only."""
        reason = "it is a variable of the function around"
        local = {n: self._outside(n, inner, reason) for f in around for inner in ast.walk(f) for n in _bound(inner)}
        arguments = [a for f in around for a in ast.walk(f.args) if isinstance(a, ast.arg)]
        local |= {a.arg: Outside(a.arg, span=self.file.parameter_span(a), reason=reason) for a in arguments}
        around_scope: Scope = ParameterScope(local, scope) if local else scope
        for node in body:
            for inner in ast.walk(node):
                if isinstance(inner, ast.FunctionDef) and self.is_decorated(inner):
                    self.waiting.append((inner, inner.name, around_scope))

    def is_decorated(self, node: ast.FunctionDef) -> bool:
        """Whether Relay decorates a function."""
        return any(self.is_relay(d.func if isinstance(d, ast.Call) else d) for d in node.decorator_list)

    def _options(self, node: FunctionNode) -> dict[str, ast.expr]:
        """What is written in `@relay(..)`."""
        decorators = node.decorator_list if isinstance(node, ast.FunctionDef) else []
        calls = [d for d in decorators if isinstance(d, ast.Call) and self.is_relay(d.func)]
        return {k.arg: k.value for d in calls for k in d.keywords if k.arg is not None}

    def _is_declared_pure(self, node: FunctionNode) -> bool:
        """Whether a function is decorated with `@relay(pure=True)`."""
        match self._options(node).get("pure"):
            case ast.Constant(value=True):
                return True
            case _:
                return False

    def _static_names(self, node: FunctionNode) -> Sequence[str]:
        """The names of `@relay(static_argnames=..)`."""
        match self._options(node).get("static_argnames"):
            case ast.Constant(value=str(name)):
                return (name,)
            case ast.Tuple(elts=items) | ast.List(elts=items):
                return [i.value for i in items if isinstance(i, ast.Constant) and isinstance(i.value, str)]
            case _:
                return ()

    def is_relay(self, node: ast.expr) -> bool:
        """Whether an expression is the decorator."""
        self._load_all(node)
        return self.expressions.value(node) is importlib.import_module("relay")


@attrs.frozen(eq=False)
class _FileScope:
    """The names at the top of the file."""

    inner: TextScope
    reader: FileReader

    def resolve(self, name: str) -> object:
        found = self.reader.meaning(name)
        if found is MISSING:
            found = self.inner.resolve(name)
        return Outside(name) if found is MISSING and self.reader.star else found

    def names(self) -> list[str]:
        return [name for name in (*self.inner.names(), *self.reader.imports) if not name.startswith("__")]


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
