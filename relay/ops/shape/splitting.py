"""Operators of several results: tensors cut into parts, and vectors spread over a grid."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from relay.errors import ShapeError
from relay.ir import dims as arithmetic
from relay.ir.types import Dim, show_shape
from relay.ops.notation import Value, expansion
from relay.ops.samples import case, cases
from relay.typecheck.dims import constant_dim, equal, is_dim, needs_at_least, normalize_axis, resolve

_MOST = 1 << 16  # parts; each is a value of its own


def _bounds(extent: Dim, indices_or_sections: Dim | tuple[Dim, ...], axis: int, x: Value) -> list[Dim]:
    """The starts of the parts, and the extent, after the last one."""
    sections = constant_dim(indices_or_sections) if is_dim(indices_or_sections) else indices_or_sections  # type: ignore[arg-type]
    if isinstance(sections, int) and not isinstance(sections, bool) and sections > 0:
        if not equal(arithmetic.modulo(extent, sections), 0):
            raise ShapeError(f"axis {axis} of {show_shape(x.shape)} cannot be split into {sections} equal parts")
        if sections > _MOST:
            raise ShapeError(f"a tensor is split into at most {_MOST} parts, found {sections}")
        part = arithmetic.floor_divide(extent, sections)
        return [arithmetic.multiply(part, i) for i in range(sections + 1)]
    if not isinstance(sections, tuple) or not all(map(is_dim, sections)):
        raise ShapeError(
            f"indices_or_sections is a positive number of equal parts, or the places to cut at, found {sections!r}"
        )
    return [0, *(_place(extent, i) for i in sections), extent]


def _place(extent: Dim, index: Dim) -> Dim:
    """The place at which Python's slices put an index."""
    if not isinstance(index, int):
        return index if needs_at_least(extent, index) else extent
    if isinstance(extent, int):
        return slice(index, None).indices(extent)[0]
    if not needs_at_least(extent, abs(index)):
        return extent if index > 0 else 0
    return index if index >= 0 else arithmetic.add(extent, index)


def _is_before(begin: Dim, end: Dim) -> bool:
    return needs_at_least(end, begin)


@expansion(
    sampler=cases(
        case((6,), indices_or_sections=3),
        case((2, 6), indices_or_sections=2, axis=-1),
        case((2, 7), indices_or_sections=(2, 3), axis=1),
        case((5, 2), indices_or_sections=(-2, 9, 1)),
        case((0, 3), indices_or_sections=2),
        case((4, 0), indices_or_sections=2),
        case((2, 1, 3, 1, 2, 2), indices_or_sections=(1,), axis=2),
    ),
    sizes=frozenset({"indices_or_sections"}),
)
def split(x: Value, indices_or_sections: int | tuple[int, ...], axis: int = 0) -> tuple[Value, ...]:
    """A tensor's parts along an axis: this many of equal extent, or those between the indices at which it is cut, as
    NumPy's split. x: (T, (*a, n, *b)) -> a tuple of (T, (*a, m, *b)).

    >>> relay.split(np.int32([1, 2, 3, 4]), 2)
    (Array([1, 2], dtype=int32), Array([3, 4], dtype=int32))
    >>> relay.split(np.int32([1, 2, 3, 4]), (1,))
    (Array([1], dtype=int32), Array([2, 3, 4], dtype=int32))
    """
    position = normalize_axis(axis, x.ndim)
    bounds = _bounds(resolve(x.shape[position]), indices_or_sections, axis, x)
    parts = []
    for begin, end in itertools.pairwise(bounds):
        begins: list[Dim] = [0] * x.ndim
        ends = list(x.shape)
        begins[position], ends[position] = begin, end if _is_before(begin, end) else begin
        parts.append(x.op("strided_slice", begin=tuple(begins), end=tuple(ends), strides=(1,) * x.ndim))
    return tuple(parts)


@expansion(
    sampler=cases(
        case((3,), (2,)),
        case((3,), (2,), indexing="ij"),
        case((3,), (2,), (1,)),
        case((4,)),
        case((), (3,)),
        case((0,), (2,), indexing="ij"),
        case((2,), (1,), (2,), (1,), (2,), (1,), indexing="ij"),
    )
)
def meshgrid(*xs: Value, indexing: str = "xy") -> tuple[Value, ...]:
    """Coordinates of a grid from those of its axes: each vector's elements along an axis of its own, repeated along the
    others. With indexing="xy" the first two axes are exchanged, as NumPy has them. xs: n vectors, or numbers,
    (T_i, (d_i,)) -> n tensors (T_i, (d_1, .., d_n)).

    >>> relay.meshgrid(np.int32([1, 2, 3]), np.int32([7, 8]))[0]
    Array([[1, 2, 3],
           [1, 2, 3]], dtype=int32)
    """
    if indexing not in ("xy", "ij"):
        raise ShapeError(f"the indexing of meshgrid is 'xy' or 'ij', found {indexing!r}")
    for x in xs:
        if x.ndim > 1:
            raise ShapeError(f"meshgrid takes vectors, found the shape {show_shape(x.shape)}")
    order = list(range(len(xs)))
    if indexing == "xy" and len(xs) > 1:
        order[:2] = [1, 0]
    extents: Sequence[Dim] = [x.shape[0] if x.ndim else 1 for x in xs]
    shape = tuple(extents[i] for i in order)
    grids = []
    for number, x in enumerate(xs):
        own = tuple(extents[i] if i == number else 1 for i in order)
        grids.append(x.op("reshape", shape=own).op("broadcast_to", shape=shape))
    return tuple(grids)
