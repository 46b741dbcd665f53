"""Python's queues as lists: `collections.deque`, whose first elements are taken by `pop(0)`, and the functions of
`heapq`, whose heap is a sorted list, which is one, too: the least element is the first one."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Set

from relay.frontend.analysis.rewriting import NameMeanings, own_nodes, own_statement_lists, place, statement_lists

_ITEM, _NEW = "queued__", "pushed__"


def as_lists(tree: ast.Module) -> None:
    """Rewrite the queues of a text."""
    names = NameMeanings(tree)
    bounded: set[int] = set()
    for scope in ast.walk(tree):
        if isinstance(scope, ast.FunctionDef | ast.ClassDef):
            lengths, calls = _bounded_deques(scope, tree, names)
            bounded |= calls
            if lengths:
                for body in (
                    own_statement_lists(scope) if isinstance(scope, ast.FunctionDef) else statement_lists(scope)
                ):
                    body[:] = [made for statement in body for made in _bounded(statement, lengths)]
    deques = _deques(tree, names)
    for body in statement_lists(tree):
        body[:] = [made for statement in body for made in _statement(statement, names, deques)]
    _Queues(names, deques, bounded).rewrite(tree)


def _is_deque(node: ast.expr | None, names: NameMeanings) -> bool:
    """True for `deque(..)`, whose largest length, if any, is known where it grows."""
    match node:
        case ast.Call(func=function, keywords=keywords):
            is_deque = len(node.args) <= 1 and names.meaning(function) == "collections.deque"
            return is_deque and all(k.arg == "maxlen" and _is_lasting(k.value) for k in keywords)
        case _:
            return False


def _is_lasting(length: ast.expr) -> bool:
    """True for a length that means the same wherever a deque grows: a number, a constant's name, a field."""
    match length:
        case ast.Constant(value):
            return value is None or (isinstance(value, int) and value > 0)
        case ast.Name(name):
            return name.isupper()
        case ast.Attribute(ast.Name("self")):
            return True
        case _:
            return False


def _assigned_deques(nodes: Iterable[ast.AST], names: NameMeanings) -> Iterator[tuple[str, ast.Call]]:
    """The variables and fields that hold a deque, and what they are made by."""
    for node in nodes:
        pairs: list[tuple[ast.expr, ast.expr | None]] = []
        match node:
            case ast.Assign(targets=[ast.Tuple(targets)], value=ast.Tuple(values)) if len(targets) == len(values):
                pairs += zip(targets, values, strict=True)
            case ast.Assign(targets=[target], value=value) | ast.AnnAssign(target=target, value=value):
                pairs.append((target, value))
            case _:
                pass
        for target, value in pairs:
            is_place = isinstance(target, ast.Name | ast.Attribute)
            if is_place and isinstance(value, ast.Call) and _is_deque(value, names):
                yield ast.unparse(target), value


def _deques(tree: ast.AST, names: NameMeanings) -> frozenset[str]:
    """The variables and fields that hold a deque."""
    return frozenset(name for name, _ in _assigned_deques(ast.walk(tree), names))


def _bounded_deques(
    scope: ast.FunctionDef | ast.ClassDef, tree: ast.Module, names: NameMeanings
) -> tuple[dict[str, str], set[int]]:
    """The largest lengths of a function's variables, or of the fields of a class, that hold nothing but deques which
    have one, and that nothing else changes; and the calls that make these."""
    is_class = isinstance(scope, ast.ClassDef)
    nodes = list(ast.walk(scope) if is_class else own_nodes(scope))
    kind = ast.Attribute if is_class else ast.Name
    found: dict[str, list[str | None]] = {}
    calls: dict[str, set[int]] = {}
    for name, call in _assigned_deques(nodes, names):
        bounds = [k.value for k in call.keywords if not (isinstance(k.value, ast.Constant) and k.value.value is None)]
        found.setdefault(name, []).append(ast.unparse(bounds[0]) if bounds else None)
        calls.setdefault(name, set()).add(id(call))
    stores = Counter(ast.unparse(n) for n in nodes if isinstance(n, kind) and isinstance(n.ctx, ast.Store))
    lengths = {}
    for name, known in found.items():
        is_one = known[0] is not None and len(set(known)) == 1 and stores[name] == len(known)
        if is_one and _is_apart(name, nodes, tree if is_class else scope):
            lengths[name] = str(known[0])
    return lengths, {call for name in lengths for call in calls[name]}


