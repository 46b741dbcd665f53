"""Collective operators: what the examples along an axis of `relay.vmap` have together. Only the compiler writes them.

The pass `lower_collectives` replaces them by operators on all examples. What remains is not along any axis, and has one
example.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from relay.ir.dims import Dim
from relay.ir.types import Shape
from relay.operator import lookup
from relay.operator.axes import carries
from relay.ops.notation import (
    LOOP,
    Batch,
    Batching,
    Pattern,
    Relation,
    Tensor,
    Value,
    elementwise,
    register_op,
    result_dims,
)
from relay.ops.samples import case, cases
from relay.ops.tir import stages
from relay.ops.tir.tvm_modules import te
from relay.typecheck import relations

_SAME = Relation("T:number -> T", relations.same_shape)
_CASES = cases(case((2, 3)), case(()), case((0, 3)))


def _batched(batch: Batch, x: Value, **attributes: Any) -> Value:
    return batch.call(x, **attributes)


def _batched_gather(batch: Batch, x: Value, **attributes: Any) -> Value:
    made = batch.call(x, **attributes)
    return made.op("transpose", axes=(1, 0, *range(2, made.ndim)))


_reduction = partial(
    register_op,
    relation=_SAME,
    pattern=Pattern.OPAQUE,
    compute=lambda x, axis_name: elementwise(lambda e: e, direct=True)(x),
    batching=Batching(rule=_batched, collective=True),
    sampler=_CASES,
)


def _extremum_gradient(x: Value, out: Value, dout: Value, axis_name: str) -> Value:
    """The cotangent goes in equal shares to the examples that have the extremum."""
    winners = (x == out).op("cast", dtype=x.base)
    total = dout.op("collective_sum", axis_name=axis_name)
    return winners * (total / winners.op("collective_sum", axis_name=axis_name))


def _gather_gradient(x: Value, out: Value, dout: Value, axis_name: str, size: Dim) -> Value:
    """The sum of what all examples have at the place of this one."""
    number = x.emitter.call(lookup("collective_index"), (), {"axis_name": axis_name})
    return dout.op("collective_sum", axis_name=axis_name).op("index", number)


@_reduction(gradient=lambda x, out, dout, axis_name: dout.op("collective_sum", axis_name=axis_name))
def collective_sum(x: Tensor, axis_name: str = "") -> Tensor:
    """The sum of x of all examples along an axis of `relay.vmap`: `relay.psum`. x: (T, s) -> (T, s).

    >>> relay.collective_sum(np.float32([1, 2]))
    Array([1., 2.], dtype=float32)
    """
    return x.copy()


@_reduction(gradient=_extremum_gradient)
def collective_max(x: Tensor, axis_name: str = "") -> Tensor:
    """The largest of x of all examples along an axis of `relay.vmap`, element by element: `relay.pmax`; ties share the
    gradient evenly. x: (T, s) -> (T, s).

    >>> relay.collective_max(np.float32([1, 2]))
    Array([1., 2.], dtype=float32)
    """
    return x.copy()


@_reduction(gradient=_extremum_gradient)
def collective_min(x: Tensor, axis_name: str = "") -> Tensor:
    """The smallest of x of all examples along an axis of `relay.vmap`, element by element: `relay.pmin`; ties share the
    gradient evenly. x: (T, s) -> (T, s).

    >>> relay.collective_min(np.float32([1, 2]))
    Array([1., 2.], dtype=float32)
    """
    return x.copy()


@carries(lambda x, **attributes: (None, *x))
def _gathered_shape(x: Shape, *, size: Dim, **attributes: object) -> Shape:
    return (size, *x)


def _gather(x: Any, axis_name: str, size: Any) -> Any:
    shape = result_dims(lambda: (size, *x.shape))
    return te.compute(shape, lambda i, *rest: x(*rest), name="gathered")


@register_op(
    sizes=frozenset({"size"}),
    relation=Relation("T -> T", _gathered_shape),
    pattern=Pattern.OPAQUE,
    compute=_gather,
    gradient=_gather_gradient,
    batching=Batching(rule=_batched_gather, collective=True),
    sampler=cases(case((2, 3)), case(()), case((0, 3))),
)
def collective_gather(x: Tensor, axis_name: str = "", size: int = 1) -> Tensor:
    """x of all `size` examples along an axis of `relay.vmap`, one after the other: `relay.all_gather`.
    x: (T, s) -> (T, (size, *s)).

    >>> relay.collective_gather(np.float32([1, 2]))
    Array([[1., 2.]], dtype=float32)
    """
    return np.repeat(x[None], size, axis=0)


@register_op(
    relation=Relation("-> int32", lambda **attributes: ()),
    pattern=Pattern.OPAQUE,
    compute=lambda axis_name: stages.full((), 0, "int32"),
    no_gradient="the number of an example",
    batching=Batching(rule=LOOP, collective=True),
    sampler=cases(case(), case(axis_name="batch")),
)
def collective_index(axis_name: str = "") -> Tensor:
    """The number of the example along an axis of `relay.vmap`: `relay.axis_index`. () -> (int32, ()).

    >>> relay.collective_index()
    Array(0, dtype=int32)
    """
    return np.zeros((), np.int32)
