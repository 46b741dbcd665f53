"""Tensors made of attributes alone, or of another tensor's shape."""

from __future__ import annotations

from typing import Any

import numpy as np

from relay.errors import TypeMismatch
from relay.ir.literals import misfit_text
from relay.ir.types import BOOL, FLOAT32, FLOAT64, INT32, BaseType
from relay.operator import composite
from relay.ops import batching
from relay.ops.notation import (
    Batching,
    Memory,
    Pattern,
    Relation,
    Stage,
    Tensor,
    dims,
    is_integer,
    number_or_size,
    register_op,
    result_dims,
)
from relay.ops.samples import case, cases
from relay.ops.tir import scalar, stages
from relay.ops.tir.tvm_modules import te, tirx
from relay.typecheck import relations
from relay.typecheck.dims import constant_dim

_CONSTANT = "the result depends on no tensor"
_SHAPES = cases(
    case(shape=()),
    case(shape=(2, 3), dtype=INT32),
    case(shape=(0, 3), dtype=FLOAT64),
    case(shape=3, dtype=BOOL),
)


@register_op(
    sizes=frozenset({"shape"}),
    relation=Relation("-> @dtype", relations.shape_attribute),
    pattern=Pattern.INJECTIVE,
    compute=lambda shape, dtype: stages.full(result_dims(lambda: relations.literal_shape(shape)), 0, str(dtype)),
    no_gradient=_CONSTANT,
    sampler=_SHAPES,
    memory=Memory(fill=0),
)
def zeros(shape: tuple[int, ...], dtype: BaseType = FLOAT32) -> Tensor:
    """0 everywhere. () -> (dtype, shape).

    >>> relay.zeros((2,))
    Array([0., 0.], dtype=float32)
    """
    return np.zeros(shape, dtype.dtype)


@register_op(
    sizes=frozenset({"shape"}),
    relation=Relation("-> @dtype", relations.shape_attribute),
    pattern=Pattern.INJECTIVE,
    compute=lambda shape, dtype: stages.full(result_dims(lambda: relations.literal_shape(shape)), 1, str(dtype)),
    no_gradient=_CONSTANT,
    sampler=_SHAPES,
    memory=Memory(fill=1),
)
def ones(shape: tuple[int, ...], dtype: BaseType = FLOAT32) -> Tensor:
    """1 everywhere. () -> (dtype, shape).

    >>> relay.ones((2,))
    Array([1., 1.], dtype=float32)
    """
    return np.ones(shape, dtype.dtype)


def _full_shape(*, shape: Any, value: float, dtype: BaseType) -> tuple[Any, ...]:
    _check_value(value, dtype)
    return relations.shape_attribute(shape=shape)


def _check_value(value: float, dtype: BaseType) -> None:
    """Raises TypeMismatch if the dtype does not hold the number."""
    if isinstance(value, str | tuple) or value is None:
        raise TypeMismatch(f"the value must be a number, found {value!r}")
    if isinstance(dtype, BaseType) and is_integer(dtype):  # a dtype that is still open is checked with its literals
        limits = np.iinfo(dtype.name)
        if isinstance(value, float) or not limits.min <= value <= limits.max:
            raise TypeMismatch(misfit_text(dtype, value))


@register_op(
    sizes=frozenset({"shape"}),
    relation=Relation("-> @dtype", _full_shape),
    pattern=Pattern.INJECTIVE,
    compute=lambda shape, value, dtype: stages.full(
        result_dims(lambda: relations.literal_shape(shape)), value, str(dtype)
    ),
    no_gradient=_CONSTANT,
    sampler=cases(
        case(shape=(), value=0.1),
        case(shape=(2, 3), value=-7, dtype=INT32),
        case(shape=(0,), value=1.5, dtype=FLOAT64),
        case(shape=(2,), value=True, dtype=BOOL),
        case(shape=(2,), value=float("inf")),
        case(shape=(2,), value=2**63 - 1, dtype=BaseType("int64")),
    ),
)
def full(shape: tuple[int, ...], value: float, dtype: BaseType = FLOAT32) -> Tensor:
    """One number everywhere. () -> (dtype, shape).

    >>> relay.full((2,), 0.5)
    Array([0.5, 0.5], dtype=float32)
    """
    return np.full(shape, value, dtype.dtype)


@register_op(
    relation=Relation("T -> T", relations.same_shape),
    pattern=Pattern.INJECTIVE,
    compute=lambda x: stages.full(dims(x), 0, str(x.dtype)),
    gradient=lambda x, out, dout: None,
    memory=Memory(fill=0),
)
def zeros_like(x: Tensor) -> Tensor:
    """0 everywhere, in x's shape and dtype. x: (T, s) -> (T, s).

    >>> relay.zeros_like(np.int32([1, 2]))
    Array([0, 0], dtype=int32)
    """
    return np.zeros_like(x)


