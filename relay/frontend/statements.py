"""Statements: one case for each that Relay has."""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Sequence

import numpy as np

from relay.errors import FrontendError, Label, Span
from relay.frontend.analysis.local_imports import names_of
from relay.frontend.analysis.unsupported import EXPRESSIONS, refuse_expression, refuse_statement
from relay.frontend.assignments import lower_annotated_assignment, lower_assignment, lower_augmented_assignment
from relay.frontend.conditions import lower_condition, lower_if
from relay.frontend.context import Context, Unassigned, temporary_name
from relay.frontend.errors.handling import lower_try, run_finals
from relay.frontend.errors.raising import joined_text, lower_raise, with_asserted_text
from relay.frontend.functions import given_back, is_definition, lower_definitions
from relay.frontend.lists import lower_delete_item, lower_list_statement
from relay.frontend.loops import lower_break, lower_continue, lower_for, lower_while
from relay.frontend.matching import lower_match
from relay.ir.expr import Arm, Assert, Atom, Block, Dead, Exit, If, Static, Yield
from relay.ir.intrinsic import Intrinsic
from relay.ir.surface import Apply

HANDLERS = ("rng.use", "params.use")
"""The handlers of effects that stand in a `with`."""


def lower_statements(context: Context, statements: Sequence[ast.stmt]) -> None:
    """Translate statements into the current block. A mistake is noted, and translation goes on after its statement."""
    position = 0
    while position < len(statements):
        statement = statements[position]
        if not context.block.is_open:
            before = context.span(statements[position - 1]) if position else None
            labels = (Label(before, "every path leaves here"),) if before is not None else ()
            error = FrontendError(
                "this is never reached", context.file.keyword_span(statement), labels=labels, help="remove it"
            )
            context.recover(error, statements[position:], len(context.loops))
            return
        end, loops = position + 1, len(context.loops)
        try:
            if is_definition(statement):
                while end < len(statements) and is_definition(statements[end]):
                    end += 1
                lower_definitions(context, statements[position:end])
            else:
                _lower_statement(context, statement)
        except FrontendError as error:
            context.recover(error, statements[position:end], loops)
        context.block.last_span = context.file.keyword_span(statements[end - 1])
        position = end
    if statements and _never_holds(statements[-1]) and context.block.is_open:
        context.block.terminator = Dead()  # the path ends here


def _lower_statement(context: Context, node: ast.stmt) -> None:
    match node:
        case ast.Assign():
            lower_assignment(context, node)
        case ast.AugAssign():
            lower_augmented_assignment(context, node)
        case ast.AnnAssign():
            lower_annotated_assignment(context, node)
        case ast.Return():
            _lower_return(context, node)
        case ast.If():
            lower_if(context, node)
        case ast.While():
            lower_while(context, node)
        case ast.For():
            lower_for(context, node)
        case ast.Expr(value=value):
            _lower_expression_statement(context, node, value)
        case ast.Break():
            if not context.finals or run_finals(context, len(context.loops)):
                lower_break(context, node)
        case ast.Continue():
            if not context.finals or run_finals(context, len(context.loops)):
                lower_continue(context, node)
        case ast.Match():
            lower_match(context, node)
        case ast.Try():
            lower_try(context, node)
        case ast.With():
            _lower_with(context, node)
        case ast.Raise():
            lower_raise(context, node, lambda false: _lower_assert(context, false))
        case ast.Assert():
            _lower_assert(context, with_asserted_text(context, node))
        case ast.Pass():
            pass
        case ast.Delete(targets=targets):
            for target in targets:
                _lower_delete(context, target)
        case ast.Nonlocal(names=names):
            for name in names:
                owner = context.owner(name)
                if owner is None:
                    context.outer_names.discard(name)  # what is assigned to it is not another mistake
                    context.locals[name] = None
                    raise FrontendError(
                        f"`{name}` is not a variable of a function around this one",
                        context.span(node),
                        help="remove it",
                    )
                owner.need_cell(name)
        case ast.Import() | ast.ImportFrom() if names_of(node) is not None:
            pass  # the scope of the function has the names
        case _:
            raise refuse_statement(context.file, node)


def _lower_delete(context: Context, target: ast.expr) -> None:
    """`del name`: the name has no value any more."""
    span = context.span(target)
    if isinstance(target, ast.Subscript):
        lower_delete_item(context, target)
        return
    if not isinstance(target, ast.Name):
        raise FrontendError(
            "only a variable or an item can be deleted", span, help="values do not change: make a new one without it"
        )
    if context.block.environment.lookup(target.id) is None and target.id in context.locals:
        context.read(target.id, span)  # raises
    if target.id in context.cells or target.id not in context.locals:
        raise FrontendError(
            f"`{target.id}` cannot be deleted: a function in this one uses it", span, help="leave the variable alone"
        )
    context.block.environment.states[target.id] = Unassigned(
        f"`{target.id}` has been deleted", (Label(span, "deleted here"),), "remove the `del`"
    )


