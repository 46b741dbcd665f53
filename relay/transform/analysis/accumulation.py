"""Accumulation: parameters of a loop to which its rounds only add something.

What is `p` plus something that does not depend on `p` may be added to, be carried by a loop inside, and be what all
arms of a branch yield; anything else that reads it ends that.
"""

from __future__ import annotations

from collections.abc import Sequence

from relay.ir.expr import Atom, Binding, Block, Exit, If, Loop, LoopLabel, Next, OpCall, Var
from relay.ir.traverse import all_blocks, blocks, bodies, operands, terminator_operands, walk, yields
from relay.operator import ADDITION


def accumulates(body: Block, parameter: Var, value: Atom) -> bool:
    """True if a value that a block ends with is a parameter plus something, and nothing else depends on it."""
    sums: set[Atom] = {parameter}
    return _adds_only(body, sums) and value in sums


def terminators(block: Block, label: LoopLabel) -> list[Next | Exit]:
    """The ends of rounds of a loop in a block of it."""
    found = [inner.terminator for inner in all_blocks(block)]
    return [t for t in found if isinstance(t, Next | Exit) and t.label is label]


def _adds_only(block: Block, sums: set[Atom]) -> bool:
    """True if the bindings of a block only add to `sums`, which gets what they make of them."""
    return all(_binding(binding, sums) for binding in block.bindings)


def _binding(binding: Binding, sums: set[Atom]) -> bool:
    value = binding.value
    used = [a for a in operands(value) if a in sums]
    match value:
        case OpCall() if used:
            target = binding.targets[0]
            if value.operator != ADDITION or len(used) != 1 or target.type != used[0].type:  # type: ignore[union-attr]
                return False
            sums.add(target)
            return True
        case Var() if used:
            sums.add(binding.targets[0])
            return True
        case Loop():
            return _loop(value, binding.targets, sums)
        case If():
            return _branch(value, binding.targets, sums)
        case _:
            return not used and not _reads(blocks(value), sums)


def _reads(parts: Sequence[Block], sums: set[Atom]) -> bool:
    """True if blocks mention any of the sums."""
    inside = [a for block in parts for b in walk(block) for a in operands(b.value)]
    ends = [a for block in parts for inner in all_blocks(block) for a in terminator_operands(inner.terminator)]
    return any(a in sums for a in (*inside, *ends))


def _loop(loop: Loop, targets: Sequence[Var], sums: set[Atom]) -> bool:
    carried = {n for n, initial in enumerate(loop.initial) if initial in sums}
    if loop.counter is not None and loop.counter.count in sums:
        return False
    sums.update(loop.parameters[n] for n in carried)
    if not _adds_only(loop.body, sums):
        return False
    ends = terminators(loop.body, loop.label)
    exits = [end for end in ends if isinstance(end, Exit)]
    for end in ends:
        if isinstance(end, Next) and any((a in sums) != (n in carried) for n, a in enumerate(end.values)):
            return False
    results = [end.values for end in exits] if loop.counter is None else [*(e.values for e in exits), loop.parameters]
    return _results(results, targets, sums)


def _branch(branch: If, targets: Sequence[Var], sums: set[Atom]) -> bool:
    if _reads([arm.condition for arm in branch.arms], sums):
        return False
    if not all(_adds_only(body, sums) for body in bodies(branch)):
        return False
    return _results(yields(branch), targets, sums)


def _results(ends: Sequence[Sequence[Atom]], targets: Sequence[Var], sums: set[Atom]) -> bool:
    """True if each result is a sum wherever it is made, or nowhere."""
    for number, target in enumerate(targets):
        found = {values[number] in sums for values in ends}
        if len(found) > 1:
            return False
        if True in found:
            sums.add(target)
    return True
