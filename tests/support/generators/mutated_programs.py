"""Wrong and odd programs: those of the zoo with one or two changes, as a hurried author makes them, and their arguments
with other types, ranks and structures."""

from __future__ import annotations

import ast
import copy
import inspect
import random
import textwrap
from collections.abc import Callable
from typing import Any

import attrs
import numpy as np
from zoo import Program

NUMBERS: tuple[object, ...] = (0, 1, -1, 2, 3, 7, 0.0, 0.5, -2.0, 1e30, 10**12, True, False, None, "a", "", ...)
NAMES = ("relay", "np", "len", "range", "sum", "max", "zip", "list", "x", "n", "undefined", "relay.ones", "relay.grad")
ATTRIBUTES = ("shape", "ndim", "size", "dtype", "T", "value", "sum", "append", "items", "reshape", "w", "real", "copy")
OPERATORS = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow, ast.MatMult, ast.BitAnd, ast.LShift)
COMPARISONS = (ast.Lt, ast.Eq, ast.NotEq, ast.GtE, ast.In, ast.NotIn, ast.Is, ast.IsNot)


@attrs.frozen
class Mutant:
    """A changed program: its text, the names that it sees, and what it is called with."""

    name: str
    text: str
    globals: dict[str, Any]
    arguments: tuple[Any, ...]


def mutant(program: Program, seed: int) -> Mutant | None:
    """The program with changes that the seed chooses; None for one that has no text of its own."""
    python = inspect.unwrap(program.function)
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(python)))
    except (OSError, TypeError, SyntaxError):
        return None
    chosen = random.Random(f"{program.name} {seed}")
    if not isinstance(tree.body[0], ast.FunctionDef):
        return None
    function = tree.body[0]
    function.decorator_list = []
    arguments = program.arguments
    for _ in range(chosen.choice((1, 1, 1, 2))):
        if chosen.random() < 0.25 and arguments:
            arguments = changed_arguments(chosen, arguments)
        else:
            chosen.choice(CHANGES)(chosen, function)
    try:
        text = ast.unparse(ast.fix_missing_locations(tree))
        compile(text, "<mutant>", "exec")
    except (SyntaxError, ValueError, TypeError, AttributeError):
        return None
    return Mutant(f"{program.name} {seed}", text, dict(python.__globals__), arguments)


# ---- changes of the text


def _nodes(function: ast.FunctionDef, *kinds: type[ast.AST]) -> list[Any]:
    return [n for statement in function.body for n in ast.walk(statement) if isinstance(n, kinds)]


def _bodies(function: ast.FunctionDef) -> list[list[ast.stmt]]:
    nodes = [function, *_nodes(function, ast.For, ast.While, ast.If, ast.FunctionDef)]
    return [body for n in nodes for body in (n.body, getattr(n, "orelse", [])) if body]


def _replace(function: ast.FunctionDef, old: ast.AST, new: ast.AST) -> None:
    for parent in ast.walk(function):
        for field, value in ast.iter_fields(parent):
            if value is old:
                setattr(parent, field, new)
            elif isinstance(value, list) and any(v is old for v in value):
                value[:] = [new if v is old else v for v in value]


def _read(function: ast.FunctionDef) -> list[ast.expr]:
    """The expressions whose values are read."""
    slices = (
        n for e in _nodes(function, ast.Tuple) for n in (e, *e.elts) if any(isinstance(i, ast.Slice) for i in e.elts)
    )
    others = {id(n) for n in (*slices, *_nodes(function, ast.Slice, ast.Starred, ast.JoinedStr, ast.FormattedValue))}
    found = (e for e in _nodes(function, ast.expr) if id(e) not in others)
    return [e for e in found if isinstance(getattr(e, "ctx", ast.Load()), ast.Load)]


def delete_statement(chosen: random.Random, function: ast.FunctionDef) -> None:
    body = chosen.choice(_bodies(function))
    body.pop(chosen.randrange(len(body)))
    if not body:
        body.append(ast.Pass())


def repeat_statement(chosen: random.Random, function: ast.FunctionDef) -> None:
    source, target = chosen.choice(_bodies(function)), chosen.choice(_bodies(function))
    target.insert(chosen.randrange(len(target) + 1), copy.deepcopy(chosen.choice(source)))


def swap_statements(chosen: random.Random, function: ast.FunctionDef) -> None:
    body = chosen.choice(_bodies(function))
    chosen.shuffle(body)


def swap_arguments(chosen: random.Random, function: ast.FunctionDef) -> None:
    calls = [c for c in _nodes(function, ast.Call) if c.args]
    if calls:
        call = chosen.choice(calls)
        chosen.shuffle(call.args)
        if chosen.random() < 0.4:
            call.args.pop()
        elif chosen.random() < 0.4:
            call.args.append(copy.deepcopy(chosen.choice(call.args)))


def replace_operator(chosen: random.Random, function: ast.FunctionDef) -> None:
    found = _nodes(function, ast.BinOp, ast.AugAssign, ast.Compare, ast.UnaryOp)
    if not found:
        return
    node = chosen.choice(found)
    if isinstance(node, ast.Compare):
        node.ops[0] = chosen.choice(COMPARISONS)()
    elif isinstance(node, ast.UnaryOp):
        node.op = chosen.choice((ast.Not, ast.USub, ast.Invert))()
    else:
        node.op = chosen.choice(OPERATORS)()


