"""Slices with constant bounds: reading one, placing one among zeros, replacing one.

A slice has one (begin, end, stride) for each axis, exactly as Python's `slice(..).indices(n)` gives them for an axis
of extent n: with a positive stride 0 <= begin, end <= n; with a negative one -1 <= begin, end <= n - 1, where the end
-1 means "before element 0" (it does not count from the end). The slice's extent is len(range(begin, end, stride)).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from relay.ir.types import Dim
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
    Stage,
    Tensor,
    Value,
    dims,
    loops,
    register_op,
    result_dims,
)
from relay.ops.samples import case, cases
from relay.ops.tir import scalar, stages
from relay.ops.tir.tvm_modules import te, tirx
from relay.typecheck import relations

Bounds = tuple[int, ...]


def _numpy_slice(begin: Bounds, end: Bounds, strides: Bounds) -> tuple[slice, ...]:
    """NumPy's slices, for which "before element 0" is None."""
    return tuple(
        slice(b if b >= 0 else 0, e if e >= 0 else None, s) if b >= 0 else slice(0, 0, 1)
        for b, e, s in zip(begin, end, strides, strict=True)
    )


def _strided_slice(x: Stage, begin: Bounds, end: Bounds, strides: Bounds) -> Stage:
    shape = result_dims(lambda: relations.strided_slice(dims(x), begin=begin, end=end, strides=strides))
    return te.compute(shape, lambda *index: x(*(b + i * s for i, b, s in zip(index, begin, strides, strict=True))))


def _strided_slice_gradient(x: Value, out: Value, dout: Value, begin: Bounds, end: Bounds, strides: Bounds) -> Value:
    return dout.op("place_slice", shape=x.shape, begin=begin, end=end, strides=strides)


_SLICES = (
    ((), {"begin": (), "end": (), "strides": ()}),
    ((5,), {"begin": (1,), "end": (4,), "strides": (1,)}),
    ((5,), {"begin": (4,), "end": (-1,), "strides": (-1,)}),
    ((2, 7), {"begin": (0, 1), "end": (2, 7), "strides": (1, 3)}),
    ((2, 7), {"begin": (1, 6), "end": (0, 0), "strides": (-1, -2)}),
    ((2, 3), {"begin": (1, 0), "end": (1, 3), "strides": (1, 1)}),
    (
        (2, 1, 3, 1, 2, 3),
        {"begin": (0, 0, 2, 0, 1, 0), "end": (2, 1, -1, 1, 2, 3), "strides": (1, 1, -1, 1, 1, 2)},
    ),
    ((0, 3), {"begin": (-1, 0), "end": (-1, 3), "strides": (-1, 1)}),
)


@register_op(
    sizes=frozenset({"begin", "end"}),
    relation=Relation("T -> T", relations.strided_slice),
    pattern=Pattern.INJECTIVE,
    compute=_strided_slice,
    indexing=Indexing(kind=IndexKind.SLICE),
    gradient=_strided_slice_gradient,
    algebra=Algebra(linear=(0,)),
    sampler=cases(*(case(shape, **bounds) for shape, bounds in _SLICES)),
)
def strided_slice(x: Tensor, begin: tuple[int, ...], end: tuple[int, ...], strides: tuple[int, ...]) -> Tensor:
    """The elements begin, begin + stride, .. before end, along each axis. x: (T, s) -> (T, the slice's shape).

    Each axis of extent n has the (begin, end, stride) that `slice(..).indices(n)` gives: with a negative stride the
    end -1 means "before element 0".

    >>> relay.strided_slice(np.int32([1, 2, 3, 4]), (3,), (-1,), (-2,))
    Array([4, 2], dtype=int32)
    """
    return x[_numpy_slice(begin, end, strides)].copy()


