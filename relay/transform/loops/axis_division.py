"""The division of a loop along an axis of examples at the collective operators in its body.

    loop for i < n along "b" (r = rows) { y = f(x[i]); s = collective_sum(y); r' = set r i (y / s); next r' }

    loop for i < n (ys = ..) { y = f(x[i]); next (set ys i y) }
    s = sum(ys)
    loop for i < n (r = rows) { y = ys[i]; r' = set r i (y / s); next r' }

What later parts need of an example is kept: a tensor whose shape is the same for all examples as a row of an array,
everything else in a stack. A loop or branch in the body that holds a collective operator is one that all examples take
alike, which is checked where it could differ, and changes places with the loop over the examples. What does not depend
on the example is computed once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Set
from typing import Any, Protocol, TypeAlias

import attrs
import numpy as np

from relay.errors import CompileError, InternalError, Span
from relay.ir.dims import ANY, DataDependentDim, Dim, variables
from relay.ir.expr import (
    Arm,
    Assert,
    Atom,
    BindDim,
    Binding,
    Block,
    Constant,
    Construct,
    Counter,
    Dead,
    Exit,
    Expr,
    Extent,
    If,
    Loop,
    LoopLabel,
    MakeTuple,
    Match,
    MatchArm,
    Next,
    OpCall,
    Project,
    StackGet,
    StackNew,
    StackPush,
    Terminator,
    Var,
    Yield,
)
from relay.ir.rebuild import substitute, with_values
from relay.ir.traverse import NESTING, all_blocks, blocks, free_variables, operands, terminator_operands, walk, yields
from relay.ir.types import BOOL, INT32, BaseType, StackType, TensorType, Type, scalar, show
from relay.operator import Emitter, Value, lookup

APART = "the examples do not all come here, and wait for each other"
"""The error of examples that do not ask together."""

_REDUCTIONS = {"collective_sum": "sum", "collective_max": "max", "collective_min": "min"}


def is_collective(value: Expr) -> bool:
    """True for a call whose result depends on all examples along an axis."""
    return isinstance(value, OpCall) and lookup(value.operator).batching.collective


def asks(value: Expr, axis: str) -> bool:
    return isinstance(value, OpCall) and is_collective(value) and value.attributes["axis_name"] == axis


class Surroundings(Protocol):
    """The facts about the function around the loop."""

    is_differentiated: bool  # a derivative of the function is still to be made

    def is_pending(self, block: Block) -> bool:
        """True if a block calls functions that will ask for an axis when their derivatives are made."""
        ...


def _varying_variables(loop: Loop, axis: str) -> set[Var]:
    """The variables of a loop's body whose values may differ between its examples."""
    assert loop.counter is not None
    found: set[Var] = {loop.counter.index, *loop.parameters}
    bindings = list(walk(loop.body))
    ways = _ways(loop.body)
    while True:
        before = len(found)
        for binding in bindings:
            if _varies(binding, found, axis, ways):
                found.update(binding.targets)
            value = binding.value
            if isinstance(value, Loop):
                sources = [value.initial, *(v for v in ways.get(value.label, ()) if len(v) == len(value.parameters))]
                found.update(
                    p for i, p in enumerate(value.parameters) if any(_in(source[i], found) for source in sources)
                )
            elif isinstance(value, Match) and _in(value.value, found):
                found.update(f for arm in value.arms for f in arm.fields)
        if len(found) == before:
            return found


_Ways: TypeAlias = dict[LoopLabel, list[tuple[Atom, ...]]]


def _ways(block: Block) -> _Ways:
    """The values with which blocks lead to each loop's next round or end."""
    found: _Ways = {}
    for inner in all_blocks(block):
        end = inner.terminator
        if isinstance(end, Next | Exit):
            found.setdefault(end.label, []).append(end.values)
    return found


def _in(atom: Atom, found: Set[Var]) -> bool:
    return isinstance(atom, Var) and atom in found