def _lower_return(context: Context, node: ast.Return) -> None:
    match node.value:
        case None | ast.Constant(value=None):
            if node.value is None:
                context.bare_return = context.span(node)
            if context.finals and not run_finals(context):
                return
            span = context.span(node)
            context.block.terminator = Exit(context.label, (given_back(context, Static(None, span), span),), span)
        case expression:
            context.valued_return = context.span(expression)
            result = context.atom(expression)
            if context.finals and not run_finals(context):
                return
            span = context.span(expression)
            if hasattr(node, "risk"):  # of a generator
                made = Apply(Static(Intrinsic("generated"), span), (result, Static(node.risk)), (), span)
                result = context.bind(made, "generated", span)
            context.block.terminator = Exit(context.label, (given_back(context, result, span),), span)


def _lower_assert(context: Context, node: ast.Assert) -> None:
    if isinstance(node.test, ast.Tuple) and node.test.elts:
        message = "this assertion always holds: it is a tuple, which is not empty"
        raise FrontendError(message, context.span(node.test), help='write `assert condition, "text"`')
    condition = lower_condition(context, node.test)
    match joined_text(node.msg):
        case None:
            message = f"assertion failed: {ast.unparse(node.test)}"
        case ast.Constant(value=str(text)):
            message = text
        case ast.JoinedStr() as text_node:
            span = context.span(node.test)
            if _never_holds(node):
                _fail_with_values(context, condition, text_node, span)
                return
            with context.new_block() as failing:  # the text is made only where the condition does not hold
                _fail_with_values(context, condition, text_node, span)
            arm = Arm(Block((), Yield((condition,), span)), Block((), Yield((), span)))
            context.emit((), If((arm,), failing.block(Yield((), span)), span))
            return
        case other:
            help = 'write "text", or an f-string'
            raise FrontendError(
                "the text of an assertion must be a string literal or an f-string", context.span(other), help=help
            )
    context.emit((), Assert(condition, message, context.span(node.test)))


def _lower_with(context: Context, node: ast.With) -> None:
    """A `with` that handles effects, `relay.rng.use(key)` or `relay.params.use(values)`, or changes nothing of what a
    program computes: NumPy's `errstate`, and `contextlib.nullcontext()`."""
    names = [_handler_name(context, item) for item in node.items]
    if None in names:
        raise refuse_statement(context.file, node)
    span = context.file.keyword_span(node)
    entered = 0
    for name, item in zip(names, node.items, strict=True):
        if name:
            assert isinstance(item.context_expr, ast.Call)
            (given,) = item.context_expr.args
            place = context.span(item.context_expr)
            context.bind(
                Apply(Static(Intrinsic(f"enter_{name}"), place), (context.atom(given),), (), place), "entered", place
            )
            entered += 1
    context.statements(node.body)
    for _ in range(entered if context.block.is_open else 0):
        context.bind(Apply(Static(Intrinsic("leave_handler"), span), (), (), span), "left", span)


def _handler_name(context: Context, item: ast.withitem) -> str | None:
    """The builtin of a handler; "" for the context of a `with` that changes nothing, None for another one."""
    call = item.context_expr
    if item.optional_vars is not None or not isinstance(call, ast.Call):
        return None
    path: list[str] = []
    function = call.func
    while isinstance(function, ast.Attribute):
        path.insert(0, function.attr)
        function = function.value
    if not isinstance(function, ast.Name) or context.defines(function.id):
        return None
    found = context.scope.resolve(function.id)
    for name in path:
        found = getattr(found, name, None)
    if found is np.errstate or (found is contextlib.nullcontext and not call.args):
        return ""
    builtin = getattr(found, "__relay_builtin__", None)
    is_handler = builtin in HANDLERS and len(call.args) == 1 and not call.keywords
    return str(builtin) if is_handler else None


def _never_holds(node: ast.stmt) -> bool:
    """True if this is `assert False`, or `raise AssertionError(..)`."""
    if isinstance(node, ast.Raise):
        return True
    return isinstance(node, ast.Assert) and isinstance(node.test, ast.Constant) and not node.test.value


def _fail_with_values(context: Context, condition: Atom, text: ast.JoinedStr, span: Span) -> None:
    """`assert c, f".."` where the condition does not hold."""
    called = Apply(Static(Intrinsic("assert"), span), (condition, context.atom(text)), (), span)
    context.bind(called, "asserted", span)


def _lower_expression_statement(context: Context, statement: ast.Expr, node: ast.expr) -> None:
    if isinstance(node, ast.NamedExpr):
        context.expression(node)
        return
    if isinstance(node, ast.Constant) and node.value is Ellipsis:
        return  # as `pass`
    if lower_list_statement(context, node):
        return
    if isinstance(node, ast.Call):
        context.bind(context.expression(node), temporary_name(node), context.span(node))
        return
    if type(node) in EXPRESSIONS:
        raise refuse_expression(context.file, node)
    help = "assign it, return it, or remove it"
    if isinstance(node, ast.IfExp | ast.BoolOp):
        help = "write `if` as a statement for what should happen, or use the value"
    raise FrontendError("this expression has no effect", context.span(node), help=help)
