"""Rearrangement of elements: axes exchanged, elements reversed, rolled, repeated, other layouts."""

from __future__ import annotations

import math
import string
from typing import Any

import numpy as np

from relay.ir.dims import Dim, subtract
from relay.operator import composite
from relay.ops import batching
from relay.ops.notation import (
    Algebra,
    Batch,
    Batching,
    Element,
    Pattern,
    Relation,
    Stage,
    Tensor,
    Value,
    alias,
    dims,
    number_or_size,
    register_op,
    result_dims,
)
from relay.ops.samples import case, cases
from relay.ops.shape.reshaping import permuted_stage, reshape, reshaped_stage, transpose
from relay.ops.tir import stages
from relay.ops.tir.tvm_modules import te, tirx
from relay.typecheck import shape_rules
from relay.typecheck.dims import constant_dim, normalize_axes, normalize_axis, numbers

Axes = int | tuple[int, ...] | None


# ---- the order of axes


def _swapaxes(x: Stage, axis1: int, axis2: int) -> Stage:
    return permuted_stage(x, shape_rules.swapped_axes(len(dims(x)), axis1, axis2))


@register_op(
    relation=Relation("T -> T", shape_rules.swapaxes),
    pattern=Pattern.INJECTIVE,
    compute=_swapaxes,
    gradient=lambda x, out, dout, axis1, axis2: dout.op("swapaxes", axis1=axis1, axis2=axis2),
    algebra=Algebra(linear=(0,)),
    batching=Batching(rule=batching.by_axes("axis1", "axis2")),
    sampler=cases(case((2, 3), axis1=0, axis2=1), case((2, 0, 4), axis1=-1, axis2=0), case((3,), axis1=0, axis2=0)),
)
def swapaxes(x: Tensor, axis1: int, axis2: int) -> Tensor:
    """Two axes exchanged. x: (T, s) -> (T, s with two dims exchanged).

    >>> relay.swapaxes(np.int32([[1, 2]]), 0, 1)
    Array([[1],
           [2]], dtype=int32)
    """
    return np.swapaxes(x, axis1, axis2).copy()


def _moveaxis(x: Stage, source: int | tuple[int, ...], destination: int | tuple[int, ...]) -> Stage:
    return permuted_stage(x, shape_rules.moved_axes(len(dims(x)), source, destination))


def _moveaxis_gradient(
    x: Value, out: Value, dout: Value, source: int | tuple[int, ...], destination: int | tuple[int, ...]
) -> Value:
    return dout.op("moveaxis", source=destination, destination=source)


@register_op(
    relation=Relation("T -> T", shape_rules.moveaxis),
    pattern=Pattern.INJECTIVE,
    compute=_moveaxis,
    gradient=_moveaxis_gradient,
    algebra=Algebra(linear=(0,)),
    batching=Batching(rule=batching.by_axes("source", "destination")),
    sampler=cases(
        case((2, 3, 4), source=0, destination=-1),
        case((2, 3, 4), source=(0, 1), destination=(-1, 0)),
        case((0, 3), source=1, destination=0),
    ),
)
def moveaxis(x: Tensor, source: int | tuple[int, ...], destination: int | tuple[int, ...]) -> Tensor:
    """Axes at other positions, the others in their order. x: (T, s) -> (T, s in another order).

    >>> relay.moveaxis(np.zeros((2, 3, 4)), 0, -1).shape
    (3, 4, 2)
    """
    return np.moveaxis(x, source, destination).copy()


# ---- the order of elements


def _flip(x: Stage, axis: Axes) -> Stage:
    shape = dims(x)
    axes = normalize_axes(axis, len(shape))
    return te.compute(
        shape,
        lambda *index: x(
            *(dim - 1 - i if a in axes else i for a, (i, dim) in enumerate(zip(index, shape, strict=True)))
        ),
    )


