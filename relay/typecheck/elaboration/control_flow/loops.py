"""What a loop carries from round to round, and `while`."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from relay.errors import Label, RelayError, Span, TypeCheckError, TypeMismatch
from relay.ir.dims import Dim, add, multiply
from relay.ir.expr import (
    Atom,
    Dead,
    Exit,
    ForEach,
    Loop,
    LoopLabel,
    Next,
    Var,
)
from relay.ir.types import show
from relay.typecheck.elaboration.abstract_values import (
    FUNCTIONS,
    NOTHING,
    OPERATORS,
    Consequence,
    Context,
    Entity,
    Failed,
    Handler,
    Later,
    Length,
    Object,
    Output,
    Tuple,
    Typed,
)
from relay.typecheck.elaboration.checker import Session
from relay.typecheck.elaboration.control_flow.joins import Join, assign, assign_joined, assigned_at
from relay.typecheck.elaboration.control_flow.loop_invariants import Kept
from relay.typecheck.elaboration.diagnostics.descriptions import structure_of
from relay.typecheck.elaboration.diagnostics.mistakes import SchemeOnly, clash_notes
from relay.typecheck.elaboration.dynamic_lists import dynamic_lists
from relay.typecheck.elaboration.dynamic_shapes import data_dependent
from relay.typecheck.elaboration.expressions import weak_types
from relay.typecheck.elaboration.expressions.blocks import elaborate_block, handed_entities
from relay.typecheck.elaboration.instances import expand
from relay.typecheck.elaboration.restarts import ListGrows, LoopUnrolls
from relay.typecheck.elaboration.schemes import conditional_types
from relay.typecheck.unification import Clash, resolve

MOST_ROUNDS = 64
"""Of how many rounds a `while` may be unrolled."""


class Carried:
    """The parameters of a loop: their structure comes from the initial values and stays.

    A function is a parameter where the loop changes it; otherwise it stays known.
    """

    def __init__(self, session: Session, out: Output, node: Loop | ForEach, entities: Sequence[Entity]) -> None:
        self.session = session
        self.label = node.label
        self.span = node.span
        self.names = [p.name for p in node.parameters]
        self.parameters: list[Var] = []
        self.initial: list[Atom] = []
        self._kept = Kept(node)
        self._resized = node.resized if isinstance(node, ForEach) else ()
        self._started: dict[object, Length | None] = {}  # by origin: the length with which a list enters the loop
        self._growth: dict[object, set[Length | None]] = {}  # by origin: by how much a round makes it longer
        self.changes = False  # a round ends with other types, which is reported
        self.may_change = False  # in a scheme: perhaps with other types
        self._of_any: dict[tuple[int, ...], Collection[int]] = {}  # axes that annotations leave open
        self.entities = tuple(
            self._start(out, name, e, (i,)) for i, (name, e) in enumerate(zip(self.names, entities, strict=True))
        )

    def _start(self, out: Output, name: str, entity: Entity, place: tuple[int, ...]) -> Entity:
        if isinstance(entity, Failed):
            return entity
        if isinstance(entity, Typed):
            entity = expand(self.session, out, entity, self.span)
        if (self.label, place) in self.session.decisions.growing:
            entity = dynamic_lists.as_growing(self.session, out, entity, self.span)
        elif len(place) == 1 and place[0] in self._resized:
            entity = dynamic_lists.given_as_list(self.session, out, entity, self.span)
        if isinstance(entity, Tuple):
            items = enumerate(entity.items)
            return Tuple(tuple(self._start(out, name, item, (*place, i)) for i, item in items), entity.form)
        if isinstance(entity, (Object, *FUNCTIONS)):
            is_function = not isinstance(entity, Object) or isinstance(entity.value, OPERATORS)
            if not is_function or self._kept.keeps(place[0], place[1:]):
                return entity
        typed = self.session.materialise(out, weak_types.freed(self.session, out, entity), self.span)
        self._of_any[place] = self.session.axes_of_any.get(typed.atom, ())
        if (axes := self.session.decisions.varying.get((self.label, place))) is not None:
            typed = data_dependent.widened(self.session, out, typed, axes, self.span)
        var = self.session.variable(name, typed.type, self.span)
        self.session.axes_of_any[var] = self._of_any[place]
        self.parameters.append(var)
        self.initial.append(typed.atom)
        if not dynamic_lists.is_growing(typed):
            return Typed(var, typed.type)
        origin = object()
        self._started[origin], self._growth[origin] = typed.length, set()
        return Typed(var, typed.type, length=Length(origin, 0, NOTHING))

    @property
    def has_lists(self) -> bool:
        """Whether there are lists that grow among the parameters."""
        return bool(self._started)

    def inside(self, body: Output) -> tuple[Entity, ...]:
        """What the parameters are in a round, whose block is `body`."""
        return tuple(data_dependent.all_opened(self.session, body, e, self.span) for e in self.entities)

    def settled(self, entity: Entity, rounds: Dim | None) -> Entity:
        """An entity of the loop as what it is after it; `rounds`: their number, if it is known."""
        match entity:
            case Tuple(items, form):
                return Tuple(tuple(self.settled(i, rounds) for i in items), form)
            case Typed(atom, type_, known, Length(origin, more, elements)) if origin in self._started:
                start, growth = self._started[origin], self._growth[origin]
                grown = {None if g is None else g.more for g in growth}
                by = next(iter(grown)) if len(grown) == 1 else 0 if not grown else None
                if start is None or by is None or (by != 0 and rounds is None):
                    return Typed(atom, type_, known)
                length = start.plus(add(0 if rounds is None else multiply(by, rounds), more)).holding(elements)
                for round_ in growth:
                    length = length.holding(None if round_ is None else round_.elements)
                return Typed(atom, type_, known, length)
            case _:
                return entity

    def _note_growth(self, expected: Typed, entity: Typed) -> None:
        assert expected.length is not None
        origin, length = expected.length.origin, entity.length
        self._growth[origin].add(length if length is not None and length.origin is origin else None)

    def fit(self, out: Output, entities: Sequence[Entity], span: Span | None) -> tuple[Atom, ...]:
        """The atoms of the parameters' next values. Raises TypeMismatch where one changes its type."""
        atoms: list[Atom] = []
        handed = self.session.handed
        for position, (name, expected, entity) in enumerate(zip(self.names, self.entities, entities, strict=True)):
            if isinstance(expected, Failed) or isinstance(entity, Failed):
                self.session.report(Consequence())
                continue
            try:
                place = assigned_at(name, handed, position, span)
                self._fit(out, name, expected, entity, place, atoms, (position,))
            except (Consequence, RelayError) as error:
                self.changes = self.changes or isinstance(error, RelayError)
                self.session.report(error)
        return tuple(atoms)

    def _fit(
        self,
        out: Output,
        name: str,
        expected: Entity,
        entity: Entity,
        span: Span | None,
        atoms: list[Atom],
        place: tuple[int, ...],
    ) -> None:
        if isinstance(entity, Typed):
            entity = expand(self.session, out, entity, span)
        match expected:
            case Typed():
                if dynamic_lists.is_growing(expected):
                    entity = dynamic_lists.as_growing(self.session, out, entity, span)
                    self._note_growth(expected, entity)
                typed = self.session.materialise(out, weak_types.freed(self.session, out, entity), span)
                typed = data_dependent.packed_value(
                    self.session, out, typed, self.session.escaping, expected.type, span
                )
                named = self.session.axes_of_any_size(name) if len(place) == 1 else ()
                may = {*named, *self._of_any[place]}
                data_dependent.refuse_sizes(self.session, typed.type, expected.type, (self.label, place), may)
                dynamic_lists.refuse_lengths(self.session, typed.type, expected.type)
                self.may_change = self.may_change or not conditional_types.alike(typed.type, expected.type)
                try:
                    self.session.solver.unify(typed.type, expected.type)
                except Clash as clash:
                    notes = clash_notes(clash, typed.type, expected.type)
                    labels = (
                        (Label(self.span, f"it enters the loop as {show(resolve(expected.type))}"),)
                        if self.span
                        else ()
                    )
                    raise TypeMismatch(
                        f"the loop changes the type of {name} from {show(resolve(expected.type))}"
                        f" to {show(resolve(typed.type))}",
                        typed.atom.span or span,
                        labels=labels,
                        notes=notes,
                        help="a loop's variables keep their types; start with the final shape and dtype",
                    ) from None
                atoms.append(typed.atom)
            case Tuple(items):
                if not isinstance(entity, Tuple) or len(entity.items) != len(items):
                    if dynamic_lists.is_literal(expected) and dynamic_lists.is_list(entity):
                        raise ListGrows((self.label, place))
                    raise TypeMismatch(
                        f"the loop changes the structure of the tuple {name}: it enters the loop as"
                        f" {structure_of(expected)}, and is {structure_of(entity)} then",
                        span,
                        help="a tuple or dict keeps its length; a list may grow: `xs.append(v)`",
                    )
                for i, (a, b) in enumerate(zip(items, entity.items, strict=True)):
                    self._fit(out, name, a, b, span, atoms, (*place, i))
            case _:
                same = entity is expected or (
                    isinstance(entity, Object) and isinstance(expected, Object) and entity.value is expected.value
                )
                if not same:
                    raise TypeCheckError(f"the loop changes {name}, which is no value at run time", span)


