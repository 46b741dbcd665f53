"""Reshaping: new shapes, axes, broadcasting, joining."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import numpy as np

from relay.ir.dims import Dim, add
from relay.ops.notation import (
    Algebra,
    Batch,
    Batching,
    Element,
    Indexing,
    IndexKind,
    Memory,
    Pattern,
    Relation,
    Stage,
    Tensor,
    Value,
    alias,
    broadcast_load,
    dims,
    register_op,
    result_dims,
    same_dim,
)
from relay.ops.samples import case, cases
from relay.ops.tir import stages
from relay.ops.tir.tvm_modules import index_dtype, te, tirx
from relay.typecheck import relations
from relay.typecheck.dims import constant_dim, normalize_axis

Axes = int | tuple[int, ...] | None


# ---- broadcasting and its inverse


def _broadcast_to(x: Stage, shape: tuple[int, ...]) -> Stage:
    return te.compute(result_dims(lambda: relations.literal_shape(shape)), lambda *index: broadcast_load(x, index))


def _batched_broadcast(batch: Batch, x: Value, shape: tuple[int, ...]) -> Value:
    missing = batch.tensor.rank - batch.rank()
    whole = x.op("reshape", shape=(batch.size, *(1,) * missing, *x.shape[1:])) if missing else x
    return batch.call(whole, shape=(batch.size, *batch.tensor.shape))


@register_op(
    sizes=frozenset({"shape"}),
    relation=Relation("T -> T", relations.broadcast_to),
    pattern=Pattern.BROADCAST,
    compute=_broadcast_to,
    gradient=lambda x, out, dout, shape: dout.op("sum_to", shape=x.shape),
    algebra=Algebra(linear=(0,), coercion=True),
    batching=Batching(rule=_batched_broadcast),
    sampler=cases(
        case((), shape=()),
        case((), shape=(2, 3)),
        case((3,), shape=(2, 3)),
        case((2, 1), shape=(4, 2, 3)),
        case((2, 1, 3, 1), shape=(1, 2, 2, 2, 3, 1)),
        case((1, 3), shape=(0, 3)),
        case((1,), shape=3),
    ),
)
def broadcast_to(x: Tensor, shape: tuple[int, ...]) -> Tensor:
    """x stretched to a shape. x: (T, s) -> (T, shape).

    >>> relay.broadcast_to(np.int32([1, 2]), (2, 2))
    Array([[1, 2],
           [1, 2]], dtype=int32)
    """
    return np.broadcast_to(x, shape).copy()


def _sum_to(x: Stage, shape: tuple[int, ...]) -> Stage:
    source, target = dims(x), result_dims(lambda: relations.literal_shape(shape))
    added = len(source) - len(target)
    stretched = [i for i in range(added, len(source)) if target[i - added] == 1 and source[i] != 1]
    summed = stages.total(x, [*range(added), *stretched], keepdims=True)
    return te.compute(target, lambda *index: summed(*([0] * added), *index))


def accumulator(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype in which many elements of a dtype are combined, as in compiled code."""
    return np.dtype(np.float32) if dtype.name in ("float16", "bfloat16") else dtype


def _numpy_sum_to(x: Tensor, shape: tuple[int, ...]) -> Tensor:
    target = relations.literal_shape(shape)
    added = x.ndim - len(target)
    stretched = [i for i in range(added, x.ndim) if target[i - added] == 1 and x.shape[i] != 1]
    summed = np.sum(x, axis=(*range(added), *stretched), keepdims=True, dtype=accumulator(x.dtype))
    return np.asarray(summed.astype(x.dtype)).reshape(target)


def _batched_sum(batch: Batch, x: Value, shape: tuple[int, ...]) -> Value:
    wanted, missing = batch.tensor.shape, batch.rank() - batch.tensor.rank
    made = batch.call(x, shape=(batch.size, *(1,) * missing, *wanted))
    return made.op("reshape", shape=(batch.size, *wanted)) if missing else made


