"""The parts of an elaboration's state: the module that is built, facts about sizes, and the open parts of a scheme."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TYPE_CHECKING

import attrs

from relay.ir.dims import DataDependentDim, Dim
from relay.ir.expr import Atom, Function, Global, LoopLabel, Module, Var
from relay.ir.types import FunctionType, Type, Unknown
from relay.typecheck.elaboration.abstract_values import (
    AbstractValue,
    Context,
    DynamicValue,
    GlobalFunction,
    LocalFunction,
    SizesInScope,
    TypedBlockBuilder,
    is_constant_bool,
)
from relay.typecheck.elaboration.restarts import Place
from relay.typecheck.monomorphization import Monomorphization

if TYPE_CHECKING:
    from relay.typecheck.elaboration.checker import Instance
    from relay.typecheck.elaboration.dynamic_shapes.size_conditions import SizeCondition
    from relay.typecheck.elaboration.schemes.stuck_terms import StuckTerm
    from relay.typecheck.elaboration.similar_instances import Similar


@attrs.define(eq=False)
class ModuleBuilder:
    """The module that an elaboration builds: its functions, and what is decided at the end."""

    variables: list[Var] = attrs.field(factory=list)  # all of the typed IR
    instances: dict[object, Instance] = attrs.field(factory=dict)
    instances_at_numbers: dict[object, Instance] = attrs.field(factory=dict)
    """Those by the sizes of the call, where they are symbolic."""

    instances_at_unknowns: dict[object, Instance] = attrs.field(factory=dict)
    """Those by the types of the call, where they are not known: the same unknown types are the same instance. Otherwise
    a chain of functions, each of which calls the one before twice, would have twice as many with each."""

    similar_instances: dict[object, list[Similar]] = attrs.field(factory=dict)
    """Those by what their calls have in common (`similar_instances.py`)."""

    globals: dict[str, Instance] = attrs.field(factory=dict)
    linked: dict[Module, dict[str, Global]] = attrs.field(factory=dict)
    """Functions of other programs, by their names there."""

    made_instances: int = 0
    bodies: list[tuple[GlobalFunction | LocalFunction, Context]] = attrs.field(factory=list)
    """The functions of all instances, with what their variables mean."""

    weights: dict[Function, int] = attrs.field(factory=dict)
    """The number of bindings in functions, with those that they call."""

    static_parameters: dict[Function, frozenset[int]] = attrs.field(factory=dict)
    """The parameters that must be known at compile time, as far as the text tells."""

    finishers: list[Callable[[], None]] = attrs.field(factory=list)
    pending_attributes: list[dict[str, object]] = attrs.field(factory=list)
    pending_casts: dict[Var, Atom] = attrs.field(factory=dict)
    """Variables that will be other ones in another dtype, once it is known."""
    monomorphization: Monomorphization = attrs.field(factory=Monomorphization)

    def unique_name(self, name: str) -> str:
        """A name that no function of the module has yet."""
        candidate, count = name, 1
        while candidate in self.globals:
            candidate, count = f"{name}_{count}", count + 1
        return candidate


@attrs.define(eq=False)
class SizeNotes:
    """The facts that an elaboration collects about sizes that are symbolic or data-dependent."""

    of_rounds: set[DataDependentDim] = attrs.field(factory=set)  # that follow from the number of a loop's round
    linear: dict[Var, tuple[dict[Var, Dim], Dim]] = attrs.field(factory=dict)  # run-time integers as sums
    made: dict[str, int] = attrs.field(factory=dict)  # how many data-dependent sizes have a name
    naturals: set[Atom] = attrs.field(factory=set)  # variables of ranges that are never negative
    places: dict[DataDependentDim, TypedBlockBuilder] = attrs.field(factory=dict)
    """Right after where each is made, in their order."""

    of_parameters: dict[Unknown, SizesInScope] = attrs.field(factory=dict)
    """Those in scope where a function value is made whose parameter this is."""

    functions_of_any: dict[Atom, Place] = attrs.field(factory=dict)  # parameters: functions of tensors with `Any`
    axes_of_any: dict[Atom, Collection[int]] = attrs.field(factory=dict)
    """Those of tensors in parameters, that are `Any` in annotations."""

    conditions: dict[Atom, SizeCondition] = attrs.field(factory=dict)  # what conditions say of sizes


@attrs.define(eq=False)
class SchemeNotes:
    """The parts that an elaboration of a scheme leaves to calls."""

    opened: list[StuckTerm] = attrs.field(factory=list)
    unseen: list[StuckTerm] = attrs.field(factory=list)  # of that what has no value
    function_values: list[FunctionType] = attrs.field(factory=list)
    called_values: list[Type] = attrs.field(factory=list)  # the types of those that it calls
    decided_by_call: set[Var] = attrs.field(factory=set)  # conditions, and variables of the surface IR
    doubtful: set[Var] = attrs.field(factory=set)  # surface variables that come from what is open
    general_results: dict[LoopLabel, Type] = attrs.field(factory=dict)
    """Those of functions that call themselves at other sizes."""


class NoneTests:
    """Conditions on variables that may be None: those that are not None where a condition holds, and those where it
    does not."""

    def __init__(self) -> None:
        self._of: dict[Atom, tuple[frozenset[Var], frozenset[Var]]] = {}
        self._numbers: dict[Var, int] = {}

    def note(self, condition: AbstractValue, holds: frozenset[Var], fails: frozenset[Var]) -> None:
        """Variables are not None where a condition `holds`, and others where it `fails`."""
        if isinstance(condition, DynamicValue) and (holds or fails):
            self._of[condition.atom] = holds, fails
            for variable in holds | fails:  # one, where it is new
                self._numbers.setdefault(variable, len(self._numbers))

    def in_order(self, variables: Iterable[Var]) -> list[Var]:
        """Variables in the order of the first tests."""
        return sorted(variables, key=self._numbers.__getitem__)

    def of_condition(self, condition: AbstractValue) -> tuple[frozenset[Var], frozenset[Var]]:
        """The variables that are not None where a condition holds, and where it does not."""
        known = self._of.get(condition.atom) if isinstance(condition, DynamicValue) else None
        return known or (frozenset(), frozenset())

    def note_choice(self, chosen: AbstractValue, paths: Sequence[tuple[frozenset[Var], AbstractValue]]) -> None:
        """A condition is one of several, on whose paths variables are not None: as `a and b`, and `a or b`."""
        if not self._of:
            return
        found: list[frozenset[Var]] = []
        for outcome in (True, False):
            sets = [
                present | self.of_condition(value)[0 if outcome else 1]
                for present, value in paths
                if is_constant_bool(value) is not (not outcome)
            ]
            found.append(frozenset.intersection(*sets) if sets else frozenset())
        self.note(chosen, *found)
