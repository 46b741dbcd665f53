"""TIR expressions over single elements, with NumPy's meaning: integers wrap, division floors, NaN propagates.

TVM leaves overflow of 32 and 64 bits undefined, also of unsigned numbers, so `wrapping` avoids it. An integer
division never traps here, whatever its operands: the check that the divisor is not zero is the operator's requirement.

`tirx.Select` evaluates both sides and vectorizes; `tirx.if_then_else` guards a load. Comparisons are built as nodes,
because Python's `==` between expressions does not make one. TIR rewrites `Not(x < y)` to `y <= x` and compiles `NE` as
"less or greater", which are both wrong for NaN; and it has no equality of bools. `negation` and `not_equal` are right.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from relay.ir.types import BASE_TYPES, BaseType
from relay.ops.tir.tvm_modules import tirx

Element: TypeAlias = Any
"""A TIR expression."""


def dtype_of(x: Element) -> str:
    """The dtype of an expression, as its name."""
    return str(x.ty)


def is_float(dtype: str) -> bool:
    return BASE_TYPES[dtype].is_float


def number(value: Any, dtype: str) -> Element:
    """A literal; of bfloat16 by its bits, since TVM breaks down over literals of it."""
    if dtype != "bfloat16":
        return tirx.const(value, dtype)
    bits = np.asarray(value, BASE_TYPES[dtype].dtype).view(np.uint16)
    return tirx.reinterpret(dtype, tirx.const(int(bits), "uint16"))


def constant(value: float, like: Element) -> Element:
    """A number with the dtype of an expression."""
    return number(value, dtype_of(like))


def cast(x: Element, dtype: BaseType | str) -> Element:
    """A conversion; to bool: nonzero is true.

    TVM's own conversions of bfloat16 do not survive its passes, so they are made of bits here, and vectors of bools
    that become numbers break its code generation where the numbers have a name.
    """
    source, target = dtype_of(x), str(dtype)
    if source == target:
        return x
    if source == "bfloat16":
        return cast(_bfloat16_to_float32(x), target)
    if target == "bfloat16":
        return _float32_to_bfloat16(cast(x, "float32"))
    if target == "bool":
        return not_equal(x, constant(0, x))
    if source == "bool":
        return select(x, number(1, target), number(0, target))
    return tirx.Cast(target, x)


def _bfloat16_to_float32(x: Element) -> Element:
    """bfloat16 as float32: the upper half of its bits."""
    return tirx.reinterpret("float32", tirx.shift_left(tirx.Cast("uint32", tirx.reinterpret("uint16", x)), _bits(16)))


def _float32_to_bfloat16(x: Element) -> Element:
    """float32 as bfloat16, rounded to the nearest, of two the even one; NaN stays NaN."""

    def round_bits(bits: Element) -> Element:
        odd = tirx.bitwise_and(tirx.shift_right(bits, _bits(16)), _bits(1))
        # no overflow: the largest bits that are not NaN are those of -infinity
        upper = tirx.shift_right(bits + _bits(0x7FFF) + odd, _bits(16))
        magnitude = tirx.bitwise_and(bits, _bits(0x7FFFFFFF))
        chosen = select(tirx.GT(magnitude, _bits(0x7F800000)), _bits(0x7FC0), upper)
        return tirx.reinterpret("bfloat16", tirx.Cast("uint16", chosen))

    return let(tirx.reinterpret("uint32", x), round_bits)


def _bits(number: int) -> Element:
    return tirx.const(number, "uint32")


def let(value: Element, body: Callable[[Element], Element]) -> Element:
    """`body(value)` with the value computed once: expressions are trees, so Python's sharing would copy it.

    TVM fails where it learns more about the range of a named integer than it knew when it met the name first, as it
    does in the arms of a selection. It learns nothing through an exclusive or, which LLVM removes.
    """
    variable = tirx.Var("t", value.ty)
    if "int" not in dtype_of(value):
        return tirx.Let(variable, value, body(variable))
    mask = constant(0x55, value)
    return tirx.Let(variable, tirx.bitwise_xor(value, mask), body(tirx.bitwise_xor(variable, mask)))


def select(condition: Element, yes: Element, no: Element) -> Element:
    return tirx.Select(condition, yes, no)


def guarded_select(condition: Element, yes: Element, no: Element) -> Element:
    """One of two, of which only that one is computed. TVM makes wrong code of it for bfloat16, but not for its bits."""
    if dtype_of(yes) != "bfloat16":
        return tirx.if_then_else(condition, yes, no)
    bits = [tirx.reinterpret("uint16", part) for part in (yes, no)]
    return tirx.reinterpret("bfloat16", tirx.if_then_else(condition, *bits))


def negation(condition: Element) -> Element:
    """Not, in a form that the simplifier does not turn into the opposite comparison."""
    return tirx.EQ(tirx.Cast("uint8", condition), tirx.const(0, "uint8"))


def equal(x: Element, y: Element) -> Element:
    if dtype_of(x) == "bool":
        return tirx.EQ(tirx.Cast("uint8", x), tirx.Cast("uint8", y))
    return tirx.EQ(x, y)


def is_zero(x: Element) -> Element:
    return tirx.EQ(x, constant(0, x))


def not_equal(x: Element, y: Element) -> Element:
    """True for NaN."""
    if dtype_of(x) == "bool":
        return tirx.NE(tirx.Cast("uint8", x), tirx.Cast("uint8", y))
    return negation(tirx.EQ(x, y)) if is_float(dtype_of(x)) else tirx.NE(x, y)


def is_nan(x: Element) -> Element:
    if not is_float(dtype_of(x)):
        return tirx.const(False, "bool")
    wide = _at_least_float32(x)
    return negation(tirx.LE(tirx.abs(wide), tirx.infinity(dtype_of(wide))))  # TVM makes no vectors of its own isnan


def is_finite(x: Element) -> Element:
    if not is_float(dtype_of(x)):
        return tirx.const(True, "bool")
    wide = _at_least_float32(x)
    return tirx.LT(tirx.abs(wide), tirx.infinity(dtype_of(wide)))


def is_infinite(x: Element) -> Element:
    if not is_float(dtype_of(x)):
        return tirx.const(False, "bool")
    wide = _at_least_float32(x)
    return tirx.EQ(tirx.abs(wide), tirx.infinity(dtype_of(wide)))


def _at_least_float32(x: Element) -> Element:
    return x if dtype_of(x) in ("float32", "float64") else tirx.Cast("float32", x)


# ---- arithmetic


def wrapping_operation(node: str) -> Callable[[Element, Element], Element]:
    """Add, Sub or Mul, with integers that wrap.

    TVM tells LLVM that sums and products of 32 and 64 bits never overflow, unsigned ones neither. So those of 32 bits
    are made in 64, where they fit, and those of 64 bits from halves.
    """

    def apply(x: Element, y: Element) -> Element:
        dtype, operation = dtype_of(x), getattr(tirx, node)
        if dtype in ("int32", "uint32"):
            wide = dtype.replace("32", "64")
            left, right = tirx.Cast(wide, x), tirx.Cast(wide, y)
            if node == "Sub" and dtype == "uint32":
                left = tirx.Add(left, tirx.const(1 << 32, wide))  # the difference would be negative
            return tirx.Cast(dtype, operation(left, right))
        if dtype in ("int64", "uint64"):
            return let(x, lambda a: let(y, lambda b: _from_halves(node, a, b)))
        return operation(x, y)

    return apply


def _from_halves(node: str, x: Element, y: Element) -> Element:
    """The result for 64 bits from operations that do not overflow."""
    dtype = dtype_of(x)
    if node == "Mul":
        across = _low_half(_low_half(x) * _high_half(y)) + _low_half(_high_half(x) * _low_half(y))
        below = tirx.Cast("uint64", _low_half(x)) * tirx.Cast("uint64", _low_half(y))
        return let(
            below, lambda b: _combine_halves(tirx.Cast(dtype, _high_half(b)) + across, tirx.Cast(dtype, _low_half(b)))
        )
    carry = 1 if node == "Sub" else 0  # x - y = x + ~y + 1
    y = tirx.bitwise_not(y) if node == "Sub" else y
    total = _low_half(x) + _low_half(y) + tirx.const(carry, dtype)
    return let(
        total,
        lambda low: _combine_halves(
            _low_half(_high_half(x)) + _low_half(_high_half(y)) + _high_half(low), _low_half(low)
        ),
    )


def _low_half(x: Element) -> Element:
    return tirx.bitwise_and(x, constant((1 << 32) - 1, x))


def _high_half(x: Element) -> Element:
    return tirx.shift_right(x, constant(32, x))


def _combine_halves(high: Element, low: Element) -> Element:
    return tirx.bitwise_or(tirx.shift_left(high, constant(32, high)), low)


add = wrapping_operation("Add")
subtract = wrapping_operation("Sub")
multiply = wrapping_operation("Mul")


def divide(x: Element, y: Element) -> Element:
    return tirx.Div(x, y)


def negative(x: Element) -> Element:
    if is_float(dtype_of(x)):
        return multiply(x, constant(-1, x))  # 0 - x would make 0 of 0, not -0
    return subtract(constant(0, x), x)


def absolute(x: Element) -> Element:
    dtype = dtype_of(x)
    if is_float(dtype):
        return tirx.abs(x)
    return x if dtype.startswith("u") else select(tirx.LT(x, constant(0, x)), negative(x), x)


def sign(x: Element) -> Element:
    """-1, 0 or 1; NaN of NaN."""
    zero, one = constant(0, x), constant(1, x)
    if dtype_of(x).startswith("u"):
        return select(tirx.GT(x, zero), one, zero)
    other = select(is_nan(x), x, zero) if is_float(dtype_of(x)) else zero  # of -0, too
    return select(tirx.GT(x, zero), one, select(tirx.LT(x, zero), constant(-1, x), other))


def maximum(x: Element, y: Element) -> Element:
    if not is_float(dtype_of(x)):
        return tirx.Max(x, y)
    return select(is_nan(x), x, select(tirx.GT(x, y), x, y))  # comparisons with NaN are false, so that of y passes


def minimum(x: Element, y: Element) -> Element:
    if not is_float(dtype_of(x)):
        return tirx.Min(x, y)
    return select(is_nan(x), x, select(tirx.LT(x, y), x, y))


def relu(x: Element) -> Element:
    zero = constant(0, x)
    return select(tirx.LE(x, zero), zero, x) if is_float(dtype_of(x)) else tirx.Max(x, zero)


# ---- division that floors


def _safe_divisor(y: Element) -> Element:
    """The divisor with 1 in place of those that trap: 0, and -1 (with the smallest number)."""
    trap = tirx.EQ(y, constant(0, y))
    if not dtype_of(y).startswith("u"):
        trap = tirx.Or(trap, tirx.EQ(y, constant(-1, y)))
    return select(trap, constant(1, y), y)


def floor_divide(x: Element, y: Element) -> Element:
    """The greatest integer not above x / y; for floats as NumPy rounds it."""
    dtype = dtype_of(x)
    if is_float(dtype):
        return _in_float(_float_floor_divide, x, y)
    if not dtype.startswith("u"):  # -x / 1 for x / -1; choosing between results would let TIR drop the divisor's guard
        x = select(tirx.EQ(y, constant(-1, y)), negative(x), x)
    return tirx.floordiv(x, _safe_divisor(y))


def mod(x: Element, y: Element) -> Element:
    """x - y * floor(x / y), which has the sign of y."""
    if is_float(dtype_of(x)):
        return _in_float(_float_mod, x, y)
    return tirx.floormod(x, _safe_divisor(y))


def _in_float(function: Callable[[Element, Element], Element], x: Element, y: Element) -> Element:
    dtype = dtype_of(x)
    return cast(function(_at_least_float32(x), _at_least_float32(y)), dtype)


def external(name: str, *arguments: Element) -> Element:
    """A function of the C mathematics library; the float32 ones end in f."""
    dtype = dtype_of(arguments[0])
    return tirx.call_pure_extern(dtype, name if dtype == "float64" else f"{name}f", *arguments)


def _float_floor_divide(x: Element, y: Element) -> Element:
    zero, one = constant(0, x), constant(1, x)

    def from_remainder(remainder: Element) -> Element:
        below = not_equal(tirx.LT(remainder, zero), tirx.LT(y, zero))
        correction = select(tirx.EQ(remainder, zero), zero, select(below, one, zero))
        return let((x - remainder) / y - correction, lambda q: let(tirx.floor(q), lambda f: round_quotient(q, f)))

    def round_quotient(quotient: Element, floor: Element) -> Element:
        nearest = select(tirx.GT(quotient - floor, constant(0.5, x)), floor + one, floor)
        none = select(tirx.EQ(x, zero), tirx.Div(x, y), zero)  # of the sign of x / y
        return select(tirx.EQ(y, zero), tirx.Div(x, y), select(tirx.EQ(quotient, zero), none, nearest))

    return let(external("fmod", x, y), from_remainder)


def _float_mod(x: Element, y: Element) -> Element:
    zero = constant(0, x)

    def adjust_sign(remainder: Element) -> Element:
        below = not_equal(tirx.LT(remainder, zero), tirx.LT(y, zero))
        none = select(tirx.LT(y, zero), negative(absolute(remainder)), absolute(remainder))  # of the sign of y
        return select(tirx.EQ(remainder, zero), none, select(below, remainder + y, remainder))

    return let(external("fmod", x, y), adjust_sign)


# ---- bits


def bitwise(name: str) -> Callable[[Element, Element], Element]:
    """`bitwise_and`, `bitwise_or` or `bitwise_xor`, also of bools."""

    def apply(x: Element, y: Element) -> Element:
        operation = getattr(tirx, name)
        if dtype_of(x) != "bool":
            return operation(x, y)
        return cast(operation(tirx.Cast("uint8", x), tirx.Cast("uint8", y)), "bool")

    return apply


def bitwise_not(x: Element) -> Element:
    """All bits turned; of bools, the other one."""
    return negation(x) if dtype_of(x) == "bool" else tirx.bitwise_not(x)


def left_shift(x: Element, y: Element) -> Element:
    """Bits shifted out are lost; shifting by the width or more (or a negative number) gives 0."""
    in_range, amount = _shift_amount(y)
    dtype = dtype_of(x)
    unsigned = dtype if dtype.startswith("u") else f"u{dtype}"
    shifted = tirx.Cast(dtype, tirx.shift_left(tirx.Cast(unsigned, x), tirx.Cast(unsigned, amount)))
    return select(in_range, shifted, constant(0, x))


def right_shift(x: Element, y: Element) -> Element:
    """The sign is shifted in; shifting by the width or more (or a negative number) leaves only it."""
    in_range, amount = _shift_amount(y)
    if dtype_of(x).startswith("u"):
        beyond = constant(0, x)
    else:
        beyond = select(tirx.LT(x, constant(0, x)), constant(-1, x), constant(0, x))
    return select(in_range, tirx.shift_right(x, amount), beyond)


def _shift_amount(y: Element) -> tuple[Element, Element]:
    width = np.dtype(dtype_of(y)).itemsize * 8
    in_range = tirx.LT(y, constant(width, y))
    if not dtype_of(y).startswith("u"):
        in_range = tirx.And(in_range, tirx.GE(y, constant(0, y)))
    return in_range, select(in_range, y, constant(0, y))
