"""Loop-carried state, and `while`."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from relay.errors import Label, RelayError, Span, TypeCheckError, TypeMismatch
from relay.ir.definition import content_type
from relay.ir.dims import Dim, add, multiply
from relay.ir.expr import Atom, Dead, Exit, Loop, LoopLabel, Next, Var
from relay.ir.surface import ForEach
from relay.ir.types import Type, show
from relay.typecheck.elaboration.abstract_values import (
    FUNCTIONS,
    NOTHING,
    AbstractValue,
    Context,
    DeferredBinding,
    DependsOnPoison,
    DynamicValue,
    Handler,
    ListLength,
    Poison,
    PythonObject,
    Tuple,
    TypedBlockBuilder,
)
from relay.typecheck.elaboration.checker import Checker
from relay.typecheck.elaboration.control_flow import optionals, static_exits, unassigned
from relay.typecheck.elaboration.control_flow.joins import Join, assign_joined, assignment_span
from relay.typecheck.elaboration.control_flow.loop_invariants import LoopInvariants
from relay.typecheck.elaboration.control_flow.round_sizes import RoundSizes
from relay.typecheck.elaboration.control_flow.round_start import RoundStart
from relay.typecheck.elaboration.diagnostics.changed_types import (
    START_WITH_ZEROS,
    is_another_record,
    keeping,
    structure_error,
)
from relay.typecheck.elaboration.diagnostics.mistakes import SchemeOnly, clash_notes
from relay.typecheck.elaboration.dynamic_lists import dynamic_lists
from relay.typecheck.elaboration.dynamic_shapes import data_dependent
from relay.typecheck.elaboration.expressions import dtype_promotion, weak_types
from relay.typecheck.elaboration.expressions.atoms import handed_entities
from relay.typecheck.elaboration.library.overloads import is_function
from relay.typecheck.elaboration.restarts import (
    FirstRoundDiffers,
    IntegersWiden,
    IsOptional,
    ListGrows,
    LoopUnrolls,
    Place,
    Restart,
    SeveralRestarts,
    SizeVaries,
)
from relay.typecheck.elaboration.schemes import conditional_types
from relay.typecheck.elaboration.values import records
from relay.typecheck.elaboration.values.data import is_text
from relay.typecheck.elaboration.values.expansion import expand
from relay.typecheck.elaboration.values.labels import is_member
from relay.typecheck.elaboration.values.tensors import tensor_type
from relay.typecheck.unification import Clash, is_known, resolve

MOST_ROUNDS = 64
"""Of how many rounds a `while` may be unrolled."""


def _is_number(value: DynamicValue) -> bool:
    """True if a value is a tensor without axes."""
    type_ = tensor_type(value)
    return type_ is not None and is_known(type_.shape) and not type_.shape


class LoopState:
    """The parameters of a loop: their structure comes from the initial values and stays.

    A function is a parameter where the loop changes it; otherwise it stays known.
    """

    def __init__(
        self,
        checker: Checker,
        context: Context,
        out: TypedBlockBuilder,
        node: Loop | ForEach,
        entities: Sequence[AbstractValue],
    ) -> None:
        self.checker = checker
        self.label = node.label
        self.span = node.span
        self.names = [p.name for p in node.parameters]
        self._initial = node.initial
        checker.loop_parameters.update((p, (self.label, i, node.initial[i])) for i, p in enumerate(node.parameters))
        self._restarts: list[Restart] = []
        self.parameters: list[Var] = []
        self.initial: list[Atom] = []
        start = RoundStart(context, node, entities)
        self._kept, self._sizes = LoopInvariants(start), RoundSizes(checker, start)
        self._resized = node.resized if isinstance(node, ForEach) else ()
        self._may_peel = isinstance(node, ForEach)
        self._started: dict[object, ListLength | None] = {}  # by origin: the length with which a list enters the loop
        self._growth: dict[object, set[ListLength | None]] = {}  # by origin: by how much a round makes it longer
        self.changes = False  # a round ends with other types, which is reported
        self.may_change = False  # in a scheme: perhaps with other types
        self.optional: dict[Place, Type] = {}  # what is None before the loop and something else in its rounds
        self._of_any: dict[tuple[int, ...], Collection[int]] = {}  # axes that annotations leave open
        self.entities = tuple(
            self._start(out, name, e, (i,)) for i, (name, e) in enumerate(zip(self.names, entities, strict=True))
        )

    def _start(self, out: TypedBlockBuilder, name: str, entity: AbstractValue, place: tuple[int, ...]) -> AbstractValue:
        if isinstance(entity, Poison):
            return entity
        if isinstance(entity, DynamicValue):
            entity = expand(self.checker, out, entity, self.span)
        is_resized = (self.label, place) in self.checker.decisions.growing or self._sizes.is_resized(place, entity)
        if is_resized:
            entity = dynamic_lists.as_growing(self.checker, out, entity, self.span)
        elif len(place) == 1 and place[0] in self._resized:
            entity = dynamic_lists.given_as_list(self.checker, out, entity, self.span)
        elif optionals.is_none(entity) and (self.label, place) in self.checker.decisions.optional:
            entity = self._optional(out, entity, place)
        if isinstance(entity, Tuple):
            items = enumerate(entity.items)
            return Tuple(tuple(self._start(out, name, item, (*place, i)) for i, item in items), entity.form)
        if isinstance(entity, (PythonObject, *FUNCTIONS)):
            of_run = is_text(entity) or is_member(entity)
            passes = not isinstance(entity, PythonObject) or is_function(entity.value) or of_run
            if not passes or self._kept.keeps(place[0], place[1:]):
                return entity
        typed = self.checker.materialize(out, weak_types.free_count(self.checker, out, entity), self.span)
        typed = dtype_promotion.at_place(self.checker, out, typed, (self.label, place), self.span)
        self._of_any[place] = self.checker.sizes.axes_of_any.get(typed.atom, ())
        may = {*self._of_any[place], *(self.checker.axes_of_any_size(name) if len(place) == 1 else ())}
        known = self.checker.decisions.varying.get((self.label, place), set())
        if axes := known | self._sizes.varying_axes(place, typed.type, may):
            typed = data_dependent.widen_axes(self.checker, out, typed, axes, self.span)
        var = self.checker.variable(name, typed.type, self.span)
        self.checker.sizes.axes_of_any[var] = self._of_any[place]
        self.parameters.append(var)
        self.initial.append(typed.atom)
        if not dynamic_lists.is_growing(typed):
            return DynamicValue(var, typed.type)
        origin = object()
        self._started[origin], self._growth[origin] = typed.length, set()
        return DynamicValue(var, typed.type, length=ListLength(origin, 0, NOTHING))

    def _optional(self, out: TypedBlockBuilder, entity: AbstractValue, place: tuple[int, ...]) -> AbstractValue:
        """None before the loop, as a value that may be something else after a round."""
        found = self.checker.decisions.optional[self.label, place]
        assert found is not None
        type_ = optionals.from_earlier_elaboration(self.checker, found, self.span)
        return optionals.as_optional(self.checker, out, entity, optionals.optional_type(self.checker, type_), self.span)

    @property
    def has_lists(self) -> bool:
        """True if there are lists that grow among the parameters."""
        return bool(self._started)

    def round_entities(self, body: TypedBlockBuilder) -> tuple[AbstractValue, ...]:
        """The parameters' values in a round, whose block is `body`."""
        return tuple(data_dependent.all_opened(self.checker, body, e, self.span) for e in self.entities)

    def exit_entity(self, entity: AbstractValue, rounds: Dim | None) -> AbstractValue:
        """An entity of the loop as what it is after it; `rounds`: their number, if it is known."""
        match entity:
            case Tuple(items, form):
                return Tuple(tuple(self.exit_entity(i, rounds) for i in items), form)
            case DynamicValue(atom, type_, known, ListLength(origin, more, elements)) if origin in self._started:
                start, growth = self._started[origin], self._growth[origin]
                grown = {None if g is None else g.more for g in growth}
                by = next(iter(grown)) if len(grown) == 1 else 0 if not grown else None
                if start is None or by is None or (by != 0 and rounds is None):
                    return DynamicValue(atom, type_, known)
                length = start.plus(add(0 if rounds is None else multiply(by, rounds), more)).with_elements(elements)
                for round_ in growth:
                    length = length.with_elements(None if round_ is None else round_.elements)
                return DynamicValue(atom, type_, known, length)
            case _:
                return entity

    def _note_growth(self, expected: DynamicValue, entity: DynamicValue) -> None:
        assert expected.length is not None
        origin, length = expected.length.origin, entity.length
        self._growth[origin].add(length if length is not None and length.origin is origin else None)

    def fit(self, out: TypedBlockBuilder, entities: Sequence[AbstractValue], span: Span | None) -> tuple[Atom, ...]:
        """The atoms of the parameters' next values. Raises TypeMismatch where one changes its type, and, together, what
        the next elaboration should know of them."""
        atoms: list[Atom] = []
        handed = self.checker.handed
        for position, (name, expected, entity) in enumerate(zip(self.names, self.entities, entities, strict=True)):
            if isinstance(expected, Poison) or isinstance(entity, Poison):
                self.checker.report(DependsOnPoison())
                continue
            try:
                place = assignment_span(name, handed, position, span)
                self._fit(out, name, expected, entity, place, atoms, (position,))
            except (DependsOnPoison, RelayError) as error:
                self.changes = self.changes or isinstance(error, RelayError)
                self.checker.report(error)
        if self._restarts:
            raise SeveralRestarts(self._restarts)
        return tuple(atoms)

    def _enclosing_places(self, place: tuple[int, ...]) -> Iterator[Place]:
        """The places of a variable, or a part of it, in this loop and in those around it that it goes through."""
        yield self.label, place
        atom = self._initial[place[0]]
        while atom in self.checker.loop_parameters:
            label, position, atom = self.checker.loop_parameters[atom]
            yield label, (position, *place[1:])

    def _fit(
        self,
        out: TypedBlockBuilder,
        name: str,
        expected: AbstractValue,
        entity: AbstractValue,
        span: Span | None,
        atoms: list[Atom],
        place: tuple[int, ...],
    ) -> None:
        if isinstance(entity, DynamicValue):
            entity = expand(self.checker, out, entity, span)
        entity = records.in_order(entity, expected)
        match expected:
            case DynamicValue():
                self._fit_value(out, name, expected, entity, span, atoms, place)
            case Tuple(items):
                if (
                    not isinstance(entity, Tuple)
                    or len(entity.items) != len(items)
                    or is_another_record(expected, entity)
                ):
                    if dynamic_lists.is_literal(expected) and dynamic_lists.is_list(entity):
                        self._restarts += map(ListGrows, self._enclosing_places(place))
                        return
                    raise structure_error(name, expected, entity, span)
                for i, (a, b) in enumerate(zip(items, entity.items, strict=True)):
                    self._fit(out, name, a, b, span, atoms, (*place, i))
            case _:
                lack = unassigned.no_value(expected)
                same = (
                    entity is expected
                    or (lack is not None and unassigned.no_value(entity) is not None)
                    or (
                        isinstance(entity, PythonObject)
                        and isinstance(expected, PythonObject)
                        and entity.value is expected.value
                    )
                )
                if same:
                    return
                begins_with_none = lack is not None or (isinstance(expected, PythonObject) and expected.value is None)
                if begins_with_none and self._may_peel and self.label not in self.checker.decisions.peeled:
                    raise FirstRoundDiffers(self.label)
                if lack is not None:
                    raise lack.error(span)
                if begins_with_none and self._note_optional(out, entity, place, span):
                    raise DependsOnPoison  # the elaboration begins again
                if begins_with_none:
                    raise TypeCheckError(
                        f"{name} is None before the loop but not in its rounds, and there may be no rounds",
                        span,
                        help="give it a value before the loop",
                    )
                raise TypeCheckError(f"the loop changes {name}, which is a compile-time value", span)

    def _note_optional(
        self, out: TypedBlockBuilder, entity: AbstractValue, place: tuple[int, ...], span: Span | None
    ) -> bool:
        """Note the type of what is None before the loop. Returns whether it can be optional."""
        if not optionals.have_optional([optionals.NONE, entity]):
            return False
        entity = dynamic_lists.given_as_list(self.checker, out, entity, span)
        typed = self.checker.materialize(out, weak_types.free_count(self.checker, out, entity), span)
        self.checker.solver.run()
        found = content_type(typed.type) if optionals.may_be_none(typed) else typed.type
        self.optional[self.label, place] = found
        return True

    def settle_optional(self) -> None:
        """Begin again where variables that are None before the loop get values in it. Raises IsOptional."""
        if self.optional:
            raise IsOptional(self.optional)

    def _fit_value(
        self,
        out: TypedBlockBuilder,
        name: str,
        expected: DynamicValue,
        entity: AbstractValue,
        span: Span | None,
        atoms: list[Atom],
        place: tuple[int, ...],
    ) -> None:
        if optionals.may_be_none(expected):
            entity = optionals.as_optional(self.checker, out, entity, expected.type, span)
        elif dynamic_lists.is_growing(expected):
            entity = dynamic_lists.as_growing(self.checker, out, entity, span)
            self._note_growth(expected, entity)
        typed = self.checker.materialize(out, weak_types.free_count(self.checker, out, entity), span)
        typed = data_dependent.packed_value(self.checker, out, typed, self.checker.escaping, expected.type, span)
        named = self.checker.axes_of_any_size(name) if len(place) == 1 else ()
        may = {*named, *self._of_any[place]}
        varying = data_dependent.varying_axes(typed.type, expected.type, may)
        if new := varying - self.checker.decisions.varying.get((self.label, place), set()):
            self._restarts += [SizeVaries(around, new) for around in self._enclosing_places(place)]
            return
        if (wider := dtype_promotion.missing_dtype(typed.type, expected.type)) is not None:
            self._restarts += [IntegersWiden(around, wider) for around in self._enclosing_places(place)]
            return
        typed = dtype_promotion.fitted_value(self.checker, out, typed, expected.type, span)
        dynamic_lists.refuse_lengths(self.checker, typed.type, expected.type)
        self.may_change = self.may_change or not conditional_types.is_same_type(typed.type, expected.type)
        try:
            self.checker.solver.unify(typed.type, expected.type)
        except Clash as clash:
            becomes_array = _is_number(expected) and not _is_number(typed)
            if becomes_array and self._may_peel and self.label not in self.checker.decisions.peeled:
                raise FirstRoundDiffers(self.label) from None
            notes = clash_notes(clash, typed.type, expected.type)
            labels = (Label(self.span, f"it enters the loop as {show(resolve(expected.type))}"),) if self.span else ()
            raise TypeMismatch(
                f"the loop changes the type of {name} from {show(resolve(expected.type))}"
                f" to {show(resolve(typed.type))}",
                typed.atom.span or span,
                labels=labels,
                notes=notes,
                help=START_WITH_ZEROS if becomes_array else keeping(typed.type, expected.type),
            ) from None
        atoms.append(typed.atom)


