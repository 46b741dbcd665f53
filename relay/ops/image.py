"""Images at other places: resizing, sampling at points of a grid, and slices of bilateral grids.

All read neighbouring elements with `take` and add them with weights, so their derivatives are those of `take`.
"""

from __future__ import annotations

import functools
import itertools

import numpy as np

from relay.errors import ShapeError
from relay.ir.types import INT32, Dim, Shape, show_shape
from relay.ops.comparison import where
from relay.ops.normalisation import like, wide
from relay.ops.notation import Relation, Tensor, Value, expansion
from relay.ops.samples import case, cases
from relay.typecheck import windows as rules
from relay.typecheck.dims import equal, known, product

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
    for axis, extent in zip(_axes(layout), rules.per_axis(size, 2, "size", 1), strict=True):
        rules.check_nonempty(x, axis, "resize2d")
        result[axis] = extent
    return tuple(result)


def _sources(extent: int, count: int, coordinates: str) -> Tensor:
    """Where in the source each place of the result lies."""
    places = np.arange(count, dtype=np.float64)
    if coordinates == "half_pixel":
        return np.asarray((places + 0.5) * (extent / count) - 0.5)
    if coordinates == "asymmetric":
        return np.asarray(places * (extent / count))
    return np.asarray(places * ((extent - 1) / max(count - 1, 1)))


def _resized(x: Value, axis: int, count: int, method: str, coordinates: str) -> Value:
    """Along one axis."""
    extent = known(x.shape[axis])
    if extent == count:
        return x
    places = _sources(extent, count, coordinates)
    if method == "nearest":
        chosen = np.floor(places) if coordinates == "asymmetric" else np.floor(places + 0.5)
        return x.op("take", np.clip(chosen, 0, extent - 1).astype(np.int32), axis=axis)
    places = np.clip(places, 0, extent - 1)
    low = np.floor(places).astype(np.int32)
    shape = [1] * x.ndim
    shape[axis] = count
    share = (places - low).reshape(shape).astype(x.base.dtype)
    first = x.op("take", low, axis=axis)
    second = x.op("take", np.minimum(low + 1, extent - 1).astype(np.int32), axis=axis)
    return first + (second - first) * share


