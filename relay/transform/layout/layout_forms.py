"""Layout forms of tensors: the same elements with the axes in another order, or in blocks.

A form is a text in the notation of `layout_transform`, with the letters A, B, C, .. for the axes as they were: `ACDB`
has the second axis last, and `ABCD16b` has it in blocks of 16, within which it is last.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from relay.ir.dims import multiply
from relay.ir.types import Dim, Shape
from relay.operator import Value, lookup
from relay.typecheck.shape_rules import axes_of


def identity(rank: int) -> str:
    """The form of a tensor as it was."""
    return "".join(map(_letter, range(rank)))


def of_parts(parts: Sequence[tuple[int, int]]) -> str:
    """The form with these axes: a number of an axis, and 0, or the size of a block within it."""
    return "".join(f"{block}{_letter(axis).lower()}" if block else _letter(axis) for axis, block in parts)


def parts_of(form: str) -> list[tuple[int, int]]:
    """The axes of a form, as `of_parts` takes them."""
    return [(ord(name.upper()) - ord("A"), size) for name, size in axes_of(form)]


def blocks_of(form: str) -> dict[int, int]:
    """The sizes of the blocks of those axes that are in blocks."""
    return {axis: block for axis, block in parts_of(form) if block}


def rank_of(form: str) -> int:
    """The number of axes that the tensor had."""
    return sum(not block for _, block in parts_of(form))


def shape_in(form: str, shape: Shape) -> Shape:
    """The shape of a tensor in a form."""
    blocks = blocks_of(form)
    return tuple(block or _block_count(shape[axis], blocks.get(axis, 1)) for axis, block in parts_of(form))


def renumber_axes(form: str, new: Callable[[int], int | None]) -> str:
    """The form with other numbers for its axes; without those for which there is none."""
    return of_parts([(place, block) for axis, block in parts_of(form) if (place := new(axis)) is not None])


def with_blocks(form: str, change: Callable[[int, int], int]) -> str:
    """The form with other sizes for its blocks, by axis and size."""
    return of_parts([(axis, change(axis, block) if block else 0) for axis, block in parts_of(form)])


def form_between(old: Sequence[str | None], new: Sequence[str | None], shape: Shape, largest: int) -> str:
    """The form of a tensor whose axes had the letters `old` and have the letters `new`: small ones are blocks, of at
    most `largest` elements, of the axes with the capitals. Raises ValueError for blocks of an axis whose size is no
    number."""
    axes = {letter: axis for axis, letter in enumerate(old) if letter is not None}
    parts = []
    for letter in new:
        assert letter is not None
        if letter in axes:
            parts.append((axes[letter], 0))
        else:
            axis = axes[letter.upper()]
            parts.append((axis, _block(shape[axis], largest)))
    return of_parts(parts)


def _block(dim: Dim, largest: int) -> int:
    """The largest block of at most this many elements that an axis is a multiple of."""
    if not isinstance(dim, int):
        raise ValueError(f"{dim} is not a number")
    return next((size for size in range(min(largest, dim), 0, -1) if dim % size == 0), 1)


def transform_constant(array: np.ndarray, source: str, target: str) -> np.ndarray:
    """A constant in another form."""
    made = lookup("layout_transform").reference(array, source=source, target=target)
    return np.ascontiguousarray(made)


def transform(value: Value, source: str, target: str) -> Value:
    """A tensor in another form."""
    order = [axis for axis, block in parts_of(source) if not block]  # by which the axes get new letters
    source, target = renumber_axes(source, order.index), renumber_axes(target, order.index)
    sizes = [dim for dim in value.shape if dim != 1]
    # Of one axis nothing is moved; whether a data-dependent size is kept, a reshape does not see.
    if (len(sizes) <= 1 or _merged_parts(source) == _merged_parts(target)) and all(
        isinstance(dim, int) for dim in sizes
    ):
        whole: list[Dim] = [1] * len(order)
        for (axis, _), dim in zip(parts_of(source), value.shape, strict=True):
            whole[axis] = multiply(whole[axis], dim)
        return value.op("reshape", shape=shape_in(target, tuple(whole)))
    if blocks_of(source) or blocks_of(target):
        return value.op("layout_transform", source=source, target=target)
    return value.op("transpose", axes=tuple(axis for axis, _ in parts_of(target)))


def slice_bounds(form: str, bounds: Mapping[str, Any]) -> dict[str, tuple[Any, ...]] | None:
    """The `begin`, `end` and `strides` of a slice of a tensor in a form; None if it cuts blocks."""
    blocks = blocks_of(form)
    found: dict[str, list[Dim]] = {"begin": [], "end": [], "strides": []}
    for axis, block in parts_of(form):
        begin, end, stride = (bounds[name][axis] for name in found)
        if block:
            place: tuple[Dim, Dim, Dim] = (0, block, 1)
        elif axis not in blocks:
            place = begin, end, stride
        elif isinstance(begin, int) and isinstance(end, int) and stride == 1 and not (begin % blocks[axis]):
            if end % blocks[axis]:
                return None
            place = begin // blocks[axis], end // blocks[axis], 1
        else:
            return None
        for name, number in zip(found, place, strict=True):
            found[name].append(number)
    return {name: tuple(numbers) for name, numbers in found.items()}


def _merged_parts(form: str) -> list[tuple[int, int]]:
    """The parts of a form; an axis whose blocks follow each other is whole."""
    parts: list[tuple[int, int]] = []
    for axis, block in parts_of(form):
        if not (block and parts and parts[-1] == (axis, 0)):
            parts.append((axis, block))
    return parts


def _block_count(dim: Dim, block: int) -> Dim:
    if block == 1:
        return dim
    assert isinstance(dim, int)
    return dim // block


def _letter(axis: int) -> str:
    return chr(ord("A") + axis)
