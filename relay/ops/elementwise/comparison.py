"""Comparisons, logic, bits, selection and conversion of each element."""

from __future__ import annotations

from functools import partial

import numpy as np

from relay.ir.dims import add
from relay.ir.sizes.facts import AT_LEAST, DIFFERENT, EQUAL, DimConstraint
from relay.ir.types import BaseClass, BaseType
from relay.ops.notation import (
    Algebra,
    Element,
    Pattern,
    Relation,
    Tensor,
    Value,
    elementwise,
    number_like,
    register_op,
)
from relay.ops.samples import case, cases
from relay.ops.tir import scalar
from relay.ops.tir.tvm_modules import tirx
from relay.typecheck.relations import broadcast, same_shape

# What the operators of a section have in common.
_truth = partial(register_op, pattern=Pattern.BROADCAST, no_gradient="the result is a boolean")
_equality = partial(_truth, relation=Relation("T, T -> bool", broadcast), algebra=Algebra(commutative=True))
_order = partial(_truth, relation=Relation("T, T -> bool", broadcast))
_property = partial(
    _truth,
    pattern=Pattern.ELEMENTWISE,
    relation=Relation("T:number -> bool", same_shape),
    algebra=Algebra(of_booleans="booleans"),
)
_logic = partial(_truth, relation=Relation("bool, bool -> bool", broadcast))
_integer = partial(register_op, pattern=Pattern.BROADCAST, no_gradient="the result is an integer")
_bits = partial(_integer, relation=Relation("T:int|bool, T -> T", broadcast))


# ---- comparisons


def _ordered(*operands: Element) -> tuple[Element, ...]:
    """Numbers that compare as the operands do: False is less than True."""
    return tuple(tirx.Cast("uint8", x) if scalar.dtype_of(x) == "bool" else x for x in operands)


@_equality(compute=elementwise(scalar.equal, direct=True), on_dims=lambda x, y: DimConstraint(x, EQUAL, y))
def equal(x: Tensor, y: Tensor) -> Tensor:
    """x = y; NaN equals nothing. x: (T, s1), y: (T, s2) -> (bool, broadcast(s1, s2)).

    >>> relay.equal(np.int32([1, 2]), 2)
    Array([False,  True], dtype=bool)
    """
    return np.equal(x, y)


@_equality(compute=elementwise(scalar.not_equal, direct=True), on_dims=lambda x, y: DimConstraint(x, DIFFERENT, y))
def not_equal(x: Tensor, y: Tensor) -> Tensor:
    """Not x = y. x: (T, s1), y: (T, s2) -> (bool, broadcast(s1, s2)).

    >>> relay.not_equal(np.int32([1, 2]), 2)
    Array([ True, False], dtype=bool)
    """
    return np.not_equal(x, y)


@_order(
    compute=elementwise(lambda x, y: tirx.LT(*_ordered(x, y)), direct=True),
    on_dims=lambda x, y: DimConstraint(y, AT_LEAST, add(x, 1)),
)
def less(x: Tensor, y: Tensor) -> Tensor:
    """x < y; False is less than True. x: (T, s1), y: (T, s2) -> (bool, broadcast(s1, s2)).

    >>> relay.less(np.int32([1, 2]), 2)
    Array([ True, False], dtype=bool)
    """
    return np.less(x, y)


@_order(
    compute=elementwise(lambda x, y: tirx.LE(*_ordered(x, y)), direct=True),
    on_dims=lambda x, y: DimConstraint(y, AT_LEAST, x),
)
def less_equal(x: Tensor, y: Tensor) -> Tensor:
    """x <= y. x: (T, s1), y: (T, s2) -> (bool, broadcast(s1, s2)).

    >>> relay.less_equal(np.int32([1, 3]), 2)
    Array([ True, False], dtype=bool)
    """
    return np.less_equal(x, y)


@_order(
    compute=elementwise(lambda x, y: tirx.GT(*_ordered(x, y)), direct=True),
    on_dims=lambda x, y: DimConstraint(x, AT_LEAST, add(y, 1)),
)
def greater(x: Tensor, y: Tensor) -> Tensor:
    """x > y. x: (T, s1), y: (T, s2) -> (bool, broadcast(s1, s2)).

    >>> relay.greater(np.int32([1, 3]), 2)
    Array([False,  True], dtype=bool)
    """
    return np.greater(x, y)


