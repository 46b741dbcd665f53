"""Dependencies between statements at the top of a file, by its text alone: what the check of a function may depend on.

A unit is a statement at the top. It depends on those that bind the names that it mentions, on what these depend on, and
on those whose effect no name tells: registrations, overloads, custom gradients. Texts that are equal in all of these
are checked with equal results, at any place.
"""

from __future__ import annotations

import ast
import bisect
import hashlib
import re
from collections.abc import Iterator
from functools import cached_property

import attrs

from relay.frontend.source import SourceFile

_REGISTERING = ("register_op", "composite", "pure_callback", "register_tree", "overload", "def_gradient")
_LONGEST_NOTATION = 200
"""Longer texts are not annotations."""


@attrs.frozen(eq=False)
class Unit:
    """A statement at the top of a file, with its decorators: its lines, their text, and the names that it binds and
    mentions. `acts`: others depend on it without a name."""

    first_line: int
    last_line: int
    text: str
    bound: frozenset[str]
    mentioned: frozenset[str]
    acts: bool


@attrs.frozen(eq=False, slots=False)
class Dependencies:
    """The units of a file in their order. `surroundings`: what else all of them depend on, such as imported files."""

    units: tuple[Unit, ...]
    surroundings: str

    @staticmethod
    def of_file(file: SourceFile, surroundings: str) -> Dependencies:
        """Those of a parsed file."""
        lines = file.source.text.split("\n")
        return Dependencies(tuple(_unit(node, lines) for node in file.tree.body), surroundings)

    @cached_property
    def _starts(self) -> list[int]:
        return [unit.first_line for unit in self.units]

    @cached_property
    def _binding(self) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        for position, unit in enumerate(self.units):
            for name in unit.bound:
                found.setdefault(name, []).append(position)
        return found

    @cached_property
    def _acting_units(self) -> list[int]:
        return [position for position, unit in enumerate(self.units) if unit.acts]

    def unit_at(self, line: int) -> int | None:
        """The position of the unit in whose lines a line is."""
        position = bisect.bisect_right(self._starts, line) - 1
        return position if position >= 0 and line <= self.units[position].last_line else None

    @cached_property
    def _needed_units(self) -> dict[int, list[Unit]]:
        return {}

    @cached_property
    def _digests(self) -> dict[int, str]:
        return {}

    def needed_units(self, position: int) -> list[Unit]:
        """A unit and all that it depends on, in the order of the file."""
        if position not in self._needed_units:
            self._needed_units[position] = self._search(position)
        return self._needed_units[position]

    def _search(self, position: int) -> list[Unit]:
        seen: set[int] = set()
        pending = [position, *self._acting_units]
        while pending:
            current = pending.pop()
            if current not in seen:
                seen.add(current)
                pending += (p for name in self.units[current].mentioned for p in self._binding.get(name, ()))
        return [self.units[p] for p in sorted(seen)]

    def is_bound_once(self, position: int) -> bool:
        """True if no two units bind a name that a unit binds or mentions."""
        unit = self.units[position]
        return all(len(self._binding.get(name, ())) < 2 for name in unit.bound | unit.mentioned)

    def digest(self, position: int) -> str:
        """A digest that changes whenever the check of a unit may."""
        if position not in self._digests:
            parts = [self.surroundings, self.units[position].text, *(unit.text for unit in self.needed_units(position))]
            whole = "\0".join(parts).encode(errors="surrogatepass")
            self._digests[position] = hashlib.sha256(whole).hexdigest()
        return self._digests[position]


def _unit(node: ast.stmt, lines: list[str]) -> Unit:
    decorators = node.decorator_list if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) else []
    first, last = min([node.lineno, *(d.lineno for d in decorators)]), node.end_lineno or node.lineno
    bound, mentioned = set[str](), set[str]()
    for inner in ast.walk(node):
        match inner:
            case ast.Name(id=name, ctx=ast.Load()):
                mentioned.add(name)
            case ast.Name(id=name):
                bound.add(name)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                bound.add(name)
            case ast.alias(name=name, asname=other):
                bound.add(other or name.split(".")[0])
            case ast.Constant(value=str(text)) if len(text) < _LONGEST_NOTATION:
                mentioned.update(re.findall(r"\w+", text))
            case ast.Attribute(ctx=ast.Store() | ast.Del()) | ast.Subscript(ctx=ast.Store() | ast.Del()):
                bound.update(_root(inner))
            case _:
                pass
    text = "\n".join(lines[first - 1 : last])
    if decorators or isinstance(node, ast.FunctionDef):
        bound &= {node.name}  # type: ignore[attr-defined]  # the others are its own
    return Unit(first, last, text, frozenset(bound), frozenset(mentioned), _acts(node))


def _root(node: ast.expr) -> Iterator[str]:
    """The name of what a part is assigned of."""
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    if isinstance(node, ast.Name):
        yield node.id


def _acts(node: ast.stmt) -> bool:
    """True if others may depend on a statement without a name that says so."""
    match node:
        case ast.FunctionDef(decorator_list=decorators) | ast.ClassDef(decorator_list=decorators):
            return any(map(_registers, decorators)) or (isinstance(node, ast.ClassDef) and _holds_registration(node))
        case ast.AsyncFunctionDef() | ast.Import() | ast.Expr(value=ast.Constant()):
            return False
        case ast.ImportFrom(names=names):
            return any(alias.name == "*" for alias in names)
        case ast.If(test=ast.Compare(left=ast.Name(id="__name__"))):
            return False
        case ast.Assign() | ast.AnnAssign() | ast.AugAssign() | ast.Expr():
            return _holds_registration(node)
        case _:
            return type(node).__name__ != "TypeAlias"


def _holds_registration(node: ast.AST) -> bool:
    return any(_registers(inner) for inner in ast.walk(node) if isinstance(inner, ast.Call))


def _registers(node: ast.expr) -> bool:
    function = node.func if isinstance(node, ast.Call) else node
    name = getattr(function, "attr", getattr(function, "id", ""))
    return name in _REGISTERING
