"""Shape rules: from the operands' shapes and the attributes to the result's shape.

Each rule gets shapes whose rank is known. With numbers as dims a rule decides: it returns the shape or raises
ShapeError, without a span, which the checker adds. With symbolic dims it asks the questions of `relay.typecheck.dims`;
where a variable leaves the answer open they raise Undetermined.

    same        s, s, ..         -> s
    broadcast   s1, s2, ..       -> aligned at the last axis; 1 stretches to any dim, other dims must be equal
    reduce      s                -> s without the axes, or with 1 in their place (keepdims)
    matmul      (*b1, m, k), (*b2, k, n) -> (*broadcast(b1, b2), m, n);  a vector on either side loses its axis
    reshape     s, t             -> t, with one -1 found such that product(s) = product(t)
    take        (*a, n, *b), s   -> (*a, *s, *b)
    slices      along each axis of extent n: (begin, end, stride) as `slice(..).indices(n)` gives them
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from relay.errors import ShapeError
from relay.ir.dims import add, floor_divide, subtract, total
from relay.ir.sizes.facts import EQUAL, DimConstraint, mentions_made
from relay.ir.types import ANY, Dim, Shape, show_shape
from relay.operator.axes import carries, moves
from relay.operator.relation import Undetermined
from relay.typecheck import axes as names
from relay.typecheck.dims import (
    constant_dim,
    equal,
    equal_shapes,
    follows_equal,
    is_dim,
    likely_equal,
    needs_at_least,
    needs_elements,
    needs_equal,
    normalize_axes,
    normalize_axis,
    product,
    quotient,
    resolve,
    resolve_shape,
    undetermined_error,
)

Axes = int | Sequence[int] | None


def _shape_list(shapes: Sequence[Shape]) -> str:
    words = [show_shape(shape) for shape in shapes]
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


# ---- elementwise


@carries(names.aligned_names)
def same_shape(shape: Shape, *others: Shape, **attributes: object) -> Shape:
    """All shapes are equal, and the result's is the same."""
    for other in others:
        if not equal_shapes(shape, other):
            raise ShapeError(
                f"the shapes {_shape_list((shape, *others))} must be equal", notes=_difference((shape, other))
            )
    return shape


@carries(names.aligned_names)
def broadcast(*shapes: Shape, **attributes: object) -> Shape:
    """The shapes aligned at their last axes, where a dim of 1 stretches to any other."""
    rank = max(len(shape) for shape in shapes)
    result: list[Dim] = []
    waiting: list[Dim] = []
    open_question: DimConstraint | None = None
    for axis in range(-rank, 0):
        dims = [resolve(shape[axis]) for shape in shapes if len(shape) >= -axis]
        if type(dims[0]) is int and all(type(dim) is int and dim == dims[0] for dim in dims):
            result.append(dims[0])
            continue
        dim, open_dims = _broadcast_dim(dims, shapes)
        result.append(dim)
        waiting += open_dims
        if open_dims and open_question is None:
            different = [d for d in dims if d != 1 and not follows_equal(d, dim)]
            open_question = DimConstraint(dim, EQUAL, different[0]) if different else None
    if waiting:  # only after all axes, so that a clash in numbers is found first
        raise undetermined_error(*waiting, question=open_question)
    return tuple(result)


def _broadcast_dim(dims: Sequence[Dim], shapes: Sequence[Shape]) -> tuple[Dim, Sequence[Dim]]:
    """The dim of one axis, and the dims on which it still depends."""
    wide: list[Dim] = []
    for dim in dims:
        if dim != 1 and not any(follows_equal(dim, other) for other in wide):
            wide.append(dim)
    if not wide:
        return 1, ()
    if len(wide) > 1 and ANY in wide:
        return wide[0], wide
    numbers = [dim for dim in wide if isinstance(dim, int)]
    if len(numbers) > 1:
        raise _not_broadcast(shapes)
    first = (numbers or wide)[0]
    try:
        for dim in wide:
            if dim is not first and not _agree(first, dim):
                if equal(dim, 1):
                    continue
                if not equal(first, 1):
                    raise _not_broadcast(shapes)
                first = dim
    except Undetermined:
        return first, [dim for dim in wide if not isinstance(dim, int)]
    return first, ()


def _not_broadcast(shapes: Sequence[Shape]) -> ShapeError:
    message = f"the shapes {_shape_list(shapes)} cannot be broadcast together"
    return ShapeError(message, notes=_difference(shapes, at_the_end=True))


