"""Numerically stable forms: rewrites for where numbers nearly cancel, or an intermediate result overflows.

Each is equal to the left side for real numbers. Which one is better depends on the values, so `improve_accuracy` tries
them on samples. After Panchekha, Sanchez-Stern, Wilcox and Tatlock (Herbie, 2015), and Hamming's book of 1973.
"""

from __future__ import annotations

from typing import Any

import relay.ops.elementwise.arithmetic

# They register the operators that the table is about.
import relay.ops.elementwise.elementary
import relay.ops.reduction.reductions
import relay.ops.reduction.statistics  # noqa: F401
from relay.ir.expr import Constant
from relay.operator.rewriting import ProducerLookup, stable_form
from relay.ops.elementwise.comparison import where
from relay.ops.notation import Value, number_like


def _is_same(one: Value, other: Value) -> bool:
    return one.atom is other.atom


def _is_number(value: Value, number: float) -> bool:
    atom = value.atom
    return isinstance(atom, Constant) and atom.value.size > 0 and bool((atom.value == number).all())


def _plus_one(made_by: ProducerLookup, value: Value) -> Value | None:
    """x of 1 + x."""
    added = made_by(value, "add")
    if added is None:
        return None
    for one, other in (added.operands, added.operands[::-1]):
        if _is_number(one, 1):
            return other
    return None


def _difference(made_by: ProducerLookup, x: Value, y: Value) -> Value:
    """x - y without rounding where one is the other plus something."""
    for larger, smaller, sign in ((x, y, 1), (y, x, -1)):
        added = made_by(larger, "add")
        if added is not None:
            for one, other in (added.operands, added.operands[::-1]):
                if _is_same(one, smaller):
                    return other if sign == 1 else -other
        taken = made_by(larger, "subtract")
        if taken is not None and _is_same(taken.operands[0], smaller):
            return -taken.operands[1] if sign == 1 else taken.operands[1]
    return x - y


def _square(made_by: ProducerLookup, value: Value) -> Value | None:
    """x of x * x, x ** 2 or square(x)."""
    squared = made_by(value, "square")
    if squared is not None:
        return squared.operands[0]
    power = made_by(value, "power")
    if power is not None and _is_number(power.operands[1], 2):
        return power.operands[0]
    product = made_by(value, "multiply")
    return product.operands[0] if product is not None and _is_same(*product.operands) else None


# ---- logarithms and exponentials


@stable_form("log", "log(1 + x) = log1p(x)")
def _(made_by: ProducerLookup, x: Value) -> Value | None:
    rest = _plus_one(made_by, x)
    return None if rest is None else rest.op("log1p")


@stable_form("log", "log(1 - x) = log1p(-x)")
def _(made_by: ProducerLookup, x: Value) -> Value | None:
    taken = made_by(x, "subtract")
    if taken is None or not _is_number(taken.operands[0], 1):
        return None
    return (-taken.operands[1]).op("log1p")


@stable_form("log", "log(1 + exp(x)) = max(x, 0) + log1p(exp(-|x|))")
def _(made_by: ProducerLookup, x: Value) -> Value | None:
    rest = _plus_one(made_by, x)
    power = None if rest is None else made_by(rest, "exp")
    return None if power is None else _log_sum(power.operands[0], number_like(power.operands[0], 0))


@stable_form("log", "log(exp(x) + exp(y)) = max(x, y) + log1p(exp(-|x - y|))")
def _(made_by: ProducerLookup, x: Value) -> Value | None:
    added = made_by(x, "add")
    powers = [] if added is None else [made_by(o, "exp") for o in added.operands]
    if not powers or any(p is None for p in powers):
        return None
    one, other = (p.operands[0] for p in powers if p is not None)
    return _log_sum(one, other)


def _log_sum(x: Value, y: Value) -> Value:
    return x.op("maximum", y) + (-(x - y).op("abs")).op("exp").op("log1p")


@stable_form("log", "log(sum(exp(x))) = m + log(sum(exp(x - m))), m = max(x)")
def _(made_by: ProducerLookup, x: Value) -> Value | None:
    summed = made_by(x, "sum")
    power = None if summed is None else made_by(summed.operands[0], "exp")
    if summed is None or power is None:
        return None
    (terms,) = power.operands
    axis: Any = summed.attributes["axis"]
    highest = terms.op("max", axis=axis, keepdims=True)
    rest = (terms - highest).op("exp").op("sum", axis=axis, keepdims=True).op("log")
    found = highest + rest
    return found if found.shape == x.shape else found.op("reshape", shape=x.shape)


@stable_form("subtract", "exp(x) - 1 = expm1(x)")
def _(made_by: ProducerLookup, x: Value, y: Value) -> Value | None:
    for left, right, sign in ((x, y, 1), (y, x, -1)):
        power = made_by(left, "exp")
        if power is not None and _is_number(right, 1):
            found = power.operands[0].op("expm1")
            return found if sign == 1 else -found
    return None


