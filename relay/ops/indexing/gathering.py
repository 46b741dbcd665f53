"""Gathering of elements and slices at run-time indices: along an axis, and by index vectors.

Negative indices count from the end; an index out of range stops the program.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from relay.errors import ShapeError
from relay.ir.expr import Constant
from relay.ir.types import INT64, UINT64, Shape, show_shape
from relay.operator.axes import carries
from relay.ops import batching
from relay.ops.indexing.updates import from_start, in_range
from relay.ops.notation import (
    Algebra,
    Batch,
    Batching,
    Element,
    Indexing,
    InPlace,
    Memory,
    Pattern,
    Relation,
    Requirement,
    Stage,
    Tensor,
    Value,
    dims,
    integer_range,
    loops,
    register_op,
    result_dims,
    table,
)
from relay.ops.samples import case, cases
from relay.ops.tir import scalar, stages
from relay.ops.tir.tvm_modules import te, tirx
from relay.typecheck import axes as names
from relay.typecheck.dims import constant_dim, equal_shapes, normalize_axis, numbers, product

_OUT_OF_RANGE = "index out of range"


# ---- along one axis, an index for each element


@carries(names.aligned_names)
def _along_shape(shape: Shape, indices: Shape, *, axis: int) -> Shape:
    position = normalize_axis(axis, len(shape))
    rest, others = ((*s[:position], *s[position + 1 :]) for s in (shape, indices))
    if len(indices) != len(shape) or not equal_shapes(others, rest):
        raise ShapeError(
            f"indices along axis {axis} of the shape {show_shape(shape)} must have its other dims, "
            f"found {show_shape(indices)}"
        )
    return indices


@carries(names.first_operand)
def _add_along_shape(shape: Shape, indices: Shape, updates: Shape, *, axis: int) -> Shape:
    wanted = _along_shape(shape, indices, axis=axis)
    if not equal_shapes(updates, wanted):
        raise ShapeError(f"the updates must have the indices' shape {show_shape(wanted)}, found {show_shape(updates)}")
    return shape


def _along_in_range(x: Value, indices: Value, *updates: Value, axis: int) -> Value | None:
    return in_range(indices, x.shape[normalize_axis(axis, x.ndim)])


def _take_along_axis(x: Stage, indices: Stage, axis: int) -> Stage:
    shape = dims(x)
    position = normalize_axis(axis, len(shape))
    if 0 in shape:
        return stages.full(dims(indices), 0, str(x.dtype))
    return te.compute(
        dims(indices),
        lambda *index: x(*index[:position], from_start(indices(*index), shape[position]), *index[position + 1 :]),
    )


_CHOICES = np.array([[2, 0, -1], [-3, 1, 1]], np.int32)


@register_op(
    relation=Relation("T, I:int -> T", _along_shape),
    pattern=Pattern.INJECTIVE,
    compute=_take_along_axis,
    gradient=lambda x, indices, out, dout, axis: (
        x.op("zeros_like").op("add_along_axis", indices, dout, axis=axis),
        None,
    ),
    requirements=(Requirement(_along_in_range, _OUT_OF_RANGE),),
    algebra=Algebra(linear=(0,)),
    indexing=Indexing(axis="axis"),
    sampler=cases(
        case((3,), np.array([2, -1, 0, 0], np.int64)),
        case((2, 3), _CHOICES, axis=1),
        case((3, 3), _CHOICES, axis=0),
        case((1, 2, 1, 2, 3, 1), np.array([2, 0, -1, 1]).reshape(1, 1, 1, 2, 2, 1), axis=-2),
        case((0, 3), np.zeros((0, 2), np.int32), axis=-1),
    ),
)
def take_along_axis(x: Tensor, indices: Tensor, axis: int = 0) -> Tensor:
    """x with the position along an axis of extent n chosen for each element. x: (T, (*a, n, *b)), indices: (int,
    (*a, m, *b)) in [-n, n) -> (T, (*a, m, *b)).

    >>> relay.take_along_axis(np.float32([[1, 2], [3, 4]]), np.int32([[1], [0]]), axis=1)
    Array([[2.],
           [3.]], dtype=float32)
    """
    return np.take_along_axis(x, indices.astype(np.int64), axis)


def _add_along(x: Stage, indices: Stage, axis: int) -> Callable[[Any, Any, Any], Any]:
    shape, extents = dims(x), dims(indices)
    position = normalize_axis(axis, len(shape))

    def statement(result: Any, indices: Any, updates: Any) -> Any:
        def accumulate(index: list[Any]) -> Any:
            at = from_start(tirx.BufferLoad(indices, index), shape[position])
            place = [*index[:position], at, *index[position + 1 :]]
            value = scalar.add(tirx.BufferLoad(result, place), tirx.BufferLoad(updates, index))
            return tirx.BufferStore(result, value, place)

        return loops(extents, accumulate)

    return statement


def _add_along_axis(x: Stage, indices: Stage, updates: Stage, axis: int) -> Stage:
    return stages.updated_copy(x, (indices, updates), _add_along(x, indices, axis), changes=0 not in dims(updates))


def _numpy_add_along_axis(x: Tensor, indices: Tensor, updates: Tensor, axis: int) -> Tensor:
    result = x.copy()
    places: list[Any] = list(np.indices(indices.shape, sparse=True))
    places[axis] = indices
    np.add.at(result, tuple(places), updates)
    return result


@register_op(
    relation=Relation("T:number, I:int, T -> T", _add_along_shape),
    pattern=Pattern.OPAQUE,
    compute=_add_along_axis,
    gradient=lambda x, indices, updates, out, dout, axis: (
        dout,
        None,
        dout.op("take_along_axis", indices, axis=axis),
    ),
    requirements=(Requirement(_along_in_range, _OUT_OF_RANGE),),
    algebra=Algebra(accumulates=0),
    memory=Memory(
        in_place=InPlace(
            0,
            lambda x, indices, updates, axis: stages.extern_stage(
                dims(x), [indices, updates], str(x.dtype), _add_along(x, indices, axis)
            ),
        )
    ),
    indexing=Indexing(axis="axis"),
    sampler=cases(
        case((3,), np.array([2, -1, 0, 0], np.int64), (4,)),
        case((2, 3), _CHOICES, (2, 3), axis=1),
        case((3, 3), _CHOICES, (2, 3), axis=0),
        case((2, 3), np.zeros((2, 0), np.int32), (2, 0), axis=-1),
    ),
)
def add_along_axis(x: Tensor, indices: Tensor, updates: Tensor, axis: int = 0) -> Tensor:
    """x with each update added where `take_along_axis` reads; repeated indices accumulate, in order. x: (T, (*a, n,
    *b)), indices: (int, (*a, m, *b)) in [-n, n), updates: (T, (*a, m, *b)) -> (T, (*a, n, *b)).

    >>> relay.add_along_axis(np.float32([1, 2]), np.int32([1, 1]), np.float32([10, 20]))
    Array([ 1., 32.], dtype=float32)
    """
    return _numpy_add_along_axis(x, indices, updates, axis)


# ---- index vectors


def _depth(shape: Shape, indices: Shape) -> int:
    """The number of axes that the index vectors address."""
    depth = constant_dim(indices[-1]) if indices else -1
    if not 0 <= depth <= len(shape):
        raise ShapeError(
            f"the last axis of the indices, {show_shape(indices)}, must have at most {len(shape)} elements, one for "
            f"each axis of the shape {show_shape(shape)} that they name"
        )
    return depth


@carries(names.gathered_names)
def _gather_shape(shape: Shape, indices: Shape) -> Shape:
    depth = _depth(shape, indices)
    return (*indices[:-1], *shape[depth:])


@carries(names.first_operand)
def _scatter_shape(shape: Shape, indices: Shape, updates: Shape, *, reduction: str = "none") -> Shape:
    wanted = _gather_shape(shape, indices)
    if not equal_shapes(updates, wanted):
        raise ShapeError(f"the updates must have the shape {show_shape(wanted)}, found {show_shape(updates)}")
    if reduction not in ("none", "add"):
        raise ShapeError(f"the reduction of scatter_nd is 'none' or 'add', found {reduction!r}")
    return shape


def _vectors_in_range(x: Value, indices: Value, *updates: Value, **attributes: Any) -> Value | None:
    named = x.shape[: constant_dim(indices.shape[-1])]
    if not all(isinstance(dim, int) for dim in named):
        along = [indices.op("take", np.array(axis, np.int32), axis=-1) for axis in range(len(named))]
        inside = [holds for own, dim in zip(along, named, strict=True) if (holds := in_range(own, dim)) is not None]
        return functools.reduce(lambda a, b: a & b, inside)
    extents = np.asarray(numbers(named), np.int64)
    wide = indices if indices.base == INT64 else indices.op("cast", dtype=INT64)
    lowest = 0 * extents if indices.base == UINT64 else -extents  # those beyond int64 are negative now
    low, high = (indices.emitter.value(Constant(e)) for e in (lowest, extents))
    return ((wide >= low) & (wide < high)).op("all")


def _place(index: Sequence[Element], extents: Sequence[int]) -> list[Element]:
    return [from_start(i, extent) for i, extent in zip(index, extents, strict=False)]


def _gather_nd(x: Stage, indices: Stage) -> Stage:
    shape, depth = dims(x), dims(indices)[-1]
    result = result_dims(lambda: _gather_shape(shape, dims(indices)))
    if 0 in shape:
        return stages.full(result, 0, str(x.dtype))
    rank = len(dims(indices)) - 1
    return te.compute(
        result,
        lambda *index: x(*_place([indices(*index[:rank], axis) for axis in range(depth)], shape), *index[rank:]),
    )


_VECTORS = np.array([[[1, 0], [0, -1]], [[-2, 2], [1, 0]]], np.int32)


def _batched_gather(batch: Batch, x: Value, indices: Value) -> Value:
    if batch.batched == (True, True):
        return batch.call(x, batching.with_numbers(batch, indices))
    if batch.batched[1]:
        return batch.call(x, indices)
    count = indices.shape[-1]
    assert isinstance(count, int)
    return batching.move_axis(batch.call(batching.move_axis(x, 0, count), indices), indices.ndim - 1, 0)


@register_op(
    relation=Relation("T, I:int -> T", _gather_shape),
    pattern=Pattern.INJECTIVE,
    compute=_gather_nd,
    gradient=lambda x, indices, out, dout: (x.op("zeros_like").op("scatter_nd_add", indices, dout), None),
    requirements=(Requirement(_vectors_in_range, _OUT_OF_RANGE),),
    algebra=Algebra(linear=(0,)),
    batching=Batching(rule=_batched_gather),
    sampler=cases(
        case((2, 3), _VECTORS),
        case((2, 3, 2), _VECTORS),
        case((3,), np.array([[2], [0]], np.int64)),
        case((2, 3), np.array([1, 1], np.int32)),
        case((2, 3), np.zeros((2, 0), np.int32)),
        case((2, 3), np.zeros((0, 2), np.int32)),
    ),
)
def gather_nd(x: Tensor, indices: Tensor) -> Tensor:
    """The slices of x at index vectors, which lie along the last axis of `indices`. x: (T, (*a, *b)), indices: (int,
    (*s, k)) with k the number of axes a -> (T, (*s, *b)).

    >>> relay.gather_nd(np.float32([[1, 2], [3, 4]]), np.int32([[0, 1], [1, 0]]))
    Array([2., 3.], dtype=float32)
    """
    return np.array(x[tuple(np.moveaxis(indices, -1, 0))]) if indices.shape[-1] else _repeated_whole(x, indices)


def _repeated_whole(x: Tensor, indices: Tensor) -> Tensor:
    return np.broadcast_to(x, (*indices.shape[:-1], *x.shape)).copy()


def _scatter(x: Stage, indices: Stage, updates: Stage, reduction: str) -> Callable[[Any, Any, Any], Any]:
    shape, depth, rank = dims(x), dims(indices)[-1], len(dims(indices)) - 1

    def statement(result: Any, indices: Any, updates: Any) -> Any:
        def write(index: list[Any]) -> Any:
            vector = [tirx.BufferLoad(indices, [*index[:rank], axis]) for axis in range(depth)]
            place = [*_place(vector, shape), *index[rank:]]
            value = tirx.BufferLoad(updates, index)
            if reduction == "add":
                value = scalar.add(tirx.BufferLoad(result, place), value)
            return tirx.BufferStore(result, value, place)

        return loops(dims(updates), write)

    return statement


def _scatter_nd(x: Stage, indices: Stage, updates: Stage, reduction: str) -> Stage:
    statement = _scatter(x, indices, updates, reduction)
    return stages.updated_copy(x, (indices, updates), statement, changes=0 not in dims(updates))


def _scatter_nd_gradient(
    x: Value, indices: Value, updates: Value, out: Value, dout: Value, reduction: str
) -> tuple[Value, None, Value]:
    share = dout.op("gather_nd", indices)
    if reduction == "add":
        return dout, None, share
    if len(indices.shape) == 1:  # one place, which nothing else is written to
        return dout.op("scatter_nd", indices, updates.op("zeros_like")), None, share
    # Where a place is written several times, the last one counts: the one whose number stands there in the end.
    places, depth = indices.shape[:-1], constant_dim(indices.shape[-1])
    order = table(x.emitter, lambda emitter: integer_range(emitter, 0, product(places)).op("reshape", shape=places))
    nobody = x.emitter.constant(-1, order.base).op("broadcast_to", shape=x.shape[:depth])
    last = nobody.op("scatter_nd", indices, order).op("gather_nd", indices)
    counts = (last == order).op("reshape", shape=(*places, *(1 for _ in x.shape[depth:])))
    kept = dout.op("scatter_nd", indices, updates.op("zeros_like"))
    return kept, None, counts.op("where", share, share.op("zeros_like"))


_UPDATES = (
    case((2, 3), _VECTORS, (2, 2)),
    case((2, 3, 2), _VECTORS, (2, 2, 2)),
    case((3,), np.array([[2], [0], [2]], np.int64), (3,)),
    case((2, 3), np.array([1, 1], np.int32), ()),
    case((2, 3), np.zeros((0, 2), np.int32), (0,)),
)


def _batched_scatter(batch: Batch, x: Value, indices: Value, updates: Value, **attributes: Any) -> Value:
    whole, parts = batch.stretch(x, 0), batch.stretch(updates, 2)
    if batch.batched[1]:
        return batch.call(whole, batching.with_numbers(batch, indices), parts, **attributes)
    count = indices.shape[-1]
    assert isinstance(count, int)
    parts = batching.move_axis(parts, 0, indices.ndim - 1)
    return batching.move_axis(batch.call(batching.move_axis(whole, 0, count), indices, parts, **attributes), count, 0)


@register_op(
    relation=Relation("T:number, I:int, T -> T", _scatter_shape),
    pattern=Pattern.OPAQUE,
    compute=_scatter_nd,
    gradient=_scatter_nd_gradient,
    requirements=(Requirement(_vectors_in_range, _OUT_OF_RANGE),),
    memory=Memory(
        in_place=InPlace(
            0,
            lambda x, indices, updates, reduction: stages.extern_stage(
                dims(x), [indices, updates], str(x.dtype), _scatter(x, indices, updates, reduction)
            ),
            lambda x, indices, updates, reduction: _write_at(x, indices, updates, reduction),
        )
    ),
    batching=Batching(rule=_batched_scatter),
    sampler=cases(
        *_UPDATES,
        *(case(*c.operands, reduction="add") for c in _UPDATES),
    ),
)
def scatter_nd(x: Tensor, indices: Tensor, updates: Tensor, reduction: str = "none") -> Tensor:
    """x with the slices at index vectors replaced (the last one counts where they repeat), or with reduction="add"
    added to. x: (T, (*a, *b)), indices: (int, (*s, k)) with k the number of axes a, updates: (T, (*s, *b)) -> (T, (*a,
    *b)).

    >>> relay.scatter_nd(np.float32([1, 2, 3]), np.int32([[2], [0]]), np.float32([10, 20]))
    Array([20.,  2., 10.], dtype=float32)
    """
    result = x.copy()
    _write_at(result, indices, updates, reduction)
    return result


def _write_at(x: Tensor, indices: Tensor, updates: Tensor, reduction: str) -> None:
    for place in np.ndindex(*indices.shape[:-1]):
        at = tuple(int(i) for i in indices[place])
        x[at] = x[at] + updates[place] if reduction == "add" else updates[place]


@register_op(
    relation=Relation("T:number, I:int, T -> T", _scatter_shape),
    pattern=Pattern.OPAQUE,
    compute=lambda x, indices, updates: _scatter_nd(x, indices, updates, "add"),
    gradient=lambda x, indices, updates, out, dout: (dout, None, dout.op("gather_nd", indices)),
    requirements=(Requirement(_vectors_in_range, _OUT_OF_RANGE),),
    algebra=Algebra(accumulates=0),
    memory=Memory(
        in_place=InPlace(
            0,
            lambda x, indices, updates: stages.extern_stage(
                dims(x), [indices, updates], str(x.dtype), _scatter(x, indices, updates, "add")
            ),
            lambda x, indices, updates: _write_at(x, indices, updates, "add"),
        )
    ),
    batching=Batching(rule=_batched_scatter),
    sampler=cases(*_UPDATES),
)
def scatter_nd_add(x: Tensor, indices: Tensor, updates: Tensor) -> Tensor:
    """x with the slices at index vectors added to, also where they repeat; the adjoint of `gather_nd`. x: (T, (*a,
    *b)), indices: (int, (*s, k)) with k the number of axes a, updates: (T, (*s, *b)) -> (T, (*a, *b)).

    >>> relay.scatter_nd_add(np.float32([1, 2, 3]), np.int32([[2], [2]]), np.float32([10, 20]))
    Array([ 1.,  2., 33.], dtype=float32)
    """
    return scatter_nd.evaluate([x, indices, updates], {"reduction": "add"})