def _in_slice(
    index: Sequence[Element], shape: Sequence[Dim], extents: Sequence[int], begin: Bounds, strides: Bounds
) -> tuple[Element, list[Element]]:
    """True if an index into the whole is in the slice, with its index there."""
    inside: Element = tirx.const(True, "bool")
    places = []
    for i, dim, extent, b, s in zip(index, shape, extents, begin, strides, strict=True):
        if (b, s, extent) == (0, 1, dim):
            places.append(i)
            continue
        distance, step = (i - b, s) if s > 0 else (b - i, -s)
        inside = tirx.all(inside, distance >= 0, distance < extent * step)
        if step != 1:
            inside = tirx.all(inside, tirx.EQ(tirx.floormod(distance, step), tirx.const(0, scalar.dtype_of(distance))))
        places.append(tirx.floordiv(distance, step))
    return inside, places


def _place_slice(x: Stage, shape: Bounds, begin: Bounds, end: Bounds, strides: Bounds) -> Stage:
    whole = result_dims(lambda: relations.literal_shape(shape))
    if 0 in dims(x):
        return stages.full(whole, 0, str(x.dtype))

    def element(*index: Element) -> Element:
        inside, places = _in_slice(index, whole, dims(x), begin, strides)
        return scalar.guarded_select(inside, x(*places), scalar.number(0, str(x.dtype)))

    return te.compute(whole, element)


def _place_slice_gradient(
    x: Value, out: Value, dout: Value, shape: Bounds, begin: Bounds, end: Bounds, strides: Bounds
) -> Value:
    return dout.op("strided_slice", begin=begin, end=end, strides=strides)


def _place_cases() -> list[tuple[tuple[int, ...], dict[str, object]]]:
    return [
        (tuple(len(range(*place)) for place in zip(*bounds.values(), strict=True)), {"shape": shape, **bounds})
        for shape, bounds in _SLICES
    ]


def _with_examples(batch: Batch, begin: Any, end: Any, strides: Any) -> dict[str, Any]:
    """The bounds of a slice of all examples."""
    return {"begin": (0, *begin), "end": (batch.size, *end), "strides": (1, *strides)}


def _batched_place(batch: Batch, x: Value, shape: tuple[int, ...], **bounds: Any) -> Value:
    return batch.call(x, shape=(batch.size, *shape), **_with_examples(batch, **bounds))


def _batched_change(batch: Batch, x: Value, new: Value, **bounds: Any) -> Value:
    return batch.call(*batch.stretch_all((x, new)), **_with_examples(batch, **bounds))


@register_op(
    sizes=frozenset({"shape", "begin", "end"}),
    relation=Relation("T:number -> T", relations.place_slice),
    pattern=Pattern.INJECTIVE,
    compute=_place_slice,
    gradient=_place_slice_gradient,
    algebra=Algebra(linear=(0,), accumulates="add_slice"),
    batching=Batching(rule=_batched_place),
    sampler=cases(*(case(part, **attributes) for part, attributes in _place_cases())),
)
def place_slice(
    x: Tensor, shape: tuple[int, ...], begin: tuple[int, ...], end: tuple[int, ...], strides: tuple[int, ...]
) -> Tensor:
    """Zeros of a shape with x at a slice: the adjoint of `strided_slice`, with its bounds. x: (T, the slice's shape)
    -> (T, shape).

    >>> relay.place_slice(np.int32([7, 8]), (4,), (1,), (4,), (2,))
    Array([0, 7, 0, 8], dtype=int32)
    """
    result = np.zeros(shape, x.dtype)
    result[_numpy_slice(begin, end, strides)] = x
    return result


def _update_slice(x: Stage, new: Stage, begin: Bounds, end: Bounds, strides: Bounds) -> Stage:
    if 0 in dims(new):
        return te.compute(dims(x), lambda *index: x(*index))

    def element(*index: Element) -> Element:
        inside, places = _in_slice(index, dims(x), dims(new), begin, strides)
        return scalar.guarded_select(inside, new(*places), x(*index))

    return te.compute(dims(x), element)


def _update_slice_in_place(x: Stage, new: Stage, begin: Bounds, end: Bounds, strides: Bounds) -> Stage:
    extents = dims(new)

    def statement(result: Any, new: Any) -> Any:
        def store(index: list[Any]) -> Any:
            place = [b + i * s for i, b, s in zip(index, begin, strides, strict=True)]
            return tirx.BufferStore(result, tirx.BufferLoad(new, index), place)

        return loops(extents, store)

    return stages.extern_stage(dims(x), [new], str(x.dtype), statement)


