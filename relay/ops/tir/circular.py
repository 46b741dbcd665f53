"""Circular and hyperbolic functions and their inverses as TIR expressions.

float32: branch-free, so that they vectorize, within 5e-7 of the true value, relative to it, over the whole range; the
coefficients are minimax fits, weighted by relative error. float64: the C library.

    sin, cos, tan    |x| = n pi/2 + r, |r| <= pi/4, by Payne and Hanek: |x| 2/pi modulo 4 in integers of 64 bits, for
                     which the bits of 2/pi are chosen by the exponent of x; then r + r**3 S(r**2), 1 - r**2/2 + r**4 C
    asin, acos       x + x**3 A(x**2) for |x| <= 1/2; beyond, pi/2 - 2 asin(sqrt((1 - |x|) / 2))
    atan             x + x**3 T(x**2) for |x| <= tan(pi/8); beyond, by the difference to pi/4 or pi/2
    atan2            atan(min / max) of the sides, then the octant
    sinh, cosh       x + x**3 H(x**2) for |x| <= 1;  e**|x| / 2 -+ e**-|x| / 2
    asinh            log1p(|x| + x**2 / (1 + sqrt(x**2 + 1)));  acosh, with t = x - 1:  log1p(t + sqrt(2 t + t**2))
    atanh            log1p(2 |x| / (1 - |x|)) / 2
"""

from __future__ import annotations

from collections.abc import Callable

from relay.ops.notation import Element
from relay.ops.tir.scalar import cast, dtype_of, external, let, select
from relay.ops.tir.transcendental import (
    bits_of,
    by_dtype,
    exp_half_single,
    from_bits,
    horner,
    library,
    log1p_single,
    single,
)
from relay.ops.tir.tvm_modules import tirx

_SIN = (-1.9514631813e-4, 8.3321560530e-3, -1.6666654537e-1)
_COS = (2.4432412837e-5, -1.3887309865e-3, 4.1666645554e-2)
_ASIN = (4.2166306777e-2, 2.4179515579e-2, 4.5470375809e-2, 7.4952976438e-2, 1.6666752482e-1)
_ATAN = (-6.0777597754e-2, 1.0593640102e-1, -1.4243511115e-1, 1.9998470412e-1, -3.3333315172e-1)
_SINH = (2.8169512351e-6, 1.9836159776e-4, 8.3333500582e-3, 1.6666666498e-1)

_PI, _HALF_PI, _QUARTER_PI = 3.141592653589793, 1.5707963267948966, 0.7853981633974483
_TWO_OVER_PI = (0, 0xA2F9836E, 0x4E441529, 0xFC2757D1, 0xF534DDC0, 0xDB629599, 0x3C439041, 0xFE5163AB)
"""The bits of 2/pi after the binary point in words, and a word before it."""
_SIGN = -(2**31)
_TAN_EIGHTH, _TAN_THREE_EIGHTHS = 0.41421356237309503, 2.414213562373095
_LARGE = 1e8  # whose square is far from overflow, and to which 1 adds nothing


def _word(number: int) -> Element:
    return tirx.const(number, "uint32")


def _widened_element(x: Element) -> Element:
    return tirx.Cast("uint64", x)


def _with_sign(value: Element, sign: Element) -> Element:
    """The value with the bit `sign` of its sign changed."""
    return from_bits(tirx.bitwise_xor(bits_of(value), sign))


def _sign(x: Element) -> Element:
    return tirx.bitwise_and(bits_of(x), tirx.const(_SIGN, "int32"))


def _odd_extension(function: Callable[[Element], Element]) -> Callable[[Element], Element]:
    """The odd function that is `function` for numbers that are not negative, and NaN for NaN."""
    return lambda x: let(x, lambda x: _with_sign(let(tirx.abs(x), function), _sign(x)))


# ---- sin, cos, tan


def _reduce_argument(a: Element, then: Callable[[Element, Element], Element]) -> Element:
    """`then(n, r)` with n modulo 4, an int32, for a variable a >= 0; NaN and infinity give anything."""
    bits = tirx.reinterpret("uint32", a)
    exponent = tirx.shift_right(bits, _word(23))
    significand = tirx.bitwise_or(tirx.bitwise_and(bits, _word(0x7FFFFF)), _word(0x800000))
    # a = significand 2**(exponent - 150): of 2/pi the 96 bits from this one on count
    begin = select(tirx.GT(exponent, _word(120)), exponent, _word(120))
    return let(
        significand,
        lambda m: let(begin, lambda b: let(b - _word(120), lambda first: _multiply_by_two_over_pi(a, m, first, then))),
    )


