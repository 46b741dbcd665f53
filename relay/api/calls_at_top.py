"""Calls of decorated functions in a file outside of functions: they tell the types of parameters without annotations.

The arguments are evaluated as the names at the top of a file are, without running anything; calls with others are left
out.
"""

from __future__ import annotations

import ast
from collections.abc import Container, Iterator, Sequence

from relay.api.checked_file import CheckedFunction
from relay.api.function import RelayFunction
from relay.errors import InternalError, RelayError
from relay.errors.diagnostic import Diagnostic, Span
from relay.frontend.static.files import Files
from relay.frontend.static.unknown_names import UnknownValue
from relay.ir.definition import Definition
from relay.typecheck.elaboration import elaborate_structured
from relay.typecheck.elaboration.abstract_values import DependsOnPoison

MOST_CALLS = 50


def calls_at_top(tree: ast.Module, names: Container[str]) -> Iterator[ast.Call]:
    """The calls of these names in the statements of a file that are not in functions or classes, the first ones."""
    pending: list[ast.AST] = list(reversed(tree.body))
    found = 0
    while pending and found < MOST_CALLS:
        node = pending.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            continue
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in names:
            found += 1
            yield node
        pending += reversed(list(ast.iter_child_nodes(node)))


def unhandled_effects(
    files: Files, text: str, filename: str, functions: Sequence[CheckedFunction]
) -> Iterator[Diagnostic]:
    """The calls of functions that draw with implicit keys, or have parameters, without a handler."""
    effects = {f.span.line: f.effects for f in functions if f.span is not None and f.effects}
    if not effects:
        return
    file = files.source_file(text, filename)
    for call in calls_at_top(file.tree, {f.name for f in functions if f.effects}):
        name = ast.unparse(call.func)
        try:
            function = files.value(text, filename, name)
        except (RelayError, DependsOnPoison):
            continue
        span = _function_span(function)
        found = effects.get(span.line, ()) if span is not None and span.source.filename == filename else ()
        if "param" in found:
            what, handler = "has parameters, and no handler around this call has values", "params.apply"
        elif "rng" in found:
            what, handler = "draws with an implicit key, and no handler around this call gives one", "rng.handle"
        else:
            continue
        help = f"relay.{handler}({name})({'key' if handler == 'rng.handle' else 'params'}, ..)"
        yield Diagnostic("error", f"{name} {what}", file.span(call), help=help, code="TypeCheckError")


def _function_span(value: object) -> Span | None:
    """The place of a decorated function's text; None for others, as for what a transformation makes of one."""
    definition = value.__relay__ if isinstance(value, RelayFunction) else None
    return definition.function.span if isinstance(definition, Definition) else None


def elaborate_call(files: Files, text: str, filename: str, call: ast.Call) -> bool:
    """Elaborate a decorated function at the arguments of a call; False if it is none, or has others than are known."""
    function = files.value(text, filename, ast.unparse(call.func))
    if not isinstance(function, RelayFunction) or any(k.arg is None for k in call.keywords):
        return False
    arguments = [files.value(text, filename, ast.unparse(argument)) for argument in call.args]
    keywords = {str(k.arg): files.value(text, filename, ast.unparse(k.value)) for k in call.keywords}
    if any(value is None or isinstance(value, UnknownValue) for value in (*arguments, *keywords.values())):
        return False
    try:
        described = function.describe_arguments(arguments, keywords)
        elaborate_structured(function.__relay__, described)
    except (RelayError, InternalError, DependsOnPoison, TypeError, ValueError):
        return False  # running the call shows it
    return True
