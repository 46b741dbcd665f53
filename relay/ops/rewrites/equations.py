"""The table of equations that rewrite a call into another expression. See `relay.operator.rewriting`.

Equations that follow from an operator's facts (a neutral element, f(f(x)) = x, ..) are not here: they are in
`relay.transform.cleanup.algebra`. Each right side is cheaper than the left one, or a normal form, so rewriting ends.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

import relay.ops.elementwise.arithmetic

# They register the operators that the table is about.
import relay.ops.elementwise.comparison
import relay.ops.elementwise.elementary
import relay.ops.rewrites.shape_equations
import relay.ops.shape.creation  # noqa: F401
from relay.ir.expr import Constant
from relay.ir.types import BOOL, BaseClass, BaseType
from relay.operator.rewriting import Exactness, ProducerLookup, equation
from relay.ops.notation import Value, constant_number, is_integer, number_like
from relay.typecheck import relations

ROUNDING, FAST = Exactness.ROUNDING, Exactness.FAST


def _number(value: Value) -> float | None:
    """The number that all elements of a constant are."""
    if not isinstance(value.atom, Constant) or not value.atom.value.size:
        return None
    first = value.atom.value.flat[0]
    return first.item() if bool((value.atom.value == first).all()) else None


def _is_filled_with(made_by: ProducerLookup, value: Value, number: int) -> bool:
    """True if all elements are a number."""
    if _number(value) == number:
        return True
    copied = made_by(value, "broadcast_to")
    if copied is not None:
        return _is_filled_with(made_by, copied.operands[0], number)
    names = {0: ("zeros", "zeros_like"), 1: ("ones", "ones_like")}.get(number, ())
    return any(made_by(value, name) is not None for name in names)


def _is_same(one: Value, other: Value) -> bool:
    return one.atom is other.atom


def _filled_like(number: float, like: Value, base: BaseType) -> Value:
    """A number for each element of another tensor."""
    one = like.emitter.constant(number, base)
    return one.op("broadcast_to", shape=like.shape) if like.ndim else one


# ---- dtypes and choices


def _holds(inner: BaseType, outer: BaseType) -> bool:
    """True if every value of one dtype is one of another."""
    if inner.base_class is BaseClass.BOOL:
        return True
    return np.can_cast(inner.dtype, outer.dtype, "safe") and not (
        inner.base_class is BaseClass.INTEGER and outer.is_float and inner.dtype.itemsize >= outer.dtype.itemsize
    )


@equation("cast", "cast(cast(x, A), B) = cast(x, B), if A has all values of x")
def _(made_by: ProducerLookup, x: Value, dtype: BaseType) -> Value | None:
    inner = made_by(x, "cast")
    if inner is None or not _holds(inner.operands[0].base, x.base):
        return None
    (source,) = inner.operands
    return source if source.base == dtype else source.op("cast", dtype=dtype)


@equation("where", "where(c, x, x) = x")
def _(made_by: ProducerLookup, condition: Value, x: Value, y: Value) -> Value | None:
    shape = relations.broadcast(condition.shape, x.shape)
    return x if _is_same(x, y) and shape == x.shape else None


@equation("where", "where(true, x, y) = x, and where(false, x, y) = y")
def _(made_by: ProducerLookup, condition: Value, x: Value, y: Value) -> Value | None:
    known = next((b for b in (True, False) if _is_filled_with(made_by, condition, b)), None)
    chosen = x if known else y
    shape = relations.broadcast(condition.shape, relations.broadcast(x.shape, y.shape))
    return chosen if known is not None and chosen.shape == shape else None


@equation("where", "where(not c, x, y) = where(c, y, x)")
def _(made_by: ProducerLookup, condition: Value, x: Value, y: Value) -> Value | None:
    negated = made_by(condition, "logical_not")
    return None if negated is None else negated.operands[0].op("where", y, x)


def _covering_operand(x: Value, y: Value, result: Value) -> Value | None:
    return result if relations.broadcast(x.shape, y.shape) == result.shape else None


@equation("logical_and", "x and false = false")
def _(made_by: ProducerLookup, x: Value, y: Value) -> Value | None:
    false = next((v for v in (x, y) if constant_number(v) is False), None)
    return None if false is None else _covering_operand(x, y, false)


@equation("logical_or", "x or true = true")
def _(made_by: ProducerLookup, x: Value, y: Value) -> Value | None:
    true = next((v for v in (x, y) if constant_number(v) is True), None)
    return None if true is None else _covering_operand(x, y, true)


def _define_absorption(name: str) -> None:
    @equation(name, f"{name}({name}(x, y), y) = {name}(x, y)")
    def _(made_by: ProducerLookup, x: Value, y: Value) -> Value | None:
        for outer, other in ((x, y), (y, x)):
            inner = made_by(outer, name)
            if inner is not None and any(_is_same(other, v) for v in inner.operands):
                return _covering_operand(x, y, outer)
        return None


_define_absorption("maximum")
_define_absorption("minimum")


# ---- comparisons with the same


def _define_self_comparison(name: str, text: str, result: bool, exactness: Exactness, floats: bool | None) -> None:
    @equation(name, text, exactness)
    def _(made_by: ProducerLookup, x: Value, y: Value) -> Value | None:
        return _filled_like(result, x, BOOL) if _is_same(x, y) and floats in (None, x.base.is_float) else None


for _name in ("less", "greater", "logical_xor"):
    _define_self_comparison(_name, f"{_name}(x, x) = False", False, Exactness.EXACT, None)
for _name, _truth in (("equal", True), ("less_equal", True), ("greater_equal", True), ("not_equal", False)):
    _define_self_comparison(_name, f"{_name}(x, x) = {_truth}, except for floats", _truth, Exactness.EXACT, False)
    _define_self_comparison(_name, f"{_name}(x, x) = {_truth}, for floats", _truth, FAST, True)


# ---- signs


@equation("add", "x + -y = x - y")
def _(made_by: ProducerLookup, x: Value, y: Value) -> Value | None:
    for one, other in ((x, y), (y, x)):
        negated = made_by(other, "negative")
        if negated is not None:
            return one - negated.operands[0]
    return None


@equation("subtract", "x - -y = x + y")
def _(made_by: ProducerLookup, x: Value, y: Value) -> Value | None:
    negated = made_by(y, "negative")
    return None if negated is None else x + negated.operands[0]


@equation("multiply", "-x * -y = x * y")
def _(made_by: ProducerLookup, x: Value, y: Value) -> Value | None:
    left, right = made_by(x, "negative"), made_by(y, "negative")
    return None if left is None or right is None else left.operands[0] * right.operands[0]


def _even_function_rules(name: str) -> None:
    @equation(name, f"{name}(-x) = {name}(x), unless x is unsigned")
    def _(made_by: ProducerLookup, x: Value) -> Value | None:
        negated = made_by(x, "negative")
        return None if negated is None or is_unsigned(x.base) else negated.operands[0].op(name)


for _name in ("abs", "square", "cos"):
    _even_function_rules(_name)


@equation("multiply", "x * -1 = -x")
def _(made_by: ProducerLookup, x: Value, y: Value) -> Value | None:
    for one, other in ((x, y), (y, x)):
        if _number(other) == -1 and not is_unsigned(one.base):
            return _covering_operand(x, y, one) and -one
    return None


def is_unsigned(base: BaseType) -> bool:
    """True if a dtype has no negative numbers."""
    return base.name.startswith("uint") or base.base_class is BaseClass.BOOL


# ---- numbers


@equation("divide", "x / c = x * (1 / c), if c is a power of two")
def _(made_by: ProducerLookup, x: Value, y: Value) -> Value | None:
    number = _number(y)
    if number is None or not math.isfinite(number) or abs(math.frexp(number)[0]) != 0.5:
        return None
    return _times_reciprocal(x, y)


@equation("divide", "x / c = x * (1 / c)", ROUNDING)
def _(made_by: ProducerLookup, x: Value, y: Value) -> Value | None:
    number = _number(y)
    if number is None or not math.isfinite(number) or number == 0:
        return None
    return _times_reciprocal(x, y)


def _times_reciprocal(x: Value, y: Value) -> Value | None:
    """x * (1 / c) for a constant y, unless the reciprocal is not a normal number."""
    assert isinstance(y.atom, Constant)
    with np.errstate(all="ignore"):
        reciprocal = np.asarray(1 / y.atom.value.astype(np.float64)).astype(y.atom.value.dtype)
    one = float(np.abs(reciprocal.flat[0]))
    tiny = 2.0**-1000 if y.base.name == "float64" else 2.0**-100 if y.base.dtype.itemsize == 4 else 2.0**-14
    if not tiny < one < 1 / tiny:
        return None
    emitted = y.emitter.constant(reciprocal, y.base)
    return x * emitted


@equation("power", "x ** 0 = 1")
def _(made_by: ProducerLookup, x: Value, y: Value) -> Value | None:
    fits = _number(y) == 0 and relations.broadcast(x.shape, y.shape) == x.shape
    return x.op("ones_like") if fits else None


@equation("power", "x ** n = x * .. * x for n = 2, 3, 4", ROUNDING)
def _(made_by: ProducerLookup, x: Value, y: Value) -> Value | None:
    number = _number(y)
    if number not in (2, 3, 4) or relations.broadcast(x.shape, y.shape) != x.shape:
        return None
    square = x * x
    return square if number == 2 else square * (x if number == 3 else square)


@equation("power", "x ** -1 = 1 / x", ROUNDING)
def _(made_by: ProducerLookup, x: Value, y: Value) -> Value | None:
    fits = x.base.is_float and _number(y) == -1 and relations.broadcast(x.shape, y.shape) == x.shape
    return number_like(x, 1) / x if fits else None


@equation("floor_divide", "x // 1 = x, for integers")
def _(made_by: ProducerLookup, x: Value, y: Value) -> Value | None:
    return _covering_operand(x, y, x) if is_integer(x.base) and _number(y) == 1 else None


@equation("mod", "x % 1 = 0, for integers")
def _(made_by: ProducerLookup, x: Value, y: Value) -> Value | None:
    fits = is_integer(x.base) and _number(y) == 1 and relations.broadcast(x.shape, y.shape) == x.shape
    return x.op("zeros_like") if fits else None


@equation("power", "x ** 0.5 = sqrt(x)", FAST)
def _(made_by: ProducerLookup, x: Value, y: Value) -> Value | None:
    fits = _number(y) == 0.5 and relations.broadcast(x.shape, y.shape) == x.shape
    return x.op("sqrt") if fits else None


def _constant(value: Value) -> bool:
    return isinstance(value.atom, Constant) and value.ndim == 0


def _shift(made_by: ProducerLookup, value: Value) -> tuple[Value, Value, bool] | None:
    """x, c and whether it is added, of x + c and x - c. Of two constants the sum is for folding: it could be merged
    for ever."""
    added, taken = made_by(value, "add"), made_by(value, "subtract")
    pairs = [] if added is None else [added.operands, added.operands[::-1]]
    for x, constant in pairs if taken is None else [taken.operands]:
        if _constant(constant) and not isinstance(x.atom, Constant):
            return x, constant, taken is None
    return None


def _merging_rules(exactness: Exactness, text: str, applies: Callable[[Value], bool]) -> None:
    @equation("add", f"(x + c) + d = x + (c + d), {text}", exactness)
    def _(made_by: ProducerLookup, x: Value, y: Value) -> Value | None:
        for outer, last in ((x, y), (y, x)):
            found = _shift(made_by, outer) if applies(x) and _constant(last) else None
            if found is not None:
                rest, first, added = found
                return rest + (last + first if added else last - first)
        return None

    @equation("subtract", f"(x + c) - d = x + (c - d), {text}", exactness)
    def _(made_by: ProducerLookup, x: Value, y: Value) -> Value | None:
        found = _shift(made_by, x) if applies(x) and _constant(y) else None
        if found is None:
            return None
        rest, first, added = found
        return rest + (first - y) if added else rest - (first + y)

    @equation("add", f"(x - y) + y = x, {text}", exactness)
    def _(made_by: ProducerLookup, x: Value, y: Value) -> Value | None:
        for outer, last in ((x, y), (y, x)):
            taken = made_by(outer, "subtract") if applies(x) else None
            if taken is not None and _is_same(taken.operands[1], last):
                return _covering_operand(outer, last, taken.operands[0])
        return None

    @equation("subtract", f"(x + y) - y = x, {text}", exactness)
    def _(made_by: ProducerLookup, x: Value, y: Value) -> Value | None:
        added = made_by(x, "add") if applies(x) else None
        for one, other in () if added is None else (added.operands, added.operands[::-1]):
            if _is_same(other, y):
                return _covering_operand(x, y, one)
        return None

    @equation("subtract", f"0 - x = -x, {text}", exactness)
    def _(made_by: ProducerLookup, x: Value, y: Value) -> Value | None:
        return _covering_operand(x, y, y) and -y if applies(x) and _is_filled_with(made_by, x, 0) else None


_merging_rules(Exactness.EXACT, "for integers", lambda x: is_integer(x.base))
_merging_rules(FAST, "for floats", lambda x: x.base.is_float)


def _define_constant_merging(exactness: Exactness, text: str, applies: Callable[[Value, Value, Value], bool]) -> None:
    @equation("multiply", f"(x * c) * d = x * (c * d), {text}", exactness)
    def _(made_by: ProducerLookup, x: Value, y: Value) -> Value | None:
        for outer, last in ((x, y), (y, x)):
            inner = made_by(outer, "multiply") if _constant(last) else None
            for one, first in () if inner is None else (inner.operands, inner.operands[::-1]):
                if _constant(first) and not isinstance(one.atom, Constant) and applies(one, first, last):
                    return one * (first * last)
        return None


def _doubles(value: Value) -> bool:
    """True if a product with a constant is exact except for overflow, which a larger factor of this kind keeps."""
    number = abs(_number(value) or 0)
    return 1 <= number < 2.0**7 and math.frexp(number)[0] == 0.5


_define_constant_merging(Exactness.EXACT, "for integers", lambda x, c, d: is_integer(x.base))
_define_constant_merging(Exactness.EXACT, "for powers of two from 1 to 64", lambda x, c, d: _doubles(c) and _doubles(d))
_define_constant_merging(FAST, "for floats", lambda x, c, d: x.base.is_float)


def _vanishing_rules(exactness: Exactness, integers: bool) -> None:
    which = "for integers" if integers else "for floats"

    def applies(x: Value) -> bool:
        return is_integer(x.base) == integers

    @equation("subtract", f"x - x = 0, {which}", exactness)
    def _(made_by: ProducerLookup, x: Value, y: Value) -> Value | None:
        return x.op("zeros_like") if _is_same(x, y) and applies(x) else None

    @equation("multiply", f"x * 0 = 0, {which}", exactness)
    def _(made_by: ProducerLookup, x: Value, y: Value) -> Value | None:
        for one, other in ((x, y), (y, x)):
            if (
                _is_filled_with(made_by, other, 0)
                and applies(one)
                and relations.broadcast(x.shape, y.shape) == one.shape
            ):
                return one.op("zeros_like")
        return None


_vanishing_rules(Exactness.EXACT, integers=True)
_vanishing_rules(FAST, integers=False)


# ---- what holds for real numbers only


@equation("add", "x + 0 = x", FAST)
def _(made_by: ProducerLookup, x: Value, y: Value) -> Value | None:
    for one, other in ((x, y), (y, x)):
        if _is_filled_with(made_by, other, 0):
            return _covering_operand(x, y, one)
    return None


@equation("divide", "x / x = 1", FAST)
def _(made_by: ProducerLookup, x: Value, y: Value) -> Value | None:
    return x.op("ones_like") if _is_same(x, y) else None


@equation("divide", "(x * y) / y = x", FAST)
def _(made_by: ProducerLookup, x: Value, y: Value) -> Value | None:
    product = made_by(x, "multiply")
    for one, other in () if product is None else (product.operands, product.operands[::-1]):
        if _is_same(other, y):
            return _covering_operand(x, y, one)
    return None


@equation("multiply", "(x / y) * y = x", FAST)
def _(made_by: ProducerLookup, x: Value, y: Value) -> Value | None:
    for outer, last in ((x, y), (y, x)):
        quotient = made_by(outer, "divide")
        if quotient is not None and _is_same(quotient.operands[1], last):
            return _covering_operand(outer, last, quotient.operands[0])
    return None


@equation("multiply", "sqrt(x) * sqrt(x) = x", FAST)
def _(made_by: ProducerLookup, x: Value, y: Value) -> Value | None:
    root = made_by(x, "sqrt") if _is_same(x, y) else None
    return None if root is None else root.operands[0]


def _inverse(outer: str, inner: str) -> None:
    @equation(outer, f"{outer}({inner}(x)) = x", FAST)
    def _(made_by: ProducerLookup, x: Value) -> Value | None:
        found = made_by(x, inner)
        return None if found is None else found.operands[0]


for _outer, _inner in (("log", "exp"), ("exp", "log"), ("square", "sqrt"), ("log1p", "expm1"), ("expm1", "log1p")):
    _inverse(_outer, _inner)


@equation("sqrt", "sqrt(x * x) = |x|", FAST)
def _(made_by: ProducerLookup, x: Value) -> Value | None:
    product = made_by(x, "multiply")
    if product is not None and _is_same(*product.operands):
        return product.operands[0].op("abs")
    squared = made_by(x, "square")
    return None if squared is None else squared.operands[0].op("abs")


@equation("multiply", "exp(x) * exp(y) = exp(x + y)", FAST)
def _(made_by: ProducerLookup, x: Value, y: Value) -> Value | None:
    left, right = made_by(x, "exp"), made_by(y, "exp")
    return None if left is None or right is None else (left.operands[0] + right.operands[0]).op("exp")
