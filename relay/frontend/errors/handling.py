"""Handling of errors: `try` with `except`, `else` and `finally`.

    try: body                 failed, error, text = attempt
    except A as e: handler    if failed: if catches error "A": e = text; handler  else: rethrow error
    else: rest                else: body; unprotect failed; rest

`finally` is an `except` of everything, which ends in a rethrow, and stands behind the whole, and before each `return`,
`break` and `continue` that leaves it. A variable that the body assigns and that is read after an error is kept in a
cell, unless nothing can fail once it has been assigned.
"""

from __future__ import annotations

import ast
import builtins
import difflib
from collections.abc import Callable, Iterator, Sequence

import attrs

from relay.errors import FrontendError, Span
from relay.errors.raised import is_catchable, name_of
from relay.frontend.analysis.names import assigned_names, changed_list
from relay.frontend.conditions import emit_if
from relay.frontend.context import Context, Unassigned
from relay.frontend.errors.raising import Caught, class_of, rethrow
from relay.frontend.joins import Branch, join
from relay.ir.definition import MISSING
from relay.ir.expr import Attempt, Block, CatchesError, EndAttempt, Static, Var, Yield
from relay.ir.intrinsic import Intrinsic
from relay.ir.surface import Apply

ALL = "Exception"
"""The class that catches whatever a program can catch."""


@attrs.frozen(eq=False)
class Final:
    """The statements of a `finally` whose `try` is being written, in so many loops."""

    statements: Sequence[ast.stmt]
    failed: Var
    loops: int


def lower_try(context: Context, node: ast.Try) -> None:
    """`try`."""
    if not node.finalbody:
        _lower_handlers(context, node)
        return
    if not node.handlers and not context.attempts and not _is_noticed(node):
        context.statements([*node.body, *node.finalbody])  # an error ends the program
        return

    def body(failed: Var) -> None:
        context.finals.append(Final(node.finalbody, failed, len(context.loops)))
        if node.handlers:
            _lower_handlers(context, node)
        else:
            context.statements(node.body)
        context.finals.pop()

    def after_error(caught: Caught) -> None:
        context.statements(node.finalbody)
        if context.block.is_open:
            rethrow(context, caught.error, context.file.keyword_span(node))

    whole = [*node.body, *node.handlers, *node.orelse]
    live = context.liveness.names_after(node.finalbody)
    _protect(context, node, whole, body, after_error, live)
    if context.block.is_open:
        context.statements(node.finalbody)


def _is_noticed(node: ast.Try) -> bool:
    """True if it can be noticed that a `finally` runs after an error, or before a `return` that leaves it."""
    leaving = (ast.Return, ast.Break, ast.Continue)
    if any(isinstance(n, leaving) for s in node.body for n in ast.walk(s)):
        return True
    effects = (ast.Call, ast.Raise, ast.Assert, ast.Subscript, ast.Attribute, *leaving)
    return any(isinstance(n, effects) for s in node.finalbody for n in ast.walk(s))


def _lower_handlers(context: Context, node: ast.Try) -> None:
    """`try`, `except` and `else`."""

    def body(failed: Var) -> None:
        context.attempts += 1
        context.statements(node.body)
        context.attempts -= 1
        if context.block.is_open and node.orelse:
            context.emit((), EndAttempt(failed, context.file.keyword_span(node)))
            context.statements(node.orelse)

    live = context.liveness.live_around(node).after
    _protect(context, node, node.body, body, lambda caught: _handlers(context, node, caught, live), live)


def _protect(
    context: Context,
    node: ast.Try,
    protected: Sequence[ast.AST],
    lower_body: Callable[[Var], None],
    lower_handler: Callable[[Caught], None],
    live: frozenset[str],
) -> None:
    """A body, and what follows an error in it. `protected`: the parts in which errors are caught."""
    span = context.file.keyword_span(node)
    _keep_in_cells(context, protected)
    failed, error, text = Var("failed", None, span), Var("error", None, span), Var("text", None, span)
    context.emit((failed, error, text), Attempt(span))
    with context.new_block() as body:
        lower_body(failed)
    with context.new_block() as handler:
        lower_handler(Caught(error, text))
    branches = [
        Branch(handler, span, "not assigned after an error"),
        Branch(body, span, "not assigned without an error"),
    ]
    targets = join(context, branches, live, span)
    emit_if(context, targets, [Block((), Yield((failed,), span))], branches, span)


def _keep_in_cells(context: Context, protected: Sequence[ast.AST]) -> None:
    """Let variables that a body assigns before an error have their new values after it."""
    for name in _changed_before_errors(protected, context.liveness.live_after_error(protected)):
        if name not in context.locals:
            continue
        context.need_cell(name)
        if not isinstance(context.block.environment.lookup(name), Var):
            context.need_early_cell(name)
            if name in context.early:
                context.doubtful.add(name)
                context.block.environment.states[name] = context.early[name]


