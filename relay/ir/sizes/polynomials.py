"""Integer polynomials over variables, quotients and extrema: the normal form of dims.

    polynomial  p ::= {monomial: coefficient, ..}           no coefficient is 0
    monomial    m ::= {(factor, power), ..}                 no power is 0; the empty one is 1
    factor      f ::= variable | d // d | max(d, ..) | min(d, ..)

Variables are opaque here: `relay.ir.dims` has them, and the arithmetic of dims.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeAlias

import attrs

from relay.errors import InternalError

if TYPE_CHECKING:
    from relay.ir.dims import Dim, TypeId, Unknown


@attrs.frozen(cache_hash=True)
class Quotient:
    """`dividend // divisor`, where that is not a polynomial."""

    dividend: Dim
    divisor: Dim

    def __str__(self) -> str:
        return f"{_operand_text(self.dividend)}//{_operand_text(self.divisor)}"


@attrs.frozen(cache_hash=True)
class Extremum:
    """The largest or smallest of several dims."""

    largest: bool
    dims: frozenset[Dim]

    def __str__(self) -> str:
        return f"{'max' if self.largest else 'min'}({', '.join(sorted(map(str, self.dims)))})"


Factor: TypeAlias = "TypeId | Unknown | Quotient | Extremum"
Monomial: TypeAlias = frozenset[tuple[Factor, int]]
Polynomial: TypeAlias = Mapping[Monomial, int]

ONE: Monomial = frozenset()


@attrs.frozen(cache_hash=True, repr=False)
class Sum:
    """A dim that is a polynomial, and neither a number nor a bare variable."""

    terms: frozenset[tuple[Monomial, int]]

    def __str__(self) -> str:
        return _sum_text(dict(self.terms))

    def __repr__(self) -> str:
        return f"<dim {self}>"


def polynomial_of(dim: Dim) -> Polynomial:
    """The polynomial of a dim. Raises InternalError for `Any`."""
    if isinstance(dim, int):
        return {ONE: dim} if dim else {}
    if isinstance(dim, Sum):
        return dict(dim.terms)
    if isinstance(dim, enum.Enum):
        raise InternalError(f"{dim} has no normal form")
    return {frozenset({(dim, 1)}): 1}


# ---- arithmetic


def add(left: Polynomial, right: Polynomial, factor: int = 1) -> Polynomial:
    """left + factor * right"""
    result = dict(left)
    for monomial, coefficient in right.items():
        result[monomial] = result.get(monomial, 0) + factor * coefficient
    return _without_zeros(result)


def multiply(left: Polynomial, right: Polynomial) -> Polynomial:
    """left * right"""
    result: dict[Monomial, int] = {}
    for m1, c1 in left.items():
        for m2, c2 in right.items():
            monomial = _times(m1, m2)
            result[monomial] = result.get(monomial, 0) + c1 * c2
    return _without_zeros(result)


def _without_zeros(terms: Polynomial) -> Polynomial:
    return {monomial: coefficient for monomial, coefficient in terms.items() if coefficient}


def _times(left: Monomial, right: Monomial) -> Monomial:
    if not left or not right:
        return left or right
    powers = dict(left)
    for factor, power in right:
        powers[factor] = powers.get(factor, 0) + power
    return frozenset(powers.items())


def _divide(left: Monomial, right: Monomial) -> Monomial | None:
    """left / right, if that is a monomial."""
    powers = dict(left)
    for factor, power in right:
        rest = powers.get(factor, 0) - power
        if rest < 0:
            return None
        if rest:
            powers[factor] = rest
        else:
            del powers[factor]
    return frozenset(powers.items())


def split(left: Polynomial, right: Polynomial) -> tuple[Polynomial, Polynomial]:
    """left = whole * right + rest, with as much as possible in `whole`. Holds for every divisor with one term."""
    if len(right) != 1:
        return {}, left
    ((monomial, coefficient),) = right.items()
    whole: dict[Monomial, int] = {}
    rest: dict[Monomial, int] = {}
    for m, c in left.items():
        quotient = _divide(m, monomial)
        if quotient is None:
            rest[m] = c
        else:
            whole[quotient] = c // coefficient
            rest[m] = c % coefficient
    return _without_zeros(whole), _without_zeros(rest)


def divide_exactly(left: Polynomial, right: Polynomial) -> Polynomial | None:
    """The polynomial q with left == q * right, or None if there is none with integer coefficients."""
    if not right:
        return None
    rest, quotient = dict(left), dict[Monomial, int]()
    order: dict[Factor, int] = {}
    for monomial in (*left, *right):
        for factor, _ in monomial:
            order.setdefault(factor, len(order))

    def rank(monomial: Monomial) -> tuple[int, ...]:  # graded lexicographic, so compatible with products
        powers = [0] * len(order)
        for factor, power in monomial:
            powers[order[factor]] = power
        return sum(powers), *powers

    lead = max(right, key=rank)
    while rest:
        top = max(rest, key=rank)
        ratio = _divide(top, lead)
        if ratio is None or rest[top] % right[lead]:
            return None
        coefficient = rest[top] // right[lead]
        quotient[ratio] = coefficient
        for m, c in right.items():
            product = _times(ratio, m)
            rest[product] = rest.get(product, 0) - coefficient * c
            if not rest[product]:
                del rest[product]
    return quotient


# ---- printing


def _operand_text(dim: Dim) -> str:
    """A dim as an operand of `//`."""
    return f"({dim})" if isinstance(dim, Sum) else str(dim)


def _sum_text(terms: Polynomial) -> str:
    remainder = _remainder_text(terms)
    if remainder is not None:
        return remainder
    constant = terms.get(ONE, 0)
    ordered = sorted((m for m in terms if m), key=lambda m: (terms[m] < 0, -sum(p for _, p in m), _product_text(m)))
    parts = [(terms[m], m) for m in ordered]
    if constant:
        first = constant > 0 and all(c < 0 for c, _ in parts)
        parts.insert(0 if first else len(parts), (constant, ONE))
    text = ""
    for coefficient, monomial in parts:
        sign = ("-" if coefficient < 0 else "") if not text else (" - " if coefficient < 0 else " + ")
        text += sign + _term_text(abs(coefficient), monomial)
    return text


def _term_text(coefficient: int, monomial: Monomial) -> str:
    if not monomial:
        return str(coefficient)
    if coefficient == 1:
        return _product_text(monomial)
    inside = _product_text(monomial)
    ((factor, _), *others) = monomial
    return f"{coefficient}*({inside})" if isinstance(factor, Quotient) and not others else f"{coefficient}*{inside}"


def _product_text(monomial: Monomial) -> str:
    alone = len(monomial) == 1 and next(iter(monomial))[1] == 1
    words: list[str] = []
    for factor, power in monomial:
        words += [f"({factor})" if isinstance(factor, Quotient) and not alone else str(factor)] * power
    return "*".join(sorted(words))


def _remainder_text(terms: Polynomial) -> str | None:
    """`a % b` for a - b*(a//b)."""
    for monomial, coefficient in terms.items():
        if coefficient < 0 and len(monomial) == 1:
            ((factor, power),) = monomial
            if isinstance(factor, Quotient) and power == 1 and factor.divisor == -coefficient:
                rest = {m: c for m, c in terms.items() if m != monomial}
                if rest == polynomial_of(factor.dividend):
                    return f"{_operand_text(factor.dividend)} % {factor.divisor}"
    return None