@register_op(
    relation=Relation("T -> T", shape_rules.flip),
    pattern=Pattern.INJECTIVE,
    compute=_flip,
    gradient=lambda x, out, dout, axis: dout.op("flip", axis=axis),
    algebra=Algebra(linear=(0,)),
    batching=Batching(rule=batching.by_axes("axis")),
    sampler=cases(
        case(()), case((2, 3)), case((2, 3), axis=-1), case((2, 3, 4), axis=(0, 2)), case((0, 3)), case((2, 3), axis=())
    ),
)
def flip(x: Tensor, axis: Axes = None) -> Tensor:
    """The elements in reverse along axes, all without any given. x: (T, s) -> (T, s).

    >>> relay.flip(np.int32([1, 2, 3]))
    Array([3, 2, 1], dtype=int32)
    """
    return np.flip(x, axis).copy()


def _roll(x: Stage, shift: int | tuple[int, ...], axis: Axes) -> Stage:
    shape = dims(x)
    if 0 in shape:
        return stages.full(shape, 0, str(x.dtype))
    if axis is None:
        flat = reshaped_stage(x, (math.prod(shape),))
        return reshaped_stage(_roll(flat, shift, 0), shape)
    steps = shape_rules.shifts(len(shape), shift, axis)
    return te.compute(
        shape,
        lambda *index: x(*(_roll_source(i, step, dim) for i, step, dim in zip(index, steps, shape, strict=True))),
    )


def _roll_source(i: Element, step: Any, extent: Any) -> Element:
    """The index in the source of the element at i."""
    if isinstance(extent, int) and isinstance(step, int):
        back = -step % extent
        return tirx.Select(i < extent - back, i + back, i - (extent - back)) if back else i
    if isinstance(step, int) and step == 0:
        return i
    step, size = (number_or_size(value, "int64") for value in (step, extent))
    ahead, place = tirx.floormod(step, size), tirx.Cast("int64", i)  # the first `ahead` elements come from the end
    return tirx.Select(place < ahead, place + (size - ahead), place - ahead)


def _roll_gradient(x: Value, out: Value, dout: Value, shift: Dim | tuple[Dim, ...], axis: Axes) -> Value:
    back = tuple(subtract(0, s) for s in shift) if isinstance(shift, tuple) else subtract(0, shift)
    return dout.op("roll", shift=back, axis=axis)


@register_op(
    sizes=frozenset({"shift"}),
    relation=Relation("T -> T", shape_rules.roll),
    pattern=Pattern.INJECTIVE,
    compute=_roll,
    gradient=_roll_gradient,
    algebra=Algebra(linear=(0,)),
    batching=Batching(rule=batching.in_row(batching.by_axes("axis"))),
    sampler=cases(
        case((5,), shift=2),
        case((2, 3), shift=-4),
        case((2, 3), shift=1, axis=-1),
        case((2, 3, 4), shift=(1, -2), axis=(0, 2)),
        case((0, 3), shift=1, axis=0),
        case((), shift=1),
    ),
)
def roll(x: Tensor, shift: int | tuple[int, ...], axis: Axes = None) -> Tensor:
    """The elements moved along axes, those that leave coming back at the other end; all as one row without axes.
    x: (T, s) -> (T, s).

    >>> relay.roll(np.int32([1, 2, 3, 4]), 1)
    Array([4, 1, 2, 3], dtype=int32)
    """
    return np.roll(x, shift, axis)


# ---- repetition


def _tile(x: Stage, reps: int | tuple[int, ...]) -> Stage:
    shape = dims(x)
    result = result_dims(lambda: map(constant_dim, shape_rules.tile(shape, reps=reps)))
    if 0 in result:
        return stages.full(result, 0, str(x.dtype))
    return te.compute(
        result,
        lambda *index: x(
            *(
                tirx.floormod(i, dim) if not isinstance(dim, int) or dim > 1 else 0
                for i, dim in zip(index[len(index) - len(shape) :], shape, strict=True)
            )
        ),
    )


