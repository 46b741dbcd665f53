"""Conditions on sizes that elaboration cannot decide: both arms are looked at, each knowing what the condition says.

That is so for sizes that the run makes, and in a scheme for annotated ones, as `if n > 3` for
`x: Tensor[Float, (n,)]`, where a call will choose. There what the arms make may differ in its sizes, which are `Any`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

import attrs

from relay.ir.dims import add
from relay.ir.facts import AT_LEAST, DIFFERENT, EQUAL, DimConstraint
from relay.typecheck.elaboration.entities import Entity, Number, Typed, dim_of
from relay.typecheck.elaboration.session import Session


@attrs.frozen
class SizeCondition:
    """What holds of sizes where a condition does, and where it does not."""

    holds: DimConstraint
    fails: DimConstraint


def note(session: Session, name: str, operands: Sequence[Entity], result: Entity) -> None:
    """Remember what a comparison says of sizes."""
    if len(operands) != 2 or not isinstance(result, Typed):
        return
    left, right = operands
    if not isinstance(left, Number) or not isinstance(right, Number):
        return
    a, b = dim_of(left), dim_of(right)
    if a is None or b is None:
        return
    at_least = DimConstraint(a, AT_LEAST, b), DimConstraint(b, AT_LEAST, add(a, 1))
    at_most = DimConstraint(b, AT_LEAST, a), DimConstraint(a, AT_LEAST, add(b, 1))
    equal = DimConstraint(a, EQUAL, b), DimConstraint(a, DIFFERENT, b)
    meanings = {
        "greater_equal": at_least,
        "less": at_least[::-1],
        "less_equal": at_most,
        "greater": at_most[::-1],
        "equal": equal,
        "not_equal": equal[::-1],
    }
    if name in meanings:
        session.size_conditions[result.atom] = SizeCondition(*meanings[name])


def of(session: Session, condition: Typed) -> SizeCondition | None:
    """What a condition says of sizes; None if nothing."""
    return session.size_conditions.get(condition.atom)


@contextlib.contextmanager
def arm(session: Session, known: Sequence[DimConstraint], is_chosen: bool) -> Iterator[None]:
    """While an arm is elaborated in which these hold; `is_chosen`: a condition on sizes chooses it."""
    session.chosen_by_sizes += is_chosen
    try:
        with session.hints.where_holds(known):
            yield
    finally:
        session.chosen_by_sizes -= is_chosen


def is_lenient(session: Session) -> bool:
    """Whether the place at hand may be reached for some of the annotated sizes only."""
    return session.generic and session.chosen_by_sizes > 0
