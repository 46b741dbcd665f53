"""Loops over a generator of the same text that has no end, as the generator's own loop.

    def fibonacci():                    for f in fibonacci():
        a, b = 0, 1                         if f > limit:
        while True:                             break
            yield a                         total += f
            a, b = b, a + b
                                        a, b, is_later = 0, 1, False
                                        while True:
                                            if is_later:
                                                a, b = b, a + b
                                            is_later = True
                                            f = a
                                            if f > limit: ..

The first n elements, `itertools.islice(fibonacci(), n)`, are those of a loop that ends after as many.
"""

from __future__ import annotations

import ast
import copy
import itertools

import attrs

from relay.frontend.analysis.rewriting import SCOPES, NameMeanings, own_nodes, place, statement_lists

_numbers = itertools.count()


@attrs.frozen(eq=False)
class Generator:
    """A generator that ends in `while True` with one `yield`, which stands in the loop itself: the statements before
    the loop, before the `yield`, and after it."""

    function: ast.FunctionDef
    start: list[ast.stmt]
    before: list[ast.stmt]
    value: ast.expr
    after: list[ast.stmt]


def with_own_loops(tree: ast.Module) -> None:
    """Rewrite the loops of a text over its endless generators."""
    found = (_generator(f) for f in tree.body if isinstance(f, ast.FunctionDef))
    known = {g.function.name: g for g in found if g is not None and _means_the_same(g, tree)}
    if not known:
        return
    names = NameMeanings(tree)
    for body in statement_lists(tree):
        body[:] = [made for statement in body for made in _statement(statement, known, names)]


def _generator(function: ast.FunctionDef) -> Generator | None:
    given = function.args
    is_plain = not (given.vararg or given.kwarg or given.kwonlyargs or given.defaults or given.posonlyargs)
    yields = [node for node in own_nodes(function) if isinstance(node, ast.Yield | ast.YieldFrom)]
    inner = any(isinstance(node, ast.FunctionDef | ast.Lambda | ast.Return) for node in own_nodes(function))
    *start, loop = function.body
    if not is_plain or len(yields) != 1 or inner or function.decorator_list:
        return None
    if start and isinstance(start[0], ast.Expr) and isinstance(start[0].value, ast.Constant):
        start = start[1:]
    match loop:
        case ast.While(ast.Constant(True), body, []):
            if any(isinstance(node, ast.Break | ast.Continue) for node in ast.walk(loop)):
                return None
            for i, statement in enumerate(body):
                match statement:
                    case ast.Expr(ast.Yield(value)) if value is not None:
                        return Generator(function, start, body[:i], value, body[i + 1 :])
                    case _:
                        pass
        case _:
            pass
    return None


def _means_the_same(generator: Generator, tree: ast.Module) -> bool:
    """True if no function gives a meaning of its own to the generator's name, or to a name that it has from outside."""
    inside = list(own_nodes(generator.function))
    stored = {n.id for n in inside if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    own = {a.arg for a in generator.function.args.args} | stored
    outer = {n.id for n in inside if isinstance(n, ast.Name)} - own | {generator.function.name}
    for function in ast.walk(tree):
        if isinstance(function, SCOPES) and function is not generator.function:
            for node in ast.walk(function):
                is_stored = isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id in outer
                if is_stored or (isinstance(node, ast.arg) and node.arg in outer):
                    return False
                if isinstance(node, ast.FunctionDef) and node is not function and node.name in outer:
                    return False
    return True


def _evaluated_first(expression: ast.expr) -> list[ast.expr]:
    """The parts of an expression that are evaluated once, whatever the others are."""
    found, pending = [], [expression]
    while pending:
        node = pending.pop()
        found.append(node)
        match node:
            case ast.Lambda() | ast.IfExp() | ast.BoolOp():
                continue
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
                pending.append(node.generators[0].iter)
            case _:
                pending += [child for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr)]
                pending += [child.value for child in ast.iter_child_nodes(node) if isinstance(child, ast.keyword)]
    return found


def _prints(generator: Generator) -> bool:
    """True if a generator prints, which is in its order where a loop goes through it."""
    calls = (node.func for node in own_nodes(generator.function) if isinstance(node, ast.Call))
    return any(isinstance(function, ast.Name) and function.id == "print" for function in calls)


