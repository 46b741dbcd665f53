"""Sorting along an axis: stable, NaN counts as larger than every number, with derivatives through the order."""

from __future__ import annotations

from typing import Any

import numpy as np

from relay.errors import ShapeError
from relay.ir.dims import ANY, LARGEST_SIZE, subtract
from relay.ir.sizes.facts import facts
from relay.ir.types import INT32, Dim, Shape, show_shape
from relay.operator.axes import carries
from relay.ops.elementwise.comparison import where
from relay.ops.notation import (
    Batch,
    Batching,
    Element,
    Indexing,
    Relation,
    Stage,
    Tensor,
    Value,
    dims,
    expansion,
    integer_range,
    loops,
    number_or_size,
    register_op,
    table,
)
from relay.ops.samples import case, cases
from relay.ops.tir import scalar, sorting_networks, stages
from relay.ops.tir.tvm_modules import te, tirx
from relay.typecheck import axes as names
from relay.typecheck import relations
from relay.typecheck.dims import equal_shapes, is_dim, needs_at_least, normalize_axis, product
from relay.typecheck.guards import fits_int32

_TIES = np.array([[2, 1, 2, 1, 0], [0, 0, 0, 0, 0]], np.int32)
_NAN = np.array([[2.0, np.nan, -np.inf, 2.0, 0.0, -1.0, np.inf, 2.0]], np.float32)


def _is_before(x: Element, y: Element, descending: bool) -> Element:
    """True if x comes before y, and must not come after."""
    if scalar.dtype_of(x) == "bool":
        x, y = tirx.Cast("uint8", x), tirx.Cast("uint8", y)
    if descending:
        x, y = y, x
    less = tirx.LT(x, y)
    if not scalar.is_float(scalar.dtype_of(x)):
        return less
    return tirx.Or(less, tirx.And(scalar.is_nan(y), scalar.negation(scalar.is_nan(x))))


def _order(x: Stage, descending: bool) -> Stage:
    """The order along the last axis."""
    shape = dims(x)
    if 0 in shape:
        return stages.full(shape, 0, "int32")
    sort = sorting_networks.network if sorting_networks.is_short(shape) else sorting_networks.by_digits
    return stages.extern_stage(shape, [x], "int32", lambda result, x: sort(result, x, shape, descending))


def _argsort(x: Stage, axis: int, descending: bool, ties: str) -> Stage:
    shape, rank = dims(x), len(dims(x))
    position = normalize_axis(axis, rank)
    if position == rank - 1 and ties == "first":
        return _order(x, descending)
    order = (*(i for i in range(rank) if i != position), position)
    last = number_or_size(shape[position] - 1, "int32")

    def read(*index: Element) -> Element:
        places = [index[order.index(i)] for i in range(rank)]
        if ties == "last":  # in the other direction, of which the stable order has the last of equal ones first
            places[position] = shape[position] - 1 - places[position]
        return x(*places)

    ordered = _order(te.compute(tuple(shape[i] for i in order), read, name="moved"), descending)

    def place(*index: Element) -> Element:
        found = ordered(*(index[i] for i in order))
        return last - found if ties == "last" else found

    return te.compute(shape, place)


def _numpy_argsort(x: Tensor, axis: int, descending: bool, ties: str) -> Tensor:
    if x.dtype.name == "bfloat16":  # NumPy would not put its NaN last
        x = x.astype(np.float32)
    # Descending is ascending backwards, in which equal elements change their order.
    backwards = descending == (ties == "first")
    places = np.argsort(np.flip(x, axis) if backwards else x, axis=axis, kind="stable")
    if backwards:
        places = x.shape[axis] - 1 - places
    return np.ascontiguousarray(np.flip(places, axis) if descending else places).astype(np.int32)


@carries(names.first_operand)
def _sorted_shape(shape: Shape, *, axis: int, descending: bool, ties: str = "first") -> Shape:
    check_ties(ties)
    needs_places(shape, axis)
    return relations.along_axis(shape, axis=axis)


