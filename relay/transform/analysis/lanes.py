"""Loops whose rounds can run in the lanes of vector registers.

    loop for i < n (out = zeros(n)) { c = index(cs, i); y = loop .. { .. }; out' = index_update(out, i, y); next out' }

Each round is a small program of scalars, or of arrays of a few elements, with loops and branches of its own. It reads
and writes its own rows of the loop's arrays, reads what does not change anywhere, and adds to sums. So several rounds
can be computed in lock step, one in each lane, and parts of all rounds by several threads
(`relay/codegen/kernels/lanes`).

Loops of a round may end at different times, and branches be taken differently; stacks are the tapes of a round's loops.
"""

from __future__ import annotations

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
from relay.operator import ADDITION, Pattern, lookup
from relay.operator.facets import IndexKind
from relay.transform.analysis.value_ranges import ValueRanges

MOST_ELEMENTS = 8
"""How many elements an array of one round has at most."""

LEAST_ROUNDS = 64
"""How many rounds a loop has at least, if the number is known."""

FEW_ROUNDS = 8
"""How many rounds of a loop inside are few."""

MACHINE_TYPES = frozenset(
    {"float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "bool"}
)


class NoLanes(Exception):
    """A loop cannot run in lanes; the text says why."""


@attrs.frozen(eq=False)
class LaneLoop:
    """A loop that can run in lanes. `arrays` and `sums` are the positions of parameters; the others stay as they are.
    Round i has row i of the arrays, or, if `descending`, row count - 1 - i. `reads` are the variables that are rows of
    the round from arrays outside of the loop."""

    loop: Loop
    arrays: tuple[int, ...]
    sums: tuple[int, ...]
    descending: bool
    reads: frozenset[Var]


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
    """Whether a loop is better off in lanes than with arrays of all rounds for each of its values: where loops inside
    run for long, or not equally long in all rounds."""
    inner = [b.value for b in walk(plan.loop.body) if isinstance(b.value, Loop)]
    counts = [loop.counter.count if loop.counter is not None else None for loop in inner]
    return not all(isinstance(count, Constant) and int(count.value) <= FEW_ROUNDS for count in counts)


def lane_loop(loop: Loop, ranges: ValueRanges) -> LaneLoop:
    """How a loop can run in lanes. Raises NoLanes if it cannot."""
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
        self.accumulators: set[Var] = set()
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
            if isinstance(parameter.type, TensorType) and self._is_sum(parameter, value):
                sums.append(number)
                self.accumulators.add(parameter)
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
        self._check_sums([end.values[number] for number in sums])
        return LaneLoop(loop, tuple(arrays), tuple(sums), bool(self.descending), frozenset(self.reads))

    def _check_sums(self, results: Sequence[Atom]) -> None:
        """Nothing but the addition reads a sum, and nothing its result."""
        used = [a for b in walk(self.loop.body) for a in operands(b.value)]
        used += [a for inner in all_blocks(self.loop.body) for a in terminator_operands(inner.terminator)]
        for sum_ in (*self.accumulators, *results):
            if used.count(sum_) != 1:
                raise NoLanes("a round uses a sum")

    def _is_sum(self, parameter: Var, value: Atom) -> bool:
        """Whether a round only adds something to a parameter."""
        if not _is_small(parameter.type):
            return False
        made = {b.targets[0]: b.value for b in self.loop.body.bindings if len(b.targets) == 1}
        call = made.get(value) if isinstance(value, Var) else None
        if not isinstance(call, OpCall) or call.operator != ADDITION or parameter not in call.arguments:
            return False
        return value.type == parameter.type and call.arguments[0] is not call.arguments[1]  # type: ignore[union-attr]

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
        """Whether an index is that of the round's own row: all are in one direction."""
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
        self._block(loop.body, [*labels, loop.label])

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
        items = type_.element.items if isinstance(type_.element, TupleType) else (type_.element,)
        if not all(_is_small(item) for item in items):
            raise NoLanes("a tape has large entries")

    def _check_type(self, variable: Var, made_by_call: bool) -> None:
        type_ = variable.type
        if isinstance(type_, TensorType) and (_is_small(type_) or made_by_call):
            return  # a call may make an array of the loop: `_call` looks
        if isinstance(type_, TupleType) and all(map(_is_small, type_.items)):
            return
        if isinstance(type_, StackType):
            return
        if variable in self.rows:
            return
        raise NoLanes(f"{variable.name} of a round is large")

    def _call(self, call: OpCall, target: Var, outermost: bool) -> None:
        operator = lookup(call.operator)
        first = call.arguments[0] if call.arguments else None
        if operator.indexing.kind is IndexKind.ROW and first is not None:
            self._read(first, call.arguments[1], target)
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
        kinds = (Pattern.ELEMENTWISE, Pattern.BROADCAST, Pattern.INJECTIVE)
        if not small or operator.pattern not in kinds or operator.compute is None:
            raise NoLanes(f"{call.operator} is not computed in lanes")

    def _read(self, array: Atom, place: Atom, target: Var) -> None:
        if not _is_small(target.type):
            raise NoLanes("a row is large")
        if array in self.rows:
            if not self._is_place(place):
                raise NoLanes("a round reads another row than its own")
            self._check_extent(array)
        elif array in self.inside:
            raise NoLanes("an array of a round is read at an index")
        elif not self._extent_is(array, 1):
            raise NoLanes("an array that is read may be empty")
        elif self._is_place(place):
            self.reads.add(target)

    def _check_extent(self, array: Atom) -> None:
        if not self._extent_is(array, self.count):
            raise NoLanes("a round may write a row that is not there")

    def _extent_is(self, array: Atom, least: Dim) -> bool:
        """Whether an array has at least so many rows."""
        type_ = array.type if isinstance(array, Var | Constant) else None
        if not isinstance(type_, TensorType) or ANY in type_.shape:
            return False
        return self.ranges.at_least(type_.shape[0], least) is True


def terminators(block: Block, label: LoopLabel) -> list[Next | Exit]:
    """The ends of rounds of a loop in a block of it."""
    found: list[Next | Exit] = []
    pending = [block]
    while pending:
        here = pending.pop()
        if isinstance(here.terminator, Next | Exit) and here.terminator.label is label:
            found.append(here.terminator)
        for binding in here.bindings:
            pending += blocks(binding.value)
    return found


def _is_small(type_: Type | None) -> bool:
    """Whether an array has few elements, of a dtype that machines have."""
    if (
        not isinstance(type_, TensorType)
        or not isinstance(type_.base, BaseType)
        or type_.base.name not in MACHINE_TYPES
    ):
        return False
    elements = product(type_.shape)
    return isinstance(elements, int) and 1 <= elements <= (1 if type_.base.name == "bool" else MOST_ELEMENTS)
