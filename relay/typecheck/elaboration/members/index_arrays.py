"""Subscripts with several arrays of integers, and assignments to the elements that they name, as NumPy has them.

    x[i, :, j]   ->   the axes of i and j in front, gather_nd at the vectors (i, j), which are broadcast together

The axes of the arrays take the place of the first one if nothing is between the arrays, and are in front otherwise. A
number among arrays is an array of rank 0.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from relay.errors import ShapeError, Span, TypeCheckError, TypeMismatch
from relay.ir.dims import Dim
from relay.ir.types import BOOL, INT32, INT64, BaseClass, BaseType, TensorType, prune
from relay.operator import lookup
from relay.typecheck.elaboration.abstract_values import (
    AbstractValue,
    DynamicValue,
    Number,
    PythonObject,
    SliceItem,
    TypedBlockBuilder,
)
from relay.typecheck.elaboration.checker import Checker
from relay.typecheck.elaboration.expressions import operators
from relay.typecheck.elaboration.values.tensors import tensor_type

Items = Sequence[AbstractValue | SliceItem]


@attrs.frozen
class IndexArrays:
    """A subscript of whole axes and arrays: `order` brings the axes of the arrays in front, `vectors` are the index
    vectors, `shape` is that of the result with the arrays' axes (as many as `rank`) at `place`."""

    order: tuple[int, ...]
    vectors: DynamicValue
    rank: int
    place: int


def count_of_arrays(items: Items) -> int:
    """The number of items of a subscript that are arrays of rank 1 or higher."""
    known = (tensor_type(item) for item in items if isinstance(item, DynamicValue))
    return sum(type_ is not None and type_.rank > 0 for type_ in known)


def is_index(item: AbstractValue | SliceItem) -> bool:
    """True if an item is an array or a number."""
    return isinstance(item, DynamicValue | Number)


def plan(checker: Checker, out: TypedBlockBuilder, value: DynamicValue, items: Items, span: Span | None) -> IndexArrays:
    """The subscript of one item for each axis, slices whole."""
    axes = [axis for axis, item in enumerate(items) if is_index(item)]
    arrays = [_as_index(checker, out, items[axis], span) for axis in axes]
    types = [tensor_type(array) for array in arrays]
    base = INT64 if any(t is not None and prune(t.base) == INT64 for t in types) else INT32
    columns = [_call(checker, out, "cast", [array], span, dtype=base) for array in arrays]
    if len(columns) > 1:
        total = columns[0]
        for column in columns[1:]:
            total = _call(checker, out, "add", [total, column], span)  # for its shape alone
        shape = _shape(total)
        columns = [_call(checker, out, "broadcast_to", [column], span, shape=shape) for column in columns]
    shape = _shape(columns[0])
    vectors = _call(checker, out, "stack", columns, span, axis=len(shape))
    together = axes == list(range(axes[0], axes[-1] + 1))
    others = [axis for axis in range(len(items)) if axis not in axes]
    return IndexArrays((*axes, *others), vectors, len(shape), axes[0] if together else 0)


def read(
    checker: Checker, out: TypedBlockBuilder, value: DynamicValue, items: Items, span: Span | None
) -> DynamicValue:
    """`value[items]` for one item for each axis, slices whole."""
    found = plan(checker, out, value, items, span)
    front = transpose_axes(checker, out, value, found.order, span)
    result = _call(checker, out, "gather_nd", [front, found.vectors], span)
    count = len(found.order) - _depth(found)
    return transpose_axes(checker, out, result, _from_front(found, count), span)


def write(
    checker: Checker,
    out: TypedBlockBuilder,
    value: DynamicValue,
    items: Items,
    new: DynamicValue,
    span: Span | None,
    adds: bool = False,
) -> DynamicValue:
    """The tensor after `value[items] = new`, where of values for one place the last one stays; or, where it `adds`,
    with all of them added."""
    found = plan(checker, out, value, items, span)
    type_ = prune(value.type)
    assert isinstance(type_, TensorType)
    front = transpose_axes(checker, out, value, found.order, span)
    kept = _shape(front)[_depth(found) :]
    shape = _shape(found.vectors)[: found.rank]
    wanted = (*kept[: found.place], *shape, *kept[found.place :])
    if _shape(new) != wanted:
        new = _call(checker, out, "broadcast_to", [new], span, shape=wanted)
    order = _from_front(found, len(kept))
    updates = transpose_axes(checker, out, new, tuple(order.index(axis) for axis in range(len(order))), span)
    is_bool = prune(type_.base) == BOOL
    if is_bool:  # which scatter_nd does not take
        front = _call(checker, out, "cast", [front], span, dtype=INT32)
        updates = _call(checker, out, "cast", [updates], span, dtype=INT32)
    reduction = {"reduction": "add" if adds else "none"}
    changed = _call(checker, out, "scatter_nd", [front, found.vectors, updates], span, **reduction)
    if is_bool:
        changed = _call(checker, out, "cast", [changed], span, dtype=BOOL)
    back = tuple(found.order.index(axis) for axis in range(len(found.order)))
    return transpose_axes(checker, out, changed, back, span)


def transpose_axes(
    checker: Checker, out: TypedBlockBuilder, value: DynamicValue, order: Sequence[int], span: Span | None
) -> DynamicValue:
    """The tensor with its axes in another order."""
    if tuple(order) == tuple(range(len(order))):
        return value
    return _call(checker, out, "transpose", [value], span, axes=tuple(order))


def _from_front(found: IndexArrays, kept: int) -> tuple[int, ...]:
    """The order that moves the arrays' axes from the front to their place among the `kept` ones."""
    first = range(found.rank, found.rank + found.place)
    rest = range(found.rank + found.place, found.rank + kept)
    return (*first, *range(found.rank), *rest)


def _depth(found: IndexArrays) -> int:
    depth = _shape(found.vectors)[-1]
    assert isinstance(depth, int)
    return depth


def _as_index(
    checker: Checker, out: TypedBlockBuilder, item: AbstractValue | SliceItem, span: Span | None
) -> DynamicValue:
    assert not isinstance(item, SliceItem)
    if isinstance(item, PythonObject):
        raise TypeCheckError("an index must be an integer", span)
    typed = checker.materialize(out, item, span)
    type_ = tensor_type(typed)
    base = prune(type_.base) if type_ is not None else None
    if isinstance(base, BaseType) and base.base_class is not BaseClass.INTEGER:
        what = "a mask" if base == BOOL else "a float"
        help = "choose by the mask first: x[mask][:, j]" if base == BOOL else "convert it: i.astype(relay.Int32)"
        raise TypeMismatch(f"an index beside other arrays must be an integer, found {what}", span, help=help)
    return typed


def _shape(value: DynamicValue) -> tuple[Dim, ...]:
    type_ = tensor_type(value)
    if type_ is None:
        raise ShapeError("the shape of an index must be known")
    return tuple(type_.shape)


def _call(
    checker: Checker,
    out: TypedBlockBuilder,
    name: str,
    operands: Sequence[AbstractValue],
    span: Span | None,
    **attributes: object,
) -> DynamicValue:
    return operators.apply(checker, out, lookup(name), list(operands), attributes, span, [])
