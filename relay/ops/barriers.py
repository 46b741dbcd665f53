"""Optimization barriers and undefined tensors: operators that only the compiler writes."""

from __future__ import annotations

import numpy as np

from relay.ir.types import FLOAT32, FLOAT64, INT32, BaseType
from relay.ops.notation import (
    UNDEFINED,
    Algebra,
    Memory,
    Pattern,
    Relation,
    Tensor,
    elementwise,
    register_op,
    result_dims,
)
from relay.ops.samples import case, cases
from relay.ops.tir import stages
from relay.typecheck import relations


@register_op(
    relation=Relation("T -> T", relations.same_shape),
    pattern=Pattern.ELEMENTWISE,
    compute=lambda x, number: elementwise(lambda e: e, direct=True)(x),
    gradient=lambda x, out, dout, number: dout,
    algebra=Algebra(linear=(0,), maps_over_tree=True),
    sampler=cases(case((2, 3)), case((), number=7), case((0, 3))),
)
def optimization_barrier(x: Tensor, number: int = 0) -> Tensor:
    """x itself, where what depends on it is computed a second time: equal calls on x and on this value are not merged.
    x: (T, s) -> (T, s). Derivatives of `relay.checkpoint` use it, with a number for each call.

    >>> relay.optimization_barrier(np.float32([1, 2]))
    array([1., 2.], dtype=float32)
    """
    return x.copy()


@register_op(
    sizes=frozenset({"shape"}),
    relation=Relation("-> @dtype", relations.shape_attribute),
    pattern=Pattern.OPAQUE,
    compute=lambda shape, dtype: stages.full(result_dims(lambda: relations.literal_shape(shape)), 0, str(dtype)),
    no_gradient="the result depends on no tensor",
    sampler=cases(case(shape=(2, 3), dtype=INT32), case(shape=(0, 3), dtype=FLOAT64), case(shape=())),
    memory=Memory(fill=UNDEFINED),
)
def undef(shape: tuple[int, ...], dtype: BaseType = FLOAT32) -> Tensor:
    """A tensor whose elements nobody reads: the parts of a choice that was not made. The interpreter gives zeros,
    compiled code whatever is there. () -> (dtype, shape).

    >>> relay.undef((2,))
    array([0., 0.], dtype=float32)
    """
    return np.zeros(shape, dtype.dtype)
