"""Subscripts with data-dependent result sizes: slices with run-time bounds, and boolean masks.

x[i:j:2]     as many positions as there are between the clipped bounds, which are taken
x[mask]      the positions at which the mask holds, which a loop finds, are taken
"""

from __future__ import annotations

from relay.errors import ShapeError, Span, TypeCheckError
from relay.ir.dims import DataDependentDim, Dim, resolve_dim, subtract
from relay.ir.expr import Arm, Block, Constant, Counter, If, Loop, LoopLabel, Next, OpCall, Var, Yield
from relay.ir.sizes.facts import EQUAL, DimConstraint, mentions_made, solve
from relay.ir.types import BOOL, INT32, INT64, StackType, TensorType, map_dims, prune, scalar, show_shape
from relay.operator import lookup
from relay.typecheck.elaboration.abstract_values import (
    AbstractValue,
    DeferredBinding,
    DynamicValue,
    Number,
    PythonObject,
    SliceItem,
    Tuple,
    TypedBlockBuilder,
    integer_of,
)
from relay.typecheck.elaboration.checker import Checker
from relay.typecheck.elaboration.dynamic_lists import list_positions
from relay.typecheck.elaboration.dynamic_shapes import data_dependent
from relay.typecheck.elaboration.expressions import operators
from relay.typecheck.elaboration.library.creation import array
from relay.typecheck.elaboration.values.expansion import expand
from relay.typecheck.guards import fits_int32
from relay.typecheck.unification import flat_shape, resolve

__all__ = ["boolean_index", "is_sized_by_the_run", "list_as_tensor", "slice_axis"]


def list_as_tensor(
    checker: Checker, out: TypedBlockBuilder, item: AbstractValue | SliceItem, span: Span | None
) -> AbstractValue | SliceItem:
    """The item of a subscript, where it is a list of run-time numbers: `x[[i, j]]`, `x[places]`."""
    if isinstance(item, DynamicValue):
        item = expand(checker, out, item, span)
    if isinstance(item, Tuple):
        is_list = item.form is not None and item.form.cls is list and any(map(_is_of_run, item.items))
    else:
        is_list = isinstance(item, DynamicValue) and isinstance(prune(item.type), StackType)
    if not is_list or isinstance(item, SliceItem):
        return item

    return array(checker, out, item, span)


def _is_of_run(entity: AbstractValue) -> bool:
    return isinstance(entity, DynamicValue) and not isinstance(entity.atom, Constant)


def is_sized_by_the_run(item: SliceItem, extent: Dim) -> bool:
    """True if the length of a slice of an axis depends on data-dependent sizes."""
    bounds = [item.start, item.stop]
    if item.is_whole:
        return False
    return mentions_made(extent) or any(
        isinstance(b, Number) and bool(data_dependent.mentioned_in_number(b)) for b in bounds
    )


def slice_axis(
    checker: Checker, out: TypedBlockBuilder, value: DynamicValue, axis: int, item: SliceItem, span: Span | None
) -> DynamicValue:
    """`value[.., start:stop:step, ..]` on one axis, clipped as in Python. The step is known."""
    step = item.step
    stride = 1 if step is None or (isinstance(step, PythonObject) and step.value is None) else integer_of(step)
    if not stride:
        raise TypeCheckError("the step of a slice must be an integer known at compile time", span)
    type_ = prune(value.type)
    assert isinstance(type_, TensorType)
    size = data_dependent.number(checker, out, flat_shape(type_.shape)[axis], span)
    one = list_positions.number(1)
    low, high = list_positions.number(0), size
    if stride < 0:
        low, high = list_positions.number(-1), list_positions.compute(checker, out, "subtract", size, one, span)
    start, stop = (_value(checker, out, bound, span) for bound in (item.start, item.stop))
    first = list_positions.slice_bound(checker, out, start, size, low, high, low if stride > 0 else high, span)
    last = list_positions.slice_bound(checker, out, stop, size, low, high, high if stride > 0 else low, span)
    count = list_positions.compute(checker, out, "subtract", last, first, span)
    if abs(stride) != 1:
        round_up = list_positions.number(stride - (1 if stride > 0 else -1))
        count = list_positions.compute(checker, out, "add", count, round_up, span)
    if stride != 1:
        count = list_positions.compute(checker, out, "floor_divide", count, list_positions.number(stride), span)
    extent = flat_shape(type_.shape)[axis]
    count = list_positions.compute(checker, out, "maximum", count, list_positions.number(0), span)
    length = data_dependent.make(checker, out, count, "length", span, not fits_int32(checker.hints, extent))
    steps: dict[str, object] = {"start": 0, "stop": length, "step": 1, "dtype": INT64}
    places = operators.apply(checker, out, lookup("arange"), [], steps, span, [])
    if stride != 1:
        places = operators.apply(
            checker, out, lookup("multiply"), [places, list_positions.number(stride)], {}, span, []
        )
    places = operators.apply(checker, out, lookup("add"), [places, first], {}, span, [])
    return operators.apply(checker, out, lookup("take"), [value, places], {"axis": axis}, span, [])


def _value(
    checker: Checker, out: TypedBlockBuilder, bound: AbstractValue | None, span: Span | None
) -> AbstractValue | None:
    """A bound; one that depends on data-dependent sizes as a value."""
    if isinstance(bound, Number) and data_dependent.mentioned_in_number(bound):
        return checker.materialize(out, bound, span)
    return bound


