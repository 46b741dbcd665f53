"""Subscripts of tensors and tuples.

A subscript is taken apart: static slices become one `strided_slice`, integers known to the checker take one row and
drop the axis, a rank-0 integer tensor reads a row (`index` on the first axis, `take` on others), an integer tensor of
higher rank gathers, None adds an axis.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence

import attrs
import numpy as np

from relay.errors import ShapeError, Span, TypeCheckError, TypeMismatch
from relay.ir.dims import Dim, add, subtract
from relay.ir.expr import Constant
from relay.ir.types import BOOL, BaseClass, BaseType, TensorType, Unknown, prune, show
from relay.operator import lookup
from relay.typecheck.dims import constant_dim as number_of
from relay.typecheck.dims import equal, follows_equal, needs_at_least
from relay.typecheck.elaboration.abstract_values import (
    AbstractValue,
    DynamicValue,
    Number,
    Places,
    PythonNumber,
    PythonObject,
    SliceItem,
    Tuple,
    TypedBlockBuilder,
    dim_of,
)
from relay.typecheck.elaboration.checker import Checker
from relay.typecheck.elaboration.diagnostics.descriptions import kind_of, nearest_index
from relay.typecheck.elaboration.diagnostics.mistakes import SchemeOnly
from relay.typecheck.elaboration.dynamic_lists import early_elements
from relay.typecheck.elaboration.dynamic_shapes import masks, slice_windows, slices
from relay.typecheck.elaboration.expressions import operators
from relay.typecheck.elaboration.library import overload_calls, overloads
from relay.typecheck.elaboration.library.overloads import Call, Overload, implements
from relay.typecheck.elaboration.members import enumerations, index_arrays
from relay.typecheck.elaboration.members.python_classes import method_overloads
from relay.typecheck.elaboration.values import special_methods
from relay.typecheck.elaboration.values.axis_names import names_of, with_names
from relay.typecheck.elaboration.values.expansion import expand
from relay.typecheck.elaboration.values.labels import as_indices
from relay.typecheck.elaboration.values.objects import object_entity
from relay.typecheck.elaboration.values.sizes import slice_number
from relay.typecheck.elaboration.values.tensors import is_sized, tensor_type
from relay.typecheck.relations import steps
from relay.typecheck.unification import flat_shape, resolve


@attrs.define
class _SubscriptPlan:
    """The plan of a subscript: what it does to each axis of the tensor."""

    begin: list[Dim]
    end: list[Dim]
    strides: list[int]
    shape: list[Dim]  # after slicing
    dropped: list[int]  # axes that an integer removes
    new_axes: list[int]  # positions in the result where None adds an axis
    dynamic: list[tuple[int, DynamicValue]]  # axis and run-time index


def index(
    checker: Checker,
    out: TypedBlockBuilder,
    entity: AbstractValue,
    items: Sequence[AbstractValue | SliceItem],
    span: Span | None,
) -> AbstractValue:
    """`entity[items]`, by the overloads of `__getitem__` of its class."""
    if isinstance(entity, DynamicValue):
        entity = expand(checker, out, entity, span)
    if isinstance(entity, PythonObject) and isinstance(entity.value, enum.EnumMeta) and len(items) == 1:
        (name,) = items
        if not isinstance(name, SliceItem):
            return enumerations.member_of_name(entity.value, name, span)
    items = as_indices(entity, items, span)
    if isinstance(entity, Places):
        return Places(entity.value, tuple(items)) if entity.items is None else _refuse_second(span)
    if found := subscript_overloads(entity, "__getitem__"):
        return overload_calls.call_subscript(found, checker, out, entity, items, None, span)
    key = overload_calls.key_of(items)
    own = None if key is None else special_methods.call(checker, out, "__getitem__", entity, [key], span)
    if own is None:
        help = "read its fields: value.name" if isinstance(entity, Tuple) else None
        if isinstance(entity, DynamicValue):
            help = "define __getitem__, use match"
        raise TypeCheckError(f"{kind_of(entity)} cannot be indexed", span, help=help)
    return own


def subscript_overloads(entity: AbstractValue, method: str) -> tuple[Overload, ...]:
    """The meaning of `__getitem__` or `__setitem__` of a value; one of an unknown type is taken for a tensor."""
    if isinstance(entity, DynamicValue) and isinstance(prune(entity.type), Unknown):
        return overloads.method(np.ndarray, method)
    return method_overloads(entity, method)


@implements(np.ndarray.__getitem__)
def _element(call: Call, entity: AbstractValue, /, *written: AbstractValue | SliceItem) -> AbstractValue:
    checker, out, span = call.site
    items: Sequence[AbstractValue | SliceItem] = written
    assert isinstance(entity, DynamicValue)
    if len(items) == 1 and isinstance(items[0], PythonObject) and isinstance(items[0].value, str):
        early_elements.read(checker, entity, f"the key {items[0].value!r}", span)
    ranked_type(entity, span)
    items = [slices.list_as_tensor(checker, out, item, span) for item in plain_items(items)]
    if (
        len(items) == 1
        and isinstance(items[0], DynamicValue)
        and _is_mask(items[0])
        and masks.constant_mask(items[0]) is None
    ):
        return slices.boolean_index(checker, out, entity, items[0], span)
    entity, items = _without_windows(checker, out, entity, items, span)
    type_ = ranked_type(entity, span)
    items = constant_indices(checker, items, flat_shape(type_.shape), span)
    if index_arrays.count_of_arrays(items) > 1:
        return _several_arrays(checker, out, entity, items, span)
    plan = subscript_plan(entity, type_, items, span)
    value = entity
    if _slices(plan, type_):
        attributes: dict[str, object] = {
            "begin": tuple(plan.begin),
            "end": tuple(plan.end),
            "strides": tuple(plan.strides),
        }
        value = operators.apply(checker, out, lookup("strided_slice"), [value], attributes, span, [])
    if plan.dropped:
        kept = [a for a in range(len(plan.shape)) if a not in plan.dropped]
        value = reshape_tensor(checker, out, value, [plan.shape[a] for a in kept], span, kept)
    for axis, position in _after_dropping(plan):
        value = _dynamic(checker, out, value, axis, position, span)
    if plan.new_axes:
        known = tensor_type(value)
        assert known is not None
        shape, origins = list(known.shape), [*range(known.rank)]
        for at in plan.new_axes:
            shape.insert(at, 1)
            origins.insert(at, -1)
        value = reshape_tensor(checker, out, value, shape, span, origins)
    return value


def _refuse_second(span: Span | None) -> AbstractValue:
    raise TypeCheckError("`x.at` has one subscript", span, help="write x.at[i, j].set(v)")


def _several_arrays(
    checker: Checker,
    out: TypedBlockBuilder,
    entity: DynamicValue,
    items: Sequence[AbstractValue | SliceItem],
    span: Span | None,
) -> AbstractValue:
    """`entity[i, 1:, j]`: the slices and new axes first, then the arrays."""
    whole = SliceItem(None, None, None)
    items = one_for_each_axis(items, len(ranked_type(entity, span).shape), span)
    first = [whole if index_arrays.is_index(item) else item for item in items]
    value = entity if all(item == whole for item in first) else index(checker, out, entity, first, span)
    assert isinstance(value, DynamicValue)
    left = [item if index_arrays.is_index(item) else whole for item in items]
    return index_arrays.read(checker, out, value, left, span)


def one_for_each_axis(
    items: Sequence[AbstractValue | SliceItem], rank: int, span: Span | None
) -> list[AbstractValue | SliceItem]:
    """The items of a subscript, with slices for what it leaves out, and for `...`."""
    whole: AbstractValue | SliceItem = SliceItem(None, None, None)
    at = next((p for p, i in enumerate(items) if isinstance(i, PythonObject) and i.value is Ellipsis), len(items))
    before, after = list(items[:at]), list(items[at + 1 :])
    named = sum(not (isinstance(i, PythonObject) and i.value is None) for i in (*before, *after))
    if named > rank:
        raise ShapeError(f"{named} indices for a tensor of rank {rank}", span, help=f"write {rank}, or fewer")
    return [*before, *(whole for _ in range(rank - named)), *after]


def plain_items(items: Sequence[AbstractValue | SliceItem]) -> list[AbstractValue | SliceItem]:
    """The items of a subscript; those of a tuple that is the subscript, and `slice` objects as slices."""
    if len(items) == 1 and isinstance(items[0], Tuple) and items[0].form is None:
        items = items[0].items
    return [_as_slice(item) for item in items]


def _as_slice(item: AbstractValue | SliceItem) -> AbstractValue | SliceItem:
    if not isinstance(item, PythonObject) or not isinstance(item.value, slice):
        return item
    bounds = (item.value.start, item.value.stop, item.value.step)
    return SliceItem(*(None if bound is None else object_entity(bound, None) for bound in bounds))


def item_axes(items: Sequence[AbstractValue | SliceItem], rank: int) -> list[int]:
    """The axis of each item of a subscript (None at the next one)."""
    special = [isinstance(i, PythonObject) and (i.value is None or i.value is Ellipsis) for i in items]
    axes, axis = [], 0
    for item, is_special in zip(items, special, strict=True):
        axes.append(axis)
        if not is_special:
            axis += 1
        elif isinstance(item, PythonObject) and item.value is Ellipsis:
            axis += max(rank - special.count(False), 0)  # there may be too many items
    return axes


def _without_windows(
    checker: Checker,
    out: TypedBlockBuilder,
    value: DynamicValue,
    items: Sequence[AbstractValue | SliceItem],
    span: Span | None,
) -> tuple[DynamicValue, list[AbstractValue | SliceItem]]:
    """The value after its slices whose bounds are computed at run time, and the rest of the subscript."""
    found = list(items)
    rank = len(ranked_type(value, span).shape)
    for position, (item, axis) in enumerate(zip(items, item_axes(items, rank), strict=True)):
        if not isinstance(item, SliceItem) or axis >= rank:
            continue
        if slices.is_sized_by_the_run(item, ranked_type(value, span).shape[axis]):
            value = slices.slice_axis(checker, out, value, axis, item, span)
        elif not any(isinstance(bound, DynamicValue) for bound in (item.start, item.stop)):
            continue
        elif (count := slice_windows.length(checker, item, span)) is not None:
            value = slice_windows.read(checker, out, value, axis, item, count, span)
        else:
            value = slices.slice_axis(checker, out, value, axis, item, span)
        found[position] = SliceItem(None, None, None)
    return value, found


def ranked_type(entity: DynamicValue, span: Span | None) -> TensorType:
    type_ = prune(entity.type)
    if not isinstance(type_, TensorType | Unknown):
        raise TypeCheckError(f"{show(resolve(entity.type))} cannot be indexed", span)
    known = tensor_type(entity)
    if known is None or not all(is_sized(d) for d in known.shape):
        raise SchemeOnly(span, "the shape of the indexed value")
    return known


def _slices(plan: _SubscriptPlan, type_: TensorType) -> bool:
    return any(
        (b, s) != (0, 1) or follows_equal(e, d) is not True
        for b, e, s, d in zip(plan.begin, plan.end, plan.strides, type_.shape, strict=True)
    )


def _after_dropping(plan: _SubscriptPlan) -> list[tuple[int, DynamicValue]]:
    """The run-time indices in order, each with its axis after the static integers and the indices before it are
    done."""
    found: list[tuple[int, DynamicValue]] = []
    moved = 0
    for axis, position in plan.dynamic:
        found.append((axis - sum(d < axis for d in plan.dropped) + moved, position))
        known = tensor_type(position)
        moved += (known.rank if known is not None else 0) - 1
    return found


def _is_mask(typed: DynamicValue) -> bool:
    known = tensor_type(typed)
    return known is not None and known.base == BOOL and known.rank > 0


def is_skippable_error(checker: Checker, dims: Sequence[Dim], axis: int) -> bool:
    """True if an index of an axis that has no elements is an error only where it runs, since it may not."""
    return checker.may_be_skipped and axis < len(dims) and follows_equal(dims[axis], 0) is True


def constant_indices(
    checker: Checker, items: Sequence[AbstractValue | SliceItem], dims: Sequence[Dim], span: Span | None
) -> list[AbstractValue | SliceItem]:
    """The items with lists of known integers, `x[[0, 2]]`, and known masks, `x[[True, False, True]]`, as tensors."""
    found: list[AbstractValue | SliceItem] = []
    for axis, item in zip(item_axes(items, len(dims)), items, strict=True):
        numbers = [n.specialize() for n in item.items if isinstance(n, Number)] if isinstance(item, Tuple) else []
        truths = masks.constant_mask(item)
        if truths is not None and axis < len(dims):
            item = masks.positions(checker, truths, dims[axis], span)
        if isinstance(item, Tuple) and numbers and len(numbers) == len(item.items):
            if not all(isinstance(n, int) for n in numbers):
                raise TypeMismatch("an index must be an integer", span)
            constant = Constant(np.asarray(numbers, np.int32), span)
            found.append(DynamicValue(constant, constant.type))
        elif isinstance(item, PythonNumber) and is_skippable_error(checker, dims, axis) and isinstance(item.value, int):
            constant = Constant(np.asarray(item.value, np.int64), span)
            found.append(DynamicValue(constant, constant.type))
        else:
            found.append(item)
    return found


def _index_rank(index: DynamicValue, span: Span | None) -> int:
    """The rank of a computed index. Raises TypeMismatch if it is not of integers."""
    type_ = tensor_type(index)
    if type_ is None:
        return 0
    base = prune(type_.base)
    if isinstance(base, BaseType) and base.base_class is not BaseClass.INTEGER:
        raise TypeMismatch(
            f"an index must be an integer, found {show(resolve(index.type))}",
            span,
            help=("convert it: int(i)" if type_.rank == 0 else "convert it: i.astype(relay.Int32)")
            if base.base_class is BaseClass.FLOAT
            else "the number of elements that a mask selects is known only at run time; keep the shape:"
            " relay.where(mask, x, 0.0)",
        )
    return type_.rank


def _no_index(item: AbstractValue, span: Span | None) -> TypeMismatch:
    """The error of a value between brackets that cannot be an index."""
    text = isinstance(item, PythonObject) and isinstance(item.value, str)
    help = "only dicts have keys of text" if text else "make it one: x[int(i)], x[n // 2]"
    if isinstance(item, Tuple):
        help = "several places are assigned one after the other: `for j in (0, -1): x[:, j] = v`"
    number = f"the number {item.specialize()}" if type(item) is PythonNumber else "a float"
    found = number if isinstance(item, Number) else kind_of(item)
    return TypeMismatch(f"an index must be an integer, a slice, None or `...`, found {found}", span, help=help)


def subscript_plan(
    entity: DynamicValue, type_: TensorType, items: Sequence[AbstractValue | SliceItem], span: Span | None
) -> _SubscriptPlan:
    dims = flat_shape(type_.shape)
    consumed = sum(not (isinstance(i, PythonObject) and (i.value is None or i.value is Ellipsis)) for i in items)
    if consumed > len(dims):
        raise ShapeError(
            f"{consumed} indices for {show(resolve(entity.type))}, which has rank {len(dims)}",
            span,
            help=f"write {len(dims)}, or fewer" if dims else "a scalar has no axes: write x itself",
        )
    if sum(isinstance(i, PythonObject) and i.value is Ellipsis for i in items) > 1:
        raise TypeCheckError("a subscript has at most one `...`", span)
    plan = _SubscriptPlan([], [], [], [], [], [], [])
    axis = position = 0

    def keep_axis() -> None:
        nonlocal axis, position
        _add(plan, 0, dims[axis], 1, dims[axis])
        axis, position = axis + 1, position + 1

    for item in items:
        match item:
            case PythonObject(None):
                plan.new_axes.append(position)
                position += 1
            case PythonObject(value) if value is Ellipsis:
                for _ in range(len(dims) - consumed):
                    keep_axis()
            case Number() if (value := dim_of(item)) is not None:
                first = _position(value, dims[axis])
                if first is None:
                    extent = dims[axis]
                    raise ShapeError(
                        f"index {value} is out of range for axis {axis} of {show(resolve(entity.type))}",
                        span,
                        help=nearest_index(value, extent),
                    ).wherever_it_runs()
                _add(plan, first, add(first, 1), 1, 1)
                plan.dropped.append(axis)
                axis += 1
            case SliceItem(start, stop, step):
                low, high, by = (slice_number(b, span) for b in (start, stop, step))
                stride = 1 if by is None else number_of(by)
                if stride == 0:
                    raise TypeCheckError("the step of a slice cannot be 0", span)
                first, last = _bounds(low, high, stride, dims[axis])
                _add(plan, first, last, stride, steps(first, last, stride))
                axis, position = axis + 1, position + 1
            case DynamicValue():
                rank = _index_rank(item, span)
                plan.dynamic.append((axis, item))
                _add(plan, 0, dims[axis], 1, dims[axis])
                axis, position = axis + 1, position + rank
            case _:
                raise _no_index(item, span)
    while axis < len(dims):
        keep_axis()
    return plan


def _position(index: Dim, extent: Dim) -> Dim | None:
    """An index counted from 0, or None if it is out of range."""
    if not needs_at_least(index, 0):
        index = add(index, extent)
        return index if needs_at_least(index, 0) else None
    return index if needs_at_least(extent, add(index, 1)) else None


def _bounds(start: Dim | None, stop: Dim | None, step: int, extent: Dim) -> tuple[Dim, Dim]:
    """The bounds of a slice as `slice(start, stop, step).indices(extent)` gives them."""
    low, high = (0, extent) if step > 0 else (-1, subtract(extent, 1))

    def clip_bound(given: Dim | None, missing: Dim) -> Dim:
        if given is None:
            return missing
        if not needs_at_least(given, 0):
            given = add(given, extent)
            return given if needs_at_least(given, low) else low
        return given if needs_at_least(high, given) else high

    return (
        (clip_bound(start, low), clip_bound(stop, high))
        if step > 0
        else (clip_bound(start, high), clip_bound(stop, low))
    )


def _add(plan: _SubscriptPlan, begin: Dim, end: Dim, stride: int, size: Dim) -> None:
    plan.begin.append(begin)
    plan.end.append(end)
    plan.strides.append(stride)
    plan.shape.append(size)


def reshape_tensor(
    checker: Checker,
    out: TypedBlockBuilder,
    value: DynamicValue,
    shape: Sequence[Dim],
    span: Span | None,
    origins: Sequence[int] | None = None,
) -> DynamicValue:
    """`origins`: which axis each one of the result was, -1 for a new one."""
    names = names_of(value)
    result = operators.apply(checker, out, lookup("reshape"), [value], {"shape": tuple(shape)}, span, [])
    if names is None or origins is None:
        return result
    return with_names(result, tuple(None if a < 0 else names[a] for a in origins))


def _dynamic(
    checker: Checker, out: TypedBlockBuilder, value: DynamicValue, axis: int, position: DynamicValue, span: Span | None
) -> DynamicValue:
    known = tensor_type(position)
    if axis == 0 and known is not None and known.rank == 0:
        return operators.apply(checker, out, lookup("index"), [value, position], {}, span, [])
    return operators.apply(checker, out, lookup("take"), [value, position], {"axis": axis}, span, [])


def unpack_rows(
    checker: Checker, out: TypedBlockBuilder, entity: DynamicValue, count: int, span: Span | None
) -> tuple[AbstractValue, ...]:
    """`a, b = x` for a tensor x: its rows."""
    type_ = ranked_type(entity, span)
    if type_.rank == 0 or not equal(type_.shape[0], count):
        raise ShapeError(
            f"expected {count} values to unpack, found {show(resolve(entity.type))}",
            span,
            help="write a name for each row, or index it: x[0]",
        )
    return tuple(index(checker, out, entity, [PythonNumber(i, span)], span) for i in range(count))
