"""Resampling of images: resizing, sampling at points of a grid, and slices of bilateral grids.

All read neighboring elements with `take` and add them with weights, so their derivatives are those of `take`.
"""

from __future__ import annotations

import functools
import itertools

import numpy as np

from relay.errors import ShapeError
from relay.ir.dims import maximum, multiply, subtract
from relay.ir.types import FLOAT64, INT64, BaseType, Dim, Shape, show_shape
from relay.operator import Emitter
from relay.ops import batching
from relay.ops.elementwise.comparison import where
from relay.ops.notation import (
    Batching,
    Relation,
    Value,
    cast_like,
    expansion,
    index_base,
    integer_range,
    table,
    widened_value,
)
from relay.ops.samples import case, cases
from relay.typecheck import windows as rules
from relay.typecheck.dims import equal, follows_equal, needs_at_least, product, resolve

# ---- resizing


def _axes(layout: str) -> tuple[int, int]:
    return (1, 2) if rules.channels_last(layout, 2) else (2, 3)


def _check_method(method: object, coordinates: object) -> None:
    if method not in ("bilinear", "nearest"):
        raise ShapeError(f"method must be 'bilinear' or 'nearest', found {method!r}")
    if coordinates not in ("half_pixel", "align_corners", "asymmetric"):
        raise ShapeError(f"coordinates must be 'half_pixel', 'align_corners' or 'asymmetric', found {coordinates!r}")


def _resize_shape(x: Shape, *, size: object, method: str, coordinates: str, layout: str) -> Shape:
    _check_method(method, coordinates)
    rules.check_rank("resize2d", 2, x)
    result: list[Dim] = list(x)
    for axis, extent in zip(_axes(layout), rules.sizes_of(size, 2, "size"), strict=True):
        rules.check_nonempty(x, axis, "resize2d")
        if not needs_at_least(extent, 1):
            raise ShapeError(f"size must hold integers that are at least 1, found {size!r}")
        result[axis] = extent
    return tuple(result)


def _sources(emitter: Emitter, extent: Dim, count: Dim, coordinates: str) -> tuple[Value, Dim]:
    """The position in the source of each place of the result: integers, and the number that they are to be divided
    by. So a place on an element, or in the middle of two, is exact."""
    places = integer_range(emitter, 0, count, INT64)
    if coordinates == "half_pixel":
        return (places * 2 + 1).op("multiply", extent).op("subtract", count), multiply(2, count)
    if coordinates == "asymmetric":
        return places.op("multiply", extent), count
    return places.op("multiply", subtract(extent, 1)), maximum(subtract(count, 1), 1)


def _broadcast_along(values: Value, axis: int, rank: int) -> Value:
    """A vector as a tensor that is broadcast along all axes but one."""
    return values.op("expand_dims", axis=tuple(i for i in range(rank) if i != axis))


def _resize_axis(x: Value, axis: int, count: Dim, method: str, coordinates: str) -> Value:
    """Along one axis."""
    extent = x.shape[axis]
    if follows_equal(extent, count):
        return x
    last = subtract(extent, 1)

    def clipped_index(index: Value) -> Value:
        return index.op("minimum", last).op("maximum", 0).op("cast", dtype=index_base(extent))

    def nearest_place(emitter: Emitter) -> Value:
        places, by = _sources(emitter, extent, count, coordinates)
        if coordinates == "asymmetric":
            return clipped_index(places.op("floor_divide", by))
        return clipped_index((places * 2).op("add", by).op("floor_divide", multiply(2, by)))

    def low_place(emitter: Emitter) -> Value:
        places, by = _sources(emitter, extent, count, coordinates)
        return clipped_index(places.op("floor_divide", by))

    def high_place(emitter: Emitter) -> Value:
        places, by = _sources(emitter, extent, count, coordinates)
        return clipped_index(places.op("floor_divide", by) + 1)

    def share(emitter: Emitter) -> Value:
        places, by = _sources(emitter, extent, count, coordinates)
        bounded = places.op("maximum", 0).op("minimum", multiply(last, by))
        part = bounded.op("mod", by).op("cast", dtype=FLOAT64).op("divide", by)
        return _broadcast_along(part.op("cast", dtype=x.base), axis, x.ndim)

    if method == "nearest":
        return x.op("take", table(x.emitter, nearest_place), axis=axis)
    first = x.op("take", table(x.emitter, low_place), axis=axis)
    second = x.op("take", table(x.emitter, high_place), axis=axis)
    return first + (second - first) * table(x.emitter, share)