def _varies(binding: Binding, found: Set[Var], axis: str, ways: _Ways) -> bool:
    value = binding.value
    match value:
        case OpCall() if asks(value, axis):
            return value.operator == "collective_index"
        case OpCall():
            return bool(lookup(value.operator).requirements) or any(_in(a, found) for a in value.arguments)
        case Var() | Constant() | MakeTuple() | Project() | Construct():
            return any(_in(a, found) for a in operands(value))
        case Extent():
            return False
        case If():
            conditions = [arm.condition.terminator for arm in value.arms]
            asked = [c.values[0] for c in conditions if isinstance(c, Yield)]
            return any(_in(a, found) for a in (*asked, *(a for way in yields(value) for a in way)))
        case Match():
            return _in(value.value, found) or any(_in(a, found) for way in yields(value) for a in way)
        case Loop():
            inner = (a for way in ways.get(value.label, ()) for a in way)
            counts = () if value.counter is None else (value.counter.count,)
            return any(_in(a, found) for a in (*value.initial, *inner, *counts))
        case _:
            return True


@attrs.frozen(eq=False)
class _SavedValue:
    """A variable of one example, kept for all of them: a row of an array, or an element of a stack."""

    whole: Var
    is_rows: bool


class Division:
    """One loop along an axis."""

    def __init__(self, loop: Loop, counter: Counter, count: Dim, surroundings: Surroundings) -> None:
        self.loop, self.counter, self.count, self.surroundings = loop, counter, count, surroundings
        self.axis = counter.axis
        self.varying = _varying_variables(loop, counter.axis)
        self.kept: dict[Var, _SavedValue] = {}
        self.made: dict[Var, MakeTuple | Construct] = {}  # the tuples and records in the body
        self.ways: dict[LoopLabel, tuple[tuple[bool, ...], tuple[bool, ...]]] = {}
        """Of loops that changed places: which values of the next round, and of the end, are kept for all examples."""

    def bindings(self, targets: Sequence[Var]) -> list[Binding]:
        part = _Part(self, self.loop.body)
        part.run()
        end = self.loop.body.terminator
        assert isinstance(end, Next)
        part.close(targets, end)
        return part.out

    def kept_type(self, variable: Var) -> tuple[Type, bool]:
        """The type of what is kept of a variable for all examples, and whether that is an array."""
        type_ = variable.type
        assert type_ is not None
        if isinstance(type_, TensorType) and isinstance(type_.base, BaseType) and not any(map(_is_open, type_.shape)):
            return TensorType(type_.base, (self.count, *type_.shape)), True
        if self.surroundings.is_differentiated:
            raise CompileError(
                f"examples keep {show(type_)} for what follows a question to all of an axis, of which no derivative is "
                "made",
                _place(self.loop, self),
                help="ask before it is made, or ask outside of branches and loops",
            )
        return StackType(type_), False

    def empty(self, emitter: Emitter, variable: Var) -> tuple[Value, bool]:
        """The values that are kept of no example yet, and whether each is an array."""
        type_, is_rows = self.kept_type(variable)
        if isinstance(type_, TensorType):
            attributes: dict[str, Any] = {"shape": type_.shape, "dtype": type_.base}
            return emitter.call(lookup("zeros"), (), attributes), is_rows
        assert isinstance(type_, StackType) and variable.type is not None
        return emitter.bind(StackNew(variable.type), type_, variable.name), is_rows

    def holds(self, value: Expr) -> bool:
        """True if an expression has a collective operator along the axis in it, or ends a round of a loop that has."""
        if value.__class__ not in NESTING:
            return asks(value, self.axis)
        ends = (inner.terminator for block in blocks(value) for inner in all_blocks(block))
        if any(isinstance(end, Next | Exit) and end.label in self.ways for end in ends):
            return True
        return any(asks(b.value, self.axis) for block in blocks(value) for b in walk(block))


