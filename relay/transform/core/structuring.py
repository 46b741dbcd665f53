"""The structured form: no exit crosses a loop, and arms leave in tail position only.

Escaping arms keep a program flat for its reader and for elaboration; differentiation and code generation want to know
where control goes. Here every If, Match and Loop is a *join*, its `Yield`s or `Exit`s are leaves that lead to it, and
all other leaves inside it are foreign. With `rest` for what follows in the block:

    no leaf leads to the join           the branch ends the block, rest is dropped
    all lead to it                      an ordinary branch with targets
    one does, others are foreign        the branch ends the block; rest moves into that leaf
    several do, others are foreign      d = branch yielding a data type `Way`; match d { Done(targets) -> rest, .. }
    a loop has foreign leaves           it exits with a `Way`, or carries one if it is counted; match after it
    a loop without `Next`               no loop: its exits are the leaves of its body

An `if` that starts a moved rest and needs nothing else of it becomes an `elif`, and nesting deeper than `CUT` is cut by
a further `Way`, so that a thousand early returns in a row do not nest a thousand deep.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

import attrs

from relay.errors import InternalError
from relay.ir.analysis.tail_positions import Leaf, leaves, replace_leaves, with_yields
from relay.ir.expr import (
    Arm,
    Atom,
    Attempt,
    Binding,
    Block,
    Constant,
    Dead,
    Exit,
    Extent,
    Function,
    If,
    Loop,
    LoopLabel,
    MakeTuple,
    Match,
    MatchArm,
    Module,
    Next,
    OpCall,
    Project,
    StackGet,
    StackLength,
    Static,
    Terminator,
    Var,
    Yield,
)
from relay.ir.rebuild import copy_expression, map_branch, map_terminator
from relay.ir.traverse import (
    Branch,
    all_blocks,
    blocks,
    bound_variables,
    free_variables,
    operands,
    terminator_operands,
    walk,
)
from relay.ir.types import DataDefinition
from relay.transform.core.error_exits import catch_errors
from relay.transform.core.exits import ReifiedExits, variable_types
from relay.transform.core.rebuilding import map_bodies, with_functions
from relay.transform.module_pass import module_pass

CUT = 64
"""The number of branches that may nest in each other's rest."""

MOVABLE = (Var, Constant, OpCall, MakeTuple, Project, StackGet, StackLength, Extent)
"""The expressions that may stay in a condition instead of moving before it: none that calls, branches or has
effects."""


@module_pass
def structure(module: Module) -> Module:
    """The module in structured form, in which nothing catches errors. New data types are in `Module.data`."""
    if any(
        isinstance(b.value, Attempt) for f in module.functions.values() if isinstance(f, Function) for b in walk(f.body)
    ):
        module = catch_errors(module)
    names = {d.name for d in module.data}
    data: list[DataDefinition] = []

    def change(function: Function) -> Block:
        structurer = _Structurer(function, names, data)
        return structurer.tail(function.body, None)

    changed = map_bodies(module, change)
    return with_functions(changed, changed.functions, data)


@attrs.frozen(eq=False)
class _PendingBranch:
    """A branch whose one leaf to `join` is still to be filled with the rest of the block."""

    before: list[Binding]
    branch: Branch
    join: LoopLabel