def _difference(shapes: Sequence[Shape], but: int | None = None, at_the_end: bool = False) -> tuple[str, ...]:
    """The first axis at which shapes have different extents, in words. `but`: one that does not matter; `at_the_end`:
    they are aligned there, and 1 stretches."""
    ranks = dict.fromkeys(map(len, shapes))
    if len(ranks) > 1 and not at_the_end:
        return (f"the ranks are {' and '.join(map(str, ranks))}",)
    for axis in range(-1, -max(ranks) - 1, -1):
        position = axis if len(ranks) > 1 else axis + max(ranks)
        dims = dict.fromkeys(resolve(shape[axis]) for shape in shapes if len(shape) >= -axis)
        if at_the_end:
            dims.pop(1, None)
        if len(dims) > 1 and position != but:
            return (f"axis {position} is {' and '.join(map(str, dims))}",)
    return ()


def _agree(left: Dim, right: Dim) -> bool:
    """True if two dims are equal. Where only the sizes of a call can decide, inequality is not assumed: it may be
    enough that one is 1."""
    return equal(left, right) if likely_equal(left, right) or isinstance(left, int) else False


@carries(names.right_aligned_names)
def broadcast_to(source: Shape, *, shape: Sequence[Dim] | Dim) -> Shape:
    """`source` stretched to `shape`."""
    target = literal_shape(shape)
    if not _stretches(source, target):
        raise ShapeError(f"the shape {show_shape(source)} cannot be broadcast to {show_shape(target)}")
    return target


@carries(names.right_aligned_names)
def sum_to(source: Shape, *, shape: Sequence[Dim] | Dim) -> Shape:
    """`source` summed back to `shape`, from which it could have been broadcast."""
    target = literal_shape(shape)
    if not _stretches(target, source):
        raise ShapeError(
            f"the shape {show_shape(source)} cannot be summed to {show_shape(target)}, which does not broadcast to it"
        )
    return target


def _stretches(source: Shape, target: Shape) -> bool:
    if len(source) > len(target):
        return False
    waiting: list[Dim] = []
    for dim, wanted in zip(reversed(source), reversed(target), strict=False):
        try:
            if resolve(dim) != 1 and not (likely_equal(dim, wanted) and equal(dim, wanted)) and not equal(dim, 1):
                return False
        except Undetermined:
            waiting += [dim, wanted]
    if waiting:
        raise undetermined_error(*waiting, question=DimConstraint(waiting[0], EQUAL, waiting[1]))
    return True


def literal_shape(shape: object) -> Shape:
    """A shape given as an attribute: a tuple of sizes, or one size for rank 1. Raises ShapeError."""
    dims = shape if isinstance(shape, tuple | list) else (shape,)
    if not isinstance(shape, tuple | list) and not is_dim(shape):
        raise ShapeError(f"a shape must be a tuple of integers, found {shape!r}")
    for dim in dims:
        if not is_dim(dim) or not needs_at_least(dim, 0):
            raise ShapeError(f"a shape must hold integers that are not negative, found {_shape_text(shape)}")
    return tuple(dims)


def _shape_text(shape: object) -> str:
    is_shape = isinstance(shape, tuple) and all(is_dim(dim) for dim in shape)
    return show_shape(shape) if is_shape else repr(shape)  # type: ignore[arg-type]


# ---- reductions


class EmptyAxis(ShapeError):
    """A reduction over an axis without elements that has no value over no elements."""


@carries(names.reduced_names)
def reduce(shape: Shape, *, axis: Axes = None, keepdims: bool = False) -> Shape:
    """The shape without the reduced axes; with `keepdims` they stay with extent 1."""
    axes = normalize_axes(axis, len(shape))
    if keepdims:
        return tuple(1 if i in axes else dim for i, dim in enumerate(shape))
    return tuple(dim for i, dim in enumerate(shape) if i not in axes)


@carries(names.reduced_names)
def reduce_nonempty(shape: Shape, *, axis: Axes = None, keepdims: bool = False) -> Shape:
    """As `reduce`, for reductions that have no value over no elements: a reduced axis with extent 0 is an error."""
    for position in normalize_axes(axis, len(shape)):
        if follows_equal(shape[position], 0) or not needs_elements(shape[position]):
            raise EmptyAxis(
                f"axis {position} of the shape {show_shape(shape)} is empty: there is no largest or smallest element"
            )
    return reduce(shape, axis=axis, keepdims=keepdims)


