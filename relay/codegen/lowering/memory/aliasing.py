"""Alias analysis: the variables of a function that share memory, so that operators update arrays in place.

Some operators' results differ from an operand in a part only (`Operator.in_place`). Their code copies the operand to
the result's memory, unless it is there already, and writes that part. Here the result y of such a call `y = op(x, ..)`
and x become one, and so do variables of a loop or branch that take each other's values, as far as no variable would be
overwritten that is still needed. It is the coalescing of register allocation:

    v, w interfere    if v is written while w is live, unless v gets w's value there
    classes           the variables that in-place calls and moves connect, merged where no two members interfere

The written v is `y` above, the target of another call (which still reads its operands), a loop's parameter at the
loop's begin and at `Next`, and the targets of a construct at `Yield` and `Exit`. Only arrays whose memory is the
function's own take part: no parameters of the function, constants, or what lies in a pool. A tuple that holds an array
is a view of it: while it is live, so is the array.

A call that can be in place runs after the other reads of its operand, if its result is not needed earlier.

Inside of loops, large arrays that a kernel computes element by element of an operand, as the sums `s = s + x @ y` that
a loop carries, share the operand's memory, too, which saves a copy in each round.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias, assert_never

import attrs

from relay.codegen.lowering.memory.replaced_operands import replaced_operands
from relay.codegen.tvm import tir
from relay.ir.dims import ANY, product
from relay.ir.expr import (
    Ascribe,
    Atom,
    Binding,
    Block,
    Call,
    Constant,
    Construct,
    Dead,
    Exit,
    Function,
    Global,
    If,
    Loop,
    LoopLabel,
    MakeTuple,
    Match,
    Next,
    OpCall,
    Project,
    Static,
    Var,
    Yield,
)
from relay.ir.traverse import all_blocks, blocks, free_variables, operands, terminator_operands, walk
from relay.ir.types import BaseType, TensorType
from relay.transform.fusion.fusion_groups import FusionGroup, in_place_operands, plan

Order: TypeAlias = "list[tuple[int, FusionGroup | None]]"


@attrs.frozen(eq=False)
class MemorySharing:
    """`home` gives each variable that shares memory its class's representative. `order` is the order in which each
    block's bindings run: their positions, with the group that runs there for an operator call."""

    home: Mapping[Var, Var]
    order: Mapping[Block, Order]


def share(function: Function) -> MemorySharing:
    """The plan for a structured first-order function."""
    views = _views(function)
    order = {block: _order(block, views) for block in all_blocks(function.body)}
    moves = _SavedCopies(views, order)
    moves.block(function.body, (), 0)
    if not moves.updated:
        return MemorySharing({}, order)
    interference = _Interference(views, order, moves.in_place_component())
    interference.block(function.body, (), frozenset())
    return MemorySharing(_classes(moves, interference, views), order)


# ---- variables and what they stand for


@attrs.frozen(eq=False)
class _MemoryViews:
    """For each variable the arrays (nodes) whose memory contains its value; a separate array has itself, or the loop
    parameter whose result it is."""

    roots: dict[Var, frozenset[Var]]
    node: dict[Var, Var]

    def root_arrays(self, atoms: Iterable[Atom]) -> frozenset[Var]:
        return frozenset[Var]().union(*(self.roots.get(a, ()) for a in atoms if isinstance(a, Var)))

    def nodes(self, atoms: Iterable[Atom]) -> list[Var | None]:
        """The nodes that atoms are themselves; None for others."""
        return [self.node.get(a) if isinstance(a, Var) else None for a in atoms]

    def sources(self, group: FusionGroup) -> list[Var]:
        """The large operands in whose memory a group's result can be computed."""
        return replaced_operands(group, self.node, self.root_arrays)


