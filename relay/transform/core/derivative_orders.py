"""Static derivative orders: each order is a separate function, so it must be known at compile time."""

from __future__ import annotations

from relay.ir.expr import Block, Derivative, Grad, Lambda, Loop, Module, RefWrite, Var
from relay.ir.surface import ForEach
from relay.ir.traverse import all_blocks, free_variables
from relay.transform.analysis.graph import call_graph, strong_components
from relay.transform.core.specialization import specialize


def check_orders(typed: Module) -> None:
    """Raise DifferentiationError where it is known only at run time how often something is differentiated."""
    if _may_grow(typed):
        specialize(typed)


def _may_grow(module: Module) -> bool:
    """True if a derivative may be one of itself: it is made in code that runs more than once."""
    inner, repeated = False, False
    recursive = _is_recursive(module)
    for function in module.functions.values():
        if isinstance(function, Derivative):
            return True
        for block in all_blocks(function.body):
            outermost = function is module.main and block is function.body and not recursive
            inner = inner or (not outermost and any(isinstance(b.value, Grad) for b in block.bindings))
            repeated = repeated or _repeats(block)
    return inner and (repeated or recursive)


def _repeats(block: Block) -> bool:
    """True if a block has a loop, a local function that calls itself, or a reference that may contain one."""
    local: set[Var] = set()
    for binding in block.bindings:
        if isinstance(binding.value, Loop | ForEach | RefWrite):
            return True
        if isinstance(binding.value, Lambda):
            local.update(binding.targets)
    functions = [b.value.function for b in block.bindings if isinstance(b.value, Lambda)]
    return any(variable in local for function in functions for variable in free_variables(function))


def _is_recursive(module: Module) -> bool:
    graph = call_graph(module)
    return any(len(c) > 1 or c[0] in graph[c[0]] for c in strong_components(graph))


__all__ = ["check_orders"]