def _replace_slice(x: Tensor, new: Tensor, begin: Bounds, end: Bounds, strides: Bounds) -> None:
    x[_numpy_slice(begin, end, strides)] = new


def _add_to_slice(x: Tensor, new: Tensor, begin: Bounds, end: Bounds, strides: Bounds) -> None:
    x[_numpy_slice(begin, end, strides)] += new


def _update_slice_gradient(
    x: Value, new: Value, out: Value, dout: Value, begin: Bounds, end: Bounds, strides: Bounds
) -> tuple[Value, Value]:
    bounds = {"begin": begin, "end": end, "strides": strides}
    part = strided_slice(dout, **bounds)
    return update_slice(dout, part.op("zeros_like"), **bounds), part


@register_op(
    sizes=frozenset({"begin", "end"}),
    relation=Relation("T, T -> T", relations.update_slice),
    pattern=Pattern.INJECTIVE,
    compute=_update_slice,
    gradient=_update_slice_gradient,
    memory=Memory(in_place=InPlace(0, _update_slice_in_place, _replace_slice)),
    batching=Batching(rule=_batched_change),
    sampler=cases(*(case(attributes.pop("shape"), part, **attributes) for part, attributes in _place_cases())),
)
def update_slice(
    x: Tensor, new: Tensor, begin: tuple[int, ...], end: tuple[int, ...], strides: tuple[int, ...]
) -> Tensor:
    """x with a slice replaced; the bounds are as in `strided_slice`. x: (T, s), new: (T, the slice's shape) -> (T, s).

    >>> relay.update_slice(np.int32([1, 2, 3, 4]), np.int32([7, 8]), (0,), (4,), (2,))
    Array([7, 2, 8, 4], dtype=int32)
    """
    result = x.copy()
    _replace_slice(result, new, begin, end, strides)
    return result


def _add_slice(x: Stage, new: Stage, begin: Bounds, end: Bounds, strides: Bounds) -> Stage:
    if 0 in dims(new):
        return te.compute(dims(x), lambda *index: x(*index))

    def element(*index: Element) -> Element:
        inside, places = _in_slice(index, dims(x), dims(new), begin, strides)
        return scalar.guarded_select(inside, scalar.add(x(*index), new(*places)), x(*index))

    return te.compute(dims(x), element)


def _add_slice_in_place(x: Stage, new: Stage, begin: Bounds, end: Bounds, strides: Bounds) -> Stage:
    extents = dims(new)

    def statement(result: Any, new: Any) -> Any:
        def accumulate(index: list[Any]) -> Any:
            place = [b + i * s for i, b, s in zip(index, begin, strides, strict=True)]
            value = scalar.add(tirx.BufferLoad(result, place), tirx.BufferLoad(new, index))
            return tirx.BufferStore(result, value, place)

        return loops(extents, accumulate)

    return stages.extern_stage(dims(x), [new], str(x.dtype), statement)


@register_op(
    sizes=frozenset({"begin", "end"}),
    relation=Relation("T:number, T -> T", relations.update_slice),
    pattern=Pattern.INJECTIVE,
    compute=_add_slice,
    gradient=lambda x, new, out, dout, **bounds: (dout, dout.op("strided_slice", **bounds)),
    algebra=Algebra(accumulates=0),
    memory=Memory(in_place=InPlace(0, _add_slice_in_place, _add_to_slice)),
    batching=Batching(rule=_batched_change),
    sampler=cases(*(case(attributes.pop("shape"), part, **attributes) for part, attributes in _place_cases())),
)
def add_slice(x: Tensor, new: Tensor, begin: tuple[int, ...], end: tuple[int, ...], strides: tuple[int, ...]) -> Tensor:
    """x with `new` added to a slice; the bounds are as in `strided_slice`. x: (T, s), new: (T, the slice's shape)
    -> (T, s).

    >>> relay.add_slice(np.int32([1, 2, 3, 4]), np.int32([7, 8]), (0,), (4,), (2,))
    Array([ 8,  2, 11,  4], dtype=int32)
    """
    result = x.copy()
    _add_to_slice(result, new, begin, end, strides)
    return result
