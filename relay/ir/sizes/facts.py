"""Facts about dims: assumed constraints, and queries of what they imply.

A finished program's symbolic dims are assumed to satisfy `Module.where`; the program is entered only with sizes that
do. Shape rules ask `equal`, `at_least` and so on of the facts that hold where they are applied: those of the module
that is checked, differentiated or optimized, which `assuming` puts in force for a block of Python code (in this thread
and context only).

Answers follow from the normal form of dims, from equations (solved for one variable each), and from lower bounds. A
question that they do not answer is None: nobody knows.
"""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar

import attrs

from relay.errors import Span
from relay.ir.dims import (
    ANY,
    DataDependentDim,
    Dim,
    DimExpr,
    Kind,
    TypeId,
    Unknown,
    add,
    divide_exactly,
    evaluate,
    lower_bound,
    multiply,
    resolve_dim,
    substitute,
    subtract,
    variables,
    without_quotient,
)
from relay.ir.sizes.polynomials import Factor, Quotient

EQUAL, DIFFERENT, AT_LEAST = "==", "!=", ">="


@attrs.frozen
class DimConstraint:
    """`left relation right`, where the relation is `==`, `!=` or `>=`. `reason` says in words what needs it, at
    `span`; `always`: on every path through the program."""

    left: Dim
    relation: str
    right: Dim
    reason: str = ""
    span: Span | None = attrs.field(default=None, eq=False)
    always: bool = attrs.field(default=True, eq=False)

    def __str__(self) -> str:
        return f"{self.left} {self.relation} {self.right}"

    def holds(self, left: int, right: int) -> bool:
        """True if these numbers satisfy it."""
        if self.relation == EQUAL:
            return left == right
        return left != right if self.relation == DIFFERENT else left >= right


