"""Lower bounds of polynomials over variables, quotients and extrema (`polynomials.py`).

Variables are extents, so each has a bound of its own, which the caller knows. Differences are bounded by what is
compared in an extremum, by what factors are more than their bounds, and by the quotient without its rounding.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from relay.ir.sizes.polynomials import (
    ONE,
    Extremum,
    Factor,
    Monomial,
    Polynomial,
    Quotient,
    add,
    multiply,
    polynomial_of,
)

if TYPE_CHECKING:
    from relay.ir.dims import Dim

Bounds = Callable[[Factor], "int | None"]
"""A number that a variable is never below, or None."""


def lower_bound(polynomial: Polynomial, of: Bounds) -> int | None:
    """A number that a polynomial is never below, or None, from those of its variables."""
    bound = _bound_of_sum(polynomial, of)
    return _bound_without_extremum(polynomial, of) if bound is None else bound


def _bound_without_extremum(polynomial: Polynomial, of: Bounds) -> int | None:
    """The bound by what a maximum or minimum is compared with: n - min(n, m) is n - n at least."""
    for monomial, coefficient in polynomial.items():
        if len(monomial) != 1:
            continue
        ((factor, power),) = monomial
        if power == 1 and isinstance(factor, Extremum):
            rest = {m: c for m, c in polynomial.items() if m != monomial}
            bounds = [lower_bound(add(rest, polynomial_of(d), coefficient), of) for d in factor.dims]
            return _bound_of_extremum(bounds, factor.largest is (coefficient > 0))
    return None


def _bound_of_extremum(bounds: list[int | None], largest: bool) -> int | None:
    known = [b for b in bounds if b is not None]
    if largest:
        return max(known, default=None)
    return min(known) if len(known) == len(bounds) else None


def _bound_of_sum(polynomial: Polynomial, of: Bounds) -> int | None:
    total = 0
    for monomial, coefficient in polynomial.items():
        if not monomial:
            total += coefficient
            continue
        if coefficient < 0:
            bound = _bound_above_bounds(polynomial, of)
            return _bound_without_quotient(polynomial, monomial, -coefficient, of) if bound is None else bound
        product = coefficient
        for factor, power in monomial:
            bound = _factor_bound(factor, of)
            if bound is None or bound < 0:
                return None
            product *= bound**power
        total += product
    return total


def _bound_above_bounds(polynomial: Polynomial, of: Bounds) -> int | None:
    """The bound by what factors are more than their bounds: where n and m are 2 at least, n*m - n is
    (2 + a)*(2 + b) - (2 + a) = 2 + a + 2*b + a*b."""
    expanded: Polynomial = {}
    for monomial, coefficient in polynomial.items():
        product: Polynomial = {ONE: coefficient}
        for factor, power in monomial:
            bound = _factor_bound(factor, of)
            if bound is None or bound < 0:
                return None
            for _ in range(power):  # the factor stands for what it is more than its bound
                product = multiply(product, add({frozenset({(factor, 1)}): 1}, {ONE: bound}))
        expanded = add(expanded, product)
    return expanded.get(ONE, 0) if all(c >= 0 for monomial, c in expanded.items() if monomial) else None


def quotient_of(monomial: Monomial) -> tuple[Dim, int] | None:
    """Dividend and divisor, if a monomial is a quotient by a positive number."""
    if len(monomial) != 1:
        return None
    ((factor, power),) = monomial
    if power != 1 or not isinstance(factor, Quotient) or not isinstance(factor.divisor, int) or factor.divisor <= 0:
        return None
    return factor.dividend, factor.divisor


def _bound_without_quotient(polynomial: Polynomial, monomial: Monomial, count: int, of: Bounds) -> int | None:
    """The bound of a polynomial from which `count` times a quotient q // d is subtracted: q // d is not more than
    q / d, and not more than q // e for e <= d and q that is not negative."""
    found = quotient_of(monomial)
    if found is None:
        return None
    dividend, divisor = found
    for other, coefficient in polynomial.items():
        larger = quotient_of(other) if coefficient > 0 else None
        if larger is None or larger[0] != dividend or larger[1] > divisor:
            continue
        least = lower_bound(polynomial_of(dividend), of)
        if least is not None and least >= 0:
            fewer = min(count, coefficient)
            less = {monomial: -fewer, other: fewer}  # which is not negative
            return lower_bound(add(polynomial, less, -1), of)
    rest = add(polynomial, {monomial: count})
    bound = lower_bound(add(multiply({ONE: divisor}, rest), polynomial_of(dividend), -count), of)
    return None if bound is None else -(-bound // divisor)


def _factor_bound(factor: Factor, of: Bounds) -> int | None:
    match factor:
        case Quotient(dividend, divisor):
            bound = lower_bound(polynomial_of(dividend), of)
            if isinstance(divisor, int) and divisor > 0:
                return None if bound is None else bound // divisor
            by = lower_bound(polynomial_of(divisor), of)
            return 0 if bound is not None and bound >= 0 and by is not None and by >= 0 else None
        case Extremum(largest, dims):
            return _bound_of_extremum([lower_bound(polynomial_of(d), of) for d in dims], largest)
        case _:
            return of(factor)
