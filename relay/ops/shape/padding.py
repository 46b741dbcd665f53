"""Padding: with a number, with the edge, or with the reflection at the edge."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from relay.ir import dims as arithmetic
from relay.ops.notation import (
    Batch,
    Batching,
    Element,
    Pattern,
    Relation,
    Stage,
    Tensor,
    Value,
    dims,
    index_base,
    integer_range,
    register_op,
    result_dims,
)
from relay.ops.samples import case, cases
from relay.ops.tir import scalar, stages
from relay.ops.tir.tvm_modules import te, tirx
from relay.typecheck import shape_rules
from relay.typecheck.dims import constant_dim
from relay.typecheck.shape_rules import Widths


def _pad(x: Stage, widths: Widths, mode: str, value: float) -> Stage:
    shape = dims(x)
    pairs = shape_rules.pad_widths(len(shape), widths)
    result = result_dims(lambda: map(constant_dim, shape_rules.pad(shape, widths=widths, mode=mode, value=value)))
    if 0 in shape:
        return stages.full(result, value, str(x.dtype))

    def element(*index: Element) -> Element:
        places = [i - before for i, (before, _) in zip(index, pairs, strict=True)]
        if mode != "constant":
            inside = _edge if mode == "edge" else _reflect_index
            return x(
                *(inside(p, dim) if _adds(*pair) else p for p, dim, pair in zip(places, shape, pairs, strict=True))
            )
        within: Element = tirx.const(True, "bool")
        for place, dim, (before, after) in zip(places, shape, pairs, strict=True):
            if _adds(before):
                within = tirx.all(within, place >= 0)
            if _adds(after):
                within = tirx.all(within, place < dim)
        return scalar.guarded_select(within, x(*places), scalar.number(value, str(x.dtype)))

    return te.compute(result, element)


def _adds(*widths: Any) -> bool:
    """True if any of these numbers of elements may be more than 0."""
    return any(not isinstance(width, int) or width > 0 for width in widths)


def _edge(place: Element, extent: int) -> Element:
    return tirx.min(tirx.max(place, 0), extent - 1)


def _reflect_index(place: Element, extent: int) -> Element:
    """The reflections at both edges repeat with the period 2 (extent - 1)."""
    if isinstance(extent, int) and extent == 1:
        return 0
    period = 2 * (extent - 1)
    folded = tirx.floormod(place, period)
    return tirx.min(folded, period - folded)


_SOURCES: dict[str, Callable[[np.ndarray, int], np.ndarray]] = {
    "edge": lambda places, extent: np.clip(places, 0, extent - 1),
    "reflect": lambda places, extent: np.abs((places + extent - 1) % max(2 * (extent - 1), 1) - (extent - 1)),
}
"""The index of the element that stands at each place from -before to extent + after - 1."""


def _pad_gradient(x: Value, out: Value, dout: Value, widths: Widths, mode: str, value: float) -> Value:
    pairs = shape_rules.pad_widths(x.ndim, widths)
    if mode == "constant":
        begin = tuple(before for before, _ in pairs)
        end = tuple(arithmetic.add(before, dim) for (before, _), dim in zip(pairs, x.shape, strict=True))
        return dout.op("strided_slice", begin=begin, end=end, strides=(1,) * x.ndim)
    result = dout
    for axis, ((before, after), dim) in enumerate(zip(pairs, x.shape, strict=True)):
        if _adds(before, after):
            first, beyond = arithmetic.subtract(0, before), arithmetic.add(dim, after)
            base = index_base(arithmetic.multiply(2, arithmetic.add(beyond, dim)))  # what reflection adds and doubles
            places = integer_range(result.emitter, first, beyond, base)
            sources = _source(mode, places, result.emitter.number(dim, base) - 1)
            shape = (*result.shape[:axis], dim, *result.shape[axis + 1 :])
            zeros = result.emitter.constant(0, result.base).op("broadcast_to", shape=shape)
            result = zeros.op("scatter_add", sources, result, axis=axis)
    return result


def _source(mode: str, place: Value, last: Value) -> Value:
    """`_SOURCES` on symbolic values, where `last` is the extent less 1."""
    if mode == "edge":
        return place.op("maximum", 0).op("minimum", last)
    return ((place + last) % (last * 2).op("maximum", 1) - last).op("abs")


def _batched_pad(batch: Batch, x: Value, widths: Widths, **attributes: Any) -> Value:
    return batch.call(x, widths=((0, 0), *shape_rules.pad_widths(batch.rank(), widths)), **attributes)


@register_op(
    sizes=frozenset({"widths"}),
    relation=Relation("T:number -> T", shape_rules.pad),
    pattern=Pattern.INJECTIVE,
    compute=_pad,
    gradient=_pad_gradient,
    batching=Batching(rule=_batched_pad),
    sampler=cases(
        case((3,), widths=2),
        case((2, 3), widths=(1, 0), value=1),
        case((2, 3), widths=((0, 2), (1, 0))),
        case((0, 3), widths=((1, 1), (0, 0)), value=2),
        case((), widths=()),
        case((3,), widths=2, mode="edge"),
        case((2, 3), widths=((5, 3), (0, 1)), mode="edge"),
        case((4,), widths=(3, 2), mode="reflect"),
        case((2, 3), widths=((4, 3), (1, 7)), mode="reflect"),
        case((1, 3), widths=((2, 1), (0, 0)), mode="reflect"),
    ),
)
def pad(x: Tensor, widths: Widths, mode: str = "constant", value: float = 0) -> Tensor:
    """x with elements added before and after: `widths` has (before, after) for each axis, or one for all. They are
    `value`, the last element of that side (mode="edge"), or the reflection there (mode="reflect"). x: (T, s) ->
    (T, s plus the widths).

    >>> relay.pad(np.int32([1, 2, 3]), (2, 1), mode="reflect")
    Array([3, 2, 1, 2, 3, 2], dtype=int32)
    """
    pairs = shape_rules.pad_widths(x.ndim, widths)
    if mode == "constant":
        return np.pad(x, pairs, constant_values=value) if pairs else x.copy()
    result = x
    for axis, (before, after) in enumerate(pairs):
        if before or after:
            places = np.arange(-before, x.shape[axis] + after)
            result = np.take(result, _SOURCES[mode](places, x.shape[axis]), axis)
    return np.array(result)