def elaborate_loop(
    checker: Checker, context: Context, targets: tuple[Var, ...], node: Loop, out: TypedBlockBuilder
) -> None:
    """A `while`. One that changes types, and whose condition is known at compile time, is unrolled."""
    checker.rounds.enter(node)
    if checker.generic and node.label in checker.decisions.by_call:
        raise SchemeOnly(node.span, "how many rounds this loop has")
    initial = handed_entities(context, node.initial)
    if node.label in checker.decisions.unrolled or _types_end_it(checker, node, initial):
        _unroll(checker, context, targets, node, out)
        return
    carried = LoopState(checker, context, out, node, initial)
    label = LoopLabel(node.label.name)
    join = Join(checker, [t.name for t in targets])
    outside = checker.frame.chosen_by_call, checker.frame.chosen_by_sizes
    chosen: list[tuple[bool, bool]] = []  # in a scheme: whether a call decides the exits, or sizes

    def on_next(place: TypedBlockBuilder, entities: tuple[AbstractValue, ...], span: Span | None) -> None:
        place.terminator = Next(label, carried.fit(place, entities, span), span)

    def on_exit(place: TypedBlockBuilder, entities: tuple[AbstractValue, ...], span: Span | None) -> None:
        chosen.append((checker.frame.chosen_by_call > outside[0], checker.frame.chosen_by_sizes > outside[1]))
        join.add(place, entities, span)

    context.handlers[node.label] = Handler(label, on_next, on_exit, len(checker.frame.scopes))
    body, failures = TypedBlockBuilder(), checker.failures
    with checker.where_it_may_not_run(), checker.scope(body):
        context.assign(node.parameters, carried.round_entities(body))
        checker.engine.elaborate_block(checker, context, node.body, body, None)
    if node.label not in checker.decisions.endless and _is_of_several_types(checker, carried, chosen):
        raise LoopUnrolls(node.label, by_call=bool(chosen))
    carried.settle_optional()
    bound, entities = join.close(lambda atoms, span: Exit(label, atoms, span))

    def build() -> Loop:
        return Loop(label, tuple(carried.parameters), tuple(carried.initial), body.block(), None, node.span)

    out.items.append(DeferredBinding(bound, build))
    entities = tuple(data_dependent.all_opened(checker, out, carried.exit_entity(e, None), node.span) for e in entities)
    arrives = assign_joined(checker, context, targets, join, entities, failures)
    if not arrives:
        out.terminator = Dead()


