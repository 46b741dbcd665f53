"""Variables of types, and dims: the extents of axes, with their arithmetic.

    Dim  d ::= 0 | 1 | 2 | ..  | n | Any | d + d | d - d | d * d | d // d | d % d | max(d, ..) | min(d, ..)

A dim that is neither a number, a variable nor `Any` is kept in normal form, as an integer polynomial over variables,
quotients and extrema, so that dims whose polynomials are equal compare equal:

    2*n + n == 3*n        (n + 1)*(n - 1) == n*n - 1        (2*n + 3)//2 == n + 1        (n//2)*2 is not n

`a % b` stands for `a - b*(a//b)`. Division rounds down, as in Python. Variables are extents, so they are not negative;
a divisor is taken not to be 0. Arithmetic with `Any` gives `Any`.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, TypeAlias

import attrs

from relay.errors import InternalError, Span

if TYPE_CHECKING:
    from relay.ir.types import Base, BaseClass, Shape, Type


class Kind(enum.Enum):
    """The kind of a type variable: what it stands for."""

    Type = "Type"
    BaseType = "BaseType"
    Dim = "Dim"
    Shape = "Shape"
    Constraint = "Constraint"
    Effect = "Effect"


class Arithmetic:
    """Python's arithmetic operators on dims."""

    __slots__ = ()

    def __add__(self, other: object) -> Dim:
        return _operate(add, self, other)

    def __radd__(self, other: object) -> Dim:
        return _operate(add, other, self)

    def __sub__(self, other: object) -> Dim:
        return _operate(subtract, self, other)

    def __rsub__(self, other: object) -> Dim:
        return _operate(subtract, other, self)

    def __mul__(self, other: object) -> Dim:
        return _operate(multiply, self, other)

    def __rmul__(self, other: object) -> Dim:
        return _operate(multiply, other, self)

    def __floordiv__(self, other: object) -> Dim:
        return _operate(floor_divide, self, other)

    def __rfloordiv__(self, other: object) -> Dim:
        return _operate(floor_divide, other, self)

    def __mod__(self, other: object) -> Dim:
        return _operate(modulo, self, other)

    def __rmod__(self, other: object) -> Dim:
        return _operate(modulo, other, self)

    def __neg__(self) -> Dim:
        return _operate(subtract, 0, self)


def _operate(operation: Callable[[Dim, Dim], Dim], left: object, right: object) -> Dim:
    for operand in (left, right):
        if isinstance(operand, TypeId | Unknown) and operand.kind is not Kind.Dim:
            raise TypeError(f"{operand} is of kind {operand.kind.value}, and only dims have arithmetic")
        if isinstance(operand, bool) or not isinstance(operand, int | TypeId | Unknown | DimExpr | AnyDim):
            return NotImplemented  # type: ignore[no-any-return]
    return operation(left, right)  # type: ignore[arg-type]


@attrs.frozen(eq=False)
class TypeId(Arithmetic):
    """A named type variable: bound by a quantifier, or rigid inside the function whose annotation names it. One of kind
    Dim in a finished module is the extent of an axis of an argument."""

    name: str
    kind: Kind

    def __str__(self) -> str:
        return self.name

    def __iter__(self) -> Iterator[TypeId]:
        """`(*s, 4)` is a shape that holds the shape variable s. Raises TypeError for other kinds."""
        if self.kind is not Kind.Shape:
            raise TypeError(f"{self.name} is not a shape variable, and `*` has no meaning for it")
        yield self


@attrs.frozen(eq=False)
class DataDependentDim(TypeId):
    """A data-dependent size: bound in a block by `BindDim`, and a number in the rest of it. It may be 0 or 1, and
    more than an int32 holds only where it `is_wide`."""

    is_wide: bool = False

    @property
    def upper_bound(self) -> int:
        """The largest number that it may be."""
        return WIDEST_SIZE if self.is_wide else LARGEST_SIZE

    def __iter__(self) -> Iterator[TypeId]:
        raise TypeError(f"{self.name} is not a shape variable, and `*` has no meaning for it")


def made_dim(name: str, is_wide: bool = False) -> DataDependentDim:
    """A new data-dependent size."""
    return DataDependentDim(name, Kind.Dim, is_wide)


