"""The form of loops that may end in any round, for compaction: what a round computes, and the places where it ends.

    round  r ::= bindings; next a, ..  |  bindings; exit a, ..  |  bindings; ending

An ending divides those that have come there: some leave the loop, with what a block gives them, and the others go on
with a round. A counted loop is brought to this form by a parameter that counts, and a branch of which one arm leaves
the loop by moving what follows it into the other arm.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import attrs
import numpy as np

from relay.ir.expr import (
    Arm,
    Atom,
    Binding,
    Block,
    Constant,
    Dead,
    Exit,
    Expr,
    If,
    Loop,
    LoopLabel,
    Next,
    OpCall,
    Var,
    Yield,
)
from relay.ir.traverse import all_blocks, bodies, free_variables, terminator_operands
from relay.ir.types import BOOL, BaseType, TensorType, scalar
from relay.operator import Emitter
from relay.transform.aggregates.flat_types import undef
from relay.transform.loops.rounds import Unsupported


@attrs.frozen(eq=False)
class LoopExit:
    """Examples for which `condition` is `leaves` leave the loop with what the block yields; the others go on."""

    condition: Atom
    leaves: bool
    leaving: Block
    rest: LoopRound


@attrs.frozen(eq=False)
class LoopRound:
    """A round, or what is left of one: bindings, and how it ends."""

    bindings: tuple[Binding, ...]
    end: Next | Exit | LoopExit


_NESTED = "a loop inside is left from a branch inside of a branch"

Parameters: TypeAlias = "tuple[tuple[Var, ...], tuple[Atom, ...]]"


def round_of(loop: Loop, targets: Sequence[Var]) -> tuple[Parameters, LoopRound]:
    """The parameters of a loop with their initial values, and its round. Raises Unsupported where a round is not of
    this form."""
    if loop.counter is None:
        return (loop.parameters, loop.initial), _Rounds(loop.label, loop.parameters, targets).round(loop.body)
    index, count = loop.counter.index, loop.counter.count
    assert isinstance(index.type, TensorType) and isinstance(index.type.base, BaseType)
    condition = Var("goes_on", scalar(BOOL), loop.span)
    body = _counting(loop.body, loop.label, index)
    over = Block((), Exit(loop.label, loop.parameters, loop.span))
    test = Binding((condition,), OpCall("less", (index, count), {}, loop.span))
    branch = Binding((), If((Arm(Block((), Yield((condition,))), body),), over, loop.span))
    parameters = (index, *loop.parameters)
    zero = Constant(np.zeros((), index.type.base.dtype), loop.span)
    made = _Rounds(loop.label, parameters, targets).round(Block((test, branch), Dead()))
    return (parameters, (zero, *loop.initial)), made


def variables_of(body: LoopRound) -> list[Var]:
    """The variables that what is left of a round reads."""
    found: dict[Var, None] = {}
    left: LoopRound | None = body
    while left is not None:
        end, rest = left.end, None
        if isinstance(end, LoopExit):
            values: tuple[Atom, ...] = (end.condition,)
            found.update(free_variables(end.leaving))
            rest = end.rest
        else:
            values = end.values
        found.update(free_variables(Block(left.bindings, Yield(values))))
        left = rest
    return list(found)


def _counting(block: Block, label: LoopLabel, index: Var) -> Block:
    """A block whose next rounds have the next number."""
    bindings = []
    for binding in block.bindings:
        value: Expr = binding.value
        if isinstance(value, If) and _leaves(value, label):
            arms = tuple(Arm(a.condition, _counting(a.body, label, index)) for a in value.arms)
            value = If(arms, _counting(value.orelse, label, index), value.span)
        bindings.append(Binding(binding.targets, value))
    end = block.terminator
    if isinstance(end, Next) and end.label is label:
        base = index.type.base  # type: ignore[union-attr]
        more = Var(index.name, index.type, end.span)
        one = Constant(np.ones((), base.dtype), end.span)  # type: ignore[union-attr]
        bindings.append(Binding((more,), OpCall("add", (index, one), {}, end.span)))
        end = Next(label, (more, *end.values), end.span)
    return Block(tuple(bindings), end)


def _leaves(value: Expr, label: LoopLabel) -> bool:
    """True if a branch starts the next round or ends the loop."""
    return isinstance(value, If) and any(_ends(block, label) for block in bodies(value))


def _ends(block: Block, label: LoopLabel, kind: type[Next] | type[Exit] | None = None) -> bool:
    """True if a block starts the next round or ends the loop somewhere; only in one of these ways, if a kind is
    given."""
    ends = (b.terminator for b in all_blocks(block))
    return any(isinstance(e, kind or (Next, Exit)) and e.label is label for e in ends)


class _Rounds:
    """The rounds of one loop."""

    def __init__(self, label: LoopLabel, parameters: Sequence[Var], targets: Sequence[Var]) -> None:
        self.label, self.parameters, self.targets = label, parameters, targets

    def round(self, block: Block) -> LoopRound:
        """A block that ends in one of the ways of a round."""
        bindings, end = block.bindings, block.terminator
        found = next((n for n, b in enumerate(bindings) if _leaves(b.value, self.label)), None)
        if found is None:
            if not isinstance(end, Next | Exit):
                raise Unsupported(_NESTED)
            return LoopRound(bindings, end)
        before, condition, then, orelse = self._arms(block, found)
        exits = [not _ends(arm, self.label, Next) for arm in (then, orelse)]
        if all(exits):
            values = tuple(Var(t.name, t.type, t.span) for t in self.targets)
            made = Binding(values, self._choice(condition, then, orelse, Exit))
            return LoopRound((*before, made), Exit(self.label, values))
        if exits[0]:
            return LoopRound(before, LoopExit(condition, True, self._values(then, Exit), self.round(orelse)))
        if exits[1]:
            return LoopRound(before, LoopExit(condition, False, self._values(orelse, Exit), self.round(then)))
        if not any(_ends(arm, self.label, Exit) for arm in (then, orelse)):
            values = tuple(Var(p.name, p.type, p.span) for p in self.parameters)
            made = Binding(values, self._choice(condition, then, orelse, Next))
            return LoopRound((*before, made), Next(self.label, values))
        return self._divided(before, condition, then, orelse)

    def _divided(self, before: tuple[Binding, ...], condition: Atom, then: Block, orelse: Block) -> LoopRound:
        """A round whose branch may go on or end in both arms: the arms find which, and the values for both ends."""
        leaves = Var("leaves", scalar(BOOL))
        passed = tuple(Var(p.name, p.type, p.span) for p in self.parameters)
        results = tuple(Var(t.name, t.type, t.span) for t in self.targets)
        made = self._marked_branch(condition, then, orelse)
        over = LoopExit(leaves, True, Block((), Yield(results)), LoopRound((), Next(self.label, passed)))
        return LoopRound((*before, Binding((leaves, *passed, *results), made)), over)

    def _marked_branch(self, condition: Atom, then: Block, orelse: Block) -> If:
        return If((Arm(Block((), Yield((condition,))), self._marked(then)),), self._marked(orelse))

    def _marked(self, block: Block) -> Block:
        """A block that yields whether it leaves the loop, the values of the next round, and those of the end, of which
        one or the other are never read."""
        found = next((n for n, b in enumerate(block.bindings) if _leaves(b.value, self.label)), None)
        if found is not None:
            before, condition, then, orelse = self._arms(block, found)
            values = tuple(Var(v.name, v.type, v.span) for v in (*self.parameters, *self.targets))
            leaves = Var("leaves", scalar(BOOL))
            inner = Binding((leaves, *values), self._marked_branch(condition, then, orelse))
            return Block((*before, inner), Yield((leaves, *values)))
        end = block.terminator
        if not isinstance(end, Next | Exit):
            raise Unsupported(_NESTED)
        emitter = Emitter(end.span)
        unread = [_unread(emitter, v) for v in (self.targets if isinstance(end, Next) else self.parameters)]
        both: list[Atom] = [*end.values, *unread] if isinstance(end, Next) else [*unread, *end.values]
        flag = Constant(np.asarray(isinstance(end, Exit)), end.span)
        return Block((*block.bindings, *emitter.bindings), Yield((flag, *both)))

    def _arms(self, block: Block, place: int) -> tuple[tuple[Binding, ...], Atom, Block, Block]:
        """The bindings before the branch at a place, its condition, and its two arms, with what follows it."""
        targets, branch, rest = block.bindings[place].targets, block.bindings[place].value, block.bindings[place + 1 :]
        assert isinstance(branch, If)
        first, *others = branch.arms
        test = first.condition.terminator
        if not isinstance(test, Yield):
            raise Unsupported("a loop inside is left from a condition")
        orelse = branch.orelse
        if others:  # the other arms as a branch of their own
            bodies = [*(arm.body for arm in others), branch.orelse]
            yields = any(isinstance(body.terminator, Yield) for body in bodies)
            values = tuple(Var(t.name, t.type, t.span) for t in targets)
            inner = Binding(values, If(tuple(others), branch.orelse, branch.span))
            orelse = Block((inner,), Yield(values) if yields else Dead())
        arms = [first.body, orelse]
        following = [number for number, arm in enumerate(arms) if isinstance(arm.terminator, Yield)]
        if len(following) > 1:
            raise Unsupported(_NESTED)
        for number in following:
            named = zip(targets, terminator_operands(arms[number].terminator), strict=True)
            moved = (*arms[number].bindings, *(Binding((t,), v) for t, v in named), *rest)
            arms[number] = Block(moved, block.terminator)
        before = (*block.bindings[:place], *first.condition.bindings)
        return before, test.values[0], arms[0], arms[1]

    def _choice(self, condition: Atom, then: Block, orelse: Block, kind: type[Next] | type[Exit]) -> If:
        """The branch with the values of both arms' ends."""
        arm = Arm(Block((), Yield((condition,))), self._values(then, kind))
        return If((arm,), self._values(orelse, kind))

    def _values(self, block: Block, kind: type[Next] | type[Exit]) -> Block:
        """A block all of whose ends are of one kind, which yields what they pass on."""
        found = next((n for n, b in enumerate(block.bindings) if _leaves(b.value, self.label)), None)
        if found is None:
            if not isinstance(block.terminator, kind):
                raise Unsupported(_NESTED)
            return Block(block.bindings, Yield(tuple(terminator_operands(block.terminator))))
        before, condition, then, orelse = self._arms(block, found)
        like = self.targets if kind is Exit else self.parameters
        values = tuple(Var(v.name, v.type, v.span) for v in like)
        return Block((*before, Binding(values, self._choice(condition, then, orelse, kind))), Yield(values))


def _unread(emitter: Emitter, variable: Var) -> Atom:
    if not isinstance(variable.type, TensorType):
        raise Unsupported(_NESTED)
    return undef(emitter, variable.type)
