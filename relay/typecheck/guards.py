"""Guards on symbolic sizes: answers from one call's sizes, recorded as the program's assumptions.

A symbolic dim of the entry is a solver variable with a *hint*, its size in the call that is being elaborated. Questions
that the facts leave open are answered by the hints, and recorded with the place that needs the answer:

    equal, by the hints       one of the variables is bound, so the equation stands in the entry's type; where no
                              variable can be, it is assumed
    different, at least       it is assumed
    a number is needed        each variable is bound to its hint: the program is for this size only

So elaboration succeeds at symbolic sizes where it does at the numbers, and a later call whose sizes satisfy what is
assumed would have been elaborated to the same program.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator

import attrs

from relay.errors import Span, TypeCheckError
from relay.ir.dims import (
    ANY,
    DataDependentDim,
    Dim,
    DimExpr,
    Kind,
    TypeId,
    Unknown,
    add,
    constant_of,
    lower_bound,
    resolve_dim,
    substitute,
    subtract,
    terms,
    variables,
)
from relay.ir.sizes.facts import (
    AT_LEAST,
    DIFFERENT,
    EQUAL,
    DimConstraint,
    Facts,
    facts,
    made_answer,
    mentions_made,
    solve,
)
from relay.ir.sizes.polynomials import Factor
from relay.ir.sizes.upper_bounds import upper_bound

SMALLEST, LARGEST = 2, 2**31 - 1
"""The sizes that a symbolic dim may have. Axes of extent 0 and 1 are numbers: there programs differ."""


@attrs.frozen
class DimSpecialization:
    """A symbolic dim that became a number or equal to another one, since something at `span` needed it."""

    name: str
    value: Dim
    reason: str
    span: Span | None


class DataDependentGuard(TypeCheckError):
    """A condition that is known only at run time, but that a rule has to know."""

    needs_value = True

    def __init__(self, left: Dim, relation: str, right: Dim, span: Span | None) -> None:
        super().__init__(
            f"the type depends on whether {left} {relation} {right}, which is known only at run time",
            span,
            help="test with an `if` what the size is computed from, or make an argument static:"
            " @relay(static_argnames=(..,))",
        )
        self.left, self.relation, self.right = left, relation, right
        self.needed = (*variables(left), *variables(right))


@attrs.frozen
class Snapshot:
    """The facts of a moment, how much had been assumed, and what held at that place only."""

    facts: tuple[dict[TypeId | Unknown, Dim], dict[Factor, int], list[Dim], list[Dim], list[Dim]]
    assumed: int
    here: tuple[DimConstraint, ...]


class Guards(Facts):
    """The facts of a program that is elaborated for a call. Without symbolic dims there are none. `bind` binds a
    variable of the solver.

    `generic`: of a program that is elaborated for all sizes that its annotations allow. Conditions of rules on these
    become part of the function's type, `where n >= 1`.
    """

    def __init__(self, bind: Callable[[Unknown, object], None], generic: bool = False) -> None:
        super().__init__(outer=facts())
        self.generic = generic
        self._bind_in_solver = bind
        self.require: Callable[[DimConstraint], None] = lambda constraint: None
        self.always: Callable[[], bool] = lambda: True  # whether what is elaborated runs on every way
        """Checks at run time what is needed of data-dependent sizes."""
        self.span: Span | None = None
        self.pins: list[DimSpecialization] = []
        self._dims: list[Unknown] = []
        self._own: set[TypeId | Unknown] = set()
        self.assumed: list[DimConstraint] = []
        self.here: tuple[DimConstraint, ...] = ()  # what holds at the place at hand, by the conditions around it

    def symbolic_dim(self, name: str, hint: int) -> Unknown:
        """A new symbolic dim, for an axis of an argument."""
        dim = Unknown(Kind.Dim, self._unused_name(name), hint=hint)
        self._dims.append(dim)
        self._own.add(dim)
        self.add(DimConstraint(dim, AT_LEAST, SMALLEST))
        return dim

    @property
    def dims(self) -> tuple[Unknown, ...]:
        """The symbolic dims."""
        return tuple(self._dims)

    @property
    def is_open(self) -> bool:
        """True if there are symbolic dims that may still become numbers."""
        return any(dim.binding is None for dim in self._dims)

    def _unused_name(self, name: str) -> str:
        taken = {d.name for d in self._dims}
        candidate, count = name, 1
        while candidate in taken:
            candidate, count = f"{name}_{count}", count + 1
        return candidate

    def hinted_number(self, dim: Dim) -> int | None:
        """The number that a dim is in this call, or None if a variable in it has no hint."""
        dim = resolve_dim(dim)
        if any(v.hint is None for v in variables(dim) if isinstance(v, Unknown)):
            return None
        number = substitute(dim, lambda v: v.hint if isinstance(v, Unknown) and v.hint is not None else v)
        return number if isinstance(number, int) else None

    # ---- facts that hold in a part of the program

    def snapshot(self) -> Snapshot:
        """The current state, for `restore`."""
        kept = dict(self._values), dict(self._bounds), list(self._zero), list(self._nonzero), list(self._nonnegative)
        return Snapshot(kept, len(self.assumed), self.here)

    def restore(self, snapshot: Snapshot) -> None:
        """Forget what was added since, but what the whole program assumes."""
        self._values, self._bounds, self._zero, self._nonzero, self._nonnegative = snapshot.facts
        self.here = snapshot.here
        for constraint in self.assumed[snapshot.assumed :]:
            if constraint.always:
                self.add(constraint)

    def learn(self, constraints: Iterable[DimConstraint]) -> None:
        """These hold from here on, until what was known before is restored."""
        for constraint in constraints:
            self.add(constraint)
            self.here = (*self.here, constraint)

    @contextlib.contextmanager
    def where_holds(self, constraints: Iterable[DimConstraint]) -> Iterator[None]:
        """While a part of the program is elaborated in which these hold, as the arm of an `if` on sizes."""
        found = list(constraints)
        if not found:
            yield
            return
        before = self.snapshot()
        self.learn(found)
        try:
            yield
        finally:
            self.restore(before)

    @contextlib.contextmanager
    def knowing_nothing(self) -> Iterator[None]:
        """While something is elaborated that is not at the place at hand."""
        before = self.snapshot()
        self._values, self._bounds, self._zero, self._nonzero, self._nonnegative = {}, {}, [], [], []
        self.here = ()
        try:
            yield
        finally:
            self.restore(before)

    # ---- questions

    def likely_equal(self, left: Dim, right: Dim) -> bool:
        number = self._own_hint(left, right)
        if number is None:
            return super().likely_equal(left, right)
        return self.equal(left, right) is not False and number[0] == number[1]

    def _own_hint(self, left: Dim, right: Dim) -> tuple[int, int] | None:
        """The numbers that two dims are in this call, if they are not an outer elaboration's."""
        if any(v not in self._own for dim in (left, right) for v in variables(resolve_dim(dim))):
            return None
        a, b = self.hinted_number(left), self.hinted_number(right)
        return None if a is None or b is None else (a, b)

    def ask(self, left: Dim, relation: str, right: Dim) -> bool | None:
        if mentions_made(left) or mentions_made(right):
            return self._ask_made(left, relation, right)
        answer = super().ask(left, relation, right)
        numbers = None if answer is not None or not self._dims else self._own_hint(left, right)
        if numbers is None:
            return answer
        a, b = numbers
        if relation == AT_LEAST:
            self._assume(DimConstraint(left, AT_LEAST, right) if a >= b else DimConstraint(right, AT_LEAST, left + 1))
            return a >= b
        self._assume(DimConstraint(left, EQUAL if a == b else DIFFERENT, right))
        return (a == b) is (relation == EQUAL)

    def need(self, left: Dim, right: Dim) -> bool | None:
        if mentions_made(left) or mentions_made(right):
            if self.at_least(left, right) is None:
                self.require(DimConstraint(left, AT_LEAST, right))
            return self.at_least(left, right) is not False
        answer = self.ask(left, AT_LEAST, right)
        named = [*variables(resolve_dim(left)), *variables(resolve_dim(right))]
        if answer is not None or not self.generic or not all(isinstance(v, TypeId) for v in named):
            return answer
        self._assume(DimConstraint(resolve_dim(left), AT_LEAST, resolve_dim(right), always=self.always()))
        return True

    def need_equal(self, left: Dim, right: Dim) -> bool | None:
        if self.equal(left, right) is None:
            self.require(DimConstraint(left, EQUAL, right))
        return self.equal(left, right) is not False

    def _ask_made(self, left: Dim, relation: str, right: Dim) -> bool | None:
        """As `ask`, of data-dependent sizes: what it takes for granted is checked then."""
        answer = self.at_least(left, right) if relation == AT_LEAST else self.equal(left, right)
        if answer is not None:
            return answer is (relation != DIFFERENT)
        answer = made_answer(left, relation, right)
        if answer is None and self.generic:  # of `Any` a call knows the size, and checks it
            if relation == EQUAL:
                self.add(DimConstraint(left, EQUAL, right))
                return True
            return None
        if answer is None:
            raise DataDependentGuard(left, relation, right, self.span)
        if 0 in (left, right):
            self.require(DimConstraint(left, AT_LEAST, 1) if right == 0 else DimConstraint(right, AT_LEAST, 1))
        return answer

    def number(self, dim: Dim) -> int | None:
        numbers = self._own_hint(dim, 0)
        if numbers is None:
            return super().number(dim)
        number = numbers[0]
        if not isinstance(dim, int):
            for variable in set(variables(resolve_dim(dim))):
                if isinstance(variable, Unknown) and variable.hint is not None:
                    self._bind(variable, variable.hint, "its value is needed")
        return number

    def _assume(self, constraint: DimConstraint) -> None:
        difference = resolve_dim(subtract(constraint.left, constraint.right))
        if constraint.relation == EQUAL and not isinstance(difference, int) and difference is not ANY:
            for dim in reversed(self._dims):  # the later one, so that the first keeps its name
                solved = solve(difference, lambda v, dim=dim: v is dim)  # type: ignore[misc]
                if solved is not None:
                    self._bind(dim, solved[1], f"it must equal {solved[1]}")
                    return
        if constraint.relation == AT_LEAST:
            constraint = tidy_inequality(constraint)
        noted = attrs.evolve(constraint, span=self.span)
        self.add(noted)
        self.assumed.append(noted)

    def _bind(self, variable: Unknown, value: Dim, reason: str) -> None:
        self.pins.append(DimSpecialization(variable.name, value, reason, self.span))
        self.add(DimConstraint(variable, EQUAL, value))
        self._bind_in_solver(variable, value)

    # ---- the end

    def close(self) -> None:
        """Make every symbolic dim that is left a variable of the finished program."""
        for dim in self._dims:
            if dim.binding is None:
                dim.binding = TypeId(dim.name, Kind.Dim)

    def assumptions(self, always: bool = False) -> tuple[DimConstraint, ...]:
        """The assumptions of the finished program, after `close`, without those that others imply. `always`: only
        those that every path through it needs."""
        left = list(dict.fromkeys(d for dim in self._dims if isinstance(d := resolve_dim(dim), TypeId | DimExpr)))
        kept = [DimConstraint(d, AT_LEAST, SMALLEST, "programs for the sizes 0 and 1 differ") for d in left]
        kept += dict.fromkeys(c for c in self._resolved_assumptions() if c.always or not always)
        for constraint in tuple(kept):
            rest = [c for c in kept if c is not constraint]
            if Facts(rest).ask(constraint.left, constraint.relation, constraint.right) is True:
                kept = rest
        return tuple(kept)

    def _resolved_assumptions(self) -> Iterable[DimConstraint]:
        for c in self.assumed:
            yield attrs.evolve(c, left=resolve_dim(c.left), right=resolve_dim(c.right))


def tidy_inequality(constraint: DimConstraint) -> DimConstraint:
    """An inequality with what is subtracted on the other side: `n >= 4` for `n - 4 >= 0`."""
    left: Dim = 0
    right: Dim = 0
    for term, is_positive in terms(subtract(constraint.left, constraint.right)):
        left, right = (add(left, term), right) if is_positive else (left, add(right, term))
    if isinstance(left, int):  # 4 >= n is how an upper bound is written
        return attrs.evolve(constraint, left=left, right=right)
    constant = constant_of(left)
    return attrs.evolve(constraint, left=subtract(left, constant), right=subtract(right, constant))


def fits_int32(hints: Facts, dim: Dim) -> bool:
    """True if a dim is a number of 32 bits, or is assumed to be."""
    dim = resolve_dim(dim)
    if isinstance(dim, TypeId | Unknown):
        return not isinstance(dim, DataDependentDim) or not dim.is_wide  # the extent of an axis
    if mentions_made(dim):
        return upper_bound(dim) <= LARGEST
    bound = lower_bound(subtract(LARGEST, dim))
    return (bound is not None and bound >= 0) or hints.ask(LARGEST, AT_LEAST, dim) is not False
