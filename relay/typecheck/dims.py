"""Arithmetic over dims that may not be known yet.

A dim is a number, `ANY`, or a variable. What follows from numbers is decided; what a variable leaves open raises
`Undetermined` with the solver variables to wait for.

    d = d        for the same variable or number; ANY = ANY is open
    product(d..) = 0 if any d is 0, otherwise open while any d is
"""

from __future__ import annotations

from collections.abc import Sequence

from relay.errors import ShapeError
from relay.ir.types import ANY, Dim, Shape, Unknown, prune
from relay.operator.relation import Undetermined


def resolve(dim: Dim) -> Dim:
    """The dim itself, or what a solver variable was found to be."""
    return prune(dim)  # type: ignore[return-value]


def resolve_shape(shape: Shape) -> Shape:
    """`resolve` for every dim."""
    return tuple(resolve(dim) for dim in shape)


def undetermined(*dims: Dim) -> Undetermined:
    """The exception that waits for those of these dims that the solver may still find."""
    return Undetermined(*(dim for dim in map(resolve, dims) if isinstance(dim, Unknown)))


def known(dim: Dim) -> int:
    """The number that a dim is. Raises Undetermined."""
    dim = resolve(dim)
    if isinstance(dim, int):
        return dim
    raise undetermined(dim)


def numbers(shape: Sequence[Dim]) -> tuple[int, ...]:
    """The numbers that dims are. Raises Undetermined."""
    return tuple(map(known, shape))


def equal(left: Dim, right: Dim) -> bool:
    """Whether two dims are equal. Raises Undetermined where that depends on a variable or on `ANY`."""
    left, right = resolve(left), resolve(right)
    if isinstance(left, int) and isinstance(right, int):
        return left == right
    if left is right and left is not ANY:
        return True
    raise undetermined(left, right)


def equal_shapes(left: Shape, right: Shape) -> bool:
    """Whether two shapes are equal; numbers that differ decide even where variables are open. Raises Undetermined."""
    if len(left) != len(right):
        return False
    open_dims: list[Dim] = []
    for a, b in zip(left, right, strict=True):
        try:
            if not equal(a, b):
                return False
        except Undetermined:
            open_dims += [a, b]
    if open_dims:
        raise undetermined(*open_dims)
    return True


def product(shape: Shape) -> int:
    """The number of elements of a shape. Raises Undetermined."""
    shape = resolve_shape(shape)
    result, open_dims = 1, []
    for dim in shape:
        if isinstance(dim, int):
            result *= dim
        else:
            open_dims.append(dim)
    if open_dims and result:
        raise undetermined(*open_dims)
    return result


def normalise_axis(axis: int, rank: int) -> int:
    """The axis counted from 0. Raises ShapeError if a tensor of this rank has none such."""
    if isinstance(axis, bool) or not isinstance(axis, int):
        raise ShapeError(f"an axis must be an integer, found {axis!r}")
    if not -rank <= axis < rank:
        raise ShapeError(f"axis {axis} is out of range for a tensor of rank {rank}")
    return axis % rank


def normalise_axes(axis: int | Sequence[int] | None, rank: int) -> tuple[int, ...]:
    """The axes counted from 0, ascending; None means all. Raises ShapeError for bad or repeated axes."""
    if axis is None:
        return tuple(range(rank))
    axes = [normalise_axis(a, rank) for a in ((axis,) if isinstance(axis, int) else axis)]
    if len(set(axes)) != len(axes):
        raise ShapeError(
            f"the axes {tuple(axis) if not isinstance(axis, int) else axis} of a tensor of rank {rank} repeat"
        )
    return tuple(sorted(axes))