def _types_end_it(checker: Checker, node: Loop, initial: Sequence[AbstractValue]) -> bool:
    """True if a loop ends by the types of its variables alone, which are known: they differ between rounds."""
    if checker.generic or node.label in checker.decisions.endless:
        return False
    deciding = static_exits.deciding_parameters(node)
    return bool(deciding) and all(static_exits.is_of_known_structure(initial[i]) for i in deciding)


def _is_of_several_types(checker: Checker, carried: LoopState, exits: Sequence[tuple[bool, bool]]) -> bool:
    """True if the rounds of a loop have variables of different types, and their number is static: no exit leaves the
    first one, or, in a scheme, only exits that calls and sizes choose."""
    if not exits:
        return carried.changes
    by_call = checker.generic and all(call for call, _ in exits)
    by_sizes = checker.generic and all(call or sizes for call, sizes in exits)
    return (carried.may_change and by_call) or (carried.changes and by_sizes)


def _unroll(checker: Checker, context: Context, targets: tuple[Var, ...], node: Loop, out: TypedBlockBuilder) -> None:
    """One copy of the body for each round."""
    current = handed_entities(context, node.initial)
    outer, join = LoopLabel(node.label.name), Join(checker, [t.name for t in targets])
    everything, failures = TypedBlockBuilder(), checker.failures
    ended, rounds = False, 0
    with checker.scope(everything) as depth:
        while not ended and checker.failures == failures:
            if rounds == MOST_ROUNDS:
                raise LoopUnrolls(node.label, is_endless=True)
            current, ended = elaborate_round(checker, context.child_context(), node, current, everything, join, depth)
            rounds += 1
    bound, entities = join.close(lambda atoms, span: Exit(outer, atoms, span))
    out.items.append(DeferredBinding(bound, lambda: Loop(outer, (), (), everything.block(), None, node.span)))
    entities = tuple(data_dependent.all_opened(checker, out, e, node.span) for e in entities)
    if not assign_joined(checker, context, targets, join, entities, failures):
        out.terminator = Dead()


def elaborate_round(
    checker: Checker,
    context: Context,
    node: Loop | ForEach,
    current: tuple[AbstractValue, ...],
    everything: TypedBlockBuilder,
    outer_join: Join,
    outside: int,
) -> tuple[tuple[AbstractValue, ...], bool]:
    """One round as a loop that runs once. Returns the variables after it, and whether nothing comes after it."""
    inner = LoopLabel(node.label.name)
    join = Join(checker, [p.name for p in node.parameters])
    context.assign(node.parameters, current)
    context.handlers[node.label] = Handler(inner, join.add, outer_join.add, len(checker.frame.scopes), outside)
    body, failures = TypedBlockBuilder(), checker.failures
    checker.engine.elaborate_block(checker, context, node.body, body, None)
    bound, entities = join.close(lambda atoms, span: Exit(inner, atoms, span))
    everything.items.append(DeferredBinding(bound, lambda: Loop(inner, (), (), body.block(), None, node.span)))
    entities = tuple(data_dependent.all_opened(checker, everything, e, node.span) for e in entities)
    if not join.paths:
        if checker.failures > failures:
            return tuple(Poison() for _ in current), False
        everything.terminator = Dead()
        return current, True
    return entities, False
