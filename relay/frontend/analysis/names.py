"""Names that a piece of syntax assigns and reads, without the bodies of nested functions where possible.

`x[i] = v` counts as an assignment of x wherever variables are renamed, but it does not make x local: Python does not
either.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import TypeGuard

Names = dict[str, None]
"""A set that keeps the order of first occurrence."""

NESTED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)


def assigned_names(nodes: Iterable[ast.AST]) -> Names:
    """The names that these nodes give a new value, in the order of the text."""
    names: Names = {}
    for node in function_nodes(nodes):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store | ast.Del):
            names[node.id] = None
        elif isinstance(node, ast.Subscript | ast.Attribute) and isinstance(node.ctx, ast.Store | ast.Del):
            base = subscripted_name(node)
            if base is not None:
                names[base] = None
        elif (changed := changed_list(node) or _holder(node)) is not None:
            names[changed] = None
        elif (name := _defined_name(node)) is not None:
            names[name] = None
        else:
            names |= changed_arguments(node)
    return names


def _defined_name(node: ast.AST) -> str | None:
    """The name that a definition or a part of a pattern gives a value."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.MatchAs | ast.MatchStar):
        return node.name
    if isinstance(node, ast.ExceptHandler):
        return node.name
    return node.rest if isinstance(node, ast.MatchMapping) else None


SET_STATEMENTS = dict.fromkeys(
    ("add", "discard", "intersection_update", "difference_update", "symmetric_difference_update"), 1
)
SET_CHANGES = (*SET_STATEMENTS, "remove", "update", "clear")

LIST_STATEMENTS = {
    "append": 1,
    "extend": 1,
    "insert": 2,
    "clear": 0,
    "reverse": 0,
    "update": 1,
    "remove": 1,
    "sort": 0,
    **SET_STATEMENTS,
}
"""The methods that change a list, a dict or a set and give nothing, with the number of their arguments."""

MOST_SORT_ARGUMENTS = 3
"""The axis, kind and order of an array's `sort`; a list's has none."""

TAKING = ("pop", "setdefault", "popitem", "__next__")
"""The methods that change a list or a dict and give a value, anywhere in an expression."""


def changed_sets(function: ast.AST) -> set[int]:
    """The expressions, by their identity, that are assigned to variables with methods that change a set."""
    names: set[str] = set()
    for node in ast.walk(function):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=method)) if method in SET_CHANGES:
                names.add(name)
            case _:
                pass
    return {id(value) for name, value in assigned_values(function) if name in names}


def assigned_values(tree: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """Variables with the expressions that are assigned to them, also pairwise: `a, b = [], {}`."""
    for node in ast.walk(tree):
        match node:
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                yield name, value
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    yield from _assigned_pairs(target, value)
            case _:
                pass


def _assigned_pairs(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    match target, value:
        case ast.Name(id=name), _:
            yield name, value
        case ((ast.Tuple(elts=names) | ast.List(elts=names)), (ast.Tuple(elts=values) | ast.List(elts=values))):
            for one, other in zip(names, values, strict=False):
                yield from _assigned_pairs(one, other)
        case _:
            pass


def changes_list(method: str, call: ast.Call) -> bool:
    """True if a call of a method, written as a statement, changes a list."""
    if method == "update":
        return len(call.args) <= 1
    if method == "sort":
        return len(call.args) <= MOST_SORT_ARGUMENTS
    return LIST_STATEMENTS.get(method) == len(call.args) and not call.keywords


def changed_place(node: ast.AST) -> ast.expr | None:
    """The place that `xs.append(v)` and the like change as statements, and `xs.pop(..)` anywhere; else None."""
    match node:
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=held, attr=method)) as call):
            return held if changes_list(method, call) else None
        case ast.Call(func=ast.Attribute(value=held, attr=method), keywords=[]) if method in TAKING:
            return held
        case _:
            return None


def changed_list(node: ast.AST) -> str | None:
    """The variable whose list or dict a method changes; None for other nodes, and for parts of variables."""
    place = changed_place(node)
    return place.id if isinstance(place, ast.Name) else None


def changed_arguments(node: ast.AST) -> Names:
    """The variables that a call of a function that changes its arguments rebinds, as the call is marked."""
    mark = getattr(node, "changing", None) if isinstance(node, ast.Call) else None
    return {} if mark is None else dict.fromkeys(mark.variables)


