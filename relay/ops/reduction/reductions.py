"""Reductions along axes. `axis` is None (all), a number or a tuple; `keepdims` leaves the axes with extent 1."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from relay.errors import ShapeError
from relay.ir.dims import ANY, LARGEST_SIZE, Dim, maximum, product, subtract
from relay.ir.sizes.facts import facts
from relay.ir.types import BOOL, Shape, TensorType, Type
from relay.operator.axes import carries
from relay.operator.relation import infer_relation, of_numbers
from relay.ops import batching
from relay.ops.notation import (
    Algebra,
    Batching,
    Element,
    Indexing,
    Pattern,
    Relation,
    Stage,
    Tensor,
    Value,
    cast_like,
    dims,
    number_or_size,
    register_op,
    result_dims,
    result_dtype,
    widened_value,
)
from relay.ops.samples import case, cases
from relay.ops.shape.reshaping import accumulator, concatenate
from relay.ops.tir import scalar, stages
from relay.ops.tir.tvm_modules import te, tirx
from relay.typecheck import axes as names
from relay.typecheck import relations
from relay.typecheck.dims import constant_dim, follows_at_least, normalize_axes
from relay.typecheck.guards import fits_int32
from relay.typecheck.unification import is_known

Axes = int | tuple[int, ...] | None

_NONEMPTY = (
    case(()),
    case((1,)),
    case((2, 3)),
    case((2, 3), axis=0),
    case((2, 3), axis=-1, keepdims=True),
    case((2, 3, 4), axis=(0, 2)),
    case((2, 1, 3), axis=1),
    case((3, 0), axis=0),
)
_EMPTY = (case((0,)), case((0, 3), axis=0), case((3, 0), axis=1, keepdims=True), case((2, 3), axis=()))


def _kept_shape(x: Value, axis: Axes) -> Shape:
    return relations.reduce(x.shape, axis=axis, keepdims=True)


def restore_axes(value: Value, x: Value, axis: Axes) -> Value:
    """A result of a reduction of x, with the axes that it lost."""
    shape = _kept_shape(x, axis)
    return value if value.shape == shape else value.op("reshape", shape=shape)


def _count(x: Value, axis: Axes) -> Dim:
    return product(x.shape[i] for i in normalize_axes(axis, x.ndim))


# ---- sums


def _index_base(x: Type, axis: Axes) -> str:
    """The dtype that counts the elements along axes, or is the index of one: int64 if int32 does not hold it."""
    if not isinstance(x, TensorType) or not is_known(x.shape) or ANY in x.shape:
        return "int32"
    count = product(x.shape[i] for i in normalize_axes(axis, len(x.shape)))
    return "int32" if fits_int32(facts(), count) else "int64"


def _index_dtype(x: Tensor, axis: Axes) -> np.dtype[Any]:
    """The same of an array."""
    count = math.prod(x.shape[i] for i in normalize_axes(axis, x.ndim))
    return np.dtype(np.int32 if count <= LARGEST_SIZE else np.int64)


_SUM_OF_NUMBERS = Relation("T:number -> T", relations.reduce)


@of_numbers(_SUM_OF_NUMBERS)
@carries(names.reduced_names)
def _sum_type(x: Type, axis: Axes, keepdims: bool) -> TensorType:
    """As the relation `T:number -> T`, but the sum of bools counts in int32, or int64 where there are that many."""
    of_bools = isinstance(x, TensorType) and x.base == BOOL
    relation = Relation(f"bool -> {_index_base(x, axis)}", relations.reduce) if of_bools else _SUM_OF_NUMBERS
    return infer_relation("sum", relation, False, (x,), {"axis": axis, "keepdims": keepdims})


def _sum(x: Stage, axis: Axes, keepdims: bool) -> Stage:
    def element(e: Element) -> Element:
        return tirx.Cast(result_dtype("int32"), e) if scalar.dtype_of(e) == "bool" else e

    return stages.total(x, normalize_axes(axis, len(dims(x))), keepdims, element)


def _sum_gradient(x: Value, out: Value, dout: Value, axis: Axes, keepdims: bool) -> Value:
    return restore_axes(dout, x, axis).op("broadcast_to", shape=x.shape)


@register_op(
    name="sum",
    relation=_sum_type,
    pattern=Pattern.REDUCTION,
    indexing=Indexing(reduction_axes="axis"),
    compute=_sum,
    gradient=_sum_gradient,
    algebra=Algebra(linear=(0,)),
    sampler=cases(*_NONEMPTY, *_EMPTY),
)
def sum_(x: Tensor, axis: int | tuple[int, ...] | None = None, keepdims: bool = False) -> Tensor:
    """The sum along axes; 0 over no elements; bools are counted in int32, or in int64 if there may be
    more than 2**31 - 1. x: (T, s) -> (T, s without the axes).

    >>> relay.sum(np.float32([[1, 2], [3, 4]]), axis=0)
    Array([4., 6.], dtype=float32)
    """
    dtype = _index_dtype(x, axis) if x.dtype == np.bool_ else x.dtype
    return np.asarray(np.sum(x, axis=axis, keepdims=keepdims, dtype=accumulator(dtype)), dtype)


def _mean(x: Stage, axis: Axes, keepdims: bool) -> Stage:
    axes = normalize_axes(axis, len(dims(x)))
    count = math.prod(dims(x)[i] for i in axes)
    dtype = str(x.dtype)
    wide_dtype = "float32" if dtype in ("float16", "bfloat16") else dtype  # the sum and the count may be too large
    total = stages.total(x, axes, keepdims, lambda e: scalar.cast(e, wide_dtype))
    if count == 0:
        return stages.full(dims(total), math.nan, dtype)

    def element(*index: Element) -> Element:
        return scalar.cast(total(*index) / number_or_size(count, wide_dtype), dtype)

    return te.compute(dims(total), element)


def _mean_gradient(x: Value, out: Value, dout: Value, axis: Axes, keepdims: bool) -> Value:
    count = _count(x, axis)
    share = widened_value(restore_axes(dout, x, axis)) / (count if follows_at_least(count, 1) else maximum(count, 1))
    return cast_like(share, x).op("broadcast_to", shape=x.shape)


@register_op(
    relation=Relation("T:float -> T", relations.reduce),
    pattern=Pattern.REDUCTION,
    indexing=Indexing(reduction_axes="axis"),
    compute=_mean,
    gradient=_mean_gradient,
    algebra=Algebra(linear=(0,)),
    sampler=cases(*_NONEMPTY, *_EMPTY),
)
def mean(x: Tensor, axis: int | tuple[int, ...] | None = None, keepdims: bool = False) -> Tensor:
    """The sum along axes divided by the number of elements; NaN over none. float16 and bfloat16 are summed and divided
    in float32. x: (T float, s) -> (T, s without the axes).

    >>> relay.mean(np.float32([[1, 2], [3, 4]]), axis=0)
    Array([2., 3.], dtype=float32)
    """
    total = np.asarray(np.sum(x, axis=axis, keepdims=keepdims, dtype=accumulator(x.dtype)))
    count = math.prod(x.shape[i] for i in normalize_axes(axis, x.ndim))
    return np.asarray(np.divide(total, np.asarray(count, total.dtype)), x.dtype)


# ---- products


def _prod(x: Stage, axis: Axes, keepdims: bool) -> Stage:
    return stages.reduction(scalar.multiply, 1, x, normalize_axes(axis, len(dims(x))), keepdims)


def _columns(rows: Value, begin: Dim, end: Dim) -> Value:
    height = rows.shape[0]
    return rows.op("strided_slice", begin=(0, begin), end=(height, end), strides=(1, 1))


def _prod_gradient(x: Value, out: Value, dout: Value, axis: Axes, keepdims: bool) -> Value:
    """The product of the other elements, without dividing, so that it is right at zeros and in higher derivatives."""
    axes = normalize_axes(axis, x.ndim)
    order = (*(i for i in range(x.ndim) if i not in axes), *axes)
    width, height = _count(x, axis), product(x.shape[i] for i in range(x.ndim) if i not in axes)
    if width == 0 or height == 0:
        return x.op("zeros_like")
    rows = x.op("transpose", axes=order).op("reshape", shape=(height, width))
    cotangent = dout.op("reshape", shape=(height, 1))
    cotangent = _by_halves(rows, cotangent, width) if isinstance(width, int) else _by_running(rows, cotangent)
    shaped = cotangent.op("reshape", shape=tuple(x.shape[i] for i in order))
    return shaped.op("transpose", axes=tuple(order.index(i) for i in range(x.ndim)))


def _by_running(rows: Value, cotangent: Value) -> Value:
    """The gradient for rows whose length is known only at run time: by the running products before and behind each
    element."""
    height, width = rows.shape
    one = rows.emitter.constant(1, rows.base).op("broadcast_to", shape=(height, 1))
    before = _columns(rows.op("cumprod", axis=1), 0, subtract(width, 1))
    behind = _columns(rows.op("cumprod", axis=1, reverse=True), 1, width)
    return cotangent * (concatenate((one, before), axis=1) * concatenate((behind, one), axis=1))


def _by_halves(rows: Value, cotangent: Value, columns: int) -> Value:
    """The product is redone as a tree in which each level multiplies the left half by the right half; from the root
    back, each half's cotangent is the pair's times the other half."""
    levels = []
    while columns > 1:
        half = columns // 2
        left, right = _columns(rows, 0, half), _columns(rows, half, 2 * half)
        levels.append((left, right))
        rows = concatenate((left * right, _columns(rows, 2 * half, columns)), axis=1)
        columns -= half
    for left, right in reversed(levels):
        middle = left.shape[1]
        pairs, rest = _columns(cotangent, 0, middle), _columns(cotangent, middle, cotangent.shape[1])
        cotangent = concatenate((pairs * right, pairs * left, rest), axis=1)
    return cotangent


@register_op(
    relation=Relation("T:number -> T", relations.reduce),
    pattern=Pattern.REDUCTION,
    indexing=Indexing(reduction_axes="axis"),
    compute=_prod,
    gradient=_prod_gradient,
    sampler=cases(*_NONEMPTY, *_EMPTY, case((7,)), case(np.array([2.0, 0.0, 3.0])), case(np.array([0.0, 0.0, 3.0]))),
)
def prod(x: Tensor, axis: int | tuple[int, ...] | None = None, keepdims: bool = False) -> Tensor:
    """The product along axes; 1 over no elements; integers wrap. x: (T, s) -> (T, s without the axes).

    >>> relay.prod(np.float32([[1, 2], [3, 4]]), axis=1)
    Array([ 2., 12.], dtype=float32)
    """
    return np.asarray(np.prod(x, axis=axis, keepdims=keepdims, dtype=accumulator(x.dtype)), x.dtype)


# ---- extrema


def _extremum(reduce: Callable[..., Stage]) -> Callable[..., Stage]:
    return lambda x, axis, keepdims: reduce(x, normalize_axes(axis, len(dims(x))), keepdims)


def _extremum_gradient(x: Value, out: Value, dout: Value, axis: Axes, keepdims: bool) -> Value:
    """The cotangent goes in equal shares to the elements that are the extremum."""
    winners = (x == restore_axes(out, x, axis)).op("cast", dtype=x.base)
    shares = restore_axes(dout, x, axis) / winners.op("sum", axis=axis, keepdims=True)
    return winners * shares


def _lowest_number(dtype: np.dtype[Any]) -> Any:
    return np.iinfo(dtype).min if dtype.kind in "iu" else np.asarray(-math.inf, dtype)


def _highest_number(dtype: np.dtype[Any]) -> Any:
    return np.iinfo(dtype).max if dtype.kind in "iu" else np.asarray(math.inf, dtype)


@register_op(
    name="max",
    relation=Relation("T:number -> T", relations.reduce_nonempty),
    pattern=Pattern.REDUCTION,
    indexing=Indexing(reduction_axes="axis"),
    algebra=Algebra(of_booleans="booleans"),
    compute=_extremum(stages.maximum_along),
    gradient=_extremum_gradient,
    sampler=cases(
        *_NONEMPTY,
        case((2, 3), axis=()),
        case((0, 3), axis=1),
        case(np.array([1, np.nan, 3], np.float32)),
        case(np.array([-np.inf, -np.inf], np.float32)),
    ),
)
def max_(x: Tensor, axis: int | tuple[int, ...] | None = None, keepdims: bool = False) -> Tensor:
    """The largest element along axes, which must not be empty; NaN if there is one; ties share the gradient
    evenly. x: (T, s) -> (T, s without the axes).

    >>> relay.max(np.float32([[1, 2], [4, 3]]), axis=1)
    Array([2., 4.], dtype=float32)
    """
    return np.asarray(np.max(x, axis=axis, keepdims=keepdims, initial=_lowest_number(x.dtype)))


@register_op(
    name="min",
    relation=Relation("T:number -> T", relations.reduce_nonempty),
    pattern=Pattern.REDUCTION,
    indexing=Indexing(reduction_axes="axis"),
    algebra=Algebra(of_booleans="booleans"),
    compute=_extremum(stages.minimum_along),
    gradient=_extremum_gradient,
    sampler=cases(
        *_NONEMPTY,
        case((2, 3), axis=()),
        case((0, 3), axis=1),
        case(np.array([1, np.nan, 3], np.float32)),
        case(np.array([np.inf, np.inf], np.float32)),
    ),
)
def min_(x: Tensor, axis: int | tuple[int, ...] | None = None, keepdims: bool = False) -> Tensor:
    """The smallest element along axes, which must not be empty; NaN if there is one; ties share the gradient
    evenly. x: (T, s) -> (T, s without the axes).

    >>> relay.min(np.float32([[1, 2], [4, 3]]), axis=1)
    Array([1., 3.], dtype=float32)
    """
    return np.asarray(np.min(x, axis=axis, keepdims=keepdims, initial=_highest_number(x.dtype)))


_ARG_CASES = cases(
    case(()),
    case((1,)),
    case((2, 3)),
    case((2, 3), axis=0),
    case((2, 3, 4), axis=-2, keepdims=True),
    case((2, 3), keepdims=True),
    case((0, 3), axis=1),
    case(np.array([1, 3, 3, 1, 1], np.int32)),
    case(np.array([1, np.nan, 3, np.nan], np.float32)),
    case(np.array([-np.inf, -np.inf], np.float32)),
    case(np.array([np.inf, np.inf], np.float32)),
    case(np.array([1, 3, 3, 1, 1], np.int32), ties="last"),
    case(np.array([[1, 1, 3], [3, 1, 3]], np.int32), ties="last"),
    case(np.array([[1, 1, 3], [3, 1, 3]], np.int32), axis=1, keepdims=True, ties="last"),
    case(np.array([1, np.nan, 3, np.nan, 2], np.float32), ties="last"),
)


def _arg_shape(shape: Shape, *, axis: int | None, keepdims: bool, ties: str) -> Shape:
    if ties not in ("first", "last"):
        raise ShapeError(f"ties must be 'first' or 'last', found {ties!r}")
    return relations.arg_reduce(shape, axis=axis, keepdims=keepdims)


_ARG = {base: Relation(f"T:number -> {base}", _arg_shape) for base in ("int32", "int64")}


@of_numbers(_ARG["int32"])
@carries(names.reduced_names)
def _argmax_type(x: Type, axis: int | None, keepdims: bool, ties: str) -> TensorType:
    attributes = {"axis": axis, "keepdims": keepdims, "ties": ties}
    return infer_relation("argmax", _ARG[_index_base(x, axis)], False, (x,), attributes)


@of_numbers(_ARG["int32"])
@carries(names.reduced_names)
def _argmin_type(x: Type, axis: int | None, keepdims: bool, ties: str) -> TensorType:
    attributes = {"axis": axis, "keepdims": keepdims, "ties": ties}
    return infer_relation("argmin", _ARG[_index_base(x, axis)], False, (x,), attributes)


def _arg_extremum(better: str, identity: Callable[[str], float]) -> Callable[..., Stage]:
    """The index of the first or last element that no other is better than; of NaN if there is one."""

    def combine(left: tuple[Element, Element], right: tuple[Element, Element]) -> tuple[Element, Element]:
        (i, x), (j, y) = left, right
        wins = tirx.Or(getattr(tirx, better)(x, y), tirx.And(scalar.is_nan(x), tirx.Not(scalar.is_nan(y))))
        tie = tirx.Or(tirx.EQ(x, y), tirx.And(scalar.is_nan(x), scalar.is_nan(y)))
        not_worse = tirx.Or(getattr(tirx, better.replace("T", "E"))(x, y), scalar.is_nan(x))
        # where the right one is known to be behind the left one, schedules take the shorter condition
        left_wins = tirx.Select(tirx.LT(i, j), not_worse, tirx.Or(wins, tirx.And(tie, tirx.LT(i, j))))
        return scalar.select(left_wins, i, j), scalar.select(left_wins, x, y)

    def compute(x: Stage, axis: int | None, keepdims: bool, ties: str) -> Stage:
        shape, dtype = dims(x), str(x.dtype)
        axes = normalize_axes(axis, len(shape))
        kept = result_dims(lambda: map(constant_dim, relations.reduce(shape, axis=axis, keepdims=keepdims)))
        if not axes:
            return stages.full(kept, 0, result_dtype("int32"))
        place = result_dtype("int32")
        wide = "float32" if dtype == "bfloat16" else dtype  # which TVM compares wrongly
        reducer = te.comm_reducer(
            # where no element is better than the identity, the first one is the answer
            combine,
            lambda of_index, of_value: (tirx.const(0, of_index), tirx.const(identity(wide), of_value)),
        )
        steps = [te.reduce_axis((0, shape[i])) for i in axes]

        def element(*index: Element) -> Any:
            rest = iter(index)
            places = [
                steps[axes.index(i)] if i in axes else (index[i] if keepdims else next(rest)) for i in range(len(shape))
            ]
            position = number_or_size(steps[0].var, place)
            for i, step in zip(axes[1:], steps[1:], strict=True):
                position = position * number_or_size(shape[i], place) + number_or_size(step.var, place)
            if ties == "last":  # the first one in the other direction
                for i in axes:
                    places[i] = shape[i] - 1 - places[i]
            return reducer((position, scalar.cast(x(*places), wide)), axis=steps)

        indices, _values = te.compute(kept, element)
        if ties == "first":
            return te.compute(kept, lambda *index: indices(*index))
        last = number_or_size(math.prod(shape[i] for i in axes), place) - tirx.const(1, place)
        return te.compute(kept, lambda *index: last - indices(*index))

    return compute


def _numpy_arg_extremum(function: Callable[..., Any], x: Tensor, axis: int | None, keepdims: bool, ties: str) -> Tensor:
    if ties == "first":
        return np.asarray(function(x, axis=axis, keepdims=keepdims), _index_dtype(x, axis))
    count = x.size if axis is None else x.shape[axis]
    return np.asarray(count - 1 - function(np.flip(x, axis), axis=axis, keepdims=keepdims), _index_dtype(x, axis))


@register_op(
    relation=_argmax_type,
    pattern=Pattern.OPAQUE,
    algebra=Algebra(of_booleans="integers"),
    compute=_arg_extremum("GT", stages.lowest_number),
    no_gradient="the result is an index",
    batching=Batching(rule=batching.in_row(batching.by_axes("axis"))),
    sampler=_ARG_CASES,
)
def argmax(x: Tensor, axis: int | None = None, keepdims: bool = False, ties: str = "first") -> Tensor:
    """The index of the largest element along an axis, or in all elements in order, NaN before all; of equal ones the
    first, or the last with ties="last"; int64 if there are more than 2**31 - 1. x: (T, s) -> (int32, s without the
    axis).

    >>> relay.argmax(np.float32([[1, 2], [4, 3]]), axis=1)
    Array([1, 0], dtype=int32)
    """
    return _numpy_arg_extremum(np.argmax, x, axis, keepdims, ties)


@register_op(
    relation=_argmin_type,
    pattern=Pattern.OPAQUE,
    algebra=Algebra(of_booleans="integers"),
    compute=_arg_extremum("LT", stages.highest_number),
    no_gradient="the result is an index",
    batching=Batching(rule=batching.in_row(batching.by_axes("axis"))),
    sampler=_ARG_CASES,
)
def argmin(x: Tensor, axis: int | None = None, keepdims: bool = False, ties: str = "first") -> Tensor:
    """The index of the smallest element along an axis, or in all elements in order, NaN before all; of equal ones the
    first, or the last with ties="last"; int64 if there are more than 2**31 - 1. x: (T, s) -> (int32, s without the
    axis).

    >>> relay.argmin(np.float32([[1, 2], [4, 3]]), axis=1)
    Array([0, 1], dtype=int32)
    """
    return _numpy_arg_extremum(np.argmin, x, axis, keepdims, ties)


# ---- truth


def _truth_stage(combine: str, identity: bool) -> Callable[..., Stage]:
    def compute(x: Stage, axis: Axes, keepdims: bool) -> Stage:
        axes = normalize_axes(axis, len(dims(x)))
        return stages.reduction(lambda a, b: getattr(tirx, combine)(a, b), identity, x, axes, keepdims)

    return compute


@register_op(
    name="any",
    relation=Relation("bool -> bool", relations.reduce),
    pattern=Pattern.REDUCTION,
    indexing=Indexing(reduction_axes="axis"),
    compute=_truth_stage("Or", False),
    no_gradient="the result is a boolean",
    sampler=cases(*_NONEMPTY, *_EMPTY),
)
def any_(x: Tensor, axis: int | tuple[int, ...] | None = None, keepdims: bool = False) -> Tensor:
    """True where at least one element is true along axes; false over none. x: (bool, s) -> (bool, s without the axes).

    >>> relay.any(np.array([[True, False], [False, False]]), axis=1)
    Array([ True, False], dtype=bool)
    """
    return np.asarray(np.any(x, axis=axis, keepdims=keepdims))


@register_op(
    name="all",
    relation=Relation("bool -> bool", relations.reduce),
    pattern=Pattern.REDUCTION,
    indexing=Indexing(reduction_axes="axis"),
    compute=_truth_stage("And", True),
    no_gradient="the result is a boolean",
    sampler=cases(*_NONEMPTY, *_EMPTY),
)
def all_(x: Tensor, axis: int | tuple[int, ...] | None = None, keepdims: bool = False) -> Tensor:
    """True where all elements are true along axes; true over none. x: (bool, s) -> (bool, s without the axes).

    >>> relay.all(np.array([[True, False], [True, True]]), axis=1)
    Array([False,  True], dtype=bool)
    """
    return np.asarray(np.all(x, axis=axis, keepdims=keepdims))
