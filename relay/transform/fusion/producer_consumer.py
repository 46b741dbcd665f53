"""Producer-consumer fusion: groups that have one result and take in the calls that only they read.

Calls are visited from the last to the first. One joins the group of its readers if all of them are in that group and
the patterns allow it. Several groups may each compute a call for themselves:

    moved by storing it = its operands + its bytes * readers        (written once, and read by all but the first one)
    moved by repeating it = its operands * readers + its elements * (readers - 1)

It is repeated if that moves no more, where an operand that a group reads anyway counts nothing, and a second time of
computing an element counts as one byte. Intricate operators, which take many instructions, are never repeated, nor are
calls whose result is tested for equality.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from relay.ir.dims import Dim, add, multiply, product
from relay.ir.expr import Constant, Var
from relay.ir.sizes.facts import facts
from relay.ir.types import BOOL
from relay.operator import IndexKind, Pattern
from relay.transform.fusion.fusion_calls import ANCHOR, ARITHMETIC, INJECTIVE, BlockCalls, base_of, bytes_of

LIMIT = 64
"""The most calls of a group: TVM's expressions are trees, and deep ones break it."""

NESTED = 1
"""The number of intricate operators that may be computed from each other in one expression: TVM's time doubles with
every name that another one is computed from, and two of them can take it seconds."""

POSITIONS = 32
"""The approximate number of occurrences of an index in the indices of an expression's reads. Calls that read each
other multiply how often each of them uses it, and TVM's arithmetic on nested quotients and remainders takes
exponential time."""


@attrs.define(eq=False)
class GroupDraft:
    """A group under construction. It runs at `place`."""

    place: int
    members: set[int]
    results: set[int]  # members that others read
    anchors: list[int] = attrs.field(factory=list)
    feeding: set[int] = attrs.field(factory=set)  # members that the anchors read through
    kept: set[int] = attrs.field(factory=set)  # members that are computed completely before others read them


def drafts(calls: BlockCalls) -> list[GroupDraft]:
    """The groups of a block, the last one first."""
    return _ProducerConsumerFusion(calls).drafts()


