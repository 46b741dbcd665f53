"""The state of one elaboration: the solver, the deferred constraints, the instances, and how it all ends.

Constraints that cannot be decided yet are functions that return the variables they wait for, or None once done. They
run again when one of those is bound. When nothing moves any more, number literals take their default dtypes; what then
still waits is reported by the earliest place in the source.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from typing import TYPE_CHECKING

import attrs
import numpy as np

from relay.errors import (
    FrontendError,
    InternalError,
    Label,
    RelayError,
    ShapeError,
    Span,
    TypeCheckError,
    TypeMismatch,
    together,
)
from relay.ir.definition import Definition
from relay.ir.dims import Dim, MadeDim, settled, subtract, variables
from relay.ir.effects import Effects
from relay.ir.expr import (
    Atom,
    Binding,
    Constant,
    Derivative,
    Expr,
    Function,
    LoopLabel,
    MakeTuple,
    Module,
    OpCall,
    Rule,
    Var,
)
from relay.ir.facts import EQUAL, DimConstraint, assuming, counterexample, facts, solve
from relay.ir.types import (
    BOOL,
    FLOAT32,
    INT32,
    Application,
    BaseClass,
    BaseType,
    DataDefinition,
    DataType,
    DimExpr,
    Kind,
    TensorType,
    TupleType,
    Type,
    TypeId,
    Unknown,
    prune,
    show,
)
from relay.operator.relation import Undetermined
from relay.typecheck.differences import differences, name_unknowns
from relay.typecheck.elaboration import sizes
from relay.typecheck.elaboration.decisions import Decisions, NumbersSpecialise, ParameterPlace
from relay.typecheck.elaboration.effect_notes import EffectNotes
from relay.typecheck.elaboration.entities import (
    TEMPLATE,
    Computed,
    Consequence,
    Enough,
    Entity,
    Failed,
    LocalFunction,
    Number,
    Object,
    Output,
    Size,
    SizesInScope,
    Tuple,
    Typed,
)
from relay.typecheck.elaboration.survivors import Rounds
from relay.typecheck.hints import Hints, SizeQuestion, Snapshot
from relay.typecheck.monomorphisation import Monomorphisation
from relay.typecheck.unification import Clash, Solver, holds, outer_unknowns, plain, resolve, unknowns

if TYPE_CHECKING:
    from relay.typecheck.elaboration.open_bindings import Open
    from relay.typecheck.elaboration.size_conditions import SizeCondition

MANY_ERRORS = 100
"""Elaboration ends after so many mistakes."""


@attrs.define(eq=False)
class Pending:
    """A deferred constraint. `attempt` returns the variables to wait for, or None when it is solved."""

    attempt: Callable[[], Sequence[Unknown] | None]
    span: Span | None
    text: Callable[[], str]
    labels: tuple[Label, ...] = ()  # the call in which it arose
    effects: Effects | None = None  # those of the function in which it arose
    done: bool = False
    running: bool = False
    result: Unknown | None = None  # what it defines
    application: Callable[[], Application] | None = None  # by what type-level function, for a scheme
    at_any_rank: Callable[[], bool] | None = None  # solves it where its one shape variable does not matter
    question: DimConstraint | None = None  # what annotated sizes, for which it must always hold, leave open
    asked_of: Callable[[], tuple[str, ...]] = tuple  # the operands that the question is about
    force: Callable[[], None] | None = None  # solves it with what is known, if nothing else moves
    is_last: Callable[[], bool] = lambda: False  # whether it is forced when nothing else can be
    unseen: Callable[[], None] | None = None  # notes the effects of what a scheme leaves unsolved
    known: tuple[DimConstraint, ...] = ()  # what the conditions around it say of sizes
    maybe: int = 0  # in how many branches and loops it arose


def _undetermined(names: str, text: str, wanted: Dim, span: Span | None) -> ShapeError:
    """The error of an equation of dims that does not tell its variables."""
    return ShapeError(
        f"{names} cannot be found from {text} == {wanted}",
        span,
        help=f"give an argument a shape that has {names} alone, or write a variable of its own for {text}",
    )


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
    build: Callable[[], Function] | None = None  # None while the body is being elaborated
    failed: bool = False  # mistakes in its body left it without a result
    effects: Effects = attrs.field(factory=Effects)
    numbers: Set[ParameterPlace] = frozenset()  # parameters that are run-time values here, and numbers in the call
    variables: list[Var] = attrs.field(factory=list)  # of the parameters
    used_early: bool = False  # it calls itself, and its result was not known then
    known: Entity | None = None  # what the checker knows of the result: its numbers and sizes
    annotated: Mapping[TypeId, object] = attrs.field(factory=dict)  # what the variables of its annotations are
    is_general: bool = False  # they stand for all that callers may choose


class SchemeOnly(TypeCheckError):
    """Something that needs a shape, met while only a scheme is sought: the program is fine, its type comes with a
    call."""

    def __init__(self, span: Span | None, what: str) -> None:
        super().__init__(f"{what} is not known here", span, help="annotate the parameter")


def undecided(error: RelayError | Consequence | Undetermined | Clash, span: Span | None) -> RelayError | Consequence:
    """The error; a size that is asked for where there is no call is one that only a call gives, and a type that cannot
    be another one is a mismatch."""
    if isinstance(error, Clash):
        return TypeMismatch(error.reason or f"{error.left} is not {error.right}", span)
    if not isinstance(error, Undetermined):
        return error
    example = None if error.question is None else counterexample(error.question)
    if error.question is not None and example is not None:
        return not_for_all(error.question, example, span)
    return SchemeOnly(span, "a size that this depends on")


def not_for_all(question: DimConstraint, example: str, span: Span | None, notes: tuple[str, ...] = ()) -> ShapeError:
    """The mistake that something does not hold for all sizes that the annotations allow."""
    lone = all(isinstance(d, TypeId) for d in (question.left, question.right))
    first = "annotate both with one variable, or" if lone else "annotate sizes for which it holds, or"
    help = f"{first} leave an annotation out: then each call's sizes are checked"
    return ShapeError(f"cannot show that {question}: it fails for {example}", span, notes=notes, help=help)


class Session(EffectNotes):
    """One elaboration of one program."""

    def __init__(self, *, generic: bool, decisions: Decisions | None = None) -> None:
        super().__init__()
        self.maybe = 0  # in how many branches and loops, which may not run, elaboration is
        self.generic = generic
        self.decisions = decisions or Decisions()
        self.solver = Solver()
        self.hints = Hints(self.solver.bind, generic)
        self.solver.postpone = self._postpone
        self.solver.gradual = generic
        self.question: DimConstraint | None = None  # what kept the constraint at hand from being solved
        self.asked_of: Callable[[], tuple[str, ...]] = tuple  # what it is about, for the message
        self.pending: list[Pending] = []
        self.variables: list[Var] = []
        self.instances: dict[object, Instance] = {}
        self.globals: dict[str, Instance] = {}
        self.received: list[Type] = []  # the types of the program's arguments
        self.active: list[Instance] = []
        self.call_spans: list[tuple[str, Span | None]] = []
        self.finishers: list[Callable[[], None]] = []
        self.pending_attributes: list[dict[str, object]] = []
        self.rounds = Rounds()
        self.linear: dict[Var, tuple[dict[Var, Dim], Dim]] = {}  # integers of the run as sums (windows.py)
        self.made: dict[str, int] = {}  # how many sizes of the run have a name
        # the blocks in which elaboration is, and the sizes of the run that each has made
        self.scopes: list[tuple[Output, list[MadeDim]]] = [(Output(), [])]
        self.places_of_sizes: dict[MadeDim, Output] = {}  # right behind where each is made, in their order
        # those in scope where a function value is made whose parameter this is
        self.sizes_of_parameters: dict[Unknown, SizesInScope] = {}
        self.escaping: frozenset[MadeDim] = frozenset()  # the sizes that the `yield`, `next` or `exit` at hand leaves
        self.hints.require = self._require
        self.hints.always = lambda: self.maybe == 0 and not self.may_have_ended
        self.may_have_ended = False  # a branch has left what is around it
        self.handed: tuple[Atom, ...] = ()  # the surface operands of the `yield`, `next` or `exit` at hand
        self.errors: list[RelayError] = []
        self.failures = 0  # also those that follow from an error
        self.left_open: list[RelayError] = []  # what was left open until a function's result is known
        self.made_instances = 0
        self.opened: list[Open] = []  # what a scheme leaves to a call
        self.unseen: list[Open] = []  # of that what has no value
        self.is_incomplete = False  # a scheme's body has ways out that were not looked at
        self.used_early: list[Instance] = []  # functions that call themselves, whose results were not known then
        self.right: set[Definition] = set()  # whose uses of polymorphic parameters are checked
        self.size_conditions: dict[Atom, SizeCondition] = {}  # what conditions say of sizes
        self._facts_before: list[Snapshot] = []  # of blocks in which more holds
        self.chosen_by_sizes = 0  # in how many arms elaboration is that a condition on sizes chooses
        self.doubtful: set[Var] = set()  # surface variables that come from what is open
        self.is_partial = False  # a scheme's body was not looked at where a call's types decide what it means
        self.unknown: Consequence | None = None  # of a subclass: what depends on a name that the scope cannot tell
        self._guesses: list[object] = []
        self._meaningless: set[str] = set()  # names and objects without a meaning that are reported already
        self.monomorphisation = Monomorphisation()
        # local functions whose bodies were not looked at
        self.unseen_functions: dict[int, tuple[LocalFunction, Expr]] = {}
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
    def scope(self, out: Output) -> Iterator[int]:
        """While a block is elaborated: sizes that the run makes end with it. Gives the number of scopes around it."""
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
        """The sizes that the run makes before the place at hand."""
        return SizesInScope(tuple((made, len(made)) for _, made in self.scopes if made))

    def made_since(self, depth: int) -> frozenset[MadeDim]:
        """The sizes that are made in the scopes inside of the first ones."""
        return frozenset(dim for _, dims in self.scopes[depth:] for dim in dims)

    def _require(self, constraint: DimConstraint) -> None:
        from relay.typecheck.elaboration.made_sizes import require

        require(self, self.scopes[-1][0], constraint, self.hints.span)

    # ---- variables and constants

    def variable(self, name: str, type_: Type, span: Span | None) -> Var:
        """A new variable of the typed IR. Its type is resolved when the session ends."""
        var = Var(name, type_, span)
        self.variables.append(var)
        return var

    def bind(self, out: Output, expression: Expr, type_: Type, name: str, span: Span | None) -> Typed:
        """Write `name = expression`."""
        var = self.variable(name, type_, span)
        out.items.append(Binding((var,), expression))
        return Typed(var, type_)

    def constant(self, out: Output, number: Number, base: object = None) -> Typed:
        """A number as a rank-0 tensor of this base type (unknown: decided by its uses)."""
        if isinstance(number, Size | Computed):
            return sizes.constant(self, out, number, base)
        base = prune(base) if base is not None else self.solver.literal_base(number.value, number.span)  # type: ignore[arg-type]
        if isinstance(base, BaseType):
            _require_holding(base, number)
            constant = Constant(np.asarray(number.value, dtype=base.dtype), number.span)
            return Typed(constant, constant.type)
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
            dtype = found.dtype if isinstance(found, BaseType) else np.dtype(type(number.value))
            place.items.append(Binding((var,), Constant(np.asarray(number.value, dtype=dtype), number.span)))

        self.finishers.append(finish)
        return Typed(var, type_)

    def constant_bool(self, span: Span | None) -> Typed:
        """A truth value of which nothing is known, in the place of one that a mistake left without a meaning."""
        type_ = TensorType(BOOL, ())
        return Typed(self.variable("condition", type_, span), type_)

    def materialise(self, out: Output, entity: Entity, span: Span | None) -> Typed:
        """The entity as a value of the typed IR. Raises TypeCheckError for what has no value."""
        match entity:
            case Typed():
                return entity
            case Number():
                return self.constant(out, entity)
            case Tuple(items, form):
                parts = [self.materialise(out, item, span) for item in items]
                type_ = TupleType(tuple(p.type for p in parts), form)
                return self.bind(out, MakeTuple(tuple(p.atom for p in parts), span), type_, "tuple", span)
            case Object(None):
                return self.bind(out, MakeTuple((), span), TupleType(()), "none", span)
            case Failed():
                raise Consequence
            case _:
                from relay.typecheck.elaboration.function_values import function_value

                return function_value(self, out, entity, span)

    # ---- constraints

    def defer(
        self,
        attempt: Callable[[], Sequence[Unknown] | None],
        span: Span | None,
        text: str | Callable[[], str],
        result: Unknown | None = None,
        force: Callable[[], None] | None = None,
        application: Callable[[], Application] | None = None,
        at_any_rank: Callable[[], bool] | None = None,
        unseen: Callable[[], None] | None = None,
        is_last: Callable[[], bool] = lambda: False,
    ) -> None:
        """Solve a constraint now, or as soon as one of the variables that it waits for is bound."""
        pending = Pending(
            attempt,
            span,
            text if callable(text) else lambda: text,
            self.labels(),
            self.effects,
            result=result,
            force=force,
            application=application,
            at_any_rank=at_any_rank,
            unseen=unseen,
            known=self.hints.here,
            maybe=self.maybe,
            is_last=is_last,
        )
        self._try(pending)
        if not pending.done:
            self.pending.append(pending)

    def _try(self, pending: Pending) -> None:
        if pending.done or pending.running:
            return
        pending.running, self.question, self.asked_of = True, None, tuple
        with self.effects_of(pending.effects or self.effects):
            waiting = pending.attempt()
        pending.running = False
        pending.question, pending.asked_of = None if waiting else self.question, self.asked_of
        if waiting is None:
            pending.done = True
            return
        for unknown in waiting:
            unknown.watchers.append(lambda: self._retry(pending))

    def _retry(self, pending: Pending) -> None:
        """Try again what waited. A mistake found now is that of the waiting constraint, not of what woke it."""
        with self._where_it_arose(pending):
            try:
                self._try(pending)
            except (Consequence, RelayError, Clash) as error:
                pending.done = True
                self.report(undecided(error, pending.span), pending.labels)

    @contextlib.contextmanager
    def _where_it_arose(self, pending: Pending) -> Iterator[None]:
        """Know what is known of sizes at the place of a constraint."""
        self.maybe, maybe = pending.maybe, self.maybe
        try:
            with self.hints.where_holds(pending.known):
                yield
        finally:
            self.maybe = maybe

    def _postpone(self, left: Dim, right: Dim) -> None:
        """An equation of dims that no variable can be solved for yet."""
        span = self.hints.span
        wanted, text = (left, str(right)) if isinstance(left, int) else (right, str(left))

        def attempt() -> Sequence[Unknown] | None:
            a, b = settled(left), settled(right)
            waiting = [v for v in (*variables(a), *variables(b)) if isinstance(v, Unknown) and v.hint is None]
            answer = facts().ask(a, EQUAL, b)
            solved = None if answer is not None else solve(subtract(a, b), lambda v: v in waiting)
            if solved is not None and not (isinstance(solved[1], int) and solved[1] < 0):
                self.solver.bind(solved[0], solved[1])  # type: ignore[arg-type]
                return None
            if answer is False or solved is not None or (answer is None and not waiting):
                found = b if isinstance(left, int) else a
                raise ShapeError(f"{text} must be {settled(wanted)} here, and it is {found}", span)
            return None if answer else tuple(dict.fromkeys(waiting))

        def force() -> None:
            a, b = settled(left), settled(right)
            names = dict.fromkeys(
                v.name for v in (*variables(a), *variables(b)) if isinstance(v, Unknown) and v.hint is None
            )
            if names:
                raise _undetermined(" and ".join(names), text, settled(wanted), span)
            attempt()

        self.defer(attempt, span, f"a dimension in {text} == {wanted}", force=force)

    def unify_at(
        self,
        found: Type,
        expected: Type,
        span: Span | None,
        what: str,
        help: str | None = None,
        labels: tuple[Label, ...] = (),
    ) -> None:
        """Demand that two types are equal. `what` says of which thing, for the error."""
        try:
            self.solver.unify(found, expected)
        except Clash as clash:
            notes = clash_notes(clash, found, expected)
            message = f"{what} must be {show(resolve(expected))}, found {shown(found)}"
            raise TypeMismatch(message, span, notes=notes, help=help, labels=labels) from None

    def unify_base_at(self, left: object, right: object, span: Span | None) -> None:
        """Demand that two base types are equal."""
        try:
            self.solver.unify_base(left, right)
        except Clash as clash:
            raise TypeMismatch(clash.reason or f"{clash.left} is not {clash.right}", span) from None

    # ---- the end

    def finish(self) -> None:
        """Solve what is left, give literals their defaults, and fix the type of every variable.

        Raises the errors that were found, before what follows from them is looked at.
        """
        from relay.typecheck.elaboration import ambiguity

        self.solver.run()
        if self.generic:
            self._force()
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
        with assuming(self.hints.where()):
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
            var.type = plain(var.type)
        for attributes in self.pending_attributes:
            for name, value in attributes.items():
                attributes[name] = _finished(value)

    def _settle_effects(self) -> None:
        """Find the effects of what a scheme does not look at."""
        from relay.typecheck.elaboration.open_effects import settle

        for pending in self.pending:
            if not pending.done and pending.unseen is not None:
                pending.unseen()
        settle(self)

    def _solve_at_any_rank(self) -> None:
        """Solve what a scheme's shape variables keep open, although their ranks do not matter."""
        position = 0
        while position < len(self.pending):
            pending = self.pending[position]
            position += 1
            if pending.done or pending.at_any_rank is None:
                continue
            try:
                with self._where_it_arose(pending):
                    pending.done = pending.at_any_rank()
                self.solver.run()
            except RelayError as error:
                pending.done = True
                self.report(error, pending.labels)

    def _refuse_assumptions(self) -> None:
        """Report what does not hold for all sizes that the annotations allow."""
        for pending in self.pending:
            question = None if pending.done else pending.question
            with self.hints.where_holds(pending.known):
                example = None if question is None else counterexample(question)
            if example is not None:
                assert question is not None
                self.report(not_for_all(question, example, pending.span, pending.asked_of()), pending.labels)

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
        return resolve(type_) if self.generic else self.monomorphisation.type(type_)

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

    def _force(self) -> None:
        """Solve what can be solved with what is known, oldest first: functions that wait for each other's types. What
        arises from that in a scheme stays open: of types that nobody knows there might be no end."""
        for last in (True,) if self.generic else (False, True):
            position, all_ = 0, len(self.pending)
            while position < (all_ if self.generic else len(self.pending)):
                pending = self.pending[position]
                position += 1
                if pending.force is None or pending.done or pending.running or (not last and pending.is_last()):
                    continue
                pending.done = True
                with self.effects_of(pending.effects or self.effects):
                    pending.force()
                self.solver.run()

    def force(self) -> None:
        """Decide what is open with what is known: function values that wait, then the base types of literals."""
        self._force()
        self._default_literals()
        self.solver.run()

    def _default_literals(self) -> None:
        for unknown in self.solver.literal_bases:
            base = prune(unknown)
            if not isinstance(base, Unknown):
                continue
            floats = any(isinstance(x.value, float) for x in base.literals)
            allowed = base.classes or frozenset(BaseClass)
            chosen = INT32 if not floats and BaseClass.INTEGER in allowed else FLOAT32
            try:
                self.solver.unify_base(base, chosen)
            except Clash as clash:
                literal = base.literals[0]
                raise TypeMismatch(
                    clash.reason or f"the number {literal.value} has no dtype",
                    literal.span,
                    help="give it a dtype, as in relay.full((), value, relay.Int64)",
                ) from None

    # ---- errors

    def is_open(self, entity: Entity) -> bool:
        """Whether nothing is known of a value since only a scheme is sought: it may be a tensor, or a structure."""
        return self.generic and isinstance(entity, Typed) and isinstance(prune(entity.type), Unknown)

    def guess(self, type_: object) -> None:
        """Note that nothing but an attribute tells that an argument is a tensor or a reference."""
        if self.generic:
            self._guesses.append(type_)

    def refuse_guess(self, type_: Type, span: Span | None, described: str) -> None:
        """Raise SchemeOnly for a type that is a guess only: an argument may be a value that has the attribute."""
        if any(type_ is guess for guess in self._guesses):
            raise SchemeOnly(span, f"the type of {described}")

    def specialise_to_numbers(self) -> None:
        """Where a number is needed before the run: start anew, if a call around this writes one."""
        for instance in reversed(self.active):
            if new := instance.numbers - self.decisions.specialising:
                raise NumbersSpecialise(new)

    def report(self, error: RelayError | Consequence, labels: tuple[Label, ...] | None = None) -> None:
        """Note a mistake and go on. `labels`: the call in which it arose, if that is not the present one.

        Raises NumbersSpecialise where known numbers may avoid the mistake.
        """
        if isinstance(error, TypeCheckError) and error.needs_value:
            self.specialise_to_numbers()
        if isinstance(error, SizeQuestion):  # nobody has found an answer
            error = ShapeError(error.message, error.span, notes=error.notes, help=error.help, labels=error.labels)
        self.failures += 1
        if isinstance(error, Consequence):
            if self.unknown is None and type(error) is not Consequence:
                self.unknown = error
            return
        if isinstance(error, SchemeOnly):
            if self.generic:
                self.is_partial = self.is_incomplete = True
                self.failures -= 1
                return
            error = TypeCheckError(error.message, error.span, labels=error.labels, help=error.help)
        if error.span is not None and error.span.source.filename.startswith(TEMPLATE):
            calls = [label.span for label in (self.labels() if labels is None else labels)]
            own = [span for span in calls if not span.source.filename.startswith(TEMPLATE)]
            error.span, error.labels = own[0] if own else None, ()
        elif isinstance(error, TypeCheckError) and not error.labels:
            error.labels = (self.labels() if labels is None else labels)[:1]
        if isinstance(error, FrontendError):
            if error.message in self._meaningless:
                return
            self._meaningless.add(error.message)
        self.errors.append(error)
        if len(self.errors) >= MANY_ERRORS:
            raise Enough

    def stop(self) -> None:
        """Raise the errors that were found."""
        from relay.typecheck.elaboration import unseen_names

        if self.errors:
            with contextlib.suppress(Enough):
                unseen_names.report_unseen_functions(self)
            raise together(self.errors)
        if self.unknown is not None:
            raise self.unknown
        if self.failures:
            raise InternalError("something follows from a mistake, but there is none")

    def labels(self) -> tuple[Label, ...]:
        """Where the function under elaboration was called from, innermost first."""
        innermost = reversed(self.call_spans[-8:])
        return tuple(Label(span, f"in this call of {name}") for name, span in innermost if span)

    def module(self, entry: str) -> Module:
        """The finished program."""
        functions: dict[str, Function | Derivative] = {}
        for name, instance in self.globals.items():
            if instance.build is None:
                raise InternalError(f"{name} was not finished")
            function = instance.build()
            if function.result is not None:
                function = attrs.evolve(function, result=plain(function.result))  # type: ignore[misc]
            functions[name] = function
        return Module(functions, entry, self.monomorphisation.definitions, self.hints.where())

    def unique_name(self, name: str) -> str:
        """A name that no function of the module has yet."""
        candidate, count = name, 1
        while candidate in self.globals:
            candidate, count = f"{name}_{count}", count + 1
        return candidate


