"""Arithmetic on each element. Operands are broadcast; gradients leave the sum over broadcast axes to the AD pass."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from relay.ir import dims as arithmetic
from relay.ir.dims import Dim
from relay.operator import composite
from relay.ops import batching
from relay.ops.elementwise.comparison import where
from relay.ops.notation import (
    Algebra,
    Batching,
    Element,
    Numerics,
    Pattern,
    Relation,
    Requirement,
    Stage,
    Tensor,
    Value,
    alias,
    broadcast_dims,
    broadcast_load,
    constant_number,
    dims,
    elementwise,
    is_integer,
    number_like,
    register_op,
)
from relay.ops.samples import case, cases, uniform
from relay.ops.tir import powers, scalar
from relay.ops.tir.tvm_modules import te, tirx
from relay.typecheck.relations import broadcast, same_shape

_BINARY = Relation("T:number, T -> T", broadcast)
_POWER = Relation("T:number, T/int -> T", broadcast)
_UNARY = Relation("T:number -> T", same_shape)


# ---- arithmetic


@register_op(
    relation=_BINARY,
    pattern=Pattern.BROADCAST,
    compute=elementwise(scalar.add, direct=True),
    gradient=lambda x, y, out, dout: (dout, dout),
    algebra=Algebra(
        commutative=True, associative=True, identity=-0.0, jointly_linear=True, of_booleans="booleans"
    ),  # 0.0 + -0.0 is 0.0, so 0.0 is no identity
    on_dims=arithmetic.add,
)
def add(x: Tensor, y: Tensor) -> Tensor:
    """Sum. x: (T, s1), y: (T, s2) -> (T, broadcast(s1, s2)); integers wrap.

    >>> relay.add(np.float32([1, 2]), 1)
    Array([2., 3.], dtype=float32)
    """
    return np.add(x, y)


@register_op(
    relation=_BINARY,
    pattern=Pattern.BROADCAST,
    compute=elementwise(scalar.subtract, direct=True),
    gradient=lambda x, y, out, dout: (dout, -dout),
    algebra=Algebra(identity=0, jointly_linear=True),
    on_dims=arithmetic.subtract,
)
def subtract(x: Tensor, y: Tensor) -> Tensor:
    """Difference. x: (T, s1), y: (T, s2) -> (T, broadcast(s1, s2)); integers wrap.

    >>> relay.subtract(np.float32([1, 2]), 1)
    Array([0., 1.], dtype=float32)
    """
    return np.subtract(x, y)


@register_op(
    relation=_BINARY,
    pattern=Pattern.BROADCAST,
    compute=elementwise(scalar.multiply, direct=True),
    gradient=lambda x, y, out, dout: (dout * y, dout * x),
    algebra=Algebra(commutative=True, associative=True, identity=1, linear=(0, 1), of_booleans="booleans"),
    on_dims=arithmetic.multiply,
)
def multiply(x: Tensor, y: Tensor) -> Tensor:
    """Product. x: (T, s1), y: (T, s2) -> (T, broadcast(s1, s2)); integers wrap.

    >>> relay.multiply(np.float32([1, 2]), 3)
    Array([3., 6.], dtype=float32)
    """
    return np.multiply(x, y)


@register_op(
    relation=Relation("T:float, T -> T", broadcast),
    pattern=Pattern.BROADCAST,
    compute=elementwise(scalar.divide, direct=True),
    gradient=lambda x, y, out, dout: (dout / y, -(dout * out) / y),
    algebra=Algebra(linear=(0,), identity=1),
    sampler=uniform(0.3, 2.0, operands=2),
)
def divide(x: Tensor, y: Tensor) -> Tensor:
    """Quotient of floats; for integers there is `floor_divide`. x: (T, s1), y: (T, s2) -> (T, broadcast(s1, s2)).

    >>> relay.divide(np.float32([1, 2]), 4)
    Array([0.25, 0.5 ], dtype=float32)
    """
    return np.divide(x, y)


def _divisor_is_not_zero(x: Value, y: Value) -> Value | None:
    number = constant_number(y)
    if not is_integer(x.base) or (number is not None and number != 0):
        return None
    return (y != 0).op("all")


_DIVISION_BY_ZERO = Requirement(_divisor_is_not_zero, "integer division by zero")
_DIVISIONS = cases(
    *(case(*shapes) for shapes in (((), ()), ((2, 3), (3,)), ((2, 1), (1, 3)), ((0, 3), (1,)), ((), (4,)))),
    case(np.array([7, -7, 7, -7, 0, -(2**31), -(2**31)], np.int32), np.array([2, 2, -2, -2, 5, -1, 3], np.int32)),
    case(np.array([-128, -128, 127, -1], np.int8), np.array([-1, 7, -2, 127], np.int8)),
    case(np.array([255, 200, 3], np.uint8), np.array([2, 255, 7], np.uint8)),
    case(np.array([-(2**63), 2**62, -5], np.int64), np.array([-1, -3, 4], np.int64)),
    low=1.0,
    high=9.0,
)


def _by_number(divide: Callable[[Dim, Dim], Dim]) -> Callable[[Dim, Dim], Dim | None]:
    """The division of dims where the divisor is a number other than 0."""
    return lambda x, y: divide(x, y) if isinstance(y, int) and y != 0 else None


@register_op(
    relation=_BINARY,
    pattern=Pattern.BROADCAST,
    compute=elementwise(scalar.floor_divide),
    gradient=lambda x, y, out, dout: (None, None),  # constant between the jumps
    requirements=(_DIVISION_BY_ZERO,),
    sampler=_DIVISIONS,
    algebra=Algebra(of_booleans="integers"),
    on_dims=_by_number(arithmetic.floor_divide),
)
def floor_divide(x: Tensor, y: Tensor) -> Tensor:
    """The quotient rounded down. x: (T, s1), y: (T, s2) -> (T, broadcast(s1, s2)). An integer y is not 0.

    >>> relay.floor_divide(np.int32([7, -7]), 2)
    Array([ 3, -4], dtype=int32)
    """
    return np.floor_divide(x, y)


@register_op(
    relation=_BINARY,
    pattern=Pattern.BROADCAST,
    compute=elementwise(scalar.mod),
    gradient=lambda x, y, out, dout: (dout, -(dout * (x // y))),
    requirements=(_DIVISION_BY_ZERO,),
    sampler=_DIVISIONS,
    algebra=Algebra(of_booleans="integers"),
    on_dims=_by_number(arithmetic.modulo),
)
def mod(x: Tensor, y: Tensor) -> Tensor:
    """The remainder of `floor_divide`; it has y's sign. x: (T, s1), y: (T, s2) -> (T, broadcast(s1, s2)). An integer y
    is not 0.

    >>> relay.mod(np.int32([7, -7]), 3)
    Array([1, 2], dtype=int32)
    """
    return np.mod(x, y)


def _power_gradient(x: Value, y: Value, out: Value, dout: Value) -> tuple[Value, Value | None]:
    exponent = constant_number(y)
    if y.base != x.base:  # an integer
        y = y.op("cast", dtype=x.base) if exponent is None else number_like(x, exponent)
        return _power_gradient(x, y, out, dout)[0], None
    if exponent is not None:
        dx = dout * _constant_power_derivative(x, y, exponent)
    else:
        nonzero: Value = where(y == 0, number_like(y, 1), y)  # 0 * 0**-1 would be NaN
        dx = dout * y * x ** (nonzero - 1)
    positive = x > 0
    dy = where(positive, dout * out * where(positive, x, number_like(x, 1)).op("log"), number_like(x, 0))
    return dx, dy


def _constant_power_derivative(x: Value, y: Value, exponent: float) -> Value:
    """c x**(c - 1), with few calls of the library."""
    match exponent:
        case 0:
            return number_like(x, 0)
        case 1:
            return number_like(x, 1)
        case 2:
            return x * 2
        case 3:
            return x * x * 3
        case 0.5:
            return 0.5 / x.op("sqrt")
        case _:
            return y * x ** number_like(x, exponent - 1)


def _power(x: Stage, y: Stage) -> Stage:
    compute = elementwise(powers.power) if scalar.is_float(str(x.dtype)) else _integer_power
    return compute(x, y)


def _integer_power(x: Stage, y: Stage) -> Stage:
    """From the exponent's highest bit down: square, and multiply by x where the bit is set.

    This is written as a reduction over the bits, which must run in order; a TIR expression of as many nested squares
    takes exponential time to compile.
    """
    dtype = str(y.dtype)
    width = np.dtype(dtype).itemsize * 8
    bits = te.reduce_axis((0, width))
    step = te.comm_reducer(
        lambda power, factor: scalar.multiply(scalar.multiply(power, power), factor), lambda of: tirx.const(1, of)
    )

    def element(*index: Element) -> Element:
        base, exponent = broadcast_load(x, index), broadcast_load(y, index)
        bit = tirx.shift_right(exponent, scalar.cast(width - 1 - bits.var, dtype))
        is_set = tirx.EQ(tirx.bitwise_and(bit, tirx.const(1, dtype)), tirx.const(1, dtype))
        return step(scalar.select(is_set, base, scalar.constant(1, base)), axis=bits)

    return te.compute(broadcast_dims(dims(x), dims(y)), element)


def _exponent_is_not_negative(x: Value, y: Value) -> Value | None:
    number = constant_number(y)
    if not is_integer(x.base) or y.base.name.startswith("uint") or (number is not None and number >= 0):
        return None
    return (y >= 0).op("all")


@register_op(
    relation=_POWER,
    pattern=Pattern.BROADCAST,
    compute=_power,
    numerics=Numerics(expensive_to_recompute=True, keep_fp32=True),
    gradient=_power_gradient,
    requirements=(Requirement(_exponent_is_not_negative, "an integer to a negative integer power"),),
    sampler=uniform(0.3, 3.0, operands=2),
    algebra=Algebra(identity=1, of_booleans="integers"),
)
def power(x: Tensor, y: Tensor) -> Tensor:
    """x to the y. x: (T, s1), y: (T, s2) -> (T, broadcast(s1, s2)). An integer to an integer y that is negative is an
    error. The gradient with respect to y is 0 where x is not positive. In programs as text a float may have an
    exponent of any integer dtype.

    >>> relay.power(np.float32([2, 3]), 2)
    Array([4., 9.], dtype=float32)
    """
    return np.power(x, y)


@register_op(
    relation=_UNARY,
    pattern=Pattern.ELEMENTWISE,
    compute=elementwise(scalar.negative, direct=True),
    gradient=lambda x, out, dout: -dout,
    algebra=Algebra(linear=(0,), involution=True),
    on_dims=lambda x: arithmetic.subtract(0, x),
)
def negative(x: Tensor) -> Tensor:
    """-x. x: (T, s) -> (T, s); integers wrap.

    >>> relay.negative(np.float32([1, -2]))
    Array([-1.,  2.], dtype=float32)
    """
    return np.negative(x)


@register_op(
    name="abs",
    relation=_UNARY,
    pattern=Pattern.ELEMENTWISE,
    compute=elementwise(scalar.absolute),
    gradient=lambda x, out, dout: dout * x.op("sign"),
    algebra=Algebra(idempotent=True, homogeneous=True, of_booleans="booleans"),
)
def absolute(x: Tensor) -> Tensor:
    """|x|, whose gradient at 0 is 0. x: (T, s) -> (T, s); the smallest integer wraps.

    >>> relay.abs(np.float32([1, -2]))
    Array([1., 2.], dtype=float32)
    """
    return np.abs(x)


@register_op(
    relation=_UNARY,
    pattern=Pattern.ELEMENTWISE,
    compute=elementwise(scalar.sign),
    gradient=lambda x, out, dout: None,
    algebra=Algebra(idempotent=True),
)
def sign(x: Tensor) -> Tensor:
    """-1, 0 or 1; NaN of NaN. Its gradient is 0. x: (T, s) -> (T, s).

    >>> relay.sign(np.float32([3, -2, 0]))
    Array([ 1., -1.,  0.], dtype=float32)
    """
    return np.sign(x) + x.dtype.type(0)  # some dtypes' leaves -0 as it is


@register_op(
    relation=_UNARY,
    pattern=Pattern.ELEMENTWISE,
    compute=elementwise(lambda x: scalar.multiply(x, x)),
    gradient=lambda x, out, dout: dout * x * 2,
    algebra=Algebra(of_booleans="integers"),
    numerics=Numerics(keep_fp32=True),
)
def square(x: Tensor) -> Tensor:
    """x * x. x: (T, s) -> (T, s); integers wrap.

    >>> relay.square(np.float32([3, -2]))
    Array([9., 4.], dtype=float32)
    """
    return np.square(x)


def _extremum_gradient(x_wins: Value, tie: Value, dout: Value) -> tuple[Value, Value]:
    zero, half = number_like(dout, 0), dout * 0.5
    return (
        where(x_wins, dout, where(tie, half, zero)),
        where(x_wins, zero, where(tie, half, dout)),
    )


@register_op(
    relation=_BINARY,
    pattern=Pattern.BROADCAST,
    compute=elementwise(scalar.minimum),
    gradient=lambda x, y, out, dout: _extremum_gradient(x < y, x == y, dout),
    algebra=Algebra(commutative=True, associative=True, idempotent=True, homogeneous=True, of_booleans="booleans"),
)
def minimum(x: Tensor, y: Tensor) -> Tensor:
    """The smaller one, NaN if either is; a tie halves the gradient. x: (T, s1), y: (T, s2) -> (T, broadcast(s1, s2)).

    >>> relay.minimum(np.float32([1, 5]), 3)
    Array([1., 3.], dtype=float32)
    """
    if x.dtype.kind in "biu":
        return np.minimum(x, y)
    return np.where((x < y) | np.isnan(x), x, y)  # of equal zeros the second one: NumPy's depends on the dtype


@register_op(
    relation=_BINARY,
    pattern=Pattern.BROADCAST,
    compute=elementwise(scalar.maximum),
    gradient=lambda x, y, out, dout: _extremum_gradient(x > y, x == y, dout),
    algebra=Algebra(commutative=True, associative=True, idempotent=True, homogeneous=True, of_booleans="booleans"),
)
def maximum(x: Tensor, y: Tensor) -> Tensor:
    """The larger one, NaN if either is; a tie halves the gradient. x: (T, s1), y: (T, s2) -> (T, broadcast(s1, s2)).

    >>> relay.maximum(np.float32([1, 5]), 3)
    Array([3., 5.], dtype=float32)
    """
    if x.dtype.kind in "biu":
        return np.maximum(x, y)
    return np.where((x > y) | np.isnan(x), x, y)


@composite(relation=Relation("T:number, T, T -> T", broadcast), batching=Batching(rule=batching.broadcast))
def fma(x: Tensor, y: Tensor, z: Tensor) -> Tensor:
    """x y + z; the product is rounded or not. x: (T, s1), y: (T, s2), z: (T, s3) -> (T, broadcast(s1, s2, s3)).

    >>> relay.fma(np.float32([1, 2]), 3, 4)
    Array([ 7., 10.], dtype=float32)
    """
    return x * y + z


for _name, _operator in (
    ("broadcast_add", "add"),
    ("broadcast_sub", "subtract"),
    ("broadcast_mul", "multiply"),
    ("broadcast_div", "divide"),
    ("sub", "subtract"),
    ("mul", "multiply"),
    ("div", "divide"),
    ("true_divide", "divide"),
    ("remainder", "mod"),
    ("pow", "power"),
    ("neg", "negative"),
    ("absolute", "abs"),
):
    alias(_name, _operator)