def _multiply_by_two_over_pi(
    a: Element, significand: Element, first: Element, then: Callable[[Element, Element], Element]
) -> Element:
    at = tirx.shift_right(first, _word(5))
    shift = tirx.bitwise_and(first, _word(31))

    def word(number: int) -> Element:
        """The word this many after the first that counts."""
        result: Element = _word(_TWO_OVER_PI[number])
        for place in range(1, 5):
            result = select(tirx.GE(at, _word(place)), _word(_TWO_OVER_PI[number + place]), result)
        return result

    def shift_words(left: Element, right: Element) -> Element:
        low = tirx.shift_right(tirx.shift_right(right, _word(1)), _word(31) - shift)
        return tirx.bitwise_or(tirx.shift_left(left, shift), low)

    def product(left: Element, right: Element) -> Element:
        return _widened_element(significand) * _widened_element(shift_words(left, right))

    mask = tirx.const(0xFFFFFFFF, "uint64")
    half = tirx.const(32, "uint64")

    def words(w0: Element, w1: Element, w2: Element, w3: Element) -> Element:
        low = product(w1, w2) + tirx.shift_right(product(w2, w3), half)

        def combine_words(low: Element) -> Element:
            high = tirx.bitwise_and(product(w0, w1), mask) + tirx.shift_right(low, half)
            return let(tirx.bitwise_and(high, mask), lambda high: _quadrant(a, high, tirx.bitwise_and(low, mask), then))

        return let(low, combine_words)

    return let(
        word(0), lambda a: let(word(1), lambda b: let(word(2), lambda c: let(word(3), lambda d: words(a, b, c, d))))
    )


def _quadrant(a: Element, high: Element, low: Element, then: Callable[[Element, Element], Element]) -> Element:
    """From a 2/pi modulo 4, in units of 2**-62: its words of 32 bits."""
    nearest = tirx.shift_right(high + tirx.const(2**29, "uint64"), tirx.const(30, "uint64"))

    def remainder(n: Element) -> Element:
        whole = tirx.Cast("int64", high) - tirx.shift_left(tirx.Cast("int64", n), tirx.const(30, "int64"))
        rest = tirx.reinterpret("int32", tirx.Cast("uint32", low))  # signed: its highest bit is carried
        carry = select(tirx.LT(rest, tirx.const(0, "int32")), tirx.const(1, "int32"), tirx.const(0, "int32"))
        r = tirx.Cast("float32", tirx.Cast("int32", whole) + carry) * single(_HALF_PI * 2.0**-30)
        r = r + tirx.Cast("float32", rest) * single(_HALF_PI * 2.0**-62)
        near = tirx.LT(a, single(_QUARTER_PI))
        number = select(near, tirx.const(0, "int32"), tirx.Cast("int32", n))
        return let(number, lambda n: let(select(near, a, r), lambda r: then(n, r)))

    return let(nearest, remainder)


def _sine(r: Element, s: Element) -> Element:
    return horner(s, _SIN) * s * r + r


def _cosine(s: Element) -> Element:
    return horner(s, _COS) * s * s - single(0.5) * s + single(1)


def _is_odd(n: Element) -> Element:
    return tirx.EQ(tirx.bitwise_and(n, tirx.const(1, "int32")), tirx.const(1, "int32"))


def _or_nan(a: Element, value: Element) -> Element:
    """NaN where a is infinite or NaN."""
    return select(tirx.LE(a, single(3.4028234663852886e38)), value, from_bits(tirx.const(0x7FC00000, "int32")))


def _shifted_sine(turned: int) -> Callable[[Element], Element]:
    """The sine of a >= 0 plus this many right angles."""

    def wave_of(a: Element) -> Element:
        def value(n: Element, r: Element) -> Element:
            chosen = let(r * r, lambda s: select(_is_odd(n), _cosine(s), _sine(r, s)))
            sign = tirx.shift_left(tirx.bitwise_and(n, tirx.const(2, "int32")), tirx.const(30, "int32"))
            return _with_sign(chosen, sign)

        return _or_nan(a, _reduce_argument(a, lambda n, r: let(n + turned, lambda n: value(n, r))))

    return wave_of


def _tangent(a: Element) -> Element:
    def value(n: Element, r: Element) -> Element:
        def quotient(sine: Element, cosine: Element) -> Element:
            odd = _is_odd(n)
            return select(odd, single(0) - cosine, sine) / select(odd, sine, cosine)

        return let(r * r, lambda s: let(_sine(r, s), lambda x: let(_cosine(s), lambda y: quotient(x, y))))

    return _or_nan(a, _reduce_argument(a, value))


def _cos_single(x: Element) -> Element:
    return let(tirx.abs(x), _shifted_sine(1))


sin = by_dtype(_odd_extension(_shifted_sine(0)), lambda x: tirx.sin(x))
cos = by_dtype(_cos_single, lambda x: tirx.cos(x))
tan = by_dtype(_odd_extension(_tangent), library("tan"))


# ---- asin, acos


def _asin_parts(a: Element, then: Callable[[Element, Element], Element]) -> Element:
    """`then(is_far, y)` where y is asin(a), or asin(sqrt((1 - a) / 2)) if a is far, that is above 1/2."""
    far = tirx.GT(a, single(0.5))
    square = select(far, (single(1) - a) * single(0.5), a * a)
    return let(
        square,
        lambda z: let(
            select(far, tirx.sqrt(z), a), lambda y: let(horner(z, _ASIN) * z * y + y, lambda value: then(far, value))
        ),
    )