def _tile_gradient(x: Value, out: Value, dout: Value, reps: int | tuple[int, ...]) -> Value:
    counts = shape_rules.repetitions(x.ndim, reps)
    shape = (1,) * (len(counts) - x.ndim) + x.shape
    pairs = tuple(dim for pair in zip(counts, shape, strict=True) for dim in pair)
    summed = dout.op("reshape", shape=pairs).op("sum", axis=tuple(range(0, len(pairs), 2)))
    return summed.op("reshape", shape=x.shape)


def _batched_tile(batch: Batch, x: Value, reps: int | tuple[int, ...]) -> Value:
    counts = shape_rules.repetitions(batch.rank(), reps)
    more = len(counts) - batch.rank()
    whole = x.op("reshape", shape=(batch.size, *(1,) * more, *x.shape[1:])) if more else x
    return batch.call(whole, reps=(1, *counts))


@register_op(
    sizes=frozenset({"reps"}),
    relation=Relation("T -> T", shape_rules.tile),
    pattern=Pattern.INJECTIVE,
    compute=_tile,
    gradient=_tile_gradient,
    algebra=Algebra(linear=(0,)),
    batching=Batching(rule=_batched_tile),
    sampler=cases(
        case((3,), reps=2),
        case((2, 3), reps=2),
        case((2, 3), reps=(3, 1, 2)),
        case((2, 1), reps=(0, 2)),
        case((), reps=(2,)),
        case((0, 3), reps=(2, 2)),
    ),
)
def tile(x: Tensor, reps: int | tuple[int, ...]) -> Tensor:
    """x repeated `reps` times along the last axes, or along new ones at the front. x: (T, s) -> (T, s times reps).

    >>> relay.tile(np.int32([1, 2]), (2, 2))
    Array([[1, 2, 1, 2],
           [1, 2, 1, 2]], dtype=int32)
    """
    return np.tile(x, reps)


def _repeat(x: Stage, repeats: int, axis: int | None) -> Stage:
    if axis is None:
        return _repeat(reshaped_stage(x, (math.prod(dims(x)),)), repeats, 0)
    shape = dims(x)
    position = normalize_axis(axis, len(shape))
    result = result_dims(lambda: map(constant_dim, shape_rules.repeat(shape, repeats=repeats, axis=axis)))
    if 0 in result:
        return stages.full(result, 0, str(x.dtype))
    return te.compute(
        result,
        lambda *index: x(*index[:position], tirx.floordiv(index[position], repeats), *index[position + 1 :]),
    )


def _repeat_gradient(x: Value, out: Value, dout: Value, repeats: int, axis: int | None) -> Value:
    if axis is None:
        return dout.op("reshape", shape=(*x.shape, repeats)).op("sum", axis=-1)
    position = normalize_axis(axis, x.ndim)
    split = (*x.shape[: position + 1], repeats, *x.shape[position + 1 :])
    return dout.op("reshape", shape=split).op("sum", axis=position + 1)


@register_op(
    sizes=frozenset({"repeats"}),
    relation=Relation("T -> T", shape_rules.repeat),
    pattern=Pattern.INJECTIVE,
    compute=_repeat,
    gradient=_repeat_gradient,
    algebra=Algebra(linear=(0,)),
    batching=Batching(rule=batching.in_row(batching.by_axes("axis"))),
    sampler=cases(
        case((3,), repeats=2),
        case((2, 3), repeats=2),
        case((2, 3), repeats=3, axis=-1),
        case((2, 3), repeats=0, axis=0),
        case((), repeats=2),
    ),
)
def repeat(x: Tensor, repeats: int, axis: int | None = None) -> Tensor:
    """Each element repeated `repeats` times along an axis; all in one row if axis is None. x: (T, (*a, n, *b)) -> (T,
    (*a, n * repeats, *b)).

    >>> relay.repeat(np.int32([1, 2]), 2)
    Array([1, 1, 2, 2], dtype=int32)
    """
    return np.repeat(x, repeats, axis)


