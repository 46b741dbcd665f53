"""The equations of operators that arrange elements, and of reductions along axes that hold copies of one element.

They belong to the table in `relay.ops.rewrites.equations`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

# They register the operators that the table is about.
import relay.ops.indexing.updates
import relay.ops.reduction.reductions
import relay.ops.shape.reshaping
import relay.ops.shape.slicing  # noqa: F401
from relay.ir import dims
from relay.ir.types import BaseClass
from relay.operator.rewriting import Exactness, ProducerLookup, equation
from relay.ops.notation import Value, is_integer
from relay.typecheck import relations
from relay.typecheck.dims import normalize_axes


@equation("transpose", "transpose(transpose(x)) = transpose(x), or x")
def _(made_by: ProducerLookup, x: Value, axes: Sequence[int] | None) -> Value | None:
    order = relations.permutation(axes, x.ndim)
    inner = made_by(x, "transpose")
    if inner is not None:
        first = relations.permutation(inner.attributes["axes"], x.ndim)
        (x,), order = inner.operands, tuple(first[axis] for axis in order)
    elif list(order) != sorted(order):
        return None
    return x if list(order) == sorted(order) else x.op("transpose", axes=tuple(order))


def _source(made_by: ProducerLookup, x: Value) -> Value | None:
    """A value with the same elements in the same order."""
    for name in ("reshape", "expand_dims", "squeeze"):
        inner = made_by(x, name)
        if inner is not None:
            return inner.operands[0]
    return None


@equation("reshape", "reshape(reshape(x)) = reshape(x)")
def _(made_by: ProducerLookup, x: Value, shape: Sequence[int]) -> Value | None:
    source = _source(made_by, x)
    if source is None:
        return None
    wanted = relations.reshape(x.shape, shape=shape)
    return source if source.shape == wanted else source.op("reshape", shape=wanted)


@equation("expand_dims", "expand_dims(reshape(x)) = x, if it has the shape")
def _(made_by: ProducerLookup, x: Value, axis: int | tuple[int, ...]) -> Value | None:
    source = _source(made_by, x)
    return source if source is not None and source.shape == relations.expand_dims(x.shape, axis=axis) else None


@equation("squeeze", "squeeze(reshape(x)) = x, if it has the shape")
def _(made_by: ProducerLookup, x: Value, axis: Any) -> Value | None:
    source = _source(made_by, x)
    return source if source is not None and source.shape == relations.squeeze(x.shape, axis=axis) else None


@equation("concatenate", "concatenate(x) = x")
def _(made_by: ProducerLookup, tensors: tuple[Value, ...], axis: int) -> Value | None:
    return tensors[0] if len(tensors) == 1 else None


@equation("strided_slice", "x[:] = x, and a part of a concatenation is that part")
def _(
    made_by: ProducerLookup, x: Value, begin: Sequence[int], end: Sequence[int], strides: Sequence[int]
) -> Value | None:
    if any(s != 1 for s in strides):
        return None
    cut = [i for i, (b, e, n) in enumerate(zip(begin, end, x.shape, strict=True)) if (b, e) != (0, n)]
    if not cut:
        return x
    joined = made_by(x, "concatenate")
    if joined is None or len(cut) != 1 or joined.attributes["axis"] % x.ndim != cut[0]:
        return None
    place = 0
    for part in joined.operands:
        extent = part.shape[cut[0]]
        if not isinstance(extent, int):
            return None
        if (begin[cut[0]], end[cut[0]]) == (place, place + extent):
            return part
        place += extent
    return None


@equation("strided_slice", "x[a:b][c:d] = x[a + c:a + d]")
def _(
    made_by: ProducerLookup, x: Value, begin: Sequence[int], end: Sequence[int], strides: Sequence[int]
) -> Value | None:
    inner = made_by(x, "strided_slice")
    if inner is None or any(s != 1 for s in inner.attributes["strides"]) or any(s < 1 for s in strides):
        return None
    return inner.operands[0].op("strided_slice", **_shifted(begin, end, strides, inner.attributes["begin"]))


@equation("place_slice", "zeros with x at a slice, at a slice of zeros, are zeros with x at that slice's slice")
def _(
    made_by: ProducerLookup, x: Value, shape: Sequence[int], begin: Sequence[int], end: Sequence[int], strides: Any
) -> Value | None:
    inner = made_by(x, "place_slice")
    if inner is None or any(s != 1 for s in strides) or any(s < 1 for s in inner.attributes["strides"]):
        return None
    (part,), found = inner.operands, inner.attributes
    return part.op("place_slice", shape=shape, **_shifted(found["begin"], found["end"], found["strides"], begin))


@equation("add_slice", "what is added at a slice of zeros is added at that slice's slice")
def _(
    made_by: ProducerLookup, x: Value, new: Value, begin: Sequence[int], end: Sequence[int], strides: Sequence[int]
) -> Value | None:
    inner = made_by(new, "place_slice")
    if inner is None or any(s != 1 for s in strides) or any(s < 1 for s in inner.attributes["strides"]):
        return None
    (part,), found = inner.operands, inner.attributes
    return x.op("add_slice", part, **_shifted(found["begin"], found["end"], found["strides"], begin))


def _shifted(begin: Sequence[Any], end: Sequence[Any], strides: Sequence[Any], by: Sequence[Any]) -> dict[str, Any]:
    """The bounds of a slice of the slice that begins `by` later."""
    return {
        "begin": tuple(map(dims.add, begin, by)),
        "end": tuple(map(dims.add, end, by)),
        "strides": tuple(strides),
    }


@equation("index", "index_update(x, i, y)[i] = y")
def _(made_by: ProducerLookup, x: Value, index: Value) -> Value | None:
    updated = made_by(x, "index_update")
    return updated.operands[2] if updated is not None and updated.operands[1].atom is index.atom else None


# ---- reductions along axes that hold copies

Reduce = Callable[[Value, tuple[int, ...], int], "Value | None"]
"""Gets a tensor that has its elements without their copies, the other axes along which it is reduced, and the number
of copies. The result keeps all axes."""


def _source_of_copies(made_by: ProducerLookup, x: Value) -> tuple[Value, tuple[Any, ...], list[Any]]:
    """The value that x has the elements of, its extents with those of the axes in front, and how many copies of them
    follow each other along each axis of x."""
    tiled = made_by(x, "tile")
    if tiled is not None:
        (source,), reps = tiled.operands, tiled.attributes["reps"]
        reps = (reps,) if isinstance(reps, int) else tuple(reps)
        return source, (*(1,) * (x.ndim - source.ndim), *source.shape), [*(1,) * (x.ndim - len(reps)), *reps]
    copied = made_by(x, "broadcast_to")
    source = x if copied is None else copied.operands[0]
    extents = (*(1,) * (x.ndim - source.ndim), *source.shape)
    return source, extents, [n if extent == 1 else 1 for n, extent in zip(x.shape, extents, strict=True)]


def _of_copies(made_by: ProducerLookup, x: Value, axis: Any, keepdims: bool, reduce: Reduce) -> Value | None:
    """A reduction of x along axes of which some hold one element, or copies of one or of several."""
    source, extents, copies = _source_of_copies(made_by, x)
    axes = normalize_axes(axis, x.ndim)
    if any(copies[i] != 1 for i in range(x.ndim) if i not in axes and extents[i] != 1):
        return None  # copies that are not reduced
    counts = [copies[i] for i in axes if extents[i] == 1 or copies[i] != 1]
    numbers = [n for n in counts if isinstance(n, int) and n > 0]
    if not counts or len(numbers) < len(counts):
        return None
    aligned = source if source.shape == extents else source.op("reshape", shape=extents)
    result = reduce(aligned, tuple(i for i in axes if extents[i] != 1), math.prod(numbers))
    if result is None:
        return None
    whole = relations.reduce(x.shape, axis=axes, keepdims=True)
    wanted = relations.reduce(x.shape, axis=axes, keepdims=keepdims)
    result = result if result.shape == whole else result.op("broadcast_to", shape=whole)
    return result if result.shape == wanted else result.op("reshape", shape=wanted)


def _reduce_axes(name: str, x: Value, axes: tuple[int, ...]) -> Value:
    return x.op(name, axis=axes, keepdims=True) if axes else x


def _selection_rules(name: str) -> None:
    @equation(name, f"{name} of copies of x = {name}(x)")
    def _(made_by: ProducerLookup, x: Value, axis: Any, keepdims: bool) -> Value | None:
        return _of_copies(made_by, x, axis, keepdims, lambda source, rest, _: _reduce_axes(name, source, rest))


_selection_rules("max")
_selection_rules("min")


def _addition_rules(name: str, text: str, exactness: Exactness) -> None:
    def reduce_copies(x: Value, rest: tuple[int, ...], copies: int) -> Value | None:
        whole = is_integer(x.base)
        factor = np.asarray(copies if name == "sum" else 1).astype(x.base.dtype)  # integers wrap, as sums of them do
        if (copies == 1 or whole) != (exactness is Exactness.EXACT) or not (whole or factor in (1, copies)):
            return None
        total = _reduce_axes(name, x, rest)
        if copies != 1 and name == "sum":
            total = total * x.emitter.constant(factor, x.base)
        return total if rest or whole else total + 0.0  # sums of -0.0 are 0.0

    @equation(name, text, exactness)
    def _(made_by: ProducerLookup, x: Value, axis: Any, keepdims: bool) -> Value | None:
        return None if x.base.base_class is BaseClass.BOOL else _of_copies(made_by, x, axis, keepdims, reduce_copies)


_addition_rules("sum", "sum of n copies of x = n sum(x), for integers, and for one element", Exactness.EXACT)
_addition_rules("sum", "sum of n copies of x = n sum(x)", Exactness.ROUNDING)
_addition_rules("mean", "mean(x) = x, for one element", Exactness.EXACT)
_addition_rules("mean", "mean of copies of x = mean(x)", Exactness.ROUNDING)
