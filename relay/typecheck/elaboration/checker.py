"""The checker's state in one elaboration: variables, instances, scopes, and its finalization.

When nothing moves any more, number literals take their default dtypes; what then still waits (`constraints.py`) is
reported by the earliest place in the source, unless there are other mistakes (`mistakes.py`).
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence, Set
from typing import TYPE_CHECKING, TypeAlias

import attrs
import numpy as np

from relay.errors import (
    InternalError,
    Span,
    TypeCheckError,
    TypeMismatch,
)
from relay.ir.definition import Definition
from relay.ir.dims import DataDependentDim, Dim
from relay.ir.effects import Effects
from relay.ir.expr import (
    Atom,
    Binding,
    Constant,
    Derivative,
    Expr,
    Function,
    Global,
    LoopLabel,
    MakeTuple,
    Module,
    Rule,
    Var,
)
from relay.ir.literals import holds, misfit_text
from relay.ir.sizes.facts import DimConstraint, assuming
from relay.ir.types import (
    BOOL,
    FLOAT32,
    BaseType,
    DataDefinition,
    DataType,
    DimExpr,
    FunctionType,
    Kind,
    TensorType,
    TupleType,
    Type,
    TypeId,
    Unknown,
    prune,
    show,
)
from relay.typecheck.elaboration.abstract_values import (
    AbstractValue,
    DependsOnPoison,
    DynamicValue,
    Number,
    Poison,
    PythonObject,
    Size,
    SizeExpression,
    SizesInScope,
    Tuple,
    TypedBlockBuilder,
)
from relay.typecheck.elaboration.closures.escapes import EnclosingLoops
from relay.typecheck.elaboration.constraints import Constraints
from relay.typecheck.elaboration.restarts import Assumptions, ParameterPlace, Place
from relay.typecheck.elaboration.values import sizes
from relay.typecheck.guards import Snapshot
from relay.typecheck.monomorphization import Monomorphization
from relay.typecheck.unification import erase_forms, outer_unknowns, resolve, unknowns

if TYPE_CHECKING:
    from relay.typecheck.elaboration import Argument
    from relay.typecheck.elaboration.closures.returned_functions import Node
    from relay.typecheck.elaboration.dynamic_shapes.size_conditions import SizeCondition
    from relay.typecheck.elaboration.schemes.stuck_terms import StuckTerm


@attrs.frozen(eq=False)
class PolymorphicRecursiveCall:
    """A call of a function in its own body, at arguments of other types, in a scheme: `opened` is its result."""

    types: tuple[Type, ...]
    opened: StuckTerm


@attrs.define(eq=False)
class Instance:
    """A function at one choice of types: `parameters` are its run-time ones, `statics` what the others are."""

    name: str
    code: object  # the Definition or LocalFunction
    parameters: tuple[Type, ...]
    statics: tuple[object, ...]
    result: Type
    target: Atom  # what calls call
    rule: Rule | None = None
    build: Callable[[], Function | Derivative] | None = None  # None while the body is being elaborated
    failed: bool = False  # mistakes in its body left it without a result
    effects: Effects = attrs.field(factory=Effects)
    numbers: Set[ParameterPlace] = frozenset()  # parameters that are run-time values here, and numbers in the call
    variables: list[Var] = attrs.field(factory=list)  # of the parameters
    used_early: bool = False  # it calls itself, and its result was not known then
    calls_itself: bool = False
    known: AbstractValue | None = None  # what the checker knows of the result: its numbers and sizes
    returned: Node | None = None  # what it knows of the functions in the result, which is what they have captured
    annotated: Mapping[TypeId, object] = attrs.field(factory=dict)  # what the variables of its annotations are
    is_general: bool = False  # they stand for all that callers may choose
    uses: list[PolymorphicRecursiveCall] = attrs.field(factory=list)
    inside: dict[object, Instance] = attrs.field(factory=dict)  # made while this one was, for the same code, by sizes
    of_any_size: Mapping[str, Collection[int]] = attrs.field(factory=dict)  # axes that are `Any`, by parameters' names


InstanceKey: TypeAlias = tuple[int, tuple[bool, ...], tuple[Type, ...], object, tuple[object, ...]]
"""What tells instances apart: the code, which parameters specialize it, the types of the others, the names of their
axes, and what those that specialize it are."""


class Checker(Constraints):
    """One elaboration of one program."""

    def __init__(self, *, generic: bool, decisions: Assumptions | None = None) -> None:
        from relay.typecheck.elaboration.diagnostics import unresolved_names

        super().__init__(generic, decisions or Assumptions())
        self.before_raising = lambda: unresolved_names.report_unseen_functions(self)
        self.variables: list[Var] = []
        self.instances: dict[object, Instance] = {}
        self.instances_at_numbers: dict[object, Instance] = {}  # by the sizes of the call, where they are symbolic
        self.globals: dict[str, Instance] = {}
        self.linked: dict[Module, dict[str, Global]] = {}  # functions of other programs, by their names there
        self.received: list[Type] = []  # the types of the program's arguments
        self.function_arguments: dict[Var, Argument] = {}  # those of them that hold functions of other programs
        self.finishers: list[Callable[[], None]] = []
        self.pending_attributes: list[dict[str, object]] = []
        self.rounds = EnclosingLoops()
        self.copies = 1  # of how many copies of loops' bodies elaboration is in one
        self.weights: dict[Function, int] = {}  # how many bindings functions have, with those that they call
        self.sizes_of_rounds: set[DataDependentDim] = set()  # that follow from the number of a loop's round
        self.linear: dict[Var, tuple[dict[Var, Dim], Dim]] = {}  # run-time integers as sums (windows.py)
        self.made: dict[str, int] = {}  # how many data-dependent sizes have a name
        # the blocks in which elaboration is, and the data-dependent sizes that each has made
        self.scopes: list[tuple[TypedBlockBuilder, list[DataDependentDim]]] = [(TypedBlockBuilder(), [])]
        self.naturals: set[Atom] = set()  # variables of ranges that are never negative
        self.places_of_numbers: dict[Atom, ParameterPlace] = {}  # what is made of integers that Python may have given
        self.places_of_sizes: dict[
            DataDependentDim, TypedBlockBuilder
        ] = {}  # right behind where each is made, in their order
        # those in scope where a function value is made whose parameter this is
        self.sizes_of_parameters: dict[Unknown, SizesInScope] = {}
        self.functions_of_any: dict[Atom, Place] = {}  # parameters that are functions of tensors with `Any`
        self.axes_of_any: dict[Atom, Collection[int]] = {}  # of tensors in parameters, that are `Any` in annotations
        self.function_parameters: dict[Atom, ParameterPlace] = {}  # unannotated ones that are local functions
        self.escaping: frozenset[DataDependentDim] = (
            frozenset()
        )  # the sizes that the `yield`, `next` or `exit` at hand leaves
        self.hints.require = self._require
        self.hints.always = lambda: self.maybe == 0 and not self.may_have_ended
        self.may_have_ended = False  # a branch has left what is around it
        self.handed: tuple[Atom, ...] = ()  # the surface operands of the `yield`, `next` or `exit` at hand
        self.gradients: dict[Tuple, tuple[int, ...]] = {}  # with respect to several parameters, at these positions
        self.made_instances = 0
        self.opened: list[StuckTerm] = []  # what a scheme leaves to a call
        self.unseen: list[StuckTerm] = []  # of that what has no value
        self.function_values: list[FunctionType] = []  # those of a scheme
        self.called_values: list[Type] = []  # of those that it calls
        self.used_early: list[Instance] = []  # functions that call themselves, whose results were not known then
        self.right: set[Definition] = set()  # whose uses of polymorphic parameters are checked
        self.size_conditions: dict[Atom, SizeCondition] = {}  # what conditions say of sizes
        self._facts_before: list[Snapshot] = []  # of blocks in which more holds
        self.chosen_by_sizes = 0  # in how many arms elaboration is that a condition on sizes chooses
        self.decided_by_call: set[Var] = set()  # of both kinds, in a scheme (chosen_by_calls.py)
        self.chosen_by_call = 0  # in how many arms elaboration is that a call chooses
        self.doubtful: set[Var] = set()  # surface variables that come from what is open
        self.monomorphization = Monomorphization()
        self.general_results: dict[LoopLabel, Type] = {}  # of functions that call themselves at other sizes

    @contextlib.contextmanager
    def elsewhere(self) -> Iterator[None]:
        """While a function is elaborated as if nothing was around its call."""
        active, maybe, ended, chosen = self.active, self.maybe, self.may_have_ended, self.chosen_by_sizes
        self.active, self.maybe, self.may_have_ended, self.chosen_by_sizes = [], 0, False, 0
        try:
            with self.hints.knowing_nothing():
                yield
        finally:
            self.active, self.maybe, self.may_have_ended, self.chosen_by_sizes = active, maybe, ended, chosen

    @contextlib.contextmanager
    def where_it_may_not_run(self) -> Iterator[None]:
        """While a branch or the body of a loop is elaborated. What only that needs of sizes, in a scheme, is not known
        behind it."""
        self.maybe += 1
        before = self.hints.snapshot() if self.generic else None
        try:
            yield
        finally:
            self.maybe -= 1
            if before is not None:
                self.hints.restore(before)

    @contextlib.contextmanager
    def inside_of_function(self) -> Iterator[None]:
        """While a function's body is elaborated. What it needs behind an early `return` is not known where it was
        called."""
        before, ended = self.hints.snapshot() if self.generic else None, self.may_have_ended
        try:
            yield
        finally:
            if before is not None and self.may_have_ended and not ended:
                self.hints.restore(before)
            self.may_have_ended = ended

    @contextlib.contextmanager
    def scope(self, out: TypedBlockBuilder) -> Iterator[int]:
        """While a block is elaborated: data-dependent sizes end with it. Gives the number of scopes around it."""
        depth = len(self.scopes)
        if self.scopes[-1][0] is out:
            yield depth
            return
        self.scopes.append((out, []))
        try:
            yield depth
        finally:
            del self.scopes[depth:]

    @contextlib.contextmanager
    def facts_of_block(self) -> Iterator[None]:
        """While a block is elaborated: what `keep_knowing` adds in it holds to its end."""
        before = len(self._facts_before)
        try:
            yield
        finally:
            if len(self._facts_before) > before:
                self.hints.restore(self._facts_before[before])
                del self._facts_before[before:]

    def keep_knowing(self, constraints: Sequence[DimConstraint]) -> None:
        """These hold in the rest of the block at hand."""
        self._facts_before.append(self.hints.snapshot())
        self.hints.learn(constraints)

    def sizes_in_scope(self) -> SizesInScope:
        """The data-dependent sizes before the place at hand."""
        return SizesInScope(tuple((made, len(made)) for _, made in self.scopes if made))

    def made_since(self, depth: int) -> frozenset[DataDependentDim]:
        """The sizes that are made in the scopes inside of the first ones."""
        return frozenset(dim for _, dims in self.scopes[depth:] for dim in dims)

    def _require(self, constraint: DimConstraint) -> None:
        from relay.typecheck.elaboration.dynamic_shapes.data_dependent import require

        require(self, self.scopes[-1][0], constraint, self.hints.span)

    # ---- variables and constants

    def variable(self, name: str, type_: Type, span: Span | None) -> Var:
        """A new variable of the typed IR. Its type is resolved when the checker ends."""
        var = Var(name, type_, span)
        self.variables.append(var)
        return var

    def bind(self, out: TypedBlockBuilder, expression: Expr, type_: Type, name: str, span: Span | None) -> DynamicValue:
        """Write `name = expression`."""
        var = self.variable(name, type_, span)
        out.items.append(Binding((var,), expression))
        return DynamicValue(var, type_)

    def constant(self, out: TypedBlockBuilder, number: Number, base: object = None) -> DynamicValue:
        """A number as a rank-0 tensor of this base type (unknown: decided by its uses)."""
        if isinstance(number, Size | SizeExpression):
            return sizes.constant(self, out, number, base)
        base = prune(base) if base is not None else self.solver.literal_base(number.value, number.span)  # type: ignore[arg-type]
        if isinstance(base, BaseType):
            _require_holding(base, number)
            constant = Constant(np.asarray(number.value, dtype=base.dtype), number.span)
            return DynamicValue(constant, constant.type)
        if number.span is not None and isinstance(base, Unknown) and (number.is_float or not base.literals):
            fresh = self.solver.literal_base(number.value, number.span)
            self.unify_base_at(fresh, base, number.span)
            base = fresh
        type_ = TensorType(base, ())  # type: ignore[arg-type]
        var = self.variable("c", type_, number.span)
        place = out.slot()

        def finish() -> None:
            found = prune(base)  # type: ignore[arg-type]
            if isinstance(found, BaseType):
                _require_holding(found, number)
            dtype = found.dtype if isinstance(found, BaseType) else _dtype_of_literal(number)
            try:
                value = np.asarray(number.value, dtype=dtype)
            except OverflowError:
                raise TypeCheckError(f"this number is too large for {dtype}", number.span) from None
            place.items.append(Binding((var,), Constant(value, number.span)))

        self.finishers.append(finish)
        return DynamicValue(var, type_)

    def constant_bool(self, span: Span | None) -> DynamicValue:
        """A boolean of which nothing is known, in the place of one that a mistake left without a meaning."""
        type_ = TensorType(BOOL, ())
        return DynamicValue(self.variable("condition", type_, span), type_)

    def materialize(self, out: TypedBlockBuilder, entity: AbstractValue, span: Span | None) -> DynamicValue:
        """The entity as a value of the typed IR. Raises TypeCheckError for what has no value."""
        from relay.typecheck.elaboration.expressions import weak_types

        match entity:
            case DynamicValue():
                return weak_types.loosen_base(self, out, entity)
            case Number():
                return self.constant(out, entity)
            case Tuple(items, form):
                parts = [self.materialize(out, weak_types.free_count(self, out, item), span) for item in items]
                type_ = TupleType(tuple(p.type for p in parts), form)
                return self.bind(out, MakeTuple(tuple(p.atom for p in parts), span), type_, "tuple", span)
            case PythonObject(None):
                return self.bind(out, MakeTuple((), span), TupleType(()), "none", span)
            case Poison():
                raise DependsOnPoison
            case _:
                from relay.typecheck.elaboration.values.function_values import function_value

                return function_value(self, out, entity, span)

    # ---- the end

    def finish(self) -> None:
        """Solve what is left, give literals their defaults, and fix the type of every variable.

        Raises the errors that were found, before what follows from them is looked at.
        """
        from relay.typecheck.elaboration.schemes import ambiguity

        self.solver.run()
        if self.generic:
            self._force()
            self.default_literals(weak=True)  # no call decides them
            self._solve_at_any_rank()
            self._refuse_assumptions()
            self._settle_effects()
            for error in self.impurities():
                self.report(error)
        self.stop()
        if self.left_open:
            ambiguity.refuse_results(self)
            raise self.left_open[0]
        if not self.generic:
            self.force()
            ambiguity.refuse_results(self)
            for error in self.impurities():
                self.report(error)
            self.stop()
            waiting = [p for p in self.pending if not p.done]
            if waiting:
                first = min(waiting, key=lambda p: (p.span.line, p.span.column) if p.span else (0, 0))
                raise TypeCheckError(f"the type of {first.text()} is not known here", first.span, help="annotate it")
        self.hints.close()
        with assuming(self.hints.assumptions()):
            for finisher in self.finishers:
                finisher()
        for var in self.variables:
            if var.type is None:
                raise InternalError(f"{var!r} has no type")
            found = resolve(var.type)
            if not self.generic:
                found = self._close_data(found)
            if not self.generic and next(unknowns(found), None) is not None:
                raise TypeCheckError(
                    f"the type of {var.name} is not determined: {show(found)}", var.span, help="annotate it"
                )
            var.type = self.final(found)
        for var in self.variables:
            assert var.type is not None
            var.type = erase_forms(var.type)
        for attributes in self.pending_attributes:
            for name, value in attributes.items():
                attributes[name] = _resolve_attribute(value)

    def _settle_effects(self) -> None:
        """Find the effects of what a scheme does not look at."""
        from relay.typecheck.elaboration.schemes.effect_inference import settle

        for pending in self.pending:
            if not pending.done and pending.unseen is not None:
                pending.unseen()
        settle(self)

    def _close_data(self, type_: Type) -> Type:
        """Let arguments of data types that nothing determines, as the elements of a list that is always empty, be
        unit."""
        open_ = set(map(id, outer_unknowns(type_)))
        inside = [u for u in unknowns(type_) if id(u) not in open_]
        defaults: dict[Kind, object] = {Kind.Type: TupleType(()), Kind.BaseType: FLOAT32, Kind.Shape: (), Kind.Dim: 0}
        for unknown in inside:
            if unknown.binding is None:
                self.solver.bind(unknown, defaults[unknown.kind])
        return resolve(type_) if inside else type_

    def final(self, type_: Type) -> Type:
        """A type in the finished program: without variables, its data types monomorphic (unless a scheme is sought)."""
        return resolve(type_) if self.generic else self.monomorphization.type(type_)

    def monomorphic(self, type_: DataType) -> DataType:
        """A data type as it is in the finished program."""
        final = self.final(type_)
        assert isinstance(final, DataType)
        return final

    def definition(self, type_: Type) -> DataDefinition:
        """The definition of a data type in the finished program."""
        final = self.final(type_)
        assert isinstance(final, DataType)
        return final.definition

    def module(self, entry: str) -> Module:
        """The finished program."""
        functions: dict[str, Function | Derivative] = {}
        for name, instance in self.globals.items():
            if instance.build is None:
                raise InternalError(f"{name} was not finished")
            function = instance.build()
            if isinstance(function, Function) and function.result is not None:
                function = attrs.evolve(function, result=erase_forms(function.result))  # type: ignore[misc]
            functions[name] = function
        return Module(functions, entry, self.monomorphization.definitions, self.hints.assumptions())

    def axes_of_any_size(self, name: str) -> Collection[int]:
        """The axes of a variable of the function at hand that its annotation leaves open: they may differ there."""
        return self.active[-1].of_any_size.get(name, ()) if self.active else ()

    def unique_name(self, name: str) -> str:
        """A name that no function of the module has yet."""
        candidate, count = name, 1
        while candidate in self.globals:
            candidate, count = f"{name}_{count}", count + 1
        return candidate


def _dtype_of_literal(number: Number) -> np.dtype:
    """The dtype by which a number stands in a scheme, where a call says which it has."""
    if number.is_float or -(2**63) <= number.value < 2**63:
        return np.dtype(type(number.value))
    if abs(number.value) <= sys.float_info.max:
        return np.dtype(np.float64)  # of an integer that only a float holds, or an unsigned one
    raise TypeMismatch("this integer is out of range for every dtype", number.span, help="write a float: `1e300`")


def _require_holding(base: BaseType, number: Number) -> None:
    """Raises TypeMismatch for a number that the base type does not hold."""
    if not holds(base, number.value):
        raise TypeMismatch(
            misfit_text(base, number.value),
            number.span,
            help=_better_number(base, number.value),
        )


def _better_number(base: BaseType, value: int | float) -> str:
    if base.is_float and isinstance(value, int) and holds(base, float(value)):
        return f"write {float(value)!r} to have it rounded"
    return f"write a number that {base} holds, or cast the other operand"


def _resolve_attribute(value: object) -> object:
    """An attribute with the solver's variables replaced."""
    match value:
        case Unknown() | DimExpr():
            return prune(value)
        case tuple():
            return tuple(map(_resolve_attribute, value))
        case _:
            return value
