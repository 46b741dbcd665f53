"""Classes of enumerations, and their members by value and by name."""

from __future__ import annotations

import enum

from relay.errors import Span, TypeCheckError
from relay.typecheck.elaboration.abstract_values import AbstractValue, PythonObject
from relay.typecheck.elaboration.expressions.attributes import static_value


def all_members(members: enum.EnumMeta) -> list[enum.Enum]:
    """The members of a class, in their order."""
    return list(members)


def member_of_value(members: enum.EnumMeta, value: AbstractValue, span: Span | None) -> AbstractValue:
    """`Color(2)`. Raises TypeCheckError where no member has the value."""
    if isinstance(value, PythonObject) and isinstance(value.value, members):
        return value
    found = static_value(value, f"the value of a {members.__name__}", span)
    try:
        return PythonObject(members(found))
    except ValueError:
        values = ", ".join(repr(member.value) for member in all_members(members))
        raise TypeCheckError(f"{found!r} is no value of {members.__name__}", span, help=f"it has {values}") from None


def member_of_name(members: enum.EnumMeta, name: AbstractValue, span: Span | None) -> AbstractValue:
    """`Color["RED"]`. Raises TypeCheckError where no member has the name."""
    found = static_value(name, f"the name of a {members.__name__}", span)
    if not isinstance(found, str) or found not in members.__members__:
        names = ", ".join(members.__members__)
        raise TypeCheckError(f"{members.__name__} has no member {found!r}", span, help=f"it has {names}")
    return PythonObject(members.__members__[found])
