"""A function that calls itself in tail position becomes a loop: constant space, and a loop's derivative.

    f(p) = {.. f(a) | .. b}         f(q) = loop L (p = q) {.. next L a | .. exit L b}

Runs on the structured form. Calls of itself elsewhere stay calls.
"""

from __future__ import annotations

from relay.ir.expr import Binding, Block, Call, Exit, Function, Global, Loop, LoopLabel, Module, Next, Var
from relay.transform.functions import with_functions
from relay.transform.leaves import leaves, map_branch, tail_branch


def loop_tail_calls(module: Module) -> Module:
    """The module with the self-recursion in tail position turned into loops."""
    functions = {name: _looped(f) if isinstance(f, Function) else f for name, f in module.functions.items()}
    return with_functions(module, functions)


def _looped(function: Function) -> Function:
    label = LoopLabel(function.label.name)
    body = _replace(function.body, function, label)
    ends = list(leaves(body))
    if not any(isinstance(leaf, Next) for leaf in ends) or not any(isinstance(leaf, Exit) for leaf in ends):
        return function
    parameters = tuple(Var(p.name, p.type, p.span) for p in function.parameters)
    result = Var("result", function.result, function.span)
    loop = Loop(label, function.parameters, parameters, body, None, function.span)
    block = Block((Binding((result,), loop),), Exit(function.label, (result,), function.span))
    return Function(
        function.name,
        parameters,
        block,
        function.label,
        function.result,
        function.signature,
        function.documentation,
        function.span,
        function.rule,
    )


def _replace(block: Block, function: Function, label: LoopLabel) -> Block:
    """The block in tail form, leaving the loop `label` instead of the function."""
    end = block.terminator
    if isinstance(end, Exit) and end.label is function.label:
        if block.bindings:
            last = block.bindings[-1]
            match last.value:
                case Call(Global(name), arguments) if name == function.name and end.values == last.targets:
                    return Block(block.bindings[:-1], Next(label, arguments, end.span))
                case _:
                    pass
        return Block(block.bindings, Exit(label, end.values, end.span))
    branch = tail_branch(block)
    if branch is None:
        return block
    changed = map_branch(branch, lambda b: _replace(b, function, label))
    return Block((*block.bindings[:-1], Binding((), changed)), end)