@attrs.define(eq=False)
class Unknown(Arithmetic):
    """A variable of the type checker's solver. It exists only while a program is checked; no finished module holds one.

    `binding` is its solution. A base variable made by a literal holds in `literals` the values that the base type has
    to represent. `watchers` are the deferred constraints that wait for it. A dim with a `hint` is the extent of an axis
    of an argument, which has this size in the call that is being elaborated; it counts as known. A `rigid` one stands
    for any argument of a call, as an annotation says, and is never bound to anything else. A `weak` base is that of
    integers which only literals and counts have been so far: a float that meets them converts them.
    """

    kind: Kind
    name: str = "_"
    binding: Type | Base | Dim | Shape | None = None
    literals: tuple[Literal, ...] = ()
    watchers: list[Callable[[], None]] = attrs.field(factory=list)
    classes: frozenset[BaseClass] | None = None  # the classes that a base variable may still take; None: all
    hint: int | None = None
    rigid: bool = False
    weak: bool = False

    def __str__(self) -> str:
        return self.name


@attrs.frozen(eq=False)
class Literal:
    """A Python number in the source, whose dtype its use decides."""

    value: int | float
    span: Span | None


class AnyDim(Arithmetic, enum.Enum):
    """The type of `ANY`."""

    ANY = "Any"

    def __str__(self) -> str:
        return "Any"


ANY = AnyDim.ANY
"""A dim that is known only at run time. Two are never equal without a check."""


LARGEST_SIZE = 2**31 - 1
"""The largest size of an axis of an argument that a program has as a variable, and of a data-dependent one."""

WIDEST_SIZE = 2**46
"""The largest data-dependent size of numbers of 64 bits: more than any memory holds."""


def no_size(dim: DataDependentDim) -> str:
    """The error text for a number that is not a valid size."""
    return f"a size must be a number from 0 to {dim.upper_bound}"


# ---- the normal form


@attrs.frozen(cache_hash=True)
class Quotient:
    """`dividend // divisor`, where that is not a polynomial."""

    dividend: Dim
    divisor: Dim

    def __str__(self) -> str:
        return f"{_factor(self.dividend)}//{_factor(self.divisor)}"


@attrs.frozen(cache_hash=True)
class Extremum:
    """The largest or smallest of several dims."""

    largest: bool
    dims: frozenset[Dim]

    def __str__(self) -> str:
        return f"{'max' if self.largest else 'min'}({', '.join(sorted(map(str, self.dims)))})"


Factor: TypeAlias = TypeId | Unknown | Quotient | Extremum
Monomial: TypeAlias = frozenset[tuple[Factor, int]]
"""Factors with their powers, which are positive. The empty one is 1."""

_Polynomial: TypeAlias = dict[Monomial, int]
_ONE: Monomial = frozenset()


@attrs.frozen(cache_hash=True, repr=False)
class DimExpr(Arithmetic):
    """A dim that is neither a number nor a bare variable: monomials with their coefficients, none of which is 0."""

    terms: frozenset[tuple[Monomial, int]]

    def __str__(self) -> str:
        return _sum_text(dict(self.terms))

    def __repr__(self) -> str:
        return f"<dim {self}>"


Dim: TypeAlias = int | AnyDim | TypeId | Unknown | DimExpr


def _polynomial(dim: Dim) -> _Polynomial:
    match dim:
        case int():
            return {_ONE: dim} if dim else {}
        case DimExpr(terms):
            return dict(terms)
        case TypeId() | Unknown():
            return {frozenset({(dim, 1)}): 1}
        case _:
            raise InternalError(f"{dim} has no normal form")


def _dim(polynomial: _Polynomial) -> Dim:
    """The dim of a polynomial: a number or a bare variable where it is one."""
    terms = {m: c for m, c in polynomial.items() if c}
    if not terms:
        return 0
    if len(terms) == 1:
        ((monomial, coefficient),) = terms.items()
        if not monomial:
            return coefficient
        if coefficient == 1 and len(monomial) == 1:
            ((factor, power),) = monomial
            if power == 1 and isinstance(factor, TypeId | Unknown):
                return factor
    return DimExpr(frozenset(terms.items()))


