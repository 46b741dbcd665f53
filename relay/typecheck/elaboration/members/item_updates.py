"""Item assignments as functional updates: the new value of x for `x[items] = new`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from relay.errors import ShapeError, Span, TypeCheckError, TypeMismatch
from relay.ir.dims import Dim, product
from relay.ir.literals import with_article
from relay.ir.types import INT64, BaseType, Kind, TensorType, prune
from relay.operator import lookup
from relay.typecheck.elaboration.abstract_values import (
    AbstractValue,
    DynamicValue,
    Number,
    PythonNumber,
    PythonObject,
    SliceItem,
    Tuple,
    TypedBlockBuilder,
    integer_of,
)
from relay.typecheck.elaboration.checker import Checker
from relay.typecheck.elaboration.diagnostics.descriptions import index_error
from relay.typecheck.elaboration.dynamic_lists import dynamic_lists, hash_tables, list_items, tables
from relay.typecheck.elaboration.dynamic_shapes import masks, slice_windows, slices
from relay.typecheck.elaboration.expressions import dtype_promotion, operators, weak_types
from relay.typecheck.elaboration.expressions.operator_relations import spelling
from relay.typecheck.elaboration.library import overload_calls, overloads
from relay.typecheck.elaboration.library.creation import array
from relay.typecheck.elaboration.library.overloads import Call, implements
from relay.typecheck.elaboration.members import index_arrays, object_methods
from relay.typecheck.elaboration.members.elements import elements
from relay.typecheck.elaboration.members.subscripts import (
    constant_indices,
    index,
    item_axes,
    one_for_each_axis,
    plain_items,
    ranked_type,
    reshape_tensor,
    subscript_overloads,
    subscript_plan,
)
from relay.typecheck.elaboration.values import range_numbers, records
from relay.typecheck.elaboration.values.expansion import expand
from relay.typecheck.elaboration.values.labels import as_indices
from relay.typecheck.elaboration.values.tensors import tensor_type
from relay.typecheck.unification import flat_shape


def _unseen_call(span: Span | None) -> TypeCheckError:
    return TypeCheckError("a call of `__setitem__` changes nothing in Relay", span, help="write `x[i] = v`")


def _is_missing(step: AbstractValue | None) -> bool:
    if isinstance(step, PythonObject):
        return step.value is None
    return step is None or (isinstance(step, Number) and step.specialize() == 1)


def index_update(
    checker: Checker,
    out: TypedBlockBuilder,
    entity: AbstractValue,
    items: Sequence[AbstractValue | SliceItem],
    new: AbstractValue,
    span: Span | None,
    inside: bool = False,
) -> AbstractValue:
    """The value of x after `x[items] = new`, by the overloads of `__setitem__` of its class, or after a change `inside`
    of this item."""
    if isinstance(entity, DynamicValue):
        entity = expand(checker, out, entity, span)
    items = as_indices(entity, items, span)
    if inside and isinstance(entity, DynamicValue) and tensor_type(entity) is not None:
        _require_view(items, span)
    is_of_user = isinstance(entity, Tuple) and records.is_of_user(entity, "__setitem__")
    if isinstance(entity, Tuple) and is_of_user and not overloads.find(records.member(entity, "__setitem__")):
        return object_methods.set_item(checker, out, entity, items, new, span, inside)
    found = subscript_overloads(entity, "__setitem__")
    if isinstance(entity, Tuple) and (inside or not found):
        return update_structure(checker, out, entity, items, new, span, inside)
    if not found:
        raise TypeCheckError("only a tensor's elements can be assigned", span)
    return overload_calls.call_subscript(found, checker, out, entity, items, new, span)


def _require_view(items: Sequence[AbstractValue | SliceItem], span: Span | None) -> None:
    """Raises TypeCheckError unless x[items] is a view of x, so that changes in it are seen there."""
    if index_arrays.count_of_arrays(items) > 0 or any(isinstance(item, Tuple) for item in items):
        raise TypeCheckError(
            "nothing sees this change: an array at an array of indices is a new one",
            span,
            help="assign it to a variable, and change that",
        )


@implements(list.__setitem__, dict.__setitem__)
def _replace_item(
    call: Call, entity: AbstractValue, /, *items: AbstractValue | SliceItem, new: AbstractValue | None = None
) -> AbstractValue:
    checker, out, span = call.site
    if new is None:
        raise _unseen_call(span)
    if isinstance(entity, Tuple):
        return update_structure(checker, out, entity, items, new, span)
    assert isinstance(entity, DynamicValue)
    if len(items) == 1 and isinstance(part := items[0], SliceItem) and _is_missing(part.step):
        return list_items.with_slice(checker, out, entity, part.start, part.stop, new, span)
    if len(items) != 1 or isinstance(items[0], SliceItem):
        raise TypeCheckError(
            "only one item of a list can be assigned at a time", span, help="assign the items in a loop"
        )
    return list_items.with_item(checker, out, entity, items[0], new, span)


@implements(np.ndarray.__setitem__)
def _replace_elements(
    call: Call, entity: AbstractValue, /, *written: AbstractValue | SliceItem, new: AbstractValue | None = None
) -> AbstractValue:
    checker, out, span = call.site
    if new is None:
        raise _unseen_call(span)
    items: Sequence[AbstractValue | SliceItem] = written
    assert isinstance(entity, DynamicValue)
    entity = weak_types.loosen_base(checker, out, entity)
    type_ = ranked_type(entity, span)
    items = plain_items(items)
    if isinstance(new, DynamicValue):
        new = range_numbers.fitting_number(checker, out, new, type_)
        new = dtype_promotion.stored_value(checker, out, new, type_, span)
    _require_dtype(type_, new, span)

    masked = masks.update(checker, out, entity, type_, items, new, span)
    if masked is not None:
        return masked
    if (mask := masks.mask_of(items)) is not None:
        places = slices.true_positions(checker, out, flat(checker, out, mask, span), span)
        return _rows_update(checker, out, entity, mask, places, new, span)
    if items and isinstance(items[0], Tuple) and (known := known_places(items[0])) is not None:
        return _listed_update(checker, out, entity, known, items[1:], new, span)
    items = [slices.list_as_tensor(checker, out, item, span) for item in items]
    items = constant_indices(checker, items, flat_shape(type_.shape), span)
    items = _slices_of_the_run(checker, out, type_, items, span)
    if index_arrays.count_of_arrays(items) > 0:
        return _arrays_update(checker, out, entity, items, new, span)
    updated = _window_update(checker, out, entity, type_, items, new, span)
    if updated is not None:
        return updated
    plan = subscript_plan(entity, type_, items, span)
    if plan.new_axes:
        raise TypeCheckError("None has no meaning in the subscript of an assignment", span)
    if not plan.dynamic:
        wanted = [d for a, d in enumerate(plan.shape) if a not in plan.dropped]
        value = _broadcast(checker, out, new, type_, wanted, span)
        if plan.dropped:
            value = reshape_tensor(checker, out, value, plan.shape, span)
        attributes: dict[str, object] = {
            "begin": tuple(plan.begin),
            "end": tuple(plan.end),
            "strides": tuple(plan.strides),
        }
        return operators.apply(checker, out, lookup("update_slice"), [entity, value], attributes, span, [])
    for _, place in plan.dynamic:
        if tensor_type(place) is None:  # its rank is not known yet, as of `argmax` of an array whose dtype is open
            checker.unify_at(
                place.type, TensorType(checker.solver.fresh_variable(Kind.BaseType), ()), span, "the index"
            )
    return _update_axis(checker, out, entity, _by_axis(items, type_.rank), new, span)


def known_places(item: Tuple) -> list[int] | None:
    """The positions of `x[[0, 2]]`; None if they are not known integers."""
    numbers = [n.specialize() for n in item.items if isinstance(n, Number)]
    places = [n for n in numbers if isinstance(n, int)]
    return places if places and len(places) == len(item.items) else None


def _slices_of_the_run(
    checker: Checker,
    out: TypedBlockBuilder,
    type_: TensorType,
    items: Sequence[AbstractValue | SliceItem],
    span: Span | None,
) -> list[AbstractValue | SliceItem]:
    """The items with slices of data-dependent length, `x[:n] = v`, replaced by their positions."""
    found, dims = list(items), flat_shape(type_.shape)
    for position, (item, axis) in enumerate(zip(items, item_axes(items, len(dims)), strict=True)):
        if not isinstance(item, SliceItem) or axis >= len(dims) or item.is_whole:
            continue
        of_run = any(isinstance(bound, DynamicValue) for bound in (item.start, item.stop))
        if slices.is_sized_by_the_run(item, dims[axis]) or (
            of_run and slice_windows.length(checker, item, span) is None
        ):
            steps: dict[str, object] = {"start": 0, "stop": dims[axis], "step": 1, "dtype": INT64}
            whole = operators.apply(checker, out, lookup("arange"), [], steps, span, [])
            found[position] = slices.slice_axis(checker, out, whole, 0, item, span)
    if found != list(items) and index_arrays.count_of_arrays(found) > 1:
        raise TypeCheckError(
            "a slice with run-time bounds stands beside another one, or an array, in this assignment",
            span,
            help="assign in a loop over the other one: `for j in range(n): x[j, :m] = v[j]`",
        )
    return found


def flat(checker: Checker, out: TypedBlockBuilder, value: DynamicValue, span: Span | None) -> DynamicValue:
    """All elements of a tensor in one row."""
    type_ = ranked_type(value, span)
    if len(type_.shape) == 1:
        return value
    return operators.apply(checker, out, lookup("reshape"), [value], {"shape": (product(type_.shape),)}, span, [])


def _rows_update(
    checker: Checker,
    out: TypedBlockBuilder,
    entity: DynamicValue,
    mask: DynamicValue,
    places: DynamicValue,
    new: AbstractValue,
    span: Span | None,
) -> AbstractValue:
    """`x[mask] = values`: one value for each place where the mask holds, in their order."""
    type_, count = ranked_type(entity, span), len(ranked_type(mask, span).shape)
    shape = tuple(type_.shape)
    rows = entity
    if count > 1:
        joined = {"shape": (product(shape[:count]), *shape[count:])}
        rows = operators.apply(checker, out, lookup("reshape"), [entity], dict(joined), span, [])
    changed = _arrays_update(checker, out, rows, [places], new, span)
    if count == 1:
        return changed
    return operators.apply(checker, out, lookup("reshape"), [changed], {"shape": shape}, span, [])


def _arrays_update(
    checker: Checker,
    out: TypedBlockBuilder,
    entity: DynamicValue,
    items: Sequence[AbstractValue | SliceItem],
    new: AbstractValue,
    span: Span | None,
    adds: bool = False,
) -> DynamicValue:
    """`x[i, 1:] = new` with arrays among the indices: the slices are read, changed, and written back."""
    whole = SliceItem(None, None, None)
    items = one_for_each_axis(items, ranked_type(entity, span).rank, span)
    if any(isinstance(item, PythonObject) and item.value is None for item in items):
        raise TypeCheckError("None has no meaning in the subscript of an assignment", span)
    slices = [whole if index_arrays.is_index(item) else item for item in items]
    left = [item if index_arrays.is_index(item) else whole for item in items]
    part: AbstractValue = entity
    if any(item != whole for item in slices):
        part = index(checker, out, entity, slices, span)
    assert isinstance(part, DynamicValue)
    type_ = ranked_type(part, span)
    if isinstance(new, Tuple):
        new = array(checker, out, new, span)
    typed = checker.constant(out, new, type_.base) if isinstance(new, Number) else checker.materialize(out, new, span)
    if isinstance(value_type := prune(typed.type), TensorType):
        checker.unify_base_at(value_type.base, type_.base, span)
    changed = index_arrays.write(checker, out, part, left, typed, span, adds)
    if part is entity:
        return changed
    result = index_update(checker, out, entity, slices, changed, span)
    assert isinstance(result, DynamicValue)
    return result


def add_at(
    checker: Checker,
    out: TypedBlockBuilder,
    entity: DynamicValue,
    items: Sequence[AbstractValue | SliceItem],
    new: AbstractValue,
    span: Span | None,
) -> AbstractValue:
    """x with new values added at `items`, all of those for one place."""
    entity = weak_types.loosen_base(checker, out, entity)
    type_ = ranked_type(entity, span)
    items = constant_indices(checker, items, flat_shape(type_.shape), span)
    items = [slices.list_as_tensor(checker, out, item, span) for item in items]
    if index_arrays.count_of_arrays(items) > 0 and masks.mask_of(items) is None:
        if isinstance(new, DynamicValue):
            new = dtype_promotion.stored_value(
                checker, out, range_numbers.fitting_number(checker, out, new, type_), type_, span
            )
        _require_dtype(type_, new, span)
        return _arrays_update(checker, out, entity, items, new, span, adds=True)
    old = masks.masked_elements(checker, out, entity, items, span) or index(checker, out, entity, items, span)
    total = checker.engine.apply_operator(checker, out, "add", [old, new], {}, span, [])
    return index_update(checker, out, entity, items, total, span)


def _listed_update(
    checker: Checker,
    out: TypedBlockBuilder,
    entity: DynamicValue,
    places: list[int],
    rest: Sequence[AbstractValue | SliceItem],
    new: AbstractValue,
    span: Span | None,
) -> AbstractValue:
    """`x[[0, 2], rest] = new`, one position after the other: the last value of a repeated position stays."""
    known = tensor_type(new) if isinstance(new, DynamicValue) else None
    part = index(checker, TypedBlockBuilder(), entity, [PythonNumber(places[0]), *rest], span)
    part_type = tensor_type(part) if isinstance(part, DynamicValue) else None
    rows = known is not None and part_type is not None and known.rank > part_type.rank
    if rows and known is not None and known.shape[0] not in (1, len(places)):
        raise ShapeError(f"{known.shape[0]} values for {len(places)} positions", span)
    result: AbstractValue = entity
    for i, place in enumerate(places):
        value = new
        if rows and known is not None:
            value = index(checker, out, new, [PythonNumber(0 if known.shape[0] == 1 else i)], span)
        result = index_update(checker, out, result, [PythonNumber(place), *rest], value, span)
    return result


def _require_dtype(type_: TensorType, new: AbstractValue, span: Span | None) -> None:
    """Raises TypeMismatch for elements of another dtype than the tensor has, if both are known."""
    given = tensor_type(new) if isinstance(new, DynamicValue) else None
    if given is None:
        return
    has, found = prune(type_.base), prune(given.base)
    if isinstance(has, BaseType) and isinstance(found, BaseType) and has != found:
        message = f"cannot store {with_article(found)} value in {with_article(has)} tensor"
        raise TypeMismatch(message, span, help=f"cast it: .astype({spelling(has)})")


def _window_update(
    checker: Checker,
    out: TypedBlockBuilder,
    entity: DynamicValue,
    type_: TensorType,
    items: Sequence[AbstractValue | SliceItem],
    new: AbstractValue,
    span: Span | None,
) -> DynamicValue | None:
    """`x[i:i + 3] = new`; None where no bound of a slice is computed at run time."""
    rank = len(type_.shape)
    for item, axis in zip(items, item_axes(items, rank), strict=True):
        if not isinstance(item, SliceItem):
            continue
        if (count := slice_windows.length(checker, item, span)) is None:
            continue
        others = [i for i in items if i is not item and not (isinstance(i, PythonObject) and i.value is Ellipsis)]
        if axis >= rank or not all(isinstance(i, SliceItem) and i.is_whole for i in others):
            raise TypeCheckError(
                "an assignment to a slice with run-time bounds has no other indices",
                span,
                help="assign x[i:i + 3] = v, row by row",
            )
        shape = [count if a == axis else d for a, d in enumerate(type_.shape)]
        value = _broadcast(checker, out, new, type_, shape, span)
        return slice_windows.write(checker, out, entity, axis, item, count, value, span)
    return None


def _by_axis(items: Sequence[AbstractValue | SliceItem], rank: int) -> list[AbstractValue | SliceItem]:
    """One item for each axis of a subscript without None."""
    whole = SliceItem(None, None, None)
    at = next((p for p, i in enumerate(items) if isinstance(i, PythonObject) and i.value is Ellipsis), len(items))
    before, after = list(items[:at]), list(items[at + 1 :])
    return [*before, *(whole for _ in range(rank - len(before) - len(after))), *after]


def _update_axis(
    checker: Checker,
    out: TypedBlockBuilder,
    entity: DynamicValue,
    items: list[AbstractValue | SliceItem],
    new: AbstractValue,
    span: Span | None,
) -> AbstractValue:
    """`x[i, rest] = new`: read row i, update it, write it back. A slice before i: with the axis of i in front."""
    type_ = ranked_type(entity, span)
    axis = next((a for a, item in enumerate(items) if not isinstance(item, SliceItem)), None)
    if axis is None:
        return index_update(checker, out, entity, items, new, span)
    if axis > 0:
        order = (axis, *(a for a in range(len(items)) if a != axis))
        front = operators.apply(checker, out, lookup("transpose"), [entity], {"axes": order}, span, [])
        updated = _update_axis(checker, out, front, [items[a] for a in order], new, span)
        assert isinstance(updated, DynamicValue)
        back = tuple(order.index(a) for a in range(len(items)))
        return operators.apply(checker, out, lookup("transpose"), [updated], {"axes": back}, span, [])
    position, *rest = items
    if all(isinstance(i, SliceItem) and (i.start, i.stop, i.step) == (None, None, None) for i in rest):
        row = _broadcast(checker, out, new, type_, list(type_.shape[1:]), span)
    else:
        old = index(checker, out, entity, [position], span)
        assert isinstance(old, DynamicValue)
        changed = _update_axis(checker, out, old, rest, new, span)
        assert isinstance(changed, DynamicValue)
        row = changed
    if isinstance(position, DynamicValue):
        return operators.apply(checker, out, lookup("index_update"), [entity, position, row], {}, span, [])
    return index_update(checker, out, entity, [position], row, span)


def _broadcast(
    checker: Checker, out: TypedBlockBuilder, new: AbstractValue, type_: TensorType, shape: list[Dim], span: Span | None
) -> DynamicValue:
    """A value with the base type of the tensor and this shape."""
    if isinstance(new, Number):
        typed = checker.constant(out, new, type_.base)
    else:
        if isinstance(new, Tuple):
            new = array(checker, out, new, span)
        typed = checker.materialize(out, new, span)
        if isinstance(value_type := prune(typed.type), TensorType):
            checker.unify_base_at(value_type.base, type_.base, span)
    known = tensor_type(typed)
    if known is not None and tuple(known.shape) == flat_shape(tuple(shape)):
        return typed
    return operators.apply(
        checker, out, lookup("broadcast_to"), [typed], {"shape": tuple(shape)}, span, ["the new value"]
    )


def update_structure(
    checker: Checker,
    out: TypedBlockBuilder,
    entity: Tuple,
    items: Sequence[AbstractValue | SliceItem],
    new: AbstractValue,
    span: Span | None,
    inside: bool = False,
) -> AbstractValue:
    """The dict or list after `d["key"] = new`, `xs[i] = new`, and the tuple after a change `inside` of an item. Raises
    TypeCheckError."""
    key = overload_calls.key_of(items)
    if key is not None and tables.is_dict(entity):
        return hash_tables.with_item(checker, out, entity, key, new, span)
    if key is not None and entity.form is not None and entity.form.cls is dict:
        return records.with_item(entity, records.key_in(checker, entity, key, span), new)
    position = items[0] if len(items) == 1 else None
    is_list = entity.form is not None and entity.form.cls is list
    if (is_list or inside) and isinstance(position, Number):
        index = integer_of(position)
        if index is None:
            raise TypeCheckError(f"the index of a list must be an integer, found {position.specialize()}", span)
        if not -len(entity.items) <= index < len(entity.items):
            raise index_error("list" if is_list else "tuple", index, len(entity.items), span)
        changed = list(entity.items)
        changed[index] = new
        return Tuple(tuple(changed), entity.form)
    if is_list and isinstance(position, DynamicValue):
        return list_items.with_item(
            checker, out, dynamic_lists.as_growing(checker, out, entity, span), position, new, span
        )
    if is_list and isinstance(position, SliceItem):
        return _with_slice(checker, out, entity, position, new, span)
    raise TypeCheckError("a tuple's items cannot be assigned", span, help="make a new tuple, or use a list")


def _with_slice(
    checker: Checker, out: TypedBlockBuilder, entity: Tuple, place: SliceItem, new: AbstractValue, span: Span | None
) -> AbstractValue:
    """The list after `xs[i:j] = new`, where the checker knows the bounds and the new items."""
    bounds = [b for b in (place.start, place.stop, place.step) if b is not None]
    added = elements(checker, out, new, span)
    if added is None or not all(integer_of(b) is not None for b in bounds):
        raise TypeCheckError(
            "the bounds of an assigned slice of a list and the assigned items must be known at compile time",
            span,
            help="make a new list: `xs = xs[:i] + new + xs[j:]`",
        )
    numbers = [integer_of(b) for b in (place.start, place.stop, place.step)]
    changed = list(entity.items)
    try:
        changed[slice(*numbers)] = added
    except ValueError as error:
        raise TypeCheckError(str(error), span) from None
    return Tuple(tuple(changed), entity.form)
