"""Indexing: reading and writing at run-time indices.

Negative ones count from the end.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from relay.ir.dims import LARGEST_SIZE, Dim, maximum, subtract
from relay.ir.sizes.facts import facts
from relay.ir.types import BOOL, FLOAT32, INT32, INT64, UINT64, BaseType
from relay.operator import lookup
from relay.ops import batching
from relay.ops.notation import (
    Algebra,
    Batch,
    Batching,
    Element,
    Indexing,
    IndexKind,
    InPlace,
    Memory,
    Pattern,
    Relation,
    Requirement,
    Stage,
    Tensor,
    Value,
    constant_number,
    dims,
    loops,
    register_op,
)
from relay.ops.samples import case, cases
from relay.ops.shape.reshaping import reshaped_stage
from relay.ops.tir import scalar, stages
from relay.ops.tir.tvm_modules import te, tirx
from relay.typecheck import relations
from relay.typecheck.dims import follows_at_least, normalize_axis, product
from relay.typecheck.guards import fits_int32


def in_range(indices: Value, extent: Dim) -> Value | None:
    """A bool: all indices are in [-extent, extent); None if they are known to be."""
    number = constant_number(indices)
    if number is not None and follows_at_least(extent, int(-number if number < 0 else number + 1)):
        return None
    small = indices.base not in (INT32, INT64) or not (indices.base == INT64 or fits_int32(facts(), extent))
    wide = indices.op("cast", dtype=INT64) if small else indices
    lowest = 0 if indices.base == UINT64 else subtract(0, extent)  # those beyond int64 are negative now
    inside = (wide >= lowest) & (wide < extent)
    return inside.op("all") if inside.ndim else inside


def from_start(index: Element, extent: Any) -> Element:
    """An index in [-extent, extent) as one counted from 0, in the dtype of the axis."""
    base = _axis_base(extent)
    position = scalar.cast(index, base)
    whole = tirx.const(extent, base.name) if isinstance(extent, int) else extent
    return scalar.select(tirx.LT(position, tirx.const(0, base.name)), position + whole, position)


def _axis_base(extent: Any) -> BaseType:
    """The dtype of places on an axis: int32 if it holds them, or the dtype of a symbolic extent."""
    if isinstance(extent, int):
        return INT32 if extent <= LARGEST_SIZE else INT64
    return BaseType(str(extent.ty))


# ---- one index along the first axis


def _index_in_range(x: Value, index: Value, *new: Value) -> Value | None:
    return in_range(index, x.shape[0])


_INDEX_IN_RANGE = Requirement(_index_in_range, "index out of range")
_LAST = np.array(-1, np.int32)
_POSITIONS = (np.array(0, np.int32), np.array(2, np.int64), np.array(-3, np.int8))


def _index(x: Stage, index: Stage) -> Stage:
    shape = dims(x)
    if shape[0] == 0:
        return stages.full(shape[1:], 0, str(x.dtype))
    return te.compute(shape[1:], lambda *rest: x(from_start(index(), shape[0]), *rest))


def _as_vectors(batch: Batch, indices: Value) -> Value:
    """Indices of each example as index vectors into arrays with a first axis for the examples."""
    return batching.with_numbers(batch, indices.op("expand_dims", axis=-1))


def _batched_index(batch: Batch, x: Value, index: Value) -> Value:
    if batch.batched == (True, True):
        return x.op("gather_nd", _as_vectors(batch, index))
    return x.op("take", index, axis=1 if batch.batched[0] else 0)


def _batched_change(scatter: Callable[[Value, Value, Value], Value]) -> Callable[..., Value]:
    """For a change at one index; `scatter(x, vectors, new)` is that at index vectors."""

    def rule(batch: Batch, x: Value, index: Value, new: Value) -> Value:
        whole, rows = batch.stretch(x, 0), batch.stretch(new, 2)
        if batch.batched[1]:
            return scatter(whole, _as_vectors(batch, index), rows)
        starts, columns = _at_column(whole, index), rows.op("expand_dims", axis=1)
        if batch.operator.algebra.accumulates is not None:
            sizes = (*columns.shape,)
            columns = whole.op("dynamic_slice", starts, sizes=sizes) + columns
        return whole.op("dynamic_update_slice", columns, starts)

    return rule


def _at_column(whole: Value, index: Value) -> Value:
    """The place where the columns at an index of axis 1 begin."""
    place = index.op("cast", dtype=INT64)
    place = (place < 0).op("where", place + whole.shape[1], place).op("reshape", shape=(1,))
    zeros = np.zeros(whole.ndim - 1, np.int64)
    pieces = [place.emitter.constant(zeros[:1], INT64), place, place.emitter.constant(zeros[1:], INT64)]
    return place.emitter.call(lookup("concatenate"), pieces if len(zeros) > 1 else pieces[:2], {"axis": 0})


@register_op(
    relation=Relation("T, I:int -> T", relations.index),
    pattern=Pattern.INJECTIVE,
    compute=_index,
    gradient=lambda x, index, out, dout: (x.op("zeros_like").op("index_add", index, dout), None),
    indexing=Indexing(kind=IndexKind.ROW),
    requirements=(_INDEX_IN_RANGE,),
    algebra=Algebra(linear=(0,)),
    batching=Batching(rule=_batched_index),
    sampler=cases(*(case((3, 2), i) for i in _POSITIONS), *(case(shape, _LAST) for shape in ((3,), (4, 1, 2), (3, 0)))),
)
def index(x: Tensor, index: Tensor) -> Tensor:
    """x[index] along the first axis, of extent n; -n <= index < n. x: (T, (n, *s)), index: (int, ()) -> (T, s).

    >>> relay.index(np.float32([[1, 2], [3, 4]]), -1)
    Array([3., 4.], dtype=float32)
    """
    return np.asarray(x[index])


def _at_index(value: Callable[[Element, Element], Element]) -> Callable[[Stage, Stage, Stage], Stage]:
    """x with `value(old, new)` at the index."""

    def compute(x: Stage, index: Stage, new: Stage) -> Stage:
        extent = dims(x)[0]

        def element(first: Element, *rest: Element) -> Element:
            here = tirx.EQ(first, from_start(index(), extent))
            return scalar.guarded_select(here, value(x(first, *rest), new(*rest)), x(first, *rest))

        return te.compute(dims(x), element)

    return compute


def _at_index_in_place(value: Callable[[Element, Element], Element], write: Callable[..., None]) -> InPlace:
    """`value(old, new)` written to the index."""

    def compute(x: Stage, index: Stage, new: Stage) -> Stage:
        shape = dims(x)

        def statement(result: Any, index: Any, new: Any) -> Any:
            first = from_start(tirx.BufferLoad(index, []), shape[0])

            def store(rest: list[Any]) -> Any:
                place = [first, *rest]
                element = value(tirx.BufferLoad(result, place), tirx.BufferLoad(new, rest))
                return tirx.BufferStore(result, element, place)

            return loops(shape[1:], store)

        return stages.extern_stage(shape, [index, new], str(x.dtype), statement)

    return InPlace(0, compute, write)


def _replace_at(x: Tensor, index: Tensor, new: Tensor) -> None:
    x[index] = new


def _add_at(x: Tensor, index: Tensor, new: Tensor) -> None:
    x[index] += new


def _index_update_gradient(x: Value, index: Value, new: Value, out: Value, dout: Value) -> tuple[Value, None, Value]:
    share = dout.op("index", index)  # first, so that the rest can be made in place
    return dout.op("index_update", index, new.op("zeros_like")), None, share


_REPLACEMENTS = cases(
    *(case((3, 2), i, (2,)) for i in _POSITIONS),
    *(case((3, *rest), _LAST, rest) for rest in ((), (1, 2), (0,))),
)


@register_op(
    relation=Relation("T, I:int, T -> T", relations.index_update),
    pattern=Pattern.INJECTIVE,
    compute=_at_index(lambda old, new: new),
    gradient=_index_update_gradient,
    requirements=(_INDEX_IN_RANGE,),
    memory=Memory(in_place=_at_index_in_place(lambda old, new: new, _replace_at)),
    batching=Batching(rule=_batched_change(batching.scatter)),
    sampler=_REPLACEMENTS,
)
def index_update(x: Tensor, index: Tensor, new: Tensor) -> Tensor:
    """x with x[index] replaced; -n <= index < n. x: (T, (n, *s)), index: (int, ()), new: (T, s) -> (T, (n, *s)).

    >>> relay.index_update(np.float32([1, 2, 3]), 1, 7)
    Array([1., 7., 3.], dtype=float32)
    """
    result = x.copy()
    _replace_at(result, index, new)
    return result


@register_op(
    relation=Relation("T:number, I:int, T -> T", relations.index_update),
    pattern=Pattern.INJECTIVE,
    compute=_at_index(scalar.add),
    gradient=lambda x, index, new, out, dout: (dout, None, dout.op("index", index)),
    requirements=(_INDEX_IN_RANGE,),
    algebra=Algebra(accumulates=0),
    memory=Memory(in_place=_at_index_in_place(scalar.add, _add_at)),
    batching=Batching(rule=_batched_change(lambda x, vectors, new: x.op("scatter_nd_add", vectors, new))),
    sampler=_REPLACEMENTS,
)
def index_add(x: Tensor, index: Tensor, new: Tensor) -> Tensor:
    """x with `new` added to x[index]; -n <= index < n. x: (T, (n, *s)), index: (int, ()), new: (T, s) -> (T, (n, *s)).

    >>> relay.index_add(np.float32([1, 2, 3]), -1, 7)
    Array([ 1.,  2., 10.], dtype=float32)
    """
    result = x.copy()
    _add_at(result, index, new)
    return result


# ---- many indices along any axis


def _extent(x: Value, axis: int | None) -> Dim:
    """The number of places along an axis, or in all elements."""
    return product(x.shape) if axis is None else x.shape[normalize_axis(axis, x.ndim)]


def _take_in_range(x: Value, indices: Value, axis: int | None, mode: str) -> Value | None:
    extent = _extent(x, axis)
    if mode == "raise":
        return in_range(indices, extent)
    if follows_at_least(extent, 1):
        return None
    inside = indices.op("zeros_like").op("cast", dtype=INT64) < extent  # none is in range where there are no elements
    return inside.op("all") if inside.ndim else inside


def _take_position(index: Element, extent: Any, mode: str) -> Element:
    if mode == "raise":
        return from_start(index, extent)
    result = _axis_base(extent)
    if mode == "wrap":
        if str(index.ty) != "uint64":
            index = scalar.cast(index, INT64)
        whole = tirx.const(extent, "int64") if isinstance(extent, int) else extent
        return scalar.cast(scalar.mod(index, scalar.cast(whole, str(index.ty))), result)
    small = ("int8", "int16", "uint8", "uint16")  # which may be too small for the extent
    if str(index.ty) in (small if result == INT32 else (*small, "int32", "uint32")):
        index = scalar.cast(index, result)
    own = str(index.ty)  # another one may be too small for the index
    last = max(extent - 1, 0) if isinstance(extent, int) else tirx.max(extent - 1, tirx.const(0, str(extent.ty)))
    last = tirx.const(last, own) if isinstance(last, int) else scalar.cast(last, BaseType(own))
    return scalar.cast(tirx.max(tirx.min(index, last), tirx.const(0, own)), result)


def _take(x: Stage, indices: Stage, axis: int | None, mode: str) -> Stage:
    if axis is None:
        x, axis = reshaped_stage(x, (math.prod(dims(x)),)), 0
    shape, rank = dims(x), len(dims(indices))
    position = normalize_axis(axis, len(shape))
    result = (*shape[:position], *dims(indices), *shape[position + 1 :])
    if shape[position] == 0:
        return stages.full(result, 0, str(x.dtype))

    def element(*index: Element) -> Element:
        chosen = indices(*index[position : position + rank])
        return x(*index[:position], _take_position(chosen, shape[position], mode), *index[position + rank :])

    return te.compute(result, element)


def _raising_indices(indices: Value, extent: Dim, mode: str) -> Value:
    """Indices that mean the same with mode="raise"."""
    if mode == "clip":
        last = maximum(subtract(extent, 1), 0)
        held = indices.base.dtype.itemsize == 8 or fits_int32(facts(), last)
        if indices.base.dtype.itemsize < 4 or not held:  # which may be too small for the extent
            indices = indices.op("cast", dtype=INT32 if held else INT64)
        indices = indices.op("minimum", last).op("maximum", 0)
    if mode == "wrap":
        if indices.base != UINT64:
            indices = indices.op("cast", dtype=INT64)
        indices = indices.op("mod", extent)
    return indices


def _take_gradient(
    x: Value, indices: Value, out: Value, dout: Value, axis: int | None, mode: str
) -> tuple[Value, None]:
    indices, zeros = _raising_indices(indices, _extent(x, axis), mode), x.op("zeros_like")
    if axis is not None:
        return zeros.op("scatter_add", indices, dout, axis=axis), None
    flat = zeros.op("reshape", shape=(product(x.shape),))
    return flat.op("scatter_add", indices, dout, axis=0).op("reshape", shape=x.shape), None


_REPEATED = np.array([[2, 0, 2], [-1, 1, 2]], np.int32)


def _batched_take(batch: Batch, x: Value, indices: Value, axis: int | None, mode: str) -> Value:
    if axis is None:
        size = product(batch.types[0].shape)
        x = x.op("reshape", shape=(batch.size, size) if batch.batched[0] else (size,))
    place = 0 if axis is None else normalize_axis(axis, batch.rank())
    if not batch.batched[1]:
        return batch.call(x, indices, axis=place + 1, mode=mode)
    if not batch.batched[0]:
        return batching.move_axis(batch.call(x, indices, axis=place, mode=mode), place, 0)
    chosen = _as_vectors(batch, _raising_indices(indices, x.shape[place + 1], mode))
    found = batching.move_axis(x, place + 1, 1).op("gather_nd", chosen)  # (examples, *indices, *before, *after)
    count = batch.rank(1)
    order = (0, *range(1 + count, 1 + count + place), *range(1, 1 + count), *range(1 + count + place, found.ndim))
    return found.op("transpose", axes=order)


@register_op(
    relation=Relation("T, I:int -> T", relations.take),
    pattern=Pattern.INJECTIVE,
    compute=_take,
    gradient=_take_gradient,
    requirements=(Requirement(_take_in_range, "index out of range"),),
    algebra=Algebra(linear=(0,)),
    batching=Batching(rule=_batched_take),
    sampler=cases(
        case((3,), _REPEATED),
        case((3, 2), _REPEATED),
        case((2, 3, 4), _REPEATED, axis=1),
        case((1, 2, 1, 2, 3, 2), _REPEATED, axis=-2),
        case((2, 3), np.array(-1, np.int32), axis=-1),
        case((2, 3), np.zeros((0,), np.int64)),
        case((3,), np.array([5, -7, 1], np.int32), mode="clip"),
        case((3,), np.array([2**40, -(2**40), 2**32 + 1, 2**31, 2], np.int64), mode="clip"),
        case((3,), np.array([2**63, 2**64 - 1, 2**32 + 1, 1], np.uint64), mode="clip"),
        case((300,), np.array([-128, 127, 3], np.int8), mode="clip"),
        case((3, 2), np.array([[5, -7, 1], [-1, 3, 0]], np.int32), mode="wrap"),
        case((2, 3), np.array([2**40, -(2**40), 2**32 + 1, 2**31, -(2**63)], np.int64), axis=1, mode="wrap"),
        case((3,), np.array([2**63, 2**64 - 1, 2**32 + 1, 1], np.uint64), mode="wrap"),
        case((300,), np.array([-128, 127, 3], np.int8), mode="wrap"),
        case((2, 0), np.array([1, 0], np.int8)),
        case((2, 3), _REPEATED, axis=None),
        case((), np.array([0, -1], np.int64), axis=None),
        case((2, 1, 3), np.array([7, -9, 2], np.int32), axis=None, mode="clip"),
        case((2, 3), np.array([7, -9, 2], np.int16), axis=None, mode="wrap"),
    ),
)
def take(x: Tensor, indices: Tensor, axis: int | None = 0, mode: str = "raise") -> Tensor:
    """The elements at indices along an axis of extent n. x: (T, (*a, n, *b)), indices: (int, s) -> (T, (*a, *s, *b)).
    With axis=None, those in all elements in order, of which there are n. x: (T, a), indices: (int, s) -> (T, s).

    Indices lie in [-n, n); with mode="clip" those below 0 mean 0 and those beyond the end the last, with mode="wrap"
    they are taken modulo n.

    >>> relay.take(np.float32([1, 2, 3]), np.int32([2, 0, 2]))
    Array([3., 1., 3.], dtype=float32)
    """
    extent = x.size if axis is None else x.shape[axis]
    if mode == "clip" and indices.dtype == np.uint64:
        indices = np.minimum(indices, np.uint64(extent)).astype(np.int64)
    if mode == "wrap":  # NumPy subtracts the extent again and again
        wide = indices if indices.dtype == np.uint64 else indices.astype(np.int64)
        indices, mode = (wide % wide.dtype.type(extent)).astype(np.int64), "raise"
    return np.asarray(np.take(x, indices, axis=axis, mode=mode))  # type: ignore[call-overload]


def _accumulation(x: Stage, indices: Stage, updates: Stage, axis: int) -> Callable[[Any, Any, Any], Any]:
    """The statement on buffers (result, indices, updates) that adds the updates one after another, so that repeated
    indices accumulate."""
    shape, extents, rank = dims(x), dims(updates), len(dims(indices))
    position = normalize_axis(axis, len(shape))

    def statement(result: Any, indices: Any, updates: Any) -> Any:
        def accumulate(index: list[Any]) -> Any:
            chosen = tirx.BufferLoad(indices, index[position : position + rank])
            place = [*index[:position], from_start(chosen, shape[position]), *index[position + rank :]]
            value = scalar.add(tirx.BufferLoad(result, place), tirx.BufferLoad(updates, index))
            return tirx.BufferStore(result, value, place)

        return loops(extents, accumulate)

    return statement


def _scatter_add(x: Stage, indices: Stage, updates: Stage, axis: int) -> Stage:
    shape = dims(x)
    if 0 in dims(updates):
        return te.compute(shape, lambda *index: x(*index))
    accumulate = _accumulation(x, indices, updates, axis)

    def statement(result: Any, old: Any, *rest: Any) -> Any:
        copy = loops(shape, lambda index: tirx.BufferStore(result, tirx.BufferLoad(old, index), index))
        return tirx.SeqStmt([copy, accumulate(result, *rest)])

    return stages.extern_stage(shape, [x, indices, updates], str(x.dtype), statement)


def _scatter_add_in_place(x: Stage, indices: Stage, updates: Stage, axis: int) -> Stage:
    return stages.extern_stage(dims(x), [indices, updates], str(x.dtype), _accumulation(x, indices, updates, axis))


def _scatter_in_range(x: Value, indices: Value, updates: Value, axis: int) -> Value | None:
    return in_range(indices, x.shape[normalize_axis(axis, x.ndim)])


def _numpy_scatter_add(x: Tensor, indices: Tensor, updates: Tensor, axis: int) -> None:
    position = normalize_axis(axis, x.ndim)
    place: tuple[Any, ...] = (*[slice(None)] * position, indices)
    np.add.at(x, place, updates)


def _batched_scatter_add(batch: Batch, x: Value, indices: Value, updates: Value, axis: int) -> Value:
    whole, parts, place = batch.stretch(x, 0), batch.stretch(updates, 2), normalize_axis(axis, batch.rank())
    if not batch.batched[1]:
        return batch.call(whole, indices, parts, axis=place + 1)
    count = batch.rank(1)
    order = (0, *range(1 + place, 1 + place + count), *range(1, 1 + place), *range(1 + place + count, parts.ndim))
    added = batching.move_axis(whole, place + 1, 1).op(
        "scatter_nd_add", _as_vectors(batch, indices), parts.op("transpose", axes=order)
    )
    return batching.move_axis(added, 1, place + 1)


@register_op(
    relation=Relation("T:number, I:int, T -> T", relations.scatter_add),
    pattern=Pattern.OPAQUE,
    compute=_scatter_add,
    gradient=lambda x, indices, updates, out, dout, axis: (dout, None, dout.op("take", indices, axis=axis)),
    requirements=(Requirement(_scatter_in_range, "index out of range"),),
    algebra=Algebra(accumulates=0),
    memory=Memory(in_place=InPlace(0, _scatter_add_in_place, _numpy_scatter_add)),
    batching=Batching(rule=_batched_scatter_add),
    sampler=cases(
        case((3,), _REPEATED, (2, 3)),
        case((3, 2), _REPEATED, (2, 3, 2)),
        case((2, 3, 4), _REPEATED, (2, 2, 3, 4), axis=1),
        case((2, 3), np.array(-1, np.int64), (2,), axis=-1),
        case((2, 3), np.zeros((0,), np.int32), (0, 3)),
    ),
)
def scatter_add(x: Tensor, indices: Tensor, updates: Tensor, axis: int = 0) -> Tensor:
    """x with updates added at indices along an axis of extent n; repeated indices accumulate, in order.
    x: (T, (*a, n, *b)), indices: (int, s) in [-n, n), updates: (T, (*a, *s, *b)) -> (T, (*a, n, *b)).

    >>> relay.scatter_add(np.float32([1, 2, 3]), np.int32([2, 0, 2]), np.float32([10, 20, 30]))
    Array([21.,  2., 43.], dtype=float32)
    """
    result = x.copy()
    _numpy_scatter_add(result, indices, updates, axis)
    return result


def _one_hot(indices: Stage, depth: int, dtype: BaseType) -> Stage:
    def element(*index: Element) -> Element:
        chosen = scalar.cast(indices(*index[:-1]), INT64)
        here = tirx.EQ(chosen, tirx.Cast("int64", index[-1]))
        return here if dtype == BOOL else scalar.cast(here, dtype)

    return te.compute((*dims(indices), depth), element)


@register_op(
    sizes=frozenset({"depth"}),
    relation=Relation("I:int -> @dtype", relations.one_hot),
    pattern=Pattern.INJECTIVE,
    compute=_one_hot,
    no_gradient="the operand is an index",
    batching=Batching(rule=batching.same_call),
    sampler=cases(
        case(np.array([[2, 0], [-1, 3]], np.int32), depth=3),
        case(np.array(1, np.int64), depth=2, dtype=INT32),
        case(np.array([1, 0], np.uint8), depth=2, dtype=BOOL),
        case(np.array([1, 0], np.int32), depth=0),
        case(np.zeros((0,), np.int32), depth=2),
    ),
)
def one_hot(indices: Tensor, depth: int, dtype: BaseType = FLOAT32) -> Tensor:
    """1 at each index along a new last axis, otherwise 0; all 0 for an index outside [0, depth).
    indices: (int, s) -> (dtype, (*s, depth)).

    >>> relay.one_hot(np.int32([1, 0]), 2)
    Array([[0., 1.],
           [1., 0.]], dtype=float32)
    """
    return np.equal(indices[..., None], np.arange(depth)).astype(dtype.dtype)
