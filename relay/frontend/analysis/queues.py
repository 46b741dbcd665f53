"""Python's queues as lists: `collections.deque`, whose first elements are taken by `pop(0)`, and the functions of
`heapq`, whose heap is a sorted list, which is one, too: the least element is the first one."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

_ITEM, _NEW = "queued__", "pushed__"

# The usual meaning of names, for texts that do not say, as a cell of a notebook whose imports are in another one.
_CONVENTIONAL = {
    "deque": "collections.deque",
    **{f"heapq.{name}": f"heapq.{name}" for name in ("heappush", "heappop", "heapify")},
    **{f"collections.{name}": f"collections.{name}" for name in ("deque", "defaultdict", "Counter")},
    **{name: f"collections.{name}" for name in ("defaultdict", "Counter")},
}


def as_lists(tree: ast.AST) -> None:
    """Rewrite the queues of a text."""
    names = NameMeanings(tree)
    for body in statement_lists(tree):
        body[:] = [made for statement in body for made in _push(statement, names)]
    _Queues(names, _deques(tree, names)).rewrite(tree)


def statement_lists(tree: ast.AST) -> Iterator[list[ast.stmt]]:
    """The lists of statements in a text: bodies of functions, loops, branches, .."""
    for node in ast.walk(tree):
        for name in ("body", "orelse", "finalbody"):
            body = getattr(node, name, None)
            if isinstance(body, list):
                yield body


class NameMeanings:
    """The functions that names of a text mean, by its imports; by convention where it says nothing of a name."""

    def __init__(self, tree: ast.AST) -> None:
        self._modules: dict[str, str] = {}
        self._functions: dict[str, str] = {}
        bound: set[str] = set()
        for node in ast.walk(tree):
            match node:
                case ast.Import(names=names):
                    self._modules |= {a.asname or a.name: a.name for a in names}
                case ast.ImportFrom(module=module, names=names, level=level):
                    self._functions |= {a.asname or a.name: f"{'.' * level}{module or ''}.{a.name}" for a in names}
                case ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.arg(arg=name):
                    bound.add(name)
                case ast.Name(name, ast.Store()):
                    bound.add(name)
                case _:
                    pass
        self._usual: Mapping[str, str] = {k: v for k, v in _CONVENTIONAL.items() if k.partition(".")[0] not in bound}

    def meaning(self, node: ast.expr) -> str | None:
        """The full name of a function, `heapq.heappush`; None for others."""
        match node:
            case ast.Name(name):
                return self._functions.get(name) or self._usual.get(name)
            case ast.Attribute(ast.Name(module), name):
                known = self._modules.get(module)
                return f"{known}.{name}" if known is not None else self._usual.get(f"{module}.{name}")
            case _:
                return None


def _is_deque(node: ast.expr | None, names: NameMeanings) -> bool:
    """True for `deque(..)` without a largest length."""
    match node:
        case ast.Call(func=function, keywords=[]):
            return len(node.args) <= 1 and names.meaning(function) == "collections.deque"
        case _:
            return False


def _deques(tree: ast.AST, names: NameMeanings) -> frozenset[str]:
    """The variables that hold a deque."""
    found = set()
    for node in ast.walk(tree):
        match node:
            case ast.Assign(targets=[ast.Name(name)], value=value) | ast.AnnAssign(target=ast.Name(name), value=value):
                if _is_deque(value, names):
                    found.add(name)
            case _:
                pass
    return frozenset(found)


def _push(statement: ast.stmt, names: NameMeanings) -> list[ast.stmt]:
    """`heapq.heappush(h, x)` and `heapq.heapify(h)` as statements of lists; another one as it is."""
    match statement:
        case ast.Expr(ast.Call(function, [ast.Name(heap), new], [])) if names.meaning(function) == "heapq.heappush":
            text = f"{_NEW} = 0\n{heap}.insert(sum(1 for {_ITEM} in {heap} if {_ITEM} < {_NEW}), {_NEW})"
            assigned, inserted = ast.parse(text).body
            assert isinstance(assigned, ast.Assign)
            assigned.value = new
            return [_place(assigned, statement), _place(inserted, statement)]
        case ast.Expr(ast.Call(function, [ast.Name(heap)], [])) if names.meaning(function) == "heapq.heapify":
            return [_place(ast.parse(f"{heap}.sort()").body[0], statement)]
        case _:
            return [statement]


def _place(made: ast.stmt, of: ast.stmt) -> ast.stmt:
    """A statement at the place of another one, except for what is a part of that."""
    kept = {id(node) for node in ast.walk(of)}
    for node in ast.walk(made):
        if isinstance(node, ast.expr | ast.stmt) and id(node) not in kept:
            ast.copy_location(node, of)
    return made


class _Queues:
    def __init__(self, names: NameMeanings, deques: frozenset[str]) -> None:
        self._names, self._deques = names, deques

    def rewrite(self, tree: ast.AST) -> None:
        """Replace calls, inner ones before those around them: a loop, as expressions may be long chains."""
        for node in reversed(list(ast.walk(tree))):
            for field, value in ast.iter_fields(node):
                if isinstance(value, ast.Call):
                    setattr(node, field, self._call(value))
                elif isinstance(value, list):
                    value[:] = [self._call(item) if isinstance(item, ast.Call) else item for item in value]

    def _call(self, node: ast.Call) -> ast.expr:
        match node:
            case ast.Call(function, [ast.Name() as heap], []) if self._names.meaning(function) == "heapq.heappop":
                return self._method(node, heap, "pop", [ast.Constant(0)])
            case ast.Call(ast.Attribute(ast.Name(name) as queue, "popleft"), [], []) if name in self._deques:
                return self._method(node, queue, "pop", [ast.Constant(0)])
            case ast.Call(ast.Attribute(ast.Name(name) as queue, "appendleft"), [new], []) if name in self._deques:
                return self._method(node, queue, "insert", [ast.Constant(0), new])
            case _ if _is_deque(node, self._names):
                if not node.args:
                    return ast.copy_location(ast.List([], ast.Load()), node)
                return ast.copy_location(
                    ast.Call(ast.copy_location(ast.Name("list", ast.Load()), node), node.args, []), node
                )
            case _:
                return node

    def _method(self, node: ast.Call, queue: ast.Name, name: str, arguments: list[ast.expr]) -> ast.expr:
        """The call of a method of the list."""
        for argument in arguments:
            if isinstance(argument, ast.Constant) and not hasattr(argument, "lineno"):
                ast.copy_location(argument, node)
        function = ast.copy_location(ast.Attribute(queue, name, ast.Load()), node)
        return ast.copy_location(ast.Call(function, arguments, []), node)
