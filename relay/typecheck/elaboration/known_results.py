"""What the checker knows of a function's result: numbers and sizes, alone and in tuples.

`n, d = x.shape` and `len(x) // 2` mean the same in a function of their own: what they give can size an array there, and
where the function is called.
"""

from __future__ import annotations

from collections.abc import Container, Sequence

from relay.ir.dims import MadeDim
from relay.ir.types import BaseType, TensorType, prune
from relay.typecheck.dims import follows_equal
from relay.typecheck.elaboration.entities import Computed, Entity, Number, Object, Size, Tuple, Typed, dim_of

_UNKNOWN = Object(None)


def common(results: Sequence[Entity], before: Container[MadeDim]) -> Entity | None:
    """The numbers that all returns of a function give in the same place; None if there is none. Sizes that the function
    makes are no numbers for its callers, only those made `before` it is called."""
    from relay.typecheck.elaboration.made_sizes import mentioned_in_number

    if not results:
        return None
    first, *others = results
    if isinstance(first, Number):
        same = all(isinstance(o, Number) and same_number(first, o) for o in others)
        outside = all(dim in before for dim in mentioned_in_number(first))
        return first if same and outside else None
    if not isinstance(first, Tuple):
        return None
    columns = []
    for position, item in enumerate(first.items):
        parts = [o.items[position] for o in others if isinstance(o, Tuple) and len(o.items) == len(first.items)]
        columns.append(common([item, *parts], before) if len(parts) == len(others) else None)
    if all(c is None for c in columns):
        return None
    return Tuple(tuple(_UNKNOWN if c is None else c for c in columns), first.form)


def overlaid(result: Entity, known: Entity | None) -> Entity:
    """A result of a call with the numbers that are known in the place of those that the run computes."""
    if isinstance(known, Number) and isinstance(result, Typed):
        type_ = prune(result.type)
        base = prune(type_.base) if isinstance(type_, TensorType) else None
        other = isinstance(base, BaseType) and base.is_float != known.is_float  # an annotation says so
        return result if base is None or other else known
    if isinstance(known, Tuple) and isinstance(result, Tuple) and len(known.items) == len(result.items):
        pairs = zip(result.items, known.items, strict=True)
        return Tuple(tuple(overlaid(r, None if k is _UNKNOWN else k) for r, k in pairs), result.form)
    return result


def same_number(a: Number, b: Number) -> bool:
    """Whether two numbers are known to be one."""
    if isinstance(a, Size) or isinstance(b, Size):
        left, right = dim_of(a), dim_of(b)
        return left is not None and right is not None and follows_equal(left, right) is True
    if isinstance(a, Computed) or isinstance(b, Computed):
        return a is b
    return type(a.value) is type(b.value) and a.value == b.value
