"""Relay's errors as mypy's, and mypy's own that they replace."""

from __future__ import annotations

from mypy.errorcodes import ErrorCode
from mypy.errors import Errors
from mypy.nodes import Context, Decorator, FuncDef
from mypy.plugin import FunctionContext, MethodContext

from relay.errors.diagnostic import Span
from relay.mypy.checked import CheckedFiles, is_decorated, own_span, place

RELAY = ErrorCode("relay", "What relay check finds in a decorated function", "Relay")

_SIGNATURE_CODES = (
    "no-untyped-def",
    "no-untyped-call",
    "empty-body",
    "type-var",
    "name-defined",
)  # "NCHW" is not a name


def report(context: MethodContext | FunctionContext, checked: CheckedFiles) -> None:
    """Report what Relay finds in the function that is decorated, and outside of all."""
    node = context.context
    first, last = _lines(node)
    path = context.api.path
    for found in checked.diagnostics(path):
        if found.severity != "error":
            continue
        span = own_span(path, found)
        if found.span is not None and (span is None or (span != found.span and _is_told(found.span, checked))):
            continue  # in another file, which reports it
        if span is not None and not first <= span.line <= last and is_decorated(path, span.line):
            continue  # in another function, which reports it
        at = node if span is None else _place(span)  # mypy tells repeated ones once
        context.api.fail(found.message.replace("\n", " "), at, code=RELAY)
        elsewhere = (f"in {found.span}",) if span != found.span else ()
        for note in (*elsewhere, *found.notes, *((f"help: {found.help}",) if found.help else ())):
            context.api.msg.note(note, at, code=RELAY)


def _is_told(span: Span, checked: CheckedFiles) -> bool:
    """True if the check of another file reports a mistake at a place, whatever calls lead there."""
    path = span.source.filename
    own = [found.span for found in checked.diagnostics(path) if found.severity == "error" and not found.labels]
    return any(other is not None and place(other) == place(span) for other in own)


def _place(span: Span) -> Context:
    """A place for mypy, whose columns count from 0."""
    place = Context(span.line, span.column - 1)
    place.end_line, place.end_column = span.end_line, span.end_column - 1
    return place


def _lines(node: Context) -> tuple[int, int]:
    if isinstance(node, Decorator):
        starts = [node.line, node.func.line, *(d.line for d in node.decorators)]
        return min(starts), node.func.end_line or node.func.line
    return node.line, node.end_line or node.line


def drop_errors(errors: Errors, function: FuncDef) -> None:
    """Drop mypy's own errors in a function's body, which is not Python, and about missing annotations."""
    found = errors.error_info_map.get(errors.file)
    if found is None:
        return
    body = range(function.body.line, (function.end_line or function.body.line) + 1)
    head = range(function.line, function.body.line)
    errors.error_info_map[errors.file] = [
        info
        for info in found
        if (info.code is RELAY)
        or not (
            (info.line in body and info.line not in head)
            or (info.line in head and info.code is not None and info.code.code in _SIGNATURE_CODES)
        )
    ]