class _Part:
    """A block of the body. `out` are the bindings that take its place, `waiting` those of one example that are to go in
    the next loop over the examples."""

    def __init__(self, division: Division, block: Block) -> None:
        self.division, self.block = division, block
        self.out: list[Binding] = []
        self.waiting: list[Binding] = []
        self.flattened = [*_flattened(block.bindings, division)]
        self.last: dict[Var, int] = {}
        for position, binding in enumerate(self.flattened):
            used = (*operands(binding.value), *_used_inside(binding.value))
            self.last.update((a, position) for a in used if isinstance(a, Var))
        for atom in terminator_operands(block.terminator):
            if isinstance(atom, Var):
                self.last[atom] = len(self.flattened)

    def run(self) -> None:
        """All bindings."""
        division = self.division
        for position, binding in enumerate(self.flattened):
            value = binding.value
            if division.holds(value):
                self._collective(position, binding)
            elif not isinstance(value, BindDim) and binding.targets and not self._varies(binding):
                self.out.append(binding)
            else:
                self.waiting.append(binding)

    def _varies(self, binding: Binding) -> bool:
        pure = isinstance(binding.value, OpCall | Var | Constant | MakeTuple | Project | Construct | Extent)
        return not pure or any(t in self.division.varying for t in binding.targets)

    def _collective(self, position: int, binding: Binding) -> None:
        match binding.value:
            case OpCall() as call:
                self._call(position, binding.targets[0], call)
            case Loop() as loop:
                self._loop(position, binding.targets, loop)
            case If() | Match() as branch:
                self._branch(position, binding.targets, branch)
            case other:
                raise InternalError(f"{type(other).__name__} holds a collective operator")

    # ---- collective operators

    def _call(self, position: int, target: Var, call: OpCall) -> None:
        division, index = self.division, self.division.counter.index
        if call.operator == "collective_index":
            same = index.type == target.type
            cast: Expr = index if same else OpCall("cast", (index,), {"dtype": INT32}, call.span)
            self.waiting.append(Binding((target,), cast))
            return
        (operand,) = call.arguments
        if isinstance(operand, Var) and operand in division.varying:
            self._flush(position, (operand,))
            kept = division.kept[operand]
            if not kept.is_rows:
                raise CompileError("what all examples have together has a shape that may differ", call.span)
            emitter = Emitter(call.span)
            whole = emitter.value(kept.whole)
        else:
            emitter = Emitter(call.span)
            single = emitter.value(operand)
            whole = single.op("broadcast_to", shape=(division.count, *single.shape))
        if call.operator != "collective_gather":
            whole = whole.op(_REDUCTIONS[call.operator], axis=(0,), keepdims=False)
        self.out += emitter.bindings
        self.out.append(Binding((target,), whole.atom))

    # ---- loops over the examples

    def _flush(self, position: int, needed: Iterable[Var] = ()) -> None:
        """Write a loop with what waits. It keeps what is needed from this position on."""
        division = self.division
        bound = [t for b in self.waiting for t in b.targets]
        wanted = set(needed)
        keep = [t for t in bound if t in wanted or self.last.get(t, -1) >= position]
        index = division.counter.index
        keep += [a for a in wanted if a is index and a not in division.kept]
        if not keep and not any(_matters(b.value) for b in self.waiting):
            self.waiting = []
            return
        emitter, body = Emitter(division.loop.span), Emitter(division.loop.span)
        place = Var(index.name, index.type, index.span)
        block, reads = self._reading(Block(tuple(self.waiting), Yield(tuple(keep))), place)
        body.items += [*reads, *block.bindings]
        assert isinstance(block.terminator, Yield)
        parameters, initial, passed = [], [], []
        results: list[tuple[Var, _SavedValue]] = []
        for variable, atom in zip(keep, block.terminator.values, strict=True):
            start, is_rows = division.empty(emitter, variable)
            parameter = Var(variable.name, start.type, variable.span)
            value = body.value(parameter)
            if is_rows:
                new = value.op("index_update", body.value(place), body.value(atom, variable.type)).atom
            else:
                new = body.bind(StackPush(parameter, atom), start.type, variable.name).atom
            parameters.append(parameter)
            initial.append(start.atom)
            passed.append(new)
            results.append((variable, _SavedValue(Var(variable.name, start.type, variable.span), is_rows)))
        targets = tuple(kept.whole for _, kept in results)
        label = LoopLabel(division.loop.label.name)
        inner = Block(body.all_bindings(), Next(label, tuple(passed)))
        loop = Loop(label, tuple(parameters), tuple(initial), inner, self._counter(place, inner), division.loop.span)
        self.out += [*emitter.bindings, Binding(targets, loop)]
        division.kept.update(results)
        self.waiting = []

    def _counter(self, place: Var, body: Block) -> Counter:
        division = self.division
        return Counter(place, division.counter.count, self.axis_of(body), division.counter.divergence)

    def axis_of(self, body: Block) -> str:
        """The axis of a loop over the examples, if something in it will still ask for it."""
        return self.division.axis if self.division.surroundings.is_pending(body) else ""

    def _reading(self, block: Block, place: Var) -> tuple[Block, list[Binding]]:
        """The block of one example, which reads what is kept of it, and these reads."""
        division = self.division
        reads = Emitter(division.loop.span)
        mapping: dict[Var, Atom] = {division.counter.index: place}
        for variable in free_variables(block):
            kept = division.kept.get(variable)
            if kept is None:
                continue
            whole = reads.value(kept.whole)
            if kept.is_rows:
                mapping[variable] = whole.op("index", reads.value(place)).atom
            else:
                assert variable.type is not None
                mapping[variable] = reads.bind(StackGet(kept.whole, place), variable.type, variable.name).atom
        return substitute(block, mapping), reads.bindings

    def close(self, targets: Sequence[Var], end: Next) -> None:
        """The last loop, which carries what the whole one does."""
        division, loop = self.division, self.division.loop
        early = {v for b in self.out for v in _variables(b)}
        crossing = [p for p in loop.parameters if p in early]
        if crossing:
            raise CompileError(
                f"examples pass on {crossing[0].name} from one to the next, and wait for each other",
                loop.span,
                help="a reference is not written where examples ask for all of an axis",
            )
        index = division.counter.index
        place = Var(index.name, index.type, index.span)
        label = LoopLabel(loop.label.name)
        block, reads = self._reading(Block(tuple(self.waiting), end), place)
        assert isinstance(block.terminator, Next)
        body = Block((*reads, *block.bindings), Next(label, block.terminator.values, end.span))
        last = Loop(label, loop.parameters, loop.initial, body, self._counter(place, body), loop.span)
        self.out.append(Binding(tuple(targets), last))

    # ---- loops and branches that all examples take alike

    def _loop(self, position: int, targets: Sequence[Var], loop: Loop) -> None:
        division = self.division
        counter = loop.counter
        if counter is not None:
            counter = attrs.evolve(counter, count=self._agreed(position, counter.count, _place(loop, division)))  # type: ignore[misc]
        flags = tuple(p in division.varying for p in loop.parameters)
        leaving = flags if loop.counter is not None else tuple(t in division.varying for t in targets)
        division.ways[loop.label] = flags, leaving
        starts = self._keep(position, loop.initial, flags)
        parameters = [self._parameter(p) if f else p for p, f in zip(loop.parameters, flags, strict=True)]
        body = self._nested(loop.body, ())
        made = Loop(loop.label, tuple(parameters), tuple(starts), body, counter, loop.span)
        self.out.append(Binding(self._results(targets, leaving), made))

    def _parameter(self, parameter: Var) -> Var:
        """The variable for a parameter of all examples."""
        type_, is_rows = self.division.kept_type(parameter)
        made = Var(parameter.name, type_, parameter.span)
        self.division.kept[parameter] = _SavedValue(made, is_rows)
        return made

    def _results(self, targets: Sequence[Var], flags: Sequence[bool]) -> tuple[Var, ...]:
        return tuple(self._parameter(t) if f else t for t, f in zip(targets, flags, strict=True))

    def _keep(self, position: int, atoms: Sequence[Atom], flags: Sequence[bool]) -> list[Atom]:
        """The replacements of values: of those that are marked, the values that are kept of all examples.
        Writes the loop of what waits."""
        places: list[Atom] = list(atoms)
        new = set()
        for number, (atom, flag) in enumerate(zip(atoms, flags, strict=True)):
            if flag:
                copy = Var("value", getattr(atom, "type", None), getattr(atom, "span", None))
                self.waiting.append(Binding((copy,), atom))
                places[number] = copy
                new.add(copy)
        self._flush(position, new)
        return [self.division.kept[p].whole if isinstance(p, Var) and p in new else p for p in places]

    def _nested(self, block: Block, yielded: Sequence[bool]) -> Block:
        part = _Part(self.division, block)
        part.run()
        end = block.terminator
        flags: Sequence[bool]
        match end:
            case Dead():
                part._flush(len(part.flattened))
                return Block(tuple(part.out), end)
            case Yield():
                flags = yielded
            case Next(label):
                flags = self.division.ways[label][0]
            case Exit(label):
                flags = self.division.ways[label][1]
        values = tuple(part._keep(len(part.flattened), end.values, flags))
        return Block(tuple(part.out), with_values(end, values))

    def _branch(self, position: int, targets: Sequence[Var], branch: If | Match) -> None:
        division = self.division
        flags = tuple(t in division.varying for t in targets)
        match branch:
            case If(arms, orelse, span):
                (condition,) = terminator_operands(arms[0].condition.terminator)
                condition = self._agreed(position, condition, _place(branch, division))
                self._flush(position)
                made: Expr = If(
                    (Arm(Block((), Yield((condition,))), self._nested(arms[0].body, flags)),),
                    self._nested(orelse, flags),
                    span,
                )
            case Match(value, match_arms, span):
                if _in(value, division.varying):
                    self._varying_match(position, targets, branch)
                    return
                self._flush(position)
                arms_ = tuple(MatchArm(a.constructor, a.fields, self._nested(a.body, flags)) for a in match_arms)
                made = Match(value, arms_, span)
        self.out.append(Binding(self._results(targets, flags), made))

    def _varying_match(self, position: int, targets: Sequence[Var], branch: Match) -> None:
        """A match of values that differ, but have the same constructor in all examples."""
        division, span = self.division, branch.span
        flags = tuple(t in division.varying for t in targets)
        conditions = []
        for arm in branch.arms[:-1]:
            is_it = Var("is_" + arm.constructor, scalar(BOOL), span)
            yields = [Yield((Constant(np.array(a is arm), span),)) for a in branch.arms]
            asked = tuple(
                MatchArm(a.constructor, _copies(a.fields), Block((), end))
                for a, end in zip(branch.arms, yields, strict=True)
            )
            division.varying.add(is_it)
            self.waiting.append(Binding((is_it,), Match(branch.value, asked, span)))
            self.last[is_it] = position
            conditions.append(self._agreed(position, is_it, _place(branch, division)))
        self._flush(position)
        made = [self._nested(self._arm_with_fields(branch, arm), flags) for arm in branch.arms]
        arms = tuple(Arm(Block((), Yield((c,))), body) for c, body in zip(conditions, made, strict=False))
        if arms:
            self.out.append(Binding(self._results(targets, flags), If(arms, made[-1], span)))
        else:
            self.out += made[-1].bindings
            assert isinstance(made[-1].terminator, Yield)
            copies = zip(self._results(targets, flags), made[-1].terminator.values, strict=True)
            self.out += [Binding((target,), value) for target, value in copies]

    def _arm_with_fields(self, branch: Match, arm: MatchArm) -> Block:
        """The body of an arm with the fields of the constructor that the value has."""
        if not arm.fields:
            return arm.body
        copies = _copies(arm.fields)
        arms = tuple(
            MatchArm(arm.constructor, copies, Block((), Yield(copies)))
            if a is arm
            else MatchArm(a.constructor, _copies(a.fields), Block((), Dead()))
            for a in branch.arms
        )
        opening = Binding(arm.fields, Match(branch.value, arms, branch.span))
        return Block((opening, *arm.body.bindings), arm.body.terminator)

    def _agreed(self, position: int, atom: Atom, span: Span | None) -> Atom:
        """A condition or a number of rounds that all examples have, which is checked where it could differ."""
        division = self.division
        if not isinstance(atom, Var) or atom not in division.varying:
            return atom
        self._flush(position, (atom,))
        emitter = Emitter(span)
        rows = emitter.value(division.kept[atom].whole)
        if rows.base == BOOL:
            value = rows.op("any")
            holds = value.op("logical_not").op("logical_or", rows.op("all"))
        else:
            nothing = emitter.constant(np.zeros(1), rows.base)
            value = emitter.call(lookup("concatenate"), [nothing, rows], {"axis": 0}).op("max")
            holds = (rows == value).op("all")
        emitter.perform(Assert(holds.atom, APART, span))
        self.out += emitter.bindings
        return value.atom


