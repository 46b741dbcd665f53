"""Values that are others, for the compiler: barriers, ends of kernels, schedules, and undefined tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from relay.errors import TypeMismatch
from relay.ir.types import FLOAT32, FLOAT64, INT32, BaseType, Shape
from relay.operator.axes import carries
from relay.ops.notation import (
    UNDEFINED,
    Algebra,
    Batch,
    Batching,
    Memory,
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
from relay.typecheck import axes as names
from relay.typecheck import relations


@register_op(
    relation=Relation("T -> T", relations.same_shape),
    pattern=Pattern.ELEMENTWISE,
    compute=lambda x, number: elementwise(lambda e: e, direct=True)(x),
    gradient=lambda x, out, dout, number: dout,
    algebra=Algebra(linear=(0,), maps_over_tree=True, forwards=0),
    sampler=cases(case((2, 3)), case((), number=7), case((0, 3))),
)
def optimization_barrier(x: Tensor, number: int = 0) -> Tensor:
    """x itself, where what depends on it is computed a second time: equal calls on x and on this value are not merged.
    x: (T, s) -> (T, s). Derivatives of `relay.checkpoint` use it, with a number for each call.

    >>> relay.optimization_barrier(np.float32([1, 2]))
    Array([1., 2.], dtype=float32)
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
    """A tensor with undefined elements, for values that are not read: the slots of constructors that a value does not
    have. The interpreter gives zeros, compiled code whatever is in memory. () -> (dtype, shape).

    >>> relay.undef((2,))
    Array([0., 0.], dtype=float32)
    """
    return np.zeros(shape, dtype.dtype)


@register_op(
    relation=Relation("T -> T", relations.same_shape),
    pattern=Pattern.ELEMENTWISE,
    compute=elementwise(lambda e: e, direct=True),
    gradient=lambda x, out, dout: dout,
    algebra=Algebra(linear=(0,)),
    memory=Memory(stored=True),
    sampler=cases(case((2, 3)), case(())),
)
def stop_fusion(x: Tensor) -> Tensor:
    """x itself, stored in memory: the kernel that computes it ends, and what reads it is in others.
    x: (T, s) -> (T, s).

    >>> relay.stop_fusion(np.float32([1, 2]))
    Array([1., 2.], dtype=float32)
    """
    return x.copy()


def _batched_schedule(batch: Batch, x: Value, tile: tuple[int, ...], **options: Any) -> Value:
    """The same blocks, for one example after the other."""
    return batch.call(x, tile=(1, *tile) if tile else (), **options)


@carries(names.first_operand)
def _scheduled_shape(
    x: Shape,
    *,
    tile: tuple[int, ...],
    vectorize: bool,
    unroll: bool,
    cache: bool,
    in_blocks: bool,
    parallel: bool | None,
    rule: str | None,
    rows: int | None,
    vectors: int | None,
    packed: bool | None,
) -> Shape:
    if not isinstance(tile, tuple) or not all(isinstance(t, int) and t >= 1 for t in tile):
        raise TypeMismatch(f"a tile is a tuple of lengths, at least 1, found {tile!r}")
    if tile and len(tile) != len(x):
        raise TypeMismatch(f"a tile has a length for each axis: {len(x)}, found {tile!r}")
    for name, number in (("rows", rows), ("vectors", vectors)):
        if number is not None and (isinstance(number, bool) or not isinstance(number, int) or number < 1):
            raise TypeMismatch(f"{name} must be a number from 1 on, found {number!r}")
    truths = {"vectorize": vectorize, "unroll": unroll, "cache": cache, "parallel": parallel, "packed": packed}
    truths["in_blocks"] = in_blocks
    for name, truth in truths.items():
        if truth is not None and not isinstance(truth, bool):
            raise TypeMismatch(f"{name} must be True or False, found {truth!r}")
    if cache and not tile:
        raise TypeMismatch("a cache is of the blocks of a tile, and there is none")
    own = {"tile": tile, "unroll": unroll, "parallel": parallel, "rows": rows, "vectors": vectors, "packed": packed}
    chosen = [
        name
        for name, value in {**own, "rule": rule, "vectorize": not vectorize}.items()
        if value not in ((), False, None)
    ]
    if in_blocks and chosen:
        raise TypeMismatch(
            f"what is computed in the blocks of its reader has no {chosen[0]} of its own", help="schedule the reader"
        )
    if rule is not None and not isinstance(rule, str):
        raise TypeMismatch(f"a rule goes by its name, found {rule!r}")
    return x


@register_op(
    relation=Relation("T -> T", _scheduled_shape),
    pattern=Pattern.ELEMENTWISE,
    compute=lambda x, **options: elementwise(lambda e: e, direct=True)(x),
    gradient=lambda x, out, dout, **options: dout,
    algebra=Algebra(linear=(0,)),
    memory=Memory(stored=True),
    batching=Batching(rule=_batched_schedule),
    sampler=cases(case((2, 3), tile=(2, 2)), case((3, 4), unroll=True), case((), parallel=False)),
)
def schedule(
    x: Tensor,
    tile: tuple[int, ...] = (),
    vectorize: bool = True,
    unroll: bool = False,
    cache: bool = False,
    in_blocks: bool = False,
    parallel: bool | None = None,
    rule: str | None = None,
    rows: int | None = None,
    vectors: int | None = None,
    packed: bool | None = None,
) -> Tensor:
    """x itself, computed by a kernel with the given loops. x: (T, s) -> (T, s). `tile`: the lengths of the
    blocks, along each axis, in which an elementwise kernel goes through its result, in vectors if `vectorize`, with the
    rounds of the other loops in a block written out if `unroll`; with `cache` a block first copies what it reads of the
    operands to memory of its own, row by row. `in_blocks`: a kernel with a `tile` that alone reads x computes
    it once for each of its blocks, as far as the block reads it, in memory of its own; elsewhere it is a value like
    others. Of a product: `rows` and `vectors` are the tile that stays in registers, and `packed` copies panels of the
    right operand. `parallel`: share the loops among threads, or not. `rule`: the schedule rule, as
    `relay show --stage kernels` names it. Other parameters are chosen automatically.

    >>> relay.schedule(np.float32([1, 2]), tile=(2,))
    Array([1., 2.], dtype=float32)
    """
    return x.copy()
