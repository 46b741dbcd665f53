"""Joins: where several paths meet with values, the arms of a branch or the ways out of a loop."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from relay.errors import Label, RelayError, Span, TypeMismatch
from relay.ir.dims import MadeDim
from relay.ir.expr import (
    Atom,
    Dead,
    Exit,
    Var,
    Yield,
)
from relay.ir.types import BOOL, Form, Kind, TensorType, show
from relay.typecheck.elaboration.abstract_values import (
    FUNCTIONS,
    Consequence,
    Context,
    Entity,
    Failed,
    LocalFunction,
    Number,
    Object,
    Output,
    Tuple,
    Typed,
)
from relay.typecheck.elaboration.checker import Session
from relay.typecheck.elaboration.constant_results import same_number
from relay.typecheck.elaboration.diagnostics.mistakes import clash_notes, shown
from relay.typecheck.elaboration.dynamic_lists import dynamic_lists
from relay.typecheck.elaboration.dynamic_shapes import data_dependent
from relay.typecheck.elaboration.expressions import weak_types
from relay.typecheck.elaboration.instances import expand
from relay.typecheck.elaboration.schemes import conditional_types
from relay.typecheck.type_differences import differences
from relay.typecheck.unification import Clash, resolve


class Join:
    """Where several paths meet with values: the arms of an `if`, the ways out of a loop."""

    def __init__(self, session: Session, names: Sequence[str]) -> None:
        self.session = session
        self.names = names
        self.by_call = False  # in a scheme: a call chooses the path, so what arrives may be of different types
        self.of_conditions = False  # the arms are the operands of `and` or `or`
        self.by_sizes = False  # in a scheme: sizes choose the path, so what arrives may differ in them
        self.paths: list[tuple[Output, tuple[Entity, ...], Span | None]] = []
        self._handed: list[tuple[Atom, ...]] = []
        self._escaping: list[frozenset[MadeDim]] = []

    def add(self, out: Output, entities: tuple[Entity, ...], span: Span | None) -> None:
        """One more path that arrives; nothing comes after it in its block, whose end is known when the join closes."""
        escaping = self.session.escaping
        if escaping:
            entities = tuple(self._settled(out, e, escaping, span) for e in entities)
        self._escaping.append(escaping)
        self.paths.append((out, entities, span))
        self._handed.append(self.session.handed)
        out.terminator = Dead()

    def _settled(self, out: Output, entity: Entity, escaping: frozenset[MadeDim], span: Span | None) -> Entity:
        """A value that leaves a block without numbers that are made from its sizes."""
        if isinstance(entity, Tuple):
            items = tuple(self._settled(out, i, escaping, span) for i in entity.items)
            same = all(a is b for a, b in zip(items, entity.items, strict=True))
            return entity if same else Tuple(items, entity.form)
        if isinstance(entity, Number | LocalFunction):
            return data_dependent.packed(self.session, out, entity, escaping, None, span)
        return entity

    def close(
        self, end: Callable[[tuple[Atom, ...], Span | None], Yield | Exit]
    ) -> tuple[tuple[Var, ...], tuple[Entity, ...]]:
        """End every path's block. Returns the targets to bind and what each name means after the join."""
        targets: list[Var] = []
        atoms: list[list[Atom]] = [[] for _ in self.paths]
        merged = []
        count = len(self.paths[0][1]) if self.paths else 0
        for position in range(count):
            name = self.names[position] if position < len(self.names) else "value"
            places = [
                assigned_at(name, handed, position, span)
                for handed, (_, _, span) in zip(self._handed, self.paths, strict=True)
            ]
            try:
                column = [entities[position] for _, entities, _ in self.paths]
                merged.append(self._merge(name, column, targets, atoms, places))
            except (Consequence, RelayError) as error:
                self.session.report(error)
                merged.append(Failed())
        for (out, _, span), values in zip(self.paths, atoms, strict=True):
            out.terminator = end(tuple(values), span)
        return tuple(targets), tuple(merged)

    def _merge(
        self,
        name: str,
        entities: list[Entity],
        targets: list[Var],
        atoms: list[list[Atom]],
        places: Sequence[Span | None],
    ) -> Entity:
        if any(isinstance(e, Failed) for e in entities):
            raise Consequence
        first = entities[0]
        several = len(entities) > 1
        if isinstance(first, Number) and all(isinstance(e, Number) and same_number(e, first) for e in entities):
            return first
        if isinstance(first, Object) and all(isinstance(e, Object) and e.value is first.value for e in entities):
            return first
        if several and isinstance(first, FUNCTIONS) and all(e is first for e in entities):
            return first
        entities = [
            expand(self.session, out, e, span) if isinstance(e, Typed) else e
            for e, (out, _, span) in zip(entities, self.paths, strict=True)
        ]
        first = entities[0]
        if all(map(dynamic_lists.is_list, entities)) and len({_fixed_length(e) for e in entities}) > 1:
            entities = [
                dynamic_lists.as_growing(self.session, out, e, span)
                for e, (out, _, span) in zip(entities, self.paths, strict=True)
            ]
        if isinstance(first, Tuple) and all(
            isinstance(e, Tuple) and len(e.items) == len(first.items) for e in entities
        ):
            columns = zip(*(e.items for e in entities if isinstance(e, Tuple)), strict=True)
            form = common_form(name, [e for e in entities if isinstance(e, Tuple)], places)
            return Tuple(tuple(self._merge(name, list(column), targets, atoms, places) for column in columns), form)
        typed = [
            self.session.materialise(out, weak_types.freed(self.session, out, e), span)
            for e, (out, _, span) in zip(entities, self.paths, strict=True)
        ]
        named = self.session.axes_of_any_size(name) if len(targets) == len(atoms[0]) else ()
        typed = self._packed(typed, {*named, *(a for t in typed for a in self.session.axes_of_any.get(t.atom, ()))})
        if self.by_call and not all(conditional_types.alike(typed[0].type, t.type) for t in typed[1:]):
            made = self.session.solver.fresh(Kind.Type)
            conditional_types.either(self.session, [t.type for t in typed], made, self.paths[0][2])
            typed = [Typed(t.atom, made) for t in typed]
        for other, span in zip(typed[1:], places[1:], strict=True):
            dynamic_lists.refuse_lengths(self.session, typed[0].type, other.type)
            try:
                self.session.solver.unify(typed[0].type, other.type)
            except Clash as clash:
                notes = clash_notes(clash, other.type, typed[0].type)
                if name == "condition" or self.of_conditions:
                    raise _no_condition(typed, places) from None
                earlier, later = (places[0], typed[0].type), (span, other.type)
                if later[0] is not None and earlier[0] is not None and later[0].line < earlier[0].line:
                    earlier, later = later, earlier
                    notes = clash_notes(clash, later[1], earlier[1])
                labels = (Label(earlier[0], f"here it is {shown(earlier[1])}"),) if earlier[0] else ()
                raise TypeMismatch(
                    f"{_said(name)} is {shown(earlier[1])} on one path and {shown(later[1])} on another",
                    later[0],
                    labels=labels,
                    notes=notes,
                ) from None
        target = self.session.variable(name, typed[0].type, self.paths[0][2])
        targets.append(target)
        for values, value in zip(atoms, typed, strict=True):
            values.append(value.atom)
        length = typed[0].length if all(t.length == typed[0].length for t in typed) else None
        return Typed(target, target.type or typed[0].type, length=length)

    def _packed(self, typed: list[Typed], may: Collection[int]) -> list[Typed]:
        """The values with `Any` for sizes that are made on their paths, or that differ and the run makes, or that `may`
        differ at these axes."""
        values = [
            data_dependent.packed_value(self.session, out, value, escaping, None, span)
            for value, (out, _, span), escaping in zip(typed, self.paths, self._escaping, strict=True)
        ]
        common = values[0].type
        for other in values[1:]:
            met = data_dependent.meeting(common, other.type, of_all_sizes=self.by_sizes)
            if met is None and data_dependent.varying_axes(other.type, common, may):
                met = data_dependent.meeting(common, other.type, of_all_sizes=True)
            common = met or common
        return [
            data_dependent.packed_value(self.session, out, value, (), common, span)
            for value, (out, _, span) in zip(values, self.paths, strict=True)
        ]