_READERS = frozenset(
    ("len", "sum", "list", "tuple", "sorted", "max", "min", "any", "all", "enumerate", "reversed", "zip", "bool", "set")
)  # which change nothing
_LIBRARIES = ("np", "numpy", "math", "statistics")


def _is_apart(name: str, nodes: list[ast.AST], everything: ast.AST) -> bool:
    """True if a variable or field is only read, and changed by its methods, by these nodes of everything."""
    last = name.rpartition(".")[2]

    def occurs(node: ast.AST) -> bool:
        return isinstance(node, ast.Attribute | ast.Name) and last in (
            getattr(node, "attr", ""),
            getattr(node, "id", ""),
        )

    known = {id(node) for node in nodes if occurs(node) and ast.unparse(node) == name}
    if any(occurs(node) and id(node) not in known for node in ast.walk(everything)):
        return False
    for parent in nodes:
        match parent:
            case ast.Call(ast.Name(function), arguments) if function not in _READERS:
                passed: list[ast.AST] = [*arguments, *(k.value for k in parent.keywords)]
            case ast.Call(ast.Attribute(ast.Name(module)), _) if module in _LIBRARIES:
                continue
            case ast.Call(_, arguments) if not isinstance(parent.func, ast.Name):
                passed = [*arguments, *(k.value for k in parent.keywords)]
            case ast.Assign(value=value) | ast.AnnAssign(value=value) if value is not None:
                passed = [value]
            case ast.Tuple(items, ast.Load()) | ast.List(items, ast.Load()):
                passed = [*items]
            case _:
                continue
        if any(id(item) in known for item in passed):
            return False
    return True


def _bounded(statement: ast.stmt, lengths: Mapping[str, str]) -> list[ast.stmt]:
    """A statement that adds to a deque, and what takes from its other end where it is too long."""
    match statement:
        case ast.Expr(ast.Call(ast.Attribute(ast.Name() | ast.Attribute() as queue, method), [_], [])) if (
            bound := lengths.get(ast.unparse(queue))
        ) is not None:
            return [statement, *(place(made, statement) for made in _drops(ast.unparse(queue), method, bound))]
        case _:
            return [statement]


def _statement(statement: ast.stmt, names: NameMeanings, deques: frozenset[str]) -> list[ast.stmt]:
    """`heapq.heappush(h, x)` and the like as statements of lists; another one as it is."""
    match statement:
        case ast.Expr(ast.Call(ast.Attribute(ast.Name() | ast.Attribute() as queue, "rotate"), [*steps], [])) if (
            len(steps) < 2 and ast.unparse(queue) in deques
        ):
            name, by = ast.unparse(queue), ast.unparse(steps[0]) if steps else "1"
            turned = f"{_NEW} = -({by}) % max(len({name}), 1)\n{name}[:] = {name}[{_NEW}:] + {name}[:{_NEW}]"
            return [place(made, statement) for made in ast.parse(turned).body]
        case ast.Expr(ast.Call(function, [ast.Name() | ast.Attribute() as heap, *new], [])):
            return _change(statement, names.meaning(function), ast.unparse(heap), new)
        case ast.Assign(_, ast.Call(function, [ast.Name() | ast.Attribute() as heap, new], [])) if names.meaning(
            function
        ) in ("heapq.heappushpop", "heapq.heapreplace"):
            pushed = _change(statement, "heapq.heappush", ast.unparse(heap), [new])
            statement.value = place(ast.parse(f"{ast.unparse(heap)}.pop(0)", mode="eval").body, statement)
            return [*pushed, statement] if names.meaning(function) == "heapq.heappushpop" else [statement, *pushed]
        case _:
            return [statement]