def _holder(node: ast.AST) -> str | None:
    """The variable of `d["k"].append(v)` and the like; None for anything else."""
    place = changed_place(node)
    return subscripted_name(place) if isinstance(place, ast.Subscript | ast.Attribute) else None


def appended_tuples(nodes: Iterable[ast.AST]) -> dict[str, int]:
    """The number of parts of the tuples that `xs.append((a, b))` writes, for each variable that gets only such
    tuples."""
    counts: dict[str, set[int | None]] = {}
    for node in function_nodes(nodes):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="append"), args=[value], keywords=[]):
                counts.setdefault(name, set()).add(_parts_of_tuple(value))
            case _:
                pass
    return {name: parts for name, (parts, *others) in counts.items() if parts is not None and not others}


def _parts_of_tuple(node: ast.expr) -> int | None:
    if not isinstance(node, ast.Tuple) or any(isinstance(item, ast.Starred) for item in node.elts):
        return None
    return len(node.elts)


def resized_lists(nodes: Iterable[ast.AST]) -> Names:
    """The variables whose lists these nodes make longer or shorter, as far as the syntax shows it."""
    names: Names = {}
    for node in function_nodes(nodes):
        if (changed := changed_list(node)) is not None:
            names[changed] = None
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.BinOp(op=ast.Add(), left=left, right=right)):
                sides = {type(left): right, type(right): left}
                if any(isinstance(s, ast.Name) and s.id == name for s in (left, right)) and any(
                    issubclass(kind, ast.List | ast.ListComp) for kind in sides
                ):
                    names[name] = None
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.List(elts=items)):
                if any(isinstance(i, ast.Starred) and name in read_names(i.value) for i in items):
                    names[name] = None
            case ast.Delete(targets=targets):
                held = [target.value for target in targets if isinstance(target, ast.Subscript)]
                names.update((each.id, None) for each in held if isinstance(each, ast.Name))
            case ast.Assign(targets=[ast.Subscript(value=ast.Name(id=name), slice=ast.Slice())]):
                names[name] = None
            case ast.AugAssign(target=ast.Name(id=name), op=ast.Add(), value=ast.List() | ast.ListComp()):
                names[name] = None
            case _:
                pass
    return names


def nonlocal_names(function: ast.FunctionDef | ast.Lambda) -> set[str]:
    """The names that a function declares `nonlocal`."""
    body = function.body if isinstance(function, ast.FunctionDef) else []
    return {name for node in function_nodes(body) if isinstance(node, ast.Nonlocal) for name in node.names}


def parameters_in_order(arguments: ast.arguments) -> list[ast.arg]:
    """The parameters in order: positional ones, `*args`, those that are given by keyword only, `**kwargs`."""
    spread = [] if arguments.vararg is None else [arguments.vararg]
    named = [] if arguments.kwarg is None else [arguments.kwarg]
    return [*arguments.posonlyargs, *arguments.args, *spread, *arguments.kwonlyargs, *named]


def local_names(function: ast.FunctionDef | ast.Lambda) -> Names:
    """The names that are local to a function: its parameters, and what its own statements assign."""
    names: Names = {a.arg: None for a in parameters_in_order(function.args)}
    body = function.body if isinstance(function, ast.FunctionDef) else [function.body]
    for node in function_nodes(body):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names[node.id] = None
        elif (defined := _defined_name(node)) is not None:
            names[defined] = None
    for name in nonlocal_names(function):
        names.pop(name, None)
    return names


def read_names(node: ast.AST | None) -> set[str]:
    """The names whose value an expression may read now, or a function that it makes may read later."""
    if node is None:
        return set()
    names: set[str] = set()
    stack: list[tuple[ast.AST, frozenset[str]]] = [(node, frozenset())]  # with the names that hide those outside
    while stack:
        current, hidden = stack.pop()
        match current:
            case ast.Name():
                if isinstance(current.ctx, ast.Load) and current.id not in hidden:
                    names.add(current.id)
            case ast.Constant():
                pass
            case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                own = frozenset(name for g in current.generators for name in target_names(g.target))
                stack.append((current.generators[0].iter, hidden))
                for child in ast.iter_child_nodes(current):
                    parts = ast.iter_child_nodes(child) if child is current.generators[0] else [child]
                    stack += [(p, hidden | own) for p in parts if p is not current.generators[0].iter]
            case ast.Lambda():
                stack += [(d, hidden) for d in (*current.args.defaults, *current.args.kw_defaults) if d is not None]
                stack.append((current.body, hidden | frozenset(local_names(current))))
            case _:
                stack += [(child, hidden) for child in ast.iter_child_nodes(current)]
    return names


