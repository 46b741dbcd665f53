"""Reductions that a loop carries from round to round, as arrays of the terms of all rounds, reduced after it.

    loop for i < n (s = a) { x = index(xs, i); t = exp(x); s' = add(s, t); next s' }

    loop for i < n (ts = zeros(n)) { x = index(xs, i); t = exp(x); ts' = index_update(ts, i, t); next ts' }
    s = add(a, sum(ts))

So are differences, products, `maximum` and `minimum`, `or` and `and`, also where only some arms of a branch add a term:
the others have the neutral element. Where a round keeps what is larger than all before it, with other values of that
round, these are read at the first place of the largest; what rounds add to rows of an array at computed places is added
by one call. Such a loop can be computed for all rounds at once, where one
that carries a number from round to round cannot; the reduction and what it reduces are one kernel then. The terms are
combined in another order, so the result may differ by rounding.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs
import numpy as np

from relay.ir.dims import ANY, Dim, add
from relay.ir.expr import Arm, Atom, Binding, Block, Constant, If, Loop, Next, OpCall, Var, Yield
from relay.ir.traverse import free_variables
from relay.ir.types import BOOL, FLOAT32, FLOAT64, INT32, INT64, BaseType, TensorType
from relay.operator import Emitter, IndexKind, Value, lookup
from relay.transform.analysis.loop_analysis import may_fail, uses
from relay.transform.analysis.value_ranges import ValueRanges

BASES = (FLOAT32, FLOAT64, INT32, INT64)


@attrs.frozen
class Reduction:
    """A reduction of terms: the operator that a round uses, and that for all of them. `smooth`: the derivatives of the
    two are the same; those of `maximum` divide ties in two each time, where `max` divides them evenly."""

    step: str
    whole: str
    bases: tuple[BaseType, ...] = BASES
    smooth: bool = True

    def neutral(self, base: BaseType) -> Constant:
        """The term that changes nothing."""
        dtype = base.dtype
        if self.step in ("maximum", "minimum"):
            sign = -1 if self.step == "maximum" else 1
            limits = np.iinfo(dtype.name) if dtype.kind == "i" else None
            number: Any = sign * np.inf if limits is None else (limits.min if sign < 0 else limits.max)
        else:
            number = {"add": -0.0, "multiply": 1, "logical_or": False, "logical_and": True}[self.step]
        return Constant(np.array(number).astype(dtype))


REDUCTIONS = (
    Reduction("add", "sum"),
    Reduction("multiply", "prod"),
    Reduction("maximum", "max", smooth=False),
    Reduction("minimum", "min", smooth=False),
    Reduction("logical_or", "any", (BOOL,)),
    Reduction("logical_and", "all", (BOOL,)),
)


@attrs.frozen
class Extremum:
    """The largest (or smallest) term so far, by the number of its parameter, and what else is kept of its round."""

    largest: bool
    number: int
    others: tuple[int, ...]


@attrs.define(eq=False)
class CollectedReductions:
    """A loop that carries arrays of terms in place of reductions, with the bindings before it, its results, and by the
    number of each reduction what it is and where it starts."""

    loop: Loop
    results: list[Var]
    before: list[Binding] = attrs.field(factory=list)
    reductions: dict[int, tuple[Reduction, Atom]] = attrs.field(factory=dict)
    extrema: list[tuple[Extremum, dict[int, Atom]]] = attrs.field(factory=list)
    scattered: dict[int, tuple[int, Atom]] = attrs.field(factory=dict)  # by the number of the terms that of the places

    def totals(self, targets: Sequence[Var], made: Sequence[Binding], differentiated: bool) -> list[Binding]:
        """The bindings of the reductions, after those that make the terms."""
        after = Emitter(self.loop.span)
        values = {b.targets[0]: b.value for b in made if b.targets}
        for number, (reduction, start) in self.reductions.items():
            whole = after.value(start).op(reduction.step, self._total(after, reduction, self.results[number], values))
            _name(after, targets[number], whole)
        for number, (places, start) in self.scattered.items():
            operands = after.value(self.results[places]), after.value(self.results[number])
            _name(after, targets[number], after.value(start).op("scatter_add", *operands, axis=0))
        for extremum, starts in self.extrema:
            self._extremum(after, extremum, starts, targets, differentiated)
        return after.bindings

    def _total(self, after: Emitter, reduction: Reduction, terms: Atom, values: dict[Var, Any]) -> Value:
        """The reduction of all terms. A sum of products of two arrays is a product of vectors, which becomes one of
        matrices in loops around it."""
        while isinstance(terms, Var) and isinstance(inner := values.get(terms), Var):
            terms = inner
        match values.get(terms) if isinstance(terms, Var) else None:
            case OpCall("multiply", (x, y)) if reduction.step == "add" and x.type == y.type == terms.type:  # type: ignore[union-attr]
                return after.value(x).op("matmul", after.value(y))
            case _:
                return after.value(terms).op(reduction.whole)

    def _extremum(
        self, after: Emitter, extremum: Extremum, starts: dict[int, Atom], targets: Sequence[Var], differentiated: bool
    ) -> None:
        """The largest term, which comparisons with NaN leave out, and what is kept of its round."""
        terms = after.value(self.results[extremum.number])
        reduction = REDUCTIONS[2] if extremum.largest else REDUCTIONS[3]
        if terms.base.is_float:
            lowest = after.value(reduction.neutral(terms.base))
            terms = terms.op("isnan").op("where", lowest, terms)
        if extremum.others or differentiated:
            place = terms.op("argmax" if extremum.largest else "argmin", axis=0)
            best = terms.op("index", place)
        else:
            best = terms.op(reduction.whole)
        start = after.value(starts[extremum.number])
        improved = best.op("greater" if extremum.largest else "less", start)
        for other in extremum.others:
            kept = after.value(self.results[other]).op("index", place)
            _name(after, targets[other], improved.op("where", kept, after.value(starts[other])))
        _name(after, targets[extremum.number], improved.op("where", best, start))


def _name(after: Emitter, target: Var, value: Value) -> None:
    """Give the last value that was made a target of its own."""
    last = after.bindings.pop()
    assert last.targets[0] is value.atom
    after.bindings.append(Binding((target,), last.value))


def collected_reductions(
    loop: Loop, targets: Sequence[Var], integers: ValueRanges, differentiated: bool
) -> CollectedReductions | None:
    """The loop, which runs all its rounds, without reductions of numbers; None if there are none. Where it will be
    `differentiated`, those whose derivative would be another one stay."""
    count = integers.count(loop)
    if loop.counter is None or not isinstance(loop.body.terminator, Next) or count is None:
        return None
    found = CollectedReductions(loop, list(targets))
    for number in range(len(loop.parameters)):
        for reduction in REDUCTIONS:
            if (reduction.smooth or not differentiated) and _collect(found, number, reduction, integers):
                break
    _collect_extrema(found, count)
    for number in range(len(loop.parameters)):
        _collect_scattered(found, number, count)
    return found if found.reductions or found.extrema or found.scattered else None


def _collect(found: CollectedReductions, number: int, reduction: Reduction, integers: ValueRanges) -> bool:
    """Change the loop for one parameter, if its rounds do nothing but that reduction with it."""
    loop = found.loop
    parameter, end = loop.parameters[number], loop.body.terminator
    assert isinstance(end, Next)
    type_ = parameter.type
    if not isinstance(type_, TensorType) or type_.shape or type_.base not in reduction.bases:
        return False
    extraction = _Extraction(reduction, parameter, integers)
    made = extraction.block(loop.body.bindings, end.values[number])
    if made is None:
        return False
    bindings, term, base = made
    rest = Block(tuple(bindings), Yield(tuple(v for n, v in enumerate(end.values) if n != number)))
    if term is None or base is not parameter or _mentions(rest, {parameter, *extraction.partial}):
        return False
    found.reductions[number] = reduction, loop.initial[number]
    count = integers.count(loop)
    assert count is not None
    found.loop = _with_terms(found, bindings, {number: term}, count)
    return True


def _mentions(block: Block, variables: set[Var]) -> bool:
    return not variables.isdisjoint(free_variables(block))


def _with_terms(found: CollectedReductions, bindings: Sequence[Binding], terms: dict[int, Atom], count: Dim) -> Loop:
    """The loop with arrays for the terms of all rounds in place of some parameters."""
    loop = found.loop
    end = loop.body.terminator
    assert isinstance(end, Next)
    assert loop.counter is not None
    before, within = Emitter(loop.span), Emitter(loop.span)
    parameters, initial, passed = list(loop.parameters), list(loop.initial), list(end.values)
    for number, term in terms.items():
        type_ = parameters[number].type
        assert isinstance(type_, TensorType)
        whole = TensorType(type_.base, (count, *type_.shape))
        start = before.call(lookup("zeros"), (), {"shape": whole.shape, "dtype": type_.base})  # type: ignore[dict-item]
        parameters[number], initial[number] = Var(f"{parameters[number].name}_terms", whole, loop.span), start.atom
        row = within.value(loop.counter.index)
        passed[number] = within.value(parameters[number]).op("index_update", row, within.value(term)).atom
        found.results[number] = Var(parameters[number].name, whole, loop.span)
    found.before += before.bindings
    body = Block((*bindings, *within.bindings), Next(loop.label, tuple(passed), end.span))
    return Loop(loop.label, tuple(parameters), tuple(initial), body, loop.counter, loop.span)


class _Extraction:
    """The terms that a block adds to a parameter, without the additions. `partial` are the sums that are gone."""

    def __init__(self, reduction: Reduction, parameter: Var, integers: ValueRanges) -> None:
        self.reduction, self.parameter, self.integers = reduction, parameter, integers
        self.partial: set[Var] = set()
        self.dependent: set[Atom] = {parameter}  # the values that depend on the parameter

    def block(self, block: Sequence[Binding], value: Atom) -> tuple[list[Binding], Atom | None, Atom] | None:
        """The bindings without the additions that lead to a value, what they add, and the value that they add it to,
        which another block has; None where the value is not such a sum."""
        bindings = list(block)
        self._find_dependent(bindings)
        terms: list[Atom] = []
        while True:
            place = next((n for n, b in enumerate(bindings) if value in b.targets), None)
            if place is None:
                break
            step = self._step(bindings[place], value)
            if step is None:
                return None
            made, added, value = step
            bindings[place : place + 1] = made
            terms += added
        if not isinstance(value, Var):
            return None
        if not terms:
            return bindings, None, value
        end = Emitter(None)
        total = end.value(terms[-1])
        for term in reversed(terms[:-1]):
            total = total.op(self.reduction.step, end.value(term))
        return [*bindings, *end.bindings], total.atom, value

    def _step(self, binding: Binding, value: Atom) -> tuple[list[Binding], list[Atom], Atom] | None:
        """The bindings in the place of one, the terms that it adds, and the value that it adds them to."""
        match binding.value:
            case Var() as other:
                self.partial.add(binding.targets[0])
                return [], [], other
            case OpCall(
                operator,
                (x, y),
            ) if operator == self.reduction.step:
                if (x in self.dependent) == (y in self.dependent) or x.type != y.type:  # type: ignore[union-attr]
                    return None
                self.partial.add(binding.targets[0])
                return ([], [y], x) if x in self.dependent else ([], [x], y)
            case OpCall("subtract", (x, y), span=span) if self.reduction.step == "add":
                if x not in self.dependent or y in self.dependent or x.type != y.type:  # type: ignore[union-attr]
                    return None
                self.partial.add(binding.targets[0])
                term = Var("term", x.type, span)  # type: ignore[union-attr]
                return [Binding((term,), OpCall("negative", (y,), {}, span))], [term], x
            case If() as branch:
                lazy = self._lazy_operand(branch)
                if lazy is not None:
                    self.partial.add(binding.targets[0])
                    return lazy
                return self._branch(binding.targets, branch, value)
            case _:
                return None

    def _lazy_operand(self, branch: If) -> tuple[list[Binding], list[Atom], Atom] | None:
        """The operand of `p or t` and `p and t`, where it may be computed in any case."""
        if self.reduction.step not in ("logical_or", "logical_and") or len(branch.arms) != 1:
            return None
        condition, body = branch.arms[0].condition, branch.arms[0].body
        known, other = (body, branch.orelse) if self.reduction.step == "logical_or" else (branch.orelse, body)
        match condition, known, other.terminator:
            case Block((), Yield((tested,))), Block((), Yield((same,))), Yield((term,)) if tested in self.dependent:
                decided = isinstance(same, Constant) and bool(same.value) == (self.reduction.step == "logical_or")
            case _:
                return None
        calls = [b.value for b in other.bindings]
        if not (decided or same is tested) or not all(isinstance(c, OpCall) and self._never_fails(c) for c in calls):
            return None
        return list(other.bindings), [term], tested

    def _never_fails(self, call: OpCall) -> bool:
        """True if a call cannot fail: it reads a row that is there, or has no requirement."""
        if not may_fail(call):
            return True
        if lookup(call.operator).indexing.kind is not IndexKind.ROW:
            return False
        place, type_ = self.integers.scalar_dim(call.arguments[1]), call.arguments[0].type  # type: ignore[union-attr]
        assert isinstance(type_, TensorType)
        extent = type_.shape[0]
        if place is None or extent is ANY:
            return False
        return bool(self.integers.at_least(place, 0) and self.integers.at_least(extent, add(place, 1)))

    def _branch(self, targets: Sequence[Var], branch: If, value: Atom) -> tuple[list[Binding], list[Atom], Atom] | None:
        """A branch that yields the term of the arm that is taken."""
        number = next(n for n, t in enumerate(targets) if t is value)
        bodies: list[Block] = []
        found: Atom | None = None
        for body in (*(arm.body for arm in branch.arms), branch.orelse):
            end = body.terminator
            made = self.block(body.bindings, end.values[number]) if isinstance(end, Yield) else None
            if made is None or (found is not None and made[2] is not found):
                return None
            bindings, term, found = made
            assert isinstance(end, Yield)
            assert isinstance(self.parameter.type, TensorType)
            assert isinstance(self.parameter.type.base, BaseType)
            term = self.reduction.neutral(self.parameter.type.base) if term is None else term
            values = (*end.values[:number], term, *end.values[number + 1 :])
            bodies.append(Block(tuple(bindings), Yield(values, end.span)))
        assert found is not None
        target = targets[number]
        self.partial.add(target)
        added = Var("term", target.type, target.span)
        arms = tuple(Arm(arm.condition, body) for arm, body in zip(branch.arms, bodies[:-1], strict=True))
        results = (*targets[:number], added, *targets[number + 1 :])
        return [Binding(results, If(arms, bodies[-1], branch.span))], [added], found

    def _find_dependent(self, bindings: Sequence[Binding]) -> None:
        for binding in bindings:
            if _mentions(Block((binding,), Yield(())), {v for v in self.dependent if isinstance(v, Var)}):
                self.dependent.update(binding.targets)


def _collect_extrema(found: CollectedReductions, count: Dim) -> None:
    """Change the loop for parameters that keep the largest term, or what belongs to it."""
    for binding in found.loop.body.bindings:
        if isinstance(binding.value, If) and len(binding.value.arms) == 1:
            _collect_extremum(found, binding, binding.value, count)


def _collect_extremum(found: CollectedReductions, binding: Binding, branch: If, count: Dim) -> None:
    loop = found.loop
    end, counts = loop.body.terminator, uses(loop.body)
    assert isinstance(end, Next)
    (arm,) = branch.arms
    kept, taken, test = branch.orelse, arm.body, arm.condition.terminator
    if kept.bindings or taken.bindings or not isinstance(test, Yield):
        return
    numbers: list[int] = []
    for target, old in zip(binding.targets, kept.terminator.values, strict=True):  # type: ignore[union-attr]
        number = next((n for n, p in enumerate(loop.parameters) if p is old), None)
        if number is None or end.values[number] is not target or counts[target] != 1:
            return
        numbers.append(number)
    calls = {b.targets[0]: b for b in (*loop.body.bindings, *arm.condition.bindings) if isinstance(b.value, OpCall)}
    comparison = calls.get(test.values[0]) if isinstance(test.values[0], Var) else None
    if comparison is None or counts[comparison.targets[0]] != 1:
        return
    new = dict(zip(numbers, taken.terminator.values, strict=True))  # type: ignore[union-attr]
    match comparison.value:
        case OpCall("greater" | "less" as name, (x, y)):
            best, largest = (y, name == "greater") if y in loop.parameters else (x, name == "less")
            term = x if best is y else y
        case _:
            return
    number = next((n for n in numbers if loop.parameters[n] is best), None)
    mine = {loop.parameters[n] for n in numbers}
    if number is None or new[number] is not term or counts[best] != 2 or any(counts[p] != 1 for p in mine - {best}):  # type: ignore[index]
        return
    if any(not _is_number(loop.parameters[n], BASES if n == number else (*BASES, BOOL)) for n in numbers):
        return
    others = tuple(n for n in numbers if n != number)
    starts = {n: loop.initial[n] for n in numbers}
    conditions = [b for b in arm.condition.bindings if b is not comparison]
    bindings = [
        b for each in loop.body.bindings for b in (conditions if each is binding else [each]) if b is not comparison
    ]
    found.extrema.append((Extremum(largest, number, others), starts))
    found.loop = _with_terms(found, bindings, new, count)


def _collect_scattered(found: CollectedReductions, number: int, count: Dim) -> None:
    """Change the loop for an array to whose rows its rounds add something, at places of which several may be one."""
    loop = found.loop
    parameter, end, counts = loop.parameters[number], loop.body.terminator, uses(loop.body)
    assert isinstance(end, Next)
    type_, last = parameter.type, end.values[number]
    calls = {b.targets[0]: b.value for b in loop.body.bindings if isinstance(b.value, OpCall)}
    update = calls.get(last) if isinstance(last, Var) else None
    if not isinstance(type_, TensorType) or not type_.shape or type_.base not in BASES:
        return
    match update:
        case OpCall("index_update", (array, place, new)) if array is parameter and isinstance(new, Var):
            pass
        case _:
            return
    match calls.get(new):
        case OpCall("add", (row, term)) if _reads(calls.get(row), parameter, place):  # type: ignore[arg-type]
            pass
        case OpCall("add", (term, row)) if _reads(calls.get(row), parameter, place):  # type: ignore[arg-type]
            pass
        case _:
            return
    gone = {row, new, last}
    if counts[parameter] != 2 or any(counts[v] != 1 for v in gone) or term.type != row.type:  # type: ignore[union-attr,index]
        return
    bindings = [b for b in loop.body.bindings if gone.isdisjoint(b.targets)]
    places = Var("places", place.type, loop.span)  # type: ignore[union-attr]
    found.scattered[number] = len(loop.parameters), loop.initial[number]
    found.results.append(places)
    row_type = Var(parameter.name, row.type, loop.span)  # type: ignore[union-attr]
    parameters = (*loop.parameters[:number], row_type, *loop.parameters[number + 1 :], places)
    passed = Next(loop.label, (*end.values, place), end.span)
    initial = (*loop.initial, place)
    found.loop = Loop(loop.label, parameters, initial, Block(loop.body.bindings, passed), loop.counter, loop.span)
    found.loop = _with_terms(found, bindings, {number: term, len(loop.parameters): place}, count)


def _reads(call: OpCall | None, array: Var, place: Atom) -> bool:
    return call is not None and call.operator == "index" and call.arguments == (array, place)


def _is_number(variable: Var, bases: Sequence[BaseType]) -> bool:
    type_ = variable.type
    return isinstance(type_, TensorType) and not type_.shape and type_.base in bases
