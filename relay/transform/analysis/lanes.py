"""Loops whose rounds can run in the lanes of vector registers.

    loop for i < n (out = zeros(n)) { c = index(cs, i); y = loop .. { .. }; out' = index_update(out, i, y); next out' }

Each round is a small program of scalars, or of arrays of a few elements, with loops and branches of its own. It reads
and writes its own rows of the loop's arrays, reads what does not change anywhere, and adds to sums. So several rounds
can be computed in lock step, one in each lane, and parts of all rounds by several threads
(`relay/codegen/kernels/lanes`).

Loops of a round may end at different times, and branches be taken differently; stacks are the tapes of a round's loops.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import attrs

from relay.ir.dims import ANY, Dim, product, subtract
from relay.ir.expr import (
    Assert,
    Atom,
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
    Next,
    OpCall,
    Project,
    StackGet,
    StackLength,
    StackNew,
    StackPush,
    Var,
    Yield,
)
from relay.ir.sizes.data_dependent import bound_dims
from relay.ir.traverse import all_blocks, blocks, bound_variables, operands, terminator_operands, walk
from relay.ir.types import BaseType, StackType, TensorType, TupleType, Type
from relay.operator import Pattern, lookup
from relay.operator.facets import IndexKind
from relay.transform.analysis.accumulation import accumulates, terminators
from relay.transform.analysis.value_ranges import ValueRanges

MOST_ELEMENTS = 8
"""The largest number of elements of an array of one round."""

LEAST_ROUNDS = 64
"""The smallest number of rounds of a loop, if the number is known."""

BATCHED = ("select", "partition")
"""The values of `divergence` for loops that may not stay."""

FEW_ROUNDS = 8
"""The number of rounds of an inner loop up to which they are few."""

MACHINE_TYPES = frozenset(
    {"float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "bool"}
)


class NoLanes(Exception):
    """A loop cannot run in lanes; the text says why."""


@attrs.frozen(eq=False)
class LaneLoop:
    """A loop that can run in lanes. `arrays` and `sums` are the positions of parameters; the others stay as they are.
    Round i has row i of the arrays, or, if `descending`, row count - 1 - i. `reads` are the variables that are rows of
    the round from arrays outside of the loop, `tapes` arrays that the loops of a round fill."""

    loop: Loop
    arrays: tuple[int, ...]
    sums: tuple[int, ...]
    descending: bool
    reads: frozenset[Var]
    tapes: frozenset[Var]


def lane_loops(function: Function) -> dict[Loop, LaneLoop]:
    """The loops of a function that can run in lanes, none inside of another."""
    if not any(isinstance(b.value, Loop) and b.value.counter is not None for b in walk(function.body)):
        return {}
    ranges = ValueRanges(function.body)
    found: dict[Loop, LaneLoop] = {}
    pending: list[Block] = [function.body]
    while pending:
        for binding in pending.pop().bindings:
            if isinstance(binding.value, Loop):
                try:
                    found[binding.value] = lane_loop(binding.value, ranges)
                    continue
                except NoLanes:
                    pass
            pending += blocks(binding.value)
    return found


def prefers_lanes(plan: LaneLoop) -> bool:
    """True if a loop is better off in lanes than with arrays of all rounds for each of its values: where loops
    inside run for long, or not equally long in all rounds."""
    inner = [b.value for b in walk(plan.loop.body) if isinstance(b.value, Loop)]
    counts = [loop.counter.count if loop.counter is not None else None for loop in inner]
    return not all(isinstance(count, Constant) and int(count.value) <= FEW_ROUNDS for count in counts)


def lane_loop(loop: Loop, ranges: ValueRanges) -> LaneLoop:
    """The plan of a loop that runs in lanes. Raises NoLanes if it cannot."""
    return _LaneAnalysis(loop, ranges).run()


class _LaneAnalysis:
    def __init__(self, loop: Loop, ranges: ValueRanges) -> None:
        self.loop, self.ranges = loop, ranges
        self.inside = {t for b in walk(loop.body) for t in (*b.targets, *bound_variables(b.value))}
        self.rows: dict[Var, int] = {}  # the loop's arrays as they are at some place, by their variables
        self.descending: bool | None = None
        self.count: Dim = 0
        self.directions: tuple[set[Var], set[Var]] = (set(), set())
        self.reads: set[Var] = set()
        self.uniform: set[Var] = set()  # numbers that are the same in all lanes
        self.tapes = _tapes(loop)
        self.empty = {b.targets[0] for b in walk(loop.body) if isinstance(b.value, StackNew)}

    def run(self) -> LaneLoop:
        loop = self.loop
        if loop.counter is None or not isinstance(loop.body.terminator, Next):
            raise NoLanes("it may end early")
        count = self.ranges.count(loop)
        if count is None or bound_dims(loop.body):
            raise NoLanes("it has sizes that are known only at run time")
        if isinstance(count, int) and count < LEAST_ROUNDS:
            raise NoLanes("it has few rounds")
        if not any(isinstance(b.value, Loop) for b in walk(loop.body)):
            raise NoLanes("there is no loop in its rounds")
        end = loop.body.terminator
        arrays, sums = [], []
        for number, (parameter, value) in enumerate(zip(loop.parameters, end.values, strict=True)):
            if value is parameter:
                continue
            if _is_small(parameter.type) and accumulates(loop.body, parameter, value):
                sums.append(number)
            elif isinstance(parameter.type, TensorType) and parameter.type.shape:
                self.rows[parameter] = number
                arrays.append(number)
            else:
                raise NoLanes(f"a round needs {parameter.name} of the one before")
        if not arrays and not sums:
            raise NoLanes("its rounds write no rows")
        self.count = count
        self._find_places()
        self._block(loop.body, [], outermost=True)
        for number in arrays:
            value = end.values[number]
            if not isinstance(value, Var) or self.rows.get(value) != number:
                raise NoLanes("a round passes on more than the rows that it has written")
        return LaneLoop(loop, tuple(arrays), tuple(sums), bool(self.descending), frozenset(self.reads), self.tapes)

    def _find_places(self) -> None:
        """The integers that are the number of the round, and those that count down to it."""
        assert self.loop.counter is not None
        index = self.loop.counter.index
        number = self.ranges.scalar_dim(index)
        assert number is not None
        up, down = {index}, set()
        backward = subtract(subtract(self.count, 1), number)
        for binding in self.loop.body.bindings:
            for target in binding.targets:
                found = self.ranges.scalar_dim(target)
                if found is not None and found == number:
                    up.add(target)
                elif found is not None and found == backward:
                    down.add(target)
        self.directions = up, down

    def _is_place(self, atom: Atom) -> bool:
        """True if an index is that of the round's own row: all are in one direction."""
        if not isinstance(atom, Var):
            return False
        for descending, places in enumerate(self.directions):
            if atom in places and self.descending in (None, bool(descending)):
                self.descending = bool(descending)
                return True
        return False

    # ---- blocks

    def _block(self, block: Block, labels: Sequence[LoopLabel], outermost: bool = False) -> None:
        for binding in block.bindings:
            self._binding(binding, labels, outermost)
        match block.terminator:
            case Next(label) | Exit(label):
                if label is not self.loop.label and (not labels or label is not labels[-1]):
                    raise NoLanes("it leaves several loops at once")
            case Yield() | Dead():
                pass

    def _binding(self, binding: Binding, labels: Sequence[LoopLabel], outermost: bool) -> None:
        value = binding.value
        for target in binding.targets:
            self._check_type(target, isinstance(value, OpCall))
        match value:
            case OpCall():
                self._call(value, binding.targets[0], outermost)
            case Var() | Constant():
                if isinstance(value, Var) and value in self.rows:
                    self.rows[binding.targets[0]] = self.rows[value]
            case MakeTuple() | Project() | Extent() | Assert() | StackNew():
                pass
            case StackLength(stack) | StackGet(stack):
                self._check_entry(stack)
            case StackPush(stack, _):
                if not labels:
                    raise NoLanes("a stack grows outside of a loop")
                self._check_entry(stack)
            case If(arms, orelse):
                for arm in arms:
                    self._block(arm.condition, labels)
                    self._block(arm.body, labels)
                self._block(orelse, labels)
            case Loop():
                self._inner_loop(value, labels)
            case _:
                raise NoLanes("a round has an effect, or calls a function")
        if not isinstance(value, OpCall | Var):
            for atom in operands(value):
                if atom in self.rows:
                    raise NoLanes("a round uses the whole of an array that the loop changes")

    def _inner_loop(self, loop: Loop, labels: Sequence[LoopLabel]) -> None:
        for parameter, initial in zip(loop.parameters, loop.initial, strict=True):
            self._check_type(parameter, False)
            if initial in self.rows:
                raise NoLanes("a loop inside changes an array of the loop")
            if isinstance(parameter.type, StackType):
                if initial not in self.empty:
                    raise NoLanes("a stack is filled in several loops")
                self._check_stack(loop, parameter)
        if loop.counter is not None and self._is_uniform(loop.counter.count):
            self.uniform.add(loop.counter.index)
        self._block(loop.body, [*labels, loop.label])

    def _is_uniform(self, atom: Atom) -> bool:
        """True if a number is the same in all lanes."""
        return atom in self.uniform or atom not in self.inside

    def _check_stack(self, loop: Loop, parameter: Var) -> None:
        """Each round of a loop inside pushes one entry, or hands on the stack as it is in all of them."""
        pushed = {b.targets[0]: b.value for b in walk(loop.body) if isinstance(b.value, StackPush)}
        position = loop.parameters.index(parameter)
        for terminator in terminators(loop.body, loop.label):
            if isinstance(terminator, Next):
                value = terminator.values[position]
                push = pushed.get(value) if isinstance(value, Var) else None
                if push is None or push.stack is not parameter:
                    raise NoLanes("a round changes a stack in several ways")

    def _check_entry(self, stack: Atom) -> None:
        type_ = stack.type if isinstance(stack, Var) else None
        assert isinstance(type_, StackType)
        if stack not in self.inside:
            raise NoLanes("a round reads the tape of another loop")
        if not _is_entry(type_):
            raise NoLanes("a tape has large entries")

    def _check_type(self, variable: Var, made_by_call: bool) -> None:
        type_ = variable.type
        if isinstance(type_, TensorType) and (_is_small(type_) or made_by_call):
            return  # a call may make an array of the loop: `_call` looks
        if isinstance(type_, TupleType) and all(map(_is_entry, type_.items)):
            return
        if isinstance(type_, StackType):
            return
        if variable in self.rows or variable in self.tapes:
            return
        raise NoLanes(f"{variable.name} of a round is large")

    def _call(self, call: OpCall, target: Var, outermost: bool) -> None:
        operator = lookup(call.operator)
        first = call.arguments[0] if call.arguments else None
        if operator.indexing.kind is IndexKind.ROW and first is not None:
            self._read(first, call.arguments[1], target)
            return
        if target in self.tapes:
            if first is not None and not self._is_uniform(call.arguments[1]):
                raise NoLanes("a tape has another place in each lane")
            return
        if first in self.rows:
            if call.operator not in ("index_update", "index_add") or not self._is_place(call.arguments[1]):
                raise NoLanes("a round writes another row than its own, or uses the whole array")
            if not outermost:
                raise NoLanes("a row is written in a branch or loop")
            assert isinstance(first, Var)
            self.rows[target] = self.rows[first]
            self._check_extent(first)
            return
        if any(a in self.rows for a in call.arguments):
            raise NoLanes("a round uses the whole of an array that the loop changes")
        atoms = (*call.arguments, target)
        small = all(_is_small(a.type) for a in atoms if isinstance(a, Var | Constant))
        kinds = (Pattern.ELEMENTWISE, Pattern.BROADCAST, Pattern.INJECTIVE, Pattern.REDUCTION)
        if not small or operator.pattern not in kinds or operator.compute is None:
            raise NoLanes(f"{call.operator} is not computed in lanes")
        scalars = all(_is_scalar(a.type) for a in atoms if isinstance(a, Var | Constant))
        if scalars and not operator.requirements and all(map(self._is_uniform, call.arguments)):
            self.uniform.add(target)

    def _read(self, array: Atom, place: Atom, target: Var) -> None:
        if not _is_small(target.type):
            raise NoLanes("a row is large")
        if array in self.rows:
            if not self._is_place(place):
                raise NoLanes("a round reads another row than its own")
            self._check_extent(array)
        elif array in self.tapes:
            if not self._is_uniform(place):
                raise NoLanes("a tape has another place in each lane")
        elif array in self.inside:
            raise NoLanes("an array of a round is read at an index")
        elif not self._extent_is(array, 1):
            raise NoLanes("an array that is read may be empty")
        elif self._is_place(place):
            self.reads.add(target)

    def _check_extent(self, array: Atom) -> None:
        """Raises NoLanes if an array may be empty. With fewer rows than rounds an assertion fails before any write."""
        if not self._extent_is(array, 1):
            raise NoLanes("a round may write a row that is not there")

    def _extent_is(self, array: Atom, least: Dim) -> bool:
        """True if an array has at least this many rows."""
        type_ = array.type if isinstance(array, Var | Constant) else None
        if not isinstance(type_, TensorType) or ANY in type_.shape:
            return False
        return self.ranges.at_least(type_.shape[0], least) is True


