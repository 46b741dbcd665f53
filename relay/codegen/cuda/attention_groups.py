"""Groups that may be attention: a product, what is computed of its rows, and a product that reads that.

Fusion keeps products apart, whose results are in memory. Where the two results in between have no other reader, the
three groups are offered as one to the rule for attention, which needs no memory for them.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Mapping

from relay.codegen.cuda.launches import GroupKernels
from relay.ir.expr import Block, OpCall, Var
from relay.ir.traverse import blocks, operands, terminator_operands, walk
from relay.operator import Pattern, lookup
from relay.transform.fusion.fusion_groups import FusionGroup


def with_attention(
    block: Block, groups: Mapping[int, FusionGroup], kernels_of: Callable[[FusionGroup], GroupKernels | None]
) -> tuple[dict[int, FusionGroup], dict[int, GroupKernels]]:
    """The groups of a block that are not attention, and the kernels of those that are, at the places where they run.
    `kernels_of` makes these, of a group that is."""
    left, made = dict(groups), dict[int, GroupKernels]()
    readers: Counter[Var] | None = None
    for places in _chains(groups):
        chain = [groups[place] for place in places]
        readers = _readers(block) if readers is None else readers
        is_alone = all(
            _reads(after)[before.outputs[0]] == readers[before.outputs[0]]
            for before, after in itertools.pairwise(chain)
        )
        if is_alone and left.keys() >= set(places) and (found := kernels_of(_joined(block, chain))) is not None:
            made[places[-1]] = found
            for place in places:
                del left[place]
    return left, made


def _chains(groups: Mapping[int, FusionGroup]) -> Iterator[tuple[int, int, int]]:
    """The places of a product, of a group that reads its only result, and of a product that reads that one's."""
    producers = {group.outputs[0]: place for place, group in groups.items() if len(group.outputs) == 1}
    products = {place for place, group in groups.items() if any(map(_is_product, _calls(group)))}

    def read_by(place: int) -> list[int]:
        return list(dict.fromkeys(producers[v] for v in _reads(groups[place]) if producers.get(v, place) != place))

    for last in groups:
        if last in products:
            for middle in read_by(last):
                if middle not in products:
                    yield from ((first, middle, last) for first in read_by(middle) if first in products)


def _calls(group: FusionGroup) -> list[OpCall]:
    return [binding.value for binding in group.bindings if isinstance(binding.value, OpCall)]


def _is_product(call: OpCall) -> bool:
    return lookup(call.operator).pattern is Pattern.OUTPUT_FUSABLE


def _reads(group: FusionGroup) -> Counter[Var]:
    """The reads of variables by a group's calls."""
    return Counter(atom for call in _calls(group) for atom in call.arguments if isinstance(atom, Var))


def _readers(block: Block) -> Counter[Var]:
    """The reads of variables in a block, and in the blocks inside it."""
    found = Counter(atom for atom in terminator_operands(block.terminator) if isinstance(atom, Var))
    for binding in walk(block):
        found.update(atom for atom in operands(binding.value) if isinstance(atom, Var))
        for inner in blocks(binding.value):
            found.update(atom for atom in terminator_operands(inner.terminator) if isinstance(atom, Var))
    return found


def _joined(block: Block, groups: list[FusionGroup]) -> FusionGroup:
    """Groups as one, in the order of the block."""
    members = {id(binding) for group in groups for binding in group.bindings}
    bindings = tuple(binding for binding in block.bindings if id(binding) in members)
    return FusionGroup(bindings, groups[-1].outputs)


__all__ = ["with_attention"]
