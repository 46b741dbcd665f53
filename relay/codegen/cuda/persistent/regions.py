"""Regions: consecutive bindings of a block that one persistent kernel computes.

A region has groups of known sizes, branches and loops on tensors, whose conditions the kernel reads itself, and other
names of tensors. Calls, data, references, stacks, assertions, output, and sizes that are computed stay with the host.
Among those that may be regions, the costs decide (`costs`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from relay.codegen.cuda.launches import GroupKernels, HostBlock, Region
from relay.codegen.cuda.persistent.costs import Times, branch_times, group_times, longer_times
from relay.codegen.cuda.persistent.emission import persistent_kernel
from relay.ir.expr import Ascribe, Atom, Block, Constant, Exit, If, Loop, LoopLabel, Next, OpCall, Var
from relay.ir.traverse import blocks, terminator_operands
from relay.ir.types import BaseType, TensorType
from relay.transform.fusion.fusion_groups import FusionGroup

MOST_STEPS = 64
"""The groups of a region, at most, so that kernels are compiled in seconds."""

ROUNDS = 8
"""The rounds that a loop within another one is taken to have, if the number is not known."""

Groups = Mapping[Block, Mapping[int, FusionGroup]]


def with_regions(known: Mapping[Block, HostBlock], groups: Groups, root: Sequence[Block]) -> dict[Block, HostBlock]:
    """The blocks of a program, of which `root` are the functions' own, with the regions that pay. Blocks within regions
    are left out. `groups`: the groups of blocks, without those that only have kernels of their own."""
    search = _Search(known, groups)
    pending = list(root)
    while pending:
        pending += search.visit(pending.pop())
    return search.made


@attrs.frozen(eq=False)
class _Part:
    """A binding, or a group that runs at it, as a part of a region: its times, how many kernels and groups it has, and
    whether the host would compute it alone."""

    times: Times
    launches: int
    steps: int
    on_host: bool


_NOTHING = _Part(Times(), 0, 0, True)


class _Search:
    def __init__(self, known: Mapping[Block, HostBlock], groups: Groups) -> None:
        self._blocks, self._groups = known, groups
        self.made: dict[Block, HostBlock] = {}
        self._count = 0

    def visit(self, block: Block) -> list[Block]:
        """Find the regions of a block; the blocks in it that are in none."""
        known = self._blocks[block]
        parts = [self._part(block, at, (), 1) for at in range(len(block.bindings))]
        regions: dict[int, Region] = {}
        left: list[Block] = []
        start = 0
        while start < len(parts):
            end, steps = start, 0
            while end < len(parts) and (part := parts[end]) is not None and steps + part.steps <= MOST_STEPS:
                steps += part.steps
                end += 1
            found = self._region(block, start, end, [part for part in parts[start:end] if part is not None])
            if found is not None:
                regions[start] = found
            else:
                end = max(end, start + 1)
                left += [part for at in range(start, end) for part in blocks(block.bindings[at].value)]
            start = end
        self.made[block] = attrs.evolve(known, regions=regions)
        return left

    def _region(self, block: Block, start: int, end: int, parts: Sequence[_Part]) -> Region | None:
        """The region of these bindings, if it is more than one kernel or a loop, and not the host's."""
        loops = any(isinstance(binding.value, Loop | If) for binding in block.bindings[start:end])
        if sum(part.launches for part in parts) < 2 - loops or all(part.on_host for part in parts):
            return None
        self._count += 1
        name = f"persistent{self._count - 1}"
        return Region(end, persistent_kernel(block, start, end, self._blocks, self._groups, name))

    # ---- what may be in a region, and its costs

    def _part(self, block: Block, at: int, inside: tuple[LoopLabel, ...], depth: int) -> _Part | None:
        """A binding as part of a region of its block, if it may be one and pays; inside of a loop it need not."""
        binding, known = block.bindings[at], self._blocks[block]
        part = _NOTHING
        if at in known.groups:
            group = self._groups[block].get(at)
            found = None if group is None else _group_part(group, known.groups[at])
            if found is None or (not inside and depth == 1 and found.on_host):
                return None
            part = found
        match binding.value:
            case OpCall():
                pass
            case Var() | Constant() | Ascribe() as same:
                value = same.value if isinstance(same, Ascribe) else same
                if not all(map(_is_tensor, (value, *binding.targets))):
                    return None
            case If() | Loop() as construct:
                if not all(map(_is_tensor, binding.targets)):
                    return None
                own = self._construct(construct, inside, depth + 1)
                part_of = None if own is None else _joined([part, own])
                if part_of is None:
                    return None
                part = part_of
            case _:
                return None
        return part if part is _NOTHING or depth > 1 or part.times.is_persistent else None

    def _construct(self, construct: If | Loop, inside: tuple[LoopLabel, ...], depth: int) -> _Part | None:
        if isinstance(construct, Loop):
            body = self._block(construct.body, (*inside, construct.label), depth)
            if body is None or not all(map(_is_tensor, construct.parameters)):
                return None
            count = None if construct.counter is None else construct.counter.count
            rounds = int(count.value) if isinstance(count, Constant) else ROUNDS
            return attrs.evolve(body, times=body.times.scaled(rounds))
        arms = [*((arm.condition, arm.body) for arm in construct.arms)]
        conditions = [self._block(condition, inside, depth) for condition, _ in arms]
        bodies = [self._block(body, inside, depth) for body in (*(body for _, body in arms), construct.orelse)]
        found = [part for part in (*conditions, *bodies) if part is not None]
        if len(found) < len(conditions) + len(bodies):
            return None
        longest = Times()
        for part in bodies:
            assert part is not None
            longest = longer_times(longest, part.times)
        times = branch_times()
        for part in conditions:
            assert part is not None
            times += part.times
        whole = _joined(found)
        assert whole is not None
        on_host = all(part.on_host for part in found)
        return attrs.evolve(whole, times=times + longest, on_host=on_host)

    def _block(self, block: Block, inside: tuple[LoopLabel, ...], depth: int) -> _Part | None:
        terminator = block.terminator
        if isinstance(terminator, Next | Exit) and (not inside or terminator.label is not inside[-1]):
            return None  # it leaves two loops at once
        if not all(map(_is_tensor, terminator_operands(terminator))):
            return None
        return _joined([self._part(block, at, inside, depth) for at in range(len(block.bindings))])


def _joined(parts: Sequence[_Part | None]) -> _Part | None:
    """Parts one after another; None if one may not be in a region, or they are too many."""
    times, launches, steps, on_host = Times(), 0, 0, True
    for part in parts:
        if part is None:
            return None
        times += part.times
        launches, steps, on_host = launches + part.launches, steps + part.steps, on_host and part.on_host
    return _Part(times, launches, steps, on_host) if steps <= MOST_STEPS else None


def _group_part(group: FusionGroup, kernels: GroupKernels) -> _Part | None:
    """A group as part of a region; None if it has symbolic sizes."""
    atoms = [*kernels.operands, *kernels.read, *(binding.targets[0] for binding in group.bindings)]
    if kernels.sizes or not all(map(_is_tensor, atoms)):
        return None
    count = len(kernels.launches)
    return _Part(group_times(group, count), count, 1, kernels.calls is not None)


def _is_tensor(atom: Atom) -> bool:
    """True for a tensor of a known size."""
    type_ = atom.type if isinstance(atom, Var | Constant) else None
    known = isinstance(type_, TensorType) and isinstance(type_.base, BaseType)
    return known and all(isinstance(dim, int) for dim in type_.shape)  # type: ignore[union-attr]


__all__ = ["with_regions"]
