"""Elementary functions as TIR expressions; circular and hyperbolic ones are in circular.

float32: branch-free polynomials, so that they vectorize, right over the whole range (subnormal results, infinities,
NaN), with a relative error below 4e-7; the coefficients are minimax fits, weighted by relative error. float64: those of
double_precision, erf and erfc of the C library. float16 and bfloat16 go through float32.

    exp      x = 2 n ln2 + r, |r| <= ln2:           e**x = 2**n 2**n (1 + r + r**2 Q(r))
    expm1    the same r + r**2 Q(r) where |x| <= ln2/2, else e**x - 1
    log      x = 2**k (1 + m), 1 + m in [sqrt(1/2), sqrt(2)):   k ln2 + m - m**2/2 + m**3 L(m)
    log1p    the same polynomial where 1 + x lies in that interval, else log(1 + x)
    tanh     x P(x**2) / R(x**2)  for |x| <= 9.02, beyond it is 1
    sigmoid  e**-|x| / (1 + e**-|x|)  or  1 / (1 + e**-|x|)
    exp2     x = 2 n + r, |r| <= 1:                 2**n 2**n e**(r ln2), with exp's polynomial
    log2     k + (m - m**2/2 + m**3 L(m)) / ln2;    log10 in the same way
    erf      x N(x**2) / D(x**2)  for |x| <= 3.93, beyond it is 1
    erfc     e**(-x**2) C(1 / (1 + 0.35 x))  for x >= 0, where x**2 is made of two parts to keep all its bits
    ndtr     e**(-x**2 / 2) T(|x|) / B(|x|)  for x < 0, with x**2 in two parts; 1 minus that for x >= 0
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from relay.ops.notation import Element
from relay.ops.tir import double_precision
from relay.ops.tir.scalar import cast, constant, dtype_of, external, let, select
from relay.ops.tir.tvm_modules import tirx

_EXP = (1.961162202e-4, 1.410447405e-3, 8.336103069e-3, 4.166126822e-2, 1.666661415e-1, 5.000003464e-1)
_LOG = (
    6.746638566e-2, -1.167565137e-1, 1.188816279e-1, -1.240558922e-1, 1.421955228e-1, -1.666799635e-1, 2.000211924e-1,
    -2.500000894e-1, 3.333331347e-1,
)  # fmt: skip
_TANH_NUMERATOR = (
    -8.436045645e-14, 5.257777547e-11, -2.018396117e-8, 1.114425322e-5, 3.103001043e-3, 1.308315694e-1, 1.0,
)  # fmt: skip
_TANH_DENOMINATOR = (2.544750751e-4, 2.449137904e-2, 4.641648233e-1, 1.0)
_ERF_NUMERATOR = (
    2.041956930e-6, 2.848081871e-4, 3.779626831e-3, 5.279034356e-2, 1.907843444e-1, 1.128379145,
)  # fmt: skip
_ERF_DENOMINATOR = (3.800390832e-5, 1.165215348e-3, 1.499747552e-2, 1.142577244e-1, 5.024109428e-1, 1.0)
_ERFC = (
    6.298304916e-2, -3.809736300e-1, 7.943329021e-1, -6.791051000e-1, 6.211140654e-1, -4.707556039e-2, 2.428348389e-1,
    1.874736529e-1, 1.984585698e-1, -4.281024488e-5,
)  # fmt: skip
_ERFC_SCALE = 0.35
_TAIL_NUMERATOR = (4.123826018e-03, 4.068376037e-02, 1.833848732e-01, 4.384967959e-01, 5.000000030e-01)
_TAIL_DENOMINATOR = (
    1.033678084e-02, 1.019854426e-01, 4.698659696e-01, 1.203124661e+00, 1.674878578e+00, 1.0,
)  # fmt: skip
_HALF_EXP = (2.158521987e-05, 2.615233033e-04, 2.604274425e-03, 2.083315049e-02, 1.249999836e-01, 0.5, 1.0)

_LN2, _LOG2_E, _LOG10_E = 0.6931471805599453, 1.4426950408889634, 0.4342944819032518
_LOG10_2_HIGH, _LOG10_2_LOW = 0.301025390625, 4.605038981195214e-6
_LN2_HIGH, _LN2_LOW = 0.693359375, -2.12194440e-4  # the first has few bits, so that its multiples are exact
_ROUND = 1.5 * 2**23 + 127  # after adding it the exponent of 2**n, for n the nearest integer, stands in the low bits
_MANTISSA_BITS = 23


def by_dtype(
    of_single: Callable[[Element], Element], of_double: Callable[[Element], Element]
) -> Callable[[Element], Element]:
    """The function that takes `of_double` for float64 and goes through `of_single` for all other floats."""

    def apply(x: Element) -> Element:
        dtype = dtype_of(x)
        return of_double(x) if dtype == "float64" else cast(of_single(cast(x, "float32")), dtype)

    return apply


def _library(name: str) -> Callable[[Element], Element]:
    return lambda x: external(name, x)


def single(number: float) -> Element:
    """A number of float32."""
    return tirx.const(number, "float32")


def horner(x: Element, coefficients: Sequence[float]) -> Element:
    """A polynomial, the highest power's coefficient first."""
    result = single(coefficients[0])
    for coefficient in coefficients[1:]:
        result = result * x + single(coefficient)
    return result