def _tapes(loop: Loop) -> frozenset[Var]:
    """Arrays of one round that a loop inside fills row by row, and that are read only after it: undefined at the start,
    carried by the loop, after each write, and at its end."""
    uses: Counter[Atom] = Counter(a for b in walk(loop.body) for a in operands(b.value))
    uses.update(a for inner in all_blocks(loop.body) for a in terminator_operands(inner.terminator))
    made = {t: b.value for b in walk(loop.body) for t in b.targets if isinstance(b.value, OpCall)}
    rows = Counter(c.arguments[0] for c in made.values() if lookup(c.operator).indexing.kind is IndexKind.ROW)
    found: set[Var] = set()
    for binding in walk(loop.body):
        inner = binding.value
        if not isinstance(inner, Loop) or inner.counter is None:
            continue
        ends = terminators(inner.body, inner.label)
        if len(ends) != 1 or not isinstance(ends[0], Next):
            continue
        for number, (parameter, initial) in enumerate(zip(inner.parameters, inner.initial, strict=True)):
            start = made.get(initial) if isinstance(initial, Var) else None
            after, result = ends[0].values[number], binding.targets[number]
            update = made.get(after) if isinstance(after, Var) else None
            if start is None or update is None or not lookup(start.operator).memory.uninitialized:
                continue
            if update.operator != "index_update" or update.arguments[0] is not parameter:
                continue
            assert isinstance(initial, Var)
            assert isinstance(after, Var)
            once = uses[initial] == uses[parameter] == uses[after] == 1 and uses[result] == rows[result]
            if once and _has_small_rows(parameter.type):
                found |= {initial, parameter, after, result}
    return frozenset(found)


def _is_entry(type_: Type) -> bool:
    """True if a part of an entry is small, or a stack of such entries."""
    if not isinstance(type_, StackType):
        return _is_small(type_)
    items = type_.element.items if isinstance(type_.element, TupleType) else (type_.element,)
    return all(map(_is_entry, items))


def _has_small_rows(type_: Type | None) -> bool:
    if not isinstance(type_, TensorType) or not type_.shape or ANY in type_.shape:
        return False
    return _is_small(TensorType(type_.base, type_.shape[1:]))


def _is_small(type_: Type | None) -> bool:
    """True if an array has few elements, of a dtype that machines have."""
    if (
        not isinstance(type_, TensorType)
        or not isinstance(type_.base, BaseType)
        or type_.base.name not in MACHINE_TYPES
    ):
        return False
    elements = product(type_.shape)
    return isinstance(elements, int) and 1 <= elements <= (1 if type_.base.name == "bool" else MOST_ELEMENTS)


def _is_scalar(type_: Type | None) -> bool:
    return isinstance(type_, TensorType) and type_.shape == ()
