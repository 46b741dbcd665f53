"""The functions of a module with effects: what their caller notices besides their result."""

from __future__ import annotations

from relay.ir.expr import Assert, Function, Module, Print, RefWrite
from relay.ir.traverse import walk
from relay.ir.types import DataType, RefType, StackType, TupleType, Type
from relay.transform.analysis.graph import call_graph, strong_components


def effectful(module: Module) -> frozenset[str]:
    """The functions whose calls must not be dropped: they may fail an assertion, print, or write to a cell of the
    caller's.

    Writes to cells that a function has made itself do not count. A requirement of an operator (no division by zero)
    does not either: the check of a value that nobody uses may go. Not ending is not an effect.
    """
    graph = call_graph(module)
    asserting: set[str] = set()
    writing: set[str] = set()
    for component in strong_components(graph):
        asserts = writes = False
        for name in component:
            function = module.functions[name]
            asserts |= any(callee in asserting for callee in graph[name])
            writes |= any(callee in writing for callee in graph[name])
            if isinstance(function, Function):
                for binding in walk(function.body):
                    asserts |= isinstance(binding.value, Assert | Print)
                    writes |= isinstance(binding.value, RefWrite)
        if asserts:
            asserting.update(component)
        if writes:
            for name in component:
                if any(_holds_cell(t, set()) for t in _parameter_types(module, name)):
                    writing.add(name)
            if len(component) > 1 and writing.intersection(component):
                writing.update(component)
    return frozenset(asserting | writing)


def _parameter_types(module: Module, name: str) -> tuple[Type, ...]:
    return module.functions[name].type.parameters


def _holds_cell(type_: Type, seen: set[int]) -> bool:
    match type_:
        case RefType():
            return True
        case TupleType(items):
            return any(_holds_cell(t, seen) for t in items)
        case StackType(element):
            return _holds_cell(element, seen)
        case DataType(definition):
            if id(definition) in seen:
                return False
            seen.add(id(definition))
            return any(_holds_cell(t, seen) for c in definition.constructors for t in c.fields)
        case _:
            return False
