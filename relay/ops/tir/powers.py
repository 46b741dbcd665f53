"""Powers of floats as TIR expressions.

float32: x**y = 2**(y log2 |x|), in float64 without branches, so that it vectorizes and the product keeps more bits than
the result has: within 1e-9 before the one rounding to float32, over the whole range. float64: the C library. float16
and bfloat16 go through float32.

    log2 a    a = 2**k m, m in [sqrt(1/2), sqrt(2)):  k + 2 s A(s**2) / ln2  with s = (m - 1) / (m + 1)
    2**t      t = n + r, |r| <= 1/2:                  2**n e**(r ln2)

Both polynomials are Taylor's: s**2 <= 0.0295 and r ln2 <= 0.347 leave 1e-10. What is not finite, zeros and negative
numbers are as C and NumPy have them: 1 for x = 1 or y = 0 whatever the other is, NaN for a negative number to one that
is not an integer.
"""

from __future__ import annotations

import math

from relay.ops.notation import Element
from relay.ops.tir.double_precision import double, from_bits, horner
from relay.ops.tir.scalar import cast, dtype_of, external, let, multiply, select
from relay.ops.tir.tvm_modules import tirx

_ATANH = tuple(1 / n for n in (13, 11, 9, 7, 5, 3, 1))
_EXP = tuple(1 / math.factorial(n) for n in range(9, -1, -1))
_MANTISSA_BITS, _BIAS = 52, 1023
_FRACTION, _ONE = (1 << _MANTISSA_BITS) - 1, _BIAS << _MANTISSA_BITS
_INTEGER, _SHIFT = 2.0**52, 1.5 * 2.0**52  # after adding them, an integer stands in the low bits
_INTEGER_BITS = 0x433 << _MANTISSA_BITS
_BEYOND = 300.0  # results are 0 or infinite in float32, and normal in float64


def _word(number: int) -> Element:
    return tirx.const(number, "uint64")


def _bits_of(x: Element) -> Element:
    return tirx.reinterpret("uint64", x)


def _log2(a: Element) -> Element:
    """log2 of a variable a >= 0, a float64 that is not a subnormal number."""

    def log2_of_parts(k: Element, m: Element) -> Element:
        s = (m - double(1)) / (m + double(1))
        return let(s, lambda s: k + s * let(s * s, lambda z: horner(z, _ATANH)) * double(2 / math.log(2)))

    def log2_of(m: Element, k: Element) -> Element:
        large = tirx.GT(m, double(math.sqrt(2)))
        halved = select(large, m * double(0.5), m)
        return let(halved, lambda m: let(select(large, k + double(1), k), lambda k: log2_of_parts(k, m)))

    bits = _bits_of(a)
    fraction = from_bits(tirx.bitwise_or(tirx.bitwise_and(bits, _word(_FRACTION)), _word(_ONE)))
    exponent = from_bits(tirx.bitwise_or(tirx.shift_right(bits, _word(_MANTISSA_BITS)), _word(_INTEGER_BITS)))
    value = let(fraction, lambda m: let(exponent - double(_INTEGER + _BIAS), lambda k: log2_of(m, k)))
    infinity = tirx.infinity("float64")
    value = select(tirx.LT(a, infinity), value, a)  # of NaN and infinity, too
    return select(tirx.EQ(a, double(0)), double(0) - infinity, value)


def _exp2(t: Element) -> Element:
    """2**t for any float64; beyond float32's range anything beyond it."""

    def exp2_of_parts(c: Element, shifted: Element) -> Element:
        power = from_bits(tirx.shift_left(_bits_of(shifted) + _word(_BIAS), _word(_MANTISSA_BITS)))
        rest = (c - (shifted - double(_SHIFT))) * double(math.log(2))
        return let(rest, lambda r: horner(r, _EXP)) * power

    low, high = double(-_BEYOND), double(_BEYOND)
    clamped = select(tirx.LT(t, low), low, select(tirx.GT(t, high), high, t))
    return let(clamped, lambda c: let(c + double(_SHIFT), lambda shifted: exp2_of_parts(c, shifted)))


def _power_single(x: Element, y: Element) -> Element:
    """x**y for variables of float32."""
    zero, one, infinity = tirx.const(0, "float32"), tirx.const(1, "float32"), tirx.infinity("float32")
    size, half = tirx.abs(x), y * tirx.const(0.5, "float32")
    logarithm = let(tirx.Cast("float64", size), _log2)
    magnitude = tirx.Cast("float32", let(tirx.Cast("float64", y) * logarithm, _exp2))

    integer = tirx.EQ(tirx.floor(y), y)
    odd = tirx.And(integer, tirx.LT(tirx.floor(half), half))
    sign = tirx.bitwise_and(tirx.reinterpret("uint32", x), tirx.const(1 << 31, "uint32"))
    sign = select(odd, sign, tirx.const(0, "uint32"))

    def apply_sign(magnitude: Element) -> Element:
        return tirx.reinterpret("float32", tirx.bitwise_or(tirx.reinterpret("uint32", magnitude), sign))

    undefined = tirx.And(tirx.And(tirx.LT(x, zero), tirx.GT(x, zero - infinity)), tirx.LT(tirx.floor(y), y))
    value = select(undefined, tirx.reinterpret("float32", tirx.const(0x7FC00000, "uint32")), let(magnitude, apply_sign))
    endless = tirx.And(tirx.EQ(size, one), tirx.EQ(tirx.abs(y), infinity))
    return select(tirx.Or(tirx.Or(tirx.EQ(x, one), tirx.EQ(y, zero)), endless), one, value)


def power(x: Element, y: Element) -> Element:
    """x to the y, for a float x, and a y of its dtype or an integer."""
    dtype = dtype_of(x)
    if dtype_of(y) != dtype:
        y = cast(y, dtype)
    if dtype == "float64":
        # the frequent exponent 2 needs no call of the library
        return tirx.if_then_else(tirx.EQ(y, double(2)), multiply(x, x), external("pow", x, y))
    return let(cast(x, "float32"), lambda a: let(cast(y, "float32"), lambda b: cast(_power_single(a, b), dtype)))