class Facts:
    """Constraints that hold, and what follows from them. What these do not answer, `outer` is asked."""

    def __init__(self, constraints: Iterable[DimConstraint] = (), outer: Facts | None = None) -> None:
        self._outer = outer
        self._values: dict[TypeId | Unknown, Dim] = {}
        self._bounds: dict[Factor, int] = {}
        self._zero: list[Dim] = []
        self._nonzero: list[Dim] = []
        self._nonnegative: list[Dim] = []
        for constraint in constraints:
            self.add(constraint)

    def add(self, constraint: DimConstraint) -> None:
        """One more constraint holds."""
        difference = self.normal(subtract(constraint.left, constraint.right))
        if constraint.relation == EQUAL:
            self._add_equation(difference)
        elif constraint.relation == DIFFERENT:
            self._nonzero.append(difference)
            self._exclude(difference)
        else:
            self._add_bound(difference)

    def normal(self, dim: Dim) -> Dim:
        """The dim with every variable for which an equation was solved replaced."""
        dim = resolve_dim(dim)
        return substitute(dim, lambda v: self._values.get(v, v)) if self._values else dim

    # ---- facts

    def _add_equation(self, difference: Dim) -> None:
        if isinstance(difference, int) or difference is ANY:
            return
        solved = solve(difference) or _solve_divisible(difference)
        if solved is None:
            self._zero.append(difference)
            return
        variable, value = solved
        bound = self._bounds.pop(variable, None)
        self._values[variable] = value

        def replace_variable(dim: Dim) -> Dim:
            return substitute(dim, lambda v: value if v is variable else v)

        self._values = {v: replace_variable(d) for v, d in self._values.items()}
        zero, self._zero = self._zero, []
        self._nonzero = [replace_variable(d) for d in self._nonzero]
        nonnegative, self._nonnegative = [replace_variable(d) for d in self._nonnegative], []
        if bound is not None:
            nonnegative.append(subtract(value, bound))
        for dim in nonnegative:
            self._add_bound(dim)
        for dim in zero:
            self._add_equation(replace_variable(dim))

    def _exclude(self, difference: Dim) -> None:
        """difference != 0: a variable that is not its least number is larger."""
        found = list(variables(difference))
        for side in (difference, subtract(0, difference)) if len(found) == 1 else ():
            excluded = subtract(found[0], side)
            if isinstance(excluded, int) and excluded == self._bounds.get(found[0], 0):
                self._bounds[found[0]] = excluded + 1
                return

    def _add_bound(self, difference: Dim) -> None:
        """difference >= 0"""
        while (dividend := without_quotient(difference)) is not None:
            difference = dividend
        if isinstance(difference, int):
            return
        found = list(variables(difference))
        if len(found) == 1:
            least = subtract(found[0], difference)
            if isinstance(least, int):
                self._bounds[found[0]] = max(self._bounds.get(found[0], 0), least)
                return
        self._nonnegative.append(difference)

    def _normal_minimum(self, dim: Dim) -> int | None:
        return lower_bound(dim, lambda v: self._bounds.get(v, 0))

    # ---- questions

    def equal(self, left: Dim, right: Dim) -> bool | None:
        """True if two dims are equal, False if they differ, None if that is unknown."""
        answer = self._equal(left, right)
        return self._outer.equal(left, right) if answer is None and self._outer is not None else answer

    def _equal(self, left: Dim, right: Dim) -> bool | None:
        if type(left) is int and type(right) is int:
            return left == right
        if left is right and left is not ANY:
            return True
        difference = self.normal(subtract(left, right))
        if isinstance(difference, int):
            return difference == 0
        if difference is ANY:
            return None
        opposite = subtract(0, difference)
        if any(divide_exactly(difference, zero) is not None for zero in self._zero):
            return True
        if difference in self._nonzero or opposite in self._nonzero:
            return False
        if self._is_positive(difference) or self._is_positive(opposite) or _never_zero(difference):
            return False
        if self._nonnegative and self._is_positive(add(difference, 1)) and self._is_positive(add(opposite, 1)):
            return True
        return None

    def at_least(self, left: Dim, right: Dim) -> bool | None:
        """True if left >= right, False if not, None if that is unknown."""
        answer = self._at_least(left, right)
        return self._outer.at_least(left, right) if answer is None and self._outer is not None else answer

    def _at_least(self, left: Dim, right: Dim) -> bool | None:
        if left.__class__ is int and right.__class__ is int:
            return left >= right
        difference = self.normal(subtract(left, right))
        if isinstance(difference, int):
            return difference >= 0
        if difference is ANY:
            return None
        if self._is_positive(add(difference, 1)):
            return True
        return False if self._is_positive(subtract(0, difference)) else None

    def number(self, dim: Dim) -> int | None:
        """The number that a dim is, or None."""
        normal = self.normal(dim)
        if isinstance(normal, int):
            return normal
        return self._outer.number(dim) if self._outer is not None else None

    def likely_equal(self, left: Dim, right: Dim) -> bool:
        """True if two dims are equal, or are assumed to be until the answer matters."""
        answer = self._equal(left, right)
        if answer is None and self._outer is not None:
            return self._outer.likely_equal(left, right)
        return answer is True or (answer is None and (mentions_made(left) or mentions_made(right)))

    def ask(self, left: Dim, relation: str, right: Dim) -> bool | None:
        """True or False if the facts decide the relation, else None. Subclasses with other means of deciding
        override it. Who has other means of knowing than the facts overrides it."""
        if relation == AT_LEAST:
            answer = self._at_least(left, right)
        else:
            answer = self._equal(left, right)
            answer = answer if answer is None or relation == EQUAL else not answer
        if answer is None and self._outer is not None:
            return self._outer.ask(left, relation, right)
        return made_answer(left, relation, right) if answer is None else answer

    def need(self, left: Dim, right: Dim) -> bool | None:
        """As `ask` whether left >= right, where a rule has no other answer than that it is so."""
        answer = self.ask(left, AT_LEAST, right)
        return True if answer is None and (mentions_made(left) or mentions_made(right)) else answer

    def need_equal(self, left: Dim, right: Dim) -> bool | None:
        """As `need` whether left == right."""
        answer = self.equal(left, right)
        return True if answer is None and (mentions_made(left) or mentions_made(right)) else answer

    def _is_positive(self, dim: Dim) -> bool:
        least = self._normal_minimum(dim)
        if least is not None and least > 0:
            return True
        for known in self._nonnegative:
            least = self._normal_minimum(subtract(dim, known))
            if least is not None and least > 0:
                return True
        return False

    def lower_bound(self, variable: TypeId | Unknown) -> int:
        """A number that a variable is never below: 0 if nothing is known."""
        own = self._bounds.get(variable, 0)
        return own if self._outer is None else max(own, self._outer.lower_bound(variable))

    def allow(self, sizes: Mapping[TypeId, int]) -> bool:
        """True if sizes satisfy all facts about them alone."""

        def value(dim: Dim) -> int | None:
            found = set(variables(dim))
            try:
                return evaluate(dim, sizes) if all(v in sizes for v in found) else None
            except ZeroDivisionError:
                return None

        if any(sizes[v] < bound for v, bound in self._bounds.items() if v in sizes):  # type: ignore[index]
            return False
        if any(v in sizes and value(dim) not in (None, sizes[v]) for v, dim in self._values.items()):  # type: ignore[index]
            return False
        if any(value(dim) not in (None, 0) for dim in self._zero) or any(value(dim) == 0 for dim in self._nonzero):
            return False
        if any((found := value(dim)) is not None and found < 0 for dim in self._nonnegative):
            return False
        return self._outer is None or self._outer.allow(sizes)


