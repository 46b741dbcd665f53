"""Multi-output (horizontal) fusion: groups over the same elements become one with several results.

    e = exp(x); y = 2 * e; s = sum(e); m = max(e)             one pass over x: e and y are stored, s and m added up
    p = x @ w + b; h = relu(p); d = p > 0                     one product: what becomes of each sum is stored
    m = max(x, axis=1, keepdims=True); y = x - m              one row after the other (`relay.transform.fusion.rows`)

A group has up to two spaces: that of its results, and, if it reduces, that of what its reductions go through. Members
on the way of either that are read element by element are *level* with it. Two groups become one if spaces of theirs
have the same shape and

    a call of one reads a result of the other, on this level: one reading less
    or calls of both read the same tensor of this shape, on this level: the same

and no result of one is read by the other in another way. Results that nobody else reads stay in registers.

Of groups with an intricate operator each, which one loop has not registers enough for, one is made if both go over the
same elements in the same order: each has its loop then, block by block. The last one may add them up.

Groups keep their order: a group runs at a place in the block, what it reads is made before, and who reads its results
runs later. One that is made of two runs where the later one did, or, if nothing between them may fail or has effects,
where the earlier one did; if neither is possible they stay two.
"""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Iterable, Mapping

from relay.ir.dims import product
from relay.ir.expr import Var
from relay.ir.sizes.facts import facts
from relay.ir.types import BaseType, Shape, TensorType
from relay.operator import Pattern
from relay.transform.fusion.elementwise_calls import are_flat, is_number
from relay.transform.fusion.fusion_calls import ARITHMETIC, BlockCalls, shape_of
from relay.transform.fusion.producer_consumer import LIMIT, GroupDraft
from relay.transform.fusion.rows import in_rows

RESULTS, OPERANDS = 8, 24
"""The most results and operands of a group that is made of two: processors look ahead in this many arrays at once."""

SMALL = 256
"""Up to this many elements, elementwise groups stay as they are: tensors are in the nearest cache, so there is little
to gain, and programs that repeat themselves have groups that are equal, of which one is compiled."""

INTRICATE = 4
"""The most intricate operators of a group whose parts have loops of their own: each keeps a block in the cache."""

LARGE = 1 << 20
"""From this many elements on tensors are in memory rather than in a cache. Below, what one kernel saves is little, and
intricate operators that are repeated in a block stay apart: their kernels are equal more often, and long to compile."""

FAR = 1 << 22
"""From this many elements on a sum of them takes in what another loop makes block by block: 0.87 times as long and
less, for what lies between would go to memory and back. Below, and for float64, sums in loops of their own keep more
vectors in registers, which is up to a fifth faster."""

CANDIDATES, DISTANCE = 8, 64
"""With this many groups another one is compared, those that read the same nearest to it, and at most this many bindings
away: what is computed long before it is needed takes memory."""


class Level(enum.Enum):
    """The space of a group that a call is level with."""

    RESULT = "result"
    REDUCED = "reduced"


def merge_groups(calls: BlockCalls, drafts: Iterable[GroupDraft]) -> list[GroupDraft]:
    """The groups, given from the last one to the first, of which some have become one."""
    return _MultiOutputFusion(calls).merge_groups(drafts)


