"""Elements that a loop changes in a loop in it, or that are in a list of an attribute, as their places in the list.

for row in grid:                     for row__place, row in enumerate(grid):
    for j in range(n):        ->         for j in range(n):
        row[j] += 1                          grid[row__place][j] += 1

for name, row in rows.items():       for name in rows:
    row.append(1)             ->         rows[name].append(1)

What changes elements of variables outside of inner loops gives them back (`loop_elements.py`).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from relay.frontend.analysis.names import function_nodes, target_names
from relay.frontend.changes.loop_elements import changed_variables, loop_elements
from relay.frontend.changes.second_names import Names, replace_name


def use_places(tree: ast.AST, changing: frozenset[str]) -> None:
    """Rewrite the loops of all functions. `changing`: the names of the methods that change their objects."""
    classes = [n for n in ast.walk(tree) if isinstance(n, ast.ClassDef)]
    methods = {n.name for owner in classes for n in owner.body if isinstance(n, ast.FunctionDef)}
    of_dicts = {"items", "values"} - methods
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            loops = [n for n in function_nodes(node.body) if isinstance(n, ast.For)]
            loops.sort(key=lambda n: (n.lineno, n.col_offset), reverse=True)  # inner ones first
            lists = {ast.dump(whole) for loop in loops for whole in _rewrite(node, loop, changing, of_dicts)}
            for loop in loops if lists else []:  # others that read elements of these lists see the changes
                for element, whole in loop_elements(loop.target, loop.iter):
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


def _rewrite(
    function: ast.FunctionDef, loop: ast.For, changing: frozenset[str], of_dicts: set[str]
) -> Iterator[ast.expr]:
    """Rewrite a loop whose elements change; gives the lists that they are in. `of_dicts`: the methods that are those of
    dicts."""
    elements = dict(loop_elements(loop.target, loop.iter))
    if _goes_through_dict(loop, of_dicts):
        _use_key(function, loop, changing)
    if not elements:
        return
    changed = _changed_elements(loop.body, changing) & elements.keys()
    loops = [n for n in function_nodes(loop.body) if isinstance(n, ast.For | ast.While)] if changed else []
    inside = {name for inner in loops for name in _changed_elements(inner.body, changing)}
    stored = {n.id for n in function_nodes(loop.body) if isinstance(n, ast.Name) and not _is_read(n)}
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


def _goes_through_dict(loop: ast.For, methods: set[str]) -> bool:
    match loop.iter:
        case ast.Call(func=ast.Attribute(value=ast.Name() | ast.Attribute(), attr=method), args=[], keywords=[]):
            return method in methods
        case _:
            return False


def _use_key(function: ast.FunctionDef, loop: ast.For, changing: frozenset[str]) -> None:
    """Let a loop go through the keys of a dict whose values it changes."""
    match loop.target, loop.iter:
        case ast.Name(id=element), ast.Call(func=ast.Attribute(value=whole, attr="values")):
            key = ast.Name(f"{element}__key", ast.Store())
        case ast.Tuple(elts=[ast.Name() as key, ast.Name(id=element)]), ast.Call(
            func=ast.Attribute(value=whole, attr="items")
        ):
            pass
        case _:
            return
    stored = {n.id for n in function_nodes(loop.body) if isinstance(n, ast.Name) and not _is_read(n)}
    is_changed = element in _changed_elements(loop.body, changing)
    if is_changed and not stored & {element, key.id} and not _is_read_elsewhere(function, loop, element):
        place = ast.Subscript(whole, ast.Name(key.id, ast.Load()), ast.Load())
        _put(function, loop, element, place, (key, whole), changing, frozenset({key.id}))


def _use_place(
    function: ast.FunctionDef,
    loop: ast.For,
    element: str,
    whole: ast.expr,
    changing: frozenset[str],
    only_read: bool = False,
) -> bool:
    """Put the place of an element where it is read; True if that is done. Where the loop itself changes elements, it
    may go through its list, whose elements may be known."""
    number = f"{element}__place"
    target, iterable = loop.target, loop.iter
    if only_read and isinstance(target, ast.Name):
        length = ast.Call(ast.Name("len", ast.Load()), [iterable], [])
        target, iterable = ast.Name(number, ast.Store()), ast.Call(ast.Name("range", ast.Load()), [length], [])
    elif number not in target_names(target):
        target = ast.Tuple([ast.Name(number, ast.Store()), target], ast.Store())
        iterable = ast.Call(ast.Name("enumerate", ast.Load()), [iterable], [])
    place = ast.Subscript(whole, ast.Name(number, ast.Load()), ast.Load())
    return _put(function, loop, element, place, (target, iterable), changing)


def _put(
    function: ast.FunctionDef,
    loop: ast.For,
    element: str,
    place: ast.Subscript,
    rounds: tuple[ast.expr, ast.expr],
    changing: frozenset[str],
    keys: frozenset[str] = frozenset(),
) -> bool:
    """Put a place where an element is read, in a loop with these rounds (its variables, and what it goes through), if
    that is the same object all along; True if it is. `keys`: the variables that are keys of dicts."""
    name = f"{element}__{loop.lineno}_{loop.col_offset}"
    before = loop.target, loop.iter
    loop.target, loop.iter = rounds
    first = ast.Assign([ast.Name(name, ast.Store())], place)
    for made, written in ((loop.target, before[0]), (loop.iter, before[1]), (first, before[0])):
        for node in ast.walk(made):
            if isinstance(node, ast.expr | ast.stmt) and not hasattr(node, "lineno"):
                ast.copy_location(node, written)
    reads = [n for part in loop.body for n in ast.walk(part) if isinstance(n, ast.Name) and n.id == element]
    for read in reads:
        read.id = name
    loop.body.insert(0, first)
    is_same = Names(function, changing, keys).is_second(name, place, loop.body[1:])
    if is_same:
        replace_name(loop.body[1:], name, place)
    else:
        for read in reads:
            read.id = element
        loop.target, loop.iter = before
    del loop.body[0]
    return is_same