def check_ties(ties: str) -> None:
    """Raise ShapeError for an order of equal elements that there is none of."""
    if ties not in ("first", "last"):
        raise ShapeError(f"ties must be 'first' or 'last', found {ties!r}")


def needs_places(shape: Shape, axis: int) -> None:
    """Raise ShapeError for an axis whose places an int32 does not hold; a data-dependent size is checked at run
    time."""
    extent = shape[normalize_axis(axis, len(shape))] if shape else 0
    if extent is not ANY and not fits_int32(facts(), extent) and not needs_at_least(LARGEST_SIZE, extent):
        message = f"axis {axis} of {show_shape(shape)} is too long: places along it are int32"
        raise ShapeError(message, help=f"sort parts of {LARGEST_SIZE} elements at most")


@register_op(
    relation=Relation("T -> int32", _sorted_shape),
    compute=_argsort,
    no_gradient="the result is an order",
    indexing=Indexing(axis="axis"), sampler=cases(
        case((7,)), case((3, 5)), case((3, 4, 2), axis=1), case((2, 6), descending=True), case((4, 1), axis=0),
        case((0, 3)), case((3, 0)), case(_NAN), case(_NAN, descending=True), case((1,)), case((33,)),
        case(_TIES, ties="last"), case(_TIES, ties="last", descending=True), case(_NAN, ties="last"),
        case((3, 4, 2), axis=1, ties="last"), case((0, 3), ties="last"),
    ),
)  # fmt: skip
def argsort(x: Tensor, axis: int = -1, descending: bool = False, ties: str = "first") -> Tensor:
    """The places of the elements along an axis in ascending order, NaN as the largest; of equal ones the first comes
    first (a stable order), or the last with ties="last". x: (T, s) -> (int32, s).

    >>> relay.argsort(np.float32([3, 1, 2]))
    Array([1, 2, 0], dtype=int32)
    """
    return _numpy_argsort(x, axis, descending, ties)


@expansion(
    relation=Relation("T -> T", _sorted_shape),
    indexing=Indexing(axis="axis"),
    sampler=cases(
        case((7,)), case((3, 5)), case((3, 4, 2), axis=1, descending=True), case((0, 3)), case((3, 0)), case(_NAN)
    ),
)
def sort(x: Value, axis: int = -1, descending: bool = False) -> Value:
    """The elements along an axis in ascending order; NaN is the largest. x: (T, s) -> (T, s).

    >>> relay.sort(np.float32([3, 1, 2]))
    Array([1., 2., 3.], dtype=float32)
    """
    order = x.op("argsort", axis=axis, descending=descending)
    return x.op("take_along_axis", order, axis=axis)


# ---- the largest


@carries(names.first_operand)
def _topk_shape(shape: Shape, *, k: Dim, axis: int, largest: bool, ties: str = "first") -> Shape:
    position = normalize_axis(axis, len(shape))
    check_ties(ties)
    needs_places(shape, axis)
    if not is_dim(k) or not needs_at_least(k, 0) or not needs_at_least(shape[position], k):
        raise ShapeError(
            f"k must be an integer from 0 to the extent of axis {axis} of {show_shape(shape)}, found {k!r}"
        )
    return (*shape[:position], k, *shape[position + 1 :])


def _first_elements(x: Value, k: Dim, axis: int) -> Value:
    """The first k along an axis."""
    position = normalize_axis(axis, x.ndim)
    end = (*x.shape[:position], k, *x.shape[position + 1 :])
    return x.op("strided_slice", begin=(0,) * x.ndim, end=end, strides=(1,) * x.ndim)


_K = frozenset({"k"})
_TOPK = cases(
    case((7,), k=3),
    case((3, 5), k=2),
    case((3, 4, 2), k=4, axis=1),
    case((2, 5), k=0),
    case((2, 5), k=2, largest=False),
    case(_TIES, k=2, ties="last"),
)


