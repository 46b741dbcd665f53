"""Compaction: loops inside of a round that end at different times are run by those rounds that are still in them.

    x = loop (a = x0[i]) { if c(a) then next f(a) else exit a }                       for each round i

    loop (s = all places, a = x0, x = blank) {
        where c(a) does not hold for some: x has a at these places, and s and a keep the others
        if there are others then next (s, f(a), x) else exit x
    }

What a round needs of the values around the loop is carried with its state, so that it is moved only when a round has
ended. All rounds that are left are in step: what does not depend on them, as the number of steps, is computed once.
Where the end does not depend on the round, the loop stays as it is, with values of all rounds as its state.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import attrs

from relay.ir.dims import ANY, Dim, made_dim
from relay.ir.expr import (
    Arm,
    AxisSize,
    BindDim,
    Block,
    Dead,
    Exit,
    If,
    Loop,
    LoopLabel,
    Next,
    OpCall,
    Terminator,
    Var,
    Yield,
)
from relay.ir.traverse import free_variables
from relay.ir.types import BOOL, INT64, UINT8, TensorType, scalar
from relay.operator import Emitter, Pattern, Value, lookup
from relay.transform.loops.loop_exits import LoopExit, LoopRound, round_of, variables_of
from relay.transform.loops.partition import PartitionedRounds, lanes_of, map_lanes
from relay.transform.loops.rounds import Found, Lane, Limits, OwnRows, Part, Unsupported

_ACTIVE = "active"
"""The name of the first parameter of loops that are run by the rounds that are left."""


def runs_active(loop: Loop) -> bool:
    """True if a loop is run by the rounds that are still in it."""
    first = loop.parameters[0] if loop.parameters else None
    type_ = first.type if first is not None else None
    return first is not None and first.name == _ACTIVE and isinstance(type_, TensorType) and type_.shape == (ANY,)


class _Diverges(Exception):
    """The rounds do not leave a loop together."""

    def __init__(self, state: _State) -> None:
        self.state = state


@attrs.frozen
class _Result:
    """The type of a loop's result for one round, whether it differs between rounds, and the loop's array whose row it
    is, if it is one."""

    type: TensorType
    batched: bool
    rows: int | None


@attrs.define(eq=False)
class _State:
    """A loop while it is evaluated: its parameters, and which of them differ between rounds; the results, as far as
    they are known; the variables around it that its rounds read, whether all rounds enter it, and whether they
    share an operand of a product. `active` are the places of the rounds that are left,
    `written` the arrays of results so far."""

    label: LoopLabel
    parameters: tuple[Var, ...]
    batched: list[bool]
    rows: list[int | None]
    results: list[_Result] | None = None
    compacts: bool = False
    captured: tuple[Var, ...] = ()
    whole: bool = True
    shares: bool = False
    active: Value | None = None
    written: tuple[Value, ...] = ()


class CompactedRounds(PartitionedRounds):
    """Rounds whose loops may end at different times."""

    def __init__(self, loop: Loop, count: Dim, limits: Limits) -> None:
        super().__init__(loop, count, limits)
        self.states: list[_State] = []  # of the loops that are being evaluated

    def _inner_loop(self, targets: Sequence[Var], loop: Loop) -> None:
        counted = loop.counter is not None and isinstance(loop.body.terminator, Next)
        if counted and not self._lane(loop.counter.count).batched:  # type: ignore[union-attr]
            super()._inner_loop(targets, loop)
            return
        if self.mask is not None or self.divergence == "select":
            raise Unsupported("a loop inside may end early, and there is no select for that")
        self._ending_loop(targets, loop)

    def _ending_loop(self, targets: Sequence[Var], loop: Loop) -> None:
        """A loop that may end in any round."""
        (parameters, starts), body = round_of(loop, targets)
        initial = [self._start(p, self._part(i), loop) for p, i in zip(parameters, starts, strict=True)]
        for part in initial:
            if not isinstance(part, Lane | OwnRows) or not isinstance(lanes_of(part)[0].value.type, TensorType):
                raise Unsupported("a loop inside passes on a tuple")
        used = [v for v in _read_in(loop) if v in self.known and v not in parameters]
        state = _State(
            LoopLabel(loop.label.name),
            parameters,
            [isinstance(i, OwnRows) or (isinstance(i, Lane) and i.batched) for i in initial],
            [i.number if isinstance(i, OwnRows) else None for i in initial],
            captured=tuple(v for v in used if any(lane.batched for lane in lanes_of(self.known[v]))),
            whole=self._is_whole,
        )
        self.inside.update(parameters)
        self.states.append(state)
        while True:
            before = list(state.batched), state.results
            known, outside, extent, places = dict(self.known), self.out, self.extent, self._places
            try:
                made = self._attempt(state, initial, body, loop)
            except _Diverges as error:
                if error.state is not state:
                    raise
                if not self.limits.diverges:
                    raise Unsupported("a loop inside runs a number of rounds that differs") from None
                state.compacts, made = True, None
            finally:
                self.known, self.out, self.extent, self._places = known, outside, extent, places
            if state.compacts and made is not None and self.divergence == "" and not state.shares:
                raise Unsupported(
                    "a loop inside runs a number of rounds that differs, and shares no operand of a product"
                )
            if made is not None and before == (state.batched, state.results):
                break
        self.states.pop()
        self._emit_ending(targets, state, made)
        if state.compacts:
            self.say(loop.span, f"the loop {loop.label.name} runs for the rounds that are still in it")

    def _call(self, call: OpCall) -> Found:
        if self.states and lookup(call.operator).pattern is Pattern.OUTPUT_FUSABLE:
            batched = [self._lane(a).batched for a in call.arguments]
            if any(batched) and not all(batched):
                for state in self.states:
                    state.shares = True
        return super()._call(call)

    # ---- the loop

    def _attempt(self, state: _State, initial: Sequence[Part], body: LoopRound, loop: Loop) -> Loop:
        """The loop, with what is known of its state."""
        starts: list[Value] = []
        inner = Emitter(loop.span)
        variables: list[Var] = []
        outside = self.out

        def carry(value: Value, name: str, compacted: bool) -> Value:
            shape: tuple[Dim, ...] = (ANY, *value.shape[1:]) if compacted else value.shape
            start = self._ascribed(value, shape)
            starts.append(start)
            variables.append(Var(name, start.type, loop.span))
            return inner.value(variables[-1])

        carried: list[Value] = []
        if state.compacts:
            base = self._index_base()
            numbers: dict[str, Any] = {"start": 0, "stop": self.extent, "step": 1, "dtype": base}
            every = outside.call(lookup("arange"), (), numbers)
            carried.append(carry(every, _ACTIVE, True))
            if not state.whole:
                carried.append(carry(self._local_value(self._place_value()), "places", True))
            for variable in state.captured:
                for lane in lanes_of(self.known[variable]):
                    if lane.batched:
                        carried.append(carry(self._local_value(lane.value), variable.name, True))
        states = [
            carry(
                self._stretched_lane(lanes_of(p)[0]) if b else self._local_value(lanes_of(p)[0].value),
                v.name,
                state.compacts and b,
            )
            for v, p, b in zip(state.parameters, initial, state.batched, strict=True)
        ]
        if state.compacts:
            blanks = [self._blank_rows(r.type.base, r.type.shape) for r in state.results or ()]  # type: ignore[arg-type]
            state.written = tuple(carry(b, "rows", False) for b in blanks)
        self.out = inner
        if state.compacts:
            size = inner.bind(AxisSize(carried[0].atom, 0, loop.span), scalar(INT64), "size")
            extent = made_dim("active")
            inner.perform(BindDim(extent, size.atom, loop.span))
            self._carry_on(state, carried, extent)
        for parameter, value, b, number in zip(state.parameters, states, state.batched, state.rows, strict=True):
            if state.compacts and b:
                value = self._ascribed(value, (self.extent, *value.shape[1:]))
            lane = Lane(value, b)
            self.known[parameter] = lane if number is None else OwnRows(number, lane)
        end = self._run(state, body)
        block = Block(inner.all_bindings(), end)
        self.out = outside
        return Loop(state.label, tuple(variables), tuple(s.atom for s in starts), block, None, loop.span)

    def _carry_on(self, state: _State, carried: Sequence[Value], extent: Dim) -> None:
        """Take the values that are carried for those that are left as those of all."""
        values = iter([self._ascribed(c, (extent, *c.shape[1:])) for c in carried])
        self.extent = extent
        state.active = next(values)
        self._places = state.active if state.whole else next(values)
        for variable in state.captured:
            self.known[variable] = map_lanes(self.known[variable], lambda _: Lane(next(values), True))

    def _emit_ending(self, targets: Sequence[Var], state: _State, loop: Loop) -> None:
        assert state.results is not None
        results = []
        for target, result in zip(targets, state.results, strict=True):
            base = UINT8 if state.compacts and result.type.base == BOOL else result.type.base
            shape = (self.extent, *result.type.shape) if state.compacts or result.batched else result.type.shape
            results.append(Var(target.name, TensorType(base, shape), target.span))
        self.out.emit(tuple(results), loop)
        for target, variable, result in zip(targets, results, state.results, strict=True):
            value = self.out.value(variable)
            if state.compacts and result.type.base == BOOL:
                value = value.op("cast", dtype=BOOL)
            lane = Lane(value, state.compacts or result.batched)
            self.known[target] = lane if result.rows is None else OwnRows(result.rows, lane)

    # ---- a round

    def _run(self, state: _State, body: LoopRound) -> Terminator:
        """Emit a round; how it ends."""
        self._evaluate(body.bindings)
        match body.end:
            case Next(_, values):
                return self._next(state, [self._part(a) for a in values])
            case Exit(_, values):
                return self._leave(state, [self._part(a) for a in values])
            case LoopExit(condition, leaves, leaving, rest):
                lane = self._lane(condition)
                if lane.batched:
                    if not state.compacts:
                        raise _Diverges(state)
                    return self._divide(state, lane.value, body.end)
                blocks = [
                    self._block(state, lambda: self._leave(state, self._results(leaving))),
                    self._block(state, lambda: self._run(state, rest)),
                ]
                test = Block((), Yield((self._local_value(lane.value).atom,)))
                then, orelse = blocks if leaves else reversed(blocks)
                self.out.perform(If((Arm(test, then),), orelse, self.loop.span))
                return Dead()

    def _block(self, state: _State, run: Callable[[], Terminator]) -> Block:
        """A block of its own."""
        outside, known, written = self.out, dict(self.known), state.written
        self.out = Emitter(self.loop.span)
        end = run()
        made = Block(self.out.all_bindings(), end)
        self.out, self.known, state.written = outside, known, written
        return made

    def _next(self, state: _State, parts: Sequence[Part]) -> Next:
        """The next round of those that are left."""
        values: list[Value] = []
        if state.compacts:
            values += self._carried(state)
        for position, (part, number) in enumerate(zip(parts, state.rows, strict=True)):
            if isinstance(part, OwnRows) and part.number == number:
                part = self._row_of(part)
            if not isinstance(part, Lane):
                raise Unsupported("a loop inside passes on a tuple")
            parameter = state.parameters[position]
            assert isinstance(parameter.type, TensorType)
            state.batched[position] = state.batched[position] or part.batched
            value = self._stretched_lane(part) if state.batched[position] else self._local_value(part.value)
            values.append(value)
        ended = [self._ascribed(v, (ANY, *v.shape[1:])) if state.compacts and self._is_part(v) else v for v in values]
        written = [self._local_value(w) for w in state.written] if state.compacts else []
        return Next(state.label, tuple(v.atom for v in (*ended, *written)))

    def _is_part(self, value: Value) -> bool:
        return bool(value.shape) and value.shape[0] is self.extent

    def _carried(self, state: _State) -> list[Value]:
        """The values that are carried for the rounds that are left, beside the parameters."""
        assert state.active is not None
        values = [self._local_value(state.active)]
        if not state.whole:
            values.append(self._local_value(self._place_value()))
        for variable in state.captured:
            values += [self._local_value(lane.value) for lane in lanes_of(self.known[variable]) if lane.batched]
        return values

    def _leave(self, state: _State, parts: Sequence[Part]) -> Exit:
        """All that are left leave the loop."""
        lanes = self._result_lanes(state, parts)
        if state.compacts:
            assert state.active is not None
            values = self._write(state, lanes, self._local_value(state.active))
        else:
            flags = [r.batched for r in state.results or ()]
            values = [
                self._stretched_lane(lane) if b else self._local_value(lane.value)
                for lane, b in zip(lanes, flags, strict=True)
            ]
        return Exit(state.label, tuple(v.atom for v in values))

    def _result_lanes(self, state: _State, parts: Sequence[Part]) -> list[Lane]:
        """The results of some rounds, which are noted."""
        lanes, found = [], []
        for part in parts:
            number = part.number if isinstance(part, OwnRows) else None
            lane = self._row_of(part) if isinstance(part, OwnRows) else part
            if not isinstance(lane, Lane) or not isinstance(lane.value.type, TensorType):
                raise Unsupported("a loop inside passes on a tuple")
            shape = lane.value.shape[1:] if lane.batched else lane.value.shape
            lanes.append(lane)
            found.append(_Result(TensorType(lane.value.base, shape), lane.batched, number))
        if state.results is not None:
            for old, new in zip(state.results, found, strict=True):
                if old.type != new.type or old.rows != new.rows:
                    raise Unsupported("a loop inside changes a type")
            found = [attrs.evolve(n, batched=o.batched or n.batched) for o, n in zip(state.results, found, strict=True)]
        state.results = found
        return lanes

    def _write(self, state: _State, lanes: Sequence[Lane], places: Value) -> list[Value]:
        """The results so far, with those of some rounds."""
        rows = [self._stretched_lane(lane) for lane in lanes]
        if len(state.written) != len(rows):
            return rows  # in an attempt that finds out what the results are
        return [self._scatter_rows(w, places, r) for w, r in zip(state.written, rows, strict=True)]

    # ---- rounds that end and others that go on

    def _divide(self, state: _State, condition: Value, ending: LoopExit) -> Terminator:
        """Some of those that are left leave the loop; the others go on."""
        here = self._local_value(condition)
        ends, stays = (here, here.op("logical_not")) if ending.leaves else (here.op("logical_not"), here)
        order, count = self._positions(stays)
        some = count < self.out.number(self.extent, INT64)
        self._write_ended(state, ends, some, ending.leaving)
        rest = self._block(state, lambda: self._go_on(state, order, count, some, ending.rest))
        anybody = count > 0
        over = Block((), Exit(state.label, tuple(w.atom for w in state.written)))
        self.out.perform(If((Arm(Block((), Yield((anybody.atom,))), rest),), over, self.loop.span))
        return Dead()

    def _write_ended(self, state: _State, ends: Value, some: Value, leaving: Block) -> None:
        """Write the results of those that leave the loop."""
        assert state.active is not None
        outside, before = self.out, state.written
        self.out = Emitter(self.loop.span)
        places, size = self._positions(self._local_value(ends))
        local, extent = self._first(places, size, "ended")
        active = self._local_value(state.active).op("take", local, axis=0)
        everywhere = self._local_value(self._place_value()).op("take", local, axis=0)
        with self._part_scope(extent, everywhere):
            self._read_at(local, free_variables(leaving))
            lanes = self._result_lanes(state, self._results(leaving))
            values = self._write(state, lanes, active)
        block = Block(self.out.all_bindings(), Yield(tuple(v.atom for v in values[: len(before)])))
        self.out = outside
        targets = tuple(Var("rows", w.type, self.loop.span) for w in before)
        kept = Block((), Yield(tuple(w.atom for w in before)))
        self.out.emit(targets, If((Arm(Block((), Yield((some.atom,))), block),), kept, self.loop.span))
        state.written = tuple(self.out.value(t) for t in targets)

    def _go_on(self, state: _State, order: Value, count: Value, some: Value, rest: LoopRound) -> Terminator:
        """The rest of a round, for those that do not leave the loop."""
        active, places = state.active, self._places
        try:
            return self._compacted(state, order, count, some, rest)
        finally:
            state.active, self._places = active, places

    def _compacted(self, state: _State, order: Value, count: Value, some: Value, rest: LoopRound) -> Terminator:
        needed = [v for v in variables_of(rest) if v not in state.captured and v in self.known]
        moved = [v for v in needed if any(lane.batched for lane in lanes_of(self.known[v]))]
        values = self._carried(state)
        inner = [lane.value for v in moved for lane in lanes_of(self.known[v]) if lane.batched]
        every = [*values, *map(self._local_value, inner)]
        outside = self.out
        kinds = [TensorType(v.base, (ANY, *v.shape[1:])) for v in every]
        self.out = Emitter(self.loop.span)
        local, _ = self._first(order, count, "kept")
        chosen = [self._local_value(v).op("take", local, axis=0) for v in every]
        chosen = [self._ascribed(c, k.shape) for c, k in zip(chosen, kinds, strict=True)]
        some_end = Block(self.out.all_bindings(), Yield(tuple(c.atom for c in chosen)))
        self.out = Emitter(self.loop.span)
        same = [self._ascribed(self._local_value(v), k.shape) for v, k in zip(every, kinds, strict=True)]
        none_ends = Block(self.out.all_bindings(), Yield(tuple(s.atom for s in same)))
        self.out = outside
        targets = tuple(Var("kept", k, self.loop.span) for k in kinds)
        self.out.emit(targets, If((Arm(Block((), Yield((some.atom,))), some_end),), none_ends, self.loop.span))
        extent = made_dim("kept")
        self.out.perform(BindDim(extent, count.atom, self.loop.span))
        kept = [self._ascribed(self.out.value(t), (extent, *t.type.shape[1:])) for t in targets]  # type: ignore[union-attr]
        before = self.extent
        self._carry_on(state, kept[: len(values)], extent)
        left = iter(kept[len(values) :])
        for variable in moved:
            self.known[variable] = map_lanes(self.known[variable], lambda _: Lane(next(left), True))
        end = self._run(state, rest)
        self.extent = before
        return end


def _read_in(loop: Loop) -> list[Var]:
    """The variables around a loop that its rounds may read."""
    found = list(free_variables(loop.body))
    if loop.counter is not None and isinstance(loop.counter.count, Var):
        found.append(loop.counter.count)
    return list(dict.fromkeys(found))
