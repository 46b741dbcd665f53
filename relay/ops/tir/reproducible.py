"""Bit-reproducible functions of float64: the same bits in NumPy, in native code, on every target.

Code generators may contract x * y + z into one operation with one rounding, others do not. So every product here is of
numbers with few enough bits that it is exact, whereupon contraction changes nothing; sums, quotients and square roots
are rounded correctly everywhere. Each function is written once, over an `Arithmetic`: NumPy's or TIR's.

    log(NUMPY, array)
    log(TirArithmetic(registers), expression)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from relay.ops.tir import stages
from relay.ops.tir.tvm_modules import tirx

Number = Any  # a float64 array, or a TIR expression
Bits = Any  # the same in int64
_LOW_BITS = 27  # of a fraction's 52; what is left above has 26 bits with the leading one


class Arithmetic(Protocol):
    """The arithmetic that the functions need besides + - * /. Values that are used more than once are named first."""

    def name(self, value: Number) -> Number: ...
    def constant(self, number: float) -> Number: ...
    def select(self, condition: Any, yes: Number, no: Number) -> Number: ...
    def less(self, x: Number, y: float) -> Any: ...
    def absolute(self, x: Number) -> Number: ...
    def sqrt(self, x: Number) -> Number: ...
    def bits(self, x: Number) -> Bits: ...
    def from_bits(self, bits: Bits) -> Number: ...
    def mask_bits(self, bits: Bits, mask: int) -> Bits: ...
    def shift_left(self, bits: Bits, amount: int) -> Bits: ...
    def right(self, bits: Bits, amount: int) -> Bits: ...
    def integer(self, number: int) -> Bits: ...
    def to_float(self, bits: Bits) -> Number: ...


class NumPyArithmetic:
    """On float64 arrays."""

    def name(self, value: Number) -> Number:
        return value

    def constant(self, number: float) -> Number:
        return np.float64(number)

    def select(self, condition: Any, yes: Number, no: Number) -> Number:
        return np.where(condition, yes, no)

    def less(self, x: Number, y: float) -> Any:
        return np.less(x, y)

    def absolute(self, x: Number) -> Number:
        return np.abs(x)

    def sqrt(self, x: Number) -> Number:
        return np.sqrt(x)

    def bits(self, x: Number) -> Bits:
        return np.asarray(x, np.float64).view(np.int64)

    def from_bits(self, bits: Bits) -> Number:
        return np.asarray(bits, np.int64).view(np.float64)

    def mask_bits(self, bits: Bits, mask: int) -> Bits:
        return bits & np.int64(mask)

    def shift_left(self, bits: Bits, amount: int) -> Bits:
        return bits << np.int64(amount)

    def right(self, bits: Bits, amount: int) -> Bits:
        return bits >> np.int64(amount)

    def integer(self, number: int) -> Bits:
        return np.int64(number)

    def to_float(self, bits: Bits) -> Number:
        return np.asarray(bits).astype(np.float64)


class TirArithmetic:
    """On float64 expressions, which are named in registers."""

    def __init__(self, registers: stages.Registers) -> None:
        self.name = registers.name

    def constant(self, number: float) -> Number:
        return tirx.const(number, "float64")

    def select(self, condition: Any, yes: Number, no: Number) -> Number:
        return tirx.Select(condition, yes, no)

    def less(self, x: Number, y: float) -> Any:
        return tirx.LT(x, self.constant(y))

    def absolute(self, x: Number) -> Number:
        return tirx.abs(x)

    def sqrt(self, x: Number) -> Number:
        return tirx.sqrt(x)

    def bits(self, x: Number) -> Bits:
        return tirx.reinterpret("int64", x)

    def from_bits(self, bits: Bits) -> Number:
        return tirx.reinterpret("float64", bits)

    def mask_bits(self, bits: Bits, mask: int) -> Bits:
        return tirx.bitwise_and(bits, self.integer(mask))

    def shift_left(self, bits: Bits, amount: int) -> Bits:
        return tirx.shift_left(bits, self.integer(amount))

    def right(self, bits: Bits, amount: int) -> Bits:
        return tirx.shift_right(bits, self.integer(amount))

    def integer(self, number: int) -> Bits:
        return tirx.const(number, "int64")

    def to_float(self, bits: Bits) -> Number:
        return tirx.Cast("float64", bits)


NUMPY: Arithmetic = NumPyArithmetic()


def _leading_bits(a: Arithmetic, x: Number) -> Number:
    """x with its leading 26 bits only."""
    return a.name(a.from_bits(a.mask_bits(a.bits(x), -(1 << _LOW_BITS))))


def product(a: Arithmetic, x: Number, y: Number) -> Number:
    """x * y to within a few units of the last place, by exact partial products (after Dekker, 1971)."""
    x, y = a.name(x), a.name(y)
    x_high, y_high = _leading_bits(a, x), _leading_bits(a, y)
    x_low, y_low = a.name(x - x_high), a.name(y - y_high)
    across = x_high * y_low + x_low * y_high
    return a.name(x_high * y_high + (across + _leading_bits(a, x_low) * _leading_bits(a, y_low)))


def polynomial(a: Arithmetic, x: Number, coefficients: Sequence[Number]) -> Number:
    """Horner's scheme, the constant coefficient first."""
    x, result = a.name(x), coefficients[-1]
    for coefficient in reversed(coefficients[:-1]):
        result = product(a, result, x) + coefficient
    return a.name(result)


