"""Definitions of the user's own operators, as the text that a reproduction needs in order to have them, too.

Of the file that defines an operator, the statement that registers it is taken, and those that give the names a meaning
that it uses: imports, functions, classes and assignments at the top of the file.
"""

from __future__ import annotations

import ast
import inspect
import linecache
import symtable
from collections.abc import Iterator, Sequence
from pathlib import Path

from relay.ir.expr import Function, Module, OpCall
from relay.ir.traverse import walk
from relay.operator.registry import lookup

_OWN = Path(__file__).parents[2]


def definitions_of(module: Module) -> str:
    """The text that registers the operators of a module that are not Relay's own; "" if there are none."""
    wanted: dict[str, list[int]] = {}
    unknown: list[str] = []
    for name in _operators(module):
        code = getattr(inspect.unwrap(lookup(name).reference), "__code__", None)
        if code is not None and Path(code.co_filename).is_relative_to(_OWN):
            continue
        if code is None or not linecache.getlines(code.co_filename):
            unknown.append(f"# register the operator {name} here\n")
        else:
            wanted.setdefault(code.co_filename, []).append(code.co_firstlineno)
    parts = [_statements("".join(linecache.getlines(file)), lines) for file, lines in wanted.items()]
    return "\n".join([*unknown, *parts])


def _operators(module: Module) -> Iterator[str]:
    found: dict[str, None] = {}
    for function in module.functions.values():
        if isinstance(function, Function):
            found.update((b.value.operator, None) for b in walk(function.body) if isinstance(b.value, OpCall))
    return iter(found)


def _statements(text: str, lines: Sequence[int]) -> str:
    """The statements at the top of a file that stand at these lines, and those that they use, in their order."""
    body = ast.parse(text).body
    makers: dict[str, list[ast.stmt]] = {}
    for statement in body:
        for name in _bound_names(statement):
            makers.setdefault(name, []).append(statement)
    pending = [s for s in body if any(_first_line(s) <= line <= (s.end_lineno or s.lineno) for line in lines)]
    chosen: set[ast.stmt] = set()
    while pending:
        statement = pending.pop()
        if statement not in chosen:
            chosen.add(statement)
            used = set(_used_names(symtable.symtable(ast.unparse(statement), "<definition>", "exec")))
            pending += (maker for name in used for maker in makers.get(name, ()))
    rows = text.splitlines()
    return "\n".join(
        "\n".join(rows[_first_line(s) - 1 : s.end_lineno]) + "\n" * (not isinstance(s, ast.Import | ast.ImportFrom))
        for s in body
        if s in chosen and not (isinstance(s, ast.ImportFrom) and s.module == "__future__")
    )


def _bound_names(statement: ast.stmt) -> Iterator[str]:
    """The names to which a statement at the top of a file gives a meaning."""
    match statement:
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.Import(names=names) | ast.ImportFrom(names=names):
            yield from (alias.asname or alias.name.split(".")[0] for alias in names)
        case ast.Assign() | ast.AnnAssign():
            stored = (n for n in ast.walk(statement) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))
            yield from (node.id for node in stored)
        case _:
            pass


def _used_names(table: symtable.SymbolTable) -> Iterator[str]:
    """The names that code takes from the top of its file."""
    for symbol in table.get_symbols():
        if symbol.is_referenced() and (symbol.is_global() or table.get_type() == "module"):
            yield symbol.get_name()
    for inner in table.get_children():
        yield from _used_names(inner)


def _first_line(statement: ast.stmt) -> int:
    """The first line of a statement, its decorators included."""
    decorators: list[ast.expr] = getattr(statement, "decorator_list", [])
    return min([statement.lineno, *(d.lineno for d in decorators)])
