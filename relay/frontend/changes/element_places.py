"""Elements that a loop changes in a loop in it, or that are in a list of an attribute, as their places in the list.

for row in grid:                     for row__place, row in enumerate(grid):
    for j in range(n):        ->         for j in range(n):
        row[j] += 1                          grid[row__place][j] += 1

What changes elements of variables outside of inner loops gives them back (`loop_elements.py`).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from relay.frontend.analysis.names import function_nodes, target_names
from relay.frontend.changes.loop_elements import changed_variables
from relay.frontend.changes.second_names import Names, replace_name


def use_places(tree: ast.AST, changing: frozenset[str]) -> None:
    """Rewrite the loops of all functions. `changing`: the names of the methods that change their objects."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            loops = [n for n in function_nodes(node.body) if isinstance(n, ast.For)]
            loops.sort(key=lambda n: (n.lineno, n.col_offset), reverse=True)  # inner ones first
            lists = {ast.dump(whole) for loop in loops for whole in _rewrite(node, loop, changing)}
            for loop in loops if lists else []:  # others that read elements of these lists see the changes
                for element, whole in _elements(loop.target, loop.iter):
                    if ast.dump(whole) in lists and not _is_read_elsewhere(node, loop, element):
                        _use_place(node, loop, element, whole, changing, only_read=True)
            if lists:
                _compare_places(node, lists)


def _compare_places(function: ast.FunctionDef, lists: set[str]) -> None:
    """Compare the places of elements of one list for `p is q`: a list whose elements change has none twice, or the
    change would be refused."""
    for node in ast.walk(function):
        match node:
            case ast.Compare(
                left=ast.Subscript(value=one, slice=ast.Name() as place),
                ops=[ast.Is() | ast.IsNot() as operator],
                comparators=[ast.Subscript(value=other, slice=ast.Name() as second)],
            ) if ast.dump(one) == ast.dump(other) and ast.dump(one) in lists:
                node.left, node.comparators = place, [second]
                node.ops = [ast.Eq() if isinstance(operator, ast.Is) else ast.NotEq()]
            case _:
                pass


def _rewrite(function: ast.FunctionDef, loop: ast.For, changing: frozenset[str]) -> Iterator[ast.expr]:
    """Rewrite a loop whose elements change; gives the lists that they are in."""
    elements = dict(_elements(loop.target, loop.iter))
    if not elements:
        return
    changed = _changed_elements(loop.body, changing) & elements.keys()
    loops = [n for n in function_nodes(loop.body) if isinstance(n, ast.For | ast.While)] if changed else []
    inside = {name for inner in loops for name in _changed_elements(inner.body, changing)}
    stored = {n.id for n in function_nodes(loop.body) if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)}
    for element in sorted(changed - stored):
        is_held = isinstance(elements[element], ast.Attribute)
        if not (is_held or element in inside) or _is_read_elsewhere(function, loop, element):
            continue
        if _use_place(function, loop, element, elements[element], changing):
            yield elements[element]


def _changed_elements(block: list[ast.stmt], changing: frozenset[str]) -> set[str]:
    """The variables whose fields or items a block changes."""
    statements = [n for n in function_nodes(block) if isinstance(n, ast.stmt)]
    return {name for statement in statements for name in changed_variables(statement, changing)}


def _elements(target: ast.expr, iterable: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    """The variables of a loop that are elements of lists with names or in attributes, and these lists."""
    match target, iterable:
        case ast.Name(id=element), ast.Name() | ast.Attribute():
            yield element, iterable
        case ast.Tuple(elts=[_, inner]), ast.Call(func=ast.Name(id="enumerate"), args=[whole, *_]):
            yield from _elements(inner, whole)
        case ast.Tuple(elts=parts), ast.Call(func=ast.Name(id="zip"), args=given) if len(parts) == len(given):
            for part, whole in zip(parts, given, strict=True):
                yield from _elements(part, whole)


def _is_read_elsewhere(function: ast.FunctionDef, loop: ast.For, element: str) -> bool:
    """True if the variable is read outside of the loop, but in other loops and comprehensions that bind its name."""
    own = {id(n) for part in loop.body for n in ast.walk(part)}
    for node in function_nodes(function.body):
        match node:
            case ast.For(target=target, body=body) if node is not loop and element in target_names(target):
                own |= {id(n) for part in body for n in ast.walk(part)}
            case (
                ast.ListComp(generators=parts) | ast.GeneratorExp(generators=parts) | ast.SetComp(generators=parts)
            ) if any(element in target_names(part.target) for part in parts):
                own |= {id(n) for n in ast.walk(node)}
    return any(
        isinstance(n, ast.Name) and n.id == element and _is_read(n) and id(n) not in own for n in ast.walk(function)
    )


def _is_read(name: ast.Name) -> bool:
    return isinstance(name.ctx, ast.Load)


def _use_place(
    function: ast.FunctionDef,
    loop: ast.For,
    element: str,
    whole: ast.expr,
    changing: frozenset[str],
    only_read: bool = False,
) -> bool:
    """Put the place of an element where it is read, if that is the same object all along; True if it is. Where the
    loop itself changes elements, it may go through its list, whose elements may be known."""
    number = f"{element}__place"
    name = f"{element}__{loop.lineno}_{loop.col_offset}"
    before = loop.target, loop.iter
    if only_read and isinstance(loop.target, ast.Name):
        length = ast.Call(ast.Name("len", ast.Load()), [loop.iter], [])
        loop.target, loop.iter = ast.Name(number, ast.Store()), ast.Call(ast.Name("range", ast.Load()), [length], [])
    elif number not in target_names(loop.target):
        loop.target = ast.Tuple([ast.Name(number, ast.Store()), loop.target], ast.Store())
        loop.iter = ast.Call(ast.Name("enumerate", ast.Load()), [loop.iter], [])
    place = ast.Subscript(whole, ast.Name(number, ast.Load()), ast.Load())
    first = ast.Assign([ast.Name(name, ast.Store())], place)
    for made, written in ((loop.target, before[0]), (loop.iter, before[1]), (first, before[0])):
        for node in ast.walk(made):
            if isinstance(node, ast.expr | ast.stmt) and not hasattr(node, "lineno"):
                ast.copy_location(node, written)
    reads = [n for part in loop.body for n in ast.walk(part) if isinstance(n, ast.Name) and n.id == element]
    for read in reads:
        read.id = name
    loop.body.insert(0, first)
    is_same = Names(function, changing).is_second(name, place, loop.body[1:])
    if is_same:
        replace_name(loop.body[1:], name, place)
    else:
        for read in reads:
            read.id = element
        loop.target, loop.iter = before
    del loop.body[0]
    return is_same
