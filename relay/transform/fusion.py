"""Which operator calls of a block run together as one kernel.

A plan is a pure function of a block. Code generation consumes it; nothing is rewritten. A group is a set of operator
calls of one block with a single output, computed at the place of that output, its last member. So members move later,
never earlier: a call stays behind the `Assert` that guards it.

A call joins the group of its consumers when all of its uses lie in that one group, and

    elementwise, broadcast, injective   -> any of these, or a reduction's input, or beside the main path of an epilogue
    reduction, output-fusable (matmul)  -> elementwise calls of the same shape (the epilogue)
    opaque                              -> nothing

A group has at most one reduction or matmul (its anchor). A matmul's own inputs stay materialised, because it reads each
element often; but a transposed one is read in place. For the same reason arithmetic does not move into a consumer with
more elements than it has itself; pure data movement does. Calls without operands (`zeros`) are repeated in each group
that uses them. A group's expression, written out as a tree, has at most `LIMIT` calls: TVM's expressions are trees, and
deep ones break it.

Groups that are computed row by row, as the parts of a softmax or a layer norm, become one (`relay.transform.rows`);
what was the output of one of them is kept in memory for one row.

A call that can update an operand in place ends its group, and that operand is in memory. What the others are computed
from may join, since they are computed completely before anything is written. A read of an array that is updated does
not move behind the update.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import attrs

from relay.ir.dims import add, product
from relay.ir.expr import Atom, Binding, Block, Expr, Loop, OpCall, Var
from relay.ir.facts import facts
from relay.ir.traverse import blocks, free_variables, operands, terminator_operands
from relay.ir.types import BFLOAT16, Shape, TensorType
from relay.operator import Pattern, lookup
from relay.transform.rows import in_rows

LIMIT = 64

NESTED = 1
"""How many intricate operators may be computed from each other in one expression: TVM's time doubles with every name
that another one is computed from, and two of them can take it seconds."""

_INJECTIVE = (Pattern.ELEMENTWISE, Pattern.BROADCAST, Pattern.INJECTIVE)
_ARITHMETIC = (Pattern.ELEMENTWISE, Pattern.BROADCAST)
_ANCHOR = (Pattern.REDUCTION, Pattern.OUTPUT_FUSABLE)


@attrs.frozen(eq=False)
class Group:
    """Calls that run as one kernel, in the order of the block, and those of their targets that others read. Those in
    `kept` are computed once for each place, before others read them."""

    bindings: tuple[Binding, ...]
    outputs: tuple[Var, ...]
    kept: tuple[Var, ...] = ()


@attrs.define(eq=False)
class _Draft:
    """A group while it is made, from its output backwards. `feeding` are the members that the anchor reads through."""

    root: int
    members: list[int]
    size: int
    anchor: int | None = None
    feeding: set[int] = attrs.field(factory=set)
    kept: list[int] = attrs.field(factory=list)  # outputs of groups that have become a part of this one


def updated(binding: Binding) -> tuple[Atom, ...]:
    """The operand that an operator call can update in place, if there is one."""
    if isinstance(binding.value, OpCall):
        in_place = lookup(binding.value.operator).in_place
        if in_place is not None:
            return (binding.value.arguments[in_place.operand],)
    return ()


def _overwritten(binding: Binding) -> set[Var]:
    """The variables whose memory a binding may take for an update, also inside its blocks."""
    found = {a for a in updated(binding) if isinstance(a, Var)}
    for block in blocks(binding.value):
        for inner in block.bindings:
            found |= _overwritten(inner)
    if isinstance(binding.value, Loop):
        pairs = zip(binding.value.parameters, binding.value.initial, strict=True)
        found |= {initial for parameter, initial in pairs if parameter in found and isinstance(initial, Var)}
    return found


def plan(block: Block) -> dict[int, Group]:
    """The groups of a block's operator calls, each under the position of the binding where it runs."""
    return _Planner(block).plan()


