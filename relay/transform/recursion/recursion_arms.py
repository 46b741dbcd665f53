"""Arms of a recursive function: the ways through it that what is known before its calls tells apart.

    match x { Leaf(a) -> e;  Node(k, l, r) -> if k > 0 { f(l) } else { match r { .. } } }

The `match` on the value that the function takes apart, those on its fields, and branches with calls whose conditions
depend on no other call make a tree of decisions. Its leaves are the arms: all that a function does on one way, calls
on fields first, and then operators, and branches and loops without calls.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import attrs

from relay.errors import Span
from relay.ir.expr import (
    Arm,
    Assert,
    Atom,
    Binding,
    Block,
    Call,
    Constant,
    Construct,
    Dead,
    Exit,
    Function,
    If,
    Loop,
    Match,
    OpCall,
    Terminator,
    Var,
    Yield,
)
from relay.ir.rebuild import map_blocks, rebind, rebuild_block, substitute
from relay.ir.traverse import free_variables, walk
from relay.ir.types import DataType
from relay.operator import Pattern, lookup

MOST_ARMS = 16
"""The most arms of a function: each has code of its own."""


class Obstacle(Exception):
    """The reason why functions are no structural recursion, and its place."""

    def __init__(self, text: str, span: Span | None) -> None:
        super().__init__(text)
        self.span = span


@attrs.frozen(eq=False)
class Part:
    """A call of a function on a field: `field` is the field's position, `target` what the call binds. `arguments` are
    all of the call; `before` computes those that are not parameters. If the field is a list, it stands for the calls
    on all elements, and `target` for a list of what they give."""

    field: int
    function: str
    target: Var
    arguments: tuple[Atom, ...]
    before: tuple[Binding, ...]


@attrs.frozen(eq=False)
class Constructed:
    """A value that is known to be made by a constructor; `fields` has a variable for each field."""

    value: Var
    constructor: str
    fields: tuple[Var, ...]


@attrs.frozen(eq=False)
class RecursionArm:
    """One way through a function.

    Attributes:
        function: the name of the function.
        known: the values that are taken apart on the way, each the parameter or a field of one before it.
        parts: the calls on fields, in order.
        bindings: everything else, in order.
        result: what the function returns.
        lists: the calls on the elements of a field that is a list.
        lengths: fields that are lists, and the variables with their lengths.
    """

    function: str
    known: tuple[Constructed, ...]
    parts: tuple[Part, ...]
    bindings: tuple[Binding, ...]
    result: Atom
    lists: tuple[Part, ...] = ()
    lengths: tuple[tuple[Var, Var], ...] = ()

    @property
    def fields(self) -> tuple[Var, ...]:
        """The fields of all values that are known."""
        return known_fields(self.known)


@attrs.frozen(eq=False)
class Condition:
    """A decision by a condition; `before` computes it."""

    before: tuple[Binding, ...]
    condition: Atom
    then: Decision
    orelse: Decision


@attrs.frozen(eq=False)
class Case:
    """A decision by the constructor of a value: one for each, in the order of the data type."""

    value: Var
    arms: tuple[tuple[Constructed, Decision], ...]


Decision: TypeAlias = RecursionArm | Condition | Case


def decision_arms(decision: Decision) -> list[RecursionArm]:
    """The arms that decisions lead to, in order."""
    match decision:
        case RecursionArm():
            return [decision]
        case Condition(_, _, then, orelse):
            return [*decision_arms(then), *decision_arms(orelse)]
        case Case(_, arms):
            return [arm for _, inner in arms for arm in decision_arms(inner)]


MakeArm: TypeAlias = Callable[[Sequence[Constructed], Block], RecursionArm]
"""The function that makes an arm of what is known and a block that ends with the function's result."""


@attrs.frozen
class _Rest:
    """The code after a branch: its targets get what the branch yields."""

    targets: tuple[Var, ...]
    bindings: tuple[Binding, ...]
    end: Terminator
    after: _Rest | None


@attrs.frozen
class _Way:
    """The way from the function's beginning to a place."""

    known: tuple[Constructed, ...]
    done: tuple[Binding, ...]

    def name(self, atom: Atom) -> Atom:
        """The atom that an atom is another name for."""
        names = {b.targets[0]: b.value for b in self.done if isinstance(b.value, Var)}
        while isinstance(atom, Var) and atom in names:
            atom = names[atom]
        return atom

    def constructed(self, atom: Atom) -> tuple[str, tuple[Atom, ...]] | None:
        """The constructor of a value and its fields, if it has been taken apart, or made, on the way."""
        name = self.name(atom)
        for known in self.known:
            if known.value is name:
                return known.constructor, known.fields
        for binding in self.done:
            if isinstance(binding.value, Construct) and binding.targets[0] is name:
                return binding.value.constructor, binding.value.arguments
        return None


