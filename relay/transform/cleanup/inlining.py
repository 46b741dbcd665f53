"""Inlining of module functions that are not recursive.

Runs on the structured form, where a function is left in tail position only: its bindings take the place of the call,
and if it ends in a branch, that branch yields the result. A function that a `Derivative` refers to stays available.
"""

from __future__ import annotations

from collections import Counter

from relay.ir.analysis.tail_positions import leaves, tail_branch, with_yields
from relay.ir.expr import Binding, Block, Call, Derivative, Exit, Function, Global, LoopLabel, Module, Var
from relay.ir.rebuild import copy_block, map_blocks, rebind, rebuild_block
from relay.ir.traverse import count_bindings, returns
from relay.transform.analysis.graph import call_graph, strong_components
from relay.transform.analysis.implicit_dims import given_sizes, gives_sizes
from relay.transform.cleanup.dead_code import drop_unreachable
from relay.transform.core.rebuilding import with_body, with_functions
from relay.transform.module_pass import pass_about

SMALL = 24
"""A function with at most this many bindings is inlined wherever it is called."""


@pass_about(Call, Derivative)
def inline(module: Module, small: int = SMALL) -> Module:
    """The module with functions inlined that are called once or have at most `small` bindings. Unreachable ones go."""
    module = drop_unreachable(module)
    graph = call_graph(module)
    calls = Counter(callee for callees in graph.values() for callee in callees)
    functions: dict[str, Function | Derivative] = dict(module.functions)
    bodies: dict[str, Function] = {}
    given = given_sizes(functions, graph)
    for component in strong_components(graph):
        for name in component:
            function = functions[name]
            if not isinstance(function, Function):
                continue
            changed = functions[name] = with_body(function, _Inliner(bodies).block(function.body))
            kept = function.rule is not None or name == module.entry
            if kept or len(component) > 1 or name in graph[name] or not _leaves_at_end(changed):
                continue
            if gives_sizes(changed.body, given):
                continue
            if calls[name] == 1 or count_bindings(changed.body) <= small:
                bodies[name] = changed
    return drop_unreachable(with_functions(module, functions))


def _leaves_at_end(function: Function) -> bool:
    """True if the function is left, and only at terminators at the end of its body."""
    exits = sum(1 for _ in returns(function))
    return exits > 0 and exits == sum(1 for leaf in leaves(function.body) if leaf.label is function.label)


class _Inliner:
    def __init__(self, bodies: dict[str, Function]) -> None:
        self.bodies = bodies

    def block(self, block: Block) -> Block:
        bindings: list[Binding] = []
        for binding in block.bindings:
            match binding.value:
                case Call(Global(name)) if name in self.bodies:
                    bindings += _body_for(binding.targets[0], self.bodies[name], binding.value)
                case value:
                    bindings.append(rebind(binding, map_blocks(value, self.block)))
        return rebuild_block(block, bindings, block.terminator)


def inlined_call(target: Var, function: Function, call: Call) -> list[Binding] | None:
    """The bindings that replace a call of a structured function and bind `target`; None if the function stays."""
    return _body_for(target, function, call) if _leaves_at_end(function) else None


def _body_for(target: Var, function: Function, call: Call) -> list[Binding]:
    label = LoopLabel(function.label.name)
    copy = copy_block(
        function.body, dict(zip(function.parameters, call.arguments, strict=True)), {function.label: label}
    )
    if isinstance(copy.terminator, Exit):
        return [*copy.bindings, Binding((target,), copy.terminator.values[0])]
    branch = tail_branch(copy)
    assert branch is not None
    return [*copy.bindings[:-1], Binding((target,), with_yields(branch, label, (target,)))]
