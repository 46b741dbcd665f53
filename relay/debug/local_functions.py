"""Functions that are local to a program, for expressions in a frame: their definitions as text.

A closure is its text in the source together with the values that it has captured. An expression that mentions one is
compiled with that text in front of it, inside of a function whose parameters are the captured values:

    def add5__scope(c):
        def add(v): return v + c
        return add
    add5 = add5__scope(captured0__)

So it can be called with any types, as in the program.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator, Sequence
from typing import TypeAlias

import attrs

from relay.errors.diagnostic import Span
from relay.eval.frames import Frame
from relay.eval.values import Closure, GradientFunction
from relay.eval.variables import Structure, Variables
from relay.frontend.source import parse_text
from relay.ir.debugging.source_names import FunctionName

_Function: TypeAlias = ast.FunctionDef | ast.Lambda

_TRANSFORMATIONS = ("grad", "value_and_grad", "vmap", "jacobian", "hessian", "checkpoint")


class NoDefinitionError(Exception):
    """A value that cannot be written as text."""


def holds_function(value: object) -> bool:
    """True if a value is a function, or a structure with one in it."""
    if isinstance(value, Structure):
        return any(map(holds_function, value.items))
    return isinstance(value, Closure | GradientFunction | FunctionName)


def local_function(name: str, frame: Frame) -> Closure | None:
    """The function of this name that a frame has made, or captured."""
    held = {**frame.closure.environment, **frame.environment}
    found = [value for var, value in held.items() if var.name == name and isinstance(value, Closure)]
    return found[-1] if found else None


def is_local_function(name: str, frame: Frame) -> bool:
    """True if a name means a function in the text around the place of a frame."""
    return _Scope(frame).definition(name) is not None


class Definitions:
    """The definitions that an expression needs: `lines` of text, and the `values` of the names that are its parameters.

    `names` are those that the text takes from outside of the program.
    """

    def __init__(self, frame: Frame, variables: Variables) -> None:
        self.lines: list[str] = []
        self.values: dict[str, object] = {}
        self.names: dict[str, Span | None] = {}
        self._variables = variables
        self._scope = _Scope(frame)
        self._defined: set[str] = set()

    def add(self, name: str) -> None:
        """Define a name of the frame, if it has a meaning there; another one is taken from outside. Raises
        NoDefinitionError for a value that has no text."""
        if name in self._defined or name in self.values:
            return
        variable = self._variables.get(name)
        if variable is not None and not holds_function(variable.value):
            self.values[name] = variable.value
            return
        self._defined.add(name)
        closure = variable.value if variable is not None else local_function(name, self._scope.frame)
        if isinstance(closure, Closure):
            self.lines += self._closure(name, closure)
        elif isinstance(closure, Structure):
            self.lines.append(f"{name} = {self._structure(closure)}")
        elif (node := self._scope.definition(name)) is not None:
            for inner in free_names(node, name):
                self.add(inner)
            self.lines += _text(node, name)
        elif variable is not None:
            raise NoDefinitionError(name)
        else:
            self._defined.discard(name)
            self.names[name] = self._scope.span

    def _structure(self, value: Structure) -> str:
        """A display of a list or tuple with functions in it."""
        if value.form is not None and (value.form.cls is not list or value.form.names):
            raise NoDefinitionError
        items = []
        for item in value.items:
            if isinstance(item, FunctionName):
                self.add(item.name)
                items.append(item.name)
            elif isinstance(item, Structure) and holds_function(item):
                items.append(self._structure(item))
            else:
                items.append(self._captured(item, self.lines))
        return f"[{', '.join(items)}]" if value.form is not None else f"({''.join(f'{i}, ' for i in items)})"

    def _captured(self, value: object, lines: list[str]) -> str:
        """A name for a value that a function has captured."""
        name = f"captured{len(self.values)}__"
        if isinstance(value, Closure):
            name = f"function{len(self._defined)}__"
            self._defined.add(name)
            lines += self._closure(name, value)
        elif holds_function(value):
            raise NoDefinitionError
        else:
            self.values[name] = value
        return name

    def _closure(self, name: str, closure: Closure) -> list[str]:
        """The lines that define a closure. A name that it has not captured is one of the functions around it."""
        span = closure.function.span
        around = () if span is None else _functions_around(span)
        if not around:
            raise NoDefinitionError(name)
        node = around[-1]
        captured = {variable.name: value for variable, value in closure.environment.items()}
        lines: list[str] = []
        given: dict[str, str] = {}
        for inner in free_names(node, name):
            if inner in captured:
                value = captured[inner]
                if isinstance(value, Closure) and value.function.span == self._scope.span_of(inner):
                    self.add(inner)
                else:
                    given[inner] = self._captured(value, lines)
            elif self._scope.holds(node):
                self.add(inner)
            else:
                self.names[inner] = span
        if not given:
            return [*lines, *_text(node, name)]
        own = node.name if isinstance(node, ast.FunctionDef) else name
        body = [f"    {line}" for line in (*_text(node, own), f"return {own}")]
        scope = f"{name}__scope"
        return [*lines, f"def {scope}({', '.join(given)}):", *body, f"{name} = {scope}({', '.join(given.values())})"]


@attrs.frozen(eq=False)
class _Scope:
    """The names that are functions around the place of a frame."""

    frame: Frame

    @property
    def span(self) -> Span | None:
        """The place of the frame's function."""
        return self.frame.closure.function.span

    @property
    def functions(self) -> Sequence[_Function]:
        """The functions around the place, from outside."""
        return () if self.span is None else _functions_around(self.span)

    def span_of(self, name: str) -> Span | None:
        """The place of the function of this name."""
        found = local_function(name, self.frame)
        return None if found is None else found.function.span

    def holds(self, node: _Function) -> bool:
        """True if a function is directly inside of those around the place."""
        return any(inner is node for outer in self.functions for _, inner in _local_names(outer))

    def definition(self, name: str) -> ast.expr | _Function | None:
        """The text that gives a name its meaning, in the innermost function that does."""
        for outer in reversed(self.functions):
            found = [node for own, node in _local_names(outer) if own == name]
            if found:
                return found[-1]
        return None