@expansion(
    sizes=frozenset({"size"}),
    relation=Relation("T:float -> T", _resize_shape),
    layouts=functools.partial(rules.layouts, 2, "xx"),
    batching=Batching(rule=batching.into_axis("N")),
    sampler=cases(
        case((1, 2, 3, 4), size=(5, 7)),
        case((2, 4, 3, 1), size=2, layout="NHWC", coordinates="align_corners"),
        case((1, 1, 3, 4), size=(6, 3), method="nearest"),
        case((1, 1, 3, 5), size=(4, 8), method="nearest", coordinates="asymmetric"),
        case((1, 1, 2, 2), size=1, coordinates="align_corners"),
    ),
)
def resize2d(
    x: Value,
    size: int | tuple[int, int],
    method: str = "bilinear",
    coordinates: str = "half_pixel",
    layout: str = "NCHW",
) -> Value:
    """The image at another size, by its nearest elements or by linear interpolation between two along each axis.
    x: (T float, (n, c, h, w)) -> (T, (n, c, *size)).

    Place i of m lies in the source of extent n at (i + 1/2) n / m - 1/2 ("half_pixel"), i n / m ("asymmetric") or
    i (n - 1) / (m - 1) ("align_corners"); the nearest element is below it for "asymmetric", otherwise at
    floor(.. + 1/2).

    >>> relay.resize2d(np.float32([[[[0, 2]]]]), (1, 4))
    Array([[[[0. , 0.5, 1.5, 2. ]]]], dtype=float32)
    """
    value = widened_value(x)
    for axis, count in zip(_axes(layout), rules.sizes_of(size, 2, "size"), strict=True):
        value = _resize_axis(value, axis, count, method, coordinates)
    return cast_like(value, x)


def _upsampling_shape(x: Shape, *, scale: object, method: str, layout: str) -> Shape:
    _check_method(method, "half_pixel")
    rules.check_rank("upsampling", 2, x)
    result: list[Dim] = list(x)
    for axis, factor in zip(_axes(layout), rules.per_axis(scale, 2, "scale", 1), strict=True):
        result[axis] = multiply(resolve(x[axis]), factor)
    return tuple(result)


@expansion(
    relation=Relation("T:float -> T", _upsampling_shape),
    layouts=functools.partial(rules.layouts, 2, "xx"),
    batching=Batching(rule=batching.into_axis("N")),
    sampler=cases(case((1, 2, 2, 3), scale=2), case((1, 2, 3, 1), scale=(3, 1), method="bilinear", layout="NHWC")),
)
def upsampling(x: Value, scale: int | tuple[int, int] = 2, method: str = "nearest", layout: str = "NCHW") -> Value:
    """The image `scale` times as large, as `resize2d` makes it with half-pixel coordinates.
    x: (T float, (n, c, h, w)) -> (T, (n, c, h scale, w scale)).

    >>> relay.upsampling(np.float32([[[[1, 2]]]]))
    Array([[[[1., 1., 2., 2.],
             [1., 1., 2., 2.]]]], dtype=float32)
    """
    factors = rules.per_axis(scale, 2, "scale", 1)
    sizes = tuple(multiply(x.shape[axis], factor) for axis, factor in zip(_axes(layout), factors, strict=True))
    return x.op("resize2d", size=sizes, method=method, coordinates="half_pixel", layout=layout)


# ---- sampling at run-time places


def _number(value: Value, constant: float) -> Value:
    return value.emitter.constant(constant, value.base)


def _half(like: Value, size: Dim) -> Value:
    """Half of a size, in the dtype of a value."""
    return table(like.emitter, lambda emitter: emitter.number(size, like.base) * 0.5)


def _bounded_place(place: Value, low: float, high: Dim) -> Value:
    """A place within bounds beyond which nothing changes; NaN as the lower one."""
    bounded = place.op("maximum", low).op("minimum", high)
    return where(place.op("isnan"), _number(place, low), bounded)  # type: ignore[no-any-return]


def _clip_index(index: Value, extent: Dim) -> Value:
    return index.op("maximum", 0).op("minimum", subtract(extent, 1))


def _neighbors(place: Value, extent: Dim, base: BaseType) -> list[tuple[Value, Value, Value]]:
    """The elements on both sides of places along an axis: (index within bounds, of a base type, weight, whether it is
    inside)."""
    below = place.op("floor")
    share = place - below
    found = []
    for offset, weight in ((0, 1 - share), (1, share)):
        index = (below + offset).op("cast", dtype=base)
        inside = (index >= 0) & (index < extent)
        found.append((_clip_index(index, extent), weight, inside))
    return found