class _MultiOutputFusion:
    def __init__(self, calls: BlockCalls) -> None:
        self.calls = calls
        self.groups: dict[int, list[GroupDraft]] = {}  # of each call
        self.levels: dict[GroupDraft, dict[int, Level]] = {}
        self.spaces: dict[GroupDraft, dict[Level, Shape]] = {}
        self.apart: set[GroupDraft] = set()  # groups that are kernels by themselves
        self.in_blocks: set[GroupDraft] = set()  # groups whose parts have loops of their own
        self._reads: dict[GroupDraft, dict[Var, None]] = {}  # what is asked again and again of groups
        self._intricate: dict[GroupDraft, bool] = {}
        self._plain: dict[GroupDraft, bool] = {}
        self._operators: Counter[str] | None = None  # of the calls of the block, once somebody asks
        self.readers: dict[Var, list[GroupDraft]] = {}  # of tensors, the last one in the block first; some are merged

    def merge_groups(self, drafts: Iterable[GroupDraft]) -> list[GroupDraft]:
        pending = list(drafts)
        for draft in pending:
            for i in draft.members:
                self.groups.setdefault(i, []).append(draft)
                if self.calls.is_stored(i):
                    self.apart.add(draft)
            self.spaces[draft] = self._spaces(draft)
            self.levels[draft] = self._levels(draft)
        pending.reverse()
        found: dict[GroupDraft, None] = {}
        while pending:
            draft = pending.pop()
            made = (self._merge(draft, other) for other in self._candidates(draft))
            both = next((one for one in made if one is not None), None)
            if both is not None:
                pending.append(both)
                continue
            found[draft] = None
            for atom in self._read(draft):
                self.readers.setdefault(atom, []).append(draft)
        return [draft for draft in found if draft.members]

    # ---- what is level with what

    def _spaces(self, draft: GroupDraft) -> dict[Level, Shape]:
        """The shapes of a group's spaces; of reductions only if they are of a kind that may have company."""
        spaces = {Level.RESULT: self.calls.shape(draft.place)}
        if draft.anchors and all(map(self._reduces, draft.anchors)):
            spaces[Level.REDUCED] = shape_of(self.calls.call(draft.anchors[0]).arguments[0])
        return spaces

    def _levels(self, draft: GroupDraft) -> dict[int, Level]:
        """The members that are read element by element on the way to the result or to a reduction."""
        levels: dict[int, Level] = {}
        for i in sorted(draft.members, reverse=True):
            operator, users = self.calls.operator(i), self.calls.users[i] & draft.members
            if operator.compute is None or operator.memory.uninitialized:
                continue
            if i in draft.results:
                levels[i] = Level.RESULT
                continue
            for level, shape in self.spaces[draft].items():
                read = bool(users) and all(self._reads_at(j, level, levels, draft.anchors) for j in users)
                if read and self.calls.shape(i) == shape:
                    levels[i] = level
            if i in draft.anchors:
                levels[i] = Level.RESULT
        return levels

    def _reads_at(self, i: int, level: Level, levels: Mapping[int, Level], anchors: Iterable[int]) -> bool:
        """True if a call reads its operands of a space element by element on this level."""
        if i in anchors:
            return level is Level.REDUCED and self._reduces(i)
        return levels.get(i) is level and self.calls.patterns[i] in ARITHMETIC

    def _reduces(self, i: int) -> bool:
        """True if a call combines elements along axes."""
        reduces = self.calls.operator(i).indexing.reduction_axes is not None
        return self.calls.patterns[i] is Pattern.REDUCTION and reduces

    def _axes(self, draft: GroupDraft) -> object:
        """Along which axes the reductions of a group go."""
        call = self.calls.call(draft.anchors[0])
        combines = self.calls.operator(draft.anchors[0]).indexing.reduction_axes
        assert combines is not None
        rank = len(shape_of(call.arguments[0]))
        axes = call.attributes.get(combines)
        if axes is None:
            return tuple(range(rank))
        return tuple(sorted(a % rank for a in (axes if isinstance(axes, tuple) else (axes,)) if isinstance(a, int)))

    # ---- which groups might become one

    def _candidates(self, draft: GroupDraft) -> list[GroupDraft]:
        """Groups that read results of a group or what it reads, the next ones first."""
        found: dict[GroupDraft, None] = {}
        for atom in (*(self.calls.target(i) for i in sorted(draft.results)), *self._read(draft)):
            readers = self.readers.get(atom, [])
            while readers and not readers[-1].members:
                readers.pop()
            near = (d for d in reversed(readers[-2 * CANDIDATES :]) if d.members and d is not draft)
            found.update((d, None) for d in near if abs(d.place - draft.place) <= DISTANCE)
        return sorted(found, key=lambda d: d.place)[:CANDIDATES]

    def _read(self, draft: GroupDraft) -> dict[Var, None]:
        """The variables that a group reads of others, or of bindings that are not calls of this block."""
        found = self._reads.get(draft)
        if found is None:
            inner = {self.calls.target(i) for i in draft.members}
            found = self._reads[draft] = {}
            for i in sorted(draft.members):
                found.update((a, None) for a in self.calls.call(i).arguments if isinstance(a, Var) and a not in inner)
        return found

    # ---- whether they can

    def _merge(self, one: GroupDraft, other: GroupDraft) -> GroupDraft | None:
        """One group of two, if that is possible and pays."""
        if one in self.apart or other in self.apart:
            return None
        first, second = (one, other) if one.place <= other.place else (other, one)
        in_blocks = bool({first, second} & self.in_blocks) or self._are_both_intricate(first, second)
        if not (in_blocks or first.anchors or second.anchors) and self._is_small(first):
            return None
        members = first.members | second.members
        if len(members) > LIMIT or not (self._is_plain(first) and self._is_plain(second)):
            return None
        inner = {i for i in first.results | second.results if self._is_read_inside_only(i, members)}
        results = (first.results | second.results) - inner
        if len(results) > RESULTS or len(self._read(first) | self._read(second)) > OPERANDS:
            return None
        place = self._place(first, second)
        if place is None:
            return None
        found = self._block_by_block(first, second) if in_blocks else self._in_one_space(first, second)
        in_blocks = in_blocks and found is not None
        if found is None:
            if not self._are_rows(first, second):
                return None
            found = {}, {}
        merged = GroupDraft(place, members, results, kept=first.kept | second.kept | inner)
        merged.anchors = list(dict.fromkeys((*first.anchors, *second.anchors)))
        if in_blocks:
            self.in_blocks.add(merged)
        self.spaces[merged], self.levels[merged] = found
        for draft in (first, second):
            for i in draft.members:
                self.groups[i] = [merged, *(d for d in self.groups[i] if d is not draft and d is not merged)]
            draft.members = set()
        return merged

    def _is_plain(self, draft: GroupDraft) -> bool:
        """True if a group consists of our own loops, and changes nothing in place."""
        known = self._plain.get(draft)
        if known is None:
            operators = map(self.calls.operator, draft.members)
            known = self._plain[draft] = not any(i in self.calls.updated for i in draft.results) and all(
                operator.compute is not None and not operator.memory.uninitialized for operator in operators
            )
        return known

    def _is_read_inside_only(self, i: int, members: set[int]) -> bool:
        return (
            i not in self.calls.leaving
            and self.calls.users[i] <= members
            and all(all(group.members <= members for group in self.groups[j]) for j in self.calls.users[i])
        )

    # ---- where

    def _place(self, first: GroupDraft, second: GroupDraft) -> int | None:
        """The place where a group of two can run."""
        if self._waits(first, second):
            return second.place
        if self.calls.barriers[second.place] > self.calls.barriers[first.place]:
            return None
        others = (atom for atom in self._read(second) if self.calls.position.get(atom) not in first.results)
        return first.place if all(self._definition_place(atom) < first.place for atom in others) else None

    def _waits(self, first: GroupDraft, second: GroupDraft) -> bool:
        """True if the first group can run at the second one's place."""
        for i in first.results:
            if self.calls.leaving.get(i, second.place) < second.place:
                return False
            readers = (group for j in self.calls.users[i] for group in self.groups.get(j, ()))
            if any(group.place < second.place for group in readers if group is not first):
                return False
        return not any(self.calls.reads_too_early(i, second.place) for i in first.members)

    def _definition_place(self, atom: Var) -> int:
        """The place where a variable is bound."""
        position = self.calls.position.get(atom)
        if position is None:
            return self.calls.made.get(atom, -1)
        return max((d.place for d in self.groups.get(position, ()) if position in d.results), default=position)

    # ---- whether it pays

    def _are_both_intricate(self, first: GroupDraft, second: GroupDraft) -> bool:
        """True if there are several intricate calls, for which one loop does not have enough registers."""
        return self._is_intricate(first) and self._is_intricate(second)

    def _is_intricate(self, draft: GroupDraft) -> bool:
        known = self._intricate.get(draft)
        if known is None:
            known = self._intricate[draft] = any(map(self.calls.is_intricate, draft.members))
        return known

    def _block_by_block(
        self, first: GroupDraft, second: GroupDraft
    ) -> tuple[dict[Level, Shape], dict[int, Level]] | None:
        """The spaces and levels of a group of two that go over the same elements in the same order; None if they do
        not, or if there is little to gain."""
        members = first.members | second.members
        intricate = [i for i in members if self.calls.is_intricate(i)]
        kept = [i for i in (*first.results, *second.results) if self._is_read_inside_only(i, members)]
        if second.anchors and (first.anchors or not self._combines_all(second) or not self._is_far(first)):
            return None
        if len(intricate) > INTRICATE or not are_flat(self.calls.bindings(members.difference(second.anchors))):
            return None
        if not all(is_number(self.calls.target(i)) for i in kept):
            return None
        if any(map(self._is_repeated, intricate)) and not self._is_large(first):
            return None
        found = self._in_one_space(first, second)
        reads = any(j in first.results for i in second.members for j in self.calls.operands(i))
        if found is not None or not reads:
            return found
        shape = self.spaces[second][Level.RESULT]
        level = (i for i in members if self.calls.shape(i) == shape and self.calls.patterns[i] in ARITHMETIC)
        return {Level.RESULT: shape}, dict.fromkeys(level, Level.RESULT)

    def _combines_all(self, draft: GroupDraft) -> bool:
        """True if a group reduces all elements to one number, and has no other result."""
        (anchor, *others) = draft.anchors
        single = _is_single(self.calls.shape(anchor)) and is_number(self.calls.target(anchor))
        return not others and draft.results == {anchor} and self._reduces(anchor) and single

    def _is_repeated(self, i: int) -> bool:
        """True if there are other calls of an operator in the block, with which the kernel may be shared."""
        if self._operators is None:
            self._operators = Counter(self.calls.call(j).operator for j in self.calls.users)
        return self._operators[self.calls.call(i).operator] > 1

    def _in_one_space(
        self, first: GroupDraft, second: GroupDraft
    ) -> tuple[dict[Level, Shape], dict[int, Level]] | None:
        """The spaces and levels of a group of two that go over the same elements and read the same; None if they do
        not."""
        result, reduced = Level.RESULT, Level.REDUCED
        if not first.anchors and not second.anchors and self._is_small(first):
            return None
        ways = []
        if not second.anchors:
            ways += [(result, result), (reduced, result)]
        if not first.anchors:
            ways.append((result, reduced))
        if first.anchors and second.anchors:
            ways.append((reduced, reduced))
        for of_first, of_second in ways:
            shape = self.spaces[first].get(of_first)
            if shape is None or shape != self.spaces[second].get(of_second) or _is_single(shape):
                continue
            if of_first is of_second is reduced and not self._reduce_alike(first, second):
                continue
            found = self._levels_of_both(first, second, of_first, of_second)
            if found is not None:
                return {**self.spaces[second], **self.spaces[first]} if of_second is not reduced else {
                    **self.spaces[first],
                    **self.spaces[second],
                }, found
        return None

    def _is_large(self, draft: GroupDraft) -> bool:
        return facts().at_least(product(self.spaces[draft][Level.RESULT]), LARGE) is True

    def _is_far(self, draft: GroupDraft) -> bool:
        """True if a result is so large that it pays to sum it block by block, and of short numbers."""
        type_ = self.calls.target(draft.place).type
        short = isinstance(type_, TensorType) and isinstance(type_.base, BaseType) and type_.base.dtype.itemsize <= 4
        return short and facts().at_least(product(self.spaces[draft][Level.RESULT]), FAR) is True

    def _is_small(self, draft: GroupDraft) -> bool:
        return facts().at_least(SMALL, product(self.spaces[draft][Level.RESULT])) is True

    def _reduce_alike(self, first: GroupDraft, second: GroupDraft) -> bool:
        """True if the reductions of two groups have the same loops."""
        shapes = [self.calls.shape(draft.anchors[0]) for draft in (first, second)]
        return shapes[0] == shapes[1] and self._axes(first) == self._axes(second)

    def _levels_of_both(
        self, first: GroupDraft, second: GroupDraft, of_first: Level, of_second: Level
    ) -> dict[int, Level] | None:
        """The levels of a group of two that share a space; None if they read nothing in common there, or one reads the
        other in another way."""
        space = Level.REDUCED if Level.REDUCED in (of_first, of_second) else Level.RESULT
        both = [
            {i: space if found is level else found for i, found in self.levels[draft].items()}
            for draft, level in ((first, of_first), (second, of_second))
        ]
        levels = {**both[0], **both[1]}
        for i in first.members & second.members:  # what is repeated in both
            if both[0].get(i) is not both[1].get(i):
                levels.pop(i, None)
        shared = False
        for i in second.members - first.members:
            for j in self.calls.operands(i):
                if j in first.results and j not in second.members:
                    if j not in levels or not self._reads_at(i, levels[j], levels, second.anchors):
                        return None
                    shared = shared or levels[j] is space
        if shared:
            return levels
        if first.anchors and space is Level.RESULT:
            return None
        shape = self.spaces[first][of_first]
        same = self._read_on(first, space, levels, shape) & self._read_on(second, space, levels, shape)
        return levels if same else None

    def _read_on(self, draft: GroupDraft, level: Level, levels: Mapping[int, Level], shape: Shape) -> set[Var]:
        """The tensors of a space's shape that members read on its level."""
        return {
            atom
            for i in draft.members
            if self._reads_at(i, level, levels, draft.anchors)
            for atom in self.calls.call(i).arguments
            if isinstance(atom, Var) and shape_of(atom) == shape
        }

    def _are_rows(self, first: GroupDraft, second: GroupDraft) -> bool:
        """True if the second group reads results of the first one, and both are computed in the same rows."""
        if not any(j in first.results for i in second.members for j in self.calls.operands(i)):
            return False
        members = first.members | second.members
        return in_rows(self.calls.bindings(i for i in members if self.calls.call(i).arguments))


def _is_single(shape: Shape) -> bool:
    """True if a tensor has one element at most: such tensors are in registers anyway."""
    return facts().at_least(1, product(shape)) is True