def _change(statement: ast.stmt, meaning: str | None, heap: str, new: list[ast.expr]) -> list[ast.stmt]:
    """A statement that changes a sorted list."""
    match meaning, new:
        case "heapq.heapify", []:
            return [place(ast.parse(f"{heap}.sort()").body[0], statement)]
        case "heapq.heappush" | "bisect.insort" | "bisect.insort_left" | "bisect.insort_right", [value]:
            is_before = f"not {_NEW} < {_ITEM}" if meaning in ("bisect.insort", "bisect.insort_right") else ""
            before = is_before or f"{_ITEM} < {_NEW}"
            text = f"{_NEW} = 0\n{heap}.insert(sum(1 for {_ITEM} in {heap} if {before}), {_NEW})"
            assigned, inserted = ast.parse(text).body
            assert isinstance(assigned, ast.Assign)
            assigned.value = value
            return [place(assigned, statement), place(inserted, statement)]
        case _:
            return [statement]


def _drops(queue: str, method: str, bound: str) -> list[ast.stmt]:
    """The statements after a method of a deque that has a largest length."""
    match method:
        case "append":
            return ast.parse(f"if len({queue}) > {bound}:\n    {queue}.pop(0)").body
        case "appendleft":
            return ast.parse(f"if len({queue}) > {bound}:\n    {queue}.pop()").body
        case "extend":
            return ast.parse(f"{queue}[:] = {queue}[-{bound}:]").body
        case _:
            return []


class _Queues:
    def __init__(self, names: NameMeanings, deques: frozenset[str], known: Set[int]) -> None:
        self._names, self._deques, self._known = names, deques, known

    def rewrite(self, tree: ast.AST) -> None:
        """Replace calls, inner ones before those around them: a loop, as expressions may be long chains."""
        for node in reversed(list(ast.walk(tree))):
            for field, value in ast.iter_fields(node):
                if isinstance(value, ast.Call):
                    setattr(node, field, self._call(value))
                elif isinstance(value, list):
                    value[:] = [self._call(item) if isinstance(item, ast.Call) else item for item in value]

    def _call(self, node: ast.Call) -> ast.expr:
        first = ast.Constant(0)
        match node:
            case ast.Call(function, [ast.Name() | ast.Attribute() as heap], []) if (
                self._names.meaning(function) == "heapq.heappop"
            ):
                return self._method(node, heap, "pop", [first])
            case ast.Call(ast.Attribute(ast.Name() | ast.Attribute() as queue, method), arguments, []) if (
                ast.unparse(queue) in self._deques
            ):
                match method, arguments:
                    case "popleft", []:
                        return self._method(node, queue, "pop", [first])
                    case "appendleft", [new]:
                        return self._method(node, queue, "insert", [first, new])
                return node
            case _ if _is_deque(node, self._names) and (id(node) in self._known or not node.keywords):
                return self._list(node)
            case _:
                return node

    def _list(self, node: ast.Call) -> ast.expr:
        """The list that a deque is."""
        bounds = [k.value for k in node.keywords if not (isinstance(k.value, ast.Constant) and k.value.value is None)]
        made: ast.expr = ast.List([], ast.Load())
        if node.args:
            made = ast.Call(ast.Name("list", ast.Load()), node.args, [])
        if node.args and bounds:
            made = ast.Subscript(made, ast.Slice(ast.UnaryOp(ast.USub(), bounds[0]), None, None), ast.Load())
        return place(made, node)

    def _method(self, node: ast.Call, queue: ast.expr, name: str, arguments: list[ast.expr]) -> ast.expr:
        """The call of a method of the list."""
        return place(ast.Call(ast.Attribute(queue, name, ast.Load()), arguments, []), node)