@expansion(sizes=_K, relation=Relation("T -> int32", _topk_shape), no_gradient="the result is an order", sampler=_TOPK)
def topk_indices(x: Value, k: int, axis: int = -1, largest: bool = True, ties: str = "first") -> Value:
    """The places of the k largest (or smallest) elements along an axis, the best first; of equal ones the first, or
    the last with ties="last". x: (T, s) -> (int32, s with k along the axis).

    >>> relay.topk_indices(np.float32([3, 1, 4, 2]), 2)
    Array([2, 0], dtype=int32)
    """
    return _first_elements(x.op("argsort", axis=axis, descending=largest, ties=ties), k, axis)


@expansion(sizes=_K, relation=Relation("T -> T", _topk_shape), sampler=_TOPK)
def topk_values(x: Value, k: int, axis: int = -1, largest: bool = True, ties: str = "first") -> Value:
    """The k largest (or smallest) elements along an axis, the best first; `ties` as in `topk`, which only the gradient
    shows. x: (T, s) -> (T, s with k along the axis).

    >>> relay.topk_values(np.float32([3, 1, 4, 2]), 2)
    Array([4., 3.], dtype=float32)
    """
    order = _first_elements(x.op("argsort", axis=axis, descending=largest, ties=ties), k, axis)
    return x.op("take_along_axis", order, axis=axis)


@expansion(sizes=_K, sampler=_TOPK)
def topk(x: Value, k: int, axis: int = -1, largest: bool = True, ties: str = "first") -> tuple[Value, Value]:
    """The k largest (or smallest) elements along an axis, the best first, and their places; of equal ones the first,
    or the last with ties="last". x: (T, s) -> ((T, s with k
    along the axis), (int32, the same shape)).

    >>> relay.topk(np.float32([3, 1, 4, 2]), 2)
    (Array([4., 3.], dtype=float32), Array([2, 0], dtype=int32))
    """
    _topk_shape(x.shape, k=k, axis=axis, largest=largest, ties=ties)
    order = _first_elements(x.op("argsort", axis=axis, descending=largest, ties=ties), k, axis)
    return x.op("take_along_axis", order, axis=axis), order


# ---- places in what is sorted


@carries(names.second_operand)
def _searchsorted_shape(ordered: Shape, values: Shape, *, side: str) -> Shape:
    if not ordered or (len(ordered) > 1 and not equal_shapes(ordered[:-1], values[:-1])):
        raise ShapeError(
            f"searchsorted needs a vector, or rows for rows: found the shapes {show_shape(ordered)} and"
            f" {show_shape(values)}"
        )
    needs_places(ordered, -1)
    if side not in ("left", "right"):
        raise ShapeError(f"side must be 'left' or 'right', found {side!r}")
    return values


def _bisect(ordered: Stage, values: Stage, side: str) -> Stage:
    """Bisection with as many steps as the extent has bits."""
    extent = dims(ordered)[-1]
    shape = dims(values)
    if not isinstance(extent, int):
        return _searched_in_rounds(ordered, values, side)
    if extent == 0 or 0 in shape:
        return stages.full(shape, 0, "int32")

    def element(registers: stages.Registers, index: Any, buffers: Any) -> Element:
        rows = [] if len(dims(ordered)) == 1 else list(index[:-1])
        value = registers.name(tirx.BufferLoad(buffers[1], list(index)))
        low: Element = tirx.const(0, "int32")
        high: Element = tirx.const(extent, "int32")
        for _ in range(extent.bit_length()):
            middle = registers.name(tirx.shift_right(low + high, tirx.const(1, "int32")))
            probe = registers.name(
                tirx.BufferLoad(buffers[0], [*rows, tirx.min(middle, tirx.const(extent - 1, "int32"))])
            )
            beyond = _is_beyond(probe, value, side)
            open_ = tirx.LT(low, high)
            low, high = (
                registers.name(tirx.Select(tirx.And(open_, beyond), middle + 1, low)),
                registers.name(tirx.Select(tirx.And(open_, scalar.negation(beyond)), middle, high)),
            )
        return low

    return stages.register_stage(shape, [ordered, values], "int32", element)