@register_op(
    sizes=frozenset({"shape"}),
    relation=Relation("T:number -> T", relations.sum_to),
    pattern=Pattern.REDUCTION,
    compute=_sum_to,
    gradient=lambda x, out, dout, shape: broadcast_to(dout, shape=x.shape),
    algebra=Algebra(linear=(0,), coercion=True),
    batching=Batching(rule=_batched_sum),
    sampler=cases(
        case((), shape=()),
        case((2, 3), shape=()),
        case((2, 3), shape=(3,)),
        case((2, 3), shape=(2, 1)),
        case((4, 2, 3), shape=(1, 3)),
        case((0, 3), shape=(3,)),
        case((0, 3), shape=(1, 1)),
        case((2, 3), shape=(2, 3)),
        case((1, 1), shape=(1,)),
    ),
)
def sum_to(x: Tensor, shape: tuple[int, ...]) -> Tensor:
    """The inverse of `broadcast_to`: x summed over the axes that `shape` would be stretched along. x: (T, s) -> (T,
    shape).

    >>> relay.sum_to(np.int32([[1, 2], [3, 4]]), (2,))
    Array([4, 6], dtype=int32)
    """
    return _numpy_sum_to(x, shape)


# ---- reshaping


def reshaped_stage(x: Stage, shape: tuple[int, ...]) -> Stage:
    """The stage's elements, the last axis fastest, in another shape."""
    source = dims(x)
    numbers = isinstance(shape, int) or all(isinstance(dim, int) for dim in (*source, *shape))
    target = tuple(map(constant_dim, relations.reshape(source, shape=shape))) if numbers else tuple(shape)
    ahead = behind = 0  # the first and the last axes that stay
    while ahead < min(len(source), len(target)) and same_dim(source[ahead], target[ahead]):
        ahead += 1
    while behind < min(len(source), len(target)) - ahead and same_dim(source[-1 - behind], target[-1 - behind]):
        behind += 1
    rest, axes = source[ahead : len(source) - behind], target[ahead : len(target) - behind]
    symbolic = not all(isinstance(dim, int) for dim in (*rest, *axes))
    wide = "int64" if symbolic else index_dtype()
    steps = [math.prod(axes[i + 1 :]) for i in range(len(axes))]

    def places(index: Sequence[Element]) -> list[Element]:
        """The indices in the axes that change."""
        others = [i for i, dim in enumerate(rest) if not (isinstance(dim, int) and dim == 1)]
        moved = [i for i, dim in zip(index, axes, strict=True) if not (isinstance(dim, int) and dim == 1)]
        kept = [dim for dim in axes if not (isinstance(dim, int) and dim == 1)]
        found: list[Element] = [0] * len(rest)
        if len(kept) == len(others) and all(same_dim(rest[i], dim) for i, dim in zip(others, kept, strict=True)):
            for i, place in zip(others, moved, strict=True):
                found[i] = place
            return found
        inner = [tirx.Cast("int64", i) for i in index] if symbolic else index
        start = tirx.const(0, wide)
        position = sum((i * step for i, step in zip(inner, steps, strict=True)), start)
        for i in reversed(others):  # a quotient of quotients, so that kernels see what they are together
            found[i] = position if i == others[0] else tirx.floormod(position, rest[i])
            if i != others[0]:
                position = tirx.floordiv(position, rest[i])
        return found

    def load(*index: Element) -> Element:
        end = len(index) - behind
        return x(*index[:ahead], *places(index[ahead:end]), *index[end:])

    if any(isinstance(dim, int) and dim == 0 for dim in target):
        return stages.full(target, 0, str(x.dtype))
    return te.compute(target, load)


@register_op(
    sizes=frozenset({"shape"}),
    relation=Relation("T -> T", relations.reshape),
    pattern=Pattern.INJECTIVE,
    indexing=Indexing(kind=IndexKind.RESHAPE),
    compute=lambda x, shape: reshaped_stage(x, result_dims(lambda: shape)),
    gradient=lambda x, out, dout, shape: dout.op("reshape", shape=x.shape),
    algebra=Algebra(linear=(0,), coercion=True),
    sampler=cases(
        case((), shape=()),
        case((), shape=(1, 1)),
        case((2, 3), shape=(3, 2)),
        case((2, 3), shape=-1),
        case((2, 3, 4), shape=(4, -1)),
        case((1, 1), shape=()),
        case((0, 3), shape=(5, 0)),
        case((0, 3), shape=(-1, 3)),
    ),
)
def reshape(x: Tensor, shape: tuple[int, ...]) -> Tensor:
    """The same elements, the last axis fastest, in another shape, in which one extent may be -1. x: (T, s) -> (T,
    shape).

    >>> relay.reshape(np.int32([1, 2, 3, 4]), (2, -1))
    Array([[1, 2],
           [3, 4]], dtype=int32)
    """
    return np.reshape(x, shape).copy()


