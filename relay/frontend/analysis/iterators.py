"""Python's iterators as lists and loops.

    def numbers(n):                      def numbers(n):
        for i in range(n):                   yielded__ = []
            yield i * i                      for i in range(n):
                                                 yielded__.append(i * i)
                                             return yielded__
    next(it), next(it, 0)                it.__next__(), (it.__next__() if len(it) > 0 else 0)
    for x in it: .. where `next` reads   while len(it) > 0: x = it.__next__(); ..
    for i in itertools.count(1): ..      counted__ = 0; while True: counted__ += 1; i = counted__; ..
    for x in itertools.cycle(xs): ..     the same, and x = xs[counted__ % len(xs)]

A generator that may have no end, that prints, or that assigns variables of functions around it stays what it is, and
is refused. Whether it matters that others run to their end at once, elaboration finds out: see
`typecheck/elaboration/aliasing/generators.py`. Each `return` says why a generator must not be left early.
"""

from __future__ import annotations

import ast
import itertools

from relay.frontend.analysis.endless_generators import with_own_loops
from relay.frontend.analysis.rewriting import (
    SCOPES,
    NameMeanings,
    own_nodes,
    own_statement_lists,
    place,
    statement_lists,
)

_YIELDED, _COUNTED, _CYCLED = "yielded__", "counted__", "cycled__"
_LOOPS = (ast.For, ast.While)