def elaborate_loop(session: Session, context: Context, targets: tuple[Var, ...], node: Loop, out: Output) -> None:
    """A `while`. One that changes types, and whose condition is known before the run, is unrolled."""
    session.rounds.enter(node)
    if session.generic and node.label in session.decisions.by_call:
        raise SchemeOnly(node.span, "how many rounds this loop has")
    if node.label in session.decisions.unrolled:
        _unroll(session, context, targets, node, out)
        return
    carried = Carried(session, out, node, handed_entities(context, node.initial))
    label = LoopLabel(node.label.name)
    join = Join(session, [t.name for t in targets])
    outside = session.chosen_by_call, session.chosen_by_sizes
    chosen: list[tuple[bool, bool]] = []  # in a scheme: whether a call decides the ways out, or sizes

    def on_next(place: Output, entities: tuple[Entity, ...], span: Span | None) -> None:
        place.terminator = Next(label, carried.fit(place, entities, span), span)

    def on_exit(place: Output, entities: tuple[Entity, ...], span: Span | None) -> None:
        chosen.append((session.chosen_by_call > outside[0], session.chosen_by_sizes > outside[1]))
        join.add(place, entities, span)

    context.handlers[node.label] = Handler(label, on_next, on_exit, len(session.scopes))
    body, failures = Output(), session.failures
    with session.where_it_may_not_run(), session.scope(body):
        assign(context, node.parameters, carried.inside(body))
        elaborate_block(session, context, node.body, body, None)
    if node.label not in session.decisions.endless and _is_of_several_types(session, carried, chosen):
        raise LoopUnrolls(node.label, by_call=bool(chosen))
    bound, entities = join.close(lambda atoms, span: Exit(label, atoms, span))

    def build() -> Loop:
        return Loop(label, tuple(carried.parameters), tuple(carried.initial), body.block(), None, node.span)

    out.items.append(Later(bound, build))
    entities = tuple(data_dependent.all_opened(session, out, carried.settled(e, None), node.span) for e in entities)
    arrives = assign_joined(session, context, targets, join, entities, failures)
    if not arrives:
        out.terminator = Dead()


