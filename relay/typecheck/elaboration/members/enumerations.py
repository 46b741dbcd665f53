"""Classes of enumerations, and their members by value and by name."""

from __future__ import annotations

import enum

from relay.errors import Span, TypeCheckError
from relay.ir.expr import Assert, Binding
from relay.ir.types import Form
from relay.typecheck.elaboration.abstract_values import (
    AbstractValue,
    DynamicValue,
    PythonNumber,
    PythonObject,
    Tuple,
    TypedBlockBuilder,
)
from relay.typecheck.elaboration.checker import Checker
from relay.typecheck.elaboration.expressions.attributes import static_value
from relay.typecheck.elaboration.library.library_calls import call_library
from relay.typecheck.elaboration.values.labels import POSITION, all_members, members_of_run
from relay.typecheck.elaboration.values.objects import object_entity


def field_of_member(
    checker: Checker, out: TypedBlockBuilder, member: Tuple, name: str, span: Span | None
) -> AbstractValue:
    """The name or value of a member that is known at run time only."""
    members = members_of_run(member)
    assert members is not None
    fields = Tuple(tuple(object_entity(getattr(known, name), span) for known in members), Form(list))
    return checker.engine.index(checker, out, fields, [member.items[0]], span)


def member_of_value(
    checker: Checker, out: TypedBlockBuilder, members: enum.EnumMeta, value: AbstractValue, span: Span | None
) -> AbstractValue:
    """`Color(2)`. Raises TypeCheckError where no member has the value."""
    if (isinstance(value, PythonObject) and isinstance(value.value, members)) or members_of_run(value) is members:
        return value
    values = Tuple(tuple(object_entity(member.value, span) for member in all_members(members)), Form(list))
    if isinstance(value, DynamicValue) and not issubclass(members, int):
        position = call_library(checker, out, "index__", [values, value], span)
        zero = PythonNumber(0, span)
        found = checker.engine.apply_operator(checker, out, "greater_equal", [position, zero], {}, span, [])
        checker.effect("assert", "may not find a member", span)
        held = checker.materialize(out, found, span).atom
        out.items.append(Binding((), Assert(held, f"this is no value of {members.__name__}", span)))
        return Tuple((position,), Form(members, (POSITION,)))
    number = static_value(value, f"the value of a {members.__name__}", span)
    try:
        return PythonObject(members(number))
    except ValueError:
        known = ", ".join(repr(member.value) for member in all_members(members))
        raise TypeCheckError(f"{number!r} is no value of {members.__name__}", span, help=f"it has {known}") from None


def member_of_name(members: enum.EnumMeta, name: AbstractValue, span: Span | None) -> AbstractValue:
    """`Color["RED"]`. Raises TypeCheckError where no member has the name."""
    found = static_value(name, f"the name of a {members.__name__}", span)
    if not isinstance(found, str) or found not in members.__members__:
        names = ", ".join(members.__members__)
        raise TypeCheckError(f"{members.__name__} has no member {found!r}", span, help=f"it has {names}")
    return PythonObject(members.__members__[found])