def _statement(statement: ast.stmt, known: dict[str, Generator], names: NameMeanings) -> list[ast.stmt]:
    if isinstance(statement, ast.For):
        match statement.iter:
            case ast.Call(ast.Name(name), arguments, []) if _fits(known.get(name), arguments):
                return _loop(known[name], arguments, statement.target, statement.body, statement)
            case _:
                pass
    made: list[ast.stmt] = []
    if isinstance(statement, ast.Assign | ast.Return | ast.Expr | ast.AugAssign | ast.For):
        whole = statement.iter if isinstance(statement, ast.For) else statement.value
        for node in [] if whole is None else _evaluated_first(whole):
            match node:
                case ast.Call(function, [ast.Call(ast.Name(name), arguments, []), count], []):
                    is_islice = names.meaning(function) == "itertools.islice"
                    if is_islice and _fits(known.get(name), arguments) and not _prints(known[name]):
                        made += _first_ones(node, known[name], arguments, count, statement)
                case _:
                    pass
    return [*made, statement]


def _fits(generator: Generator | None, arguments: list[ast.expr]) -> bool:
    return generator is not None and len(generator.function.args.args) == len(arguments)


def _first_ones(
    call: ast.Call, generator: Generator, arguments: list[ast.expr], count: ast.expr, statement: ast.stmt
) -> list[ast.stmt]:
    """The loop that gathers the first elements in front of a statement, whose call becomes the list of them."""
    name = f"first__{next(_numbers)}"
    start = ast.parse(f"{name} = []\n{name}_count = 0").body
    assert isinstance(start[1], ast.Assign)
    start[1].value = count
    target = ast.Name(f"{name}_element", ast.Store())
    body = ast.parse(f"while True:\n    {name}.append({name}_element)").body[0].body  # type: ignore[attr-defined]
    loop = _loop(generator, arguments, target, body, statement, f"len({name}) < {name}_count")
    call.func = ast.copy_location(ast.Name("list", ast.Load()), call)
    call.args = [ast.copy_location(ast.Name(name, ast.Load()), call)]
    return [*(place(made, statement) for made in start), *loop]


def _loop(
    generator: Generator,
    arguments: list[ast.expr],
    target: ast.expr,
    body: list[ast.stmt],
    of: ast.stmt,
    condition: str = "True",
) -> list[ast.stmt]:
    """The generator's loop with a body at the place of the `yield`."""
    number = next(_numbers)
    parameters = [a.arg for a in generator.function.args.args]
    stored = [n.id for n in own_nodes(generator.function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
    renamed = {name: f"{name}__{number}" for name in {*parameters, *stored}}

    def rename(statements: list[ast.stmt]) -> list[ast.stmt]:
        copies = copy.deepcopy(statements)
        for node in (n for statement in copies for n in ast.walk(statement)):
            if isinstance(node, ast.Name) and node.id in renamed:
                node.id = renamed[node.id]
        return copies

    given: list[ast.stmt] = [
        place(ast.Assign([ast.Name(renamed[p], ast.Store())], argument), of)
        for p, argument in zip(parameters, arguments, strict=True)
    ]
    (value,) = rename([ast.Expr(generator.value)])
    assert isinstance(value, ast.Expr)
    taken = place(ast.Assign([target], value.value), of)
    flag = f"is_later__{number}"
    later: list[ast.stmt] = []
    if generator.after:
        test = ast.parse(f"if {flag}:\n    pass\n{flag} = True").body
        assert isinstance(test[0], ast.If)
        test[0].body = rename(generator.after)
        later = [place(made, test[0].body[0]) for made in test]
        given.append(place(ast.parse(f"{flag} = False").body[0], of))
    loop = ast.While(ast.parse(condition, mode="eval").body, [*later, *rename(generator.before), taken, *body], [])
    inside = {id(node) for statement in loop.body for node in ast.walk(statement)}
    for node in ast.walk(loop):
        if id(node) not in inside and isinstance(node, ast.expr | ast.stmt):
            ast.copy_location(node, of)
    return [*given, *rename(generator.start), loop]
