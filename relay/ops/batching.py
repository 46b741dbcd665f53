"""Rules of batching that several operators share; see `relay.operator.batching`.

A rule gets the call as a `Batch` and the operands, of which those that are batched have the examples along a new first
axis, and returns the result with the examples along its first axis.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from relay.ir.dims import Dim, multiply, product
from relay.ir.types import BOOL, INT64, UINT8, UINT64
from relay.operator import Batch, Emitter, lookup
from relay.operator.batching import align as align
from relay.operator.batching import batch_body as batch_body
from relay.operator.batching import batch_reshape as batch_reshape
from relay.operator.batching import shift_axes as shift_axes
from relay.ops.notation import Value, integer_range

# ---- the same call


def same_call(batch: Batch, *operands: Value, **attributes: Any) -> Value:
    """For an operator that works on the last axes of each operand, and on all others alike, which the operands share:
    the same call with one axis more."""
    return batch.call(*batch.stretch_all(operands), **attributes)


def broadcast(batch: Batch, *operands: Value, **attributes: Any) -> Value:
    """The same, where axes of extent 1 are stretched by the operator."""
    return batch.call(*align(batch, operands), **attributes)


def by_axes(*names: str) -> Callable[..., Value]:
    """For an operator of one operand whose attributes of these names are axes, or None for all: the same call, with the
    axes counted one further."""

    def rule(batch: Batch, x: Value, **attributes: Any) -> Value:
        return batch.call(x, **{**attributes, **{name: shift_axes(attributes[name], batch.rank()) for name in names}})

    return rule


def in_row(rule: Callable[..., Value], axis: str = "axis") -> Callable[..., Value]:
    """`rule`, for an operator that takes all elements as one row where its axis is None."""

    def with_row(batch: Batch, x: Value, **attributes: Any) -> Value:
        if attributes[axis] is not None:
            return rule(batch, x, **attributes)
        row = x.op("reshape", shape=(batch.size, product(x.shape[1:])))
        return batch.call(row, **{**attributes, axis: 1}).op("reshape", shape=(batch.size, *batch.tensor.shape))

    return with_row


# ---- axes


def move_axis(value: Value, source: int, destination: int) -> Value:
    """The value with one axis at another place."""
    if source == destination:
        return value
    order = [axis for axis in range(value.ndim) if axis != source]
    order.insert(destination, source)
    return value.op("transpose", axes=tuple(order))


def merge(value: Value, axis: int) -> Value:
    """The axis of the examples, which is the first, made a part of another axis of one example: example after
    example."""
    moved = move_axis(value, 0, axis)
    shape = moved.shape
    return moved.op("reshape", shape=(*shape[:axis], multiply(shape[axis], shape[axis + 1]), *shape[axis + 2 :]))


def split(value: Value, axis: int, batch: Batch, extent: Dim) -> Value:
    """The inverse: an axis that holds `extent` places of each example is divided."""
    shape = value.shape
    divided = value.op("reshape", shape=(*shape[:axis], batch.size, extent, *shape[axis + 1 :]))
    return move_axis(divided, axis, 0)


def into_axis(letter: str) -> Callable[..., Value | None]:
    """For an operator with layouts that does the same along the axis of this letter of its first operand and of its
    result, often that of a batch, and whose other operands are not batched: the examples are places on that axis."""

    def rule(batch: Batch, x: Value, *others: Value, **attributes: Any) -> Value | None:
        assert batch.operator.layouts is not None
        layouts = batch.operator.layouts(**attributes)
        if any(batch.batched[1:]):
            return None
        made = batch.call(merge(x, layouts[0].index(letter)), *others, **attributes)
        place = layouts[-1].index(letter)
        return split(made, place, batch, batch.tensor.shape[place])

    return rule


# ---- places


def example_numbers(emitter: Emitter, batch: Batch, rank: int) -> Value:
    """The number of each example, in int64: (size, 1, .., 1), of `rank` axes in all."""
    numbers = integer_range(emitter, 0, batch.size, INT64)
    return numbers if rank == 1 else numbers.op("reshape", shape=(batch.size, *(1,) * (rank - 1)))


def with_numbers(batch: Batch, vectors: Value) -> Value:
    """Index vectors of each example, (size, .., k), as such into arrays with a first axis for the examples:
    (size, .., k + 1)."""
    numbers = example_numbers(vectors.emitter, batch, vectors.ndim)
    if vectors.base == UINT64:
        numbers = numbers.op("cast", dtype=UINT64)
    elif vectors.base != INT64:
        vectors = vectors.op("cast", dtype=INT64)
    numbers = numbers.op("broadcast_to", shape=(*vectors.shape[:-1], 1))
    return concatenate((numbers, vectors), -1)


def scatter(x: Value, vectors: Value, new: Value) -> Value:
    """x with slices at index vectors replaced, also of bools."""
    if x.base != BOOL:
        return x.op("scatter_nd", vectors, new)
    made = x.op("cast", dtype=UINT8).op("scatter_nd", vectors, new.op("cast", dtype=UINT8))
    return made.op("cast", dtype=BOOL)


def concatenate(values: Sequence[Value], axis: int) -> Value:
    """Values joined along an axis."""
    return values[0].emitter.call(lookup("concatenate"), values, {"axis": axis})
