"""Shape rules of further rearrangements; see `relations` for what a rule is.

swapaxes, moveaxis    the same dims in another order
flip, roll            s -> s
tile, repeat          dims times a number
pad                   dims plus what is added before and after
flatten               dims start .. end become their product
reshape_codes         0 keeps a dim, -1 is found, -2 keeps all that are left, -3 joins two, -4 splits one into the
                      two numbers after it
layout_transform      dims by letters: capitals are axes, `4c` is a block of 4 of axis C
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from relay.errors import ShapeError
from relay.ir.dims import add, floor_divide, multiply
from relay.ir.types import Dim, Shape, show_shape
from relay.operator.axes import carries, moves
from relay.typecheck import axes as names
from relay.typecheck.dims import (
    equal,
    is_dim,
    needs_at_least,
    normalize_axes,
    normalize_axis,
    product,
    quotient,
    resolve,
)
from relay.typecheck.relations import Axes, reshape

Widths = Dim | tuple[Dim, Dim] | tuple[tuple[Dim, Dim], ...]


# ---- order


def swapped_axes(rank: int, axis1: int, axis2: int) -> tuple[int, ...]:
    """The order of axes with two of them exchanged."""
    order = list(range(rank))
    i, j = normalize_axis(axis1, rank), normalize_axis(axis2, rank)
    order[i], order[j] = order[j], order[i]
    return tuple(order)


def moved_axes(rank: int, source: int | Sequence[int], destination: int | Sequence[int]) -> tuple[int, ...]:
    """The order of axes after `source` have become `destination`, the others in order. Raises ShapeError."""
    before = [normalize_axis(a, rank) for a in ((source,) if isinstance(source, int) else source)]
    after = [normalize_axis(a, rank) for a in ((destination,) if isinstance(destination, int) else destination)]
    if len(before) != len(after) or len(set(before)) != len(before) or len(set(after)) != len(after):
        raise ShapeError(f"the axes {source} cannot become the axes {destination}: name as many, each once")
    order = [axis for axis in range(rank) if axis not in before]
    for place, axis in sorted(zip(after, before, strict=True)):
        order.insert(place, axis)
    return tuple(order)


@moves
def swapaxes(shape: Shape, *, axis1: int, axis2: int) -> Shape:
    """Two axes exchanged."""
    return tuple(shape[axis] for axis in swapped_axes(len(shape), axis1, axis2))


@moves
def moveaxis(shape: Shape, *, source: int | Sequence[int], destination: int | Sequence[int]) -> Shape:
    """Axes at other positions."""
    return tuple(shape[axis] for axis in moved_axes(len(shape), source, destination))


@carries(names.first_operand)
def flip(shape: Shape, *, axis: Axes = None) -> Shape:
    """The same shape; `axis` must name its axes."""
    normalize_axes(axis, len(shape))
    return shape


def shifts(rank: int, shift: Dim | Sequence[Dim], axis: Axes) -> tuple[Any, ...]:
    """The shift of each axis: dims, or in a compute function expressions. Raises ShapeError."""
    axes = (axis,) if isinstance(axis, int) else tuple(axis or ())
    steps = tuple(shift) if isinstance(shift, tuple | list) else (shift,) * len(axes)
    if len(steps) != len(axes):
        raise ShapeError(f"roll needs one shift for each axis, found {shift} for {axis}")
    result: list[Any] = [0] * rank
    for step, position in zip(steps, axes, strict=True):
        result[normalize_axis(position, rank)] += step
    return tuple(result)


@carries(names.first_operand)
def roll(shape: Shape, *, shift: Dim | Sequence[Dim], axis: Axes = None) -> Shape:
    """The same shape."""
    if axis is not None:
        shifts(len(shape), shift, axis)
    elif isinstance(shift, tuple | list):
        raise ShapeError(f"roll without an axis needs one shift, found {shift}")
    return shape


# ---- more of the same


def repetitions(rank: int, reps: Dim | Sequence[Dim]) -> Shape:
    """The number of repetitions along each axis of the result; axes that are missing at the front count as 1. Raises
    ShapeError."""
    given = tuple(reps) if isinstance(reps, tuple | list) else (reps,)
    if not all(is_dim(r) and needs_at_least(r, 0) for r in given):
        raise ShapeError(f"tile needs numbers that are not negative, found {reps}")
    return (1,) * (rank - len(given)) + given


@carries(names.tiled_names)
def tile(shape: Shape, *, reps: Dim | Sequence[Dim]) -> Shape:
    """Each dim times its number; more numbers than axes make new axes at the front."""
    counts = repetitions(len(shape), reps)
    dims = (1,) * (len(counts) - len(shape)) + shape
    return tuple(multiply(resolve(dim), count) for dim, count in zip(dims, counts, strict=True))


@carries(names.repeated_names)
def repeat(shape: Shape, *, repeats: Dim, axis: int | None = None) -> Shape:
    """One dim times a number; without an axis all elements in one."""
    if not is_dim(repeats) or not needs_at_least(repeats, 0):
        raise ShapeError(f"repeat needs a number that is not negative, found {repeats}")
    if axis is None:
        return (multiply(product(shape), repeats),)
    position = normalize_axis(axis, len(shape))
    return (*shape[:position], multiply(resolve(shape[position]), repeats), *shape[position + 1 :])


def pad_widths(rank: int, widths: Widths) -> tuple[tuple[Any, Any], ...]:
    """The numbers of elements before and after each axis: dims, or in a compute function expressions. Raises
    ShapeError."""
    pairs: object = widths
    if not isinstance(pairs, tuple):
        pairs = ((pairs, pairs),) * rank
    elif len(pairs) == 2 and not any(isinstance(w, tuple) for w in pairs):
        pairs = (pairs,) * rank
    if not isinstance(pairs, tuple) or len(pairs) != rank:
        raise ShapeError(f"pad needs (before, after) for each of the {rank} axes, found {widths}")
    for pair in pairs:
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise ShapeError(f"pad needs (before, after) for each axis, found {widths}")
    return pairs


@carries(names.first_operand)
def pad(shape: Shape, *, widths: Widths, mode: str = "constant", value: float = 0) -> Shape:
    """Each dim plus what is added. Edges and reflections need elements to repeat."""
    pairs = pad_widths(len(shape), widths)
    if mode not in ("constant", "edge", "reflect"):
        raise ShapeError(f"the mode of pad is 'constant', 'edge' or 'reflect', found {mode!r}")
    for axis, (dim, pair) in enumerate(zip(shape, pairs, strict=True)):
        if not all(is_dim(width) and needs_at_least(width, 0) for width in pair):
            raise ShapeError(f"pad needs (before, after), which are not negative, for each axis, found {widths}")
        if mode != "constant" and pair != (0, 0) and equal(dim, 0):
            raise ShapeError(f"axis {axis} of the shape {show_shape(shape)} is empty: it has no {mode} to repeat")
    return tuple(add(resolve(dim), add(before, after)) for dim, (before, after) in zip(shape, pairs, strict=True))


# ---- reshaping


@carries(names.reshaped_names)
def flatten(shape: Shape, *, start_axis: int = 0, end_axis: int = -1) -> Shape:
    """The dims from one axis to another become their product; rank 0 becomes (1,)."""
    if not shape:
        return (1,)
    start, end = normalize_axis(start_axis, len(shape)), normalize_axis(end_axis, len(shape))
    if start > end:
        raise ShapeError(f"flatten needs axes in order, found {start_axis} and {end_axis}")
    joined = shape[start] if start == end else product(shape[start : end + 1])
    return (*shape[:start], joined, *shape[end + 1 :])


def decoded_shape(shape: Shape, codes: Sequence[int]) -> Shape:
    """The shape that codes stand for; at most one dim is -1. Raises ShapeError."""
    result: list[Dim] = []
    left, given = list(shape), list(codes)

    def take(code: int) -> Dim:
        if not left:
            raise ShapeError(f"the code {code} of {tuple(codes)} finds no dim left in the shape {show_shape(shape)}")
        return left.pop(0)

    while given:
        code = given.pop(0)
        if code > 0:
            result.append(code)
            if left:
                left.pop(0)
        elif code == 0:
            result.append(take(code))
        elif code == -1:
            result.append(-1)
            if left:
                left.pop(0)
        elif code == -2:
            result += left
            left = []
        elif code == -3:
            result.append(product((take(code), take(code))))
        elif code == -4:
            if len(given) < 2:
                raise ShapeError(f"the code -4 of {tuple(codes)} needs two numbers after it")
            result += _split(take(code), given.pop(0), given.pop(0), codes)
        else:
            raise ShapeError(f"{code} is not a code of reshape_codes; they are 0, -1, -2, -3 and -4")
    return tuple(result)


def _split(extent: Dim, first: int, second: int, codes: Sequence[int]) -> tuple[Dim, Dim]:
    found: tuple[Dim | None, Dim | None] = first, second
    if first == -1 and second > 0:
        found = quotient(extent, second), second
    elif second == -1 and first > 0:
        found = first, quotient(extent, first)
    left, right = found
    if left is None or right is None or first < -1 or not equal(multiply(left, right), extent):
        raise ShapeError(f"the code -4 of {tuple(codes)} cannot split the extent {extent} into {first} and {second}")
    return left, right


@carries(names.reshaped_names)
def reshape_codes(shape: Shape, *, codes: Sequence[int]) -> Shape:
    """The shape that the codes stand for, with as many elements."""
    return reshape(shape, shape=decoded_shape(shape, codes))


# ---- layouts


def axes_of(layout: str) -> list[tuple[str, int]]:
    """The axes of a layout in order: a capital with 0, or the capital of a block with its size. Raises ShapeError."""
    found = re.findall(r"([A-Z])|([0-9]+)([a-z])", layout)
    axes = [(capital, 0) if capital else (letter.upper(), int(size)) for capital, size, letter in found]
    text = "".join(name if size == 0 else f"{size}{name.lower()}" for name, size in axes)
    capitals = [name for name, size in axes if size == 0]
    blocks = [name for name, size in axes if size]
    if text != layout or len(set(capitals)) != len(capitals) or len(set(blocks)) != len(blocks):
        raise ShapeError(f"{layout!r} is not a layout: it has capitals for axes, and a number and letter for a block")
    if not set(blocks) <= set(capitals) or any(size == 0 and n not in capitals for n, size in axes):
        raise ShapeError(f"the layout {layout!r} has a block of an axis that it does not have")
    return axes


def layout_steps(shape: Shape, source: str, target: str) -> tuple[tuple[int, ...], Shape, tuple[int, ...], Shape]:
    """The steps from one layout to another: permute the axes, reshape, permute again, which gives the last shape.
    Raises ShapeError."""
    before, after = axes_of(source), axes_of(target)
    if {n for n, size in before if not size} != {n for n, size in after if not size}:
        raise ShapeError(f"the layouts {source!r} and {target!r} have different axes")
    if len(shape) != len(before):
        raise ShapeError(f"the layout {source!r} has {len(before)} axes, the shape {show_shape(shape)} {len(shape)}")
    blocks = dict(_sizes(before)), dict(_sizes(after))
    extent: dict[str, Dim] = {}
    for (name, size), dim in zip(before, map(resolve, shape), strict=True):
        if size and not equal(dim, size):
            raise ShapeError(f"the blocks of axis {name} in {source!r} have {size} elements, found {dim}")
        extent[name] = multiply(extent.get(name, 1), dim)
    # Each axis as (outer, inner): the same for both layouts where they have the same block, otherwise through the whole
    whole = sorted({n for n, _ in before}, key=[n for n, s in before if not s].index)
    for name in whole:
        for sizes, layout in zip(blocks, (source, target), strict=True):
            if quotient(extent[name], sizes.get(name, 1)) is None:
                raise ShapeError(
                    f"the extent {extent[name]} of axis {name} is not a multiple "
                    f"of the block {sizes[name]} in {layout!r}"
                )
    places = [(name, bool(size)) for name, size in before]
    order = [i for name in whole for i in _positions(places, name)]
    split: list[Dim] = []
    at: dict[tuple[str, bool], int] = {}
    for name in whole:
        size = blocks[1].get(name, 1)
        at[name, False] = len(split)
        split.append(floor_divide(extent[name], size))
        if name in blocks[1]:
            at[name, True] = len(split)
            split.append(size)
    permutation = tuple(at[name, bool(size)] for name, size in after)
    return tuple(order), tuple(split), permutation, tuple(split[i] for i in permutation)


def _sizes(axes: Sequence[tuple[str, int]]) -> list[tuple[str, int]]:
    return [(name, size) for name, size in axes if size]


def _positions(places: Sequence[tuple[str, bool]], name: str) -> list[int]:
    return [places.index((name, block)) for block in (False, True) if (name, block) in places]


def transformed_layouts(*, source: str, target: str) -> tuple[tuple[str | None, ...], ...]:
    """The names of the axes before and after; an axis of blocks has none."""
    return tuple(tuple(None if size else axis for axis, size in axes_of(layout)) for layout in (source, target))


def layout_transform(shape: Shape, *, source: str, target: str) -> Shape:
    """The dims of the same elements in another layout."""
    return layout_steps(shape, source, target)[3]
