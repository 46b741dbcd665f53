"""Rounding of each element. Their derivatives are 0, since they are constant between the jumps."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from relay.operator import Operator
from relay.ops.notation import Algebra, Element, Pattern, Relation, Tensor, alias, elementwise, register_op
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
    array([ 0.,  2., -0.], dtype=float32)
    """
    return _numpy_rounded(np.rint, x)


@_rounding("floor")
def floor(x: Tensor) -> Tensor:
    """The largest integer that is not above x. x: (T, s) -> (T, s).

    >>> relay.floor(np.float32([1.5, -1.5]))
    array([ 1., -2.], dtype=float32)
    """
    return _numpy_rounded(np.floor, x)


@_rounding("ceil")
def ceil(x: Tensor) -> Tensor:
    """The smallest integer that is not below x. x: (T, s) -> (T, s).

    >>> relay.ceil(np.float32([1.5, -1.5]))
    array([ 2., -1.], dtype=float32)
    """
    return _numpy_rounded(np.ceil, x)


@_rounding("trunc")
def trunc(x: Tensor) -> Tensor:
    """x without its fraction. x: (T, s) -> (T, s).

    >>> relay.trunc(np.float32([1.5, -1.5]))
    array([ 1., -1.], dtype=float32)
    """
    return _numpy_rounded(np.trunc, x)


alias("rint", "round")
alias("fix", "trunc")