def _factor_dim(factor: Factor) -> Dim:
    return factor if isinstance(factor, TypeId | Unknown) else DimExpr(frozenset({(frozenset({(factor, 1)}), 1)}))


# ---- arithmetic


def add(left: Dim, right: Dim) -> Dim:
    """left + right"""
    return _combine(left, right, 1)


def subtract(left: Dim, right: Dim) -> Dim:
    """left - right"""
    return _combine(left, right, -1)


def _combine(left: Dim, right: Dim, sign: int) -> Dim:
    if left.__class__ is int and right.__class__ is int:  # most are
        return left + sign * right
    left, right = resolve_dim(left), resolve_dim(right)
    if isinstance(left, int) and isinstance(right, int):
        return left + sign * right
    if left is ANY or right is ANY:
        return ANY
    result = _polynomial(left)
    for monomial, coefficient in _polynomial(right).items():
        result[monomial] = result.get(monomial, 0) + sign * coefficient
    return _dim(result)


def multiply(left: Dim, right: Dim) -> Dim:
    """left * right"""
    if left.__class__ is int and right.__class__ is int:  # most are
        return left * right
    left, right = resolve_dim(left), resolve_dim(right)
    if isinstance(left, int) and isinstance(right, int):
        return left * right
    if left is ANY or right is ANY:
        return ANY
    result: _Polynomial = {}
    for m1, c1 in _polynomial(left).items():
        for m2, c2 in _polynomial(right).items():
            monomial = _times(m1, m2)
            result[monomial] = result.get(monomial, 0) + c1 * c2
    return _dim(result)


def _times(left: Monomial, right: Monomial) -> Monomial:
    if not left or not right:
        return left or right
    powers = dict(left)
    for factor, power in right:
        powers[factor] = powers.get(factor, 0) + power
    return frozenset(powers.items())


def floor_divide(left: Dim, right: Dim) -> Dim:
    """left // right, rounded down. Raises ZeroDivisionError for the number 0 as divisor."""
    left, right = resolve_dim(left), resolve_dim(right)
    if isinstance(left, int) and isinstance(right, int):
        return left // right
    if left is ANY or right is ANY:
        return ANY
    if right == 0:
        raise ZeroDivisionError("a dim is divided by 0")
    if isinstance(right, int) and right < 0:
        left, right = subtract(0, left), -right
    exact = divide_exactly(left, right)
    if exact is not None:
        return exact
    whole, rest = _split(left, right)
    return add(whole, _quotient(rest, right)) if rest != 0 else whole


def _split(left: Dim, right: Dim) -> tuple[Dim, Dim]:
    """left = whole * right + rest, with as much as possible in `whole`. Holds for every divisor with one term."""
    divisor = _polynomial(right)
    if len(divisor) != 1:
        return 0, left
    ((monomial, coefficient),) = divisor.items()
    whole: _Polynomial = {}
    rest: _Polynomial = {}
    for m, c in _polynomial(left).items():
        quotient = _monomial_quotient(m, monomial)
        if quotient is None:
            rest[m] = c
        else:
            whole[quotient] = c // coefficient
            rest[m] = c % coefficient
    return _dim(whole), _dim(rest)