class _ProducerConsumerFusion:
    def __init__(self, calls: BlockCalls) -> None:
        self.calls = calls
        self.groups: dict[int, list[GroupDraft]] = {}  # of each call
        self.alone = set(calls.leaving)  # calls that are results, also those that are too large to be parts
        self.alone |= {i for i in calls.users if calls.is_stored(i)}
        self.free: set[int] = set()  # calls without operands, which each group makes for itself

    def drafts(self) -> list[GroupDraft]:
        self._measure()
        made: list[GroupDraft] = []
        for i in reversed(self.calls.users):
            if self._is_free(i):
                self.free.add(i)
                continue
            if not self.calls.users[i] and i not in self.alone:
                continue  # nobody wants it
            joined = self._joinable_groups(i)
            if not joined:
                joined = [GroupDraft(i, set(), {i})]
                made += joined
            for draft in joined:
                draft.members.add(i)
                if self.calls.patterns[i] in ANCHOR:
                    draft.anchors.append(i)
            self.groups[i] = joined
        for i in self.free:
            readers = [j for j in self.calls.users[i] if j in self.groups]
            for j in readers:
                if self._absorbs(j, i):
                    for draft in self.groups[j]:
                        draft.members.add(i)
            if i in self.calls.leaving or not all(self._absorbs(j, i) for j in readers):
                made.append(GroupDraft(i, {i}, {i}))
        return sorted(made, key=lambda draft: -draft.place)

    def _measure(self) -> None:
        """Cut what would grow too large: find the size of each call's expression with all that can be inlined in it."""
        sizes: dict[int, int] = {}
        nested: dict[int, int] = {}
        indices: dict[int, int] = {}
        for i in self.calls.users:
            here = self.calls.is_intricate(i)
            uses = self.calls.index_uses(i)
            for j in self.calls.operands(i):
                if self._inlinable(j) and (nested[j] + here > NESTED or indices[j] * uses > POSITIONS):
                    self.alone.add(j)
            inlined = [j for j in self.calls.operands(i) if self._inlinable(j)]
            nested[i] = here + max((nested[j] for j in inlined), default=0)
            indices[i] = uses * max((indices[j] for j in inlined), default=1)
            size = 1 + sum(sizes[j] for j in inlined)
            for j in sorted(set(inlined), key=lambda j: -sizes[j]):
                if size > LIMIT:
                    size -= sizes[j] * inlined.count(j)
                    self.alone.add(j)
            sizes[i] = size
            if self.calls.is_in_blocks(i):  # who reads it reads memory
                nested[i], indices[i], sizes[i] = 0, 1, 1

    def _inlinable(self, i: int) -> bool:
        return i not in self.alone and self.calls.patterns[i] in INJECTIVE and i not in self.calls.updated

    def _is_free(self, i: int) -> bool:
        return not self.calls.call(i).arguments and self.calls.patterns[i] in INJECTIVE

    def _absorbs(self, i: int, operand: int) -> bool:
        """True if a call takes a free operand into its kernel."""
        if i in self.calls.updated:
            return not self.calls.updates(i, operand)
        return self.calls.patterns[i] not in (Pattern.OPAQUE, Pattern.OUTPUT_FUSABLE)

    def _joinable_groups(self, i: int) -> list[GroupDraft]:
        """The groups that a call can join, if any. All its users have their groups already."""
        if i in self.alone or self.calls.patterns[i] is Pattern.OPAQUE or i in self.calls.updated:
            return []
        found = {id(draft): draft for j in self.calls.users[i] for draft in self.groups.get(j, ())}
        groups = list(found.values())
        if not groups or not all(self._fits(i, draft) for draft in groups):
            return []
        if len(groups) > 1 and not self._pays(i, groups):
            return []
        for draft in groups:
            users = self.calls.users[i] & draft.members
            if users and self.calls.patterns[i] not in ANCHOR and all(self._feeds(j, draft) for j in users):
                draft.feeding.add(i)
        return groups

    def _fits(self, i: int, draft: GroupDraft) -> bool:
        calls, users, pattern = self.calls, self.calls.users[i] & draft.members, self.calls.patterns[i]
        if len(draft.members) + 1 > LIMIT or calls.reads_too_early(i, draft.place):
            return False
        if any(calls.updates(j, i) for j in users):
            return False
        if pattern in ANCHOR:
            return not draft.anchors and self._is_epilogue(i, draft)
        feeds = [self._feeds(j, draft) for j in users]
        if any(feeds):
            if not all(feeds):
                return False
            (anchor,) = draft.anchors
            if anchor in users and not self._may_feed(i, anchor):
                return False
            if self._reads_often(anchor) and calls.operator(i).indexing.kind is not IndexKind.PERMUTE:
                return False
        if any(not self._may_move(i, j) for j in users if j not in draft.anchors):
            return False
        return not any(calls.patterns[j] is Pattern.OPAQUE and j not in calls.updated for j in users)

    def _feeds(self, j: int, draft: GroupDraft) -> bool:
        return j in draft.anchors or j in draft.feeding

    def _is_epilogue(self, i: int, draft: GroupDraft) -> bool:
        """True if everything between an anchor and its group's result is elementwise on the anchor's shape."""
        shape = self.calls.shape(i)
        reached, pending = set[int](), list(self.calls.users[i] & draft.members)
        while pending:
            j = pending.pop()
            if j not in reached:
                reached.add(j)
                if self.calls.patterns[j] not in ARITHMETIC or self.calls.shape(j) != shape:
                    return False
                pending += self.calls.users[j] & draft.members
        return True

    def _may_feed(self, i: int, anchor: int) -> bool:
        """True if an anchor may read through this call without loss."""
        if self._reads_often(anchor):
            return self.calls.operator(i).indexing.kind is IndexKind.PERMUTE
        return self.calls.patterns[i] is Pattern.INJECTIVE or self.calls.is_larger(i, anchor) is True

    def _reads_often(self, anchor: int) -> bool:
        """True if an anchor reads each element several times."""
        return self.calls.patterns[anchor] is not Pattern.REDUCTION

    def _may_move(self, i: int, user: int) -> bool:
        if self.calls.patterns[i] is Pattern.INJECTIVE or user in self.calls.updated or self.calls.is_in_blocks(i):
            return True
        return self.calls.is_larger(user, i) is False

    def _pays(self, i: int, groups: Sequence[GroupDraft]) -> bool:
        """True if it is cheaper to repeat a call in each of several groups than to store it."""
        if self.calls.is_intricate(i) or self.calls.is_in_blocks(i) or self._is_tested_for_equality(i):
            return False
        elements = product(self.calls.shape(i))
        repeated: Dim = multiply(elements, len(groups) - 1)
        arguments = [a for a in dict.fromkeys(self.calls.call(i).arguments) if isinstance(a, Var | Constant)]
        once: Dim = 0
        for atom in arguments:
            missing = [draft for draft in groups if not self._reads_anyway(draft, atom)]
            repeated = add(repeated, multiply(bytes_of(atom), len(missing)))
            if len(missing) == len(groups):
                once = add(once, bytes_of(atom))
        return facts().at_least(add(once, multiply(self.calls.bytes(i), len(groups))), repeated) is True

    def _is_tested_for_equality(self, i: int) -> bool:
        """True if the elements are compared for equality with others, as in the gradient of a largest element. One
        kernel may round a product and a sum together, another kernel each of them."""
        readers, seen = list(self.calls.users[i]), set[int]()
        while readers:
            j = readers.pop()
            if j in seen:
                continue
            seen.add(j)
            if base_of(self.calls.target(j)) == BOOL and self.calls.operator(j).algebra.commutative:
                return base_of(self.calls.target(i)).is_float
            if self.calls.patterns[j] is Pattern.INJECTIVE:  # which moves elements
                readers += self.calls.users[j]
        return False

    def _reads_anyway(self, draft: GroupDraft, atom: Var | Constant) -> bool:
        """True if a group reads a tensor anyway."""
        return any(atom is a for j in draft.members for a in self.calls.call(j).arguments)