def _rows(x: Value) -> Value:
    """(n, c, *sizes) as (n * sizes, c)."""
    last = x.op("transpose", axes=(0, *range(2, x.ndim), 1))
    return last.op("reshape", shape=(product(last.shape[:-1]), x.shape[1]))


def _flat_index_base(x: Value) -> BaseType:
    """The base type of indices of the rows of (n, c, *sizes)."""
    return index_base(product((x.shape[0], *x.shape[2:])))


def _batch_offsets(indices: Value, batch: Dim, places: Dim) -> Value:
    """The first row of each example, to be added to indices (n, ..)."""
    rank = indices.ndim
    first = table(
        indices.emitter,
        lambda emitter: _broadcast_along(
            integer_range(emitter, 0, batch, indices.base).op("multiply", places), 0, rank
        ),
    )
    return indices + first


def _weighted_corners(x: Value, corners: list[tuple[Value, Value, Value | None]]) -> Value:
    """The sum over corners of weight times the rows of x: (n, c, *sizes) at flat indices (n, *s) -> (n, c, *s)."""
    rows, total = _rows(x), None
    batch, places = x.shape[0], product(x.shape[2:])
    for index, weight, inside in corners:
        if inside is not None:
            weight = where(inside, weight, _number(weight, 0.0))
        found = rows.op("take", _batch_offsets(index, batch, places), axis=0)
        part = found * weight.op("expand_dims", axis=-1)
        total = part if total is None else total + part
    assert total is not None
    return total.op("transpose", axes=(0, total.ndim - 1, *range(1, total.ndim - 1)))


def _grid_shape(x: Shape, grid: Shape, *, method: str, padding: str, align_corners: bool) -> Shape:
    _check_method(method, "half_pixel")
    if padding not in ("zeros", "border", "reflection"):
        raise ShapeError(f"padding must be 'zeros', 'border' or 'reflection', found {padding!r}")
    if len(x) != 4 or len(grid) != 4 or not equal(grid[3], 2) or not equal(grid[0], x[0]):
        raise ShapeError(
            f"grid_sample needs x (n, c, h, w) and grid (n, i, j, 2), found {show_shape(x)} and {show_shape(grid)}"
        )
    for axis in (2, 3):
        rules.check_nonempty(x, axis, "grid_sample")
    return (x[0], x[1], grid[1], grid[2])


def _reflect_coordinate(place: Value, extent: Dim, align_corners: bool) -> Value:
    """Places outside mirrored at the borders, at centers of the outer elements or half an element beyond."""
    low, span = (0.0, subtract(extent, 1)) if align_corners else (-0.5, extent)
    if span == 0:
        return place.op("zeros_like")
    both = place.emitter.number(multiply(2, span), place.base)
    distance = (place - low).op("abs") % both
    return where(distance.op("greater", span), both - distance, distance) + low  # type: ignore[no-any-return]


@expansion(
    relation=Relation("T:float, T -> T", _grid_shape),
    sampler=cases(
        case((1, 2, 3, 4), (1, 2, 3, 2)),
        case((2, 1, 3, 3), (2, 2, 2, 2), padding="border", align_corners=True),
        case((1, 1, 4, 3), (1, 3, 2, 2), padding="reflection"),
        case((1, 2, 3, 3), (1, 2, 2, 2), method="nearest"),
        low=-1.3, high=1.3,
    ),
)  # fmt: skip
def grid_sample(
    x: Value, grid: Value, method: str = "bilinear", padding: str = "zeros", align_corners: bool = False
) -> Value:
    """The image at the points of a grid, (x, y) in [-1, 1] from the first to the last column and row (Jaderberg and
    others, 2015). Their ends are the centers of the outer elements if `align_corners`, else the outer edges.
    x: (T float, (n, c, h, w)), grid: (T, (n, i, j, 2)) -> (T, (n, c, i, j)).

    Outside there is 0 ("zeros"), the nearest element ("border"), or the mirrored image ("reflection"). A place that is
    NaN counts as -1.

    >>> relay.grid_sample(np.float32([[[[1, 2], [3, 4]]]]), np.float32([[[[0, 0]]]]))
    Array([[[[2.5]]]], dtype=float32)
    """
    points, value = widened_value(grid), widened_value(x)
    base = _flat_index_base(x)
    indices = []
    for component, axis in ((1, 2), (0, 3)):
        extent = x.shape[axis]
        last = subtract(extent, 1)
        place = points.op("take", np.array(component, np.int32), axis=3)
        place = where(place.op("isnan"), _number(place, -1.0), place)
        scaled = (place + 1) * _half(place, last) if align_corners else (place + 1) * _half(place, extent) - 0.5
        if padding == "reflection":
            scaled = _reflect_coordinate(scaled, extent, align_corners)
        outside = padding == "zeros"
        scaled = _bounded_place(scaled, -1.0 if outside else 0.0, extent if outside else last)
        if method == "nearest":
            index = scaled.op("round").op("cast", dtype=base)
            inside = (index >= 0) & (index < extent)
            one = scaled.op("ones_like")
            indices.append([(_clip_index(index, extent), one, inside)])
        else:
            indices.append(_neighbors(scaled, extent, base))
    width = x.shape[3]
    corners: list[tuple[Value, Value, Value | None]] = []
    for (row, row_weight, row_inside), (column, column_weight, column_inside) in itertools.product(*indices):
        corners.append((row.op("multiply", width) + column, row_weight * column_weight, row_inside & column_inside))
    return cast_like(_weighted_corners(value, corners), x)