_SQRT_HALF = 0x3FE6A09E667F3BCD
_LN2_HIGH = float.fromhex("0x1.62e42feep-1")  # so few bits that its multiples by exponents are exact
_LN2_LOW = float.fromhex("0x1.a39ef35793p-33")  # the next 41 bits
_TERMS = tuple(2 / (2 * k + 1) for k in range(1, 12))


def log(a: Arithmetic, x: Number) -> Number:
    """The natural logarithm of a positive normal number.

    x = 2**e (1 + f), 1 + f in [sqrt(1/2), sqrt(2)), s = f / (2 + f): log x = e ln2 + 2 s + s (2/3 s**2 + 2/5 s**4 ..)
    """
    bits = a.name(a.bits(x))
    exponent = a.name(a.right(bits - a.integer(_SQRT_HALF), 52))
    f = a.name(a.from_bits(bits - a.shift_left(exponent, 52)) - a.constant(1.0))
    s = a.name(f / (a.constant(2.0) + f))
    z = product(a, s, s)
    series = product(a, z, polynomial(a, z, [a.constant(term) for term in _TERMS]))
    e = a.name(a.to_float(exponent))
    return a.name(e * a.constant(_LN2_HIGH) + (s + s + (product(a, s, series) + e * a.constant(_LN2_LOW))))


# Wichura's coefficients: (numerators, denominators) near the center, in the tails, far out.
_CENTRE = (
    (3.3871328727963666080e0, 1.3314166789178437745e2, 1.9715909503065514427e3, 1.3731693765509461125e4,
     4.5921953931549871457e4, 6.7265770927008700853e4, 3.3430575583588128105e4, 2.5090809287301226727e3),
    (1.0, 4.2313330701600911252e1, 6.8718700749205790830e2, 5.3941960214247511077e3, 2.1213794301586595867e4,
     3.9307895800092710610e4, 2.8729085735721942674e4, 5.2264952788528545610e3),
)  # fmt: skip
_TAIL = (
    (1.42343711074968357734e0, 4.63033784615654529590e0, 5.76949722146069140550e0, 3.64784832476320460504e0,
     1.27045825245236838258e0, 2.41780725177450611770e-1, 2.27238449892691845833e-2, 7.74545014278341407640e-4),
    (1.0, 2.05319162663775882187e0, 1.67638483018380384940e0, 6.89767334985100004550e-1, 1.48103976427480074590e-1,
     1.51986665636164571966e-2, 5.47593808499534494600e-4, 1.05075007164441684324e-9),
)  # fmt: skip
_FAR = (
    (6.65790464350110377720e0, 5.46378491116411436990e0, 1.78482653991729133580e0, 2.96560571828504891230e-1,
     2.65321895265761230930e-2, 1.24266094738807843860e-3, 2.71155556874348757815e-5, 2.01033439929228813265e-7),
    (1.0, 5.99832206555887937690e-1, 1.36929880922735805310e-1, 1.48753612908506148525e-2, 7.86869131145613259100e-4,
     1.84631831751005468180e-5, 1.42151175831644588870e-7, 2.04426310338993978564e-15),
)  # fmt: skip


def normal_quantile(a: Arithmetic, p: Number) -> Number:
    """The x below which a standard normal number falls with probability p in (0, 1), a multiple of 2**-53.

    M. J. Wichura, Algorithm AS 241: The percentage points of the normal distribution, Applied Statistics 37, 1988.
    A quotient of two polynomials of degree 7 in r: r = 0.425**2 - q**2 for q = p - 1/2, |q| <= 0.425; otherwise
    r = sqrt(-log(min(p, 1 - p))) - 1.6, or - 5 if that root is larger than 5.
    """
    q = a.name(p - a.constant(0.5))
    magnitude = a.name(a.absolute(q))
    central = a.less(magnitude, 0.425)
    root = a.name(a.sqrt(a.constant(0.0) - log(a, a.constant(0.5) - magnitude)))
    near = a.less(root, 5.0)
    outer = a.select(near, root - a.constant(1.6), root - a.constant(5.0))
    r = a.name(a.select(central, a.constant(0.180625) - product(a, q, q), outer))
    numerator, denominator = (
        polynomial(
            a,
            r,
            [
                a.name(a.select(central, a.constant(c), a.select(near, a.constant(t), a.constant(f))))
                for c, t, f in zip(_CENTRE[part], _TAIL[part], _FAR[part], strict=True)
            ],
        )
        for part in (0, 1)
    )
    value = a.name(numerator / denominator)
    signed = a.select(a.less(q, 0.0), a.constant(0.0) - value, value)
    return a.select(central, product(a, q, value), signed)