@_order(
    compute=elementwise(lambda x, y: tirx.GE(*_ordered(x, y)), direct=True),
    on_dims=lambda x, y: DimConstraint(x, AT_LEAST, y),
)
def greater_equal(x: Tensor, y: Tensor) -> Tensor:
    """x >= y. x: (T, s1), y: (T, s2) -> (bool, broadcast(s1, s2)).

    >>> relay.greater_equal(np.int32([1, 2]), 2)
    Array([False,  True], dtype=bool)
    """
    return np.greater_equal(x, y)


@_property(compute=elementwise(scalar.is_nan, direct=True))
def isnan(x: Tensor) -> Tensor:
    """True where an element is not a number. x: (T, s) -> (bool, s).

    >>> relay.isnan(np.float32([1, np.nan]))
    Array([False,  True], dtype=bool)
    """
    return np.isnan(x)


@_property(compute=elementwise(scalar.is_finite, direct=True))
def isfinite(x: Tensor) -> Tensor:
    """True where an element is neither infinite nor NaN. x: (T, s) -> (bool, s).

    >>> relay.isfinite(np.float32([1, np.inf]))
    Array([ True, False], dtype=bool)
    """
    return np.isfinite(x)


@_property(compute=elementwise(scalar.is_infinite, direct=True))
def isinf(x: Tensor) -> Tensor:
    """True where an element is infinite. x: (T, s) -> (bool, s).

    >>> relay.isinf(np.float32([1, -np.inf, np.nan]))
    Array([False,  True, False], dtype=bool)
    """
    return np.isinf(x)


# ---- logic


@_logic(
    compute=elementwise(lambda x, y: tirx.And(x, y), direct=True),
    algebra=Algebra(commutative=True, associative=True, idempotent=True, identity=True),
)
def logical_and(x: Tensor, y: Tensor) -> Tensor:
    """Both. x: (bool, s1), y: (bool, s2) -> (bool, broadcast(s1, s2)).

    >>> relay.logical_and(np.array([True, False]), True)
    Array([ True, False], dtype=bool)
    """
    return np.logical_and(x, y)


@_logic(
    compute=elementwise(lambda x, y: tirx.Or(x, y), direct=True),
    algebra=Algebra(commutative=True, associative=True, idempotent=True, identity=False),
)
def logical_or(x: Tensor, y: Tensor) -> Tensor:
    """Either or both. x: (bool, s1), y: (bool, s2) -> (bool, broadcast(s1, s2)).

    >>> relay.logical_or(np.array([True, False]), False)
    Array([ True, False], dtype=bool)
    """
    return np.logical_or(x, y)


@_logic(
    compute=elementwise(scalar.not_equal, direct=True),
    algebra=Algebra(commutative=True, associative=True, identity=False),
)
def logical_xor(x: Tensor, y: Tensor) -> Tensor:
    """One only. x: (bool, s1), y: (bool, s2) -> (bool, broadcast(s1, s2)).

    >>> relay.logical_xor(np.array([True, False]), True)
    Array([False,  True], dtype=bool)
    """
    return np.logical_xor(x, y)


@_truth(
    relation=Relation("bool -> bool", same_shape),
    pattern=Pattern.ELEMENTWISE,
    compute=elementwise(scalar.negation, direct=True),
    algebra=Algebra(involution=True),
)
def logical_not(x: Tensor) -> Tensor:
    """The opposite. x: (bool, s) -> (bool, s).

    >>> relay.logical_not(np.array([True, False]))
    Array([False,  True], dtype=bool)
    """
    return np.logical_not(x)


# ---- bits


@_bits(
    compute=elementwise(scalar.bitwise("bitwise_and"), direct=True),
    algebra=Algebra(commutative=True, associative=True, idempotent=True),
)
def bitwise_and(x: Tensor, y: Tensor) -> Tensor:
    """The bits set in both. x: (T int or bool, s1), y: (T, s2) -> (T, broadcast(s1, s2)).

    >>> relay.bitwise_and(np.int32([6, 5]), 3)
    Array([2, 1], dtype=int32)
    """
    return np.bitwise_and(x, y)