def solve(
    difference: Dim, only: Callable[[TypeId | Unknown], bool] = lambda v: True
) -> tuple[TypeId | Unknown, Dim] | None:
    """A variable that `difference == 0` determines, and its value: one that occurs once, linearly, with a coefficient
    that divides the rest. `only`: which variables are asked for."""
    if isinstance(difference, TypeId | Unknown):
        return (difference, 0) if only(difference) else None
    if not isinstance(difference, DimExpr):
        return None
    occurring = list(variables(difference))
    candidates: list[tuple[str, TypeId | Unknown, int]] = []
    for monomial, coefficient in difference.terms:
        if len(monomial) == 1:
            ((factor, power),) = monomial
            if power != 1 or not isinstance(factor, TypeId | Unknown) or not only(factor):
                continue
            if sum(v is factor for v in occurring) == 1:
                candidates.append((factor.name, factor, coefficient))
    if not candidates:
        return _solve_power(difference, occurring, only)
    for _, variable, coefficient in sorted(candidates, key=lambda c: (abs(c[2]) == 1, c[0]), reverse=True):
        value = divide_exactly(subtract(multiply(coefficient, variable), difference), coefficient)
        if value is not None:
            return variable, value
    return None


def _solve_power(
    difference: DimExpr, occurring: Sequence[TypeId | Unknown], only: Callable[[TypeId | Unknown], bool]
) -> tuple[TypeId | Unknown, Dim] | None:
    """As `solve` for `c*v**p == rest`, if the rest is c times the power of a number or of another variable: sizes are
    not negative, so there is one root."""
    for monomial, coefficient in difference.terms:
        if len(monomial) != 1:
            continue
        ((variable, power),) = monomial
        if not isinstance(variable, TypeId | Unknown) or not only(variable):
            continue
        if power == 1 or sum(v is variable for v in occurring) > 1:
            continue
        rest = subtract(DimExpr(frozenset({(monomial, coefficient)})), difference)
        root = _root(divide_exactly(rest, coefficient), power)
        if root is not None:
            return variable, root
    return None


def _root(dim: Dim | None, power: int) -> Dim | None:
    """The number or variable of which a dim is the power."""
    if isinstance(dim, int):
        near = round(dim ** (1 / power)) if dim >= 0 else -1
        return near if near >= 0 and near**power == dim else None
    if isinstance(dim, DimExpr) and len(dim.terms) == 1:
        ((monomial, coefficient),) = dim.terms
        if coefficient == 1 and len(monomial) == 1:
            ((factor, own),) = monomial
            if own == power and isinstance(factor, TypeId | Unknown):
                return factor
    return None


