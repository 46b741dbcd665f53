"""Windows at run-time places. Negative starts count from the end; a window that does not fit stops the program."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from relay.errors import ShapeError
from relay.ir.dims import subtract
from relay.ir.expr import Constant
from relay.ir.types import INT64, UINT64, Dim, Shape, show_shape
from relay.operator.axes import carries
from relay.ops import batching
from relay.ops.indexing.updates import from_start
from relay.ops.notation import (
    Algebra,
    Batch,
    Batching,
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
)
from relay.ops.samples import case, cases
from relay.ops.tir import stages
from relay.ops.tir.tvm_modules import te, tirx
from relay.typecheck import axes as names
from relay.typecheck import relations
from relay.typecheck.dims import equal, needs_at_least, numbers, resolve


@carries(names.first_operand)
def _window_shape(shape: Shape, starts: Shape, *, sizes: tuple[int, ...]) -> Shape:
    wanted = relations.literal_shape(sizes)
    _check_window(shape, starts, wanted)
    return wanted


def _check_window(shape: Shape, starts: Shape, window: Shape) -> None:
    if len(starts) != 1 or not equal(starts[0], len(shape)) or len(window) != len(shape):
        raise ShapeError(
            f"a window in the shape {show_shape(shape)} has a start and an extent for each of the {len(shape)} axes, "
            f"found starts of shape {show_shape(starts)} and the window {show_shape(window)}"
        )
    for axis, (dim, extent) in enumerate(zip(shape, window, strict=True)):
        if _is_longer(extent, dim):
            raise ShapeError(f"a window of {show_shape(window)} does not fit into axis {axis} of {show_shape(shape)}")


def _is_longer(extent: Dim, dim: Dim) -> bool:
    return resolve(extent) is not resolve(dim) and not needs_at_least(dim, extent)


@carries(names.first_operand)
def _update_window_shape(shape: Shape, new: Shape, starts: Shape) -> Shape:
    _check_window(shape, starts, new)
    return shape


def _windows_in_range(x: Value, starts: Value, extents: Shape) -> Value | None:
    """0 <= start <= dim - extent, where a negative start counts from the end."""
    wide = starts if starts.base == INT64 else starts.op("cast", dtype=INT64)
    counts = starts.base == UINT64  # those beyond int64 are negative now
    if not all(isinstance(dim, int) for dim in (*x.shape, *extents)):
        inside = []
        for axis, (dim, extent) in enumerate(zip(x.shape, extents, strict=True)):
            start = wide.op("index", np.array(axis, np.int32))
            from_zero = start if counts else (start < 0).op("where", start.op("add", dim), start)
            inside.append((from_zero >= 0) & (from_zero <= subtract(dim, extent)))
        return functools.reduce(lambda a, b: a & b, inside)
    dims_of_x, extents = numbers(x.shape), numbers(extents)
    if all(dim == extent == 0 for dim, extent in zip(dims_of_x, extents, strict=True)):
        return None
    shape = starts.emitter.value(Constant(np.asarray(dims_of_x, np.int64)))
    room = starts.emitter.value(
        Constant(np.asarray([d - e for d, e in zip(dims_of_x, extents, strict=True)], np.int64))
    )
    from_zero = wide if counts else (wide < 0).op("where", wide + shape, wide)
    return ((from_zero >= 0) & (from_zero <= room)).op("all")


def _slice_in_range(x: Value, starts: Value, sizes: tuple[int, ...]) -> Value | None:
    return _windows_in_range(x, starts, relations.literal_shape(sizes))


def _update_in_range(x: Value, new: Value, starts: Value) -> Value | None:
    return _windows_in_range(x, starts, new.shape)


def _dynamic_slice(x: Stage, starts: Stage, sizes: tuple[int, ...]) -> Stage:
    shape, window = dims(x), result_dims(lambda: relations.literal_shape(sizes))
    if 0 in window:
        return stages.full(window, 0, str(x.dtype))
    return te.compute(
        window,
        lambda *index: x(*(from_start(starts(axis), shape[axis]) + i for axis, i in enumerate(index))),
    )


def _numpy_window(shape: Sequence[int], starts: Tensor, extents: Sequence[int]) -> tuple[slice, ...]:
    begins = [int(s) + dim if s < 0 else int(s) for s, dim in zip(starts, shape, strict=True)]
    return tuple(slice(b, b + extent) for b, extent in zip(begins, extents, strict=True))


_START = np.array([1, -2], np.int32)


def _places(batch: Batch, starts: Value, shape: Shape, sizes: Shape) -> Value:
    """The index vectors of each example's window, (examples, *sizes, rank), where starts are (examples, rank)."""
    emitter, rank = starts.emitter, len(shape)
    vectors = []
    for axis, (dim, size) in enumerate(zip(shape, sizes, strict=True)):
        start = starts.op("strided_slice", begin=(0, axis), end=(batch.size, axis + 1), strides=(1, 1))
        start = start.op("cast", dtype=INT64)
        start = (start < 0).op("where", start.op("add", dim), start).op("reshape", shape=(batch.size, *(1,) * rank))
        along = integer_range(emitter, 0, size, INT64).op(
            "reshape", shape=tuple(size if a == axis else 1 for a in range(rank))
        )
        vectors.append((start + along).op("broadcast_to", shape=(batch.size, *sizes)).op("expand_dims", axis=-1))
    return batching.concatenate(vectors, -1)