def bits_of(x: Element) -> Element:
    """The bits of a float32, as int32."""
    return tirx.reinterpret("int32", x)


def from_bits(bits: Element) -> Element:
    """The float32 with these bits."""
    return tirx.reinterpret("float32", bits)


def _clamp(x: Element, low: float, high: float) -> Element:
    """Comparisons with NaN are false, so it passes."""
    return let(
        select(tirx.GT(x, single(high)), single(high), x), lambda x: select(tirx.LT(x, single(low)), single(low), x)
    )


# ---- exp


def _expm1_reduced(r: Element) -> Element:
    """e**r - 1 for |r| <= ln2."""
    return horner(r, _EXP) * r * r + r


def _exp_single(x: Element) -> Element:
    return let(_clamp(x, -104.0, 89.0), _exp_in_range)  # beyond, the results are 0 and infinity


def exp_half_single(x: Element) -> Element:
    """e**x / 2, which overflows only where it is out of range itself."""
    return let(_clamp(x, -104.0, 90.0), lambda x: _exp_in_range(x, less=1))


def _exp_in_range(x: Element, less: int = 0) -> Element:
    """e**x / 2**less; x is a variable in [-104, 90] or NaN."""

    def remainder(t: Element, n: Element) -> Element:
        return _scale_exponential(x - n * single(2 * _LN2_HIGH) - n * single(2 * _LN2_LOW), t, single(2.0**-less))

    shifted = x * single(_LOG2_E / 2) + single(_ROUND)
    return let(shifted, lambda t: let(t - single(_ROUND), lambda n: remainder(t, n)))


def _scale_exponential(r: Element, shifted: Element, factor: Element) -> Element:
    """2**(2 n) e**r times a factor, where `shifted` is n + _ROUND: by 2**n twice, so that neither leaves the range of
    exponents, and what is below the smallest normal number is rounded once."""
    return let(_power_of_two(shifted), lambda p: (let(r, _expm1_reduced) + single(1.0)) * factor * p * p)


def _power_of_two(shifted: Element) -> Element:
    """2**n, where `shifted` is n + _ROUND, whose higher bits are shifted away."""
    return from_bits(tirx.shift_left(bits_of(shifted), tirx.const(_MANTISSA_BITS, "int32")))


def _exp2_single(x: Element) -> Element:
    def in_range(c: Element) -> Element:
        shifted = c * single(0.5) + single(_ROUND)
        return let(
            shifted,
            lambda t: _scale_exponential((c - (t - single(_ROUND)) * single(2.0)) * single(_LN2), t, single(1.0)),
        )

    return let(_clamp(x, -151.0, 129.0), in_range)


exp2 = by_dtype(_exp2_single, double_precision.exp2)
exp = by_dtype(_exp_single, double_precision.exp)


def _expm1_single(x: Element) -> Element:
    near_zero = tirx.LE(tirx.abs(x), single(0.3466))
    near = select(tirx.EQ(x, single(0)), x, _expm1_reduced(x))  # of -0, too
    return select(near_zero, near, _exp_single(x) - single(1.0))


