"""Values of data types between Python and a program: any depth, without recursion on it.

What is neither data nor a tuple of a field's type is the caller's to describe, accept and give back.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

from relay.errors import InternalError
from relay.eval.values import Data
from relay.frontend.data.values import make
from relay.ir.annotations.annotation import Ref
from relay.ir.definition import DataClass, complete_definition, data_class, is_optional
from relay.ir.protocols import is_value
from relay.ir.types import (
    Constructor,
    DataDefinition,
    DataType,
    FunctionType,
    RefType,
    StackType,
    Type,
    mentioned_definitions,
    prune,
)
from relay.operator.relation import substitute
from relay.typecheck.elaboration import Argument, DataArg
from relay.typecheck.elaboration.closures.returned_closures import ClosureClass, unwrap_closure
from relay.typecheck.unification import resolve

__all__ = [
    "classes",
    "describe",
    "fields",
    "from_data",
    "is_recursive",
    "is_value",
    "may_be",
    "to_data",
    "unwrap_closure",
]


def describe(value: Any, part: Callable[[Any, Type], tuple[object, Argument]]) -> tuple[object, DataArg]:
    """The description of a value for the compiler: a key, and the types of its parts. Its size and form do not matter.

    `part` describes the content of a field, given its declared type. Values of the same type in it, and those of types
    without parameters, are gone through here, also in references and lists: they make chains, and lead back.
    """
    owner: DataClass = type(value).__relay_data__
    owner.complete()
    definition = owner.definition
    own = DataType(definition, definition.parameters)
    parts: dict[tuple[Type, object], Argument] = {}
    seen: set[int] = set()
    pending = [value]
    while pending:
        current = pending.pop()
        if id(current) in seen:
            continue
        seen.add(id(current))
        for field, declared in _field_values(current):
            inside, content = declared, field
            while isinstance(inside, RefType) and isinstance(content, Ref):
                inside, content = inside.content, content.value
            if _is_like(content, inside, own):
                pending.append(content)
                continue
            if type(field) is list and isinstance(declared, StackType):
                element = declared.element.content if isinstance(declared.element, RefType) else declared.element
                if all(_is_like(item, element, own) for item in field):
                    pending += field
                    field = []
            key, argument = part(field, declared)
            parts[declared, key] = argument
    return ("data", definition, frozenset(parts)), DataArg(
        definition, tuple((declared, argument) for (declared, _), argument in parts.items())
    )


def _is_like(value: Any, declared: Type, own: DataType) -> bool:
    """True for a value whose type follows from that of a field: the type itself, or one without parameters."""
    if not isinstance(declared, DataType) or not is_value(value):
        return False
    definition = type(value).__relay_data__.definition
    is_known = declared == own or not (declared.arguments or definition.parameters)
    return definition is declared.definition and is_known


def _field_values(value: Any) -> Iterator[tuple[Any, Type]]:
    """The contents of a value's fields, with their declared types."""
    owner: DataClass = type(value).__relay_data__
    owner.complete()
    name = type(value).__relay_constructor__
    constructor = owner.definition.constructors[owner.definition.index(name)]
    for field, declared in zip(constructor.names, constructor.fields, strict=True):
        yield vars(value)[field], declared


@functools.cache
def is_recursive(owner: DataClass) -> bool:
    """True if values of a data type may contain values of the same type. Raises FrontendError as
    `DataClass.complete` does."""
    owner.complete()
    seen: set[DataDefinition] = set()
    pending = [owner.definition]
    while pending:
        inside = mentioned_definitions(t for c in pending.pop().constructors for t in c.fields)
        if owner.definition in inside:
            return True
        pending += [complete_definition(d) for d in inside if d not in seen]
        seen.update(inside)
    return False


def classes(definition: DataDefinition) -> list[tuple[type, tuple[str, ...]]]:
    """The Python classes of a data type's constructors, in order, each with its attributes; none if it has none."""
    owner = data_class(definition)
    if owner is None:
        return []
    return [(owner.constructors[c.name], c.names) for c in definition.constructors]