def _at_the_same_place(starts: Value) -> Value:
    """The starts of a window of all examples, where it is the same one in each."""
    return batching.concatenate((starts.emitter.constant([0], starts.base), starts), 0)


def _batched_slice(batch: Batch, x: Value, starts: Value, sizes: tuple[int, ...]) -> Value:
    if not batch.batched[1]:
        return batch.call(x, _at_the_same_place(starts), sizes=(batch.size, *sizes))
    if not batch.rank():
        return batch.stretch(x, 0)
    places = _places(batch, starts, batch.types[0].shape, batch.tensor.shape)
    return x.op("gather_nd", batching.with_numbers(batch, places) if batch.batched[0] else places)


def _batched_update(batch: Batch, x: Value, new: Value, starts: Value) -> Value:
    whole, parts = batch.stretch(x, 0), batch.stretch(new, 1)
    if not batch.batched[2]:
        return batch.call(whole, parts, _at_the_same_place(starts))
    if not batch.rank():
        return parts
    places = _places(batch, starts, batch.types[0].shape, batch.types[1].shape)
    return batching.scatter(whole, batching.with_numbers(batch, places), parts)


@register_op(
    sizes=frozenset({"sizes"}),
    relation=Relation("T, I:int -> T", _window_shape),
    pattern=Pattern.INJECTIVE,
    compute=_dynamic_slice,
    gradient=lambda x, starts, out, dout, sizes: (
        x.op("zeros_like").op("dynamic_update_slice", dout, starts),
        None,
    ),
    requirements=(Requirement(_slice_in_range, "slice out of range"),),
    algebra=Algebra(linear=(0,)),
    batching=Batching(rule=_batched_slice),
    sampler=cases(
        case((3, 4), _START, sizes=(2, 1)),
        case((3, 4), _START, sizes=(1, 2)),
        case((5,), np.array([2], np.int64), sizes=(3,)),
        case((3, 4), _START, sizes=(0, 2)),
        case((), np.zeros(0, np.int32), sizes=()),
    ),
)
def dynamic_slice(x: Tensor, starts: Tensor, sizes: tuple[int, ...]) -> Tensor:
    """A window of x whose place is known only at run time; it must lie in x. x: (T, s), starts: (int, (rank,)) ->
    (T, sizes).

    >>> relay.dynamic_slice(np.float32([1, 2, 3, 4]), np.int32([1]), (2,))
    Array([2., 3.], dtype=float32)
    """
    return x[_numpy_window(x.shape, starts, sizes)].copy()


def _write_window(x: Stage, new: Stage) -> Callable[[Any, Any, Any], Any]:
    shape, extents = dims(x), dims(new)

    def statement(result: Any, new: Any, starts: Any) -> Any:
        # read before the loops, since stores might change the starts as far as LLVM knows
        registers = stages.Registers()
        first = [registers.name(from_start(tirx.BufferLoad(starts, [axis]), dim)) for axis, dim in enumerate(shape)]

        def store(index: list[Any]) -> Any:
            place = [start + i for start, i in zip(first, index, strict=True)]
            return tirx.BufferStore(result, tirx.BufferLoad(new, index), place)

        return registers.prepend_definitions(loops(extents, store))

    return statement


@register_op(
    relation=Relation("T, T, I:int -> T", _update_window_shape),
    pattern=Pattern.OPAQUE,
    compute=lambda x, new, starts: stages.updated_copy(
        x, (new, starts), _write_window(x, new), changes=0 not in dims(new)
    ),
    gradient=lambda x, new, starts, out, dout: (
        dout.op("dynamic_update_slice", new.op("zeros_like"), starts),
        dout.op("dynamic_slice", starts, sizes=new.shape),
        None,
    ),
    requirements=(Requirement(_update_in_range, "slice out of range"),),
    memory=Memory(
        in_place=InPlace(
            0, lambda x, new, starts: stages.extern_stage(dims(x), [new, starts], str(x.dtype), _write_window(x, new))
        )
    ),
    batching=Batching(rule=_batched_update),
    sampler=cases(
        case((3, 4), (2, 1), _START),
        case((3, 4), (1, 2), _START),
        case((5,), (3,), np.array([2], np.int64)),
        case((3, 4), (0, 2), _START),
    ),
)
def dynamic_update_slice(x: Tensor, new: Tensor, starts: Tensor) -> Tensor:
    """x with a window replaced whose place is known only at run time; it must lie in x. x: (T, s), new: (T, t), starts:
    (int, (rank,)) -> (T, s).

    >>> relay.dynamic_update_slice(np.float32([1, 2, 3, 4]), np.float32([7, 8]), np.int32([-2]))
    Array([1., 2., 7., 8.], dtype=float32)
    """
    result = x.copy()
    result[_numpy_window(x.shape, starts, new.shape)] = new
    return result
