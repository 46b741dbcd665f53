"""Joins of static values: kept static where they can be, otherwise made atoms of their flow.

reify(value, T)           the atom of type T for a value: functions become constructors of their flow
meet(v, ..)               same code: the environments meet; tuples: component by component; otherwise a flow
start, carry              the same for the parameters of a loop, whose next values are seen after the loop's body
"""

from __future__ import annotations

from typing import TypeAlias, assert_never

import attrs

from relay.errors import InternalError, Span
from relay.ir.builder import BlockBuilder
from relay.ir.expr import Atom, Construct, Extent, LoopLabel, MakeTuple, Project, Var
from relay.ir.types import INT64, DataType, TupleType, Type, scalar
from relay.transform.core.captured_dims import ascribe_type
from relay.transform.core.flows import Flows, atom_type, parts_of
from relay.transform.core.incoming_paths import IncomingPath, Join
from relay.transform.core.static_values import (
    Closure,
    DynamicValue,
    Gradient,
    ModuleFunction,
    StaticValue,
    StaticValues,
    TupleValue,
    flatten,
    held_types,
)

Place: TypeAlias = tuple[int, ...]
"""A loop parameter, and the path to a component of it."""


@attrs.define(eq=False)
class LoopExits:
    """The targets of the `Exit`s and `Next`s of a loop. `memory`: the types of the places that are flows."""

    label: LoopLabel
    exits: Join
    parameters: tuple[Type, ...] = ()
    carried: list[StaticValue] = attrs.field(factory=list)
    counted: bool = False
    memory: dict[Place, Type] = attrs.field(factory=dict)
    changed: bool = False


