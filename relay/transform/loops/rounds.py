"""The body of a loop evaluated for all its rounds at once, for loop vectorization.

The value of a variable of the body is one of four: a value that is the same in all rounds or has the rounds as its
first axis, an array of the loop of which each round has one row, a tuple of these, or the counter.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol, TypeAlias

import attrs

from relay.errors import Span
from relay.ir.dims import ANY, Dim, add
from relay.ir.expr import (
    Arm,
    Assert,
    Atom,
    Binding,
    Block,
    Call,
    Constant,
    Counter,
    Derivative,
    Expr,
    Extent,
    Global,
    If,
    Loop,
    LoopLabel,
    MakeTuple,
    Next,
    OpCall,
    Project,
    Var,
    Yield,
)
from relay.ir.sizes.facts import facts
from relay.ir.traverse import count_bindings, walk
from relay.ir.types import BaseType, TensorType, TupleType, Type
from relay.operator import Emitter, Pattern, Value, batch_call, lookup
from relay.operator.batching import EXAMPLES, batching_rule
from relay.operator.facets import LOOP, IndexKind
from relay.transform.analysis.loop_analysis import bound_in, is_too_large, likely, may_fail, scales_cotangents
from relay.transform.analysis.row_places import Place, affine_place, moved_axis, padded_rows, rows_at
from relay.transform.analysis.value_ranges import ValueRanges

LARGE_ROUND = 4096
"""The number of elements from which arrays of one round are worth their own kernel, unless products make them."""

MOST_CHOICES = 16
"""The largest number of operators in a branch of which all rounds compute both arms."""

MOST_UNROLLED = 64
"""The largest number of operators in all rounds of an inner loop that is unrolled."""

_EFFECT = "a round has an effect, or calls a function"


class DerivativesOfAll(Protocol):
    """The derivatives of functions that compute several examples."""

    def derivative(self, call: Call, marked: Sequence[bool], count: Dim, counter: Counter) -> Derivative:
        """The derivative whose call takes the place of those of all `count` examples, with a cotangent of each as its
        last argument. Raises Unsupported where there is none."""
        ...


class Limits:
    """Limits: facts about a function, and what is allowed in it."""

    def __init__(
        self,
        body: Block,
        choices: bool,
        max_size: int,
        is_early: bool = False,
        derivatives: DerivativesOfAll | None = None,
        shielded: bool = False,
    ) -> None:
        self.body, self.integers = body, ValueRanges(body)
        self.shielded = shielded  # whether no derivative may come out of an arm for rounds that do not take it
        self.choices, self.max_size, self.is_early = choices, max_size, is_early
        self.derivatives = derivatives
        self.diverges = True  # rounds may take different ways: False where a loop around these should be batched
        self.remaining: list[tuple[Loop, str]] = []  # the loops that stay, and why
        self.in_lanes: list[Loop] = []  # those whose rounds run in lanes
        self.notes: dict[tuple[Span | None, str], None] = {}  # what was chosen in those that do not stay

    def has_rounds(self, loop: Loop) -> bool:
        """True if a loop has always at least one round."""
        count = self.integers.count(loop)
        return count is not None and self.integers.at_least(count, 1) is True


class Unsupported(Exception):
    """A loop cannot be computed for all rounds at once; the text tells why, and `span` what the reason is."""

    span: Span | None = None


@attrs.frozen(eq=False)
class Lane:
    """A value of a round: `value` is the same in all rounds, or has the rounds as its first axis."""

    value: Value
    batched: bool


@attrs.frozen(eq=False)
class OwnRows:
    """An array of the loop of which each round has one row: parameter `number`, with the row as it is now, or None for
    the one that it was."""

    number: int
    row: Lane | None = None


@attrs.frozen(eq=False)
class Items:
    """A tuple."""

    items: tuple[Part, ...]


Part: TypeAlias = Lane | OwnRows | Items
Found: TypeAlias = Part | Place


class Rounds:
    """One loop: its body, evaluated for all rounds."""

    def __init__(self, loop: Loop, count: Dim, limits: Limits) -> None:
        assert loop.counter is not None
        self.loop, self.count, self.limits, self.counter = loop, count, limits, loop.counter
        self.extent = count  # how many rounds are evaluated: all, or those of a part
        self.inside = bound_in(loop)
        self.known: dict[Var, Found] = {self.counter.index: Place()}
        self.mask: Value | None = None  # the rounds for which what is evaluated counts, if not all
        self.arrays: list[Value] = []  # the loop's arrays before it
        self.places: dict[int, Place] = {}  # which row of each a round has
        self.out = Emitter(loop.span)
        self._places: Value | None = None
        self.branch_span = loop.span  # of the branch that is being evaluated
        self.notes: dict[tuple[Span | None, str], None] = {}  # what was chosen where
        self.has_products = any(
            isinstance(b.value, OpCall) and lookup(b.value.operator).pattern is Pattern.OUTPUT_FUSABLE
            for b in walk(loop.body)
        )

    def say(self, span: Span | None, text: str) -> None:
        """Note what was chosen for a branch or loop of the rounds."""
        self.notes[span, text] = None

    def selects(self, then: Block, orelse: Block) -> bool:
        """True if both arms of a branch are cheap, so that all rounds may compute both."""
        return self.limits.choices and are_cheap(then, orelse)

    def bindings(self, targets: Sequence[Var]) -> list[Binding]:
        out = self.out
        for number, (parameter, initial) in enumerate(zip(self.loop.parameters, self.loop.initial, strict=True)):
            type_ = parameter.type
            if not isinstance(type_, TensorType) or not type_.shape or ANY in type_.shape:
                raise Unsupported(f"a round needs {parameter.name} of the one before")
            self.known[parameter] = OwnRows(number)
            self.arrays.append(out.value(initial, type_))
        self._place_value()  # before all, so that it may be used in blocks
        end = self.loop.body.terminator
        assert isinstance(end, Next)
        self._evaluate(self.loop.body.bindings)
        for number, (target, atom) in enumerate(zip(targets, end.values, strict=True)):
            found = self._find(atom)
            if not isinstance(found, OwnRows) or found.number != number:
                raise Unsupported("a round passes on more than the rows that it has written")
            whole = self._written_array(found)
            if whole.type != target.type:
                raise Unsupported("the rows have another type than the array")
            out.emit((target,), whole.atom)
        return out.bindings

    # ---- the loop's arrays

    def _written_array(self, rows: OwnRows) -> Value:
        """An array with its new rows."""
        before = self.arrays[rows.number]
        if rows.row is None:
            return before
        new, place = self._stretched_lane(rows.row), self.places[rows.number]
        low, end = place.ends(self.count)
        pieces = [new if place.step > 0 else new.op("flip", axis=0)]
        if low != 0:
            pieces.insert(0, _slice(before, 0, low))
        if not self._are_equal(before.shape[0], end):
            pieces.append(_slice(before, end, before.shape[0]))
        return pieces[0] if len(pieces) == 1 else self.out.call(lookup("concatenate"), pieces, {"axis": 0})

    def _row_of(self, rows: OwnRows) -> Lane:
        """The row of an array that each round has."""
        if rows.row is not None:
            return rows.row
        found = self._rows_from(Lane(self.arrays[rows.number], False), self.places[rows.number])
        if found is None:
            raise Unsupported("a round reads a row that may not be there")
        return found

    def _enter(self, rows: OwnRows, place: Found) -> None:
        """A round reads or writes an array at a place: it has to be the same in the whole loop, and be there."""
        if not isinstance(place, Place) or self.places.setdefault(rows.number, place) != place or abs(place.step) != 1:
            raise Unsupported("a round reads or writes another row than its own")
        if not place.are_within(self.count, self.arrays[rows.number].shape[0], self.limits.integers):
            raise Unsupported("a round may write a row that is not there")

    def _are_equal(self, left: Dim, right: Dim) -> bool:
        return left == right or facts().equal(left, right) is True

    # ---- values

    def _find(self, atom: Atom) -> Found:
        if isinstance(atom, Var):
            if atom in self.known:
                return self.known[atom]
            if atom in self.inside:
                raise Unsupported(f"a round needs {atom.name} of the one before")
        type_ = atom.type if isinstance(atom, Var | Constant) else None
        if type_ is None:
            raise Unsupported("a function is used as a value")
        return Lane(self.out.value(atom, type_), False)

    def _part(self, atom: Atom) -> Part:
        """A value, which is not the counter itself."""
        found = self._find(atom)
        return self._place_lane(found) if isinstance(found, Place) else found

    def _lane(self, atom: Atom) -> Lane:
        found = self._part(atom)
        if not isinstance(found, Lane):
            name = atom.name if isinstance(atom, Var) else "an array"
            raise Unsupported(f"a round uses the whole of {name}, which the loop changes")
        return found

    def _place_lane(self, place: Place) -> Lane:
        rounds = self._local_value(self._place_value())
        if place.step != 1:
            rounds = rounds * place.step
        if place.offset != 0:
            rounds = rounds + self.out.number(place.offset, rounds.base)
        return Lane(rounds, True)

    def _place_value(self) -> Value:
        """The numbers of all rounds."""
        if self._places is None:
            index = self.counter.index.type
            assert isinstance(index, TensorType) and isinstance(index.base, BaseType)
            attributes: dict[str, Any] = {"start": 0, "stop": self.count, "step": 1, "dtype": index.base}
            self._places = self.out.call(lookup("arange"), (), attributes)
        return self._places

    def _local_value(self, value: Value) -> Value:
        """A value in the block that is being written."""
        return self.out.value(value.atom, value.type)

    def _stretched_lane(self, lane: Lane) -> Value:
        value = self._local_value(lane.value)
        return value if lane.batched else value.op("broadcast_to", shape=(self.extent, *value.shape))

    # ---- blocks

    def _evaluate(self, bindings: Sequence[Binding]) -> None:
        for binding in bindings:
            try:
                self._binding(binding)
            except Unsupported as reason:
                reason.span = reason.span or binding.value.span
                raise

    def _binding(self, binding: Binding) -> None:
        value = binding.value
        match value:
            case OpCall():
                self.known[binding.targets[0]] = self._call(value)
            case Var() | Constant():
                self.known[binding.targets[0]] = self._find(value)
            case Extent():
                self.known[binding.targets[0]] = Lane(self.out.bind(value, value.type, "size"), False)
            case MakeTuple(items):
                self.known[binding.targets[0]] = Items(tuple(map(self._part, items)))
            case Project(whole, index):
                self.known[binding.targets[0]] = self._component(whole, index)
            case Assert(condition, message, span):
                self._assertion(condition, message, span)
            case If():
                self._branch(binding.targets, value)
            case Loop():
                self._inner_loop(binding.targets, value)
            case Call():
                self.known[binding.targets[0]] = self._derivative(value)
            case _:
                raise Unsupported(_EFFECT)

    def _component(self, whole: Atom, index: int) -> Found:
        found = self._find(whole)
        if isinstance(found, Items):
            return found.items[index]
        if isinstance(found, Lane) and not found.batched:
            return Lane(self.out.components(self._local_value(found.value))[index], False)
        raise Unsupported("a tuple of all rounds is taken apart")

    def _assertion(self, condition: Atom, message: str, span: Span | None) -> None:
        lane = self._lane(condition)
        holds = self._local_value(lane.value)
        if self.mask is not None:
            holds = self._local_value(self.mask).op("logical_not").op("logical_or", self._stretched_lane(lane))
            lane = Lane(holds, True)
        if lane.batched:
            holds = holds.op("all")
        self.out.perform(Assert(holds.atom, message, span))

    # ---- calls

    def _call(self, call: OpCall) -> Found:
        row = self._row(call)
        if row is not None:
            return row
        operator = lookup(call.operator)
        lanes = [self._lane(a) for a in call.arguments]
        marked = [lane.batched for lane in lanes]
        values = [self._local_value(lane.value) for lane in lanes]
        if self.mask is not None and operator.requirements and may_fail(call):
            values, marked = self._guarded_operands(call, values, marked)
        if self.mask is not None and self.limits.shielded and not scales_cotangents(call):
            values, marked = self._shielded_operands(values, marked)
        if not any(marked):
            made = self.out.call(operator, values, call.attributes)
        else:
            alone = batching_rule(operator) is LOOP  # such calls have a loop of their own, and leave this one
            if alone and (operator.requirements or self.mask is not None or self.loop.label.name == EXAMPLES):
                raise Unsupported(f"there is no call of {operator.name} on all rounds")
            batched = batch_call(operator, values, marked, call.attributes, loops=alone)
            if batched is None:
                raise Unsupported(f"there is no call of {operator.name} on all rounds")
            made = batched
            self._check_size(made.type, operator.pattern is Pattern.OUTPUT_FUSABLE)
        if isinstance(made.type, TensorType):
            return Lane(made, any(marked))
        return Items(tuple(Lane(item, any(marked)) for item in self.out.components(made)))

    def _derivative(self, call: Call) -> Part:
        """The derivatives of a function in all rounds."""
        if self.limits.derivatives is None or self.mask is not None or self.extent is not self.count:
            raise Unsupported(_EFFECT)
        lanes = [self._lane(a) for a in call.arguments]
        marked = [lane.batched for lane in lanes]
        made = self.limits.derivatives.derivative(call, marked, self.count, self.counter)
        values = [self._local_value(lane.value) for lane in lanes[: len(made.type.parameters) - 1]]
        seed = made.type.parameters[-1]
        assert isinstance(seed, TensorType)
        if len(lanes) == len(made.type.parameters):
            values.append(self._stretched_lane(lanes[-1]))
        else:
            values.append(self.out.call(lookup("ones"), (), {"shape": seed.shape, "dtype": seed.base}))  # type: ignore[dict-item]
        arguments = tuple(value.atom for value in values)
        found = self.out.bind(Call(Global(made.name, made.type), arguments, call.span), made.type.result, "derivatives")
        return self._items(found)

    def _items(self, value: Value) -> Part:
        """The tensors of all rounds in a value."""
        if isinstance(value.type, TupleType):
            return Items(tuple(self._items(item) for item in self.out.components(value)))
        return Lane(value, True)

    def _row(self, call: OpCall) -> Found | None:
        """The value of a call that reads or writes the row of a round, or adds a number to the counter."""
        if call.operator == "index":
            array, place = self._find(call.arguments[0]), self._find(call.arguments[1])
            if isinstance(array, OwnRows):
                self._enter(array, place)
                return self._row_of(array)
            if isinstance(place, Place) and isinstance(array, Lane):
                return self._rows_from(array, place)
        if call.operator == "take":
            array, place = self._find(call.arguments[0]), self._find(call.arguments[1])
            if isinstance(place, Place) and isinstance(array, Lane) and not array.batched:
                first = moved_axis(self._local_value(array.value), call.attributes["axis"])
                return None if first is None else self._rows_from(Lane(first, False), place)
        if call.operator == "index_update":
            array, place, new = map(self._find, call.arguments)
            if isinstance(array, OwnRows):
                self._enter(array, place)
                lane = self._place_lane(new) if isinstance(new, Place) else new
                if not isinstance(lane, Lane):
                    raise Unsupported("a row is not an array")
                return OwnRows(array.number, lane)
        return affine_place(call, self._place_of, self._number)

    def _place_of(self, atom: Atom) -> Place | None:
        found = self.known.get(atom) if isinstance(atom, Var) else None
        return found if isinstance(found, Place) else None

    def _number(self, atom: Atom) -> Dim | None:
        """An integer that is the same in all rounds, as it is in types; None for what is not known there."""
        found = self.known.get(atom) if isinstance(atom, Var) else None
        number = number_of(found.value.atom if isinstance(found, Lane) else atom)
        if number is not None or not isinstance(atom, Var) or atom in self.inside:
            return number
        dim = self.limits.integers.scalar_dim(atom)
        return dim if dim is not None and self.limits.integers.is_of_sizes(dim) else None

    def _rows_from(self, array: Lane, place: Place) -> Lane | None:
        """The rows of an array that is the same in all rounds at a place of each, where all are there, or a few are not
        that only rounds read that do not count."""
        value, integers = self._local_value(array.value), self.limits.integers
        if array.batched:
            return None
        if place.are_within(self.count, value.shape[0], integers):
            return Lane(rows_at(value, place, self.count), True)
        rows = None if self.mask is None else padded_rows(value, place, self.count, integers)
        return None if rows is None else Lane(rows, True)

    def _guarded_operands(
        self, call: OpCall, values: list[Value], marked: list[bool]
    ) -> tuple[list[Value], list[bool]]:
        """The operands of a call that may fail in rounds that do not count, where its index is 0 instead."""
        assert self.mask is not None
        if lookup(call.operator).indexing.kind is not IndexKind.ROW:
            raise Unsupported(f"{call.operator} could fail in a round that does not take its branch")
        array, index = values
        extent, integers = array.shape[1 if marked[0] else 0], self.limits.integers
        place = integers.scalar_dim(call.arguments[1])
        if place is not None and integers.at_least(place, 0) and integers.at_least(extent, add(place, 1)):
            return values, marked
        if integers.at_least(extent, 1) is not True:
            raise Unsupported("an axis may be empty")
        index = self._local_value(self.mask).op("where", index, index.op("zeros_like"))
        return [array, index], [marked[0], True]

    def _shielded_operands(self, values: list[Value], marked: list[bool]) -> tuple[list[Value], list[bool]]:
        """The operands of a call whose derivative may not be finite where rounds do not take its branch: no cotangent
        passes there. (In `where(mask, x, x)` with a constant as the second x.)"""
        assert self.mask is not None
        found, flags = list(values), list(marked)
        for position, value in enumerate(values):
            if not value.base.is_float or isinstance(value.atom, Constant):
                continue
            lane = self._stretched_lane(Lane(value, marked[position]))
            chooser = self._local_value(self.mask).op("reshape", shape=(self.extent, *(1,) * (lane.ndim - 1)))
            found[position], flags[position] = chooser.op("where", lane, lane.op("stop_gradient")), True
        return found, flags

    def _check_size(self, type_: Type, product: bool) -> None:
        """Raise unless an array of all rounds is of a size that pays."""
        if not isinstance(type_, TensorType):
            return
        if ANY in type_.shape or is_too_large(type_, (), self.limits.max_size):
            raise Unsupported("an array of all rounds would be too large")
        single = 1
        for dim in type_.shape[1:]:
            single *= likely(dim)
        if single > LARGE_ROUND and not (product or self.has_products):
            raise Unsupported("the arrays of a round are large enough for kernels of their own")

    # ---- branches

    def _branch(self, targets: Sequence[Var], branch: If) -> None:
        conditions: list[Lane] = []
        for arm in branch.arms:
            if not isinstance(arm.condition.terminator, Yield):
                raise Unsupported(_EFFECT)
        self._evaluate(branch.arms[0].condition.bindings)
        end = branch.arms[0].condition.terminator
        assert isinstance(end, Yield)
        conditions.append(self._lane(end.values[0]))
        rest = branch.orelse
        if len(branch.arms) > 1:  # the other arms as an If of their own
            inner = tuple(Var(t.name, t.type, t.span) for t in targets)
            self.inside.update(inner)
            rest = Block((Binding(inner, If(branch.arms[1:], branch.orelse, branch.span)),), Yield(inner))
        self.branch_span = branch.span
        if conditions[0].batched:
            self._convert_choice(targets, conditions[0].value, branch.arms[0].body, rest)
        else:
            self._uniform(targets, conditions[0].value, branch.arms[0].body, rest, branch)

    def _results(self, body: Block) -> list[Part]:
        self._evaluate(body.bindings)
        if not isinstance(body.terminator, Yield):
            raise Unsupported("a branch leaves the loop")
        return [self._part(a) for a in body.terminator.values]

    def _convert_choice(self, targets: Sequence[Var], condition: Value, then: Block, orelse: Block) -> None:
        """A branch that rounds take differently."""
        outer = self.mask
        found = []
        for body, taken in ((then, True), (orelse, False)):
            here = self._local_value(condition)
            mask = here if taken else here.op("logical_not")
            self.mask = mask if outer is None else self._local_value(outer).op("logical_and", mask)
            found.append(self._results(body))
            self.mask = outer
        for target, first, second in zip(targets, *found, strict=True):
            self.known[target] = self._choice(condition, first, second)

    def _choice(self, condition: Value, first: Part, second: Part) -> Part:
        match first, second:
            case Lane(), Lane():
                if first is second or (first.value.atom is second.value.atom and first.batched == second.batched):
                    return first
                if not isinstance(first.value.type, TensorType):
                    raise Unsupported("rounds take a branch differently, and its results are not arrays")
                a, b = self._stretched_lane(first), self._stretched_lane(second)
                chooser = self._local_value(condition).op("reshape", shape=(self.extent, *(1,) * (a.ndim - 1)))
                return Lane(chooser.op("where", a, b), True)
            case OwnRows(), OwnRows() if first.number == second.number:
                if first.row is second.row:
                    return first
                row = self._choice(condition, self._row_of(first), self._row_of(second))
                assert isinstance(row, Lane)
                return OwnRows(first.number, row)
            case Items(left), Items(right):
                return Items(tuple(self._choice(condition, a, b) for a, b in zip(left, right, strict=True)))
            case _:
                raise Unsupported("rounds take a branch differently, and its results are not arrays")

    def _uniform(self, targets: Sequence[Var], condition: Value, then: Block, orelse: Block, branch: If) -> None:
        """A branch that all rounds take alike: it stays."""
        outside, bodies, found = self.out, [], []
        for body in (then, orelse):
            self.out = Emitter(branch.span)
            found.append(self._results(body))
            bodies.append(self.out)
            self.out = outside
        values: list[list[Value]] = [[], []]
        made = []
        for first, second in zip(*found, strict=True):
            made.append(self._joined_value(first, second, bodies, values))
        condition = self._local_value(condition)
        inner = [Var("t", value.type, branch.span) for value in values[0]]
        blocks = [
            Block(body.all_bindings(), Yield(tuple(v.atom for v in parts)))
            for body, parts in zip(bodies, values, strict=True)
        ]
        test = Block((), Yield((condition.atom,)))
        self.out.emit(tuple(inner), If((Arm(test, blocks[0]),), blocks[1], branch.span))
        fresh = iter(inner)
        for target, shape in zip(targets, made, strict=True):
            self.known[target] = self._with_variables(shape, fresh)

    def _joined_value(self, first: Part, second: Part, bodies: list[Emitter], values: list[list[Value]]) -> Part:
        """The value of a result of both arms; its tensors are appended to `values`, for each arm."""
        match first, second:
            case Lane(), Lane():
                batched = first.batched or second.batched
                for lane, body, parts in zip((first, second), bodies, values, strict=True):
                    value = body.value(lane.value.atom, lane.value.type)
                    if batched and not lane.batched:
                        value = value.op("broadcast_to", shape=(self.extent, *value.shape))
                    parts.append(value)
                if values[0][-1].type != values[1][-1].type:
                    raise Unsupported("a branch has results of several types")
                return Lane(values[0][-1], batched)
            case OwnRows(), OwnRows() if first.number == second.number:
                if first.row is None and second.row is None:
                    return first
                row = self._joined_value(self._row_of(first), self._row_of(second), bodies, values)
                assert isinstance(row, Lane)
                return OwnRows(first.number, row)
            case Items(left), Items(right):
                items = tuple(self._joined_value(a, b, bodies, values) for a, b in zip(left, right, strict=True))
                return Items(items)
            case _:
                raise Unsupported("a branch has results of several types")

    def _with_variables(self, shape: Part, fresh: Iterator[Var]) -> Part:
        """A result with variables in place of its tensors."""
        match shape:
            case Lane():
                variable = next(fresh)
                return Lane(self.out.value(variable, variable.type), shape.batched)
            case OwnRows(number, row):
                made = None if row is None else self._with_variables(row, fresh)
                assert made is None or isinstance(made, Lane)
                return OwnRows(number, made)
            case Items(items):
                return Items(tuple(self._with_variables(item, fresh) for item in items))
            case _:
                raise Unsupported("a branch has results of several types")

    # ---- loops inside

    def _inner_loop(self, targets: Sequence[Var], loop: Loop) -> None:
        """A loop that all rounds run equally often."""
        if loop.counter is None or not isinstance(loop.body.terminator, Next):
            raise Unsupported("a loop inside may end early")
        count = self._lane(loop.counter.count)
        if count.batched:
            raise Unsupported("a loop inside runs a number of rounds that differs")
        if self._is_short(loop):
            self._unroll(targets, loop, loop.counter)
            return
        initial = [self._start(p, self._part(i), loop) for p, i in zip(loop.parameters, loop.initial, strict=True)]
        batched = [isinstance(i, Lane) and i.batched for i in initial]
        known, before = dict(self.known), self.out
        while True:
            body = Emitter(loop.span)
            parameters = [self._parameter(p, i, b) for p, i, b in zip(loop.parameters, initial, batched, strict=True)]
            for parameter, lane in zip(loop.parameters, parameters, strict=True):
                self.known[parameter] = lane
            index = Var(loop.counter.index.name, loop.counter.index.type, loop.counter.index.span)
            self.known[loop.counter.index] = Lane(body.value(index), False)
            self.out = body
            self._evaluate(loop.body.bindings)
            passed = [self._part(a) for a in loop.body.terminator.values]
            self.out = before
            grown = [b or (isinstance(p, Lane) and p.batched) for b, p in zip(batched, passed, strict=True)]
            if grown == batched:
                break
            batched, self.known = grown, dict(known)
        self._emit_loop(targets, loop, (index, count), initial, parameters, passed, body)

    def _is_short(self, loop: Loop) -> bool:
        """True if a loop is a few calls on rows of all rounds, where reads at sums of counters become slices."""
        count = None if loop.counter is None else number_of(loop.counter.count)
        return count is not None and count * count_bindings(loop.body) <= MOST_UNROLLED and not self.has_products

    def _unroll(self, targets: Sequence[Var], loop: Loop, counter: Counter) -> None:
        """The rounds of a loop inside, one after the other."""
        index = counter.index.type
        assert isinstance(index, TensorType) and isinstance(index.base, BaseType)
        values = [self._part(a) for a in loop.initial]
        for number in range(number_of(counter.count) or 0):
            self.known.update(zip(loop.parameters, values, strict=True))
            self.known[counter.index] = Lane(self.out.constant(number, index.base), False)
            self._evaluate(loop.body.bindings)
            assert isinstance(loop.body.terminator, Next)
            values = [self._part(a) for a in loop.body.terminator.values]
        self.known.update(zip(targets, values, strict=True))

    def _start(self, parameter: Var, initial: Part, loop: Loop) -> Part:
        """A parameter's initial value."""
        if not isinstance(initial, OwnRows) or initial.row is not None:
            return initial
        for binding in walk(loop.body):  # which of the rows it is shows where it is read or written
            call = binding.value
            if (
                isinstance(call, OpCall)
                and call.operator in ("index", "index_update")
                and call.arguments[0] is parameter
            ):
                self._enter(initial, self._find(call.arguments[1]))
                return OwnRows(initial.number, self._row_of(initial))
        raise Unsupported("a loop inside passes on a whole array")

    def _parameter(self, parameter: Var, initial: Part, batched: bool) -> Lane | OwnRows:
        """The value of a parameter in the body."""
        match initial:
            case Lane(value):
                shape = (self.extent, *value.shape) if batched and not initial.batched else value.shape
                type_ = TensorType(value.base, shape)
                return Lane(self.out.value(Var(parameter.name, type_, parameter.span)), batched)
            case OwnRows(number, row):
                assert row is not None
                shape = row.value.shape if row.batched else (self.extent, *row.value.shape)
                type_ = TensorType(row.value.base, shape)
                return OwnRows(number, Lane(self.out.value(Var(parameter.name, type_, parameter.span)), True))
            case _:
                raise Unsupported("a loop inside passes on a tuple")

    def _emit_loop(
        self,
        targets: Sequence[Var],
        loop: Loop,
        counter: tuple[Var, Lane],
        initial: Sequence[Part],
        parameters: Sequence[Lane | OwnRows],
        passed: Sequence[Part],
        body: Emitter,
    ) -> None:
        starts, variables, values = [], [], []
        results: list[Lane | OwnRows] = []
        outside = self.out
        made = []
        for start, parameter, end in zip(initial, parameters, passed, strict=True):
            if isinstance(parameter, OwnRows):
                if not isinstance(end, OwnRows) or not isinstance(start, OwnRows) or end.number != parameter.number:
                    raise Unsupported("a loop inside passes on a whole array")
                first, lane, last = self._row_of(start), self._row_of(parameter), self._row_of(end)
            else:
                if not isinstance(end, Lane) or not isinstance(start, Lane):
                    raise Unsupported("a loop inside passes on a tuple")
                first, lane, last = start, parameter, end
            variable = lane.value.atom
            assert isinstance(variable, Var)
            starts.append((self._stretched_lane(first) if lane.batched else self._local_value(first.value)).atom)
            self.out = body
            value = self._stretched_lane(last) if lane.batched else self._local_value(last.value)
            self.out = outside
            if value.type != variable.type:
                raise Unsupported("a loop inside changes a type")
            variables.append(variable)
            values.append(value.atom)
            target = Var(variable.name, variable.type, variable.span)
            made.append(target)
            result = Lane(outside.value(target), lane.batched)
            results.append(OwnRows(parameter.number, result) if isinstance(parameter, OwnRows) else result)
        label = LoopLabel(loop.label.name)
        index, count = counter
        block = Block(body.all_bindings(), Next(label, tuple(values)))
        number = self._local_value(count.value)
        outside.emit(
            tuple(made), Loop(label, tuple(variables), tuple(starts), block, Counter(index, number.atom), loop.span)
        )
        self.known.update(zip(targets, results, strict=True))


def _slice(value: Value, begin: Dim, end: Dim) -> Value:
    """The rows from begin to end."""
    rest = value.shape[1:]
    ends, begins = (end, *rest), (begin, *(0 for _ in rest))
    return value.op("strided_slice", begin=begins, end=ends, strides=(1,) * value.ndim)


def are_cheap(then: Block, orelse: Block) -> bool:
    """True if two arms of a branch are few operators each, and none that is costly."""
    sizes = [sum(1 for _ in walk(body)) for body in (then, orelse)]
    return max(sizes) <= MOST_CHOICES and not any(_is_costly(b.value) for a in (then, orelse) for b in walk(a))


def _is_costly(value: Expr) -> bool:
    """True if a value is not worth computing where it is not needed."""
    return not isinstance(value, OpCall | Assert | If | Var | Constant | Extent | MakeTuple | Project) or (
        isinstance(value, OpCall) and lookup(value.operator).pattern in (Pattern.OUTPUT_FUSABLE, Pattern.OPAQUE)
    )


def number_of(atom: Atom) -> int | None:
    return int(atom.value) if isinstance(atom, Constant) and atom.value.ndim == 0 else None
