"""The walk through a function's body: paths that join, and loops, of which a few rounds are walked through."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import FunctionType, ModuleType
from typing import Any

import attrs
import numpy as np

from relay.errors import Span
from relay.ir.debugging.source_names import is_written
from relay.ir.definition import Definition
from relay.ir.expr import (
    Atom,
    Attempt,
    Binding,
    Block,
    Dead,
    Exit,
    Expr,
    Function,
    Global,
    If,
    Loop,
    LoopLabel,
    Next,
    Static,
    Var,
    Yield,
)
from relay.ir.structure import is_plain_class, is_record_class
from relay.ir.surface import (
    Attribute,
    CapturePattern,
    ClassPattern,
    ForEach,
    Index,
    OrPattern,
    Pattern,
    PatternMatch,
    TuplePattern,
    Unpack,
)
from relay.ir.traverse import all_blocks, walk
from relay.typecheck.elaboration.abstract_values import PythonObject, Tuple
from relay.typecheck.elaboration.aliasing.kinds import Kind, Meanings
from relay.typecheck.elaboration.aliasing.objects import (
    NONE,
    Change,
    Object,
    Objects,
    Outside,
    State,
    Step,
    joined_states,
)
from relay.typecheck.elaboration.aliasing.places import Mistake, Place, Slot, Source
from relay.typecheck.elaboration.dynamic_lists import tables
from relay.typecheck.elaboration.library import undecorated

ROUNDS = 3
"""The number of rounds of a loop that are walked through: a round leaves a value, the next one changes it, and the one
after reads it."""

MOST_STEPS = 20_000


class TooLong(Exception):
    """The walk takes too many steps: the function is not checked."""


Effect = Callable[["Walker", tuple[Var, ...], Expr], None]


@attrs.define(eq=False)
class _Jumps:
    """The paths that go on to the next round, and those that leave."""

    nexts: list[tuple[State, list[Place]]] = attrs.field(factory=list)
    exits: list[tuple[State, list[Place]]] = attrs.field(factory=list)


class Walker:
    """The walk through one function."""

    def __init__(
        self,
        definition: Definition,
        meanings: Meanings,
        effect: Effect,
        summarize: Callable[[Definition], Any],
        is_own: Callable[[Definition], bool],
    ) -> None:
        self.definition, self.meanings, self._effect, self.summarize = definition, meanings, effect, summarize
        self.is_own = is_own
        self.state = State()
        self.clock = 0
        self.steps = 0
        self.depth = 0
        self.places: dict[Var, Place] = {}
        self.values: dict[Var, Expr] = {}
        self.moments: dict[Var, int] = {}  # when variables were bound last
        self.globals: dict[Outside, Object] = {}
        self.mistakes: dict[tuple[object, str], Mistake] = {}
        self.active: list[LoopLabel] = []  # local functions that are being walked through
        self.defined: set[LoopLabel] = set()  # all local functions
        self.popped: dict[Var, list[tuple[Slot | None, Change | None]]] = {}  # what is read from them, and has missed
        self.reused: dict[Object, Change] = {}  # the parameters that are gone through twice
        self.prints = False
        self.block_number = 0  # of the block that is being walked through
        self.iterated: dict[LoopLabel, Place] = {}  # what loops over objects with `__iter__` go through
        self._blocks = 0
        self.stale: dict[int, Change] = {}  # the parameters that are given back, with the changes that they miss
        self.may_fail = False
        self.failed: dict[Object, Change] = {}  # what has changed before something that may fail
        self.lost: list[dict[Object, Change]] = []  # the changes that handlers around would not see
        self.indices: dict[object, None] = {}  # those that are in range, in this block and those around it
        self.lengths: dict[Expr, int] = {}  # calls of `len`, with how often their lists had been shifted by then
        self.iterables: dict[Var, Atom] = {}  # what the elements of loops come from
        self.rounds_of: dict[Var, int] = {}  # when the rounds of elements began
        self._jumps: dict[LoopLabel, _Jumps] = {}

    # ---- variables

    def tick(self) -> int:
        """The next moment."""
        self.clock += 1
        return self.clock

    def place(self, atom: Atom) -> Place | None:
        """The knowledge of an operand; None if it is no object that can change."""
        return self.places.get(atom) if isinstance(atom, Var) else None

    def objects(self, atom: Atom) -> Objects:
        """The objects that an operand may be."""
        if isinstance(atom, Global):
            return self.outside(atom.name, self.definition.scope.resolve(atom.name))
        if isinstance(atom, Static):
            return self.outside("it", atom.value)
        found = self.place(atom)
        return NONE if found is None else found.objects

    def owner(self, atom: Atom) -> ModuleType | type | None:
        """The module or class that an operand is; None for all else."""
        value = self.definition.scope.resolve(atom.name) if isinstance(atom, Global) else None
        if isinstance(atom, Var) and isinstance(meaning := self.meanings.value(atom), PythonObject):
            value = meaning.value
        return value if isinstance(value, ModuleType | type) else None

    def outside(self, name: str, value: object, is_default: bool = False) -> Objects:
        """The object that a value of Python is which can change, or hold what can."""
        if not (isinstance(value, list | dict | set | tuple | np.ndarray) or _is_made_of_class(value)):
            return NONE
        key = Outside(name, value, is_default)
        if key not in self.globals:
            self.globals[key] = Object(True, isinstance(value, np.ndarray), outside=key)
        return frozenset({self.globals[key]})

    def missed(self, atom: Atom) -> Change | None:
        """A change that the value of an operand has missed."""
        found = self.place(atom)
        return None if found is None else found.missed or self.state.missed(found.objects, found.time)

    def bind(self, target: Var, objects: Objects, slot: Slot | None = None, missed: Change | None = None) -> None:
        """Let a variable be these objects from now on."""
        if objects and self.kind(target) is not Kind.PLAIN:
            self.places[target] = Place(objects, self.tick(), missed, slot)
        else:
            self.places.pop(target, None)

    def bind_new(self, target: Var) -> None:
        """Let a variable be an object of which nothing else knows."""
        kind = self.kind(target)
        if kind is Kind.PLAIN:
            self.places.pop(target, None)
        else:
            self.bind(target, frozenset({Object(True, kind is Kind.ARRAY, is_cell=kind is Kind.CELL)}))

    def bind_iterator(self, target: Var, elements: Objects, source: Source | None = None, over: Objects = NONE) -> None:
        """Let a variable be an iterator over these, which are in others."""
        made = Object(is_iterator=True)
        made.go_through(over)
        made.hold(self.any_step(), elements)
        self.places[target] = Place(frozenset({made}), self.tick(), source=source)

    def kind(self, variable: Var) -> Kind:
        """The kind of a variable's values."""
        return self.meanings.kind(variable) or Kind.UNKNOWN

    def kind_of(self, atom: Atom) -> Kind:
        """The kind of an operand."""
        return self.kind(atom) if isinstance(atom, Var) else Kind.UNKNOWN

    def fail(self) -> None:
        """Something may fail, after the changes that were made."""
        self.may_fail = True
        self.failed.update(self.state.changed)

    def read(self, atom: Atom, span: Span | None, what: str = "read") -> None:
        """An operand is read: it must have seen all changes."""
        if isinstance(atom, Var) and atom in self.places and (change := self.missed(atom)) is not None:
            self.mistake(self.written_name(atom), span, change, what)

    def use_iterator(self, atom: Atom, span: Span | None) -> None:
        """An operand is used up, if it is an iterator; a parameter may be one."""
        for one in self.objects(atom):
            note = Change(self.tick(), span, self.written_name(atom), is_use=True)
            if one.is_iterator:
                self.state.change(one, note)
            elif one.given and one.parent is None and one.outside is None:
                if one in self.state.used:
                    self.reused.setdefault(one, note)
                self.state.used |= {one}

    def finish(self, objects: Objects) -> None:
        """All elements of these have been taken: what a generator of this block changes is in Python as it is here."""
        for made in (o.generator for o in objects if o.generator is not None):
            for variable, place in self.places.items() if made.block == self.block_number else ():
                if place.missed is not None and place.missed is made.change:
                    self.places[variable] = attrs.evolve(place, missed=None)

    def written_name(self, atom: Atom) -> str:
        """The name by which a program writes an operand, or what it is a part of."""
        seen: set[Atom] = set()
        while isinstance(atom, Var) and atom not in seen:
            seen.add(atom)
            value = self.values.get(atom)
            if not isinstance(value, Index | Attribute) or not isinstance(value.value, Var):
                break
            if is_written(atom.name, atom.span):
                break
            atom = value.value
        return atom.name if isinstance(atom, Var) else "it"

    def mistake(self, name: str, span: Span | None, change: Change, what: str = "read") -> None:
        """Note a mistake, one for each place."""
        key = (None if span is None else (span.line, span.column), name)
        known = self.mistakes.get(key)
        if known is None or known.change.is_sum:
            self.mistakes[key] = Mistake(name, span, change, what)

    def outside_changes(self, changed: Outside, span: Span | None, change: Change) -> None:
        """An object that nobody passes must not change."""
        self.mistake(changed.name, span, change, "default" if changed.is_default else "global")

    # ---- blocks

    def block(self, block: Block) -> list[Place] | None:
        """Walk through a block. Gives what it yields; None if it leaves."""
        self._blocks += 1
        around, self.block_number = self.block_number, self._blocks
        in_range = len(self.indices)
        for binding in block.bindings:
            self.steps += 1
            if self.steps > MOST_STEPS:
                raise TooLong
            self._binding(binding)
        self.block_number = around
        while len(self.indices) > in_range:  # the block may not run
            self.indices.popitem()
        match block.terminator:
            case Yield(values):
                return [self.handed(v) for v in values]
            case Next(label, values):
                self._jumps[label].nexts.append((self.state.copy(), [self.handed(v) for v in values]))
            case Exit(label, values, span):
                if label in self.active:
                    for value in values:
                        self.read(value, span)
                self._jumps[label].exits.append((self.state.copy(), [self.handed(v) for v in values]))
            case Dead():
                pass
        return None

    def run(self, function: Function) -> Place | None:
        """Walk through the body of a local function, and give its result; None if it does not return."""
        self.active.append(function.label)
        self.defined.add(function.label)
        jumps = self._jumps[function.label] = _Jumps()
        self.block(function.body)
        self.active.pop()
        if not jumps.exits:
            return None
        now = self.tick()
        self.state = joined_states([state for state, _ in jumps.exits], now)
        return _joined([handed[0] for _, handed in jumps.exits], now)

    def handed(self, atom: Atom) -> Place:
        """An operand as it goes on to another block."""
        found = self.place(atom)
        if found is None:
            return Place(self.objects(atom), self.clock)
        return attrs.evolve(found, missed=self.missed(atom))

    def _binding(self, binding: Binding) -> None:
        targets, value = binding.targets, binding.value
        if targets and all(self.meanings.kind(t) is None for t in targets) and not _is_control(value):
            self.fail()  # it does not run: as the branch is not taken, or as something is known to fail
            return
        for target in targets:
            self.values[target] = value
            self.moments[target] = self.tick()
        match value:
            case If() if isinstance(self._attempt(value), Attempt):
                self._try(targets, value)
            case If():
                self._if(targets, value)
            case Loop():
                self._loop(targets, value)
            case ForEach():
                self._effect(self, (), value)
                self._for(targets, value)
            case PatternMatch():
                self._match(targets, value)
            case _:
                self._effect(self, targets, value)

    def arrive(self, targets: Sequence[Var], paths: Sequence[tuple[State, list[Place]]]) -> None:
        """Go on after one of several paths, with what they hand over."""
        if not paths:
            return
        now = self.tick()
        self.state = joined_states([state for state, _ in paths], now)
        for position, target in enumerate(targets):
            handed = [values[position] for _, values in paths]
            objects: Objects = frozenset().union(*(p.objects for p in handed))
            self.bind(target, objects, None, next((p.missed for p in handed if p.missed is not None), None))

    def _if(self, targets: tuple[Var, ...], value: If) -> None:
        paths: list[tuple[State, list[Place]]] = []
        for arm in value.arms:
            self.block(arm.condition)
            before = self.state.copy()
            handed = self.block(arm.body)
            if handed is not None:
                paths.append((self.state, handed))
            self.state = before
        handed = self.block(value.orelse)
        if handed is not None:
            paths.append((self.state, handed))
        self.arrive(targets, paths)

    def _attempt(self, value: If) -> Expr | None:
        """The expression that computes the condition of an `if`, where that is a variable."""
        condition = value.arms[0].condition
        end = condition.terminator
        atom = end.values[0] if isinstance(end, Yield) and not condition.bindings else None
        return self.values.get(atom) if isinstance(atom, Var) else None

    def _try(self, targets: tuple[Var, ...], value: If) -> None:
        """Walk through what is protected, and then its handler, which must not need what failed calls have changed."""
        before, paths = self.state.copy(), list[tuple[State, list[Place]]]()
        self.lost.append({})
        handed = self.block(value.orelse)
        if handed is not None:
            paths.append((self.state, handed))
        self.state = before
        for one, change in self.lost.pop().items():
            self.state.change(one, attrs.evolve(change, time=self.tick()))
            for around in self.lost[-1:]:
                around[one] = change
        handed = self.block(value.arms[0].body)
        if handed is not None:
            paths.insert(0, (self.state, handed))
        self.arrive(targets, paths)

    def _match(self, targets: tuple[Var, ...], value: PatternMatch) -> None:
        self.read(value.value, value.span)
        paths: list[tuple[State, list[Place]]] = []
        for case in value.cases:
            before = self.state.copy()
            self.pattern(case.pattern, self.objects(value.value))
            if case.guard is not None:
                self.block(case.guard)
            handed = self.block(case.body)
            if handed is not None:
                paths.append((self.state, handed))
            self.state = before
        self.arrive(targets, paths)

    def pattern(self, pattern: Pattern, objects: Objects) -> None:
        """Bind the variables of a pattern."""
        match pattern:
            case CapturePattern(variable, inner):
                self.bind(variable, objects)
                self.pattern(inner, objects)
            case TuplePattern(items):
                for position, item in enumerate(items):
                    step = Step(position) if pattern.star is None else self.any_step()
                    self.pattern(item, self.contents(objects, step))
            case ClassPattern(_, items, keywords):
                for position, item in enumerate(items):
                    self.pattern(item, self.contents(objects, Step(position)))
                for name, item in keywords:
                    self.pattern(item, self.contents(objects, Step(name)))
            case OrPattern(alternatives):
                for one in alternatives:
                    self.pattern(one, objects)
            case _:
                pass

    def any_step(self) -> Step:
        """A step to any part."""
        return Step(None, None, self.tick())

    @staticmethod
    def undecorated(function: object) -> Definition | None:
        """The meaning of a Python function that is read as if it was decorated."""
        is_read = isinstance(function, FunctionType) and undecorated.is_read(function)
        return undecorated.definition(function) if is_read or undecorated.is_written(function) else None  # type: ignore[arg-type]

    def contents(self, objects: Objects, step: Step) -> Objects:
        """The objects in others at a step."""
        return frozenset(o for one in objects for o in self.state.contents_at(one, step))

    # ---- loops

    def rounds(self, label: LoopLabel, first: list[Place], round_: Callable[[list[Place]], bool]) -> _Jumps:
        """Walk through some rounds of a loop. `round_` walks through one, and says whether there may be another."""
        jumps = self._jumps[label] = _Jumps()
        handed, self.depth = first, self.depth + 1
        for _ in range(ROUNDS if self.depth < 3 else 2):
            jumps.nexts.clear()
            before = self.state.last
            again = round_(handed)
            if not jumps.nexts or not again:
                break
            now = self.tick()
            self.state = joined_states([state for state, _ in jumps.nexts], now)
            following = [_joined([values[i] for _, values in jumps.nexts], now) for i in range(len(handed))]
            if self.state.last == before and all(
                a.objects <= b.objects for a, b in zip(following, handed, strict=True)
            ):
                break
            handed = following
        self.depth -= 1
        return jumps

    def _enter(self, parameters: Sequence[Var], handed: Sequence[Place]) -> None:
        for parameter, place in zip(parameters, handed, strict=True):
            self.moments[parameter] = self.tick()
            self.bind(parameter, place.objects, None, place.missed)

    def _loop(self, targets: tuple[Var, ...], value: Loop) -> None:
        def round_(handed: list[Place]) -> bool:
            self._enter(value.parameters, handed)
            self.block(value.body)
            return True

        jumps = self.rounds(value.label, [self.handed(v) for v in value.initial], round_)
        self.arrive(targets, jumps.exits)

    def _for(self, targets: tuple[Var, ...], value: ForEach) -> None:
        self.iterables[value.element] = value.iterable
        whole = self.iterated.pop(value.label, None) or self.place(value.iterable)
        objects = NONE if whole is None else whole.objects
        source = None if whole is None else whole.source or Source(whole.objects)
        began, seen = self.clock, list[Step]()
        ended: list[tuple[State, list[Place]]] = []

        def round_(handed: list[Place]) -> bool:
            ended.append((self.state.copy(), handed))
            self.rounds_of[value.element] = self.tick()
            self._enter(value.parameters, handed)
            step = self.any_step()
            if source is not None:
                step = self._element(value.element, source, value.body)
            seen.append(step)
            if is_dict(self, value.iterable):  # whose item of this key may change: keys stay
                seen.append(Step(None, value.element, self.moments.get(value.element, 0)))
            self.block(value.body)
            for state, _ in self._jumps[value.label].nexts if source is not None else ():
                self._unchanged(value, source, state, began, seen)
            return True

        jumps = self.rounds(value.label, [self.handed(v) for v in value.initial], round_)
        self.arrive(targets, [*ended, *jumps.nexts, *jumps.exits])
        if value.label.name in ("map", "filter"):  # which are lists here, and iterators in Python
            self.bind_iterator(targets[0], self.contents(self.objects(targets[0]), self.any_step()), over=objects)
        elif not leaves(value):
            self.finish(objects)

    def _element(self, element: Var, source: Source, body: Block) -> Step:
        """Bind the element of a round; the variable of `enumerate` is the step to it."""
        step = self.any_step()
        if source.several:
            self.places[element] = Place(NONE, self.tick(), source=source, step=step)
            counter = _counter(body, element) if source.is_counted else None
            return step if counter is None else step_of_counter(counter, step)
        objects = self.contents(source.objects, step)
        self.bind(element, objects, Slot(source.objects, step))
        return step

    def _unchanged(self, loop: ForEach, source: Source | None, state: State, since: int, seen: list[Step]) -> None:
        """The iterable of a loop must not change before its later rounds, except for the element at hand."""
        for part in () if source is None else (source, *(s for s in source.several if s is not None)):
            change = state.missed(part.objects, since)
            is_made = any(one.generator is not None for one in part.objects)  # and reads it after it was given
            if change is not None and (is_made or not any(step in seen for step in change.steps)):
                self.mistake("the iterable", loop.span, change, "iterated")


