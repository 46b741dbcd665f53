"""Calls of the operators that make arrays: what Python's signatures leave open.

An array that is made without a dtype takes, as a literal does, the dtype of what it meets: `zeros((3,))` is float64
beside float64. `arange(n)` starts at 0. `full(shape, v)` is of integers, floats or truth values as v is, and also
takes a value that only the run knows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from relay.errors import Span
from relay.ir.types import BOOL, BaseType
from relay.operator import Operator, Relation, lookup
from relay.typecheck.elaboration import operators
from relay.typecheck.elaboration.attributes import checked_attribute, normalise_attribute, static_value
from relay.typecheck.elaboration.entities import Entity, Number, Object, Output, Typed, is_constant_bool
from relay.typecheck.elaboration.session import Session


def completed_arguments(
    operator: Operator, arguments: Sequence[Entity], keywords: Mapping[str, Entity]
) -> list[Entity]:
    """The positional arguments, with the start of `arange(n)`."""
    if operator is lookup("arange") and len(arguments) == 1 and not keywords.keys() & {"start", "stop"}:
        return [Number(0, arguments[0].span if isinstance(arguments[0], Number) else None), *arguments]
    return list(arguments)


def open_dtype(
    session: Session,
    operator: Operator,
    named: dict[str, object],
    arguments: int,
    keywords: Mapping[str, Entity],
    span: Span | None,
) -> None:
    """Let the dtype of the result be decided by its uses, if the call does not give it."""
    if not isinstance(operator.relation, Relation) or operator.relation.base.result.text != "@dtype":
        return
    default = operator.attributes.get("dtype")
    names = (*operator.operands, *operator.attributes)
    if not isinstance(default, BaseType) or "dtype" in keywords or "dtype" in names[:arguments]:
        return
    value = named.get("value") if operator is lookup("full") else None
    if isinstance(value, Typed):  # a truth value: those of the run are not here
        named["dtype"] = Object(BOOL)
        return
    is_float = default.is_float and not isinstance(value, Number)
    is_float = is_float or any(value.is_float for value in named.values() if isinstance(value, Number))
    named["dtype"] = Object(session.solver.literal_base(0.0 if is_float else 0, span))


def filled(
    session: Session, out: Output, operator: Operator, named: Mapping[str, object], span: Span | None
) -> Entity | None:
    """`full(shape, v)` with a value of the run, in its own dtype unless one is given; None for all other calls."""
    value = named.get("value")
    if operator is not lookup("full") or not isinstance(value, Typed) or is_constant_bool(value) is not None:
        return None
    shape, dtype = named["shape"], named["dtype"]
    static = static_value(shape, "shape", span, symbolic=True)  # type: ignore[arg-type]
    sizes = normalise_attribute("shape", static)
    if dtype != operator.attributes["dtype"]:
        given = normalise_attribute("dtype", static_value(dtype, "dtype", span))  # type: ignore[arg-type]
        base = checked_attribute(operator, "dtype", given, span)
        value = operators.apply(session, out, lookup("cast"), [value], {"dtype": base}, span, [])
    return operators.apply(session, out, lookup("broadcast_to"), [value], {"shape": sizes}, span, ["the value"])