# ---- reshaping


def _flatten_gradient(x: Value, out: Value, dout: Value, start_axis: int, end_axis: int) -> Value:
    return dout.op("reshape", shape=x.shape)


def _flatten(x: Stage, start_axis: int, end_axis: int) -> Stage:
    rule = shape_rules.flatten
    return reshaped_stage(
        x, result_dims(lambda: map(constant_dim, rule(dims(x), start_axis=start_axis, end_axis=end_axis)))
    )


@register_op(
    relation=Relation("T -> T", shape_rules.flatten),
    pattern=Pattern.INJECTIVE,
    compute=_flatten,
    gradient=_flatten_gradient,
    algebra=Algebra(linear=(0,)),
    batching=Batching(rule=batching.batch_reshape),
    sampler=cases(case(()), case((2, 3, 4)), case((2, 3, 4), start_axis=1), case((2, 3, 4), end_axis=1), case((0, 3))),
)
def flatten(x: Tensor, start_axis: int = 0, end_axis: int = -1) -> Tensor:
    """The axes from one to another as one. x: (T, (*a, *b, *c)) -> (T, (*a, product(b), *c)).

    >>> relay.flatten(np.int32([[1, 2], [3, 4]]))
    Array([1, 2, 3, 4], dtype=int32)
    """
    return x.reshape(shape_rules.flatten(x.shape, start_axis=start_axis, end_axis=end_axis)).copy()  # type: ignore[arg-type]


def _reshape_codes(x: Stage, codes: tuple[int, ...]) -> Stage:
    return reshaped_stage(x, result_dims(lambda: map(constant_dim, shape_rules.reshape_codes(dims(x), codes=codes))))


@register_op(
    relation=Relation("T -> T", shape_rules.reshape_codes),
    pattern=Pattern.INJECTIVE,
    compute=_reshape_codes,
    gradient=lambda x, out, dout, codes: dout.op("reshape", shape=x.shape),
    algebra=Algebra(linear=(0,)),
    batching=Batching(rule=batching.batch_reshape),
    sampler=cases(
        case((2, 3, 4), codes=(4, 0, 2)),
        case((2, 3, 4), codes=(6, 1, -1)),
        case((2, 3, 4), codes=(-3, 0)),
        case((2, 3, 4), codes=(-2,)),
        case((2, 3, 4), codes=(0, -3)),
        case((2, 3, 4), codes=(-4, 1, 2, -2)),
        case((2, 3, 4), codes=(2, -4, -1, 3, -2)),
        case((0, 3), codes=(0, -2)),
    ),
)
def reshape_codes(x: Tensor, codes: tuple[int, ...]) -> Tensor:
    """The same elements in another shape, told by codes: a number is a dim, 0 keeps one, -1 is found, -2 keeps all that
    are left, -3 joins two, -4 splits one into the two numbers after it. x: (T, s) -> (T, the shape of the codes).

    >>> relay.reshape_codes(np.zeros((2, 3, 4)), (-3, -4, 2, -1)).shape
    (6, 2, 2)
    """
    return x.reshape(shape_rules.reshape_codes(x.shape, codes=codes)).copy()  # type: ignore[arg-type]


# ---- layouts


def _layout_transform(x: Stage, source: str, target: str) -> Stage:
    result = result_dims(lambda: map(constant_dim, shape_rules.layout_transform(dims(x), source=source, target=target)))
    before, after = shape_rules.axes_of(source), shape_rules.axes_of(target)
    blocks, new = dict(a for a in before if a[1]), dict(a for a in after if a[1])

    def element(*index: Element) -> Element:
        parts = dict(zip(((name, bool(size)) for name, size in after), index, strict=True))
        places = []
        for name, size in before:
            block, outer = blocks.get(name), parts[name, False]
            if block == new.get(name):
                places.append(parts[name, bool(size)])
                continue
            whole = outer if name not in new else outer * new[name] + parts[name, True]
            places.append(whole if block is None else (tirx.floormod if size else tirx.floordiv)(whole, block))
        return x(*places)

    return te.compute(result, element)