class ValueJoins:
    """Lets the values of one module meet."""

    def __init__(self, static: StaticValues, flows: Flows) -> None:
        self.static = static
        self.flows = flows

    def rebind(self, variable: Var, value: StaticValue, into: list[Var]) -> StaticValue:
        """A value like `value` on fresh variables, which are appended to `into`."""

        def fresh_atom(old: Atom, name: str) -> Atom:
            copy = Var(name, atom_type(old), variable.span)
            into.append(copy)
            return copy

        return self.static.rebuild(value, fresh_atom, variable.name)

    def reify(self, value: StaticValue, type_: Type, out: BlockBuilder, span: Span | None) -> Atom:
        """The value as an atom of a converted type: functions become constructors of their flow."""
        match value:
            case DynamicValue(atom):
                atom, found = ascribe_type(atom, atom_type(atom), type_, out)
                self.flows.unify(type_, found)
                return atom
            case TupleValue(items):
                assert isinstance(type_, TupleType)
                atoms = tuple(self.reify(i, t, out, span) for i, t in zip(items, type_.items, strict=True))
                return out.assign(MakeTuple(atoms, span), type_, "tuple", span)
            case Closure() | ModuleFunction() | Gradient():
                flow = self.flows.function_flow(type_)
                alternative = self.flows.alternative(flow, value)
                sizes = self.flows.sizes_of(alternative, value)
                numbers = tuple(out.assign(Extent(d, INT64, span), scalar(INT64), d.name, span) for d in sizes)
                pairs = zip(parts_of(value), alternative.fields[len(sizes) :], strict=True)
                atoms = (*numbers, *(self.reify(part, t, out, span) for part, t in pairs))
                made = Construct(flow.definition, alternative.name, atoms, span)
                return out.assign(made, DataType(flow.definition), alternative.name, span)
            case _:
                assert_never(value)

    def unify(self, left: StaticValue, right: StaticValue) -> bool:
        """True if two values have the same shape once flows are merged where they differ."""
        if left.shape is right.shape:
            return True
        if left.shape.skeleton is not right.shape.skeleton:
            return False
        for a, b in zip(held_types(left.shape), held_types(right.shape), strict=True):
            self.flows.unify(a, b)
        return True

    def meet(
        self,
        target: Var,
        type_: Type,
        column: list[StaticValue],
        paths: list[IncomingPath],
        found: list[Var],
        atoms: list[list[Atom]],
    ) -> StaticValue:
        first = column[0]
        if all(self.unify(first, value) for value in column[1:]):
            for values, value in zip(atoms, column, strict=True):
                values += flatten([value])
            if isinstance(first, DynamicValue) and not self.flows.mentions(type_):
                found.append(Var(target.name, type_, target.span))
                return self.static.atom(found[-1])
            return self.rebind(target, first, found)
        if isinstance(type_, TupleType) and all(isinstance(value, TupleValue) for value in column):
            columns = zip(*(value.items for value in column if isinstance(value, TupleValue)), strict=True)
            parts = zip(columns, type_.items, strict=True)
            return self.static.make_tuple(
                tuple(self.meet(target, t, list(part), paths, found, atoms) for part, t in parts)
            )
        held = [atom_type(value.atom) for value in column if isinstance(value, DynamicValue)]
        met = held[0] if held else self.flows.convert(type_)
        for values, value, path in zip(atoms, column, paths, strict=True):
            values.append(self.reify(value, met, path.draft, path.span))
        found.append(Var(target.name, met, target.span))
        return self.static.atom(found[-1])

    def start(
        self,
        value: StaticValue,
        type_: Type,
        place: Place,
        memory: dict[Place, Type],
        out: BlockBuilder,
        span: Span | None,
    ) -> StaticValue:
        """The value that enters a loop, with flows at the places where the loop is known to change the function."""
        if place in memory:
            return self.static.atom(self.reify(value, memory[place], out, span))
        if isinstance(value, TupleValue) and isinstance(type_, TupleType):
            parts = enumerate(zip(value.items, type_.items, strict=True))
            return self.static.make_tuple(
                tuple(self.start(v, t, (*place, i), memory, out, span) for i, (v, t) in parts)
            )
        return value

    def carry(
        self, ways: LoopExits, values: list[StaticValue], out: BlockBuilder, span: Span | None
    ) -> tuple[Atom, ...]:
        """The atoms of the parameters' next values. Notes where the parameters must become flows."""
        atoms: list[Atom] = []
        for i, (expected, value, type_) in enumerate(zip(ways.carried, values, ways.parameters, strict=True)):
            self._fit(ways, expected, value, type_, (i,), out, span, atoms)
        return tuple(atoms)

    def _fit(
        self,
        ways: LoopExits,
        expected: StaticValue,
        value: StaticValue,
        type_: Type,
        place: Place,
        out: BlockBuilder,
        span: Span | None,
        atoms: list[Atom],
    ) -> None:
        if self.unify(expected, value):
            atoms += flatten([value])
        elif isinstance(expected, DynamicValue):
            atoms.append(self.reify(value, atom_type(expected.atom), out, span))
        elif (
            isinstance(expected, TupleValue)
            and isinstance(type_, TupleType)
            and isinstance(value, TupleValue | DynamicValue)
        ):
            parts = value.items if isinstance(value, TupleValue) else self._project_items(value.atom, out, span)
            for i, (a, b, t) in enumerate(zip(expected.items, parts, type_.items, strict=True)):
                self._fit(ways, a, b, t, (*place, i), out, span, atoms)
        else:
            ways.changed = True
            if place not in ways.memory:
                known = atom_type(value.atom) if isinstance(value, DynamicValue) else None
                ways.memory[place] = known or self.flows.convert(type_)

    def _project_items(self, whole: Atom, out: BlockBuilder, span: Span | None) -> tuple[StaticValue, ...]:
        type_ = atom_type(whole)
        assert isinstance(type_, TupleType)
        return tuple(
            self.static.atom(out.assign(Project(whole, i, span), t, "part", span)) for i, t in enumerate(type_.items)
        )


def type_of(variable: Var) -> Type:
    if variable.type is None:
        raise InternalError(f"{variable!r} has no type")
    return variable.type
