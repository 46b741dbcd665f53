"""Variables of `range` and `enumerate` take the integer dtype of what they meet.

They are int32 in the run, unless a bound is int64. Where one, or a sum or product of it and numbers, meets integers of
64 bits, it is converted: in `x[i] * i` for an int64 x it is an int64, as a literal would be. It stays what it is
everywhere else, also in a variable that a loop carries.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from relay.ir.expr import OpCall
from relay.ir.types import INT32, INT64, BaseClass, TensorType, Unknown, prune
from relay.operator import lookup
from relay.operator.relation import BaseSignature
from relay.typecheck.elaboration.entities import Entity, Number, Output, Typed
from relay.typecheck.elaboration.session import Session

_KEEPING = ("add", "subtract", "multiply", "floor_divide", "mod", "negative")
"""What makes such a number of one and numbers."""


def note(name: str, operands: Sequence[Entity], result: Entity) -> Entity:
    """The result of Python's arithmetic, known as a number of a range if it is made of one and literals only."""
    if name not in _KEEPING or not isinstance(result, Typed):
        return result
    ranges = [o for o in operands if isinstance(o, Typed) and o.of_range]
    if not ranges or not all(isinstance(o, Number) or o in ranges for o in operands):
        return result
    return attrs.evolve(result, of_range=True)


def adapted(
    session: Session, out: Output, signature: BaseSignature, values: Sequence[Typed | None]
) -> list[Typed | None]:
    """The operands of an operator, with numbers of ranges in the dtype of the integers that must have the same one."""
    found = list(values)
    for position, value in enumerate(values):
        if value is None or not value.of_range:
            continue
        token = signature.token(position).text
        for other_position, other in enumerate(values):
            if other is not None and not other.of_range and signature.token(other_position).text == token:
                found[position] = fitting(session, out, value, other.type)
    return found


def fitting(session: Session, out: Output, value: Typed, wanted: object) -> Typed:
    """A number of a range in the dtype of a tensor type, if that is int64, or open in a function's own type."""
    type_ = prune(wanted)  # type: ignore[arg-type]
    if not value.of_range or not isinstance(type_, TensorType):
        return value
    base = prune(type_.base)
    if base == INT64:
        call = OpCall(lookup("cast").name, (value.atom,), {"dtype": INT64})
        return session.bind(out, call, TensorType(INT64, ()), "index", value.atom.span)
    if session.generic and isinstance(base, Unknown) and not base.literals:
        whole = session.solver.literal_base(1, value.atom.span)
        session.solver.restrict(whole, frozenset({BaseClass.INTEGER}))
        return Typed(value.atom, TensorType(whole, ()))
    return value


def of_range(value: Typed) -> Typed:
    """A number of a range, if it may become another one."""
    type_ = prune(value.type)
    is_small = isinstance(type_, TensorType) and prune(type_.base) == INT32
    return attrs.evolve(value, of_range=True) if is_small else value
