"""Self calls in tail position as loops.

fn f(p) { ..; v = f(a); exit f, v; .. }    ->    fn f(p) { r = loop L (q = p) { ..; next L, a; .. }; exit f, r }
"""

from __future__ import annotations

from relay.ir.expr import Binding, Block, Call, Dead, Exit, Function, Global, If, Loop, LoopLabel, Match, Next, Var
from relay.ir.rebuild import map_blocks, substitute


def loops_for_tail_calls(function: Function) -> Function:
    """The function, without tail calls of itself. It is structured, so tail positions are outside of its loops."""
    if not _has_tail_call(function.body, function.name):
        return function
    label = LoopLabel(function.name)
    carried = tuple(Var(p.name, p.type, p.span) for p in function.parameters)
    body = substitute(function.body, dict(zip(function.parameters, carried, strict=True)))
    result = Var("result", function.result, function.span)
    loop = Loop(label, carried, function.parameters, _rounds(body, function, label), None, function.span)
    return Function(
        function.name,
        function.parameters,
        Block((Binding((result,), loop),), Exit(function.label, (result,), function.span)),
        function.label,
        function.result,
        function.signature,
        function.documentation,
        function.span,
    )


def _is_tail_call(block: Block, name: str) -> bool:
    if not block.bindings or not isinstance(block.terminator, Exit):
        return False
    last = block.bindings[-1]
    calls = (
        isinstance(last.value, Call) and isinstance(last.value.function, Global) and last.value.function.name == name
    )
    return calls and block.terminator.values == last.targets


def _tail_branches(block: Block) -> list[Block]:
    """The blocks of the If or Match that ends a block in tail position."""
    if block.bindings and isinstance(block.terminator, Dead):
        match block.bindings[-1].value:
            case If(arms, orelse):
                return [*(arm.body for arm in arms), orelse]
            case Match(_, match_arms):
                return [arm.body for arm in match_arms]
            case _:
                pass
    return []


def _has_tail_call(block: Block, name: str) -> bool:
    return _is_tail_call(block, name) or any(_has_tail_call(b, name) for b in _tail_branches(block))


def _rounds(block: Block, function: Function, label: LoopLabel) -> Block:
    """A block in tail position with `Next` for tail calls and the loop's `Exit` for the function's."""
    if _is_tail_call(block, function.name):
        call = block.bindings[-1].value
        assert isinstance(call, Call)
        return Block(block.bindings[:-1], Next(label, call.arguments, call.span))
    if isinstance(block.terminator, Exit):
        return Block(block.bindings, Exit(label, block.terminator.values, block.terminator.span))
    tails = _tail_branches(block)
    if not tails:
        return block
    last = block.bindings[-1]
    value = map_blocks(last.value, lambda b: _rounds(b, function, label) if any(b is t for t in tails) else b)
    return Block((*block.bindings[:-1], Binding(last.targets, value)), block.terminator)
