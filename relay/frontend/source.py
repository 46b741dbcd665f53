"""The source of a function: its text, its syntax tree and the positions of nodes.

The whole file (or notebook cell, or text) is parsed once, so that lines and columns are those of the file, also for
functions inside functions, for lambdas and for texts that were given to `exec` together with an entry in `linecache`.
"""

from __future__ import annotations
import __future__

import ast
import contextlib
import functools
import inspect
import operator
import os
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FunctionType
from typing import TypeAlias
from weakref import WeakValueDictionary

from relay.errors import FrontendError, Source, Span
from relay.frontend.analysis import ordered_dicts
from relay.frontend.analysis.cached_functions import with_dicts
from relay.frontend.analysis.changing_methods import read_classes
from relay.frontend.analysis.default_dicts import as_dicts
from relay.frontend.analysis.iterators import as_lists_and_loops
from relay.frontend.analysis.queues import as_lists
from relay.frontend.analysis.returned_objects import as_statements
from relay.frontend.analysis.ufunc_updates import as_assignments
from relay.frontend.changes.element_places import use_places
from relay.frontend.changes.loop_elements import give_back
from relay.frontend.changes.second_names import use_first_names

FunctionNode: TypeAlias = ast.FunctionDef | ast.Lambda
_AnyFunction: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


class SourceFile:
    """A parsed text. `tree` is its module."""

    def __init__(self, source: Source, tree: ast.Module) -> None:
        self.source = source
        self.tree = tree
        self.codes: dict[int, dict[tuple[str, int], list[CodeType]]] = {}  # what Python makes of it, by compiler flags
        self.facts: dict[ast.AST, object] = {}  # what functions change, by their nodes
        self._methods: dict[int, ast.FunctionDef] | None = None
        self._is_ascii = source.text.isascii()
        self._lines = [] if self._is_ascii else source.text.split("\n")
        self._generic: list[ast.stmt] | None = None  # classes and functions that have type parameters
        self._functions: dict[int, list[_AnyFunction]] | None = None  # by the line where Python says that they begin

    def functions_at(self, line: int) -> list[_AnyFunction]:
        """The functions and lambdas that begin at a line, decorators included, outer before inner, as in the text. All
        are found at once: a file may have many that are decorated."""
        if self._functions is None:
            found: dict[int, list[_AnyFunction]] = {}
            for node in _walk(self.tree):
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
                    decorators = [] if isinstance(node, ast.Lambda) else node.decorator_list
                    first = decorators[0].lineno if decorators else node.lineno
                    found.setdefault(first, []).append(node)
            self._functions = found
        return self._functions.get(line, [])

    @property
    def methods(self) -> dict[int, ast.FunctionDef]:
        """The functions in the classes of the text, by the identity of their nodes."""
        if self._methods is None:
            classes = (s for s in statements(self.tree) if isinstance(s, ast.ClassDef))
            self._methods = {id(s): s for c in classes for s in c.body if isinstance(s, ast.FunctionDef)}
        return self._methods

    def generic_around(self, node: FunctionNode) -> list[ast.stmt]:
        """The classes and functions with type parameters, `class Layer[T]`, around a function, from outside."""
        if self._generic is None:
            self._generic = [n for n in statements(self.tree) if getattr(n, "type_params", ())]
        place = node.lineno, node.col_offset
        return [g for g in self._generic if g.lineno <= place[0] <= (g.end_lineno or 0) and _holds(g, place)]

    def span(self, node: ast.expr | ast.stmt | ast.arg | ast.keyword | ast.pattern | ast.alias | ast.withitem) -> Span:
        """The span of a node. A `with` item and the like have that of their first expression."""
        if isinstance(node, ast.withitem):
            node = node.context_expr
        end_line = node.end_lineno if node.end_lineno is not None else node.lineno
        end_column = node.end_col_offset if node.end_col_offset is not None else node.col_offset
        return self.span_between(node.lineno, node.col_offset, end_line, end_column)

    def span_between(self, line: int, offset: int, end_line: int, end_offset: int) -> Span:
        """A span from line numbers from 1 and offsets in bytes from 0, as syntax trees have them."""
        return Span(self.source, line, self._column(line, offset), end_line, self._column(end_line, end_offset))

    def header(self, node: ast.stmt, last: ast.expr) -> Span:
        """From the start of a statement to the end of an expression in it: `while n > 0`."""
        inner = self.span(last)
        return Span(
            self.source, node.lineno, self._column(node.lineno, node.col_offset), inner.end_line, inner.end_column
        )

    def function_span(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda) -> Span:
        """`def name`, or the whole lambda."""
        if isinstance(node, ast.Lambda):
            return self.span(node)
        start = self._column(node.lineno, node.col_offset)
        line = self.source.line(node.lineno)
        position = line.find(node.name, start + 2)
        end = position + len(node.name) + 1 if position >= 0 else len(line) + 1
        return Span(self.source, node.lineno, start, node.lineno, end)

    def keyword_span(self, node: ast.stmt) -> Span:
        """A statement, or its first line if it has several."""
        span = self.span(node)
        if span.end_line == span.line:
            return span
        text = self.source.line(node.lineno).rstrip()
        return Span(self.source, span.line, span.column, span.line, max(len(text), span.column) + 1)

    def parameter_span(self, node: ast.arg) -> Span:
        """A parameter's name, without its annotation."""
        column = self._column(node.lineno, node.col_offset)
        return Span(self.source, node.lineno, column, node.lineno, column + len(node.arg))

    def _column(self, line: int, offset: int) -> int:
        if self._is_ascii:
            return offset + 1
        return len(self._lines[line - self.source.first_line].encode()[:offset].decode(errors="replace")) + 1


