"""Rounding of each element. Their derivatives are 0, since they are constant between the jumps."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from relay.ir.types import BaseClass, BaseType
from relay.operator import Operator
from relay.ops.notation import (
    Algebra,
    Element,
    Pattern,
    Relation,
    Requirement,
    Tensor,
    Value,
    alias,
    elementwise,
    register_op,
)
from relay.ops.samples import case, cases
from relay.ops.tir import scalar
from relay.ops.tir.tvm_modules import tirx
from relay.typecheck.relations import same_shape


def _rounding_function(function: str) -> Callable[[Element], Element]:
    """A function of TIR on floats; float16 goes through float32, integers are as they are."""

    def apply(x: Element) -> Element:
        dtype = scalar.dtype_of(x)
        if not scalar.is_float(dtype):
            return x
        wide = dtype if dtype in ("float32", "float64") else "float32"
        return scalar.cast(getattr(tirx, function)(scalar.cast(x, wide)), dtype)

    return apply


def _rounding(function: str, name: str | None = None) -> Callable[[Callable[[Tensor], Tensor]], Operator]:
    """Register a rounding by a function of TIR."""
    return register_op(
        name=name,
        relation=Relation("T:number -> T", same_shape),
        pattern=Pattern.ELEMENTWISE,
        compute=elementwise(_rounding_function(function), direct=True),
        gradient=lambda x, out, dout: None,
        algebra=Algebra(idempotent=True),
    )


def _numpy_rounded(function: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    """NumPy would round large integers as floats."""
    return x.copy() if x.dtype.kind in "iu" else function(x).astype(x.dtype)


@_rounding("nearbyint", name="round")
def round_(x: Tensor) -> Tensor:
    """The nearest integer, of two the even one. x: (T, s) -> (T, s).

    >>> relay.round(np.float32([0.5, 1.5, -0.4]))
    Array([ 0.,  2., -0.], dtype=float32)
    """
    return _numpy_rounded(np.rint, x)


@_rounding("floor")
def floor(x: Tensor) -> Tensor:
    """The largest integer that is not above x. x: (T, s) -> (T, s).

    >>> relay.floor(np.float32([1.5, -1.5]))
    Array([ 1., -2.], dtype=float32)
    """
    return _numpy_rounded(np.floor, x)


@_rounding("ceil")
def ceil(x: Tensor) -> Tensor:
    """The smallest integer that is not below x. x: (T, s) -> (T, s).

    >>> relay.ceil(np.float32([1.5, -1.5]))
    Array([ 2., -1.], dtype=float32)
    """
    return _numpy_rounded(np.ceil, x)


@_rounding("trunc")
def trunc(x: Tensor) -> Tensor:
    """x without its fraction. x: (T, s) -> (T, s).

    >>> relay.trunc(np.float32([1.5, -1.5]))
    Array([ 1., -1.], dtype=float32)
    """
    return _numpy_rounded(np.trunc, x)


def _fits(x: Value, dtype: BaseType) -> Value | None:
    """A bool: x without its fraction fits in an integer dtype; None where it always does."""
    limits = np.iinfo(dtype.name)
    if x.base.name == "float16":  # all of whose finite numbers fit
        return (x - x == 0).op("all")
    if x.base.is_float:
        lowest = float(limits.min)
        # Where x's dtype has numbers between two integers there, such as -2147483648.5, they do without their fraction.
        is_fine = x.base.name == "float64" and dtype.name == "int32"
        above = x > lowest - 1 if is_fine else x >= lowest
        return above.op("logical_and", x < -lowest).op("all")
    if x.base.base_class is not BaseClass.INTEGER:
        return None
    own = np.iinfo(x.base.name)
    if limits.min <= own.min and own.max <= limits.max:
        return None
    below = x <= limits.max
    return (below if own.min >= limits.min else below.op("logical_and", x >= limits.min)).op("all")


_FITS = Requirement(_fits, "the number is none of the integers that the dtype has; convert it: x.astype(relay.Int64)")
_INT32, _INT64 = BaseType("int32"), BaseType("int64")


@register_op(
    relation=Relation("T -> @dtype", same_shape),
    pattern=Pattern.ELEMENTWISE,
    compute=elementwise(scalar.cast, direct=True, widened=False),
    gradient=lambda x, out, dout, dtype: None,
    requirements=(_FITS,),
    sampler=cases(
        case((2, 3), dtype=_INT32),
        case(np.array([-(2.0**31) - 0.5, 2.0**31 - 0.5, -0.5], np.float64), dtype=_INT32),
        case(np.array([-(2.0**31), 2.0**31 - 128], np.float32), dtype=_INT32),
        case(np.array([-(2.0**63), 2.0**62], np.float64), dtype=_INT64),
        case(np.array([-(2**31), 2**31 - 1], np.int64), dtype=_INT32),
        case(np.array([2**63 - 1, 0], np.uint64), dtype=_INT64),
        case(np.array([True, False]), dtype=_INT32),
    ),
)
def to_integer(x: Tensor, dtype: BaseType) -> Tensor:
    """x without its fraction, in an integer dtype that has all these numbers. x: (T, s) -> (dtype, s).

    >>> relay.to_integer(np.float32([1.5, -1.5]), relay.Int32)
    Array([ 1, -1], dtype=int32)
    """
    return x.astype(dtype.dtype)


alias("rint", "round")
alias("fix", "trunc")
