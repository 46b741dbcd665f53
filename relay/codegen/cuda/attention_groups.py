"""Groups that may be attention: a product, what is computed of its rows, and a product that reads that.

Fusion keeps products apart, whose results are in memory. Where the two results in between have no other reader, the
three groups are offered as one to the rule for attention, which needs no memory for them. If its derivative reads them,
too, all that depends on them there is offered as one group that computes them again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Protocol

from relay.codegen.cuda.launches import GroupKernels
from relay.ir.expr import Binding, Block, OpCall, Var
from relay.ir.traverse import blocks, operands, terminator_operands, walk
from relay.operator import Pattern, lookup
from relay.transform.fusion.fusion_groups import FusionGroup

Groups = Mapping[int, FusionGroup]

MOST_MOVED = 8
"""The groups that run later, at most, so that the derivative is one group."""


class Rules(Protocol):
    """The kernels of groups that are what their names say; None for others."""

    def attention(self, group: FusionGroup) -> GroupKernels | None: ...

    def recomputation(self, group: FusionGroup, products: frozenset[Var]) -> GroupKernels | None: ...


def with_attention(
    block: Block, groups: Groups, rules: Rules
) -> tuple[dict[int, FusionGroup], dict[int, GroupKernels]]:
    """The groups of a block that are not attention, and the kernels of those that are, at the places where they run."""
    left, made = dict(groups), dict[int, GroupKernels]()
    readers: Mapping[Var, set[int]] | None = None
    for chain in _chains(groups):
        if not left.keys() >= set(chain):
            continue
        readers = _reading_places(block, groups) if readers is None else readers
        taken = _Derivative(groups, readers, chain)
        if taken.places is None or not left.keys() >= taken.places:
            continue
        found = rules.attention(_joined(block, [groups[place] for place in chain], groups[chain[-1]].outputs))
        if found is None:
            continue
        later = None
        if taken.places:
            again = [*chain[:-1], *taken.places]
            joined = _joined(block, [groups[place] for place in again], taken.outputs())
            later = rules.recomputation(joined, frozenset(taken.inner_products()))
            if later is None:
                continue
            made[max(taken.places)] = later
        made[chain[-1]] = found
        for place in {*chain, *taken.places}:
            del left[place]
    return left, made


class _Derivative:
    """The other readers of what is inside of attention: groups that are elementwise in it or go along its rows,
    the products that these read, which have no other readers, products of all these, and what reads the results of
    those so early that it has to be in the group. `places` is None if they cannot be one group."""

    def __init__(self, groups: Groups, readers: Mapping[Var, set[int]], chain: tuple[int, int, int]) -> None:
        self.groups, self.readers, self.chain = groups, readers, chain
        self.inner: set[int] = set()
        self.places: set[int] | None = self._places()

    def _places(self) -> set[int] | None:
        found, moved = self._members(), 0
        if found is None or not found:
            return found
        last = max(found)
        pending = [place for place in found if place not in self.inner and _has_product(self.groups[place])]
        while pending:
            for reader in self._readers_of(pending.pop()) - found:
                if reader > last:
                    continue
                moved += 1
                if reader not in self.groups or moved > MOST_MOVED:
                    return None
                found.add(reader)
                pending.append(reader)
        return found

    def _members(self) -> set[int] | None:
        producers = {output: place for place, group in self.groups.items() for output in group.outputs}
        first, middle, last = self.chain
        found = (self._readers_of(first) | self._readers_of(middle)) - {middle, last}
        pending = list(found)
        while pending:
            place = pending.pop()
            if place not in self.groups:
                return None  # what is no operator reads the matrix
            if _has_product(self.groups[place]):
                continue
            new = self._readers_of(place)
            made_by = {producers[v] for v in _reads(self.groups[place]) if v in producers} - {first, middle, *found}
            self.inner |= {other for other in made_by if _has_product(self.groups[other])}
            pending += new - found
            found |= new
        if any(not self._readers_of(place) <= found for place in self.inner):
            return None
        return found | self.inner

    def _readers_of(self, place: int) -> set[int]:
        return {reader for output in self.groups[place].outputs for reader in self.readers[output]}

    def inner_products(self) -> Iterator[Var]:
        """The products whose elements are computed again wherever they are read."""
        for place in (*self.chain[:-1], *self.inner):
            for binding in self.groups[place].bindings:
                if _is_product(binding):
                    yield binding.targets[0]

    def outputs(self) -> tuple[Var, ...]:
        """The results that others read."""
        assert self.places is not None
        inside = self.places | {self.chain[1]}
        made = [v for place in sorted(self.places) for v in self.groups[place].outputs]
        return tuple(v for v in made if not self.readers[v] <= inside)


def _chains(groups: Groups) -> Iterator[tuple[int, int, int]]:
    """The places of a product, of a group that reads its only result, and of a product that reads that one's."""
    producers = {output: place for place, group in groups.items() for output in group.outputs}
    products = {place for place, group in groups.items() if _has_product(group)}

    def read_by(place: int) -> list[int]:
        return list(dict.fromkeys(producers[v] for v in _reads(groups[place]) if v in producers))

    for last in groups:
        if last in products:
            for middle in read_by(last):
                if middle not in products:
                    yield from ((first, middle, last) for first in read_by(middle) if first in products)


def _has_product(group: FusionGroup) -> bool:
    return any(map(_is_product, group.bindings))


def _is_product(binding: Binding) -> bool:
    return isinstance(binding.value, OpCall) and lookup(binding.value.operator).pattern is Pattern.OUTPUT_FUSABLE


def _reads(group: FusionGroup) -> list[Var]:
    """The variables that a group's calls read, and others have."""
    calls = [binding.value for binding in group.bindings if isinstance(binding.value, OpCall)]
    own = {target for binding in group.bindings for target in binding.targets}
    return [atom for call in calls for atom in call.arguments if isinstance(atom, Var) and atom not in own]


def _reading_places(block: Block, groups: Groups) -> Mapping[Var, set[int]]:
    """For each variable the places of the groups that read it, and those of the other bindings that do, themselves or
    in blocks inside; what the block returns is read after all bindings."""
    found: defaultdict[Var, set[int]] = defaultdict(set)

    def note(atoms: Iterable[object], place: int) -> None:
        for atom in atoms:
            if isinstance(atom, Var):
                found[atom].add(place)

    for place, group in groups.items():
        note(_reads(group), place)
    for place, binding in enumerate(block.bindings):
        if isinstance(binding.value, OpCall):
            continue
        note(operands(binding.value), place)
        for part in blocks(binding.value):
            note(terminator_operands(part.terminator), place)
            for inner in walk(part):
                note(operands(inner.value), place)
                for nested in blocks(inner.value):
                    note(terminator_operands(nested.terminator), place)
    note(terminator_operands(block.terminator), len(block.bindings))
    return found


def _joined(block: Block, groups: list[FusionGroup], outputs: tuple[Var, ...]) -> FusionGroup:
    """Groups as one, in the order of the block, with these results."""
    members = {id(binding) for group in groups for binding in group.bindings}
    bindings = tuple(binding for binding in block.bindings if id(binding) in members)
    return FusionGroup(bindings, outputs)


__all__ = ["with_attention"]