expm1 = by_dtype(_expm1_single, double_precision.expm1)


# ---- log


def _log1p_reduced(m: Element) -> Element:
    """log(1 + m) - m for 1 + m in [sqrt(1/2), sqrt(2))."""
    return horner(m, _LOG) * m * m * m - single(0.5) * m * m


def _logarithm(joined: Callable[[Element, Element], Element]) -> Callable[[Element], Element]:
    """The logarithm that `joined(k, m)` gives for 2**k (1 + m)."""

    def logarithm_of(x: Element) -> Element:
        smallest_normal, lift = 2.0**-126, 25
        tiny = tirx.LT(x, single(smallest_normal))

        def of_normal(y: Element) -> Element:
            exponent = (bits_of(y) - 0x3F3504F3) >> _MANTISSA_BITS  # the bits of sqrt(1/2)
            return let(
                exponent,
                lambda e: let(
                    from_bits(bits_of(y) - (e << _MANTISSA_BITS)) - single(1.0),
                    lambda m: let(
                        tirx.Cast("float32", e) - select(tiny, single(lift), single(0)), lambda k: joined(k, m)
                    ),
                ),
            )

        infinity = from_bits(tirx.const(0x7F800000, "int32"))
        not_a_number = from_bits(tirx.const(0x7FC00000, "int32"))
        value = let(select(tiny, x * single(2.0**lift), x), of_normal)
        value = select(tirx.EQ(x, infinity), infinity, value)
        outside = select(tirx.EQ(x, single(0)), single(0) - infinity, not_a_number)
        return select(tirx.GT(x, single(0)), value, outside)

    return logarithm_of


def _natural_logarithm(k: Element, m: Element) -> Element:
    return m + (_log1p_reduced(m) + k * single(_LN2_LOW)) + k * single(_LN2_HIGH)


def _binary(k: Element, m: Element) -> Element:
    return k + (m + _log1p_reduced(m)) * single(_LOG2_E)


def _decimal(k: Element, m: Element) -> Element:
    return k * single(_LOG10_2_HIGH) + (k * single(_LOG10_2_LOW) + (m + _log1p_reduced(m)) * single(_LOG10_E))


_log_single = _logarithm(_natural_logarithm)
log2 = by_dtype(_logarithm(_binary), double_precision.log2)
log10 = by_dtype(_logarithm(_decimal), double_precision.log10)
log = by_dtype(_log_single, double_precision.log)


def log1p_single(x: Element) -> Element:
    near_zero = tirx.And(tirx.GT(x, single(-0.2928)), tirx.LT(x, single(0.4142)))
    return select(near_zero, x + _log1p_reduced(x), let(x + single(1.0), _log_single))


log1p = by_dtype(log1p_single, double_precision.log1p)


# ---- tanh, sigmoid


def _tanh_single(x: Element) -> Element:
    def quotient(c: Element) -> Element:
        return let(c * c, lambda s: c * horner(s, _TANH_NUMERATOR) / horner(s, _TANH_DENOMINATOR))

    return let(let(_clamp(x, -9.02, 9.02), quotient), lambda q: _clamp(q, -1.0, 1.0))


tanh = by_dtype(_tanh_single, double_precision.tanh)


def _sigmoid(exp: Callable[[Element], Element]) -> Callable[[Element], Element]:
    """1 / (1 + e**-x) without overflow, by the exponential of numbers that are not positive."""

    def apply(x: Element) -> Element:
        zero, one = constant(0, x), constant(1, x)
        exponential = exp(zero - tirx.abs(x))
        return let(exponential, lambda e: select(tirx.LT(x, zero), e, one) / (one + e))

    return apply


def _exp_of_negative(x: Element) -> Element:
    """e**x for x that is not large."""
    return let(x, lambda x: let(select(tirx.LT(x, single(-104.0)), single(-104.0), x), _exp_in_range))


sigmoid = by_dtype(_sigmoid(_exp_of_negative), _sigmoid(double_precision.exp))


# ---- erf, erfc