def _batched_layout(batch: Batch, x: Value, source: str, target: str) -> Value:
    """Batched transposition of a layout: a letter that is not used names the axis of the examples."""
    letter = next(c for c in string.ascii_uppercase if c not in source)
    return batch.call(x, source=letter + source, target=letter + target)


@register_op(
    relation=Relation("T -> T", shape_rules.layout_transform),
    layouts=shape_rules.transformed_layouts,
    pattern=Pattern.INJECTIVE,
    compute=_layout_transform,
    gradient=lambda x, out, dout, source, target: dout.op("layout_transform", source=target, target=source),
    algebra=Algebra(linear=(0,)),
    batching=Batching(rule=_batched_layout),
    sampler=cases(
        case((1, 2, 3, 4), source="NCHW", target="NHWC"),
        case((2, 8, 3), source="NCW", target="NCW4c"),
        case((2, 2, 3, 4), source="NCW4c", target="NWC2c"),
        case((2, 2, 3, 4), source="NCW4c", target="WNC"),
        case((4, 6), source="AB", target="AB2a3b"),
        case((0, 4), source="AB", target="BA2b"),
    ),
)
def layout_transform(x: Tensor, source: str, target: str) -> Tensor:
    """The same elements in another layout. A layout has a capital for each axis; a number and a letter is an axis of
    blocks of it, as in NCHW4c. x: (T, s) -> (T, s in the other layout).

    >>> relay.layout_transform(np.zeros((1, 8, 2, 3)), "NCHW", "NCHW4c").shape
    (1, 2, 2, 3, 4)
    """
    order, split, permutation, _ = shape_rules.layout_steps(x.shape, source, target)
    return np.transpose(np.reshape(np.transpose(x, order), numbers(split)), permutation).copy()


_BLOCKS = cases(case((1, 8, 2, 3), block=2), case((2, 4, 1, 1), block=2, mode="CRD"), case((0, 4, 1, 2), block=2))


@composite(sampler=_BLOCKS)
def depth_to_space(x: Tensor, block: int, mode: str = "DCR") -> Tensor:
    """Channels as blocks of the image. x: (T, (n, c, h, w)) -> (T, (n, c / block**2, h block, w block)); in mode "DCR"
    the block's axes are before the channels', in "CRD" after.

    >>> relay.depth_to_space(np.zeros((1, 8, 2, 3)), 2).shape
    (1, 2, 4, 6)
    """
    n, c, h, w = x.shape
    depth = c // (block * block)
    if mode == "DCR":
        parts = transpose(reshape(x, (n, block, block, depth, h, w)), (0, 3, 4, 1, 5, 2))
    else:
        assert mode == "CRD", "mode is 'DCR' or 'CRD'"
        parts = transpose(reshape(x, (n, depth, block, block, h, w)), (0, 1, 4, 2, 5, 3))
    return reshape(parts, (n, depth, h * block, w * block))


@composite(sampler=cases(case((1, 2, 4, 6), block=2), case((2, 1, 3, 3), block=3), case((0, 4, 2, 2), block=2)))
def space_to_depth(x: Tensor, block: int) -> Tensor:
    """Blocks of the image as channels: the inverse of `depth_to_space` with mode "DCR". x: (T, (n, c, h, w)) ->
    (T, (n, c block**2, h / block, w / block)).

    >>> relay.space_to_depth(np.zeros((1, 2, 4, 6)), 2).shape
    (1, 8, 2, 3)
    """
    n, c, h, w = x.shape
    parts = transpose(reshape(x, (n, c, h // block, block, w // block, block)), (0, 3, 5, 1, 2, 4))
    return reshape(parts, (n, c * block * block, h // block, w // block))


alias("ravel", "flatten")