def _solve_divisible(difference: Dim) -> tuple[TypeId | Unknown, Dim] | None:
    """As `solve` for `a % c == 0`, that is a == c*k for a new k."""
    assert isinstance(difference, DimExpr)
    for monomial, coefficient in difference.terms:
        if len(monomial) != 1:
            continue
        ((factor, power),) = monomial
        if power == 1 and isinstance(factor, Quotient) and factor.divisor == abs(coefficient):
            rest = subtract(difference, DimExpr(frozenset({(monomial, coefficient)})))
            if (rest if coefficient < 0 else subtract(0, rest)) == factor.dividend:
                return _multiple_of(factor.divisor, factor.dividend)
    return None


def _multiple_of(divisor: Dim, dividend: Dim) -> tuple[TypeId | Unknown, Dim] | None:
    multiple = TypeId("k", Kind.Dim)
    return solve(subtract(dividend, multiply(divisor, multiple)), lambda v: v is not multiple)


def counterexample(constraint: DimConstraint) -> str | None:
    """Small sizes for which a constraint does not hold, as `n = 2, m = 3`; None if there are none among the smallest
    that the facts in force allow, or a variable of the solver occurs."""
    found = sorted({*variables(constraint.left), *variables(constraint.right)}, key=lambda v: v.name)
    named = [v for v in found if isinstance(v, TypeId)]
    if len(named) < len(found) or len(named) > 4 or ANY in (constraint.left, constraint.right):
        return None
    known = facts()
    tried = [[max(known.lower_bound(v) - 1, 0) + size for size in (2, 3, 1, 4, 5)] for v in named]
    for sizes in itertools.product(*tried):
        values = dict(zip(named, sizes, strict=True))
        if not known.allow(values):
            continue
        try:
            left, right = evaluate(constraint.left, values), evaluate(constraint.right, values)
        except ZeroDivisionError:
            continue
        if not constraint.holds(left, right):
            return ", ".join(f"{v} = {size}" for v, size in values.items())
    return None


def _never_zero(difference: Dim) -> bool:
    """True if the coefficients have a common divisor that the constant does not have: 2*n + 1."""
    assert isinstance(difference, TypeId | Unknown | DimExpr)
    if not isinstance(difference, DimExpr):
        return False
    terms = dict(difference.terms)
    constant = terms.pop(frozenset(), 0)
    return bool(terms) and constant % math.gcd(*terms.values()) != 0


def mentions_made(dim: Dim) -> bool:
    """True if a data-dependent size occurs in a dim."""
    return any(isinstance(v, DataDependentDim) for v in variables(resolve_dim(dim)))


def made_answer(left: Dim, relation: str, right: Dim) -> bool | None:
    """The assumption of shape rules about data-dependent sizes: an axis of such a size is not an axis of extent 1,
    so that it is never repeated, and it is not empty where a rule asks. Elaboration checks it."""
    if relation == AT_LEAST or not (mentions_made(left) or mentions_made(right)):
        return None
    number, dim = (left, right) if isinstance(left, int) else (right, left)
    return relation != EQUAL if number == 1 or (number == 0 and _is_product(resolve_dim(dim))) else None


def _is_product(dim: Dim) -> bool:
    """True if a dim is a variable, or a product of variables and a positive number: the size of some axes."""
    if not isinstance(dim, DimExpr):
        return isinstance(dim, TypeId | Unknown)
    return len(dim.terms) == 1 and all(
        coefficient > 0 and all(isinstance(factor, TypeId | Unknown) for factor, _ in monomial)
        for monomial, coefficient in dim.terms
    )


# ---- the facts in force

_NOTHING = Facts()
_current: ContextVar[Facts] = ContextVar("facts", default=_NOTHING)


def facts() -> Facts:
    """The facts in force."""
    return _current.get()


@contextlib.contextmanager
def assume_facts(known: Facts | Iterable[DimConstraint]) -> Iterator[Facts]:
    """Put facts in force, before the previous ones."""
    token = _current.set(known if isinstance(known, Facts) else Facts(known, _current.get()))
    try:
        yield _current.get()
    finally:
        _current.reset(token)