def is_dict(walker: Walker, atom: Atom) -> bool:
    """True for a dict, whose keys are gone through."""
    found = walker.meanings.value(atom) if isinstance(atom, Var) else None
    return isinstance(found, Tuple) and (tables.is_dict(found) or getattr(found.form, "cls", None) is dict)


def _joined(handed: list[Place], now: int) -> Place:
    objects: Objects = frozenset().union(*(p.objects for p in handed))
    return Place(objects, now, next((p.missed for p in handed if p.missed is not None), None))


def leaves(loop: ForEach) -> bool:
    """True if a `break`, a `return` or the like may leave a loop."""
    inside: set[LoopLabel] = {b.value.label for b in walk(loop.body) if isinstance(b.value, Loop | ForEach)}
    ends = [block.terminator for block in all_blocks(loop.body)]
    return any(isinstance(end, Exit) and end.label not in inside for end in ends)


def step_of_counter(counter: Var, step: Step) -> Step:
    """The step to the elements of a round, whose number is a variable."""
    return Step(None, counter, step.time)


def _is_made_of_class(value: object) -> bool:
    """True for an object with fields, of a class of the user's."""
    return is_plain_class(type(value)) or is_record_class(type(value))


def _is_control(value: Expr) -> bool:
    return isinstance(value, If | Loop | ForEach | PatternMatch)


def _counter(body: Block, element: Var) -> Var | None:
    """The first variable that the element of a loop is unpacked to."""
    for binding in body.bindings:
        if isinstance(binding.value, Unpack) and binding.value.value is element:
            return binding.targets[0]
    return None