def permuted_stage(x: Stage, axes: Sequence[int] | None) -> Stage:
    """The stage with its axes in another order; reversed without one."""
    order = relations.permutation(axes, len(dims(x)))
    places = [order.index(axis) for axis in range(len(order))]
    return te.compute(tuple(dims(x)[axis] for axis in order), lambda *index: x(*(index[place] for place in places)))


def _transpose_gradient(x: Value, out: Value, dout: Value, axes: Sequence[int] | None) -> Value:
    order = relations.permutation(axes, x.ndim)
    return dout.op("transpose", axes=tuple(order.index(axis) for axis in range(x.ndim)))


@register_op(
    relation=Relation("T -> T", relations.transpose),
    pattern=Pattern.INJECTIVE,
    compute=permuted_stage,
    gradient=_transpose_gradient,
    indexing=Indexing(kind=IndexKind.PERMUTE),
    algebra=Algebra(linear=(0,)),
    sampler=cases(
        case(()),
        case((3,)),
        case((2, 3)),
        case((2, 3, 4), axes=(2, 0, 1)),
        case((2, 3, 4), axes=(0, -1, 1)),
        case((0, 3)),
    ),
)
def transpose(x: Tensor, axes: tuple[int, ...] | None = None) -> Tensor:
    """The axes in another order; reversed without one. x: (T, s) -> (T, s in that order).

    >>> relay.transpose(np.int32([[1, 2], [3, 4]]))
    Array([[1, 3],
           [2, 4]], dtype=int32)
    """
    return np.transpose(x, axes).copy()


@register_op(
    relation=Relation("T -> T", relations.expand_dims),
    pattern=Pattern.INJECTIVE,
    indexing=Indexing(kind=IndexKind.RESHAPE),
    compute=lambda x, axis: reshaped_stage(x, result_dims(lambda: relations.expand_dims(dims(x), axis=axis))),
    gradient=lambda x, out, dout, axis: reshape(dout, shape=x.shape),
    algebra=Algebra(linear=(0,)),
    sampler=cases(case((), axis=0), case((2, 3), axis=-1), case((2, 3), axis=(0, 2)), case((0,), axis=1)),
)
def expand_dims(x: Tensor, axis: int | tuple[int, ...]) -> Tensor:
    """New axes of extent 1, at positions counted in the result. x: (T, s) -> (T, s with 1s).

    >>> relay.expand_dims(np.int32([1, 2]), 0)
    Array([[1, 2]], dtype=int32)
    """
    return np.expand_dims(x, axis).copy()


@register_op(
    relation=Relation("T -> T", relations.squeeze),
    pattern=Pattern.INJECTIVE,
    indexing=Indexing(kind=IndexKind.RESHAPE),
    compute=lambda x, axis: reshaped_stage(x, result_dims(lambda: relations.squeeze(dims(x), axis=axis))),
    gradient=lambda x, out, dout, axis: reshape(dout, shape=x.shape),
    algebra=Algebra(linear=(0,), coercion=True),
    sampler=cases(case(()), case((1, 3, 1)), case((1, 3, 1), axis=-1), case((1, 1), axis=(0, 1)), case((0, 1), axis=1)),
)
def squeeze(x: Tensor, axis: Axes = None) -> Tensor:
    """x without axes of extent 1: the given ones, or all such. x: (T, s) -> (T, s without them).

    >>> relay.squeeze(np.int32([[1, 2]]))
    Array([1, 2], dtype=int32)
    """
    return np.squeeze(x, axis).copy()


# ---- joining


def _part(value: Value, axis: int, begin: Dim, end: Dim) -> Value:
    begins: list[Dim] = [0] * value.ndim
    ends = list(value.shape)
    begins[axis], ends[axis] = begin, end
    return value.op("strided_slice", begin=tuple(begins), end=tuple(ends), strides=(1,) * value.ndim)


