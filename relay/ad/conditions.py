"""Conditions of arms. Their values are booleans without cotangents, so they have no backward part; but they may
read references, which become pairs, and write them.

    if a {..} elif (write r v; b) {..} else {..}      if a {..} else { write r v; if b {..} else {..} }
"""

from __future__ import annotations

from collections.abc import Callable

from relay.ad.scopes import Scope
from relay.ad.tapes import BlockReversal, Seeds, close
from relay.ir.expr import Arm, Binding, Block, Call, Dead, Function, Global, If, Match, RefWrite, Var, Yield
from relay.ir.rebuild import map_blocks
from relay.ir.traverse import operands, walk


def separate_conditions(block: Block, function: Callable[[str], Function]) -> Block:
    """The block with conditions that write no reference: their effects come before an `If` of their own."""
    if not any(isinstance(b.value, If) and _has_writing_condition(b.value, function) for b in walk(block)):
        return block
    bindings: list[Binding] = []
    for binding in block.bindings:
        value = binding.value
        inside = map_blocks(value, lambda b: separate_conditions(b, function))
        if isinstance(inside, If) and _has_writing_condition(inside, function):
            bindings += _split(Binding(binding.targets, inside), isinstance(block.terminator, Dead), function)
        else:
            bindings.append(Binding(binding.targets, inside))
    return Block(tuple(bindings), block.terminator)


def _split(binding: Binding, leaves: bool, function: Callable[[str], Function]) -> list[Binding]:
    chain = binding.value
    assert isinstance(chain, If)
    position = next(k for k, arm in enumerate(chain.arms) if _writes(arm.condition, function, set()))
    arm = chain.arms[position]
    rest = If(
        (Arm(Block((), arm.condition.terminator), arm.body), *chain.arms[position + 1 :]), chain.orelse, chain.span
    )
    targets = binding.targets if position == 0 else tuple(Var(t.name, t.type, t.span) for t in binding.targets)
    after = Binding(targets, rest)
    inner = [
        *arm.condition.bindings,
        *(_split(after, leaves, function) if _has_writing_condition(rest, function) else [after]),
    ]
    if position == 0:
        return inner
    end = Dead() if leaves and not targets else Yield(targets)
    return [Binding(binding.targets, If(chain.arms[:position], Block(tuple(inner), end), chain.span))]


def _has_writing_condition(chain: If, function: Callable[[str], Function]) -> bool:
    return any(_writes(arm.condition, function, set()) for arm in chain.arms)


def _writes(block: Block, function: Callable[[str], Function], seen: set[str]) -> bool:
    """True if a block writes a reference, itself or in a function that it calls."""
    for binding in walk(block):
        if isinstance(binding.value, RefWrite):
            return True
        if isinstance(binding.value, Call) and isinstance(binding.value.function, Global):
            name = binding.value.function.name
            if name not in seen:
                seen.add(name)
                if _writes(function(name).body, function, seen):
                    return True
    return False


def with_conditions(reversal: BlockReversal, expression: If | Match) -> If | Match:
    """The choice with the forward parts of its conditions: what they read through pairs is read as before."""
    if isinstance(expression, Match) or not reversal.paired:
        return expression
    arms = tuple(Arm(_condition(reversal, a.condition), a.body) for a in expression.arms)
    return If(arms, expression.orelse, expression.span)


def _condition(reversal: BlockReversal, block: Block) -> Block:
    if not any(a in reversal.paired for b in walk(block) for a in (*b.targets, *operands(b.value))):
        return block
    scope = Scope(reversal.cotangents, [t for b in block.bindings for t in b.targets], None)
    return close(reversal.block(block, scope, Seeds(yields=(None,))), lambda end, bindings, names: end)
