"""Failures of rounds as assertions, so that a branch whose other arm only fails is no branch.

v = if c then { assert false "text"; dead } else { b; yield a }
n = not c; assert n "text"; b; v = a
"""

from __future__ import annotations

from relay.ir.expr import Assert, Atom, Binding, Block, Constant, Dead, Expr, If, OpCall, Var, Yield
from relay.ir.rebuild import map_blocks
from relay.ir.traverse import walk
from relay.ir.types import BOOL, scalar


def has_failures(block: Block) -> bool:
    """True if a branch of a block, or inside of it, has an arm that only fails."""
    return any(isinstance(b.value, If) and _failing_arm(b.value) is not None for b in walk(block))


def with_assertions(block: Block) -> Block:
    """A block with assertions in place of arms that only fail."""
    bindings: list[Binding] = []
    for binding in block.bindings:
        value: Expr = map_blocks(binding.value, with_assertions)
        failing = _failing_arm(value) if isinstance(value, If) else None
        if failing is None:
            bindings.append(Binding(binding.targets, value))
            continue
        assert isinstance(value, If)
        condition, failure, other = failing
        bindings += value.arms[0].condition.bindings
        bindings += _assertion(condition, failure, holds=failure is _failure(value.orelse))
        bindings += other.bindings
        if not isinstance(other.terminator, Yield):  # it leaves what is around it, and nothing follows
            return Block(tuple(bindings), other.terminator)
        bindings += [Binding((t,), v) for t, v in zip(binding.targets, other.terminator.values, strict=True)]
    return Block(tuple(bindings), block.terminator)


def _failing_arm(value: If) -> tuple[Atom, Assert, Block] | None:
    """The condition of a branch, what one of its arms does, if it only fails, and the other arm."""
    test = value.arms[0].condition.terminator
    if len(value.arms) > 1 or not isinstance(test, Yield):
        return None
    then, orelse = value.arms[0].body, value.orelse
    for failing, other in ((then, orelse), (orelse, then)):
        failure = _failure(failing)
        if failure is not None:
            return test.values[0], failure, other
    return None


def _failure(block: Block) -> Assert | None:
    """The error of a block that does nothing else."""
    match block:
        case Block((Binding(_, Assert(Constant(number)) as failure),), Dead()) if not number:
            return failure
        case _:
            return None


def _assertion(condition: Atom, failure: Assert, holds: bool) -> list[Binding]:
    """The bindings that fail unless a condition holds, or does not."""
    if holds:
        return [Binding((), Assert(condition, failure.message, failure.span))]
    goes_on = Var("goes_on", scalar(BOOL), failure.span)
    call = OpCall("logical_not", (condition,), {}, failure.span)
    return [Binding((goes_on,), call), Binding((), Assert(goes_on, failure.message, failure.span))]