def _local_names(function: _Function) -> Iterator[tuple[str, ast.expr | _Function]]:
    """The names that a function gives to functions: by `def`, or an assignment of a lambda or of a derivative."""
    pending: list[ast.AST] = list(function.body) if isinstance(function, ast.FunctionDef) else []
    pending.reverse()
    while pending:
        node = pending.pop()
        match node:
            case ast.FunctionDef(name=name):
                yield name, node
                continue
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if _makes_function(value):
                yield name, value
        inner = [part for f in ("body", "orelse", "finalbody", "cases") for part in getattr(node, f, ())]
        pending += reversed(inner)


def _makes_function(value: ast.expr) -> bool:
    """True for an expression whose value is a function, whatever the variables are."""
    called = value.func if isinstance(value, ast.Call) else None
    name = getattr(called, "attr", getattr(called, "id", None))
    return isinstance(value, ast.Lambda) or name in _TRANSFORMATIONS


def free_names(node: ast.AST, own: str = "") -> list[str]:
    """The names that a definition takes from around it."""
    nodes = list(ast.walk(node))
    bound = {own} | {n.arg for n in nodes if isinstance(n, ast.arg)}
    bound |= {n.name for n in nodes if isinstance(n, ast.FunctionDef)}
    kept = {name for n in nodes if isinstance(n, ast.Nonlocal | ast.Global) for name in n.names}
    bound |= {n.id for n in nodes if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)} - kept
    return list(dict.fromkeys(n.id for n in nodes if isinstance(n, ast.Name) and n.id not in bound))


def _text(node: ast.AST, name: str) -> list[str]:
    """The lines that define a function under a name."""
    text = ast.unparse(node)
    if not isinstance(node, ast.FunctionDef):
        return [f"{name} = {text}"]
    return text.split("\n") if node.name == name else [*text.split("\n"), f"{name} = {node.name}"]


@functools.lru_cache(maxsize=64)
def _functions_around(span: Span) -> Sequence[_Function]:
    """The functions around the one of a place, from outside, and this one."""
    file = parse_text(span.source.text, span.source.filename)
    found: list[_Function] = []
    pending: list[tuple[ast.AST, list[_Function]]] = [(file.tree, [])]
    while pending:
        node, around = pending.pop()
        if isinstance(node, ast.FunctionDef | ast.Lambda):
            around = [*around, node]
            place = file.function_span(node)
            if (place.line, place.column) == (span.line, span.column):
                found = around
        pending += ((inner, around) for inner in ast.iter_child_nodes(node))
    return found
