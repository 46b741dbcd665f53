"""The checker's state in one elaboration, and what all of elaboration does with it: variables, constants, scopes.

Its parts are the solver with deferred constraints (`constraints.py`), the mistakes (`mistakes.py`), the frame, which is
the current place of elaboration (`frame.py`), and the module that is built, with notes on sizes and on schemes
(`state.py`).
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence, Set
from typing import TYPE_CHECKING, TypeAlias

import attrs
import numpy as np

from relay.errors import (
    RelayError,
    Span,
    TypeCheckError,
    TypeMismatch,
)
from relay.ir.definition import Definition
from relay.ir.dims import DataDependentDim
from relay.ir.effects import Effects
from relay.ir.expr import (
    Atom,
    Binding,
    Constant,
    Derivative,
    Expr,
    Function,
    LoopLabel,
    Rule,
    Var,
)
from relay.ir.literals import holds, misfit_text
from relay.ir.sizes.facts import DimConstraint
from relay.ir.types import (
    BOOL,
    INT32,
    INT64,
    BaseType,
    DataDefinition,
    DataType,
    TensorType,
    Type,
    TypeId,
    Unknown,
    prune,
)
from relay.typecheck.elaboration.abstract_values import (
    AbstractValue,
    Context,
    DynamicValue,
    Identity,
    LocalFunction,
    Number,
    Size,
    SizeExpression,
    SizesInScope,
    Tuple,
    TypedBlockBuilder,
)
from relay.typecheck.elaboration.closures.escapes import EnclosingLoops
from relay.typecheck.elaboration.constraints import Constraints
from relay.typecheck.elaboration.engine import Engine
from relay.typecheck.elaboration.frame import Frame
from relay.typecheck.elaboration.restarts import Assumptions, IntegersAreLong, ParameterPlace
from relay.typecheck.elaboration.state import ModuleBuilder, NoneTests, SchemeNotes, SizeNotes
from relay.typecheck.elaboration.values import sizes
from relay.typecheck.guards import Snapshot
from relay.typecheck.unification import resolve

if TYPE_CHECKING:
    from relay.typecheck.elaboration import Argument
    from relay.typecheck.elaboration.closures.returned_functions import Node
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
    returned_text: LoopLabel | None = None  # of its function, if that returns a string that is known
    known: AbstractValue | None = None  # what the checker knows of the result: its numbers and sizes
    returned: Node | None = None  # what it knows of the functions in the result, which is what they have captured
    annotated: Mapping[TypeId, object] = attrs.field(factory=dict)  # what the variables of its annotations are
    is_general: bool = False  # they stand for all that callers may choose
    uses: list[PolymorphicRecursiveCall] = attrs.field(factory=list)
    inside: dict[object, Instance] = attrs.field(factory=dict)  # made while this one was, for the same code, by sizes
    of_any_size: Mapping[str, Collection[int]] = attrs.field(factory=dict)  # axes that are `Any`, by parameters' names


InstanceKey: TypeAlias = tuple[Identity, tuple[bool, ...], tuple[Type, ...], object, tuple[object, ...]]
"""The key of an instance: the code, which parameters specialize it, the types of the others, the names of their
axes, and the values of those that specialize it."""


class Checker(Constraints):
    """One elaboration of one program."""

    def __init__(self, engine: Engine, *, generic: bool, decisions: Assumptions | None = None) -> None:
        super().__init__(generic, decisions or Assumptions())
        self.engine = engine
        self.module = ModuleBuilder()
        self.sizes = SizeNotes()
        self.scheme = SchemeNotes()
        self.received: list[Type] = []  # the types of the program's arguments
        self.loop_parameters: dict[Var, tuple[LoopLabel, int, Atom]] = {}  # of loops around: where each begins
        self.function_arguments: dict[Var, Argument] = {}  # those of them that hold functions of other programs
        self.rounds = EnclosingLoops()
        self.frame = Frame(scopes=((TypedBlockBuilder(), []),))
        self.places_of_numbers: dict[Atom, ParameterPlace] = {}  # what is made of integers that Python may have given
        self.function_parameters: dict[Atom, ParameterPlace] = {}  # unannotated ones that are local functions
        self.escaping: frozenset[DataDependentDim] = (
            frozenset()
        )  # the sizes that the `yield`, `next` or `exit` at hand leaves
        self.hints.require = self._require
        self.hints.always = lambda: not self.may_be_skipped
        self.may_have_ended = False  # a branch has left what is around it
        self.handed: tuple[Atom, ...] = ()  # the surface operands of the `yield`, `next` or `exit` at hand
        self.begun_lists: list[tuple[Type, Span]] = []  # elements of lists that begin with nothing, and where
        self.read_early: list[tuple[Type, Span, RelayError]] = []  # those with fields that are read before an append
        self.gradients: dict[Tuple, tuple[int, ...]] = {}  # with respect to several parameters, at these positions
        self.follows_call = False  # the check of aliases sees what the call at hand changes
        self.used_early: list[Instance] = []  # functions that call themselves, whose results were not known then
        self.uses_of_variables: dict[str, dict[str, Span]] = {}  # that functions capture: where they are read first
        self.none_cells: dict[Span, Type] = {}  # by where they are made: what references that begin as None hold later
        self.used_cells: dict[Span, RelayError] = {}  # those of them that are used before anything is written
        self.none_tests = NoneTests()  # what conditions say of what may be None
        self.right: set[Definition] = set()  # whose uses of polymorphic parameters are checked
        self._facts_before: list[Snapshot] = []  # of blocks in which more holds

    @property
    def may_be_skipped(self) -> bool:
        """True if the place at hand may not run: it is in a branch or loop, or behind one that may leave."""
        return self.frame.maybe > 0 or self.may_have_ended

    @contextlib.contextmanager
    def detached_frame(self) -> Iterator[None]:
        """While a function is elaborated as if nothing was around its call."""
        ended, self.may_have_ended = self.may_have_ended, False
        try:
            with self.at_frame(self.frame.outermost_frame()), self.hints.knowing_nothing():
                yield
        finally:
            self.may_have_ended = ended

    @contextlib.contextmanager
    def where_it_may_not_run(self) -> Iterator[None]:
        """While a branch or the body of a loop is elaborated. What only that needs of sizes, in a scheme, is not known
        behind it."""
        before = self.hints.snapshot() if self.generic else None
        try:
            with self.at_frame(attrs.evolve(self.frame, maybe=self.frame.maybe + 1)):
                yield
        finally:
            if before is not None:
                self.hints.restore(before)

    @contextlib.contextmanager
    def inside_of_function(self) -> Iterator[None]:
        """While a function's body is elaborated. What it needs after an early `return` is not known where it was
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
        scopes = self.frame.scopes
        if scopes[-1][0] is out:
            yield len(scopes)
            return
        with self.at_frame(self.frame.in_block(out)):
            yield len(scopes)

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
        return SizesInScope(tuple((made, len(made)) for _, made in self.frame.scopes if made))

    def made_since(self, depth: int) -> frozenset[DataDependentDim]:
        """The sizes that are bound in the scopes inside of the first ones."""
        return frozenset(dim for _, dims in self.frame.scopes[depth:] for dim in dims)

    def _require(self, constraint: DimConstraint) -> None:
        self.engine.require(self, self.frame.scopes[-1][0], constraint, self.hints.span)

    # ---- variables and constants

    def variable(self, name: str, type_: Type, span: Span | None) -> Var:
        """A new variable of the typed IR. Its type is resolved when the checker ends."""
        var = Var(name, type_, span)
        self.module.variables.append(var)
        return var

    def bind(self, out: TypedBlockBuilder, expression: Expr, type_: Type, name: str, span: Span | None) -> DynamicValue:
        """Write `name = expression`."""
        var = self.variable(name, type_, span)
        self.sources.bind(var, expression, type_)
        out.items.append(Binding((var,), expression))
        return DynamicValue(var, type_)

    def constant(self, out: TypedBlockBuilder, number: Number, base: object = None) -> DynamicValue:
        """A number as a rank-0 tensor of this base type (unknown: decided by its uses)."""
        if isinstance(number, Size | SizeExpression):
            return sizes.constant(self, out, number, base)
        base = prune(base) if base is not None else self.solver.literal_base(number.specialize(), number.span)  # type: ignore[arg-type]
        if isinstance(base, BaseType):
            _require_holding(self, base, number)
            constant = Constant(np.asarray(number.specialize(), dtype=base.dtype), number.span)
            return DynamicValue(constant, constant.type)
        if number.span is not None and isinstance(base, Unknown) and (number.is_float or not base.literals):
            fresh = self.solver.literal_base(number.specialize(), number.span)
            self.unify_base_at(fresh, base, number.span)
            base = fresh
        type_ = TensorType(base, ())  # type: ignore[arg-type]
        var = self.variable("c", type_, number.span)
        place = out.slot()

        def finish() -> None:
            found = prune(base)  # type: ignore[arg-type]
            if isinstance(found, BaseType):
                _require_holding(self, found, number)
            dtype = found.dtype if isinstance(found, BaseType) else _dtype_of_literal(number)
            try:
                value = np.asarray(number.specialize(), dtype=dtype)
            except OverflowError:
                raise TypeCheckError(f"this number is too large for {dtype}", number.span) from None
            place.items.append(Binding((var,), Constant(value, number.span)))

        self.module.finishers.append(finish)
        return DynamicValue(var, type_)

    def constant_bool(self, span: Span | None) -> DynamicValue:
        """A boolean of which nothing is known, in the place of one that a mistake left without a meaning."""
        type_ = TensorType(BOOL, ())
        return DynamicValue(self.variable("condition", type_, span), type_)

    def materialize(self, out: TypedBlockBuilder, entity: AbstractValue, span: Span | None) -> DynamicValue:
        """The entity as a value of the typed IR. Raises TypeCheckError for what has no value."""
        return self.engine.materialize(self, out, entity, span)

    def function_here(
        self, out: TypedBlockBuilder, function: Function, environment: dict[Var, AbstractValue], context: Context
    ) -> LocalFunction:
        """A local function that is defined at the place at hand."""
        slot, sizes, seen = out.slot(), self.sizes_in_scope(), self.frame.evidence
        return LocalFunction(function, environment, slot, sizes, context, function.name, evidence=seen)

    def final_type(self, type_: Type) -> Type:
        """A type in the finished program: without variables, its data types monomorphic (unless a scheme is sought)."""
        return resolve(type_) if self.generic else self.module.monomorphization.type(type_)

    def monomorphic_type(self, type_: DataType) -> DataType:
        """A data type as it is in the finished program."""
        final = self.final_type(type_)
        assert isinstance(final, DataType)
        return final

    def definition(self, type_: Type) -> DataDefinition:
        """The definition of a data type in the finished program."""
        final = self.final_type(type_)
        assert isinstance(final, DataType)
        return final.definition

    def axes_of_any_size(self, name: str) -> Collection[int]:
        """The axes of a variable of the function at hand that its annotation leaves open: they may differ there."""
        return self.frame.active[-1].of_any_size.get(name, ()) if self.frame.active else ()


def _dtype_of_literal(number: Number) -> np.dtype:
    """The dtype that represents a number in a scheme, where a call decides its dtype."""
    if number.is_float or -(2**63) <= number.specialize() < 2**63:
        return np.dtype(type(number.specialize()))
    if abs(number.specialize()) <= sys.float_info.max:
        return np.dtype(np.float64)  # of an integer that only a float holds, or an unsigned one
    raise TypeMismatch("this integer is out of range for every dtype", number.span, help="write a float: `1e300`")


def _require_holding(checker: Checker, base: BaseType, number: Number) -> None:
    """Raises TypeMismatch for a number that the base type does not hold; IntegersAreLong, where an int64 would."""
    value = number.specialize()
    if holds(base, value):
        return
    error = TypeMismatch(misfit_text(base, value), number.span, help=_better_number(base, value))
    if base == INT32 and holds(INT64, value) and not checker.generic and not checker.decisions.long_integers:
        raise IntegersAreLong(error)
    raise error


def _better_number(base: BaseType, value: int | float) -> str:
    if base.is_float and isinstance(value, int) and holds(base, float(value)):
        return f"write {float(value)!r} to have it rounded"
    return f"write a number that {base} holds, or cast the other operand"