def _views(function: Function) -> _MemoryViews:
    views = _MemoryViews({}, {})

    def own_memory(variables: Iterable[Var], nodes: Iterable[Var]) -> None:
        for variable, node in zip(variables, nodes, strict=True):
            if _is_array(variable):
                views.node[variable] = node
                views.roots[variable] = frozenset((node,))

    for binding in walk(function.body):
        match binding.value:
            case Loop(_, parameters) as loop:
                own_memory(parameters, parameters)
                own_memory(binding.targets, parameters if is_merged(loop) else binding.targets)
            case OpCall() | Call() | If():
                own_memory(binding.targets, binding.targets)
            case Match(value, arms):
                own_memory(binding.targets, binding.targets)
                views.roots.update((field, views.root_arrays((value,))) for arm in arms for field in arm.fields)
            case Ascribe() if _is_array(binding.targets[0]):
                views.roots[binding.targets[0]] = views.root_arrays(operands(binding.value))
            case Var() | MakeTuple() | Project() | Construct() as value:
                views.roots[binding.targets[0]] = views.root_arrays(operands(value))
            case _:
                pass
    return views


def _is_array(variable: Var) -> bool:
    """True if a variable is held in a buffer."""
    type_ = variable.type
    if not isinstance(type_, TensorType) or not isinstance(type_.base, BaseType):
        return False
    if ANY in type_.shape:
        return False  # words that say where it is
    elements = product(type_.shape)
    return elements != 0 and not tir.by_value(type_.base, elements)


def is_merged(loop: Loop) -> bool:
    """True if a loop's results are in the places of its parameters: it ends when its counter does, and only then."""
    return loop.counter is not None and not has_exits(loop)


def has_exits(loop: Loop) -> bool:
    """True if an `Exit` leaves a loop."""
    return any(isinstance(b.terminator, Exit) and b.terminator.label is loop.label for b in all_blocks(loop.body))


# ---- the order of a block


def _order(block: Block, views: _MemoryViews) -> Order:
    groups = plan(block)
    steps: dict[int, FusionGroup | None] = {}
    for position, binding in enumerate(block.bindings):
        if position in groups or not isinstance(binding.value, OpCall):
            steps[position] = groups.get(position)
    updates = [p for p, g in steps.items() if g is not None and in_place_operands(g.bindings[-1])]
    key: dict[int, tuple[int, ...]] = {position: (position,) for position in steps}
    if updates:
        readers: dict[Var, list[int]] = {}
        for position, group in steps.items():
            for variable in _read_variables(group.bindings if group else (block.bindings[position],)):
                for root in {variable, *views.root_arrays((variable,))}:
                    readers.setdefault(root, []).append(position)
        ending = terminator_operands(block.terminator)
        at_end = {*(a for a in ending if isinstance(a, Var)), *views.root_arrays(ending)}
        for position in reversed(updates):
            binding = block.bindings[position]
            (old,) = in_place_operands(binding)
            (node,) = views.nodes((old,))
            after = [p for p in readers.get(node, ()) if p != position and key[p] > key[position]] if node else []
            if not after or node in at_end:
                continue
            last = max(after, key=lambda p: key[p])
            if all(key[p] > key[last] for p in readers.get(binding.targets[0], ()) if p != position):
                key[position] = (*key[last], position)
    return [(position, steps[position]) for position in sorted(steps, key=lambda p: key[p])]


def _read_variables(bindings: Sequence[Binding]) -> set[Var]:
    """The variables that bindings read, also in their blocks."""
    found = {a for binding in bindings for a in operands(binding.value) if isinstance(a, Var)}
    for binding in bindings:
        for inner in blocks(binding.value):
            found.update(free_variables(inner))
    return found


# ---- what would like to share