def replace_number(chosen: random.Random, function: ast.FunctionDef) -> None:
    found = _nodes(function, ast.Constant)
    if found:
        _replace(function, chosen.choice(found), ast.Constant(chosen.choice(NUMBERS)))


def replace_name(chosen: random.Random, function: ast.FunctionDef) -> None:
    found = _nodes(function, ast.Name)
    if found:
        others = [n.id for n in found] + [a.arg for a in function.args.args]
        node = chosen.choice(found)
        node.id = chosen.choice(others if chosen.random() < 0.7 else NAMES)


def replace_attribute(chosen: random.Random, function: ast.FunctionDef) -> None:
    found = _nodes(function, ast.Attribute)
    if found:
        node = chosen.choice(found)
        node.attr = chosen.choice((*ATTRIBUTES, *(a.attr for a in found)))


def replace_expression(chosen: random.Random, function: ast.FunctionDef) -> None:
    found = _read(function)
    if len(found) > 1:
        _replace(function, chosen.choice(found), copy.deepcopy(chosen.choice(found)))


def wrap_expression(chosen: random.Random, function: ast.FunctionDef) -> None:
    found = _read(function)
    if not found:
        return
    old = chosen.choice(found)
    form = chosen.choice(
        (
            *("[E]", "(E,)", "(E, E)", "{'a': E}", "lambda q: E", "E[0]", "E['a']", "E[..., None]", "E[1:]", "E.shape"),
            *("E()", "not E", "-E", "len(E)", "E if E else 0", "relay.grad(E)", "[E for q in E]", "sum(E)", "max(E)"),
            *("f'{E}'", "E[E]", "(lambda q: q)(E)", "relay.ones(E)", "E.sum()", "E and E", "E < E < E", "list(E)"),
            *("range(E)", "E[-1]", "E[E > 0]", "float(E)", "int(E)", "zip(E, E)", "tuple(E)", "E.reshape(-1)", "E.T"),
            *("relay.grad(lambda q: E)(E)", "relay.ref(E)", "sorted(E)", "enumerate(E)", "reversed(E)", "(yield)"),
        )
    )
    try:
        new = ast.parse(form.replace("E", f"({ast.unparse(old)})"), mode="eval").body
    except SyntaxError:  # before Python 3.12 no text in an f-string has its quotes
        return
    _replace(function, old, new)


def wrap_statements(chosen: random.Random, function: ast.FunctionDef) -> None:
    """Statements go into a loop, a branch or a function of their own."""
    body = chosen.choice(_bodies(function))
    start = chosen.randrange(len(body))
    inner = body[start : start + chosen.choice((1, 2))]
    text = chosen.choice(
        ("for q in range(3): pass", "while True: pass", "if n > 0: pass", "for q in x: pass", "def q(): pass")
    )
    outer: Any = ast.parse(text).body[0]
    outer.body = [*inner, *chosen.choice(([], [ast.Break()], [ast.Continue()]))] if "def" not in text else inner
    body[start : start + len(inner)] = [outer]


def remove_return(chosen: random.Random, function: ast.FunctionDef) -> None:
    found = _nodes(function, ast.Return)
    if found:
        node = chosen.choice(found)
        node.value = chosen.choice((None, ast.Constant(None), ast.Constant(1), ast.Name("q", ast.Load())))


CHANGES: tuple[Callable[[random.Random, ast.FunctionDef], None], ...] = (
    *(delete_statement, repeat_statement, swap_statements, swap_arguments, replace_operator, replace_number),
    *(replace_name, replace_name, replace_attribute, replace_expression, replace_expression, wrap_expression),
    *(wrap_expression, wrap_expression, wrap_statements, remove_return),
)


# ---- changes of the arguments

OTHERS: tuple[Any, ...] = (
    *(0, 1, -1, 2.5, True, None, "text", np.float32(1.5), np.int64(3), np.float64(0.5), np.bool_(True)),
    *(np.ones(3), np.ones((2, 2)), np.ones((2, 3, 4), np.float32), np.zeros(0), np.zeros((0, 3)), np.arange(4)),
    *([], [1.0, 2.0], (1.0, np.ones(2)), {"a": 1.0}, {"w": np.ones(3)}, [np.ones(2), np.ones(3)], (), {}),
    *(np.array("text"), np.ones(2, complex), np.array([None]), np.array([True, False]), np.ones(2, np.float16)),
)


def changed_arguments(chosen: random.Random, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """Arguments of which one is another, or missing, or they are in another order."""
    given = list(arguments)
    position, kind = chosen.randrange(len(given)), chosen.random()
    if kind < 0.1:
        given.pop()
    elif kind < 0.15:
        given.append(given[position])
    elif kind < 0.25:
        chosen.shuffle(given)
    elif kind < 0.5 and isinstance(given[position], np.ndarray):
        array = given[position]
        forms = (array[None], array.astype(np.int32), array.astype(np.float16), array.ravel(), array > 0, array[:0])
        given[position] = chosen.choice(forms) if array.ndim else array[None]
    else:
        given[position] = chosen.choice(OTHERS)
    return tuple(given)