def _slice_shape(grid: Shape, guide: Shape) -> Shape:
    if len(grid) != 5 or len(guide) != 3 or not equal(grid[0], guide[0]):
        raise ShapeError(
            f"bilateral_slice needs a grid (n, c, d, i, j) and a guide (n, h, w), found {show_shape(grid)} and"
            f" {show_shape(guide)}"
        )
    for axis in (2, 3, 4):
        rules.check_nonempty(grid, axis, "bilateral_slice")
    return (grid[0], grid[1], guide[1], guide[2])


def _grid_places(like: Value, count: Dim, extent: Dim, axis: int, base: BaseType) -> list[tuple[Value, Value]]:
    """Along a spatial axis of the grid: (index of a base type, weight) of both neighbors of each pixel's center, along
    an axis of matrices."""

    def index(offset: int, emitter: Emitter) -> Value:
        places, by = _sources(emitter, extent, count, "half_pixel")
        below = places.op("floor_divide", by) + offset
        return _broadcast_along(_clip_index(below, extent).op("cast", dtype=base), axis, 2)

    def weight(upper: bool, emitter: Emitter) -> Value:
        places, by = _sources(emitter, extent, count, "half_pixel")
        share = places.op("mod", by).op("cast", dtype=FLOAT64).op("divide", by)
        return _broadcast_along((share if upper else 1 - share).op("cast", dtype=like.base), axis, 2)

    return [
        (
            table(like.emitter, functools.partial(index, offset)),
            table(like.emitter, functools.partial(weight, offset == 1)),
        )
        for offset in (0, 1)
    ]


@expansion(
    relation=Relation("T:float, T -> T", _slice_shape),
    sampler=cases(case((1, 2, 3, 2, 2), (1, 4, 3)), case((2, 1, 2, 1, 3), (2, 2, 3)), low=0.03, high=0.97),
)
def bilateral_slice(grid: Value, guide: Value) -> Value:
    """A slice of a bilateral grid: linear interpolation at each pixel's place, and at the depth that the guide, in
    [0, 1], gives (Chen, Paris, Durand, 2007). Cell k of m along an axis has its center at (k + 1/2) / m; beyond the
    outer centers the outer cells hold. grid: (T float, (n, c, d, i, j)), guide: (T, (n, h, w)) -> (T, (n, c, h, w)).

    >>> relay.bilateral_slice(np.float32([0, 4]).reshape(1, 1, 2, 1, 1), np.float32([[[0.5]]]))
    Array([[[[2.]]]], dtype=float32)
    """
    value = widened_value(grid)
    _, _, depth, height, width = grid.shape
    _, rows, columns = guide.shape
    place, base = _bounded_place(widened_value(guide).op("multiply", depth) - 0.5, -1.0, depth), _flat_index_base(grid)
    corners: list[tuple[Value, Value, Value | None]] = []
    for (level, level_weight, _), (row, row_weight), (column, column_weight) in itertools.product(
        _neighbors(place, depth, base),
        _grid_places(value, rows, height, 0, base),
        _grid_places(value, columns, width, 1, base),
    ):
        index = level.op("multiply", multiply(height, width)) + (row.op("multiply", width) + column)
        corners.append((index, level_weight * (row_weight * column_weight), None))
    return cast_like(_weighted_corners(value, corners), grid)