@_integer(
    relation=Relation("T:int|bool -> T", same_shape),
    pattern=Pattern.ELEMENTWISE,
    compute=elementwise(scalar.bitwise_not, direct=True),
    algebra=Algebra(involution=True),
)
def bitwise_not(x: Tensor) -> Tensor:
    """All bits turned. x: (T int or bool, s) -> (T, s).

    >>> relay.bitwise_not(np.int32([0, 5]))
    Array([-1, -6], dtype=int32)
    """
    return np.bitwise_not(x)


@_bits(
    compute=elementwise(scalar.bitwise("bitwise_or"), direct=True),
    algebra=Algebra(commutative=True, associative=True, idempotent=True, identity=0),
)
def bitwise_or(x: Tensor, y: Tensor) -> Tensor:
    """The bits set in either or both. x: (T int or bool, s1), y: (T, s2) -> (T, broadcast(s1, s2)).

    >>> relay.bitwise_or(np.int32([6, 5]), 3)
    Array([7, 7], dtype=int32)
    """
    return np.bitwise_or(x, y)


@_bits(
    compute=elementwise(scalar.bitwise("bitwise_xor"), direct=True),
    algebra=Algebra(commutative=True, associative=True, identity=0),
)
def bitwise_xor(x: Tensor, y: Tensor) -> Tensor:
    """The bits set in one only. x: (T int or bool, s1), y: (T, s2) -> (T, broadcast(s1, s2)).

    >>> relay.bitwise_xor(np.int32([6, 5]), 3)
    Array([5, 6], dtype=int32)
    """
    return np.bitwise_xor(x, y)


_SHIFTS = cases(
    *(case(*shapes) for shapes in (((), ()), ((2, 3), (3,)), ((0, 3), (1,)), ((), (4,)))),
    case(np.array([1, -1, 5, -7, 1, 2**30, -9], np.int32), np.array([31, 31, 32, 33, -1, 2, 40], np.int32)),
    case(np.array([1, -128, 100], np.int8), np.array([7, 8, 3], np.int8)),
    case(np.array([255, 255, 255], np.uint8), np.array([1, 8, 200], np.uint8)),
    case(np.array([1, -1, 3], np.int64), np.array([63, 64, 62], np.int64)),
    low=0.0,
    high=7.0,
)
_shift = partial(
    _integer,
    relation=Relation("T:int, T -> T", broadcast),
    sampler=_SHIFTS,
    algebra=Algebra(of_booleans="integers"),
)


@_shift(compute=elementwise(scalar.left_shift))
def left_shift(x: Tensor, y: Tensor) -> Tensor:
    """x with its bits moved up by y; 0 where y is not below the width. x: (T int, s1), y: (T, s2) -> (T, broadcast(s1,
    s2)).

    >>> relay.left_shift(np.int32([1, 2]), 3)
    Array([ 8, 16], dtype=int32)
    """
    return np.left_shift(x, y)


@_shift(compute=elementwise(scalar.right_shift))
def right_shift(x: Tensor, y: Tensor) -> Tensor:
    """x with its bits moved down by y, the sign shifted in. x: (T int, s1), y: (T, s2) -> (T, broadcast(s1, s2)).

    >>> relay.right_shift(np.int32([9, -9]), 1)
    Array([ 4, -5], dtype=int32)
    """
    return np.right_shift(x, y)


# ---- selection, conversion


def _where_gradient(condition: Value, x: Value, y: Value, out: Value, dout: Value) -> tuple[None, Value, Value]:
    zero = number_like(dout, 0)
    return None, where(condition, dout, zero), where(condition, zero, dout)


_BOTH = np.array([[True], [False]])


