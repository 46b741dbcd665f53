"""Joins: where several paths meet with values, the arms of a branch or the exits of a loop."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence

from relay.errors import Label, RelayError, Span, TypeMismatch
from relay.ir.dims import DataDependentDim
from relay.ir.expr import (
    Atom,
    Dead,
    Exit,
    Var,
    Yield,
)
from relay.ir.types import BOOL, NONE, Form, Kind, TensorType, Type, prune, show
from relay.typecheck.elaboration.abstract_values import (
    FUNCTIONS,
    AbstractValue,
    Context,
    DependsOnPoison,
    DynamicValue,
    LocalFunction,
    Number,
    Poison,
    PythonObject,
    Tuple,
    TypedBlockBuilder,
)
from relay.typecheck.elaboration.checker import Checker
from relay.typecheck.elaboration.constant_results import same_number
from relay.typecheck.elaboration.control_flow import boolean_operators, optionals, unassigned
from relay.typecheck.elaboration.diagnostics.mistakes import clash_notes, display_type
from relay.typecheck.elaboration.dynamic_lists import dynamic_lists, tables
from relay.typecheck.elaboration.dynamic_shapes import data_dependent
from relay.typecheck.elaboration.expressions import dtype_promotion, weak_types
from relay.typecheck.elaboration.expressions.conditions import is_number
from relay.typecheck.elaboration.restarts import KeysOfRun
from relay.typecheck.elaboration.schemes import conditional_types
from relay.typecheck.elaboration.values import records
from relay.typecheck.elaboration.values.expansion import expand
from relay.typecheck.type_differences import differences
from relay.typecheck.unification import Clash, resolve


class Join:
    """The join of several paths with values: the arms of an `if`, the exits of a loop."""

    def __init__(self, checker: Checker, names: Sequence[str]) -> None:
        self.checker = checker
        self.names = names
        self.by_call = False  # in a scheme: a call chooses the path, so what arrives may be of different types
        self.of_conditions = False  # some of what arrives are bools, as operands of `and` or `or`
        self.operator: boolean_operators.BooleanOperator | None = None  # whose operands the arms are
        self.by_sizes = False  # in a scheme: sizes choose the path, so what arrives may differ in them
        self.paths: list[tuple[TypedBlockBuilder, tuple[AbstractValue, ...], Span | None]] = []
        self._handed: list[tuple[Atom, ...]] = []
        self._escaping: list[frozenset[DataDependentDim]] = []

    def add(self, out: TypedBlockBuilder, entities: tuple[AbstractValue, ...], span: Span | None) -> None:
        """One more path that arrives; nothing comes after it in its block, whose end is known when the join closes."""
        escaping = self.checker.escaping
        if escaping:
            entities = tuple(self._pack_escaping_numbers(out, e, escaping, span) for e in entities)
        self._escaping.append(escaping)
        self.paths.append((out, entities, span))
        self._handed.append(self.checker.handed)
        out.terminator = Dead()

    def _pack_escaping_numbers(
        self, out: TypedBlockBuilder, entity: AbstractValue, escaping: frozenset[DataDependentDim], span: Span | None
    ) -> AbstractValue:
        """A value that leaves a block, without numbers that depend on its sizes."""
        if isinstance(entity, Tuple):
            items = tuple(self._pack_escaping_numbers(out, i, escaping, span) for i in entity.items)
            same = all(a is b for a, b in zip(items, entity.items, strict=True))
            return entity if same else Tuple(items, entity.form)
        if isinstance(entity, Number | LocalFunction):
            return data_dependent.pack_sizes(self.checker, out, entity, escaping, None, span)
        return entity

    def close(
        self, end: Callable[[tuple[Atom, ...], Span | None], Yield | Exit]
    ) -> tuple[tuple[Var, ...], tuple[AbstractValue, ...]]:
        """End every path's block. Returns the targets to bind and what each name means after the join."""
        targets: list[Var] = []
        atoms: list[list[Atom]] = [[] for _ in self.paths]
        merged = []
        count = len(self.paths[0][1]) if self.paths else 0
        for position in range(count):
            name = self.names[position] if position < len(self.names) else "value"
            places = [
                assignment_span(name, handed, position, span)
                for handed, (_, _, span) in zip(self._handed, self.paths, strict=True)
            ]
            try:
                column = [entities[position] for _, entities, _ in self.paths]
                if self.operator is not None and position == 0:
                    column = self._operands(self.operator, column, places)
                merged.append(self._merge(name, column, targets, atoms, places))
            except (DependsOnPoison, RelayError) as error:
                self.checker.report(error)
                merged.append(Poison())
        for (out, _, span), values in zip(self.paths, atoms, strict=True):
            out.terminator = end(tuple(values), span)
        return tuple(targets), tuple(merged)

    def _merge(
        self,
        name: str,
        entities: list[AbstractValue],
        targets: list[Var],
        atoms: list[list[Atom]],
        places: Sequence[Span | None],
    ) -> AbstractValue:
        if any(isinstance(e, Poison) for e in entities):
            raise DependsOnPoison
        if (lack := next(filter(None, map(unassigned.no_value, entities)), None)) is not None:
            return unassigned.on_some_paths(lack)
        if (common := _common_value(entities)) is not None:
            return common
        entities = [
            expand(self.checker, out, e, span) if isinstance(e, DynamicValue) else e
            for e, (out, _, span) in zip(entities, self.paths, strict=True)
        ]
        first = entities[0]
        entities = [records.in_order(e, first) for e in entities]
        if optionals.have_optional(entities) and not self.by_call and not self.of_conditions:
            entities = self._optional(entities)
            first = entities[0]
        if all(map(dynamic_lists.is_list, entities)) and len({_fixed_length(e) for e in entities}) > 1:
            entities = [
                dynamic_lists.as_growing(self.checker, out, e, span)
                for e, (out, _, span) in zip(entities, self.paths, strict=True)
            ]
        if isinstance(first, Tuple) and all(
            isinstance(e, Tuple) and len(e.items) == len(first.items) for e in entities
        ):
            columns = zip(*(e.items for e in entities if isinstance(e, Tuple)), strict=True)
            form = common_form(name, [e for e in entities if isinstance(e, Tuple)], places)
            try:
                items = tuple(self._merge(name, list(column), targets, atoms, places) for column in columns)
            except TypeMismatch as error:
                raise tables.differing(name, form, error) from None
            return Tuple(items, form)
        typed = self._typed(entities, self.checker.axes_of_any_size(name) if len(targets) == len(atoms[0]) else ())
        self._unify(name, typed, places)
        target = self.checker.variable(name, typed[0].type, self.paths[0][2])
        targets.append(target)
        for values, value in zip(atoms, typed, strict=True):
            values.append(value.atom)
        length = typed[0].length if all(t.length == typed[0].length for t in typed) else None
        return DynamicValue(target, target.type or typed[0].type, length=length)

    def _typed(self, entities: list[AbstractValue], named: Iterable[int]) -> list[DynamicValue]:
        """The values of the paths at run time, with the sizes packed that differ, and of these axes."""
        typed = [
            self.checker.materialize(out, weak_types.free_count(self.checker, out, e), span)
            for e, (out, _, span) in zip(entities, self.paths, strict=True)
        ]
        typed = dtype_promotion.on_all_paths(self.checker, [out for out, _, _ in self.paths], typed)
        typed = self._pack_path_sizes(
            typed, {*named, *(a for t in typed for a in self.checker.sizes.axes_of_any.get(t.atom, ()))}
        )
        if self.by_call and not all(conditional_types.is_same_type(typed[0].type, t.type) for t in typed[1:]):
            made = self.checker.solver.fresh_variable(Kind.Type)
            conditional_types.note_alternatives(self.checker, [t.type for t in typed], made, self.paths[0][2])
            typed = [DynamicValue(t.atom, made) for t in typed]
        return typed

    def _unify(self, name: str, typed: Sequence[DynamicValue], places: Sequence[Span | None]) -> None:
        """Let the values of all paths have one type. Raises TypeMismatch."""
        for other, span in zip(typed[1:], places[1:], strict=True):
            dynamic_lists.refuse_lengths(self.checker, typed[0].type, other.type)
            try:
                self.checker.solver.unify(typed[0].type, other.type)
            except Clash as clash:
                if self.operator is not None and not self.of_conditions and all(map(is_number, typed)):
                    raise boolean_operators.two_dtypes(self.operator, typed, places) from None
                if name == "condition" or self.of_conditions:
                    raise _no_condition(typed, places) from None
                raise _two_types(name, clash, (places[0], typed[0].type), (span, other.type)) from None

    def _operands(
        self, operator: boolean_operators.BooleanOperator, entities: list[AbstractValue], places: Sequence[Span | None]
    ) -> list[AbstractValue]:
        """The operands of `and` and `or` that meet."""
        if any(isinstance(e, Poison) for e in entities):
            raise DependsOnPoison
        outs = [out for out, _, _ in self.paths]
        found = boolean_operators.operands(self.checker, operator, entities, outs, places)
        self.of_conditions = any(map(boolean_operators.is_bool, found))
        return found

    def _optional(self, entities: Sequence[AbstractValue]) -> list[AbstractValue]:
        """Values of which some are None, as optional ones."""
        known = next((e.type for e in entities if isinstance(e, DynamicValue) and optionals.may_be_none(e)), None)
        type_ = optionals.optional_type(self.checker) if known is None else known
        return [
            optionals.as_optional(self.checker, out, e, type_, span)
            for e, (out, _, span) in zip(entities, self.paths, strict=True)
        ]

    def _pack_path_sizes(self, typed: list[DynamicValue], may: Collection[int]) -> list[DynamicValue]:
        """The values with `Any` for sizes that are bound on their paths, or that differ and are data-dependent, or
        that `may` differ at these axes."""
        values = [
            data_dependent.packed_value(self.checker, out, value, escaping, None, span)
            for value, (out, _, span), escaping in zip(typed, self.paths, self._escaping, strict=True)
        ]
        common = values[0].type
        for other in values[1:]:
            met = data_dependent.common_type(common, other.type, of_all_sizes=self.by_sizes)
            if met is None and data_dependent.varying_axes(other.type, common, may):
                met = data_dependent.common_type(common, other.type, of_all_sizes=True)
            common = met or common
        return [
            data_dependent.packed_value(self.checker, out, value, (), common, span)
            for value, (out, _, span) in zip(values, self.paths, strict=True)
        ]