@register_op(
    relation=Relation("T -> T", relations.same_shape),
    pattern=Pattern.INJECTIVE,
    compute=lambda x: stages.full(dims(x), 1, str(x.dtype)),
    gradient=lambda x, out, dout: None,
    memory=Memory(fill=1),
)
def ones_like(x: Tensor) -> Tensor:
    """1 everywhere, in x's shape and dtype. x: (T, s) -> (T, s).

    >>> relay.ones_like(np.int32([1, 2]))
    Array([1, 1], dtype=int32)
    """
    return np.ones_like(x)


def _arange_shape(*, start: float, stop: float, step: float, dtype: BaseType) -> tuple[Any, ...]:
    for number in (start, stop, step) if isinstance(dtype, BaseType) else ():
        if dtype == BOOL or (is_integer(dtype) and isinstance(number, float)):
            raise TypeMismatch(f"arange from {start} to {stop} by {step} cannot be {dtype}; give a float dtype")
    return relations.arange(start=start, stop=stop, step=step)


def _arange(start: float, stop: float, step: float, dtype: BaseType) -> Stage:
    (extent,) = result_dims(lambda: relations.arange(start=start, stop=stop, step=step))
    if not dtype.is_float:
        return te.compute(
            (extent,),
            lambda i: scalar.cast(
                tirx.Cast("int64", i) * number_or_size(step, "int64") + number_or_size(start, "int64"), dtype
            ),
        )
    return te.compute(
        (extent,),
        lambda i: scalar.cast(
            tirx.Cast("float64", i) * number_or_size(step, "float64") + number_or_size(start, "float64"), dtype
        ),
    )


@register_op(
    sizes=frozenset({"start", "stop"}),
    relation=Relation("-> @dtype", _arange_shape),
    pattern=Pattern.INJECTIVE,
    compute=_arange,
    no_gradient=_CONSTANT,
    sampler=cases(
        case(start=0, stop=5),
        case(start=5, stop=-2, step=-2),
        case(start=0, stop=0),
        case(start=0.0, stop=1.0, step=0.25, dtype=FLOAT32),
        case(start=1, stop=4, dtype=FLOAT64),
    ),
)
def arange(start: float, stop: float, step: float = 1, dtype: BaseType = INT32) -> Tensor:
    """start, start + step, .. before stop. () -> (dtype, (ceil((stop - start) / step),)).

    >>> relay.arange(0, 6, 2)
    Array([0, 2, 4], dtype=int32)
    """
    (extent,) = relations.arange(start=start, stop=stop, step=step)
    return (np.arange(constant_dim(extent)) * step + start).astype(dtype.dtype)


@composite(
    relation=Relation("T -> T", relations.same_shape),
    batching=Batching(rule=batching.same_call),
    sampler=cases(case((), value=1), case((2, 3), value=0), case((0, 3), value=1)),
)
def full_like(x: Tensor, value: float) -> Tensor:
    """One number everywhere, in x's shape and dtype. x: (T, s) -> (T, s).

    >>> relay.full_like(np.int32([1, 2]), 7)
    Array([7, 7], dtype=int32)
    """
    return full(x.shape, value, x.dtype)


def _linspace_shape(*, start: float, stop: float, num: int, endpoint: bool, dtype: BaseType) -> tuple[Any, ...]:
    if isinstance(dtype, BaseType) and not dtype.is_float:  # one that is open is a float's
        raise TypeMismatch(f"linspace cannot be {dtype}; give a float dtype")
    return relations.literal_shape(num)


def _linspace(start: float, stop: float, num: int, endpoint: bool, dtype: BaseType) -> Stage:
    (extent,) = result_dims(lambda: relations.literal_shape(num))
    last = num - 1 if endpoint else num
    if isinstance(last, int):
        step = tirx.const((stop - start) / max(last, 1), "float64")
    else:
        step = tirx.const(stop - start, "float64") / tirx.Cast("float64", tirx.max(last, 1))

    def element(i: Any) -> Any:
        value = tirx.Cast("float64", i) * step + tirx.const(start, "float64")
        if endpoint and not (isinstance(num, int) and num <= 1):
            value = scalar.select(i == last, tirx.const(stop, "float64"), value)
        return scalar.cast(value, dtype)

    return te.compute((extent,), element)


@register_op(
    sizes=frozenset({"num"}),
    relation=Relation("-> @dtype", _linspace_shape),
    pattern=Pattern.INJECTIVE,
    compute=_linspace,
    no_gradient=_CONSTANT,
    sampler=cases(
        case(start=0.0, stop=1.0, num=5),
        case(start=1.0, stop=-2.0, num=7, endpoint=False, dtype=FLOAT64),
        case(start=3.0, stop=4.0, num=1),
        case(start=0.0, stop=1.0, num=0),
    ),
)
def linspace(start: float, stop: float, num: int = 50, endpoint: bool = True, dtype: BaseType = FLOAT32) -> Tensor:
    """Numbers in equal steps from start to stop, which is one of them only with `endpoint`. () -> (dtype, (num,)).

    >>> relay.linspace(0.0, 1.0, 5)
    Array([0.  , 0.25, 0.5 , 0.75, 1.  ], dtype=float32)
    """
    return np.linspace(start, stop, num, endpoint).astype(dtype.dtype)
