"""Subscripts by masks, where the size of the result is known before the program runs.

x[[True, False, True]], x[MASK]     the mask is known: the positions where it holds
x[mask] = value                     a scalar for the elements where the mask holds: where(mask, value, x)
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from relay.errors import ShapeError, Span
from relay.ir.dims import Dim
from relay.ir.expr import Constant
from relay.ir.types import BOOL, TensorType, prune
from relay.operator import lookup
from relay.typecheck.elaboration import operators
from relay.typecheck.elaboration.entities import Entity, Output, SliceItem, Tuple, Typed, is_constant_bool
from relay.typecheck.elaboration.session import Session
from relay.typecheck.elaboration.tensors import tensor_type
from relay.typecheck.unification import Clash


def known(item: Entity | SliceItem) -> np.ndarray | None:
    """The truth values of a mask of one axis that is known before the program runs; None for everything else."""
    match item:
        case Tuple(items) if items and None not in (truths := [is_constant_bool(i) for i in items]):
            return np.asarray(truths)
        case Typed(Constant(value)) if value.dtype == np.bool_ and value.ndim == 1:
            return value
        case _:
            return None


def positions(session: Session, truths: np.ndarray, extent: Dim, span: Span | None) -> Typed:
    """Where a known mask holds, as indices. Raises ShapeError if it is not as long as the axis."""
    try:
        session.solver.unify_dim(extent, len(truths))
    except Clash:
        raise ShapeError(f"a mask of {len(truths)} elements for an axis of {extent}", span) from None
    constant = Constant(np.flatnonzero(truths).astype(np.int32), span)
    return Typed(constant, constant.type)


def update(
    session: Session,
    out: Output,
    entity: Typed,
    type_: TensorType,
    items: Sequence[Entity | SliceItem],
    new: Entity,
    span: Span | None,
) -> Typed | None:
    """`x[mask] = value` for a mask of x's shape and a scalar. None if the subscript is no mask."""
    item = items[0] if len(items) == 1 else None
    mask = tensor_type(item) if isinstance(item, Typed) else None
    if not isinstance(item, Typed) or mask is None or prune(mask.base) != BOOL or mask.rank == 0:
        return None
    session.unify_at(
        item.type,
        TensorType(BOOL, type_.shape),
        span,
        "the mask of an assignment",
        help="for whole rows: x = relay.where(mask[:, None], value, x)",
    )
    value = session.materialise(out, new, span)
    session.unify_at(
        value.type,
        TensorType(type_.base, ()),
        span,
        "what is assigned to the elements of a mask",
        help="for values of x's shape: x = relay.where(mask, values, x)",
    )
    return operators.apply(session, out, lookup("where"), [item, value, entity], {}, span, [])