def as_lists_and_loops(tree: ast.Module) -> None:
    """Rewrite the generators and iterators of a text."""
    bound = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    bound |= {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    bound |= {node.name for node in tree.body if isinstance(node, SCOPES) and not isinstance(node, ast.Lambda)}
    for node in list(ast.walk(tree)):
        if isinstance(node, ast.FunctionDef):
            if any(isinstance(part, ast.Yield | ast.YieldFrom) for part in own_nodes(node)):
                _collect(node)
            if "next" not in bound:
                _take(node)
    with_own_loops(tree)
    names = NameMeanings(tree)
    for body in statement_lists(tree):
        body[:] = [made for statement in body for made in _endless(statement, names)]


# ---- generators


def is_as_append(function: ast.FunctionDef) -> bool:
    """True if a generator can be a list: each `yield` is a statement, nothing is printed, and no loop is endless."""
    statements = {id(node.value) for node in own_nodes(function) if isinstance(node, ast.Expr)}
    for node in own_nodes(function):
        match node:
            case ast.Yield() | ast.YieldFrom() if id(node) not in statements:
                return False
            case ast.Return(value=value) if value is not None:
                return False
            case ast.Call(ast.Name("print")) | ast.Try() | ast.Nonlocal() | ast.Global():
                return False
            case ast.While(test=ast.Constant(value)) if value and not _is_left(node, (ast.Return, ast.Break)):
                return False
            case ast.Call(ast.Name("count" | "cycle") | ast.Attribute(attr="count" | "cycle")):
                return False
            case _:
                pass
    return True


def _is_left(loop: ast.While, by: tuple[type[ast.stmt], ...]) -> bool:
    """True if a statement of these kinds leaves a loop."""
    pending: list[tuple[ast.AST, bool]] = [(node, False) for node in loop.body]
    while pending:
        node, is_inner = pending.pop()
        if isinstance(node, by) and not (is_inner and isinstance(node, ast.Break)):
            return True
        if not isinstance(node, SCOPES):
            inside = is_inner or isinstance(node, _LOOPS)
            pending.extend((child, inside) for child in ast.iter_child_nodes(node))
    return False


def _leaves(statement: ast.stmt) -> bool:
    """True if nothing after a statement is reached, as far as its kind tells."""
    match statement:
        case ast.Return() | ast.Raise():
            return True
        case ast.If(body=body, orelse=orelse):
            return bool(orelse) and _leaves(body[-1]) and _leaves(orelse[-1])
        case ast.While(test=ast.Constant(value)):
            return bool(value) and not _is_left(statement, (ast.Break,))
        case _:
            return False


def _collect(function: ast.FunctionDef) -> None:
    """Let a generator return the list of its elements."""
    if not is_as_append(function):
        return
    risk = _risk(function)
    for body in own_statement_lists(function):
        body[:] = [_as_append(statement) for statement in body]
    first = place(ast.parse(f"{_YIELDED} = []").body[0], function.body[0])
    start = 1 if ast.get_docstring(function, clean=False) is not None else 0
    function.body.insert(start, first)
    if not _leaves(function.body[-1]):
        function.body.append(place(ast.parse(f"return {_YIELDED}", mode="exec").body[0], function.body[-1]))
    for node in own_nodes(function):
        if isinstance(node, ast.Return):
            node.risk = risk  # type: ignore[attr-defined]
    function.returns = None


def _risk(function: ast.FunctionDef) -> str | None:
    """The reason why a generator must not be left early: what it may do after an element; None if there is none."""
    assigned = {n.id for n in own_nodes(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    yields = [node for node in own_nodes(function) if isinstance(node, ast.Yield | ast.YieldFrom)]
    again = {id(inner) for loop in own_nodes(function) if _is_loop_of(loop, yields) for inner in ast.walk(loop)}
    first = min((node.lineno, node.col_offset) for node in yields)
    for node in own_nodes(function):
        if not isinstance(node, ast.While | ast.Raise | ast.Assert):
            continue
        if id(node) not in again and (node.lineno, node.col_offset) < first:
            continue
        if not isinstance(node, ast.While):
            return f"line {node.lineno} may raise an error"
        if not _is_bounded(node.test, assigned):
            return f"nothing bounds the `while` of line {node.lineno}"
    return None


def _is_loop_of(loop: ast.AST, parts: list[ast.Yield | ast.YieldFrom]) -> bool:
    return isinstance(loop, _LOOPS) and any(node in parts for node in ast.walk(loop))


def _is_bounded(test: ast.expr, assigned: set[str]) -> bool:
    """True for the condition of a loop that asks whether something is left, or compares with what stays as it is."""
    match test:
        case ast.Name() | ast.Attribute() | ast.Call(ast.Name("len")) | ast.Subscript():
            return True
        case ast.BoolOp(ast.And(), parts):
            return any(_is_bounded(part, assigned) for part in parts)
        case ast.BoolOp(ast.Or(), parts):
            return all(_is_bounded(part, assigned) for part in parts)
        case ast.Compare(ops=[ast.Is() | ast.IsNot()]):
            return True
        case ast.Compare(left, _, rights):
            sides = [left, *rights]
            names = {n.id for side in sides for n in ast.walk(side) if isinstance(n, ast.Name)}
            return any(isinstance(side, ast.Call) for side in sides) or bool(names - assigned)
        case _:
            return False


def _as_append(statement: ast.stmt) -> ast.stmt:
    match statement:
        case ast.Return():
            return place(ast.parse(f"return {_YIELDED}").body[0], statement)
        case ast.Expr(ast.Yield(value)):
            made = ast.parse(f"{_YIELDED}.append(None)").body[0]
            if value is not None:
                made.value.args = [value]  # type: ignore[attr-defined]
            return place(made, statement)
        case ast.Expr(ast.YieldFrom(value)):
            made = ast.parse(f"{_YIELDED} += list(0)").body[0]
            made.value.args = [value]  # type: ignore[attr-defined]
            return place(made, statement)
        case _:
            return statement


# ---- iterators


def _take(function: ast.FunctionDef) -> None:
    """Let `next` take the first element of a list that a variable, or a field of one, holds."""
    taken: set[str] = set()
    for node in list(own_nodes(function)):
        for field, value in ast.iter_fields(node):
            if isinstance(value, list):
                value[:] = [_first_element(item, taken) if isinstance(item, ast.Call) else item for item in value]
            elif isinstance(value, ast.Call):
                setattr(node, field, _first_element(value, taken))
    if taken:
        for body in own_statement_lists(function):
            body[:] = [_rest(statement, taken) for statement in body]


def _first_element(call: ast.Call, taken: set[str]) -> ast.expr:
    match call:
        case ast.Call(ast.Name("next"), [(ast.Name() | ast.Attribute()) as iterator, *default], []) if len(default) < 2:
            name = ast.unparse(iterator)
            taken.add(name)
            made: ast.expr = ast.parse(f"{name}.__next__()", mode="eval").body
            if default:
                made = ast.parse(f"{name}.__next__() if len({name}) > 0 else 0", mode="eval").body
                assert isinstance(made, ast.IfExp)
                made.orelse = default[0]
            place(made, call)
            return made
        case _:
            return call


def _rest(statement: ast.stmt, taken: set[str]) -> ast.stmt:
    """A loop that goes on where `next` has stopped, and takes what it goes through."""
    if not isinstance(statement, ast.For) or not isinstance(statement.iter, ast.Name | ast.Attribute):
        return statement
    name = ast.unparse(statement.iter)
    if name not in taken:
        return statement
    loop = ast.parse(f"while len({name}) > 0:\n    taken__ = {name}.__next__()").body[0]
    assert isinstance(loop, ast.While) and isinstance(loop.body[0], ast.Assign)
    loop.body[0].targets = [statement.target]
    loop.body += statement.body
    loop.orelse = statement.orelse
    return place(loop, statement)


# ---- numbers without end

_numbers = itertools.count()


def _endless(statement: ast.stmt, names: NameMeanings) -> list[ast.stmt]:
    """A `for` over `itertools.count`, `cycle` or `repeat` as an endless loop; another statement as it is."""
    if not isinstance(statement, ast.For) or not isinstance(statement.iter, ast.Call) or statement.iter.keywords:
        return [statement]
    number = next(_numbers)
    counted, cycled = f"{_COUNTED}{number}", f"{_CYCLED}{number}"
    match names.meaning(statement.iter.func), statement.iter.args:
        case "itertools.count", [] | [_] | [_, ast.Constant() | ast.Name() | ast.UnaryOp(operand=ast.Constant())]:
            start, step = [*map(ast.unparse, statement.iter.args), *("0", "1")[len(statement.iter.args) :]]
            before, element = f"{counted} = {start} - ({step})", f"{counted} += {step}\ntarget__ = {counted}"
        case "itertools.cycle", [whole]:
            before = f"{cycled} = list({ast.unparse(whole)})\n{counted} = -1"
            element = f"{counted} += 1\ntarget__ = {cycled}[{counted} % len({cycled})]"
        case "itertools.repeat", [whole]:
            before, element = f"{cycled} = {ast.unparse(whole)}", f"target__ = {cycled}"
        case _:
            return [statement]
    taken = ast.parse(element).body
    assert isinstance(taken[-1], ast.Assign)
    taken[-1].targets = [statement.target]
    loop = ast.While(ast.Constant(True), [*taken, *statement.body], [])
    return [place(made, statement) for made in (*ast.parse(before).body, loop)]