def _is_of_several_types(session: Session, carried: Carried, exits: Sequence[tuple[bool, bool]]) -> bool:
    """Whether the rounds of a loop have variables of different types, and are known before the run: no way leads out of
    the first one, or, in a scheme, ways that calls and sizes choose."""
    if not exits:
        return carried.changes
    by_call = session.generic and all(call for call, _ in exits)
    by_sizes = session.generic and all(call or sizes for call, sizes in exits)
    return (carried.may_change and by_call) or (carried.changes and by_sizes)


def _unroll(session: Session, context: Context, targets: tuple[Var, ...], node: Loop, out: Output) -> None:
    """One copy of the body for each round."""
    current = handed_entities(context, node.initial)
    outer, join = LoopLabel(node.label.name), Join(session, [t.name for t in targets])
    everything, failures = Output(), session.failures
    ended, rounds = False, 0
    with session.scope(everything) as depth:
        while not ended and session.failures == failures:
            if rounds == MOST_ROUNDS:
                raise LoopUnrolls(node.label, is_endless=True)
            current, ended = elaborate_round(session, context.inside(), node, current, everything, join, depth)
            rounds += 1
    bound, entities = join.close(lambda atoms, span: Exit(outer, atoms, span))
    out.items.append(Later(bound, lambda: Loop(outer, (), (), everything.block(), None, node.span)))
    entities = tuple(data_dependent.all_opened(session, out, e, node.span) for e in entities)
    if not assign_joined(session, context, targets, join, entities, failures):
        out.terminator = Dead()


def elaborate_round(
    session: Session,
    context: Context,
    node: Loop | ForEach,
    current: tuple[Entity, ...],
    everything: Output,
    outer_join: Join,
    outside: int,
) -> tuple[tuple[Entity, ...], bool]:
    """One round as a loop that runs once. Returns the variables after it, and whether nothing comes after it."""
    inner = LoopLabel(node.label.name)
    join = Join(session, [p.name for p in node.parameters])
    assign(context, node.parameters, current)
    context.handlers[node.label] = Handler(inner, join.add, outer_join.add, len(session.scopes), outside)
    body, failures = Output(), session.failures
    elaborate_block(session, context, node.body, body, None)
    bound, entities = join.close(lambda atoms, span: Exit(inner, atoms, span))
    everything.items.append(Later(bound, lambda: Loop(inner, (), (), body.block(), None, node.span)))
    entities = tuple(data_dependent.all_opened(session, everything, e, node.span) for e in entities)
    if not join.paths:
        if session.failures > failures:
            return tuple(Failed() for _ in current), False
        everything.terminator = Dead()
        return current, True
    return entities, False