def _asin_of_magnitude(a: Element) -> Element:
    return _asin_parts(a, lambda far, y: select(far, single(_HALF_PI) - single(2) * y, y))


def _acos_single(x: Element) -> Element:
    def acos_of(x: Element, far: Element, y: Element) -> Element:
        negative = tirx.LT(x, single(0))
        near = single(_HALF_PI) - select(negative, single(0) - y, y)
        twice = single(2) * y
        return select(far, select(negative, single(_PI) - twice, twice), near)

    return let(x, lambda x: let(tirx.abs(x), lambda a: _asin_parts(a, lambda far, y: acos_of(x, far, y))))


asin = by_dtype(_odd_extension(_asin_of_magnitude), library("asin"))
acos = by_dtype(_acos_single, library("acos"))


# ---- atan


def _atan_polynomial(t: Element) -> Element:
    """atan(t) for |t| <= tan(pi/8)."""
    return let(t, lambda t: let(t * t, lambda z: horner(z, _ATAN) * z * t + t))


def _atan_of_magnitude(a: Element) -> Element:
    far, middle = tirx.GT(a, single(_TAN_THREE_EIGHTHS)), tirx.GT(a, single(_TAN_EIGHTH))
    numerator = select(far, single(-1), select(middle, a - single(1), a))
    denominator = select(far, a, select(middle, a + single(1), single(1)))
    offset = select(far, single(_HALF_PI), select(middle, single(_QUARTER_PI), single(0)))
    return offset + _atan_polynomial(numerator / denominator)


atan = by_dtype(_odd_extension(_atan_of_magnitude), library("atan"))


def _atan2_single(y: Element, x: Element) -> Element:
    def atan2_of(y: Element, x: Element, a: Element, b: Element) -> Element:
        steep = tirx.GT(a, b)
        small, large = select(steep, b, a), select(steep, a, b)
        equal = tirx.And(tirx.EQ(a, b), tirx.GT(b, single(0)))  # infinities, too
        ratio = select(equal, single(1), small / select(tirx.EQ(large, single(0)), single(1), large))
        return let(ratio, lambda t: let(_atan_of_magnitude(t), lambda angle: octant(y, x, steep, angle)))

    def octant(y: Element, x: Element, steep: Element, angle: Element) -> Element:
        upper = select(steep, single(_HALF_PI) - angle, angle)
        left = tirx.LT(bits_of(x), tirx.const(0, "int32"))
        return let(upper, lambda u: _with_sign(select(left, single(_PI) - u, u), _sign(y)))

    return let(
        y, lambda y: let(x, lambda x: let(tirx.abs(y), lambda a: let(tirx.abs(x), lambda b: atan2_of(y, x, a, b))))
    )


def atan2(y: Element, x: Element) -> Element:
    """The angle of the point (x, y)."""
    dtype = dtype_of(y)
    if dtype == "float64":
        return external("atan2", y, x)
    return cast(_atan2_single(cast(y, "float32"), cast(x, "float32")), dtype)


def atan2_library(y: Element, x: Element) -> Element:
    """The same, with the C library's function for float32, as short code for halves."""
    return cast(external("atan2", cast(y, "float32"), cast(x, "float32")), dtype_of(y))


# ---- sinh, cosh


def _sinh_of_magnitude(a: Element) -> Element:
    near = let(a * a, lambda z: horner(z, _SINH) * z * a + a)
    far = let(exp_half_single(a), lambda e: e - single(0.25) / e)
    return select(tirx.LE(a, single(1)), near, far)


def _cosh_single(x: Element) -> Element:
    return let(tirx.abs(x), lambda a: let(exp_half_single(a), lambda e: e + single(0.25) / e))


sinh = by_dtype(_odd_extension(_sinh_of_magnitude), library("sinh"))
cosh = by_dtype(_cosh_single, library("cosh"))


# ---- asinh, acosh, atanh


def _log1p_or_log(large: Element, x: Element, near: Element) -> Element:
    """log1p(near), or log(2 x) for a large x."""
    shift = select(large, single(0.6931471805599453), single(0))
    return shift + let(select(large, x, near), log1p_single)


def _asinh_of_magnitude(a: Element) -> Element:
    near = a + a * a / (single(1) + tirx.sqrt(a * a + single(1)))
    return _log1p_or_log(tirx.GT(a, single(_LARGE)), a, near)


def _acosh_single(x: Element) -> Element:
    def acosh_of(x: Element, t: Element) -> Element:
        value = _log1p_or_log(tirx.GT(x, single(_LARGE)), x, t + tirx.sqrt(t * single(2) + t * t))
        return select(tirx.LT(x, single(1)), from_bits(tirx.const(0x7FC00000, "int32")), value)

    return let(x, lambda x: let(x - single(1), lambda t: acosh_of(x, t)))


def _atanh_of_magnitude(a: Element) -> Element:
    return single(0.5) * let(single(2) * a / (single(1) - a), log1p_single)


asinh = by_dtype(_odd_extension(_asinh_of_magnitude), library("asinh"))
acosh = by_dtype(_acosh_single, library("acosh"))
atanh = by_dtype(_odd_extension(_atanh_of_magnitude), library("atanh"))
