"""Deferred constraints, which wait for variables of the solver.

Each is a function that returns the variables it waits for, or None once it is done. It runs again when one of those is
bound, with the facts, effects and calls of the place where it arose.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence

import attrs

from relay.errors import (
    Label,
    RelayError,
    ShapeError,
    Span,
    TypeMismatch,
)
from relay.ir.dims import Dim, divide_exactly, modulo, resolve_dim, subtract, terms, variables
from relay.ir.sizes.facts import EQUAL, DimConstraint, counterexample, solve
from relay.ir.types import (
    FLOAT32,
    FLOAT64,
    INT32,
    INT64,
    Application,
    BaseClass,
    BaseType,
    TupleType,
    Type,
    Unknown,
    prune,
    show,
)
from relay.typecheck.elaboration.abstract_values import DependsOnPoison
from relay.typecheck.elaboration.diagnostics.mistakes import (
    DiagnosticCollector,
    clash_notes,
    display_type,
    not_for_all,
    reportable_error,
    with_defaults,
)
from relay.typecheck.elaboration.frame import Frame
from relay.typecheck.elaboration.restarts import Assumptions
from relay.typecheck.guards import Guards
from relay.typecheck.unification import NESTED, Clash, Solver, resolve


@attrs.define(eq=False)
class DeferredConstraint:
    """A deferred constraint. `attempt` returns the variables to wait for, or None when it is solved."""

    attempt: Callable[[], Sequence[Unknown] | None]
    span: Span | None
    text: Callable[[], str]
    frame: Frame  # where it arose
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
    has_body: bool = False  # it looks at a function's body


def _undetermined_dims_error(names: str, text: str, wanted: Dim, span: Span | None) -> ShapeError:
    """The error of an equation of dims that does not tell its variables."""
    return ShapeError(
        f"{names} cannot be found from {text} == {wanted}",
        span,
        help=f"give an argument a shape that has {names} alone, or write a variable of its own for {text}",
    )


def _no_multiple(left: Dim, right: Dim, span: Span | None) -> ShapeError | None:
    """The error of an equation with a factor of one variable that the rest does not have for all sizes: 4*k == 3*n."""
    difference = subtract(left, right)
    for term, _ in terms(difference):
        found = [v for v in variables(term) if isinstance(v, Unknown) and v.hint is None]
        if len(found) != 1 or sum(v is found[0] for v in variables(difference)) > 1:
            continue
        factor = divide_exactly(term, found[0])
        if isinstance(factor, int) and abs(factor) > 1:
            divisible = DimConstraint(modulo(subtract(difference, term), abs(factor)), EQUAL, 0)
            example = counterexample(divisible)
            return None if example is None else not_for_all(divisible, example, span)
    return None


def default_of(base: Unknown) -> BaseType:
    """The dtype that numbers have alone."""
    floats = any(isinstance(x.value, float) for x in base.literals)
    if floats or BaseClass.INTEGER not in (base.classes or frozenset(BaseClass)):
        return FLOAT32
    return INT64 if _is_large(base) else INT32


def _is_large(base: object) -> bool:
    """True if an int32 does not hold the literals of a base type that is open."""
    return isinstance(base, Unknown) and any(not -(2**31) <= x.value < 2**31 for x in base.literals)


class Constraints(DiagnosticCollector):
    """The solver, and the constraints that wait for it."""

    def __init__(self, generic: bool, decisions: Assumptions) -> None:
        super().__init__(generic, decisions)
        self.solver = Solver()
        self.hints = Guards(self.solver.bind, generic)
        self.question: DimConstraint | None = None  # what kept the constraint at hand from being solved
        self.asked_of: Callable[[], tuple[str, ...]] = tuple  # what it is about, for the message
        self.pending: list[DeferredConstraint] = []
        self.defaulting = False  # what nothing decides is decided now
        self.solver.postpone = self._postpone
        self.solver.gradual = generic

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
        has_body: bool = False,
    ) -> None:
        """Solve a constraint now, or as soon as one of the variables that it waits for is bound."""
        pending = DeferredConstraint(
            attempt,
            span,
            text if callable(text) else lambda: text,
            self.frame,
            result=result,
            force=force,
            application=application,
            at_any_rank=at_any_rank,
            unseen=unseen,
            known=self.hints.here,
            is_last=is_last,
            has_body=has_body,
        )
        self._try(pending)
        if not pending.done:
            self.pending.append(pending)

    def _try(self, pending: DeferredConstraint) -> None:
        if pending.done or pending.running:
            return
        pending.running, self.question, self.asked_of = True, None, tuple
        with self.effects_of(pending.frame.effects):
            waiting = pending.attempt()
        pending.running = False
        pending.question, pending.asked_of = None if waiting else self.question, self.asked_of
        if waiting is None:
            pending.done = True
            return
        for unknown in waiting:
            unknown.watchers.append(lambda: self._retry(pending))

    def _retry(self, pending: DeferredConstraint) -> None:
        """Try again what waited. A mistake found now is that of the waiting constraint, not of what woke it."""
        if pending.has_body and self.solver.depth > NESTED:
            self.solver.later.append(lambda: self._retry(pending))
            return
        with self._where_it_arose(pending):
            try:
                self._try(pending)
            except (DependsOnPoison, RelayError, Clash) as error:
                pending.done = True
                self.report(reportable_error(error, pending.span), pending.frame.labels())

    @contextlib.contextmanager
    def _where_it_arose(self, pending: DeferredConstraint) -> Iterator[None]:
        """Restore the facts about sizes at the place of a constraint."""
        frame = attrs.evolve(self.frame, maybe=pending.frame.maybe)
        with self.at_frame(frame), self.hints.where_holds(pending.known):
            yield

    def _postpone(self, left: Dim, right: Dim) -> None:
        """An equation of dims that no variable can be solved for yet."""
        span = self.hints.span
        wanted, text = (left, str(right)) if isinstance(left, int) else (right, str(left))

        def attempt() -> Sequence[Unknown] | None:
            a, b = resolve_dim(left), resolve_dim(right)
            waiting = [v for v in (*variables(a), *variables(b)) if isinstance(v, Unknown) and v.hint is None]
            answer = self.hints.ask(a, EQUAL, b)
            solved = None if answer is not None else solve(subtract(a, b), lambda v: v in waiting)
            if solved is not None and not (isinstance(solved[1], int) and solved[1] < 0):
                self.solver.bind(solved[0], solved[1])  # type: ignore[arg-type]
                return None
            if answer is False or solved is not None or (answer is None and not waiting):
                found = b if isinstance(left, int) else a
                raise ShapeError(f"{text} must be {resolve_dim(wanted)} here, but it is {found}", span)
            return None if answer else tuple(dict.fromkeys(waiting))

        def force() -> None:
            a, b = resolve_dim(left), resolve_dim(right)
            names = dict.fromkeys(
                v.name for v in (*variables(a), *variables(b)) if isinstance(v, Unknown) and v.hint is None
            )
            if names:
                raise _no_multiple(a, b, span) or _undetermined_dims_error(
                    " and ".join(names), text, resolve_dim(wanted), span
                )
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
        """Demand that two types are equal. `what` names the thing in the error. `what` says of which thing, for the
        error."""
        try:
            self.solver.unify(found, expected)
        except Clash as clash:
            notes = clash_notes(clash, found, expected)
            wanted = resolve(expected)
            wanted = with_defaults(wanted) if isinstance(wanted, TupleType) else wanted
            message = f"{what} must be {show(wanted)}, found {display_type(found)}"
            raise TypeMismatch(message, span, notes=notes, help=help, labels=labels) from None

    def unify_base_at(self, left: object, right: object, span: Span | None) -> None:
        """Demand that two base types are equal."""
        try:
            self.solver.unify_base(left, right)
        except Clash as clash:
            raise TypeMismatch(clash.reason or f"{clash.left} is not {clash.right}", span) from None

    def solve_at_any_rank(self) -> None:
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
                self.report(error, pending.frame.labels())

    def refuse_assumptions(self) -> None:
        """Report what does not hold for all sizes that the annotations allow."""
        for pending in self.pending:
            question = None if pending.done else pending.question
            with self.hints.where_holds(pending.known):
                example = None if question is None else counterexample(question)
            if example is not None:
                assert question is not None
                self.report(not_for_all(question, example, pending.span, pending.asked_of()), pending.frame.labels())

    def force_waiting(self) -> None:
        """Solve what can be solved with what is known, oldest first: functions that wait for each other's types. What
        arises from that in a scheme stays open: of types that nobody knows there might be no end."""
        if self.generic:
            self._force_once(len(self.pending), True)
            return
        while self._force_once(None, False) or self._force_once(None, True):
            pass

    def _force_once(self, count: int | None, last: bool) -> bool:
        """Force what waits, of the first `count`; functions that nothing calls only if `last`, and those no longer when
        something has come of it, since that may call others. Whether anything was forced."""
        position, before, forced = 0, len(self.pending), False
        while position < (len(self.pending) if count is None else count):
            pending = self.pending[position]
            position += 1
            if pending.force is None or pending.done or pending.running:
                continue
            is_last = pending.is_last()
            if is_last and not last:
                continue
            pending.done = forced = True
            with self.effects_of(pending.frame.effects):
                pending.force()
            self.solver.run()
            if last and count is None and (not is_last or len(self.pending) > before):
                break
        return forced

    def force(self) -> None:
        """Decide what is open with what is known: function values that wait, then the base types of literals."""
        self.force_waiting()
        self.default_literals()

    def default_literals(self, *, weak: bool = False) -> None:
        """Oldest first: what one of them was waited for may say what a later one is; but large integers before all, for
        what comes from them needs as many bits. `weak`: only what stays weak."""
        self.defaulting = True
        large_first = sorted(self.solver.literal_bases, key=lambda u: not _is_large(prune(u)))
        for unknown in large_first:
            base = prune(unknown)
            if not isinstance(base, Unknown) or (weak and not base.weak):
                continue
            self.default_literal(base)
        self.defaulting = False

    def _default_of(self, base: Unknown) -> BaseType:
        """The dtype of numbers that nothing else decides. Those that are converted to float64, as `np.array([0.1],
        dtype=np.float64)` converts them, are of float64 before: a float32 would have rounded them."""
        default = default_of(base)
        if default == INT32 and self.decisions.long_integers:
            return INT64
        wider = any(prune(wanted) == FLOAT64 and prune(number) is base for number, wanted in self.solver.conversions)
        return FLOAT64 if wider and default == FLOAT32 else default

    def default_literal(self, base: Unknown) -> None:
        """Give numbers the dtype that they have alone."""
        try:
            self.solver.unify_base(base, self._default_of(base))
        except Clash as clash:
            literal = base.literals[0]
            raise TypeMismatch(
                clash.reason or f"the number {literal.value} has no dtype",
                literal.span,
                help="give it a dtype, as in relay.full((), value, relay.Int64)",
            ) from None
        self.solver.run()
