"""Upper bounds of dims, from those of the sizes in them."""

from __future__ import annotations

from relay.ir.dims import (
    LARGEST_SIZE,
    DataDependentDim,
    Dim,
    DimExpr,
    resolve_dim,
)
from relay.ir.sizes.polynomials import Extremum, Factor, Quotient


def upper_bound(dim: Dim) -> int:
    """A number that the dim is never above."""
    dim = resolve_dim(dim)
    if isinstance(dim, int):
        return dim
    if not isinstance(dim, DimExpr):
        return _factor_bound(dim)  # type: ignore[arg-type]
    total = 0
    for monomial, coefficient in dim.terms:
        if coefficient > 0 or not monomial:
            product = coefficient
            for factor, power in monomial:
                product *= _factor_bound(factor) ** power
            total += product
    return total


def may_overflow(dim: Dim) -> bool:
    """True if the dim, or a quotient's dividend in it, may not fit in int64."""
    dim = resolve_dim(dim)
    if upper_bound(dim) >= 2**63:
        return True
    factors = [factor for monomial, _ in dim.terms for factor, _ in monomial] if isinstance(dim, DimExpr) else []
    return any(may_overflow(part) for factor in factors for part in _parts(factor))


def _parts(factor: Factor) -> tuple[Dim, ...]:
    match factor:
        case Quotient(dividend, divisor):
            return dividend, divisor
        case Extremum(_, dims):
            return tuple(dims)
        case _:
            return ()


def _factor_bound(factor: Factor) -> int:
    match factor:
        case Quotient(dividend, divisor):
            return max(upper_bound(dividend), 0) // (max(divisor, 1) if isinstance(divisor, int) else 1)
        case Extremum(largest, dims):
            return max((max if largest else min)(map(upper_bound, dims)), 0)
        case DataDependentDim():
            return factor.upper_bound
        case _:
            return LARGEST_SIZE