class _Planner:
    def __init__(self, block: Block) -> None:
        self.block = block
        self.position: dict[Var, int] = {}
        self.patterns: dict[int, Pattern] = {}
        self.updated: dict[int, Atom] = {}  # what calls update in place
        self.overwritten: dict[Var, int] = {}  # where variables may first be overwritten
        self.users: dict[int, set[int]] = {}  # operator calls by the calls of this block that read them
        self.escaping: set[int] = set()  # calls whose value something other than a call of this block reads
        for i, binding in enumerate(block.bindings):
            if isinstance(binding.value, OpCall):
                self.position[binding.targets[0]] = i
                self.patterns[i] = lookup(binding.value.operator).pattern
                self.users[i] = set()
                self.updated.update((i, atom) for atom in updated(binding))
            for variable in _overwritten(binding):
                self.overwritten.setdefault(variable, i)
        for i, binding in enumerate(block.bindings):
            read = set(self._positions(_reads(binding.value)))
            for j in read:
                self.users[j].add(i)
            if not isinstance(binding.value, OpCall):
                self.escaping |= read
        self.escaping.update(self._positions(terminator_operands(block.terminator)))
        self.leaving = frozenset(self.escaping)  # the same without what only is too large to be a part of others
        self.group_of: dict[int, _Draft] = {}
        self.repeated: set[int] = set()

    def plan(self) -> dict[int, Group]:
        self._measure()
        drafts: list[_Draft] = []
        for i in reversed(self.users):
            if self._repeatable(i):
                self.repeated.add(i)
                continue
            if not self.users[i] and i not in self.escaping:
                continue  # nobody wants it
            draft = self._joined(i)
            if draft is None:
                draft = _Draft(i, [i], 1)
                drafts.append(draft)
            else:
                draft.members.append(i)
            self.group_of[i] = draft
            if self.patterns[i] in _ANCHOR:
                draft.anchor = i
        for i in self.repeated:
            if i in self.escaping or not all(self._absorbs(j, i) for j in self.users[i]):
                drafts.append(_Draft(i, [i], 1))
        return {draft.root: self._finish(draft) for draft in self._in_rows(drafts)}

    def _in_rows(self, drafts: Sequence[_Draft]) -> list[_Draft]:
        """The groups, given from the last one to the first, with those in one that are computed in the same rows."""
        into: dict[int, _Draft] = {}
        found: list[_Draft] = []
        for draft in drafts:
            users = [self.group_of[j] for j in self.users[draft.root] if j in self.group_of]
            targets = {id(into[id(user)]): into[id(user)] for user in users if id(user) in into}
            into[id(draft)] = draft
            if len(targets) == 1 and draft.root not in self.leaving:
                (target,) = targets.values()
                if self._fits_rows(draft, target):
                    target.members += draft.members
                    target.size += draft.size
                    target.kept += [draft.root, *draft.kept]
                    into[id(draft)] = target
                    continue
            found.append(draft)
        return found

    def _fits_rows(self, draft: _Draft, target: _Draft) -> bool:
        members = sorted({*draft.members, *target.members})
        if draft.size + target.size > LIMIT or any(self._reads_too_early(i, target.root) for i in draft.members):
            return False
        return in_rows([self.block.bindings[i] for i in members])

    def _finish(self, draft: _Draft) -> Group:
        repeated = {j for i in draft.members for j in self._operands(i) if j in self.repeated and self._absorbs(i, j)}
        repeated = {j for j in repeated if not self._updates(draft.root, j)}
        kept = tuple(self.block.bindings[i].targets[0] for i in sorted(draft.kept))
        outputs = (self.block.bindings[draft.root].targets[0],)
        return Group(tuple(self.block.bindings[i] for i in sorted(repeated.union(draft.members))), outputs, kept)

    def _measure(self) -> None:
        """Cut what would grow too large: find the size of each call's expression with all that can be inlined in it."""
        sizes: dict[int, int] = {}
        nested: dict[int, int] = {}
        for i in self.users:
            here = self._is_intricate(i)
            for j in self._operands(i):
                if self._inlinable(j) and nested[j] + here > NESTED:
                    self.escaping.add(j)
            inlined = [j for j in self._operands(i) if self._inlinable(j)]
            nested[i] = here + max((nested[j] for j in inlined), default=0)
            size = 1 + sum(sizes[j] for j in inlined)
            for j in sorted(set(inlined), key=lambda j: -sizes[j]):
                if size > LIMIT:
                    size -= sizes[j] * inlined.count(j)
                    self.escaping.add(j)
            sizes[i] = size

    def _is_intricate(self, i: int) -> bool:
        """Whether the expression of a call has many named parts, as polynomials do and the conversions of bfloat16."""
        binding = self.block.bindings[i]
        type_ = binding.targets[0].type if binding.targets else None
        if isinstance(type_, TensorType) and type_.base == BFLOAT16:
            return True
        return isinstance(binding.value, OpCall) and lookup(binding.value.operator).intricate

    def _inlinable(self, i: int) -> bool:
        return i not in self.escaping and self.patterns[i] in _INJECTIVE and i not in self.updated

    def _operands(self, i: int) -> list[int]:
        return list(self._positions(operands(self.block.bindings[i].value)))

    def _positions(self, atoms: Iterable[Atom]) -> Iterator[int]:
        """The operator calls of this block among the definitions of atoms."""
        return (self.position[a] for a in atoms if isinstance(a, Var) and a in self.position)

    def _repeatable(self, i: int) -> bool:
        value = self.block.bindings[i].value
        return isinstance(value, OpCall) and not value.arguments and self.patterns[i] in _INJECTIVE

    def _absorbs(self, i: int, operand: int) -> bool:
        """Whether a call takes a repeated operand into its kernel."""
        if i in self.updated:
            return not self._updates(i, operand)
        return self.patterns[i] not in (Pattern.OPAQUE, Pattern.OUTPUT_FUSABLE)

    def _updates(self, i: int, operand: int) -> bool:
        """Whether a call updates another one's result in place."""
        return i in self.updated and self.updated[i] is self.block.bindings[operand].targets[0]

    def _reads_too_early(self, i: int, root: int) -> bool:
        """Whether a call reads what may be overwritten before the group runs."""
        return any(
            self.overwritten.get(atom, root) < root
            for atom in operands(self.block.bindings[i].value)
            if isinstance(atom, Var)
        )

    def _joined(self, i: int) -> _Draft | None:
        """The group that a call can join, if any. All its users have their groups already."""
        users, pattern = self.users[i], self.patterns[i]
        if i in self.escaping or not users or pattern is Pattern.OPAQUE or i in self.updated:
            return None
        groups = {id(self.group_of[j]): self.group_of[j] for j in users if j in self.group_of}
        if len(groups) != 1:
            return None
        (draft,) = groups.values()
        if draft.size + 1 > LIMIT or self._reads_too_early(i, draft.root):
            return None
        if any(self._updates(j, i) for j in users):
            return None
        if pattern in _ANCHOR:
            if draft.anchor is not None or not self._is_epilogue(i, draft):
                return None
        else:
            feeds = [j == draft.anchor or j in draft.feeding for j in users]
            if any(feeds) and not all(feeds):
                return None
            if draft.anchor in users and not self._may_feed(i, draft.anchor):
                return None
            if any(feeds) and self._reads_often(draft.anchor) and not self._permutes(i):
                return None
            if any(not self._may_move(i, j) for j in users if j != draft.anchor):
                return None
            if any(self.patterns[j] is Pattern.OPAQUE and j not in self.updated for j in users):
                return None
            if all(feeds):
                draft.feeding.add(i)
        draft.size += 1
        return draft

    def _is_epilogue(self, i: int, draft: _Draft) -> bool:
        """Whether everything between an anchor and its group's output is elementwise on the anchor's shape."""
        shape = self._shape(i)
        reached, pending = set[int](), list(self.users[i])
        while pending:
            j = pending.pop()
            if j not in reached:
                reached.add(j)
                if self.patterns[j] not in _ARITHMETIC or self._shape(j) != shape:
                    return False
                if j != draft.root:
                    pending += self.users[j]
        return True

    def _may_feed(self, i: int, anchor: int | None) -> bool:
        """Whether it does no harm that an anchor reads through this call."""
        assert anchor is not None
        if self._reads_often(anchor):
            return self._permutes(i)
        return self.patterns[i] is Pattern.INJECTIVE or self._is_larger(i, anchor) is True

    def _reads_often(self, anchor: int | None) -> bool:
        """Whether an anchor reads each element several times."""
        return anchor is not None and self.patterns[anchor] is not Pattern.REDUCTION

    def _permutes(self, i: int) -> bool:
        value = self.block.bindings[i].value
        return isinstance(value, OpCall) and lookup(value.operator).permutes

    def _may_move(self, i: int, user: int) -> bool:
        if self.patterns[i] is Pattern.INJECTIVE or user in self.updated:
            return True
        return self._is_larger(user, i) is False

    def _shape(self, i: int) -> Shape:
        type_ = self.block.bindings[i].targets[0].type
        assert isinstance(type_, TensorType)
        return type_.shape

    def _is_larger(self, i: int, j: int) -> bool | None:
        """Whether a call's result has more elements than another's; None where that depends on the run."""
        a, b = product(self._shape(i)), product(self._shape(j))
        return facts().at_least(a, add(b, 1))


def _reads(value: Expr) -> Iterator[Atom]:
    """What an expression reads of the block that it stands in, also inside its own blocks."""
    yield from operands(value)
    for block in blocks(value):
        yield from free_variables(block)
