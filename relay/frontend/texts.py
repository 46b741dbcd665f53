"""f-strings and `print`.

    f"a{x:.2f}b"                    Apply(format, ("a", x, ".2f", "b", ..)): text, then value, its format and text again
    print(x, "y", sep="", end="")   Apply(print, (x, "y"), sep and end)

The checker makes a Python string of an f-string whose values it knows, and a `Print` of `print`.
"""

from __future__ import annotations

import ast

from relay.errors import FrontendError
from relay.frontend.context import Context
from relay.ir.expr import Atom, Expr, Static
from relay.ir.intrinsic import Intrinsic
from relay.ir.surface import Apply


def is_print(context: Context, node: ast.Call) -> bool:
    """True if a call is one of Python's `print`."""
    match node.func:
        case ast.Name(id="print"):
            return not context.defines("print") and context.scope.resolve("print") is print
        case _:
            return False


def lower_print(context: Context, node: ast.Call) -> Expr:
    """`print(..)`"""
    span = context.span(node)
    values: list[Atom] = []
    for value in node.args:
        if isinstance(value, ast.Starred):
            raise FrontendError(
                "`*` in `print` is not part of Relay", context.span(value), help="print the tuple itself"
            )
        values.append(context.atom(value))
    options: list[tuple[str, Atom]] = []
    for keyword in node.keywords:
        if keyword.arg not in ("sep", "end", "flush"):
            name = keyword.arg or "**"
            raise FrontendError(
                f"`print` takes no {name!r} here",
                context.span(keyword),
                help="it writes to sys.stdout; it has sep and end",
            )
        if keyword.arg != "flush":
            options.append((keyword.arg, context.atom(keyword.value)))
    return Apply(Static(Intrinsic("print"), span), tuple(values), tuple(options), span)


def lower_fstring(context: Context, node: ast.JoinedStr) -> Expr:
    """`f"..{value:format}.."`"""
    span = context.span(node)
    parts: list[Atom] = []
    text = ""
    for part in node.values:
        match part:
            case ast.Constant(value=str(piece)):
                text += piece
            case ast.FormattedValue(value=value, conversion=conversion, format_spec=specification):
                if conversion == ord("a"):
                    raise FrontendError(
                        "the conversion `!a` is not part of Relay", context.span(value), help="write {value} alone"
                    )
                given = _specification(context, specification)
                if conversion == ord("r") and given == "":
                    given = "!r"
                written = Static(given, span) if isinstance(given, str) else given
                parts += [Static(text, span), context.atom(value), written]
                text = ""
    return Apply(Static(Intrinsic("format"), span), (*parts, Static(text, span)), (), span)


def _specification(context: Context, node: ast.expr | None) -> str | Atom:
    """The format of a value: its text, or an f-string, as in `{x:>{width}}`."""
    match node:
        case None:
            return ""
        case ast.JoinedStr(values=[]):
            return ""
        case ast.JoinedStr(values=[ast.Constant(value=str(text))]):
            return text
        case ast.JoinedStr():
            return context.bind(lower_fstring(context, node), "format", context.span(node))
        case _:
            raise FrontendError("a format must be text", context.span(node), help="write it there, as in {x:.3f}")