class _Structurer:
    def __init__(self, function: Function, names: set[str], data: list[DataDefinition]) -> None:
        self.ways = ReifiedExits(function, names, data)
        self.repeated = {b.terminator.label for b in all_blocks(function.body) if isinstance(b.terminator, Next)}
        self.uses: dict[Var, int] = {}
        for block in all_blocks(function.body):
            _count(self.uses, block)

    def tail(self, block: Block, own: LoopLabel | None) -> Block:
        """The block in tail form. A `Yield` becomes an Exit to `own`."""
        levels: list[_PendingBranch] = []
        out: list[Binding] = []
        pending = list(reversed(block.bindings))
        end = _leaf(block.terminator, own)
        while pending:
            binding = pending.pop()
            targets, value = binding.targets, binding.value
            branch: Branch
            match value:
                case If():
                    split = _split_conditions(value, targets)
                    if split is not None:
                        pending += reversed(split)
                        continue
                    join = LoopLabel("if")
                    branch = self._branch(value, join)
                case Match():
                    join = LoopLabel("match")
                    branch = self._branch(value, join)
                case Loop(label, parameters, initial, body, None) if label not in self.repeated:
                    join = label
                    out += [Binding((p,), a) for p, a in zip(parameters, initial, strict=True)]
                    self.ways.types[False, label] = variable_types(targets)
                    once = self.tail(body, None)
                    if not isinstance(once.terminator, Dead):
                        out += once.bindings
                        assert not isinstance(once.terminator, Yield)
                        if once.terminator.label is not join:
                            return self._close(levels, out, once.terminator)
                        out += _aliases(targets, once.terminator.values)
                        continue
                    last = once.bindings[-1].value
                    out += once.bindings[:-1]
                    if not isinstance(last, If | Match):
                        return self._close(levels, [*out, once.bindings[-1]], Dead())
                    branch = last
                case Loop():
                    join = LoopLabel("loop")
                    self.ways.types[False, value.label] = variable_types(targets)
                    self.ways.types[True, value.label] = variable_types(value.parameters)
                    after = self.ways.loop(value, self.tail(value.body, None), targets, join, out)
                    if after is None:
                        continue
                    if not isinstance(after, If | Match):
                        return self._close(levels, out, after)
                    branch, targets = after, ()
                case _:
                    out.append(binding)
                    continue
            if isinstance(branch, If):
                branch, out = self._peel(branch, join, levels, out)
            own_leaves = [leaf for leaf in leaves(branch) if leaf.label is join]
            foreign = any(leaf.label is not join for leaf in leaves(branch))
            if not own_leaves:
                out.append(Binding((), branch))
                return self._close(levels, out, Dead())
            if not foreign:
                out.append(Binding(targets, with_yields(branch, join, targets)))
            elif len(own_leaves) == 1:
                levels.append(_PendingBranch(out, branch, join))
                out = _aliases(targets, own_leaves[0].values)
            elif not pending and not isinstance(end, Dead):
                out.append(Binding((), _end_leaves(branch, join, targets, end)))
                return self._close(levels, out, Dead())
            else:
                before, matching = self.ways.gather(branch, join, targets)
                levels.append(_PendingBranch([*out, *before], matching, join))
                out = []
        return self._close(levels, out, end)

    def _branch(self, branch: Branch, join: LoopLabel) -> Branch:
        if isinstance(branch, Match):
            return Match(
                branch.value,
                tuple(MatchArm(a.constructor, a.fields, self.tail(a.body, join)) for a in branch.arms),
                branch.span,
            )
        arms = tuple(Arm(self._condition(a.condition), self.tail(a.body, join)) for a in branch.arms)
        return If(arms, self.tail(branch.orelse, join), branch.span)

    def _condition(self, block: Block) -> Block:
        if not any(True for b in block.bindings for _ in blocks(b.value)):
            return block
        join = LoopLabel("condition")
        made = self.tail(block, join)
        if isinstance(made.terminator, Exit):
            return Block(made.bindings, Yield(made.terminator.values))
        # An escaping condition has been split off before, so every leaf leads here.
        branch = made.bindings[-1].value
        assert isinstance(branch, If | Match)
        first = next(leaves(branch)).values[0]
        holds = Var("holds", None if isinstance(first, Static) else first.type)
        return Block((*made.bindings[:-1], Binding((holds,), with_yields(branch, join, (holds,)))), Yield((holds,)))

    def _peel(
        self, branch: If, join: LoopLabel, levels: list[_PendingBranch], out: list[Binding]
    ) -> tuple[Branch, list[Binding]]:
        """Arms at the front that only lead elsewhere become a branch of their own, if several of the others lead on."""
        count = 0
        for arm in branch.arms:
            if any(leaf.label is join for leaf in leaves(arm.body)):
                break
            count += 1
        if count == 0 or sum(1 for leaf in leaves(branch) if leaf.label is join) < 2:
            return branch, out
        if count == len(branch.arms):
            orelse = branch.orelse
            last = orelse.bindings[-1].value
            assert isinstance(last, If | Match)
            peeled = LoopLabel("else")
            levels.append(_PendingBranch(out, If(branch.arms, Block((), Exit(peeled, ())), branch.span), peeled))
            return last, list(orelse.bindings[:-1])
        peeled = LoopLabel("elif")
        levels.append(_PendingBranch(out, If(branch.arms[:count], Block((), Exit(peeled, ())), branch.span), peeled))
        return If(branch.arms[count:], branch.orelse, branch.span), []

    # ---- putting blocks together again

    def _close(self, levels: list[_PendingBranch], out: list[Binding], end: Terminator) -> Block:
        """Fill each level's open leaf with what follows it, innermost first."""
        block = Block(tuple(out), end)
        depth = 0
        rests: list[tuple[LoopLabel, Block]] = []
        while levels:
            level = levels.pop()
            merged = self._elif(level, block)
            depth = depth if merged is not None else depth + 1
            branch = merged if merged is not None else _fill(level, block)
            block = Block((*level.before, Binding((), branch)), Dead())
            if depth == CUT and levels:
                cut = LoopLabel("cut")
                rests.append((cut, block))
                block, depth = Block((), Exit(cut, ())), 0
        for number, (cut, rest) in enumerate(rests):
            if number + 1 < len(rests):
                outer, chunk = rests[number + 1]
                rests[number + 1] = (outer, self._append_rest(chunk, cut, rest))
            else:
                block = self._append_rest(block, cut, rest)
        return block

    def _elif(self, level: _PendingBranch, rest: Block) -> If | None:
        """The level's If with a rest that is an If as further arms, if only these need the bindings before it."""
        if not isinstance(level.branch, If) or not isinstance(rest.terminator, Dead):
            return None
        orelse = level.branch.orelse
        inner = rest.bindings[-1].value
        if orelse.bindings or not isinstance(orelse.terminator, Exit) or orelse.terminator.label is not level.join:
            return None
        if not isinstance(inner, If):
            return None
        condition = inner.arms[0].condition
        moved = Block((*rest.bindings[:-1], *condition.bindings), condition.terminator)
        uses: dict[Var, int] = {}
        for block in all_blocks(moved):
            _count(uses, block)
        for binding in rest.bindings[:-1]:
            if not isinstance(binding.value, MOVABLE):
                return None
            if any(uses.get(target, 0) != self.uses.get(target, 0) for target in binding.targets):
                return None
        arms = (*level.branch.arms, Arm(moved, inner.arms[0].body), *inner.arms[1:])
        return If(arms, inner.orelse, level.branch.span)

    def _append_rest(self, block: Block, cut: LoopLabel, rest: Block) -> Block:
        """`block`, whose one leaf to `cut` is followed by `rest`, without nesting `rest` in it."""
        branch = block.bindings[-1].value
        assert isinstance(branch, If | Match)
        bound_inside = set(bound_variables(branch))
        for binding in (b for body in blocks(branch) for b in walk(body)):
            bound_inside.update((*binding.targets, *bound_variables(binding.value)))
        live = tuple(v for v in free_variables(rest) if v in bound_inside)

        def pass_on(leaf: Leaf) -> Block:
            return Block((), Exit(cut, live) if leaf.label is cut else leaf)

        # The variables themselves become the fields that rest sees; the branch gets fresh ones.
        chunk = copy_expression(map_branch(branch, lambda b: replace_leaves(b, pass_on)))
        assert isinstance(chunk, If | Match)
        before, matching = self.ways.gather(chunk, cut, live)
        filled = _fill(_PendingBranch([], matching, cut), rest)
        return Block((*block.bindings[:-1], *before, Binding((), filled)), Dead())