def _copies(variables: Sequence[Var]) -> tuple[Var, ...]:
    return tuple(Var(v.name, v.type, v.span) for v in variables)


def _flattened(bindings: Sequence[Binding], division: Division) -> Iterator[Binding]:
    """Bindings in which a branch that holds a collective operator has one condition, which is computed before it, and
    in which parts of tuples and records are what these were made of."""
    pending = list(reversed(bindings))
    while pending:
        binding = pending.pop()
        value = binding.value
        match value:
            case MakeTuple() | Construct():
                division.made[binding.targets[0]] = value
            case Project(Var() as whole, index) if isinstance(made := division.made.get(whole), MakeTuple):
                binding = Binding(binding.targets, made.items[index])
            case Match(Var() as whole, (MatchArm(_, fields, Block(inner, Yield(results))),)) if isinstance(
                made := division.made.get(whole), Construct
            ):
                pending += [Binding((t,), r) for t, r in zip(binding.targets, results, strict=True)]
                pending += reversed(inner)
                pending += [Binding((f,), a) for f, a in zip(fields, made.arguments, strict=True)]
                continue
            case If(arms) if division.holds(value):
                condition = arms[0].condition
                if not isinstance(condition.terminator, Yield):
                    raise InternalError("a condition that leaves its block")
                pending.append(_first_arm(binding, value, division))
                if condition.bindings or len(arms) > 1:
                    pending += reversed(condition.bindings)
                    continue
                pending.pop()
        yield binding