def _require_holding(base: BaseType, number: Number) -> None:
    """Raises TypeMismatch for a number that the base type does not hold."""
    if not holds(base, number.value):
        raise TypeMismatch(
            f"the number {number.value} is no {base}",
            number.span,
            help=_better_number(base, number.value),
        )


def _better_number(base: BaseType, value: int | float) -> str:
    if base.is_float and isinstance(value, int) and holds(base, float(value)):
        return f"{base} has no such integer; write {float(value)!r} to have it rounded"
    return f"write a number that {base} holds, or cast the other operand"


def _finished(value: object) -> object:
    """An attribute with the solver's variables replaced."""
    match value:
        case Unknown() | DimExpr():
            return prune(value)
        case tuple():
            return tuple(map(_finished, value))
        case _:
            return value


def shown(type_: Type) -> str:
    """A type for a message. That of a number whose dtype is still open is what users call it."""
    match resolve(type_):
        case TensorType(Unknown() as base, ()) if base.literals:
            whole = base.classes is None or BaseClass.INTEGER in base.classes
            return "an integer" if whole and all(isinstance(n.value, int) for n in base.literals) else "a number"
        case known:
            return show(_with_defaults(known))


def _with_defaults(type_: Type) -> Type:
    """A type in which numbers whose dtype is still open, in tuples, have the dtype that they get alone."""
    match type_:
        case TupleType(items, form):
            return TupleType(tuple(map(_with_defaults, items)), form)
        case TensorType(Unknown() as base, shape) if base.literals:
            whole = all(isinstance(n.value, int) for n in base.literals)
            return TensorType(INT32 if whole else FLOAT32, shape, type_.axes)
        case _:
            return type_


def clash_notes(clash: Clash, found: Type, expected: Type) -> tuple[str, ...]:
    """Why two types differ: the smallest parts that do. Their variables get letters, so that they can be shown."""
    name_unknowns(found, expected)
    return (clash.reason,) if clash.reason else differences(found, expected)


def operator_call(operator: str, atoms: Sequence[Typed], attributes: dict[str, object], span: Span | None) -> OpCall:
    """An operator call on typed atoms."""
    return OpCall(operator, tuple(a.atom for a in atoms), attributes, span)  # type: ignore[arg-type]
