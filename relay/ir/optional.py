"""Values that may be None at run time, as one data type: `x = None` that a loop or a branch gives a value.

    Optional[A]    Nothing | Some(value: A)

Programs do not write it. A value is wrapped where it meets None, and read where it is used; to Python it is None or
the value.
"""

from __future__ import annotations

from relay.ir.types import Constructor, DataDefinition, DataType, Kind, Type, TypeId, prune

NOTHING, SOME = "Nothing", "Some"


class OptionalOrigin:
    """The origin of monomorphic definitions of optional values."""


def _definition() -> DataDefinition:
    content = TypeId("A", Kind.Type)
    made = DataDefinition("Optional", parameters=(content,), origin=OptionalOrigin())
    made.constructors = (Constructor(NOTHING, ()), Constructor(SOME, (content,), ("value",)))
    return made


OPTIONAL = _definition()


def is_optional(type_: Type) -> bool:
    """True if values of a type may be None at run time."""
    known = prune(type_)
    return isinstance(known, DataType) and isinstance(known.definition.origin, OptionalOrigin)


def content_type(type_: Type) -> Type:
    """The type that values of an optional type have where they are not None."""
    known = prune(type_)
    assert isinstance(known, DataType)
    if known.arguments:
        (content,) = known.arguments
        return content  # type: ignore[return-value]
    return known.definition.constructors[1].fields[0]
