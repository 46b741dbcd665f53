"""The reversal of `Loop`.

    v = loop(p = init) body      forward: one more parameter, a stack; each round pushes its residuals before it ends
                                 backward: a counted loop with as many rounds as the stack has entries, from the last
                                 to the first. It carries q, the cotangents of the parameters of the following round,
                                 and c, the cotangents of the variables from outside that the body contributes to:

        next(a..)                a_i' += q_i
        exit(a..)                a_i' += v_i'     (the cotangents of the results, known outside)
        end of the body          the next q is p'; the next c is the sum so far
        after the loop           init_i' += q_i; the cotangents of the outer variables are c

If the loop has a counter, its results are parameters, and so are the values of an exit: q starts as v', and exits are
like next rounds. Otherwise a round that exits is the last entry, told apart by the tape of the choice that ends the
body; but if all exits give the same parameters and outer variables, their rounds have no backward part, leave no entry,
and q starts as v'.

Residuals from outside of the loop are not pushed, and neither is the counter, which the backward loop computes from its
own. A stack that the loop itself fills (the tape of a lower order of differentiation) has the same cotangent in every
round, that of the result; each round reads one entry of it, at its start.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs
import numpy as np

from relay.ad.cotangents import Cotangent, pack, pack_type, type_of, unpack
from relay.ad.scopes import LoopScope, Scope, live_bindings, residuals
from relay.ad.sizes import bind_residuals, hand_over, handed_type, with_sizes
from relay.ad.tapes import BlockReversal, Plan, Seeds, close
from relay.errors import InternalError
from relay.ir.analysis.tail_positions import leaves
from relay.ir.expr import (
    Atom,
    Binding,
    Block,
    Constant,
    Counter,
    Exit,
    Loop,
    LoopLabel,
    Next,
    OpCall,
    StackGet,
    StackLength,
    StackNew,
    StackPush,
    Terminator,
    Var,
)
from relay.ir.rebuild import map_atoms, substitute, with_values
from relay.ir.sizes.data_dependent import dims_of_binding
from relay.ir.traverse import bound_variables, terminator_operands, walk
from relay.ir.types import INT64, BaseType, StackType, TensorType, scalar
from relay.operator import Emitter, Pattern, lookup


@attrs.define
class _CarriedCotangent:
    """One tensor that the backward loop carries: its parameter, its start, and its value after a round."""

    parameter: Var
    start: Atom
    after: Atom
    result: Var


def reverse_loop(reversal: BlockReversal, binding: Binding, scope: Scope) -> list[Binding]:
    """The forward bindings of a loop; its backward part goes into the scope."""
    loop = binding.value
    assert isinstance(loop, Loop)
    seeds = [scope.take(t) for t in binding.targets]
    if all(s is None for s in seeds) and not reversal.has_effect(binding):
        return [binding]
    return _LoopReversal(reversal, binding, loop, scope, seeds).run()


class _LoopReversal:
    def __init__(
        self, reversal: BlockReversal, binding: Binding, loop: Loop, scope: Scope, seeds: list[Cotangent]
    ) -> None:
        self.reversal, self.cotangents = reversal, reversal.cotangents
        self.binding, self.loop, self.scope, self.seeds = binding, loop, scope, seeds
        self.exits = [t for t in leaves(loop.body) if isinstance(t, Exit)]
        # Rounds are counted backwards by a counter of the type of the forward counter, if all its rounds are executed.
        self.complete = loop.counter is not None and not self.exits
        counter_type = type_of(loop.counter.count) if loop.counter is not None and self.complete else scalar(INT64)
        assert isinstance(counter_type, TensorType)
        self.counter_type = counter_type
        self.round = Var("round", counter_type)

    def run(self) -> list[Binding]:
        loop, reversal, cotangents = self.loop, self.reversal, self.cotangents
        self.scope.emitter.span = loop.span
        peeled = self._peel()
        local = [*loop.parameters, *(t for b in loop.body.bindings for t in b.targets)]
        inner = LoopScope(cotangents, local, self.scope)
        growing = self._stack_parameters(peeled is not None)
        for parameter, position in growing.items():
            reversal.entries[parameter] = self._entry(inner, self.seeds[position])
        following = {
            p: cotangents.variables(type_of(p), f"d_{p.name}")
            for p in loop.parameters
            if reversal.is_tracked(p) and p not in growing
        }
        arriving = tuple(
            cotangents.unflatten(following[p], type_of(p)) if p in following else None for p in loop.parameters
        )
        leaving: tuple[Cotangent, ...] | None = None
        if peeled is None:
            stacks = set(growing.values())
            leaving = tuple(None if i in stacks else s for i, s in enumerate(self.seeds))
        if leaving is not None and loop.counter is not None:
            # A parameter without a cotangent does not carry that of its result: an exit takes it from outside.
            leaving = tuple(
                a if p in following else s for p, a, s in zip(loop.parameters, arriving, leaving, strict=True)
            )
        plan = reversal.block(loop.body, inner, Seeds(next=arriving, exit=leaving))
        carried = self._carry_cotangents(inner, following, peeled)
        outside = {var: self._outer_cotangent(inner, var) for var in list(inner.carried)}
        carried += [c for parts in outside.values() for c in parts if isinstance(c, _CarriedCotangent)]
        # What a round passes on as it came has its first value always.
        constant = {c.parameter: c.start for c in carried if c.after is c.parameter}
        moving = [c for c in carried if c.after is not c.parameter]
        code = live_bindings(inner.emitter.bindings, [c.after for c in moving], reversal.is_effect)
        code = with_sizes(code, [c.after for c in moving], plan.sizes())
        forward = [self.binding]
        if moving or code:
            label = LoopLabel("backward")
            body = substitute(Block(tuple(code), Next(label, tuple(c.after for c in moving))), constant)
            forward = self._emit(plan, body, label, moving, peeled is not None)
        elif reversal.has_effect(self.binding):
            changed = close(plan, lambda end, bindings, names: end)
            rebuilt = Loop(loop.label, loop.parameters, loop.initial, changed, loop.counter, loop.span)
            forward = [Binding(self.binding.targets, rebuilt)]
        for var, results in outside.items():
            ends = [c.result if isinstance(c, _CarriedCotangent) else c for c in results]
            self.scope.known[var] = cotangents.unflatten(ends, type_of(var))
        final = {c.parameter: c.start if c.parameter in constant else c.result for c in carried}
        for parameter, start in zip(loop.parameters, loop.initial, strict=True):
            if parameter in following:
                found = [final[v] for v in following[parameter]]
                reversal.accumulate(self.scope, start, cotangents.unflatten(found, type_of(parameter)))
        return forward

    # ---- stacks that the loop fills

    def _stack_parameters(self, peeled: bool) -> dict[Var, int]:
        """The parameters that are stacks, start empty and get one element in each round, and the place of their result.

        The cotangent of the stack does not change from round to round: it is that of the result.
        """
        activity, found = self.reversal.activity, {}
        steps = [t for t in leaves(self.loop.body) if isinstance(t, Next)]
        for position, parameter in enumerate(self.loop.parameters):
            if not isinstance(activity.definition(self.loop.initial[position]), StackNew):
                continue

            def is_push(value: Atom, parameter: Var = parameter) -> bool:
                definition = activity.definition(value)
                return isinstance(definition, StackPush) and definition.stack is parameter

            if not all(is_push(s.values[position]) for s in steps):
                continue
            results = [position] if self.loop.counter is not None else range(len(self.seeds))
            for result in results:
                values = [e.values[result] for e in self.exits]
                if all(v is parameter for v in values) if peeled else all(map(is_push, values)):
                    found[parameter] = result
        return found

    def _entry(self, inner: LoopScope, cotangent: Cotangent) -> Atom | None:
        """Emit the cotangent of the element that the round pushes. Every round reads one, whatever arm it takes."""
        if cotangent is None:
            return None
        assert isinstance(cotangent, Var)
        type_ = type_of(cotangent)
        assert isinstance(type_, StackType)
        return inner.emitter.bind(StackGet(cotangent, self.round, self.loop.span), type_.element, "dentry").atom

    # ---- what the backward loop carries

    def _carry_cotangents(
        self, inner: LoopScope, following: Mapping[Var, list[Var]], peeled: dict[Var, Cotangent] | None
    ) -> list[_CarriedCotangent]:
        """The cotangents of the parameters."""
        carried: list[_CarriedCotangent] = []
        for position, parameter in enumerate(self.loop.parameters):
            if parameter not in following:
                continue
            seed, like = None, None
            if self.loop.counter is not None:
                seed, like = self.seeds[position], self.binding.targets[position]
            elif peeled is not None:
                seed = peeled.get(parameter)
            type_ = type_of(parameter)
            starts = self.cotangents.dense(self.scope.emitter, seed, type_, like)
            after = self.cotangents.dense(inner.emitter, inner.take(parameter), type_, parameter)
            carried += map(_carry, following[parameter], starts, after)
        return carried

    def _outer_cotangent(self, inner: LoopScope, var: Var) -> list[_CarriedCotangent | Atom | None]:
        """The leaves of the cotangent of an outer variable: carried, or what they were if the body adds nothing."""
        type_ = type_of(var)
        before = self.cotangents.flatten(self.scope.current_cotangent(var), type_)
        after = self.cotangents.flatten(inner.current_cotangent(var), type_)
        found: list[_CarriedCotangent | Atom | None] = []
        for position, (parameter, old, new) in enumerate(zip(inner.carried[var], before, after, strict=True)):
            if new is parameter or new is None:
                found.append(old)
                continue
            if isinstance(parameter.type, StackType) and old is not None:
                raise InternalError("two loops read one stack")
            start = self.cotangents.zeros(self.scope.emitter, type_, None)[position] if old is None else old
            found.append(_carry(parameter, start, new))
        return found

    def _peel(self) -> dict[Var, Cotangent] | None:
        """The cotangents that the exits give to the parameters, if exiting rounds have no other backward part."""
        loop = self.loop
        if loop.counter is not None or not self.exits or self.reversal.has_effect(self.binding):
            return None
        if not any(isinstance(t, Next) for t in leaves(loop.body)):  # its first round is its last, and all of it
            return None
        inside = {t for b in walk(loop.body) for t in (*b.targets, *bound_variables(b.value))}
        parameters: dict[Var, Cotangent] = {}
        outer: list[tuple[Atom, Cotangent]] = []
        for position, seed in enumerate(self.seeds):
            value = self.exits[0].values[position]
            if seed is None or not self.reversal.is_tracked(self.binding.targets[position]):
                continue
            if value in inside or any(e.values[position] is not value for e in self.exits):
                return None
            if value in loop.parameters:
                assert isinstance(value, Var)
                parameters[value] = self.cotangents.add(self.scope.emitter, parameters.get(value), seed)
            else:
                outer.append((value, seed))
        for value, seed in outer:
            self.reversal.accumulate(self.scope, value, seed)
        return parameters

    # ---- the two loops

    def _emit(
        self, plan: Plan, body: Block, label: LoopLabel, moving: Sequence[_CarriedCotangent], peeled: bool
    ) -> list[Binding]:
        """Emit the backward loop, with this body. Returns the forward bindings."""
        loop = self.loop
        available = [*plan.available_variables(), *loop.parameters, self.round]
        computed = {self.round}
        if loop.counter is not None:
            available.append(loop.counter.index)
            if self.complete:
                computed.add(loop.counter.index)
        used = residuals(body.bindings, terminator_operands(body.terminator), available)
        again = self._recomputed_bindings(used, available, computed)
        fresh = {t: Var(t.name, t.type, t.span) for b in again for t in b.targets}
        renamed = [Binding((fresh[b.targets[0]],), map_atoms(b.value, lambda a: fresh.get(a, a))) for b in again]  # type: ignore[arg-type]
        body = substitute(body, fresh)
        body = Block((*renamed, *body.bindings), body.terminator)
        used = residuals(body.bindings, terminator_operands(body.terminator), available)
        stored = [v for v in used if v not in computed]
        record = self._record(stored)

        def leaf(terminator: Terminator, bindings: list[Binding], names: Mapping[Var, Var]) -> Terminator:
            assert isinstance(terminator, Next | Exit)
            values = terminator.values
            if record is not None:
                after: Atom = record.parameter
                if not (peeled and isinstance(terminator, Exit)):
                    emitter = Emitter(terminator.span or loop.span)
                    passed = [names.get(v, v) for v in stored]
                    after = record.step(emitter, hand_over(emitter, passed, [type_of(v) for v in stored]))
                    bindings += emitter.bindings
                values = (*values, after)
            return with_values(terminator, values)

        forward_body = close(plan, leaf)
        forward = []
        targets, parameters, initial = self.binding.targets, loop.parameters, loop.initial
        if record is not None:
            forward += record.before
            targets, parameters = (*targets, record.result), (*parameters, record.parameter)
            initial = (*initial, record.start)
        forward.append(Binding(targets, Loop(loop.label, parameters, initial, forward_body, loop.counter, loop.span)))
        self._emit_backward(body, label, moving, used, stored, record, len(renamed))
        return forward

    def _recomputed_bindings(self, used: list[Var], available: list[Var], computed: set[Var]) -> list[Binding]:
        """The bindings of residuals that the backward loop can compute again, and of what they need.

        Integers and rearrangements of what is known outside of the loop are cheaper to compute than to store.
        """
        definitions, inside = self.reversal.activity.definitions, set(available)
        cheap: dict[Var, Binding] = {}
        for var in available:  # in the order of their bindings
            call = definitions.get(var)
            if (
                isinstance(call, OpCall)
                and not any(True for _ in dims_of_binding(Binding((var,), call)))
                and _is_cheap(call, var)
            ):
                sources = [a for a in call.arguments if isinstance(a, Var) and a in inside]
                if all(a in computed or a in cheap for a in sources):
                    cheap[var] = Binding((var,), call)
        return live_bindings(list(cheap.values()), used, lambda _: False)

    def _record(self, stored: list[Var]) -> _LoopTape | None:
        """The tape of a loop: a stack of residuals, or at least a number of rounds."""
        if stored:
            element = pack_type([handed_type(type_of(v)) for v in stored])
            stack = StackType(element)
            empty = Var("tape", stack)
            before = [Binding((empty,), StackNew(element, self.loop.span))]
            return _LoopTape(empty, Var("tape", stack), Var("tape", stack), before)
        if self.complete:
            return None
        type_ = scalar(INT64)
        return _LoopTape(Constant(np.zeros((), np.int64)), Var("rounds", type_), Var("rounds", type_), [])

    def _emit_backward(
        self,
        body: Block,
        label: LoopLabel,
        moving: Sequence[_CarriedCotangent],
        used: list[Var],
        stored: list[Var],
        record: _LoopTape | None,
        first: int,
    ) -> None:
        outer, loop = self.scope.emitter, self.loop
        outer.span = loop.span
        inner = Emitter(outer.span)
        count: Atom
        if record is None or self.complete:
            assert loop.counter is not None
            count = loop.counter.count
        elif stored:
            count = outer.bind(StackLength(record.result), self.counter_type, "rounds").atom
        else:
            count = record.result
        index = Var("k", self.counter_type)
        mapping: dict[Var, Atom] = {}
        sized: dict[Var, Var] = {}
        if used:
            last = outer.value(count) - 1
            number = (inner.value(last.atom) - inner.value(index)).atom
            mapping[self.round] = number
            if self.complete:
                assert loop.counter is not None
                mapping[loop.counter.index] = number
            if stored:
                assert record is not None
                types = [handed_type(type_of(v)) for v in stored]
                entry = inner.bind(StackGet(record.result, number, inner.span), pack_type(types), "entry").atom
                for var, atom in zip(stored, unpack(inner, entry, types), strict=True):
                    if handed_type(type_of(var)) != type_of(var):
                        assert isinstance(atom, Var)
                        sized[var], mapping[var] = Var(var.name, var.type, var.span), atom
                    else:
                        mapping[var] = atom
            if sized:
                body = bind_residuals(substitute(body, sized), {sized[v]: mapping[v] for v in sized}, first)  # type: ignore[misc]
        block = substitute(body, mapping)
        block = Block((*inner.bindings, *block.bindings), block.terminator)
        parameters, starts = tuple(c.parameter for c in moving), tuple(c.start for c in moving)
        backward = Loop(label, parameters, starts, block, Counter(index, count), loop.span)
        outer.emit(tuple(c.result for c in moving), backward)


@attrs.frozen
class _LoopTape:
    """The tape of a loop: its initial value, its parameter, and its result in the forward loop, for the backward
    loop."""

    start: Atom
    parameter: Var
    result: Var
    before: list[Binding]

    def step(self, emitter: Emitter, residual: Sequence[Atom]) -> Atom:
        """Emit what it is after a round."""
        if residual:
            packed = pack(emitter, residual)
            return emitter.bind(StackPush(self.parameter, packed, emitter.span), type_of(self.parameter), "tape").atom
        return (emitter.value(self.parameter) + 1).atom


def _is_cheap(call: OpCall, result: Var) -> bool:
    """True if a value is an integer or boolean, or a rearrangement of elements."""
    type_ = type_of(result)
    if not isinstance(type_, TensorType) or not isinstance(type_.base, BaseType):
        return False
    return (type_.rank == 0 and not type_.base.is_float) or lookup(call.operator).pattern is Pattern.INJECTIVE


def _carry(parameter: Var, start: Atom, after: Atom) -> _CarriedCotangent:
    return _CarriedCotangent(parameter, start, after, Var(parameter.name, parameter.type))