def _holds(outer: ast.stmt, place: tuple[int, int]) -> bool:
    """True if a function that begins at a place, line and offset, is inside of a statement."""
    functions = (n for n in ast.walk(outer) if isinstance(n, ast.FunctionDef | ast.Lambda) and n is not outer)
    return any((n.lineno, n.col_offset) == place for n in functions)


_OWN = str(Path(__file__).parents[1]) + os.sep
_parsed: WeakValueDictionary[str, SourceFile] = WeakValueDictionary()
_recent: list[SourceFile] = []  # keeps a few files alive between the decorations of their functions


def parse_text(text: str, filename: str) -> SourceFile:
    """Parse a text whose first line is line 1 of `filename`. Raises FrontendError where it is not valid Python."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    known = _parsed.get(filename)
    if known is not None and known.source.text == text:
        return known
    source = Source(filename, text)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Python has said them when it imported the file
            tree = ast.parse(text, filename)
    except SyntaxError as error:
        line = error.lineno or 1
        column = max(error.offset or 1, 1)
        last = (error.end_lineno or 0) == line and max(error.end_offset or 0, column + 1)
        span = Span(source, line, column, line, last or column + 1)
        raise FrontendError(f"this is not valid Python: {error.msg}", span) from None
    except (RecursionError, MemoryError):
        raise FrontendError(f"{filename} is nested too deeply for Python's parser") from None
    except ValueError as error:  # null bytes
        raise FrontendError(f"{filename} cannot be parsed: {error}") from None
    _rewrite_library_calls(tree, text)
    changing = read_classes(tree) if "class " in text else frozenset()
    if not filename.startswith(("<relay.", _OWN)):  # the library is written for values
        as_statements(tree)
        use_places(tree, changing)
        use_first_names(tree, changing)
    give_back(tree, changing)
    file = SourceFile(source, tree)
    _parsed[filename] = file
    _recent.append(file)
    del _recent[:-8]
    return file


def _rewrite_library_calls(tree: ast.Module, text: str) -> None:
    """Rewrite what functions of Python's library change in place. Texts without their names are not walked through."""
    if ".at(" in text:
        as_assignments(tree)
    if "deque" in text or "heap" in text or "insort" in text:
        as_lists(tree)
    if "cache" in text:
        with_dicts(tree)
    if any(word in text for word in ("yield", "next(", "itertools")):
        as_lists_and_loops(tree)
    if "OrderedDict" in text:
        ordered_dicts.as_dicts(tree)
    if any(word in text for word in ("defaultdict", "Counter", "setdefault")):
        as_dicts(tree)


