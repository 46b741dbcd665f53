"""Unsupported Python constructs: their names, and suggested replacements."""

from __future__ import annotations

import ast

from relay.errors import FrontendError
from relay.frontend.source import SourceFile

_REFERENCE = "make the variable a reference: `r = relay.ref(..)`, then read and assign `r.value`"
_GENERATOR = (
    "a generator is a list here, so its loops end, it does not print or `try`, and `yield` has no value; one in an"
    " endless loop is for a `for`, or for itertools.islice, in the same file"
)
_LOOP = "write a loop that fills a tensor by `x[i] = v`, or a tuple with its items one by one"

EXPRESSIONS: dict[type[ast.expr], tuple[str, str]] = {
    ast.GeneratorExp: ("a generator expression outside of a call", "write it in brackets, `[.. for ..]`: a list"),
    ast.Await: ("`await`", "the functions of a program run to their end; call the function without it"),
    ast.Yield: ("`yield`", _GENERATOR),
    ast.YieldFrom: ("`yield from`", _GENERATOR),
    ast.Starred: ("`*` in an expression", "write the items one by one"),
    ast.Slice: ("a slice outside of brackets", "write it inside `x[..]`"),
}

STATEMENTS: dict[type[ast.stmt], tuple[str, str]] = {
    ast.TryStar: ("`except*`", "write `except`: a program raises one error at a time"),
    ast.With: (
        "`with`",
        "leave it out, or write it around the call; there are `with relay.rng.use(key):` and params.use",
    ),
    ast.AsyncWith: ("`async with`", "call what it needs before and after"),
    ast.AsyncFor: ("`async for`", "write a plain `for`"),
    ast.AsyncFunctionDef: ("`async def`", "write a plain `def`"),
    ast.ClassDef: ("a class in a function", "define it outside, with @relay.data"),
    ast.Import: ("`import` of a module that is not imported yet", "import it at the top of the file"),
    ast.ImportFrom: ("`import` of a module that is not imported yet", "import it at the top of the file"),
    ast.Global: ("`global`", _REFERENCE),
}


def refuse_expression(file: SourceFile, node: ast.expr) -> FrontendError:
    """The error for an expression that is not part of the language."""
    name, help = EXPRESSIONS.get(type(node), (f"`{type(node).__name__}`", None))
    return FrontendError(f"{name} is not part of Relay", file.span(node), help=help)


def refuse_statement(file: SourceFile, node: ast.stmt) -> FrontendError:
    """The error for a statement that is not part of the language, at its first line."""
    name: str
    help: str | None
    if type(node).__name__ == "TypeAlias":  # Python 3.12
        name, help = "`type` in a function", "name the type outside: `Image = Tensor[Float, (3, n, n)]`"
    else:
        name, help = STATEMENTS.get(type(node), (f"`{type(node).__name__}`", None))
    if isinstance(node, ast.AsyncFunctionDef | ast.ClassDef):
        span = file.function_span(node)
    else:
        span = file.keyword_span(node)
    return FrontendError(f"{name} is not part of Relay", span, help=help)