def _first_arm(binding: Binding, branch: If, division: Division) -> Binding:
    """A branch with one arm, whose condition's bindings stand before it; the others are in a branch inside it."""
    orelse = branch.orelse
    if len(branch.arms) > 1:
        inner = _copies(binding.targets)
        division.varying.update(i for i, t in zip(inner, binding.targets, strict=True) if t in division.varying)
        rest = If(branch.arms[1:], branch.orelse, branch.span)
        orelse = Block((Binding(inner, rest),), Yield(inner) if inner else _end_of(branch))
    first = Arm(Block((), branch.arms[0].condition.terminator), branch.arms[0].body)
    return Binding(binding.targets, If((first,), orelse, branch.span))


def _end_of(branch: If) -> Terminator:
    """The end of a block that ends with a branch: none, if all its arms leave."""
    ends = [*(arm.body.terminator for arm in branch.arms), branch.orelse.terminator]
    return Yield(()) if any(isinstance(end, Yield) for end in ends) else Dead()


def _used_inside(value: Expr) -> Iterator[Var]:
    """The variables that an expression's blocks use."""
    if value.__class__ in NESTING:
        for block in blocks(value):
            yield from free_variables(block)


def _variables(binding: Binding) -> Iterator[Var]:
    yield from (a for a in operands(binding.value) if isinstance(a, Var))
    yield from _used_inside(binding.value)


def _matters(value: Expr) -> bool:
    """True if an expression may do more than compute its value."""
    return not isinstance(value, OpCall | Var | Constant | MakeTuple | Project | Construct | Extent) or (
        isinstance(value, OpCall) and bool(lookup(value.operator).requirements)
    )


def _is_open(dim: object) -> bool:
    return dim is ANY or any(isinstance(v, DataDependentDim) for v in variables(dim))  # type: ignore[arg-type]


def _place(value: Expr, division: Division) -> Span | None:
    """The place of the first collective operator in an expression."""
    calls = (b.value for block in blocks(value) for b in walk(block) if asks(b.value, division.axis))
    return next((call.span for call in calls), value.span)