class _SavedCopies:
    """The pairs of nodes that would save a copy by sharing memory, with the depth of loops around. `updated`: those
    that calls change, or compute element by element."""

    def __init__(self, views: _MemoryViews, order: Mapping[Block, Order]) -> None:
        self.views, self.order = views, order
        self.pairs: list[tuple[int, bool, Var, Var]] = []
        self.updated: set[Var] = set()
        self._exits: dict[LoopLabel, tuple[Var, ...]] = {}
        self._rounds: dict[LoopLabel, tuple[Var, ...]] = {}

    def block(self, block: Block, targets: Sequence[Var], depth: int) -> None:
        for _, group in self.order[block] if depth else ():
            if group is not None:
                for operand in self.views.sources(group):
                    self._add(depth, False, group.outputs, (operand,), updates=True)
        for binding in block.bindings:
            value = binding.value
            match value:
                case OpCall():
                    self._add(depth, True, binding.targets, in_place_operands(binding), updates=True)
                case If(arms, orelse):
                    for arm in arms:
                        self.block(arm.condition, (), depth)
                        self.block(arm.body, binding.targets, depth)
                    self.block(orelse, binding.targets, depth)
                case Match(_, match_arms):
                    for match_arm in match_arms:
                        self.block(match_arm.body, binding.targets, depth)
                case Loop(label, parameters, initial, body):
                    self._add(depth, False, parameters, initial)
                    self._exits[label], self._rounds[label] = binding.targets, parameters
                    if value.counter is not None:
                        self._add(depth, False, binding.targets, parameters)
                    self.block(body, (), depth + 1)
                case _:
                    pass
        match block.terminator:
            case Yield(values):
                self._add(depth, False, targets, values)
            case Next(label, values):
                self._add(depth, False, self._rounds[label], values)
            case Exit(label, values):
                self._add(depth - 1, False, self._exits.get(label, ()), values)
            case Dead():
                pass
            case _:
                assert_never(block.terminator)

    def _add(
        self, depth: int, in_place: bool, targets: Sequence[Var], values: Sequence[Atom], updates: bool = False
    ) -> None:
        # The condition of an arm yields to no variable, and likewise a function's result.
        for target, value in zip(self.views.nodes(targets), self.views.nodes(values), strict=False):
            if target is not None and value is not None and target is not value and target.type == value.type:
                self.pairs.append((depth, in_place, target, value))
                if updates:
                    self.updated.update((target, value))

    def in_place_component(self) -> set[Var]:
        """The nodes that are connected with a call that changes them."""
        neighbors: dict[Var, list[Var]] = {}
        for _, _, a, b in self.pairs:
            neighbors.setdefault(a, []).append(b)
            neighbors.setdefault(b, []).append(a)
        pending = list(self.updated)
        found: set[Var] = set()
        while pending:
            node = pending.pop()
            if node not in found:
                found.add(node)
                pending += neighbors[node]
        return found


# ---- what cannot


