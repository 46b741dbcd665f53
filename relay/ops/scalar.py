"""TIR expressions over single elements, with NumPy's meaning: integers wrap, division floors, NaN propagates.

TIR leaves signed overflow of 32 and 64 bits undefined and simplifies with it, so those are computed unsigned. An integer
division never traps here, whatever its operands: the check that the divisor is not zero is the operator's requirement.

`tirx.Select` evaluates both sides and vectorises; `tirx.if_then_else` guards a load. Comparisons are built as nodes,
because Python's `==` between expressions does not make one.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from relay.ir.types import BASE_TYPES, BaseType
from relay.ops.lazy import tirx
from relay.ops.notation import Element


def dtype_of(x: Element) -> str:
    """The dtype of an expression, as its name."""
    return str(x.ty)


def is_float(dtype: str) -> bool:
    return BASE_TYPES[dtype].is_float


def constant(number: float, like: Element) -> Element:
    """A number with the dtype of an expression."""
    return tirx.const(number, dtype_of(like))


def cast(x: Element, dtype: BaseType | str) -> Element:
    """A conversion; to bool it asks whether the number is not zero."""
    source, target = dtype_of(x), str(dtype)
    if source == target:
        return x
    if target == "bool":
        return tirx.NE(x, constant(0, x))
    return tirx.Cast(target, x)


def let(value: Element, body: Callable[[Element], Element]) -> Element:
    """`body(value)` with the value computed once: expressions are trees, so Python's sharing would copy it."""
    variable = tirx.Var("t", value.ty)
    return tirx.Let(variable, value, body(variable))


def select(condition: Element, yes: Element, no: Element) -> Element:
    return tirx.Select(condition, yes, no)


def is_nan(x: Element) -> Element:
    if not is_float(dtype_of(x)):
        return tirx.const(False, "bool")
    return tirx.isnan(_at_least_float32(x))


def is_finite(x: Element) -> Element:
    if not is_float(dtype_of(x)):
        return tirx.const(True, "bool")
    wide = _at_least_float32(x)
    return tirx.LT(tirx.abs(wide), tirx.infinity(dtype_of(wide)))


def _at_least_float32(x: Element) -> Element:
    return x if dtype_of(x) in ("float32", "float64") else tirx.Cast("float32", x)


# ---- arithmetic


def wrapping(node: str) -> Callable[[Element, Element], Element]:
    """The TIR node of this name, with integers that wrap."""

    def apply(x: Element, y: Element) -> Element:
        dtype = dtype_of(x)
        operation = getattr(tirx, node)
        if dtype not in ("int32", "int64"):
            return operation(x, y)
        unsigned = f"u{dtype}"
        return tirx.Cast(dtype, operation(tirx.Cast(unsigned, x), tirx.Cast(unsigned, y)))

    return apply


add = wrapping("Add")
subtract = wrapping("Sub")
multiply = wrapping("Mul")


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
    return select(tirx.GT(x, zero), one, select(tirx.LT(x, zero), constant(-1, x), x))


def maximum(x: Element, y: Element) -> Element:
    if not is_float(dtype_of(x)):
        return tirx.Max(x, y)
    return select(tirx.Or(tirx.GE(x, y), is_nan(x)), x, y)


def minimum(x: Element, y: Element) -> Element:
    if not is_float(dtype_of(x)):
        return tirx.Min(x, y)
    return select(tirx.Or(tirx.LE(x, y), is_nan(x)), x, y)


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
    quotient = tirx.floordiv(x, _safe_divisor(y))
    return quotient if dtype.startswith("u") else select(tirx.EQ(y, constant(-1, y)), negative(x), quotient)


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
        below = tirx.And(tirx.NE(remainder, zero), tirx.NE(tirx.LT(remainder, zero), tirx.LT(y, zero)))
        quotient = (x - remainder) / y - select(below, one, zero)
        return let(quotient, lambda q: let(tirx.floor(q), lambda f: rounded(q, f)))

    def rounded(quotient: Element, floor: Element) -> Element:
        nearest = select(tirx.GT(quotient - floor, constant(0.5, x)), floor + one, floor)
        return select(tirx.EQ(y, zero), tirx.Div(x, y), select(tirx.NE(quotient, zero), nearest, zero))

    return let(external("fmod", x, y), from_remainder)


def _float_mod(x: Element, y: Element) -> Element:
    zero = constant(0, x)

    def adjusted(remainder: Element) -> Element:
        below = tirx.NE(tirx.LT(remainder, zero), tirx.LT(y, zero))
        return select(tirx.NE(remainder, zero), select(below, remainder + y, remainder), zero)

    return let(external("fmod", x, y), lambda r: select(is_nan(r), r, adjusted(r)))


# ---- powers


def power(x: Element, y: Element) -> Element:
    """x to the y. An integer exponent is not negative (a requirement of the operator)."""
    dtype = dtype_of(x)
    if not is_float(dtype):
        return _integer_power(x, y)
    square = tirx.EQ(y, constant(2, y))  # the frequent exponent needs no call of the library
    return tirx.if_then_else(square, multiply(x, x), cast(tirx.pow(_at_least_float32(x), _at_least_float32(y)), dtype))


def _integer_power(x: Element, y: Element) -> Element:
    """By squaring, one step for each bit of the exponent."""
    bits = np.dtype(dtype_of(y)).itemsize * 8
    if not dtype_of(y).startswith("u"):
        bits -= 1
    one = constant(1, x)

    def step(result: Element, base: Element, bit: int) -> Element:
        odd = tirx.NE(tirx.bitwise_and(tirx.shift_right(y, constant(bit, y)), constant(1, y)), constant(0, y))
        following = multiply(result, select(odd, base, one))
        if bit + 1 == bits:
            return following
        return let(following, lambda r: let(multiply(base, base), lambda b: step(r, b, bit + 1)))

    return step(one, x, 0)


# ---- bits


def bitwise(name: str) -> Callable[[Element, Element], Element]:
    """`bitwise_and`, `bitwise_or` or `bitwise_xor`, also of bools."""
    of_bools = {"bitwise_and": "And", "bitwise_or": "Or", "bitwise_xor": "NE"}[name]
    return lambda x, y: getattr(tirx, of_bools if dtype_of(x) == "bool" else name)(x, y)


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
