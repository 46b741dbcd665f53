"""Buffer donation: results that are computed in the memory of donated arguments.

A result takes the memory of an argument of its dtype and shape if nothing reads the argument once the result is begun.
The code that computes the result may read the argument itself if each element of the result is computed from the same
element of it, as in `w - 0.1 * gradient`: kernels write each element of their result once, after all that it is
computed from has been read. It may also be the array that an operator updates in place, or that a loop starts with.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

import attrs

from relay.codegen.lowering.layout import Layout, TensorLayout, TupleLayout, leaves
from relay.codegen.lowering.memory.aliasing import MemorySharing
from relay.codegen.lowering.memory.replaced_operands import each_from_its_own
from relay.codegen.tvm import tir
from relay.ir.expr import (
    Ascribe,
    Atom,
    Binding,
    Call,
    Construct,
    Exit,
    Function,
    If,
    Loop,
    MakeTuple,
    Match,
    OpCall,
    Project,
    Var,
    Yield,
)
from relay.ir.traverse import all_blocks, blocks, bound_variables, operands, returns, terminator_operands, walk
from relay.ir.types import BFLOAT16, BOOL, TensorType
from relay.transform.fusion.fusion_groups import FusionGroup, in_place_operands

Part: TypeAlias = "int | tuple[Part, ...] | frozenset[int]"
"""The part of the arguments that a variable is a view of: a leaf by its position, a tuple, or something in some
leaves."""

NONE: frozenset[int] = frozenset()


@attrs.frozen
class Donation:
    """`pairs`: by the position of a result's leaf, that of the argument's leaf whose memory it takes. `made`: the
    variables that may be made there, with the leaf."""

    pairs: Mapping[int, int]
    made: Mapping[Var, int]


NOTHING = Donation({}, {})


def donation(
    function: Function, parameters: Sequence[Layout], result: Layout, donated: frozenset[int], sharing: MemorySharing
) -> Donation:
    """The plan for an entry that is not called by others. `donated` are the positions of its donated parameters."""
    body, terminator = function.body, function.body.terminator
    if not donated or any(end is not terminator for end in returns(function)):
        return NOTHING
    match terminator:
        case Yield(values) | Exit(_, values):
            pass
        case _:
            return NOTHING
    given = [leaf for layout in parameters for leaf in leaves(layout)]
    free = _donated_leaves(parameters, donated)
    views = _ArgumentViews(function, parameters)
    defined = {target: binding for binding in body.bindings for target in binding.targets}
    returned = list(_results(values, [result], defined))
    wanted = list(leaves(result))
    times = _AccessTimes(function, sharing, views)
    ending = views.viewed_leaves(terminator_operands(terminator))
    pairs: dict[int, int] = {}
    made: dict[Var, int] = {}
    # First those that are given back as they came, then those that are computed from what they replace.
    for choice in (_is_same_leaf, _computed_from, _fits):
        for position, (atom, layout) in enumerate(zip(returned, wanted, strict=True)):
            if position in pairs or atom is None or tir.by_value(layout.base, layout.elements):
                continue
            for leaf in sorted(free - set(pairs.values())):
                if given[leaf] != layout or not choice(atom, leaf, views, times):
                    continue
                if views.part(atom) != leaf:
                    if leaf in ending or atom in made or not times.allow(atom, leaf):
                        continue
                    made[atom] = leaf
                pairs[position] = leaf
                break
    return Donation(pairs, made)


def _is_same_leaf(atom: Var, leaf: int, views: _ArgumentViews, _: _AccessTimes) -> bool:
    return views.part(atom) == leaf


def _computed_from(atom: Var, leaf: int, views: _ArgumentViews, times: _AccessTimes) -> bool:
    return leaf in times.read_while_made(atom)


def _fits(atom: Var, leaf: int, views: _ArgumentViews, _: _AccessTimes) -> bool:
    return views.part(atom) == NONE


def _donated_leaves(parameters: Sequence[Layout], donated: frozenset[int]) -> set[int]:
    """The positions of donated leaves; not those in values of data types, which may not be there."""
    found: set[int] = set()
    position = 0
    for number, layout in enumerate(parameters):
        for there in _leaf_presence(layout):
            if there and number in donated:
                found.add(position)
            position += 1
    return found


def _leaf_presence(layout: Layout) -> Iterator[bool]:
    """For each leaf, whether it is a tensor that is always there."""
    match layout:
        case TensorLayout():
            yield True
        case TupleLayout(items):
            for item in items:
                yield from _leaf_presence(item)
        case _:
            yield from (False for _ in leaves(layout))


def _results(values: Sequence[Atom], layouts: Sequence[Layout], defined: Mapping[Var, Binding]) -> Iterator[Var | None]:
    """The variable that is each leaf of the result, if it is one."""
    for value, layout in zip(values, layouts, strict=True):
        match layout:
            case TensorLayout():
                yield value if isinstance(value, Var) else None
            case TupleLayout(items):
                made = defined[value].value if isinstance(value, Var) and value in defined else None
                if isinstance(made, MakeTuple):
                    yield from _results(made.items, items, defined)
                else:
                    yield from (None for _ in leaves(layout))
            case _:
                yield from (None for _ in leaves(layout))


class _ArgumentViews:
    """The arguments that each variable of a function is a view of."""

    def __init__(self, function: Function, parameters: Sequence[Layout]) -> None:
        self._parts: dict[Var, Part] = {}
        position = 0
        for variable, layout in zip(function.parameters, parameters, strict=True):
            self._parts[variable], position = _number_leaves(layout, position)
        for binding in walk(function.body):
            match binding.value:
                case Var() as atom:
                    self._parts[binding.targets[0]] = self.part(atom)
                case MakeTuple(items):
                    self._parts[binding.targets[0]] = tuple(map(self.part, items))
                case Project(atom, index):
                    whole = self.part(atom)
                    self._parts[binding.targets[0]] = whole[index] if isinstance(whole, tuple) else whole
                case Ascribe(atom):
                    self._parts[binding.targets[0]] = self.part(atom)
                case Construct(_, _, fields):
                    self._parts[binding.targets[0]] = frozenset(self.viewed_leaves(fields))
                case Match(value, arms):
                    whole = frozenset(self.viewed_leaves((value,)))
                    self._parts.update((field, whole) for arm in arms for field in arm.fields)
                case _:
                    pass

    def part(self, atom: Atom) -> Part:
        return self._parts.get(atom, NONE) if isinstance(atom, Var) else NONE

    def viewed_leaves(self, atoms: Iterable[Atom]) -> set[int]:
        """The leaves that atoms are views of."""
        return {leaf for atom in atoms for leaf in _leaves_of(self.part(atom))}


def _leaves_of(part: Part) -> Iterator[int]:
    if isinstance(part, int):
        yield part
    elif isinstance(part, frozenset):
        yield from part
    else:
        for item in part:
            yield from _leaves_of(item)


def _number_leaves(layout: Layout, position: int) -> tuple[Part, int]:
    if isinstance(layout, TensorLayout):
        return position, position + 1
    if isinstance(layout, TupleLayout):
        items: list[Part] = []
        for item in layout.items:
            part, position = _number_leaves(item, position)
            items.append(part)
        return tuple(items), position
    count = sum(1 for _ in leaves(layout))
    return frozenset(range(position, position + count)), position + count


class _AccessTimes:
    """The times in a function's outermost block at which the arguments' leaves are read, and variables are computed."""

    def __init__(self, function: Function, sharing: MemorySharing, views: _ArgumentViews) -> None:
        self._views = views
        self._steps: list[tuple[Binding, FusionGroup | None]] = []
        self._reads: list[set[int]] = []
        self._made: dict[Var, int] = {}  # where a variable is made, or one that shares its memory
        classes: dict[Var, int] = {}
        for time, (position, group) in enumerate(sharing.order[function.body]):
            binding = function.body.bindings[position]
            self._steps.append((binding, group))
            self._reads.append(set(_reads(group.bindings if group is not None else (binding,), views)))
            for variable in group.outputs if group is not None else _bound_variables(binding):
                home = sharing.home.get(variable)
                if home is not None:
                    classes.setdefault(home, time)
        self._last = {leaf: time for time, reads in enumerate(self._reads) for leaf in reads}
        for time, (binding, group) in enumerate(self._steps):
            for variable in group.outputs if group is not None else binding.targets:
                home = sharing.home.get(variable)
                self._made[variable] = time if home is None else classes[home]

    def read_while_made(self, variable: Var) -> set[int]:
        """The leaves that the step reads which makes a variable."""
        return self._reads[self._made[variable]] if variable in self._made else set()

    def allow(self, variable: Var, leaf: int) -> bool:
        """True if a variable may be computed in the memory of a leaf."""
        time = self._made.get(variable)
        if time is None or self._last.get(leaf, -1) > time:
            return False
        binding, group = self._steps[time]
        if not isinstance(binding.value, OpCall | Call | If | Match | Loop):
            return False
        if leaf not in self._reads[time]:
            return True
        if group is not None:
            return self._replaces(group, leaf) or self._each_from_its_own(group, variable, leaf)
        return isinstance(binding.value, Loop) and variable in binding.targets and self._starts(binding, variable, leaf)

    def _replaces(self, group: FusionGroup, leaf: int) -> bool:
        """True if a group updates the leaf in place, and reads it for nothing else."""
        reading = [a for b in group.bindings for a in operands(b.value) if leaf in self._views.viewed_leaves((a,))]
        return len(reading) == 1 and any(self._views.part(old) == leaf for old in in_place_operands(group.bindings[-1]))

    def _each_from_its_own(self, group: FusionGroup, variable: Var, leaf: int) -> bool:
        """True if each element of a result is computed from the same element of the leaf, and of no other."""
        if len(group.outputs) > 1 and _is_short(variable):
            return False  # it may be stored before another one is computed
        return each_from_its_own(group, variable, lambda atom: leaf in self._views.viewed_leaves((atom,)))

    def _starts(self, binding: Binding, variable: Var, leaf: int) -> bool:
        """True if a loop only starts with the leaf, where the variable is its result."""
        loop = binding.value
        assert isinstance(loop, Loop)
        place = binding.targets.index(variable)
        starting = [n for n, initial in enumerate(loop.initial) if leaf in self._views.viewed_leaves((initial,))]
        inside = set(_reads(loop.body.bindings, self._views))
        ending = self._views.viewed_leaves(a for b in all_blocks(loop.body) for a in terminator_operands(b.terminator))
        counts = loop.counter is not None and leaf in self._views.viewed_leaves((loop.counter.count,))
        return starting == [place] and leaf not in ending and leaf not in inside and not counts


def _is_short(variable: Var) -> bool:
    """True if a tensor's elements cannot be names of a kernel (`kernels.elementwise`)."""
    return isinstance(variable.type, TensorType) and variable.type.base in (BOOL, BFLOAT16)


def _reads(bindings: Sequence[Binding], views: _ArgumentViews) -> Iterator[int]:
    """The leaves that bindings read, also in their blocks. Making and taking apart of tuples reads nothing."""
    for binding in bindings:
        if not isinstance(binding.value, MakeTuple | Project | Var):
            yield from views.viewed_leaves(operands(binding.value))
        for block in blocks(binding.value):
            yield from _reads(block.bindings, views)
            yield from views.viewed_leaves(terminator_operands(block.terminator))


def _bound_variables(binding: Binding) -> Iterator[Var]:
    """The variables that a binding binds, also in its blocks."""
    yield from binding.targets
    yield from bound_variables(binding.value)
    for block in blocks(binding.value):
        for inner in walk(block):
            yield from inner.targets
            yield from bound_variables(inner.value)