def find_decisions(function: Function, data: Var, arm: MakeArm) -> Decision:
    """The decisions of a function that takes a parameter apart. Raises Obstacle if there are others, or too many."""
    return _Decisions(function, data, arm).follow(function.body.bindings, function.body.terminator, None, _Way((), ()))


class _Decisions:
    """The decisions of one function."""

    def __init__(self, function: Function, data: Var, arm: MakeArm) -> None:
        self.function, self.data, self.arm = function, data, arm
        self.count = 0

    def follow(self, bindings: Sequence[Binding], end: Terminator, rest: _Rest | None, way: _Way) -> Decision:
        """The decisions from a place on."""
        done = list(way.done)
        for number, binding in enumerate(bindings):
            value, after = binding.value, _Rest(binding.targets, tuple(bindings[number + 1 :]), end, rest)
            if isinstance(value, Match):
                return self._case(value, after, _Way(way.known, tuple(done)))
            if isinstance(value, If | Loop) and holds((binding,), Call, Match):
                here = _Way(way.known, tuple(done))
                binding = rebind(binding, _with_known(value, here))
                if isinstance(binding.value, If) and holds((binding,), Call, Match):
                    return self._condition(binding.value, after, here)
            done.append(binding)
        return self._end(end, rest, _Way(way.known, tuple(done)))

    def _end(self, end: Terminator, rest: _Rest | None, way: _Way) -> Decision:
        label = self.function.label
        block = with_one_end(Block(way.done, end), self.function)
        match block.terminator:
            case Yield(values) if rest is not None:
                joins = tuple(Binding((t,), v) for t, v in zip(rest.targets, values, strict=True))
                return self.follow(rest.bindings, rest.end, rest.after, _Way(way.known, (*block.bindings, *joins)))
            case Exit(leaves, _) if leaves is label:
                self.count += 1
                if self.count > MOST_ARMS:
                    raise Obstacle("its calls are in too many branches", self.function.span)
                return self.arm(way.known, without_aliases(block.bindings, block.terminator))
            case _:
                raise Obstacle("it returns in several places of a branch or loop", self.function.span)

    def _case(self, value: Match, after: _Rest, way: _Way) -> Decision:
        subject, known = way.name(value.value), way.constructed(value.value)
        if known is not None:
            arm = next(a for a in value.arms if a.constructor == known[0])
            names = tuple(Binding((a,), b) for a, b in zip(arm.fields, known[1], strict=True))
            return self.follow(arm.body.bindings, arm.body.terminator, after, _Way(way.known, (*way.done, *names)))
        fields = [f for k in way.known for f in k.fields]
        if not isinstance(subject, Var) or not isinstance(subject.type, DataType):
            raise Obstacle("it takes apart more than its parameter and the fields of it", value.span)
        if subject is not self.data and subject not in fields:
            raise Obstacle("it takes apart more than its parameter and the fields of it", value.span)
        definition, found = subject.type.definition, list[tuple[Constructed, Decision]]()
        for arm in sorted(value.arms, key=lambda a: definition.index(a.constructor)):
            made = Constructed(subject, arm.constructor, arm.fields)
            inner = _Way((*way.known, made), way.done)
            found.append((made, self.follow(arm.body.bindings, arm.body.terminator, after, inner)))
        return Case(subject, tuple(found))

    def _condition(self, value: If, after: _Rest, way: _Way) -> Decision:
        first, *others = value.arms
        orelse = value.orelse if not others else _nested(others, value, after.targets)
        (condition,) = yielded(first.condition)
        if first.condition.bindings:  # what computes the condition comes first
            alone = If((Arm(Block((), Yield((condition,))), first.body),), orelse, value.span)
            bindings = (*first.condition.bindings, Binding(after.targets, alone), *after.bindings)
            return self.follow(bindings, after.end, after.after, way)
        before = needed_before((condition,), way.done)
        span = value.span or self.function.span
        if holds(before, Call):
            raise Obstacle("a call is in a branch that depends on what another call gives", span)
        if has_product(before):
            raise Obstacle("a call is in a branch that depends on a product", span)
        then, other = (self.follow(b.bindings, b.terminator, after, way) for b in (first.body, orelse))
        return Condition(before, condition, then, other)


def yielded(block: Block) -> tuple[Atom, ...]:
    """The atoms that a block yields."""
    assert isinstance(block.terminator, Yield)
    return block.terminator.values


def _nested(arms: Sequence[Arm], value: If, targets: Sequence[Var]) -> Block:
    """A block that goes on with some arms of a branch."""
    bodies = [*(arm.body for arm in arms), value.orelse]
    inner = tuple(Var(t.name, t.type, t.span) for t in targets)
    falls_through = any(isinstance(body.terminator, Yield) for body in bodies)
    binding = Binding(inner if falls_through else (), If(tuple(arms), value.orelse, value.span))
    return Block((binding,), Yield(inner) if falls_through else Dead())