def is_same_object(one: object, other: object) -> bool:
    """True if two Python objects are one, or strings with the same characters."""
    return one is other or (isinstance(one, str) and isinstance(other, str) and one == other)


def _no_condition(operands: Sequence[DynamicValue], places: Sequence[Span | None]) -> TypeMismatch:
    """The error of `and` and `or` of something else than conditions."""
    bool_ = TensorType(BOOL, ())
    pairs = zip(operands, places, strict=True)
    wrong, place = next((o, s) for o, s in pairs if resolve(o.type) != bool_)
    return TypeMismatch(
        f"the operands of `and` and `or` must be {show(bool_)}, found {display_type(wrong.type)}",
        place,
        notes=differences(wrong.type, bool_),
        help="compare with something: `x > 0`; elementwise, `and` and `or` are `(x > 0) & (y > 0)` and `|`",
    )


def _display_name(name: str) -> str:
    """A joined value in a message: the user's variable, or what the front end calls a conditional expression."""
    return "this expression" if name == "chosen" else name


def assignment_span(name: str, handed: Sequence[Atom], position: int, otherwise: Span | None) -> Span | None:
    """The place where a variable got the value that a path passes on."""
    atom = handed[position] if position < len(handed) else None
    return atom.span if isinstance(atom, Var) and atom.name == name and atom.span is not None else otherwise


