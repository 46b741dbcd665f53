"""The parts of Python's trees that rewriting them shares: statements of functions, meanings of names, and places."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import TypeVar

Placed = TypeVar("Placed", bound=ast.AST)

SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)

# The usual meaning of names, for texts that do not say, as a cell of a notebook whose imports are in another one.
_CONVENTIONAL = {
    "deque": "collections.deque",
    **{f"heapq.{name}": f"heapq.{name}" for name in ("heappush", "heappop", "heapify", "heappushpop", "heapreplace")},
    **{f"bisect.{name}": f"bisect.{name}" for name in ("insort", "insort_left", "insort_right")},
    **{f"collections.{name}": f"collections.{name}" for name in ("deque", "defaultdict", "Counter")},
    **{f"functools.{name}": f"functools.{name}" for name in ("cache", "lru_cache")},
    **{f"itertools.{name}": f"itertools.{name}" for name in ("count", "cycle", "repeat", "islice")},
    **{name: f"collections.{name}" for name in ("defaultdict", "Counter")},
}


def own_nodes(function: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a function without the functions and classes in it, in no order."""
    pending = list(ast.iter_child_nodes(function))
    while pending:
        node = pending.pop()
        yield node
        if not isinstance(node, SCOPES):
            pending.extend(ast.iter_child_nodes(node))


def own_statement_lists(function: ast.FunctionDef) -> list[list[ast.stmt]]:
    """The lists of statements of a function, without those of functions and classes in it."""
    found = [function.body]
    for node in own_nodes(function):
        if not isinstance(node, SCOPES):
            parts = (getattr(node, name, None) for name in ("body", "orelse", "finalbody"))
            found += [part for part in parts if isinstance(part, list)]
    return found


def statement_lists(tree: ast.AST) -> Iterator[list[ast.stmt]]:
    """The lists of statements in a text: bodies of functions, loops, branches, .."""
    for node in ast.walk(tree):
        for name in ("body", "orelse", "finalbody"):
            body = getattr(node, name, None)
            if isinstance(body, list):
                yield body


class NameMeanings:
    """The functions that names of a text mean, by its imports; by convention where it says nothing of a name."""

    def __init__(self, tree: ast.AST) -> None:
        self._modules: dict[str, str] = {}
        self._functions: dict[str, str] = {}
        bound: set[str] = set()
        for node in ast.walk(tree):
            match node:
                case ast.Import(names=names):
                    self._modules |= {a.asname or a.name: a.name for a in names}
                case ast.ImportFrom(module=module, names=names, level=level):
                    self._functions |= {a.asname or a.name: f"{'.' * level}{module or ''}.{a.name}" for a in names}
                case ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.arg(arg=name):
                    bound.add(name)
                case ast.Name(name, ast.Store()):
                    bound.add(name)
                case _:
                    pass
        self._usual: Mapping[str, str] = {k: v for k, v in _CONVENTIONAL.items() if k.partition(".")[0] not in bound}

    def meaning(self, node: ast.expr) -> str | None:
        """The full name of a function, `heapq.heappush`; None for others."""
        match node:
            case ast.Name(name):
                return self._functions.get(name) or self._usual.get(name)
            case ast.Attribute(ast.Name(module), name):
                known = self._modules.get(module)
                return f"{known}.{name}" if known is not None else self._usual.get(f"{module}.{name}")
            case _:
                return None


def place(made: Placed, of: ast.AST) -> Placed:
    """A statement or expression at the place of another one, except for what is a part of that."""
    kept = {id(node) for node in ast.walk(of) if hasattr(node, "lineno")}
    for node in ast.walk(made):
        if isinstance(node, ast.expr | ast.stmt) and id(node) not in kept:
            ast.copy_location(node, of)
    return made
