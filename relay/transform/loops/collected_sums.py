"""Sums of numbers that a loop adds up, as arrays of the terms of all rounds, which are added up after it.

    loop for i < n (s = a) { x = index(xs, i); t = exp(x); s' = add(s, t); next s' }

    loop for i < n (ts = zeros(n)) { x = index(xs, i); t = exp(x); ts' = index_update(ts, i, t); next ts' }
    s = add(a, sum(ts))

Such a loop can be computed for all rounds at once, where one that carries a sum from round to round cannot; the sum and
what it adds up are one kernel then. The terms are added in another order, so the result may differ by rounding.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from relay.ir.dims import Dim
from relay.ir.expr import Atom, Binding, Block, Loop, Next, OpCall, Var
from relay.ir.types import FLOAT32, FLOAT64, INT32, INT64, TensorType
from relay.operator import ADDITION, Emitter, lookup
from relay.transform.analysis.loop_analysis import uses

BASES = (FLOAT32, FLOAT64, INT32, INT64)


@attrs.frozen
class CollectedSums:
    """A loop that carries arrays of terms in place of sums, with the bindings before it, its results, and by the number
    of each sum where it starts."""

    before: list[Binding]
    loop: Loop
    results: list[Var]
    starts: dict[int, Atom]

    def totals(self, targets: Sequence[Var], made: Sequence[Binding]) -> list[Binding]:
        """The bindings of the sums, after those that make the terms. A sum of products of two arrays is a product of
        vectors, which becomes one of matrices in loops around it."""
        values = {b.targets[0]: b.value for b in made if b.targets}
        after = Emitter(self.loop.span)
        for number, start in self.starts.items():
            terms: Atom = self.results[number]
            while isinstance(terms, Var) and isinstance(inner := values.get(terms), Var):
                terms = inner
            match values.get(terms) if isinstance(terms, Var) else None:
                case OpCall("multiply", (x, y)) if x.type == y.type == terms.type:  # type: ignore[union-attr]
                    total = after.value(x).op("matmul", after.value(y))
                case _:
                    total = after.value(terms).op("sum")
            whole = after.value(start) + total
            last = after.bindings.pop()
            assert last.targets[0] is whole.atom
            after.bindings.append(Binding((targets[number],), last.value))
        return after.bindings


def collected_sums(loop: Loop, targets: Sequence[Var], count: Dim) -> CollectedSums | None:
    """The loop, of `count` rounds, without sums of numbers; None if there are none."""
    end = loop.body.terminator
    if loop.counter is None or not isinstance(end, Next):
        return None
    calls = {b.targets[0]: b.value for b in loop.body.bindings if isinstance(b.value, OpCall)}
    counts = uses(loop.body)
    before, within = Emitter(loop.span), Emitter(loop.span)
    starts: dict[int, Atom] = {}
    parameters, initial, passed, results = list(loop.parameters), list(loop.initial), list(end.values), list(targets)
    sums: set[Var] = set()
    for number, parameter in enumerate(loop.parameters):
        terms = _terms(parameter, end.values[number], calls, counts)
        if not terms:
            continue
        assert isinstance(parameter.type, TensorType)
        whole = TensorType(parameter.type.base, (count,))
        start = before.call(lookup("zeros"), (), {"shape": (count,), "dtype": parameter.type.base})  # type: ignore[dict-item]
        term = within.value(terms[0])
        for other in terms[1:]:
            term = term + within.value(other)
        parameters[number], initial[number] = Var(f"{parameter.name}_terms", whole, loop.span), start.atom
        row = within.value(loop.counter.index)
        passed[number] = within.value(parameters[number]).op("index_update", row, term).atom
        results[number] = Var(parameters[number].name, whole, loop.span)
        starts[number] = loop.initial[number]
        sums |= _partial_sums(parameter, end.values[number], calls)
    if not sums:
        return None
    kept = [b for b in loop.body.bindings if not sums.intersection(b.targets)]
    body = Block((*kept, *within.bindings), Next(loop.label, tuple(passed), end.span))
    made = Loop(loop.label, tuple(parameters), tuple(initial), body, loop.counter, loop.span)
    return CollectedSums(before.bindings, made, results, starts)


def _partial_sums(parameter: Var, value: Atom, calls: Mapping[Var, OpCall]) -> set[Var]:
    """The additions between a parameter and its value in the next round."""
    found: set[Var] = set()
    while value is not parameter:
        assert isinstance(value, Var)
        found.add(value)
        value, _ = _operands(parameter, calls[value], calls)
    return found


def _terms(parameter: Var, value: Atom, calls: Mapping[Var, OpCall], counts: Mapping[Var, int]) -> list[Atom]:
    """The numbers that a round adds to one that nothing else reads; empty if it does something else with it."""
    type_ = parameter.type
    if not isinstance(type_, TensorType) or type_.shape or type_.base not in BASES:
        return []
    found: list[Atom] = []
    while value is not parameter:
        call = calls.get(value) if isinstance(value, Var) and counts.get(value, 0) == 1 else None
        if call is None or call.operator != ADDITION:
            return []
        value, term = _operands(parameter, call, calls)
        if getattr(term, "type", None) != type_:
            return []
        found.append(term)
    return found[::-1] if counts.get(parameter, 0) == 1 else []


def _operands(parameter: Var, call: OpCall, calls: Mapping[Var, OpCall]) -> tuple[Atom, Atom]:
    """The operand of an addition that leads to a parameter, if one does, and the other one."""
    first, second = call.arguments
    inner = calls.get(second) if isinstance(second, Var) and first is not parameter else None
    leads = second is parameter or (inner is not None and inner.operator == ADDITION and parameter in inner.arguments)
    return (second, first) if leads else (first, second)
