"""Elements of lists that a loop changes: in Python they are the list's own, so the list gets the changed ones back.

for p in particles:          for p__place, p in enumerate(particles):
    p.speed += dt       ->       p.speed += dt
                                 particles[p__place] = p
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from relay.frontend.analysis.changing_methods import changed_objects

_CHANGING = ("append", "clear", "extend", "insert", "pop", "remove", "reverse", "sort")


def give_back(tree: ast.AST, changing: frozenset[str] = frozenset()) -> None:
    """Rewrite the loops of all functions whose elements' fields or items change, if their lists are read later.
    `changing`: the names of the methods that change their objects."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            for loop, around in list(_loops(node)):
                _rewrite(node, loop, around, changing)


def _loops(function: ast.FunctionDef) -> Iterator[tuple[ast.For, ast.stmt | None]]:
    """The `for` loops of a function, each with the outermost loop around it."""
    waiting: list[tuple[ast.AST, ast.stmt | None]] = [(function, None)]
    while waiting:
        node, around = waiting.pop()
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.Lambda | ast.ClassDef):
                continue
            if isinstance(child, ast.For):
                yield child, around
            is_loop = isinstance(child, ast.For | ast.While)
            waiting.append((child, around or child if is_loop else around))  # type: ignore[arg-type]


def _rewrite(function: ast.FunctionDef, loop: ast.For, around: ast.stmt | None, changing: frozenset[str]) -> None:
    found = loop_elements(loop.target, loop.iter)
    lists = {element: whole.id for element, whole in found if isinstance(whole, ast.Name)}
    stored = {n.id for part in loop.body for n in ast.walk(part) if isinstance(n, ast.Name) and _is_store(n)}
    lists = {
        element: name
        for element, name in lists.items()
        if element not in stored and name not in stored and _is_read_later(function, loop, around, name)
    }
    if not lists:
        return
    place = f"{next(iter(lists))}__place"
    if not _append_updates(loop.body, lists, place, changing):
        return
    counter = ast.copy_location(ast.Name(place, ast.Store()), loop.target)
    loop.target = ast.copy_location(ast.Tuple([counter, loop.target], ast.Store()), loop.target)
    function_name = ast.copy_location(ast.Name("enumerate", ast.Load()), loop.iter)
    loop.iter = ast.copy_location(ast.Call(function_name, [loop.iter], []), loop.iter)


def loop_elements(target: ast.expr, iterable: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    """The variables of a loop that are elements of lists with names or in attributes, and these lists."""
    match target, iterable:
        case ast.Name(id=element), ast.Name() | ast.Attribute():
            yield element, iterable
        case ast.Tuple(elts=[_, inner]), ast.Call(func=ast.Name(id="enumerate"), args=[whole, *_]):
            yield from loop_elements(inner, whole)
        case ast.Tuple(elts=parts), ast.Call(func=ast.Name(id="zip"), args=given) if len(parts) == len(given):
            for part, whole in zip(parts, given, strict=True):
                yield from loop_elements(part, whole)


def _is_store(node: ast.Name) -> bool:
    return isinstance(node.ctx, ast.Store | ast.Del)


def _is_read_later(function: ast.FunctionDef, loop: ast.For, around: ast.stmt | None, name: str) -> bool:
    """True if a list is read after a loop, or in it, or in a later round of a loop around it."""
    inside = {id(n) for n in ast.walk(loop.iter)}
    reads = [n for n in ast.walk(function) if isinstance(n, ast.Name) and n.id == name and not _is_store(n)]
    nearby = set() if around is None else {id(n) for n in ast.walk(around)}
    return any(id(n) not in inside and (id(n) in nearby or n.lineno >= loop.lineno) for n in reads)


def _append_updates(body: list[ast.stmt], lists: Mapping[str, str], place: str, changing: frozenset[str]) -> bool:
    """Give lists their changed elements back, behind each change; False if there is none."""
    found = False
    for position in reversed(range(len(body))):
        statement = body[position]
        if isinstance(statement, ast.FunctionDef | ast.ClassDef):
            continue
        for name in ("body", "orelse", "finalbody"):
            inner = getattr(statement, name, None)
            if isinstance(inner, list):
                found = _append_updates(inner, lists, place, changing) or found
        for case in getattr(statement, "cases", ()):
            found = _append_updates(case.body, lists, place, changing) or found
        for element in changed_variables(statement, changing):
            if element in lists:
                body.insert(position + 1, _update(statement, lists[element], place, element))
                found = True
    return found


def changed_variables(statement: ast.stmt, changing: frozenset[str]) -> set[str]:
    """The variables whose fields or items a statement changes."""
    if not isinstance(statement, ast.Assign | ast.AugAssign | ast.AnnAssign | ast.Expr):
        return set()
    return {*changed_objects(statement, changing), *_assigned_variables(statement)}


def _assigned_variables(statement: ast.stmt) -> set[str]:
    match statement:
        case ast.Assign(targets=targets):
            places = [part for target in targets for part in _parts(target)]
        case ast.AugAssign(target=target) | ast.AnnAssign(target=target):
            places = [target]
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=changed, attr=method))) if method in _CHANGING:
            return {changed.id} if isinstance(changed, ast.Name) else set()
        case _:
            return set()
    roots = (_root(p) for p in places if isinstance(p, ast.Attribute | ast.Subscript) and not _is_reference(p))
    return {root.id for root in roots if isinstance(root, ast.Name)}


def _is_reference(place: ast.expr) -> bool:
    """True for `r.value`, which may write a reference: it is the same one everywhere."""
    return isinstance(place, ast.Attribute) and place.attr == "value"


def _parts(target: ast.expr) -> list[ast.expr]:
    return [p for e in target.elts for p in _parts(e)] if isinstance(target, ast.Tuple | ast.List) else [target]


def _root(place: ast.expr) -> ast.expr:
    while isinstance(place, ast.Attribute | ast.Subscript):
        place = place.value
    return place


def _update(statement: ast.stmt, name: str, place: str, element: str) -> ast.stmt:
    whole, index = ast.Name(name, ast.Load()), ast.Name(place, ast.Load())
    made = ast.Assign([ast.Subscript(whole, index, ast.Store())], ast.Name(element, ast.Load()))
    for node in ast.walk(made):
        if isinstance(node, ast.expr | ast.stmt):
            ast.copy_location(node, statement)
    return made
