"""Imports in functions: the names that they give, of modules that are imported already, and of some of Python's. A
program does not run the text of others."""

from __future__ import annotations

import ast
import importlib
import sys
import types

_LIBRARY = ("bisect", "collections", "copy", "functools", "heapq", "itertools", "math", "operator", "random", "string")


def imported_names(function: ast.AST) -> dict[str, object]:
    """The objects of the names that a function's imports give, also those of functions in it."""
    found: dict[str, object] = {}
    for node in ast.walk(function):
        if isinstance(node, ast.Import | ast.ImportFrom):
            found |= names_of(node) or {}
    return found


def names_of(node: ast.Import | ast.ImportFrom) -> dict[str, object] | None:
    """The objects of an import's names; None where one of them is not known."""
    found: dict[str, object] = {}
    for name in node.names:
        if isinstance(node, ast.Import):
            path = name.name if name.asname is not None else name.name.partition(".")[0]
            value: object = _module(path) if _module(name.name) is not None else None
        elif node.level or node.module is None:
            return None
        else:
            module = _module(node.module)
            value = vars(module).get(name.name, _module(f"{node.module}.{name.name}")) if module is not None else None
        if value is None:
            return None
        found[name.asname or name.name.partition(".")[0]] = value
    return found


def _module(path: str) -> types.ModuleType | None:
    """A module that is imported already, or one of Python's that programs use; None for others, as some of Python's own
    do something when they are imported."""
    if path in _LIBRARY:
        return importlib.import_module(path)
    return sys.modules.get(path)
