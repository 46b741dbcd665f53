"""Elementary functions of float64 as TIR expressions, without branches, so that they vectorize.

They are right over the whole range (subnormal numbers, infinities, NaN, the sign of 0). The series are those of Taylor,
long enough that what is left out is less than 2**-57 of the result. With all roundings exp, exp2 and log are within 1
unit in the last place, log1p within 1.2, expm1, log2, log10 and the sigmoid function made of exp within 2, tanh
within 3.

    exp      x = n ln2 + r, |r| <= ln2/2:           e**x = 2**n (1 + r + p),  p = r**2/2 + .. + r**13/13!
    expm1    2**n (r + p) + (2**n - 1)
    exp2     x = n + r, |r| <= 1/2:                 2**n e**(r ln2)
    log      x = 2**k (1 + f), 1 + f in [sqrt(1/2), sqrt(2)), s = f / (2 + f):
             log(1 + f) = 2 s + s R,  R = 2/3 s**2 + 2/5 s**4 + .. + 2/21 s**20;  2 s = f - f**2/2 + s f**2/2
    log1p    the same for x = f in that interval; else log(u) + (x - (u - 1)) / u for u = 1 + x as it is rounded
    tanh     -t / (t + 2),  t = expm1(-2 |x|)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from relay.ops.notation import Element
from relay.ops.tir.scalar import let, select
from relay.ops.tir.tvm_modules import tirx

_EXP = tuple(1 / math.factorial(k) for k in range(13, 1, -1))
_LOG = tuple(2 / (2 * k + 1) for k in range(10, 0, -1))
_LN2, _LOG2_E, _LOG10_E = 0.6931471805599453, 1.4426950408889634, 0.4342944819032518
# of each pair the first has so few bits that its multiples by exponents are exact
_LN2_HIGH, _LN2_LOW = 0.6931471806019545, -4.2009150726810846e-11
_LOG10_2_HIGH, _LOG10_2_LOW = 0.3010299956640665, -8.532344317057107e-14
_ROUND = 1.5 * 2**52  # after adding it the integer nearest to a number stands in the low bits
_ROUND_BITS = 0x4338000000000000
_EXPONENT_BIAS = 1023
_MANTISSA_BITS = 52
_ROOT_BITS = 0x3FE6A09E667F3BCD  # of sqrt(1/2)


def double(number: float) -> Element:
    return tirx.const(number, "float64")


def _integer(number: int) -> Element:
    return tirx.const(number, "int64")


def _bits(x: Element) -> Element:
    return tirx.reinterpret("int64", x)


def from_bits(bits: Element) -> Element:
    return tirx.reinterpret("float64", bits)


def horner(x: Element, coefficients: Sequence[float]) -> Element:
    """A polynomial, the highest power's coefficient first."""
    result = double(coefficients[0])
    for coefficient in coefficients[1:]:
        result = result * x + double(coefficient)
    return result


def _clamp(x: Element, low: float, high: float) -> Element:
    """Comparisons with NaN are false, so it passes."""
    return select(tirx.LT(x, double(low)), double(low), select(tirx.GT(x, double(high)), double(high), x))


# ---- exp


def _power_of_two(n: Element) -> Element:
    """2**n for n in [-1022, 1023]."""
    return from_bits((n + _integer(_EXPONENT_BIAS)) << _integer(_MANTISSA_BITS))


def _scale_by_power(value: Element, n: Element) -> Element:
    """value 2**n, in two factors, so that neither leaves the range of exponents."""
    half = n >> _integer(1)
    return value * _power_of_two(half) * _power_of_two(n - half)


def _as_rounded(x: Element) -> Element:
    """The number again, as something that TVM's rules for sums do not look into."""
    return from_bits(_bits(x))


def _reduce_argument(x: Element, joined: Callable[[Element, Element, Element], Element]) -> Element:
    """`joined(r, p, n)` for x = n ln2 + r and e**r - 1 = r + p; x is a variable in [-746, 710] or NaN."""

    def with_integer(t: Element, n: Element) -> Element:
        high, low = x - n * double(_LN2_HIGH), n * double(_LN2_LOW)  # the first is exact
        return let(high, lambda high: let(low, lambda low: with_parts(t, high, low)))

    def with_parts(t: Element, high: Element, low: Element) -> Element:
        return let(_as_rounded(high - low), lambda r: _series(r, (high - r) - low, t, joined))

    shifted = x * double(_LOG2_E) + double(_ROUND)
    return let(shifted, lambda t: let(t - double(_ROUND), lambda n: with_integer(t, n)))


def _series(
    r: Element, lost: Element, shifted: Element, joined: Callable[[Element, Element, Element], Element]
) -> Element:
    """`joined(r, p, n)` for a variable r, to which `lost` was to be added."""
    exponent = _bits(shifted) - _integer(_ROUND_BITS)
    p = horner(r, _EXP) * r * r + lost
    return let(exponent, lambda n: let(p, lambda p: joined(r, p, n)))


