"""Multi-precision real numbers as elements of NumPy's object arrays.

NumPy computes `a + b` of such arrays with the elements' `+`, and `numpy.exp(a)` with their method `exp`, so the
references of operators run on them as they are. Python's `decimal` does the arithmetic, with `digits` digits; sin, cos
and atan are sums of their Taylor series after a reduction of the argument.
"""

from __future__ import annotations

import contextlib
import decimal
import functools
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any, TypeAlias, Union

import numpy as np

_SPARE = 15  # digits, against the rounding of intermediate results

Number: TypeAlias = Union["ExactReal", float, int]


@contextlib.contextmanager
def digits(number: int) -> Iterator[None]:
    """Compute with this many digits. Overflow gives infinities, and what is undefined is NaN."""
    with decimal.localcontext(prec=number, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN) as context:
        context.clear_traps()
        yield


def exact_array(array: np.ndarray) -> np.ndarray:
    """The numbers of an array of floats, none of them rounded."""
    found = np.empty(array.shape, object)
    found.reshape(-1)[:] = [ExactReal(Decimal(float(x))) for x in array.reshape(-1)]
    return found


def _decimal(number: Any) -> Decimal:
    return number.value if isinstance(number, ExactReal) else Decimal(float(number))


class ExactReal:
    """One number."""

    __slots__ = ("value",)

    def __init__(self, value: Decimal) -> None:
        self.value = value

    def __float__(self) -> float:
        return float(self.value)

    def __repr__(self) -> str:
        return f"Exact({self.value})"

    # ---- arithmetic

    def __add__(self, other: Number) -> ExactReal:
        return ExactReal(self.value + _decimal(other))

    def __radd__(self, other: Number) -> ExactReal:
        return ExactReal(_decimal(other) + self.value)

    def __sub__(self, other: Number) -> ExactReal:
        return ExactReal(self.value - _decimal(other))

    def __rsub__(self, other: Number) -> ExactReal:
        return ExactReal(_decimal(other) - self.value)

    def __mul__(self, other: Number) -> ExactReal:
        return ExactReal(self.value * _decimal(other))

    __rmul__ = __mul__

    def __truediv__(self, other: Number) -> ExactReal:
        return ExactReal(self.value / _decimal(other))

    def __rtruediv__(self, other: Number) -> ExactReal:
        return ExactReal(_decimal(other) / self.value)

    def __pow__(self, other: Number) -> ExactReal:
        return ExactReal(self.value ** _decimal(other))

    def __neg__(self) -> ExactReal:
        return ExactReal(-self.value)

    def __abs__(self) -> ExactReal:
        return ExactReal(abs(self.value))

    # ---- comparisons

    def __eq__(self, other: object) -> bool:
        return self.value == _decimal(other)

    def __lt__(self, other: Number) -> bool:
        return self.value < _decimal(other)

    def __le__(self, other: Number) -> bool:
        return self.value <= _decimal(other)

    def __gt__(self, other: Number) -> bool:
        return self.value > _decimal(other)

    def __ge__(self, other: Number) -> bool:
        return self.value >= _decimal(other)

    __hash__ = None  # type: ignore[assignment]

    # ---- functions, by NumPy's names

    def sqrt(self) -> ExactReal:
        return ExactReal(self.value.sqrt())

    def exp(self) -> ExactReal:
        return ExactReal(self.value.exp())

    def log(self) -> ExactReal:
        return ExactReal(self.value.ln())

    def log2(self) -> ExactReal:
        return ExactReal(self.value.ln() / Decimal(2).ln())

    def log10(self) -> ExactReal:
        return ExactReal(self.value.log10())

    def expm1(self) -> ExactReal:
        return ExactReal(_without_cancelling(self.value, lambda x: x.exp() - 1))

    def log1p(self) -> ExactReal:
        return ExactReal(_without_cancelling(self.value, lambda x: (1 + x).ln()))

    def sinh(self) -> ExactReal:
        return ExactReal(_without_cancelling(self.value, lambda x: (x.exp() - (-x).exp()) / 2))

    def cosh(self) -> ExactReal:
        return ExactReal((self.value.exp() + (-self.value).exp()) / 2)

    def tanh(self) -> ExactReal:
        if abs(self.value) > 10**4:
            return ExactReal(Decimal(1).copy_sign(self.value))
        return self.sinh() / self.cosh()

    def sin(self) -> ExactReal:
        return ExactReal(_sine(self.value, Decimal(0)))

    def cos(self) -> ExactReal:
        return ExactReal(_sine(self.value, Decimal(1)))

    def tan(self) -> ExactReal:
        return self.sin() / self.cos()

    def arctan(self) -> ExactReal:
        return ExactReal(_arctangent(self.value))


def _without_cancelling(x: Decimal, function: Callable[[Decimal], Decimal]) -> Decimal:
    """A function that is about x near 0, where it takes numbers near 1 apart."""
    if not x.is_finite() or not x:
        return function(x) if x else x
    with decimal.localcontext() as context:
        context.prec += max(0, -x.adjusted()) + 2
        found = function(x)
    return +found


@functools.lru_cache(8)
def _pi(precision: int) -> Decimal:
    """Pi by Machin's formula, 16 atan(1/5) - 4 atan(1/239)."""
    with digits(precision):
        return 16 * _series_of_arctangent(1 / Decimal(5)) - 4 * _series_of_arctangent(1 / Decimal(239))


def _series_of_arctangent(x: Decimal) -> Decimal:
    total, power, square, k = x, x, x * x, 1
    while True:
        power, k = -power * square, k + 2
        following = total + power / k
        if following == total:
            return total
        total = following


def _arctangent(x: Decimal) -> Decimal:
    """By atan(x) = 2 atan(x / (1 + sqrt(1 + x x))), until the series converges quickly."""
    with decimal.localcontext() as context:
        context.prec += _SPARE
        if x.is_nan() or not x:
            return x
        if x.is_infinite():
            return (_pi(context.prec) / 2).copy_sign(x)
        halved = 0
        while abs(x) > Decimal("0.05"):
            x, halved = x / (1 + (1 + x * x).sqrt()), halved + 1
        found = _series_of_arctangent(x) * (1 << halved)
    return +found


def _sine(x: Decimal, quarters: Decimal) -> Decimal:
    """sin(x + quarters pi / 2)."""
    if not x.is_finite():
        return Decimal("NaN")
    with decimal.localcontext() as context:
        context.prec += _SPARE + 2 * max(0, x.adjusted())
        half = _pi(context.prec) / 2
        turns = (x / half).to_integral_value()
        rest, turns = x - turns * half, (turns + quarters) % 4
        odd = turns % 2 != 0
        term = total = Decimal(1) if odd else rest
        k = 0 if odd else 1
        while True:
            term, k = -term * rest * rest / ((k + 1) * (k + 2)), k + 2
            following = total + term
            if following == total:
                break
            total = following
        found = -total if turns in (2, 3, -1, -2) else total
    return +found