def _no_condition(operands: Sequence[Typed], places: Sequence[Span | None]) -> TypeMismatch:
    """The error of `and` and `or` of something else than conditions."""
    bool_ = TensorType(BOOL, ())
    pairs = zip(operands, places, strict=True)
    wrong, place = next((o, s) for o, s in pairs if resolve(o.type) != bool_)
    return TypeMismatch(
        f"the operands of `and` and `or` must be {show(bool_)}, found {shown(wrong.type)}",
        place,
        notes=differences(wrong.type, bool_),
        help="compare with something: `x > 0`; elementwise, `and` and `or` are `(x > 0) & (y > 0)` and `|`",
    )


def _said(name: str) -> str:
    """A joined value in a message: the user's variable, or what the front end calls a conditional expression."""
    return "this expression" if name == "chosen" else name


def assigned_at(name: str, handed: Sequence[Atom], position: int, otherwise: Span | None) -> Span | None:
    """Where a variable got the value that a path hands on."""
    atom = handed[position] if position < len(handed) else None
    return atom.span if isinstance(atom, Var) and atom.name == name and atom.span is not None else otherwise


def _fixed_length(entity: Entity) -> int | None:
    """The number of items of a list that are known one by one; None for a list that grows."""
    return len(entity.items) if isinstance(entity, Tuple) else None


def common_form(name: str, tuples: Sequence[Tuple], spans: Sequence[Span | None]) -> Form | None:
    """The form that tuples share where paths meet. Raises TypeMismatch for records of different forms."""
    forms = {t.form for t in tuples if t.form is not None}
    named = [f for f in forms if f.names]
    if len(named) > 1 or (named and len(forms) > 1):
        raise TypeMismatch(
            f"{name} is a record with other fields on another path", spans[-1], help="use the same class and keys"
        )
    return next(iter(forms)) if len(forms) == 1 and all(t.form is not None for t in tuples) else None


def assign_joined(
    session: Session,
    context: Context,
    targets: Sequence[Var],
    join: Join,
    entities: Sequence[Entity],
    failures: int,
) -> bool:
    """Note what targets mean after a join; False if no path arrives.

    Where mistakes (there were `failures` before) have cut all paths off, the program still goes on.
    """
    if join.paths:
        assign(context, targets, entities)
        return True
    assign(context, targets, [Failed()] * len(targets))
    return session.failures > failures


def assign(context: Context, targets: Sequence[Var], entities: Sequence[Entity]) -> None:
    """Note what surface targets mean."""
    for target, entity in zip(targets, entities, strict=True):
        context.environment[target] = entity