def _exponential(r: Element, p: Element, n: Element) -> Element:
    """2**n (1 + r + p), rounded nearly once."""

    def with_sum(whole: Element) -> Element:
        return _scale_by_power(whole + (p + (r - (whole - double(1.0)))), n)

    return let(_as_rounded(r + double(1.0)), with_sum)


def exp(x: Element) -> Element:
    # beyond these bounds the results are 0 and infinity
    return let(_clamp(x, -746.0, 710.0), lambda c: _reduce_argument(c, _exponential))


def exp2(x: Element) -> Element:
    def in_range(c: Element) -> Element:
        def rest(t: Element, n: Element) -> Element:
            return let((c - n) * double(_LN2), lambda r: _series(r, double(0.0), t, _exponential))

        return let(c + double(_ROUND), lambda t: let(t - double(_ROUND), lambda n: rest(t, n)))

    return let(_clamp(x, -1076.0, 1025.0), in_range)


def expm1(x: Element) -> Element:
    def expm1_of_parts(r: Element, p: Element, n: Element) -> Element:
        def small_form(power: Element) -> Element:
            return power * (r + p) + (power - double(1.0))

        near = let(_power_of_two(tirx.min(n, _integer(_EXPONENT_BIAS))), small_form)
        return select(tirx.GT(n, _integer(60)), _exponential(r, p, n) - double(1.0), near)

    value = let(_clamp(x, -60.0, 710.0), lambda c: _reduce_argument(c, expm1_of_parts))
    return select(tirx.EQ(x, double(0.0)), x, value)  # of -0, too


# ---- log


def _tail(f: Element, joined: Callable[[Element, Element], Element]) -> Element:
    """`joined(f**2/2, s (f**2/2 + R))`: log(1 + f) is f less the first, plus the second."""

    def of_quotient(s: Element, half_square: Element) -> Element:
        square = s * s
        series = let(square, lambda z: horner(z, _LOG) * z)
        return let(s * (half_square + series), lambda t: joined(half_square, t))

    return let(f / (f + double(2.0)), lambda s: let(f * f * double(0.5), lambda h: of_quotient(s, h)))


def _logarithm(joined: Callable[[Element, Element], Element]) -> Callable[[Element], Element]:
    """The logarithm that `joined(k, f)` gives for 2**k (1 + f)."""

    def logarithm_of(x: Element) -> Element:
        smallest_normal, lift = 2.0**-1022, 54
        tiny = tirx.LT(x, double(smallest_normal))

        def of_normal(y: Element) -> Element:
            exponent = (_bits(y) - _integer(_ROOT_BITS)) >> _integer(_MANTISSA_BITS)
            return let(exponent, lambda e: with_exponent(y, e))

        def with_exponent(y: Element, e: Element) -> Element:
            f = from_bits(_bits(y) - (e << _integer(_MANTISSA_BITS))) - double(1.0)
            k = tirx.Cast("float64", e) - select(tiny, double(lift), double(0.0))
            return let(f, lambda f: let(k, lambda k: joined(k, f)))

        infinity, not_a_number = double(math.inf), double(math.nan)
        value = let(select(tiny, x * double(2.0**lift), x), of_normal)
        value = select(tirx.EQ(x, infinity), infinity, value)
        outside = select(tirx.EQ(x, double(0.0)), double(-math.inf), not_a_number)
        return select(tirx.GT(x, double(0.0)), value, outside)

    return logarithm_of


def _natural_logarithm(k: Element, f: Element) -> Element:
    return _tail(f, lambda h, t: k * double(_LN2_HIGH) - ((h - (t + k * double(_LN2_LOW))) - f))


def _of_one_plus(f: Element) -> Element:
    return _tail(f, lambda h, t: f - (h - t))


def _binary(k: Element, f: Element) -> Element:
    return k + _of_one_plus(f) * double(_LOG2_E)


def _decimal(k: Element, f: Element) -> Element:
    return k * double(_LOG10_2_HIGH) + (k * double(_LOG10_2_LOW) + _of_one_plus(f) * double(_LOG10_E))


log = _logarithm(_natural_logarithm)
log2 = _logarithm(_binary)
log10 = _logarithm(_decimal)


def log1p(x: Element) -> Element:
    def log1p_of_sum(u: Element) -> Element:
        usual = tirx.And(tirx.GT(x, double(-1.0)), tirx.LT(x, double(2.0**53)))
        lost = select(usual, (x - (u - double(1.0))) / u, double(0.0))
        return log(u) + lost

    near_zero = tirx.And(tirx.GT(x, double(-0.2928)), tirx.LT(x, double(0.4142)))
    return select(near_zero, _of_one_plus(x), let(x + double(1.0), log1p_of_sum))


# ---- tanh


def tanh(x: Element) -> Element:
    def of_size(a: Element) -> Element:
        t = expm1(a * double(-2.0))
        value = let(t, lambda t: (double(0.0) - t) / (t + double(2.0)))
        return let(value, lambda v: select(tirx.LT(x, double(0.0)), double(0.0) - v, v))

    size = let(tirx.abs(x), lambda a: select(tirx.GT(a, double(22.0)), double(22.0), a))  # from where it is 1
    return select(tirx.EQ(x, double(0.0)), x, let(size, of_size))
