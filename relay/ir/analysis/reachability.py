"""Reachability: the functions of a module that mention each other."""

from __future__ import annotations

from relay.ir.expr import Function, Global, Module
from relay.ir.traverse import all_blocks, operands, terminator_operands, walk


def public_functions(module: Module) -> list[str]:
    """The functions that are for others to call: the entry, derivatives, and what no other function mentions; the
    first function if each mentions another one."""
    mentioned = {
        other
        for name, function in module.functions.items()
        if isinstance(function, Function)
        for other in mentioned_functions(function)
        if other != name
    }
    return [n for n in module.functions if n not in mentioned] or [next(iter(module.functions))]


def reachable_functions(module: Module, name: str) -> set[str]:
    """The functions that a function mentions, itself included, and so on."""
    needed: set[str] = set()
    pending = [name]
    while pending:
        current = pending.pop()
        function = module.functions.get(current)
        if current in needed or function is None:
            continue
        needed.add(current)
        if isinstance(function, Function):
            pending += mentioned_functions(function)
        else:
            pending.append(function.of)
    return needed


def mentioned_functions(function: Function) -> set[str]:
    """The functions that a function mentions."""
    found = set(function.rule_functions)
    found.update(a.name for b in walk(function.body) for a in operands(b.value) if isinstance(a, Global))
    ends = (a for block in all_blocks(function.body) for a in terminator_operands(block.terminator))
    return found | {a.name for a in ends if isinstance(a, Global)}