@expansion(
    relation=Relation("T:float -> T", _resize_shape),
    layouts=functools.partial(rules.layouts, 2, "xx"),
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
    i (n - 1) / (m - 1) ("align_corners"); the nearest element is below it for "asymmetric", otherwise at floor(.. + 1/2).

    >>> relay.resize2d(np.float32([[[[0, 2]]]]), (1, 4))
    array([[[[0. , 0.5, 1.5, 2. ]]]], dtype=float32)
    """
    value = wide(x)
    for axis, count in zip(_axes(layout), rules.per_axis(size, 2, "size", 1), strict=True):
        value = _resized(value, axis, count, method, coordinates)
    return like(value, x)


def _upsampling_shape(x: Shape, *, scale: object, method: str, layout: str) -> Shape:
    _check_method(method, "half_pixel")
    rules.check_rank("upsampling", 2, x)
    result: list[Dim] = list(x)
    for axis, factor in zip(_axes(layout), rules.per_axis(scale, 2, "scale", 1), strict=True):
        result[axis] = known(x[axis]) * factor
    return tuple(result)


@expansion(
    relation=Relation("T:float -> T", _upsampling_shape),
    layouts=functools.partial(rules.layouts, 2, "xx"),
    sampler=cases(case((1, 2, 2, 3), scale=2), case((1, 2, 3, 1), scale=(3, 1), method="bilinear", layout="NHWC")),
)
def upsampling(x: Value, scale: int | tuple[int, int] = 2, method: str = "nearest", layout: str = "NCHW") -> Value:
    """The image `scale` times as large, as `resize2d` makes it with half-pixel coordinates.
    x: (T float, (n, c, h, w)) -> (T, (n, c, h scale, w scale)).

    >>> relay.upsampling(np.float32([[[[1, 2]]]]))
    array([[[[1., 1., 2., 2.],
             [1., 1., 2., 2.]]]], dtype=float32)
    """
    factors = rules.per_axis(scale, 2, "scale", 1)
    sizes = tuple(known(x.shape[axis]) * factor for axis, factor in zip(_axes(layout), factors, strict=True))
    return x.op("resize2d", size=sizes, method=method, coordinates="half_pixel", layout=layout)


# ---- sampling at run-time places


def _number(value: Value, constant: float) -> Value:
    return value.emitter.constant(constant, value.base)


def _finite(place: Value, low: float, high: float) -> Value:
    """A place within bounds beyond which nothing changes; NaN as the lower one."""
    bounded = place.op("maximum", low).op("minimum", high)
    return where(place.op("isnan"), _number(place, low), bounded)  # type: ignore[no-any-return]


def _neighbours(place: Value, extent: int) -> list[tuple[Value, Value, Value]]:
    """The elements on both sides of places along an axis: (index within bounds, weight, whether it is inside)."""
    below = place.op("floor")
    share = place - below
    found = []
    for offset, weight in ((0, 1 - share), (1, share)):
        index = (below + offset).op("cast", dtype=INT32)
        inside = (index >= 0) & (index < extent)
        found.append((index.op("maximum", 0).op("minimum", extent - 1), weight, inside))
    return found


def _rows(x: Value) -> Value:
    """(n, c, *sizes) as (n * sizes, c)."""
    last = x.op("transpose", axes=(0, *range(2, x.ndim), 1))
    return last.op("reshape", shape=(product(last.shape[:-1]), x.shape[1]))


def _batch_offsets(indices: Value, batch: int, places: int) -> Value:
    """The first row of each example, to be added to indices (n, ..)."""
    shape = (batch, *(1,) * (indices.ndim - 1))
    return indices.op("add", (np.arange(batch, dtype=np.int32) * places).reshape(shape))


def _gathered(x: Value, corners: list[tuple[Value, Value, Value | None]]) -> Value:
    """The sum over corners of weight times the rows of x: (n, c, *sizes) at flat indices (n, *s) -> (n, c, *s)."""
    rows, total = _rows(x), None
    batch, places = known(x.shape[0]), known(product(x.shape[2:]))
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


def _reflected(place: Value, extent: int, align_corners: bool) -> Value:
    """Places outside mirrored at the borders, at centres of the outer elements or half an element beyond."""
    low, span = (0.0, float(extent - 1)) if align_corners else (-0.5, float(extent))
    if span == 0:
        return place.op("zeros_like")
    distance = (place - low).op("abs").op("mod", 2 * span)
    return where(distance > span, 2 * span - distance, distance) + low  # type: ignore[no-any-return]


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
    others, 2015). Their ends are the centres of the outer elements if `align_corners`, else the outer edges.
    x: (T float, (n, c, h, w)), grid: (T, (n, i, j, 2)) -> (T, (n, c, i, j)).

    Outside there is 0 ("zeros"), the nearest element ("border"), or the mirrored image ("reflection"). A place that is
    NaN counts as -1.

    >>> relay.grid_sample(np.float32([[[[1, 2], [3, 4]]]]), np.float32([[[[0, 0]]]]))
    array([[[[2.5]]]], dtype=float32)
    """
    points, value = wide(grid), wide(x)
    indices = []
    for component, axis in ((1, 2), (0, 3)):
        extent = known(x.shape[axis])
        place = points.op("take", np.array(component, np.int32), axis=3)
        place = where(place.op("isnan"), _number(place, -1.0), place)
        scaled = (place + 1) * ((extent - 1) / 2) if align_corners else (place + 1) * (extent / 2) - 0.5
        if padding == "reflection":
            scaled = _reflected(scaled, extent, align_corners)
        outside = padding == "zeros"
        scaled = _finite(scaled, -1.0 if outside else 0.0, float(extent) if outside else float(extent - 1))
        if method == "nearest":
            index = scaled.op("round").op("cast", dtype=INT32)
            inside = (index >= 0) & (index < extent)
            one = scaled.op("ones_like")
            indices.append([(index.op("maximum", 0).op("minimum", extent - 1), one, inside)])
        else:
            indices.append(_neighbours(scaled, extent))
    width = known(x.shape[3])
    corners: list[tuple[Value, Value, Value | None]] = []
    for (row, row_weight, row_inside), (column, column_weight, column_inside) in itertools.product(*indices):
        corners.append((row * width + column, row_weight * column_weight, row_inside & column_inside))
    return like(_gathered(value, corners), x)


def _slice_shape(grid: Shape, guide: Shape) -> Shape:
    if len(grid) != 5 or len(guide) != 3 or not equal(grid[0], guide[0]):
        raise ShapeError(
            f"bilateral_slice needs a grid (n, c, d, i, j) and a guide (n, h, w), found {show_shape(grid)} and"
            f" {show_shape(guide)}"
        )
    for axis in (2, 3, 4):
        rules.check_nonempty(grid, axis, "bilateral_slice")
    return (grid[0], grid[1], guide[1], guide[2])


def _grid_places(count: int, extent: int, dtype: np.dtype[np.generic]) -> list[tuple[Tensor, Tensor]]:
    """Along a spatial axis of the grid: (index, weight) of both neighbours of each pixel's centre."""
    places = (np.arange(count) + 0.5) * (extent / count) - 0.5
    below = np.floor(places)
    share = (places - below).astype(dtype)
    return [
        (np.clip(below, 0, extent - 1).astype(np.int32), (1 - share).astype(dtype)),
        (np.clip(below + 1, 0, extent - 1).astype(np.int32), share),
    ]


@expansion(
    relation=Relation("T:float, T -> T", _slice_shape),
    sampler=cases(case((1, 2, 3, 2, 2), (1, 4, 3)), case((2, 1, 2, 1, 3), (2, 2, 3)), low=0.03, high=0.97),
)
def bilateral_slice(grid: Value, guide: Value) -> Value:
    """A slice of a bilateral grid: linear interpolation at each pixel's place, and at the depth that the guide, in [0, 1],
    gives (Chen, Paris, Durand, 2007). Cell k of m along an axis has its centre at (k + 1/2) / m; beyond the outer centres
    the outer cells hold. grid: (T float, (n, c, d, i, j)), guide: (T, (n, h, w)) -> (T, (n, c, h, w)).

    >>> relay.bilateral_slice(np.float32([0, 4]).reshape(1, 1, 2, 1, 1), np.float32([[[0.5]]]))
    array([[[[2.]]]], dtype=float32)
    """
    value = wide(grid)
    _, _, depth, height, width = (known(dim) if i > 1 else dim for i, dim in enumerate(grid.shape))
    assert isinstance(depth, int) and isinstance(height, int) and isinstance(width, int)
    rows, columns = known(guide.shape[1]), known(guide.shape[2])
    place = _finite(wide(guide) * float(depth) - 0.5, -1.0, float(depth))
    corners: list[tuple[Value, Value, Value | None]] = []
    dtype = value.base.dtype
    for (level, level_weight, _), (row, row_weight), (column, column_weight) in itertools.product(
        _neighbours(place, depth), _grid_places(rows, height, dtype), _grid_places(columns, width, dtype)
    ):
        flat = (row[:, None] * width + column[None, :]).astype(np.int32)
        index = (level * (height * width)).op("add", flat)
        corners.append((index, level_weight.op("multiply", row_weight[:, None] * column_weight[None, :]), None))
    return like(_gathered(value, corners), grid)