def _count(uses: dict[Var, int], block: Block) -> None:
    for binding in block.bindings:
        for atom in operands(binding.value):
            if isinstance(atom, Var):
                uses[atom] = uses.get(atom, 0) + 1
    for atom in terminator_operands(block.terminator):
        if isinstance(atom, Var):
            uses[atom] = uses.get(atom, 0) + 1


def _leaf(terminator: Terminator, own: LoopLabel | None) -> Exit | Next | Dead:
    match terminator:
        case Yield(values, span):
            if own is None:
                raise InternalError("a yield outside of a branch")
            return Exit(own, values, span)
        case Exit() | Next() | Dead():
            return terminator
        case _:
            assert_never(terminator)


def _aliases(targets: tuple[Var, ...], values: tuple[Atom, ...]) -> list[Binding]:
    return [Binding((t,), v) for t, v in zip(targets, values, strict=True)]


def _fill(level: _PendingBranch, rest: Block) -> Branch:
    def fill(leaf: Leaf) -> Block:
        return rest if leaf.label is level.join else Block((), leaf)

    return map_branch(level.branch, lambda b: replace_leaves(b, fill))


def _end_leaves(branch: Branch, join: LoopLabel, targets: tuple[Var, ...], end: Leaf) -> Branch:
    """The branch with `end` in place of the leaves to `join`, reading the leaf's values for the targets."""

    def fill(leaf: Leaf) -> Block:
        if leaf.label is not join:
            return Block((), leaf)
        values: dict[Atom, Atom] = dict(zip(targets, leaf.values, strict=True))
        return Block((), map_terminator(end, lambda a: values.get(a, a)))

    return map_branch(branch, lambda b: replace_leaves(b, fill))


def _split_conditions(branch: If, targets: tuple[Var, ...]) -> list[Binding] | None:
    """An If with an escaping condition as bindings in which the condition comes before an If; None if there is none.
    None if it has none."""
    for position, arm in enumerate(branch.arms):
        if not any(True for b in arm.condition.bindings for _ in blocks(b.value)) or not _escapes(arm.condition):
            continue
        condition = arm.condition
        inner = tuple(Var(t.name, t.type, t.span) for t in targets) if position else targets
        arms = (Arm(Block((), condition.terminator), arm.body), *branch.arms[position + 1 :])
        split = [*condition.bindings, Binding(inner, If(arms, branch.orelse, branch.span))]
        if isinstance(condition.terminator, Dead):
            split = list(condition.bindings)
        if position == 0:
            return split
        end: Terminator = Dead() if isinstance(condition.terminator, Dead) else Yield(inner)
        return [Binding(targets, If(branch.arms[:position], Block(tuple(split), end), branch.span))]
    return None


def _escapes(block: Block) -> bool:
    """True if a block of a condition leads somewhere else than to its own value."""
    inside = {b.value.label for b in walk(block) if isinstance(b.value, Loop)}
    ends: Iterator[Terminator] = (b.terminator for b in all_blocks(block))
    return any(isinstance(t, Exit | Next) and t.label not in inside for t in ends)
