"""Dims: the extents of axes, with their arithmetic, and the variables of types, some of which are dims.

    Dim  d ::= 0 | 1 | 2 | ..  | n | Any | d + d | d - d | d * d | d // d | d % d | max(d, ..) | min(d, ..)

A dim that is neither a number, a variable nor `Any` is kept in normal form, as an integer polynomial over variables,
quotients and extrema (`sizes/polynomials.py`), so that dims whose polynomials are equal compare equal:

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
from relay.ir.sizes import bounds, polynomials
from relay.ir.sizes.polynomials import ONE, Extremum, Factor, Polynomial, Quotient, Sum, polynomial_of

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


# ---- dims


class DimExpr(Arithmetic, Sum):
    """A dim that is neither a number nor a bare variable: monomials with their coefficients, none of which is 0."""

    __slots__ = ()


Dim: TypeAlias = int | AnyDim | TypeId | Unknown | DimExpr


def dim_of(polynomial: Polynomial) -> Dim:
    """The dim of a polynomial: a number or a bare variable where it is one."""
    if not polynomial:
        return 0
    if len(polynomial) == 1:
        ((monomial, coefficient),) = polynomial.items()
        if not monomial:
            return coefficient
        if coefficient == 1 and len(monomial) == 1:
            ((factor, power),) = monomial
            if power == 1 and isinstance(factor, TypeId | Unknown):
                return factor
    return DimExpr(frozenset(polynomial.items()))


def _factor_dim(factor: Quotient | Extremum) -> Dim:
    return DimExpr(frozenset({(frozenset({(factor, 1)}), 1)}))


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
    return dim_of(polynomials.add(polynomial_of(left), polynomial_of(right), sign))


def multiply(left: Dim, right: Dim) -> Dim:
    """left * right"""
    if left.__class__ is int and right.__class__ is int:  # most are
        return left * right
    left, right = resolve_dim(left), resolve_dim(right)
    if isinstance(left, int) and isinstance(right, int):
        return left * right
    if left is ANY or right is ANY:
        return ANY
    return dim_of(polynomials.multiply(polynomial_of(left), polynomial_of(right)))


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
    whole, rest = map(dim_of, polynomials.split(polynomial_of(left), polynomial_of(right)))
    return add(whole, _quotient(rest, right)) if rest != 0 else whole


def _quotient(left: Dim, right: Dim) -> Dim:
    """left // right, of which nothing can be taken out."""
    if isinstance(right, int):
        if isinstance(left, int):
            return left // right
        polynomial = polynomial_of(left)
        # floor((g*a + r) / (g*c)) = floor(a / c) for 0 <= r < g
        common = math.gcd(right, *(c for m, c in polynomial.items() if m))
        if common > 1:
            left, right = dim_of({m: c // common for m, c in polynomial.items() if c // common}), right // common
            return floor_divide(left, right)
        if len(polynomial) == 1:  # (a // b) // c = a // (b*c)
            ((monomial, coefficient),) = polynomial.items()
            (factor, power), *others = monomial
            if isinstance(factor, Quotient) and coefficient == power == 1 and not others:
                inner = factor.divisor
                if isinstance(inner, int) and inner > 0 and right > 0:
                    return floor_divide(factor.dividend, inner * right)
    return _factor_dim(Quotient(left, right))


def terms(dim: Dim) -> Iterator[tuple[Dim, bool]]:
    """The terms of a sum without their signs, and whether each is added."""
    for monomial, coefficient in polynomial_of(dim).items():
        yield dim_of({monomial: abs(coefficient)}), coefficient > 0


def constant_of(dim: Dim) -> int:
    """The number in a sum."""
    return polynomial_of(dim).get(ONE, 0)


def divide_exactly(left: Dim, right: Dim) -> Dim | None:
    """The polynomial q with left == q * right, or None if there is none with integer coefficients."""
    left, right = resolve_dim(left), resolve_dim(right)
    quotient = polynomials.divide_exactly(polynomial_of(left), polynomial_of(right))
    return None if quotient is None else dim_of(quotient)


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
    return bounds.lower_bound(polynomial_of(dim), of or (lambda variable: 0))


def without_quotient(dim: Dim) -> Dim | None:
    """For c * (q // d) - k another dim, without the quotient, which is negative exactly where this one is: q // d is at
    least n where q is at least d * n. None for other dims."""
    terms = dict(polynomial_of(dim))
    constant = terms.pop(ONE, 0)
    if len(terms) != 1:
        return None
    ((monomial, coefficient),) = terms.items()
    found = bounds.quotient_of(monomial)
    if found is None or coefficient <= 0:
        return None
    dividend, divisor = found
    return subtract(dividend, divisor * -(constant // coefficient))


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
