"""Comprehensions whose elements change variables, as loops in front of their statement, which can carry these.

xs = [rng.next() for i in range(n)]   ->   items__3_5 = []
                                           for i__3_5 in range(n):
                                               items__3_5.append(rng.next())
                                           xs = items__3_5
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from relay.frontend.analysis.names import changed_arguments, changes_inside, function_nodes, target_names
from relay.frontend.source import FunctionNode

_Comprehension = ast.ListComp | ast.GeneratorExp
_WHOLE = ("sum", "list", "tuple", "min", "max", "sorted", "set")
"""The functions that take all elements of a generator expression."""


def with_loops(function: FunctionNode) -> None:
    """Write the comprehensions of a function, and of those in it, as loops, where the rest of their statement does not
    show it."""
    for node in list(ast.walk(function)):
        for _, block in ast.iter_fields(node):
            if isinstance(block, list) and any(isinstance(s, ast.stmt) for s in block):
                block[:] = [new for statement in block for new in _statements(statement)]


def _statements(statement: ast.stmt) -> list[ast.stmt]:
    """A statement behind the loops of its comprehensions."""
    if not isinstance(statement, ast.Assign | ast.AnnAssign | ast.AugAssign | ast.Expr | ast.Return):
        return [statement]
    changing = [
        c for c in _comprehensions(statement) if any(map(changed_arguments, function_nodes(_parts_of_rounds(c))))
    ]
    loops: list[ast.stmt] = []
    for comprehension in sorted(changing, key=_position):
        if not _may_come_first(statement, comprehension) or not _can_be_loop(comprehension):
            break
        loops += _loop(statement, comprehension)
    return [*loops, statement]


def _position(node: ast.expr) -> tuple[int, int]:
    return node.lineno, node.col_offset


def _may_come_first(statement: ast.stmt, comprehension: _Comprehension) -> bool:
    """True if nothing that is computed before a comprehension, or written there, is changed by it, or changes what it
    reads."""
    inside = {id(n) for n in ast.walk(comprehension)}
    changed = {name for name, _ in changes_inside([comprehension.generators[0].iter, *_parts_of_rounds(comprehension)])}
    start = _position(comprehension)
    first: ast.AST | None = statement
    if isinstance(statement, ast.Assign | ast.AnnAssign):  # whose targets are written last
        first = statement.value
    assert first is not None
    before = [n for n in ast.walk(first) if isinstance(n, ast.expr) and id(n) not in inside and _position(n) < start]
    around = [n for n in before if not any(id(part) in inside for part in ast.walk(n))]
    is_read = any(isinstance(n, ast.Name) and n.id in changed for n in before)
    return not is_read and not any(True for _ in changes_inside(around))


def _loop(statement: ast.stmt, comprehension: _Comprehension) -> list[ast.stmt]:
    """The loop of a comprehension, whose list the statement gets in its place."""
    number = "_".join(map(str, _position(comprehension)))
    items, names = f"items__{number}", {n for g in comprehension.generators for n in target_names(g.target)}
    for node in ast.walk(comprehension):
        if isinstance(node, ast.Name) and node.id in names:
            node.id = f"{node.id}__{number}"
    start = ast.Assign([ast.Name(items, ast.Store())], ast.List([], ast.Load()))
    method = ast.Attribute(ast.Name(items, ast.Load()), "append", ast.Load())
    body: ast.stmt = ast.Expr(ast.Call(method, [comprehension.elt], []))
    for generator in reversed(comprehension.generators):
        for test in reversed(generator.ifs):
            body = ast.If(test, [body], [])
        body = ast.For(generator.target, generator.iter, [body], [])
    result = ast.Name(items, ast.Load())
    for made in (start, body, result):
        for node in ast.walk(made):
            if isinstance(node, ast.expr | ast.stmt) and not hasattr(node, "lineno"):
                ast.copy_location(node, comprehension)
    _replace(statement, comprehension, result)
    return [start, body]


def _parts_of_rounds(comprehension: _Comprehension) -> list[ast.expr]:
    """The expressions that are computed in each round."""
    first, *others = comprehension.generators
    return [comprehension.elt, *first.ifs, *(part for g in others for part in (g.iter, *g.ifs))]


def _comprehensions(statement: ast.stmt) -> Iterator[_Comprehension]:
    """The comprehensions that a statement computes in any case, and as a whole."""
    waiting: list[ast.AST] = [statement]
    while waiting:
        node = waiting.pop()
        match node:
            case ast.ListComp():
                yield node
            case ast.Call(func=ast.Name(id=name), args=[ast.GeneratorExp() as whole, *rest]) if name in _WHOLE:
                yield whole
                waiting += [*rest, *node.keywords]
            case ast.Lambda() | ast.IfExp() | ast.BoolOp() | ast.GeneratorExp() | ast.SetComp() | ast.DictComp():
                pass
            case _:
                waiting += ast.iter_child_nodes(node)


def _can_be_loop(comprehension: _Comprehension) -> bool:
    """True if the names of a comprehension can be variables of the function, under other names."""
    scopes = (ast.Lambda, ast.NamedExpr)
    is_plain = not any(isinstance(n, scopes) for n in function_nodes([comprehension]))
    return is_plain and not any(g.is_async for g in comprehension.generators)


def _replace(statement: ast.stmt, old: ast.expr, new: ast.expr) -> None:
    for node in ast.walk(statement):
        for name, value in ast.iter_fields(node):
            if value is old:
                setattr(node, name, new)
            elif isinstance(value, list):
                value[:] = [new if part is old else part for part in value]