def find_function(function: object) -> tuple[SourceFile, FunctionNode]:
    """The source of a Python function: its file and its node.

    Raises FrontendError where there is no source, where it has changed, or where a lambda could be one of several.
    """
    if not isinstance(function, FunctionType):
        raise FrontendError(
            f"{function!r} is not a function written in Python",
            help="decorate a function that is defined with `def` or `lambda`",
        )
    code = function.__code__
    try:
        lines, _ = inspect.findsource(code)
    except (OSError, TypeError, IndexError):
        raise _not_available(code) from None
    file = parse_text("".join(lines), code.co_filename)
    node = _find_lambda(file, code) if code.co_name == "<lambda>" else _find_definition(file, code)
    if _may_be_stale(code.co_filename) and not _agrees(file, code):
        raise FrontendError(
            f"the text of {_describe_code(code)} has changed since Python read it",
            file.function_span(node),
            help="import the file or run the cell again",
        )
    return file, node


_STARTED = time.time()


def _may_be_stale(filename: str) -> bool:
    """True if a source may have been written after Python has read it; a file that was not needs no further check."""
    try:
        return os.stat(filename).st_mtime > _STARTED
    except OSError:
        return True  # no file: a cell, or a text that was given to `exec`


def _agrees(file: SourceFile, code: CodeType) -> bool:
    """True if Python compiles the text to this code."""
    flags = code.co_flags & _FUTURE
    if flags not in file.codes:
        found: dict[tuple[str, int], list[CodeType]] = {}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            pending = []
            with contextlib.suppress(SyntaxError):  # then Python has not read this text
                allowed = flags | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT  # as notebooks do
                pending = [compile(file.source.text, code.co_filename, "exec", allowed, dont_inherit=True)]
        while pending:
            inner = pending.pop()
            found.setdefault((inner.co_name, inner.co_firstlineno), []).append(inner)
            pending += [c for c in inner.co_consts if isinstance(c, CodeType)]
        file.codes[flags] = found
    return any(_is_same_code(code, other) for other in file.codes[flags].get((code.co_name, code.co_firstlineno), ()))


_FUTURE = functools.reduce(operator.or_, (getattr(__future__, n).compiler_flag for n in __future__.all_feature_names))


def _is_same_code(left: CodeType, right: CodeType) -> bool:
    if (left.co_code, left.co_names, left.co_varnames) != (right.co_code, right.co_names, right.co_varnames):
        return False
    if len(left.co_consts) != len(right.co_consts):
        return False
    for a, b in zip(left.co_consts, right.co_consts, strict=True):
        if isinstance(a, CodeType) and isinstance(b, CodeType):
            if not _is_same_code(a, b):
                return False
        elif a != b if isinstance(a, frozenset) else repr(a) != repr(b):  # which tells 0.0 from -0.0 and 1 from True
            return False
    return True


def _not_available(code: CodeType) -> FrontendError:
    return FrontendError(
        f"the source of {_describe_code(code)} is not available ({code.co_filename})",
        help="Relay reads a function's source. Put it into a file or a notebook, type it at the prompt of"
        " `relay repl`, or give the text to relay.from_source(text)",
    )


def _describe_code(code: CodeType) -> str:
    return "this lambda" if code.co_name == "<lambda>" else f"`{code.co_name}`"