def certainly_assigned(node: ast.AST) -> set[str]:
    """The names that an expression assigns with `:=` whichever way its conditions go."""
    names: set[str] = set()
    stack: list[ast.AST] = [node]
    while stack:
        match stack.pop():
            case ast.NamedExpr(target=ast.Name(id=name), value=value):
                names.add(name)
                stack.append(value)
            case ast.BoolOp(values=values):
                stack.append(values[0])
            case ast.IfExp(test=test):
                stack.append(test)
            case ast.Compare(left=left, comparators=comparators):
                stack += [left, comparators[0]]
            case ast.Lambda():
                pass
            case other:
                stack.extend(ast.iter_child_nodes(other))
    return names


def has_assignment(node: ast.AST) -> bool:
    """True if an expression has a `:=` of the function around it, a `pop`, or a call that changes an argument."""
    return any(
        isinstance(n, ast.NamedExpr) or changed_list(n) is not None or changed_arguments(n)
        for n in function_nodes([node])
    )


def changes_inside(nodes: Iterable[ast.expr]) -> Iterator[tuple[str, ast.expr]]:
    """The names that expressions of a comprehension assign by `:=`, or change by `pop` or a call, and where."""
    for node in function_nodes(nodes):
        if isinstance(node, ast.NamedExpr):
            yield node.target.id, node
        elif isinstance(node, ast.Call) and (name := changed_list(node) or _holder(node)) is not None:
            yield name, node
        else:
            yield from ((name, node) for name in changed_arguments(node))  # type: ignore[misc]


def subscripted_name(node: ast.expr) -> str | None:
    """The variable that `x[..]`, `x[..][..]`, `x.field`, `x.field[..]` change; None where the base is not a name, and
    for what a reference holds, `r.value`."""
    while is_part(node):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None


def is_part(node: ast.expr) -> TypeGuard[ast.Subscript | ast.Attribute]:
    """True if this is an item or a field of something, and not what a reference holds."""
    if isinstance(node, ast.Attribute):
        return node.attr != "value" or getattr(node, "is_field", False)
    return isinstance(node, ast.Subscript)


def target_names(target: ast.expr) -> set[str]:
    """The names that an assignment's target binds."""
    return {n.id for n in ast.walk(target) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}


def pattern_names(pattern: ast.pattern) -> set[str]:
    """The names that a pattern binds."""
    return {name for n in ast.walk(pattern) if isinstance(n, ast.pattern) and (name := _defined_name(n)) is not None}


def is_always_true(test: ast.expr) -> bool:
    """True if a loop's condition is a constant that holds."""
    return isinstance(test, ast.Constant) and isinstance(test.value, bool | int) and bool(test.value)


def if_chain(node: ast.If) -> tuple[list[ast.If], list[ast.stmt]]:
    """An `if` with all its `elif`s, and the last `else`. Python's tree nests them; here they are a list."""
    chain = [node]
    while len(node.orelse) == 1 and isinstance(node.orelse[0], ast.If):
        node = node.orelse[0]
        chain.append(node)
    return chain, node.orelse


def function_nodes(nodes: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """The nodes of one function in the order of the text. Of nested functions only what runs at the definition."""
    stack = list(nodes)[::-1]
    while stack:
        node = stack.pop()
        yield node
        if isinstance(node, ast.Name | ast.Constant | ast.ClassDef):
            continue  # without this line, most of the time goes into asking leaves for their children
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            children: list[ast.AST] = [*node.args.defaults, *(d for d in node.args.kw_defaults if d is not None)]
        elif isinstance(node, ast.comprehension):
            children = [node.iter, *node.ifs]  # its variables are its own
        else:
            children = list(ast.iter_child_nodes(node))
        stack.extend(reversed(children))