@stable_form("add", "exp(x) + -1 = expm1(x)")
def _(made_by: ProducerLookup, x: Value, y: Value) -> Value | None:
    for left, right in ((x, y), (y, x)):
        power = made_by(left, "exp")
        if power is not None and _is_number(right, -1):
            return power.operands[0].op("expm1")
    return None


@stable_form("subtract", "exp(x) - exp(-x) = 2 sinh(x)")
def _(made_by: ProducerLookup, x: Value, y: Value) -> Value | None:
    left, right = made_by(x, "exp"), made_by(y, "exp")
    if left is None or right is None:
        return None
    (a,), (b,) = left.operands, right.operands
    for positive, negated, factor in ((a, b, 2), (b, a, -2)):
        sign = made_by(negated, "negative")
        if sign is not None and _is_same(sign.operands[0], positive):
            return positive.op("sinh") * factor
    return None


@stable_form("subtract", "log(x) - log(y) = log1p((x - y) / y)")
def _(made_by: ProducerLookup, x: Value, y: Value) -> Value | None:
    left, right = made_by(x, "log"), made_by(y, "log")
    if left is None or right is None:
        return None
    (a,), (b,) = left.operands, right.operands
    return (_difference(made_by, a, b) / b).op("log1p")


@stable_form("log", "log(sigmoid(x)) = min(x, 0) - log1p(exp(-|x|))")
def _(made_by: ProducerLookup, x: Value) -> Value | None:
    found = made_by(x, "sigmoid")
    if found is None:
        return None
    (inner,) = found.operands
    return inner.op("minimum", number_like(inner, 0)) - (-inner.op("abs")).op("exp").op("log1p")


@stable_form("divide", "exp(x) / (1 + exp(x)) = sigmoid(x)")
def _(made_by: ProducerLookup, x: Value, y: Value) -> Value | None:
    rest, power = _plus_one(made_by, y), made_by(x, "exp")
    below = None if rest is None else made_by(rest, "exp")
    if power is None or below is None or not _is_same(power.operands[0], below.operands[0]):
        return None
    return power.operands[0].op("sigmoid")


@stable_form("divide", "exp(x) / sum(exp(x)) = exp(x - m) / sum(exp(x - m)), m = max(x)")
def _(made_by: ProducerLookup, x: Value, y: Value) -> Value | None:
    power, summed = made_by(x, "exp"), made_by(y, "sum")
    below = None if summed is None else made_by(summed.operands[0], "exp")
    if power is None or summed is None or below is None or not _is_same(power.operands[0], below.operands[0]):
        return None
    (terms,) = power.operands
    axis: Any = summed.attributes["axis"]
    shifted = (terms - terms.op("max", axis=axis, keepdims=True)).op("exp")
    total = shifted.op("sum", axis=axis, keepdims=True)
    return shifted / (total if total.shape == y.shape else total.op("reshape", shape=y.shape))


# ---- squares and roots


@stable_form("sqrt", "sqrt(x x + y y) = m sqrt(1 + (n / m)^2), m = max(|x|, |y|), n = min(|x|, |y|)")
def _(made_by: ProducerLookup, x: Value) -> Value | None:
    added = made_by(x, "add")
    roots = [] if added is None else [_square(made_by, o) for o in added.operands]
    if not roots or any(r is None for r in roots):
        return None
    one, other = (r.op("abs") for r in roots if r is not None)
    larger, smaller = one.op("maximum", other), one.op("minimum", other)
    ratio = smaller / where(larger > 0, larger, number_like(larger, 1))
    return larger * (ratio * ratio + 1).op("sqrt")


@stable_form("subtract", "x x - y y = (x - y) (x + y)")
def _(made_by: ProducerLookup, x: Value, y: Value) -> Value | None:
    left, right = _square(made_by, x), _square(made_by, y)
    if right is not None and _is_number(x, 1):
        left = number_like(right, 1)
    if left is not None and _is_number(y, 1):
        right = number_like(left, 1)
    return None if left is None or right is None else (left - right) * (left + right)


@stable_form("subtract", "sqrt(x) - sqrt(y) = (x - y) / (sqrt(x) + sqrt(y))")
def _(made_by: ProducerLookup, x: Value, y: Value) -> Value | None:
    left, right = made_by(x, "sqrt"), made_by(y, "sqrt")
    if left is None or right is None:
        return None
    return _difference(made_by, left.operands[0], right.operands[0]) / (x + y)


