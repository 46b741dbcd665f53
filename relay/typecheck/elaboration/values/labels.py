"""Labels: strings, members of enumerations, forms of trees, decorated functions and static numbers and bools that
structures contain beside arrays.

They are not run-time values. A function gets a structure without them, and its body is specialized to them.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import TypeGuard

from relay.errors import Span, TypeCheckError
from relay.ir.expr import Constant
from relay.ir.tree import StaticNode, Structure
from relay.ir.types import Form
from relay.typecheck.elaboration.abstract_values import (
    AbstractValue,
    DynamicValue,
    GlobalFunction,
    LocalFunction,
    PythonNumber,
    PythonObject,
    SliceItem,
    StaticNumber,
    TensorMethod,
    Tuple,
    is_constant_bool,
)
from relay.typecheck.elaboration.values.static_keys import static_key

_NONE = PythonObject(None)


def is_label(value: object) -> bool:
    """True if a Python object is such a string, bool, member of an enumeration or form, or a method of tensors."""
    return isinstance(value, str | bool | enum.Enum | TensorMethod | Structure)


def holds_labels(entity: AbstractValue) -> bool:
    """True if a structure contains strings or members of enumerations."""
    return isinstance(entity, Tuple) and any(
        holds_labels(item) or isinstance(item, StaticNumber) or _is_label(item) for item in entity.items
    )


def holds_numbers(entity: AbstractValue) -> bool:
    """True if a structure holds integers or bools that are known."""
    return isinstance(entity, Tuple) and any(
        _is_integer(item) or is_written_bool(item) or holds_numbers(item) for item in entity.items
    )


def is_written_bool(entity: AbstractValue) -> bool:
    """True for a bool that is written in the program."""
    is_written = isinstance(entity, DynamicValue) and isinstance(entity.atom, Constant)
    return is_written and is_constant_bool(entity) is not None


def with_static_numbers(entity: AbstractValue) -> AbstractValue:
    """A structure whose integers and bools, those that are known, are labels."""
    if isinstance(entity, Tuple):
        return Tuple(tuple(map(with_static_numbers, entity.items)), entity.form)
    if is_written_bool(entity):
        return PythonObject(is_constant_bool(entity))
    if _is_integer(entity):
        return StaticNumber(entity.value, entity.span)
    return entity


def with_plain_numbers(entity: AbstractValue) -> AbstractValue:
    """A structure whose integers are no labels."""
    if isinstance(entity, Tuple) and holds_labels(entity):
        return Tuple(tuple(map(with_plain_numbers, entity.items)), entity.form)
    return PythonNumber(entity.value, entity.span) if isinstance(entity, StaticNumber) else entity


def _is_integer(entity: AbstractValue) -> TypeGuard[PythonNumber]:
    return isinstance(entity, PythonNumber) and not entity.is_float


def holds_functions(entity: AbstractValue) -> bool:
    """True if a structure contains functions that are known by name, or labels."""
    return isinstance(entity, Tuple) and any(_is_static(item) or holds_functions(item) for item in entity.items)


def without_labels(entity: AbstractValue) -> AbstractValue:
    """A structure that holds labels, or is one, with None in their place and in that of functions."""
    return _NONE if _is_label(entity) else _without_labels(entity) if holds_labels(entity) else entity


def without_functions(entity: AbstractValue) -> AbstractValue:
    """The same of a structure that holds functions or labels."""
    return _without_labels(entity) if holds_functions(entity) else entity


def _without_labels(entity: AbstractValue) -> AbstractValue:
    if isinstance(entity, Tuple):
        return Tuple(tuple(_NONE if _is_static(item) else _without_labels(item) for item in entity.items), entity.form)
    return entity


def with_labels(entity: AbstractValue, like: AbstractValue) -> AbstractValue:
    """The structure with the labels of another one, if that holds any."""
    return put_back(entity, like) if holds_labels(like) else entity


def put_back(entity: AbstractValue, like: AbstractValue) -> AbstractValue:
    """The same, also of functions."""
    if _is_static(like):
        return like
    if isinstance(entity, Tuple) and isinstance(like, Tuple):
        pairs = zip(entity.items, like.items, strict=True)
        return Tuple(tuple(put_back(item, beside) for item, beside in pairs), entity.form)
    return entity


def require_passed(entity: AbstractValue, span: Span | None) -> None:
    """Raise TypeCheckError for a form of a tree that holds functions which are values of the function at hand: where it
    is passed to, they mean nothing."""
    for part in (entity, *(entity.items if isinstance(entity, Tuple) else ())):
        if isinstance(part, PythonObject) and isinstance(part.value, Structure):
            values = (node.value for node in part.value.nodes if isinstance(node, StaticNode))
            if any(isinstance(value, DynamicValue | LocalFunction) for value in values):
                raise TypeCheckError(
                    "the structure of a tree with functions in it cannot be passed to a function",
                    span,
                    help="pass the tree, and take its structure there: relay.tree.structure(value)",
                )


def labels_alone(entity: AbstractValue) -> AbstractValue:
    """A structure with None in place of everything but labels and functions."""
    if isinstance(entity, Tuple):
        return Tuple(tuple(map(labels_alone, entity.items)), entity.form)
    return entity if _is_static(entity) else _NONE


def labels_key(entity: AbstractValue) -> object:
    """The key of the labels in a structure; None if there are none."""
    return static_key(labels_alone(entity)) if holds_labels(entity) or _is_label(entity) else None


def _is_label(entity: AbstractValue) -> bool:
    return isinstance(entity, PythonObject) and is_label(entity.value)


def _is_static(entity: AbstractValue) -> bool:
    if isinstance(entity, GlobalFunction | StaticNumber):
        return True
    return isinstance(entity, PythonObject) and entity.value is not None


# ---- members of enumerations: those that are integers, `class Op(IntEnum)`, are numbers where they meet numbers, or
# different ones meet; others are records of their position there


def is_member(entity: AbstractValue) -> bool:
    """True for a member that is known."""
    return isinstance(entity, PythonObject) and isinstance(entity.value, enum.Enum)


def _is_integer_member(entity: AbstractValue) -> bool:
    return isinstance(entity, PythonObject) and isinstance(entity.value, enum.Enum) and isinstance(entity.value, int)


def as_number(entity: AbstractValue, span: Span | None) -> AbstractValue:
    """Such a member as its integer, another one as a record of its position; all else as it is."""
    if not isinstance(entity, PythonObject) or not isinstance(entity.value, enum.Enum):
        return entity
    if isinstance(entity.value, int):
        return PythonNumber(int(entity.value), span)
    members = type(entity.value)
    if entity.value not in list(members):  # a combination of flags
        return entity
    return Tuple((PythonNumber(list(members).index(entity.value), span),), Form(members, (POSITION,)))


POSITION = "position__"
"""The field of a member that is known at run time only: its position among the members."""


def all_members(members: enum.EnumMeta) -> list[enum.Enum]:
    """The members of a class, in their order."""
    return list(members)


def members_of_run(entity: AbstractValue) -> type[enum.Enum] | None:
    """The class of a member that is known at run time only; None for all else."""
    cls = entity.form.cls if isinstance(entity, Tuple) and entity.form is not None else None
    return cls if cls is not None and issubclass(cls, enum.Enum) else None


def as_numbers(entity: AbstractValue, span: Span | None) -> AbstractValue:
    """A value, or structure, with integers in place of such members."""
    if isinstance(entity, Tuple):
        return Tuple(tuple(as_numbers(item, span) for item in entity.items), entity.form)
    return as_number(entity, span)


def as_indices(
    whole: AbstractValue, items: Sequence[AbstractValue | SliceItem], span: Span | None
) -> Sequence[AbstractValue | SliceItem]:
    """The items of a subscript, with integers in place of such members; the keys of a dict stay what they are."""
    if isinstance(whole, Tuple) and whole.form is not None and whole.form.cls is dict:
        return items
    return [
        as_number(item, span) if not isinstance(item, SliceItem) and _is_integer_member(item) else item
        for item in items
    ]


def holds_members(entity: AbstractValue) -> bool:
    """True if a value is such a member, or holds one."""
    if isinstance(entity, Tuple):
        return members_of_run(entity) is not None or any(map(holds_members, entity.items))
    return is_member(entity)