@carries(names.reduced_names)
def arg_reduce(shape: Shape, *, axis: int | None = None, keepdims: bool = False) -> Shape:
    """As `reduce_nonempty`, over one axis or all."""
    if axis is not None:
        normalize_axis(axis, len(shape))
    return reduce_nonempty(shape, axis=axis, keepdims=keepdims)


@carries(names.first_operand)
def along_axis(shape: Shape, *, axis: int = -1) -> Shape:
    """The same shape; `axis` must be one of its axes."""
    normalize_axis(axis, len(shape))
    return shape


# ---- products


@carries(names.matmul)
def matmul(left: Shape, right: Shape) -> Shape:
    """Matrix product over the last two axes, the others broadcast; a vector counts as a row on the left and as a
    column on the right, and its axis is missing in the result."""
    if not left or not right:
        raise ShapeError(
            f"matmul needs operands with axes, found the shapes {_shape_list((left, right))}",
            help="write `*` for scalars",
        )
    inner = right[-2] if len(right) > 1 else right[0]
    _contract(left, right, left[-1], inner)
    batch = _broadcast_batch(left, right)
    rows = left[-2:-1] if len(left) > 1 else ()
    columns = right[-1:] if len(right) > 1 else ()
    return (*batch, *rows, *columns)


def _contract(left: Shape, right: Shape, inner_left: Dim, inner_right: Dim) -> None:
    if not equal(inner_left, inner_right):
        raise ShapeError(
            f"the shapes {_shape_list((left, right))} cannot be multiplied: "
            f"the inner extents {resolve(inner_left)} and {resolve(inner_right)} differ"
        )


def _broadcast_batch(left: Shape, right: Shape) -> Shape:
    try:
        return broadcast(left[:-2], right[:-2])
    except ShapeError:
        raise ShapeError(
            f"the shapes {_shape_list((left, right))} cannot be multiplied: "
            f"the leading axes {_shape_list((left[:-2], right[:-2]))} cannot be broadcast together"
        ) from None


@carries(names.dense)
def dense(x: Shape, weight: Shape) -> Shape:
    """x: (*b, k), weight: (n, k) -> (*b, n)"""
    if not x or len(weight) != 2:
        raise ShapeError(f"dense needs x: (.., k) and weight: (n, k), found the shapes {_shape_list((x, weight))}")
    _contract(x, weight, x[-1], weight[1])
    return (*x[:-1], weight[0])


# ---- rearrangements


@carries(names.reshaped_names)
def reshape(source: Shape, *, shape: Sequence[Dim] | Dim) -> Shape:
    """The attribute `shape`, in which one -1 is the size that the others leave."""
    wanted: Shape = tuple(shape) if isinstance(shape, tuple | list) else (shape,)  # type: ignore[assignment]
    free = [i for i, dim in enumerate(wanted) if dim == -1]
    literal_shape(tuple(0 if dim == -1 else dim for dim in wanted))
    if len(free) > 1:
        raise ShapeError(f"only one extent of a new shape may be -1, found {show_shape(wanted)}")
    fixed = product(tuple(dim for dim in wanted if dim != -1))
    if free:
        extent = _remaining_extent(source, wanted, fixed)
        return (*wanted[: free[0]], extent, *wanted[free[0] + 1 :])
    same = _are_likely_the_same(source, wanted)
    if not (equal_shapes(source, wanted) if same else needs_equal(product(source), fixed)):
        raise _cannot_reshape(source, wanted)
    return wanted


def _are_likely_the_same(source: Shape, wanted: Shape) -> bool:
    """True if two shapes are likely to be equal axis by axis. Of a data-dependent size it must be known: (4, 6) may
    become (n, m) in many ways."""
    return len(source) == len(wanted) and all(
        follows_equal(a, b) is True if mentions_made(a) or mentions_made(b) else likely_equal(a, b)
        for a, b in zip(source, wanted, strict=True)
    )


def _remaining_extent(source: Shape, wanted: Shape, fixed: Dim) -> Dim:
    source = resolve_shape(source)
    rest = [dim for dim in source if dim is ANY]
    if len(rest) == 1 and product(tuple(dim for dim in source if dim is not ANY)) == fixed and fixed != 0:
        return ANY
    extent = quotient(product(source), fixed)
    if extent is None:
        raise _cannot_reshape(source, wanted)
    return extent


def _cannot_reshape(source: Shape, wanted: Shape) -> ShapeError:
    return ShapeError(
        f"the shape {show_shape(source)}, with {product(source)} elements, cannot be reshaped to {show_shape(wanted)}"
    )


@moves
def transpose(shape: Shape, *, axes: Sequence[int] | None = None) -> Shape:
    """The axes in the given order; reversed without one."""
    return tuple(shape[axis] for axis in permutation(axes, len(shape)))


