"""Data types: constructors, fields, methods, `replace`.

A value is a run-time value of type `D[arguments]`; the arguments are found by unification. A data type with one
constructor is a record: `value.field` reads it by a match with one arm.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from relay.errors import Span, TypeCheckError
from relay.ir.definition import DataClass, complete_definition, data_class
from relay.ir.expr import Block, Match, MatchArm, Yield
from relay.ir.types import (
    Constructor,
    DataDefinition,
    DataType,
    FunctionType,
    RefType,
    StackType,
    TupleType,
    Type,
    prune,
    show,
)
from relay.operator.relation import substitute
from relay.typecheck.elaboration.abstract_values import (
    AbstractValue,
    DeferredBinding,
    DynamicValue,
    GlobalFunction,
    Method,
    PythonObject,
    Text,
    TypedBlockBuilder,
)
from relay.typecheck.elaboration.checker import Checker
from relay.typecheck.elaboration.values.expansion import expand
from relay.typecheck.elaboration.values.objects import object_entity
from relay.typecheck.monomorphization import fresh_arguments
from relay.typecheck.unification import resolve


def is_data_class(value: object) -> bool:
    """True if a Python object is a class made by `relay.data`, or one of its constructors."""
    return data_class(value) is not None if isinstance(value, type) else False


def data_type(typed: AbstractValue) -> DataType | None:
    """The data type of a value, as far as it is known."""
    if not isinstance(typed, DynamicValue):
        return None
    type_ = prune(typed.type)
    return type_ if isinstance(type_, DataType) else None


def is_string(entity: AbstractValue) -> bool:
    """True if a value is a run-time string (`texts.py`)."""
    found = data_type(entity)
    owner = None if found is None else data_class(found.definition)
    return owner is not None and hasattr(owner.cls, "__relay_result__")


def is_text(entity: AbstractValue) -> bool:
    """True if a value is a string: one that is known, an f-string, or a run-time string."""
    known = isinstance(entity, PythonObject) and isinstance(entity.value, str)
    return known or is_string_of_run(entity)


def is_string_of_run(entity: AbstractValue) -> bool:
    """True if a value is a string that is not known."""
    return isinstance(entity, Text) or is_string(entity)


def field_types(checker: Checker, type_: DataType, constructor: Constructor) -> tuple[Type, ...]:
    """The types of a constructor's fields at the arguments of a data type. Functions in one field of any values have
    the effects of all of them."""
    bound = dict(zip(type_.definition.parameters, type_.arguments, strict=True))
    found = []
    for position, declared in enumerate(constructor.declared or constructor.fields):
        name = constructor.names[position] if constructor.names else str(position)
        what = f"the field {name} of {type_.definition.name}"
        with_effects = checker.with_effects(declared, (type_.definition, constructor.name, position), what)
        found.append(substitute(with_effects, bound))
    return tuple(found)


def fresh_type(checker: Checker, definition: DataDefinition) -> DataType:
    """A data type at unknown arguments."""
    return DataType(definition, fresh_arguments(definition, checker.solver.fresh_variable))


# ---- classes


def class_attribute(value: type, name: str, span: Span | None) -> AbstractValue:
    """`Tree.name`: a constructor, a method as a function, or a plain Python value."""
    owner = data_class(value)
    assert owner is not None
    if name in owner.methods:
        return GlobalFunction(owner.methods[name]())
    if name in owner.constructors and owner.constructors[name] is not owner.cls:
        return PythonObject(owner.constructors[name])
    if not name.startswith("_") and name in vars(owner.cls):
        return object_entity(vars(owner.cls)[name], span)
    close = difflib.get_close_matches(name, [*owner.constructors, *owner.methods], n=1)
    raise TypeCheckError(
        f"{owner.definition.name} has no constructor or method {name!r}",
        span,
        help=f"did you mean {close[0]!r}?" if close else None,
    )


def constructor_of(value: object, span: Span | None) -> tuple[DataClass, Constructor]:
    """The constructor that a Python class stands for. Raises TypeCheckError if it is none."""
    owner = data_class(value)
    if owner is None:
        raise TypeCheckError(f"{getattr(value, '__name__', value)!r} is not a class of a data type", span)
    definition = complete_definition(owner.definition)
    for constructor in definition.constructors:
        if owner.constructors[constructor.name] is value:
            return owner, constructor
    names = " or ".join(f"{definition.name}.{c.name}" for c in definition.constructors)
    raise TypeCheckError(f"{definition.name} is not a constructor", span, help=f"write {names}")


# ---- construction


def display_name(definition: DataDefinition, constructor: Constructor) -> str:
    return constructor.name if len(definition.constructors) == 1 else f"{definition.name}.{constructor.name}"


def missing_field_error(
    definition: DataDefinition, constructor: Constructor, name: str, span: Span | None
) -> TypeCheckError:
    close = difflib.get_close_matches(name, constructor.names, n=1)
    help = f"did you mean {close[0]!r}?" if close else f"its fields are {', '.join(constructor.names) or 'none'}"
    return TypeCheckError(f"{display_name(definition, constructor)} has no field {name!r}", span, help=help)


# ---- values


def attribute(
    checker: Checker, out: TypedBlockBuilder, typed: DynamicValue, type_: DataType, name: str, span: Span | None
) -> AbstractValue:
    """`value.name`: a field, or a method that is not called yet."""
    definition = complete_definition(type_.definition)
    owner = data_class(definition)
    if owner is not None and name in owner.properties:
        return call_method(checker, out, Method(typed, name), (), (), span)
    if owner is not None and name in owner.methods:
        return Method(typed, name)
    if len(definition.constructors) != 1:
        holders = [c.name for c in definition.constructors if name in c.names]
        if not holders:
            raise TypeCheckError(f"{show(resolve(type_))} has no field or method {name!r}", span)
        raise TypeCheckError(
            f"{name!r} is a field of {definition.name}.{holders[0]}, and this may be another constructor",
            span,
            help="use `match`",
        )
    (constructor,) = definition.constructors
    if name not in constructor.names:
        raise missing_field_error(definition, constructor, name, span)
    return read_fields(checker, out, typed, type_, (constructor.names.index(name),), span)[0]


def read_fields(
    checker: Checker,
    out: TypedBlockBuilder,
    typed: DynamicValue,
    type_: DataType,
    positions: Sequence[int],
    span: Span | None,
) -> tuple[AbstractValue, ...]:
    """Fields of a value whose type has one constructor, expanded."""
    (constructor,) = type_.definition.constructors
    types = field_types(checker, type_, constructor)
    inner = tuple(checker.variable(n, t, span) for n, t in zip(constructor.names, types, strict=True))
    outer = tuple(checker.variable(constructor.names[p], types[p], span) for p in positions)
    block = Block((), Yield(tuple(inner[p] for p in positions), span))
    match = Match(typed.atom, (MatchArm(constructor.name, inner, block),), span)
    out.items.append(DeferredBinding(outer, lambda: match))
    return tuple(
        expand(checker, out, DynamicValue(var, types[p]), span) for var, p in zip(outer, positions, strict=True)
    )


def call_method(
    checker: Checker,
    out: TypedBlockBuilder,
    method: Method,
    arguments: Sequence[AbstractValue],
    keywords: Sequence[tuple[str, AbstractValue]],
    span: Span | None,
) -> AbstractValue:
    """`value.method(..)`."""
    type_ = data_type(method.value)
    assert type_ is not None
    owner = data_class(type_.definition)
    assert owner is not None
    function = GlobalFunction(owner.methods[method.name]())
    own = [] if method.name in owner.static else [method.value]
    return checker.engine.call_function(checker, out, function, [*own, *arguments], keywords, span, len(own))


def fill(checker: Checker, type_: Type) -> Type:
    """A written type in which the bare name of a polymorphic data type means that type at unknown arguments."""
    match type_:
        case DataType(definition, ()) if complete_definition(definition).parameters:
            return fresh_type(checker, definition)
        case DataType(definition, arguments) if arguments:
            return DataType(definition, tuple(fill(checker, a) if isinstance(a, Type) else a for a in arguments))
        case TupleType(items, form):
            return TupleType(tuple(fill(checker, t) for t in items), form)
        case FunctionType(parameters, result, where):
            inputs = tuple(fill(checker, t) for t in parameters)
            return FunctionType(inputs, fill(checker, result), where, type_.effects)
        case RefType(content):
            return RefType(fill(checker, content))
        case StackType(element):
            return StackType(fill(checker, element))
        case _:
            return type_