def _is_beyond(probe: Element, value: Element, side: str) -> Element:
    """True if the value's place is after an element."""
    return _is_before(probe, value, False) if side == "left" else scalar.negation(_is_before(value, probe, False))


def _searched_in_rounds(ordered: Stage, values: Stage, side: str) -> Stage:
    """The same for a data-dependent extent: as many rounds as it has bits."""
    shape, extent = dims(values), tirx.Cast("int32", dims(ordered)[-1])

    def number(value: int) -> Element:
        return tirx.const(value, "int32")

    rounds = number(0)
    for power in range(31):
        rounds = rounds + tirx.Cast("int32", tirx.GE(extent, number(1 << power)))

    def statement(output: Any, ordered: Any, values: Any) -> Any:
        ends = [tirx.decl_buffer((1,), "int32", name) for name in ("low", "high", "count")]
        low, high, count = (tirx.BufferLoad(end, [0]) for end in ends)

        def place(index: list[Any]) -> Any:
            rows = [] if len(ordered.shape) == 1 else list(index[:-1])
            middle = tirx.shift_right(low + high, number(1))
            beyond = _is_beyond(tirx.BufferLoad(ordered, [*rows, middle]), tirx.BufferLoad(values, index), side)
            narrower = tirx.IfThenElse(
                beyond, tirx.BufferStore(ends[0], middle + 1, [0]), tirx.BufferStore(ends[1], middle, [0])
            )
            begin = [tirx.BufferStore(ends[0], number(0), [0]), tirx.BufferStore(ends[1], extent, [0])]
            search = loops((count,), lambda _: tirx.IfThenElse(tirx.LT(low, high), narrower, None))
            return tirx.SeqStmt([*begin, search, tirx.BufferStore(output, low, index)])

        buffers = [tirx.AllocBuffer(end) for end in ends]
        return tirx.SeqStmt([*buffers, tirx.BufferStore(ends[2], rounds, [0]), loops(shape, place)])

    return stages.extern_stage(shape, [ordered, values], "int32", statement)


def _sorted_sample(*extents: int) -> Tensor:
    return np.sort(np.random.default_rng(1).integers(-2, 3, extents).astype(np.float32), axis=-1)


def _batched_search(batch: Batch, ordered: Value, values: Value, side: str) -> Value:
    """Rows of both, unless all examples are searched in one row."""
    if not batch.batched[0] and batch.rank() == 1:
        return batch.call(ordered, values, side=side)
    rows, wanted = batch.stretch_all((ordered, values))
    if batch.rank() == 1:
        wanted = wanted.op("reshape", shape=(batch.size, product(batch.types[1].shape)))
    return batch.call(rows, wanted, side=side).op("reshape", shape=(batch.size, *batch.tensor.shape))