def _quotient(left: Dim, right: Dim) -> Dim:
    """left // right, of which nothing can be taken out."""
    if isinstance(right, int):
        if isinstance(left, int):
            return left // right
        polynomial = _polynomial(left)
        # floor((g*a + r) / (g*c)) = floor(a / c) for 0 <= r < g
        common = math.gcd(right, *(c for m, c in polynomial.items() if m))
        if common > 1:
            left, right = _dim({m: c // common for m, c in polynomial.items()}), right // common
            return floor_divide(left, right)
        if len(polynomial) == 1:  # (a // b) // c = a // (b*c)
            ((monomial, coefficient),) = polynomial.items()
            (factor, power), *others = monomial
            if isinstance(factor, Quotient) and coefficient == power == 1 and not others:
                inner = factor.divisor
                if isinstance(inner, int) and inner > 0 and right > 0:
                    return floor_divide(factor.dividend, inner * right)
    return _factor_dim(Quotient(left, right))


def _monomial_quotient(left: Monomial, right: Monomial) -> Monomial | None:
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


def terms(dim: Dim) -> Iterator[tuple[Dim, bool]]:
    """The terms of a sum without their signs, and whether each is added."""
    for monomial, coefficient in _polynomial(dim).items():
        yield _dim({monomial: abs(coefficient)}), coefficient > 0


def constant_of(dim: Dim) -> int:
    """The number in a sum."""
    return _polynomial(dim).get(_ONE, 0)


def divide_exactly(left: Dim, right: Dim) -> Dim | None:
    """The polynomial q with left == q * right, or None if there is none with integer coefficients."""
    left, right = resolve_dim(left), resolve_dim(right)
    rest, divisor, quotient = _polynomial(left), _polynomial(right), dict[Monomial, int]()
    if not divisor:
        return None
    order: dict[Factor, int] = {}
    for monomial in (*rest, *divisor):
        for factor, _ in monomial:
            order.setdefault(factor, len(order))

    def rank(monomial: Monomial) -> tuple[int, ...]:  # graded lexicographic, so compatible with products
        powers = [0] * len(order)
        for factor, power in monomial:
            powers[order[factor]] = power
        return sum(powers), *powers

    lead = max(divisor, key=rank)
    while rest:
        top = max(rest, key=rank)
        ratio = _monomial_quotient(top, lead)
        if ratio is None or rest[top] % divisor[lead]:
            return None
        coefficient = rest[top] // divisor[lead]
        quotient[ratio] = coefficient
        for m, c in divisor.items():
            product = _times(ratio, m)
            rest[product] = rest.get(product, 0) - coefficient * c
            if not rest[product]:
                del rest[product]
    return _dim(quotient)


def modulo(left: Dim, right: Dim) -> Dim:
    """left % right: left - right * (left // right)"""
    return subtract(left, multiply(right, floor_divide(left, right)))


def maximum(*dims: Dim) -> Dim:
    """The largest of one or more dims."""
    return _extremum(True, dims)


def minimum(*dims: Dim) -> Dim:
    """The smallest of one or more dims."""
    return _extremum(False, dims)


def _extremum(largest: bool, dims: tuple[Dim, ...]) -> Dim:
    kept: list[Dim] = []
    for dim in map(resolve_dim, dims):
        if dim is ANY:
            return ANY
        if any(_is_at_least(other, dim, largest) for other in kept):
            continue
        kept = [other for other in kept if not _is_at_least(dim, other, largest)]
        kept.append(dim)
    return kept[0] if len(kept) == 1 else _factor_dim(Extremum(largest, frozenset(kept)))


def _is_at_least(dim: Dim, other: Dim, largest: bool) -> bool:
    bound = lower_bound(subtract(dim, other) if largest else subtract(other, dim))
    return bound is not None and bound >= 0


def lower_bound(dim: Dim, of: Callable[[Factor], int | None] | None = None) -> int | None:
    """A number that the dim is never below, or None. `of` says the same of a variable; without it, it is 0."""
    dim = resolve_dim(dim)
    if isinstance(dim, AnyDim):
        return 0
    bound = _bound_of_sum(dim, of)
    return _bound_without_extremum(dim, of) if bound is None else bound


def _bound_without_extremum(dim: Dim, of: Callable[[Factor], int | None] | None) -> int | None:
    """The bound of a dim by what a maximum or minimum in it is compared with: n - min(n, m) is n - n at least."""
    for monomial, coefficient in _polynomial(dim).items():
        if len(monomial) != 1:
            continue
        ((factor, power),) = monomial
        if power == 1 and isinstance(factor, Extremum):
            rest = subtract(dim, multiply(coefficient, _factor_dim(factor)))
            bounds = [lower_bound(add(rest, multiply(coefficient, d)), of) for d in factor.dims]
            known = [b for b in bounds if b is not None]
            if factor.largest is (coefficient > 0):
                return max(known, default=None)
            return min(known) if len(known) == len(bounds) else None
    return None


def _bound_of_sum(dim: Dim, of: Callable[[Factor], int | None] | None) -> int | None:
    total = 0
    for monomial, coefficient in _polynomial(dim).items():
        if not monomial:
            total += coefficient
            continue
        if coefficient < 0:
            bound = _bound_above_bounds(dim, of)
            return _bound_without_quotient(dim, monomial, -coefficient, of) if bound is None else bound
        product = coefficient
        for factor, power in monomial:
            bound = _factor_bound(factor, of)
            if bound is None or bound < 0:
                return None
            product *= bound**power
        total += product
    return total


def _bound_above_bounds(dim: Dim, of: Callable[[Factor], int | None] | None) -> int | None:
    """The bound of a dim by what its factors are more than their bounds: where n and m are 2 at least, n*m - n is
    (2 + a)*(2 + b) - (2 + a) = 2 + a + 2*b + a*b."""
    expanded: Dim = 0
    for monomial, coefficient in _polynomial(dim).items():
        product: Dim = coefficient
        for factor, power in monomial:
            bound = _factor_bound(factor, of)
            if bound is None or bound < 0:
                return None
            for _ in range(power):  # the factor stands for what it is more than its bound
                product = multiply(product, add(_factor_dim(factor), bound))
        expanded = add(expanded, product)
    found = _polynomial(expanded)
    return found.get(_ONE, 0) if all(c >= 0 for monomial, c in found.items() if monomial) else None


def _quotient_of(monomial: Monomial) -> tuple[Dim, int] | None:
    """Dividend and divisor, if a monomial is a quotient by a positive number."""
    if len(monomial) != 1:
        return None
    ((factor, power),) = monomial
    if power != 1 or not isinstance(factor, Quotient) or not isinstance(factor.divisor, int) or factor.divisor <= 0:
        return None
    return factor.dividend, factor.divisor


def without_quotient(dim: Dim) -> Dim | None:
    """For c * (q // d) - k another dim, without the quotient, which is negative exactly where this one is: q // d is at
    least n where q is at least d * n. None for other dims."""
    terms = _polynomial(dim)
    constant = terms.pop(_ONE, 0)
    if len(terms) != 1:
        return None
    ((monomial, coefficient),) = terms.items()
    found = _quotient_of(monomial)
    if found is None or coefficient <= 0:
        return None
    dividend, divisor = found
    return subtract(dividend, divisor * -(constant // coefficient))


def _bound_without_quotient(
    dim: Dim, monomial: Monomial, count: int, of: Callable[[Factor], int | None] | None
) -> int | None:
    """The bound of a dim from which `count` times a quotient q // d is subtracted: q // d is not more than q / d, and
    not more than q // e for e <= d and q that is not negative."""
    found = _quotient_of(monomial)
    if found is None:
        return None
    dividend, divisor = found
    rest = add(dim, multiply(count, DimExpr(frozenset({(monomial, 1)}))))
    for other, coefficient in _polynomial(dim).items():
        larger = _quotient_of(other) if coefficient > 0 else None
        if larger is None or larger[0] != dividend or larger[1] > divisor:
            continue
        least = lower_bound(dividend, of)
        if least is not None and least >= 0:
            fewer = min(count, coefficient)
            less = DimExpr(frozenset({(monomial, -fewer), (other, fewer)}))  # which is not negative
            return lower_bound(subtract(dim, less), of)
    bound = lower_bound(subtract(multiply(divisor, rest), multiply(count, dividend)), of)
    return None if bound is None else -(-bound // divisor)


def _factor_bound(factor: Factor, of: Callable[[Factor], int | None] | None) -> int | None:
    match factor:
        case TypeId() | Unknown():
            return 0 if of is None else of(factor)
        case Quotient(dividend, divisor):
            bound, by = lower_bound(dividend, of), lower_bound(divisor, of)
            if isinstance(divisor, int) and divisor > 0:
                return None if bound is None else bound // divisor
            return 0 if bound is not None and bound >= 0 and by is not None and by >= 0 else None
        case Extremum(largest, dims):
            bounds = [lower_bound(d, of) for d in dims]
            known = [b for b in bounds if b is not None]
            if largest:
                return max(known, default=None)
            return min(known) if len(known) == len(bounds) else None


# ---- what a dim mentions


def variables(dim: Dim) -> Iterator[TypeId | Unknown]:
    """The variables of a dim, each perhaps several times."""
    match dim:
        case TypeId() | Unknown():
            yield dim
        case DimExpr(terms):
            for monomial, _ in terms:
                for factor, _ in monomial:
                    match factor:
                        case Quotient(dividend, divisor):
                            yield from variables(dividend)
                            yield from variables(divisor)
                        case Extremum(_, dims):
                            for inner in dims:
                                yield from variables(inner)
                        case _:
                            yield factor
        case _:
            pass


def substitute(dim: Dim, value: Callable[[TypeId | Unknown], Dim]) -> Dim:
    """The dim with every variable replaced by a dim, in normal form."""
    match dim:
        case TypeId() | Unknown():
            return value(dim)
        case DimExpr(terms):
            total: Dim = 0
            for monomial, coefficient in terms:
                product: Dim = coefficient
                for factor, power in monomial:
                    replaced = _substitute_factor(factor, value)
                    for _ in range(power):
                        product = multiply(product, replaced)
                total = add(total, product)
            return total
        case _:
            return dim


def _substitute_factor(factor: Factor, value: Callable[[TypeId | Unknown], Dim]) -> Dim:
    match factor:
        case Quotient(dividend, divisor):
            return floor_divide(substitute(dividend, value), substitute(divisor, value))
        case Extremum(largest, dims):
            return _extremum(largest, tuple(substitute(d, value) for d in dims))
        case _:
            return value(factor)


def evaluate(dim: Dim, sizes: Mapping[TypeId, int]) -> int:
    """The number that a dim is where its variables have these sizes. Raises InternalError for one that has none, and
    for `Any`."""

    def size(variable: TypeId | Unknown) -> int:
        if not isinstance(variable, TypeId) or variable not in sizes:
            raise InternalError(f"the dim {variable} has no size")
        return sizes[variable]

    number = substitute(dim, size)
    if not isinstance(number, int):
        raise InternalError(f"the dim {dim} is not a number")
    return number


def resolve_dim(dim: Dim) -> Dim:
    """The dim with the solver's variables replaced by what they were found to be."""
    if isinstance(dim, Unknown):
        while isinstance(dim, Unknown) and dim.binding is not None:
            dim = dim.binding  # type: ignore[assignment]
        return resolve_dim(dim) if isinstance(dim, DimExpr) else dim
    if isinstance(dim, DimExpr) and any(isinstance(v, Unknown) and v.binding is not None for v in variables(dim)):
        return substitute(dim, lambda v: resolve_dim(v) if isinstance(v, Unknown) else v)
    return dim


def total(dims: Iterable[Dim]) -> Dim:
    """The sum of dims."""
    result: Dim = 0
    for dim in dims:
        result = add(result, dim)
    return result


def product(dims: Iterable[Dim]) -> Dim:
    """The product of dims."""
    result: Dim = 1
    for dim in dims:
        result = multiply(result, dim)
    return result


# ---- printing


def _factor(dim: Dim) -> str:
    """A dim as an operand of `//`."""
    return str(dim) if isinstance(dim, int | TypeId | Unknown | AnyDim) else f"({dim})"


def _sum_text(terms: _Polynomial) -> str:
    remainder = _remainder_text(terms)
    if remainder is not None:
        return remainder
    constant = terms.get(_ONE, 0)
    ordered = sorted((m for m in terms if m), key=lambda m: (terms[m] < 0, -sum(p for _, p in m), _product_text(m)))
    parts = [(terms[m], m) for m in ordered]
    if constant:
        first = constant > 0 and all(c < 0 for c, _ in parts)
        parts.insert(0 if first else len(parts), (constant, _ONE))
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


def _remainder_text(terms: _Polynomial) -> str | None:
    """`a % b` for a - b*(a//b)."""
    for monomial, coefficient in terms.items():
        if coefficient < 0 and len(monomial) == 1:
            ((factor, power),) = monomial
            if isinstance(factor, Quotient) and power == 1 and factor.divisor == -coefficient:
                rest = _dim({m: c for m, c in terms.items() if m != monomial})
                if rest == factor.dividend:
                    return f"{_factor(factor.dividend)} % {factor.divisor}"
    return None