def permutation(axes: Sequence[int] | None, rank: int) -> tuple[int, ...]:
    """The order of axes, counted from 0. Raises ShapeError unless every axis occurs once."""
    if axes is None:
        return tuple(reversed(range(rank)))
    order = tuple(normalize_axis(axis, rank) for axis in axes)
    if sorted(order) != list(range(rank)):
        raise ShapeError(f"axes {tuple(axes)} must name each of the {rank} axes once")
    return order


@carries(names.expanded_names)
def expand_dims(shape: Shape, *, axis: int | Sequence[int]) -> Shape:
    """New axes of extent 1; `axis` counts in the result."""
    given = (axis,) if isinstance(axis, int) else tuple(axis)
    rank = len(shape) + len(given)
    places = normalize_axes(given, rank)
    dims = iter(shape)
    return tuple(1 if i in places else next(dims) for i in range(rank))


def squeezed_axes(shape: Shape, axis: Axes) -> tuple[int, ...]:
    """The axes that `squeeze` removes. Raises ShapeError if one has another extent than 1, and Undetermined."""
    if axis is None:
        return tuple(i for i, dim in enumerate(shape) if equal(dim, 1))
    axes = normalize_axes(axis, len(shape))
    for position in axes:
        if not equal(shape[position], 1):
            raise ShapeError(f"axis {position} of the shape {show_shape(shape)} cannot be removed: its extent is not 1")
    return axes


@carries(names.squeezed_names)
def squeeze(shape: Shape, *, axis: Axes = None) -> Shape:
    """The shape without axes of extent 1."""
    axes = squeezed_axes(shape, axis)
    return tuple(dim for i, dim in enumerate(shape) if i not in axes)


@carries(names.sequence_names)
def concatenate(shapes: Sequence[Shape], *, axis: int = 0) -> Shape:
    """Equal except along `axis`, where the extents add up."""
    if not shapes:
        raise ShapeError("concatenate needs at least one tensor")
    first = shapes[0]
    position = normalize_axis(axis, len(first))
    for shape in shapes[1:]:
        rest = (*shape[:position], *shape[position + 1 :])
        if len(shape) != len(first) or not equal_shapes(rest, (*first[:position], *first[position + 1 :])):
            message = f"the shapes {_shape_list(shapes)} cannot be concatenated along axis {axis}"
            raise ShapeError(message, notes=_difference((first, shape), but=position))
    extents = [resolve(shape[position]) for shape in shapes]
    wide = [dim for dim in extents if dim != 0]
    if len(wide) > 1 and ANY in wide:
        raise undetermined_error(*wide)
    return (*first[:position], total(wide), *first[position + 1 :])


@carries(names.stacked_names)
def stack(shapes: Sequence[Shape], *, axis: int = 0) -> Shape:
    """Equal shapes, with a new axis as long as there are tensors."""
    if not shapes:
        raise ShapeError("stack needs at least one tensor")
    for shape in shapes[1:]:
        if not equal_shapes(shapes[0], shape):
            message = f"the shapes {_shape_list(shapes)} cannot be stacked: they must be equal"
            raise ShapeError(message, notes=_difference((shapes[0], shape)))
    position = normalize_axis(axis, len(shapes[0]) + 1)
    return (*shapes[0][:position], len(shapes), *shapes[0][position:])


# ---- slices


@carries(names.first_operand)
def strided_slice(shape: Shape, *, begin: Sequence[Dim], end: Sequence[Dim], strides: Sequence[int]) -> Shape:
    """The extents of a slice, one (begin, end, stride) for each axis."""
    if not len(begin) == len(end) == len(strides) == len(shape):
        raise ShapeError(f"a slice of the shape {show_shape(shape)} needs begin, end and stride for each axis")
    return tuple(_slice_extent(*place) for place in zip(shape, begin, end, strides, range(len(shape)), strict=True))


def _slice_extent(extent: Dim, begin: Dim, end: Dim, stride: int, axis: int) -> Dim:
    if stride == 0:
        raise ShapeError(f"the stride along axis {axis} is 0")
    extent = resolve(extent)
    if extent is ANY:
        raise undetermined_error(extent)
    low, high = (0, extent) if stride > 0 else (-1, subtract(extent, 1))
    for bound in (begin, end):
        if not (needs_at_least(bound, low) and needs_at_least(high, bound)):
            raise ShapeError(
                f"the slice from {begin} to {end} by {stride} leaves axis {axis}, which has extent {extent}"
            )
    return steps(begin, end, stride)


