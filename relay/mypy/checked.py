"""The cached check of the files of a mypy run.

Each is read once for each state of all files that it needs.
"""

from __future__ import annotations

import ast
import functools
import importlib.metadata
import os
from collections.abc import Sequence
from typing import TypeAlias

from relay.api.static_check import Check
from relay.errors.diagnostic import Diagnostic, Span
from relay.frontend.static.import_graph import ImportGraph
from relay.frontend.static.text_files import read_source
from relay.ir.types import FunctionType

TYPES = ("Tensor", "Fn", "Forall", "PureFn", "Ref")
"""The names of Relay that types are written with."""


_UNREADABLE = (SyntaxError, ValueError, RecursionError, MemoryError)
"""The exceptions of Python's parser."""

State: TypeAlias = "tuple[int, int] | None"
"""The time when a file was written, and its size; None if there is none."""


class CheckedFiles:
    """The check of the files of one run of mypy. `folders`: where mypy searches modules."""

    def __init__(self, folders: Sequence[str]) -> None:
        self._folders = folders
        self._graph = ImportGraph(folders)
        self._names: dict[str, tuple[State, frozenset[str]]] = {}
        self._start()

    def _start(self) -> None:
        self._check = Check(self._folders)
        self._states: dict[str, State] = {}  # of the files that the check has read
        self._diagnostics: dict[str, list[Diagnostic]] = {}
        self._functions: dict[str, dict[int, FunctionType]] = {}

    def digest(self, path: str) -> object:
        """A digest that changes whenever the plugin's messages about a file may."""
        return [_version(), self._graph.digest(path)] if path.endswith(".py") else None

    def diagnostics(self, path: str) -> list[Diagnostic]:
        """The mistakes that Relay finds in a file, and in others that keep it from being read."""
        self._refresh()
        if path not in self._diagnostics:
            text = read(path)
            self._diagnostics[path] = [] if text is None else self._check.text(text, path)
            self._note()
        return self._diagnostics[path]

    def function(self, path: str, line: int) -> FunctionType | None:
        """The type of the decorated function whose `def` or lambda is in a line; None if it has none."""
        self._refresh()
        if path not in self._functions:
            text = read(path)
            self._functions[path] = {} if text is None else self._check.functions(text, path)
            self._note()
        return self._functions[path].get(line)

    def expression(self, path: str, expression: str, of: str | None = None) -> FunctionType | None:
        """The type of the function that an expression at the top of a file makes, perhaps of another function; None if
        it is not known."""
        self._refresh()
        text = read(path)
        found = None if text is None else self._check.expression(text, path, expression, of)
        self._note()
        return found

    def pullback(self, path: str, expression: str) -> FunctionType | None:
        """The type of the derivative that also takes a seed, of the function that an expression makes."""
        self._refresh()
        text = read(path)
        found = None if text is None else self._check.pullback(text, path, expression)
        self._note()
        return found

    def names_of_types(self, path: str) -> frozenset[str]:
        """`Row = Tensor[Float, (3,)]`, `A = type_var("A")`: what the top of a file calls a type of Relay."""
        state = _state(path)
        known = self._names.get(path)
        if known is None or known[0] != state:
            self._refresh()
            text = read(path)
            names = frozenset[str]()
            if text is not None and "relay" in text:
                names = _written_types(text) | self._check.names_of_types(text, path)
                self._note()
            known = self._names[path] = state, names
        return known[1]

    def _note(self) -> None:
        for name in self._check.files:
            if name not in self._states:
                self._states[name] = _state(name)

    def _refresh(self) -> None:
        """Forget everything if a file has changed."""
        if any(_state(name) != state for name, state in self._states.items()):
            self._start()


def _state(path: str) -> State:
    try:
        stat = os.stat(path)
    except OSError:
        return None
    return stat.st_mtime_ns, stat.st_size


@functools.cache
def _version() -> str:
    try:
        return importlib.metadata.version("relay")
    except importlib.metadata.PackageNotFoundError:
        return ""


def read(path: str) -> str | None:
    """A file's text; None if it cannot be read, which mypy reports itself."""
    try:
        return read_source(path)
    except (OSError, SyntaxError, UnicodeDecodeError):
        return None


def own_span(path: str, found: Diagnostic) -> Span | None:
    """The place of a mistake in a file. A mistake in another file is that of the call here that led there."""
    spans = [span for span in (found.span, *(label.span for label in found.labels)) if span is not None]
    return next((span for span in spans if os.path.realpath(span.source.filename) == os.path.realpath(path)), None)


def place(span: Span) -> tuple[str, int, int]:
    """The key of a place."""
    return os.path.realpath(span.source.filename), span.line, span.column


def is_decorated(path: str, line: int) -> bool:
    """True if a line is in a function with a decorator, which reports its own mistakes."""
    text = read(path)
    return text is not None and any(line in lines for lines in _decorated_lines(text))


@functools.lru_cache(maxsize=100)
def _decorated_lines(text: str) -> list[range]:
    """The lines of each function with a decorator."""
    try:
        tree = ast.parse(text)
    except _UNREADABLE:  # mypy may look at a file for a later Python
        return []
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.decorator_list]
    return [range(f.decorator_list[0].lineno, (f.end_lineno or f.lineno) + 1) for f in functions]


def _written_types(text: str) -> frozenset[str]:
    """The names of types whose parts may not be known."""
    try:
        tree = ast.parse(text)
    except _UNREADABLE:
        return frozenset()
    found: set[str] = set()
    for node in tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if _makes_type(value, found):
                found.add(name)
    return frozenset(found)


def _makes_type(node: ast.expr, known: set[str]) -> bool:
    match node:
        case ast.Name(id=name):
            return name in known
        case ast.Subscript(value=ast.Name(id=name) | ast.Attribute(attr=name), slice=inside):
            return name in TYPES or (name == "tuple" and any(_makes_type(n, known) for n in _items(inside)))
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
            return name == "type_var"
        case _:
            return False


def _items(node: ast.expr) -> list[ast.expr]:
    return node.elts if isinstance(node, ast.Tuple) else [node]
