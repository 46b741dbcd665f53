"""Objects of Python as far as a program's text tells them apart, what they hold, and their changes.

An object that a function is given is known by its parts only, which are made when they are asked for: `xs[0]` is a
part, and so is a view of an array. Two parts may be the same object unless their steps are different constants. A list
that the program makes holds the objects that are put into it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import attrs

from relay.errors import Span
from relay.ir.expr import Var


@attrs.frozen
class Step:
    """The way from an object to a part: a constant key, the value of a variable (at a time), or any part (neither)."""

    key: object = None
    variable: Var | None = None
    time: int = 0

    @property
    def is_constant(self) -> bool:
        """True for a constant key."""
        return self.variable is None and self.key is not None

    def may_be(self, other: Step) -> bool:
        """True if two steps may lead to the same part."""
        constant = self.is_constant and other.is_constant
        return not constant or self.key == other.key or self.time != other.time


class Edges(dict[Step, dict["Object", int]]):
    """The objects that one holds, by steps, and how often. Constant keys are found without a look at all others."""

    def __init__(self) -> None:
        super().__init__()
        self._variable: list[Step] = []
        self._constant: dict[int, dict[object, list[Step]]] = {}

    def at(self, step: Step) -> dict[Object, int]:
        """The objects at a step, to be changed."""
        if step not in self:
            self[step] = {}
            if step.is_constant:
                self._constant.setdefault(step.time, {}).setdefault(step.key, []).append(step)
            else:
                self._variable.append(step)
        return self[step]

    def steps(self, step: Step | None) -> Iterable[Step]:
        """The steps that may lead to the same part; all for None."""
        if step is None or not step.is_constant:
            return list(self)
        other_times = (
            s for time, keys in self._constant.items() if time != step.time for k in keys.values() for s in k
        )
        same = self._constant.get(step.time, {}).get(step.key, ())
        return [*self._variable, *same, *other_times]


@attrs.frozen
class Outside:
    """An object of Python that a function sees and is not given: a global one, or the default of a parameter."""

    name: str = attrs.field(eq=False)
    value: object = attrs.field(eq=id)
    is_default: bool = attrs.field(default=False, eq=False)


@attrs.define(eq=False)
class Object:
    """An object. `given`: it comes from outside, so that parts are made when asked for. `is_array`: its parts are
    views, which change with it. `is_iterator`: what goes through it uses it up, and `reads` what it asks for its
    elements, as late as they are asked for; `generator` makes them. `edges`: what it holds, how often."""

    given: bool = False
    is_array: bool = False
    is_cell: bool = False
    is_iterator: bool = False
    generator: Generator | None = None
    reads: frozenset[Object] = frozenset()
    parent: Object | None = None
    path: tuple[Step, ...] = ()
    outside: Outside | None = None
    shifts: int = 0  # how often its items moved, so that an index means another one
    sizes: int = 0  # how often its length changed, so that an index from the end does
    edges: Edges = attrs.field(factory=Edges)
    parts: list[Object] = attrs.field(factory=list)  # all parts of a root
    twins: list[Object] = attrs.field(factory=list)  # that stand for the same object
    without: frozenset[Object] = frozenset()  # containers that it was taken out of

    @property
    def root(self) -> Object:
        """The object from outside that this is a part of, or itself."""
        return self if self.parent is None else self.parent.root

    def is_part(self, holder: Object, step: Step | None) -> bool:
        """True if this is the part of an object from outside at a step, which stands for whatever is there."""
        return self.parent is holder and self.path[-1] == step

    def hold(self, step: Step, held: Iterable[Object], count: int = 1) -> None:
        """Put objects into this one."""
        into = self.edges.at(step)
        for one in held:
            into[one] = into.get(one, 0) + count

    def go_through(self, objects: Iterable[Object]) -> None:
        """Let this be an iterator over others, which are asked when it is."""
        for one in objects:
            self.reads |= one.reads if one.is_iterator else {one}
            self.generator = self.generator or one.generator

    def part(self, step: Step) -> Object:
        """The part of an object from outside."""
        for one in self.edges.get(step, ()):
            if one.is_part(self, step):
                return one
        made = Object(True, self.is_array, parent=self, path=(*self.path, step))
        self.edges.at(step)[made] = 1
        self.root.parts.append(made)
        return made

    def twin(self, without: frozenset[Object]) -> Object:
        """This object as it was taken out of containers, which do not see what happens to it then."""
        made = Object(self.given, self.is_array, self.is_cell, edges=self.edges, without=without)
        made.twins, self.twins = [self], [*self.twins, made]
        return made


Objects = frozenset[Object]
NONE: Objects = frozenset()


@attrs.frozen(eq=False)
class Change:
    """A change of an object: when, where, and of which variable. `steps`: by which steps it was reached. `is_sum`: by
    an augmented assignment to an array, `x += v`, which JAX's and Relay's own arrays take as `x = x + v`."""

    time: int
    span: Span | None
    name: str
    steps: tuple[Step, ...] = ()
    without: frozenset[Object] = frozenset()  # the containers that do not see it
    is_sum: bool = False
    is_of_record: bool = False
    is_use: bool = False  # what uses up an iterator
    is_lost: bool = False  # made by a call that has failed then
    is_late: bool = False  # what a generator does, in Python not before its elements are asked for
    within: Change | None = None  # that of the function which is called here

    @property
    def first(self) -> Change:
        """The change itself, in the function that makes it."""
        return self if self.within is None else self.within.first


@attrs.frozen(eq=False)
class Generator:
    """A function with `yield` that was called: its name, why it must not be left early, the change of its arguments
    that Python makes bit by bit, and the block of its call."""

    name: str
    risk: str | None = None
    change: Change | None = None
    block: int = 0


@attrs.frozen(eq=False)
class Content:
    """The content of a cell, since when it is there, the change that it has missed, and the name of the cell."""

    objects: Objects
    time: int
    missed: Change | None = None
    name: str = "it"


@attrs.define(eq=False)
class State:
    """The changes on the way to a place. `changed`: objects, with their last change; `shadowed`: those that may
    be one that has changed, which does not count for the object that both are parts of. `taken`:
    containers and steps at which an object is not any more; `used`: parameters that were gone through."""

    changed: dict[Object, Change] = attrs.field(factory=dict)
    shadowed: dict[Object, Change] = attrs.field(factory=dict)
    cells: dict[Object, Content] = attrs.field(factory=dict)
    taken: frozenset[tuple[Object, Step, Object]] = frozenset()
    last: int = 0
    used: frozenset[Object] = frozenset()

    def copy(self) -> State:
        """The same, to be changed on its own."""
        return State(dict(self.changed), dict(self.shadowed), dict(self.cells), self.taken, self.last, self.used)

    def change(self, changed: Object, change: Change, step: Step | None = None) -> None:
        """Note a change of an object, of its item at a step or of the whole."""
        self.last = change.time
        self.changed[changed] = change
        for twin in changed.twins:
            self.shadowed[twin] = attrs.evolve(change, without=changed.without)
        path = changed.path
        for other in changed.root.parts:
            theirs = other.path
            if other is changed:
                continue
            if len(theirs) <= len(path):
                if theirs != path[: len(theirs)] and _overlap(theirs, path):
                    self.shadowed[other] = change
            elif changed.is_array and _overlap(theirs, path) and (step is None or step.may_be(theirs[len(path)])):
                is_inside = theirs[: len(path)] == path  # and not of another view, which may have this part
                (self.changed if is_inside else self.shadowed)[other] = change

    def missed(
        self, objects: Iterable[Object], since: int, without: Mapping[Object, Objects] | None = None
    ) -> Change | None:
        """A change after a time of an object or of what it holds. `without`: edges that do not count."""
        for cell in (c for one in objects for c in one.reads if c.is_cell and c in self.cells):
            if self.cells[cell].time > since:
                return Change(self.cells[cell].time, None, self.cells[cell].name)
        if self.last <= since:
            return None
        sum_: Change | None = None
        seen: set[Object] = set()
        waiting: list[tuple[Object | None, Step | None, Object]] = [(None, None, o) for o in objects]
        while waiting:
            holder, step, one = waiting.pop()
            shadow = self.shadowed.get(one)
            if shadow is not None and holder is not None and (one.is_part(holder, step) or holder in shadow.without):
                shadow = None
            for found in (self.changed.get(one), shadow):
                if found is not None and found.time > since:
                    if not found.is_sum:
                        return found
                    sum_ = found
            if one in seen or one.is_cell:
                continue
            seen.add(one)
            skipped = () if without is None else without.get(one, ())
            waiting += [(one, s, o) for s, o in self._edges(one) if o not in skipped]
            waiting += [(None, None, o) for o in one.reads]
        return sum_

    def _edges(self, holder: Object, step: Step | None = None) -> Iterator[tuple[Step, Object]]:
        """The objects in another one now, with their steps, as often as they are there; all, or those that a step may
        lead to, of whose parts only its own."""
        for own in holder.edges.steps(step):
            for one, count in holder.edges[own].items():
                is_other = step is not None and step != own and one.is_part(holder, own)
                if not is_other and (holder, own, one) not in self.taken:
                    yield from [(own, one)] * count

    def contents(self, holder: Object) -> list[Object]:
        """The objects in another one now, as often as they are there."""
        return [o for _, o in self._edges(holder)]

    def contents_at(self, holder: Object, step: Step) -> set[Object]:
        """The objects that a step may lead to."""
        if holder.given:
            holder.part(step)
        return {o for _, o in self._edges(holder, step)}

    def take(self, holder: Object, step: Step) -> None:
        """The objects in another one at a step are not there any more."""
        self.taken |= {(holder, step, o) for o in holder.edges.get(step, ())}

    def put(self, holder: Object, step: Step, held: Iterable[Object]) -> None:
        """Put objects into a container."""
        objects = list(held)
        holder.hold(step, objects)
        self.taken -= {(holder, step, o) for o in objects}


def _overlap(left: tuple[Step, ...], right: tuple[Step, ...]) -> bool:
    return all(a.may_be(b) for a, b in zip(left, right, strict=False))


def joined_states(states: list[State], clock: int) -> State:
    """The state after one of several paths."""
    first, *others = states
    result = first.copy()
    for other in others:
        for mine, theirs in ((result.changed, other.changed), (result.shadowed, other.shadowed)):
            for key, change in theirs.items():
                known = mine.get(key)
                if known is None or known.time < change.time:
                    mine[key] = change
        result.taken &= other.taken
        result.used |= other.used
        result.last = max(result.last, other.last)
    _join_cells(result, states, clock)
    return result


def _join_cells(result: State, states: list[State], clock: int) -> None:
    """A cell that differs between paths has the content of one of them, since now."""
    for cell in {c for state in states for c in state.cells}:
        contents = [(s, s.cells[cell]) for s in states if cell in s.cells]
        if all(c is contents[0][1] for _, c in contents):
            result.cells[cell] = contents[0][1]
            continue
        missed = next((m for s, c in contents if (m := c.missed or s.missed(c.objects, c.time)) is not None), None)
        objects: Objects = frozenset().union(*(c.objects for _, c in contents))
        result.cells[cell] = Content(objects, clock, missed, contents[0][1].name)