def _beside_square(made_by: ProducerLookup, root: Value, other: Value) -> Value | None:
    """c of sqrt(y y + c), where y is the other value."""
    inside = made_by(root, "sqrt")
    if inside is None:
        return None
    (whole,) = inside.operands
    added, taken = made_by(whole, "add"), made_by(whole, "subtract")

    def is_square(term: Value) -> bool:
        squared = _square(made_by, term)
        negated = made_by(other, "negative")
        wanted = [other, *(() if negated is None else negated.operands)]
        return squared is not None and any(_is_same(squared, value) for value in wanted)

    for one, term in () if added is None else (added.operands, added.operands[::-1]):
        if is_square(one):
            return term
    if taken is not None and is_square(taken.operands[0]):
        return -taken.operands[1]
    return _plus_one(made_by, whole) if _is_number(other, 1) else None


@stable_form("subtract", "sqrt(y y + c) - y = c / (sqrt(y y + c) + y), where y > 0")
def _(made_by: ProducerLookup, x: Value, y: Value) -> Value | None:
    for root, other, sign in ((x, y, 1), (y, x, -1)):
        rest = _beside_square(made_by, root, other)
        if rest is not None:
            total = root + other.op("abs")
            found = where(other > 0, rest / total, total)
            return found if sign == 1 else -found
    return None


@stable_form("add", "sqrt(y y + c) + y = c / (sqrt(y y + c) - y), where y < 0")
def _(made_by: ProducerLookup, x: Value, y: Value) -> Value | None:
    for root, other in ((x, y), (y, x)):
        rest = _beside_square(made_by, root, other)
        if rest is not None:
            total = root + other.op("abs")
            return where(other < 0, rest / total, total)
    return None


@stable_form("subtract", "mean(x x) - mean(x)^2 = mean((x - mean(x))^2)")
def _(made_by: ProducerLookup, x: Value, y: Value) -> Value | None:
    squares, mean = made_by(x, "mean"), _square(made_by, y)
    inner = None if mean is None else made_by(mean, "mean")
    terms = None if squares is None else _square(made_by, squares.operands[0])
    if squares is None or inner is None or terms is None or not _is_same(terms, inner.operands[0]):
        return None
    if squares.attributes != inner.attributes:
        return None
    axis: Any = squares.attributes["axis"]
    centerd = terms - terms.op("mean", axis=axis, keepdims=True)
    return (centerd * centerd).op("mean", axis=axis, keepdims=squares.attributes["keepdims"])


# ---- differences


@stable_form("subtract", "1 / x - 1 / y = (y - x) / (x y)")
def _(made_by: ProducerLookup, x: Value, y: Value) -> Value | None:
    def inverse(value: Value) -> Value | None:
        found = made_by(value, "reciprocal")
        if found is not None:
            return found.operands[0]
        quotient = made_by(value, "divide")
        return quotient.operands[1] if quotient is not None and _is_number(quotient.operands[0], 1) else None

    one, other = inverse(x), inverse(y)
    if one is None or other is None:
        return None
    return _difference(made_by, other, one) / (one * other)


@stable_form("subtract", "(x + y) - x = y")
def _(made_by: ProducerLookup, x: Value, y: Value) -> Value | None:
    added = made_by(x, "add")
    if added is None:
        return None
    for one, other in (added.operands, added.operands[::-1]):
        if _is_same(one, y):
            return other
    return None


@stable_form("subtract", "1 - cos(x) = 2 sin(x / 2)^2")
def _(made_by: ProducerLookup, x: Value, y: Value) -> Value | None:
    cosine = made_by(y, "cos")
    if cosine is None or not _is_number(x, 1):
        return None
    half = (cosine.operands[0] * 0.5).op("sin")
    return half * half * 2


@stable_form("subtract", "sin(x) - sin(y) = 2 cos((x + y) / 2) sin((x - y) / 2)")
def _(made_by: ProducerLookup, x: Value, y: Value) -> Value | None:
    left, right = made_by(x, "sin"), made_by(y, "sin")
    if left is None or right is None:
        return None
    (a,), (b,) = left.operands, right.operands
    return ((a + b) * 0.5).op("cos") * (_difference(made_by, a, b) * 0.5).op("sin") * 2


@stable_form("subtract", "cos(x) - cos(y) = -2 sin((x + y) / 2) sin((x - y) / 2)")
def _(made_by: ProducerLookup, x: Value, y: Value) -> Value | None:
    left, right = made_by(x, "cos"), made_by(y, "cos")
    if left is None or right is None:
        return None
    (a,), (b,) = left.operands, right.operands
    return ((a + b) * 0.5).op("sin") * (_difference(made_by, a, b) * 0.5).op("sin") * -2


@stable_form("subtract", "atan(x) - atan(y) = atan2(x - y, 1 + x y), if x y > -1")
def _(made_by: ProducerLookup, x: Value, y: Value) -> Value | None:
    left, right = made_by(x, "atan"), made_by(y, "atan")
    if left is None or right is None:
        return None
    (a,), (b,) = left.operands, right.operands
    return _difference(made_by, a, b).op("atan2", a * b + 1)
