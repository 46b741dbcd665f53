"""The table of equations that rewrite a call into another expression. See `relay.operator.rewriting`.

Equations that follow from an operator's facts (a neutral element, f(f(x)) = x, ..) are not here: they are in
`relay.transform.algebra`. Each right side is cheaper than the left one, or a normal form, so rewriting ends.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

# They register the operators that the table is about.
import relay.ops.comparison
import relay.ops.elementary
import relay.ops.elementwise
import relay.ops.indexing
import relay.ops.shape
import relay.ops.slicing  # noqa: F401
from relay.ir.expr import Constant
from relay.ir.types import BaseClass, BaseType
from relay.operator.rewriting import Exactness, MadeBy, equation
from relay.ops.notation import Value, constant_number, is_integer
from relay.typecheck import relations

ROUNDING, FAST = Exactness.ROUNDING, Exactness.FAST


def _number(value: Value) -> float | None:
    """The number that all elements of a constant are."""
    if not isinstance(value.atom, Constant) or not value.atom.value.size:
        return None
    first = value.atom.value.flat[0]
    return first.item() if bool((value.atom.value == first).all()) else None


def _is(one: Value, other: Value) -> bool:
    return one.atom is other.atom


# ---- axes and shapes


@equation("transpose", "transpose(transpose(x)) = transpose(x), or x")
def _(made_by: MadeBy, x: Value, axes: Sequence[int] | None) -> Value | None:
    order = relations.permutation(axes, x.ndim)
    inner = made_by(x, "transpose")
    if inner is not None:
        first = relations.permutation(inner.attributes["axes"], x.ndim)
        (x,), order = inner.operands, tuple(first[axis] for axis in order)
    elif list(order) != sorted(order):
        return None
    return x if list(order) == sorted(order) else x.op("transpose", axes=tuple(order))


def _source(made_by: MadeBy, x: Value) -> Value | None:
    """What a value has the elements of, in the same order."""
    for name in ("reshape", "expand_dims", "squeeze"):
        inner = made_by(x, name)
        if inner is not None:
            return inner.operands[0]
    return None


@equation("reshape", "reshape(reshape(x)) = reshape(x)")
def _(made_by: MadeBy, x: Value, shape: Sequence[int]) -> Value | None:
    source = _source(made_by, x)
    if source is None:
        return None
    wanted = relations.reshape(x.shape, shape=shape)
    return source if source.shape == wanted else source.op("reshape", shape=wanted)


@equation("expand_dims", "expand_dims(reshape(x)) = x, if it has the shape")
def _(made_by: MadeBy, x: Value, axis: int | tuple[int, ...]) -> Value | None:
    source = _source(made_by, x)
    return source if source is not None and source.shape == relations.expand_dims(x.shape, axis=axis) else None


@equation("squeeze", "squeeze(reshape(x)) = x, if it has the shape")
def _(made_by: MadeBy, x: Value, axis: Any) -> Value | None:
    source = _source(made_by, x)
    return source if source is not None and source.shape == relations.squeeze(x.shape, axis=axis) else None


@equation("concatenate", "concatenate(x) = x")
def _(made_by: MadeBy, tensors: tuple[Value, ...], axis: int) -> Value | None:
    return tensors[0] if len(tensors) == 1 else None


@equation("strided_slice", "x[:] = x, and a part of a concatenation is that part")
def _(made_by: MadeBy, x: Value, begin: Sequence[int], end: Sequence[int], strides: Sequence[int]) -> Value | None:
    if any(s != 1 for s in strides):
        return None
    cut = [i for i, (b, e, n) in enumerate(zip(begin, end, x.shape, strict=True)) if (b, e) != (0, n)]
    if not cut:
        return x
    joined = made_by(x, "concatenate")
    if joined is None or len(cut) != 1 or joined.attributes["axis"] % x.ndim != cut[0]:
        return None
    place = 0
    for part in joined.operands:
        extent = part.shape[cut[0]]
        if not isinstance(extent, int):
            return None
        if (begin[cut[0]], end[cut[0]]) == (place, place + extent):
            return part
        place += extent
    return None


@equation("index", "index_update(x, i, y)[i] = y")
def _(made_by: MadeBy, x: Value, index: Value) -> Value | None:
    updated = made_by(x, "index_update")
    return updated.operands[2] if updated is not None and _is(updated.operands[1], index) else None


# ---- dtypes and choices


def _holds(inner: BaseType, outer: BaseType) -> bool:
    """Whether every value of one dtype is one of another."""
    if inner.base_class is BaseClass.BOOL:
        return True
    return np.can_cast(inner.dtype, outer.dtype, "safe") and not (
        inner.base_class is BaseClass.INTEGER and outer.is_float and inner.dtype.itemsize >= outer.dtype.itemsize
    )


@equation("cast", "cast(cast(x, A), B) = cast(x, B), if A has all values of x")
def _(made_by: MadeBy, x: Value, dtype: BaseType) -> Value | None:
    inner = made_by(x, "cast")
    if inner is None or not _holds(inner.operands[0].base, x.base):
        return None
    (source,) = inner.operands
    return source if source.base == dtype else source.op("cast", dtype=dtype)


@equation("where", "where(c, x, x) = x")
def _(made_by: MadeBy, condition: Value, x: Value, y: Value) -> Value | None:
    shape = relations.broadcast(condition.shape, x.shape)
    return x if _is(x, y) and shape == x.shape else None


def _covering(x: Value, y: Value, result: Value) -> Value | None:
    return result if relations.broadcast(x.shape, y.shape) == result.shape else None


@equation("logical_and", "x and false = false")
def _(made_by: MadeBy, x: Value, y: Value) -> Value | None:
    false = next((v for v in (x, y) if constant_number(v) is False), None)
    return None if false is None else _covering(x, y, false)


@equation("logical_or", "x or true = true")
def _(made_by: MadeBy, x: Value, y: Value) -> Value | None:
    true = next((v for v in (x, y) if constant_number(v) is True), None)
    return None if true is None else _covering(x, y, true)


def _nested(name: str) -> None:
    @equation(name, "max(max(x, y), y) = max(x, y)")
    def _(made_by: MadeBy, x: Value, y: Value) -> Value | None:
        for outer, other in ((x, y), (y, x)):
            inner = made_by(outer, name)
            if inner is not None and any(_is(other, v) for v in inner.operands):
                return _covering(x, y, outer)
        return None


_nested("maximum")
_nested("minimum")


# ---- signs


@equation("add", "x + -y = x - y")
def _(made_by: MadeBy, x: Value, y: Value) -> Value | None:
    for one, other in ((x, y), (y, x)):
        negated = made_by(other, "negative")
        if negated is not None:
            return one - negated.operands[0]
    return None


@equation("subtract", "x - -y = x + y")
def _(made_by: MadeBy, x: Value, y: Value) -> Value | None:
    negated = made_by(y, "negative")
    return None if negated is None else x + negated.operands[0]


@equation("multiply", "-x * -y = x * y")
def _(made_by: MadeBy, x: Value, y: Value) -> Value | None:
    left, right = made_by(x, "negative"), made_by(y, "negative")
    return None if left is None or right is None else left.operands[0] * right.operands[0]


def _even(name: str) -> None:
    @equation(name, "f(-x) = f(x)")
    def _(made_by: MadeBy, x: Value) -> Value | None:
        negated = made_by(x, "negative")
        return None if negated is None else negated.operands[0].op(name)


for _name in ("abs", "square", "cos"):
    _even(_name)


@equation("multiply", "x * -1 = -x")
def _(made_by: MadeBy, x: Value, y: Value) -> Value | None:
    for one, other in ((x, y), (y, x)):
        if _number(other) == -1 and not is_unsigned(one.base):
            return _covering(x, y, one) and -one
    return None


def is_unsigned(base: BaseType) -> bool:
    """Whether a dtype has no negative numbers."""
    return base.name.startswith("uint") or base.base_class is BaseClass.BOOL


# ---- numbers


@equation("divide", "x / c = x * (1 / c), if c is a power of two")
def _(made_by: MadeBy, x: Value, y: Value) -> Value | None:
    number = _number(y)
    if number is None or not math.isfinite(number) or abs(math.frexp(number)[0]) != 0.5:
        return None
    return _times_reciprocal(x, y)


@equation("divide", "x / c = x * (1 / c)", ROUNDING)
def _(made_by: MadeBy, x: Value, y: Value) -> Value | None:
    number = _number(y)
    if number is None or not math.isfinite(number) or number == 0:
        return None
    return _times_reciprocal(x, y)


def _times_reciprocal(x: Value, y: Value) -> Value | None:
    """x * (1 / c) for a constant y, unless the reciprocal is no normal number."""
    assert isinstance(y.atom, Constant)
    with np.errstate(all="ignore"):
        reciprocal = np.asarray(1 / y.atom.value.astype(np.float64)).astype(y.atom.value.dtype)
    one = float(np.abs(reciprocal.flat[0]))
    tiny = 2.0**-1000 if y.base.name == "float64" else 2.0**-100 if y.base.dtype.itemsize == 4 else 2.0**-14
    if not tiny < one < 1 / tiny:
        return None
    emitted = y.emitter.constant(reciprocal, y.base)
    return x * emitted


@equation("power", "x ** n = x * .. * x for n = 2, 3", ROUNDING)
def _(made_by: MadeBy, x: Value, y: Value) -> Value | None:
    number = _number(y)
    if number not in (2, 3) or relations.broadcast(x.shape, y.shape) != x.shape:
        return None
    return x * x if number == 2 else x * x * x


@equation("power", "x ** 0.5 = sqrt(x)", FAST)
def _(made_by: MadeBy, x: Value, y: Value) -> Value | None:
    fits = _number(y) == 0.5 and relations.broadcast(x.shape, y.shape) == x.shape
    return x.op("sqrt") if fits else None


def _reassociated(name: str, text: str) -> None:
    def merged(made_by: MadeBy, x: Value, y: Value) -> Value | None:
        for outer, constant in ((x, y), (y, x)):
            inner = made_by(outer, name)
            if not isinstance(constant.atom, Constant) or constant.ndim or inner is None:
                continue
            for one, other in (inner.operands, inner.operands[::-1]):
                # Three constants are for folding: they could be merged for ever.
                if isinstance(other.atom, Constant) and other.ndim == 0 and not isinstance(one.atom, Constant):
                    return one.op(name, other.op(name, constant))
        return None

    @equation(name, f"{text}, for integers")
    def _(made_by: MadeBy, x: Value, y: Value) -> Value | None:
        return merged(made_by, x, y) if is_integer(x.base) else None

    @equation(name, text, FAST)
    def _(made_by: MadeBy, x: Value, y: Value) -> Value | None:
        return merged(made_by, x, y)


_reassociated("add", "(x + c) + d = x + (c + d)")
_reassociated("multiply", "(x * c) * d = x * (c * d)")


def _vanishing(exactness: Exactness, integers: bool) -> None:
    which = "for integers" if integers else "for floats"

    def applies(x: Value) -> bool:
        return is_integer(x.base) == integers

    @equation("subtract", f"x - x = 0, {which}", exactness)
    def _(made_by: MadeBy, x: Value, y: Value) -> Value | None:
        return x.op("zeros_like") if _is(x, y) and applies(x) else None

    @equation("multiply", f"x * 0 = 0, {which}", exactness)
    def _(made_by: MadeBy, x: Value, y: Value) -> Value | None:
        for one, other in ((x, y), (y, x)):
            if _number(other) == 0 and applies(one) and relations.broadcast(x.shape, y.shape) == one.shape:
                return one.op("zeros_like")
        return None


_vanishing(Exactness.EXACT, integers=True)
_vanishing(FAST, integers=False)


# ---- what holds for real numbers only


@equation("add", "x + 0 = x", FAST)
def _(made_by: MadeBy, x: Value, y: Value) -> Value | None:
    for one, other in ((x, y), (y, x)):
        if _number(other) == 0:
            return _covering(x, y, one)
    return None


@equation("divide", "x / x = 1", FAST)
def _(made_by: MadeBy, x: Value, y: Value) -> Value | None:
    return x.op("ones_like") if _is(x, y) else None


def _inverse(outer: str, inner: str) -> None:
    @equation(outer, f"{outer}({inner}(x)) = x", FAST)
    def _(made_by: MadeBy, x: Value) -> Value | None:
        found = made_by(x, inner)
        return None if found is None else found.operands[0]


for _outer, _inner in (("log", "exp"), ("exp", "log"), ("square", "sqrt"), ("log1p", "expm1"), ("expm1", "log1p")):
    _inverse(_outer, _inner)


@equation("sqrt", "sqrt(x * x) = |x|", FAST)
def _(made_by: MadeBy, x: Value) -> Value | None:
    product = made_by(x, "multiply")
    if product is not None and _is(*product.operands):
        return product.operands[0].op("abs")
    squared = made_by(x, "square")
    return None if squared is None else squared.operands[0].op("abs")


@equation("multiply", "exp(x) * exp(y) = exp(x + y)", FAST)
def _(made_by: MadeBy, x: Value, y: Value) -> Value | None:
    left, right = made_by(x, "exp"), made_by(y, "exp")
    return None if left is None or right is None else (left.operands[0] + right.operands[0]).op("exp")