def _fixed_length(entity: AbstractValue) -> int | None:
    """The number of items of a list that are known one by one; None for a list that grows."""
    return len(entity.items) if isinstance(entity, Tuple) else None


def common_form(name: str, tuples: Sequence[Tuple], spans: Sequence[Span | None]) -> Form | None:
    """The form that tuples share where paths meet. Raises TypeMismatch for records of different forms."""
    forms = {t.form for t in tuples if t.form is not None}
    named = [f for f in forms if f.names]
    if origins := {f.origin for f in forms if f.origin is not None and len(forms) > 1}:
        raise KeysOfRun(origins)
    if len(named) > 1 or (named and len(forms) > 1):
        raise TypeMismatch(
            f"{name} is a record with other fields on another path", spans[-1], help="use the same class and keys"
        )
    return next(iter(forms)) if len(forms) == 1 and all(t.form is not None for t in tuples) else None


def assign_joined(
    checker: Checker,
    context: Context,
    targets: Sequence[Var],
    join: Join,
    entities: Sequence[AbstractValue],
    failures: int,
) -> bool:
    """Note what targets mean after a join; False if no path arrives.

    Where mistakes (there were `failures` before) have cut all paths off, the program still goes on.
    """
    if join.paths:
        context.assign(targets, entities)
        return True
    context.assign(targets, [Poison()] * len(targets))
    return checker.failures > failures


def rename(entity: AbstractValue, renamed: dict[Var, Var]) -> AbstractValue:
    """An entity with other variables."""
    match entity:
        case DynamicValue(Var() as var, type_, _, length):
            return DynamicValue(renamed[var], type_, length=length)
        case Tuple(items, form):
            return Tuple(tuple(rename(i, renamed) for i in items), form)
        case _:
            return entity


def _common_value(entities: Sequence[AbstractValue]) -> AbstractValue | None:
    """The value that all paths have, if it is known at compile time: a number, an object, a function."""
    first = entities[0]
    if isinstance(first, Number):
        is_same = all(isinstance(e, Number) and same_number(e, first) for e in entities)
    elif isinstance(first, PythonObject):
        is_same = all(isinstance(e, PythonObject) and is_same_object(e.value, first.value) for e in entities)
    else:
        is_same = len(entities) > 1 and isinstance(first, FUNCTIONS) and all(e is first for e in entities)
    return first if is_same else None


def _two_types(
    name: str, clash: Clash, earlier: tuple[Span | None, Type], later: tuple[Span | None, Type]
) -> TypeMismatch:
    """The error of two paths that give a variable different types, at the one that is later in the text."""
    if later[0] is not None and earlier[0] is not None and later[0].line < earlier[0].line:
        earlier, later = later, earlier
    labels = (Label(earlier[0], f"here it is {display_type(earlier[1])}"),) if earlier[0] else ()
    is_optional = NONE in (prune(earlier[1]), prune(later[1]))
    return TypeMismatch(
        f"{_display_name(name)} is {display_type(earlier[1])} on one path and {display_type(later[1])} on another",
        later[0],
        labels=labels,
        notes=clash_notes(clash, later[1], earlier[1]),
        help="None is static; for a value that may be missing at run time use relay.Option" if is_optional else None,
    )
