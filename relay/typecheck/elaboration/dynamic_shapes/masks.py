"""Boolean masks with a static result size.

x[[True, False, True]], x[MASK]     the mask is known: the positions where it holds
x[mask] = value                     a scalar for the elements where the mask holds: where(mask, value, x)
x[mask] += value                    the same of x + value
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from relay.errors import ShapeError, Span, TypeMismatch
from relay.ir.dims import Dim
from relay.ir.expr import Constant
from relay.ir.types import BOOL, TensorType, prune
from relay.operator import lookup
from relay.typecheck.elaboration.abstract_values import (
    AbstractValue,
    DynamicValue,
    MaskedElements,
    PythonNumber,
    SliceItem,
    Tuple,
    TypedBlockBuilder,
    is_constant_bool,
)
from relay.typecheck.elaboration.checker import Checker
from relay.typecheck.elaboration.expressions import operators
from relay.typecheck.elaboration.values.tensors import tensor_type
from relay.typecheck.unification import Clash, flat_shape


def constant_mask(item: AbstractValue | SliceItem) -> np.ndarray | None:
    """The booleans of a mask of one axis that is known at compile time; None for everything else."""
    match item:
        case Tuple(items) if items and None not in (truths := [is_constant_bool(i) for i in items]):
            return np.asarray(truths)
        case DynamicValue(Constant(value)) if value.dtype == np.bool_ and value.ndim == 1:
            return value
        case _:
            return None


def positions(checker: Checker, truths: np.ndarray, extent: Dim, span: Span | None) -> DynamicValue:
    """The indices where a known mask is True. Raises ShapeError if it is not as long as the axis."""
    try:
        checker.solver.unify_dim(extent, len(truths))
    except Clash:
        raise ShapeError(f"a mask of {len(truths)} elements cannot index an axis of {extent}", span) from None
    constant = Constant(np.flatnonzero(truths).astype(np.int32), span)
    return DynamicValue(constant, constant.type)


def mask_of(items: Sequence[AbstractValue | SliceItem]) -> DynamicValue | None:
    """The only item of a subscript, if it is a mask in a tensor."""
    item = items[0] if len(items) == 1 else None
    if not isinstance(item, DynamicValue):
        return None
    mask = tensor_type(item)
    return item if mask is not None and prune(mask.base) == BOOL and mask.rank > 0 else None


def masked_elements(
    checker: Checker,
    out: TypedBlockBuilder,
    entity: AbstractValue,
    items: Sequence[AbstractValue | SliceItem],
    span: Span | None,
) -> MaskedElements | None:
    """The elements that `x[mask] += ..` changes, in their places, with 1 in the others, for which every operator has
    a value and a derivative. None if the subscript is not a run-time mask."""
    mask = mask_of(items)
    type_ = tensor_type(entity) if isinstance(entity, DynamicValue) else None
    if mask is None or type_ is None or not isinstance(entity, DynamicValue):
        return None
    one = checker.constant(out, PythonNumber(1, span), type_.base)
    wide = over_rows(checker, out, mask, type_, span)
    return MaskedElements(operators.apply(checker, out, lookup("where"), [wide, entity, one], {}, span, []), mask)


def combine_masked(
    checker: Checker, out: TypedBlockBuilder, name: str, operands: Sequence[AbstractValue], span: Span | None
) -> MaskedElements:
    """An operator of chosen elements and scalars."""
    mask = next(o.mask for o in operands if isinstance(o, MaskedElements))
    for operand in operands:
        known = tensor_type(operand) if isinstance(operand, DynamicValue) else None
        if known is not None and known.rank > 0:
            raise TypeMismatch(
                "the value added to the elements of a mask must be a scalar",
                span,
                help="for values of x's shape: x = relay.where(mask, x + values, x)",
            )
    values = [o.value if isinstance(o, MaskedElements) else o for o in operands]
    return MaskedElements(operators.apply(checker, out, lookup(name), values, {}, span, []), mask)


def update(
    checker: Checker,
    out: TypedBlockBuilder,
    entity: DynamicValue,
    type_: TensorType,
    items: Sequence[AbstractValue | SliceItem],
    new: AbstractValue,
    span: Span | None,
) -> DynamicValue | None:
    """`x[mask] = value` for a mask of x's shape and a scalar. None if the subscript is not a mask."""
    item = mask_of(items)
    if item is None:
        return None
    if isinstance(new, MaskedElements) and new.mask is item:
        wide = over_rows(checker, out, item, type_, span)
        return operators.apply(checker, out, lookup("where"), [wide, new.value, entity], {}, span, [])
    given = tensor_type(new) if isinstance(new, DynamicValue) else None
    if isinstance(new, Tuple) or (given is not None and given.rank > 0):
        return None  # one value for each place where it holds
    mask = over_rows(checker, out, item, type_, span)
    value = checker.materialize(out, new, span)
    wanted = TensorType(type_.base, ())
    checker.unify_at(value.type, wanted, span, "the value assigned to the elements of a mask")
    return operators.apply(checker, out, lookup("where"), [mask, value, entity], {}, span, [])


def over_rows(
    checker: Checker, out: TypedBlockBuilder, mask: DynamicValue, type_: TensorType, span: Span | None
) -> DynamicValue:
    """A mask of the first axes of a tensor as one of all of them, with extents of 1. Raises TypeMismatch for others."""
    dims, rows = flat_shape(type_.shape), flat_shape(mask.type.shape) if isinstance(mask.type, TensorType) else ()
    known = tensor_type(mask)
    rank = known.rank if known is not None else len(rows)
    checker.unify_at(mask.type, TensorType(BOOL, dims[:rank]), span, "the mask of an assignment")
    if rank >= len(dims):
        return mask
    shape = (*dims[:rank], *[1] * (len(dims) - rank))
    return operators.apply(checker, out, lookup("reshape"), [mask], {"shape": shape}, span, [])