def to_data(value: Any, type_: DataType, part: Callable[[Any, Type], Any]) -> Data:
    """A Python object as the run-time value of a (monomorphic) type. `part` converts contents of other types; of a
    list of values it is given these converted."""
    done: dict[tuple[int, DataType], Data] = {}
    pending: list[tuple[Any, DataType]] = [(value, type_)]
    while pending:
        current, expected = pending[-1]
        if (id(current), expected) in done:
            pending.pop()
            continue
        name = type(current).__relay_constructor__
        definition = expected.definition
        constructor = definition.constructors[definition.index(name)]
        held = [
            (unwrap_closure(vars(current)[n]), t) for n, t in zip(constructor.names, constructor.fields, strict=True)
        ]
        inside = [below for f, t in held for below in _values_below(f, t)]
        missing = [below for below in inside if (id(below[0]), below[1]) not in done]
        if missing:
            pending += missing
            continue
        pending.pop()
        fields: list[Any] = []
        for f, t in held:
            below = [done[id(v), of] for v, of in _values_below(f, t)]
            fields.append(below[0] if isinstance(t, DataType) else part(below or f, t))
        done[id(current), expected] = Data(definition, name, tuple(fields))
    return done[id(value), type_]


def _values_below(field: Any, type_: Type) -> list[tuple[Any, DataType]]:
    """The values of data types in a field that is one, or a list of them; each with its type."""
    if isinstance(type_, DataType):
        return [(field, type_)]
    if isinstance(type_, StackType) and isinstance(type_.element, RefType) and type(field) is list:
        element = type_.element.content
        if isinstance(element, DataType) and all(is_value(item) and may_be(item, element) for item in field):
            return [(item, element) for item in field]
    return []


def may_be(value: Any, type_: DataType) -> bool:
    """True if a value of a data type may be of this one. A function that another program selected may not."""
    owner: DataClass = type(value).__relay_data__
    return not isinstance(owner, ClosureClass) or owner.definition is type_.definition


def from_data(value: Data, type_: Type, part: Callable[[Any, Type], Any], interpreted: bool = False) -> Any:
    """A run-time value as the Python object that its type stands for. `type_` may be a data type with arguments, or
    the type of a function value, which runs on the interpreter if `interpreted`."""
    done: dict[int, Any] = {}
    layouts: dict[tuple[Type, str], tuple[DataClass | None, Constructor, list[Type]]] = {}
    pending: list[tuple[Data, Type]] = [(value, type_)]
    while pending:
        current, found = pending[-1]
        if id(current) in done:
            pending.pop()
            continue
        layout = layouts.get((found, current.constructor))
        if layout is None:
            known = DataType(current.definition) if isinstance(prune(found), FunctionType) else found
            layout = layouts[found, current.constructor] = fields(known, current.constructor)
        owner, constructor, types = layout
        held = list(zip(current.fields, types, strict=True))
        missing = [(f, t) for f, t in held if isinstance(f, Data) and id(f) not in done]
        if missing:
            pending += missing
            continue
        pending.pop()
        values = [done[id(f)] if isinstance(f, Data) else part(f, t) for f, t in held]
        if owner is None:  # an optional value is None or its content
            done[id(current)] = values[0] if values else None
            continue
        if (to_python := getattr(owner.cls, "__relay_result__", None)) is not None:
            done[id(current)] = to_python(*values)
            continue
        made = make(owner, current.constructor, dict(zip(constructor.names, values, strict=True)))
        is_function = isinstance(owner, ClosureClass) and owner.applied is not None
        done[id(current)] = owner.function(made, interpreted) if is_function else made  # type: ignore[attr-defined]
    return done[id(value)]


def fields(type_: Type, name: str) -> tuple[DataClass | None, Constructor, list[Type]]:
    """A constructor of a data type, and the types of its fields at the type's arguments. An optional value has no
    class."""
    known = prune(type_)
    assert isinstance(known, DataType)
    definition = known.definition
    owner = data_class(definition)
    if owner is None and not is_optional(known):
        raise InternalError(f"{known} has no class in Python")
    constructor = definition.constructors[definition.index(name)]
    bound = dict(zip(definition.parameters, known.arguments, strict=True))
    return owner, constructor, [resolve(substitute(t, bound)) for t in constructor.declared or constructor.fields]