@register_op(
    relation=Relation("T:number, T -> int32", _searchsorted_shape),
    compute=_bisect,
    no_gradient="the result is a place",
    batching=Batching(rule=_batched_search),
    sampler=cases(
        case(_sorted_sample(5), np.array([-3, -2, 0, 0.5, 2, 9, np.nan], np.float32)),
        case(_sorted_sample(8), np.array([[-2, 1], [2, 0]], np.float32), side="right"),
        case(_sorted_sample(2, 3), np.array([[0, 1], [-1, 2]], np.float32)),
        case(np.array([1, 3, 3, 7], np.int32), np.array(3, np.int32), side="right"),
        case(np.zeros(0, np.float32), np.array([1, 2], np.float32)),
        case(np.array([1, np.nan], np.float32), np.array([2, np.nan], np.float32)),
    ),
)
def searchsorted(ordered: Tensor, values: Tensor, side: str = "left") -> Tensor:
    """The places at which to insert values so that ascending elements stay ascending: before equal ones, or behind them
    with side="right". ordered: (T, (n,)), values: (T, s), or rows of both: (T, (*b, n)), (T, (*b, m)) -> (int32, the
    shape of values).

    >>> relay.searchsorted(np.float32([1, 2, 2, 3]), np.float32([2, 5]))
    Array([1, 4], dtype=int32)
    """
    # Bisection, as compiled programs do it, so that what is not ascending has the same places in each mode.
    (*_, count), places = ordered.shape, np.indices(values.shape)
    low, high = np.zeros(values.shape, np.int32), np.full(values.shape, count, np.int32)
    for _ in range(count.bit_length()):
        middle, open_ = (low + high) >> 1, low < high
        nearest = np.minimum(middle, count - 1)
        probe = ordered[nearest] if ordered.ndim == 1 else ordered[(*places[:-1], nearest)]
        behind = _sorts_before(probe, values) if side == "left" else ~_sorts_before(values, probe)
        low, high = np.where(open_ & behind, middle + 1, low), np.where(open_ & ~behind, middle, high)
    return low


def _sorts_before(left: Tensor, right: Tensor) -> Tensor:
    """True where an element comes before another one in ascending order, NaN last."""
    return np.asarray((left < right) | ((left == left) & (right != right)))


# ---- distinct elements


def _unique_shape(shape: Shape, *, size: Dim, fill_value: float | None) -> Shape:
    if not is_dim(size) or not needs_at_least(size, 1):
        raise ShapeError(f"size, the number of distinct elements, must be a positive integer, found {size!r}")
    if not all(needs_at_least(dim, 1) for dim in shape):
        raise ShapeError(f"a tensor of shape {show_shape(shape)} has no distinct elements")
    needs_places((product(shape),), 0)
    return (size,)


_REPEATED = np.array([[3, 1, 3], [2, 1, 1]], np.float32)


@expansion(
    sizes=frozenset({"size"}),
    relation=Relation("T:number -> T", _unique_shape),
    sampler=cases(
        case((2, 3), size=6), case(_REPEATED, size=5), case(_REPEATED, size=2), case(_REPEATED, size=5, fill_value=-1),
        case(np.array([2, 2, 1], np.int32), size=2), case(_NAN, size=6),
    ),
)  # fmt: skip
def unique(x: Value, size: int, fill_value: float | None = None) -> Value:
    """The distinct elements in ascending order, of which there are `size`: of more, only the first; after fewer, the
    smallest again, or `fill_value`. x: (T, s) -> (T, (size,)).

    >>> relay.unique(np.int32([3, 1, 3]), size=4)
    Array([1, 3, 1, 1], dtype=int32)
    """
    flat = x.op("reshape", shape=(product(x.shape),))
    order = flat.op("argsort")
    ordered = flat.op("take", order)
    (count,) = flat.shape
    later = ordered.op("strided_slice", begin=(1,), end=(count,), strides=(1,))
    earlier = ordered.op("strided_slice", begin=(0,), end=(subtract(count, 1),), strides=(1,))
    differs = later != earlier
    if x.base.is_float:  # NaN is one element
        differs = differs & later.op("isnan").op("logical_and", earlier.op("isnan")).op("logical_not")
    steps = differs.op("cast", dtype=INT32).op("cumsum", axis=0)
    targets = table(x.emitter, lambda emitter: integer_range(emitter, 0, size))
    first = table(x.emitter, lambda emitter: integer_range(emitter, 0, size).op("minimum", 1))
    found = steps.op("searchsorted", targets) + first  # where each new one stands
    present = found < count
    values = flat.op("take", order.op("take", where(present, found, found.op("zeros_like"))))
    if fill_value is None:
        return values
    return where(present, values, values.emitter.constant(fill_value, values.base))
