"""The syntax around a place: the expression there, the functions around it, the names that can be used."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

import attrs

from relay.cli.lsp.analysis import Analysis
from relay.errors import Span

AnyFunction = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
_DOTTED = re.compile(r"((?:[^\W\d]\w*\s*\.\s*)*)([^\W\d]\w*)?$")
_CALLED = re.compile(r"((?:[^\W\d]\w*\.)*[^\W\d]\w*)$")


def span_of(analysis: Analysis, node: ast.AST) -> Span:
    """The stretch of a node: the name alone of functions, classes and parameters."""
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            found = analysis.file.function_span(node)
            return attrs.evolve(found, column=max(found.end_column - len(node.name), 1))
        case ast.arg():
            return analysis.file.parameter_span(node)
        case _:
            return analysis.file.span(node)  # type: ignore[arg-type]


def _holds(span: Span, line: int, column: int) -> bool:
    return (span.line, span.column) <= (line, column) <= (span.end_line, span.end_column)


def node_at(analysis: Analysis, line: int, column: int) -> ast.AST | None:
    """The innermost expression, parameter or name of a function at a place, as Relay counts lines and columns."""
    found: ast.AST | None = None
    pending: list[ast.AST] = list(analysis.tree.body)
    while pending:
        node = pending.pop()
        if not _may_hold(node, line):
            continue
        is_named = isinstance(node, ast.FunctionDef | ast.ClassDef | ast.arg | ast.expr | ast.alias)
        if is_named and _holds(span_of(analysis, node), line, column) and _is_inside(analysis, node, found):
            found = node
        pending += ast.iter_child_nodes(node)
    return found


def _may_hold(node: ast.AST, line: int) -> bool:
    first, last = getattr(node, "lineno", None), getattr(node, "end_lineno", None)
    if first is None or last is None:
        return True
    decorators = getattr(node, "decorator_list", ())
    return bool(min([first, *(d.lineno for d in decorators)]) <= line <= last)


def _is_inside(analysis: Analysis, node: ast.AST, other: ast.AST | None) -> bool:
    """True if a node's range is not larger than another one's. At the end of one node and the start of the next, a
    name is preferred."""
    if other is None:
        return True
    one, two = span_of(analysis, node), span_of(analysis, other)
    if (two.line, two.column) <= (one.line, one.column) and (one.end_line, one.end_column) <= (
        two.end_line,
        two.end_column,
    ):
        return True
    return isinstance(node, ast.Name) and not isinstance(other, ast.Name)


def functions_around(analysis: Analysis, line: int) -> list[AnyFunction]:
    """The functions in whose lines a line is, from outside."""
    found: list[AnyFunction] = []
    nodes: Sequence[ast.AST] = analysis.tree.body
    while nodes:
        inner: list[ast.AST] = []
        for node in nodes:
            if _may_hold(node, line):
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
                    found.append(node)
                inner += ast.iter_child_nodes(node)
        nodes = inner
    return found


def parameters(node: AnyFunction) -> list[ast.arg]:
    """The parameters of a function, in their order."""
    written = node.args
    several = [a for a in (written.vararg, written.kwarg) if a is not None]
    return [*written.posonlyargs, *written.args, *written.kwonlyargs, *several]


def bindings(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """The names that a function, or a file, binds, with the nodes that do; not those inside of inner functions."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
        yield from ((a.arg, a) for a in parameters(node))
    body = getattr(node, "body", [])
    pending: list[ast.AST] = list(reversed(body)) if isinstance(body, list) else [body]
    while pending:
        inner = pending.pop()
        match inner:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name, inner
                continue
            case ast.Name(id=name, ctx=ast.Store()):
                yield name, inner
            case ast.Import(names=names) | ast.ImportFrom(names=names):
                yield from ((alias.asname or alias.name.split(".")[0], alias) for alias in names)
            case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                yield name, inner
            case _:
                pass
        pending += reversed(list(ast.iter_child_nodes(inner)))


def definition_of(analysis: Analysis, name: str, line: int) -> ast.AST | None:
    """The node where a name that is used in a line gets its value: the last one before it in the innermost function
    that binds it, or at the top of the file."""
    for around in (*reversed(functions_around(analysis, line)), analysis.tree):
        found = [node for bound, node in bindings(around) if bound == name]
        before = [node for node in found if getattr(node, "lineno", 0) < line] or found
        if before:
            return before[-1] if isinstance(around, AnyFunction) else found[-1]
    return None


def is_local(analysis: Analysis, name: str, line: int) -> bool:
    """True if a name means a variable of a function around a line."""
    return any(name == bound for f in functions_around(analysis, line) for bound, _ in bindings(f))


def dotted_name(node: ast.AST | None) -> str | None:
    """The text of a dotted name; None for other expressions."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join((node.id, *reversed(parts))) if isinstance(node, ast.Name) else None


def written_before(line: str, column: int) -> tuple[str, str]:
    """The text before a column (from 0) of a line: the dotted name up to its last dot, without it, and the beginning
    of the word."""
    match = _DOTTED.search(line[:column])
    if match is None:
        return "", ""
    return "".join(match[1].split()).rstrip("."), match[2] or ""


@attrs.frozen
class OpenCall:
    """A call whose parentheses are not closed before a place: what is called, how many arguments are complete there,
    and the name of the argument at hand, if it has one."""

    function: str
    position: int
    keyword: str | None


def open_call(lines: Sequence[str], line: int, column: int) -> OpenCall | None:
    """The innermost call around a place, by the text before it; `line` and `column` from 0."""
    text = "\n".join([*lines[max(0, line - 40) : line], lines[line][:column] if line < len(lines) else ""])
    text = re.sub(r"'[^'\n]*'|\"[^\"\n]*\"", lambda found: "s" * len(found[0]), text)
    depth, commas, start = 0, 0, len(text)
    for index in range(len(text) - 1, -1, -1):
        character = text[index]
        if character in ")]}":
            depth += 1
        elif character in "([{":
            if depth == 0:
                called = _CALLED.search(text[:index])
                if character != "(" or called is None or _is_definition(text[: called.start()]):
                    return None
                keyword = re.match(r"\s*(\w+)\s*=", text[start if commas else index + 1 :])
                return OpenCall(called[1], commas, keyword[1] if keyword is not None else None)
            depth -= 1
        elif character == "," and depth == 0:
            commas += 1
            start = index + 1 if commas == 1 else start
    return None


def _is_definition(before: str) -> bool:
    return before.rstrip().endswith(("def", "class"))
