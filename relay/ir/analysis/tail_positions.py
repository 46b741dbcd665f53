"""Tail positions: blocks in tail form and the leaves in which they end.

A block is in tail form if it ends in an Exit or a Next, or in a branch (an If or Match without targets) and Dead, where
the branch's arms are in tail form again. Its leaves are these Exits and Nexts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

from relay.errors import InternalError
from relay.ir.expr import Binding, Block, Dead, Exit, If, LoopLabel, Match, Next, Var, Yield
from relay.ir.rebuild import map_branch
from relay.ir.traverse import Branch, bodies

Leaf: TypeAlias = Exit | Next


def tail_branch(block: Block) -> Branch | None:
    """The branch that a block in tail form ends with, if it does."""
    if isinstance(block.terminator, Dead) and block.bindings:
        last = block.bindings[-1]
        if isinstance(last.value, If | Match) and not last.targets:
            return last.value
    return None


def leaves(part: Block | Branch) -> Iterator[Leaf]:
    """The leaves of a block in tail form, or of a branch of such blocks, in order."""
    pending = [part] if isinstance(part, Block) else bodies(part)[::-1]
    while pending:
        block = pending.pop()
        if isinstance(block.terminator, Exit | Next):
            yield block.terminator
        branch = tail_branch(block)
        if branch is not None:
            pending += bodies(branch)[::-1]


def replace_leaves(block: Block, change: Callable[[Leaf], Block]) -> Block:
    """The block in tail form with each leaf replaced by a block in tail form."""
    if isinstance(block.terminator, Exit | Next):
        end = change(block.terminator)
        return end if not block.bindings else Block((*block.bindings, *end.bindings), end.terminator)
    branch = tail_branch(block)
    if branch is None:
        return block
    changed = map_branch(branch, lambda b: replace_leaves(b, change))
    return Block((*block.bindings[:-1], Binding((), changed)), block.terminator)


def with_yields(branch: Branch, join: LoopLabel, targets: tuple[Var, ...]) -> Branch:
    """The branch, all of whose leaves lead to `join`, with their values yielded to `targets`.

    Branches inside it get fresh targets like these.
    """
    return map_branch(branch, lambda b: yielding_block(b, join, targets))


def yielding_block(block: Block, join: LoopLabel, targets: tuple[Var, ...]) -> Block:
    """A block in tail form, all of whose leaves lead to `join`, as one that yields."""
    if isinstance(block.terminator, Exit) and block.terminator.label is join:
        return Block(block.bindings, Yield(block.terminator.values, block.terminator.span))
    branch = tail_branch(block)
    if branch is None:
        if isinstance(block.terminator, Dead):
            return block
        raise InternalError("a leaf of a branch leads elsewhere")
    inner = tuple(Var(t.name, t.type, t.span) for t in targets)
    return Block((*block.bindings[:-1], Binding(inner, with_yields(branch, join, inner))), Yield(inner))
