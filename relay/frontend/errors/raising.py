"""Raises: an error of a class with a text, or again the one that a handler has caught."""

from __future__ import annotations

import ast
from collections.abc import Callable

import attrs

from relay.errors import FrontendError, Span
from relay.errors.raised import SEPARATOR, asserted_message, is_raisable, name_of
from relay.frontend.context import Context
from relay.frontend.static.unknown_names import UnknownValue
from relay.ir.expr import Dead, Rethrow, Var


@attrs.frozen(eq=False)
class Caught:
    """The error of the handler that is being written, and the name that the handler has for it."""

    error: Var
    text: Var
    name: str | None = None


def lower_raise(context: Context, node: ast.Raise, lower_assert: Callable[[ast.Assert], None]) -> None:
    """`raise ValueError(text)` as the assertion that it is; the text begins with the name of the class."""
    caught = context.caught[-1] if context.caught else None
    if caught is not None and _raises_again(node, caught):
        rethrow(context, caught.error, context.span(node))
        return
    lower_assert(_assert_false(context, node))


def _raises_again(node: ast.Raise, caught: Caught) -> bool:
    """True for a `raise` of the error of the handler around it."""
    return node.exc is None or (isinstance(node.exc, ast.Name) and node.exc.id == caught.name)


def _assert_false(context: Context, node: ast.Raise) -> ast.Assert:
    """`raise ValueError(text)` as an assertion, whose text begins with the name of the class."""
    raised: ast.expr | None = node.exc
    arguments: list[ast.expr] = []
    if isinstance(node.exc, ast.Call) and not node.exc.keywords:
        raised, arguments = node.exc.func, node.exc.args
    if raised is None:
        help = 'write `raise ValueError("text")`'
        raise FrontendError(
            "a `raise` outside of an `except` names the error", context.file.keyword_span(node), help=help
        )
    cls = class_of(context, raised)
    if not is_raisable(cls) or len(arguments) > 1 or any(isinstance(a, ast.Starred) for a in arguments):
        raise FrontendError(
            "a program raises a class of exceptions by its name, with one text",
            context.span(raised),
            help='write `raise ValueError(f"..")`',
        )
    assert isinstance(cls, type)
    parts: list[ast.expr] = [ast.Constant(name_of(cls) + SEPARATOR)]
    match joined_text(arguments[0]) if arguments else ast.Constant(""):
        case ast.JoinedStr(values=values):
            parts += values
        case ast.Constant(value=str()) as constant:
            parts.append(constant)
        case expression:
            assert expression is not None
            parts.append(ast.copy_location(ast.FormattedValue(expression, -1, None), expression))
    if issubclass(cls, KeyError):
        parts[1:] = [_key_text(parts[1:], node)]
    texts = [str(part.value) for part in parts if isinstance(part, ast.Constant)]
    whole: ast.expr = ast.Constant("".join(texts)) if len(texts) == len(parts) else ast.JoinedStr(parts)
    test, text = ast.copy_location(ast.Constant(False), node), ast.copy_location(whole, node)
    return ast.copy_location(ast.Assert(test, text), node)


def _key_text(parts: list[ast.expr], node: ast.Raise) -> ast.expr:
    """The text of a KeyError, which Python quotes; that of a number it does not."""
    match parts:
        case [ast.Constant(value=str(text))]:
            return ast.Constant(repr(text))
        case [ast.FormattedValue(value=value)] if not isinstance(value, ast.Constant | ast.JoinedStr):
            return ast.copy_location(ast.FormattedValue(value, ord("r"), None), node)
        case _:
            whole = ast.copy_location(ast.JoinedStr(parts), node)
            return ast.copy_location(ast.FormattedValue(whole, ord("r"), None), node)


def with_asserted_text(context: Context, node: ast.Assert) -> ast.Assert:
    """An assertion of the user's with a text that is taken for no other error's. The library's own texts tell the class
    of an error of Python's operations."""
    if context.span(node).is_internal:
        return node
    match joined_text(node.msg):
        case None:
            message: ast.expr = ast.Constant(asserted_message(f"assertion failed: {ast.unparse(node.test)}"))
        case ast.Constant(value=str(text)):
            message = ast.Constant(asserted_message(text))
        case ast.JoinedStr(values=values):
            message = ast.JoinedStr([ast.Constant(AssertionError.__name__ + SEPARATOR), *values])
        case _:
            return node
    place = node.test if node.msg is None else node.msg
    return ast.copy_location(ast.Assert(node.test, ast.copy_location(message, place)), node)


def joined_text(node: ast.expr | None) -> ast.expr | None:
    """The text of an assertion, with texts that `+` joins as one f-string."""
    parts: list[ast.expr] = []
    waiting = [node]
    while waiting:
        match waiting.pop():
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                waiting += [right, left]
            case ast.JoinedStr(values=values):
                parts += values
            case ast.Constant(value=str()) as text:
                parts.append(text)
            case _:
                return node
    return ast.copy_location(ast.JoinedStr(parts), node) if isinstance(node, ast.BinOp) else node


def class_of(context: Context, node: ast.expr) -> object:
    """The object that a name, which may have dots, means outside of the function."""
    if isinstance(node, ast.Attribute):
        return getattr(class_of(context, node.value), node.attr, None)
    if not isinstance(node, ast.Name) or context.defines(node.id):
        return None
    found = context.scope.resolve(node.id)
    return Exception if isinstance(found, UnknownValue) else found  # a class of a file that is not run


def rethrow(context: Context, error: Var, span: Span) -> None:
    """Let the error of a handler go on to what is around it."""
    context.emit((), Rethrow(error, span))
    context.block.terminator = Dead()