def _find_definition(file: SourceFile, code: CodeType) -> ast.FunctionDef:
    for node in file.functions_at(code.co_firstlineno):
        if not isinstance(node, ast.Lambda) and node.name == code.co_name:
            if isinstance(node, ast.AsyncFunctionDef):
                raise no_async(file, node)
            return node
    if code.co_filename == "<string>":  # the text of another `python -c` or `exec`, which Python may keep by this name
        raise _not_available(code)
    raise FrontendError(
        f"`{code.co_name}` is not at line {code.co_firstlineno} of {code.co_filename}",
        help="the file has changed since it was imported; import it again",
    )


def no_async(file: SourceFile, node: ast.AsyncFunctionDef) -> FrontendError:
    """The error of a decorated `async def`."""
    return FrontendError("`async def` is not part of Relay", file.function_span(node), help="write a plain `def`")


def no_class(file: SourceFile | None, node: ast.ClassDef | None, name: str) -> FrontendError:
    """The error of a class decorated with `@relay`. The source may be unknown."""
    return FrontendError(
        f"`@relay` decorates functions, and {name} is a class",
        None if file is None or node is None else file.function_span(node),
        help="write @relay.data, which makes the class a data type: annotated fields in place of __init__, methods as"
        " they are; or @dataclass, with @relay above each method",
    )


def _find_lambda(file: SourceFile, code: CodeType) -> ast.Lambda:
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    candidates = [
        node
        for node in file.functions_at(code.co_firstlineno)
        if isinstance(node, ast.Lambda) and _parameter_names(node) == names
    ]
    if not candidates:
        raise FrontendError(
            f"there is no such lambda at line {code.co_firstlineno} of {code.co_filename}",
            help="the file has changed since it was imported; import it again",
        )
    extent = _extent(code)
    if extent is not None:
        around = [node for node in candidates if _contains(node, extent)]
        if around:  # of nested ones, the innermost
            return min(around, key=lambda node: (node.end_lineno or 0, node.end_col_offset or 0, -node.col_offset))
    if len(candidates) > 1:
        raise FrontendError(
            f"line {code.co_firstlineno} has {len(candidates)} lambdas that may be meant",
            file.span(candidates[0]),
            help="put them on separate lines, or give them names with `def`",
        )
    return candidates[0]


def _parameter_names(node: ast.Lambda) -> tuple[str, ...]:
    arguments = node.args
    return tuple(a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs))


def _extent(code: CodeType) -> tuple[tuple[int, int], tuple[int, int]] | None:
    """The start and end of the code's instructions, as (line, offset); None if Python was told to forget columns."""
    starts, ends = [], []
    for line, end_line, offset, end_offset in code.co_positions():
        if line is None or end_line is None or offset is None or end_offset is None or (offset, end_offset) == (0, 0):
            continue  # the prologue has no columns of its own
        if (line, offset) != (end_line, end_offset):
            starts.append((line, offset))
            ends.append((end_line, end_offset))
    return (min(starts), max(ends)) if starts else None


def _contains(node: ast.Lambda, extent: tuple[tuple[int, int], tuple[int, int]]) -> bool:
    start, end = extent
    return (node.lineno, node.col_offset) <= start and end <= (node.end_lineno or 0, node.end_col_offset or 0)


def statements(tree: ast.Module) -> Iterator[ast.stmt]:
    """All statements, also inside of others, without a look at their expressions, which are most nodes."""
    pending: list[ast.AST] = list(tree.body)
    while pending:
        node = pending.pop()
        if isinstance(node, ast.stmt):
            yield node
        for field in ("body", "orelse", "finalbody", "handlers", "cases"):
            pending += getattr(node, field, ())


def _walk(tree: ast.AST) -> Iterator[ast.AST]:
    """All nodes, outer before inner, in the order of the text."""
    stack = [tree]
    while stack:
        node = stack.pop()
        yield node
        stack.extend(reversed(list(ast.iter_child_nodes(node))))
