"""Partition: rounds that take a branch differently are divided, and each arm is run on those that take it.

    y = if c[i] then f(x[i]) else g(x[i])                                        for each round i

    s = the places where c holds;      a = f(x at s)                             where there are any
    t = the places where it does not;  b = g(x at t)                             where there are any
    y = a at s, b at t

How many rounds take an arm is known at run time, so the arrays of a part have a data-dependent size. Inside of an arm
everything is as for all rounds: the arm may hold operators with batching rules, loops, and further branches. What an
arm gives is added to an array of negative zeros, at places of its own, which leaves each number as it is, and whose
derivative reads these places.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeAlias

import attrs

from relay.errors import Span
from relay.ir.dims import ANY, DataDependentDim, Dim, made_dim, product
from relay.ir.expr import (
    Arm,
    Ascribe,
    Assert,
    BindDim,
    Block,
    Counter,
    If,
    Loop,
    LoopLabel,
    Next,
    Var,
    Yield,
)
from relay.ir.traverse import free_variables, walk
from relay.ir.types import BOOL, INT64, UINT8, BaseType, TensorType, scalar
from relay.operator import Emitter, Value, lookup
from relay.transform.analysis.loop_analysis import likely
from relay.transform.analysis.row_places import Place
from relay.transform.loops.rounds import Found, Items, Lane, OwnRows, Part, Rounds, Unsupported, are_cheap

MOST_MOVED = 8
"""The largest array of a round that is moved to a part for arms that are cheap."""

_PLACES = "places"
"""The name of the loops that find the rounds of a part."""


def finds_places(loop: Loop) -> bool:
    """True if a loop is one that finds the rounds of a part."""
    return loop.label.name == _PLACES


_Plan: TypeAlias = "list[tuple[Lane, Lane | None]]"
"""One tensor of a branch's result: that of each arm, and what it is for all rounds around the branch, if an arm only
reads it there."""


@attrs.define(eq=False)
class Side:
    """One arm, evaluated for the rounds that take it. `before` finds these; in `body`, whose number of rounds is `size`
    at run time and `extent` in types, `local` are their places among the rounds around it. `outer` has the values of
    rounds that are only read at these places, by what is read there."""

    before: Emitter
    body: Emitter
    size: Value
    extent: DataDependentDim
    local: Value
    results: list[Part]
    outer: dict[Lane, Lane]


class PartitionedRounds(Rounds):
    """Rounds whose branches may be partitioned."""

    def _convert_choice(self, targets: Sequence[Var], condition: Value, then: Block, orelse: Block) -> None:
        if self.selects(then, orelse):
            self.say(self.branch_span, "both arms of a branch are computed in all rounds, and one is selected")
            super()._convert_choice(targets, condition, then, orelse)
            return
        if not self.divergence and are_cheap(then, orelse) and _largest(then, orelse) > MOST_MOVED:
            raise Unsupported("rounds take a branch differently, and a derivative is still to be made")
        self._partition(targets, condition, then, orelse)

    @property
    def divergence(self) -> str:
        """The way that is asked for where rounds differ; "" for what is estimated to be fastest."""
        return self.counter.divergence

    def selects(self, then: Block, orelse: Block) -> bool:
        """True if all rounds compute both arms of a branch."""
        return self.divergence == "select" or (self.divergence == "" and super().selects(then, orelse))

    # ---- parts of the rounds

    def _positions(self, holds: Value) -> tuple[Value, Value]:
        """The places where a condition holds, first of as many as there are rounds, and their number, in int64."""
        base = self._index_base()
        blank = self.out.call(lookup("zeros"), (), {"shape": (self.extent,), "dtype": base})  # type: ignore[dict-item]
        index = Var("i", scalar(base), self.loop.span)
        places, filled = Var("places", blank.type, self.loop.span), Var("filled", scalar(INT64), self.loop.span)
        body = Emitter(self.loop.span)
        here = body.value(holds.atom, holds.type).op("index", body.value(index))
        written = body.value(places).op("index_update", body.value(filled), body.value(index))
        more = body.value(filled) + here.op("cast", dtype=INT64)
        label = LoopLabel(_PLACES)
        block = Block(tuple(body.bindings), Next(label, (written.atom, more.atom)))
        counter = Counter(index, self.out.number(self.extent, base).atom)
        found = Var("places", blank.type, self.loop.span), Var("chosen", scalar(INT64), self.loop.span)
        start = (blank.atom, self.out.constant(0, INT64).atom)
        self.out.emit(found, Loop(label, (places, filled), start, block, counter, self.loop.span))
        return self.out.value(found[0]), self.out.value(found[1])

    def _index_base(self) -> BaseType:
        index = self.counter.index.type
        assert isinstance(index, TensorType) and isinstance(index.base, BaseType)
        return index.base

    def _first(self, places: Value, size: Value, name: str) -> tuple[Value, DataDependentDim]:
        """The first of some places, as many as `size` says, and their number as a dim."""
        extent = made_dim(name)
        self.out.perform(BindDim(extent, size.atom, self.loop.span))
        first = self._local_value(places).op("strided_slice", begin=(0,), end=(extent,), strides=(1,))
        return self._ascribed(first, (extent,)), extent

    def _ascribed(self, value: Value, shape: Sequence[Dim]) -> Value:
        """A value with another shape in its type."""
        type_ = TensorType(value.base, tuple(shape))
        return value if value.type == type_ else self.out.bind(Ascribe(value.atom, self.loop.span), type_, "part")

    @contextmanager
    def _part_scope(self, extent: Dim, places: Value | None) -> Iterator[None]:
        """Evaluate a part of the rounds: those at these places."""
        before = self.known, self.extent, self._places, self.mask
        self.known, self.extent, self.mask = dict(self.known), extent, None
        if places is not None:
            self._places = places
        yield
        self.known, self.extent, self._places, self.mask = before

    def _read_at(self, local: Value, used: Iterable[Var], outer: dict[Lane, Lane] | None = None) -> None:
        """Read known values of rounds at places among them."""

        def read(lane: Lane) -> Lane:
            made = Lane(self._local_value(lane.value).op("take", local, axis=0), True)
            if outer is not None:
                outer[made] = lane
            return made

        for variable in used:
            found = self.known.get(variable)
            if found is not None and any(lane.batched for lane in lanes_of(found)):
                self.known[variable] = map_lanes(found, read)

    # ---- branches

    def _partition(self, targets: Sequence[Var], condition: Value, then: Block, orelse: Block) -> None:
        """A branch each of whose arms is run on the rounds that take it."""
        if not self.limits.diverges:
            raise Unsupported("rounds take a branch differently")
        span = self.branch_span
        self.say(span, "each arm of a branch runs on the rounds that take it")
        sides = []
        for body, taken in ((then, True), (orelse, False)):
            holds = self._local_value(condition)
            holds = holds if taken else holds.op("logical_not")
            if self.mask is not None:
                holds = self._local_value(self.mask).op("logical_and", holds)
            sides.append(self._side(holds, body))
        leaves = [
            (target, self._pairs(a, b, sides))
            for target, a, b in zip(targets, *(s.results for s in sides), strict=True)
        ]
        starts: dict[int, Value] = {}
        plans = [pair for _, pairs in leaves for pair in pairs]
        for number, pair in enumerate(plans):
            if any(o is None for _, o in pair):
                starts[number] = self._blank([lane for lane, o in pair if o is None])
        values = self._run_sides(sides, plans, starts, span)
        numbers = iter(range(len(plans)))
        for target, first, second in zip(targets, *(s.results for s in sides), strict=True):
            self.known[target] = self._joined(first, second, plans, values, numbers, condition)

    def _side(self, holds: Value, body: Block) -> Side:
        outside, before, inner = self.out, Emitter(self.loop.span), Emitter(self.loop.span)
        self.out = before
        places, size = self._positions(self._local_value(holds))
        self.out = inner
        local, extent = self._first(places, size, "part")
        all_places = self._local_value(self._place_value()).op("take", local, axis=0)
        outer: dict[Lane, Lane] = {}
        with self._part_scope(extent, all_places):
            self._read_at(local, free_variables(body), outer)
            results = self._results(body)
        self.out = outside
        return Side(before, inner, size, extent, local, results, outer)

    def _run_sides(
        self, sides: Sequence[Side], plans: Sequence[_Plan], starts: dict[int, Value], span: Span | None
    ) -> dict[int, Value]:
        """Emit the arms, which add what they give to arrays of all rounds, by the results' numbers."""
        values = dict(starts)
        for position, side in enumerate(sides):
            given = [n for n in values if plans[n][position][1] is None]
            effects = any(isinstance(b.value, Assert) for b in walk(Block(side.body.all_bindings(), Yield(()))))
            if not given and not effects:
                continue
            self.out.items += side.before.items
            outside, self.out = self.out, side.body
            made = []
            with self._part_scope(side.extent, None):
                for n in given:
                    lane = plans[n][position][0]
                    made.append(self._scatter_rows(values[n], side.local, self._stretched_lane(lane)).atom)
            self.out = outside
            wanted = self.out.value(side.size.atom, side.size.type) > 0
            results = tuple(Var("rows", values[n].type, self.loop.span) for n in given)
            block = Block(side.body.all_bindings(), Yield(tuple(made)))
            kept = Block((), Yield(tuple(values[n].atom for n in given)))
            arm = Arm(Block((), Yield((wanted.atom,))), block)
            self.out.emit(results, If((arm,), kept, span))
            values.update((n, self.out.value(r)) for n, r in zip(given, results, strict=True))
        return values

    def _blank(self, lanes: Sequence[Lane]) -> Value:
        """An array for a value of all rounds, whose parts are added to it."""
        types = {(lane.value.base, lane.value.shape[1:] if lane.batched else lane.value.shape) for lane in lanes}
        if len(types) > 1:
            raise Unsupported("a branch has results of several types")
        ((base, shape),) = types
        return self._blank_rows(base, shape)

    def _blank_rows(self, base: BaseType, shape: Sequence[Dim]) -> Value:
        if ANY in shape:
            raise Unsupported("an array of all rounds would be too large")
        whole: tuple[Dim, ...] = (self.extent, *shape)
        if base.is_float:
            return self.out.call(lookup("full"), (), {"shape": whole, "value": -0.0, "dtype": base})  # type: ignore[dict-item]
        kind = UINT8 if base == BOOL else base
        return self.out.call(lookup("zeros"), (), {"shape": whole, "dtype": kind})  # type: ignore[dict-item]

    def _scatter_rows(self, whole: Value, local: Value, rows: Value) -> Value:
        """A blank array with rows at places of their own."""
        if rows.base == BOOL:
            rows = rows.op("cast", dtype=UINT8)
        return self._local_value(whole).op("scatter_add", local, rows, axis=0)

    # ---- results of both arms

    def _pairs(self, first: Part, second: Part, sides: Sequence[Side]) -> list[_Plan]:
        """The tensors of a result."""
        match first, second:
            case Lane(), Lane():
                return [[self._origin(lane, side) for lane, side in zip((first, second), sides, strict=True)]]
            case OwnRows(), OwnRows() if first.number == second.number:
                if first.row is None and second.row is None:
                    return []
                plan: _Plan = []
                for rows, side in zip((first, second), sides, strict=True):
                    if rows.row is not None:
                        plan.append(self._origin(rows.row, side))
                    else:
                        around = self._row_of(OwnRows(rows.number))
                        plan.append((around, around))
                return [plan]
            case Items(left), Items(right) if len(left) == len(right):
                return [pair for a, b in zip(left, right, strict=True) for pair in self._pairs(a, b, sides)]
            case _:
                raise Unsupported("rounds take a branch differently, and its results are not arrays")

    def _origin(self, lane: Lane, side: Side) -> tuple[Lane, Lane | None]:
        if not isinstance(lane.value.type, TensorType):
            raise Unsupported("rounds take a branch differently, and its results are not arrays")
        if lane in side.outer:
            return lane, side.outer[lane]
        atom = lane.value.atom
        inside = isinstance(atom, Var) and any(atom in b.targets for b in side.body.all_bindings())
        return lane, lane if not lane.batched and not inside else None

    def _joined(
        self,
        first: Part,
        second: Part,
        plans: Sequence[_Plan],
        values: dict[int, Value],
        numbers: Iterator[int],
        condition: Value,
    ) -> Part:
        match first, second:
            case Items(left), Items(right):
                items = zip(left, right, strict=True)
                return Items(tuple(self._joined(a, b, plans, values, numbers, condition) for a, b in items))
            case OwnRows(number), OwnRows() if first.row is None and second.row is None:
                return OwnRows(number)
            case _:
                pass
        number = next(numbers)
        (lane, a), (_, b) = plans[number]
        if a is not None and b is not None:
            made = self._choice(condition, a, b)
            assert isinstance(made, Lane)
        else:
            whole = self._local_value(values[number])
            made = Lane(whole.op("cast", dtype=BOOL) if lane.value.base == BOOL else whole, True)
            if a is not None or b is not None:
                chosen = self._choice(condition, a or made, b or made)
                assert isinstance(chosen, Lane)
                made = chosen
        return OwnRows(first.number, made) if isinstance(first, OwnRows) else made

    # ---- rows

    def _rows_from(self, array: Lane, place: Place) -> Lane | None:
        if self._is_whole or array.batched:
            return super()._rows_from(array, place)
        if self.mask is not None:
            return None
        places = self._place_lane(place).value
        return Lane(self._local_value(array.value).op("take", places, axis=0), True)

    @property
    def _is_whole(self) -> bool:
        """True where all rounds are evaluated."""
        return self.extent is self.count or self.extent == self.count


def _largest(*blocks: Block) -> int:
    """The number of elements of the largest array that some blocks compute."""
    types = [t.type for block in blocks for b in walk(block) for t in b.targets]
    sizes = [likely(product(t.shape)) for t in types if isinstance(t, TensorType) and ANY not in t.shape]
    return max(sizes, default=0)


def lanes_of(part: Found) -> list[Lane]:
    """The tensors of a value."""
    match part:
        case Lane():
            return [part]
        case OwnRows(_, row):
            return [] if row is None else [row]
        case Items(items):
            return [lane for item in items for lane in lanes_of(item)]
        case _:
            return []


def map_lanes(part: Found, change: Callable[[Lane], Lane]) -> Found:
    """A value with its batched tensors changed."""
    return part if isinstance(part, Place) else _map_part(part, change)


def _map_part(part: Part, change: Callable[[Lane], Lane]) -> Part:
    match part:
        case Lane():
            return change(part) if part.batched else part
        case OwnRows(number, row):
            return part if row is None or not row.batched else OwnRows(number, change(row))
        case Items(items):
            return Items(tuple(_map_part(item, change) for item in items))