def boolean_index(
    checker: Checker, out: TypedBlockBuilder, value: DynamicValue, mask: DynamicValue, span: Span | None
) -> DynamicValue:
    """`value[mask]`, where the mask has the shape of the first axes. Raises ShapeError if it has not."""
    type_, mask_type = prune(value.type), prune(mask.type)
    assert isinstance(type_, TensorType) and isinstance(mask_type, TensorType)
    dims, rows = flat_shape(type_.shape), flat_shape(mask_type.shape)
    if len(rows) > len(dims):
        raise ShapeError(f"a mask of rank {len(rows)} cannot index a tensor of rank {len(dims)}", span)
    # Both as they must be: the sum of equal shapes demands it, and puts one data-dependent size for the other.
    wanted = TensorType(BOOL, dims[: len(rows)])
    if rows != wanted.shape:
        value, mask = _agreeing_operands(checker, out, value, mask, span)
        type_, mask_type = prune(value.type), prune(mask.type)
        assert isinstance(type_, TensorType) and isinstance(mask_type, TensorType)
        dims, rows = flat_shape(type_.shape), flat_shape(mask_type.shape)
    if len(rows) > 1:
        flat: Dim = 1
        for dim in rows:
            flat = flat * dim
        value = operators.apply(
            checker, out, lookup("reshape"), [value], {"shape": (flat, *dims[len(rows) :])}, span, []
        )
        mask = operators.apply(checker, out, lookup("reshape"), [mask], {"shape": (flat,)}, span, [])
    places = true_positions(checker, out, mask, span)
    return operators.apply(checker, out, lookup("take"), [value, places], {"axis": 0}, span, [])


def _agreeing_operands(
    checker: Checker, out: TypedBlockBuilder, value: DynamicValue, mask: DynamicValue, span: Span | None
) -> tuple[DynamicValue, DynamicValue]:
    """A tensor and a mask of its first axes, where data-dependent sizes have to be checked for that."""
    type_, mask_type = prune(value.type), prune(mask.type)
    assert isinstance(type_, TensorType) and isinstance(mask_type, TensorType)
    for left, right in zip(flat_shape(type_.shape), flat_shape(mask_type.shape), strict=False):
        left, right = resolve_dim(left), resolve_dim(right)
        if not (mentions_made(left) or mentions_made(right)):
            if checker.hints.ask(left, EQUAL, right) is not True:
                shapes = f"{show_shape(flat_shape(mask_type.shape))} for a tensor of {show_shape(type_.shape)}"
                raise ShapeError(f"a mask must have the shape of the first axes; found {shapes}", span)
            continue
        if left == right:
            continue
        solved = solve(subtract(left, right), lambda v: isinstance(v, DataDependentDim))
        if solved is None:
            raise TypeCheckError(
                "a mask must have the shape of the first axes, which is known only at run time here", span
            )
        variable, found = solved
        data_dependent.require(checker, out, DimConstraint(variable, EQUAL, found), span)

        replaced = data_dependent.dim_replacement(variable, found)
        value = data_dependent.ascribe_type(checker, out, value, map_dims(resolve(value.type), replaced), span)
        mask = data_dependent.ascribe_type(checker, out, mask, map_dims(resolve(mask.type), replaced), span)
        return _agreeing_operands(checker, out, value, mask, span)
    return value, mask


def true_positions(checker: Checker, out: TypedBlockBuilder, mask: DynamicValue, span: Span | None) -> DynamicValue:
    """The indices at which a mask of rank 1 holds: int32, or int64 where that may not hold them."""
    type_ = prune(mask.type)
    assert isinstance(type_, TensorType)
    (extent,) = flat_shape(type_.shape)
    is_wide = not fits_int32(checker.hints, extent)
    base = INT64 if is_wide else INT32
    whole = operators.apply(checker, out, lookup("cast"), [mask], {"dtype": INT64}, span, [])
    count = operators.apply(checker, out, lookup("sum"), [whole], {"axis": None, "keepdims": False}, span, [])
    length = data_dependent.make(checker, out, count, "chosen", span, is_wide)
    found_type = TensorType(base, (length,))
    attributes: dict[str, object] = {"shape": found_type.shape, "dtype": base}
    zeros = operators.apply(checker, out, lookup("zeros"), [], attributes, span, [])
    rounds = data_dependent.number(checker, out, extent, span)
    index = checker.variable("i", scalar(INT64), span)
    places, filled = checker.variable("places", found_type, span), checker.variable("filled", scalar(INT64), span)
    label, body, then, other = LoopLabel("positions"), TypedBlockBuilder(), TypedBlockBuilder(), TypedBlockBuilder()
    holds = checker.bind(body, OpCall(lookup("index").name, (mask.atom, index), {}, span), scalar(BOOL), "holds", span)
    place = checker.bind(then, OpCall("cast", (index,), {"dtype": base}, span), scalar(base), "place", span)
    update = OpCall(lookup("index_update").name, (places, filled, place.atom), {}, span)
    longer = checker.bind(then, update, found_type, "places", span)
    more = list_positions.compute(
        checker, then, "add", DynamicValue(filled, scalar(INT64)), list_positions.number(1), span
    )
    then.terminator = Yield((longer.atom, more.atom), span)
    other.terminator = Yield((places, filled), span)
    after = (checker.variable("places", found_type, span), checker.variable("filled", scalar(INT64), span))

    def choice() -> If:
        return If((Arm(Block((), Yield((holds.atom,), span)), then.block()),), other.block(), span)

    body.items.append(DeferredBinding(after, choice))
    body.terminator = Next(label, after, span)
    results: tuple[Var, ...] = (
        checker.variable("places", found_type, span),
        checker.variable("filled", scalar(INT64), span),
    )
    initial = (zeros.atom, list_positions.number(0).atom)
    trip = Counter(index, rounds.atom)
    out.items.append(DeferredBinding(results, lambda: Loop(label, (places, filled), initial, body.block(), trip, span)))
    return DynamicValue(results[0], found_type)