@register_op(
    relation=Relation("bool, T, T -> T", broadcast),
    pattern=Pattern.BROADCAST,
    compute=elementwise(lambda condition, x, y: tirx.Select(condition, x, y), direct=True),
    gradient=_where_gradient,
    sampler=cases(
        case(np.array(True), (), ()),
        case(_BOTH, (3,), (2, 3)),
        case(_BOTH[:, 0], (2,), ()),
        case(np.zeros((0, 2), bool), (2,), (1,)),
    ),
)
def where(condition: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """x where the condition holds, otherwise y; no gradient passes the side not taken.
    condition: (bool, s1), x: (T, s2), y: (T, s3) -> (T, broadcast(s1, s2, s3)).

    >>> relay.where(np.array([True, False]), np.float32([1, 2]), 0)
    Array([1., 0.], dtype=float32)
    """
    return np.where(condition, x, y)


def _cast_gradient(x: Value, out: Value, dout: Value, dtype: BaseType) -> Value | None:
    return dout.op("cast", dtype=x.base) if x.base.is_float else None


_FLOAT32, _FLOAT64, _INT32, _BOOL = (BaseType(name) for name in ("float32", "float64", "int32", "bool"))


@register_op(
    relation=Relation("T -> @dtype", same_shape),
    pattern=Pattern.ELEMENTWISE,
    compute=elementwise(scalar.cast, direct=True, widened=False),
    gradient=_cast_gradient,
    sampler=cases(
        case((2, 3), dtype=_FLOAT64),
        case((3,), dtype=_FLOAT32),
        case((2, 3), dtype=_INT32),
        case((), dtype=_BOOL),
        case(np.array([True, False]), dtype=_FLOAT32),
        case(np.array([-3, 0, 2**31 - 1], np.int32), dtype=BaseType("int64")),
        case(np.array([-3, 0, 300], np.int32), dtype=BaseType("uint8")),
        case(np.array([np.nan, 0.0, -0.5], np.float64), dtype=_BOOL),
        case(np.array([1.5, -2.0], np.float32), dtype=BaseType("float16")),
    ),
    algebra=Algebra(coercion=True),
    on_dims=lambda x, dtype: x if dtype.base_class is BaseClass.INTEGER else None,
)
def cast(x: Tensor, dtype: BaseType) -> Tensor:
    """x in another dtype: floats lose their fraction in an integer, integers wrap, numbers other than 0 are true.
    x: (T, s) -> (dtype, s).

    >>> relay.cast(np.float32([1.5, -1.5]), relay.Int32)
    Array([ 1, -1], dtype=int32)
    """
    return x.astype(dtype.dtype)


@register_op(
    relation=Relation("T -> T", same_shape),
    pattern=Pattern.ELEMENTWISE,
    compute=elementwise(lambda x: x, direct=True),
    gradient=lambda x, out, dout: None,
    algebra=Algebra(idempotent=True, maps_over_tree=True, forwards=0),
)
def stop_gradient(x: Tensor) -> Tensor:
    """x itself, as a constant to differentiation; of a structure or data all tensors in it. x: (T, s) -> (T, s).

    >>> relay.stop_gradient(np.float32([1, 2]))
    Array([1., 2.], dtype=float32)
    """
    return np.array(x)


@register_op(
    relation=Relation("T -> T", same_shape),
    pattern=Pattern.ELEMENTWISE,
    compute=elementwise(lambda x: x, direct=True),
    gradient=lambda x, out, dout: dout,
    algebra=Algebra(linear=(0,), idempotent=True, coercion=True, forwards=0),
)
def copy(x: Tensor) -> Tensor:
    """x itself. x: (T, s) -> (T, s).

    >>> relay.copy(np.float32([1, 2]))
    Array([1., 2.], dtype=float32)
    """
    return np.array(x)


@register_op(
    relation=Relation("T:float, T -> T", same_shape),
    pattern=Pattern.ELEMENTWISE,
    compute=lambda x, y: elementwise(lambda e: e, direct=True)(y),
    gradient=lambda x, y, out, dout: (dout, None),
    algebra=Algebra(forwards=1),
    sampler=cases(case((2, 3), (2, 3)), case((), ())),
)
def straight_through(x: Tensor, y: Tensor) -> Tensor:
    """y, whose derivative is that of x: for what is computed from x by steps that have none, as rounding (Bengio,
    Leonard and Courville, 2013). x, y: (T float, s) -> (T, s).

    >>> relay.straight_through(np.float32([1.2, 2.7]), np.float32([1, 3]))
    Array([1., 3.], dtype=float32)
    """
    return np.array(y)