def _erf_single(x: Element) -> Element:
    def quotient(c: Element) -> Element:
        return let(c * c, lambda s: c * horner(s, _ERF_NUMERATOR) / horner(s, _ERF_DENOMINATOR))

    return let(let(_clamp(x, -3.93, 3.93), quotient), lambda q: _clamp(q, -1.0, 1.0))


def _erfc_of_positive(x: Element) -> Element:
    """erfc(x) for x >= 0; NaN stays NaN."""

    def product(a: Element, high: Element, low: Element) -> Element:
        """e**(low - high**2), which is e**(-a**2), times a polynomial. Results below the smallest normal number are
        rounded once, as they are scaled."""
        square = high * high
        polynomial = let(single(1.0) / (a * single(_ERFC_SCALE) + single(1.0)), lambda t: horner(t, _ERFC))
        shifted = (low - square) * single(_LOG2_E / 2) + single(_ROUND)

        def scaled_erfc(t: Element, n: Element) -> Element:
            remainder = low - (square + n * single(2 * _LN2_HIGH)) - n * single(2 * _LN2_LOW)
            return _scale_exponential(remainder, t, polynomial)

        return let(shifted, lambda t: let(t - single(_ROUND), lambda n: scaled_erfc(t, n)))

    return let(select(tirx.GT(x, single(10.5)), single(10.5), x), lambda a: _with_exact_square(a, product))


def _erfc_single(x: Element) -> Element:
    far = let(tirx.abs(x), _erfc_of_positive)
    return let(far, lambda v: select(tirx.LT(x, single(0)), single(2.0) - v, v))


def _tail(a: Element) -> Element:
    """The normal distribution's mass beyond a >= 0, times 2**64; NaN stays NaN."""

    def product(a: Element, high: Element, low: Element) -> Element:
        """e**((low - high**2) / 2), which is e**(-a**2 / 2), times a quotient."""
        square = high * high
        quotient = horner(a, _TAIL_NUMERATOR) / horner(a, _TAIL_DENOMINATOR)
        lifted = single(_ROUND + 64)

        def scaled_tail(t: Element, n: Element) -> Element:
            twice = low - (square + n * single(2 * _LN2_HIGH)) - n * single(2 * _LN2_LOW)
            return let(twice, lambda r: horner(r, _HALF_EXP)) * quotient * _power_of_two(t)

        shifted = (low - square) * single(_LOG2_E / 2) + lifted
        return let(shifted, lambda t: let(t - lifted, lambda n: scaled_tail(t, n)))

    return let(select(tirx.GT(a, single(14.5)), single(14.5), a), lambda a: _with_exact_square(a, product))


def _with_exact_square(a: Element, result: Callable[[Element, Element, Element], Element]) -> Element:
    """The result of a function for a, high and low: high is the leading bits of a, whose square is exact, and low is
    high**2 - a**2."""
    high = from_bits(tirx.bitwise_and(bits_of(a), tirx.const(-4096, "int32")))
    return let(high, lambda high: let((high - a) * (high + a), lambda low: result(a, high, low)))


def _ndtr_single(x: Element) -> Element:
    tail = let(tirx.abs(x), _tail) * single(2.0**-64)
    return let(tail, lambda v: select(tirx.LT(x, single(0)), v, single(1.0) - v))


def _ndtr_by_library(x: Element) -> Element:
    return external("erfc", x * constant(-math.sqrt(0.5), x)) * constant(0.5, x)


ndtr = by_dtype(_ndtr_single, _ndtr_by_library)
ndtr_of_half = by_dtype(_ndtr_by_library, _ndtr_by_library)
erf = by_dtype(_erf_single, _library("erf"))
erfc = by_dtype(_erfc_single, _library("erfc"))


# ---- others: the C library


def library(name: str) -> Callable[[Element], Element]:
    """A function of the C mathematics library for float32 and float64; other floats go through float32."""
    return by_dtype(_library(name), _library(name))


def _through_single(function: str) -> Callable[[Element], Element]:
    return by_dtype(lambda x: getattr(tirx, function)(x), lambda x: getattr(tirx, function)(x))


sqrt = _through_single("sqrt")


def rsqrt(x: Element) -> Element:
    """1 / sqrt(x)"""
    return constant(1, x) / sqrt(x)