def _concatenate(tensors: Sequence[Stage], axis: int) -> Stage:
    shapes = [dims(x) for x in tensors]
    position = normalize_axis(axis, len(shapes[0]))
    pieces = [
        (x, shape[position]) for x, shape in zip(tensors, shapes, strict=True) if not same_dim(shape[position], 0)
    ] or [(tensors[0], 0)]
    bounds = [0, *accumulate(extent for _, extent in pieces)]

    def element(*index: Element) -> Element:
        def load(k: int) -> Element:
            return pieces[k][0](*index[:position], index[position] - bounds[k], *index[position + 1 :])

        return stages.choose(index[position], bounds, load)

    return te.compute((*shapes[0][:position], bounds[-1], *shapes[0][position + 1 :]), element)


def _concatenate_gradient(tensors: tuple[Value, ...], out: Value, dout: Value, axis: int) -> tuple[Value, ...]:
    position = normalize_axis(axis, dout.ndim)
    bounds = [0, *accumulate((x.shape[position] for x in tensors), add)]
    return tuple(_part(dout, position, bounds[k], bounds[k + 1]) for k in range(len(tensors)))


@register_op(
    relation=Relation("T.. -> T", relations.concatenate),
    pattern=Pattern.INJECTIVE,
    compute=_concatenate,
    indexing=Indexing(axis="axis"),
    memory=Memory(joins="axis"),
    gradient=_concatenate_gradient,
    sampler=cases(
        case((3,)),
        case((2, 3), (4, 3)),
        case((2, 3), (2, 1), (2, 0), (2, 2), axis=-1),
        case((0, 3), (0, 3)),
        case(*((1,) for _ in range(9))),
    ),
)
def concatenate(tensors: tuple[Tensor, ...], axis: int = 0) -> Tensor:
    """Tensors joined along an axis. Each: (T, (*a, n_k, *b)) -> (T, (*a, sum of n_k, *b)).

    >>> relay.concatenate((np.int32([1, 2]), np.int32([3])))
    Array([1, 2, 3], dtype=int32)
    """
    return np.concatenate(tensors, axis)


def _stack(tensors: Sequence[Stage], axis: int) -> Stage:
    shape = dims(tensors[0])
    position = normalize_axis(axis, len(shape) + 1)
    bounds = range(len(tensors) + 1)

    def element(*index: Element) -> Element:
        rest = (*index[:position], *index[position + 1 :])
        return stages.choose(index[position], bounds, lambda k: tensors[k](*rest))

    return te.compute((*shape[:position], len(tensors), *shape[position:]), element)


def _stack_gradient(tensors: tuple[Value, ...], out: Value, dout: Value, axis: int) -> tuple[Value, ...]:
    position = normalize_axis(axis, dout.ndim)
    return tuple(reshape(_part(dout, position, k, k + 1), shape=x.shape) for k, x in enumerate(tensors))


def _batched_stack(batch: Batch, tensors: Sequence[Value], axis: int) -> Value:
    return batch.call(*batch.stretch_all(tensors), axis=axis % (batch.rank() + 1) + 1)


@register_op(
    relation=Relation("T.. -> T", relations.stack),
    pattern=Pattern.INJECTIVE,
    compute=_stack,
    gradient=_stack_gradient,
    memory=Memory(joins="axis"),
    batching=Batching(rule=_batched_stack),
    sampler=cases(
        case(()), case((), (), ()), case((2, 3), (2, 3)), case((2, 3), (2, 3), (2, 3), axis=-1), case((0,), (0,))
    ),
)
def stack(tensors: tuple[Tensor, ...], axis: int = 0) -> Tensor:
    """Tensors of one shape along a new axis. Each of n: (T, (*a, *b)) -> (T, (*a, n, *b)).

    >>> relay.stack((np.int32([1, 2]), np.int32([3, 4])), axis=1)
    Array([[1, 3],
           [2, 4]], dtype=int32)
    """
    return np.stack(tensors, axis)


alias("permute", "transpose")
alias("view", "reshape")
alias("cat", "concatenate")
alias("unsqueeze", "expand_dims")
