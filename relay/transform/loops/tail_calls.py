"""Tail-call elimination: a function that calls itself in tail position becomes a loop, in constant space.

    f(p) = {.. f(a) | .. b}         f(q) = loop L (p = q) {.. next L a | .. exit L b}

Functions that call each other in tail position are one loop, which keeps the number of the function that is running
(`mutual_tail_calls`). Runs on the structured form. Calls elsewhere stay calls. A call whose result is a tuple may be
taken apart and put together again before it is returned.
"""

from __future__ import annotations

from collections.abc import Callable

import attrs

from relay.ir.analysis.tail_positions import leaves, tail_branch
from relay.ir.expr import (
    Atom,
    Binding,
    Block,
    Call,
    Exit,
    Function,
    Global,
    Loop,
    LoopLabel,
    MakeTuple,
    Module,
    Next,
    Project,
    Var,
)
from relay.ir.rebuild import map_branch
from relay.ir.types import TupleType, Type
from relay.transform.core.rebuilding import with_functions
from relay.transform.loops.mutual_tail_calls import merge_mutual_functions
from relay.transform.module_pass import pass_about


@pass_about(Call)
def loop_tail_calls(module: Module) -> Module:
    """The module with the recursion in tail position turned into loops."""
    functions = merge_mutual_functions(module, tail_call, replace_tail_calls)
    functions = {name: _convert_to_loop(f) if isinstance(f, Function) else f for name, f in functions.items()}
    return with_functions(module, functions)


def has_tail_calls(module: Module) -> bool:
    """True if a function calls itself in tail position."""
    return any(isinstance(f, Function) and _convert_to_loop(f) is not f for f in module.functions.values())


def tail_call(block: Block) -> tuple[int, Call] | None:
    """The call whose result a block returns as it is, and its position; None if the block ends in another way."""
    end = block.terminator
    if not isinstance(end, Exit) or len(end.values) != 1:
        return None
    for position in range(len(block.bindings) - 1, -1, -1):
        binding = block.bindings[position]
        match binding.value:
            case Call(Global()) as call:
                target = binding.targets[0]
                return (position, call) if _is_whole(end.values[0], target, block.bindings[position + 1 :]) else None
            case Project() | MakeTuple():
                pass
            case _:
                return None
    return None


def _is_whole(value: Atom, whole: Var, bindings: tuple[Binding, ...]) -> bool:
    """True if projections and tuples make a value that is this whole again."""
    paths: dict[Atom, tuple[int, ...]] = {whole: ()}
    types: dict[tuple[int, ...], Type | None] = {(): whole.type}
    for binding in bindings:
        match binding.value:
            case Project(part, index) if part in paths:
                path = paths[binding.targets[0]] = (*paths[part], index)
                types[path] = binding.targets[0].type
            case MakeTuple(items) if items and all(i in paths and paths[i] for i in items):
                outer = paths[items[0]][:-1]
                type_ = types.get(outer)
                complete = isinstance(type_, TupleType) and len(type_.items) == len(items)
                if complete and all(paths[item] == (*outer, i) for i, item in enumerate(items)):
                    paths[binding.targets[0]] = outer
            case _:
                pass
    return paths.get(value) == ()


def replace_tail_calls(
    block: Block, function: Function, label: LoopLabel, step: Callable[[Call], Block | None]
) -> Block:
    """The block of a function in tail form, leaving the loop `label` instead of the function, or going on with `step`
    where it gives something for the call."""
    end = block.terminator
    if isinstance(end, Exit) and end.label is function.label:
        found = tail_call(block)
        following = None if found is None else step(found[1])
        if found is not None and following is not None:
            return Block((*block.bindings[: found[0]], *following.bindings), following.terminator)
        return Block(block.bindings, Exit(label, end.values, end.span))
    branch = tail_branch(block)
    if branch is None:
        return block
    changed = map_branch(branch, lambda b: replace_tail_calls(b, function, label, step))
    return Block((*block.bindings[:-1], Binding((), changed)), end)


def _convert_to_loop(function: Function) -> Function:
    label = LoopLabel(function.label.name)

    def step(call: Call) -> Block | None:
        assert isinstance(call.function, Global)
        return Block((), Next(label, call.arguments, call.span)) if call.function.name == function.name else None

    body = replace_tail_calls(function.body, function, label, step)
    ends = list(leaves(body))
    if not any(isinstance(leaf, Next) for leaf in ends) or not any(isinstance(leaf, Exit) for leaf in ends):
        return function
    parameters = tuple(Var(p.name, p.type, p.span) for p in function.parameters)
    result = Var("result", function.result, function.span)
    loop = Loop(label, function.parameters, parameters, body, None, function.span)
    block = Block((Binding((result,), loop),), Exit(function.label, (result,), function.span))
    return attrs.evolve(function, parameters=parameters, body=block)  # type: ignore[misc]