def steps(begin: Dim, end: Dim, stride: int) -> Dim:
    """len(range(begin, end, stride))"""
    distance = subtract(end, begin) if stride > 0 else subtract(begin, end)
    if isinstance(distance, int):
        return max(-(-distance // abs(stride)), 0)
    return floor_divide(add(distance, abs(stride) - 1), abs(stride)) if needs_at_least(distance, 0) else 0


@carries(names.first_operand)
def place_slice(
    shape_of_x: Shape, *, shape: Sequence[Dim] | Dim, begin: Sequence[Dim], end: Sequence[Dim], strides: Sequence[int]
) -> Shape:
    """`shape`, of which x must have the slice's shape."""
    whole = literal_shape(shape)
    _fits_slice(shape_of_x, whole, begin, end, strides)
    return whole


@carries(names.first_operand)
def update_slice(
    shape: Shape, new: Shape, *, begin: Sequence[Dim], end: Sequence[Dim], strides: Sequence[int]
) -> Shape:
    """`shape`; the new values must have the slice's shape."""
    _fits_slice(new, shape, begin, end, strides)
    return shape


def _fits_slice(part: Shape, whole: Shape, begin: Sequence[Dim], end: Sequence[Dim], strides: Sequence[int]) -> None:
    wanted = strided_slice(whole, begin=begin, end=end, strides=strides)
    if not equal_shapes(part, wanted):
        raise ShapeError(f"a slice of shape {show_shape(wanted)} cannot hold a tensor of shape {show_shape(part)}")


# ---- indices


@moves
def take(shape: Shape, indices: Shape, *, axis: int | None = 0, mode: str = "raise") -> Shape:
    """The axis, or all of them where it is None, replaced by the axes of the indices."""
    if mode not in ("raise", "clip", "wrap"):
        raise ShapeError(f"mode must be 'raise', 'clip' or 'wrap', found {mode!r}")
    if axis is None:
        return indices
    position = normalize_axis(axis, len(shape))
    return (*shape[:position], *indices, *shape[position + 1 :])


@carries(names.first_operand)
def scatter_add(shape: Shape, indices: Shape, updates: Shape, *, axis: int = 0) -> Shape:
    """The first shape; the updates have the shape of what `take` would read."""
    wanted = take(shape, indices, axis=axis)
    if not equal_shapes(updates, wanted):
        raise ShapeError(
            f"the updates of a tensor of shape {show_shape(shape)} at indices of shape {show_shape(indices)} "
            f"must have the shape {show_shape(wanted)}, found {show_shape(updates)}"
        )
    return shape


@moves
def index(shape: Shape, position: Shape) -> Shape:
    """The shape without its first axis; the index has rank 0."""
    if position:
        raise ShapeError(f"an index must have rank 0, found the shape {show_shape(position)}")
    if not shape:
        raise ShapeError("a tensor of rank 0 cannot be indexed")
    return shape[1:]


@carries(names.first_operand)
def index_update(shape: Shape, position: Shape, new: Shape) -> Shape:
    """The first shape; the new values have the shape of one element along its first axis."""
    wanted = index(shape, position)
    if not equal_shapes(new, wanted):
        raise ShapeError(
            f"an element of a tensor of shape {show_shape(shape)} has the shape {show_shape(wanted)}, "
            f"found {show_shape(new)}"
        )
    return shape


@carries(names.names_with_new_last)
def one_hot(indices: Shape, *, depth: Dim, **attributes: object) -> Shape:
    """A new last axis of extent `depth`."""
    return (*indices, *literal_shape(depth))


# ---- creation


def shape_attribute(*, shape: Sequence[Dim] | Dim, **attributes: object) -> Shape:
    """The attribute `shape`."""
    return literal_shape(shape)


def arange(*, start: float | Dim, stop: float | Dim, step: float, **attributes: object) -> Shape:
    """(ceil((stop - start) / step),), or (0,)"""
    for what, value in (("start", start), ("stop", stop), ("step", step)):
        if not isinstance(value, float) and not is_dim(value):
            raise ShapeError(f"the {what} of arange must be a number, found {value!r}")
    if step == 0:
        raise ShapeError("the step of arange is 0")
    if isinstance(start, float) or isinstance(stop, float) or isinstance(step, float):
        return (max(0, math.ceil((_number(stop) - _number(start)) / step)),)
    return (steps(start, stop, step),)


def _number(value: float | Dim) -> float:
    return value if isinstance(value, float) else constant_dim(value)