def needed_before(
    atoms: Sequence[Atom], bindings: Sequence[Binding], unknown: frozenset[Var] = frozenset()
) -> tuple[Binding, ...]:
    """Those of some bindings that compute atoms, with the assertions before them that depend on no call, nor on
    variables that are not known there."""
    wanted: set[Var] = {atom for atom in atoms if isinstance(atom, Var)}
    if not _computing(wanted, bindings):
        return ()
    asserted = [b for b in bindings if isinstance(b.value, Assert)]
    for binding in asserted:
        before = _computing(set(free_variables(_block_of(binding))), bindings)
        used = free_variables(Block((*reversed(before), binding), Yield(())))
        if not holds(before, Call) and not has_product(before) and not unknown.intersection(used):
            wanted.update(free_variables(_block_of(binding)))
    found = set(_computing(wanted, bindings))
    known = {t for b in bindings for t in b.targets}
    made = {t for b in found for t in b.targets}
    known |= unknown
    kept = [b for b in asserted if known.intersection(free_variables(_block_of(b))) <= made]
    return tuple(b for b in bindings if b in found or b in kept)


def _computing(wanted: set[Var], bindings: Sequence[Binding]) -> list[Binding]:
    """Those of some bindings that compute variables."""
    wanted, found = set(wanted), []
    for binding in reversed(bindings):
        if wanted.intersection(binding.targets):
            found.append(binding)
            wanted.update(free_variables(_block_of(binding)))
    return found


def _block_of(binding: Binding) -> Block:
    return Block((binding,), Yield(()))


def holds(bindings: Sequence[Binding], *classes: type) -> bool:
    """True if some of these nodes are in bindings."""
    return any(isinstance(b.value, classes) for b in walk(Block(tuple(bindings), Yield(()))))


def has_product(bindings: Sequence[Binding]) -> bool:
    calls = [b.value for b in walk(Block(tuple(bindings), Yield(()))) if isinstance(b.value, OpCall)]
    return any(lookup(call.operator).pattern is Pattern.OUTPUT_FUSABLE for call in calls)


def _with_known(value: If | Loop, way: _Way) -> If | Loop:
    """A branch or loop that reads the fields of known values without a `match`."""

    def block(body: Block) -> Block:
        bindings: list[Binding] = []
        for binding in body.bindings:
            inner = binding.value
            known = way.constructed(inner.value) if isinstance(inner, Match) else None
            if known is None or not isinstance(inner, Match):
                bindings.append(rebind(binding, map_blocks(inner, block)))
                continue
            arm = next(a for a in inner.arms if a.constructor == known[0])
            if not isinstance(arm.body.terminator, Yield):
                bindings.append(binding)
                continue
            names = dict[Var, Atom](zip(arm.fields, known[1], strict=True))
            found = substitute(block(arm.body), names)
            bindings += found.bindings
            bindings += [Binding((t,), v) for t, v in zip(binding.targets, yielded(found), strict=True)]
        return rebuild_block(body, bindings, body.terminator)

    changed = map_blocks(value, block)
    assert isinstance(changed, If | Loop)
    return changed


def without_aliases(bindings: Sequence[Binding], end: Terminator) -> Block:
    """A block without other names for atoms, and without values of data types that nothing uses."""
    names: dict[Var, Atom] = {}

    def block(body: Block) -> Block:
        kept = []
        for binding in body.bindings:
            if isinstance(binding.value, Var | Constant):
                value = binding.value
                names[binding.targets[0]] = names.get(value, value) if isinstance(value, Var) else value
            else:
                kept.append(rebind(binding, map_blocks(binding.value, block)))
        return rebuild_block(body, kept, body.terminator)

    made = substitute(block(Block(tuple(bindings), end)), names)
    used = free_variables(Block(tuple(b for b in made.bindings if not isinstance(b.value, Construct)), made.terminator))
    kept = [b for b in made.bindings if not isinstance(b.value, Construct) or b.targets[0] in used]
    return rebuild_block(made, kept, made.terminator)


def with_one_end(block: Block, function: Function) -> Block:
    """A block that ends with a branch all of whose arms return, as one that returns what the branch yields."""
    if not isinstance(block.terminator, Dead) or not block.bindings:
        return block
    last = block.bindings[-1]
    if not isinstance(last.value, If):
        return block
    result = Var("result", function.result, last.value.span)
    conditions = {arm.condition for arm in last.value.arms}
    failed = False

    def arm(body: Block) -> Block:
        nonlocal failed
        if body in conditions:
            return body
        made = with_one_end(body, function)
        if not isinstance(made.terminator, Exit) or made.terminator.label is not function.label:
            failed = True
            return body
        return Block(made.bindings, Yield(made.terminator.values))

    branch = map_blocks(last.value, arm)
    if failed:
        return block
    return Block((*block.bindings[:-1], Binding((result,), branch)), Exit(function.label, (result,)))


def known_fields(known: Sequence[Constructed]) -> tuple[Var, ...]:
    """The fields of all values that are known."""
    return tuple(f for k in known for f in k.fields)
