"""Graph algorithms that passes share: strong components, callees first; who calls whom in a module."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Protocol, TypeVar

from relay.ir.expr import Derivative, Function, Global, Module
from relay.ir.traverse import operands, walk


class _Hashable(Protocol):
    def __hash__(self) -> int: ...


_Node = TypeVar("_Node", bound=_Hashable)


def strong_components(edges: Mapping[_Node, Iterable[_Node]]) -> list[list[_Node]]:
    """The strongly connected components, each after those that it leads to (Tarjan, with an explicit stack)."""
    order: dict[_Node, int] = {}
    low: dict[_Node, int] = {}
    on_stack: set[_Node] = set()
    stack: list[_Node] = []
    components: list[list[_Node]] = []
    for root in edges:
        if root in order:
            continue
        order[root] = low[root] = len(order)
        stack.append(root)
        on_stack.add(root)
        work: list[tuple[_Node, Iterator[_Node]]] = [(root, iter(edges[root]))]
        while work:
            node, successors = work[-1]
            successor = next(successors, None)
            if successor is None:
                work.pop()
                if work:
                    above = work[-1][0]
                    low[above] = min(low[above], low[node])
                if low[node] == order[node]:
                    component: list[_Node] = []
                    while not component or component[-1] != node:
                        component.append(stack.pop())
                        on_stack.discard(component[-1])
                    components.append(component[::-1])
            elif successor not in order:
                order[successor] = low[successor] = len(order)
                stack.append(successor)
                on_stack.add(successor)
                work.append((successor, iter(edges[successor])))
            elif successor in on_stack:
                low[node] = min(low[node], order[successor])
    return components


def references(function: Function | Derivative) -> list[str]:
    """The module functions that a function mentions, with repetition."""
    if isinstance(function, Derivative):
        return [function.of]
    mentioned = [a.name for b in walk(function.body) for a in operands(b.value) if a.__class__ is Global]
    return [*mentioned, *function.rule_functions]


def call_graph(module: Module) -> dict[str, list[str]]:
    """The functions that each function of a core module mentions, with repetition."""
    return {name: references(function) for name, function in module.functions.items()}


def reachable_functions(module: Module, graph: Mapping[str, Collection[str]]) -> set[str]:
    """The functions that the entry leads to."""
    found = {module.entry}
    pending = [module.entry]
    while pending:
        for name in graph[pending.pop()]:
            if name not in found:
                found.add(name)
                pending.append(name)
    return found
