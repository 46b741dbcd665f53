"""Axis-name rules: the names of an operator's result axes, next to the shape rules (`relay.operator.axes`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from relay.ir.axes import AxisNames
from relay.ir.types import Shape
from relay.operator.axes import AxesDiffer, of_shapes
from relay.typecheck.dims import follows_equal, normalize_axes, normalize_axis


def aligned_names(*names: AxisNames, **attributes: object) -> AxisNames:
    """Aligned at the last axes, as in broadcasting."""
    rank = max(map(len, names), default=0)
    result: list[str | None] = [None] * rank
    given: list[int] = [0] * rank
    for operand, own in enumerate(names):
        for axis, name in enumerate(own, rank - len(own)):
            if name is None:
                continue
            if result[axis] not in (None, name):
                raise AxesDiffer(given[axis], operand, own, names[given[axis]])
            if result[axis] is None:
                result[axis], given[axis] = name, operand
    return tuple(result)


def right_aligned_names(names: AxisNames, *, shape: object, **attributes: object) -> AxisNames:
    """The axes of a given shape, aligned at the last one."""
    rank = len(shape) if isinstance(shape, tuple | list) else 1
    return (*(None,) * (rank - len(names)), *names)[-rank:] if rank else ()


def first_operand(names: AxisNames, *others: AxisNames, **attributes: object) -> AxisNames:
    """The first operand's."""
    return names


def reduced_names(names: AxisNames, *, axis: Any = None, keepdims: bool = False, **attributes: object) -> AxisNames:
    """Without the reduced axes; with `keepdims` they keep their names."""
    axes = normalize_axes(axis, len(names))
    return names if keepdims else tuple(name for i, name in enumerate(names) if i not in axes)


def check_contracted_axes(left: AxisNames, right: AxisNames, inner_left: int, inner_right: int) -> None:
    """Two axes that are summed over together."""
    names = left[inner_left], right[inner_right]
    if None not in names and names[0] != names[1]:
        raise AxesDiffer(0, 1, right, left)


def matmul(left: AxisNames, right: AxisNames) -> AxisNames:
    """(*b, m, k), (*b, k, n) -> (*b, m, n)"""
    check_contracted_axes(left, right, len(left) - 1, max(len(right) - 2, 0))
    rows = left[-2:-1] if len(left) > 1 else ()
    columns = right[-1:] if len(right) > 1 else ()
    return (*aligned_names(left[:-2], right[:-2]), *rows, *columns)


def dense(x: AxisNames, weight: AxisNames) -> AxisNames:
    """(*b, k), (n, k) -> (*b, n)"""
    check_contracted_axes(x, weight, len(x) - 1, 1)
    return (*x[:-1], weight[0])


def sequence_names(names: Sequence[AxisNames], **attributes: object) -> AxisNames:
    """Several tensors with the same axes, as concatenated ones."""
    return aligned_names(*names)


def stacked_names(names: Sequence[AxisNames], *, axis: int = 0, **attributes: object) -> AxisNames:
    """The same axes, and a new one without a name."""
    rest = aligned_names(*names)
    position = normalize_axis(axis, len(rest) + 1)
    return (*rest[:position], None, *rest[position:])


def names_with_new_last(names: AxisNames, **attributes: object) -> AxisNames:
    """A new last axis."""
    return (*names, None)


def expanded_names(names: AxisNames, *, axis: int | Sequence[int]) -> AxisNames:
    """New axes without names; `axis` counts in the result."""
    given = (axis,) if isinstance(axis, int) else tuple(axis)
    places = normalize_axes(given, len(names) + len(given))
    rest = iter(names)
    return tuple(None if i in places else next(rest) for i in range(len(names) + len(given)))


@of_shapes
def squeezed_names(
    names: AxisNames, *, shapes: Sequence[Shape], result: Callable[[], Shape], axis: Any = None
) -> AxisNames:
    """Without the axes of extent 1, or the given ones."""
    if axis is not None:
        return reduced_names(names, axis=axis)
    return tuple(name for name, dim in zip(names, shapes[0], strict=True) if follows_equal(dim, 1) is not True)


@of_shapes
def reshaped_names(
    names: AxisNames, *, shapes: Sequence[Shape], result: Callable[[], Shape], **attributes: object
) -> AxisNames:
    """The first axes as long as they have the same extents, and so the last ones: reshaping leaves those what they are.
    The axes between are new. Of equal extents that are written out, as those of a square, nobody knows whether they are
    meant in the same order, so they are new, too."""
    old, new = shapes[0], result()
    written = attributes.get("shape")
    is_written = isinstance(written, tuple) and -1 not in written and len(old) == len(new)
    if is_written and _equal_at_start(old, new, len(old)) == len(old):
        return tuple(None if _is_repeated(old, axis) else name for axis, name in enumerate(names))
    least = min(len(old), len(new))
    before = _equal_at_start(old, new, least)
    behind = _equal_at_start(old[before:][::-1], new[before:][::-1], least - before)
    return (*names[:before], *(None,) * (len(new) - before - behind), *names[len(names) - behind :])


def _is_repeated(shape: Shape, axis: int) -> bool:
    """True if another axis has the same extent."""
    return any(other != axis and follows_equal(dim, shape[axis]) is True for other, dim in enumerate(shape))


def _equal_at_start(old: Shape, new: Shape, most: int) -> int:
    return next((i for i in range(most) if follows_equal(old[i], new[i]) is not True), most)


@of_shapes
def gathered_names(
    names: AxisNames, indices: AxisNames, *, shapes: Sequence[Shape], result: Callable[[], Shape], **attributes: object
) -> AxisNames:
    """(*a, *b), (*s, the number of axes a) -> (*s, *b)"""
    return (*indices[:-1], *names[len(names) - (len(result()) - len(indices) + 1) :])


def second_operand(names: AxisNames, other: AxisNames, **attributes: object) -> AxisNames:
    """The second operand's."""
    return other


def diagonal(names: AxisNames, **attributes: object) -> AxisNames:
    """The last two axes become one that is neither."""
    return (*names[:-2], None)


def embedding_names(names: AxisNames, **attributes: object) -> AxisNames:
    """The last axis becomes two that are neither."""
    return (*names[:-1], None, None)


def window_names(names: AxisNames, *, axes: object, **attributes: object) -> AxisNames:
    """The same axes, and a new one in each window for each axis that windows slide along."""
    return (*names, *(None,) * (1 if isinstance(axes, int) else len(axes)))  # type: ignore[arg-type]


def tiled_names(names: AxisNames, *, reps: int | Sequence[int]) -> AxisNames:
    """New axes at the front, where there are more numbers than axes."""
    count = 1 if isinstance(reps, int) else len(reps)
    return (*(None,) * (count - len(names)), *names)


def repeated_names(names: AxisNames, *, repeats: int, axis: int | None = None) -> AxisNames | None:
    """The same axes; without an axis all elements are in one."""
    return None if axis is None else names