def _changed_before_errors(protected: Sequence[ast.AST], live: frozenset[str]) -> Iterator[str]:
    """The names that the parts assign, and after which something else may fail, so that the handler sees the new
    value."""
    *before, last = protected
    names = assigned_names(before)
    if not _assigns_at_its_end(last):
        names.update(assigned_names([last]))
    return (name for name in names if name in live)


def _assigns_at_its_end(statement: ast.AST) -> bool:
    """True if nothing fails in a statement after it has assigned something."""
    match statement:
        case (
            ast.Assign(targets=[ast.Name()], value=ast.expr() as value)
            | ast.AugAssign(target=ast.Name(), value=value)
            | ast.AnnAssign(target=ast.Name(), value=ast.expr() as value)
        ):
            return not assigned_names([value])
        case ast.Assign(targets=[ast.Subscript(value=ast.Name())], value=value):
            return len(assigned_names([statement])) == 1 and not assigned_names([value])
        case ast.Expr(value=ast.Call(args=given)):
            inside = assigned_names([statement])
            return len(inside) == 1 and changed_list(statement) is not None and not assigned_names(given)
        case ast.Return(value=value):
            return value is None or not assigned_names([value])
        case _:
            return isinstance(statement, ast.Raise | ast.Pass)


def _handlers(context: Context, node: ast.Try, caught: Caught, live: frozenset[str]) -> None:
    """The chain of `except`s."""
    conditions: list[Block] = []
    branches: list[Branch] = []
    for handler in node.handlers:
        names = _class_names(context, handler.type)
        place = context.span(handler.type) if handler.type is not None else context.file.keyword_span(node)
        with context.new_block() as condition:
            holds = context.bind(CatchesError(caught.error, " ".join(names), place), "caught", place)
        if not branches:
            context.block.items += condition.items
            condition.items.clear()
        conditions.append(condition.block(Yield((holds,), place)))
        with context.new_block() as block:
            _lower_handler(context, handler, caught, place)
        branches.append(Branch(block, place, "not assigned after this error"))
    with context.new_block() as last:
        rethrow(context, caught.error, context.file.keyword_span(node))
    branches.append(Branch(last, context.file.keyword_span(node), ""))
    span = context.file.keyword_span(node)
    emit_if(context, join(context, branches, live, span), conditions, branches, span)


def _lower_handler(context: Context, handler: ast.ExceptHandler, caught: Caught, span: Span) -> None:
    if handler.name is not None:
        text = Apply(Static(Intrinsic("error_text"), span), (caught.text,), (), span)
        context.assign(handler.name, text, span)
    context.caught.append(attrs.evolve(caught, name=handler.name))
    context.statements(handler.body)
    context.caught.pop()
    if handler.name is not None and context.block.is_open:
        context.block.environment.states[handler.name] = Unassigned(
            f"`{handler.name}` has no value after its `except`", (), "give the text another name there"
        )


def _class_names(context: Context, node: ast.expr | None) -> list[str]:
    """The names of the classes of an `except`."""
    if node is None:
        return [ALL]
    names = []
    for part in node.elts if isinstance(node, ast.Tuple) else [node]:
        cls = class_of(context, part)
        if not is_catchable(cls):
            raise _no_class(context, part, cls)
        names.append(ALL if is_catchable(cls, everything=True) else name_of(cls))
    return names


def _no_class(context: Context, node: ast.expr, found: object) -> FrontendError:
    if isinstance(node, ast.Name) and found is MISSING:
        known = [name for name in dir(builtins) if is_catchable(getattr(builtins, name))]
        close = difflib.get_close_matches(node.id, [*known, *context.scope.names()], n=1)
        help = f"did you mean `{close[0]}`?" if close else "define the class, or import it, at the top of the file"
        return FrontendError(f"the name `{node.id}` is not defined", context.span(node), help=help)
    help = "write `except ValueError:`, or `except (KeyError, IndexError):`"
    return FrontendError("an `except` names classes of exceptions", context.span(node), help=help)


# ---- leaving


def run_finals(context: Context, loops: int = 0) -> bool:
    """Write the `finally`s of the `try`s that a `return`, or a `break` of the loop with this depth, leaves. False if
    one of them leaves by itself."""
    waiting = list(context.finals)
    while context.finals and context.finals[-1].loops >= loops and context.block.is_open:
        final = context.finals.pop()
        context.emit((), EndAttempt(final.failed))
        context.statements(final.statements)
    context.finals[:] = waiting
    return context.block.is_open