class _Interference:
    """Goes through blocks backwards with the nodes that are live. Nodes that are not in `relevant` are ignored."""

    def __init__(self, views: _MemoryViews, order: Mapping[Block, Order], relevant: set[Var]) -> None:
        self.views = views
        self.order = order
        self.relevant = relevant
        self.of: dict[Var, set[Var]] = {node: set() for node in relevant}
        self._exits: dict[LoopLabel, tuple[Sequence[Var], frozenset[Var]]] = {}
        self._rounds: dict[LoopLabel, tuple[Sequence[Var], frozenset[Var]]] = {}

    def block(self, block: Block, targets: Sequence[Var], after: frozenset[Var]) -> frozenset[Var]:
        """The nodes that are live before a block with results in `targets`, `after` which the nodes `after` are
        live."""
        live = self._end(block, targets, after)
        for position, group in reversed(self.order[block]):
            live = self._binding(block.bindings[position], live) if group is None else self._group(group, live)
        return live

    def _read(self, atoms: Iterable[Atom]) -> frozenset[Var]:
        return self.views.root_arrays(atoms) & self.relevant

    def _written_nodes(self, variables: Iterable[Var]) -> frozenset[Var]:
        return frozenset(n for n in self.views.nodes(variables) if n is not None) & self.relevant

    def _write(self, node: Var | None, live: frozenset[Var], source: Var | None = None) -> None:
        if node in self.of:
            for other in live:
                if other is not node and other is not source:
                    self.of[node].add(other)
                    self.of[other].add(node)

    def _move(self, targets: Sequence[Var], values: Sequence[Atom], after: frozenset[Var]) -> frozenset[Var]:
        """targets := values at once; returns what is live before."""
        written = self._written_nodes(targets)
        for target, source in zip(self.views.nodes(targets), self.views.nodes(values), strict=False):
            self._write(target, after | written, source)
        return (after - written) | self._read(values)

    def _end(self, block: Block, targets: Sequence[Var], after: frozenset[Var]) -> frozenset[Var]:
        match block.terminator:
            case Yield(values):
                return self._move(targets, values, after)
            case Next(label, values):
                return self._move(self._rounds[label][0], values, self._rounds[label][1])
            case Exit(label, values):
                results, live = self._exits.get(label, ((), frozenset()))
                return self._move(results, values, live)
            case Dead():
                return frozenset()
            case _:
                assert_never(block.terminator)

    def _group(self, group: FusionGroup, live: frozenset[Var]) -> frozenset[Var]:
        inner = {binding.targets[0] for binding in group.bindings}
        read = self._read(a for b in group.bindings for a in operands(b.value) if a not in inner)
        # Members of the group are computed before anything is written, so they may read what is updated.
        root = group.bindings[-1]
        spared: frozenset[Var] = frozenset()
        for old in in_place_operands(root):
            if sum(bool(self._read((a,)) & self._read((old,))) for a in operands(root.value)) == 1:
                spared = self._read((old,))
        spared |= self._read(self.views.sources(group))
        written = self._written_nodes(group.outputs)
        for node in written:
            self._write(node, live | written | (read - spared))
        return (live - written) | read

    def _binding(self, binding: Binding, live: frozenset[Var]) -> frozenset[Var]:
        targets = binding.targets
        match binding.value:
            case If(arms, orelse):
                before = self.block(orelse, targets, live)
                for arm in reversed(arms):
                    before |= self.block(arm.body, targets, live)
                    before = self.block(arm.condition, (), before)
                return before
            case Match(value, match_arms):
                before = self._read((value,))
                for match_arm in match_arms:
                    before |= self.block(match_arm.body, targets, live)
                return before
            case Loop(label, parameters, initial, body, counter) as loop:
                head = (
                    (live - self._written_nodes(targets))
                    | self._written_nodes(parameters)
                    | self._read(free_variables(body))
                )
                self._exits[label], self._rounds[label] = (targets, live), (parameters, head)
                self.block(body, (), head)
                if counter is not None and not is_merged(loop):
                    self._move(targets, parameters, live)
                return self._move(parameters, initial, head)
            case Call() as call:
                read, written = self._read(call.arguments), self._written_nodes(targets)
                for node in written:
                    self._write(node, live | read)
                return (live - written) | read
            case Constant() | Global() | Static():
                return live
            case value:
                return live | self._read(operands(value))


def _classes(moves: _SavedCopies, interference: _Interference, views: _MemoryViews) -> dict[Var, Var]:
    """The representative of each variable in a class of two or more, merging first what is in the innermost loops."""
    members: dict[Var, set[Var]] = {node: {node} for node in interference.relevant}
    near: dict[Var, set[Var]] = {node: set(interference.of[node]) for node in interference.relevant}
    representative = {node: node for node in members}
    for _, _, a, b in sorted(moves.pairs, key=lambda pair: (-pair[0], not pair[1])):
        if a not in representative or b not in representative:
            continue
        left, right = representative[a], representative[b]
        if left is right or near[left] & members[right]:
            continue
        if len(members[left]) < len(members[right]):
            left, right = right, left
        representative.update(dict.fromkeys(members[right], left))
        members[left] |= members.pop(right)
        near[left] |= near.pop(right)
    return {
        variable: representative[node]
        for variable, node in views.node.items()
        if node in representative and len(members[representative[node]]) > 1
    }
